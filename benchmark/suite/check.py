"""Whether a contender computes what numpy computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmark.suite.workload import Arrays, Workload

STEPS = 3
#: of the dtypes of floats and of complex numbers; integers must be equal
TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-9, "complex64": 1e-4}
#: the dtype in which numpy computes what is expected
PRECISE = {"complex64": "complex128"}


@dataclass(frozen=True)
class Results:
    """The outputs of the first call, and the state after ``STEPS`` calls."""

    outputs: list[np.ndarray]
    state: Arrays

    def save(self, path) -> None:
        outputs = {f"output {place}": value for place, value in enumerate(self.outputs)}
        state = {f"state {name}": value for name, value in self.state.items()}
        np.savez(path, **outputs, **state)

    @classmethod
    def load(cls, path) -> Results:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        outputs = [value for name, value in arrays.items() if name.startswith("output ")]
        state = {
            name.removeprefix("state "): value
            for name, value in arrays.items()
            if name.startswith("state ")
        }
        return cls(outputs, state)


def of_contender(contender, step: Callable, first) -> Results:
    """What a contender computes, of which the first call has been made and returned ``first``."""
    outputs = contender.outputs(first)
    if contender.state():
        for _ in range(STEPS - 1):
            step()
    return Results(outputs, contender.state())


def expected(workload: Workload) -> Results:
    """What numpy computes in double precision from the same data."""
    from benchmark.suite.contenders.in_numpy import xp

    data = workload.data().astype(PRECISE.get(workload.dtype, "float64"))
    step = workload.bind_by_hand(xp, data.all)
    outputs, _ = step()
    outputs = [np.array(value) for value in outputs]
    if data.state:
        for _ in range(STEPS - 1):
            step()
    return Results(outputs, data.state)


def difference(workload: Workload, got: Results, want: Results) -> str:
    """The first thing that is not as it should be; empty if all is well.

    Numbers may differ by the tolerance of the dtype times their own size or that of the average
    number of the array, whichever is more.
    """
    if len(got.outputs) != len(want.outputs):
        return f"there are {len(got.outputs)} outputs instead of {len(want.outputs)}"
    if got.state.keys() != want.state.keys():
        return f"the state is {sorted(got.state)} instead of {sorted(want.state)}"
    pairs = [
        *((f"output {k}", got.outputs[k], exact) for k, exact in enumerate(want.outputs)),
        *((f"state {name}", got.state[name], exact) for name, exact in want.state.items()),
    ]
    for name, ours, exact in pairs:
        if ours.shape != exact.shape:
            return f"{name} has the shape {ours.shape} instead of {exact.shape}"
        if ours.dtype != workload.dtype:
            return f"{name} has the dtype {ours.dtype} instead of {workload.dtype}"
        if workload.random:
            if reason := moments_difference(ours, exact):
                return f"{name} {reason}"
            continue
        if workload.dtype not in TOLERANCES:
            if not np.array_equal(ours, exact):
                return f"{name} has other numbers"
            continue
        allowed = TOLERANCES[workload.dtype] * np.maximum(np.abs(exact), np.abs(exact).mean())
        excess = np.abs(ours - exact) / np.maximum(allowed, np.finfo(workload.dtype).tiny)
        if not np.max(excess) <= 1:
            return f"{name} is off by {np.max(excess):.3g} times what {workload.dtype} allows"
    return ""


def moments_difference(ours: np.ndarray, exact: np.ndarray) -> str:
    """How random numbers differ from numpy's in mean or deviation, by over six standard errors."""
    error = 6 * np.sqrt(2 / exact.size) * exact.std()
    for what, got, want in (
        ("mean", ours.mean(), exact.mean()),
        ("standard deviation", ours.std(), exact.std()),
    ):
        if not abs(got - want) <= error:
            return f"has the {what} {got:.4g} instead of {want:.4g}"
    return ""
