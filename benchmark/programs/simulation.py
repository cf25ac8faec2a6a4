"""Simulations: fields, particles, spins, and prices."""

from __future__ import annotations

import numpy as np

from benchmark.numpy_programs.program import Programs

PROGRAMS = Programs()
program = PROGRAMS.program


# --- fields ---------------------------------------------------------------------------------------


@program("fields", lambda rng, n: (rng.random((n, n)), 0.4, 4), 8, 100)
def heat_adi(u, r, steps):
    """The heat equation by alternating directions; each half step solves tridiagonal systems."""
    n = len(u)
    c, d = np.zeros(n), np.zeros((n, n))
    for _ in range(2 * steps):
        rhs = (1 - 2 * r) * u
        rhs[:, 1:] += r * u[:, :-1]
        rhs[:, :-1] += r * u[:, 1:]
        c[0] = -r / (1 + 2 * r)
        d[0] = rhs[0] / (1 + 2 * r)
        for i in range(1, n):
            scale = 1 + 2 * r + r * c[i - 1]
            c[i] = -r / scale
            d[i] = (rhs[i] + r * d[i - 1]) / scale
        for i in range(n - 2, -1, -1):
            d[i] -= c[i] * d[i + 1]
        u = d.T.copy()
    return u


@program("fields", lambda rng, n: (rng.random(n) + 0.5, n, 0.3), 20, 1000)
def wave_absorbed(speed, steps, ratio):
    """A wave on a string of changing speed; its ends absorb. A source, and a record of one end."""
    n = len(speed)
    before, now = np.zeros(n), np.zeros(n)
    c = ratio * speed
    record = np.zeros(steps)
    for t in range(steps):
        after = np.zeros(n)
        after[1:-1] = (
            2 * now[1:-1] - before[1:-1]
            + c[1:-1] ** 2 * (now[2:] - 2 * now[1:-1] + now[:-2])
        )  # fmt: skip
        after[0] = now[1] + (c[0] - 1) / (c[0] + 1) * (after[1] - now[0])
        after[-1] = now[-2] + (c[-1] - 1) / (c[-1] + 1) * (after[-2] - now[-1])
        after[n // 3] += np.exp(-(((t - 30) / 10) ** 2))
        before, now = now, after
        record[t] = now[-1]
    return now, record


def _shallow(rng, n):
    x = np.linspace(-1, 1, n)
    h = 1 + 0.3 * np.exp(-20 * (x[:, None] ** 2 + x[None] ** 2))
    return h, np.zeros((n, n)), np.zeros((n, n)), 0.1, 10


def fluxes(h, hu, hv):
    u, v = hu / h, hv / h
    pressure = 0.5 * 9.81 * h**2
    return (hu, hu * u + pressure, hu * v), (hv, hv * u, hv * v + pressure)


@program("fields", _shallow, 10, 120, numba=False)
def shallow_water(h, hu, hv, ratio, steps):
    """The shallow water equations on a torus, by the scheme of Lax and Friedrichs."""
    for _ in range(steps):
        f, g = fluxes(h, hu, hv)
        state = []
        for q, fq, gq in zip((h, hu, hv), f, g, strict=True):
            around = np.roll(q, 1, 0) + np.roll(q, -1, 0) + np.roll(q, 1, 1) + np.roll(q, -1, 1)
            state.append(
                0.25 * around
                - 0.5 * ratio * (np.roll(fq, -1, 0) - np.roll(fq, 1, 0))
                - 0.5 * ratio * (np.roll(gq, -1, 1) - np.roll(gq, 1, 1))
            )
        h, hu, hv = state
    return h, hu, hv


@program(
    "fields", lambda rng, n: (*(np.zeros((n, n)) for _ in range(3)), 0.001, 0.1, 1.0, 8, 20), 9, 80
)
def cavity_flow(u, v, p, dt, nu, rho, steps, sweeps):
    """Navier and Stokes' equations in a cavity whose lid moves; pressure by Jacobi's sweeps."""
    u, v, p = u.copy(), v.copy(), p.copy()
    n = len(u)
    h = 2.0 / (n - 1)
    b = np.zeros((n, n))
    for _ in range(steps):
        du = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * h)
        dv = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * h)
        across = (u[2:, 1:-1] - u[:-2, 1:-1]) * (v[1:-1, 2:] - v[1:-1, :-2]) / (4 * h * h)
        b[1:-1, 1:-1] = rho * ((du + dv) / dt - du**2 - 2 * across - dv**2)
        for _ in range(sweeps):
            q = p.copy()
            p[1:-1, 1:-1] = 0.25 * (
                q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1] - h * h * b[1:-1, 1:-1]
            )
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        un, vn = u.copy(), v.copy()
        mid = (slice(1, -1), slice(1, -1))
        u[mid] = (
            un[mid]
            - un[mid] * dt / h * (un[mid] - un[1:-1, :-2])
            - vn[mid] * dt / h * (un[mid] - un[:-2, 1:-1])
            - dt / (2 * rho * h) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / h**2 * (un[1:-1, 2:] + un[1:-1, :-2] + un[2:, 1:-1] + un[:-2, 1:-1]
                                - 4 * un[mid])
        )  # fmt: skip
        v[mid] = (
            vn[mid]
            - un[mid] * dt / h * (vn[mid] - vn[1:-1, :-2])
            - vn[mid] * dt / h * (vn[mid] - vn[:-2, 1:-1])
            - dt / (2 * rho * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / h**2 * (vn[1:-1, 2:] + vn[1:-1, :-2] + vn[2:, 1:-1] + vn[:-2, 1:-1]
                                - 4 * vn[mid])
        )  # fmt: skip
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0, 0, 0, 1
        v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0, 0, 0, 0
    return u, v, p


def _lattice(rng, n):
    f = 1 + 0.01 * rng.normal(size=(n, 2 * n, 9))
    f[:, :, 3] += 2.0
    y, x = np.mgrid[:n, : 2 * n]
    solid = (x - n // 2) ** 2 + (y - n // 2) ** 2 < (n // 6) ** 2
    return f, solid, 0.6, 4


CX = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
CY = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
WEIGHTS = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])


