"""Calls in converted text: of the program's own functions, of numpy, of Python's builtins."""

from __future__ import annotations

import builtins
import collections
import copy
import dis
import functools
import heapq
import itertools
import math
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.errors import TracingError
from opwise.graph.provenance import is_internal, library_of
from opwise.tracing import (
    branches,
    comprehensions,
    control,
    convert,
    generators,
    members,
    ordered,
    shaping,
)
from opwise.tracing.branches import if_expression
from opwise.tracing.comprehensions import Comprehension
from opwise.tracing.control import Steps
from opwise.tracing.indexing import converted
from opwise.tracing.kinds import LoopError
from opwise.tracing.lists import Deque, TracedList, memory_of, own_list
from opwise.tracing.ops import numpy_call
from opwise.tracing.reducing import lexsort, number_from, result_type_of
from opwise.tracing.trace import MISSING, NeedsState, current, is_speculative, untraceable
from opwise.tracing.values import (
    HANDLERS,
    PYTHON_TYPES,
    UNKNOWN,
    Number,
    Root,
    Traced,
    array,
    as_traced,
    call_function,
    captured,
    constant,
    constant_of,
    dim_variable,
    hint_of,
    is_one,
    is_traced,
    kind_of,
    leave_to_python,
    number_operation,
    number_variable,
)

#: how many calls of functions by themselves are traced, other than with the same numbers
MOST_NESTED = 3000

#: {a function of Python or numpy that does not dispatch on its arguments: what is called instead}
TABLE: dict[Any, Callable[..., Any]] = {}


