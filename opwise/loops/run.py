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
        _one_row(first, n_steps) if k in layout.last else _first_rows(first, before, n_steps)
        for k, ((first,), before) in enumerate(zip(inputs.states, layout.rows_before, strict=True))
    ]
    # (rows, which one the first step reads); the loop itself does as little as possible
    reads = [(sequence, 0) for sequence in inputs.sequences]
    for rows, taps, before in zip(states, layout.taps, layout.rows_before, strict=True):
        reads += [(rows, before - tap) for tap in taps]
    # (rows, which one the first step writes, the shape of a row, what errors call it)
    writes: list[Any] = [
        (rows, before, rows.shape[1:], f"state {k}")
        for k, (rows, before) in enumerate(zip(states, layout.rows_before, strict=True))
    ]
    n_states, n_rows = len(states), len(states) + layout.results
    n_outputs = n_rows + layout.objects
    objects: Sequence[Any] = inputs.objects
    constants = inputs.constants
    done = 0
    while done < n_steps:
        given = [rows[done + first, ...] for rows, first in reads]
        try:
            out = step(*given, *objects, *constants)
        except BaseException as error:
            error.add_note(f"It happened in step {done} of {name}; the first one is step 0.")
            raise
        if done == 0:
            for k, value in enumerate(out[n_states:n_rows]):
                rows = np.empty((n_steps, *value.shape), value.dtype)
                writes.append((rows, 0, value.shape, f"output {k}"))
        for (rows, first, shape, what), value in zip(writes, out, strict=False):
            if value.shape != shape:
                raise ValueError(
                    f"step {done} of {name} computes a value of shape {value.shape} for {what}, "
                    f"which has shape {shape} before it: all steps must give the same shape"
                )
            rows[done + first] = value
        objects = out[n_rows:n_outputs]
        done += 1
        if layout.until and out[n_outputs]:
            break
    if n_steps == 0:
        shapes = _shapes_of_results(layout, step, inputs, ranks)
        for shape, (dtype, _) in zip(shapes, ranks, strict=True):
            writes.append((np.empty((0, *shape), dtype), 0, shape, ""))
    return [
        *(
            rows[: 1 if k in layout.last else first + done]
            for k, (rows, first, _, _) in enumerate(writes)
        ),
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
                f"{len(sequence)} of them: its shape is {sequence.shape}. Give a smaller n_steps, "
                "or none: the shortest sequence then ends the loop"
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


def _one_row(first: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the rows of a state that are all the same memory, of which the last value stays."""
    row = np.array(first)
    return np.lib.stride_tricks.as_strided(
        row, (1 + n_steps, *row.shape[1:]), (0, *row.strides[1:])
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
