"""The Scalar type: numbers in fused kernels, and indices of Subtensor.

Its variables are in ``opwise.scalar.variable``, above the Ops that their operators make.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from opwise.config import config
from opwise.graph import upcalls
from opwise.graph.type import Type
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.cinterface import ScalarInterface
from opwise.scalar.dtypes import DTypeLike

if TYPE_CHECKING:
    from opwise.scalar.variable import ScalarConstant


class Scalar(ScalarInterface, Type):
    """The type of one number of ``dtype``; values are numpy scalars."""

    ndim = 0
    broadcastable = ()
    dtype: str

    def __init__(self, dtype: str) -> None:
        dtype = config.floatX if dtype == "floatX" else np.dtype(dtype).name
        if dtype not in dtypes.ALL:
            raise TypeError(f"Unsupported dtype for Scalar: {dtype}")
        self.dtype = dtype
        self._numpy_type = np.dtype(dtype).type

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``data`` as a numpy scalar of this dtype."""
        wanted = self._numpy_type
        if type(data) is wanted:
            return data
        if strict:
            raise TypeError(f"{self} expected a {self.dtype}, got {data!r} of type {type(data)}")
        converted = wanted(data)
        exact = converted == data or (converted != converted and data != data)
        float_to_floatx = (
            allow_downcast is None and isinstance(data, float) and self.dtype == config.floatX
        )
        if allow_downcast or exact or float_to_floatx:
            return converted
        raise TypeError(f"Value cannot accurately be converted to dtype ({self.dtype}): {data!r}")

    @staticmethod
    def values_eq_approx(a: Any, b: Any, tolerance: float = 1e-4) -> bool:
        """Return whether two numbers differ by at most ``tolerance``, relative to their sizes."""
        if a == b or (a != a and b != b):
            return True
        return bool(abs(a - b) <= abs(a) * tolerance + abs(b) * tolerance)

    def upcast(self, *others: Scalar) -> str:
        """Return the dtype that holds the numbers of this type and of others."""
        return dtypes.upcast(*(type_.dtype for type_ in (self, *others)))

    def convert_variable(self, var: Variable) -> Variable | None:
        return var if var.type == self else None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash(("Scalar", self.dtype))

    def __str__(self) -> str:
        return self.dtype

    def __repr__(self) -> str:
        return f"Scalar({self.dtype})"


_scalars: dict[str, Scalar] = {}


def get_scalar_type(dtype: str) -> Scalar:
    """Return the Scalar type of a dtype; the same object each time."""
    found = _scalars.get(dtype)
    if found is None:
        found = _scalars[dtype] = Scalar(dtype)
    return found


def as_scalar(x: Any, name: str | None = None) -> Var:
    """Return ``x`` as a scalar variable.

    x: a scalar variable, a tensor variable without dimensions, an Apply, or a number.
    """
    if isinstance(x, Variable):
        if isinstance(x.type, Scalar):
            return x
        if getattr(x.type, "ndim", None) == 0:
            return upcalls.scalar_from_tensor(x)
        raise TypeError(f"Variable type field must be a Scalar, not {x.type} of {x}")
    if hasattr(x, "default_output"):
        return as_scalar(x.default_output(), name)
    return constant(x, name=name)


def constant(x: Any, dtype: DTypeLike | None = None, name: str | None = None) -> ScalarConstant:
    """Return the constant ``x``; Python numbers get the smallest dtype that is exact."""
    value = autocast(x) if dtype is None else np.dtype(dtype).type(x)
    type_ = get_scalar_type(value.dtype.name)
    return cast("ScalarConstant", type_.Constant(type_, value, name))


_autocast_ints = tuple(np.dtype(d).type for d in dtypes.SIGNED)
#: the dtypes to try for a Python float, in order; None: by floatX
autocast_floats: ContextVar[tuple[str, ...] | None] = ContextVar(
    "opwise_autocast_floats", default=None
)


class autocast_float_as:
    """Context in which Python floats become constants of the first of ``dtypes`` that is exact."""

    def __init__(self, *floats: str) -> None:
        self.dtypes = floats

    def __enter__(self) -> None:
        self.before = autocast_floats.get()
        autocast_floats.set(self.dtypes)

    def __exit__(self, *exc: object) -> None:
        autocast_floats.set(self.before)


def autocast(x: Any) -> Any:
    """Return a Python number as a numpy scalar of the dtype that a constant of it has.

    int or bool: the smallest of int8 to int64 that can represent it. float: float32 if that is
    exact, else float64; always float32 if floatX is float32. numpy scalars keep their dtype. Under
    the flag ``cast_policy="numpy+floatX"`` integers have numpy's dtype, floats floatX.
    """
    if isinstance(x, np.generic):
        return x
    if isinstance(x, np.ndarray) and x.ndim == 0:
        return x[()]
    if isinstance(x, int) and config.cast_policy != "numpy+floatX":
        for numpy_type in _autocast_ints:
            info = np.iinfo(numpy_type)
            if info.min <= x <= info.max:
                return numpy_type(x)
        return np.asarray(x)[()]
    if isinstance(x, float):
        floats = autocast_floats.get()
        if floats is not None:
            for dtype in floats:
                value = np.dtype(dtype).type(x)
                if float(value) == x or x != x:
                    return value
            return np.dtype(floats[-1]).type(x)
        if config.cast_policy == "numpy+floatX":
            return np.dtype(config.floatX).type(x)
        if config.floatX in ("float32", "float16"):
            return np.dtype(config.floatX).type(x)
        with np.errstate(over="ignore"):
            value = np.float32(x)
        # compared as Python floats: numpy would compare float32; NaN equals nothing
        return value if float(value) == x else np.float64(x)
    return np.asarray(x)[()]
