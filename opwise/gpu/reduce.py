"""Kernels of reductions of what a scalar program computes: by rows, by columns, in two passes.

Rows: the threads of a group go along what is reduced. Columns: they lie beside each other along
what is kept. How the work is cut depends on shapes and strides alone, and so do results.
"""

from __future__ import annotations

from dataclasses import dataclass

from opwise.gpu import cudatext, layouts
from opwise.gpu.cudatext import c_type, count_type, held, index_type, position
from opwise.gpu.kernel import (
    NAME,
    THREADS,
    Array,
    Launch,
    Plan,
    at_most,
    batched,
    digest,
    in_braces,
    loop,
    make_kernel,
)  # fmt: skip
from opwise.scalar import csource, loops

#: blocks that a device has enough work with, whatever the device
_ENOUGH = 1024
#: vectors, or elements of a column, for each thread that make a pass of its own worth while
_WORTH = 4
_COLUMN = 16
_WARP = 32


# --- accumulators -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Folding:
    """What a thread keeps while it reduces: one number, or a number and where it was found.

    dtypes: of the parts. starts: C expressions they start from. finals: the (part, dtype) that each
    output is.
    """

    dtypes: tuple[str, ...]
    starts: tuple[str, ...]
    finals: tuple[tuple[int, str], ...]
    fold: loops.Fold | None = None

    @classmethod
    def of(cls, row_name, acc, out):
        """Return the Folding of a row that can reduce: acc and out are dtypes."""
        fold = loops.FOLDS[row_name]
        start = csource.literal(fold.start(acc), held(acc))
        return cls((acc,), (start,), ((0, out),), fold)

    @classmethod
    def argmax(cls, dtype, with_maximum):
        """Return the Folding of a maximum and its position; the latter alone is wanted or both."""
        finals = ((0, dtype), (1, "int64"))
        return cls((dtype, "int64"), ("0", "-1"), finals if with_maximum else finals[1:])

    def join(self, a, b):
        """Return the statement that takes the parts ``b`` into the parts ``a``."""
        if self.fold is not None:
            joined = self.fold.join(a[0], b[0], self.dtypes[0], c_type(self.dtypes[0]))
            return f"{a[0]} = {joined};"
        (a, at), (b, bt) = a, b
        return f"if (ow_better({b}, {bt}, {a}, {at})) {{ {a} = {b}; {at} = {bt}; }}"

    @property
    def needs(self):
        """Definitions that ``join`` needs."""
        return cudatext.support("better") if self.fold is None else ()

    def items(self, value, dtype, index):
        """Return the parts that an element is: its value, of ``dtype``, and its index."""
        if self.fold is None:
            return [value, index]
        return [csource.convert(value, held(dtype), held(self.dtypes[0]))]

    def final(self, part, text, dtype):
        """Return the expression of an output, given that of a part."""
        converted = csource.convert(text, held(self.dtypes[part]), held(dtype))
        return cudatext.store(converted, dtype)


