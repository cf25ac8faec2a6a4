"""FunctionMaker: compiles a construction under a mode to a Function."""

from __future__ import annotations

import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.compile.construct import Construction, Graph, WrittenGraph, construct
from opwise.compile.executable import Function, input_containers
from opwise.compile.report import NO_FRONT_END, CompileReport, FrontEndTimes
from opwise.config import config, thread_flags
from opwise.graph import aliasing, provenance, target, traversal, upcalls
from opwise.graph.features import PreserveNames
from opwise.graph.fgraph import FunctionGraph, Interface
from opwise.graph.provenance import made_by
from opwise.graph.variable import Constant, Variable
from opwise.linkers.linked import Linked
from opwise.optimizers.passes import OptimizationProfile
from opwise.optimizers.shapefeature import ShapeFeature
from opwise.profiling.process import pause_garbage_collection
from opwise.tensor.convert import ViewOp, deep_copy_op, view_op

if TYPE_CHECKING:
    from opwise.optimizers.inputlengths import Comparison


@dataclass(frozen=True, eq=False, repr=False)
class Optimized:
    """A graph after the rewrites of a mode."""

    fgraph: FunctionGraph
    #: seconds spent in the rewrites
    seconds: float
    #: the record of the optimizer
    rewrites: OptimizationProfile
    #: under the flag keep_shape_checks: the shape checks of Applys that rewrites dropped
    dropped_checks: Sequence[str] = ()
    #: whether it came from the cache
    cached: bool = False
    #: lengths of inputs that the graph as written compares, but not the optimized one
    lengths: Sequence[Comparison] = ()


def stats_for(profile: Any, name: str | None, mode: Any) -> Any:
    """Return the ProfileStats for the argument ``profile``, or None or False to record nothing.

    If only the flags ask for one, a function whose mode has none gives a warning: they are set for
    whole programs.
    """
    if profile is None:
        wanted = config.profile or config.print_global_stats
        if not wanted:
            return None
        if not getattr(mode, "has_profiles", True):
            provenance.warn(
                f"{type(mode).__name__} records no profile, so the flag profile gives none of "
                f"{name or 'a function'}: compile it under another mode to profile it"
            )
            return None
        profile = True
    if isinstance(profile, bool | np.bool_ | int) and not profile:
        return False
    from opwise.profiling.stats import ProfileStats  # only programs that profile wait for it

    if isinstance(profile, ProfileStats):
        return profile
    if isinstance(profile, str):
        return ProfileStats(message=profile)
    if isinstance(profile, bool | np.bool_):
        return ProfileStats(message=name)
    raise TypeError(
        f"profile is {profile!r}; it must be True, False, None, a text or a ProfileStats"
    )


#: flags for compiling a graph again: the first compilation has computed test values and warned
_BUILT_BEFORE = {"compute_test_value": "off", "warn_float64": "ignore"}


