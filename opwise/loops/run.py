"""Runs a loop in Python: what it does, row by row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.linkers.errors import loop_running, note_step
from opwise.loops.layout import Layout, Parts


def run(
    layout: Layout,
    step: Callable[..., Sequence[Any]],
    n_steps: int,
    inputs: Parts[Any],
    node: Apply,
    ranks: Sequence[tuple[str, int]],
) -> list[Any]:
    """Return the outputs of a loop.

    step: computes the outputs of one step from its inputs. inputs: of the loop. node: the loop, for
    messages. ranks: (dtype, ndim) of each result of a step.

    Raises IndexError for a negative number of steps; ValueError for a sequence without a row for
    each step, for a state with too few first rows, and for values whose shape changes between
    steps.
    """
    name = str(node.op)
    check(layout, n_steps, inputs, name)
    start = time.perf_counter_ns()
    # an output of which only the last rows are kept has them at their numbers modulo how many
    states = [
        _first_rows(first, _fewest(before + n_steps, kept))
        for (first,), before, kept in zip(
            inputs.states, layout.rows_before, layout.kept, strict=False
        )
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
    with loop_running(node) as place:
        while done < n_steps:
            place[1] = done
            given = [rows[(done + first) % len(rows), ...] for rows, first in reads]
            try:
                out = step(*given, *objects, *constants)
            except BaseException as error:
                note_step(error, node, done)
                raise
            if done == 0:
                for k, value in enumerate(out[n_states:n_rows]):
                    count = _fewest(n_steps, layout.kept[n_states + k])
                    rows = np.empty((count, *value.shape), value.dtype)
                    writes.append((rows, 0, value.shape, f"output {k}"))
            for (rows, first, shape, what), value in zip(writes, out, strict=False):
                if value.shape != shape:
                    raise misfit(done, name, value.shape, what, shape)
                rows[(done + first) % len(rows)] = value
            objects = out[n_rows:n_outputs]
            done += 1
            if layout.until and out[n_outputs]:
                break
    if n_steps == 0:
        shapes = _shapes_of_results(layout, step, inputs, ranks)
        for shape, (dtype, _) in zip(shapes, ranks, strict=True):
            writes.append((np.empty((0, *shape), dtype), 0, shape, ""))
    timing: Any = getattr(getattr(step, "fn", None), "timing", None)
    if timing is not None and timing.on:
        timing.count_run(time.perf_counter_ns() - start, done)
    return [*(_in_order(rows, first + done) for rows, first, _, _ in writes), *objects]


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


def _fewest(count: int, kept: int | None) -> int:
    """Return how many of ``count`` rows are kept."""
    return count if kept is None else min(count, kept)


def _first_rows(first: np.ndarray, count: int) -> np.ndarray:
    """Return the rows of a state, of which only those before the first step are set."""
    rows = np.empty((count, *first.shape[1:]), first.dtype)
    rows[: len(first)] = first
    return rows


def _in_order(rows: np.ndarray, written: int) -> np.ndarray:
    """Return the rows that are left of those written, the oldest one first."""
    if written <= len(rows):
        return rows[:written]
    return np.roll(rows, -(written % len(rows)), axis=0)


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


def misfit(
    step: int, name: str, shape: tuple[int, ...], what: str, before: tuple[int, ...]
) -> ValueError:
    """Return the error about a value whose shape changes. what: state or output, with its number.

    before: the shape in earlier steps.
    """
    return ValueError(
        f"step {step} of {name} computes a value of shape {shape} for {what}, which has shape "
        f"{before} before it: all steps must give the same shape"
    )
