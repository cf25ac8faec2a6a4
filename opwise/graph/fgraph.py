"""FunctionGraph: the graph of one function, which rewrites edit and linkers execute.

It keeps the readers of every variable, records replacements in a journal so that they can be
undone, gives new Applys the origins of those that they replace, and has one deterministic order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal, TypeVar

from opwise.config import config
from opwise.errors import InconsistencyError, MissingInputError
from opwise.graph import aliasing, flat, provenance, traversal, upcalls
from opwise.graph.apply import Apply
from opwise.graph.features import AlreadyThere, defined
from opwise.graph.op import Op
from opwise.graph.provenance import union
from opwise.graph.variable import Client, Constant, Variable

_EVENTS = ("on_import", "on_prune", "on_change_input")

_F = TypeVar("_F")
#: edits in the order in which they were made: (Apply or 'output', index, what it read before), or
#: (Apply, None, its Op before)
Journal = list[tuple[Any, int | None, Any]]
#: the journal that was in use before a checkpoint, and that of the checkpoint
Mark = tuple[Journal | None, Journal]


@dataclass(frozen=True)
class Interface:
    """What a function does with the inputs and outputs of its graph."""

    #: inputs whose values may be overwritten
    mutable: frozenset[Variable] = frozenset()
    #: inputs that are the values of shared variables
    shared: frozenset[Variable] = frozenset()
    #: inputs whose values are kept between calls; they may lie on a device
    persistent: frozenset[Variable] = frozenset()
    #: inputs whose values lie on the device, as all outputs do then; a call that fails need not
    #: restore them
    resident: frozenset[Variable] = frozenset()
    #: positions of outputs that the caller accepts without a copy, even as a device's array
    borrowed: frozenset[int] = frozenset()
    #: position of an output -> position of the input whose new value it is
    updates: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def default(cls, inputs: Iterable[Variable]) -> Interface:
        """Return the interface of a graph that belongs to no function.

        As in Theano, Applys may overwrite every input whose tag has no true ``indestructible``.
        """
        return cls(
            mutable=frozenset(
                var for var in inputs if not getattr(var._tag, "indestructible", False)
            )
        )

    def of_copies(self, equiv: Mapping[Any, Any]) -> Interface:
        """Return the interface of a copy of the graph. equiv: dict from variables to copies."""
        return Interface(
            frozenset(equiv[v] for v in self.mutable),
            frozenset(equiv[v] for v in self.shared),
            frozenset(equiv[v] for v in self.persistent),
            frozenset(equiv[v] for v in self.resident),
            self.borrowed, self.updates,
        )  # fmt: skip


class FunctionGraph:
    """The graph between ``inputs`` and ``outputs``.

    features: objects whose methods are called when the graph changes; see
    ``opwise.graph.features``.
    clone: work on a copy (the default), so that the user's graph does not change; otherwise own the
    given graph, which must not belong to another FunctionGraph.
    interface: what the function does with ``inputs`` and ``outputs`` (default:
    ``Interface.default(inputs)``).
    name: of the function.
    """

    # A feature sets this; until then, reading it raises AttributeError.

    #: returns the Applys of an Op; set by NodeFinder
    get_nodes: Callable[[Op], list[Apply]]

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        features: Iterable[Any] | None = None,
        clone: bool = True,
        interface: Interface | None = None,
        name: str | None = None,
    ):
        interface = interface or Interface.default(inputs)
        if clone:
            given = list(inputs)
            inputs, outputs = traversal.clone(given, outputs)
            interface = interface.of_copies(dict(zip(given, inputs, strict=True)))
        self.interface = interface
        self.inputs: list[Variable] = []
        self.outputs = list(outputs)
        self.apply_nodes: set[Apply] = set()
        self.variables: set[Variable] = set()
        self._features: list[Any] = []
        #: the features' methods by event
        self._callbacks: dict[str, list[Any]] = {event: [] for event in _EVENTS}
        #: edits since the last checkpoint; None outside all checkpoints
        self._journal: Journal | None = None
        #: Applys added and removed by the running ``replace_all``; None while none runs
        self._imported: list[Apply] | None = None
        self._pruned: list[Apply] | None = None
        #: results of ``read_order``, ``toposort``, ``orderings`` and ``ops``; None after an edit
        self._plain_order: list[Apply] | None = None
        self._order: list[Apply] | None = None
        self._orderings: dict[Apply, list[Apply]] | None = None
        self._ops: dict[int, Op] | None = None
        #: number of changes of inputs and Ops so far
        self.edits = 0
        #: number of Applys that overwrite an input
        self._destroyers = 0
        #: seconds spent in ``validate``
        self.validate_seconds = 0.0
        #: the attached ShapeFeature, as legacy programs read it; the feature sets it
        self.shape_feature: Any = None
        #: the feature that keeps hints about variables, if a program gives some
        self.hints_feature: Any = None
        #: names of the passes that are running, the outermost first
        self.passes: list[str] = []
        #: the name of the compiled function, if it has one
        self.name = name
        #: the profile of the compiled function, if it has one
        self.profile: Any = None
        for feature in features or ():
            self.attach_feature(feature)
        self._import_all(inputs)

    def _import_all(self, inputs: Iterable[Variable]) -> None:
        """Add the inputs, and own the Applys that compute the outputs; all of them or none."""
        order: list[Apply] = []
        try:
            for var in inputs:
                if var in self.variables:
                    raise ValueError(f"One of the provided inputs is listed twice: {var}")
                if var.owner is not None:
                    raise ValueError(f"One of the provided inputs is the output of a node: {var}")
                self.add_input(var)
            for i, out in enumerate(self.outputs):
                order += self._import(out, reason="init")
                out._clients[("output", i)] = None
        except BaseException:
            self.disown()
            raise
        self._plain_order = order

    @property
    def update_mapping(self) -> Mapping[int, int]:
        """Theano's name of ``interface.updates``."""
        return self.interface.updates

    # --- membership -------------------------------------------------------------------------------

    def add_input(self, var: Variable) -> None:
        """Add an input, which no Apply reads yet."""
        self.inputs.append(var)
        self._own(var)

    def add_output(self, var: Variable, reason: Any = None) -> None:
        """Add an output and the Applys that compute it."""
        self._import(var, reason)
        var._clients[("output", len(self.outputs))] = None
        self.outputs.append(var)
        self.edits += 1
        self._forget_order()

    def _own(self, var: Variable) -> None:
        if var.fgraph is not None and var.fgraph is not self:
            raise ValueError(
                f"{var} is already owned by another FunctionGraph: use clone=True to work on a copy"
            )
        var.fgraph = self
        if var._clients is None:
            var._clients = {}
        self.variables.add(var)

    def _disown_variable(self, var: Variable) -> None:
        var.fgraph = None
        var._clients = None
        self.variables.discard(var)

    def disown(self) -> None:
        """Release all variables and Applys, so that another FunctionGraph can own them."""
        for var in self.variables:
            var.fgraph = None
            var._clients = None
        for node in self.apply_nodes:
            node.fgraph = None
        self.variables, self.apply_nodes = set(), set()
        self.inputs, self.outputs = [], []
        self._forget_order()

    def _import(self, var: Variable, reason: Any) -> Sequence[Apply]:
        """Own ``var`` and the Applys that compute it; return these in the order of execution.

        If that fails, the graph and the Applys are as before.
        """
        if var.fgraph is self:
            return ()
        if var.owner is None:
            if not isinstance(var, Constant):
                raise MissingInputError(f"Undeclared input: {var}", variable=var)
            self._own(var)
            return ()
        nodes = traversal.io_toposort(self.variables, [var])
        for node in nodes:
            for i, inp in enumerate(node.inputs):
                if inp.owner is None and inp.fgraph is not self and not isinstance(inp, Constant):
                    raise missing_input(node, i, [var])
        callbacks = self._callbacks["on_import"]
        # how many features know the last Apply
        heard = 0
        try:
            for node in nodes:
                heard = 0
                node.fgraph = self
                self.apply_nodes.add(node)
                if node.op.destroy_map:
                    self._destroyers += 1
                for out in node.outputs:
                    self._own(out)
                for i, inp in enumerate(node.inputs):
                    if inp.fgraph is not self:
                        self._own(inp)
                    inp._clients[(node, i)] = None
                if self._imported is not None:
                    self._imported.append(node)
                for callback in callbacks:
                    callback(self, node, reason)
                    heard += 1
        except BaseException:
            self._withdraw(nodes, heard, reason)
            raise
        self._forget_order()
        return nodes

    def _withdraw(self, nodes: Iterable[Apply], heard: int, reason: Any) -> None:
        """Remove the first Applys of ``nodes``, which an import added before it failed.

        heard: the number of features that know the last of them, which may be owned in part.
        """
        added = [node for node in nodes if node in self.apply_nodes]
        features = [f for f in self._features if defined(f, "on_import")][:heard]
        told = [f.on_prune for f in features if defined(f, "on_prune")]
        for node in reversed(added):
            self.apply_nodes.discard(node)
            if node.op.destroy_map:
                self._destroyers -= 1
            for callback in told:
                callback(self, node, reason)
            told = self._callbacks["on_prune"]
            node.fgraph = None
            for i, inp in enumerate(node.inputs):
                if inp.fgraph is self:
                    inp._clients.pop((node, i), None)
                    if isinstance(inp, Constant) and not inp._clients:
                        self._disown_variable(inp)
            for out in node.outputs:
                if out.fgraph is self:
                    self._disown_variable(out)

    def _remove_client(self, var: Variable, client: Client, reason: Any) -> None:
        """Remove a reader of ``var``, and every Apply that is no longer needed."""
        stack = [(var, client)]
        while stack:
            var, client = stack.pop()
            var._clients.pop(client, None)
            if var._clients:
                continue
            node = var.owner
            if node is None:
                if isinstance(var, Constant):
                    self._disown_variable(var)
                continue
            if len(node.outputs) > 1 and any(out._clients for out in node.outputs):
                continue
            if node not in self.apply_nodes:
                continue
            self.apply_nodes.discard(node)
            self._forget_order()
            if node.op.destroy_map:
                self._destroyers -= 1
            if self._pruned is not None:
                self._pruned.append(node)
            for callback in self._callbacks["on_prune"]:
                callback(self, node, reason)
            node.fgraph = None
            for out in node.outputs:
                self._disown_variable(out)
            for i, inp in enumerate(node.inputs):
                stack.append((inp, (node, i)))

    def destroyers(self, var: Variable) -> list[Apply]:
        """Return the Applys that overwrite the memory of a variable."""
        if not self._destroyers:
            return []
        roots = aliasing.groups(self)
        root = roots.get(var, var)
        return [
            node
            for node in self.read_order()
            if any(roots[node.inputs[i]] is root for i in aliasing.destroyed_inputs(node))
        ]

    def clients(self, var: Variable) -> list[Client]:
        """Return the readers of a variable: (Apply, input index) or ('output', output index)."""
        return list(var._clients)

    # --- edits ------------------------------------------------------------------------------------

    def change_input(
        self, node: Apply | Literal["output"], i: int, new_var: Variable, reason: Any = None
    ) -> None:
        """Replace input ``i`` of ``node`` by ``new_var``; for the node 'output', output ``i``."""
        old = self.outputs[i] if node == "output" else node.inputs[i]
        if old is new_var:
            return
        if old.type is not new_var.type and old.type != new_var.type:
            raise TypeError(
                f"The type of the replacement must be the same as the type of the original "
                f"Variable: {old} has {old.type}, {new_var} has {new_var.type} ({reason})"
            )
        self._import(new_var, reason)
        if node == "output":
            self.outputs[i] = new_var
        else:
            node.inputs[i] = new_var
        new_var._clients[(node, i)] = None
        if self._journal is not None:
            self._journal.append((node, i, old))
        self.edits += 1
        if old.owner is not None or new_var.owner is not None or self._destroyers:
            self._forget_order()
        for callback in self._callbacks["on_change_input"]:
            callback(self, node, i, old, new_var, reason)
        self._remove_client(old, (node, i), reason)

    def change_op(self, node: Apply, op: Op, reason: Any = None) -> None:
        """Replace the Op of ``node`` by one with inputs and outputs of the same types."""
        for callback in self._callbacks["on_prune"]:
            callback(self, node, reason)
        if self._journal is not None:
            self._journal.append((node, None, node.op))
        self._destroyers += bool(op.destroy_map) - bool(node.op.destroy_map)
        node.op = op
        self.edits += 1
        self._order = self._orderings = self._ops = None
        for callback in self._callbacks["on_import"]:
            callback(self, node, reason)

    def _undo(self, journal: Journal) -> None:
        self._journal = None
        for node, i, old in reversed(journal):
            if i is None:
                self.change_op(node, old, reason="undo")
            else:
                self.change_input(node, i, old, reason="undo")

    def replace(
        self, var: Variable, new_var: Variable, reason: Any = None, verbose: Any = None
    ) -> None:
        """Let every reader of ``var`` read ``new_var`` instead."""
        self.replace_all([(var, new_var)], reason)

    def replace_all(self, pairs: Iterable[tuple[Variable, Variable]], reason: Any = None) -> None:
        """Replace several variables, each by the second of its pair.

        New Applys get the origins of the Applys that are no longer needed.
        """
        outermost = self._imported is None
        if outermost:
            self._imported, self._pruned = [], []
        try:
            sources = []
            for var, new_var in pairs:
                if var.fgraph is not self or var is new_var:
                    continue
                if new_var.type is not var.type and new_var.type != var.type:
                    new_var = self._converted(var, new_var, reason)
                if var.owner is not None:
                    sources.append(var.owner)
                for node, i in list(var._clients):
                    if node == "output" or node in self.apply_nodes:
                        self.change_input(node, i, new_var, reason)
            if outermost and self._imported:
                self._inherit(sources)
        finally:
            if outermost:
                self._imported = self._pruned = None

    def _converted(self, var: Variable, new_var: Variable, reason: Any) -> Variable:
        converted = var.type.convert_variable(new_var)
        if converted is None or converted.type != var.type:
            raise InconsistencyError(
                f"{reason}: the type of the replacement must be the same as the type of the "
                f"original Variable: {var} has {var.type}, {new_var} has {new_var.type}. Convert "
                "it."
            )
        return converted

    def _inherit(self, sources: list[Apply]) -> None:
        """Give new Applys without origins those of ``sources`` and of the removed Applys.

        If some of these are loops, new loops get the origins of the loops alone, and other Applys
        beside new loops those of the others: a loop that keeps less of what is read of it does the
        work of the loop, and its reader that of the reader. If each new Apply reads what removed
        ones have read, it gets the origins of these alone: of the products in a sum, each does its
        own work.
        """
        imported, pruned = self._imported or (), self._pruned or ()
        nodes = [node for node in imported if node in self.apply_nodes and not node._origins]
        if not nodes:
            return
        removed = [*pruned, *sources]
        if len(nodes) > 1 and (own := _doing(nodes, removed)):
            for node, old in own.items():
                node._origins = union(*(one.origins for one in old))
            return
        origins = union(*(node.origins for node in removed))
        loops, others = _parted(removed)
        new_loops, new_others = _parted(nodes)
        if loops and others and new_loops:
            for node in new_loops:
                node._origins = union(*(old.origins for old in loops))
            nodes, origins = new_others, union(*(old.origins for old in others))
        for node in nodes:
            node._origins = origins

    def replace_validate(self, var: Variable, new_var: Variable, reason: Any = None) -> None:
        """Replace and validate; undo and raise InconsistencyError if the graph became invalid."""
        self.replace_all_validate([(var, new_var)], reason)

    def replace_all_validate(
        self, pairs: Iterable[tuple[Variable, Variable]], reason: Any = None, verbose: Any = None
    ) -> None:
        """Replace several variables; if one fails or the graph is invalid, undo all and raise."""
        mark = self._journal
        journal = self._journal = []
        try:
            self.replace_all(pairs, reason)
            self.validate()
        except Exception:
            # whatever the exception, restore the graph
            self._undo(journal)
            self._journal = mark
            self.execute_callbacks("on_undo")
            raise
        self._journal = mark
        if mark is not None:
            mark.extend(journal)

    def replace_all_validate_remove(
        self,
        pairs: Iterable[tuple[Variable, Variable]],
        remove: Iterable[Apply],
        reason: Any = None,
        warn: bool = True,
    ) -> None:
        """Replace and validate; undo and raise if an Apply of ``remove`` is still in the graph."""
        mark = self.checkpoint()
        self.replace_all_validate(pairs, reason)
        if any(node in self.apply_nodes for node in remove):
            self.revert(mark)
            raise InconsistencyError(f"{reason}: an Apply that was to be removed is still there")
        self.release(mark)

    def checkpoint(self) -> Mark:
        """Start to record edits; pass the result to ``revert`` or ``release``."""
        outer = self._journal
        journal: Journal = []
        self._journal = journal
        return outer, journal

    def revert(self, mark: Mark) -> None:
        """Undo every edit since the checkpoint."""
        outer, journal = mark
        self._undo(journal)
        self._journal = outer

    def release(self, mark: Mark) -> None:
        """Keep every edit since the checkpoint."""
        outer, journal = mark
        self._journal = outer
        if outer is not None:
            outer.extend(journal)

    # --- features ---------------------------------------------------------------------------------

    def attach_feature(self, feature: Any) -> None:
        """Attach a feature, unless an equal one is attached already."""
        if feature in self._features:
            return
        try:
            on_attach = getattr(feature, "on_attach", None)
            if on_attach is not None:
                on_attach(self)
        except AlreadyThere:
            return
        self._features.append(feature)
        if defined(feature, "orderings"):
            self._forget_order()
        for event, callbacks in self._callbacks.items():
            method = defined(feature, event)
            if method is not None:
                callbacks.append(method)

    def find_feature(self, cls: type[_F]) -> _F | None:
        """Return the attached feature that is an instance of ``cls``, or None."""
        return next((f for f in self._features if isinstance(f, cls)), None)

    def remove_feature(self, feature: Any) -> None:
        """Detach a feature, if it is attached."""
        if feature not in self._features:
            return
        self._features.remove(feature)
        if defined(feature, "orderings"):
            self._forget_order()
        for event, callbacks in self._callbacks.items():
            method = defined(feature, event)
            if method in callbacks:
                callbacks.remove(method)
        on_detach = getattr(feature, "on_detach", None)
        if on_detach is not None:
            on_detach(self)

    def execute_callbacks(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Call the method ``name`` of every feature that has it."""
        for feature in list(self._features):
            method = getattr(feature, name, None)
            if method is not None:
                method(self, *args, **kwargs)

    def collect_callbacks(self, name: str, *args: Any) -> dict[Any, Any]:
        """Return a dict from each feature with a method ``name`` to the result of its call."""
        results = {}
        for feature in self._features:
            method = getattr(feature, name, None)
            if method is not None:
                results[feature] = method(self, *args)
        return results

    def validate(self) -> None:
        """Raise InconsistencyError if the graph has a cycle or a feature refuses it."""
        start = perf_counter()
        try:
            self.execute_callbacks("validate")
        finally:
            self.validate_seconds += perf_counter() - start

    def consistent(self) -> bool:
        """Return whether ``validate`` passes."""
        try:
            self.validate()
        except InconsistencyError:
            return False
        return True

    # --- order ------------------------------------------------------------------------------------

    def toposort(self) -> list[Apply]:
        """Return the Applys in an order in which they can run, the same one in every process."""
        if self._order is None:
            order, orderings = self.read_order(), self.orderings()
            if orderings:
                order = self._sorted(orderings)
            self._order = order
        return list(self._order)

    def read_order(self) -> list[Apply]:
        """Return the Applys, each after those that it reads; ignores which memory they overwrite.

        The caller must not change the list.
        """
        if self._plain_order is None:
            self._plain_order = self._sorted()
        return self._plain_order

    def _sorted(self, orderings: Mapping[Apply, Iterable[Apply]] | None = None) -> list[Apply]:
        try:
            return traversal.io_toposort(self.inputs, self.outputs, orderings)
        except ValueError as e:
            raise InconsistencyError(str(e)) from None

    def orderings(self) -> dict[Apply, list[Apply]]:
        """Return a dict from an Apply to others that must run before it, besides those it reads.

        The caller must not change the dict.
        """
        if self._orderings is None:
            merged = aliasing.orderings(self) if self._destroyers else {}
            for feature in self._features:
                method = defined(feature, "orderings")
                if method is not None:
                    for node, before in method(self).items():
                        merged.setdefault(node, []).extend(before)
            self._orderings = merged
        return self._orderings

    def ops(self) -> dict[int, Op]:
        """Return the Ops of the graph by their ids. The caller must not change the dict."""
        if self._ops is None:
            self._ops = {id(node.op): node.op for node in self.read_order()}
        return self._ops

    def _forget_order(self) -> None:
        self._plain_order = self._order = self._orderings = self._ops = None

    @property
    def has_destroyers(self) -> bool:
        """Whether an Apply of the graph overwrites one of its inputs."""
        return self._destroyers > 0

    # --- checks and copies ------------------------------------------------------------------------

    def check_integrity(self) -> None:
        """Raise InconsistencyError if the records of clients or members are wrong."""
        nodes = set(traversal.io_toposort(self.inputs, self.outputs))
        if nodes != self.apply_nodes:
            raise InconsistencyError(
                "apply_nodes is not the set of Applys of the graph: it lacks "
                f"{nodes - self.apply_nodes}, and {self.apply_nodes - nodes} are not in the graph"
            )
        expected: dict[Variable, set[Client]] = {}
        for node in nodes:
            if node.fgraph is not self:
                raise InconsistencyError(f"{node} is not owned by the graph")
            for i, var in enumerate(node.inputs):
                expected.setdefault(var, set()).add((node, i))
        for i, var in enumerate(self.outputs):
            expected.setdefault(var, set()).add(("output", i))
        for var in self.variables:
            if var.fgraph is not self or set(var._clients) != expected.get(var, set()):
                raise InconsistencyError(f"The clients of {var} are not its readers in the graph")

    def clone(self, check_integrity: bool = False) -> FunctionGraph:
        """Return a copy."""
        return self.clone_get_equiv(check_integrity)[0]

    def clone_get_equiv(
        self, check_integrity: bool = False, attach_feature: bool = True
    ) -> tuple[FunctionGraph, dict[Any, Any]]:
        """Return (a copy, a dict from variables and Applys to their copies).

        check_integrity: check the copy. attach_feature: attach the features, or their clones, to
        the copy.
        """
        equiv = traversal.clone_get_equiv(self.inputs, self.outputs)
        new = FunctionGraph(
            [equiv[v] for v in self.inputs], [equiv[v] for v in self.outputs], clone=False,
            interface=self.interface.of_copies(equiv), name=self.name,
        )  # fmt: skip
        for node in self.apply_nodes:
            equiv[node]._origins = node.origins
        if attach_feature:
            for feature in self._features:
                copy = getattr(feature, "clone", None)
                new.attach_feature(copy() if copy is not None else feature)
        if check_integrity:
            new.check_integrity()
        return new, equiv

    def __str__(self) -> str:
        return f"[{', '.join(traversal.as_string(self.inputs, self.outputs))}]"

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: the graph."""
        return upcalls.html(self)

    def __repr__(self) -> str:
        return str(self)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.update(_journal=None, _imported=None, _pruned=None)
        state.update(_plain_order=None, _order=None, _orderings=None, _ops=None)
        state["_callbacks"] = None
        # __setstate__ finds them again. A pickler would write them in arbitrary order, and recurse
        # from each.
        del state["apply_nodes"], state["variables"]
        applys = flat.WriteInOrder(self.toposort())
        return {"_before": applys, **state, "_after": flat.AllWritten(applys.taken)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        del self.__dict__["_before"], self.__dict__["_after"]
        self._callbacks = {
            event: [method for f in self._features if (method := defined(f, event))]
            for event in _EVENTS
        }
        nodes = traversal.io_toposort(self.inputs, self.outputs)
        self.apply_nodes = set(nodes)
        self.variables = set(traversal.variables(self.inputs, self.outputs)) | set(self.inputs)
        for var in self.variables:
            var.fgraph = self
        for node in nodes:
            node.fgraph = self
        self._note_clients(nodes)

    def _note_clients(self, nodes: Iterable[Apply]) -> None:
        """Note the readers of all variables, in the order of Applys."""
        for var in self.variables:
            var._clients = {}
        for node in nodes:
            for i, var in enumerate(node.inputs):
                var._clients[(node, i)] = None
        for i, var in enumerate(self.outputs):
            var._clients[("output", i)] = None

    def sort_clients(self) -> None:
        """Put the readers of each variable into the order of the graph, outputs last.

        Rewrites add them in an order of their own, which a copy of the graph does not have.
        """
        self._note_clients(self.toposort())


def missing_input(
    node: Apply, i: int, outputs: Sequence[Variable], created: str = ""
) -> MissingInputError:
    """Return the MissingInputError for input ``i`` of an Apply, a variable without a value.

    outputs: the variables to compute. created: the text that shows where the input was made.
    """
    var = node.inputs[i]
    text = (
        f"Input {i} of the graph (indices start from 0), used to compute {node}, was not provided "
        f"and not given a value. {_more_on_missing_input(var, outputs)} The missing input is "
        f"{var}: add it to the inputs of the function, give it a value with givens, or make it a "
        "shared variable."
    )
    trace = provenance.format_trace(node.trace)
    if trace:
        text += f"\n\nBacktrace when the Apply that reads it is created:\n\n{trace}".rstrip("\n")
    return MissingInputError(text + created, variable=var)


def _more_on_missing_input(var: Variable, outputs: Sequence[Variable]) -> str:
    """Return the sentences of the error that depend on the flag exception_verbosity."""
    if config.exception_verbosity != "high":
        return "Use the Theano flag exception_verbosity='high', for more information on this error."
    chain = ", ".join(map(str, _chain(var, outputs)))
    return (
        "A variable that is an input to the graph was neither provided as an input to the function "
        "nor given a value. A chain of variables leading from this input to an output is "
        f"[{chain}]. This chain may not be unique."
    )


def _chain(var: Variable, outputs: Sequence[Variable]) -> list[Variable]:
    """Return variables from ``var`` to one of ``outputs``, each computed from the one before."""
    nodes = traversal.io_toposort([], outputs)
    #: a variable that depends on ``var`` -> the one before it in its chain
    previous: dict[Variable, Variable | None] = {var: None}
    for node in nodes:
        read = next((inp for inp in node.inputs if inp in previous), None)
        if read is not None:
            for out in node.outputs:
                previous.setdefault(out, read)
    chain = []
    current: Variable | None = next((out for out in outputs if out in previous), var)
    while current is not None:
        chain.append(current)
        current = previous[current]
    return chain[::-1]


def _doing(nodes: Sequence[Apply], removed: Sequence[Apply]) -> dict[Apply, list[Apply]]:
    """Return for each new Apply the removed ones whose work it does; {} if that is not clear.

    It does the work of those that share most operands with it, if few others read these. Removed
    Applys that read only each other's results are for the new ones that nothing new reads.
    """
    old, new = set(removed), set(nodes)
    readers: dict[Variable, list[Apply]] = {}
    for node in nodes:
        for var in dict.fromkeys(node.inputs):
            readers.setdefault(var, []).append(node)
    found: dict[Apply, list[Apply]] = {node: [] for node in nodes}
    rest = []
    for one in dict.fromkeys(removed):
        operands = {v for v in one.inputs if not isinstance(v, Constant) and v.owner not in old}
        reading = [readers[var] for var in operands if var in readers]
        if not reading:
            rest.append(one)
            continue
        fewest = min(map(len, reading))
        some = {node for those in reading if len(those) == fewest for node in those}
        shared = {node: len(operands.intersection(node.inputs)) for node in some}
        most = max(shared.values())
        for node, count in shared.items():
            if count == most:
                found[node].append(one)
    if not all(found.values()):
        return {}
    for node in nodes:
        if not any(client in new for out in node.outputs for client, _ in out._clients):
            found[node] += rest
    return found


def _parted(nodes: Sequence[Apply]) -> tuple[list[Apply], list[Apply]]:
    """Return (loops, other Applys)."""
    loops: list[Apply] = []
    others: list[Apply] = []
    for node in nodes:
        is_loop = getattr(node.op, "profile_kind", "") == "loop"
        (loops if is_loop else others).append(node)
    return loops, others
