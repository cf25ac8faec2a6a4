"""Elemwise: a scalar operation on every element of arrays that broadcast; and DimShuffle.

Reductions are in ``opwise.tensor.reduce``.
"""

from __future__ import annotations

import math
import weakref
from functools import cache

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.null import NullType, disconnected_type, is_disconnected, is_null
from opwise.graph.op import Op
from opwise.profiling import traffic
from opwise.scalar import dtypes
from opwise.scalar.op import OPS, ScalarOp, cast_op
from opwise.scalar.row import ROWS, Algebra
from opwise.scalar.types import get_scalar_type
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable, constant


class DimShuffle(Op):
    """Reorders, drops and inserts dimensions.

    input_broadcastable: the broadcast pattern of the input. new_order: for each dimension of the
    output, the index of an input's dimension, or 'x' for a new one of length 1. Only broadcastable
    dimensions can be dropped. The output is a view of the input.
    """

    view_map = {0: [0]}
    flops, traffic = traffic.no_flops, traffic.nothing

    def __init__(self, input_broadcastable, new_order, inplace=True):
        self.input_broadcastable = tuple(input_broadcastable)
        self.new_order = tuple(o if o == "x" else int(o) for o in new_order)
        self.inplace = inplace
        ndim = len(self.input_broadcastable)
        for o in self.new_order:
            if o != "x" and not 0 <= o < ndim:
                raise ValueError(
                    f"new_order[{self.new_order.index(o)}] is {o}, but the input only has {ndim} "
                    f"axes. (DimShuffle of {self.input_broadcastable} by {self.new_order})"
                )
        kept = [o for o in self.new_order if o != "x"]
        if len(set(kept)) != len(kept):
            raise ValueError(
                f"The same input dimension may not appear twice in the list of output dimensions "
                f"{self.new_order}"
            )
        self.shuffle = kept
        self.drop = [i for i in range(ndim) if i not in kept]
        for i in self.drop:
            if not self.input_broadcastable[i]:
                raise ValueError(
                    f"You cannot drop a non-broadcastable dimension. ({self.input_broadcastable}, "
                    f"{self.new_order}) Dimension {i} may be longer than 1 and is missing from "
                    "the new order: add it, as x[None, :] does, or index or sum along it."
                )
        self.augment = [i for i, o in enumerate(self.new_order) if o == "x"]
        self._transpose = tuple(self.shuffle + self.drop)
        self._index = (
            tuple(None if o == "x" else slice(None) for o in self.new_order)
            + (0,) * len(self.drop)
            + (...,)
        )  # the ellipsis keeps a single element an array
        self._hash = hash((DimShuffle, self.new_order, self.input_broadcastable))

    def make_node(self, x):
        x = as_tensor_variable(x)
        if x.type.broadcastable != self.input_broadcastable:
            if len(x.type.broadcastable) != len(self.input_broadcastable):
                raise TypeError(
                    "The number of dimensions and/or broadcastable pattern of the input is "
                    f"incorrect for this op. Expected {self.input_broadcastable}, got "
                    f"{x.type.broadcastable}."
                )
            for mine, its in zip(self.input_broadcastable, x.type.broadcastable, strict=True):
                if mine and not its:
                    raise TypeError(
                        "The broadcastable pattern of the input is incorrect for this op. Expected "
                        f"{self.input_broadcastable}, got {x.type.broadcastable}."
                    )
        pattern = tuple(o == "x" or x.type.broadcastable[o] for o in self.new_order)
        return Apply(self, [x], [tensor_type(x.type.dtype, pattern).make_variable()])

    def perform(self, node, inputs, output_storage):
        (x,) = inputs
        output_storage[0][0] = x.transpose(self._transpose)[self._index]

    def infer_shape(self, node, shapes):
        (shape,) = shapes
        one = constant(np.int64(1))
        return [tuple(one if o == "x" else shape[o] for o in self.new_order)]

    def L_op(self, inputs, outputs, output_gradients):
        (x,), (gz,) = inputs, output_gradients
        order = ["x"] * x.type.ndim
        for position, o in enumerate(self.new_order):
            if o != "x":
                order[o] = position
        gz = as_tensor_variable(gz)
        if gz.type.dtype in dtypes.DISCRETE or x.type.dtype in dtypes.DISCRETE:
            return [zeros_like(x, config.floatX)]
        return [dimshuffle(gz, order)]

    def R_op(self, inputs, eval_points):
        return [None] if eval_points[0] is None else [self(eval_points[0])]

    def __eq__(self, other):
        return self is other or (
            type(self) is type(other)
            and self.new_order == other.new_order
            and self.input_broadcastable == other.input_broadcastable
        )

    def __hash__(self):
        return self._hash

    def __str__(self):
        prefix = "InplaceDimShuffle" if self.inplace else "DimShuffle"
        return f"{prefix}{{{','.join(map(str, self.new_order))}}}"


