"""ProfileStats: the profile of one or several functions, and what is printed of all at the end.

Its figures are those of a Profile taken when they are asked for.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from pathlib import Path

from opwise.config import config
from opwise.graph import hooks
from opwise.profiling import limits, status, totals
from opwise.profiling.collection import no_collection
from opwise.profiling.files import write_whole
from opwise.profiling.profile import Profile
from opwise.profiling.profiled import Profiled
from opwise.profiling.recorder import profile_of
from opwise.profiling.reports import profilestats as text
from opwise.profiling.showing import show, uninterrupted, write


class ProfileStats(Profiled):
    """What was recorded of the functions compiled with ``profile=`` this object.

    atexit_print: whether it is printed when the program ends, if the flag profile is still on.
    flag_time_thunks: whether each Apply is timed; None: the flag profiling.time_thunks. Further
    arguments become attributes: ``message`` is the text by which it is printed. Times are seconds.
    """

    message = None

    def __init__(self, atexit_print=True, flag_time_thunks=None, gpu_checks=True, **kwargs):
        self._recorders = []
        flags = config.profiling
        self.flag_time_thunks = flags.time_thunks if flag_time_thunks is None else flag_time_thunks
        self.ignore_first_call = flags.ignore_first_call
        self.line_width = flags.output_line_width
        self.__dict__.update(kwargs)
        if atexit_print:
            _at_exit.append(self)
        if config.profile:
            _first_process()

    def add(self, recorder):
        """Take in one more function."""
        self._recorders.append(recorder)

    def profile(self):
        """Return what has been recorded up to now, as plain data."""
        return profile_of(self._recorders, self.message or "")

    def reset(self):
        """Forget all calls; what was recorded of the compilation stays."""
        for recorder in self._recorders:
            recorder.reset()

    # --- figures ----------------------------------------------------------------------------------

    def _sum(self, value):
        return sum(map(value, self.profile().functions))

    @property
    def compile_time(self):
        return self._sum(lambda f: f.compile.total)

    @property
    def optimizer_time(self):
        return self._sum(lambda f: f.compile.optimizer)

    @property
    def validate_time(self):
        return self._sum(lambda f: f.compile.validate)

    @property
    def linker_time(self):
        return self._sum(lambda f: f.compile.linker)

    @property
    def import_time(self):
        return self._sum(lambda f: f.compile.load)

    @property
    def linker_node_make_thunks(self):
        return self._sum(lambda f: f.compile.thunks)

    @property
    def linker_make_thunk_time(self):
        """{Apply: seconds until what runs it was ready}."""
        return {n: s for r in self._recorders for n, s in r.report.thunks.items()}

    @property
    def fct_callcount(self):
        return self._sum(lambda f: f.calls)

    @property
    def fct_call_time(self):
        return self._sum(lambda f: f.call_ns) * 1e-9

    @property
    def vm_call_time(self):
        return self._sum(lambda f: f.fn_ns) * 1e-9

    @property
    def nb_nodes(self):
        """The Applys of the function that was added last; -1 before there is one."""
        return len(self._recorders[-1].order) if self._recorders else -1

    @property
    def apply_time(self):
        """{Apply: seconds} of the Applys that ran."""
        return {n: a.total * 1e-9 for n, a in self._by_node() if a.count}

    @property
    def apply_callcount(self):
        """{Apply: how often it ran} of those that did."""
        return {n: a.count for n, a in self._by_node() if a.count}

    @property
    def apply_cimpl(self):
        """{Apply: whether it runs in C}."""
        return {n: a.c for n, a in self._by_node()}

    def _by_node(self):
        for recorder, function in zip(self._recorders, self.profile().functions, strict=True):
            yield from zip(recorder.order, function.applys, strict=True)

    def class_time(self):
        """Return {class of Op: seconds}."""
        return self._grouped(type, lambda a: a.total * 1e-9)

    def class_callcount(self):
        """Return {class of Op: how often such Applys ran}."""
        return self._grouped(type, lambda a: a.count)

    def class_nodes(self):
        """Return {class of Op: how many Applys it has}."""
        return self._grouped(type, lambda a: 1)

    def class_impl(self):
        """Return {class of Op: 'C ', 'Py', or both one after the other}."""
        return self._kinds(type)

    def op_time(self):
        """Return {Op: seconds}."""
        return self._grouped(lambda op: op, lambda a: a.total * 1e-9)

    def op_callcount(self):
        """Return {Op: how often its Applys ran}."""
        return self._grouped(lambda op: op, lambda a: a.count)

    def op_nodes(self):
        """Return {Op: how many Applys it has}."""
        return self._grouped(lambda op: op, lambda a: 1)

    def op_impl(self):
        """Return {Op: 'C ', 'Py', or both one after the other}."""
        return self._kinds(lambda op: op)

    def _grouped(self, key, value):
        sums: dict = {}
        for node, apply in self._by_node():
            if apply.count:
                k = key(node.op)
                sums[k] = sums.get(k, 0) + value(apply)
        return sums

    def _kinds(self, key):
        kinds: dict = {}
        for node, apply in self._by_node():
            if apply.count:
                kind = "C " if apply.c else "Py"
                seen = kinds.setdefault(key(node.op), kind)
                if kind not in seen:
                    kinds[key(node.op)] = seen + kind
        return kinds

    def compute_total_times(self):
        """Return {Apply: seconds of it and of all that it is computed from}."""
        own = self.apply_time
        above: dict = {}
        for recorder in self._recorders:
            for node in recorder.order:
                above[node] = {node}.union(
                    *(above[v.owner] for v in node.inputs if v.owner in above)
                )
        return {n: sum(own.get(a, 0.0) for a in ancestors) for n, ancestors in above.items()}

    # --- texts ------------------------------------------------------------------------------------

    @no_collection()
    def summary(self, file=None, n_ops_to_print=20, n_apply_to_print=20):
        """Print where the time went.

        file: what has ``write`` (stderr unless told). n_ops_to_print, n_apply_to_print: how many
        rows, at least 1.
        """
        limits.check(n_ops_to_print=n_ops_to_print, n_apply_to_print=n_apply_to_print)
        shown = text.summary(
            self.profile(), n_ops_to_print, n_apply_to_print, self.line_width,
            config.profiling.min_memory_size,
        )  # fmt: skip
        _show(shown, file)

    print_summary = summary

    def _section(self, section, file, n=None):
        profile = self.profile()
        _show_lines(section(profile) if n is None else section(profile, n, self.line_width), file)

    def summary_function(self, file=None):
        """Print the section about calls and compilation."""
        self._section(text.function_section, file)

    def summary_globals(self, file=None):
        """Print the section about the process."""
        self._section(text.globals_section, file)

    def summary_class(self, file=None, N=None):
        """Print the section about classes of Ops, the N largest."""
        self._timed_section(text.class_section, "summary_class", file, N)

    def summary_ops(self, file=None, N=None):
        """Print the section about Ops, the N largest."""
        self._timed_section(text.op_section, "summary_ops", file, N)

    def summary_nodes(self, file=None, N=None):
        """Print the section about Applys, the N largest."""
        self._timed_section(text.apply_section, "summary_nodes", file, N)

    def _timed_section(self, section, name, file, n):
        if not self.profile().local_ns:
            line = f"ProfileStats.{name}: total time 0 (did you forget to enable counters?)"
            _show_lines([line], file)
            return
        self._section(section, file, sys.maxsize if n is None else n)

    def summary_memory(self, file=None, N=None):
        """Print the section about memory, with the N largest Applys."""
        limit = sys.maxsize if N is None else N
        lines = text.memory_section(self.profile(), limit, config.profiling.min_memory_size)
        _show_lines(lines, file)

    def print_tips(self, file=None):
        """Print the section with tips."""
        self._section(text.tips_section, file)

    def advise(self, f, *args, budget=5.0, file=None):
        """Try on a function and its arguments what might make it faster; see ``opwise.advise``."""
        return hooks.advise(f, *args, budget=budget, file=file)

    def graphs(self):
        """Return the text of ``debugprint`` of the functions, with the times of their Applys."""
        from opwise.graph.printing import debugprint  # few ask for it

        return debugprint([r.calls for r in self._recorders], print_type=True, file="str")

    def save(self, path):
        """Write the profile to a file as JSON; ``Profile.load`` reads it."""
        self.profile().save(path)


def _show(shown, file):
    """Print a text on stderr, or write it to what the caller gave."""
    if file is None:
        show(shown, "stderr")
    else:
        write(shown, file)


def _show_lines(lines, file):
    _show("\n".join([*lines, ""]), file)


# --- at the end of the program --------------------------------------------------------------------

_at_exit: list[ProfileStats] = []

#: the variable that tells processes which of them was first
_OWNER = "OPWISE_PROFILE_OWNER"

_TOTAL = "Sum of all(%i) printed profiles at exit excluding Scan op profile."


def _worth_printing(profile):
    return (
        any(f.calls for f in profile.functions)
        or sum(f.compile.total for f in profile.functions) > 1
    )


def _total(profiles):
    """Return a Profile of all functions of some, as it is printed after them."""
    functions = tuple(f for profile in profiles for f in profile.functions)
    return Profile(functions, _TOTAL % len(profiles), profiles[-1].environment)


def _printed(profile, line_width):
    flags = config.profiling
    return text.summary(profile, flags.n_ops, flags.n_apply, line_width, flags.min_memory_size)


def _told(what, make):
    """Return the text that ``make`` returns, or why there is none."""
    try:
        return make()
    except Exception as error:  # a fault in one text must not cost the others
        return f"{what} cannot be shown: {error!r}\n"


def exit_text():
    """Return what is printed when the program ends: every profile, and their sum."""
    return "".join(_exit_parts()[0])


@no_collection()
def _exit_parts():
    """Return (the texts of the profiles that are printed and of their sum, how many are not)."""
    profiles = [(stats, stats.profile()) for stats in _at_exit]
    profiles.sort(
        key=lambda pair: -sum(f.compile.total + f.call_ns * 1e-9 for f in pair[1].functions)
    )
    worth = [(stats, profile) for stats, profile in profiles if _worth_printing(profile)]
    parts = [part for stats, profile in worth for part in _parts(stats, profile)]
    if len(worth) > 1:
        total = _total([profile for _, profile in worth])
        width = config.profiling.output_line_width
        parts.append(_told("The sum of all profiles", lambda: _printed(total, width)))
    return parts, len(profiles) - len(worth)


def _parts(stats, profile):
    """Yield the text of a profile, and of the graphs of its functions where that is asked for."""
    yield _told(f"The profile of {profile.message}", lambda: _printed(profile, stats.line_width))
    if config.profiling.debugprint:
        yield _told(f"The graph of {profile.message}", stats.graphs)


def global_text():
    """Return the figures of the process as a whole, in Theano's words."""
    functions = [f for stats in _at_exit for f in stats.profile().functions]
    return (
        "Global stats:  Time elasped since Theano import = %6.3fs, "
        "Time spent in Theano functions = %6.3fs, "
        "Time spent compiling Theano functions:  optimzation = %6.3fs, linker = %6.3fs "
        % (
            totals.since_import(),
            sum(f.call_ns for f in functions) * 1e-9,
            sum(f.compile.optimizer for f in functions),
            sum(f.compile.linker for f in functions),
        )
    )


