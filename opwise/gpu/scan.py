"""Kernels of cumulated sums and products: of rows by blocks, of columns by threads.

A line that is long is cut into segments: their totals come first, then what is before each, then
the results. How lines are cut depends on shapes alone, and so do results.
"""

from __future__ import annotations

from typing import NamedTuple

from opwise.gpu import cudatext, layouts
from opwise.gpu.cudatext import c_type, count_type, index_type, stored
from opwise.gpu.kernel import (
    THREADS,
    Array,
    Launch,
    Plan,
    at_most,
    in_braces,
    loop,
    make_kernel,
)
from opwise.gpu.reduce import Folding

#: consecutive elements that a thread of a row cumulates
_RUN = 8
#: threads that a device has enough work with, whatever the device, and likewise blocks
_ENOUGH = 2**16
_BLOCKS = 1024
#: elements of a segment of a row, and of a column, that make two more passes worth while
_WORTH = 4 * THREADS * _RUN
_COLUMN = 64
#: from so many lines on that lie beside each other, threads do as well; elements are near that are
#: so many apart at most
_BESIDE = 8


class Lines(NamedTuple):
    """Lines of ``length`` elements, ``inner`` of them beside each other in the result, ``outer``
    times; steps: of what is read, in elements, from one to the next along outer, length, inner."""

    outer: int
    length: int
    inner: int
    steps: tuple[int, int, int]

    @property
    def count(self):
        return self.outer * self.inner

    @property
    def by_columns(self):
        """Whether a thread goes along a line, beside those of other lines."""
        return self.inner >= _BESIDE

    def near(self):
        """Return whether threads beside each other read elements that are near, or have to."""
        _, along, beside = self.steps
        return self.count == 1 or abs(beside if self.by_columns else along) <= _BESIDE

    @classmethod
    def contiguous(cls, outer, length, inner):
        return cls(outer, length, inner, (length * inner, inner, 1))

    @classmethod
    def of(cls, layout, axis):
        """Return the Lines of an array along an axis, or along all of them one after the other if
        that is None; None where these take more steps."""
        ndim = len(layout.shape)
        first, last = (0, ndim) if axis is None else (axis, axis + 1)
        steps = layouts.steps_of(layout, layout.shape)
        outer, length, inner = (
            layouts.walk(layout.shape[a:b], [steps[a:b]], reorder=False)
            for a, b in ((0, first), (first, last), (last, ndim))
        )
        if max(len(walk.shape) for walk in (outer, length, inner)) > 1:
            return None
        steps = (walk.steps[0][0] if walk.shape else 0 for walk in (outer, length, inner))
        return cls(outer.size, length.size, inner.size, tuple(steps))

    def fit_32(self):
        """Return whether indices and offsets fit 32 bits."""
        shape = (self.outer, self.length, self.inner)
        result = (self.length * self.inner, self.inner, 1)
        return layouts.Walk(shape, tuple(zip(self.steps, result, strict=True)), 2).fits_32()


class Scan:
    """Cumulated results of a row of the scalar table, of arrays of one dtype; its kernels."""

    def __init__(self, row_name, dtype):
        self.dtype = dtype
        text = _Text(row_name, dtype)
        both = (False, True)
        self.rows = {wide: text.rows(wide) for wide in both}
        self.row_totals = {wide: text.row_totals(wide) for wide in both}
        self.columns = {wide: text.columns(wide) for wide in both}
        self.column_totals = {wide: text.columns(wide, totals=True) for wide in both}
        #: cumulates totals
        self.before = _Text(row_name, cudatext.held(dtype)).rows(False)

    @property
    def kernels(self):
        kinds = (self.rows, self.row_totals, self.columns, self.column_totals)
        found = [kernel for kind in kinds for kernel in kind.values()]
        return tuple(dict.fromkeys([*found, self.before]))

    def plan(self, lines, of, to, device, scratch=()):
        """Return the Plan of a scan from an Array to another.

        scratch: bytes of memory that the Plan has already, and that go first.
        """
        if not lines.count * lines.length:
            return Plan(())
        wide, cut = not lines.fit_32(), _cut(lines)
        if lines.by_columns:
            last, totals = self.columns[wide], self.column_totals[wide]
            among = Lines.contiguous(1, cut[0], lines.count)
        else:
            last, totals = self.rows[wide], self.row_totals[wide]
            among = Lines.contiguous(lines.count, cut[0], 1)

        def launch(kernel, *arrays):
            shared = 0 if lines.by_columns else self.shared
            return _launch(kernel, lines, cut, arrays, shared, device)

        if cut[0] == 1:
            return Plan((launch(last, of, to, of),), scratch)
        size = cudatext.itemsize(cudatext.held(self.dtype)) * lines.count * cut[0]
        parts, before = (Array("scratch", len(scratch) + k) for k in (0, 1))
        whole = (1, cut[0])
        launches = (
            launch(totals, of, parts),
            _launch(self.before, among, whole, (parts, before, parts), self.shared, device),
            launch(last, of, to, before),
        )
        return Plan(launches, (*scratch, size, size))

    @property
    def shared(self):
        """Bytes of shared memory of a block: its elements, and a total of each thread."""
        size = cudatext.itemsize(cudatext.held(self.dtype))
        return size * (_padded(THREADS * _RUN) + THREADS)


