"""Shared variables: state that functions compute with, update and share.

A list of constructors decides which value makes which kind of shared variable; users add to it.
"""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.type import Type, generic
from opwise.graph.variable import Variable
from opwise.linkers.storage import Container
from opwise.scalar import dtypes
from opwise.tensor.operators import _tensor_py_operators
from opwise.tensor.random.state import copied, random_state_type
from opwise.tensor.type import TensorType, tensor_type

#: a method of an operator that raises; that of a tensor, in its place, returns a variable
_Refusal = Callable[["SharedVariable", Any], Any]


class SharedContainer(Container):
    """The container of a shared variable; pickles leave out its value if a flag says so."""

    __slots__ = ()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        cls, state = super().__getstate__()
        if not config.pickle_shared_values:
            state["storage"] = [None]
        return cls, state

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedContainer:
        """Copy the value, whatever the flag says."""
        _, state = super().__getstate__()
        new = memo[id(self)] = SharedContainer.__new__(SharedContainer)
        for name, value in state.items():
            setattr(new, name, copy.deepcopy(value, memo))
        return new


def _no_arithmetic(name: str) -> tuple[_Refusal, _Refusal]:
    """Return the methods of an operator, and of it with the variable as right operand, which raise.

    They are for a list that was meant to be an array. Subclasses for tensors get their operators
    from a base class that comes before SharedVariable.
    """

    def method(self: SharedVariable, other: Any) -> NoReturn:
        raise self._refusal("does not support arithmetic")

    def reflected(self: SharedVariable, other: Any) -> NoReturn:
        raise self._refusal("does not support arithmetic")

    method.__name__, reflected.__name__ = f"__{name}__", f"__r{name}__"
    return method, reflected


class SharedVariable(Variable):
    """A variable that keeps a value between calls; functions read it without an argument.

    value: the first value, which is not copied if it fits the type. container: an existing storage;
    value must then be None and strict False.
    """

    #: an expression that replaces the value after every call of a function that computes with this
    #: variable and has no update of it
    default_update: Any = None

    def __init__(
        self,
        name: str | None,
        type: Type,
        value: Any,
        strict: bool = False,
        allow_downcast: bool | None = None,
        container: Container | None = None,
    ) -> None:
        super().__init__(type=type, name=name)
        if provenance.recording():
            self._trace = provenance.capture()
        if container is None:
            value = type.filter(value, strict=bool(strict), allow_downcast=allow_downcast)
            container = SharedContainer(
                self, storage=[value], strict=bool(strict), allow_downcast=allow_downcast
            )
        elif value is not None or strict:
            raise TypeError("value and strict are ignored if you pass a container here")
        self.container = container

    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any:
        """Return a copy of the value, or with borrow=True the object that functions work on.

        return_internal_type: return a value on a device as an array there. Otherwise it is copied
        to the host, borrowed or not.
        """
        with self.container.reading():
            internal = self.container.storage[0]
            value = internal if return_internal_type else self.container.data
            return value if borrow or value is not internal else copy.deepcopy(value)

    def set_value(self, new_value: Any, borrow: bool = False) -> None:
        """Replace the value; it may have any shape that the type allows.

        borrow: keep ``new_value`` itself if it fits the type, not a copy. Raises TypeError or
        ValueError if ``new_value`` cannot be converted to the type, and keeps the old value.
        """
        self.container.data = new_value if borrow else copy.deepcopy(new_value)

    @property
    def value(self) -> Any:
        """A copy of the value; Theano before 0.4 had this for get_value and set_value."""
        return self.get_value()

    @value.setter
    def value(self, new_value: Any) -> None:
        self.set_value(new_value)

    def zero(self, borrow: bool = False) -> None:
        """Set every element to zero; with borrow=True overwrite the value, do not replace it."""
        with self.container.writing():
            if borrow:
                self.container.storage[0][...] = 0
            else:
                self.container.data = 0 * self.container.data

    def clone(self) -> SharedVariable:
        """Return another variable with the same storage and no default update."""
        new = super().clone()
        new.container = self.container
        return new

    __add__, __radd__ = _no_arithmetic("add")
    __sub__, __rsub__ = _no_arithmetic("sub")
    __mul__, __rmul__ = _no_arithmetic("mul")
    __truediv__, __rtruediv__ = _no_arithmetic("truediv")
    __floordiv__, __rfloordiv__ = _no_arithmetic("floordiv")
    __mod__, __rmod__ = _no_arithmetic("mod")
    __pow__, __rpow__ = _no_arithmetic("pow")
    __matmul__, __rmatmul__ = _no_arithmetic("matmul")

    def __getitem__(self, *args: Any) -> Any:
        raise self._refusal("is not subscriptable")

    def _refusal(self, what: str) -> TypeError:
        value = self.container.data
        if isinstance(value, np.ndarray):
            why = (
                f"a numpy array of dtype {value.dtype}, which tensors do not support: cast it to a "
                "numeric dtype before calling theano.shared()"
            )
        else:
            why = (
                f"an object of type {type(value)}: did you forget to turn it into a numpy array "
                "before calling theano.shared()?"
            )
        return TypeError(f"The generic 'SharedVariable' object {what}. It holds {why}")


class TensorSharedVariable(_tensor_py_operators, SharedVariable):
    """A shared array."""

    type: TensorType


class ScalarSharedVariable(_tensor_py_operators, SharedVariable):
    """A shared array without dimensions, made from a number."""

    type: TensorType


#: called as (value, name, strict, allow_downcast, **kwargs); raises TypeError to refuse
Constructor = Callable[..., SharedVariable]


