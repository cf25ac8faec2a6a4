"""The optimized graph in the pickle of a function.

A pickle holds the graph as written, which can be compiled anywhere. The optimized graph beside it
saves the rewrites where everything that they depend on is the same. It is a pickle of its own, and
read only there: it holds Ops that belong to this version of opwise.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opwise.compile.construct import Construction
from opwise.config import config
from opwise.config.registry import options
from opwise.config.values import ConfigParam
from opwise.graph import flat, target
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.linkers import cbuild, resources
from opwise.modes.mode import Mode
from opwise.optimizers import stages
from opwise.optimizers.database import Query
from opwise.version import __version__

#: flags on which no rewrite depends, by the beginnings of their names
_NO_EFFECT = (
    "base_compiledir", "compiledir", "profile", "profiling.", "print_", "reoptimize_unpickled",
)  # fmt: skip
#: arrays from so many bytes on are written once, for the graph as written too
_LARGE = 256


@dataclass(frozen=True)
class Kept:
    """An optimized graph as a part of a pickle."""

    #: what the rewrites depended on, see ``_circumstances``
    circumstances: tuple[Any, ...]
    #: the pickle of the graph
    content: bytes
    #: objects that the content refers to by number: arrays, and Applys of the graph as written
    outside: list[Any]
    #: what each input of the function was made for
    variables: list[Any]


def keep(fgraph: FunctionGraph, construction: Construction, mode: Any) -> Kept | None:
    """Return the optimized graph of a function for its pickle; None if it cannot be used again.

    fgraph: as compiled. mode: the mode of the function.
    """
    circumstances = _circumstances(mode)
    if circumstances is None:
        return None
    file = io.BytesIO()
    pickler = _Pickler(file, fgraph)
    try:
        with flat.separate():
            pickler.dump(fgraph)
    except Exception:  # any Op may refuse: the graph as written is enough
        return None
    variables = [spec.variable for spec in construction.inputs]
    return Kept(circumstances, file.getvalue(), pickler.outside, variables)


@dataclass(frozen=True)
class Restored:
    """An optimized graph from a pickle, and the construction with its variables."""

    fgraph: FunctionGraph
    construction: Construction


def restore(kept: Kept | None, construction: Construction, mode: Any) -> Restored | None:
    """Return the optimized graph from a pickle; None if it is of no use here.

    construction: made again of the graph as written. mode: the mode of the function.
    """
    if kept is None or config.reoptimize_unpickled_function:
        return None
    variables = [spec.variable for spec in construction.inputs]
    if len(variables) != len(kept.variables) or _circumstances(mode) != kept.circumstances:
        return None
    if any(a is not b for a, b in zip(variables, kept.variables, strict=True)):
        return None
    try:
        fgraph: FunctionGraph = _Unpickler(io.BytesIO(kept.content), kept.outside).load()
    except Exception:  # of code of the program that has changed, say
        return None
    return Restored(
        fgraph,
        replace(construction, graph_inputs=list(fgraph.inputs), graph_outputs=list(fgraph.outputs)),
    )


def _circumstances(mode: Any) -> tuple[Any, ...] | None:
    """Return what rewrites depend on besides the graph and the mode.

    None if they depend on code of the program, or run for a device.
    """
    if getattr(type(mode), "optimize", None) is not Mode.optimize:
        return None
    query = mode._optimizer
    if not isinstance(query, Query) or query.extra_optimizations:
        return None
    if target.device_name() != "cpu" or stages.changed_by_program():
        return None
    flags = [
        (flag.fullname, repr(flag.stored()))
        for flag in options.values()
        if flag.used and not flag.fullname.startswith(_NO_EFFECT) and _is_changed(flag)
    ]
    return (
        __version__, np.__version__, cbuild.processor(), resources.processors(),
        cbuild.compiler() is not None, tuple(sorted(flags)),
    )  # fmt: skip


def _is_changed(flag: ConfigParam) -> bool:
    """Return whether a flag has another value than its default."""
    if callable(flag.default):  # it depends on the computer
        return flag.source != "default"
    return bool(flag.stored() != flag.default)


class _Pickler(pickle.Pickler):
    """Writes an optimized graph without its origins and its large arrays."""

    def __init__(self, file: io.BytesIO, fgraph: FunctionGraph) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.outside: list[Any] = []
        self._numbers: dict[int, int] = {}
        for node in fgraph.apply_nodes:
            for origin in node.origins:
                self._number(origin)

    def _number(self, what: object) -> int:
        number = self._numbers.get(id(what))
        if number is None:
            number = self._numbers[id(what)] = len(self.outside)
            self.outside.append(what)
        return number

    def persistent_id(self, obj: Any) -> int | None:
        if type(obj) is np.ndarray and obj.nbytes >= _LARGE:
            return self._number(obj)
        if isinstance(obj, Apply):
            return self._numbers.get(id(obj))
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, outside: list[Any]) -> None:
        super().__init__(file)
        self._outside = outside

    def persistent_load(self, pid: int) -> Any:
        return self._outside[pid]
