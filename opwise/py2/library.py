"""Functions of the libraries of 2010 to 2018 that are gone: ``breakages`` names them.

The functions for pictures need Pillow, as they did.
"""

from __future__ import annotations

import base64
import csv
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import numbers
import sys
import types
from collections import UserDict, UserList, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opwise.py2 import binary, breakages, methods
from opwise.py2.sizes import Sized


def _namespace(name: str, *modules: str, **others: Any) -> types.ModuleType:
    """Return a module with the names of others, of which the first counts."""
    made = types.ModuleType(name)
    for module in reversed(modules):
        own = vars(importlib.import_module(module))
        vars(made).update({key: own[key] for key in own if not key.startswith("__")})
    vars(made).update(others)
    return made


#: modules that are made when they are used first -> how
_MADE: dict[str, Callable[[], types.ModuleType]] = {
    "urllib2": lambda: _namespace(
        "urllib2", "urllib.request", "urllib.error", "urllib.parse", urlopen=binary.urlopen
    ),
    "StringIO": lambda: _namespace("StringIO", StringIO=binary.InMemory),
    "ConfigParser": lambda: _config_parser(),
    "sets": lambda: _namespace("sets", Set=set, ImmutableSet=frozenset),
    "md5": lambda: _namespace("md5", md5=binary.md5, new=binary.md5),
    "sha": lambda: _namespace("sha", sha=binary.sha1, new=binary.sha1),
    "user_types": lambda: _namespace(
        "UserDict", UserDict=UserDict, IterableUserDict=UserDict, UserList=UserList
    ),
    "imp": lambda: _namespace(
        "imp", load_source=_load_source, new_module=types.ModuleType, reload=importlib.reload
    ),
    "scipy_misc": lambda: _namespace("scipy.misc"),
    "math": lambda: _namespace("math", "math", **_math()),
    "cross_validation": lambda: _cross_validation(),
    "pkg_resources": lambda: _pkg_resources(),
    "sized": lambda: _namespace(
        "numpy", **{name: Sized(getattr(np, name)) for name in breakages.SIZES}
    ),
    "sized_random": lambda: _namespace(
        "numpy.random",
        **{name: Sized(getattr(np.random, name)) for name in breakages.RANDOM_SIZES},
    ),
    "umath_tests": lambda: _namespace(
        "numpy.core.umath_tests", inner1d=_inner1d, innerwt=_innerwt, matrix_multiply=np.matmul
    ),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MADE:
        made = globals()[name] = _MADE[name]()
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def ignore(*args: Any, **kwargs: Any) -> None:
    """Do nothing: what was asked for has no meaning any more."""


# --- scikit-learn ---------------------------------------------------------------------------------


class _Splits:
    """The pairs (indices for training, for testing) that a class of cross_validation was."""

    def __init__(self, pairs: Iterable[Any]):
        self._pairs = list(pairs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def _cross_validation() -> types.ModuleType:
    """Return the module whose classes took the number of rows, or the labels, and were iterable."""
    new = importlib.import_module("sklearn.model_selection")

    def folds(n: int, n_folds: int = 3, shuffle: bool = False, random_state: Any = None) -> _Splits:
        made = new.KFold(int(n_folds), shuffle=shuffle, random_state=random_state)
        return _Splits(made.split(np.zeros(n)))

    def stratified_folds(
        y: Any, n_folds: int = 3, shuffle: bool = False, random_state: Any = None
    ) -> _Splits:
        made = new.StratifiedKFold(int(n_folds), shuffle=shuffle, random_state=random_state)
        return _Splits(made.split(np.zeros(len(y)), y))

    def shuffled(
        n: int, n_iter: int = 10, test_size: Any = 0.1, train_size: Any = None,
        random_state: Any = None,
    ) -> _Splits:  # fmt: skip
        sizes = {"test_size": test_size, "train_size": train_size}
        made = new.ShuffleSplit(int(n_iter), random_state=random_state, **sizes)
        return _Splits(made.split(np.zeros(n)))

    def stratified_shuffled(
        y: Any, n_iter: int = 10, test_size: Any = 0.1, train_size: Any = None,
        random_state: Any = None,
    ) -> _Splits:  # fmt: skip
        sizes = {"test_size": test_size, "train_size": train_size}
        made = new.StratifiedShuffleSplit(int(n_iter), random_state=random_state, **sizes)
        return _Splits(made.split(np.zeros(len(y)), y))

    return _namespace(
        "sklearn.cross_validation",
        "sklearn.model_selection",
        KFold=folds,
        StratifiedKFold=stratified_folds,
        ShuffleSplit=shuffled,
        StratifiedShuffleSplit=stratified_shuffled,
        LeaveOneOut=lambda n: folds(n, n),
    )


def _config_parser() -> types.ModuleType:
    """Return the module whose classes have the method readfp, and take sections twice."""
    new = importlib.import_module("configparser")

    def old(kind: Any) -> Any:
        def init(self: Any, *args: Any, **options: Any) -> None:
            kind.__init__(self, *args, **{"strict": False, **options})

        own = {"__init__": init, "readfp": lambda self, file, name=None: self.read_file(file, name)}
        return type(kind.__name__, (kind,), own)

    parser = old(new.ConfigParser)
    return _namespace(
        "ConfigParser",
        "configparser",
        ConfigParser=parser,
        SafeConfigParser=parser,
        RawConfigParser=old(new.RawConfigParser),
    )


# --- Python and its packages ----------------------------------------------------------------------


def _pkg_resources() -> types.ModuleType:
    """Return setuptools' module if it is installed, else what stands in for it."""
    installed = importlib.util.find_spec("pkg_resources") is not None
    return importlib.import_module("pkg_resources" if installed else "opwise.py2.resources")


string_types = (str,)
none_type = type(None)


def is_sequence(value: object) -> bool:
    return isinstance(value, Sequence)


def is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def is_number(value: object) -> bool:
    return isinstance(value, numbers.Number)


def join(words: Iterable[str], separator: str = " ") -> str:
    return separator.join(words)


def zfill(value: Any, width: int) -> str:
    return str(value).zfill(width)


def _math() -> dict[str, Any]:
    """Return the functions of math, which take arrays of one element; two return floats again."""
    own = importlib.import_module("math")
    floats = ("ceil", "floor")
    return {name: _of_numbers(getattr(own, name), name in floats) for name in breakages.MATH}


def _of_numbers(function: Callable[..., Any], is_float: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any) -> Any:
        args = tuple(x.item() if isinstance(x, np.ndarray) and x.size == 1 else x for x in args)
        return float(function(*args)) if is_float else function(*args)

    return called


ArgSpec = namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(function: Any) -> Any:
    """Return (names of arguments, name of *args, name of **kwargs, defaults) of a function."""
    return ArgSpec(*inspect.getfullargspec(function)[:4])


def _bytes(data: Any) -> bytes:
    return data.encode("latin-1") if isinstance(data, str) else data


def decode_base64(data: Any) -> bytes:
    return base64.decodebytes(_bytes(data))


def encode_base64(data: Any) -> str:
    return base64.encodebytes(_bytes(data)).decode("ascii")


def _text_lines(lines: Iterable[Any]) -> Iterator[str]:
    for line in lines:
        yield line.decode("utf-8", "surrogateescape") if isinstance(line, bytes) else line


def csv_reader(lines: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return csv.reader of lines of text or bytes: Python 2 read such files as binary ones."""
    return csv.reader(_text_lines(lines), *args, **kwargs)


def csv_dict_reader(lines: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return csv.DictReader of lines of text or bytes."""
    return csv.DictReader(_text_lines(lines), *args, **kwargs)


def _load_source(name: str, path: str, file: object = None) -> types.ModuleType:
    """Import the module of a file under a name, converted like the user's other modules."""
    from opwise.py2 import hook

    loader = hook.Loader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


# --- numpy ----------------------------------------------------------------------------------------

minus_inf = -np.inf
zero, minus_zero = 0.0, -0.0


def array(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Return numpy.array of values; rows of different lengths make an array of objects.

    With a dtype, arrays of one element among numbers are numbers, as they were until numpy 1.24.
    """
    try:
        return np.array(values, *args, **kwargs)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        if args or "dtype" in kwargs:
            return np.array(_with_numbers(values, error), *args, **{**kwargs, "copy": True})
        return np.array(values, dtype=object, **kwargs)


def _with_numbers(values: Any, error: ValueError) -> Any:
    """Return nested lists with numbers in place of arrays of one element.

    Raises the error if other arrays or sequences are left.
    """
    objects = np.array(values, dtype=object)
    for index, each in np.ndenumerate(objects):
        if isinstance(each, np.ndarray) and each.size == 1:
            objects[index] = each.item()
        elif np.ndim(each):
            raise error
    return objects.tolist()


def asarray(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Return numpy.asarray of values; rows of different lengths make an array of objects."""
    return array(values, *args, **{"copy": None, **kwargs})


def asanyarray(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Return numpy.asanyarray of values; rows of different lengths make an array of objects."""
    return array(values, *args, **{"copy": None, "subok": True, **kwargs})


def copied(values: Any, *args: Any, **kwargs: Any) -> Any:
    """Return numpy.copy of values; rows of different lengths make an array of objects."""
    return np.copy(asanyarray(values), *args, **kwargs)


def asscalar(a: Any) -> Any:
    return a.item()


def random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """Return random integers from low to high, both included; from 1 to low without high."""
    if high is None:
        low, high = 1, low
    return np.random.randint(low, high + 1, size)


def msort(a: Any) -> Any:
    return np.sort(a, axis=0)


class MachAr:
    """What numpy.MachAr() measured of floating-point numbers, from numpy.finfo."""

    def __init__(self, float_conv: type = float, *args: Any, **kwargs: Any):
        info = np.finfo(float_conv)
        self.ibeta, self.it = 2, info.nmant + 1
        self.eps = self.epsilon = info.eps
        self.tiny = self.xmin = info.tiny
        self.huge = self.xmax = info.max
        for name in "epsneg machep negep iexp minexp maxexp precision resolution".split():
            setattr(self, name, getattr(info, name))


class Tester:
    """numpy.testing.Tester, whose tests pytest runs today."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def test(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("numpy.testing.Tester is gone: run the tests with pytest")

    bench = test


def _inner1d(a: Any, b: Any) -> Any:
    return np.einsum("...i,...i->...", a, b)


def _innerwt(a: Any, b: Any, weights: Any) -> Any:
    return np.einsum("...i,...i,...i->...", a, b, weights)


def in1d(x: Any, values: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(np.asarray(x).ravel(), values, assume_unique=assume_unique, invert=invert)


class _Cast:
    """``cast[dtype](x)``."""

    def __getitem__(self, dtype: Any) -> Callable[[Any], Any]:
        return lambda x: np.asarray(x).astype(dtype)


cast = _Cast()


def scalar_type(value: Any) -> Any:
    return np.dtype(value).type


def common_type(array_types: Sequence[Any], scalar_types: Sequence[Any]) -> Any:
    return np.result_type(*array_types, *scalar_types)


def asfarray(a: Any, dtype: Any = np.float64) -> Any:
    return np.asarray(a, dtype=dtype)


def fromstring(data: Any, dtype: Any = float, count: int = -1, sep: str = "") -> Any:
    """Return an array of the bytes of ``data``, or of the numbers that ``sep`` separates in it."""
    if sep:
        return np.fromstring(data, dtype=dtype, count=count, sep=sep)
    return np.frombuffer(_bytes(data), dtype=dtype, count=count).copy()


# --- matplotlib -----------------------------------------------------------------------------------


def matplotlib_use(backend: str, warn: bool = False, force: bool = True) -> None:
    """Choose the backend of matplotlib, as its function use did with ``warn``."""
    importlib.import_module("matplotlib").use(backend, force=force)


# --- scipy ----------------------------------------------------------------------------------------


def pyplot_gca(**options: Any) -> Any:
    """Return the current axes of the current figure, made anew if they are of another kind."""
    from matplotlib import pyplot

    return methods.gca(pyplot.gcf())(**options)


def pyplot_pcolormesh(*args: Any, **options: Any) -> Any:
    """Colour the cells between corners, of which there may be as many as cells."""
    return methods.pcolormesh(importlib.import_module("matplotlib.pyplot"))(*args, **options)


def pyplot_pcolor(*args: Any, **options: Any) -> Any:
    """Colour the cells between corners, of which there may be as many as cells."""
    return methods.pcolor(importlib.import_module("matplotlib.pyplot"))(*args, **options)


def simps(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    from scipy import integrate

    return integrate.simpson(y, x=x, dx=dx, axis=axis)


def _pillow() -> Any:
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise ImportError(
            "The functions of scipy.misc for pictures need Pillow, which is not installed: "
            "pip install pillow"
        ) from None


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> Any:
    """Return the picture of a file as an array; flatten: in float32 shades of gray."""
    picture = _pillow().open(name)
    if mode is not None and mode != picture.mode:
        picture = picture.convert(mode)
    elif picture.mode == "P":
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    if flatten:
        picture = picture.convert("F")
    elif picture.mode == "1":
        picture = picture.convert("L")
    return np.array(picture)


def bytescale(data: Any, cmin: Any = None, cmax: Any = None, high: int = 255, low: int = 0) -> Any:
    """Scale numbers from the range cmin to cmax (default: of the data) to uint8."""
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    cmin = data.min() if cmin is None else cmin
    cmax = data.max() if cmax is None else cmax
    scaled = (data - cmin) * (float(high - low) / ((cmax - cmin) or 1)) + low
    return (scaled.clip(low, high) + 0.5).astype(np.uint8)


def toimage(
    arr: Any, high: int = 255, low: int = 0, cmin: Any = None, cmax: Any = None,
    mode: str | None = None, channel_axis: int | None = None,
) -> Any:  # fmt: skip
    """Return an array of two dimensions, or of three with 3 or 4 channels, as a picture."""
    arr = np.asarray(arr)
    if arr.ndim == 3 and channel_axis is None:
        channel_axis = next((axis for axis in (2, 0, 1) if arr.shape[axis] in (3, 4)), None)
    if arr.ndim == 3 and channel_axis is not None:
        arr = np.moveaxis(arr, channel_axis, -1)
    elif arr.ndim != 2:
        raise ValueError(
            f"'arr' has the shape {arr.shape}: a picture has two dimensions, or three with 3 or 4 "
            "channels"
        )
    if mode == "F":
        return _pillow().fromarray(arr.astype(np.float32))
    picture = _pillow().fromarray(np.ascontiguousarray(bytescale(arr, cmin, cmax, high, low)))
    return picture if mode is None else picture.convert(mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Write an array as a picture into a file."""
    toimage(arr, channel_axis=2 if np.ndim(arr) == 3 else None).save(name, format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> Any:
    """Return a picture of another size: in percent, as a fraction, or (rows, columns)."""
    picture = toimage(arr, mode=mode)
    if isinstance(size, int | np.integer):
        size = size / 100.0
    if isinstance(size, float | np.floating):
        columns, rows = (int(n * size) for n in picture.size)
    else:
        rows, columns = size
    return np.array(picture.resize((columns, rows), getattr(_pillow(), interp.upper())))
