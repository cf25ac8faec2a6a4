"""Translation of PyMC's splines, which are scipy's: polynomials between knots."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Var
from opwise.pytensor.frontend import translates
from opwise.tensor.elemwise import elemwise
from opwise.tensor.extra_ops import SearchsortedOp
from opwise.tensor.variable import constant

#: what a spline is outside its knots, as scipy numbers it
_EXTRAPOLATED, _ZERO, _CONSTANT = 0, 1, 3


@translates("pymc.distributions.dist_math.SplineWrapper")
def _spline(t: Translator, node: Any, x: Var) -> Var:
    from scipy.interpolate import BSpline, PPoly

    spline = node.op.spline
    outside, of_spline = getattr(spline, "ext", None), getattr(spline, "_eval_args", None)
    if of_spline is None or outside not in (_EXTRAPOLATED, _ZERO, _CONSTANT):
        raise Untranslated(f"{type(spline).__name__} with ext={outside!r} has no translation")
    knots, _, degree = of_spline
    pieces = PPoly.from_spline(BSpline(*of_spline))
    wide = np.diff(pieces.x) > 0
    starts, coefficients = pieces.x[:-1][wide], pieces.c[:, wide]
    first, last = (constant(np.float64(knots[k])) for k in (degree, -degree - 1))
    at = x
    if outside == _CONSTANT:
        at = elemwise("minimum")(elemwise("maximum")(x, first), last)
    piece = SearchsortedOp("right")(constant(starts[1:]), at)
    distance = elemwise("sub")(at, constant(starts)[piece])
    value: Var = constant(coefficients[0])[piece]
    for of_power in coefficients[1:]:
        value = elemwise("add")(elemwise("mul")(value, distance), constant(of_power)[piece])
    if outside == _ZERO:
        is_outside = elemwise("or_")(elemwise("lt")(x, first), elemwise("gt")(x, last))
        value = elemwise("switch")(is_outside, constant(np.float64(0)), value)
    return value
