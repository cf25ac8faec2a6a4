"""C text of row programs: elementwise work, reductions and sums of neighbours, row by row.

Variances, softmaxes, normalisations and their gradients read an array several times: a reduction of
a row is needed before the next pass over it. A row that stays in the cache is read from memory
once. The loops of the passes are those of ``opwise.scalar.loops``. Rows of few elements, and those
of arrays by columns, are turned: the loops go over the same element of many rows.

A row program has slots like a Composite's. Each is *wide*, a row of elements, or *narrow*, one
number for each row. The function is ``void name(const void *ctx, char **p, const ow_i64 *st,
ow_i64 rows)``: the outputs and the inputs are at ``p``, the bytes from row to row in ``st``, and an
``ow_rowwise_context`` of csupport/rowwise.h at ``ctx``. Rows that are not turned are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from opwise.scalar import csource, loops
from opwise.scalar.op import Cast, cast_op
from opwise.scalar.program import IllFormed, Instruction, Mark, Program

#: the most nanoseconds an element that a later pass spends to compute a value again
MAX_FREE_COST = 1.5
#: nanoseconds an element of a cast
_CAST_COST = 0.3
#: how many rows are turned at once
TURNED_ROWS = 64
#: the most reductions of ``loops.REDUCTIONS`` that a program calls
MOST_REDUCERS = 8
#: bytes of a cache line
_LINE = 64
#: C text of the ow_rowwise_context of csupport/rowwise.h
_CONTEXT = """\
struct ow_rows {
    ow_i64 n;
    char *memory;
    const ow_i64 *along;
    void (*gather)(void *, const void *, ow_i64, ow_i64, ow_i64, ow_i64, ow_i64);
    void (*scatter)(void *, const void *, ow_i64, ow_i64, ow_i64, ow_i64, ow_i64);
    void (*reducers[])(const void *, char **, const ow_i64 *, ow_i64);
};"""


class OfRow(Mark):
    """An instruction whose result is one number for each row."""

    #: whether its operand is a row of elements, and not one number
    reads_elements = True


class RowFold(OfRow):
    """Reduces a wide slot: ``RowFold(name in loops.FOLDS, dtype that it accumulates in)``."""

    nin = 1


class RowFirst(OfRow):
    """Takes the first element of a wide input; 0 if it is not finite."""

    nin = 1


class RowLength(OfRow):
    """Counts the elements of a row."""

    nin = 0


class RowColumn(Mark):
    """The number of the column of each element, in kernels of devices."""

    nin = 0


class RowWindow(Mark):
    """Adds up, for each element of a wide slot, some of its neighbours, ``RowWindow(first, last)``.

    They are ``first`` to ``last`` places behind it; there are zeros beyond the ends of a row.
    """

    nin = 1


@dataclass(frozen=True)
class _Loop:
    """A loop over the elements of a row: an elementwise one, a fold, or sums of neighbours."""

    level: int
    #: the slots that it stores, or reduces; the slot of the sums of neighbours
    roots: tuple[int, ...]
    #: the reduction, and the sum of neighbours
    fold: RowFold | None = None
    window: RowWindow | None = None


@dataclass(frozen=True, kw_only=True)
class RowProgram(Program):
    """Elementwise operations, reductions and sums of neighbours along rows."""

    #: whether each input is a row of elements for each row, and not one number
    wide_inputs: tuple[bool, ...]

    def check(self) -> Self:
        super().check()
        if len(self.wide_inputs) != len(self.in_dtypes):
            raise IllFormed(f"wide_inputs says not of each input whether it is wide:\n{self}")
        for slot, one in self.numbered():
            needs = isinstance(one.op, RowWindow) or getattr(one.op, "reads_elements", False)
            if needs and not all(self.wide[a] for a in one.args):
                raise IllFormed(f"%{slot} reads one number a row, and needs elements:\n{self}")
        return self

    @cached_property
    def wide(self) -> tuple[bool, ...]:
        """Whether each slot is a row of elements."""
        wide = list(self.wide_inputs)
        for one in self.instructions:
            reads = not isinstance(one.op, OfRow) and any(wide[a] for a in one.args)
            wide.append(reads or isinstance(one.op, RowColumn))
        return tuple(wide)

    @cached_property
    def columns(self) -> frozenset[int]:
        """The slots that are numbers of columns."""
        return frozenset(slot for slot, one in self.numbered() if isinstance(one.op, RowColumn))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many passes over the row come before each slot can be computed."""
        levels = [0] * len(self.in_dtypes)
        for one in self.instructions:
            before = max((levels[a] for a in one.args), default=0)
            levels.append(before + isinstance(one.op, RowFold | RowWindow))
        return tuple(levels)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The wide slots that are kept for later loops, besides outputs."""
        return self._plan[0]

    @property
    def buffers(self) -> tuple[str, ...]:
        """The dtypes of the values that are kept for later loops."""
        return tuple(self.dtypes[slot] for slot in self.kept)

    @cached_property
    def turned(self) -> tuple[int, ...]:
        """The wide slots of which turned rows are stored."""
        inputs = (s for s in range(len(self.in_dtypes)) if self.wide[s])
        outs = (s for s in self.outs if self.wide[s])
        return tuple(dict.fromkeys((*inputs, *self.kept, *outs)))

    @property
    def nanoseconds(self) -> float:
        """About how long an element takes."""
        moved = sum(np.dtype(d).itemsize for d, w in zip(self.dtypes, self.wide, strict=True) if w)
        return max(sum(self.cost(slot) for slot in range(len(self.dtypes))), moved / 60)

    def text(self, name: str) -> list[str] | None:
        """Return the C definitions, the function last; None if a part of it has no C."""
        lines = _Straight(self, name)
        definitions, at = [], "c->memory"
        for k, dtype in enumerate(self.buffers):
            definitions.append(f"char *const b{k} = {at};")
            at += f" + (n * {np.dtype(dtype).itemsize} + {_LINE - 1}) / {_LINE} * {_LINE}"
        return self._text(name, lines, [
            *definitions,
            "for (ow_i64 row = 0; row < rows; row++) {",
            *(f"    {line}" for line in lines.lines()),
            "}",
        ])  # fmt: skip

    def turned_text(self, name: str) -> list[str] | None:
        """Return the C definitions for turned rows, as ``text`` does for the others."""
        lines = _Turned(self, name)
        return self._text(name, lines, [
            "const ow_i64 *along = c->along;",
            "char *memory = c->memory;",
            *lines.buffers(),
            f"for (ow_i64 row = 0; row < rows; row += {TURNED_ROWS}) {{",
            f"    const ow_i64 m = rows - row < {TURNED_ROWS} ? rows - row : {TURNED_ROWS};",
            *(f"    {line}" for line in lines.lines()),
            "}",
        ])  # fmt: skip

    def _text(self, name: str, lines: _Lines, statements: list[str]) -> list[str] | None:
        definitions = [_CONTEXT]
        for loop in self.loops:
            text = lines.definitions(loop)
            if text is None:
                return None
            definitions += text
        function = [
            f"void {name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 rows)",
            "{",
            "    const struct ow_rows *const c = ctx;",
            "    const ow_i64 n = c->n;",
            *(f"    {line}" for line in statements),
            "}",
        ]
        return [*definitions, "\n".join(function)]

    # --- the plan -------------------------------------------------------------------------------

    @cached_property
    def reducers(self) -> dict[_Loop, tuple[str, str, str]]:
        """The loops that are one of ``loops.REDUCTIONS``, as they reduce what is in memory."""
        found: dict[_Loop, tuple[str, str, str]] = {}
        for loop in self.loops:
            if loop.fold is not None and len(loop.roots) == 1 and len(found) < MOST_REDUCERS:
                (slot,) = loop.roots
                row, acc = loop.fold.of
                kind = row, self.dtypes[slot], acc
                if kind in loops.REDUCTIONS and slot in self.loop_program(loop)[0]:
                    found[loop] = kind
        return found

    @property
    def loops(self) -> tuple[_Loop, ...]:
        """The loops over the elements of a row, in order."""
        return self._plan[1]

    def narrow_at(self, level: int) -> list[tuple[int, Instruction]]:
        """Return (slot, instruction) of the narrow slots of a level that no loop computes."""
        return [
            (slot, one)
            for slot, one in self.numbered()
            if not isinstance(one.op, RowFold)
            and not self.wide[slot]
            and self.levels[slot] == level
        ]

    def folded(self, loop: _Loop) -> list[tuple[int, int]]:
        """Return (slot that a loop reduces, slot of the result)."""
        return [
            (one.args[0], slot)
            for slot, one in self.numbered()
            if one.op == loop.fold and one.args[0] in loop.roots
        ]

    def loop_program(self, loop: _Loop) -> tuple[list[int], Program]:
        """Return (slots that a loop reads, its program on them)."""
        stored = {*self.kept, *(s for s in self.outs if self.wide[s])}
        if loop.fold is None:
            stored.difference_update(loop.roots)
        before = loop.level if loop.fold is None else loop.level + 1
        inside = self.closure(loop.roots, (s for s in stored if self.levels[s] < before))
        takes, program = self.part(inside, loop.roots)
        if not inside:  # it reduces what lies in memory
            instructions = (
                Instruction(cast_op(self.dtypes[s]), (i,), self.dtypes[s])
                for i, s in enumerate(takes)
            )
            outs = tuple(len(takes) + o for o in program.outs)
            program = replace(program, instructions=tuple(instructions), outs=outs)
        return takes, program

    def read_by(self, inside: Sequence[int], outs: Iterable[int]) -> list[int]:
        """Return the slots that computed ones, or results, need besides those."""
        read = (a for s in inside for a in self.instructions[s - len(self.in_dtypes)].args)
        return [s for s in dict.fromkeys((*read, *outs)) if s not in inside]

    def part(self, inside: Sequence[int], outs: Sequence[int]) -> tuple[list[int], Program]:
        """Return (slots that are read, the program on them) that computes some slots, in order."""
        takes = self.read_by(inside, outs)
        places = {s: i for i, s in enumerate((*takes, *inside))}
        computed = (self.instructions[slot - len(self.in_dtypes)] for slot in inside)
        instructions = (one._replace(args=tuple(places[a] for a in one.args)) for one in computed)
        in_dtypes = tuple(self.dtypes[s] for s in takes)
        return takes, Program(in_dtypes, tuple(instructions), tuple(places[s] for s in outs))

    @cached_property
    def windows(self) -> dict[int, Instruction]:
        """The sums of neighbours, by slot. Both their operands and they are in memory."""
        return {slot: one for slot, one in self.numbered() if isinstance(one.op, RowWindow)}

    def cost(self, slot: int) -> float:
        """Return about how many nanoseconds a slot takes for each element."""
        one = self.instruction(slot)
        if one is None or (not self.wide[slot] and not isinstance(one.op, RowFold)):
            return 0.0
        if isinstance(one.op, RowFold):
            return 0.25
        if isinstance(one.op, RowWindow):
            first, last = one.op.of
            return 0.05 * float(last - first + 1)
        cost = _CAST_COST if isinstance(one.op, Cast) else one.op.element_cost(len(one.args))
        return cost * (0.4 if one.dtype == "float32" else 1.0)

    def closure(self, roots: Iterable[int], stored: Iterable[int]) -> list[int]:
        """Return the wide slots that a loop computes for its roots, in order.

        stored: those that it reads, besides sums of neighbours.
        """
        stored, found, pending = {*stored, *self.windows}, set(), list(roots)
        while pending:
            slot = pending.pop()
            one = self.instruction(slot)
            if slot in found or slot in stored or one is None or not self.wide[slot]:
                continue
            found.add(slot)
            pending.extend(one.args)
        return sorted(found)

    @cached_property
    def _plan(self) -> tuple[tuple[int, ...], tuple[_Loop, ...]]:
        """(slots to keep, loops in order)."""
        stored = {*self.windows, *(one.args[0] for one in self.windows.values())}
        stored = {s for s in stored if s >= len(self.in_dtypes)} - set(self.outs)
        loops_ = self._loops(sorted(stored))
        users: dict[int, set[int]] = {}
        for k, loop in enumerate(loops_):
            for slot in self.closure(loop.roots, ()):
                users.setdefault(slot, set()).add(k)
        given = set(self.outs)
        folds = {k for k, loop in enumerate(loops_) if loop.fold is not None}
        again: dict[int, float] = {}
        kept = sorted(stored)
        for slot in sorted(users):
            one = self.instructions[slot - len(self.in_dtypes)]
            cost = self.cost(slot) + sum(again.get(a, 0.0) for a in one.args)
            if not isinstance(one.op, Mark) and not loops.is_cheap([one]):
                cost = np.inf
            again[slot] = cost
            if slot in given or slot in stored:
                again[slot] = 0.0
            elif cost > MAX_FREE_COST and (len(users[slot]) > 1 or users[slot] & folds):
                # and a fold that calls a function takes longer to compile
                kept.append(slot)
                again[slot] = 0.0
        kept.sort()
        return tuple(kept), tuple(self._loops(kept))

    def _loops(self, kept: Sequence[int]) -> list[_Loop]:
        """Return the loops, in the order of their levels; those that store come first."""
        found = []
        for level in range(max(self.levels, default=0) + 1):
            stores = [
                s
                for s in dict.fromkeys((*self.outs, *kept))
                if self.wide[s]
                and s >= len(self.in_dtypes)
                and self.levels[s] == level
                and s not in self.windows
            ]
            if stores:
                found.append(_Loop(level, tuple(sorted(stores))))
            folds: dict[tuple[RowFold, int | None], list[int]] = {}
            for one in self.instructions:
                if isinstance(one.op, RowFold) and self.levels[one.args[0]] == level:
                    # loops of extrema have one result: they look for NaN beside it
                    apart = None if one.op.of[0] in ("add", "mul") else one.args[0]
                    folds.setdefault((one.op, apart), []).append(one.args[0])
            found += [
                _Loop(level, tuple(dict.fromkeys(roots)), op) for (op, _), roots in folds.items()
            ]
            found += [
                _Loop(level, (slot,), window=one.op)
                for slot, one in self.windows.items()
                if isinstance(one.op, RowWindow) and self.levels[one.args[0]] == level
            ]
        return found


class _Lines:
    """Makes the lines of a row program in one order of its elements."""

    #: the order of its reductions, for ``loops.reduction_text``
    order: str
    #: whether a narrow slot is one number for a whole loop
    narrow_is_constant: bool
    #: how many elements each loop goes over, if all go over as many
    count: int | None
    #: whether the same element of many rows lies side by side
    by_rows: bool

    def __init__(self, program: RowProgram, name: str) -> None:
        self.of, self.n_out = program, len(program.outs)
        self.names = {loop: f"{name}_{k}" for k, loop in enumerate(program.loops)}
        for k, loop in enumerate(program.reducers):
            self.names[loop] = f"c->reducers[{k}]"

    def definitions(self, loop: _Loop) -> list[str] | None:
        """Return the C definitions of a loop, or None if a part of it has no C."""
        if loop in self.of.reducers:
            return []
        if loop.window is not None:
            type_, (first, last) = self.type(loop.roots[0]), loop.window.of
            return [_window_text(self.names[loop], type_, first, last, self.by_rows)]
        takes, program = self.of.loop_program(loop)
        name = self.names[loop]
        constant = [
            i for i, s in enumerate(takes) if self.narrow_is_constant and not self.of.wide[s]
        ]
        if loop.fold is None:
            text = loops.elemwise_text(name, program, constant, count=self.count)
        else:
            row, acc = loop.fold.of
            text = loops.reduction_text(
                name, row, acc, self.order, program, constant, count=self.count
            )
        return text and [*text[:-1], f"static {text[-1]}"]

    def lines(self) -> list[str]:
        """Return the statements for some rows; operations without C are known to be absent."""
        lines = self.begin()
        for level in range(max(self.of.levels, default=0) + 1):
            lines += self.narrow(level)
            for loop in self.of.loops:
                if loop.level == level:
                    lines += self.loop(loop)
        return [*lines, *self.end()]

    def type(self, slot: int) -> str:
        """Return the C type of a slot."""
        return csource.c_type(self.of.dtypes[slot])

    def size(self, slot: int) -> int:
        """Return the bytes of an element of a slot."""
        return np.dtype(self.of.dtypes[slot]).itemsize

    def accumulators(self, loop: _Loop) -> dict[int, str]:
        """Return the name of the accumulator for each slot that a loop reduces."""
        assert loop.fold is not None
        row, acc = loop.fold.of
        return {slot: f"a{slot}_{row}_{acc}" for slot in loop.roots}

    def expressions(self, level: int, at: str) -> list[tuple[int, str]]:
        """Return (slot, C expression) of the work on narrow slots of a level."""
        found = []
        for slot, one in self.of.narrow_at(level):
            if isinstance(one.op, RowFirst):
                first = self.first(*one.args)
                found.append((slot, f"(n && {first} - {first} == 0 ? {first} : 0)"))
                continue
            if isinstance(one.op, RowLength):
                found.append((slot, f"({self.type(slot)})n"))
                continue
            args = [f"x{a}{at}" for a in one.args]
            text = csource.step_c(one.op, args, self.of.arguments(one), one.dtype)
            assert text is not None
            found.append((slot, text))
        return found

    begin: Callable[[], list[str]]
    first: Callable[[int], str]
    narrow: Callable[[int], list[str]]
    loop: Callable[[_Loop], list[str]]
    end: Callable[[], list[str]]


class _Straight(_Lines):
    """One row after the other: a narrow slot is a number."""

    order, narrow_is_constant, count, by_rows = "run", True, None, False

    def begin(self) -> list[str]:
        of, lines = self.of, []
        #: C expression of the address of each wide slot that is in memory
        self.at = {slot: f"b{k}" for k, slot in enumerate(of.kept)}
        operands = [*enumerate(of.outs), *enumerate(range(len(of.in_dtypes)), self.n_out)]
        for k, slot in operands:
            at = f"(p[{k}] + row * st[{k}])"
            if of.wide[slot]:
                self.at.setdefault(slot, at)
            elif k >= self.n_out:
                lines.append(f"const {self.type(slot)} x{slot} = *(const {self.type(slot)} *){at};")
        return lines

    def first(self, slot: int) -> str:
        return f"*(const {self.type(slot)} *){self.at[slot]}"

    def narrow(self, level: int) -> list[str]:
        return [f"const {self.type(s)} x{s} = {text};" for s, text in self.expressions(level, "")]

    def loop(self, loop: _Loop) -> list[str]:
        if loop.window is not None:
            (slot,) = loop.roots
            (x,) = self.of.windows[slot].args
            return [f"{self.names[loop]}((void *){self.at[slot]}, (void *){self.at[x]}, n);"]
        of, (takes, _) = self.of, self.of.loop_program(loop)
        operands = [self.at[s] if of.wide[s] else f"&x{s}" for s in takes]
        steps = [self.size(s) if of.wide[s] else 0 for s in takes]
        lines, after = [], []
        if loop.fold is None:
            operands = [*(self.at[s] for s in loop.roots), *operands]
            steps = [*map(self.size, loop.roots), *steps]
        else:
            row, acc = loop.fold.of
            start = csource.literal(loops.FOLDS[row].start(acc), acc)
            totals = self.accumulators(loop)
            lines = [f"{csource.c_type(acc)} {total} = {start};" for total in totals.values()]
            operands = [*(f"&{total}" for total in totals.values()), *operands]
            steps = [*(0 for _ in totals), *steps]
            for root, slot in of.folded(loop):
                type_ = self.type(slot)
                after.append(f"const {type_} x{slot} = ({type_}){totals[root]};")
        return [*lines, *_call(self.names[loop], operands, map(str, steps), "n"), *after]

    def end(self) -> list[str]:
        return [
            f"*({self.type(slot)} *)(p[{k}] + row * st[{k}]) = x{slot};"
            for k, slot in enumerate(self.of.outs)
            if not self.of.wide[slot]
        ]


class _Turned(_Lines):
    """The same element of TURNED_ROWS rows, one after the other.

    Element j of row r of a wide slot is at ``w[j * d + r]``: in the array itself if rows lie side
    by side, or in a buffer. Narrow slots are arrays of rows. Only m rows may be left: then all are
    in buffers, where copies of the last row follow it, so that every loop has the same length.
    """

    order, narrow_is_constant, count, by_rows = "rows", False, TURNED_ROWS, True

    def begin(self) -> list[str]:
        of, lines = self.of, []
        for slot in range(len(of.in_dtypes)):
            k = self.n_out + slot
            if of.wide[slot]:
                lines += self._array(slot, k, inputs=True)
            else:
                lines.append(f"{self.type(slot)} x{slot}[{TURNED_ROWS}];")
                lines.append(self._copy("gather", f"x{slot}", f"p[{k}] + row * st[{k}]", slot, k))
        for k, slot in enumerate(of.outs):
            if of.wide[slot]:
                lines += self._array(slot, k)
        for slot in of.kept:
            lines.append(f"const ow_i64 d{slot} = {TURNED_ROWS};")
            lines.append(f"{self.type(slot)} *const w{slot} = b{slot};")
        return lines

    def buffers(self) -> list[str]:
        """Return the lines that divide the memory; the largest items come first."""
        lines, size = [], 0
        for slot in sorted(self.of.turned, key=self.size, reverse=True):
            at = f"memory + n * {TURNED_ROWS * size}"
            lines.append(f"{self.type(slot)} *const b{slot} = ({self.type(slot)} *)({at});")
            size += self.size(slot)
        return lines

    def first(self, slot: int) -> str:
        return f"w{slot}[r]"

    def narrow(self, level: int) -> list[str]:
        return self._numbers(self.expressions(level, "[r]"))

    def loop(self, loop: _Loop) -> list[str]:
        if loop.window is not None:
            (slot,) = loop.roots
            (x,) = self.of.windows[slot].args
            return [f"{self.names[loop]}(w{slot}, d{slot}, w{x}, d{x}, n);"]
        of, (takes, _) = self.of, self.of.loop_program(loop)
        name, slots = self.names[loop], [*(loop.roots if loop.fold is None else ()), *takes]
        steps, count = [str(self.size(s)) for s in slots], str(TURNED_ROWS)
        if loop.fold is None:
            operands = [f"(w{s} + j * d{s})" if of.wide[s] else f"x{s}" for s in slots]
            return ["for (ow_i64 j = 0; j < n; j++)", *_call(name, operands, steps, count)]
        row, acc = loop.fold.of
        type_, size = csource.c_type(acc), np.dtype(acc).itemsize
        start, totals = csource.literal(loops.FOLDS[row].start(acc), acc), self.accumulators(loop)
        lines = [f"{type_} {total}[{TURNED_ROWS}];" for total in totals.values()]
        lines += self._rows([f"{total}[r] = {start};" for total in totals.values()])
        operands = [*totals.values(), *(f"w{s}" if of.wide[s] else f"x{s}" for s in slots)]
        # behind the steps: how many rows the loop folds, and the steps from row to row
        steps = [*(str(size) for _ in totals), *steps, "n", *("0" for _ in list(totals)[1:])]
        steps += [f"d{s} * {self.size(s)}" if of.wide[s] else "0" for s in slots]
        lines += _call(name, operands, steps, count)
        results = of.folded(loop)
        return lines + self._numbers(
            [(slot, f"({self.type(slot)}){totals[r]}[r]") for r, slot in results]
        )

    def end(self) -> list[str]:
        lines = []
        for k, slot in enumerate(self.of.outs):
            at = f"p[{k}] + row * st[{k}]"
            if self.of.wide[slot]:
                lines.append(f"if (w{slot} == b{slot})")
                lines.append(f"    {self._copy('scatter', at, f'b{slot}', slot, k)}")
            else:
                lines.append(self._copy("scatter", at, f"x{slot}", slot, k))
        return lines

    def _numbers(self, values: Sequence[tuple[int, str]]) -> list[str]:
        """Return the lines that set arrays of numbers, one a row. values: (slot, expression)."""
        if not values:
            return []
        lines = [f"{self.type(slot)} x{slot}[{TURNED_ROWS}];" for slot, _ in values]
        return [*lines, *self._rows([f"x{slot}[r] = {text};" for slot, text in values])]

    @staticmethod
    def _rows(lines: Sequence[str]) -> list[str]:
        return [
            '_Pragma("GCC ivdep")',
            f"for (ow_i64 r = 0; r < {TURNED_ROWS}; r++) {{",
            *(f"    {line}" for line in lines),
            "}",
        ]

    def _copy(self, function: str, to: str, from_: str, slot: int, k: int) -> str:
        """Return the line that copies operand ``k`` to a buffer, or back."""
        along, n = (f"along[{k}]", "n") if self.of.wide[slot] else ("0", "1")
        return f"c->{function}({to}, {from_}, st[{k}], {along}, m, {n}, {self.size(slot)});"

    def _array(self, slot: int, k: int, inputs: bool = False) -> list[str]:
        """Return the lines that say where the elements of operand ``k`` are, or are put for now."""
        type_, size = self.type(slot), self.size(slot)
        lines = [
            f"{type_} *w{slot} = ({type_} *)(p[{k}] + row * st[{k}]);",
            f"ow_i64 d{slot} = along[{k}] / {size};",
            f"if (st[{k}] != {size} || along[{k}] % {size} || m < {TURNED_ROWS}) {{",
        ]
        if inputs:  # if all rows are the same one, the buffer has it already
            lines.append(f"    if (st[{k}] || row == 0)")
            lines.append(f"        {self._copy('gather', f'b{slot}', f'w{slot}', slot, k)}")
        return [*lines, f"    w{slot} = b{slot};", f"    d{slot} = {TURNED_ROWS};", "}"]


def _call(name: str, operands: Iterable[str], steps: Iterable[str], count: str) -> list[str]:
    """Return the lines that call a loop."""
    return [
        "{",
        f"    char *q[] = {{{', '.join(f'(char *){o}' for o in operands)}}};",
        f"    const ow_i64 steps[] = {{{', '.join(steps)}}};",
        f"    {name}(0, q, steps, {count});",
        "}",
    ]


#: sums of more neighbours are loops over these, not expressions
_MAX_TERMS = 16


def _window_text(name: str, type_: str, first: int, last: int, by_rows: bool) -> str:
    """Return the C function that adds up neighbours: ``z[j]`` becomes a sum of ``x``.

    type_: of the elements. first, last: see ``RowWindow``. by_rows: of the same element of
    TURNED_ROWS rows side by side, not along one row. Elements near the ends of a row, ``from`` in
    front and others from ``to`` on, have fewer neighbours.
    """
    if by_rows:
        operands = f"{type_} *restrict z, ow_i64 dz, const {type_} *restrict x, ow_i64 dx"
        to, of = "z[j * dz + r]", "x[(j + {}) * dx + r]"
        each = f"for (ow_i64 r = 0; r < {TURNED_ROWS}; r++) "
    else:
        operands = f"{type_} *restrict z, const {type_} *restrict x"
        to, of, each = "z[j]", "x[j + {}]", ""
    head = f"static void {name}({operands}, ow_i64 n)"
    if last - first >= _MAX_TERMS:
        return "\n".join([
            head,
            "{",
            f"    for (ow_i64 j = 0; j < n; j++) {each}{to} = 0;",
            f"    for (ow_i64 k = {first}; k <= {last}; k++)",
            "        for (ow_i64 j = k < 0 ? -k : 0; j < (k < 0 ? n : n - k); j++)",
            f"            {each}{to} += {of.format('k')};",
            "}",
        ])  # fmt: skip
    return "\n".join([
        head,
        "{",
        f"    ow_i64 from = {max(-first, 0)}, to = n - {max(last, 0)};",
        "    if (to < from)",
        "        from = to = n;",
        "    for (ow_i64 j = from; j < to; j++)",
        f"        {each}{to} = {' + '.join(of.format(k) for k in range(first, last + 1))};",
        "    for (ow_i64 e = 0; e < n - (to - from); e++) {",
        "        const ow_i64 j = e < from ? e : e + to - from;",
        f"        {each}{to} = 0;",
        f"        for (ow_i64 k = {first}; k <= {last}; k++)",
        "            if (j + k >= 0 && j + k < n)",
        f"                {each}{to} += {of.format('k')};",
        "    }",
        "}",
    ])  # fmt: skip
