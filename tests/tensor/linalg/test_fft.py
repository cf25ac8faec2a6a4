"""Fourier transforms: values against numpy, gradients and refusals."""

import numpy as np
import pytest

from opwise.gradient import DisconnectedType, grad
from opwise.graph import upcalls
from opwise.tensor import sum as sum_
from opwise.tensor.elemwise import elemwise
from opwise.tensor.fft import irfft, irfft_op, rfft, rfft_op
from opwise.tensor.linalg import fourier, frames
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

SCALES = {None: (None, None), "ortho": ("ortho", "ortho"), "no_norm": (None, "forward")}


def tensor(ndim, dtype="float64"):
    return tensor_type(dtype, (False,) * ndim)()


def drawn(*shape):
    return np.random.RandomState(len(shape)).normal(size=shape)


def pairs(z):
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("shape", [(2, 6), (3, 5), (1, 4, 6), (2, 3, 4, 5)])
@pytest.mark.parametrize("norm", SCALES)
def test_real_transforms(run, shape, norm):
    there, back = SCALES[norm]
    x, value, axes = tensor(len(shape)), drawn(*shape), range(1, len(shape))
    expected = np.fft.rfftn(value, axes=axes, norm=there)
    np.testing.assert_allclose(run(rfft(x, norm), {x: value}), pairs(expected), atol=1e-12)
    y, is_odd = tensor(len(shape) + 1), bool(shape[-1] % 2)
    found = run(irfft(y, norm, is_odd), {y: pairs(expected)})
    result = np.fft.irfftn(expected, shape[1:], axes, norm=back)
    np.testing.assert_allclose(found, result, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 6), (2, 5), (1, 3, 4), (1, 4, 3)])
