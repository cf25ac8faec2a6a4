"""Rules for dtypes: of the result of an operation, and those that it computes in.

Rules are functions from the dtypes of the inputs (strings) to the dtype of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opwise.config import config

if TYPE_CHECKING:
    import numpy.typing as npt

#: anything that numpy converts to a dtype: a name, a type of Python or numpy, a dtype
DTypeLike: TypeAlias = "npt.DTypeLike"

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
DISCRETE = BOOL + INTEGERS
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
CONTINUOUS = FLOATS + COMPLEX
ALL = DISCRETE + CONTINUOUS

_FLOAT_OF = {
    **dict.fromkeys(("bool", "int8", "int16", "uint8", "uint16"), "float32"),
    **dict.fromkeys(("int32", "int64", "uint32", "uint64"), "float64"),
}


@cache
def name_of(dtype: np.dtype) -> str:
    """Return the name of a numpy dtype, cached: numpy builds it each time."""
    return dtype.name


def kind(dtype: str) -> str:
    """Return the letter of a dtype's kind: b(ool), i(nteger), u(nsigned), f(loat), c(omplex)."""
    return "b" if dtype == "bool" else dtype[0]


@cache
def promote(*dtypes: str) -> str:
    """Return the smallest dtype that holds values of all ``dtypes``, taken one after the other.

    int64 with uint64 gives float64; int32 with float32 gives float64.
    """
    return reduce(np.promote_types, map(np.dtype, dtypes)).name


def upcast(*dtypes: str) -> str:
    """The one that numpy promotes those of the operands to.

    Under the flag ``cast_policy="numpy+floatX"`` it is a float no wider than floatX, unless an
    operand is.
    """
    common = promote(*dtypes)
    if common in FLOATS and config.cast_policy == "numpy+floatX":
        return _within(config.floatX, common, dtypes)
    return common


def _within(floatx: str, common: str, dtypes: tuple[str, ...]) -> str:
    """Return the float ``common``, or ``floatx`` if that and no operand is narrower than it."""
    width = FLOATS.index(floatx)
    wider = any(d in FLOATS and FLOATS.index(d) > width for d in dtypes)
    return common if wider or FLOATS.index(common) < width else floatx


def upcast_out(*dtypes: str) -> str:
    """The one that numpy promotes those of the operands to."""
    return upcast(*dtypes)


def same(dtype: str, *_: str) -> str:
    """That of the first operand."""
    return dtype


def first(dtype: str, *_: str) -> str:
    return dtype


def to_float(*dtypes: str) -> str:
    """The one that holds all operands, integers as float32 (up to 16 bits) or float64."""
    return upcast(*(_FLOAT_OF.get(d, d) for d in dtypes))


def to_float_same(dtype: str) -> str:
    """That of the operand; for integers float32 (up to 16 bits) or float64."""
    return _FLOAT_OF.get(dtype, dtype)


def no_complex(rule: Callable[..., str]) -> Callable[..., str]:
    """Return ``rule`` restricted to real numbers: it raises TypeError for a complex dtype."""

    def real(*dtypes: str) -> str:
        if any(d in COMPLEX for d in dtypes):
            raise TypeError(f"complex argument not supported, got {', '.join(dtypes)}")
        return rule(*dtypes)

    real.__doc__ = rule.__doc__
    return real


def not_bool(rule: Callable[..., str]) -> Callable[..., str]:
    """Return ``rule`` with int8 in place of bool, for operations whose results are numbers."""

    def number(*dtypes: str) -> str:
        result = rule(*dtypes)
        return "int8" if result == "bool" else result

    number.__doc__ = rule.__doc__ and f"{rule.__doc__.partition('.')[0]}; int8 for bool."
    return number


def always_bool(*_: str) -> str:
    """bool."""
    return "bool"


def true_div(x: str, y: str) -> str:
    """The one that numpy promotes those of the operands to; floatX for two integers."""
    if x in DISCRETE and y in DISCRETE:
        floatx: str = config.floatX
        return floatx
    return upcast(x, y)


def bitwise(*dtypes: str) -> str:
    """The one that numpy promotes those of the operands to: all are integers, or all are bool."""
    if not (all(d == "bool" for d in dtypes) or all(d in INTEGERS for d in dtypes)):
        raise TypeError(
            "input to a BitOp must have type (u)int8, (u)int16, (u)int32 or (u)int64 or be all "
            f"bools not {', '.join(dtypes)}: cast to an integer dtype, or compare first"
        )
    return upcast(*dtypes)


def bits(*dtypes: str) -> str:
    """The dtype that a bit operation computes in: that of C, where int64 with uint64 is uint64."""
    common = promote(*dtypes)
    return common if common in DISCRETE else "uint64"


def shifted(*dtypes: str) -> str:
    """The one that numpy promotes those of the operands to; int8 for bool."""
    if not all(d in DISCRETE for d in dtypes) or (common := promote(*dtypes)) not in DISCRETE:
        raise TypeError(
            f"a shift takes integers with a common dtype of integers, not {', '.join(dtypes)}: "
            "cast one of them"
        )
    return "int8" if common == "bool" else common


def always_float64(*_: str) -> str:
    """float64."""
    return "float64"


def real_part(dtype: str) -> str:
    """That of the real and imaginary parts, for a real operand its own."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def to_complex(*dtypes: str) -> str:
    """The complex one whose parts can represent the operands."""
    return upcast("complex64", *dtypes)
