"""Rules on shapes: lengths, allocations, reshapes.

Indexing is in ``subtensor``, joining in ``joins``; useless fills and DimShuffles are in
``canonicalize``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import is_plain, is_private, number, shuffled
from opwise.optimizers.shapefeature import same_length, tracked_shapes
from opwise.scalar import dtypes
from opwise.tensor.assertion import Assert
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.creation import Alloc, alloc
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.join import MakeVector, make_vector
from opwise.tensor.knownvalues import vector_entry
from opwise.tensor.reduce import CAReduce, Prod, Sum
from opwise.tensor.shape import (
    Rebroadcast,
    Reshape,
    Shape,
    Shape_i,
    length,
    patternbroadcast,
    reshape,
)
from opwise.tensor.variable import constant

_RUN = ("fast_run",)
_TWICE = ("canonicalize", "specialize")
_THRICE = ("canonicalize", "stabilize", "specialize")

# --- what rules on shapes share -------------------------------------------------------------------


def lengths_of(fgraph: FunctionGraph | None, var: Variable) -> Any:
    """Return a variable's shape as a tuple of 0-d int64 variables; None if it is not tracked."""
    feature = tracked_shapes(fgraph)
    return None if feature is None else feature.shape_of[var]


def are_lengths(lengths: Sequence[Any], known: Sequence[Variable]) -> bool:
    """Return whether lengths, integer variables or integers, are known to equal ``known``."""
    return len(lengths) == len(known) and all(
        same_length(length(n), m) for n, m in zip(lengths, known, strict=True)
    )


def as_type(var: Any, type_: Any) -> Any:
    """Return a variable of a type's dtype and ndim with the broadcast pattern of the type."""
    return var if var.type == type_ else patternbroadcast(var, type_.broadcastable)


def is_read_once(var: Any) -> bool:
    """Return whether only one reader needs the values of a computed variable."""
    if var.owner is None:
        return False
    readers = [client for client, _ in var.clients]
    counted = [c for c in readers if c == "output" or not isinstance(c.op, Shape | Shape_i)]
    return len(counted) == 1


def is_plain_unary(node: Any) -> bool:
    """Return whether an Apply is elementwise, with one input and one output, and not in place."""
    return is_plain(node) and len(node.inputs) == 1


# --- lengths --------------------------------------------------------------------------------------


