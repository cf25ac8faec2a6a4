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

from opwise.compile import graphcache
from opwise.compile.construct import Construction
from opwise.config import config
from opwise.graph import flat
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph

#: arrays from so many bytes on are written once, for the graph as written too
_LARGE = 256


@dataclass(frozen=True)
class Kept:
    """An optimized graph as a part of a pickle."""

    #: what the rewrites depended on, see ``graphcache.circumstances``
    circumstances: Any
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
    circumstances = graphcache.circumstances(mode)
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
    if len(variables) != len(kept.variables):
        return None
    if graphcache.circumstances(mode) != kept.circumstances:
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
