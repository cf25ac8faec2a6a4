"""Rules on pooling: what keeps the order of elements is computed of the maxima only."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Variable
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import is_cast, is_plain, number, operands, row_name
from opwise.scalar import dtypes
from opwise.tensor.conv.pool import MaxPoolGrad, Pool
from opwise.tensor.elemwise import Elemwise

#: rows that are strictly increasing wherever they are defined, and defined everywhere
_INCREASING = frozenset(
    "tanh scalar_sigmoid scalar_softplus exp expm1 arctan arcsinh sinh erf".split()
)
#: comparisons of x with 0, and what they are for negative x; in the other order the reverse
_OF_NEGATIVE = {"gt": 0, "ge": 0, "lt": 1, "le": 1}
#: the largest expression of a gradient that is looked through
_MOST = 32


# --- what keeps the order -------------------------------------------------------------------------


def _is_same_in_windows(x: Any, ndim: int) -> bool:
    """Return whether an elementwise operand has one number for all elements of an image."""
    return all(x.type.broadcastable[-ndim:])


def _increasing(var: Any, ndim: int) -> tuple[Any, bool] | None:
    """Return (x, whether it is flat below 0) if ``var`` is an increasing function of x, or None."""
    node = var.owner
    if node is None or not isinstance(node.op, Elemwise) or node.op.inplace_pattern:
        return None
    if len(node.outputs) > 1 or var.type.dtype not in dtypes.FLOATS:
        return None
    name = row_name(node)
    if name in _INCREASING:
        return node.inputs[0], False
    looks = {"add": _sum, "sub": _shifted, "mul": _scaled, "true_div": _divided,
             "maximum": _bounded, "switch": _chosen}  # fmt: skip
    return looks[name](node.inputs, ndim) if name in looks else None


def _sum(terms: Any, ndim: int) -> tuple[Any, bool] | None:
    varying = [x for x in terms if not _is_same_in_windows(x, ndim)]
    if len(varying) == 1:
        return varying[0], False
    if len(varying) != 2 or len(terms) != 2:
        return None
    # a * x + b * |x|
    for first, second in (terms, terms[::-1]):
        by, x = _multiple(first)
        by_absolute, absolute = _multiple(second)
        inner = operands(absolute, "abs_")
        if inner is not None and inner[0] is x and by > 0 and abs(by_absolute) <= by:
            return (x, by == by_absolute) if by_absolute != -by else None
    return None


def _multiple(x: Any) -> tuple[float, Any]:
    """Return (number, y) of ``number * y``, (1, x) for others."""
    factors = operands(x, "mul")
    if factors is not None and len(factors) == 2:
        for one, other in (factors, factors[::-1]):
            known = number(one)
            if known is not None:
                return float(known), other
    return 1.0, x


def _shifted(inputs: Any, ndim: int) -> tuple[Any, bool] | None:
    x, y = inputs
    return (x, False) if _is_same_in_windows(y, ndim) else None


def _scaled(factors: Any, ndim: int) -> tuple[Any, bool] | None:
    others = [x for x in factors if not _is_positive(x)]
    if len(others) == 1:
        return others[0], False
    if len(others) == 2:  # x * (x > 0)
        for x, condition in (others, others[::-1]):
            if _of_negative(condition, x) == 0:
                return x, True
    return None


def _is_positive(x: Any) -> bool:
    known = number(x)
    return known is not None and known > 0


def _divided(inputs: Any, ndim: int) -> tuple[Any, bool] | None:
    return (inputs[0], False) if _is_positive(inputs[1]) else None


def _bounded(inputs: Any, ndim: int) -> tuple[Any, bool] | None:
    for x, other in (inputs, inputs[::-1]):
        if number(other) == 0:
            return x, True
        by, inner = _multiple(other)
        if inner is x and 0 < by <= 1:
            return x, False
    return None


def _chosen(inputs: Any, ndim: int) -> tuple[Any, bool] | None:
    """As ``_increasing`` of x where x > 0, and zeros, a * x or a * expm1(x) elsewhere."""
    condition, *branches = inputs
    if row_name(condition.owner) not in _OF_NEGATIVE:
        return None
    for x in condition.owner.inputs:
        known = _of_negative(condition, x)
        if known is None:
            continue
        below, above = branches if known else branches[::-1]
        if above is not x:
            return None
        if number(below) == 0:
            # a comparison with nan is false: zeros may not take its place
            return (x, True) if known else None
        by, inner = _multiple(below)
        if by > 0 and (inner is x or (operands(inner, "expm1") or [None])[0] is x):
            return x, False
    return None


def _of_negative(condition: Any, x: Any) -> int | None:
    """Return what a comparison of x with 0 is for negative x, 0 or 1; None for others."""
    while is_cast(condition.owner):
        (condition,) = condition.owner.inputs
    found = _OF_NEGATIVE.get(row_name(condition.owner) or "")
    if found is None:
        return None
    a, b = condition.owner.inputs
    if a is x and number(b) == 0:
        return found
    return 1 - found if b is x and number(a) == 0 else None


# --- maxima first ---------------------------------------------------------------------------------


@rule(Pool, stage="uncanonicalize")
def local_max_pool_first(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Takes maxima before a bias, a relu and other increasing functions: f(max(x)) is max(f(x)).

    Then f is computed of fewer elements, and so is its derivative. Elements that only rounding
    makes equal to a maximum get no part of its gradient any more.
    """
    op = node.op
    if op.mode != "max" or not _has_fewer_results(node):
        return None
    steps = _Steps(node)
    if not steps.found or not steps.are_read_here_alone():
        return None
    maxima = op(steps.x, *node.inputs[1:])
    if maxima.type != steps.x.type.clone(broadcastable=maxima.type.broadcastable):
        return None
    values = {steps.x: maxima}
    pooled = _again(node.inputs[0], values, op.ndim)
    if pooled.type != node.outputs[0].type:
        return None
    changes = {node.outputs[0]: pooled}
    for gradient in steps.gradients:
        out = steps.derivative(gradient)
        if out is None:
            return None
        by_maxima = _again(out, {**values, gradient.outputs[0]: gradient.inputs[2]}, op.ndim)
        moved = gradient.op(steps.x, maxima, by_maxima, *gradient.inputs[3:])
        if by_maxima.type != gradient.inputs[2].type or moved.type != out.type:
            return None
        changes[out] = moved
    return changes


