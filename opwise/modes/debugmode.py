"""DebugMode: runs everything in several implementations, and names the culprit if they differ.

Each call computes the graph as written and every graph that rewrites made of it in numpy, and
checks each replacement by its values. Then the optimized graph runs Apply by Apply, in numpy and in
C; values, memory and types are checked after each. The parts are in ``opwise.modes.debugging``.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Self

from opwise.config import config, thread_flags
from opwise.errors import (  # noqa: F401  (legacy programs import them from here)
    BadCLinkerOutput,
    BadDestroyMap,
    BadOptimization,
    BadThunkOutput,
    BadViewMap,
    DebugModeError,
    InvalidValueError,
    StochasticOrder,
)
from opwise.graph import target
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.linkers.base import Linker, OpWiseCLinker
from opwise.linkers.convsteps import plain_sums
from opwise.linkers.linked import Linked
from opwise.linkers.storage import Container, Storage
from opwise.linkers.vm import PlainVM
from opwise.modes.debugging import preallocated
from opwise.modes.debugging.debugvm import DebugVM
from opwise.modes.debugging.replay import Replay
from opwise.modes.mode import Mode
from opwise.optimizers.history import RewriteHistory, Trace
from opwise.optimizers.passes import OptimizationProfile

#: methods that make thunks; Theano's DebugMode compared only those that it knew, so programs add
#: theirs. This DebugMode checks every thunk
default_make_thunk: list[Any] = [Op.make_thunk]


class DebugMode(Mode):
    """A mode that checks rewrites and implementations on the values of every call.

    optimizer: the rewrites to check. linker: must be None or a DebugLinker. The other arguments
    are described where the attributes are set (default of each: the flag DebugMode.*).

    A call raises a subclass of DebugModeError for the first check that fails.
    """

    has_profiles = False

    def __init__(
        self, optimizer: Any = "fast_run", stability_patience: int | None = None,
        check_c_code: bool | None = None, check_py_code: bool | None = None,
        check_isfinite: bool | None = None,
        check_preallocated_output: str | Iterable[str] | None = None,
        require_matching_strides: int | None = None, linker: DebugLinker | None = None,
    ) -> None:  # fmt: skip
        if linker is not None and not isinstance(linker, DebugLinker):
            raise Exception(
                "DebugMode can only use its own linker! You should not provide one.", linker
            )
        flags = config.DebugMode
        #: how often a graph is optimized; all results must be the same
        self.stability_patience: int = _or(stability_patience, flags.patience)
        #: which implementations run: C, Python or both
        self.check_c_code: bool = _or(check_c_code, flags.check_c)
        self.check_py_code: bool = _or(check_py_code, flags.check_py)
        #: whether NaN and infinities are errors
        self.check_isfinite: bool = _or(check_isfinite, flags.check_finite)
        #: what Ops find in their output storage: kinds of ``preallocated.KINDS``, or ALL. The
        #: argument may be a text with colons between them
        self.check_preallocated_output = preallocated.kinds_of(
            _or(check_preallocated_output, flags.check_preallocated_output)
        )
        #: for how many of the last dimensions all preallocated layouts are combined
        self.check_preallocated_output_ndim: int = flags.check_preallocated_output_ndim
        #: whether to warn if an output does not use the input memory that its Op declares to use
        self.warn_input_not_reused: bool = flags.warn_input_not_reused
        #: whether C must return the strides that Python returns: 0 no, 1 warn if not, 2 raise
        self.require_matching_strides = int(_or(require_matching_strides, flags.check_strides))
        if not (self.check_c_code or self.check_py_code):
            raise ValueError("DebugMode has to check at least one of c and py code")
        super().__init__(DebugLinker(), optimizer)

    def optimize(self, fgraph: FunctionGraph) -> OptimizationProfile:
        """Optimize and keep the history; raise StochasticOrder if another run does differently."""
        as_written: FunctionGraph | None = fgraph.clone() if self.stability_patience > 1 else None
        history = _attach_history(fgraph)
        record = super().optimize(fgraph)
        if as_written is not None:
            # the first run has reported errors and printed what the user asked for
            with thread_flags(on_opt_error="ignore", optimizer_verbose=False):
                self._optimize_again(as_written, history)
        return record

    def _optimize_again(self, as_written: FunctionGraph, history: RewriteHistory) -> None:
        """Optimize further copies of a graph; raise StochasticOrder if one run differs."""
        for number in range(1, self.stability_patience):
            again, trace = as_written.clone(), Trace()
            again.attach_feature(trace)
            super().optimize(again)
            unstable = history.differences(trace, 0, number)
            if unstable:
                raise StochasticOrder(unstable)

    def bound_linker(self, fgraph: FunctionGraph) -> Any:
        return super().bound_linker(fgraph).under(self)

    def __str__(self) -> str:
        return f"DebugMode(linker={self.linker}, optimizer={self.provided_optimizer})"

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["linker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.linker = DebugLinker()


def _attach_history(fgraph: FunctionGraph) -> RewriteHistory:
    """Attach a new history, which replaces that of the graph of which this is a copy."""
    old, new = fgraph.find_feature(RewriteHistory), RewriteHistory()
    if old is not None:
        fgraph.remove_feature(old)
    fgraph.attach_feature(new)
    return new


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


class DebugLinker(Linker):
    """Links a graph to a DebugVM, with C steps and the history of its rewrites."""

    implementations = ("c", "perform")
    #: a loop says which of its steps is wrong
    incompatible = ("scanOp_unroll",)
    #: the mode that decides what is checked
    settings: DebugMode

    def under(self, settings: DebugMode) -> Self:
        """Return a linker of the same graph with the settings of a mode."""
        new = copy.copy(self)
        new.settings = settings
        return new

    def link(
        self,
        input_storage: Sequence[Storage | Container] | None = None,
        output_storage: Sequence[Storage | Container] | None = None,
        storage_map: MutableMapping[Variable, Storage] | None = None,
    ) -> Linked:
        fgraph = self.fgraph
        inner = OpWiseCLinker().clone(vm="plain", generate_kernels=self.generate_kernels)
        # what C computes is compared with plain sums
        with plain_sums():
            linked = inner.accept(fgraph).link(input_storage, output_storage, storage_map)
        trials = {}
        if target.device_name() != "cpu":
            trials = importlib.import_module("opwise.gpu.trials").trials_of(linked.order)
        history = fgraph.find_feature(RewriteHistory)
        assert history is not None
        replay = Replay(history, fgraph.inputs, fgraph.outputs, self.settings.check_py_code)
        assert isinstance(linked.vm, PlainVM)
        return replace(linked, vm=DebugVM(self.settings, linked.vm, replay, trials))


def registered_mode() -> DebugMode:
    """Return the mode named DEBUG_MODE."""
    return DebugMode(optimizer="fast_run")
