"""Strategies for Hypothesis: random programs, with outputs and updates."""

from __future__ import annotations

from functools import lru_cache

from hypothesis import assume
from hypothesis import strategies as st

from opwise.testing.fuzz.grow import Grower, Rejected
from opwise.testing.fuzz.steps import STEPS


@lru_cache(maxsize=512)
def _below(n):
    return st.integers(0, n - 1)


def grown(below, steps=10, special=False, refused=None):
    """Return a Program of some statements, its choices made by ``below``; None if it has none."""
    g = Grower(below, special)
    for _ in range(2 + below(steps)):
        try:
            g.choice(STEPS)(g)
        except Rejected:
            continue
    if refused is not None:
        for text, n in g.refused.items():
            refused[text] = refused.get(text, 0) + n
    program = g.program
    made = list(program.statements)
    if not made:
        return None
    read = {n for name in made for n in program.needed([name]) - {name}}
    # mostly what nothing else reads, so that little of the program is lost
    ends = [name for name in made if name not in read]
    program.outputs = [ends[-1], *(name for name in ends[:-1] if below(3))]
    for _ in range(below(3)):
        program.outputs.append(g.choice(made))
    if g.chance(15):
        program.outputs.append(g.choice(program.leaves))
    for leaf in list(program.leaves.values()):
        if leaf.kind == "shared" and g.chance(60):
            fitting = [n for n in [*made, *program.leaves] if n != leaf.name
                       and g.var(n).type == g.var(leaf.name).type]  # fmt: skip
            if fitting:
                program.updates[leaf.name] = g.choice(fitting)
    program = program.without(program.outputs)
    program.seed = below(1 << 16)
    return program


@st.composite
def programs(draw, steps=10, special=False, refused=None):
    """Random Programs of up to ``steps`` + 1 statements; special: with NaN and infinities."""
    program = grown(lambda n: draw(_below(n)) if n > 1 else 0, steps, special, refused)
    assume(program is not None)
    return program
