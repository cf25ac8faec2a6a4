"""Comprehensions and generators that a function reads at once, as loops.

``sum(f(v) for v in x)`` is a loop with a state, ``numpy.array([f(v) for v in x])`` one that writes
the rows of an array. Of all other functions, and where there is no loop, Python goes through them.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from opwise.errors import TracingError
from opwise.tensor.type import tensor_type
from opwise.tracing import branches, control, shaping
from opwise.tracing.control import Steps
from opwise.tracing.kinds import LoopError
from opwise.tracing.lists import NeedsMemory, TracedList, own_list
from opwise.tracing.trace import current
from opwise.tracing.values import UNKNOWN, Number, Traced, as_traced, hint_of


class Comprehension:
    """A comprehension, or a generator, that is an argument of a call.

    items: returns what it goes through. condition: of an item, whether it has an element; None for
    all. element: of an item, its element, or the inner Comprehension if it has several ``for``.
    python: of what it goes through, makes the list or the generator; inner ones have none.
    """

    def __init__(
        self,
        items: Callable[[], Any],
        condition: Callable[[Any], Any] | None,
        element: Callable[[Any], Any],
        python: Callable[[Any], Any] | None = None,
    ) -> None:
        self._condition, self._element, self._python = condition, element, python
        self._items = functools.cache(items)  # which may draw, or take from an iterator

    @property
    def is_inner(self) -> bool:
        """Whether it is one of several ``for`` of a comprehension, and makes no list of its own."""
        return self._python is None

    @property
    def steps(self) -> Steps | None:
        """What it goes through, if a loop can."""
        return control.steps_of(self._items())

    def python(self) -> Any:
        """Return the list, or the generator."""
        assert self._python is not None
        return self._python(self._items())

    def is_loop(self) -> bool:
        """Return whether a loop goes through it: calls decide how often, or it is often."""
        if current() is None or (steps := self.steps) is None:
            return False
        length = steps.length
        if type(length) is not Number:
            return bool(length > control.UNROLLED)
        return not length.known or bool(length > 0)

    def each(self, body: Callable[[Any], None], held: list[Any], stop: bool = False) -> None:
        """Do ``body(element)`` for all elements. It changes what is held.

        stop: its last one ends the loop if it is true.
        """
        names = ("ow_result", "ow_stop")[: len(held)]

        def get() -> tuple[Any, ...]:
            return tuple(held)

        def set_(values: tuple[Any, ...]) -> None:
            held[:] = values

        def step(item: Any) -> None:
            def then() -> None:
                body(self._element(item))

            if self._condition is None:
                then()
            else:
                branches.if_statement(self._condition(item), then, _nothing, get, set_, names)

        control.for_statement(
            self._items(), step, get, set_, names, names[:1], names[1] if stop else None
        )

    def example(self) -> Any:
        """Return an element, which nobody reads, as an array; None if elements are not alike."""
        steps = self.steps
        if steps is None or (made := _example(steps, self._element)) is None:
            return None
        return made[0]

    def rows(self) -> Any:
        """Return a list's array; NotImplemented if its elements have no common type or shape."""
        steps = self.steps
        assert steps is not None
        if type(steps.length) is Number and not steps.length.known:
            return NotImplemented
        functions = [f for f in (self._condition, self._element) if f is not None]
        made = [_example(steps, function) for function in functions]
        if any(each is None for each in made):
            return NotImplemented
        if self._condition is not None and any(wrote for _, wrote in made):  # type: ignore[misc]
            return NotImplemented  # of items without an element too
        arrays = [
            _rows(steps, function, sample)
            for function, (sample, _) in zip(functions, made, strict=True)  # type: ignore[misc]
        ]
        return arrays[0] if len(arrays) == 1 else arrays[1][arrays[0]]


def _value(element: Any) -> Traced:
    """Return an element as an array."""
    if not isinstance(element, Comprehension):
        return as_traced(element)
    if element.is_inner:
        raise LoopError("its elements are those of several loops")
    made = element.rows() if element.is_loop() else NotImplemented
    return as_traced(list(element.python()) if made is NotImplemented else made)


def _example(steps: Steps, function: Callable[[Any], Any]) -> tuple[Traced, bool] | None:
    """Return (what a function gives of any item, whether it writes); None if that is not one shape.

    Nothing remains of what it does.
    """
    step = Number("i", tensor_type("int64", ())("step"))
    made = branches.tried(lambda: _value(function(steps.item(step))))
    if made is None or any(hint_of(d) is UNKNOWN for d in made[0].dims):
        return None
    return made


