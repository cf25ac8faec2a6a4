"""Rules that replace products of matrices and vectors, with scales and sums, by BLAS Ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Var
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.canonizer import WIDEST
from opwise.optimizers.rules.matching import for_output, is_private, row_name
from opwise.scalar import dtypes
from opwise.tensor.blas import (
    BatchedDot,
    CGemv,
    CGer,
    Dot22,
    Dot22Scalar,
    Gemm,
    Gemv,
    Ger,
    _dot22,
    _dot22scalar,
    cgemv_no_inplace,
    cger_no_inplace,
    gemm_no_inplace,
    gemv_no_inplace,
    ger,
)
from opwise.tensor.creation import alloc_empty
from opwise.tensor.dimshuffle import DimShuffle, dimshuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.shape import shape_i
from opwise.tensor.variable import constant

if TYPE_CHECKING:
    from opwise.tensor.type import TensorType


_FLOATS = ("float32", "float64")


@rule(Dot, stage="local_dot_to_dot22", tags=("fast_run", "fast_compile"))
def local_dot_to_dot22(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The product of two matrices of one floating or complex dtype is a Dot22."""
    x, y = node.inputs
    if x.type.dtype != y.type.dtype or x.type.dtype not in (*_FLOATS, "complex64", "complex128"):
        return None
    if x.type.ndim == 2 and y.type.ndim == 2:
        return [_dot22(x, y)]
    return None