def across(folding):
    """Return (name, definition) of the function that joins what the threads of a group have.

    A group are the threads that differ in threadIdx.x: a power of 2 in one warp, or whole warps and
    then a whole block. All of them get the result.
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


class _Text:
    """Writes the kernels that fold a program's result, or (``program`` None) partial results.

    kept, reduced: how many dimensions of each kind there are. still: operands that are one element
    in every call; row_still: those that stand still along all that is reduced.
    """

    def __init__(self, folding, program, kept, reduced, patterns=None, axes=()):
        self.folding, self.program = folding, program
        self.kept, self.reduced = kept, reduced
        self.parts = range(len(folding.dtypes))
        if program is None:
            self.operands, self.dtypes = list(self.parts), list(map(held, folding.dtypes))
            self.still, self.row_still = [], []
            self.one, self.needs = (
                None,
                cudatext.support(*(["half"] if "float16" in dict(folding.finals).values() else [])),
            )
        else:
            self.operands = [i for i in range(len(program.in_dtypes)) if i not in program.unread]
            self.dtypes = [program.in_dtypes[i] for i in self.operands]
            patterns = [patterns[i] for i in self.operands]
            self.still = [k for k, p in enumerate(patterns) if p and all(p)]
            self.row_still = [
                k
                for k, p in enumerate(patterns)
                if k not in self.still and axes and all(p[d] for d in axes)
            ]
            self.one, self.needs = program.function()
            outs = (*program.out_dtypes, *(d for _, d in folding.finals))
            if "float16" in outs:
                self.needs = (*cudatext.support("half"), *self.needs)
        self.moving = [k for k in range(len(self.operands)) if k not in self.still]
        self.across, across_text = across(folding)
        self.needs = (*folding.needs, *self.needs)
        self.needs_across = (*self.needs, across_text)

    @property
    def width(self):
        """How many elements are loaded at once."""
        widest = max((cudatext.itemsize(self.dtypes[k]) for k in self.moving), default=16)
        width = cudatext.VECTOR_BYTES // widest
        return max(1, min(8, width, 32 // max(1, len(self.moving))))

    # what rows and columns share

    def _arrays(self):
        arrays = [
            (f"const {cudatext.stored(d)} *__restrict__", f"a{k}")
            for k, d in enumerate(self.dtypes)
        ]
        return arrays + [("void *", f"z{k}") for k in self.parts]

    def _numbers(self, wide, reduced_steps=True):
        index, steps = index_type(wide), []
        for k in self.moving:
            steps += [(index, f"s{k}_{d}") for d in range(self.kept)]
            if reduced_steps:
                steps += [(index, f"r{k}_{d}") for d in range(self.reduced)]
        return [
            (index, "kept"), (index, "length"), (index, "segments"), (index, "span"),
            *cudatext.lengths("n", self.kept, wide), *cudatext.lengths("m", self.reduced, wide),
            *steps,
        ]  # fmt: skip

    def _still_lines(self):
        return [f"const {c_type(self.dtypes[k])} x{k} = {self._at(k, '0')};" for k in self.still]

    def _at(self, k, place):
        return cudatext.load(f"a{k}[{place}]", self.dtypes[k])

    def _starts(self, wide):
        """Return the lines that find where each operand begins for the kept index ``at``."""
        lines = position("at", "k", self.kept, "n", wide)
        for k in self.moving:
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
        """Return the lines that take an element into an accumulator.

        args, into: from an operand, and from a part, to its text; index: of the element.
        """
        into = [into(k) for k in self.parts]
        if self.program is None:
            items, first = [args(k) for k in range(len(self.operands))], []
        else:
            given = [
                "0" if i in self.program.unread else args(self.operands.index(i))
                for i in range(len(self.program.in_dtypes))
            ]
            dtype = self.program.out_dtypes[0]
            first = [f"{c_type(dtype)} v;", f"{self.one}({', '.join([*given, '&v'])});"]
            items = self.folding.items("v", dtype, f"(ow_i64){index}")
        parts = [
            f"const {c_type(d)} e{k} = {item};"
            for k, (d, item) in enumerate(zip(self.folding.dtypes, items, strict=True))
        ]
        joined = self.folding.join(into, [f"e{k}" for k in self.parts])
        return in_braces([*first, *parts, joined])

    def _loads(self, wide, place):
        """Return (lines, (C type, name, element) of each operand) at reduced index ``place``."""
        lines = position(place, "j", self.reduced, "m", wide)
        found = []
        for k in self.moving:
            terms = [f"o{k}", *(f"j{d} * r{k}_{d}" for d in range(self.reduced))]
            found.append((cudatext.stored(self.dtypes[k]), f"v{k}", f"a{k}[{' + '.join(terms)}]"))
        return lines, found

    def _value(self, k, suffix=""):
        """Return the expression of an operand's value, whose element was loaded into v."""
        return f"x{k}" if k in self.still else cudatext.load(f"v{k}{suffix}", self.dtypes[k])

    def _store(self, at, partial):
        """Return the lines that store the parts t: the outputs at ``at``, or parts at ``partial``
        where there are several segments."""
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
            *self._still_lines(),
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
        return [k for k in self.moving if k not in self.row_still]

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
            return in_braces(["OW_UNROLL", *loop(f"for (int k = 0; k < {width}; k++)", lines)])

        def alone(k):
            return self._at(k, f"o{k} + j") if k in self._running() else f"x{k}"

        rest = (
            f"for (j = to - (to - from) % {width} + ({index})threadIdx.x; j < to; j += blockDim.x)"
        )
        return [
            *(
                f"const {c_type(self.dtypes[k])} x{k} = {self._at(k, f'o{k}')};"
                for k in self.row_still
            ),
            f"const {index} end = to - {width - 1}, step = blockDim.x * {width};",
            f"{index} j = from + ({index})threadIdx.x * {width};",
            *batched(4, "end", loads, use),
            *loop(rest, self._take(alone, lambda k: f"s{k}[0]", "j")),
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
            *self._still_lines(),
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
    """A reduction of a program's result along ``axes``: its kernels and its plans.

    folding: what is kept. ndim: of the operands; patterns: by input, where it is broadcast.
    ordered: whether positions along the axes count, in C order.
    """

    def __init__(self, folding, program, ndim, axes, patterns, ordered=False):
        self.folding, self.axes, self.ordered = folding, tuple(axes), ordered
        self.others = tuple(d for d in range(ndim) if d not in self.axes)
        counts = len(self.others), len(self.axes)
        self._text = text = _Text(folding, program, *counts, patterns, self.axes)
        last = _Text(folding, None, 1, 1)
        both = (False, True)
        self.vectors = {wide: text.rows(wide, True) for wide in both}
        self.strided = {wide: text.rows(wide, False) for wide in both}
        self.last_rows = last.rows(False, False)
        self.columns, self.last_columns = {}, None
        if self.others:
            self.columns = {wide: text.columns(wide) for wide in both}
            self.last_columns = last.columns(False)

    @property
    def kernels(self):
        found = [*self.vectors.values(), *self.strided.values(), *self.columns.values()]
        return tuple(filter(None, dict.fromkeys([*found, self.last_rows, self.last_columns])))

    def plan(self, shape, inputs, device):
        """Return the Plan over operands broadcast to ``shape``; inputs are Layouts."""
        text = self._text
        moving = [inputs[text.operands[k]] for k in text.moving]
        steps = [layouts.steps_of(layout, shape) for layout in moving]
        kept, reduced = (
            layouts.walk([shape[d] for d in dims], [[s[d] for d in dims] for s in steps], reorder)
            for dims, reorder in ((self.others, False), (self.axes, not self.ordered))
        )
        if kept.size == 0:
            return Plan(())
        wide = not reduced.inside(kept).fits_32()
        if self._by_columns(kept, reduced):
            return self._columns_plan(kept, reduced, wide, device)
        return self._rows_plan(kept, reduced, wide, moving, device)

    def _by_columns(self, kept, reduced):
        """Return whether neighbours in memory are kept, not reduced."""
        if not self.columns or kept.size == 1 or reduced.size <= 1:
            return False
        return _closest(kept) < _closest(reduced)

    def _rows_plan(self, kept, reduced, wide, moving, device):
        vectors = self._in_vectors(kept, reduced, moving)
        width = self._text.width if vectors else 1
        length = reduced.size
        segments = min(-(-_ENOUGH // kept.size), -(-length // (THREADS * width * _WORTH)))
        if kept.size * _threads(length, width) >= _ENOUGH * _WARP:
            segments = 1
        span, segments = _cut(length, segments, width)
        lanes = _threads(span, width)
        block = (lanes, 1) if lanes > _WARP else (lanes, THREADS // lanes)
        grid = at_most(-(-kept.size * segments // block[1]), device)
        kernel = (self.vectors if vectors else self.strided)[wide]
        numbers = self._numbers(kept, reduced, (segments, span), wide, not vectors)
        return self._passes(kernel, grid, block, numbers, kept.size, segments, device, True)

    def _columns_plan(self, kept, reduced, wide, device):
        across = min(_WARP, 1 << (kept.size - 1).bit_length())
        block = (across, THREADS // across)
        tiles = -(-kept.size // across)
        most = -(-reduced.size // (block[1] * _COLUMN))
        span, segments = _cut(reduced.size, min(-(-_ENOUGH // tiles), most), 1)
        numbers = self._numbers(kept, reduced, (segments, span), wide, True)
        grid = at_most(tiles * segments, device)
        kernel = self.columns[wide]
        return self._passes(kernel, grid, block, numbers, kept.size, segments, device, False)

    def _passes(self, kernel, grid, block, numbers, kept, segments, device, by_rows):
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
            grid_2, last = at_most(-(-kept // block_2[1]), device), self.last_rows
            steps = (segments, 1) * n
        else:
            block_2, last = block, self.last_columns
            grid_2, steps = at_most(-(-kept // block[0]), device), (1, kept) * n
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

    def _in_vectors(self, kept, reduced, moving):
        text = self._text
        if len(reduced.shape) > 1:
            return False
        steps = reduced.steps[0] if reduced.shape else ()
        for at, k in enumerate(text.moving):
            runs = k not in text.row_still
            if reduced.shape and steps[at] != int(runs):
                return False
            if runs and not _aligned(moving[at], text.width):
                return False
            if runs and any(column[at] % text.width for column in kept.steps):
                return False
        return True


def _aligned(layout, width):
    return layout.alignment % min(cudatext.VECTOR_BYTES, layout.itemsize * width) == 0


def _closest(walk):
    """Return how far apart neighbours along some dimension lie at least."""
    return min((sum(map(abs, c)) or 2**63 for c in walk.steps), default=2**63)


def _threads(length, width):
    """Return how many threads share a row: a power of 2."""
    wanted = -(-length // (width * _WORTH))
    return min(THREADS, 1 << max(0, wanted - 1).bit_length())


def _cut(length, segments, width):
    """Return (elements of a segment, segments): all but the last have as many, in whole vectors."""
    if segments <= 1:
        return max(1, length), 1
    span = -(-length // segments)
    span += -span % width
    return span, -(-length // span)
