"""Reports and differences as JSON documents for other programs.

Each document names its format and version; ``schema`` describes it. Within a version, fields are
added, never removed or changed. Seconds are those of all calls (default), shares those of the time
of Applys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opwise.profiling import aggregate, compare, costs
from opwise.profiling.aggregate import GROUPINGS
from opwise.profiling.compare import Difference
from opwise.profiling.costs import CostRow
from opwise.profiling.model import ApplyProfile, ArrayProfile, FunctionProfile, ProfileData
from opwise.profiling.noise import Repeated, Runs

#: a document, or an object in one
Document = dict[str, Any]

REPORT = "opwise report"
DIFFERENCE = "opwise difference"
VERSION = 1


# --- a report -------------------------------------------------------------------------------------


def report(profile: ProfileData) -> Document:
    """Return the document of a profile."""
    applys = [(f, a) for f in profile.functions for a in f.applys]
    applys.sort(key=lambda pair: (-pair[1].total, pair[1].position))
    return {
        "format": REPORT,
        "version": VERSION,
        **_side(profile),
        "message": profile.message or "",
        "functions": [_function(f) for f in profile.functions],
        "applys": [_apply(profile, f, a) for f, a in applys],
        "by": {name: sums(profile, name) for name in GROUPINGS},
    }


def _side(profile: ProfileData) -> Document:
    environments = profile.environments
    return {
        "environments": environments,
        "calls": sum(f.calls for f in profile.functions),
        "failed_calls": sum(f.failed for f in profile.functions),
        "seconds_calls": _seconds(sum(f.call_ns for f in profile.functions)),
        "seconds_applys": _seconds(profile.local_ns),
        "seconds_compiling": finite(sum(f.compile.total for f in profile.functions)),
    }


def _function(f: FunctionProfile) -> Document:
    return {
        "name": f.name,
        "calls": f.calls,
        "failed_calls": f.failed,
        "built_in_calls": f.built_in_calls,
        "seconds_calls": _seconds(f.call_ns),
        "seconds_first_calls": _seconds(f.first_call_ns),
        "seconds_applys": _seconds(f.thunk_ns),
        "seconds_compiling": finite(f.compile.total),
        "applys": len(f.applys),
        "peak_bytes": f.memory.peak if f.memory else None,
    }


def _apply(profile: ProfileData, f: FunctionProfile, a: ApplyProfile) -> Document:
    return {
        "function": f.name,
        "position": a.position,
        "op": a.op,
        "apply": a.text,
        "loop": a.loop,
        "lines": [f"{file}:{line}" for file, line in a.lines],
        "scopes": list(dict.fromkeys(o.scope for o in a.origins if o.scope)),
        "runs_in": a.device or ("C" if a.c else "Python"),
        "why_python": a.why,
        "algorithm": a.algorithm,
        "why_algorithm": a.why_algorithm,
        "calls": a.count,
        "seconds": _seconds(a.total),
        "seconds_inside": _seconds(a.inner),
        "estimated": a.estimated,
        "share": _share(a.total, profile.local_ns),
        "seconds_median": _seconds(a.quantile(0.5)),
        "seconds_p95": _seconds(a.quantile(0.95)),
        "flops": a.flops,
        "inputs": [_array(array) for array in a.input_arrays],
        "outputs": [_array(array) for array in a.output_arrays],
    }


def _array(array: ArrayProfile | None) -> Document | None:
    return None if array is None else {"dtype": array.dtype, "shape": list(array.shape)}


def sums(profile: ProfileData, name: str) -> list[Document]:
    """Return the rows of one of ``aggregate.GROUPINGS``, those that took longest first."""
    rows = sorted(GROUPINGS[name](profile), key=lambda row: (-row.ns, row.label))
    return [
        {
            "label": row.label,
            "source": profile.sources.get(row.label, "") if name == "line" else "",
            "seconds": _seconds(row.ns),
            "share": _share(row.ns, profile.local_ns),
            "share_in_gradients": _share(row.gradient, row.ns),
            "calls": row.calls,
            "applys": row.applys,
        }
        for row in rows
        if row.calls
    ]


# --- a difference ---------------------------------------------------------------------------------


def difference(
    runs: Runs,
    by: str,
    total: Repeated,
    rows: Sequence[Repeated],
    limit: float | None = None,
    floor_ns: float = 0.0,
    failed: Iterable[Repeated] = (),
    of_run: Sequence[CostRow] = (),
    limits: Mapping[str, float] | None = None,
    failed_costs: Iterable[CostRow] = (),
    not_judged: Sequence[str] = (),
) -> Document:
    """Return the document of the difference of some runs to others.

    by: a name of ``compare.GROUPINGS``. total, rows: all Applys together, and each row. A row fails
    if its ratio exceeds ``limit`` and its difference ``floor_ns`` nanoseconds; limit is None if no
    row can fail. failed: those of total and rows that do. of_run: the costs of whole runs, limits
    those of them by name, failed_costs those that exceed theirs. not_judged: sentences about limits
    that too little is known for.
    """
    failing = {id(one) for one in (*failed, *failed_costs)}
    limits = limits or {}
    names = Names(runs, by)
    return {
        "format": DIFFERENCE,
        "version": VERSION,
        "by": by,
        "runs": {"before": runs.count[0], "after": runs.count[1]},
        "before": _side(runs.before),
        "after": _side(runs.after),
        "limit": None if limit is None else {"ratio": limit, "floor_seconds": _seconds(floor_ns)},
        "failed": bool(failing) or (limit is not None and not any(map(matches, rows))),
        "not_judged": list(not_judged),
        "drift": [finite(end) for end in runs.drift],
        "total": _difference(total, names, id(total) in failing),
        "rows": [_difference(row, names, id(row) in failing) for row in rows],
        "costs": [_cost(row, limits.get(row.cost.name), id(row) in failing) for row in of_run],
    }


def _cost(row: CostRow, limit: float | None, failed: bool) -> Document:
    known = row.ratio is not None and row.p is not None
    return {
        "name": row.cost.name,
        "label": row.cost.label,
        "unit": row.cost.unit,
        "exact": row.cost.is_exact,
        "before": finite(row.before),
        "after": finite(row.after),
        "ratio": finite(row.ratio),
        "interval": [finite(end) for end in row.interval()] if known else None,
        "p": finite(row.p),
        "verdict": row.verdict,
        "limit": limit,
        "failed": failed,
    }


def matches(repeated: Repeated) -> bool:
    """Return whether both sides have what a row is about."""
    return bool(repeated.row.mine and repeated.row.theirs)


#: what a document says of a row that only one side has
ONLY = {"self": "only before", "other": "only after", "": ""}


def _difference(repeated: Repeated, names: Names, failed: bool) -> Document:
    row = repeated.row
    known = repeated.ratio is not None and repeated.p is not None
    interval = [finite(end) for end in repeated.interval()] if known else None
    return {
        "label": row.label,
        "functions": names.functions(repeated),
        "lines": names.lines(repeated),
        "relation": row.relation or ONLY[row.only],
        "seconds_before": _seconds(row.mine.ns) if row.mine else None,
        "seconds_after": _seconds(row.theirs.ns) if row.theirs else None,
        "seconds_a_call_before": _seconds(repeated.before),
        "seconds_a_call_after": _seconds(repeated.after),
        "ratio": finite(repeated.ratio),
        "interval": interval,
        "p": finite(repeated.p),
        "verdict": repeated.verdict,
        "of": "median" if repeated.is_typical else "mean",
        "changes": [str(change) for change in costs.changes(row)],
        "failed": failed,
    }


#: how many functions and lines a row names
_MOST = 4


class Names:
    """The functions and lines of the program that rows of a difference are about."""

    def __init__(self, runs: Runs, by: str) -> None:
        self._by = by
        self._profiles = runs.before, runs.after
        self._function = {
            id(a): f.name for p in self._profiles for f in p.functions for a in f.applys
        }
        self._calls = {}
        for p in self._profiles:
            self._calls.update(dict.fromkeys(map(id, p.applys), aggregate.calls_of(p)))

    def functions(self, repeated: Repeated) -> list[str]:
        """Return the names of the functions that a row is in, those with most time first."""
        if repeated.row.key == "all":
            return []
        applys = self._applys(repeated.row)
        return list(dict.fromkeys(self._function[id(a)] for a in applys))[:_MOST]

    def lines(self, repeated: Repeated) -> list[str]:
        """Return the ``file:line`` that a row is about, those with most time first."""
        row = repeated.row
        if row.key == "all":
            return []
        if self._by == "line":
            return [row.label] if row.key is not None else []
        applys = self._applys(row)
        return [f"{f}:{n}" for f, n in dict.fromkeys(p for a in applys for p in a.lines)][:_MOST]

    def _applys(self, row: Difference) -> list[ApplyProfile]:
        """Return the Applys in a row, those that took longest first."""
        found = [a for part in reversed(row.parts) for a in part]
        if not any(row.parts):
            found = [a for p in reversed(self._profiles) for a in p.applys if self._is_in(a, row)]
        return sorted(found, key=lambda a: -a.total)

    def _is_in(self, a: ApplyProfile, row: Difference) -> bool:
        if self._by == "line":
            places = {aggregate.line_of(o) for o in a.origins}
            return any("%s:%d" % p in row.label.split(" | ") for p in places if p)
        if self._by == "call":
            calls = self._calls[id(a)]
            return any(str(calls(o)) in row.label.split(" | ") for o in a.origins)
        if self._by == "scope":
            return row.key in {o.scope for o in a.origins}
        return row.key in (a.op_key, a.op_class, aggregate.shapes_key(a))


# --- numbers --------------------------------------------------------------------------------------


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else finite(ns * 1e-9)


def _share(part: float, whole: float) -> float | None:
    return finite(part / whole) if whole else 0.0


def finite(value: float | None) -> float | None:
    """Return a number, None for infinity and NaN, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


