"""Which variables of a graph share memory, for old programs that write their own linkers."""

from __future__ import annotations

from opwise.errors import InconsistencyError
from opwise.graph.features import Feature


def _sources(variable, maps):
    """Return the inputs of its Apply whose memory a variable shares by one of some maps."""
    if variable.owner is None:
        return []
    found = (getattr(variable.owner.op, name, {}).get(variable.index, []) for name in maps)
    return [variable.owner.inputs[i] for shared in found for i in shared]


def view_roots(r):
    """Return the variables at the end of the chains of views that lead to ``r``."""
    sources = _sources(r, ["view_map"])
    return [root for source in sources for root in view_roots(source)] if sources else [r]


def alias_root(v):
    """Return the variable whose memory ``v`` has, through views and Ops that overwrite."""
    sources = _sources(v, ["view_map", "destroy_map"])
    if len(sources) > 1:
        raise NotImplementedError(
            f"{v} shares the memory of {len(sources)} inputs of its Apply; only one can be followed"
        )
    return alias_root(sources[0]) if sources else v


def view_tree_set(v, treeset):
    """Add ``v`` to a set, and all variables that share its memory through later Applys."""
    waiting = [v]
    while waiting:
        root = waiting.pop()
        treeset.add(root)
        for node, _ in root.clients:
            outputs = [] if node == "output" else node.outputs
            waiting += [
                output for output in outputs
                if output not in treeset and root in _sources(output, ["view_map", "destroy_map"])
            ]  # fmt: skip


def infer_reuse_pattern(fgraph, outputs_to_disown):
    """Return the computed variables that may share the memory of some outputs."""
    found: set = set()
    for output in outputs_to_disown:
        view_tree_set(alias_root(output), found)
    return {v for v in found if v.owner is not None}


class Supervisor(Feature):
    """Refuses graphs in which an Apply overwrites a protected variable or an output."""

    def __init__(self, protected):
        self.protected = list(protected)

    def validate(self, fgraph):
        for variable in (*self.protected, *fgraph.outputs):
            for node, i in variable.clients:
                overwritten = () if node == "output" else node.op.destroy_map.values()
                if any(i in inputs for inputs in overwritten):
                    raise InconsistencyError(
                        f"{node} overwrites {variable}, which is protected or an output"
                    )
