"""CompileReport: where the time of compiling a function went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opwise.graph.apply import Apply
from opwise.linkers.cbuild import BuildReport
from opwise.optimizers.passes import OptimizationProfile


@dataclass(frozen=True)
class CompileReport:
    """Where the time of a compilation went, in seconds, and what was done in it."""

    total: float
    #: the rewrites; of these, the validation of graphs
    optimizer: float
    validate: float
    #: linking; of this, by Apply, the choice of what runs it
    linker: float
    thunks: Mapping[Apply, float]
    #: the record of the optimizer
    rewrites: OptimizationProfile
    #: what the cache and the compiler did; None without generated kernels
    kernels: BuildReport | None
    #: Applys of the optimized graph
    applys: int
    #: under the flag keep_shape_checks: the checks of shapes that stand for those of dropped Applys
    dropped_checks: Sequence[str]
