"""Error messages of failing Applys: the Apply, its inputs, the lines of the user's program.

The advice in them comes from ``remedies``, which is loaded when something fails.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from opwise.config import config
from opwise.errors import explanation, message_of, with_message
from opwise.graph import printing, provenance
from opwise.graph.apply import Apply
from opwise.graph.escaping import printable_lines
from opwise.graph.variable import Constant, Variable
from opwise.linkers import opwise_c
from opwise.tensor.creation import AllocEmpty
from opwise.tensor.gathered import Gathered

#: (variable, value, whether it is shared) of each slot
Footprint = Sequence[tuple[Variable, Any, bool]]


def annotated(
    exception: BaseException,
    node: Apply,
    order: Sequence[Apply] | None,
    values: Sequence[Any] | None = None,
    storage: Footprint | None = None,
) -> BaseException:
    """Return an exception of the same class whose text also says what failed and where.

    values: of the Apply's inputs, None if they are not known. storage: for the footprint that
    exception_verbosity=high prints. Exceptions that are not failures of the Apply, such as
    KeyboardInterrupt, are returned as they are.
    """
    if not isinstance(exception, Exception) or getattr(exception, "_opwise_annotated", False):
        return exception
    failed, given = node, values
    if isinstance(node.op, Gathered) and values is not None:
        failed, given = _part_that_failed(exception, node, values)
        order = order and [failed if each is node else each for each in order]
    details = explanation(
        lambda: describe_failure(exception, failed, order, given, storage),
        f"Apply node that caused the error: {type(node.op).__name__}",
    )
    said = plain = message_of(exception)
    if given is not None:
        said = explanation(lambda: _with_headline(plain, exception, failed, given), plain)
    text = printable_lines(f"{said}\n{details}")
    new = with_message(exception, text, printable_lines(details))
    vars(new).update(_opwise_annotated=True, node=node)
    return new.with_traceback(exception.__traceback__)


def _part_that_failed(
    exception: BaseException, node: Apply, values: Sequence[Any]
) -> tuple[Apply, Sequence[Any]]:
    """Return the gather or loop of a Gathered that failed, as an Apply, and its values."""
    if any(value is None or isinstance(value, opwise_c.NotComputed) for value in values):
        return node, values
    *gathers, loop = node.op.unfused(node.inputs)
    by_gathers = [n for n in node.origins if type(n.op) is type(gathers[0].op)]
    loop._origins = tuple(n for n in node.origins if n not in by_gathers) or node.origins
    operands, indices = node.op.divided(values)
    for part, whole in zip(loop.outputs, node.outputs, strict=True):
        part._clients = whole._clients
    for gather, (k, i) in zip(gathers, node.op.taken, strict=True):
        gather.outputs[0]._clients = {(loop, k): None}
        same = [n for n in by_gathers if _stands_for(gather.inputs[1], n.inputs[1])] or by_gathers
        same = [n for n in same if _stands_for(gather.inputs[0], n.inputs[0])] or same
        gather._origins = tuple(same) or node.origins
        table, index = operands[k], indices[i]
        if isinstance(exception, IndexError):
            at = index.astype(np.int64)
            if ((at < -len(table)) | (at >= len(table))).any():
                return gather, [table, index]
        else:
            operands[k] = table[index]
    return (node, values) if isinstance(exception, IndexError) else (loop, operands)


def _stands_for(var: Variable, of_user: Variable) -> bool:
    """Return whether a variable of an optimized graph is what one of the user's became."""
    if isinstance(var, Constant):
        return isinstance(of_user, Constant) and np.array_equal(var.data, of_user.data)
    if var.owner is not None:
        return of_user.owner in var.owner.origins
    return of_user.owner is None and of_user.name == var.name


def note_step(error: BaseException, node: Apply, step: int) -> None:
    """Add a note to what a step of a loop raised. node: the loop. step: its number, from 0."""
    error.add_note(f"It happened in {step_described(node, step)}; the first one is step 0.")


