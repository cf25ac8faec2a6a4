"""Statistics: hidden states, posteriors, mixtures, regressions, and rankings."""

from __future__ import annotations

import numpy as np

from benchmark.numpy_programs.program import Programs

PROGRAMS = Programs()
program = PROGRAMS.program


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log_sum_exp(x, axis):
    top = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + np.squeeze(top, axis=axis)


# --- hidden states --------------------------------------------------------------------------------


def _chain(rng, n):
    states, symbols = 8, 12
    return (
        rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states),
        rng.dirichlet(np.ones(symbols), states), rng.integers(0, symbols, n),
    )  # fmt: skip


@program("hidden states", _chain, 12, 1000)
def hmm_forward_backward(start, transition, emission, seen):
    """Baum and Welch's smoothed probabilities, and the counts of transitions."""
    n, states = len(seen), len(start)
    alpha, beta = np.zeros((n, states)), np.ones((n, states))
    scale = np.zeros(n)
    alpha[0] = start * emission[:, seen[0]]
    scale[0] = alpha[0].sum()
    alpha[0] /= scale[0]
    for t in range(1, n):
        alpha[t] = (alpha[t - 1] @ transition) * emission[:, seen[t]]
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
    for t in range(n - 2, -1, -1):
        beta[t] = transition @ (emission[:, seen[t + 1]] * beta[t + 1]) / scale[t + 1]
    counts = np.zeros_like(transition)
    for t in range(n - 1):
        after = emission[:, seen[t + 1]] * beta[t + 1] / scale[t + 1]
        counts += np.outer(alpha[t], after) * transition
    return np.log(scale).sum(), alpha * beta, counts


@program(
    "hidden states",
    lambda rng, n: (*[np.log(a) for a in _chain(rng, 2)[:3]], rng.integers(0, 12, (n, 16))),
    10,
    300,
    numba=False,
)
def viterbi_batch(start, transition, emission, seen):
    """The likeliest states of 16 sequences at once."""
    n, batch = seen.shape
    score = start + emission.T[seen[0]]
    back = np.zeros((n, batch, len(start)), dtype=np.int64)
    for t in range(1, n):
        through = score[:, :, None] + transition
        back[t] = through.argmax(axis=1)
        score = through.max(axis=1) + emission.T[seen[t]]
    path = np.zeros((n, batch), dtype=np.int64)
    path[-1] = score.argmax(axis=1)
    for t in range(n - 1, 0, -1):
        path[t - 1] = back[t, np.arange(batch), path[t]]
    return score.max(axis=1), path


