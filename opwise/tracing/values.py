"""Traced values: Python numbers and numpy arrays of which the program knows dtype and rank only.

A ``Number`` stands for a Python int, float, complex or bool, a ``Traced`` for an ndarray or a numpy
scalar. What numpy's functions do with them is registered in ``HANDLERS`` by the modules above.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from opwise import tensor as T
from opwise.graph.variable import Constant
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor
from opwise.tracing import trees
from opwise.tracing.trace import NeedsState, assume, current, demand, untraceable, user_place

#: the hint of a number of which nothing is known while tracing
UNKNOWN: Any = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()

#: dtypes that opwise computes with
DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128".split()
)


class Handlers:
    """What numpy's functions and Python's operators do with traced values."""

    #: (ufunc, method, inputs, keywords) -> result
    ufunc: Callable[..., Any]
    #: () -> the namespace of the array API standard
    namespace: Callable[..., Any]
    #: (array, key) -> array; (array, key, value) -> None
    getitem: Callable[..., Any]
    setitem: Callable[..., Any]
    #: (ufunc, array, key, values) -> None, for all but sums and differences
    at: Callable[..., Any]
    #: (a function of numpy without an entry in ``functions``, arguments, keywords) -> its result
    implementation: Callable[..., Any]
    #: {a function of numpy: what it does with traced arrays}
    functions: dict[Any, Callable[..., Any]]
    #: {name of a method: function of the array and the arguments}
    methods: dict[str, Callable[..., Any]]

    def __init__(self) -> None:
        self.functions, self.methods = {}, {}

    def register(self, **functions: Callable[..., Any]) -> None:
        """Set what indexing and ufuncs do."""
        vars(self).update(functions)


HANDLERS = Handlers()

#: the operators of ndarray, and their ufuncs
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "divmod": np.divmod, "pow": np.power,
    "lshift": np.left_shift, "rshift": np.right_shift, "and": np.bitwise_and,
    "xor": np.bitwise_xor, "or": np.bitwise_or, "matmul": np.matmul,
}  # fmt: skip
_COMPARE = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


# --- numbers --------------------------------------------------------------------------------------

_RANK = {"b": 0, "i": 1, "f": 2, "c": 3}
_KINDS = "bifc"
#: the dtypes of the variables of numbers
NUMBER_DTYPES = {"b": "bool", "i": "int64", "f": "float64", "c": "complex128"}
PYTHON_TYPES: dict[str, type] = {"b": bool, "i": int, "f": float, "c": complex}


def kind_of(value: Any) -> str | None:
    """Return 'b', 'i', 'f' or 'c' for a Python number or a Number, and None for all else."""
    if type(value) is Number:
        return value.kind
    for kind, cls in PYTHON_TYPES.items():
        if type(value) is cls:
            return kind
    return None


class Number:
    """A Python number whose value a compiled function computes.

    kind: 'b', 'i', 'f' or 'c'. variable: a scalar variable of int64, float64, complex128 or bool,
    or a function without arguments that makes it. hint: the value in the call for which the
    function is traced; UNKNOWN if it depends on the values in arrays. text: a Python expression for
    it over the names of arguments; None if the hint is UNKNOWN. of_lengths: the value follows from
    the shapes of arguments. origin: for a length, another one and how much shorter it is.
    """

    __slots__ = ("_variable", "affine", "depth", "hint", "kind", "of_lengths", "origin", "text")

    def __init__(
        self,
        kind: str,
        variable: Any,
        hint: Any = UNKNOWN,
        text: str | None = None,
        of_lengths: bool = False,
        origin: tuple[Length, int] | None = None,
    ) -> None:
        self.kind, self.hint, self.text, self.of_lengths = kind, hint, text, of_lengths
        self.origin = origin
        self._variable = variable
        #: (the text of another number, by how much it differs from that), or None
        self.affine: tuple[str, int] | None = None
        #: how many functions call each other to make the variable
        self.depth = 0

    @property
    def variable(self) -> Tensor:
        """The scalar variable of the value."""
        made = self._variable
        if callable(made) and not hasattr(made, "owner"):
            made = made()
        if made.type.dtype != NUMBER_DTYPES[self.kind]:
            made = T.cast(made, NUMBER_DTYPES[self.kind])
        self._variable = made
        return made

    def make_variable(self) -> None:
        """Make the variable now, and not when it is read."""
        self._variable, self.depth = self.variable, 0

    @property
    def known(self) -> bool:
        """Whether the value is known if it is demanded."""
        return self.hint is not UNKNOWN

    def value(self, what: str) -> Any:
        """Return the value, and make it a condition of the signature.

        Raises TracingError if it depends on the values in arrays; ``what`` says what needs it.
        """
        constant = constant_of(self._variable)
        if constant is not None:
            return constant.item()
        if not self.known:
            raise untraceable(
                f"{what} needs the value of a number that is computed from values in arrays; it is "
                "not known while the function is traced.",
                "Write it with arrays (numpy.where for a choice, a mask for a part of an array), "
                "or pass the number as an argument.",
            )
        if self.hint != self.hint:
            demand(f"{self.text} != {self.text}")
        elif isinstance(self.hint, bool):
            demand(self.text if self.hint else f"not {self.text}")  # type: ignore[arg-type]
        else:
            demand(f"{self.text} == {self.hint!r}")
        return self.hint

    def __repr__(self) -> str:
        if self.known and current() is not None:
            return repr(self.value("A text"))
        return f"<traced {PYTHON_TYPES[self.kind].__name__}>"

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash(self.value("A key"))

    def __format__(self, spec: str) -> str:
        return format(self.value("A format"), spec)

    def __bool__(self) -> bool:
        if self.kind == "b":
            return bool(self.value("A condition"))
        return bool(number_operation("ne", self, 0).value("A condition"))

    def __index__(self) -> int:
        if self.kind not in "bi":
            raise TypeError(f"'{PYTHON_TYPES[self.kind].__name__}' object is not an integer")
        return int(self.value("Python"))

    def __int__(self) -> int:
        return int(self.value("int()"))

    def __float__(self) -> float:
        return float(self.value("float()"))

    def __complex__(self) -> complex:
        return complex(self.value("complex()"))

    def bit_length(self) -> Any:
        powers = T.constant(2 ** np.arange(63, dtype=np.int64))
        return Number(
            "i",
            lambda: T.sum(T.ge(T.abs_(number_variable(self, "i")), powers), dtype="int64"),
            int(self.hint).bit_length() if self.known else UNKNOWN,
            f"({self.text}).bit_length()" if self.known else None,
            self.of_lengths,
        )

    def __round__(self, digits: int | None = None) -> Any:
        if self.kind in "bi" and digits is None:
            return self
        if self.kind == "f" and digits is None:
            hint = round(self.hint) if self.known else UNKNOWN
            text = f"round({self.text})" if self.known else None
            variable = T.cast(T.round_half_to_even(self.variable), "int64")
            return Number("i", variable, hint, text, self.of_lengths)
        return round(self.value("round()"), digits)  # type: ignore[call-overload]

    def __trunc__(self) -> int:
        return math.trunc(self.value("int()"))

    def __floor__(self) -> int:
        return math.floor(self.value("math.floor"))

    def __ceil__(self) -> int:
        return math.ceil(self.value("math.ceil"))

    @property
    def real(self) -> Any:
        return self if self.kind != "c" else Number("f", T.real(self.variable))

    @property
    def imag(self) -> Any:
        if self.kind != "c":
            return 0.0 if self.kind == "f" else 0
        return Number("f", T.imag(self.variable))

    def conjugate(self) -> Any:
        return self if self.kind != "c" else Number("c", T.conj(self.variable))

    def is_integer(self) -> Any:
        if self.kind == "i":
            return True
        return number_operation("eq", number_operation("mod", self, 1.0), 0.0)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return HANDLERS.ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(func, args, kwargs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.value("numpy"), dtype)


class Length:
    """A length from which others are counted, as those of ``x[1:]`` and of ``x[2:-1]``.

    hint, text: as of a Number. by_steps: the steps of a loop decide it, so no call is a hint. Such
    a length is taken to be ``least`` or more, as much as is cut off anywhere.
    """

    __slots__ = ("by_steps", "hint", "least", "text")

    def __init__(self, hint: Any, text: str | None, by_steps: bool = False) -> None:
        self.hint, self.text, self.by_steps = hint, text, by_steps
        self.least = 0


def _wrapped(value: Tensor) -> Tensor:
    return value


#: name -> (Python's operator, its text, a function of variables)
_OPERATIONS: dict[str, tuple[Callable[..., Any], str, Callable[..., Tensor]]] = {
    "add": (operator.add, "+", T.add),
    "sub": (operator.sub, "-", T.sub),
    "mul": (operator.mul, "*", T.mul),
    "truediv": (operator.truediv, "/", T.true_div),
    "floordiv": (operator.floordiv, "//", T.int_div),
    "mod": (operator.mod, "%", T.mod),
    "pow": (operator.pow, "**", T.pow),
    "lshift": (operator.lshift, "<<", T.left_shift),
    "rshift": (operator.rshift, ">>", T.right_shift),
    "and": (operator.and_, "&", T.and_),
    "or": (operator.or_, "|", T.or_),
    "xor": (operator.xor, "^", T.xor),
    "lt": (operator.lt, "<", T.lt),
    "le": (operator.le, "<=", T.le),
    "eq": (operator.eq, "==", T.eq),
    "ne": (operator.ne, "!=", T.neq),
    "gt": (operator.gt, ">", T.gt),
    "ge": (operator.ge, ">=", T.ge),
}
_BITWISE = frozenset(("and", "or", "xor"))
#: how many functions may call each other to make the variable of a number
MOST_DEPTH = 32
#: the longest expression by which a number follows from arguments: Python cannot read deeper ones
MOST_TEXT = 800


def leave_to_python(test: Tensor) -> None:
    """Let calls for which a test holds run in Python."""
    trace = current()
    if trace is not None:
        trace.raised.write(T.or_(trace.raised.variable, test))


#: how many tests may divide the calls of a function among signatures
MOST_GUESSES = 8


def guess(test: Tensor, in_loops: bool = False) -> bool | None:
    """Return whether a test holds, in the calls that this signature is for.

    Calls for which it is otherwise get another signature. None if no call can be told from others
    by the test: in a loop, unless in_loops lets one answer hold for all steps, and where there are
    too many of them.
    """
    trace = current()
    if trace is None or trace.missed is None or (trace.loops and not in_loops):
        return None
    place = user_place()
    if place not in trace.guesses:
        if len(trace.guesses) == MOST_GUESSES:
            return None
        trace.guesses.append(place)
    answer = place not in trace.denied
    wrong = T.invert(test) if answer else test
    missed = trace.missed.variable
    number = np.asarray(1 + trace.guesses.index(place))
    trace.missed.write(T.switch(T.and_(wrong, T.eq(missed, 0)), number, missed))
    leave_to_python(wrong)
    return answer


def number_variable(value: Any, kind: str | None = None) -> Tensor:
    """Return the scalar variable of a Python number or a Number, as one of another kind."""
    own = kind_of(value)
    variable = (
        value.variable
        if type(value) is Number
        else T.constant(np.asarray(value, NUMBER_DTYPES[own or "f"]))
    )
    return variable if kind is None or kind == own else T.cast(variable, NUMBER_DTYPES[kind])


def number_text(value: Any) -> str | None:
    """Return a Python expression for a number, or None."""
    return value.text if type(value) is Number else repr(value)


def number_operation(name: str, a: Any, b: Any) -> Any:
    """Return what one of Python's operators gives for two numbers, at least one a Number."""
    python, symbol, made = _OPERATIONS[name]
    kinds = kind_of(a), kind_of(b)
    kind = max(kinds, key=lambda k: _RANK[k or "b"]) or "b"
    compares = name in _COMPARE
    if "c" in kinds and (name in ("floordiv", "mod") or (compares and name not in ("eq", "ne"))):
        python(0j, 0j)  # Python's own error
    if kind in "fc" and name in ("lshift", "rshift", *_BITWISE):
        python(1.0, 1.0)
    if kind == "b" and not compares and name not in _BITWISE:
        kind = "i"
    if name == "truediv" and kind == "i":
        kind = "f"
    if name == "pow" and kind == "i":
        negative = number_operation("lt", b, 0) if type(b) is Number else b < 0
        trace = current()
        if type(negative) is Number and not negative.known and trace and trace.raised:
            leave_to_python(negative.variable)
        elif negative:  # Python's result is a float then
            kind = "f"
    numbers = [each for each in (a, b) if type(each) is Number]
    known = all(each.known for each in numbers)
    if name in ("truediv", "floordiv", "mod") and type(b) is Number:
        trace = current()
        if trace is not None and any(issubclass(ZeroDivisionError, e) for e in trace.handled):
            leave_to_python(T.eq(number_variable(b), 0))
    hint, text, affine = UNKNOWN, None, None
    if known:
        hint = python(*(x.hint if type(x) is Number else x for x in (a, b)))
        text = f"({number_text(a)} {symbol} {number_text(b)})"
        if (affine := _affine(name, a, b)) is not None:  # one text, however it is computed
            base, by = affine
            text = f"({base} {'-' if by < 0 else '+'} {abs(by)})" if by else base
    inside = kind
    if compares and kind == "b":
        inside = "i"
    of_lengths = known and all(each.of_lengths for each in numbers)
    if text is not None and len(text) > MOST_TEXT and not of_lengths:
        hint, text = UNKNOWN, None
    result = Number(
        "b" if compares else kind,
        lambda: made(number_variable(a, inside), number_variable(b, inside)),
        hint,
        text,
        of_lengths,
        _moved_length(name, a, b),
    )
    result.affine = affine if known else None
    result.depth = 1 + max(each.depth for each in numbers)
    if result.depth > MOST_DEPTH:
        result.make_variable()
    return settled(result)


