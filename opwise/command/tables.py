"""What subcommands show: tables, coloured in a terminal and plain elsewhere; progress."""

from __future__ import annotations

import contextlib
import sys
import time

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from opwise.profiling.files import printable

#: wide enough that nothing is folded where there is no terminal
_WIDE = 10_000
#: seconds after which progress is shown
_PATIENCE = 1.0


def table(numbers, last, fold=True):
    """Return a table with columns of numbers, and a wide one behind them.

    fold: whether what a terminal is too narrow for goes on below; otherwise it is cut.
    """
    # so wide that the last column, and no other, has what the others leave
    made = Table(box=None, pad_edge=False, header_style="bold", expand=is_terminal())
    for heading in numbers:
        made.add_column(heading, justify="right", no_wrap=True)
    overflow = "fold" if fold else "ellipsis"
    made.add_column(last, overflow=overflow, no_wrap=not fold, ratio=1 if is_terminal() else None)
    return made


def cell(text):
    """Return the cell of a name: as it is, but for what would move the cursor."""
    return Text(printable(text))


def is_terminal():
    """Return whether what is printed is read in a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def show(what):
    """Print a table: as wide as the terminal; without colours and trailing blanks elsewhere."""
    if is_terminal():
        Console(markup=False, highlight=False).print(what)
        return
    console = Console(width=_WIDE, markup=False, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(what)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


@contextlib.contextmanager
def progress(what, total):
    """Give a function to call after each step; shows on a terminal's stderr how far things are.

    Nothing is shown of what ends within a second.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    shown = Progress(console=Console(stderr=True), transient=True)
    task = shown.add_task(what, total=total)
    start = time.monotonic()

    def advance():
        shown.advance(task)
        if not shown.live.is_started and time.monotonic() - start > _PATIENCE:
            shown.start()

    try:
        yield advance
    finally:
        shown.stop()
