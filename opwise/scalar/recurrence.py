"""C text of a recurrence: a scalar program that is repeated, with its states in registers.

The function has the form of other loops, ``void name(const void *ctx, char **p, const ow_i64 *st,
ow_i64 n)``, and repeats the program at most n times. The operands at ``p`` are the sequences from
the row of the first step on, the states and the results from their first rows on, the constants,
and two integers to write: how many steps were done, and why they ended (see ``ENDED`` and
``LEFT``). ``st`` has for each sequence the bytes from row to row; for each state and result also
the number of the row that the first step writes, and how many rows there are: a row is written at
its number modulo that. Behind these, and for each constant, are the bytes along each dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opwise.scalar import csource
from opwise.scalar.composite import Instruction
from opwise.scalar.loops import slot_dtype
from opwise.scalar.op import ScalarOp

Shape = tuple[int, ...]

#: without it, gcc might take some operations of several steps at once, by vector functions that
#: round otherwise than those of the VM's loops over one element
_SEPARATE = '__asm__ volatile("");'

#: why a loop ended before n steps: its condition holds
ENDED = 1
#: the next step is one that the VM has to run
LEFT = 2


class _Mark(ScalarOp):
    """What begins, or is part of, a loop among the instructions of a recurrence."""

    #: how many steps the loop has, or what else tells marks of a class from each other
    count = 0

    def __init__(self, count: int = 0) -> None:
        super().__init__()
        self.count = count

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.count == getattr(other, "count", None)

    def __hash__(self) -> int:
        return hash((type(self), self.count))


class Opens(_Mark):
    """Begins an inner loop of ``count`` steps: the instructions up to its ``Closes``."""


class Carried(_Mark):
    """A value that each inner step hands to the next one; reads the first one.

    After the loop it is that of the last step. Nothing else of the loop may be read there.
    """


class Closes(_Mark):
    """Ends an inner loop; reads ``count`` carried values, their new ones, and perhaps a condition.

    If the condition holds after a step, that one is the last.
    """


@dataclass(frozen=True)
class Recurrence:
    """A scalar program that is repeated.

    Its input slots are the elements of rows and constants in C order: a row of each sequence, a row
    of each tap of each state, each constant.
    """

    in_dtypes: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    #: shapes of the rows of sequences and states, and of constants
    sequences: tuple[Shape, ...]
    states: tuple[Shape, ...]
    constants: tuple[Shape, ...]
    #: by state, how many steps ago the values are from that a step reads
    taps: tuple[tuple[int, ...], ...]
    #: by state, the slots of its new value
    new: tuple[tuple[int, ...], ...]
    #: (shape, slots) of each result
    results: tuple[tuple[Shape, tuple[int, ...]], ...]
    #: the slot of the condition that ends the loop after a step
    ends: int | None = None
    #: the slots of conditions that leave the step to the VM
    leaves: tuple[int, ...] = ()

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of rows and constants, in the order of the operands."""
        return [
            *self.sequences, *self.states, *(shape for shape, _ in self.results), *self.constants,
        ]  # fmt: skip

    @property
    def nanoseconds(self) -> float:
        """About how long a step takes."""
        total, times = 1.0, [1]
        for one in self.instructions:
            if isinstance(one.op, Opens):
                times.append(times[-1] * one.op.count)
            elif isinstance(one.op, Closes):
                total += times.pop()
            elif one.op.row is not None:
                total += times[-1] * (1 + 10 * len(one.op.row.libm))
        return total

    def text(self, name: str) -> list[str] | None:
        """Return the C definition of the loop; None if an operation has no expression."""
        lines = _Lines(self, name)
        return ["\n".join(lines.function())] if lines.program() else None


def _size(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64))


