"""Products with the operations of BLAS, which scale and accumulate in one step; batched products.

The rewrites that make these Ops are in ``opwise.optimizers.rules.blas``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opwise.errors import InconsistencyError
from opwise.graph import costs
from opwise.graph.aliasing import root
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import product_shape, shapes_of
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.dot import _dot, matched, numpys_dot, product_rule
from opwise.tensor.elemwise import cast
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, constant

#: theano.tensor has none of these names; theano.tensor.blas has all
__all__: list[str] = []

_DTYPES = dtypes.FLOATS + dtypes.COMPLEX


def _same_dtypes(name: str, variables: tuple[Tensor, ...]) -> str:
    """Return the dtype of all variables; TypeError unless it is the same one, float or complex."""
    found = tuple(v.type.dtype for v in variables)
    if len(set(found)) != 1:
        raise TypeError(f"{name} requires matching dtypes", found)
    if found[0] not in _DTYPES:
        raise TypeError(f"{name} requires floating-point dtypes", found[0])
    return found[0]


def _scalar(x: TensorLike, dtype: str) -> Tensor:
    """Return a factor as a tensor; a constant is cast to ``dtype`` if the cast is exact."""
    x = tensor = as_tensor_variable(x)
    data = getattr(x, "data", None)
    if data is not None and x.type.dtype != dtype and data.astype(dtype) == data:
        return constant(data.astype(dtype))
    return tensor


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return numpy's dot; a ValueError contains the shapes as well."""
    try:
        product: np.ndarray = numpys_dot(x, y)
        return product
    except ValueError as e:
        e.args = (*e.args, x.shape, y.shape)
        raise


def _accumulated(
    name: str,
    z: np.ndarray,
    product: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    target: np.ndarray,
) -> np.ndarray:
    """Write ``beta * z + alpha * product`` to ``target``, which may be z, and return it.

    z is not read if beta is 0: it may be uninitialized.
    """
    if z.shape != product.shape:
        raise ValueError(
            f"Incompatible shapes for {name}: the product has {product.shape}, the array that "
            f"it is added to has {z.shape}"
        )
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        target[...] = product
        return target
    np.add(z if beta == 1 else z * beta, product, out=target)
    return target


class GemmRelated(TensorOp):
    """Base of the products of two matrices."""

    __props__: tuple[str, ...] = ()
    #: which inputs are multiplied
    factors = (0, 1)
    profile_kind = "product"
    traffic = costs.each_once

    infer_shape = shapes_of(0)

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of multiplications and additions of the product, by the shapes."""
        (m, k), (_, n) = (inputs[i] for i in self.factors)
        result: int = 2 * m * n * k
        return result


class _Accumulates(TensorOp):
    """Base of products that are added to the first input. inplace: overwrite it."""

    __props__: tuple[str, ...] = ("inplace",)
    profile_kind = "product"
    traffic = costs.accumulates(4)

    def __init__(self, inplace: bool) -> None:
        self.inplace = bool(inplace)
        if self.inplace:
            self.destroy_map = {0: [0]}

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'inplace' if self.inplace else 'no_inplace'}}}"


class Gemm(_Accumulates, GemmRelated):
    """``b * z + a * dot(x, y)`` for matrices x, y and z and scalars a and b.

    Inputs (z, a, x, y, b), all of one dtype, float or complex. inplace: overwrite z.
    """

    factors = (2, 3)
    E_rank = "gemm only works for rank 2"
    E_scalar = "gemm requires scalar argument"
    E_z_uniq = "argument z aliased to x or y"
    E_mixed = "gemm requires matching dtypes"
    E_float = "gemm requires floating-point dtypes"

    def make_node(self, *inputs: TensorLike) -> Apply:
        if len(inputs) != 5:
            raise TypeError(f"Wrong number of inputs for {self} (expected 5, got {len(inputs)})")
        z, x, y = (as_tensor_variable(inputs[i]) for i in (0, 2, 3))
        a, b = (_scalar(inputs[i], z.type.dtype) for i in (1, 4))
        for matrix in (z, x, y):
            if matrix.type.ndim != 2:
                raise TypeError(self.E_rank, matrix)
        for factor in (a, b):
            if factor.type.ndim != 0:
                raise TypeError(self.E_scalar, factor)
        _same_dtypes("gemm", (z, a, x, y, b))
        if self.inplace:
            for factor in (x, y):
                if root(factor) is root(z):
                    raise InconsistencyError(self.E_z_uniq, (z, factor))
        out = tensor_type(z.type.dtype, z.type.broadcastable).make_variable()
        return Apply(self, [z, a, x, y, b], [out])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        z, a, x, y, b = inputs
        target = z if self.inplace else np.empty(z.shape, z.dtype)
        output_storage[0][0] = _accumulated("gemm", z, _product(x, y), a, b, target)


class Gemv(_Accumulates):
    """``beta * y + alpha * dot(A, x)`` for a matrix A; inputs (y, alpha, A, x, beta).

    inplace: overwrite y.
    """

    def make_node(
        self, y: TensorLike, alpha: TensorLike, A: TensorLike, x: TensorLike, beta: TensorLike
    ) -> Apply:
        y, A, x = map(as_tensor_variable, (y, A, x))
        alpha, beta = _scalar(alpha, y.type.dtype), _scalar(beta, y.type.dtype)
        dtype = _same_dtypes("Gemv", (y, A, x))
        for name, var, ndim in (("matrix for A", A, 2), ("vector for x", x, 1),
                                ("vector for y", y, 1), ("scalar alpha", alpha, 0),
                                ("scalar beta", beta, 0)):  # fmt: skip
            if var.type.ndim != ndim:
                raise TypeError(f"gemv requires {name}", var.type)
        for factor in (alpha, beta):
            if dtypes.upcast(factor.type.dtype, dtype) != dtype:
                raise TypeError(f"gemv: {factor} of {factor.type} does not fit into {dtype}")
        return Apply(self, [y, alpha, A, x, beta], [y.type.make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of multiplications and additions of the product, by the shapes."""
        m, n = inputs[2]
        result: int = 2 * m * n
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        y, alpha, A, x, beta = inputs
        if A.shape != (*y.shape, *x.shape):
            raise ValueError(
                "Incompatible shapes for gemv (beta * y + alpha * dot(A, x)). "
                f"y: {y.shape}, A: {A.shape}, x: {x.shape}"
            )
        target = y if self.inplace else np.empty(y.shape, y.dtype)
        output_storage[0][0] = _accumulated("gemv", y, numpys_dot(A, x), alpha, beta, target)


