"""CompileReport: where the time of compiling a function went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opwise.graph.apply import Apply
from opwise.linkers.cbuild import BuildReport
from opwise.optimizers.passes import OptimizationProfile


@dataclass(frozen=True)
class FrontEndTimes:
    """Seconds that another library and a front end took before opwise compiled the graph."""

    #: the library's own rewrites
    rewriting: float = 0.0
    #: from the library's graph to opwise's
    translation: float = 0.0


#: of a graph that was written for opwise
NO_FRONT_END = FrontEndTimes()


@dataclass(frozen=True, eq=False, repr=False)
class CompileReport:
    """Where the time of a compilation went, in seconds, and its results."""

    #: the whole compilation, with ``front_end``
    total: float
    #: the rewrites
    optimizer: float
    #: the validation of graphs, a part of ``optimizer``
    validate: float
    #: linking
    linker: float
    #: by Apply, the choice of its implementation, a part of ``linker``
    thunks: Mapping[Apply, float]
    #: the record of the optimizer
    rewrites: OptimizationProfile
    #: whether the optimized graph came from the cache
    graph_cached: bool
    #: what the cache and the compiler did; None without generated kernels
    kernels: BuildReport | None
    #: how many Applys the optimized graph has
    applys: int
    #: under the flag keep_shape_checks: the shape checks of Applys that rewrites dropped
    dropped_checks: Sequence[str]
    #: what came before, if the graph is another library's
    front_end: FrontEndTimes
