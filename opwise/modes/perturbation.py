"""How much rounding can change the values of a graph: its results are perturbed by a few ulp.

A rewrite or another implementation may round each Apply differently. A difference from the plain
run is no fault if it is no larger than those among runs with random roundings.
"""

from __future__ import annotations

import numpy as np

from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant
from opwise.optimizers.folding import params
from opwise.scalar.composite import Composite, Literal
from opwise.scalar.op import Cast
from opwise.tensor.elemwise import Elemwise, cast
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.variable import constant

#: rows whose results on whole numbers are whole, and computed without rounding
EXACT_ROWS = frozenset(
    "add mul sub int_div mod neg sqr abs_ sgn ceil floor trunc round_half_to_even "
    "round_half_away_from_zero maximum minimum clip switch second identity or_ xor and_ invert "
    "lt gt le ge eq neq isnan isinf real imag complex conj".split()
)
#: how many quarters a number may have to count as exact: sums and products of some stay exact too
_LIMITS = {"e": 256, "f": 2**15, "d": 2**30, "F": 2**15, "D": 2**30}


class Perturbed:
    """The values of a graph as ``perform`` computes them, and as other roundings would.

    runs: how many runs with random roundings. ulps: by how much a rounding moves a result.
    Values are computed when they are asked for, and kept.
    """

    def __init__(self, values, runs=3, ulps=2.0, seed=0):
        self.values = dict(values)
        self.exact = {var: _whole(value) for var, value in self.values.items()}
        self.random = np.random.default_rng(seed)
        self.ulps = ulps
        self.perturbed = [dict(self.values) for _ in range(runs)]

    def add(self, var, value):
        """Make an input's value known."""
        self.values[var] = value
        self.exact[var] = _whole(value)
        for run in self.perturbed:
            run[var] = value

    def compute(self, outputs):
        """Return the values of variables; what a ``perform`` raises is passed on."""
        new = [var for var in outputs if var not in self.values]
        done = []
        for node in io_toposort(list(self.values), new) if new else ():
            if all(out in self.values for out in node.outputs):
                continue
            results = performed(node, self.values)
            exact = all(map(self._is_exact, node.inputs)) and exact_op(node.op)
            for out, value in zip(node.outputs, results, strict=True):
                self.values[out] = value
                self.exact[out] = exact and _whole(value)
            done.append(node)
        for run in self.perturbed:
            for node in done:
                self._run_shaken(node, run)
        return [self._known(self.values, var) for var in outputs]

    def spread(self, var):
        """Return how far each element was carried, as float64; inf where its kind changed.

        The kind of an element is NaN, an infinity, or finite. An array of another shape in some run
        has an infinite spread everywhere.
        """
        plain = self._known(self.values, var)
        widest = np.zeros(np.shape(plain))
        for run in self.perturbed:
            widest = np.maximum(widest, _apart(plain, self._known(run, var)))
        return widest

    def allowed(self, var):
        """Return how far from the plain value each element of another run may lie.

        16 times the spread of the element, a quarter of the largest spread in the array, and 8 ulp
        of the element's size. 0 for whole numbers and bools that roundings did not change.
        """
        plain = np.asarray(self._known(self.values, var))
        if not isinstance(plain.dtype.type(), np.inexact):
            return self.spread(var)
        spread = self.spread(var)
        finite = spread[np.isfinite(spread)]
        widest = float(finite.max()) if finite.size else 0.0
        return 16 * spread + widest / 4 + 8 * _ulp(plain)

    def _is_exact(self, var):
        if var in self.exact:
            return self.exact[var]
        return isinstance(var, Constant) and _whole(var.data)

    @staticmethod
    def _known(run, var):
        return var.data if isinstance(var, Constant) and var not in run else run[var]

    def _run_shaken(self, node, run):
        """Compute an Apply from inputs, and with results, that are off by some roundings."""
        known = {var: self._known(run, var) for var in node.inputs}
        if rounds(node.op):
            eps = max((_eps(out.type) for out in node.outputs), default=0.0)
            for var in known:
                if not self._is_exact(var):
                    known[var] = self._moved(known[var], eps or None)
        with np.errstate(all="ignore"):
            results = performed(node, known)
        for out, value in zip(node.outputs, results, strict=True):
            if rounds(node.op) and not self.exact[out]:
                value = self._moved(value, None, self._lost(node, out))
            run[out] = value

    def _lost(self, node, out):
        """Return what a sum of terms of a narrower dtype than its own loses by rounding."""
        if not _eps(out.type) or not adds(node.op):
            return 0.0
        sizes = [np.asarray(self._known(self.values, v)) for v in node.inputs if _is_number(v)]
        sizes = [np.abs(s[np.isfinite(s)].astype(complex)) for s in sizes]
        total = [float(s.sum()) for s in sizes if s.size]
        most = float(np.prod(total)) if not isinstance(node.op, Elemwise) else max(total, default=0)
        return most * _eps(out.type)

    def _moved(self, value, eps=None, lost=0.0):
        """Return a float value off by some ulp, or by ``eps`` of its size if that is more."""
        if not isinstance(value, np.ndarray | np.generic):
            return value
        value = np.asarray(value)
        if value.dtype.kind not in "fc" or not value.size:
            return value
        signs = self.random.integers(0, 2, value.shape) * 2.0 - 1
        with np.errstate(all="ignore"):
            step = _ulp(value) if eps is None else eps * np.abs(value).astype(np.float64)
            step = np.where((value == 0) | ~np.isfinite(value), 0.0, step) + lost
            moved = np.where(np.isfinite(value), value + step * self.ulps * signs, value)
            return np.asarray(moved).astype(value.dtype)


