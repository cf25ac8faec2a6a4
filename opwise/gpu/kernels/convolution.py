"""Convolutions and their gradients: one product of a matrix with gathered elements.

All three are z[g, m, n] = sum over r of a[g, m, r] * x[g, r, n]. a and z have plain steps, while
elements of x are gathered (an implicit GEMM: patches are not stored). n and r are an outer index
and one for each spatial axis, along which the product meets the element n * by_n + r * by_r + start
of x, or a zero if that lies outside. See ``Convolution`` for what a, x and the indices stand for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import ScalarProgram, c_type, count_type, index_type, position
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
from opwise.gpu.kernels.reduce import Folding, Reduction, across
from opwise.tensor.conv.geometry import Geometry

#: so many threads keep any device busy: 132 multiprocessors with a thousand each
_BUSY = 2**17
#: the fewest tiles along r that are worth a segment of their own
_WORTH = 16
#: about how many instructions the plain kernel executes for a product, mostly to compute indices,
#: and besides for a result
_PLAIN, _PLAIN_RESULT = 40, 60
#: threads of a kernel of tiles that must fit on a multiprocessor, a fourth of all: so a thread has
#: at most 128 of the 65536 registers
_THREADS_AT_LEAST = 512
_WARP = 32


class Tile(NamedTuple):
    """What a block computes: m x n results, r products of each at once.

    A thread keeps by_m x by_n results in registers. Two tiles of a and two of x lie in shared
    memory: one is loaded while the other is read.
    """

    m: int
    n: int
    r: int
    by_m: int
    by_n: int

    @property
    def threads(self) -> int:
        return (self.m // self.by_m) * (self.n // self.by_n)

    @property
    def a_each(self) -> int:
        """Elements of a tile of a that a thread loads."""
        return self.m * self.r // self.threads

    @property
    def x_each(self) -> int:
        """Elements of a tile of x that a thread gathers."""
        return self.n * self.r // self.threads

    def instructions(self, length: int) -> int:
        """Return about how many instructions a block executes for sums of ``length`` products.

        Reads of shared memory count as many times as they occupy it.
        """
        sums = self.by_m * self.by_n
        step = self.r * (sums + self.by_m + self.by_n) + 8 * self.a_each + 16 * self.x_each + 40
        return self.threads * (-(-length // self.r) * step + 8 * sums + 150)


#: Float32: the largest keeps 64 sums in 128 registers, so that 2 blocks of 256 threads fit on a
#: multiprocessor, with 20 KiB of shared memory each. The others keep 16 sums in 70 to 105 registers
#: (ptxas for sm_80 and sm_90) and 10 to 24 KiB: 550 to 900 threads fit. With 8 x 8, 64
#: multiplications need 4 reads of 16 bytes; with 4 x 4, 16 need 2, which is about what it
#: delivers.
_TILES_32 = (
    Tile(128, 128, 8, 8, 8),
    Tile(64, 64, 16, 4, 4),
    Tile(32, 128, 16, 4, 4),
    Tile(16, 128, 8, 4, 4),
    Tile(32, 32, 16, 4, 4),
)
#: Float64: 8 x 8 sums would take all registers that a thread can have; 4 x 4 take up to 124. 8 rows
#: instead of 16 keep shared memory at 9 to 23 KiB.
_TILES_64 = tuple(tile._replace(r=8) for tile in _TILES_32[1:])
#: by wide kernels
_WIDE = 1


def tiles_of(dtype: str) -> tuple[Tile, ...]:
    """Return the tiles for arrays of a dtype."""
    return _TILES_64 if dtype == "float64" else _TILES_32


# --- what is computed ---------------------------------------------------------------------------


class Axis(NamedTuple):
    """A spatial axis of x: which element is met at n and r."""

    #: elements, and the step between them
    length: int
    step: int
    by_n: int
    by_r: int
    start: int


class Product(NamedTuple):
    """A product of a matrix with gathered elements; steps are in elements."""

    groups: int
    m: int
    #: (outer, one for each spatial axis)
    n: tuple[int, ...]
    r: tuple[int, ...]
    #: of a: by group, m, and each index of r
    a_group: int
    a_m: int
    a_r: tuple[int, ...]
    #: of x: by group and the outer indices of r and n
    x_group: int
    x_r: int
    x_n: int
    axes: tuple[Axis, ...]
    #: of z: by group, m, and each index of n
    z_group: int
    z_m: int
    z_n: tuple[int, ...]
    #: elements from the start of a and z to their first
    a_offset: int = 0
    z_offset: int = 0
    #: steps of a along each spatial axis by n and by the element of x: kernels that have weights of
    #: their own for each place
    a_n: tuple[int, ...] = ()
    a_x: tuple[int, ...] = ()

    @property
    def places(self) -> int:
        return math.prod(self.n)

    @property
    def length(self) -> int:
        return math.prod(self.r)

    @property
    def size(self) -> int:
        return self.groups * self.m * self.places

    def fits_32(self) -> bool:
        """Return whether indices and offsets fit 32 bits."""
        n, r = self.n, self.r
        lengths = [axis.length for axis in self.axes]
        reaches = (
            _reach((self.groups, self.m, *r, *n[1:], *lengths),
                   (self.a_group, self.a_m, *self.a_r, *self.a_n, *self.a_x)),
            _reach((self.groups, r[0], n[0], *lengths),
                   (self.x_group, self.x_r, self.x_n, *(axis.step for axis in self.axes))),
            _reach((self.groups, self.m, *n), (self.z_group, self.z_m, *self.z_n)),
            *(_reach((n[d], r[d], 2), (axis.by_n, axis.by_r, axis.start))
              for d, axis in enumerate(self.axes, 1)),
            self.size, self.length,
        )  # fmt: skip
        return max(reaches) < layouts.LIMIT_32


def _reach(lengths: Sequence[int], steps: Sequence[int]) -> int:
    """Return the distance, in elements, between the first element and the last."""
    return sum(max(0, n - 1) * abs(step) for n, step in zip(lengths, steps, strict=False))


class _Taps(NamedTuple):
    """The spatial axes of kernels, in the order in which they meet an image."""

    lengths: tuple[int, ...]
    steps: tuple[int, ...]
    #: elements to the first
    offset: int

    @classmethod
    def of(cls, lengths: Sequence[int], steps: Sequence[int], flip: bool) -> _Taps:
        if not flip:
            return cls(tuple(lengths), tuple(steps), 0)
        offset = sum((n - 1) * step for n, step in zip(lengths, steps, strict=True))
        return cls(tuple(lengths), tuple(-step for step in steps), offset)


@dataclass(frozen=True)
class Convolution:
    """The options of a convolution, and its products.

                            m         n                     r                   a        x
    convolution             outputs   batch, places         channels, taps      kernels  images
    gradient by kernels     outputs   channels, taps        batch, places       top      images
    gradient by images      channels  batch, places         outputs, taps       kernels  top

    For the first two, the element of an image is place * stride + tap * dilation - pad. The last
    divides by the stride instead. So its places are divided into phases, by their remainders:
    within one, the taps that meet elements are at equal distances, and the quotients have the same
    form again. Each phase is a launch. Nothing is added atomically, so results do not depend on the
    order of threads.
    """

    geometry: Geometry
    flip: bool
    groups: int
    #: whether kernels have weights of their own for each place
    unshared: bool

    @property
    def ndim(self) -> int:
        """The number of spatial axes."""
        return len(self.geometry.subsample)

    def _before(self, kernel):
        """Return the zeros before the image along each axis."""
        return [before for before, _ in self.geometry.pads(kernel.shape[-self.ndim :])]

    def _parts(self, kernel):
        """Return the steps of kernels by output, channel and place, and their taps."""
        steps, nd = layouts.steps_of(kernel, kernel.shape), self.ndim
        taps = _Taps.of(kernel.shape[-nd:], steps[-nd:], self.flip)
        return steps[0], steps[-nd - 1], steps[1 : 1 + nd] if self.unshared else (), taps

    def forward(self, image: Layout, kernel: Layout, result: Layout) -> list[Product]:
        """Return the product that is the convolution of images with kernels."""
        by_b, by_c, *by_x = layouts.steps_of(image, image.shape)
        z = layouts.steps_of(result, result.shape)
        by_k, by_channel, by_place, taps = self._parts(kernel)
        outputs, channels = self._by_group(kernel)
        axes = self._image_axes(image, by_x, kernel, taps_in_r=True)
        return [Product(
            self.groups, outputs, (image.shape[0], *result.shape[2:]), (channels, *taps.lengths),
            outputs * by_k, by_k, (by_channel, *taps.steps),
            channels * by_c, by_c, by_b, axes,
            outputs * z[1], z[1], (z[0], *z[2:]), taps.offset, a_n=by_place,
        )]  # fmt: skip

    def by_kernels(self, image: Layout, top: Layout, result: Layout) -> list[Product]:
        """Return the products that are the gradient by kernels; top: that by the result."""
        by_b, by_c, *by_x = layouts.steps_of(image, image.shape)
        t_b, t_k, *t_x = layouts.steps_of(top, top.shape)
        by_k, by_channel, by_place, taps = self._parts(result)
        outputs, channels = self._by_group(result)
        axes = self._image_axes(image, by_x, result, taps_in_r=False)
        shared = Product(
            self.groups, outputs, (channels, *taps.lengths), (top.shape[0], *top.shape[2:]),
            outputs * t_k, t_k, (t_b, *t_x),
            channels * by_c, by_b, by_c, axes,
            outputs * by_k, by_k, (by_channel, *taps.steps), z_offset=taps.offset,
        )  # fmt: skip
        return self._tap_by_tap(shared, t_x, by_place, taps) if self.unshared else [shared]

    def _tap_by_tap(self, shared, t_x, by_place, taps):
        """Return a product for each tap; with weights for each place, places are part of n."""
        nothing, once = (0,) * self.ndim, (1,) * self.ndim
        found = []
        for tap in itertools.product(*map(range, taps.lengths)):
            axes = tuple(
                axis._replace(by_n=axis.by_r, by_r=0, start=axis.start + t * axis.by_n)
                for axis, t in zip(shared.axes, tap, strict=True)
            )
            offset = sum(t * step for t, step in zip(tap, taps.steps, strict=True))
            found.append(shared._replace(
                n=(shared.n[0], *shared.r[1:]), r=(shared.r[0], *once), axes=axes,
                a_r=(shared.a_r[0], *nothing), a_n=tuple(t_x),
                z_n=(shared.z_n[0], *by_place), z_offset=taps.offset + offset,
            ))  # fmt: skip
        return found

    def by_images(self, kernel: Layout, top: Layout, result: Layout) -> list[Product]:
        """Return the products that are the gradient by images, one for each phase.

        If some phases meet no tap, the first product is empty and sets all of the gradient to 0.
        """
        t_b, t_k, *t_x = layouts.steps_of(top, top.shape)
        z = layouts.steps_of(result, result.shape)
        by_k, by_channel, by_place, taps = self._parts(kernel)
        outputs, channels = self._by_group(kernel)
        pads, nd = self._before(kernel), self.ndim
        whole = Product(
            self.groups, channels, (result.shape[0], *result.shape[2:]), (0,) * (nd + 1),
            outputs * by_k, by_channel, (by_k, *taps.steps),
            outputs * t_k, t_k, t_b,
            tuple(map(Axis._make, zip(top.shape[2:], t_x, *[(1,) * nd] * 3, strict=True))),
            channels * z[1], z[1], (z[0], *z[2:]), taps.offset, a_x=by_place,
        )  # fmt: skip
        by_axis = [list(self._phases(result.shape[2 + d], taps.lengths[d], pads[d], d))
                   for d in range(nd)]  # fmt: skip
        found = []
        for phases in itertools.product(*by_axis):
            if not all(phase.taps for phase in phases):
                continue
            axes = tuple(
                axis._replace(by_r=phase.by_tap, start=phase.start)
                for axis, phase in zip(whole.axes, phases, strict=True)
            )
            between = [
                step * phase.tap_step for step, phase in zip(taps.steps, phases, strict=True)
            ]
            a_offset = sum(p.first_tap * step for p, step in zip(phases, taps.steps, strict=True))
            z_offset = sum(p.first * step for p, step in zip(phases, z[2:], strict=True))
            strides = self.geometry.subsample
            found.append(whole._replace(
                n=(result.shape[0], *(phase.places for phase in phases)),
                r=(outputs, *(phase.taps for phase in phases)),
                a_r=(by_k, *between), axes=axes, a_offset=taps.offset + a_offset,
                z_n=(z[0], *(s * step for s, step in zip(strides, z[2:], strict=True))),
                z_offset=z_offset,
            ))  # fmt: skip
        if len(found) < math.prod(map(len, by_axis)):
            found.insert(0, whole)
        return found

    def _phases(self, length, taps, pad, d) -> Iterator[_Phase]:
        """Yield the phases of places 0 to length - 1 along axis ``d``."""
        stride, dilation = self.geometry.subsample[d], self.geometry.dilation[d]
        step = stride // math.gcd(stride, dilation)
        for first in range(min(stride, length)):
            places = -(-(length - first) // stride)
            to_tap = first + pad
            tap = next(
                (t for t in range(min(step, taps)) if not (to_tap - t * dilation) % stride), None
            )
            if tap is None:
                yield _Phase(first, places, 0, step, 0, 0, 0)
                continue
            count = -(-(taps - tap) // step)
            start = (to_tap - tap * dilation) // stride
            yield _Phase(first, places, tap, step, count, start, -(dilation * step // stride))

    def _by_group(self, kernel):
        """Return the outputs and channels of a group."""
        return kernel.shape[0] // self.groups, kernel.shape[-self.ndim - 1]

    def _image_axes(self, image, steps, kernel, taps_in_r):
        """Return the axes of images as x: n are places and r taps, or the other way round."""
        found = []
        for d, pad in enumerate(self._before(kernel)):
            by_place, by_tap = self.geometry.subsample[d], self.geometry.dilation[d]
            both = (by_place, by_tap) if taps_in_r else (by_tap, by_place)
            found.append(Axis(image.shape[2 + d], steps[d], *both, -pad))
        return tuple(found)


class _Phase(NamedTuple):
    """Places along an axis of images, first, first + stride, ..., and the taps that they meet."""

    first: int
    places: int
    #: taps first_tap, first_tap + tap_step, ...
    first_tap: int
    tap_step: int
    taps: int
    #: the element of top that the first of the places meets with the first of the taps
    start: int
    #: how far the next tap is from there
    by_tap: int


# --- texts --------------------------------------------------------------------------------------


class _ProductText:
    """Writes the kernels of products with ``ndim`` spatial axes."""

    def __init__(self, dtype: str, ndim: int, wide: bool) -> None:
        self.dtype, self.wide = dtype, wide
        self.axes = range(1, ndim + 1)
        self.index, self.count = index_type(wide), count_type(wide)
        self.held, self.type = cudatext.held(dtype), c_type(dtype)
        self.fma = "fma" if self.held == "float64" else "fmaf"
        self.needs = cudatext.support(*(["half"] if dtype == "float16" else []))

    def _arrays(self, last):
        element = f"const {cudatext.stored(self.dtype)} *__restrict__"
        return [(element, "a"), (element, "x"), (last, "z")]

    def _numbers(self, own):
        """Return the parameters behind the arrays; own: those of one kernel alone."""
        nd, index = len(self.axes), self.index
        names = [
            "a_group", "a_m", *(f"a_r{d}" for d in (0, *self.axes)), "x_group", "x_r", "x_n",
            *(f"{name}{d}" for d in self.axes for name in ("length", "step", "by_n", "by_r",
                                                          "start")),
            "z_group", "z_m", *(f"z_n{d}" for d in (0, *self.axes)),
        ]  # fmt: skip
        return [
            (index, "m_all"), (index, "n_all"), (index, "r_all"),
            *cudatext.lengths("n_", nd + 1, self.wide), *cudatext.lengths("r_", nd + 1, self.wide),
            *((index, name) for name in (*names, *own)),
        ]  # fmt: skip

    def _inside(self, element):
        """Return the condition that all elements of x that are met lie inside; see ``element``."""
        return " && ".join(f"({self.count}){element(d)} < ({self.count})length{d}"
                           for d in self.axes)  # fmt: skip

    def _of_z(self, names):
        """Return the offset in z at indices with such names."""
        return " + ".join(f"{names}{d} * z_n{d}" for d in (0, *self.axes))

    # a thread, or a few, for each result

    def plain(self) -> Kernel:
        """Return the kernel in which the threads of a row of the block sum up one result."""
        index, count, axes = self.index, self.count, self.axes
        own = [*(f"a_n{d}" for d in axes), *(f"a_x{d}" for d in axes)]
        join, across_text = across(Folding.of("add", self.held, self.dtype))
        a_at = [f"q{d} * a_r{d}" for d in (0, *axes)] + [f"e{d} * a_x{d}" for d in axes]
        a = cudatext.load(f"a[a_from + {' + '.join(a_at)}]", self.dtype)
        x_at = ["q0 * x_r", *(f"e{d} * step{d}" for d in axes)]
        x = cudatext.load(f"x[x_from + {' + '.join(x_at)}]", self.dtype)
        summing = in_braces([
            *position("r", "q", len(axes) + 1, "r_", self.wide),
            *(f"const {index} e{d} = p{d} * by_n{d} + q{d} * by_r{d} + start{d};" for d in axes),
            f"if ({self._inside(lambda d: f'e{d}')})",
            f"    sum = {self.fma}({a},",
            f"        {x}, sum);",
        ])  # fmt: skip
        one = in_braces([
            f"const {index} row = ({count})at / n_all, place = at - row * n_all;",
            f"const {index} group = ({count})row / m_all, m = row - group * m_all;",
            *position("place", "p", len(axes) + 1, "n_", self.wide),
            f"const {index} a_from = group * a_group + m * a_m + "
            f"{' + '.join(f'p{d} * a_n{d}' for d in axes)};",
            f"const {index} x_from = group * x_group + p0 * x_n;",
            f"to = group * z_group + m * z_m + {self._of_z('p')};",
            *with_head(f"for ({index} r = threadIdx.x; r < r_all; r += blockDim.x)", summing),
        ])  # fmt: skip
        store = cudatext.store("sum", self.dtype)
        body = [
            f"const {index} all = ({index})gridDim.x * blockDim.y;",
            *with_head(
                f"for ({index} first = ({index})blockIdx.x * blockDim.y; first < results; "
                "first += all)",
                in_braces([
                    f"const {index} at = first + threadIdx.y;",
                    f"{index} to = 0;",
                    f"{self.type} sum = 0;",
                    *with_head("if (at < results)", one),
                    f"{join}(sum);",
                    "if (threadIdx.x == 0 && at < results)",
                    f"    z[to] = {store};",
                ]),
            ),
        ]  # fmt: skip
        parameters = [
            *self._arrays(f"{cudatext.stored(self.dtype)} *__restrict__"),
            *self._numbers([*own, "results"]),
        ]
        needs = (*self.needs, across_text)
        return make_kernel("product", parameters, body, needs, wide=self.wide)

    # tiles

    def tiled(self, tile: Tile, along_r: bool) -> Kernel:
        """Return the kernel in which a block computes tiles of results.

        along_r: adjacent threads load what is adjacent along r, not along n, from x.
        """
        index, count, axes, t = self.index, self.count, self.axes, tile
        width = cudatext.VECTOR_BYTES // cudatext.itemsize(self.held)
        vector, vector_text = cudatext.vector(self.held, width)
        a_column, x_column, x_row = f"a_column + i * {t.threads // t.r}", "x_column", "x_row"
        if along_r:
            x_column += f" + i * {t.threads // t.r}"
        else:
            x_row += f" + i * {t.threads // t.n}"
        lines = [
            *(f"__align__(16) __shared__ {self.type} {name}_tile[2][{t.r}][{n + width}];"
              for name, n in (("a", t.m), ("x", t.n))),
            # what depends on m, on n and on r alone
            f"__shared__ {index} of_m[2][{t.m}], of_n[{len(axes) + 2}][{t.n}];",
            f"__shared__ {index} of_r[2][{t.r}][{len(axes) + 2}];",
            "const int thread = threadIdx.x;",
            f"const int a_row = thread % {t.r}, a_column = thread / {t.r};",
            f"const int x_row = thread {'%' if along_r else '/'} {t.r if along_r else t.n};",
            f"const int x_column = thread {'/' if along_r else '%'} {t.r if along_r else t.n};",
            f"const int m_own = thread / {t.n // t.by_n} * {width};",
            f"const int n_own = thread % {t.n // t.by_n} * {width};",
        ]  # fmt: skip
        task = [
            # blocks beside each other gather the same elements
            f"const {index} tile = ({count})task / m_tiles, m = (task - tile * m_tiles) * {t.m};",
            f"const {index} part = ({count})tile / n_tiles, n = (tile - part * n_tiles) * {t.n};",
            f"const {index} segment = ({count})part / groups, group = part - segment * groups;",
            f"const {index} from = segment * span;",
            f"const {index} to = r_all - from < span ? r_all : from + span;",
            f"{self.type} a_next[{t.a_each}], x_next[{t.x_each}], sum[{t.by_m}][{t.by_n}];",
            # results beyond the last are computed from the last row, and not stored
            *with_head(f"for (int i = thread; i < {t.m}; i += {t.threads})", in_braces([
                f"const {index} at = m + i < m_all ? m + i : m_all - 1;",
                "of_m[0][i] = group * a_group + at * a_m;",
                "of_m[1][i] = segment * z_segment + group * z_group + at * z_m;",
            ])),
            *with_head(f"for (int i = thread; i < {t.n}; i += {t.threads})", in_braces([
                f"const {index} at = n + i < n_all ? n + i : n_all - 1;",
                *position("at", "p", len(axes) + 1, "n_", self.wide),
                "of_n[0][i] = group * x_group + p0 * x_n;",
                *(f"of_n[{d}][i] = p{d} * by_n{d} + start{d};" for d in axes),
                f"of_n[{len(axes) + 1}][i] = {self._of_z('p')};",
            ])),
            *self._unrolled("i", t.by_m * t.by_n, [f"sum[i / {t.by_n}][i % {t.by_n}] = 0;"]),
            f"const auto index = [&]({index} r, int b) {{",
            f"    if (thread < {t.r}) {{",
            f"        const {index} at = r + thread;",
            *(f"        {line}"
              for line in position("at", "q", len(axes) + 1, "r_", self.wide)),
            f"        of_r[b][thread][0] = {' + '.join(f'q{d} * a_r{d}' for d in (0, *axes))};",
            "        of_r[b][thread][1] = q0 * x_r;",
            *(f"        of_r[b][thread][{d + 1}] = q{d} * by_r{d};" for d in axes),
            "    }",
            "};",
            f"const auto load = [&]({index} r, int b) {{",
            *(f"    {line}" for line in (
                *self._unrolled("i", t.a_each, [
                    f"const {index} place = of_m[0][{a_column}] + of_r[b][a_row][0];",
                    f"a_next[i] = r + a_row < to ? {cudatext.load('a[place]', self.dtype)} : 0;",
                ]),
                *self._unrolled("i", t.x_each, [
                    f"const {index} *at = of_r[b][{x_row}];",
                    f"const int column = {x_column};",
                    *(f"const {index} e{d} = of_n[{d}][column] + at[{d + 1}];" for d in axes),
                    f"const bool inside = r + {x_row} < to",
                    *(f"    && ({count})e{d} < ({count})length{d}"
                      + ";" * (d == len(axes)) for d in axes),
                    f"const {index} place = of_n[0][column] + at[1] + "
                    f"{' + '.join(f'e{d} * step{d}' for d in axes)};",
                    f"x_next[i] = inside ? {cudatext.load('x[place]', self.dtype)} : 0;",
                ]),
            )),
            "};",
            "const auto keep = [&](int b) {",
            *(f"    {line}" for line in (
                *self._unrolled("i", t.a_each, [f"a_tile[b][a_row][{a_column}] = a_next[i];"]),
                *self._unrolled("i", t.x_each, [f"x_tile[b][{x_row}][{x_column}] = x_next[i];"]),
            )),
            "};",
            "index(from, 0);",
            "__syncthreads();",
            "load(from, 0);",
            "keep(0);",
            f"index(from + {t.r}, 1);",
            "__syncthreads();",
            "int now = 0;",
            *with_head(f"for ({index} r = from; r < to; r += {t.r}, now ^= 1)", in_braces([
                f"const bool more = r + {t.r} < to;",
                "if (more)",
                f"    load(r + {t.r}, now ^ 1);",
                *self._unrolled("k", t.r, self._multiplied(t, width, vector)),
                *with_head("if (more)", in_braces([
                    "keep(now ^ 1);",
                    f"index(r + {2 * t.r}, now);",
                ])),
                "__syncthreads();",
            ])),
            *self._stored(t, width),
            "__syncthreads();",
        ]  # fmt: skip
        head = f"for ({index} task = blockIdx.x; task < tasks; task += gridDim.x)"
        own = ["groups", "m_tiles", "n_tiles", "tasks", "segments", "span", "z_segment"]
        return make_kernel(
            f"product_{t.m}x{t.n}", [*self._arrays("void *__restrict__"), *self._numbers(own)],
            [*lines, *with_head(head, in_braces(task))], (*self.needs, vector_text), self.wide,
            t.threads, _THREADS_AT_LEAST // t.threads,
        )  # fmt: skip

    def _unrolled(self, name, count, lines):
        head = f"for (int {name} = 0; {name} < {count}; {name}++)"
        return ["OW_UNROLL", *with_head(head, in_braces(lines))]

    def _multiplied(self, t, width, vector):
        """Return the lines that add up the products of row k of both tiles."""
        reads = [
            line
            for name, n, by in (("a", t.m, t.by_m), ("x", t.n, t.by_n))
            for line in (
                f"{vector} {name}_own[{by // width}];",
                "OW_UNROLL",
                f"for (int c = 0; c < {by // width}; c++)",
                f"    {name}_own[c] = *(const {vector} *)&{name}_tile[now][k]"
                f"[c * {n // (by // width)} + {'m' if name == 'a' else 'n'}_own];",
            )
        ]
        a = f"a_own[i / {width}].at[i % {width}]"
        x = f"x_own[j / {width}].at[j % {width}]"
        return [
            *reads,
            *self._unrolled("i", t.by_m, [
                "OW_UNROLL",
                f"for (int j = 0; j < {t.by_n}; j++)",
                f"    sum[i][j] = {self.fma}({a}, {x}, sum[i][j]);",
            ]),
        ]  # fmt: skip

    def _stored(self, t, width):
        """Return the lines that store the sums, as results or as parts of them."""
        own = {
            name: f"{k} / {width} * {n * width // by} + {name}_own + {k} % {width}"
            for name, k, n, by in (("m", "i", t.m, t.by_m), ("n", "j", t.n, t.by_n))
        }
        final = cudatext.store("sum[i][j]", self.dtype)
        return self._unrolled("j", t.by_n, [
            f"const int n_at = {own['n']};",
            *self._unrolled("i", t.by_m, [
                f"const int m_at = {own['m']};",
                f"const {self.index} place = of_m[1][m_at] + of_n[{len(self.axes) + 1}][n_at];",
                "if (n + n_at < n_all && m + m_at < m_all && segments == 1)",
                f"    (({cudatext.stored(self.dtype)} *)z)[place] = {final};",
                "else if (n + n_at < n_all && m + m_at < m_all)",
                f"    (({self.type} *)z)[place] = sum[i][j];",
            ]),
        ])  # fmt: skip


# --- plans --------------------------------------------------------------------------------------


class Products:
    """The kernels and plans of products with ``ndim`` spatial axes."""

    def __init__(self, dtype: str, ndim: int, a: int, along_r: bool, tiled: bool) -> None:
        """a: the position of a among the inputs, whose other is x. along_r: see
        ``_ProductText.tiled``. tiled: whether there are kernels of tiles."""
        self.dtype, self.a = dtype, a
        narrow, wide = (_ProductText(dtype, ndim, w) for w in (False, True))
        self.plain = {False: narrow.plain(), True: wide.plain()}
        self.tiles = tiles_of(dtype) if tiled else ()
        self.tiled: dict[tuple[Tile, bool], Kernel] = {}
        self.total: Reduction | None = None
        if tiled:
            self.tiled = {(t, False): narrow.tiled(t, along_r) for t in self.tiles}
            one = self.tiles[_WIDE]
            self.tiled[one, True] = wide.tiled(one, along_r)
            held = cudatext.held(dtype)
            folding = Folding.of("add", held, dtype)
            self.total = Reduction(folding, ScalarProgram.identity(held), 2, (0,), [(False, False)])

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        total = self.total.kernels if self.total is not None else ()
        return (*self.plain.values(), *self.tiled.values(), *total)

    def plan(self, products: Sequence[Product], size: int, limits: DeviceLimits) -> Plan:
        """Return the Plan of products whose results are the ``size`` elements of one array."""
        launches, scratch = [], []
        for product in products:
            if product.size == 0:
                continue
            wide = not product.fits_32()
            tile, segments = self._chosen(product, wide, split=len(products) == 1)
            if tile is None:
                launches.append(self._plain_launch(product, wide, limits))
                continue
            out = Array("scratch" if segments > 1 else "out")
            launch, segments = self._tiled_launch(product, tile, segments, wide, out, limits)
            launches.append(launch)
            if segments > 1:
                total, more = self._total(segments, size, limits)
                launches += total
                scratch = [segments * size * cudatext.itemsize(cudatext.held(self.dtype)), *more]
        return Plan(tuple(launches), tuple(scratch))

    def _chosen(self, product, wide, split):
        """Return (Tile, segments of r) that should take the least time; (None, 1): no tile.

        The choice depends on lengths alone, so that sums do not depend on the device.
        """

        def time(instructions, threads):
            return instructions / min(1.0, threads / _BUSY)

        plain = product.size * (product.length * _PLAIN + _PLAIN_RESULT)
        tile: Tile | None = None
        best = time(plain, product.size * _lanes(product)), tile, 1
        for tile in self.tiles[_WIDE : _WIDE + 1] if wide else self.tiles:
            blocks = product.groups * -(-product.m // tile.m) * -(-product.places // tile.n)
            threads = blocks * tile.threads
            segments = 1
            if split:
                most = product.length // (tile.r * _WORTH)
                segments = max(1, min(-(-_BUSY // threads), most))
            taken = time(blocks * tile.instructions(product.length), threads * segments)
            if taken < best[0]:
                best = taken, tile, segments
        return best[1:]

    def _plain_launch(self, product, wide, limits):
        lanes = _lanes(product)
        rows = THREADS // lanes
        nothing = (0,) * len(product.axes)
        own = (*(product.a_n or nothing), *(product.a_x or nothing), product.size)
        numbers = (*_numbers(product, wide), *own)
        grid = capped(-(-product.size // rows), limits)
        return Launch(self.plain[wide], grid, (lanes, rows), self._arrays(product, Array("out")),
                      numbers)  # fmt: skip

    def _tiled_launch(self, product, tile, segments, wide, out, limits):
        """Return (a launch, the number of segments)."""
        span = -(-product.length // segments)
        span = max(1, span + -span % tile.r)
        segments = max(1, -(-product.length // span))
        if segments == 1:
            out = Array("out")
        m_tiles, n_tiles = -(-product.m // tile.m), -(-product.places // tile.n)
        tasks = m_tiles * n_tiles * product.groups * segments
        own = (product.groups, m_tiles, n_tiles, tasks, segments, span, product.size)
        numbers = (*_numbers(product, wide), *own)
        return Launch(self.tiled[tile, wide], capped(tasks, limits), (tile.threads, 1),
                      self._arrays(product, out), numbers), segments  # fmt: skip

    def _arrays(self, product, out):
        itemsize = cudatext.itemsize(self.dtype)
        of_z = itemsize if out.kind == "out" else cudatext.itemsize(cudatext.held(self.dtype))
        return (
            Array("in", self.a, product.a_offset * itemsize),
            Array("in", 1 - self.a),
            out._replace(offset=product.z_offset * of_z),
        )

    def _total(self, segments, size, limits):
        """Return (launches, sizes of scratch memory) that add up the segments, in their order."""
        assert self.total is not None
        layout = Layout.contiguous((segments, size), cudatext.itemsize(cudatext.held(self.dtype)))
        plan = self.total.plan((segments, size), [layout], limits)

        def moved(array):
            if array.kind == "in":
                return Array("scratch", 0)
            return array._replace(position=array.position + (array.kind == "scratch"))

        return [
            launch._replace(arrays=tuple(map(moved, launch.arrays))) for launch in plan.launches
        ], plan.scratch


def _numbers(product, wide):
    """Return the numbers of the parameters that all kernels have."""
    return (
        product.m, product.places, product.length,
        *layouts.lengths(product.n, wide), *layouts.lengths(product.r, wide),
        product.a_group, product.a_m, *product.a_r, product.x_group, product.x_r, product.x_n,
        *(number for axis in product.axes for number in axis),
        product.z_group, product.z_m, *product.z_n,
    )  # fmt: skip


def _lanes(product):
    """Return how many threads of the plain kernel share a result: a power of 2, a warp or less, or
    a whole block; more than one only where results are few."""
    wanted = min(-(-_BUSY // product.size), product.length // 4)
    lanes = 1 << max(0, wanted.bit_length() - 1)
    return lanes if lanes <= _WARP else THREADS
