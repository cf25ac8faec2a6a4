"""What functions of numpy do with variables: what those of tensors do, or an error that says what
to write. Left alone, numpy takes a variable for one number and gives wrong results."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

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
