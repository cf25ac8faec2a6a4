"""Factors that go into a sum: where its terms are divided by them, or sigmoids come about."""

from __future__ import annotations

from dataclasses import dataclass

from opwise.graph.variable import Constant, Variable
from opwise.optimizers.rules.canonizer import MOST_TERMS, PRODUCTS, Terms
from opwise.optimizers.rules.matching import is_private, number, operands, row_name, typed_like
from opwise.scalar import dtypes

#: what a division costs, in multiplications
DIVISION = 1.5
ABOVE, BELOW = 0, 1


def distributed(out: Variable):
    """Return a product with one of its factors, or divisors, inside a sum; None where none pays.

    It pays if it cancels in a term and operations are saved, counted as if nobody else read the
    parts. Beside that, a divisor ``1 + exp(x)`` goes into every sum that has a term with
    ``exp(x)``: their quotient is a sigmoid, where each by itself may overflow.
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
    """A sum, on a side of a product, with a factor in its terms that was beside it."""

    total: Variable
    side: int
    #: the product without the factor, but with the sum as it was
    rest: Terms
    #: what the terms of the sum are now, and as what
    before: list[Terms]
    after: list[Terms]
    makes_sigmoids: bool = False

    def saved(self, product):
        """Return how many multiplications less this takes."""
        if self.makes_sigmoids:
            return float("inf")
        outside = _cost(product) - _cost(self.rest)
        return outside + sum(map(_cost, self.before)) - sum(map(_cost, self.after))

    def built(self, out, product):
        """Return the expression."""
        op = self.total.owner.op
        inside = op(*(PRODUCTS.expression(term, self.total) for term in self.after))
        rest = _without(self.rest, self.total, self.side)
        (rest.above, rest.below)[self.side].insert(0, inside)
        new = PRODUCTS.expression(rest, out)
        return typed_like(new, out, product.above + product.below)


def _offers(product, total, side):
    """Yield what it would be to have a factor inside a sum, for each that cancels in a term."""
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
                # the divisor stays visible: it is not multiplied by those that the terms have
                after = [Terms([term], [factor]) for term in total.owner.inputs]
                yield _Offer(total, side, rest, before, after, makes_sigmoids=True)


def _spreads(factor, total):
    """Return whether a sum would have to be computed in more elements with the factor in it."""
    pairs = zip(factor.type.broadcastable, total.type.broadcastable, strict=True)
    return any(one and not its for its, one in pairs)


def _versions(term, dtype):
    """Return a term of a sum as a product, and as one in which parts that others read are open."""
    if term.type.dtype != dtype:
        return [Terms([term])]
    closed = PRODUCTS.opened(term) if is_private(term) else Terms([term], met_shared=True)
    deep = PRODUCTS.opened(term, shared=True) if closed.met_shared else None
    return [closed] if deep is None else [closed, deep]


def _cancelling(factor, divides, versions):
    """Return the first version of a term in which a factor, or divisor, cancels; None if none."""
    return next((t for t in versions if factor in (t.above if divides else t.below)), None)


def _with(terms, factor, is_below):
    """Return a product with one more factor or divisor."""
    if is_below:
        return Terms(terms.above, [*terms.below, factor])
    return Terms([*terms.above, factor], terms.below)


def _without(terms, factor, is_below):
    """Return a product with one factor or divisor less."""
    above, below = list(terms.above), list(terms.below)
    (below if is_below else above).remove(factor)
    return Terms(above, below)


def _cost(product):
    """Return what the operations of a product cost, in multiplications."""
    above = sum(number(var) != 1 for var in product.above)
    below = len(product.below)
    return max(above - 1, 0) + (below - 1 + DIVISION if below else 0)


def _makes_sigmoids(divisor, terms):
    """Return whether a divisor is 1 + exp(x), and a term has the factor exp(x)."""
    parts = operands(divisor, "add")
    if parts is None or len(parts) != 2 or number(parts[0]) != 1:
        return False
    return row_name(parts[1].owner) == "exp" and any(parts[1] in term.above for term in terms)
