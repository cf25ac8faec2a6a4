"""PerThread: calls of one function from several threads that do not wait for each other."""

from __future__ import annotations

import threading
from typing import Any

from opwise.compile.executable import Function


class PerThread:
    """Calls a compiled function, with its own copy of the function in every thread.

    A function is called by one thread at a time: its steps compute in memory of its own, so other
    threads wait. A PerThread compiles a copy when a thread first calls it, and frees the copy when
    the thread ends. Copies share the shared variables of the function, and their kernels run at the
    same time, without the GIL, except that a call that updates a shared variable excludes other
    calls that use it. Inputs that keep a value between calls (``In`` with ``update``) keep
    one in each thread.

    function: the compiled function, which the thread that makes the PerThread calls itself.
    Raises TypeError if it is not a compiled function.
    """

    def __init__(self, function: Function) -> None:
        if not isinstance(function, Function):
            raise TypeError(
                f"PerThread takes a compiled function, not {function!r}: make one with "
                "opwise.function(...)"
            )
        self._original = function
        self._own = threading.local()
        self._own.function = function
        #: held while a copy is compiled
        self._compiling = threading.Lock()

    @property
    def function(self) -> Function:
        """The function that calls from this thread run: a copy, compiled if there is none yet."""
        try:
            found: Function = self._own.function
        except AttributeError:
            with self._compiling:
                found = self._own.function = self._original.maker.copy_function(
                    self._original, name=self._original.name, profile=self._original.profile,
                    returns_list=False,
                )  # fmt: skip
            found.trust_input = self._original.trust_input
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function of this thread; arguments, results and errors are its own."""
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[type[PerThread], tuple[Function]]:
        return PerThread, (self._original,)

    def __repr__(self) -> str:
        return f"PerThread({self._original!r})"