def _affine(name: str, a: Any, b: Any) -> tuple[str, int] | None:
    """Return (the text of a number, by how much another one is more), for sums with an int."""
    if name == "add" and type(a) is int:
        a, b = b, a
    if name not in ("add", "sub") or type(a) is not Number or type(b) is not int:
        return None
    if a.kind != "i" or a.text is None:
        return None
    base, offset = a.affine or (a.text, 0)
    return base, offset + (b if name == "add" else -b)


def settled(number: Number) -> Any:
    """Return a number, or its value if it follows from lengths by a text that is too long."""
    if number.of_lengths and number.text is not None and len(number.text) > MOST_TEXT:
        return number.value("A length")
    return number


def _moved_length(name: str, a: Any, b: Any) -> tuple[Length, int] | None:
    """Return the origin of the sum or difference of a length that steps decide and an int."""
    if name == "add" and type(a) is int:
        a, b = b, a
    if name not in ("add", "sub") or type(b) is not int or a.origin is None:
        return None
    length, less = a.origin
    if not length.by_steps:
        return None
    less += b if name == "sub" else -b
    length.least = max(length.least, less)
    return length, less


def _number_method(name: str, reflected: bool) -> Callable[[Number, Any], Any]:
    def method(self: Number, other: Any) -> Any:
        if kind_of(other) is None:
            return NotImplemented
        if name == "divmod":
            a, b = (other, self) if reflected else (self, other)
            return number_operation("floordiv", a, b), number_operation("mod", a, b)
        return number_operation(name, *((other, self) if reflected else (self, other)))

    return method


