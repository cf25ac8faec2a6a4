"""Lowerings of what works on rows: softmax, cross entropy, and fused loops over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.gpu.kernels import cudatext, rows, views
from opwise.gpu.kernels.cudatext import for_each, held, load, store, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Implementation,
    Kernel,
    Launch,
    Layout,
    Plan,
    grid_of,
    make_kernel,
)
from opwise.gpu.kernels.layouts import steps_of
from opwise.gpu.kernels.lowerings.operands import dtypes_of, unsupported
from opwise.gpu.lowering import lowers_to_kernels
from opwise.graph.apply import Apply
from opwise.linkers.rowsteps import program_of
from opwise.scalar import csource, dtypes, loops
from opwise.scalar.op import OPS, ScalarOp, cast_op
from opwise.scalar.program import Instruction, Literal
from opwise.scalar.rowloops import RowColumn, RowFold, RowProgram
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.rowsoftmax import (
    LogSoftmax,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    check_bias,
)
from opwise.tensor.reduce import CAReduce, check_not_empty
from opwise.tensor.rowwise import Rowwise


class _Rows:
    """A row program that is made step by step. Floats are held as float32 or float64."""

    def __init__(self, inputs: Sequence[tuple[str, bool]]) -> None:
        """inputs: (dtype, whether a row of elements, and not a number for each row)."""
        self.in_dtypes, self.wide = zip(*inputs, strict=True)
        self.dtypes = list(self.in_dtypes)
        self.steps: list[Instruction] = []
        floats = [d for d in self.in_dtypes if d in dtypes.FLOATS]
        self.out, self.held = floats[0], held(floats[0])

    def add(self, op: ScalarOp, *slots: int, dtype: str | None = None) -> int:
        """Append a step; return its slot."""
        self.steps.append(Instruction(op, slots, dtype or self.held))
        self.dtypes.append(self.steps[-1].dtype)
        return len(self.dtypes) - 1

    def cast(self, slot: int, dtype: str | None = None) -> int:
        """Append a cast, if it is of another dtype; return the slot."""
        dtype = dtype or self.held
        return slot if self.dtypes[slot] == dtype else self.add(cast_op(dtype), slot, dtype=dtype)

    def do(self, name: str, *slots: int, dtype: str | None = None) -> int:
        """Append an operation of the table; return its slot."""
        return self.add(OPS[name], *slots, dtype=dtype)

    def fold(self, name: str, slot: int) -> int:
        """Append a reduction; return its slot."""
        dtype = self.dtypes[slot]
        return self.add(RowFold(name, dtype), slot, dtype=dtype)

    def number(self, value: float, dtype: str | None = None) -> int:
        """Append a constant; return its slot."""
        dtype = dtype or self.held
        return self.add(Literal(np.array(value, dtype)), dtype=dtype)

    def at_label(self, labels: int) -> int:
        """Append whether the column of an element is the one that the row's label names."""
        label = self.add(rows.RowLabel(), labels, dtype="int64")
        return self.do("eq", self.column(), label, dtype="bool")

    def column(self) -> int:
        """Append the number of an element's column; return its slot."""
        return self.add(RowColumn(), dtype="int64")

    def exponentials(self, *matrices: int) -> tuple[int, int, int, int]:
        """Append what a softmax needs; return its slots.

        They are: the values, sums of the elements of matrices; the largest of a row; their
        exponentials less that; the sum of those.
        """
        first, *others = map(self.cast, matrices)
        value = self.do("add", first, *others) if others else first
        most = self.fold("maximum", value)
        e = self.do("exp", self.do("sub", value, most))
        return value, most, e, self.fold("add", e)

    def kernels(self, stem: str, *outs: int) -> rows.RowKernels:
        """Return the kernels of the program with these results."""
        program = RowProgram(self.in_dtypes, tuple(self.steps), outs, wide_inputs=self.wide)
        return rows.RowKernels(stem, program.check(), 2)


