"""Reductions: sums, products, extrema, means and variances; norms are in ``operators``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from copy import copy
from functools import cache, partial, reduce
from typing import Self, TypeAlias

import numpy as np

from opwise.config import config
from opwise.errors import MethodNotDefined
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayLayouts, ArrayShapes, Traffic
from opwise.graph.null import NullType, disconnected_type, is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import connects, linear_in_first, zero_derivative
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.scalar.op import OPS, BinaryScalarOp, Computation, ScalarOp
from opwise.scalar.spec import Array
from opwise.tensor.convert import ViewOp
from opwise.tensor.creation import arange, zeros_like
from opwise.tensor.dimshuffle import dimshuffle, dimshuffle_op
from opwise.tensor.elemwise import cast, elemwise, rough_work, second_bare
from opwise.tensor.shape import reshape, shape
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
)

__all__ = [
    "Argmax",
    "CAReduce",
    "MaxAndArgmax",
    "Prod",
    "Sum",
    "all",
    "any",
    "argmax",
    "argmin",
    "check_and_normalize_axes",
    "makeKeepDims",
    "max",
    "max_and_argmax",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


#: an axis, several, or None for all
Axis: TypeAlias = "int | Sequence[int] | np.ndarray | Variable | None"

# --- axes ---------------------------------------------------------------------------------------


def _axis_list(axis: Axis) -> list[int] | None:
    """Return an axis argument as a list of ints, None for all axes.

    axis: None or NoneConst, an integer, a constant, or a sequence of integers; TypeError for
    anything else.
    """
    if axis is None or isinstance(axis, int):
        return axis if axis is None else [axis]
    if isinstance(axis, Variable):
        if not isinstance(axis, Constant):
            raise TypeError(
                f"an axis must be known when the graph is built: {axis} is not constant"
            )
        axis = axis.data
        if axis is None:
            return None
    if isinstance(axis, list | tuple):
        return [_single_axis(a) for a in axis]
    array = np.asarray(axis)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise _no_axis(axis)
    return [int(a) for a in array.reshape(-1)]


def _single_axis(axis: Axis) -> int:
    found = _axis_list(axis)
    if found is None or len(found) != 1:
        raise _no_axis(axis)
    return found[0]


def _no_axis(axis: Axis) -> TypeError:
    return TypeError(
        f"an axis is an integer, a constant, or a list or tuple of these, not {axis}, a "
        f"'{type(axis).__name__}'"
    )


def _axes(x: Tensor, axis: Axis) -> tuple[int, ...] | None:
    """Return the axes of ``x`` to reduce as a sorted tuple without duplicates; None for all."""
    axes = _axis_list(axis)
    if axes is None:
        return None
    ndim = x.type.ndim
    for a in axes:
        if not -ndim <= a < ndim:
            raise ValueError(
                f"Not enough dimensions on {x} to reduce on axis {a}: it has {ndim}, axes go from "
                f"{-ndim} to {ndim - 1}"
            )
    return tuple(sorted({a % ndim for a in axes}))


def check_and_normalize_axes(x: TensorLike, axis: Axis) -> list[int]:
    """Return ``axis`` as a sorted list of axes from 0 to x.ndim-1; None and [] mean all dimensions.

    Raises TypeError unless axis consists of integers and constants, ValueError if one is out of
    range.
    """
    x = as_tensor_variable(x)
    return list(_axes(x, axis) or range(x.type.ndim))


def makeKeepDims(x: TensorLike, y: TensorLike, axis: Axis) -> Tensor:
    """Return ``y``, a reduction of ``x`` along ``axis``, with the reduced dimensions kept as 1.

    The result has as many dimensions as x, and the dtype of y. Raises ValueError if an axis is out
    of range or y has other dimensions than x without them, TypeError if an axis is not a known
    integer.
    """
    x, y = as_tensor_variable(x), as_tensor_variable(y)
    return _keep_dims(x, y, _axes(x, axis))


def _keep_dims(x: Tensor, y: Tensor, axes: Sequence[int] | None) -> Tensor:
    return dimshuffle_op(y.type.broadcastable, _spread(x.type.ndim, axes))(y)


def _spread(ndim: int, axes: Sequence[int] | None) -> tuple[int | str, ...]:
    """Return the order for a DimShuffle that inserts the reduced dimensions, with length 1."""
    kept = iter(range(ndim))
    return tuple("x" if axes is None or i in axes else next(kept) for i in range(ndim))


# --- reductions by a scalar operation -----------------------------------------------------------

_UFUNCS = {
    "add": np.add,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "or_": np.bitwise_or,
    "and_": np.bitwise_and,
    "xor": np.bitwise_xor,
}


def users_identity(scalar_op: ScalarOp) -> float | None:
    """Return the attribute ``identity`` of a user's operation, the result without any element."""
    return getattr(scalar_op, "identity", None) if scalar_op.row is None else None


