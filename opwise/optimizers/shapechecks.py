"""The checks of shapes that rewrites drop, and an Op that makes them all the same.

An Op checks the shapes of its operands when it runs. A rewrite that drops an operand (``x * 0``
becomes zeros) drops the check as well. ``conditions`` has the checks of each Op; those of the graph
as written are compared with those of the optimized graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from opwise.errors import ShapeError
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.traversal import clone, inputs, io_toposort
from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers import stages
from opwise.optimizers.database import Query
from opwise.optimizers.shapefeature import ShapeFeature
from opwise.tensor.advanced_subtensor import AdvancedIncSubtensor1
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.creation import Alloc
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise, elemwise
from opwise.tensor.gathered import Gathered
from opwise.tensor.join import Join
from opwise.tensor.knownvalues import vector_entry
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.rowsoftmax import SoftmaxGrad, SoftmaxWithBias
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.shape import Rebroadcast, Reshape, Shape, Shape_i, length
from opwise.tensor.subtensor import IncSubtensor, Subtensor
from opwise.tensor.type import TensorType


@dataclass(frozen=True)
class LengthCondition:
    """Two lengths that an Apply needs to be equal."""

    node: Apply
    #: the lengths, 0-d int64 variables or whatever ``conditions`` is given
    a: Any
    b: Any
    #: a function, and arguments, that return ``what``
    describe: Callable[..., str]
    about: tuple[Any, ...]

    @property
    def what(self) -> str:
        """A text about the lengths, with two placeholders for them."""
        return self.describe(*self.about)


# --- what each Op checks --------------------------------------------------------------------------


def conditions(node: Apply, shapes: Sequence[Any]) -> Iterator[LengthCondition]:
    """Yield the Conditions of an Apply. shapes: of its inputs, tuples of lengths or None."""
    kind: type = type(node.op)
    for function in _checks_of(kind):
        yield from function(node, shapes)


@cache
def _checks_of(kind: type) -> list[Callable[..., Iterator[LengthCondition]]]:
    return [function for cls, function in _CHECKS.items() if issubclass(kind, cls)]


def _equal(
    node: Apply, shapes: Sequence[Lengths], i: int, dim_i: int, j: int, dim_j: int
) -> Iterator[LengthCondition]:
    """Yield the condition that two dimensions of inputs ``i`` and ``j`` have equal lengths."""
    x, y = node.inputs[i], node.inputs[j]
    dim_i, dim_j = dim_i % x.type.ndim, dim_j % y.type.ndim
    yield LengthCondition(
        node, shapes[i][dim_i], shapes[j][dim_j], _both, (x, dim_i, y, dim_j)
    )  # fmt: skip


def _both(x: Var, dim_x: int, y: Var, dim_y: int) -> str:
    return (
        f"dimension {dim_x} of {_called(x)} has length {{}} and dimension {dim_y} of "
        f"{_called(y)} has length {{}}"
    )


def _called(var: Var) -> str:
    return str(var).replace("{", "{{").replace("}", "}}")


def _elementwise(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    for dim in range(node.inputs[0].type.ndim if node.inputs else 0):
        those = [i for i, v in enumerate(node.inputs) if not v.type.broadcastable[dim]]
        for i in those[1:]:
            yield from _equal(node, shapes, those[0], dim, i, dim)


def _gathered(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    tables = {k for k, _ in node.op.taken}
    those = [
        i for i, v in enumerate(node.inputs) if i not in tables and not v.type.broadcastable[0]
    ]
    for i in those[1:]:
        yield from _equal(node, shapes, those[0], 0, i, 0)


def _inner(
    node: Apply, shapes: Sequence[Lengths], i: int = 0, j: int = 1
) -> Iterator[LengthCondition]:
    x, y = node.inputs[i], node.inputs[j]
    if x.type.ndim and y.type.ndim:
        yield from _equal(node, shapes, i, -1, j, max(y.type.ndim - 2, 0))


def _gemm(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _inner(node, shapes, 2, 3)
    yield from _equal(node, shapes, 0, 0, 2, 0)
    yield from _equal(node, shapes, 0, 1, 3, 1)


def _gemv(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _equal(node, shapes, 2, 1, 3, 0)
    yield from _equal(node, shapes, 0, 0, 2, 0)


def _ger(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _equal(node, shapes, 0, 0, 2, 0)
    yield from _equal(node, shapes, 0, 1, 3, 0)


def _batched(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    x, y = node.inputs
    yield from _equal(node, shapes, 0, 0, 1, 0)
    if x.type.ndim == 1 or y.type.ndim == 1:
        return
    yield from _equal(node, shapes, 0, -1, 1, 1)


def _join(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    axis = node.inputs[0]
    if not isinstance(axis, Constant):
        return
    ndim = node.inputs[1].type.ndim
    for dim in range(ndim):
        if dim != int(axis.data) % ndim:
            for i in range(2, len(node.inputs)):
                yield from _equal(node, shapes, 1, dim, i, dim)


def _fits(node: Apply, part: Any, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    """Yield the conditions for input 1 to broadcast to a part of input 0."""
    y = node.inputs[1]
    for dim in range(y.type.ndim):
        at = len(part) - y.type.ndim + dim
        if not y.type.broadcastable[dim] and at >= 0:
            what = f"dimension {dim} of {_called(y)} has length {{}} and the part that it is put "
            yield LengthCondition(
                node, shapes[1][dim], part[at], str, (f"{what}into has length {{}}",)
            )


def _part(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    x, _, *index = node.inputs
    read = Subtensor(node.op.idx_list).make_node(x, *index)
    (part,) = read.op.infer_shape(read, [shapes[0], *shapes[2:]])
    yield from _fits(node, part, shapes)


def _rows(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _fits(node, (*shapes[2][:1], *shapes[0][1:]), shapes)


def _alloc(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    value, *lengths = node.inputs
    added = len(lengths) - value.type.ndim
    for dim in range(value.type.ndim):
        if not value.type.broadcastable[dim]:
            what = f"dimension {dim} of {_called(value)} has length {{}} and is to fill {{}}"
            yield LengthCondition(node, shapes[0][dim], length(lengths[added + dim]), str, (what,))


def _reshape(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    x, new = node.inputs
    entries = [vector_entry(new, i) for i in range(node.op.ndim)]
    if None not in entries and all(map(_is_a_length, entries)):
        what = f"{_called(x)} has {{}} elements and gets a shape for {{}}"
        yield LengthCondition(node, _product(shapes[0]), _product(entries), str, (what,))


def _is_a_length(entry: Any) -> Any:
    """Return whether an entry of a new shape is certainly not -1."""
    if not isinstance(entry, Variable):
        return entry >= 0
    if isinstance(entry, Constant):
        return entry.data >= 0
    if entry.owner is None or isinstance(entry.owner.op, Shape_i):
        return entry.owner is not None
    of = entry.owner.inputs[0].owner
    return isinstance(entry.owner.op, Subtensor) and of is not None and isinstance(of.op, Shape)


def _product(lengths: Sequence[Any]) -> Var:
    known, others = 1, []
    for n in map(length, lengths):
        if isinstance(n, Constant):
            known *= int(n.data)
        else:
            others.append(n)
    if not others or not known:
        return length(known)
    others = others if known == 1 else [length(known), *others]
    return others[0] if len(others) == 1 else elemwise("mul")(*others)


def _ones(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    (x,) = node.inputs
    for dim, one in enumerate(node.outputs[0].type.broadcastable):
        if one and not x.type.broadcastable[dim]:
            what = f"dimension {dim} of {_called(x)} has length {{}} and must have {{}}"
            yield LengthCondition(node, shapes[0][dim], length(1), str, (what,))


def _bias(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _equal(node, shapes, 0, 1, 1, 0)


def _bias_and_labels(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _bias(node, shapes)
    yield from _equal(node, shapes, 0, 0, 2, 0)


def _labels(node: Apply, shapes: Sequence[Lengths]) -> Iterator[LengthCondition]:
    yield from _equal(node, shapes, 0, 0, 1, 0)


#: class of Ops -> function that yields the conditions of an Apply
_CHECKS = {
    Elemwise: _elementwise, MapReduce: _elementwise, Rowwise: _elementwise,
    SoftmaxGrad: _elementwise, Gathered: _gathered,
    Dot: _inner, Dot22: _inner, Dot22Scalar: _inner, BatchedDot: _batched,
    Gemm: _gemm, Gemv: _gemv, Ger: _ger,
    Join: _join, IncSubtensor: _part, AdvancedIncSubtensor1: _rows,
    Alloc: _alloc, Reshape: _reshape, Rebroadcast: _ones,
    SoftmaxWithBias: _bias, CrossentropySoftmaxArgmax1HotWithBias: _bias_and_labels,
    CrossentropyCategorical1Hot: _labels,
}  # fmt: skip

#: those whose conditions are about lengths of inputs alone, and compute none from others
BY_LENGTHS_ALONE = frozenset(
    cls for cls, function in _CHECKS.items()
    if function not in (_part, _rows, _alloc, _reshape, _ones)
)  # fmt: skip


def all_conditions(fgraph: FunctionGraph) -> list[LengthCondition]:
    """Return the Conditions of all Applys of a graph, in the order of the graph."""
    feature = fgraph.find_feature(ShapeFeature)
    if feature is not None:
        return _all_conditions(fgraph, feature)
    feature = ShapeFeature()
    fgraph.attach_feature(feature)
    try:
        return _all_conditions(fgraph, feature)
    finally:
        fgraph.remove_feature(feature)


def _all_conditions(fgraph: FunctionGraph, feature: ShapeFeature) -> list[LengthCondition]:
    found: list[LengthCondition] = []
    for node in fgraph.toposort():
        if isinstance(node.op, LengthsAgree) or not any(isinstance(node.op, c) for c in _CHECKS):
            continue
        try:
            shapes = [
                feature.shape_tuple(v) if isinstance(v.type, TensorType) else None
                for v in node.inputs
            ]
            found += conditions(node, shapes)
        except (ShapeError, NotImplementedError):
            continue  # unknown shapes cannot be compared
    return found


# --- the Op ---------------------------------------------------------------------------------------


class LengthsAgree(Op):
    """Returns its first input; raises ValueError unless the others, pairs of lengths, are equal.

    what: a text for each pair, with two placeholders for lengths.
    """

    __props__ = ("what",)
    view_map = {0: [0]}

    def __init__(self, what: tuple[str, ...]) -> None:
        self.what = what

    def make_node(self, x: Var, *lengths: Var) -> Apply:
        return Apply(self, [x, *lengths], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, *lengths = inputs
        pairs = zip(lengths[::2], lengths[1::2], strict=True)
        for what, (a, b) in zip(self.what, pairs, strict=True):
            if int(a) != int(b):
                raise ValueError(
                    f"Shapes do not fit: {what.format(int(a), int(b))}. Rewrites dropped the Apply "
                    "that would have raised this; without the flag keep_shape_checks the function "
                    "would give a result. Give operands of equal lengths."
                )
        output_storage[0][0] = x

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return shapes[:1]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{len(self.what)}}}"


def insert(fgraph: FunctionGraph) -> list[Variable]:
    """Make the first output of a graph depend on all of its present conditions.

    Returns copies of their lengths (a, b, a, b, ...), which no rewrite changes.
    """
    found = [c for c in all_conditions(fgraph) if c.a is not c.b] if fgraph.outputs else []
    if not found:
        return []
    _hang(fgraph, 0, fgraph.outputs[0], [(c.a, c.b, described(c)) for c in found])
    lengths = [n for c in found for n in (c.a, c.b)]
    return clone(fgraph.inputs, lengths, copy_inputs=False)[1]


def described(condition: LengthCondition) -> str:
    """Return a text about a condition, with two placeholders for the lengths."""
    line = provenance.user_line(condition.node)
    where = "" if line is None else f' (File "{line[0]}", line {line[1]})'
    named = f"{condition.node.op}{where}".replace("{", "{{").replace("}", "}}")
    return f"in {named}, {condition.what}"


def _hang(fgraph: FunctionGraph, k: int, out: Var, pairs: Sequence[Any]) -> None:
    """Replace output ``k`` by ``out`` with checks of (length, length, text)."""
    if pairs:
        op = LengthsAgree(tuple(what for _, _, what in pairs))
        checked = op.make_node(out, *(n for a, b, _ in pairs for n in (a, b)))
        checked._origins = out.owner.origins if out.owner is not None else ()
        out = checked.outputs[0]
    fgraph.change_input("output", k, out, reason="keep_shape_checks")


def keep_dropped(fgraph: FunctionGraph, written: list[Variable]) -> list[str]:
    """Keep those conditions of ``insert`` that no Apply of the optimized graph checks.

    written: the result of ``insert``. Returns the texts of the conditions that are kept, with
    ``...`` for lengths that are not constant.
    """
    k, check = next(
        ((k, v.owner) for k, v in enumerate(fgraph.outputs)
         if v.owner is not None and isinstance(v.owner.op, LengthsAgree)),
        (0, None),
    )  # fmt: skip
    if check is None:
        return []
    out, *lengths = check.inputs
    pairs = list(zip(lengths[::2], lengths[1::2], check.op.what, strict=True))
    checked = [n for c in all_conditions(fgraph) for n in (c.a, c.b)]
    # in one graph, so that equal lengths get one form
    simple = _simplified([*written, *checked])
    simple = list(zip(simple[::2], simple[1::2], strict=True))
    kept = _not_implied(pairs, simple[: len(pairs)], simple[len(pairs) :])
    _hang(fgraph, k, out, kept)
    return [what.format(_number(a), _number(b)) for a, b, what in kept]


def _not_implied(
    wanted: Sequence[tuple[Any, ...]], pairs: Sequence[Any], still: Sequence[tuple[Var, ...]]
) -> list[tuple[Any, ...]]:
    """Return those of ``wanted`` that do not follow from the other conditions."""
    known, kept = _Equalities(), []
    for a, b in still:
        known.join(a, b)
    for one, (a, b) in zip(wanted, pairs, strict=True):
        if not known.same(a, b):
            known.join(a, b)  # the next one may be the same
            kept.append(one)
    return kept


def _simplified(lengths: Sequence[Var]) -> list[Var]:
    """Return lengths after canonicalization in a graph of their own."""
    leaves = [v for v in inputs(lengths) if not isinstance(v, Constant)]
    graph = FunctionGraph(leaves, lengths, clone=True)
    with provenance.rewriting():
        stages.optimize(graph, _CANONICAL)
    return graph.outputs


_CANONICAL = Query(include=["fast_run"], position_cutoff=1.3)


def _number(n: Any) -> int | str:
    return str(int(n.data)) if isinstance(n, Constant) else "..."


class _Equalities:
    """Which lengths are equal, by what they are computed from."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._parent: list[int] = []

    def join(self, a: Any, b: Any) -> None:
        a, b = self._find(a), self._find(b)
        if a != b:
            self._parent[max(a, b)] = min(a, b)

    def same(self, a: Any, b: Any) -> bool:
        return self._find(a) == self._find(b)

    def _find(self, var: Var) -> int:
        n = self._number(var)
        while self._parent[n] != n:
            n = self._parent[n]
        return n

    def _number(self, var: Var) -> int:
        for node in io_toposort([], [var]):
            inputs = tuple(map(self._leaf_or_known, node.inputs))
            row = getattr(getattr(node.op, "scalar_op", None), "row", None)
            if row is not None and row.commutative:
                inputs = tuple(sorted(inputs))
            for i, out in enumerate(node.outputs):
                self._numbers[out] = self._numbered((node.op, i, inputs))
        return self._leaf_or_known(var)

    def _leaf_or_known(self, var: Var) -> int:
        if isinstance(var, Constant):
            return self._numbered(("constant", str(var.data)))
        return self._numbers[var] if var.owner is not None else self._numbered(var)

    def _numbered(self, key: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._parent)
            self._parent.append(len(self._parent))
        return self._numbers[key]
