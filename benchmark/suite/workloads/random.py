"""Random numbers: draws from the generators of each library, and what is made of them at once."""

from __future__ import annotations

from benchmark.suite.workload import Workload

SIZES = {"rows": 1000, "columns": 1000}


def nothing(rng, rows, columns):
    return {}, {}


def matrix(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns))}, {}


def uniform(xp, rows, columns):
    return (xp.uniform((rows, columns), "float32"),), {}


def normal(xp, rows, columns):
    return (xp.normal((rows, columns), "float32"),), {}


def dropout(xp, x, rows, columns):
    return (x * (xp.uniform((rows, columns), "float32") < 0.5) * 2.0,), {}


def legacy_uniform(xp, rows, columns):
    return (xp.legacy_uniform((rows, columns), "float64"),), {}


def legacy_normal(xp, rows, columns):
    return (xp.legacy_normal((rows, columns), "float64"),), {}


SMALL = {"rows": 10, "columns": 10}


def drawn(name: str, what: str, program, draw=nothing, sizes=SIZES) -> Workload:
    return Workload(
        name=name, what=what, dtype=f"float{name[-2:]}", sizes=sizes, draw=draw, program=program,
        unrolled=("rows", "columns"), random=True,
    )  # fmt: skip


WORKLOADS = [
    drawn("uniform-f32", "a million uniform numbers", uniform),
    drawn("uniform-small-f32", "100 uniform numbers", uniform, sizes=SMALL),
    drawn("normal-f32", "a million normal numbers", normal),
    drawn("normal-small-f32", "100 normal numbers", normal, sizes=SMALL),
    drawn("dropout-f32", "half of a million numbers set to 0, the others doubled", dropout, matrix),
    drawn("legacy-uniform-f64", "a million of numpy's legacy generator", legacy_uniform),
    drawn("legacy-uniform-small-f64", "100 of these", legacy_uniform, sizes=SMALL),
    drawn("legacy-normal-f64", "a million normal ones of that generator", legacy_normal),
    drawn("legacy-normal-small-f64", "100 of these", legacy_normal, sizes=SMALL),
]
