"""The table of ``report --by``: the time of a profile by Op, class, line, scope or shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opwise.command import tables
from opwise.profiling import aggregate, jsonreports
from opwise.profiling.reports.wording import counted, short_place

if TYPE_CHECKING:
    from opwise.profiling.profile import Profile

#: what a report can be grouped by; "apply" is the report without grouping
BY = ("apply", *aggregate.GROUPINGS)


def show(profile: Profile, by: str, n: int) -> None:
    """Print up to n rows of the sums of a Profile by one of ``aggregate.GROUPINGS``."""
    rows = jsonreports.sums(profile, by)
    table = tables.Table(
        [tables.Column("time ms"), tables.Column("share"), tables.Column("runs", 2),
         tables.Column("Applys", 1), tables.text(by)]
    )  # fmt: skip
    label = short_place if by == "line" else str
    for row in rows[:n]:
        table.add([
            f"{row['seconds'] * 1e3:.3f}", f"{100 * row['share']:.1f}%", str(row["calls"]),
            str(row["applys"]), f"{label(row['label'])}  {row['source']}".rstrip(),
        ])  # fmt: skip
    tables.show(table)
    if len(rows) > n:
        rest = sum(row["seconds"] for row in rows[n:])
        tables.say(f"{counted(len(rows) - n, 'more row')}: {rest * 1e3:.3f} ms")
    if by == "shapes":
        tables.say(SHAPES)


#: the limit of what a profile records of shapes
SHAPES = "Shapes are those of the last call; a profile does not record those of earlier calls."
