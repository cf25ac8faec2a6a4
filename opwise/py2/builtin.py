"""The builtins of Python 2, for converted modules alone, and what converted code calls.

Text stays Unicode, and bytes stay bytes: only Python 2 took one for the other.
"""

from __future__ import annotations

import builtins
import decimal
import functools
import importlib
import importlib.util
import io
import itertools
import math
import numbers
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.variable import Variable
from opwise.py2 import convert, methods, ordering
from opwise.py2.lookup import PYTHON2, PYTHON3
from opwise.scalar import dtypes

# --- division -------------------------------------------------------------------------------------


def _is_discrete(value: Any) -> bool:
    """Return whether Python 2 and its numpy and Theano divided a value as an integer."""
    if isinstance(value, int | np.integer | np.bool_):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biu"
    if isinstance(value, Variable):
        return getattr(value.type, "dtype", None) in dtypes.DISCRETE
    return isinstance(value, numbers.Integral)


def divide(left: Any, right: Any) -> Any:
    """Return ``left / right`` of Python 2: of two integers, the floor of the quotient.

    Two symbolic integers divide as the flag int_division says, as in Theano under Python 2.
    """
    if _is_discrete(left) and _is_discrete(right):
        if isinstance(left, Variable) or isinstance(right, Variable):
            return _divide_symbols(left, right)
        return left // right
    return left / right


def _divide_symbols(left: Any, right: Any) -> Any:
    if config.int_division == "int":
        return left // right
    if config.int_division == "floatX":
        return (left / right).astype(config.floatX)
    raise TypeError(
        f"{left} / {right} divides integers, and the flag int_division is 'raise': write // for "
        "the floor of the quotient, or cast one of them to a float."
    )


def divide_in_place(left: Any, right: Any) -> Any:
    """Return the new value of ``left`` after ``left /= right``; overwrites an array."""
    if _is_discrete(left) and _is_discrete(right):
        if isinstance(left, Variable) or isinstance(right, Variable):
            return _divide_symbols(left, right)
        left //= right
    else:
        left /= right
    return left


def divide_attribute(owner: Any, name: str, right: Any) -> None:
    """Do ``owner.name /= right``."""
    setattr(owner, name, divide_in_place(getattr(owner, name), right))


def divide_item(owner: Any, index: Any, right: Any) -> None:
    """Do ``owner[index] /= right``."""
    set_item(divide_in_place(owner[index], right), owner, index)


# --- classes --------------------------------------------------------------------------------------

#: special methods of Python 2 -> of Python 3
_SPECIAL = {
    "__div__": "__truediv__",
    "__rdiv__": "__rtruediv__",
    "__idiv__": "__itruediv__",
    "__nonzero__": "__bool__",
    "next": "__next__",
}
_BY_CMP: dict[str, Callable[[int], bool]] = {
    "__lt__": lambda order: order < 0,
    "__le__": lambda order: order <= 0,
    "__gt__": lambda order: order > 0,
    "__ge__": lambda order: order >= 0,
    "__eq__": lambda order: order == 0,
    "__ne__": lambda order: order != 0,
}


def build_class(function: Any, name: str, *bases: Any, **kwargs: Any) -> Any:
    """Make a class, whose special methods of Python 2 work."""
    made: Any = builtins.__build_class__(function, name, *bases, **kwargs)
    if isinstance(made, type):
        _modernise(made)
    return made


def _modernise(cls: Any) -> None:
    """Give a class the special methods of Python 3 that those of Python 2 stand for."""
    own = dict(vars(cls))
    for old, new in _SPECIAL.items():
        if old in own and new not in own and callable(own[old]):
            setattr(cls, new, own[old])
    if "__cmp__" in own:
        for special, holds in _BY_CMP.items():
            if special not in own:
                setattr(cls, special, _by_cmp(own["__cmp__"], holds))
    if own.get("__hash__", 0) is None:  # Python 3 removes it from classes that define __eq__
        del cls.__hash__
    if "__unicode__" in own and "__str__" not in own:
        cls.__str__ = own["__unicode__"]
    if "__getslice__" in own and "__getitem__" not in own:
        cls.__getitem__ = _by_slice(own["__getslice__"])


def _by_cmp(compare: Callable[[Any, Any], int], holds: Callable[[int], bool]) -> Any:
    return lambda self, other: holds(compare(self, other))


