"""The linker: a graph that PyTensor has rewritten becomes a function of opwise."""

from __future__ import annotations

import copy
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from pytensor.compile.aliasing import Supervisor
from pytensor.link.basic import JITLinker
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.random.type import RandomType

from opwise.compile.executable import Function
from opwise.frontends import FrontEndTimes, Performance, Translator, compile_graph
from opwise.graph import provenance
from opwise.modes.mode import Mode, get_mode
from opwise.pytensor import loaded  # noqa: F401  (translations)
from opwise.pytensor.frontend import PYTENSOR
from opwise.pytensor.rewrites import seconds_of_rewriting

#: what calls the function of opwise -> the Applys in it that PyTensor performs
_performed: weakref.WeakKeyDictionary[Function, tuple[Performance, ...]] = (
    weakref.WeakKeyDictionary()
)


class OpwiseLinker(JITLinker):
    """Compiles a whole graph to one function of opwise.

    mode: a Mode of opwise, or its name, under which the translated graph is compiled.
    """

    required_rewrites = ("minimum_compile", "opwise")
    #: what opwise's own rewrites do, and what other linkers ask for
    incompatible_rewrites = (
        "BlasOpt",
        "cxx_only",
        "fusion",
        "inplace",
        "local_careduce_fusion",
        "reuse_decomposition_multiple_solves",
        "scan_save_mem",
        "scan_sit_sot_to_untraced",
        "scan_split_non_sequence_decomposition_and_solve",
    )

    def __init__(
        self,
        mode: Mode | str = "FAST_RUN",
        *,
        allow_gc: bool | None = None,
        schedule: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        super().__init__(allow_gc=allow_gc, schedule=schedule)
        self.own_mode = mode
        self._profile: Any = None
        #: seconds that PyTensor spent on rewriting the graph
        self._rewriting = 0.0

    def accept(
        self, fgraph: Any, no_recycling: Sequence[Any] | None = None, profile: Any = None
    ) -> OpwiseLinker:
        """Return a linker that will compile ``fgraph``."""
        new = copy.copy(self)
        new.fgraph = fgraph
        new.no_recycling = no_recycling or []
        new._profile = profile
        new._rewriting = seconds_of_rewriting(fgraph)
        return new

    # --- from graph to function -------------------------------------------------------------------

    def fgraph_convert(self, fgraph: Any, order: Sequence[Any], **kwargs: Any) -> Function:
        """Return the compiled function of a graph; JITLinker's other hooks leave it as it is."""
        start = time.perf_counter()
        translator = Translator(PYTENSOR)
        inputs = [translator.input(var) for var in fgraph.inputs]
        outputs = translator.graph(order, fgraph.outputs)
        name = fgraph.name or _caller()
        times = FrontEndTimes(self._rewriting, time.perf_counter() - start)
        function = compile_graph(
            inputs, outputs, mode=get_mode(self.own_mode), name=name, profile=self._stats(),
            times=times, new_values=_new_generators(fgraph),
        )  # fmt: skip
        _performed[function] = tuple(translator.performed)
        return function

    def _stats(self) -> Any:
        """Return the argument ``profile`` of the function: PyTensor's asks for one of its own."""
        return None if not self._profile else (getattr(self._profile, "message", None) or True)

    def jit_compile(self, fn: Function) -> Function:
        return fn

    def create_thunk_inputs(self, storage_map: Any) -> list[Any]:
        return [storage_map[var] for var in self.fgraph.inputs]

    def create_jitable_thunk(
        self,
        compute_map: Any,
        order: Sequence[Any],
        input_storage: Sequence[list[Any]],
        output_storage: Sequence[list[Any]],
        storage_map: Any,
    ) -> tuple[list[Any], list[Any], Function]:
        """Return ([what runs the function on storages], Applys that it computes, the function)."""
        function = self.fgraph_convert(self.fgraph, order=order)
        given = self.create_thunk_inputs(storage_map)
        results = [storage_map[var] for var in self.fgraph.outputs]

        numbers = [
            k for k, var in enumerate(self.fgraph.outputs) if isinstance(var.type, ScalarType)
        ]

        # errors name the Apply that failed, its operands and the user's line already
        def thunk() -> list[Any]:
            values: list[Any] = function(*[storage[0] for storage in given])
            for k in numbers:
                values[k] = values[k][()]
            for storage, value in zip(results, values, strict=True):
                storage[0] = value
            return values

        thunk.inputs = given  # type: ignore[attr-defined]
        thunk.outputs = results  # type: ignore[attr-defined]
        thunk.lazy = False  # type: ignore[attr-defined]
        nodes = [var.owner for var in self.fgraph.outputs if var.owner is not None][:1]
        return [thunk], nodes, function

    def __repr__(self) -> str:
        return f"OpwiseLinker({self.own_mode!r})"


def _new_generators(fgraph: Any) -> dict[int, int]:
    """Return {position of an output: position of the Generator that PyTensor replaces by it}.

    PyTensor must allow that the function overwrites the Generator.
    """
    kept = {
        var for each in fgraph._features if isinstance(each, Supervisor) for var in each.protected
    }
    return {
        k: i
        for k, i in (getattr(fgraph, "update_mapping", None) or {}).items()
        if isinstance(fgraph.inputs[i].type, RandomType) and fgraph.inputs[i] not in kept
    }


def _caller() -> str | None:
    """Return 'file:line' of the program's line that has a function compiled."""
    line = provenance.line_of(provenance.capture())
    return None if line is None else f"{line[0]}:{line[1]}"


def own_function(function: Any) -> Function:
    """Return the function of opwise that a function of PyTensor calls.

    Raises TypeError for a function that was compiled under another linker.
    """
    found = getattr(function.vm, "jit_fn", None)
    if not isinstance(found, Function):
        raise TypeError(f"{function} was not compiled under a mode of opwise, such as 'OPWISE'")
    return found


def performed(function: Any) -> tuple[Performance, ...]:
    """Return the Applys of a function that PyTensor performs itself, each with the reason."""
    return _performed[own_function(function)]
