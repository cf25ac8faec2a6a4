"""``in``, and items of lists, tuples and dicts, by values that calls decide."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from opwise.tracing import shaping
from opwise.tracing.lists import memory_of
from opwise.tracing.reducing import number_from
from opwise.tracing.values import (
    Number,
    Traced,
    as_traced,
    constant_of,
    is_traced,
    kind_of,
    leave_to_python,
)

#: Python's collections, whose membership is equality with one of their items
_COLLECTIONS: tuple[type, ...] = (
    list, tuple, set, frozenset, dict, range, type({}.keys()), type({}.values()),
)  # fmt: skip


def decided_by_calls(value: Any) -> bool:
    """Return whether a value is a number, or a numpy scalar, that values in arrays decide."""
    if type(value) is Number:
        return not value.known and constant_of(value._variable) is None
    return type(value) is Traced and value.scalar and constant_of(value.variable) is None


def contains(value: Any, container: Any) -> Any:
    """Return ``value in container``."""
    if type(container) is Traced or (type(container) is np.ndarray and type(value) is Traced):
        return number_from(np.any(np.equal(as_traced(container), value)))
    if (memory := memory_of(container)) is not None:
        return number_from(np.any(np.equal(memory.part(), value)))
    if not isinstance(container, _COLLECTIONS):
        return value in container
    items = list(container)
    if not decided_by_calls(value) and not any(map(decided_by_calls, items)):
        return value in container
    if not _is_number(value):
        return value in container  # Python's error, if it is one
    tests = [np.any(np.equal(as_traced(value), some)) for some in _arrays(items)]
    return number_from(functools.reduce(np.logical_or, tests)) if tests else False


def _is_number(value: Any) -> bool:
    return (
        kind_of(value) is not None or isinstance(value, np.bool | np.number)
        or (type(value) is Traced and value.scalar)
    )  # fmt: skip


def _arrays(items: Iterable[Any]) -> list[Any]:
    """Return arrays with the numbers among items: one of each type of known ones."""
    known: dict[type, list[Any]] = {}
    made = []
    for item in items:
        if type(item) in (Number, Traced):
            made.append(as_traced(item))
        elif _is_number(item):
            known.setdefault(type(item), []).append(item)
    return [*made, *(as_traced(np.array(each)) for each in known.values())]


def item(container: Any, key: Any) -> Any:
    """Return ``container[key]`` of a list, tuple or dict, for a key that calls decide.

    NotImplemented if its items are of different types or shapes.
    """
    if not isinstance(container, dict):
        return _element(list(container), as_traced(key))
    found = _found(container, key)
    if found is None:
        return NotImplemented
    value = _element(list(container.values()), np.argmax(found))
    if value is not NotImplemented:
        leave_to_python(np.logical_not(np.any(found)).variable)  # it raises a KeyError there
    return value


def get(container: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """Return ``container.get(key, default)``, for a key that calls decide, or NotImplemented."""
    found = _found(container, key)
    kinds = {kind_of(each) for each in (*container.values(), default)}
    if found is None or None in kinds or len(kinds) != 1:
        return NotImplemented
    value = _element(list(container.values()), np.argmax(found))
    return number_from(np.where(np.any(found), as_traced(value), default))


def _element(items: list[Any], place: Any) -> Any:
    if not items or place.dtype.kind not in "iu":
        return NotImplemented
    arrays = [as_traced(each) for each in items if is_traced(each) or _is_number(each)]
    first = arrays[0] if arrays else None
    alike = first is not None and len(arrays) == len(items) and all(
        (a.dtype, a.scalar, a.dims) == (first.dtype, first.scalar, first.dims) for a in arrays
    )  # fmt: skip
    kinds = {kind_of(each) for each in items}
    if not alike or len(kinds) != 1:
        return NotImplemented
    found = shaping.stack(arrays)[place]
    return found if None in kinds else number_from(found)


def _found(container: dict[Any, Any], key: Any) -> Any:
    """Return which key of a dict of numbers is equal to another one; None if there are others."""
    keys = list(container)
    if not keys or not all(_is_number(each) and not is_traced(each) for each in keys):
        return None
    return np.equal(as_traced(np.array(keys)), as_traced(key))
