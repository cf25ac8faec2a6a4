"""Gradients: reverse (grad, Lop) and forward (Rop) accumulation over a graph, and their check.

The derivatives of an operation are methods of its Op (``L_op``, ``R_op``, ``connection_pattern``).
Nothing here recurses, so graphs may be of any depth.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial, reduce
from operator import add
from typing import Any
from weakref import WeakSet

import numpy as np

from opwise.config import config
from opwise.errors import DisconnectedInputError, MethodNotDefined, NullTypeGradError
from opwise.graph import provenance, upcalls
from opwise.graph.apply import Apply
from opwise.graph.guards import (
    ALWAYS,
    Guard,
    alternative,
    alternatives,
    numbers,
    simplified,
    union,
)
from opwise.graph.null import (
    DisconnectedType,
    NullType,
    disconnected_type,
    grad_not_implemented,
    grad_undefined,
    is_disconnected,
    is_null,
    null_type,
)
from opwise.graph.opmethods import connects, zero_derivative
from opwise.graph.traversal import ancestors, io_toposort
from opwise.graph.variable import Constant, Variable
from opwise.profiling import process
from opwise.scalar import dtypes
from opwise.scalar.types import Scalar
from opwise.tensor.convert import ViewOp
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.ifelse import ifelse
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.shape import patternbroadcast
from opwise.tensor.type import TensorType, tensor_type
from opwise.tensor.variable import as_tensor_variable, constant

__all__ = [
    "ConsiderConstant",
    "DisconnectedGrad",
    "DisconnectedInputError",
    "DisconnectedType",
    "GradClip",
    "GradScale",
    "GradientError",
    "Lop",
    "NullType",
    "NullTypeGradError",
    "Rop",
    "UndefinedGrad",
    "ZeroGrad",
    "consider_constant",
    "consider_constant_",
    "disconnected_grad",
    "disconnected_grad_",
    "disconnected_type",
    "format_as",
    "grad",
    "grad_clip",
    "grad_not_implemented",
    "grad_scale",
    "grad_undefined",
    "null_type",
    "numeric_grad",
    "subgraph_grad",
    "undefined_grad",
    "undefined_grad_",
    "verify_grad",
    "zero_grad",
    "zero_grad_",
]


# --- arguments and results ------------------------------------------------------------------------


def format_as(use_list: bool, use_tuple: bool, outputs: Any) -> Any:
    """Return ``outputs`` as a list, as a tuple, or (neither) its only element."""
    if use_list and use_tuple:
        raise ValueError("use_list and use_tuple cannot both be true")
    if use_list or use_tuple:
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        return list(outputs) if use_list else tuple(outputs)
    if isinstance(outputs, list | tuple):
        if len(outputs) != 1:
            raise ValueError(f"a single result is wanted, but there are {len(outputs)}")
        return outputs[0]
    return outputs


def _variables(given, what: str) -> list[Variable]:
    """Return an argument that is a variable or a sequence of them as a list."""
    several = list(given) if isinstance(given, list | tuple) else [given]
    for var in several:
        if not isinstance(var, Variable):
            raise _no_variable(var, what)
    return several


def _no_variable(given, what):
    return TypeError(
        f"Expected Variable, got {given} of type {type(given)} as {what}. Pass the variable "
        "itself, not its name or value."
    )


def _as_given(given, results: list):
    return format_as(isinstance(given, list), isinstance(given, tuple), results)


def _dtype(var) -> str | None:
    return getattr(var.type, "dtype", None)


def _is_discrete(var) -> bool:
    return _dtype(var) in dtypes.DISCRETE


def _filled_like(var, value: float, dtype: str | None = None):
    """Return a number in the shape and dtype (default: floatX if discrete) of ``var``."""
    if dtype is None:
        dtype = config.floatX if _is_discrete(var) else _dtype(var)
    if isinstance(var.type, TensorType):
        return elemwise("second")(var, constant(np.asarray(value, dtype)))
    # other types, such as scalars and sparse matrices, have methods of their own
    return var.ones_like(dtype) if value else var.zeros_like(dtype)


class _Disconnected:
    """What to do if a result does not depend on a variable, for grad and Rop."""

    def __init__(self, action: str, keyword: str, result: str, message: str):
        if action not in ("raise", "warn", "ignore"):
            raise ValueError(
                f"Invalid value for keyword '{keyword}', valid values are 'ignore', 'warn' and "
                f"'raise'. Got {action!r}."
            )
        self.result = str(result).lower()
        if self.result not in ("zero", "none", "disconnected"):
            raise ValueError(
                "Invalid value for keyword 'return_disconnected', valid values are 'zero', 'None' "
                f"and 'disconnected'. Got {result!r}."
            )
        self.action = action
        self.keyword = keyword
        self.message = message

    def report(self, var) -> None:
        """Raise, warn or do nothing about ``var``."""
        if self.action == "ignore":
            return
        message = f"{self.message}: {var}"
        created = provenance.format_trace(var.made_at)
        where = f"\nBacktrace when that variable is created:\n\n{created}" if created else "\n"
        hint = (
            f"HINT: {self.keyword}='ignore' gives zeros instead of this "
            f"{'warning' if self.action == 'warn' else 'error'}."
        )
        text = f"{message}{where}\n{hint}"
        if self.action == "warn":
            provenance.warn(text)
            return
        raise DisconnectedInputError(text)

    def value(self, var):
        """Return the derivative by ``var`` (or of it) in this case."""
        if self.result == "zero":
            return _filled_like(var, 0.0)
        return None if self.result == "none" else disconnected_type.make_variable()


# --- reverse accumulation -------------------------------------------------------------------------


def grad(
    cost: Any,
    wrt: Any = None,
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: str = "raise",
    add_names: bool = True,
    known_grads: Mapping[Variable, Variable] | None = None,
    return_disconnected: str = "zero",
    null_gradients: str = "raise",
    **of_function: Any,
) -> Any:
    """Return the symbolic gradient of ``cost`` by ``wrt``.

    Of a function of numpy, return the function that computes its gradient: ``grad(f, argnums=0,
    has_aux=False)``; see ``opwise.value_and_grad``.

    cost: a scalar variable, or None if ``known_grads`` is given. wrt: a variable, or a list or
    tuple of them; the result has the same form. consider_constant: variables not to differentiate
    through. disconnected_inputs: 'raise', 'warn' or 'ignore', if the cost does not depend on a
    variable. return_disconnected: the gradient by such a variable: 'zero', 'None' or
    'disconnected'. add_names: name the gradients ``(dcost/dx)`` if cost and x have names.
    known_grads: dict from variables to the gradients by them of a cost that need not be part of the
    graph. null_gradients: 'raise' or 'return' undefined gradients.

    A gradient has the shape of its variable, and usually its dtype; that by a discrete variable is
    a float. Raises TypeError unless the cost is a real scalar, DisconnectedInputError,
    NullTypeGradError.
    """
    if callable(cost) and not isinstance(cost, Variable):
        if wrt is not None:
            of_function["argnums"] = wrt
        return upcalls.gradient_of_function(cost, **of_function)
    if of_function:
        raise TypeError(f"grad got an unexpected keyword argument {next(iter(of_function))!r}")
    wrt_list = _variables(wrt, "wrt")
    disconnected = _Disconnected(
        disconnected_inputs,
        "disconnected_inputs",
        return_disconnected,
        "grad method was asked to compute the gradient with respect to a variable that is not part "
        "of the computational graph of the cost, or is used only by a non-differentiable operator",
    )
    if null_gradients not in ("raise", "return"):
        raise ValueError(f"null_gradients must be 'raise' or 'return', not {null_gradients!r}")
    known = _starting_gradients(cost, known_grads)
    constants = _constants(consider_constant)
    backward = _Backward(known, constants, cost.name if add_names and cost is not None else None)

    unreached = dict.fromkeys(var for var in wrt_list if not backward.reaches(var))
    for var in unreached:
        disconnected.report(var)
    # all Applys made here belong to one line of the user
    located = provenance.located(provenance.capture())
    with located, process.building_gradients(), process.pause_garbage_collection():
        backward.run(wrt_list)
        found = [backward.result(var) for var in wrt_list]
    results = []
    for var, result in zip(wrt_list, found, strict=True):
        if is_disconnected(result):
            if var not in unreached:
                disconnected.report(var)
            result = disconnected.value(var)
        elif is_null(result) and null_gradients == "raise":
            raise NullTypeGradError(
                f"tensor.grad encountered a NaN. {result.type.why_null} "
                f"(met in the gradient with respect to {var}). Stop the gradient there with "
                "consider_constant or disconnected_grad, or define the gradient of the Op; with "
                "null_gradients='return', grad returns such gradients instead of raising."
                + (f"\n{result.type.where}" if result.type.where else "")
            )
        results.append(result)
    return _as_given(wrt, results)


def _starting_gradients(cost, known_grads) -> dict[Variable, Variable]:
    """Return the gradients that the accumulation starts from: 1 for the cost, and known_grads."""
    known = {}
    if cost is None and not known_grads:
        raise ValueError(
            "cost and known_grads can't both be None. Give the cost, or the gradients to start "
            "from."
        )
    if cost is not None:
        if not isinstance(cost, Variable):
            raise _no_variable(cost, "cost")
        if is_null(cost):
            raise ValueError(
                f"Can't differentiate a NaN cost. cost is NaN because {cost.type.why_null}"
            )
        if getattr(cost.type, "ndim", 0) != 0:
            raise TypeError(
                f"cost must be a scalar. {cost} is of {cost.type}: take its sum or mean, "
                "T.sum(cost)." + _made(cost)
            )
        if _dtype(cost) in dtypes.COMPLEX:
            raise TypeError(
                f"cost must be real, but {cost} has dtype {_dtype(cost)}: differentiate its "
                f"absolute value, its real part or its imaginary part{_made(cost)}"
            )
        with provenance.differentiating(cost.owner):
            known[cost] = _filled_like(cost, 1.0)
    for var, g in dict(known_grads or {}).items():
        known[var] = _given_gradient(var, g)
    return known


def _given_gradient(var, g):
    """Return a gradient of known_grads, broadcast if it has fewer dimensions than ``var``."""
    if not isinstance(g, Variable):
        raise TypeError(
            "output grads must be theano variables. Ambiguous whether "
            f"{type(g)} should be made into tensor or sparse theano variable. Convert it by "
            "T.as_tensor_variable."
        )
    if is_null(g) or is_disconnected(g):
        return g
    if _dtype(g) not in dtypes.CONTINUOUS:
        raise TypeError(
            "Gradients must always be NullType, DisconnectedType, or continuous, but grad was "
            f"given a known_grad of type {g.type} (for {var})"
        )
    if isinstance(var.type, TensorType) and isinstance(g.type, TensorType):
        missing = var.type.ndim - g.type.ndim
        if missing > 0:
            aligned = dimshuffle(as_tensor_variable(g), ["x"] * missing + list(range(g.type.ndim)))
            return elemwise("second")(var, aligned)
    _check_ndim(var, g, lambda: f"The gradient given for {var}")
    return g


def _check_ndim(var, g, what: Callable[[], str], where: Callable[[], str] | None = None) -> None:
    """Raise ValueError if a gradient has another number of dimensions than its variable.

    what, where: called for the text of the error only.
    """
    wanted, got = getattr(var.type, "ndim", None), getattr(g.type, "ndim", None)
    if wanted is not None and got is not None and wanted != got:
        raise ValueError(
            f"{what()} has {got} dimensions, but {wanted} are required. A gradient has the "
            "shape of the variable that it is taken with respect to."
            + (f" {where()}" if where is not None else "")
        )


def _constants(consider_constant) -> set[Variable]:
    constants = set()
    for var in consider_constant or ():
        if not isinstance(var, Variable):
            raise TypeError(
                f"Elements of consider_constant must be variables, but got {type(var)}: {var!r}. "
                "Give a list of variables."
            )
        constants.add(var)
    return constants


class _Patterns:
    """The connection patterns of Applys, each computed and checked once."""

    def __init__(self):
        self._of_node: dict[Apply, list[list[bool]] | None] = {}

    def connected(self, node: Apply, i: int, out: int) -> bool:
        """Return whether output ``out`` depends on the elements of input ``i``."""
        try:
            pattern = self._of_node[node]
        except KeyError:
            pattern = self._of_node[node] = self._ask(node)
        return pattern is None or pattern[i][out]

    @staticmethod
    def _ask(node):
        """Return the pattern that the Op returns; None if all outputs depend on all inputs."""
        ask = getattr(node.op, "connection_pattern", None)
        if ask is None:
            return None
        pattern = ask(node)
        if not isinstance(pattern, list):
            raise TypeError(
                f"{node.op}.connection_pattern should return a list of lists, but returned "
                f"{pattern} of type {type(pattern)}. {_where(node)}"
            )
        if len(pattern) != len(node.inputs):
            raise ValueError(
                f"{node.op}.connection_pattern should have {len(node.inputs)} rows but has "
                f"{len(pattern)}: a row for each input, with a bool for each output. {_where(node)}"
            )
        for i, row in enumerate(pattern):
            if not isinstance(row, list):
                raise TypeError(
                    f"{node.op}.connection_pattern should return a list of lists, but element {i} "
                    f"is {row} of type {type(row)}. {_where(node)}"
                )
            if len(row) != len(node.outputs):
                raise ValueError(
                    f"{node.op}.connection_pattern should have {len(node.outputs)} columns but "
                    f"row {i} has {len(row)}: a row for each input, with a bool for each output. "
                    f"{_where(node)}"
                )
        return pattern


class _Branches:
    """When gradients count, if Applys of the graph choose between branches.

    The gradient by what only a branch reads counts if the branch is taken. Otherwise it is zero,
    but zeros must not meet local derivatives there, which may be infinite or have impossible
    shapes. Guards say when a gradient counts, as in ``graph.guards``. Where it meets others, or is
    a result, an IfElse chooses between it and that of the other branch, or zeros.
    """

    def __init__(self) -> None:
        #: an Apply of each choice, by number; inner choices before those that they are in
        self._choosing: dict[int, Apply] = {}
        self._left = 0
        #: when the gradients by the outputs of these Applys count
        self._guards: dict[Apply, Guard] = {}
        self._numbers: dict[tuple[Variable, Guard], int] = {}
        self._tests: dict[Guard, Variable] = {}

    def expect(self, nodes: Iterable[Apply]) -> None:
        """Prepare for these Applys, before any gradient is known."""
        self._left = sum(1 for node in nodes if node.op.branches)

    def guard(self, guards: Iterable[Guard]) -> Guard:
        """Return when something counts that has terms with these guards."""
        found = union(guards)
        if found >= ALWAYS or not self._choosing:
            return ALWAYS
        return simplified(found, self._guards, self._choosing)

    def of_terms(self, node: Apply, guard: Guard) -> dict[int, Guard]:
        """Return {index of an input that is in one branch: when the gradient by it counts}.

        guard: when those by the outputs count.
        """
        if not node.op.branches:
            return {}
        key = node.inputs[0], guard
        if key not in self._numbers:
            self._left -= 1
            self._numbers[key] = self._left
            self._choosing[self._left] = node
            self._guards[node] = guard
        number = self._numbers[key]
        return {
            i: alternative(number, branch)
            for branch, indices in enumerate(node.op.branches)
            for i in indices
        }

    def total(
        self, var: Variable, terms: Mapping[Guard, Sequence[Variable]], guard: Guard
    ) -> Variable:
        """Return the gradient by ``var``, for calls in which ``guard`` holds.

        terms: the terms of each guard.
        """
        sums = {one: reduce(add, several) for one, several in terms.items()}
        inner = [_Inner(one) for one in sums if one not in (ALWAYS, guard)]
        heapq.heapify(inner)
        while inner:
            one = heapq.heappop(inner).guard
            if one not in sums:
                continue  # it was the other branch of a choice
            number = numbers(one)[0]
            pair, node = [alternative(number, 0), alternative(number, 1)], self._choosing[number]
            if one in pair:
                name, outer = node.op.name, self._guards[node]
                chosen = _chosen(node.inputs[0], [sums.pop(b, None) for b in pair], var, name)
            else:  # in branches of several choices
                name, outer = None, ALWAYS
                chosen = _chosen(self._test(one), [sums.pop(one), None], var, name)
            if outer not in sums and outer not in (ALWAYS, guard):
                heapq.heappush(inner, _Inner(outer))
            sums[outer] = sums[outer] + chosen if outer in sums else chosen
        return reduce(add, sums.values())

    def _test(self, guard: Guard) -> Variable:
        """Return whether a guard holds, computed without conditions in branches not taken."""
        needed: set[Guard] = set()
        pending = [guard]
        while pending:
            one = pending.pop()
            if one not in needed and one != ALWAYS:
                needed.add(one)
                pending += [self._guards[self._choosing[k]] for k in numbers(one)]
        for one in sorted(needed - self._tests.keys(), key=_Inner, reverse=True):
            self._tests[one] = self._new_test(one)
        return self._tests[guard]

    def _new_test(self, guard):
        tests = []
        for number in numbers(guard):
            node = self._choosing[number]
            outer, condition = self._guards[node], node.inputs[0]
            for one, name in zip(alternatives(number), ("neq", "eq"), strict=True):
                if one in guard:
                    test = elemwise(name)(condition, 0)
                    if outer != ALWAYS:
                        test = ifelse(self._tests[outer], test, constant(np.False_))
                    tests.append(test)
        return reduce(elemwise("or_"), tests)


class _Inner:
    """Orders guards by their innermost choices, which have the lowest numbers."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._key = min(guard), sorted(guard, reverse=True)

    def __lt__(self, other: _Inner) -> bool:
        return self._key < other._key


