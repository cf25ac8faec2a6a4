"""Features: objects attached to a FunctionGraph, which follow its changes or refuse some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.overwriting import OverwriteChecker
from opwise.graph.variable import Variable

if TYPE_CHECKING:
    from opwise.graph.fgraph import FunctionGraph


class AlreadyThere(Exception):
    """Raised by ``on_attach``: an equivalent feature is attached already."""


class Feature:
    """Base class of features, each of which replaces only those of these methods that it needs.

    on_attach(fgraph), on_detach(fgraph): called when the feature is attached or detached.
    on_import(fgraph, node, reason), on_prune(fgraph, node, reason): called when an Apply was added
    or removed. on_change_input(fgraph, node, i, old, new, reason): called when input ``i`` of an
    Apply, or for the node 'output' output ``i``, was replaced. validate(fgraph): raises
    InconsistencyError to refuse the graph. on_undo(fgraph): called when a replacement that failed
    was undone. orderings(fgraph): returns a dict from an Apply to
    others that must run before it. clone(): returns the feature for a copy of the graph.
    A FunctionGraph calls only methods that a subclass defines.
    """

    def on_attach(self, fgraph: FunctionGraph) -> None: ...
    def on_detach(self, fgraph: FunctionGraph) -> None: ...
    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None: ...
    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None: ...
    def on_change_input(
        self, fgraph: FunctionGraph, node: Any, i: int, old: Variable, new: Variable,
        reason: Any = None,
    ) -> None: ...  # fmt: skip

    def orderings(self, fgraph: FunctionGraph) -> Mapping[Apply, Iterable[Apply]]:
        return {}


def defined(feature: Any, name: str) -> Any:
    """Return a method of a feature; None if it has none, or the empty one of its base class."""
    method = getattr(feature, name, None)
    if getattr(method, "__func__", None) is getattr(Feature, name, feature):
        return None
    return method


class ReplaceValidate(Feature):
    """Legacy name: replacement with validation is part of FunctionGraph."""


class History(Feature):
    """Legacy name: ``fgraph.checkpoint()`` and ``fgraph.revert(mark)`` record and undo edits."""


class DevicePlacement(Feature):
    """Base of the feature that says where the Applys of a graph run: on a device or on the host."""

    def read_on_host(self, node: Apply) -> tuple[int, ...] | None:
        """Return the inputs that an Apply on a device reads on the host; None if it runs there."""
        raise NotImplementedError


class Bookkeeper(Feature):
    """Base of features that follow all Applys, also those present when they are attached.

    ``on_attach`` calls ``on_import`` for each Apply of the graph; ``on_detach`` calls ``on_prune``.
    """

    def on_attach(self, fgraph: FunctionGraph) -> None:
        for node in fgraph.toposort():
            self.on_import(fgraph, node, "attach")

    def on_detach(self, fgraph: FunctionGraph) -> None:
        for node in fgraph.toposort():
            self.on_prune(fgraph, node, "detach")


class NodeFinder(Bookkeeper):
    """Finds Applys by their Op: ``fgraph.get_nodes(op)``."""

    def __init__(self) -> None:
        self._nodes: dict[Op, dict[Apply, None]] = {}

    def on_attach(self, fgraph: FunctionGraph) -> None:
        if hasattr(fgraph, "get_nodes"):
            raise AlreadyThere("NodeFinder is already present")
        fgraph.get_nodes = self.get_nodes
        super().on_attach(fgraph)

    def on_detach(self, fgraph: FunctionGraph) -> None:
        del fgraph.get_nodes
        super().on_detach(fgraph)

    def clone(self) -> NodeFinder:
        """Return a finder for a copy of the graph."""
        return NodeFinder()

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self._nodes.setdefault(node.op, {})[node] = None

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self._nodes.get(node.op, {}).pop(node, None)

    def get_nodes(self, op: Op) -> list[Apply]:
        """Return the Applys of an Op."""
        return list(self._nodes.get(op, ()))


class NoOutputFromInplace(Feature):
    """Refuses graphs in which an output is computed in place.

    first, last: the range ``outputs[first:last]`` to which that applies (default: all outputs).
    """

    def __init__(self, first: int = 0, last: int | None = None):
        self.first, self.last = first, last

    def validate(self, fgraph: FunctionGraph) -> None:
        aliasing.check_outputs_not_destroying(fgraph, fgraph.outputs[self.first : self.last])


class DestroyHandler(Feature):
    """Refuses graphs in which an Apply destroys memory that it must not; see ``aliasing.check``."""

    def __init__(self) -> None:
        self._checker: OverwriteChecker | None = None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __getstate__(self) -> dict[str, Any]:
        return {"_checker": None}

    def clone(self) -> DestroyHandler:
        """Return a handler for a copy of the graph."""
        return type(self)()

    def forget(self) -> None:
        """Release what is known of the graph; the next check looks at all of it."""
        self._checker = None

    def on_detach(self, fgraph: FunctionGraph) -> None:
        self.forget()

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        if self._checker is not None:
            self._checker.touch(node)

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        if self._checker is not None:
            self._checker.forget(node)

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply | str,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        if self._checker is None:
            return
        if isinstance(node, str):
            self._checker.new_outputs[new] = None
        else:
            self._checker.touch(node)

    def on_undo(self, fgraph: FunctionGraph) -> None:
        if self._checker is not None:
            self._checker.start_from_here()

    def validate(self, fgraph: FunctionGraph) -> None:
        if not fgraph.has_destroyers:
            self._checker = None
        elif any(defined(feature, "orderings") for feature in fgraph._features):
            # the feature may demand another order after any edit
            self._checker = None
            aliasing.check(fgraph)
        else:
            if self._checker is None or self._checker.fgraph is not fgraph:
                self._checker = OverwriteChecker(fgraph)
            self._checker.check()


class PreserveNames(Feature):
    """Gives a computed replacement without a name the name of the variable that it replaces."""

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Apply | str,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        if old.name is not None and new.name is None and new.owner is not None:
            new.name = old.name
