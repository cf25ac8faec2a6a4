"""Loops: recurrent networks and their gradients, ODE solvers, filters, samplers, nested loops."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmark.suite.workload import Workload

RATE = 0.01


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---------------------------------------------------------------- a recurrent network


def rnn_data(rng, steps, size):
    inputs = {"x": rng.normal(size=(steps, size)), "y": rng.uniform(-0.5, 0.5, size)}
    return inputs, {"w": 0.9 * np.linalg.qr(rng.normal(size=(size, size)))[0]}


def rnn_rows_data(rng, steps, size):
    inputs, state = rnn_data(rng, steps, size)
    return inputs | state, {}


def rnn_rows(xp, x, y, w):
    (rows,) = xp.scan_rows(lambda x, h: (xp.tanh(x + xp.dot(h, w)),), (0 * y,), (x,))
    return (rows,), {}


def rnn(xp, x, y, w):
    def cost_of(w):
        (last,) = xp.scan(lambda x, h: (xp.tanh(x + xp.dot(h, w)),), (0 * y,), (x,))
        return xp.sum((last - y) * (last - y))

    cost, grads = xp.value_and_grad(cost_of, w)
    return (cost,), xp.descend({"w": w}, grads, RATE)


def rnn_by_hand(x, y, w):
    states = [0 * y]
    for row in x:
        states.append(np.tanh(row + states[-1] @ w))
    miss = states[-1] - y
    grad, grad_w = 2 * miss, np.zeros_like(w)
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        grad = grad * (1 - after * after)
        grad_w += np.outer(before, grad)
        grad = w @ grad
    w -= RATE * grad_w
    return ((miss * miss).sum(),), {"w": w}


# ---------------------------------------------------------------- gated networks


def gated_data(rng, steps, batch, size, gates):
    scale = 1 / np.sqrt(size)
    inputs = {
        "x": rng.normal(size=(steps, batch, size)),
        "y": rng.uniform(-0.5, 0.5, (batch, size)),
    }
    state = {
        "u": scale * rng.normal(size=(size, gates * size)),
        "w": scale * rng.normal(size=(size, gates * size)),
        "b": 0.1 * rng.normal(size=gates * size),
    }
    return inputs, state


def gated(first_of, step_of, xp, x, y, **state):
    """A training step of a network; the cost is that of its last state."""

    def cost_of(u, w, b):
        last = xp.scan(partial(step_of, xp, y.shape[1], u, w, b), first_of(y), (x,))[0]
        return xp.mean((last - y) * (last - y))

    cost, grads = xp.value_and_grad(cost_of, *state.values())
    return (cost,), xp.descend(state, grads, RATE)


def lstm_step(xp, size, u, w, b, x, h, c):
    gates = xp.dot(x, u) + xp.dot(h, w) + b
    i, f, o = (xp.sigmoid(gates[:, k * size : (k + 1) * size]) for k in range(3))
    c = f * c + i * xp.tanh(gates[:, 3 * size :])
    return o * xp.tanh(c), c


def lstm_by_hand(x, y, u, w, b):
    n = y.shape[1]
    h = c = 0 * y
    kept = []
    for row in x:
        gates = row @ u + h @ w + b
        i, f, o = (sigmoid(gates[:, k * n : (k + 1) * n]) for k in range(3))
        g = np.tanh(gates[:, 3 * n :])
        before = h, c
        c = f * c + i * g
        t = np.tanh(c)
        h = o * t
        kept.append((row, *before, i, f, o, g, t))
    miss = h - y
    gh, gc = 2 * miss / miss.size, 0 * c
    gu, gw, gb = np.zeros_like(u), np.zeros_like(w), np.zeros_like(b)
    for row, h, c, i, f, o, g, t in reversed(kept):
        gc = gc + gh * o * (1 - t * t)
        parts = (
            gc * g * i * (1 - i),
            gc * c * f * (1 - f),
            gh * t * o * (1 - o),
            gc * i * (1 - g * g),
        )
        gates = np.concatenate(parts, axis=1)
        gu += row.T @ gates
        gw += h.T @ gates
        gb += gates.sum(axis=0)
        gh, gc = gates @ w.T, gc * f
    for value, grad in ((u, gu), (w, gw), (b, gb)):
        value -= RATE * grad
    return (np.mean(miss * miss),), {"u": u, "w": w, "b": b}


def gru_step(xp, size, u, w, b, x, h):
    given = xp.dot(x, u) + b
    gates = xp.sigmoid(given[:, : 2 * size] + xp.dot(h, w[:, : 2 * size]))
    z, r = gates[:, :size], gates[:, size:]
    new = xp.tanh(given[:, 2 * size :] + xp.dot(r * h, w[:, 2 * size :]))
    return ((1 - z) * h + z * new,)


def gru_by_hand(x, y, u, w, b):
    n = y.shape[1]
    h = 0 * y
    kept = []
    for row in x:
        given = row @ u + b
        gates = sigmoid(given[:, : 2 * n] + h @ w[:, : 2 * n])
        z, r = gates[:, :n], gates[:, n:]
        new = np.tanh(given[:, 2 * n :] + (r * h) @ w[:, 2 * n :])
        kept.append((row, h, z, r, new))
        h = (1 - z) * h + z * new
    miss = h - y
    gh = 2 * miss / miss.size
    gu, gw, gb = np.zeros_like(u), np.zeros_like(w), np.zeros_like(b)
    for row, h, z, r, new in reversed(kept):
        gn = gh * z * (1 - new * new)
        through = gn @ w[:, 2 * n :].T
        gates = np.concatenate([gh * (new - h) * z * (1 - z), through * h * r * (1 - r)], axis=1)
        both = np.concatenate([gates, gn], axis=1)
        gu += row.T @ both
        gb += both.sum(axis=0)
        gw[:, : 2 * n] += h.T @ gates
        gw[:, 2 * n :] += (r * h).T @ gn
        gh = gh * (1 - z) + through * r + gates @ w[:, : 2 * n].T
    for value, grad in ((u, gu), (w, gw), (b, gb)):
        value -= RATE * grad
    return (np.mean(miss * miss),), {"u": u, "w": w, "b": b}


def gated_flops(steps, batch, size, gates):
    """Two products a step, and for each two in its gradient, but for that of the input."""
    return steps * 5 * 2 * batch * size * gates * size


# ---------------------------------------------------------------- recurrences of numbers


def logistic_data(rng, steps):
    """A rate at which the values have a period: rounding errors do not grow."""
    return {"x": np.array(0.3), "rate": np.array(3.5)}, {}


def logistic(xp, x, rate, steps):
    (rows,) = xp.scan_rows(lambda x: (rate * x * (1 - x),), (x,), steps=steps)
    return (rows,), {}


def logistic_loop(x, rate, steps):
    rows = np.empty(steps)
    value = x[()]
    for t in range(steps):
        value = rate[()] * value * (1 - value)
        rows[t] = value
    return rows


def oscillators_data(rng, steps):
    return {"start": np.array([1.0, 0.5, 0.0, 0.2]), "dt": np.array(0.01)}, {}


def runge_kutta(xp, start, dt, steps):
    """Two pendulums with a spring between them: angles a and b, their speeds v and w."""

    def slopes(a, b, v, w):
        return v, w, 0.5 * (b - a) - xp.sin(a), 0.5 * (a - b) - xp.sin(b)

    def moved(state, slopes, by):
        return [x + by * slope for x, slope in zip(state, slopes, strict=True)]

    def step(*state):
        k = slopes(*state)
        m = slopes(*moved(state, k, dt / 2))
        n = slopes(*moved(state, m, dt / 2))
        p = slopes(*moved(state, n, dt))
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k, m, n, p, strict=True)]
        return tuple(moved(state, mean, dt))

    return tuple(xp.scan_rows(step, tuple(start[k] for k in range(4)), steps=steps)), {}


def runge_kutta_loop(start, dt, steps):
    rows = np.empty((4, steps))
    h = dt[()]
    a, b, v, w = start[0], start[1], start[2], start[3]
    for t in range(steps):
        ka, kb, kv, kw = v, w, 0.5 * (b - a) - np.sin(a), 0.5 * (a - b) - np.sin(b)
        x, y = a + h / 2 * ka, b + h / 2 * kb
        ma, mb = v + h / 2 * kv, w + h / 2 * kw
        mv, mw = 0.5 * (y - x) - np.sin(x), 0.5 * (x - y) - np.sin(y)
        x, y = a + h / 2 * ma, b + h / 2 * mb
        na, nb = v + h / 2 * mv, w + h / 2 * mw
        nv, nw = 0.5 * (y - x) - np.sin(x), 0.5 * (x - y) - np.sin(y)
        x, y = a + h * na, b + h * nb
        pa, pb = v + h * nv, w + h * nw
        pv, pw = 0.5 * (y - x) - np.sin(x), 0.5 * (x - y) - np.sin(y)
        a += h * (ka + 2 * ma + 2 * na + pa) / 6
        b += h * (kb + 2 * mb + 2 * nb + pb) / 6
        v += h * (kv + 2 * mv + 2 * nv + pv) / 6
        w += h * (kw + 2 * mw + 2 * nw + pw) / 6
        rows[0, t], rows[1, t], rows[2, t], rows[3, t] = a, b, v, w
    return rows[0], rows[1], rows[2], rows[3]


#: how position and speed change in a step, the covariance of that, and of measurements
MOVES, DRIFT, NOISE = np.array([[1, 0.1], [0, 1]]), 0.01 * np.eye(2), 0.5 * np.eye(2)


def kalman_data(rng, steps):
    return {"z": rng.normal(size=(steps, 2))}, {}


def kalman(xp, z):
    """Position and speed, both measured: the estimates and their covariance in each step."""
    f, q, r = map(xp.constant, (MOVES, DRIFT, NOISE))

    def step(z, x, p):
        x, p = xp.dot(f, x), xp.dot(xp.dot(f, p), f.T) + q
        gain = xp.dot(p, xp.inverse(p + r))
        return x + xp.dot(gain, z - x), p - xp.dot(gain, p)

    return tuple(xp.scan_rows(step, (xp.constant(np.zeros(2)), 1 * q), (z,))), {}


def kalman_loop(z):
    f, q, r = MOVES, DRIFT, NOISE
    steps = len(z)
    xs, ps = np.empty((steps, 2)), np.empty((steps, 2, 2))
    x0 = x1 = 0.0
    p00, p01, p10, p11 = q[0, 0], q[0, 1], q[1, 0], q[1, 1]
    for t in range(steps):
        x0, x1 = f[0, 0] * x0 + f[0, 1] * x1, f[1, 0] * x0 + f[1, 1] * x1
        a00, a01 = f[0, 0] * p00 + f[0, 1] * p10, f[0, 0] * p01 + f[0, 1] * p11
        a10, a11 = f[1, 0] * p00 + f[1, 1] * p10, f[1, 0] * p01 + f[1, 1] * p11
        p00 = a00 * f[0, 0] + a01 * f[0, 1] + q[0, 0]
        p01 = a00 * f[1, 0] + a01 * f[1, 1] + q[0, 1]
        p10 = a10 * f[0, 0] + a11 * f[0, 1] + q[1, 0]
        p11 = a10 * f[1, 0] + a11 * f[1, 1] + q[1, 1]
        s00, s01, s10, s11 = p00 + r[0, 0], p01 + r[0, 1], p10 + r[1, 0], p11 + r[1, 1]
        det = s00 * s11 - s01 * s10
        i00, i01, i10, i11 = s11 / det, -s01 / det, -s10 / det, s00 / det
        g00, g01 = p00 * i00 + p01 * i10, p00 * i01 + p01 * i11
        g10, g11 = p10 * i00 + p11 * i10, p10 * i01 + p11 * i11
        m0, m1 = z[t, 0] - x0, z[t, 1] - x1
        x0, x1 = x0 + g00 * m0 + g01 * m1, x1 + g10 * m0 + g11 * m1
        p00, p01, p10, p11 = (
            p00 - g00 * p00 - g01 * p10, p01 - g00 * p01 - g01 * p11,
            p10 - g10 * p00 - g11 * p10, p11 - g10 * p01 - g11 * p11,
        )  # fmt: skip
        xs[t, 0], xs[t, 1] = x0, x1
        ps[t, 0, 0], ps[t, 0, 1], ps[t, 1, 0], ps[t, 1, 1] = p00, p01, p10, p11
    return xs, ps


def nested_data(rng, rows, steps):
    return {"x": rng.uniform(0.5, 2, rows)}, {}


def nested(xp, x, rows, steps):
    """A running sum of cube roots, each by steps of Newton's method."""

    def outer(x, total):
        (root,) = xp.scan(lambda y: (y - (y * y * y - x) / (3 * y * y),), (x,), steps=steps)
        return (total + root,)

    return tuple(xp.scan_rows(outer, (0 * x[0],), (x,))), {}