@cache
def dimshuffle_op(broadcastable, order):
    """Return the DimShuffle of a pattern and an order; the same object for equal arguments."""
    return DimShuffle(broadcastable, order)


def dimshuffle(x, order):
    """Return ``x`` with its dimensions in ``order``; x itself where that changes nothing."""
    order = tuple(order)
    if order == tuple(range(x.type.ndim)):
        return x
    return dimshuffle_op(x.type.broadcastable, order)(x)


#: by Apply, what computes it
_computations = weakref.WeakKeyDictionary()


class _Computation:
    """Computes an Elemwise Apply in numpy, for inputs of the types that it has."""

    def __init__(self, op, node):
        self.op = op
        self.inplace = list(op.inplace_pattern.items())
        self.compute = op.scalar_op.computation(
            [v.type.dtype for v in node.inputs], [v.type.dtype for v in node.outputs]
        )
        #: by dimension the inputs that do not broadcast along it
        self.lengths_of = [
            [i for i, v in enumerate(node.inputs) if not v.type.broadcastable[dim]]
            for dim in range(node.outputs[0].type.ndim)
        ]

    def __call__(self, inputs):
        arrays = list(map(np.asarray, inputs))
        shape = self.shape_of(arrays)
        results = self.compute(arrays)
        for i, result in enumerate(results):
            if result.shape != shape:
                result = np.broadcast_to(result, shape)
            if result.base is not None:
                result = result.copy()
            for x in arrays:
                if x is result:
                    result = result.copy()
            results[i] = result
        for i, k in self.inplace:
            inputs[k][...] = results[i]
            results[i] = inputs[k]
        return results

    def shape_of(self, arrays):
        """Return the shape of the outputs for inputs that have shapes.

        Raises ValueError unless lengths agree along all dimensions that do not broadcast.
        """
        if arrays:
            first = arrays[0].shape
            for x in arrays:
                if x.shape != first:
                    break
            else:
                return first
        shape = []
        for dim, those in enumerate(self.lengths_of):
            length = arrays[those[0]].shape[dim] if those else 1
            for i in those:
                if arrays[i].shape[dim] != length:
                    shapes = ", ".join(str(x.shape) for x in arrays)
                    raise ValueError(f"Dimension mismatch; shapes are {shapes}")
            shape.append(length)
        return tuple(shape)


