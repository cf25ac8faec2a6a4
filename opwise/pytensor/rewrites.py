"""PyTensor's rewrites under modes of opwise: which are left out, and which are added.

Rewrites under the tag "opwise" are those that the linker requires.
"""

from __future__ import annotations

import time
import weakref
from typing import Any

from pytensor.compile.mode import optdb
from pytensor.graph.rewriting.basic import GraphRewriter, copy_stack_trace, node_rewriter
from pytensor.scalar.basic import Exp, Expm1, Log, Log1p
from pytensor.scalar.math import Erf, Erfc, Erfcx, Sigmoid
from pytensor.tensor.basic import cast
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import log, log1p

#: Rewrites of elementwise arithmetic, nearly all of which opwise has under the same name. They take
#: a third of the time of PyTensor's rewriting, and opwise makes fewer Applys of graphs without
#: them. ``local_mul_canonizer`` is not among them: rewrites that stabilize gradients need its forms
ARITHMETIC = (
    "add_mul_fusion",
    "local_abs_lift",
    "local_abs_merge",
    "local_add_canonizer",
    "local_add_neg_to_sub",
    "local_add_remove_zeros",
    "local_cast_cast",
    "local_dimshuffle_lift",
    "local_div_switch_sink",
    "local_div_to_reciprocal",
    "local_elemwise_sub_zeros",
    "local_greedy_distributor",
    "local_merge_switch_same_cond",
    "local_mul_specialize",
    "local_mul_switch_sink",
    "local_mul_to_sqr",
    "local_neg_div_neg",
    "local_neg_to_mul",
    "local_pow_canonicalize",
    "local_pow_specialize",
    "local_pow_to_nested_squaring",
    "local_reciprocal_canon",
    "local_second_sink",
    "local_upcast_elemwise_constant_inputs",
    "local_useless_elemwise",
    "local_useless_elemwise_comparison",
    "local_zero_div",
)

#: functions that PyTensor's stabilizing rewrites look for inside logarithms, products and sums
_STABILIZED = (Erf, Erfc, Erfcx, Exp, Sigmoid)


@node_rewriter([DimShuffle])  # type: ignore[untyped-decorator]
def lift_from_stabilized(fgraph: Any, node: Any) -> list[Any] | None:
    """Let stabilizing rewrites see functions behind a DimShuffle; opwise lifts it from others."""
    (x,) = node.inputs
    function = None if x.owner is None else x.owner.op
    if not isinstance(function, Elemwise) or not isinstance(function.scalar_op, _STABILIZED):
        return None
    if len(fgraph.clients[x]) > 1:
        return None
    new = function(node.op(*x.owner.inputs))
    copy_stack_trace(node.outputs[0], new)
    return [new]


#: functions, each with the one that it undoes
_INVERSES = {Log: Exp, Log1p: Expm1}


@node_rewriter([log, log1p])  # type: ignore[untyped-decorator]
def undo_behind_dimshuffle(fgraph: Any, node: Any) -> list[Any] | None:
    """Let a logarithm of an exponential be its argument, also behind a DimShuffle.

    Scales of PyMC's models are exponentials, and their densities read the logarithms: PyTensor
    lifts the DimShuffle of a scale only if nothing else reads the scale.
    """
    (x,) = node.inputs
    if x.owner is None or not isinstance(x.owner.op, DimShuffle):
        return None
    (inner,) = x.owner.inputs
    function = None if inner.owner is None else inner.owner.op
    undone = _INVERSES[type(node.op.scalar_op)]
    if not isinstance(function, Elemwise) or not isinstance(function.scalar_op, undone):
        return None
    new = cast(x.owner.op(*inner.owner.inputs), node.outputs[0].type.dtype)
    copy_stack_trace(node.outputs[0], new)
    return [new]


class _NoteStart(GraphRewriter):
    """Notes when PyTensor begins to rewrite a graph."""

    def __init__(self) -> None:
        self.started: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()

    def apply(self, fgraph: Any) -> None:
        self.started[fgraph] = time.perf_counter()


_note_start = _NoteStart()


def seconds_of_rewriting(fgraph: Any) -> float:
    """Return the seconds since PyTensor began to rewrite a graph; 0 if it did not."""
    started = _note_start.started.pop(fgraph, None)
    return 0.0 if started is None else time.perf_counter() - started


def register() -> None:
    """Add the rewrites to PyTensor's tables; those that are there stay."""
    if "opwise_note_start" in optdb._names:
        return
    optdb.register("opwise_note_start", _note_start, "opwise", position=-2)
    optdb["canonicalize"].register(
        "opwise_lift_from_stabilized", lift_from_stabilized, "opwise", use_db_name_as_tag=False
    )
    for stage in ("canonicalize", "specialize"):
        optdb[stage].register(
            "opwise_undo_behind_dimshuffle", undo_behind_dimshuffle, "opwise",
            use_db_name_as_tag=False,
        )  # fmt: skip
