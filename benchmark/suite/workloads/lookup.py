"""Rows of a large table: taking them, and learning those that were taken."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload

RATE = 0.001
SIZES = {"words": 50_000, "width": 64, "taken": 1024}


def table(rng, words, width, taken):
    inputs = {"table": rng.normal(size=(words, width)), "index": rng.integers(0, words, taken)}
    return inputs, {}


def learned_table(rng, words, width, taken):
    inputs = {"index": rng.integers(0, words, taken), "w": rng.normal(size=(taken, width))}
    return inputs, {"table": rng.normal(size=(words, width))}


def take(xp, table, index):
    return (xp.take(table, index),), {}


def learn(xp, index, w, table):
    """The gradient is taken in the whole table, and the whole table moves."""
    cost, grads = xp.value_and_grad(lambda table: xp.sum(w * xp.take(table, index)), table)
    return (cost,), xp.descend({"table": table}, grads, RATE)


def learn_rows(xp, index, w, table):
    """The gradient is taken in the rows, and only they move."""
    cost, grads = xp.value_and_grad(lambda rows: xp.sum(w * rows), xp.take(table, index))
    return (cost,), {"table": xp.add_at(table, index, -RATE * grads[0])}


def learn_by_hand(index, w, table):
    cost = (w * table[index]).sum()
    np.add.at(table, index, -RATE * w)
    return (cost,), {"table": table}


def taken_rows(itemsize, words, width, taken):
    """The index and the rows are read, the result is written."""
    return taken * 8 + taken * width * itemsize, taken * width * itemsize


def learned_rows(itemsize, words, width, taken):
    """The index, the weights and the rows are read; the rows and the cost are written."""
    return taken * 8 + 2 * taken * width * itemsize, (taken * width + 1) * itemsize


def of_table(name: str, what: str, **fields) -> Workload:
    return Workload(name=name, what=what, dtype="float32", sizes=SIZES, **fields)


WORKLOADS = [
    of_table(
        "take-rows",
        "1024 rows of a table of 50,000 x 64",
        draw=table,
        program=take,
        moved=taken_rows,
    ),
    of_table(
        "take-rows-grad",
        "gradient of a function of 1024 rows in the whole table, one update of the table",
        draw=learned_table,
        program=learn,
        by_hand=learn_by_hand,
        moved=learned_rows,
    ),
    of_table(
        "take-rows-update",
        "the same, as the gradient in the rows and an update of the rows alone",
        draw=learned_table,
        program=learn_rows,
        by_hand=learn_by_hand,
        moved=learned_rows,
    ),
]
