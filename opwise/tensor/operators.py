"""Tensor variables and constants, with their operators and methods.

Each method calls a function of another module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import numpy as np

import opwise.tensor.shape as shaping
from opwise.errors import AsTensorError, ComplexError
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar import dtypes
from opwise.tensor import fromnumpy, reduce
from opwise.tensor.convert import tensor_copy
from opwise.tensor.creation import fill, ones_like, zeros_like
from opwise.tensor.diagonal import diagonal
from opwise.tensor.dimshuffle import dimshuffle_op
from opwise.tensor.elemwise import FUNCTIONS, cast, elemwise
from opwise.tensor.elsewhere import method_hint
from opwise.tensor.extra_ops import cumprod, cumsum, repeat, searchsorted
from opwise.tensor.functions import mod_check
from opwise.tensor.knownvalues import get_scalar_constant_value, get_vector_length
from opwise.tensor.products import dot, matmul
from opwise.tensor.selection import choose, compress, nonzero, nonzero_values
from opwise.tensor.sort import argsort, sort
from opwise.tensor.subtensor import getitem, take
from opwise.tensor.transfer import transfer
from opwise.tensor.type import TensorType
from opwise.tensor.variable import Tensor, TensorLike

if TYPE_CHECKING:
    from opwise.scalar.dtypes import DTypeLike
    from opwise.tensor.reduce import Axis

__all__ = ["TensorConstant", "TensorVariable"]

#: types of Python, numbers excluded, that cannot be operands of a variable
_PLAIN = (bool, str, bytes, list, tuple, dict, set, frozenset, type(None))


_Method: TypeAlias = "Callable[..., Tensor]"


def _named(method: Callable[..., Any], name: str, doc: str | None = None) -> Callable[..., Any]:
    method.__name__ = name
    method.__doc__ = doc
    method.__qualname__ = f"_tensor_py_operators.{name}"
    return method


def _binary(name: str, symbol: str, op: _Method, reflected: bool = False) -> _Method:
    """Return the method of an operator; reflected: the variable is the right operand."""

    def method(self: Tensor, other: TensorLike) -> Any:
        try:
            return op(other, self) if reflected else op(self, other)
        except ComplexError:
            raise
        except (AsTensorError, NotImplementedError) as error:
            if type(other) not in _PLAIN:
                return NotImplemented  # the other operand may know, or Python names both types
            types = [type(self).__name__, type(other).__name__]
            left, right = reversed(types) if reflected else types
            raise TypeError(
                f"unsupported operand type(s) for {symbol}: '{left}' and '{right}'. {error}"
            ) from None

    return _named(method, f"__{'r' * reflected}{name}__")


def _comparison(name: str) -> _Method:
    op = elemwise(name)

    def method(self: Tensor, other: TensorLike) -> Any:
        try:
            result = op(self, other)
        except AsTensorError:
            return NotImplemented
        # every variable is true: bool() of a comparison would mislead
        result._is_nonzero = False
        return result

    return _named(method, f"__{name}__")


def _unary(name: str, function: str | None = None) -> _Method:
    op = FUNCTIONS[name] if function is None else elemwise(function)
    return _named(lambda self: op(self), name, op.__doc__)


class _OfTheType:
    """An attribute of a class that its instances do not have.

    numpy asks the type for ``__array_ufunc__``. numpy.ma asks the instance, and leaves ``masked *
    x`` to the variable, as Theano did, only if that has none.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is not None:
            raise AttributeError("__array_ufunc__ belongs to the type")
        return self.value


if TYPE_CHECKING:
    _Base = Variable
else:
    _Base = object