def instead_of(*functions: Any) -> Callable[[Any], Any]:
    """Register what is called instead of functions."""

    def register(own: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            TABLE[function] = own
        return own

    return register


# --- functions of the program ---------------------------------------------------------------------


class Converted:
    """A function as it is traced."""

    def __init__(self, function: Any, make: Any, text: str, why: str = "") -> None:
        self._function, self._make = function, make
        #: its text
        self.text = text
        #: why it could not be converted; '' if it was
        self.why = why

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, with the arrays that it holds as traced ones."""
        if self._make is None:
            return self._function(*args, **kwargs)
        trace = current()
        if trace is None:
            return self._make(self._outside)(*args, **kwargs)
        key = None
        if trace.calls.get(self):
            key = self._key(args, kwargs)
            if key is not None and key in trace.returned:
                return trace.returned[key][0]
            _note_nested(trace)
        if key is None:
            with trace.calling(self):
                return self._make(self._outside)(*args, **kwargs)
        log: dict[Root, Any] = {}
        trace.written.append(log)
        try:
            with trace.calling(self):
                made = self._make(self._outside)(*args, **kwargs)
        finally:
            trace.written.pop()
        if not log and kind_of(made) is not None:
            trace.returned[key] = made, args
        return made

    def _key(self, args: Any, kwargs: Any) -> Any:
        """Return what decides the result of a call of the function by itself; None if that is not
        known to be its arguments alone, which have to be numbers."""
        if kwargs or not self._is_alone:
            return None
        key: list[Any] = [self]
        for value in args:
            if type(value) is Number:
                key.append((value.kind, value.text or id(value)))
            elif kind_of(value) is not None or value is None or isinstance(value, str):
                key.append((type(value), value))
            else:
                return None
        return tuple(key)

    @property
    def _is_alone(self) -> bool:
        """Whether the function reads nothing now that it or others may change."""
        code, names = self._function.__code__, self._function.__globals__
        outside = [names[name] for name in code.co_names if name in names]
        for cell in self._function.__closure__ or ():
            try:
                outside.append(cell.cell_contents)
            except ValueError:  # it has no value yet
                return False
        fixed = (int, float, complex, str, type, types.FunctionType, types.ModuleType, np.ufunc)
        return not _assigns_outside(self._function) and all(
            value is None or isinstance(value, (*fixed, types.BuiltinFunctionType))
            for value in outside
        )

    def _outside(self, owner: Any, name: str) -> Any:
        """Return what a global or closed-over variable holds while the function is traced."""
        value = owner.cell_contents if isinstance(owner, types.CellType) else owner[name]
        if current() is None or _is_of_numpy(self._function):
            return value
        return read(owner, name, value)


def _note_nested(trace: Any) -> None:
    """Count a call of a function by itself. Raises TracingError if there are too many of them."""
    trace.nested += 1
    if trace.nested > MOST_NESTED:
        raise untraceable(
            f"The function calls itself more than {MOST_NESTED} times while it is traced.",
            "Write a loop, or use opwise.jit(fallback=True).",
        )


_converted: weakref.WeakKeyDictionary[Any, Converted] = weakref.WeakKeyDictionary()
#: the code objects in converted text: functions made there are converted already
_own_codes: set[types.CodeType] = set()


def convert_function(function: Callable[..., Any]) -> Converted:
    """Return a function as it is traced: converted, if it is Python code with source."""
    if (
        not isinstance(function, types.FunctionType)
        or function.__code__ in _own_codes
        or _is_internal(function.__code__)
    ):
        return Converted(function, None, "", "it is no Python function")
    made = _converted.get(function)
    if made is None:
        try:
            make, text, codes = convert.convert(function, HOOKS)
        except convert.Unconvertible as error:
            made = Converted(function, None, "", str(error))
        else:
            _own_codes.update(codes)
            made = Converted(function, make, text)
        _converted[function] = made
    return made


def _is_internal(code: types.CodeType) -> bool:
    """Return whether code is of this package, and not written to be converted."""
    return is_internal(code) and code.co_filename != ordered.__file__


def _is_convertible(function: types.FunctionType) -> bool:
    code = function.__code__
    return (
        code not in _own_codes
        and not _is_internal(code)
        and library_of(code.co_filename) not in ("python", "numpy", "scipy")
    )


def _is_of_numpy(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and library_of(code.co_filename) == "numpy"


def _by_implementation(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of numpy that has no handler: trace it, if numpy wrote it in Python.

    Raises TracingError if it is written in C, or does what cannot be traced.
    """
    name = f"{getattr(function, '__module__', 'numpy')}.{getattr(function, '__name__', function)}"
    inner = getattr(function, "_implementation", None)
    if not isinstance(inner, types.FunctionType):
        raise untraceable(
            f"{name} cannot be traced yet.",
            "Write it with other functions of numpy, or use opwise.jit(fallback=True).",
        )
    try:
        return convert_function(inner).call(*args, **kwargs)
    except TracingError as error:
        if str(error).startswith("numpy."):
            raise
        reason = str(error).partition("\n")[0]
        raise untraceable(
            f"{name} cannot be traced with these arguments: {reason}",
            "Write it with other functions of numpy, or use opwise.jit(fallback=True).",
        ) from error


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function, as converted text does."""
    if any(isinstance(a, Steps) for a in args) and comprehensions.reads(function):
        args = tuple(
            Comprehension(lambda a=a: a, None, lambda item: item, list)
            if isinstance(a, Steps) else a for a in args
        )  # fmt: skip
    if any(type(a) is Comprehension for a in args):
        return comprehensions.call(function, args, kwargs, call)
    try:
        own = TABLE.get(function)
    except TypeError:  # it has no hash
        own = None
    if own is not None:
        return own(*args, **kwargs)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, TracedList) and function.__name__ in ("extend", "sort"):
        return (extend if function.__name__ == "extend" else sort)(owner, *args, **kwargs)
    if current() is not None and is_traced([*args, *kwargs.values()]):
        # numpy does not look for traced arrays in lists
        if hasattr(function, "_implementation"):
            return call_function(function, args, kwargs)
        if any(isinstance(a, list | tuple) and is_traced(a) for a in args):
            if type(function) is np.ufunc:
                return HANDLERS.ufunc(function, "__call__", args, kwargs)
            if type(owner) is np.ufunc:
                return HANDLERS.ufunc(owner, function.__name__, args, kwargs)
    if isinstance(function, types.FunctionType):
        if _is_of_scipy(function) and is_traced([*args, *kwargs.values()]):
            return _of_scipy(function, args, kwargs)
        if _is_convertible(function) or (
            _is_of_numpy(function) and is_traced([*args, *kwargs.values()])
        ):
            return convert_function(function).call(*args, **kwargs)
        trace = current()
        if trace is not None and function.__code__ in _own_codes:
            if trace.calls.get(function.__code__):
                _note_nested(trace)
            with trace.calling(function.__code__):
                return _made(function, function(*args, **kwargs), args, kwargs)
        return _made(function, function(*args, **kwargs), args, kwargs)
    if isinstance(function, types.MethodType):
        inner = function.__func__
        if isinstance(inner, types.FunctionType) and _is_convertible(inner):
            return convert_function(inner).call(function.__self__, *args, **kwargs)
        _check_builtin(function)
        return _made(function, function(*args, **kwargs), args, kwargs)
    if isinstance(function, type) and not issubclass(function, np.generic):
        trace = current()
        if trace is None or function.__module__ == "builtins":
            return function(*args, **kwargs)
        made = _instance(function, args, kwargs)
        trace.own[id(made)] = made
        return made
    if type(function) is np.vectorize and is_traced(list(args)):
        return _vectorized(function, args, kwargs)
    if isinstance(function, functools._lru_cache_wrapper) and current() is not None:
        return _memoized(function, args, kwargs)
    if isinstance(function, functools.partial):
        return call(function.func, *function.args, *args, **{**function.keywords, **kwargs})
    _check_builtin(function)
    if isinstance(owner, dict) and args and function == owner.get:
        if members.decided_by_calls(args[0]):
            made = members.get(owner, *args)
            if made is not NotImplemented:
                return made
    if type(owner) is np.ndarray and current() is not None:
        return getattr(captured(owner), function.__name__)(*args, **kwargs)
    return _made(function, function(*args, **kwargs), args, kwargs)


def _memoized(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function with ``lru_cache``: it keeps what it returns in this trace, not beyond."""
    trace = current()
    assert trace is not None
    if any(map(members.decided_by_calls, (*args, *kwargs.values()))):
        if trace.speculative:
            raise LoopError("it calls a function with lru_cache by a value that calls decide")
        return call(function.__wrapped__, *args, **kwargs)
    key = _key((args, tuple(kwargs.items())))
    memos = trace.memos.setdefault(id(function), {})
    try:
        if key in memos:
            return memos[key]
    except TypeError:  # arrays have no hash, and lru_cache takes none
        return function(*args, **kwargs)
    made = call(function.__wrapped__, *args, **kwargs)
    if not trace.speculative or (kind_of(made) is not None and not trace.loops):
        memos[key] = made
    return made


def _is_of_scipy(function: types.FunctionType) -> bool:
    return (function.__module__ or "").partition(".")[0] == "scipy"


def _of_scipy(function: types.FunctionType, args: Any, kwargs: Any) -> Any:
    """Call a function of scipy: one of ``special`` that numpy's functions can write."""
    own = _SPECIAL.get(function.__name__)
    if own is None or ".special" not in function.__module__:
        raise untraceable(
            f"{function.__module__}.{function.__name__} cannot be traced: it is no ufunc.",
            "Write it with functions of numpy, or use opwise.jit(fallback=True).",
        )
    return own(*args, **kwargs)


def _logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    x = as_traced(a)
    top = np.max(x, axis=axis, keepdims=True)  # type: ignore[call-overload]
    top = np.where(np.isfinite(top), top, 0)
    parts = np.exp(x - top)
    total = np.sum(parts if b is None else parts * b, axis=axis, keepdims=True)
    made: Any = np.log(total) + top
    if keepdims:
        return made
    return np.squeeze(made) if axis is None else np.squeeze(made, axis=axis)


def _log_softmax(x: Any, axis: Any = None) -> Any:
    return x - _logsumexp(x, axis, keepdims=True)


#: {a function of ``scipy.special``: what it is with functions of numpy}
_SPECIAL: dict[str, Callable[..., Any]] = {
    "logsumexp": _logsumexp,
    "log_softmax": _log_softmax,
    "softmax": lambda x, axis=None: np.exp(_log_softmax(x, axis)),
}


def _instance(cls: type, args: Any, kwargs: Any) -> Any:
    """Return an instance of a class of the program; what ``__init__`` does is traced, too."""
    start = cls.__init__  # type: ignore[misc]
    plain = type(cls) is type and cls.__new__ is object.__new__
    if not plain or not isinstance(start, types.FunctionType) or not _is_convertible(start):
        return cls(*args, **kwargs)
    made: Any = object.__new__(cls)
    trace = current()
    assert trace is not None
    trace.own[id(made)] = made
    trace.births[id(made)] = next(Root.serials)
    convert_function(start).call(made, *args, **kwargs)
    return made


def _vectorized(vectorize: Any, args: Any, kwargs: Any) -> Any:
    """Return what ``numpy.vectorize`` of a function gives: by a loop over the elements."""
    if kwargs or vectorize.signature is not None or vectorize.excluded:
        raise untraceable(
            "numpy.vectorize with excluded=, signature= or keywords cannot be traced.",
            "Write a loop.",
        )
    if _assigns_outside(vectorize.pyfunc):
        raise untraceable(
            "numpy.vectorize of a function that assigns variables of another one (nonlocal) cannot "
            "be traced.",
            "Write a loop.",
        )
    arrays = shaping.broadcast_arrays(*map(as_traced, args))
    dims, flat = arrays[0].dims, [shaping.reshape(a, (-1,)) for a in arrays]
    size = flat[0].dims[0]

    # numpy gives the function the first elements, for the dtypes, and then numbers of Python; what
    # is computed here is not used
    made = call(vectorize.pyfunc, *[a[0] for a in flat])
    several = isinstance(made, tuple)
    samples = made if several else (made,)
    kinds = vectorize.otypes or [as_traced(sample).dtype for sample in samples]
    outs = [shaping.full((size,), 0, kind) for kind in kinds]

    def step(k: Any) -> None:
        made = call(vectorize.pyfunc, *[number_from(a[k]) for a in flat])
        for out, value in zip(outs, made if several else (made,), strict=True):
            out[k] = value

    control.for_statement(range_(size), step, tuple, lambda values: None, (), (), None)
    results = tuple(shaping.reshape(out, dims) for out in outs)
    return results if several else results[0]


def _assigns_outside(function: Any) -> bool:
    """Return whether a function of Python assigns variables of the function around it."""
    code = getattr(function, "__code__", None)
    return code is not None and any(
        each.opname == "STORE_DEREF" and each.argval in code.co_freevars
        for each in dis.get_instructions(code)
    )


def _at(ufunc: Any, x: Traced, key: Any, *value: Any) -> None:
    """Do ``ufunc.at(x, key, value)`` by a loop over the elements that the key names."""
    items = key if isinstance(key, tuple) else (key,)
    if any(isinstance(i, slice) or i is None or i is Ellipsis for i in items):
        raise untraceable(
            f"numpy.{ufunc.__name__}.at with slices cannot be traced.", "Write a loop over rows."
        )
    arrays = [as_traced(i) for i in items]
    if len(arrays) == 1 and arrays[0].dtype.kind == "b":
        arrays = list(np.nonzero(arrays[0]))  # type: ignore[call-overload]
    if len(arrays) != x.ndim or any(a.dtype.kind not in "iu" for a in arrays):
        raise untraceable(
            f"numpy.{ufunc.__name__}.at needs an index for each axis here.", "Write a loop."
        )
    shape = shaping.broadcast_arrays(*arrays)[0].dims
    places = [shaping.ravel(shaping.broadcast_to(a, shape)) for a in arrays]
    values = [shaping.ravel(shaping.broadcast_to(as_traced(v), shape)) for v in value]

    def step(k: Any) -> None:
        place = tuple(a[k] for a in places)
        x[place] = ufunc(x[place], *(v[k] for v in values))

    length = places[0].dims[0]
    control.for_statement(range_(length), step, tuple, lambda values: None, (), (), None)


_MUTATORS = frozenset(
    "append extend insert pop remove clear sort reverse add discard update setdefault popitem "
    "appendleft popleft".split()
)


def _check_builtin(function: Any) -> None:
    """Refuse what must not happen while a function is traced."""
    if function is next and is_speculative():
        raise LoopError(
            "it takes the next item of an iterator", "Give each step its item: zip(...)."
        )
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if isinstance(owner, TracedList):
        return
    if (name in _MUTATORS and isinstance(owner, list | dict | set)) or type(
        owner
    ).__name__ == "deque":
        trace = current()
        if trace is not None and trace.loops:
            raise LoopError(
                f"it calls {name} of a {type(owner).__name__}",
                "Make an array before the loop, and assign its elements.",
            )
        if trace is not None and trace.speculative:
            raise LoopError(f"one of them calls {name} of a {type(owner).__name__}")
    module = type(owner).__module__ if not isinstance(owner, types.ModuleType) else owner.__name__
    if module.startswith("numpy.random") or module in ("random", "_random", "time"):
        raise untraceable(
            f"{module}.{name} gives another value in each call, and a traced function would keep "
            "the first one.",
            "Pass the value as an argument.",
        )


def _made(function: Any, result: Any, args: Any, kwargs: Any) -> Any:
    """Return a result; an array that a function made is one of the traced function."""
    if type(result) is np.ndarray and current() is not None:
        # the variable here, the parameter here, and the argument of getrefcount
        if result.base is None and sys.getrefcount(result) <= 4 and result.dtype.kind in "biufc":
            return constant(result)
    return result


# --- items ----------------------------------------------------------------------------------------


#: the classes of numpy.r_ and numpy.c_
_CONCATENATORS = type(np.r_).__mro__[1]
#: that of numpy.mgrid and numpy.ogrid
_GRIDS = type(np.mgrid).__mro__[1]


def getitem(container: Any, key: Any) -> Any:
    """Return ``container[key]``."""
    if memory_of(container) is not None:
        return container[key]
    if type(container) is np.ndarray and current() is not None:
        return captured(container)[key]
    if isinstance(container, list | tuple | dict) and members.decided_by_calls(key):
        for each in container if isinstance(container, dict) else range(len(container)):
            getitem(container, each)  # what is read from outside is a condition
        made = members.item(container, key)
        if made is not NotImplemented:
            return made
        if isinstance(container, TracedList):
            try:
                return container.by_calls("takes an item").item(key)
            except LoopError:
                if is_speculative():
                    raise
        trace = current()
        if trace is not None and trace.loops:
            kind = type(container).__name__
            raise LoopError(
                f"it takes an item of a {kind} by a value that calls decide",
                f"Make an array of the {kind} before the loop.",
            )
    if isinstance(container, list | tuple) and type(key) is Traced:
        return container[operator.index(key)]
    if isinstance(container, dict):
        key = _key(key)
    if isinstance(key, range | Steps) and type(container) in (Traced, np.ndarray):
        key = np.array(key) if isinstance(key, range) else as_traced(list_(key))
        return (container if type(container) is Traced else captured(container))[key]
    if isinstance(container, _CONCATENATORS) and is_traced(key):
        return convert_function(type(container).__getitem__).call(container, key)
    if isinstance(container, _GRIDS):
        parts = key if isinstance(key, tuple) else (key,)
        known = tuple(builtins.slice(*map(_known, (p.start, p.stop, p.step))) for p in parts)
        key = known if isinstance(key, tuple) else known[0]
    value = container[key]
    if isinstance(container, (_CONCATENATORS, _GRIDS)) and current() is not None:
        own = type(value)(map(constant, value)) if isinstance(value, list | tuple) else value
        return constant(own) if type(own) is np.ndarray else own
    trace = current()
    if trace is not None and id(container) in trace.outside:
        if trace.outside[id(container)][0] is container:
            return read(container, key, value)
    return captured(value) if type(value) is np.ndarray and trace is not None else value


def _key(key: Any) -> Any:
    """Return the key of a dict as a value of Python."""
    if type(key) is Number and (key.known or constant_of(key._variable) is not None):
        return key.value("A key")
    return tuple(map(_key, key)) if type(key) is tuple else key


def _known(value: Any) -> Any:
    """Return a bound of a grid, of which numpy must know the value."""
    return value.value("A grid of numpy") if type(value) is Number else value


def read(owner: Any, name: Any, value: Any) -> Any:
    """Return what the function reads from outside, as a traced value; it becomes a condition."""
    trace = current()
    assert trace is not None
    if isinstance(owner, list):
        if type(name) is slice:
            return value
        name = range(len(owner))[name]
    place = id(owner), name
    if place in trace.sets or id(owner) in trace.own:
        return value
    if isinstance(owner, dict | list) and id(owner) in trace.outside:
        before = trace.outside[id(owner)][1]
        there = name in before if isinstance(owner, dict) else name < len(before)
        if not there or value is not before[name]:
            return value  # the function has put it there
    if place in trace.state:
        return trace.state[place]
    if type(value) is np.random.Generator:
        raise NeedsState(owner, name)
    note_read(owner, name, value)
    if type(value) in (list, dict):
        trace.outside.setdefault(id(value), (value, value.copy()))
    return captured(value, (owner, name)) if type(value) is np.ndarray else value


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute; data in it becomes a condition of the signature."""
    value = getattr(owner, name)
    trace = current()
    if trace is None or isinstance(owner, Traced | Number | shaping.Flags | types.ModuleType):
        return value
    return read(owner, name, value)


def assigns_global(name: str) -> None:
    """Refuse a function that assigns a global variable."""
    if current() is not None:
        raise untraceable(
            f"The function assigns the global variable {name}.",
            "Return the value, or keep it as an attribute of an object or an item of a dict.",
        )


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Do ``owner.name = value``; calls do it for objects outside."""
    trace = current()
    if trace is None or isinstance(owner, Traced | Number):
        setattr(owner, name, value)
        return
    if trace.speculative and trace.births.get(id(owner), -1) < trace.speculative[-1]:
        raise LoopError(
            f"it sets the attribute {name} of a {type(owner).__name__}",
            "Set a variable there, and the attribute after it.",
        )
    place = id(owner), name
    if id(owner) not in trace.own and place not in trace.sets:
        if place in trace.reads and place not in trace.state:
            raise NeedsState(owner, name)
        before = vars(owner).get(name, MISSING) if hasattr(owner, "__dict__") else (
            getattr(owner, name, MISSING)
        )  # fmt: skip
        setattr(owner, name, value)
        trace.sets[place] = owner, name, before
        return
    setattr(owner, name, value)


#: types of data whose changes outside a function must be noticed
_DATA = (np.ndarray, np.generic, int, float, complex, str, tuple, type(None))


def note_read(owner: Any, name: Any, value: Any) -> None:
    """Make what the function reads from outside a condition of the signature."""
    trace = current()
    if trace is None or not isinstance(value, (*_DATA, types.FunctionType)):
        return
    if is_traced(value):
        return
    if isinstance(value, np.ndarray) and not isinstance(owner, dict | list | types.CellType):
        if getattr(owner, name, None) is not value:
            raise untraceable(
                f"The attribute {name} gives another array each time it is read.",
                "Pass the array as an argument.",
            )
    trace.reads.setdefault((id(owner), name), (owner, name, value))


def setitem(container: Any, key: Any, value: Any) -> None:
    """Do ``container[key] = value``."""
    trace = current()
    if isinstance(container, dict):
        key = _key(key)
    if trace is not None and type(container) is not Traced:
        if isinstance(container, np.ndarray):
            raise untraceable(
                "An array is changed in place that the function did not make, and that is no "
                "argument.",
                "Pass it to the function as an argument, or copy it: numpy.array(a).",
            )
        if isinstance(container, TracedList):
            container[key] = value
            return
        if isinstance(container, list | dict):
            if trace.speculative:
                raise LoopError(
                    f"it changes an item of a {type(container).__name__}",
                    "Make an array before it, and assign its elements.",
                )
            if id(container) in trace.outside and type(key) is not slice:
                key = range(len(container))[key] if isinstance(container, list) else key
                place = id(container), key
                if place in trace.reads and place not in trace.state:
                    raise NeedsState(container, key)
    container[key] = value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "Pow": operator.ipow,
    "LShift": operator.ilshift, "RShift": operator.irshift, "BitOr": operator.ior,
    "BitXor": operator.ixor, "BitAnd": operator.iand, "MatMult": operator.imatmul,
}  # fmt: skip


