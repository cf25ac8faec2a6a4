"""What functions and ufuncs of numpy do with variables: what those of tensors do, or an error that
says what to write. Left alone, numpy takes a variable for one number and gives wrong results."""

from __future__ import annotations

import inspect
import opcode
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opwise.graph.variable import Variable
from opwise.tensor.elsewhere import numpy_hint

#: functions that numpy computes by methods and operators of their arguments, or from no values
_BY_METHODS = frozenset(
    "array2string array_repr array_split array_str can_cast hsplit imag iscomplexobj "
    "isrealobj moveaxis ndim real repeat result_type rollaxis shape size split squeeze swapaxes "
    "vsplit".split()
)
#: {function of numpy: the function of tensors that does the same, "" for that of the same name;
#: the arguments that it takes first; those that both know by these names}
_TENSOR = {
    "all": ("", "a", "axis keepdims"),
    "amax": ("max", "a", "axis keepdims"),
    "amin": ("min", "a", "axis keepdims"),
    "any": ("", "a", "axis keepdims"),
    "argmax": ("", "a", "axis keepdims"),
    "argmin": ("", "a", "axis keepdims"),
    "argsort": ("", "a", "axis"),
    "clip": ("", "a a_min a_max", ""),
    "concatenate": ("", "arrays", "axis"),
    "cumprod": ("", "a", "axis"),
    "cumsum": ("", "a", "axis"),
    "diag": ("", "v", "k"),
    "diagonal": ("", "a", "offset axis1 axis2"),
    "dot": ("", "a b", ""),
    "isclose": ("", "a b", "rtol atol equal_nan"),
    "max": ("", "a", "axis keepdims"),
    "mean": ("", "a", "axis dtype keepdims"),
    "min": ("", "a", "axis keepdims"),
    "nonzero": ("", "a", ""),
    "ones_like": ("", "a", "dtype"),
    "outer": ("", "a b", ""),
    "prod": ("", "a", "axis dtype keepdims"),
    "ptp": ("", "a", "axis"),
    "ravel": ("flatten", "a", ""),
    "reshape": ("", "a shape newshape", ""),  # the name in old releases
    "roll": ("", "a shift", "axis"),
    "round": ("", "a", ""),
    "sort": ("", "a", "axis"),
    "stack": ("", "arrays", "axis"),
    "std": ("", "a", "axis ddof keepdims"),
    "sum": ("", "a", "axis dtype keepdims"),
    "tensordot": ("", "a b axes", ""),
    "tile": ("", "A reps", ""),
    "transpose": ("", "a axes", ""),
    "tril": ("", "m", "k"),
    "triu": ("", "m", "k"),
    "var": ("", "a", "axis ddof keepdims"),
    "where": ("", "condition x y", ""),
    "zeros_like": ("", "a", "dtype"),
}

#: {ufunc that an operator calls: the method of the left operand, that of the right one, the symbol}
_OPERATORS = {
    **{
        name: (f"__{method}__", f"__r{method}__", symbol)
        for name, method, symbol in [
            ("add", "add", "+"), ("subtract", "sub", "-"), ("multiply", "mul", "*"),
            ("divide", "truediv", "/"), ("floor_divide", "floordiv", "//"),
            ("remainder", "mod", "%"), ("power", "pow", "**"), ("matmul", "matmul", "@"),
            ("bitwise_and", "and", "&"), ("bitwise_or", "or", "|"), ("bitwise_xor", "xor", "^"),
            ("left_shift", "lshift", "<<"), ("right_shift", "rshift", ">>"),
            ("divmod", "divmod", "divmod()"),
        ]
    },
    "less": ("__lt__", "__gt__", "<"),
    "less_equal": ("__le__", "__ge__", "<="),
    "greater": ("__gt__", "__lt__", ">"),
    "greater_equal": ("__ge__", "__le__", ">="),
}  # fmt: skip

