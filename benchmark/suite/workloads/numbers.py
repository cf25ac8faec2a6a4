"""Other numbers than floats of 32 and 64 bits: halves, complex numbers, integers and truths."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload

MATRIX = {"rows": 3000, "columns": 1000}


def halves(rng, n):
    return {"x": rng.normal(size=n), "y": rng.uniform(0.5, 2, n)}, {}


def half_mix(xp, x, y):
    return (xp.tanh(x) * xp.exp(-x) + x * y - x / y,), {}


def complex_vectors(rng, n):
    return {name: rng.normal(size=n) + 1j * rng.normal(size=n) for name in "xy"}, {}


def complex_mix(xp, x, y):
    return (x * y + x / y - xp.exp(x),), {}


def complex_matrices(rng, size):
    shape = size, size
    return {name: rng.normal(size=shape) + 1j * rng.normal(size=shape) for name in "xy"}, {}


def product(xp, x, y):
    return (xp.dot(x, y),), {}


def whole_matrices(rng, size):
    return {n: rng.integers(-100, 100, (size, size)).astype(np.int32) for n in "xy"}, {}


def whole(rng, rows, columns):
    return {"x": rng.integers(-1000, 1000, (rows, columns)).astype(np.int32)}, {}


def truths(rng, rows, columns):
    return {"x": rng.random((rows, columns)) < 0.5}, {}


def counted(xp, x):
    return (xp.sum(x, axis=0), xp.sum(x, axis=1)), {}


def largest(axis: int):
    def program(xp, x):
        return (xp.argmax(x, axis=axis),), {}

    return program


WORKLOADS = [
    Workload(
        name="float16-mix",
        what="tanh(x) * exp(-x) + x * y - x / y of a million halves",
        dtype="float16",
        sizes={"n": 10**6},
        draw=halves,
        program=half_mix,
    ),
    Workload(
        name="complex-mix",
        what="x * y + x / y - exp(x) of a million complex numbers",
        dtype="complex64",
        sizes={"n": 10**6},
        draw=complex_vectors,
        program=complex_mix,
    ),
    Workload(
        name="complex-matmul",
        what="a product of two matrices of 500 x 500 complex numbers",
        dtype="complex64",
        sizes={"size": 500},
        draw=complex_matrices,
        program=product,
        flops=lambda size: 8 * size**3,
    ),
    Workload(
        name="int-matmul",
        what="a product of two matrices of 500 x 500 integers of 32 bits",
        dtype="int32",
        sizes={"size": 500},
        draw=whole_matrices,
        program=product,
    ),
    Workload(
        name="bool-sum",
        what="how many are true in each column and row of 3000 x 1000",
        dtype="int64",
        sizes=MATRIX,
        draw=truths,
        program=counted,
    ),
    Workload(
        name="int-sum",
        what="sums of each column and row of 3000 x 1000 integers of 32 bits",
        dtype="int64",
        sizes=MATRIX,
        draw=whole,
        program=counted,
    ),
    *(
        Workload(
            name=f"argmax-int-axis{axis}",
            what=f"the place of the largest of 3000 x 1000 integers of 32 bits along axis {axis}",
            dtype="int64",
            sizes=MATRIX,
            draw=whole,
            program=largest(axis),
        )
        for axis in (0, 1)
    ),
]
