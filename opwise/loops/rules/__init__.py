"""Rules on loops, a module for each idea; ``opwise.loops`` loads them."""

from opwise.loops.rules import (  # noqa: F401  (register their rules)
    after,
    before,
    together,
    unused,
)
