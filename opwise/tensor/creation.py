"""Tensors made from shapes and numbers, and the numbers that variables are known to hold.

Random tensors are in ``opwise.tensor.random``, diagonals in ``opwise.tensor.extra_ops``.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from opwise.config import config
from opwise.errors import EmptyConstantError, NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Op
from opwise.graph.variable import Constant, Variable
from opwise.profiling import traffic
from opwise.scalar import dtypes
from opwise.scalar.op import Cast, ScalarOp
from opwise.scalar.row import ROWS
from opwise.scalar.types import Scalar
from opwise.tensor.assertion import Assert
from opwise.tensor.convert import (
    DeepCopyOp,
    OutputGuard,
    ScalarFromTensor,
    TensorFromScalar,
    ViewOp,
    tensor_from_scalar,
)
from opwise.tensor.elemwise import DimShuffle, Elemwise, cast, dimshuffle, elemwise
from opwise.tensor.shape import (
    Rebroadcast,
    Shape_i,
    get_vector_length,
    is_length,
    is_one,
    length,
    vector_entry,
)
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.type import tensor_type, values_eq_approx_always_true
from opwise.tensor.variable import as_tensor_variable, constant

__all__ = [
    "ARange",
    "Alloc",
    "AllocEmpty",
    "Eye",
    "Tri",
    "alloc",
    "alloc_validate_shape",
    "arange",
    "extract_constant",
    "eye",
    "fill",
    "get_scalar_constant_value",
    "identity_like",
    "mgrid",
    "ogrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

#: a tensor of the shape of the first operand, filled with the second
fill = elemwise("second")


def _dtype_name(dtype):
    """Return a dtype's name: floatX for None and 'floatX'."""
    return config.floatX if dtype is None or dtype == "floatX" else np.dtype(dtype).name


# --- memory -------------------------------------------------------------------------------------


def alloc_validate_shape(shape):
    """Return (the entries of a shape as 0-d integer tensors, which of them are known to be 1).

    Raises TypeError for an entry that is not an integer of no dimension.
    """
    entries = [as_tensor_variable(n) for n in shape]
    for i, entry in enumerate(entries):
        if entry.type.dtype not in dtypes.INTEGERS:
            raise TypeError(
                f"lengths must be integers; element {i} of the shape, {entry}, has {entry.type}"
            )
        if entry.type.ndim:
            raise TypeError(
                f"lengths must be scalars; element {i} of the shape, {entry}, has "
                f"{entry.type.ndim} dimensions"
            )
    return entries, [is_one(entry) for entry in entries]


class Alloc(Op):
    """A tensor of the shape given by the other inputs, filled with the first, which broadcasts.

    The first input is repeated along dimensions where its length is 1, at run time too.
    """

    __props__ = ()
    flops, traffic = traffic.no_flops, traffic.each_once

    def make_node(self, value, *shape):
        value = as_tensor_variable(value)
        entries, ones_ = alloc_validate_shape(shape)
        if value.type.ndim > len(entries):
            raise TypeError(
                f"{value} has {value.type.ndim} dimensions, more than the {len(entries)} that it "
                "should fill"
            )
        output = tensor_type(value.type.dtype, tuple(ones_)).make_variable()
        return Apply(self, [value, *entries], [output])

    def perform(self, node, inputs, output_storage):
        value, *lengths = inputs
        result = np.empty(tuple(map(int, lengths)), dtype=value.dtype)
        result[...] = value
        output_storage[0][0] = result

    def infer_shape(self, node, shapes):
        return [tuple(map(length, node.inputs[1:]))]

    def connection_pattern(self, node):
        return [[True]] + [[False]] * (len(node.inputs) - 1)

    def L_op(self, inputs, outputs, output_gradients):
        from opwise.tensor.reduce import sum as sum_

        value, (gz,) = inputs[0], output_gradients
        by_lengths = [disconnected_type.make_variable() for _ in inputs[1:]]
        if value.type.dtype in dtypes.DISCRETE:
            return [zeros_like(value, config.floatX), *by_lengths]
        added = gz.type.ndim - value.type.ndim
        repeated = [
            i
            for i in range(gz.type.ndim)
            if i < added or (value.type.broadcastable[i - added] and not gz.type.broadcastable[i])
        ]
        if repeated:
            gz = sum_(gz, axis=repeated)
        # what was summed over and is a dimension of the value comes back with length 1
        order, kept = [], 0
        for i in range(added, added + value.type.ndim):
            order.append("x" if i in repeated else kept)
            kept += i not in repeated
        return [dimshuffle(gz, order), *by_lengths]

    def R_op(self, inputs, eval_points):
        if eval_points[0] is None:
            return [None]
        return [self(eval_points[0], *inputs[1:])]

    def do_constant_folding(self, node):
        """Not where the result is handed out, or is about to be overwritten: it would be copied."""
        clients = node.outputs[0].clients
        return bool(clients) and not any(map(_may_overwrite, clients))