def destination():
    """Return where profiles go at the end: 'stdout', 'stderr' or the path of a file.

    Each process has a file of its own: one that was started by a process with a profile puts its
    number before the suffix.
    """
    where = config.profiling.destination
    if where in ("stderr", "stdout"):
        return where
    path = Path(where)
    return path if _first_process() else path.with_suffix(f".{os.getpid()}{path.suffix}")


def _first_process():
    if _forked:
        return False
    return os.environ.setdefault(_OWNER, str(os.getpid())) == str(os.getpid())


def _at_end():
    if _forked and not _has_own():
        return
    if not any(stats._recorders for stats in _at_exit):
        status.send(event="nothing compiled")
    elif config.profile:
        where = destination()
        if isinstance(where, Path) and where.suffix == ".json":
            _write(where, lambda: _everything().to_json())
        else:
            _print_at_end(where)
    if config.print_global_stats:
        line, where = "=" * 50, destination()
        stream = "stderr" if isinstance(where, Path) else where
        show(f"{line}\n{global_text()}\n{line}\n", stream, at_end=True)


def _everything():
    """Return one Profile of all functions."""
    return profile_of([r for stats in _at_exit for r in stats._recorders])


def _print_at_end(where):
    """Print all profiles on a stream or into a file, then how many were empty."""
    parts, empty = _exit_parts()
    shown = "".join(parts)
    if isinstance(where, Path):
        _write(where, lambda: shown)
    else:
        show(shown, where, at_end=True)
    if empty:
        show("Skipping empty Profile\n" * empty, at_end=True)


