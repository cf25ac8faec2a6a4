"""The exceptions of DebugMode: what differs and by how much, and the lines of the user's program.

Programs parse Theano's lines in these texts: they stay as Theano had them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise import errors
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.printing import debugprint
from opwise.graph.variable import Variable
from opwise.scalar import dtypes

#: the most characters of a value that are printed
_LONGEST = 800
#: how many Applys deep a graph is printed
_DEPTH = 6


def bad_output(
    variable: Variable, thunk1: str, expected: Any, thunk2: str, value: Any, inputs: Sequence[Any],
    error: type[errors.BadThunkOutput] = errors.BadThunkOutput,
) -> errors.BadThunkOutput:  # fmt: skip
    """Return the error for an output of an Apply that two thunks computed differently.

    thunk1, thunk2: their names in the report. inputs: the values of the Apply's inputs.
    """
    node = variable.owner
    text = (
        f"{errors.BadThunkOutput.__name__}\n"
        f"  Apply   : {node}\n"
        f"  op      : {type(node.op)}\n"
        f"  Outputs Type: {variable.type}\n"
        f"  Outputs Shape: {_attribute(expected, 'shape')}\n"
        f"  Outputs Strides: {_attribute(expected, 'strides')}\n"
        f"  Inputs Type : {[v.type for v in node.inputs]}\n"
        f"  Inputs Shape: {[_attribute(v, 'shape') for v in inputs]}\n"
        f"  Inputs Strides: {[_attribute(v, 'strides') for v in inputs]}\n"
        f"  Inputs values: {_input_values(inputs)}\n"
        f"  Bad Variable: {variable}\n"
        f"  thunk1  : {thunk1}\n"
        f"  thunk2  : {thunk2}\n"
        "           : shape, dtype, strides, min, max, n_inf, n_nan:\n"
        f"  Expected : {_summary(expected)}\n"
        f"  Value    : {_summary(value)}\n"
        f"  expected    : {_short(expected)}\n"
        f"  value    : {_short(value)}\n"
    )
    differences = _Differences(variable, expected, value)
    text += differences.table(relative_to_both=False) + differences.largest()
    text += _tolerances(variable)
    return error(
        text + written_at(node), r=variable, thunk1=thunk1, val1=expected, thunk2=thunk2,
        val2=value, inputs_val=inputs,
    )  # fmt: skip


def bad_strides(
    variable: Variable, expected: np.ndarray, value: np.ndarray, inputs: Sequence[Any]
) -> errors.BadCLinkerOutput:
    """Return the error for an output whose strides differ between Python and C."""
    node = variable.owner
    return errors.BadCLinkerOutput(
        stride_text(variable, expected, value) + written_at(node), r=variable, thunk1="perform",
        val1=expected, thunk2="c_code", val2=value, inputs_val=inputs,
    )  # fmt: skip


def stride_text(variable: Variable, expected: np.ndarray, value: np.ndarray) -> str:
    """Return a line on an output whose strides differ between Python and C."""
    return (
        f"Stride mismatch: {variable} of {variable.owner} has shape {value.shape}; strides from "
        f"Python {expected.strides}, from C {value.strides}"
    )


def bad_destroy_map(
    node: Apply, index: int, old: Any, new: Any, perform: str
) -> errors.BadDestroyMap:
    """Return the error for an input that an Op overwrote and its destroy_map does not declare.

    perform: what ran: 'py', 'c' or 'cuda'.
    """
    text = (
        f"\n  node: {node}\n"
        f"  perform: {perform}\n"
        f"  node.inputs: {[(str(v), id(v)) for v in node.inputs]}\n"
        f"  destroy_map: {node.op.destroy_map}\n"
        f"  changed input idx: {index}\n"
        f"  changed input type: {node.inputs[index].type}\n"
        f"  repr (old val): {_short(repr(old))}\n"
        f"  repr (new val): {_short(repr(new))}\n"
    )
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        text += _overwriting(old, new)
    text += (
        "\n  Hint: this can also be caused by a deficient values_eq_approx() or __eq__() "
        "implementation [which compared input values]\n"
        f"  The Op overwrites this input: declare destroy_map = {{<output>: [{index}]}}, or work "
        "on a copy.\n"
    )
    return errors.BadDestroyMap(
        text + written_at(node), node=node, idx=index, old_val=old, new_val=new, perform=perform
    )


def _overwriting(old: np.ndarray, new: np.ndarray) -> str:
    """Return the lines on how an array was changed in place."""
    text = (
        f"  value dtype (new <space> old): {new.dtype} {old.dtype}\n"
        f"  value shape (new <space> old): {new.shape} {old.shape}\n"
    )
    if old.shape == new.shape and old.size and old.dtype.kind in "biuf":
        change = _number(new) - _number(old)
        places = np.argwhere(_differ(new, old))
        text += (
            f"  value min (new <space> old): {new.min()} {old.min()}\n"
            f"  value max (new <space> old): {new.max()} {old.max()}\n"
            f"  value min (new-old): {change.min()}\n"
            f"  value max (new-old): {change.max()}\n"
            f"  value argmin (new-old): {_index(change.argmin(), change.shape)}\n"
            f"  value argmax (new-old): {_index(change.argmax(), change.shape)}\n"
            f"  location of first 10 mismatches: {places[:10]}\n"
        )
    return text


def bad_view_map(
    node: Apply, output: int, value: Any, inputs: Sequence[int] | None = None,
    others: Sequence[int] | None = None,
) -> errors.BadViewMap:  # fmt: skip
    """Return the error for an output that shares memory without a declaration in view_map.

    inputs, others: the inputs and the other outputs that it shares memory with, by position.
    """
    text = (
        f"\n  node: {node}\n"
        f"  node.inputs: {[(str(v), id(v)) for v in node.inputs]}\n"
        f"  node.outputs: {[(str(v), id(v)) for v in node.outputs]}\n"
        f"  view_map: {node.op.view_map}\n"
        f"  destroy_map: {node.op.destroy_map}\n"
        f"  aliased output: {output}\n"
        f"  aliased output storage: {_short(value)}\n"
    )
    if inputs:
        text += (
            f"  aliased to inputs: {inputs}\n"
            f"  The output shares memory with these inputs: declare view_map = {{{output}: "
            f"{inputs}}}, or return a copy.\n"
        )
    if others:
        text += f"  aliased to outputs: {others}\n"
    return errors.BadViewMap(
        text + written_at(node), node=node, output_idx=output, out_storage=value,
        in_alias_idx=inputs, out_alias_idx=others,
    )  # fmt: skip


def invalid_value(
    variable: Variable, value: Any, hint: str = "none", specific: object = "none",
    client: Apply | None = None,
) -> errors.InvalidValueError:  # fmt: skip
    """Return the error for a value that does not fit its variable's type, or is not finite.

    hint: where the value comes from. specific: what is wrong with it. client: what reads it.
    """
    is_array = hasattr(value, "dtype")
    ordered = is_array and np.size(value) and value.dtype.kind in "biuf"
    fields = {
        "type(variable)": variable.type,
        "variable": variable,
        "type(value)": type(value),
        "dtype(value)": value.dtype if is_array else "N/A",
        "shape(value)": value.shape if is_array else "N/A",
        "value": _short(value, 100),
        "min(value)": np.min(value) if ordered else "N/A",
        "max(value)": np.max(value) if ordered else "N/A",
        "isfinite": bool(np.all(np.isfinite(value))) if ordered else "N/A",
        "client_node": client,
        "hint": hint,
        "specific_hint": specific,
        "context": "...\n" + _graph(variable, depth=12, types=False),
    }
    text = "InvalidValueError\n" + "".join(
        f"        {name:<14} = {content}\n" for name, content in fields.items()
    )
    node = variable.owner if variable.owner is not None else client
    if node is not None:
        text += written_at(node)
    elif variable.made_at:
        text += "  Written at:\n" + _indented(provenance.format_trace(variable.made_at))
    return errors.InvalidValueError(
        text, r=variable, v=value, client_node=client, hint=hint, specific_hint=specific
    )


def bad_optimization(
    old: Variable, new: Variable, expected: Any, value: Any, reason: str, stage: str,
    node: Apply | None, details: str = "",
) -> errors.BadOptimization:  # fmt: skip
    """Return the error for a replacement that changed a value.

    old, new: variables of the graphs at the time of the replacement. node: the Apply whose lines
    in the user's program are printed. details: further lines of the report.
    """
    old_graph, new_graph = _graph(old), _graph(new)
    differences = _Differences(old, expected, value)
    text = (
        f"{errors.BadOptimization.__name__} Error \n"
        f"  Variable: id {id(new)} {new}\n"
        f"  Op {new.owner}\n"
        f"  Value Type: {type(value)}\n"
        f"  Old Value shape, dtype, strides: {_layout(expected)}\n\n"
        f"  Old Value:  {_short(expected)}\n"
        f"  New Value shape, dtype, strides: {_layout(value)}\n\n"
        f"  New Value:  {_short(value)}\n"
        f"{differences.table(relative_to_both=True)}{differences.largest()}\n"
        f"  Reason:  {reason}\n"
    )
    if stage:
        text += f"  Stage:  {stage}\n"
    text += (
        details
        + written_at(node)
        + f"  Old Graph:\n{old_graph}\n  New Graph:\n{new_graph}\n"
        + "Hint: relax the tolerance by setting tensor.cmp_sloppy=1\n"
        "  or even tensor.cmp_sloppy=2 for less-strict comparison\n"
    )
    return errors.BadOptimization(
        text, old_r=old, new_r=new, old_r_val=expected, new_r_val=value, reason=reason,
        stage=stage, old_graph=old_graph, new_graph=new_graph,
    )  # fmt: skip


def written_at(node: Apply | None) -> str:
    """Return the lines of the user's program that an Apply computes, '' if none is known."""
    if node is None:
        return ""
    traces = list(dict.fromkeys(origin.trace for origin in node.origins if origin.trace))
    if not traces:
        return ""
    text = "  Written at:\n" + _indented(provenance.format_trace(traces[0]))
    lines = dict.fromkeys(filter(None, map(provenance.line_of, traces)))
    if len(lines) > 1:
        text += "  It computes the expressions at:\n"
        text += "".join(f'    File "{filename}", line {line}\n' for filename, line in lines)
    return text


