"""Types: which values a variable may hold, and how a value is checked and converted.

Nothing here depends on arrays; TensorType is in ``opwise.tensor.type``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from opwise.graph import provenance, variable
from opwise.graph.clinker import CLinkerType

if TYPE_CHECKING:
    import numpy as np


class Type(CLinkerType):
    """Base class of all types. Subclasses define ``filter``, ``__eq__`` and ``__hash__``."""

    #: the classes of the variables and constants of this type
    Variable: ClassVar[type[variable.Variable]] = variable.Variable
    Constant: ClassVar[type[variable.Constant]] = variable.Constant

    # Declared here for type checkers only: array types define all four, scalar types the first two,
    # other types none.

    #: name of the numpy dtype, such as 'float32'
    dtype: str
    #: the numpy dtype itself
    numpy_dtype: np.dtype[Any]
    #: number of dimensions
    ndim: int
    #: of each dimension, whether its length is known to be 1
    broadcastable: tuple[bool, ...]

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        """Return ``data`` as a value of this type, or raise TypeError or ValueError.

        strict: accept only values of this type, without conversion. allow_downcast: True permits a
        loss of precision; False forbids it; None (the default) permits it only for Python floats if
        floatX is float32.
        """
        raise NotImplementedError(
            f"{type(self).__name__} defines no filter: define filter(self, data, strict=False, "
            "allow_downcast=None), which returns the value or raises TypeError"
        )

    def filter_variable(self, other: Any, allow_convert: bool = True) -> variable.Variable:
        """Return ``other`` as a variable of exactly this type, or raise TypeError."""
        var: variable.Variable
        if isinstance(other, variable.Variable):
            var = other
        else:
            var = self.Constant(type=self, data=self.filter(other))
        if var.type == self:
            return var
        if allow_convert:
            converted = self.convert_variable(var)
            if converted is not None:
                return converted
        raise TypeError(
            f"Cannot convert Type {var.type} (of Variable {var}) into Type {self}. "
            f"You can try to manually convert {var} into a {self}."
        )

    def convert_variable(self, var: variable.Variable) -> variable.Variable | None:
        """Return ``var`` as a variable of this type; None if the conversion could lose data."""
        return var if var.type == self else None

    def is_valid_value(self, a: Any) -> bool:
        """Return whether ``a`` is a value of this type without conversion."""
        try:
            self.filter(a, strict=True)
            return True
        except (TypeError, ValueError):
            return False

    def value_validity_msg(self, a: Any) -> str:
        """Return why ``a`` is not a value of this type."""
        try:
            self.filter(a, strict=True)
        except (TypeError, ValueError) as e:
            return str(e)
        return "value is valid"

    def make_variable(self, name: str | None = None) -> Any:
        """Return a new variable of this type, an instance of ``Variable``."""
        return self.Variable(self, name=name)

    def make_constant(self, value: Any, name: str | None = None) -> Any:
        """Return a constant of this type, an instance of ``Constant``."""
        return self.Constant(type=self, data=value, name=name)

    def __call__(self, name: str | None = None) -> Any:
        """Return a new variable that records the user's line."""
        var = self.make_variable(name)
        if provenance.recording():
            var._trace = provenance.capture()
        return var

    @classmethod
    def values_eq(cls, a: Any, b: Any) -> bool:
        """Return whether two values are equal, bit for bit if the type can compare bits."""
        equal: bool = a == b
        return equal

    @classmethod
    def values_eq_approx(cls, a: Any, b: Any) -> bool:
        """Return whether two values are equal up to rounding."""
        return cls.values_eq(a, b)

    @staticmethod
    def may_share_memory(a: Any, b: Any) -> bool:
        """Return whether writing to one value may change the other."""
        return False

    def get_shape_info(self, obj: Any) -> Any:
        """Return the shape of a value for a memory profile; None if its values have no size."""
        return None


PureType = Type


class SingletonType(Type):
    """A type with a single instance."""

    _instance: ClassVar[SingletonType | None] = None

    def __new__(cls) -> Self:
        if cls._instance is None or type(cls._instance) is not cls:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def __str__(self) -> str:
        return type(self).__name__

    def __reduce__(self) -> tuple[type[SingletonType], tuple[()]]:
        return type(self), ()


class Generic(SingletonType):
    """The type of any Python object; nothing is checked."""

    def filter(self, data: Any, strict: bool = False, allow_downcast: bool | None = None) -> Any:
        return data

    def is_valid_value(self, a: Any) -> bool:
        return True

    def __repr__(self) -> str:
        return "generic"

    # --- C++: values are PyObject *, or NULL for no value -----------------------------------------

    def c_declare(self, name: str, sub: Any, check_input: bool = True) -> str:
        return f"PyObject *{name};\n"

    def c_init(self, name: str, sub: Any) -> str:
        return f"{name} = NULL;\n"

    def c_extract(self, name: str, sub: Any, check_input: bool = True) -> str:
        return f"Py_INCREF(py_{name});\n{name} = py_{name};\n"

    def c_cleanup(self, name: str, sub: Any) -> str:
        return f"Py_XDECREF({name});\n"

    def c_sync(self, name: str, sub: Any) -> str:
        return (
            f"Py_DECREF(py_{name});\npy_{name} = {name} ? {name} : Py_None;\n"
            f"Py_INCREF(py_{name});\n"
        )

    def c_code_cache_version(self) -> tuple[Any, ...]:
        return (1,)


generic = Generic()
