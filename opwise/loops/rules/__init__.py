"""Rules on loops, a module for each idea; ``opwise.loops`` loads them."""

from opwise.loops.rules import memory, merging, unused  # noqa: F401  (register their rules)
