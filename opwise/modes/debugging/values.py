"""Values under DebugMode: copies, snapshots, comparisons, and checks against a variable's type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from opwise.graph.type import Type
from opwise.graph.variable import Variable
from opwise.tensor.type import TensorType

#: a function (expected, value) that returns whether two values agree
Agree = Callable[[Any, Any], bool]

#: the largest array, in bytes, that is quicker to compare as two copies than element by element
_SMALL = 8192
#: classes of values that cannot be changed in place
IMMUTABLE = (int, float, complex, str, bytes, bool, type(None), slice, np.generic)


def copied(value: Any) -> Any:
    """Return a value in memory of its own."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    return value if isinstance(value, IMMUTABLE) else copy.deepcopy(value)


def private_copies(values: Sequence[Any]) -> list[Any]:
    """Return copies of values; one that occurs twice is copied once."""
    copies: dict[int, Any] = {}
    for value in values:
        if id(value) not in copies:
            copies[id(value)] = value.copy("K") if type(value) is np.ndarray else copied(value)
    return [copies[id(value)] for value in values]


class Snapshot:
    """A value at one moment. An array is kept as bytes, which is quicker than another array.

    type_: the type of the variable that has the value.
    """

    __slots__ = ("bytes", "dtype", "shape", "strides", "type", "value")

    def __init__(self, value: Any, type_: Type) -> None:
        self.type = type_
        #: the elements of an array in C order; None for another value, which is in ``value``
        self.bytes: bytes | None = None
        self.value = None
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.bytes, self.shape, self.dtype = value.tobytes(), value.shape, value.dtype
            self.strides = value.strides
        else:
            self.value = copied(value)

    def same(self, now: Any) -> bool:
        """Return whether ``now`` equals the value of the snapshot; arrays bit for bit."""
        if self.bytes is not None:
            return (
                isinstance(now, np.ndarray)
                and self.bytes == now.tobytes()
                and self.shape == now.shape
                and self.dtype == now.dtype
            )
        before = self.value
        if before is now:
            return True
        if isinstance(before, np.ndarray) and isinstance(now, np.ndarray):
            return before.shape == now.shape and bool(self.type.values_eq(before, now))
        return not _can_compare(before, self.type) or bool(self.type.values_eq(before, now))

    def restored(self) -> Any:
        """Return a copy of the value; an array has its dimensions in the same order in memory."""
        if self.bytes is None:
            return copied(self.value)
        array = np.frombuffer(self.bytes, self.dtype).reshape(self.shape)
        # the dimension with the largest steps first
        order = sorted(range(array.ndim), key=lambda k: -abs(self.strides[k]))
        return array.transpose(order).copy().transpose(np.argsort(order).tolist())


def _can_compare(value: Any, type_: Type) -> bool:
    """Return whether equality is defined for a value: by its type, or by its class."""
    own = _function_of(type_.values_eq) is not _function_of(Type.values_eq)
    return own or type(value).__eq__ is not cast(Any, object.__eq__)


def _function_of(method: Any) -> Any:
    return getattr(method, "__func__", method)


def _all(truths: np.ndarray) -> bool:
    """Return whether all elements of a boolean array hold, without numpy's overhead if small."""
    return b"\0" not in truths.tobytes() if truths.size <= _SMALL else bool(truths.all())


# --- equality -------------------------------------------------------------------------------------


def comparison(*variables: Variable) -> Agree:
    """Return a function that compares values of variables within their tolerances.

    The first variable with ``tag.values_eq_approx`` decides, otherwise the type of the last one.
    """
    type_ = variables[-1].type
    for var in variables:
        own = var._tag and getattr(var.tag, "values_eq_approx", None)
        if own:
            return lambda expected, value: expected is value or bool(own(expected, value))
    if type(type_) is TensorType:
        return _close(type_)

    def agree(expected: Any, value: Any) -> bool:
        if expected is value or not _can_compare(expected, type_):
            return True
        return bool(type_.values_eq_approx(expected, value))

    return agree


def _close(type_: TensorType) -> Agree:
    """Return the ``values_eq_approx`` of a tensor type, made quicker for equal values."""
    rtol, atol = type_.tolerances()
    is_real = type_.numpy_dtype.kind == "f"

    def agree(expected: np.ndarray, value: np.ndarray) -> bool:
        if expected is value:
            return True
        if expected.shape != value.shape or expected.dtype != value.dtype:
            return False
        if expected.nbytes <= _SMALL and expected.tobytes() == value.tobytes():
            return True
        if is_real and _all(abs(expected - value) <= atol + rtol * abs(value)):
            return True
        return bool(type_.values_eq_approx(expected, value))

    return agree


# --- validity -------------------------------------------------------------------------------------


def fitting(variable: Variable) -> Callable[[Any], bool]:
    """Return a function that returns whether a value is valid for the variable's type."""
    type_ = variable.type
    if type(type_) is not TensorType:
        return type_.is_valid_value
    dtype, ndim, limited = type_.numpy_dtype, type_.ndim, any(type_.broadcastable)

    def fits(value: Any) -> bool:
        plain = type(value) is np.ndarray and value.dtype == dtype and value.ndim == ndim
        return (plain and not limited) or bool(type_.is_valid_value(value))

    return fits


def misfit(type_: Type, value: Any) -> object:
    """Return why a value is not valid for a type: a text, or a tuple as in Theano's reports."""
    if isinstance(type_, TensorType) and not isinstance(value, np.ndarray):
        return f"{type_} expected a ndarray object.", value, type(value)
    try:
        type_.filter(value, strict=True)
    except (TypeError, ValueError) as error:
        return str(error)
    return f"not a value of {type_}"


def finite(variable: Variable, value: Any) -> bool:
    """Return whether a value is free of NaN and infinities, or its variable's tag allows them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return True
    if _all(np.isfinite(value)):
        return True
    return variable._tag is not None and not getattr(variable.tag, "nan_guard_mode_check", True)
