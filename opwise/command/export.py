"""The subcommand ``export``: writes a profile in the format of another program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from opwise.command import files
from opwise.profiling.profile import Profile

_FORMS: dict[str, Callable[..., None]] = {
    "chrome": Profile.export_chrome_trace,
    "speedscope": Profile.export_speedscope,
}


@click.command(short_help="Convert a profile for Perfetto or speedscope.")
@click.option(
    "--form", type=click.Choice(list(_FORMS)), default="chrome", show_default=True,
    help="chrome: a timeline of the calls that the profile kept, for ui.perfetto.dev or "
    "chrome://tracing; speedscope: flame graphs, for speedscope.app.",
)  # fmt: skip
@files.FUNCTION
@click.argument("file", type=files.PROFILES)
@click.argument("out", type=files.OUT)
def export(form: str, functions: tuple[str, ...], file: Path, out: Path) -> None:
    """Convert the profile in FILE, and write it to OUT.

    If FILE is a folder, all profiles in it are merged.
    """
    files.check_output(out, file)
    profile = files.only(files.one([file]), functions)
    files.written(out, lambda path: _FORMS[form](profile, path), file)