def _by_slice(getslice: Callable[[Any, int, int], Any]) -> Any:
    def getitem(self: Any, index: slice) -> Any:
        return getslice(self, index.start or 0, sys.maxsize if index.stop is None else index.stop)

    return getitem


# --- arrays of one element, which were numbers until numpy 2.4 ------------------------------------


def _is_single(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.size == 1


def number(kind: Callable[[Any], Any], value: Any) -> Any:
    """Return ``kind(value)``, where ``value`` may be an array of one element."""
    return kind(value.item() if _is_single(value) else value)


class _Single:
    """An array of one element in formatted text: a number for %f, an array for %s."""

    def __init__(self, array: Any):
        self._array = array

    def __float__(self) -> float:
        return float(self._array.item())

    def __int__(self) -> int:
        return int(self._array.item())

    def __index__(self) -> int:
        return operator.index(self._array.item())

    def __str__(self) -> str:
        return str(self._array)

    def __repr__(self) -> str:
        return repr(self._array)


def remainder(left: Any, right: Any) -> Any:
    """Return ``left % right``; text is formatted with arrays of one element as numbers."""
    if isinstance(left, str):
        if isinstance(right, tuple):
            right = tuple(_Single(each) if _is_single(each) else each for each in right)
        elif _is_single(right):
            right = _Single(right)
    return left % right


def text_remainder(left: Any, right: Any) -> Any:
    """Return ``left % right`` of Python 2; %s formats floats by 12 digits."""
    if isinstance(left, str):
        if isinstance(right, tuple):
            right = tuple(map(methods.short_float, right))
        elif type(right) is dict:
            right = {key: methods.short_float(value) for key, value in right.items()}
        else:
            right = methods.short_float(right)
    return remainder(left, right)


def text_of(kind: Callable[[Any], Any], value: Any) -> Any:
    """Return ``kind(value)``, where ``kind`` is what the program calls str or unicode."""
    return methods.text(value) if kind is str else kind(value)


def set_item(value: Any, owner: Any, index: Any) -> None:
    """Set ``owner[index] = value``; an element of an array may be set to an array of one."""
    if _is_single(value) and isinstance(owner, np.ndarray) and owner.dtype != object:
        value = np.asarray(value).reshape(())  # broadcasts as the array itself does
    owner[index_of(owner, index)] = value


#: the name of an operator in a syntax tree -> what ``x[i] OP= value`` does with the element
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "MatMult": operator.imatmul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": operator.ipow,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
    "BitAnd": operator.iand,
}


def read_item(owner: Any, index: Any) -> tuple[Any, Any, Any]:
    """Return (owner, index, owner[index]) for ``update_item``."""
    return owner, index, owner[index_of(owner, index)]


def update_item(name: str, read: tuple[Any, Any, Any], value: Any) -> None:
    """Do ``owner[index] OP= value``; ``value`` may be an array of one element."""
    owner, index, element = read
    set_item(_IN_PLACE[name](element, value), owner, index)


# --- truth and comparisons of arrays --------------------------------------------------------------


def truth(value: Any) -> Any:
    """Return ``value``, or False for an empty array, as which it counted until numpy 2.2."""
    return False if isinstance(value, np.ndarray) and value.size == 0 else value


def equal(left: Any, right: Any) -> Any:
    """Return ``left == right``; until numpy 1.25, False if arrays could not be compared."""
    kind = type(left)
    if kind is type(right) and kind is not np.ndarray:
        return left == right
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return _compared(operator.eq, left, right, False)
    return left == right


def unequal(left: Any, right: Any) -> Any:
    """Return ``left != right``; until numpy 1.25, True if arrays could not be compared."""
    kind = type(left)
    if kind is type(right) and kind is not np.ndarray:
        return left != right
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return _compared(operator.ne, left, right, True)
    return left != right


def _equal_text(left: Any, right: Any) -> Any:
    """Return ``left == right`` of Python 2, where bytes may equal text."""
    if _is_mixed(left, right):
        return _bytes_of(left) == _bytes_of(right)
    return equal(left, right)


def _unequal_text(left: Any, right: Any) -> Any:
    """Return ``left != right`` of Python 2, where bytes may equal text."""
    if _is_mixed(left, right):
        return _bytes_of(left) != _bytes_of(right)
    return unequal(left, right)


def _is_mixed(left: Any, right: Any) -> bool:
    """Return whether one is bytes, and the other text."""
    if isinstance(left, bytes):
        return isinstance(right, str)
    return isinstance(right, bytes) and isinstance(left, str)


