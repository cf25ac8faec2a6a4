"""A profile in tables: what a terminal shows of it at a glance."""

from __future__ import annotations

import click

from opwise.command import tables
from opwise.profiling import aggregate, roofline
from opwise.profiling.reports import details, device, wording

#: from which share of the time on a row is marked, and marked more
_MUCH, _MOST = 0.1, 0.25
#: how the rows of Applys can be sorted: by the time they took, or by what there is to gain
SORTS = ("time", "gain")


def show(profile, n, sort="time"):
    """Print the tables of a Profile, with up to n rows each."""
    for line in _headline(profile):
        tables.say(line)
    if profile.local_ns:
        applys = _applys(profile, n, sort)
        _show_table("Applys", applys, len(profile.applys), n)
        for title, meaning in _LEGEND.items():
            if title in applys.titles(tables.width()):
                tables.say(f"  {meaning}")
        for title, rows in (
            ("Lines of the program", aggregate.by_line(profile)),
            ("Scopes", aggregate.by_scope(profile)),
        ):
            if any(row.key for row in rows):
                _show_table(title, _sums(profile, rows, n), len(rows), n)
        if any(len(a.origins) > 1 for a in profile.applys):
            tables.say(f"  {details.SPLIT}")
    for section in (details.program(profile), device.section(profile, n)):
        for line in ("", *section) if section else ():
            tables.say(line)
    if slow := details.slow_in_python(profile):
        table = tables.Table([tables.Column("time ms"), tables.Column("share"),
                              tables.name("why not in C", 1), tables.text("Op")])  # fmt: skip
        for row, why in slow[:n]:
            share = f"{100 * row.ns / profile.local_ns:.1f}%"
            table.add([f"{row.ns * 1e-6:.3f}", share, why, row.label])
        _show_table("In Python", table, len(slow), n)
    _show_peak(profile)


def _show_peak(profile):
    """Print the Apply at which most memory lived, and a table of what lived there."""
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
            table.add([str(size), str(apply.position), where, apply.text])
    tables.show(table)


def counts(profile):
    """Return how many functions there are, and calls."""
    names = ("calls", "failed")
    calls, failed = (sum(getattr(f, name) for f in profile.functions) for name in names)
    functions = wording.counted(len(profile.functions), "function")
    text = f"{functions}, {wording.counted(calls, 'call')}"
    return f"{text} ({failed} failed)" if failed else text


def _headline(profile):
    call_ns = sum(f.call_ns for f in profile.functions)
    title = f"{profile.message}: " if profile.message else ""
    yield tables.printable(
        f"{title}{counts(profile)}, {call_ns * 1e-9:.6f} s in them, "
        f"{profile.local_ns * 1e-9:.6f} s in Applys"
    )
    about = profile.environment
    if about.get("program"):
        flags = f", {about['flags']}" if about.get("flags") else ""
        yield tables.printable(
            f"{about['program']}, {about.get('date', '')}, opwise {about.get('opwise', '')}{flags}"
        )
    yield from (line.strip() for line in details.about_calls(profile))


def _show_table(title, table, count, n):
    more = f" (the first {n} of {count})" if count > n else ""
    click.echo(f"\n{title}{more}")
    tables.show(table)


def _columns(with_limits, several, sort):
    """Return the columns of the table of Applys."""
    gain = 0 if sort == "gain" else 5
    return [
        tables.Column("time ms"),
        tables.Column("share", 1),
        tables.Column("runs", 6),
        tables.Column("us a run", 3),
        tables.Column("median", 7),
        tables.Column("95 %", 8),
        *(
            [
                tables.Column("GB/s", 9),
                tables.name("from", 9),
                tables.Column("GFLOP/s", 9),
                tables.name("of limit", 4),
                tables.Column("gain ms", gain),
            ]
            if with_limits
            else []
        ),
        tables.name("in", 1),
        *([tables.name("function", 2)] if several else []),
        tables.Column("id"),
        tables.name("line"),
        tables.text("Apply"),
    ]


def _applys(profile, n, sort):
    """Return the table of Applys; below them what the others took, and what first runs did."""
    rows = [(f, a) for f in profile.functions for a in f.applys]
    limits = {}
    if profile.machine is not None or profile.devices:
        limits = {(r.function, r.position, r.text): r for r in
                  roofline.rows(profile, profile.machine)}  # fmt: skip

    def limit(f, a):
        return limits.get((f.name, a.position, a.text))

    def gain(f, a):
        known = limit(f, a)
        return (known.gain or 0.0) if known is not None else 0.0

    if sort == "gain":
        rows.sort(key=lambda row: (-gain(*row), -row[1].total))
    else:
        rows.sort(key=lambda row: (-row[1].total, row[1].position))
    rest, rows = rows[n:], rows[:n]
    several = len(profile.functions) > 1
    table = tables.Table(_columns(bool(limits), several, sort))
    for f, a in rows:
        share = a.total / profile.local_ns
        table.add(
            [
                f"{a.total * 1e-6:.3f}",
                f"{100 * share:.1f}%",
                str(a.count),
                f"{a.total / a.count * 1e-3:.3f}" if a.count else "",
                f"{a.quantile(0.5) * 1e-3:.3f}" if a.count else "",
                f"{a.quantile(0.95) * 1e-3:.3f}" if a.count else "",
                *(_against(limit(f, a)) if limits else ()),
                a.device or ("C" if a.c else "Py"),
                *([f.name] if several else []),
                str(a.position),
                tables.place(wording.line_of(a)),
                a.text,
            ],
            style=_style(share),
        )
    if rest:
        ns = sum(a.total for _, a in rest)
        _add_sum(table, ns, f"{len(rest)} more", 100 * ns / profile.local_ns)
    once = sum(f.once_ns for f in profile.functions)
    if once:
        _add_sum(table, once, details.ONCE)
    return table


def _add_sum(table, ns, what, share=None):
    """Add a row that is about no single Apply."""
    cells = [""] * len(table.columns)
    cells[0] = f"{ns * 1e-6:.3f}"
    cells[1] = f"{share:.1f}%" if share is not None else ""
    cells[-1] = what
    table.add(cells, style="dim")


#: what columns mean, by their title
_LEGEND = {
    "share": "share: of the time in Applys; in: C, Py (Python) or the device that it ran on",
    "GB/s": "GB/s: bytes that must be read and written, by the time; from: the nearest memory that "
    "holds them (L1, L2, L3: caches; RAM: main memory)",
    "of limit": "of limit: the least time that this hardware needs, as a share of the time taken, "
    "and what bounds it",
    "gain ms": "gain: the time beyond the least that this hardware needs",
}


def _against(row):
    """Return the columns of an Apply against the machine's limit; empty where it is not known."""
    if row is None:
        return "", "", "", "", ""
    return (
        f"{row.bandwidth:.1f}" if row.bandwidth else "",
        row.level if row.bandwidth else "",
        f"{row.rate:.1f}" if row.rate else "",
        f"{100 * row.share:.0f}% {row.bound}" if row.share is not None else "",
        f"{row.gain * 1e3:.3f}" if row.gain is not None else "",
    )


def _sums(profile, rows, n):
    """Return the table of lines or scopes."""
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
            style=_style(share),
        )
    if rows[n:]:
        ns = sum(row.ns for row in rows[n:])
        _add_sum(table, ns, f"{len(rows) - n} more", 100 * ns / profile.local_ns)
    return table


def _style(share):
    return "red" if share >= _MOST else "yellow" if share >= _MUCH else None
