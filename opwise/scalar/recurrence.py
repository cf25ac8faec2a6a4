"""C text of a recurrence: a scalar program that is repeated.

Numbers and small arrays are in registers. Arrays of any length stay in memory, where instructions
read and write their elements. Loops and branches inside a step are instructions that open and close
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self, cast

import numpy as np

from opwise.scalar import csource
from opwise.scalar.dtypes import CONTINUOUS, INTEGERS
from opwise.scalar.innerloops import Access, Growth, Repeated, Sum, texts
from opwise.scalar.op import Cast
from opwise.scalar.program import IllFormed, Instruction, Literal, Mark, Program

Shape = tuple[int, ...]

#: why a loop ended before n steps: its condition holds
ENDED = 1
#: the next step is one that the VM has to run
LEFT = 2
#: the VM has to run the next step, which fails; parts of it have been done
FAILED = 3


class Opens(Mark):
    """Begins an inner loop: the instructions up to its ``Closes``; its value counts the steps.

    ``Opens(n)`` has n steps, ``Opens(None)`` as many as the number that it reads.
    """

    begins = True

    def takes(self, n: int) -> bool:
        return n == (self.of[0] is None)


#: what ``Carried`` says of a sum
SUM = "sum"


class Carried(Mark):
    """A value that may change: each inner step hands it to the next one.

    It stands before the block that is opened next, and begins as what it reads. After the loop it
    is that of the last step. Nothing else of the loop may be read there. ``Carried(SUM)`` is a sum:
    each step adds to it, in any order.
    """

    nin = 1


class Closes(Mark):
    """Ends an inner loop; reads n carried values, their new ones, and perhaps a condition.

    If the condition holds after a step, that one is the last.
    """

    ends = True

    def takes(self, n: int) -> bool:
        return n in (2 * self.of[0], 2 * self.of[0] + 1)


class Branches(Mark):
    """Begins a branch, which is run if the condition that it reads holds."""

    nin = 1
    begins = True


class Otherwise(Mark):
    """Ends that branch and begins the other one."""

    nin = 0
    begins = ends = True


class Joins(Mark):
    """Ends the other branch. What stands right behind it are ``Chosen``."""

    nin = 0
    ends = True


class Chosen(Mark):
    """A value of the branch that was run; reads that of each."""

    nin = 2
    reads_ended = True


class Length(Mark):
    """The length of an operand, ``Length(operand, dimension)``."""

    nin = 0
    is_constant = True


class Scratch(Mark):
    """Makes an array of a step, ``Scratch(operand)``; reads its lengths.

    Its elements are not set. Each run of the instruction gives the same memory.
    """

    def takes(self, n: int) -> bool:
        return True


class Row(Mark):
    """The row that a step writes of a state or a result in memory that keeps several.

    ``Row(operand, of)`` has the lengths of the rows of operand ``of``. Of a state, ``of`` itself is
    the row that the step before wrote, which no step writes.
    """

    nin = 0


class Read(Mark):
    """An element of an array in memory; reads an index for each dimension.

    ``Read(operand, *looked)``: by dimension, whether to look at the index. A negative one counts
    from the end, and the step fails where there is no such element.
    """

    def takes(self, n: int) -> bool:
        return n == len(self.of) - 1


class ReadUnless(Mark):
    """An element of an array, ``ReadUnless(operand)``, or 0; reads a condition and the indices."""

    def takes(self, n: int) -> bool:
        return n > 0


class Write(Mark):
    """Writes an element of an array in memory; reads what ``Read`` reads, and the new value."""

    def takes(self, n: int) -> bool:
        return n == len(self.of)


class Short(Mark):
    """Leaves all steps to the VM if a number that none changes is larger, ``Short(most)``."""

    nin = 1


class Fails(Mark):
    """The step fails if the condition that it reads holds."""

    nin = 1


@dataclass(frozen=True, kw_only=True)
class Recurrence(Program):
    """A scalar program that is repeated.

    Its input slots are the elements of rows and constants in C order: a row of each sequence, a row
    of each tap of each state, each constant. Those in memory have no slots: their lengths are
    -1, which stands for any. A state in memory has the tap of one step, and a result in
    memory no slots; ``Row`` is what they write, unless a state keeps one row only, which is written
    where it lies. In the place of ``outs``, it has states and results.
    """

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
    #: by result, where the lengths are from that are not known: (operand, dimension of its rows)
    origins: tuple[tuple[tuple[int, int], ...], ...] = ()
    #: (dimensions, how many elements they may have in all); a dimension: (operand, number)
    limits: tuple[tuple[tuple[tuple[int, int], ...], int], ...] = ()
    #: the slot of the condition that ends the loop after a step
    ends: int | None = None
    #: the slots of conditions that leave the step to the VM
    leaves: tuple[int, ...] = ()
    #: the operands that are known to lie otherwise than with their last elements side by side
    turned: frozenset[int] = frozenset()
    #: sequences of numbers of int64 that are a range, and its steps
    ranges: tuple[tuple[int, int], ...] = ()

    def check(self) -> Self:
        super().check()
        rows = zip(self.states, self.taps, strict=True)
        inputs = sum(map(size, (*self.sequences, *self.constants)))
        if len(self.in_dtypes) != inputs + sum(size(row) * len(taps) for row, taps in rows):
            raise IllFormed(f"the inputs are not those of its operands:\n{self}")
        ranks = dict(enumerate(map(len, self.shapes)))
        outputs = len(self.sequences) + len(self.states)
        writable = set(range(len(self.sequences), outputs)) - self.rows_of
        for slot, one in self.numbered():
            if not isinstance(one.op, Scratch | Row | Length | Read | ReadUnless | Write):
                continue
            operand = one.op.of[0]
            if isinstance(one.op, Scratch | Row):
                of_row = isinstance(one.op, Row)
                ranks[operand] = ranks[one.op.of[1]] if of_row else len(one.args)
                writable.add(operand)
                continue
            n_indices = len(one.args) - isinstance(one.op, ReadUnless | Write)
            if isinstance(one.op, Length):
                fits = one.op.of[1] < ranks.get(operand, 0)
            else:
                fits = n_indices == ranks.get(operand)
            if not fits or (isinstance(one.op, Write) and operand not in writable):
                raise IllFormed(f"%{slot} asks of operand {operand} what it has not:\n{self}")
        return self

    def read_at_end(self) -> Iterator[int]:
        for slots in (*self.new, *(slots for _, slots in self.results)):
            yield from slots
        yield from self.leaves
        yield from [] if self.ends is None else [self.ends]

    @property
    def rows_of(self) -> set[int]:
        """The operands of which a step writes a row of several."""
        return {one.op.of[1] for one in self.instructions if isinstance(one.op, Row)}

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
        has_loops = any(isinstance(one.op, Opens) for one in self.instructions)
        short = [csource.SHORT_LOOPS] if has_loops else []
        near = [f"{place} == {size}" for _, place, size in lines.steps if size]
        if not near:
            return ["\n".join([*short, *lines.function(name)])]
        far = f"{name}_far"
        other = f"if (!({' && '.join(near)})) {{ {far}(ctx, p, st, n); return; }}"
        cold = lines.function(far, twice=False)
        every = *short, "static __attribute__((cold))", *cold, *lines.function(name, other)
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
        for one in recurrence.instructions:
            if isinstance(one.op, Row):
                self._dtypes.setdefault(one.op.of[1], one.dtype)
        #: whether a step may fail
        self.fails = False
        #: by array that steps make, how many blocks are around the statements that make it
        self.scratch: dict[int, int] = {}
        #: the loops around an instruction, that over all steps first
        self.loops = [Repeated("n", 1, "for (; t < n; t++) {")]

    def program(self) -> bool:
        """Make the statements of the program; return whether all operations have C."""
        of = self.of
        self._inputs()
        self.loops[0].one_by_one = any(self._is_float(slot) for new in of.new for slot in new)
        #: the statements of each block around an instruction, after those before all steps
        bodies = [self.before, self.each]
        #: by block, the first one that its operations may be moved to: no branch is left
        floors = [0, 0]
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
                self.loops[-1].is_innermost = False
                depth = here + 1
                # what is the same in all steps goes before the loop, while its body is made
                loop = Repeated(count, depth, f"for (ow_i64 t{k} = 0; t{k} < {count}; t{k}++) {{")
                loop.grows[len(of.in_dtypes) + k] = Growth(Sum(), Sum("", 1))
                self.loops.append(loop)
                bodies.append(loop.body)
                floors.append(floors[-1])
            elif isinstance(op, Carried):
                depth = here + 1
                bodies[-1].append(f"{type_} t{k} = {args[0]};")
            elif isinstance(op, Closes):
                loop, depth = self.loops.pop(), here - 1
                bodies.pop()
                floors.pop()
                for slot in one.args[: op.of[0]]:
                    depths[slot] = depth
                loop.body += self._handed_on(one, args)
                carried = one.args[: op.of[0]]
                loop.sums = [self.slots[slot] for slot in carried if self._is_sum(slot)]
                loop.one_by_one |= any(
                    self._is_float(slot) and not self._is_sum(slot) for slot in carried
                )
                bodies[-1].append(loop)
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
                bodies[-1].append(self._access(k, one, args, depths, here))
            elif isinstance(op, ReadUnless):
                depth = here
                place = "".join(f" + {i} * s{op.of[0]}_{d}" for d, i in enumerate(args[1:]))
                read = f"*(const {type_} *)(m{op.of[0]}{place})"
                bodies[-1].append(f"const {type_} t{k} = {args[0]} ? ({type_}){{0}} : {read};")
            elif isinstance(op, Scratch):
                bodies[-1] += self._scratch(one, args, here)
            elif isinstance(op, Row):
                name, operand = cast(tuple[int, int], op.of)
                for d in range(len(of.shapes[operand])):
                    self.before.append(f"const ow_i64 s{name}_{d} = s{operand}_{d};")
                    self.before.append(f"const ow_i64 l{name}_{d} = l{operand}_{d};")
                place = f"p[{operand}] + row{operand} * y{operand}"
                bodies[-1].append(f"char *const m{name} = {place};")
            elif isinstance(op, Short):
                if not depth:
                    self.before.append(f"if ({args[0]} > {op.of[0]}) n = 0, why = {LEFT};")
            elif isinstance(op, Fails):
                self.fails = True
                bodies[-1].append(f"if ({args[0]}) goto failed;")
            else:
                text = csource.step_c(op, args, of.arguments(one), one.dtype, alone=True)
                if text is None:
                    return False
                depth = max(depth, 0 if isinstance(op, Literal) else floors[-1])
                bodies[depth].append(f"const {type_} t{k} = {text};")
                self._note(len(of.in_dtypes) + k, one, depths)
            depths.append(depth)
        self._outputs()
        return True

    def _is_float(self, slot: int) -> bool:
        return self.of.dtypes[slot] in CONTINUOUS

    def _note(self, slot: int, one: Instruction, depths: list[int]) -> None:
        """Note whether an operation calls functions, and whether its value grows evenly."""
        loop, row = self.loops[-1], one.op.row
        if not isinstance(one.op, Cast | Literal):
            loop.one_by_one |= row is None or not csource.EXACT.issuperset(row.libm)
        found = None if row is None or one.dtype != "int64" else self._grown(one, depths)
        if found is not None and found.fits:
            loop.grows[slot] = found

    def _grown(self, one: Instruction, depths: list[int]) -> Growth | None:
        """Return how the value of an operation on integers grows."""
        assert one.op.row is not None
        condition, *choice = one.args
        if one.op.row.name == "switch" and depths[condition] < self.loops[-1].depth:
            x, y = (self._growth(a, depths) for a in choice)
            if x is None or y is None or x == y:
                return x if x == y else None
            parts = zip((x.first, x.by), (y.first, y.by), strict=True)
            test = self.slots[condition]
            return Growth(*(p if p == q else Sum(f"({test} ? {p} : {q})") for p, q in parts))
        operands = [self._growth(a, depths) for a in one.args]
        if None in operands or one.op.row.name not in ("add", "sub", "mul", "neg"):
            return None
        total, *others = cast("list[Growth]", operands)
        if one.op.row.name == "neg":
            return Growth(Sum()).plus(total, -1)
        for other in others:
            if one.op.row.name == "mul":
                product = total.times(other)
                if product is None:
                    return None
                total = product
            else:
                total = total.plus(other, 1 if one.op.row.name == "add" else -1)
        return total

    def _growth(self, slot: int, depths: list[int]) -> Growth | None:
        """Return how a slot grows from step to step of the present loop; None if not evenly."""
        loop = self.loops[-1]
        if slot in loop.grows:
            return loop.grows[slot]
        if depths[slot] >= loop.depth:
            return None
        number = self._stays(slot)
        return None if number is None else Growth(number)

    def _stays(self, slot: int) -> Sum | None:
        """Return an integer that is the same in all steps of the present loop, as a sum."""
        dtype = self.of.dtypes[slot]
        if dtype not in INTEGERS or dtype == "uint64":
            return None
        plain = Sum(f"(ow_i64){self.slots[slot]}")
        one = self.of.instruction(slot)
        if one is not None and isinstance(one.op, Literal):
            value = int(one.op.value)
            return Sum("", value) if abs(value) < 2**40 else plain
        if one is None or one.op.row is None or one.op.row.name not in ("add", "sub"):
            return plain
        parts = [self._stays(a) for a in one.args]
        sign = 1 if one.op.row.name == "add" else -1
        numbers = [part for part in parts if part is not None and not part.of]
        if dtype != "int64" or len(parts) != 2 or None in parts or not numbers:
            return plain
        x, y = cast("list[Sum]", parts)
        return x.plus(y, sign) if sign > 0 or not y.of else plain

    def _is_sum(self, slot: int) -> bool:
        """Return whether a carried value is a sum that vectors may add up."""
        one = self.of.instruction(slot)
        return one is not None and one.op == Carried(SUM) and one.dtype in ("float32", "float64")

    def _handed_on(self, one: Instruction, args: list[str]) -> list[str]:
        """Return the statements at the end of a block. args: C expressions of what it reads."""
        assert isinstance(one.op, Mark) and one.op.of[0] is not None
        of, n = self.of, one.op.of[0]
        types = [csource.c_type(of.dtypes[a]) for a in one.args[:n]]
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

    def _access(
        self, k: int, one: Instruction, args: list[str], depths: list[int], here: int
    ) -> Access:
        """Return the statement that reads or writes an element of an operand in memory.

        depths: by slot, in how many blocks its value changes. here: how many are around this one.
        """
        assert isinstance(one.op, Mark)
        operand, *looked = cast("tuple[int, ...]", one.op.of)
        loop, indices = self.loops[-1], args[: len(looked)]
        self.fails |= any(looked)
        is_early = self.scratch.get(operand, 0) < loop.depth  # so its lengths are before the loop
        growths = [self._growth(a, depths) for a in one.args[: len(looked)]]
        access = Access(
            operand=operand,
            writes=isinstance(one.op, Write),
            type=csource.c_type(one.dtype),
            value=args[-1] if isinstance(one.op, Write) else f"t{k}",
            place=lambda at: "".join(
                [f"m{operand}", *(f" + {i} * s{operand}_{d}" for d, i in enumerate(at))]
            ),
            indices=indices,
            lengths=[f"l{operand}_{d}" for d in range(len(looked))],
            looked=[bool(look) for look in looked],
            growths=growths if is_early else [None] * len(looked),
            in_branch=here > loop.depth,
            name=f"{k}",
        )
        loop.accesses.append(access)
        return access

    def _scratch(self, one: Instruction, args: list[str], depth: int) -> list[Any]:
        """Return the statements that make an array, inside of ``depth`` blocks.

        args: C expressions of its lengths.
        """
        assert isinstance(one.op, Mark)
        (name,) = cast("tuple[int]", one.op.of)
        self.fails, type_ = True, csource.c_type(one.dtype)
        self.scratch[name] = depth
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
        (self.each if moves else self.before).append(f"char *const m{operand} = {place};")
        self._lengths_of(operand)

    def _lengths_of(self, operand: int) -> None:
        """Name the strides and the lengths of an operand in memory."""
        first, shape = self._dimensions[operand], self.of.shapes[operand]
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
        of, ranges = self.of, dict(self.of.ranges)
        slot = 0
        outputs = [*zip(of.states, of.new, strict=True), *of.results]
        for k, (shape, _) in enumerate(outputs, len(of.sequences)):
            if not in_memory(shape) or k in of.rows_of:
                place = self._strides[k]
                self.before += [
                    f"const ow_i64 y{k} = st[{place}], rows{k} = st[{place + 2}];",
                    f"ow_i64 row{k} = st[{place + 1}] % rows{k};",
                ]
        for k, shape in enumerate(of.sequences):
            if in_memory(shape):
                self._memory(k, f"p[{k}] + t * st[{self._strides[k]}]", True)
                continue
            for at in self._elements(k, shape):
                self.before.append(f"const char *const a{slot} = p[{k}] + {at};")
                known = not shape and k not in of.turned
                element = f"sizeof({csource.c_type(of.in_dtypes[slot])})" if known else None
                self.steps.append((f"d{slot}", f"st[{self._strides[k]}]", element))
                if k in ranges:
                    self.before.append(f"const ow_i64 r{slot} = n > 0 ? *(ow_i64 *)a{slot} : 0;")
                    self.each.append(f"const ow_i64 x{slot} = r{slot} + t * {ranges[k]};")
                    self.loops[0].grows[slot] = Growth(Sum(f"r{slot}"), Sum("", ranges[k]))
                else:
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
        first = len(of.sequences) + len(of.states)
        for k, (shape, _) in enumerate(of.results, first):
            if in_memory(shape):
                self._lengths_of(k)

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
            several = operand in self.of.rows_of
            before = f"(row{operand} ? row{operand} : rows{operand}) - 1"
            place = f" + ({before}) * y{operand}" if several else ""
            self._memory(operand, f"p[{operand}]{place}", several)
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
        of, rows_of = self.of, self.of.rows_of
        for k, (shape, slots) in enumerate(
            [*zip(of.states, of.new, strict=True), *of.results], len(of.sequences)
        ):
            if in_memory(shape) and k not in rows_of:
                continue
            places = [] if in_memory(shape) else self._elements(k, shape)
            for e, (slot, at) in enumerate(zip(slots, places, strict=True)):
                type_ = csource.c_type(of.dtypes[slot])
                self.before.append(f"char *const z{k}_{e} = p[{k}] + {at};")
                # a new value may be an old one of another state, which is about to change
                self.each.append(f"const {type_} n{k}_{e} = {self.slots[slot]};")
                self.after.append(f"*({type_} *)(z{k}_{e} + row{k} * y{k}) = n{k}_{e};")
            self.after.append(f"row{k} = row{k} + 1 == rows{k} ? 0 : row{k} + 1;")
        self.after += self.shifts
        for k, new in enumerate(of.new):
            output = len(of.sequences) + k
            self.after += [f"s{k}_{e}_1 = n{output}_{e};" for e in range(len(new))]

    def function(self, name: str, far: str = "", twice: bool = True) -> list[str]:
        """Return the lines of the function. far: what is done if arrays lie in another way.

        twice: whether innermost loops also stand without looks at indices.
        """
        of = self.of
        steps = [
            f"const ow_i64 {step} = {size if far and size else place};"
            for step, place, size in self.steps
        ]
        result, loop = len(of.shapes), self.loops[0]
        leaves = [f"if ({self.slots[s]}) {{ why = {LEFT}; break; }}" for s in of.leaves]
        ends = [] if of.ends is None else [f"const int last = {self.slots[of.ends]} != 0;"]
        stop = [] if of.ends is None else [f"if (last) {{ t++; why = {ENDED}; break; }}"]
        body = [*self.each, *leaves, *ends, *self.after, *stop]
        return [
            f"void {name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 n)",
            "{",
            *([f"    {far}"] if far else []),
            "    ow_i64 t = 0, why = 0;",
            *texts([*steps, *self.before, replace(loop, body=body)], 1, twice),
            *([f"    if (0) failed: why = {FAILED};"] if self.fails else []),
            *(f"    __builtin_free(b{name});" for name in self.scratch),
            f"    *(ow_i64 *)p[{result}] = t;",
            f"    *(ow_i64 *)p[{result + 1}] = why;",
            "}",
        ]