class FunctionMaker:
    """Compiles one construction under one mode; kept as ``f.maker``.

    name: the function's name. profile: the ProfileStats to record in. on_unused_input: kept for
    Theano's programs; ``construct`` has checked. accept_inplace: allow Applys in the graph that
    overwrite inputs. output_none: a call returns None instead of an empty list. anew: rewrite the
    graph even if the cache has the result. front_end: what came before, for reports.
    """

    def __init__(
        self,
        construction: Construction,
        mode: Any,
        name: str | None = None,
        profile: Any = None,
        on_unused_input: str | None = None,
        accept_inplace: bool = False,
        output_none: bool = False,
        anew: bool = False,
        front_end: FrontEndTimes = NO_FRONT_END,
    ) -> None:
        self._started = time.perf_counter()
        self._device = target.device_name()
        #: what came before, if the graph is another library's
        self._front_end = front_end
        self.construction = construction
        #: the In and Out objects
        self.inputs = construction.inputs
        self.outputs = construction.outputs
        self.expanded_inputs = construction.inputs
        self.indices: list[list[Any]] = [[spec, None, [spec]] for spec in construction.inputs]
        #: for each input whether calls must give a value, and whether its default is restored
        self.required = [spec.value is None for spec in construction.inputs]
        self.refeed = [
            spec.value is not None and not spec.shared and spec.update is None
            for spec in construction.inputs
        ]
        self.mode = mode
        self.name = name
        self.profile = profile
        self.on_unused_input = on_unused_input
        self.accept_inplace = accept_inplace
        self.output_none = self.return_none = output_none
        self.unpack_single = construction.unpack_single
        self.output_keys = construction.keys
        self.optimized = self._optimize(anew)
        #: the optimized graph
        self.fgraph = self.optimized.fgraph
        with target.pinned(self._device):
            _compile_inside(self.fgraph, mode, bool(profile))
            self.linker = mode.bound_linker(self.fgraph)

    def _optimize(self, anew: bool) -> Optimized:
        """Return the graph of the construction after the rewrites, with copies of outputs.

        If the cache has it, no rewrite runs, unless ``anew``.
        """
        from opwise.compile import graphcache  # only compiling needs it

        start = time.perf_counter()
        entry = None
        if not anew and not self.accept_inplace:
            entry = graphcache.entry(self.construction, self.mode)
        found = None if entry is None else entry.find()
        compared = [] if config.keep_shape_checks else _compared(self.construction.graph)
        fgraph = _graph_of(found or self.construction, self.name)
        if found is not None:
            fgraph.attach_feature(ShapeFeature())  # as the rewrites leave one
            record = OptimizationProfile(name="from the cache")
            optimized = Optimized(fgraph, time.perf_counter() - start, record, cached=True)
            _add_time(self.mode, optimized.seconds)
        else:
            if fgraph.has_destroyers and not self.accept_inplace:
                raise _inplace_refused(fgraph)
            with target.pinned(self._device), provenance.counting_warnings() as warned:
                optimized = _optimized(fgraph, self.mode)
            if entry is not None and not warned.number:
                entry.keep(fgraph)
        if compared:
            optimized = replace(optimized, lengths=_dropped(compared, fgraph))
        with thread_flags(compute_test_value="off"):  # the copies belong to no line of the user
            _separate_outputs(fgraph, self.construction)
        fgraph.sort_clients()  # texts show them: the same ones, wherever the graph is from
        return optimized

    def create(
        self,
        input_storage: Sequence[Any] | None = None,
        trustme: bool = False,
        storage_map: MutableMapping[Variable, list[Any]] | None = None,
    ) -> Function:
        """Return the function.

        input_storage: values or containers for the inputs, in order. trustme: accepted for Theano's
        programs. storage_map: {variable: storage to be used for it}; new storages are added.
        """
        start = time.perf_counter()
        containers = input_containers(self.construction.inputs, input_storage)
        storages = [container.storage for container in containers]
        with target.pinned(self._device):
            linked = self.linker.link(input_storage=storages, storage_map=storage_map)
        if (self.profile or self.mode.times_calls) and config.profiling.wait_for_kernels:
            linked.wait_for_kernels()  # as a part of what linking takes
        report = self._report(linked, start)
        kind = upcalls.remembering_function() if config.tuning.functions else Function
        function: Function = kind(self, linked, containers, report)
        self.mode.linker_time = getattr(self.mode, "linker_time", 0.0) + report.linker
        self.mode.on_compiled(function)
        if config.profiling.nvtx:
            from opwise.profiling import nvtx  # rarely needed

            nvtx.mark(function.fn, function.name, linked.order)
        if self.profile:
            self._profile(function)
        return function

    def _report(self, linked: Linked, start: float) -> CompileReport:
        now, before = time.perf_counter(), self._front_end
        return CompileReport(
            total=now - self._started + before.rewriting + before.translation,
            optimizer=self.optimized.seconds,
            validate=self.fgraph.validate_seconds,
            linker=now - start,
            thunks=linked.seconds,
            rewrites=self.optimized.rewrites,
            graph_cached=self.optimized.cached,
            kernels=linked.kernels,
            applys=len(self.fgraph.apply_nodes),
            dropped_checks=self.optimized.dropped_checks,
            front_end=before,
        )

    def _profile(self, function: Function) -> None:
        from opwise.modes.recording import record  # only programs that profile wait for it

        stats = self.profile
        rewrites = function.compile_report.rewrites if config.profile_optimizer else None
        stats.add(
            record(
                function, stats.flag_time_thunks, stats.ignore_first_call, config.profile_memory,
                rewrites.as_dict() if rewrites else None,
            )
        )  # fmt: skip

    # --- copies -----------------------------------------------------------------------------------

    def recipe(self, function: Function) -> tuple[Any, tuple[Any, ...]]:
        """Return (rebuild, arguments) that make an equal function; a pickle contains them.

        The graph as written is pickled, not the optimized one: the cache has that, where the
        hardware is the same.
        """
        values = [
            container if spec.value is not None and not spec.shared else None
            for spec, container in zip(self.inputs, function.input_storage, strict=True)
        ]
        return rebuild, (
            self.construction.arguments, self.mode, self.name, self.output_none, values,
            self.accept_inplace, function.trust_input,
        )  # fmt: skip

    @pause_garbage_collection()
    def copy_function(
        self,
        function: Function,
        swap: Mapping[Any, Any] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
        returns_list: bool = True,
    ) -> Function:
        """Return a function of the same graph; see ``Function.copy``.

        returns_list: it returns a list of its outputs, whatever the function returns.
        """
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
                        f"{old} has {old.type}, {new} has {new.type}. Swap in one of the same type."
                    )
            # what was swapped into this function may be swapped again
            earlier = {old: swap.get(new, new) for old, new in arguments["swap"].items()}
            arguments["swap"] = {**swap, **earlier}
        if returns_list:
            arguments["outputs"] = list(self.outputs)
        if name is None and self.name is not None:
            name = f"{self.name} copy"
        with thread_flags(**_BUILT_BEFORE):
            maker = FunctionMaker(
                construct(**arguments), self.mode, name=name,
                profile=stats_for(profile, name, self.mode),
                accept_inplace=self.accept_inplace, output_none=self.output_none,
            )  # fmt: skip
        return maker.create()


