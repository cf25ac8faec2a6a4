"""Which variables share memory, and in which order Applys must run that overwrite it.

Pure functions of a graph and its view and destroy maps. Validation, in-place rewrites, the memory
plan of linkers and DebugMode use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from opwise.errors import InconsistencyError
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable

if TYPE_CHECKING:
    from opwise.graph.fgraph import FunctionGraph


def viewed_inputs(node: Apply, index: int) -> list[int]:
    """Return the indices of the inputs of ``node`` that output ``index`` views or overwrites."""
    op = node.op
    shared = list(op.view_map.get(index, ()))
    shared += [i for i in op.destroy_map.get(index, ()) if i not in shared]
    return shared


def parent(var: Variable) -> Variable | None:
    """Return the variable of which ``var`` is a view or which it overwrites, or None."""
    node = var.owner
    if node is None:
        return None
    shared = viewed_inputs(node, var.index)
    return node.inputs[shared[0]] if shared else None


def root(var: Variable) -> Variable:
    """Return the variable that owns the memory of ``var``."""
    above = parent(var)
    while above is not None:
        var, above = above, parent(above)
    return var


def groups(fgraph: FunctionGraph, order: Iterable[Apply] | None = None) -> dict[Variable, Variable]:
    """Return a dict from each variable to the owner of its memory, in linear time.

    order: the Applys, each after those that it reads (default: ``fgraph.toposort()``).
    """
    roots = {var: var for var in fgraph.inputs}
    for node in order if order is not None else fgraph.toposort():
        for var in node.inputs:
            if var not in roots:
                roots[var] = var
        shares = node.op.view_map or node.op.destroy_map
        for i, out in enumerate(node.outputs):
            shared: Sequence[int] = viewed_inputs(node, i) if shares else ()
            roots[out] = roots[node.inputs[shared[0]]] if shared else out
    return roots


def members(fgraph: FunctionGraph, var: Variable) -> list[Variable]:
    """Return every variable of the graph that may share memory with ``var``; its owner first."""
    found = [root(var)]
    seen = set(found)
    for current in found:
        for node, i in current._clients:
            if node == "output":
                continue
            for out in node.outputs:
                if out not in seen and i in viewed_inputs(node, out.index):
                    seen.add(out)
                    found.append(out)
    return found


def destroyed_inputs(node: Apply) -> list[int]:
    """Return the indices of the inputs that ``node`` overwrites."""
    return sorted({i for inputs in node.op.destroy_map.values() for i in inputs})


def orderings(fgraph: FunctionGraph) -> dict[Apply, list[Apply]]:
    """Return a dict from each destroying Apply to those that must read the memory before it.

    Memory has versions. The variable that allocated it and its views are the first; the output of a
    destroying Apply and its views are the next. All readers of a version come before the Apply that
    destroys it. Readers of earlier versions do too, because that Apply reads a later one. Takes
    linear time.
    """
    order = fgraph.read_order()
    versions = _versions_of_views(order)
    destroyed = {
        node: [
            version
            for i in destroyed_inputs(node)
            for version in versions.get(node.inputs[i], (node.inputs[i],))
        ]
        for node in order
        if node.op.destroy_map
    }
    readers: dict[Variable, dict[Apply, None]] = {
        version: {} for needed in destroyed.values() for version in needed
    }
    for node in order:
        for var in node.inputs:
            for version in versions.get(var, (var,)):
                if version in readers:
                    readers[version][node] = None
    before: dict[Apply, list[Apply]] = {}
    for node, needed in destroyed.items():
        earlier = {reader: None for version in needed for reader in readers[version]}
        earlier.pop(node, None)
        if earlier:
            before[node] = list(earlier)
    return before


def _versions_of_views(order: Iterable[Apply]) -> dict[Variable, tuple[Variable, ...]]:
    """Return a dict from each view to the versions of memory that it may share.

    A version is the variable that allocated it or the output of the Apply that wrote it.
    """
    versions: dict[Variable, tuple[Variable, ...]] = {}
    for node in order:
        op = node.op
        for k, views in op.view_map.items():
            if k not in op.destroy_map:
                merged = (
                    version
                    for var in (node.inputs[i] for i in views)
                    for version in versions.get(var, (var,))
                )
                versions[node.outputs[k]] = tuple(dict.fromkeys(merged))
    return versions


def _results_of(node: Apply) -> list[Variable]:
    """Return the outputs of ``node`` and every view of them."""
    found = list(node.outputs)
    seen = set(found)
    for current in found:
        for client, i in current._clients:
            if client == "output":
                continue
            for out in client.outputs:
                if out not in seen and i in viewed_inputs(client, out.index):
                    seen.add(out)
                    found.append(out)
    return found


def check(fgraph: FunctionGraph) -> None:
    """Raise InconsistencyError if an Apply destroys memory that it must not.

    An Apply must not destroy a constant, an input that is not declared mutable, or an output of the
    graph. Two Applys must not destroy the same variable. No other input of an Apply may share the
    memory that it destroys. An order must exist in which all reads come before the destruction.
    """
    destroyer_of: dict[Variable, Apply] = {}
    for node in fgraph.apply_nodes:
        for i in destroyed_inputs(node):
            var = node.inputs[i]
            owner = root(var)
            if isinstance(owner, Constant) or (
                owner.owner is None and owner not in fgraph.interface.mutable
            ):
                raise InconsistencyError(f"Trying to destroy a protected Variable: {var} by {node}")
            if destroyer_of.setdefault(var, node) is not node:
                raise InconsistencyError(
                    f"{var} is destroyed by two Applys: {destroyer_of[var]} and {node}"
                )
            _check_other_inputs(fgraph, node, i)
    fgraph.toposort()
    for var, node in destroyer_of.items():
        _check_not_an_output(fgraph, node, var)


def _check_other_inputs(fgraph: FunctionGraph, node: Apply, i: int) -> None:
    """Raise InconsistencyError if another input of ``node`` shares the memory of input ``i``.

    An Op may permit it for pairs (destroyed input, other input): those in
    ``destroyhandler_tolerate_same`` may be the same variable (True: all pairs), and those in
    ``destroyhandler_tolerate_aliased`` may overlap.
    """
    if len(node.inputs) == 1:
        return
    same = getattr(node.op, "destroyhandler_tolerate_same", ())
    same = {(i, j) for j in range(len(node.inputs))} if same is True else {(i, i), *same}
    aliased = set(getattr(node.op, "destroyhandler_tolerate_aliased", ()))
    overlapping = set(members(fgraph, node.inputs[i]))
    for j, var in enumerate(node.inputs):
        if var not in overlapping or (i, j) in aliased:
            continue
        if (i, j) not in same or var is not node.inputs[i]:
            raise InconsistencyError(
                f"Input aliasing: {node} destroys its input {i} and reads the same memory as its "
                f"input {j}"
            )


def _check_not_an_output(fgraph: FunctionGraph, node: Apply, destroyed: Variable) -> None:
    """Raise InconsistencyError if an output of the graph shares memory that ``node`` destroys.

    The result of ``node`` and its views may be outputs.
    """
    later = set(_results_of(node))
    for var in members(fgraph, destroyed):
        if var not in later and any(client == "output" for client, _ in var._clients):
            raise InconsistencyError(f"{node} destroys {var}, which is an output of the graph")


def check_outputs_not_destroying(fgraph: FunctionGraph, outputs: Iterable[Variable]) -> None:
    """Raise InconsistencyError if one of ``outputs`` is computed by overwriting its memory."""
    for out in outputs:
        var: Variable | None = out
        while var is not None and var.owner is not None:
            if var.index in var.owner.op.destroy_map:
                raise InconsistencyError(f"A function graph output is made in place: {out}")
            var = parent(var)