def _chosen(condition, pair, var, name):
    """Return the gradient of the branch that is taken; zeros in place of None."""
    name = None if name is None else f"{name}_grad"
    given = [g for g in pair if g is not None]
    dtype = None if _dtype(var) is None else dtypes.upcast(*(g.type.dtype for g in given))
    then, other = (
        _filled_like(var, 0.0, dtype) if g is None else _fitted_to(g, var, dtype) for g in pair
    )
    return ifelse(condition, then, other, name=name)


def _fitted_to(g, var, dtype):
    """Return a gradient by ``var`` with a dtype, and the broadcast pattern of ``var``."""
    if dtype is not None and _dtype(g) != dtype:
        g = _cast(g, dtype)
    if isinstance(var.type, TensorType) and isinstance(g.type, TensorType):
        g = patternbroadcast(g, var.type.broadcastable)
    return g


class _Backward:
    """One reverse accumulation: from the variables of ``known`` down to those of wrt.

    The gradient by a variable counts if the guard of the variable holds (``_Branches``); that by an
    Apply, if the guard of the Apply does.
    """

    def __init__(self, known, constants, cost_name=None):
        self.gradients = dict(known)
        self._sources = list(known)
        self._constants = constants
        self._cost_name = cost_name
        self._patterns = _Patterns()
        self._uses = self._connected_uses()
        self._on_path: set[Variable] = set()
        self._terms: dict[Apply, list[Variable]] = {}
        self._branches = _Branches()
        self._guards: dict[Variable | Apply, Guard] = {}
        self._in_branches: dict[Apply, dict[int, Guard]] = {}
        self._named: set[Variable] = set()

    # the variables and Applys on paths from wrt to the sources

    def _connected_uses(self):
        """Return {variable: {Apply that reads it: input indices}} on paths to the sources.

        It is in depth-first order from the sources, which is the order of the terms in sums.
        """
        uses: dict[Variable, dict[Apply, list[int]]] = {}
        seen = set()
        stack = []

        def enter(var):
            if var in seen:
                return
            seen.add(var)
            if var.owner is not None and var not in self._constants:
                stack.append((var.owner, var.index, iter(enumerate(var.owner.inputs))))

        for source in self._sources:
            enter(source)
            while stack:
                node, out, remaining = stack[-1]
                for i, var in remaining:
                    if not self._patterns.connected(node, i, out):
                        continue
                    indices = uses.setdefault(var, {}).setdefault(node, [])
                    if i not in indices:
                        indices.append(i)
                    if var not in seen:
                        enter(var)
                        break
                else:
                    stack.pop()
        return uses

    def reaches(self, var) -> bool:
        """Return whether some source depends on ``var``, or its gradient is known."""
        return var in self._uses or var in self.gradients

    def _find_path(self, wrt) -> set[Apply]:
        """Mark the variables between ``wrt`` and the sources; return the Applys that read them."""
        nodes = set()
        stack = list(wrt)
        while stack:
            var = stack.pop()
            if var in self._on_path or var not in self._uses or var in self.gradients:
                continue
            self._on_path.add(var)
            for node, indices in self._uses[var].items():
                nodes.add(node)
                for k, out in enumerate(node.outputs):
                    if any(self._patterns.connected(node, i, k) for i in indices):
                        stack.append(out)
        return nodes

    # the accumulation

    def run(self, wrt) -> None:
        """Differentiate each Apply between ``wrt`` and the sources."""
        nodes = self._find_path(wrt)
        if not nodes:
            return
        self._branches.expect(nodes)
        for node in reversed(io_toposort(self._constants, self._sources)):
            if node in nodes:
                with provenance.differentiating(node):
                    self._terms[node] = self._differentiate(node)

    def result(self, var) -> Variable:
        """Return the gradient by ``var`` in every call."""
        return self._counting(var, ALWAYS)

    def _counting(self, var, guard):
        """Return the gradient by ``var`` for calls in which ``guard`` holds."""
        g, own = self.gradient(var), self._guards.get(var, ALWAYS)
        if own == guard or not _is_value(g):
            return g
        return self._branches.total(var, {own: [g]}, guard)

    def gradient(self, var) -> Variable:
        """Return the gradient by ``var``, after all Applys that read it were differentiated.

        It counts in calls in which the guard of ``var`` holds.
        """
        found = self.gradients.get(var)
        if found is None:
            found = self.gradients[var] = self._sum_of_terms(var)
        return found

    def _sum_of_terms(self, var):
        terms: list[tuple[Guard, Guard, Variable]] = []
        if var in self._on_path:
            for node, indices in self._uses[var].items():
                in_branches = self._in_branches.get(node, {})
                for i in indices:
                    term = self._terms[node][i]
                    if is_null(term):
                        return term
                    if not is_disconnected(term):
                        _check_ndim(var, term, partial(_returned_by, node), partial(_where, node))
                        guard = self._guards[node]
                        terms.append((in_branches.get(i, guard), guard, term))
        if not terms:
            return disconnected_type.make_variable()
        guard = self._guards[var] = self._branches.guard(counts for counts, _, _ in terms)
        groups: dict[Guard, list[Variable]] = {}
        for counts, known, term in terms:
            # the term of a choice is zero where its branch is not taken
            groups.setdefault(guard if counts == guard else known, []).append(term)
        total = self._branches.total(var, groups, guard)
        self._name(total, var)
        return total

    def _name(self, g, var) -> None:
        """Name a gradient (dcost/dvar), unless it has a name already."""
        if self._cost_name is None or var.name is None or isinstance(g, Constant):
            return
        if g.name is None or g in self._named:
            g.name = f"(d{self._cost_name}/d{var.name})"
            self._named.add(g)

    def _differentiate(self, node):
        """Return the gradients by the inputs of an Apply, from those by its outputs."""
        reached = [out for out in node.outputs if out not in self._constants]
        guard = self._guards[node] = self._branches.guard(
            self._guards.get(out, ALWAYS) for out in reached if _is_value(self.gradient(out))
        )
        self._in_branches[node] = self._branches.of_terms(node, guard)
        output_gradients = [
            disconnected_type.make_variable() if out in self._constants
            else self._counting(out, guard)
            for out in node.outputs
        ]  # fmt: skip
        roads = [self._roads(node, i, output_gradients) for i in range(len(node.inputs))]
        kinds = [_kind(r) for r in roads]
        if _DIFFERENTIABLE in kinds:
            terms = _call_L_op(node, output_gradients)
            for i, kind in enumerate(kinds):
                _check_term(node, i, terms[i], kind)
        else:
            terms = [None] * len(kinds)
        return [
            _settled(term, kind, var, road)
            for term, kind, var, road in zip(terms, kinds, node.inputs, roads, strict=True)
        ]

    def _roads(self, node, i, output_gradients):
        """Return the (output, its gradient) pairs by which input ``i`` influences a source."""
        return [
            (out, g)
            for k, (out, g) in enumerate(zip(node.outputs, output_gradients, strict=True))
            if not is_disconnected(g) and self._patterns.connected(node, i, k)
        ]


