"""Makes the session hermetic: a kernel cache of its own, and none of the user's flags."""

import atexit
import os
import shutil
import tempfile

import pytest

_CACHE = "OPWISE_TEST_CACHE"


def _isolate():
    """Set the environment that opwise reads when it is imported; worker processes inherit it."""
    if _CACHE not in os.environ:
        folder = os.environ[_CACHE] = tempfile.mkdtemp(prefix="opwise-tests-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["OPWISE_FLAGS"] = f"base_compiledir={os.environ[_CACHE]}"
    os.environ["THEANO_FLAGS"] = ""
    os.environ["THEANORC"] = os.environ["OPWISERC"] = os.devnull


_isolate()

import numpy as np  # noqa: E402  (nothing may be imported before the environment is set)


@pytest.fixture(autouse=True)
def _same_random_numbers():
    """Seed numpy's global generator, which verify_grad and users' habits draw from."""
    np.random.seed(20250807)


@pytest.fixture
def flags():
    """``flags(name=value)`` or ``flags({'dotted.name': value})``: set until the test ends."""
    from opwise.config import change_flags

    active = []

    def change(*args, **kwargs):
        manager = change_flags(*args, **kwargs)
        manager.__enter__()
        active.append(manager)

    yield change
    while active:
        active.pop().__exit__(None, None, None)