for _name in (*_BINARY, *_COMPARE):
    if _name != "matmul":
        setattr(Number, f"__{_name}__", _number_method(_name, False))
        if _name in _BINARY:
            setattr(Number, f"__r{_name}__", _number_method(_name, True))


def _unary_number(name: str) -> Callable[[Number], Any]:
    def method(self: Number) -> Any:
        python = getattr(operator, name)
        kind = "i" if self.kind == "b" else self.kind
        made = {"neg": T.neg, "pos": _wrapped, "abs": T.abs_, "invert": T.invert}[name]
        if name == "invert" and kind in "fc":
            python(1.0)
        hint = python(self.hint) if self.known else UNKNOWN
        sign = {"neg": "-", "pos": "+", "invert": "~"}.get(name)
        text = None
        if self.known:
            text = f"({sign}{self.text})" if sign else f"abs({self.text})"
        return Number(
            "f" if name == "abs" and kind == "c" else kind,
            lambda: made(number_variable(self, kind)),
            hint,
            text,
            self.of_lengths,
        )

    return method


for _name in _UNARY:
    setattr(Number, f"__{_name}__", _unary_number(_name))


def constant_of(variable: Any) -> np.ndarray | None:
    """Return the value of a variable that is a constant, or None."""
    return np.asarray(variable.data) if isinstance(variable, Constant) else None


