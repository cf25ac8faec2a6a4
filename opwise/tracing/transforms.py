"""Functions of functions: gradients and derivatives of numpy functions, and their batching.

Each returns a function that is compiled as by ``jit``, and that may be called in functions that are
traced. Arguments may be lists, tuples, dicts and dataclasses; so may results and gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise import gradient
from opwise import tensor as T
from opwise.errors import TracingError
from opwise.graph.traversal import ancestors, clone_replace
from opwise.graph.variable import Variable
from opwise.loops.build import scan
from opwise.loops.jacobians import hessian as hessian_of_variable
from opwise.loops.jacobians import jacobian as jacobian_of_variable
from opwise.tracing import shaping, trees
from opwise.tracing.calling import convert_function
from opwise.tracing.control import joined_writes
from opwise.tracing.jitted import Jit
from opwise.tracing.trace import current, untraceable
from opwise.tracing.values import (
    Number,
    Root,
    Traced,
    array,
    as_traced,
    dim_variable,
    fitted,
    is_one,
    number_variable,
    require_equal,
)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function to trace: of a Jit the one that it compiles."""
    if isinstance(function, Jit):
        function = function.function
    if not callable(function):
        raise TypeError(f"expected a function, not {function!r}")
    return function


def _numbers(argnums: Any) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _only_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises the error of another one, in Python."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        raise TracingError(
            "The function handles an error for these arguments, and what it does then has no "
            "derivative and cannot be batched."
        )

    return run


class _Cut:
    """Arguments of a function, cut from what they are computed from.

    The function is traced with new variables for the floats in some arguments; ``joined`` puts what
    they stand for in their place again.
    """

    def __init__(self, args: Sequence[Any], argnums: Sequence[int], name: str) -> None:
        self.args = list(args)
        #: for each differentiated leaf: its value, its variable before, and the new variable
        self.leaves: list[Any] = []
        self.before: list[Any] = []
        self.places: list[Any] = []
        self.structures: dict[int, Any] = {}
        for number in argnums:
            if not -len(args) <= number < len(args):
                raise ValueError(f"{name} by argument {number} of {len(args)} that are given")
            leaves, structure = trees.flatten(args[number])
            self.structures[number] = structure
            self.args[number] = trees.unflatten(structure, [self._cut(x, name) for x in leaves])

    def _cut(self, leaf: Any, name: str) -> Any:
        if isinstance(leaf, np.ndarray | np.generic | float | complex):
            value: Any = leaf if isinstance(leaf, float) else as_traced(leaf)
        else:
            value = leaf
        if isinstance(value, float):
            value = Number("f", T.constant(np.asarray(value)), value, repr(value))
        if type(value) is Number and value.kind in "fc":
            before = value.variable
            place = before.type()
            made: Any = Number(value.kind, place)
        elif type(value) is Traced and value.dtype.kind in "fc":
            before = value.variable
            place = before.type()
            made = Traced(Root(place), value.dims, (), value.scalar, value.contiguous)
        else:
            raise TypeError(
                f"{name} needs floats, not {leaf!r}: choose other arguments by argnums, or convert "
                "them by astype(float)."
            )
        self.leaves.append(value)
        self.before.append(before)
        self.places.append(place)
        return made

    def joined(self, variables: Sequence[Any]) -> list[Any]:
        """Return variables with the former ones in place of those of the cut."""
        replacements = dict(zip(self.places, self.before, strict=True))
        return list(clone_replace(list(variables), replacements))

    def joined_value(self, value: Any) -> Any:
        """Return a result of the function, as one of its arguments before the cut."""
        leaves, structure = trees.flatten(value)
        made = []
        for leaf in leaves:
            if type(leaf) is Traced:
                (variable,) = self.joined([leaf.variable])
                leaf = Traced(Root(variable), leaf.dims, (), leaf.scalar, leaf.contiguous)
            elif type(leaf) is Number:
                hint = leaf.hint if leaf.text is not None else None
                (variable,) = self.joined([leaf.variable])
                if hint is None:
                    leaf = Number(leaf.kind, variable)
                else:
                    leaf = Number(leaf.kind, variable, hint, leaf.text, leaf.of_lengths)
            made.append(leaf)
        return trees.unflatten(structure, made)

    def gradient(self, number: int, variables: Sequence[Any]) -> Any:
        """Return variables, one for each leaf of an argument, as a tree like the argument."""
        start = 0
        for other, structure in self.structures.items():
            count = _count(structure)
            if other == number:
                parts = [
                    _like(leaf, variable)
                    for leaf, variable in zip(
                        self.leaves[start : start + count], variables[start : start + count],
                        strict=True,
                    )
                ]  # fmt: skip
                return trees.unflatten(structure, parts)
            start += count
        raise AssertionError(number)


