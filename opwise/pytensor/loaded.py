"""Loads the modules of translations, which register themselves with the front end."""

from opwise.pytensor import (  # noqa: F401
    elementwise,
    indexing,
    linalg,
    loops,
    ordering,
    products,
    randomness,
    reductions,
    shapes,
    signal,
    splines,
)
