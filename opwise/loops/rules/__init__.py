"""Rules on loops, a module for each idea; ``opwise.loops`` loads them.

They are tried in the order in which they are loaded.
"""

import opwise.loops.rules.unused  # noqa: F401  (first: what nothing reads need not be moved)
from opwise.loops.rules import (  # noqa: F401
    after,
    before,
    device,
    memory,
    merging,
    together,
    unrolling,  # last: what leaves the loop need not be repeated
)
