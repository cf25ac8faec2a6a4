"""Lengths as sums: what rules know about differences of symbolic integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.graph.variable import Constant, Variable
from opwise.optimizers.rules.matching import is_cast, row_name
from opwise.optimizers.shapefeature import same_length
from opwise.scalar import dtypes
from opwise.tensor.convert import ScalarFromTensor, TensorFromScalar
from opwise.tensor.elemwise import elemwise
from opwise.tensor.shape import length
from opwise.tensor.slices import known_int

#: terms that are looked at; longer sums are taken as one term
MOST = 64


class LengthSum:
    """A sum of variables, each times an integer, and a number."""

    def __init__(self, n: Any) -> None:
        #: [variable, factor]
        self.terms: list[list[Any]] = []
        self.number = 0
        self.add(n, 1)

    def add(self, n: Any, factor: int) -> None:
        """Add an integer or a variable of integers, times a factor."""
        stack: list[tuple[Any, int]] = [(n, factor)]
        seen = 0
        while stack:
            part, times = stack.pop()
            seen += 1
            value = part if isinstance(part, int | np.integer) else known_int(part)
            if value is not None:
                self.number += times * int(value)
                continue
            opened = _opened(part) if seen < MOST else None
            if opened is None:
                self._add_term(part, times)
            else:
                stack += [(term, times * by) for term, by in opened]

    def _add_term(self, var: Variable, factor: int) -> None:
        for term in self.terms:
            if same_length(term[0], var):
                term[1] += factor
                return
        self.terms.append([var, factor])

    def value(self) -> int | None:
        """Return the number that the sum is, or None if it depends on a variable."""
        return None if any(factor for _, factor in self.terms) else self.number

    def is_positive(self) -> bool:
        """Return whether the sum is known to be 0 or more if its variables are."""
        return self.number >= 0 and all(factor >= 0 for _, factor in self.terms)

    def as_length(self) -> Any:
        """Return the sum as a 0-d int64 variable."""
        terms = [
            length(var) if factor == 1 else elemwise("mul")(length(var), length(factor))
            for var, factor in self.terms
            if factor
        ]
        if self.number or not terms:
            terms.append(length(self.number))
        return terms[0] if len(terms) == 1 else elemwise("add")(*terms)


def _opened(var: Variable) -> list[tuple[Any, int]] | None:
    """Return the (term, factor) pairs that add up to an integer variable, or None."""
    node = var.owner
    if node is None:
        return None
    if isinstance(node.op, ScalarFromTensor | TensorFromScalar):
        return [(node.inputs[0], 1)]
    name = row_name(node)
    if name == "add":
        return [(term, 1) for term in node.inputs]
    if name == "sub":
        return [(node.inputs[0], 1), (node.inputs[1], -1)]
    if name == "neg":
        return [(node.inputs[0], -1)]
    if name == "mul" and len(node.inputs) == 2:
        for factor, other in (node.inputs, node.inputs[::-1]):
            known = known_int(factor) if isinstance(factor, Constant) else None
            if known is not None:
                return [(other, known)]
    if _is_widened(node):
        return [(node.inputs[0], 1)]
    return None


def _is_widened(node: Any) -> bool:
    """Return whether an Apply casts an integer to int64."""
    if not is_cast(node):
        return False
    to, source = node.outputs[0].type.dtype, node.inputs[0].type.dtype
    return to == "int64" and source in dtypes.DISCRETE


def difference(a: Any, b: Any) -> int | None:
    """Return a - b of two integers or variables of integers if it is a known number."""
    total = LengthSum(a)
    total.add(b, -1)
    return total.value()
