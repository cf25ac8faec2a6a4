"""Translations of reductions and of the positions of extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.scalar.basic as ps
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.math import Argmax, MulWithoutZeros

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.pytensor.frontend import translates
from opwise.scalar import dtypes
from opwise.scalar.op import OPS
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.reduce import Argmax as OwnArgmax
from opwise.tensor.reduce import CAReduce as OwnCAReduce
from opwise.tensor.reduce import Prod, ProdWithoutZeros, Sum, Supremum
from opwise.tensor.variable import constant

#: PyTensor's scalar operation -> opwise's, for reductions that keep the dtype
_KEEPING = {ps.Maximum: "maximum", ps.Minimum: "minimum", ps.AND: "and_", ps.OR: "or_"}
#: PyTensor's scalar operation -> opwise's reduction, which has a dtype to compute in
_WITH_DTYPES = {ps.Add: Sum, ps.Mul: Prod, MulWithoutZeros: ProdWithoutZeros}


@translates(CAReduce)
def _reduction(t: Translator, node: Any, x: Var) -> Var:
    op, dtype = node.op, node.outputs[0].type.dtype
    axis = list(range(x.type.ndim)) if op.axis is None else list(op.axis)
    kind = type(op.scalar_op)
    if kind in _WITH_DTYPES:
        if x.type.dtype == "bool" and dtype == "bool":
            raise Untranslated(f"{op} of booleans to a boolean has no translation")
        acc = op._acc_dtype(x.type.dtype) if op.acc_dtype is None else op.acc_dtype
        return _WITH_DTYPES[kind](axis=axis, dtype=dtype, acc_dtype=acc)(x)
    if kind not in _KEEPING:
        raise Untranslated(f"a reduction by {op.scalar_op} has no translation")
    if not axis:  # one of no axis copies
        return cast(elemwise("identity")(x), dtype)
    if op.dtype not in (None, x.type.dtype):
        raise Untranslated(f"{op} with another dtype has no translation")
    name = _KEEPING[kind]
    if getattr(op, "initial", False):  # the result without any element is an infinity
        if x.type.dtype not in dtypes.FLOATS:
            raise Untranslated(f"{op} of {x.type.dtype}, with an initial value, has no translation")
        if name == "maximum":
            return Supremum(axis)(x)
        return elemwise("neg")(Supremum(axis)(elemwise("neg")(x)))
    if name in ("and_", "or_") and x.type.dtype != dtype:
        x = elemwise("neq")(x, constant(np.asarray(0, x.type.dtype)))
    return OwnCAReduce(OPS[name], axis)(x)


@translates(Argmax)
def _argmax(t: Translator, node: Any, x: Var) -> Var:
    axis = node.op.axis
    return OwnArgmax(tuple(range(x.type.ndim)) if axis is None else tuple(axis))(x)