def augmented(value: Any, name: str, other: Any) -> Any:
    """Return what ``value += other`` gives its variable."""
    trace = current()
    if trace is not None:
        if type(value) is np.ndarray:
            setitem(value, Ellipsis, other)
        if isinstance(value, TracedList):
            if name == "Add":
                extend(value, other)
                return value
            value.in_python("An operator")
        elif isinstance(value, list | dict | set) and trace.speculative:
            raise LoopError(f"it changes a {type(value).__name__} in place")
    return _OPERATORS[name](value, other)


def augmented_item(container: Any, key: Any, name: str, other: Any) -> None:
    """Do ``container[key] += other``."""
    value = getitem(container, key)
    setitem(container, key, augmented(value, name, other))


def augmented_attribute(owner: Any, name: str, operation: str, other: Any) -> None:
    """Do ``owner.name += other``."""
    value = attribute(owner, name)
    made = augmented(value, operation, other)
    if made is not value or type(made) is not Traced:
        set_attribute(owner, name, made)


# --- Python's builtins ----------------------------------------------------------------------------


@instead_of(range)
def range_(*args: Any) -> Any:
    """Return ``range``; one whose length calls decide is a Steps."""
    if not any(type(a) in (Number, Traced) for a in args):
        return range(*args)
    given = [_integer(a) for a in args]
    start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    if type(step) is int and step == 0:
        raise ValueError("range() arg 3 must not be zero")
    length = _range_length(start, stop, step)
    return Steps(length, lambda k: _added(start, _times(k, step)))