@program("fields", _lattice, 12, 60, numba=False)
def lattice_boltzmann(f, solid, tau, steps):
    """A flow around a cylinder: nine populations stream, bounce and collide."""
    f = f.copy()
    for _ in range(steps):
        for i in range(9):
            f[:, :, i] = np.roll(np.roll(f[:, :, i], CX[i], axis=1), CY[i], axis=0)
        bounced = f[solid, :]
        bounced = bounced[:, [0, 5, 6, 7, 8, 1, 2, 3, 4]]
        rho = f.sum(axis=2)
        ux, uy = (f * CX).sum(axis=2) / rho, (f * CY).sum(axis=2) / rho
        along = CX * ux[:, :, None] + CY * uy[:, :, None]
        rest = 1.5 * (ux**2 + uy**2)
        equal = rho[:, :, None] * WEIGHTS * (1 + 3 * along + 4.5 * along**2 - rest[:, :, None])
        f += -(1 / tau) * (f - equal)
        f[solid, :] = bounced
    return f


def _poisson(rng, n):
    return rng.normal(size=(n, n)), 1e-8, 100


def laplace(u):
    out = 4 * u
    out[1:] -= u[:-1]
    out[:-1] -= u[1:]
    out[:, 1:] -= u[:, :-1]
    out[:, :-1] -= u[:, 1:]
    return out


@program("fields", _poisson, 8, 100)
def poisson_by_gradients(b, enough, most):
    """Poisson's equation by conjugate gradients, without a matrix."""
    x, r = np.zeros_like(b), b.copy()
    p, old, steps = r.copy(), (b * b).sum(), 0
    while steps < most and old > enough:
        q = laplace(p)
        alpha = old / (p * q).sum()
        x += alpha * p
        r -= alpha * q
        new = (r * r).sum()
        p = r + new / old * p
        old = new
        steps += 1
    return x, old, steps


