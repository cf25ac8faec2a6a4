"""Names, places and numbers as reports print them."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Iterator

from opwise.profiling.aggregate import SummaryRow, parts_of
from opwise.profiling.model import ApplyProfile


def counted(n: int, what: str, plural: str = "") -> str:
    """Return a number with the word for what is counted. plural: with another ending than s."""
    return f"{n} {what}" if n == 1 else f"{n} {plural or f'{what}s'}"


def short(name: str, most: int = 120) -> str:
    """Return a name, cut to ``most`` characters."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


#: the start of a row of a table: columns of figures, or a deep indent below such a row
_ROW = re.compile(r" +[-\d.]+[s%]?( {2}| +[-\d.])| {10}")


def fitted(lines: Iterable[str], width: int, cut_rows: bool = True) -> Iterator[str]:
    """Yield lines that fit a width: sentences and headers are wrapped, rows of tables are cut.

    cut_rows: False to leave rows as they are.
    """
    for line in lines:
        if len(line) <= width:
            yield line
        elif not _ROW.match(line):
            yield from textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False)
        else:
            yield f"{line[: width - 1]}…" if cut_rows else line


def percent(part: float, whole: float) -> float:
    """Return a part of a whole in percent; 0.0 of nothing."""
    return 100 * part / whole if whole else 0.0


def short_path(file: str) -> str:
    """Return a path relative to the current folder if the file is below it, else as it is."""
    try:
        inside = os.path.relpath(file)
    except (OSError, ValueError):  # the folder is gone; another drive
        return file
    return file if inside.startswith(os.pardir) else inside


def short_place(place: str) -> str:
    """Return ``file:line`` with a path relative to the current folder if the file is below it."""
    file, colon, line = place.rpartition(":")
    return f"{short_path(file)}{colon}{line}" if colon and os.path.isabs(file) else place


def line_of(apply: ApplyProfile) -> str:
    """Return ``file:line`` of an Apply with a short path; "" if unknown.

    Of several lines, it is the one with the largest part of the time, as sums by line divide it.
    """
    if not apply.lines:
        return ""
    parts: dict[tuple[str, int], float] = {}
    for origin, part in parts_of(apply):
        if origin.file:
            parts[origin.file, origin.line] = parts.get((origin.file, origin.line), 0.0) + part
    file, line = max(parts, key=parts.__getitem__, default=apply.lines[0])
    return f"{short_path(file)}:{line}"


def place_of(row: SummaryRow) -> str:
    """Return what a row of ``aggregate.by_line`` or ``by_scope`` is about, with a short path."""
    if isinstance(row.key, tuple):
        return f"{short_path(row.key[0])}:{row.key[1]}"
    return row.label


def name_and_place(apply: ApplyProfile) -> str:
    """Return the name of an Apply, its id and its line, for a sentence."""
    line = f", {line_of(apply)}" if apply.lines else ""
    return f"{short(apply.title)} (id {apply.position}{line})"