def axes_of(node: Apply) -> tuple[int, ...]:
    """Return the axes that a reduction, which has an attribute ``axis``, reduces."""
    axes = node.op.axis
    return tuple(range(node.inputs[0].type.ndim)) if axes is None else axes


class CAReduce(TensorOp):
    """A commutative and associative scalar operation applied along axes.

    scalar_op: of two inputs and one output. axis: an axis, a sequence of axes, or None for all.
    The output has the dtype of the input, and lacks the reduced dimensions.
    """

    __props__: tuple[str, ...] = ("scalar_op", "axis")
    traffic = costs.each_once
    #: the result without any element, for operations that have no identity
    of_nothing: float | None = None

    def __init__(self, scalar_op: ScalarOp, axis: Axis = None) -> None:
        if scalar_op.nin not in (-1, 2) or scalar_op.nout != 1:
            raise NotImplementedError(
                f"only an operation of two inputs and one output can reduce, not {scalar_op}"
            )
        self.scalar_op = scalar_op
        axes = _axis_list(axis)
        self.axis = axes if axes is None else tuple(sorted(set(axes)))

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        op = self._for(x)
        axes = op.axis
        pattern = x.type.broadcastable
        kept = () if axes is None else tuple(b for i, b in enumerate(pattern) if i not in axes)
        output = tensor_type(op._output_dtype(x.type.dtype), kept).make_variable()
        return Apply(op, [x], [output])

    def _for(self, x: Tensor) -> Self:
        """Return this Op for an input: its axes do not count from the end, its dtypes are known."""
        axes = _axes(x, self.axis)
        if axes == self.axis:
            return self
        op = copy(self)
        op.axis = axes
        return op

    def _output_dtype(self, idtype: str) -> str:
        return idtype

    def _acc_dtype(self, idtype: str) -> str:
        return idtype

    def element_cost(self, n_inputs: int) -> float:
        """Return roughly how many nanoseconds one element takes."""
        return self.scalar_op.element_cost(2)

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes; None if it is not known."""
        if not self.scalar_op.has_cost():
            return None
        return self.element_cost(1) * math.prod(inputs[0])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return how often the scalar operation is applied. inputs, outputs: their shapes."""
        if self.scalar_op.row is None or not self.scalar_op.row.flops:
            return None
        n = math.prod(inputs[0])
        return n - math.prod(outputs[0]) if n else 0

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        with np.errstate(all="ignore"):
            computing = self._acc_dtype(node.inputs[0].type.dtype)
            result = self._reduced(x, axes, computing) if axes else x
            dtype = node.outputs[0].type.numpy_dtype
            # without axes the result is the input itself, which must be copied
            output_storage[0][0] = np.array(result, dtype=dtype, copy=None if axes else True)

    def _reduced(self, x: np.ndarray, axes: Sequence[int], dtype: str) -> Array:
        row = self.scalar_op.row
        ufunc = None if row is None else _UFUNCS.get(row.name)
        if ufunc is not None and self.of_nothing is not None:
            return ufunc.reduce(x, axis=axes, dtype=dtype, initial=self.of_nothing)
        identity = users_identity(self.scalar_op)
        if identity is not None and x.size == 0:
            return np.full([n for i, n in enumerate(x.shape) if i not in axes], identity, dtype)
        if ufunc is None or ufunc.identity is None:
            check_not_empty(x, axes, self.scalar_op)
        if ufunc is not None:
            return ufunc.reduce(x, axis=axes, dtype=dtype)
        return self._reduced_in_order(x, axes, dtype)

    def _reduced_in_order(self, x: np.ndarray, axes: Sequence[int], dtype: str) -> np.ndarray:
        """Reduce by a scalar op that numpy has no ufunc for, element by element."""
        kept = [i for i in range(x.ndim) if i not in axes]
        count = int(np.prod([x.shape[i] for i in axes]))
        lined_up = x.transpose((*axes, *kept)).reshape((count, *(x.shape[i] for i in kept)))
        result: np.ndarray = lined_up[0].astype(dtype)
        for item in lined_up[1:]:
            (result,) = self.scalar_op.on_arrays(
                [np.asarray(result), np.asarray(item, dtype)], [dtype]
            )
        return result

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        (lengths,) = shapes
        if self.axis is None:
            return [()]
        return [tuple(n for i, n in enumerate(lengths) if i not in self.axis)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (out,), (gz,) = inputs, outputs, output_gradients
        if x.type.dtype in dtypes.DISCRETE or out.type.dtype in dtypes.DISCRETE:
            return [zeros_like(x, config.floatX)]
        return [self._gradient(x, out, gz)]

    def _gradient(self, x: Tensor, out: Tensor, gz: Tensor) -> Tensor:
        name = getattr(self.scalar_op.row, "name", None)
        if name in ("maximum", "minimum"):
            return _gradient_of_extremum(x, out, gz, self.axis)
        if name == "add":
            return _gradient_of_sum(x, gz, self.axis)
        raise MethodNotDefined("grad", type(self), str(self))

    def __str__(self) -> str:
        return f"Reduce{{{self.scalar_op}}}{_axis_text(self.axis)}"


def check_not_empty(x: np.ndarray, axes: Iterable[int], operation: object) -> None:
    """Raise ValueError if there is nothing to reduce, for an operation without an identity."""
    for axis in axes:
        if x.shape[axis] == 0:
            raise ValueError(f"Input of CAReduce{{{operation}}} has zero-size on axis {axis}")


def _axis_text(axis: Sequence[int] | None) -> str:
    return "" if axis is None else f"{{{', '.join(map(str, axis))}}}"


def _gradient_of_sum(x: Tensor, gz: Tensor, axes: Sequence[int] | None) -> Tensor:
    return second_bare(x, dimshuffle(gz, _spread(x.type.ndim, axes)))


def _gradient_of_extremum(
    x: Tensor, extremum: Tensor, gz: Tensor, axes: Sequence[int] | None
) -> Tensor:
    """Return the gradient: every element that equals the extremum gets all of it."""
    order = _spread(x.type.ndim, axes)
    reached = elemwise("eq")(dimshuffle(extremum, order), x)
    return elemwise("mul")(reached, dimshuffle(gz, order))


class FirstAlong(Op):
    """The first element along ``axes``, which keep the length 1; 0 if there is none.

    The rewrites make these: sums of deviations from an element are more exact than sums of squares.
    """

    __props__ = ("axes",)
    flops = costs.no_flops

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)

    def make_node(self, x: Var) -> Apply:
        pattern = tuple(b or d in self.axes for d, b in enumerate(x.type.broadcastable))
        return Apply(self, [x], [tensor_type(x.type.dtype, pattern).make_variable()])

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes that are read and written: those of the output."""
        return [outputs[0].bytes], [outputs[0].bytes]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        index = tuple(slice(0, 1) if d in self.axes else slice(None) for d in range(x.ndim))
        out = np.zeros([1 if d in self.axes else n for d, n in enumerate(x.shape)], x.dtype)
        if x.size:
            out[...] = x[index]
        output_storage[0][0] = out

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        one = constant(np.int64(1))
        return [tuple(one if d in self.axes else n for d, n in enumerate(shapes[0]))]


class Supremum(CAReduce):
    """The maximum of floats along axes; minus infinity if there is no element."""

    __props__ = ("axis",)
    of_nothing = -math.inf

    def __init__(self, axis: Axis = None) -> None:
        super().__init__(OPS["maximum"], axis)


class _Logical(CAReduce):
    """Base of All and Any: a number is true unless it is 0."""

    __props__ = ("axis",)

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.dtype != "bool":
            x = elemwise("neq")(x, 0)
        return super().make_node(x)

    def __str__(self) -> str:
        return f"{type(self).__name__}{_axis_text(self.axis)}"


class All(_Logical):
    """Whether all elements along axes are true (not 0)."""

    def __init__(self, axis: Axis = None) -> None:
        super().__init__(OPS["and_"], axis)


class Any(_Logical):
    """Whether any element along axes is true (not 0)."""

    def __init__(self, axis: Axis = None) -> None:
        super().__init__(OPS["or_"], axis)


# --- reductions with dtypes of their own --------------------------------------------------------

_WIDE = {
    **dict.fromkeys((*dtypes.BOOL, *dtypes.SIGNED), "int64"),
    **dict.fromkeys(dtypes.UNSIGNED, "uint64"),
}
_WIDE_ACC = _WIDE | {"float16": "float32", "float32": "float64", "complex64": "complex128"}
_NUMPY_ACC = _WIDE | {"float16": "float32"}
#: whether sums and products accumulate in the dtypes that numpy takes, where no other is asked for
accumulate_as_numpy: ContextVar[bool] = ContextVar("opwise_accumulate_as_numpy", default=False)


def _acc_of(dtype: str) -> str:
    """Return the dtype in which elements of ``dtype`` are accumulated if no other is asked for."""
    return (_NUMPY_ACC if accumulate_as_numpy.get() else _WIDE_ACC).get(dtype, dtype)


def _dtype_name(dtype: DTypeLike | None) -> str | None:
    if dtype is None or dtype == "floatX":
        return config.floatX if dtype else None
    try:
        return np.dtype(dtype).name
    except TypeError:
        raise TypeError(f"Unsupported dtype for TensorType: {dtype}") from None


class CAReduceDtype(CAReduce):
    """A CAReduce that accumulates in ``acc_dtype`` and returns ``dtype``.

    dtype: None means int64 or uint64 for integers and bool, else the dtype of the input. acc_dtype:
    None means a wider dtype of the same kind: int64, uint64, float64 (float32 for float16),
    complex128. Raises TypeError if it would lose precision.
    """

    __props__: tuple[str, ...] = ("scalar_op", "axis", "dtype", "acc_dtype")

    def __init__(
        self,
        scalar_op: ScalarOp,
        axis: Axis = None,
        dtype: str | None = None,
        acc_dtype: str | None = None,
    ) -> None:
        super().__init__(scalar_op, axis)
        self.dtype = _dtype_name(dtype)
        self.acc_dtype = _dtype_name(acc_dtype)

    def _output_dtype(self, idtype: str) -> str:
        return _WIDE.get(idtype, idtype) if self.dtype is None else self.dtype

    def _acc_dtype(self, idtype: str) -> str:
        if self.acc_dtype is None:
            return _acc_of(idtype)
        if idtype in dtypes.DISCRETE and self.acc_dtype in dtypes.CONTINUOUS:
            return self.acc_dtype
        both = dtypes.upcast(idtype, self.acc_dtype)
        if both != self.acc_dtype:
            raise TypeError(
                f"{self} of {idtype} would lose precision: acc_dtype must be {both} at least. "
                f"Leave acc_dtype out and give dtype='{self.acc_dtype}' for a precise result that "
                "is rounded at the end, or cast the input"
            )
        return self.acc_dtype

    def _for(self, x: Tensor) -> Self:
        op = super()._for(x)
        dtype, acc_dtype = self._output_dtype(x.type.dtype), self._acc_dtype(x.type.dtype)
        if (dtype, acc_dtype) == (op.dtype, op.acc_dtype):
            return op
        op = copy(op)
        op.dtype, op.acc_dtype = dtype, acc_dtype
        return op

    def __str__(self) -> str:
        return f"{self._name()}{{{self._axis_field()}acc_dtype={self.acc_dtype}}}"

    def _axis_field(self) -> str:
        return "" if self.axis is None else f"axis={list(self.axis)}, "

    def _name(self) -> str:
        return f"ReduceDtype{{{self.scalar_op}}}"


class Sum(CAReduceDtype):
    """The sum of the elements along axes; see CAReduceDtype for the dtypes."""

    __props__ = ("axis", "dtype", "acc_dtype")

    def __init__(
        self, axis: Axis = None, dtype: str | None = None, acc_dtype: str | None = None
    ) -> None:
        super().__init__(OPS["add"], axis, dtype, acc_dtype)

    R_op = linear_in_first

    def _name(self) -> str:
        return "Sum"


class Prod(CAReduceDtype):
    """The product of the elements along axes; see CAReduceDtype for the dtypes.

    no_zeros_in_input: promises that no element is 0, which makes the gradient cheaper. The gradient
    is undefined if the promise does not hold.
    """

    __props__ = ("axis", "dtype", "acc_dtype")

    def __init__(
        self,
        axis: Axis = None,
        dtype: str | None = None,
        acc_dtype: str | None = None,
        no_zeros_in_input: bool = False,
    ) -> None:
        super().__init__(OPS["mul"], axis, dtype, acc_dtype)
        self.no_zeros_in_input = no_zeros_in_input

    def _gradient(self, x: Tensor, out: Tensor, gz: Tensor) -> Tensor:
        mul, switch, eq = elemwise("mul"), elemwise("switch"), elemwise("eq")
        order = _spread(x.type.ndim, self.axis)
        gz = dimshuffle(gz, order)
        by_factor = mul(gz, dimshuffle(out, order))
        if self.no_zeros_in_input:
            return elemwise("true_div")(by_factor, x)
        # with a single zero, the gradient is 0 except at that zero: the product of the others
        is_zero = eq(x, 0.0)
        one_for_zero = switch(is_zero, constant(np.ones((), x.type.dtype)), x)
        without_zeros = elemwise("true_div")(by_factor, one_for_zero)
        count = sum(is_zero, axis=self.axis)
        none = dimshuffle(eq(count, 0), order)
        one = dimshuffle(eq(count, 1), order)
        wanted = mul(mul(one, elemwise("neq")(gz, 0.0)), x)
        others = _prod_without_zeros(self.axis, self.dtype, self.acc_dtype)(wanted)
        at_zero = switch(mul(one, is_zero), dimshuffle(others, order), 0.0)
        return switch(none, without_zeros, mul(at_zero, gz))

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (x,), (point,) = inputs, eval_points
        if point is None:
            return [None]
        out = self(x)
        if out.type.dtype in dtypes.DISCRETE:
            return [zeros_like(out, config.floatX)]
        one = second_bare(out, constant(np.ones((), out.type.dtype)))
        return [sum(elemwise("mul")(self._gradient(x, out, one), point), axis=self.axis)]

    def __str__(self) -> str:
        return Op.__str__(self)


class MulWithoutZeros(BinaryScalarOp):
    """The product of two numbers; if one of them is 0, the other number."""

    def output_dtypes(self, in_dtypes: Sequence[str]) -> list[str]:
        return [dtypes.upcast(*in_dtypes)]

    def impl(self, x: Array, y: Array) -> Array:
        return y if x == 0 else x if y == 0 else x * y

    def computation(self, in_dtypes: Sequence[str], out_dtypes: Sequence[str]) -> Computation:
        def compute(arrays: Sequence[Array]) -> list[np.ndarray]:
            x, y = arrays
            product = np.where(x == 0, y, np.where(y == 0, x, x * y))
            return [product.astype(out_dtypes[0], copy=False)]

        return compute


mul_without_zeros = MulWithoutZeros(name="mul_without_zeros")


class ProdWithoutZeros(CAReduceDtype):
    """The product of the nonzero elements along axes; 0 if all elements are 0."""

    __props__ = ("axis", "dtype", "acc_dtype")

    def __init__(
        self, axis: Axis = None, dtype: str | None = None, acc_dtype: str | None = None
    ) -> None:
        super().__init__(mul_without_zeros, axis, dtype, acc_dtype)

    def _reduced(self, x: np.ndarray, axes: Sequence[int], dtype: str) -> Array:
        zero = x == 0
        product = np.multiply.reduce(np.where(zero, x.dtype.type(1), x), axis=axes, dtype=dtype)
        nothing = 0 in [x.shape[i] for i in axes]
        return product if nothing else np.where(zero.all(axis=axes), 0, product)

    def _gradient(self, x: Tensor, out: Tensor, gz: Tensor) -> Tensor:
        result: Tensor = NullType(
            "the gradient of a product has no gradient where an element is 0: give prod the "
            "argument no_zeros_in_input=True if none is"
        ).make_variable()
        return result

    def __str__(self) -> str:
        return Op.__str__(self)


@cache
def _prod_without_zeros(axes: Sequence[int], dtype: str, acc_dtype: str | None) -> ProdWithoutZeros:
    return ProdWithoutZeros(axes, dtype, acc_dtype)


# --- extrema and where they are -----------------------------------------------------------------


class _Extremum(Op):
    """Base of MaxAndArgmax and Argmax: axes, and positions in them."""

    __props__ = ("axis",)
    traffic = costs.each_once

    def __init__(self, axis: Axis) -> None:
        axes = _axis_list(axis)
        if axes is None:
            raise TypeError(f"{type(self).__name__} needs its axes, as a tuple of integers")
        self.axis = tuple(axes)

    def _prepare(self, x: TensorLike) -> tuple[Tensor, Self, tuple[bool, ...]]:
        """Return (x as a tensor, this Op with axes of x, the broadcast pattern of the output)."""
        x = as_tensor_variable(x)
        axes = tuple(check_and_normalize_axes(x, self.axis)) if self.axis else ()
        op = self
        if axes != self.axis:
            op = copy(self)
            op.axis = axes
        return x, op, tuple(b for i, b in enumerate(x.type.broadcastable) if i not in axes)

    def _argmax(self, x: np.ndarray) -> np.ndarray:
        """Return the position of the first maximum among the reduced axes, in C order."""
        check_not_empty(x, self.axis, "maximum")
        kept = [i for i in range(x.ndim) if i not in self.axis]
        rest = tuple(x.shape[i] for i in kept)
        count = int(np.prod([x.shape[i] for i in self.axis]))
        lined_up = x.transpose((*kept, *self.axis))
        return np.asarray(np.argmax(lined_up.reshape((*rest, count)), axis=-1), dtype=np.int64)

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes: a comparison an element."""
        return rough_work(("gt",), inputs[0])

    def _lengths(self, shapes: Sequence[Lengths]) -> tuple[Tensor, ...]:
        return tuple(n for i, n in enumerate(shapes[0]) if i not in self.axis)


