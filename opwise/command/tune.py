"""The subcommand ``tune``: runs a program, and tries what would make its functions faster."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
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
@click.argument(
    "script", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)  # fmt: skip
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def tune(functions, budget, flags, script, args):
    """Run SCRIPT with its ARGS as Python would, then say what would make it faster.

    Each tip was tried on a copy of the function, with the arguments of a late call: it shows the
    gain that was measured, and the largest difference in the results. What was tried in vain is
    listed too. The advice comes on stdout, after what the program prints; the exit code is that of
    the program.
    """
    own = [f"tuning.functions={functions}", f"tuning.budget={budget}"]
    given = [part for part in (os.environ.get("OPWISE_FLAGS"), flags) if part]
    environment = {**os.environ, "OPWISE_FLAGS": ",".join([*given, *own])}
    environment.pop("OPWISE_TUNING_OWNER", None)
    with tempfile.TemporaryDirectory() as folder:
        told = environment["OPWISE_TUNING_TOLD"] = os.path.join(folder, "told")
        done = subprocess.run([sys.executable, str(script), *args], env=environment)
        if not os.path.exists(told):
            click.echo("no advice: the program compiled no function, or was killed", err=True)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