# --- schemas --------------------------------------------------------------------------------------

_TEXT: Document = {"type": "string"}
_COUNT: Document = {"type": "integer", "minimum": 0}
_NUMBER: Document = {"type": ["number", "null"]}
_TEXTS: Document = {"type": "array", "items": _TEXT}


def _object(**properties: Document) -> Document:
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }


def _rows(**properties: Document) -> Document:
    return {"type": "array", "items": _object(**properties)}


_SIDE: Document = {
    "environments": {"type": "array", "items": {"type": "object"}},
    "calls": _COUNT,
    "failed_calls": _COUNT,
    "seconds_calls": _NUMBER,
    "seconds_applys": _NUMBER,
    "seconds_compiling": _NUMBER,
}
_ARRAYS = {
    "type": "array",
    "items": {
        **_object(dtype=_TEXT, shape={"type": "array", "items": _COUNT}),
        "type": ["object", "null"],
    },
}
_SUMS = _rows(
    label=_TEXT, source=_TEXT, seconds=_NUMBER, share=_NUMBER, share_in_gradients=_NUMBER,
    calls=_COUNT, applys=_COUNT,
)  # fmt: skip
_REPORT: Document = {
    **_SIDE,
    "message": _TEXT,
    "functions": _rows(
        name=_TEXT, calls=_COUNT, failed_calls=_COUNT, built_in_calls=_COUNT,
        seconds_calls=_NUMBER, seconds_first_calls=_NUMBER, seconds_applys=_NUMBER,
        seconds_compiling=_NUMBER, applys=_COUNT, peak_bytes={"type": ["integer", "null"]},
    ),
    "applys": _rows(
        function=_TEXT, position=_COUNT, op=_TEXT, apply=_TEXT, loop=_TEXT, lines=_TEXTS,
        scopes=_TEXTS, runs_in=_TEXT, why_python=_TEXT, algorithm=_TEXT, why_algorithm=_TEXT,
        calls=_COUNT, seconds=_NUMBER, seconds_inside=_NUMBER, share=_NUMBER,
        estimated={"type": "boolean"},
        seconds_median=_NUMBER, seconds_p95=_NUMBER, flops={"type": ["integer", "null"]},
        inputs=_ARRAYS, outputs=_ARRAYS,
    ),
    "by": _object(**dict.fromkeys(GROUPINGS, _SUMS)),
}  # fmt: skip
_ENDS: Document = {
    "type": ["array", "null"], "items": _NUMBER, "minItems": 2, "maxItems": 2,
}  # fmt: skip
_ROW: Document = {
    "label": _TEXT,
    "functions": _TEXTS,
    "lines": _TEXTS,
    "relation": {"enum": ["", "only before", "only after", "fused", "split", "regrouped",
                          "similar"]},
    "seconds_before": _NUMBER,
    "seconds_after": _NUMBER,
    "seconds_a_call_before": _NUMBER,
    "seconds_a_call_after": _NUMBER,
    "ratio": _NUMBER,
    "interval": _ENDS,
    "p": _NUMBER,
    "verdict": {"enum": ["", "slower", "faster", "noise"]},
    "of": {"enum": ["mean", "median"]},
    "changes": _TEXTS,
    "failed": {"type": "boolean"},
}  # fmt: skip
_DIFFERENCE: Document = {
    "by": {"enum": list(compare.GROUPINGS)},
    "runs": _object(before=_COUNT, after=_COUNT),
    "before": _object(**_SIDE),
    "after": _object(**_SIDE),
    "limit": {**_object(ratio=_NUMBER, floor_seconds=_NUMBER), "type": ["object", "null"]},
    "failed": {"type": "boolean"},
    "not_judged": _TEXTS,
    "drift": _ENDS,
    "total": _object(**_ROW),
    "rows": _rows(**_ROW),
    "costs": _rows(
        name={"enum": [cost.name for cost in costs.COSTS]}, label=_TEXT,
        unit={"enum": [costs.SECONDS, costs.BYTES, costs.NUMBER]}, exact={"type": "boolean"},
        before=_NUMBER, after=_NUMBER, ratio=_NUMBER, interval=_ENDS, p=_NUMBER,
        verdict={"enum": ["", "slower", "faster", "more", "less", "same", "noise"]},
        limit=_NUMBER, failed={"type": "boolean"},
    ),
}  # fmt: skip


def schema(format_: str) -> Document:
    """Return the JSON schema (draft 7) of the documents of a format: REPORT or DIFFERENCE."""
    properties = {REPORT: _REPORT, DIFFERENCE: _DIFFERENCE}[format_]
    found = _object(format={"const": format_}, version={"const": VERSION}, **properties)
    found["additionalProperties"] = True  # fields may be added within a version
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"{format_}, version {VERSION}",
        **found,
    }