def number_of(value: Any) -> Any:
    """Return an integer index as an int or a Number: ints, numpy's integers, Numbers, scalars."""
    if type(value) is Traced:
        constant = constant_of(value.variable)
        return Number("i", T.cast(value.variable, "int64")) if constant is None else int(constant)
    if type(value) is Number:
        return value
    return operator.index(value)


# --- lengths --------------------------------------------------------------------------------------

#: a length of an axis: an int, or a Number
Dim = Any


def hint_of(dim: Dim) -> Any:
    """Return the length in the call for which the function is traced, or UNKNOWN."""
    return dim.hint if type(dim) is Number else dim


def is_one(dim: Dim) -> bool:
    """Return whether a length is 1 in all calls."""
    return type(dim) is not Number and dim == 1


def dim_variable(dim: Dim) -> Any:
    """Return a length as a variable or an int."""
    return dim.variable if type(dim) is Number else int(dim)


def same_dim(a: Dim, b: Dim) -> bool:
    """Return whether two lengths are the same in all calls."""
    if type(a) is Number and type(b) is Number:
        if a.text is None and a.origin is not None:
            return a.origin == b.origin
        return a is b or (a.text is not None and a.text == b.text)
    return type(a) is not Number and type(b) is not Number and a == b


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product of lengths."""
    result: Dim = 1
    for dim in dims:
        if is_one(dim):
            continue
        result = dim if is_one(result) else result * dim
    return result


def shape_text(dims: Sequence[Dim]) -> str:
    """Return a shape as numpy's messages print it."""
    parts = [str(h) if (h := hint_of(d)) is not UNKNOWN else "?" for d in dims]
    return f"({','.join(parts)}{',' if len(parts) == 1 else ''})"