def _integer(value: Any) -> Any:
    if type(value) is Traced:
        if value.ndim or value.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return Number("i", value.variable)
    if type(value) is Number and value.kind not in "ib":
        raise TypeError(f"'{PYTHON_TYPES[value.kind].__name__}' object cannot be interpreted as an "
                        "integer")  # fmt: skip
    return value if type(value) is Number else operator.index(value)


def _times(k: Any, step: Any) -> Any:
    return k if type(step) is int and step == 1 else k * step


def _added(start: Any, k: Any) -> Any:
    return k if type(start) is int and start == 0 else start + k


def _range_length(start: Any, stop: Any, step: Any) -> Any:
    """Return the number of steps of a range. A step of 0 that calls compute gives none."""
    if (
        type(start) is int
        and start == 0
        and type(step) is int
        and step == 1
        and type(stop) is Number
        and stop.known
        and stop.of_lengths
        and stop.hint >= 0
    ):
        return stop
    if type(step) is Number and step.known:
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        upwards = bool(step > 0)  # a condition of the signature
    elif type(step) is int:
        upwards = step > 0
    else:
        span, sign = stop - start, T.switch(T.gt(step.variable, 0), 1, -1)
        rest = number_variable(span) + step.variable - sign
        return Number("i", lambda: T.maximum(T.int_div(rest, step.variable), 0))
    rest, size = (stop - start, step) if upwards else (start - stop, -step)
    count = rest if type(size) is int and size == 1 else (rest + (size - 1)) // size
    if type(count) is not Number:
        return max(count, 0)
    hint = max(count.hint, 0) if count.known else count.hint
    text = f"max({count.text}, 0)" if count.known else None
    return Number("i", lambda: T.maximum(count.variable, 0), hint, text, count.of_lengths)


