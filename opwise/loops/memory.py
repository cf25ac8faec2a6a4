"""Arrays of any length in the scalar program of a step: they stay in memory.

``Held`` is a view of an operand of the C function. Elements that a step reads and writes are
instructions; so nothing of an array is copied from step to step, however many loops are around the
step. ``Each`` is an array whose elements are computed where they are read: in a loop that folds
them, or that writes them to an operand. As the VM's kernels compute long rows faster, such loops
are only for operands with ``short`` dimensions, which each call checks.

What one Apply writes, an Apply before it may not read afterwards. Each write makes a new version of
its operand, and what is a view of an earlier one is of no use from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Var
from opwise.loops.program import (
    MAX_ELEMENTS,
    MAX_UNROLLED,
    Builder,
    Each,
    Held,
    NotSmall,
    Overlaps,
    Slots,
    converted,
    element,
    on_memory,
    on_registers,
    whole_range,
)
from opwise.scalar.dtypes import INTEGERS
from opwise.scalar.op import ScalarOp
from opwise.tensor.advanced_subtensor import AdvancedSubtensor1
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import Dot22, Dot22Scalar, Gemm, Gemv
from opwise.tensor.convert import DeepCopyOp, ViewOp
from opwise.tensor.creation import Alloc, ARange
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.gathered import Gathered
from opwise.tensor.join import Join
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import Argmax, CAReduce, MaxAndArgmax
from opwise.tensor.shape import Rebroadcast, Shape, Shape_i
from opwise.tensor.subtensor import IncSubtensor, Subtensor

#: nanoseconds that an element takes at least which is computed once, if it is read more often
COSTLY = 1.0


def settle(p: Builder, pairs: Sequence[tuple[Any, Held]]) -> None:
    """Let operands hold values, which are there already if that can be.

    pairs: (a value, a view of all of the operand that will hold it).
    """
    places = {place.operand for _, place in pairs}
    moved = [
        (value, place) for value, place in pairs
        if not (
            isinstance(value, Held)
            and value == replace(place, version=p.versions[place.operand])
        )
    ]  # fmt: skip
    computed = [value for value, _ in moved if isinstance(value, Each)]

    def reads_another(value: Any) -> bool:
        if isinstance(value, Held):
            return value.operand in places
        return isinstance(value, Each) and value is not computed[-1]

    # one may read what another one overwrites
    moved = [(own(p, value) if reads_another(value) else value, place) for value, place in moved]
    for value, place in sorted(moved, key=lambda pair: not isinstance(pair[0], Each)):
        put(p, value, replace(place, version=p.versions[place.operand]))


def put(p: Builder, value: Any, place: Held) -> None:
    """Append the writing of an array to an operand that has its shape."""
    given, wanted = lengths(p, value), lengths(p, place)
    if len(given) != len(wanted):
        raise NotSmall
    for n, m in zip(given, wanted, strict=True):
        p.check_equal(n, m)  # all steps give the same shape
    fill(p, place, value, same=True)
    p.written(place.operand)


def in_registers(p: Builder, x: Any, shape: Sequence[int]) -> Slots:
    """Return the slots of the elements of an array of a shape."""
    if isinstance(x, np.ndarray):
        if x.shape != tuple(shape):
            raise NotSmall  # an error, which the VM raises
        return x
    given = lengths(p, x)
    if len(given) != len(shape):
        raise NotSmall
    for n, m in zip(given, shape, strict=True):
        p.check_equal(n, p.literal(m))
    found = np.empty(tuple(shape), np.int64)
    for index in np.ndindex(*shape):
        found[index] = element(p, x, [p.literal(i) for i in index])
    return found


def row(p: Builder, x: Any, index: int) -> Any:
    """Return the part of an array at an index of its first dimension, which it has."""
    if isinstance(x, np.ndarray):
        return x[int(p.number(np.array(index)))]
    if isinstance(x, Held):
        return x.at(p, 0, index)
    return replace(
        x, lengths=x.lengths[1:], computed=lambda given: x.computed([index, *given])
    )  # fmt: skip


def in_steps(p: Builder, rows: Any) -> Any:
    """Return a sequence as one that gives its rows at indices known only when it runs."""
    if not isinstance(rows, np.ndarray):
        return rows
    if rows.ndim != 1 or rows.size < 2 or not all(map(p.has_number, rows)):
        raise NotSmall
    numbers = p.number(rows)
    if p.dtype(int(rows[0])) not in INTEGERS or np.ptp(np.diff(numbers)):
        raise NotSmall
    first, step, count = map(p.literal, (numbers[0], numbers[1] - numbers[0], len(rows)))
    return whole_range(p, first, step, count, p.dtype(int(rows[0])))


def lengths(p: Builder, x: Any) -> list[int]:
    """Append the lengths of an array; return their slots."""
    if isinstance(x, np.ndarray):
        return [p.literal(n) for n in x.shape]
    return [x.length(p, d) for d in range(len(x.dims))]


def as_range(p: Builder, x: Held, outside: Var | None) -> Each | None:
    """Return an operand as a range, without reading it; None if it is none of known steps.

    outside: the variable of the operand.
    """
    start, step = progression(outside)
    if start is None or step is None:
        return None
    return whole_range(p, p.literal(start), p.literal(step), p.length(x.operand, 0), x.dtype)


def progression(var: Var | None) -> tuple[int | None, int | None]:
    """Return the first number of a vector of integers that is a range, and its step.

    None stands for what is not known; if it is no range, that is the step.
    """
    if var is None or var.owner is None or var.type.dtype not in INTEGERS:
        return None, None
    apply: Any = var.owner
    first, *others = apply.inputs
    if isinstance(apply.op, ARange):
        start, step = (int(v.data) if isinstance(v, Constant) else None for v in (first, others[1]))
        return start, step
    if isinstance(apply.op, Subtensor):
        entry = next(iter(apply.op.idx_list), slice(None))
        if not isinstance(entry, slice) or entry.step is not None:
            return None, None
        start, step = progression(first)
        return (start if entry.start is None else None), step
    row = apply.op.scalar_op.row if isinstance(apply.op, Elemwise) else None
    if row is None or row.name not in ("add", "sub") or len(others) != 1:
        return None, None
    parts = [
        (int(v.data.ravel()[0]), 0)
        if isinstance(v, Constant) and v.data.size == 1 and v.type.dtype in INTEGERS
        else progression(v)
        for v in apply.inputs
    ]
    if any(step is None for _, step in parts):
        return None, None
    (x, by), (y, and_by) = parts
    sign = 1 if row.name == "add" else -1
    start = None if x is None or y is None else x + sign * y
    return start, cast(int, by) + sign * cast(int, and_by)


def index_slot(p: Builder, value: Any, dtype: str) -> int:
    """Return the slot of an index as int64."""
    if not isinstance(value, np.ndarray) or value.ndim or not dtype.startswith(("int", "uint")):
        raise NotSmall
    return converted(p, int(value), "int64")


def fill(p: Builder, place: Held, value: Any, add: bool = False, same: bool = False) -> None:
    """Append the writing of all elements of a view; value broadcasts, and is added if ``add``.

    same: the value is known to have the shape of the view. A value that may be computed of elements
    that are written before they are read goes to an array of the step first.
    """
    before = p.state()
    try:
        _fill(p, place, value, add, same)
    except Overlaps:
        p.take_back(before)
        _fill(p, place, own(p, value), add, same)


def _fill(p: Builder, place: Held, value: Any, add: bool, same: bool) -> None:
    behind = len(place.dims) - (value.ndim if isinstance(value, np.ndarray) else len(value.dims))
    if behind < 0:
        raise NotSmall
    zero, unit = p.literal(0), p.literal(1)
    #: by dimension of the value, the slot of whether it has one element; None if it is as long
    ones: list[int | None] = []
    counts = lengths(p, place)
    for d, (n, m) in enumerate(zip(lengths(p, value), counts[behind:], strict=True), behind):
        one = None if n == m or same else p.one("eq", n, unit, dtype="bool")
        if one is not None and not p.is_number(n, 1):
            longer = p.one("neq", n, m, dtype="bool")
            p.fail_if(p.one("and_", longer, p.one("invert", one), dtype="bool"))
            if p.has_number(n):
                one = None
        if one is None and p.has_number(n):
            counts[d] = n
        ones.append(one)

    def write(index: Sequence[int]) -> None:
        at = place
        for one in index:
            at = at.at(p, 0, one)
        looped = [at.fixed[d] if place.fixed[d] is None else None for d in range(len(at.fixed))]
        read = [
            i if one is None else p.one("switch", one, zero, i, dtype="int64")
            for one, i in zip(ones, index[behind:], strict=True)
        ]
        p.written_now = place.operand, looped
        try:
            slot = converted(p, element(p, value, read), place.dtype)
        finally:
            p.written_now = None
        at.write(p, p.one("add", at.element(p), slot, dtype=place.dtype) if add else slot)

    over(p, counts, write, MAX_ELEMENTS if isinstance(value, np.ndarray) else MAX_UNROLLED)


def over(
    p: Builder,
    counts: Sequence[int],
    body: Callable[[Sequence[int]], Any],
    most: int = MAX_UNROLLED,
) -> None:
    """Append loops over all indices of an array, or so many at most one after the other."""

    def nested(index: list[int]) -> None:
        if len(index) == len(counts):
            body(index)
            return
        count = counts[len(index)]
        if (few := _few(p, count, most)) is None:
            with p.short_loop(count) as i:
                nested([*index, i])
        for i in few or ():
            nested([*index, i])

    nested([])


def _few(p: Builder, count: int, most: int) -> list[int] | None:
    """Return slots of all indices if these are known and so many at most."""
    if not p.is_less(count, most + 1):
        return None
    return [p.literal(i) for i in range(int(p.number(np.array(count))))]


def folded(
    p: Builder,
    counts: Sequence[int],
    first: int,
    join: Callable[[int, Sequence[int]], int],
    is_sum: bool = False,
) -> int:
    """Append loops that carry a value on; return its slot.

    join: appends the new value of a step, from the old one and the indices. is_sum: it adds one
    number to it, in any order.
    """

    def nested(total: int, index: list[int]) -> int:
        if len(index) == len(counts):
            return join(total, index)
        count = counts[len(index)]
        if (few := _few(p, count, MAX_UNROLLED)) is not None:
            for i in few:
                total = nested(total, [*index, i])
            return total
        with p.short_loop(count, total, is_sum=is_sum) as (i, carried, new):
            new.append(nested(carried, [*index, i]))
        return int(carried)

    return nested(first, [])


# --- Applys ---------------------------------------------------------------------------------------


@on_memory(DimShuffle)
def _moved(p: Builder, node: Apply, x: Any) -> Any:
    order = node.op.new_order
    if isinstance(x, Each):
        zero, one = p.literal(0), p.literal(1)
        moved = {o: d for d, o in enumerate(order) if isinstance(o, int)}
        return replace(
            x, lengths=tuple(x.lengths[o] if isinstance(o, int) else one for o in order),
            computed=lambda index: x.computed(
                [index[moved[d]] if d in moved else zero for d in range(len(x.lengths))]
            ),
        )  # fmt: skip
    fixed = list(x.fixed)
    for d, dim in enumerate(x.dims):
        if d not in order and dim is not None:
            part = x.parts[dim]  # its type says that it has one element
            fixed[dim] = p.literal(0) if part is None else part[0]
    dims = tuple(x.dims[o] if isinstance(o, int) else None for o in order)
    return replace(x, fixed=tuple(fixed), dims=dims)


@on_memory(Rebroadcast, DeepCopyOp, ViewOp)
def _same(p: Builder, node: Apply, x: Any) -> Any:
    return x


@on_memory(Assert)
@on_registers(Assert)
def _checked(p: Builder, node: Apply, x: Any, *conditions: Slots) -> Any:
    """Let the step fail where a condition does not hold: the VM raises the error."""
    zero = p.literal(0)
    for condition in conditions:
        p.fail_if(p.one("eq", int(condition), zero, dtype="bool"))
    return x


@on_memory(Subtensor)
def part(p: Builder, node: Apply, x: Any, *numbers: Slots) -> Any:
    return _view(p, node.op, x, node.inputs[1:], numbers)


def _view(p: Builder, op: Any, x: Any, variables: Sequence[Any], numbers: Sequence[Slots]) -> Any:
    """Return the part of an array that an index names."""
    given = iter(zip(variables, numbers, strict=True))

    def index() -> int:
        var, value = next(given)
        return index_slot(p, value, var.type.dtype)

    d = 0
    for entry in op.idx_list:
        if not isinstance(entry, slice):
            x = _at(p, x, d, index())
            continue
        start, stop, step = (
            None if one is None else index() for one in (entry.start, entry.stop, entry.step)
        )
        if (start, stop, step) != (None, None, None):
            x = _sliced(p, x, d, start, stop, step)
        d += 1
    return x


def _at(p: Builder, x: Any, d: int, index: int) -> Any:
    """Return the part of an array at an index of the program."""
    if isinstance(x, Held) and (x.dims[d] is None or x.parts[cast(int, x.dims[d])] is None):
        return x.at(p, d, index)  # what reads it looks whether it is there
    count = x.length(p, d)
    zero = p.literal(0)
    back = p.one("lt", index, zero, dtype="bool")
    if not p.has_number(index) or p.is_less(index, 0):
        index = p.one("switch", back, p.one("add", index, count), index, dtype="int64")
    p.fail_if(p.one("lt", index, zero, dtype="bool"))
    p.fail_if(p.one("ge", index, count, dtype="bool"))
    if isinstance(x, Held):
        return x.at(p, d, index)
    return replace(
        x, lengths=x.lengths[:d] + x.lengths[d + 1 :],
        computed=lambda given: x.computed([*given[:d], index, *given[d:]]),
    )  # fmt: skip


def _sliced(
    p: Builder, x: Any, d: int, start: int | None, stop: int | None, step: int | None
) -> Any:
    """Return the part of an array that a slice names."""
    count, zero, one = x.length(p, d), p.literal(0), p.literal(1)

    def clipped(slot: int, low: int, high: int) -> int:
        if not p.has_number(slot) or p.is_less(slot, 0):
            back = p.one("lt", slot, zero, dtype="bool")
            slot = p.one("switch", back, p.one("add", slot, count), slot, dtype="int64")
            slot = p.one("maximum", slot, low)
        return p.one("minimum", slot, high)

    def ends(back: bool) -> tuple[int, int]:
        """Return the first index, and how far it is from there to the end."""
        low, high = (p.literal(-1), p.one("sub", count, one)) if back else (zero, count)
        first = clipped(start, low, high) if start is not None else high if back else low
        last = clipped(stop, low, high) if stop is not None else low if back else high
        distance = p.one("sub", first, last) if back else p.one("sub", last, first)
        return first, p.one("maximum", distance, zero)

    step = one if step is None else step
    if p.has_number(step) and not p.is_number(step, 0):
        first, length = ends(p.is_less(step, 0))
    else:
        p.fail_if(p.one("eq", step, zero, dtype="bool"))
        back = p.one("lt", step, zero, dtype="bool")
        first, length = (
            p.one("switch", back, x, y, dtype="int64")
            for x, y in zip(ends(True), ends(False), strict=True)
        )
    if not (p.is_number(step, 1) or p.is_number(step, -1)):
        size = p.one("abs_", step)
        length = p.one("int_div", p.one("add", length, p.one("sub", size, one)), size)
    if isinstance(x, Held):
        return x.part(p, d, first, step, length)
    if p.has_number(step) and not p.is_of_data(length):
        p.bounds[length] = p.bounds_of(x.lengths[d])
    return replace(
        x, lengths=(*x.lengths[:d], length, *x.lengths[d + 1 :]),
        computed=lambda given: x.computed(
            [*given[:d], p.affine(first, given[d], step), *given[d + 1 :]]
        ),
    )  # fmt: skip


@on_memory(IncSubtensor)
def changed(p: Builder, node: Apply, x: Any, y: Any, *numbers: Slots) -> Held:
    """Append the writing of a part of an array."""
    array = writable(p, x)
    place = _view(p, node.op, array, node.inputs[2:], numbers)
    fill(p, place, y, add=not node.op.set_instead_of_inc)
    return replace(array, version=p.written(array.operand))


def writable(p: Builder, x: Any) -> Held:
    """Return an array that may be overwritten: x, or an array of the step with its elements."""
    if isinstance(x, Held) and x.operand in p.writable and not p.keeps:
        return x
    return own(p, x)


def own(p: Builder, x: Any) -> Held:
    """Append an array of the step with the elements of another one."""
    if isinstance(x, np.ndarray) and not x.size:
        raise NotSmall  # of no element the dtype is not known
    dtype = p.dtype(int(x.ravel()[0])) if isinstance(x, np.ndarray) else x.dtype
    place = p.scratch(lengths(p, x), dtype)
    fill(p, place, x)
    return replace(place, version=p.written(place.operand))


def _own_each(p: Builder, values: Sequence[Each]) -> list[Any]:
    """Append arrays of the step with the elements of others, which have the same shape."""
    places = [p.scratch(x.lengths, x.dtype) for x in values]

    def write(index: Sequence[int]) -> None:
        slots = [converted(p, x.computed(index), x.dtype) for x in values]
        for place, slot in zip(places, slots, strict=True):
            for one in index:
                place = place.at(p, 0, one)
            place.write(p, slot)

    over(p, values[0].lengths, write)
    return [replace(x, version=p.written(x.operand)) for x in places]


@on_memory(AdvancedSubtensor1)
def _gathered(p: Builder, node: Apply, x: Any, index: Any) -> Each:
    if isinstance(index, np.ndarray):
        index = p.range_of(p.number(index))
    if isinstance(x, np.ndarray) or index is None or x.dims[0] is None:
        raise NotSmall

    def computed(given: Sequence[int]) -> int:
        row = _at(p, x, 0, converted(p, element(p, index, given[:1]), "int64"))
        return element(p, row, given[1:])

    if not node.inputs[1].type.dtype.startswith(("int", "uint")):
        raise NotSmall
    return Each(x.dtype, (index.length(p, 0), *lengths(p, x)[1:]), computed)


@on_memory(Shape_i)
def _length(p: Builder, node: Apply, x: Any) -> Slots:
    return np.array(x.length(p, node.op.i), np.int64)


@on_memory(Shape)
def _shape(p: Builder, node: Apply, x: Any) -> Slots:
    return np.array(lengths(p, x), np.int64)


@on_memory(Elemwise)
def _elemwise(p: Builder, node: Apply, *values: Any) -> list[Any]:
    op = node.op.scalar_op
    patterns = [var.type.broadcastable for var in node.inputs]
    found = _elementwise(p, op, [out.type.dtype for out in node.outputs], values, patterns)
    # what reads an element computes it
    return _own_each(p, found) if _is_costly(found[0]) and _is_read_often(node) else found


def _is_costly(x: Any) -> bool:
    return isinstance(x, Each) and x.cost >= COSTLY and bool(x.lengths)


def _is_read_often(node: Apply) -> bool:
    """Return whether elements of an Apply are read more than once."""
    if node.fgraph is None:
        return False
    clients = [client for out in node.outputs for client, _ in node.fgraph.clients(out)]
    return len(clients) > 1 or any(
        client != "output" and isinstance(client.op, DimShuffle) and "x" in client.op.new_order
        for client in clients
    )


def _elementwise(
    p: Builder,
    op: ScalarOp,
    dtypes: Sequence[str],
    values: Sequence[Any],
    patterns: Sequence[Sequence[bool]],
) -> list[Any]:
    """Return what an operation computes of arrays that broadcast.

    patterns: by array, which dimensions are broadcast.
    """
    given = [lengths(p, x) for x in values]
    ndim = max(map(len, given))
    out: list[int | None] = [None] * ndim
    for each, pattern in zip(given, patterns, strict=True):
        for d, (n, one) in enumerate(zip(each, pattern, strict=True), ndim - len(each)):
            if not one:
                known = out[d]
                p.check_equal(n if known is None else known, n)
                if known is None or p.has_number(n):
                    out[d] = n
    unit = p.literal(1)
    zero = p.literal(0)

    def computed(k: int, index: Sequence[int]) -> int:
        args = []
        for x, pattern in zip(values, patterns, strict=True):
            own = index[ndim - len(pattern) :]
            own = [zero if one else i for i, one in zip(own, pattern, strict=True)]
            args.append(element(p, x, own))
        return p.emit(op, args, dtypes[0])[k]

    counts = tuple(unit if n is None else n for n in out)
    cost = op.element_cost(len(values))
    return [Each(dtype, counts, partial(computed, k), cost) for k, dtype in enumerate(dtypes)]


def counts(p: Builder, variables: Sequence[Var], numbers: Sequence[Slots]) -> list[int]:
    """Return the slots of the lengths of a new array; the step fails if one is negative."""
    found = [index_slot(p, n, v.type.dtype) for n, v in zip(numbers, variables, strict=True)]
    for n in found:
        if not p.has_number(n) or p.is_less(n, 0):
            p.fail_if(p.one("lt", n, p.literal(0), dtype="bool"))
    return found


@on_memory(Alloc)
def filled(p: Builder, node: Apply, value: Any, *numbers: Slots) -> Each:
    """Append an array that repeats a value."""
    own = counts(p, node.inputs[1:], numbers)
    behind = len(own) - node.inputs[0].type.ndim
    ones = node.inputs[0].type.broadcastable
    for n, m, one in zip(lengths(p, value), own[behind:], ones, strict=True):
        if not one:
            p.check_equal(n, m)
    zero = p.literal(0)
    return Each(
        node.outputs[0].type.dtype, tuple(own),
        lambda index: element(
            p, value, [zero if one else i for i, one in zip(index[behind:], ones, strict=True)]
        ),
    )  # fmt: skip


@on_memory(Join)
def _joined(p: Builder, node: Apply, axis: Slots, *values: Any) -> Held:
    d = int(p.number(axis)) % node.outputs[0].type.ndim
    every = [lengths(p, x) for x in values]
    for others in every[1:]:
        for k, (n, m) in enumerate(zip(every[0], others, strict=True)):
            if k != d:
                p.check_equal(n, m)
    starts = [p.literal(0)]
    for given in every:
        starts.append(p.one("add", starts[-1], given[d], dtype="int64"))
    shape = [*every[0][:d], starts[-1], *every[0][d + 1 :]]
    place = p.scratch(shape, node.outputs[0].type.dtype)
    for x, start, given in zip(values, starts, every, strict=False):
        fill(p, place.part(p, d, start, p.literal(1), given[d]), x, same=True)
    return replace(place, version=p.written(place.operand))


@on_memory(Dot, Dot22)
def _dot(p: Builder, node: Apply, x: Any, y: Any) -> Any:
    return _in_memory(p, _product(p, x, y, node.outputs[0].type.dtype))


@on_memory(Dot22Scalar)
def _dot_scaled(p: Builder, node: Apply, x: Any, y: Any, a: Slots) -> Any:
    return _in_memory(p, _scaled(p, a, _product(p, x, y, node.outputs[0].type.dtype)))


@on_memory(Gemv, Gemm)
def _accumulated(p: Builder, node: Apply, z: Any, a: Slots, x: Any, y: Any, b: Slots) -> Any:
    product = _scaled(p, a, _product(p, x, y, node.outputs[0].type.dtype))
    for n, m in zip(lengths(p, z), product.lengths, strict=True):
        p.check_equal(n, m)
    if not p.has_number(b):
        raise NotSmall
    if not p.is_number(b, 0):  # else z may be anything
        more = _scaled(p, b, Each(product.dtype, product.lengths, partial(element, p, z)))
        of_both = product.computed
        product = replace(product, computed=lambda index: p.one(
            "add", more.computed(index), of_both(index), dtype=product.dtype
        ))  # fmt: skip
    return _in_memory(p, product)


def _in_memory(p: Builder, x: Each) -> Any:
    """Return what has each element once: a product is not computed again where it is read."""
    return own(p, x) if x.lengths else np.array(x.computed([]), np.int64)


def _scaled(p: Builder, a: Slots, x: Each) -> Each:
    if p.is_number(a, 1):
        return x
    factor = converted(p, int(a), x.dtype)
    return replace(x, computed=lambda index: p.one("mul", factor, x.computed(index), dtype=x.dtype))


def _product(p: Builder, x: Any, y: Any, dtype: str) -> Each:
    """Return the product of two vectors or matrices; its elements are computed when read."""
    of_x, of_y = lengths(p, x), lengths(p, y)
    if not (1 <= len(of_x) <= 2 and 1 <= len(of_y) <= 2):
        raise NotSmall
    rows = len(of_x) - 1
    p.check_equal(of_x[-1], of_y[0])

    def computed(given: Sequence[int]) -> int:
        def join(total: int, index: Sequence[int]) -> int:
            at = (*given[:rows], *index), (*index, *given[rows:])
            factors = [
                converted(p, element(p, one, i), dtype) for one, i in zip((x, y), at, strict=True)
            ]
            return p.one("add", total, p.one("mul", *factors, dtype=dtype), dtype=dtype)

        return folded(p, [of_y[0]], p.zero(dtype), join, is_sum=True)

    return Each(dtype, (*of_x[:-1], *of_y[1:]), computed)


@on_memory(CAReduce)
def _reduced(p: Builder, node: Apply, x: Any) -> Any:
    op, out = node.op, node.outputs[0]
    row = op.scalar_op.row
    name = "" if row is None else row.name
    acc = str(getattr(op, "acc_dtype", None) or out.type.dtype)
    if name not in _FOLDS or (name == "and_" and acc != "bool"):
        raise NotSmall
    every = lengths(p, x)
    axes = tuple(range(len(every))) if op.axis is None else tuple(op.axis)
    zero = p.literal(0)
    if _FOLDS[name] is None:
        for d in axes:
            p.fail_if(p.one("eq", every[d], zero, dtype="bool"))

    kept = [d for d in range(len(every)) if d not in axes]
    folds, shape = [every[d] for d in axes], tuple(every[d] for d in kept)
    start = _FOLDS[name]

    def at(index: Sequence[int], given: Sequence[int]) -> int:
        """Return an element. index: of axes that are folded. given: of the others."""
        own_index = dict(zip((*axes, *kept), (*index, *given), strict=True))
        return converted(p, element(p, x, [own_index[d] for d in range(len(every))]), acc)

    def first(given: Sequence[int]) -> int:
        return at([zero] * len(axes), given) if start is None else p.number_of(start, acc)

    def computed(given: Sequence[int]) -> int:
        total = folded(
            p, folds, first(given),
            lambda old, index: p.one(name, old, at(index, given), dtype=acc), name == "add",
        )  # fmt: skip
        return converted(p, total, out.type.dtype)

    if (not kept or kept[-1] != len(every) - 1) and _is_costly(x):
        x = own(p, x)  # vectors hold several of its elements, as the fold does not
    if not kept:
        return Each(out.type.dtype, shape, computed)
    if kept[-1] != len(every) - 1:
        return own(p, Each(out.type.dtype, shape, computed))
    (totals,) = _side_by_side(
        p, [Each(acc, shape, first)], folds,
        lambda old, index, given: [p.one(name, *old, at(index, given), dtype=acc)],
    )  # fmt: skip
    if acc == out.type.dtype:
        return totals
    return Each(
        out.type.dtype, shape,
        lambda given: converted(p, element(p, totals, given), out.type.dtype),
    )  # fmt: skip


#: operations that fold axes -> what they begin with; None: an element
_FOLDS: dict[str, int | None] = {
    "add": 0, "mul": 1, "maximum": None, "minimum": None, "and_": 1, "or_": 0,
}  # fmt: skip


def _side_by_side(
    p: Builder,
    first: Sequence[Each],
    folds: Sequence[int],
    join: Callable[[Sequence[int], Sequence[int], Sequence[int]], Sequence[int]],
) -> list[Held]:
    """Append a fold of leading axes whose results are arrays of the step; return these.

    The innermost loop is over the results, which lie as what is folded, so it may take vectors.
    first: what the results are at first. folds: the lengths of the axes. join: appends new values,
    from (the slots of the old ones, the indices of the axes, those of the results).
    """
    results = [own(p, x) for x in first]

    def step(index: Sequence[int]) -> None:
        places, given = list(results), index[len(folds) :]
        for one in given:
            places = [place.at(p, 0, one) for place in places]
        old = [place.element(p) for place in places]
        for place, new in zip(places, join(old, index[: len(folds)], given), strict=True):
            place.write(p, new)

    over(p, [*folds, *lengths(p, results[0])], step)
    return [replace(x, version=p.written(x.operand)) for x in results]


@on_memory(MaxAndArgmax, Argmax)
def _largest(p: Builder, node: Apply, x: Any) -> list[Any]:
    every, dtype = lengths(p, x), node.inputs[0].type.dtype
    if len(node.op.axis) != 1 or dtype.startswith("complex"):
        raise NotSmall
    (axis,) = node.op.axis
    zero = p.literal(0)
    p.fail_if(p.one("eq", every[axis], zero, dtype="bool"))

    def at(k: int, given: Sequence[int]) -> int:
        return element(p, x, [*given[:axis], k, *given[axis:]])

    def larger(old: int, new: int) -> int:
        found = p.one("gt", new, old, dtype="bool")
        if dtype.startswith("float"):  # the first NaN is the largest
            is_nan = p.one("neq", new, new, dtype="bool"), p.one("eq", old, old, dtype="bool")
            found = p.one("or_", found, p.one("and_", *is_nan, dtype="bool"), dtype="bool")
        return found

    def position(given: Sequence[int]) -> int:
        def join(best: int, index: Sequence[int]) -> int:
            taken = larger(at(best, given), at(index[0], given))
            return p.one("switch", taken, index[0], best, dtype="int64")

        return folded(p, [every[axis]], zero, join)

    def joined(old: Sequence[int], index: Sequence[int], given: Sequence[int]) -> list[int]:
        new = at(index[0], given), index[0]
        taken = larger(old[0], new[0])
        return [p.one("switch", taken, x, y) for x, y in zip(new, old, strict=True)]

    shape = tuple(n for d, n in enumerate(every) if d != axis)
    if shape and axis < len(every) - 1:
        first = Each(dtype, shape, partial(at, zero)), Each("int64", shape, lambda _: zero)
        found: list[Any] = _side_by_side(p, first, [every[axis]], joined)
        return found[-len(node.outputs) :]
    where: Any = Each("int64", shape, position)
    if len(node.outputs) == 1:
        return [where]
    if shape:
        where = own(p, where)
    else:
        where = np.array(position([]), np.int64)
    largest = Each(dtype, shape, lambda given: at(element(p, where, given), given))
    return [own(p, largest) if shape else largest, where]


@on_memory(MapReduce)
def _map_reduced(p: Builder, node: Apply, *values: Any) -> list[Any]:
    mapped, every = node.op.parts(node)
    between = p.run(mapped, list(values))
    return [p.run(one, between[k : k + 1])[0] for k, one in enumerate(every)]


@on_memory(Gathered)
def _loop_with_gathers(p: Builder, node: Apply, *values: Any) -> list[Any]:
    *gathers, loop = node.op.parts(node)
    operands, indices = node.op.divided(values)
    for gather, (k, i) in zip(gathers, node.op.taken, strict=True):
        (operands[k],) = p.run(gather, [operands[k], indices[i]])
    return list(p.run(loop, operands))


def arange(p: Builder, node: Apply, *numbers: Slots) -> Each:
    """Append a range of integers."""
    assert isinstance(node.op, ARange)
    start, stop, step = (
        index_slot(p, value, var.type.dtype)
        for value, var in zip(numbers, node.inputs, strict=True)
    )
    zero = p.literal(0)
    if p.is_number(step, 1):
        count = p.one("sub", stop, start) if not p.is_number(start, 0) else stop
    else:
        if not p.has_number(step):
            p.fail_if(p.one("eq", step, zero, dtype="bool"))
        back = p.one("int_div", p.one("sub", start, stop), step, dtype="int64")
        count = p.one("sub", zero, back)
    length = p.one("maximum", count, zero)
    p.bounds[length] = p.bounds.get(count, set())
    return whole_range(p, start, step, length, node.op.dtype)
