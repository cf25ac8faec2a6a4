"""Sums over a profile: by Apply, Op (and shapes), class of Op; by line and scope of the program."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from opwise.profiling.profile import OriginProfile


@dataclass
class Row:
    """The sum of some Applys.

    ns: nanoseconds, gradient: of these in gradients; calls: runs of all, runs: of the one with
    most; applys: how many; c: whether all run in C, python: all in Python.
    """

    key: object
    label: str
    ns: int = 0
    calls: int = 0
    applys: int = 0
    c: bool = True
    python: bool = True
    position: int = -1
    gradient: int = 0
    runs: int = 0

    def add(self, apply, part=1, is_gradient=False, is_new=True):
        """Add an Apply, or a part of its time. is_new: it has not been added before."""
        self.ns += apply.total * part
        self.gradient += apply.total * part * is_gradient
        self.runs = max(self.runs, apply.count)
        self.calls += apply.count * is_new
        self.applys += is_new
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


def by_shapes(profile):
    """Return a row for each Op with inputs of some dtypes and shapes: those of the last call.

    A profile does not say whether an Apply had inputs of other shapes before.
    """
    return _group(profile.applys, shapes_key, lambda a: f"{a.op} {shapes_of(a)}")


def shapes_key(apply):
    arrays = tuple(a and (a.dtype, a.shape) for a in apply.input_arrays)
    return apply.op_key, arrays, bool(apply.input_arrays)


def shapes_of(apply):
    """Return the dtypes and shapes that the inputs of an Apply had in its last call, as text."""
    if not apply.input_arrays:
        return "(shapes not known)" if apply.inputs else "(no inputs)"
    return " ".join(
        f"{a.dtype}({', '.join(map(str, a.shape))})" if a is not None else "(no array)"
        for a in apply.input_arrays
    )


def by_line(profile):
    """Return a row for each user line; an Apply's time is divided by cost, see ``parts_of``.

    A gradient counts for the line of what it is the gradient of, and its part is ``gradient``.
    """
    return _shared(profile.applys, line_of, lambda key: "%s:%d" % key if key else "(unknown line)")


#: the label of what is in no scope
NO_SCOPE = "(no scope)"


def by_scope(profile):
    """Return a row for each scope; an Apply's time is divided by cost, see ``parts_of``."""
    return _shared(profile.applys, lambda o: o.scope, lambda key: key or NO_SCOPE)


def line_of(origin):
    """Return the (file, line) that an origin counts for, or None."""
    return origin.gradient_of or ((origin.file, origin.line) if origin.file else None)


def parts_of(apply):
    """Return pairs (a user's Apply, its share of the time of one that computes it); one at least.

    Shares are in proportion to the cost of an element. Beside a product what else an Apply does
    (scale, add) costs next to nothing: it counts for the products alone.
    """
    products = ()
    if _PRODUCTS.search(apply.op_class):
        products = tuple(o for o in apply.origins if _PRODUCT.match(o.op))
    origins = products or apply.origins or (_UNKNOWN,)
    # the Applys of views cost nothing: they share evenly what nothing else computes
    whole = math.fsum(origin.cost for origin in origins)
    return [(o, o.cost / whole if whole else 1 / len(origins)) for o in origins]


_UNKNOWN = OriginProfile(key="", op="")
#: classes of Ops, and texts of the user's Ops, that are products of matrices
_PRODUCTS = re.compile(r"\.tensor\.(blas|dot)\.")
_PRODUCT = re.compile(r"(?i)(batched_?)?dot|gem[mv]|ger\b")


def _shared(applys, key, label):
    """Return a row for each key of the origins of Applys, which take parts of its time."""
    rows = {}
    for apply in applys:
        met = set()
        for origin, part in parts_of(apply):
            k = key(origin)
            row = rows.get(k)
            if row is None:
                row = rows[k] = Row(k, label(k))
            row.add(apply, part, bool(origin.gradient_of), k not in met)
            met.add(k)
    return list(rows.values())