def _compared(compare: Callable[[Any, Any], Any], left: Any, right: Any, otherwise: bool) -> Any:
    """Compare two values of which one is an array."""
    if _is_of_text(left) is not _is_of_text(right) and None not in map(_is_of_text, (left, right)):
        return otherwise  # numbers with text
    try:
        return compare(left, right)
    except ValueError as error:
        if "broadcast" not in str(error):
            raise
        return otherwise


def _is_of_text(value: Any) -> bool | None:
    """Return whether a value is text or an array of it; None for what is no array or scalar."""
    if isinstance(value, str | bytes):
        return True
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "SU" if value.dtype.kind in "SUbiufc" else None
    return False if isinstance(value, int | float | complex) else None


def equals_none(value: Any) -> Any:
    """Return the truth of ``value == None``: False for an array, as until numpy 1.13."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return False
    return value == None  # noqa: E711


# --- indices that are lists -----------------------------------------------------------------------


def index_of(owner: Any, index: Any) -> Any:
    """Return ``index`` as a tuple if it is a list that numpy took as a tuple, before 1.23.

    These are lists of fewer than 32 elements, one of which is a slice, a sequence, an array, None
    or Ellipsis; owner: what is indexed.
    """
    if (
        type(index) is list
        and isinstance(owner, np.ndarray)
        and len(index) < 32
        and any(_counts_as_index(element) for element in index)
    ):
        return tuple(index)
    return index


def _counts_as_index(element: Any) -> bool:
    if element is None or element is Ellipsis or isinstance(element, slice | np.ndarray):
        return True
    return hasattr(type(element), "__getitem__") and not isinstance(element, str | np.generic)


def item(owner: Any, index: Any) -> Any:
    """Return ``owner[index]``."""
    return owner[index_of(owner, index)]


def bound(value: Any) -> Any:
    """Return a bound of a slice; the fraction of a float is dropped, as numpy did until 1.12."""
    return int(value) if isinstance(value, float | np.floating) else value


# --- functions that returned lists ----------------------------------------------------------------


def range_(*args: Any) -> list[int]:
    return list(builtins.range(*args))


def map_(function: Any, *iterables: Iterable[Any]) -> list[Any]:
    function = methods.text if function is str else function
    if len(iterables) == 1:
        return list(iterables[0] if function is None else builtins.map(function, iterables[0]))
    rows = itertools.zip_longest(*iterables)  # the shorter ones were filled with None
    return list(rows) if function is None else [function(*row) for row in rows]


def filter_(function: Any, iterable: Any) -> Any:
    found = list(builtins.filter(function, iterable))
    if isinstance(iterable, str):
        return "".join(found)
    return tuple(found) if isinstance(iterable, tuple) else found


def zip_(*iterables: Iterable[Any]) -> list[Any]:
    return list(builtins.zip(*iterables, strict=False))


# --- other builtins -------------------------------------------------------------------------------


class _TextType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str | ByteString)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, str | ByteString)


class basestring(metaclass=_TextType):
    """The class of text, and of bytes that were read."""


class _XRangeType(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, builtins.range)


class xrange(metaclass=_XRangeType):
    """Makes a range, also of whole floats."""

    def __new__(cls, *args: Any) -> Any:
        return builtins.range(*(int(x) if isinstance(x, float) else x for x in args))


def cmp(left: Any, right: Any) -> int:
    """Return -1, 0 or 1: how the arguments are ordered."""
    return ordering.order(left, right)


def sorted_(
    iterable: Iterable[Any],
    cmp: Callable[[Any, Any], int] | None = None,
    key: Callable[[Any], Any] | None = None,
    reverse: bool = False,
) -> list[Any]:
    """Sort; cmp: a function that returns a negative, zero or positive number."""
    values = list(iterable)
    ordering.sort(values, methods.sort_key(cmp, key), reverse)
    return values


def round_(number: Any, ndigits: int = 0) -> Any:
    """Round half away from zero, to a float."""
    if not isinstance(number, int | float) or not math.isfinite(number):
        return builtins.round(number, ndigits)
    with decimal.localcontext() as context:
        context.prec = 1100  # enough for every float
        unit = decimal.Decimal(1).scaleb(-ndigits)
        return float(decimal.Decimal(number).quantize(unit, decimal.ROUND_HALF_UP))


def apply(function: Any, args: Any = (), kwargs: Any = None) -> Any:
    return function(*args, **(kwargs or {}))


def coerce(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both numbers in their common type."""
    kind = type(left + right)
    return kind(left), kind(right)


