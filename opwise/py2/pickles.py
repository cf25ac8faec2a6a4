"""The module ``pickle`` for programs of Python 2: it reads what Python 2 and Theano wrote.

Text of Python 2 is read as Latin-1, which keeps the bytes of arrays. Shared variables, variables
and graphs of genuine Theano become those of opwise: a pickle names their classes, and a stand-in of
each class turns the state that follows into an object of opwise. Compiled functions cannot be read.
"""

from __future__ import annotations

import importlib
import inspect
import io
import pickle
from pickle import (  # noqa: F401  (programs use these names)
    HIGHEST_PROTOCOL,
    PickleError,
    PicklingError,
    UnpicklingError,
    dumps,
)
from typing import Any

import numpy as np

from opwise.compile.shared import ScalarSharedVariable, SharedVariable, TensorSharedVariable
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.variable import Constant, Scratchpad, Variable
from opwise.linkers.storage import Container
from opwise.scalar.op import Cast, ScalarOp
from opwise.scalar.types import get_scalar_type
from opwise.scalar.variable import ScalarConstant, ScalarVariable
from opwise.tensor.operators import TensorConstant, TensorVariable
from opwise.tensor.type import TensorType


class Unpickler(pickle.Unpickler):
    """Reads pickles of Python 2 and of genuine Theano."""

    def __init__(self, file: Any, *, encoding: str = "latin1", **options: Any):
        super().__init__(_binary(file), encoding=encoding, **options)

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("theano."):
            return _of_theano(module, name)
        if module.startswith("numpy.core"):
            module = module.replace("numpy.core", "numpy._core", 1)
        return super().find_class(module, name)


class Pickler(pickle.Pickler):
    """Writes pickles, also into files that were opened for text."""

    def __init__(self, file: Any, protocol: int | None = None, **options: Any):
        super().__init__(_binary(file), protocol, **options)


def load(file: Any, **options: Any) -> Any:
    """Read a pickle from a file, which may have been opened for text."""
    return Unpickler(file, **options).load()


def loads(data: Any, **options: Any) -> Any:
    """Read a pickle from bytes, or from text of the same codes."""
    return load(io.BytesIO(data.encode("latin-1") if isinstance(data, str) else data), **options)


def dump(obj: Any, file: Any, protocol: int | None = None, **options: Any) -> None:
    """Write a pickle into a file, which may have been opened for text."""
    Pickler(file, protocol, **options).dump(obj)


def __getattr__(name: str) -> Any:
    """Return what else ``pickle`` has: opcodes, ``PickleBuffer``, ``_Unpickler`` and the like."""
    try:
        return getattr(pickle, name)
    except AttributeError:
        raise AttributeError(f"module 'pickle' has no attribute {name!r}") from None


def _binary(file: Any) -> Any:
    """Return the binary file below a file of text."""
    return file.buffer if isinstance(file, io.TextIOWrapper) else file


# --- objects of genuine Theano --------------------------------------------------------------------


class _State:
    """An object of Theano that only serves to make others: it keeps its state."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


class _Container(_State):
    """The storage of a shared variable, which several of them may have in common."""

    made: Container | None = None

    def container(self) -> Container:
        if self.made is None:
            state = vars(self)
            self.made = Container(
                state["type"],
                state["storage"],
                strict=state["strict"],
                allow_downcast=state["allow_downcast"],
                name=state["name"],
            )
        return self.made


def _become(thing: Any, kind: type[Any]) -> None:
    """Make an object that pickle has made, and others of the pickle refer to, one of opwise."""
    thing.__class__ = kind


class _TensorType(TensorType):
    def __setstate__(self, state: dict[str, Any]) -> None:
        _become(self, TensorType)
        TensorType.__init__(
            self, state.get("dtype", "float32"), state["broadcastable"], state.get("name")
        )


class _ScalarType(_State):
    """The type of a number; there is one of each dtype."""


def _is_own(thing: Any, kind: type[Any], state: dict[str, Any]) -> bool:
    """Set the state of a variable that opwise pickled; return False if Theano did.

    The classes of both have the same names. Variables of Theano always have a ``tag``.
    """
    _become(thing, kind)
    if "tag" in state:
        return False
    vars(thing).update(state)
    return True


def _tag(variable: Variable, state: dict[str, Any]) -> None:
    tag = state.get("tag")
    if tag is not None:
        variable.tag = tag


def _shared(kind: type[SharedVariable]) -> type[SharedVariable]:
    """Return the stand-in of a class of shared variables."""

    def setstate(self: SharedVariable, state: dict[str, Any]) -> None:
        if _is_own(self, kind, state):
            return
        container = state["container"].container()
        SharedVariable.__init__(self, state.get("name"), container.type, None, container=container)
        _tag(self, state)
        if state.get("default_update") is not None:
            self.default_update = state["default_update"]

    return type("Shared", (kind,), {"__setstate__": setstate})


def _variable(kind: type[Variable]) -> type[Variable]:
    """Return the stand-in of a class of variables."""

    def setstate(self: Variable, state: dict[str, Any]) -> None:
        if _is_own(self, kind, state):
            return
        if "type" not in vars(self):  # otherwise ``_Apply`` has set what belongs to an output
            Variable.__init__(self, _real(state["type"]))
        self.name = state.get("name")
        _tag(self, state)

    return type("Variable", (kind,), {"__setstate__": setstate})


def _constant(kind: type[Constant]) -> type[Constant]:
    """Return the stand-in of a class of constants."""

    def setstate(self: Constant, state: dict[str, Any]) -> None:
        if _is_own(self, kind, state):
            return
        Constant.__init__(self, _real(state["type"]), state["data"], state.get("name"))
        _tag(self, state)

    return type("Constant", (kind,), {"__setstate__": setstate})


class _Op(_State):
    """An Op; ``kind`` is the class of opwise of the same name."""

    kind: type[Op]

    def op(self) -> Op:
        """Return the Op of opwise: what its constructor takes is in the state of Theano's Op."""
        kind, state = type(self).kind, vars(self)
        if issubclass(kind, Cast):
            return kind(_real(state["o_type"]))
        if issubclass(kind, ScalarOp):
            return kind(name=state.get("name"))
        known = set(inspect.signature(kind).parameters) - {"nfunc_spec", "openmp"}
        return kind(**{name: _real(value) for name, value in state.items() if name in known})