#: {ufunc of one operand: what it is}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "absolute": abs,
    "conjugate": lambda x: x.conj(),
    "fabs": abs,
    "invert": lambda x: ~x,
    "negative": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "rint": lambda x: x.round("half_to_even"),
    "square": lambda x: x * x,
}
for _name in (
    "arccos arccosh arcsin arcsinh arctan arctanh ceil cos cosh deg2rad exp exp2 expm1 floor log "
    "log10 log1p log2 rad2deg sin sinh sqrt tan tanh trunc"
).split():
    _UNARY[_name] = operator.methodcaller(_name)

#: {ufunc: the function of tensors}; that of a logical one for bools only
_FUNCTIONS = {
    "arctan2": "arctan2",
    "degrees": "rad2deg",
    "equal": "eq",
    "isinf": "isinf",
    "isnan": "isnan",
    "logaddexp": "logaddexp",
    "logical_and": "and_",
    "logical_not": "invert",
    "logical_or": "or_",
    "logical_xor": "xor",
    "maximum": "maximum",
    "minimum": "minimum",
    "not_equal": "neq",
    "radians": "deg2rad",
    "sign": "sgn",
}

#: {(ufunc, its method): the function of tensors, the arguments by name}
_FOLDS = {
    ("add", "accumulate"): ("cumsum", ""),
    ("add", "reduce"): ("sum", "dtype keepdims"),
    ("logical_and", "reduce"): ("all", "keepdims"),
    ("logical_or", "reduce"): ("any", "keepdims"),
    ("maximum", "reduce"): ("max", "keepdims"),
    ("minimum", "reduce"): ("min", "keepdims"),
    ("multiply", "accumulate"): ("cumprod", ""),
    ("multiply", "reduce"): ("prod", "dtype keepdims"),
}

#: what numpy passes where nothing is given
_DEFAULTS = {"where": True, "keepdims": False, "out": None, "dtype": None}


