"""Kernels of indexing by several arrays: elements gathered, set or added to.

Additions are made in the order of the indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.gpu.kernels import cudatext, layouts, views
from opwise.gpu.kernels.cudatext import for_each, index_type, position, stored
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
from opwise.gpu.kernels.layouts import Walk
from opwise.gpu.kernels.row_indexing import RowScatter, unit_of
from opwise.gpu.kernels.shapes import check_broadcast, numpy_shape, numpy_shapes

#: of an item: "new" for None, "slice", or (dtype, ndim) of an array of integers
Kind = str | tuple[str, int]


class Items:
    """What is known of the index in ``x[items]`` before lengths are known.

    Slices and new axes alone would leave a *part* of x, with one dimension for each array besides.
    The arrays are broadcast together; the resulting shape is called *places*. In the result, places
    replace the dimensions of the arrays if these are adjacent, and come first otherwise.
    """

    def __init__(self, kinds: Sequence[Kind], first: int, ndim: int) -> None:
        """first: position of the first item among the inputs. ndim: dimensions of x."""
        self.kinds, self.first = kinds, first
        #: positions of the inputs that are not arrays
        self.host = tuple(first + k for k, kind in enumerate(kinds) if isinstance(kind, str))
        of_arrays = {k: kind for k, kind in enumerate(kinds) if not isinstance(kind, str)}
        here = list(of_arrays)
        #: positions of the inputs that are arrays
        self.arrays = tuple(first + k for k in here)
        self.dtypes = [dtype for dtype, _ in of_arrays.values()]
        #: dimensions of each array
        self.ndims = [ndim for _, ndim in of_arrays.values()]
        #: dimensions of the places
        self.ndim = max(self.ndims, default=0)
        #: the axis of x that each array indexes
        self.axes = [k - kinds[:k].count("new") for k in here]
        all_ = range(ndim + kinds.count("new"))
        #: dimensions of the part that arrays index
        self.indexed = here
        adjacent = here == list(range(here[0], here[-1] + 1)) if here else False
        #: other dimensions of the part that come before the places, and behind them
        self.before = [d for d in all_ if adjacent and d < here[0]]
        self.after = [d for d in all_ if d not in (*here, *self.before)]

    @property
    def rest(self) -> int:
        """How many dimensions of the part no array indexes."""
        return len(self.before) + len(self.after)

    def part(self, layout: Layout, inputs: Sequence[PlanInput]) -> tuple[Layout, int]:
        """Return (layout, offset in bytes) of the part of an array with the layout of x."""
        index = tuple(
            None if kind == "new" else slice(*inputs[self.first + k]) if kind == "slice" else
            slice(None)
            for k, kind in enumerate(self.kinds)
        )  # fmt: skip
        return views.viewed(layout, lambda whole: whole[(*index, ...)])

    def places(self, inputs):
        """Return the shape of the places; raise numpy's IndexError if the arrays do not broadcast.

        inputs: layouts or arrays.
        """
        shapes = [inputs[i].shape for i in self.arrays]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            raise IndexError(
                "shape mismatch: indexing arrays could not be broadcast together with shapes "
                + numpy_shapes(shape for shape in shapes if shape)
            ) from None

    def shape(self, part, places):
        """Return the shape of the result."""
        return (
            *(part.shape[d] for d in self.before), *places, *(part.shape[d] for d in self.after)
        )  # fmt: skip

    def steps(self, inputs, places):
        """Return the steps of each array along the places."""
        return [layouts.steps_of(views.padded(inputs[i], self.ndim), places) for i in self.arrays]

    def numbers(self, part, unit):
        """Return the numbers of ``parameters``; steps are in units of ``unit`` bytes."""
        return (
            *(part.shape[d] for d in self.indexed),
            *(_stride(part, d) // unit for d in self.indexed),
        )

    def wrong(self, position: int, inputs: list[Any]) -> Exception:
        """Return the error for the first index that is out of range; inputs: numpy arrays."""
        shape, empty = inputs[0].shape, 0 in self.places(inputs)
        found = list(zip(self.arrays, self.axes, self.ndims, strict=True))
        # numpy checks integers first, and arrays only if there are any places
        found.sort(key=lambda item: item[2] > 0)
        for i, axis, ndim in found:
            n, index = shape[axis], np.asarray(inputs[i]).astype(np.int64)
            bad = index[(index < -n) | (index >= n)]
            if bad.size and not (ndim and empty):
                return IndexError(f"index {bad[0]} is out of bounds for axis {axis} with size {n}")
        return IndexError(f"an index is out of bounds for an array of shape {shape}")

    # --- texts ------------------------------------------------------------------------------------

    def pointers(self):
        """Return the parameters of the arrays."""
        return [(f"const {stored(dtype)} *", f"index{k}") for k, dtype in enumerate(self.dtypes)]

    def parameters(self):
        """Return the parameters for the lengths and steps of the indexed dimensions."""
        names = [f"{name}{k}" for name in ("length", "row") for k in range(len(self.dtypes))]
        return [("ow_i64", name) for name in names]

    def walked(self, wide):
        """Return the parameters for the steps of arrays that have dimensions."""
        return [
            (index_type(wide), f"i{k}_{b}")
            for k, ndim in enumerate(self.ndims)
            if ndim
            for b in range(self.ndim)
        ]

    def walks(self):
        """Return the positions in ``arrays`` of those that have dimensions."""
        return [k for k, ndim in enumerate(self.ndims) if ndim]

    def found(self, k, first=0):
        """Return the lines that compute r{k}, the index in array k, counted from the start.

        first: the first of the indices j that belongs to the places.
        """
        terms = [f"j{first + b} * i{k}_{b}" for b in range(self.ndim)] if self.ndims[k] else []
        return [
            f"ow_i64 r{k} = (ow_i64)index{k}[{' + '.join(terms) or '0'}];",
            f"r{k} = r{k} < 0 ? r{k} + length{k} : r{k};",
        ]

    def all_found(self, first=0):
        return [line for k in range(len(self.dtypes)) for line in self.found(k, first)]

    def outside(self, among):
        """Return the test whether an index of some arrays (``among``) is out of range."""
        return " || ".join(f"r{k} < 0 || r{k} >= length{k}" for k in among)

    def place(self):
        """Return the terms of the offset of the element that the indices name."""
        return [f"r{k} * row{k}" for k in range(len(self.dtypes))]


def _stride(layout, d):
    """Return the stride of a dimension in bytes; 0 if its length is 1."""
    return layout.strides[d] if layout.shape[d] > 1 else 0


class BoundsCheck:
    """Reports indices that are out of range when the result is empty: no other kernel runs then."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self.kernel: dict[bool, Kernel] = {}
        if items.arrays:
            self.kernel = {wide: self._text(wide) for wide in (False, True)}

    def _text(self, wide):
        items, many = self.items, self.items.walks()
        numbers = [k for k in range(len(items.dtypes)) if k not in many]

        def report(among):
            if not among:
                return []
            lines = [line for k in among for line in items.found(k)]
            return [*lines, f"if ({items.outside(among)})", "    ow_complain(wrong, i);"]

        # integers are checked even if there are no places
        body = for_each(wide, [
            *report(numbers),
            "if (i >= places)",
            "    continue;",
            *position("i", "j", items.ndim, "n", wide),
            *report(many),
        ])  # fmt: skip
        index = index_type(wide)
        parameters = [
            *items.pointers(), ("ow_u32 *", "wrong"), (index, "n"), (index, "places"),
            *items.parameters()[: len(items.dtypes)],
            *cudatext.lengths("n", items.ndim, wide), *items.walked(wide),
        ]  # fmt: skip
        return make_kernel("check", parameters, body, cudatext.support("complain"), wide=wide)

    def plan(self, inputs, part, places, limits):
        """Return the Plan, with no launch if there is nothing to check."""
        items = self.items
        size = math.prod(places)
        if not items.arrays or (not size and len(items.walks()) == len(items.arrays)):
            return Plan(())
        steps = items.steps(inputs, places)
        walk = layouts.walk(places, steps, reorder=False)
        wide = not walk.fits_32()
        lengths, steps = walk.padded(items.ndim)
        numbers = (
            max(size, 1), size, *(part.shape[d] for d in items.indexed),
            *layouts.lengths(lengths, wide), *_walked(items, steps),
        )  # fmt: skip
        arrays = (*(Array("in", i) for i in items.arrays), Array("error_flag"))
        grid = grid_of(size, limits)
        return Plan((Launch(self.kernel[wide], grid, (THREADS, 1), arrays, numbers),))


