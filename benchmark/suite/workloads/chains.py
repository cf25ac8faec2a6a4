"""Long chains of small operations, unrolled: where compilers and dispatchers are felt."""

from __future__ import annotations

import numpy as np

from benchmark.suite.workload import Workload

RATE = 0.001


# ---------------------------------------------------------------- a recurrence


def recurrence_data(rng, steps, size):
    inputs = {
        "x": rng.normal(size=(steps, size)),
        "w": rng.uniform(0.5, 1, size),
        "start": np.zeros(size),
    }
    return inputs, {}


def recurrence(xp, x, w, start, steps):
    def cost_of(w):
        h = start
        for t in range(steps):
            h = xp.tanh(h * w + x[t])
        return xp.sum(h)

    cost, grads = xp.value_and_grad(cost_of, w)
    return (cost, *grads), {}


def recurrence_by_hand(x, w, start, steps):
    states = [start]
    for t in range(steps):
        states.append(np.tanh(states[-1] * w + x[t]))
    grad, grad_w = np.ones_like(w), np.zeros_like(w)
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        grad = grad * (1 - after * after)
        grad_w += grad * before
        grad = grad * w
    return (states[-1].sum(), grad_w), {}


# ---------------------------------------------------------------- blocks of a product and a tanh


def blocks_data(rng, blocks, rows, size):
    """Orthogonal weights, so that nothing dies out or explodes over a thousand blocks."""
    state = {}
    for k in range(blocks):
        state[f"w{k}"] = np.linalg.qr(rng.normal(size=(size, size)))[0]
        state[f"b{k}"] = 0.1 * rng.normal(size=size)
    inputs = {"x": rng.normal(size=(rows, size)), "y": rng.uniform(-0.5, 0.5, (rows, size))}
    return inputs, state


def blocks(xp, x, y, **state):
    def cost_of(*weights):
        h = x
        for w, b in zip(weights[::2], weights[1::2], strict=True):
            h = xp.tanh(xp.dot(h, w) + b)
        return xp.sum((h - y) * (h - y))

    cost, grads = xp.value_and_grad(cost_of, *state.values())
    return (cost,), xp.descend(state, grads, RATE)


def blocks_by_hand(x, y, **state):
    weights = list(state.values())
    pairs = list(zip(weights[::2], weights[1::2], strict=True))
    states = [x]
    for w, b in pairs:
        states.append(np.tanh(states[-1] @ w + b))
    miss = states[-1] - y
    grad = 2 * miss
    for (w, b), before, after in zip(pairs[::-1], states[-2::-1], states[:0:-1], strict=True):
        grad = grad * (1 - after * after)
        through = grad @ w.T
        w -= RATE * (before.T @ grad)
        b -= RATE * grad.sum(axis=0)
        grad = through
    return ((miss * miss).sum(),), state


WORKLOADS = [
    Workload(
        name="recurrence-100",
        what="100 steps h = tanh(h * w + x[t]) of 16 numbers, and the gradient in w",
        dtype="float64",
        sizes={"steps": 100, "size": 16},
        draw=recurrence_data,
        program=recurrence,
        by_hand=recurrence_by_hand,
        unrolled=("steps",),
    ),
    *(
        Workload(
            name=f"blocks-{count}",
            what=f"{count} blocks h = tanh(dot(h, w) + b) of 8 x 16, one update of all w and b",
            dtype="float64",
            sizes={"blocks": count, "rows": 8, "size": 16},
            draw=blocks_data,
            program=blocks,
            by_hand=blocks_by_hand,
            # Three products a block, but the first needs no gradient in x.
            flops=lambda blocks, rows, size: (3 * blocks - 1) * 2 * rows * size * size,
        )
        for count in (100, 1000)
    ),
]
