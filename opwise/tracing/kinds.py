"""What a variable of the program is, in all branches and in all steps: its dtype and its shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.tensor.type import tensor_type
from opwise.tracing.indexing import converted
from opwise.tracing.trace import current, demand
from opwise.tracing.values import (
    NUMBER_DTYPES,
    PYTHON_TYPES,
    UNKNOWN,
    Number,
    Traced,
    array,
    as_traced,
    hint_of,
    is_one,
    kind_of,
    number_text,
    number_variable,
    same_dim,
)

#: a length that is that of the array itself: no other number is known to be the same
OWN = Number("i", -1)


class LoopError(Exception):
    """A loop or branch cannot be one of opwise; the text says why."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


class RaisesError(LoopError):
    """A branch of the program raises an error."""


def what_is(value: Any) -> str:
    if type(value) is Traced:
        return f"an array of {value.dtype} with {value.ndim} dimensions"
    return (
        repr(value) if isinstance(value, str | int | float | type(None)) else type(value).__name__
    )


def is_numeric(value: Any) -> bool:
    return (
        type(value) in (Traced, Number)
        or kind_of(value) is not None
        or isinstance(value, np.generic | np.ndarray)
    )


class Kind:
    """What a variable of the program is after a branch, or in all steps of a loop."""

    def __init__(self, sort: str, what: Any, dims: tuple[Any, ...] = (), order: Any = True) -> None:
        #: 'number' with its kind, or 'array' or 'scalar' with its dtype
        self.sort, self.what, self.dims = sort, what, dims
        self._order = order

    @property
    def type(self) -> Any:
        """The type of its variables."""
        if self.sort == "number":
            return tensor_type(NUMBER_DTYPES[self.what], ())
        return tensor_type(np.dtype(self.what).name, tuple(map(is_one, self.dims)))

    def variable(self, value: Any) -> Any:
        """Return a value as a variable of the type."""
        if self.sort == "number":
            return number_variable(value, self.what)
        if kind_of(value) is not None and type(value) is not Number:
            return T.constant(np.asarray(value, self.what))
        traced = as_traced(value)
        made = converted(traced.variable, self.what)
        wanted = self.type.broadcastable
        if tuple(made.type.broadcastable) != tuple(wanted):
            made = T.patternbroadcast(made, wanted)
        return made

    def value(self, variable: Any) -> Any:
        """Return the value that a variable of the type stands for."""
        if self.sort == "number":
            return Number(self.what, variable)
        dims = [
            Number("i", lambda k=k: variable.shape[k]) if d is OWN else d
            for k, d in enumerate(self.dims)
        ]  # fmt: skip
        return array(variable, dims, self.sort == "scalar", self._order)

    def __str__(self) -> str:
        if self.sort == "number":
            return PYTHON_TYPES[self.what].__name__
        return f"an array of {np.dtype(self.what)} with {len(self.dims)} dimensions"

    def same(self, other: Kind) -> bool:
        return (self.sort, self.what) == (other.sort, other.what) and self.type == other.type


def as_kind(value: Any) -> Kind:
    own = kind_of(value)
    if own is not None:
        return Kind("number", own)
    traced = as_traced(value)
    return Kind(
        "scalar" if traced.scalar else "array", traced.dtype, traced.dims, traced.contiguous
    )


