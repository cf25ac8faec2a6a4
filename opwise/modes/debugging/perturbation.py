"""How much rounding can change the values of a graph: its results are perturbed by a few ulp.

A rewrite or another implementation may round each Apply differently. A difference from the plain
run is no fault if it is no larger than those among runs with random roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.traversal import io_toposort
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Variable
from opwise.linkers.storage import Storage
from opwise.linkers.userops.python import python_code
from opwise.modes.debugging.rounding import adds, is_exact, rounds
from opwise.scalar.composite import Composite
from opwise.scalar.program import Literal
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.elemwise import Elemwise, cast
from opwise.tensor.gathered import Gathered
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.variable import constant

#: {dtype character: the most quarters in a number that counts as exact}; sums and products of a
#: few such numbers are exact too
_LIMITS = {"e": 256, "f": 2**15, "d": 2**30, "F": 2**15, "D": 2**30}


class Perturbed:
    """The values of a graph: as ``perform`` computes them, and in runs with random roundings.

    values: those of the inputs. runs: how many runs have random roundings. ulps: how far a
    rounding moves a result. most_steps: of all loops in one computation with random roundings.
    Values are computed when they are needed, and kept.
    """

    def __init__(
        self,
        values: Mapping[Variable, Any],
        runs: int = 3,
        ulps: float = 2.0,
        seed: int = 0,
        most_steps: float = math.inf,
    ) -> None:
        #: the values of the inputs
        self.given = dict(values)
        #: the values of the plain run
        self.values = dict(values)
        #: the Applys that the runs have computed, in order
        self.computed: list[Apply] = []
        #: which values no rounding changes
        self.exact = {var: _is_whole(value) for var, value in self.values.items()}
        self.random = np.random.default_rng(seed)
        self.ulps = ulps
        self.most_steps = most_steps
        self._steps = 0
        #: the values of each run with random roundings
        self.perturbed = [dict(self.values) for _ in range(runs)]

    def add(self, var: Variable, value: Any) -> None:
        """Set the value of a further input."""
        self.given[var] = self.values[var] = value
        self.exact[var] = _is_whole(value)
        for run in self.perturbed:
            run[var] = value

    def compute(self, outputs: Iterable[Variable]) -> list[Any]:
        """Return the plain values of variables; raises what a ``perform`` raises.

        Raises ValueError if loops take more than ``most_steps`` steps in all.
        """
        outputs = list(outputs)
        self._steps = 0
        new = [var for var in outputs if var not in self.values]
        done: list[Apply] = []
        try:
            for node in io_toposort(list(self.values), new) if new else ():
                if not all(out in self.values for out in node.outputs):
                    done.append(node)
                    self._run_plainly(node)
            for run in self.perturbed:
                for node in done:
                    self._run_perturbed(node, run, self.exact)
        except BaseException:
            for out in (out for node in done for out in node.outputs):
                for known in (self.values, *self.perturbed):
                    known.pop(out, None)
            raise
        self.computed += done
        return [_known(self.values, var) for var in outputs]

    def _run_plainly(self, node: Apply) -> None:
        results = _performed(node, self.values)
        exact = all(map(self._is_exact, node.inputs)) and is_exact(node.op)
        for out, value in zip(node.outputs, results, strict=True):
            self.values[out] = value
            self.exact[out] = exact and _is_whole(value)

    def extend(self, runs: int) -> None:
        """Compute everything in further runs, until there are ``runs``."""
        for _ in range(len(self.perturbed), runs):
            run = dict(self.given)
            for node in self.computed:
                self._run_perturbed(node, run, self.exact)
            self.perturbed.append(run)

    def spread(self, var: Variable) -> np.ndarray:
        """Return the largest distance of each element from its plain value, as float64.

        The distance is inf if one of the two is NaN or infinite and the other is not, and for every
        element if the shape differs in some run.
        """
        plain = _known(self.values, var)
        widest = np.zeros(np.shape(plain))
        for run in self.perturbed:
            widest = np.maximum(widest, _distance(plain, _known(run, var)))
        return widest

    def allowed(self, var: Variable) -> np.ndarray:
        """Return how far from the plain value each element of another implementation may lie.

        This is 16 times the spread of the element, plus a quarter of the largest spread in the
        array, plus 8 ulp of the element. It is 0 for integers and bools that roundings did not
        change.
        """
        plain = np.asarray(_known(self.values, var))
        if not isinstance(plain.dtype.type(), np.inexact):
            return self.spread(var)
        spread = self.spread(var)
        finite = spread[np.isfinite(spread)]
        widest = float(finite.max()) if finite.size else 0.0
        allowed: np.ndarray = 16 * spread + widest / 4 + 8 * _ulp(plain)
        return allowed

    def _is_exact(self, var: Variable) -> bool:
        return _holds_exactly(var, self.exact)

    def _run_perturbed(
        self, node: Apply, run: dict[Variable, Any], exact: Mapping[Variable, bool]
    ) -> None:
        """Compute an Apply, with perturbed inputs and perturbed results.

        exact: which values no rounding changes.
        """
        known = {var: _known(run, var) for var in node.inputs}
        if rounds(node.op):
            eps = max((_eps(out.type) for out in node.outputs), default=0.0)
            for var in known:
                if not _holds_exactly(var, exact):
                    known[var] = self._moved(known[var], eps or None)
        with np.errstate(all="ignore"):
            results = _performed(node, known, self._perturbed_step(node.op))
        for out, value in zip(node.outputs, results, strict=True):
            if rounds(node.op) and not exact.get(out, False):
                value = self._moved(value, None, self._sum_error(node, out, known))
            run[out] = value

    def _perturbed_step(self, op: Any) -> Callable[..., list[Any]] | None:
        """Return what computes a step of a loop with random roundings; None for other Ops."""
        if not hasattr(op, "perform_with"):
            return None
        order = io_toposort(op.inputs, op.outputs)

        def step(*given: Any) -> list[Any]:
            self._steps += 1
            if self._steps > self.most_steps:
                raise ValueError(f"loops of more than {self.most_steps} steps")
            run: dict[Variable, Any] = dict(zip(op.inputs, given, strict=True))
            exact = {var: _is_whole(value) for var, value in run.items()}
            for node in order:
                stays = all(_holds_exactly(v, exact) for v in node.inputs) and is_exact(node.op)
                exact.update(dict.fromkeys(node.outputs, stays))
                self._run_perturbed(node, run, exact)
                for out in node.outputs:
                    exact[out] = stays and _is_whole(run[out])
            return [_known(run, out) for out in op.outputs]

        return step

    def _sum_error(self, node: Apply, out: Variable, known: Mapping[Variable, Any]) -> float:
        """Return the rounding error of a sum of which some terms cancel: eps times all terms."""
        if not _eps(out.type) or not adds(node.op):
            return 0.0
        sizes = [np.asarray(_known(known, v)) for v in node.inputs if _is_number(v)]
        sizes = [np.abs(s[np.isfinite(s)].astype(complex)) for s in sizes]
        total = [float(s.sum()) for s in sizes if s.size]
        most = float(np.prod(total)) if not isinstance(node.op, Elemwise) else max(total, default=0)
        return most * _eps(out.type)

    def _moved(self, value: Any, eps: float | None = None, more: float = 0.0) -> Any:
        """Return a value with each float moved up or down at random, by ``ulps`` steps.

        A step is one ulp, or ``eps`` of the float's size if that is given, and ``more``.
        """
        if not isinstance(value, np.ndarray | np.generic):
            return value
        value = np.asarray(value)
        if value.dtype.kind not in "fc" or not value.size:
            return value
        # loops draw signs for many small arrays: ``integers`` takes four times as long for them
        steps = np.copysign(self.ulps, self.random.random(value.shape) - 0.5)
        with np.errstate(all="ignore"):
            size = _ulp(value) * (value != 0) if eps is None else eps * np.abs(value).astype("d")
            moved = np.where(np.isfinite(value), value + (size + more) * steps, value)
            return np.asarray(moved).astype(value.dtype)


def _known(run: Mapping[Variable, Any], var: Variable) -> Any:
    """Return the value of a variable in a run; constants need no entry."""
    return var.data if isinstance(var, Constant) and var not in run else run[var]


def _is_number(var: Variable) -> bool:
    return np.dtype(getattr(var.type, "dtype", "object")).kind in "biufc"


def _eps(type_: Type) -> float:
    """Return the machine epsilon of a type's floats; 0 for other types."""
    return _eps_of(getattr(type_, "dtype", ""))


