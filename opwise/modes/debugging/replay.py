"""Replay: computes, for one call, every Apply that was in a graph at any time of its rewriting.

Applys run on copies of the graphs as they were, which later rewrites do not change, and overwrite
no value. Each replacement is checked by comparing the values of its two variables.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from opwise.errors import BadOptimization, DebugModeError
from opwise.graph import aliasing, traversal
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant, Variable
from opwise.linkers import errors as linker_errors
from opwise.linkers.base import OpWiseCLinker
from opwise.linkers.userops.python import runs_in_python
from opwise.linkers.vm import Thunk
from opwise.modes.debugging import findings
from opwise.modes.debugging.memory import MemoryCheck
from opwise.modes.debugging.perform import CheckedPerform, is_of_the_library
from opwise.modes.debugging.perturbation import Roundings
from opwise.modes.debugging.values import Agree, comparison, copied, private_copies
from opwise.optimizers.history import Replacement, RewriteHistory

#: stages, and rules of other stages, that may replace NaN or an infinity by a number: their graphs
#: do not overflow where the graph as written does
STABILIZING = frozenset(
    (
        "stabilize", "local_log_sum_exp", "crossentropy_to_crossentropy_with_softmax",
        "crossentropy_to_crossentropy_with_softmax_with_bias", "local_logsoftmax",
        "local_advanced_indexing_crossentropy_onehot", "softmax_simplifier",
    )
)  # fmt: skip
#: in the slot of a variable that could not be computed
_MISSING = object()


_thread = threading.local()


def in_replay() -> bool:
    """Return whether this thread runs an Apply of a replay.

    A replay computes a loop once for each rewrite of it, so functions inside Ops check nothing
    then: they check when the optimized graph runs.
    """
    return getattr(_thread, "replays", 0) > 0


@contextmanager
def _in_replay() -> Iterator[None]:
    _thread.replays = getattr(_thread, "replays", 0) + 1
    try:
        yield
    finally:
        _thread.replays -= 1


class Replay:
    """Computes the Applys of a RewriteHistory. Each variable has a slot for its value.

    inputs, outputs: those of the graph. in_python: run ``perform``, not C,
    unless an Op has C alone.
    """

    def __init__(
        self, history: RewriteHistory, inputs: Sequence[Variable], outputs: Sequence[Variable],
        in_python: bool = True,
    ) -> None:  # fmt: skip
        self.history = history
        self.inputs, self.outputs = inputs, outputs
        self.pairs = _pairs(history)
        needed = _needed(history, [*outputs, *(v for p in self.pairs for v in (p.old, p.new))])
        #: {variable as it came in: its copy in the graphs that run}
        self.copies = _copied_graph(history, needed)
        nodes = [node for node in history.applys if node in needed]
        c_only = [n for n in nodes if not in_python or not runs_in_python(history.applys[n][0])]
        c_thunks = _c_thunks([self._copy_of(n) for n in c_only]) if c_only else {}
        self._slots = {var: k for k, var in enumerate((*self.copies, *inputs))}
        self.runs = [Run(n, self._copy_of(n), history, c_thunks, self._slots) for n in nodes]
        for pair in self.pairs:
            pair.slots = self._slots[pair.old], self._slots[pair.new]
        self._given = [self._slots[var] for var in inputs]
        #: by slot, the values that are the same in every call
        self._fixed: list[Any] = [_MISSING] * (1 + max(self._slots.values(), default=-1))
        self.runs = self._unfixed()
        #: by slot, the values of the current call
        self._values = list(self._fixed)
        #: the first error of an Apply that the user wrote
        self.error: BaseException | None = None
        #: the first Apply that a rewrite made and that raised an error
        self.failing: Apply | None = None
        self._roundings: Roundings | None = None

    def _copy_of(self, node: Apply) -> Apply:
        copy = self.copies[node.outputs[0]].owner
        assert copy is not None
        return copy

    def _unfixed(self) -> list[Run]:
        """Compute the Applys that depend on constants only, once; return the others."""
        fixed = self._fixed
        for var, k in self._slots.items():
            if isinstance(var, Constant):
                fixed[k] = var.data
        left = []
        for run in self.runs:
            if run.pure and all(fixed[k] is not _MISSING for k in run.reads):
                try:
                    with np.errstate(all="ignore"):
                        results = run.results(fixed)
                except Exception:  # calls of the function will raise it again
                    left.append(run)
                    continue
                for k, value in zip(run.writes, results, strict=True):
                    fixed[k] = value
            else:
                left.append(run)
        return left

    def __call__(self, given: Sequence[Any]) -> None:
        """Compute all values; raise BadOptimization for the first replacement that changed one.

        given: the values of the inputs. An error of an Apply that the user wrote is kept in
        ``error``.
        """
        self.error = self.failing = self._roundings = None
        values = self._values = list(self._fixed)
        for k, value in zip(self._given, given, strict=True):
            values[k] = value
        with _in_replay():
            self._run_all(values)
        for pair in self.pairs:
            old, new = pair.slots
            expected, value = values[old], values[new]
            if expected is _MISSING or value is _MISSING or pair.agree(expected, value):
                continue
            if not self.excuses(pair.old, expected, value, pair.new):
                raise self._bad(pair, expected, value)

    def _run_all(self, values: list[Any]) -> None:
        all_known = True
        for run in self.runs:
            try:
                results = run.results(values, all_known)
            except DebugModeError:
                if run.written:  # Applys between two rewrites need not be able to run
                    raise
                all_known = False
                continue
            except Exception as error:  # a user's perform raises any class
                if run.written and self.error is None:
                    self.error = self._annotated(run, error, values)
                elif not run.written:
                    self.failing = self.failing or run.node
                all_known = False
                continue
            for k, value in zip(run.writes, results, strict=True):
                values[k] = value

    def _annotated(self, run: Run, error: Exception, values: Sequence[Any]) -> BaseException:
        order = [one.copy for one in self.runs if one.written]
        return linker_errors.annotated(error, run.copy, order, [values[k] for k in run.reads])

    def first_without_error(self) -> Pair | None:
        """Return the first replacement whose old variable failed and whose new one did not."""
        for pair in self.pairs:
            old, new = pair.slots
            if self._values[old] is _MISSING and self._values[new] is not _MISSING:
                return pair
        return None

    def value(self, var: Variable) -> Any:
        """Return the value of a variable as it came in, or None if it is unknown."""
        k = self._slots.get(var)
        value = self._values[k] if k is not None else _MISSING
        return None if value is _MISSING else value

    def values_of(self, slots: Iterable[int]) -> list[Any] | None:
        """Return the values in slots, or None if one of them is unknown."""
        values = [self._values[k] for k in slots]
        for value in values:
            if value is _MISSING:
                return None
        return values

    def forget(self) -> None:
        """Drop the values of the last call."""
        self._values = list(self._fixed)
        self.error = self.failing = self._roundings = None

    # --- replacements that differ -----------------------------------------------------------------

    def repaired(self) -> set[Variable]:
        """Return the variables that cannot be compared in this call.

        A stabilizing rewrite replaced NaN or an infinity by a number. That excludes the replaced
        variable, all variables computed from it, and those that it had replaced itself.
        """
        found: set[Variable] = set()
        for pair in self.pairs:
            expected, value = (self._values[k] for k in pair.slots)
            if expected is not _MISSING and value is not _MISSING and pair.repairs(expected, value):
                found.add(pair.old)
        size = 0
        while len(found) > size:
            size = len(found)
            found.update(pair.old for pair in self.pairs if pair.new in found)
            for run in self.runs:
                if any(v in found for v in run.inputs):
                    found.update(run.outputs)
        return found

    def excuses(self, var: Variable, expected: Any, value: Any, *also: Variable) -> bool:
        """Return whether a difference of two values of a variable is no fault.

        This is so if a stabilizing rewrite or roundings explain it. also: variables that stand for
        the same value.
        """
        if var in self.repaired():
            return True
        if self._roundings is None:
            values = {var: self._values[self._slots[var]] for var in self.inputs}
            self._roundings = Roundings(values)
        return self._roundings.explain([self.copies[v] for v in (var, *also)], expected, value)

    def _bad(self, pair: Pair, expected: Any, value: Any) -> BadOptimization:
        old, new = self.copies[pair.old], self.copies[pair.new]
        node = pair.old.owner or pair.new.owner
        details = ""
        if node is not None:
            order = [run.copy for run in self.runs if run.written]
            at = ""
            if old.owner in order:
                at = f", Apply {order.index(old.owner)} of the graph as written"
            details = f"  First Apply that differs: {old.owner or new.owner}{at}\n"
        details += _on_shapes(pair.reason, old)
        return findings.bad_optimization(
            old, new, expected, value, pair.reason, pair.stage, node, details
        )


class Run:
    """One Apply as it came in, and what computes its copy."""

    def __init__(
        self, node: Apply, clone: Apply, history: RewriteHistory, c_thunks: Mapping[Apply, Thunk],
        slots: Mapping[Variable, int],
    ) -> None:  # fmt: skip
        self.node = node
        self.copy = clone
        self.op, self.inputs = history.applys[node]
        self.outputs = node.outputs
        #: the slots of its inputs and outputs
        self.reads = [slots[var] for var in self.inputs]
        self.writes = [slots[var] for var in self.outputs]
        #: whether the user wrote it, not a rewrite
        self.written = history.made_by(node) is None
        self.python = CheckedPerform(clone)
        self.c = c_thunks.get(clone)
        # Ops of the library are checked in the optimized graph; a user's Op may not be in it
        self.memory = None if is_of_the_library(self.op) else MemoryCheck(clone)
        self.destroyed = aliasing.destroyed_inputs(clone)
        self.plain = self.memory is None and self.c is None and not self.destroyed
        #: whether equal inputs give equal outputs
        self.pure = self.memory is None and self.op.do_constant_folding(clone)

    def results(self, values: Sequence[Any], all_known: bool = False) -> list[Any]:
        """Return the outputs. values: by slot. all_known: no Apply before it has failed."""
        inputs = [values[k] for k in self.reads]
        if not all_known:
            for value in inputs:
                if value is _MISSING:
                    return [_MISSING] * len(self.outputs)
        if self.plain:
            return self.python(inputs)
        if self.c is not None:
            return self._in_c(private_copies(inputs) if self.destroyed else inputs)
        if self.memory is None:
            for i in self.destroyed:
                inputs[i] = copied(inputs[i])
            return self.python(inputs)
        private = private_copies(inputs)
        before = self.memory.snapshots(private)
        results = self.python(private)
        self.memory.check(before, private, results, "py")
        return results

    def _in_c(self, inputs: Sequence[Any]) -> list[Any]:
        assert self.c is not None
        for storage, value in zip(self.c.inputs, inputs, strict=True):
            storage[0] = value
        self.c()
        return [copied(storage[0]) for storage in self.c.outputs]


class Pair:
    """A replacement, with the comparison of its two values."""

    def __init__(self, replacement: Replacement) -> None:
        #: the slots of the old and the new variable
        self.slots = -1, -1
        self.old, self.new = replacement.old, replacement.new
        self.reason, self.stage = replacement.reason, replacement.stage
        self.agree = comparison(self.new, self.old)
        stabilizes = not STABILIZING.isdisjoint((self.reason, *self.stage.split("/")))
        #: the comparison that the tags of variables do not relax
        untagged = self.old.clone()
        untagged._tag = None
        self.strict = comparison(untagged)
        self.may_repair = stabilizes or self.new._tag is not None
        if stabilizes:
            self.agree = _allowing_repairs(self.old.type, self.agree)

    def repairs(self, expected: Any, value: Any) -> bool:
        """Return whether the values agree only because a number may replace NaN or an infinity."""
        return self.may_repair and self.agree(expected, value) and not self.strict(expected, value)


def _allowing_repairs(type_: Any, agree: Agree) -> Agree:
    """Return ``agree`` relaxed: the value may have numbers in the places of NaN and infinities."""
    if not hasattr(type_, "tolerances"):
        return agree

    def agree_or_repaired(expected: Any, value: Any) -> bool:
        return agree(expected, value) or bool(
            type_.values_eq_approx(expected, value, allow_remove_inf=True, allow_remove_nan=True)
        )

    return agree_or_repaired


def _pairs(history: RewriteHistory) -> list[Pair]:
    """Return the replacements, each pair of variables once."""
    seen: dict[tuple[Variable, Variable], Replacement] = {}
    for one in history.replacements:
        seen.setdefault((one.old, one.new), one)
    return [Pair(one) for one in seen.values()]


def _needed(history: RewriteHistory, variables: Iterable[Variable]) -> set[Apply]:
    """Return the Applys that compute ``variables``, with their inputs as they came in."""
    needed: set[Apply] = set()
    stack = [v.owner for v in variables]
    while stack:
        node = stack.pop()
        if node is not None and node in history.applys and node not in needed:
            needed.add(node)
            stack.extend(v.owner for v in history.applys[node][1])
    return needed


def _copied_graph(history: RewriteHistory, needed: set[Apply]) -> dict[Variable, Variable]:
    """Return {variable: copy} for the needed Applys; inputs and constants are not copied."""
    copies: dict[Variable, Variable] = {}
    for node, (op, inputs) in history.applys.items():
        if node not in needed:
            continue
        clone = node.clone()
        clone.op = op
        clone._origins = node.origins
        clone.inputs = [copies.setdefault(v, v) for v in inputs]
        copies.update(zip(node.outputs, clone.outputs, strict=True))
    for one in history.replacements:
        for var in (one.old, one.new):
            copies.setdefault(var, var)
    return copies


def _c_thunks(nodes: Iterable[Apply]) -> dict[Apply, Thunk]:
    """Return the C thunks of the Applys that have one, each with storages of its own."""
    inputs: list[Variable] = []
    outputs: list[Variable] = []
    of_clone: dict[Apply, Apply] = {}
    for node in nodes:
        fresh = [var.clone() for var in node.inputs]
        clone = node.clone_with_new_inputs(fresh)
        of_clone[clone] = node
        inputs += fresh
        outputs += clone.outputs
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    thunks = OpWiseCLinker().clone(vm="plain").accept(fgraph).link().thunks or ()
    return {of_clone[t.node]: t for t in thunks if hasattr(t, "cthunk")}


def _on_shapes(reason: str, old: Variable) -> str:
    """Return a hint on users' ``infer_shape`` methods, '' if the rewrite uses none."""
    if "shape" not in reason.lower():
        return ""
    ops = {
        type(v.owner.op).__name__
        for v in traversal.ancestors([old])
        if v.owner is not None and not is_of_the_library(v.owner.op)
        and hasattr(v.owner.op, "infer_shape")
    }  # fmt: skip
    if not ops:
        return ""
    return f"  The rewrite relies on infer_shape: check infer_shape of {', '.join(sorted(ops))}\n"