# how an input of an Apply influences a source
_DISCONNECTED = "not at all"
_UNDEFINED = "only through outputs whose gradient is undefined"
_DISCRETE = "only through discrete outputs: its gradient is zero"
_DIFFERENTIABLE = "through an output that has a gradient"


def _kind(roads):
    if not roads:
        return _DISCONNECTED
    if all(is_null(g) for _, g in roads):
        return _UNDEFINED
    if all(_is_discrete(out) for out, _ in roads):
        return _DISCRETE
    return _DIFFERENTIABLE


def _is_value(g):
    return not is_null(g) and not is_disconnected(g)


def _settled(term, kind, var, roads):
    """Return the gradient by ``var``: the Op's term, or that which its outputs determine."""
    if kind is _DIFFERENTIABLE or (term is not None and not _is_value(term)):
        return term
    if kind is _UNDEFINED:
        return next(g for _, g in roads if is_null(g))
    if kind is _DISCRETE and _dtype(var) is not None:
        return _filled_like(var, 0.0)
    return disconnected_type.make_variable()


def _cast(g, dtype: str):
    if isinstance(g.type, TensorType | Scalar):
        return cast(g, dtype)
    return g.astype(dtype)  # other types, such as sparse matrices, have methods of their own


def _fitted(g, out):
    """Return the gradient by an output with the dtype and broadcast pattern of the output."""
    if _is_value(g) and hasattr(type(out), "_fitted_gradient"):
        g = out._fitted_gradient(g)  # types with several forms of values choose one
    if not _is_value(g) or _is_discrete(out) or _dtype(out) is None:
        return g
    if _dtype(g) != _dtype(out):
        g = _cast(g, out.type.dtype)
    if isinstance(out.type, TensorType) and isinstance(g.type, TensorType):
        own, wanted = g.type.broadcastable, out.type.broadcastable
        if len(own) == len(wanted) and any(b and not a for a, b in zip(own, wanted, strict=True)):
            g = patternbroadcast(g, [a or b for a, b in zip(own, wanted, strict=True)])
    return g


