"""C text of row programs: elementwise work and reductions along rows, one row after the other.

Variances, softmaxes, normalisations and their gradients read an array several times: a reduction of
a row is needed before the next pass over it. A row that stays in the cache is read from memory
once. The loops of the passes are those of ``opwise.scalar.loops``. Rows of few elements, and those
of arrays by columns, are turned: the loops go over the same element of many rows.

A row program has slots like a Composite's. Each is *wide*, a row of elements, or *narrow*, one
number for each row. The function is ``void name(const void *ctx, char **p, const ow_i64 *st, ow_i64
rows)``: the outputs and the inputs are at ``p``, the bytes from row to row in ``st``. ``ctx`` points
to an ``ow_rowwise_context`` of csupport/rowwise.h. Its memory holds ``RowProgram.buffers`` for one
row, or ``turned`` for ``TURNED_ROWS`` rows. Rows that are not turned are contiguous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opwise.scalar import csource, loops
from opwise.scalar.composite import Instruction
from opwise.scalar.op import cast_op

#: the most nanoseconds an element that a later pass spends to compute a value again
MAX_FREE_COST = 1.5
#: how many rows are turned at once
TURNED_ROWS = 64
#: bytes of a cache line
_LINE = 64


class RowFold(NamedTuple):
    """The instruction that reduces a wide slot to a narrow one."""

    #: name of an operation in ``loops.FOLDS``
    row: str
    #: the dtype that it accumulates in
    acc: str
    args: tuple[int, ...]
    #: of the result
    dtype: str


@dataclass(frozen=True)
class _Loop:
    """A loop over the elements of a row: an elementwise one, or a fold if ``fold`` is given."""

    level: int
    #: the slots that it stores, or reduces
    roots: tuple[int, ...]
    fold: tuple[str, str] | None = None


@dataclass(frozen=True)
class RowProgram:
    """Elementwise operations and reductions along rows."""

    in_dtypes: tuple[str, ...]
    #: whether each input is a row of elements for each row, and not one number
    wide_inputs: tuple[bool, ...]
    instructions: tuple[Instruction | RowFold, ...]
    outs: tuple[int, ...]

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of each slot."""
        return (*self.in_dtypes, *(one.dtype for one in self.instructions))

    @cached_property
    def wide(self) -> tuple[bool, ...]:
        """Whether each slot is a row of elements."""
        wide = list(self.wide_inputs)
        for one in self.instructions:
            wide.append(not isinstance(one, RowFold) and any(wide[a] for a in one.args))
        return tuple(wide)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """How many passes over the row come before each slot can be computed."""
        levels = [0] * len(self.in_dtypes)
        for one in self.instructions:
            before = max((levels[a] for a in one.args), default=0)
            levels.append(before + isinstance(one, RowFold))
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
        return max(sum(self._cost(slot) for slot in range(len(self.dtypes))), moved / 60)

    def scalar_program(self) -> tuple[Instruction, ...]:
        """Return the instructions with a cast in the place of each reduction.

        They need the same C declarations.
        """
        return tuple(
            Instruction(cast_op(one.dtype), one.args, one.dtype)
            if isinstance(one, RowFold)
            else one
            for one in self.instructions
        )

    def text(self, name: str) -> list[str] | None:
        """Return the C definitions, the function last; None if a part of it has no C."""
        return _Rows(self, name).definitions()

    # --- the plan -------------------------------------------------------------------------------

    @property
    def loops(self) -> tuple[_Loop, ...]:
        """The loops over the elements of a row, in order."""
        return self._plan[1]

    def narrow_at(self, level: int) -> list[tuple[int, Instruction]]:
        """Return (slot, instruction) of the elementwise work on narrow slots of a level."""
        return [
            (slot, one)
            for slot, one in enumerate(self.instructions, len(self.in_dtypes))
            if not isinstance(one, RowFold) and not self.wide[slot] and self.levels[slot] == level
        ]

    def folded(self, loop: _Loop) -> list[tuple[int, int]]:
        """Return (slot that a loop reduces, slot of the result)."""
        return [
            (one.args[0], slot)
            for slot, one in enumerate(self.instructions, len(self.in_dtypes))
            if isinstance(one, RowFold)
            and (one.row, one.acc) == loop.fold
            and one.args[0] in loop.roots
        ]

    def loop_program(self, loop: _Loop) -> tuple[list[int], list[Instruction], list[int]]:
        """Return (slots that a loop reads, its scalar program on them, slots of the results)."""
        stored = {*self.kept, *(s for s in self.outs if self.wide[s])}
        if loop.fold is None:
            stored.difference_update(loop.roots)
        before = loop.level if loop.fold is None else loop.level + 1
        inside = self.closure(loop.roots, (s for s in stored if self.levels[s] < before))
        read = [a for s in inside for a in self.instructions[s - len(self.in_dtypes)].args]
        takes = list(dict.fromkeys((*read, *loop.roots)))
        takes = [s for s in takes if s not in set(inside)]
        places = {s: i for i, s in enumerate((*takes, *inside))}
        instructions = []
        for one in map(self._instruction, inside):
            assert isinstance(one, Instruction)
            instructions.append(one._replace(args=tuple(places[a] for a in one.args)))
        outs = [places[s] for s in loop.roots]
        if not instructions:  # it reduces what lies in memory
            instructions = [
                Instruction(cast_op(self.dtypes[s]), (i,), self.dtypes[s])
                for i, s in enumerate(takes)
            ]
            outs = [len(takes) + o for o in outs]
        return takes, instructions, outs

    def _instruction(self, slot: int) -> Instruction | RowFold | None:
        k = slot - len(self.in_dtypes)
        return self.instructions[k] if k >= 0 else None

    def _cost(self, slot: int) -> float:
        """Return about how many nanoseconds a slot takes for each element."""
        one = self._instruction(slot)
        if one is None or (not self.wide[slot] and not isinstance(one, RowFold)):
            return 0.0
        if isinstance(one, RowFold):
            return 0.25
        cost = one.op.element_cost(len(one.args))
        return cost * (0.4 if one.dtype == "float32" else 1.0)

    def closure(self, roots: Iterable[int], stored: Iterable[int]) -> list[int]:
        """Return the wide slots that a loop computes for its roots, in order.

        stored: those that it reads.
        """
        stored, found, pending = set(stored), set(), list(roots)
        while pending:
            slot = pending.pop()
            one = self._instruction(slot)
            if slot in found or slot in stored or one is None or not self.wide[slot]:
                continue
            found.add(slot)
            pending.extend(one.args)
        return sorted(found)

    @cached_property
    def _plan(self) -> tuple[tuple[int, ...], tuple[_Loop, ...]]:
        """(slots to keep, loops in order)."""
        loops_ = self._loops(())
        users: dict[int, set[int]] = {}
        for k, loop in enumerate(loops_):
            for slot in self.closure(loop.roots, ()):
                users.setdefault(slot, set()).add(k)
        given = set(self.outs)
        again: dict[int, float] = {}
        kept = []
        for slot in sorted(users):
            one = self._instruction(slot)
            assert one is not None
            cost = self._cost(slot) + sum(again.get(a, 0.0) for a in one.args)
            if not loops.is_cheap([one]):
                cost = np.inf
            again[slot] = cost
            if slot in given:
                again[slot] = 0.0
            elif len(users[slot]) > 1 and cost > MAX_FREE_COST:
                kept.append(slot)
                again[slot] = 0.0
        return tuple(kept), tuple(self._loops(kept))

    def _loops(self, kept: Sequence[int]) -> list[_Loop]:
        """Return the loops, in the order of their levels; those that store come first."""
        found = []
        for level in range(max(self.levels, default=0) + 1):
            stores = [
                s
                for s in dict.fromkeys((*self.outs, *kept))
                if self.wide[s] and s >= len(self.in_dtypes) and self.levels[s] == level
            ]
            if stores:
                found.append(_Loop(level, tuple(sorted(stores))))
            folds: dict[tuple, list[int]] = {}
            for one in self.instructions:
                if isinstance(one, RowFold) and self.levels[one.args[0]] == level:
                    # loops of extrema have one result: they look for NaN beside it
                    apart = None if one.row in ("add", "mul") else one.args[0]
                    folds.setdefault((one.row, one.acc, apart), []).append(one.args[0])
            found += [
                _Loop(level, tuple(dict.fromkeys(roots)), how[:2]) for how, roots in folds.items()
            ]
        return found


