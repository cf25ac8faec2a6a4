"""Variables and constants: the edges of a graph. Subclasses define the operators of each type."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, TypeAlias

from opwise.config import config
from opwise.errors import with_message
from opwise.graph import flat, provenance, upcalls
from opwise.graph.legacystate import legacy

if TYPE_CHECKING:
    from opwise.graph.apply import Apply
    from opwise.graph.fgraph import FunctionGraph
    from opwise.graph.type import Type

#: a reader of a variable: (Apply, index of its input) or ('output', index of the graph's output)
Client = tuple["Apply | Literal['output']", int]
#: a variable of any Type; checkers of types do not know the operators of each
Var: TypeAlias = Any


class Scratchpad:
    """Attributes that users and Ops attach to a variable or an Apply."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __repr__(self) -> str:
        return f"scratchpad{self.__dict__}"

    def __update__(self, other: Scratchpad) -> None:
        self.__dict__.update(other.__dict__)

    def clear(self) -> None:
        """Remove every attribute."""
        self.__dict__.clear()

    def info(self) -> None:
        """Print every attribute on a line of its own."""
        print(f"<scratchpad instance at {id(self)}>")
        for key, value in self.__dict__.items():
            print(f"  {key}: {value}")


class Tagged:
    """Base of objects with a ``tag``, which is made on first use: most objects never need one."""

    _tag: Scratchpad | None = None

    @property
    def auto_name(self) -> str:
        """A name that no other variable has, ``auto_`` and a number; made when first read."""
        name = self.__dict__.get("_auto_name")
        if name is None:
            name = self._auto_name = f"auto_{next(_auto_numbers)}"
        return name

    @property
    def made_at(self) -> provenance.Trace | None:
        """The frames of the user's program that made this object."""
        raise NotImplementedError

    @property
    def tag(self) -> Any:
        """The Scratchpad of this object."""
        tag = self._tag
        if tag is None:
            tag = self._tag = Scratchpad()
            trace = self.made_at
            if trace:
                tag.trace = [provenance.resolve(trace)]
        return tag

    @tag.setter
    def tag(self, value: Any) -> None:
        self._tag = value

    def _repr_html_(self) -> str:
        """Return what Jupyter shows: the graph that computes the object."""
        return upcalls.html(self)


_auto_numbers = itertools.count()


class Variable(Tagged):
    """A symbolic value of a type: an input of a graph, or an output of the Apply ``owner``."""

    type: Type
    #: the Apply that computes it; None for an input or a constant
    owner: Apply | None
    #: its position among the outputs of ``owner``; None without an owner
    index: int | Any
    name: str | None
    #: the FunctionGraph that it belongs to, if any
    fgraph: FunctionGraph | None = None
    #: its readers in that graph, in the order in which they were added; None outside a graph
    _clients: dict[Client, None] | Any = None
    #: the frames that made a variable without an owner
    _trace: provenance.Trace | None = None
    #: the variable that ``Rop`` differentiated to make this one, if any
    rop_of: Variable | None = None

    def __init_subclass__(cls, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.name_home()

    @classmethod
    def name_home(cls) -> None:
        """Let the class say that it is from the module that ``legacy.homes`` has for it."""
        cls.__module__ = legacy.homes.get(f"{cls.__module__}.{cls.__qualname__}", cls.__module__)

    def __init__(
        self,
        type: Type,
        owner: Apply | None = None,
        index: int | None = None,
        name: str | None = None,
    ):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"The name of a variable must be a string, got {name!r}.")
        # Set all attributes here: objects that gain some later no longer share the table of
        # attribute names of their class, and take twice the memory.
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self.fgraph = self._clients = self._trace = self._tag = None

    @property
    def made_at(self) -> provenance.Trace | None:
        """The frames of the user's program that made this variable.

        An Apply has them as ``trace``; a method ``trace`` of tensors is the sum of a diagonal.
        """
        return self.owner.trace if self.owner is not None else self._trace

    @property
    def clients(self) -> list[Client]:
        """The readers of this variable in its FunctionGraph; empty outside one."""
        return list(self._clients) if self._clients is not None else []

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        if self.owner is not None:
            op = self.owner.op
            if self.index == getattr(op, "default_output", None):
                return f"{op}.out"
            return f"{op}.{self.index}"
        return f"<{self.type}>"

    def __repr__(self) -> str:
        if config.print_test_value:
            with suppress(AttributeError):  # it has no test value
                return f"{self}\n{get_test_value(self)!r}"
        return str(self)

    def clone(self) -> Self:
        """Return a new variable of this type and name, without an owner."""
        # without the constructor, whose arguments differ in subclasses
        new = object.__new__(type(self))
        Variable.__init__(new, self.type, name=self.name)
        new._trace = self.made_at
        if self._tag is not None:
            new._tag = copy(self._tag)
        return new

    def get_parents(self) -> list[Apply]:
        return [self.owner] if self.owner is not None else []

    def eval(self, inputs_to_values: Mapping[Any, Any] | None = None) -> Any:
        """Return the value of this variable; compiles a function once for each set of inputs.

        inputs_to_values: dict from variables to their values; shared variables need none.
        """
        return upcalls.evaluate(self, {} if inputs_to_values is None else inputs_to_values)

    def __lt__(self, other: object) -> Any:
        raise NotImplementedError(f"Variables of type {self.type} have no order.")

    __le__ = __gt__ = __ge__ = __lt__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return flat.copied(self, self.owner, memo)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.owner is None:
            return super().__reduce_ex__(protocol)
        return flat.reduced(self, self.owner)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for key in ("_clients", "fgraph", "_eval_cache", "rop_of"):
            state.pop(key, None)
        if state.get("_trace"):
            state["_trace"] = provenance.resolve(state["_trace"])
        tag = state.get("_tag")
        if tag is not None and not config.pickle_test_value and hasattr(tag, "test_value"):
            tag = copy(tag)
            del tag.test_value
            state["_tag"] = tag
        return state


