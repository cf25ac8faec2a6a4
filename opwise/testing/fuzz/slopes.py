"""Compares gradients of random programs with finite differences of their costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from opwise.compile.function import function
from opwise.config import change_flags
from opwise.graph.variable import Variable
from opwise.modes.mode import Mode
from opwise.testing.fuzz.program import RandomProgram

#: statements whose gradient is not the limit of differences: it is cut or approximated, several
#: operands are the largest, bounds are equal, one place is set several times, a promise about
#: zeros is broken, the value is no tensor on its way, or it is a gradient of a gradient
_NO_LIMIT = (
    "disconnected_grad", "ultra_fast_sigmoid", "hard_sigmoid", "T.max(", "T.min(", "max_and_argmax",
    "T.clip(", "set_subtensor", "no_zeros_in_input", "T.ptp", "topk", "T.grad(",
    "truncate_gradient", "jacobian(", "'max')", "boxed(",
)  # fmt: skip
#: dtypes with too few digits for finite differences
_TOO_ROUGH = ("float16", "float32", "complex64")
_STEP = 1e-5


def can_be_checked(program: RandomProgram, y: str, x: str) -> bool:
    """Return whether finite differences of ``y`` by the leaf ``x`` give its gradient."""
    leaf, needed = program.leaves[x], program.needed([y])
    texts = [program.statements.get(name, "") for name in needed]
    return (
        leaf.value.dtype == "float64"
        and leaf.value.size > 0
        and not any(program.variables[name].type.dtype in _TOO_ROUGH for name in needed)
        and not any(other in text for text in texts for other in _NO_LIMIT)
    )


def wrong_slope(
    program: RandomProgram, cost: Variable, x: str, gradient: Any, elements: Iterable[int]
) -> str | None:
    """Return what is wrong with a gradient at some elements of the leaf ``x``, or None.

    cost: a 0-d variable. gradient: its gradient by ``x``, an array. elements: indices into the
    flattened leaf. Skips elements at which the cost has a kink or grows too fast.
    """
    if gradient.shape != program.leaves[x].value.shape:
        return f"the gradient by {x} has shape {gradient.shape}"
    leaves = list(program.leaves.values())
    variables = [program.variables[leaf.name] for leaf in leaves]
    shared = [leaf.kind == "shared" for leaf in leaves]
    stand_ins = [v.type() if s else v for v, s in zip(variables, shared, strict=True)]
    with change_flags(compute_test_value="off"):
        f = function(
            stand_ins, cost, mode=Mode("py", None), on_unused_input="ignore",
            no_default_updates=True,
            givens=[(v, new) for v, new in zip(variables, stand_ins, strict=True) if v is not new],
        )  # fmt: skip
    place = [leaf.name for leaf in leaves].index(x)

    def at(element: int, change: float) -> float:
        values = [leaf.value.copy() for leaf in leaves]
        moved = values[place].ravel()
        moved[element] += change
        values[place] = moved.reshape(values[place].shape)
        return float(f(*values))

    for element in elements:
        with np.errstate(all="ignore"):
            here = at(element, 0.0)
            slopes = np.array(
                [(at(element, k * _STEP) - here) / (k * _STEP) for k in (1, -1, 2, -2)]
            )
        size = max(np.abs(slopes).max(), 1e-3 * max(1.0, abs(here)))
        if not np.isfinite(slopes).all() or np.ptp(slopes) > 1e-2 * size:
            continue
        found, expected = float(gradient.ravel()[element]), slopes[:2].mean()
        if not abs(found - expected) <= 1e-3 * size + 1e-6 * max(1.0, abs(here)):
            value = program.leaves[x].value.ravel()[element]
            return (
                f"by element {element} of {x}, which is {value}, the gradient is {found}, "
                f"differences give {expected}"
            )
    return None