#: Ops that copy elements and compute none, by the modules that hold them
_STRUCTURE = tuple(
    f"opwise.tensor.{name}"
    for name in "shape join creation diagonal slices sort selection convert assertion".split()
)


def rounds(op):
    """Return whether an Op computes new numbers, which may be rounded."""
    if isinstance(op, Elemwise):
        return True
    module, name = type(op).__module__, type(op).__name__
    picks = "Subtensor" in name and "Inc" not in name
    return not (module.startswith(_STRUCTURE) or name == "DimShuffle" or picks)


def adds(op):
    """Return whether an Op's results are sums of what it reads."""
    if isinstance(op, Elemwise):
        row = op.scalar_op.row
        return row is not None and row.name in ("add", "sub")
    return rounds(op) and not type(op).__module__.startswith("opwise.tensor.nnet")


def _is_number(var):
    return np.dtype(getattr(var.type, "dtype", "object")).kind in "biufc"


def _eps(type_):
    """Return the precision of a type's floats; 0 for other types."""
    dtype = getattr(type_, "dtype", "")
    return float(np.finfo(dtype).eps) if dtype.startswith(("float", "complex")) else 0.0


def performed(node, known):
    """Return what ``perform`` of an Apply gives on known values, which are left as they are."""
    destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
    inputs = []
    for i, var in enumerate(node.inputs):
        value = var.data if isinstance(var, Constant) and var not in known else known[var]
        inputs.append(value.copy() if i in destroyed else value)
    storage = [[None] for _ in node.outputs]
    node.op.perform(node, inputs, storage, *params(node))
    return [storage[0] for storage in storage]


def exact_op(op):
    """Return whether an Op computes whole numbers from whole numbers, without rounding."""
    if isinstance(op, Elemwise):
        row = op.scalar_op.row
        return isinstance(op.scalar_op, Cast) or (row is not None and row.name in EXACT_ROWS)
    return not type(op).__module__.startswith("opwise.tensor.nnet")


def _whole(value):
    """Return whether a value consists of few quarters, or is no float at all."""
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


def _ulp(value):
    """Return the spacing of numbers at the size of each element; 0 where that is not finite."""
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(value)).astype(np.float64)
    return np.where(np.isfinite(unit), unit, 0.0)


def _apart(a, b):
    """Return the distance of each two elements, inf where they are not of one kind."""
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


def beyond(expected, found, allowed):
    """Return the text of how two values differ by more than is allowed, or None.

    Shape, dtype, and the places of NaN and infinities must be the same, apart from elements that
    are allowed to be anything (an infinite allowance).
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
    distance = _apart(expected, found)
    wrong = distance > allowed
    if not wrong.any():
        return None
    at = np.unravel_index(int(np.argmax(np.where(wrong, distance, -1.0))), wrong.shape)
    place = f" at {tuple(map(int, at))}" if at else ""
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ{place}: {found[at]} instead of "
        f"{expected[at]}"
    )


# --- whether roundings explain what differs -------------------------------------------------------

#: with how many random roundings a doubtful difference is looked at, and how large they are
_DOUBTS = {"runs": 16, "ulps": 4.0}


class Doubts:
    """Judges differences in one call of a graph. values: those of the graph's inputs."""

    def __init__(self, values):
        self._values = values
        self._perturbed = None

    def explain(self, variables, expected, found):
        """Return whether roundings on the way to ``variables`` may make ``expected`` ``found``.

        variables: of the graph, which all stand for the same value.
        """
        if self._perturbed is None:
            self._perturbed = Perturbed(self._values, **_DOUBTS)
        try:
            self._perturbed.compute(variables)
        except Exception:  # a perform may refuse what a rounding makes of its inputs
            return False
        allowed = [self._perturbed.allowed(var) for var in variables]
        return any(beyond(expected, found, most) is None for most in allowed)


def explains_alone(node, values, k, expected, found):
    """Return whether roundings within one Apply may make its output ``expected`` ``found``.

    values: those of its inputs, which are known to the last bit. k: the number of the output.
    """
    inputs = [var.type.make_variable() for var in node.inputs]
    out = unfused(node, inputs)[k]
    known = {var: np.array(v) if isinstance(v, np.ndarray) else v
             for var, v in zip(inputs, values, strict=True)}  # fmt: skip
    return Doubts(known).explain([out], expected, found)


def unfused(node, inputs):
    """Return the outputs of an Apply on other inputs, with an Apply for each of its roundings."""
    op = node.op
    if isinstance(op, MapReduce):
        mapped, reduced = op.parts(node)
        return reduced.clone_with_new_inputs(unfused(mapped, inputs)).outputs
    if not isinstance(op, Elemwise) or not isinstance(op.scalar_op, Composite):
        return node.clone_with_new_inputs(inputs).outputs
    slots = list(inputs)
    for step in op.scalar_op.instructions:
        if isinstance(step.op, Literal):
            slots.append(constant(step.op.value, dtype=step.dtype))
            continue
        out = Elemwise(step.op)(*(slots[a] for a in step.args))
        slots.append(cast(out, step.dtype))
    return [slots[s] for s in op.scalar_op.outs]