@rule(BatchedDot, stage="specialize")
def local_batched_dot_of_vectors(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Vectors in batched products become matrices; a column times a row needs no sum."""
    x: Var
    y: Var
    x, y = node.inputs
    if x.type.ndim == y.type.ndim == 3:
        one_term = x.type.broadcastable[2] and y.type.broadcastable[1]
        if not one_term or x.type.broadcastable[0] != y.type.broadcastable[0]:
            return None
        return for_output(node, elemwise("mul")(x, y))
    kept = [0, *[1] * (x.type.ndim == 3), *[2] * (y.type.ndim == 3)]
    x = x if x.type.ndim == 3 else dimshuffle(x, (0, "x", 1))
    y = y if y.type.ndim == 3 else dimshuffle(y, (0, 1, "x"))
    return for_output(node, dimshuffle(node.op(x, y), kept))


# --- sums with a product ------------------------------------------------------------------------


class GemmOptimizer(Optimizer):
    """Replaces ``beta L + alpha x y``, in whatever form, by one Gemm, Gemv or Ger.

    A sum, or a sum times scalars, is opened into scaled terms through add, sub, neg and
    multiplication by scalars, as far as its parts have no other readers.
    """

    name = "gemm_optimizer"

    def apply(self, fgraph: FunctionGraph) -> Any:
        waiting = [node for node in fgraph.toposort() if _is_sum(node)]
        while waiting:
            node = waiting.pop()
            if node not in fgraph.apply_nodes:
                continue
            out = node.outputs[0]
            if _is_part_of_sum(out):
                continue  # the sum that contains it has all of its terms
            new = _with_product(node)
            if new is not None:
                fgraph.replace_all([(out, new)], reason=self.name)
                if new.owner is not None and _is_sum(new.owner):
                    waiting.append(new.owner)


def _is_sum(node: Apply) -> bool:
    """Return whether an Apply adds matrices or vectors, or scales their sum."""
    name = row_name(node)
    if name not in ("add", "sub", "mul"):
        return False
    type_: Any = node.outputs[0].type
    if type_.dtype not in _FLOATS or type_.ndim not in (1, 2):
        return False
    if name != "mul":
        return True
    split = _split_scalars(node, type_)
    return split is not None and is_private(split[1]) and _is_sum(split[1].owner)


def _is_part_of_sum(var: Var) -> bool:
    """Return whether the only reader of a sum is another sum of the same type."""
    if len(var._clients) != 1:
        return False
    ((client, _),) = var._clients
    return client != "output" and _is_sum(client) and client.outputs[0].type == var.type


def _terms(total: Var) -> list[tuple[Any, ...]]:
    """Return the terms of a sum as (scalars, sign, variable, whether it has no other reader)."""
    found = []
    stack: list[tuple[list[Any], Any, Any]] = [([], 1, total)]
    while stack:
        scalars, sign, var = stack.pop()
        node = var.owner
        alone = len(var._clients) == 1
        if node is not None and (alone or var is total) and var.type == total.type:
            name = row_name(node)
            if name == "add":
                stack.extend((scalars, sign, x) for x in reversed(node.inputs))
                continue
            if name == "sub":
                first, second = node.inputs
                stack += [(scalars, -sign, second), (scalars, sign, first)]
                continue
            if name == "neg":
                stack.append((scalars, -sign, node.inputs[0]))
                continue
            if name == "mul":
                split = _split_scalars(node, total.type)
                if split is not None:
                    more, rest = split
                    stack.append((scalars + more, sign, rest))
                    continue
        if node is not None and alone and isinstance(node.op, Dot22Scalar):
            x, y, a = node.inputs
            found.append(([*scalars, a], sign, _dot22(x, y), True))
        else:
            found.append((scalars, sign, var, alone))
    return found


def _split_scalars(node: Apply, out_type: TensorType) -> tuple[Any, ...] | None:
    """Return (scalars as 0-d variables, the only other factor) of a product, or None."""
    scalars, rest = [], None
    for x in node.inputs:
        if all(x.type.broadcastable):
            scalar = _as_scalar(x, out_type.dtype)
            if scalar is None:
                return None
            scalars.append(scalar)
        elif rest is None:
            rest = x
        else:
            return None
    return (scalars, rest) if rest is not None and rest.type == out_type else None


def _as_scalar(x: Var, dtype: str) -> Var:
    """Return a variable whose dimensions all have length 1 as a 0-d one of ``dtype``, or None."""
    if dtypes.upcast(x.type.dtype, dtype) != dtype:
        return None
    while x.owner is not None and isinstance(x.owner.op, DimShuffle):
        x = x.owner.inputs[0]
    if not all(x.type.broadcastable):
        return None
    if isinstance(x, Constant):
        return constant(x.data.reshape(()).astype(dtype))
    return cast(dimshuffle(x, ()) if x.type.ndim else x, dtype)


def _with_product(node: Apply) -> Var:
    """Return a variable equal to a sum, with a product and another term fused, or None."""
    out = node.outputs[0]
    terms = _terms(out)
    if len(terms) < 2 or all(_product(var) is None for _, _, var, _ in terms):
        return None
    terms = _collected(terms, out.type.dtype)
    # terms that are no products first: the result can be fused with another product
    others = sorted(enumerate(terms), key=lambda k_term: _product(k_term[1][2]) is not None)
    for i, term in enumerate(terms):
        if not _is_lone_product(term, out):
            continue
        for j, other in others:
            if j == i or other[2].type != out.type:
                continue
            new = _combined(term, other, out)
            if new is not None:
                rest = [t for k, t in enumerate(terms) if k not in (i, j)]
                return _with_more_products(new, rest, out)
    return None


def _with_more_products(total: Var, terms: Any, out: Var) -> Var:
    """Return ``total`` plus the terms; it is fused with the products among them, one by one."""
    left = []
    for term in terms:
        new = None
        if _is_lone_product(term, out):
            new = _combined(term, ([], 1, total, True), out)
        if new is None:
            left.append(_rebuilt(term, out.type.dtype))
        else:
            total = new
    while left:
        total = elemwise("add")(total, *left[: WIDEST - 1])
        left = left[WIDEST - 1 :]
    return total


def _is_lone_product(term: tuple[Any, ...], out: Var) -> bool:
    _, _, var, alone = term
    # a term that broadcasts does not have the shape of the sum
    return alone and var.type == out.type and _product(var) is not None


def _combined(term: tuple[Any, ...], other: Any, out: Var) -> Var:
    """Return a product, as a term of a sum, and another term as one Apply, or None."""
    scalars, sign, var, _ = term
    its_scalars, its_sign, its_var, _ = other
    alpha = _scale(scalars, sign, out.type.dtype)
    beta = _scale(its_scalars, its_sign, out.type.dtype)
    found = _product(var)
    assert found is not None
    kind, x, y = found
    combine = gemm_no_inplace if kind == "mm" else gemv_no_inplace
    new = combine(its_var, alpha, x, y, beta)
    return new if new.type == out.type else None


def _collected(terms: Any, dtype: str) -> list[tuple[Any, ...]]:
    """Return the terms, with the scalars of terms of the same variable added."""
    by_variable: dict[Any, list[Any]] = {}
    for term in terms:
        by_variable.setdefault(term[2], []).append(term)
    collected = []
    for var, equal in by_variable.items():
        if len(equal) == 1:
            collected.append(equal[0])
            continue
        scales = [_scale(scalars, sign, dtype) for scalars, sign, *_ in equal]
        numbers = [float(s.data) for s in scales if isinstance(s, Constant)]
        total = [s for s in scales if not isinstance(s, Constant)]
        if numbers:
            total.append(constant(sum(numbers), dtype=dtype))
        scale = total[0] if len(total) == 1 else elemwise("add")(*total)
        # all readers of the variable are terms of this sum
        alone = len(var._clients) <= len(equal)
        collected.append(([scale], 1, var, alone))
    return collected


def _product(var: Var) -> tuple[Any, ...] | None:
    """Return (kind, x, y) of a product of two matrices, or of a matrix and a vector."""
    node = var.owner
    if node is None:
        return None
    if isinstance(node.op, Dot22):
        return ("mm", *node.inputs)
    if isinstance(node.op, Dot):
        x, y = node.inputs
        if x.type.dtype == y.type.dtype and (x.type.ndim, y.type.ndim) in ((2, 1), (1, 2)):
            return ("mv", x, y) if x.type.ndim == 2 else ("mv", dimshuffle(y, (1, 0)), x)
    if isinstance(node.op, DimShuffle) and node.inputs[0].owner is not None:
        inner = node.inputs[0]
        if (
            node.op.new_order == (0,)
            and isinstance(inner.owner.op, Dot22)
            and len(inner._clients) == 1
        ):
            x, y = inner.owner.inputs
            return ("mv", x, dimshuffle(y, (0,)))
    return None


def _scale(scalars: Sequence[Var], sign: int, dtype: str) -> Var:
    """Return the product of scalars with a sign as one 0-d variable."""
    numbers = [s for s in scalars if isinstance(s, Constant)]
    symbols = [s for s in scalars if not isinstance(s, Constant)]
    value = float(sign)
    for n in numbers:
        value *= float(n.data)
    factor = constant(value, dtype=dtype)
    if not symbols:
        return factor
    result = symbols[0] if len(symbols) == 1 else elemwise("mul")(*symbols)
    if value == 1:
        return result
    if value == -1:
        return elemwise("neg")(result)
    return elemwise("mul")(factor, result)


def _rebuilt(term: tuple[Any, ...], dtype: str) -> Var:
    """Return a term of a sum of ``dtype`` as one variable, with its sign and scalars."""
    scalars, sign, var, _ = term
    if not scalars:
        return var if sign > 0 else elemwise("neg")(cast(var, dtype))
    return elemwise("mul")(_scale(scalars, sign, dtype), var)


@rule("row:mul", stage="local_dot22_to_dot22scalar")
def local_dot22_to_dot22scalar(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product of matrices times scalars is one Dot22Scalar, if only the scaling reads it."""
    out: Var = node.outputs[0]
    if out.type.dtype not in _FLOATS or out.type.ndim != 2:
        return None
    split = _split_scalars(node, out.type)
    if split is None or not split[0]:
        return None
    scalars, rest = split
    if not is_private(rest) or not isinstance(rest.owner.op, Dot22):
        return None
    x, y = rest.owner.inputs
    return [_dot22scalar(x, y, _scale(scalars, 1, out.type.dtype))]


# --- products with a vector ---------------------------------------------------------------------


def _is_number(var: Var, value: Any) -> bool:
    return isinstance(var, Constant) and float(var.data) == value


@rule(Gemm, Dot22, Dot, stage="local_gemm_to_gemv")
def local_gemm_to_gemv(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A product with a vector, or a matrix of one row or column, is a Gemv, Ger or dot."""
    if isinstance(node.op, Dot):
        return _vector_product(fgraph, *node.inputs)
    x: Var
    y: Var
    if isinstance(node.op, Dot22):
        x, y = node.inputs
        if x.type.broadcastable[1] and y.type.broadcastable[0]:
            return [elemwise("mul")(x, y)]  # a column times a row needs no sum
        return None
    z: Var
    alpha: Var
    beta: Var
    z, alpha, x, y, beta = node.inputs
    pattern = node.outputs[0].type.broadcastable
    if x.type.broadcastable == (False, True) and y.type.broadcastable == (True, False):
        if _is_number(beta, 1.0):
            return [ger(z, alpha, dimshuffle(x, (0,)), dimshuffle(y, (1,)))]
        if _is_number(beta, 0.0):  # a column times a row needs no sum
            return for_output(node, elemwise("mul")(alpha, x, y))
    elif pattern == (False, True) and y.type.broadcastable[1]:
        new = gemv_no_inplace(dimshuffle(z, (0,)), alpha, x, dimshuffle(y, (0,)), beta)
        return [dimshuffle(new, (0, "x"))]
    elif pattern == (True, False) and x.type.broadcastable[0]:
        new = gemv_no_inplace(
            dimshuffle(z, (1,)), alpha, dimshuffle(y, (1, 0)), dimshuffle(x, (1,)), beta
        )
        return [dimshuffle(new, ("x", 0))]
    return None


def _vector_product(fgraph: FunctionGraph, x: Var, y: Var) -> list[Var] | None:
    dtype = x.type.dtype
    if dtype != y.type.dtype or dtype not in _FLOATS:
        return None
    one, zero = constant(1.0, dtype=dtype), constant(0.0, dtype=dtype)
    if (x.type.ndim, y.type.ndim) == (1, 2):
        x, y = dimshuffle(y, (1, 0)), x
    elif (x.type.ndim, y.type.ndim) != (2, 1):
        return None
    new = gemv_no_inplace(alloc_empty(dtype)(shape_i(x, 0, fgraph)), one, x, y, zero)
    return [new]


@rule(Gemv, Ger, stage="use_c_blas", tags=("fast_run", "c_blas"))
def use_c_blas(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Gemv is a CGemv, and Ger a CGer."""
    if isinstance(node.op, CGemv | CGer) or node.op.destroy_map:
        return None
    op = cgemv_no_inplace if isinstance(node.op, Gemv) else cger_no_inplace
    return [op(*node.inputs)]
