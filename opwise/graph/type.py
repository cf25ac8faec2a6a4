"""Types: what values a variable may hold, and how a value is checked and converted.

Nothing here knows of arrays; TensorType is in ``opwise.tensor.type``.
"""

from __future__ import annotations

from opwise.graph import provenance
from opwise.graph.variable import Constant, Variable


class Type:
    """Base class of all types. Subclasses define ``filter``, ``__eq__`` and ``__hash__``."""

    Variable = Variable
    Constant = Constant
    #: numpy type number where the linkers may hold values as raw memory, else None
    dtype: str | None

    def filter(self, data, strict=False, allow_downcast=None):
        """Return ``data`` as a value of this type, or raise TypeError or ValueError.

        strict: no conversion at all. allow_downcast: True permits a loss of precision, False
        forbids it, None forbids it except for Python floats where floatX is float32.
        """
        raise NotImplementedError(
            f"{type(self).__name__} defines no filter: define filter(self, data, strict=False, "
            "allow_downcast=None), which returns the value or raises TypeError"
        )

    def filter_variable(self, other, allow_convert=True):
        """Return ``other`` as a variable of exactly this type, or raise TypeError."""
        if not isinstance(other, Variable):
            other = self.Constant(type=self, data=self.filter(other))
        if other.type == self:
            return other
        if allow_convert:
            converted = self.convert_variable(other)
            if converted is not None:
                return converted
        raise TypeError(
            f"Cannot convert Type {other.type} (of Variable {other}) into Type {self}. "
            f"You can try to manually convert {other} into a {self}."
        )

    def convert_variable(self, var):
        """Return ``var`` as a variable of this type where that loses nothing, else None."""
        return var if var.type == self else None

    def is_valid_value(self, a):
        """Return whether ``a`` is a value of this type without conversion."""
        try:
            self.filter(a, strict=True)
            return True
        except (TypeError, ValueError):
            return False

    def value_validity_msg(self, a):
        """Return why ``a`` is not a value of this type."""
        try:
            self.filter(a, strict=True)
        except (TypeError, ValueError) as e:
            return str(e)
        return "value is valid"

    def make_variable(self, name=None):
        """Return a new variable of this type."""
        return self.Variable(self, name=name)

    def make_constant(self, value, name=None):
        """Return a constant of this type."""
        return self.Constant(type=self, data=value, name=name)

    def __call__(self, name=None):
        """Return a new variable that remembers the user's line."""
        var = self.make_variable(name)
        if provenance.recording():
            var._trace = provenance.capture()
        return var

    @classmethod
    def values_eq(cls, a, b):
        """Return whether two values are equal, bit for bit where that can be told."""
        return a == b

    @classmethod
    def values_eq_approx(cls, a, b):
        """Return whether two values are equal up to rounding."""
        return cls.values_eq(a, b)

    @staticmethod
    def may_share_memory(a, b):
        """Return whether writing to one value may change the other."""
        return False

    def get_shape_info(self, obj):
        """Return what a memory profile keeps of a value; None where sizes mean nothing."""
        return None

    def __ne__(self, other):
        return not self == other


PureType = Type


class SingletonType(Type):
    """A type of which there is one instance."""

    _instance = None

    def __new__(cls):
        if cls._instance is None or type(cls._instance) is not cls:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return hash(type(self).__qualname__)

    def __str__(self):
        return type(self).__name__

    def __reduce__(self):
        return type(self), ()


class Generic(SingletonType):
    """The type of any Python object; nothing is checked."""

    def filter(self, data, strict=False, allow_downcast=None):
        return data

    def is_valid_value(self, a):
        return True

    def __repr__(self):
        return "generic"


generic = Generic()
