"""The tables of ``report``: a profile at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from opwise.command import tables
from opwise.profiling import aggregate, roofline
from opwise.profiling.files import printable
from opwise.profiling.reports import details, device, wording

if TYPE_CHECKING:
    from opwise.profiling.profile import ApplyProfile, FunctionProfile, Profile

#: what the rows of Applys can be sorted by: the time taken, the time that they would have taken if
#: each run had taken the median, or the possible gain
SORTS = ("time", "median", "gain")


def show(profile: Profile, n: int, sort: str = "time") -> None:
    """Print the tables of a Profile, with up to n rows each."""
    for line in _headline(profile):
        tables.say(line)
    if profile.local_ns:
        _show_applys(profile, n, sort)
        _show_lines_and_scopes(profile, n)
    for section in (details.program(profile), device.section(profile, n)):
        for line in ("", *section) if section else ():
            tables.say(line)
    _show_sampled(profile, n)
    _show_python(profile, n)
    _show_peak(profile)


def _show_applys(profile: Profile, n: int, sort: str) -> None:
    """Print the table of Applys, and what its columns mean."""
    if sort == "gain" and not any(row.gain is not None for row in _limits(profile).values()):
        tables.say(_NO_GAIN)
        sort = "time"
    table = _applys(profile, n, sort)
    _show_table("Applys", table, len(profile.applys), n)
    titles = table.titles(tables.width())
    for line in _legend(titles, any(cell.startswith("~") for cell in _cells(table, "of limit"))):
        tables.say(f"  {line}")
    if any("~" in cells[0] for cells, _ in table.rows):
        tables.say(f"  ~: {details.ESTIMATED}")
    if any("*" in cells[0] for cells, _ in table.rows):
        tables.say(f"  *: {details.SLOW_RUNS}")


#: what is said when rows cannot be sorted by gain
_NO_GAIN = (
    "The profile has no limits of the hardware, so rows are sorted by time, not by gain: run the "
    "program without --no-limits, or give `report` the option --limits."
)


def _show_lines_and_scopes(profile: Profile, n: int) -> None:
    for title, rows in (
        ("Lines of the program", aggregate.by_line(profile)),
        ("Scopes", aggregate.by_scope(profile)),
    ):
        if any(row.key for row in rows):
            _show_table(title, _sums(profile, rows, n), len(rows), n)
    if any(len(a.origins) > 1 for a in profile.applys):
        tables.say(f"  {details.SPLIT}")


def _show_python(profile: Profile, n: int) -> None:
    """Print the Ops that ran in Python, and why."""
    rows = details.slow_in_python(profile)
    if not rows:
        return
    table = tables.Table([tables.Column("time ms"), tables.Column("share"),
                          tables.name("why not in C", 1), tables.text("Op")])  # fmt: skip
    for row, why in rows[:n]:
        share = f"{100 * row.ns / profile.local_ns:.1f}%"
        table.add([f"{row.ns * 1e-6:.3f}", share, why, row.label])
    _show_table("In Python", table, len(rows), n)


def _show_sampled(profile: Profile, n: int) -> None:
    """Print where the program was, as a tree of lines."""
    found = details.sampled_rows(profile)
    if not found:
        return
    table = tables.Table([tables.Column("seconds"), tables.Column("share"),
                          tables.Column("in functions", 1), tables.text("line")])  # fmt: skip
    _, rows = found
    for seconds, share, called, name in rows[:n]:
        cells = [f"{seconds:.3f}", f"{share:.1f}%", called, name]
        table.add(cells, style=tables.share_style(share / 100))
    _show_table(details.sampled_title(profile), table, len(rows), n)


def _show_peak(profile: Profile) -> None:
    """Print the Apply at which most memory was in use, and a table of the arrays then."""
    found = details.at_peak(profile)
    if found is None:
        return
    title, rows = found
    click.echo()
    tables.say(title)
    table = tables.Table(
        [tables.Column("bytes"), tables.Column("id"), tables.name("line"), tables.text("made by")]
    )
    for size, apply, what in rows:
        if apply is None:
            table.add([str(size), "", "", what])
        else:
            where = tables.place(wording.line_of(apply))
            table.add([str(size), str(apply.position), where, apply.title])
    tables.show(table)


def counts(profile: Profile) -> str:
    """Return the number of functions and of calls, as text."""
    names = ("calls", "failed")
    calls, failed = (sum(getattr(f, name) for f in profile.functions) for name in names)
    functions = wording.counted(len(profile.functions), "function")
    text = f"{functions}, {wording.counted(calls, 'call')}"
    return f"{text} ({failed} failed)" if failed else text


def _headline(profile: Profile) -> Iterator[str]:
    call_ns = sum(f.call_ns for f in profile.functions)
    title = f"{profile.message}: " if profile.message else ""
    yield printable(
        f"{title}{counts(profile)}, {call_ns * 1e-9:.6f} s in calls, "
        f"{profile.local_ns * 1e-9:.6f} s in Applys"
    )
    about = profile.environment
    if about.get("program"):
        flags = f", {about['flags']}" if about.get("flags") else ""
        yield printable(
            f"{about['program']}, {about.get('date', '')}, opwise {about.get('opwise', '')}{flags}"
        )
    yield from (line.strip() for line in details.about_calls(profile))


def _show_table(title: str, table: tables.Table, count: int, n: int) -> None:
    more = f" (the first {n} of {count})" if count > n else ""
    click.echo(f"\n{title}{more}")
    tables.show(table)


#: names of functions with so many letters are shown at every width
_SHORT = 12


def _columns(with_limits: bool, longest: int, sort: str) -> list[tables.Column]:
    """Return the columns of the table of Applys.

    longest: the number of letters in the longest name of several functions; 0 for one function.
    """
    gain = 0 if sort == "gain" else 6
    return [
        tables.Column("time ms"),
        tables.Column("share", 1),
        tables.Column("runs", 7),
        tables.Column("µs a run", 4),
        tables.Column("median", 1 if sort == "median" else 8),
        tables.Column("95 %", 9),
        *(
            [
                tables.Column("GB/s", 10),
                tables.name("from", 10),
                tables.Column("GFLOP/s", 10),
                tables.Column("of limit", 2),
                tables.name("bound by", 5),
                tables.Column("gain ms", gain),
            ]
            if with_limits
            else []
        ),
        tables.name("in", 3),
        # an id alone says little if several functions count from 0
        *([tables.name("function", int(longest > _SHORT))] if longest else []),
        tables.Column("id"),
        tables.name("line"),
        tables.text("Apply"),
    ]


def _applys(profile: Profile, n: int, sort: str) -> tables.Table:
    """Return the table of n Applys; below them the sum of the others, and of first runs."""
    limits = _limits(profile)
    rows = _sorted(profile, limits, sort)
    several = len(profile.functions) > 1
    longest = max(len(_name(f)) for f in profile.functions) if several else 0
    table = tables.Table(_columns(bool(limits), longest, sort))
    for f, a in rows[:n]:
        share = a.total / profile.local_ns
        table.add(
            [
                _marked(a, profile),
                f"{100 * share:.1f}%",
                str(a.count),
                *_per_run(a),
                *(_against(limits.get(_key(f, a))) if limits else ()),
                a.device or ("C" if a.c else "Py"),
                *([_name(f)] if several else []),
                str(a.position),
                tables.place(wording.line_of(a)),
                a.title,
            ],
            style=tables.share_style(share),
        )
    if rest := rows[n:]:
        ns = sum(a.total for _, a in rest)
        _add_sum(table, ns, f"{len(rest)} more", 100 * ns / profile.local_ns)
    once = sum(f.once_ns for f in profile.functions)
    if once:
        _add_sum(table, once, details.ONCE)
    return table


def _name(function: FunctionProfile) -> str:
    """Return the name of a function, which is a place if the program gave it none."""
    return tables.place(wording.short_place(function.name))


def _marked(apply: ApplyProfile, profile: Profile) -> str:
    """Return the milliseconds of an Apply, marked if they are an estimate or distorted."""
    is_slow = details.has_slow_runs(apply, profile.local_ns)
    return f"{'~' * apply.estimated}{'*' * is_slow}{apply.total * 1e-6:.3f}"


def _limits(profile: Profile) -> dict[tuple[str, int, str], Any]:
    """Return {key of an Apply: its row of the roofline}; empty if no limits are known."""
    if profile.machine is None and not profile.devices:
        return {}
    rows = roofline.rows(profile, profile.machine)
    return {(row.function, row.position, row.text): row for row in rows}


def _key(function: FunctionProfile, apply: ApplyProfile) -> tuple[str, int, str]:
    return function.name, apply.position, apply.title


def _sorted(
    profile: Profile, limits: dict[tuple[str, int, str], Any], sort: str
) -> list[tuple[FunctionProfile, ApplyProfile]]:
    """Return all (function, Apply), those first that took longest or could gain most."""
    rows = [(f, a) for f in profile.functions for a in f.applys]
    if sort == "time":
        return sorted(rows, key=lambda row: (-row[1].total, row[1].position))
    if sort == "median":
        return sorted(rows, key=lambda row: (-details.typical(row[1]), row[1].position))

    def gain(f: FunctionProfile, a: ApplyProfile) -> float:
        limit = limits.get(_key(f, a))
        return (limit.gain or 0.0) if limit is not None else 0.0

    return sorted(rows, key=lambda row: (-gain(*row), -row[1].total))


def _per_run(apply: ApplyProfile) -> list[str]:
    """Return the mean, the median and the 95th percentile of a run in microseconds, as texts."""
    if not apply.count:
        return [""] * 3
    mean = f"{'~' * apply.estimated}{apply.total / apply.count * 1e-3:.3f}"
    if not details.has_median(apply):
        return [mean, "", ""]
    return [mean, *(f"{apply.quantile(share) * 1e-3:.3f}" for share in (0.5, 0.95))]


def _add_sum(table: tables.Table, ns: int, what: str, share: float | None = None) -> None:
    """Add a row for a sum. ns: nanoseconds. share: percent."""
    cells = [""] * len(table.columns)
    cells[0] = f"{ns * 1e-6:.3f}"
    cells[1] = f"{share:.1f}%" if share is not None else ""
    cells[-1] = what
    table.add(cells, style="dim")


def _cells(table: tables.Table, title: str) -> list[str]:
    """Return the cells of a column, [] without it."""
    return [
        cells[k]
        for k, column in enumerate(table.columns)
        if column.title == title
        for cells, _ in table.rows
    ]


def _legend(titles: list[str], has_rough: bool) -> Iterator[str]:
    """Yield lines about columns. titles: those shown. has_rough: whether limits are rough."""
    short = [meaning for title, meaning in _SHORT_LEGEND.items() if title in titles]
    if short:
        yield "; ".join(short)
    for title, meaning in _LEGEND.items():
        if title in titles:
            yield f"{meaning}; {_ROUGH}" if title == "of limit" and has_rough else meaning


_ROUGH = "~: by rough costs of functions such as exp"
#: the meaning of columns, by their title: those that share a line
_SHORT_LEGEND = {
    "share": "share: part of the time in all Applys",
    "in": "in: where it ran: C, Py (Python) or a device",
}
#: those with a line of their own
_LEGEND = {
    "GB/s": "GB/s: bytes that must be read and written, per second; from: the fastest memory that "
    "holds them (L1, L2, L3: caches; RAM: main memory)",
    "of limit": "of limit: the least time on this hardware, as a share of the time taken",
    "bound by": "bound by: what sets that limit",
    "gain ms": "gain: the time taken minus the least time on this hardware",
}


def _against(row: Any) -> tuple[str, ...]:
    """Return the cells that compare an Apply with the hardware's limit; empty if unknown."""
    if row is None:
        return ("",) * 6
    return (
        f"{row.bandwidth:.1f}" if row.bandwidth else "",
        row.level if row.bandwidth else "",
        f"{row.rate:.1f}" if row.rate else "",
        f"{'~' * row.approximate}{100 * row.share:.0f}%" if row.share is not None else "",
        row.bound if row.share is not None else "",
        f"{row.gain * 1e3:.3f}" if row.gain is not None else "",
    )


def _sums(profile: Profile, rows: list[Any], n: int) -> tables.Table:
    """Return the table of lines or scopes, with up to n rows."""
    is_line = any(isinstance(row.key, tuple) for row in rows)
    table = tables.Table(
        [
            tables.Column("time ms"),
            tables.Column("share"),
            tables.Column("in gradients", 1),
            *([tables.name("line"), tables.text("source")] if is_line else [tables.text("scope")]),
        ]
    )
    rows = sorted(rows, key=lambda r: (-r.ns, r.label))
    for row in rows[:n]:
        share = row.ns / profile.local_ns
        text = profile.sources.get(row.label, "") if isinstance(row.key, tuple) else ""
        place = wording.place_of(row)
        table.add(
            [
                f"{row.ns * 1e-6:.3f}",
                f"{100 * share:.1f}%",
                f"{100 * row.gradient / row.ns:.0f}%" if row.gradient else "",
                *([tables.place(place), text] if is_line else [place]),
            ],
            style=tables.share_style(share),
        )
    if rows[n:]:
        ns = sum(row.ns for row in rows[n:])
        _add_sum(table, ns, f"{len(rows) - n} more", 100 * ns / profile.local_ns)
    return table
