"""How neighbourhoods of images and spatial transformers run in C."""

from __future__ import annotations

from opwise.graph.apply import Apply
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import CStep, c_lowering
from opwise.tensor.conv.neighbours import MODES, Images2Neibs, Images2NeibsGrad
from opwise.tensor.conv.spatial import (
    BORDERS,
    TransformerGradI,
    TransformerGradT,
    TransformerGrid,
    TransformerSampler,
)


@c_lowering(Images2Neibs)
def neighbourhoods(node: Apply, kernels: Kernels) -> CStep:
    return CStep("neibs", (MODES.index(node.op.mode),))


@c_lowering(Images2NeibsGrad)
def neighbourhoods_added(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, "neibs_add", MODES.index(node.op.mode))


@c_lowering(TransformerGrid)
def grid(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, "spatial_grid")


@c_lowering(TransformerGradT)
def grid_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, "spatial_grid_gradient")


@c_lowering(TransformerSampler)
def samples(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, "spatial_sample", BORDERS.index(node.op.border_mode))


@c_lowering(TransformerGradI)
def samples_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, "spatial_sample_gradient", BORDERS.index(node.op.border_mode))


def _of_floats(node: Apply, kind: str, *ints: int) -> CStep | None:
    """Return a step for float32 and float64."""
    return CStep(kind, ints) if node.outputs[0].type.dtype in ("float32", "float64") else None