@lowers_to_kernels(Rowwise)
def lower_rowwise(node: Apply) -> Implementation | str:
    program = program_of(node)
    accumulators = (one.op.of[1] for one in program.instructions if isinstance(one.op, RowFold))
    reason = unsupported(accumulators) or rows.missing(program)
    if reason:
        return reason
    ndim = node.inputs[0].type.ndim
    kernels = rows.RowKernels("fused", program, ndim)

    def shape_of(inputs: Sequence[Layout]) -> tuple[int, ...]:
        """Return the shape of the arrays; raise what ``perform`` raises."""
        values = list(inputs)
        for args, applys in node.op.parts(node):
            given = [values[a] for a in args]
            for apply in applys:
                given = [_shape_after(apply, given)]
            values.append(given[0])
        lengths = zip(*(x.shape for x in values), strict=True)
        return tuple(0 if 0 in each else max(each) for each in lengths)

    def shapes(inputs):
        *outer, n = shape_of(inputs)
        return [(*outer, n if program.wide[slot] else 1) for slot in program.outs]

    def plan(inputs, outputs, limits):
        return kernels.plan(shape_of(inputs), inputs, limits)

    return Implementation(kernels.kernels, shapes, plan)


def _shape_after(apply: Apply, inputs: Sequence[Layout]) -> Layout:
    """Return the shape of what a step gives, as a layout; raise what ``perform`` raises."""
    op: Any = apply.op
    if isinstance(apply.op, CAReduce):
        x: Any = inputs[0]
        if loops.FOLDS[op.scalar_op.row.name].needs_elements and op.of_nothing is None:
            check_not_empty(x, op.axis, op.scalar_op)
        return Layout(x.shape[:-1], (), 1)
    if isinstance(op, DimShuffle):
        return Layout((*inputs[0].shape, 1), (), 1)
    return Layout(tuple(op.shape_of(apply, inputs)), (), 1)


# --- softmax --------------------------------------------------------------------------------------


def _unsupported(node: Apply, labels: int | None = None) -> str | None:
    """Return the reason why there are no kernels for the dtypes of an Apply, or None.

    labels: position of the labels, whose dtype may be another.
    """
    dtype = node.outputs[0].type.dtype
    if dtype not in dtypes.FLOATS:
        return f"there are no kernels on rows for {dtype}"
    others = {v.type.dtype for i, v in enumerate(node.inputs) if i != labels}
    if others != {dtype}:
        return f"its inputs are of {', '.join(sorted(others))} and not all of {dtype}"
    return None


def _on_rows(
    kernels: rows.RowKernels,
    matrix: int,
    shapes: Callable[[Sequence[Layout]], list[tuple[int, ...]]],
    **errors: Any,
) -> Implementation:
    """Return the Implementation of an Op on the rows of a matrix.

    matrix: which input it is. Other inputs are matrices, vectors that are added to each row, or
    numbers of rows. shapes, errors: see ``Implementation``.
    """

    def operand(layout: Layout, is_wide: bool) -> Layout:
        if is_wide or len(layout.shape) == 2:
            return views.padded(layout, 2)
        column = views.padded(layout, 1)
        return column._replace(shape=(*column.shape, 1), strides=(*column.strides, 0))

    def plan(inputs, outputs, limits):
        wide = kernels.program.wide_inputs
        return kernels.plan(inputs[matrix].shape, list(map(operand, inputs, wide)), limits)

    return Implementation(kernels.kernels, shapes, plan, **errors)


@lowers_to_kernels(Softmax, SoftmaxWithBias, LogSoftmax)
def lower_softmax(node: Apply) -> Implementation | str:
    reason = _unsupported(node)
    if reason:
        return reason
    made = _Rows([(d, True) for d in dtypes_of(node.inputs)])
    value, most, e, total = made.exponentials(*range(len(node.inputs)))
    if isinstance(node.op, LogSoftmax):
        out = made.do("sub", made.do("sub", value, most), made.do("log", total))
    else:
        out = made.do("mul", e, made.do("inv", total))
    stem = "log_softmax" if isinstance(node.op, LogSoftmax) else "softmax"

    def shapes(inputs):
        if len(inputs) == 2:
            check_bias(*inputs)
        return [inputs[0].shape]

    return _on_rows(made.kernels(stem, made.cast(out, made.out)), 0, shapes)


