"""Work along an axis and by indices: cumulative sums, sorting, searching, masks, attention."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload

MATRIX = {"rows": 2000, "columns": 1000}


def matrix(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns))}, {}


def cumulated(axis: int):
    def program(xp, x):
        return (xp.cumsum(x, axis=axis),), {}

    return program


def sorted_rows(xp, x):
    return (xp.sort(x, axis=1),), {}


def vector(rng, n):
    return {"x": rng.normal(size=n)}, {}


def sorted_vector(xp, x):
    return (xp.sort(x, axis=0),), {}


def searched(rng, places, n):
    return {"x": np.sort(rng.normal(size=places)), "v": rng.normal(size=n)}, {}


def search(xp, x, v):
    return (xp.searchsorted(x, v),), {}


def columns(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns)), "index": rng.integers(0, columns, columns)}, {}


def take_columns(xp, x, index):
    return (xp.take_columns(x, index),), {}


def pairs(rng, rows, columns, n):
    return {
        "x": rng.normal(size=(rows, columns)),
        "i": rng.integers(0, rows, n),
        "j": rng.integers(0, columns, n),
    }, {}


def picked(xp, x, i, j):
    return (x[i, j],), {}


def picked_gradient(xp, x, i, j):
    def cost_of(x):
        part = x[i, j]
        return xp.sum(part * part)

    cost, (grad,) = xp.value_and_grad(cost_of, x)
    return (cost, grad), {}


def picked_gradient_by_hand(x, i, j):
    part, grad = x[i, j], np.zeros_like(x)
    np.add.at(grad, (i, j), 2 * part)
    return ((part * part).sum(), grad), {}


def picked_bytes(itemsize, rows, columns, n):
    return n * (16 + itemsize), n * itemsize


def masked(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns)), "mask": rng.random((rows, columns)) < 0.5}, {}


def masked_sum(xp, x, mask):
    return (xp.masked_sum(x, mask),), {}


# ---------------------------------------------------------------- models


def clusters(rng, points, dimensions, centres):
    x = rng.normal(size=(points, dimensions))
    return {"x": x, "ones": np.ones(points), "c": x[:centres].copy()}, {}


def kmeans(xp, x, ones, c):
    """Points go to the nearest centre, and centres to the mean of their points."""
    near = xp.argmin(xp.sum(c * c, axis=1) - 2 * xp.dot(x, c.T), axis=1)
    sums = xp.add_at(0 * c, near, x)
    counts = xp.add_at(0 * c[:, 0], near, ones)
    return (counts, sums / counts[:, None]), {}


def kmeans_by_hand(x, ones, c):
    near = np.argmin((c * c).sum(axis=1) - 2 * x @ c.T, axis=1)
    sums, counts = np.zeros_like(c), np.zeros_like(c[:, 0])
    np.add.at(sums, near, x)
    np.add.at(counts, near, ones)
    return (counts, sums / counts[:, None]), {}


def heads(rng, pages, words, width):
    return {name: rng.normal(size=(pages, words, width)) for name in "qkv"}, {}


def attention(xp, q, k, v, width):
    weights = xp.softmax_last(xp.matmul(q, xp.swapped(k)) * width**-0.5)
    return (xp.matmul(weights, v),), {}


WORKLOADS = [
    *(
        Workload(
            name=f"cumsum-axis{axis}",
            what=f"cumulative sums of 2000 x 1000 along axis {axis}",
            dtype="float64",
            sizes=MATRIX,
            draw=matrix,
            program=cumulated(axis),
        )
        for axis in (0, 1)
    ),
    Workload(
        name="sort-rows",
        what="2000 rows of 1000 numbers, sorted",
        dtype="float32",
        sizes=MATRIX,
        draw=matrix,
        program=sorted_rows,
    ),
    Workload(
        name="sort-1e6",
        what="a million numbers, sorted",
        dtype="float32",
        sizes={"n": 10**6},
        draw=vector,
        program=sorted_vector,
    ),
    Workload(
        name="searchsorted",
        what="the places of a million numbers among 10,000 sorted ones",
        dtype="int64",
        sizes={"places": 10**4, "n": 10**6},
        draw=searched,
        program=search,
    ),
    Workload(
        name="take-axis1",
        what="1000 columns of 2000 x 1000, taken by an index",
        dtype="float32",
        sizes=MATRIX,
        draw=columns,
        program=take_columns,
    ),
    Workload(
        name="pick-pairs",
        what="a million elements of 2000 x 1000, by two indices",
        dtype="float32",
        sizes={**MATRIX, "n": 10**6},
        draw=pairs,
        program=picked,
        moved=picked_bytes,
    ),
    Workload(
        name="pick-pairs-grad",
        what="the sum of squares of these elements, and its gradient",
        dtype="float32",
        sizes={**MATRIX, "n": 10**6},
        draw=pairs,
        program=picked_gradient,
        by_hand=picked_gradient_by_hand,
    ),
    Workload(
        name="masked-sum",
        what="the sum of half of 2000 x 1000 numbers, by a mask",
        dtype="float32",
        sizes=MATRIX,
        draw=masked,
        program=masked_sum,
    ),
    Workload(
        name="kmeans-step",
        what="a step of k-means: 20,000 points of 32 dimensions, 64 centres",
        dtype="float32",
        sizes={"points": 20_000, "dimensions": 32, "centres": 64},
        draw=clusters,
        program=kmeans,
        by_hand=kmeans_by_hand,
        flops=lambda points, dimensions, centres: 2 * points * dimensions * centres,
    ),
    Workload(
        name="attention-batched",
        what="attention of 64 pages of 128 words of 64 numbers",
        dtype="float32",
        sizes={"pages": 64, "words": 128, "width": 64},
        unrolled=("width",),
        draw=heads,
        program=attention,
        flops=lambda pages, words, width: 4 * pages * words * words * width,
    ),
]
