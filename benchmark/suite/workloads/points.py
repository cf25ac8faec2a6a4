"""Pairs of points, and words that attend to words: results between steps that are larger than all
operands."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload


def clouds(rng, n, dimensions):
    return {"x": rng.normal(size=(n, dimensions)), "y": rng.normal(size=(n, dimensions))}, {}


def squares(xp, x, y):
    d = x[:, None, :] - y[None, :, :]
    return xp.sum(d * d, axis=2)


def kernel_sums(xp, x, y):
    return (xp.sum(xp.exp(-squares(xp, x, y)), axis=1),), {}


def kernel_gradient(xp, x, y):
    cost, (grad,) = xp.value_and_grad(lambda x: xp.sum(xp.exp(-squares(xp, x, y))), x)
    return (cost, grad), {}


def kernel_gradient_by_hand(x, y):
    d = x[:, None, :] - y[None, :, :]
    k = np.exp(-(d * d).sum(axis=2))
    return (k.sum(), -2 * (k[:, :, None] * d).sum(axis=1)), {}


def nearest(xp, x, y):
    return (-xp.max(-squares(xp, x, y), axis=1),), {}


def all_pairs(xp, x, y):
    d = x[:, None, :] - y[None, :, :]
    return (xp.sum(d * d),), {}


def words(rng, words, width):
    return {name: rng.normal(size=(words, width)) for name in "qkv"}, {}


def attention(xp, q, k, v, width):
    return (xp.dot(xp.softmax_last(xp.dot(q, k.T) * width**-0.5), v),), {}


WORKLOADS = [
    *(
        Workload(
            name=f"kernel-sums-{dimensions}",
            what=f"sums of a Gaussian kernel of 4000 x 4000 points of {dimensions} dimensions",
            dtype=dtype,
            sizes={"n": 4000, "dimensions": dimensions},
            draw=clouds,
            program=kernel_sums,
        )
        for dimensions, dtype in ((2, "float64"), (16, "float32"))
    ),
    Workload(
        name="kernel-grad",
        what="the sum of a Gaussian kernel of 2000 x 2000 points of 3 dimensions, and its gradient",
        dtype="float64",
        sizes={"n": 2000, "dimensions": 3},
        draw=clouds,
        program=kernel_gradient,
        by_hand=kernel_gradient_by_hand,
    ),
    Workload(
        name="nearest-points",
        what="how far the nearest of 4000 points of 3 dimensions is from each of 4000",
        dtype="float32",
        sizes={"n": 4000, "dimensions": 3},
        draw=clouds,
        program=nearest,
    ),
    Workload(
        name="pairs-sum",
        what="the sum of all squared distances of 2000 x 2000 points of 16 dimensions",
        dtype="float64",
        sizes={"n": 2000, "dimensions": 16},
        draw=clouds,
        program=all_pairs,
    ),
    Workload(
        name="attention-long",
        what="attention of 4096 words of 64 numbers to each other",
        dtype="float32",
        sizes={"words": 4096, "width": 64},
        unrolled=("width",),
        draw=words,
        program=attention,
        flops=lambda words, width: 4 * words * words * width,
    ),
]