@instead_of(len)
def len_(value: Any) -> Any:
    """Return ``len``; that of a traced array may be a Number."""
    if type(value) is Traced:
        if not value.ndim:
            raise TypeError("len() of unsized object")
        return value.dims[0]
    if isinstance(value, Steps):
        return value.length
    memory = memory_of(value)
    return len(value) if memory is None else memory.length


def _conversion(kind: str) -> Callable[..., Any]:
    python = PYTHON_TYPES[kind]

    def convert_to(value: Any = 0, *more: Any) -> Any:
        if kind == "b" and (memory := memory_of(value)) is not None:
            return memory.length != 0
        if type(value) is Traced:
            if value.ndim and not all(is_one(d) for d in value.dims):
                return python(value)
            value = number_from(shaping.reshape(value, ()))
        if kind == "c" and more and is_traced([value, *more]):
            real, imaginary = (as_traced(_conversion("f")(v)).variable for v in (value, *more))
            return Number("c", T.complex(real, imaginary))
        if type(value) is not Number or more:
            return python(value, *more)
        if value.kind == kind:
            return value
        if kind == "b":
            return number_operation("ne", value, 0)
        if value.kind == "c" and kind != "c":
            return python(0j)
        hint, text = value.hint, value.text
        if value.known:
            hint, text = python(value.hint), f"{python.__name__}({value.text})"
        return Number(kind, lambda: value.variable, hint, text, value.of_lengths)

    return convert_to


for _kind in "bifc":
    TABLE[PYTHON_TYPES[_kind]] = _conversion(_kind)


def _least(name: str) -> Callable[..., Any]:
    python = getattr(builtins, name)

    def choose(*args: Any, key: Any = None, **keywords: Any) -> Any:
        if len(args) == 1:
            only = args[0]
            if key is not None and (found := _keyed(only, key)) is not None:
                items, keys = found
                return items.item(number_from(getattr(np, f"arg{name}")(keys)))
            if key is None and (memory := memory_of(only)) is not None:
                made = getattr(np, name)(memory.part())
                return number_from(made) if memory.parts[0].kind.sort == "number" else made
            if key is None and type(only) is Traced and only.ndim == 1 and only.dtype.kind in "biu":
                return getattr(np, name)(only)
            values = list(only) if current() is not None else only
        else:
            values = list(args)
        if not is_traced(values):
            return python(values, key=key, **keywords)
        if not values:
            return python(values, **keywords)
        keys = values if key is None else [call(key, value) for value in values]
        result, best = values[0], keys[0]
        for value, rank in zip(values[1:], keys[1:], strict=True):
            better = rank < best if name == "min" else rank > best
            if type(better) is Number and better.known and kind_of(rank) != kind_of(best):
                better = bool(better)  # the result has the type of the one that is taken
            best = if_expression(better, lambda v=rank: v, lambda b=best: b)
            if key is None:
                result = best
            else:
                result = if_expression(better, lambda v=value: v, lambda r=result: r)
        return result

    return choose


TABLE[min], TABLE[max] = _least("min"), _least("max")


@instead_of(sum)
def sum_(values: Any, start: Any = 0) -> Any:
    """Return ``sum``; of the rows of a traced array as one reduction."""
    if (memory := memory_of(values)) is not None:
        total = sum_(memory.part(), start)
        part = memory.parts[0]
        return number_from(total) if part.kind.sort == "number" and not part.dims else total
    if type(values) is Traced and values.ndim and type(start) is int and start == 0:
        kind = np.dtype(np.int64) if values.dtype.kind == "b" else values.dtype
        return np.sum(values, axis=0, dtype=kind)
    return sum(values, start)


@instead_of(list)
def list_(values: Any = ()) -> Any:
    """Return ``list``; of a range whose length calls decide by a loop."""
    if isinstance(values, Steps) and type(values.length) is Number:
        made = TracedList()
        try:
            extend(made, values)
        except TracingError:  # its items are no numbers
            return own_list(values)
        return made
    return own_list(values)


@instead_of(collections.deque)
def deque(values: Any = (), maxlen: Any = None) -> Any:
    """Return ``collections.deque``."""
    if current() is None or maxlen is not None:
        return collections.deque(values, maxlen)
    made = list_(values)
    return Deque(() if made.memory is not None else made, made.memory)


def extend(values: TracedList, items: Any) -> None:
    """Do ``values.extend(items)``; by a loop, if calls decide how many there are."""
    steps = _lazy(items)
    if steps is None:
        values.extend(items)
        return
    control.for_statement(steps, values.append, tuple, lambda values: None, (), (), None)


@instead_of(enumerate)
def enumerate_(values: Any, start: Any = 0) -> Any:
    """Return ``enumerate``."""
    steps = _lazy(values)
    if steps is None:
        return enumerate(values, start)
    return Steps(steps.length, lambda k: (_added(start, k), steps.item(k)))


def _lazy(values: Any) -> Steps | None:
    if isinstance(values, Steps):
        return values
    if type(values) is np.ndarray and values.ndim and current() is not None:
        values = captured(values)
    if type(values) is Traced and values.ndim:
        length = values.dims[0]
        if type(length) is Number or length > control.UNROLLED:
            return Steps(length, lambda k: values[k])
        return None
    return control.steps_of(values) if memory_of(values) is not None else None


@instead_of(zip)
def zip_(*values: Any, strict: bool = False) -> Any:
    """Return ``zip``; of arrays and ranges as one loop, if calls decide how long one of them is."""
    steps = [control.steps_of(v) for v in values]
    if all(_lazy(v) is None for v in values) or any(s is None for s in steps):
        return zip(*values, strict=strict)
    length = steps[0].length  # type: ignore[union-attr]
    for k, other in enumerate((s.length for s in steps[1:]), 2):  # type: ignore[union-attr]
        if UNKNOWN in (hint_of(length), hint_of(other)):
            if strict:
                leave_to_python(T.neq(dim_variable(length), dim_variable(other)))
            length = number_from(np.minimum(as_traced(length), as_traced(other)))
            continue
        shorter = not bool(length <= other)
        if strict and not bool(length == other):
            first = "arguments 1-" if k > 2 else "argument "
            word = "shorter" if shorter else "longer"
            raise ValueError(f"zip() argument {k} is {word} than {first}{k - 1}")
        length = other if shorter else length
    return Steps(length, lambda k: tuple(s.item(k) for s in steps))  # type: ignore[union-attr]


