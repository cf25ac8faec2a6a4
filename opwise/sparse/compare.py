"""Comparisons of sparse matrices, elementwise: uint8 matrices with 1 where they hold."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.opmethods import connects, shapes_of
from opwise.graph.variable import Var
from opwise.sparse.type import SparseType
from opwise.sparse.variable import _is_sparse_variable, as_sparse_variable, sparse_operands
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable


class _Comparison(Op):
    """Base of the comparisons; ``compare`` is Python's operator."""

    __props__ = ()
    compare: ClassVar[Callable[[Any, Any], Any]]

    def comparison(self, x: Any, y: Any) -> Any:
        """Return where two values compare so."""
        return type(self).compare(x, y)

    infer_shape = shapes_of(0)
    connection_pattern = connects()

    def _check_shapes(self, x: Any, y: Any) -> None:
        if x.shape != y.shape:
            raise AssertionError(
                f"{self}: the operands have the shapes {x.shape} and {y.shape}, which must be equal"
            )


class _ComparisonSS(_Comparison):
    """A comparison of two sparse matrices of one format; the result is sparse."""

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_sparse_variable(x), as_sparse_variable(y)
        if x.type.format != y.type.format:
            raise NotImplementedError(
                f"{self} compares matrices of one format, not {x.type} with {y.type}"
            )
        out = SparseType(dtype="uint8", format=x.type.format)
        return Apply(self, [x, y], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        self._check_shapes(x, y)
        out: Any = node.outputs[0].type
        if bool(type(self).compare(0, 0)):
            # true where neither has an entry: nearly all elements are, so scipy works densely too
            found = self.comparison(x.toarray(), y.toarray())
        else:
            found = self.comparison(x, y)
        output_storage[0][0] = out.format_cls[out.format](found, dtype=np.uint8)


class _ComparisonSD(_Comparison):
    """A comparison of a sparse matrix with a dense one; the result is dense."""

    def make_node(self, x: Var, y: Var) -> Apply:
        x, y = as_sparse_variable(x), as_tensor_variable(y)
        if y.type.ndim != 2:
            raise AssertionError(f"{self} compares with a matrix, not with {y} of {y.type}")
        return Apply(self, [x, y], [tensor_type("uint8", (False, False)).make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, y = inputs
        self._check_shapes(x, y)
        output_storage[0][0] = self.comparison(x.toarray(), y).astype(np.uint8)


class EqualSS(_ComparisonSS):
    """x == y for sparse matrices."""

    compare = operator.eq


class EqualSD(_ComparisonSD):
    """x == y for a sparse and a dense matrix."""

    compare = operator.eq


class NotEqualSS(_ComparisonSS):
    """x != y for sparse matrices."""

    compare = operator.ne


class NotEqualSD(_ComparisonSD):
    """x != y for a sparse and a dense matrix."""

    compare = operator.ne


class LessThanSS(_ComparisonSS):
    """x < y for sparse matrices."""

    compare = operator.lt


class LessThanSD(_ComparisonSD):
    """x < y for a sparse and a dense matrix."""

    compare = operator.lt


class GreaterThanSS(_ComparisonSS):
    """x > y for sparse matrices."""

    compare = operator.gt


class GreaterThanSD(_ComparisonSD):
    """x > y for a sparse and a dense matrix."""

    compare = operator.gt


class LessEqualSS(_ComparisonSS):
    """x <= y for sparse matrices."""

    compare = operator.le


class LessEqualSD(_ComparisonSD):
    """x <= y for a sparse and a dense matrix."""

    compare = operator.le


class GreaterEqualSS(_ComparisonSS):
    """x >= y for sparse matrices."""

    compare = operator.ge


class GreaterEqualSD(_ComparisonSD):
    """x >= y for a sparse and a dense matrix."""

    compare = operator.ge


equal_s_s, equal_s_d = EqualSS(), EqualSD()
not_equal_s_s, not_equal_s_d = NotEqualSS(), NotEqualSD()
less_than_s_s, less_than_s_d = LessThanSS(), LessThanSD()
greater_than_s_s, greater_than_s_d = GreaterThanSS(), GreaterThanSD()
less_equal_s_s, less_equal_s_d = LessEqualSS(), LessEqualSD()
greater_equal_s_s, greater_equal_s_d = GreaterEqualSS(), GreaterEqualSD()


def _comparison(name: str, sign: str, both: Op, dense: Op, reflected: Op) -> Callable[..., Any]:
    """Return the function that compares by ``both`` (sparse), ``dense`` or ``reflected``.

    reflected: compares a dense matrix on the left: the operands are exchanged.
    """

    def compare(x: Any, y: Any) -> Any:
        x, y = sparse_operands(x, y, name)
        if not _is_sparse_variable(x):
            return reflected(y, x)
        return both(x, y) if _is_sparse_variable(y) else dense(x, y)

    compare.__name__ = compare.__qualname__ = name
    compare.__doc__ = (
        f"Return ``x {sign} y`` elementwise, 1 where it holds, for matrices of one shape.\n\n"
        "At least one of them must be sparse. The result has their shape and dtype uint8; it is\n"
        "sparse, in their format, if both are, else dense. Raises AssertionError if none is\n"
        "sparse or a dense one is no matrix, NotImplementedError if two sparse ones have\n"
        "different formats; AssertionError at run time if the shapes differ."
    )
    return compare


eq = _comparison("eq", "==", equal_s_s, equal_s_d, equal_s_d)
neq = _comparison("neq", "!=", not_equal_s_s, not_equal_s_d, not_equal_s_d)
lt = _comparison("lt", "<", less_than_s_s, less_than_s_d, greater_than_s_d)
gt = _comparison("gt", ">", greater_than_s_s, greater_than_s_d, less_than_s_d)
le = _comparison("le", "<=", less_equal_s_s, less_equal_s_d, greater_equal_s_d)
ge = _comparison("ge", ">=", greater_equal_s_s, greater_equal_s_d, less_equal_s_d)
