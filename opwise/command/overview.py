"""A profile in tables: what a terminal shows of it at a glance."""

from __future__ import annotations

import click

from opwise.command import tables
from opwise.profiling import aggregate, roofline
from opwise.profiling.reports import details, device

#: from which share of the time on a row is marked, and marked more
_MUCH, _MOST = 0.1, 0.25
#: how the rows of Applys can be sorted: by the time they took, or by what there is to gain
SORTS = ("time", "gain")


def show(profile, n, sort="time"):
    """Print the tables of a Profile, with up to n rows each."""
    for line in _headline(profile):
        click.echo(line)
    if profile.local_ns:
        _show_table("Applys", _applys(profile, n, sort), len(profile.applys), n)
        for title, rows in (
            ("Lines of the program", aggregate.by_line(profile)),
            ("Scopes", aggregate.by_scope(profile)),
        ):
            if any(row.key for row in rows):
                _show_table(title, _sums(profile, rows, n), len(rows), n)
    for section in (
        device.section(profile, n), details.in_python(profile, n), details.peak(profile),
    ):  # fmt: skip
        if section:
            click.echo("\n" + "\n".join(map(tables.printable, section)))


def counts(profile):
    """Return how many functions there are, and calls."""
    names = ("calls", "failed")
    calls, failed = (sum(getattr(f, name) for f in profile.functions) for name in names)
    text = f"{_plural(len(profile.functions), 'function')}, {_plural(calls, 'call')}"
    return f"{text} ({failed} failed)" if failed else text


def _plural(n, what):
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


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


def _applys(profile, n, sort):
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
    rows = rows[:n]
    several = len(profile.functions) > 1
    columns = ["time ms", "share", "runs", "us a run", "median", "95 %"]
    if limits:
        columns += ["GB/s", "GFLOP/s", "of limit", "gain ms"]
    table = tables.table([*columns, "in", "id"], "Apply", fold=False)
    for f, a in rows:
        share = a.total / profile.local_ns
        known = limit(f, a)
        table.add_row(
            f"{a.total * 1e-6:.3f}",
            f"{100 * share:.1f}%",
            str(a.count),
            f"{a.total / a.count * 1e-3:.3f}" if a.count else "",
            f"{a.quantile(0.5) * 1e-3:.3f}" if a.count else "",
            f"{a.quantile(0.95) * 1e-3:.3f}" if a.count else "",
            *(_against(known) if limits else ()),
            a.device or ("C" if a.c else "Py"),
            str(a.position),
            tables.cell(_named(f, a, several)),
            style=_style(share),
        )
    return table


def _against(row):
    """Return the columns of an Apply against the machine's limit; empty where it is not known."""
    if row is None:
        return "", "", "", ""
    return (
        f"{row.bandwidth:.1f}" if row.bandwidth else "",
        f"{row.rate:.1f}" if row.rate else "",
        f"{100 * row.share:.0f}% {row.bound}" if row.share is not None else "",
        f"{row.gain * 1e3:.3f}" if row.gain is not None else "",
    )


def _named(function, apply, several):
    where = details.short_line(apply)
    return " ".join(
        part for part in (f"{function.name}:" if several else "", where, apply.text) if part
    )


def _sums(profile, rows, n):
    table = tables.table(("time ms", "share", "in gradients"), "", fold=False)
    for row in sorted(rows, key=lambda r: (-r.ns, r.label))[:n]:
        share = row.ns / profile.local_ns
        text = profile.sources.get(row.label, "") if isinstance(row.key, tuple) else ""
        table.add_row(
            f"{row.ns * 1e-6:.3f}",
            f"{100 * share:.1f}%",
            f"{100 * row.gradient / row.ns:.0f}%" if row.gradient else "",
            tables.cell(f"{details.place(row)}  {text}".rstrip()),
            style=_style(share),
        )
    return table


def _style(share):
    return "red" if share >= _MOST else "yellow" if share >= _MUCH else None
