"""Linker: which implementations of Applys are tried, which machine runs them, what it needs.

The linkers by name are in one table at the end; the legacy classes are faces of its rows.
"""

from __future__ import annotations

import copy
from time import perf_counter

from opwise.config import config
from opwise.graph import provenance
from opwise.linkers import (  # noqa: F401  (csteps registers its makers)
    cmakers,
    csteps,
    errors,
    opwise_c,
    resources,
)
from opwise.linkers.kernels import Kernels
from opwise.linkers.program import make_program
from opwise.linkers.storage import Container
from opwise.linkers.vm import CThunk, PerformThunk, PlainVM


class Linker:
    """A way to run a graph.

    makers: the implementations that are tried in order, of 'c' and 'perform'. machine: 'compiled'
    or 'plain'. allow_gc: whether intermediate values are let go during a call (None: the flag).
    schedule: a function from a graph to the order of its Applys. required, incompatible: tags of
    rewrites that graphs for this linker must, or must not, go through.
    """

    makers = ("perform",)
    machine = "plain"
    required: tuple[str, ...] = ()
    incompatible: tuple[str, ...] = ()

    def __init__(self, allow_gc=None, schedule=None):
        self.allow_gc = config.allow_gc if allow_gc is None else allow_gc
        self.schedule = schedule
        self.generate_kernels = True
        self.fgraph = None
        #: of each Apply, how long it took to choose and prepare what runs it
        self.thunk_seconds = {}
        self.program = None

    def clone(self, allow_gc=None):
        """Return a copy, with another ``allow_gc`` if told."""
        new = copy.copy(self)
        new.fgraph = None
        new.thunk_seconds = {}
        if allow_gc is not None:
            new.allow_gc = allow_gc
        return new

    def accept(self, fgraph, no_recycling=None, profile=None):
        """Return a linker for a graph: this one, or a copy if it has one already."""
        linker = self if self.fgraph is None or self.fgraph is fgraph else self.clone()
        linker.fgraph = fgraph
        return linker

    def make_thunk(
        self, input_storage=None, output_storage=None, storage_map=None, keep_lock=False
    ):
        """Return (machine, input containers, output containers) for the accepted graph."""
        return self.make_all(input_storage, output_storage, storage_map)[:3]

    def make_function(self, unpack_single=True, **kwargs):
        """Return a plain function from input values to output values of the accepted graph."""
        fn, inputs, outputs = self.make_thunk(**kwargs)

        def run(*args):
            if len(args) != len(inputs):
                raise TypeError(f"Function call takes exactly {len(inputs)} arguments")
            for arg, container in zip(args, inputs, strict=True):
                container.data = arg
            fn()
            results = [container.data for container in outputs]
            return results[0] if unpack_single and len(results) == 1 else results

        return run

    def make_all(self, input_storage=None, output_storage=None, storage_map=None):
        """Return (machine, input containers, output containers, thunks, order)."""
        resources.obey_flags()
        kernels = Kernels(self.generate_kernels) if "c" in self.makers else None
        c_steps, now = {}, perf_counter()
        for node in self.fgraph.toposort():
            c_steps[node] = self.c_step(node, kernels)
            started, now = now, perf_counter()
            self.thunk_seconds[node] = now - started
        if kernels is not None:
            kernels.start()  # while they are compiled, the rest is prepared
        program = self.program = self.make_program()
        storages = _storages(program, input_storage, output_storage, storage_map)
        steps = [c_steps[step.node] for step in program.steps]
        machine, thunks = self._machine(program, storages, steps, kernels)
        inputs = [Container(program.variables[c], storages[c]) for c in program.inputs]
        outputs = [Container(program.variables[c], storages[c]) for c in program.outputs]
        return machine, inputs, outputs, thunks, program.order

    @property
    def uses_compiler(self):
        """Whether loops are compiled where there is a C compiler."""
        return self.generate_kernels and "c" in self.makers

    def make_program(self):
        """Return the Program of the accepted graph."""
        return make_program(self.fgraph, self.schedule)

    def _machine(self, program, storages, steps, kernels):
        if kernels is not None:
            kernels.finish()
            steps = [s if s is None or s.loop is None or s.loop.address else None for s in steps]
        self.cimpl = [step is not None for step in steps]
        self.report = kernels.report if kernels is not None else None
        on_error = self.reporter(program, storages)
        if self.machine == "compiled":
            return compiled_vm(program, storages, steps, on_error, self.allow_gc), None
        thunks = [make_thunk(program, k, steps[k], storages, on_error) for k in range(len(steps))]
        return self.plain_vm(program, storages, thunks, on_error), thunks

    def reporter(self, program, storages):
        """Return what a machine calls with (step, exception, values) when an Apply fails."""
        return _reporter(program, storages)

    def c_step(self, node, kernels):
        """Return the C step of an Apply, or None if it is to run ``perform``."""
        return cmakers.c_step(node, kernels) if kernels is not None else None

    def plain_vm(self, program, storages, thunks, on_error):
        """Return the plain machine over thunks."""
        return PlainVM(program, storages, thunks, on_error, self.allow_gc)

    def __repr__(self):
        return f"{type(self).__name__}()"


class PerformLinker(Linker):
    """Runs ``perform`` of every Apply: numpy."""


class OpWiseCLinker(Linker):
    """Runs every Apply in C that has a C implementation, in the compiled machine."""

    makers = ("c", "perform")
    machine = "compiled"

    def __init__(self, fallback_on_perform=True, allow_gc=None, nice_errors=True, schedule=None):
        super().__init__(allow_gc, schedule)
        self.fallback_on_perform = fallback_on_perform
        self.nice_errors = nice_errors