def _kalman(rng, n):
    dt = 0.1
    move = np.array([[1, 0, dt, 0], [0, 1, 0, dt], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    see = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    return move, see, 0.01 * np.eye(4), 0.1 * np.eye(2), rng.normal(size=(n, 2)).cumsum(axis=0)


@program("hidden states", _kalman, 8, 200)
def kalman_smoother(move, see, process, noise, seen):
    """Kalman's filter, then the smoother of Rauch and others."""
    n, d = len(seen), len(move)
    mean, cov = np.zeros((n, d)), np.zeros((n, d, d))
    ahead, ahead_cov = np.zeros((n, d)), np.zeros((n, d, d))
    m, p = np.zeros(d), 10 * np.eye(d)
    log_likelihood = 0.0
    for t in range(n):
        m = move @ m
        p = move @ p @ move.T + process
        ahead[t], ahead_cov[t] = m, p
        miss = seen[t] - see @ m
        s = see @ p @ see.T + noise
        gain = np.linalg.solve(s, see @ p).T
        m = m + gain @ miss
        p = p - gain @ s @ gain.T
        mean[t], cov[t] = m, p
        log_likelihood -= 0.5 * (miss @ np.linalg.solve(s, miss) + np.log(np.linalg.det(s)))
    for t in range(n - 2, -1, -1):
        back = np.linalg.solve(ahead_cov[t + 1], move @ cov[t]).T
        mean[t] += back @ (mean[t + 1] - ahead[t + 1])
        cov[t] += back @ (cov[t + 1] - ahead_cov[t + 1]) @ back.T
    return log_likelihood, mean, cov


def _particles(rng, n):
    steps = 50
    seen = rng.normal(size=steps) * np.exp(rng.normal(size=steps).cumsum() * 0.1)
    return seen, rng.normal(size=(steps, n)), rng.random(steps), 0.95, 0.3


@program("hidden states", _particles, 12, 2000, numba=False)
def particle_filter(seen, normals, uniforms, keep, spread):
    """Stochastic volatility with systematic resampling."""
    steps, n = normals.shape
    h = spread * normals[0]
    total, means = 0.0, np.zeros(steps)
    for t in range(steps):
        h = keep * h + spread * normals[t]
        log_w = -0.5 * (h + seen[t] ** 2 * np.exp(-h))
        top = log_w.max()
        w = np.exp(log_w - top)
        total += top + np.log(w.mean())
        w /= w.sum()
        means[t] = w @ h
        at = (np.arange(n) + uniforms[t]) / n
        h = h[np.minimum(np.searchsorted(np.cumsum(w), at), n - 1)]
    return total, means


# --- posteriors -----------------------------------------------------------------------------------


def _gp(rng, n):
    x = rng.uniform(0, 10, (n, 2))
    return np.array([0.1, 0.2, -1.0]), x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=n)


def gp_loss(theta, x, y):
    variance, length, noise = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    k = variance * np.exp(-0.5 * squares / length**2) + noise * np.eye(len(x))
    low = np.linalg.cholesky(k)
    return 0.5 * y @ np.linalg.solve(k, y) + np.log(np.diag(low)).sum()


def _gp_derived(value_and_grad):
    def step(theta, x, y):
        return value_and_grad(gp_loss)(theta, x, y)

    return step


@program("posteriors", _gp, 10, 250, numba=False, derived=_gp_derived)
def gaussian_process(theta, x, y):
    """The marginal likelihood of a Gaussian process, and its gradient."""
    variance, length, noise = np.exp(theta)
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    smooth = variance * np.exp(-0.5 * squares / length**2)
    k = smooth + noise * np.eye(len(x))
    low = np.linalg.cholesky(k)
    inverse = np.linalg.inv(k)
    alpha = inverse @ y
    by_k = 0.5 * (inverse - np.outer(alpha, alpha))
    loss = 0.5 * y @ alpha + np.log(np.diag(low)).sum()
    gradient = np.array([
        (by_k * smooth).sum(), (by_k * smooth * squares).sum() / length**2, noise * np.trace(by_k)
    ])  # fmt: skip
    return loss, gradient


def _hmc(rng, n):
    x = rng.normal(size=(n, 10))
    y = (rng.random(n) < 0.5) * 1.0
    return np.zeros(10), rng.normal(size=10), x, y, rng.random(), 0.02, 20


def energy(q, x, y):
    logits = x @ q
    return np.logaddexp(0, logits).sum() - y @ logits + 0.5 * q @ q


def _hmc_derived(value_and_grad):
    def hmc_derived(q, p, x, y, chance, size, steps):
        first, g = value_and_grad(energy)(q, x, y)
        before, start = first + 0.5 * p @ p, q
        for _ in range(steps):
            p = p - 0.5 * size * g
            q = q + size * p
            value, g = value_and_grad(energy)(q, x, y)
            p = p - 0.5 * size * g
        accept = np.log(chance) < before - value - 0.5 * p @ p
        return np.where(accept, q, start), accept

    return hmc_derived


@program("posteriors", _hmc, 12, 2000, derived=_hmc_derived)
def hmc(q, p, x, y, chance, size, steps):
    """A trajectory of leapfrog steps over a logistic regression, and Metropolis' choice."""
    start = q
    before = np.logaddexp(0, x @ q).sum() - y @ (x @ q) + 0.5 * q @ q + 0.5 * p @ p
    for _ in range(steps):
        p = p - 0.5 * size * ((1 / (1 + np.exp(-(x @ q))) - y) @ x + q)
        q = q + size * p
        p = p - 0.5 * size * ((1 / (1 + np.exp(-(x @ q))) - y) @ x + q)
    after = np.logaddexp(0, x @ q).sum() - y @ (x @ q) + 0.5 * q @ q + 0.5 * p @ p
    accept = np.log(chance) < before - after
    return np.where(accept, q, start), accept


def _variational(rng, n):
    x = rng.normal(size=(n, 20))
    y = rng.poisson(np.exp(0.1 * x @ rng.normal(size=20))).astype(float)
    return (np.zeros(20), np.full(20, -2.0)), x, y, rng.normal(size=(8, 20)), 1e-4


def evidence(q, x, y, noise):
    mean, log_spread = q
    w = mean + np.exp(log_spread) * noise
    rate = w @ x.T
    likelihood = (y * rate - np.exp(rate)).sum(axis=1).mean()
    return likelihood - 0.5 * (w**2).sum(axis=1).mean() + log_spread.sum()


def _variational_derived(value_and_grad):
    def variational_derived(q, x, y, noise, rate):
        value, g = value_and_grad(evidence)(q, x, y, noise)
        return value, tuple(a + rate * b for a, b in zip(q, g, strict=True))

    return variational_derived


@program("posteriors", _variational, 12, 10_000, numba=False, derived=_variational_derived)
def variational_poisson(q, x, y, noise, rate):
    """A step of variational inference of a Poisson regression, by reparametrized draws."""
    mean, log_spread = q
    w = mean + np.exp(log_spread) * noise
    logits = w @ x.T
    rates = np.exp(logits)
    value = (y * logits - rates).sum(axis=1).mean()
    value += -0.5 * (w**2).sum(axis=1).mean() + log_spread.sum()
    by_w = ((y - rates) @ x - w) / len(w)
    by_spread = (by_w * noise).sum(axis=0) * np.exp(log_spread) + 1
    return value, (mean + rate * by_w.sum(axis=0), log_spread + rate * by_spread)


# --- mixtures, clusters, components ---------------------------------------------------------------


def _points(rng, n, dimensions=3, groups=5):
    return rng.normal(size=(n, dimensions)) + 3 * rng.integers(0, groups, (n, 1))


def _mixture(rng, n):
    x = _points(rng, n)
    return x, x[:5].copy(), np.tile(np.eye(3), (5, 1, 1)), np.full(5, 0.2)


@program("clusters", _mixture, 20, 3000, numba=False)
def mixture_em(x, means, covs, weights):
    """A step of expectation and maximization of a Gaussian mixture."""
    centred = x[None] - means[:, None]
    inverse = np.linalg.inv(covs)
    far = np.einsum("kni,kij,knj->kn", centred, inverse, centred)
    log_p = np.log(weights)[:, None] - 0.5 * (far + np.log(np.linalg.det(covs))[:, None])
    log_p = log_p - 0.5 * x.shape[1] * np.log(2 * np.pi)
    total = log_sum_exp(log_p, 0)
    share = np.exp(log_p - total)
    counts = share.sum(axis=1)
    means = share @ x / counts[:, None]
    centred = x[None] - means[:, None]
    covs = np.einsum("kn,kni,knj->kij", share, centred, centred) / counts[:, None, None]
    return total.mean(), means, covs + 1e-6 * np.eye(x.shape[1]), counts / len(x)


@program("clusters", lambda rng, n: (_points(rng, n), 8, 10), 30, 3000, numba=False)
def k_means_lloyd(x, k, steps):
    centres = x[np.linspace(0, len(x) - 1, k).astype(int)]
    for _ in range(steps):
        far = (x**2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres**2).sum(axis=1)
        labels = np.argmin(far, axis=1)
        counts = np.bincount(labels, minlength=k)
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, x)
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    inertia = ((x - centres[labels]) ** 2).sum()
    return centres, labels, inertia


