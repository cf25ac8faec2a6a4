"""Keeps the arguments of a program's calls, and advises at its end where most time went.

The flag tuning.functions switches this on. Arguments are kept of that many functions only: those
that have taken most time up to now.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from pathlib import Path
from time import perf_counter

from opwise.compile.executable import Function
from opwise.config import change_flags, config
from opwise.profiling.streams import show
from opwise.tuning.copies import fresh
from opwise.tuning.progress import shown

#: the variable that tells processes which of them was first
_OWNER = "OPWISE_TUNING_OWNER"
#: the variable that names a file for a word on how far the advice has come
_TOLD = "OPWISE_TUNING_TOLD"
#: how much longer a function must have run before its arguments are copied once more
_GROWTH = 2.0


class Remembered(Function):
    """A Function that knows how long its calls took, and which arguments the last of them had.

    Calls that raise do not count.
    """

    seconds = 0.0
    #: (args, kwargs) of a late call, copied; ``seconds`` at that time
    last_call = None
    copied_at = 0.0

    def __call__(self, *args, **kwargs):
        start = perf_counter()
        found = super().__call__(*args, **kwargs)
        self.seconds += perf_counter() - start
        if self.last_call is None or self.seconds > _GROWTH * self.copied_at:
            _keep(self, args, kwargs)
        return found


#: the functions whose arguments are kept
_kept: list[Remembered] = []


def remember(function):
    """Keep the arguments of a function's calls from now on, in the first process of a program."""
    if _first_process():
        function.__class__ = Remembered


def _first_process():
    return os.environ.setdefault(_OWNER, str(os.getpid())) == str(os.getpid())


def _keep(function, args, kwargs):
    """Copy the arguments of a call if its function is among those that took most time."""
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


def _at_end():
    """Print the advice on the functions that took most time."""
    n = config.tuning.functions
    if not n or not _first_process():
        return
    _tell("advised")
    most = sorted(_kept, key=lambda f: -f.seconds)[:n]
    if not most:
        show("opwise: the program called no function; there is nothing to advise\n", at_end=True)
        return
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        _tell("interrupted")
        budget = config.tuning.budget
        show(
            "opwise: the program was interrupted; trying what would make it faster "
            f"(up to {budget:g} s; Ctrl-C ends that too)\n",
            "stderr",
        )
    with change_flags({"tuning.functions": 0}):
        advice = advised(most, config.tuning.budget)
        shown_advice = "\n\n".join(advice)
    show(f"{shown_advice}\n", at_end=True)


def _tell(word):
    """Say to the command that started this process how far the advice has come."""
    if _TOLD in os.environ:
        with contextlib.suppress(OSError):  # the disk is full: the advice is given all the same
            Path(os.environ[_TOLD]).write_text(word)


def advised(functions, budget):
    """Yield the text of the Advice on each function for its last call.

    budget: seconds for all of them; each gets a share by the time that it took. Ctrl-C ends the
    trials; the Advice then is on what was tried before.
    """
    from opwise.tuning.trial import trial

    everything = sum(f.seconds for f in functions)
    left, stopped = list(functions), []
    try:
        with shown(budget) as progress:
            while left and not stopped:
                f = left[0]
                args, kwargs = f.last_call
                share = budget * max(f.seconds / everything, 0.5 / len(functions))
                try:
                    advice = trial(f, args, kwargs, share, progress=progress, stopped=stopped)
                    text = f"{f.seconds:.3f} s in calls of {advice}"
                except Exception as error:  # of the user's own Ops: the other functions remain
                    text = f"{f.name}: cannot be called again: {type(error).__name__}: {error}"
                left.pop(0)
                yield text
    except KeyboardInterrupt:  # before anything was found on this function
        stopped.append(True)
    if stopped:
        _tell("interrupted")
        rest = ", ".join(str(f.name) for f in left)
        yield f"interrupted; nothing was tried on: {rest}" if rest else "interrupted"


atexit.register(_at_end)
