"""ProfileStats: the profile of one or several functions, and the printing of all at the end.

Each figure is computed from a new Profile when it is asked for.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from opwise.config import config
from opwise.graph import upcalls
from opwise.graph.provenance import text_of
from opwise.profiling import live, process, requests, sampling
from opwise.profiling.files import uninterrupted, write_whole
from opwise.profiling.methods import ProfileMethods
from opwise.profiling.model import ApplyProfile, FunctionProfile, called, named
from opwise.profiling.process import pause_garbage_collection, send_status
from opwise.profiling.profile import Profile
from opwise.profiling.recorder import Recorder, profile_of
from opwise.profiling.reports import profilestats as text
from opwise.profiling.streams import show, write
from opwise.profiling.validation import check_counts

#: an Apply, and an Op, of the graph
Node = Any
Op = Any


class ProfileStats(ProfileMethods):
    """What was recorded of the functions compiled with ``profile=`` this object.

    atexit_print: whether it is printed when the program ends, if the flag profile is still on.
    flag_time_thunks: whether each Apply is timed (default: the flag profiling.time_thunks). Further
    arguments become attributes: ``message`` is the name that it is printed under. Times are
    seconds.
    """

    message: str | None = None

    def __init__(
        self,
        atexit_print: bool = True,
        flag_time_thunks: bool | None = None,
        gpu_checks: bool = True,
        **kwargs: Any,
    ) -> None:
        self._recorders: list[Recorder] = []
        flags = config.profiling
        self.flag_time_thunks = flags.time_thunks if flag_time_thunks is None else flag_time_thunks
        self.ignore_first_call = flags.ignore_first_call
        self.line_width = flags.output_line_width
        self.__dict__.update(kwargs)
        if atexit_print:
            _at_exit.append(self)
        if config.profile:
            _first_process()

    def add(self, recorder: Recorder) -> None:
        """Add a function."""
        self._recorders.append(recorder)
        self._publish(recorder)

    def add_all(self, other: ProfileStats) -> None:
        """Add the functions of another one, which reads the same records."""
        self._recorders += other._recorders

    def _publish(self, recorder: Recorder) -> None:
        """Let other processes read the counters of a function, and ask for its profile."""
        live.publish(recorder)
        requests.listen(_requested)
        if config.profile and isinstance(destination(), Path):
            upcalls.ending().watch(_end)

    def profile(self) -> Profile:
        """Return what has been recorded up to now, as plain data."""
        return profile_of(self._recorders, self.message or "")

    def __repr__(self) -> str:
        of = named(self.message, [text_of(r.name) for r in self._recorders])
        calls = sum(r.called for r in self._recorders)
        ns = sum(r.calls.total_ns for r in self._recorders)
        return f"<{type(self).__name__} of {of}: {called(calls, ns)}>"

    def reset(self) -> None:
        """Forget all calls, but not the times of compiling."""
        for recorder in self._recorders:
            recorder.reset()

    # --- figures ----------------------------------------------------------------------------------

    def _sum(self, value: Callable[[FunctionProfile], float]) -> float:
        return sum(map(value, self.profile().functions))

    @property
    def compile_time(self) -> float:
        return self._sum(lambda f: f.compile.total)

    @property
    def optimizer_time(self) -> float:
        return self._sum(lambda f: f.compile.optimizer)

    @property
    def validate_time(self) -> float:
        return self._sum(lambda f: f.compile.validate)

    @property
    def linker_time(self) -> float:
        return self._sum(lambda f: f.compile.linker)

    @property
    def import_time(self) -> float:
        return self._sum(lambda f: f.compile.load)

    @property
    def linker_node_make_thunks(self) -> float:
        return self._sum(lambda f: f.compile.thunks)

    @property
    def linker_make_thunk_time(self) -> dict[Node, float]:
        """{Apply: seconds that preparing what runs it took}."""
        return {n: s for r in self._recorders for n, s in r.report.thunks.items()}

    @property
    def fct_callcount(self) -> int:
        return sum(f.calls for f in self.profile().functions)

    @property
    def fct_call_time(self) -> float:
        return self._sum(lambda f: f.call_ns) * 1e-9

    @property
    def vm_call_time(self) -> float:
        return self._sum(lambda f: f.fn_ns) * 1e-9

    @property
    def nb_nodes(self) -> int:
        """Number of Applys of the function that was added last, without those inside loops; -1
        without functions."""
        return len(self._recorders[-1].order) if self._recorders else -1

    @property
    def apply_time(self) -> dict[Node, float]:
        """{Apply: seconds} of the Applys that ran."""
        return {n: a.total * 1e-9 for n, a in self._by_node() if a.count}

    @property
    def apply_callcount(self) -> dict[Node, int]:
        """{Apply: how often it ran} of those that did."""
        return {n: a.count for n, a in self._by_node() if a.count}

    @property
    def apply_cimpl(self) -> dict[Node, bool]:
        """{Apply: whether it runs in C}."""
        return {n: a.c for n, a in self._by_node()}

    def _by_node(self) -> Iterator[tuple[Node, ApplyProfile]]:
        for recorder, function in zip(self._recorders, self.profile().functions, strict=True):
            yield from zip(recorder.nodes, function.applys, strict=True)

    def class_time(self) -> dict[type, float]:
        """Return {class of Op: seconds}."""
        return self._grouped(type, lambda a: a.total * 1e-9)

    def class_callcount(self) -> dict[type, float]:
        """Return {class of Op: how often such Applys ran}."""
        return self._grouped(type, lambda a: a.count)

    def class_nodes(self) -> dict[type, float]:
        """Return {class of Op: how many Applys it has}."""
        return self._grouped(type, lambda a: 1)

    def class_impl(self) -> dict[type, str]:
        """Return {class of Op: 'C ', 'Py', or both one after the other}."""
        return self._kinds(type)

    def op_time(self) -> dict[Op, float]:
        """Return {Op: seconds}."""
        return self._grouped(lambda op: op, lambda a: a.total * 1e-9)

    def op_callcount(self) -> dict[Op, float]:
        """Return {Op: how often its Applys ran}."""
        return self._grouped(lambda op: op, lambda a: a.count)

    def op_nodes(self) -> dict[Op, float]:
        """Return {Op: how many Applys it has}."""
        return self._grouped(lambda op: op, lambda a: 1)

    def op_impl(self) -> dict[Op, str]:
        """Return {Op: 'C ', 'Py', or both one after the other}."""
        return self._kinds(lambda op: op)

    def _grouped(
        self, key: Callable[[Op], Any], value: Callable[[ApplyProfile], float]
    ) -> dict[Any, float]:
        sums: dict[Any, float] = {}
        for node, apply in self._by_node():
            if apply.count:
                k = key(node.op)
                sums[k] = sums.get(k, 0) + value(apply)
        return sums

    def _kinds(self, key: Callable[[Op], Any]) -> dict[Any, str]:
        kinds: dict[Any, str] = {}
        for node, apply in self._by_node():
            if apply.count:
                kind = "C " if apply.c else "Py"
                seen = kinds.setdefault(key(node.op), kind)
                if kind not in seen:
                    kinds[key(node.op)] = seen + kind
        return kinds

    def compute_total_times(self) -> dict[Node, float]:
        """Return {Apply: seconds of it and of all Applys that it depends on}."""
        own = self.apply_time
        above: dict[Node, set[Node]] = {}
        for recorder in self._recorders:
            for node in recorder.nodes:
                above[node] = {node}.union(
                    *(above[v.owner] for v in node.inputs if v.owner in above)
                )
        return {n: sum(own.get(a, 0.0) for a in ancestors) for n, ancestors in above.items()}

    # --- texts ------------------------------------------------------------------------------------

    @pause_garbage_collection()
    def summary(
        self, file: Any = None, n_ops_to_print: int = 20, n_apply_to_print: int = 20
    ) -> None:
        """Print where the time went.

        file: a writable text stream (default: stderr). n_ops_to_print, n_apply_to_print: how many
        rows, at least 1.
        """
        check_counts(n_ops_to_print=n_ops_to_print, n_apply_to_print=n_apply_to_print)
        _show(self._text(self.profile(), n_ops_to_print, n_apply_to_print), file)

    def print_summary(
        self, n_apply_to_print: int = 20, n_ops_to_print: int = 20, file: Any = None
    ) -> None:
        """Print where the time went, as ``summary``; its arguments come as ProfileMode's do."""
        self.summary(file, n_ops_to_print, n_apply_to_print)

    def _text(self, profile: Profile, n_ops: int, n_apply: int) -> str:
        return text.summary(
            profile, n_ops, n_apply, self.line_width, config.profiling.min_memory_size
        )

    def _section(self, section: Callable[..., list[str]], file: Any, *arguments: int) -> None:
        _show_lines(section(self.profile(), *arguments), file)

    def summary_function(self, file: Any = None) -> None:
        """Print the section about calls and compilation."""
        self._section(text.function_section, file)

    def summary_globals(self, file: Any = None) -> None:
        """Print the section about the process."""
        self._section(text.globals_section, file)

    def summary_class(self, file: Any = None, N: int | None = None) -> None:
        """Print the section about classes of Ops, the N largest."""
        self._timed_section(text.class_section, "summary_class", file, N)

    def summary_ops(self, file: Any = None, N: int | None = None) -> None:
        """Print the section about Ops, the N largest."""
        self._timed_section(text.op_section, "summary_ops", file, N)

    def summary_nodes(self, file: Any = None, N: int | None = None) -> None:
        """Print the section about Applys, the N largest."""
        self._timed_section(text.apply_section, "summary_nodes", file, N)

    def _timed_section(
        self, section: Callable[..., list[str]], name: str, file: Any, n: int | None
    ) -> None:
        if not self.profile().local_ns:
            line = f"ProfileStats.{name}: total time 0 (did you forget to enable counters?)"
            _show_lines([line], file)
            return
        self._section(section, file, sys.maxsize if n is None else n, self.line_width)

    def summary_memory(self, file: Any = None, N: int | None = None) -> None:
        """Print the section about memory, with the N largest Applys."""
        limit = sys.maxsize if N is None else N
        lines = text.memory_section(self.profile(), limit, config.profiling.min_memory_size)
        _show_lines(lines, file)

    def print_tips(self, file: Any = None) -> None:
        """Print the section with tips."""
        self._section(text.tips_section, file)

    def advise(self, f: Any, *args: Any, budget: float = 5.0, file: Any = None) -> Any:
        """Try what might make a function faster on its arguments; see ``opwise.advise``."""
        return upcalls.advise(f, *args, budget=budget, file=file)

    def graphs(self) -> str:
        """Return the text of ``debugprint`` of the functions, with the times of their Applys."""
        from opwise.graph.printing import debugprint  # rarely used

        text: str = debugprint([r.function for r in self._recorders], print_type=True, file="str")
        return text

    def save(self, path: str | Path) -> None:
        """Write the profile to a file as JSON; ``Profile.load`` reads it."""
        self.profile().save(path)


