"""ProfileMode: a Mode that records the time of every Apply and prints where it went.

What reads and prints profiles is imported where it is used: only those who profile wait for it.
"""

from __future__ import annotations

import atexit

from opwise.config import config
from opwise.modes.mode import Mode
from opwise.profiling.methods import ProfileMethods, profile_from
from opwise.profiling.process import pause_garbage_collection
from opwise.profiling.streams import show


class ProfileMode(Mode, ProfileMethods):
    """Times every Apply of every function compiled under it.

    linker, optimizer: as for Mode; the linker comes first. message: not printed, but kept
    in the profile. The figures of ``print_summary`` are also attributes, in seconds.
    """

    def __init__(self, linker=None, optimizer="default", message=""):
        super().__init__(linker, optimizer)
        self.message = message

    #: calls that the last printed summary covered
    _calls_printed = 0

    def _set(self, linker, optimizer):
        super()._set(linker, optimizer)
        self._recorders = []

    def _variant(self, optimizer):
        new = super()._variant(optimizer)
        if self in _at_exit:
            _at_exit.append(new)
        return new

    def on_compiled(self, function):
        """Start to time a function. ``f.profile`` reads the same record, unless it was refused."""
        from opwise.modes.recording import record

        recorder = record(function, memory=config.ProfileMode.profile_memory)
        self._recorders.append(recorder)
        if function.profile is None:
            from opwise.profiling.stats import ProfileStats

            function.profile = ProfileStats(atexit_print=False, message=function.name)
            function.profile.add(recorder)

    # --- figures ----------------------------------------------------------------------------------

    def profile(self):
        """Return what has been recorded up to now, as plain data."""
        from opwise.profiling.recorder import profile_of

        return profile_of(self._recorders, self.message)

    def _rows(self, how):
        from opwise.profiling import aggregate

        return getattr(aggregate, how)(self.profile())

    @property
    def local_time(self):
        """Seconds in all Applys of all functions."""
        return self.profile().local_ns * 1e-9

    @property
    def apply_time(self):
        """{(position, Op text): seconds}."""
        return {(r.position, r.label): r.ns * 1e-9 for r in self._rows("by_apply") if r.calls}

    @property
    def op_time(self):
        """{Op text: seconds}."""
        return {r.label: r.ns * 1e-9 for r in self._rows("by_op") if r.calls}

    @property
    def op_cimpl(self):
        """{Op text: whether all its Applys run in C}."""
        return {r.label: r.c for r in self._rows("by_op")}

    @property
    def apply_cimpl(self):
        """{(position, Op text): whether it runs in C}."""
        return {(r.position, r.label): r.c for r in self._rows("by_apply")}

    @property
    def fct_call(self):
        """{function name: calls}."""
        return _by_name(self.profile(), lambda f: f.calls)

    @property
    def fct_call_time(self):
        """{function name: seconds in calls}."""
        return _by_name(self.profile(), lambda f: f.call_ns * 1e-9)

    @property
    def compile_time(self):
        """Seconds spent compiling the functions."""
        return sum(r.report.total for r in self._recorders)

    # --- texts ------------------------------------------------------------------------------------

    def print_summary(self, n_apply_to_print=None, n_ops_to_print=None):
        """Print where the time of all calls went: by Apply, by Op, by type of Op.

        n_apply_to_print, n_ops_to_print: how many rows, at least 1; None for the flags
        ProfileMode.n_apply_to_print (15) and ProfileMode.n_ops_to_print (20).
        """
        self._print_summary(*_limits(n_apply_to_print, n_ops_to_print))

    @pause_garbage_collection()
    def _print_summary(self, n_apply, n_ops, at_end=False):
        from opwise.profiling.reports import profilemode as text

        profile = self.profile()
        self._calls_printed = _calls(profile)
        show(text.summary(profile, n_apply, n_ops), at_end=at_end)

    @pause_garbage_collection()
    def print_diff_summary(self, other, n_apply_to_print=None, n_ops_to_print=None):
        """Print the difference to another profile, self minus other, Apply by Apply.

        Applys are matched by what they compute in the user's program, whatever the linker, the
        device or the process. other: a ProfileMode, ProfileStats or Profile, else TypeError; the
        other arguments are those of ``print_summary``.
        """
        from opwise.profiling.reports import profilemode as text

        n_apply, n_ops = _limits(n_apply_to_print, n_ops_to_print)
        theirs = profile_from(other, "other")
        show(text.difference(self.profile(), theirs, n_apply, n_ops))

    def __getstate__(self):
        return {**super().__getstate__(), "message": self.message}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.message = state["message"]


def _by_name(profile, value):
    sums = {}
    for f in profile.functions:
        sums[f.name] = sums.get(f.name, 0) + value(f)
    return sums


def _limits(n_apply_to_print, n_ops_to_print):
    """Return both numbers of rows: what was given, or else what the flags say."""
    from opwise.profiling.validation import check_counts

    given = {"n_apply_to_print": n_apply_to_print, "n_ops_to_print": n_ops_to_print}
    check_counts(**{name: n for name, n in given.items() if n is not None})
    flags = config.ProfileMode
    return [getattr(flags, name) if n is None else n for name, n in given.items()]


_at_exit = []


def mode_at_exit():
    """Return a new ProfileMode whose summary is printed when the program ends, if it was used."""
    mode = ProfileMode()
    if not _at_exit:
        atexit.register(_print_at_exit)
    _at_exit.append(mode)
    return mode


def registered_mode():
    """Return the mode named PROFILE_MODE."""
    return mode_at_exit()


def _calls(profile):
    return sum(f.calls for f in profile.functions)


def _print_at_exit():
    """Print the summaries that the program itself has not printed since the last call."""
    for mode in _at_exit:
        if _calls(mode.profile()) > mode._calls_printed:
            try:
                mode._print_summary(*_limits(None, None), at_end=True)
            except Exception as error:  # a fault in one text must not cost the others
                show(f"The profile of {mode} cannot be shown: {error!r}\n", "stderr", at_end=True)