def unified(name: str, values: Sequence[Any]) -> Kind:
    """Return what values of a variable have in common.

    Raises LoopError if there is nothing that keeps what each of them is.
    """
    result = as_kind(values[0])
    for value in values[1:]:
        other = as_kind(value)
        if result.sort == "number" and other.sort == "number":
            if "b" in (result.what, other.what) and result.what != other.what:
                raise LoopError(f"{name} is a bool in one and a number in the other")
            result = max(result, other, key=lambda k: "bifc".index(k.what))
            continue
        if "number" in (result.sort, other.sort):
            number, strong = (result, other) if result.sort == "number" else (other, result)
            python = values[0] if number is result else value
            # a Python number becomes what it is beside the other
            common = np.result_type(
                strong.what, {"b": np.bool, "i": 0, "f": 0.0, "c": 0j}[number.what]
            )
            if common != strong.what or strong.dims or not is_exact(python, strong.what):
                raise LoopError(
                    f"{name} is {what_is(python)} in one and {strong.what} in the other"
                )
            result = strong
            continue
        if result.what != other.what:
            raise LoopError(f"{name} has dtype {result.what} in one and {other.what} in the other")
        if len(result.dims) != len(other.dims):
            raise LoopError(
                f"{name} has {len(result.dims)} dimensions in one and {len(other.dims)} in the "
                "other"
            )
        dims = []
        for a, b in zip(result.dims, other.dims, strict=True):
            one, two = hint_of(a), hint_of(b)
            if UNKNOWN not in (one, two) and one != two:
                raise LoopError(f"{name} has another shape in each")
            if a is not b and type(a) is Number and type(b) is Number and a.known and b.known:
                demand(f"{a.text} == {b.text}") if a.text != b.text else None
            elif (type(a) is Number) != (type(b) is Number):
                length = a if type(a) is Number else b
                if not length.known:
                    dims.append(a if type(a) is Number else b)
                    continue
                demand(f"{number_text(a)} == {number_text(b)}")
            if type(a) is Number and UNKNOWN in (one, two) and not same_dim(a, b):
                dims.append(OWN)
                continue
            dims.append(a if type(a) is not Number else b)
        sort = "scalar" if result.sort == other.sort == "scalar" else "array"
        if not dims:
            sort = "scalar" if "scalar" in (result.sort, other.sort) else "array"
        result = Kind(sort, result.what, tuple(dims), not dims)
    return result


def is_exact(value: Any, dtype: Any) -> bool:
    """Return whether a Python number keeps its value in a dtype."""
    if np.dtype(dtype).name in NUMBER_DTYPES.values():
        return True
    if type(value) is Number:
        trace = current()
        weak = {} if trace is None else trace.weak
        if type(value._variable) is not type(None) and value._variable in weak:
            value = weak[value._variable]
        else:
            return False
    with np.errstate(all="ignore"):
        made = np.asarray(value).astype(dtype)
    return bool(made.item() == value)


def stepped(name: str, kind: Kind, other: Kind) -> Kind:
    """Return what a variable is, of which one step makes this of that."""
    if kind.sort == "number" and other.sort != "number":
        if other.dims:
            raise LoopError(f"{name} is a number before and {other} after a step")
        return other
    if kind.sort != "number" and other.sort == "number":
        common = np.result_type(kind.what, {"b": np.bool, "i": 0, "f": 0.0, "c": 0j}[other.what])
        if kind.dims or common != kind.what:
            raise LoopError(f"{name} is {kind.what} before and {other} after a step")
        return kind
    if kind.sort == "number":
        if kind.what == other.what:
            return kind
        if "b" in (kind.what, other.what):
            raise LoopError(f"{name} is a bool before and a number after a step, or the other way")
        return max(kind, other, key=lambda k: "bifc".index(k.what))
    if kind.what != other.what:
        if not kind.dims and not other.dims:
            return other
        raise LoopError(f"{name} has dtype {kind.what} before and {other.what} after a step")
    if len(kind.dims) != len(other.dims):
        raise LoopError(
            f"{name} has {len(kind.dims)} dimensions before and {len(other.dims)} after a step"
        )
    dims = []
    for a, b in zip(kind.dims, other.dims, strict=True):
        one, two = hint_of(a), hint_of(b)
        if UNKNOWN in (one, two):
            if a is not b:
                raise LoopError(f"the shape of {name} is decided inside")
        elif one != two:
            raise LoopError(f"{name} has another shape after a step")
        elif type(a) is Number or type(b) is Number:
            if number_text(a) != number_text(b):
                demand(f"{number_text(a)} == {number_text(b)}")
            if is_one(b):
                a = b
        dims.append(a)
    sort = "scalar" if "scalar" in (kind.sort, other.sort) and not dims else "array"
    return Kind(sort, kind.what, tuple(dims), not dims)
