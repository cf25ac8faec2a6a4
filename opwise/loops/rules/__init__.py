"""Rules on loops, a module for each idea, in the order of ``optimizers.stages.RULE_MODULES``."""
