"""``check``: a graph runs every way that opwise can run it, and all results are compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from opwise.compile.construct import construct
from opwise.compile.executable import Function
from opwise.compile.function import function
from opwise.config import change_flags
from opwise.graph import provenance
from opwise.graph.traversal import io_toposort
from opwise.modes.debugging.perturbation import Perturbed, beyond
from opwise.testing.ways import REFERENCE, WAYS, mode_of
from opwise.tuning import difference
from opwise.tuning.candidate import Candidate
from opwise.tuning.copies import copied


class CheckFailed(AssertionError):
    """Some way to run a graph gives other results than the plain one."""


@dataclass(frozen=True)
class Divergence:
    """The first Apply of the user from which a way goes wrong, computed as a graph of its own.

    apply: its text. key: as profiles have it. line: 'file:line', '' where it is not known.
    how: what differs there. None in ``Result.first`` where every Apply alone is right.
    """

    apply: str
    key: str
    line: str
    how: str


@dataclass(frozen=True)
class Result:
    """One output under one way.

    ulp, relative: the largest difference, see ``tuning.difference``. allowed: the largest that
    roundings explain, relative to the largest magnitude. how: what is wrong, None for nothing.
    """

    way: str
    output: str
    ulp: float
    relative: float
    allowed: float
    how: str | None = None
    first: Divergence | None = None


@dataclass
class Report:
    """What ``check`` found: a Result for each output and way; ``depth`` of the graph in Applys."""

    results: list[Result] = field(default_factory=list)
    depth: int = 0

    @property
    def ok(self):
        """Whether every way gives the results of the plain one."""
        return not self.bad

    @property
    def bad(self):
        """The Results that roundings do not explain."""
        return [result for result in self.results if result.how is not None]

    def raise_if_bad(self):
        """Raise CheckFailed, with this report as text, if some result is bad; return self."""
        if self.bad:
            raise CheckFailed(str(self))
        return self

    def __str__(self):
        width = max([len(r.way) for r in self.results] + [4])
        wide = max([len(r.output) for r in self.results] + [6])
        lines = [
            f"Results against {REFERENCE!r}; the graph is {self.depth} Applys deep",
            f"  {'way':{width}}  {'output':{wide}}  {'ulp':>10}  {'relative':>9}  {'allowed':>9}",
        ]
        for r in self.results:
            lines.append(
                f"  {r.way:{width}}  {r.output:{wide}}  {_count(r.ulp):>10}  {r.relative:>9.2g}  "
                f"{r.allowed:>9.2g}  {'ok' if r.how is None else 'BAD'}"
            )
        for r in self.bad:
            lines += ["", f"{r.way}, {r.output}: {r.how}"]
            if r.first is not None:
                lines.append(f"  first wrong Apply: {r.first.apply}  (key {r.first.key})")
                if r.first.line:
                    lines.append(f"  made in {r.first.line}")
                lines.append(f"  there: {r.first.how}")
        lines.append("all ways agree" if self.ok else f"{len(self.bad)} results are bad")
        return "\n".join(lines)


def check(f_or_graph, inputs=(), ways=None, updates=None, givens=None, find_first=True):
    """Run a graph every way, on the same arguments, and return a Report.

    f_or_graph: a compiled function, of which copies are run that share no state with it, or
    (inputs, outputs) as ``function`` takes them, with ``updates`` and ``givens``. inputs: the
    arguments of the call, which are left as they are. ways: names out of ``WAYS``; all unless told.
    find_first: whether the first wrong Apply of the user is looked for, where a result is bad.

    Compared are outputs, then new values of shared variables, with what ``perform`` of every Apply
    as the user wrote it gives. Shape, dtype and the places of NaN and infinities must be the same.
    A float may be off by the larger of two: 4 eps of its dtype for each Apply on the longest way
    to it, relative to the largest magnitude of the array; and what roundings by 2 ulp in each Apply
    can do to it (``perturbation.Perturbed.allowed``), which is more where numbers cancel out.
    Integers and bools must be equal, unless such roundings change them too.
    """
    ways = list(WAYS if ways is None else ways)
    for way in ways:
        mode_of(way)
    if isinstance(f_or_graph, Function):
        f = f_or_graph
    else:
        ins, outs = f_or_graph
        with change_flags(compute_test_value="off"):
            f = function(ins, outs, mode=mode_of(REFERENCE), updates=updates, givens=givens,
                         on_unused_input="ignore")  # fmt: skip
    graph = _Written(f, inputs)
    report = Report(depth=max(graph.depths, default=0))
    for way in ways:
        found = _results(f, way, inputs)
        for k, result in enumerate(_compared(graph, way, found)):
            if result.how is not None and find_first and k not in graph.unreachable:
                first = graph.first_wrong(k, way)
                result = Result(**{**vars(result), "first": first})
            report.results.append(result)
    return report


def _results(f, way, args):
    """Return the results of a call, then the new values of shared variables; or an exception."""
    try:
        with change_flags(on_opt_error="raise", compute_test_value="off"):
            candidate = Candidate(copied(f, mode_of(way)), tuple(args), {})
            return candidate.results()
    except Exception as error:  # whatever a way raises is its result: the report tells of it
        return error


def _compared(graph, way, found):
    """Yield the Result of each output under a way."""
    for k, name in enumerate(graph.names):
        expected, allowed = graph.expected(k)
        if isinstance(found, Exception):
            how = f"raises {type(found).__name__}: {found}"
            yield Result(way, name, math.inf, math.inf, 0.0, how)
            continue
        apart = difference.of(expected, found[k])
        how = beyond(expected, found[k], allowed)
        yield Result(way, name, apart.ulp, apart.relative, _relative(allowed, expected), how)


def _relative(allowed, expected):
    """Return the largest finite allowance, relative to the largest finite magnitude."""
    if not isinstance(expected, np.ndarray | np.generic) or not np.size(expected):
        return 0.0
    size = np.abs(np.asarray(expected).astype(complex))
    size = size[np.isfinite(size)]
    finite = allowed[np.isfinite(allowed)]
    most = float(finite.max()) if finite.size else 0.0
    return most / float(size.max()) if size.size and size.max() else most


class _Written:
    """A function's graph as the user wrote it, with the values of a call."""

    def __init__(self, f, args):
        made = construct(**f.maker.construction.arguments)
        self.inputs, self.outputs = made.graph_inputs, made.graph_outputs
        self.values = _values(f, made, args)
        self.perturbed = Perturbed(self.values)
        with np.errstate(all="ignore"):
            self.perturbed.compute(self.outputs)
        self.order = io_toposort(self.inputs, self.outputs)
        self._depth = _depths(self.order)
        self.depths = [self._depth.get(var, 0) for var in self.outputs]
        self.names = [
            f"update of {made.inputs[made.update_of[k]].variable}"
            if k in made.update_of else f"output {k}"
            for k in range(len(self.outputs))
        ]  # fmt: skip
        self.unreachable = {k for k, var in enumerate(self.outputs) if var.owner is None}
        self._keys = provenance.Keys()
        self._wrong = {}

    def expected(self, k):
        """Return an output's value, and how far from it each element may lie."""
        return self._expected(self.outputs[k])

    def _expected(self, var):
        value = self.perturbed.compute([var])[0]
        allowed = self.perturbed.allowed(var)
        if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.kind in "fc":
            value = np.asarray(value)
            size = np.abs(value)[np.isfinite(value)]
            largest = float(size.max()) if size.size else 0.0
            by_depth = 4 * max(1, self._depth.get(var, 0)) * float(np.finfo(value.dtype).eps)
            allowed = np.maximum(allowed, by_depth * largest)
        return value, allowed

    def first_wrong(self, k, way):
        """Return the Divergence of an output: the deepest Apply that alone is wrong already."""
        node, how = self.outputs[k].owner, self._wrong_alone(self.outputs[k].owner, way)
        if how is None:
            return None
        while True:
            for parent in dict.fromkeys(v.owner for v in node.inputs if v.owner is not None):
                worse = self._wrong_alone(parent, way)
                if worse is not None:
                    node, how = parent, worse
                    break
            else:
                return self._divergence(node, how)

    def _wrong_alone(self, node, way):
        """Return how the outputs of an Apply are wrong where they are all that is asked for."""
        if (node, way) not in self._wrong:
            self._wrong[node, way] = self._tried_alone(node, way)
        return self._wrong[node, way]

    def _tried_alone(self, node, way):
        used = [var for var in self.inputs if var in set(_leaves(node))]
        try:
            with change_flags(on_opt_error="raise", compute_test_value="off"):
                f = function(used, node.outputs, mode=mode_of(way))
                found = f(*(self.values[var] for var in used))
        except Exception as error:  # see _results
            return f"raises {type(error).__name__}: {error}"
        for var, value in zip(node.outputs, found, strict=True):
            how = beyond(*_in_order(value, self._expected(var)))
            if how is not None:
                return how
        return None

    def _divergence(self, node, how):
        written = node.origins[0] if node.origins else node
        line = provenance.user_line(written)
        return Divergence(
            str(node), self._keys.node(written), "{}:{}".format(*line) if line else "", how
        )


