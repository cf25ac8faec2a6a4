"""The extension of IPython: ``%load_ext opwise`` defines the magic ``%%opwise``.

This module alone imports IPython.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from opwise.compile.executable import Function
from opwise.config import change_flags, check_setting, config
from opwise.modes.recording import record
from opwise.profiling import stats
from opwise.profiling.html import page
from opwise.profiling.recorder import Recorder, profile_of
from opwise.profiling.reports import profilestats
from opwise.profiling.since import since

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from opwise.profiling.model import FunctionProfile
    from opwise.profiling.profile import Profile


class _Shown:
    """A profile with a number of rows to show of it."""

    def __init__(self, profile: Profile, rows: int) -> None:
        self.profile, self.rows = profile, rows

    def __repr__(self) -> str:
        width = config.profiling.output_line_width
        return profilestats.summary(self.profile, self.rows, self.rows, width)

    def _repr_html_(self) -> str:
        return page.brief(self.profile, self.rows)


# --- recording ------------------------------------------------------------------------------------


class Recording:
    """Records all functions that are compiled or called in a block, and no longer.

    memory: whether to profile memory too.
    """

    def __init__(self, memory: bool = True) -> None:
        self.memory = memory
        #: the functions that nothing else records
        self._borrowed: list[tuple[Function, Recorder]] = []
        #: (a Recorder that records anyway, its profile before the block)
        self._before: list[tuple[Recorder, FunctionProfile]] = []
        self._compiled: list[Recorder] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record what happens in the block."""
        for f in _functions():
            if f.profile:
                self._before += [(r, r.snapshot()) for r in f.profile._recorders]
            elif f.profile is None:
                self._borrow(f)
        made: list[stats.ProfileStats] = []
        try:
            # nobody prints these at the end, and the functions live as long as the user has them
            with (
                stats.apart() as made,
                change_flags(profile=True, profile_memory=self.memory),
            ):
                yield
        finally:
            for f, _ in self._borrowed:
                f.stop_timing()
                f.fn.timing.stop()
            self._compiled = [r for one in made for r in one._recorders]

    def _borrow(self, f: Function) -> None:
        """Time a function without a profile, but not the steps of its loops: others share them."""
        if not hasattr(f.fn, "timing"):
            return
        recorder = record(f, memory=self.memory, loops=False)
        recorder.reset()
        recorder.inherited = True  # it was compiled before
        self._borrowed.append((f, recorder))

    def profile(self, message: str) -> Profile:
        """Return what happened in the block. message: the name of the profile."""
        before = {id(recorder): snapshot for recorder, snapshot in self._before}
        recorders = [*(r for r, _ in self._before), *(r for _, r in self._borrowed)]
        called = [r for r in recorders if _calls(r) > _calls_of(before.get(id(r)))]
        found = profile_of([*self._compiled, *called], message)
        functions = [
            since(one, before[id(r)]) if id(r) in before else one
            for r, one in zip([*self._compiled, *called], found.functions, strict=True)
        ]
        return type(found)(
            tuple(functions), found.message, found.environment, found.sources, found.machine,
            devices=found.devices,
        )  # fmt: skip


def _functions() -> list[Function]:
    """Return all compiled functions of the process."""
    return [each for each in gc.get_objects() if isinstance(each, Function)]


def _calls(recorder: Recorder) -> int:
    return recorder.called


def _calls_of(snapshot: FunctionProfile | None) -> int:
    return snapshot.calls if snapshot is not None else 0


# --- the magic ------------------------------------------------------------------------------------


@magics_class
class OpwiseMagics(Magics):
    """``%opwise`` and ``%%opwise``."""

    @magic_arguments()
    @argument("-n", "--rows", type=int, default=10, help="Show at most this many Applys.")
    @argument("--mode", help="The mode of functions that are compiled without one.")
    @argument("--no-memory", action="store_true", help="Do not profile memory.")
    @argument("-o", "--output", help="Write the profile to a file too, as opwise run does.")
    @argument("name", nargs="?", help="A variable that gets the profile.")
    @line_cell_magic
    def opwise(self, line: str, cell: str | None = None) -> None:
        """Run a cell, and show the profile of the functions that it compiles or calls.

        ``%opwise STATEMENT`` does so for one statement, without options.
        """
        options = parse_argstring(self.opwise, line if cell is not None else "")
        if options.rows < 1:
            raise UsageError(f"-n is {options.rows}; it must be at least 1")
        if options.name and not options.name.isidentifier():
            raise UsageError(f"{options.name!r} is not the name of a variable")
        if options.output and not options.output.endswith(".json"):
            raise UsageError(f"{options.output} does not end in .json")
        flags = {"mode": _checked(options.mode)} if options.mode else {}
        recording = Recording(memory=not options.no_memory)
        try:
            with change_flags(**flags), recording.running():
                self._run(line if cell is None else cell, is_cell=cell is not None)
        finally:
            profile = recording.profile(f"In[{_number(self.shell)}]")
            if options.name:
                self.shell.user_ns[options.name] = profile
            if options.output:
                profile.save(Path(options.output))
            if profile.functions:
                display(_Shown(profile, options.rows))
            else:
                display(_Nothing())

    def _run(self, text: str, is_cell: bool) -> None:
        """Run the rest of a cell, or a statement, as IPython does: the last expression is shown."""
        shell: Any = self.shell
        transformed = shell.transform_cell(text)
        if is_cell:  # whose first line is that of the magic
            transformed = f"\n{transformed}"
        name = shell.compile.cache(transformed, _number(shell), raw_code=text)
        tree = shell.transform_ast(shell.compile.ast_parse(transformed, name))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(shell.compile(tree, name, "exec"), shell.user_ns)
        if last is not None:
            code = shell.compile(ast.Expression(last.value), name, "eval")
            value = eval(code, shell.user_ns)
            if not text.rstrip().endswith(";"):
                sys.displayhook(value)


class _Nothing:
    """What is shown of a cell without functions."""

    def __repr__(self) -> str:
        return "opwise: the cell neither compiled nor called a function."

    def _repr_html_(self) -> str:
        return f"<div>{self!r}</div>"


def _number(shell: Any) -> int:
    """Return the number of the cell that runs; ``execution_count`` may be that of the next one."""
    return len(shell.history_manager.input_hist_raw) - 1


def _checked(mode: str) -> str:
    try:
        check_setting("mode", mode)
    except ValueError as error:
        raise UsageError(f"--mode: {error}") from None
    return mode


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Define the magics in a shell; ``%load_ext opwise`` calls it."""
    shell.register_magics(OpwiseMagics)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove the magics from a shell; ``%unload_ext opwise`` calls it."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("opwise", None)