def _call_L_op(node, output_gradients):
    """Return the list of terms that the Op of ``node`` returns."""
    fitted = [_fitted(g, out) for out, g in zip(node.outputs, output_gradients, strict=True)]
    destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
    # a gradient must read the value that a destroyed input had before
    inputs = [
        var.copy() if i in destroyed and hasattr(var, "copy") else var
        for i, var in enumerate(node.inputs)
    ]
    try:
        with _located(node.op):
            terms = node.op.L_op(inputs, node.outputs, fitted)
    except Exception as e:  # an Op may raise anything: name the Apply
        unused = [k for k, g in enumerate(fitted) if is_disconnected(g)]
        if unused and isinstance(e, _MISUSE) and not isinstance(e, MethodNotDefined):
            raise TypeError(_uses_disconnected(node, unused, e)) from e
        e.add_note(_where(node))
        raise
    if terms is None or not isinstance(terms, Iterable):
        raise TypeError(
            f"{node.op}.grad returned {type(terms).__name__}, expected iterable: return a list "
            f"with one gradient for each input. {_where(node)}"
        )
    terms = list(terms)
    if len(terms) != len(node.inputs):
        raise ValueError(
            f"{node.op} returned the wrong number of gradient terms: {len(terms)} for "
            f"{len(node.inputs)} inputs. For an input without gradient there is a term too, such "
            f"as disconnected_type(). {_where(node)}"
        )
    return terms


