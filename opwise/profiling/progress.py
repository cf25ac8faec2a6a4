"""Progress on a terminal, for work that takes longer than a second: one bar in the process.

There is none if stderr is not a terminal, and with the flag show_progress=False. Rich draws it, and
is imported when a bar is first shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opwise.config import config

#: seconds before a bar is shown (default)
PATIENCE = 1.0


def is_wanted() -> bool:
    """Return whether somebody may be waiting at a terminal."""
    stream = sys.stderr
    return bool(config.show_progress) and stream is not None and stream.isatty()


class Bar:
    """The progress of some work.

    text: what is done. total: the amount of work; None if it is not known. alone: whether only
    calls of ``update`` draw, no thread: a thread would take processor time from what is measured.
    patience: seconds before anything is drawn.
    """

    def __init__(
        self, text: str, total: float | None, alone: bool, patience: float = PATIENCE
    ) -> None:
        self.title = self.text = text
        self._patience = patience
        self.total, self.alone = total, alone
        self.done = 0.0
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._is_over = False
        self._shown: Any = None
        self._timer: threading.Timer | None = None
        if not alone:
            self._timer = threading.Timer(patience, self._show)
            self._timer.daemon = True
            self._timer.start()

    def update(
        self, done: float | None = None, total: float | None = None, text: str | None = None
    ) -> None:
        """Say how far the work is; None keeps what was said before."""
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self.text = self.text if text is None else text
        if (
            self._shown is None
            and self.alone
            and time.monotonic() - self._started >= self._patience
        ):
            self._show()
        drawn = self._shown
        if drawn is not None:
            drawn.update(
                0, completed=self.done, total=self.total, description=self.text, refresh=self.alone
            )

    def advance(self) -> None:
        """Say that one more part of the work is done."""
        self.update(self.done + 1)

    def _show(self) -> None:
        """Begin to draw."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            SpinnerColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        with self._lock:
            if self._is_over or self._shown is not None:
                return
            text = TextColumn("{task.description}", markup=False)
            amount: list[ProgressColumn] = [SpinnerColumn()]
            if self.total is not None:
                amount = [BarColumn(), TaskProgressColumn()]
            shown = Progress(
                *amount, text, TimeElapsedColumn(), console=Console(stderr=True), transient=True,
                auto_refresh=not self.alone, redirect_stdout=self.alone,
                redirect_stderr=self.alone,
            )  # fmt: skip
            shown.add_task(self.text, total=self.total, completed=int(self.done))
            shown.tasks[0].start_time = self._started
            shown.start()
            self._shown = shown

    def close(self) -> None:
        """Remove what was drawn."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._is_over = True
            shown, self._shown = self._shown, None
        if shown is not None:
            shown.stop()


class _NoBar(Bar):
    """Shows nothing."""

    def __init__(self) -> None:
        super().__init__("", None, alone=True)

    def update(
        self, done: float | None = None, total: float | None = None, text: str | None = None
    ) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


_none = _NoBar()


class _Terminal:
    """The terminal, which has room for one bar of the process."""

    #: ``_none`` without one
    bar: Bar = _none


_terminal = _Terminal()


@contextmanager
def shown(
    text: str, total: float | None = None, alone: bool = True, patience: float = PATIENCE
) -> Iterator[Bar]:
    """Yield the Bar of some work; the arguments are those of ``Bar``.

    It shows nothing if stderr is no terminal, or if work around it has a bar already.
    """
    if _terminal.bar is not _none or not is_wanted():
        yield _none
        return
    bar = _terminal.bar = Bar(text, total, alone, patience)
    try:
        yield bar
    finally:
        _terminal.bar = _none
        bar.close()


def compiling(name: str | None) -> Any:
    """Return a context that shows the progress of compiling a function of this name."""
    return shown(f"compiling {name or 'a function'}", alone=False, patience=PATIENCE)


def say(what: str) -> None:
    """Say what the compiler is doing, for the bar of ``compiling`` if there is one."""
    bar = _terminal.bar
    if bar is not _none and not bar.alone:
        bar.update(text=f"{bar.title}: {what}")


def interrupt() -> None:
    """Remove the bar, because something else needs the terminal."""
    _terminal.bar.close()