# --- values ---------------------------------------------------------------------------------------


class _Differences:
    """How far two values are apart, if both are arrays of numbers of the same shape."""

    def __init__(self, variable: Variable, expected: Any, value: Any) -> None:
        self.expected, self.value = expected, value
        self.tolerances = getattr(variable.type, "tolerances", lambda: (0, 0))()
        #: whether distances are defined; without them all texts are ''
        self.comparable = (
            isinstance(expected, np.ndarray)
            and isinstance(value, np.ndarray)
            and expected.shape == value.shape
            and expected.size > 0
            and expected.dtype.kind in "biufc"
            and value.dtype.kind in "biufc"
        )
        if self.comparable:
            with np.errstate(all="ignore"):
                self.apart = np.abs(_number(value) - _number(expected))

    def table(self, relative_to_both: bool) -> str:
        """Return the lines on absolute and relative differences.

        relative_to_both: divide by the sum of both sizes, not by the expected one.
        """
        if not self.comparable:
            return ""
        expected, value = np.abs(_number(self.expected)), np.abs(_number(self.value))
        with np.errstate(all="ignore"):
            scale = expected + value if relative_to_both else expected
            relative = self.apart / scale
        text = ""
        for name, apart in (("Abs", self.apart), ("Rel", relative)):
            with np.errstate(all="ignore"):
                figures = {"Max": apart.max(), "Mean": apart.mean(), "Median": np.median(apart),
                           "Std": apart.std()}  # fmt: skip
            for what, figure in figures.items():
                text += f"  {what} {name} Diff:  {figure}\n"
            if relative_to_both:
                at = _index(_worst(apart), apart.shape)
                text += f"  Value at Max Diff:  ({self.value[at]}, {self.expected[at]})\n"
        return text

    def largest(self) -> str:
        """Return a line on the largest difference, in ulp for floating-point numbers."""
        if not self.comparable:
            return ""
        apart, unit = self.apart, ""
        if self.expected.dtype.name in dtypes.FLOATS and self.value.dtype == self.expected.dtype:
            with np.errstate(all="ignore"):
                larger = np.maximum(np.abs(self.expected), np.abs(self.value))
                apart = np.where(self.expected == self.value, 0, self.apart / np.spacing(larger))
                apart = np.where(np.isnan(self.expected) & np.isnan(self.value), 0, apart)
            unit = " ulp"
        at = _index(_worst(apart), apart.shape)
        rtol, atol = self.tolerances
        close = np.isclose(self.expected, self.value, rtol=rtol, atol=atol, equal_nan=True)
        differing = int(np.count_nonzero(~close))
        return (
            f"  Largest difference: {apart[at]:.6g}{unit} at index {at}: expected "
            f"{self.expected[at]}, got {self.value[at]}; {differing} of {apart.size} elements "
            "differ\n"
        )


