"""Where opwise gives another result than Theano 1.0.5 on purpose: why, and what it gives instead.

A case is named by its program, a colon and its path in the program's results.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One reason, and the expected result of every case that it changes."""

    reason: str
    expected: dict


DIFFERENCES = ()