@cache
def _eps_of(dtype: str) -> float:
    return float(np.finfo(dtype).eps) if dtype.startswith(("float", "complex")) else 0.0


def _holds_exactly(var: Variable, exact: Mapping[Variable, bool]) -> bool:
    """Return whether no rounding changes a value. exact: which values are known not to change."""
    if var in exact:
        return exact[var]
    return isinstance(var, Constant) and _is_whole(var.data)


def _performed(
    node: Apply, known: Mapping[Variable, Any], step: Callable[..., list[Any]] | None = None
) -> list[Any]:
    """Return what ``perform`` of an Apply computes from known values, which are not overwritten.

    step: computes the steps of a loop.
    """
    destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
    inputs = []
    for i, var in enumerate(node.inputs):
        value = _known(known, var)
        inputs.append(value.copy() if i in destroyed else value)
    storages: list[Storage] = [[None] for _ in node.outputs]
    if step is not None:
        node.op.perform_with(step, node, inputs, storages)
    else:
        python_code(node)(node, inputs, storages)
    return [storage[0] for storage in storages]


def _is_whole(value: Any) -> bool:
    """Return whether all floats in a value are small multiples of 1/4, or of 1 for float16."""
    if not isinstance(value, np.ndarray | np.generic):
        return True
    value = np.asarray(value)
    limit = _LIMITS.get(value.dtype.char)
    if limit is None:
        return value.dtype.kind not in "fc"
    parts = [value.real, value.imag] if value.dtype.kind == "c" else [value]
    quarters = 1.0 if value.dtype.char == "e" else 4.0
    for part in parts:
        scaled = part[np.isfinite(part)].astype(np.float64) * quarters
        if scaled.size and (np.abs(scaled).max() > limit or (scaled != np.rint(scaled)).any()):
            return False
    return True


