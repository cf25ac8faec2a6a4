"""Rules for expressions that overflow, underflow or cancel although their value is a normal number.

Softmax and cross entropies are in ``nnet``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var, Variable
from opwise.optimizers.pattern import PatternSub
from opwise.optimizers.rule import Replacements, declare, rule
from opwise.optimizers.rules.matching import (
    for_output,
    is_private,
    number,
    number_like,
    operands,
    row_name,
    shuffled,
    typed_like,
)
from opwise.optimizers.rules.terms import (
    are_opposite,
    factors,
    function_beside,
    linear_form,
    negative,
    product,
    rest_beside,
    signed_terms,
    total,
    without,
)
from opwise.scalar import dtypes
from opwise.scalar.op import OPS
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax, logsoftmax_op, softmax_op
from opwise.tensor.nnet.sigm import sigmoid, softplus
from opwise.tensor.reduce import CAReduce, MaxAndArgmax, Sum, Supremum

_exp, _log, _neg, _abs = map(elemwise, ("exp", "log", "neg", "abs_"))
_add, _sub, _mul, _div = map(elemwise, ("add", "sub", "mul", "true_div"))
_switch, _lt, _maximum, _minimum = map(elemwise, ("switch", "lt", "maximum", "minimum"))


def _is_float(node: Apply) -> bool:
    return node.outputs[0].type.dtype in dtypes.FLOATS


def _typed(node: Apply, new: Variable) -> list[Var] | None:
    """Return the replacement list for the only output of an elementwise Apply."""
    # the owners' inputs come first as models: the rule removes the inputs themselves
    models = [y for x in node.inputs if x.owner is not None for y in x.owner.inputs]
    return for_output(node, typed_like(new, node.outputs[0], models + node.inputs))


# --- logarithms and exponentials near 1 -----------------------------------------------------------


@rule("row:log", stage=("stabilize", "specialize"))
def local_log1p(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(1 + x) is log1p(x), which is exact for small x."""
    (x,) = node.inputs
    if x.type.dtype not in dtypes.FLOATS:
        return None
    rest = rest_beside(x, 1)
    if not rest:
        return None
    return _typed(node, elemwise("log1p")(total(rest, x.type.dtype)))


