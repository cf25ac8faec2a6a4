"""The complex Fourier transform along one axis; as in ``theano.tensor.fourier``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths, Storage, Values
from opwise.graph.opmethods import connects
from opwise.graph.variable import Constant, Var
from opwise.scalar import dtypes
from opwise.tensor.creation import arange
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.products import outer, tensordot
from opwise.tensor.shape import shape as shape_of
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = ["Fourier", "fft"]


class Fourier(TensorOp):
    """The transform of an array along an axis, complex128; inputs (a, n, axis).

    n: the length of the result along the axis, to which a is cut or padded with zeros (None: that
    of a). axis: from 0 on (None: the last one). The shape is that of a but for this length. Its
    gradient is that of a complex function of a complex variable, and needs a constant axis. Raises
    TypeError for a number, and for an n or axis that is no integer or out of range; ValueError at
    run time if a variable is out of range.
    """

    __props__ = ()

    def make_node(
        self, a: TensorLike, n: TensorLike | None = None, axis: TensorLike | None = None
    ) -> Apply:
        a = as_tensor_variable(a)
        if a.type.ndim < 1:
            raise TypeError(f"Fourier: input must be an array, not a scalar: {a}")
        axis = as_tensor_variable(a.type.ndim - 1 if axis is None else axis)
        if axis.type.dtype not in dtypes.INTEGERS:
            raise TypeError("Fourier: index of the transformed axis must be of type integer")
        if axis.type.ndim or (isinstance(axis, Constant) and not 0 <= axis.data < a.type.ndim):
            raise TypeError(
                "Fourier: index of the transformed axis must be a scalar not smaller than 0 and "
                f"smaller than dimension of array, got {axis} for {a.type}"
            )
        n = as_tensor_variable(shape_of(a)[axis] if n is None else n)
        if n.type.dtype not in dtypes.INTEGERS:
            raise TypeError("Fourier: length of the transformed axis must be of type integer")
        if n.type.ndim or (isinstance(n, Constant) and n.data < 1):
            raise TypeError(
                f"Fourier: length of the transformed axis must be a strictly positive scalar: {n}"
            )
        kept = isinstance(axis, Constant)
        pattern = tuple(
            b and kept and d != int(axis.data) for d, b in enumerate(a.type.broadcastable)
        )
        return Apply(self, [a, n, axis], [tensor_type("complex128", pattern).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        a, n, axis = inputs
        result = np.fft.fft(a, n=int(n), axis=int(axis))
        output_storage[0][0] = result.astype(np.complex128, copy=False)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        _, n, axis = node.inputs
        n = cast(n, "int64")
        return [
            tuple(
                elemwise("switch")(elemwise("eq")(axis, d), n, length)
                for d, length in enumerate(shapes[0])
            )
        ]

    connection_pattern = connects(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        (a, n, axis), (gz,) = inputs, output_gradients
        if not isinstance(axis, Constant):
            raise NotImplementedError("Fourier: gradient is currently implemented only for axis "
                                      "being a Theano constant")  # fmt: skip
        known = int(axis.data)
        elements = arange(shape_of(a)[known])
        turns = outer(arange(n), elements) * (-2j * math.pi) / n
        # elements that are cut off have no influence
        factors = elemwise("exp")(turns) * elemwise("lt")(elements, n)
        gradient = tensordot(gz, factors, (known, 0))
        order = list(range(a.type.ndim - 1))
        order.insert(known, a.type.ndim - 1)
        disconnected = [disconnected_type.make_variable() for _ in range(2)]
        return [dimshuffle(gradient, order), *disconnected]


fft = Fourier()