def _count(structure: Any) -> int:
    return 1 if structure is trees.LEAF else sum(map(_count, structure.parts))


def _like(leaf: Any, variable: Any) -> Any:
    if type(leaf) is Number:
        return Number(leaf.kind, variable)
    if variable.type.dtype != leaf.variable.type.dtype:
        variable = T.cast(variable, leaf.variable.type.dtype)
    return array(fitted(variable, leaf.dims), leaf.dims, leaf.scalar)


def _call(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    joined: Callable[[Sequence[Any]], list[Any]],
) -> Any:
    """Trace a function; arrays that it changes in place are refused, but for its own.

    joined: gives variables of it their values outside.
    """
    trace = current()
    log: dict[Root, Any] = {}
    first = next(Root.serials)
    if trace is not None:
        trace.written.append(log)
    try:
        with joined_writes():  # the VM runs what derivatives and batches are made of
            result = convert_function(function).call(*args, **kwargs)
    finally:
        if trace is not None:
            trace.written.pop()
    for value in trees.flatten(list(args))[0]:
        if type(value) is Traced and value.root in log and value.root.version:
            raise untraceable(
                "A function of which a derivative is taken, or that vmap batches, changes an "
                "argument in place.",
                "Let it change a copy: x = x.copy().",
            )
    for root in log:
        if trace is not None and root in (trace.raised, trace.missed, trace.crowded):
            (root.variable,) = joined([root.variable])
        elif root.serial < first:
            raise untraceable(
                "A function of which a derivative is taken, or that vmap batches, changes an array "
                "that it did not make.",
                "Let it change a copy.",
            )
    return result


