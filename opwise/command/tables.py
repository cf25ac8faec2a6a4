"""What subcommands show: tables, coloured in a terminal and plain elsewhere; progress."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
import time
from dataclasses import dataclass

import click
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress
from rich.table import Table as RichTable
from rich.text import Text

from opwise.profiling.files import printable

#: wide enough that nothing is folded where there is no terminal
_WIDE = 10_000
#: the fewest characters that a column keeps which can be cut
_READABLE = 36
#: between two columns
_GAP = 2
#: seconds after which progress is shown
_PATIENCE = 1.0


@dataclass(frozen=True)
class Column:
    """A column of a table.

    rank: columns with the largest go first where a terminal is too narrow; those of rank 0 stay.
    right: numbers, which are never cut. cut: what does not fit is cut at the end of a cell.
    """

    title: str
    rank: int = 0
    right: bool = True
    cut: bool = False


def name(title, rank=0):
    """Return a column of short texts, which are shown whole or not at all."""
    return Column(title, rank, right=False)


def text(title):
    """Return a column of long texts, which has what the others leave, and is never left out."""
    return Column(title, right=False, cut=True)


class Table:
    """Rows of texts, and the columns that they are in."""

    def __init__(self, columns):
        self.columns = list(columns)
        self.rows = []

    def add(self, cells, style=None):
        """Add a row: a text for each column, and the colour of it."""
        self.rows.append(([printable(cell) for cell in cells], style))

    def _widths(self):
        texts = zip(*(cells for cells, _ in self.rows), strict=True) if self.rows else ()
        widths = [max(map(cell_len, column)) for column in texts] or [0] * len(self.columns)
        return [w and max(w, cell_len(c.title)) for w, c in zip(widths, self.columns, strict=True)]

    def fitting(self, width):
        """Return the columns, by number, that are shown on so many characters."""
        widths = self._widths()
        shown = [k for k, w in enumerate(widths) if w or self.columns[k].cut]

        def needed():
            return sum(
                min(widths[k], _READABLE) if self.columns[k].cut else widths[k] for k in shown
            ) + _GAP * (len(shown) - 1)

        while needed() > width:
            k = max(shown, key=lambda k: (self.columns[k].rank, k))
            if self.columns[k].rank == 0:
                break
            shown.remove(k)
        return shown

    def titles(self, width):
        """Return the titles of the columns that are shown on so many characters."""
        return [self.columns[k].title for k in self.fitting(width)]

    def left_out(self, width):
        """Return the titles of columns that hold something and are not shown on ``width``."""
        shown = self.titles(width)
        return [title for title in self.titles(_WIDE) if title not in shown]

    def laid_out(self, width):
        """Return (a rich table of the columns that fit on so many characters, its width)."""
        shown, widths = self.fitting(width), self._widths()
        others = sum(widths[k] for k in shown if not self.columns[k].cut)
        left = width - others - _GAP * (len(shown) - 1)
        made = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for k in shown:
            column = self.columns[k]
            if column.cut:
                widths[k] = min(widths[k], max(left, cell_len(column.title)))
            made.add_column(
                column.title,
                justify="right" if column.right else "left",
                no_wrap=True,
                overflow="ellipsis" if column.cut else "crop",
                width=widths[k],
            )
        for cells, style in self.rows:
            made.add_row(*(Text(cells[k]) for k in shown), style=style)
        return made, sum(widths[k] for k in shown) + _GAP * len(shown)


def is_terminal():
    """Return whether what is printed is read in a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width():
    """Return how many characters a line has; where it is no terminal, so many that all fit."""
    return shutil.get_terminal_size().columns if is_terminal() else _WIDE


def place(where):
    """Return ``path:line`` as a terminal has room for it: without folders if they are long."""
    return where if len(where) <= width() // 4 else os.path.basename(where)


def say(line):
    """Print a line; in a terminal it goes on below, behind the blanks that it begins with."""
    line = printable(line)
    if is_terminal() and len(line) > width():
        indent = " " * (len(line) - len(line.lstrip()))
        line = textwrap.fill(
            line, width(), subsequent_indent=f"{indent}  ", break_on_hyphens=False,
            drop_whitespace=True, replace_whitespace=False,
        )  # fmt: skip
    click.echo(line)


def show(table):
    """Print a Table: in a terminal what fits on its width; all, without colours, elsewhere."""
    made, needed = table.laid_out(width())
    if is_terminal():
        Console(width=needed, height=25, markup=False, highlight=False).print(made)
        left_out = table.left_out(width())
        if left_out:
            say(f"  (without, at {width()} columns: {', '.join(left_out)})")
        return
    console = Console(width=needed, height=25, markup=False, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(made)
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
