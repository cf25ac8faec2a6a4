"""What shows, while it is measured, what is being tried; only to a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager

#: seconds below which nobody needs to be told
_SOON = 1.0


@contextmanager
def shown(seconds):
    """Give a function ``(done, of, text)`` that shows how far a work of some seconds has come."""
    if seconds <= _SOON or not sys.stderr.isatty():
        yield lambda done, of, text: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # a thread that draws would take processors from what is measured
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("")
        yield lambda done, of, text: bar.update(
            task, completed=done, total=of, description=text, refresh=True
        )
