"""Rules on indexing: parts of results, parts of parts, parts that are set or incremented.

An index that is out of range raises IndexError as before, unless a rule says otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import (
    already_there,
    is_plain,
    is_private,
    number,
    number_within,
    operands,
    row_name,
    shuffled,
)
from opwise.optimizers.rules.shape import are_lengths, as_type, is_read_once, lengths_of
from opwise.optimizers.shapefeature import same_length
from opwise.scalar import dtypes
from opwise.tensor.advanced_subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor1,
    advanced_inc_subtensor1,
    advanced_subtensor1,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.creation import Alloc, ARange, alloc
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import MakeVector, vector_of
from opwise.tensor.knownvalues import vector_entry
from opwise.tensor.reduce import all as all_
from opwise.tensor.shape import Rebroadcast, length
from opwise.tensor.slices import as_tensor, known_int, slice_length
from opwise.tensor.sort import ArgSortOp, SortOp, TopKOp
from opwise.tensor.subtensor import IncSubtensor, Subtensor, get_idx_list, getitem
from opwise.tensor.variable import constant

if TYPE_CHECKING:
    from opwise.tensor.type import TensorType


_RUN = ("fast_run",)
_TWICE = ("canonicalize", "specialize")
_THRICE = ("canonicalize", "stabilize", "specialize")
_INCREMENTS = (IncSubtensor, AdvancedIncSubtensor1, AdvancedIncSubtensor)

# --- indices --------------------------------------------------------------------------------------

_WHOLE = slice(None)


def index_of(node: Apply) -> Any:
    """Return the index of an Apply of Subtensor or IncSubtensor, for each dimension of the array.

    Known numbers in it are ints, others are scalar variables.
    """
    inputs = node.inputs if isinstance(node.op, Subtensor) else node.inputs[1:]
    index = [
        slice(*map(_known, (i.start, i.stop, i.step))) if isinstance(i, slice) else _known(i)
        for i in get_idx_list(inputs, node.op.idx_list)
    ]
    return index + [_WHOLE] * (node.inputs[0].type.ndim - len(index))


def _known(part: Any) -> int | None:
    known = None if part is None else known_int(part)
    return part if known is None else known


def part_of(x: Any, index: Any) -> Any:
    """Return ``x[index]``; x itself if that is all of it."""
    index = list(index)
    while index and _is_whole(index[-1]):
        index.pop()
    return getitem(x, tuple(index)) if index else x


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == _WHOLE


def _is_reversal(item: Any) -> bool:
    return isinstance(item, slice) and (item.start, item.stop, item.step) == (None, None, -1)


def _takes_all(index: Any) -> bool:
    """Return whether an index selects all elements, perhaps in reversed order."""
    return all(_is_whole(i) or _is_reversal(i) for i in index)


def _is_below(i: int, n: Any) -> bool:
    """Return whether a number in an index is known to be in the range of a length."""
    return isinstance(i, int) and n is not None and -n <= i < n


def _are_same(index: Any, other: Any) -> bool:
    """Return whether two indices are known to be equal."""
    return len(index) == len(other) and all(map(_is_same, index, other))


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, slice) or isinstance(b, slice):
        if not (isinstance(a, slice) and isinstance(b, slice)):
            return False
        return _are_same(_without_defaults(a), _without_defaults(b))
    if a is b or a is None or b is None or isinstance(a, int) or isinstance(b, int):
        return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
    return same_length(length(as_tensor(a)), length(as_tensor(b)))


def _without_defaults(item: Any) -> tuple[Any, ...]:
    """Return start, stop and step of a slice, with None for the defaults."""
    start, stop, step = item.start, item.stop, item.step
    if step is None or (isinstance(step, int) and step > 0):
        start = None if isinstance(start, int) and start == 0 else start
    return start, stop, None if isinstance(step, int) and step == 1 else step


# --- parts that are all, slices that do nothing ---------------------------------------------------


def _with_whole_slices(fgraph: FunctionGraph, x: Var, index: Any) -> list[slice] | None:
    """Return an index with slices that select all elements replaced by ``:``, or None."""
    partial = [d for d, i in enumerate(index) if isinstance(i, slice) and not _is_whole(i)]
    lengths = lengths_of(fgraph, x) if partial else None
    if lengths is None:
        return None
    whole = [d for d in partial if _picks_all(index[d], lengths[d])]
    return [_WHOLE if d in whole else i for d, i in enumerate(index)] if whole else None


def _picks_all(item: Any, n: Any) -> bool:
    """Return whether a slice is known to select all elements of a dimension of length ``n``."""
    size = known_int(n)
    known = all(p is None or isinstance(p, int) for p in (item.start, item.stop, item.step))
    if known and size is not None:
        return bool(item.step != 0 and range(size)[item] == range(size))
    start, stop, step = _without_defaults(item)
    if start is not None or step is not None:
        return False
    if stop is None or isinstance(stop, int):
        return stop is None or stop >= sys.maxsize
    return same_length(length(as_tensor(stop)), n)


@rule(Subtensor, IncSubtensor, stage=_TWICE)
def local_useless_slice(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces slices that select all elements by ``:``; at the end of an index, removes them."""
    index = index_of(node)
    x = node.inputs[0]
    simple = _with_whole_slices(fgraph, x, index)
    if simple is None:
        if not node.op.idx_list or not _is_whole(index[len(node.op.idx_list) - 1]):
            return None
        simple = index
    part = part_of(x, simple)
    if isinstance(node.op, Subtensor):
        return [as_type(part, node.outputs[0].type)]
    if part is x:
        return None
    op = IncSubtensor(
        part.owner.op.idx_list,
        inplace=node.op.inplace,
        set_instead_of_inc=node.op.set_instead_of_inc,
        destroyhandler_tolerate_aliased=node.op.destroyhandler_tolerate_aliased,
    )
    return [op(x, node.inputs[1], *part.owner.inputs[1:])]