class Elemwise(Op):
    """A scalar operation applied to every element; inputs broadcast along broadcastable dimensions.

    scalar_op: what to compute. inplace_pattern: dict from an output to the input whose memory it
    takes. There is no broadcasting at run time: a dimension that is not broadcastable must have the
    same length in all inputs.
    """

    #: each element is read before it is overwritten, so an operand may be given twice
    destroyhandler_tolerate_same = True

    def __init__(self, scalar_op, inplace_pattern=None, name=None, nfunc_spec=None, openmp=None):
        if not isinstance(scalar_op, ScalarOp):
            raise TypeError(f"Elemwise needs a scalar op, not {scalar_op!r}")
        self.scalar_op = scalar_op
        self.inplace_pattern = dict(inplace_pattern or {})
        self.name = name
        self.nfunc_spec = nfunc_spec
        if self.inplace_pattern:
            self.destroy_map = {o: [i] for o, i in self.inplace_pattern.items()}
        #: the scalar row that an Apply computes, for rules; they leave what overwrites alone
        row = None if self.inplace_pattern else scalar_op.row
        self.row_name = None if row is None else row.name
        self._hash = hash((scalar_op, tuple(sorted(self.inplace_pattern.items()))))

    def make_node(self, *inputs):
        inputs = [as_tensor_variable(x) for x in inputs]
        self.scalar_op.check_count(len(inputs))
        ndim = max(x.type.ndim for x in inputs)
        inputs = [x if x.type.ndim == ndim else pad_left(x, ndim) for x in inputs]
        out_dtypes = self.scalar_op.output_dtypes([x.type.dtype for x in inputs])
        if ndim:
            patterns = [x.type.broadcastable for x in inputs]
            pattern = (
                patterns[0]
                if len(patterns) == 1
                else tuple(all(column) for column in zip(*patterns, strict=True))
            )
        else:
            pattern = ()
        for out, i in self.inplace_pattern.items():
            self._check_inplace(inputs, i, out_dtypes[out], pattern)
        outputs = [tensor_type(d, pattern).make_variable() for d in out_dtypes]
        return Apply(self, inputs, outputs)

    def _check_inplace(self, inputs, i, dtype, pattern):
        if inputs[i].type.broadcastable != pattern:
            raise ValueError(
                "Operation cannot be done inplace on an input with broadcasted dimensions."
            )
        if inputs[i].type.dtype != dtype:
            raise TypeError(
                f"Cannot do an inplace operation on incompatible data types. "
                f"({[x.type.dtype for x in inputs]}, {dtype}, {self.inplace_pattern})"
            )

    def element_cost(self, n_inputs):
        """Return roughly how many nanoseconds one element takes."""
        return self.scalar_op.element_cost(n_inputs)

    def flops(self, inputs, outputs):
        """Return the floating-point operations, by the shapes of inputs and outputs; None where a
        scalar operation has no exact count."""
        count = self.scalar_op.flops(len(inputs))
        return None if count is None else count * math.prod(outputs[0])

    def traffic(self, node, inputs, outputs):
        """Return the bytes of the inputs that are read, and of the outputs."""
        unread = self.scalar_op.unread()
        read = [0 if i in unread else a.bytes for i, a in enumerate(inputs)]
        return read, [a.bytes for a in outputs]

    def perform(self, node, inputs, output_storage):
        with np.errstate(all="ignore"):
            results = self.computation(node)(inputs)
        for result, cell in zip(results, output_storage, strict=True):
            cell[0] = result

    def computation(self, node):
        """Return a function from the inputs of an Apply to its outputs.

        They are in memory of their own, or where the Op works in place in that of inputs. numpy
        may warn of NaN and infinities in it.
        """
        found = _computations.get(node)
        if found is None or found.op is not self:
            found = _computations[node] = _Computation(self, node)
        return found

    def shape_of(self, node, inputs):
        """Return the shape of the outputs for inputs that have shapes.

        Raises ValueError unless lengths agree along all dimensions that do not broadcast.
        """
        return self.computation(node).shape_of(inputs)

    def infer_shape(self, node, shapes):
        one = constant(np.int64(1))
        result = []
        for dim in range(node.outputs[0].type.ndim):
            for var, shape in zip(node.inputs, shapes, strict=True):
                if not var.type.broadcastable[dim]:
                    result.append(shape[dim])
                    break
            else:
                result.append(one)
        return [tuple(result)] * len(node.outputs)

    def connection_pattern(self, node):
        """Return whether each output is connected to each input: not through a shape alone."""
        row = self.scalar_op.row
        if row is not None and "ignores_first" in row.extra:
            return [[False], [True]]
        return [[True] * len(node.outputs) for _ in node.inputs]

    def L_op(self, inputs, outputs, output_gradients):
        from opwise.tensor.reduce import sum as sum_

        results = []
        for x, g in zip(inputs, self._gradients(inputs, outputs, output_gradients), strict=True):
            if is_null(g) or is_disconnected(g):
                results.append(g)
                continue
            summed = [
                dim
                for dim in range(outputs[0].type.ndim)
                if x.type.broadcastable[dim] and not outputs[0].type.broadcastable[dim]
            ]
            g = pad_left(g, outputs[0].type.ndim)
            if summed:
                g = sum_(g, axis=summed, keepdims=True)
            results.append(g)
        return results

    def _gradients(self, inputs, outputs, output_gradients):
        op = self.scalar_op
        row = op.row
        discrete_out = all(o.type.dtype in dtypes.DISCRETE for o in outputs)
        if discrete_out:
            return [zeros_like(x, config.floatX) for x in inputs]
        if row is not None and row.grad is not None:
            raw = BARE_ALGEBRA.gradients(row, inputs, outputs[0], output_gradients[0])
        elif row is None:
            raw = self._gradients_by_scalar_graph(inputs, outputs, output_gradients)
        else:
            raw = [None] * len(inputs)
        result = []
        for i, (x, g) in enumerate(zip(inputs, raw, strict=True)):
            if row is not None and i == 0 and "ignores_first" in row.extra:
                result.append(disconnected_type.make_variable())
            elif isinstance(g, int):
                zero = config.floatX if x.type.dtype in dtypes.DISCRETE else None
                result.append(zeros_like(x, zero))
            elif g is None:
                result.append(NullType(f"{op} has no gradient by input {i}").make_variable())
            else:
                result.append(as_tensor_variable(g))
        return result

    def _gradients_by_scalar_graph(self, inputs, outputs, output_gradients):
        """Gradients of a user's scalar op or of a Composite, through its own scalar gradient."""
        op = self.scalar_op
        scalars = [get_scalar_type(x.type.dtype).make_variable() for x in inputs]
        scalar_outs = op.make_node(*scalars).outputs
        scalar_grads = [get_scalar_type(g.type.dtype).make_variable() for g in output_gradients]
        results = op.L_op(scalars, scalar_outs, scalar_grads)
        values = dict(
            zip(
                [*scalars, *scalar_outs, *scalar_grads],
                [*inputs, *outputs, *output_gradients],
                strict=True,
            )
        )
        return [None if r is None else _lift(r, values) for r in results]

    def R_op(self, inputs, eval_points):
        outputs = self(*inputs, return_list=True)
        ones = [second_bare(out, constant(np.asarray(1, out.type.dtype))) for out in outputs]
        total = [None] * len(outputs)
        for k, out in enumerate(outputs):
            grads = self._gradients(
                inputs,
                outputs,
                [o if j == k else zeros_like(o) for j, o in enumerate(ones)],
            )
            for g, point in zip(grads, eval_points, strict=True):
                if point is None or not isinstance(g.type, type(out.type)):
                    continue
                part = bare("mul")(g, point)
                total[k] = part if total[k] is None else bare("add")(total[k], part)
        return total

    def __eq__(self, other):
        return self is other or (
            type(self) is type(other)
            and self.row_name == other.row_name  # tells most apart, and sooner
            and self.scalar_op == other.scalar_op
            and self.inplace_pattern == other.inplace_pattern
        )

    def __hash__(self):
        return self._hash

    def __str__(self):
        if self.name is not None:
            return self.name
        op = self.scalar_op
        if not self.inplace_pattern:
            return f"Elemwise{{{op}}}"
        return f"Elemwise{{{op}}}{sorted(self.inplace_pattern.items())}"


