"""Programs over the rows of a matrix: softmax, its gradient, layer normalisation."""

from __future__ import annotations

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
]
