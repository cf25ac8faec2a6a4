"""Rules on inverses, systems of equations, determinants and traces, and on hints about matrices.

Theano has most of them in ``theano.sandbox.linalg.ops``. Only those whose result is at least as
accurate, and fails where the original fails, apply without a hint.
"""

from __future__ import annotations

from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.features import Feature
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var, Variable
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import for_output, is_private, number, operands
from opwise.scalar import dtypes
from opwise.tensor.blas import Dot22
from opwise.tensor.diagonal import ExtractDiag, diagonal
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import elemwise
from opwise.tensor.linalg.factor import Cholesky, cholesky
from opwise.tensor.linalg.hint import Hint, is_positive, is_psd, is_symmetric
from opwise.tensor.linalg.inverse import Det, MatrixInverse
from opwise.tensor.linalg.systems import (
    Solve,
    solve_lower_triangular,
    solve_upper_triangular,
)
from opwise.tensor.reduce import Prod, prod
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.shape import shape_i

_log = elemwise("log")

# --- hints --------------------------------------------------------------------------------------


class HintsFeature(Feature):
    """Keeps the hints about variables of a graph, and passes them on to their replacements.

    ``hints`` is a dict from a variable to a dict from names of hints to their values.
    """

    def __init__(self) -> None:
        self.hints: dict[Any, Any] = {}

    def on_attach(self, fgraph: FunctionGraph) -> None:
        fgraph.hints_feature = self

    def on_detach(self, fgraph: FunctionGraph) -> None:
        fgraph.hints_feature = None

    def add_hint(self, r: Var, k: str, v: bool) -> None:
        """Add the hint ``k`` with value ``v`` about a variable."""
        self.hints.setdefault(r, {})[k] = v

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Any,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        if old in self.hints or new in self.hints:
            both = {**self.hints.get(old, {}), **self.hints.get(new, {})}
            self.hints[old] = self.hints[new] = both


