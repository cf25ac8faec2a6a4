"""``check``: runs a graph in every configuration of opwise, and compares the results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from opwise.compile.construct import Construction, construct
from opwise.compile.executable import Function
from opwise.compile.function import function
from opwise.config import change_flags
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Variable
from opwise.modes.debugging.perturbation import Perturbed, beyond
from opwise.testing.configurations import CONFIGURATIONS, REFERENCE, compiled_in, mode_of
from opwise.tuning import difference
from opwise.tuning.candidate import Candidate
from opwise.tuning.copies import copied


class CheckFailed(AssertionError):
    """Some configuration gives other results than the reference."""


@dataclass(frozen=True)
class Divergence:
    """The first Apply of the user that is wrong when it is compiled as a graph of its own."""

    #: the text of the Apply
    apply: str
    #: its key, as in profiles
    key: str
    #: the user's line as 'file:line', or '' if it is not known
    line: str
    #: what differs
    how: str


@dataclass(frozen=True)
class Result:
    """One output in one configuration."""

    #: the name of the configuration
    configuration: str
    #: the name of the output
    output: str
    #: the largest difference, see ``tuning.difference.ResultDifference``
    ulp: float
    #: the largest difference, see ``tuning.difference.ResultDifference``
    relative: float
    #: the largest relative difference that rounding explains
    allowed: float
    #: what is wrong, or None
    how: str | None = None
    #: the first wrong Apply; None if each Apply alone is right
    first: Divergence | None = None


@dataclass
class CheckReport:
    """The results of ``check``."""

    #: a Result for each output and configuration
    results: list[Result] = field(default_factory=list)
    #: the number of Applys on the longest path through the graph
    depth: int = 0

    @property
    def ok(self) -> bool:
        """Whether every configuration gives the results of the reference."""
        return not self.bad

    @property
    def bad(self) -> list[Result]:
        """The Results that rounding does not explain."""
        return [result for result in self.results if result.how is not None]

    def raise_if_bad(self) -> CheckReport:
        """Raise CheckFailed, with this report as its text, if a result is bad; else return self."""
        if self.bad:
            raise CheckFailed(str(self))
        return self

    def __str__(self) -> str:
        width = max([len(r.configuration) for r in self.results] + [13])
        wide = max([len(r.output) for r in self.results] + [6])
        lines = [
            f"Results compared with {REFERENCE!r}; the graph is {self.depth} Applys deep",
            f"  {'configuration':{width}}  {'output':{wide}}  {'ulp':>10}  {'relative':>9}  "
            f"{'allowed':>9}",
        ]
        for r in self.results:
            lines.append(
                f"  {r.configuration:{width}}  {r.output:{wide}}  {_count(r.ulp):>10}  "
                f"{r.relative:>9.2g}  {r.allowed:>9.2g}  {'ok' if r.how is None else 'BAD'}"
            )
        for r in self.bad:
            lines += ["", f"{r.configuration}, {r.output}: {r.how}"]
            if r.first is not None:
                lines.append(f"  first wrong Apply: {r.first.apply}  (key {r.first.key})")
                if r.first.line:
                    lines.append(f"  made in {r.first.line}")
                lines.append(f"  there: {r.first.how}")
        lines.append("all configurations agree" if self.ok else f"{len(self.bad)} results are bad")
        return "\n".join(lines)


def check(
    f_or_graph: Function | tuple[Any, Any],
    inputs: Sequence[Any] = (),
    configurations: Iterable[str] | None = None,
    updates: Any = None,
    givens: Any = None,
    find_first: bool = True,
) -> CheckReport:
    """Run a graph in several configurations, on the same arguments, and return a CheckReport.

    f_or_graph: a compiled function, of which copies are run that share no state with it; or
    (inputs, outputs) as for ``function``, with ``updates`` and ``givens``. inputs: the arguments of
    the call, which stay as they are. configurations: names in ``CONFIGURATIONS`` (default: all).
    find_first: for each bad result, look for the first wrong Apply of the user.

    The outputs, and the new values of shared variables, are compared with those of running
    ``perform`` of each Apply as the user wrote it. Shapes, dtypes, and the positions of NaN and
    infinity must be equal. A float may differ by the larger of two bounds: 4 eps of its dtype for
    each Apply on the longest path to it, times the largest magnitude in the array; and the effect
    of perturbing each Apply by 2 ulp (``perturbation.Perturbed.allowed``), which is larger after
    cancellation. Integers and bools must be equal, unless such perturbations change them.
    """
    configurations = list(CONFIGURATIONS if configurations is None else configurations)
    for configuration in configurations:
        mode_of(configuration)
    if isinstance(f_or_graph, Function):
        f = f_or_graph
    else:
        ins, outs = f_or_graph
        with change_flags(compute_test_value="off"):
            f = function(ins, outs, mode=mode_of(REFERENCE), updates=updates, givens=givens,
                         on_unused_input="ignore")  # fmt: skip
    graph = _Written(f, inputs)
    report = CheckReport(depth=max(graph.depths, default=0))
    for configuration in configurations:
        found = _results(f, configuration, inputs)
        for k, result in enumerate(_compared(graph, configuration, found)):
            if result.how is not None and find_first and k not in graph.unreachable:
                first = graph.first_wrong(k, configuration)
                result = Result(**{**vars(result), "first": first})
            report.results.append(result)
    return report


def _results(f: Function, configuration: str, args: Sequence[Any]) -> list[Any] | Exception:
    """Return the results of a call and the new values of shared variables, or the exception."""
    try:
        with change_flags(on_opt_error="raise", compute_test_value="off"):
            candidate = Candidate(compiled_in(configuration, partial(copied, f)), tuple(args), {})
            return candidate.results()
    except Exception as error:  # whatever it is, the report shows it
        return error


def _compared(
    graph: _Written, configuration: str, found: list[Any] | Exception
) -> Iterator[Result]:
    """Yield the Result of each output in a configuration."""
    for k, name in enumerate(graph.names):
        expected, allowed = graph.expected(k)
        if isinstance(found, Exception):
            raised = f"raises {type(found).__name__}: {found}"
            yield Result(configuration, name, math.inf, math.inf, 0.0, raised)
            continue
        apart = difference.of(expected, found[k])
        far = beyond(expected, found[k], allowed)
        yield Result(
            configuration, name, apart.ulp, apart.relative, _relative(allowed, expected), far
        )


def _relative(allowed: Any, expected: Any) -> float:
    """Return the largest finite allowance, divided by the largest finite magnitude."""
    if not isinstance(expected, np.ndarray | np.generic) or not np.size(expected):
        return 0.0
    size = np.abs(np.asarray(expected).astype(complex))
    size = size[np.isfinite(size)]
    finite = allowed[np.isfinite(allowed)]
    most = float(finite.max()) if finite.size else 0.0
    return most / float(size.max()) if size.size and size.max() else most


class _Written:
    """A function's graph as the user wrote it, with the values of a call."""

    def __init__(self, f: Function, args: Sequence[Any]) -> None:
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
        self._wrong: dict[tuple[Apply, str], str | None] = {}

    def expected(self, k: int) -> tuple[Any, Any]:
        """Return the value of an output, and how much each element may differ from it."""
        return self._expected(self.outputs[k])

    def _expected(self, var: Variable) -> tuple[Any, Any]:
        value = self.perturbed.compute([var])[0]
        allowed = self.perturbed.allowed(var)
        if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.kind in "fc":
            value = np.asarray(value)
            size = np.abs(value)[np.isfinite(value)]
            largest = float(size.max()) if size.size else 0.0
            by_depth = 4 * max(1, self._depth.get(var, 0)) * float(np.finfo(value.dtype).eps)
            allowed = np.maximum(allowed, by_depth * largest)
        return value, allowed

    def first_wrong(self, k: int, configuration: str) -> Divergence | None:
        """Return the Divergence of an output: the deepest Apply that is wrong even alone."""
        node = self.outputs[k].owner
        how = None if node is None else self._wrong_alone(node, configuration)
        if node is None or how is None:
            return None
        while True:
            for parent in dict.fromkeys(v.owner for v in node.inputs if v.owner is not None):
                worse = self._wrong_alone(parent, configuration)
                if worse is not None:
                    node, how = parent, worse
                    break
            else:
                return self._divergence(node, how)

    def _wrong_alone(self, node: Apply, configuration: str) -> str | None:
        """Return how an Apply is wrong if its outputs are the only outputs of the function."""
        if (node, configuration) not in self._wrong:
            self._wrong[node, configuration] = self._tried_alone(node, configuration)
        return self._wrong[node, configuration]

    def _tried_alone(self, node: Apply, configuration: str) -> str | None:
        used = [var for var in self.inputs if var in set(_leaves(node))]
        try:
            with change_flags(on_opt_error="raise", compute_test_value="off"):
                f = compiled_in(configuration, lambda mode: function(used, node.outputs, mode=mode))
                found = f(*(self.values[var] for var in used))
        except Exception as error:  # see _results
            return f"raises {type(error).__name__}: {error}"
        for var, value in zip(node.outputs, found, strict=True):
            how = beyond(*_in_order(value, self._expected(var)))
            if how is not None:
                return how
        return None

    def _divergence(self, node: Apply, how: str) -> Divergence:
        written = node.origins[0] if node.origins else node
        line = provenance.user_line(written)
        return Divergence(
            str(node), self._keys.node(written), "{}:{}".format(*line) if line else "", how
        )


