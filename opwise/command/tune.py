"""The subcommand ``tune``: runs a program and tries changes that may make it faster."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from opwise.command import files, programs
from opwise.command.programs import PythonProgram


@click.command(
    context_settings=programs.SETTINGS,
    short_help="Run a program and try changes that may make it faster.",
)
@click.option(
    "-n", "--functions", type=click.IntRange(1), default=3, show_default=True,
    help="Try changes on this many functions: those that took the most time.",
)  # fmt: skip
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), default=20, show_default=True,
    metavar="SECONDS", help="Spend this much time on trials, for all functions together.",
)  # fmt: skip
@click.option(
    "--flags", default="", metavar="NAME=VALUE,...", help="Set flags, as OPWISE_FLAGS does."
)
@programs.program
def tune(functions: int, budget: float, flags: str, program: PythonProgram) -> None:
    """Run SCRIPT with ARGS, as python would, then print what makes it faster.

    Each change is tried on a copy of the function, with the arguments of a recent call. The advice
    shows the measured gain and how much the results differ; it also lists the changes that did not
    help. It is printed on stdout, after the output of the program. The exit status is the
    program's. Ctrl-C ends the program; Ctrl-C again ends the trials. What was measured up to then
    is printed.
    """
    files.check_flags(flags)
    environment = files.with_flags(
        flags, f"tuning.functions={functions}", f"tuning.budget={budget}"
    )
    environment.pop("OPWISE_TUNING_OWNER", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "status"
        environment["OPWISE_TUNING_STATUS"] = str(path)
        ended = programs.run(program.command(), environment)
        status = path.read_text() if path.exists() else None
    if status is None:
        how = (
            f"was ended by {ended.signal_name}"
            if ended.signal_name
            else "compiled no function, or ended by os._exit"
        )
        click.echo(f"no advice: the program {how}", err=True)
    if status == "interrupted":
        sys.exit(programs.INTERRUPTED)
    sys.exit(ended.exit_code)
