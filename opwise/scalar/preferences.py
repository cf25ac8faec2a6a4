"""Rules for the output types of users' scalar ops: functions of the input types."""

from __future__ import annotations

from collections.abc import Sequence

from opwise.scalar import dtypes
from opwise.scalar.types import Scalar, get_scalar_type


def _names(types: Sequence[Scalar]) -> list[str]:
    return [t.dtype for t in types]


def upcast_out(*types: Scalar) -> tuple[Scalar, ...]:
    """One output of the smallest type that holds all inputs."""
    return (get_scalar_type(dtypes.upcast(*_names(types))),)


def upcast_out_no_complex(*types: Scalar) -> tuple[Scalar, ...]:
    """As upcast_out; TypeError for complex inputs."""
    _refuse_complex(types)
    return upcast_out(*types)


def upgrade_to_float(*types: Scalar) -> tuple[Scalar, ...]:
    """One output of a floating type: integers count as the float that holds them."""
    return (get_scalar_type(dtypes.to_float(*_names(types))),)


def upgrade_to_float_no_complex(*types: Scalar) -> tuple[Scalar, ...]:
    """As upgrade_to_float; TypeError for complex inputs."""
    _refuse_complex(types)
    return upgrade_to_float(*types)


def upgrade_to_float64(*types: Scalar) -> tuple[Scalar, ...]:
    """One output of float64."""
    return (get_scalar_type("float64"),)


def same_out(type: Scalar) -> tuple[Scalar, ...]:
    """One output of the input's type."""
    return (type,)


def same_out_nocomplex(type: Scalar) -> tuple[Scalar, ...]:
    """As same_out; TypeError for a complex input."""
    _refuse_complex((type,))
    return (type,)


def same_out_float_only(type: Scalar) -> tuple[Scalar, ...]:
    """As same_out; TypeError unless the input is of a floating type."""
    if type.dtype not in dtypes.FLOATS:
        raise TypeError("only float type are supported")
    return (type,)


def _refuse_complex(types: Sequence[Scalar]) -> None:
    if any(t.dtype in dtypes.COMPLEX for t in types):
        raise TypeError("complex type are not supported")


class transfer_type:
    """Outputs of the types of the inputs with these indices; a string is a dtype."""

    def __init__(self, *transfer: int | str | None) -> None:
        self.transfer = transfer

    def __call__(self, *types: Scalar) -> list[Scalar]:
        upcast = get_scalar_type(dtypes.upcast(*_names(types)))
        return [
            upcast if i is None else get_scalar_type(i) if isinstance(i, str) else types[i]
            for i in self.transfer
        ]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.transfer == other.transfer

    def __hash__(self) -> int:
        return hash(self.transfer)

    def __str__(self) -> str:
        return f"transfer_type{{{', '.join(map(str, self.transfer))}}}"


class specific_out:
    """Outputs of fixed types."""

    def __init__(self, *spec: Scalar) -> None:
        self.spec = spec

    def __call__(self, *types: Scalar) -> tuple[Scalar, ...]:
        return self.spec

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash((specific_out, self.spec))


int_out = specific_out(get_scalar_type("int64"))
float_out = specific_out(get_scalar_type("float64"))