def _lift(result, values):
    """Return the tensor variable that a scalar graph computes once its leaves are replaced."""
    from opwise.graph.traversal import io_toposort

    values = dict(values)
    for node in io_toposort(list(values), [result]):
        args = [values[v] if v in values else constant(v.data) for v in node.inputs]
        for old, new in zip(node.outputs, Elemwise(node.op)(*args, return_list=True), strict=True):
            values.setdefault(old, new)
    return values[result] if result in values else constant(result.data)


def pad_left(x, ndim):
    """Return ``x`` with broadcastable dimensions added on the left up to ``ndim``."""
    missing = ndim - x.type.ndim
    if missing <= 0:
        return x
    return dimshuffle(x, ["x"] * missing + list(range(x.type.ndim)))


@cache
def bare(name):
    """Return the Elemwise of a row as gradients make it: it prints without ``no_inplace``."""
    return Elemwise(OPS[name])


BARE_ALGEBRA = Algebra(lambda name, *args: bare(name)(*args))


def second_bare(x, y):
    """Return ``y`` broadcast to the shape of ``x``."""
    return bare("second")(x, y)


def zeros_like(x, dtype=None):
    """Return zeros of the shape of ``x``, of its dtype unless told."""
    zero = constant(np.zeros((), dtype or x.type.dtype))
    return second_bare(x, zero)


#: the elementwise function of every row that has one on tensors, by its tensor name
FUNCTIONS: dict[str, Elemwise] = {}
_PLAIN_NAMES = {"scalar_sigmoid": "sigmoid", "scalar_softplus": "softplus",
                "scalar_softsign": "softsign", "ultra_fast_scalar_sigmoid": "ultra_fast_sigmoid",
                "xlogx": "xlogx", "xlogy0": "xlogy0"}  # fmt: skip


def _define(row):
    tensor_name = row.tensor_name or row.name
    text = _PLAIN_NAMES.get(row.name) or f"Elemwise{{{tensor_name},no_inplace}}"
    op = FUNCTIONS[tensor_name] = Elemwise(OPS[row.name], name=text)
    op.__doc__ = row.doc
    op.__name__ = tensor_name
    return op


for _row in ROWS.values():
    _define(_row)


def elemwise(name):
    """Return the Elemwise of a row as users write it (``Elemwise{add,no_inplace}``)."""
    row = ROWS[name]
    return FUNCTIONS[row.tensor_name or row.name]


@cache
def cast_elemwise(dtype):
    """Return the Elemwise that casts to ``dtype``."""
    return Elemwise(cast_op(dtype))


def cast(x, dtype):
    """Return ``x`` as ``dtype`` ('floatX' too); x itself if it has that dtype."""
    if dtype == "floatX":
        dtype = config.floatX
    try:
        dtype = np.dtype(dtype).name
    except TypeError as error:
        raise TypeError(f"{error}: cast takes one of {', '.join(dtypes.ALL)}") from None
    x = as_tensor_variable(x)
    if x.type.dtype == dtype:
        return x
    if x.type.dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        raise TypeError(
            "Casting from complex to real is ambiguous: consider real(), imag(), angle() or abs()"
        )
    return cast_elemwise(dtype)(x)