def reload(module: types.ModuleType) -> types.ModuleType:
    """Execute a module again; those of the interpreter itself stay as they are."""
    if module.__name__ in sys.builtin_module_names:
        return module
    return importlib.reload(module)


def input_(prompt: str = "") -> Any:
    frame = sys._getframe(1)
    return eval(convert.compiled(input(prompt), "<input>", "eval"), frame.f_globals, frame.f_locals)


def raw_input_(prompt: str = "") -> str:
    if methods.take_space(sys.stdout):
        sys.stdout.write(" ")
    return input(prompt)


def print_(*values: Any, **options: Any) -> None:
    """Print; bytes are printed as text, as Python 2 did, and floats by 12 digits."""
    print(*map(methods.text, values), **options)


def print_statement(*values: Any, file: Any = None, end: str = "\n") -> None:
    """Do ``print >> file, a, b``; with end=" ", ``print >> file, a, b,``.

    The space after a comma is written only before something else is printed on the same line.
    """
    stream = sys.stdout if file is None else file
    if stream is None:
        return
    space = methods.take_space(stream)
    for value in values:
        text = methods.text(value)
        stream.write(f" {text}" if space else text)
        space = not (isinstance(value, str | bytes) and text[-1:].isspace() and text[-1] != " ")
    if end == "\n":
        stream.write("\n")
    elif space:
        methods.keep_space(stream)


def end_line() -> None:
    """End the line of a program whose last statement was ``print x,``."""
    if methods.take_space(sys.stdout):
        print()


# --- code as text ---------------------------------------------------------------------------------


def eval_(source: Any, globals: Any = None, locals: Any = None) -> Any:
    if isinstance(source, str | bytes):
        source = convert.compiled(source, "<string>", "eval")
    return builtins.eval(source, *_scopes(globals, locals))


def exec_(source: Any, globals: Any = None, locals: Any = None) -> None:
    if isinstance(source, str | bytes):
        source = convert.compiled(source, "<string>")
    builtins.exec(source, *_scopes(globals, locals))


def execfile(path: str, globals: Any = None, locals: Any = None) -> None:
    with builtins.open(path, "rb") as file:
        source = file.read()
    builtins.exec(convert.compiled(source, path), *_scopes(globals, locals))


def compile_(source: Any, filename: str, mode: str, *flags: Any, **options: Any) -> Any:
    if isinstance(source, str | bytes):
        return convert.compiled(source, filename, mode)
    return builtins.compile(source, filename, mode, *flags, **options)


def _scopes(globals: Any, locals: Any) -> tuple[Any, Any]:
    """Return the scopes in which to execute code: by default, those of the caller's caller."""
    frame = sys._getframe(2)
    if globals is None:
        globals, locals = frame.f_globals, frame.f_locals if locals is None else locals
    globals.setdefault("__builtins__", BUILTINS[2])
    return globals, globals if locals is None else locals


# --- files ----------------------------------------------------------------------------------------


