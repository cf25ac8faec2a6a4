"""Loop fission: short loops that, one after the other, compute what a long one does."""

import random
import textwrap

import numpy as np
import pytest

from opwise.scalar import Composite, fission
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction, Program

pytestmark = pytest.mark.null

CHEAP, FUNCTIONS = ["add", "mul", "sub", "maximum"], ["tanh", "exp", "scalar_sigmoid", "erf"]


def program(seed):
    """Return a random program."""
    rng = random.Random(seed)
    dtypes = [rng.choice(["float32", "float64"]) for _ in range(rng.randint(1, 4))]
    n = len(dtypes)
    steps = []
    for _ in range(rng.randint(1, 25)):
        dtype = rng.choice(["float32", "float64"])
        same = [s for s, d in enumerate(dtypes) if d == dtype]
        if not same or rng.random() < 0.1:
            step = Instruction(cast_op(dtype), (rng.randrange(len(dtypes)),), dtype)
        elif rng.random() < 0.4:
            step = Instruction(OPS[rng.choice(FUNCTIONS)], (rng.choice(same),), dtype)
        else:
            step = Instruction(OPS[rng.choice(CHEAP)], (rng.choice(same), rng.choice(same)), dtype)
        steps.append(step)
        dtypes.append(dtype)
    made = range(n, len(dtypes))
    outs = rng.sample(made, min(len(made), rng.randint(1, 3)))
    return Program(tuple(dtypes[:n]), tuple(steps), tuple(outs)).check()


def run(program, values):
    op = Composite.from_program(program.in_dtypes, program.instructions, program.outs)
    with np.errstate(all="ignore"):
        return op.on_arrays(values, None)


@pytest.mark.parametrize("seed", range(60))
def test_sub_loops_compute_what_the_program_does(seed):
    whole = program(seed)
    rng = np.random.RandomState(seed)
    values = [rng.uniform(-1, 1, 5).astype(d) for d in whole.in_dtypes]
    parts = fission.split(whole)
    dtypes, places = fission.buffers(parts, len(whole.in_dtypes))
    memory = [None] * len(dtypes)
    for part in parts:
        taken = [values[s] if s < len(values) else memory[places[s]] for s in part.takes]
        assert [v.dtype.name for v in taken] == list(part.in_dtypes)
        results = run(part.check(), taken)
        if part is not parts[-1]:
            for slot, result in zip(part.gives, results, strict=True):
                assert result.dtype.name == dtypes[places[slot]]
                memory[places[slot]] = result
    for found, expected in zip(results, run(whole, values), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(60))
def test_a_sub_loop_has_one_function_at_most(seed):
    whole = program(seed)
    parts = fission.split(whole)
    functions = [sum(s.op.row is not None and s.op.row.name in FUNCTIONS for s in p.instructions)
                 for p in parts]  # fmt: skip
    assert max(functions) <= 1
    assert len(parts) == max(1, sum(functions))
    assert sum(len(p.instructions) for p in parts) == len(whole.instructions)


def test_a_program_without_functions_is_one_sub_loop():
    steps = tuple(Instruction(OPS["add"], (k, k), "float64") for k in range(50))
    (part,) = fission.split(Program(("float64",), steps, (50,)))
    assert part.instructions == steps and part.outs == (50,) and part.gives == (50,)


def test_what_a_split_makes():
    whole = Program.parse("""
        Program(float64, float32)
          %2 = exp(%0) : float64
          %3 = mul(%2, %0) : float64
          %4 = tanh(%3) : float64
          %5 = add(%4, %1) : float64
          %6 = log(%2) : float64
          return %5, %6
    """)
    first, second, third = map(str, fission.split(whole))
    assert first == textwrap.dedent("""\
        SubLoop(float64)
          takes = (0,)
          gives = (2, 3)
          %1 = exp(%0) : float64
          %2 = mul(%1, %0) : float64
          return %1, %2""")
    assert second == textwrap.dedent("""\
        SubLoop(float64, float32)
          takes = (3, 1)
          gives = (5,)
          %2 = tanh(%0) : float64
          %3 = add(%2, %1) : float64
          return %3""")
    assert third == textwrap.dedent("""\
        SubLoop(float64, float64)
          takes = (2, 5)
          gives = (5, 6)
          %2 = log(%0) : float64
          return %1, %2""")


def test_repetitions_are_equal_sub_loops():
    """h = tanh(h * w), again and again: but for the first and the last, they are the same."""
    steps, h = [], 0
    for k in range(20):
        steps += [
            Instruction(OPS["mul"], (h, 1), "float64"),
            Instruction(OPS["tanh"], (2 + 2 * k,), "float64"),
        ]
        h = 3 + 2 * k
    parts = fission.split(Program(("float64", "float64"), tuple(steps), (h,)))
    assert len(parts) == 20
    assert len({(p.instructions, p.outs, p.in_dtypes) for p in parts}) <= 3


def test_buffers_are_used_again():
    steps = tuple(Instruction(OPS["tanh"], (k,), "float64") for k in range(40))
    parts = fission.split(Program(("float64",), steps, (40,)))
    dtypes, places = fission.buffers(parts, 1)
    assert len(dtypes) == 2 and len(places) == 39
