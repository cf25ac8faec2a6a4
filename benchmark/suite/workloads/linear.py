"""Factorizations and systems of equations, and the likelihood of a Gaussian process."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload


def definite_data(rng, size):
    x = rng.normal(size=(size, size))
    return {"x": x @ x.T + size * np.eye(size)}, {}


def cholesky(xp, x):
    return (xp.cholesky(x),), {}


def system_data(rng, size):
    return {"x": rng.normal(size=(size, size)), "y": rng.normal(size=size)}, {}


def solve(xp, x, y):
    return (xp.solve(x, y),), {}


def square_data(rng, size):
    return {"x": rng.normal(size=(size, size))}, {}


def svd(xp, x):
    """The sums do not depend on the signs of the vectors, which are not determined."""
    u, s, v = xp.svd(x)
    return (s, xp.sum(u * u), xp.sum(v * v)), {}


def eigh(xp, x):
    w, v = xp.eigh(x)
    return (w, xp.sum(v * v)), {}


# ---------------------------------------------------------------- Gaussian process


def process_data(rng, rows):
    points = rng.uniform(-2, 2, (rows, 3))
    squares = (points * points).sum(axis=1)
    inputs = {
        "distances": squares[:, np.newaxis] - 2 * points @ points.T + squares,
        "identity": np.eye(rows),
        "y": np.sin(points.sum(axis=1)),
        "scale": np.array(0.5),
        "noise": np.array(0.1),
    }
    return inputs, {}


def process(xp, distances, identity, y, scale, noise):
    """The negative log marginal likelihood of y, and its gradients."""

    def cost_of(scale, noise):
        factor = xp.cholesky(xp.exp(-scale * distances) + noise * identity)
        half = xp.solve_lower(factor, y)
        return xp.sum(half * half) / 2 + xp.sum(xp.log(xp.diagonal(factor)))

    cost, grads = xp.value_and_grad(cost_of, scale, noise)
    return (cost, *grads), {}


def process_by_hand(distances, identity, y, scale, noise):
    from scipy.linalg import cho_solve, solve_triangular
    from scipy.linalg import cholesky as factorize

    kernel = np.exp(-scale * distances)
    factor = factorize(kernel + noise * identity, lower=True)
    half = solve_triangular(factor, y, lower=True)
    alpha = solve_triangular(factor, half, trans="T", lower=True)
    grad = (cho_solve((factor, True), identity) - np.outer(alpha, alpha)) / 2
    cost = half @ half / 2 + np.log(np.diagonal(factor)).sum()
    return (cost, -(grad * kernel * distances).sum(), np.trace(grad)), {}


def of_square(name, what, size, draw, program, flops):
    return Workload(
        name=name, what=what, dtype="float64", sizes={"size": size}, draw=draw, program=program,
        flops=flops,
    )  # fmt: skip


WORKLOADS = [
    of_square("cholesky-500", "the Cholesky factor of 500 x 500", 500, definite_data, cholesky,
              lambda size: size**3 // 3),
    of_square("solve-500", "a system of 500 equations", 500, system_data, solve,
              lambda size: 2 * size**3 // 3),
    of_square("svd-200", "singular values and vectors of 200 x 200", 200, square_data, svd, None),
    of_square("eigh-200", "eigenvalues and vectors of a symmetric 200 x 200", 200, definite_data,
              eigh, None),
    Workload(
        name="gaussian-process-300",
        what="marginal likelihood of 300 points and its gradients in scale and noise",
        dtype="float64",
        sizes={"rows": 300},
        draw=process_data,
        program=process,
        by_hand=process_by_hand,
        # a factor, and an inverse of it and of the matrix
        flops=lambda rows: rows**3,
    ),
]  # fmt: skip
