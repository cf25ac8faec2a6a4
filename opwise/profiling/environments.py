"""Environments: where two sides of a comparison were recorded, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwise.profiling.model import ProfileData
from opwise.profiling.reports.wording import counted

#: (what, before, after) as texts
Triple = tuple[str, str, str]

#: keys of an environment, by the word for each, in the order of printing
_KEYS = {
    "program": "program", "flags": "flags", "opwise": "opwise", "Python": "python",
    "numpy": "numpy", "BLAS": "blas", "threads": "threads", "computer": "node",
    "system": "system",
}  # fmt: skip
#: those that are versions
VERSIONS = ("opwise", "Python", "numpy", "BLAS")
#: what does not explain a difference in time
_INNOCENT = ("files", "runs", "dates", "functions")
#: how many functions are named
_NAMED = 4


def describe_sides(
    before: Sequence[ProfileData],
    after: Sequence[ProfileData],
    names: tuple[str, str] = ("", ""),
) -> list[Triple]:
    """Return what is known of two sides: files, runs, dates, functions, versions, hardware.

    before, after: the profiles of the runs of a side. names: their files or folders. Leaves out
    what is unknown of both.
    """
    first, second = (_about(runs, name) for runs, name in zip((before, after), names, strict=True))
    return [(what, first[what], second[what]) for what in first if first[what] or second[what]]


def differences(before: Sequence[ProfileData], after: Sequence[ProfileData]) -> list[Triple]:
    """Return in what two sides differ, except files, runs, dates and functions."""
    rows = describe_sides(before, after)
    return [row for row in rows if row[0] not in _INNOCENT and row[1] != row[2]]


def _about(runs: Sequence[ProfileData], name: str) -> dict[str, str]:
    environments = [each for run in runs for each in run.environments]
    functions = list(dict.fromkeys(f.name for run in runs for f in run.functions))
    named = ", ".join(functions[:_NAMED])
    more = len(functions) - _NAMED
    about = {
        "files": name,
        "runs": str(len(runs)),
        "dates": _span(environments),
        "functions": f"{named} and {more} more" if more > 0 else named,
    }
    for what, key in _KEYS.items():
        about[what] = _distinct(environment.get(key) for environment in environments)
    about["flags"] = _distinct(environment.get("flags") or "none" for environment in environments)
    about["processor"] = _distinct(
        f"{m.processor}, {counted(m.processors, 'processor')}, {counted(m.threads, 'thread')}, "
        f"{m.vectors}"
        for m in (run.machine for run in runs)
        if m is not None
    )
    about["devices"] = _distinct(
        f"{name}: {limits.processor}" for run in runs for name, limits in run.devices
    )
    return about


def _distinct(values: Iterable[object]) -> str:
    return "; ".join(sorted({str(value) for value in values if value}))


def _span(environments: Iterable[dict[str, object]]) -> str:
    """Return the date of one run, the first and the last of several."""
    dates = sorted(str(each["date"]) for each in environments if each.get("date"))
    return " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
