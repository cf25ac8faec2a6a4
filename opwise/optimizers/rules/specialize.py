"""Rules that bring canonical expressions into the form that is fastest to compute.

Rules about single functions, such as softplus and log1p, are in ``stabilize``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import (
    combined,
    filled,
    for_output,
    is_cast,
    is_private,
    number,
    number_filled,
    number_like,
    operands,
    row_name,
    typed_like,
)
from opwise.scalar import dtypes
from opwise.tensor.assertion import Assert
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import Join
from opwise.tensor.knownvalues import get_scalar_constant_value

#: the largest integer power that is multiplied out; the error of pow does not grow with it
LARGEST_POWER = 512
#: the largest power of whole quarters that is computed from square roots
LARGEST_FRACTION = 16


# --- sums -----------------------------------------------------------------------------------------


@rule("row:add", stage="specialize")
def local_add_specialize(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes terms that are 0 from sums."""
    terms = [x for x in node.inputs if number_filled(x) != 0]
    if len(terms) == len(node.inputs):
        return None
    (out,) = node.outputs
    if not terms:
        zero = next((x for x in node.inputs if x.type == out.type), None)
        return for_output(node, zero or filled(out, 0, node.inputs))
    return for_output(node, combined(node.op, terms, out, node.inputs))


@rule("row:sub", stage="specialize")
def local_elemwise_sub_zeros(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """x - x is 0."""
    x, y = node.inputs
    return for_output(node, filled(node.outputs[0], 0, [x])) if x is y else None


@rule("row:neg", stage="specialize")
def local_neg_neg(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """-(-x) is x."""
    inner = operands(node.inputs[0], "neg")
    return None if inner is None else list(inner)


@rule("row:neg", stage="specialize")
def local_neg_div_neg(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """-(-a / b) is a / b, and -(c / b) is -c / b for a number c."""
    quotient: Var
    (quotient,) = node.inputs
    parts = operands(quotient, "true_div")
    if parts is None or not is_private(quotient):
        return None
    dividend: Var
    dividend, divisor = parts
    turned: Var = operands(dividend, "neg")
    if (
        turned is not None and dividend.type.dtype in dtypes.CONTINUOUS
    ):  # -x of integers may overflow
        new = quotient.owner.op(turned[0], divisor)
    elif number(dividend) is not None and dividend.type.dtype in dtypes.CONTINUOUS:
        new = quotient.owner.op(dividend.type.make_constant(-dividend.data), divisor)
    else:
        return None
    return for_output(node, new)


# --- products -------------------------------------------------------------------------------------


@rule("row:mul", stage="specialize")
def local_mul_specialize(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes factors 1 and pairs of signs; a sign and one factor are a negation."""
    (out,) = node.outputs
    factors, minus, negative, opened = [], None, False, False
    for x in node.inputs:
        turned = operands(x, "neg")
        exact = x.type.dtype in dtypes.CONTINUOUS or x.type.dtype == out.type.dtype
        if turned is not None and exact and is_private(x):
            negative, opened = not negative, True
            (x,) = turned
        value = number(x)
        if value is None:
            factors.append(x)
        elif value == 0:
            return for_output(node, filled(out, 0, node.inputs))
        elif value == -1:
            negative, minus = not negative, x
        elif value != 1:
            factors.append(x)
    if not factors:
        return for_output(node, filled(out, -1 if negative else 1, node.inputs))
    if negative and len(factors) == 1:
        factors = [elemwise("neg")(cast(factors[0], out.type.dtype))]
    elif negative and not opened and len(factors) + 1 == len(node.inputs):
        return None
    elif negative:
        factors.insert(0, number_like(out, -1) if minus is None else minus)
    elif len(factors) == len(node.inputs) and not opened:
        return None
    return for_output(node, combined(node.op, factors, out, node.inputs))


@rule("row:mul", stage="specialize")
def local_mul_to_sqr(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A factor that occurs twice is a square."""
    (out,) = node.outputs
    counts = Counter(node.inputs)
    if len(counts) == len(node.inputs):
        return None
    factors = []
    x: Var
    for x, count in counts.items():
        # in a narrower dtype the square might overflow
        pairs = count // 2 if x.type.dtype == out.type.dtype else 0
        if pairs:
            factors += [elemwise("sqr")(x)] * pairs
        factors += [x] * (count - 2 * pairs)
    if len(factors) == len(node.inputs):
        return None
    return for_output(node, combined(node.op, factors, out, ()))


@rule("row:mul", "row:true_div", stage="specialize")
def local_abs_merge(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """abs(x) abs(y) is abs(x y), and the same for quotients; a number above 0 joins them."""
    inside = [_of_size(x) for x in node.inputs]
    found = [x for x in inside if x is not None]
    if any(x.type.dtype not in dtypes.CONTINUOUS for x in found):
        return None
    if sum(operands(x, "abs_") is not None for x in node.inputs) < 2:
        return None
    rest = [x for x, part in zip(node.inputs, inside, strict=True) if part is None]
    merged = node.op(*found)
    if merged.type.dtype != node.outputs[0].type.dtype:
        return None  # the product in a narrower dtype would be rounded, and might overflow
    new = elemwise("abs_")(merged)
    if rest:
        new = node.op(*rest, new)
    return for_output(node, new)


def _of_size(x: Var) -> Var:
    """Return a variable whose size is ``x``: the operand of abs, or a number above 0; or None."""
    parts = operands(x, "abs_")
    if parts is not None:
        return parts[0]
    value = number(x)
    is_above = value is not None and x.type.dtype not in dtypes.COMPLEX and value > 0
    return x if is_above else None


@rule("row:true_div", stage="specialize")
def local_div_to_inv(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """1 / x is the inverse of x."""
    x, y = node.inputs
    if number(x) != 1:
        return None
    (out,) = node.outputs
    return for_output(node, typed_like(elemwise("inv")(cast(y, out.type.dtype)), out, [x]))


# --- powers ---------------------------------------------------------------------------------------

#: exponent -> the rows that compute the power, in order
_POWERS = {
    2: ("sqr",),
    0.5: ("sqrt",),
    -0.5: ("sqrt", "inv"),
    -1: ("inv",),
    -2: ("inv", "sqr"),  # the square of a large number, but not of its inverse, may overflow
}


@rule("row:pow", stage="specialize")
def local_pow_specialize(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Powers 0, 1, 2, 1/2 and their negatives have operations of their own."""
    x, y = node.inputs
    (out,) = node.outputs
    exponent = number(y)
    if exponent is None:
        return None
    if exponent == 0:
        return for_output(node, filled(out, 1, node.inputs))
    if exponent == 1:
        return for_output(node, typed_like(x, out, [y]))
    rows = _POWERS.get(exponent.item())
    # the inverse of an integer is no integer
    if rows is None or (out.type.dtype in dtypes.DISCRETE and rows != ("sqr",)):
        return None
    x = cast(x, out.type.dtype)
    for name in rows:
        x = elemwise(name)(x)
    return for_output(node, typed_like(x, out, [y]))


@rule("row:pow", stage="specialize_device")
def local_pow_specialize_device(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A power of whole quarters is a product of repeated squares, the square root and its root."""
    x, y = node.inputs
    (out,) = node.outputs
    exponent = number(y)
    if exponent is None or exponent.dtype.kind not in "iuf":
        return None
    power = abs(exponent.item())
    if not 0 < power <= LARGEST_POWER:
        return None  # NaN, among others
    largest = LARGEST_POWER if power == int(power) else LARGEST_FRACTION
    if power > largest or 4 * power != int(4 * power) or power in (0.5, 1, 2):
        return None
    if out.type.dtype in dtypes.DISCRETE and (exponent < 0 or power != int(power)):
        return None
    if out.type.dtype in dtypes.COMPLEX and power != int(power):
        return None  # the root of a complex number may lie on another branch
    powers = [cast(x, out.type.dtype)]
    # a large power overflows where its inverse is still a number; of a small x the inverse does
    is_inverse_first = exponent < -1
    if is_inverse_first:
        powers = [elemwise("inv")(powers[0])]
    for _ in range(max(0, int(power).bit_length() - 1)):
        powers.append(elemwise("sqr")(powers[-1]))
    factors = [x for k, x in enumerate(powers) if int(power) >> k & 1]
    fraction = int(4 * (power - int(power)))
    if fraction:
        root = elemwise("sqrt")(powers[0])
        factors += [root] if fraction & 2 else []
        factors += [elemwise("sqrt")(root)] if fraction & 1 else []
    new = factors[0] if len(factors) == 1 else elemwise("mul")(*factors[::-1])
    if exponent < 0 and not is_inverse_first:
        new = elemwise("inv")(new)
    if fraction and not _is_never_negative(x):
        new = _as_power(new, cast(x, out.type.dtype), exponent)
    return for_output(node, typed_like(new, out, [y]))


#: rows whose results are 0.0 or more, or NaN
_NEVER_NEGATIVE = ("abs_", "sqr", "exp", "exp2", "scalar_sigmoid", "scalar_softplus")


def _is_never_negative(x: Var, depth: int = 3) -> bool:
    """Return whether no element of x is negative, or -0.0, by the Applys that compute it."""
    name, value = row_name(x.owner), number_filled(x)
    if value is not None:
        return bool(value > 0)
    if x.owner is None or depth == 0:
        return False
    if name in ("add", "mul") or is_cast(x.owner):
        return all(_is_never_negative(term, depth - 1) for term in x.owner.inputs)
    return name in _NEVER_NEGATIVE


def _as_power(power: Var, x: Var, exponent: Any) -> Var:
    """Return x ** exponent, no whole number, from what roots of x or, below -1, of 1 / x give.

    Roots keep the sign of -0.0, and of -inf they are NaN, where such a power is inf or 0.
    """
    end, there = (0.0, np.inf) if exponent < -1 else (-np.inf, np.inf if exponent > 0 else 0.0)
    at_end = elemwise("eq")(x, number_like(x, end))
    return elemwise("switch")(at_end, number_like(x, there), elemwise("abs_")(power))


# --- operands of several dtypes -----------------------------------------------------------------


@rule(Join, stage="specialize")
def local_join_cast(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Casts the tensors of a Join to its dtype: C steps join tensors of one dtype."""
    axis, *tensors = node.inputs
    dtype = node.outputs[0].type.dtype
    if node.op.view != -1 or all(x.type.dtype == dtype for x in tensors):
        return None
    return [node.op(axis, *(cast(x, dtype) for x in tensors))]


@rule(Dot, stage="specialize")
def local_dot_cast(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Casts the factors of a product to its dtype, if that is one of BLAS's."""
    x, y = node.inputs
    dtype = node.outputs[0].type.dtype
    if dtype not in ("float32", "float64") or x.type.dtype == y.type.dtype:
        return None
    return [node.op(cast(x, dtype), cast(y, dtype))]


# --- checks ---------------------------------------------------------------------------------------


@rule(Assert, stage="specialize")
def local_remove_useless_assert(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes conditions that are known to hold from an Assert, and an Assert without others."""
    value, *conditions = node.inputs
    unknown = [c for c in conditions if not _holds(c)]
    if len(unknown) == len(conditions):
        return None
    return [node.op(value, *unknown) if unknown else value]


def _holds(condition: Var) -> bool:
    try:
        return bool(get_scalar_constant_value(condition))
    except NotScalarConstantError:
        return False
