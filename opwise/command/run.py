"""The subcommand ``run``: runs a program and keeps its profile."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import closing
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path

import click

from opwise.command import files, measuring, overview, programs
from opwise.command.programs import Ended, PythonProgram
from opwise.errors import ProfileFormatError
from opwise.profiling.files import printable
from opwise.profiling.live import LiveReader
from opwise.profiling.profile import Profile
from opwise.profiling.reports import wording


@click.command(
    context_settings=programs.SETTINGS,
    short_help="Run a program and write its profile.",
)
@click.option(
    "--mode", help="Set the mode of functions that are compiled without one, for example FAST_RUN."
)
@click.option(
    "--flags", default="", metavar="NAME=VALUE,...", help="Set flags, as OPWISE_FLAGS does."
)
@click.option("--memory/--no-memory", default=True, help="Profile memory too (default: yes).")
@click.option(
    "--limits/--no-limits", default=True,
    help="Measure peak bandwidth and FLOP/s of this computer after the program (1 to 2 s, once; "
    "up to three times if other programs disturb it).",
)  # fmt: skip
@click.option(
    "--sampling/--no-sampling", default=True,
    help="Look every 10 ms what the program does outside compiled functions (default: yes).",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the profile to FILE (default: SCRIPT.profile.json, without .py).",
)  # fmt: skip
@click.option(
    "--live", is_flag=True,
    help="Show the Applys that take longest while the program runs; no effect unless stderr is a "
    "terminal.",
)  # fmt: skip
@programs.program
def run(
    mode: str | None,
    flags: str,
    memory: bool,
    limits: bool,
    sampling: bool,
    output: Path | None,
    live: bool,
    program: PythonProgram,
) -> None:
    """Run SCRIPT with ARGS, as python would, and write a profile of all its functions.

    Programs that import theano need no change. The exit status is the program's. Ctrl-C goes to
    the program, and its profile up to then is written. Each process that the program starts writes
    a file of its own, with the process number in the name.
    """
    output = (output or Path(f"{program.stem}.profile.json")).absolute()
    environment = files.profiled(output, mode, flags, memory)
    if sampling:
        environment = files.sampled(environment)
    files.check_output(output, *[] if program.is_module else [Path(program.name)])
    before = {path: _version(path) for path in _profiles(output)}
    ended = _run(program, environment, live)
    written = [path for path in _profiles(output) if _version(path) != before.get(path)]
    # the profiles say whether opwise was used, and on which devices
    if limits and written and not ended.interrupted:
        measuring.add_to(written, flags)
    _report_end(ended, output, output in written)
    _describe_children(output, written)
    failed = any(message.get("event") == "failed" for message in ended.messages)
    sys.exit(ended.exit_code or int(failed))


def _run(program: PythonProgram, environment: dict[str, str], live: bool) -> Ended:
    """Run a program. live: show its Applys meanwhile, if there is a terminal for that."""
    if live:
        from opwise.command.live import LiveTerminal, is_possible

        if is_possible():
            with closing(LiveReader()) as reader:
                # bars of the program would be drawn into its lines above the table
                flags = f"{environment['OPWISE_FLAGS']},show_progress=False"
                environment = {**environment, **reader.environment(), "OPWISE_FLAGS": flags}
                return programs.run(program.command(), environment, terminal=LiveTerminal(reader))
    return programs.run(program.command(), environment)


def _profiles(output: Path) -> list[Path]:
    """Return the files of the program's own process and of those that it started."""
    pattern = re.compile(rf"{re.escape(output.stem)}\.\d+{re.escape(output.suffix)}")
    try:
        children = [path for path in output.parent.iterdir() if pattern.fullmatch(path.name)]
    except OSError:  # the program has removed the folder
        return []
    return [path for path in (output, *sorted(children)) if path.exists()]


def _version(path: Path) -> tuple[int, int]:
    """Return what differs between a file and another that replaced it."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def _report_end(ended: Ended, output: Path, is_written: bool) -> None:
    """Print how the program ended, and what is in its profile or why there is none."""
    if ended.interrupted or ended.signal_name:
        how = "interrupted" if ended.interrupted else f"ended by {ended.signal_name}"
        if is_written:
            then = "then" if _wrote_at_end(ended) else "the last `opwise ask`"
            how = f"{how}; the profile up to {then} was written"
        click.echo(how, err=True)
    if is_written:
        describe(output)
        click.echo(f"to read it: opwise report {shell_word(output)}", err=True)
    else:
        click.echo(f"no profile was written: {_why_none(ended)}", err=True)


def _wrote_at_end(ended: Ended) -> bool:
    """Return whether a program that a signal ended wrote a profile as it ended."""
    return ended.interrupted or any(m.get("event") == "written" for m in ended.messages)


def _why_none(ended: Ended) -> str:
    """Return the reason why a program wrote no profile."""
    for message in ended.messages:
        if message.get("event") == "failed":
            return f"cannot write the file: {message.get('error')}"
    if any(message.get("event") == "nothing compiled" for message in ended.messages):
        return "the program compiled no function, or only under DebugMode"
    if ended.signal_name:
        return f"the program was ended by {ended.signal_name}"
    if ended.returncode:
        return f"the program ended early, with exit status {ended.returncode}"
    return "the program imported neither theano nor opwise, or ended by os._exit"


def describe(path: Path) -> None:
    """Print what is in the file of a profile."""
    profile = files.one([path])
    seconds = profile.local_ns * 1e-9
    click.echo(
        f"{overview.counts(profile)}, {seconds:.3f} s in their Applys: {_short(path)}", err=True
    )


#: at most how many processes are listed
_PROCESSES = 20


def _describe_children(output: Path, written: list[Path]) -> None:
    """Print what is in the profiles of processes that the program started.

    output: the file of its own process. written: all files of this run.
    """
    paths = [path for path in written if path != output]
    for path in paths[:_PROCESSES]:
        try:
            about = Profile.load(path).environment
        except (ProfileFormatError, OSError) as error:
            click.echo(printable(str(error)), err=True)
            continue
        name = f", {about['process_name']}" if about.get("process_name") else ""
        program = wording.short(str(about.get("program", "")), 60)
        click.echo(printable(f"process {about.get('process')}{name} ({program}):"), err=True)
        click.echo("  ", nl=False, err=True)
        describe(path)
    if len(paths) > _PROCESSES:
        more = wording.counted(len(paths) - _PROCESSES, "more process", "more processes")
        click.echo(f"and {more}", err=True)
    if paths:
        click.echo(f"all together: opwise report {_shell_words(output, written)}", err=True)


#: as many files are named one by one, rather than by a pattern
_NAMED = 4


def _shell_words(output: Path, written: list[Path]) -> str:
    """Return words by which a shell finds the files of a run, and no others."""
    children = [path for path in written if path != output]
    if len(children) > _NAMED:
        start, pattern = output.with_suffix(""), f".[0-9]*{output.suffix}"
        found = {path for path in output.parent.iterdir()
                 if fnmatchcase(path.name, escape(start.name) + pattern)}  # fmt: skip
        if found == set(children):  # none is left of an earlier run
            own = [shell_word(output)] if output in written else []
            return " ".join([*own, f"{shell_word(start)}{pattern}"])
    return " ".join(map(shell_word, written))


def shell_word(path: Path) -> str:
    """Return a path as a word that a shell reads; no command takes it for an option."""
    return shlex.quote(_short(path))


def _short(path: Path) -> str:
    """Return a path relative to the current folder if it is below it."""
    short = wording.short_path(str(path))
    return str(path) if short.startswith("-") else short
