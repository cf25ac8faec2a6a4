"""Limits how many threads BLAS uses to the flag ``threads``, and restores what it used without it.

Each BLAS library that a process has loaded has threads of its own: numpy's, which ``perform``
calls, and scipy's, which the compiled VM calls.
"""

from __future__ import annotations

import threading
from typing import Any

#: held while the limit changes
_lock = threading.RLock()


class _Bound:
    """The limit that is in force."""

    #: how many threads each library may use; None: no limit
    limit: int | None = None
    #: restores what the libraries used before
    limiter: Any = None
    #: the libraries that were loaded when they were looked for last; None before that
    libraries: Any = None


#: that of this process
_bound = _Bound()


def bind(threads: int | None) -> None:
    """Let each BLAS library of this process use so many threads; None lifts the limit."""
    with _lock:
        if threads != _bound.limit:
            _apply(threads)


def libraries_changed() -> None:
    """Look for the libraries anew: another one was loaded."""
    with _lock:
        _bound.libraries = None
        if _bound.limit is not None:
            _apply(_bound.limit)


def _apply(threads: int | None) -> None:
    if _bound.limiter is not None:
        _bound.limiter.restore_original_limits()
        _bound.limiter = None
    if threads is not None:
        _bound.limiter = _libraries().limit(limits=threads)
    _bound.limit = threads


def describe() -> dict[str, Any]:
    """Return {"blas": names of the libraries, "blas_threads": the most that one of them uses}."""
    found = [library.info() for library in _libraries().lib_controllers]
    if not found:
        return {}
    names = {f"{about['internal_api']} {about.get('version') or ''}".strip() for about in found}
    return {
        "blas": ", ".join(sorted(names)),
        "blas_threads": max(about["num_threads"] for about in found),
    }


def _libraries() -> Any:
    if _bound.libraries is None:
        import threadpoolctl  # few programs set the flag; it looks through all loaded libraries

        _bound.libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
    return _bound.libraries
