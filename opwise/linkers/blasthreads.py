"""How many threads BLAS uses: bound by the flag ``threads``, and put back without it.

BLAS has threads of its own, for each library that a process has loaded: numpy's, which ``perform``
calls, and scipy's, which the compiled machine calls.
"""

from __future__ import annotations


class _Bound:
    """What BLAS is bound to at present."""

    #: how many threads each library may use; None: as many as it likes
    limit: int | None = None
    #: puts back what the libraries used before
    limiter = None
    #: the libraries that were loaded when they were looked for last; None before that
    libraries = None


def bind(threads):
    """Let each BLAS library of this process use so many threads; None: as before it was bound."""
    if threads != _Bound.limit:
        _apply(threads)


def libraries_changed():
    """Look for the libraries anew: one more was loaded."""
    _Bound.libraries = None
    if _Bound.limit is not None:
        _apply(_Bound.limit)


def _apply(threads):
    if _Bound.limiter is not None:
        _Bound.limiter.restore_original_limits()
        _Bound.limiter = None
    if threads is not None:
        _Bound.limiter = _libraries().limit(limits=threads)
    _Bound.limit = threads


def describe():
    """Return {"blas": names of the libraries, "blas_threads": the most that one of them uses}."""
    found = [library.info() for library in _libraries().lib_controllers]
    if not found:
        return {}
    names = {f"{about['internal_api']} {about.get('version') or ''}".strip() for about in found}
    return {
        "blas": ", ".join(sorted(names)),
        "blas_threads": max(about["num_threads"] for about in found),
    }


def _libraries():
    if _Bound.libraries is None:
        import threadpoolctl  # few programs set the flag; it looks through all loaded libraries

        _Bound.libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
    return _Bound.libraries
