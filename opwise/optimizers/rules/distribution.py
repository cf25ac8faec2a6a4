"""Multiplying out: factors that cancel in a sum, or make sigmoids of its terms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opwise.graph.variable import Constant, Var, Variable
from opwise.optimizers.rules.canonizer import MOST_TERMS, PRODUCTS, Terms
from opwise.optimizers.rules.matching import is_private, number, operands, row_name, typed_like
from opwise.scalar import dtypes

#: the cost of a division, in multiplications
DIVISION = 1.5
ABOVE, BELOW = 0, 1


def distributed(out: Variable) -> Variable | None:
    """Return a product with a factor or divisor multiplied out into a sum; None if none pays.

    It pays if the factor cancels in a term and saves operations, counted as if the parts had no
    other readers. A divisor ``1 + exp(x)`` is always multiplied out into a sum with a term
    ``exp(x)``: their quotient is a sigmoid, while each alone may overflow.
    """
    if out.type.dtype not in dtypes.CONTINUOUS:
        return None
    product = PRODUCTS.opened(out, most=MOST_TERMS)
    if product is None or len(product.above) + len(product.below) < 2:
        return None
    best, most = None, 0
    for side, factors in enumerate((product.above, product.below)):
        for var in factors:
            if row_name(var.owner) not in ("add", "sub") or var.type.dtype != out.type.dtype:
                continue
            for offer in _offers(product, var, side):
                saved = offer.saved(product)
                if saved > most:
                    best, most = offer, saved
    return None if best is None else best.built(out, product)


@dataclass
class _Offer:
    """A product with a factor multiplied out into a sum on one of its sides."""

    total: Variable
    side: int
    #: the product without the factor, with the original sum
    rest: Terms
    #: the new terms of the sum, as products and as expressions
    before: list[Terms]
    after: list[Terms]
    makes_sigmoids: bool = False

    def saved(self, product: Terms) -> Any:
        """Return how many multiplications this saves."""
        if self.makes_sigmoids:
            return float("inf")
        outside = _cost(product) - _cost(self.rest)
        return outside + sum(map(_cost, self.before)) - sum(map(_cost, self.after))

    def built(self, out: Var, product: Terms) -> Var:
        """Return the expression."""
        node = self.total.owner
        assert node is not None
        op = node.op
        inside = op(*(PRODUCTS.expression(term, self.total) for term in self.after))
        rest = _without(self.rest, self.total, self.side)
        (rest.above, rest.below)[self.side].insert(0, inside)
        new = PRODUCTS.expression(rest, out)
        return typed_like(new, out, product.above + product.below)


def _offers(product: Terms, total: Var, side: int) -> Iterator[_Offer]:
    """Yield an _Offer for each factor that cancels in a term of a sum."""
    divisors = product.below if side == ABOVE else product.above
    if not divisors and not any(map(PRODUCTS.opens, total.owner.inputs)):
        return  # a factor only cancels in a quotient
    terms = [_versions(term, total.type.dtype) for term in total.owner.inputs]
    for its_side, factors in enumerate((product.above, product.below)):
        divides = its_side != side
        for factor in dict.fromkeys(factors):
            if factor is total or isinstance(factor, Constant) or _spreads(factor, total):
                continue
            found = [_cancelling(factor, divides, versions) for versions in terms]
            before = [f or versions[0] for f, versions in zip(found, terms, strict=True)]
            rest = _without(product, factor, its_side)
            if any(found):
                after = [
                    _with(term, factor, divides) if f is None else _without(f, factor, not divides)
                    for f, term in zip(found, before, strict=True)
                ]
                yield _Offer(total, side, rest, before, after)
            elif divides and side == ABOVE and _makes_sigmoids(factor, before):
                # the divisor must stay visible: it is not multiplied with divisors of the terms
                after = [Terms([term], [factor]) for term in total.owner.inputs]
                yield _Offer(total, side, rest, before, after, makes_sigmoids=True)


def _spreads(factor: Any, total: Var) -> bool:
    """Return whether the sum has more elements with the factor than without it."""
    pairs = zip(factor.type.broadcastable, total.type.broadcastable, strict=True)
    return any(one and not its for its, one in pairs)


def _versions(term: Var, dtype: str) -> list[Terms]:
    """Return a term of a sum as products, without and with parts opened that others read."""
    if term.type.dtype != dtype:
        return [Terms([term])]
    closed = PRODUCTS.opened(term) if is_private(term) else Terms([term], met_shared=True)
    deep = PRODUCTS.opened(term, shared=True) if closed.met_shared else None
    return [closed] if deep is None else [closed, deep]


def _cancelling(factor: Any, divides: bool, versions: Sequence[Terms]) -> Terms | None:
    """Return the first version of a term in which a factor, or divisor, cancels, or None."""
    return next((t for t in versions if factor in (t.above if divides else t.below)), None)


def _with(terms: Any, factor: Any, is_below: bool) -> Terms:
    """Return a product with one more factor or divisor."""
    if is_below:
        return Terms(terms.above, [*terms.below, factor])
    return Terms([*terms.above, factor], terms.below)


def _without(terms: Any, factor: Any, is_below: int) -> Terms:
    """Return a product with one factor or divisor less."""
    above, below = list(terms.above), list(terms.below)
    (below if is_below else above).remove(factor)
    return Terms(above, below)


def _cost(product: Terms) -> Any:
    """Return the cost of a product, in multiplications."""
    above = sum(number(var) != 1 for var in product.above)
    below = len(product.below)
    return max(above - 1, 0) + (below - 1 + DIVISION if below else 0)


def _makes_sigmoids(divisor: Var, terms: Any) -> bool:
    """Return whether a divisor is 1 + exp(x), and a term has the factor exp(x)."""
    parts = operands(divisor, "add")
    if parts is None or len(parts) != 2 or number(parts[0]) != 1:
        return False
    return row_name(parts[1].owner) == "exp" and any(parts[1] in term.above for term in terms)
