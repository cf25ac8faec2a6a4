"""ProfileStats: the profile of one or several functions, and what is printed of all at the end.

Its figures are those of a Profile taken when they are asked for.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

from opwise.config import config
from opwise.profiling import totals
from opwise.profiling.profile import Profile
from opwise.profiling.recorder import environment, profile_of, sources
from opwise.profiling.reports import profilestats as text


class ProfileStats:
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

    def summary(self, file=None, n_ops_to_print=20, n_apply_to_print=20):
        """Print where the time went.

        file: what has ``write`` (stderr unless told). n_ops_to_print, n_apply_to_print: how many
        rows, at least 1.
        """
        for name, n in (("n_ops_to_print", n_ops_to_print), ("n_apply_to_print", n_apply_to_print)):
            if not isinstance(n, int) or n < 1:
                raise ValueError(f"{name} is {n!r}; it must be a whole number from 1")
        shown = text.summary(
            self.profile(), n_ops_to_print, n_apply_to_print, self.line_width,
            config.profiling.min_memory_size,
        )  # fmt: skip
        print(shown, end="", file=sys.stderr if file is None else file)

    print_summary = summary

    def _section(self, section, file, n=None):
        profile = self.profile()
        lines = section(profile) if n is None else section(profile, n, self.line_width)
        print("\n".join(lines), file=sys.stderr if file is None else file)

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
            print(
                f"ProfileStats.{name}: total time 0 (did you forget to enable counters?)",
                file=sys.stderr if file is None else file,
            )
            return
        self._section(section, file, sys.maxsize if n is None else n)

    def summary_memory(self, file=None, N=None):
        """Print the section about memory, with the N largest Applys."""
        limit = sys.maxsize if N is None else N
        lines = text.memory_section(self.profile(), limit, config.profiling.min_memory_size)
        print("\n".join(lines), file=sys.stderr if file is None else file)

    def print_tips(self, file=None):
        """Print the section with tips."""
        self._section(text.tips_section, file)

    def save(self, path):
        """Write the profile to a file as JSON; ``Profile.load`` reads it."""
        self.profile().save(path)

    def report(self, path):
        """Write a page of the profile to a file: one HTML file that needs no network."""
        self.profile().report(path)

    def _repr_html_(self):
        return self.profile()._repr_html_()


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


def exit_text():
    """Return what is printed when the program ends: every profile, and their sum."""
    profiles = [(stats, stats.profile()) for stats in _at_exit]
    profiles.sort(
        key=lambda pair: -sum(f.compile.total + f.call_ns * 1e-9 for f in pair[1].functions)
    )
    parts, printed = [], []
    for stats, profile in profiles:
        if not _worth_printing(profile):
            print("Skipping empty Profile")
            continue
        printed.append(profile)
        parts.append(_printed(profile, stats.line_width))
    if len(printed) > 1:
        parts.append(_printed(_total(printed), config.profiling.output_line_width))
    return "".join(parts)


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
    """Return where profiles go at the end: 'stderr', 'stdout' or the path of a file.

    Each process has a file of its own: one that was started by a process with a profile puts its
    number before the suffix.
    """
    where = config.profiling.destination
    if where in ("stderr", "stdout"):
        return where
    path = Path(where)
    return path if _first_process() else path.with_suffix(f".{os.getpid()}{path.suffix}")


def _first_process():
    return os.environ.setdefault(_OWNER, str(os.getpid())) == str(os.getpid())


def _at_end():
    if config.profile and _at_exit:
        where = destination()
        if isinstance(where, Path):
            _write(where)
        else:
            print(exit_text(), end="", file=getattr(sys, where))
    if config.print_global_stats:
        print("=" * 50, global_text(), "=" * 50, sep="\n", file=sys.stderr)


def _write(path):
    """Write all profiles to a file, as JSON if it is called so; to stderr where that fails."""
    try:
        if path.suffix == ".json":
            functions = tuple(f for stats in _at_exit for f in stats.profile().functions)
            Profile(functions, "", environment(), sources(functions)).save(path)
        else:
            path.write_text(exit_text(), encoding="utf-8")
    except OSError as error:
        print(f"The profile cannot be written to {path}: {error}", file=sys.stderr)
        print(exit_text(), end="", file=sys.stderr)


atexit.register(_at_end)