@pause_garbage_collection()
def rebuild(
    arguments: dict[str, Any], mode: Any, name: str | None, output_none: bool,
    values: Sequence[Any], accept_inplace: bool, trust_input: bool, profile: Any = None,
) -> Function:  # fmt: skip
    """Compile a function from the arguments of ``FunctionMaker.recipe``.

    profile: the ProfileStats to record in.
    """
    with thread_flags(**_BUILT_BEFORE):
        maker = FunctionMaker(
            construct(**arguments), mode, name=name, profile=profile,
            accept_inplace=accept_inplace, output_none=output_none,
            anew=config.reoptimize_unpickled_function,
        )  # fmt: skip
    function = maker.create(values)
    function.trust_input = trust_input
    return function


def _graph_of(construction: Construction, name: str | None) -> FunctionGraph:
    """Return the FunctionGraph of a construction."""
    specs = list(zip(construction.graph_inputs, construction.inputs, strict=True))
    interface = Interface(
        mutable=frozenset(var for var, spec in specs if spec.mutable),
        shared=frozenset(var for var, spec in specs if spec.shared),
        persistent=frozenset(var for var, spec in specs if spec.shared or spec.implicit),
        resident=frozenset(var for var, spec in specs if spec.resident),
        borrowed=frozenset(k for k, out in enumerate(construction.outputs) if out.borrow),
        updates={
            **{
                k: out.becomes
                for k, out in enumerate(construction.outputs)
                if out.becomes is not None
            },
            **construction.update_of,
        },
    )
    return FunctionGraph(
        construction.graph_inputs, construction.graph_outputs, features=[PreserveNames()],
        clone=False, interface=interface, name=name,
    )  # fmt: skip


def _compared(graph: Graph | WrittenGraph) -> list[Comparison]:
    """Return the lengths of inputs that a graph as written compares."""
    from opwise.optimizers import inputlengths  # only compiling needs it

    places = {var: i for i, var in enumerate(graph.inputs)}
    if isinstance(graph, WrittenGraph):
        own = {var: places[new] for var, new in graph.copies.items() if new in places}
        return inputlengths.comparisons(graph.order, own, graph.written)
    order = traversal.io_toposort(graph.inputs, graph.outputs)
    # rewrites will change these Applys
    return [one.settled() for one in inputlengths.comparisons(order, places, graph.outputs)]


