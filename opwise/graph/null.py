"""Types of gradients that are not values: undefined ones, and those of disconnected variables."""

from opwise.graph.type import Type


class NullType(Type):
    """The type of a gradient that is undefined or not implemented; ``why_null`` says why.

    ``where``: which Apply gave it, as text, once that is known.
    """

    where = ""

    def __init__(self, why_null="(no explanation given)"):
        self.why_null = why_null

    def filter(self, data, strict=False, allow_downcast=None):
        raise ValueError("NullType has no values to filter")

    def filter_variable(self, other, allow_convert=True):
        raise ValueError("NullType has no values to filter")

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __str__(self):
        return "NullType"


class DisconnectedType(Type):
    """The type of the gradient by a variable that the cost does not depend on."""

    def filter(self, data, strict=False, allow_downcast=None):
        raise AssertionError(
            "If you're assigning to a DisconnectedType you're doing something wrong. It should "
            "only be used as a symbolic placeholder."
        )

    def filter_variable(self, other, allow_convert=True):
        if isinstance(getattr(other, "type", None), DisconnectedType):
            return other
        return self.filter(other)

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __str__(self):
        return "DisconnectedType"


disconnected_type = DisconnectedType()


def is_disconnected(var):
    """Return whether a gradient says that its variable is disconnected."""
    return isinstance(var.type, DisconnectedType)


def is_null(var):
    """Return whether a gradient is undefined."""
    return isinstance(var.type, NullType)
