"""Rules that run only if a mode or the flag ``optimizer_including`` names them.

They drop checks, or make results less accurate.
"""

from __future__ import annotations

from functools import partial

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var
from opwise.optimizers.rule import Replacements, rule
from opwise.optimizers.rules.matching import for_output
from opwise.tensor.assertion import Assert
from opwise.tensor.creation import AllocEmpty, zeros
from opwise.tensor.nnet.sigm import hard_sigmoid, ultra_fast_sigmoid
from opwise.tensor.type import TensorType


@rule(
    Assert,
    stage=("useless", "canonicalize", "stabilize", "specialize"),
    tags=("unsafe",),
)
def local_remove_all_assert(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Removes all Asserts, without a look at their conditions."""
    return [node.inputs[0]]


@rule(AllocEmpty, stage="local_alloc_empty_to_zeros", tags=())
def local_alloc_empty_to_zeros(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces memory of any content by zeros, so that NanGuardMode does not report it."""
    return [zeros(node.inputs, dtype=node.outputs[0].type.dtype)]


@rule("row:scalar_sigmoid", stage="uncanonicalize", tags=())
def local_ultra_fast_sigmoid(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces sigmoid by a piecewise approximation, which is at most 0.028 from it."""
    return for_output(node, _approximation(ultra_fast_sigmoid(*node.inputs), 0.03))


@rule("row:scalar_sigmoid", stage="uncanonicalize", tags=())
def local_hard_sigmoid(fgraph: FunctionGraph, node: Apply) -> Replacements:
    """Replaces sigmoid by three straight lines, which are at most 0.076 from it."""
    return for_output(node, _approximation(hard_sigmoid(*node.inputs), 0.08))


def _approximation(var: Var, error: float) -> Var:
    """Return a variable whose values DebugMode compares with an absolute tolerance."""
    var.tag.values_eq_approx = partial(TensorType.values_eq_approx, atol=error)
    return var
