"""Elemwise: a scalar operation on every element of arrays that broadcast.

Reductions are in ``opwise.tensor.reduce``.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.config import config, thread_flags
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayLayouts, ArrayShapes, Traffic
from opwise.graph.hashing import HashedOnce
from opwise.graph.null import NullType, disconnected_type, is_disconnected, is_null
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.scalar.op import OPS, ScalarOp, cast_op
from opwise.scalar.spec import ROWS, Algebra, ScalarSpec
from opwise.scalar.types import get_scalar_type
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import (
    Tensor,
    TensorLike,
    TensorOp,
    as_tensor_variable,
    constant,
)

#: Apply -> the function that computes it in numpy
_computations: weakref.WeakKeyDictionary[Apply, _Computation] = weakref.WeakKeyDictionary()


class _Computation:
    """Computes an Elemwise Apply in numpy, for inputs of the Apply's types."""

    def __init__(self, op: Elemwise, node: Apply) -> None:
        self.op = op
        self.inplace = list(op.inplace_pattern.items())
        self.compute = op.scalar_op.computation(
            [v.type.dtype for v in node.inputs], [v.type.dtype for v in node.outputs]
        )
        #: for each dimension, the inputs that do not broadcast along it
        self.lengths_of = [
            [i for i, v in enumerate(node.inputs) if not v.type.broadcastable[dim]]
            for dim in range(node.outputs[0].type.ndim)
        ]

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
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

    def shape_of(self, arrays: Sequence[np.ndarray]) -> tuple[int, ...]:
        """Return the shape of the outputs for inputs that have a ``shape``.

        Raises ValueError if two inputs that do not broadcast along a dimension differ in length.
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


class Elemwise(HashedOnce, TensorOp):
    """A scalar operation applied to every element; inputs broadcast along broadcastable dimensions.

    scalar_op: the operation. inplace_pattern: dict from an output to the input that it overwrites.
    Lengths that happen to be 1 at run time do not broadcast: along a dimension, all inputs that are
    not declared broadcastable must have the same length.
    """

    #: each element is read before it is overwritten, so an operand may be given twice
    destroyhandler_tolerate_same = True
    #: only the elementwise functions of the scalar table have a name
    __name__: str

    def __init__(
        self,
        scalar_op: ScalarOp,
        inplace_pattern: Mapping[int, int] | None = None,
        name: str | None = None,
        nfunc_spec: Any = None,
        openmp: Any = None,
    ) -> None:
        if not isinstance(scalar_op, ScalarOp):
            raise TypeError(f"Elemwise needs a scalar op, not {scalar_op!r}")
        self.scalar_op = scalar_op
        self.inplace_pattern = dict(inplace_pattern or {})
        self.name = name
        self.nfunc_spec = nfunc_spec
        if self.inplace_pattern:
            self.destroy_map = {o: [i] for o, i in self.inplace_pattern.items()}
        #: the scalar row, for rules; None if it overwrites an input, which rules must not change
        row = None if self.inplace_pattern else scalar_op.plain_row
        self.row_name = None if row is None else row.name
        self.profile_kind = scalar_op.profile_kind
        self._keep_hash()

    def _hashed(self) -> Any:
        return self.scalar_op, tuple(sorted(self.inplace_pattern.items()))

    def make_node(self, *inputs: TensorLike) -> Apply:
        operands = [as_tensor_variable(x) for x in inputs]
        self.scalar_op.check_count(len(operands))
        ndim = max(x.type.ndim for x in operands)
        operands = [x if x.type.ndim == ndim else pad_left(x, ndim) for x in operands]
        out_dtypes = self.scalar_op.output_dtypes([x.type.dtype for x in operands])
        if ndim:
            patterns = [x.type.broadcastable for x in operands]
            pattern = (
                patterns[0]
                if len(patterns) == 1
                else tuple(all(column) for column in zip(*patterns, strict=True))
            )
        else:
            pattern = ()
        for out, i in self.inplace_pattern.items():
            self._check_inplace(operands, i, out_dtypes[out], pattern)
        outputs = [tensor_type(d, pattern).make_variable() for d in out_dtypes]
        return Apply(self, operands, outputs)

    def _check_inplace(
        self, inputs: Sequence[Tensor], i: int, dtype: str, pattern: tuple[bool, ...]
    ) -> None:
        if inputs[i].type.broadcastable != pattern:
            raise ValueError(
                "Operation cannot be done inplace on an input with broadcasted dimensions."
            )
        if inputs[i].type.dtype != dtype:
            raise TypeError(
                f"Cannot do an inplace operation on incompatible data types. "
                f"({[x.type.dtype for x in inputs]}, {dtype}, {self.inplace_pattern})"
            )

    def element_cost(self, n_inputs: int) -> float:
        """Return roughly how many nanoseconds one element takes."""
        return self.scalar_op.element_cost(n_inputs)

    def apply_work(self, inputs: ArrayShapes, outputs: ArrayShapes) -> float | None:
        """Return roughly the nanoseconds that one thread computes; None if it is not known."""
        if not self.scalar_op.has_cost():
            return None
        n: int = math.prod(outputs[0])
        return self.element_cost(len(inputs)) * n

    def flops(self, inputs: ArrayShapes, outputs: ArrayShapes) -> int | None:
        """Return the number of floating-point operations; None if there is no exact count.

        inputs, outputs: their shapes.
        """
        count = self.scalar_op.element_flops(len(inputs))
        return None if count is None else count * math.prod(outputs[0])

    def traffic(self, node: Apply, inputs: ArrayLayouts, outputs: ArrayLayouts) -> Traffic:
        """Return the bytes of the inputs that are read, and of the outputs."""
        unread = self.scalar_op.unread()
        read = [0 if i in unread else a.bytes for i, a in enumerate(inputs)]
        return read, [a.bytes for a in outputs]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        with np.errstate(all="ignore"):
            results = self.computation(node)(inputs)
        for result, cell in zip(results, output_storage, strict=True):
            cell[0] = result

    def computation(self, node: Apply) -> _Computation:
        """Return a function from the inputs of an Apply to its outputs.

        Each output has memory of its own, or the memory of the input that it overwrites. The
        function may cause numpy's warnings about NaN and infinities.
        """
        found = _computations.get(node)
        if found is None or found.op is not self:
            found = _computations[node] = _Computation(self, node)
        return found

    def shape_of(self, node: Apply, inputs: Sequence[Any]) -> tuple[int, ...]:
        """Return the shape of the outputs for inputs that have a ``shape``.

        Raises ValueError if two inputs that do not broadcast along a dimension differ in length.
        """
        return self.computation(node).shape_of(inputs)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
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

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Return which inputs each output depends on; a dependence on a shape does not count."""
        row = self.scalar_op.row
        if row is not None and row.ignores_first:
            return [[False], [True]]
        return [[True] * len(node.outputs) for _ in node.inputs]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
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
                g = g.sum(axis=summed, keepdims=True)
            results.append(g)
        return results

    def _gradients(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> list[Var]:
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
            if row is not None and i == 0 and row.ignores_first:
                result.append(disconnected_type.make_variable())
            elif isinstance(g, int):
                zero = config.floatX if x.type.dtype in dtypes.DISCRETE else None
                result.append(zeros_like(x, zero))
            elif g is None:
                result.append(NullType(f"{op} has no gradient by input {i}").make_variable())
            else:
                result.append(g if is_null(g) else as_tensor_variable(g))
        return result

    def _gradients_by_scalar_graph(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> list[Var]:
        """Return the gradients of an op without a row, from its gradient on scalar variables."""
        op = self.scalar_op
        scalars = [get_scalar_type(x.type.dtype).make_variable() for x in inputs]
        scalar_outs = op.make_node(*scalars).outputs
        scalar_grads = [get_scalar_type(g.type.dtype).make_variable() for g in output_gradients]
        with thread_flags(compute_test_value="off"):  # the scalars stand for elements
            results = op.L_op(scalars, scalar_outs, scalar_grads)
        values = dict(
            zip(
                [*scalars, *scalar_outs, *scalar_grads],
                [*inputs, *outputs, *output_gradients],
                strict=True,
            )
        )
        return [r if r is None or is_null(r) else _lift(r, values) for r in results]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        outputs: Any = self(*inputs, return_list=True)
        ones = [second_bare(out, constant(np.asarray(1, out.type.dtype))) for out in outputs]
        total: list[Var] = [None] * len(outputs)
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

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self.row_name == other.row_name  # differs most often, and is compared fast
            and self.scalar_op == other.scalar_op
            and self.inplace_pattern == other.inplace_pattern
        )

    __hash__ = HashedOnce.__hash__

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        op = self.scalar_op
        if not self.inplace_pattern:
            return f"Elemwise{{{op}}}"
        return f"Elemwise{{{op}}}{sorted(self.inplace_pattern.items())}"


def _lift(result: Var, values: dict[Any, Any]) -> Tensor:
    """Return the tensor variable that a scalar graph computes from the tensors in ``values``."""
    values = dict(values)
    for node in io_toposort(list(values), [result]):
        args: list[Any] = []
        for var in node.inputs:
            args.append(constant(var.data) if isinstance(var, Constant) else values[var])
        made: Any = Elemwise(node.op)(*args, return_list=True)
        for old, new in zip(node.outputs, made, strict=True):
            values.setdefault(old, new)
    lifted: Tensor = values[result] if result in values else constant(result.data)
    return lifted


def pad_left(x: Tensor, ndim: int) -> Tensor:
    """Return ``x`` with broadcastable dimensions added on the left up to ``ndim``."""
    missing = ndim - x.type.ndim
    if missing <= 0:
        return x
    return x.dimshuffle(["x"] * missing + list(range(x.type.ndim)))


@cache
def bare(name: str) -> Elemwise:
    """Return the Elemwise of a row that gradients use, which prints without ``no_inplace``."""
    return Elemwise(OPS[name])


BARE_ALGEBRA = Algebra(lambda name, *args: bare(name)(*args))


def second_bare(x: Variable, y: Variable) -> Tensor:
    """Return ``y`` broadcast to the shape of ``x``."""
    return bare("second")(x, y)


def zeros_like(x: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros of the shape of ``x`` (default dtype: that of x)."""
    zero = constant(np.zeros((), dtype or x.type.dtype))
    return second_bare(x, zero)


#: the elementwise function of every row that has one on tensors, by its tensor name
FUNCTIONS: dict[str, Elemwise] = {}
_PLAIN_NAMES = {"scalar_sigmoid": "sigmoid", "scalar_softplus": "softplus",
                "scalar_softsign": "softsign", "ultra_fast_scalar_sigmoid": "ultra_fast_sigmoid",
                "xlogx": "xlogx", "xlogy0": "xlogy0"}  # fmt: skip


def _define(row: ScalarSpec) -> Elemwise:
    tensor_name = row.tensor_name or row.name
    text = _PLAIN_NAMES.get(row.name) or f"Elemwise{{{tensor_name},no_inplace}}"
    op = FUNCTIONS[tensor_name] = Elemwise(OPS[row.name], name=text)
    op.__doc__ = row.described()
    op.__name__ = tensor_name
    return op


for _row in ROWS.values():
    _define(_row)


def elemwise(name: str) -> Elemwise:
    """Return the Elemwise of a row as users write it (``Elemwise{add,no_inplace}``)."""
    row = ROWS[name]
    return FUNCTIONS[row.tensor_name or row.name]


def rough_work(each: Iterable[str], shape: tuple[int, ...]) -> float:
    """Return roughly the nanoseconds that one thread needs to apply some rows to all elements.

    For ``apply_work`` of Ops that are no loops of scalar operations. each: names of rows.
    """
    return sum(elemwise(name).element_cost(2) for name in each) * math.prod(shape)


@cache
def cast_elemwise(dtype: str) -> Elemwise:
    """Return the Elemwise that casts to ``dtype``."""
    return Elemwise(cast_op(dtype))


def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Return ``x`` as ``dtype``, a dtype or 'floatX', with the shape of x.

    A tensor that has the dtype is returned as it is. Floats lose their fraction, integers that are
    out of range their high bits; bool is whether an element is not 0. Raises TypeError for a dtype
    that no tensor has, and for complex numbers as anything that is not complex.
    """
    if dtype == "floatX":
        dtype = config.floatX
    try:
        dtype = np.dtype(dtype).name
    except TypeError as error:
        raise TypeError(f"{error}: cast takes one of {', '.join(dtypes.ALL)}") from None
    if dtype not in dtypes.ALL:
        raise TypeError(f"no tensor has dtype {dtype}: cast takes one of {', '.join(dtypes.ALL)}")
    x = tensor = as_tensor_variable(x)
    if x.type.dtype == dtype:
        return tensor
    if x.type.dtype in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        raise TypeError(
            "Casting from complex to real is ambiguous: consider real(), imag(), angle() or abs()"
        )
    return cast_elemwise(dtype)(x)