def _write(path, content):
    """Write what ``content`` returns to a file; all profiles to stderr where that fails."""
    try:
        with uninterrupted():
            write_whole(path, content())
    except Exception as error:  # whatever is in the way, the profile is not lost for it
        status.send(event="failed", path=str(path), error=str(error))
        reason = f"The profile cannot be written to {path}: {error}\n"
        show(reason + exit_text(), "stderr", at_end=True)
    else:
        status.send(event="written", path=str(path))


atexit.register(_at_end)

# --- processes that the program starts ------------------------------------------------------------

#: what this process has of its parent: nothing, or True where it was forked
_forked: list[bool] = []
#: what multiprocessing runs when its child ends
_finalizers: list = []


def _has_own():
    """Return whether a forked process compiled or called anything itself."""
    return any(r.called or not r.inherited for stats in _at_exit for r in stats._recorders)


def _after_fork():
    """Forget in a forked process what its parent did, which the parent tells."""
    _forked[:] = [True]
    totals.reset()
    for stats in _at_exit:
        stats.reset()
        for recorder in stats._recorders:
            recorder.inherited = True
    _watch_multiprocessing()


def _watch_multiprocessing():
    """See to it that a child of multiprocessing, which leaves without atexit, writes its file."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # a child that starts drops the finalizers of its parent, then calls these
        util.register_after_fork(_finalize_child, lambda finalize: finalize(util))
        process = sys.modules["multiprocessing.process"]
        if process.parent_process() is not None:
            _finalize_child(util)
        elif getattr(process.current_process(), "_inheriting", False):
            _write_when_terminated()  # a spawned child, which leaves through atexit otherwise


def _finalize_child(util):
    if not any(known.still_active() for known in _finalizers):
        _finalizers[:] = [util.Finalize(None, _end_of_child, exitpriority=-100)]
        _write_when_terminated()


def _write_when_terminated():
    """Have this process write its file when SIGTERM ends it, as a Pool does with its workers."""
    wanted = config.profile and isinstance(destination(), Path)
    is_main = threading.current_thread() is threading.main_thread()
    if wanted and is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number, frame):
    """Write what a child did before it ends as the signal wants it."""
    signal.signal(number, signal.SIG_DFL)
    try:
        _end_of_child()
    finally:
        os.kill(os.getpid(), number)


def _end_of_child():
    atexit.unregister(_at_end)  # a child that was spawned would come to it too
    if isinstance(destination(), Path):  # as in Theano, others print nothing of their own
        _at_end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
_watch_multiprocessing()