#: what computing with a gradient or direction that is not there raises
_MISUSE = (TypeError, AttributeError)


def _uses_disconnected(node, unused, error):
    """Return the message for an Op whose gradient computes with disconnected output gradients."""
    several = len(unused) > 1
    which = f"output{'s' * several} {', '.join(map(str, unused))}"
    return (
        f"{node.op}.grad failed ({type(error).__name__}: {error}). The cost does not depend on "
        f"{which} of the Op, so the gradient{'s' * several} given for {'them' if several else 'it'}"
        f" {'are variables' if several else 'is a variable'} of DisconnectedType, with which "
        "nothing can be computed. In grad or L_op, test each output gradient g by "
        "isinstance(g.type, theano.gradient.DisconnectedType), and leave out its terms; if an "
        "input then has none, return DisconnectedType()() for it and define connection_pattern. "
        f"{_where(node)}"
    )


def _check_term(node, i, term, kind) -> None:
    """Raise an exception unless ``term`` is a valid gradient by input ``i``."""
    op = node.op
    if term is None:
        raise TypeError(
            f"{op}.grad returned None for a gradient term (input {i}), this is prohibited. Instead "
            "of None, return zeros_like(input), disconnected_type(), or a NullType variable such "
            "as those made with the grad_undefined or grad_not_implemented helper functions. "
            + _where(node)
        )
    if not isinstance(term, Variable):
        raise TypeError(
            f"{op}.grad returned {term!r} of type {type(term)} for input {i}, expected a Variable. "
            f"T.as_tensor_variable makes one. {_where(node)}"
        )
    if is_null(term):
        term.type.where = term.type.where or _where(node)
        return
    if is_disconnected(term):
        if kind is _DISCONNECTED:
            return
        message = f"{op}.grad returned DisconnectedType for input {i}."
        if hasattr(op, "connection_pattern"):
            raise TypeError(
                f"{message} Its connection_pattern method does not allow this. {_where(node)}"
            )
        provenance.warn(
            f"{message} You may want to implement a connection_pattern method for it. "
            f"{_where(node)}"
        )
        return
    if kind is _DISCONNECTED:
        raise TypeError(
            f"{op}.grad returned {term} for input {i}. Expected a DisconnectedType instance based "
            f"on the output of the op's connection_pattern method. {_where(node)}"
        )
    if _dtype(term) in dtypes.DISCRETE:
        raise TypeError(
            f"{op}.grad illegally returned an integer-valued variable. (Input index {i}, dtype "
            f"{_dtype(term)}) Cast it to floatX. {_where(node)}"
        )


def _located(op):
    """Give the Applys that a user's Op makes the line in the Op, not the line that called grad."""
    return nullcontext() if _is_ours(op) else provenance.located(None)


def _is_ours(op) -> bool:
    return type(op).__module__.startswith("opwise.")


def _returned_by(node) -> str:
    return f"The term that {node.op}.grad returned"


def _where(node) -> str:
    created = provenance.format_trace(node.trace)
    return f"Met while differentiating {node}" + (f", made at\n{created}" if created else ".")


def _made(var) -> str:
    created = provenance.format_trace(var.made_at)
    return f"\nBacktrace when that variable is created:\n\n{created}" if created else ""


def Lop(
    f: Variable | Sequence[Variable],
    wrt: Variable | Sequence[Variable],
    eval_points: Variable | Sequence[Variable],
    consider_constant: Sequence[Variable] | None = None,
    disconnected_inputs: str = "raise",
) -> Any:
    """Return the left product of ``eval_points`` with the Jacobian of ``f`` by ``wrt``.

    f: a variable or a sequence of them. eval_points: a variable of the type of each. The other
    arguments and the result are as in ``grad``.
    """
    outputs = _variables(f, "f")
    points = _variables(eval_points, "eval_points")
    if len(outputs) != len(points):
        raise ValueError(
            f"f has {len(outputs)} elements, but eval_points has {len(points)}: give one for each"
        )
    return grad(
        cost=None,
        wrt=wrt,
        consider_constant=consider_constant,
        disconnected_inputs=disconnected_inputs,
        known_grads=dict(zip(outputs, points, strict=True)),
    )


def subgraph_grad(
    wrt: Any,
    end: Any,
    start: Mapping[Variable, Variable] | None = None,
    cost: Variable | None = None,
    details: bool = False,
) -> tuple[Any, ...]:
    """Return the gradients of a part of a graph: a list for ``wrt`` and one for ``end``.

    end: variables at which the part ends, not differentiated through; their gradients are what the
    next part takes as ``start``, a dict from variables to known gradients. cost: a scalar variable
    whose gradient is added. details: also return the gradients of ``start`` and of ``cost`` alone
    (None if not given), each by the variables of wrt and end.
    """
    if cost is None and start is None:
        raise ValueError("cost and start can't both be None: there is nothing to differentiate")
    wrt, end = _variables(wrt, "wrt"), _variables(end, "end")
    params = list(dict.fromkeys([*wrt, *end]))

    def gradients(**what):
        return grad(wrt=params, consider_constant=end, disconnected_inputs="ignore", **what)

    start_grads = None if start is None else gradients(cost=None, known_grads=start)
    cost_grads = None if cost is None else gradients(cost=cost)
    if start_grads is None or cost_grads is None:
        total = start_grads or cost_grads or []
    else:
        total = [a + b for a, b in zip(start_grads, cost_grads, strict=True)]
    of = dict(zip(params, total, strict=True))
    result = [of[var] for var in wrt], [of[var] for var in end]
    return (*result, start_grads, cost_grads) if details else result


