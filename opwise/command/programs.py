"""Programs that subcommands run: named by a script or a module, run with signals passed on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import click

from opwise.profiling.process import status_environment

#: the script of a program, as an argument
SCRIPT = click.Path(exists=True, dir_okay=False, path_type=Path)


#: the exit code of what Ctrl-C ended
INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class Program:
    """A program of Python and its arguments."""

    #: what the user called it: the path of a script, or the name of a module
    name: str
    is_module: bool = False
    args: tuple[str, ...] = ()

    @property
    def stem(self):
        """What files about the program are named after."""
        return self.name.rpartition(".")[2] if self.is_module else Path(self.name).stem

    @property
    def folder(self):
        """The folder it is found from."""
        return Path.cwd() if self.is_module else Path(self.name).absolute().parent

    def command(self, script=None):
        """Return the words that run it. script: the path of the script, if that is another."""
        words = ["-m", self.name] if self.is_module else [str(script or self.name)]
        return [sys.executable, *words, *self.args]


class _Named(click.Path):
    """The script of a program; the name of a module where the option -m was given."""

    def convert(self, value, param, ctx):
        if isinstance(value, Program):
            return value
        if ctx is not None and ctx.params.get("module"):
            return Program(value, is_module=True)
        return Program(str(super().convert(value, param, ctx)))


#: settings of a command whose arguments behind the program are the program's own
SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def program(command):
    """Give a command the arguments ``[-m] PROGRAM [ARGS]...`` as the keyword ``program``."""

    def run(*, module, program, args, **options):
        return command(program=replace(program, args=args), **options)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__click_params__ = getattr(command, "__click_params__", [])
    for part in (
        click.argument("args", nargs=-1, type=click.UNPROCESSED),
        click.argument("program", metavar="SCRIPT", type=_Named(exists=True, dir_okay=False)),
        click.option(
            "-m",
            "module",
            is_flag=True,
            is_eager=True,
            help="SCRIPT is the name of a module or package, as for python -m.",
        ),
    ):
        run = part(run)
    return run


# --- running --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    returncode: int
    #: whether this process received SIGINT meanwhile, as by Ctrl-C
    interrupted: bool
    #: what the program wrote to stderr, where that was captured
    stderr: str = ""
    #: the messages of ``profiling.process.send_status`` that it sent
    messages: tuple[dict, ...] = ()

    @property
    def exit_code(self):
        """The exit code as a shell gives it: 128 and the number of the signal that ended it."""
        return self.returncode if self.returncode >= 0 else 128 - self.returncode

    @property
    def signal_name(self):
        """The name of the signal that ended it, as SIGKILL, or ""."""
        if self.returncode >= 0:
            return ""
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"signal {-self.returncode}"


def run(command, environment, cwd=None, capture=False):
    """Run a command to its end and return how it Ended.

    A signal that asks this process to stop goes to the command, which ends in its own way (a
    profile is written, for instance); then this process goes on. capture: stdout is dropped and
    stderr is returned.
    """
    reading, writing = os.pipe()
    with open(reading, "rb") as messages:
        try:
            for end in (reading, writing):  # reading must not block if a child keeps the pipe open
                os.set_blocking(end, False)
            environment = {**environment, **status_environment(writing)}
            with _passed_on() as signals:
                process = subprocess.Popen(
                    command, env=environment, cwd=cwd, pass_fds=(writing,),
                    stdout=subprocess.DEVNULL if capture else None,
                    stderr=subprocess.PIPE if capture else None,
                )  # fmt: skip
                signals.process = process
                _, stderr = process.communicate()
        finally:
            os.close(writing)
        told = messages.read() or b""
    return Ended(
        process.returncode,
        signals.interrupted,
        (stderr or b"").decode("utf-8", "backslashreplace"),
        tuple(_messages(told)),
    )


def _messages(lines):
    for line in lines.splitlines():
        with contextlib.suppress(ValueError):  # it is a pipe of the program's, after all
            yield json.loads(line)


class _Signals:
    """Passes signals on to a process."""

    process = None
    interrupted = False

    def receive(self, number, frame):
        self.interrupted = self.interrupted or number == signal.SIGINT
        # a terminal sends what its keys mean to all processes in the foreground
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


def _in_foreground():
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
def _passed_on():
    """Give the _Signals that receive, meanwhile, what would end this process."""
    signals = _Signals()
    # what somebody ignores, as nohup does with SIGHUP, is ignored by the command as well
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
