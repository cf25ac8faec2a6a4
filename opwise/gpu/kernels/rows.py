"""Kernels of row programs: elementwise work and reductions along the rows of arrays.

A group of threads computes a row, in a pass for each reduction that another one waits for. What
several passes read is held in shared memory, so each element is loaded once. Rows that do not fit
it, and few long ones, are cut into segments: each pass is a launch then, whose groups begin with
what the passes before have found of their row. Rows and columns are 32-bit indices; offsets in
memory have 64 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import ScalarProgram, c_type, load, position, store, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    Plan,
    batched,
    grid_of,
    in_braces,
    is_used,
    make_kernel,
    with_head,
)
from opwise.gpu.kernels.reduce import Folding, across
from opwise.scalar.program import Instruction
from opwise.scalar.rowloops import MAX_FREE_COST, OfRow, RowColumn, RowFold, RowProgram, RowWindow

#: a line that declares a constant
_DECLARED = re.compile(r"const \w+ \*?(\w+) = ")
#: 32-bit registers for elements that a thread loads before it uses them: one by one, in vectors
_REGISTERS, _OF_VECTORS = 4, 8
_WARP = 32
#: bytes of shared memory left for the joins of a block (see ``reduce.across``)
_FOR_JOINS = 1024
#: the fewest vectors of a row, or of a segment, for each thread of its group
_WORTH = 4
#: how many rows a block computes with a thread for each
_BESIDE = 64
#: fewer rows than these are cut into segments, if they are long
_FEW_ROWS = 64
#: so many groups keep any device busy
_ENOUGH = 1024


class RowLabel(OfRow):
    """The column that an integer of a row names; one that names none is reported, and is -1."""

    nin = 1
    reads_elements = False


class _To(NamedTuple):
    """What becomes of a result of the work on an element."""

    #: "fold": reduction ``number`` takes it in; "out": it is an element of that output; "held": of
    #: that slot, in shared memory
    kind: str
    number: int


@dataclass(frozen=True)
class _Pass:
    """What is computed between two reductions that wait for each other."""

    level: int
    #: slots of numbers of a row that are computed before the elements
    narrow: tuple[int, ...]
    #: the slots that the work on an element reads, its program, and what becomes of its results
    takes: tuple[int, ...]
    program: ScalarProgram
    gives: tuple[_To, ...]
    #: the inputs that it reads first and holds
    holds: frozenset[int] = frozenset()


def missing(program: RowProgram) -> str | None:
    """Return the reason why kernels cannot compute a program, or None."""
    for one in program.instructions:
        if isinstance(one.op, RowWindow):
            return "kernels do not add up neighbours"
    works = [one for one in program.instructions if not isinstance(one.op, OfRow | RowColumn)]
    plain = ScalarProgram(program.dtypes, tuple(works))
    return plain.missing()


class _Passes:
    """The passes of a program. holds: whether what several of them read is held."""

    def __init__(self, program: RowProgram, holds: bool) -> None:
        self.of, self.n_in = program, len(program.in_dtypes)
        self.levels = range(max(program.levels, default=0) + 1)
        self.held = self._chosen() if holds else ()
        self.passes = [self._pass(level) for level in self.levels]

    def _roots(self, level: int) -> Iterator[tuple[int, _To]]:
        """Yield (wide slot, what becomes of it) of what a pass computes for others."""
        of = self.of
        for slot, one in of.numbered():
            if isinstance(one.op, RowFold) and of.levels[slot] == level + 1:
                yield one.args[0], _To("fold", slot)
        for k, slot in enumerate(of.outs):
            if of.wide[slot] and of.levels[slot] == level:
                yield slot, _To("out", k)

    def _worked(self, held: Sequence[int]) -> list[tuple[list[int], list[int]]]:
        """Return by pass (the wide slots that it computes, those that it reads)."""
        found: list[tuple[list[int], list[int]]] = []
        known = set(self.of.columns)
        for level in self.levels:
            roots = [slot for slot, _ in self._roots(level)]
            inside = self.of.closure(roots, known)
            takes = [slot for slot in self.of.read_by(inside, roots) if self.of.wide[slot]]
            found.append((inside, takes))
            known.update({*inside, *takes}.intersection(held))
        return found

    def _chosen(self) -> tuple[int, ...]:
        """Return the slots to hold: inputs, and what costs more to compute again than to hold."""
        held: list[int] = []
        for slot in reversed(range(len(self.of.dtypes))):
            if not self.of.wide[slot] or slot in self.of.columns:
                continue
            works = self._worked(held)
            if sum(slot in (*inside, *takes) for inside, takes in works) < 2:
                continue
            again = self.of.closure([slot], (*held, *self.of.columns))
            cost = sum(self.of.cost(s) for s in again)
            read = [s for s in self.of.read_by(again, [slot]) if self.of.wide[s]]
            if slot < self.n_in or cost > MAX_FREE_COST or len(read) > 1:
                held.append(slot)
        return tuple(sorted(held))

    def _pass(self, level: int) -> _Pass:
        of, roots = self.of, list(self._roots(level))
        works = self._worked(self.held)
        inside, read = works[level]
        before = {slot for pair in works[:level] for slots in pair for slot in slots}
        first = {s for s in (*inside, *read) if s in self.held and s not in before}
        kept = sorted(first.intersection(inside))
        results = [slot for slot, _ in roots] + kept
        takes, program = of.part(inside, results)
        return _Pass(
            level,
            tuple(slot for slot, _ in of.narrow_at(level)),
            tuple(takes),
            ScalarProgram(program.in_dtypes, program.instructions, program.outs),
            (*(to for _, to in roots), *(_To("held", slot) for slot in kept)),
            frozenset(first.intersection(read)),
        )

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """Return {held slot: (bytes of an element, which place of that size it has)}.

        A place is free again in the last pass that reads it: an element is read before others of
        this column are written.
        """
        last = {slot: one.level for one in self.passes for slot in one.takes}
        places: dict[int, tuple[int, int]] = {}
        counts: dict[int, int] = {}
        free: dict[int, list[int]] = {}
        for one in self.passes:
            ending = [s for s in self.held if s in places and last.get(s) == one.level]
            for slot in ending:
                free.setdefault(places[slot][0], []).append(places[slot][1])
            kept = [to.number for to in one.gives if to.kind == "held"]
            for slot in (*sorted(one.holds), *kept):
                size = cudatext.itemsize(cudatext.held(self.of.dtypes[slot]))
                if free.get(size):
                    places[slot] = size, free[size].pop()
                else:
                    places[slot] = size, counts.get(size, 0)
                    counts[size] = counts.get(size, 0) + 1
        return places

    @property
    def bytes(self) -> int:
        """The bytes that are held of a column."""
        return sum(size for size, _ in set(self.places.values()))

    def starts(self) -> dict[int, int]:
        """Return {held slot: bytes of a column that lie before its own}; the largest come first."""
        order = sorted(set(self.places.values()), key=lambda place: (-place[0], place[1]))
        before = np.cumsum([0, *(size for size, _ in order)])
        at = dict(zip(order, before.tolist(), strict=False))
        return {slot: at[place] for slot, place in self.places.items()}


class RowKernels:
    """The kernels of a row program, and its plans.

    Its inputs are arrays of one rank, of which those that are one number for each row have a last
    dimension of length 1. Outputs are in C order.
    """

    def __init__(self, stem: str, program: RowProgram, ndim: int) -> None:
        """stem: part of the kernels' names. ndim: dimensions of the inputs."""
        self.stem, self.program, self.outer = stem, program, ndim - 1
        self.n_in = len(program.in_dtypes)
        self.reports = any(isinstance(one.op, RowLabel) for one in program.instructions)
        self.foldings = {
            slot: Folding.of(one.op.of[0], one.op.of[1], one.dtype)
            for slot, one in program.numbered()
            if isinstance(one.op, RowFold)
        }
        self.wide = [slot for slot in range(self.n_in) if program.wide[slot]]
        of_arrays = [*self.wide, *(s for s in program.outs if program.wide[s])]
        widest = max(cudatext.itemsize(program.dtypes[s]) for s in of_arrays)
        self.width = min(8, cudatext.VECTOR_BYTES // widest)
        self.holding, self.plain = _Passes(program, True), _Passes(program, False)
        together = _Text(self, self.holding)
        self.together = {width: together.whole(width) for width in (self.width, 1)}
        apart = _Text(self, self.plain)
        #: the kernels of each pass, for rows in segments; None for one that does nothing
        self.apart: dict[int, list[Kernel | None]] = {
            width: [apart.one(one, width) for one in self.plain.passes] for width in (self.width, 1)
        }

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        apart = (kernel for found in self.apart.values() for kernel in found)
        return tuple(dict.fromkeys((*self.together.values(), *filter(None, apart))))

    def plan(self, shape: tuple[int, ...], inputs: Sequence[Layout], limits: DeviceLimits) -> Plan:
        """Return the Plan. shape: of the arrays, to which inputs are broadcast."""
        *outer, n = shape
        rows = int(np.prod(outer, dtype=np.int64))
        if rows == 0 or (n == 0 and all(self.program.wide[s] for s in self.program.outs)):
            return Plan(())
        if max(rows, n) >= 2**31 - 2**20:
            raise ValueError(f"{rows} rows of {n} elements are too many for kernels on rows")
        wide = self.program.wide
        steps = [
            layouts.steps_of(x, (*outer, n if wide[slot] else 1)) for slot, x in enumerate(inputs)
        ]
        walk = layouts.walk(outer, [s[:-1] for s in steps], reorder=False)
        lengths, columns = walk.padded(self.outer)
        along = tuple(steps[slot][-1] for slot in self.wide)
        width = self._width(inputs, walk, along, n)
        numbers = (*layouts.lengths(lengths, False), *layouts.by_array(columns), *along)
        ins = tuple(Array("in", i) for i in range(self.n_in))
        outs = tuple(Array("out", k) for k in range(len(self.program.outs)))
        flag = (Array("error_flag"),) * self.reports
        segments = -(-n // (THREADS * width * _WORTH))
        if rows >= _FEW_ROWS or segments <= _WORTH:
            lanes, group = _block(n, width)
            if self._lies_by_rows(walk, along):
                lanes, group = 1, _BESIDE
            room = limits.shared - _FOR_JOINS
            while group > 1 and group * n * self.holding.bytes > room:
                group //= 2
            shared = group * n * self.holding.bytes
            if shared <= room:
                grid = grid_of(rows, limits, group)
                given = (rows, n, *numbers)
                arrays = (*ins, *outs, *flag)
                whole = self.together[width]
                return Plan((Launch(whole, grid, (lanes, group), arrays, given, shared),))
        segments = max(1, min(segments, -(-_ENOUGH // rows)))
        span = -(-n // segments)
        span += -span % width
        segments = max(1, -(-n // span)) if span else 1
        scratch = tuple(Array("scratch", k) for k in range(len(self.foldings)))
        launches = []
        for one, kernel in zip(self.plain.passes, self.apart[width], strict=True):
            if kernel is None:
                continue
            own = segments if one.gives else 1
            block = _block(span if one.gives else segments, width)
            grid = grid_of(rows * own, limits, block[1])
            given = (rows, n, own, segments, span, *numbers)
            launches.append(Launch(kernel, grid, block, (*ins, *outs, *scratch, *flag), given))
        sizes = [cudatext.itemsize(cudatext.held(f.dtypes[0])) for f in self.foldings.values()]
        return Plan(tuple(launches), tuple(size * rows * segments for size in sizes))

    def _width(self, inputs, walk, along, n):
        """Return how many elements are loaded at once."""
        if n % self.width or any(step != 1 for step in along):
            return 1
        for slot in self.wide:
            layout = inputs[slot]
            if layout.alignment % min(cudatext.VECTOR_BYTES, layout.itemsize * self.width):
                return 1
            if any(column[slot] % self.width for column in walk.steps):
                return 1
        return self.width

    def _lies_by_rows(self, walk, along):
        """Return whether elements of adjacent rows, not columns, are adjacent in memory."""
        if not walk.steps or not along:
            return False
        inner = [walk.steps[-1][slot] for slot in self.wide]
        return sum(map(abs, inner)) < sum(map(abs, along))


def _block(n, width):
    """Return (how many threads share a row, a power of 2; how many rows a block computes)."""
    wanted = -(-n // (width * _WORTH))
    lanes = min(THREADS, 1 << max(0, wanted - 1).bit_length())
    return (lanes, 1) if lanes > _WARP else (lanes, THREADS // lanes)


def _without_unused(lines: Sequence[str]) -> list[str]:
    """Return lines without those that declare a constant which no later one mentions."""
    kept: list[str] = []
    for line in reversed(lines):
        declared = _DECLARED.match(line)
        if declared is None or is_used(declared[1], kept):
            kept.append(line)
    return kept[::-1]


class _Text:
    """Writes the kernels of a RowKernels."""

    def __init__(self, kernels: RowKernels, passes: _Passes) -> None:
        self.k, self.passes, self.of = kernels, passes, kernels.program
        self.width = 1
        self.needs: dict[str, None] = {}

    def whole(self, width: int) -> Kernel:
        """Return the kernel of all passes, which holds what several of them read."""
        self._begin(width)
        body = [
            *self._row("row"),
            "const ow_i32 from = 0;",
            "const ow_i32 m = row < rows ? n : 0;",
            *self._numbers_of_row("row < rows"),
        ]
        for one in self.passes.passes:
            body += self._narrow(one)
            body += self._elements(one)
            body += self._joined(one)
            for slot in self._folds(one):
                body.append(f"const {c_type(self.of.dtypes[slot])} n{slot} = {self._final(slot)};")
        body += self._stored_numbers(range(len(self.passes.passes)), "row < rows")
        starts = self.passes.starts()
        shared = ["OW_SHARED;"] if starts else []
        for slot, at in starts.items():
            type_ = c_type(self.of.dtypes[slot])
            place = f"ow_shared + (ow_i64)blockDim.y * n * {at}"
            shared.append(f"{type_} *h{slot} = ({type_} *)({place}) + threadIdx.y * n;")
        lines = [
            *shared,
            "for (ow_i32 first = blockIdx.x * blockDim.y; first < rows;"
            " first += gridDim.x * blockDim.y) {",
            "    const ow_i32 row = first + (ow_i32)threadIdx.y;",
            *(f"    {line}" for line in _without_unused(body)),
            "}",
        ]
        return self._kernel("", lines, [("ow_i32", "rows"), ("ow_i32", "n")])

    def one(self, one: _Pass, width: int) -> Kernel | None:
        """Return the kernel of a pass over segments of rows; None if there is nothing to do."""
        stored = self._stored_numbers([one.level], "row < rows && segment == 0")
        if not one.gives and not stored:
            return None
        self._begin(width)
        body = [
            "const ow_i32 row = (ow_u32)group / segments;",
            "const ow_i32 segment = group - row * segments;",
            *self._row("row"),
            "const ow_i32 from = segment * span;",
            "const ow_i32 m = row >= rows ? 0 : n - from < span ? n : from + span;",
            *self._numbers_of_row("row < rows"),
        ]
        for before in self.passes.passes[: one.level + 1]:
            body += self._narrow(before)
            if before is one:
                break
            for slot in self._folds(before):
                body += self._found(slot)
        body += self._elements(one)
        body += self._joined(one)
        for slot in self._folds(one):
            body += with_head(
                "if (threadIdx.x == 0 && row < rows)",
                in_braces([f"f{slot}[(ow_i64)row * parts + segment] = t{slot};"]),
            )
        body += stored
        lines = [
            "for (ow_i32 first = blockIdx.x * blockDim.y; first < rows * segments;"
            " first += gridDim.x * blockDim.y) {",
            "    const ow_i32 group = first + (ow_i32)threadIdx.y;",
            *(f"    {line}" for line in _without_unused(body)),
            "}",
        ]
        counts = [("ow_i32", name) for name in ("rows", "n", "segments", "parts", "span")]
        return self._kernel(f"_{one.level}", lines, counts, partial=True)

    def _begin(self, width: int) -> None:
        self.width, self.needs = width, {}
        names = ["half"] if "float16" in self.of.dtypes else []
        names += ["complain"] if self.k.reports else []
        self._need(*cudatext.support(*names))

    def _need(self, *texts: str) -> None:
        self.needs |= dict.fromkeys(filter(None, texts))

    def _kernel(
        self, stem: str, lines: list[str], counts: list[tuple[str, str]], partial: bool = False
    ) -> Kernel:
        of, outer = self.of, self.k.outer
        parameters = [
            (f"const {stored(d)} *__restrict__", f"a{slot}") for slot, d in enumerate(of.in_dtypes)
        ]
        parameters += [(f"{stored(d)} *", f"z{k}") for k, d in enumerate(of.out_dtypes)]
        if partial:
            parameters += [
                (f"{c_type(f.dtypes[0])} *", f"f{slot}") for slot, f in self.k.foldings.items()
            ]
        parameters += [("ow_u32 *", "wrong")] if self.k.reports else []
        parameters += [*counts, *cudatext.lengths("l", outer, False)]
        parameters += [
            ("ow_i64", f"s{slot}_{d}") for slot in range(self.k.n_in) for d in range(outer)
        ]
        parameters += [("ow_i64", f"step{slot}") for slot in self.k.wide]
        stem = f"{self.k.stem}{stem}{'_vectors' if self.width > 1 else ''}"
        return make_kernel(stem, parameters, lines, tuple(self.needs))

    # --- a row ------------------------------------------------------------------------------------

    def _row(self, row: str) -> list[str]:
        """Return the lines that find the inputs' elements of a row."""
        lines = position(row, "k", self.k.outer, "l", False)
        for slot, dtype in enumerate(self.of.in_dtypes):
            place = "".join(f" + k{d} * s{slot}_{d}" for d in range(self.k.outer))
            lines.append(f"const {stored(dtype)} *x{slot} = a{slot}{place};")
        return lines

    def _numbers_of_row(self, there: str) -> list[str]:
        return [
            f"const {c_type(dtype)} n{slot} = {there} ? {load(f'*x{slot}', dtype)} : 0;"
            for slot, dtype in enumerate(self.of.in_dtypes)
            if not self.of.wide[slot]
        ]

    def _narrow(self, one: _Pass) -> list[str]:
        """Return the lines that compute numbers of a row before a pass over its elements."""
        return [line for slot in one.narrow for line in self._number(slot)]

    def _number(self, slot: int) -> list[str]:
        one = self.of.instruction(slot)
        assert one is not None
        if isinstance(one.op, RowLabel):
            (label,) = one.args
            return [
                f"ow_i64 n{slot} = row < rows ? (ow_i64)n{label} : 0;",
                f"if (n{slot} < 0 || n{slot} >= n) {{",
                "    if (threadIdx.x == 0)",
                "        ow_complain(wrong, row);",
                f"    n{slot} = -1;",
                "}",
            ]
        program = self._alone(one)
        name, needs = program.function()
        self._need(*needs)
        args = "".join(f"n{a}, " for a in one.args)
        return [f"{c_type(one.dtype)} n{slot};", f"{name}({args}&n{slot});"]

    def _alone(self, one: Instruction) -> ScalarProgram:
        n = len(one.args)
        alone = one._replace(args=tuple(range(n)))
        return ScalarProgram(tuple(self.of.arguments(one)), (alone,), (n,))

    def _stored_numbers(self, levels: Sequence[int], there: str) -> list[str]:
        """Return the lines by which one thread stores the numbers of a row."""
        lines = [
            f"z{k}[row] = {store(f'n{slot}', self.of.dtypes[slot])};"
            for k, slot in enumerate(self.of.outs)
            if not self.of.wide[slot] and self.of.levels[slot] in levels
        ]
        return with_head(f"if (threadIdx.x == 0 && {there})", in_braces(lines)) if lines else []

    # --- reductions -------------------------------------------------------------------------------

    def _folds(self, one: _Pass) -> list[int]:
        """Return the slots of the reductions of a pass."""
        return [to.number for to in one.gives if to.kind == "fold"]

    def _joined(self, one: _Pass) -> list[str]:
        """Return the lines that join the accumulators of the threads of a group."""
        return [line for slot in self._folds(one) for line in self._across(slot)]

    def _across(self, slot: int) -> list[str]:
        folding = self.k.foldings[slot]
        name, text = across(folding)
        self._need(*folding.needs, text)
        return [f"{name}(t{slot});"]

    def _start(self, slot: int) -> str:
        folding = self.k.foldings[slot]
        return f"{c_type(folding.dtypes[0])} t{slot} = {folding.starts[0]};"

    def _found(self, slot: int) -> list[str]:
        """Return the lines that join what the segments of a row have given."""
        folding = self.k.foldings[slot]
        part = f"const {c_type(folding.dtypes[0])} part = f{slot}[(ow_i64)row * parts + k];"
        return [
            self._start(slot),
            *with_head(
                "for (ow_i32 k = threadIdx.x; row < rows && k < parts; k += blockDim.x)",
                in_braces([part, folding.join([f"t{slot}"], ["part"])]),
            ),
            *self._across(slot),
            f"const {c_type(self.of.dtypes[slot])} n{slot} = {self._final(slot)};",
        ]

    def _final(self, slot: int) -> str:
        """Return the expression of a reduction's result."""
        dtype, folding = self.of.dtypes[slot], self.k.foldings[slot]
        text = folding.final(0, f"t{slot}", dtype)
        return load(text, dtype)

    # --- elements ---------------------------------------------------------------------------------

    def _elements(self, one: _Pass) -> list[str]:
        """Return the lines that run a pass over the elements of a row, or of a segment."""
        if not one.gives:
            return []
        of, wide = self.of, [slot for slot in one.takes if self.of.wide[slot]]
        held = [s for s in wide if s in self.passes.held and s not in one.holds]
        loaded = [s for s in wide if s not in held and s not in of.columns]

        def loads(place: str) -> tuple[list[str], list[tuple[str, str, str]]]:
            found = []
            for slot in loaded:
                at = place if self.width > 1 else f"{place} * step{slot}"
                type_ = self._vector(of.dtypes[slot])
                found.append((type_, f"u{slot}", self._at(f"x{slot}", at, f"const {type_}")))
            return [], found

        def use(suffix: str, place: str) -> list[str]:
            lines = self._on_elements(one, held, {slot: f"u{slot}{suffix}" for slot in loaded})
            named = [f"const ow_i32 c = {place};"] if is_used("c", lines) else []
            return in_braces([*named, *lines])

        each = f" * {self.width}" if self.width > 1 else ""
        # loads from shared memory need no batches
        words = sum(-(-self.width * cudatext.itemsize(of.dtypes[s]) // 4) for s in loaded)
        registers = _OF_VECTORS if self.width > 1 else _REGISTERS
        count = max(1, min(4, registers // words)) if loaded else 1
        return [
            *map(self._start, self._folds(one)),
            *in_braces([
                f"const ow_i32 step = blockDim.x{each};",
                f"ow_i32 j = from + (ow_i32)threadIdx.x{each};",
                *batched(count, "m", loads, use),
            ]),
        ]  # fmt: skip

    def _on_elements(self, one: _Pass, held: list[int], loaded: dict[int, str]) -> list[str]:
        """Return the lines that compute one element, or a vector of them, of column c.

        held: slots that are in shared memory. loaded: names of what was loaded, by slot.
        """
        of, at = self.of, ".at[k]" if self.width > 1 else ""
        before, inside, behind, after = [], [], [], []
        column = "c + k" if self.width > 1 else "c"
        values = {s: column for s in one.takes if s in of.columns}
        values |= {s: load(f"{name}{at}", of.dtypes[s]) for s, name in loaded.items()}
        for slot in held:
            type_ = self._vector(cudatext.held(of.dtypes[slot]))
            before.append(f"const {type_} u{slot} = {self._at(f'h{slot}', 'c', f'const {type_}')};")
            values[slot] = f"u{slot}{at}"
        for slot, text in values.items():
            inside.append(f"const {c_type(of.dtypes[slot])} v{slot} = {text};")

        def stored_at(name: str, value: str, dtype: str, pointer: str, place: str) -> None:
            type_ = self._vector(dtype)
            before.append(f"{type_} {name};")
            behind.append(f"{name}{at} = {value};")
            after.append(f"{self._at(pointer, place, type_)} = {name};")

        for slot in one.holds:
            stored_at(f"r{slot}", f"v{slot}", cudatext.held(of.dtypes[slot]), f"h{slot}", "c")
        for k, (to, dtype) in enumerate(zip(one.gives, one.program.out_dtypes, strict=True)):
            inside.append(f"{c_type(dtype)} e{k};")
            if to.kind == "fold":
                folding = self.k.foldings[to.number]
                (item,) = folding.items([f"e{k}"], [dtype], "0")
                behind.append(f"const {c_type(folding.dtypes[0])} i{k} = {item};")
                behind.append(folding.join([f"t{to.number}"], [f"i{k}"]))
            elif to.kind == "out":
                place = "(ow_i64)row * n + c"
                stored_at(f"w{k}", store(f"e{k}", dtype), dtype, f"z{to.number}", place)
            else:
                stored_at(f"w{k}", f"e{k}", cudatext.held(dtype), f"h{to.number}", "c")
        name, needs = one.program.function()
        self._need(*needs)
        args = [f"{'v' if of.wide[s] else 'n'}{s}" for s in one.takes]
        args += [f"&e{k}" for k in range(len(one.gives))]
        block = in_braces([*inside, f"{name}({', '.join(args)});", *behind])
        if self.width > 1:
            block = ["OW_UNROLL", *with_head(f"for (int k = 0; k < {self.width}; k++)", block)]
        return [*before, *block, *after]

    def _vector(self, dtype: str) -> str:
        name, text = cudatext.vector(dtype, self.width)
        self._need(text)
        return name

    def _at(self, pointer: str, place: str, vector: str) -> str:
        """Return the expression of the vector, or the element, at a place."""
        if self.width == 1:
            return f"{pointer}[{place}]"
        return f"*({vector} *)({pointer} + {place})"
