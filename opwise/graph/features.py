"""Features: what may be attached to a FunctionGraph to hear of its changes or to forbid some."""

from __future__ import annotations

from opwise.graph import aliasing


class AlreadyThere(Exception):
    """Raised by ``on_attach``: an equivalent feature is attached already."""


class Feature:
    """Base class. A feature defines those of these methods that it needs, and no others.

    on_attach(fgraph), on_detach(fgraph), on_import(fgraph, node, reason),
    on_prune(fgraph, node, reason), on_change_input(fgraph, node, i, old, new, reason),
    validate(fgraph), orderings(fgraph), clone().
    """


class ReplaceValidate(Feature):
    """Legacy name: replacement with validation is part of FunctionGraph."""


class History(Feature):
    """Checkpoints of a graph: ``fgraph.checkpoint()`` and ``fgraph.revert(mark)`` do the work."""


class Bookkeeper(Feature):
    """Base of features that treat the Applys present when attached as if just imported."""

    def on_attach(self, fgraph):
        for node in fgraph.toposort():
            self.on_import(fgraph, node, "attach")

    def on_detach(self, fgraph):
        for node in fgraph.toposort():
            self.on_prune(fgraph, node, "detach")


class NodeFinder(Bookkeeper):
    """Finds Applys by their Op: ``get_nodes(op)``."""

    def __init__(self):
        self._nodes = {}

    def on_import(self, fgraph, node, reason):
        self._nodes.setdefault(node.op, {})[node] = None

    def on_prune(self, fgraph, node, reason):
        self._nodes.get(node.op, {}).pop(node, None)

    def get_nodes(self, op):
        """Return the Applys of an Op."""
        return list(self._nodes.get(op, ()))


class NoOutputFromInplace(Feature):
    """Forbids that some outputs of the graph are computed by overwriting."""

    def __init__(self, first=0, last=None):
        self.first, self.last = first, last

    def validate(self, fgraph):
        aliasing.check_outputs_not_destroying(fgraph, fgraph.outputs[self.first : self.last])


class DestroyHandler(Feature):
    """Lets ``validate`` refuse a graph in which a destroyed value would still be read."""

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def validate(self, fgraph):
        if fgraph.has_destroyers:
            aliasing.check(fgraph)


class PreserveNames(Feature):
    """Gives what replaces a variable its name, where it is computed and has none."""

    def on_change_input(self, fgraph, node, i, old, new, reason=None):
        if old.name is not None and new.name is None and new.owner is not None:
            new.name = old.name
