"""``grown``: a whole random RandomProgram, with outputs and updates, from a source of choices."""

from __future__ import annotations

from opwise.testing.fuzz import images, loops, users  # noqa: F401  (they add their steps)
from opwise.testing.fuzz.grow import Below, Grower, Rejected
from opwise.testing.fuzz.program import RandomProgram
from opwise.testing.fuzz.steps import STEPS, Step, chosen

#: the steps that add loops and conditions
LOOPS = [step for step in STEPS if step is chosen or step.__module__ == loops.__name__]
#: the steps that add Ops of users and graphs inside Ops
USERS = [step for step in STEPS if step.__module__ == users.__name__]


def grown(
    below: Below,
    steps: int = 16,
    special: bool = False,
    refused: dict[str, int] | None = None,
    preferred: list[Step] | None = None,
    runs: int = 3,
) -> RandomProgram | None:
    """Return a random program of up to ``steps`` + 1 statements, or None if none was accepted.

    below: makes the choices. special: with NaN and infinity. refused: counts refused statements.
    preferred: every second statement, and at least one, is made by one of these. runs: with random
    roundings, which tell how exact a result can be.
    """
    g = Grower(below, special, runs=runs)
    added: set[Step] = set()
    for _ in range(2 + below(steps)):
        step = g.choice(preferred if preferred and below(2) else STEPS)
        try:
            step(g)
        except Rejected:
            continue
        added.add(step)
    if preferred and added.isdisjoint(preferred):
        return None
    if refused is not None:
        for text, n in g.refused.items():
            refused[text] = refused.get(text, 0) + n
    program = g.program
    made = list(program.statements)
    if not made:
        return None
    read = {n for name in made for n in program.needed([name]) - {name}}
    # mostly variables that nothing reads, so that most of the program is needed
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