class VM_Linker(Linker):
    """Legacy: with ``use_cloop`` the compiled machine, otherwise C thunks run by the plain one.

    callback: called as (node, thunk, storage_map, compute_map) after each Apply; callback_input as
    (variable, value) for each input before the first. Both make the plain machine run.
    """

    makers = ("c", "perform")

    def __init__(
        self, allow_gc=None, use_cloop=False, callback=None, callback_input=None, lazy=None,
        schedule=None, c_thunks=None, allow_partial_eval=None,
    ):  # fmt: skip
        super().__init__(allow_gc, schedule)
        self.use_cloop = use_cloop
        self.callback = callback
        self.callback_input = callback_input
        self.lazy = lazy
        self.c_thunks = c_thunks
        if c_thunks is False:
            self.makers = ("perform",)
        if use_cloop and callback is None and callback_input is None and c_thunks is not False:
            self.machine = "compiled"

    def plain_vm(self, program, storages, thunks, on_error):
        if self.callback is None and self.callback_input is None:
            return super().plain_vm(program, storages, thunks, on_error)
        storage_map = dict(zip(program.variables, storages, strict=True))
        compute_map = {var: [True] for var in program.variables}

        def show_inputs():
            if self.callback_input is not None:
                for var, storage in storage_map.items():
                    if var.owner is None:
                        self.callback_input(var, storage[0])

        def run(k, node, thunk):
            thunk()
            if self.callback is not None:
                self.callback(
                    node=node, thunk=thunk, storage_map=storage_map, compute_map=compute_map
                )

        return PlainVM(program, storages, thunks, on_error, self.allow_gc, run, before=show_inputs)


class CLinker(OpWiseCLinker):
    """Legacy: the graph must run in C as a whole; an Apply without C is refused when compiling."""

    def c_step(self, node, kernels):
        step = super().c_step(node, kernels)
        if step is None:
            raise NotImplementedError(
                f"{node.op} cannot produce C code, and the linker 'c' runs only C. Use the linker "
                f"'c|py', which runs perform if there is no C code.{_lines(node)}"
            )
        return step


def _lines(node):
    return "".join(map(provenance.made_by, node.origins[:1]))


def compiled_vm(program, storages, steps, on_error, allow_gc):
    """Return the compiled machine for a program; ``steps`` holds a CStep or None for each step."""
    rows = []
    for step, c in zip(program.steps, steps, strict=True):
        if c is None:
            perform = step.node.op.perform
            rows.append((None, step.inputs, step.outputs, (), (), 0, 0, None, perform, step.node))
        else:
            loop = c.loop
            address, context = (loop.address, loop.context) if loop is not None else (0, 0)
            rows.append(
                (c.kind, step.inputs, step.outputs, c.ints, c.reals, address, context, loop, None,
                 step.node)
            )  # fmt: skip
    return opwise_c.VM(
        [cmakers.cell_layout(var) for var in program.variables],
        rows,
        [(cell, storages[cell]) for cell in program.inputs],
        [(cell, storages[cell]) for cell in program.outputs],
        program.constants,
        list(program.parents),
        [step.dies for step in program.steps],
        list(program.ends),
        program.commit,
        list(program.destroyed),
        on_error,
        allow_gc,
    )


def make_thunk(program, k, c_step, storages, on_error):
    """Return the thunk of step ``k`` for the plain machine."""
    step = program.steps[k]
    ins = [storages[c] for c in step.inputs]
    outs = [storages[c] for c in step.outputs]
    if c_step is None:
        return PerformThunk(step.node, ins, outs)
    machine = single_step_vm(program, k, c_step, storages)
    return CThunk(step.node, ins, outs, machine)


def single_step_vm(program, k, c_step, storages):
    """Return a compiled machine that runs only step ``k``, between Python storages."""
    step = program.steps[k]
    cells = list(dict.fromkeys((*step.inputs, *step.outputs)))
    at = {cell: i for i, cell in enumerate(cells)}
    loop = c_step.loop
    address, context = (loop.address, loop.context) if loop is not None else (0, 0)
    node = step.node

    def raise_it(_, exception, values):
        raise exception

    return opwise_c.VM(
        [cmakers.cell_layout(program.variables[c]) for c in cells],
        [(c_step.kind, tuple(at[c] for c in step.inputs), tuple(at[c] for c in step.outputs),
          c_step.ints, c_step.reals, address, context, loop, None, node)],
        [(at[c], storages[c]) for c in dict.fromkeys(step.inputs)],
        [(at[c], storages[c]) for c in step.outputs],
        {},
        [at.get(program.parents[c], -1) for c in cells],
        [()],
        [at[c] for c in step.outputs],
        1,
        [],
        raise_it,
    )  # fmt: skip


def _storages(program, input_storage, output_storage, storage_map):
    """Return the one-element list of each cell, taking those that are given."""
    storages = [None] * len(program.variables)
    for cells, given in ((program.inputs, input_storage), (program.outputs, output_storage)):
        for cell, storage in zip(cells, given or (), strict=False):
            if storages[cell] is None:
                storages[cell] = getattr(storage, "storage", storage)
    for cell, var in enumerate(program.variables):
        if storages[cell] is None and storage_map is not None and var in storage_map:
            storages[cell] = storage_map[var]
        if storages[cell] is None:
            storages[cell] = [None]
        if cell in program.constants:
            storages[cell][0] = program.constants[cell]
        if storage_map is not None:
            storage_map[var] = storages[cell]
    return storages


def _reporter(program, storages):
    def report(k, exception, values):
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
