"""What DebugMode says of what it found: the exceptions, with values, differences and lines."""

from __future__ import annotations

import numpy as np

from opwise import errors
from opwise.graph import provenance
from opwise.graph.printing import debugprint
from opwise.scalar import dtypes

_LONGEST = 800
_DEPTH = 6


def bad_output(variable, thunk1, expected, thunk2, value, inputs, error=errors.BadThunkOutput):
    """Return the error for an output of an Apply for which two thunks gave two values.

    thunk1, thunk2: what each of them is called. inputs: values of the Apply's inputs.
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
    apart = _Differences(variable, expected, value)
    text += apart.table(relative_to_both=False) + apart.largest() + _tolerances(variable)
    return error(
        text + where(node), r=variable, thunk1=thunk1, val1=expected, thunk2=thunk2, val2=value,
        inputs_val=inputs,
    )  # fmt: skip


def bad_strides(variable, expected, value, inputs):
    """Return the error for an output of which C and Python make arrays of other strides."""
    node = variable.owner
    return errors.BadCLinkerOutput(
        stride_text(variable, expected, value) + where(node), r=variable, thunk1="perform",
        val1=expected, thunk2="c_code", val2=value, inputs_val=inputs,
    )  # fmt: skip


def stride_text(variable, expected, value):
    """Return what is said where strides of C and Python differ."""
    return (
        f"Stride mismatch: {variable} of {variable.owner} has the shape {value.shape}; strides "
        f"from Python {expected.strides}, from C {value.strides}"
    )


def bad_destroy_map(node, index, old, new, perform):
    """Return the error for an input that an Op changed without saying so in its destroy_map."""
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
        text += (
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
    text += (
        "\n  Hint: this can also be caused by a deficient values_eq_approx() or __eq__() "
        "implementation [which compared input values]\n"
        f"  The Op overwrites this input: say so, destroy_map = {{<output>: [{index}]}}, or work "
        "on a copy.\n"
    )
    return errors.BadDestroyMap(
        text + where(node), node=node, idx=index, old_val=old, new_val=new, perform=perform
    )


def bad_view_map(node, output, value, inputs=None, others=None):
    """Return the error for an output that lies in memory of inputs, or of other outputs."""
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
            f"  The output lies in memory of these inputs: say so, view_map = {{{output}: "
            f"{inputs}}}, or return a copy.\n"
        )
    if others:
        text += f"  aliased to outputs: {others}\n"
    return errors.BadViewMap(
        text + where(node), node=node, output_idx=output, out_storage=value,
        in_alias_idx=inputs, out_alias_idx=others,
    )  # fmt: skip


def invalid_value(variable, value, hint="none", specific="none", client=None):
    """Return the error for a value that is none of its variable's type, or is not finite."""
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
        text += where(node)
    elif variable.made_at:
        text += "  Written at:\n" + _indented(provenance.format_trace(variable.made_at))
    return errors.InvalidValueError(
        text, r=variable, v=value, client_node=client, hint=hint, specific_hint=specific
    )


def bad_optimization(old, new, expected, value, reason, stage, node, story=""):
    """Return the error for a replacement that changed a value.

    old, new: variables of graphs as they were when it was made. node: the Apply whose lines in
    the user's program are shown. story: what else there is to tell.
    """
    old_graph, new_graph = _graph(old), _graph(new)
    apart = _Differences(old, expected, value)
    text = (
        f"{errors.BadOptimization.__name__} Error \n"
        f"  Variable: id {id(new)} {new}\n"
        f"  Op {new.owner}\n"
        f"  Value Type: {type(value)}\n"
        f"  Old Value shape, dtype, strides: {_layout(expected)}\n\n"
        f"  Old Value:  {_short(expected)}\n"
        f"  New Value shape, dtype, strides: {_layout(value)}\n\n"
        f"  New Value:  {_short(value)}\n"
        f"{apart.table(relative_to_both=True)}{apart.largest()}\n"
        f"  Reason:  {reason}\n"
    )
    if stage:
        text += f"  Stage:  {stage}\n"
    text += (
        story
        + where(node)
        + f"  Old Graph:\n{old_graph}\n  New Graph:\n{new_graph}\n"
        + "Hint: relax the tolerance by setting tensor.cmp_sloppy=1\n"
        "  or even tensor.cmp_sloppy=2 for less-strict comparison\n"
    )
    return errors.BadOptimization(
        text, old_r=old, new_r=new, old_r_val=expected, new_r_val=value, reason=reason,
        stage=stage, old_graph=old_graph, new_graph=new_graph,
    )  # fmt: skip


def where(node):
    """Return the lines of the user's program that an Apply computes, '' if there is none."""
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
    """How far two values are apart, where both are arrays of numbers of one shape."""

    def __init__(self, variable, expected, value):
        self.expected, self.value = expected, value
        self.tolerances = getattr(variable.type, "tolerances", lambda: (0, 0))()
        self.told = (
            isinstance(expected, np.ndarray)
            and isinstance(value, np.ndarray)
            and expected.shape == value.shape
            and expected.size > 0
            and expected.dtype.kind in "biufc"
            and value.dtype.kind in "biufc"
        )
        if self.told:
            with np.errstate(all="ignore"):
                self.apart = np.abs(_number(value) - _number(expected))

    def table(self, relative_to_both):
        """Return the lines on absolute and relative differences."""
        if not self.told:
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

    def largest(self):
        """Return a line on where values are farthest apart, in ulp for floating-point numbers."""
        if not self.told:
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


def _number(array):
    """Return an array as one of floating-point numbers, where differences do not wrap."""
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def _differ(a, b):
    with np.errstate(all="ignore"):
        return (a != b) & ~((a != a) & (b != b))


def _worst(apart):
    return int(np.argmax(np.where(np.isnan(apart), np.inf, apart)))


def _index(flat, shape):
    return tuple(map(int, np.unravel_index(int(flat), shape)))


def _tolerances(variable):
    tolerances = getattr(variable.type, "tolerances", None)
    return "" if tolerances is None else "\n  rtol, atol: {} {}\n".format(*tolerances())


def _summary(value):
    if not isinstance(value, np.ndarray):
        return str(value)
    if not value.size or value.dtype.kind not in "biufc":
        return f"{_layout(value)}"
    ends = (value.min(), value.max()) if value.dtype.kind != "c" else ("N/A", "N/A")
    number = _number(value)
    infinite, nan = int(np.isinf(number).sum()), int(np.isnan(number).sum())
    return f"{_layout(value)} {ends[0]} {ends[1]} {infinite} {nan} "


def _layout(value):
    return " ".join(str(_attribute(value, name)) for name in ("shape", "dtype", "strides"))


def _attribute(value, name):
    return getattr(value, name, f"No {name}")


def _input_values(values):
    small = all(np.size(v) <= 10 for v in values if isinstance(v, np.ndarray))
    return _short(values) if small else "not shown"


def _short(value, longest=_LONGEST):
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]}..."


def _graph(variable, depth=_DEPTH, types=True):
    return _indented(debugprint(variable, depth=depth, print_type=types, file="str"), "  ")


def _indented(text, by="  "):
    return "".join(f"{by}{line}\n" for line in text.rstrip("\n").split("\n")) if text else ""
