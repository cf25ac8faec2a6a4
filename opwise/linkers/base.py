"""Linker: which implementations of Applys are tried, and which VM runs them.

The linkers by name are in the table of ``opwise.modes.mode``; most legacy classes differ from
``Linker`` in attributes only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from time import perf_counter
from typing import Any, Self

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Variable
from opwise.linkers import (  # noqa: F401  (register lowerings)
    convsteps,
    csteps,
    errors,
    imagesteps,
    lowering,
    opwise_c,
    resources,
    rowsteps,
)
from opwise.linkers.compiled import OnError, compiled_vm, make_thunk
from opwise.linkers.kernels import Kernels
from opwise.linkers.linked import Linked
from opwise.linkers.lowering import AnyStep, CStep
from opwise.linkers.program import Program, make_program
from opwise.linkers.storage import Container, Storage
from opwise.linkers.userops import thunks as _thunks  # noqa: F401  (registers c_code)
from opwise.linkers.vm import AnyVM, PlainVM, Thunk
from opwise.profiling import progress

#: a function from a graph to the order of its Applys
Schedule = Callable[[FunctionGraph], Iterable[Apply]]


class Linker:
    """A way to run a graph.

    allow_gc: whether intermediate values are released during a call (default: the flag allow_gc).
    schedule: a function from a graph to the order of its Applys (default: its ``toposort``).
    """

    #: the implementations that are tried for each Apply, in order: 'c', 'perform'
    implementations: tuple[str, ...] = ("perform",)
    #: the VM that runs the program: 'compiled' or 'plain'
    vm: str = "plain"
    #: tags of rewrites that graphs for this linker must go through, and of those they must not
    required: tuple[str, ...] = ()
    incompatible: tuple[str, ...] = ()
    #: whether C kernels may be compiled for the graph
    generate_kernels: bool = True
    #: the graph that ``link`` runs; None until ``accept`` gives it to a linker
    fgraph: FunctionGraph = None  # type: ignore[assignment]

    def __init__(self, allow_gc: bool | None = None, schedule: Schedule | None = None) -> None:
        self.allow_gc = config.allow_gc if allow_gc is None else allow_gc
        self.schedule = schedule

    def clone(
        self,
        allow_gc: bool | None = None,
        vm: str | None = None,
        generate_kernels: bool | None = None,
    ) -> Self:
        """Return a copy without a graph, with other attributes where they are given."""
        new = copy.copy(self)
        new.fgraph = None  # type: ignore[assignment]
        given = {"allow_gc": allow_gc, "vm": vm, "generate_kernels": generate_kernels}
        vars(new).update({name: value for name, value in given.items() if value is not None})
        return new

    def accept(self, fgraph: FunctionGraph, no_recycling: Any = None, profile: Any = None) -> Self:
        """Return a linker for a graph: this one, or a copy if it has one already."""
        linker = self if self.fgraph is None or self.fgraph is fgraph else self.clone()
        linker.fgraph = fgraph
        return linker

    def link(
        self,
        input_storage: Sequence[Storage | Container] | None = None,
        output_storage: Sequence[Storage | Container] | None = None,
        storage_map: MutableMapping[Variable, Storage] | None = None,
    ) -> Linked:
        """Return what runs the accepted graph.

        input_storage, output_storage: one-element lists, or containers of them, to be used for
        inputs and outputs. storage_map: {variable: storage to be used for it}; those that are made
        are added.
        """
        resources.obey_flags()
        progress.say("linking")
        kernels = Kernels(self.generate_kernels) if "c" in self.implementations else None
        c_steps, seconds = self._lower(kernels)
        if kernels is not None:
            # while they are compiled, the rest is prepared
            kernels.start(later=config.background_compilation and self.vm == "compiled")
        program = self.make_program(lambda node: isinstance(c_steps[node], CStep))
        storages = _storages(program, input_storage, output_storage, storage_map)
        if kernels is not None:
            progress.say("waiting for the C compiler")
            kernels.finish()
            progress.say("linking")
        steps = [_with_loop(c_steps[step.node]) for step in program.steps]
        vm, thunks = self.make_vm(program, storages, steps)
        pending = kernels.pending if kernels is not None else None
        if isinstance(vm, opwise_c.VM) and pending is not None:
            vm.expect_kernels(pending)
        return Linked(
            vm=vm,
            program=program,
            inputs=tuple(Container(program.variables[s], storages[s]) for s in program.inputs),
            outputs=tuple(Container(program.variables[s], storages[s]) for s in program.outputs),
            storage_map=dict(zip(program.variables, storages, strict=True)),
            in_c=tuple(
                [step is not None for step in steps]
                if thunks is None
                else [hasattr(thunk, "cthunk") for thunk in thunks]
            ),
            thunks=None if thunks is None else tuple(thunks),
            build=kernels.report if kernels is not None else None,
            pending=pending,
            on_demand=kernels.on_demand if kernels is not None else (),
            seconds=seconds,
            uses_compiler=self.generate_kernels and kernels is not None,
        )

    def _lower(
        self, kernels: Kernels | None
    ) -> tuple[dict[Apply, AnyStep | None], Mapping[Apply, float]]:
        """Return the C step of each Apply, and the seconds that it took to find it."""
        steps: dict[Apply, AnyStep | None] = {}
        seconds, now = {}, perf_counter()
        for node in self.fgraph.toposort():
            steps[node] = self.c_step(node, kernels)
            started, now = now, perf_counter()
            seconds[node] = now - started
        return steps, seconds

    # --- what subclasses replace ------------------------------------------------------------------

    def c_step(self, node: Apply, kernels: Kernels | None) -> AnyStep | None:
        """Return the C step of an Apply, or None if it is to run ``perform``."""
        return lowering.c_step(node, kernels) if kernels is not None else None

    def make_program(self, runs_in_c: Callable[[Apply], bool]) -> Program:
        """Return the Program of the accepted graph."""
        compiled = self.vm == "compiled"
        return make_program(
            self.fgraph,
            self.schedule,
            advances=compiled,
            strip_bytes=resources.strip_bytes() if compiled else 0,
            runs_in_c=runs_in_c,
        )

    def make_vm(
        self, program: Program, storages: Sequence[Storage], steps: Sequence[AnyStep | None]
    ) -> tuple[AnyVM, Sequence[Thunk] | None]:
        """Return the VM, and its thunks by step: None for the compiled VM."""
        on_error = reporter(program, storages)
        if self.vm == "compiled":
            return compiled_vm(program, storages, steps, on_error, self.allow_gc), None
        thunks = [make_thunk(program, k, step, storages) for k, step in enumerate(steps)]
        return self.plain_vm(program, storages, thunks, on_error), thunks

    def plain_vm(
        self,
        program: Program,
        storages: Sequence[Storage],
        thunks: Sequence[Thunk],
        on_error: OnError,
    ) -> PlainVM:
        """Return the plain VM over thunks."""
        return PlainVM(program, storages, thunks, on_error, self.allow_gc)

    # --- Theano's interface of an accepted graph --------------------------------------------------

    def make_all(
        self,
        input_storage: Sequence[Storage | Container] | None = None,
        output_storage: Sequence[Storage | Container] | None = None,
        storage_map: MutableMapping[Variable, Storage] | None = None,
    ) -> tuple[Any, ...]:
        """Return (VM, input containers, output containers, thunks, order)."""
        linked = self.link(input_storage, output_storage, storage_map)
        thunks = linked.thunks and list(linked.thunks)
        return linked.vm, list(linked.inputs), list(linked.outputs), thunks, linked.order

    def make_thunk(
        self,
        input_storage: Sequence[Storage | Container] | None = None,
        output_storage: Sequence[Storage | Container] | None = None,
        storage_map: MutableMapping[Variable, Storage] | None = None,
        keep_lock: bool = False,
    ) -> tuple[Any, ...]:
        """Return (VM, input containers, output containers)."""
        return self.make_all(input_storage, output_storage, storage_map)[:3]

    def make_function(self, unpack_single: bool = True, **kwargs: Any) -> Callable[..., Any]:
        """Return a plain function from input values to output values."""
        fn, inputs, outputs = self.make_thunk(**kwargs)

        def run(*args: Any) -> Any:
            if len(args) != len(inputs):
                raise TypeError(f"Function call takes exactly {len(inputs)} arguments")
            for arg, container in zip(args, inputs, strict=True):
                container.data = arg
            fn()
            results = [container.data for container in outputs]
            return results[0] if unpack_single and len(results) == 1 else results

        return run

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PerformLinker(Linker):
    """Runs ``perform`` of every Apply: numpy."""


class OpWiseCLinker(Linker):
    """Runs every Apply in C that has a C implementation, in the compiled VM."""

    implementations = ("c", "perform")
    vm = "compiled"

    def __init__(
        self,
        fallback_on_perform: bool = True,
        allow_gc: bool | None = None,
        nice_errors: bool = True,
        schedule: Schedule | None = None,
    ) -> None:
        super().__init__(allow_gc, schedule)
        self.fallback_on_perform = fallback_on_perform
        self.nice_errors = nice_errors


class VM_Linker(Linker):
    """Legacy: with ``use_cloop`` the compiled VM, otherwise C thunks run by the plain one.

    callback: called as (node, thunk, storage_map, compute_map) after each Apply; callback_input as
    (variable, value) for each input before the first. With either of them the plain VM runs.
    """

    implementations: tuple[str, ...] = ("c", "perform")

    def __init__(
        self,
        allow_gc: bool | None = None,
        use_cloop: bool = False,
        callback: Callable[..., Any] | None = None,
        callback_input: Callable[..., Any] | None = None,
        lazy: bool | None = None,
        schedule: Schedule | None = None,
        c_thunks: bool | None = None,
        allow_partial_eval: bool | None = None,
    ) -> None:
        super().__init__(allow_gc, schedule)
        self.use_cloop = use_cloop
        self.callback = callback
        self.callback_input = callback_input
        self.lazy = lazy
        self.c_thunks = c_thunks
        if c_thunks is False:
            self.implementations = ("perform",)
        if use_cloop and callback is None and callback_input is None and c_thunks is not False:
            self.vm = "compiled"

    def plain_vm(
        self,
        program: Program,
        storages: Sequence[Storage],
        thunks: Sequence[Thunk],
        on_error: OnError,
    ) -> PlainVM:
        if self.callback is None and self.callback_input is None:
            return super().plain_vm(program, storages, thunks, on_error)
        storage_map = dict(zip(program.variables, storages, strict=True))
        compute_map = {var: [True] for var in program.variables}

        def show_inputs() -> None:
            if self.callback_input is not None:
                for var, storage in storage_map.items():
                    if var.owner is None:
                        self.callback_input(var, storage[0])

        def run(k: int, node: Apply, thunk: Thunk) -> None:
            thunk()
            if self.callback is not None:
                self.callback(
                    node=node, thunk=thunk, storage_map=storage_map, compute_map=compute_map
                )

        return PlainVM(program, storages, thunks, on_error, self.allow_gc, run, before=show_inputs)


class CLinker(OpWiseCLinker):
    """Legacy: the graph must run in C as a whole; an Apply without C is refused when compiling."""

    def c_step(self, node: Apply, kernels: Kernels | None) -> AnyStep | None:
        step = super().c_step(node, kernels)
        if step is None:
            raise NotImplementedError(
                f"{node.op} cannot produce C code, and the linker 'c' runs only C. Use the linker "
                f"'c|py', which runs perform if there is no C code."
                f"{''.join(map(provenance.made_by, node.origins[:1]))}"
            )
        return step


def _with_loop(step: AnyStep | None) -> AnyStep | None:
    """Return a step if it has the loop that it needs, else None: the Apply runs ``perform``."""
    loop = step.loop if isinstance(step, CStep) else None
    return step if loop is None or loop.address else None


def _storages(
    program: Program,
    input_storage: Sequence[Storage | Container] | None,
    output_storage: Sequence[Storage | Container] | None,
    storage_map: MutableMapping[Variable, Storage] | None,
) -> list[Storage]:
    """Return the one-element list of each slot, taking those that are given."""
    found: list[Storage | None] = [None] * len(program.variables)
    for slots, given in ((program.inputs, input_storage), (program.outputs, output_storage)):
        for slot, storage in zip(slots, given or (), strict=False):
            if found[slot] is None:
                found[slot] = storage.storage if isinstance(storage, Container) else storage
    storages = []
    for slot, var in enumerate(program.variables):
        chosen = found[slot]
        if chosen is None and storage_map is not None:
            chosen = storage_map.get(var)
        if chosen is None:
            chosen = [None]
        if slot in program.constants:
            chosen[0] = program.constants[slot]
        if storage_map is not None:
            storage_map[var] = chosen
        storages.append(chosen)
    return storages


def reporter(program: Program, storages: Sequence[Storage]) -> OnError:
    """Return what a VM calls with (step, exception, values) when an Apply fails."""

    def report(k: int, exception: BaseException, values: Sequence[Any]) -> None:
        shared = program.fgraph.interface.shared
        footprint = [
            (var, storage[0], var in shared)
            for var, storage in zip(program.variables, storages, strict=True)
        ]
        new = errors.annotated(exception, program.steps[k].node, program.order, values, footprint)
        if new is not exception:
            raise new from exception.__cause__
        raise exception

    return report