def _dropped(compared: Sequence[Comparison], fgraph: FunctionGraph) -> list[Comparison]:
    """Return those lengths that no Apply of the optimized graph compares."""
    from opwise.optimizers import inputlengths  # only compiling needs it

    places = {var: i for i, var in enumerate(fgraph.inputs)}
    kept = inputlengths.comparisons(fgraph.toposort(), places, fgraph.outputs)
    return inputlengths.dropped(compared, kept)


def _inplace_refused(fgraph: FunctionGraph) -> TypeError:
    nodes = [n for n in fgraph.toposort() if n.op.destroy_map]
    return TypeError(
        "Graph must not contain inplace operations: "
        f"{', '.join(map(str, nodes))} overwrites its input. Use an Op that does not (the "
        "optimizer makes Ops work in place if that is safe), or function(..., "
        f"accept_inplace=True).{made_by(nodes[0])}"
    )


def _optimized(fgraph: FunctionGraph, mode: Any) -> Optimized:
    """Rewrite a graph in place by the rewrites of a mode."""
    start = time.perf_counter()
    dropped: list[str] = []
    with provenance.rewriting():
        if config.keep_shape_checks:
            from opwise.optimizers import shapechecks  # rarely needed

            with thread_flags(compute_test_value="off"):
                written = shapechecks.insert(fgraph)
            rewrites = mode.optimize(fgraph)
            with thread_flags(compute_test_value="off"):
                dropped = shapechecks.keep_dropped(fgraph, written)
        else:
            rewrites = mode.optimize(fgraph)
    seconds = time.perf_counter() - start
    _add_time(mode, seconds)
    return Optimized(fgraph, seconds, rewrites, dropped)


def _add_time(mode: Any, seconds: float) -> None:
    """Add the time of getting an optimized graph to that of a mode, which ProfileMode prints."""
    mode.optimizer_time = getattr(mode, "optimizer_time", 0.0) + seconds


def _compile_inside(fgraph: FunctionGraph, mode: Any, profiled: bool) -> None:
    """Compile the graphs inside Ops that have some, by ``op.compile_inside(node, mode, own)``.

    own: whether nothing else may run what is compiled, because it is timed for its Apply.
    """
    having = {key for key, op in fgraph.ops().items() if hasattr(op, "compile_inside")}
    if not having:
        return
    inside = mode.inside() if hasattr(mode, "inside") else mode
    for node in fgraph.toposort():
        if id(node.op) in having:
            node.op.compile_inside(node, inside, profiled or inside is not mode)


def _whole_memory(var: Variable) -> Variable:
    """Return the variable whose memory, all of it and as it is, another one has."""
    while (node := var.owner) is not None:
        if isinstance(node.op, ViewOp):
            var = node.inputs[0]
        elif var.index in node.op.destroy_map:
            var = node.inputs[node.op.destroy_map[var.index][0]]
        else:
            break
    return var


def _separate_outputs(fgraph: FunctionGraph, construction: Construction) -> None:
    """Insert copies so that no two outputs share memory, and no output shares an input's.

    Otherwise a result could change with an input, with another result, or in the next call. An
    update may stay in the memory of the value that it replaces. If both the input and the output
    allow it (borrow), they share memory.
    """
    roots = aliasing.groups(fgraph)
    position = {var: i for i, var in enumerate(fgraph.inputs)}
    n_outputs = len(construction.outputs)
    taken: dict[Variable, int] = {}
    # updates first: they keep the memory, and results that share it are copied
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
                and construction.outputs[i].place in (None, position.get(_whole_memory(out)))
            )
        else:
            copy = isinstance(root, Constant)
        if root in taken:
            copy, borrowed = True, False
        if not copy or (borrowed and out.owner is not None):
            taken[root] = i
            continue
        new = (view_op if borrowed else deep_copy_op)(out)
        new.owner._origins = out.owner.origins if out.owner is not None else ()
        fgraph.change_input("output", i, new, reason="separate_outputs")
