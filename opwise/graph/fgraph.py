"""FunctionGraph: the graph of one function, which rewrites edit and linkers execute.

It knows every reader of every variable, applies replacements with a journal so that they can be
undone, hands the origins of what a replacement removes on to what it brings, and gives one
deterministic order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import perf_counter

from opwise.config import config
from opwise.errors import InconsistencyError, MissingInputError
from opwise.graph import aliasing, flat, provenance, traversal
from opwise.graph.apply import Apply
from opwise.graph.features import AlreadyThere
from opwise.graph.provenance import union
from opwise.graph.variable import Constant, Variable

_EVENTS = ("on_import", "on_prune", "on_change_input")


@dataclass(frozen=True)
class Interface:
    """What a function does with the inputs and outputs of its graph."""

    #: inputs whose values may be overwritten
    mutable: frozenset[Variable] = frozenset()
    #: inputs that are the values of shared variables
    shared: frozenset[Variable] = frozenset()
    #: inputs whose values stay from one call to the next, so that they may lie on a device
    persistent: frozenset[Variable] = frozenset()
    #: positions of outputs that the caller takes where they are, be it on a device
    borrowed: frozenset[int] = frozenset()
    #: position of an output -> position of the input whose new value it is
    updates: Mapping[int, int] = field(default_factory=dict)

    def of_copies(self, equiv):
        """Return the interface of a copy of the graph. equiv: from variables to their copies."""
        return Interface(
            frozenset(equiv[v] for v in self.mutable),
            frozenset(equiv[v] for v in self.shared),
            frozenset(equiv[v] for v in self.persistent),
            self.borrowed, self.updates,
        )  # fmt: skip


class FunctionGraph:
    """The graph between ``inputs`` and ``outputs``.

    clone: work on a copy (the default), so that the user's graph stays as it is; otherwise the
    given graph itself is owned, and must belong to no other FunctionGraph. features: objects whose
    methods are called as the graph changes (see ``opwise.graph.features``). interface: what the
    function does with inputs and outputs, of the variables that are given.
    """

    def __init__(self, inputs, outputs, features=None, clone=True, interface=None):
        interface = interface or Interface()
        if clone:
            given = list(inputs)
            inputs, outputs = traversal.clone(given, outputs)
            interface = interface.of_copies(dict(zip(given, inputs, strict=True)))
        self.interface = interface
        self.inputs = []
        self.outputs = list(outputs)
        self.apply_nodes: set[Apply] = set()
        self.variables: set[Variable] = set()
        self._features = []
        self._callbacks = {event: [] for event in _EVENTS}
        self._journal = None
        self._imported = None
        self._pruned = None
        #: the order by what Applys read, the one that also keeps to orderings, those, and the Ops
        self._plain_order = self._order = self._orderings = self._ops = None
        #: how often an input or an Op was changed so far
        self.edits = 0
        self._destroyers = 0
        #: seconds spent in ``validate``
        self.validate_seconds = 0.0
        #: the names of the passes that are being applied, the outermost first
        self.passes: list[str] = []
        self.profile = None
        for feature in features or ():
            self.attach_feature(feature)
        for var in inputs:
            if var in self.variables:
                raise ValueError(f"One of the provided inputs is listed twice: {var}")
            if var.owner is not None:
                raise ValueError(f"One of the provided inputs is the output of a node: {var}")
            self.add_input(var)
        order = []
        for i, out in enumerate(self.outputs):
            order += self._import(out, reason="init")
            out._clients[("output", i)] = None
        self._plain_order = order

    @property
    def update_mapping(self):
        """{position of an output: position of the input whose new value it is}, as in Theano."""
        return self.interface.updates

    # --- membership -------------------------------------------------------------------------------

    def add_input(self, var):
        """Add an input, which no Apply reads yet."""
        self.inputs.append(var)
        self._own(var)

    def add_output(self, var, reason=None):
        """Add an output, importing what computes it."""
        self._import(var, reason)
        var._clients[("output", len(self.outputs))] = None
        self.outputs.append(var)
        self.edits += 1
        self._forget_order()

    def _own(self, var):
        if var.fgraph is not None and var.fgraph is not self:
            raise ValueError(
                f"{var} is already owned by another FunctionGraph: clone=True works on a copy"
            )
        var.fgraph = self
        if var._clients is None:
            var._clients = {}
        self.variables.add(var)

    def _disown_variable(self, var):
        var.fgraph = None
        var._clients = None
        self.variables.discard(var)

    def disown(self):
        """Give up all variables and Applys, so that another FunctionGraph can take them."""
        for var in self.variables:
            var.fgraph = None
            var._clients = None
        for node in self.apply_nodes:
            node.fgraph = None
        self.variables, self.apply_nodes = set(), set()
        self.inputs, self.outputs = [], []
        self._forget_order()

    def _import(self, var, reason):
        """Own ``var`` and all that computes it, which is returned in the order of execution."""
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
        for node in nodes:
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
        self._forget_order()
        return nodes

    def _remove_client(self, var, client, reason):
        """Drop a reader of ``var``, and whatever nobody needs any more."""
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

    def clients(self, var):
        """Return the readers of a variable as a list of (Apply, input index)."""
        return list(var._clients)

    # --- edits ------------------------------------------------------------------------------------

    def change_input(self, node, i, new_var, reason=None):
        """Let input ``i`` of ``node`` (of 'output': output ``i``) read ``new_var``."""
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

    def change_op(self, node, op, reason=None):
        """Let ``node`` compute what it computes by another Op, of the same types."""
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

    def _undo(self, journal):
        self._journal = None
        for node, i, old in reversed(journal):
            if i is None:
                self.change_op(node, old, reason="undo")
            else:
                self.change_input(node, i, old, reason="undo")

    def replace(self, var, new_var, reason=None, verbose=None):
        """Let every reader of ``var`` read ``new_var`` instead."""
        self.replace_all([(var, new_var)], reason)

    def replace_all(self, pairs, reason=None):
        """Replace several variables at once.

        The Applys that this brings in take over the origins of those that it makes superfluous.
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

    def _converted(self, var, new_var, reason):
        converted = var.type.convert_variable(new_var)
        if converted is None or converted.type != var.type:
            raise InconsistencyError(
                f"{reason}: the type of the replacement must be the same as the type of the "
                f"original Variable: {var} has {var.type}, {new_var} has {new_var.type}. Convert "
                "it."
            )
        return converted

    def _inherit(self, sources):
        nodes = [node for node in self._imported if node in self.apply_nodes and not node._origins]
        if nodes:
            origins = union(*(n.origins for n in self._pruned), *(n.origins for n in sources))
            for node in nodes:
                node._origins = origins

    def replace_validate(self, var, new_var, reason=None):
        """Replace and validate; undo and raise InconsistencyError if the graph became invalid."""
        self.replace_all_validate([(var, new_var)], reason)

    def replace_all_validate(self, pairs, reason=None, verbose=None):
        """Replace several variables; undo all and raise if one fails or the result is invalid."""
        mark = self._journal
        journal = self._journal = []
        try:
            self.replace_all(pairs, reason)
            self.validate()
        except Exception:
            # whatever went wrong, the graph must be as it was before
            self._undo(journal)
            self._journal = mark
            raise
        self._journal = mark
        if mark is not None:
            mark.extend(journal)

    def replace_all_validate_remove(self, pairs, remove, reason=None, warn=True):
        """As replace_all_validate; also undo if an Apply of ``remove`` is still in the graph."""
        mark = self.checkpoint()
        self.replace_all_validate(pairs, reason)
        if any(node in self.apply_nodes for node in remove):
            self.revert(mark)
            raise InconsistencyError(f"{reason}: an Apply that should have gone is still there")
        self.release(mark)

    def checkpoint(self):
        """Start to record edits; give the result to ``revert`` or ``release``."""
        outer, self._journal = self._journal, []
        return outer, self._journal

    def revert(self, mark):
        """Undo every edit since the checkpoint."""
        outer, journal = mark
        self._undo(journal)
        self._journal = outer

    def release(self, mark):
        """Keep every edit since the checkpoint."""
        outer, journal = mark
        self._journal = outer
        if outer is not None:
            outer.extend(journal)

    # --- features ---------------------------------------------------------------------------------

    def attach_feature(self, feature):
        """Let a feature hear of changes; an equal one that is attached already is kept instead."""
        if feature in self._features:
            return
        try:
            on_attach = getattr(feature, "on_attach", None)
            if on_attach is not None:
                on_attach(self)
        except AlreadyThere:
            return
        self._features.append(feature)
        if hasattr(feature, "orderings"):
            self._forget_order()
        for event, callbacks in self._callbacks.items():
            method = getattr(feature, event, None)
            if method is not None:
                callbacks.append(method)

    def find_feature(self, cls):
        """Return the attached feature that is an instance of ``cls``, or None."""
        return next((f for f in self._features if isinstance(f, cls)), None)

    def remove_feature(self, feature):
        """Detach a feature; nothing happens if it is not attached."""
        if feature not in self._features:
            return
        self._features.remove(feature)
        if hasattr(feature, "orderings"):
            self._forget_order()
        for event, callbacks in self._callbacks.items():
            method = getattr(feature, event, None)
            if method in callbacks:
                callbacks.remove(method)
        on_detach = getattr(feature, "on_detach", None)
        if on_detach is not None:
            on_detach(self)

    def execute_callbacks(self, name, *args, **kwargs):
        """Call the method ``name`` of every feature that has it."""
        for feature in list(self._features):
            method = getattr(feature, name, None)
            if method is not None:
                method(self, *args, **kwargs)

    def collect_callbacks(self, name, *args):
        """Return a dict from each feature that has the method ``name`` to what it returned."""
        results = {}
        for feature in self._features:
            method = getattr(feature, name, None)
            if method is not None:
                results[feature] = method(self, *args)
        return results

    def validate(self):
        """Raise InconsistencyError if the graph has a cycle or breaks a rule of a feature."""
        start = perf_counter()
        try:
            self.execute_callbacks("validate")
        finally:
            self.validate_seconds += perf_counter() - start

    def consistent(self):
        """Return whether ``validate`` passes."""
        try:
            self.validate()
        except InconsistencyError:
            return False
        return True

    # --- order ------------------------------------------------------------------------------------

    def toposort(self):
        """Return the Applys in an order in which they can run; the same one every time."""
        if self._order is None:
            order, orderings = self.read_order(), self.orderings()
            if orderings:
                order = self._sorted(orderings)
            self._order = order
        return list(self._order)

    def read_order(self):
        """Return the Applys so that each comes after those that it reads, whatever they overwrite.

        The caller must not change the list.
        """
        if self._plain_order is None:
            self._plain_order = self._sorted()
        return self._plain_order

    def _sorted(self, orderings=None):
        try:
            return traversal.io_toposort(self.inputs, self.outputs, orderings)
        except ValueError as e:
            raise InconsistencyError(str(e)) from None

    def orderings(self):
        """Return a dict from an Apply to those that must run before it although it reads none.

        The caller must not change it.
        """
        if self._orderings is None:
            merged = aliasing.orderings(self) if self._destroyers else {}
            for feature in self._features:
                method = getattr(feature, "orderings", None)
                if method is not None:
                    for node, before in method(self).items():
                        merged.setdefault(node, []).extend(before)
            self._orderings = merged
        return self._orderings

    def ops(self):
        """Return a dict from its id to each Op of the graph. The caller must not change it."""
        if self._ops is None:
            self._ops = {id(node.op): node.op for node in self.read_order()}
        return self._ops

    def _forget_order(self):
        self._plain_order = self._order = self._orderings = self._ops = None

    @property
    def has_destroyers(self):
        """Whether an Apply of the graph overwrites one of its inputs."""
        return self._destroyers > 0

    # --- checks and copies ------------------------------------------------------------------------

    def check_integrity(self):
        """Raise an exception if the books on clients and membership are wrong."""
        nodes = set(traversal.io_toposort(self.inputs, self.outputs))
        if nodes != self.apply_nodes:
            raise InconsistencyError(
                f"The graph and its books differ: only in the graph {nodes - self.apply_nodes}, "
                f"only in the books {self.apply_nodes - nodes}"
            )
        expected: dict = {}
        for node in nodes:
            if node.fgraph is not self:
                raise InconsistencyError(f"{node} is not owned by the graph")
            for i, var in enumerate(node.inputs):
                expected.setdefault(var, set()).add((node, i))
        for i, var in enumerate(self.outputs):
            expected.setdefault(var, set()).add(("output", i))
        for var in self.variables:
            if var.fgraph is not self or set(var._clients) != expected.get(var, set()):
                raise InconsistencyError(f"The clients of {var} are not what the graph says")

    def clone(self, check_integrity=False):
        """Return a copy."""
        return self.clone_get_equiv(check_integrity)[0]

    def clone_get_equiv(self, check_integrity=False, attach_feature=True):
        """Return (a copy, a dict from variables and Applys to their copies)."""
        equiv = traversal.clone_get_equiv(self.inputs, self.outputs)
        new = FunctionGraph(
            [equiv[v] for v in self.inputs], [equiv[v] for v in self.outputs], clone=False,
            interface=self.interface.of_copies(equiv),
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

    def __str__(self):
        return f"[{', '.join(traversal.as_string(self.inputs, self.outputs))}]"

    def __repr__(self):
        return str(self)

    def __getstate__(self):
        state = self.__dict__.copy()
        state.update(_journal=None, _imported=None, _pruned=None)
        state.update(_plain_order=None, _order=None, _orderings=None, _ops=None)
        state["_callbacks"] = None
        # found again from inputs and outputs; in no order, each would be the start of a graph
        del state["apply_nodes"], state["variables"]
        every = flat.All(self.toposort())
        return {"_before": every, **state, "_after": flat.Done(every.taken)}

    def __setstate__(self, state):
        self.__dict__.update(state)
        del self._before, self._after
        self._callbacks = {
            event: [getattr(f, event) for f in self._features if hasattr(f, event)]
            for event in _EVENTS
        }
        nodes = traversal.io_toposort(self.inputs, self.outputs)
        self.apply_nodes = set(nodes)
        self.variables = set(traversal.variables(self.inputs, self.outputs)) | set(self.inputs)
        for var in self.variables:
            var.fgraph = self
            var._clients = {}
        for node in nodes:
            node.fgraph = self
            for i, var in enumerate(node.inputs):
                var._clients[(node, i)] = None
        for i, var in enumerate(self.outputs):
            var._clients[("output", i)] = None


def missing_input(node, i, outputs, created=""):
    """Return the MissingInputError for input ``i`` of an Apply, a variable that has no value.

    outputs: what was to be computed. created: where the variable was made, as text.
    """
    var = node.inputs[i]
    text = (
        f"Input {i} of the graph (indices start from 0), used to compute {node}, was not provided "
        "and not given a value."
    )
    if config.exception_verbosity == "high":
        chain = ", ".join(map(str, _chain(var, outputs)))
        text += (
            " A variable that is an input to the graph was neither provided as an input to the "
            "function nor given a value. A chain of variables leading from this input to an output "
            f"is [{chain}]. This chain may not be unique."
        )
    else:
        text += (
            " Use the Theano flag exception_verbosity='high', for more information on this error."
        )
    text += (
        f" What is missing is {var}: add it to the inputs of the function, give it a value by "
        "givens, or make it a shared variable."
    )
    trace = provenance.format_trace(node.trace)
    if trace:
        text += f"\n\nBacktrace when what reads it is created:\n\n{trace}".rstrip("\n")
    return MissingInputError(text + created, variable=var)


def _chain(var, outputs):
    """Return variables from ``var`` to one of ``outputs``, each of them read by the next."""
    nodes = traversal.io_toposort([], outputs)
    way = {var: None}  # what comes of it, and from which variable on the way
    for node in nodes:
        read = next((inp for inp in node.inputs if inp in way), None)
        if read is not None:
            for out in node.outputs:
                way.setdefault(out, read)
    found = next((out for out in outputs if out in way), var)
    chain = [found]
    while way[chain[-1]] is not None:
        chain.append(way[chain[-1]])
    return chain[::-1]
