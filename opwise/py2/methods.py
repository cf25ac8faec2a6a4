"""Attributes that objects had in Python 2: each function returns the attribute of its name.

``breakages`` lists them. ``opwise.py2.lookup`` calls them if an object has no such
attribute, and those of ``CHANGED_METHODS`` always.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opwise.py2 import ordering

#: codecs from bytes to bytes, which Python 2 had for text as well
_BYTE_CODECS = {"hex", "base64", "zlib", "bz2", "uu"}


def has_key(owner: Any) -> Any:
    return owner.__contains__


def iteritems(owner: Any) -> Any:
    return lambda: iter(owner.items())


def iterkeys(owner: Any) -> Any:
    return lambda: iter(owner.keys())


def itervalues(owner: Any) -> Any:
    return lambda: iter(owner.values())


def _listed(owner: Any, name: str) -> Any:
    """Return a method of a mapping that returns a list."""
    method = getattr(owner, name)
    return (lambda: list(method())) if isinstance(owner, Mapping) else method


def keys(owner: Any) -> Any:
    return _listed(owner, "keys")


def values(owner: Any) -> Any:
    return _listed(owner, "values")


def items(owner: Any) -> Any:
    return _listed(owner, "items")


def next(owner: Any) -> Any:
    return owner.__next__


def xreadlines(owner: Any) -> Any:
    return lambda: iter(owner)


def im_class(owner: Any) -> Any:
    return type(owner.__self__)


def message(owner: Any) -> Any:
    """Return the message of an exception."""
    if not isinstance(owner, BaseException):
        return owner.message
    return owner.args[0] if len(owner.args) == 1 else ""


def sort(owner: Any) -> Any:
    """Return the method of a list that takes a function ``cmp`` too."""
    if not isinstance(owner, list):
        return owner.sort

    def sort(
        cmp: Callable[[Any, Any], int] | None = None,
        key: Callable[[Any], Any] | None = None,
        reverse: bool = False,
    ) -> None:
        ordering.sort(owner, sort_key(cmp, key), reverse)

    return sort


def sort_key(
    cmp: Callable[[Any, Any], int] | None, key: Callable[[Any], Any] | None
) -> Callable[[Any], Any] | None:
    """Return the key that sorts as ``cmp`` does on the values of ``key``."""
    if cmp is None:
        return key
    by_cmp = functools.cmp_to_key(cmp)
    return by_cmp if key is None else lambda value: by_cmp(key(value))


# --- text of numbers ------------------------------------------------------------------------------


#: how a float of a subclass is written unless that says otherwise
_REPR: Any = float.__repr__


class _ShortFloat(float):
    """A float that %s and ``{}`` format by 12 digits."""

    def __str__(self) -> str:
        return text(float(self))

    def __format__(self, spec: str) -> str:
        return float.__format__(self, spec) if spec else str(self)


class _ShortComplex(complex):
    """A complex number whose parts %s and ``{}`` format by 12 digits."""

    def __str__(self) -> str:
        return text(complex(self))

    def __format__(self, spec: str) -> str:
        return complex.__format__(self, spec) if spec else str(self)


def short_float(value: Any) -> Any:
    """Return a float or complex number that formats as in Python 2, and all else as it is."""
    if type(value) is float:
        return _ShortFloat(value)
    return _ShortComplex(value) if type(value) is complex else value


def text(value: Any) -> str:
    """Return ``str(value)`` of Python 2, which rounded floats to 12 digits."""
    kind: Any = type(value)
    if kind is float or (
        isinstance(value, float) and kind.__str__ is object.__str__ and kind.__repr__ is _REPR
    ):
        short = f"{value:.12g}"
        digits = short.lstrip("-")
        if not digits.isdigit():
            return short
        if len(digits) < 12:
            return f"{short}.0"
        mantissa, _, exponent = f"{value:.11e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
    if kind is complex:
        imaginary = f"{value.imag:.12g}j"
        if value.real == 0 and math.copysign(1, value.real) == 1:
            return imaginary
        sign = "" if imaginary.startswith("-") else "+"
        return f"({value.real:.12g}{sign}{imaginary})"
    return as_text(value) if kind is bytes else str(value)


def as_text(value: bytes) -> str:
    """Return bytes as text, from which the same bytes can be made."""
    return bytes.decode(value, "utf-8", "surrogateescape")


def format(owner: Any) -> Any:
    """Return the method of text, which formats floats by 12 digits."""
    if not isinstance(owner, str):
        return owner.format

    def format(*args: Any, **named: Any) -> str:
        short = {name: short_float(value) for name, value in named.items()}
        return owner.format(*map(short_float, args), **short)

    return format


# --- print x, -------------------------------------------------------------------------------------


def take_space(stream: Any) -> bool:
    """Return whether a space is due before what is printed next, and forget it."""
    is_due = getattr(stream, "softspace", 0)
    if is_due:
        stream.softspace = 0
    return bool(is_due)


def keep_space(stream: Any) -> None:
    """Let a space come before what is printed next on a stream."""
    with contextlib.suppress(AttributeError, TypeError):
        stream.softspace = 1


def write(owner: Any) -> Any:
    """Return the method of a file; a space that ``print x,`` left is not due after it."""
    if hasattr(owner, "softspace"):
        take_space(owner)
    return owner.write


# --- codecs ---------------------------------------------------------------------------------------


def decode(owner: Any) -> Any:
    """Return the method of bytes; text is decoded already, unless by a codec of bytes."""
    if not isinstance(owner, str):
        return owner.decode

    def decode(encoding: str = "utf-8", errors: str = "strict") -> Any:
        if not _is_of_bytes(encoding):
            return owner
        import codecs

        return codecs.decode(owner.encode("latin-1"), encoding, errors)

    return decode


def decode_bytes(data: bytes, encoding: str, errors: str) -> Any:
    """Return bytes that are decoded, also by a codec from bytes to bytes."""
    import codecs

    return codecs.decode(bytes(data), encoding, errors)


def encode(owner: Any) -> Any:
    """Return the method of text, which knows the codecs of bytes too."""
    if not isinstance(owner, str):
        return owner.encode

    def encode(encoding: str = "utf-8", errors: str = "strict") -> Any:
        if not _is_of_bytes(encoding):
            return owner.encode(encoding, errors)
        import codecs

        encoded, _ = codecs.lookup(encoding).encode(owner.encode("latin-1"), errors)  # type: ignore
        return encoded.decode("latin-1")

    return encode


def _is_of_bytes(encoding: str) -> bool:
    return encoding.replace("-", "_").removesuffix("_codec") in _BYTE_CODECS


# --- of files of h5py -----------------------------------------------------------------------------


def value(owner: Any) -> Any:
    """Return what a dataset of a file holds."""
    is_dataset = type(owner).__module__.partition(".")[0] == "h5py"
    return owner[()] if is_dataset else owner.value


# --- of arrays ------------------------------------------------------------------------------------


def itemset(owner: Any) -> Any:
    """Return the method that sets one element: ``itemset(value)``, ``itemset(*index, value)``."""

    def itemset(*args: Any) -> None:
        *index, value = args
        if len(index) == 1 and not isinstance(index[0], tuple):
            owner.flat[index[0]] = value
        else:
            owner[tuple(index[0] if len(index) == 1 else index)] = value

    return itemset


def newbyteorder(owner: Any) -> Any:
    return lambda order="S": owner.view(owner.dtype.newbyteorder(order))


def ptp(owner: Any) -> Any:
    return functools.partial(np.ptp, owner)


# --- matplotlib -----------------------------------------------------------------------------------


def hold(owner: Any) -> Any:
    return lambda *b: None


def ishold(owner: Any) -> Any:
    return lambda: True


def gca(owner: Any) -> Any:
    """Return the method of a figure; it made axes of the projection that it was given."""
    method = owner.gca

    def current(**options: Any) -> Any:
        if not options:
            return method()
        name = options.get("projection", "rectilinear")
        if owner.axes and method().name == name:
            return method()
        return owner.add_subplot(**options)

    return current if hasattr(owner, "add_subplot") else method


def pcolormesh(owner: Any) -> Any:
    return _mesh(owner.pcolormesh)


def pcolor(owner: Any) -> Any:
    return _mesh(owner.pcolor)


def _mesh(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that colours cells, which takes as many corners as cells.

    Until matplotlib 3.5 the last row and column of cells were left out then.
    """

    @functools.wraps(method)
    def drawn(*args: Any, **options: Any) -> Any:
        if len(args) == 3 and options.get("shading", "flat") == "flat":
            x, y, colours = map(np.ma.asanyarray, args)
            if colours.ndim == 2 and x.ndim and y.ndim:
                rows, columns = y.shape[0] - 1, x.shape[-1] - 1
                if colours.shape[0] - rows in (0, 1) and colours.shape[1] - columns in (0, 1):
                    args = (*args[:2], colours[:rows, :columns])
                    options["shading"] = "flat"
        return method(*args, **options)

    return drawn
