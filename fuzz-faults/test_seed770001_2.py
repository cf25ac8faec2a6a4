"""no optimizer, py: T.grad(T.sum(v6 * 0.5), v0, disconnected_inputs='ignore'): by element 0 of v0, which is 0.0, the gradient is 3.75, differences give 0.0
"""
import numpy as np
import theano
import theano.tensor as T
from numpy import inf, nan  # noqa: F401
from theano.compile.debugmode import DebugMode  # noqa: F401
from theano.compile.mode import Mode
from theano.gradient import jacobian  # noqa: F401
from theano.ifelse import ifelse  # noqa: F401
from theano.sandbox.rng_mrg import MRG_RandomStreams  # noqa: F401
from theano.tensor.shared_randomstreams import RandomStreams  # noqa: F401
from theano.tensor.extra_ops import (
    bincount, compress, diff, searchsorted, to_one_hot)
from theano.tensor.nnet import abstract_conv  # noqa: F401
from theano.tensor.signal import pool  # noqa: F401

value_v0 = np.array([0.], 'float64')
v0 = T.TensorType('float64', (True,))('v0')
v1 = T.switch(v0, 0, v0)
v4 = v1[[-1, -1, -1]]
v6 = theano.scan(lambda i, e, h: T.cast(T.tanh(h + e), 'float64'), [T.arange(v4.shape[0]), v4], T.cast(0.5 * v4[-1], 'float64'), go_backwards=True)[0]
v7 = T.grad(T.sum(v6 * 0.5), v0, disconnected_inputs='ignore')
inputs = [v0]
outputs = [v7]
updates = []
shared = []


def run(mode):
    kept = [(s, s.get_value()) for s in shared]
    f = theano.function(inputs, outputs, updates=updates, mode=mode,
                        on_unused_input="ignore", no_default_updates=True)
    found = f(value_v0) + [s.get_value() for s in shared]
    for s, value in kept:
        s.set_value(value)
    return found


def test_modes_agree():
    expected = run(Mode("py", None))
    # the configuration that failed: no optimizer, py
    mode = Mode('py', None)
    for found, wanted in zip(run(mode), expected):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-7)


if __name__ == "__main__":
    test_modes_agree()
