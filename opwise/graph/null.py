"""Types of gradients that are not values: undefined ones, and those of disconnected variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from opwise.graph.type import Type
from opwise.graph.variable import Variable


class _TypeOfGradients(Type):
    """Base of the types without values; those of one class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return type(self).__name__


class NullType(_TypeOfGradients):
    """The type of a gradient that is undefined or not implemented; ``why_null`` gives the reason.

    ``where`` is the text of the Apply with this gradient, once it is known.
    """

    where: str = ""

    def __init__(self, why_null: str = "(no explanation given)"):
        self.why_null = why_null

    def filter(
        self, data: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> NoReturn:
        raise ValueError("NullType has no values to filter")

    def filter_variable(self, other: Any, allow_convert: bool = True) -> NoReturn:
        raise ValueError("NullType has no values to filter")


class DisconnectedType(_TypeOfGradients):
    """The type of the gradient by a variable that the cost does not depend on."""

    def filter(
        self, data: Any, strict: bool = False, allow_downcast: bool | None = None
    ) -> NoReturn:
        raise AssertionError(
            "If you're assigning to a DisconnectedType you're doing something wrong. It should "
            "only be used as a symbolic placeholder."
        )

    def filter_variable(self, other: Any, allow_convert: bool = True) -> Any:
        if isinstance(getattr(other, "type", None), DisconnectedType):
            return other
        return self.filter(other)


disconnected_type = DisconnectedType()
#: the type of an undefined gradient without an explanation
null_type = NullType()


def is_disconnected(var: Variable) -> bool:
    """Return whether a gradient is that of a disconnected variable."""
    return isinstance(var.type, DisconnectedType)


if TYPE_CHECKING:

    class NullVariable(Variable):
        """A variable whose type is NullType."""

        type: NullType


def is_null(var: Variable) -> TypeGuard[NullVariable]:
    """Return whether a gradient is undefined."""
    return isinstance(var.type, NullType)


def grad_not_implemented(op: object, x_pos: int, x: object, comment: str = "") -> Variable:
    """Return the gradient by input ``x_pos`` of an Op that does not implement it.

    A gradient that depends on it raises NullTypeGradError with ``comment``.
    """
    return _null(
        f"This variable is Null because the grad method for input {x_pos} ({x}) of the {op} op is "
        f"not implemented. {comment}"
    )


def grad_undefined(op: object, x_pos: int, x: object, comment: str = "") -> Variable:
    """Return the gradient by input ``x_pos`` of an Op for which it is mathematically undefined.

    A gradient that depends on it raises NullTypeGradError with ``comment``.
    """
    return _null(
        f"This variable is Null because the grad method for input {x_pos} ({x}) of the {op} op is "
        f"mathematically undefined. {comment}"
    )


def _null(why: str) -> Variable:
    variable: Variable = NullType(why).make_variable()
    return variable