def _number(array: np.ndarray) -> np.ndarray:
    """Return an array as floating-point numbers, whose differences do not wrap around."""
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def _differ(a: np.ndarray, b: np.ndarray) -> Any:
    with np.errstate(all="ignore"):
        return (a != b) & ~((a != a) & (b != b))


def _worst(apart: np.ndarray) -> int:
    return int(np.argmax(np.where(np.isnan(apart), np.inf, apart)))


def _index(flat: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(int(flat), shape)))


def _tolerances(variable: Variable) -> str:
    tolerances = getattr(variable.type, "tolerances", None)
    return "" if tolerances is None else "\n  rtol, atol: {} {}\n".format(*tolerances())


def _summary(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    if not value.size or value.dtype.kind not in "biufc":
        return f"{_layout(value)}"
    ends = (value.min(), value.max()) if value.dtype.kind != "c" else ("N/A", "N/A")
    number = _number(value)
    infinite, nan = int(np.isinf(number).sum()), int(np.isnan(number).sum())
    return f"{_layout(value)} {ends[0]} {ends[1]} {infinite} {nan} "


def _layout(value: Any) -> str:
    return " ".join(str(_attribute(value, name)) for name in ("shape", "dtype", "strides"))


def _attribute(value: Any, name: str) -> object:
    return getattr(value, name, f"No {name}")


def _input_values(values: Sequence[Any]) -> str:
    small = all(np.size(v) <= 10 for v in values if isinstance(v, np.ndarray))
    return _short(values) if small else "not shown"


def _short(value: Any, longest: int = _LONGEST) -> str:
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]}..."


def _graph(variable: Variable, depth: int = _DEPTH, types: bool = True) -> str:
    return _indented(debugprint(variable, depth=depth, print_type=types, file="str"), "  ")


def _indented(text: str, by: str = "  ") -> str:
    return "".join(f"{by}{line}\n" for line in text.rstrip("\n").split("\n")) if text else ""
