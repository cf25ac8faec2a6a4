"""Transfers of variables to devices, by functions that the packages of devices register."""

from __future__ import annotations

from collections.abc import Callable

from opwise.graph.variable import Var
from opwise.tensor.variable import TensorLike, as_tensor_variable

__all__ = ["register_transfer", "transfer"]

_transfers: list[Callable[[TensorLike, str], Var | None]] = []


def transfer(var: TensorLike, target: str) -> Var:
    """Return ``var`` on ``target``: 'cpu', or a device that some package has registered.

    Shape and dtype stay as they are. Raises ValueError for an unknown target, TypeError for what
    cannot become a tensor.
    """
    if target == "cpu":
        return as_tensor_variable(var)
    for move in _transfers:
        moved = move(var, target)
        if moved is not None:
            return moved
    raise ValueError(f"Can't transfer to target {target}")


def register_transfer(fn: Callable[[TensorLike, str], Var | None]) -> None:
    """Register a function of (variable, target), which returns the variable there, or None."""
    _transfers.append(fn)