def call_ufunc(
    ufunc: np.ufunc, method: str, variable: Any, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Return what a ufunc, or one of its methods, is for variables.

    ``array + x`` and ``array == x`` come here as well, since numpy asks its ufuncs; they mean what
    the variable's operators do. Raises TypeError that says which function of tensors to write.
    """
    given = {k: v for k, v in kwargs.items() if k not in _DEFAULTS or v is not _DEFAULTS[k]}
    if getattr(np, ufunc.__name__, None) is not ufunc or any(map(_holds_objects, inputs)):
        # a ufunc of the program; the elements of the arrays say what is done
        return getattr(ufunc, method)(*map(_boxed, inputs), **kwargs)
    names = _names_in_call()
    by_operator = names is None and method == "__call__"
    if by_operator:
        given.pop("out", None)  # array += x is array = array + x
    if ufunc.__name__ in ("equal", "not_equal") and not isinstance(inputs[0], Variable):
        if by_operator or (names is not None and ufunc.__name__ not in names):
            return ufunc.__name__ == "not_equal"
    operands = [np.asarray(x) if isinstance(x, list | tuple) else x for x in inputs]
    reason = ""
    try:
        found = _of_ufunc(ufunc.__name__, method, operands, given)
    except (TypeError, ValueError) as error:
        if by_operator:
            raise
        reason = f" {error}"
    else:
        if found is not NotImplemented:
            return found
    name = f"numpy.{ufunc.__name__}" + (f".{method}" if method != "__call__" else "")
    raise TypeError(
        f"{name} computes with values, and {variable} has none before a function runs."
        f"{numpy_hint(f'numpy.{ufunc.__name__}')}{reason}"
    ) from None


def _of_ufunc(name: str, method: str, operands: Sequence[Any], given: dict[str, Any]) -> Any:
    """Return a ufunc of tensors, NotImplemented if there is none; raise TypeError for arguments."""
    tensor = sys.modules["opwise.tensor"]
    if (name, method) in _FOLDS:
        (function, known), (x, *more) = _FOLDS[name, method], operands
        # the other arguments by position are axis, dtype, out
        given = dict(zip(("axis", "dtype", "out"), more, strict=False)) | given
        own = {"axis": given.pop("axis", 0)}
        own |= {key: given.pop(key) for key in known.split() if given.get(key) is not None}
        _refuse(given)
        return getattr(tensor, function)(x, **own)
    if method == "outer":
        a, b = map(tensor.as_tensor_variable, operands)
        if b.ndim:
            a = tensor.shape_padright(a, b.ndim)
        method, operands = "__call__", (a, b)
    if method != "__call__":
        return NotImplemented
    if name in _OPERATORS:
        _refuse(given)
        return _operated(operands[0], operands[1], *_OPERATORS[name])
    if name in _UNARY:
        _refuse(given)
        return _UNARY[name](*operands)
    if name in _FUNCTIONS:
        _refuse(given)
        if name.startswith("logical") and any(
            tensor.as_tensor_variable(x).dtype != "bool" for x in operands
        ):
            raise TypeError("Of operands that are not bool, take T.neq(x, 0).")
        return getattr(tensor, _FUNCTIONS[name])(*operands)
    return NotImplemented


def _refuse(unknown: Mapping[str, Any]) -> None:
    if names := sorted(key for key, value in unknown.items() if value is not None):
        raise TypeError(f"Of variables it takes no {' or '.join(names)}.")


def _operated(a: Any, b: Any, forward: str, reflected: str, symbol: str) -> Any:
    """Return what an operator gives; an operand that is an array would ask the ufunc again."""
    found = NotImplemented
    if isinstance(a, Variable):
        found = getattr(a, forward)(b)
    if found is NotImplemented and isinstance(b, Variable):
        found = getattr(b, reflected)(a)
    if found is NotImplemented:
        types = f"'{_type_name(a)}' and '{_type_name(b)}'"
        raise TypeError(f"unsupported operand type(s) for {symbol}: {types}")
    return found


def _type_name(x: Any) -> str:
    kind = type(x)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _holds_objects(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == object


def _boxed(x: Any) -> Any:
    """Return a variable as the one element of an array, which numpy asks nothing."""
    if not isinstance(x, Variable):
        return x
    box = np.empty((), object)
    box[()] = x
    return box


def _names_in_call() -> tuple[str, ...] | None:
    """Return the names in the code that calls a ufunc, None if an operator of it asks numpy.

    numpy passes ``array == x`` to ``np.equal`` too; nothing but the program's code says which of
    the two it is. list.index and the like compare within a call, but do not name the ufunc.
    """
    frame = sys._getframe(3)
    instruction = opcode.opname[frame.f_code.co_code[frame.f_lasti]]
    return frame.f_code.co_names if "CALL" in instruction else None


def call(function: Any, variable: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what a function of numpy, called with ``variable`` among others, is for variables.

    Raises TypeError, or ValueError if numpy does, and says which function of tensors to write.
    """
    name = f"{function.__module__}.{function.__name__}"
    reason = ""
    try:
        if name.partition(".")[2] in _BY_METHODS:
            return function._implementation(*args, **kwargs)
        if name.partition(".")[2] in _TENSOR:
            return _of_tensors(function, args, kwargs)
    except (TypeError, ValueError) as error:
        reason = f" {error}"
    raise TypeError(
        f"{name} computes with values, and {variable} has none before a function runs."
        f"{numpy_hint(name)}{reason}"
    ) from None


def _of_tensors(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call the function of tensors with arguments of numpy's; raise TypeError for others."""
    own, first, known = _TENSOR[function.__name__]
    try:
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
    except ValueError:  # before 2.4 numpy's functions in C do not tell what they take
        bound = dict(zip(f"{first} {known}".split(), args, strict=False)) | dict(kwargs)
    given = {key: value for key, value in bound.items() if value is not None}
    positional = [given.pop(key) for key in first.split() if key in given]
    if unknown := sorted(set(given) - set(known.split())):
        raise TypeError(f"Of variables it takes no {' or '.join(unknown)}.")
    tensor = sys.modules["opwise.tensor"]
    return getattr(tensor, own or function.__name__)(*positional, **given)
