"""Linkers made of linkers: a callback around every thunk, and two implementations side by side."""

from __future__ import annotations

import numpy as np

from opwise.linkers.base import Linker, OpWiseCLinker, PerformLinker


class WrapLinker(Linker):
    """Runs ``wrapper(i, node, *thunks)`` for every Apply, with a thunk of each of ``linkers``.

    The wrapper must call the thunks itself. Each linker has storages of its own; inputs are copied
    from the first's, whose outputs are returned.
    """

    def __init__(self, linkers, wrapper):
        for linker in linkers:
            if not hasattr(linker, "make_all") or isinstance(linker, WrapLinker):
                raise AttributeError(
                    f"{linker!r} cannot be wrapped: it gives no thunk for each Apply (no make_all)"
                )
        super().__init__()
        self.linkers = list(linkers)
        self.wrapper = wrapper
        self.makers = tuple({m: None for x in linkers for m in getattr(x, "makers", ())})

    def clone(self, allow_gc=None):
        """Return a copy, of the wrapped linkers too."""
        new = super().clone(allow_gc)
        new.linkers = [linker.clone(allow_gc) for linker in self.linkers]
        return new

    def make_all(self, input_storage=None, output_storage=None, storage_map=None):
        # one program and plain machines: the wrapper must get a thunk for every Apply
        made = []
        for i, linker in enumerate(self.linkers):
            inner = linker.clone()
            inner.machine = "plain"
            inner.generate_kernels = self.generate_kernels
            inner.fgraph = None
            bound = inner.accept(self.fgraph)
            made.append(
                bound.make_all(input_storage, output_storage, storage_map)
                if i == 0
                else bound.make_all()
            )
            if i == 0:
                self.cimpl = getattr(bound, "cimpl", [])
                self.report = getattr(bound, "report", None)
                self.program = getattr(bound, "program", None)
        machines = [m[0] for m in made]
        orders = [m[4] for m in made]
        if any(order != orders[0] for order in orders):
            raise Exception(
                "All linkers to WrapLinker should execute operations in the same order."
            )
        return (_together(machines, self.wrapper), *made[0][1:])


def _together(machines, wrapper):
    """Return the first of several plain machines, which runs the thunks of all in step.

    Whatever ends its call ends it for the others too.
    """
    first, others = machines[0], machines[1:]
    groups = list(zip(*(machine.thunks for machine in machines), strict=True))

    def copy_inputs():
        for machine in others:
            for mine, theirs in zip(machine.program.inputs, first.program.inputs, strict=True):
                value = first.storages[theirs][0]
                copied = np.array(value) if isinstance(value, np.ndarray) else value
                machine.storages[mine][0] = copied

    first.before = copy_inputs
    first.wrapper = lambda k, node, _: wrapper(k, node, *groups[k])
    first.thunk_groups = groups
    first.temporary = [
        storage
        for machine in others
        for cell, storage in enumerate(machine.storages)
        if cell not in machine.program.constants
    ]
    return first


def WrapLinkerMany(linkers, wrappers):
    """Return a WrapLinker that calls each of ``wrappers`` in order."""

    def wrapper(*args):
        for f in wrappers:
            f(*args)

    return WrapLinker(linkers, wrapper)


def check_equal(x, y):
    """Raise unless the values of two storages agree: dtype, shape, and 1e-10 at most apart."""
    a, b = x[0], y[0]
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        if same and a.dtype.kind in "fc":
            with np.errstate(invalid="ignore"):
                near = (a == b) | (abs(a - b) <= 1e-10) | (np.isnan(a) & np.isnan(b))
            same = bool(near.all())
        elif same:
            same = bool(np.array_equal(a, b))
    else:
        same = a == b
    if not same:
        raise Exception("Output mismatch.", {"performlinker": a, "clinker": b})


class DualLinker(WrapLinker):
    """Runs numpy and C side by side and compares after every Apply; returns numpy's results."""

    def __init__(self, checker=check_equal, schedule=None):
        def run_both(i, node, python, c):
            python()
            c()
            for var, a, b in zip(node.outputs, python.outputs, c.outputs, strict=True):
                own = var._tag and getattr(var.tag, "values_eq_approx", None)
                if own is None or not own(a[0], b[0]):
                    checker(a, b)

        super().__init__([PerformLinker(schedule=schedule), OpWiseCLinker(schedule=schedule)],
                         run_both)  # fmt: skip
        self.checker = checker
        self.schedule = schedule

    def __repr__(self):
        return "DualLinker()"


__all__ = ["DualLinker", "WrapLinker", "WrapLinkerMany", "check_equal"]