def _has_fewer_results(node: Apply) -> bool:
    """Return whether a pooling is known to have fewer results than elements."""
    stride = node.inputs[2]
    return isinstance(stride, Constant) and prod(stride.data.tolist()) > 1


def _again(var: Any, values: dict[Variable, Variable], ndim: int) -> Any:
    """Return an elementwise expression with other leaves; ``values`` learns its parts."""
    if var in values:
        return values[var]
    if _is_same_in_windows(var, ndim):
        return var
    made = var.owner.op(*(_again(x, values, ndim) for x in var.owner.inputs))
    values[var] = made
    return made


class _Steps:
    """The increasing functions whose results a pooling reads, and the gradients through them."""

    def __init__(self, pooling: Apply) -> None:
        self.pooling = pooling
        self.ndim = pooling.op.ndim
        #: results of functions, the last one first, and of parts of them
        self.found: list[Variable] = []
        #: what the first function is of
        self.x: Any = pooling.inputs[0]
        #: operands of functions that are flat below 0
        self.flat: list[Variable] = []
        while (step := _increasing(self.x, self.ndim)) is not None:
            inner, is_flat = step
            self.found += _between(self.x, inner, self.ndim)
            if is_flat:
                self.flat.append(inner)
            self.x = inner
        #: the Applys that pass the gradient by the maxima on
        self.gradients = [
            reader
            for reader, i in pooling.inputs[0]._clients
            if reader != "output" and i == 0 and self._is_gradient(reader)
        ]

    def _is_gradient(self, node: Apply) -> bool:
        op, pooling = node.op, self.pooling
        return (
            isinstance(op, MaxPoolGrad)
            and (op.ignore_border, op.ndim) == (pooling.op.ignore_border, pooling.op.ndim)
            and node.inputs[1] is pooling.outputs[0]
            and all(a is b or _are_equal(a, b) for a, b in zip(
                node.inputs[3:], pooling.inputs[1:], strict=True))
        )  # fmt: skip

    def are_read_here_alone(self) -> bool:
        """Return whether only the pooling and the gradients through it need the functions."""
        if len(self.flat) > 1 and self.gradients:
            return False
        own = {self.pooling, *self.gradients}
        inside = set(self.found)
        derivatives = {g.outputs[0] for g in self.gradients}
        pending, seen = list(self.found), 0
        while pending:
            for reader, _ in pending.pop()._clients:
                seen += 1
                if reader == "output" or seen > 4 * _MOST:
                    return False
                if reader in own or reader.outputs[0] in inside or self._is_linear(
                    reader, derivatives
                ):  # fmt: skip
                    continue
                if not isinstance(reader.op, Elemwise) or not self._is_known(reader.outputs[0]):
                    return False
                inside.add(reader.outputs[0])
                pending.append(reader.outputs[0])
        return True

    def _is_known(self, var: Any, depth: int = 4) -> bool:
        """Return whether a variable is an elementwise function of x, as far as one looks."""
        if var is self.x or var in self.found or _is_same_in_windows(var, self.ndim):
            return True
        node = var.owner
        return (
            depth > 0
            and node is not None
            and isinstance(node.op, Elemwise)
            and not node.op.inplace_pattern
            and all(self._is_known(x, depth - 1) for x in node.inputs)
        )

    # --- gradients --------------------------------------------------------------------------------

    def derivative(self, gradient: Apply) -> Any:
        """Return the gradient by x that an Apply's output is multiplied to, or None.

        That is the only product with derivatives of functions that others read. It is zero where a
        function is flat, else elements that are no maxima would have a part in it.
        """
        linear = self._linear({gradient.outputs[0]})
        read = [v for v in linear if any(self._leaves(reader, linear) for reader, _ in v._clients)]
        if len(read) != 1:
            return None
        (out,) = read
        for x in self.flat:
            if _factor(out, gradient.outputs[0], x) != 0:
                return None
        return out

    def _linear(self, found: set[Variable]) -> set[Variable]:
        """Return multiples of gradients: products with derivatives, and sums of these."""
        found, pending = set(found), list(found)
        while pending and len(found) < _MOST:
            for reader, _ in pending.pop()._clients:
                if reader != "output" and reader.outputs[0] not in found:
                    if self._is_multiple(reader, found):
                        found.add(reader.outputs[0])
                        pending.append(reader.outputs[0])
                        # a sum may have waited for this term
                        pending += [v for v in found if v is not reader.outputs[0]]
        return found

    def _is_linear(self, node: Apply, gradients: set[Variable]) -> bool:
        return bool(gradients) and node.outputs[0] in self._linear(gradients)

    def _leaves(self, reader: Any, linear: set[Variable]) -> bool:
        return reader == "output" or reader.outputs[0] not in linear

    def _is_multiple(self, node: Apply, linear: set[Variable]) -> bool:
        """Return whether an Apply computes a multiple of a gradient of given multiples."""
        if not is_plain(node):
            return False
        inside = [x in linear for x in node.inputs]
        name = row_name(node)
        if name in ("add", "sub", "neg"):
            return all(inside)
        others = [x for x, own in zip(node.inputs, inside, strict=True) if not own]
        if name == "mul":
            return sum(inside) == 1 and all(map(self._is_known, others))
        if name == "true_div":
            return inside == [True, False] and self._is_known(others[0])
        if name != "switch" or inside[0] or not self._is_known(node.inputs[0]):
            return False
        return all(
            own or number(x) == 0 for x, own in zip(node.inputs[1:], inside[1:], strict=True)
        )