@rule(Hint, stage="canonicalize")
def remove_hint_nodes(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes hints from the graph, and keeps what they say."""
    if fgraph.hints_feature is None:
        fgraph.attach_feature(HintsFeature())
    for name, value in node.op.hints:
        fgraph.hints_feature.add_hint(node.inputs[0], name, value)
    return node.inputs


@rule(DimShuffle, stage=("canonicalize", "stabilize", "specialize"))
def no_transpose_symmetric(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The transpose of a matrix that a hint says is symmetric is the matrix."""
    (x,) = node.inputs
    return [x] if node.op.new_order == (1, 0) and is_symmetric(x) else None


# --- systems of equations -----------------------------------------------------------------------


def _made_by(var: Var, op_class: tuple[type, ...] | type) -> Apply | None:
    """Return the Apply of ``op_class`` that computes a variable, or None."""
    node = var.owner
    return node if node is not None and isinstance(node.op, op_class) else None


def _transposed(var: Var) -> Var:
    """Return the matrix of which a variable is the transpose, or None."""
    node = _made_by(var, DimShuffle)
    return node.inputs[0] if node is not None and node.op.new_order == (1, 0) else None


def _inverse_of(var: Var) -> Var:
    """Return the matrix of which a variable that one Apply reads is the inverse, or None."""
    node = _made_by(var, MatrixInverse)
    if node is None or not is_private(var) or var.type.dtype in dtypes.DISCRETE:
        return None
    return node.inputs[0]


@rule(DimShuffle, stage="canonicalize")
def transinv_to_invtrans(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """inverse(x).T is inverse(x.T), if nothing else reads the inverse: a product may follow."""
    if node.op.new_order != (1, 0):
        return None
    inverse: Var = node.inputs[0]
    x = _inverse_of(inverse)
    return None if x is None else [inverse.owner.op(node.op(x))]


#: a solution in place of an inverse and a product: NaN stays NaN, as in the inverse
_solve_quietly = Solve(check_finite=False)


@rule(Dot, Dot22, stage="stabilize")
def inv_as_solve(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """dot(inverse(x), y) is solve(x, y), if nothing else reads the inverse."""
    left: Var
    left, right = node.inputs
    x = _inverse_of(left)
    if x is not None:
        return for_output(node, _solve_quietly(x, right))
    x = _inverse_of(right)
    if x is None:
        return None
    transposed = x if is_symmetric(x) else x.T
    return for_output(node, _solve_quietly(transposed, left.T).T)


@rule(Solve, stage=("canonicalize", "stabilize"))
def tag_solve_triangular(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A system whose matrix is a Cholesky factor, or the transpose of one, is triangular."""
    if node.op.is_triangular:
        return None
    A, b = node.inputs
    of = _transposed(A)
    factor = _made_by(A if of is None else of, Cholesky)
    if factor is None:
        return None
    lower = bool(factor.op.lower) is (of is None)
    triangular = node.op.variant(
        A_structure=f"{'lower' if lower else 'upper'}_triangular", lower=lower, inplace=False
    )
    return for_output(node, triangular(A, b))


@rule(Solve, stage="stabilize")
def psd_solve_with_chol(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """A system whose matrix a hint says is positive definite is solved by its Cholesky factor."""
    A, b = node.inputs
    if node.op.is_triangular or not is_psd(A) or A.type.dtype in dtypes.DISCRETE:
        return None
    factor = cholesky(A)
    halfway = solve_lower_triangular(factor, b)
    return for_output(node, solve_upper_triangular(factor.T, halfway))


# --- determinants and traces --------------------------------------------------------------------


@rule(Det, stage=("stabilize", "specialize"))
def local_det_chol(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The determinant of a matrix, or of its Cholesky factor, is a product of the diagonal."""
    (x,) = node.inputs
    if x.type.dtype in dtypes.DISCRETE:
        return None
    if _made_by(x, Cholesky) is not None:
        return for_output(node, prod(diagonal(x)))
    for client, _ in x._clients:
        if client != "output" and isinstance(client.op, Cholesky):
            if client.op.on_error == "raise":
                return for_output(node, prod(elemwise("sqr")(diagonal(client.outputs[0]))))
    return None


@rule("row:log", stage=("canonicalize", "stabilize", "specialize"))
def local_log_prod_sqr(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(prod(x)) is sum(log(x)), which does not overflow, for an x without negative elements."""
    (x,) = node.inputs
    product = _made_by(x, Prod)
    if product is None or not is_private(x) or not _is_positive(product.inputs[0]):
        return None
    return for_output(node, sum_(_log(product.inputs[0]), axis=product.op.axis))


def _is_positive(x: Var) -> bool:
    """Return whether no element of x is negative: the diagonal of a factor is positive, too."""
    of = _made_by(x, ExtractDiag)
    if of is not None and of.op.offset == 0 and _made_by(of.inputs[0], Cholesky) is not None:
        return True
    return is_positive(x)


@rule("row:log", stage=("canonicalize", "stabilize", "specialize"))
def local_log_pow(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """log(x ** c) is c * log(x), or c * log(abs(x)) for an even number c: x ** c may overflow."""
    (x,) = node.inputs
    squared = operands(x, "sqr")
    base, exponent = (squared[0], 2) if squared else _power(x)
    if exponent in (None, 0) or base.type.dtype != node.outputs[0].type.dtype:
        return None
    inside = elemwise("abs_")(base) if exponent % 2 == 0 else base
    return for_output(node, elemwise("mul")(float(exponent), _log(inside)))


def _power(x: Var) -> tuple[Any, ...]:
    """Return (base, exponent) of a power with a constant exponent of any finite number."""
    base, exponent = operands(x, "pow") or (x, None)
    c = None if exponent is None else number(exponent)
    return base, c if c is not None and abs(c) < float("inf") else None


@rule(ExtractDiag, stage="specialize")
def local_diag_of_dot(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """The diagonal of dot(x, y) is sum(x * y.T, axis=1): the other elements are not computed."""
    (product,) = node.inputs
    by = _made_by(product, (Dot, Dot22))
    if by is None or not is_private(product) or node.op.offset or node.op.axis1 > node.op.axis2:
        return None
    x: Var
    y: Var
    x, y = by.inputs
    if product.type.ndim != 2 or x.type.dtype != y.type.dtype or x.type.dtype in dtypes.DISCRETE:
        return None
    rows, columns = shape_i(x, 0, fgraph), shape_i(y, 1, fgraph)
    return for_output(node, sum_(x[:columns] * y.T[:rows], axis=1))
