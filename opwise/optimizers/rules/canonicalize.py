"""Rules that bring elementwise expressions into one form: algebra, fills, casts, switches.

Reductions are in ``reductions``; shapes, joins and indexing in ``shape`` and ``subtensor``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.canonizer import PRODUCTS, SUMS
from opwise.optimizers.rules.distribution import distributed
from opwise.optimizers.rules.matching import (
    filled,
    for_output,
    is_cast,
    is_plain,
    is_private,
    number,
    number_like,
    number_within,
    operands,
    row_name,
    shuffled,
    typed_like,
)
from opwise.optimizers.shapefeature import same_length
from opwise.scalar import dtypes
from opwise.scalar.op import Cast
from opwise.tensor.assertion import Assert
from opwise.tensor.convert import ViewOp
from opwise.tensor.creation import alloc
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.join import Join, MakeVector
from opwise.tensor.shape import is_length, patternbroadcast, shape_i
from opwise.tensor.slices import known_int
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import constant

_RUN = ("fast_run",)
#: the tags of rules that FAST_COMPILE applies as well
_ALWAYS = ("fast_run", "fast_compile")


# --- sums and products ----------------------------------------------------------------------------


@rule("row:neg", stage="canonicalize")
def local_neg_to_mul(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """-x is the product of x and -1, so that the sign takes part in the algebra of products."""
    (x,) = node.inputs
    return [elemwise("mul")(number_like(x, -1), x)]


@rule("row:mul", stage="canonicalize")
def local_mul_zero(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product with a factor that is 0 everywhere is 0, even if others are infinite or NaN."""
    for x in node.inputs:
        if number_within(x) == 0:
            out = node.outputs[0]
            return for_output(node, filled(out, 0, node.inputs))
    return None


