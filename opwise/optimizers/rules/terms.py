"""Opens expressions in any form into sums of signed terms and products of factors.

Nothing here edits a graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opwise.graph.variable import Constant, Var
from opwise.optimizers.rules.matching import (
    number,
    number_like,
    number_within,
    operands,
    row_name,
)
from opwise.scalar import dtypes
from opwise.tensor.elemwise import Elemwise, cast, elemwise

#: an expression with more terms or factors counts as one: sharing may multiply them
MOST = 32


# --- sums -----------------------------------------------------------------------------------------


_SIGNED = frozenset(("add", "sub", "neg", "mul"))


def signed_terms(var: Any) -> list[tuple[int, Any]]:
    """Return (sign, term) pairs that add up to ``var``; ``[(1, var)]`` if it is no sum.

    Sums, differences, negatives and products of -1 and a factor are opened, but not those of
    integers, which wrap around.
    """
    found, stack = [], [(1, var)]
    while stack:
        sign, x = stack.pop()
        name = row_name(x.owner)
        if name not in _SIGNED or x.type.dtype not in dtypes.FLOATS:
            found.append((sign, x))
        elif name == "add":
            for y in reversed(x.owner.inputs):
                stack.append((sign, y))
        elif name == "sub":
            first, second = x.owner.inputs
            stack += [(-sign, second), (sign, first)]
        elif name == "neg":
            stack.append((-sign, x.owner.inputs[0]))
        elif name == "mul" and _without_sign(x) is not None:
            stack.append((-sign, _without_sign(x)))
        else:
            found.append((sign, x))
        if len(found) + len(stack) > MOST:
            return [(1, var)]
    return found


def _without_sign(product: Var) -> Any:
    """Return y if a product is -1 times y, else None."""
    if len(product.owner.inputs) != 2:
        return None
    a, b = product.owner.inputs
    return b if number(a) == -1 else a if number(b) == -1 else None


def total(terms: Sequence[tuple[int, Any]], dtype: str) -> Any:
    """Return the sum of one or more (sign, term) pairs, all cast to ``dtype``."""
    above = [cast(x, dtype) for sign, x in terms if sign > 0]
    below = [cast(x, dtype) for sign, x in terms if sign < 0]
    if not above:
        return elemwise("neg")(_sum(below))
    return elemwise("sub")(_sum(above), _sum(below)) if below else _sum(above)


def _sum(terms: Any) -> Var:
    return terms[0] if len(terms) == 1 else elemwise("add")(*terms)


def rest_beside(var: Any, value: Any) -> Any:
    """Return the other terms of a sum with the term ``value``, a number, or None."""
    if row_name(var.owner) not in ("add", "sub"):
        return None
    if not any(map(_may_hold_number, var.owner.inputs)):
        return None
    terms = signed_terms(var)
    for i, (sign, term) in enumerate(terms):
        n = number_within(term)
        if n is not None and sign * n == value:
            return terms[:i] + terms[i + 1 :]
    return None


def _may_hold_number(var: Var) -> bool:
    """Return whether an operand of a sum may be a number, a fill with one, or a sum with one."""
    node = var.owner
    if node is None:
        return isinstance(var, Constant)
    if isinstance(node.op, Elemwise):
        return node.op.row_name in _NUMBERED
    return number_within(var) is not None


_NUMBERED = _SIGNED | {"second"}


def function_beside(var: Any, value: Any, sign: int, name: str) -> Any:
    """Return x if ``var`` is ``value + sign * f(x)`` with the row ``name`` as f, else None.

    value: a number. sign: 1 or -1.
    """
    rest = rest_beside(var, value)
    if rest is None or len(rest) != 1 or rest[0][0] != sign:
        return None
    found = operands(rest[0][1], name)
    return None if found is None else found[0]


# --- products -------------------------------------------------------------------------------------

#: row -> how often its operand is a factor
_POWERS = {"sqr": 2}
_FACTORED = frozenset(("mul", "true_div", "inv", "neg", "pow", *_POWERS))


def factors(var: Any, opens: Callable[[Any], bool] | None = None) -> tuple[list[Any], list[Any]]:
    """Return (above, below): the factors and the divisors of ``var``.

    opens: function of a variable that returns whether an inner product may be opened (default: all
    are). Squares and integer powers count as repeated factors, a sign as the factor -1.
    """
    above: list[Any] = []
    below: list[Any] = []
    stack = [(var, above)]
    while stack:
        x, side = stack.pop()
        other = below if side is above else above
        name = row_name(x.owner)
        if (
            name not in _FACTORED
            or x.type.dtype not in dtypes.FLOATS
            or not (x is var or opens is None or opens(x))
        ):
            side.append(x)
        elif name == "mul":
            for y in reversed(x.owner.inputs):
                stack.append((y, side))
        elif name == "true_div":
            first, second = x.owner.inputs
            stack += [(second, other), (first, side)]
        elif name == "inv":
            stack.append((x.owner.inputs[0], other))
        elif name == "neg":
            above.append(number_like(x, -1))
            stack.append((x.owner.inputs[0], side))
        elif (power := _power(x)) is not None:
            base, n = power
            stack += [(base, side)] * n
        else:
            side.append(x)
        if len(above) + len(below) + len(stack) > MOST:
            return [var], []
    return above, below


def _power(x: Var) -> tuple[Var, int] | None:
    """Return (base, a whole exponent of 2 or more) of a power, or None."""
    name = row_name(x.owner)
    if name in _POWERS:
        return x.owner.inputs[0], _POWERS[name]
    if name != "pow":
        return None
    base, exponent = x.owner.inputs
    n = number(exponent)
    return (base, int(n)) if n is not None and n in range(2, MOST) else None


def product(above: Sequence[Any], below: Sequence[Any]) -> Any:
    """Return the product of factors over the product of others; None for the number 1."""
    if not above:
        return elemwise("inv")(_product(below)) if below else None
    return elemwise("true_div")(_product(above), _product(below)) if below else _product(above)


def _product(terms: Any) -> Var:
    return terms[0] if len(terms) == 1 else elemwise("mul")(*terms)


def without(terms: Iterable[Any], *dropped: Any) -> list[Any]:
    """Return a list of variables without one occurrence of each of ``dropped``."""
    left = list(terms)
    for x in dropped:
        del left[next(i for i, y in enumerate(left) if y is x)]
    return left


# --- comparing ------------------------------------------------------------------------------------


def linear_form(var: Any) -> Any:
    """Return ``var`` as {product of variables: coefficient}; equal sums have equal results.

    A product is a hashable value; the empty product has the constant term as coefficient.
    """
    form: Counter[Any] = Counter()
    for sign, term in signed_terms(var):
        coefficient: Any = sign
        above: Counter[Any] = Counter()
        below: Counter[Any] = Counter()
        for side, found in zip((above, below), factors(term), strict=True):
            for x in found:
                n = number(x)
                if n is None or (n == 0 and side is below):
                    side[x] += 1
                elif side is above:
                    coefficient = coefficient * float(n)
                else:
                    coefficient = coefficient / float(n)
        key = (frozenset((above - below).items()), frozenset((below - above).items()))
        form[key] += coefficient
    return {key: coefficient for key, coefficient in form.items() if coefficient}


def are_opposite(x: Any, y: Any) -> bool:
    """Return whether two expressions are known to be negatives of each other."""
    if negative_of(x) is y or negative_of(y) is x:
        return True
    return bool(linear_form(x) == {key: -c for key, c in linear_form(y).items()})


def negative_of(x: Any) -> Any:
    """Return y if ``x`` is -y, else None."""
    if x.type.dtype not in dtypes.FLOATS:
        return None
    name = row_name(x.owner)
    if name == "neg":
        return x.owner.inputs[0]
    return _without_sign(x) if name == "mul" else None


def negative(x: Any) -> Any:
    """Return -x; y for -(-y)."""
    y = negative_of(x)
    return y if y is not None and y.type == x.type else elemwise("neg")(x)
