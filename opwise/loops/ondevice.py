"""How loops run on a device: those whose step runs there as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opwise.gpu.lowering import SHAPE_OPS, Call, Lowered, lower, lowers_by
from opwise.gpu.placement.mincut import can_be_resident
from opwise.gpu.runtime.device import Device
from opwise.gpu.runtime.loops import RepeatedStep, Rows, Written, with_contiguous_rows
from opwise.graph.apply import Apply
from opwise.graph.traversal import ancestors, io_toposort
from opwise.graph.variable import Constant, Var
from opwise.loops.layout import Parts
from opwise.loops.op import Scan
from opwise.loops.run import check, misfit
from opwise.scalar import dtypes
from opwise.tensor.type import TensorType

#: how many steps a loop has, for its placement, if only a call knows
_STEPS = 100


@lowers_by(Scan)
def _loop(node: Apply) -> Call | str:
    op = node.op
    compiled = getattr(node.tag, "inside", None)
    if compiled is not None and not getattr(compiled.fn, "repeated", False):
        return "its step was compiled before the mode placed any Apply on the device"
    if op.mode is not None:
        return "its step has a mode of its own"
    if op.layout.objects:
        return "its steps hand over objects, which stay on the host"
    constants = op.step_inputs.constants
    rows = op.inputs[: len(op.inputs) - len(constants)]
    if not all(map(can_be_resident, (*rows, *op.outputs))):
        return "not all of its rows are arrays that a device can hold"
    step = _OfStep(op)
    if step.reason is not None:
        return f"its step runs on the host: {step.reason}"
    count = node.inputs[0]
    times = int(count.data) if isinstance(count, Constant) else _STEPS
    first = len(node.inputs) - len(constants)
    host = [0, *(first + k for k, var in enumerate(constants) if var in step.on_host)]
    return Call(_run, host=tuple(host), inside=tuple(step.lowered), times=max(0, times))


class _OfStep:
    """What the device needs to run a step.

    ``on_host``: constants of the loop that must lie on the host, such as shapes. ``lowered``: the
    Applys of the step, each with how the device runs it. ``reason``: why the device cannot run the
    step, or None.
    """

    def __init__(self, op: Scan) -> None:
        self.reason: str | None = None
        self.lowered: list[tuple[Apply, Lowered]] = []
        constants = op.step_inputs.constants
        order = io_toposort(op.inputs, op.outputs)
        found = {node: lower(node) for node in order}
        wanted = [var for node in order for var in _wanted_on_host(node, found[node])]
        reached = set(ancestors(wanted))
        self.on_host = {
            var for var in constants
            if not can_be_resident(var) or (var in reached and _is_small(var))
        }  # fmt: skip
        known = set(self.on_host)
        for node in order:
            if isinstance(node.op, SHAPE_OPS) or all(map(_is_known(known), node.inputs)):
                known.update(node.outputs)
                continue
            lowered = found[node]
            if isinstance(lowered, str):
                self.reason = f"{node.op}: {lowered}"
                return
            if not all(_is_known(known)(var) for var in _wanted_on_host(node, lowered)):
                self.reason = f"{node.op}: it needs numbers on the host, which would wait for them"
                return
            self.lowered.append((node, lowered))


def _is_known(known: set[Var]) -> Callable[[Var], bool]:
    return lambda var: var in known or isinstance(var, Constant)


def _wanted_on_host(node: Apply, lowered: Lowered | str) -> list[Var]:
    """Return the inputs of an Apply that must lie on the host."""
    if isinstance(node.op, SHAPE_OPS):
        return []
    if isinstance(lowered, str):
        return node.inputs
    return [node.inputs[i] for i in lowered.host]


def _is_small(var: Var) -> bool:
    """Return whether a variable holds indices or lengths."""
    return isinstance(var.type, TensorType) and var.type.ndim <= 1 and (
        var.type.dtype in dtypes.INTEGERS
    )  # fmt: skip


# --- running --------------------------------------------------------------------------------------


def _run(device: Device, node: Apply, inputs: list[Any]) -> list[Any]:
    """Run a loop. inputs: arrays of the device, and values of the host for some constants."""
    op, n_steps = node.op, int(inputs[0])
    layout = op.layout
    given = layout.loop_inputs(inputs[1:])
    check(layout, n_steps, given, str(op))
    step, vm = getattr(node.tag, "repeated", None), node.tag.inside.fn
    if step is None or step.vm is not vm:
        step = node.tag.repeated = RepeatedStep(vm)
    given.sequences = [with_contiguous_rows(device, rows) for rows in given.sequences]

    def begin() -> tuple[list[Rows], list[Written]]:
        return _begin(device, op, given, n_steps)

    if not n_steps:
        reads, writes = begin()
        return [*(out.rows.array for out in writes if out.rows is not None),
                *_no_rows(device, op, step, reads, given.constants)]  # fmt: skip
    return step(n_steps, given.constants, begin, layout.until, misfit, node)


def _begin(
    device: Device, op: Scan, given: Parts[Any], n_steps: int
) -> tuple[list[Rows], list[Written]]:
    """Return the rows that a step reads, and its outputs, before the first step."""
    layout = op.layout
    reads = [Rows(rows) for rows in given.sequences]
    writes: list[Written] = []
    for k, ((first,), taps, before) in enumerate(
        zip(given.states, layout.taps, layout.rows_before, strict=True)
    ):
        count = before + n_steps
        kept = layout.kept[k]
        rows = device.empty((min(count, kept or count), *first.shape[1:]), first.dtype)
        rows[:before] = first
        buffer = len(reads) if kept == 1 else None
        reads += [Rows(rows, before - tap) for tap in taps]
        writes.append(Written(f"state {k}", Rows(rows, before), buffer))
    writes += [
        Written(f"output {k}", None, kept=kept)
        for k, kept in enumerate(layout.kept[len(layout.taps) :])
    ]
    return reads, writes


def _no_rows(
    device: Device, op: Scan, step: RepeatedStep, reads: Sequence[Rows], constants: Sequence[Any]
) -> list[Any]:
    """Return results of no steps, in the shape of those of a step on zeros."""
    results = op.step_outputs.results
    start = len(op.layout.taps)
    shapes: list[tuple[int, ...]]
    try:
        values = step.first_values(reads, constants)
        shapes = [value.shape for value in values[start : start + len(results)]]
    except Exception:  # the step may divide by what it is given, or invert it
        shapes = [(0,) * row.type.ndim for row in results]
    return [
        device.empty((0, *shape), row.type.numpy_dtype)
        for shape, row in zip(shapes, results, strict=True)
    ]
