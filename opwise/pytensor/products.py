"""Translations of products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from pytensor.tensor.blas import BatchedDot
from pytensor.tensor.math import Dot

from opwise.frontends import Translator
from opwise.graph.variable import Var
from opwise.pytensor.frontend import translates
from opwise.tensor.blas import BatchedDot as OwnBatchedDot
from opwise.tensor.dot import Dot as OwnDot
from opwise.tensor.elemwise import cast


@translates(Dot)
def _dot(t: Translator, node: Any, x: Var, y: Var) -> Var:
    return OwnDot()(x, y)


@translates(BatchedDot)
def _batched_dot(t: Translator, node: Any, x: Var, y: Var) -> Var:
    dtype = node.outputs[0].type.dtype
    return OwnBatchedDot()(*[a if a.type.dtype == dtype else cast(a, dtype) for a in (x, y)])
