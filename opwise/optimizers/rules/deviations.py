"""Sums of deviations from a mean, computed in the pass over the array that computes the mean.

Variances, normalisations and their gradients need sums of x - c and of (x - c)^2, where c depends
on the sum of x: another pass over x. They follow from sums of deviations from any other number s,
which the first pass can compute. With d = x - s, n elements and m = s + sum(d) / n, exactly:

    sum(x - c)     =  sum(d) + n (s - c)
    sum((x - c)^2) =  sum(d^2) - sum(d)^2 / n  +  n (m - c)^2

All of it is computed in float64. The difference cancels little if s is near the elements: s is the
first of them. Its relative rounding error is at most n times that of float64, if the first element
is far from all others, and a few times that of float64 otherwise.
"""

from __future__ import annotations

from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rules.matching import operands, row_name, shuffled
from opwise.optimizers.shapefeature import tracked_shapes
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.reduce import FirstAlong, Sum, axes_of
from opwise.tensor.shape import shape_i_op
from opwise.tensor.variable import constant

#: how many Applys between a sum and what is subtracted are looked at
_MOST_BETWEEN = 64
#: through how many Applys the first element is looked up
_DEEPEST = 8


class DeviationOptimizer(Optimizer):
    """Computes sums of deviations in the pass that computes the sum that they depend on."""

    name = "sums_of_deviations"

    def apply(self, fgraph: FunctionGraph) -> Any:
        _merge_sums(fgraph)
        known: dict[tuple[Any, ...], _Sums] = {}
        pairs = []
        for node in fgraph.toposort():
            found = _deviations(node)
            if found is None:
                continue
            x, c, squared = found
            axes = axes_of(node)
            if not any(_depends(c, total) for total in _sums_of(x, axes)):
                continue
            if (x, axes) not in known:
                known[x, axes] = _Sums(fgraph, x, axes)
            sums = known[x, axes]
            wide = sums.of_squares(c) if squared else sums.of_deviations(c)
            (out,) = node.outputs
            kept = tuple(d for d in range(x.type.ndim) if d not in axes)
            new = shuffled(cast(wide, out.type.dtype), kept)
            if new.type == out.type:
                pairs.append((out, new))
        if pairs:
            fgraph.replace_all(pairs, reason=self.name)


def _merge_sums(fgraph: FunctionGraph) -> None:
    """Merge equal sums: rules that take factors out of sums leave several of one array."""
    first: dict[tuple[Any, ...], Any] = {}
    pairs = []
    for node in fgraph.toposort():
        if isinstance(node.op, Sum):
            kept = first.setdefault((node.op, node.inputs[0]), node)
            if kept is not node:
                pairs.append((node.outputs[0], kept.outputs[0]))
    if pairs:
        fgraph.replace_all(pairs, reason="sums_of_deviations")


def _is_sum_of_floats(node: Apply) -> bool:
    return (
        isinstance(node.op, Sum)
        and node.op.acc_dtype in ("float32", "float64")
        and node.op.axis != ()
        and node.inputs[0].type.dtype in ("float32", "float64")
    )


def _deviations(node: Apply) -> tuple[Any, ...] | None:
    """Return (x, c, whether squared) if an Apply adds up x - c or (x - c)^2; None otherwise.

    c does not vary along the axes of the sum, x does.
    """
    if not _is_sum_of_floats(node):
        return None
    (terms,) = node.inputs
    inside = operands(terms, "sqr")
    difference = operands(terms if inside is None else inside[0], "sub")
    if difference is None:
        return None
    axes, pattern = axes_of(node), terms.type.broadcastable
    for x, c in (difference, difference[::-1]):
        if (
            x.type.dtype == terms.type.dtype
            and x.type.broadcastable == pattern
            and all(c.type.broadcastable[a] for a in axes)
            and not any(pattern[a] for a in axes)
            and c.type.dtype in ("float32", "float64")
            and (inside is not None or x is difference[0])
        ):
            return x, c, inside is not None
    return None


def _sums_of(x: Var, axes: tuple[int, ...]) -> list[Var]:
    """Return the sums of ``x`` along axes that a graph contains."""
    return [
        client.outputs[0]
        for client, _ in x._clients
        if client != "output" and _is_sum_of_floats(client) and axes_of(client) == axes
    ]


def _depends(var: Var, on: Var) -> bool:
    """Return whether a variable depends on another one that is a few Applys before it."""
    waiting = [var]
    seen: set[Apply] = set()
    while waiting and len(seen) < _MOST_BETWEEN:
        one = waiting.pop()
        if one is on:
            return True
        if one.owner is not None and one.owner not in seen:
            seen.add(one.owner)
            waiting += one.owner.inputs
    return False


class _Sums:
    """The sums of deviations of ``x`` along axes from its first element."""

    def __init__(self, fgraph: FunctionGraph, x: Var, axes: tuple[int, ...]) -> None:
        feature = tracked_shapes(fgraph)
        self.axes = axes
        n: Any = 1
        for a in axes:
            length = shape_i_op(a)(x) if feature is None else feature.get_shape(x, a)
            n = elemwise("mul")(n, length) if n != 1 else length
        order = ["x"] * x.type.ndim
        n = cast(n, "float64")
        self.n = dimshuffle(n, order)
        self.some = dimshuffle(elemwise("gt")(n, constant(0.0, dtype="float64")), order)
        self.x = x
        self.first = cast(_first(x, axes, _DEEPEST), "float64")
        self.difference = elemwise("sub")(cast(x, "float64"), self.first)
        self.sum = self._total(self.difference)
        self._squares: Any = None

    def _total(self, terms: Any) -> Var:
        kept = iter(range(self.x.type.ndim - len(self.axes)))
        order = ["x" if d in self.axes else next(kept) for d in range(self.x.type.ndim)]
        axes = None if len(self.axes) == len(order) else self.axes
        return dimshuffle(Sum(axes, dtype="float64", acc_dtype="float64")(terms), order)

    def of_deviations(self, c: Var) -> Var:
        """Return the sum of x - c."""
        add, sub, mul = map(elemwise, ("add", "sub", "mul"))
        return add(self.sum, mul(self.n, sub(self.first, c)))

    def of_squares(self, c: Var) -> Var:
        """Return the sum of (x - c)^2; 0 if there is no element."""
        add, sub, mul, div = map(elemwise, ("add", "sub", "mul", "true_div"))
        sqr, maximum = elemwise("sqr"), elemwise("maximum")
        if self._squares is None:
            mean = div(self.sum, self.n)
            squares = self._total(sqr(self.difference))
            about_mean = maximum(sub(squares, mul(self.sum, mean)), constant(0.0, dtype="float64"))
            self._squares = add(self.first, mean), about_mean
        mean, about_mean = self._squares
        total = add(about_mean, mul(self.n, sqr(sub(mean, c))))
        zero = constant(0.0, dtype="float64")
        return elemwise("switch")(self.some, total, zero)


def _first(x: Var, axes: tuple[int, ...], deepest: int) -> Var:
    """Return the first element of ``x`` along axes, which keep the length 1.

    Of an elementwise result it is computed from the first elements of the operands, so that the
    result need not be stored.
    """
    if all(x.type.broadcastable[a] for a in axes):
        return x
    node = x.owner
    if deepest and node is not None and isinstance(node.op, Elemwise) and row_name(node):
        return node.op(*(_first(v, axes, deepest - 1) for v in node.inputs))
    return FirstAlong(axes)(x)