# --- forward accumulation -------------------------------------------------------------------------


def Rop(
    f: Any,
    wrt: Any,
    eval_points: Any,
    disconnected_outputs: str = "raise",
    return_disconnected: str = "zero",
) -> Any:
    """Return the derivative of ``f`` by ``wrt`` in the direction ``eval_points``.

    f, wrt: a variable, or a sequence of them; the result has the form of f. eval_points: a variable
    for each of wrt, with as many dimensions. disconnected_outputs: 'raise', 'warn' or 'ignore', if
    a variable of f is no result of an operation and is not in wrt, or no operation that can be
    differentiated computes it. return_disconnected: the derivative of such a variable: 'zero',
    'None' or 'disconnected'. Differentiable results that do not depend on wrt have the derivative
    zero.
    """
    disconnected = _Disconnected(
        disconnected_outputs,
        "disconnected_outputs",
        return_disconnected,
        "Rop method was asked to compute the gradient with respect to a variable that is not part "
        "of the computational graph of variables in wrt, or is used only by a non-differentiable "
        "operator",
    )
    directions = _directions(_variables(wrt, "wrt"), eval_points)
    given = set(directions.values())
    outputs = _variables(f, "f")
    constants = _Constants(directions)
    with provenance.located(provenance.capture()):
        for node in io_toposort(directions, outputs):
            points = [_adapted(var, directions.get(var)) for var in node.inputs]
            if any(point is not None for point in points):
                points = constants.zeros_for(node, points)
                for out, direction in zip(node.outputs, _call_R_op(node, points), strict=True):
                    # an output that is in wrt has the direction given for it
                    directions.setdefault(out, direction)
            constants.add_outputs(node)
    results = []
    for out in outputs:
        result = directions.get(out)
        if (result is None or is_disconnected(result)) and constants.is_result(out):
            result = _filled_like(out, 0.0)
        elif result is None or is_disconnected(result):
            disconnected.report(out)
            result = disconnected.value(out)
        if result is not None and result not in given:
            result.rop_of = out
            _results_of_rop.add(result)
        results.append(result)
    return _as_given(f, results)


#: what Rop has returned and programs still hold: without any, graphs are not searched for them
_results_of_rop: WeakSet[Variable] = WeakSet()


def differentiated(outputs: Iterable[Variable]) -> list[Variable]:
    """Return the variables whose Rop is part of the graph of ``outputs``, or of one another's.

    Theano's result of Rop depended on all that the variable depends on, so that programs may list
    these as inputs of functions.
    """
    found: dict[Variable, None] = {}
    graph = [*outputs] if _results_of_rop else []
    while graph:
        graph = [var.rop_of for var in ancestors(graph) if var.rop_of is not None]
        graph = [var for var in dict.fromkeys(graph) if var not in found]
        found.update(dict.fromkeys(graph))
    return list(found)


class _Constants:
    """The variables without a direction whose derivative is zero, not undefined."""

    def __init__(self, directions: dict[Variable, Variable]):
        self.directions = directions
        #: those that an Apply computes
        self.computed: set[Variable] = set()
        self._patterns = _Patterns()

    def _holds(self, var) -> bool:
        point = self.directions.get(var)
        if point is not None and not is_disconnected(point):
            return False
        return var.owner is None or var in self.computed

    def is_result(self, out) -> bool:
        """Return whether the derivative of a result is zero.

        As in Theano, integers have none, except those of an Elemwise.
        """
        return out in self.computed and (
            isinstance(out.owner.op, Elemwise) or not _is_discrete(out)
        )

    def add_outputs(self, node) -> None:
        """Add the outputs of an Apply that are differentiable functions of constants alone.

        An Elemwise without a direction is constant too, such as a comparison.
        """
        for k, out in enumerate(node.outputs):
            if self.directions.get(out) is not None:
                continue
            read = [
                var for i, var in enumerate(node.inputs) if self._patterns.connected(node, i, k)
            ]
            if isinstance(node.op, Elemwise) or (
                (read or not node.inputs) and all(map(self._holds, read))
            ):
                self.computed.add(out)

    def zeros_for(self, node, points):
        """Return the directions of the inputs of an Apply, as its Op expects them.

        Theano gives constants the direction zero, so that None means one thing only; opwise's own
        Ops take None as zero.
        """
        if _is_ours(node.op):
            return points
        return [
            var.zeros_like()
            if point is None and self._holds(var) and hasattr(var, "zeros_like")
            else point
            for var, point in zip(node.inputs, points, strict=True)
        ]


def _directions(wrt, eval_points) -> dict[Variable, Variable]:
    """Check the directions, and return a dict from each variable of wrt to its direction."""
    points = eval_points if isinstance(eval_points, list | tuple) else [eval_points]
    points = [p if isinstance(p, Variable) else as_tensor_variable(p) for p in points]
    if len(wrt) != len(points):
        raise ValueError(
            f"wrt has {len(wrt)} elements, but eval_points has {len(points)}: give one for each"
        )
    for i, (var, point) in enumerate(zip(wrt, points, strict=True)):
        wanted, got = getattr(var.type, "ndim", None), getattr(point.type, "ndim", None)
        if wanted != got:
            raise ValueError(
                f"Element {i} of wrt/eval_point have mismatched dimensionality: {wanted} versus "
                f"{got}. A direction must have the shape of {var}."
            )
    return dict(zip(wrt, points, strict=True))


def _adapted(var, point):
    """Return a direction in the dtype of its variable; None for no direction."""
    if point is None or is_disconnected(point):
        return None
    if _dtype(var) in dtypes.CONTINUOUS and _dtype(point) != _dtype(var):
        return cast(point, var.type.dtype)
    return point


def _call_R_op(node, points):
    try:
        with _located(node.op):
            results = node.op.R_op(node.inputs, points)
    except Exception as e:  # an Op may raise anything: name the Apply
        still = [str(i) for i, point in enumerate(points) if point is None]
        if still and isinstance(e, _MISUSE) and not isinstance(e, MethodNotDefined):
            raise TypeError(
                f"{node.op}.R_op failed ({type(e).__name__}: {e}). The direction of input "
                f"{', '.join(still)} is None: it is not differentiated by. In R_op, test each "
                f"direction by 'is None', and leave out its terms. {_where(node)}"
            ) from e
        e.add_note(_where(node))
        raise
    if results is None:
        return [None] * len(node.outputs)
    if len(results) != len(node.outputs):
        raise ValueError(
            f"{node.op}.R_op returned {len(results)} results for {len(node.outputs)} outputs. "
            f"{_where(node)}"
        )
    return results


# --- Ops that change only the gradient ------------------------------------------------------------


