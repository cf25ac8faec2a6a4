"""Conversions that keep the value: between scalars and 0-d tensors, copies and views.

``opwise.tensor.elemwise.cast`` changes the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from opwise.config import config
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.opmethods import linear_in_first, scalar_shape, shapes_of
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.types import Scalar, as_scalar, get_scalar_type
from opwise.scalar.types import constant as scalar_constant
from opwise.tensor.elemwise import bare
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable, conversions

__all__ = [
    "ScalarFromTensor",
    "TensorFromScalar",
    "scalar_from_tensor",
    "tensor_copy",
    "tensor_from_scalar",
]


class ScalarFromTensor(Op):
    """The number in a 0-d tensor, as a scalar variable."""

    __props__ = ()
    flops, traffic = costs.no_flops, costs.number

    def make_node(self, x: TensorLike) -> Apply:
        x = as_tensor_variable(x)
        if x.type.ndim != 0:
            raise TypeError(f"ScalarFromTensor needs a 0-d tensor; {x} has type {x.type}")
        return Apply(self, [x], [get_scalar_type(x.type.dtype).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0][()]

    infer_shape = scalar_shape

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return [tensor_from_scalar(output_gradients[0])]

    R_op = linear_in_first


class TensorFromScalar(TensorOp):
    """A scalar variable as a 0-d tensor."""

    __props__ = ()
    flops, traffic = costs.no_flops, costs.number

    def make_node(self, x: Variable) -> Apply:
        if not isinstance(x, Variable) or not isinstance(x.type, Scalar):
            if isinstance(getattr(x, "type", None), TensorType):
                raise TypeError(f"TensorFromScalar needs a scalar; {x} is a tensor already")
            x = as_scalar(x)
        return Apply(self, [x], [tensor_type(x.type.dtype, ()).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = np.asarray(inputs[0])

    infer_shape = scalar_shape

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        if outputs[0].type.dtype in dtypes.DISCRETE:
            return [scalar_constant(0.0, dtype=config.floatX)]
        return [scalar_from_tensor(output_gradients[0])]

    R_op = linear_in_first


scalar_from_tensor = ScalarFromTensor()
tensor_from_scalar = TensorFromScalar()
conversions.from_scalar = tensor_from_scalar

#: a new array with the same elements
tensor_copy = bare("identity")


class ViewOp(Op):
    """A view of the input, of any type.

    Base class of Ops that change only how a graph is treated, such as those that stop gradients.
    """

    view_map = {0: [0]}
    __props__: tuple[str, ...] = ()
    flops, traffic = costs.no_flops, costs.nothing

    def make_node(self, x: Variable) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        output_storage[0][0] = inputs[0]

    infer_shape = shapes_of(0)

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        return output_gradients

    R_op = linear_in_first


class OutputGuard(ViewOp):
    """A view that is declared to overwrite its input, so that no later Apply may use the input."""

    destroy_map = {0: [0]}


class DeepCopyOp(Op):
    """A copy of the input, of any type, that shares no memory with it."""

    __props__ = ()
    flops, traffic = costs.no_flops, costs.each_once

    def make_node(self, x: Variable) -> Apply:
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        (x,) = inputs
        output_storage[0][0] = x.copy() if isinstance(x, np.ndarray) else deepcopy(x)

    infer_shape = shapes_of(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        return output_gradients

    R_op = linear_in_first


view_op = ViewOp()
deep_copy_op = DeepCopyOp()
_output_guard = OutputGuard()
