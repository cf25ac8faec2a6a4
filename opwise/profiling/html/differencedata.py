"""The data of the page of a difference: the figures of both sides, and tables of rows."""

from __future__ import annotations

from collections.abc import Sequence

from opwise.profiling import compare, devices, noise
from opwise.profiling.aggregate import NO_SCOPE, SummaryRow
from opwise.profiling.compare import Difference
from opwise.profiling.devices import DeviceDifference
from opwise.profiling.environments import Triple
from opwise.profiling.html.profiledata import Data, Texts, finite
from opwise.profiling.jsonreports import ONLY
from opwise.profiling.model import ProfileData
from opwise.profiling.noise import Repeated
from opwise.profiling.reports import speedup

#: {what a row is: rows}
Tables = dict[str, list[Data]]

#: what a row may have as ``relation``: how the two sides belong together
RELATIONS = ("", "only before", "only after", "fused", "split", "regrouped", "similar")
#: what a row may have as ``verdict`` about the difference
VERDICTS = ("", "slower", "faster", "noise")

_TIMES = ("before_ns", "after_ns", "difference_ns")


def tables(before: Sequence[ProfileData], after: Sequence[ProfileData]) -> Tables:
    """Return the rows of the difference of some runs to others, as ``of_difference`` takes them.

    before, after: the profiles of the runs. With one of each, times are those of all calls; with
    several, they are medians of a call, and verdicts tell noise apart.
    """
    runs = noise.Runs(before, after)
    found: Tables = {}
    for name, comparison in compare.GROUPINGS.items():
        if name == "call" and not any(p.frames for p in (*before, *after)):
            continue  # the calls that are known are the lines
        rows = [_row(r, runs.several) for r in runs.rows(comparison)[1:]]
        if name != "scope" or any(row["label_before"] != NO_SCOPE for row in rows):
            found[_TITLES[name]] = rows
    return found


_TITLES = {
    "apply": "Apply", "op": "Op", "class": "Class", "line": "Line", "call": "Call",
    "scope": "Scope",
    "shapes": "Op and shapes",
}  # fmt: skip


def _row(repeated: Repeated, several: bool) -> Data:
    row = repeated.row
    mine, theirs = repeated.before, repeated.after
    if not several:
        mine, theirs = (side.ns if side else None for side in (row.mine, row.theirs))
    return {
        "before_ns": mine,
        "after_ns": theirs,
        "difference_ns": (theirs or 0) - (mine or 0),
        "ratio": repeated.ratio,
        "p": repeated.p,
        "relation": row.relation or ONLY[row.only],
        "verdict": repeated.verdict,
        "label_before": _label(row.mine, row.algorithms and row.algorithms[0]),
        "label_after": _label(row.theirs, row.algorithms and row.algorithms[1]),
        "lines": [f"{file}:{line}" for file, line in row.lines],
    }


def _label(side: SummaryRow | None, algorithm: str | None) -> str | None:
    """Return the label of a side, with its algorithm if the other side took another."""
    if side is None or not algorithm:
        return side.label if side else None
    return f"{side.label} [{algorithm}]"


def of_difference(
    before: ProfileData,
    after: ProfileData,
    tables: Tables,
    about: Sequence[Triple] = (),
    title: str = "",
) -> Data:
    """Return the data of the page of two profiles, as plain data for JSON.

    A row of tables is a dict with before_ns, after_ns (None if that side has nothing),
    difference_ns, ratio and p (or None), relation (of RELATIONS), verdict (of VERDICTS),
    label_before, label_after, lines (texts ``file:line``). about: what was compared. Raises
    ValueError for another relation or verdict.
    """
    texts = Texts()
    sources = {**after.sources, **before.sources}
    data: Data = {
        "kind": "difference",
        "relations": RELATIONS,
        "verdicts": VERDICTS,
        "title": texts(title),
        "compared": [list(map(texts, row)) for row in about],
        "before": _side(before, texts),
        "after": _side(after, texts),
        "tables": [[texts(name), _columns(rows, texts)] for name, rows in tables.items()],
    }
    places = {place for rows in tables.values() for row in rows for place in row["lines"]}
    data["moved"] = _moved(before, after, texts, places)
    data["sources"] = [[texts(p), texts(sources[p])] for p in sorted(places) if p in sources]
    data["texts"] = texts.cut()
    return data


def _moved(before: ProfileData, after: ProfileData, texts: Texts, places: set[str]) -> Data | None:
    """Return the sentences and tables about a move between CPU and device, None without one.

    Adds the lines that they name to ``places``.
    """
    sentences = speedup.sentences(before, after)
    if not sentences:
        return None
    return {
        "sentences": [texts(sentence.strip()) for sentence in sentences],
        "tables": [
            [texts(_TITLES[by]), _moved_columns(by, devices.rows(by, before, after), texts, places)]
            for by in speedup.GROUPINGS
        ],
    }


def _moved_columns(
    by: str, rows: Sequence[DeviceDifference], texts: Texts, places: set[str]
) -> Data:
    rows = [r for r in rows if r.cpu or r.with_device]
    lines = [_line(by, r.difference) for r in rows]
    places.update(lines)
    times = {"cpu": "cpu", "device": "device", "transfers": "transfers", "host": "left"}
    return {
        **{name: [round(getattr(r, of)) for r in rows] for name, of in times.items()},
        "speedup": [finite(r.speedup) for r in rows],
        "label": [texts(speedup.label(by, r)) for r in rows],
        "line": list(map(texts, lines)),
        "why": [texts("; ".join(r.why)) for r in rows],
    }


def _line(by: str, row: Difference) -> str:
    """Return the ``file:line`` that a row is about, "" if it is about none."""
    if by == "line":
        return row.label if row.key is not None else ""
    return next((f"{file}:{line}" for file, line in row.lines), "")


def _side(profile: ProfileData, texts: Texts) -> Data:
    functions = profile.functions
    calls = sum(f.calls for f in functions)
    call_ns = sum(f.call_ns for f in functions)
    return {
        "title": texts(profile.message or ""),
        "functions": len(functions),
        "applys": len(profile.applys),
        "calls": calls,
        "call_ns": call_ns,
        "each_ns": finite(call_ns / calls) if calls else None,
        "thunk_ns": profile.local_ns,
        "python_ns": sum(a.total for a in profile.applys if not a.c),
        "compile_ns": round(sum(f.compile.total for f in functions) * 1e9),
        "cached": [f.compile.cached for f in functions],
        "graphs_cached": [f.compile.graph_cached for f in functions],
        "peak": max((f.memory.peak for f in functions if f.memory), default=None),
    }


def _columns(rows: Sequence[Data], texts: Texts) -> Data:
    for row in rows:
        for name, known in (("relation", RELATIONS), ("verdict", VERDICTS)):
            if row[name] not in known:
                raise ValueError(f"a row has the {name} {row[name]!r}; it must be of {known}")
    return {
        **{name: [_whole(row[name]) for row in rows] for name in _TIMES},
        **{name: [finite(row[name]) for row in rows] for name in ("ratio", "p")},
        "relation": [RELATIONS.index(row["relation"]) for row in rows],
        "verdict": [VERDICTS.index(row["verdict"]) for row in rows],
        "label_before": [texts(row["label_before"] or "") for row in rows],
        "label_after": [texts(row["label_after"] or "") for row in rows],
        "lines": [[texts(place) for place in row["lines"]] for row in rows],
    }


def _whole(ns: float | None) -> int | None:
    return None if ns is None else round(ns)