class _Lines:
    """Makes the C function of a recurrence."""

    def __init__(self, recurrence: Recurrence, name: str) -> None:
        self.of, self.name = recurrence, name
        #: C expression of each slot
        self.slots = [f"x{i}" for i in range(len(recurrence.in_dtypes))]
        #: the statements that set variables before all steps, and in each
        self.before: list[str] = []
        self.each: list[str] = []
        self.after: list[str] = []
        #: those of ``after`` that let values be a step older
        self.shifts: list[str] = []
        #: for each operand, the place of its numbers in ``st``, and of those of its dimensions
        self._strides: list[int] = []
        self._dimensions: list[int] = []
        place, outputs = 0, len(recurrence.states) + len(recurrence.results)
        numbers = [1] * len(recurrence.sequences) + [3] * outputs + [0] * len(recurrence.constants)
        for shape, count in zip(recurrence.shapes, numbers, strict=True):
            self._strides.append(place)
            self._dimensions.append(place + count)
            place += count + len(shape)

    def program(self) -> bool:
        """Make the statements of the program; return whether all operations have C."""
        of = self.of
        self._inputs()
        #: the statements of each loop around an instruction, after those before all of them
        bodies = [self.before, self.each]
        counts: list[int] = []
        # by slot, in how many loops its value changes
        depths = [1] * len(of.in_dtypes)
        for slot in range(len(depths) - sum(map(_size, of.constants)), len(depths)):
            depths[slot] = 0
        for k, one in enumerate(of.instructions):
            args = [self.slots[a] for a in one.args]
            depth, type_ = max((depths[a] for a in one.args), default=0), csource.c_type(one.dtype)
            self.slots.append(f"t{k}")
            if isinstance(one.op, Opens):
                bodies.append([])
                counts.append(one.op.count)
            elif isinstance(one.op, Carried):
                depth = len(bodies) - 1
                bodies[-2].append(f"{type_} t{k} = {args[0]};")
            elif isinstance(one.op, Closes):
                body, depth = bodies.pop(), len(bodies) - 1
                for slot in one.args[: one.op.count]:
                    depths[slot] = depth
                bodies[-1] += self._loop(one, args, body, counts.pop())
            else:
                dtypes = [slot_dtype(a, of.instructions, of.in_dtypes) for a in one.args]
                text = csource.step_c(one.op, args, dtypes, one.dtype)
                if text is None:
                    return False
                bodies[depth].append(f"const {type_} t{k} = {text};")
            depths.append(depth)
        self._outputs()
        return True

    def _loop(self, closes: Instruction, args: list[str], body: list[str], count: int) -> list[str]:
        """Return the statements of an inner loop. args: C expressions of what ``closes`` reads."""
        assert isinstance(closes.op, Closes)
        of, n = self.of, closes.op.count
        types = [
            csource.c_type(slot_dtype(a, of.instructions, of.in_dtypes)) for a in closes.args[:n]
        ]
        # a new value may be an old one of another carried one, which is about to change
        new = [
            f"const {type_} new_{a} = {b};"
            for type_, a, b in zip(types, args, args[n:], strict=False)
        ]
        ends = [f"const int last = {text} != 0;" for text in args[2 * n :]]
        stop = ["if (last) break;" for _ in ends]
        u = f"u_{args[0]}"
        return [
            f"for (ow_i64 {u} = 0; {u} < {count}; {u}++) {{",
            f"    {_SEPARATE}",
            *(
                f"    {line}"
                for line in (*body, *new, *ends, *(f"{a} = new_{a};" for a in args[:n]), *stop)
            ),
            "}",
        ]

    def _elements(self, operand: int, shape: Shape) -> list[str]:
        """Return the C expressions of the bytes from a row's start to each of its elements."""
        place = self._dimensions[operand]
        return [
            " + ".join([f"{i} * st[{place + d}]" for d, i in enumerate(index) if i] or ["0"])
            for index in np.ndindex(*shape)
        ]

    def _inputs(self) -> None:
        of = self.of
        slot = 0
        for k, shape in enumerate(of.sequences):
            for at in self._elements(k, shape):
                self.before.append(f"const char *const a{slot} = p[{k}] + {at};")
                self.before.append(f"const ow_i64 d{slot} = st[{self._strides[k]}];")
                self.each.append(self._loaded(slot, f"a{slot} + t * d{slot}"))
                slot += 1
        for k, (shape, taps) in enumerate(zip(of.states, of.taps, strict=True)):
            self._state(k, slot, shape, taps)
            slot += len(taps) * _size(shape)
        for k, shape in enumerate(of.constants, len(of.shapes) - len(of.constants)):
            for at in self._elements(k, shape):
                self.before.append(self._loaded(slot, f"p[{k}] + {at}"))
                slot += 1

    def _loaded(self, slot: int, place: str) -> str:
        """Return the statement that sets the variable of an input slot."""
        type_ = csource.c_type(self.of.in_dtypes[slot])
        return f"const {type_} x{slot} = *(const {type_} *)({place});"

    def _state(self, k: int, first: int, shape: Shape, taps: tuple[int, ...]) -> None:
        """Keep the values of a state in variables, one for each of the steps that it spans.

        first: the slot of its first element.
        """
        if not _size(shape):
            return
        operand = len(self.of.sequences) + k
        most, type_ = max(taps), csource.c_type(self.of.in_dtypes[first])
        for e, at in enumerate(self._elements(operand, shape)):
            names = [f"s{k}_{e}_{back}" for back in range(1, most + 1)]
            for back, name in enumerate(names, 1):
                place = f"p[{operand}] + {self._row(operand, back)} + {at}"
                self.before.append(f"{type_} {name} = *(const {type_} *)({place});")
            for j, tap in enumerate(taps):
                self.slots[first + j * _size(shape) + e] = names[tap - 1]
            self.shifts += [f"{a} = {b};" for a, b in zip(names[:0:-1], names[-2::-1], strict=True)]

    def _row(self, operand: int, back: int) -> str:
        """Return the bytes to the row that is written some steps before the first one."""
        place = self._strides[operand]
        return f"(st[{place + 1}] - {back}) % st[{place + 2}] * st[{place}]"

    def _outputs(self) -> None:
        of = self.of
        for k, (shape, slots) in enumerate(
            [*zip(of.states, of.new, strict=True), *of.results], len(of.sequences)
        ):
            place = self._strides[k]
            self.before += [
                f"const ow_i64 y{k} = st[{place}], rows{k} = st[{place + 2}];",
                f"ow_i64 row{k} = st[{place + 1}] % rows{k};",
            ]
            for e, (slot, at) in enumerate(zip(slots, self._elements(k, shape), strict=True)):
                type_ = csource.c_type(slot_dtype(slot, of.instructions, of.in_dtypes))
                self.before.append(f"char *const z{k}_{e} = p[{k}] + {at};")
                # a new value may be an old one of another state, which is about to change
                self.each.append(f"const {type_} n{k}_{e} = {self.slots[slot]};")
                self.after.append(f"*({type_} *)(z{k}_{e} + row{k} * y{k}) = n{k}_{e};")
            self.after.append(f"row{k} = row{k} + 1 == rows{k} ? 0 : row{k} + 1;")
        self.after += self.shifts
        for k, new in enumerate(of.new):
            output = len(of.sequences) + k
            self.after += [f"s{k}_{e}_1 = n{output}_{e};" for e in range(len(new))]

    def function(self) -> list[str]:
        of = self.of
        result = len(of.shapes)
        leaves = [f"if ({self.slots[s]}) {{ why = {LEFT}; break; }}" for s in of.leaves]
        ends = [] if of.ends is None else [f"const int last = {self.slots[of.ends]} != 0;"]
        stop = [] if of.ends is None else [f"if (last) {{ t++; why = {ENDED}; break; }}"]
        return [
            f"void {self.name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 n)",
            "{",
            *(f"    {line}" for line in self.before),
            "    ow_i64 t = 0, why = 0;",
            "    for (; t < n; t++) {",
            f"        {_SEPARATE}",
            *(f"        {line}" for line in (*self.each, *leaves, *ends, *self.after, *stop)),
            "    }",
            f"    *(ow_i64 *)p[{result}] = t;",
            f"    *(ow_i64 *)p[{result + 1}] = why;",
            "}",
        ]
