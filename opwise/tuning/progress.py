"""The progress of trials, shown on stderr if it is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opwise.profiling import progress

#: (seconds that have passed, seconds in all, what is being tried) -> None
Progress = Callable[[float, float, str], object]


@contextmanager
def shown(seconds: float) -> Iterator[Progress]:
    """Yield a function that shows the progress of trials that take so many seconds, at once."""
    patience = 0.0 if seconds > progress.PATIENCE else progress.PATIENCE
    with progress.shown("", seconds, patience=patience) as bar:
        yield bar.update
