"""Forms for JAX of programs, or of functions that they call, which numpy writes in place.

Loops are those of ``jax.lax``, writes are ``.at``; each function gives what that of its name gives.
"""

# mypy: ignore-errors

from __future__ import annotations

import jax
import jax.numpy as np
from jax import lax

# --- learning -------------------------------------------------------------------------------------


def lstm_loss(p, h, c, text, targets):
    wx, wh, b, wy, by = p

    def step(state, each):
        h, c = state
        letters, wanted = each
        a = wx[letters] + h @ wh + b
        i, f, o, g = np.split(a, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * np.tanh(g)
        h = jax.nn.sigmoid(o) * np.tanh(c)
        log_p = jax.nn.log_softmax(h @ wy + by)
        return (h, c), -log_p[np.arange(len(wanted)), wanted].mean()

    return lax.scan(step, (h, c), (text, targets))[1].sum()


def matrix_factorization(users, items, who, what, ratings, rate, decay):
    def step(k, state):
        users, items, total = state
        u, i = who[k], what[k]
        before, item = users[u], items[i]
        error = ratings[k] - before @ item
        users = users.at[u].add(rate * (error * item - decay * before))
        items = items.at[i].add(rate * (error * before - decay * item))
        return users, items, total + error * error

    users, items, total = lax.fori_loop(0, len(ratings), step, (users, items, 0.0))
    return np.sqrt(total / len(ratings)), users, items


def neighbours(h, source, target, scale):
    out = np.zeros_like(h).at[target].add((h * scale)[source])
    return (out + h * scale) * scale


def graph_loss(weights, features, source, target, labels):
    n = len(features)
    scale = 1 / np.sqrt(np.bincount(target, length=n) + 1.0)[:, None]
    h = jax.nn.relu(neighbours(features @ weights[0], source, target, scale))
    log_p = jax.nn.log_softmax(neighbours(h @ weights[1], source, target, scale))
    return -log_p[np.arange(n), labels].mean()


def q_learning(q, chance, explore, rate, discount):
    n = q.shape[0]

    def step(state, u):
        q, row, column, total = state
        greedy = np.argmax(q[row, column])
        action = np.where(u[0] < explore, (u[1] * 4).astype(greedy.dtype), greedy)
        r = np.clip(row + np.array([-1, 1, 0, 0])[action], 0, n - 1)
        c = np.clip(column + np.array([0, 0, -1, 1])[action], 0, n - 1)
        done = (r == n - 1) & (c == n - 1)
        reward = np.where(done, 1.0, -0.01)
        best = np.where(done, 0.0, q[r, c].max())
        miss = reward + discount * best - q[row, column, action]
        q = q.at[row, column, action].add(rate * miss)
        return (q, np.where(done, 0, r), np.where(done, 0, c), total + reward), None

    zero = np.zeros((), np.int64)
    (q, _, _, total), _ = lax.scan(step, (q, zero, zero, 0.0), chance)
    return q, total


# --- inference ------------------------------------------------------------------------------------


def hmm_forward_backward(start, transition, emission, seen):
    likely = emission.T[seen]

    def forward(alpha, e):
        a = (alpha @ transition) * e
        scale = a.sum()
        return a / scale, (a / scale, scale)

    first = start * likely[0]
    scale0 = first.sum()
    _, (alphas, scales) = lax.scan(forward, first / scale0, likely[1:])
    alpha = np.concatenate([first[None] / scale0, alphas])

    def backward(beta, each):
        e, scale = each
        after = e * beta / scale
        beta = transition @ after
        return beta, (beta, after)

    ones = np.ones(len(start))
    _, (betas, afters) = lax.scan(backward, ones, (likely[1:], scales), reverse=True)
    beta = np.concatenate([betas, ones[None]])
    total = np.log(scale0) + np.log(scales).sum()
    return total, alpha * beta, (alpha[:-1].T @ afters) * transition


def viterbi_batch(start, transition, emission, seen):
    def forward(score, symbols):
        through = score[:, :, None] + transition
        return through.max(axis=1) + emission.T[symbols], through.argmax(axis=1)

    score, back = lax.scan(forward, start + emission.T[seen[0]], seen[1:])
    last = score.argmax(axis=1)

    def trace(state, row):
        state = row[np.arange(len(state)), state]
        return state, state

    _, path = lax.scan(trace, last, back, reverse=True)
    return score.max(axis=1), np.concatenate([path, last[None]])


def kalman_smoother(move, see, process, noise, seen):
    d = len(move)

    def forward(state, y):
        m, p = state
        m, p = move @ m, move @ p @ move.T + process
        ahead = m, p
        miss, s = y - see @ m, see @ p @ see.T + noise
        gain = np.linalg.solve(s, see @ p).T
        m, p = m + gain @ miss, p - gain @ s @ gain.T
        fit = -0.5 * (miss @ np.linalg.solve(s, miss) + np.log(np.linalg.det(s)))
        return (m, p), (m, p, *ahead, fit)

    _, (means, covs, ahead, ahead_cov, fits) = lax.scan(
        forward, (np.zeros(d), 10 * np.eye(d)), seen
    )

    def backward(state, each):
        m, p = state
        mean, cov, next_mean, next_cov = each
        back = np.linalg.solve(next_cov, move @ cov).T
        m, p = mean + back @ (m - next_mean), cov + back @ (p - next_cov) @ back.T
        return (m, p), (m, p)

    last = means[-1], covs[-1]
    _, (m, p) = lax.scan(
        backward, last, (means[:-1], covs[:-1], ahead[1:], ahead_cov[1:]), reverse=True
    )
    join = np.concatenate
    return fits.sum(), join([m, last[0][None]]), join([p, last[1][None]])


def particle_filter(seen, normals, uniforms, keep, spread):
    n = normals.shape[1]

    def step(h, each):
        y, z, u = each
        h = keep * h + spread * z
        log_w = -0.5 * (h + y**2 * np.exp(-h))
        top = log_w.max()
        w = np.exp(log_w - top)
        fit = top + np.log(w.mean())
        w = w / w.sum()
        at = (np.arange(n) + u) / n
        picked = np.minimum(np.searchsorted(np.cumsum(w), at), n - 1)
        return h[picked], (fit, w @ h)

    _, (fits, means) = lax.scan(step, spread * normals[0], (seen, normals, uniforms))
    return fits.sum(), means


def k_means_lloyd(x, k, steps):
    def labelled(centres):
        far = (x**2).sum(axis=1)[:, None] - 2 * x @ centres.T + (centres**2).sum(axis=1)
        return np.argmin(far, axis=1)

    def step(_, state):
        centres, _ = state
        labels = labelled(centres)
        counts = np.bincount(labels, length=k)
        sums = np.zeros_like(centres).at[labels].add(x)
        means = sums / np.maximum(counts, 1)[:, None]
        return np.where(counts[:, None] > 0, means, centres), labels

    first = x[np.linspace(0, len(x) - 1, k).astype(int)]
    centres, labels = lax.fori_loop(0, steps, step, (first, labelled(first)))
    return centres, labels, ((x - centres[labels]) ** 2).sum()


def pca_by_power(x, start, components, steps):
    def component(left, _):
        def step(_, v):
            v = left.T @ (left @ v)
            return v / np.sqrt((v**2).sum())

        v = lax.fori_loop(0, steps, step, start / np.sqrt((start**2).sum()))
        scores = left @ v
        return left - np.outer(scores, v), (v, (scores**2).sum() / (len(x) - 1))

    return lax.scan(component, x - x.mean(axis=0), None, length=components)[1]


def sinkhorn(x, y, blur, steps):
    n, m = len(x), len(y)
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=2)
    kernel = np.exp(-cost / blur)

    def step(_, state):
        u = (1 / n) / (kernel @ state[1])
        return u, (1 / m) / (kernel.T @ u)

    u, v = lax.fori_loop(0, steps, step, (np.ones(n) / n, np.ones(m) / m))
    plan = u[:, None] * kernel * v
    return (plan * cost).sum(), plan.sum(axis=0)


