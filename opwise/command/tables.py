"""Tables, coloured in a terminal and plain elsewhere; lines that fit the width."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from opwise.profiling.files import printable
from opwise.tuning.tips import line_width

#: the width without a terminal, unless COLUMNS is set: nothing is cut
_WIDE = 10_000
#: the least width of a column whose cells may be cut
_READABLE = 28
#: blanks between two columns
_GAP = 2


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    #: the heading
    title: str
    #: columns with the largest rank are left out first if the table is too wide; 0 always stays
    rank: int = 0
    #: align right: numbers
    right: bool = True
    #: cut the end of cells that do not fit
    cut: bool = False


def name(title: str, rank: int = 0) -> Column:
    """Return a column of short texts, which are never cut."""
    return Column(title, rank, right=False)


def text(title: str) -> Column:
    """Return a column of long texts: it gets the width that is left, and its cells may be cut."""
    return Column(title, right=False, cut=True)


class Table:
    """Rows of texts under columns."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self.columns = list(columns)
        self.rows: list[tuple[list[str], str | None]] = []

    def add(self, cells: Iterable[str], style: str | None = None) -> None:
        """Add a row: a text for each column. style: the colour of the row in a terminal."""
        self.rows.append(([printable(cell) for cell in cells], style))

    def _widths(self) -> list[int]:
        texts = zip(*(cells for cells, _ in self.rows), strict=True) if self.rows else ()
        widths = [max(map(cell_len, column)) for column in texts] or [0] * len(self.columns)
        return [w and max(w, cell_len(c.title)) for w, c in zip(widths, self.columns, strict=True)]

    def fitting(self, width: int) -> list[int]:
        """Return the indices of the columns that fit into ``width`` characters."""
        widths = self._widths()
        shown = [k for k, w in enumerate(widths) if w or self.columns[k].cut]

        def needed() -> int:
            return sum(
                min(widths[k], _READABLE) if self.columns[k].cut else widths[k] for k in shown
            ) + _GAP * (len(shown) - 1)

        while needed() > width:
            k = max(shown, key=lambda k: (self.columns[k].rank, k))
            if self.columns[k].rank == 0:
                break
            shown.remove(k)
        return shown

    def titles(self, width: int) -> list[str]:
        """Return the titles of the columns that fit into ``width`` characters."""
        return [self.columns[k].title for k in self.fitting(width)]

    def left_out(self, width: int) -> list[str]:
        """Return the titles of columns that are not empty and do not fit into ``width``."""
        shown = self.titles(width)
        return [title for title in self.titles(_WIDE) if title not in shown]

    def laid_out(self, width: int) -> tuple[RichTable, int]:
        """Return (a rich table of the columns that fit into ``width`` characters, its width)."""
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


#: shares of the time from which a row is yellow, and red
_MUCH, _MOST = 0.1, 0.25


def share_style(share: float) -> str | None:
    """Return the colour of a row that took a share of the time, None for that of the text."""
    return "red" if share >= _MOST else "yellow" if share >= _MUCH else None


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int:
    """Return the width of a line in characters: COLUMNS, the terminal's width, or no limit."""
    return line_width() or _WIDE


def place(where: str) -> str:
    """Return ``path:line``, without the folders if it is longer than a quarter of the width."""
    return where if len(where) <= width() // 4 else os.path.basename(where)


def say(line: str) -> None:
    """Print a line, wrapped to the width with a hanging indent."""
    line = printable(line)
    if len(line) > width():
        indent = " " * (len(line) - len(line.lstrip()))
        line = textwrap.fill(
            line, width(), subsequent_indent=f"{indent}  ", break_on_hyphens=False,
            drop_whitespace=True, replace_whitespace=False,
        )  # fmt: skip
    click.echo(line)


def show(table: Table) -> None:
    """Print the columns of a Table that fit the width, in colours if stdout is a terminal."""
    made, needed = table.laid_out(width())
    if is_terminal():
        Console(width=needed, height=25, markup=False, highlight=False).print(made)
    else:
        _print_plain(made, needed)
    left_out = table.left_out(width())
    if left_out:
        say(f"  (not shown, at {width()} columns: {', '.join(left_out)})")


def _print_plain(made: RichTable, needed: int) -> None:
    console = Console(width=needed, height=25, markup=False, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(made)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())
