"""Scan: an Op that repeats a step, a graph, and collects what the steps compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from opwise.compile.function import function
from opwise.compile.io import In, Out
from opwise.config import config, thread_flags
from opwise.graph.apply import Apply
from opwise.graph.features import DevicePlacement
from opwise.graph.op import Op
from opwise.graph.traversal import (
    equal_computations,
    hash_of_computations,
    io_toposort,
    own_copy,
)
from opwise.graph.variable import Var
from opwise.linkers import kernels
from opwise.loops import derivatives
from opwise.loops.layout import Layout, Parts, layout_of
from opwise.loops.run import run
from opwise.optimizers.shapefeature import inner_shapes
from opwise.tensor.elemwise import elemwise
from opwise.tensor.shape import shape_i_op
from opwise.tensor.type import TensorType, tensor_type


class Scan(Op):
    """An Op that repeats a step.

    inputs, outputs: the graph of the step, whose inputs are all different variables without an
    owner. layout: what each of them is, and what the inputs and outputs of the Op are. A sequence
    has one row for each step; the output of a state has its initial rows first.
    name: printed in graphs, profiles and messages. truncate_gradient: the number of steps, from
    the last one back, through which gradients flow; -1 for all. mode: compiles the step (default:
    the mode of the function around it). profile: a ProfileStats for the step, or whether, or under
    which name, to make one. allow_gc: whether intermediate values are released during a step,
    instead of at the end of the loop (default: the flag scan.allow_gc). fits: whether the sequences
    have a row for each step by construction. in_place: whether the step may overwrite values of
    states that no later step reads.
    """

    profile_kind = "loop"
    _hash_of_step: int | None = None

    def __init__(
        self,
        inputs: Sequence[Var],
        outputs: Sequence[Var],
        layout: Layout,
        name: str | None = None,
        truncate_gradient: int = -1,
        mode: Any = None,
        profile: Any = False,
        allow_gc: bool | None = None,
        fits: bool = False,
        in_place: bool = False,
    ) -> None:
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.layout = layout
        self.name = name
        self.truncate_gradient = truncate_gradient
        self.mode = mode
        self.profile = profile
        self.allow_gc = allow_gc
        self.fits = fits
        self.in_place = in_place
        self._fn: Callable[..., Any] | None = None

    @classmethod
    def of(
        cls,
        inputs: Parts[Var],
        outputs: Parts[Var],
        taps: Sequence[Sequence[int]],
        last: Mapping[int, int] = MappingProxyType({}),
        **kwargs: Any,
    ) -> Scan:
        """Return the Op that repeats a step, in variables of its own.

        inputs, outputs: of the step. taps: of each state, as numbers of steps back. last: see
        Layout. kwargs: of the class.
        """
        given, computed = own_copy(inputs.flat(), outputs.flat())
        return cls(given, computed, layout_of(inputs, taps, outputs, last), **kwargs)

    def like(
        self,
        inputs: Parts[Var],
        outputs: Parts[Var],
        taps: Sequence[Sequence[int]],
        what: str,
        last: Mapping[int, int] = MappingProxyType({}),
    ) -> Scan:
        """Return an Op that repeats another step, compiled in the same way.

        what: put before the name.
        """
        return self.of(
            inputs, outputs, taps, last, name=f"{what}_{self.name or 'scan_fn'}", mode=self.mode,
            profile=self.profile, allow_gc=self.allow_gc, fits=self.fits,
        )  # fmt: skip

    def variant(
        self,
        inputs: Parts[Var],
        outputs: Parts[Var],
        taps: Sequence[Sequence[int]],
        last: Mapping[int, int] = MappingProxyType({}),
    ) -> Scan:
        """Return an Op that repeats this step in another form, under the same name."""
        return self.of(
            inputs, outputs, taps, last, name=self.name, mode=self.mode, profile=self.profile,
            truncate_gradient=self.truncate_gradient, allow_gc=self.allow_gc, fits=self.fits,
        )  # fmt: skip

    def overwriting(self) -> Scan:
        """Return an Op that does the same and computes new values over old ones."""
        return type(self)(
            self.inputs, self.outputs, self.layout, self.name, self.truncate_gradient, self.mode,
            self.profile, self.allow_gc, self.fits, in_place=True,
        )  # fmt: skip

    def with_all_rows(self) -> Scan:
        """Return an Op that does the same and keeps all rows of every output."""
        return self.variant(self.step_inputs, self.step_outputs, self.layout.taps)

    def repeat(self, n_steps: Var, given: Parts[Var]) -> Parts[Var]:
        """Return the outputs of the loop; given: its inputs."""
        outputs: list[Var] = self(n_steps, *given.flat(), return_list=True)
        return self.layout.loop_outputs(outputs)

    @property
    def step_inputs(self) -> Parts[Var]:
        """The inputs of the step by part."""
        return self.layout.step_inputs(self.inputs)

    @property
    def step_outputs(self) -> Parts[Var]:
        """The outputs of the step by part."""
        return self.layout.step_outputs(self.outputs)

    @property
    def chooses(self) -> bool:
        """Whether its step has conditions, and computes only the branches that are taken."""
        return any(node.op.branches for node in io_toposort(self.inputs, self.outputs))

    # --- building graphs --------------------------------------------------------------------------

    def make_node(self, n_steps: Var, *inputs: Var) -> Apply:
        given = self.layout.loop_inputs(inputs)
        step = self.step_inputs
        converted = Parts(
            sequences=[
                _rows_of(row.type).filter_variable(var)
                for row, var in zip(step.sequences, given.sequences, strict=True)
            ],
            states=[
                [_rows_of(values[0].type).filter_variable(first)]
                for values, (first,) in zip(step.states, given.states, strict=True)
            ],
            results=[],
            objects=_filtered(step.objects, given.objects),
            constants=_filtered(step.constants, given.constants),
            condition=[],
        )
        out = self.step_outputs
        types = [
            *(_rows_of(new.type) for (new,) in out.states),
            *(_rows_of(row.type) for row in out.results),
            *(new.type for new in out.objects),
        ]
        return Apply(self, [n_steps, *converted.flat()], [type_.make_variable() for type_ in types])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        layout = self.layout
        n_steps: Var = node.inputs[0]
        given, shape = layout.loop_inputs(node.inputs[1:]), layout.loop_inputs(shapes[1:])
        outputs = layout.loop_outputs(node.outputs)
        states: list[Any] = []
        for k, ((first,), (out,)) in enumerate(zip(shape.states, outputs.states, strict=True)):
            states.append((self._count(k, n_steps, out), *first[1:]))
        varying: list[Any] = [None] * (len(self.inputs) - len(given.constants))
        rows = inner_shapes(
            self.inputs,
            self.step_outputs.results,
            varying + given.constants,
            [
                *(s[1:] for s in shape.sequences),
                *(
                    s[1:]
                    for (s,), taps in zip(shape.states, layout.taps, strict=True)
                    for _ in taps
                ),
                *shape.objects,
                *shape.constants,
            ],
            read=lambda k, d: shape_i_op(d + 1)(outputs.results[k]),
        )
        results = [
            (self._count(k, n_steps, out), *(row or ()))
            for k, (out, row) in enumerate(zip(outputs.results, rows, strict=True), len(states))
        ]
        return [*states, *results, *([None] * layout.objects)]

    def _count(self, k: int, n_steps: Var, out: Var) -> Any:
        """Return how many rows output ``k`` has."""
        layout = self.layout
        before = layout.rows_before[k] if k < len(layout.taps) else 0
        kept = layout.kept[k]
        if kept is not None and kept == before:
            return kept
        if layout.until:
            return shape_i_op(0)(out)
        rows = n_steps + before if before else n_steps
        return rows if kept is None else elemwise("minimum")(rows, np.int64(kept))

    def do_constant_folding(self, node: Apply) -> bool:
        return False  # its step would be compiled for one call

    # --- running ----------------------------------------------------------------------------------

    def compile_inside(self, node: Apply, mode: Any, own: bool = False) -> None:
        """Compile the step for an Apply of a function with this mode; called by FunctionMaker.

        own: no other Apply ever runs what is compiled, as threads may run copies of a function.
        """
        placement = node.fgraph.find_feature(DevicePlacement) if node.fgraph is not None else None
        on_host = placement.read_on_host(node) if placement is not None else None
        if on_host is None:
            node.tag.inside = self._fn = self._compiled(mode)
        else:
            behind = len(self.inputs) - len(node.inputs)  # a constant's position in the step
            node.tag.inside = self._compiled_for_device({i + behind for i in on_host if i}, mode)

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        self.perform_with(
            getattr(node.tag, "inside", None) or self.fn, node, inputs, output_storage
        )

    def perform_with(
        self, step: Callable[..., Any], node: Apply, inputs: Any, output_storage: Any
    ) -> None:
        """Run the loop. step: computes the outputs of one step from its inputs."""
        given = self.layout.loop_inputs(inputs[1:])
        ranks = [(row.type.dtype, row.type.ndim) for row in self.step_outputs.results]
        try:
            values = run(self.layout, step, int(inputs[0]), given, node, ranks)
        finally:
            if config.allow_gc and hasattr(step, "free"):
                step.free()  # what it kept from step to step
        for storage, value in zip(output_storage, values, strict=True):
            storage[0] = value

    @property
    def fn(self) -> Callable[..., Any]:
        """The compiled step, for runs outside a function, such as those on test values."""
        if self._fn is None:
            self._fn = self._compiled(config.mode)
        return self._fn

    def _compiled(self, mode: Any) -> Callable[..., Any]:
        oldest = self.oldest_values() if self.in_place else {}
        overwritten = set(oldest.values())
        inputs = [
            In(var, mutable=True, borrow=True) if i in overwritten else var
            for i, var in enumerate(self.inputs)
        ]
        # rows are written one by one: a new value that were left in the row of another state, or
        # moved within its own, would be lost
        outputs = [
            Out(var, borrow=k in oldest and var not in self.inputs, place=oldest.get(k))
            for k, var in enumerate(self.outputs)
        ]
        token = kernels.demanded.set(True)
        try:
            with thread_flags(compute_test_value="off", warn_float64="ignore"):
                compiled = function(
                    inputs, outputs, mode=self.mode or mode, name=str(self), profile=self._stats(),
                    on_unused_input="ignore",
                )  # fmt: skip
        finally:
            kernels.demanded.reset(token)
        compiled.trust_input = True
        if hasattr(compiled.fn, "timing"):  # DebugMode times nothing
            compiled.fn.timing.inside = True
        released = config.scan.allow_gc if self.allow_gc is None else self.allow_gc
        # what a loop inside keeps is released only by the VM around it
        if released or not any(isinstance(n.op, Scan) for n in compiled.maker.fgraph.apply_nodes):
            compiled.fn.allow_gc = released
        return compiled

    def oldest_values(self) -> dict[int, int]:
        """Return the inputs of the step that no later step reads: {state: position of its input}.

        The new value of a state that keeps no more rows than its taps reach takes the place of the
        oldest one.
        """
        found, position = {}, self.layout.sequences
        for k, taps in enumerate(self.layout.taps):
            if self.layout.kept[k] == max(taps):
                found[k] = position + taps.index(max(taps))
            position += len(taps)
        return found

    def _stats(self) -> Any:
        """Return what records the step by itself, as the argument ``profile`` of scan says."""
        if not self.profile:
            return False
        from opwise.profiling.stats import ProfileStats, ScanProfileStats  # rarely needed

        if isinstance(self.profile, ProfileStats):
            return self.profile
        return ScanProfileStats(name=self.profile if isinstance(self.profile, str) else self.name)

    def _compiled_for_device(self, on_host: set[int], mode: Any) -> Callable[..., Any]:
        """Return the step, compiled for rows on the device. on_host: inputs that lie elsewhere."""
        overwritten = {self.step_inputs.states[k][0] for k in self.layout.only_last}
        inputs = [
            In(var) if i in on_host
            else _OnDevice(var, mutable=var in overwritten, borrow=var in overwritten)
            for i, var in enumerate(self.inputs)
        ]  # fmt: skip
        outputs = [Out(var, borrow=True) for var in self.outputs]
        with thread_flags(compute_test_value="off", warn_float64="ignore"):
            return function(
                inputs, outputs, mode=mode, name=str(self), profile=False, on_unused_input="ignore"
            )

    # --- derivatives ------------------------------------------------------------------------------

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return derivatives.connections(self)

    def L_op(self, inputs: Any, outputs: Any, output_gradients: Any) -> list[Any]:
        return derivatives.gradients(self, inputs, outputs, output_gradients)

    def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
        return derivatives.in_direction(self, inputs, eval_points)

    # --- identity ---------------------------------------------------------------------------------

    def _settings(self) -> tuple[Any, ...]:
        return (
            self.layout, self.name, self.truncate_gradient, self.mode, self.profile, self.allow_gc,
            self.fits, self.in_place, tuple(var.type for var in self.inputs),
            tuple(var.type for var in self.outputs),
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self._settings() == other._settings()
            and equal_computations(self.outputs, other.outputs, self.inputs, other.inputs)
        )

    def __hash__(self) -> int:
        # with the step: many loops of one program may differ in nothing else
        if self._hash_of_step is None:
            self._hash_of_step = hash_of_computations(self.outputs, self.inputs)
        return hash((type(self), self._settings(), self._hash_of_step))

    def inner_graph(self, node: Apply) -> tuple[list[Var], dict[Var, Var]]:
        """Return the outputs of the step, and for each of its inputs that of the loop.

        They are those of the compiled step if the Apply is part of a function.
        """
        compiled = getattr(node.tag, "inside", None)
        fgraph = compiled.maker.fgraph if compiled is not None else None
        outputs = self.outputs if fgraph is None else fgraph.outputs
        given = self.layout.loop_inputs(node.inputs[1:])
        step = self.step_inputs if fgraph is None else self.layout.step_inputs(fgraph.inputs)
        inner_to_outer = dict(zip(step.sequences, given.sequences, strict=True))
        for values, (first,) in zip(step.states, given.states, strict=True):
            inner_to_outer.update(dict.fromkeys(values, first))
        inner_to_outer.update(zip(step.objects, given.objects, strict=True))
        inner_to_outer.update(zip(step.constants, given.constants, strict=True))
        return outputs, inner_to_outer

    def __str__(self) -> str:
        kind = "while" if self.layout.until else "for"
        return f"{kind}{{cpu,{self.name or 'scan_fn'}}}"

    @property
    def _inner_outputs(self) -> Sequence[Var]:
        return self.outputs

    def __getstate__(self) -> dict[str, Any]:
        # compiled again where it is loaded, where hashes differ
        return {**vars(self), "_fn": None, "_hash_of_step": None}


class _OnDevice(In):
    """An input of a step whose values lie on the device."""

    resident = True


def _rows_of(row: Any) -> TensorType:
    """Return the type of an array with rows of a type."""
    return tensor_type(row.dtype, (False, *row.broadcastable))


def _filtered(own: Sequence[Var], given: Sequence[Var]) -> list[Var]:
    return [a.type.filter_variable(b) for a, b in zip(own, given, strict=True)]
