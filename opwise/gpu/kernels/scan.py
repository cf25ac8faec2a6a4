"""Kernels of cumulated sums and products: blocks scan rows, threads scan columns.

A long line is cut into segments and scanned in three passes: the total of each segment, the scan
of the totals, the results. Shapes alone decide how lines are cut, so results do not depend on the
device.
"""

from __future__ import annotations

from typing import NamedTuple

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import c_type, count_type, index_type, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    Plan,
    capped,
    in_braces,
    make_kernel,
    with_head,
)
from opwise.gpu.kernels.reduce import Folding

#: consecutive elements of a row that a thread scans
_RUN = 8
#: so many threads keep any device busy
_ENOUGH = 2**16
#: likewise, blocks
_BLOCKS = 1024
#: the fewest elements of a segment of a row that are worth two more passes
_WORTH = 4 * THREADS * _RUN
#: likewise, of a column
_COLUMN = 64
#: with at least so many adjacent lines, threads scan columns; elements no further apart are near
_BESIDE = 8


class Lines(NamedTuple):
    """The lines of an array that are scanned, each by itself."""

    #: groups of adjacent lines
    outer: int
    #: elements of a line
    length: int
    #: lines of a group, which are adjacent in the result
    inner: int
    #: steps of what is read along outer, length and inner, in elements
    steps: tuple[int, int, int]

    @property
    def line_count(self) -> int:
        """How many lines there are."""
        return self.outer * self.inner

    @property
    def by_columns(self) -> bool:
        """Whether each thread scans a line; otherwise each block does."""
        return self.inner >= _BESIDE

    def near(self) -> bool:
        """Return whether adjacent threads read elements that are near, or cannot do better."""
        _, along, beside = self.steps
        return self.line_count == 1 or abs(beside if self.by_columns else along) <= _BESIDE

    @classmethod
    def contiguous(cls, outer: int, length: int, inner: int) -> Lines:
        """Return the Lines of a contiguous array."""
        return cls(outer, length, inner, (length * inner, inner, 1))

    @classmethod
    def of(cls, layout: Layout, axis: int | None) -> Lines | None:
        """Return the Lines of an array along an axis (None: of the flattened array).

        Returns None if the strides allow no Lines.
        """
        ndim = len(layout.shape)
        first, last = (0, ndim) if axis is None else (axis, axis + 1)
        steps = layouts.steps_of(layout, layout.shape)
        outer, length, inner = (
            layouts.walk(layout.shape[a:b], [steps[a:b]], reorder=False)
            for a, b in ((0, first), (first, last), (last, ndim))
        )
        if max(len(walk.shape) for walk in (outer, length, inner)) > 1:
            return None
        o, k, i = (walk.steps[0][0] if walk.shape else 0 for walk in (outer, length, inner))
        return cls(outer.size, length.size, inner.size, (o, k, i))

    def fit_32(self) -> bool:
        """Return whether indices and offsets fit 32 bits."""
        shape = (self.outer, self.length, self.inner)
        result = (self.length * self.inner, self.inner, 1)
        return layouts.Walk(shape, tuple(zip(self.steps, result, strict=True)), 2).fits_32()