def _are_equal(a: Any, b: Any) -> bool:
    return isinstance(a, Constant) and isinstance(b, Constant) and a.equals(b)


def _between(last: Any, first: Any, ndim: int) -> list[Variable]:
    """Return ``last`` and the parts of it that depend on ``first``."""
    found, pending = [], [last]
    while pending:
        var = pending.pop()
        if var is not first and var not in found and not _is_same_in_windows(var, ndim):
            found.append(var)
            pending += var.owner.inputs
    return found


def _factor(var: Any, gradient: Variable, x: Variable) -> float | None:
    """Return by how much an expression multiplies a gradient where x < 0; None if not known."""
    if var is gradient:
        return 1.0
    known = number(var)
    if known is not None:
        return float(known)
    sign = operands(var, "sgn")
    if sign is not None and sign[0] is x:
        return -1.0
    compared = _of_negative(var, x)
    if compared is not None:
        return float(compared)
    combine = _COMBINED.get(row_name(var.owner) or "")
    if combine is None:
        return None
    return combine([_factor(part, gradient, x) for part in var.owner.inputs])


def _of_products(factors: list[float | None]) -> float | None:
    if 0 in factors:
        return 0.0
    return None if None in factors else prod(factors)  # type: ignore[arg-type]


def _of_sums(terms: list[float | None]) -> float | None:
    return None if None in terms else sum(terms)  # type: ignore[arg-type]


def _of_choices(inputs: list[float | None]) -> float | None:
    condition, first, second = inputs
    if condition is None:
        return first if first == second else None
    return first if condition else second


_COMBINED: dict[str, Callable[[list[float | None]], float | None]] = {
    "mul": _of_products,
    "add": _of_sums,
    "sub": lambda terms: _of_sums([terms[0], None if terms[1] is None else -terms[1]]),
    "neg": lambda terms: None if terms[0] is None else -terms[0],
    "true_div": lambda parts: parts[0] if parts[0] == 0 else None,
    "switch": _of_choices,
}
