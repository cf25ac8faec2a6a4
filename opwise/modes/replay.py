"""Replay: on the values of a call, everything that ever was in a graph while it was rewritten.

The graphs as they were are copies, so that later rewrites do not show in them; nothing is
overwritten when they run. Each replacement is judged by the two values that it stands between.
"""

from __future__ import annotations

import numpy as np

from opwise.errors import DebugModeError
from opwise.graph import aliasing, traversal
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.variable import Constant
from opwise.linkers import errors as linker_errors
from opwise.linkers.base import OpWiseCLinker
from opwise.modes import debugreports
from opwise.modes.debugchecks import (
    Memory,
    Python,
    comparison,
    copied,
    is_of_the_library,
    private_copies,
)
from opwise.modes.perturbation import Doubts

#: stages, and rules of other stages, that may make a number of NaN or an infinity: what they bring
#: does not overflow where what was written does
STABILIZING = frozenset(
    (
        "stabilize", "local_log_sum_exp", "crossentropy_to_crossentropy_with_softmax",
        "crossentropy_to_crossentropy_with_softmax_with_bias", "local_logsoftmax",
        "local_advanced_indexing_crossentropy_onehot", "softmax_simplifier",
    )
)  # fmt: skip
_MISSING = object()


class Replay:
    """Runs a RewriteHistory; each variable has a slot for its value.

    inputs, outputs: those of the graph.

    in_python: run ``perform``; otherwise C where there is C.
    """

    def __init__(self, history, inputs, outputs, in_python=True):
        self.history = history
        self.inputs = inputs
        self.pairs = _pairs(history)
        needed = _needed(history, [*outputs, *(v for p in self.pairs for v in (p.old, p.new))])
        self.copies = _copied_graph(history, needed)
        nodes = [node for node in history.applys if node in needed]
        c_thunks = {} if in_python else _c_thunks([self._copy_of(n) for n in nodes])
        self._slots = {var: k for k, var in enumerate((*self.copies, *inputs))}
        self.runs = [_Run(n, self._copy_of(n), history, c_thunks, self._slots) for n in nodes]
        for pair in self.pairs:
            pair.slots = self._slots[pair.old], self._slots[pair.new]
        self._given = [self._slots[var] for var in inputs]
        #: the values that are the same in every call, by slot
        self._fixed = [_MISSING] * (1 + max(self._slots.values(), default=-1))
        self.runs = self._unfixed()
        self._values = list(self._fixed)
        self.error = self._doubts = None

    def _copy_of(self, node):
        return self.copies[node.outputs[0]].owner

    def _unfixed(self):
        """Keep the values of constants and of what they make; return the other Applys."""
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
                except Exception:  # whatever perform raises is raised when the function is called
                    left.append(run)
                    continue
                for k, value in zip(run.writes, results, strict=True):
                    fixed[k] = value
            else:
                left.append(run)
        return left

    def __call__(self, given):
        """Run on values of the inputs; raise BadOptimization for the first wrong replacement.

        What is raised by an Apply that the user wrote is kept in ``error``.
        """
        self.error = self._doubts = None
        values = self._values = list(self._fixed)
        for k, value in zip(self._given, given, strict=True):
            values[k] = value
        whole = True
        for run in self.runs:
            try:
                results = run.results(values, whole)
            except DebugModeError:
                if run.written:  # what rewrites went through need not be able to run
                    raise
                whole = False
                continue
            except Exception as error:  # of any class: a user's perform
                if run.written and self.error is None:
                    self.error = self._annotated(run, error, values)
                whole = False
                continue
            for k, value in zip(run.writes, results, strict=True):
                values[k] = value
        for pair in self.pairs:
            old, new = pair.slots
            expected, value = values[old], values[new]
            if expected is _MISSING or value is _MISSING or pair.agree(expected, value):
                continue
            if not self.excuses(pair.old, expected, value, pair.new):
                raise self._bad(pair, expected, value)

    def _annotated(self, run, error, values):
        order = [one.copy for one in self.runs if one.written]
        return linker_errors.annotated(error, run.copy, order, [values[k] for k in run.reads])

    def first_without_error(self):
        """Return the replacement that dropped an Apply which failed, or None if none is to blame.

        Its old variable could not be computed; the new one could.
        """
        for pair in self.pairs:
            old, new = pair.slots
            if self._values[old] is _MISSING and self._values[new] is not _MISSING:
                return pair
        return None

    def value(self, var):
        """Return the value of a variable as it came in, or None if it is not known."""
        k = self._slots.get(var)
        value = self._values[k] if k is not None else _MISSING
        return None if value is _MISSING else value

    def values_of(self, slots):
        """Return the values in slots as a list, or None if one is not known."""
        values = [self._values[k] for k in slots]
        for value in values:
            if value is _MISSING:
                return None
        return values

    def forget(self):
        """Drop the values of the last call."""
        self._values = list(self._fixed)
        self.error = self._doubts = None

    # --- replacements that differ -----------------------------------------------------------------

    def repaired(self):
        """Return the variables whose values say nothing in this call.

        What a stabilizing rewrite replaced was NaN or infinite and no longer is; the same holds
        of whatever was computed of it, and of what it had replaced itself.
        """
        found = set()
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

    def excuses(self, var, expected, value, *also):
        """Return whether two values of a variable may differ, though nothing is wrong.

        also: variables that stand for the same value. They may where the value says nothing, and
        where roundings explain it.
        """
        if var in self.repaired():
            return True
        if self._doubts is None:
            self._doubts = Doubts({var: self._values[self._slots[var]] for var in self.inputs})
        return self._doubts.explain([self.copies[v] for v in (var, *also)], expected, value)

    def _bad(self, pair, expected, value):
        old, new = self.copies[pair.old], self.copies[pair.new]
        node = pair.old.owner or pair.new.owner
        story = ""
        if node is not None:
            order = [run.copy for run in self.runs if run.written]
            at = f", Apply {order.index(old.owner)} as written" if old.owner in order else ""
            story = f"  First Apply that differs: {old.owner or new.owner}{at}\n"
        story += _on_shapes(pair.reason, old)
        return debugreports.bad_optimization(
            old, new, expected, value, pair.reason, pair.stage, node, story
        )