def lasso(x, y, penalty, sweeps):
    n, d = x.shape
    squares = (x**2).sum(axis=0) / n
    columns = x.T

    def step(k, state):
        w, left = state
        j = k % d
        rho = columns[j] @ left / n + squares[j] * w[j]
        new = np.sign(rho) * np.maximum(np.abs(rho) - penalty, 0.0) / squares[j]
        return w.at[j].set(new), left + columns[j] * (w[j] - new)

    w, left = lax.fori_loop(0, sweeps * d, step, (np.zeros(d), y))
    return w, 0.5 * (left**2).mean() + penalty * np.abs(w).sum()


def svm_subgradient(x, y, decay):
    n, d = x.shape

    def step(t, state):
        w, average = state
        rate = 1 / (decay * (t + 1))
        margin = y[t] * (w @ x[t])
        w = (1 - rate * decay) * w + np.where(margin < 1, rate * y[t], 0.0) * x[t]
        w = w * np.minimum(1.0, 1 / (np.sqrt(decay) * np.sqrt((w * w).sum()) + 1e-12))
        return w, average + (w - average) / (t + 1)

    _, average = lax.fori_loop(0, n, step, (np.zeros(d), np.zeros(d)))
    hinge = np.maximum(0, 1 - y * (x @ average)).mean()
    return average, 0.5 * decay * (average**2).sum() + hinge