class ScanProfileStats(ProfileStats):
    """What was recorded of the step of a loop, if ``scan`` was given a profile of its own.

    name: of the loop, which is printed. Other arguments are those of ProfileStats.
    """

    def __init__(self, atexit_print: bool = True, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(atexit_print, **kwargs)
        self.name = name

    def _publish(self, recorder: Recorder) -> None:
        """Do nothing: the function around the loop publishes its step."""

    def _of_vms(self, name: str) -> int:
        return sum(getattr(recorder.vm.timing, name) for recorder in self._recorders)

    @property
    def callcount(self) -> int:
        """How often the loop ran."""
        return self._of_vms("calls")

    @property
    def nbsteps(self) -> int:
        """The number of all its steps."""
        return self._of_vms("loop_steps")

    @property
    def call_time(self) -> float:
        """The seconds in all runs of the loop."""
        return self._of_vms("total_ns") * 1e-9

    @property
    def vm_call_time(self) -> float:
        return self._sum(lambda f: f.thunk_ns + f.timing_ns) * 1e-9

    def _text(self, profile: Profile, n_ops: int, n_apply: int) -> str:
        return text.scan_summary(
            profile, self._header(), n_ops, n_apply, self.line_width,
            config.profiling.min_memory_size,
        )  # fmt: skip

    def _header(self) -> list[str]:
        times = self.callcount, self.nbsteps, self.call_time, self.vm_call_time
        return text.scan_header(self.name, self.message, *times)

    def summary_globals(self, file: Any = None) -> None:
        """Print nothing: the function around the loop has the figures of the process."""

    def summary_function(self, file: Any = None) -> None:
        """Print the section about runs of the loop."""
        _show_lines(self._header(), file)


def _show(shown: str, file: Any) -> None:
    """Print a text on stderr, or write it to the stream of the caller."""
    if file is None:
        show(shown, "stderr")
    elif not hasattr(file, "write"):
        raise TypeError(f"file is {file!r}; it must be a stream, such as sys.stdout")
    else:
        write(shown, file)


def _show_lines(lines: Iterable[str], file: Any) -> None:
    _show("\n".join([*lines, ""]), file)


# --- at the end of the program --------------------------------------------------------------------

_at_exit: list[ProfileStats] = []


@contextmanager
def apart() -> Iterator[list[ProfileStats]]:
    """Yield a list that has the ProfileStats made within a ``with`` block behind it.

    Nobody prints these when the program ends.
    """
    known, made = list(_at_exit), list[ProfileStats]()
    try:
        yield made
    finally:
        made += [one for one in _at_exit if one not in known]
        _at_exit[:] = [one for one in _at_exit if one in known]


#: seconds of compilation that are worth printing, if nothing was called
LONG_TO_COMPILE = 1.0
#: environment variable with the id of the first process of the program
_OWNER = "OPWISE_PROFILE_OWNER"

_TOTAL = "Sum of all(%i) printed profiles at exit excluding Scan op profile."


def _worth_printing(profile: Profile) -> bool:
    return (
        any(f.calls for f in profile.functions)
        or sum(f.compile.total for f in profile.functions) > LONG_TO_COMPILE
    )


def _total(profiles: list[Profile]) -> Profile:
    """Return a Profile of all functions of some profiles, which is printed after them."""
    functions = tuple(f for profile in profiles for f in profile.functions)
    frames = {key: frame for profile in profiles for key, frame in profile.frames.items()}
    return Profile(functions, _TOTAL % len(profiles), profiles[-1].environment, frames=frames)


def _printed(stats: ProfileStats, profile: Profile) -> str:
    return stats._text(profile, config.profiling.n_ops, config.profiling.n_apply)


def _text_or_error(what: str, make: Callable[[], str]) -> str:
    """Return the text that ``make`` returns, or a line with the error that it raised."""
    try:
        return make()
    except Exception as error:  # a fault in one text must not cost the others
        return f"{what} cannot be shown: {error!r}\n"


def exit_text() -> str:
    """Return what is printed when the program ends: every profile, and their sum."""
    return "".join(_exit_parts()[0])


@pause_garbage_collection()
def _exit_parts() -> tuple[list[str], int]:
    """Return (texts of the profiles worth printing and of their sum, number of the others)."""
    profiles = [(stats, stats.profile()) for stats in _at_exit]
    profiles.sort(
        key=lambda pair: -sum(f.compile.total + f.call_ns * 1e-9 for f in pair[1].functions)
    )
    worth = [(stats, profile) for stats, profile in profiles if _worth_printing(profile)]
    parts = [part for stats, profile in worth for part in _parts(stats, profile)]
    functions = [profile for stats, profile in worth if not isinstance(stats, ScanProfileStats)]
    if len(functions) > 1:
        total, form = _total(functions), ProfileStats(atexit_print=False)
        parts.append(_text_or_error("The sum of all profiles", lambda: _printed(form, total)))
    return parts, len(profiles) - len(worth)


def _parts(stats: ProfileStats, profile: Profile) -> Iterator[str]:
    """Yield the text of a profile, and of the graphs of its functions if they are asked for."""
    name = profile.message
    yield _text_or_error(f"The profile of {name}", lambda: _printed(stats, profile))
    if config.profiling.debugprint:
        yield _text_or_error(f"The graph of {name}", stats.graphs)


def global_text() -> str:
    """Return the figures of the process as a whole, in Theano's words."""
    functions = [f for stats in _at_exit for f in stats.profile().functions]
    return (
        "Global stats:  Time elasped since Theano import = %6.3fs, "
        "Time spent in Theano functions = %6.3fs, "
        "Time spent compiling Theano functions:  optimzation = %6.3fs, linker = %6.3fs "
        % (
            process.since_import(),
            sum(f.call_ns for f in functions) * 1e-9,
            sum(f.compile.optimizer for f in functions),
            sum(f.compile.linker for f in functions),
        )
    )


def destination() -> str | Path:
    """Return where profiles go at the end: 'stdout', 'stderr' or the path of a file.

    Each process has a file of its own: a process that another one with a profile started puts its
    id before the suffix.
    """
    where: str = config.profiling.destination
    if where in ("stderr", "stdout"):
        return where
    path = Path(where)
    return path if _first_process() else path.with_suffix(f".{os.getpid()}{path.suffix}")


def _requested() -> tuple[Profile, Path]:
    """Return the profile of all functions up to now, and the path of its file."""
    where = destination()
    if isinstance(where, Path) and where.suffix == ".json":
        return _everything(), where
    name = Path(sys.argv[0] or "python").stem
    return _everything(), Path(f"{name}.{os.getpid()}.profile.json")


def _first_process() -> bool:
    return not _process.is_forked and process.is_first(_OWNER)


class _Process:
    """What this process has done with its profiles, and what it is."""

    def __init__(self) -> None:
        self.is_forked = False
        #: held while the profiles are printed or written at the end; whether they have been
        self.lock, self.has_ended = threading.Lock(), False
        #: what multiprocessing runs when this child of it ends
        self.finalizer: Any = None

    def become_forked(self) -> None:
        """Forget what the parent did: it may be about to end."""
        self.is_forked = True
        self.lock, self.has_ended = threading.Lock(), False


_process = _Process()


def _at_end() -> None:
    """End the process as far as profiles go, also by a signal that has come meanwhile."""
    _end()
    upcalls.ending().leave()


def _end() -> None:
    """Print or write all profiles as the flags say, once: the last of them count."""
    with _process.lock:
        if not _process.has_ended:
            _process.has_ended = True
            _tell()


def _tell() -> None:
    """Print or write all profiles as the flags say."""
    if _process.is_forked and not _has_own():
        return
    if not any(stats._recorders for stats in _at_exit):
        send_status(event="nothing compiled")
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


def _everything() -> Profile:
    """Return one Profile of all functions, which have the rows of their loops."""
    functions = [stats for stats in _at_exit if not isinstance(stats, ScanProfileStats)]
    return profile_of([r for stats in functions for r in stats._recorders])


def _print_at_end(where: str | Path) -> None:
    """Print all profiles on a stream or into a file, then how many were empty."""
    parts, empty = _exit_parts()
    shown = "".join(parts)
    if isinstance(where, Path):
        _write(where, lambda: shown)
    else:
        show(shown, where, at_end=True)
    if empty:
        show("Skipping empty Profile\n" * empty, at_end=True)


def _write(path: Path, content: Callable[[], str]) -> None:
    """Write what ``content`` returns to a file; if that fails, print all profiles on stderr."""
    try:
        with uninterrupted(), requests.undisturbed():
            write_whole(path, content())
    except Exception as error:  # whatever is wrong, the profile must not be lost
        send_status(event="failed", path=str(path), error=str(error))
        reason = f"The profile cannot be written to {path}: {error}\n"
        show(reason + exit_text(), "stderr", at_end=True)
    else:
        send_status(event="written", path=str(path))


atexit.register(_at_end)

# --- processes that the program starts ------------------------------------------------------------


def _has_own() -> bool:
    """Return whether a forked process compiled or called anything itself."""
    return any(r.called or not r.inherited for stats in _at_exit for r in stats._recorders)


def _before_fork() -> None:
    """End our threads, so that a program of one thread forks as one."""
    upcalls.ending().before_fork()
    requests.before_fork()


def _after_fork_in_parent() -> None:
    requests.after_fork_in_parent()
    upcalls.ending().after_fork()


def _after_fork() -> None:
    """Forget in a forked process what its parent recorded; the parent reports it."""
    _process.become_forked()
    upcalls.ending().after_fork_in_child()
    live.forget_after_fork()  # before the counters are reset, which are those of the parent
    process.reset_times()
    sampling.become_main()
    for stats in _at_exit:
        stats.reset()
        for recorder in stats._recorders:
            recorder.inherited = True
    requests.announce_after_fork()
    _watch_multiprocessing()


def _watch_multiprocessing() -> None:
    """Have children of multiprocessing write their files, since they exit without atexit."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        # a child that starts drops the finalizers of its parent, then calls these
        util.register_after_fork(_finalize_child, lambda finalize: finalize(util))
        if process.worker_name() is not None:
            _finalize_child(util)


def _finalize_child(util: ModuleType) -> None:
    known = _process.finalizer
    if known is None or not known.still_active():
        _process.finalizer = util.Finalize(None, _end_of_child, exitpriority=-100)


def _end_of_child() -> None:
    atexit.unregister(_at_end)  # a spawned child would run it too
    if isinstance(destination(), Path):  # as in Theano, children print nothing
        _at_end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork,
    )
_watch_multiprocessing()
