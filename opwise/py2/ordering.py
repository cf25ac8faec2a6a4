"""The order of values of different types, as Python 2 had it: None, numbers, then by type's name.

Values are compared as Python 3 does; only where it raises TypeError because neither type orders
the other does the order of Python 2 count.
"""

from __future__ import annotations

import datetime
import numbers
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

#: types for which Python 2 raised TypeError, too
_UNORDERED = (complex, np.complexfloating, datetime.date, datetime.time, datetime.timedelta,
              np.ndarray)  # fmt: skip
#: the names that types had in Python 2 (bytes were str)
_NAMES = {"bytes": "str", "ByteString": "str", "builtin_function_or_method": "builtin_function"}


def _compared(holds: Callable[[Any, Any], Any], left: Any, right: Any, reflected: str) -> Any:
    """Return ``holds(left, right)``; by Python 2's order where Python 3 has none."""
    try:
        return holds(left, right)
    except TypeError:
        special = f"__{holds.__name__}__"
        if not _is_unsettled(left, right, special, reflected):
            raise
    return holds(order(left, right), 0)


def less(left: Any, right: Any) -> Any:
    """Return ``left < right``."""
    return _compared(operator.lt, left, right, "__gt__")


def less_equal(left: Any, right: Any) -> Any:
    """Return ``left <= right``."""
    return _compared(operator.le, left, right, "__ge__")


def greater(left: Any, right: Any) -> Any:
    """Return ``left > right``."""
    return _compared(operator.gt, left, right, "__lt__")


def greater_equal(left: Any, right: Any) -> Any:
    """Return ``left >= right``."""
    return _compared(operator.ge, left, right, "__le__")


def _is_unsettled(left: Any, right: Any, special: str, reflected: str) -> bool:
    """Return whether Python 2 ordered two values for which Python 3 raises TypeError."""
    if isinstance(left, list | tuple | dict) and type(left) is type(right):
        return True  # of their elements, see ``order``
    if isinstance(left, _UNORDERED) or isinstance(right, _UNORDERED):
        return False
    left, right = (side.item() if isinstance(side, np.number) else side for side in (left, right))
    return (
        getattr(type(left), special)(left, right) is NotImplemented
        and getattr(type(right), reflected)(right, left) is NotImplemented
    )


def order(left: Any, right: Any) -> int:
    """Return -1, 0 or 1: how ``cmp`` of Python 2 ordered two values.

    Raises TypeError for complex numbers and dates, which it did not order.
    """
    if left is right:
        return 0
    if type(left) is type(right) and isinstance(left, list | tuple):
        for one, other in zip(left, right, strict=False):
            if one is not other and one != other:
                return order(one, other)
        return _sign(len(left), len(right))
    if type(left) is type(right) is dict:
        return _order_of_dicts(left, right)
    try:
        return bool(left > right) - bool(left < right)
    except TypeError:
        if not _is_unsettled(left, right, "__gt__", "__lt__"):
            raise
    return _sign(_rank(left), _rank(right)) or _sign(id(left), id(right))


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _rank(value: Any) -> tuple[bool, str, int]:
    """Return the place of a value of a type that does not order the other's."""
    if value is None or isinstance(value, numbers.Number):
        return value is not None, "", 0
    name = type(value).__name__
    # text was unicode rather than str only if it was written so; both stand between list and tuple
    return True, _NAMES.get(name, name), 0 if isinstance(value, str | bytes) else id(type(value))


def _order_of_dicts(left: dict[Any, Any], right: dict[Any, Any]) -> int:
    """Order by length, then by the least key whose values differ, then by these values."""
    if len(left) != len(right):
        return _sign(len(left), len(right))
    differing = [
        sorted((key for key in one if key not in other or other[key] != one[key]), key=Place)
        for one, other in ((left, right), (right, left))
    ]
    if not differing[0]:
        return 0
    first, second = differing[0][0], differing[1][0]
    return order(first, second) or order(left[first], right[second])


class Place:
    """The key of a value that sorts as Python 2 did."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __lt__(self, other: Place) -> bool:
        return bool(less(self.value, other.value))

    def __gt__(self, other: Place) -> bool:
        return bool(greater(self.value, other.value))


def _placed(key: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return Place if key is None else lambda value: Place(key(value))


def sort(values: list[Any], key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
    """Sort a list in place."""
    try:
        values.sort(key=key, reverse=reverse)
    except TypeError:
        values.sort(key=_placed(key), reverse=reverse)


def extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``min`` or ``max`` of Python 2."""

    def found(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Iterator):
            args = (list(args[0]),)
        try:
            return function(*args, **options)
        except TypeError:
            if not args:
                raise
            values: Iterable[Any] = args[0] if len(args) == 1 else args
            return function(values, **{**options, "key": _placed(options.get("key"))})

    found.__name__ = function.__name__
    return found
