"""The subcommand ``report``: shows a profile, or several merged into one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import click

from opwise.command import files, groups, measuring, overview, tables
from opwise.profiling import jsonreports, markdown, tabular
from opwise.profiling.profile import Profile
from opwise.profiling.reports import profilestats

#: columns of the text form, at most; Theano cuts its lines there
_TEXT_WIDTH = 512


@click.command(short_help="Show where the time and memory of a profile went.")
@click.option(
    "--form", type=click.Choice(["table", "text", "csv", "json", "markdown"]), default="table",
    show_default=True,
    help="table: an overview; text: every section, in Theano's format; csv: a row for each Apply; "
    "json: everything, for programs; markdown: for a comment on a pull request.",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(groups.BY), default="apply", show_default=True,
    help="Group the rows of table and markdown. shapes: by Op and the shapes of its inputs.",
)  # fmt: skip
@click.option(
    "--sort", type=click.Choice(overview.SORTS), default="time", show_default=True,
    help="Sort the table by time taken, by the time without slow runs (median times runs), or by "
    "the time that a perfect implementation would save.",
)  # fmt: skip
@click.option(
    "--html",
    type=files.OUT,
    help="Write an HTML page to FILE instead of printing; it works offline.",
)
@click.option(
    "-n", "--rows", type=click.IntRange(1), default=20, show_default=True,
    help="Show at most this many rows of each table.",
)  # fmt: skip
@click.option(
    "--limits", is_flag=True,
    help="Measure peak bandwidth and FLOP/s of this computer now, and compare with those instead "
    "of the limits in the profile.",
)  # fmt: skip
@files.FUNCTION
@click.argument("paths", metavar="FILES...", nargs=-1, required=True, type=files.PROFILES)
def report(
    form: str,
    by: str,
    sort: str,
    html: Path | None,
    rows: int,
    limits: bool,
    functions: tuple[str, ...],
    paths: tuple[Path, ...],
) -> None:
    """Show the profile in FILES.

    Several files, or all profiles in a folder, are merged into one profile.
    """
    if html:
        files.check_output(html, *paths)
    profile = files.only(files.one(paths), functions)
    if limits:
        devices = measuring.gpus_of_profile(profile)
        profile = replace(profile, machine=measuring.cpu(refresh=True), devices=devices)
    if html:
        files.written(html, profile.report, *paths)
    else:
        _show(profile, form, by, sort, rows)


def _show(profile: Profile, form: str, by: str, sort: str, rows: int) -> None:
    """Print a profile in a form."""
    if form == "csv":
        tabular.write_csv(profile, sys.stdout)
    elif form == "json":
        click.echo(json.dumps(jsonreports.report(profile), indent=1))
    elif form == "markdown":
        click.echo(markdown.report(profile, by, rows), nl=False)
    elif form == "text":
        width = min(tables.width(), _TEXT_WIDTH)
        for part in _parts(profile):
            text = profilestats.summary(part, rows, rows, width, marks_cuts=width < _TEXT_WIDTH)
            click.echo(text, nl=False)
    elif by == "apply":
        overview.show(profile, rows, sort)
    else:
        groups.show(profile, by, rows)


def _parts(profile: Profile) -> list[Profile]:
    """Return a Profile of each function that was called, slowest first, and one of all."""
    called = [f for f in profile.functions if f.calls]
    if len(profile.functions) == 1:  # as in a program, the message is the function's name
        return [replace(profile, message=profile.message or profile.functions[0].name)]
    if len(called) < 2:
        return [profile]
    called.sort(key=lambda f: -f.call_ns)
    total = f"the sum of {len(profile.functions)} functions"
    return [
        *(replace(profile, functions=(f,), message=f.name) for f in called),
        replace(profile, message=profile.message or total),
    ]
