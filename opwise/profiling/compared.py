"""Compared: what two sides of a comparison are, in words: programs, dates, flags, machines."""

from __future__ import annotations

#: what an environment is read for, by the word for it; in this order
_OF_ENVIRONMENT = {
    "program": "program", "flags": "flags", "opwise": "opwise", "Python": "python",
    "numpy": "numpy", "computer": "node", "system": "system",
}  # fmt: skip
#: what two sides may differ in without a word: it is no reason for another time
_INNOCENT = ("files", "runs", "dates", "functions")
#: so many functions are named
_NAMED = 4


def rows(before, after, names=("", "")):
    """Return triples (what, before, after) of texts about two sides, but for what neither knows.

    before, after: the Profiles of the runs of a side. names: the files, or folders, they are from.
    """
    sides = [_about(runs, name) for runs, name in zip((before, after), names, strict=True)]
    found = [(what, *(side[what] for side in sides)) for what in sides[0]]
    return [row for row in found if any(row[1:])]


def differences(before, after):
    """Return those triples in which the sides differ, but for files, dates and functions."""
    return [row for row in rows(before, after) if row[0] not in _INNOCENT and row[1] != row[2]]


def _about(runs, name):
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
    for what, key in _OF_ENVIRONMENT.items():
        about[what] = _several(environment.get(key) for environment in environments)
    about["flags"] = _several(environment.get("flags") or "none" for environment in environments)
    machines = [run.machine for run in runs if run.machine is not None]
    about["processor"] = _several(
        f"{m.processor}, {m.processors} processors, {m.threads} threads, {m.vectors}"
        for m in machines
    )
    about["devices"] = _several(
        f"{name}: {device.processor}" for run in runs for name, device in run.devices
    )
    return about


def _several(values):
    return "; ".join(sorted({str(value) for value in values if value}))


def _span(environments):
    """Return the date of one run, the first and the last of several."""
    dates = sorted(str(each["date"]) for each in environments if each.get("date"))
    return " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
