"""Kernels of numbers that say where: in a sorted vector, among choices, in a flattened array."""

from __future__ import annotations

import numpy as np

from opwise.gpu.kernels import cudatext, layouts, views
from opwise.gpu.kernels.cudatext import c_type, for_each, held, index_type, position, stored
from opwise.gpu.kernels.kernel import (
    THREADS,
    Array,
    Launch,
    Plan,
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
    """Return the lines for a number r below 0 or not below n: brought into range, or told of."""
    lines = {
        "wrap": [f"{r} %= {n};", f"{r} += {r} < 0 ? {n} : 0;"],
        "clip": [f"{r} = {r} < 0 ? 0 : {n} - 1;"],
        "raise": ["ow_complain(wrong, i);", "continue;"],
    }[mode]
    return with_head(f"if ({r} < 0 || {r} >= {n})", in_braces(lines))


class Elements:
    """Arrays of ``ndim`` dimensions that repeat to the shape of the output, and its elements in C
    order; ``count`` arrays beside the output."""

    def __init__(self, ndim, count):
        self.ndim, self.count = ndim, count

    def at(self, k):
        """Return the expression of the place in array k."""
        return " + ".join(f"j{d} * s{k}_{d}" for d in range(self.ndim)) or "0"

    def each(self, wide, lines):
        """Return the lines that do ``lines`` for each element, number i at position j."""
        return for_each(wide, [*position("i", "j", self.ndim, "n", wide), *lines])

    def parameters(self, wide):
        index = index_type(wide)
        steps = [(index, f"s{k}_{d}") for k in range(self.count) for d in range(self.ndim)]
        return [(index, "n"), *cudatext.lengths("n", self.ndim, wide), *steps]

    def numbers(self, shape, given):
        """Return (whether indices need 64 bits, the numbers of ``parameters``) for layouts."""
        steps = [layouts.steps_of(views.padded(x, self.ndim), shape) for x in given]
        walk = layouts.walk(shape, steps, reorder=False)
        wide = not walk.fits_32()
        lengths, steps = walk.padded(self.ndim)
        return wide, (walk.size, *layouts.lengths(lengths, wide), *layouts.by_array(steps))


def _needs(dtypes_, complains=False):
    half = ["half"] if "float16" in dtypes_ else []
    return cudatext.support(*(["complain"] if complains else []), *half)


class _ByElement:
    """A kernel that finds each element of the output by itself; ``_text`` writes it.

    dtypes: those that it reads and writes; elements: what it goes through.
    """

    def __init__(self, dtypes_, elements):
        self.dtypes, self.elements = dtypes_, elements
        self.kernel = {wide: self._text(wide) for wide in (False, True)}

    @property
    def kernels(self):
        return tuple(self.kernel.values())

    def _text(self, wide):
        """Return the kernel whose indices have 32 bits, or 64."""
        raise NotImplementedError

    def _plan(self, wide, arrays, own, numbers, limits):
        """Return the Plan of one launch; numbers: those of the elements, behind the own ones."""
        grid, given = grid_of(numbers[0], limits), (*own, *numbers)
        return Plan((Launch(self.kernel[wide], grid, (THREADS, 1), tuple(arrays), given),))


class SortedSearch(_ByElement):
    """Where elements of v belong in a sorted vector x; NaN is behind all numbers, as in numpy.

    dtypes: of x and v, and of what sorts x if it is not sorted; side: 'left' or 'right'.
    """

    def __init__(self, dtypes_, ndim, side):
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

    def shapes(self, inputs):
        x, v, *sorter = inputs
        if sorter and sorter[0].shape != x.shape:
            raise ValueError("sorter.size must equal a.size")
        return [v.shape]

    def plan(self, inputs, outputs, limits):
        """Return the Plan for (x, v) or (x, v, sorter); the output is contiguous."""
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
    """The element of the choice that a number names, for each number of an array.

    dtypes: of the numbers, the choices and the output. mode: 'raise', 'wrap' or 'clip'. stacked:
    the choices lie in one array, along its first dimension.
    """

    def __init__(self, dtypes_, ndim, mode, stacked):
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

    def shapes(self, inputs):
        number, *choices = inputs
        shapes = [c.shape for c in choices]
        if self.stacked:
            length, *shape = shapes[0]
            if length == 0:
                raise ValueError("0-length sequence.")
            shapes = [tuple(shape)] * length
        return [np.broadcast_shapes(*shapes, number.shape)]

    def plan(self, inputs, outputs, limits):
        """Return the Plan for (numbers, choices...); the output is contiguous."""
        if outputs[0].size == 0:
            return Plan(())
        number, *choices = inputs
        own = ()
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


class Ravel(_ByElement):
    """Positions along each dimension of an array as ones in it flattened.

    dtypes: of the positions along each dimension. mode: 'raise', 'wrap' or 'clip'; order: 'C' or
    'F'.
    """

    def __init__(self, dtypes_, ndim, mode, order):
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

    def shapes(self, inputs):
        *indices, lengths = inputs
        try:
            shape = np.broadcast_shapes(*(index.shape for index in indices))
        except ValueError:
            raise ValueError(
                "operands could not be broadcast together with shapes "
                + numpy_shapes(index.shape for index in indices)
            ) from None
        # what numpy says of the lengths
        some = np.zeros(0 if 0 in shape else 1, np.int64)
        np.ravel_multi_index((some,) * len(indices), lengths, mode="clip", order=self.order)
        return [shape]

    def plan(self, inputs, outputs, limits):
        """Return the Plan for (indices..., lengths); the output is contiguous."""
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
        """Return how far neighbours along each dimension lie apart."""
        rows, step = [], 1
        for n in lengths if self.order == "F" else reversed(lengths):
            rows.append(step)
            step *= n
        return rows if self.order == "F" else rows[::-1]