def _may_overwrite(client):
    """Return whether a reader of a variable is the caller, or has a variant that works in place."""
    node, i = client
    if node == "output":
        return True
    op = node.op
    return i == 0 and (getattr(op, "inplace", None) is False or hasattr(op, "destructive"))


alloc = Alloc()


class AllocEmpty(Op):
    """A tensor of ``dtype`` of the shape given by the inputs; its elements hold anything."""

    __props__ = ("dtype",)
    flops, traffic = traffic.no_flops, traffic.nothing

    def __init__(self, dtype):
        self.dtype = _dtype_name(dtype)

    def make_node(self, *shape):
        entries, ones_ = alloc_validate_shape(shape)
        output = tensor_type(self.dtype, tuple(ones_)).make_variable()
        # what it holds is no result: nothing may compare it or look for NaN in it
        output.tag.values_eq_approx = values_eq_approx_always_true
        output.tag.nan_guard_mode_check = False
        return Apply(self, entries, [output])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.empty(tuple(map(int, inputs)), dtype=self.dtype)

    def infer_shape(self, node, shapes):
        return [tuple(map(length, node.inputs))]

    def connection_pattern(self, node):
        return [[False]] * len(node.inputs)

    def L_op(self, inputs, outputs, output_gradients):
        return [disconnected_type.make_variable() for _ in inputs]

    def R_op(self, inputs, eval_points):
        return [zeros(inputs, self.dtype)]

    def do_constant_folding(self, node):
        return False


@cache
def alloc_empty(dtype):
    """Return the AllocEmpty of a dtype; the same object each time."""
    return AllocEmpty(dtype)


def _shape_entries(shape):
    """Return a shape as a list of lengths: a length, a sequence of them, or a vector."""
    if isinstance(shape, Variable):
        shape = as_tensor_variable(shape)
        if shape.type.ndim == 0:
            return [shape]
        n = get_vector_length(shape)
        if isinstance(shape, Constant):
            return list(shape.data)
        return [shape[i] for i in range(n)]
    if isinstance(shape, np.ndarray):
        return list(shape.reshape(-1))
    return list(shape) if isinstance(shape, list | tuple) else [shape]


def _full(shape, value, dtype):
    return alloc(constant(np.array(value, _dtype_name(dtype))), *_shape_entries(shape))


def zeros(shape, dtype=None):
    """Return a tensor of zeros of ``dtype`` (floatX unless told).

    shape: a length, a sequence of lengths, or a vector of known length; lengths may be variables.
    """
    return _full(shape, 0, dtype)


def ones(shape, dtype=None):
    """Return a tensor of ones of ``dtype`` (floatX unless told).

    shape: a length, a sequence of lengths, or a vector of known length; lengths may be variables.
    """
    return _full(shape, 1, dtype)


def _full_like(model, value, dtype, opt):
    model = as_tensor_variable(model)
    dtype = model.type.dtype if dtype is None else _dtype_name(dtype)
    value = constant(np.array(value, dtype))
    # an optimization would drop the fill of a single number anyhow
    return value if opt and value.type == model.type else fill(model, value)


def zeros_like(model, dtype=None, opt=False):
    """Return zeros of the shape of ``model``, of its dtype unless told.

    opt: return a constant where that has the type of the model.
    """
    return _full_like(model, 0, dtype, opt)


def ones_like(model, dtype=None, opt=False):
    """Return ones of the shape of ``model``, of its dtype unless told.

    opt: return a constant where that has the type of the model.
    """
    return _full_like(model, 1, dtype, opt)


# --- sequences and matrices ---------------------------------------------------------------------


