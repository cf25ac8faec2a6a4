"""Programs as values: their text, and what is none."""

import textwrap

import numpy as np
import pytest

from opwise.scalar import UnaryScalarOp, rowrewrites
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import IllFormed, Instruction, Literal, Program
from opwise.scalar.recurrence import Recurrence
from opwise.scalar.rowloops import RowProgram
from opwise.scalar.take import take

pytestmark = pytest.mark.null

TEXTS = [
    """\
    Program(float64, int8)
      %2 = exp(%0) : float64
      %3 = Literal[2.5]() : float32
      %4 = Cast(%1) : complex64
      %5 = mul(%2, %3, %0) : float64
      return %5, %0""",
    """\
    Program(float32, int64)
      %2 = Take(%0, %1) : float32
      return %2""",
    """\
    Program()
      %0 = Literal[nan]() : float16
      %1 = Literal[(1+2j)]() : complex128
      %2 = Literal[18446744073709551615]() : uint64
      %3 = Literal[True]() : bool
      return %0, %1, %2, %3""",
    """\
    RowProgram(float32, float32)
      wide_inputs = (True, False)
      %2 = RowFold[add, float64](%0) : float64
      %3 = sub(%0, %1) : float32
      %4 = RowWindow[-1, 2](%3) : float32
      return %4, %2""",
    """\
    Recurrence(float64)
      sequences = ()
      states = ((-1,), ())
      constants = ()
      taps = ((1,), (1,))
      new = ((), (3,))
      results = ()
      turned = (0,)
      %1 = Length[0, 0]() : int64
      %2 = Literal[0]() : int64
      %3 = Carried(%0) : float64
      %4 = Opens[None](%1) : int64
        %5 = Read[0, 1](%4) : float64
        %6 = lt(%5, %3) : bool
        %7 = Branches(%6) : bool
          %8 = exp(%5) : float64
        %9 = Otherwise() : bool
          %10 = neg(%5) : float64
        %11 = Joins() : bool
        %12 = Chosen(%8, %10) : float64
        %13 = add(%3, %12) : float64
      %14 = Closes[1](%3, %13) : int64
      %15 = Write[0, 1](%2, %3) : float64
      return""",
    """\
    Program(float64)
      %1 = Scratch[2]() : float64
      %2 = Write[2](%0) : float64
      %3 = Read[2]() : float64
      return %3""",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_says_all_of_a_program(text):
    text = textwrap.dedent(text)
    program = Program.parse(text)
    assert str(program) == text
    again = Program.parse(str(program))
    assert again == program or "nan" in text
    assert type(again) is type(program) and text.startswith(type(again).__name__)


def test_a_parsed_program_is_the_built_one():
    built = Program(
        ("float32", "int64"),
        (
            Instruction(take, (0, 1), "float32"),
            Instruction(Literal(np.float32(0.1)), (), "float32"),
            Instruction(OPS["add"], (2, 3), "float32"),
            Instruction(cast_op("float64"), (4,), "float64"),
        ),
        (5,),
    )
    assert Program.parse(str(built)) == built and hash(Program.parse(str(built))) == hash(built)
    assert built.dtypes == ("float32", "int64", "float32", "float32", "float32", "float64")
    assert built.out_dtypes == ("float64",) and built.unread == frozenset()


def test_an_attribute_of_an_op_of_a_user_is_no_program():
    class Own(UnaryScalarOp):
        program = "a name of its own"

    op = Own()
    made = Program.of(op, ["float64"], ["float32"])
    assert made == Program(("float64",), (Instruction(op, (0,), "float32"),), (1,))


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ("Program(float64)\n%1 = exp(%2) : float64", "%2 is not computed yet: %1 = exp"),
        ("Program(float64)\n%1 = exp(%-1) : float64", "%-1 is not computed yet"),
        ("Program(float64)\n%1 = exp(%0, %0) : float64", "another number of operands: %1 = exp"),
        ("Program(float64)\n%1 = add() : float64", "another number of operands"),
        ("Program(float64)\n%1 = exp(%0) : float63", "no dtype: float63"),
        ("Program(word)\nreturn %0", "no dtype: word"),
        ("Program(float64)\n%2 = exp(%0) : float64", "%2 is not the next slot"),
        ("Program(float64)\n%1 = expp(%0) : float64", "no operation expp"),
        ("Program(float64)\n%1 = Read[0](%0) : float64", "another number of operands"),
        ("Program(float64)\nexp of %0", "no instruction: exp of %0"),
        ("Program(float64)\nreturn %1", "%1 is no value of the program"),
        ("Program(float64)\nreturn one", "no slots: one"),
        ("Loop(float64)\nreturn %0", "no kind of Program: Loop"),
        ("Program()\n%0 = Joins() : bool", "no block ends here: %0 = Joins"),
        ("Program()\n%0 = Opens[3]() : int64", "a block does not end"),
        (
            "Program()\n%0 = Opens[3]() : int64\n%1 = Closes[0]() : int64\n%2 = neg(%0) : int64",
            "%0 is not known behind its block: %2 = neg",
        ),
        (
            "Program()\n%0 = Opens[3]() : int64\n%1 = Closes[0]() : int64\nreturn %0",
            "%0 is no value of the program",
        ),
        (
            "RowProgram(float64)\nwide_inputs = (False,)\n%1 = RowFold[add, float64](%0) : float64",
            "%1 reads one number a row, and needs elements",
        ),
        ("RowProgram(float64)\nwide_inputs = ()\nreturn %0", "wide_inputs says not of each input"),
        ("RowProgram(float64)\nreturn %0", "wide_inputs"),
        ("RowProgram(float64)\nwide_inputs = (True\nreturn %0", "was never closed"),
        ("Program()\n%0 = Literal[one]() : int64\nreturn %0", "'one'"),
        ("", "no kind of Program: "),
        (
            "Recurrence(float64)\nsequences = ()\nstates = ()\nconstants = ()\ntaps = ()\n"
            "new = ()\nresults = ()\nreturn",
            "the inputs are not those of its operands",
        ),
    ],
)
def test_what_is_no_program(lines, wrong):
    with pytest.raises(IllFormed) as caught:
        Program.parse(lines)
    assert wrong in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "%0 = Read[7]() : float64",  # there is no such operand
        "%0 = Length[0, 2]() : int64",  # it has one dimension
        "%0 = Read[0]() : float64",
        "%0 = Length[0, 0]() : int64\n%1 = Write[0, 1](%0, %0) : int64",  # it is a constant
    ],
)
def test_operands_in_memory_are_those_of_the_recurrence(line):
    with pytest.raises(IllFormed, match=r"asks of operand \d what it has not"):
        Recurrence.parse(
            "Recurrence()\nsequences = ()\nstates = ()\nconstants = ((-1,),)\ntaps = ()\n"
            f"new = ()\nresults = ()\n{line}"
        )


