"""The subcommand that writes a profile in the formats of other programs."""

from __future__ import annotations

from collections.abc import Callable

import click

from opwise.command import files
from opwise.profiling.profile import Profile

_FORMS: dict[str, Callable[..., None]] = {
    "chrome": Profile.export_chrome_trace,
    "speedscope": Profile.export_speedscope,
}


@click.command(short_help="Write a profile for Perfetto or speedscope.")
@click.option(
    "--form", type=click.Choice(list(_FORMS)), default="chrome", show_default=True,
    help="chrome: kept calls on a time line; speedscope: flame graphs.",
)  # fmt: skip
@files.FUNCTION
@click.argument("file", type=files.PROFILES)
@click.argument("out", type=files.OUT)
def export(form, functions, file, out):
    """Write the profile in FILE, or those in a folder, to OUT, in the format of another program.

    Perfetto (ui.perfetto.dev) and chrome://tracing open the one, speedscope.app the other.
    """
    files.check_output(out, file)
    profile = files.only(files.one([file]), functions)
    files.written(out, lambda path: _FORMS[form](profile, path), file)
