"""Programs of scalar operations: values that are checked, printed and parsed.

Elementwise loops, row programs and recurrences are kinds of them. Their text says all that they
are, so what turns one program into another is tested text in, text out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from opwise.scalar import dtypes
from opwise.scalar.op import OPS, Computation, ScalarOp, cast_op
from opwise.scalar.spec import Array

_T = TypeVar("_T")
#: a program's first line, what it says of itself, an instruction, and the last line
_HEAD = re.compile(r"(\w+)\((.*)\)")
_FIELD = re.compile(r"(\w+) = (.*)")
_INSTRUCTION = re.compile(r"%(\d+) = (\w+)(?:\[(.*)\])?\((.*)\) : (\w+)")
_RETURN = re.compile(r"return ?(.*)")


class Instruction(NamedTuple):
    """One operation of a program, whose result is the next slot."""

    op: ScalarOp
    #: the slots it reads
    args: tuple[int, ...]
    #: of its result
    dtype: str


class Literal(ScalarOp):
    """A constant inside a program."""

    nin = 0

    def __init__(self, value: Array) -> None:
        super().__init__()
        self.value = value
        self._key = (value.dtype.name, value.tobytes())

    def computation(self, in_dtypes: Sequence[str], out_dtypes: Sequence[str]) -> Computation:
        return lambda arrays: [np.asarray(self.value)]

    def element_flops(self, n_inputs: int) -> int | None:
        return 0

    def has_cost(self) -> bool:
        return True

    def element_cost(self, n_inputs: int) -> float:
        return 0.0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return f"Constant{{{self.value}}}"


class Mark(ScalarOp):
    """An instruction that is no operation of the scalar table, nor of a user.

    Those of one class with equal ``of`` are equal. ``nin`` is the number of slots that it reads.
    """

    #: whether it is the first instruction of a block, whose values are not known behind the block
    begins = False
    #: whether it is the first instruction behind a block
    ends = False
    #: whether its value is known everywhere behind it, as that of a literal
    is_constant = False
    #: whether it may read the values of blocks that have ended
    reads_ended = False

    def __init__(self, *of: int | str | None) -> None:
        super().__init__()
        self.of: tuple[Any, ...] = of

    def takes(self, n: int) -> bool:
        """Return whether it may read ``n`` slots."""
        return n == self.nin

    def has_cost(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.of == getattr(other, "of", None)

    def __hash__(self) -> int:
        return hash((type(self), self.of))

    def __str__(self) -> str:
        return f"{type(self).__name__}[{', '.join(map(str, self.of))}]"


#: what is said of an operation that is no mark
_PLAIN = Mark()


class IllFormed(ValueError):
    """A program that is none, or a text of none."""


@dataclass(frozen=True)
class Program:
    """A straight-line program over numbered slots.

    The inputs are in the first slots, and each instruction computes the next one.
    """

    #: the dtype of each input
    in_dtypes: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    #: the slots of the results
    outs: tuple[int, ...] = ()

    @classmethod
    def of(cls, op: ScalarOp, in_dtypes: Sequence[str], out_dtypes: Sequence[str]) -> Self:
        """Return the program of a scalar op on operands of these dtypes."""
        program = getattr(op, "program", None)
        if isinstance(program, Program):
            return cls(tuple(in_dtypes), program.instructions, program.outs)
        n = len(in_dtypes)
        return cls(tuple(in_dtypes), (Instruction(op, tuple(range(n)), out_dtypes[0]),), (n,))

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of each slot."""
        return (*self.in_dtypes, *(one.dtype for one in self.instructions))

    @property
    def out_dtypes(self) -> tuple[str, ...]:
        """The dtype of each result."""
        return tuple(self.dtypes[slot] for slot in self.outs)

    @cached_property
    def unread(self) -> frozenset[int]:
        """The inputs whose values nothing reads."""
        read = set(self.outs)
        for one in self.instructions:
            unread = one.op.unread()
            read.update(a for i, a in enumerate(one.args) if i not in unread)
        return frozenset(range(len(self.in_dtypes))) - read

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def numbered(self) -> Iterator[tuple[int, Instruction]]:
        """Yield (slot, instruction) in order."""
        return enumerate(self.instructions, len(self.in_dtypes))

    def instruction(self, slot: int) -> Instruction | None:
        """Return what computes a slot; None for an input."""
        k = slot - len(self.in_dtypes)
        return self.instructions[k] if k >= 0 else None

    def arguments(self, one: Instruction) -> list[str]:
        """Return the dtypes of what an instruction reads."""
        return [self.dtypes[a] for a in one.args]

    # --- the checker ------------------------------------------------------------------------------

    def check(self) -> Self:
        """Return the program; raise IllFormed, with the text of what is wrong, if it is none."""
        for dtype in self.dtypes:
            if dtype not in dtypes.ALL:
                raise IllFormed(f"no dtype: {dtype}:\n{self}")
        block, around = 0, [0]
        #: the block in which each slot is known
        blocks = [0] * len(self.in_dtypes)
        for slot, one in self.numbered():
            mark = one.op if isinstance(one.op, Mark) else _PLAIN
            if not _takes(one.op, len(one.args)):
                raise _ill_formed("another number of operands", slot, one)
            for a in one.args:
                if not 0 <= a < slot:
                    raise _ill_formed(f"%{a} is not computed yet", slot, one)
                if blocks[a] not in around and not mark.reads_ended:
                    raise _ill_formed(f"%{a} is not known behind its block", slot, one)
            if mark.ends:
                if len(around) == 1:
                    raise _ill_formed("no block ends here", slot, one)
                around.pop()
            if mark.begins:
                block += 1
                around.append(block)
            is_constant = mark.is_constant or isinstance(one.op, Literal)
            blocks.append(0 if is_constant else around[-1])
        if len(around) > 1:
            raise IllFormed(f"a block does not end:\n{self}")
        for slot in self.read_at_end():
            if not 0 <= slot < len(blocks) or blocks[slot]:
                raise IllFormed(f"%{slot} is no value of the program:\n{self}")
        return self

    def read_at_end(self) -> Iterator[int]:
        """Yield the slots that are read when the instructions are done."""
        yield from self.outs

    # --- text -------------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}({', '.join(self.in_dtypes)})"]
        for name, default in self._own_fields().items():
            value = getattr(self, name)
            if value != default:
                value = tuple(sorted(value)) if isinstance(value, frozenset) else value
                lines.append(f"  {name} = {value}")
        indent = "  "
        for slot, one in self.numbered():
            mark = one.op if isinstance(one.op, Mark) else _PLAIN
            indent = indent[2:] if mark.ends else indent
            lines.append(indent + _instruction_text(slot, one))
            indent += "  " if mark.begins else ""
        return "\n".join([*lines, f"  return {_slots_text(self.outs)}".rstrip()])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the program of a text, as ``str`` gives it, after a check.

        Operations are those of the scalar table. Raises IllFormed for what is no program.
        """
        try:
            return cls._parsed(*(line.strip() for line in text.strip().split("\n")))
        except IllFormed:
            raise
        except (SyntaxError, TypeError, ValueError) as error:  # of a number, or of what is missing
            raise IllFormed(f"{error}:\n{text}") from None

    @classmethod
    def _parsed(cls, head: str, *lines: str) -> Self:
        found = _HEAD.fullmatch(head)
        kind = found and {c.__name__: c for c in _with_subclasses(cls)}.get(found[1])
        if not found or not kind:
            raise IllFormed(f"no kind of {cls.__name__}: {head}")
        given: dict[str, Any] = {"in_dtypes": tuple(found[2].split(", ")) if found[2] else ()}
        own = kind._own_fields()
        instructions: list[Instruction] = []
        for line in lines:
            if (field := _FIELD.fullmatch(line)) and field[1] in own:
                value = ast.literal_eval(field[2])
                is_set = isinstance(own[field[1]], frozenset)
                given[field[1]] = frozenset(value) if is_set else value
            elif result := _RETURN.fullmatch(line):
                given["outs"] = _slots(result[1])
            else:
                slot, one = _instruction(line)
                if slot != len(given["in_dtypes"]) + len(instructions):
                    raise IllFormed(f"%{slot} is not the next slot: {line}")
                instructions.append(one)
        return kind(instructions=tuple(instructions), **given).check()

    @classmethod
    def _own_fields(cls) -> dict[str, Any]:
        """Return {name: default} of what a kind of program has besides what all have."""
        every = {f.name: f.default for f in fields(cls)}
        return {name: every[name] for name in every if name not in _COMMON}


_COMMON = tuple(f.name for f in fields(Program))


def _with_subclasses(cls: type[_T]) -> Iterator[type[_T]]:
    yield cls
    for each in cls.__subclasses__():
        yield from _with_subclasses(each)


def _ill_formed(wrong: str, slot: int, one: Instruction) -> IllFormed:
    return IllFormed(f"{wrong}: {_instruction_text(slot, one)}")


def _takes(op: ScalarOp, n: int) -> bool:
    if isinstance(op, Mark):
        return op.takes(n)
    return n == op.nin if op.nin >= 0 else n > 0


def _instruction_text(slot: int, one: Instruction) -> str:
    op = one.op
    if op.row is not None:
        name = op.row.name
    elif isinstance(op, Literal):
        name = f"Literal[{np.asarray(op.value).item()}]"
    else:
        name = str(op) if isinstance(op, Mark) and op.of else type(op).__name__
    return f"%{slot} = {name}({_slots_text(one.args)}) : {one.dtype}"


def _slots_text(slots: Sequence[int]) -> str:
    return ", ".join(f"%{slot}" for slot in slots)


def _slots(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(each.removeprefix("%")) for each in text.split(", ")) if text else ()
    except ValueError:
        raise IllFormed(f"no slots: {text}") from None


def _instruction(line: str) -> tuple[int, Instruction]:
    """Return (slot, instruction) of a line."""
    found = _INSTRUCTION.fullmatch(line)
    if not found:
        raise IllFormed(f"no instruction: {line}")
    slot, name, of, args, dtype = found.groups()
    return int(slot), Instruction(_operation(name, of, dtype, line), _slots(args), dtype)


def _operation(name: str, of: str | None, dtype: str, line: str) -> ScalarOp:
    if name in OPS:
        return OPS[name]
    if name == "Cast":
        return cast_op(dtype)
    if name == "Literal":
        return Literal(np.array(_number(of or "", dtype), dtype))
    for kind in _with_subclasses(Mark):
        if kind.__name__ == name:
            return kind(*map(_of, of.split(", ") if of else ()))
    raise IllFormed(f"no operation {name}: {line}")


def _number(text: str, dtype: str) -> complex:
    if dtype in dtypes.COMPLEX:
        return complex(text)
    if dtype in dtypes.FLOATS:
        return float(text)
    return text == "True" if dtype == "bool" else int(text)


def _of(text: str) -> int | str | None:
    return None if text == "None" else int(text) if re.fullmatch(r"-?\d+", text) else text
