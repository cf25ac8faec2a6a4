"""Kernels that reduce the results of a scalar program, in one pass or two.

In kernels of rows, the threads of a group go along the reduced dimensions. In kernels of columns,
adjacent threads belong to adjacent results. Shapes and strides alone decide how the work is cut,
so results do not depend on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import (
    ScalarProgram,
    c_type,
    count_type,
    held,
    index_type,
    position,
)
from opwise.gpu.kernels.kernel import (
    NAME,
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    Plan,
    batched,
    capped,
    digest,
    in_braces,
    make_kernel,
    with_head,
)  # fmt: skip
from opwise.scalar import csource, loops

#: so many blocks keep any device busy
_ENOUGH = 1024
#: the fewest vectors for each thread of a row that are worth another thread, or a second pass
_WORTH = 4
#: likewise, elements of a column
_COLUMN = 16
_WARP = 32


# --- accumulators -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Folding:
    """The accumulators of a thread: numbers, or a number and the position it was found at."""

    #: dtypes of its parts
    dtypes: tuple[str, ...]
    #: C expressions that the parts start from
    starts: tuple[str, ...]
    #: (part, dtype) of each output
    finals: tuple[tuple[int, str], ...]
    #: how to reduce; None for an argmax
    fold: loops.Fold | None = None

    @classmethod
    def of(cls, row_name: str, acc: str, *outs: str) -> Folding:
        """Return the Folding of a scalar operation: an accumulator for each output.

        acc, outs: dtypes of the accumulators and the outputs.
        """
        fold, n = loops.FOLDS[row_name], len(outs)
        start = csource.literal(fold.start(acc), held(acc))
        return cls((acc,) * n, (start,) * n, tuple(enumerate(outs)), fold)

    @classmethod
    def argmax(cls, dtype: str, with_maximum: bool) -> Folding:
        """Return the Folding of the position of a maximum, and of the maximum if wanted."""
        finals = ((0, dtype), (1, "int64"))
        return cls((dtype, "int64"), ("0", "-1"), finals if with_maximum else finals[1:])

    def join(self, a: Sequence[str], b: Sequence[str]) -> str:
        """Return the statement that reduces the parts ``b`` into the parts ``a``."""
        if self.fold is not None:
            type_ = c_type(self.dtypes[0])
            parts = [
                f"{x} = {self.fold.join(x, y, self.dtypes[0], type_)};"
                for x, y in zip(a, b, strict=True)
            ]
            return parts[0] if len(parts) == 1 else f"{{ {' '.join(parts)} }}"
        (a, at), (b, bt) = a, b
        return f"if (ow_better({b}, {bt}, {a}, {at})) {{ {a} = {b}; {at} = {bt}; }}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Definitions that ``join`` needs."""
        return cudatext.support("better") if self.fold is None else ()

    def items(self, values: Sequence[str], dtypes: Sequence[str], index: str) -> list[str]:
        """Return the parts of one element with some values, of ``dtypes``, and an index."""
        if self.fold is None:
            return [*values, index]
        acc = held(self.dtypes[0])
        return [csource.convert(v, held(d), acc) for v, d in zip(values, dtypes, strict=True)]

    def final(self, part: int, text: str, dtype: str) -> str:
        """Return the expression of an output of ``dtype``; text: the expression of the part."""
        converted = csource.convert(text, held(self.dtypes[part]), held(dtype))
        return cudatext.store(converted, dtype)


class Joining(Protocol):
    """An accumulator whose parts can be joined; see ``Folding``."""

    @property
    def dtypes(self) -> tuple[str, ...]: ...

    def join(self, a: Sequence[str], b: Sequence[str]) -> str: ...