@pytest.mark.parametrize("norm", SCALES)
def test_real_transforms_have_gradients(check_gradient, shape, norm):
    check_gradient(lambda x: rfft(x, norm), drawn(*shape))
    spectrum = drawn(*shape[:-1], shape[-1] // 2 + 1, 2)
    check_gradient(lambda y: irfft(y, norm, bool(shape[-1] % 2)), spectrum)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_large_transforms_on_threads(run, monkeypatch, dtype, threads):
    monkeypatch.setattr(upcalls, "threads", lambda: threads)
    x, y = tensor(2, dtype), tensor(3, dtype)
    value = drawn(600, 512).astype(dtype)
    spectrum, tolerance = np.fft.rfft(value), 1e-4 if dtype == "float32" else 1e-11
    found = run(rfft(x), {x: value})
    assert found.dtype == dtype
    np.testing.assert_allclose(found, pairs(spectrum), atol=tolerance)
    for given in (found, np.asfortranarray(found), np.repeat(found, 2, axis=2)[:, :, ::2]):
        back = run(irfft(y), {y: given})
        assert back.dtype == dtype
        np.testing.assert_allclose(back, value, atol=tolerance)


def test_lengths_may_be_given(run):
    x, y, s = tensor(2), tensor(3), tensor(1, "int64")
    value = drawn(2, 5)
    found = run(rfft_op(x, s), {x: value, s: np.array([8])})
    np.testing.assert_allclose(found, pairs(np.fft.rfft(value, 8)), atol=1e-12)
    back = run(irfft_op(y), {y: found})
    np.testing.assert_allclose(back / 8, np.pad(value, ((0, 0), (0, 3))), atol=1e-12)


def test_float32_stays(run):
    x = tensor(2, "float32")
    found = run([rfft(x), irfft(rfft(x))], {x: drawn(2, 6)})
    assert [v.dtype.name for v in found] == ["float32", "float32"]


def test_refusals():
    x = tensor(2)
    for ndim, op in ((1, rfft), (2, irfft_op)):
        with pytest.raises(TypeError, match=r"must have dimension >= \d"):
            op(tensor(ndim))
    for op in (rfft, irfft):
        with pytest.raises(ValueError, match="Invalid value unitary for norm"):
            op(tensor(3), norm="unitary")
    with pytest.raises(ValueError, match="Invalid value 2 for is_odd"):
        irfft(tensor(3), is_odd=2)
    with pytest.raises(TypeError, match="must be of type integer"):
        rfft_op(x, tensor(1))


# --- complex transforms -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [None, 3, 6])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_complex_transforms(run, n, axis):
    x, value = tensor(2), drawn(4, 5)
    found = run(fourier.fft(x, n, axis), {x: value})
    np.testing.assert_allclose(found, np.fft.fft(value, n, -1 if axis is None else axis))


def test_along_a_variable_axis(run):
    x, axis, value = tensor(2), tensor(0, "int64"), drawn(4, 5)
    for k in (0, 1):
        found = run(fourier.fft(x, 3, axis), {x: value, axis: np.array(k)})
        np.testing.assert_allclose(found, np.fft.fft(value, 3, k))


def test_the_gradient_is_the_transposed_transform(run):
    """It is linear: the gradient by x of sum(w * fft(x)) is fft(w), cut or padded."""
    for n in (3, 4, 6):
        x, w = tensor(2), tensor(2, "complex128")
        node = fourier.fft(x, n, 0).owner
        gx, *others = node.op.L_op(node.inputs, node.outputs, [w])
        assert all(isinstance(g.type, DisconnectedType) for g in others)
        value, weights = drawn(4, 5), drawn(n, 5) + 1j * drawn(n, 5)
        found = run(gx, {x: value, w: weights})
        matrix = np.fft.fft(np.eye(4), n, axis=0)
        np.testing.assert_allclose(found, matrix.T @ weights, atol=1e-12)


def test_refusals_of_the_complex_transform():
    x = tensor(2)
    for n, axis, text in (
        (0, 0, "strictly positive"), (2.5, 0, "type integer"), (4, 2, "smaller than dimension"),
        (4, -1, "smaller than dimension"), (4, 0.5, "type integer"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            fourier.fft(x, n, axis)
    with pytest.raises(TypeError, match="not a scalar"):
        fourier.fft(tensor(0))
    node = fourier.fft(x, 3, tensor(0, "int64")).owner
    with pytest.raises(NotImplementedError, match="axis being a Theano constant"):
        node.op.L_op(node.inputs, node.outputs, [tensor(2, "complex128")])


@pytest.mark.parametrize("axis", [0, 1])
def test_frames(run, axis):
    x, value = tensor(2), drawn(4, 6)
    found = run([op(x, 6, axis) for op in (frames.fft, frames.ifft, frames.half_fft)], {x: value})
    expected = np.fft.fft(value, 6, axis)
    half = expected[:3] if axis == 0 else expected[:, :3]
    for got, z in zip(found, (expected, np.fft.ifft(value, 6, axis), half), strict=True):
        np.testing.assert_allclose(got, z)
    with pytest.raises(ValueError, match="odd-length vectors"):
        run(frames.half_ifft(x, 5, axis), {x: value})
    with pytest.raises(TypeError, match="must not be complex"):
        frames.half_fft(tensor(2, "complex128"), 4, axis)
    with pytest.raises(NotImplementedError, match="has no gradient"):
        grad(sum_(elemwise("real")(frames.fft(x, 6, axis))), x)


def test_cosine_transform():
    whole = frames.dct_matrix(5, 5)
    np.testing.assert_allclose(whole @ whole.T, np.eye(5), atol=1e-12)
    plain = frames.dct_matrix(2, 5, unitary=False)
    np.testing.assert_allclose(plain[0], whole[0] * 2**0.5)


@pytest.mark.parametrize("lengths", [(0, 3), (3, 0), (-1, 2)])
def test_a_cosine_transform_has_rows_and_columns(lengths):
    with pytest.raises(ValueError, match=r"1 or more rows and columns, not -?[0-9] and [0-9]"):
        frames.dct_matrix(*lengths)