@rule("row:add", "row:sub", stage=("canonicalize", "stabilize", "specialize"))
def local_expm1(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """exp(x) - 1 is expm1(x), which is exact for small x."""
    (out,) = node.outputs
    x = function_beside(out, -1, 1, "exp") if _is_float(node) else None
    if x is None:
        return None
    new = elemwise("expm1")(x)
    return _typed(node, new) if new.type.dtype == out.type.dtype else None


# --- sums of exponentials -------------------------------------------------------------------------


@rule("row:log", stage=("stabilize", "specialize"))
def local_log_add(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(exp(x) + exp(y)) is max(x, y) + softplus(-abs(x - y)).

    With more terms, the largest exponent is subtracted from all of them.
    """
    (out,) = node.outputs
    (x,) = node.inputs
    if not _is_float(node) or row_name(x.owner) != "add":
        return None
    exponents = []
    for sign, term in signed_terms(x):
        inside = operands(term, "exp")
        if sign < 0 or inside is None:
            return None
        exponents.append(cast(inside[0], out.type.dtype))
    largest = reduce(_maximum, exponents)
    if len(exponents) == 2:
        x, y = exponents
        # the difference of equal infinities would be NaN
        below = _switch(elemwise("eq")(x, y), number_like(largest, 0), _neg(_abs(_sub(x, y))))
        return _typed(node, _add(largest, softplus(below)))
    if _are_shifted(exponents):
        return None
    shift = _finite(largest)
    return _typed(node, _add(shift, _log(_add(*(_exp(_sub(x, shift)) for x in exponents)))))


def _are_shifted(exponents: Sequence[Var]) -> bool:
    """Return whether the user, or a rule, already subtracts one term from all exponents."""
    shifts = {x.owner.inputs[1] if row_name(x.owner) == "sub" else None for x in exponents}
    return len(shifts) == 1 and None not in shifts


def _finite(largest: Var) -> Var:
    """Return the largest exponent if it is finite, else 0.

    An infinite one must not be subtracted: the sum is 0, infinite or NaN without it.
    """
    return _switch(elemwise("isinf")(largest), number_like(largest, 0), largest)


@rule("row:log", stage="local_log_sum_exp")
def local_log_sum_exp(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(sum(exp(x))) is m + log(sum(exp(x - m))) with the maximum m of x."""
    order, (summed,) = None, node.inputs
    if summed.owner is not None and isinstance(summed.owner.op, DimShuffle):
        order, (summed,) = summed.owner.op.new_order, summed.owner.inputs
    if summed.owner is None or type(summed.owner.op) is not Sum or not _is_float(node):
        return None
    inside = operands(summed.owner.inputs[0], "exp")
    if inside is None:
        return None
    op, (x,) = summed.owner.op, inside
    if _is_shifted(x, op.axis):
        return None
    shift, beside = _shift(cast(x, summed.owner.inputs[0].type.dtype), op.axis)
    new = _add(shift, _log(op(_exp(_sub(x, beside)))))
    if order is not None:
        new = shuffled(new, order)
    return for_output(node, typed_like(new, node.outputs[0], ()))


def _shift(x: Var, axis: Any) -> tuple[Var, ...]:
    """Return the shift of exponents that are summed along ``axis``: for each sum, each exponent."""
    shift = _finite(Supremum(axis)(x))
    return shift, shuffled(shift, _order_beside(x, axis))


def _order_beside(x: Var, axis: Any) -> list[int | str]:
    """Return the order for a DimShuffle that lets a reduction of ``x`` broadcast against x."""
    axes = range(x.type.ndim) if axis is None else axis
    kept = iter(range(x.type.ndim))
    return ["x" if d in axes else next(kept) for d in range(x.type.ndim)]


@rule("row:true_div", "row:mul", stage="local_log_sum_exp")
def local_exp_over_sum_exp(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Subtracts the maximum of x in exp(x) / sum(exp(x)), and in the logarithm of the sum."""
    (out,) = node.outputs
    if not _is_float(node):
        return None
    above, below = factors(out, is_private)
    for divisor in below:
        e = _summed_beside(divisor)
        if e is None or not any(x is e for x in above):
            continue
        (x,), op = e.owner.inputs, divisor.owner.inputs[0].owner.op
        _, beside = _shift(x, op.axis)
        shifted = _exp(_sub(x, beside))
        above[next(i for i, x in enumerate(above) if x is e)] = shifted
        sums = shuffled(op(shifted), _order_beside(x, op.axis))
        return _typed(node, product(above, [*without(below, divisor), sums]))
    return None


@rule("row:true_div", "row:mul", stage=("canonicalize", "stabilize"))
def softmax_simplifier(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """exp(x) / sum(exp(x)) along rows is the softmax, which does not overflow."""
    (out,) = node.outputs
    if not _is_float(node):
        return None
    above, below = factors(out)
    for divisor in below:
        e = _summed_by_row(divisor)
        if e is None or not any(x is e for x in above):
            continue
        above[next(i for i, x in enumerate(above) if x is e)] = softmax_op(e.owner.inputs[0])
        return _typed(node, product(above, without(below, divisor)))
    return None


def _summed_by_row(divisor: Var) -> Var:
    """Return the exponentials whose sums over rows are a column, or None."""
    column = divisor.owner
    if column is None or not isinstance(column.op, DimShuffle) or column.op.new_order != (0, "x"):
        return None
    reduction = column.inputs[0].owner
    if reduction is None or type(reduction.op) is not Sum or reduction.op.axis != (1,):
        return None
    (e,) = reduction.inputs
    inside = operands(e, "exp")
    if inside is None or inside[0].type != e.type or e.type.dtype not in dtypes.FLOATS:
        return None
    # the softmax of rows of one element warns, and it is 1
    return None if e.type.ndim != 2 or e.type.broadcastable[1] else e


def _summed_beside(divisor: Var) -> Var:
    """Return the exponentials whose sum, along any axes, ``x`` is; None if they are shifted."""
    if divisor.owner is None or not isinstance(divisor.owner.op, DimShuffle):
        return None
    reduction = divisor.owner.inputs[0].owner
    if reduction is None or type(reduction.op) is not Sum:
        return None
    (e,) = reduction.inputs
    inside = operands(e, "exp")
    if inside is None or inside[0].type != e.type or e.type.dtype not in dtypes.FLOATS:
        return None
    if list(divisor.owner.op.new_order) != _order_beside(e, reduction.op.axis):
        return None
    return None if _is_shifted(inside[0], reduction.op.axis) else e


def _is_shifted(x: Var, axis: Any) -> bool:
    """Return whether the user subtracts a maximum along ``axis`` from exponents."""
    return any(s < 0 and _is_maximum(term, axis) for s, term in signed_terms(x))


def _is_maximum(x: Var, axis: Any) -> bool:
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        (x,) = x.owner.inputs
    op = x.owner and x.owner.op
    is_maximum = isinstance(op, MaxAndArgmax) or (
        isinstance(op, CAReduce) and op.scalar_op == OPS["maximum"]
    )
    return is_maximum and _axes(op.axis, x.owner.inputs[0]) == _axes(axis, x.owner.inputs[0])


def _axes(axis: Any, x: Var) -> set[Any]:
    return set(range(x.type.ndim) if axis is None else axis)


@rule("row:sub", stage="stabilize")
def log_softmax_simplifier(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """x - log(sum(exp(x))) along rows is log(softmax(x))."""
    (out,) = node.outputs
    if not _is_float(node):
        return None
    terms = signed_terms(out)
    for term in terms:
        inside = operands(term[1], "log") if term[0] < 0 else None
        e = None if inside is None else _summed_by_row(inside[0])
        if e is None or e.type != out.type:
            continue
        (x,) = e.owner.inputs
        rest = Counter(terms) - Counter([term])
        if Counter(signed_terms(x)) <= rest:
            rest -= Counter(signed_terms(x))
            return _typed(node, total([(1, logsoftmax_op(x)), *rest.elements()], x.type.dtype))
    return None


@rule(Softmax, LogSoftmax, stage=("canonicalize", "stabilize"))
def local_softmax_of_shifted(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes the subtraction of the row's maximum before a softmax, which does it itself."""
    difference = operands(node.inputs[0], "sub")
    if difference is None:
        return None
    x, column = difference
    if column.owner is None or not isinstance(column.owner.op, DimShuffle):
        return None
    (largest,) = column.owner.inputs
    if column.owner.op.new_order != (0, "x") or largest.owner is None:
        return None
    op = largest.owner.op
    is_maximum = isinstance(op, MaxAndArgmax) or (
        isinstance(op, CAReduce) and op.scalar_op == OPS["maximum"]
    )
    if not is_maximum or op.axis != (1,) or largest.owner.inputs[0] is not x:
        return None
    return for_output(node, node.op(x))


# --- the sigmoid ----------------------------------------------------------------------------------


@rule("row:inv", "row:true_div", stage="stabilize")
def local_inv_1_plus_exp(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """1 / (1 + exp(x)) is sigmoid(-x)."""
    above, below = factors(node.outputs[0])
    return _with_sigmoids(node, above, below) if all(map(_is_number, above)) else None


@rule("row:true_div", stage="stabilize")
def local_exp_over_1_plus_exp(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """exp(x) / (1 + exp(x)) is sigmoid(x), and y / (1 + exp(x)) is y sigmoid(-x)."""
    above, below = factors(node.outputs[0])
    return None if all(map(_is_number, above)) else _with_sigmoids(node, above, below)


def _is_number(x: Var) -> bool:
    return number(x) is not None


def _with_sigmoids(node: Apply, above: Sequence[Var], below: Sequence[Var]) -> list[Var] | None:
    """Return a quotient with sigmoids in place of divisors 1 + exp(x), or None."""
    if not _is_float(node):
        return None
    dtype = node.outputs[0].type.dtype
    arguments, left = [], []
    for divisor in below:
        x = function_beside(divisor, 1, 1, "exp")
        if x is None:
            left.append(divisor)
        else:
            arguments.append(negative(cast(x, dtype)))
    if not arguments:
        return None
    above = [x for x in above if number(x) != 1]
    above, arguments = _without_exponentials(above, arguments, dtype)
    above, left = _cancelled([sigmoid(x) for x in arguments] + above, left)
    return _typed(node, product(above, left))


def _without_exponentials(
    above: list[Var], arguments: Sequence[Var], dtype: str
) -> tuple[list[Var], list[Var]]:
    """Return (factors without exp(x) if sigmoid(-x) is a factor, the arguments of the sigmoids).

    arguments: of the sigmoids among the factors; exp(x) sigmoid(-x) is sigmoid(x).
    """
    arguments = list(arguments)
    for i, argument in enumerate(arguments):
        for factor in above:
            inside = operands(factor, "exp")
            if inside is not None and are_opposite(inside[0], argument):
                above = without(above, factor)
                arguments[i] = cast(inside[0], dtype)
                break
    return above, arguments


def _cancelled(above: list[Var], below: list[Var]) -> tuple[list[Var], list[Var]]:
    """Return (above, below) without sigmoids of the same argument in both."""
    divisors = {_sigmoid_of(x): x for x in below}
    exponentials = {_divides_as_sigmoid_of(x): x for x in above}
    for factor in above:
        of = _sigmoid_of(factor)
        if of is None:
            continue
        if of in divisors:
            return _cancelled(without(above, factor), without(below, divisors[of]))
        if of in exponentials:
            return _cancelled(without(above, factor, exponentials[of]), below)
    return above, below


def _sigmoid_of(x: Var) -> frozenset[Any] | None:
    """Return a key for the argument of ``x`` if it is a sigmoid, else None."""
    inside = operands(x, "scalar_sigmoid")
    if inside is not None:
        return _value(inside[0], 1)
    argument = function_beside(x, 1, -1, "scalar_sigmoid")
    return None if argument is None else _value(argument, -1)


def _divides_as_sigmoid_of(x: Var) -> frozenset[Any] | None:
    """Return the same of 1 / x."""
    argument = function_beside(x, 1, 1, "exp")
    return None if argument is None else _value(argument, -1)


def _value(x: Var, sign: int) -> frozenset[Any]:
    return frozenset((key, sign * c) for key, c in linear_form(x).items())


@rule("row:mul", "row:true_div", stage="stabilize")
def local_sigmoid_distributor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """(a / s + b) s is a + b s for a sigmoid s, which may underflow to 0."""
    if not _is_float(node):
        return None
    (out,) = node.outputs
    above, below = factors(out)
    sigmoids = [x for x in above if _sigmoid_of(x) is not None]
    arguments = set(map(_sigmoid_of, sigmoids))
    for summed in above if sigmoids else ():
        if row_name(summed.owner) not in ("add", "sub") or not is_private(summed):
            continue
        parts = [factors(term) for term in summed.owner.inputs]
        if not any(arguments & _divided_by(*part) for part in parts):
            continue
        terms = [product(*_cancelled(x + sigmoids, y)) for x, y in parts]
        if any(term is None for term in terms):
            return None
        rest = without(above, summed, *sigmoids)
        return _typed(node, product([summed.owner.op(*terms), *rest], below))
    return None


def _divided_by(above: Sequence[Var], below: Sequence[Var]) -> set[Any]:
    """Return the arguments of the sigmoids among the divisors of a quotient."""
    found = set(map(_sigmoid_of, below)) | set(map(_divides_as_sigmoid_of, above))
    return found - {None}


@rule("row:mul", stage="stabilize")
def local_sigm_times_exp(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """exp(x) sigmoid(-x) is sigmoid(x)."""
    if not _is_float(node):
        return None
    above, below = factors(node.outputs[0])
    sigmoids = [x for x in above if operands(x, "scalar_sigmoid")]
    if not sigmoids or len(sigmoids) == len(above):
        return None
    arguments = [x.owner.inputs[0] for x in sigmoids]
    others = [x for x in above if not operands(x, "scalar_sigmoid")]
    left, arguments = _without_exponentials(others, arguments, node.outputs[0].type.dtype)
    if len(left) == len(others):
        return None
    return _typed(node, product([sigmoid(x) for x in arguments] + left, below))


@rule("row:add", "row:sub", stage="stabilize")
def local_1msigmoid(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """1 - sigmoid(x) is sigmoid(-x), if it is the only reader of the sigmoid."""
    if not _is_float(node):
        return None
    (out,) = node.outputs
    rest = rest_beside(out, 1)
    if rest is None or len(rest) != 1 or rest[0][0] > 0:
        return None
    (_, s), inside = rest[0], operands(rest[0][1], "scalar_sigmoid")
    return _typed(node, _opposite(inside[0], out)) if inside and is_private(s) else None


@rule("row:true_div", stage="stabilize")
def local_sigmoid_quotient(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Cancels sigmoids in quotients; a divisor 1 - sigmoid(x) is sigmoid(-x)."""
    if not _is_float(node):
        return None
    (out,) = node.outputs
    above, below = factors(out)
    arguments = [function_beside(divisor, 1, -1, "scalar_sigmoid") for divisor in below]
    new_below = [
        divisor if x is None else _opposite(x, out)
        for divisor, x in zip(below, arguments, strict=True)
    ]
    new_above, new_below = _cancelled(above, new_below)
    if len(new_above) == len(above) and all(x is None for x in arguments):
        return None
    new = product(new_above, new_below)
    return _typed(node, number_like(out, 1) if new is None else new)


def _opposite(x: Var, out: Var) -> Var:
    """Return sigmoid(-x), computed in the dtype of ``out``."""
    return sigmoid(negative(cast(x, out.type.dtype)))


# --- logarithms of the sigmoid --------------------------------------------------------------------


@rule("row:log", stage="stabilize")
def logsigm_to_softplus(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(sigmoid(x)) is -softplus(-x)."""
    inside = operands(node.inputs[0], "scalar_sigmoid")
    return None if inside is None else _minus_softplus(node, inside[0], negative)


@rule("row:log", stage="stabilize")
def log1msigm_to_softplus(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(1 - sigmoid(x)) is -softplus(x)."""
    x = function_beside(node.inputs[0], 1, -1, "scalar_sigmoid")
    return None if x is None else _minus_softplus(node, x)


@rule("row:log1p", stage="stabilize")
def log1p_neg_sigmoid(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log1p(-sigmoid(x)) is -softplus(x)."""
    ((sign, term), *more) = signed_terms(node.inputs[0])
    inside = operands(term, "scalar_sigmoid")
    if more or sign > 0 or inside is None:
        return None
    return _minus_softplus(node, inside[0])


@rule("row:log1p", stage="stabilize")
def log1pexp_to_softplus(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log1p(exp(x)) is softplus(x)."""
    inside = operands(node.inputs[0], "exp")
    if inside is None or not _is_float(node):
        return None
    return _typed(node, softplus(cast(inside[0], node.outputs[0].type.dtype)))


def _minus_softplus(
    node: Apply, x: Var, change: Callable[..., Any] = lambda x: x
) -> list[Var] | None:
    if not _is_float(node):
        return None
    x = cast(x, node.outputs[0].type.dtype)
    return _typed(node, _neg(softplus(change(x))))


# --- the error function ---------------------------------------------------------------------------

_erf, _erfc = elemwise("erf"), elemwise("erfc")

#: sums that cancel for large or small x, with their replacements and the names of the rules
_ERF = {
    "local_one_minus_erf": ((_sub, 1, (_erf, "x")), (_erfc, "x")),
    "local_one_minus_erf2": ((_add, 1, (_mul, -1, (_erf, "x"))), (_erfc, "x")),
    "local_one_plus_neg_erf": ((_add, 1, (_neg, (_erf, "x"))), (_erfc, "x")),
    "local_one_plus_erf": ((_add, 1, (_erf, "x")), (_erfc, (_neg, "x"))),
    "local_erf_minus_one": ((_add, -1, (_erf, "x")), (_neg, (_erfc, "x"))),
    "local_one_minus_erfc": ((_sub, 1, (_erfc, "x")), (_erf, "x")),
    "local_one_minus_erfc2 local_one_add_neg_erfc": (
        (_add, 1, (_neg, (_erfc, "x"))),
        (_erf, "x"),
    ),
    "local_one_minus_erfc3": ((_add, 1, (_mul, -1, (_erfc, "x"))), (_erf, "x")),
    "local_erf_neg_minus_one": ((_add, -1, (_erfc, (_neg, "x"))), (_erf, "x")),
    "local_erf_neg_minus_one2": ((_add, -1, (_erfc, (_mul, -1, "x"))), (_erf, "x")),
    "local_erfc_minus_one": ((_add, -1, (_erfc, "x")), (_neg, (_erf, "x"))),
}

for _names, (_pattern, _result) in _ERF.items():
    _name, *_others = _names.split()
    _rule = PatternSub(_pattern, _result, allow_multiple_clients=True, name=_name)
    for _stage in ("canonicalize", "stabilize", "specialize"):
        declare(_stage, _rule, "fast_run", *_others, module=__name__)

#: dtype -> the x where erfc(x) is close to the smallest normal number
_SMALL_ERFC = {"float64": 26.0, "float32": 9.0}


@rule("row:log", stage=("stabilize", "specialize"))
def local_log_erfc(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Computes log(erfc(x)) by its asymptotic series for large x, where erfc underflows."""
    (out,) = node.outputs
    (argument,) = node.inputs
    inside = operands(argument, "erfc")
    bound = _SMALL_ERFC.get(out.type.dtype)
    if inside is None or bound is None or _is_bounded(inside[0]):
        return None
    x = cast(inside[0], out.type.dtype)
    near, far = _split(x, bound)
    series = _sub(
        _log(_erfc_series(far)), _add(elemwise("sqr")(far), _log(far), _number(x, _LOG_SQRT_PI))
    )
    return _typed(node, _switch(_lt(x, _number(x, bound)), _log(_erfc(near)), series))


@rule("row:true_div", stage=("stabilize", "specialize"))
def local_grad_log_erfc_neg(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Computes exp(-x x) / erfc(x) by its asymptotic series for large x, where both underflow."""
    (out,) = node.outputs
    bound = _SMALL_ERFC.get(out.type.dtype)
    if bound is None:
        return None
    above, below = factors(out)
    for divisor in below:
        inside = operands(divisor, "erfc")
        if inside is None or _is_bounded(inside[0]):
            continue
        square = {key: -c for key, c in linear_form(_mul(*inside, *inside)).items()}
        for factor in above:
            exponent = operands(factor, "exp")
            if exponent is None or linear_form(exponent[0]) != square:
                continue
            x = cast(inside[0], out.type.dtype)
            near, far = _split(x, bound)
            series = _div(_mul(far, _number(x, math.sqrt(math.pi))), _erfc_series(far))
            ratio = _switch(_lt(x, _number(x, bound)), _div(factor, _erfc(near)), series)
            return _typed(node, product([ratio, *without(above, factor)], without(below, divisor)))
    return None


_LOG_SQRT_PI = 0.5 * math.log(math.pi)


def _number(x: Var, value: Any) -> Var:
    return number_like(x, value)


def _split(x: Var, bound: float) -> tuple[Var, ...]:
    """Return (min(x, bound), max(x, bound)), for the two branches of a switch.

    No branch is infinite where it is not chosen, and the rule does not apply to it again.
    """
    limit = _number(x, bound)
    return _minimum(x, limit), _maximum(x, limit)


def _is_bounded(x: Var) -> bool:
    return row_name(x.owner) == "minimum" and any(map(_is_number, x.owner.inputs))


def _erfc_series(x: Var) -> Var:
    """Return erfc(x) x exp(x x) sqrt(pi) for large x (Abramowitz and Stegun, 7.1.23)."""
    y = elemwise("inv")(elemwise("sqr")(x))
    coefficients = (105 / 16, -15 / 8, 3 / 4, -1 / 2, 1)
    series = _number(x, coefficients[0])
    for c in coefficients[1:]:
        series = _add(_number(x, c), _mul(series, y))
    return series