class _Rows:
    """Makes the C function of a row program."""

    def __init__(self, program: RowProgram, name: str) -> None:
        self.of, self.name = program, name
        n_out = len(program.outs)
        #: C expression of the address of each wide slot that is in memory
        self.at = {
            slot: f"(p[{n_out + slot}] + row * st[{n_out + slot}])"
            for slot in range(len(program.in_dtypes))
            if program.wide[slot]
        }
        for k, slot in enumerate(program.outs):
            if program.wide[slot]:
                self.at.setdefault(slot, f"(p[{k}] + row * st[{k}])")
        self.at |= {slot: f"b{k}" for k, slot in enumerate(program.kept)}

    def definitions(self) -> list[str] | None:
        of, n_out = self.of, len(self.of.outs)
        definitions: list[str] = []
        lines = [
            f"const {csource.c_type(of.dtypes[s])} x{s} = *(const {csource.c_type(of.dtypes[s])} *)"
            f"(p[{n_out + s}] + row * st[{n_out + s}]);"
            for s in range(len(of.in_dtypes))
            if not of.wide[s]
        ]
        done = set()
        for level in range(max(of.levels, default=0) + 1):
            narrow = self._narrow(level)
            if narrow is None:
                return None
            lines += narrow
            for loop in (one for one in of.loops if one.level == level):
                text, call = self._loop(f"{self.name}_{len(done)}", loop)
                if text is None:
                    return None
                done.add(loop)
                definitions += text
                lines += call
        for k, slot in enumerate(of.outs):
            type_ = csource.c_type(of.dtypes[slot])
            if not of.wide[slot]:
                lines.append(f"*({type_} *)(p[{k}] + row * st[{k}]) = x{slot};")
        buffers, at = [], "0"
        for k, dtype in enumerate(of.buffers):
            buffers.append(f"char *const b{k} = c->memory + {at};")
            at += f" + (n * {np.dtype(dtype).itemsize} + {_LINE - 1}) / {_LINE} * {_LINE}"
        function = [
            f"void {self.name}(const void *ctx, char **p, const ow_i64 *st, ow_i64 rows)",
            "{",
            "    const struct { ow_i64 n, turned; char *memory; const ow_i64 *along; }",
            "        *const c = ctx;",
            "    const ow_i64 n = c->n;",
            "    if (c->turned) {",
            f"        {self.name}_turned(p, st, c->along, rows, n, c->memory);",
            "        return;",
            "    }",
            *(f"    {line}" for line in buffers),
            "    for (ow_i64 row = 0; row < rows; row++) {",
            *(f"        {line}" for line in lines),
            "    }",
            "}",
        ]
        turned = _Turned(self.of, f"{self.name}_turned").definitions()
        return [*definitions, *turned, "\n".join(function)]

    def _narrow(self, level):
        """Return the statements that compute the narrow slots of a level, or None."""
        of, lines = self.of, []
        for slot, one in of.narrow_at(level):
            args, dtypes = [f"x{a}" for a in one.args], [of.dtypes[a] for a in one.args]
            text = csource.step_c(one.op, args, dtypes, one.dtype)
            if text is None:
                return None
            lines.append(f"const {csource.c_type(one.dtype)} x{slot} = {text};")
        return lines

    def _loop(self, name, loop):
        """Return (the C definitions of a loop, the statements that call it)."""
        of = self.of
        takes, instructions, outs = of.loop_program(loop)
        in_dtypes = [of.dtypes[s] for s in takes]
        still = [i for i, s in enumerate(takes) if not of.wide[s]]
        operands = [self.at[s] if of.wide[s] else f"&x{s}" for s in takes]
        steps = [str(np.dtype(of.dtypes[s]).itemsize if of.wide[s] else 0) for s in takes]
        if loop.fold is None:
            text = loops.elemwise_text(name, instructions, outs, in_dtypes, still)
            operands = [*(self.at[s] for s in loop.roots), *operands]
            steps = [*(str(np.dtype(of.dtypes[s]).itemsize) for s in loop.roots), *steps]
            return _local(text), self._call(name, operands, steps)
        row, acc = loop.fold
        text = loops.reduction_text(name, row, acc, True, instructions, outs, in_dtypes, still)
        start = csource.literal(loops.FOLDS[row].start(acc), acc)
        totals = {s: f"a{s}_{row}_{acc}" for s in loop.roots}
        lines = [f"{csource.c_type(acc)} {total} = {start};" for total in totals.values()]
        operands = [*(f"&{total}" for total in totals.values()), *operands]
        steps = [*("0" for _ in totals), *steps]
        lines += self._call(name, operands, steps)
        for root, slot in of.folded(loop):
            type_ = csource.c_type(of.dtypes[slot])
            lines.append(f"const {type_} x{slot} = ({type_}){totals[root]};")
        return _local(text), lines

    @staticmethod
    def _call(name, operands, steps):
        return [
            "{",
            f"    char *q[] = {{{', '.join(f'(char *){o}' for o in operands)}}};",
            f"    const ow_i64 steps[] = {{{', '.join(steps)}}};",
            f"    {name}(0, q, steps, n);",
            "}",
        ]


