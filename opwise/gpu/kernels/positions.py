"""Kernels of searchsorted, choose and ravel_multi_index: one element of the output a thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from opwise.gpu.kernels import cudatext, layouts, views
from opwise.gpu.kernels.cudatext import c_type, for_each, held, index_type, position, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    DeviceLimits,
    ForBothWidths,
    Launch,
    Layout,
    Plan,
    PlanInput,
    grid_of,
    in_braces,
    make_kernel,
    with_head,
)
from opwise.gpu.kernels.shapes import numpy_shapes
from opwise.scalar import csource, dtypes


def _load(name, place, dtype, to):
    """Return the expression of an element, converted to another dtype."""
    return csource.convert(cudatext.load(f"{name}[{place}]", dtype), held(dtype), held(to))


def _within(r, n, mode):
    """Return the lines for a number r that is not in 0 to n-1: wrap it, clip it or report it."""
    lines = {
        "wrap": [f"{r} %= {n};", f"{r} += {r} < 0 ? {n} : 0;"],
        "clip": [f"{r} = {r} < 0 ? 0 : {n} - 1;"],
        "raise": ["ow_complain(wrong, i);", "continue;"],
    }[mode]
    return with_head(f"if ({r} < 0 || {r} >= {n})", in_braces(lines))


class Elements:
    """The elements of the output in C order, and of arrays that are broadcast to its shape."""

    def __init__(self, ndim: int, count: int) -> None:
        """ndim: dimensions of the output; count: how many arrays there are besides."""
        self.ndim, self.count = ndim, count

    def at(self, k):
        """Return the expression of the offset in array k."""
        return " + ".join(f"j{d} * s{k}_{d}" for d in range(self.ndim)) or "0"

    def each(self, wide, lines):
        """Return the loop of ``lines`` over the elements; element i has indices j0, j1, ..."""
        return for_each(wide, [*position("i", "j", self.ndim, "n", wide), *lines])

    def parameters(self, wide):
        index = index_type(wide)
        steps = [(index, f"s{k}_{d}") for k in range(self.count) for d in range(self.ndim)]
        return [(index, "n"), *cudatext.lengths("n", self.ndim, wide), *steps]

    def numbers(self, shape, given):
        """Return (whether indices need 64 bits, the numbers of ``parameters``) for some layouts."""
        steps = [layouts.steps_of(views.padded(x, self.ndim), shape) for x in given]
        walk = layouts.walk(shape, steps, reorder=False)
        wide = not walk.fits_32()
        lengths, padded = walk.padded(self.ndim)
        return wide, (walk.size, *layouts.lengths(lengths, wide), *layouts.by_array(padded))


def _needs(dtypes_, reports=False):
    half = ["half"] if "float16" in dtypes_ else []
    return cudatext.support(*(["complain"] if reports else []), *half)


class _ByElement(ForBothWidths):
    """A kernel that computes each element of the output by itself; ``_text`` writes it."""

    def __init__(self, dtypes_: Sequence[str], elements: Elements) -> None:
        """dtypes_: those that it reads and writes."""
        self.dtypes, self.elements = dtypes_, elements

    def _plan(self, wide, arrays, own, numbers, limits):
        """Return the Plan of one launch.

        own: the kernel's own numbers, which come first; numbers: those of ``Elements``.
        """
        grid, given = grid_of(numbers[0], limits), (*own, *numbers)
        return Plan((Launch(self.kernel[wide], grid, (THREADS, 1), tuple(arrays), given),))


class SortedSearch(_ByElement):
    """The position of each element of v in a sorted vector x; NaN sorts last, as in numpy."""

    def __init__(self, dtypes_: Sequence[str], ndim: int, side: str) -> None:
        """dtypes_: of x, v, and of the indices that sort x, if any. side: 'left' or 'right'."""
        self.side = side
        super().__init__(dtypes_, Elements(ndim, 1))

    def _text(self, wide):
        x, v, *sorter = self.dtypes
        common = np.result_type(x, v).name
        type_ = c_type(common)
        less = "{0} < {1}"
        if common in dtypes.FLOATS:
            less = "{0} < {1} || ({1} != {1} && {0} == {0})"
        goes_before = {"left": less.format("other", "own"),
                       "right": f"!({less.format('own', 'other')})"}[self.side]  # fmt: skip
        place = ["const ow_i64 at = middle;"]
        if sorter:
            place = [
                "const ow_i64 at = (ow_i64)sorter[middle * sorter_step];",
                "if (at < 0 || at >= length) {",
                "    ow_complain(wrong, i);",
                "    break;",
                "}",
            ]
        body = self.elements.each(wide, [
            f"const {type_} own = {_load('v', self.elements.at(0), v, common)};",
            "ow_i64 low = 0, high = length;",
            "while (low < high) {",
            "    const ow_i64 middle = low + (high - low) / 2;",
            *(f"    {line}" for line in place),
            f"    const {type_} other = {_load('x', 'at * step', x, common)};",
            f"    if ({goes_before})",
            "        low = middle + 1;",
            "    else",
            "        high = middle;",
            "}",
            "z[i] = low;",
        ])  # fmt: skip
        parameters = [
            (f"const {stored(x)} *", "x"), (f"const {stored(v)} *", "v"),
            *([(f"const {stored(sorter[0])} *", "sorter"), ("ow_u32 *", "wrong")] if sorter else
              []),
            ("ow_i64 *", "z"), ("ow_i64", "length"), ("ow_i64", "step"),
            *([("ow_i64", "sorter_step")] if sorter else []), *self.elements.parameters(wide),
        ]  # fmt: skip
        needs = _needs(self.dtypes, bool(sorter))
        return make_kernel(f"search_{self.side}", parameters, body, needs, wide=wide)

    def shapes(self, inputs: list[PlanInput]) -> list[tuple[int, ...]]:
        x, v, *sorter = inputs
        if sorter and sorter[0].shape != x.shape:
            raise ValueError("sorter.size must equal a.size")
        return [v.shape]

    def plan(self, inputs: list[PlanInput], outputs: list[Layout], limits: DeviceLimits) -> Plan:
        """Return the Plan for (x, v) or (x, v, sorter)."""
        if outputs[0].size == 0:
            return Plan(())
        x, v, *sorter = inputs
        steps = [layouts.steps_of(vector, vector.shape)[0] for vector in (x, *sorter)]
        wide, numbers = self.elements.numbers(outputs[0].shape, [v])
        arrays = [Array("in", 0), Array("in", 1)]
        if sorter:
            arrays += [Array("in", 2), Array("error_flag")]
        arrays.append(Array("out"))
        return self._plan(wide, arrays, (x.shape[0], *steps), numbers, limits)


class Choice(_ByElement):
    """The element of the chosen array, for each number of an array."""

    def __init__(self, dtypes_: Sequence[str], ndim: int, mode: str, stacked: bool) -> None:
        """dtypes_: of the numbers, the choices and the output. mode: 'raise', 'wrap' or 'clip'.

        stacked: whether the choices lie in one array, along its first dimension.
        """
        self.mode, self.stacked = mode, stacked
        super().__init__(dtypes_, Elements(ndim, len(dtypes_) - 1))

    def _text(self, wide):
        number, *choices, out = self.dtypes
        at = self.elements.at
        count = "length" if self.stacked else str(len(choices))
        if self.stacked:
            place = f"chosen * row + {at(1)}"
            value = [f"const {c_type(out)} value = {_load('c0', place, choices[0], out)};"]
        else:
            value = [f"{c_type(out)} value;", "switch (chosen) {"]
            for k, dtype in enumerate(choices):
                case = f"case {k}" if k + 1 < len(choices) else "default"
                loaded = _load(f"c{k}", at(k + 1), dtype, out)
                value += [f"{case}:", f"    value = {loaded};", "    break;"]
            value.append("}")
        body = self.elements.each(wide, [
            f"ow_i64 chosen = (ow_i64)number[{at(0)}];",
            *_within("chosen", count, self.mode),
            *value,
            f"z[i] = {cudatext.store('value', out)};",
        ])  # fmt: skip
        parameters = [
            (f"const {stored(number)} *", "number"),
            *((f"const {stored(d)} *", f"c{k}") for k, d in enumerate(choices)),
            (f"{stored(out)} *", "z"), *([("ow_u32 *", "wrong")] if self.mode == "raise" else []),
            *([("ow_i64", "length"), ("ow_i64", "row")] if self.stacked else []),
            *self.elements.parameters(wide),
        ]  # fmt: skip
        needs = _needs(self.dtypes, self.mode == "raise")
        return make_kernel("choose", parameters, body, needs, wide=wide)

    def shapes(self, inputs: list[PlanInput]) -> list[tuple[int, ...]]:
        number, *choices = inputs
        shapes = [c.shape for c in choices]
        if self.stacked:
            length, *shape = shapes[0]
            if length == 0:
                raise ValueError("0-length sequence.")
            shapes = [tuple(shape)] * length
        return [np.broadcast_shapes(*shapes, number.shape)]

    def plan(self, inputs: list[PlanInput], outputs: list[Layout], limits: DeviceLimits) -> Plan:
        """Return the Plan for (numbers, choices...)."""
        if outputs[0].size == 0:
            return Plan(())
        number, *choices = inputs
        own: tuple[int, ...] = ()
        if self.stacked:
            (c,) = choices
            (row, *_) = layouts.steps_of(c, c.shape)
            own = (c.shape[0], row)
            choices = [c._replace(shape=c.shape[1:], strides=c.strides[1:])]
        wide, numbers = self.elements.numbers(outputs[0].shape, [number, *choices])
        arrays = [Array("in", i) for i in range(len(inputs))] + [Array("out")]
        if self.mode == "raise":
            arrays.append(Array("error_flag"))
        return self._plan(wide, arrays, own, numbers, limits)


#: the order of elements in a flattened array
Order = Literal["C", "F"]


class Ravel(_ByElement):
    """The indices along each dimension of an array, as indices into the flattened array."""

    def __init__(self, dtypes_: Sequence[str], ndim: int, mode: str, order: Order) -> None:
        """dtypes_: of the indices along each dimension. mode: 'raise', 'wrap' or 'clip'.

        order: 'C' or 'F'.
        """
        self.mode, self.order = mode, order
        super().__init__(dtypes_, Elements(ndim, len(dtypes_)))

    def _text(self, wide):
        every = range(len(self.dtypes))
        lines = []
        for k in every:
            lines.append(f"ow_i64 r{k} = (ow_i64)index{k}[{self.elements.at(k)}];")
            lines += _within(f"r{k}", f"length{k}", self.mode)
        lines.append(f"z[i] = {' + '.join(f'r{k} * row{k}' for k in every)};")
        parameters = [
            *((f"const {stored(d)} *", f"index{k}") for k, d in enumerate(self.dtypes)),
            ("ow_i64 *", "z"), *([("ow_u32 *", "wrong")] if self.mode == "raise" else []),
            *(("ow_i64", f"{name}{k}") for name in ("length", "row") for k in every),
            *self.elements.parameters(wide),
        ]  # fmt: skip
        needs = _needs((), self.mode == "raise")
        return make_kernel("ravel", parameters, self.elements.each(wide, lines), needs, wide=wide)

    def shapes(self, inputs: list[PlanInput]) -> list[tuple[int, ...]]:
        *indices, lengths = inputs
        try:
            shape = np.broadcast_shapes(*(index.shape for index in indices))
        except ValueError:
            raise ValueError(
                "operands could not be broadcast together with shapes "
                + numpy_shapes(index.shape for index in indices)
            ) from None
        # raises numpy's errors about the lengths
        some = np.zeros(0 if 0 in shape else 1, np.int64)
        np.ravel_multi_index((some,) * len(indices), lengths, mode="clip", order=self.order)
        return [shape]

    def plan(self, inputs: list[PlanInput], outputs: list[Layout], limits: DeviceLimits) -> Plan:
        """Return the Plan for (indices..., lengths)."""
        if outputs[0].size == 0:
            return Plan(())
        *indices, lengths = inputs
        wide, numbers = self.elements.numbers(outputs[0].shape, indices)
        arrays = [Array("in", i) for i in range(len(indices))] + [Array("out")]
        if self.mode == "raise":
            arrays.append(Array("error_flag"))
        own = (*lengths, *self._rows(lengths))
        return self._plan(wide, arrays, own, numbers, limits)

    def _rows(self, lengths):
        """Return the steps along each dimension, in elements."""
        rows, step = [], 1
        for n in lengths if self.order == "F" else reversed(lengths):
            rows.append(step)
            step *= n
        return rows if self.order == "F" else rows[::-1]
