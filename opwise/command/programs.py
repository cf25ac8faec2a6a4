"""Programs that subcommands run: a script or a module, in a process that gets our signals."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import click

from opwise.profiling.process import status_environment
from opwise.py2 import convert

#: the type of an argument: the script of a program
SCRIPT: click.Path = click.Path(exists=True, dir_okay=False, path_type=Path)


#: the exit status after Ctrl-C
INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class PythonProgram:
    """A program in Python, and its arguments."""

    #: the path of a script, or the name of a module
    name: str
    #: whether ``name`` is the name of a module
    is_module: bool = False
    #: the arguments of the program
    args: tuple[str, ...] = ()
    #: the Python that it was written for, if its text and names are to be converted: 2 or 3
    python: int | None = None
    #: whether functions of PyTensor that name no mode are compiled by opwise
    pytensor: bool = False

    @property
    def stem(self) -> str:
        """The start of the names of files about the program."""
        return self.name.rpartition(".")[2] if self.is_module else Path(self.name).stem

    @property
    def folder(self) -> Path:
        """The folder of the script; of a module, the working directory."""
        return Path.cwd() if self.is_module else Path(self.name).absolute().parent

    def command(self, script: Path | None = None) -> list[str]:
        """Return the command line that runs it. script: another path of the script."""
        path = str(script or self.name)
        if path.startswith("-"):  # Python would take it for an option
            path = os.path.join(os.curdir, path)
        words = ["-m", self.name] if self.is_module else [path]
        start = [sys.executable]
        if self.python is not None:
            from opwise.py2 import hook  # most programs are not converted

            start = hook.command(self.python)
        elif self.pytensor:
            start += ["-m", "opwise.pytensor"]
        return [*start, *words, *self.args]


class _ProgramType(click.Path):
    """The type of an argument: the script of a program; with the option -m, a module's name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, PythonProgram):
            return value
        if ctx is not None and ctx.params.get("module"):
            return PythonProgram(value, is_module=True)
        if _is_python(value):
            return PythonProgram(value)
        return PythonProgram(str(super().convert(value, param, ctx)))


#: settings of a command that passes the arguments after the program on to it
SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


#: what people may type before a script; it runs under the Python of opwise
_PYTHON = re.compile(r"python[23]?")


