"""Ops that the user wrote, in C and in Python: what it costs to call them."""

from __future__ import annotations

from benchmark.suite.workload import Workload


def few(rng, size, times):
    return {"x": rng.normal(size=size)}, {}


def in_c(xp, x, times):
    for _ in range(times):
        x = xp.doubled_in_c(x)
    return (x,), {}


def in_python(xp, x, times):
    for _ in range(times):
        x = xp.doubled_in_python(x)
    return (x,), {}


def of_user(name: str, what: str, program, times: int, language: str) -> Workload:
    return Workload(
        name=name, what=what, dtype="float64", sizes={"size": 4, "times": times}, draw=few,
        program=program, unrolled=("times",), user_code=language,
    )  # fmt: skip


WORKLOADS = [
    of_user("c-op", "an Op of the user in C, which doubles 4 numbers", in_c, 1, "C"),
    of_user("c-op-20", "20 of these, each of the result of the last", in_c, 20, "C"),
    of_user("python-op", "an Op of the user in Python, which doubles 4 numbers", in_python, 1,
            "Python"),
    of_user("python-op-20", "20 of these, each of the result of the last", in_python, 20,
            "Python"),
]  # fmt: skip
