"""Linkers made of linkers: a callback around every thunk, and two implementations side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.linkers.base import Linker, OpWiseCLinker, PerformLinker, Schedule
from opwise.linkers.linked import Linked
from opwise.linkers.storage import Container, Storage
from opwise.linkers.vm import PlainVM, Thunk


class WrapLinker(Linker):
    """Calls ``wrapper(i, node, *thunks)`` for every Apply, with a thunk of each of ``linkers``.

    The wrapper must call the thunks itself. Each linker has storages of its own: inputs are copied
    from those of the first linker, whose outputs are returned.
    """

    def __init__(self, linkers: Iterable[Linker], wrapper: Callable[..., Any]) -> None:
        for linker in linkers:
            if not isinstance(linker, Linker) or isinstance(linker, WrapLinker):
                raise AttributeError(
                    f"{linker!r} cannot be wrapped: it gives no thunk for each Apply (no make_all)"
                )
        super().__init__()
        self.linkers = list(linkers)
        self.wrapper = wrapper
        self.implementations = tuple(
            dict.fromkeys(each for linker in linkers for each in linker.implementations)
        )

    def clone(
        self,
        allow_gc: bool | None = None,
        vm: str | None = None,
        generate_kernels: bool | None = None,
    ) -> Self:
        """Return a copy, of the wrapped linkers too."""
        new = super().clone(allow_gc, vm, generate_kernels)
        new.linkers = [linker.clone(allow_gc) for linker in self.linkers]
        return new

    def link(
        self,
        input_storage: Sequence[Storage | Container] | None = None,
        output_storage: Sequence[Storage | Container] | None = None,
        storage_map: MutableMapping[Variable, Storage] | None = None,
    ) -> Linked:
        # plain VMs over one program: the wrapper must get a thunk for every Apply
        bound = [
            linker.clone(vm="plain", generate_kernels=self.generate_kernels).accept(self.fgraph)
            for linker in self.linkers
        ]
        first = bound[0].link(input_storage, output_storage, storage_map)
        linked = [first, *(linker.link() for linker in bound[1:])]
        if any(each.order != first.order for each in linked):
            raise Exception(
                "All linkers to WrapLinker should execute operations in the same order."
            )
        vms = [each.vm for each in linked if isinstance(each.vm, PlainVM)]
        return replace(first, vm=_together(vms, self.wrapper))


def _together(vms: Sequence[PlainVM], wrapper: Callable[..., Any]) -> PlainVM:
    """Return the first of several plain VMs, which runs the thunks of all in step.

    Whatever ends its call ends it for the others too.
    """
    first, others = vms[0], vms[1:]
    groups = list(zip(*(vm.thunks for vm in vms), strict=True))

    def copy_inputs() -> None:
        for vm in others:
            for mine, theirs in zip(vm.program.inputs, first.program.inputs, strict=True):
                value = first.storages[theirs][0]
                copied = np.array(value) if isinstance(value, np.ndarray) else value
                vm.storages[mine][0] = copied

    first.before = copy_inputs
    first.wrapper = lambda k, node, _: wrapper(k, node, *groups[k])
    first.thunk_groups = groups
    first.temporary = [
        storage
        for vm in others
        for slot, storage in enumerate(vm.storages)
        if slot not in vm.program.constants
    ]
    return first


def WrapLinkerMany(linkers: Iterable[Linker], wrappers: Sequence[Callable[..., Any]]) -> WrapLinker:
    """Return a WrapLinker that calls each of ``wrappers`` in order."""

    def wrapper(*args: Any) -> None:
        for f in wrappers:
            f(*args)

    return WrapLinker(linkers, wrapper)


def check_equal(x: Storage, y: Storage) -> None:
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

    def __init__(
        self,
        checker: Callable[[Storage, Storage], None] = check_equal,
        schedule: Schedule | None = None,
    ) -> None:
        def run_both(i: int, node: Apply, python: Thunk, c: Thunk) -> None:
            python()
            c()
            for var, a, b in zip(node.outputs, python.outputs, c.outputs, strict=True):
                own = getattr(var.tag, "values_eq_approx", None) if var._tag else None
                if own is None or not own(a[0], b[0]):
                    checker(a, b)

        super().__init__([PerformLinker(schedule=schedule), OpWiseCLinker(schedule=schedule)],
                         run_both)  # fmt: skip
        self.checker = checker
        self.schedule = schedule

    def __repr__(self) -> str:
        return "DualLinker()"


__all__ = ["DualLinker", "WrapLinker", "WrapLinkerMany", "check_equal"]
