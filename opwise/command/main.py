"""The command ``opwise``: its subcommands, and what holds for all of them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from typing import Any

import click
from click import shell_completion

from opwise.command.ask import ask
from opwise.command.baseline import baseline
from opwise.command.cache import cache
from opwise.command.diff import diff
from opwise.command.doctor import doctor
from opwise.command.export import export
from opwise.command.programs import INTERRUPTED
from opwise.command.report import report
from opwise.command.run import run
from opwise.command.tune import tune
from opwise.command.versus import versus
from opwise.profiling.process import pause_garbage_collection
from opwise.version import __version__


class _Commands(click.Group):
    """The subcommands; reports it when stdout cannot be written, for example on a full disk."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if sys.stdout is None:  # a shell closed it
            sys.stdout = io.StringIO()
        try:
            with contextlib.ExitStack() as at_end, pause_garbage_collection():
                at_end.callback(sys.stdout.flush)
                return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is not None or error.errno is None:  # it is about something else
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:  # the reader has closed the pipe
                sys.exit(1)
            click.echo(f"Error: cannot write to stdout: {error.strerror}", err=True)
            sys.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="opwise")
def main() -> None:
    """Run, profile, compare and tune array programs."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that cannot be encoded is escaped
            stream.reconfigure(errors="backslashreplace")


for command in (ask, baseline, cache, diff, doctor, export, report, run, tune, versus):
    main.add_command(command)


@main.command(short_help="Print the shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL.

    For bash: opwise completion bash >> ~/.bashrc
    """
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "opwise", "_OPWISE_COMPLETE").source())