@instead_of(itertools.product)
def product(*values: Any, repeat: int = 1) -> Any:
    """Return ``itertools.product``; of ranges and arrays as one loop."""
    lazy = [control.steps_of(v) for v in values] * repeat
    if current() is None or not lazy or any(s is None for s in lazy):
        return itertools.product(*values, repeat=repeat)
    lengths = [s.length for s in lazy]  # type: ignore[union-attr]

    def item(k: Any) -> tuple[Any, ...]:
        found = []
        for steps in reversed(lazy[1:]):
            found.append(steps.item(k % steps.length))  # type: ignore[union-attr]
            k = k // steps.length  # type: ignore[union-attr]
        return (lazy[0].item(k), *reversed(found))  # type: ignore[union-attr]

    return Steps(functools.reduce(operator.mul, lengths), item)


@instead_of(np.ndindex)
def ndindex(*shape: Any) -> Any:
    """Return ``numpy.ndindex``."""
    lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return product(*map(range_, lengths))


def _in_order(python: Any, own: Any) -> Callable[..., Any]:
    def call_one(values: Any, *item: Any, **keywords: Any) -> Any:
        decided = is_speculative() or memory_of(values) is not None or is_traced([values, item])
        if isinstance(values, TracedList | Traced) and decided and not keywords:
            return convert_function(own).call(values, *item)
        return python(values, *item, **keywords)

    return call_one


for _python, _own in ordered.FUNCTIONS.items():
    TABLE[_python] = _in_order(_python, _own)


@instead_of(np.ndenumerate)
def ndenumerate(values: Any) -> Any:
    """Return ``numpy.ndenumerate``."""
    if type(values) is not Traced or not values.ndim:
        return np.ndenumerate(values)
    indices = ndindex(values.dims)
    return Steps(indices.length, lambda k: ((index := indices.item(k)), values[index]))


@instead_of(np.nditer)
def nditer(op: Any, *args: Any, **keywords: Any) -> Any:
    """Return ``numpy.nditer`` of one array, which is not changed."""
    if not is_traced(op):
        return np.nditer(op, *args, **keywords)
    if type(op) is not Traced or args or keywords:
        raise untraceable(
            "numpy.nditer of several arrays, or with flags, cannot be traced.",
            "Write a loop over numpy.ndindex(a.shape).",
        )
    flat = shaping.ravel(op)
    return Steps(flat.dims[0], lambda k: shaping.reshape(flat[k], ()))


@instead_of(np.fromiter)
def fromiter(values: Any, dtype: Any, count: Any = -1, *, like: Any = None) -> Any:
    """Return ``numpy.fromiter``."""
    found = list(values if count == -1 else itertools.islice(values, count))
    if not is_traced(found):
        return np.fromiter(found, dtype, count)
    if len(found) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(found)}")
    return _array(found, dtype)


@instead_of(pow)
def pow_(base: Any, exponent: Any, mod: Any = None) -> Any:
    """Return ``pow``; what it is modulo a number needs all three."""
    if mod is None:
        return base**exponent
    return pow(*(v.value("pow()") if type(v) is Number else v for v in (base, exponent, mod)))


@instead_of(reversed)
def reversed_(values: Any) -> Any:
    """Return ``reversed``."""
    steps = _lazy(values)
    if steps is None:
        return reversed(values)
    return Steps(steps.length, lambda k: steps.item(steps.length - 1 - k))


@instead_of(type)
def type_(value: Any, *more: Any) -> Any:
    """Return ``type``, with what a traced value stands for."""
    if isinstance(value, TracedList):
        return value.python
    if type(value) is Number:
        return PYTHON_TYPES[value.kind]
    if type(value) is Traced:
        return value.dtype.type if value.scalar else np.ndarray
    return type(value, *more)


def _over_all(python: Any, join: Any, reduce: Any) -> None:
    def test(values: Any) -> Any:
        if type(values) is Traced and values.ndim == 1:
            return number_from(reduce(values))
        found = list(values) if current() is not None else values
        if not is_traced(found):
            return python(found)
        result: Any = python is all
        for value in found:
            # of bools, as for Python; arrays have no truth value
            result = join(result, lambda v=value: TABLE[bool](v))
        return result

    TABLE[python] = test


_over_all(any, branches.or_, np.any)
_over_all(all, branches.and_, np.all)


