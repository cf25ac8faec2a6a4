"""The conversion of Python values to tensor variables, and the constructors of these.

Their classes are in ``opwise.tensor.operators``, above the Ops that their operators make.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from opwise.config import config
from opwise.errors import AsTensorError
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.scalar.dtypes import DTypeLike
from opwise.scalar.types import Scalar, autocast, autocast_floats
from opwise.tensor.type import TensorType, dtype_name, tensor_type

if TYPE_CHECKING:
    from opwise.tensor.operators import TensorConstant, _tensor_py_operators

#: a variable whose type is a TensorType: a TensorVariable, a constant, a shared variable
Tensor: TypeAlias = "_tensor_py_operators"
#: what ``as_tensor_variable`` takes: a variable, an Apply of one output, an array, a number, a list
#: of these, or any object with a method ``_as_TensorVariable``
TensorLike: TypeAlias = (
    "Variable | Apply | np.ndarray | np.generic | complex | Sequence[Any] | _AsTensor"
)

if TYPE_CHECKING:

    class _AsTensor(Protocol):
        def _as_TensorVariable(self) -> Variable: ...

    class TensorOp(Op):
        """For checkers of types: an Op whose only output is a tensor."""

        def __call__(self, *inputs: TensorLike, **kwargs: Any) -> Tensor: ...

else:
    TensorOp = Op


class Conversions:
    """The functions by which ``as_tensor_variable`` builds graphs.

    The modules that define the Ops of these graphs import this one, and register them here.
    """

    #: (scalar variable) -> 0-d tensor variable; registered by ``opwise.tensor.convert``
    from_scalar: Callable[[Variable], Tensor]
    #: (list or tuple that holds variables, number of dimensions or None) -> tensor variable;
    #: registered by ``opwise.tensor.join``
    from_sequence: Callable[[Sequence[Any], int | None], Tensor]


conversions = Conversions()


def constant(
    x: Any, name: str | None = None, ndim: int | None = None, dtype: Any = None
) -> TensorConstant:
    """Return ``x`` as a constant tensor, with the shape that numpy gives it.

    dtype: (default: of Python numbers the smallest integer dtype, float32 if that is exact, else
    floatX, see ``scalar.types.autocast``; of arrays and lists that of numpy, floatX for an empty
    list). Dimensions of length 1 become broadcastable. ndim: add dimensions on the left up to this
    number.

    Raises TypeError if x has no dtype of a tensor, ValueError if it has more than ndim dimensions.
    """
    if dtype is not None:
        data = np.asarray(x).astype(dtype) if not isinstance(x, float) else np.asarray(x, dtype)
        data = np.asarray(x, dtype=dtype) if data.shape == () else data
    elif isinstance(x, numbers.Number) and not isinstance(x, np.generic):
        data = np.asarray(autocast(x))
    else:
        data = _constant_array(x)
    if data.dtype.name not in dtypes.ALL:
        raise TypeError(f"Could not convert {x!r} to TensorType: its dtype is {data.dtype}")
    if ndim is not None and data.ndim < ndim:
        data = data.reshape((1,) * (ndim - data.ndim) + data.shape)
    elif ndim is not None and data.ndim > ndim:
        raise ValueError(f"ndarray could not be cast to constant with {ndim} dimensions: {x!r}")
    type_ = tensor_type(data.dtype.name, tuple(n == 1 for n in data.shape))
    return cast("TensorConstant", type_.Constant(type_, data, name=name))


def _constant_array(x: Any) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return np.array(x, order="K") if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    data = np.asarray(x)
    # an empty list has no dtype of its own
    return data if data.size or hasattr(x, "dtype") else data.astype(config.floatX)


_small: dict[Any, TensorConstant] = {}


def _cached_number(x: float) -> Tensor:
    """Return the constant of a Python number; the same object for equal numbers."""
    # rewrites share others: which objects a program's graphs share may not depend on whether an
    # earlier graph was rewritten or is from the cache
    recording, floats = provenance.recording(), autocast_floats.get()
    key = (type(x), x, config.floatX, config.cast_policy, floats, recording)
    found = _small.get(key)
    # a rewrite may have put it into a graph, and no other graph can own it then
    if found is None or found.fgraph is not None:
        found = constant(x)
        if len(_small) < 1000:
            _small[key] = found
    return found


def as_tensor_variable(x: TensorLike, name: str | None = None, ndim: int | None = None) -> Tensor:
    """Return ``x`` as a tensor variable, of the shape and dtype of x.

    x: a tensor variable, an Apply with one output, an array, a number, or a list of these; for
    arrays and numbers it is a ``constant``, for a list with variables a ``stack``. name: of a
    constant. ndim: the number of dimensions of the result: broadcastable ones are added, or
    dropped, on the left.

    Raises TypeError, most often its subclass AsTensorError, if x cannot become a tensor, ValueError
    if a dimension cannot be dropped or an Apply has several outputs.
    """
    # of variables, their class says it: what they lack themselves is looked up slowly, for advice
    if hasattr(type(x) if isinstance(x, Variable) else x, "_as_TensorVariable"):
        other: Any = x
        x = other._as_TensorVariable()
    if isinstance(x, Apply):
        if x.op.default_output is None and len(x.outputs) != 1:
            raise ValueError(
                f"It is ambiguous which output of a multi-output Op has to be fetched. {x}"
            )
        x = x.default_output()
    if isinstance(x, Variable):
        return _from_variable(x, ndim)
    if isinstance(x, bool):
        raise AsTensorError(
            "Cannot cast True or False as a tensor variable. Please use np.array(True) or "
            "np.array(False) if you need these constants. This error might be caused by using the "
            "== operator on Variables. v == w does not do what you think it does, use "
            "theano.tensor.eq(v, w) instead."
        )
    if isinstance(x, list | tuple) and _holds_variables(x):
        return conversions.from_sequence(x, ndim)
    if name is None and ndim is None and (type(x) is int or type(x) is float):
        if x == x and x:
            return _cached_number(x)
        return constant(x)
    try:
        return constant(x, name=name, ndim=ndim)
    except (TypeError, ValueError) as e:
        text = str(x)
        raise AsTensorError(
            f"Cannot convert {text[:200]} to TensorType: {type(x)} ({e}). Give a variable, a "
            "number, or a value that numpy can convert to an array of numbers."
        ) from None


as_tensor = as_tensor_variable


def _holds_variables(sequence: Sequence[TensorLike]) -> bool:
    return any(
        isinstance(item, Variable) or (isinstance(item, list | tuple) and _holds_variables(item))
        for item in sequence
    )


def _from_variable(x: Var, ndim: int | None) -> Tensor:
    """Return a variable of tensor or scalar type as a tensor of ``ndim`` dimensions (None: its)."""
    if isinstance(x.type, Scalar):
        x = conversions.from_scalar(x)
    if not isinstance(x.type, TensorType):
        raise AsTensorError(
            f"Variable type field must be a TensorType. {x} {x.type} Tensor functions need "
            "tensors: make the variable with T.vector, T.matrix, ... or shared(array)."
        )
    found: Tensor = x
    return found if ndim is None or x.type.ndim == ndim else _with_ndim(found, ndim)


def _with_ndim(x: Tensor, ndim: int) -> Tensor:
    if x.type.ndim < ndim:
        return x.dimshuffle(["x"] * (ndim - x.type.ndim) + list(range(x.type.ndim)))
    surplus = x.type.ndim - ndim
    if not all(x.type.broadcastable[:surplus]):
        raise ValueError(
            f"TensorType could not be cast to have {ndim} dimensions: {x} has {x.type}"
        )
    return x.dimshuffle(*range(surplus, x.type.ndim))


def _constructor(pattern: tuple[bool, ...], name: str) -> Callable[..., Tensor]:
    def make(name: str | None = None, dtype: DTypeLike | None = None) -> Tensor:
        dtype = config.floatX if dtype is None or dtype == "floatX" else dtype_name(dtype)
        var: Tensor = tensor_type(dtype, pattern)(name)
        return var

    make.__name__ = make.__qualname__ = name
    ones = [i for i, one in enumerate(pattern) if one]
    broadcasts = f", of which dimension {ones[0]} always has length 1" if ones else ""
    make.__doc__ = (
        f"Return a symbolic {name} of ``dtype`` (default: floatX).\n\n"
        f"    It has {len(pattern)} dimensions{broadcasts}. name: a text, or None.\n"
        "    Raises TypeError if no tensor has the dtype, or for another name.\n    "
    )
    return make


PATTERNS = {
    "scalar": (),
    "vector": (False,),
    "matrix": (False, False),
    "row": (True, False),
    "col": (False, True),
    "tensor3": (False,) * 3,
    "tensor4": (False,) * 4,
    "tensor5": (False,) * 5,
    "tensor6": (False,) * 6,
    "tensor7": (False,) * 7,
}
_PREFIXES = {
    "b": "int8", "w": "int16", "i": "int32", "l": "int64", "f": "float32", "d": "float64",
    "c": "complex64", "z": "complex128",
}  # fmt: skip


class Several:
    """A constructor of several variables at once: ``matrices(2)``, ``matrices('x', 'y')``.

    A single text has one letter for each name, ``matrices('xy')``; a single name makes one
    variable, not a list.
    """

    def __init__(self, one: Callable[..., Any]) -> None:
        self.one = one

    def __call__(self, *names: str | int, dtype: DTypeLike | None = None) -> Any:
        make = self.one if dtype is None else partial(self.one, dtype=dtype)
        given: Any = names[0] if len(names) == 1 else names
        made = [make() for _ in range(given)] if isinstance(given, int) else [*map(make, given)]
        return made[0] if len(made) == 1 else made


_PLURALS = {
    "scalar": "scalars", "vector": "vectors", "matrix": "matrices", "row": "rows", "col": "cols",
    "tensor3": "tensor3s", "tensor4": "tensor4s", "tensor5": "tensor5s",
    "tensor6": "tensor6s", "tensor7": "tensor7s",
}  # fmt: skip


def _constructors() -> dict[str, Callable[..., Any]]:
    """Return {name: function or type} of scalar, dmatrix, fmatrices, ..."""
    names: dict[str, Callable[..., Any]] = {}
    for shape, pattern in PATTERNS.items():
        names[shape] = _constructor(pattern, shape)
        names[_PLURALS[shape]] = Several(names[shape])
        for letter, dtype in _PREFIXES.items():
            type_ = tensor_type(dtype, pattern)
            names[letter + shape] = type_
            names[letter + _PLURALS[shape]] = Several(type_)
    return names


CONSTRUCTORS = _constructors()
globals().update(CONSTRUCTORS)


def tensor(*args: Any, **kwargs: Any) -> Tensor:
    """Return a variable of ``TensorType(dtype, broadcastable)``; keyword ``name`` names it.

    The pattern has a bool for each dimension: whether its length is always 1. Raises TypeError for
    an unknown dtype and unless both are given.
    """
    name = kwargs.pop("name", None)
    var: Tensor = TensorType(*args, **kwargs)(name)
    return var
