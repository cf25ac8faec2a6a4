"""Passes that apply rules: once to each Apply, or until no rule changes the graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

from opwise.config import config
from opwise.errors import BadOptimization, InconsistencyError
from opwise.graph.apply import Apply
from opwise.graph.features import Feature
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Var, Variable
from opwise.optimizers.passes import (
    Optimizer,
    PassRecord,
    RuleRecord,
    failed,
    log,
    run_pass,
)
from opwise.optimizers.rule import (
    LocalOptGroup,
    LocalOptimizer,
    Replacements,
    Rule,
    RuleIndex,
    is_empty,
)

#: a rule is tried again on an Apply if an Apply up to this many levels below has changed
REACH = 3
#: a rule that was applied more often than this, and than a part of max_use_ratio for each Apply of
#: the graph, goes on from the outputs to the inputs
EARLY, EARLY_PART = 100, 0.125


# --- putting a rule's result into the graph -------------------------------------------------------


def replacements(
    rule: object, node: Apply, result: Any
) -> tuple[list[tuple[Variable, Variable]], Sequence[Apply]]:
    """Return (pairs of a variable and its replacement, Applys to remove) from a rule's result.

    Pairs that change nothing are left out. Raises TypeError, ValueError or BadOptimization if the
    result is invalid, see ``rule``.
    """
    remove = ()
    if is_empty(result):
        return [], remove
    if isinstance(result, dict):
        found = list(result.items())
        if "remove" in result:
            remove = result["remove"]
            found = [(old, new) for old, new in found if not isinstance(old, str)]
    elif isinstance(result, list | tuple):
        if len(result) != len(node.outputs):
            raise ValueError(
                f"The rule {rule} returned {len(result)} replacements for the {len(node.outputs)} "
                f"outputs of {node}"
            )
        found = list(zip(node.outputs, result, strict=True))
    else:
        raise TypeError(
            f"The rule {rule} returned {result!r} for {node}: expected a list with a replacement "
            "for each output, a dict, or None"
        )
    pairs = []
    for old, new in found:
        if new is None or new is old:
            continue
        if not isinstance(new, Variable):
            raise TypeError(
                f"The rule {rule} returned {new!r} as the replacement of {old}: a rule must return "
                "a list with a variable for each output, or False"
            )
        if new.type is not old.type and new.type != old.type:
            converted = old.type.convert_variable(new)
            if converted is None or converted.type != old.type:
                raise BadOptimization(
                    f"The rule {rule} replaced {old}, which has type {old.type}, by {new}, which "
                    f"has type {new.type}. The type of the replacement must be the same."
                )
            new = converted
        pairs.append((old, new))
    return pairs, remove


def apply_result(
    fgraph: FunctionGraph,
    node: Apply,
    rule: object,
    result: Any,
    navigator: NavigatorOptimizer | None = None,
) -> bool:
    """Apply a rule's result to the graph; return whether that changed it.

    A result that breaks the graph is undone. navigator: the pass that handles failures.
    """
    pairs: Sequence[tuple[Variable, Variable]] = ()
    try:
        pairs, remove = replacements(rule, node, result)
        if not pairs:
            return False
        if remove:
            fgraph.replace_all_validate_remove(pairs, remove, reason=rule)
        else:
            fgraph.replace_all_validate(pairs, reason=rule)
    except InconsistencyError as error:
        # an invalid replacement, for example one that works in place, is declined silently
        if navigator is not None and navigator.failure_callback is not None:
            navigator.report(error, rule, node, pairs)
        return False
    except Exception as error:  # a rule or a Type may raise anything; the graph is as it was
        if navigator is not None:
            navigator.report(error, rule, node, pairs)
        else:
            failed(str(rule), error, node)
        return False
    if config.optimizer_verbose:
        for old, new in pairs:
            print(rule, old, new)
    return True


# --- what is to be looked at next -----------------------------------------------------------------


class _Watcher(Feature):
    """Records the Applys that changes import, prune and touch."""

    def __init__(self) -> None:
        self.imported: list[Any] = []
        self.pruned: list[Any] = []
        self.changed: list[Any] = []

    def on_import(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.imported.append(node)

    def on_prune(self, fgraph: FunctionGraph, node: Apply, reason: Any) -> None:
        self.pruned.append(node)

    def on_change_input(
        self,
        fgraph: FunctionGraph,
        node: Any,
        i: int,
        old: Variable,
        new: Variable,
        reason: Any = None,
    ) -> None:
        self.changed.append((node, old))

    def forget(self) -> None:
        self.imported.clear()
        self.pruned.clear()
        self.changed.clear()


class _WorkList:
    """The Applys on which rules are still to be tried, each at most once, in a fixed order."""

    def __init__(self, fgraph: FunctionGraph, order: Sequence[Apply]) -> None:
        self.fgraph = fgraph
        self.queue = deque(order)
        self.pending = set(order)
        self.watcher = _Watcher()
        fgraph.attach_feature(self.watcher)

    def close(self) -> None:
        self.fgraph.remove_feature(self.watcher)

    def take_changes(self, node: Apply | None = None) -> int:
        """Queue the Applys that the last change affects; return how many it imported.

        Imported Applys and readers of the replaced variables come first in the queue. Applys
        further above, those that lost a reader, and the only reader that is left, come last.
        """
        fgraph, pending, watcher = self.fgraph, self.pending, self.watcher
        new = [n for n in watcher.imported if n.fgraph is fgraph]
        touched = dict.fromkeys(new)
        lost_a_reader: dict[Apply, None] = {}
        if node is not None and node.fgraph is fgraph:
            touched[node] = None
        for reader, old in watcher.changed:
            if reader != "output" and reader.fgraph is fgraph:
                touched[reader] = None
            _note_lost(old, lost_a_reader)
        for gone in watcher.pruned:
            for var in gone.inputs:
                _note_lost(var, lost_a_reader)
        watcher.forget()
        first = [n for n in touched if n not in pending]
        pending.update(first)
        self.queue.extendleft(reversed(first))
        self._append(_above(touched))
        self._append(lost_a_reader)
        return len(new)

    def _append(self, nodes: Iterable[Apply]) -> None:
        for node in nodes:
            if node.fgraph is self.fgraph and node not in self.pending:
                self.pending.add(node)
                self.queue.append(node)


def _note_lost(var: Var, lost_a_reader: dict[Any, Any]) -> None:
    """Add the Apply that computes a variable, and its reader if only one is left."""
    if var.owner is None:
        return
    lost_a_reader[var.owner] = None
    if var._clients and len(var._clients) == 1:
        ((reader, _),) = var._clients
        if reader != "output":
            lost_a_reader[reader] = None


def _above(nodes: Iterable[Apply]) -> dict[Any, Any]:
    """Return the Applys that depend on ``nodes`` over less than REACH levels."""
    found: dict[Apply, None] = {}
    level = list(nodes)
    for _ in range(REACH - 1):
        following = []
        for node in level:
            for out in node.outputs:
                for reader, _i in out._clients:
                    if reader != "output" and reader not in found:
                        found[reader] = None
                        following.append(reader)
        level = following
    return found


class NavigatorOptimizer(Optimizer):
    """Base of the passes that apply rules; the static methods are legacy failure callbacks."""

    def __init__(
        self,
        local_opt: Any,
        ignore_newtrees: bool = False,
        failure_callback: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        self.local_opt = local_opt
        self.ignore_newtrees = ignore_newtrees
        self.failure_callback = failure_callback
        self.name = name or getattr(local_opt, "name", None)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        self.local_opt.add_requirements(fgraph)

    def parts(self) -> tuple[LocalOptGroup | Rule, ...]:
        return (self.local_opt,)

    @staticmethod
    def warn(exc: Exception, nav: Any, repl_pairs: Any, local_opt: Any, node: Apply) -> None:
        """Do as config.on_opt_error says."""
        failed(str(local_opt), exc, node)

    @staticmethod
    def warn_inplace(
        exc: Exception, nav: Any, repl_pairs: Any, local_opt: Any, node: Apply | None
    ) -> None:
        """Ignore replacements that break the graph; otherwise do as config.on_opt_error says."""
        if not isinstance(exc, InconsistencyError):
            failed(str(local_opt), exc, node)

    @staticmethod
    def warn_ignore(exc: Exception, nav: Any, repl_pairs: Any, local_opt: Any, node: Apply) -> None:
        """Ignore the exception."""

    def report(self, error: Exception, rule: Any, node: Apply, pairs: Sequence[Any] = ()) -> None:
        """React to an exception in a rule."""
        if self.failure_callback is not None:
            self.failure_callback(error, self, pairs, rule, node)
        else:
            failed(str(rule), error, node)


class TopoOptimizer(NavigatorOptimizer):
    """Tries one rule on every Apply once, in topological order.

    order: 'in_to_out' or 'out_to_in'. ignore_newtrees: whether to skip the Applys that the rule
    makes. failure_callback: function of an exception, this pass, the pairs to replace, the rule and
    the Apply.
    """

    def __init__(
        self,
        local_opt: Any,
        order: str = "in_to_out",
        ignore_newtrees: bool = False,
        failure_callback: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        if order not in ("in_to_out", "out_to_in"):
            raise ValueError(f"order must be 'in_to_out' or 'out_to_in', not {order!r}")
        super().__init__(local_opt, ignore_newtrees, failure_callback, name)
        self.order = order
        self._rules = local_opt.opts if isinstance(local_opt, LocalOptGroup) else [local_opt]
        self._index = RuleIndex(self._rules)

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not self._rules:
            return None
        index = self._index
        queue = deque(index.lookers(fgraph))
        run = _TopoRun(self, fgraph)
        take = queue.popleft if self.order == "in_to_out" else queue.pop
        try:
            while queue:
                node = take()
                if node.fgraph is not fgraph:
                    continue
                new = run.look_at(node)
                if not self.ignore_newtrees:
                    queue.extend(n for n in new if index.of(n.op).calls)
        finally:
            run.close()
        return run.result()


class OpKeyOptimizer(TopoOptimizer):
    """Tries one rule on the Applys of the Ops that its ``op_key()`` returns, the outputs first.

    ``op_key`` returns an Op or a list of Ops; what the rule tracks does not count. The other
    parameters are those of TopoOptimizer. Raises TypeError if the rule has no ``op_key``.
    """

    def __init__(
        self,
        local_opt: Any,
        ignore_newtrees: bool = False,
        failure_callback: Callable[..., Any] | None = None,
    ) -> None:
        if not hasattr(local_opt, "op_key"):
            raise TypeError(
                "LocalOptimizer for OpKeyOptimizer must have an 'op_key' method, which "
                f"{local_opt} lacks: define it to return an Op, or use TopoOptimizer"
            )
        super().__init__(local_opt, "out_to_in", ignore_newtrees, failure_callback)
        key = local_opt.op_key()
        self._index = RuleIndex(self._rules, key if isinstance(key, list | tuple) else [key])


class _TopoRun:
    """One application of a TopoOptimizer: what it tries on an Apply, and the counts."""

    def __init__(self, optimizer: TopoOptimizer, fgraph: FunctionGraph) -> None:
        self.optimizer = optimizer
        self.fgraph = fgraph
        self.watcher = _Watcher()
        self.records = {rule: RuleRecord(str(rule)) for rule in optimizer._rules}
        self.stopped: dict[Any, Any] = {}
        self.limit = config.optdb.max_use_ratio * max(len(fgraph.apply_nodes), 1)
        self.started = perf_counter()
        fgraph.attach_feature(self.watcher)

    def close(self) -> None:
        self.fgraph.remove_feature(self.watcher)

    def look_at(self, node: Apply) -> list[Apply]:
        """Try rules on an Apply until one changes the graph; return the imported Applys."""
        fgraph, optimizer = self.fgraph, self.optimizer
        for rule, call in optimizer._index.of(node.op).calls:
            record = self.records[rule]
            record.tried += 1
            try:
                result = call(fgraph, node)
            except Exception as error:  # a rule may raise anything; the graph is as it was
                optimizer.report(error, rule, node)
                continue
            if result is None or result is False or rule in self.stopped:
                continue
            self.watcher.forget()
            if apply_result(fgraph, node, rule, result, optimizer):
                new = [n for n in self.watcher.imported if n.fgraph is fgraph]
                record.applied += 1
                record.created += len(new)
                if record.applied > self.limit:
                    self.stopped[rule] = None
                return new
        return []

    def result(self) -> PassRecord:
        """Return the record, and warn of rules that were stopped."""
        if self.stopped:
            _warn_of_loop(self.optimizer, list(map(str, self.stopped)))
        records = list(self.records.values())
        if config.profile_optimizer and len(records) == 1:
            records[0].seconds = perf_counter() - self.started
        return PassRecord(rules=records)


def in2out(*local_opts: LocalOptimizer, name: str | None = None, **options: Any) -> TopoOptimizer:
    """Return a pass that tries rules on every Apply once, from the inputs to the outputs."""
    rule = local_opts[0] if len(local_opts) == 1 else LocalOptGroup(*local_opts)
    return TopoOptimizer(rule, "in_to_out", name=name, **options)


def out2in(*local_opts: LocalOptimizer, name: str | None = None, **options: Any) -> TopoOptimizer:
    """Return a pass that tries rules on every Apply once, from the outputs to the inputs."""
    rule = local_opts[0] if len(local_opts) == 1 else LocalOptGroup(*local_opts)
    return TopoOptimizer(rule, "out_to_in", name=name, **options)


def _warn_of_loop(what: EquilibriumOptimizer | TopoOptimizer, names: Sequence[str]) -> None:
    log(
        "warning",
        "%s stopped using %s: applied more than %s times per Apply of the graph, so perhaps "
        "without end. The graph is right all the same. Exclude it, or raise the flag "
        "optdb.max_use_ratio.",
        what,
        ", ".join(names),
        config.optdb.max_use_ratio,
    )


class EquilibriumOptimizer(NavigatorOptimizer):
    """Applies rules, from the inputs to the outputs, until none of them changes the graph.

    Rules are tried on each Apply once, and again after changes near it, so that the cost is linear
    in the size of the graph and the number of changes. A rule that is applied often waits until the
    others are done, and is then tried on the Applys near the outputs first: the parts and the
    transposes of a long chain merge where they meet, instead of each passing the whole chain.
    optimizers: rules and passes; the passes run when the rules are done, which continue where a
    pass changed the graph. final_optimizers, cleanup_optimizers: passes that run after those.
    max_use_ratio: (default: config.optdb.max_use_ratio).
    """

    #: passes that still change the graph after this many rounds are stopped
    MAX_ROUNDS = 50

    def __init__(
        self,
        optimizers: Sequence[Any],
        failure_callback: Callable[..., Any] | None = None,
        ignore_newtrees: bool = True,
        tracks_on_change_inputs: bool = False,
        max_use_ratio: float | None = None,
        final_optimizers: Sequence[Optimizer] | None = None,
        cleanup_optimizers: Sequence[Optimizer] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(None, ignore_newtrees, failure_callback, name)
        optimizers = list(optimizers)
        self.rules = [o for o in optimizers if not isinstance(o, Optimizer)]
        self.global_optimizers = [o for o in optimizers if isinstance(o, Optimizer)]
        self.final_optimizers = list(final_optimizers or ())
        self.cleanup_optimizers = list(cleanup_optimizers or ())
        self.max_use_ratio = max_use_ratio
        self._passes = self.global_optimizers + self.final_optimizers + self.cleanup_optimizers
        self._index = RuleIndex(self.rules)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for one in self.rules + self._passes:
            one.add_requirements(fgraph)

    def parts(self) -> tuple[Any, ...]:
        return (*self.rules, *self._passes)

    def apply(self, fgraph: FunctionGraph) -> Any:
        if not self.rules and not self._passes:
            return None
        run = _EquilibriumRun(self, fgraph)
        try:
            run.rules()
            run.passes()
            while run.work.queue:
                run.rules()
                run.passes()
        finally:
            run.work.close()
        return run.result()


class _EquilibriumRun:
    """One application of an EquilibriumOptimizer: the work list and the counts."""

    def __init__(self, optimizer: EquilibriumOptimizer, fgraph: FunctionGraph) -> None:
        self.optimizer = optimizer
        self.fgraph = fgraph
        self.work = _WorkList(fgraph, optimizer._index.lookers(fgraph))
        self.timed = config.profile_optimizer
        self.records: dict[Any, Any] = {}
        self.stopped: dict[Any, Any] = {}
        #: rules that wait, and the Applys that they wait for, the next one last
        self.waiting: dict[Any, Any] = {}
        self.waited: dict[Any, Any] = {}
        self.rounds = 0
        self.record = PassRecord()
        ratio = optimizer.max_use_ratio
        self.ratio = config.optdb.max_use_ratio if ratio is None else ratio
        self.most_nodes = len(fgraph.apply_nodes)
        for entry in optimizer._index.values():
            entry.visits = 0

    def rules(self) -> None:
        """Try rules until the work list is empty."""
        fgraph, optimizer, timed = self.fgraph, self.optimizer, self.timed
        queue, pending, index = self.work.queue, self.work.pending, optimizer._index
        known = index.by_id
        waiting, waited = self.waiting, self.waited
        started = 0.0
        while queue or waited:
            in_turn = bool(queue)
            if in_turn:
                node = queue.popleft()
                pending.discard(node)
            else:
                node, _ = waited.popitem()
            if node.fgraph is not fgraph:
                continue
            entry = known.get(id(node.op)) or index.of(node.op)
            entry.visits += 1
            for rule, call in entry.calls:
                if in_turn and rule in waiting:
                    waited[node] = None  # one that waits already keeps its place
                    continue
                if timed:
                    started = perf_counter()
                try:
                    result = call(fgraph, node)
                except Exception as error:  # a rule may raise anything; the graph is as it was
                    optimizer.report(error, rule, node)
                    continue
                finally:
                    if timed:
                        self._record_of(rule).seconds += perf_counter() - started
                if result is None or result is False:
                    continue
                if self._apply(node, rule, result):
                    break

    def _apply(self, node: Apply, rule: Any, result: Replacements) -> bool:
        optimizer = self.optimizer
        if rule in self.stopped:
            return False
        if not apply_result(self.fgraph, node, rule, result, optimizer):
            self.work.watcher.forget()
            return False
        record = self._record_of(rule)
        record.applied += 1
        record.created += self.work.take_changes(node)
        self.most_nodes = max(self.most_nodes, len(self.fgraph.apply_nodes))
        limit = self.ratio * self.most_nodes
        if record.applied > limit:
            self.stopped[rule] = None
        elif record.applied > max(EARLY, EARLY_PART * limit):
            self.waiting[rule] = None
        return True

    def passes(self) -> None:
        """Run the passes, until one of them leaves work for the rules."""
        self.rounds += 1
        optimizer = self.optimizer
        if self.rounds > optimizer.MAX_ROUNDS:
            _warn_of_loop(optimizer, list(map(str, optimizer._passes)))
            return
        final = optimizer.final_optimizers + optimizer.cleanup_optimizers
        for group in (optimizer.global_optimizers, final):
            for one in group:
                record = run_pass(self.fgraph, one, index=self.rounds - 1)
                self.record.passes.append(record)
                if record.failed:
                    self.work.watcher.forget()
            self.work.take_changes()
            if self.work.queue:
                return

    def _record_of(self, rule: Any) -> RuleRecord:
        record = self.records.get(rule)
        if record is None:
            record = self.records[rule] = RuleRecord(str(rule))
        return record

    def result(self) -> PassRecord:
        """Return the record, and warn of rules that were stopped."""
        if self.stopped:
            _warn_of_loop(self.optimizer, list(map(str, self.stopped)))
        if self.timed:
            for entry in self.optimizer._index.values():
                for rule, _ in entry.calls:
                    self._record_of(rule).tried += entry.visits
        self.record.rules = list(self.records.values())
        self.record.counts = {"rounds": self.rounds, "most_nodes": self.most_nodes}
        return self.record
