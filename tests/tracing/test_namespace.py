"""The namespace of the array API standard."""

import numpy as np
import pytest

import opwise

pytestmark = pytest.mark.null


def test_it_is_found_and_is_not_numpy():
    from opwise import numpy as xp

    assert xp is opwise.numpy and xp is not np
    assert xp.__array_api_version__ == "2024.12"
    assert all(hasattr(xp, name) for name in xp.__all__)
    assert xp.float32 is np.float32 and xp.pi == np.pi
    assert not hasattr(xp, "einsum")


def test_functions_compute_at_once_outside():
    xp = opwise.numpy
    assert np.array_equal(xp.zeros(3), np.zeros(3))
    assert np.array_equal(xp.linalg.matmul(xp.eye(2), xp.ones((2, 2))), np.ones((2, 2)))
    assert xp.isdtype(xp.asarray(1.0).dtype, "real floating")
    assert np.array_equal(xp.fft.fftfreq(5), np.fft.fftfreq(5))


def test_functions_are_traced():
    def f(x, n):
        xp = x.__array_namespace__()
        y = xp.zeros(x.shape, dtype=x.dtype)
        y[0] = xp.sum(x)
        bins = xp.fft.fftfreq(n), xp.fft.rfftfreq(n, d=0.5)
        return xp.concat([y, xp.arange(n, dtype=x.dtype)]), xp.linalg.vector_norm(x), *bins

    jitted = opwise.jit(f, mode="FAST_COMPILE")
    for n in (4, 5):
        expected, result = f(np.ones(3), n), jitted(np.ones(3), n)
        for one, two in zip(expected, result, strict=True):
            np.testing.assert_allclose(two, one, atol=1e-15)
            assert np.asarray(two).dtype == np.asarray(one).dtype
    assert len(jitted.signatures) == 1
