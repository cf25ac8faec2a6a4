"""Shared variables: state that all functions share which compute with it or update it.

Which kind of value makes which kind of shared variable is a list of constructors, open to others.
"""

from __future__ import annotations

import copy

import numpy as np

from opwise.graph import provenance
from opwise.graph.type import generic
from opwise.graph.variable import Variable
from opwise.linkers.storage import Container
from opwise.scalar import dtypes
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import _tensor_py_operators


class SharedVariable(Variable):
    """A variable that has a value between calls; functions take it without being given it.

    value: kept as it is where it fits the type, not copied. container: an existing storage instead
    of value and strict. ``default_update`` may hold an expression that replaces the value after
    every call of a function that computes with this variable and has no update for it.
    """

    default_update = None

    def __init__(self, name, type, value, strict=False, allow_downcast=None, container=None):
        super().__init__(type=type, name=name)
        if provenance.recording():
            self._trace = provenance.capture()
        if container is None:
            value = type.filter(value, strict=bool(strict), allow_downcast=allow_downcast)
            container = Container(
                self, storage=[value], strict=bool(strict), allow_downcast=allow_downcast
            )
        elif value is not None or strict:
            raise TypeError("value and strict are ignored if you pass a container here")
        self.container = container

    def get_value(self, borrow=False, return_internal_type=False):
        """Return the value: a copy, or with borrow=True the object that functions work on.

        return_internal_type: a value that lies on a device is returned as an array of that; without
        it a copy on the host, borrowed or not.
        """
        with self.container.reading():
            internal = self.container.storage[0]
            value = internal if return_internal_type else self.container.data
            return value if borrow or value is not internal else copy.deepcopy(value)

    def set_value(self, new_value, borrow=False):
        """Replace the value, of any shape that the type allows.

        borrow: keep ``new_value`` itself where it fits the type, not a copy of it. Raises TypeError
        or ValueError where it cannot be converted to the type; the value is then unchanged.
        """
        self.container.data = new_value if borrow else copy.deepcopy(new_value)

    @property
    def value(self):
        """A copy of the value; what releases before 0.4 had for get_value and set_value."""
        return self.get_value()

    @value.setter
    def value(self, new_value):
        self.set_value(new_value)

    def zero(self, borrow=False):
        """Set every element to zero; borrow: by overwriting the value, not by replacing it."""
        with self.container.writing():
            if borrow:
                self.container.storage[0][...] = 0
            else:
                self.container.data = 0 * self.container.data

    def clone(self):
        """Return another variable with the same storage, without the default update."""
        new = super().clone()
        new.container = self.container
        return new

    def __getitem__(self, *args):
        raise self._refusal("is not subscriptable")

    def _refusal(self, what):
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


def _no_arithmetic(name):
    def method(self, other):
        raise self._refusal("is no operand")

    method.__name__ = name
    return method


# a list that was meant to be an array is found out when it is computed with; classes with operators
# of their own come before this one
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(SharedVariable, _method, _no_arithmetic(_method))


class TensorSharedVariable(_tensor_py_operators, SharedVariable):
    """A shared array."""


class ScalarSharedVariable(_tensor_py_operators, SharedVariable):
    """A shared array without dimensions, made of a number."""


def shared_constructor(ctor, remove=False):
    """Register a function ``(value, name, strict, allow_downcast, **kwargs) -> SharedVariable``.

    It is asked before those registered earlier, and raises TypeError for a value that is not its
    own. remove: take it off the list instead. Usable as a decorator.
    """
    if remove:
        shared.constructors.remove(ctor)
    else:
        shared.constructors.append(ctor)
    return ctor


def shared(value, name=None, strict=False, allow_downcast=None, **kwargs):
    """Return a shared variable that holds ``value``.

    Arrays and numbers keep their dtype (Python's int is int64, float float64, bool bool) and make
    tensors without broadcastable dimensions; anything else, lists too, an opaque object. strict:
    later values must be of the type already. allow_downcast: later values may lose precision.
    kwargs: ``borrow``, to keep the array itself and not a copy; ``broadcastable``, one boolean for
    each dimension; ``target``, 'cpu' or None. Raises TypeError for a symbolic value and for
    arguments that no kind of shared variable takes.
    """
    if isinstance(value, Variable):
        raise TypeError(
            "Shared variable constructor needs numeric values and not symbolic variables. Give it "
            f"the value that {value} is to start with, or compute that by {value}.eval()."
        )
    refusals = []
    for ctor in reversed(shared.constructors):
        try:
            return ctor(value, name=name, strict=strict, allow_downcast=allow_downcast, **kwargs)
        except TypeError as refusal:
            refusals.append(f"{ctor.__name__}: {refusal}")
    reasons = "".join(f"\n  {refusal}" for refusal in refusals)
    raise TypeError(
        f"No suitable SharedVariable constructor could be found for value={value!r}, "
        f"parameters={kwargs}. Give a number or an array, and of other arguments name, strict, "
        f"allow_downcast, borrow, broadcastable. What each constructor said:{reasons}"
    )


shared.constructors = []


@shared_constructor
def generic_constructor(value, name=None, strict=False, allow_downcast=None):
    """Return a shared variable that holds any object."""
    return SharedVariable(
        type=generic, value=value, name=name, strict=strict, allow_downcast=allow_downcast
    )


@shared_constructor
def tensor_constructor(
    value, name=None, strict=False, allow_downcast=None, borrow=False, broadcastable=None,
    target="cpu",
):  # fmt: skip
    """Return a shared variable that holds an array."""
    _refuse_target(target)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"not an array but {type(value)}")
    if broadcastable is None:
        # the next value may have another length along any dimension
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
    value, name=None, strict=False, allow_downcast=None, borrow=False, target="cpu"
):
    """Return a shared variable that holds a number."""
    _refuse_target(target)
    if not isinstance(value, np.number | np.bool_ | bool | int | float | complex):
        raise TypeError(f"not a number but {type(value)}")
    array = np.array(value)
    if array.dtype.name not in dtypes.ALL:
        raise TypeError(f"{value!r} fits no dtype of tensors")
    return ScalarSharedVariable(
        type=tensor_type(array.dtype.name, ()),
        value=array,
        name=name,
        strict=strict,
        allow_downcast=allow_downcast,
    )


def _refuse_target(target):
    if target not in ("cpu", None):
        raise TypeError(f"target={target!r}: shared variables are kept in the memory of the host")
