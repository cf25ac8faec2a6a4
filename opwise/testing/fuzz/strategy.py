"""Strategies for Hypothesis: random programs, with outputs and updates."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from opwise.testing.fuzz.program import RandomProgram
from opwise.testing.fuzz.whole import grown


@lru_cache(maxsize=512)
def _below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


@st.composite
def programs(
    draw: Any, steps: int = 16, special: bool = False, refused: dict[str, int] | None = None
) -> RandomProgram:
    """Draw RandomPrograms of up to ``steps`` + 1 statements; special: with NaN and infinity."""
    program = grown(lambda n: draw(_below(n)) if n > 1 else 0, steps, special, refused)
    assume(program is not None)
    assert program is not None
    return program
