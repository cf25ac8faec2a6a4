"""Loop fission: one long loop becomes several short loops, which run in turn on each block of data.

In a loop with many functions an element waits for the whole chain of them: a processor looks ahead
over few hundred instructions. In loops with one function each, over a block that stays in the
cache, the functions of several elements run at once, and fewer registers are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opwise.scalar.program import Instruction, Program

#: nanoseconds an element; an operation that costs as much counts as a function
_FUNCTION_COST = 1.2


@dataclass(frozen=True, kw_only=True)
class SubLoop(Program):
    """A part of a program, as a program of its own; slots are numbered by where they are used.

    Equal sub-loops are equal programs, for which one C function is enough.
    """

    #: for each input, its slot in the whole program
    takes: tuple[int, ...]
    #: for each output, its slot in the whole program
    gives: tuple[int, ...]


def split(program: Program) -> list[SubLoop]:
    """Return the sub-loops of a program, each with one function at most; the last has its outs."""
    n, instructions, outs = len(program.in_dtypes), program.instructions, program.outs
    parts = _parts(instructions, n)
    last_read = {
        a: number for number, p in enumerate(parts) for s in p for a in instructions[s - n].args
    }
    last_read.update(dict.fromkeys(outs, len(parts)))

    def sub_loop(number: int, part: Sequence[int]) -> SubLoop:
        is_last = number == len(parts) - 1
        gives = outs if is_last else [s for s in part if last_read.get(s, -1) > number]
        taken = {a: None for s in part for a in instructions[s - n].args} | dict.fromkeys(gives)
        takes = [a for a in taken if a not in part]
        own = {s: i for i, s in enumerate((*takes, *part))}
        return SubLoop(
            tuple(program.dtypes[s] for s in takes),
            tuple(instructions[s - n]._replace(args=tuple(own[a] for a in instructions[s - n].args))
                  for s in part),
            tuple(own[s] for s in gives),
            takes=tuple(takes),
            gives=tuple(gives),
        )  # fmt: skip

    return [sub_loop(number, part) for number, part in enumerate(parts)]


def _parts(instructions: Sequence[Instruction], n: int) -> list[list[int]]:
    """Return lists of successive slots, each with one function at most."""
    parts: list[list[int]] = [[]]
    has_function = False
    for slot, one in enumerate(instructions, n):
        is_function = one.op.row is not None and one.op.row.cost >= _FUNCTION_COST
        if is_function and has_function:
            parts.append([])
        has_function |= is_function
        parts[-1].append(slot)
    return parts


def buffers(sub_loops: Sequence[SubLoop], n_in: int) -> tuple[list[str], dict[int, int]]:
    """Return (the dtype of each buffer, the buffer of each slot) that sub-loops pass on.

    n_in: how many slots are the program's inputs. A buffer is used again after the last sub-loop
    that reads its slot.
    """
    last = {s: number for number, part in enumerate(sub_loops) for s in part.takes if s >= n_in}
    dtypes: list[str] = []
    places: dict[int, int] = {}
    free: dict[str, list[int]] = {}
    for number, part in enumerate(sub_loops[:-1]):
        for slot, out in zip(part.gives, part.outs, strict=True):
            dtype = part.dtypes[out]
            if free.get(dtype):
                places[slot] = free[dtype].pop()
            else:
                places[slot] = len(dtypes)
                dtypes.append(dtype)
        for slot in part.takes:
            if slot >= n_in and last[slot] == number:
                free.setdefault(dtypes[places[slot]], []).append(places[slot])
    return dtypes, places
