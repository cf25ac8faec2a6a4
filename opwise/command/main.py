"""The subcommands: their arguments, what they print, their exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
from click import shell_completion

from opwise.command import diff as comparing
from opwise.command import doctor as examine
from opwise.command import files, groups, overview, programs, tables
from opwise.command.export import export
from opwise.command.programs import INTERRUPTED
from opwise.command.tune import tune
from opwise.config import config
from opwise.errors import DeviceError, ProfileFormatError, lacks
from opwise.hardware import cpu
from opwise.linkers import kernelcache
from opwise.linkers.trusted import Refused
from opwise.profiling import documents, markdown, records
from opwise.profiling.collection import no_collection
from opwise.profiling.files import printable
from opwise.profiling.profile import Profile
from opwise.profiling.reports import details, profilestats
from opwise.profiling.roofline import QUIET
from opwise.version import __version__


class _Commands(click.Group):
    """The subcommands; says so when nothing more can be written to stdout, as on a full disk."""

    def invoke(self, context):
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(INTERRUPTED)

    def main(self, *args, **kwargs):
        if sys.stdout is None:  # a shell closed it
            sys.stdout = io.StringIO()
        try:
            with contextlib.ExitStack() as at_end, no_collection():
                at_end.callback(sys.stdout.flush)
                return super().main(*args, **kwargs)
        except OSError as error:
            if error.filename is not None or error.errno is None:  # it is about something else
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if error.errno == errno.EPIPE:  # the reader has seen enough
                sys.exit(1)
            click.echo(f"Error: stdout cannot be written: {error.strerror}", err=True)
            sys.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="opwise")
def main():
    """Compile and profile array programs written in Theano's language."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that cannot be encoded is escaped
            stream.reconfigure(errors="backslashreplace")


for command in (comparing.diff, comparing.versus, export, tune):
    main.add_command(command)


# --- run ------------------------------------------------------------------------------------------


