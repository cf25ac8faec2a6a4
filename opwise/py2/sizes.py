"""Functions of numpy that take floats as lengths, as they did until numpy 1.12."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.py2 import breakages

_PLACES = {**breakages.SIZES, **breakages.RANDOM_SIZES}


class Sized:
    """A function that makes arrays of a shape; it drops the fractions of lengths.

    function: a function of numpy or method of a RandomState that is in ``breakages.SIZES`` or
    ``breakages.RANDOM_SIZES``.
    """

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._function(*args, **kwargs)
        except TypeError as error:
            if "integer" not in str(error):
                raise
        name = self._function.__name__
        first, keyword = _PLACES[name]
        last = len(args) if name in ("rand", "randn") else first + 1
        sizes = [_whole(size) for size in args[first:last]]
        named = {key: _whole(kwargs[key]) if key == keyword else kwargs[key] for key in kwargs}
        return self._function(*args[:first], *sizes, *args[last:], **named)

    def __reduce__(self) -> Any:
        return Sized, (self._function,)


def _whole(size: Any) -> Any:
    """Return a length, or a shape, of integers."""
    if isinstance(size, tuple | list):
        return tuple(_whole(length) for length in size)
    return int(size) if isinstance(size, float | np.floating) else size
