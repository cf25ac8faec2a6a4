"""Translations of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.tensor.signal.conv import Convolve1d, Convolve2d

from opwise.frontends import Translator, Untranslated
from opwise.graph.variable import Constant, Var
from opwise.pytensor.frontend import translates
from opwise.tensor.conv.functions import conv2d
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.shape import shape_i_op
from opwise.tensor.subtensor import getitem
from opwise.tensor.variable import constant


@translates(Convolve1d, Convolve2d)
def _convolution(t: Translator, node: Any, x: Var, y: Var, full: Var) -> Var:
    return convolved(node, x.dimshuffle("x", *range(x.type.ndim)), y, full)[0]


def convolved(node: Any, x: Var, y: Var, full: Var) -> Var:
    """Return the convolutions of each of several arrays, which lie along the first axis, with one.

    node: an Apply for one of them. full: whether zeros are around the arrays.
    """
    dtype, ndim = node.outputs[0].type.dtype, node.op.ndim
    if dtype not in ("float32", "float64"):
        raise Untranslated(f"a convolution of {dtype} has no translation")
    x, y = [a if a.type.dtype == dtype else cast(a, dtype) for a in (x, y)]
    # images of one channel, which have one row for vectors
    row = ["x"] * (2 - ndim)
    images = x.dimshuffle(0, "x", *row, *range(1, ndim + 1))
    whole = conv2d(images, y.dimshuffle("x", "x", *row, *range(ndim)), border_mode="full")
    whole = getitem(whole, (slice(None), *[0] * (3 - ndim)))
    if isinstance(full, Constant) and full.data:
        return whole
    # the part that no zeros outside enter, whichever of the two is larger
    parts = []
    for d in range(ndim):
        m, n = shape_i_op(d + 1)(x), shape_i_op(d)(y)
        first = elemwise("sub")(elemwise("minimum")(m, n), constant(np.int64(1)))
        end = elemwise("maximum")(m, n)
        if not isinstance(full, Constant):
            first = elemwise("switch")(full, constant(np.int64(0)), first)
            end = elemwise("switch")(full, shape_i_op(d + 1)(whole), end)
        parts.append(slice(first, end))
    return getitem(whole, (slice(None), *parts))
