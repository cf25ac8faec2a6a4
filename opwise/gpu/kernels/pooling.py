"""Pooling and its derivatives: a thread for each window, or for each element of the images.

A gradient by images gathers from the windows that hold an element, so nothing is added atomically.
Elements of a window, and windows of an element, are added in the order of ``perform``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from opwise.gpu.kernels import cudatext, layouts
from opwise.gpu.kernels.cudatext import c_type, count_type, for_each, index_type, position, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    ForBothWidths,
    Launch,
    Layout,
    Plan,
    grid_of,
    in_braces,
    make_kernel,
    with_head,
)
from opwise.scalar import csource, dtypes


class Windows(NamedTuple):
    """Where windows lie along each spatial axis."""

    #: of windows
    lengths: tuple[int, ...]
    strides: tuple[int, ...]
    #: zeros before and behind images
    pads: tuple[int, ...]
    #: how many windows there are
    counts: tuple[int, ...]


#: what is pooled, and its arrays: "x" has the shape of images, "w" that of windows
KINDS = {
    "max": "x", "sum": "x", "average_inc_pad": "x", "average_exc_pad": "x",
    # the elements of the second array where the first has the maximum of a window
    "first_of_max": "xx",
    # the sum of the elements of the third where the first equals the second
    "sum_at_max": "xwx",
    # gradients by images
    "max_grad": "xww", "sum_grad": "xw", "average_inc_pad_grad": "xw",
    "average_exc_pad_grad": "xw",
}  # fmt: skip


class Pooling(ForBothWidths):
    """The kernels and plans of a kind of pooling of arrays of ``ndim`` dimensions."""

    def __init__(self, kind: str, dtype: str, ndim: int, spatial: int) -> None:
        """spatial: the number of axes that windows extend along, the last ones."""
        self.kind, self.dtype, self.ndim = kind, dtype, ndim
        self.first = ndim - spatial
        self.of_images = kind.endswith("_grad")

    @property
    def _axes(self):
        return range(self.first, self.ndim)

    @property
    def _read(self):
        """Return the positions of the arrays that the kernel reads."""
        return [k for k in range(len(KINDS[self.kind])) if self.kind[:3] == "max" or k
                or not self.of_images]  # fmt: skip

    def _text(self, wide):
        type_ = f"{stored(self.dtype)} *__restrict__"
        body = for_each(wide, [
            *position("i", "p", self.ndim, "n_", wide),
            *(self._of_element(wide) if self.of_images else self._of_window(wide)),
        ])  # fmt: skip
        index = index_type(wide)
        parameters = [
            *((f"const {type_}", f"a{k}") for k in self._read), (type_, "z"), (index, "n"),
            *cudatext.lengths("n_", self.ndim, wide),
            *((index, f"s{k}_{d}") for k in self._read for d in range(self.ndim)),
        ]  # fmt: skip
        for d in self._axes:
            parameters += [(index, f"{name}{d}") for name in ("length", "window", "pad", "count")]
            parameters += cudatext.lengths(f"stride{d}_", 2, wide)
        needs = cudatext.support(*(["half"] if self.dtype == "float16" else []))
        return make_kernel(self.kind, parameters, body, needs, wide)

    # pieces of text

    def _stride(self, d):
        return f"stride{d}_1"

    def _divided(self, what, d, wide):
        """Return the expression of a quotient by the stride along an axis."""
        name = self._stride(d)
        if wide:
            return f"({count_type(wide)})({what}) / {name}"
        return f"ow_divide({what}, {name}_times, {name}_shift)"

    def _element(self, k, names):
        """Return the expression of an element of array ``k``; names: of its indices."""
        place = " + ".join(f"{name} * s{k}_{d}" for d, name in enumerate(names))
        return cudatext.load(f"a{k}[{place}]", self.dtype)

    def _outer(self, name):
        """Return the names of indices that are ``name`` along the spatial axes."""
        return [f"{'p' if d < self.first else name}{d}" for d in range(self.ndim)]

    def _nested(self, heads, lines):
        """Return loops inside each other."""
        for head in reversed(heads):
            lines = with_head(head, in_braces(lines))
        return lines

    def _added(self, value):
        """Return the statement that adds to the total."""
        return f"total = ({c_type(self.dtype)})(total + {value});"

    def _quotient(self, value, size):
        """Return the expression of a value divided by the size of a window."""
        held = cudatext.held(self.dtype)
        if held in dtypes.FLOATS:
            return f"{value} / ({c_type(self.dtype)})({size})"
        return csource.convert(f"((double){value} / (double)({size}))", "float64", held)

    def _sizes(self, wide):
        """Return the lines that compute the sizes of a window as averages take them, from b2, ...

        An average with pad counts elements of pads too, but none beyond them.
        """
        lines = []
        for d in self._axes:
            start, limit = f"(b{d} > 0 ? b{d} : 0)", f"length{d}"
            if "inc_pad" in self.kind:
                start, limit = f"b{d}", f"length{d} + pad{d}"
            end = f"(b{d} + window{d} < {limit} ? b{d} + window{d} : {limit})"
            lines.append(f"const {index_type(wide)} size{d} = {end} - {start};")
        return lines

    @property
    def _size(self):
        return " * ".join(f"size{d}" for d in self._axes)

    # a window

    def _of_window(self, wide):
        index, type_ = index_type(wide), c_type(self.dtype)
        places = [
            line
            for d in self._axes
            for line in (
                f"const {index} b{d} = p{d} * {self._stride(d)} - pad{d};",
                f"const {index} to{d} = b{d} + window{d} < length{d} ? b{d} + window{d} : "
                f"length{d};",
            )
        ]
        heads = [
            f"for ({index} e{d} = b{d} > 0 ? b{d} : 0; e{d} < to{d}; e{d}++)" for d in self._axes
        ]
        start, taken, final = "0", [self._added(self._element(0, self._outer("e")))], "total"
        before = []
        if self.kind in ("max", "first_of_max"):
            start = self._least()
            value = f"const {type_} v = {self._element(0, self._outer('e'))};"
        if self.kind == "max":  # of NaN and a number, NaN
            taken = [value, "if (v > total || v != v)", "    total = v;"]
        elif self.kind == "first_of_max":
            before = [
                f"{type_} found = 0;",
                # what lies before images is less than all others
                f"bool first = {' && '.join(f'b{d} >= 0' for d in self._axes)};",
            ]
            other = self._element(1, self._outer("e"))
            taken = [value, *with_head("if (first || v > total)", in_braces([
                "total = v;", f"found = {other};", "first = false;"]))]  # fmt: skip
            final = "found"
        elif self.kind == "sum_at_max":
            before = [f"const {type_} most = {self._element(1, self._outer('p'))};"]
            taken = [
                f"if ({self._element(0, self._outer('e'))} == most)",
                f"    {self._added(self._element(2, self._outer('e')))}",
            ]
        elif self.kind != "sum":
            before, final = self._sizes(wide), self._quotient("total", self._size)
        return [
            *places, f"{type_} total = {start};", *before, *self._nested(heads, taken),
            f"z[i] = {cudatext.store(final, self.dtype)};",
        ]  # fmt: skip

    def _least(self):
        """Return the number of which all others are maxima."""
        held = cudatext.held(self.dtype)
        least = -math.inf if held in dtypes.FLOATS else int(np.iinfo(held).min)
        return csource.literal(least, held)

    # an element

    def _of_element(self, wide):
        index, type_ = index_type(wide), c_type(self.dtype)
        places = [
            line
            for d in self._axes
            for line in (
                # windows first to last hold the element
                f"const {index} at{d} = p{d} + pad{d};",
                f"const {index} end{d} = {self._divided(f'at{d}', d, wide)};",
                f"const {index} last{d} = end{d} < count{d} ? end{d} : count{d} - 1;",
                f"const {index} past{d} = at{d} - window{d};",
                f"const {index} first{d} = past{d} < 0 ? 0 : "
                f"{self._divided(f'past{d}', d, wide)} + 1;",
            )
        ]
        heads = [f"for ({index} w{d} = last{d}; w{d} >= first{d}; w{d}--)" for d in self._axes]
        given = self._element(len(KINDS[self.kind]) - 1, self._outer("w"))
        before = []
        if self.kind == "max_grad":
            before = [f"const {type_} own = {self._element(0, self._outer('p'))};"]
            taken = [
                f"if ({self._element(1, self._outer('w'))} == own)",
                f"    {self._added(given)}",
            ]
        elif self.kind == "sum_grad":
            taken = [self._added(given)]
        else:
            taken = [
                *(f"const {index} b{d} = w{d} * {self._stride(d)} - pad{d};" for d in self._axes),
                *self._sizes(wide),
                f"const {type_} given = {given};",
                self._added(f"({self._quotient('given', self._size)})"),
            ]
        return [
            *places, *before, f"{type_} total = 0;", *self._nested(heads, taken),
            f"z[i] = {cudatext.store('total', self.dtype)};",
        ]  # fmt: skip

    # plans

    def plan(
        self,
        images: tuple[int, ...],
        windows: Windows,
        arrays: Sequence[Layout],
        z: Layout,
        limits: DeviceLimits,
    ) -> Plan:
        """Return the Plan. images: the shape of images; z: of windows or images, in C order."""
        if z.size == 0:
            return Plan(())
        of_windows = (*images[: self.first], *windows.counts)
        shapes = [images if kind == "x" else of_windows for kind in KINDS[self.kind]]
        steps = [layouts.steps_of(arrays[k], shapes[k]) for k in self._read]
        fits = layouts.walk(z.shape, [layouts.steps_of(z, z.shape)]).fits_32() and all(
            layouts.walk(shapes[k], [s]).fits_32() for k, s in zip(self._read, steps, strict=True)
        )
        reach = zip(windows.counts, windows.strides, windows.lengths, strict=True)
        wide = not fits or max(c * s + w for c, s, w in reach) >= layouts.LIMIT_32
        numbers = [z.size, *layouts.lengths(z.shape, wide), *(s for own in steps for s in own)]
        lengths = zip(images[self.first :], windows.lengths, windows.pads, windows.counts,
                      windows.strides, strict=True)  # fmt: skip
        for length, window, pad, count, stride in lengths:
            numbers += [length, window, pad, count, *layouts.lengths((1, stride), wide)]
        of = (*(Array("in", k) for k in self._read), Array("out"))
        grid = grid_of(z.size, limits)
        return Plan((Launch(self.kernel[wide], grid, (THREADS, 1), of, tuple(numbers)),))
