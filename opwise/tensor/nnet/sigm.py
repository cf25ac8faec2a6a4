"""Sigmoids and softplus, as elementwise functions."""

from __future__ import annotations

from opwise.scalar import dtypes
from opwise.scalar.op import CLASSES, OPS
from opwise.tensor.elemwise import Elemwise, elemwise
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable, constant

__all__ = [
    "ScalarSigmoid",
    "ScalarSoftplus",
    "UltraFastScalarSigmoid",
    "hard_sigmoid",
    "scalar_sigmoid",
    "scalar_softplus",
    "sigmoid",
    "sigmoid_inplace",
    "softplus",
    "ultra_fast_scalar_sigmoid",
    "ultra_fast_sigmoid",
    "ultra_fast_sigmoid_inplace",
]

ScalarSigmoid = CLASSES["ScalarSigmoid"]
ScalarSoftplus = CLASSES["ScalarSoftplus"]
UltraFastScalarSigmoid = CLASSES["UltraFastScalarSigmoid"]

scalar_sigmoid = OPS["scalar_sigmoid"]
scalar_softplus = OPS["scalar_softplus"]
ultra_fast_scalar_sigmoid = OPS["ultra_fast_scalar_sigmoid"]

sigmoid = elemwise("scalar_sigmoid")
softplus = elemwise("scalar_softplus")
ultra_fast_sigmoid = elemwise("ultra_fast_scalar_sigmoid")
sigmoid_inplace = Elemwise(scalar_sigmoid, {0: 0}, name="sigmoid_inplace")
ultra_fast_sigmoid_inplace = Elemwise(
    ultra_fast_scalar_sigmoid, {0: 0}, name="ultra_fast_sigmoid_inplace"
)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """Return 0.2 x + 0.5 clipped to 0 and 1, an approximation of the sigmoid, elementwise.

    The result has the shape of x and its dtype; for integers, float32 (of 8 and 16 bits) or
    float64. Raises TypeError for complex numbers.
    """
    x = as_tensor_variable(x)
    dtype = dtypes.to_float(x.type.dtype)
    line = x * constant(0.2, dtype=dtype) + constant(0.5, dtype=dtype)
    return elemwise("clip")(line, 0, 1)