class AtomicVariable(Variable):
    """A variable that never has an owner; ``signature`` tells which of them are equal."""

    def __init__(self, type: Type, name: str | None = None, **kwargs: Any):
        super().__init__(type=type, owner=None, index=None, name=name, **kwargs)

    def signature(self) -> Any:
        """Return a hashable value that is equal for variables with the same value."""
        raise NotImplementedError("signature")

    def merge_signature(self) -> Any:
        """Return the signature by which equal variables are merged."""
        return self.signature()

    def equals(self, other: object) -> bool:
        """Return whether both have the same value in every call."""
        return isinstance(other, AtomicVariable) and self.signature() == other.signature()


class Constant(AtomicVariable):
    """A variable whose value is fixed: ``data``, which must not be changed in place."""

    #: the value, of type ``type``
    data: Any
    #: values computed from ``data`` on first use
    _signature: Any
    _unique_value: Any

    def __init__(self, type: Type, data: Any, name: str | None = None):
        Variable.__init__(self, type, name=name)
        self.data = type.filter(data)
        self._signature = self._unique_value = None

    def signature(self) -> Any:
        return (self.type, self.data)

    def cached_signature(self) -> Any:
        """Return ``signature()``, computed once."""
        signature = self._signature
        if signature is None:
            signature = self._signature = self.signature()
        return signature

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        text = str(self.data)
        if len(text) > 20:
            text = text[:10] + "..." + text[-10:]
        return f"Constant{{{text}}}"

    def clone(self) -> Self:
        """Return a constant of the same data."""
        new = object.__new__(type(self))
        Variable.__init__(new, self.type, name=self.name)
        new.data = self.data
        new._signature, new._unique_value = self._signature, self._unique_value
        if self._tag is not None:
            new._tag = copy(self._tag)
        return new

    def __getstate__(self) -> dict[str, Any]:
        # computed again where it is loaded
        return {**super().__getstate__(), "_signature": None, "_unique_value": None}

    @property
    def value(self) -> Any:
        """The name of ``data`` in Theano before 0.4; read-only."""
        return self.data


def get_test_value(var: Any) -> Any:
    """Return the test value of a variable: a constant's data, a shared value, or the tag's.

    Of a number, a list or an array, it is the value as an array. Raises AttributeError if there is
    none, and the type's exception if it does not fit the type.
    """
    if not isinstance(var, Variable):
        var = upcalls.as_variable(var)
    if isinstance(var, Constant):
        return var.data
    if hasattr(var, "get_value"):
        return var.get_value(borrow=True, return_internal_type=True)
    if not hasattr(var.tag, "test_value"):
        raise AttributeError(f"{var} has no test value")
    try:
        return var.type.filter(var.tag.test_value)
    except Exception as error:  # a type may raise any exception; its class is kept
        text = (
            "For compute_test_value, one input test value does not have the requested type.\n"
            f"{provenance.created_at(var.made_at)}\nThe error when converting the test value of "
            f"{var} to that variable type:\n{error}\nSet {var}.tag.test_value to a value of "
            f"{var.type}."
        )
        raise with_message(error, text, text) from None