def require_equal(a: Dim, b: Dim, error: Callable[[], Exception]) -> Dim:
    """Return the length that two lengths have in common; raise an error if they differ."""
    if same_dim(a, b):
        return a
    one, two = hint_of(a), hint_of(b)
    if one is not UNKNOWN and two is not UNKNOWN:
        if one != two:
            raise error()
        assume(f"{number_text(a)} == {number_text(b)}")
    return b if type(a) is Number and (type(b) is not Number or not a.known) else a


# --- arrays ---------------------------------------------------------------------------------------


#: whether an array lies in C's order; a set of expressions for "if all of them are true"
Order = bool | frozenset[str]


class Root:
    """The memory of an array, or of several that share it: a variable that writes replace."""

    __slots__ = (
        "origin", "place", "readonly", "serial", "source", "stale", "uncertain", "variable",
        "version",
    )  # fmt: skip

    #: counts all of them
    serials = itertools.count()

    def __init__(self, variable: Tensor, origin: int | None = None, readonly: str = "") -> None:
        self.variable = variable
        #: its number: later ones have larger numbers
        self.serial = next(Root.serials)
        #: counts the writes
        self.version = 0
        #: the number of the argument whose memory it is, or None
        self.origin = origin
        #: why it may not be written; '' if it may
        self.readonly = readonly
        #: why numpy might also change another array with it, or not; '' if that is known
        self.uncertain = ""
        #: (an object, attribute or key) where the function has read the array from; or None
        self.place: tuple[Any, Any] | None = None
        #: the array that a branch of the program has, if this is what it holds at the branch's end
        self.source: Any = None
        #: what may be views of it, or copies: writes leave their values unknown
        self.stale: list[Root] = []

    def may_be_seen_by(self, other: Root, why: str) -> None:
        """Note that a new array is a view of this memory or a copy, which is not known."""
        other.uncertain = why
        self.stale.append(other)

    def write(self, variable: Tensor) -> None:
        """Give the memory another value. Raises ValueError if it is read-only."""
        if self.readonly:
            raise ValueError(self.readonly)
        if self.place is not None and current() is not None:
            raise NeedsState(*self.place)
        if self.uncertain:
            raise untraceable(
                f"An array is changed in place {self.uncertain}.",
                "Write .copy() there, change the array before, or pass it as an argument.",
            )
        trace = current()
        if trace is not None:
            for root in (self, *self.stale):
                for log in trace.written:
                    log.setdefault(root, root.variable)
        for root in self.stale:
            if not isinstance(root.variable, _Unknown):
                root.variable = cast(Any, _Unknown(root.uncertain))
                root.version += 1
        if getattr(variable.type, "dtype", "") != getattr(self.variable.type, "dtype", ""):
            raise AssertionError(f"{variable.type} written into {self.variable.type}")
        self.variable = variable
        self.version += 1


class _Unknown:
    """What an array holds that may have changed with another one: nobody may look."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __getattr__(self, name: str) -> Any:
        raise untraceable(
            f"An array is read that may be a view of one that was changed in place {self._why}.",
            "Write .copy() where it is made, or read it before the change.",
        )


class Unhandled(Exception):
    """A handler has nothing of its own for these arguments: numpy's own code is to be traced."""