def across(folding: Joining) -> tuple[str, str]:
    """Return (name, definition) of the function that joins the accumulators of a group of threads.

    The threads of a group differ in threadIdx.x. Either their number is a power of 2 within one
    warp, or the group is a whole block of whole warps. All of them get the result.
    """
    types = list(map(c_type, folding.dtypes))
    parts = range(len(types))
    a, b = [f"a{k}" for k in parts], [f"b{k}" for k in parts]
    shuffled = [
        f"const {t} b{k} = __shfl_xor_sync(0xffffffffu, a{k}, w);" for k, t in enumerate(types)
    ]
    lines = [
        f"OW_INLINE void {NAME}({', '.join(f'{t} &a{k}' for k, t in enumerate(types))})",
        "{",
        "    for (int w = (blockDim.x < 32 ? blockDim.x : 32) / 2; w; w /= 2) {",
        *(f"        {line}" for line in shuffled),
        f"        {folding.join(a, b)}",
        "    }",
        "    if (blockDim.x <= 32)",
        "        return;",
        *(f"    __shared__ {t} s{k}[32];" for k, t in enumerate(types)),
        "    __syncthreads();",
        "    if (threadIdx.x % 32 == 0) {",
        *(f"        s{k}[threadIdx.x / 32] = a{k};" for k in parts),
        "    }",
        "    __syncthreads();",
        *(f"    a{k} = s{k}[0];" for k in parts),
        "    for (int i = 1; i < blockDim.x / 32; i++) {",
        *(f"        const {t} b{k} = s{k}[i];" for k, t in enumerate(types)),
        f"        {folding.join(a, b)}",
        "    }",
        "}",
        "",
    ]
    text = "\n".join(lines)
    name = f"ow_across_{digest(text)}"
    return name, text.replace(NAME, name)


# --- texts --------------------------------------------------------------------------------------