def logistic_newton(x, y, decay, enough):
    n, d = x.shape

    def step(state):
        w, k, _ = state
        p = jax.nn.sigmoid(x @ w)
        g = x.T @ (p - y) / n + decay * w
        h = (x.T * (p * (1 - p))) @ x / n + decay * np.eye(d)
        return w - np.linalg.solve(h, g), k + 1, np.abs(g).max()

    w, k, _ = lax.while_loop(
        lambda s: (s[1] < 20) & (s[2] >= enough), step, (np.zeros(d), 0, np.inf)
    )
    return w, k - 1


def ctc_forward(log_p, labels):
    length = 2 * len(labels) + 1
    extended = np.zeros(length, dtype=int).at[1::2].set(labels)
    skips = np.zeros(length, dtype=bool).at[3::2].set(labels[1:] != labels[:-1])
    none = np.array([-np.inf, -np.inf])

    def step(alpha, row):
        one = np.concatenate([none[:1], alpha[:-1]])
        two = np.where(skips, np.concatenate([none, alpha[:-2]]), -np.inf)
        return np.logaddexp(np.logaddexp(alpha, one), two) + row[extended], None

    first = np.full(length, -np.inf).at[:2].set(log_p[0, extended[:2]])
    alpha, _ = lax.scan(step, first, log_p[1:])
    return -np.logaddexp(alpha[-1], alpha[-2])


def page_rank_until(source, target, n, damping, enough):
    out = np.bincount(source, length=n)
    share = np.where(out > 0, 1 / np.maximum(out, 1), 0.0)

    def step(state):
        rank, _, steps = state
        dangling = np.where(out == 0, rank, 0.0).sum()
        new = damping * np.zeros(n).at[target].add((rank * share)[source])
        new = new + (1 - damping + damping * dangling) / n
        return new, np.abs(new - rank).sum(), steps + 1

    rank, _, steps = lax.while_loop(
        lambda s: (s[1] > enough) & (s[2] < 100), step, (np.full(n, 1 / n), 1.0, 0)
    )
    return rank, np.argsort(-rank)[:10], steps


# --- simulation -----------------------------------------------------------------------------------


