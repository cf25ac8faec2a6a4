"""Rules on loops, a module for each idea; ``opwise.loops`` loads them."""

from opwise.loops.rules import device, unused  # noqa: F401  (they register their rules)
