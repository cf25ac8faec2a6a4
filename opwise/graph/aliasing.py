"""View and destroy maps read as pure functions of a graph: who shares memory, who must run first.

Validation, in-place rewrites, the memory plan of linkers and DebugMode stand on these.
"""

from __future__ import annotations

from opwise.errors import InconsistencyError
from opwise.graph.variable import Constant


def viewed_inputs(node, index):
    """Return the inputs of ``node`` that output ``index`` is a view of, or overwrites."""
    op = node.op
    shared = list(op.view_map.get(index, ()))
    shared += [i for i in op.destroy_map.get(index, ()) if i not in shared]
    return shared


def parent(var):
    """Return the variable whose memory ``var`` shares directly, or None."""
    node = var.owner
    if node is None:
        return None
    shared = viewed_inputs(node, var.index)
    return node.inputs[shared[0]] if shared else None


def root(var):
    """Return the variable that owns the memory in which ``var`` lies."""
    above = parent(var)
    while above is not None:
        var, above = above, parent(above)
    return var


def groups(fgraph, order=None):
    """Return a dict from each variable to the root of its memory, in linear time."""
    roots = {var: var for var in fgraph.inputs}
    for node in order if order is not None else fgraph.toposort():
        for var in node.inputs:
            if var not in roots:
                roots[var] = var
        shares = node.op.view_map or node.op.destroy_map
        for i, out in enumerate(node.outputs):
            shared = viewed_inputs(node, i) if shares else ()
            roots[out] = roots[node.inputs[shared[0]]] if shared else out
    return roots


def members(fgraph, var):
    """Return every variable of the graph that may share memory with ``var``, from its root down."""
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


def destroyed_inputs(node):
    """Return the inputs of ``node`` (as indices) that it overwrites."""
    return sorted({i for inputs in node.op.destroy_map.values() for i in inputs})


def orderings(fgraph):
    """Return a dict from each destroying Apply to those that must read the memory before it.

    Memory has versions: the variable that brought it into being and its views are the first, what a
    destroying Apply returns, with its views, the next. All readers of a version come before the
    Apply that destroys it; those of earlier versions then do too, since that Apply reads a later
    one. Takes linear time, for graphs whose orderings are still to be found.
    """
    order = fgraph.read_order()
    versions: dict = {}
    destroyers = []
    for node in order:
        op = node.op
        if op.destroy_map:
            destroyers.append(node)
        for k, views in op.view_map.items():
            if k not in op.destroy_map:
                merged = (
                    first
                    for var in (node.inputs[i] for i in views)
                    for first in versions.get(var, (var,))
                )
                versions[node.outputs[k]] = tuple(dict.fromkeys(merged))
    destroyed = {
        node: [
            first
            for i in destroyed_inputs(node)
            for first in versions.get(node.inputs[i], (node.inputs[i],))
        ]
        for node in destroyers
    }
    readers: dict = {first: {} for firsts in destroyed.values() for first in firsts}
    for node in order:
        for var in node.inputs:
            for first in versions.get(var, (var,)):
                if first in readers:
                    readers[first][node] = None
    before = {}
    for node, firsts in destroyed.items():
        earlier = {reader: None for first in firsts for reader in readers[first]}
        earlier.pop(node, None)
        if earlier:
            before[node] = list(earlier)
    return before


def _results_of(fgraph, node):
    """Return the outputs of ``node`` and every view on them."""
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


def check(fgraph):
    """Raise InconsistencyError if a destroying Apply is not allowed where it stands.

    Constants and inputs that are not declared mutable must not be destroyed, no memory may be
    destroyed twice from the same state, an Apply must not read by another input what it destroys,
    no output of the graph may be destroyed, and an order must exist in which all reads come first.
    """
    destroyer_of: dict = {}
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
        _check_not_given_out(fgraph, node, var)


def _check_other_inputs(fgraph, node, i):
    """Raise InconsistencyError if another input of ``node`` lies in the memory of input ``i``.

    An Op may permit it: ``destroyhandler_tolerate_same`` lists pairs (destroyed input, other) that
    may be the same variable, or is True for all, ``destroyhandler_tolerate_aliased`` pairs that may
    overlap.
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


def _check_not_given_out(fgraph, node, destroyed):
    """Raise InconsistencyError if the caller gets the memory that ``node`` destroys, as it was."""
    later = set(_results_of(fgraph, node))
    for var in members(fgraph, destroyed):
        if var not in later and any(client == "output" for client, _ in var._clients):
            raise InconsistencyError(f"{node} destroys {var}, which is an output of the graph")


def check_outputs_not_destroying(fgraph, outputs):
    """Raise InconsistencyError if the memory of one of ``outputs`` was overwritten to make it."""
    for out in outputs:
        var = out
        while var is not None and var.owner is not None:
            if var.index in var.owner.op.destroy_map:
                raise InconsistencyError(f"A function graph output is made in place: {out}")
            var = parent(var)