def test_a_division_by_a_root_becomes_a_product():
    program = RowProgram.parse("""
        RowProgram(float32)
          wide_inputs = (True,)
          %1 = sqr(%0) : float32
          %2 = RowFold[add, float32](%1) : float32
          %3 = sqrt(%2) : float32
          %4 = true_div(%0, %3) : float32
          return %4
    """)
    assert str(rowrewrites.rewritten(program)) == textwrap.dedent("""\
        RowProgram(float32)
          wide_inputs = (True,)
          %1 = sqr(%0) : float32
          %2 = RowFold[add, float32](%1) : float32
          %3 = sqrt(%2) : float32
          %4 = inv(%3) : float32
          %5 = mul(%0, %4) : float32
          return %5""")


def test_sums_of_squares_about_a_mean_need_one_pass():
    program = RowProgram.parse("""
        RowProgram(float32, float64)
          wide_inputs = (True, False)
          %2 = RowFold[add, float64](%0) : float32
          %3 = Cast(%1) : float32
          %4 = true_div(%2, %3) : float32
          %5 = sub(%0, %4) : float32
          %6 = sqr(%5) : float32
          %7 = RowFold[add, float64](%6) : float32
          return %7
    """)
    before, after = program, rowrewrites.rewritten(program)
    assert max(before.levels) == 2 and max(after.levels) == 1
    assert Program.parse(str(after)) == after and "RowFirst(%0) : float32" in str(after)