def heat_adi(u, r, steps):
    def coefficient(c, _):
        c = -r / (1 + 2 * r + r * c)
        return c, c

    c = lax.scan(coefficient, 0.0, None, length=len(u))[1]
    scale = 1 / (1 + 2 * r + r * np.concatenate([np.zeros(1), c[:-1]]))

    def half(_, u):
        rhs = (1 - 2 * r) * u
        rhs = rhs.at[:, 1:].add(r * u[:, :-1]).at[:, :-1].add(r * u[:, 1:])

        def down(before, each):
            row, s = each
            now = (row + r * before) * s
            return now, now

        def up(after, each):
            row, k = each
            now = row - k * after
            return now, now

        zero = np.zeros(len(u))
        d = lax.scan(down, zero, (rhs, scale))[1]
        return lax.scan(up, zero, (d, c), reverse=True)[1].T

    return lax.fori_loop(0, 2 * steps, half, u)


def wave_absorbed(speed, steps, ratio):
    n = len(speed)
    c = ratio * speed

    def step(state, t):
        before, now = state
        middle = 2 * now[1:-1] - before[1:-1] + c[1:-1] ** 2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        first = now[1] + (c[0] - 1) / (c[0] + 1) * (middle[0] - now[0])
        last = now[-2] + (c[-1] - 1) / (c[-1] + 1) * (middle[-1] - now[-1])
        after = np.concatenate([first[None], middle, last[None]])
        after = after.at[n // 3].add(np.exp(-(((t - 30) / 10) ** 2)))
        return (now, after), after[-1]

    (_, now), record = lax.scan(step, (np.zeros(n), np.zeros(n)), np.arange(steps))
    return now, record


def cavity_flow(u, v, p, dt, nu, rho, steps, sweeps):
    h = 2.0 / (len(u) - 1)

    def sweep(b):
        def once(_, q):
            inside = 0.25 * (q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1] - h * h * b)
            q = q.at[1:-1, 1:-1].set(inside)
            q = q.at[:, -1].set(q[:, -2])
            q = q.at[0, :].set(q[1, :])
            q = q.at[:, 0].set(q[:, 1])
            return q.at[-1, :].set(0)

        return once

    def moved(w, u, v, push):
        mid = w[1:-1, 1:-1]
        return w.at[1:-1, 1:-1].set(
            mid
            - u[1:-1, 1:-1] * dt / h * (mid - w[1:-1, :-2])
            - v[1:-1, 1:-1] * dt / h * (mid - w[:-2, 1:-1])
            - dt / (2 * rho * h) * push
            + nu * dt / h**2 * (w[1:-1, 2:] + w[1:-1, :-2] + w[2:, 1:-1] + w[:-2, 1:-1] - 4 * mid)
        )

    def step(_, state):
        u, v, p = state
        du = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
        dv = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
        across = (u[2:, 1:-1] - u[:-2, 1:-1]) * (v[1:-1, 2:] - v[1:-1, :-2]) / (4 * h * h)
        b = rho * ((du + dv) / dt - du**2 - 2 * across - dv**2)
        p = lax.fori_loop(0, sweeps, sweep(b), p)
        new_u = moved(u, u, v, p[1:-1, 2:] - p[1:-1, :-2])
        new_v = moved(v, u, v, p[2:, 1:-1] - p[:-2, 1:-1])
        u = new_u.at[0, :].set(0).at[:, 0].set(0).at[:, -1].set(0).at[-1, :].set(1)
        v = new_v.at[0, :].set(0).at[-1, :].set(0).at[:, 0].set(0).at[:, -1].set(0)
        return u, v, p

    return lax.fori_loop(0, steps, step, (u, v, p))


