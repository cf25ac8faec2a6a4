"""The subcommand ``tune``: runs a program, and tries what would make its functions faster."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from opwise.command import files, programs


@click.command(
    context_settings=programs.SETTINGS,
    short_help="Run a program, and try what would make its functions faster.",
)
@click.option(
    "-n", "--functions", type=click.IntRange(1), default=3, show_default=True,
    help="Of how many functions, those that took most time.",
)  # fmt: skip
@click.option(
    "--budget", type=click.FloatRange(min=0, min_open=True), default=20, show_default=True,
    metavar="SECONDS", help="How long the trials may take, for all functions.",
)  # fmt: skip
@click.option("--flags", default="", metavar="NAME=VALUE,...", help="Flags, as in OPWISE_FLAGS.")
@programs.program
def tune(functions, budget, flags, program):
    """Run SCRIPT with its ARGS as Python would, then say what would make it faster.

    Each tip was tried on a copy of the function, with the arguments of a late call: it shows the
    gain that was measured, and the largest difference in the results. What was tried in vain is
    listed too. The advice comes on stdout, after what the program prints; the exit code is that of
    the program. Ctrl-C ends the program first, then the trials: what was found up to then is shown.
    """
    files.check_flags(flags)
    own = [f"tuning.functions={functions}", f"tuning.budget={budget}"]
    given = [part for part in (os.environ.get("OPWISE_FLAGS"), flags) if part]
    environment = {**os.environ, "OPWISE_FLAGS": ",".join([*given, *own])}
    environment.pop("OPWISE_TUNING_OWNER", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "told"
        environment["OPWISE_TUNING_TOLD"] = str(path)
        ended = programs.run(program.command(), environment)
        told = path.read_text() if path.exists() else None
    if told is None:
        how = (
            f"was ended by {ended.signal_name}"
            if ended.signal_name
            else ("compiled no function, or left by os._exit")
        )
        click.echo(f"no advice: the program {how}", err=True)
    if told == "interrupted":
        sys.exit(programs.INTERRUPTED)
    sys.exit(ended.exit_code)
