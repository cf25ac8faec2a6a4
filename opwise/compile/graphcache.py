"""Optimized graphs in the cache folder: a graph that was optimized before is not rewritten again.

The key is a digest of the graph as written (``graph.records``), the mode, and all that rewrites
depend on besides; the content is the optimized graph, as data. Nothing is kept of a graph with code
of the user, or of one whose rewriting failed or gave a warning, which would be lost the next time;
and nothing by a process that changed opwise (``compile.asimported``).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np

from opwise.compile import asimported
from opwise.compile.construct import Construction, Graph, WrittenGraph
from opwise.config import config
from opwise.config.registry import options
from opwise.config.values import ConfigParam
from opwise.graph import target, traversal
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.records import Data, Reader, Unreadable, Unwritable, Writer
from opwise.linkers import cbuild, kernelcache, resources
from opwise.modes.mode import Mode
from opwise.optimizers import stages
from opwise.optimizers.database import Query
from opwise.version import __version__

#: part of the key: the form of the records
_FORM = 4
#: graphs with more bytes of constants are not kept: their digest would take longer than rewriting
_MOST_READ = 1 << 25
#: nor are graphs whose rewriting computed more bytes of constants
_MOST_KEPT = 1 << 20
#: flags on which no rewrite depends, by the beginnings of their names
_NO_EFFECT = (
    "base_compiledir", "compiledir", "profile", "profiling.", "print_", "reoptimize_unpickled",
    "pickle_", "cache_graphs", "background_compilation", "on_opt_error", "on_shape_error",
)  # fmt: skip


class Entry:
    """The place of one graph in the cache.

    construction: the graph as written, in variables that belong to no FunctionGraph yet.
    circumstances: what rewrites depend on besides. Raises Unwritable for a graph that cannot be
    kept.
    """

    def __init__(self, construction: Construction, circumstances: Data) -> None:
        self._writer = writer = Writer(_MOST_READ)
        self._construction = construction
        graph = construction.graph
        writer.inputs(graph.inputs)
        if isinstance(graph, WrittenGraph):
            writer.alias(graph.copies)
            writer.graph(graph.order, graph.written)
            self._n_outputs = len(graph.written)
        else:
            writer.graph(traversal.io_toposort(graph.inputs, graph.outputs), graph.outputs)
            self._n_outputs = len(graph.outputs)
        records, arrays = writer.take()
        text = repr([_FORM, circumstances, _interface(construction), records])
        digest = hashlib.sha256(text.encode())
        digest.update(arrays)
        self.key = digest.hexdigest()
        self._name = f"{self.key[:32]}.graph"

    def find(self) -> Construction | None:
        """Return the construction with the optimized graph, None if the cache has none."""
        content = kernelcache.read(self._name, self.key)
        if content is None:
            return None
        try:
            text, _, arrays = content.partition(b"\n")
            outputs = Reader(self._writer.numbered).graph(json.loads(text), arrays)
            if len(outputs) != self._n_outputs:
                raise Unreadable(f"it has {len(outputs)} outputs")
        except (Unreadable, ValueError, RecursionError) as e:
            kernelcache.warn_damaged(self._name, f"its content cannot be read ({e})")
            return None
        return replace(self._construction, graph=Graph(self._construction.graph_inputs, outputs))

    def keep(self, fgraph: FunctionGraph) -> None:
        """Put the optimized graph into the cache, if records can hold it."""
        asimported.note_own_imports()
        if asimported.sources() is None:
            return  # of a module that was imported meanwhile
        written = self._construction.graph
        if isinstance(written, WrittenGraph):  # the graph was optimized in its copy
            self._writer.copied(written.copies, written.order, written.copied_order)
        self._writer.most_bytes = _MOST_KEPT
        try:
            self._writer.graph(fgraph.toposort(), fgraph.outputs)
            records, arrays = self._writer.take()
            content = json.dumps(records, separators=(",", ":")).encode() + b"\n" + arrays
        except (Unwritable, RecursionError):
            return
        kernelcache.keep(self._name, self.key, content)


def entry(construction: Construction, mode: Any) -> Entry | None:
    """Return the Entry of a function that is compiled under a mode; None if it has none."""
    if not config.cache_graphs or config.compiledir_bytes == 0:
        return None
    found = circumstances(mode)
    if found is None:
        return None
    try:
        return Entry(construction, found)
    except (Unwritable, RecursionError):  # as for a constant of lists in lists
        return None


def _interface(construction: Construction) -> Data:
    """Return what a function does with its inputs and outputs, as data."""
    inputs = [[s.mutable, s.shared, s.implicit, s.resident, s.borrow] for s in construction.inputs]
    outputs = [[out.borrow, out.becomes] for out in construction.outputs]
    return [inputs, outputs, sorted(construction.update_of.items())]


# --- what rewrites depend on ----------------------------------------------------------------------


def circumstances(mode: Any) -> Data | None:
    """Return what rewrites depend on besides the graph, as data.

    None if they depend on code of the program, run for a device, or are to be recorded.
    """
    if getattr(type(mode), "optimize", None) is not Mode.optimize:
        return None
    query = mode._optimizer
    if not isinstance(query, Query) or query.extra_optimizations:
        return None
    required: tuple[str, ...] = getattr(mode.used_linker, "required", ())
    if target.device_name() != "cpu" or required:
        return None  # for a device: its linker reads marks of the rewrites that it requires
    if stages.changed_by_program() or asimported.replaced():
        return None
    sources = asimported.sources()
    if sources is None:
        return None
    if config.profile_optimizer or config.optimizer_verbose or config.keep_shape_checks:
        return None
    if config.tuning.functions:  # advice reads the record of the rewrites
        return None
    if config.compute_test_value != "off" or config.compute_test_value_opt != "off":
        return None
    flags = [
        (flag.fullname, repr(flag.stored()))
        for flag in options.values()
        if flag.used and not flag.fullname.startswith(_NO_EFFECT) and _is_changed(flag)
    ]
    return [
        __version__, sources, np.__version__, cbuild.hardware(), resources.processors(),
        cbuild.compiler() is not None, sorted(flags), _described(mode.effective_query),
    ]  # fmt: skip


def _is_changed(flag: ConfigParam) -> bool:
    """Return whether a flag has another value than its default."""
    if callable(flag.default):  # it depends on the computer
        return flag.source != "default"
    return bool(flag.stored() != flag.default)


def _described(query: Query | None) -> Data:
    if query is None:
        return None
    return [
        list(query.include), list(query.require), list(query.exclude), query.position_cutoff,
        [[name, _described(inner)] for name, inner in sorted(query.subquery.items())],
    ]  # fmt: skip