def _walked(items, steps):
    """Return the numbers of ``Items.walked``; steps: those of each array, by dimension."""
    columns = list(zip(*steps, strict=True))
    return tuple(s for k in items.walks() for s in columns[k]) if columns else ()


class ElementGather:
    """``x[items]``: its kernels and plans. They copy elements of a size, whatever the dtype."""

    def __init__(self, items: Items, itemsize: int) -> None:
        self.items, self.itemsize = items, itemsize
        both = (False, True)
        self.runs = {wide: self._text(16, wide, run=True) for wide in both} if items.after else {}
        self.general = {wide: self._text(itemsize, wide) for wide in both}
        self.check = BoundsCheck(items)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        found = (*self.runs.values(), *self.general.values(), *self.check.kernel.values())
        return tuple(dict.fromkeys(found))

    def _text(self, size, wide, run=False):
        """Return the kernel for units of ``size`` bytes.

        run: the dimensions behind the places are one run of units.
        """
        items = self.items
        before, after = len(items.before), 1 if run else len(items.after)
        ndim = before + items.ndim + after
        others = [*range(before), *range(before + items.ndim, ndim)]
        terms = [f"j{d} * s{d}" for d in others]
        stepped = others
        if run:
            terms[-1], stepped = f"j{ndim - 1}", others[:-1]
        unit, needs = unit_of(size)
        index = index_type(wide)
        every = range(len(items.dtypes))
        report = [
            f"if ({items.outside(every)}) {{",
            "    ow_complain(wrong, i);",
            "    continue;",
            "}",
        ]
        body = for_each(wide, [
            *position("i", "j", ndim, "n", wide),
            *items.all_found(before),
            *(report if every else []),
            f"z[i] = x[{' + '.join([*items.place(), *terms]) or '0'}];",
        ])  # fmt: skip
        wrong = [("ow_u32 *", "wrong")] if every else []
        parameters = [
            (f"const {unit} *", "x"), *items.pointers(), (f"{unit} *", "z"), *wrong,
            (index, "n"), *items.parameters(), *cudatext.lengths("n", ndim, wide),
            *((index, f"s{d}") for d in stepped), *items.walked(wide),
        ]  # fmt: skip
        needs = tuple(dict.fromkeys((*needs, *cudatext.support(*(["complain"] if every else [])))))
        return make_kernel("pick", parameters, body, needs, wide=wide)

    def shapes(self, inputs: Sequence[PlanInput]) -> list[tuple[int, ...]]:
        part, _ = self.items.part(inputs[0], inputs)
        return [self.items.shape(part, self.items.places(inputs))]

    def plan(
        self, inputs: Sequence[PlanInput], outputs: Sequence[Layout], limits: DeviceLimits
    ) -> Plan:
        """Return the Plan for (x, items...)."""
        items, (z,) = self.items, outputs
        part, offset = items.part(inputs[0], inputs)
        places = items.places(inputs)
        if z.size == 0:
            return self.check.plan(inputs, part, places, limits)
        before, after = (self._walk(part, dims) for dims in (items.before, items.after))
        in_units = self._in_units(part, z, before, after)
        unit = 16 if in_units else self.itemsize
        if in_units:
            n = after.size * self.itemsize // 16
            before = _scaled(before, 16 // self.itemsize)
            after = Walk((n,), ((1,) + (0,) * len(items.arrays),), after.arrays)
        of_places = layouts.walk(
            places, [(0,) * items.ndim, *items.steps(inputs, places)], reorder=False
        )
        groups = [
            before.padded(len(items.before)), of_places.padded(items.ndim),
            after.padded(1 if in_units else len(items.after)),
        ]  # fmt: skip
        whole = Walk(
            tuple(n for shape, _ in groups for n in shape),
            tuple(s for _, steps in groups for s in steps), after.arrays,
        )  # fmt: skip
        wide = not whole.fits_32()
        others = [*groups[0][1], *([] if in_units else groups[2][1])]
        numbers = (
            whole.size, *items.numbers(part, unit), *layouts.lengths(whole.shape, wide),
            *(column[0] for column in others),
            *_walked(items, [column[1:] for column in groups[1][1]]),
        )  # fmt: skip
        arrays = (
            Array("in", 0, offset), *(Array("in", i) for i in items.arrays), Array("out"),
            *([Array("error_flag")] if items.arrays else []),
        )  # fmt: skip
        kernel = (self.runs if in_units else self.general)[wide]
        grid = grid_of(whole.size, limits)
        return Plan((Launch(kernel, grid, (THREADS, 1), arrays, numbers),))

    def _walk(self, part, dims):
        """Return the Walk over dimensions of the part, along which arrays have step 0."""
        shape = tuple(part.shape[d] for d in dims)
        own = layouts.steps_of(
            part._replace(shape=shape, strides=tuple(part.strides[d] for d in dims)), shape
        )
        broadcast = [(0,) * len(dims)] * len(self.items.arrays)
        return layouts.walk(shape, [own, *broadcast], reorder=False)

    def _in_units(self, part, z, before, after):
        """Return whether the dimensions behind the places are runs of units of 16 bytes."""
        run = not after.shape or (len(after.shape) == 1 and after.steps[0][0] == 1)
        steps = [_stride(part, d) for d in self.items.indexed]
        steps += [column[0] * self.itemsize for column in before.steps]
        return bool(
            run
            and self.runs
            and after.size * self.itemsize % 16 == 0
            and min(part.alignment, z.alignment) == 16
            and all(step % 16 == 0 for step in steps)
        )


def _scaled(walk, by):
    """Return a walk with steps in units of ``by`` elements."""
    return walk._replace(steps=tuple(tuple(s // by for s in column) for column in walk.steps))


class ElementScatter(RowScatter):
    """``x[items] = y`` or ``x[items] += y``: its kernels and plans.

    It scatters rows: the row of a place is the offset of its element from the lowest one, divided
    by the largest step that divides all offsets.
    """

    def __init__(self, dtypes: tuple[str, str], items: Items, adds: bool) -> None:
        """dtypes: of x and y. adds: add y to the elements."""
        self.items = items
        super().__init__((*dtypes, "int64"), items.rest, adds, places=max(1, items.ndim))
        self.rows = {wide: self._rows(wide) for wide in (False, True)}
        self.check = BoundsCheck(items)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (*self.rows.values(), *super().kernels, *self.check.kernel.values())

    def _rows(self, wide):
        """Return the kernel that computes rows. A bad index has the row after the last."""
        items, index = self.items, index_type(wide)
        found = [f"rows[i] = {' + '.join(['lowest', *items.place()])};"]
        if items.arrays:
            outside = items.outside(range(len(items.dtypes)))
            found = [f"if ({outside})", "    rows[i] = end;", "else", f"    {found[0]}"]
        body = for_each(wide, [
            *position("i", "j", items.ndim, "n", wide), *items.all_found(), *found,
        ])  # fmt: skip
        parameters = [
            *items.pointers(), ("ow_i64 *", "rows"), (index, "n"), ("ow_i64", "lowest"),
            ("ow_i64", "end"), *items.parameters(), *cudatext.lengths("n", items.ndim, wide),
            *items.walked(wide),
        ]  # fmt: skip
        return make_kernel("rows", parameters, body, cudatext.support(), wide=wide)

    def shapes(self, inputs: Sequence[PlanInput]) -> list[tuple[int, ...]]:
        """Return the shape of the output; raise numpy's ValueError if y does not fit."""
        x, y = inputs[:2]
        part, _ = self.items.part(x, inputs)
        to = self.items.shape(part, self.items.places(inputs))
        shape = y.shape
        if not self.adds:  # numpy sets from arrays with more dimensions if these have length 1
            while len(shape) > len(to) and shape[0] == 1:
                shape = shape[1:]
        try:
            check_broadcast(shape, to)
        except ValueError:
            raise ValueError(
                "array is not broadcastable to correct shape" if self.adds else
                f"shape mismatch: value array of shape {numpy_shape(y.shape)} could not be "
                f"broadcast to indexing result of shape {numpy_shape(to)}"
            ) from None  # fmt: skip
        return [x.shape]

    def plan(
        self, inputs: Sequence[PlanInput], outputs: Sequence[Layout], limits: DeviceLimits
    ) -> Plan:
        """Return the Plan for (x, y, items...); the output already holds a copy of x."""
        items, y, (z,) = self.items, inputs[1], outputs
        part, offset = items.part(z, inputs)
        places = items.places(inputs)
        to = items.shape(part, places)
        if math.prod(to) == 0:
            return self.check.plan(inputs, part, places, limits)
        y_steps = layouts.steps_of(with_ndim(y, len(to)), to)
        before, many = len(items.before), len(places)
        others = [*items.before, *items.after]
        rest = layouts.walk(
            tuple(part.shape[d] for d in others),
            [
                tuple(_stride(part, d) // part.itemsize for d in others),
                (*y_steps[:before], *y_steps[before + many :]),
            ],
            reorder=False,
        )
        of_y = layouts.walk(places, [y_steps[before : before + many]], reorder=False)
        count = math.prod(places)
        common, lowest, end = self._reach(part)
        if max(count, end) >= 2**32 - 1:
            raise ValueError(f"{count} indices of {end} rows are too many for this kernel")
        both = Walk((*of_y.shape, *rest.shape), (*((0, s) for (s,) in of_y.steps), *rest.steps), 2)
        wide = not both.fits_32()
        rows = Array("scratch", 1)
        launches = [self._rows_launch(inputs, part, places, rows, (common, lowest, end), limits)]
        sorting, keys = self._sorted(count, 1, end, limits, rows)
        start = offset - lowest * common * part.itemsize
        numbers = self._numbers(wide, count, rest, of_y, common)
        launch = self._last(wide, keys, Array("out", 0, start), (count, *numbers), limits)
        return Plan((*launches, *sorting, launch), (8 * count, 8 * count))

    def _reach(self, part):
        """Return (elements of a row, the row of the part's first element, how many rows)."""
        steps = [_stride(part, d) // part.itemsize for d in self.items.indexed]
        far = [(part.shape[d] - 1) * s for d, s in zip(self.items.indexed, steps, strict=True)]
        common = math.gcd(*steps) or 1
        lowest = -sum(min(0, f) for f in far) // common
        return common, lowest, lowest + sum(max(0, f) for f in far) // common + 1

    def _rows_launch(self, inputs, part, places, rows, reach, limits):
        items = self.items
        common, lowest, end = reach
        walk = layouts.walk(places, items.steps(inputs, places), reorder=False)
        wide = not walk.fits_32()
        lengths, steps = walk.padded(items.ndim)
        numbers = (
            walk.size, lowest, end, *items.numbers(part, part.itemsize * common),
            *layouts.lengths(lengths, wide), *_walked(items, steps),
        )  # fmt: skip
        arrays = (*(Array("in", i) for i in items.arrays), rows)
        return Launch(self.rows[wide], grid_of(walk.size, limits), (THREADS, 1), arrays, numbers)


def with_ndim(layout: Layout, ndim: int) -> Layout:
    """Return a layout with ``ndim`` dimensions: those added or dropped in front have length 1."""
    surplus = max(0, len(layout.shape) - ndim)
    layout = layout._replace(shape=layout.shape[surplus:], strides=layout.strides[surplus:])
    return views.padded(layout, ndim)
