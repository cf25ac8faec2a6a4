"""``theano.tests.unittest_tools``: the names that users' test suites import from it."""

from __future__ import annotations

import time
import unittest

import numpy as np

from opwise.compile.function import function
from opwise.config import config
from opwise.gradient import verify_grad as _verify_grad
from opwise.modes.mode import get_default_mode


def fetch_seed(pseed=None):
    """Return a seed for a test: the one given, or the flag unittests.rseed."""
    seed = pseed if pseed is not None else config.unittests.rseed
    return None if seed in (None, "random") else int(seed)


def seed_rng(pseed=None):
    """Seed numpy's global generator and return the seed."""
    seed = fetch_seed(pseed)
    np.random.seed(seed)
    return seed


def verify_grad(op, pt, n_tests=2, rng=None, *args, **kwargs):
    """Check a gradient numerically with a generator seeded by the flags."""
    if rng is None:
        rng = np.random.RandomState(fetch_seed())
    return _verify_grad(op, pt, n_tests, rng, *args, **kwargs)


def assert_allclose(expected, value, rtol=None, atol=None):
    """Raise AssertionError unless the values agree to the precision of their dtype."""
    narrow = {"float16": 1e-2, "float32": 1e-5, "complex64": 1e-5}
    dtypes = (np.asarray(expected).dtype.name, np.asarray(value).dtype.name)
    default = max(narrow.get(d, 1e-5) for d in dtypes)
    np.testing.assert_allclose(
        value, expected, rtol=default if rtol is None else rtol, atol=1e-8 if atol is None else atol
    )


#: what ``disturb_mem`` keeps
_kept = []


def disturb_mem():
    """Keep some thousand lists, another number each time, so that later objects have other ids."""
    milliseconds, length = divmod(time.time_ns() // 1000 % 1_000_000, 1000)
    _kept[:] = [[0] * milliseconds for _ in range(length)]


class InferShapeTester(unittest.TestCase):
    """A test case that checks ``infer_shape``; its attribute ``mode`` compiles the functions."""

    def setUp(self):
        seed_rng()
        mode = getattr(self, "mode", None)
        self.mode = (get_default_mode() if mode is None else mode).including("canonicalize")

    def _compile_and_check(
        self, inputs, outputs, numeric_inputs, cls, excluding=None, warn=True, check_topo=True
    ):
        """Compile the shapes of ``outputs`` and compare them with those of the values."""
        mode = self.mode.excluding(*excluding) if excluding else self.mode
        values = function(inputs, outputs, mode=mode)(*numeric_inputs)
        shapes = function(inputs, [o.shape for o in outputs], mode=mode)
        if check_topo:
            for node in shapes.maker.fgraph.toposort():
                assert not isinstance(node.op, cls), (
                    f"{node} computes a value; only its shape is needed"
                )
        for value, shape in zip(values, shapes(*numeric_inputs), strict=True):
            assert tuple(shape) == value.shape, (tuple(shape), value.shape)
