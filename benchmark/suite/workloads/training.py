"""Steps of training: the cost, its gradients, and a move downhill."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload

RATE = 0.1
SMALL_RATE = 0.01


# ---------------------------------------------------------------- regression


def regression_data(rng, rows, features):
    inputs = {
        "x": rng.normal(size=(rows, features)),
        "y": rng.integers(0, 2, (rows, 1)).astype(float),
    }
    return inputs, {"w": rng.uniform(-0.5, 0.5, (features, 1)), "b": np.zeros(1)}


def regression(xp, x, y, w, b):
    def cost_of(w, b):
        miss = xp.sigmoid(xp.dot(x, w) + b) - y
        return xp.sum(miss * miss)

    cost, grads = xp.value_and_grad(cost_of, w, b)
    return (cost, *grads), xp.descend({"w": w, "b": b}, grads, RATE)


def regression_by_hand(x, y, w, b):
    from scipy.special import expit

    p = expit(x @ w + b)
    miss = p - y
    cost = (miss * miss).sum()
    grad_act = 2 * miss * p * (1 - p)
    grad_w, grad_b = x.T @ grad_act, grad_act.sum(axis=0)
    w -= RATE * grad_w
    b -= RATE * grad_b
    return (cost, grad_w, grad_b), {"w": w, "b": b}


# ---------------------------------------------------------------- logistic regression


def logistic_data(rng, rows, features, classes):
    inputs = {"x": rng.normal(size=(rows, features)), "y": rng.integers(0, classes, rows)}
    return inputs, {"w": 0.01 * rng.normal(size=(features, classes)), "b": np.zeros(classes)}


def logistic(xp, x, y, w, b):
    cost, grads = xp.value_and_grad(lambda w, b: xp.cross_entropy(xp.dot(x, w) + b, y), w, b)
    return (cost,), xp.descend({"w": w, "b": b}, grads, SMALL_RATE)


def cross_entropy_by_hand(scores, y):
    """The cost and its gradient in the scores."""
    from benchmark.suite.contenders.in_numpy import xp

    p = xp.softmax(scores)
    rows = np.arange(len(y))
    cost = -np.log(p[rows, y]).mean()
    p[rows, y] -= 1
    p /= len(y)
    return cost, p


def logistic_by_hand(x, y, w, b):
    cost, grad = cross_entropy_by_hand(x @ w + b, y)
    w -= SMALL_RATE * (x.T @ grad)
    b -= SMALL_RATE * grad.sum(axis=0)
    return (cost,), {"w": w, "b": b}


# ---------------------------------------------------------------- one hidden layer


def perceptron_data(rng, batch, features, hidden, classes):
    inputs = {"x": rng.uniform(size=(batch, features)), "y": rng.integers(0, classes, batch)}
    state = {
        "w1": rng.normal(size=(features, hidden)) / features**0.5,
        "b1": np.zeros(hidden),
        "w2": rng.normal(size=(hidden, classes)) / hidden**0.5,
        "b2": np.zeros(classes),
    }
    return inputs, state


def perceptron(xp, x, y, **state):
    def cost_of(w1, b1, w2, b2):
        hidden = xp.tanh(xp.dot(x, w1) + b1)
        return xp.cross_entropy(xp.dot(hidden, w2) + b2, y)

    cost, grads = xp.value_and_grad(cost_of, *state.values())
    return (cost,), xp.descend(state, grads, SMALL_RATE)


def perceptron_by_hand(x, y, w1, b1, w2, b2):
    hidden = np.tanh(x @ w1 + b1)
    cost, grad = cross_entropy_by_hand(hidden @ w2 + b2, y)
    grad_hidden = (grad @ w2.T) * (1 - hidden * hidden)
    w2 -= SMALL_RATE * (hidden.T @ grad)
    b2 -= SMALL_RATE * grad.sum(axis=0)
    w1 -= SMALL_RATE * (x.T @ grad_hidden)
    b1 -= SMALL_RATE * grad_hidden.sum(axis=0)
    return (cost,), {"w1": w1, "b1": b1, "w2": w2, "b2": b2}


def perceptron_flops(batch, features, hidden, classes):
    """Forward both products; backward two for the second and one for the first, x being given."""
    return 2 * batch * hidden * (2 * features + 3 * classes)


WORKLOADS = [
    Workload(
        name="regression-4x10",
        what="regression on 4 rows of 10: cost, two gradients, two updates",
        dtype="float64",
        sizes={"rows": 4, "features": 10},
        draw=regression_data,
        program=regression,
        by_hand=regression_by_hand,
        flops=lambda rows, features: 4 * rows * features,
    ),
    *(
        Workload(
            name=f"logistic-f{bits}",
            what="logistic regression of 600 x 784 on 10 classes, one update",
            dtype=f"float{bits}",
            sizes={"rows": 600, "features": 784, "classes": 10},
            draw=logistic_data,
            program=logistic,
            by_hand=logistic_by_hand,
            flops=lambda rows, features, classes: 4 * rows * features * classes,
        )
        for bits in (32, 64)
    ),
    *(
        Workload(
            name=f"mlp-batch{batch}-f32",
            what=f"784-500-10 perceptron, a batch of {batch}, one update",
            dtype="float32",
            sizes={"batch": batch, "features": 784, "hidden": 500, "classes": 10},
            draw=perceptron_data,
            program=perceptron,
            by_hand=perceptron_by_hand,
            flops=perceptron_flops,
        )
        for batch in (20, 512)
    ),
]