def step_described(node: Apply, step: int) -> str:
    """Return which step of which loop, and the user's line of the loop."""
    line = provenance.user_line(node)
    where = f' (File "{line[0]}", line {line[1]})' if line else ""
    return f"step {step} of {node.op}{where}"


class _Loops(threading.local):
    """The loops that run in Python in this thread, the outermost first."""

    def __init__(self) -> None:
        #: [the loop, the step that it computes]
        self.running: list[list[Any]] = []


_loops = _Loops()


@contextlib.contextmanager
def loop_running(node: Apply) -> Iterator[list[Any]]:
    """Register a loop while its steps run; yields a list whose second item is set to the step."""
    place = [node, 0]
    _loops.running.append(place)
    try:
        yield place
    finally:
        _loops.running.pop()


def steps_running() -> list[str]:
    """Return the steps of loops that run in Python in this thread, the innermost first.

    For monitors, which are called for the Applys inside.
    """
    return [step_described(node, step) for node, step in reversed(_loops.running)]


def describe_failure(
    exception: BaseException,
    node: Apply,
    order: Sequence[Apply] | None,
    values: Sequence[Any] | None,
    storage: Footprint | None = None,
) -> str:
    """Return the text that is added to the message of a failing Apply."""
    lines = [f"Apply node that caused the error: {node}"]
    if order is not None and node in order:
        lines.append(f"Toposort index: {order.index(node)}")
    lines.append(f"Inputs types: {[var.type for var in node.inputs]}")
    if values is not None:
        lines.append(f"Inputs shapes: {[_shape(v) for v in values]}")
        lines.append(f"Inputs strides: {[_strides(v) for v in values]}")
        with np.printoptions(legacy="1.25"):  # numbers without the name of their class
            shown = [_short(var, v) for var, v in zip(node.inputs, values, strict=True)]
            lines.append(f"Inputs values: {shown}")
        if config.exception_verbosity == "high":
            lines.append(f"Inputs type_num: {[_type_number(v) for v in values]}")
    clients = [
        ["output" if client == "output" else client for client, _ in out.clients]
        for out in node.outputs
    ]
    lines.append(f"Outputs clients: {clients}")
    lines.append(explanation(lambda: _where(node, values)))
    if values is not None:
        described = explanation(lambda: _inputs_described(node, values, storage))
        advice = explanation(lambda: _advice(exception, node, values))
        lines += filter(None, [described, advice])
    if config.exception_verbosity == "high":
        lines.append("\nDebugprint of the apply node: ")
        text = io.StringIO()
        printing.debugprint(node, file=text, stop_on_name=False, print_type=True)
        lines.append(text.getvalue())
        if storage is not None:
            lines.append(_footprint(storage))
    else:
        lines.append(
            "\nHINT: Use the Theano flag 'exception_verbosity=high' for a debugprint and storage "
            "map footprint of this apply node."
        )
    return "\n".join(lines)


def _where(node: Apply, values: Sequence[Any] | None) -> str:
    """Return where the user's program made what the Apply computes."""
    traces = [n for n in node.origins if n.trace]
    if not traces:
        return (
            "\nHINT: Re-running with most Theano optimization disabled could give you a back-trace "
            "of when this node was created. This can be done with by setting the Theano flag "
            "'optimizer=fast_compile'. If that does not work, Theano optimizations can be disabled "
            "with 'optimizer=None'."
        )
    first = _origin_that_failed(node, traces, values) or traces[0]
    text = (
        "\nBacktrace when the node is created(use Theano flag traceback.limit=N to make it "
        "longer):\n" + provenance.format_trace(first.trace)
    )
    lines = _user_lines(traces)
    if len(lines) > 1:
        text += "It computes the expressions at:\n" + "".join(f"  {line}\n" for line in lines)
    return text.rstrip("\n")


def _origin_that_failed(
    node: Apply, origins: Sequence[Apply], values: Sequence[Any] | None
) -> Apply | None:
    """Return which of the user's Applys in a fused loop failed, None if several lines may have."""
    if len(origins) < 2 or not hasattr(node.op, "scalar_op"):
        return None
    if values is None or any(value is None for value in values):
        return None
    failed = getattr(_remedies().step_that_failed(node, values), "row", None)
    if failed is None:
        return None
    rows = {n: getattr(getattr(n.op, "scalar_op", None), "row", None) for n in origins}
    matching = [n for n, row in rows.items() if row is failed]
    if len({provenance.user_line(n) for n in matching}) != 1:
        return None
    return matching[0]


