"""Rules on joined tensors: useless joins and splits, parts of joins, elementwise work on stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import is_plain, shuffled
from opwise.optimizers.rules.shape import as_type, is_read_once, lengths_of
from opwise.optimizers.rules.subtensor import index_of, part_of
from opwise.optimizers.shapefeature import same_length
from opwise.tensor.assertion import Assert
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.join import Join, MakeVector, Split, join, vector_of
from opwise.tensor.knownvalues import known_length, vector_entry
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.shape import Shape, Shape_i, length, shape_i
from opwise.tensor.slices import known_int
from opwise.tensor.subtensor import Subtensor
from opwise.tensor.variable import constant

_TWICE = ("canonicalize", "specialize")

# --- joins and splits that do little --------------------------------------------------------------


@rule(Join, stage=_TWICE)
def local_join_1(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes a Join of a single tensor."""
    if len(node.inputs) != 2:
        return None
    return [as_type(node.inputs[1], node.outputs[0].type)]


@rule(Join, stage=_TWICE)
def local_join_empty(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes tensors of length 0 along the axis from a Join."""
    axis: Var
    axis, *parts = node.inputs
    axis = known_int(axis)
    if axis is None:
        return None
    filled = [x for x in parts if not _is_empty(fgraph, x, axis)]
    if not filled or len(filled) == len(parts):
        return None
    (out,) = node.outputs
    return [as_type(cast(join(axis, *filled), out.type.dtype), out.type)]


def _is_empty(fgraph: FunctionGraph, x: Var, axis: Any) -> bool:
    if isinstance(x, Constant):
        return bool(x.data.shape[axis] == 0)
    if x.owner is None:
        return False
    lengths = lengths_of(fgraph, x)
    return lengths is not None and known_int(lengths[axis]) == 0


#: the longest constant that is taken apart to be joined to single numbers
_LONGEST = 16


@rule(Join, stage=_TWICE)
def local_join_make_vector(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a Join of vectors of numbers by one MakeVector."""
    axis, *parts = node.inputs
    (out,) = node.outputs
    if out.type.ndim != 1 or len(parts) < 2:
        return None
    groups: list[Any] = []
    for x in parts:
        numbers = _numbers(x)
        if numbers is not None and groups and groups[-1][1] is not None:
            groups[-1][1].extend(numbers)
        else:
            groups.append((x, numbers))
    if len(groups) == len(parts):
        return None
    joined = [x if numbers is None else vector_of(numbers) for x, numbers in groups]
    return [as_type(cast(join(axis, *joined), out.type.dtype), out.type)]


def _numbers(x: Var) -> list[Var] | None:
    """Return the numbers of a MakeVector or of a short constant, or None."""
    if isinstance(x, Constant) and 0 < len(x.data) <= _LONGEST:
        return [constant(n) for n in x.data]
    if x.owner is not None and type(x.owner.op) is MakeVector and x.owner.inputs:
        return list(x.owner.inputs)
    return None


@rule(Split, stage=_TWICE)
def local_useless_split(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes a Split into one part, with a check that the part is the whole."""
    if node.op.len_splits != 1:
        return None
    axis: Var
    x, axis, splits = node.inputs
    axis = known_int(axis)
    lengths = lengths_of(fgraph, x)
    if axis is None or lengths is None:
        return None
    n, conditions = vector_entry(splits, 0) if known_length(splits) == 1 else None, []
    if n is None:
        n = sum_(splits, dtype="int64")
        conditions.append(elemwise("eq")(shape_i(splits, 0, fgraph), 1))
    if not same_length(length(n), lengths[axis]):
        conditions.append(elemwise("eq")(length(n), lengths[axis]))
    if conditions:
        x = Assert("the only part of a tensor is not as long as the tensor")(x, *conditions)
    return [as_type(x, node.outputs[0].type)]


# --- parts of joined tensors ----------------------------------------------------------------------


@rule(Subtensor, stage=_TWICE)
def local_subtensor_of_join(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a part of joined tensors that lies within one of them by a part of that one."""
    x = node.inputs[0]
    if x.owner is None or type(x.owner.op) is not Join:
        return None
    axis = _axis_of(x)
    if axis is None:
        return None
    index = index_of(node)
    found = _within_one(fgraph, x.owner.inputs[1:], axis, index[axis])
    if found is None:
        return None
    piece, index[axis] = found
    (out,) = node.outputs
    return [as_type(cast(part_of(piece, index), out.type.dtype), out.type)]


def _axis_of(joined: Var) -> int | None:
    """Return the axis of a join, counted from the first, if it is known and there is one."""
    axis, ndim = known_int(joined.owner.inputs[0]), joined.type.ndim
    return axis % ndim if axis is not None and -ndim <= axis < ndim else None


def _within_one(
    fgraph: FunctionGraph, pieces: Sequence[Var], axis: Any, item: Any
) -> tuple[Any, ...] | None:
    """Return the piece that an index along the axis of a join stays in, with the index there."""
    if isinstance(item, int) and item < 0:
        return _from_end(fgraph, pieces, axis, item)
    bounds = _bounds(item)
    if bounds is None:
        return None
    start, stop = bounds
    for piece in pieces[:-1]:
        n = _known_size(fgraph, piece, axis)
        if n is None or (start < n and (stop is None or stop > n)):
            return None
        if start < n:
            break
        start, stop = start - n, None if stop is None else stop - n
    else:
        piece = pieces[-1]
    return piece, slice(start or None, stop, item.step) if isinstance(item, slice) else start


def _bounds(item: Any) -> tuple[int, int | None] | None:
    """Return the known start and stop, perhaps None, of an index that goes forward; or None."""
    if isinstance(item, int):
        return item, item + 1
    if not isinstance(item, slice):
        return None
    start, step = (default if n is None else n for n, default in ((item.start, 0), (item.step, 1)))
    if not (isinstance(start, int) and isinstance(step, int) and start >= 0 and step > 0):
        return None
    if item.stop is None or (isinstance(item.stop, int) and item.stop > start):
        return start, item.stop
    return None


def _from_end(
    fgraph: FunctionGraph, pieces: Sequence[Var], axis: Any, i: int
) -> tuple[Any, ...] | None:
    """Return the same for a number that counts from the end of the last piece."""
    for piece in reversed(pieces[1:]):
        n = _known_size(fgraph, piece, axis)
        if n is None:
            return None
        if i >= -n:
            return piece, i
        i += n
    return pieces[0], i


def _known_size(fgraph: FunctionGraph, x: Var, axis: Any) -> int | None:
    """Return the length of a tensor along an axis as an int, or None."""
    if x.type.broadcastable[axis]:
        return 1
    lengths = lengths_of(fgraph, x)
    return None if lengths is None else known_int(lengths[axis])


# --- elementwise work on stacked tensors ----------------------------------------------------------

#: elementwise work is done on each of so many stacked tensors at most
_MOST = 8
#: a stack that more Applys read is not looked at: each of them would ask about all others
_MOST_READERS = 16
#: so many Applys deep, what only elementwise work on a stack reads is done on each tensor too
_DEEPEST = 4


@rule(Elemwise, stage="specialize")
def local_elemwise_of_stack(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """f(stack([a, b]), y) is stack([f(a, y[0]), f(b, y[1])]), so that f is fused with a and b.

    Where all that is read of a stack are its tensors, it is not made at all.
    """
    if not is_plain(node):
        return None
    stacks = [found for found in map(_stacked, node.inputs) if found is not None]
    computed = next((found for found in stacks if _is_computed(found[1])), None)
    if computed is None or len(computed[1]) > _MOST:
        return None
    axis, pieces = computed
    operands = [_taken_apart(fgraph, x, axis, len(pieces)) for x in node.inputs]
    if None in operands:
        return None
    results = [node.op(*parts) for parts in zip(*operands, strict=True)]
    (out,) = node.outputs
    if out.type.ndim == 1:
        return [as_type(vector_of(results), out.type)]
    order: list[Any] = list(range(out.type.ndim - 1))
    order.insert(axis, "x")
    return [as_type(join(axis, *(shuffled(x, order) for x in results)), out.type)]


@rule(DimShuffle, stage="canonicalize")
def local_dimshuffle_of_stack(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Stacks transposed tensors instead of transposing a stack that elementwise work reads."""
    (x,), (out,) = node.inputs, node.outputs
    order = node.op.new_order
    if x.owner is None or type(x.owner.op) is not Join or not is_read_once(x):
        return None
    found = _pieces(x)
    if found is None or found[0] not in order or not _is_computed(found[1]):
        return None
    axis = order.index(found[0])
    if not all(_takes_apart(client, axis) for client, _ in out.clients):
        return None
    pieces = [cast(shuffled(piece, order), out.type.dtype) for piece in found[1]]
    return [as_type(join(axis, *pieces), out.type)]


def _stacked(x: Var) -> tuple[int, list[Var]] | None:
    """Return the axis and the tensors of a stack that only elementwise work reads, or its parts.

    The tensors do not have the axis. None for another variable.
    """
    found = None if x.owner is None else _pieces(x)
    if found is None or len(found[1]) < 2 or len(x.clients) > _MOST_READERS:
        return None
    axis, pieces = found
    if not all(_takes_apart(client, axis) for client, _ in x.clients):
        return None
    return axis, [cast(_without(piece, axis), x.type.dtype) for piece in pieces]


def _pieces(x: Var) -> tuple[int, list[Var]] | None:
    """Return the axis and the tensors of a computed variable that is a stack; else None."""
    if type(x.owner.op) is MakeVector:
        return 0, x.owner.inputs
    if type(x.owner.op) is not Join:
        return None
    axis, pieces = _axis_of(x), x.owner.inputs[1:]
    if axis is None or not all(piece.type.broadcastable[axis] for piece in pieces):
        return None
    return axis, pieces


def _without(x: Var, axis: Any) -> Var:
    """Return a tensor without an axis along which its length is 1; a number as it is."""
    return shuffled(x, [d for d in range(x.type.ndim) if d != axis])


def _takes_apart(reader: Any, axis: Any) -> bool:
    if reader == "output":
        return False
    return is_plain(reader) or isinstance(reader.op, Shape | Shape_i) or _picks(reader, axis)


def _picks(reader: Any, axis: Any) -> bool:
    return (
        reader != "output"
        and isinstance(reader.op, Subtensor)
        and isinstance(index_of(reader)[axis], int)
    )


def _is_computed(pieces: Sequence[Var]) -> bool:
    """Return whether elementwise work can be fused with all tensors of a stack, of one at least."""
    sources = [_source(x) for x in pieces]
    fused = [x.owner is not None and isinstance(x.owner.op, Elemwise) for x in sources]
    return any(fused) and all(
        is_elemwise or x.owner is None or isinstance(x.owner.op, Subtensor) or x.type.ndim == 0
        for is_elemwise, x in zip(fused, sources, strict=True)
    )


def _source(x: Var) -> Var:
    """Return what DimShuffles show in another order."""
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        (x,) = x.owner.inputs
    return x


def _taken_apart(
    fgraph: FunctionGraph, x: Var, axis: Any, n: Any, depth: int = 0
) -> list[Var] | None:
    """Return the ``n`` parts of an operand along an axis; None if reading them is slow."""
    if x.type.broadcastable[axis]:
        return [_without(x, axis)] * n
    found = _stacked(x)
    if found is not None:
        return found[1] if found[0] == axis and len(found[1]) == n else None
    if is_plain(x.owner) and is_read_once(x):
        if depth == _DEEPEST:
            return None
        operands = [_taken_apart(fgraph, y, axis, n, depth + 1) for y in x.owner.inputs]
        if None in operands:
            return None
        return [x.owner.op(*parts) for parts in zip(*operands, strict=True)]
    if axis and not any(_picks(client, axis) for client, _ in x.clients):
        return None  # it would be read with gaps
    is_checked = _known_size(fgraph, x, axis) != n
    if is_checked and x.type.ndim == 1:
        return None  # the check of a few numbers takes longer than work on them
    before = [slice(None)] * axis
    parts = [part_of(x, [*before, i]) for i in range(n)]
    if is_checked:  # elementwise work on all of x would find that its length is another
        message = f"{n} stacked tensors and the length of axis {axis} of another operand differ"
        parts[-1] = Assert(message)(parts[-1], elemwise("eq")(shape_i(x, axis, fgraph), n))
    return parts