class GradientMarker(ViewOp):
    """Base of Ops that return their input and change its gradient."""

    R_op = zero_derivative

    def __str__(self):
        return type(self).__name__


class ConsiderConstant(GradientMarker):
    """Makes the gradient zero."""

    def grad(self, inputs, output_gradients):
        return [_filled_like(g, 0.0) for g in output_gradients]


class ZeroGrad(ConsiderConstant):
    """Makes the gradient zero; the input counts as connected."""

    def R_op(self, inputs, eval_points):
        return [None if p is None else _filled_like(p, 0.0) for p in eval_points]


class DisconnectedGrad(GradientMarker):
    """Cuts the gradient: the input counts as not connected."""

    def grad(self, inputs, output_gradients):
        return [disconnected_type.make_variable()]

    connection_pattern = connects()


class UndefinedGrad(GradientMarker):
    """Makes the gradient undefined: a gradient that depends on it raises NullTypeGradError."""

    def grad(self, inputs, output_gradients):
        return [grad_undefined(self, 0, inputs[0])]

    connection_pattern = connects(0)


class GradClip(GradientMarker):
    """Clips the gradient elementwise."""

    __props__: tuple[str, ...] = ("clip_lower_bound", "clip_upper_bound")

    def __init__(self, clip_lower_bound, clip_upper_bound):
        self.clip_lower_bound = clip_lower_bound
        self.clip_upper_bound = clip_upper_bound
        if not clip_upper_bound >= clip_lower_bound:
            raise ValueError(
                f"GradClip needs lower <= upper, got {clip_lower_bound} and {clip_upper_bound}"
            )

    def grad(self, inputs, output_gradients):
        clip = elemwise("clip")
        return [clip(g, self.clip_lower_bound, self.clip_upper_bound) for g in output_gradients]

    def R_op(self, inputs, eval_points):
        raise MethodNotDefined("R_op", type(self), "a clipped gradient has no forward counterpart")


class GradScale(GradientMarker):
    """Multiplies the gradient by a number."""

    __props__: tuple[str, ...] = ("multiplier",)

    def __init__(self, multiplier):
        self.multiplier = multiplier

    def grad(self, inputs, output_gradients):
        return [elemwise("mul")(self.multiplier, g) for g in output_gradients]

    def R_op(self, inputs, eval_points):
        return [None if p is None else elemwise("mul")(self.multiplier, p) for p in eval_points]


consider_constant_ = ConsiderConstant()
zero_grad_ = ZeroGrad()
disconnected_grad_ = DisconnectedGrad()
undefined_grad_ = UndefinedGrad()


def consider_constant(x: Any) -> Any:
    """Return ``x`` with a gradient of zeros. Deprecated: use zero_grad or disconnected_grad."""
    warnings.warn(
        "consider_constant() is deprecated, use zero_grad() or disconnected_grad() instead.",
        stacklevel=2,
    )
    return consider_constant_(x)


def zero_grad(x: Any) -> Any:
    """Return ``x`` with a gradient of zeros."""
    return zero_grad_(x)


def disconnected_grad(x: Any) -> Any:
    """Return ``x``; gradients treat it as independent of all other variables."""
    return disconnected_grad_(x)


def undefined_grad(x: Any) -> Any:
    """Return ``x``; differentiating through it raises NullTypeGradError."""
    return undefined_grad_(x)


def grad_clip(x: Any, lower_bound: float, upper_bound: float) -> Any:
    """Return ``x``; the gradient by it is clipped elementwise to the two numbers."""
    return GradClip(lower_bound, upper_bound)(x)


def grad_scale(x: Any, multiplier: float) -> Any:
    """Return ``x``; the gradient by it is multiplied by a number, which may be negative."""
    return GradScale(multiplier)(x)


# --- numeric check --------------------------------------------------------------------------------

#: tolerances of verify_grad by the narrowest dtype of the inputs
_TOLERANCE = {"float16": 5e-2, "float32": 1e-2, "float64": 1e-4}
_TYPE_EPS = {"float64": 1e-7, "float32": 3e-4, "float16": 1e-1}


def _real_dtype(dtype: str) -> str:
    """Return a dtype, or for a complex one that of its parts."""
    return np.empty(0, dtype).real.dtype.name


class numeric_grad:
    """The gradient of a function by finite differences, in ``gf``.

    f: called with one array for each point; returns a number. pt: an array or a list of arrays of
    floats. eps: step; the default depends on the narrowest of the dtypes of pt and ``out_type``.
    ``gf`` has the form of pt, in the widest of its dtypes, or complex if ``out_type`` is.
    """

    type_eps = _TYPE_EPS

    def __init__(self, f: Callable, pt, eps: float | None = None, out_type: str | None = None):
        single = not isinstance(pt, list | tuple)
        points = [np.array(p) for p in ([pt] if single else pt)]
        names = [p.dtype.name for p in points]
        if eps is None:
            narrow = names if out_type is None else [*names, _real_dtype(out_type)]
            eps = max(self.type_eps[name] for name in narrow)
        working = np.result_type(*points)
        points = [p.astype(working) for p in points]
        complex_out = out_type is not None and np.dtype(out_type).kind == "c"
        slope_dtype = np.result_type(working, out_type) if complex_out else working

        def value():
            # in the dtype that f returns: rounded to that of the points, differences would be lost
            return np.asarray(f(*(p.copy() for p in points)))

        base = value()
        slopes = []
        for p in points:
            g = np.empty(p.shape, slope_dtype)
            for at in np.ndindex(p.shape):
                kept = p[at]
                p[at] = kept + eps
                # divided by the actual step, after rounding
                g[at] = (value() - base) / (p[at] - kept)
                p[at] = kept
            slopes.append(g)
        self.gf = slopes[0] if single else slopes

    @staticmethod
    def abs_rel_err(a, b):
        """Return the absolute and the relative error of every element."""
        abs_err = np.abs(a - b)
        return abs_err, abs_err / np.maximum(np.abs(a) + np.abs(b), 1e-8)

    def abs_rel_errors(self, g_pt):
        """Return the list of (absolute, relative) errors against the gradients ``g_pt``."""
        gf = self.gf if isinstance(self.gf, list) else [self.gf]
        if len(g_pt) != len(gf):
            raise ValueError(f"expected {len(gf)} gradients, got {len(g_pt)}")
        errors = []
        for i, (mine, given) in enumerate(zip(gf, g_pt, strict=True)):
            given = given.toarray() if hasattr(given, "toarray") else np.asarray(given)
            if mine.shape != given.shape:
                raise ValueError(
                    f"gradient {i} has the shape {given.shape}, expected that of the point, "
                    f"{mine.shape}"
                )
            errors.append(self.abs_rel_err(mine, given))
        return errors

    def max_err(self, g_pt, abs_tol: float, rel_tol: float):
        """Return (argument, flat position, absolute error, relative error) of the worst element.

        Each error is divided by its tolerance, and the smaller quotient of an element counts. An
        element that is not finite is the worst.
        """
        worst = (0, 0, 0.0, 0.0)
        badness = -1.0
        for arg, (abs_err, rel_err) in enumerate(self.abs_rel_errors(g_pt)):
            if not abs_err.size:
                continue
            bad = np.minimum(abs_err / abs_tol, rel_err / rel_tol).ravel()
            bad[np.isnan(bad)] = np.inf
            position = int(bad.argmax())
            if bad[position] > badness:
                badness = bad[position]
                worst = (
                    arg,
                    position,
                    float(abs_err.flat[position]),
                    float(rel_err.flat[position]),
                )
        return worst


