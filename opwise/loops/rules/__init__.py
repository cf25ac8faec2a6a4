"""Rules on loops, a module for each idea; ``opwise.loops`` loads them."""

from opwise.loops.rules import unused  # noqa: F401  (registers its rule)