def _rows(steps: Steps, function: Callable[[Any], Any], sample: Traced) -> Any:
    if type(steps.length) is Number and (sample.ndim or sample.dtype != np.float64):
        bool(steps.length > 0)  # a condition of the signature: numpy's array of none is another
    out = shaping.full((steps.length, *sample.dims), 0, sample.dtype)

    def step(k: Any) -> None:
        out[k] = _value(function(steps.item(k)))

    control.for_statement(
        Steps(steps.length, lambda k: k), step, tuple, lambda values: None, (), (), None
    )
    return out


def _nothing() -> None:
    pass


def _total(over: Comprehension, start: Any, add: Callable[[Any, Any], Any]) -> Any:
    """Return what ``value = add(value, element)`` gives for all elements."""
    held = [start]

    def change(element: Any) -> None:
        if isinstance(element, Comprehension):
            element.each(change, held)
        else:
            held[0] = add(held[0], element)

    over.each(change, held)
    return held[0]


def _found(over: Comprehension, test: Callable[[Any], Any]) -> Any:
    """Return whether a test holds for one of the elements; it is the last that is tested."""
    held: list[Any] = [False, False]

    def change(element: Any) -> None:
        # an inner loop holds values of its own: what ends a loop is no variable of another one
        inner = isinstance(element, Comprehension)
        held[0] = held[1] = _found(element, test) if inner else test(element)

    over.each(change, held, stop=True)
    return held[0]


def _sum(over: Comprehension, start: Any = 0) -> Any:
    sample = over.example()
    if sample is not None and sample.ndim:
        start = start + shaping.full(sample.dims, 0, sample.dtype)
    return _total(over, start, lambda total, element: total + element)


def _len(over: Comprehension) -> Any:
    return _total(over, 0, lambda count, _: count + 1)


def _any(over: Comprehension) -> Any:
    return _found(over, _bool)


def _all(over: Comprehension) -> Any:
    return branches.not_(_found(over, branches.not_))


def _bool(value: Any) -> Any:
    return branches.not_(branches.not_(value))


#: {a function of Python: what it gives of a Comprehension}
_PYTHON: dict[Any, Callable[..., Any]] = {
    builtins.sum: _sum, builtins.len: _len, builtins.any: _any, builtins.all: _all,
}  # fmt: skip


def reads(function: Any) -> bool:
    """Return whether a function reads all of a comprehension."""
    return (isinstance(function, Hashable) and function in _PYTHON) or _reads_arrays(function)


def call(function: Any, args: Iterable[Any], kwargs: dict[str, Any], python: Any) -> Any:
    """Call a function with comprehensions as loops where it reads all of them; else ``python``."""
    args = list(args)
    own = _PYTHON.get(function) if isinstance(function, Hashable) else None
    try:
        if own is not None and isinstance(args[0], Comprehension) and not kwargs:
            if args[0].is_loop():
                return own(*args)
        elif _reads_arrays(function):
            for k, value in enumerate(args):
                if isinstance(value, Comprehension) and value.is_loop():
                    made = value.rows()
                    args[k] = value if made is NotImplemented else made
    except NeedsMemory:
        raise
    except LoopError as error:
        if not all(map(_can_be_written_out, args)):
            raise control.no_loop(error) from error
    given = [_as_own(v.python()) if isinstance(v, Comprehension) else v for v in args]
    return python(function, *given, **kwargs)


def _as_own(made: Any) -> Any:
    return own_list(made) if type(made) is list else made


def list_of(over: Comprehension) -> Any:
    """Return the list of a comprehension: by a loop, if calls decide how long it is."""
    if over.is_loop() and type(over.steps.length) is Number:  # type: ignore[union-attr]
        made = TracedList()

        def add(element: Any) -> None:
            if not isinstance(element, Comprehension):
                made.append(element)
            elif element.is_inner:
                element.each(add, [])
            else:
                made.append(list_of(element))

        try:
            over.each(add, [])
        except NeedsMemory:
            raise
        except (LoopError, TracingError) as error:
            if not _can_be_written_out(over):
                raise control.no_loop(error) if isinstance(error, LoopError) else error  # noqa: B904
        else:
            return made
    return own_list(over.python())


def _can_be_written_out(value: Any) -> bool:
    if not isinstance(value, Comprehension) or value.steps is None:
        return True
    length = hint_of(value.steps.length)
    return type(length) is int and length <= control.MOST_UNROLLED


#: functions of numpy for which a list is the array of its elements; others look into lists
_OF_ARRAYS = frozenset(
    getattr(np, name)
    for name in (
        "array asarray asanyarray ascontiguousarray stack vstack hstack dstack column_stack "
        "concatenate sum prod mean average std var median percentile quantile max min amax amin "
        "ptp any all cumsum cumprod diff argmax argmin sort argsort count_nonzero dot "
        "nansum nanmean nanmax nanmin"
    ).split()
) | {np.linalg.norm}


def _reads_arrays(function: Any) -> bool:
    return type(function) is np.ufunc or (isinstance(function, Hashable) and function in _OF_ARRAYS)