def _cut(lines):
    """Return (how many segments a line has, how long they are)."""
    if lines.by_columns:
        segments, unit = min(-(-_ENOUGH // lines.count), -(-lines.length // _COLUMN)), 1
    else:
        segments = min(-(-_BLOCKS // lines.count), -(-lines.length // _WORTH))
        unit = THREADS * _RUN
    if segments == 1:
        return 1, lines.length
    span = -(-lines.length // segments)
    span += -span % unit
    return -(-lines.length // span), span


def _launch(kernel, lines, cut, arrays, shared, device):
    """Return a launch over segments: see ``_cut``. shared: 0 for kernels of columns."""
    across = min(THREADS, 1 << (-(-cut[1] // _RUN) - 1).bit_length())
    block = (across, THREADS // across) if shared else (THREADS, 1)
    blocks = -(-lines.count * cut[0] // (block[1] if shared else THREADS))
    numbers = (lines.count, lines.length, lines.inner, *lines.steps, *cut)
    return Launch(kernel, at_most(blocks, device), block, arrays, numbers, shared)


class _Text:
    """Writes the kernels for arrays of a dtype; totals are kept as values of it are held."""

    def __init__(self, row_name, dtype):
        name = {"add": "or_", "mul": "and_"}[row_name] if dtype == "bool" else row_name
        self.dtype = dtype
        self.folding = Folding.of(name, dtype, dtype)
        self.type = c_type(dtype)
        # a sum begins with what changes no number, not even the sign of zero
        floats = dtype.startswith("float") and name == "add"
        self.start = f"({self.type})-0.0" if floats else self.folding.starts[0]
        self.needs = cudatext.support(*(["half"] if dtype == "float16" else []))

    def rows(self, wide):
        """Return the kernel of rows: threads of a group have the elements of it in shared memory,
        and each cumulates a few that are consecutive; totals are cumulated in doubling steps."""
        index = index_type(wide)
        stretch = [
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
                *loop(
                    f"for ({index} j = from; j < end; j += blockDim.x * {_RUN})",
                    in_braces(stretch),
                ),
            ], wide),
        ]  # fmt: skip
        return self._kernel("scan_rows", self._to_results(), body, wide)

    def _loaded(self, index):
        """Return the lines that load a stretch of a row, beside each other as threads are."""
        return _of_run([
            "const int e = threadIdx.x + v * blockDim.x;",
            f"const {index} k = j + e;",
            f"{_ELEMENT} = k < to ? {self._load('start + k * along')} : {self.start};",
        ])  # fmt: skip

    def _total_of_run(self):
        """Return the lines in which a thread cumulates its run, and tells its total."""
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
        return loop("for (int w = 1; w < blockDim.x; w *= 2)", in_braces([
            f"{self.type} other = {self.start};",
            "if (threadIdx.x >= w)",
            "    other = totals[me - w];",
            self._join("other", "totals[me]"),
            "__syncthreads();",
            "totals[me] = other;",
            "__syncthreads();",
        ]))  # fmt: skip

    def _run_cumulated(self):
        """Return the lines that add what is before a thread's run to its elements."""
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
                *loop(
                    f"for ({index} k = from + threadIdx.x; k < to; k += blockDim.x)",
                    in_braces([self._join("total", self._load("start + k * along"))]),
                ),
                "totals[me] = total;",
                *loop("for (int w = blockDim.x / 2; w; w /= 2)", in_braces([
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
        """Return the lines that do ``lines`` for each segment of each line, by groups of threads
        that differ in threadIdx.x; those of a block go through as many elements."""
        return loop(
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
        """Return the kernel of columns: a thread has a segment of one; totals: that of their
        totals alone."""
        index, load = index_type(wide), self._load("start + k * along")
        each = [self._join("total", load)]
        if not totals:
            each.append(f"z[result + k * inner] = {self._store('total')};")
        body = loop(
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
                *loop(f"for ({index} k = from; k < to; k++)", in_braces(each)),
                *(["z[i] = total;"] if totals else []),
            ]),
        )  # fmt: skip
        if totals:
            return self._kernel("scan_column_totals", self._to_totals(), body, wide)
        return self._kernel("scan_columns", self._to_results(), body, wide)

    def _to_totals(self):
        """Return the parameters for what is cumulated and the totals of segments."""
        return [
            (f"const {stored(self.dtype)} *__restrict__", "a0"),
            (f"{self.type} *__restrict__", "z"),
        ]

    def _to_results(self):
        """Return those for what is cumulated, the results, and what is before each segment."""
        return [
            (f"const {stored(self.dtype)} *__restrict__", "a0"),
            (f"{stored(self.dtype)} *__restrict__", "z"),
            (f"const {self.type} *__restrict__", "a1"),
        ]

    def _line(self, index, wide):
        """Return the lines that find where a line and its segment begin."""
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
    """Return where an element lies in shared memory: threads' first ones in different banks."""
    if isinstance(place, int):
        return place + place // 32
    return f"{place} + ({place}) / 32"


#: an element of the stretch that a group has in shared memory, and one of a thread's own run
_ELEMENT, _OWN = (f"kept[{_padded(place)}]" for place in ("base + e", "mine + v"))


def _of_run(lines):
    """Return the lines that do ``lines`` for as many elements v as a run has."""
    return ["OW_UNROLL", *loop(f"for (int v = 0; v < {_RUN}; v++)", in_braces(lines))]