class _tensor_py_operators(_Base):
    """The operators and methods of tensor variables, constants and shared variables."""

    __slots__ = ()
    type: TensorType
    #: False for the result of a comparison: ``bool`` of it would always be True
    _is_nonzero = True
    #: above that of numpy arrays, which then leave ``array * x`` to the variable
    __array_priority__ = 1000

    def __getattr__(self, name: str) -> NoReturn:
        """Raise AttributeError that says what to write instead of another library's method."""
        more = method_hint(name)
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(
            f"{text}.{more}" if more else text, name=name, obj=None if more else self
        )

    # --- operators ------------------------------------------------------------------------------

    __add__ = _binary("add", "+", elemwise("add"))
    __radd__ = _binary("add", "+", elemwise("add"), reflected=True)
    __sub__ = _binary("sub", "-", elemwise("sub"))
    __rsub__ = _binary("sub", "-", elemwise("sub"), reflected=True)
    __mul__ = _binary("mul", "*", elemwise("mul"))
    __rmul__ = _binary("mul", "*", elemwise("mul"), reflected=True)
    __truediv__ = _binary("truediv", "/", elemwise("true_div"))
    __rtruediv__ = _binary("truediv", "/", elemwise("true_div"), reflected=True)
    __div__ = _binary("div", "/", elemwise("true_div"))
    __rdiv__ = _binary("div", "/", elemwise("true_div"), reflected=True)
    __floordiv__ = _binary("floordiv", "//", elemwise("int_div"))
    __rfloordiv__ = _binary("floordiv", "//", elemwise("int_div"), reflected=True)
    __mod__ = _binary("mod", "%", mod_check)
    __rmod__ = _binary("mod", "%", mod_check, reflected=True)
    __pow__ = _binary("pow", "**", elemwise("pow"))
    __rpow__ = _binary("pow", "**", elemwise("pow"), reflected=True)
    __and__ = _binary("and", "&", elemwise("and_"))
    __rand__ = _binary("and", "&", elemwise("and_"), reflected=True)
    __or__ = _binary("or", "|", elemwise("or_"))
    __ror__ = _binary("or", "|", elemwise("or_"), reflected=True)
    __xor__ = _binary("xor", "^", elemwise("xor"))
    __rxor__ = _binary("xor", "^", elemwise("xor"), reflected=True)
    __lshift__ = _binary("lshift", "<<", elemwise("left_shift"))
    __rlshift__ = _binary("lshift", "<<", elemwise("left_shift"), reflected=True)
    __rshift__ = _binary("rshift", ">>", elemwise("right_shift"))
    __rrshift__ = _binary("rshift", ">>", elemwise("right_shift"), reflected=True)
    __lt__: _Method = _comparison("lt")
    __le__: _Method = _comparison("le")
    __gt__: _Method = _comparison("gt")
    __ge__: _Method = _comparison("ge")
    __neg__ = _unary("__neg__", "neg")
    __abs__ = _unary("__abs__", "abs_")
    __invert__ = _unary("__invert__", "invert")
    __ceil__ = _unary("__ceil__", "ceil")
    __floor__ = _unary("__floor__", "floor")
    __trunc__ = _unary("__trunc__", "trunc")

    # --- elementwise functions: numpy has them as methods too, np.exp(x) calls x.exp() ------------

    arccos = _unary("arccos")
    arccosh = _unary("arccosh")
    arcsin = _unary("arcsin")
    arcsinh = _unary("arcsinh")
    arctan = _unary("arctan")
    arctanh = _unary("arctanh")
    ceil = _unary("ceil")
    conj = _unary("conj")
    cos = _unary("cos")
    cosh = _unary("cosh")
    deg2rad = _unary("deg2rad")
    exp = _unary("exp")
    exp2 = _unary("exp2")
    expm1 = _unary("expm1")
    floor = _unary("floor")
    log = _unary("log")
    log10 = _unary("log10")
    log1p = _unary("log1p")
    log2 = _unary("log2")
    rad2deg = _unary("rad2deg")
    sin = _unary("sin")
    sinh = _unary("sinh")
    sqrt = _unary("sqrt")
    tan = _unary("tan")
    tanh = _unary("tanh")
    trunc = _unary("trunc")

    # --- Python's protocols ---------------------------------------------------------------------

    def __bool__(self) -> bool:
        if self._is_nonzero:
            return True
        raise TypeError(
            "Variables do not support boolean operations. This can happen if you do a logical "
            "operation such as `0 < x < 1` on a variable, or use it in an `if`: its value is only "
            "known when a function runs. Use T.and_, T.or_ or T.switch."
        )

    __nonzero__ = __bool__

    def _no_value(self, problem: str) -> TypeError:
        return TypeError(
            f"{problem}: {self} has no value before a function runs. Compute with it by functions "
            "of opwise.tensor (T.exp, T.cast, T.arange, ...), or get its value from a function or "
            "by its method eval."
        )

    def __float__(self) -> float:
        name = type(self).__name__
        raise self._no_value(f"float() argument must be a string or a number, not '{name}'")

    def __int__(self) -> int:
        name = type(self).__name__
        raise self._no_value(f"int() argument must be a string or a number, not '{name}'")

    def __index__(self) -> int:
        name = type(self).__name__
        raise self._no_value(f"'{name}' object cannot be interpreted as an integer")

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise self._no_value(f"the format {spec!r} is one of values")

    def __array_function__(
        self, function: Any, types: Iterable[Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Return what a function of numpy is for variables; see ``tensor/fromnumpy.py``."""
        known = (Variable, np.ndarray)
        if not all(issubclass(each, known) for each in types):
            return NotImplemented
        return fromnumpy.call(function, self, args, kwargs)

    def _apply_ufunc(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Return what a ufunc of numpy is for variables; see ``tensor/fromnumpy.py``."""
        for x in inputs:
            if not isinstance(x, Variable | np.ndarray) and hasattr(type(x), "__array_ufunc__"):
                if not isinstance(x, np.generic):
                    return NotImplemented
        return fromnumpy.call_ufunc(ufunc, method, self, inputs, kwargs)

    __array_ufunc__ = _OfTheType(_apply_ufunc)

    def __setitem__(self, args: Any, value: Any) -> NoReturn:
        raise TypeError(
            f"'{type(self).__name__}' object does not support item assignment: variables do not "
            f"change. Write T.set_subtensor({self}[...], value), which is a new variable; an "
            "update gives a shared variable a new value."
        )

    def __iter__(self) -> Iterator[Tensor]:
        """Iterate over a vector whose length is known beforehand, such as a shape."""
        if self.type.ndim != 1:
            raise TypeError(
                "TensorType does not support iteration. Maybe you are using builtin.sum instead of "
                "theano.tensor.sum? (Maybe .max?) The number of rows is known only when a function "
                "runs: theano.scan and theano.map loop over them."
            )
        return iter([self[i] for i in range(get_vector_length(self))])

    def __getitem__(self, args: Any) -> Tensor:
        return getitem(self, args)

    def __divmod__(self, other: TensorLike) -> tuple[Tensor, ...]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Tensor, ...]:
        return other // self, other % self

    def __dot__(left, right: Tensor) -> Tensor:
        return dot(left, right)

    def __rdot__(right, left: Tensor) -> Tensor:
        return dot(left, right)

    def __matmul__(self, other: TensorLike) -> Tensor:
        result: Tensor = _product(self, other)
        return result

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        result: Tensor = _product(other, self)
        return result

    # --- the type -------------------------------------------------------------------------------

    dtype = property(lambda self: self.type.dtype, doc="The name of the dtype.")
    ndim = property(lambda self: self.type.ndim, doc="The number of dimensions.")
    broadcastable = property(
        lambda self: self.type.broadcastable, doc="Which dimensions are always of length 1."
    )

    def astype(self, dtype: DTypeLike) -> Tensor:
        """Return the elements as ``dtype``."""
        return cast(self, dtype)

    def transfer(self, target: str) -> Var:
        """Return the variable on a device, ``target``."""
        return transfer(self, target)

    # --- shape ----------------------------------------------------------------------------------

    T = property(lambda self: shaping.transpose(self), doc="The transpose.")
    shape = property(lambda self: shaping.shape(self), doc="The shape, an int64 vector.")

    @property
    def size(self) -> Tensor:
        """The number of elements."""
        if self.type.ndim == 1:
            result: Tensor = self.shape[0]
            return result
        return reduce.prod(self.shape)

    def _with_broadcastable(self, broadcastable: tuple[bool, ...]) -> Tensor:
        """Return the variable with another broadcast pattern, for ``TensorType``."""
        return shaping.patternbroadcast(self, broadcastable)

    def dimshuffle(self, *pattern: Sequence[int | str] | int | str) -> Tensor:
        """Return the variable with its dimensions reordered; 'x' inserts one of length 1."""
        if len(pattern) == 1 and isinstance(pattern[0], list | tuple):
            pattern = tuple(pattern[0])
        return dimshuffle_op(self.type.broadcastable, tuple(pattern))(self)

    def transpose(self, *axes: Any) -> Tensor:
        """Return the variable with its dimensions in the order ``axes`` (default: reversed)."""
        if len(axes) == 1 and isinstance(axes[0], list | tuple):
            axes = tuple(axes[0])
        return shaping.transpose(self, axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return the variable with two dimensions exchanged."""
        return shaping.swapaxes(self, axis1, axis2)

    def reshape(self, shape: Any, ndim: int | None = None, *more: Any) -> Tensor:
        """Return the elements in another shape, ``ndim`` lengths."""
        if more:  # as of numpy's arrays
            lengths = ", ".join(map(str, (shape, ndim, *more)))
            raise TypeError(
                f"reshape takes the lengths as one tuple: {self}.reshape(({lengths})). A second "
                "argument is the number of dimensions."
            )
        return shaping.reshape(self, shape, ndim=ndim)

    def flatten(self, ndim: int = 1) -> Tensor:
        """Return the variable with all dimensions from ``ndim - 1`` on merged into one."""
        return shaping.flatten(self, ndim)

    def ravel(self) -> Tensor:
        """Return all elements as a vector."""
        return shaping.flatten(self)

    def squeeze(self) -> Tensor:
        """Return the variable without its broadcastable dimensions."""
        return shaping.squeeze(self)

    # --- reductions -----------------------------------------------------------------------------

    def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return whether any element along ``axis`` (default: all) is not 0, as bool."""
        return reduce.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return whether all elements along ``axis`` (default: all) are not 0, as bool."""
        return reduce.all(self, axis=axis, keepdims=keepdims)

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        acc_dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Return the sum along ``axis`` (default: all).

        dtype: of the result (default: int64 or uint64 for integers and bool, else that of the
        variable). acc_dtype: of the additions. keepdims: keep the axis, with length 1.
        """
        return reduce.sum(self, axis=axis, dtype=dtype, keepdims=keepdims, acc_dtype=acc_dtype)

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        acc_dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Return the product along ``axis`` (default: all); arguments as for ``sum``."""
        return reduce.prod(self, axis=axis, dtype=dtype, keepdims=keepdims, acc_dtype=acc_dtype)

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        acc_dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Return the mean along ``axis`` (default: all); float64 for integers.

        Arguments as for ``sum``.
        """
        return reduce.mean(self, axis=axis, dtype=dtype, keepdims=keepdims, acc_dtype=acc_dtype)

    def var(
        self, axis: Axis = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False
    ) -> Tensor:
        """Return the variance along ``axis`` (default: all); arguments as for ``T.var``."""
        return reduce.var(self, axis=axis, ddof=ddof, keepdims=keepdims, corrected=corrected)

    def std(
        self, axis: Axis = None, ddof: int = 0, keepdims: bool = False, corrected: bool = False
    ) -> Tensor:
        """Return the standard deviation along ``axis`` (default: all).

        Arguments as for ``T.var``.
        """
        return reduce.std(self, axis=axis, ddof=ddof, keepdims=keepdims, corrected=corrected)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the minimum along ``axis`` (default: all); NaN if an element is NaN."""
        return reduce.min(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the maximum along ``axis`` (default: all); NaN if an element is NaN."""
        return reduce.max(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the int64 position of the first minimum along ``axis``, as ``T.argmin``."""
        return reduce.argmin(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the int64 position of the first maximum along ``axis``, as ``T.argmax``."""
        return reduce.argmax(self, axis=axis, keepdims=keepdims)

    def ptp(self, axis: Axis = None) -> Tensor:
        """Return the largest minus the smallest element."""
        return reduce.ptp(self, axis=axis)

    def norm(self, L: float, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the L-norm: the sum of abs(x) ** L, to the power 1 / L.

        If the norm is 0 and L >= 1, its gradient is 0.
        """
        if L == 0 or L in (float("inf"), -float("inf")):
            raise NotImplementedError(
                f"norm({L}) is not implemented: use T.neq(x, 0).sum(), abs(x).max() or abs(x).min()"
            )
        if not isinstance(L, int | float):
            raise TypeError(f"norm takes a number, not {L!r}")
        # an even power of a real number needs no abs, which has no second derivative at 0
        is_even = L % 2 == 0 and self.type.dtype not in dtypes.COMPLEX
        powers = self**L if is_even else abs(self) ** L
        total = reduce.sum(powers, axis=axis, keepdims=keepdims)
        result: Tensor = reduce.RootOfSum(1.0 / L)(total ** (1.0 / L), total)
        return result

    def trace(self) -> Tensor:
        """Return the sum of the diagonal."""
        return diagonal(self).sum()

    def cumsum(self, axis: int | None = None) -> Tensor:
        """Return the cumulative sums along ``axis``, of the same shape; None flattens first."""
        return cumsum(self, axis)

    def cumprod(self, axis: int | None = None) -> Tensor:
        """Return the cumulative products along ``axis``, of the same shape; None flattens first."""
        return cumprod(self, axis)

    # --- elements -------------------------------------------------------------------------------

    real = property(lambda self: elemwise("real")(self), doc="The real part.")
    imag = property(lambda self: elemwise("imag")(self), doc="The imaginary part.")

    def conjugate(self) -> Tensor:
        """Return the complex conjugate; a real variable is its own."""
        return self.conj()

    def round(self, mode: str | None = None) -> Tensor:
        """Return the nearest whole numbers. mode: 'half_to_even' or 'half_away_from_zero'."""
        mode = mode or "half_to_even"
        if mode not in ("half_to_even", "half_away_from_zero"):
            raise Exception(
                f"round mode {mode} is not implemented."
            )  # the class that Theano raises
        return elemwise(f"round_{mode}")(self)

    def clip(self, a_min: TensorLike, a_max: TensorLike) -> Tensor:
        """Return the elements clipped to two bounds."""
        return elemwise("clip")(self, a_min, a_max)

    def copy(self, name: str | None = None) -> Tensor:
        """Return a copy, named ``name``."""
        copied = tensor_copy(self)
        copied.name = name
        return copied

    def fill(self, value: Any) -> Tensor:
        """Return a tensor of the shape of the variable, filled with ``value``."""
        return fill(self, value)

    def zeros_like(self, dtype: DTypeLike | None = None) -> Tensor:
        """Return zeros of the shape of the variable (default dtype: its own)."""
        return zeros_like(self, dtype=dtype)

    def ones_like(self, dtype: DTypeLike | None = None) -> Tensor:
        """Return ones of the shape of the variable (default dtype: its own)."""
        return ones_like(self, dtype=dtype)

    def get_scalar_constant_value(self) -> Any:
        """Return the number that all elements are known to be, or raise NotScalarConstantError."""
        return get_scalar_constant_value(self)

    def dot(self, right: TensorLike) -> Tensor:
        """Return the product with ``right``, summed over the last dimension."""
        return dot(self, right)

    def repeat(self, repeats: TensorLike, axis: int | None = None) -> Tensor:
        """Return each element repeated ``repeats`` times along ``axis``; None flattens first."""
        return repeat(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """Return the diagonals over two axes, along a last axis, as ``T.diagonal``."""
        return diagonal(self, offset, axis1, axis2)

    def sort(self, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
        """Return the elements sorted along ``axis``; None sorts the flattened array."""
        return sort(self, axis, kind, order)

    def argsort(self, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Tensor:
        """Return the int64 positions of the elements in sorted order, along ``axis``; stable."""
        return argsort(self, axis, kind, order)

    def take(self, indices: TensorLike, axis: int | None = None, mode: str = "raise") -> Tensor:
        """Return the elements at ``indices`` along ``axis``, as ``T.take``; None flattens first."""
        return take(self, indices, axis, mode)

    def nonzero(self, return_matrix: bool = False) -> Tensor | tuple[Tensor, ...]:
        """Return the positions of the elements that are not 0."""
        return nonzero(self, return_matrix=return_matrix)

    def nonzero_values(self) -> Tensor:
        """Return the elements that are not 0, as a vector."""
        return nonzero_values(self)

    def choose(self, choices: Any, mode: str = "raise") -> Tensor:
        """Return, for each element, the element of the choice of that number."""
        return choose(self, choices, mode=mode)

    def compress(self, a: TensorLike, axis: int | None = None) -> Tensor:
        """Return the slices of ``a`` for which the variable, a vector, is not 0."""
        return compress(self, a, axis=axis)

    def searchsorted(
        self, v: TensorLike, side: str = "left", sorter: TensorLike | None = None
    ) -> Tensor:
        """Return the positions at which ``v`` can be inserted into this sorted vector."""
        return searchsorted(self, v, side, sorter)


def _product(left: TensorLike, right: TensorLike) -> Any:
    try:
        return matmul(left, right)
    except AsTensorError:
        return NotImplemented


class TensorVariable(_tensor_py_operators, Variable):
    """A symbolic array."""

    type: TensorType

    def __repr__(self) -> str:
        return super().__repr__()


class TensorConstant(_tensor_py_operators, Constant):
    """A constant array; ``data`` holds it and must not be written to."""

    type: TensorType

    def signature(self) -> TensorConstantSignature:
        return TensorConstantSignature(self.type, self.data)

    def __str__(self) -> str:
        data = self.data
        if (data.ndim and data.size > 1 and _all_equal(data)) or (data.ndim and data.size == 1):
            body = f"{data.shape} of {_first(data)}"
        else:
            body = str(data)
            if len(body) > 20:
                body = f"{body[:10]}..{body[-10:]}".replace("\n", "")
        return f"TensorConstant{{{body}}}"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _first(data: Any) -> Any:
    return data.flat[0]


def _all_equal(data: Any) -> bool:
    first = data.flat[0]
    return bool((data == first).all())


class TensorConstantSignature:
    """Compares constants by type and bits, the cheapest comparison first; the hash is kept."""

    __slots__ = ("_hash", "data", "type")

    def __init__(self, type: TensorType, data: Any) -> None:
        self.type = type
        self.data = data
        self._hash: int | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorConstantSignature):
            return False
        a, b = self.data, other.data
        return (
            self.type == other.type
            and a.shape == b.shape
            and hash(self) == hash(other)
            and (a is b or a.tobytes() == b.tobytes())
        )

    def __hash__(self) -> int:
        if self._hash is None:
            data = self.data
            self._hash = hash(
                (self.type, data.shape, data.tobytes() if data.size <= 4096 else _fingerprint(data))
            )
        return self._hash


def _fingerprint(data: Any) -> tuple[Any, Any, Any]:
    last = data[tuple(-1 for _ in data.shape)]
    return (data.flat[:64].tobytes(), last.tobytes(), data.sum().item())


# a type is older than the class of its variables, whose methods make Ops, which know the type
TensorType.Variable = TensorVariable
TensorType.Constant = TensorConstant