class MaxAndArgmax(_Extremum):
    """The maximum along axes, and the position of the first one, counted in C order over the axes.

    axis: a tuple of axes. NaN is larger than any number. Raises ValueError without any element.
    """

    nout = 2

    def make_node(self, x: TensorLike) -> Apply:
        x, op, pattern = self._prepare(x)
        outputs = [
            tensor_type(x.type.dtype, pattern).make_variable("max"),
            tensor_type("int64", pattern).make_variable("argmax"),
        ]
        return Apply(op, [x], outputs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[1][0] = self._argmax(x)
        output_storage[0][0] = np.array(np.max(x, axis=self.axis))

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [self._lengths(shapes)] * 2

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x,), (by_max, by_argmax) = inputs, output_gradients
        if is_disconnected(by_max) and is_disconnected(by_argmax):
            return [disconnected_type.make_variable()]
        if is_disconnected(by_max) or x.type.dtype in dtypes.DISCRETE:
            return [zeros_like(x, config.floatX)]
        return [_gradient_of_extremum(x, outputs[0], by_max, self.axis)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (point,) = eval_points
        if point is None:
            return [None, None]
        kept = [i for i in range(point.type.ndim) if i not in self.axis]
        lengths = [shape(point)[i] for i in kept]
        reduced = [shape(point)[i] for i in self.axis]
        count = elemwise("mul")(*reduced) if reduced else 1
        lined_up = reshape(dimshuffle(point, (*kept, *self.axis)), [*lengths, count])
        where = _keep_dims(lined_up, self(inputs[0], return_list=True)[1], (len(kept),))
        positions = arange(shape(lined_up)[len(kept)])
        chosen = elemwise("switch")(elemwise("eq")(positions, where), lined_up, 0)
        return [sum(chosen, axis=-1), None]


class Argmax(_Extremum):
    """The position of the first maximum along axes, counted in C order over the axes.

    axis: a tuple of axes. Raises ValueError without any element.
    """

    def make_node(self, x: TensorLike) -> Apply:
        x, op, pattern = self._prepare(x)
        return Apply(op, [x], [tensor_type("int64", pattern).make_variable("argmax")])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = self._argmax(inputs[0])

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [self._lengths(shapes)]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [zeros_like(inputs[0], config.floatX)]

    R_op = zero_derivative


@cache
def _max_and_argmax_op(axes: Sequence[int]) -> MaxAndArgmax:
    return MaxAndArgmax(axes)


# --- functions ----------------------------------------------------------------------------------


@cache
def _reduction(
    cls: Callable[..., CAReduce], axes: tuple[int, ...] | None, *options: bool | str | None
) -> CAReduce:
    return cls(axes, *options)


def _reduced(
    cls: Callable[..., CAReduce],
    x: TensorLike,
    axis: Axis,
    keepdims: bool,
    *options: bool | str | None,
) -> Tensor:
    x = as_tensor_variable(x)
    axes = _axes(x, axis)
    result = _reduction(cls, axes, *options)(x)
    return _keep_dims(x, result, axes) if keepdims else result


def sum(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the sum along ``axis`` (default: all).

    The result lacks these dimensions. dtype: of the result (default: int64 or uint64 for integers
    and bool, else that of the input). acc_dtype: of the accumulator (default: a wider one, float64
    for float32). keepdims: keep the reduced dimensions, with length 1. Raises ValueError if an axis
    is out of range, TypeError if it is not a known integer or if acc_dtype loses precision.
    """
    x = as_tensor_variable(input)
    options = _concrete_dtypes(x, dtype, acc_dtype)
    return _reduced(Sum, x, axis, keepdims, *options)


def _concrete_dtypes(
    x: Tensor, dtype: DTypeLike | None, acc_dtype: DTypeLike | None
) -> tuple[str, ...]:
    """Return dtype and acc_dtype for a reduction of ``x``, with the defaults in place of None."""
    dtype, acc_dtype = _dtype_name(dtype), _dtype_name(acc_dtype)
    if dtype is None:
        dtype = _WIDE.get(x.type.dtype, x.type.dtype)
    return dtype, _acc_of(x.type.dtype) if acc_dtype is None else acc_dtype


def prod(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
    no_zeros_in_input: bool = False,
) -> Tensor:
    """Return the product along ``axis`` (default: all).

    The result lacks these dimensions. dtype, acc_dtype, keepdims: as in ``sum``. no_zeros_in_input:
    promises that no element is 0, which makes the gradient cheaper. Raises ValueError if an axis is
    out of range, TypeError if it is not a known integer or if acc_dtype loses precision.
    """
    x = as_tensor_variable(input)
    options = _concrete_dtypes(x, dtype, acc_dtype)
    return _reduced(Prod, x, axis, keepdims, *options, bool(no_zeros_in_input))


def any(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether any element along ``axis`` (default: all) is not 0, as bool.

    axis: an int, a constant or several; the result lacks these dimensions, or keeps them with
    length 1 if keepdims. Without elements it is False. Raises ValueError if an axis is out of
    range, TypeError if it is not a known integer.
    """
    return _reduced(Any, x, axis, keepdims)


def all(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements along ``axis`` (default: all) are not 0, as bool.

    axis: an int, a constant or several; the result lacks these dimensions, or keeps them with
    length 1 if keepdims. Without elements it is True. Raises ValueError if an axis is out of range,
    TypeError if it is not a known integer.
    """
    return _reduced(All, x, axis, keepdims)


def mean(
    input: TensorLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    op: bool = False,
    keepdims: bool = False,
    acc_dtype: DTypeLike | None = None,
) -> Tensor:
    """Return the mean along ``axis`` (default: all); float64 for integers and bool.

    The result lacks these dimensions; other dtypes than integers and bool stay as they are. dtype:
    of the sum, and of the result if it is float or complex. op: accepted for old programs, without
    effect. keepdims, acc_dtype: as in ``sum``. Without elements it is NaN. Raises ValueError if an
    axis is out of range, TypeError if it is not a known integer or if acc_dtype loses precision.
    """
    x = as_tensor_variable(input)
    sum_dtype = _dtype_name(dtype)
    result_is_half = sum_dtype == "float16" or (sum_dtype is None and x.type.dtype == "float16")
    if sum_dtype is None and result_is_half:
        sum_dtype = "float32"
    total: Tensor = sum(x, axis, sum_dtype, keepdims, acc_dtype)
    axes = _axes_as_given(x, axis)
    divisor = "float32" if total.type.dtype in _NARROW else "float64"
    if axes:
        lengths = cast(shape(x), divisor)
        total = _divided(total, [lengths[i] for i in axes])
    if total.type.dtype in dtypes.DISCRETE:  # along no axis, nothing was divided
        total = cast(total, divisor)
    if result_is_half:
        total = cast(total, "float16")
    total.name = "mean"
    return total


_NARROW = ("float16", "float32", "complex64")


def _axes_as_given(x: Tensor, axis: Axis) -> list[int]:
    """Return the axes in the caller's order and with the caller's signs, without duplicates."""
    ndim, axes = x.type.ndim, _axis_list(axis)
    return list(range(ndim)) if axes is None else list({a % ndim: a for a in axes}.values())


def var(
    input: TensorLike,
    axis: Axis = None,
    ddof: int = 0,
    keepdims: bool = False,
    corrected: bool = False,
) -> Tensor:
    """Return the variance along ``axis`` (default: all), by two passes over the input.

    The result lacks these dimensions, or keeps them with length 1 if keepdims. ddof: the divisor is
    the number of elements minus ddof. corrected: correct the result for the rounding error of the
    mean. The dtype is that of ``mean``; with a ddof other than 0 its upcast with int64, so that
    float32 becomes float64. Raises ValueError if an axis is out of range, TypeError if it is not a
    known integer.
    """
    x = as_tensor_variable(input)
    axes = _axes_as_given(x, axis)
    centered = elemwise("sub")(x, mean(x, axes, keepdims=True))
    two = constant(np.array(2, centered.type.dtype))
    squares = elemwise("pow")(centered, two)
    # the rounding error of the mean adds its square to the mean of the squares
    if ddof == 0:
        result = mean(squares, axes, keepdims=keepdims)
        if corrected:
            left = elemwise("pow")(mean(centered, axes, keepdims=keepdims), 2)
            result = elemwise("sub")(result, left)
    else:
        lengths = shape(x)
        parts: list[TensorLike] = [lengths[i] for i in axes]
        count = reduce(elemwise("mul"), parts or [1])
        fewer = elemwise("sub")(count, ddof)
        result = elemwise("true_div")(sum(squares, axes, keepdims=keepdims), fewer)
        if corrected:
            left = elemwise("pow")(sum(centered, axes, keepdims=keepdims), 2)
            left = elemwise("true_div")(left, elemwise("mul")(fewer, count))
            result = elemwise("sub")(result, left)
    result.name = "var"
    return result


def _divided(x: Tensor, divisors: Sequence[Tensor]) -> Tensor:
    for divisor in divisors:
        x = elemwise("true_div")(x, divisor)
    return x


class RootOfSum(ViewOp):
    """Returns its first input, ``x ** power``; the second is x, a sum of powers.

    The derivative by x is 0 where x is 0: that of the root is infinite there and that of the powers
    0, so that their product would be NaN; 0 is a subgradient.
    """

    __props__ = ("power",)

    def __init__(self, power: float) -> None:
        self.power = power

    def make_node(self, root: Var, x: Var) -> Apply:  # type: ignore[override]  # a view of one of two inputs
        return Apply(self, [root, x], [root.type.make_variable()])

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return shapes[:1]

    connection_pattern = connects(1)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        slope = self._slope(outputs[0], inputs[1])
        return [disconnected_type.make_variable(), elemwise("mul")(output_gradients[0], slope)]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        if eval_points[1] is None:
            return [None]
        return [elemwise("mul")(eval_points[1], self._slope(*inputs))]

    def _slope(self, root: Tensor, x: Tensor) -> Tensor:
        # x ** (power - 1), without a division by 0
        one = constant(np.array(1, x.type.dtype))
        nonzero = elemwise("switch")(elemwise("eq")(x, 0), one, x)
        power = constant(np.array(self.power, root.type.dtype))
        return elemwise("mul")(power, elemwise("true_div")(root, nonzero))


def std(
    input: TensorLike,
    axis: Axis = None,
    ddof: int = 0,
    keepdims: bool = False,
    corrected: bool = False,
) -> Tensor:
    """Return the standard deviation along ``axis`` (default: all); arguments as for ``var``.

    Shape and dtype are those of ``var``. Where it is 0, its gradient is 0, which is a subgradient.
    Raises ValueError if an axis is out of range, TypeError if it is not a known integer.
    """
    variance = var(input, axis, ddof, keepdims, corrected)
    result: Tensor = RootOfSum(0.5)(elemwise("sqrt")(variance), variance)
    result.name = "std"
    return result


def max_and_argmax(a: TensorLike, axis: Axis = None, keepdims: bool = False) -> list[Tensor]:
    """Return [maximum, position of the first maximum] along ``axis`` (default: all).

    The maximum has the dtype of a, the position is int64 and counts in C order over the reduced
    axes. axis: an int, a constant or several; the result lacks these dimensions, or keeps them with
    length 1 if keepdims. Raises ValueError if an axis is out of range, TypeError if it is not a
    known integer; at run time ValueError without an element.
    """
    a = as_tensor_variable(a)
    axes = tuple(check_and_normalize_axes(a, axis))
    results: list[Tensor] = _max_and_argmax_op(axes)(a, return_list=True)
    return [_keep_dims(a, r, axes) for r in results] if keepdims else results


def max(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the maximum along ``axis`` (default: all); NaN if an element is NaN.

    The dtype is that of x. axis: an int, a constant or several; the result lacks these dimensions,
    or keeps them with length 1 if keepdims. In the gradient, all elements that equal the maximum
    get the whole gradient. Raises ValueError if an axis is out of range, TypeError if it is not a
    known integer; at run time ValueError without an element.
    """
    return max_and_argmax(x, axis, keepdims)[0]


def argmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the position of the first maximum along ``axis`` (default: in the flattened array).

    The result is int64. axis: an int, a constant or several; the result lacks these dimensions, or
    keeps them with length 1 if keepdims. Of several axes, positions count in C order; a NaN is the
    maximum. Raises ValueError if an axis is out of range, TypeError if it is not a known integer;
    at run time ValueError without an element.
    """
    return max_and_argmax(x, axis, keepdims)[1]


def _turned(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Return (``x`` by a function that reverses the order of numbers, that function).

    The function is its own inverse.
    """
    dtype = x.type.dtype
    if dtype in dtypes.COMPLEX:
        raise NotImplementedError(f"complex numbers have no minimum; {x} has dtype {dtype}")
    turn: Callable[[Tensor], Tensor]
    if dtype in dtypes.UNSIGNED:
        turn = partial(elemwise("sub"), constant(np.iinfo(dtype).max, dtype=dtype))
    else:
        # ~x is -1 - x: unlike -x it does not overflow for the smallest integer
        turn = elemwise("neg" if dtype in dtypes.FLOATS else "invert")
    return turn(x), turn


def min(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the minimum along ``axis`` (default: all); NaN if an element is NaN.

    The dtype is that of x. axis: an int, a constant or several; the result lacks these dimensions,
    or keeps them with length 1 if keepdims. In the gradient, all elements that equal the minimum
    get the whole gradient. Raises ValueError if an axis is out of range, TypeError if it is not a
    known integer, NotImplementedError for complex numbers; at run time ValueError without an
    element.
    """
    turned, turn = _turned(as_tensor_variable(x))
    return turn(max(turned, axis, keepdims))


def argmin(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the position of the first minimum along ``axis`` (default: in the flattened array).

    The result is int64. axis: an int, a constant or several; the result lacks these dimensions, or
    keeps them with length 1 if keepdims. Of several axes, positions count in C order; a NaN is the
    minimum. Raises ValueError if an axis is out of range, TypeError if it is not a known integer,
    NotImplementedError for complex numbers; at run time ValueError without an element.
    """
    turned, _ = _turned(as_tensor_variable(x))
    return argmax(turned, axis, keepdims)


def ptp(a: TensorLike, axis: Axis = None) -> Tensor:
    """Return the maximum minus the minimum along ``axis`` (default: all).

    The dtype is that of a; the result lacks these dimensions. Raises ValueError if an axis is out
    of range, TypeError if it is not a known integer and for bool, NotImplementedError for complex
    numbers; at run time ValueError without an element.
    """
    a = as_tensor_variable(a)
    return elemwise("sub")(max(a, axis), min(a, axis))
