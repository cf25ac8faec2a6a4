"""numpy as it is mostly written: one temporary array after the other."""

from __future__ import annotations

from functools import partial
from operator import matmul
from types import SimpleNamespace

import numpy as np
import scipy.linalg
from scipy.sparse import csr_matrix
from scipy.special import erf, expit

from benchmark.suite.contenders import base
from benchmark.suite.workload import SEED


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def power_spectrum(x):
    z = np.fft.rfft(x)
    return z.real**2 + z.imag**2


xp = SimpleNamespace(
    exp=np.exp,
    log=np.log,
    sqrt=np.sqrt,
    sin=np.sin,
    tanh=np.tanh,
    sigmoid=expit,
    erf=erf,
    dot=np.dot,
    sum=np.sum,
    mean=np.mean,
    max=np.max,
    softmax=softmax,
    cholesky=partial(scipy.linalg.cholesky, lower=True),
    solve=scipy.linalg.solve,
    solve_lower=partial(scipy.linalg.solve_triangular, lower=True),
    svd=scipy.linalg.svd,
    eigh=scipy.linalg.eigh,
    diagonal=np.diagonal,
    take=lambda table, index: table[index],
    csr=lambda data, indices, indptr, shape: csr_matrix((data, indices, indptr), shape=shape),
    sparse_dot=matmul,
    power_spectrum=power_spectrum,
    filtered=lambda x, gain: np.fft.irfft(np.fft.rfft(x) * gain, x.shape[1]),
    scan=base.scan,
    scan_rows=partial(base.scan_rows, np.stack),
    constant=lambda array: array,
    inverse=np.linalg.inv,
    as_dtype=lambda x, dtype: x.astype(dtype),
    # numpy needs no Op for that
    doubled_in_c=lambda x: 2 * x,
    doubled_in_python=lambda x: 2 * x,
)
#: generators of random numbers: numpy's own, and the legacy one
_new, _legacy = np.random.default_rng(SEED), np.random.RandomState(SEED)
xp.uniform = lambda shape, dtype: _new.random(shape, dtype)
xp.normal = lambda shape, dtype: _new.standard_normal(shape, dtype)
xp.legacy_uniform = lambda shape, dtype: _legacy.uniform(size=shape).astype(dtype, copy=False)
xp.legacy_normal = lambda shape, dtype: _legacy.normal(size=shape).astype(dtype, copy=False)
xp.layer_norm = partial(base.layer_norm, xp)


class Numpy(base.Contender):
    def load(self, workload):
        self.workload = workload
        self.data = workload.data()

    def build(self):
        return self.workload.bind_by_hand(xp, self.data.all)

    def outputs(self, returned):
        return super().outputs(returned[0])

    def state(self):
        return self.data.state
