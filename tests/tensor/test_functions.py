"""Functions of tensors that are made of several elementwise operations."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise.errors import ComplexError
from opwise.gradient import verify_grad
from opwise.tensor import Alloc
from opwise.tensor.elemwise import elemwise

RNG = np.random.RandomState(1)
X, Y = np.array([1.0, 5.0, -2.0]), np.array([[2.0], [-3.0]])


@pytest.mark.c
def test_largest_and_smallest_broadcast():
    z = np.array([0.0, 9.0, 0.0])
    x, y, w = T.dvector(), T.TensorType("float64", (False, True))(), T.dvector()
    values = {x: X, y: Y, w: z}
    assert np.array_equal(T.largest(x, y, w).eval(values), np.maximum(np.maximum(X, Y), z))
    assert np.array_equal(T.smallest(x, y, w).eval(values), np.minimum(np.minimum(X, Y), z))


@pytest.mark.c
def test_complex_numbers_from_sizes_and_angles():
    size, angle = T.dvector(), T.dvector()
    sizes, angles = np.array([1.0, 2.0]), np.array([0.5, -3.0])
    found = T.complex_from_polar(size, angle).eval({size: sizes, angle: angles})
    assert np.allclose(found, sizes * np.exp(1j * angles), rtol=1e-15)


@pytest.mark.c
def test_gradients_of_sizes_and_angles():
    for part in (T.real, T.imag):
        points = [np.array([1.0, 2.0]), np.array([0.5, -3.0])]
        verify_grad(lambda r, a, f=part: f(T.complex_from_polar(r, a)), points, rng=RNG)


@pytest.mark.null
def test_integers_are_neither_infinite_nor_nan():
    x, n = T.dmatrix(), T.imatrix()
    for name in ("isnan", "isinf"):
        assert getattr(T, name)(x).owner.op == elemwise(name)
        allocated = getattr(T, name)(n)
        assert isinstance(allocated.owner.op, Alloc)
        assert allocated.eval({n: np.ones((2, 3), "int32")}).tolist() == [[False] * 3] * 2


@pytest.mark.null
@pytest.mark.parametrize(
    ("first", "second", "op"),
    [("int8", "int64", T.int_div), ("int8", "float32", T.true_div), ("float32", 2, T.true_div)],
)
def test_division_of_whole_numbers_is_whole(first, second, op):
    x = T.TensorType(first, (False,))()
    y = T.TensorType(second, (False,))() if isinstance(second, str) else second
    assert T.div_proxy(x, y).owner.op == op


@pytest.mark.null
@pytest.mark.parametrize(
    "remainder",
    [
        lambda x, z: x % z,
        lambda x, z: z % x,
        lambda x, z: z % 2,
        lambda x, z: T.mod_check(x, z),
        lambda x, z: T.divmod(x, z),
        lambda x, z: T.ceil_intdiv(z, 2),
    ],
)
def test_complex_numbers_have_no_remainder(remainder):
    with pytest.raises(ComplexError, match="complex"):
        remainder(T.dvector(), T.zvector())


@pytest.mark.null
@pytest.mark.parametrize("dtype", [object, "U1", "datetime64"])
def test_cast_refuses_dtypes_that_no_tensor_has(dtype):
    with pytest.raises(TypeError, match="cast takes one of bool, int8"):
        T.cast(T.dvector(), dtype)