class ARange(Op):
    """The numbers from ``start`` up to but not including ``stop``, by ``step``: a vector."""

    __props__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = _dtype_name(dtype)

    def make_node(self, start, stop, step):
        inputs = [as_tensor_variable(x) for x in (start, stop, step)]
        for name, x in zip(("start", "stop", "step"), inputs, strict=True):
            if x.type.ndim:
                raise TypeError(
                    f"arange needs numbers: its {name} {x} has type {x.type}. Give a scalar."
                )
        return Apply(self, inputs, [tensor_type(self.dtype, (False,)).make_variable()])

    def perform(self, node, inputs, output_storage):
        start, stop, step = (x.item() for x in inputs)
        if step == 0:
            raise ZeroDivisionError(f"arange({start}, {stop}, {step}): its step is zero")
        if any(isinstance(x, float | complex) for x in (start, stop, step)):
            output_storage[0][0] = np.arange(start, stop, step, dtype=self.dtype)
        else:
            output_storage[0][0] = whole_numbers(start, stop, step, self.dtype)

    def infer_shape(self, node, shapes):
        start, stop, step = node.inputs
        if all(x.type.dtype in dtypes.INTEGERS for x in node.inputs):
            start, stop, step = map(length, node.inputs)
            first = extract_constant(start)
            from_zero = isinstance(first, np.generic) and first == 0
            if is_one(step):
                if from_zero:
                    return [(stop if is_length(stop) else elemwise("maximum")(stop, length(0)),)]
                # no difference overflows, but that of a range that is too long for any array
                return [(elemwise("sub")(elemwise("maximum")(stop, start), start),)]
            return [(_number_of_steps(start, stop, step),)]
        else:
            distance = elemwise("sub")(cast(stop, "float64"), cast(start, "float64"))
            count = cast(elemwise("ceil")(elemwise("true_div")(distance, step)), "int64")
        return [(count if is_length(count) else elemwise("maximum")(count, length(0)),)]

    def connection_pattern(self, node):
        return [[True], [False], [True]]

    def L_op(self, inputs, outputs, output_gradients):
        from opwise.tensor.reduce import sum as sum_

        start, _, step = inputs
        (out,), (gz,) = outputs, output_gradients
        by_start, by_step = zeros_like(start, config.floatX), zeros_like(step, config.floatX)
        if out.type.dtype in dtypes.CONTINUOUS:
            if start.type.dtype in dtypes.CONTINUOUS:
                by_start = sum_(gz)
            if step.type.dtype in dtypes.CONTINUOUS:
                positions = arange(shape_of(out)[0], dtype=out.type.dtype)
                by_step = sum_(elemwise("mul")(gz, positions))
        return [by_start, disconnected_type.make_variable(), by_step]

    def R_op(self, inputs, eval_points):
        return [None]


def whole_numbers(start: int, stop: int, step: int, dtype) -> np.ndarray:
    """Return the array of ``range(start, stop, step)``; what does not fit into ``dtype`` wraps.

    numpy's arange divides floats to find the length, which may be off from 2**53 on. Raises
    MemoryError where there are more numbers than an array can hold.
    """
    is_whole = np.dtype(dtype).kind in "iu"
    narrow = is_whole and np.dtype(dtype).itemsize < 8
    if max(abs(start), abs(stop), abs(step)) < 2**31 and not narrow:
        return np.arange(start, stop, step, dtype=dtype)
    count = how_many(start, stop, step)
    if count > np.iinfo(np.int64).max // 8:
        raise MemoryError(
            f"arange({start}, {stop}, {step}) has {count} numbers: no array is so long"
        )
    if not is_whole:
        return np.array([start + step * i for i in range(count)], dtype)
    found = np.arange(count, dtype=np.uint64)
    found *= np.uint64(step % 2**64)
    found += np.uint64(start % 2**64)
    return found.astype(dtype)