def _user_lines(made: Iterable[Apply | Variable], with_text: bool = False) -> list[str]:
    """Return ``File "...", line N`` of each line that made one of these Applys or variables."""
    places = dict.fromkeys(filter(None, (provenance.line_of(each.made_at) for each in made)))
    lines = []
    for filename, number in places:
        text = linecache.getline(filename, number).strip() if with_text else ""
        lines.append(f'File "{filename}", line {number}' + (f": {text}" if text else ""))
    return lines


def _inputs_described(node: Apply, values: Sequence[Any], storage: Footprint | None) -> str:
    """Return lines that name each input, its shape, and where it was made."""
    shared = {var for var, _, is_shared in storage or () if is_shared}
    lines = []
    made: list[Apply | Variable]
    for i, (var, value) in enumerate(zip(node.inputs, values, strict=True)):
        if isinstance(var, Constant):
            continue
        kind, made = "a shared variable" if var in shared else "an input of the function", [var]
        if var.owner is not None:
            kind = "not computed" if isinstance(value, opwise_c.NotComputed) else "computed"
            made = [n for n in var.owner.origins if n.trace]
        shape = f" of shape {value.shape}" if hasattr(value, "shape") else ""
        lines.append(f"  input {i}: {var}{shape}, {kind}")
        lines += [f"    {line}" for line in _user_lines(made, with_text=True)]
    return "\n".join(["\nIts inputs:", *lines]) if lines else ""


def _with_headline(said: str, exception: BaseException, node: Apply, values: Sequence[Any]) -> str:
    first = _remedies().headline(exception, node, values)
    return f"{first}\n{said}" if first else said


def _advice(exception: BaseException, node: Apply, values: Sequence[Any]) -> str:
    advice = _remedies().remedy(exception, node, values)
    return f"\nWhat to do: {advice}" if advice else ""


def _remedies() -> ModuleType:
    from opwise.linkers import remedies  # only failures need it

    return remedies


def _shape(value: Any) -> Any:
    return getattr(value, "shape", "No shapes")


def _strides(value: Any) -> Any:
    return getattr(value, "strides", "No strides")


def _type_number(value: Any) -> Any:
    return value.dtype.num if hasattr(value, "dtype") else ""


def _short(var: Variable, value: Any) -> Any:
    if var.owner is not None and isinstance(var.owner.op, AllocEmpty):
        return "not initialized"
    if isinstance(value, opwise_c.NotComputed):
        return "not computed"
    if isinstance(value, np.ndarray | np.generic | int | float) and np.size(value) <= 5:
        return value
    return "not shown" if value is not None else None


def _footprint(storage: Footprint) -> str:
    """Return the sizes of all values, the largest first."""
    rows: list[tuple[int, str]] = []
    total = total_inputs = 0
    for var, value, is_shared in storage:
        if not isinstance(value, np.ndarray):
            continue
        kind = "Input" if var.owner is None else ""
        shared = "Shared " if is_shared else ""
        total += value.nbytes
        total_inputs += value.nbytes if kind else 0
        label = f", {shared}{kind}" if kind and not isinstance(var, Constant) else ""
        rows.append(
            (
                value.nbytes,
                f" - {var}{label}, Shape: {value.shape}, ElemSize: {value.itemsize} Byte(s), "
                f"TotalSize: {value.nbytes} Byte(s)",
            )
        )
    rows.sort(key=lambda row: -row[0])
    return "\n".join(
        [
            "Storage map footprint:",
            *(text for _, text in rows),
            f" TotalSize: {total} Byte(s) {total / 1e9:.3f} GB",
            f" TotalSize inputs: {total_inputs} Byte(s) {total_inputs / 1e9:.3f} GB",
        ]
    )