class _Run:
    """One Apply as it came in: what computes it, of which variables."""

    def __init__(self, node, clone, history, c_thunks, slots):
        self.node = node
        self.copy = clone
        self.op, self.inputs = history.applys[node]
        self.outputs = node.outputs
        self.reads = [slots[var] for var in self.inputs]
        self.writes = [slots[var] for var in self.outputs]
        self.written = history.made_by(node) is None
        self.python = Python(clone)
        self.c = c_thunks.get(clone)
        # Ops of the library are checked where the optimized graph runs; a user's Op need not
        # have come so far
        self.memory = None if is_of_the_library(self.op) else Memory(clone)
        self.destroyed = aliasing.destroyed_inputs(clone)
        self.plain = self.memory is None and self.c is None and not self.destroyed
        self.pure = self.memory is None and self.op.do_constant_folding(clone)

    def results(self, values, whole=False):
        """Return the outputs, of values by slot; whole: no Apply before it has failed."""
        inputs = [values[k] for k in self.reads]
        if not whole:
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

    def _in_c(self, inputs):
        for storage, value in zip(self.c.inputs, inputs, strict=True):
            storage[0] = value
        self.c()
        return [copied(storage[0]) for storage in self.c.outputs]


class _Pair:
    """A replacement, with the comparison of its values."""

    def __init__(self, replacement):
        self.old, self.new = replacement.old, replacement.new
        self.reason, self.stage = replacement.reason, replacement.stage
        self.agree = comparison(self.new, self.old)
        stabilizes = not STABILIZING.isdisjoint((self.reason, *self.stage.split("/")))
        self.strict = comparison(_Untagged(self.old))
        self.may_repair = stabilizes or self.new._tag is not None
        if stabilizes:
            self.agree = _removing(self.old.type, self.agree)

    def repairs(self, expected, value):
        """Return whether values agree only because a number may stand for NaN or an infinity."""
        return self.may_repair and self.agree(expected, value) and not self.strict(expected, value)


class _Untagged:
    """A variable without what its tag says of comparisons."""

    _tag = None

    def __init__(self, variable):
        self.type = variable.type


def _removing(type_, agree):
    """Return ``agree``, where the value may hold numbers in the place of NaN and infinities."""
    if not hasattr(type_, "tolerances"):
        return agree

    def agree_or_removed(expected, value):
        return agree(expected, value) or type_.values_eq_approx(
            expected, value, allow_remove_inf=True, allow_remove_nan=True
        )

    return agree_or_removed


def _pairs(history):
    """Return the replacements, each once."""
    seen = {}
    for one in history.replacements:
        seen.setdefault((one.old, one.new), one)
    return [_Pair(one) for one in seen.values()]


def _needed(history, variables):
    """Return the Applys that ``variables`` are computed by, as they came in."""
    needed = set()
    stack = [v.owner for v in variables]
    while stack:
        node = stack.pop()
        if node is not None and node in history.applys and node not in needed:
            needed.add(node)
            stack.extend(v.owner for v in history.applys[node][1])
    return needed


def _copied_graph(history, needed):
    """Return {variable: copy} of graphs as they were; inputs and constants stand for themselves."""
    copies = {}
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


def _c_thunks(nodes):
    """Return {Apply: C thunk} of those that have C, each in storages of its own."""
    inputs, outputs, of_clone = [], [], {}
    for node in nodes:
        fresh = [var.clone() for var in node.inputs]
        clone = node.clone_with_new_inputs(fresh)
        of_clone[clone] = node
        inputs += fresh
        outputs += clone.outputs
    fgraph = FunctionGraph(inputs, outputs, clone=False)
    thunks = OpWiseCLinker().clone(vm="plain").accept(fgraph).link().thunks
    return {of_clone[t.node]: t for t in thunks if hasattr(t, "cthunk")}


def _on_shapes(reason, old):
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
    return f"  The rewrite believes infer_shape: look at that of {', '.join(sorted(ops))}\n"
