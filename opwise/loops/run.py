"""Runs a loop in Python: what it does, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.loops.layout import Layout, Parts


def run(
    layout: Layout,
    step: Callable[..., Sequence[Any]],
    n_steps: int,
    inputs: Parts[Any],
    name: str,
    ranks: Sequence[tuple[str, int]],
) -> list[Any]:
    """Return the outputs of a loop.

    step: computes the outputs of one step from its inputs. inputs: of the loop. name: of the loop,
    for messages. ranks: (dtype, ndim) of each result of a step.

    Raises IndexError for a negative number of steps; ValueError for a sequence without a row for
    each step, for a state with too few first rows, and for values whose shape changes between
    steps.
    """
    check(layout, n_steps, inputs, name)
    states = [
        _first_rows(first[0], before, n_steps)
        for first, before in zip(inputs.states, layout.rows_before, strict=True)
    ]
    results: list[Any] = [None] * layout.results
    objects = list(inputs.objects)
    done = 0
    while done < n_steps:
        given = [sequence[done, ...] for sequence in inputs.sequences]
        for rows, taps, before in zip(states, layout.taps, layout.rows_before, strict=True):
            given += [rows[done + before - tap, ...] for tap in taps]
        out = layout.step_outputs(step(*given, *objects, *inputs.constants))
        for k, (value,) in enumerate(out.states):
            row = states[k][done + layout.rows_before[k], ...]
            _check_shape(value, row.shape, name, done, f"state {k}")
            row[...] = value
        for k, value in enumerate(out.results):
            if results[k] is None:
                results[k] = np.empty((n_steps, *value.shape), value.dtype)
            _check_shape(value, results[k].shape[1:], name, done, f"output {k}")
            results[k][done] = value
        objects = out.objects
        done += 1
        if out.condition and out.condition[0]:
            break
    if n_steps == 0:
        shapes = _shapes_of_results(layout, step, inputs, ranks)
        results = [
            np.empty((0, *shape), dtype) for shape, (dtype, _) in zip(shapes, ranks, strict=True)
        ]
    return [
        *(rows[: before + done] for rows, before in zip(states, layout.rows_before, strict=True)),
        *(rows[:done] for rows in results),
        *objects,
    ]


def check(layout: Layout, n_steps: int, inputs: Parts[Any], name: str) -> None:
    """Raise IndexError or ValueError if a loop cannot run with these inputs."""
    if n_steps < 0:
        raise IndexError(f"{name} was asked to run for a negative number of steps, {n_steps}")
    for k, sequence in enumerate(inputs.sequences):
        if len(sequence) != n_steps:
            raise ValueError(
                f"{name} was asked to run for {n_steps} steps, but sequence {k} has a row for "
                f"{len(sequence)} of them: its shape is {sequence.shape}"
            )
    for k, (first,) in enumerate(inputs.states):
        if len(first) != layout.rows_before[k]:
            raise ValueError(
                f"{name} needs {layout.rows_before[k]} initial values of state {k}, but got "
                f"{len(first)}: the shape of the initial values is {first.shape}"
            )


def _first_rows(first: np.ndarray, before: int, n_steps: int) -> np.ndarray:
    """Return the rows of a state, of which only those before the first step are set."""
    rows = np.empty((before + n_steps, *first.shape[1:]), first.dtype)
    rows[:before] = first[:before]
    return rows


def _check_shape(value: Any, shape: tuple[int, ...], name: str, step: int, what: str) -> None:
    if value.shape != shape:
        raise ValueError(
            f"step {step} of {name} computes a value of shape {value.shape} for {what}, which has "
            f"shape {shape} before it: all steps must give the same shape"
        )


def _shapes_of_results(
    layout: Layout,
    step: Callable[..., Sequence[Any]],
    inputs: Parts[Any],
    ranks: Sequence[tuple[str, int]],
) -> list[tuple[int, ...]]:
    """Return the shapes of results of which no step computes a row: those of a step on zeros."""
    given = [np.zeros(sequence.shape[1:], sequence.dtype) for sequence in inputs.sequences]
    for (first,), taps in zip(inputs.states, layout.taps, strict=True):
        given += [np.zeros(first.shape[1:], first.dtype) for _ in taps]
    try:
        out = layout.step_outputs(step(*given, *inputs.objects, *inputs.constants))
    except Exception:  # the step may divide by what it is given, or invert it
        return [(0,) * ndim for _, ndim in ranks]
    return [value.shape for value in out.results]
