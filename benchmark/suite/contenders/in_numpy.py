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


def softmax_last(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def power_spectrum(x):
    z = np.fft.rfft(x)
    return z.real**2 + z.imag**2


def windows(x, size, stride, pad=0):
    """The windows of images, by (batch, channel, row, column, row in it, column in it)."""
    padded = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    return np.lib.stride_tricks.sliding_window_view(padded, size, (2, 3))[:, :, ::stride, ::stride]


def by_group(x, groups, axis):
    return np.split(x, groups, axis)


def conv(x, w, stride=1, pad=0, groups=1):
    seen = windows(x, w.shape[2:], stride, pad)
    parts = [
        np.tensordot(one, filters, axes=((1, 4, 5), (1, 2, 3)))
        for one, filters in zip(by_group(seen, groups, 1), by_group(w, groups, 0), strict=True)
    ]
    return np.concatenate(parts, axis=3).transpose(0, 3, 1, 2)


def conv_by_filters(x, w, g, stride=1, pad=0, groups=1):
    rows, columns = g.shape[2:]
    seen = windows(x, w.shape[2:], stride, pad)[:, :, :rows, :columns]
    parts = [
        np.tensordot(top, one, axes=((0, 2, 3), (0, 2, 3)))
        for one, top in zip(by_group(seen, groups, 1), by_group(g, groups, 1), strict=True)
    ]
    return np.concatenate(parts)


def conv_by_images(x, w, g, stride=1, pad=0, groups=1):
    batch, channels, rows, columns = x.shape
    padded = np.zeros((batch, channels, rows + 2 * pad, columns + 2 * pad), x.dtype)
    n, m = g.shape[2:]
    for i, j in np.ndindex(w.shape[2:]):
        parts = [
            np.tensordot(top, filters[:, :, i, j], axes=(1, 0))
            for top, filters in zip(by_group(g, groups, 1), by_group(w, groups, 0), strict=True)
        ]
        padded[:, :, i : i + n * stride : stride, j : j + m * stride : stride][:, :, :n, :m] += (
            np.concatenate(parts, axis=3).transpose(0, 3, 1, 2)
        )
    return padded[:, :, pad : pad + rows, pad : pad + columns]


def max_pool(x, size, stride):
    return windows(x, (size, size), stride).max(axis=(4, 5))


xp = SimpleNamespace(
    conv=conv,
    conv_by_filters=conv_by_filters,
    conv_by_images=conv_by_images,
    max_pool=max_pool,
    relu=lambda x: np.maximum(x, 0),
    on_maps=base.on_maps,
    rows=lambda x: x.reshape(len(x), -1),
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
    argmax=np.argmax,
    argmin=np.argmin,
    cumsum=np.cumsum,
    sort=np.sort,
    searchsorted=np.searchsorted,
    where=np.where,
    matmul=np.matmul,
    swapped=lambda x: x.swapaxes(1, 2),
    softmax_last=softmax_last,
    masked_sum=lambda x, mask: x[mask].sum(),
    take_columns=lambda x, index: x.take(index, axis=1),
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
