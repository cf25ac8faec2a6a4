"""The device that functions are compiled for: the program's choice, or else the flag ``device``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opwise.config import config

#: the device that the program chose, in place of the flag; None: the flag decides
_chosen: str | None = None
#: the device of the running compilation, which other threads cannot change; None: none runs
_pinned: ContextVar[str | None] = ContextVar("opwise_target", default=None)


def device_name() -> str:
    """Return the name of the device: 'cpu', 'cuda', 'cuda0', ..."""
    return _pinned.get() or _chosen or str(config.device)


def choose(name: str | None) -> None:
    """Compile functions for a device from now on; None: for that of the flag ``device``."""
    global _chosen
    _chosen = name


@contextmanager
def pinned(name: str) -> Iterator[None]:
    """Let ``device_name`` return ``name`` within a ``with`` block, in this thread."""
    token = _pinned.set(name)
    try:
        yield
    finally:
        _pinned.reset(token)