# --- particles, spins, equations ------------------------------------------------------------------


def _bodies(rng, n):
    return rng.normal(size=(n, 3)), 0.1 * rng.normal(size=(n, 3)), rng.random(n), 0.01, 0.1, 5


def pull(x, mass, soft):
    apart = x[None] - x[:, None]
    near = ((apart**2).sum(axis=-1) + soft**2) ** -1.5
    return (apart * (near * mass)[:, :, None]).sum(axis=1)


@program("particles", _bodies, 8, 150, numba=False)
def n_body_leapfrog(x, v, mass, dt, soft, steps):
    """Kick, drift, kick under gravity; and the energy after each step."""
    energies = []
    a = pull(x, mass, soft)
    for _ in range(steps):
        v = v + 0.5 * dt * a
        x = x + dt * v
        a = pull(x, mass, soft)
        v = v + 0.5 * dt * a
        apart = np.sqrt(((x[None] - x[:, None]) ** 2).sum(axis=-1) + soft**2)
        potential = -np.triu(mass[:, None] * mass / apart, 1).sum()
        energies.append(0.5 * (mass[:, None] * v**2).sum() + potential)
    return x, v, np.array(energies)


def _lotka(rng, n):
    seen = np.exp(0.1 * rng.normal(size=(n, 2))) * np.array([1.0, 2.0])
    return np.array([0.7, 0.9, 0.8, 1.1]), seen, 0.02, 10


def lotka(y, k):
    return np.array([k[0] * y[0] - k[1] * y[0] * y[1], k[2] * y[0] * y[1] - k[3] * y[1]])


def lotka_loss(k, seen, dt, between):
    y, loss = np.array([1.0, 1.0]), 0.0
    for t in range(len(seen)):
        for _ in range(between):
            a = lotka(y, k)
            b = lotka(y + 0.5 * dt * a, k)
            c = lotka(y + 0.5 * dt * b, k)
            d = lotka(y + dt * c, k)
            y = y + dt / 6 * (a + 2 * b + 2 * c + d)
        loss += ((y - seen[t]) ** 2).sum()
    return loss


def with_sensitivities(z, k):
    """The rates of [y, dy/dk]."""
    x, y, s = z[0, 0], z[1, 0], z[:, 1:]
    by_y = np.array([[k[0] - k[1] * y, -k[1] * x], [k[2] * y, k[2] * x - k[3]]])
    by_k = np.array([[x, -x * y, 0.0, 0.0], [0.0, 0.0, x * y, -y]])
    rates = np.zeros_like(z)
    rates[0, 0] = k[0] * x - k[1] * x * y
    rates[1, 0] = k[2] * x * y - k[3] * y
    rates[:, 1:] = by_y @ s + by_k
    return rates


def _lotka_derived(value_and_grad):
    def step(k, seen, dt, between):
        return value_and_grad(lotka_loss)(k, seen, dt, between)

    return step


@program("particles", _lotka, 6, 40, numba=False, derived=_lotka_derived)
def ode_sensitivities(k, seen, dt, between):
    """The misfit of Lotka and Volterra's equations (Runge-Kutta), and its gradient."""
    z = np.zeros((2, 5))
    z[:, 0] = 1.0
    loss, g = 0.0, np.zeros(4)
    for t in range(len(seen)):
        for _ in range(between):
            a = with_sensitivities(z, k)
            b = with_sensitivities(z + 0.5 * dt * a, k)
            c = with_sensitivities(z + 0.5 * dt * b, k)
            d = with_sensitivities(z + dt * c, k)
            z = z + dt / 6 * (a + 2 * b + 2 * c + d)
        miss = z[:, 0] - seen[t]
        loss += (miss**2).sum()
        g += 2 * miss @ z[:, 1:]
    return loss, g