class Ger(TensorOp):
    """``A + alpha * outer(x, y)`` for a matrix A; inputs (A, alpha, x, y).

    destructive: overwrite A.
    """

    __props__ = ("destructive",)
    profile_kind = "product"
    traffic = costs.each_once

    def __init__(self, destructive: bool) -> None:
        self.destructive = bool(destructive)
        if self.destructive:
            self.destroy_map = {0: [0]}

    def make_node(self, A: TensorLike, alpha: TensorLike, x: TensorLike, y: TensorLike) -> Apply:
        A, x, y = map(as_tensor_variable, (A, x, y))
        alpha = _scalar(alpha, A.type.dtype)
        _same_dtypes("ger", (A, alpha, x, y))
        for name, var, ndim in (("scalar alpha", alpha, 0), ("matrix for A", A, 2),
                                ("vector for x", x, 1), ("vector for y", y, 1)):  # fmt: skip
            if var.type.ndim != ndim:
                raise TypeError(f"ger requires {name}", var.type)
        return Apply(self, [A, alpha, x, y], [A.type.make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of multiplications and additions. inputs, outputs: their shapes."""
        m, n = inputs[0]
        result: int = 2 * m * n
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        A, alpha, x, y = inputs
        if A.shape != (*x.shape, *y.shape):
            raise ValueError(
                "Incompatible shapes for ger (A + alpha * outer(x, y)). "
                f"A: {A.shape}, x: {x.shape}, y: {y.shape}"
            )
        target = A if self.destructive else A.copy()
        target += (alpha * x)[:, np.newaxis] * y
        output_storage[0][0] = target

    infer_shape = shapes_of(0)

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{'' if self.destructive else 'non-'}destructive}}"


class BaseBLAS:
    """Marks the Ops whose C implementation calls BLAS."""


class CGemv(BaseBLAS, Gemv):
    """Gemv that has a C implementation."""


class CGer(BaseBLAS, Ger):
    """Ger that has a C implementation."""


class Dot22(GemmRelated):
    """The product of two matrices of one dtype, float or complex."""

    def make_node(self, x: TensorLike, y: TensorLike) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        for matrix in (x, y):
            if matrix.type.ndim != 2 or matrix.type.dtype not in _DTYPES:
                raise TypeError("Dot22 takes matrices of floats", matrix)
        if x.type.dtype != y.type.dtype:
            raise TypeError("dtype mismatch to Dot22", (x.type.dtype, y.type.dtype))
        return Apply(self, [x, y], [_product_type(x, y).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.asarray(_product(*inputs))

    infer_shape = product_shape

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        return [matched(_dot(gz, y.T), x), matched(_dot(x.T, gz), y)]

    R_op = product_rule


def _product_type(x: Tensor, y: Tensor) -> TensorType:
    return tensor_type(x.type.dtype, (x.type.broadcastable[0], y.type.broadcastable[1]))


class Dot22Scalar(GemmRelated):
    """``a * dot(x, y)`` for matrices x and y and a scalar a, all of one dtype."""

    def make_node(self, x: TensorLike, y: TensorLike, a: TensorLike) -> Apply:
        x, y = as_tensor_variable(x), as_tensor_variable(y)
        a = _scalar(a, x.type.dtype)
        if a.type.ndim != 0:
            raise TypeError(Gemm.E_scalar, a)
        for matrix in (x, y):
            if matrix.type.ndim != 2:
                raise TypeError(Gemm.E_rank, matrix)
        _same_dtypes("Dot22Scalar", (a, x, y))
        return Apply(self, [x, y, a], [_product_type(x, y).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y, a = inputs
        product = np.asarray(_product(x, y))
        np.multiply(product, a, out=product)
        output_storage[0][0] = product

    infer_shape = product_shape


class BatchedDot(TensorOp):
    """The product of each element of x along its first axis with that of y.

    x and y have 2 or 3 dimensions; the elements are multiplied as vectors and matrices. There is no
    broadcasting along the first axis.
    """

    __props__ = ()
    profile_kind = "product"
    traffic = costs.each_once

    def make_node(self, *inputs: TensorLike) -> Apply:
        if len(inputs) != 2:
            raise TypeError(
                f"theano.tensor.blas.BatchedDot: 2 arguments required, {len(inputs)} given "
            )
        x, y = map(as_tensor_variable, inputs)
        for i, v in enumerate((x, y)):
            if v.type.ndim not in (2, 3):
                raise TypeError(
                    f"theano.tensor.blas.BatchedDot: input {i} (0-indexed) must have ndim of 2 or "
                    f"3, {v.type.ndim} given. Consider calling theano.tensor.batched_dot instead."
                )
        dtype = dtypes.upcast(x.type.dtype, y.type.dtype)
        x, y = (cast(v, dtype) for v in (x, y))
        first = x.type.broadcastable[0] or y.type.broadcastable[0]
        pattern = (first, *x.type.broadcastable[1:-1], *y.type.broadcastable[2:])
        return Apply(self, [x, y], [tensor_type(dtype, pattern).make_variable()])

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of multiplications and additions. inputs, outputs: their shapes."""
        result: int = 2 * math.prod(outputs[0]) * inputs[0][-1]
        return result

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        if len(x) != len(y):
            raise TypeError(
                f"theano.tensor.blas.BatchedDot: inputs of shapes {x.shape} and {y.shape} must "
                f"have the same size in axis 0, but have sizes [{len(x)}, {len(y)}]."
            )
        left = x if x.ndim == 3 else x[:, np.newaxis, :]
        right = y if y.ndim == 3 else y[:, :, np.newaxis]
        product = np.matmul(left, right)
        dropped = tuple(d for d, v in ((1, x), (2, y)) if v.ndim == 2)
        product = product.reshape([n for d, n in enumerate(product.shape) if d not in dropped])
        output_storage[0][0] = np.asarray(product, dtype=node.outputs[0].type.numpy_dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        x, y = shapes
        return [x[:-1] + y[2:]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (x, y), (gz,) = inputs, output_gradients
        swapped = [dimshuffle(v, (0, 2, 1)) if v.type.ndim == 3 else v for v in (x, y)]
        if gz.type.ndim == 1:
            column = dimshuffle(gz, (0, "x"))
            gx, gy = column * y, column * x
        elif x.type.ndim == 2:
            gx, gy = batched_dot(gz, swapped[1]), _batched_outer(x, gz)
        elif y.type.ndim == 2:
            gx, gy = _batched_outer(gz, y), batched_dot(swapped[0], gz)
        else:
            gx, gy = batched_dot(gz, swapped[1]), batched_dot(swapped[0], gz)
        return [matched(gx, x), matched(gy, y)]

    R_op = product_rule


def _batched_outer(x: Tensor, y: Tensor) -> Tensor:
    return batched_dot(dimshuffle(x, (0, 1, "x")), dimshuffle(y, (0, "x", 1)))


gemm_inplace = Gemm(inplace=True)
gemm_no_inplace = Gemm(inplace=False)
#: a legacy name
gemm = gemm_no_inplace
gemv_inplace = Gemv(inplace=True)
gemv_no_inplace = Gemv(inplace=False)
gemv = gemv_no_inplace
ger = Ger(destructive=False)
ger_destructive = Ger(destructive=True)
cgemv_inplace = CGemv(inplace=True)
cgemv_no_inplace = CGemv(inplace=False)
cger_inplace = CGer(destructive=True)
cger_no_inplace = CGer(destructive=False)
_dot22 = Dot22()
_dot22scalar = Dot22Scalar()
batched_dot = BatchedDot()
