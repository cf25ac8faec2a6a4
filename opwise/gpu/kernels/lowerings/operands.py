"""Dtypes and broadcast patterns of variables, as lowerings pass them to kernels."""

from __future__ import annotations

from collections.abc import Iterable

from opwise.gpu.kernels import cudatext
from opwise.graph.variable import Variable


def dtypes_of(variables: Iterable[Variable]) -> list[str]:
    """Return the dtype of each variable."""
    return [v.type.dtype for v in variables]


def patterns_of(variables: Iterable[Variable]) -> list[tuple[bool, ...]]:
    """Return along which dimensions each variable is broadcast."""
    return [v.type.broadcastable for v in variables]


def unsupported(dtypes: Iterable[str]) -> str | None:
    """Return the reason why there are no kernels for some of these dtypes, or None."""
    return next((f"there are no kernels for {d}" for d in dtypes if not cudatext.has_text(d)), None)
