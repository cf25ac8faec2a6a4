"""Keeps the arguments of a program's slowest functions, and tries tips on them at its end.

The flag tuning.functions switches this on, and says for how many functions arguments are kept:
those that have taken the most time so far.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from opwise.compile.executable import Function
from opwise.config import change_flags, config
from opwise.profiling.process import is_first
from opwise.profiling.streams import show
from opwise.tuning.copies import fresh
from opwise.tuning.progress import shown
from opwise.tuning.tips import line_width

#: the environment variable with the number of the program's first process
_OWNER = "OPWISE_TUNING_OWNER"
#: the environment variable with the name of a file: how far the advice is, for `opwise tune`
_STATUS = "OPWISE_TUNING_STATUS"
#: arguments are copied again when the function's time has grown by this factor
_GROWTH = 2.0


class Remembered(Function):
    """A Function that adds up the time of its calls, and keeps the arguments of a late one.

    Calls that raise do not count.
    """

    #: the time of all calls
    seconds = 0.0
    #: copies of (args, kwargs) of a late call
    last_call: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    #: ``seconds`` at the time of that call
    copied_at = 0.0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        found = super().__call__(*args, **kwargs)
        self.seconds += perf_counter() - start
        if self.last_call is None or self.seconds > _GROWTH * self.copied_at:
            _keep(self, args, kwargs)
        return found


#: the functions whose arguments are kept
_kept: list[Remembered] = []


def class_of_functions() -> type[Function]:
    """Return ``Remembered`` in the program's first process, ``Function`` in others."""
    return Remembered if is_first(_OWNER) else Function


def _keep(function: Remembered, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Copy the arguments of a call if its function is among the slowest."""
    if function.last_call is None:
        if len(_kept) >= config.tuning.functions:
            least = min(_kept, key=lambda f: f.seconds)
            if least.seconds >= function.seconds:
                return
            _kept.remove(least)
            least.last_call = None
        _kept.append(function)
    function.copied_at = function.seconds
    function.last_call = (
        tuple(map(fresh, args)),
        {name: fresh(value) for name, value in kwargs.items() if name != "output_subset"},
    )


def _at_end() -> None:
    """Print the advice on the slowest functions."""
    n = config.tuning.functions
    if not n or not is_first(_OWNER):
        return
    _set_status("advised")
    most = sorted(_kept, key=lambda f: -f.seconds)[:n]
    if not most:
        show("opwise: the program called no function, so there is no advice\n", at_end=True)
        return
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        _set_status("interrupted")
        budget = config.tuning.budget
        show(
            "opwise: the program was interrupted; trying changes that may make it faster "
            f"(up to {budget:g} s; Ctrl-C ends that too)\n",
            "stderr",
        )
    with change_flags({"tuning.functions": 0}):
        advice = advised(most, config.tuning.budget)
        shown_advice = "\n\n".join(advice)
    show(f"{shown_advice}\n", at_end=True)


def _set_status(status: str) -> None:
    """Write for `opwise tune`, if it started this process, how far the advice is."""
    if _STATUS in os.environ:
        with contextlib.suppress(OSError):  # the disk may be full; the advice is printed anyway
            Path(os.environ[_STATUS]).write_text(status)


def advised(functions: Sequence[Remembered], budget: float) -> Iterator[str]:
    """Yield the text of the Advice on each function, for its last call.

    budget: seconds for all of them, shared in proportion to the time that they took. Ctrl-C ends
    the trials; the Advice then covers what was tried before.
    """
    from opwise.tuning.trial import trial

    everything = sum(f.seconds for f in functions)
    left, width = list(functions), line_width()
    stopped: list[bool] = []
    try:
        with shown(budget) as progress:
            while left and not stopped:
                f = left[0]
                assert f.last_call is not None
                args, kwargs = f.last_call
                share = budget * max(f.seconds / everything, 0.5 / len(functions))
                try:
                    advice = trial(f, args, kwargs, share, progress=progress, stopped=stopped)
                    text = f"{f.seconds:.3f} s in calls of {advice.text(width)}"
                except Exception as error:  # of the user's own Ops: the other functions remain
                    why = f"{type(error).__name__}: {error}"
                    text = f"{f.name}: no advice, because calling it again failed: {why}"
                left.pop(0)
                yield text
    except KeyboardInterrupt:  # before any trial on this function
        stopped.append(True)
    if stopped:
        _set_status("interrupted")
        rest = ", ".join(str(f.name) for f in left)
        yield f"interrupted; nothing was tried on: {rest}" if rest else "interrupted"


atexit.register(_at_end)