def _ulp(value: np.ndarray) -> np.ndarray:
    """Return the spacing of floats at the size of each element; 0 if that is not finite."""
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(value)).astype(np.float64)
    return np.where(np.isfinite(unit), unit, 0.0)


def _distance(a: Any, b: Any) -> np.ndarray:
    """Return the distance of each two elements; inf if only one of them is NaN or infinite."""
    if not isinstance(a, np.ndarray | np.generic):
        return np.zeros(())
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return np.full(a.shape, np.inf)
    if a.dtype.kind not in "fc":
        return np.where(a == b, 0.0, np.inf)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        distance = np.abs(a.astype(wide) - b.astype(wide))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def beyond(expected: Any, found: Any, allowed: np.ndarray) -> str | None:
    """Return a text on how two values differ by more than is allowed, or None.

    Shape, dtype, and the places of NaN and infinities must be the same, apart from elements with
    an infinite allowance.
    """
    if not isinstance(expected, np.ndarray | np.generic):
        return None if expected == found else f"{found!r} instead of {expected!r}"
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.dtype != found.dtype:
        return f"the dtype is {found.dtype} instead of {expected.dtype}"
    if expected.shape != found.shape:
        if np.all(np.isinf(allowed)) and np.size(allowed):
            return None
        return f"the shape is {found.shape} instead of {expected.shape}"
    distance = _distance(expected, found)
    wrong = distance > allowed
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(np.where(wrong, distance, -1.0))), wrong.shape)
    place = f" at {tuple(map(int, at))}" if at else ""
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ{place}: {found[at]} instead of "
        f"{expected[at]}"
    )


# --- whether roundings explain a difference -------------------------------------------------------

#: how many runs are compared, until they explain a difference: most need the first ones only
_RUNS = (2, 4, 8, 16)


class Roundings:
    """Decides whether roundings explain differences within one call of a graph.

    values: those of the graph's inputs.
    """

    def __init__(self, values: Mapping[Variable, Any]) -> None:
        self._values = values
        self._perturbed: Perturbed | None = None

    def explain(self, variables: Sequence[Variable], expected: Any, found: Any) -> bool:
        """Return whether roundings before ``variables`` may turn ``expected`` into ``found``.

        variables: variables of the graph that all stand for the same value.
        """
        if self._perturbed is None:
            self._perturbed = Perturbed(self._values, runs=_RUNS[0], ulps=4.0)
        perturbed = self._perturbed
        try:
            perturbed.compute(variables)
            for runs in _RUNS:  # each allows more
                perturbed.extend(runs)
                if any(beyond(expected, found, perturbed.allowed(v)) is None for v in variables):
                    return True
        except Exception:  # a perform may refuse perturbed inputs
            pass
        return False


def roundings_explain(
    node: Apply, values: Sequence[Any], k: int, expected: Any, found: Any
) -> bool:
    """Return whether roundings within one Apply may turn its output ``expected`` into ``found``.

    values: those of its inputs, which are exact. k: the index of the output.
    """
    inputs = [var.type.make_variable() for var in node.inputs]
    out = unfused(node, inputs)[k]
    known = {var: np.array(v) if isinstance(v, np.ndarray) else v
             for var, v in zip(inputs, values, strict=True)}  # fmt: skip
    return Roundings(known).explain([out], expected, found)


def unfused(node: Apply, inputs: Sequence[Variable]) -> list[Variable]:
    """Return the outputs of an Apply on other inputs, with an Apply for each of its roundings."""
    op = node.op
    if isinstance(op, MapReduce):
        mapped, every = op.parts(node)
        between = unfused(mapped, inputs)
        return [
            reduced.clone_with_new_inputs([var]).outputs[0]
            for reduced, var in zip(every, between, strict=True)
        ]
    if isinstance(op, Gathered):
        loop = op.unfused(inputs)[-1]
        return unfused(loop, loop.inputs)
    if isinstance(op, Rowwise):
        slots = op.slots(inputs)
        return [slots[s] for s in op.outs]
    if isinstance(op, ConvElemwise):
        conv, mapped = op.parts(node)
        n = op.n_operands
        results = conv.clone_with_new_inputs(list(inputs[:n])).outputs
        return unfused(mapped, op.mapped_inputs(results[0], inputs[n:]))
    if not isinstance(op, Elemwise) or not isinstance(op.scalar_op, Composite):
        return list(node.clone_with_new_inputs(inputs).outputs)
    slots = list(inputs)
    for instruction in op.scalar_op.instructions:
        if isinstance(instruction.op, Literal):
            slots.append(constant(instruction.op.value, dtype=instruction.dtype))
            continue
        out = Elemwise(instruction.op)(*(slots[a] for a in instruction.args))
        slots.append(cast(out, instruction.dtype))
    return [slots[s] for s in op.scalar_op.outs]