@program("clusters", lambda rng, n: (_points(rng, n, 30), rng.normal(size=30), 4, 30), 40, 2000)
def pca_by_power(x, start, components, steps):
    """Principal components one by one, each by power iteration on the deflated data."""
    mean = np.zeros(x.shape[1])
    for j in range(x.shape[1]):
        mean[j] = x[:, j].mean()
    left = x - mean
    axes = np.zeros((components, x.shape[1]))
    spread = np.zeros(components)
    for k in range(components):
        v = start / np.sqrt((start**2).sum())
        for _ in range(steps):
            v = left.T @ (left @ v)
            v = v / np.sqrt((v**2).sum())
        scores = left @ v
        spread[k] = (scores**2).sum() / (len(x) - 1)
        axes[k] = v
        left = left - np.outer(scores, v)
    return axes, spread


@program("clusters", lambda rng, n: (rng.random((n, 3)), rng.random((n, 3)), 0.05, 20), 9, 250)
def sinkhorn(x, y, blur, steps):
    """The cost of entropic optimal transport between two clouds of points."""
    n, m = len(x), len(y)
    cost = np.zeros((n, m))
    for d in range(x.shape[1]):
        cost += (x[:, d : d + 1] - y[:, d]) ** 2
    kernel = np.exp(-cost / blur)
    u, v = np.ones(n) / n, np.ones(m) / m
    for _ in range(steps):
        u = (1 / n) / (kernel @ v)
        v = (1 / m) / (kernel.T @ u)
    plan = u[:, None] * kernel * v
    return (plan * cost).sum(), plan.sum(axis=0)


