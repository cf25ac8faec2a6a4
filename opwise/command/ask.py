"""The subcommand ``ask``: has a program that runs write its profile."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import NoReturn

import click

from opwise.command import files, run
from opwise.profiling import requests
from opwise.profiling.files import printable
from opwise.profiling.reports import wording
from opwise.profiling.requests import Askable

#: seconds until the thread of a program is asked whose main thread has not answered
_PATIENCE = 0.3
#: how to start a program that can be asked
_START = (
    "Start it with `opwise run`, or with "
    "OPWISE_FLAGS=profile=True,profiling.signal=SIGUSR1,profiling.destination=FILE.json."
)


@click.command(short_help="Have a program that runs write its profile.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the profile to FILE (default: the file that the program writes at its end).",
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True,
    metavar="SECONDS", help="Wait at most this long.",
)  # fmt: skip
@click.argument("process", required=False, type=click.IntRange(1), metavar="[PROCESS]")
def ask(output: Path | None, timeout: float, process: int | None) -> None:
    """Have the program with the number PROCESS write its profile up to now; it goes on.

    PROCESS is the number of the program, or of the `opwise run` that started it; it may be left out
    if only one program can be asked. Programs under `opwise run` can be asked, and those with the
    flag profiling.signal, as soon as they have compiled a function.
    """
    if output is not None and output.suffix != ".json":
        raise click.BadParameter(f"{output} does not end in .json", param_hint="--output")
    if output is not None:
        files.check_output(output)
    asked = _chosen(process)
    if not asked.handles_signal:
        raise click.ClickException(
            f"process {asked.process} no longer handles {asked.signal.name}, which would end it: "
            "it has become another program, or has reset its signal handlers"
        )
    path = _answer(asked, output and output.absolute(), timeout)
    run.describe(path)
    click.echo(f"to read it: opwise report {run.shell_word(path)}", err=True)


def _chosen(process: int | None) -> Askable:
    """Return the process to ask; raise ClickException if it cannot be asked."""
    found = requests.askable()
    if process is None:
        if len(found) == 1:
            return found[0]
        if not found:
            raise click.ClickException(f"no program that runs can be asked. {_START}")
        raise click.UsageError(f"several programs can be asked: name one of\n{_listed(found)}")
    chosen = [one for one in found if one.process == process]
    chosen = chosen or [one for one in found if one.parent == process]
    if len(chosen) == 1:
        return chosen[0]
    if chosen:
        raise click.UsageError(f"process {process} has started several: name one of\n"
                               f"{_listed(chosen)}")  # fmt: skip
    _refuse(process)


def _listed(found: list[Askable]) -> str:
    lines = (f"  {one.process}  {wording.short(one.program, 80)}" for one in found)
    return "\n".join(map(printable, lines))


def _refuse(process: int) -> NoReturn:
    """Raise ClickException with the reason why a process cannot be asked."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        raise click.ClickException(f"there is no process {process}") from None
    except PermissionError:
        raise click.ClickException(f"process {process} belongs to another user") from None
    raise click.ClickException(
        f"process {process} cannot be asked: it is not profiled, has compiled no function yet, or "
        f"has another base_compiledir than this command. {_START}"
    )


def _answer(asked: Askable, output: Path | None, timeout: float) -> Path:
    """Ask a process; return the path of the profile that it has written."""
    token = uuid.uuid4().hex
    try:
        asked.send(token, output)
    except OSError as error:
        raise click.ClickException(f"cannot ask process {asked.process}: {error}") from None
    start, has_rung = time.monotonic(), False
    while (answer := asked.answer(token)) is None:
        if not asked.is_there:
            raise click.ClickException(
                f"process {asked.process} ended before it answered; its own file has its profile"
            )
        waited = time.monotonic() - start
        if waited > _PATIENCE and not has_rung:
            asked.ring()
            has_rung = True
        if waited > timeout:
            raise click.ClickException(
                f"process {asked.process} has not answered for {timeout:g} s. It answers when one "
                "of its threads can run Python; a call of another library that holds Python's lock "
                "(GIL) prevents that until it returns."
            )
        time.sleep(0.02)
    if "path" not in answer:
        reason = printable(str(answer.get("error")))
        raise click.ClickException(f"process {asked.process} cannot write its profile: {reason}")
    return Path(answer["path"])