def _in_order(found: Any, expected: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    value, allowed = expected
    return value, found, allowed


def _leaves(node: Apply) -> Iterator[Variable]:
    seen, stack = set(), [node]
    while stack:
        one = stack.pop()
        for var in one.inputs:
            if var.owner is None:
                yield var
            elif var.owner not in seen:
                seen.add(var.owner)
                stack.append(var.owner)


def _values(f: Function, made: Construction, args: Sequence[Any]) -> dict[Variable, Any]:
    """Return the values of a graph's inputs in a call of a function."""
    remaining = iter(args)
    values: dict[Variable, Any] = {}
    for spec, var, container in zip(made.inputs, made.graph_inputs, f.input_storage, strict=True):
        if spec.implicit or spec.value is not None:
            value = container.storage[0]
        else:
            value = next(remaining, None)
            if value is None:
                raise TypeError(f"There is no argument for the input {spec.variable}")
        values[var] = np.array(value) if isinstance(value, np.ndarray) else value
        if not isinstance(value, np.ndarray):
            values[var] = var.type.filter(value, allow_downcast=True)
    if next(remaining, None) is not None:
        raise TypeError("There are more arguments than the function has inputs")
    return values


def _depths(order: Sequence[Apply]) -> dict[Variable, int]:
    depths: dict[Variable, int] = {}
    for node in order:
        depth = 1 + max((depths.get(var, 0) for var in node.inputs), default=0)
        depths.update(dict.fromkeys(node.outputs, depth))
    return depths


def _count(ulp: float) -> str:
    return "-" if math.isinf(ulp) else str(int(ulp)) if ulp < 1e6 else f"{ulp:.2g}"
