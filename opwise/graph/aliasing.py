"""Which variables share memory, and in which order Applys must run that overwrite it.

Pure functions of a graph and its view and destroy maps. Validation, in-place rewrites, the memory
plan of linkers and DebugMode use them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
    shared = _versions_of_views(order)
    destroyed = {
        node: [
            version
            for i in destroyed_inputs(node)
            for version in shared.get(node.inputs[i], (node.inputs[i],))
        ]
        for node in order
        if node.op.destroy_map
    }
    readers: dict[Variable, dict[Apply, None]] = {
        version: {} for needed in destroyed.values() for version in needed
    }
    for node in order:
        for var in node.inputs:
            for version in shared.get(var, (var,)):
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
    found: dict[Variable, tuple[Variable, ...]] = {}
    for node in order:
        op = node.op
        for k, viewed in op.view_map.items():
            if k not in op.destroy_map:
                merged = (
                    version
                    for var in (node.inputs[i] for i in viewed)
                    for version in found.get(var, (var,))
                )
                found[node.outputs[k]] = tuple(dict.fromkeys(merged))
    return found


def is_view(var: Variable) -> bool:
    """Return whether ``var`` is a view of an input of its Apply."""
    op = None if var.owner is None else var.owner.op
    return op is not None and bool(op.view_map.get(var.index)) and var.index not in op.destroy_map


def versions(var: Variable) -> list[Variable]:
    """Return the versions of memory that ``var`` may share; ``var`` itself if it is no view."""
    if not is_view(var):
        return [var]
    found, seen = [], {var}
    pending = [var]
    while pending:
        current = pending.pop()
        if not is_view(current):
            found.append(current)
            continue
        node = current.owner
        assert node is not None
        for i in node.op.view_map[current.index]:
            if node.inputs[i] not in seen:
                seen.add(node.inputs[i])
                pending.append(node.inputs[i])
    return found


def views(variables: Iterable[Variable]) -> list[Variable]:
    """Return variables and all views of them: what shares memory without being written again."""
    seen = dict.fromkeys(variables)
    found = list(seen)
    for current in found:
        for node, i in current._clients:
            if node == "output" or not node.op.view_map:
                continue
            for k, viewed in node.op.view_map.items():
                out = node.outputs[k]
                if i in viewed and k not in node.op.destroy_map and out not in seen:
                    seen[out] = None
                    found.append(out)
    return found


def check(fgraph: FunctionGraph) -> None:
    """Raise InconsistencyError if an Apply destroys memory that it must not, in linear time.

    An Apply must not destroy a constant, an input that is not declared mutable, or an output of the
    graph. Two Applys must not destroy the same variable. No other input of an Apply may share the
    memory that it destroys. An order must exist in which all reads come before the destruction.
    """
    shared = _versions_of_views(fgraph.read_order())
    destroyer_of: dict[Variable, Apply] = {}
    destroyed: dict[Apply, list[Variable]] = {}
    for node in fgraph.read_order():
        if not node.op.destroy_map:
            continue
        for i in destroyed_inputs(node):
            var = node.inputs[i]
            check_not_protected(fgraph, node, i)
            if destroyer_of.setdefault(var, node) is not node:
                raise destroyed_twice(var, destroyer_of[var], node)
            mine = shared.get(var, (var,))
            check_other_inputs(node, i, mine)
            destroyed.setdefault(node, []).extend(mine)
    fgraph.toposort()
    for node, versions_of_it in destroyed.items():
        check_not_outputs(node, versions_of_it)


def destroyed_twice(var: Variable, one: Apply, other: Apply) -> InconsistencyError:
    """Return the error for two Applys that destroy the same memory."""
    if var in one.inputs:
        return InconsistencyError(f"{var} is destroyed by two Applys: {one} and {other}")
    return InconsistencyError(f"graph contains cycles: {one} and {other} destroy the same memory")


def check_not_protected(fgraph: FunctionGraph, node: Apply, i: int) -> None:
    """Raise InconsistencyError if input ``i``, which ``node`` destroys, must stay as it is.

    The memory of what another Apply has written is that Apply's concern.
    """
    var = owner = node.inputs[i]
    while is_view(owner):
        assert owner.owner is not None
        owner = owner.owner.inputs[owner.owner.op.view_map[owner.index][0]]
    if owner.owner is None and (
        isinstance(owner, Constant) or owner not in fgraph.interface.mutable
    ):
        raise InconsistencyError(f"Trying to destroy a protected Variable: {var} by {node}")


def check_other_inputs(node: Apply, i: int, destroyed: Collection[Variable]) -> None:
    """Raise InconsistencyError if another input of ``node`` shares the memory of input ``i``.

    destroyed: the versions of memory that input ``i`` may share. An Op may permit it for pairs
    (destroyed input, other input): those in ``destroyhandler_tolerate_same`` may be the same
    variable (True: all pairs), and those in ``destroyhandler_tolerate_aliased`` may overlap.
    """
    if len(node.inputs) == 1:
        return
    same = getattr(node.op, "destroyhandler_tolerate_same", ())
    same = {(i, j) for j in range(len(node.inputs))} if same is True else {(i, i), *same}
    aliased = set(getattr(node.op, "destroyhandler_tolerate_aliased", ()))
    for j, var in enumerate(node.inputs):
        if (i, j) in aliased or ((i, j) in same and var is node.inputs[i]):
            continue
        if not set(destroyed).isdisjoint(versions(var)):
            raise InconsistencyError(
                f"Input aliasing: {node} destroys its input {i} and reads the same memory as its "
                f"input {j}"
            )


def check_not_outputs(node: Apply, destroyed: Iterable[Variable]) -> None:
    """Raise InconsistencyError if an output of the graph shares memory that ``node`` destroys.

    destroyed: the versions of memory that it destroys. Its results and their views may be outputs.
    """
    for var in views(destroyed):
        if any(client == "output" for client, _ in var._clients) and not _is_result(var, node):
            raise InconsistencyError(f"{node} destroys {var}, which is an output of the graph")


def _is_result(var: Variable, node: Apply) -> bool:
    """Return whether ``var`` is an output of ``node`` or a view of one."""
    pending, seen = [var], {var}
    for current in pending:
        if current.owner is node:
            return True
        if is_view(current):
            assert current.owner is not None
            for i in current.owner.op.view_map[current.index]:
                if current.owner.inputs[i] not in seen:
                    seen.add(current.owner.inputs[i])
                    pending.append(current.owner.inputs[i])
    return False


def check_outputs_not_destroying(fgraph: FunctionGraph, outputs: Iterable[Variable]) -> None:
    """Raise InconsistencyError if one of ``outputs`` is computed by overwriting its memory."""
    for out in outputs:
        var: Variable | None = out
        while var is not None and var.owner is not None:
            if var.index in var.owner.op.destroy_map:
                raise InconsistencyError(f"A function graph output is made in place: {out}")
            var = parent(var)