@rule(Subtensor, AdvancedSubtensor1, stage=_TWICE)
def local_useless_subtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes indexing that selects all elements."""
    x = node.inputs[0]
    (out,) = node.outputs
    if isinstance(node.op, AdvancedSubtensor1):
        return [as_type(x, out.type)] if _counts_rows(fgraph, x, node.inputs[1]) else None
    if not all(isinstance(i, slice) for i in node.op.idx_list):
        return None
    index = index_of(node)
    simple = _with_whole_slices(fgraph, x, index) or index
    return [as_type(x, out.type)] if all(map(_is_whole, simple)) else None


def _counts_rows(fgraph: FunctionGraph, x: Var, indices: Var) -> bool:
    """Return whether a vector of integers is known to be 0, 1, 2, ... up to the rows of ``x``."""
    lengths = lengths_of(fgraph, x)
    if lengths is None:
        return False
    if isinstance(indices, Constant):
        n = known_int(lengths[0])
        return n is not None and np.array_equal(indices.data, np.arange(n))
    if indices.owner is None or not isinstance(indices.owner.op, ARange):
        return False
    start, stop, step = indices.owner.inputs
    if known_int(start) != 0 or known_int(step) != 1 or stop.type.dtype not in dtypes.INTEGERS:
        return False
    return same_length(length(stop), lengths[0])


@rule(Subtensor, stage=_TWICE)
def local_subtensor_remove_broadcastable_index(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces indexing by 0 along dimensions of length 1 by a DimShuffle that drops them."""
    x: Var = node.inputs[0]
    kept: Var = _kept_without_ones(x, index_of(node))
    return None if kept is None else [dimshuffle(x, kept)]


def _kept_without_ones(x: Var, index: Any) -> list[int] | None:
    """Return the remaining dimensions if an index only drops some of length 1, else None."""
    kept = [d for d, item in enumerate(index) if _is_whole(item)]
    for item, one in zip(index, x.type.broadcastable, strict=True):
        if not _is_whole(item) and not (one and isinstance(item, int) and item in (0, -1)):
            return None
    return kept if len(kept) < x.type.ndim else None


# --- parts of parts -------------------------------------------------------------------------------