def _cost(value: Any) -> Any:
    """Return the variable of what is differentiated: one real number."""
    if isinstance(value, tuple | list | dict):
        raise TypeError(
            f"A gradient is that of one number, and the function returned {type(value).__name__}. "
            "Return the number alone; with has_aux=True, a pair of it and something else."
        )
    if isinstance(value, int | float | np.generic):
        return T.constant(np.asarray(value, float))
    if type(value) is Number:
        if value.kind == "f":
            return value.variable
        return number_variable(value, "f")
    if type(value) is not Traced or value.dtype.kind not in "f":
        what = value.dtype if type(value) is Traced else type(value).__name__
        raise TypeError(f"A gradient is that of a real float, and the function returned {what}.")
    if value.ndim:
        raise TypeError(
            f"A gradient is that of one number, and the function returned an array of "
            f"{value.ndim} dimensions. Return its sum or mean, or use opwise.jacobian."
        )
    return value.variable


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Any:
    """Return a function that returns the value of another one, and its gradient.

    function: returns one real number; with has_aux a pair of it and any other results. argnums: the
    positions of the arguments by which it is differentiated: floats, arrays of floats, or trees of
    them. The gradient is a tree like the argument, or a tuple of them if argnums is a sequence.

    Calls raise TypeError if the result is no real number, or an argument has no floats.
    """
    function = _plain(function)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        numbers = [n % len(args) for n in _numbers(argnums)]
        cut = _Cut(args, numbers, "A gradient")
        result = _call(function, cut.args, kwargs, cut.joined)
        value, aux = result if has_aux else (result, None)
        cost = _cost(value)
        found = gradient.grad(cost, cut.places, disconnected_inputs="ignore")
        found = cut.joined(found)
        gradients = tuple(cut.gradient(n, found) for n in numbers)
        shown = gradients[0] if isinstance(argnums, int) else gradients
        value = cut.joined_value(value)
        return ((value, cut.joined_value(aux)) if has_aux else value), shown

    return Jit(differentiated, plain=_only_errors(function))


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Any:
    """Return a function that returns the gradient of another one; see ``value_and_grad``.

    With has_aux it returns a pair of the gradient and the other results.
    """
    function = _plain(function)
    inner = value_and_grad(function, argnums, has_aux).function

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, gradients = inner(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return Jit(differentiated, plain=_only_errors(function))


def _rows(value: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the elements of a result as a vector, and its shape."""
    traced = as_traced(value)
    if traced.dtype.kind != "f":
        raise TypeError(f"A Jacobian is that of real floats, not of {traced.dtype}.")
    if not traced.ndim:
        return traced.variable, ()
    return T.flatten(traced.variable), traced.dims


def jacobian(function: Any, argnums: Any = 0, *args: Any, **kwargs: Any) -> Any:
    """Return a function that returns the derivatives of all elements of a result.

    function: returns an array of real floats. argnums: as for ``value_and_grad``. For a result of
    shape s and an argument of shape t a Jacobian has the shape ``(*s, *t)``.

    For a symbolic vector, and the variables ``wrt``, return the symbolic Jacobian: the arguments
    are those of ``opwise.gradient.jacobian``.
    """
    if isinstance(function, Variable):
        return jacobian_of_variable(function, argnums, *args, **kwargs)
    function = _plain(function)

    @functools.wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        numbers = [n % len(args) for n in _numbers(argnums)]
        cut = _Cut(args, numbers, "A Jacobian")
        vector, shape = _rows(_call(function, cut.args, kwargs, cut.joined))
        if shape:
            found = jacobian_of_variable(vector, cut.places, disconnected_inputs="ignore")
        else:
            found = gradient.grad(vector, cut.places, disconnected_inputs="ignore")
        found = cut.joined(found)
        trees_ = []
        start = 0
        for n in numbers:
            parts: list[Any] = []
            for leaf in cut.leaves[start : start + _count(cut.structures[n])]:
                own = leaf.dims if type(leaf) is Traced else ()
                variable = found[start + len(parts)]
                dims = (*shape, *own)
                variable = T.reshape(variable, [dim_variable(d) for d in dims], ndim=len(dims))
                parts.append(array(fitted(variable, dims), dims, not dims))
            start += len(parts)
            trees_.append(trees.unflatten(cut.structures[n], parts))
        return trees_[0] if isinstance(argnums, int) else tuple(trees_)

    return Jit(differentiated, plain=_only_errors(function))


def hessian(function: Any, argnums: Any = 0, *args: Any, **kwargs: Any) -> Any:
    """Return a function that returns the second derivatives of a number.

    function: returns one real number. argnums: the position of an argument that is an array of
    shape s; the result has the shape ``(*s, *s)``.

    For a symbolic scalar, and the vectors ``wrt``, return the symbolic Hessian: the arguments are
    those of ``opwise.gradient.hessian``.
    """
    if isinstance(function, Variable):
        return hessian_of_variable(function, argnums, *args, **kwargs)
    return jacobian(grad(function, argnums), argnums)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """Return the value of a function and its derivative in a direction.

    primals: the arguments. tangents: the direction, with the structure of the arguments. Returns
    (value, derivative), both with the structure of the value.

    Raises ValueError if the structures differ.
    """
    return _jvp(_plain(function))(tuple(primals), tuple(tangents))


@functools.lru_cache(maxsize=256)
def _jvp(function: Callable[..., Any]) -> Jit:
    def differentiated(primals: Any, tangents: Any) -> Any:
        cut = _Cut(primals, range(len(primals)), "A derivative")
        points, _ = trees.flatten(list(tangents))
        if len(points) != len(cut.places):
            raise ValueError("The tangents have another structure than the primals.")
        directions = [
            number_variable(p, "f") if type(leaf) is Number else T.cast(
                as_traced(p).variable, place.type.dtype
            )
            for p, leaf, place in zip(points, cut.leaves, cut.places, strict=True)
        ]  # fmt: skip
        value = _call(function, cut.args, {}, cut.joined)
        leaves, structure = trees.flatten(value)
        made = []
        for leaf in leaves:
            traced = as_traced(leaf)
            found = gradient.Rop(traced.variable, cut.places, directions)
            if found is None:
                found = T.zeros_like(traced.variable)
            (variable,) = cut.joined([found])
            made.append(array(fitted(variable, traced.dims), traced.dims, not traced.ndim))
        return cut.joined_value(value), trees.unflatten(structure, made)

    return Jit(differentiated, plain=_only_errors(lambda primals, tangents: function(*primals)))


def vjp(function: Callable[..., Any], *primals: Any) -> Any:
    """Return the value of a function, and a function from cotangents to gradients.

    The function that is returned takes weights with the structure of the value, and returns a tuple
    of the gradients of the weighted sum, one for each of ``primals``.
    """
    function = _plain(function)
    value = Jit(function)(*primals)

    def pull(weights: Any) -> Any:
        return _vjp(function)(tuple(primals), weights)

    return value, pull


@functools.lru_cache(maxsize=256)
def _vjp(function: Callable[..., Any]) -> Jit:
    def differentiated(primals: Any, weights: Any) -> Any:
        cut = _Cut(primals, range(len(primals)), "A derivative")
        value, _ = trees.flatten(_call(function, cut.args, {}, cut.joined))
        given, _ = trees.flatten(weights)
        if len(value) != len(given):
            raise ValueError("The cotangents have another structure than the value.")
        terms = [
            T.sum(as_traced(np.multiply(as_traced(v), as_traced(w))).variable)
            for v, w in zip(value, given, strict=True)
        ]
        total = functools.reduce(lambda a, b: a + b, terms)
        found = cut.joined(gradient.grad(total, cut.places, disconnected_inputs="ignore"))
        return tuple(cut.gradient(n, found) for n in range(len(primals)))

    return Jit(differentiated, plain=_only_errors(lambda primals, weights: function(*primals)))


# --- batching -------------------------------------------------------------------------------------


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Any:
    """Return a function that applies another one to each row of arrays.

    in_axes: the axis of the rows in each argument, None for those that all rows share; one for all
    arguments, or a sequence with one for each. Of an argument that is a tree it holds for all
    arrays in it. out_axes: the axis of the rows in the results.

    Calls raise ValueError if no argument has rows, or the numbers of rows differ.
    """
    function = _plain(function)

    @functools.wraps(function)
    def batched(*args: Any, **kwargs: Any) -> Any:
        axes = (in_axes,) * len(args) if in_axes is None or isinstance(in_axes, int) else in_axes
        if len(axes) != len(args):
            raise ValueError(f"vmap has in_axes for {len(axes)} arguments, and got {len(args)}")
        sequences: list[Any] = []
        places: list[Any] = []
        length: Any = None
        inner = []
        for arg, axis in zip(args, axes, strict=True):
            if axis is None:
                inner.append(arg)
                continue
            leaves, structure = trees.flatten(arg)
            parts = []
            for leaf in leaves:
                traced = as_traced(leaf)
                if not traced.ndim:
                    raise ValueError("vmap cannot take rows of a number: give None in in_axes")
                rows = shaping.moveaxis(traced, axis, 0)
                if length is None:
                    length = rows.dims[0]
                else:
                    length = require_equal(
                        length, rows.dims[0],
                        lambda: ValueError("vmap got arguments with different numbers of rows"),
                    )  # fmt: skip
                variable = rows.variable
                row = variable[0].type()
                if tuple(row.type.broadcastable) != tuple(map(is_one, rows.dims[1:])):
                    raise AssertionError(row.type)
                sequences.append(T.unbroadcast(variable, 0) if is_one(rows.dims[0]) else variable)
                places.append(row)
                parts.append(Traced(Root(row), rows.dims[1:], (), rows.ndim == 1, rows.contiguous))
            inner.append(trees.unflatten(structure, parts))
        if not sequences:
            raise ValueError("vmap needs an argument with rows")

        def rows_of(outputs: Sequence[Any]) -> list[Any]:
            def step(*rows: Any) -> Any:
                return list(clone_replace(list(outputs), dict(zip(places, rows, strict=False))))

            return scan(step, sequences=sequences, return_list=True)[0] if outputs else []

        result = _call(function, inner, kwargs, lambda given: [T.any(rows_of(given)[0])])
        leaves, structure = trees.flatten(result)
        values = [as_traced(leaf) for leaf in leaves]
        depending = [k for k, v in enumerate(values) if set(places) & set(ancestors([v.variable]))]
        found = rows_of([values[k].variable for k in depending])
        stacked = dict(zip(depending, found, strict=True))
        made = []
        for k, value in enumerate(values):
            dims = (length, *value.dims)
            if k in stacked:
                rows = array(fitted(stacked[k], dims), dims)
            else:
                rows = shaping.copied(shaping.broadcast_to(value, dims))
            made.append(shaping.moveaxis(rows, 0, out_axes) if out_axes else rows)
        return trees.unflatten(structure, made)

    def by_rows(*args: Any, **kwargs: Any) -> None:
        axes = (in_axes,) * len(args) if in_axes is None or isinstance(in_axes, int) else in_axes
        parts = [trees.flatten(arg) for arg in args]
        rows = next(
            len(np.moveaxis(leaves[0], axis, 0))
            for (leaves, _), axis in zip(parts, axes, strict=True) if axis is not None
        )  # fmt: skip
        for k in range(rows):
            function(*[
                trees.unflatten(s, [leaf if axis is None else np.take(leaf, k, axis) for leaf in x])
                for (x, s), axis in zip(parts, axes, strict=True)
            ], **kwargs)  # fmt: skip

    return Jit(batched, plain=_only_errors(by_rows))