@lowers_to_kernels(SoftmaxGrad)
def lower_softmax_grad(node: Apply) -> Implementation | str:
    reason = _unsupported(node)
    if reason:
        return reason
    dtype, (gradient, _) = node.outputs[0].type.dtype, node.inputs
    made = _Rows([(dtype, not gradient.type.broadcastable[1]), (dtype, True)])
    dy, sm = map(made.cast, range(2))
    product = made.do("mul", dy, sm)
    out = made.do("sub", product, made.do("mul", made.fold("add", product), sm))

    def shapes(inputs):
        dy, sm = inputs
        for d, (n, m) in enumerate(zip(dy.shape, sm.shape, strict=True)):
            if n not in (1, m):
                raise ValueError(f"dy has length {n} along dimension {d}, but sm has {m}")
        return [sm.shape]

    return _on_rows(made.kernels("softmax_grad", made.cast(out, made.out)), 1, shapes)


# --- labels ---------------------------------------------------------------------------------------


def _check_labels(labels: Layout, matrix: Layout, name: str) -> None:
    if labels.shape[0] != matrix.shape[0]:
        raise ValueError(
            f"{name} has {matrix.shape[0]} rows, but there are {labels.shape[0]} labels"
        )


def _bad_label(labels: int, matrix: int, name: str) -> Callable[[int, list[Any]], Exception]:
    """Return a function that makes the error for a label that names no column.

    labels, matrix: positions of these inputs; name: what errors call the matrix.
    """

    def wrong(position, inputs):
        return ValueError(
            f"y_i value out of bounds: label {position} is {inputs[labels][position]}, but {name} "
            f"has {inputs[matrix].shape[1]} columns, one for each class"
        )

    return wrong


@lowers_to_kernels(CrossentropySoftmaxArgmax1HotWithBias)
def lower_cross_entropy(node: Apply) -> Implementation | str:
    reason = _unsupported(node, labels=2)
    if reason:
        return reason
    x, bias, labels = dtypes_of(node.inputs)
    made = _Rows([(x, True), (bias, True), (labels, False)])
    value, most, e, total = made.exponentials(0, 1)
    mine = made.fold("add", made.do("switch", made.at_label(2), value, made.number(0)))
    nll = made.do("sub", made.do("log", total), made.do("sub", mine, most))
    softmax = made.do("mul", e, made.do("inv", total))
    # the first column of those with the largest element; column 0 if there is a NaN
    nowhere, column = made.number(2**62, "int64"), made.column()
    is_most = made.do("eq", value, most, dtype="bool")
    first = made.fold("minimum", made.do("switch", is_most, column, nowhere, dtype="int64"))
    somewhere = made.do("lt", first, nowhere, dtype="bool")
    first = made.do("switch", somewhere, first, made.number(0, "int64"), dtype="int64")
    outs = made.cast(nll, x), made.cast(softmax, x), made.cast(first, labels)

    def shapes(inputs):
        x, b, labels = inputs
        check_bias(x, b)
        _check_labels(labels, x, "x")
        return [labels.shape, x.shape, labels.shape]

    wrong = _bad_label(2, 0, "x")
    return _on_rows(made.kernels("xent", *outs), 0, shapes, wrong=wrong, error_inputs=(2,))


@lowers_to_kernels(CrossentropySoftmax1HotWithBiasDx)
def lower_cross_entropy_dx(node: Apply) -> Implementation | str:
    return _gradient_by_label(node, "xent_dx", "sm", "dy")