def _real(value: Any) -> Any:
    """Return the object of opwise for one of Theano, also within sequences and slices."""
    if isinstance(value, _Op):
        return value.op()
    if isinstance(value, _ScalarType):
        return get_scalar_type(vars(value)["dtype"])
    if isinstance(value, _FrozenDict):
        return vars(value)["_dict"]
    if isinstance(value, slice):
        return slice(_real(value.start), _real(value.stop), _real(value.step))
    if isinstance(value, list | tuple):
        return type(value)(map(_real, value))
    return value


class _Apply(Apply):
    def __setstate__(self, state: dict[str, Any]) -> None:
        made = _real(state["op"]).make_node(*state["inputs"])
        _become(self, Apply)
        vars(self).update(vars(made))
        self.outputs = state["outputs"]
        for variable, new in zip(self.outputs, made.outputs, strict=True):
            name = vars(variable).get("name")
            tag = vars(variable).get("_tag")
            vars(variable).update({**vars(new), "owner": self, "name": name, "_tag": tag})


class _FrozenDict(_State):
    """Theano's dict that does not change."""


def _array(value: Any, *context: Any) -> Any:
    return np.asarray(value)


_STAND_INS: dict[str, Any] = {
    "Container": _Container,
    "TensorType": _TensorType,
    "CudaNdarrayType": _TensorType,
    "GpuArrayType": _TensorType,
    "Scalar": _ScalarType,
    "TensorSharedVariable": _shared(TensorSharedVariable),
    "ScalarSharedVariable": _shared(ScalarSharedVariable),
    "SharedVariable": _shared(SharedVariable),
    "CudaNdarraySharedVariable": _shared(TensorSharedVariable),
    "GpuArraySharedVariable": _shared(TensorSharedVariable),
    "CudaNdarray_unpickler": _array,
    "GpuArray_unpickler": _array,
    "TensorVariable": _variable(TensorVariable),
    "TensorConstant": _constant(TensorConstant),
    "ScalarVariable": _variable(ScalarVariable),
    "ScalarConstant": _constant(ScalarConstant),
    "Apply": _Apply,
    "scratchpad": Scratchpad,
    "frozendict": _FrozenDict,
}


def _of_theano(module: str, name: str) -> Any:
    """Return what reads an object of a class of Theano, or calls a function of it.

    Raises UnpicklingError for compiled functions and for names that opwise lacks.
    """
    if name in _STAND_INS:
        return _STAND_INS[name]
    if name.startswith("_constructor_Function"):
        raise UnpicklingError(
            "the pickle holds a compiled function of Theano, which opwise cannot read: pickle the "
            "shared variables, or their values, and compile the function again"
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        if module.startswith("theano.scalar") and name.islower():
            return None  # a preference of dtypes, which an Op of opwise has itself
        raise UnpicklingError(f"the pickle holds a {module}.{name} of Theano: {error}") from None
    if isinstance(found, type) and issubclass(found, Op):
        return type(name, (_Op,), {"kind": found})
    return found
