"""Variables and constants: the edges of a graph. Operators live with the types that have them."""

from __future__ import annotations

from contextlib import suppress
from copy import copy

from opwise.config import config
from opwise.graph import flat, hooks, provenance


class Scratchpad:
    """A free-form bag of attributes that users and Ops may hang on a variable or an Apply."""

    def __repr__(self):
        return f"scratchpad{self.__dict__}"

    def __update__(self, other):
        self.__dict__.update(other.__dict__)

    def info(self):
        """Print every attribute on a line of its own."""
        print(f"<scratchpad instance at {id(self)}>")
        for key, value in self.__dict__.items():
            print(f"  {key}: {value}")


class Tagged:
    """Gives an object its ``tag``, made when it is first asked for; most objects never need one."""

    _tag = None

    @property
    def tag(self):
        tag = self._tag
        if tag is None:
            tag = self._tag = Scratchpad()
            trace = self.made_at
            if trace:
                tag.trace = [provenance.resolve(trace)]
        return tag

    @tag.setter
    def tag(self, value):
        self._tag = value


class Variable(Tagged):
    """A symbolic value of a type: an input of a graph, or output ``index`` of the Apply ``owner``.

    ``clients`` lists the (Apply, input index) pairs that read it inside a FunctionGraph; a function
    output reads as ``('output', index)``.
    """

    #: what a FunctionGraph keeps here: its own reference and the clients, in insertion order
    fgraph = None
    _clients = None
    _trace = None

    def __init__(self, type, owner=None, index=None, name=None):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"The name of a variable must be a string, got {name!r}.")
        # all attributes from the start: objects to which some are added later share no table of
        # names with others of their class, and take twice the memory
        self.type = type
        self.owner = owner
        self.index = index
        self.name = name
        self.fgraph = self._clients = self._trace = self._tag = None

    @property
    def made_at(self):
        """The frames of the user's program that made this variable; ``x.trace()`` is a sum."""
        return self.owner.trace if self.owner is not None else self._trace

    @property
    def clients(self):
        return list(self._clients) if self._clients is not None else []

    def __str__(self):
        if self.name is not None:
            return self.name
        if self.owner is not None:
            op = self.owner.op
            if self.index == getattr(op, "default_output", None):
                return f"{op}.out"
            return f"{op}.{self.index}"
        return f"<{self.type}>"

    def __repr__(self):
        if config.print_test_value:
            from opwise.graph.testvalue import get_test_value  # which knows variables

            with suppress(AttributeError):  # it has none
                return f"{self}\n{get_test_value(self)!r}"
        return str(self)

    def clone(self):
        """Return a new variable of this type and name, without an owner."""
        # not by the constructor, which subclasses give other arguments
        new = object.__new__(type(self))
        Variable.__init__(new, self.type, name=self.name)
        new._trace = self.made_at
        if self._tag is not None:
            new._tag = copy(self._tag)
        return new

    def get_parents(self):
        return [self.owner] if self.owner is not None else []

    def eval(self, inputs_to_values=None):
        """Compile what computes this variable, once for a set of inputs, and run it.

        inputs_to_values: dict from variables to their values; shared variables need none.
        """
        return hooks.evaluate(self, inputs_to_values or {})

    def __lt__(self, other):
        raise NotImplementedError(f"Variables of type {self.type} have no order.")

    __le__ = __gt__ = __ge__ = __lt__

    def __deepcopy__(self, memo):
        return flat.copied(self, self.owner, memo)

    def __reduce_ex__(self, protocol):
        if self.owner is None:
            return super().__reduce_ex__(protocol)
        return flat.reduced(self, self.owner)

    def __getstate__(self):
        state = self.__dict__.copy()
        for key in ("_clients", "fgraph", "_eval_cache"):
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
    """A variable that never has an owner; equality of such variables is by ``signature``."""

    def __init__(self, type, name=None, **kwargs):
        super().__init__(type=type, owner=None, index=None, name=name, **kwargs)

    def signature(self):
        raise NotImplementedError("signature")

    def merge_signature(self):
        return self.signature()

    def equals(self, other):
        """Return whether the two stand for the same value in every call."""
        return isinstance(other, AtomicVariable) and self.signature() == other.signature()


class Constant(AtomicVariable):
    """A variable whose value is fixed: ``data``, which must not be changed in place."""

    def __init__(self, type, data, name=None):
        Variable.__init__(self, type, name=name)
        self.data = type.filter(data)
        #: what was worked out of the data when first asked for: it does not change
        self._signature = self._unique_value = None

    def signature(self):
        return (self.type, self.data)

    def cached_signature(self):
        """Return ``signature()``, computed once."""
        signature = self._signature
        if signature is None:
            signature = self._signature = self.signature()
        return signature

    def __str__(self):
        if self.name is not None:
            return self.name
        text = str(self.data)
        if len(text) > 20:
            text = text[:10] + "..." + text[-10:]
        return f"Constant{{{text}}}"

    def clone(self):
        """Return a constant of the same data."""
        new = object.__new__(type(self))
        Variable.__init__(new, self.type, name=self.name)
        new.data = self.data
        new._signature, new._unique_value = self._signature, self._unique_value
        if self._tag is not None:
            new._tag = copy(self._tag)
        return new

    @property
    def value(self):
        """The data, read-only; the name that releases before 0.4 used."""
        return self.data
