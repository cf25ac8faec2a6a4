"""FunctionMaker: from a construction and a mode to a function; the order of compilation is here."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from opwise.compile.construct import construct
from opwise.compile.executable import Function
from opwise.config import change_flags, config
from opwise.graph import aliasing, hooks, provenance
from opwise.graph.features import PreserveNames
from opwise.graph.fgraph import FunctionGraph, Interface
from opwise.graph.provenance import made_by
from opwise.graph.variable import Constant
from opwise.tensor.convert import deep_copy_op, view_op


@contextmanager
def collector_paused():
    """Suspend the garbage collector: everything made here stays, and looking through it again and
    again would take longer than the compilation of a large graph."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass
class CompileReport:
    """Where the time of a compilation went, in seconds, and what the rewrites did.

    thunks: seconds by Apply; validate is part of optimizer, thunks are of linker. rewrites: the
    record of the optimizer. kernels: what the cache and the compiler did, or None. dropped_checks:
    under the flag keep_shape_checks, the checks of shapes that are made in place of dropped Applys.
    """

    total: float = 0.0
    optimizer: float = 0.0
    validate: float = 0.0
    linker: float = 0.0
    thunks: dict = field(default_factory=dict)
    rewrites: object = None
    kernels: object = None
    applys: int = 0
    dropped_checks: list[str] = field(default_factory=list)


def stats_for(profile, name):
    """Return the ProfileStats that the argument ``profile`` asks for; None or False for none."""
    if profile is None:
        if not (config.profile or config.print_global_stats):
            return None
        profile = True
    if isinstance(profile, bool | np.bool_ | int) and not profile:
        return False
    from opwise.profiling.stats import ProfileStats  # only those who profile wait for its import

    if isinstance(profile, ProfileStats):
        return profile
    if isinstance(profile, str):
        return ProfileStats(message=profile)
    if isinstance(profile, bool | np.bool_):
        return ProfileStats(message=name)
    raise TypeError(
        f"profile is {profile!r}; it must be True, False, None, a text or a ProfileStats"
    )


#: flags for compiling a graph that was compiled before, when they did what they were to do
_BUILT_BEFORE = {"compute_test_value": "off", "warn_float64": "ignore"}