def _in_order(found, expected):
    value, allowed = expected
    return value, found, allowed


def _leaves(node):
    seen, stack = set(), [node]
    while stack:
        one = stack.pop()
        for var in one.inputs:
            if var.owner is None:
                yield var
            elif var.owner not in seen:
                seen.add(var.owner)
                stack.append(var.owner)


def _values(f, made, args):
    """Return the values of a graph's inputs in a call of a function."""
    args = iter(args)
    values = {}
    for spec, var, container in zip(made.inputs, made.graph_inputs, f.input_storage, strict=True):
        if spec.implicit or spec.value is not None:
            value = container.storage[0]
        else:
            value = next(args, None)
            if value is None:
                raise TypeError(f"There is no argument for the input {spec.variable}")
        values[var] = np.array(value) if isinstance(value, np.ndarray) else value
        if not isinstance(value, np.ndarray):
            values[var] = var.type.filter(value, allow_downcast=True)
    if next(args, None) is not None:
        raise TypeError("There are more arguments than the function has inputs")
    return values


def _depths(order):
    depths: dict = {}
    for node in order:
        depth = 1 + max((depths.get(var, 0) for var in node.inputs), default=0)
        depths.update(dict.fromkeys(node.outputs, depth))
    return depths


def _count(ulp):
    return "-" if math.isinf(ulp) else str(int(ulp)) if ulp < 1e6 else f"{ulp:.2g}"
