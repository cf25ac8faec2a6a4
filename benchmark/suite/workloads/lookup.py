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


# ---------------------------------------------------------------- steps of models with tables


def embedded(rng, words, width, taken):
    """One table; its rows are regularised."""
    return {"index": rng.integers(0, words, taken)}, {"table": rng.normal(size=(words, width))}


def shrink(xp, index, table):
    def cost_of(rows):
        return 0.5 * xp.sum(rows * rows)

    cost, grads = xp.value_and_grad(cost_of, xp.take(table, index))
    return (cost,), {"table": xp.add_at(table, index, -RATE * grads[0])}


def shrink_by_hand(index, table):
    rows = table[index]
    cost = 0.5 * (rows * rows).sum()
    np.add.at(table, index, -RATE * rows)
    return (cost,), {"table": table}


def scaled_step(rng, words, width, taken):
    """AdaGrad: a table, and the squares of its gradients so far. No row is taken twice."""
    inputs = {
        "index": rng.permutation(max(words, taken))[:taken] % words,
        "w": rng.normal(size=(taken, width)),
    }
    state = {
        "table": rng.normal(size=(words, width)),
        "squares": np.ones((words, width)),
    }
    return inputs, state


def adagrad(xp, index, w, table, squares):
    def cost_of(rows):
        return 0.5 * xp.sum((rows - w) * (rows - w))

    cost, (grad,) = xp.value_and_grad(cost_of, xp.take(table, index))
    so_far = xp.take(squares, index) + grad * grad
    return (cost,), {
        "table": xp.add_at(table, index, -RATE * grad / xp.sqrt(so_far)),
        "squares": xp.set_at(squares, index, so_far),
    }


def adagrad_by_hand(index, w, table, squares):
    grad = table[index] - w
    cost = 0.5 * (grad * grad).sum()
    so_far = squares[index] + grad * grad
    squares[index] = so_far
    np.add.at(table, index, -RATE * grad / np.sqrt(so_far))
    return (cost,), {"table": table, "squares": squares}


def pairs(rng, words, width, taken, others):
    """word2vec: words, and for each a context and negative samples."""
    inputs = {
        "word": rng.integers(0, words, taken),
        "context": rng.integers(0, words, taken * others),
        "sign": np.where(np.arange(others) == 0, 1.0, -1.0),
    }
    state = {name: 0.1 * rng.normal(size=(words, width)) for name in ("of_words", "of_contexts")}
    return inputs, state


def negative_sampling(xp, word, context, sign, of_words, of_contexts, width, taken, others):
    def cost_of(u, v):
        scores = xp.sum(u[:, None, :] * v.reshape((taken, others, width)), axis=2)
        return -xp.sum(xp.log(xp.sigmoid(sign * scores)))

    u, v = xp.take(of_words, word), xp.take(of_contexts, context)
    cost, (by_u, by_v) = xp.value_and_grad(cost_of, u, v)
    return (cost,), {
        "of_words": xp.add_at(of_words, word, -RATE * by_u),
        "of_contexts": xp.add_at(of_contexts, context, -RATE * by_v),
    }


def negative_sampling_by_hand(word, context, sign, of_words, of_contexts, width, taken, others):
    u, v = of_words[word], of_contexts[context].reshape(taken, others, width)
    likely = 1 / (1 + np.exp(-sign * (u[:, None, :] * v).sum(2)))
    grad = -sign * (1 - likely)
    np.add.at(of_words, word, -RATE * (grad[:, :, None] * v).sum(1))
    np.add.at(of_contexts, context, -RATE * (grad[:, :, None] * u[:, None, :]).reshape(-1, width))
    return (-np.log(likely).sum(),), {"of_words": of_words, "of_contexts": of_contexts}


def shrunk_rows(itemsize, words, width, taken):
    return taken * 8 + taken * width * itemsize, (taken * width + 1) * itemsize


def scaled_rows(itemsize, words, width, taken):
    return taken * 8 + 3 * taken * width * itemsize, (2 * taken * width + 1) * itemsize


def paired_rows(itemsize, words, width, taken, others):
    rows = taken * (1 + others)
    return rows * 8 + rows * width * itemsize, (rows * width + 1) * itemsize


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
    of_table(
        "embedding-step",
        "1024 rows of a table, the sum of their squares, and a step downhill of the rows",
        draw=embedded,
        program=shrink,
        by_hand=shrink_by_hand,
        moved=shrunk_rows,
    ),
    of_table(
        "adagrad-rows",
        "a step of AdaGrad on 1024 rows: the table, and the squares of its gradients",
        draw=scaled_step,
        program=adagrad,
        by_hand=adagrad_by_hand,
        moved=scaled_rows,
    ),
    Workload(
        name="word2vec-step",
        what="128 words, each with a context and 5 negative samples, in tables of 50,000 x 64",
        dtype="float32",
        sizes={"words": 50_000, "width": 64, "taken": 128, "others": 6},
        unrolled=("width", "taken", "others"),
        draw=pairs,
        program=negative_sampling,
        by_hand=negative_sampling_by_hand,
        moved=paired_rows,
    ),
]