@instead_of(sorted)
def sorted_(values: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """Return ``sorted``; traced numbers are sorted as an array."""
    if key is not None and (found := _keyed(values, key)) is not None:
        items, keys = found
        order = _stable_order(keys, reverse)
        made = TracedList()
        extend(made, Steps(items.length, lambda k: items.item(number_from(order[k]))))
        return made
    if isinstance(values, TracedList) and values.memory is not None and key is None:
        ordered = values.copy()
        ordered.sort(reverse=reverse)
        return ordered
    if type(values) is not Traced:
        values = [*values]
    if key is not None or not is_traced(values):
        return sorted(values, key=key, reverse=reverse)
    if all(isinstance(v, tuple | list) for v in values):
        return _sorted_rows(values, reverse)
    numbers = type(values) is not Traced and all(kind_of(v) is not None for v in values)
    made = np.sort(as_traced(values))
    items = list(made[::-1] if reverse else made)
    return [number_from(item) for item in items] if numbers else items


def _stable_order(keys: Traced, reverse: Any) -> Any:
    """Return the order of keys, of which equal ones stay in theirs."""
    order = np.argsort(keys[::-1] if reverse else keys, kind="stable")
    return (keys.dims[0] - 1 - order)[::-1] if reverse else order


def sort(values: TracedList, *, key: Any = None, reverse: Any = False) -> None:
    """Do ``values.sort()``."""
    if values.stored("calls sort") is not None:
        if key is None or (found := _keyed(values, key)) is None:
            values.sort(key=key, reverse=reverse)
        else:
            values.permute(_stable_order(found[1], reverse))
        return
    made = sorted_([*values], key=key, reverse=reverse)
    values.clear()
    values.extend(made)


def _extremes(largest: bool) -> Callable[..., Any]:
    python = heapq.nlargest if largest else heapq.nsmallest

    def choose(n: Any, iterable: Any, key: Any = None) -> Any:
        if memory_of(iterable) is None and not is_traced(iterable):
            return python(n, iterable, key)
        return getitem(sorted_(iterable, key=key, reverse=largest), builtins.slice(None, n))

    return choose


TABLE[heapq.nlargest], TABLE[heapq.nsmallest] = _extremes(True), _extremes(False)


def _sorted_rows(rows: list[Any], reverse: Any) -> list[Any]:
    """Return tuples or lists in their order."""
    columns = list(zip(*rows, strict=False))
    if not is_traced(columns[0]) and len(set(map(_key, columns[0]))) == len(rows):
        return sorted(rows, key=operator.itemgetter(0), reverse=reverse)
    shapes = {(type(row), len(row)) for row in rows}
    kinds = [{kind_of(v) for v in column} for column in columns]
    if len(shapes) > 1 or any(len(kind) > 1 for kind in kinds):
        raise untraceable(
            "Rows of different lengths or types are sorted by values that are not known while the "
            "function is traced.",
            "Sort an array of what decides, by numpy.argsort.",
        )
    keys = [as_traced(list(column)) for column in columns]
    order = lexsort([key[::-1] if reverse else key for key in reversed(keys)])
    if reverse:
        order = (len(rows) - 1 - order)[::-1]
    found = [
        [number_from(v) if kind != {None} else v for v in key[order]]
        for key, kind in zip(keys, kinds, strict=True)
    ]
    return [type(row)(each) for row, each in zip(rows, zip(*found, strict=True), strict=True)]


def _keyed(values: Any, key: Any) -> tuple[Any, Any] | None:
    """Return (items, the array of their keys), if calls decide the keys; else None."""
    steps = control.steps_of(values) if current() is not None else None
    if steps is None:
        return None
    length = steps.length
    if type(length) is not Number and length <= control.UNROLLED:
        if not is_traced([call(key, steps.item(k)) for k in range(length)]):
            return None
    made = TracedList()
    try:
        extend(made, Steps(length, lambda k: call(key, steps.item(k))))
    except (LoopError, TracingError):
        return None
    return steps, as_traced(made)


@instead_of(map)
def map_(function: Any, *values: Any, **keywords: Any) -> Any:
    """Return ``map``."""
    if current() is None:
        return map(function, *values, **keywords)
    items = zip_(*values, **keywords) if len(values) > 1 else values[0]
    if len(values) == 1:
        steps = _lazy(items)
        if steps is None:
            return (call(function, item) for item in items)
        return Steps(steps.length, lambda k: call(function, steps.item(k)))
    if isinstance(items, Steps):
        return Steps(items.length, lambda k: call(function, *items.item(k)))
    return (call(function, *each) for each in items)


@instead_of(round)
def round_(value: Any, digits: Any = None) -> Any:
    """Return ``round``; numpy's differs from it."""
    if type(value) is not Number or value.kind != "f" or digits is None:
        return round(value) if digits is None else round(value, digits)
    (made,) = numpy_call(
        "python.round", [value.variable, number_variable(digits)], [(np.float64, ())]
    )
    return Number("f", made)


@instead_of(getattr)
def getattr_(owner: Any, name: Any, *default: Any) -> Any:
    """Return ``getattr``."""
    if default and not hasattr(owner, name):
        return default[0]
    return attribute(owner, name)


@instead_of(setattr)
def setattr_(owner: Any, name: Any, value: Any) -> None:
    """Do what ``setattr`` does."""
    set_attribute(owner, name, value)


@instead_of(isinstance)
def isinstance_(value: Any, classes: Any) -> bool:
    """Return ``isinstance``, with what a traced value stands for."""
    if type(value) is Number:
        return issubclass(PYTHON_TYPES[value.kind], classes)
    if type(value) is Traced:
        return issubclass(value.dtype.type if value.scalar else np.ndarray, classes)
    if isinstance(value, TracedList):
        return issubclass(value.python, classes)
    return isinstance(value, classes)


@instead_of(copy.copy, copy.deepcopy)
def copy_(value: Any, *memo: Any) -> Any:
    """Return a copy."""
    if type(value) is Traced:
        return HANDLERS.methods["copy"](value)
    return copy.copy(value) if type(value) is Number else copy.deepcopy(value, *memo)


# --- the module math ------------------------------------------------------------------------------


def _of_math(name: str, ufunc: Any) -> None:
    python = getattr(math, name)

    def compute(*args: Any) -> Any:
        if not any(type(a) in (Number, Traced) for a in args):
            return python(*args)
        floats = [as_traced(TABLE[float](a)) if type(a) in (Number, Traced) else float(a)
                  for a in args]  # fmt: skip
        return number_from(ufunc(*floats))

    TABLE[python] = compute


for _name, _ufunc in {
    "sqrt": np.sqrt, "exp": np.exp, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "fabs": np.fabs, "pow": np.float_power, "isnan": np.isnan,
    "isinf": np.isinf, "isfinite": np.isfinite, "radians": np.radians, "degrees": np.degrees,
    "copysign": np.copysign, "fmod": np.fmod, "cbrt": np.cbrt,
}.items():  # fmt: skip
    _of_math(_name, _ufunc)


def _of_one(made: Any) -> Any:
    return lambda x: array(made(x.variable), x.dims, True)


for _name, _special in {
    "erf": T.erf, "erfc": T.erfc, "gamma": T.gamma, "lgamma": T.gammaln,
}.items():  # fmt: skip
    _of_math(_name, _of_one(_special))


def _by_loops(python: Any) -> Callable[[Any], Any]:
    """Register a function that computes another one for ints that calls decide, by loops."""

    def register(function: types.FunctionType) -> Any:
        def compute(*args: Any) -> Any:
            if not is_traced(list(args)):
                return python(*args)
            if function not in _converted:
                make, text, codes = convert.convert(function, HOOKS)
                _own_codes.update(codes)
                _converted[function] = Converted(function, make, text)
            return _converted[function].call(*args)

        TABLE[python] = compute
        return function

    return register


@_by_loops(math.gcd)
def gcd(a: int, b: int) -> int:
    """Return ``math.gcd``."""
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


@_by_loops(math.factorial)
def factorial(n: int) -> int:
    """Return ``math.factorial``."""
    if n < 0:
        raise ValueError("factorial() not defined for negative values")
    if n > 20:
        raise OverflowError("it is more than 64 bits hold")
    result = 1
    for k in range(2, n + 1):
        result *= k
    return result


@_by_loops(math.comb)
def comb(n: int, k: int) -> int:
    """Return ``math.comb``."""
    if n < 0 or k < 0:
        raise ValueError("n and k must be non-negative integers")
    if n > 61:
        raise OverflowError("it may be more than 64 bits hold")
    result = 1
    for i in range(k):
        result = result * (n - i) // (i + 1)
    return result


@_by_loops(math.isqrt)
def isqrt(n: int) -> int:
    """Return ``math.isqrt``."""
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    root = int(math.sqrt(n))
    if root * root > n:
        root -= 1
    if (root + 1) * (root + 1) <= n:
        root += 1
    return root


def _rounded(name: str, ufunc: Any) -> None:
    python = getattr(math, name)

    def compute(value: Any) -> Any:
        if type(value) not in (Number, Traced):
            return python(value)
        made = ufunc(as_traced(TABLE[float](value)))
        return Number("i", converted(made.variable, np.int64))

    TABLE[python] = compute


for _name, _ufunc in {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.items():
    _rounded(_name, _ufunc)


@instead_of(math.hypot)
def hypot(*args: Any) -> Any:
    """Return ``math.hypot``."""
    if not is_traced(list(args)) or len(args) != 2:
        return math.hypot(*args)
    return number_from(np.hypot(*[as_traced(TABLE[float](a)) for a in args]))


@instead_of(math.log)
def log(value: Any, *base: Any) -> Any:
    """Return ``math.log``."""
    if not is_traced([value, *base]):
        return math.log(value, *base)
    logs = [np.log(as_traced(TABLE[float](v))) for v in (value, *base)]
    return number_from(logs[0] if not base else logs[0] / logs[1])


TABLE[np.random.default_rng] = generators.default_rng


# --- numpy's functions that make arrays -----------------------------------------------------------


def _filled(value: Any) -> Callable[..., Any]:
    def make(shape: Any, dtype: Any = float, order: str = "C", **more: Any) -> Any:
        if dtype is None:
            dtype = float
        return shaping.full(shape, value, dtype, order)

    return make


@instead_of(np.ndarray)
def _new_array(
    shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None,
    order: Any = None,
) -> Any:  # fmt: skip
    """Return ``numpy.ndarray(shape)``, which is numpy's empty."""
    if buffer is not None or strides is not None or offset:
        raise untraceable(
            "An array over a buffer cannot be traced.", "Make it outside of the function."
        )
    return TABLE[np.empty](shape, dtype, order or "C")


TABLE[np.zeros] = TABLE[np.empty] = _filled(0)
TABLE[np.ones] = _filled(1)
TABLE[np.full] = shaping.full
TABLE[np.arange] = shaping.arange
TABLE[np.linspace] = lambda *args, **kwargs: _own_array(
    HANDLERS.functions[np.linspace], np.linspace, args, kwargs
)
TABLE[np.eye] = shaping.eye
TABLE[np.identity] = lambda n, dtype=float, *, like=None: shaping.eye(n, dtype=dtype or float)
TABLE[np.tri] = shaping.tri
TABLE[np.asarray] = TABLE[np.asanyarray] = lambda a, dtype=None, order=None, **more: _asarray(
    a, dtype, order, **more
)
TABLE[np.array] = lambda object, dtype=None, **more: _array(object, dtype, **more)
TABLE[np.ascontiguousarray] = lambda a, dtype=None, **more: shaping._contiguous(a, dtype)
for _function, _own in HANDLERS.functions.items():
    # numpy's own code calls some functions below their dispatch
    TABLE.setdefault(getattr(_function, "_implementation", _function), _own)


class _Converter:
    """What numpy's own code uses to make arrays of arguments, for traced ones."""

    def __init__(self, *values: Any) -> None:
        self._values = values
        self.scalar_input = tuple(
            type(v) is Number or kind_of(v) is not None or getattr(v, "scalar", False)
            for v in values
        )

    def __getitem__(self, k: int) -> Any:
        return _array_of(self._values[k])

    def __len__(self) -> int:
        return len(self._values)

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert_if_no_array") -> Any:
        """Return the arrays."""
        return tuple(map(_array_of, self._values))

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> Any:
        """Return the dtype that the arguments have together."""
        made = result_type_of(*self._values)
        if extra_dtype is not None:
            made = np.result_type(made, extra_dtype)
        return np.result_type(made, 0.0) if ensure_inexact else made

    def wrap(self, value: Any, to_scalar: Any = None) -> Any:
        """Return a result as the function does."""
        scalar = all(self.scalar_input) if to_scalar is None else to_scalar
        return value[()] if scalar and type(value) is Traced and not value.ndim else value


def _array_of(value: Any) -> Any:
    return _asarray(value, None, None)


if (_made_by := getattr(np._core._multiarray_umath, "_array_converter", None)) is not None:
    TABLE[_made_by] = lambda *values: (
        _Converter(*values) if is_traced(list(values)) else _made_by(*values)
    )

TABLE[np.broadcast_shapes] = lambda *shapes: (
    shaping.broadcast_arrays(*[shaping.full(s, 0) for s in shapes])[0].dims
    if is_traced(list(shapes)) else np.broadcast_shapes(*shapes)
)  # fmt: skip
TABLE[np.isscalar] = lambda value: (
    value.scalar if type(value) is Traced else type(value) is Number or np.isscalar(value)
)


def _frequencies(name: str) -> Callable[..., Any]:
    python = getattr(np.fft, name)

    def make(n: Any, d: Any = 1.0, device: Any = None) -> Any:
        if not is_traced([n, d]):
            return constant(python(n, d))
        if name == "rfftfreq":
            return shaping.arange(n // 2 + 1) / (n * d)
        return (shaping.arange(n) + n // 2) % n / (n * d) - (n // 2) / (n * d)

    return make


TABLE[np.fft.fftfreq], TABLE[np.fft.rfftfreq] = _frequencies("fftfreq"), _frequencies("rfftfreq")


def _own_array(own: Any, python: Any, args: Any, kwargs: Any) -> Any:
    if is_traced([*args, *kwargs.values()]):
        return own(*args, **kwargs)
    result = python(*args, **kwargs)
    return constant(result) if type(result) is np.ndarray else result


def _array(value: Any, dtype: Any, **more: Any) -> Any:
    if not is_traced(value):
        made = np.array(value, dtype, **{**more, "copy": True})
        return constant(made) if made.dtype.kind in "biufc" else made
    return shaping.make_array(value, dtype, **more)


def _asarray(value: Any, dtype: Any, order: Any, **more: Any) -> Any:
    if type(value) is np.ndarray:
        return np.asarray(value, dtype)  # an array of the program's, not a new one
    if not is_traced(value):
        made = np.asarray(value, dtype)
        return constant(made) if made.dtype.kind in "biufc" else made
    return shaping.asarray(value, dtype)


def _scalar_type(kind: Any) -> None:
    def make(value: Any = 0, *more: Any) -> Any:
        if not is_traced(value):
            return kind(value, *more)
        made = shaping.astype(as_traced(value), kind)
        if not made.ndim:
            made.scalar = True
        return made

    TABLE[kind] = make


for _scalar in (
    np.bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
):  # fmt: skip
    _scalar_type(_scalar)


def held(iterated: Any) -> Any:
    """Return what a ``for`` goes through, which a variable holds."""
    if is_speculative() and isinstance(iterated, Iterator):
        raise LoopError("it takes items of an iterator", "Give each step its item: zip(...).")
    return iterated


HOOKS = types.SimpleNamespace(
    held=held,
    call=call,
    list_=own_list,
    list_of=comprehensions.list_of,
    comprehension=Comprehension,
    getitem=getitem,
    setitem=setitem,
    attribute=attribute,
    augmented=augmented,
    augmented_item=augmented_item,
    assigns_global=assigns_global,
    set_attribute=set_attribute,
    augmented_attribute=augmented_attribute,
    slice=builtins.slice,
    **{
        name: getattr(branches, name)
        for name in (
            "and_", "or_", "not_", "chained", "compared", "contains", "truth", "if_expression",
            "if_statement", "undefined", "returned", "error", "assertion", "handled", "caught",
        )
    },
    for_statement=control.for_statement,
    while_statement=control.while_statement,
    untraceable=branches.UNTRACEABLE,
    any_error=Exception,
)  # fmt: skip

HANDLERS.register(implementation=_by_implementation, at=_at)