def how_many(start: int, stop: int, step: int) -> int:
    """Return the length of ``range(start, stop, step)``, also where ``len`` cannot give it."""
    return max(0, -((start - stop) // step))


def _number_of_steps(start, stop, step):
    """Return how many numbers there are from ``start`` by ``step`` before ``stop``, of int64.

    The quotient of the distance is that of the ends, and one more where the remainders say so: the
    distance itself may be more than an int64 holds.
    """
    sub, maximum, minimum = map(elemwise, ("sub", "maximum", "minimum"))
    sign = extract_constant(step)
    if not isinstance(sign, np.generic):
        up = elemwise("gt")(step, length(0))
        end = elemwise("switch")(up, maximum(stop, start), minimum(stop, start))
    else:
        end = (maximum if sign > 0 else minimum)(stop, start)
    quotient, remainder = elemwise("int_div"), elemwise("mod")
    whole = sub(quotient(end, step), quotient(start, step))
    rest = sub(remainder(end, step), remainder(start, step))
    if isinstance(sign, np.generic):
        more = elemwise("gt" if sign > 0 else "lt")(rest, length(0))
    else:
        more = elemwise("gt")(elemwise("mul")(rest, elemwise("sgn")(step)), length(0))
    return elemwise("add")(whole, cast(more, "int64"))


@cache
def _arange_op(dtype):
    return ARange(dtype)


def arange(start, stop=None, step=1, dtype=None):
    """Return the numbers from ``start`` up to but not including ``stop``, by ``step``.

    With one argument, from 0 up to it. Arguments are numbers or 0-d variables. dtype: int64 for
    integers, else the upcast of the arguments' dtypes.
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = (as_tensor_variable(x) for x in (start, stop, step))
    if dtype is None:
        dtype = _arange_dtype([x.type.dtype for x in (start, stop, step)])
    return _arange_op(_dtype_name(dtype))(start, stop, step)


def _arange_dtype(of_arguments):
    dtype = dtypes.upcast(*of_arguments)
    if dtype in dtypes.UNSIGNED:
        return "uint64"
    if dtype in dtypes.DISCRETE:
        return "int64"
    numpy_rule = config.cast_policy in ("numpy", "numpy+floatX")
    if numpy_rule and config.floatX == "float32" and "float64" not in of_arguments:
        return "float32" if dtype == "float64" else dtype
    return dtype


class _DiagonalMatrix(Op):
    """What Eye and Tri share: a matrix of n rows and m columns whose elements depend on k."""

    __props__ = ("dtype",)

    def __init__(self, dtype=None):
        self.dtype = _dtype_name(dtype)

    def make_node(self, n, m, k):
        inputs = [as_tensor_variable(x) for x in (n, m, k)]
        for x in inputs:
            if x.type.ndim or x.type.dtype not in dtypes.INTEGERS:
                raise TypeError(f"{self} needs integers; {x} has type {x.type}")
        return Apply(self, inputs, [tensor_type(self.dtype, (False, False)).make_variable()])

    def perform(self, node, inputs, output_storage):
        n, m, k = map(int, inputs)
        if n < 0 or m < 0:
            raise ValueError(f"negative dimensions are not allowed: {self} of {n} by {m}")
        k = max(-n, min(k, m))  # beyond there is no diagonal; numpy's sums might overflow
        output_storage[0][0] = self._numpy(n, m, k, dtype=self.dtype)

    def infer_shape(self, node, shapes):
        return [tuple(map(length, node.inputs[:2]))]

    def connection_pattern(self, node):
        return [[False]] * 3

    def L_op(self, inputs, outputs, output_gradients):
        return [disconnected_type.make_variable() for _ in inputs]

    def R_op(self, inputs, eval_points):
        return [None]


class Eye(_DiagonalMatrix):
    """The matrix of n rows and m columns with ones on diagonal k and zeros elsewhere."""

    _numpy = staticmethod(np.eye)


class Tri(_DiagonalMatrix):
    """The matrix of n rows and m columns with ones on and below diagonal k and zeros elsewhere."""

    _numpy = staticmethod(np.tri)


@cache
def _diagonal_op(cls, dtype):
    return cls(dtype)


def eye(n, m=None, k=0, dtype=None):
    """Return the matrix of n rows and m (n unless told) columns with ones on diagonal k.

    Arguments are integers or 0-d variables; k counts upwards. dtype: floatX unless told.
    """
    return _diagonal_op(Eye, _dtype_name(dtype))(n, n if m is None else m, k)


def identity_like(x):
    """Return the matrix of the shape and dtype of matrix ``x`` with ones on its diagonal."""
    x = as_tensor_variable(x)
    return eye(*_lengths_of_matrix(x), dtype=x.type.dtype)


def tri(N, M=None, k=0, dtype=None):
    """Return the matrix of N rows and M (N unless told) columns with ones on and below diagonal k.

    Arguments are integers or 0-d variables; k counts upwards. dtype: floatX unless told.
    """
    return _diagonal_op(Tri, _dtype_name(dtype))(N, N if M is None else M, k)


def _lengths_of_matrix(x):
    if x.type.ndim != 2:
        raise TypeError(f"A matrix is needed; {x} has {x.type.ndim} dimensions")
    return shape_of(x)[0], shape_of(x)[1]


def tril(m, k=0):
    """Return matrix ``m`` with zeros above diagonal k."""
    m = as_tensor_variable(m)
    return elemwise("mul")(m, tri(*_lengths_of_matrix(m), k=k, dtype=m.type.dtype))


def triu(m, k=0):
    """Return matrix ``m`` with zeros below diagonal k."""
    m = as_tensor_variable(m)
    below = tri(*_lengths_of_matrix(m), k=k - 1, dtype=m.type.dtype)
    return elemwise("mul")(m, elemwise("sub")(1, below))


class _Grid:
    """Coordinates of the points of a grid: ``mgrid[0:n, 1:3]``, a tensor for each dimension.

    Indexed by slices of integers, numbers and 0-d variables; a step is 1 unless told. sparse: each
    tensor is long along its own dimension only, and broadcasts along the others.
    """

    def __init__(self, sparse):
        self.sparse = sparse

    def __getitem__(self, slices):
        if isinstance(slices, slice):
            slices = (slices,)
        ranges = [self._range(part) for part in slices]
        ndim = len(ranges)
        orders = [["x"] * i + [0] + ["x"] * (ndim - i - 1) for i in range(ndim)]
        grids = [dimshuffle(r, order) for r, order in zip(ranges, orders, strict=True)]
        if self.sparse:
            return grids
        lengths = [shape_of(r)[0] for r in ranges]
        return [alloc(grid, *lengths) for grid in grids]

    @staticmethod
    def _range(part):
        if isinstance(part.step, complex):
            raise NotImplementedError(f"a grid has no complex steps: {part}")
        start = 0 if part.start is None else part.start
        return arange(start, part.stop, 1 if part.step is None else part.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)


# --- known numbers ------------------------------------------------------------------------------

#: rows of the scalar table that are computed when their operands are known
_FOLDED = frozenset(
    ROWS[name]
    for name in (
        "add", "sub", "mul", "true_div", "int_div", "mod", "neg", "maximum", "minimum",
        "eq", "neq", "lt", "le", "gt", "ge", "and_", "or_", "invert",
    )
)  # fmt: skip


def get_scalar_constant_value(orig_v, elemwise=True, only_process_constants=False, max_recur=10):
    """Return the number that every element of ``orig_v`` is known to be, as a numpy scalar.

    orig_v: a variable, or a number or array of one element. elemwise: whether to compute simple
    elementwise operations. only_process_constants: look at constants alone, not at what computes a
    variable. max_recur: how deep elementwise operations may be nested.

    Raises NotScalarConstantError where the value is not known before running, EmptyConstantError
    where there is no element.
    """
    v = orig_v
    while True:
        if not isinstance(v, Variable):
            return _number_in(v)
        if isinstance(v, Constant):
            return _number_in_constant(v)
        if only_process_constants or v.owner is None:
            raise NotScalarConstantError(v)
        op = v.owner.op
        if isinstance(op, Elemwise | ScalarOp):
            scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
            v = _through_elemwise(v, scalar_op, elemwise, max_recur)
        else:
            rule = _known_through().get(type(op))
            found = None if rule is None else rule(v.owner)
            if found is None:
                raise NotScalarConstantError(v)
            v = found


def _number_in(x):
    """Return the number that a Python or numpy object is."""
    data = np.asarray(x)
    if data.dtype.kind not in "biufc":
        raise NotScalarConstantError(f"{x!r} is not a number")
    if data.size == 0:
        raise EmptyConstantError(x)
    if data.size > 1:
        raise NotScalarConstantError(f"{x!r} has more than one element")
    return data.reshape(-1)[0]


def constant_number(v):
    """Return the number that all elements of a constant are, None where there is no such number."""
    found = v._unique_value
    if found is None:
        # looked for once in each constant
        found = v._unique_value = _unique_value(v.data)
    return found[0] if found else None


def _unique_value(data):
    """Return (number,) where all elements are that number, else ()."""
    if isinstance(data, np.ndarray) and data.size > 1:
        flat = data.reshape(-1)
        return (flat[0],) if data.dtype.kind in "biufc" and (flat == flat[0]).all() else ()
    if isinstance(data, np.ndarray | np.generic | int | float | complex):
        try:
            return (_number_in(data),)
        except NotScalarConstantError:
            pass
    return ()


def _number_in_constant(v):
    number = constant_number(v)
    if number is None:
        if np.size(v.data) == 0:
            raise EmptyConstantError(v)
        raise NotScalarConstantError(f"{v} has no elements, or not all of them equal")
    return number


def _through_elemwise(v, op, compute, max_recur):
    """Return the value of an elementwise result, or the variable that it equals elementwise."""
    operands = v.owner.inputs
    row = op.row
    if row is not None and row.name in ("second", "identity"):
        return operands[-1]
    if not compute or max_recur <= 0 or len(v.owner.outputs) > 1:
        raise NotScalarConstantError(v)

    def value(x):
        return get_scalar_constant_value(x, max_recur=max_recur - 1)

    if row is not None and row.name == "switch":
        chosen = operands[1] if value(operands[0]) else operands[2]
        return value(chosen).astype(v.type.dtype)
    if not isinstance(op, Cast) and row not in _FOLDED:
        raise NotScalarConstantError(v)
    arrays = [np.asarray(value(x)) for x in operands]
    with np.errstate(all="ignore"):
        return op.on_arrays(arrays, [v.type.dtype])[0][()]


def _operand(node):
    return node.inputs[0]


def _checked(node):
    """What an Assert lets pass, where all it asks for is known to hold."""
    value, *conditions = node.inputs
    try:
        held = all(get_scalar_constant_value(c, max_recur=3) for c in conditions)
    except NotScalarConstantError:
        return None
    return value if held else None


def _entry_of_shape(node):
    """The length of a dimension where the type or a constant tells it."""
    return vector_entry(shape_of(node.inputs[0]), node.op.i)


def _picked(node):
    """What a Subtensor picks: from a constant, or one entry of a vector."""
    x = node.inputs[0]
    index = constant_index(node)
    if index is None:
        return None
    if isinstance(x, Constant):
        try:
            picked = x.data[index]
        except IndexError:
            return None
        return constant(picked)
    if x.type.ndim == 1 and node.outputs[0].type.ndim == 0:
        return vector_entry(x, index[0])
    return None


def constant_index(node):
    """Return what a Subtensor indexes by as a tuple of ints and slices of ints, None if unknown."""
    from opwise.tensor.subtensor import get_idx_list

    def number(part):
        if part is None or isinstance(part, int):
            return part
        return int(get_scalar_constant_value(part, max_recur=3))

    index = []
    try:
        for item in get_idx_list(node.inputs, node.op.idx_list):
            if isinstance(item, slice):
                index.append(slice(number(item.start), number(item.stop), number(item.step)))
            else:
                index.append(number(item))
    except NotScalarConstantError:
        return None
    return tuple(index)


@cache
def _known_through():
    """Return {class of an Op: what its output equals, elementwise, as far as it is known}.

    A rule takes an Apply and returns a variable that holds the same number, a number, or None.
    """
    from opwise.tensor.subtensor import Subtensor

    same = (
        DimShuffle, Rebroadcast, Alloc, ScalarFromTensor, TensorFromScalar, ViewOp, OutputGuard,
        DeepCopyOp,
    )  # fmt: skip
    return {
        **dict.fromkeys(same, _operand),
        Assert: _checked,
        Shape_i: _entry_of_shape,
        Subtensor: _picked,
    }


def extract_constant(x, elemwise=True, only_process_constants=False):
    """Return the number that ``x`` is known to be, as ``get_scalar_constant_value``, else x.

    A scalar variable without a known value is returned as a tensor.
    """
    try:
        return get_scalar_constant_value(x, elemwise, only_process_constants)
    except NotScalarConstantError:
        pass
    if isinstance(x, Variable) and isinstance(x.type, Scalar):
        if x.owner is not None and isinstance(x.owner.op, ScalarFromTensor):
            return x.owner.inputs[0]
        return tensor_from_scalar(x)
    return x