def _ising(rng, n):
    return rng.choice(np.array([-1, 1]), (n, n)), rng.random((10, 2, n, n)), 0.44


@program("particles", _ising, 8, 150, numba=False)
def ising_checkerboard(spins, chance, beta):
    """Metropolis sweeps, the black fields and then the white ones; and the magnetizations."""
    rows, columns = np.indices(spins.shape)
    colour = (rows + columns) % 2
    path = np.zeros(len(chance))
    for t in range(len(chance)):
        for c in (0, 1):
            around = (
                np.roll(spins, 1, 0) + np.roll(spins, -1, 0)
                + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
            )  # fmt: skip
            flips = (colour == c) & (chance[t, c] < np.exp(-2 * beta * spins * around))
            spins = np.where(flips, -spins, spins)
        path[t] = spins.mean()
    return spins, path


# --- prices ---------------------------------------------------------------------------------------


@program("prices", lambda rng, n: (100.0, 105.0, 1.0, 0.05, 0.3, n), 20, 500)
def american_put(spot, strike, years, rate, volatility, steps):
    """An American put by a binomial tree (Cox, Ross, Rubinstein)."""
    dt = years / steps
    up = np.exp(volatility * np.sqrt(dt))
    chance = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    discount = np.exp(-rate * dt)
    price = spot * up ** np.arange(-steps, steps + 1.0, 2.0)
    value = np.maximum(strike - price, 0)
    for _k in range(steps):
        value = discount * (chance * value[1:] + (1 - chance) * value[:-1])
        price = price[1:] / up
        value = np.maximum(value, strike - price)
    return value[0]


def _heston(rng, n):
    z = rng.normal(size=(2, 50, n))
    return z[0], z[1], 100.0, 0.04, 0.02, 1.5, 0.04, 0.3, -0.7, np.linspace(80, 120, 9)


@program("prices", _heston, 12, 5000, numba=False)
def heston(z1, z2, spot, v0, rate, kappa, theta, xi, rho, strikes):
    """Calls by simulation of a stochastic volatility (full truncation), with standard errors."""
    steps, n = z1.shape
    dt = 1.0 / steps
    log_s, v = np.full(n, np.log(spot)), np.full(n, v0)
    for t in range(steps):
        w = rho * z1[t] + np.sqrt(1 - rho**2) * z2[t]
        root = np.sqrt(np.maximum(v, 0) * dt)
        log_s += (rate - 0.5 * np.maximum(v, 0)) * dt + root * z1[t]
        v += kappa * (theta - np.maximum(v, 0)) * dt + xi * root * w
    payoff = np.exp(-rate) * np.maximum(np.exp(log_s)[:, None] - strikes, 0)
    return payoff.mean(axis=0), payoff.std(axis=0, ddof=1) / np.sqrt(n)


def _returns(rng, n):
    mixed = rng.normal(size=(n, 20)) @ (0.1 * rng.normal(size=(20, 20)))
    return np.full(20, 0.05), mixed + 0.01, 95, 20, 0.5


@program("prices", _returns, 40, 5000, numba=False)
def cvar_portfolio(w, returns, level, steps, rate):
    """Minimize the conditional value at risk by subgradients projected on the simplex."""
    n = len(returns)
    tail = n - n * level // 100
    best, best_w = np.inf, w
    for k in range(steps):
        losses = -(returns @ w)
        worst = np.argpartition(losses, n - tail)[n - tail :]
        risk = losses[worst].mean()
        if risk < best:
            best, best_w = risk, w
        g = -returns[worst].mean(axis=0)
        v = w - rate / np.sqrt(k + 1.0) * g
        u = np.sort(v)[::-1]
        above = (np.cumsum(u) - 1) / np.arange(1, len(u) + 1)
        last = np.count_nonzero(u > above) - 1
        w = np.maximum(v - above[last], 0)
    return best, best_w
