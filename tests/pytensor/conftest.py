"""Compares functions of PyTensor under opwise with PyTensor's own ``perform``."""

import atexit
import importlib.util
import os
import shutil
import tempfile

import numpy as np
import pytest

# PyTensor reads this when it is imported: no files of the user, and no compiler for what opwise's
# results are compared with
_FILES = tempfile.mkdtemp(prefix="opwise-tests-")
atexit.register(shutil.rmtree, _FILES, ignore_errors=True)
os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={_FILES},cxx="

if os.environ.get("OPWISE_TEST_PYMC") == "required":
    for _name in ("pytensor", "pymc", "nutpie"):
        assert importlib.util.find_spec(_name), f"{_name} is not installed: its tests are required"


@pytest.fixture
def same():
    """Return a function that compiles a graph under opwise and under PyTensor's Python linker.

    It compares the results, their dtypes and shapes, without PyTensor's rewrites and with them, and
    returns the functions of opwise. performed: reasons why PyTensor may perform Ops.
    """
    import pytensor
    from pytensor.compile.mode import Mode

    import opwise.pytensor

    def check(inputs, outputs, values, modes=(None, "OPWISE"), rtol=1e-7, performed=()):
        outputs = outputs if isinstance(outputs, list) else [outputs]

        def compiled(mode):
            return pytensor.function(inputs, outputs, mode=mode, on_unused_input="ignore")

        expected = compiled(Mode("py", None))(*values)
        functions = [compiled(mode or Mode("opwise", None)) for mode in modes]
        for f in functions:
            for one, other in zip(f(*values), expected, strict=True):
                alike(one, other, rtol)
            assert {each.reason for each in opwise.pytensor.performed(f)} <= set(performed)
        return functions

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
