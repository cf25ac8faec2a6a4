"""Elementwise programs: one number, a polynomial, transcendental functions, option prices."""

from __future__ import annotations

import math

from benchmark.suite.workload import Workload


def numbers(rng, n):
    return {"x": rng.normal(size=n)}, {}


def two_numbers(rng):
    return {"x": rng.normal(size=()), "y": rng.normal(size=())}, {}


def add(xp, x, y):
    return (x + y,), {}


def polynomial(xp, x):
    return (1 + x * (2 + x * (3 + x * (4 + x * (5 + x * 6)))),), {}


def mix(xp, x):
    return (xp.tanh(x) * xp.exp(-x) + xp.sigmoid(x),), {}


RATE, VOLATILITY = 0.02, 0.3


def options(rng, n):
    inputs = {
        "spot": rng.uniform(50, 150, n),
        "strike": rng.uniform(50, 150, n),
        "years": rng.uniform(0.25, 3, n),
    }
    return inputs, {}


def black_scholes(xp, spot, strike, years):
    def below(deviations):
        return 0.5 + 0.5 * xp.erf(deviations * math.sqrt(0.5))

    deviation = VOLATILITY * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (RATE + VOLATILITY**2 / 2) * years) / deviation
    present = strike * xp.exp(-RATE * years)
    exercised, covered = below(d1 - deviation), below(d1)
    call = spot * covered - present * exercised
    put = present * (1 - exercised) - spot * (1 - covered)
    return (call, put), {}


def polynomial_of(n: int, name: str, what: str, holds: bool = False) -> Workload:
    return Workload(
        name=f"polynomial-{name}",
        what=f"a polynomial of degree 5 {what}",
        dtype="float64",
        sizes={"n": n},
        draw=numbers,
        program=polynomial,
        numexpr=("1 + x * (2 + x * (3 + x * (4 + x * (5 + x * 6))))",),
        holds=holds,
    )


WORKLOADS = [
    Workload(
        name="scalar-add",
        what="the sum of two numbers: what a call costs",
        dtype="float64",
        sizes={},
        draw=two_numbers,
        program=add,
    ),
    polynomial_of(10**4, "1e4", "of 10,000 numbers"),
    polynomial_of(10**7, "1e7", "of 10 million numbers; the caller lets go of every result"),
    polynomial_of(10**7, "1e7-held", "while the caller holds the previous result", holds=True),
    *(
        Workload(
            name=f"mix-{size}-f{bits}",
            what=f"tanh(x) * exp(-x) + sigmoid(x) of {n:,} numbers",
            dtype=f"float{bits}",
            sizes={"n": n},
            draw=numbers,
            program=mix,
            numexpr=("tanh(x) * exp(-x) + 1 / (1 + exp(-x))",),
        )
        for size, n in (("1e3", 10**3), ("1e6", 10**6))
        for bits in (32, 64)
    ),
    *(
        Workload(
            name=f"black-scholes-f{bits}",
            what="the prices of a million calls and puts",
            dtype=f"float{bits}",
            sizes={"n": 10**6},
            draw=options,
            program=black_scholes,
        )
        for bits in (32, 64)
    ),
]