@main.command(
    context_settings=programs.SETTINGS,
    short_help="Run a program and keep the profile of it.",
)
@click.option("--mode", help="The mode of functions that name none, as FAST_RUN.")
@click.option("--flags", default="", metavar="NAME=VALUE,...", help="Flags, as in OPWISE_FLAGS.")
@click.option("--memory/--no-memory", default=True, help="Whether to measure memory too.")
@click.option(
    "--limits/--no-limits", default=True,
    help="Measure peak bandwidth and FLOP/s of this machine, once (1 to 2 s).",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file for the profile (default: the script's name and .profile.json).",
)  # fmt: skip
@programs.program
def run(mode, flags, memory, limits, output, program):
    """Run SCRIPT with its ARGS as Python would, and keep the profile of all its functions.

    Programs that import theano run as they are. The exit code is that of the program. Ctrl-C goes
    to the program; the profile up to then is kept. Processes that the program starts write a file
    each, with their number in the name.
    """
    output = (output or Path(f"{program.stem}.profile.json")).absolute()
    environment = files.profiled(output, mode, flags, memory)
    if not program.is_module:
        files.check_output(output, Path(program.name))
    if not os.access(output.parent, os.W_OK):
        raise click.BadParameter(f"{output.parent} cannot be written to", param_hint="--output")
    before = {path: _changed(path) for path in _of_processes(output)}
    if limits:
        _measured()
        _measure_device(flags)
    ended = programs.run(program.command(), environment)
    written = [path for path in _of_processes(output) if _changed(path) != before.get(path)]
    is_kept = output in written
    if ended.interrupted or ended.signal_name:
        how = "interrupted" if ended.interrupted else f"ended by {ended.signal_name}"
        click.echo(f"{how}; the profile up to then is kept" if is_kept else how, err=True)
    if is_kept:
        _describe(output)
        click.echo(f"look at it: opwise report {_shell_word(output)}", err=True)
    else:
        click.echo(f"no profile was kept: {_why_none(ended)}", err=True)
    _describe_children([path for path in written if path != output])
    failed = any(message.get("event") == "failed" for message in ended.messages)
    sys.exit(ended.exit_code or int(failed))


def _of_processes(output):
    """Return the files of the program's own process and of those that it started."""
    pattern = re.compile(rf"{re.escape(output.stem)}\.\d+{re.escape(output.suffix)}")
    try:
        children = [path for path in output.parent.iterdir() if pattern.fullmatch(path.name)]
    except OSError:  # the program has removed the folder
        return []
    return [path for path in (output, *sorted(children)) if path.exists()]


def _changed(path):
    """Return what tells a file from one that took its place."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


def _why_none(ended):
    """Return the reason why a program left no profile."""
    for message in ended.messages:
        if message.get("event") == "failed":
            return f"it cannot be written: {message.get('error')}"
    if any(message.get("event") == "nothing compiled" for message in ended.messages):
        return "the program compiled no function"
    if ended.signal_name:
        return f"the program was ended by {ended.signal_name}"
    if ended.returncode:
        return f"the program ended early, with exit code {ended.returncode}"
    return "the program imported neither theano nor opwise, or left by os._exit"


def _describe(path):
    """Say what is in the file of a profile; return the Profile."""
    profile = files.one([path])
    seconds = profile.local_ns * 1e-9
    click.echo(f"{overview.counts(profile)}, {seconds:.3f} s in their Applys: {path}", err=True)
    return profile


#: how many processes are named
_PROCESSES = 20


def _describe_children(paths):
    for path in paths[:_PROCESSES]:
        try:
            about = Profile.load(path).environment
        except (ProfileFormatError, OSError) as error:
            click.echo(printable(str(error)), err=True)
            continue
        name = f", {about['process_name']}" if about.get("process_name") else ""
        program = details.short(str(about.get("program", "")), 60)
        click.echo(printable(f"process {about.get('process')}{name} ({program}):"), err=True)
        click.echo("  ", nl=False, err=True)
        _describe(path)
    if len(paths) > _PROCESSES:
        click.echo(f"and {len(paths) - _PROCESSES} more processes", err=True)
    if paths:
        folder = paths[0].parent
        click.echo(f"all together: opwise report {_shell_word(folder)}/*.json", err=True)


def _shell_word(path):
    return shlex.quote(str(path))


def _measured(refresh=False):
    """Return what this machine can do at best, measured if that was not done while it was quiet."""
    known = cpu.known()
    if refresh or known is None or known.quiet < QUIET:
        click.echo("measuring what this machine can do at best...", err=True)
        return cpu.limits(refresh=True)
    return known


def _measure_device(flags):
    """Have it measured, unless that was done, what the device can do that a program asks for.

    In a process of its own: one that had used the device would keep memory of it.
    """
    asked = ",".join(filter(None, (os.environ.get("OPWISE_FLAGS"), flags)))
    if config.device == "cpu" and "device=" not in asked:
        return
    flags = ",".join(filter(None, (asked, "print_active_device=False")))
    command = [sys.executable, "-m", "opwise.gpu.runtime.device_peaks"]
    subprocess.run(command, env={**os.environ, "OPWISE_FLAGS": flags})


def _devices(profile):
    """Return what the devices of a Profile can do at best, measured anew where they are."""
    gpu, found = importlib.import_module("opwise.gpu.runtime.device"), dict(profile.devices)
    for name in sorted({a.device for a in profile.applys if a.device}):
        try:
            device = gpu.device(gpu.index_of(name))
        except DeviceError as error:
            click.echo(f"{name} is not measured: {error}", err=True)
            continue
        click.echo(f"measuring what {device.name} can do at best...", err=True)
        peaks = importlib.import_module("opwise.gpu.runtime.device_peaks")
        found[name] = peaks.limits(device, refresh=True)
    return tuple(found.items())


# --- report ---------------------------------------------------------------------------------------


@main.command(short_help="Show a profile, or several as one.")
@click.option(
    "--form", type=click.Choice(["table", "text", "csv", "json", "markdown"]), default="table",
    show_default=True,
    help="table: at a glance; text: every section, as Theano; csv: a row for each Apply; json: "
    "everything, for programs; markdown: for a comment of CI.",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(groups.BY), default="apply", show_default=True,
    help="What the rows of table and markdown are; shapes: Ops with inputs of some shapes.",
)  # fmt: skip
@click.option(
    "--sort", type=click.Choice(overview.SORTS), default="time", show_default=True,
    help="What comes first in the table: what took longest, or what could gain most.",
)  # fmt: skip
@click.option("--html", type=files.OUT, help="Write a page to this file, which works offline.")
@click.option("-n", "--rows", type=click.IntRange(1), default=20, show_default=True)
@click.option(
    "--limits", is_flag=True,
    help="Compare with what this machine can do at best, measured anew, not the one it ran on.",
)  # fmt: skip
@files.FUNCTION
@click.argument("paths", metavar="FILES...", nargs=-1, required=True, type=files.PROFILES)
def report(form, by, sort, html, rows, limits, functions, paths):
    """Show the profile in FILES; several, or those of a folder, are merged."""
    if html:
        files.check_output(html, *paths)
    profile = files.only(files.one(paths), functions)
    if limits:
        machine = _measured(refresh=True)
        profile = replace(profile, machine=machine, devices=_devices(profile))
    if html:
        files.written(html, profile.report, *paths)
        return
    if form == "csv":
        records.write_csv(profile, sys.stdout)
        return
    if form in ("json", "markdown"):
        show = _as_json if form == "json" else markdown.report
        click.echo(show(profile, by, rows), nl=False)
        return
    if form == "table":
        if by == "apply":
            overview.show(profile, rows, sort)
        else:
            groups.show(profile, by, rows)
        return
    width = shutil.get_terminal_size().columns if tables.is_terminal() else 512
    for part in _parts(profile):
        click.echo(profilestats.summary(part, rows, rows, width), nl=False)


def _as_json(profile, by, rows):
    return json.dumps(documents.report(profile), indent=1) + "\n"


def _parts(profile):
    """Return a Profile of each function that was called, what took longest first, and of all."""
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


# --- doctor and cache -----------------------------------------------------------------------------


@main.command(short_help="Say what opwise has here, and what a program lacks.")
@click.argument("paths", metavar="[FILES]...", nargs=-1, type=files.PROFILES)
def doctor(paths):
    """Say which compiler, BLAS, processors, cache and GPU opwise finds.

    With FILES, programs or folders of them, also which of the names of theano that they use are
    missing; then the exit code is 1.
    """
    for name, value in examine.machine().items():
        click.echo(f"{name:12}{value}")
    scripts = _scripts(paths)
    found = [_examined(script, is_named=script in paths) for script in scripts]
    without = found.count(None)
    if without:
        click.echo(f"{without} of {len(scripts)} files use no name of theano")
    if False in found:
        sys.exit(1)


def _scripts(paths):
    """Return the programs that are meant: of a folder, all that end in .py, each once."""
    found = {}
    for path in paths:
        inside = examine.scripts(path) if path.is_dir() else [path]
        if not inside:
            raise click.ClickException(f"{printable(str(path))} holds no file that ends in .py")
        found.update(dict.fromkeys(inside))
    return list(found)


def _examined(script, is_named):
    """Say which names a program lacks; return whether it lacks none, None if it uses none.

    is_named: whether the user named it; of others nothing is said where they use none.
    """
    name = printable(str(script))
    try:
        used, missing = examine.names(script)
    except (SyntaxError, OSError) as error:
        what = "is no Python that runs here" if isinstance(error, SyntaxError) else "is not read"
        click.echo(f"{name} {what}: {printable(str(error))}", err=True)
        return False
    if not used and not is_named:
        return None
    click.echo(f"{name}: {len(used)} names of theano, {len(missing)} missing")
    for lacking, line in missing:
        click.echo(f"  {name}:{line}: {lacking}: {lacks(lacking)}")
    return not missing


@main.group(invoke_without_command=True, short_help="Show or clear the cache of kernels.")
@click.pass_context
def cache(context):
    """Show where compiled kernels are kept, how many, and how large."""
    if context.invoked_subcommand is None:
        folder = _cache_folder()
        sizes = [] if folder is None else [size for _, size in kernelcache.kernels(folder)]
        most = config.compiledir_bytes
        bound = "" if most < 0 else f" of at most {most / 1e6:.1f}"
        read_only = "" if folder is None or folder.is_writable() else " (read-only)"
        click.echo(
            f"{config.compiledir}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f}{bound} MB"
            f"{read_only}"
        )


def _cache_folder():
    """Return the cache folder, None if there is none yet; a folder that is not safe is an error."""
    try:
        return kernelcache.existing()
    except Refused as error:
        remedy = f". To use it again, {error.remedy}" if error.remedy else ""
        raise click.ClickException(
            f"{config.compiledir} is not used as the cache: {error.reason}{remedy}"
        ) from None


@cache.command()
def clear():
    """Delete the compiled kernels; they are made again when they are needed.

    Other files in the folder are kept.
    """
    folder = _cache_folder()
    deleted, failed = (0, 0) if folder is None else kernelcache.clear(folder)
    click.echo(f"{deleted} kernels deleted")
    if failed:
        raise click.ClickException(
            f"{failed} files in {config.compiledir} cannot be deleted: make the folder writable"
        )


# --- completion -----------------------------------------------------------------------------------


@main.command(short_help="Print the shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell):
    """Print the completion script of SHELL: for subcommands, options and files.

    For bash: opwise completion bash >> ~/.bashrc
    """
    kind = shell_completion.get_completion_class(shell)
    click.echo(kind(main, {}, "opwise", "_OPWISE_COMPLETE").source())