class View:
    """A step from an array to a view of it: how it is read, and how a value is put there."""

    writeable = True

    def read(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def write(self, x: Tensor, value: Tensor) -> Tensor:
        """Return x with another value in the view, of the dtype and the shape of the view."""
        raise NotImplementedError

    def then(self, step: View, dims: Sequence[Dim]) -> View | None:
        """Return a view of this view as one step, if that reads less; dims: its lengths."""
        return None


class Traced:
    """A numpy array, or a numpy scalar, of which the program knows the dtype and the rank.

    ``dims`` are the lengths of its axes, ints or Numbers; an axis has the length 1 in all calls if
    and only if the type of the variable says that it may be broadcast.
    """

    __slots__ = ("_cache", "_path", "contiguous", "dims", "root", "scalar")

    __array_priority__ = 1000.0

    def __init__(
        self,
        root: Root,
        dims: tuple[Dim, ...],
        path: tuple[View, ...] = (),
        scalar: bool = False,
        contiguous: Order = True,
    ) -> None:
        self.root = root
        self.dims = dims
        self._path = path
        #: whether it stands for a numpy scalar, which is no array
        self.scalar = scalar
        #: whether it lies in memory in C's order; a set of expressions over the arguments if it
        #: does when all of them are true; False if it may not
        self.contiguous = contiguous
        self._cache: tuple[int, Tensor] | None = None

    # --- what it is

    @property
    def variable(self) -> Tensor:
        """The variable of the present value."""
        root = self.root
        if not self._path:
            return root.variable
        if self._cache is None or self._cache[0] != root.version:
            value = root.variable
            for step in self._path:
                value = step.read(value)
            self._cache = root.version, value
        return self._cache[1]

    def write(self, value: Tensor) -> None:
        """Give all elements other values: a variable of the dtype and the shape of the array."""
        if self.scalar:
            raise TypeError("a numpy scalar cannot be changed")
        for step in self._path:
            if not step.writeable:
                raise ValueError("assignment destination is read-only")
        before = [self.root.variable]
        for step in self._path[:-1]:
            before.append(step.read(before[-1]))
        for step, x in (
            zip(reversed(self._path), reversed(before), strict=True) if self._path else ()
        ):
            value = step.write(x, value)
        self.root.write(value)

    def _take_shape(self, shape: Any) -> None:
        """Do ``x.shape = shape``."""
        trace = current()
        if trace is not None and trace.written:
            raise untraceable(
                "The shape of an array is set in a loop or branch.",
                "Write a variable of its own: y = x.reshape(...).",
            )
        if self.root.origin is not None and not self._path:
            raise untraceable(
                "The shape of an argument is set, which its caller would see.",
                "Write a variable of its own: y = x.reshape(...).",
            )
        made = HANDLERS.methods["reshape"](self, shape)
        if made.root is not self.root:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                "with the desired shape."
            )
        self.dims, self._path, self.contiguous = made.dims, made._path, made.contiguous
        self._cache = None

    def part(self, step: View, dims: tuple[Dim, ...], contiguous: Order = False) -> Traced:
        """Return a view of the array."""
        if self.scalar:
            return array(step.read(self.variable), dims)
        joined = self._path[-1].then(step, dims) if self._path else None
        path = (*self._path, step) if joined is None else (*self._path[:-1], joined)
        return Traced(self.root, dims, path, False, contiguous)

    def is_same_view(self, other: Traced) -> bool:
        """Return whether another array is this one, reached in the same way."""
        return (
            self.root is other.root
            and len(self._path) == len(other._path)
            and all(a is b for a, b in zip(self._path, other._path, strict=True))
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, as of an ndarray."""
        return np.dtype(self.root.variable.type.dtype) if not self._path else np.dtype(
            self.variable.type.dtype
        )  # fmt: skip

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.dims)

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The lengths of the axes; those that calls decide are Numbers."""
        return self.dims

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.dims)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Dim:
        return self.size * self.itemsize

    def __repr__(self) -> str:
        what = "scalar" if self.scalar else "array"
        return f"<traced {what} {self.dtype} {shape_text(self.dims)}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    # --- Python

    def _value(self, what: str) -> np.ndarray:
        constant = constant_of(self.variable)
        if constant is None:
            raise untraceable(
                f"{what} needs the values of {self!r}, which are not known while the function is "
                "traced.",
                "Write numpy.where for a choice, a mask for a part, and functions of numpy instead "
                "of those of other modules.",
            )
        return constant

    def __bool__(self) -> bool:
        for dim in self.dims:
            if not is_one(dim) and operator.index(dim) != 1:
                if operator.index(product(self.dims)) == 0:
                    raise ValueError(
                        "The truth value of an empty array is ambiguous. Use `array.size > 0` to "
                        "check that an array is not empty."
                    )
                raise ValueError(
                    "The truth value of an array with more than one element is ambiguous. Use "
                    "a.any() or a.all()"
                )
        return bool(self._value("A condition"))

    def __hash__(self) -> int:
        if not self.scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._value("A key"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._value("Python"))

    def __int__(self) -> int:
        return int(self._value("int()"))

    def __float__(self) -> float:
        return float(self._value("float()"))

    def __complex__(self) -> complex:
        return complex(self._value("complex()"))

    def __round__(self, digits: int = 0) -> Any:
        return HANDLERS.methods["round"](self, digits)

    def __len__(self) -> int:
        if not self.dims:
            raise TypeError("len() of unsized object")
        return operator.index(self.dims[0])

    def __iter__(self) -> Iterator[Any]:
        if not self.dims:
            raise TypeError("iteration over a 0-d array")
        if type(self.dims[0]) is Number and not self.dims[0].known:
            raise untraceable(
                f"Python cannot go through {self!r}, whose length depends on values in arrays.",
                "Write a for statement that assigns elements of an array, or pass the array as an "
                "argument.",
            )
        return (self[i] for i in range(operator.index(self.dims[0])))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())  # type: ignore[attr-defined]

    def __getitem__(self, key: Any) -> Any:
        return HANDLERS.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        HANDLERS.setitem(self, key, value)

    def __pow__(self, other: Any) -> Any:
        if not _may_be_operand(other):
            return NotImplemented
        if not self.scalar and type(other) in (int, float):  # arrays have other ways for these
            if other == 2 and (type(other) is int or self.dtype.kind in "fc"):
                return np.square(self)  # type: ignore[call-overload]
            if type(other) is float and other == 0.5 and self.dtype.kind in "fc":
                return np.sqrt(self)  # type: ignore[call-overload]
        return np.power(self, other)  # type: ignore[call-overload]

    # --- numpy

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        value = constant_of(self.variable)
        if value is None:
            raise untraceable(
                f"A function that knows nothing of traced arrays was given {self!r}.",
                "Call a function of numpy that dispatches on its arguments, or use "
                "opwise.jit(fallback=True), which runs such functions in numpy.",
            )
        return np.array(value, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return HANDLERS.ufunc(ufunc, method, inputs, keywords)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(func, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return HANDLERS.namespace()

    @property
    def device(self) -> str:
        return "cpu"

    def __getattr__(self, name: str) -> Any:
        method = HANDLERS.methods.get(name)
        if method is None:
            if hasattr(np.ndarray, name) and not name.startswith("__"):
                raise untraceable(
                    f"ndarray.{name} cannot be traced.",
                    "Write it with other functions of numpy.",
                )
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if name in PROPERTIES:
            return method(self)
        return lambda *args, **kwargs: method(self, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in PROPERTIES or name in ("shape", "dtype", "strides"):
            if name in ("real", "imag") and not self.scalar:
                HANDLERS.setitem(getattr(self, name), Ellipsis, value)
                return
            if name == "shape" and not self.scalar:
                self._take_shape(value)
                return
            raise untraceable(
                f"Setting the attribute {name!r} of an array cannot be traced.",
                "Write a function of numpy that returns a new array, such as reshape.",
            )
        object.__setattr__(self, name, value)


#: attributes of arrays that HANDLERS.methods compute
PROPERTIES = frozenset(("T", "mT", "real", "imag", "flat", "flags"))


def _binary_method(ufunc: Any, reflected: bool) -> Callable[[Traced, Any], Any]:
    def method(self: Traced, other: Any) -> Any:
        if not _may_be_operand(other):
            return NotImplemented
        return ufunc(other, self) if reflected else ufunc(self, other)

    return method


def _may_be_operand(other: Any) -> bool:
    override = getattr(type(other), "__array_ufunc__", False)
    return override is not None and not isinstance(other, str | bytes)


def _in_place_method(ufunc: Any) -> Callable[[Traced, Any], Any]:
    def method(self: Traced, other: Any) -> Any:
        if self.scalar:
            return ufunc(self, other)
        return ufunc(self, other, out=self)

    return method


def _unary_method(ufunc: Any) -> Callable[[Traced], Any]:
    return lambda self: ufunc(self)


for _name, _ufunc in _BINARY.items():
    if _name != "pow":
        setattr(Traced, f"__{_name}__", _binary_method(_ufunc, False))
    setattr(Traced, f"__r{_name}__", _binary_method(_ufunc, True))
    if _name != "divmod":
        setattr(Traced, f"__i{_name}__", _in_place_method(_ufunc))

for _name, _ufunc in _COMPARE.items():
    setattr(Traced, f"__{_name}__", _binary_method(_ufunc, False))
for _name, _ufunc in _UNARY.items():
    setattr(Traced, f"__{_name}__", _unary_method(_ufunc))


def call_function(func: Any, args: Any, kwargs: Any) -> Any:
    """Call what a function of numpy does with traced arrays.

    Raises TracingError if it does nothing yet.
    """
    own = HANDLERS.functions.get(func)
    if own is None:
        return HANDLERS.implementation(func, args, kwargs)
    try:
        return own(*args, **kwargs)
    except Unhandled:
        return HANDLERS.implementation(func, args, kwargs)


def common_order(arrays: Iterable[Traced], ndim: int) -> Order:
    """Return whether what is made of arrays, element by element, lies in C's order."""
    texts: frozenset[str] = frozenset()
    for x in arrays:
        if x.ndim <= 1:
            continue
        if not x.contiguous or x.ndim != ndim:
            return False
        if x.contiguous is not True:
            texts |= x.contiguous
    return texts or True


def is_in_order(x: Traced) -> bool:
    """Return whether an array lies in C's order; what that depends on becomes a condition."""
    if isinstance(x.contiguous, bool):
        return x.contiguous
    trace = current()
    if trace is None:
        return False
    for text in sorted(x.contiguous):
        if not trace.orders[text]:
            trace.demand(f"not {text}")
            return False
    for text in sorted(x.contiguous):
        trace.demand(text)
    return True


def dims_of(variable: Tensor) -> tuple[Dim, ...]:
    """Return the lengths of a variable of which nothing else is known."""
    return tuple(
        1 if one else Number("i", lambda k=k: variable.shape[k])
        for k, one in enumerate(variable.type.broadcastable)
    )


def fitted(variable: Tensor, dims: Sequence[Dim]) -> Tensor:
    """Return a variable whose type says of each axis whether it has the length 1 in all calls."""
    wanted = [is_one(dim) for dim in dims]
    if list(variable.type.broadcastable) == wanted:
        return variable
    ones = [k for k, w in enumerate(wanted) if w and not variable.type.broadcastable[k]]
    if ones:
        variable = T.addbroadcast(variable, *ones)
    more = [k for k, w in enumerate(wanted) if not w and variable.type.broadcastable[k]]
    return T.unbroadcast(variable, *more) if more else variable


def array(
    variable: Tensor,
    dims: Sequence[Dim] | None = None,
    scalar: bool = False,
    contiguous: Order = True,
) -> Traced:
    """Return a new array with the value of a variable.

    dims: its lengths; where the type of the variable knows that one is 1, that is taken.
    """
    if dims is None:
        dims = dims_of(variable)
    if len(dims) != variable.type.ndim:
        raise AssertionError(f"{variable.type} has other dimensions than {dims}")
    dims = tuple(
        1 if one else dim for dim, one in zip(dims, variable.type.broadcastable, strict=True)
    )
    return Traced(Root(fitted(variable, dims)), dims, (), scalar, contiguous)


def constant(value: Any, readonly: str = "") -> Traced:
    """Return an array or a numpy scalar as a traced one. Raises TypeError for dtypes that opwise
    lacks."""
    scalar = isinstance(value, np.generic)
    value = np.asarray(value)
    check_dtype(value.dtype)
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    # the value at this time: the program may change the array later
    variable = T.constant(np.array(value))
    if tuple(variable.type.broadcastable) != tuple(n == 1 for n in value.shape):
        variable = fitted(variable, value.shape)
    contiguous = bool(value.flags.c_contiguous)
    made = Traced(Root(variable, None, readonly), value.shape, (), scalar, contiguous)
    return made


def captured(value: np.ndarray, place: tuple[Any, Any] | None = None) -> Traced:
    """Return an array that the function holds, in a global or an object, as a traced one.

    Each call reads its present elements: it is an argument that no caller gives. place: (object,
    attribute or key) where it is read from.
    """
    trace = current()
    if trace is None:
        return constant(value)
    if id(value) in trace.state_arrays:
        return trace.state_arrays[id(value)]  # type: ignore[no-any-return]
    known = trace.captured.get(id(value))
    if known is not None:
        known[1].root.place = known[1].root.place or place
        return known[1]  # type: ignore[no-any-return]
    check_dtype(value.dtype)
    if not value.dtype.isnative:
        return constant(value)
    ones = tuple(n == 1 for n in value.shape)
    variable = tensor_type(value.dtype.name, ones)()
    root = Root(variable)
    root.uncertain = "that the function did not make, and that is no argument"
    root.place = place
    made = Traced(root, value.shape, (), False, bool(value.flags.c_contiguous))
    trace.captured[id(value)] = value, made
    return made


def check_dtype(dtype: np.dtype[Any], what: str = "") -> None:
    """Raise TypeError if opwise does not compute with a dtype. what: what has it, for the error."""
    if dtype.name not in DTYPES:
        raise TypeError(
            f"opwise.jit computes with booleans, integers, floats and complex numbers, not with "
            f"{what or f'dtype {dtype}'}. Convert it, or leave it out of the function."
        )


def as_traced(value: Any) -> Traced:
    """Return an operand as a traced array: arrays, numpy scalars, numbers, nested lists of them."""
    if type(value) is Traced:
        return value
    if type(value) is Number:
        return Traced(Root(value.variable), (), (), False)
    if isinstance(value, trees.OwnList) and value.memory is not None:
        return value.memory.array()  # type: ignore[no-any-return]
    if isinstance(value, list | tuple) and _holds_traced(value):
        return HANDLERS.functions[np.stack]([as_traced(each) for each in value])
    if type(value) is np.ndarray:
        return captured(value)
    made = value if isinstance(value, np.generic) else np.asarray(value)
    if not made.ndim:
        check_dtype(made.dtype, f"{value!r:.60} (a {type(value).__name__})")
    return constant(made)


def _holds_traced(value: Any) -> bool:
    if isinstance(value, list | tuple):
        stored = isinstance(value, trees.OwnList) and value.memory is not None
        return stored or any(map(_holds_traced, value))
    return type(value) in (Traced, Number)


def is_traced(value: Any) -> bool:
    """Return whether a value, or one in nested lists and tuples, is traced."""
    return _holds_traced(value)