class Scan:
    """The scan by a scalar operation ("add" or "mul") of arrays of one dtype: kernels and plans."""

    def __init__(self, row_name: str, dtype: str) -> None:
        self.dtype = dtype
        text = _ScanText(row_name, dtype)
        both = (False, True)
        self.rows = {wide: text.rows(wide) for wide in both}
        self.row_totals = {wide: text.row_totals(wide) for wide in both}
        self.columns = {wide: text.columns(wide) for wide in both}
        self.column_totals = {wide: text.columns(wide, totals=True) for wide in both}
        #: scans the totals
        self.before = _ScanText(row_name, cudatext.held(dtype)).rows(False)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        kinds = (self.rows, self.row_totals, self.columns, self.column_totals)
        found = [kernel for kind in kinds for kernel in kind.values()]
        return tuple(dict.fromkeys([*found, self.before]))

    def plan(
        self, lines: Lines, of: Array, to: Array, limits: DeviceLimits,
        scratch: tuple[int, ...] = (),
    ) -> Plan:  # fmt: skip
        """Return the Plan of a scan from one Array to another.

        scratch: bytes of the pieces of scratch memory that are in use already.
        """
        if not lines.line_count * lines.length:
            return Plan(())
        wide, cut = not lines.fit_32(), _cut(lines)
        if lines.by_columns:
            last, totals = self.columns[wide], self.column_totals[wide]
            among = Lines.contiguous(1, cut[0], lines.line_count)
        else:
            last, totals = self.rows[wide], self.row_totals[wide]
            among = Lines.contiguous(lines.line_count, cut[0], 1)

        def launch(kernel, *arrays):
            shared = 0 if lines.by_columns else self.shared
            return _launch(kernel, lines, cut, arrays, shared, limits)

        if cut[0] == 1:
            return Plan((launch(last, of, to, of),), scratch)
        size = cudatext.itemsize(cudatext.held(self.dtype)) * lines.line_count * cut[0]
        parts, before = (Array("scratch", len(scratch) + k) for k in (0, 1))
        whole = (1, cut[0])
        launches = (
            launch(totals, of, parts),
            _launch(self.before, among, whole, (parts, before, parts), self.shared, limits),
            launch(last, of, to, before),
        )
        return Plan(launches, (*scratch, size, size))

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block, for its elements and a total of each thread."""
        size = cudatext.itemsize(cudatext.held(self.dtype))
        return size * (_padded(THREADS * _RUN) + THREADS)


def _cut(lines):
    """Return (segments of a line, elements of a segment)."""
    if lines.by_columns:
        segments, unit = min(-(-_ENOUGH // lines.line_count), -(-lines.length // _COLUMN)), 1
    else:
        segments = min(-(-_BLOCKS // lines.line_count), -(-lines.length // _WORTH))
        unit = THREADS * _RUN
    if segments == 1:
        return 1, lines.length
    span = -(-lines.length // segments)
    span += -span % unit
    return -(-lines.length // span), span


def _launch(kernel, lines, cut, arrays, shared, limits):
    """Return a launch over segments: see ``_cut``. shared: 0 for kernels of columns."""
    across = min(THREADS, 1 << (-(-cut[1] // _RUN) - 1).bit_length())
    block = (across, THREADS // across) if shared else (THREADS, 1)
    blocks = -(-lines.line_count * cut[0] // (block[1] if shared else THREADS))
    numbers = (lines.line_count, lines.length, lines.inner, *lines.steps, *cut)
    return Launch(kernel, capped(blocks, limits), block, arrays, numbers, shared)


class _ScanText:
    """Writes the kernels for arrays of a dtype; totals have the dtype that holds it."""

    def __init__(self, row_name, dtype):
        name = {"add": "or_", "mul": "and_"}[row_name] if dtype == "bool" else row_name
        self.dtype = dtype
        self.folding = Folding.of(name, dtype, dtype)
        self.type = c_type(dtype)
        # a sum starts from -0.0, which does not change the sign of a zero
        floats = dtype.startswith("float") and name == "add"
        self.start = f"({self.type})-0.0" if floats else self.folding.starts[0]
        self.needs = cudatext.support(*(["half"] if dtype == "float16" else []))

    def rows(self, wide):
        """Return the kernel of rows.

        A group of threads loads a chunk of a row into shared memory. Each thread scans a run of
        consecutive elements; the totals of the runs are scanned in doubling steps.
        """
        index = index_type(wide)
        chunk = [
            *self._loaded(index),
            "__syncthreads();",
            *self._total_of_run(),
            "__syncthreads();",
            *self._totals_cumulated(),
            *self._run_cumulated(),
            self._join("before", "totals[me - threadIdx.x + blockDim.x - 1]"),
            "__syncthreads();",
            *self._stored(index),
            "__syncthreads();",
        ]
        body = [
            "OW_SHARED;",
            f"{self.type} *const kept = ({self.type} *)ow_shared;",
            f"{self.type} *const totals = kept + {_padded(THREADS * _RUN)};",
            "const int me = threadIdx.y * blockDim.x + threadIdx.x;",
            f"const int base = threadIdx.y * blockDim.x * {_RUN}, mine = me * {_RUN};",
            *self._groups(index, [
                f"const {index} result = place * length * inner + at;",
                f"{self.type} before = segment > 0 && group < parts"
                f" ? a1[group - 1] : {self.start};",
                *with_head(
                    f"for ({index} j = from; j < end; j += blockDim.x * {_RUN})",
                    in_braces(chunk),
                ),
            ], wide),
        ]  # fmt: skip
        return self._kernel("scan_rows", self._to_results(), body, wide)

    def _loaded(self, index):
        """Return the lines that load a chunk of a row, adjacent threads adjacent elements."""
        return _of_run([
            "const int e = threadIdx.x + v * blockDim.x;",
            f"const {index} k = j + e;",
            f"{_ELEMENT} = k < to ? {self._load('start + k * along')} : {self.start};",
        ])  # fmt: skip

    def _total_of_run(self):
        """Return the lines in which a thread scans its run and shares its total."""
        return [
            f"{self.type} total = {self.start};",
            *_of_run([
                f"{self.type} &own = {_OWN};",
                self._join("total", "own"),
                "own = total;",
            ]),
            "totals[me] = total;",
        ]  # fmt: skip

    def _totals_cumulated(self):
        return with_head("for (int w = 1; w < blockDim.x; w *= 2)", in_braces([
            f"{self.type} other = {self.start};",
            "if (threadIdx.x >= w)",
            "    other = totals[me - w];",
            self._join("other", "totals[me]"),
            "__syncthreads();",
            "totals[me] = other;",
            "__syncthreads();",
        ]))  # fmt: skip

    def _run_cumulated(self):
        """Return the lines that join what comes before a thread's run to its elements."""
        return [
            f"{self.type} first = before;",
            "if (threadIdx.x)",
            f"    {self._join('first', 'totals[me - 1]')}",
            *_of_run([
                f"{self.type} &own = {_OWN};",
                f"{self.type} sum = first;",
                self._join("sum", "own"),
                "own = sum;",
            ]),
        ]  # fmt: skip

    def _stored(self, index):
        return _of_run([
            "const int e = threadIdx.x + v * blockDim.x;",
            f"const {index} k = j + e;",
            "if (k < to)",
            f"    z[result + k * inner] = {self._store(_ELEMENT)};",
        ])  # fmt: skip

    def row_totals(self, wide):
        index = index_type(wide)
        body = [
            "OW_SHARED;",
            f"{self.type} *const totals = ({self.type} *)ow_shared;",
            "const int me = threadIdx.y * blockDim.x + threadIdx.x;",
            *self._groups(index, [
                f"{self.type} total = {self.start};",
                *with_head(
                    f"for ({index} k = from + threadIdx.x; k < to; k += blockDim.x)",
                    in_braces([self._join("total", self._load("start + k * along"))]),
                ),
                "totals[me] = total;",
                *with_head("for (int w = blockDim.x / 2; w; w /= 2)", in_braces([
                    "__syncthreads();",
                    "if (threadIdx.x < w)",
                    f"    {self._join('totals[me]', 'totals[me + w]')}",
                ])),
                "if (threadIdx.x == 0 && group < parts)",
                "    z[group] = totals[me];",
                "__syncthreads();",
            ], wide),
        ]  # fmt: skip
        return self._kernel("scan_row_totals", self._to_totals(), body, wide)

    def _groups(self, index, lines, wide):
        """Return the loop of a group of threads over the segments of lines.

        The threads of a group differ in threadIdx.x. All groups of a block take as many turns.
        """
        return with_head(
            f"for ({index} one = ({index})blockIdx.x * blockDim.y; one < parts;"
            f" one += ({index})gridDim.x * blockDim.y)",
            in_braces([
                f"const {index} group = one + threadIdx.y;",
                f"const {index} line = ({count_type(wide)})group / segments;",
                f"const {index} segment = group - line * segments;",
                *self._line(index, wide),
                f"const {index} end = from + span;",
                f"const {index} to = group < parts ? (end < length ? end : length) : from;",
                *lines,
            ]),
        )  # fmt: skip

    def columns(self, wide, totals=False):
        """Return the kernel of columns, in which a thread scans a segment.

        totals: return the kernel that computes only the totals of the segments.
        """
        index, load = index_type(wide), self._load("start + k * along")
        each = [self._join("total", load)]
        if not totals:
            each.append(f"z[result + k * inner] = {self._store('total')};")
        body = with_head(
            f"for ({index} i = ({index})blockIdx.x * {THREADS} + ({index})threadIdx.x; i < parts;"
            f" i += ({index})gridDim.x * {THREADS})",
            in_braces([
                f"const {index} segment = ({count_type(wide)})i / lines;",
                f"const {index} line = i - segment * lines;",
                *self._line(index, wide),
                f"const {index} to = length - from < span ? length : from + span;",
                *([] if totals else [f"const {index} result = place * length * inner + at;"]),
                f"{self.type} total = {self.start};",
                *([] if totals else ["if (segment > 0)", "    total = a1[i - lines];"]),
                '_Pragma("unroll 4")',
                *with_head(f"for ({index} k = from; k < to; k++)", in_braces(each)),
                *(["z[i] = total;"] if totals else []),
            ]),
        )  # fmt: skip
        if totals:
            return self._kernel("scan_column_totals", self._to_totals(), body, wide)
        return self._kernel("scan_columns", self._to_results(), body, wide)

    def _to_totals(self):
        """Return the parameters for the array to scan and the totals of segments."""
        return [
            (f"const {stored(self.dtype)} *__restrict__", "a0"),
            (f"{self.type} *__restrict__", "z"),
        ]

    def _to_results(self):
        """Return the parameters for the array to scan, the results, and the scanned totals."""
        return [
            (f"const {stored(self.dtype)} *__restrict__", "a0"),
            (f"{stored(self.dtype)} *__restrict__", "z"),
            (f"const {self.type} *__restrict__", "a1"),
        ]

    def _line(self, index, wide):
        """Return the lines that compute where a line and its segment begin."""
        return [
            f"const {index} place = ({count_type(wide)})line / inner, at = line - place * inner;",
            f"const {index} start = place * outside + at * beside, from = segment * span;",
        ]

    def _kernel(self, stem, arrays, body, wide):
        index = index_type(wide)
        names = ("lines", "length", "inner", "outside", "along", "beside", "segments", "span")
        body = [f"const {index} parts = lines * segments;", *body]
        numbers = [(index, name) for name in names]
        return make_kernel(stem, [*arrays, *numbers], body, self.needs, wide=wide)

    def _join(self, a, b):
        return self.folding.join([a], [b])

    def _load(self, place):
        return cudatext.load(f"a0[{place}]", self.dtype)

    def _store(self, value):
        return cudatext.store(value, self.dtype)


def _padded(place):
    """Return the place of an element in shared memory; runs begin in different banks."""
    if isinstance(place, int):
        return place + place // 32
    return f"{place} + ({place}) / 32"


#: an element of the chunk of a group in shared memory, and one of a thread's own run
_ELEMENT, _OWN = (f"kept[{_padded(place)}]" for place in ("base + e", "mine + v"))


def _of_run(lines):
    """Return the loop of ``lines`` over the elements v of a run."""
    return ["OW_UNROLL", *with_head(f"for (int v = 0; v < {_RUN}; v++)", in_braces(lines))]