class FunctionMaker:
    """Compiles one construction under one mode; kept as ``f.maker``.

    construction: what ``opwise.compile.construct.construct`` made. inputs, outputs: its In and Out
    objects. fgraph: the optimized graph. mode, linker: what compiled it.
    """

    #: a call returns None instead of an empty list
    output_none = False
    #: the Applys in the order in which the machine runs them
    order = None

    def __init__(
        self, construction, mode, name=None, profile=None, on_unused_input=None,
        accept_inplace=False,
    ):  # fmt: skip
        start = time.perf_counter()
        self.construction = construction
        self.inputs = construction.inputs
        self.outputs = construction.outputs
        self.expanded_inputs = construction.inputs
        self.indices = [[spec, [], [spec]] for spec in construction.inputs]
        self.mode = mode
        self.name = name
        self.profile = profile
        self.on_unused_input = on_unused_input
        self.accept_inplace = accept_inplace
        self.unpack_single = construction.unpack_single
        self.output_keys = construction.keys
        self.report = CompileReport()
        self.fgraph = self._graph()
        if self.fgraph.has_destroyers and not accept_inplace:
            nodes = [n for n in self.fgraph.toposort() if n.op.destroy_map]
            raise TypeError(
                "Graph must not contain inplace operations: "
                f"{', '.join(map(str, nodes))} overwrites its input. Use an Op that does not (the "
                "optimizer finds out where memory can be overwritten), or function(..., "
                f"accept_inplace=True).{made_by(nodes[0])}"
            )
        self._optimize()
        with change_flags(compute_test_value="off"):  # copies are no lines of the user
            _separate_outputs(self.fgraph, construction)
        self.report.applys = len(self.fgraph.apply_nodes)
        self._started = start

    def _graph(self):
        construction = self.construction
        specs = list(zip(construction.graph_inputs, construction.inputs, strict=True))
        interface = Interface(
            mutable=frozenset(var for var, spec in specs if spec.mutable),
            shared=frozenset(var for var, spec in specs if spec.shared),
            persistent=frozenset(var for var, spec in specs if spec.shared or spec.implicit),
            borrowed=frozenset(k for k, out in enumerate(construction.outputs) if out.borrow),
            updates=dict(construction.update_of),
        )
        fgraph = FunctionGraph(
            construction.graph_inputs, construction.graph_outputs, clone=False, interface=interface
        )
        fgraph.attach_feature(PreserveNames())
        return fgraph

    def _optimize(self):
        start = time.perf_counter()
        with provenance.rewriting():
            if config.keep_shape_checks:
                self._optimize_with_shape_checks()
            else:
                self.report.rewrites = self.mode.optimize(self.fgraph)
        self.report.optimizer = time.perf_counter() - start
        self.mode.optimizer_time = getattr(self.mode, "optimizer_time", 0.0) + self.report.optimizer

    def _optimize_with_shape_checks(self):
        from opwise.optimizers import shapechecks  # few ask for it

        with change_flags(compute_test_value="off"):
            written = shapechecks.insert(self.fgraph)
        self.report.rewrites = self.mode.optimize(self.fgraph)
        with change_flags(compute_test_value="off"):
            self.report.dropped_checks = shapechecks.keep_dropped(self.fgraph, written)

    def create(self, input_storage=None, trustme=False, storage_map=None):
        """Return the function. input_storage: values or containers for the inputs, in order."""
        start = time.perf_counter()
        self.linker = self.mode.bound_linker(self.fgraph)
        function = Function(self, input_storage, storage_map)
        self.report.kernels = getattr(self.linker, "report", None)
        self.report.thunks = getattr(self.linker, "thunk_seconds", {})
        self.report.validate = self.fgraph.validate_seconds
        now = time.perf_counter()
        self.report.linker = now - start
        self.mode.linker_time = getattr(self.mode, "linker_time", 0.0) + self.report.linker
        self.report.total = now - self._started
        self.mode.compiled(function)
        if config.profiling.nvtx:
            from opwise.linkers import nvtx  # few ask for it

            nvtx.mark(function)
        if self.profile:
            self._profile(function)
        if config.tuning.functions:
            hooks.remember(function)
        return function

    def _profile(self, function):
        from opwise.modes.recording import record  # only those who profile wait for its import

        stats = self.profile
        recorder = record(
            function, stats.flag_time_thunks, stats.ignore_first_call, config.profile_memory
        )
        if config.profile_optimizer:
            recorder.rewrites = self.report.rewrites.as_dict()
        stats.add(recorder)

    # --- copies -----------------------------------------------------------------------------------

    def recipe(self, function):
        """Return (rebuild, arguments) that make an equal function: what a pickle holds.

        The graph as written travels, not the optimized one: where it arrives, the processor may be
        another. Kernels come from the cache there.
        """
        kept = [
            container if spec.update is not None and not spec.shared else None
            for spec, container in zip(self.inputs, function.input_storage, strict=True)
        ]
        arguments = self.construction.arguments
        return _rebuild, (
            arguments, self.mode, self.name, self.output_none, kept, self.accept_inplace,
        )  # fmt: skip

    @collector_paused()
    def copy_function(self, function, swap=None, delete_updates=False, name=None, profile=None):
        """Return a function of the same graph; see ``Function.copy``."""
        arguments = dict(self.construction.arguments)
        if delete_updates:
            arguments["updates"], arguments["no_default_updates"] = [], True
        if swap:
            used = function.get_shared()
            for old, new in swap.items():
                if old not in used:
                    known = ", ".join(map(str, used)) or "none"
                    raise ValueError(
                        f"SharedVariable: {old.name} not found. The function reads or updates "
                        f"{known}."
                    )
                if old.type != new.type:
                    raise AssertionError(
                        "Type of given SharedVariable conflicts with original one: "
                        f"{old} has {old.type}, {new} has {new.type}. Give one of the same type."
                    )
            arguments["givens"] = [*(arguments["givens"] or []), *swap.items()]
            arguments["updates"] = [
                (swap.get(var, var), expression) for var, expression in arguments["updates"] or []
            ]
        with change_flags(**_BUILT_BEFORE):
            maker = FunctionMaker(
                construct(**arguments), self.mode, name=name or self.name,
                profile=stats_for(profile, name or self.name), accept_inplace=self.accept_inplace,
            )  # fmt: skip
        maker.output_none = self.output_none
        return maker.create()


@collector_paused()
def _rebuild(arguments, mode, name, output_none, kept, accept_inplace):
    """Compile what ``FunctionMaker.recipe`` described."""
    with change_flags(**_BUILT_BEFORE):
        maker = FunctionMaker(
            construct(**arguments), mode, name=name, accept_inplace=accept_inplace
        )
    maker.output_none = output_none
    return maker.create(kept)


def _separate_outputs(fgraph, construction):
    """Copy outputs that would show memory that is not theirs.

    A result must not change when an input does or the function is called again, and two results
    must not be views of each other. An update may live in the memory of what it updates. Where both
    the input and the output allow it (borrow), a view is handed out instead.
    """
    roots = aliasing.groups(fgraph)
    position = {var: i for i, var in enumerate(fgraph.inputs)}
    n_outputs = len(construction.outputs)
    taken = {}
    # updates first: they may keep the memory, the results that show it too get the copy
    for i in sorted(range(len(fgraph.outputs)), key=lambda i: i < n_outputs):
        out = fgraph.outputs[i]
        root = roots.get(out, out)
        own = construction.update_of.get(i)
        borrowed = False
        if root in position:
            copy = own is None or position[root] != own
            borrowed = (
                own is None
                and construction.inputs[position[root]].borrow
                and construction.outputs[i].borrow
                and root not in taken
            )
        else:
            copy = isinstance(root, Constant)
        if root in taken:
            copy, borrowed = True, False
        if not copy:
            taken[root] = i
            continue
        new = (view_op if borrowed else deep_copy_op)(out)
        new.owner._origins = out.owner.origins if out.owner is not None else ()
        fgraph.change_input("output", i, new, reason="separate_outputs")
