"""50 programs of numpy: each a function without decorator, and what makes its arguments.

They are written as people write them for numpy or for a compiler of numpy: array expressions,
writes in place, loops over elements, ``while`` and ``if`` on values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmark.numpy_programs.program import Programs

PROGRAMS = Programs()
program = PROGRAMS.program


def vectors(count: int) -> Callable[..., Any]:
    return lambda rng, n: tuple(rng.normal(size=n) for _ in range(count))


def matrices(count: int) -> Callable[..., Any]:
    return lambda rng, n: tuple(rng.normal(size=(n, n)) for _ in range(count))


# --- stencils -------------------------------------------------------------------------------------


@program("stencil", lambda rng, n: (rng.normal(size=(n, n)), 20), 12, 400)
def jacobi_2d(a, steps):
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return a


@program("stencil", lambda rng, n: (rng.normal(size=n), 0.1, 50), 20, 100_000)
def heat_1d(u, alpha, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] + alpha * (u[2:] - 2 * u[1:-1] + u[:-2])
        u, v = v, u
    return u


@program("stencil", lambda rng, n: (rng.normal(size=(n, n)), 10), 10, 80)
def seidel_2d(a, steps):
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1] + a[i, j]) / 5.0
    return a


@program("stencil", lambda rng, n: ((rng.random((n, n)) < 0.3).astype(np.int64), 10), 12, 300)
def game_of_life(board, steps):
    for _ in range(steps):
        around = np.zeros_like(board)
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx != 0 or dy != 0:
                    around = around + np.roll(np.roll(board, dx, 0), dy, 1)
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(np.int64)
    return board


@program("stencil", lambda rng, n: (rng.normal(size=(n, n)), rng.normal(size=(n, n)), 10), 8, 200)
def wave_2d(u, before, steps):
    for _ in range(steps):
        laplace = -4 * u
        laplace[1:] += u[:-1]
        laplace[:-1] += u[1:]
        laplace[:, 1:] += u[:, :-1]
        laplace[:, :-1] += u[:, 1:]
        u, before = 2 * u - before + 0.1 * laplace, u
    return u


@program("stencil", lambda rng, n: (rng.normal(size=(n, n, n)),), 6, 60)
def laplacian_3d(u):
    out = np.zeros_like(u)
    out[1:-1, 1:-1, 1:-1] = (
        u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1] + u[1:-1, :-2, 1:-1]
        + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2] - 6 * u[1:-1, 1:-1, 1:-1]
    )  # fmt: skip
    return out


# --- linear algebra by loops ----------------------------------------------------------------------


@program("loops", matrices(2), 10, 60)
def matmul_by_loops(a, b):
    n, m = a.shape
    p = b.shape[1]
    c = np.zeros((n, p))
    for i in range(n):
        for j in range(p):
            total = 0.0
            for k in range(m):
                total += a[i, k] * b[k, j]
            c[i, j] = total
    return c


def _positive(rng, n):
    a = rng.normal(size=(n, n))
    return (a @ a.T + n * np.eye(n),)


@program("loops", _positive, 9, 60)
def cholesky_by_loops(a):
    n = a.shape[0]
    low = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= low[i, k] * low[j, k]
            if i == j:
                low[i, j] = math.sqrt(total)
            else:
                low[i, j] = total / low[j, j]
    return low


@program("loops", _positive, 10, 200)
def lu(a):
    a = a.copy()
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


@program(
    "loops",
    lambda rng, n: (np.tril(rng.normal(size=(n, n))) + n * np.eye(n), rng.normal(size=n)),
    12,
    300,
)
def forward_substitution(low, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - low[i, :i] @ x[:i]) / low[i, i]
    return x


@program("loops", matrices(1), 12, 200)
def gram_schmidt(a):
    q = a.copy()
    for j in range(q.shape[1]):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        q[:, j] /= np.sqrt((q[:, j] ** 2).sum())
    return q


@program("linear algebra", _positive, 9, 300)
def power_iteration(a):
    v = np.ones(a.shape[0])
    for _ in range(30):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v @ a @ v


@program("linear algebra", lambda rng, n: (*_positive(rng, n), rng.normal(size=n)), 9, 300)
def conjugate_gradient(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    n = 0
    while rs > 1e-16 and n < 100:
        ap = a @ p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
        n += 1
    return x


@program("linear algebra", lambda rng, n: (*_positive(rng, n), rng.normal(size=(n, 3))), 8, 200)
def least_squares(a, b):
    return np.linalg.solve(a.T @ a, a.T @ b), np.linalg.det(a / a.shape[0])


@program("linear algebra", matrices(3), 10, 150)
def matrix_chain(a, b, c):
    return np.trace(a @ b @ c) + np.einsum("ij,jk,ki->", a, b, c)


# --- dynamic programming --------------------------------------------------------------------------


@program("dynamic", lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n)), 12, 150)
def longest_common_subsequence(a, b):
    n, m = len(a), len(b)
    table = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table[n, m]


@program("dynamic", lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n)), 12, 150)
def edit_distance(a, b):
    before = np.arange(len(b) + 1)
    for i in range(len(a)):
        row = np.zeros(len(b) + 1, dtype=np.int64)
        row[0] = i + 1
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            row[j + 1] = min(before[j + 1] + 1, row[j] + 1, before[j] + cost)
        before = row
    return before[-1]


@program(
    "dynamic", lambda rng, n: (rng.integers(1, 20, n), rng.integers(1, 50, n), 10 * n), 10, 100
)
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=np.int64)
    for w, v in zip(weights, values):  # noqa: B905 (Numba knows no strict=)
        for c in range(capacity, w - 1, -1):
            if best[c - w] + v > best[c]:
                best[c] = best[c - w] + v
    return best[capacity]


@program("dynamic", lambda rng, n: (rng.random((n, n)) * 10,), 9, 100)
def floyd_warshall(d):
    d = d.copy()
    for k in range(d.shape[0]):
        d = np.minimum(d, d[:, k, None] + d[None, k, :])
    return d


@program("dynamic", lambda rng, n: (rng.normal(size=n),), 20, 5000)
def largest_subarray(x):
    best, here = -np.inf, 0.0
    for value in x:
        here = max(value, here + value)
        best = max(best, here)
    return best


@program(
    "dynamic",
    lambda rng, n: (rng.random((5, 5)), rng.random((5, 4)), rng.integers(0, 4, n)),
    15,
    1000,
)
def viterbi(transition, emission, seen):
    score = np.log(emission[:, seen[0]])
    log_transition = np.log(transition)
    for t in range(1, len(seen)):
        score = (score[:, None] + log_transition).max(0) + np.log(emission[:, seen[t]])
    return score.max()


# --- physics --------------------------------------------------------------------------------------


@program(
    "physics",
    lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.random(n), 5),
    8,
    100,
)
def n_body(position, velocity, mass, steps):
    for _ in range(steps):
        gap = position[None, :, :] - position[:, None, :]
        distance = (gap**2).sum(-1) + 0.01
        force = gap * (mass[None, :] / distance**1.5)[:, :, None]
        velocity += 0.01 * force.sum(1)
        position += 0.01 * velocity
    return position, velocity


@program("physics", lambda rng, n: (rng.normal(size=(n, 3)),), 12, 120)
def lennard_jones(r):
    n = r.shape[0]
    energy = 0.0
    for i in range(n):
        for j in range(i):
            d2 = 0.0
            for k in range(3):
                d2 += (r[i, k] - r[j, k]) ** 2
            if d2 < 9.0:
                inverse = 1.0 / (d2 * d2 * d2 + 0.1)
                energy += 4.0 * (inverse * inverse - inverse)
    return energy


@program("physics", lambda rng, n: (1.0, 0.0, 0.01, n), 30, 5000)
def pendulum(angle, speed, dt, steps):
    for _ in range(steps):
        k1 = -math.sin(angle)
        half = angle + 0.5 * dt * speed
        k2 = -math.sin(half)
        angle += dt * speed + 0.5 * dt * dt * k1
        speed += dt * k2
    return angle, speed


@program("physics", lambda rng, n: (np.array([1.0, 1.0, 1.0]), n), 30, 3000)
def lorenz(state, steps):
    path = np.zeros((steps, 3))
    for t in range(steps):
        x, y, z = state
        change = np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        state = state + 0.005 * change
        path[t] = state
    return path


@program(
    "physics", lambda rng, n: (rng.choice(np.array([-1, 1]), (n, n)), rng.random((n, n))), 10, 120
)
def ising_sweep(spins, chance):
    n, m = spins.shape
    for i in range(n):
        for j in range(m):
            around = (
                spins[(i + 1) % n, j] + spins[i, (j + 1) % m] + spins[i - 1, j] + spins[i, j - 1]
            )
            change = 2 * spins[i, j] * around
            if change <= 0 or chance[i, j] < math.exp(-0.5 * change):
                spins[i, j] = -spins[i, j]
    return spins, spins.sum()


@program("physics", lambda rng, n: (rng.random((n, n)), rng.random((n, n)), 10), 10, 200)
def gray_scott(u, v, steps):
    for _ in range(steps):
        lu = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
        lv = np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1) - 4 * v
        uvv = u * v * v
        u = u + 0.16 * lu - uvv + 0.06 * (1 - u)
        v = v + 0.08 * lv + uvv - 0.122 * v
    return u, v


# --- images ---------------------------------------------------------------------------------------


@program("image", lambda rng, n: (rng.random((n, n)),), 12, 400)
def sobel(image):
    gx = (
        image[:-2, 2:] + 2 * image[1:-1, 2:] + image[2:, 2:]
        - image[:-2, :-2] - 2 * image[1:-1, :-2] - image[2:, :-2]
    )  # fmt: skip
    gy = (
        image[2:, :-2] + 2 * image[2:, 1:-1] + image[2:, 2:]
        - image[:-2, :-2] - 2 * image[:-2, 1:-1] - image[:-2, 2:]
    )  # fmt: skip
    return np.hypot(gx, gy) > 1.0, np.sqrt(gx**2 + gy**2)


@program("image", lambda rng, n: (rng.random((n, n)), rng.random((5, 5))), 12, 200)
def convolve_2d(image, kernel):
    k, m = kernel.shape
    rows, columns = image.shape[0] - k + 1, image.shape[1] - m + 1
    out = np.zeros((rows, columns))
    for i in range(k):
        for j in range(m):
            out += kernel[i, j] * image[i : i + rows, j : j + columns]
    return out


@program("image", lambda rng, n: (rng.integers(0, 256, (n, n)).astype(np.uint8),), 12, 256)
def equalize(image):
    counts = np.bincount(image.ravel(), minlength=256)
    total = counts.cumsum()
    table = (255 * total / total[-1]).astype(np.uint8)
    return table[image]


@program("image", lambda rng, n: (np.linspace(-2, 1, n), np.linspace(-1.5, 1.5, n), 50), 12, 100)
def mandelbrot(re, im, most):
    out = np.zeros((len(im), len(re)), dtype=np.int64)
    for i in range(len(im)):
        for j in range(len(re)):
            c = complex(re[j], im[i])
            z = 0j
            n = 0
            while abs(z) <= 2 and n < most:
                z = z * z + c
                n += 1
            out[i, j] = n
    return out


@program("image", lambda rng, n: (np.linspace(-1.5, 1.5, n), -0.4 + 0.6j, 30), 16, 300)
def julia(x, c, most):
    z = x[None, :] + 1j * x[:, None]
    count = np.zeros(z.shape, dtype=np.int64)
    for _ in range(most):
        inside = np.abs(z) <= 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count


@program("image", lambda rng, n: (rng.random((n, n)), 0.5), 14, 256)
def floyd_steinberg(image, level):
    image = image.copy()
    h, w = image.shape
    for y in range(h - 1):
        for x in range(1, w - 1):
            old = image[y, x]
            new = 1.0 if old > level else 0.0
            image[y, x] = new
            error = old - new
            image[y, x + 1] += error * 7 / 16
            image[y + 1, x - 1] += error * 3 / 16
            image[y + 1, x] += error * 5 / 16
            image[y + 1, x + 1] += error / 16
    return image


# --- statistics and learning ----------------------------------------------------------------------


@program(
    "statistics", lambda rng, n: (rng.normal(size=(n, 2)), rng.normal(size=(4, 2)), 5), 30, 3000
)
def k_means(points, centers, steps):
    centers = centers.copy()
    for _ in range(steps):
        distance = ((points[:, None] - centers[None]) ** 2).sum(-1)
        nearest = distance.argmin(1)
        for k in range(len(centers)):
            mine = nearest == k
            if mine.any():
                centers[k] = points[mine].mean(0)
    return centers


@program("statistics", lambda rng, n: (rng.normal(size=(n, 5)), rng.random(n) < 0.5, 30), 20, 2000)
def logistic_regression(x, y, steps):
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-x @ w))
        w -= 0.1 * x.T @ (p - y) / len(y)
    return w


@program("statistics", lambda rng, n: (rng.normal(size=(n, 4)),), 20, 20_000)
def correlation(x):
    centred = x - x.mean(axis=0)
    covariance = centred.T @ centred / (len(x) - 1)
    deviation = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviation, deviation)


@program("statistics", lambda rng, n: (rng.normal(size=n), 10), 30, 20_000)
def moving_average(x, width):
    total = np.cumsum(x)
    out = total[width - 1 :].copy()
    out[1:] -= total[:-width]
    return out / width


@program("statistics", lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(n, 3))), 12, 500)
def pairwise_distances(x, y):
    d = ((x[:, None] - y[None]) ** 2).sum(-1)
    np.fill_diagonal(d, np.inf)
    return np.sqrt(d).min(1)


@program("statistics", lambda rng, n: (rng.normal(size=n),), 30, 20_000)
def running_moments(x):
    mean, m2, n = 0.0, 0.0, 0
    for value in x:
        n += 1
        delta = value - mean
        mean += delta / n
        m2 += delta * (value - mean)
    return mean, m2 / (n - 1)


@program("statistics", lambda rng, n: (rng.normal(size=(n, 10)), rng.integers(0, 10, n)), 12, 3000)
def softmax_cross_entropy(logits, labels):
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1))
    return (log_sum - shifted[np.arange(len(labels)), labels]).mean()


@program("statistics", lambda rng, n: (rng.random(n), rng.random(n)), 100, 200_000)
def monte_carlo_pi(x, y):
    return 4 * np.count_nonzero(x * x + y * y < 1) / len(x)


@program(
    "statistics",
    lambda rng, n: (
        rng.random(n) * 50 + 50,
        rng.random(n) * 50 + 50,
        rng.random(n) * 2 + 0.1,
        0.02,
        0.3,
    ),
    20,
    50_000,
)
def black_scholes(spot, strike, time, rate, volatility):
    def normal_cdf(x):
        t = 1 / (1 + 0.2316419 * np.abs(x))
        poly = t * (
            0.31938153
            + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)))
        )
        tail = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * poly
        return np.where(x >= 0, 1 - tail, tail)

    root = volatility * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * time) / root
    d2 = d1 - root
    return spot * normal_cdf(d1) - strike * np.exp(-rate * time) * normal_cdf(d2)


# --- integers -------------------------------------------------------------------------------------


@program("integers", lambda rng, n: (rng.integers(0, 256, n).astype(np.uint8),), 20, 2000)
def crc32(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc ^ int(byte)
        for _ in range(8):
            if crc & 1:
                crc = (crc >> 1) ^ 0xEDB88320
            else:
                crc = crc >> 1
    return crc ^ 0xFFFFFFFF


@program("integers", lambda rng, n: (n,), 40, 20_000)
def sieve(n):
    is_prime = np.ones(n + 1, dtype=np.bool_)
    is_prime[:2] = False
    i = 2
    while i * i <= n:
        if is_prime[i]:
            is_prime[i * i :: i] = False
        i += 1
    return is_prime.sum()


@program("integers", lambda rng, n: (n,), 30, 2000)
def collatz(limit):
    best, longest = 0, 0
    for start in range(1, limit):
        n, steps = start, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        if steps > longest:
            best, longest = start, steps
    return best, longest


@program("integers", lambda rng, n: (rng.integers(0, 1000, n),), 15, 300)
def insertion_sort(x):
    x = x.copy()
    for i in range(1, len(x)):
        value = x[i]
        j = i - 1
        while j >= 0 and x[j] > value:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = value
    return x


@program(
    "integers",
    lambda rng, n: (np.sort(rng.integers(0, 10 * n, n)), rng.integers(0, 10 * n, n)),
    20,
    2000,
)
def binary_searches(table, wanted):
    found = np.zeros(len(wanted), dtype=np.int64)
    for k in range(len(wanted)):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) // 2
            if table[middle] < wanted[k]:
                low = middle + 1
            else:
                high = middle
        found[k] = low
    return found


# --- sparse and irregular -------------------------------------------------------------------------


def _csr(rng, n):
    counts = rng.integers(0, 8, n)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return (
        rng.normal(size=pointers[-1]),
        rng.integers(0, n, pointers[-1]),
        pointers,
        rng.normal(size=n),
    )


@program("sparse", _csr, 15, 2000)
def csr_product(values, columns, pointers, x):
    y = np.zeros(len(pointers) - 1)
    for i in range(len(y)):
        total = 0.0
        for k in range(pointers[i], pointers[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total
    return y


@program(
    "sparse",
    lambda rng, n: (
        rng.normal(size=5 * n),
        rng.integers(0, n, 5 * n),
        rng.integers(0, n, 5 * n),
        rng.normal(size=n),
    ),
    12,
    5000,
)
def coo_product(values, rows, columns, x):
    y = np.zeros(len(x))
    np.add.at(y, rows, values * x[columns])
    return y


@program(
    "sparse", lambda rng, n: (rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n), n, 20), 15, 3000
)
def page_rank(source, target, n, steps):
    out = np.maximum(np.bincount(source, minlength=n), 1)
    rank = np.full(n, 1.0 / n)
    for _ in range(steps):
        new = np.full(n, 0.15 / n)
        np.add.at(new, target, 0.85 * rank[source] / out[source])
        rank = new
    return rank


# --- signals --------------------------------------------------------------------------------------


@program("signal", lambda rng, n: (rng.normal(size=n),), 16, 4096)
def power_spectrum(x):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(len(x)) / len(x))
    spectrum = np.fft.rfft(x * window)
    return np.abs(spectrum) ** 2 / len(x)


@program("signal", lambda rng, n: (rng.normal(size=n), 0.3, 0.2, 0.1), 20, 20_000)
def biquad(x, b0, b1, a1):
    y = np.zeros_like(x)
    y[0] = b0 * x[0]
    for n in range(1, len(x)):
        y[n] = b0 * x[n] + b1 * x[n - 1] - a1 * y[n - 1]
    return y


assert len(PROGRAMS) >= 50