def _constructors() -> list[Constructor]:
    """Return the registered constructors, of which the last is tried first."""
    # Theano's name for the list, which programs may replace
    found: list[Constructor] = shared.constructors  # type: ignore[attr-defined]
    return found


def shared_constructor(ctor: Constructor, remove: bool = False) -> Constructor:
    """Register a function ``(value, name, strict, allow_downcast, **kwargs) -> SharedVariable``.

    ``shared`` tries it before those registered earlier; it must raise TypeError for a value of
    another kind. remove: remove it from the list instead. Usable as a decorator.
    """
    if remove:
        _constructors().remove(ctor)
    else:
        _constructors().append(ctor)
    return ctor


def shared(
    value: Any,
    name: str | None = None,
    strict: bool = False,
    allow_downcast: bool | None = None,
    **kwargs: Any,
) -> SharedVariable:
    """Return a shared variable that holds ``value``.

    An array or number makes a tensor of its dtype (int64, float64 and bool for Python's numbers)
    without broadcastable dimensions; any other object, a list too, is kept as an opaque object.
    strict: refuse later values that do not have the type already. allow_downcast: later values may
    lose precision. kwargs: ``borrow``, to keep the array itself and not a copy; ``broadcastable``,
    one boolean for each dimension; ``target``, 'cpu' or None. Raises TypeError for a symbolic value
    and for arguments that no constructor accepts.
    """
    if isinstance(value, Variable):
        raise TypeError(
            "Shared variable constructor needs numeric values and not symbolic variables. Pass "
            f"a value, for example {value}.eval()."
        )
    refusals = []
    for ctor in reversed(_constructors()):
        try:
            return ctor(value, name=name, strict=strict, allow_downcast=allow_downcast, **kwargs)
        except TypeError as refusal:
            refusals.append(f"{ctor.__name__}: {refusal}")
    reasons = "".join(f"\n  {refusal}" for refusal in refusals)
    raise TypeError(
        f"No suitable SharedVariable constructor could be found for value={value!r}, "
        f"parameters={kwargs}. Give a number or an array; further arguments are name, strict, "
        f"allow_downcast, borrow and broadcastable. Reasons of the constructors:{reasons}"
    )


shared.constructors = []  # type: ignore[attr-defined]


@shared_constructor
def generic_constructor(
    value: Any, name: str | None = None, strict: bool = False, allow_downcast: bool | None = None
) -> SharedVariable:
    """Return a shared variable that holds any object."""
    return SharedVariable(
        type=generic, value=value, name=name, strict=strict, allow_downcast=allow_downcast
    )


class RandomStateSharedVariable(SharedVariable):
    """A shared generator of random numbers."""


@shared_constructor
def randomstate_constructor(
    value: Any, name: str | None = None, strict: bool = False, allow_downcast: bool | None = None,
    borrow: bool = False,
) -> SharedVariable:  # fmt: skip
    """Return a shared variable that holds a ``numpy.random.RandomState``."""
    if not isinstance(value, np.random.RandomState):
        raise TypeError(f"not a generator but {type(value)}")
    return RandomStateSharedVariable(
        type=random_state_type,
        value=value if borrow else copied(value),
        name=name,
        strict=strict,
        allow_downcast=allow_downcast,
    )


@shared_constructor
def tensor_constructor(
    value: Any, name: str | None = None, strict: bool = False, allow_downcast: bool | None = None,
    borrow: bool = False, broadcastable: Sequence[bool] | None = None, target: str | None = "cpu",
) -> SharedVariable:  # fmt: skip
    """Return a shared variable that holds an array."""
    _refuse_target(target)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"not an array but {type(value)}")
    if broadcastable is None:
        # later values may have any length along each dimension
        broadcastable = (False,) * value.ndim
    return TensorSharedVariable(
        type=tensor_type(value.dtype.name, tuple(map(bool, broadcastable))),
        value=np.asarray(value) if borrow else np.array(value),
        name=name,
        strict=strict,
        allow_downcast=allow_downcast,
    )


@shared_constructor
def scalar_constructor(
    value: Any, name: str | None = None, strict: bool = False, allow_downcast: bool | None = None,
    borrow: bool = False, target: str | None = "cpu",
) -> SharedVariable:  # fmt: skip
    """Return a shared variable that holds a number."""
    _refuse_target(target)
    if not isinstance(value, np.number | np.bool_ | bool | int | float | complex):
        raise TypeError(f"not a number but {type(value)}")
    array = np.array(value)
    if array.dtype.name not in dtypes.ALL:
        raise TypeError(f"{value!r} does not fit any dtype of tensors")
    return ScalarSharedVariable(
        type=tensor_type(array.dtype.name, ()),
        value=array,
        name=name,
        strict=strict,
        allow_downcast=allow_downcast,
    )


@shared_constructor
def sparse_constructor(value: Any, **kwargs: Any) -> SharedVariable:
    """Return a shared variable that holds a sparse matrix of scipy."""
    module = sys.modules.get("scipy.sparse")  # without it there are no such values
    if module is None or not module.issparse(value):
        raise TypeError(f"not a sparse matrix but {type(value)}")
    # most programs have no sparse matrices
    make = importlib.import_module("opwise.compile.sparseshared").sparse_constructor
    made: SharedVariable = make(value, **kwargs)
    return made


def _refuse_target(target: str | None) -> None:
    if target not in ("cpu", None):
        raise TypeError(f"target={target!r}: shared variables are kept in host memory")