def lattice_boltzmann(f, solid, tau, steps):
    cx, cy = [0, 0, 1, 1, 1, 0, -1, -1, -1], [0, 1, 1, 0, -1, -1, -1, 0, 1]
    weights = np.array([4 / 9] + [1 / 9, 1 / 36] * 4)
    along_x, along_y = np.array(cx), np.array(cy)

    def step(_, f):
        f = np.stack([np.roll(f[:, :, i], (cy[i], cx[i]), axis=(0, 1)) for i in range(9)], axis=-1)
        bounced = f[:, :, np.array([0, 5, 6, 7, 8, 1, 2, 3, 4])]
        rho = f.sum(axis=2)
        ux, uy = (f * along_x).sum(axis=2) / rho, (f * along_y).sum(axis=2) / rho
        along = along_x * ux[:, :, None] + along_y * uy[:, :, None]
        rest = 1.5 * (ux**2 + uy**2)
        equal = rho[:, :, None] * weights * (1 + 3 * along + 4.5 * along**2 - rest[:, :, None])
        return np.where(solid[:, :, None], bounced, f - (f - equal) / tau)

    return lax.fori_loop(0, steps, step, f)


def poisson_by_gradients(b, enough, most):
    def laplace(u):
        out = (4 * u).at[1:].add(-u[:-1]).at[:-1].add(-u[1:])
        return out.at[:, 1:].add(-u[:, :-1]).at[:, :-1].add(-u[:, 1:])

    def step(state):
        x, r, p, old, steps = state
        q = laplace(p)
        alpha = old / (p * q).sum()
        x, r = x + alpha * p, r - alpha * q
        new = (r * r).sum()
        return x, r, r + new / old * p, new, steps + 1

    x, _, _, old, steps = lax.while_loop(
        lambda s: (s[4] < most) & (s[3] > enough), step, (np.zeros_like(b), b, b, (b * b).sum(), 0)
    )
    return x, old, steps


def lotka_loss(k, seen, dt, between):
    def rates(y):
        return np.array([k[0] * y[0] - k[1] * y[0] * y[1], k[2] * y[0] * y[1] - k[3] * y[1]])

    def small(y, _):
        a = rates(y)
        b = rates(y + 0.5 * dt * a)
        c = rates(y + 0.5 * dt * b)
        d = rates(y + dt * c)
        return y + dt / 6 * (a + 2 * b + 2 * c + d), None

    def step(y, wanted):
        y, _ = lax.scan(small, y, None, length=between)
        return y, ((y - wanted) ** 2).sum()

    return lax.scan(step, np.array([1.0, 1.0]), seen)[1].sum()


def ising_checkerboard(spins, chance, beta):
    rows, columns = np.indices(spins.shape)
    colour = (rows + columns) % 2

    def sweep(spins, pair):
        for c in (0, 1):
            around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0)
            around = around + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            flips = (colour == c) & (pair[c] < np.exp(-2 * beta * spins * around))
            spins = np.where(flips, -spins, spins)
        return spins, spins.mean()

    return lax.scan(sweep, spins, chance)


def american_put(spot, strike, years, rate, volatility, steps):
    dt = years / steps
    up = np.exp(volatility * np.sqrt(dt))
    chance = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = np.exp(-rate * dt)
    price = spot * up ** np.arange(-steps, steps + 1.0, 2.0)

    def step(_, state):
        # the last element is not used any more
        value, price = state
        value = discount * (chance * np.roll(value, -1) + (1 - chance) * value)
        price = np.roll(price, -1) / up
        return np.maximum(value, strike - price), price

    return lax.fori_loop(0, steps, step, (np.maximum(strike - price, 0), price))[0][0]


def heston(z1, z2, spot, v0, rate, kappa, theta, xi, rho, strikes):
    steps, n = z1.shape
    dt = 1.0 / steps

    def step(state, z):
        log_s, v = state
        w = rho * z[0] + np.sqrt(1 - rho**2) * z[1]
        root = np.sqrt(np.maximum(v, 0) * dt)
        log_s = log_s + (rate - 0.5 * np.maximum(v, 0)) * dt + root * z[0]
        return (log_s, v + kappa * (theta - np.maximum(v, 0)) * dt + xi * root * w), None

    (log_s, _), _ = lax.scan(step, (np.full(n, np.log(spot)), np.full(n, v0)), (z1, z2))
    payoff = np.exp(-rate) * np.maximum(np.exp(log_s)[:, None] - strikes, 0)
    return payoff.mean(axis=0), payoff.std(axis=0, ddof=1) / np.sqrt(n)


