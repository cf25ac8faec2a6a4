"""Kernels of indexing by a vector of integers: rows gathered, set, or added to.

Additions are sorted by row and position, so that each row adds its terms in order: the same bits in
every run, and on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

from opwise.gpu.kernels import cudatext, layouts, views
from opwise.gpu.kernels.cudatext import (
    c_type,
    count_type,
    for_each,
    held,
    index_type,
    position,
    stored,
)
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    Kernel,
    Launch,
    Layout,
    Plan,
    PlanInput,
    grid_of,
    make_kernel,
)
from opwise.scalar import csource

#: keys that a block sorts
_TILE = 2048
#: terms of a row that are loaded before they are added
_BATCH = 8
#: dtypes with an instruction for atomic additions
ATOMIC = ("int32", "int64", "uint32", "uint64", "float32", "float64")

_UNITS = {1: "ow_u8", 2: "ow_u16", 4: "ow_u32", 8: "ow_u64"}
_SIXTEEN = "struct __align__(16) ow_u64x2 { ow_u64 at[2]; };\n"

#: lines that find row r of index k; a negative index counts from the end
_ROW = [
    "ow_i64 r = (ow_i64)index[k * index_step];",
    "r = r < 0 ? r + length : r;",
]


def unit_of(size: int) -> tuple[str, tuple[str, ...]]:
    """Return (C type, definitions) of a unit of memory of ``size`` bytes."""
    if size == 16:
        return "ow_u64x2", (*cudatext.support(), _SIXTEEN)
    return _UNITS[size], cudatext.support()


class RowGather:
    """``x[index]`` for a vector of indices: its kernels and plans."""

    def __init__(self, itemsize: int, ndim: int, index_dtype: str) -> None:
        """itemsize, ndim: of x."""
        self.itemsize, self.rest, self.index_dtype = itemsize, ndim - 1, index_dtype
        both = (False, True)
        self.whole = {wide: self._kernel(16, 0, wide) for wide in both}
        self.general = {wide: self._kernel(itemsize, self.rest, wide) for wide in both}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(dict.fromkeys([*self.whole.values(), *self.general.values()]))

    def _kernel(self, size, rest, wide):
        """Return the kernel for units of ``size`` bytes.

        rest: dimensions of a row; 0 if a row is one run of units.
        """
        unit, needs = unit_of(size)
        index, count = index_type(wide), count_type(wide)
        place = " + ".join(["r * row", *(f"j{d} * s{d}" for d in range(rest))])
        body = for_each(wide, [
            f"const {index} k = ({count})i / ({count})inner;",
            *_ROW,
            "if (r < 0 || r >= length) {",
            "    ow_complain(wrong, k);",
            "    continue;",
            "}",
            f"const {index} j = i - k * inner;",
            *position("j", "j", rest, "n", wide),
            f"z[i] = x[{place if rest else place + ' + j'}];",
        ])  # fmt: skip
        parameters = [
            (f"const {unit} *", "x"), (f"const {stored(self.index_dtype)} *", "index"),
            (f"{unit} *", "z"), ("ow_u32 *", "wrong"), (index, "n"), (index, "inner"),
            ("ow_i64", "length"), ("ow_i64", "index_step"), ("ow_i64", "row"),
            *cudatext.lengths("n", rest, wide), *((index, f"s{d}") for d in range(rest)),
        ]  # fmt: skip
        needs = tuple(dict.fromkeys((*needs, *cudatext.support("complain"))))
        return make_kernel("take", parameters, body, needs, wide=wide)

    def plan(
        self, inputs: Sequence[PlanInput], outputs: Sequence[Layout], limits: DeviceLimits
    ) -> Plan:
        """Return the Plan for (x, index)."""
        x, index = inputs
        (z,) = outputs
        if z.size == 0:
            return Plan(())
        shape = x.shape[1:]
        walk = layouts.walk(shape, [layouts.steps_of(x, x.shape)[1:]], reorder=False)
        row = x.strides[0]
        bytes_ = walk.size * self.itemsize
        runs = not walk.shape or (len(walk.shape) == 1 and walk.steps[0][0] == 1)
        in_units = (
            runs and bytes_ % 16 == 0 and row % 16 == 0 and min(x.alignment, z.alignment) == 16
        )
        size = 16 if in_units else self.itemsize
        inner = bytes_ // size
        n = index.shape[0] * inner
        wide = n >= layouts.LIMIT_32 or not walk.fits_32()
        (step,) = layouts.steps_of(index, index.shape)
        numbers = [n, inner, x.shape[0], step, row // size]
        if not in_units:
            lengths, steps = walk.padded(self.rest)
            numbers += [*layouts.lengths(lengths, wide), *layouts.by_array(steps)]
        arrays = (Array("in", 0), Array("in", 1), Array("out"), Array("error_flag"))
        kernel = (self.whole if in_units else self.general)[wide]
        return Plan((Launch(kernel, grid_of(n, limits), (THREADS, 1), arrays, tuple(numbers)),))


class RowScatter:
    """``x[index] = y`` or ``x[index] += y`` for a vector of indices: its kernels and plans."""

    def __init__(
        self,
        dtypes: tuple[str, str, str],
        rest: int,
        adds: bool,
        deterministic: bool = True,
        places: int = 1,
    ) -> None:
        """dtypes: of x, y and the index. rest: dimensions of a row. adds: add y to the rows.

        deterministic: add in the order of the indices, to numpy's bits; otherwise in any order, by
        atomic additions. places: dimensions of y that belong to the indices.
        """
        self.dtypes, self.rest, self.adds, self.places = dtypes, rest, adds, places
        self.atomic = adds and not deterministic and dtypes[0] in ATOMIC
        both = (False, True)
        self.sort: Kernel | None = None
        self.merge: Kernel | None = None
        if self.atomic:
            self.last = {wide: self._atomic(wide) for wide in both}
        else:
            self.last = {wide: self._in_order(wide) for wide in both}
            self.sort, self.merge = _sort(dtypes[2]), _merge()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(filter(None, (self.sort, self.merge, *self.last.values())))

    def _parameters(self, wide):
        index = index_type(wide)
        if self.places == 1:
            of_y = [("ow_i64", "y_row")]
        else:
            of_y = [
                *cudatext.lengths("m", self.places, wide),
                *((index, f"y{d}") for d in range(self.places)),
            ]
        return [
            (index, "n"), (index, "inner"), ("ow_i64", "row"), *of_y,
            *cudatext.lengths("n", self.rest, wide),
            *((index, f"s{d}") for d in range(self.rest)),
            *((index, f"t{d}") for d in range(self.rest)),
        ]  # fmt: skip

    def _numbers(self, wide, count, rest, of_y, row):
        """Return the numbers of ``_parameters``.

        rest: the Walk of the output and y over a row. of_y: the Walk of y over the indices. row:
        elements from one row of the output to the next.
        """
        lengths, steps = of_y.padded(self.places)
        y_steps: tuple[int, ...] = (steps[0][0],)
        if self.places > 1:
            y_steps = (*layouts.lengths(lengths, wide), *layouts.by_array(steps))
        lengths, steps = rest.padded(self.rest)
        return (
            count * rest.size, rest.size, row, *y_steps, *layouts.lengths(lengths, wide),
            *layouts.by_array(steps),
        )  # fmt: skip

    def _places(self):
        """Return the offsets of element j of row r, and of the element of y for index k."""
        to = " + ".join(["r * row", *(f"j{d} * s{d}" for d in range(self.rest))])
        start = ["k * y_row"] if self.places == 1 else [f"k{d} * y{d}" for d in range(self.places)]
        return to, " + ".join([*start, *(f"j{d} * t{d}" for d in range(self.rest))])

    def _of_key(self, at, wide):
        """Return the lines that compute the position k of a key's index."""
        of_k = position("k", "k", self.places, "m", wide) if self.places > 1 else []
        return [f"const ow_i64 k = (ow_u32)keys[{at}];", *of_k]

    def _value(self, place):
        """Return the expression of an element of y, converted to the dtype of x."""
        x, y, _ = self.dtypes
        text = cudatext.load(f"y[{place}]", y)
        return csource.convert(text, held(y), held(x))

    def _needs(self):
        half = ["half"] if "float16" in self.dtypes else []
        return cudatext.support("complain", *half)

    def _in_order(self, wide):
        """Return the kernel that runs over sorted keys.

        The first key of a row adds all of the row's terms, or its last key sets the row.
        """
        x, y, _ = self.dtypes
        index, count = index_type(wide), count_type(wide)
        to, of = self._places()
        lines = self._sum_of_row(to, of, wide) if self.adds else [
            "if (p + 1 < count && keys[p + 1] >> 32 == (ow_u64)r)",
            "    continue;",
            *self._of_key("p", wide),
            f"z[{to}] = {cudatext.store(self._value(of), x)};",
        ]  # fmt: skip
        body = for_each(wide, [
            f"const {index} p = ({count})i / ({count})inner;",
            *([f"const {index} j = i - p * inner;"] if self.rest else []),
            "const ow_i64 r = keys[p] >> 32;",
            "if (r == 0xffffffffll)",
            "    continue;",
            *position("j", "j", self.rest, "n", wide),
            *lines,
        ])  # fmt: skip
        parameters = [
            ("const ow_u64 *", "keys"), (f"const {stored(y)} *", "y"), (f"{stored(x)} *", "z"),
            (index, "count"), *self._parameters(wide),
        ]  # fmt: skip
        stem = "add_rows" if self.adds else "set_rows"
        return make_kernel(stem, parameters, body, self._needs(), wide=wide)

    def _sum_of_row(self, to, of, wide):
        """Return the lines that add the terms of row r to it if key p is the first of the row.

        to, of: offsets of an element of the row and of a term.
        """
        x = self.dtypes[0]
        plus = "|" if x == "bool" else "+"
        return [
            "if (p > 0 && keys[p - 1] >> 32 == (ow_u64)r)",
            "    continue;",
            f"{c_type(x)} sum = {cudatext.load(f'z[{to}]', x)};",
            f"{index_type(wide)} q = p;",
            # loads several terms of a row before it adds them
            f"for (; q + {_BATCH - 1} < count && keys[q + {_BATCH - 1}] >> 32 == (ow_u64)r;"
            f" q += {_BATCH}) {{",
            f"    {c_type(x)} terms[{_BATCH}];",
            "    OW_UNROLL",
            f"    for (int u = 0; u < {_BATCH}; u++) {{",
            *(f"        {line}" for line in self._of_key("q + u", wide)),
            f"        terms[u] = {self._value(of)};",
            "    }",
            "    OW_UNROLL",
            f"    for (int u = 0; u < {_BATCH}; u++)",
            f"        sum = ({c_type(x)})(sum {plus} terms[u]);",
            "}",
            "for (; q < count && keys[q] >> 32 == (ow_u64)r; q++) {",
            *(f"    {line}" for line in self._of_key("q", wide)),
            f"    sum = ({c_type(x)})(sum {plus} {self._value(of)});",
            "}",
            f"z[{to}] = {cudatext.store('sum', x)};",
        ]

    def _atomic(self, wide):
        x, y, index_dtype = self.dtypes
        index, count = index_type(wide), count_type(wide)
        to, of = self._places()
        value = self._value(of)
        cast = "(unsigned long long *)" if x == "int64" else ""
        value = f"(unsigned long long){value}" if x == "int64" else value
        body = for_each(wide, [
            f"const {index} k = ({count})i / ({count})inner;",
            *([f"const {index} j = i - k * inner;"] if self.rest else []),
            *_ROW,
            "if (r < 0 || r >= length) {",
            "    ow_complain(wrong, k);",
            "    continue;",
            "}",
            *position("j", "j", self.rest, "n", wide),
            f"atomicAdd({cast}(z + ({to})), {value});",
        ])  # fmt: skip
        parameters = [
            (f"const {stored(index_dtype)} *", "index"), (f"const {stored(y)} *", "y"),
            (f"{stored(x)} *", "z"), ("ow_u32 *", "wrong"), ("ow_i64", "length"),
            ("ow_i64", "index_step"), *self._parameters(wide),
        ]  # fmt: skip
        return make_kernel("add_rows_atomic", parameters, body, self._needs(), wide=wide)

    def plan(
        self, inputs: Sequence[PlanInput], outputs: Sequence[Layout], limits: DeviceLimits
    ) -> Plan:
        """Return the Plan for (x, y, index); the output already holds a copy of x."""
        _, y, index = inputs
        (z,) = outputs
        k, rows = index.shape[0], z.shape[1:]
        if k == 0 or (z.size == 0 and z.shape[0]):
            return Plan(())
        if max(k, z.shape[0]) >= 2**32 - 1:
            raise ValueError(f"{k} indices of {z.shape[0]} rows are too many for this kernel")
        y_row, *y_steps = layouts.steps_of(views.padded(y, 1 + len(rows)), (k, *rows))
        z_row, *z_steps = layouts.steps_of(z, z.shape)
        walk = layouts.walk(rows, [z_steps, y_steps], reorder=False)
        wide = k * walk.size >= layouts.LIMIT_32 or not walk.fits_32()
        numbers = self._numbers(wide, k, walk, layouts.Walk((k,), ((y_row,),), 1), z_row)
        (step,) = layouts.steps_of(index, index.shape)
        at, to = Array("in", 2), Array("out")
        if self.atomic:
            arrays = (at, Array("in", 1), to, Array("error_flag"))
            numbers, grid = (z.shape[0], step, *numbers), grid_of(numbers[0], limits)
            return Plan((Launch(self.last[wide], grid, (THREADS, 1), arrays, numbers),))
        launches, keys = self._sorted(k, step, z.shape[0], limits, at)
        launches.append(self._last(wide, keys, to, (k, *numbers), limits))
        return Plan(tuple(launches), (8 * k,) * (2 if k > _TILE else 1))

    def _last(self, wide, keys, to, numbers, limits):
        """Return the launch that sets rows or adds to them, by sorted keys."""
        arrays, grid = (keys, Array("in", 1), to), grid_of(numbers[1], limits)
        return Launch(self.last[wide], grid, (THREADS, 1), arrays, numbers)

    def _sorted(self, k, step, rows, limits, index):
        """Return (launches that sort the keys, the array with the sorted keys)."""
        assert self.sort is not None and self.merge is not None
        here, there = Array("scratch", 0), Array("scratch", 1)
        tile = min(_TILE, max(2, 1 << (k - 1).bit_length()))
        first = (index, here, Array("error_flag"))
        launches = [Launch(self.sort, -(-k // tile), (THREADS, 1), first, (k, rows, step, tile))]
        run = _TILE
        while run < k:
            grid = grid_of(k, limits)
            launches.append(Launch(self.merge, grid, (THREADS, 1), (here, there), (k, run)))
            here, there = there, here
            run *= 2
        return launches, here


def _sort(index_dtype):
    """Return the kernel that makes a key of each index and sorts the keys of each tile.

    A key is the row, or 2**32 - 1 if the index is out of range, then the position of the index. The
    size of a tile is a power of 2.
    """
    body = [
        f"__shared__ ow_u64 tile[{_TILE}];",
        "const ow_i64 from = (ow_i64)blockIdx.x * size_of_tile;",
        f"for (ow_i32 i = threadIdx.x; i < size_of_tile; i += {THREADS}) {{",
        "    const ow_i64 k = from + i;",
        "    tile[i] = 0xffffffffffffffffull;",
        "    if (k < n) {",
        *(f"        {line}" for line in _ROW),
        "        if (r < 0 || r >= length) {",
        "            ow_complain(wrong, k);",
        "            r = 0xffffffffll;",
        "        }",
        "        tile[i] = (ow_u64)r << 32 | (ow_u64)k;",
        "    }",
        "}",
        "for (ow_i32 size = 2; size <= size_of_tile; size *= 2)",
        "    for (ow_i32 half = size / 2; half; half /= 2) {",
        "        __syncthreads();",
        f"        for (ow_i32 i = threadIdx.x; i < size_of_tile / 2; i += {THREADS}) {{",
        "            const ow_i32 a = i / half * 2 * half + i % half, b = a + half;",
        "            const ow_u64 x = tile[a], y = tile[b];",
        "            if (x > y == ((a & size) == 0)) {",
        "                tile[a] = y;",
        "                tile[b] = x;",
        "            }",
        "        }",
        "    }",
        "__syncthreads();",
        f"for (ow_i32 i = threadIdx.x; i < size_of_tile && from + i < n; i += {THREADS})",
        "    keys[from + i] = tile[i];",
    ]
    parameters = [
        (f"const {stored(index_dtype)} *", "index"), ("ow_u64 *", "keys"), ("ow_u32 *", "wrong"),
        ("ow_i64", "n"), ("ow_i64", "length"), ("ow_i64", "index_step"),
        ("ow_i32", "size_of_tile"),
    ]  # fmt: skip
    return make_kernel("sort_rows", parameters, body, cudatext.support("complain"))


def _merge():
    """Return the kernel that merges sorted runs in pairs.

    The place of a key is its place in its own run plus the place it would have in the other.
    """
    body = for_each(True, [
        "const ow_i64 own = i / run, pair = own / 2 * 2 * run;",
        "const ow_i64 start = (own ^ 1) * run < n ? (own ^ 1) * run : n;",
        "ow_i64 low = start, high = start + run < n ? start + run : n;",
        "const ow_u64 key = from[i];",
        "while (low < high) {",
        "    const ow_i64 middle = (low + high) / 2;",
        "    if (from[middle] < key)",
        "        low = middle + 1;",
        "    else",
        "        high = middle;",
        "}",
        "to[pair + (i - own * run) + (low - start)] = key;",
    ])  # fmt: skip
    parameters = [
        ("const ow_u64 *", "from"),
        ("ow_u64 *", "to"),
        ("ow_i64", "n"),
        ("ow_i64", "run"),
    ]
    return make_kernel("merge_rows", parameters, body, cudatext.support())
