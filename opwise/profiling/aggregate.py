"""Sums over a profile: by Apply, by Op, by class of Op, by line of the user's program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Row:
    """The sum of some Applys.

    ns: nanoseconds; calls: runs; applys: how many; c: whether all run in C, python: all in Python.
    """

    key: object
    label: str
    ns: int = 0
    calls: int = 0
    applys: int = 0
    c: bool = True
    python: bool = True
    position: int = -1

    def add(self, apply):
        """Add an Apply."""
        self.ns += apply.total
        self.calls += apply.count
        self.applys += 1
        self.c = self.c and apply.c
        self.python = self.python and not apply.c


def _group(applys, key, label):
    rows = {}
    for apply in applys:
        k = key(apply)
        row = rows.get(k)
        if row is None:
            row = rows[k] = Row(k, label(apply), position=apply.position)
        row.add(apply)
    return list(rows.values())


def by_apply(profile):
    """Return a row for each (position, Op); Applys of several functions may share one."""
    return _group(profile.applys, lambda a: (a.position, a.op_key), lambda a: a.op)


def by_op(profile):
    """Return a row for each Op."""
    return _group(profile.applys, lambda a: a.op_key, lambda a: a.op)


def by_class(profile):
    """Return a row for each class of Op."""
    return _group(profile.applys, lambda a: a.op_class, lambda a: a.op_class)


def by_line(profile):
    """Return a row for each user line; an Apply from several lines counts for the first."""
    return _group(
        profile.applys,
        lambda a: a.lines[0] if a.lines else None,
        lambda a: f"{a.lines[0][0]}:{a.lines[0][1]}" if a.lines else "(unknown line)",
    )