class _Turned:
    """Makes the C function of a row program on turned rows.

    Element j of row r of a wide slot is at ``w[j * d + r]``: in the array itself if rows lie side
    by side, or in a buffer. Narrow slots are arrays of rows.
    """

    def __init__(self, program: RowProgram, name: str) -> None:
        self.of, self.name = program, name

    def definitions(self) -> list[str]:
        """Return the C definitions; that every operation has C is known."""
        of, n_out = self.of, len(self.of.outs)
        definitions: list[str] = []
        lines: list[str] = []
        for slot in range(len(of.in_dtypes)):
            type_, k = csource.c_type(of.dtypes[slot]), n_out + slot
            if of.wide[slot]:
                lines += self._array(slot, k, f"b{slot}[j * {TURNED_ROWS} + r] = {{at}};", "const ")
            else:
                lines.append(f"{type_} x{slot}[{TURNED_ROWS}];")
                lines += self._rows(
                    f"x{slot}[r] = *(const {type_} *)(p[{k}] + (row + r) * st[{k}]);"
                )
        stored = []
        for k, slot in enumerate(of.outs):
            if of.wide[slot] and slot not in stored:
                stored.append(slot)
                lines += self._array(slot, k)
        lines += [f"const ow_i64 d{slot} = {TURNED_ROWS};" for slot in of.kept]
        lines += [f"{self._type(slot)} *const w{slot} = b{slot};" for slot in of.kept]
        for level in range(max(of.levels, default=0) + 1):
            lines += self._narrow(level)
            for k, loop in enumerate(of.loops):
                if loop.level == level:
                    text, more = self._loop(f"{self.name}{k}", loop)
                    definitions.append(text)
                    lines += more
        for k, slot in enumerate(of.outs):
            if not of.wide[slot]:
                row = f"({self._type(slot)} *)(p[{k}] + (row + r) * st[{k}])"
                lines += self._rows(f"*{row} = x{slot}[r];")
                continue
            lines.append(f"if (w{slot} != ({self._type(slot)} *)(p[{k}] + row * st[{k}])) {{")
            lines += [
                f"    {line}" for line in self._each(slot, k, f"{{at}} = w{slot}[j * d{slot} + r];")
            ]
            lines.append("}")
        function = [
            f"static void {self.name}(char **p, const ow_i64 *st, const ow_i64 *along, "
            "ow_i64 rows, ow_i64 n, char *memory)",
            "{",
            *(f"    {line}" for line in self._buffers()),
            f"    for (ow_i64 row = 0; row < rows; row += {TURNED_ROWS}) {{",
            f"        const ow_i64 m = rows - row < {TURNED_ROWS} ? rows - row : {TURNED_ROWS};",
            *(f"        {line}" for line in lines),
            "    }",
            "}",
        ]
        return [*definitions, "\n".join(function)]

    def _type(self, slot):
        return csource.c_type(self.of.dtypes[slot])

    def _buffers(self):
        """Return the lines that divide the memory; the largest items come first."""
        lines, size = [], 0
        for slot in sorted(self.of.turned, key=lambda s: -np.dtype(self.of.dtypes[s]).itemsize):
            at = f"memory + n * {TURNED_ROWS * size}"
            lines.append(f"{self._type(slot)} *const b{slot} = ({self._type(slot)} *)({at});")
            size += np.dtype(self.of.dtypes[slot]).itemsize
        return lines

    def _array(self, slot, k, gather=None, const=""):
        """Return the lines that say where the elements of operand ``k`` are, or are put for now."""
        type_, lines = self._type(slot), []
        size = np.dtype(self.of.dtypes[slot]).itemsize
        lines += [
            f"{const}{type_} *w{slot} = ({const}{type_} *)(p[{k}] + row * st[{k}]);",
            f"ow_i64 d{slot} = along[{k}] / {size};",
            f"if (st[{k}] != {size} || along[{k}] % {size}) {{",
            f"    w{slot} = b{slot};",
            f"    d{slot} = {TURNED_ROWS};",
        ]
        if gather is not None:
            lines += [
                f"    if (st[{k}] == 0) {{",
                "        for (ow_i64 j = 0; row == 0 && j < n; j++)",
                f"            for (ow_i64 r = 0; r < {TURNED_ROWS}; r++)",
                f"                b{slot}[j * {TURNED_ROWS} + r] = "
                f"*(const {type_} *)(p[{k}] + j * along[{k}]);",
                "    } else",
                *(f"        {line}" for line in self._each(slot, k, gather)),
            ]
        return [*lines, "}"]

    def _each(self, slot, k, statement):
        """Return the lines that run a statement for each element ``{at}`` of operand ``k``."""
        type_, size = self._type(slot), np.dtype(self.of.dtypes[slot]).itemsize
        return [
            "for (ow_i64 r = 0; r < m; r++) {",
            f"    char *from = p[{k}] + (row + r) * st[{k}];",
            f"    if (along[{k}] == {size})",
            "        for (ow_i64 j = 0; j < n; j++)",
            f"            {statement.format(at=f'(({type_} *)from)[j]')}",
            "    else",
            "        for (ow_i64 j = 0; j < n; j++)",
            f"            {statement.format(at=f'*({type_} *)(from + j * along[{k}])')}",
            "}",
        ]

    @staticmethod
    def _rows(*lines):
        return [
            '_Pragma("GCC ivdep")',
            "for (ow_i64 r = 0; r < m; r++) {",
            *(f"    {line}" for line in lines),
            "}",
        ]

    def _narrow(self, level):
        of, lines, each = self.of, [], []
        for slot, one in of.narrow_at(level):
            args, dtypes = [f"x{a}[r]" for a in one.args], [of.dtypes[a] for a in one.args]
            lines.append(f"{csource.c_type(one.dtype)} x{slot}[{TURNED_ROWS}];")
            each.append(f"x{slot}[r] = {csource.step_c(one.op, args, dtypes, one.dtype)};")
        return [*lines, *(self._rows(*each) if each else [])]

    def _loop(self, name, loop):
        """Return (the C function of a loop's scalar program, the statements of the loop)."""
        of = self.of
        takes, instructions, outs = of.loop_program(loop)
        body = loops.body_text(name, instructions, outs, [of.dtypes[s] for s in takes])
        args = [f"w{s}[j * d{s} + r]" if of.wide[s] else f"x{s}[r]" for s in takes]
        if loop.fold is None:
            call = ", ".join([*args, *(f"&w{s}[j * d{s} + r]" for s in loop.roots)])
            return body, self._elements(f"{name}_one({call});")
        row, acc = loop.fold
        fold, type_ = loops.FOLDS[row], csource.c_type(acc)
        start = csource.literal(fold.start(acc), acc)
        totals = {s: f"a{s}_{row}_{acc}" for s in loop.roots}
        lines = [f"{type_} {total}[{TURNED_ROWS}];" for total in totals.values()]
        lines += self._rows(*(f"{total}[r] = {start};" for total in totals.values()))
        call = ", ".join([*args, *(f"&v{s}" for s in loop.roots)])
        take = [f"{csource.c_type(of.dtypes[s])} v{s};" for s in loop.roots]
        take.append(f"{name}_one({call});")
        for s, total in totals.items():
            take.append(f"const {type_} e{s} = ({type_})v{s};")
            take.append(f"{total}[r] = {fold.join(f'{total}[r]', f'e{s}', acc, type_)};")
        lines += self._elements(*take)
        results = []
        for root, slot in of.folded(loop):
            type_ = csource.c_type(of.dtypes[slot])
            lines.append(f"{type_} x{slot}[{TURNED_ROWS}];")
            results.append(f"x{slot}[r] = ({type_}){totals[root]}[r];")
        return body, [*lines, *self._rows(*results)]

    def _elements(self, *lines):
        return [
            "for (ow_i64 j = 0; j < n; j++) {",
            *(f"    {line}" for line in self._rows(*lines)),
            "}",
        ]


def _local(definitions):
    """Return definitions of a loop that is called in this file alone."""
    if definitions is None:
        return None
    *others, loop = definitions
    return [*others, loop.replace("void ", "static void ", 1)]
