"""C text of a recurrence: a scalar program that is repeated.

Numbers and small arrays are in registers. Arrays of any length stay in memory, where instructions
read and write their elements. Loops and branches inside a step are instructions that open and close
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, cast

import numpy as np

from opwise.scalar import csource
from opwise.scalar.composite import Instruction, Literal
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
#: the VM has to run the next step, which fails; parts of it have been done
FAILED = 3


class Mark(ScalarOp):
    """An instruction that computes no scalar operation.

    Those of one class with equal ``of`` are equal.
    """

    def __init__(self, *of: int | None) -> None:
        super().__init__()
        self.of = of

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.of == getattr(other, "of", None)

    def __hash__(self) -> int:
        return hash((type(self), self.of))

    def has_cost(self) -> bool:
        return True


class Opens(Mark):
    """Begins an inner loop: the instructions up to its ``Closes``; its value counts the steps.

    ``Opens(n)`` has n steps, ``Opens(None)`` as many as the number that it reads.
    """


class Carried(Mark):
    """A value that may change: each inner step hands it to the next one.

    It stands before the block that is opened next, and begins as what it reads, if anything.
    After the loop it is that of the last step. Nothing else of the loop may be read there.
    """


class Closes(Mark):
    """Ends an inner loop; reads n carried values, their new ones, and perhaps a condition.

    If the condition holds after a step, that one is the last.
    """


class Branches(Mark):
    """Begins a branch, which is run if the condition that it reads holds."""


class Otherwise(Mark):
    """Ends that branch and begins the other one."""


class Joins(Mark):
    """Ends the other branch. What stands right behind it are ``Chosen``."""


class Chosen(Mark):
    """A value of the branch that was run; reads that of each."""


class Length(Mark):
    """The length of an operand, ``Length(operand, dimension)``."""


class Scratch(Mark):
    """Makes an array of a step, ``Scratch(operand)``; reads its lengths.

    Its elements are not set. Each run of the instruction gives the same memory.
    """


class Read(Mark):
    """An element of an array in memory; reads an index for each dimension.

    ``Read(operand, *looked)``: by dimension, whether to look at the index. A negative one counts
    from the end, and the step fails where there is no such element.
    """


class ReadUnless(Mark):
    """An element of an array, ``ReadUnless(operand)``, or 0; reads a condition and the indices."""


class Write(Mark):
    """Writes an element of an array in memory; reads what ``Read`` reads, and the new value."""


class Short(Mark):
    """Leaves all steps to the VM if a number that none changes is larger, ``Short(most)``."""


class Fails(Mark):
    """The step fails if the condition that it reads holds."""


@dataclass(frozen=True)
class Recurrence:
    """A scalar program that is repeated.

    Its input slots are the elements of rows and constants in C order: a row of each sequence, a row
    of each tap of each state, each constant. Those in memory have no slots: their lengths are
    -1 for any, -1 - n for at most n. A state in memory has the tap of one step, and keeps one row.
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
    #: the operands that are known to lie otherwise than with their last elements side by side
    turned: frozenset[int] = frozenset()

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of rows and constants, in the order of the operands."""
        return [
            *self.sequences, *self.states, *(shape for shape, _ in self.results), *self.constants,
        ]  # fmt: skip

    @property
    def nanoseconds(self) -> float:
        """About how long a step takes; infinite if that is known only when it runs."""
        total, times = 1.0, [1.0]
        for one in self.instructions:
            if isinstance(one.op, Opens):
                count = one.op.of[0]
                # so many are for a loop that a condition ends
                times.append(times[-1] * (inf if count is None or count > 2**40 else count))
            elif isinstance(one.op, Closes):
                total += times.pop()
            elif one.op.row is not None:
                total += times[-1] * (1 + 10 * len(one.op.row.libm))
        return total

    def text(self, name: str) -> list[str] | None:
        """Return the C definition of the loop; None if an operation has no expression."""
        lines = _Lines(self)
        if not lines.program():
            return None
        near = [f"{place} == {size}" for _, place, size in lines.steps if size]
        if not near:
            return ["\n".join(lines.function(name))]
        far = f"{name}_far"
        other = f"if (!({' && '.join(near)})) {{ {far}(ctx, p, st, n); return; }}"
        every = "static __attribute__((cold))", *lines.function(far), *lines.function(name, other)
        return ["\n".join(every)]


def in_memory(shape: Shape) -> bool:
    """Return whether the elements of an operand with these lengths are in memory."""
    return min(shape, default=0) < 0


def size(shape: Shape) -> int:
    """Return how many elements of an operand with these lengths are in registers."""
    return 0 if in_memory(shape) else int(np.prod(shape, dtype=np.int64))


class _Lines:
    """Makes the C function of a recurrence.

    It has the form of other loops, ``void name(const void *ctx, char **p, const ow_i64 *st, ow_i64
    n)``, and repeats the program at most n times. The operands at ``p`` are the sequences from the
    row of the first step on, the states and the results from their first rows on, the constants,
    and two integers to write: how many steps were done, and why they ended (see ``ENDED``, ``LEFT``
    and ``FAILED``). ``st`` has for each sequence the bytes from row to row; for each state and
    result also the number of the row that the first step writes, and how many rows there are: a row
    is written at its number modulo that. Behind these, and for each constant, are the bytes along
    each dimension, and the length of each.
    """

    def __init__(self, recurrence: Recurrence) -> None:
        self.of = recurrence
        #: C expression of each slot
        self.slots = [f"x{i}" for i in range(len(recurrence.in_dtypes))]
        #: the statements that set variables before all steps, and in each
        self.before: list[Any] = []
        self.each: list[Any] = []
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
            place += count + 2 * len(shape)
        #: (name, number at ``st``, size of an element or None) of the bytes along a dimension;
        #: arrays mostly lie so that those along the last one are the size
        self.steps: list[tuple[str, str, str | None]] = []
        self._dtypes = {
            cast(int, one.op.of[0]): one.dtype
            for one in recurrence.instructions
            if isinstance(one.op, Read | ReadUnless | Write)
        }
        #: whether a step may fail
        self.fails = False
        #: the names of the arrays that steps make
        self.scratch: list[str] = []

    def program(self) -> bool:
        """Make the statements of the program; return whether all operations have C."""
        of = self.of
        self._inputs()
        #: the statements of each block around an instruction, after those before all steps
        bodies = [self.before, self.each]
        #: by block, the first one that its operations may be moved to: no branch is left
        floors = [0, 0]
        heads: list[str] = []
        #: where values of the last choice are declared, and its branches
        choice: list[list[Any]] = []
        # by slot, in how many blocks its value changes
        depths = [1] * len(of.in_dtypes)
        for slot in range(len(depths) - sum(map(size, of.constants)), len(depths)):
            depths[slot] = 0
        for k, one in enumerate(of.instructions):
            op, here = one.op, len(bodies) - 1
            args = [self.slots[a] for a in one.args]
            depth, type_ = max((depths[a] for a in one.args), default=0), csource.c_type(one.dtype)
            self.slots.append(f"t{k}")
            if isinstance(op, Opens):
                count = args[0] if op.of[0] is None else str(op.of[0])
                # what is the same in all steps goes before the loop, while its body is made
                heads.append(f"for (ow_i64 t{k} = 0; t{k} < {count}; t{k}++) {{")
                bodies.append([_SEPARATE])
                floors.append(floors[-1])
                depth = here + 1
            elif isinstance(op, Carried):
                depth = here + 1
                bodies[-1].append(f"{type_} t{k} = {args[0]};")
            elif isinstance(op, Closes):
                body, depth = bodies.pop(), here - 1
                floors.pop()
                for slot in one.args[: op.of[0]]:
                    depths[slot] = depth
                bodies[-1] += [heads.pop(), [*body, *self._handed_on(one, args)], "}"]
            elif isinstance(op, Branches):
                branch: list[Any] = []
                bodies[-1] += [[], f"if ({args[0]}) {{", branch]
                bodies.append(branch)
                floors.append(here + 1)
            elif isinstance(op, Otherwise):
                branch = []
                bodies[-2] += ["} else {", branch]
                bodies[-1] = branch
            elif isinstance(op, Joins):
                bodies.pop()
                floors.pop()
                choice = [bodies[-1][-5], bodies[-1][-3], bodies[-1][-1]]
                bodies[-1].append("}")
            elif isinstance(op, Chosen):
                depth = here
                choice[0].append(f"{type_} t{k};")
                for branch, arg in zip(choice[1:], args, strict=True):
                    branch.append(f"t{k} = {arg};")
            elif isinstance(op, Length):
                operand, d = cast(tuple[int, int], op.of)
                self.slots[-1] = f"l{operand}_{d}"
            elif isinstance(op, Read | Write):
                depth = here
                bodies[-1] += self._access(k, one, args)
            elif isinstance(op, ReadUnless):
                depth = here
                place = "".join(f" + {i} * s{op.of[0]}_{d}" for d, i in enumerate(args[1:]))
                read = f"*(const {type_} *)(m{op.of[0]}{place})"
                bodies[-1].append(f"const {type_} t{k} = {args[0]} ? ({type_}){{0}} : {read};")
            elif isinstance(op, Scratch):
                bodies[-1] += self._scratch(one, args)
            elif isinstance(op, Short):
                if not depth:
                    self.before.append(f"if ({args[0]} > {op.of[0]}) n = 0, why = {LEFT};")
            elif isinstance(op, Fails):
                self.fails = True
                bodies[-1].append(f"if ({args[0]}) goto failed;")
            else:
                dtypes = [slot_dtype(a, of.instructions, of.in_dtypes) for a in one.args]
                text = csource.step_c(op, args, dtypes, one.dtype, alone=True)
                if text is None:
                    return False
                depth = max(depth, 0 if isinstance(op, Literal) else floors[-1])
                bodies[depth].append(f"const {type_} t{k} = {text};")
            depths.append(depth)
        self._outputs()
        return True

    def _handed_on(self, one: Instruction, args: list[str]) -> list[str]:
        """Return the statements at the end of a block. args: C expressions of what it reads."""
        assert isinstance(one.op, Mark) and one.op.of[0] is not None
        of, n = self.of, one.op.of[0]
        types = [csource.c_type(slot_dtype(a, of.instructions, of.in_dtypes)) for a in one.args[:n]]
        # a new value may be an old one of another carried one, which is about to change
        new = [
            f"const {type_} new_{a} = {b};"
            for type_, a, b in zip(types, args, args[n:], strict=False)
        ]
        ends = [f"const int last = {text} != 0;" for text in args[2 * n :]]
        return [
            *new,
            *ends,
            *(f"{a} = new_{a};" for a in args[:n]),
            *("if (last) break;" for _ in ends),
        ]

    def _access(self, k: int, one: Instruction, args: list[str]) -> list[str]:
        """Return the statements that read or write an element of an operand in memory."""
        assert isinstance(one.op, Mark)
        operand, *looked = one.op.of
        type_ = csource.c_type(one.dtype)
        lines, place = [], f"m{operand}"
        for d, (index, look) in enumerate(zip(args, looked, strict=False)):
            length = f"l{operand}_{d}"
            if look:
                self.fails = True
                lines += [
                    f"const ow_i64 j{k}_{d} = {index} + ({index} < 0 ? {length} : 0);",
                    f"if ((ow_u64)j{k}_{d} >= (ow_u64){length}) goto failed;",
                ]
            place += f" + {f'j{k}_{d}' if look else index} * s{operand}_{d}"
        if isinstance(one.op, Read):
            return [*lines, f"const {type_} t{k} = *(const {type_} *)({place});"]
        return [*lines, f"*({type_} *)({place}) = {args[-1]};"]

    def _scratch(self, one: Instruction, args: list[str]) -> list[Any]:
        """Return the statements that make an array. args: C expressions of its lengths."""
        assert isinstance(one.op, Mark)
        (operand,) = one.op.of
        self.fails, name, type_ = True, f"{operand}", csource.c_type(one.dtype)
        self.scratch.append(name)
        self.before += [f"char *b{name} = 0;", f"ow_i64 c{name} = 0;"]
        lines: list[str] = []
        size = f"(ow_i64)sizeof({type_})"
        for d, length in reversed(list(enumerate(args))):
            lines += [
                f"const ow_i64 l{name}_{d} = {length};",
                f"const ow_i64 s{name}_{d} = {size};",
            ]
            size = f"s{name}_{d} * l{name}_{d}"
        return [
            *lines,
            f"const ow_i64 z{name} = {size};",
            f"if (c{name} < z{name}) {{",
            [
                f"__builtin_free(b{name});",
                f"b{name} = (char *)__builtin_malloc(z{name});",
                f"c{name} = b{name} ? z{name} : 0;",
                f"if (!b{name}) goto failed;",
            ],
            "}",
            f"char *const m{name} = b{name};",
        ]

    def _memory(self, operand: int, place: str, moves: bool) -> None:
        """Name the place, the strides and the lengths of an operand in memory.

        moves: each step has another row of it.
        """
        first, shape = self._dimensions[operand], self.of.shapes[operand]
        (self.each if moves else self.before).append(f"char *const m{operand} = {place};")
        for d in range(len(shape)):
            last = d == len(shape) - 1 and operand in self._dtypes.keys() - self.of.turned
            element = f"sizeof({csource.c_type(self._dtypes[operand])})" if last else None
            self.steps.append((f"s{operand}_{d}", f"st[{first + d}]", element))
            self.before.append(f"const ow_i64 l{operand}_{d} = st[{first + len(shape) + d}];")

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
            if in_memory(shape):
                self._memory(k, f"p[{k}] + t * st[{self._strides[k]}]", True)
                continue
            for at in self._elements(k, shape):
                self.before.append(f"const char *const a{slot} = p[{k}] + {at};")
                known = not shape and k not in of.turned
                element = f"sizeof({csource.c_type(of.in_dtypes[slot])})" if known else None
                self.steps.append((f"d{slot}", f"st[{self._strides[k]}]", element))
                self.each.append(self._loaded(slot, f"a{slot} + t * d{slot}"))
                slot += 1
        for k, (shape, taps) in enumerate(zip(of.states, of.taps, strict=True)):
            self._state(k, slot, shape, taps)
            slot += len(taps) * size(shape)
        for k, shape in enumerate(of.constants, len(of.shapes) - len(of.constants)):
            if in_memory(shape):
                self._memory(k, f"p[{k}]", False)
                continue
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
        operand = len(self.of.sequences) + k
        if in_memory(shape):
            self._memory(operand, f"p[{operand}]", False)
        if not size(shape):
            return
        most, type_ = max(taps), csource.c_type(self.of.in_dtypes[first])
        for e, at in enumerate(self._elements(operand, shape)):
            names = [f"s{k}_{e}_{back}" for back in range(1, most + 1)]
            for back, name in enumerate(names, 1):
                place = f"p[{operand}] + {self._row(operand, back)} + {at}"
                self.before.append(f"{type_} {name} = *(const {type_} *)({place});")
            for j, tap in enumerate(taps):
                self.slots[first + j * size(shape) + e] = names[tap - 1]
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
            if in_memory(shape):
                continue
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

    def function(self, name: str, far: str = "") -> list[str]:
        """Return the lines of the function. far: what is done if arrays lie in another way."""
        of = self.of
        steps = [
            f"const ow_i64 {step} = {size if far and size else place};"
            for step, place, size in self.steps
        ]
        result = len(of.shapes)
        leaves = [f"if ({self.slots[s]}) {{ why = {LEFT}; break; }}" for s in of.leaves]
        ends = [] if of.ends is None else [f"const int last = {self.slots[of.ends]} != 0;"]
        stop = [] if of.ends is None else [f"if (last) {{ t++; why = {ENDED}; break; }}"]
        return [
            f"void {name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 n)",
            "{",
            *([f"    {far}"] if far else []),
            "    ow_i64 t = 0, why = 0;",
            *_indented(steps, 1),
            *_indented(self.before, 1),
            "    for (; t < n; t++) {",
            f"        {_SEPARATE}",
            *_indented([*self.each, *leaves, *ends, *self.after, *stop], 2),
            "    }",
            *([f"    if (0) failed: why = {FAILED};"] if self.fails else []),
            *(f"    __builtin_free(b{name});" for name in self.scratch),
            f"    *(ow_i64 *)p[{result}] = t;",
            f"    *(ow_i64 *)p[{result + 1}] = why;",
            "}",
        ]


def _indented(lines: list[Any], depth: int) -> Iterator[str]:
    """Yield statements, and those of the blocks among them, a list each."""
    for line in lines:
        if isinstance(line, str):
            yield "    " * depth + line
        else:
            yield from _indented(line, depth + 1)
