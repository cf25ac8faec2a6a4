"""Programs over the rows of a matrix: softmaxes, normalisations, distances, and gradients."""

from __future__ import annotations

import numpy as np

from benchmark.suite.contenders.base import EPSILON
from benchmark.suite.workload import Workload

SIZES = {"rows": 1024, "columns": 1000}


def matrix(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns))}, {}


def matrix_and_weights(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns)), "w": rng.normal(size=(rows, columns))}, {}


def matrix_gain_bias(rng, rows, columns):
    inputs = {
        "x": rng.normal(size=(rows, columns)),
        "gain": rng.uniform(0.5, 1.5, columns),
        "bias": rng.normal(size=columns),
    }
    return inputs, {}


def softmax(xp, x):
    return (xp.softmax(x),), {}


def softmax_gradient(xp, x, w):
    _, grads = xp.value_and_grad(lambda x: xp.sum(w * xp.softmax(x)), x)
    return (grads[0],), {}


def softmax_gradient_by_hand(x, w):
    from benchmark.suite.contenders.in_numpy import xp

    p = xp.softmax(x)
    return (p * (w - (w * p).sum(axis=1, keepdims=True)),), {}


def layer_norm(xp, x, gain, bias):
    return (xp.layer_norm(x, gain, bias),), {}


def layer_norm_gradient(xp, x, w, gain, bias):
    _, grads = xp.value_and_grad(
        lambda x, gain, bias: xp.sum(w * xp.layer_norm(x, gain, bias)), x, gain, bias
    )
    return grads, {}


def layer_norm_gradient_by_hand(x, w, gain, bias):
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True) + EPSILON)
    unit = centred * scale
    by_unit = w * gain
    along = (by_unit * unit).mean(axis=1, keepdims=True)
    by_x = (by_unit - by_unit.mean(axis=1, keepdims=True) - unit * along) * scale
    return (by_x, (w * unit).sum(axis=0), w.sum(axis=0)), {}


def matrices_gain_bias(rng, rows, columns):
    inputs, _ = matrix_gain_bias(rng, rows, columns)
    return {"x": inputs.pop("x"), "w": rng.normal(size=(rows, columns)), **inputs}, {}


def log_sum_exp(xp, x):
    """Written out, with the maximum subtracted, as programs do that are careful."""
    highest = xp.max(x, axis=1)
    return (xp.log(xp.sum(xp.exp(x - highest[:, None]), axis=1)) + highest,), {}


def weights_of_attention(xp, x, w):
    return (xp.softmax(x * 0.125 + w),), {}


def cosines(xp, x, w):
    def length(x):
        return xp.sqrt(xp.sum(x * x, axis=1))[:, None]

    return (xp.sum(x / length(x) * (w / length(w)), axis=1),), {}


def standardised(xp, x):
    centred = x - xp.mean(x, axis=1)[:, None]
    return (centred / xp.sqrt(xp.mean(centred * centred, axis=1))[:, None],), {}


def over_rows(name: str, what: str, **fields) -> Workload:
    return Workload(name=f"{name}-f32", what=what, dtype="float32", sizes=SIZES, **fields)


WORKLOADS = [
    over_rows("softmax", "softmax of every row", draw=matrix, program=softmax),
    over_rows(
        "softmax-grad",
        "gradient of sum(w * softmax(x)) in x",
        draw=matrix_and_weights,
        program=softmax_gradient,
        by_hand=softmax_gradient_by_hand,
    ),
    over_rows(
        "layer-norm",
        "every row to mean 0 and variance 1, then a gain and a bias",
        draw=matrix_gain_bias,
        program=layer_norm,
    ),
    over_rows(
        "layer-norm-grad",
        "its gradients by the matrix, the gain and the bias",
        draw=matrices_gain_bias,
        program=layer_norm_gradient,
        by_hand=layer_norm_gradient_by_hand,
    ),
    over_rows(
        "attention-weights",
        "softmax of every row of x / 8 + w",
        draw=matrix_and_weights,
        program=weights_of_attention,
    ),
    over_rows(
        "cosines", "cosine of the angle between rows", draw=matrix_and_weights, program=cosines
    ),
    Workload(
        name="log-sum-exp-f64",
        what="log of the sum of the exponentials of every row, written out",
        dtype="float64",
        sizes={"rows": 2000, "columns": 500},
        draw=matrix,
        program=log_sum_exp,
    ),
    Workload(
        name="short-rows-f32",
        what="rows of 10 numbers to mean 0 and variance 1",
        dtype="float32",
        sizes={"rows": 100_000, "columns": 10},
        draw=matrix,
        program=standardised,
    ),
]
