"""The files that subcommands read and write, and the environment of a profiled program."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from opwise.config import check_setting, parse_config_string, quoted
from opwise.errors import ProfileFormatError
from opwise.profiling.files import printable
from opwise.profiling.merge import merge
from opwise.profiling.profile import Profile
from opwise.profiling.reports.wording import counted

#: the type of an argument: a file with a profile, or a folder of such files
PROFILES: click.Path = click.Path(exists=True, path_type=Path)
#: the option that selects functions of a profile
FUNCTION = click.option(
    "--function", "functions", multiple=True, metavar="NAME",
    help="Include only the function NAME; repeat the option for several functions.",
)  # fmt: skip
#: the type of an argument: a file to write
OUT: click.Path = click.Path(dir_okay=False, path_type=Path)


def runs(path: Path) -> list[Profile]:
    """Return the Profiles in a file, or in the files of a folder, sorted by name.

    Files in a folder that are not valid profiles are skipped, with a line on stderr.
    """
    if not path.is_dir():
        return [_loaded(path)]
    found: list[Profile] = []
    skipped: list[str] = []
    for one in members(path):
        try:
            found.append(Profile.load(one))
        except (ProfileFormatError, OSError) as error:
            skipped.append(str(error))
    for reason in skipped[:_SHOWN]:
        click.echo(f"skipped: {printable(reason)}", err=True)
    if len(skipped) > _SHOWN:
        click.echo(f"skipped: {counted(len(skipped) - _SHOWN, 'more file')}", err=True)
    if not found:
        what = "no profile" if skipped else "no file that ends in .json"
        raise click.ClickException(f"{printable(str(path))} contains {what}")
    return found


#: how many skipped files, or merged programs, are named
_SHOWN = 5


def members(folder: Path) -> list[Path]:
    """Return the files in a folder that may be profiles, sorted by name."""
    return sorted(folder.glob("*.json"))


def one(paths: Iterable[Path]) -> Profile:
    """Return the Profile in one file, or the profiles in several files merged into one.

    Says so on stderr if they are of several programs, whose sums may mean nothing.
    """
    found = [profile for path in paths for profile in runs(path)]
    if len(found) == 1:
        return found[0]
    _warn_of_several_programs(found)
    merged: Profile = merge(found)
    return merged


def _warn_of_several_programs(profiles: Sequence[Profile]) -> None:
    programs = Counter(
        str(about.get("program", "")).split(" ")[0]
        for profile in profiles for about in profile.environments
    )  # fmt: skip
    del programs[""]  # profiles that a program made itself may not name one
    if len(programs) < 2:
        return
    shown = [printable(f"{name} ({n})") for name, n in programs.most_common(_SHOWN)]
    if len(programs) > _SHOWN:
        shown.append(f"{len(programs) - _SHOWN} more")
    click.echo(
        f"merged {len(profiles)} profiles of {len(programs)} programs: {', '.join(shown)}. "
        "Name the files of one program to see it alone.",
        err=True,
    )


def only(profile: Profile, names: Sequence[str]) -> Profile:
    """Return a Profile of the functions with these names; of all functions if there is no name."""
    for name in names:
        if not any(f.name == name for f in profile.functions):
            there = ", ".join(dict.fromkeys(f.name for f in profile.functions)) or "none"
            raise click.ClickException(
                f"the profile has no function {printable(name)}; its functions: {there}"
            )
    functions = tuple(f for f in profile.functions if not names or f.name in names)
    return replace(profile, functions=functions)


def _loaded(path: Path) -> Profile:
    try:
        profile: Profile = Profile.load(path)
        return profile
    except (ProfileFormatError, OSError) as error:
        raise click.ClickException(printable(str(error))) from None


def check_output(path: Path, *inputs: Path) -> None:
    """Raise ClickException if a file cannot be written, or is one of the inputs or in one of them.

    It is called before the work whose result is written.
    """
    try:
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise _cannot_write(path, error.strerror) from None
    for given in inputs:
        for one in [given, *members(given)] if given.is_dir() else [given]:
            with contextlib.suppress(OSError):  # one of them is not there
                if path.samefile(one):
                    raise click.ClickException(
                        f"{printable(str(path))} is one of the inputs and would be overwritten: "
                        "name another file"
                    )


def make_folder(path: Path) -> None:
    """Make a folder for files to write, and those above it; raise ClickException if it fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(path, error.strerror) from None
    check_output(path / "000.json")


def _cannot_write(path: Path, reason: str | None) -> click.ClickException:
    return click.ClickException(
        f"cannot write {printable(str(path))}: {printable(reason or 'unknown reason')}"
    )


def written(path: Path, write: Callable[[Path], object], *inputs: Path) -> None:
    """Call ``write(path)`` and report the file on stderr; refuse to overwrite one of the inputs."""
    check_output(path, *inputs)
    try:
        write(path)
    except OSError as error:
        raise _cannot_write(path, str(error)) from None
    click.echo(f"wrote {printable(str(path))}", err=True)


def check_flags(flags: str, mode: str | None = None, option: str = "--flags") -> None:
    """Raise click.BadParameter for a value that a flag does not accept, before a program is run.

    Unknown flags pass: the program may define them.
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


def profiled(
    output: Path, mode: str | None = None, flags: str = "", memory: bool = True
) -> dict[str, str]:
    """Return the environment in which a program profiles all its functions and writes ``output``.

    mode: of functions that are compiled without one. flags: as in OPWISE_FLAGS. memory: profile it
    too. Raises click.BadParameter for a file that does not end in .json, and for wrong flags.
    """
    if output.suffix != ".json":
        raise click.BadParameter(f"{output} does not end in .json", param_hint="--output")
    check_flags(flags, mode)
    own = ["profile=True", f"profile_memory={memory}"]
    own.append(f"profiling.destination={quoted(str(output))}")
    if "profiling.signal" not in _given(flags):
        own.append("profiling.signal=SIGUSR1")
    if mode:
        own.append(f"mode={quoted(mode)}")
    environment = with_flags(flags, *own)
    environment.pop("OPWISE_PROFILE_OWNER", None)
    return environment


#: the folder of what Python runs before a program that is sampled
_STARTUP = Path(__file__).with_name("startup")
#: milliseconds from one sample to the next
_PERIOD = 10


def sampled(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment in which a profiled program is also sampled, from its first line on.

    A flag ``profiling.sampling`` in it decides how often; 0 means never.
    """
    set_ = parse_config_string(environment.get("OPWISE_FLAGS", ""), issue_warnings=False)
    period = float(set_.get("profiling.sampling", _PERIOD))
    if period <= 0:
        return environment
    path = environment.get("PYTHONPATH")
    return {
        **environment,
        "OPWISE_FLAGS": f"{environment['OPWISE_FLAGS']},profiling.sampling={period:g}",
        "OPWISE_SAMPLING_PERIOD": str(round(period * 1e6)),
        "PYTHONPATH": os.pathsep.join([str(_STARTUP), *([path] if path else [])]),
    }


def _given(flags: str) -> set[str]:
    """Return the names of the flags that the environment, or the text of an option, sets."""
    texts = (os.environ.get("OPWISE_FLAGS", ""), os.environ.get("THEANO_FLAGS", ""), flags)
    return {name for text in texts for name in parse_config_string(text, issue_warnings=False)}


def with_flags(*flags: str) -> dict[str, str]:
    """Return the environment of this process with more flags in OPWISE_FLAGS."""
    parts = filter(None, (os.environ.get("OPWISE_FLAGS"), *flags))
    return {**os.environ, "OPWISE_FLAGS": ",".join(parts)}
