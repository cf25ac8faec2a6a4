"""What subcommands take and give: files of profiles, and the environment of a program under one."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import click

from opwise.config import check_setting, parse_config_string
from opwise.errors import ProfileFormatError
from opwise.profiling.files import printable
from opwise.profiling.merge import merge
from opwise.profiling.profile import Profile

#: a file of a profile, or a folder of several
PROFILES = click.Path(exists=True, path_type=Path)
#: which functions of a profile are meant
FUNCTION = click.option(
    "--function", "functions", multiple=True, metavar="NAME",
    help="Only the function of this name; can be given several times.",
)  # fmt: skip
#: a file to write
OUT = click.Path(dir_okay=False, path_type=Path)


def runs(path):
    """Return the Profiles in a file, or in the files of a folder, by name.

    Of a folder, what is no valid profile is left out, with a warning on stderr.
    """
    if not path.is_dir():
        return [_loaded(path)]
    found, skipped = [], []
    for one in members(path):
        try:
            found.append(Profile.load(one))
        except (ProfileFormatError, OSError) as error:
            skipped.append(str(error))
    for reason in skipped[:_SHOWN]:
        click.echo(f"skipped: {printable(reason)}", err=True)
    if len(skipped) > _SHOWN:
        click.echo(f"skipped: {len(skipped) - _SHOWN} more files", err=True)
    if not found:
        what = "no profile" if skipped else "no file that ends in .json"
        raise click.ClickException(f"{printable(str(path))} holds {what}")
    return found


#: how many files that were left out are named
_SHOWN = 5


def members(folder):
    """Return the files in a folder that may be profiles, by name."""
    return sorted(folder.glob("*.json"))


def one(paths):
    """Return the Profile of one file, or what is in several merged into one."""
    found = [profile for path in paths for profile in runs(path)]
    return found[0] if len(found) == 1 else merge(found)


def only(profile, names):
    """Return a Profile of the functions with some names; of all where there is no name."""
    for name in names:
        if not any(f.name == name for f in profile.functions):
            there = ", ".join(dict.fromkeys(f.name for f in profile.functions)) or "none"
            raise click.ClickException(
                f"no function is called {printable(name)}; there are: {there}"
            )
    functions = tuple(f for f in profile.functions if not names or f.name in names)
    return replace(profile, functions=functions)


def _loaded(path):
    try:
        return Profile.load(path)
    except (ProfileFormatError, OSError) as error:
        raise click.ClickException(printable(str(error))) from None


def check_output(path, *inputs):
    """Refuse to write a file that is, or is in, one of the inputs: that one would be lost."""
    for given in inputs:
        for one in [given, *members(given)] if given.is_dir() else [given]:
            with contextlib.suppress(OSError):  # one of them is not there
                if path.samefile(one):
                    raise click.ClickException(
                        f"{printable(str(path))} is one of the inputs, and would be overwritten: "
                        "name another file"
                    )


def written(path, write, *inputs):
    """Have a function write a file, which must be none of the inputs, and say so on stderr."""
    check_output(path, *inputs)
    try:
        write(path)
    except OSError as error:
        raise click.ClickException(
            f"{printable(str(path))} cannot be written: {printable(str(error))}"
        ) from None
    click.echo(f"wrote {printable(str(path))}", err=True)


def check_flags(flags, mode=None, option="--flags"):
    """Raise click.BadParameter for a value that a flag does not take, before a program is run.

    Flags that are not known are not refused: the program may define them.
    """
    try:
        given = parse_config_string(flags, issue_warnings=False)
        for name, value in given.items():
            check_setting(name, value)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    try:
        if mode:
            check_setting("mode", mode)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--mode") from None


def profiled(output, mode=None, flags="", memory=True):
    """Return the environment in which a program leaves the profile of all it does in a file.

    mode, flags: those of functions that name none, as in OPWISE_FLAGS; memory: whether to measure
    that too. Raises click.BadParameter for a name of a file that cannot stand in a flag.
    """
    if output.suffix != ".json":
        raise click.BadParameter(f"{output} does not end in .json", param_hint="--output")
    if "," in str(output):
        raise click.BadParameter(f"{output} has a comma, which ends a flag", param_hint="--output")
    check_flags(flags, mode)
    own = ["profile=True", f"profile_memory={memory}", f"profiling.destination={output}"]
    if mode:
        own.append(f"mode={mode}")
    given = [part for part in (os.environ.get("OPWISE_FLAGS"), flags) if part]
    environment = {**os.environ, "OPWISE_FLAGS": ",".join([*given, *own])}
    environment.pop("OPWISE_PROFILE_OWNER", None)
    return environment