@rule("row:add", "row:sub", "row:neg", stage="canonicalize")
def local_add_canonizer(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Brings sums into one form: a number first, no terms that cancel, no sums of sums."""
    return for_output(node, SUMS(node))


@rule("row:add", "row:sub", "row:neg", stage={"canonicalize": ("sums_as_written",)})
def local_integer_add_canonizer(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Brings sums of integers into one form, for modes that leave those of floats as written."""
    return for_output(node, SUMS(node)) if _is_itself(node.outputs[0]) else None


@rule("row:mul", "row:true_div", "row:inv", stage="canonicalize")
def local_mul_canonizer(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Brings products into one form: a number first, no factors that cancel, no products inside."""
    return for_output(node, PRODUCTS(node))


@rule("row:true_div", "row:int_div", stage=("canonicalize", "specialize"))
def local_zero_div(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """0 divided by anything is 0."""
    if number_within(node.inputs[0]) == 0:
        return for_output(node, filled(node.outputs[0], 0, node.inputs))
    return None


@rule("row:int_div", stage="canonicalize")
def local_intdiv_by_one(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """An integer divided by 1 is itself; a float would be rounded down."""
    x, y = node.inputs
    out = node.outputs[0]
    if out.type.dtype in dtypes.DISCRETE and number(y) == 1:
        return for_output(node, typed_like(x, out, [y]))
    return None


@rule("row:pow", stage="canonicalize")
def local_pow_canonicalize(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """x to the power 0 is 1, to the power 1 x."""
    x, y = node.inputs
    power = number(y)
    if power is None or power not in (0, 1):
        return None
    out = node.outputs[0]
    new = filled(out, 1, node.inputs) if power == 0 else typed_like(x, out, [y])
    return for_output(node, new)


@rule("row:mul", "row:true_div", stage=("canonicalize", "stabilize"))
def local_greedy_distributor(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """(a / x + b) x is a + b x: multiplies out a factor if that saves operations."""
    return for_output(node, distributed(node.outputs[0]))


#: rows that compute in the dtype of their output
_UPCASTING = "add sub mul true_div int_div mod maximum minimum".split()


@rule(*(f"row:{name}" for name in _UPCASTING), stage="canonicalize")
def local_upcast_elemwise_constant_inputs(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Constant operands get the dtype of the result, so that no kernel converts them."""
    (out,) = node.outputs
    dtype = out.type.dtype
    if not any(isinstance(x, Constant) and x.type.dtype != dtype for x in node.inputs):
        return None
    inputs = [
        tensor_type(dtype, x.type.broadcastable).make_constant(x.data.astype(dtype))
        if isinstance(x, Constant) and x.type.dtype != dtype
        else x
        for x in node.inputs
    ]
    return for_output(node, node.op(*inputs))


# --- functions of functions -----------------------------------------------------------------------

#: pairs of rows (outer, inner) where the outer undoes the inner wherever that is defined
_INVERSES = {
    ("neg", "neg"), ("inv", "inv"), ("conj", "conj"), ("invert", "invert"),
    ("deg2rad", "rad2deg"), ("rad2deg", "deg2rad"), ("sinh", "arcsinh"), ("arcsinh", "sinh"),
    ("tanh", "arctanh"), ("arctanh", "tanh"), ("cosh", "arccosh"),
}  # fmt: skip


@rule(*sorted({f"row:{outer}" for outer, _ in _INVERSES}), stage=("canonicalize", "specialize"))
def local_func_inv(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """f(g(x)) is x if g is the inverse of f."""
    x: Var
    (x,) = node.inputs
    inner = row_name(x.owner)
    if inner is None or (row_name(node), inner) not in _INVERSES:
        return None
    (original,) = x.owner.inputs
    return for_output(node, original)


@rule("row:abs_", stage="canonicalize")
def local_abs_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """abs(x y) is abs(x) abs(y), and the same for quotients.

    Not for integers, whose products wrap around.
    """
    x: Var
    (x,) = node.inputs
    if row_name(x.owner) not in ("mul", "true_div"):
        return None
    parts = x.owner.inputs
    if any(part.type.dtype not in dtypes.CONTINUOUS for part in parts):
        return None
    return for_output(node, x.owner.op(*map(elemwise("abs_"), parts)))


@rule(Cast, stage=("canonicalize", "specialize"))
def local_cast_cast(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A cast of a cast is one cast, or none, if the first one keeps the value."""
    x: Var
    (x,) = node.inputs
    wanted = node.outputs[0].type.dtype
    if x.type.dtype == wanted:
        return [x]
    if not is_cast(x.owner):
        return None
    (original,) = x.owner.inputs
    if not _is_shortcut(original.type.dtype, x.type.dtype, wanted):
        return None
    return [cast(original, wanted)]


def _is_shortcut(first: Any, middle: str, last: str) -> bool:
    """Return whether a cast from ``first`` to ``last`` is the same with and without ``middle``."""
    if not _holds(middle, first):
        return False
    # integers wrap around, but floats out of the range of an integer do not
    rounds = middle in dtypes.CONTINUOUS and first in dtypes.INTEGERS and last in dtypes.INTEGERS
    return not rounds or _holds(last, first)


def _holds(dtype: str, other: Any) -> bool:
    """Return whether ``dtype`` has every value of ``other``."""
    if other in ("int64", "uint64") and dtype in dtypes.CONTINUOUS:
        return False
    return np.can_cast(other, dtype)


# --- copies and fills -----------------------------------------------------------------------------


@rule(ViewOp, stage={"canonicalize": _ALWAYS, "useless": _ALWAYS})
def local_view_op(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes Ops that return their input: they only changed the gradient."""
    if node.op.destroy_map or node.inputs[0].type != node.outputs[0].type:
        return None
    return [node.inputs[0]]


@rule("row:identity", stage="canonicalize")
def remove_tensor_copy(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes copies: values that are read later are never overwritten."""
    return [node.inputs[0]]


@rule("row:second", stage={"canonicalize": _ALWAYS, "useless": _RUN})
def local_useless_fill(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes fills of a shape with a value that has that shape already."""
    _, value = node.inputs
    return for_output(node, value)


@rule(Elemwise, stage="canonicalize")
def local_fill_sink(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves fills behind elementwise operations on the filled arrays."""
    inputs: Sequence[Var] = node.inputs
    models = [x.owner.inputs[0] for x in inputs if row_name(x.owner) == "second"]
    if not models or len(node.outputs) > 1 or node.op.inplace_pattern:
        return None
    (out,) = node.outputs
    if row_name(node) == "second":
        return _filled_once(node)
    values = [x.owner.inputs[1] if row_name(x.owner) == "second" else x for x in inputs]
    new = typed_like(node.op(*values), out, models)
    return for_output(node, new)


def _filled_once(node: Apply) -> list[Var] | None:
    """Return a fill whose model or value is a fill, with one fill less."""
    model, value = node.inputs
    inner = operands(model, "second")
    # a fill has the shape of its model, unless its value has more dimensions
    if inner is not None and inner[0].type.broadcastable == model.type.broadcastable:
        return [node.op(inner[0], value)]
    inner = operands(value, "second")
    return None if inner is None else for_output(node, node.op(model, inner[1]))


# --- what an elementwise operation does not change ------------------------------------------------


@rule(
    *(f"row:{name}" for name in "add mul identity eq neq and_ or_ xor".split()),
    stage={"canonicalize": _ALWAYS, "specialize": _RUN, "useless": _RUN},
)
def local_useless_elemwise(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces operations on a single operand, or on equal ones, whose result is known."""
    known = _USELESS.get(row_name(node))
    return None if known is None else for_output(node, known(node))


def _of_one(node: Apply) -> Var:
    return typed_like(node.inputs[0], node.outputs[0], ()) if len(node.inputs) == 1 else None


def _comparison_with_itself(result: bool) -> Callable[..., Any]:
    def known(node: Apply) -> Var:
        x, y = node.inputs
        return filled(node.outputs[0], result, [x]) if x is y and _is_itself(x) else None

    return known


def _is_itself(x: Var) -> bool:
    """Return whether all that a variable may hold is equal to itself: NaN is not."""
    return x.type.dtype in dtypes.DISCRETE


def _bits(node: Apply) -> Var:
    """A bit operation on equal operands, or on one whose bits are all 0 or all 1."""
    (out,) = node.outputs
    x, y = node.inputs
    name = row_name(node)
    if x is y:
        return filled(out, 0, [x]) if name == "xor" else x
    for bits, other in ((x, y), (y, x)):
        value = number(bits)
        if value is None:
            continue
        # -1 in any integer dtype, and True, have all bits set
        ones = np.array(-1).astype(out.type.dtype)
        value = np.array(value).astype(out.type.dtype)
        if value == 0:
            return filled(out, 0, [other, bits]) if name == "and_" else _kept(other, bits, out)
        if value == ones and name != "xor":
            return filled(out, ones, [other, bits]) if name == "or_" else _kept(other, bits, out)
    return None


def _kept(x: Var, dropped: Var, out: Var) -> Var:
    return typed_like(x, out, [dropped])


_USELESS = {
    "add": _of_one,
    "mul": _of_one,
    "identity": _of_one,
    "eq": _comparison_with_itself(True),
    "neq": _comparison_with_itself(False),
    "and_": _bits,
    "or_": _bits,
    "xor": _bits,
}

#: the row that compares the exchanged operands
_EXCHANGED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


@rule(
    *(f"row:{name}" for name in "lt gt le ge eq neq maximum minimum".split()),
    stage=("canonicalize", "stabilize", "specialize", "useless"),
)
def local_useless_elemwise_comparison(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces comparisons of a variable with itself, or of a length with a number up to 0."""
    x, y = node.inputs
    name = row_name(node)
    (out,) = node.outputs
    new = None
    if x is y:
        if name in ("maximum", "minimum"):
            new = x
        elif name in ("lt", "gt") or (name in _EXCHANGED and _is_itself(x)):
            new = filled(out, name in ("le", "ge"), [x])
    elif isinstance(y, Constant):
        new = _compared_length(name, x, y, out)
    elif isinstance(x, Constant):
        new = _compared_length(_EXCHANGED.get(name, name), y, x, out)
    return for_output(node, new)


def _compared_length(name: str, n: Any, bound: Constant, out: Var) -> Var:
    """Return the result of comparing a length with a constant; None if it is not known."""
    value = number(bound)
    if value is None or not value <= 0 or n.type.dtype not in dtypes.INTEGERS:
        return None
    if value == 0 and name not in ("lt", "ge", "maximum", "minimum"):
        return None
    if not _is_length(n):
        return None
    if name in ("maximum", "minimum"):
        kept, dropped = (n, bound) if name == "maximum" else (bound, n)
        return typed_like(kept, out, [dropped])
    return filled(out, name in ("gt", "ge", "neq"), [n, bound])


def _is_length(n: Any) -> bool:
    """Return whether a variable, perhaps with dimensions added, is known not to be negative.

    It may be a vector of such numbers.
    """
    while _is_dimshuffle(n.owner):
        (n,) = n.owner.inputs
    if n.owner is not None and type(n.owner.op) is MakeVector:
        return all(map(_is_length, n.owner.inputs))
    return n.type.ndim == 0 and n.owner is not None and is_length(n, 4)


# --- switches -------------------------------------------------------------------------------------


@rule(
    "row:switch",
    stage={
        "canonicalize": (*_ALWAYS, "local_remove_switch_const_cond"),
        "specialize": _RUN,
        "useless": (*_RUN, "local_remove_switch_const_cond"),
    },
)
def local_useless_switch(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces a switch with a known condition, or with equal branches, by a branch."""
    condition, x, y = node.inputs
    value = number(condition)
    if value is not None:
        branch = x if value else y
    elif x is y or _is_guarded_length(condition, x, y):
        branch = y
    else:
        return None
    return for_output(node, typed_like(branch, node.outputs[0], node.inputs))


def _is_guarded_length(condition: Var, x: Var, y: Var) -> bool:
    """Return whether a switch is max(length, 0)."""
    compared = operands(condition, "le")
    return (
        compared is not None
        and compared[0] is y
        and number(compared[1]) == 0
        and number(x) == 0
        and y.type.dtype in dtypes.INTEGERS
        and _is_length(y)
    )


_OF_SWITCHES = """
    add sub mul true_div int_div mod pow maximum minimum lt le gt ge eq neq and_ or_ xor
""".split()


@rule(*(f"row:{name}" for name in _OF_SWITCHES), stage="canonicalize")
def local_merge_switch_same_cond(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves an operation on switches of one condition into their branches."""
    if len(node.inputs) < 2:
        return None
    parts = []
    x: Var
    for x in node.inputs:
        if row_name(x.owner) != "switch":
            return None
        parts.append(x.owner.inputs)
    condition = parts[0][0]
    if any(part[0] is not condition for part in parts) or not all(map(is_private, node.inputs)):
        return None
    branches = [
        node.op(*(cast(part[k], x.type.dtype) for part, x in zip(parts, node.inputs, strict=True)))
        for k in (1, 2)
    ]
    return for_output(node, elemwise("switch")(condition, *branches))


@rule("row:mul", stage=("canonicalize", "specialize"))
def local_mul_switch_sink(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product with a switch that may be 0 is a switch between 0 and the product.

    So a masked gradient is 0 even if the other factors are infinite or NaN. Where they are finite
    numbers, a switch that has other readers stays: each of them would compute one of its own.
    """
    if len(node.inputs) < 2:
        return None
    for i, x in enumerate(node.inputs):
        if row_name(x.owner) == "switch":
            others = node.inputs[:i] + node.inputs[i + 1 :]
            if not is_private(x) and all(map(_is_finite, others)):
                continue
            new = _sunk(node, x, lambda branch, others=others: elemwise("mul")(*others, branch))
            if new is not None:
                return new
    return None


@rule("row:true_div", "row:int_div", stage="canonicalize")
def local_div_switch_sink(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A switch that may be 0, divided, is a switch between 0 and the quotient."""
    x, y = node.inputs
    if not is_private(x) and _is_finite(y) and number_within(y) != 0:
        return None
    return _sunk(node, x, lambda branch: node.op(branch, y))


def _is_finite(x: Var) -> bool:
    value = number_within(x)
    return value is not None and bool(np.isfinite(value))


def _sunk(node: Apply, x: Var, operation: Callable[..., Any]) -> list[Var] | None:
    """Return a switch between 0 and ``operation`` of the branch of ``x`` that is not 0, or None."""
    parts = operands(x, "switch")
    if parts is None:
        return None
    condition, *branches = parts
    (out,) = node.outputs
    for k in (0, 1):
        if number_within(branches[k]) != 0:
            continue
        computed = operation(branches[1 - k])
        if computed.type.dtype != out.type.dtype:
            computed = operation(cast(branches[1 - k], x.type.dtype))
        new_branches = [computed, branches[k]] if k else [branches[k], computed]
        new = elemwise("switch")(condition, *new_branches)
        if new.type == out.type:
            return [new]
    return None


# --- products of matrices -------------------------------------------------------------------------


@rule(Dot, stage=("canonicalize", "stabilize"))
def local_0_dot_x(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The product of a matrix or vector with a constant that is 0 is 0, if their lengths match."""
    x, y = node.inputs
    if number(x) != 0 and number(y) != 0:
        return None
    (out,) = node.outputs
    summed = shape_i(x, x.type.ndim - 1, fgraph), shape_i(y, 0, fgraph)
    zero = constant(np.zeros((), out.type.dtype))
    if not same_length(*summed):
        zero = Assert("a product of tensors whose lengths differ")(zero, elemwise("eq")(*summed))
    lengths = [shape_i(x, 0, fgraph)] if x.type.ndim > 1 else []
    if y.type.ndim > 1:
        lengths.append(shape_i(y, 1, fgraph))
    return [patternbroadcast(alloc(zero, *lengths), out.type.broadcastable) if lengths else zero]


# --- dimensions -----------------------------------------------------------------------------------


@rule(DimShuffle, stage=("canonicalize", "specialize"))
def local_dimshuffle_lift(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Moves DimShuffles before elementwise operations, and merges successive ones."""
    (x,) = node.inputs
    order = node.op.new_order
    inner: Any = x.owner
    if order == tuple(range(x.type.ndim)) or _is_dimshuffle(inner):
        return for_output(node, shuffled(x, order))
    if not is_plain(inner) or not is_private(x) or _is_for_stack(node):
        return None
    return for_output(node, inner.op(*(shuffled(v, order) for v in inner.inputs)))


def _is_for_stack(node: Apply) -> bool:
    """Return whether a DimShuffle adds the axis that all of its readers join along.

    What is stacked keeps its own dimensions then, as for other readers of what it is computed from.
    """
    order, (out,) = node.op.new_order, node.outputs
    if order.count("x") != 1 or [d for d in order if d != "x"] != sorted(node.op.shuffle):
        return False
    readers = {reader for reader, _ in out.clients}
    return all(
        reader != "output"
        and type(reader.op) is Join
        and known_int(reader.inputs[0]) == order.index("x")
        for reader in readers
    )


def _is_dimshuffle(node: Apply | None) -> bool:
    return node is not None and isinstance(node.op, DimShuffle)


@rule(DimShuffle, stage="canonicalize")
def local_lift_transpose_through_dot(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """dot(x, y).T is dot(y.T, x.T)."""
    x: Var
    (x,) = node.inputs
    if node.op.new_order != (1, 0) or not is_private(x) or type(x.owner.op) is not Dot:
        return None
    a, b = x.owner.inputs
    return for_output(node, x.owner.op(shuffled(b, (1, 0)), shuffled(a, (1, 0))))