def nested_loop(x, rows, steps):
    totals = np.empty(rows)
    total = 0.0
    for t in range(rows):
        y = x[t]
        for _ in range(steps):
            y -= (y * y * y - x[t]) / (3 * y * y)
        total += y
        totals[t] = total
    return totals


# ---------------------------------------------------------------- a sampler


def gibbs_data(rng, batch, visible, hidden, steps):
    inputs = {
        "v": (rng.uniform(size=(batch, visible)) < 0.5).astype(float),
        "w": 0.01 * rng.normal(size=(visible, hidden)),
        "a": 0.1 * rng.normal(size=visible),
        "b": 0.1 * rng.normal(size=hidden),
    }
    return inputs, {}


def gibbs(xp, v, w, a, b, batch, visible, hidden, steps):
    """A restricted Boltzmann machine: hidden and visible units are drawn in turn."""

    def step(v):
        h = drawn(xp.sigmoid(xp.dot(v, w) + b), (batch, hidden))
        return (drawn(xp.sigmoid(xp.dot(h, w.T) + a), (batch, visible)),)

    def drawn(mean, shape):
        return xp.as_dtype(xp.uniform(shape, "float32") < mean, "float32")

    return tuple(xp.scan(step, (v,), steps=steps)), {}


WORKLOADS = [
    Workload(
        name="rnn-500x64-f32",
        what="500 steps h = tanh(x[t] + dot(h, w)) of 64 numbers: all h",
        dtype="float32",
        sizes={"steps": 500, "size": 64},
        draw=rnn_rows_data,
        program=rnn_rows,
        flops=lambda steps, size: 2 * steps * size * size,
    ),
    Workload(
        name="rnn-grad-500x64-f32",
        what="the same: a cost of the last h, and an update of w by its gradient",
        dtype="float32",
        sizes={"steps": 500, "size": 64},
        draw=rnn_data,
        program=rnn,
        by_hand=rnn_by_hand,
        flops=lambda steps, size: 6 * steps * size * size,
    ),
    *(
        Workload(
            name=f"{name}-100x16x128-f32",
            what=f"{what}, 100 steps, batch 16, 128 units: one update",
            dtype="float32",
            sizes={"steps": 100, "batch": 16, "size": 128},
            draw=partial(gated_data, gates=gates),
            program=partial(gated, first_of, step),
            by_hand=by_hand,
            flops=partial(gated_flops, gates=gates),
        )
        for name, what, gates, first_of, step, by_hand in (
            ("lstm", "long short-term memory", 4, lambda y: (0 * y, 0 * y), lstm_step,
             lstm_by_hand),
            ("gru", "gated recurrent units", 3, lambda y: (0 * y,), gru_step, gru_by_hand),
        )
    ),
    Workload(
        name="logistic-map-1e4",
        what="10,000 steps x = r * x * (1 - x) of a number",
        dtype="float64",
        sizes={"steps": 10_000},
        draw=logistic_data,
        program=logistic,
        loop=logistic_loop,
        unrolled=("steps",),
    ),
    Workload(
        name="runge-kutta-1e4",
        what="10,000 steps of Runge and Kutta's method: two coupled pendulums, 4 numbers",
        dtype="float64",
        sizes={"steps": 10_000},
        draw=oscillators_data,
        program=runge_kutta,
        loop=runge_kutta_loop,
        unrolled=("steps",),
    ),
    Workload(
        name="kalman-1e4",
        what="10,000 steps of a Kalman filter of 2 x 2",
        dtype="float64",
        sizes={"steps": 10_000},
        draw=kalman_data,
        program=kalman,
        loop=kalman_loop,
    ),
    Workload(
        name="nested-1000x20",
        what="a loop of 1,000 steps around one of 20: Newton's method on numbers",
        dtype="float64",
        sizes={"rows": 1000, "steps": 20},
        draw=nested_data,
        program=nested,
        loop=nested_loop,
        unrolled=("rows", "steps"),
    ),
    Workload(
        name="gibbs-15-f32",
        what="15 steps of Gibbs sampling in a restricted Boltzmann machine, 20 x 784 x 500",
        dtype="float32",
        sizes={"batch": 20, "visible": 784, "hidden": 500, "steps": 15},
        draw=gibbs_data,
        program=gibbs,
        unrolled=("batch", "visible", "hidden", "steps"),
        flops=lambda batch, visible, hidden, steps: 4 * steps * batch * visible * hidden,
        random=True,
    ),
]  # fmt: skip
