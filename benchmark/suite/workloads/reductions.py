"""Sums, means and maxima over all of a matrix, along it and across it, and of views of it.

The view is part of the program, so that every contender starts from the same matrix.
"""

from __future__ import annotations

from benchmark.suite.workload import Workload

SIZES = {"rows": 3000, "columns": 3000}
AXES = {"all": None, "axis0": 0, "axis1": 1}
VIEWS = {
    "": (lambda x: x, ""),
    "-transposed": (lambda x: x.T, " of the transpose"),
    "-strided": (lambda x: x[::2, ::3], " of every second row and third column"),
}
CACHE_LINE = 64


def matrix(rng, rows, columns):
    return {"x": rng.normal(size=(rows, columns))}, {}


def plain(op: str, axis: str, view: str) -> Workload:
    seen, of_what = VIEWS[view]

    def program(xp, x):
        return (getattr(xp, op)(seen(x), axis=AXES[axis]),), {}

    return Workload(
        name=f"{op}-{axis}{view}",
        what=f"{op} over {axis}{of_what}",
        dtype="float64",
        sizes=SIZES,
        draw=matrix,
        program=program,
        moved=moved_of_every_second_row(axis) if view == "-strided" else None,
    )


def moved_of_every_second_row(axis: str):
    """Memory moves in lines: a line holds numbers of every third column, whichever it is."""

    def moved(itemsize, rows, columns):
        assert 3 * itemsize <= CACHE_LINE
        left = {"all": 1, "axis0": -(-columns // 3), "axis1": -(-rows // 2)}
        return -(-rows // 2) * columns * itemsize, left[axis] * itemsize

    return moved


def squares(axis: str) -> Workload:
    def program(xp, x):
        miss = x - 1
        return (xp.sum(miss * miss, axis=AXES[axis]),), {}

    given = "" if axis == "all" else f", axis={AXES[axis]}"
    return Workload(
        name=f"squares-{axis}",
        what=f"sum of (x - 1)^2 over {axis}",
        dtype="float64",
        sizes=SIZES,
        draw=matrix,
        program=program,
        numexpr=(f"sum((x - 1)**2{given})",),
    )


WORKLOADS = [
    *(squares(axis) for axis in AXES),
    *(plain(op, axis, view) for op in ("sum", "mean", "max") for view in VIEWS for axis in AXES),
]