# --- regressions ----------------------------------------------------------------------------------


def _regression(rng, n):
    x = rng.normal(size=(n, n // 2))
    return x, x[:, :3] @ np.array([1.0, -2.0, 3.0]) + rng.normal(size=n), 0.1, 10


@program("regressions", _regression, 12, 200)
def lasso(x, y, penalty, sweeps):
    """Coordinate descent with soft thresholds."""
    n, d = x.shape
    w = np.zeros(d)
    left = y.copy()
    squares = (x**2).sum(axis=0) / n
    for _ in range(sweeps):
        for j in range(d):
            rho = x[:, j] @ left / n + squares[j] * w[j]
            new = np.sign(rho) * max(abs(rho) - penalty, 0.0) / squares[j]
            if new != w[j]:
                left += x[:, j] * (w[j] - new)
                w[j] = new
    return w, 0.5 * (left**2).mean() + penalty * np.abs(w).sum()


@program(
    "regressions",
    lambda rng, n: (rng.normal(size=(n, 20)), np.sign(rng.normal(size=n)), 0.01),
    20,
    3000,
)
def svm_subgradient(x, y, decay):
    """Pegasos: one pass of subgradients, the step falling as 1 / t, and the average weights."""
    n, d = x.shape
    w, average = np.zeros(d), np.zeros(d)
    for t in range(n):
        rate = 1 / (decay * (t + 1))
        margin = y[t] * (w @ x[t])
        w = (1 - rate * decay) * w
        if margin < 1:
            w = w + rate * y[t] * x[t]
        norm = np.sqrt((w * w).sum())
        w = w * min(1.0, 1 / (np.sqrt(decay) * norm + 1e-12))
        average += (w - average) / (t + 1)
    hinge = np.maximum(0, 1 - y * (x @ average)).mean()
    return average, 0.5 * decay * (average**2).sum() + hinge


@program(
    "regressions",
    lambda rng, n: (rng.normal(size=(n, 20)), (rng.random(n) < 0.4) * 1.0, 1e-3, 1e-8),
    40,
    3000,
)
def logistic_newton(x, y, decay, enough):
    """Newton's method until the gradient is small."""
    n, d = x.shape
    w = np.zeros(d)
    for k in range(20):  # noqa: B007 (it is returned)
        p = 1 / (1 + np.exp(-(x @ w)))
        g = x.T @ (p - y) / n + decay * w
        h = (x.T * (p * (1 - p))) @ x / n + decay * np.eye(d)
        w = w - np.linalg.solve(h, g)
        if np.abs(g).max() < enough:
            break
    return w, k


def _curve(rng, n):
    x = np.sort(rng.random(n))
    return x, np.sin(6 * x) + 0.1 * rng.normal(size=n), np.linspace(0, 1, 12), 1e-3


def basis(x, knots):
    """The cubic B-splines of x, by the recursion of Cox and de Boor."""
    t = np.concatenate((np.zeros(3), knots, np.ones(3)))
    b = np.where((x[:, None] >= t[:-1]) & (x[:, None] < t[1:]), 1.0, 0.0)
    for k in range(1, 4):
        count = len(t) - 1 - k
        low, high = t[k : k + count] - t[:count], t[k + 1 :] - t[1 : count + 1]
        left = (x[:, None] - t[:count]) / np.where(low > 0, low, 1.0)
        right = (t[k + 1 :] - x[:, None]) / np.where(high > 0, high, 1.0)
        b = left * b[:, :count] + right * b[:, 1 : count + 1]
    return b


@program("regressions", _curve, 40, 5000, numba=False)
def spline_fit(x, y, knots, smooth):
    """A smoothed spline with a penalty on second differences, and its cross-validated error."""
    b = basis(x, knots)
    second = np.diff(np.eye(b.shape[1]), n=2, axis=0)
    gram = b.T @ b + smooth * second.T @ second
    weights = np.linalg.solve(gram, b.T @ y)
    leverage = np.einsum("ij,ji->i", b, np.linalg.solve(gram, b.T))
    return weights, (((y - b @ weights) / (1 - leverage)) ** 2).mean()


# --- sequences without labels of time, and rankings -----------------------------------------------


def _ctc(rng, n):
    x = rng.normal(size=(2 * n, 20))
    return x - log_sum_exp(x, 1)[:, None], rng.integers(1, 20, n // 2)


@program("hidden states", _ctc, 8, 150, numba=False)
def ctc_forward(log_p, labels):
    """The negative log likelihood of labels by connectionist temporal classification."""
    length = 2 * len(labels) + 1
    extended = np.zeros(length, dtype=np.int64)
    extended[1::2] = labels
    skips = np.zeros(length, dtype=bool)
    skips[3::2] = labels[1:] != labels[:-1]
    alpha = np.full(length, -np.inf)
    alpha[:2] = log_p[0, extended[:2]]
    for t in range(1, len(log_p)):
        one = np.concatenate(([-np.inf], alpha[:-1]))
        two = np.where(skips, np.concatenate(([-np.inf, -np.inf], alpha[:-2])), -np.inf)
        alpha = np.logaddexp(np.logaddexp(alpha, one), two) + log_p[t, extended]
    return -np.logaddexp(alpha[-1], alpha[-2])


def _links(rng, n):
    return rng.integers(0, n, 8 * n), rng.integers(0, n, 8 * n), n, 0.85, 1e-10


@program("rankings", _links, 20, 3000, numba=False)
def page_rank_until(source, target, n, damping, enough):
    """PageRank with dangling pages, until the ranks change no more."""
    out = np.bincount(source, minlength=n)
    share = np.where(out > 0, 1 / np.maximum(out, 1), 0.0)
    rank, steps, moved = np.full(n, 1 / n), 0, 1.0
    while moved > enough and steps < 100:
        dangling = rank[out == 0].sum()
        new = damping * np.bincount(target, weights=(rank * share)[source], minlength=n)
        new += (1 - damping + damping * dangling) / n
        moved = np.abs(new - rank).sum()
        rank = new
        steps += 1
    return rank, np.argsort(-rank)[:10], steps
