"""Stages: a long scalar program as several short ones, run one after the other on a block.

A loop over a program with many functions has one element's chain of them to wait for: a processor
looks ahead over few hundred instructions. Loops with one function each over a block that stays in
the cache let several elements' functions go on at once, and need fewer registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from opwise.scalar.composite import Step

#: nanoseconds an element, from which on a step is as long as a function
_FUNCTION_COST = 1.2


@dataclass(frozen=True)
class Stage:
    """A program of its own; its inputs are the slots ``takes`` of the whole, its outputs ``gives``.

    Equal stages are equal programs: slots are numbered by where they are used.
    """

    steps: tuple[Step, ...]
    outs: tuple[int, ...]
    in_dtypes: tuple[str, ...]
    takes: tuple[int, ...]
    gives: tuple[int, ...]


def split(steps, outs, in_dtypes):
    """Return the stages of a program: each has one function at most; the last gives the outputs."""
    n = len(in_dtypes)
    parts: list[list[int]] = [[]]
    has_function = False
    for k, step in enumerate(steps):
        is_function = step.op.row is not None and step.op.row.cost >= _FUNCTION_COST
        if is_function and has_function:
            parts.append([])
        has_function |= is_function
        parts[-1].append(n + k)
    last_read = {a: number for number, p in enumerate(parts) for s in p for a in steps[s - n].args}
    last_read.update(dict.fromkeys(outs, len(parts)))

    def stage(number, part):
        is_last = number == len(parts) - 1
        gives = outs if is_last else [s for s in part if last_read.get(s, -1) > number]
        taken = {a: None for s in part for a in steps[s - n].args} | dict.fromkeys(gives)
        takes = [a for a in taken if a not in part]
        own = {s: i for i, s in enumerate((*takes, *part))}
        return Stage(
            tuple(steps[s - n]._replace(args=tuple(own[a] for a in steps[s - n].args))
                  for s in part),
            tuple(own[s] for s in gives),
            tuple(in_dtypes[s] if s < n else steps[s - n].dtype for s in takes),
            tuple(takes),
            tuple(gives),
        )  # fmt: skip

    return [stage(number, part) for number, part in enumerate(parts)]


def buffers(stages, n_in):
    """Return (the dtype of each buffer, the buffer of each slot) for what passes between stages.

    n_in: how many slots are the program's inputs. A buffer is used again once its slot was read for
    the last time.
    """
    last = {s: number for number, stage in enumerate(stages) for s in stage.takes if s >= n_in}
    dtypes, places, free = [], {}, {}
    for number, stage in enumerate(stages[:-1]):
        for slot, out in zip(stage.gives, stage.outs, strict=True):
            dtype = stage.steps[out - len(stage.takes)].dtype
            if free.get(dtype):
                places[slot] = free[dtype].pop()
            else:
                places[slot] = len(dtypes)
                dtypes.append(dtype)
        for slot in stage.takes:
            if slot >= n_in and last[slot] == number:
                free.setdefault(dtypes[places[slot]], []).append(places[slot])
    return dtypes, places
