"""Comprehensions and generators that a function reads at once, as loops.

``sum(f(v) for v in x)`` is a loop with a state, ``numpy.array([f(v) for v in x])`` one that writes
the rows of an array. Of all other functions, and where there is no loop, Python goes through them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from opwise.tracing import control, shaping
from opwise.tracing.control import LoopError, Steps
from opwise.tracing.trace import current
from opwise.tracing.values import Number, as_traced, hint_of, is_traced


class Comprehension:
    """A comprehension, or a generator, that is an argument of a call.

    items: returns what it goes through. condition: of an item, whether it has an element; None for
    all. element: of an item, its element, or the inner Comprehension if it has several ``for``.
    python: makes the list or the generator; inner ones have none.
    """

    def __init__(
        self,
        items: Callable[[], Any],
        condition: Callable[[Any], Any] | None,
        element: Callable[[Any], Any],
        python: Callable[[], Any] | None = None,
    ) -> None:
        self._items, self._condition, self._element = items, condition, element
        self.python = python
        self._found: Any = None

    @property
    def steps(self) -> Steps | None:
        """What it goes through, if a loop can."""
        if self._found is None:
            self._found = control.steps_of(self._items())
        return self._found  # type: ignore[no-any-return]

    def is_loop(self) -> bool:
        """Return whether a loop goes through it: calls decide how often, or it is often."""
        if current() is None or self.steps is None:
            return False
        length = self.steps.length
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
                control.if_statement(self._condition(item), then, _nothing, get, set_, names)

        control.for_statement(
            self._items() if self._found is None else self._found,
            step, get, set_, names, names[:1], names[1] if stop else None,
        )  # fmt: skip

    def first(self) -> Any:
        """Return the first element, as an example; None if there may be none."""
        if self._condition is not None or self.steps is None:
            return None
        if type(self.steps.length) is Number and not self.steps.length.known:
            return None
        element = self._element(self.steps.item(0))
        return element.first() if isinstance(element, Comprehension) else element

    def rows(self) -> Any:
        """Return a list's array; NotImplemented if its elements have no common type or shape."""
        steps = self.steps
        assert steps is not None
        mask = None if self._condition is None else self._rows(self._condition)
        made = self._rows(self._element)
        if made is NotImplemented or mask is NotImplemented:
            return NotImplemented
        return made if mask is None else made[mask]

    def _rows(self, element: Callable[[Any], Any]) -> Any:
        steps = self.steps
        assert steps is not None
        if type(steps.length) is Number and not steps.length.known:
            return NotImplemented

        def value(item: Any) -> Any:
            found = element(item)
            if isinstance(found, Comprehension):
                return found.rows() if found.is_loop() else as_traced(list(found.python()))
            return as_traced(found)

        sample = value(steps.item(0))
        if sample is NotImplemented:
            return NotImplemented
        if type(steps.length) is Number and (sample.ndim or sample.dtype != np.float64):
            bool(steps.length > 0)  # a condition of the signature: numpy's array of none is another
        out = shaping.full((steps.length, *sample.dims), 0, sample.dtype)

        def step(k: Any) -> None:
            out[k] = value(steps.item(k))

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
    first = over.first()
    if first is not None and is_traced(first) and as_traced(first).ndim:
        start = start + shaping.full(as_traced(first).dims, 0, as_traced(first).dtype)
    return _total(over, start, lambda total, element: total + element)


def _len(over: Comprehension) -> Any:
    return _total(over, 0, lambda count, _: count + 1)


def _any(over: Comprehension) -> Any:
    return _found(over, _bool)


def _all(over: Comprehension) -> Any:
    return control.not_(_found(over, control.not_))


def _bool(value: Any) -> Any:
    return control.not_(control.not_(value))


#: {a function of Python: what it gives of a Comprehension}
_PYTHON: dict[Any, Callable[..., Any]] = {
    builtins.sum: _sum, builtins.len: _len, builtins.any: _any, builtins.all: _all,
}  # fmt: skip


def call(function: Any, args: Iterable[Any], kwargs: dict[str, Any], python: Any) -> Any:
    """Call a function with comprehensions as loops where it reads all of them; else ``python``."""
    args = list(args)
    own = _PYTHON.get(function) if function.__hash__ is not None else None
    try:
        if own is not None and isinstance(args[0], Comprehension) and not kwargs:
            if args[0].is_loop():
                return own(*args)
        elif _reads_arrays(function):
            for k, value in enumerate(args):
                if isinstance(value, Comprehension) and value.is_loop():
                    made = value.rows()
                    args[k] = value if made is NotImplemented else made
    except LoopError as error:
        if not all(map(_can_be_written_out, args)):
            raise control.no_loop(error) from error
    given = [v.python() if isinstance(v, Comprehension) else v for v in args]
    return python(function, *given, **kwargs)


def _can_be_written_out(value: Any) -> bool:
    if not isinstance(value, Comprehension) or value.steps is None:
        return True
    length = hint_of(value.steps.length)
    return type(length) is int and length <= control.MOST_UNROLLED


def _reads_arrays(function: Any) -> bool:
    """Return whether a function is numpy's: it makes arrays of lists."""
    if type(function) is np.ufunc:
        return True
    home = getattr(function, "__module__", None) or ""
    return home.partition(".")[0] == "numpy" and not isinstance(function, type)