@rule(Subtensor, stage=_TWICE)
def local_subtensor_merge(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Merges x[i][j] into one Subtensor, if its bounds need no further computation."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Subtensor):
        return None
    x = inner.inputs[0]
    remaining = iter(index_of(node))
    merged = []
    for d, item in enumerate(index_of(inner)):
        if isinstance(item, slice):
            then = next(remaining)
            if _is_whole(item) or _is_whole(then):
                item = then if _is_whole(item) else item
            else:
                lengths = lengths_of(fgraph, x)
                item = _composed(item, then, None if lengths is None else known_int(lengths[d]))
                if item is None:
                    return None
        merged.append(item)
    return [as_type(already_there(part_of(x, merged)), node.outputs[0].type)]


def _composed(first: Any, then: Any, size: int | None) -> int | slice | None:
    """Return the index that selects what ``first``, a slice, and then ``then`` select.

    then: a number or a slice. size: the length of the dimension, None if it is not known. Returns
    None if there is no such index, or if it would raise IndexError for other lengths.
    """
    parts = [first.start, first.stop, first.step]
    parts += [then.start, then.stop, then.step] if isinstance(then, slice) else [then]
    if not all(part is None or isinstance(part, int) for part in parts) or first.step == 0:
        return None
    if isinstance(then, slice) and then.step == 0:
        return None
    if size is not None:
        return _composed_of_known(range(size), first, then)
    if isinstance(then, slice):
        return _slice_of_slice(first, then)
    return _number_of_slice(first, then)


def _composed_of_known(whole: range, first: Any, then: int | slice) -> int | slice | None:
    if not isinstance(then, slice):
        positions = whole[first]
        return positions[then] if _is_below(then, len(positions)) else None
    positions = whole[first][then]
    if positions == whole:
        return _WHOLE
    if not positions:
        return slice(None, 0)
    return slice(positions.start, None if positions.stop < 0 else positions.stop, positions.step)


def _number_of_slice(first: Any, i: int) -> int | None:
    start, stop, step = first.start or 0, first.stop, first.step or 1
    if step < 0:
        # element -1 of the reversed dimension is the first
        return -1 - i if (first.start, stop, step) == (None, None, -1) else None
    if i >= 0:
        position = start + step * i
        # a stop that counts from the end is negative
        return position if start >= 0 and (stop is None or position < stop) else None
    if step > 1:
        return None
    if start == 0 and stop is not None and stop < 0:
        return int(stop + i)
    return i if start < 0 and stop is None and start <= i else None


def _slice_of_slice(first: Any, then: slice) -> slice | None:
    if (first.step or 1) < 0:
        return _slice_of_reversed(first, then)
    if (then.step or 1) < 0:
        return None
    start, stop, step = first.start or 0, first.stop, first.step or 1
    begin, end, pace = then.start or 0, then.stop, step * (then.step or 1)
    if start < 0 or begin < 0:
        return _slice_from_end(first, then)
    if (stop is None or stop >= 0) and (end is None or end >= 0):
        ends = [e for e in (stop, None if end is None else start + step * end) if e is not None]
        return _forward(start + step * begin, min(ends, default=None), pace)
    # both ends count from the end, or one of them is the default
    if step > 1 or (stop is not None and stop >= 0) or (end is not None and end >= 0):
        return None
    return _forward(start + begin, (stop or 0) + (end or 0), pace)


def _forward(start: int, stop: int | None, step: int) -> slice:
    """Return a slice with a positive step, with None for defaults."""
    return slice(start or None, stop, None if step == 1 else step)


def _slice_from_end(first: Any, then: slice) -> slice | None:
    """Return the last elements, or all but the last, of a slice of last elements, as a slice."""
    start, begin = first.start or 0, then.start or 0
    if first.stop is not None or start >= 0 or any((s.step or 1) != 1 for s in (first, then)):
        return None
    if begin < 0 and then.stop is None:
        return slice(max(start, begin), None)
    return slice(start, then.stop) if begin == 0 and (then.stop or 0) < 0 else None


def _slice_of_reversed(first: Any, then: slice) -> slice | None:
    if (first.start, first.stop) != (None, None):
        return None
    step = then.step or 1
    if then.start is None and then.stop is None and (step < 0 and first.step == -1):
        return slice(None, None, -step)
    begin, end = then.start or 0, then.stop
    if step < 0 or first.step != -1 or begin < 0 or (end is not None and end < 0):
        return None
    return slice(-1 - begin if begin else None, None if end is None else -1 - end, -step)


# --- parts of what is computed --------------------------------------------------------------------


@rule(Subtensor, stage="canonicalize", tags=(*_RUN, "fast_compile"))
def local_subtensor_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves indexing before elementwise operations: only the part that is read is computed."""
    x = node.inputs[0]
    inner = x.owner
    if inner is None:
        return None
    (out,) = node.outputs
    if isinstance(inner.op, Rebroadcast):
        return _part_of_promise(node, inner)
    if not is_plain(inner) or not is_read_once(x):
        return None
    index = index_of(node)
    if len(inner.inputs) > 1 and _takes_all(index):
        return None
    shares = {v: _share(v, x, index) for v in dict.fromkeys(inner.inputs)}
    return [as_type(inner.op(*(shares[v] for v in inner.inputs)), out.type)]


def _share(operand: Var, x: Var, index: Any) -> Var:
    """Return the part of an elementwise operand that ``x[index]`` depends on."""
    own = []
    for item, one, whole in zip(
        index, operand.type.broadcastable, x.type.broadcastable, strict=True
    ):
        # an operand that broadcasts along a dimension keeps its only element
        own.append(item if whole or not one else _WHOLE if isinstance(item, slice) else 0)
    kept = _kept_without_ones(operand, own)
    return already_there(part_of(operand, own) if kept is None else shuffled(operand, kept))


def _part_of_promise(node: Apply, inner: Apply) -> list[Var] | None:
    index = index_of(node)
    checked = [d for d, one in inner.op.axis.items() if one]
    if not all(_is_whole(index[d]) for d in checked):
        return None
    return [as_type(part_of(inner.inputs[0], index), node.outputs[0].type)]


@rule(
    Subtensor,
    AdvancedSubtensor1,
    stage={"canonicalize": (*_RUN, "fast_compile_gpu"), "specialize": _RUN},
)
def local_subtensor_make_vector(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces entries of a vector that are known by the entries."""
    x = node.inputs[0]
    if x.type.ndim != 1 or x.owner is None:
        return None
    (out,) = node.outputs
    if isinstance(node.op, AdvancedSubtensor1):
        picked = node.inputs[1].data if isinstance(node.inputs[1], Constant) else None
        return _entries(x, None if picked is None else picked.tolist(), out)
    (item,) = index_of(node)
    if isinstance(item, slice):
        return _entries(x, item, out)
    entry = vector_entry(x, item) if isinstance(item, int) else None
    return None if entry is None else [_as_number(entry, out.type.dtype)]


def _as_number(entry: Any, dtype: str) -> Var:
    """Return an entry of a vector, see ``vector_entry``, as a 0-d variable."""
    if hasattr(entry, "type"):
        return cast(entry, dtype)
    return constant(np.asarray(entry).astype(dtype))


def _entries(x: Var, picked: Sequence[int] | slice | None, out: Var) -> list[Var] | None:
    """Return the entries of a MakeVector that a slice or a list of positions selects."""
    if picked is None or type(x.owner.op) is not MakeVector:
        return None
    numbers = x.owner.inputs
    n = len(numbers)
    if isinstance(picked, slice):
        if not all(p is None or isinstance(p, int) for p in (picked.start, picked.stop)):
            return None
        if not isinstance(picked.step, int | None) or picked.step == 0:
            return None
        chosen = numbers[picked]
    elif all(-n <= i < n for i in picked):
        chosen = [numbers[i] for i in picked]
    else:
        return None
    if not chosen:
        return [as_type(constant(np.zeros(0, out.type.dtype)), out.type)]
    return [as_type(vector_of(chosen), out.type)]


@rule(Subtensor, stage=_TWICE)
def local_subtensor_of_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a part of an Alloc by a smaller Alloc, or by a part of its value."""
    x = node.inputs[0]
    if x.owner is None or type(x.owner.op) is not Alloc or not is_read_once(x):
        return None
    value, *lengths = x.owner.inputs
    index = index_of(node)
    added = len(lengths) - value.type.ndim
    value_lengths = lengths_of(fgraph, value)
    if value_lengths is None:
        return None
    value_index, new_lengths = [], []
    for d, (item, n) in enumerate(zip(index, lengths, strict=True)):
        repeated = d < added or value.type.broadcastable[d - added]
        if not repeated and not _is_whole(item):
            if not same_length(length(n), value_lengths[d - added]):
                return None  # the value may have length 1, and be repeated
        if isinstance(item, slice):
            new_lengths.append(length(n) if _is_whole(item) else slice_length(item, n))
        elif repeated and not _is_below(item, known_int(n)):
            return None
        if d >= added:
            value_index.append(item if not repeated else _WHOLE if isinstance(item, slice) else 0)
    new = part_of(value, value_index)
    return [as_type(alloc(new, *new_lengths) if new_lengths else new, node.outputs[0].type)]


#: so many elements are selected at most, and of a known length one in so many; else all are sorted
_FEW, _PART = 64, 8


@rule(Subtensor, stage="specialize")
def local_selection_of_sorted(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The first or last few sorted elements, or positions of them, are selected without sorting."""
    x = node.inputs[0]
    if x.owner is None or not isinstance(x.owner.op, SortOp | ArgSortOp) or not is_private(x):
        return None
    axis: Var
    (unsorted, axis), index = x.owner.inputs, index_of(node)
    axis = known_int(axis)
    if axis is None:
        return None
    lengths = lengths_of(fgraph, unsorted)
    if lengths is None:
        return None
    part, n = index[axis], lengths[axis]
    count = _count_at_an_end(part)
    size = known_int(n)
    if count is None or abs(count) > _FEW or (size is not None and abs(count) > size // _PART):
        return None
    some = elemwise("minimum")(constant(np.int64(abs(count))), as_tensor(n))
    of_values = isinstance(x.owner.op, SortOp)
    op = TopKOp(axis, return_values=of_values, return_indices=not of_values)
    selected = op(unsorted, -some if count > 0 else some)
    if count < 0 and part.step != -1:  # the largest come in ascending order
        index[axis] = slice(None, None, -1)
    else:
        index[axis] = _WHOLE
    return [as_type(part_of(selected, index), node.outputs[0].type)]


def _count_at_an_end(part: Any) -> int | None:
    """Return how many of the first elements a slice takes; less than 0: of the last; or None."""
    if not isinstance(part, slice):
        return None
    start, stop, step = _without_defaults(part)
    if (start, step) == (None, None) and isinstance(stop, int) and stop > 0:
        return stop
    if (stop, step) == (None, None) and isinstance(start, int) and start < 0:
        return start
    if (
        step == -1
        and (start is None or _is_same(start, -1))
        and isinstance(stop, int)
        and stop < -1
    ):
        return stop + 1
    return None


@rule(Subtensor, stage=_THRICE)
def local_subtensor_of_dot(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """dot(x, y)[i, j] is dot(x[i], y[:, j])."""
    x = node.inputs[0]
    if x.owner is None or type(x.owner.op) is not Dot or not is_read_once(x):
        return None
    index = index_of(node)
    if _takes_all(index):
        return None
    a, b = x.owner.inputs
    rows = a.type.ndim - 1
    a = part_of(a, index[:rows])
    b = part_of(b, [_WHOLE, *index[rows:]]) if b.type.ndim > 1 else b
    return [as_type(x.owner.op(a, b), node.outputs[0].type)]


@rule(DimShuffle, stage="uncanonicalize")
def local_dimshuffle_subtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Indexes dimensions of length 1 by 0, instead of dropping them by a DimShuffle."""
    x = node.inputs[0]
    if x.owner is None or not isinstance(x.owner.op, Subtensor) or not is_private(x):
        return None
    order = node.op.new_order
    if "x" in order or list(order) != sorted(order) or len(order) == x.type.ndim:
        return None
    index, dims = index_of(x.owner), iter(range(x.type.ndim))
    of_dim = {next(dims): d for d, item in enumerate(index) if isinstance(item, slice)}
    for dim in node.op.drop:
        d = of_dim[dim]
        if not _is_whole(index[d]) or not x.owner.inputs[0].type.broadcastable[d]:
            return None
        index[d] = 0
    return [as_type(part_of(x.owner.inputs[0], index), node.outputs[0].type)]


@rule(Rebroadcast, stage=("canonicalize", "specialize"))
def local_rebroadcast_subtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A slice of one place that has length 1 is the element there, behind a new dimension.

    What reads the element alone then drops no dimension. Numbers in one vector, as all parameters
    of a model, are sliced so.
    """
    (x,) = node.inputs
    promised = set(node.op.axis)
    if x.owner is None or not isinstance(x.owner.op, Subtensor) or not is_private(x):
        return None
    if not all(node.op.axis.values()):  # it also forgets that lengths are 1
        return None
    index, dims = index_of(x.owner), iter(range(x.type.ndim))
    of_dim = {next(dims): d for d, item in enumerate(index) if isinstance(item, slice)}
    for dim in promised:
        place = _only_place(index[of_dim[dim]])
        if place is None:
            return None
        index[of_dim[dim]] = place
    kept = iter(range(x.type.ndim - len(promised)))
    order = ["x" if dim in promised else next(kept) for dim in range(x.type.ndim)]
    element = part_of(x.owner.inputs[0], index)
    return [as_type(element.dimshuffle(*order), node.outputs[0].type)]


def _only_place(item: slice) -> int | None:
    """Return the place of the element of a slice that has at most one; None if it may have more."""
    start, stop = item.start or 0, item.stop
    known = isinstance(start, int) and isinstance(stop, int) and item.step in (None, 1)
    return start if known and start >= 0 and stop == start + 1 else None


# --- parts that were set --------------------------------------------------------------------------


def _whole(fgraph: FunctionGraph, y: Var, like: Var) -> Var:
    """Return ``y`` broadcast to the shape and dtype of ``like``, or None."""
    if y.type.dtype in dtypes.COMPLEX and like.type.dtype not in dtypes.COMPLEX:
        return None
    lengths = lengths_of(fgraph, like)
    if lengths is None:
        return None
    y = cast(y, like.type.dtype)
    if not are_lengths(lengths_of(fgraph, y), lengths):
        y = alloc(y, *lengths)
    return as_type(y, like.type)


@rule(Subtensor, stage=_TWICE)
def local_subtensor_inc_subtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a part that was just set by the value; an index out of range raises no error."""
    x = node.inputs[0]
    if x.owner is None or not isinstance(x.owner.op, IncSubtensor):
        return None
    if not x.owner.op.set_instead_of_inc:
        return None
    if not _are_same(index_of(node), index_of(x.owner)):
        return None
    new = _whole(fgraph, x.owner.inputs[1], node.outputs[0])
    if new is not None and new.owner is not None and isinstance(new.owner.op, Alloc):
        # the value may broadcast: a part of what is stored anyway needs no copy
        if not is_read_once(x):
            return None
    return None if new is None else [new]


@rule(IncSubtensor, stage=_TWICE)
def local_useless_inc_subtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces setting all elements, or incrementing zeros as a whole, by the value."""
    x, y = node.inputs[:2]
    if not all(isinstance(i, slice) for i in node.op.idx_list):
        return None
    if not node.op.set_instead_of_inc and number_within(x) != 0:
        return None
    index = index_of(node)
    index = _with_whole_slices(fgraph, x, index) or index
    if not _takes_all(index):
        return None
    new = _whole(fgraph, y, x)
    # reversing twice restores the order
    return None if new is None else [as_type(part_of(new, index), x.type)]


@rule(*_INCREMENTS, stage=_THRICE)
def local_useless_inc_subtensor_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes the Alloc of a value that a part is set to or incremented by: it broadcasts."""
    x, y, *indices = node.inputs
    if y.owner is None or type(y.owner.op) is not Alloc:
        return None
    value, *lengths = y.owner.inputs
    if isinstance(node.op, IncSubtensor):
        part = Subtensor(node.op.idx_list)(x, *indices)
    elif isinstance(node.op, AdvancedIncSubtensor1):
        part = advanced_subtensor1(x, *indices)
    else:
        part = node.op.getter(x, *indices)
    known = lengths_of(fgraph, part)
    if known is None:
        return None
    known = known[len(known) - len(lengths) :]
    for n, wanted, one in zip(lengths, known, y.type.broadcastable, strict=True):
        if not one and not same_length(length(n), wanted):
            return None
    return [node.op(x, value, *indices)]


@rule(
    *_INCREMENTS,
    stage=("canonicalize", "stabilize"),
    tags=(*_RUN, "local_incsubtensor_of_allocs"),
)
def local_incsubtensor_of_zeros(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes increments by zeros; an index out of range raises no error."""
    if node.op.set_instead_of_inc or number_within(node.inputs[1]) != 0:
        return None
    return [node.inputs[0]]


@rule(IncSubtensor, stage=_TWICE)
def local_incsubtensor_of_zeros_to_setsubtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Sets parts of constant zeros instead of incrementing them."""
    if node.op.set_instead_of_inc or node.op.inplace or number(node.inputs[0]) != 0:
        return None
    return [IncSubtensor(node.op.idx_list, set_instead_of_inc=True)(*node.inputs)]


@rule(
    IncSubtensor,
    stage=("canonicalize", "stabilize"),
    tags=(*_RUN, "local_setsubtensor_of_allocs"),
)
def local_setsubtensor_of_constants(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes setting a part to the number that all elements are; indices are not checked."""
    if not node.op.set_instead_of_inc:
        return None
    new = number_within(node.inputs[1])
    old = None if new is None else number_within(node.inputs[0])
    return [node.inputs[0]] if old is not None and new == old else None


@rule(IncSubtensor, AdvancedIncSubtensor1, stage="canonicalize")
def local_set_to_inc_subtensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces setting a part to itself plus a term by an increment.

    A list of rows must not contain a row twice: increments add up.
    """
    x, y, *indices = node.inputs
    if not node.op.set_instead_of_inc or node.op.inplace or y.type.dtype != x.type.dtype:
        return None
    terms = operands(y, "add")
    if terms is None or len(terms) != 2 or not is_private(y):
        return None
    for part, other in (terms, terms[::-1]):
        if _is_part(part, node):
            if isinstance(node.op, IncSubtensor):
                return [IncSubtensor(node.op.idx_list)(x, other, *indices)]
            return [advanced_inc_subtensor1(x, other, *indices)]
    return None


def _is_part(part: Any, node: Apply) -> bool:
    """Return whether ``part`` is the part that ``node`` sets, with each element once."""
    picked = part.owner
    if picked is None or picked.inputs[0] is not node.inputs[0]:
        return False
    if isinstance(node.op, IncSubtensor):
        return isinstance(picked.op, Subtensor) and _are_same(index_of(picked), index_of(node))
    rows = node.inputs[2]
    return (
        isinstance(picked.op, AdvancedSubtensor1) and picked.inputs[1] is rows and _are_unlike(rows)
    )


def _are_unlike(rows: Var) -> bool:
    """Return whether a vector of indices is known to contain no row twice."""
    if isinstance(rows, Constant):
        of_one_sign = (rows.data >= 0).all() or (rows.data < 0).all()
        return bool(of_one_sign) and len(np.unique(rows.data)) == len(rows.data)
    if rows.owner is None or not isinstance(rows.owner.op, ARange):
        return False
    start, _, step = map(known_int, rows.owner.inputs)
    return start is not None and start >= 0 and step is not None and step > 0


@rule(AdvancedSubtensor1, stage=("canonicalize", "stabilize"))
def local_adv_sub1_adv_inc_sub1(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces rows that were just set by the value, if no row occurs twice.

    An Assert checks the indices.
    """
    changed, rows = node.inputs
    setter = changed.owner
    if setter is None or not isinstance(setter.op, AdvancedIncSubtensor1):
        return None
    if not setter.op.set_instead_of_inc or setter.inputs[2] is not rows or not _are_unlike(rows):
        return None
    x, y, _ = setter.inputs
    lengths = lengths_of(fgraph, x)
    new = _whole(fgraph, y, node.outputs[0])
    if lengths is None or new is None:
        return None
    n = lengths[0]
    smallest = elemwise("ge")(rows, elemwise("neg")(n))
    largest = elemwise("lt")(rows, n)
    check = Assert("an index is out of range")
    return [check(new, all_(smallest), all_(largest))]


# --- sums of increments ---------------------------------------------------------------------------


@rule("row:add", stage=("pre_local_IncSubtensor_serialize", "canonicalize"))
def local_IncSubtensor_serialize(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Turns a sum of incremented arrays into successive increments of their sum.

    Then each increment can overwrite the previous result. Sums of sums are taken apart as a whole:
    if each sum handed its increments to the next one, there would be quadratically many steps.
    """
    out: Var
    (out,) = node.outputs
    if not any(_is_increment(x, out.type) for x in node.inputs):
        return None
    top = _outermost_sum(node)
    terms, increments = _terms_and_increments(top)
    needed = [x for x in terms if number_within(x) != 0] or terms[:1]
    total = needed[0] if len(needed) == 1 else elemwise("add")(*needed)
    if total.type != out.type:
        total = elemwise("add")(*terms)
    for increment in increments:
        total = increment.op(total, *increment.inputs[1:])
    return {top.outputs[0]: total} if total.type == out.type else None


def _outermost_sum(node: Apply) -> Apply:
    """Return the last of the sums that nothing but increments and sums read, one by one."""
    (out,) = node.outputs
    top, type_ = node, out.type
    while is_private(out):
        ((reader, i),) = out._clients
        if reader == "output" or reader.outputs[0].type != type_:
            break
        if row_name(reader) == "add":
            top = reader
        elif i != 0 or not _is_increment_of(reader):
            break
        (out,) = reader.outputs
    return top


def _terms_and_increments(top: Apply) -> tuple[list[Any], ...]:
    """Return the terms of a sum, and of the sums and increments in it, and these increments."""
    type_: Any = top.outputs[0].type
    increments: list[Any]
    terms, increments = [], []
    pending = list(reversed(top.inputs))
    while pending:
        x: Var = pending.pop()
        if isinstance(x, Apply):
            increments.append(x)
        elif _is_increment(x, type_):
            pending += [x.owner, x.owner.inputs[0]]
        elif x.type == type_ and is_private(x) and row_name(x.owner) == "add":
            pending += reversed(x.owner.inputs)
        else:
            terms.append(x)
    return terms, increments


@rule("row:mul", "row:neg", "row:true_div", stage=_TWICE)
def local_scaled_increment(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves factors of increments of zeros to the values.

    Then the gradient of a few rows of a table costs no operation on the whole table.
    """
    out: Var
    (out,) = node.outputs
    x: Var
    x, *factors = sorted(node.inputs, key=lambda v: not _of_zeros(v, out.type))
    made = _of_zeros(x, out.type)
    if not made or not all(all(f.type.broadcastable) for f in factors):
        return None
    if node.op.row_name == "true_div" and x is not node.inputs[0]:
        return None
    total = made[0].inputs[0]
    for each in made:
        _, y, *indices = each.inputs
        scaled = elemwise(node.op.row_name)(y, *(shuffled(f, ()) for f in factors))
        if scaled.type.dtype != out.type.dtype:
            return None
        total = each.op(total, scaled, *indices)
    return [total]


@rule("row:sub", stage=_TWICE)
def local_subtracted_increment(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the subtraction of increments of zeros by increments by the negative values."""
    out: Var
    (out,) = node.outputs
    x: Var
    total, x = node.inputs
    made = _of_zeros(x, out.type)
    if total.type != out.type or not made or number_within(total) is not None:
        return None
    for each in made:
        _, y, *indices = each.inputs
        total = each.op(total, elemwise("neg")(y), *indices)
    return [total]


def _of_zeros(x: Var, type_: TensorType) -> list[Any]:
    """Return the increments of zeros that make ``x``, the first one first; empty if others do."""
    made = []
    while _is_increment(x, type_) and x.owner.inputs[1].type.dtype == type_.dtype:
        made.append(x.owner)
        x = x.owner.inputs[0]
    return made[::-1] if type_.dtype in dtypes.FLOATS and number_within(x) == 0 else []


def _is_increment(x: Var, type_: TensorType) -> bool:
    return x.owner is not None and _is_increment_of(x.owner) and x.type == type_ and is_private(x)


def _is_increment_of(node: Apply) -> bool:
    op = node.op
    return isinstance(op, _INCREMENTS) and not op.set_instead_of_inc and not op.inplace


@rule(IncSubtensor, AdvancedIncSubtensor1, AdvancedIncSubtensor, stage="specialize")
def local_incsubtensor_of_its_dtype(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Casts the value of an increment to the dtype of the array, as C needs it."""
    x, y, *indices = node.inputs
    if x.type.dtype == y.type.dtype or not all(map(_is_real, (x, y))):
        return None
    return [node.op(x, cast(y, x.type.dtype), *indices)]


def _is_real(x: Var) -> bool:
    return x.type.dtype not in dtypes.COMPLEX
