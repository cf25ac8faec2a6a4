"""Compares functions of PyTensor under opwise with PyTensor's own ``perform``."""

import os
import tempfile

import numpy as np
import pytest

# PyTensor reads this when it is imported: no files of the user, and no compiler for what opwise's
# results are compared with
os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={tempfile.mkdtemp(prefix='opwise-tests-')},cxx="

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")


@pytest.fixture
def same():
    """Return a function that compiles a graph under opwise and under PyTensor's Python linker.

    It compares the results, their dtypes and shapes, without PyTensor's rewrites and with them, and
    returns the functions of opwise.
    """
    from pytensor.compile.mode import Mode

    import opwise.pytensor

    def check(inputs, outputs, values, modes=(None, "OPWISE"), rtol=1e-7, performed=()):
        reference = pytensor.function(
            inputs, outputs, mode=Mode("py", None), on_unused_input="ignore"
        )
        expected = reference(*values)
        compiled = []
        for mode in modes:
            f = pytensor.function(
                inputs, outputs, mode=mode or Mode("opwise", None), on_unused_input="ignore"
            )
            compiled.append(f)
            found = f(*values)
            if not isinstance(expected, list):
                expected, found = [expected], [found]
            for one, other in zip(found, expected, strict=True):
                alike(one, other, rtol)
            assert {each.reason for each in opwise.pytensor.performed(f)} <= set(performed)
            expected = expected if len(expected) > 1 or isinstance(outputs, list) else expected[0]
        return compiled

    return check


def alike(one, other, rtol=1e-7):
    """Assert that a result is the array that another one is, up to rounding."""
    if not isinstance(other, np.ndarray | np.generic):
        assert one == other
        return
    assert isinstance(one, np.ndarray)
    other = np.asarray(other)
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    if one.dtype in (np.float32, np.complex64):
        rtol = max(rtol, 2e-5)
    np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol, equal_nan=True)
