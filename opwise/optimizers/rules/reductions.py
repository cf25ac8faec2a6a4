"""Rules on sums, products, extrema and other reductions along axes."""

from __future__ import annotations

from copy import copy
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var, Variable
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import (
    for_output,
    is_private,
    number,
    number_like,
    operands,
    row_name,
    shuffled,
)
from opwise.scalar import dtypes, loops
from opwise.scalar.op import OPS
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import Join
from opwise.tensor.nnet.rowsoftmax import LogSoftmax, Softmax, SoftmaxWithBias
from opwise.tensor.products import tensordot
from opwise.tensor.reduce import (
    Argmax,
    CAReduce,
    CAReduceDtype,
    MaxAndArgmax,
    Prod,
    Sum,
    axes_of,
)

_CUT = "local_cut_useless_reduce"


def _along(op: Any, axes: tuple[int, ...] | None, x: Var) -> Var:
    """Return the reduction of ``x`` by a CAReduce like ``op``, along other axes (None: all)."""
    if op.axis != axes:
        op = copy(op)
        op.axis = axes
    return op(x)


# --- fewer axes, fewer reductions -----------------------------------------------------------------


@rule(
    CAReduce,
    stage={"canonicalize": ("fast_run", "fast_compile", _CUT), "useless": ("fast_run", _CUT)},
)
def local_useless_reduce(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A reduction along no axis is its operand."""
    if axes_of(node):
        return None
    return [cast(node.inputs[0], node.outputs[0].type.dtype)]


@rule(CAReduce, stage=("canonicalize", "specialize", "uncanonicalize"))
def local_reduce_broadcastable(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Axes of length 1 are dropped, not reduced."""
    (x,) = node.inputs
    axes = axes_of(node)
    reduced = [a for a in axes if not x.type.broadcastable[a]]
    # a reduction along all axes stays one
    if len(reduced) == len(axes) or (reduced and node.op.axis is None):
        return None
    (out,) = node.outputs
    kept = [d for d in range(x.type.ndim) if d not in axes or d in reduced]
    x = shuffled(x, tuple(kept))
    if not reduced:
        return [cast(x, out.type.dtype)]
    new = _along(node.op, tuple(kept.index(a) for a in reduced), x)
    return for_output(node, new)


@rule(Sum, Prod, stage="canonicalize")
def local_sum_prod_all_to_none(fgraph: FunctionGraph | None, node: Apply) -> Replacements:
    """A sum or product along all axes gets axis=None."""
    (x,) = node.inputs
    if not node.op.axis or len(node.op.axis) < x.type.ndim:
        return None
    return [_along(node.op, None, x)]


@rule(Sum, Prod, stage="specialize")
def local_reduce_of_cast(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A sum without a loop for its dtypes is one with a loop, of cast elements, or is cast."""
    (x,), (out,) = node.inputs, node.outputs
    acc = node.op.acc_dtype
    row = node.op.scalar_op.row.name
    if (row, acc, acc) not in loops.REDUCTIONS:
        return None
    direct = (row, x.type.dtype, acc) in loops.REDUCTIONS
    dtype = out.type.dtype
    if acc in dtypes.COMPLEX and dtype not in dtypes.COMPLEX:
        return None
    held = dtype if dtype == acc or (acc, dtype) in loops.NARROWED else acc
    if direct and held == dtype:
        return None
    op = copy(node.op)
    op.dtype, op.acc_dtype = held, acc
    return for_output(node, cast(op(x if direct else cast(x, acc)), dtype))


@rule(CAReduce, stage="canonicalize")
def local_op_of_op(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A sum of sums is one sum along the axes of both; the same for other reductions."""
    x: Var
    (x,) = node.inputs
    if not is_private(x) or not _continues(node.op, x.owner.op):
        return None
    (original,) = x.owner.inputs
    first = axes_of(x.owner)
    left = [d for d in range(original.type.ndim) if d not in first]
    axes = tuple(sorted((*first, *(left[a] for a in axes_of(node)))))
    every = isinstance(node.op, Sum | Prod) and len(axes) == original.type.ndim
    return for_output(node, _along(node.op, None if every else axes, original))


def _continues(outer: Any, inner: Any) -> bool:
    """Return whether a reduction has the operation and the dtypes of the inner one."""
    if type(outer) is not type(inner) or outer.scalar_op != inner.scalar_op:
        return False
    row = outer.scalar_op.row
    if row is None or not row.associative:
        return False
    if isinstance(outer, CAReduceDtype):
        return (outer.dtype, outer.acc_dtype) == (inner.dtype, inner.acc_dtype)
    return True


@rule(CAReduce, stage=("canonicalize", "uncanonicalize"))
def local_reduce_join(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces the reduction of joined tensors by the operation on the tensors.

    There may be two of them; for a sum or product, any number.
    """
    (x,) = node.inputs
    row = node.op.scalar_op.row
    if row is None or x.owner is None or type(x.owner.op) is not Join:
        return None
    axis: Var
    axis, *parts = x.owner.inputs
    position = number(axis)
    if position is None or len(parts) < 2 or (len(parts) > 2 and row.nin >= 0):
        return None
    axis = int(position) % x.type.ndim
    if axes_of(node) != (axis,) or not all(part.type.broadcastable[axis] for part in parts):
        return None
    (out,) = node.outputs
    order = tuple(d for d in range(x.type.ndim) if d != axis)
    new = elemwise(row.name)(*(cast(shuffled(part, order), out.type.dtype) for part in parts))
    return for_output(node, new)


# --- what does not vary along the axes ------------------------------------------------------------
#
# Only for sums: a product would become a power of the factor, which may overflow where the
# product does not.


@rule(Sum, stage=("canonicalize", "specialize"))
def local_sum_prod_div_dimshuffle(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A sum of quotients with one divisor is the quotient of the sum."""
    (x,) = node.inputs
    parts = operands(x, "true_div")
    if parts is None or not _may_go_out(node):
        return None
    dividend, divisor = parts
    axes = axes_of(node)
    if not all(divisor.type.broadcastable[a] for a in axes):
        return None
    total = _along(node.op, node.op.axis, dividend)
    return for_output(node, elemwise("true_div")(total, _beside(node, divisor)))


@rule(Sum, stage="specialize")
def local_sumsqr2dot(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The sums over j and k of (w[j, k] g[i, k])^2 are the product of the squares of g and w.

    Such are the squared norms of the gradients of a layer by each of its examples.
    """
    (x,) = node.inputs
    product = operands(x, "sqr")
    factors = None if product is None else operands(product[0], "mul")
    if node.op.axis != (1, 2) or factors is None or len(factors) != 2:
        return None
    if x.type.dtype not in dtypes.FLOATS or node.op.acc_dtype != x.type.dtype:
        return None
    by_order = {f.owner.op.new_order: f.owner.inputs[0] for f in factors if _is_dimshuffle(f.owner)}
    if set(by_order) != {("x", 0, 1), (0, "x", 1)}:
        return None
    w, g = by_order["x", 0, 1], by_order[0, "x", 1]
    if not w.type.dtype == g.type.dtype == x.type.dtype == node.outputs[0].type.dtype:
        return None
    if w.type.broadcastable[1] != g.type.broadcastable[1]:
        return None  # the product does not broadcast
    sqr = elemwise("sqr")
    return for_output(node, Dot()(sqr(g), Sum(axis=0)(sqr(w))))


def _is_dimshuffle(node: Apply) -> bool:
    return node is not None and isinstance(node.op, DimShuffle)


@rule(Sum, stage="specialize")
def local_sum_prod_mul_by_scalar(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """What does not vary along the axes of a sum of products is taken out of it."""
    x: Var
    (x,) = node.inputs
    name = row_name(x.owner)
    if name not in ("mul", "neg") or not _may_go_out(node):
        return None
    if name == "neg":
        total = _along(node.op, node.op.axis, x.owner.inputs[0])
        return for_output(node, elemwise("neg")(total))
    axes = axes_of(node)
    numbers: list[Variable] = []
    rest: list[Variable] = []
    for factor in x.owner.inputs:
        fixed = all(factor.type.broadcastable[a] for a in axes)
        (numbers if fixed else rest).append(factor)
    if not numbers or not rest:
        return None
    if len(rest) > 1:  # their product is rounded as before, in the same dtype
        rest[0] = cast(rest[0], x.type.dtype)
    terms = rest[0] if len(rest) == 1 else elemwise("mul")(*rest)
    total = _along(node.op, node.op.axis, terms)
    return for_output(node, elemwise("mul")(*(_beside(node, n) for n in numbers), total))


def _may_go_out(node: Apply) -> bool:
    """Return whether factors may be taken out of a sum: all of it is computed in one kind of dtype.

    Integers wrap around in the same way only in the same dtype.
    """
    inside = node.inputs[0].type.dtype
    dtype = node.outputs[0].type.dtype
    if inside in dtypes.DISCRETE:
        return bool(inside == node.op.acc_dtype == dtype)
    return dtypes.upcast(inside, dtype) == dtype


def _beside(node: Apply, factor: Any) -> Var:
    """Return a factor of a sum's terms without the reduced axes, in the dtype of the sum."""
    axes = axes_of(node)
    kept = tuple(d for d in range(factor.type.ndim) if d not in axes)
    return cast(shuffled(factor, kept), node.outputs[0].type.dtype)


# --- extrema --------------------------------------------------------------------------------------


@rule(MaxAndArgmax, stage="uncanonicalize")
def local_max_and_argmax(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces MaxAndArgmax by the maximum or the position, if only that is read."""
    (x,) = node.inputs
    maximum, position = node.outputs
    if not position._clients:
        if not node.op.axis:
            return [x, None]
        return [CAReduce(OPS["maximum"], node.op.axis)(x), None]
    if not maximum._clients:
        return [None, Argmax(node.op.axis)(x)]
    return None


#: rows that are increasing functions
_GROWING = ("exp", "exp2", "expm1", "tanh", "scalar_sigmoid", "scalar_softplus")


@rule(MaxAndArgmax, stage="specialize", tags=("fast_run", "fast_compile_gpu"))
def local_argmax_pushdown(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """argmax(f(x)) is argmax(x) for increasing functions and for softmax."""
    (x,) = node.inputs
    maximum, _ = node.outputs
    if maximum._clients or x.owner is None:
        return None
    if row_name(x.owner) in _GROWING:
        (inside,) = x.owner.inputs
    elif node.op.axis != (1,):
        return None
    elif isinstance(x.owner.op, Softmax | LogSoftmax):
        (inside,) = x.owner.inputs
    elif isinstance(x.owner.op, SoftmaxWithBias):
        inside, bias = x.owner.inputs
        inside = elemwise("add")(inside, shuffled(bias, ("x", 0)))
    else:
        return None
    return [None, node.op.make_node(inside).outputs[1]]


@rule("row:neg", "row:invert", "row:sub", stage="uncanonicalize")
def local_max_to_min(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """-max(-x) is min(x)."""
    turned = _turned(node)
    if turned is None:
        return None
    order = None
    if turned.owner is not None and isinstance(turned.owner.op, DimShuffle) and is_private(turned):
        order = turned.owner.op.new_order
        (turned,) = turned.owner.inputs
    if not is_private(turned) or type(turned.owner.op) is not CAReduce:
        return None
    op = turned.owner.op
    if op.scalar_op != OPS["maximum"]:
        return None
    (inside,) = turned.owner.inputs
    inner_order = None
    if inside.owner is not None and isinstance(inside.owner.op, DimShuffle):
        inner_order = inside.owner.op.new_order
        (inside,) = inside.owner.inputs
    if inside.owner is None or row_name(inside.owner) != row_name(node):
        return None
    x = _turned(inside.owner)
    if x is None:
        return None
    new = CAReduce(OPS["minimum"], op.axis)(x if inner_order is None else shuffled(x, inner_order))
    return for_output(node, new if order is None else shuffled(new, order))


def _turned(node: Apply) -> Var:
    """Return the operand whose order an Apply reverses, or None."""
    name = row_name(node)
    if name == "neg" and node.inputs[0].type.dtype not in dtypes.FLOATS:
        return None  # the smallest integer has no negative
    if name != "sub":
        return node.inputs[0]
    # unsigned integers have no negatives: they are subtracted from the largest one
    largest, x = node.inputs
    if x.type.dtype not in dtypes.UNSIGNED or number(largest) is None:
        return None
    return x if number(largest) == number(number_like(x, -1)) else None


# --- sums of products -----------------------------------------------------------------------------


@rule(Sum, stage="stabilize")
def local_sum_of_outer_product(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The sum of ``x[:, :, None] * y[None]`` along an axis of both is a product of matrices.

    It is one where each factor has an axis of its own that is kept, so that a factor's elements
    meet many of the other's. Of several axes that are summed, a product would not notice that
    their lengths differ.
    """
    (x,), out = node.inputs, node.outputs[0]
    product = x.owner
    if product is None or row_name(product) != "mul" or not is_private(x):
        return None
    factors = product.inputs
    if len(factors) != 2:
        return None
    dtype = out.type.dtype
    every = {each.type.dtype for each in (x, *factors)} | {node.op.acc_dtype or dtype}
    if every != {dtype} or dtype not in ("float32", "float64"):
        return None
    summed = axes_of(node)
    of_axis = [tuple(not one for one in ones) for ones in zip(
        *(factor.type.broadcastable for factor in factors), strict=True
    )]  # fmt: skip
    kept = [d for d in range(len(of_axis)) if d not in summed]
    if len(summed) != 1 or of_axis[summed[0]] != (True, True):
        return None
    own = [[d for d in kept if of_axis[d] == which] for which in ((True, False), (False, True))]
    if not all(own) or sum(map(len, own)) < len(kept):
        return None
    left, right = (
        shuffled(factor, (*first, *last))
        for factor, first, last in zip(factors, (own[0], summed), (summed, own[1]), strict=True)
    )
    order = [*own[0], *own[1]]
    found = shuffled(tensordot(left, right, 1), [order.index(d) for d in kept])
    return for_output(node, found)
