"""Linked: what linking a graph results in, complete when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from opwise.graph.apply import Apply
from opwise.graph.variable import Variable
from opwise.linkers import lowering, opwise_c
from opwise.linkers.cbuild import BuildReport
from opwise.linkers.kernels import Pending
from opwise.linkers.opwise_c import OnDemand
from opwise.linkers.program import Program
from opwise.linkers.storage import Container, Storage
from opwise.linkers.vm import AnyVM, Thunk


@dataclass(frozen=True, eq=False, repr=False)
class Linked:
    """A graph that is ready to run."""

    #: runs the program when it is called
    vm: AnyVM
    program: Program
    #: the containers of the graph's inputs and outputs
    inputs: tuple[Container, ...]
    outputs: tuple[Container, ...]
    #: {variable: the one-element list of its value}; the compiled VM keeps what it computes on the
    #: way in slots of C, and those lists hold None
    storage_map: Mapping[Variable, Storage]
    #: for each step whether no Python code runs for it
    in_c: tuple[bool, ...]
    #: what runs each step; None for the compiled VM, which needs no thunks
    thunks: tuple[Thunk, ...] | None = None
    #: what the cache and the compiler did for generated kernels; None if there are none
    build: BuildReport | None = None
    #: kernels that are compiled while the VM runs built-in loops; None if it does not
    pending: Pending | None = None
    #: generated kernels that are compiled when a step first needs them
    on_demand: tuple[OnDemand, ...] = ()
    #: {Apply: seconds that it took to choose what runs it}
    seconds: Mapping[Apply, float] = field(default_factory=dict)
    #: whether loops are compiled if there is a C compiler
    uses_compiler: bool = False

    @property
    def kernels(self) -> BuildReport | None:
        """What the cache and the compiler did for generated kernels that are in use now."""
        return self.build if self.pending is None else self.pending.report

    def wait_for_kernels(self) -> None:
        """Run compiled kernels from the first call on."""
        if self.pending is not None:
            cast(opwise_c.VM, self.vm).wait_for_kernels()

    @property
    def order(self) -> list[Apply]:
        """The Applys in the order in which the VM runs them."""
        return self.program.order

    @cached_property
    def why_not_in_c(self) -> tuple[str, ...]:
        """For each step the reason why it does not run in C, '' if it does."""
        return tuple(
            "" if c else lowering.why_not(node)
            for c, node in zip(self.in_c, self.order, strict=True)
        )