def program(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``[--py2 | --py3 | --pytensor] [-m] SCRIPT [ARGS]...`` to a command.

    The command has it as its keyword ``program``.
    """
    return _with_program(command, required=True)


def optional_program(command: Callable[..., None]) -> Callable[..., None]:
    """As ``program``, but SCRIPT may be left out: then the keyword ``program`` is None."""
    return _with_program(command, required=False)


def _with_program(command: Callable[..., None], required: bool) -> Callable[..., None]:
    def run(
        *, module: bool, program: PythonProgram | None, args: tuple[str, ...], py2: bool,
        py3: bool, pytensor: bool, **options: Any,
    ) -> None:  # fmt: skip
        if py2 and py3:
            raise click.UsageError("a program is for one Python: give --py2 or --py3")
        if pytensor and (py2 or py3):
            raise click.UsageError("programs for an earlier Python cannot use PyTensor")
        if pytensor and importlib.util.find_spec("pytensor") is None:
            raise click.ClickException(
                "--pytensor needs PyTensor: pip install 'opwise[pytensor]' (Python 3.12 or later)"
            )
        if py2 and not convert.is_available():
            raise click.ClickException(f"--py2 needs the package fissix: {convert.INSTALL}")
        python = 2 if py2 else 3 if py3 else None
        if program is not None:
            program = replace(_without_python(program, args), python=python, pytensor=pytensor)
        elif py2 or py3 or pytensor or module:
            raise click.UsageError("Missing argument 'SCRIPT'.")
        command(program=program, **options)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    vars(run)["__click_params__"] = getattr(command, "__click_params__", [])
    script = _ProgramType(exists=True, dir_okay=False)
    for part in (
        click.argument("args", nargs=-1, type=click.UNPROCESSED),
        click.argument("program", metavar="SCRIPT" if required else "[SCRIPT]", type=script,
                       required=required),
        click.option(
            "-m",
            "module",
            is_flag=True,
            is_eager=True,
            help="Run a module or package: SCRIPT is its name, as for python -m.",
        ),
        click.option(
            "--py2",
            is_flag=True,
            help="Run a program for Python 2: it and its modules are converted as they are loaded.",
        ),
        click.option(
            "--py3",
            is_flag=True,
            help="Run a program for an earlier Python 3: it gets what Python, numpy, scipy and "
            "matplotlib had then.",
        ),
        click.option(
            "--pytensor",
            is_flag=True,
            help="Compile functions of PyTensor, and so of PyMC, by opwise unless they name a "
            "mode.",
        ),
    ):  # fmt: skip
        run = part(run)
    return run


def _without_python(program: PythonProgram, args: tuple[str, ...]) -> PythonProgram:
    """Return the program of ``python SCRIPT ARGS`` or ``python -m MODULE ARGS``, or as given."""
    if not _is_python(program.name) or program.is_module:
        return replace(program, args=args)
    module, rest = args[:1] == ("-m",), args[args[:1] == ("-m",) :]
    if not rest or (rest[0].startswith("-") and not module):
        raise click.UsageError(
            f"{program.name} is followed by no script: give SCRIPT or -m MODULE; options of Python "
            "go into its environment variables"
        )
    if module:
        return PythonProgram(rest[0], is_module=True, args=rest[1:])
    script = click.Path(exists=True, dir_okay=False).convert(rest[0], None, None)
    return PythonProgram(str(script), args=rest[1:])


def _is_python(name: str) -> bool:
    return _PYTHON.fullmatch(name) is not None and not Path(name).exists()


# --- running --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    #: the exit status, or minus the number of the signal that ended it
    returncode: int
    #: whether this process received SIGINT meanwhile, for example by Ctrl-C
    interrupted: bool
    #: what the program wrote to stderr, if that was captured
    stderr: str = ""
    #: the messages of ``profiling.status`` that it sent
    messages: tuple[dict[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """The exit status as in a shell: 128 plus the number of the signal that ended it."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    @property
    def signal_name(self) -> str:
        """The name of the signal that ended it, for example SIGKILL, or ""."""
        if self.returncode >= 0:
            return ""
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"signal {-self.returncode}"


class Attendant(Protocol):
    """What shows the output of a program; see ``opwise.command.live.LiveTerminal``."""

    @property
    def stdout(self) -> int | None: ...
    @property
    def stderr(self) -> int | None: ...
    def attend(self, process: subprocess.Popen[bytes]) -> None: ...


def run(
    command: list[str],
    environment: Mapping[str, str],
    cwd: Path | None = None,
    capture: bool = False,
    terminal: Attendant | None = None,
) -> Ended:
    """Run a command to its end, and return how it ended.

    Signals that ask this process to stop go to the command, which can still write its profile;
    this process goes on. capture: drop its stdout, and return its stderr. terminal: has its stdout
    and stderr, and attends to it until it ends.
    """  # fmt: skip
    stdout = subprocess.DEVNULL if capture else terminal.stdout if terminal else None
    stderr = subprocess.PIPE if capture else terminal.stderr if terminal else None
    reading, writing = os.pipe()
    with open(reading, "rb") as messages:
        try:
            for end in (reading, writing):  # reading must not block if a child keeps the pipe open
                os.set_blocking(end, False)
            environment = {**environment, **status_environment(writing)}
            with _passed_on() as signals:
                process = subprocess.Popen(
                    command, env=environment, cwd=cwd, pass_fds=(writing,),
                    stdout=stdout, stderr=stderr,
                )  # fmt: skip
                signals.process = process
                if terminal is not None:
                    terminal.attend(process)
                _, captured = process.communicate()
        finally:
            os.close(writing)
        sent = messages.read() or b""
    return Ended(
        process.returncode,
        signals.interrupted,
        (captured or b"").decode("utf-8", "backslashreplace"),
        tuple(_messages(sent)),
    )


def _messages(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.splitlines():
        with contextlib.suppress(ValueError):  # the program may write anything into the pipe
            yield json.loads(line)


class _Signals:
    """Passes signals on to a process."""

    process: subprocess.Popen[bytes] | None = None
    interrupted = False

    def receive(self, number: int, frame: object) -> None:
        self.interrupted = self.interrupted or number == signal.SIGINT
        # a terminal sends the signals of its keys to all processes in the foreground
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


def _in_foreground() -> bool:
    """Return whether this process is in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _passed_on() -> Iterator[_Signals]:
    """Receive the signals that would end this process, in the _Signals that this yields."""
    signals = _Signals()
    # a signal that is ignored here, as SIGHUP under nohup, is ignored by the command as well
    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    old = {number: signal.signal(number, signals.receive) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
