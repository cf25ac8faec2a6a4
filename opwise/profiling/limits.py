"""What is refused as a number of rows."""

from __future__ import annotations

from numbers import Integral


def check(**limits):
    """Raise ValueError for an argument that is no whole number from 1."""
    for name, n in limits.items():
        if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
            raise ValueError(f"{name} is {n!r}; it must be a whole number from 1")