class GradientError(Exception):
    """A symbolic gradient and the numeric one differ by more than the tolerances."""

    def __init__(
        self, arg, err_pos, shape, val1, val2, abs_err, rel_err, abs_tol, rel_tol, *context
    ):
        super().__init__(*context)
        self.arg = arg
        self.err_pos = err_pos
        self.shape = shape
        self.val1 = val1
        self.val2 = val2
        self.abs_err = abs_err
        self.rel_err = rel_err
        self.abs_tol = abs_tol
        self.rel_tol = rel_tol

    def __str__(self):
        context = ", ".join(map(str, self.args))
        return (
            "GradientError: numeric gradient and analytic gradient exceed tolerance:\n"
            f"        At position {self.err_pos} of argument {self.arg} with shape {self.shape},\n"
            f"            val1 = {self.val1:f}      ,  val2 = {self.val2:f}\n"
            f"            abs. error = {self.abs_err:f},  abs. tolerance = {self.abs_tol:f}\n"
            f"            rel. error = {self.rel_err:f},  rel. tolerance = {self.rel_tol:f}\n"
            "val1 is the gradient that the graph computes, val2 the numeric gradient: check the "
            "method grad of the Op.\n"
            f"Exception args: {context}"
        )


def verify_grad(
    fun: Callable,
    pt: Sequence,
    n_tests: int = 2,
    rng: Any = None,
    eps: float | None = None,
    out_type: str | None = None,
    abs_tol: float | None = None,
    rel_tol: float | None = None,
    mode: Any = None,
    cast_to_output_type: bool = False,
    no_debug_ref: bool = True,
) -> None:
    """Raise GradientError unless the gradient of ``fun`` agrees with finite differences at ``pt``.

    fun: an Op, or a function from tensor variables to one tensor variable. pt: a list of arrays of
    floats. The output is projected on ``n_tests`` random directions drawn from ``rng`` (a
    RandomState or Generator; by default one with a fixed seed). eps, out_type: see numeric_grad.
    abs_tol, rel_tol: an element may exceed one of them; by default they follow from the dtypes.
    cast_to_output_type: draw the directions in the dtype of the output if that is float32.
    no_debug_ref: compute the numeric gradient without the checks of DebugMode.
    """
    points = _check_points(pt)
    rng = np.random.RandomState(123) if rng is None else rng
    dtype_names = [p.dtype.name for p in points]
    if abs_tol is None:
        abs_tol = max(_TOLERANCE[name] for name in dtype_names)
    if rel_tol is None:
        rel_tol = max(_TOLERANCE[name] for name in dtype_names)

    inputs = [
        tensor_type(p.dtype.name, tuple(n == 1 for n in p.shape))(f"input {i}")
        for i, p in enumerate(points)
    ]
    output = fun(*inputs)
    if isinstance(output, list | tuple):
        raise NotImplementedError(
            "verify_grad cannot check a fun with several outputs: let it return one of them"
        )
    # summed in float64, for all dtypes of the output
    narrow = cast_to_output_type and output.type.dtype == "float32"
    projection_type = tensor_type("float32" if narrow else "float64", output.type.broadcastable)
    projection = projection_type("random_projection")
    cost = sum_(elemwise("mul")(projection, output))
    gradients = grad(cost, inputs, disconnected_inputs="ignore")

    def compiled(outputs, name, mode=mode):
        return upcalls.compile_function(
            [projection, *inputs], outputs, mode=mode, name=f"gradient.py {name}",
            allow_input_downcast=True, on_unused_input="ignore", accept_inplace=True,
        )  # fmt: skip

    shape = np.shape(
        upcalls.compile_function(
            inputs,
            output,
            mode=mode,
            name="gradient.py fwd",
            on_unused_input="ignore",
            accept_inplace=True,
        )(*(p.copy() for p in points))
    )
    cost_fn = compiled(cost, "cost", _without_debug(mode) if no_debug_ref else mode)
    grad_fn = compiled(gradients, "symbolic grad")
    for _ in range(n_tests):
        # away from 0, where the numeric gradient is inaccurate
        direction = np.asarray(rng.uniform(0.5, 1.5, size=shape), projection_type.dtype)
        analytic = grad_fn(direction, *(p.copy() for p in points))
        _compare(
            numeric_grad(lambda *ps, d=direction: cost_fn(d, *ps), points, eps, out_type),
            analytic, abs_tol, rel_tol,
            ("\nThe error happened with the following inputs:", points,
             "\nThe value of eps is:", eps, "\nThe out_type is:", out_type),
        )  # fmt: skip


def _check_points(pt) -> list[np.ndarray]:
    if not isinstance(pt, list | tuple):
        raise TypeError(
            f"verify_grad needs a list of arrays as pt, not {type(pt)}: write [pt], an array for "
            "each argument"
        )
    points = [np.array(p) for p in pt]
    for i, p in enumerate(points):
        if p.dtype.name not in _TOLERANCE:
            raise TypeError(
                "verify_grad can work only with floating point inputs, but input "
                f'{i} has dtype "{p.dtype}". Give arrays of floats.'
            )
    return points


def _compare(numeric, analytic, abs_tol, rel_tol, context) -> None:
    """Raise GradientError if an element exceeds both tolerances, or is not finite."""
    arg, position, abs_err, rel_err = numeric.max_err(analytic, abs_tol, rel_tol)
    if abs_err <= abs_tol or rel_err <= rel_tol:
        return
    raise GradientError(
        arg, position, analytic[arg].shape,
        float(analytic[arg].flat[position]), float(numeric.gf[arg].flat[position]),
        abs_err, rel_err, abs_tol, rel_tol, *context,
    )  # fmt: skip


# legacy programs catch the error by this name
verify_grad.E_grad = GradientError  # type: ignore[attr-defined]


def _without_debug(mode):
    """Return a mode that computes the same without the checks of DebugMode."""
    mode = config.mode if mode is None else mode
    name = mode if isinstance(mode, str) else type(mode).__name__
    return "FAST_RUN" if "debug" in name.lower() else mode
