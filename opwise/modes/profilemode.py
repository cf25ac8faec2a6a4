"""ProfileMode: a Mode that records the time of every Apply, and prints summaries.

Modules that read and print profiles are imported in functions: only programs that profile wait.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from opwise.config import config
from opwise.modes.mode import Mode
from opwise.profiling.methods import ProfileMethods, profile_from
from opwise.profiling.process import pause_garbage_collection
from opwise.profiling.streams import show

if TYPE_CHECKING:
    from opwise.profiling.profile import FunctionProfile, Profile
    from opwise.profiling.recorder import Recorder


class ProfileMode(Mode, ProfileMethods):
    """Times every Apply of every function compiled under it.

    linker, optimizer: as for Mode; the linker comes first. message: a text to keep in the profile;
    summaries do not print it. Attributes have the times of ``print_summary``, in seconds.
    """

    times_calls = True
    #: calls in the summary that was printed last
    _calls_printed = 0

    def __init__(self, linker: Any = None, optimizer: Any = "default", message: str = "") -> None:
        super().__init__(linker, optimizer)
        self.message = message

    def _set(self, linker: Any, optimizer: Any) -> None:
        super()._set(linker, optimizer)
        self._recorders: list[Recorder] = []

    def _variant(self, optimizer: Any) -> Self:
        new = super()._variant(optimizer)
        if self in _at_exit:
            _at_exit.append(new)
        return new

    def on_compiled(self, function: Any) -> None:
        """Start to time a function; ``f.profile`` reads the same record, unless profile=False."""
        from opwise.modes.recording import record

        recorder = record(function, memory=config.ProfileMode.profile_memory)
        self._recorders.append(recorder)
        if function.profile is None:
            from opwise.profiling.stats import ProfileStats

            function.profile = ProfileStats(atexit_print=False, message=function.name)
            function.profile.add(recorder)

    def inside(self) -> Mode:
        """Return the mode of graphs inside Ops: the Recorder of the function times their Applys."""
        return Mode(self.linker, self._optimizer)

    # --- figures ----------------------------------------------------------------------------------

    def profile(self) -> Profile:
        """Return the data recorded so far."""
        from opwise.profiling.recorder import profile_of

        return profile_of(self._recorders, self.message)

    def _rows(self, how: str) -> list[Any]:
        from opwise.profiling import aggregate

        rows: list[Any] = getattr(aggregate, how)(self.profile())
        return rows

    @property
    def local_time(self) -> float:
        """The seconds in all Applys of all functions."""
        return self.profile().local_ns * 1e-9

    @property
    def apply_time(self) -> dict[tuple[int, str], float]:
        """{(position, Op text): seconds}."""
        return {(r.position, r.label): r.ns * 1e-9 for r in self._rows("by_apply") if r.calls}

    @property
    def op_time(self) -> dict[str, float]:
        """{Op text: seconds}."""
        return {r.label: r.ns * 1e-9 for r in self._rows("by_op") if r.calls}

    @property
    def op_cimpl(self) -> dict[str, bool]:
        """{Op text: whether all its Applys run in C}."""
        return {r.label: r.c for r in self._rows("by_op")}

    @property
    def apply_cimpl(self) -> dict[tuple[int, str], bool]:
        """{(position, Op text): whether it runs in C}."""
        return {(r.position, r.label): r.c for r in self._rows("by_apply")}

    @property
    def fct_call(self) -> dict[str, int]:
        """{function name: calls}."""
        return _by_name(self.profile(), lambda f: f.calls)

    @property
    def fct_call_time(self) -> dict[str, float]:
        """{function name: seconds in calls}."""
        return _by_name(self.profile(), lambda f: f.call_ns * 1e-9)

    @property
    def compile_time(self) -> float:
        """The seconds in which the functions were compiled."""
        return sum(r.report.total for r in self._recorders)

    # --- texts ------------------------------------------------------------------------------------

    def print_summary(
        self, n_apply_to_print: int | None = None, n_ops_to_print: int | None = None
    ) -> None:
        """Print the time of all calls by Apply, by Op and by class of Op.

        n_apply_to_print, n_ops_to_print: how many rows to print, at least 1 (default: the flags
        ProfileMode.n_apply_to_print, 15, and ProfileMode.n_ops_to_print, 20).
        """
        self._print_summary(*_limits(n_apply_to_print, n_ops_to_print))

    @pause_garbage_collection()
    def _print_summary(self, n_apply: int, n_ops: int, at_end: bool = False) -> None:
        from opwise.profiling.reports import profilemode as text

        profile = self.profile()
        self._calls_printed = _calls(profile)
        show(text.summary(profile, n_apply, n_ops), at_end=at_end)

    @pause_garbage_collection()
    def print_diff_summary(
        self, other: Any, n_apply_to_print: int | None = None, n_ops_to_print: int | None = None
    ) -> None:
        """Print the difference to another profile, self minus other, Apply by Apply.

        Applys match if they compute the same expressions of the user's program, under any linker
        or device, in any process. other: a ProfileMode, ProfileStats or Profile; raises TypeError
        for another object. The other arguments are those of ``print_summary``.
        """
        from opwise.profiling.reports import profilemode as text

        n_apply, n_ops = _limits(n_apply_to_print, n_ops_to_print)
        theirs = profile_from(other, "other")
        show(text.difference(self.profile(), theirs, n_apply, n_ops))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "message": self.message}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.message = state["message"]


def _by_name(profile: Profile, value: Callable[[FunctionProfile], Any]) -> dict[str, Any]:
    """Return the sums of a number over the functions of each name."""
    sums: dict[str, Any] = {}
    for f in profile.functions:
        sums[f.name] = sums.get(f.name, 0) + value(f)
    return sums


def _limits(n_apply_to_print: int | None, n_ops_to_print: int | None) -> tuple[int, int]:
    """Return both numbers of rows, from the flags where None is given."""
    from opwise.profiling.validation import check_counts

    given = {"n_apply_to_print": n_apply_to_print, "n_ops_to_print": n_ops_to_print}
    check_counts(**{name: n for name, n in given.items() if n is not None})
    flags = config.ProfileMode
    return (
        flags.n_apply_to_print if n_apply_to_print is None else n_apply_to_print,
        flags.n_ops_to_print if n_ops_to_print is None else n_ops_to_print,
    )


#: the modes whose summaries are printed when the program ends
_at_exit: list[ProfileMode] = []


def mode_at_exit() -> ProfileMode:
    """Return a new ProfileMode; its summary is printed at the end of a program that uses it."""
    mode = ProfileMode()
    if not _at_exit:
        atexit.register(_print_at_exit)
    _at_exit.append(mode)
    return mode


def registered_mode() -> ProfileMode:
    """Return the mode named PROFILE_MODE."""
    return mode_at_exit()


def _calls(profile: Profile) -> int:
    return sum(f.calls for f in profile.functions)


def _print_at_exit() -> None:
    """Print the summary of each mode that had calls since the program last printed it."""
    for mode in _at_exit:
        if _calls(mode.profile()) > mode._calls_printed:
            try:
                mode._print_summary(*_limits(None, None), at_end=True)
            except Exception as error:  # one failure must not suppress the other summaries
                show(f"The profile of {mode} cannot be shown: {error!r}\n", "stderr", at_end=True)