class _ReductionText:
    """Writes the kernels that reduce the results of a program, or partial results."""

    def __init__(
        self,
        folding: Folding,
        program: ScalarProgram | None,
        kept: int,
        reduced: int,
        patterns: Sequence[tuple[bool, ...]] = (),
        axes: tuple[int, ...] = (),
    ) -> None:
        """program: None for the second pass, over partial results.

        kept, reduced: how many dimensions are kept and reduced. patterns: by input, where it is
        broadcast. axes: the reduced dimensions.
        """
        #: operands that are one element in every call
        self.broadcast: list[int] = []
        #: other operands that are broadcast along all reduced dimensions
        self.row_broadcast: list[int] = []
        #: name of the device function of the program
        self.one: str | None = None
        self.folding, self.program = folding, program
        self.kept, self.reduced = kept, reduced
        self.parts = range(len(folding.dtypes))
        finals = [dtype for _, dtype in folding.finals]
        if program is None:
            self.operands, self.dtypes = list(self.parts), list(map(held, folding.dtypes))
            self.needs = cudatext.support(*(["half"] if "float16" in finals else []))
        else:
            self._read_program(program, patterns, axes)
            if "float16" in (*program.out_dtypes, *finals):
                self.needs = (*cudatext.support("half"), *self.needs)
        self.varying = [k for k in range(len(self.operands)) if k not in self.broadcast]
        self.across, across_text = across(folding)
        self.needs = (*folding.needs, *self.needs)
        self.needs_across = (*self.needs, across_text)

    def _read_program(
        self, program: ScalarProgram, patterns: Sequence[tuple[bool, ...]], axes: tuple[int, ...]
    ) -> None:
        """Note the operands of a program, which of them are broadcast, and what it needs."""
        self.operands = [i for i in range(len(program.in_dtypes)) if i not in program.unread]
        self.dtypes = [program.in_dtypes[i] for i in self.operands]
        read = [patterns[i] for i in self.operands]
        self.broadcast = [k for k, p in enumerate(read) if p and all(p)]
        self.row_broadcast = [
            k
            for k, p in enumerate(read)
            if k not in self.broadcast and axes and all(p[d] for d in axes)
        ]
        self.one, self.needs = program.function()

    @property
    def width(self) -> int:
        """How many elements are loaded at once."""
        widest = max((cudatext.itemsize(self.dtypes[k]) for k in self.varying), default=16)
        width = cudatext.VECTOR_BYTES // widest
        return max(1, min(8, width, 32 // max(1, len(self.varying))))

    # what rows and columns share

    def _arrays(self):
        arrays = [
            (f"const {cudatext.stored(d)} *__restrict__", f"a{k}")
            for k, d in enumerate(self.dtypes)
        ]
        return arrays + [("void *", f"z{k}") for k in self.parts]

    def _numbers(self, wide, reduced_steps=True):
        index, steps = index_type(wide), []
        for k in self.varying:
            steps += [(index, f"s{k}_{d}") for d in range(self.kept)]
            if reduced_steps:
                steps += [(index, f"r{k}_{d}") for d in range(self.reduced)]
        return [
            (index, "kept"), (index, "length"), (index, "segments"), (index, "span"),
            *cudatext.lengths("n", self.kept, wide), *cudatext.lengths("m", self.reduced, wide),
            *steps,
        ]  # fmt: skip

    def _load_broadcast(self):
        return [
            f"const {c_type(self.dtypes[k])} x{k} = {self._at(k, '0')};" for k in self.broadcast
        ]

    def _at(self, k, place):
        return cudatext.load(f"a{k}[{place}]", self.dtypes[k])

    def _starts(self, wide):
        """Return the lines that compute the offset of each operand at the kept index ``at``."""
        lines = position("at", "k", self.kept, "n", wide)
        for k in self.varying:
            terms = " + ".join(f"k{d} * s{k}_{d}" for d in range(self.kept)) or "0"
            lines.append(f"const {index_type(wide)} o{k} = {terms};")
        return lines

    def _segment(self, wide):
        index = index_type(wide)
        return [
            f"const {index} from = segment * span;",
            f"const {index} to = length - from < span ? length : from + span;",
        ]

    def _take(self, args, into, index):
        """Return the block that reduces an element into an accumulator.

        args: from an operand to its text; into: from a part to its text; index: of the element.
        """
        into = [into(k) for k in self.parts]
        if self.program is None:
            items, first = [args(k) for k in range(len(self.operands))], []
        else:
            given = [
                "0" if i in self.program.unread else args(self.operands.index(i))
                for i in range(len(self.program.in_dtypes))
            ]
            values = [f"w{k}" for k in range(len(self.program.outs))]
            results = self.program.out_dtypes
            first = [f"{c_type(d)} {v};" for v, d in zip(values, results, strict=True)]
            first.append(f"{self.one}({', '.join([*given, *(f'&{v}' for v in values)])});")
            items = self.folding.items(values, results, f"(ow_i64){index}")
        parts = [
            f"const {c_type(d)} e{k} = {item};"
            for k, (d, item) in enumerate(zip(self.folding.dtypes, items, strict=True))
        ]
        joined = self.folding.join(into, [f"e{k}" for k in self.parts])
        return in_braces([*first, *parts, joined])

    def _loads(self, wide, place):
        """Return (lines, (C type, name, element) of each operand) at the reduced index ``place``.

        See ``kernel.Loads``.
        """
        lines = position(place, "j", self.reduced, "m", wide)
        found = []
        for k in self.varying:
            terms = [f"o{k}", *(f"j{d} * r{k}_{d}" for d in range(self.reduced))]
            found.append((cudatext.stored(self.dtypes[k]), f"v{k}", f"a{k}[{' + '.join(terms)}]"))
        return lines, found

    def _value(self, k, suffix=""):
        """Return the expression of the value of an operand that was loaded."""
        return f"x{k}" if k in self.broadcast else cudatext.load(f"v{k}{suffix}", self.dtypes[k])

    def _store(self, at, partial):
        """Return the lines that store the accumulator t.

        With one segment they store the outputs at ``at``, with several the parts at ``partial``.
        """
        final = " ".join(
            f"(({cudatext.stored(d)} *)z{part})[{at}] = {self.folding.final(part, f't{part}', d)};"
            for part, d in self.folding.finals
        )
        parts = " ".join(
            f"(({c_type(d)} *)z{k})[{partial}] = t{k};" for k, d in enumerate(self.folding.dtypes)
        )
        return [f"if (segments == 1) {{ {final} }}", f"else {{ {parts} }}"]

    # the kernels

    def rows(self, wide, vectors):
        index = index_type(wide)
        width = self.width if vectors else 1
        accumulators = []
        for k, d in enumerate(self.folding.dtypes):
            starts = ", ".join([self.folding.starts[k]] * width)
            accumulators.append(f"{c_type(d)} s{k}[{width}] = {{{starts}}};")
        run = self._vector_run(wide, width) if vectors else self._strided_run(wide)
        joined = [f"{c_type(d)} t{k} = s{k}[0];" for k, d in enumerate(self.folding.dtypes)]
        if width > 1:
            join = self.folding.join(
                [f"t{k}" for k in self.parts], [f"s{k}[k]" for k in self.parts]
            )
            joined += ["OW_UNROLL", f"for (int k = 1; k < {width}; k++)", f"    {join}"]
        body = [
            *self._load_broadcast(),
            f"const {index} groups = kept * segments;",
            f"const {index} all = ({index})gridDim.x * blockDim.y;",
            f"for ({index} first = ({index})blockIdx.x * blockDim.y; first < groups;"
            " first += all) {",
            f"    const {index} group = first + threadIdx.y;",
            f"    const {index} at = ({count_type(wide)})group / segments;",
            *(f"    {line}" for line in accumulators),
            "    if (group < groups) {",
            f"        const {index} segment = group - at * segments;",
            *(f"        {line}" for line in (*self._segment(wide), *self._starts(wide), *run)),
            "    }",
            *(f"    {line}" for line in joined),
            f"    {self.across}({', '.join(f't{k}' for k in self.parts)});",
            "    if (threadIdx.x == 0 && group < groups) {",
            *(f"        {line}" for line in self._store("at", "group")),
            "    }",
            "}",
        ]
        needs = self.needs_across
        if vectors:
            types = [cudatext.vector(self.dtypes[k], width)[1] for k in self._running()]
            needs = (*needs[:-2], *filter(None, types), *needs[-2:])
        numbers = self._numbers(wide, not vectors)
        stem = "rows_vectors" if vectors else "rows_strided"
        return make_kernel(stem, [*self._arrays(), *numbers], body, needs, wide=wide)

    def _running(self):
        return [k for k in self.varying if k not in self.row_broadcast]

    def _strided_run(self, wide):
        def use(suffix, place):
            return self._take(lambda k: self._value(k, suffix), lambda k: f"s{k}[0]", place)

        index = index_type(wide)
        return [
            f"const {index} step = blockDim.x;",
            f"{index} j = from + ({index})threadIdx.x;",
            *batched(4, "to", lambda place: self._loads(wide, place), use),
        ]

    def _vector_run(self, wide, width):
        index, at = index_type(wide), ".at[k]" if width > 1 else ""

        def loads(place):
            found = []
            for k in self._running():
                name = cudatext.vector(self.dtypes[k], width)[0]
                found.append((name, f"v{k}", f"*(const {name} *)(a{k} + o{k} + {place})"))
            return [], found

        def value(k, suffix):
            return self._value(k, suffix) if k in self._running() else f"x{k}"

        def use(suffix, place):
            lines = self._take(
                lambda k: value(k, suffix + at), lambda k: f"s{k}[k]", f"({place} + k)"
            )
            return in_braces(["OW_UNROLL", *with_head(f"for (int k = 0; k < {width}; k++)", lines)])

        def alone(k):
            return self._at(k, f"o{k} + j") if k in self._running() else f"x{k}"

        rest = (
            f"for (j = to - (to - from) % {width} + ({index})threadIdx.x; j < to; j += blockDim.x)"
        )
        return [
            *(
                f"const {c_type(self.dtypes[k])} x{k} = {self._at(k, f'o{k}')};"
                for k in self.row_broadcast
            ),
            f"const {index} end = to - {width - 1}, step = blockDim.x * {width};",
            f"{index} j = from + ({index})threadIdx.x * {width};",
            *batched(4, "end", loads, use),
            *with_head(rest, self._take(alone, lambda k: f"s{k}[0]", "j")),
        ]

    def columns(self, wide):
        index = index_type(wide)
        names = [f"t{k}" for k in self.parts]
        below = [f"s{k}[here + half * blockDim.x]" for k in self.parts]
        run = batched(
            8,
            "to",
            lambda place: self._loads(wide, place),
            lambda suffix, place: self._take(
                lambda k: self._value(k, suffix), lambda k: f"t{k}", place
            ),
        )
        keep = " ".join(f"s{k}[here] = t{k};" for k in self.parts)
        body = [
            *(f"__shared__ {c_type(d)} s{k}[{THREADS}];"
              for k, d in enumerate(self.folding.dtypes)),
            *self._load_broadcast(),
            "const ow_u32 here = threadIdx.y * blockDim.x + threadIdx.x;",
            f"const {index} tiles = (kept + blockDim.x - 1) / blockDim.x;",
            f"for ({index} task = blockIdx.x; task < tiles * segments; task += gridDim.x) {{",
            f"    const {index} segment = ({count_type(wide)})task / tiles;",
            f"    const {index} at = (task - segment * tiles) * blockDim.x + threadIdx.x;",
            *(f"    {c_type(d)} t{k} = {start};" for k, (d, start) in enumerate(
                zip(self.folding.dtypes, self.folding.starts, strict=True))),
            "    if (at < kept) {",
            *(f"        {line}" for line in (*self._segment(wide), *self._starts(wide))),
            f"        const {index} step = blockDim.y;",
            f"        {index} j = from + ({index})threadIdx.y;",
            *(f"        {line}" for line in run),
            "    }",
            f"    {keep}",
            "    for (ow_u32 half = blockDim.y / 2; half; half /= 2) {",
            "        __syncthreads();",
            "        if (threadIdx.y < half) {",
            f"            {self.folding.join(names, below)}",
            f"            {keep}",
            "        }",
            "    }",
            "    if (threadIdx.y == 0 && at < kept) {",
            *(f"        {line}" for line in self._store("at", "segment * kept + at")),
            "    }",
            "    __syncthreads();",
            "}",
        ]  # fmt: skip
        arrays = [*self._arrays(), *self._numbers(wide)]
        return make_kernel("columns", arrays, body, self.needs, wide=wide)


# --- plans --------------------------------------------------------------------------------------


class Reduction:
    """A reduction of the results of a program: its kernels and plans."""

    def __init__(
        self,
        folding: Folding,
        program: ScalarProgram,
        ndim: int,
        axes: Sequence[int],
        patterns: Sequence[tuple[bool, ...]],
        ordered: bool = False,
    ) -> None:
        """ndim: dimensions of the operands. axes: those that are reduced.

        patterns: by input, where it is broadcast. ordered: whether results depend on positions
        along the axes, in C order.
        """
        self.folding, self.axes, self.ordered = folding, tuple(axes), ordered
        self.others = tuple(d for d in range(ndim) if d not in self.axes)
        counts = len(self.others), len(self.axes)
        self._text = text = _ReductionText(folding, program, *counts, patterns, self.axes)
        last = _ReductionText(folding, None, 1, 1)
        both = (False, True)
        self.vectors = {wide: text.rows(wide, True) for wide in both}
        self.strided = {wide: text.rows(wide, False) for wide in both}
        self.last_rows = last.rows(False, False)
        self.columns: dict[bool, Kernel] = {}
        self.last_columns: Kernel | None = None
        if self.others:
            self.columns = {wide: text.columns(wide) for wide in both}
            self.last_columns = last.columns(False)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        found = [*self.vectors.values(), *self.strided.values(), *self.columns.values()]
        return tuple(filter(None, dict.fromkeys([*found, self.last_rows, self.last_columns])))

    def plan(self, shape: tuple[int, ...], inputs: Sequence[Layout], limits: DeviceLimits) -> Plan:
        """Return the Plan over operands broadcast to ``shape``."""
        text = self._text
        varying = [inputs[text.operands[k]] for k in text.varying]
        steps = [layouts.steps_of(layout, shape) for layout in varying]
        kept, reduced = (
            layouts.walk([shape[d] for d in dims], [[s[d] for d in dims] for s in steps], reorder)
            for dims, reorder in ((self.others, False), (self.axes, not self.ordered))
        )
        if kept.size == 0:
            return Plan(())
        wide = not reduced.inside(kept).fits_32()
        if self._by_columns(kept, reduced):
            return self._columns_plan(kept, reduced, wide, limits)
        return self._rows_plan(kept, reduced, wide, varying, limits)

    def _by_columns(self, kept, reduced):
        """Return whether adjacent elements in memory belong to different results."""
        if not self.columns or kept.size == 1 or reduced.size <= 1:
            return False
        return _closest(kept) < _closest(reduced)

    def _rows_plan(self, kept, reduced, wide, varying, limits):
        vectors = self._in_vectors(kept, reduced, varying)
        width = self._text.width if vectors else 1
        length = reduced.size
        segments = min(-(-_ENOUGH // kept.size), -(-length // (THREADS * width * _WORTH)))
        if kept.size * _threads(length, width) >= _ENOUGH * _WARP:
            segments = 1
        span, segments = _cut(length, segments, width)
        lanes = _threads(span, width)
        block = (lanes, 1) if lanes > _WARP else (lanes, THREADS // lanes)
        grid = capped(-(-kept.size * segments // block[1]), limits)
        kernel = (self.vectors if vectors else self.strided)[wide]
        numbers = self._numbers(kept, reduced, (segments, span), wide, not vectors)
        return self._passes(kernel, grid, block, numbers, kept.size, segments, limits, True)

    def _columns_plan(self, kept, reduced, wide, limits):
        across = min(_WARP, 1 << (kept.size - 1).bit_length())
        block = (across, THREADS // across)
        tiles = -(-kept.size // across)
        most = -(-reduced.size // (block[1] * _COLUMN))
        span, segments = _cut(reduced.size, min(-(-_ENOUGH // tiles), most), 1)
        numbers = self._numbers(kept, reduced, (segments, span), wide, True)
        grid = capped(tiles * segments, limits)
        kernel = self.columns[wide]
        return self._passes(kernel, grid, block, numbers, kept.size, segments, limits, False)

    def _passes(self, kernel, grid, block, numbers, kept, segments, limits, by_rows):
        operands = tuple(Array("in", i) for i in self._text.operands)
        outs = [Array("out", 0)] * len(self.folding.dtypes)
        for k, (part, _) in enumerate(self.folding.finals):
            outs[part] = Array("out", k)
        if segments == 1:
            return Plan((Launch(kernel, grid, block, (*operands, *outs), numbers),))
        parts = tuple(Array("scratch", k) for k in self._text.parts)
        sizes = [cudatext.itemsize(held(d)) * kept * segments for d in self.folding.dtypes]
        n = len(parts)
        if by_rows:
            lanes = _threads(segments, 1)
            block_2 = (lanes, 1) if lanes > _WARP else (lanes, THREADS // lanes)
            grid_2, last = capped(-(-kept // block_2[1]), limits), self.last_rows
            steps = (segments, 1) * n
        else:
            block_2, last = block, self.last_columns
            grid_2, steps = capped(-(-kept // block[0]), limits), (1, kept) * n
        second = (kept, segments, 1, segments, *steps)
        return Plan(
            (
                Launch(kernel, grid, block, (*operands, *parts), numbers),
                Launch(last, grid_2, block_2, (*parts, *outs), second),
            ),
            tuple(sizes),
        )

    def _numbers(self, kept, reduced, cut, wide, reduced_steps):
        lengths, steps = kept.padded(len(self.others))
        more_lengths, more_steps = reduced.padded(len(self.axes))
        both = layouts.by_array(steps + more_steps if reduced_steps else steps)
        lengths = (*layouts.lengths(lengths, wide), *layouts.lengths(more_lengths, wide))
        return (kept.size, reduced.size, *cut, *lengths, *both)

    def _in_vectors(self, kept, reduced, varying):
        text = self._text
        if len(reduced.shape) > 1:
            return False
        steps = reduced.steps[0] if reduced.shape else ()
        for at, k in enumerate(text.varying):
            runs = k not in text.row_broadcast
            if reduced.shape and steps[at] != int(runs):
                return False
            if runs and not _aligned(varying[at], text.width):
                return False
            if runs and any(column[at] % text.width for column in kept.steps):
                return False
        return True


def _aligned(layout, width):
    return layout.alignment % min(cudatext.VECTOR_BYTES, layout.itemsize * width) == 0


def _closest(walk):
    """Return the least distance of adjacent elements along some dimension, in elements."""
    return min((sum(map(abs, c)) or 2**63 for c in walk.steps), default=2**63)


def _threads(length, width):
    """Return how many threads share a row: a power of 2."""
    wanted = -(-length // (width * _WORTH))
    return min(THREADS, 1 << max(0, wanted - 1).bit_length())


def _cut(length, segments, width):
    """Return (elements of a segment, segments). Segments but the last hold whole vectors."""
    if segments <= 1:
        return max(1, length), 1
    span = -(-length // segments)
    span += -span % width
    return span, -(-length // span)
