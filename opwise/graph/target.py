"""The device that functions are compiled for: that of an old program, or of the flag ``device``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from opwise.config import config
from opwise.graph.legacystate import legacy

#: the device of the running compilation, which other threads cannot change; None: none runs
_pinned: ContextVar[str | None] = ContextVar("opwise_target", default=None)


def device_name() -> str:
    """Return the name of the device: 'cpu', 'cuda', 'cuda0', ..."""
    return _pinned.get() or legacy.device or str(config.device)


@contextmanager
def pinned(name: str) -> Iterator[None]:
    """Let ``device_name`` return ``name`` within a ``with`` block, in this thread."""
    token = _pinned.set(name)
    try:
        yield
    finally:
        _pinned.reset(token)