@rule(Shape, stage=_TWICE)
def local_shape_to_shape_i(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a shape by a vector of lengths, each known or a Shape_i."""
    lengths = lengths_of(fgraph, node.inputs[0])
    if lengths is None:
        return None
    return [_vector(lengths)]


def _vector(entries: Sequence[Any]) -> Var:
    """Return a list of integers and integer variables as an int64 vector."""
    entries = [e if hasattr(e, "type") else int(e) for e in entries]
    if all(isinstance(e, int) for e in entries):
        return constant(np.array(entries, np.int64))
    return make_vector(*map(length, entries))


@rule(Shape_i, stage=_TWICE)
def local_track_shape_i(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Computes a length from the lengths of inputs, without computing the array."""
    (x,) = node.inputs
    lengths = lengths_of(fgraph, x)
    if lengths is None:
        return None
    known = lengths[node.op.i]
    if known.owner is not None and known.owner.op == node.op and known.owner.inputs[0] is x:
        return None
    return [known]


#: row of a reduction -> function of a list of numbers
_OF_NUMBERS = ("add", "mul", "maximum", "minimum", "and_", "or_")


@rule(CAReduce, stage=_TWICE)
def local_reduce_make_vector(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the reduction of a vector of numbers by the operation on the numbers."""
    maker = node.inputs[0].owner
    row = node.op.scalar_op.row
    if maker is None or type(maker.op) is not MakeVector or not maker.inputs:
        return None
    if row is None or row.name not in _OF_NUMBERS or node.op.axis == ():
        return None
    dtype = node.outputs[0].type.dtype
    numbers = [cast(x, dtype) for x in maker.inputs]
    if len(numbers) == 1:
        return numbers
    op = elemwise(row.name)
    return [op(*numbers) if row.nin < 0 else reduce(op, numbers)]


# --- numbers --------------------------------------------------------------------------------------


@rule(TensorFromScalar, stage=_TWICE)
def local_tensor_scalar_tensor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """tensor_from_scalar(scalar_from_tensor(x)) is x."""
    inner = node.inputs[0].owner
    return inner.inputs if inner is not None and isinstance(inner.op, ScalarFromTensor) else None


@rule(ScalarFromTensor, stage=_TWICE)
def local_scalar_tensor_scalar(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """scalar_from_tensor(tensor_from_scalar(x)) is x."""
    inner = node.inputs[0].owner
    return inner.inputs if inner is not None and isinstance(inner.op, TensorFromScalar) else None


# --- allocations ----------------------------------------------------------------------------------


@rule("row:second", stage=("stabilize", "specialize", "local_fill_to_alloc"))
def local_fill_to_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a fill by an Alloc, so that the values of the model are not computed."""
    value = node.inputs[1]
    (out,) = node.outputs
    if node.op.inplace_pattern:
        return None
    if value.type.broadcastable == out.type.broadcastable:
        return [value]
    lengths = lengths_of(fgraph, out)
    if lengths is None:
        return None
    return [as_type(alloc(_without_left_ones(value), *lengths), out.type)]


def _without_left_ones(x: Var) -> Var:
    """Return ``x`` without the dimensions of length 1 that were added on the left."""
    if isinstance(x, Constant) and x.type.ndim and x.type.broadcastable[0]:
        ones = x.type.broadcastable
        first = ones.index(False) if False in ones else len(ones)
        return shuffled(x, tuple(range(first, x.type.ndim)))
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return x
    (inner,) = x.owner.inputs
    kept = tuple(range(inner.type.ndim))
    added = len(x.owner.op.new_order) - len(kept)
    return inner if x.owner.op.new_order == ("x",) * added + kept else x


@rule(Alloc, stage=_THRICE)
def local_useless_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes an Alloc in the shape of its value."""
    value, *lengths = node.inputs
    (out,) = node.outputs
    if value.type.ndim != out.type.ndim:
        return None
    known = lengths_of(fgraph, value)
    if known is None or not are_lengths(lengths, known):
        return None
    return [as_type(value, out.type)]


@rule(Alloc, stage=_THRICE)
def local_canonicalize_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Adds dimensions of length 1 on the left by a DimShuffle instead of an Alloc."""
    value, *lengths = node.inputs
    (out,) = node.outputs
    added = 0
    while added < len(lengths) - value.type.ndim and out.type.broadcastable[added]:
        added += 1
    if not added or any(c != "output" and isinstance(c.op, Alloc) for c, _ in out.clients):
        return None  # an Alloc of an Alloc becomes one
    inner: Var = alloc(value, *lengths[added:]) if len(lengths) > added else value
    new = dimshuffle(inner, ["x"] * added + list(range(inner.type.ndim)))
    return [as_type(new, out.type)]


@rule(Alloc, stage=_THRICE)
def local_merge_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """An Alloc of an Alloc is one, if the lengths agree or are 1."""
    value, *lengths = node.inputs
    inner = value.owner
    if inner is None or type(inner.op) is not Alloc:
        return None
    first, *inner_lengths = inner.inputs
    ours = lengths[len(lengths) - len(inner_lengths) :]
    for n, ours_n, one in zip(inner_lengths, ours, value.type.broadcastable, strict=True):
        if not one and not same_length(length(n), length(ours_n)):
            return None
    return [as_type(alloc(first, *lengths), node.outputs[0].type)]


@rule(Elemwise, stage="specialize")
def local_alloc_unary(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves an Alloc behind an elementwise operation on its result."""
    allocated = _allocated_values(fgraph, node)
    if allocated is None or len(node.outputs) > 1:
        return None
    (out,) = node.outputs
    new = node.op(
        *(
            _without_left_ones(x if value is None else value)
            for x, value in zip(node.inputs, allocated, strict=True)
        )
    )
    lengths = lengths_of(fgraph, out)
    added = out.type.ndim - new.type.ndim
    repeated = [
        d
        for d, whole in enumerate(out.type.broadcastable)
        if not whole and (d < added or new.type.broadcastable[d - added])
    ]
    if not repeated:
        return None
    for x in node.inputs:
        dims = [d for d in repeated if not x.type.broadcastable[d]]
        if not are_lengths([lengths_of(fgraph, x)[d] for d in dims], [lengths[d] for d in dims]):
            return None
    return [as_type(alloc(new, *lengths), out.type)]


@rule(
    Elemwise,
    stage=("specialize", "local_elemwise_alloc"),
    tags=(*_RUN, "local_alloc_elemwise"),
)
def local_elemwise_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes the Alloc of an operand in the shape of others: it broadcasts instead.

    If the shapes are not known to agree, an Assert checks that.
    """
    allocated = _allocated_values(fgraph, node)
    if allocated is None:
        return None
    new = _Unallocated(fgraph, node.inputs, allocated).inputs()
    if new is None:
        return None
    outputs: list[Var] = node.op(*new, return_list=True)
    if any(a.type != b.type for a, b in zip(outputs, node.outputs, strict=True)):
        return None
    return outputs


def _allocated_values(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    """Return the allocated value of each operand, see below; None if there is none."""
    if node.op.inplace_pattern or not any(map(_allocation, node.inputs)):
        return None
    allocated = [_allocated_value(fgraph, x) for x in node.inputs]
    return None if all(value is None for value in allocated) else allocated


def _allocation(x: Var) -> Apply | None:
    """Return the Alloc of ``x``, perhaps below a DimShuffle, or None."""
    node = x.owner
    if node is not None and type(node.op) is DimShuffle:
        node = node.inputs[0].owner
    return node if node is not None and type(node.op) is Alloc else None


def _allocated_value(fgraph: FunctionGraph, x: Var) -> Var:
    """Return the allocated value of ``x``, with the dimensions of x, or None."""
    node = _allocation(x)
    if node is None:
        return None
    order = None if node is x.owner else x.owner.op.new_order
    value, *lengths = node.inputs
    own = [d for d, one in enumerate(value.type.broadcastable) if not one]
    added = len(lengths) - value.type.ndim
    known = lengths_of(fgraph, value)
    if known is None or not are_lengths([lengths[d + added] for d in own], [known[d] for d in own]):
        return None  # the value may be repeated along one of its own dimensions
    padded = ("x",) * added + tuple(range(value.type.ndim))
    return shuffled(value, padded if order is None else _composed(order, padded))


def _composed(order: Sequence[int | str], inner: tuple[int | str, ...]) -> tuple[int | str, ...]:
    return tuple(inner[o] if isinstance(o, int) else o for o in order)


class _Unallocated:
    """Finds the operands of an elementwise Apply that need not be allocated."""

    def __init__(
        self, fgraph: FunctionGraph, operands: Sequence[Var], values: Sequence[Var]
    ) -> None:
        self.fgraph = fgraph
        self.operands = operands
        self.values = values
        self.checks: dict[Any, Any] = {}

    def inputs(self) -> list[Var] | None:
        """Return the operands without superfluous Allocs; None if there are none."""
        new = list(self.operands)
        kept = [k for k, value in enumerate(self.values) if value is None]
        for k, value in enumerate(self.values):
            if value is None:
                continue
            if self._is_covered(k, value, kept):
                new[k] = value
            else:
                kept.append(k)
        if all(a is b for a, b in zip(new, self.operands, strict=True)):
            return None
        for k, conditions in self.checks.items():
            new[k] = Assert("operands of different shapes: one was allocated")(new[k], *conditions)
        return new

    def _is_covered(self, k: int, value: Any, kept: Sequence[int]) -> bool:
        """Return whether other operands have the lengths along which an operand is repeated."""
        x = self.operands[k]
        repeated = [
            d
            for d, (whole, own) in enumerate(
                zip(x.type.broadcastable, value.type.broadcastable, strict=True)
            )
            if own and not whole
        ]
        checks = []
        for d in repeated:
            covers = [j for j in kept if not self.operands[j].type.broadcastable[d]]
            if not covers:
                return False
            n = lengths_of(self.fgraph, x)[d]
            lengths = [lengths_of(self.fgraph, self.operands[j])[d] for j in covers]
            if not any(same_length(n, m) for m in lengths):
                checks.append((covers[0], elemwise("eq")(n, lengths[0])))
        for j, condition in checks:
            self.checks.setdefault(j, []).append(condition)
        return True


@rule(Sum, Prod, stage="specialize")
def local_opt_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A sum of equal numbers is a product, and a product of equal numbers is a power."""
    inner = node.inputs[0].owner
    if inner is None or type(inner.op) is not Alloc:
        return None
    value, *lengths = inner.inputs
    repeated = number(value)
    if repeated is None or not np.isfinite(repeated):
        return None  # infinity times 0 elements would be NaN
    (out,) = node.outputs
    axes = range(len(lengths)) if node.op.axis is None else node.op.axis
    new = _repeated(node.op, repeated, [length(lengths[a]) for a in axes], out.type.dtype)
    if new is None:
        return None
    kept = [n for d, n in enumerate(lengths) if d not in axes]
    return [as_type(alloc(new, *kept), out.type) if kept else new]


def _repeated(op: Op, value: Any, lengths: Sequence[Var], dtype: str) -> Var:
    """Return the sum, or the product, of ``value`` repeated as 0-d variable of ``dtype``."""
    if dtype in dtypes.COMPLEX or not lengths:
        return None
    count = lengths[0] if len(lengths) == 1 else elemwise("mul")(*lengths)
    wide = "float64" if dtype in dtypes.CONTINUOUS else dtype
    value = constant(np.asarray(value).astype(wide))
    if isinstance(op, Sum):
        return cast(elemwise("mul")(value, cast(count, wide)), dtype)
    if value.data == 1:
        return cast(value, dtype)
    if wide != "float64":
        return None  # powers of integers wrap around differently
    return cast(elemwise("pow")(value, cast(count, wide)), dtype)


@rule(Alloc, stage="uncanonicalize")
def local_alloc_dimshuffle(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes dimensions that are added on the left of the value of an Alloc."""
    value, *lengths = node.inputs
    inner = _without_left_ones(value)
    if inner is value:
        return None
    return [as_type(alloc(inner, *lengths), node.outputs[0].type)]


@rule(DimShuffle, stage="uncanonicalize")
def local_dimshuffle_alloc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Lets an Alloc make the dimensions that are added on its left."""
    (x,) = node.inputs
    if x.owner is None or type(x.owner.op) is not Alloc or not is_private(x):
        return None
    inner = _without_left_ones(node.outputs[0])
    if inner is not x:
        return None
    value, *lengths = x.owner.inputs
    added = node.outputs[0].type.ndim - x.type.ndim
    return [as_type(alloc(value, *([1] * added), *lengths), node.outputs[0].type)]


# --- reshapes -------------------------------------------------------------------------------------


@rule(Reshape, stage=("canonicalize", "stabilize"))
def local_useless_reshape(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes a reshape to the shape that the tensor has."""
    x, shp = node.inputs
    (out,) = node.outputs
    if x.type.ndim != out.type.ndim:
        return None
    known = lengths_of(fgraph, x)
    if known is None:
        return None
    entries = [vector_entry(shp, i) for i in range(out.type.ndim)]
    return [as_type(x, out.type)] if _are_entries(entries, known) else None


def _are_entries(entries: Sequence[Any], known: Sequence[Var]) -> bool:
    """Return whether the entries of a new shape are known lengths; one of them may be -1."""
    if None in entries or len(entries) != len(known):
        return False
    rest = [i for i, e in enumerate(entries) if not hasattr(e, "type") and e == -1]
    if len(rest) > 1:
        return False
    return all(i in rest or same_length(length(e), known[i]) for i, e in enumerate(entries))


@rule(Reshape, stage="canonicalize")
def local_reshape_chain(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A reshape of a reshape is one."""
    x: Var
    shp: Var
    x, shp = node.inputs
    if x.owner is None or not isinstance(x.owner.op, Reshape):
        return None
    return [_reshaped(x.owner.inputs[0], shp, node.outputs[0].type)]


def _reshaped(x: Var, shp: Var, type_: Type) -> Var:
    return as_type(reshape(x, shp, ndim=type_.ndim), type_)


@rule(Reshape, stage="canonicalize")
def local_reshape_to_dimshuffle(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Lets a DimShuffle add the dimensions of length 1 of a reshape.

    If the reshape does nothing else, it is removed.
    """
    x: Var
    x, shp = node.inputs
    out: Var
    (out,) = node.outputs
    dims = [d for d, one in enumerate(x.type.broadcastable) if not one]
    kept = [d for d, one in enumerate(out.type.broadcastable) if not one]
    entries = [vector_entry(shp, d) for d in kept]
    lengths = lengths_of(fgraph, x)
    if lengths is None or None in entries:
        return None
    if _are_entries(entries, [lengths[d] for d in dims]):
        return [_with_ones(x, dims, out.type)]
    if len(kept) == out.type.ndim:
        return None
    inner: Var = reshape(x, _vector(entries), ndim=len(kept))
    return [_with_ones(inner, range(len(kept)), out.type)]


def _with_ones(x: Var, dims: Iterable[int], type_: Type) -> Var:
    """Return ``x`` with its dimensions ``dims`` at those that a type does not broadcast."""
    left = iter(dims)
    order = tuple("x" if one else next(left) for one in type_.broadcastable)
    return as_type(shuffled(x, order), type_)


def _reshape_of_dimshuffle(fgraph: FunctionGraph, node: Apply) -> list[Var] | None:
    shp: Var
    x, shp = node.inputs
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return None
    inner: Var
    (inner,) = x.owner.inputs
    ones = inner.type.broadcastable
    order = [o for o in x.owner.op.new_order if isinstance(o, int) and not ones[o]]
    if order != sorted(order):
        return None
    return [_reshaped(inner, shp, node.outputs[0].type)]


@rule(Reshape, stage="canonicalize")
def local_useless_dimshuffle_in_reshape(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes DimShuffles that only add, drop or move dimensions of length 1 before a reshape."""
    return _reshape_of_dimshuffle(fgraph, node)


@rule(Reshape, stage="uncanonicalize")
def local_reshape_dimshuffle(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Lets a reshape make dimensions of length 1 again, which a DimShuffle added behind it."""
    return _reshape_of_dimshuffle(fgraph, node)


@rule(
    Reshape,
    # Flatten, of the second name, is a Reshape
    stage=("canonicalize", "stabilize"),
    tags=(*_RUN, "local_flatten_lift"),
)
def local_reshape_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves a reshape before an elementwise operation on one tensor and numbers."""
    x, shp = node.inputs
    inner = x.owner
    if inner is None or not isinstance(inner.op, Elemwise) or len(inner.outputs) > 1:
        return None
    if inner.op.inplace_pattern or not is_read_once(x):
        return None
    tensors = [v for v in inner.inputs if v.type.broadcastable == x.type.broadcastable]
    others = [v for v in inner.inputs if not any(v is t for t in tensors)]
    if len(tensors) != 1 or not all(all(v.type.broadcastable) for v in others):
        return None
    operands = [
        reshape(v, shp, ndim=node.op.ndim) if v is tensors[0] else shuffled(v, ())
        for v in inner.inputs
    ]
    return [as_type(inner.op(*operands), node.outputs[0].type)]


# --- promises of length 1 -------------------------------------------------------------------------


@rule(Rebroadcast, stage=_TWICE)
def local_useless_rebroadcast(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes a Rebroadcast to the pattern that the tensor has."""
    (x,) = node.inputs
    (out,) = node.outputs
    if x.type == out.type:
        return [x]
    pattern = x.type.broadcastable
    if any(pattern[d] == flag for d, flag in node.op.axis.items()):
        return [as_type(x, out.type)]
    return None


@rule(Rebroadcast, stage=_TWICE)
def local_rebroadcast_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves Rebroadcasts before elementwise operations, and merges successive ones."""
    (x,) = node.inputs
    (out,) = node.outputs
    inner: Any = x.owner
    if inner is not None and isinstance(inner.op, Rebroadcast):
        return [as_type(inner.inputs[0], out.type)]
    if is_plain_unary(inner) and is_private(x):
        return [inner.op(node.op(inner.inputs[0]))]
    return None
