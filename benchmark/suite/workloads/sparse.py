"""Products of a sparse and a dense matrix: the product, and its gradient by the dense one."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from benchmark.suite.workload import Workload

RATE = 0.001
#: a thousandth of the elements are entries
SIZES = {"per_row": 10, "rows": 10_000, "columns": 10_000}


def matrix(rng, per_row, rows, columns):
    """The vectors of a CSR matrix: in each row an entry somewhere in each part of the columns."""
    part = columns // per_row
    places = rng.integers(0, part, (rows, per_row)) + part * np.arange(per_row)
    return {
        "data": rng.normal(size=rows * per_row),
        "indices": places.ravel().astype(np.int32),
        "indptr": np.arange(0, rows * per_row + 1, per_row, dtype=np.int32),
    }


def product_data(rng, per_row, rows, columns, width):
    return {**matrix(rng, per_row, rows, columns), "w": rng.normal(size=(columns, width))}, {}


def learning_data(rng, per_row, rows, columns, width):
    inputs = {**matrix(rng, per_row, rows, columns), "g": rng.normal(size=(rows, width))}
    return inputs, {"w": rng.normal(size=(columns, width))}


def product(xp, data, indices, indptr, w, rows, columns):
    return (xp.sparse_dot(xp.csr(data, indices, indptr, (rows, columns)), w),), {}


def learn(xp, data, indices, indptr, g, w, rows, columns):
    x = xp.csr(data, indices, indptr, (rows, columns))
    cost, grads = xp.value_and_grad(lambda w: xp.sum(g * xp.sparse_dot(x, w)), w)
    return (cost,), xp.descend({"w": w}, grads, RATE)


def learn_by_hand(data, indices, indptr, g, w, rows, columns):
    x = scipy.sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))
    cost = (g * (x @ w)).sum()
    w -= RATE * (x.T @ g)
    return (cost,), {"w": w}


def of_sparse(name: str, what: str, width: int, **fields) -> Workload:
    return Workload(
        name=name, what=what, sizes={**SIZES, "width": width}, unrolled=("rows", "columns"),
        **fields,
    )  # fmt: skip


WORKLOADS = [
    workload
    for width, kind in ((64, ""), (1, "column-"))
    for letters, dtype in (("f32", "float32"), ("f64", "float64"))
    for workload in (
        of_sparse(
            f"sparse-dot-{kind}{letters}",
            f"10,000 x 10,000 CSR with 0.1 % entries times 10,000 x {width}, {dtype}",
            width,
            dtype=dtype,
            draw=product_data,
            program=product,
        ),
        of_sparse(
            f"sparse-dot-{kind}grad-{letters}",
            f"the same, with the gradient by the dense matrix and an update of it, {dtype}",
            width,
            dtype=dtype,
            draw=learning_data,
            program=learn,
            by_hand=learn_by_hand,
        ),
    )
]
