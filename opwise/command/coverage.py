"""The table that ``opwise doctor --coverage`` prints: which names of Theano work."""

from __future__ import annotations

import difflib
import importlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from opwise.command import tables

#: stands for all modules of Theano
EVERY = "all"
_NEWEST, _SINCE = "1.0.5", "since 0.6.0"


def covered(module: str) -> list[str]:
    """Return the lines for a module of Theano, or for EVERY one.

    Raises ClickException if Theano has no such module.
    """
    known = importlib.import_module("opwise.names.coverage")
    record = importlib.import_module("opwise.names.record")
    if module == EVERY:
        return list(_every(known, record.NEWEST))
    if module not in record.modules():
        close = difflib.get_close_matches(module, record.modules(), n=2)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        raise click.ClickException(f"Theano has no module {module}.{hint}")
    return list(_one(known.covered(module)))


def _one(found: Any) -> Iterator[str]:
    working, raising, _ = found.count()
    yield f"{found.module}: {working} names work, {raising} raise when they are used"
    for title, names in {
        "work": found.working, **dict(sorted(found.raising.items())), "missing": found.missing,
    }.items():  # fmt: skip
        if names:
            yield f"\n{title} ({len(names)})"
            yield from _filled(sorted(names))


def _filled(names: list[str]) -> Iterator[str]:
    line = " "
    for name in names:
        if len(line) + 1 + len(name) > 100:
            yield line
            line = " "
        line += f" {name}"
    yield line


def _every(known: Any, newest: str) -> Iterator[str]:
    """Yield a line for each module; the modules of a package of tests share one."""
    rows: dict[str, list[Counter[str]]] = {}
    for k, releases in enumerate((newest, None)):
        for module in known.modules(releases):
            found = known.covered(module, releases)
            head, tests, _ = module.partition(".tests")
            counts = rows.setdefault(head + tests, [Counter(), Counter()])[k]
            working, raising, missing = found.count()
            counts.update(names=working + raising + missing, work=working, missing=missing)
            counts.update({f" {what}": len(names) for what, names in found.raising.items()})
    width = max(map(len, rows))
    yield f"{'':{width}}  {_NEWEST:^16}  {_SINCE:^16}"
    yield from _with(f"{'module':{width}}{2 * '     names  work'}", "why the others raise")
    total = [Counter[str](), Counter[str]()]
    for module, pair in sorted(rows.items()):
        for counts, each in zip(total, pair, strict=True):
            counts.update(each)
        yield from _lines(module, pair, width)
    yield from _lines("all modules", total, width)
    yield f"missing: {total[1]['missing']}"


def _lines(title: str, pair: list[Counter[str]], width: int) -> Iterator[str]:
    """Yield the row of a module, or of all."""
    figures = "".join(f"  {counts['names']:8}{counts['work']:6}" for counts in pair)
    why = ", ".join(f"{what.strip()} {n}" for what, n in pair[1].most_common() if what[0] == " ")
    yield from _with(f"{title:{width}}{figures}", why)


def _with(row: str, why: str) -> Iterator[str]:
    """Yield a row and why names raise: behind it, or below it if the line would be too long."""
    if len(row) + 2 + len(why) <= tables.width():
        yield f"{row}  {why}".rstrip()
    else:
        yield row
        yield f"    {why}"