@lowers_to_kernels(CrossentropyCategorical1HotGrad)
def lower_one_hot_grad(node: Apply) -> Implementation | str:
    if node.inputs[0].type.ndim > 1:
        return "its gradient is no vector"
    return _gradient_by_label(node, "onehot_grad", "coding_dist", "g_y")


def _gradient_by_label(node: Apply, stem: str, matrix: str, gradient: str) -> Implementation | str:
    """Return the Implementation of (gradient of each row, matrix, labels) -> matrix.

    matrix, gradient: what errors call these inputs.
    """
    reason = _unsupported(node, labels=2)
    if reason:
        return reason
    dtype, _, labels = dtypes_of(node.inputs)
    made = _Rows([(dtype, False), (dtype, True), (labels, False)])
    by, x = map(made.cast, range(2))
    is_mine, zero = made.at_label(2), made.number(0)
    if isinstance(node.op, CrossentropySoftmax1HotWithBiasDx):
        mine = made.do("switch", is_mine, by, zero)
        out = made.do("sub", made.do("mul", by, x), mine)
    else:
        out = made.do("switch", is_mine, made.do("true_div", made.do("neg", by), x), zero)

    def shapes(inputs):
        g, x, labels = inputs
        _check_labels(labels, x, matrix)
        if g.size != 1 and g.shape != labels.shape:
            raise ValueError(
                f"{gradient} has {g.size} elements, but {matrix} has {x.shape[0]} rows"
            )
        return [x.shape]

    kernels, wrong = made.kernels(stem, made.cast(out, made.out)), _bad_label(2, 1, matrix)
    return _on_rows(kernels, 1, shapes, wrong=wrong, error_inputs=(2,))


@lowers_to_kernels(CrossentropyCategorical1Hot)
def lower_one_hot(node: Apply) -> Implementation | str:
    reason = _unsupported(node, labels=1)
    if reason:
        return reason
    kernel = _one_hot(node.outputs[0].type.dtype, node.inputs[1].type.dtype)

    def shapes(inputs):
        _check_labels(inputs[1], inputs[0], "coding_dist")
        return [inputs[1].shape]

    def plan(inputs, outputs, limits):
        return _one_hot_plan(kernel, inputs, limits)

    wrong = _bad_label(1, 0, "coding_dist")
    return Implementation((kernel,), shapes, plan, wrong=wrong, error_inputs=(1,))


def _one_hot(dtype: str, label: str) -> Kernel:
    """Return the kernel of -log of the probability of each row's label."""
    value = load("p[i * row + label * step]", dtype)
    short = csource.short(held(dtype))
    lines = [
        "const ow_i64 label = (ow_i64)labels[i * label_step];",
        "if (label < 0 || label >= n)",
        "    ow_complain(wrong, i);",
        "else",
        f"    z[i] = {store(f'-ow_log_{short}({value})', dtype)};",
    ]
    parameters = [
        (f"const {stored(dtype)} *", "p"), (f"const {stored(label)} *", "labels"),
        (f"{stored(dtype)} *", "z"), ("ow_u32 *", "wrong"),
        *(("ow_i64", name) for name in ("rows", "n", "row", "step", "label_step")),
    ]  # fmt: skip
    half = ["half"] if dtype == "float16" else []
    needs = cudatext.support("log", "complain", *half, dtypes=[held(dtype)])
    return make_kernel("onehot", parameters, for_each(True, lines, "rows"), needs)


def _one_hot_plan(kernel: Kernel, inputs: Sequence[Layout], limits: DeviceLimits) -> Plan:
    """Return the Plan for (probabilities, labels)."""
    p, labels = inputs
    rows, n = p.shape
    if rows == 0:
        return Plan(())
    grid = grid_of(rows, limits)
    arrays = (Array("in", 0), Array("in", 1), Array("out", 0), Array("error_flag"))
    steps = (*steps_of(p, p.shape), *steps_of(labels, labels.shape))
    numbers = (rows, n, *steps)
    return Plan((Launch(kernel, grid, (THREADS, 1), arrays, numbers),))
