"""How neighbourhoods of images and spatial transformers run in C."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, kw_only=True)
class BorderStep(CStep):
    """Neighbourhoods of pixels, and samples of images, whose borders a mode treats."""

    #: which of the MODES of neighbourhoods, or of the BORDERS of samples
    mode: int


@c_lowering(Images2Neibs)
def neighbourhoods(node: Apply, kernels: Kernels) -> CStep:
    return BorderStep("neibs", mode=MODES.index(node.op.mode))


@c_lowering(Images2NeibsGrad)
def neighbourhoods_added(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, BorderStep("neibs_add", mode=MODES.index(node.op.mode)))


@c_lowering(TransformerGrid)
def grid(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, CStep("spatial_grid"))


@c_lowering(TransformerGradT)
def grid_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    return _of_floats(node, CStep("spatial_grid_gradient"))


@c_lowering(TransformerSampler)
def samples(node: Apply, kernels: Kernels) -> CStep | None:
    mode = BORDERS.index(node.op.border_mode)
    return _of_floats(node, BorderStep("spatial_sample", mode=mode))


@c_lowering(TransformerGradI)
def samples_gradient(node: Apply, kernels: Kernels) -> CStep | None:
    mode = BORDERS.index(node.op.border_mode)
    return _of_floats(node, BorderStep("spatial_sample_gradient", mode=mode))


def _of_floats(node: Apply, step: CStep) -> CStep | None:
    """Return a step for float32 and float64."""
    return step if node.outputs[0].type.dtype in ("float32", "float64") else None
