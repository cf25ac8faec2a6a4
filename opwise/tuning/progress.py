"""The progress of trials, shown on stderr if it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: trials that take fewer seconds show no progress
_SHORT = 1.0

#: (seconds that have passed, seconds in all, what is being tried) -> None
Progress = Callable[[float, float, str], object]


@contextmanager
def shown(seconds: float) -> Iterator[Progress]:
    """Yield a function that shows the progress of trials that take so many seconds."""
    if seconds <= _SHORT or not sys.stderr.isatty():
        yield lambda done, of, text: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    # a thread that draws would take processor time from what is measured
    with Bar(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("")
        yield lambda done, of, text: bar.update(
            task, completed=done, total=of, description=text, refresh=True
        )