def open_(name: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
    """Open a file; text keeps its bytes and its ends of lines, unless ``mode`` has a U.

    Text can be written into a binary file too.
    """
    universal, mode = "U" in mode, mode.replace("U", "") or "r"
    if mode[0] not in "rwax":
        mode = f"r{mode}"
    if buffering == 0 and "b" not in mode:
        buffering = 1
    if "b" in mode:
        if mode in ("rb", "br") and buffering and not args and not options:
            return _ReadFile(io.FileIO(name), buffering if buffering > 1 else 1 << 16)
        file = builtins.open(name, mode, buffering, *args, **options)  # noqa: SIM115
        return file if mode.startswith("r") and "+" not in mode else Writable(file)
    options.setdefault("encoding", "utf-8")
    options.setdefault("errors", "surrogateescape")
    options.setdefault("newline", None if universal else "\n")
    if (mode[0] == "r" and "+" not in mode) or args:
        return builtins.open(name, mode, buffering, *args, **options)
    raw: Any = builtins.open(name, mode.replace("t", "") + "b", 1 << 16)  # noqa: SIM115
    return TextFile(raw, mode, line_buffering=buffering == 1 or raw.isatty(), **options)


class TextFile(io.TextIOWrapper):
    """A file of text, into which bytes can be written as they are."""

    def __init__(self, raw: Any, mode: str, **options: Any):
        super().__init__(raw, **options)
        self.mode = mode  # type: ignore[misc]

    def write(self, data: Any) -> int:
        return super().write(methods.as_text(data) if isinstance(data, bytes) else data)


def _bytes_of(value: Any) -> Any:
    """Return text as bytes, and everything else as it is; also within a tuple."""
    if isinstance(value, tuple):
        return tuple(map(_bytes_of, value))
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


class ByteString(bytes):
    """Bytes that converted code has read: bytes for libraries, and text where they meet text.

    Parts of it, by an index or in a loop, are ByteStrings again; what methods for text return is
    text if it is UTF-8.
    """

    def __str__(self) -> str:
        return methods.as_text(self)

    def __repr__(self) -> str:
        return repr(str(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> Any:
        return bytes, (bytes(self),)

    def __getitem__(self, index: Any) -> Any:
        part = super().__getitem__(index)
        return ByteString(part if isinstance(part, bytes) else (part,))

    def __iter__(self) -> Any:
        return (ByteString((number,)) for number in super().__iter__())

    def __contains__(self, part: Any) -> bool:
        return super().__contains__(_bytes_of(part))

    def __add__(self, other: Any) -> Any:
        return str(self) + other if isinstance(other, str) else ByteString(super().__add__(other))

    def __radd__(self, other: Any) -> Any:
        return other + (str(self) if isinstance(other, str) else bytes(self))

    def __mul__(self, times: Any) -> Any:
        return ByteString(super().__mul__(times))

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> Any:
        return str(self) % values

    def __eq__(self, other: object) -> bool:
        return super().__eq__(_bytes_of(other) if type(other) is str else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> bool:
        return super().__lt__(_bytes_of(other))

    def __le__(self, other: Any) -> bool:
        return super().__le__(_bytes_of(other))

    def __gt__(self, other: Any) -> bool:
        return super().__gt__(_bytes_of(other))

    def __ge__(self, other: Any) -> bool:
        return super().__ge__(_bytes_of(other))

    __hash__ = bytes.__hash__  # that of the same text, if it is ASCII

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> Any:
        return methods.decode_bytes(self, encoding, errors)

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> Any:
        return methods.encode(str(self))(encoding, errors)

    def format(self, *args: Any, **named: Any) -> str:
        return str(self).format(*args, **named)


def _of_text(name: str) -> Callable[..., Any]:
    """Return a method of bytes that takes text too, and returns text."""
    method = getattr(bytes, name)

    @functools.wraps(method)
    def called(self: bytes, *args: Any, **named: Any) -> Any:
        if name == "join":
            args = ([_bytes_of(part) for part in args[0]],)
        found = method(self, *map(_bytes_of, args), **named)
        if isinstance(found, list | tuple):
            return type(found)(_text_if(True, part) for part in found)
        return _text_if(True, found) if isinstance(found, bytes) else found

    return called


for _name in (
    "capitalize center count endswith expandtabs find index join ljust lower lstrip partition "
    "replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip "
    "swapcase title upper zfill"
).split():
    setattr(ByteString, _name, _of_text(_name))


class TextLines:
    """Part of a class of binary files: converted code gets lines as text if they are UTF-8.

    A line was a str, whichever way its file was opened, and was compared with others. ``read``
    gives it a ByteString. Other code, as pickle or numpy, gets bytes.
    """

    def read(self, *size: Any) -> Any:
        data = super().read(*size)  # type: ignore[misc]
        return _string_if(_is_converted(sys._getframe(1)), data)

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        line = super().readline()  # type: ignore[misc]
        if not line:
            raise StopIteration
        return _text_if(_is_converted(sys._getframe(1)), line)

    def readline(self, *size: Any) -> Any:
        line = super().readline(*size)  # type: ignore[misc]
        return _text_if(_is_converted(sys._getframe(1)), line)

    def readlines(self, *hint: Any) -> list[Any]:
        is_text = _is_converted(sys._getframe(1))
        return [_text_if(is_text, line) for line in super().readlines(*hint)]  # type: ignore[misc]


def _is_converted(frame: types.FrameType) -> bool:
    """Return whether a frame runs code that was converted from Python 2."""
    return frame.f_builtins is BUILTINS[2]


def _string_if(is_converted: bool, data: Any) -> Any:
    return ByteString(data) if is_converted and isinstance(data, bytes) else data


def _text_if(is_text: bool, line: Any) -> Any:
    if not is_text or not isinstance(line, bytes):
        return line
    try:
        return bytes.decode(line, "utf-8")
    except UnicodeDecodeError:
        return ByteString(line)


class _ReadFile(TextLines, io.BufferedReader):
    """A file that was opened to read bytes."""

    @property
    def mode(self) -> str:
        return "rb"


class Writable:
    """A binary file into which text can be written, as into any file of Python 2.

    Converted code gets its lines as text, see ``TextLines``.
    """

    def __init__(self, file: Any):
        self._file = file

    def write(self, data: Any) -> int:
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogateescape")
        written: int = self._file.write(data)
        return written

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, *size: Any) -> Any:
        return _string_if(_is_converted(sys._getframe(1)), self._file.read(*size))

    def __enter__(self) -> Writable:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[Any]:
        is_text = _is_converted(sys._getframe(1))
        return (_text_if(is_text, line) for line in self._file)

    def readline(self, *size: Any) -> Any:
        return _text_if(_is_converted(sys._getframe(1)), self._file.readline(*size))

    def readlines(self, *hint: Any) -> list[Any]:
        is_text = _is_converted(sys._getframe(1))
        return [_text_if(is_text, line) for line in self._file.readlines(*hint)]


# --- the builtins of converted modules ------------------------------------------------------------

_GIVEN: dict[str, Any] = {
    "__import__": PYTHON2.import_,
    "__build_class__": build_class,
    "__py2_divide__": divide,
    "__py2_divide_in_place__": divide_in_place,
    "__py2_divide_attribute__": divide_attribute,
    "__py2_divide_item__": divide_item,
    "__py2_attribute__": PYTHON2.attribute,
    "__py2_slice__": slice,
    "__py2_bound__": bound,
    "__py2_int__": int,
    "__py2_less__": ordering.less,
    "__py2_less_equal__": ordering.less_equal,
    "__py2_greater__": ordering.greater,
    "__py2_greater_equal__": ordering.greater_equal,
    "__py2_number__": number,
    "__py2_print__": print_statement,
    "__py2_text__": text_of,
    "__py2_remainder__": text_remainder,
    "__py2_set_item__": set_item,
    "__py2_read_item__": read_item,
    "__py2_update_item__": update_item,
    "__py2_truth__": truth,
    "__py2_equal__": _equal_text,
    "__py2_unequal__": _unequal_text,
    "__py2_equals_none__": equals_none,
    "__py2_index__": index_of,
    "__py2_item__": item,
    "__py2_type__": type,
    "__py2_list__": list,
    "range": range_,
    "map": map_,
    "filter": filter_,
    "zip": zip_,
    "xrange": xrange,
    "unicode": str,
    "basestring": basestring,
    "long": int,
    "unichr": chr,
    "raw_input": raw_input_,
    "input": input_,
    "file": open_,
    "open": open_,
    "reduce": functools.reduce,
    "cmp": cmp,
    "sorted": sorted_,
    "min": ordering.extreme(min),
    "max": ordering.extreme(max),
    "round": round_,
    "apply": apply,
    "coerce": coerce,
    "execfile": execfile,
    "eval": eval_,
    "exec": exec_,
    "compile": compile_,
    "reload": reload,
    "intern": sys.intern,
    "buffer": memoryview,
    "StandardError": Exception,
    "print": print_,
}


def _module(name: str, own: dict[str, Any]) -> types.ModuleType:
    made = types.ModuleType(name, "The builtins of converted programs.")
    vars(made).update({**vars(builtins), **own, "__name__": name})
    return made


#: the module ``__builtin__`` of converted programs
MODULE = _module("__builtin__", _GIVEN)
#: version of Python -> the module of the builtins of modules that were converted from it
MODULES = {
    2: MODULE,
    3: _module(
        "builtins",
        {
            **{name: value for name, value in _GIVEN.items() if name.startswith("__py2_")},
            "__py2_equal__": equal,
            "__py2_unequal__": unequal,
            "__py2_remainder__": remainder,
            "__import__": PYTHON3.import_,
            "__py2_attribute__": PYTHON3.attribute,
        },
    ),
}
#: version of Python -> what that module has
BUILTINS: dict[int, dict[str, Any]] = {python: vars(module) for python, module in MODULES.items()}