def cvar_portfolio(w, returns, level, steps, rate):
    n = len(returns)
    tail = n - n * level // 100

    def step(state, k):
        w, best, best_w = state
        losses, worst = lax.top_k(-(returns @ w), tail)
        risk = losses.mean()
        better = risk < best
        best, best_w = np.where(better, risk, best), np.where(better, w, best_w)
        v = w + rate / np.sqrt(k + 1.0) * returns[worst].mean(axis=0)
        u = np.sort(v)[::-1]
        above = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
        return (np.maximum(v - above[np.count_nonzero(u > above) - 1], 0), best, best_w), None

    (_, best, best_w), _ = lax.scan(step, (w, np.inf, w), np.arange(steps))
    return best, best_w


# --- images ---------------------------------------------------------------------------------------


def bilateral(image, radius, near, alike):
    rows, columns = image.shape
    padded = np.pad(image, radius)
    total = weights = np.zeros_like(image)
    for dy in range(2 * radius + 1):
        for dx in range(2 * radius + 1):
            other = padded[dy : dy + rows, dx : dx + columns]
            far = ((dx - radius) ** 2 + (dy - radius) ** 2) / (2 * near**2)
            w = np.exp(-far - (other - image) ** 2 / (2 * alike**2))
            total, weights = total + w * other, weights + w
    return total / weights


def median_filter(image, width):
    rows, columns = image.shape
    padded = np.pad(image, width // 2, mode="reflect")
    windows = [
        padded[dy : dy + rows, dx : dx + columns] for dy in range(width) for dx in range(width)
    ]
    return np.median(np.stack(windows), axis=0)


def bundle_step(pose, points, seen, focal, steps):
    def skewed(w):
        zero = np.zeros_like(w[0])
        return np.array([[zero, -w[2], w[1]], [w[2], zero, -w[0]], [-w[1], w[0], zero]])

    def rotation(w):
        angle = np.sqrt(w @ w + 1e-12)
        k = skewed(w / angle)
        return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)

    def step(_, state):
        pose, _ = state
        p = points @ rotation(pose[:3]).T
        q = p + pose[3:]
        x, y, z = q.T
        miss = focal * q[:, :2] / z[:, None] - seen
        zero = np.zeros_like(z)
        by_q = np.stack(
            [
                np.stack([focal / z, zero, -focal * x / z**2], axis=-1),
                np.stack([zero, focal / z, -focal * y / z**2], axis=-1),
            ],
            axis=1,
        )
        turn = -np.moveaxis(skewed(p.T), 2, 0)
        jacobian = np.concatenate([by_q @ turn, by_q], axis=2)
        size = np.sqrt((miss**2).sum(axis=1))
        weight = np.where(size > 2.0, 2.0 / np.maximum(size, 1e-9), 1.0)
        h = np.einsum("n,nki,nkj->ij", weight, jacobian, jacobian)
        g = np.einsum("n,nki,nk->i", weight, jacobian, miss)
        pose = pose - np.linalg.solve(h + 1e-9 * np.eye(6), g)
        return pose, (weight * size**2).mean()

    return lax.fori_loop(0, steps, step, (pose, 0.0))


def backprojection(sinogram, angles):
    n = sinogram.shape[1]
    ramp = np.abs(np.fft.fftfreq(n))
    filtered = np.real(np.fft.ifft(np.fft.fft(sinogram, axis=1) * ramp, axis=1))
    grid = np.arange(n) - (n - 1) / 2
    x, y = np.meshgrid(grid, grid)

    def step(image, each):
        row, angle = each
        t = x * np.cos(angle) + y * np.sin(angle)
        return image + np.interp(t, grid, row, left=0.0, right=0.0), None

    image, _ = lax.scan(step, np.zeros((n, n)), (filtered, angles))
    return image * np.pi / len(angles)
