"""The subcommands: their arguments, what they print, their exit codes."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
from click import shell_completion

from opwise.command import diff as comparing
from opwise.command import doctor as examine
from opwise.command import files, overview, tables
from opwise.command.export import export
from opwise.command.tune import tune
from opwise.config import config
from opwise.errors import DeviceError, lacks
from opwise.linkers import kernelcache, probe
from opwise.linkers.trusted import Refused
from opwise.profiling import records
from opwise.profiling.collection import no_collection
from opwise.profiling.profile import Profile
from opwise.profiling.reports import profilestats
from opwise.profiling.roofline import QUIET
from opwise.version import __version__


class _Commands(click.Group):
    """The subcommands; says so when nothing more can be written to stdout, as on a full disk."""

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
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a program and keep the profile of it.",
)
@click.option("--mode", help="The mode of functions that name none, as FAST_RUN.")
@click.option("--flags", default="", metavar="NAME=VALUE,...", help="Flags, as in OPWISE_FLAGS.")
@click.option("--memory/--no-memory", default=True, help="Whether to measure memory too.")
@click.option(
    "--limits/--no-limits", default=True,
    help="Whether to tell what the machine could do at best; measured once, in a second or two.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The file for the profile; otherwise the script's name and .profile.json.",
)  # fmt: skip
@click.argument("script", type=files.SCRIPT)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(mode, flags, memory, limits, output, script, args):
    """Run SCRIPT with its ARGS as Python would, and keep the profile of all its functions.

    Programs that import theano run as they are. The exit code is that of the program. Processes
    that it starts write a file each, with their number in the name.
    """
    output = (output or Path(f"{script.stem}.profile.json")).absolute()
    environment = files.profiled(output, mode, flags, memory)
    if not os.access(output.parent, os.W_OK):
        raise click.BadParameter(f"{output.parent} cannot be written to", param_hint="--output")
    before = _changed(output)
    if limits:
        _measured()
        _measure_device(flags)
    done = subprocess.run([sys.executable, str(script), *args], env=environment)
    if _changed(output) != before:
        _tell_about(output)
    else:
        click.echo("no profile was kept: the program compiled no function, or was killed", err=True)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _changed(path):
    """Return what tells a file from one that took its place, None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _measured(refresh=False):
    """Return what this machine can do at best, measured if that was not done while it was quiet."""
    known = probe.known()
    if refresh or known is None or known.quiet < QUIET:
        click.echo("measuring what this machine can do at best...", err=True)
        return probe.machine(refresh=True)
    return known


def _measure_device(flags):
    """Have it measured, unless that was done, what the device can do that a program asks for.

    In a process of its own: one that had used the device would keep memory of it.
    """
    asked = ",".join(filter(None, (os.environ.get("OPWISE_FLAGS"), flags)))
    if config.device == "cpu" and "device=" not in asked:
        return
    flags = ",".join(filter(None, (asked, "print_active_device=False")))
    command = [sys.executable, "-m", "opwise.gpu.probe"]
    subprocess.run(command, env={**os.environ, "OPWISE_FLAGS": flags})


def _devices(profile):
    """Return what the devices of a Profile can do at best, measured anew where they are."""
    gpu, found = importlib.import_module("opwise.gpu.device"), dict(profile.devices)
    for name in sorted({a.device for a in profile.applys if a.device}):
        try:
            device = gpu.device(gpu.index_of(name))
        except DeviceError as error:
            click.echo(f"{name} is not measured: {error}", err=True)
            continue
        click.echo(f"measuring what {device.name} can do at best...", err=True)
        found[name] = importlib.import_module("opwise.gpu.probe").limits(device, refresh=True)
    return tuple(found.items())


def _tell_about(output):
    profile = Profile.load(output)
    click.echo(
        f"{overview.counts(profile)}, {profile.local_ns * 1e-9:.3f} s in "
        f"their Applys: {output}\nlook at it: opwise report {output}",
        err=True,
    )


# --- report ---------------------------------------------------------------------------------------


@main.command(short_help="Show a profile, or several as one.")
@click.option(
    "--form", type=click.Choice(["table", "text", "csv"]), default="table", show_default=True,
    help="table: at a glance; text: every section, as Theano; csv: a row for each Apply.",
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
def report(form, sort, html, rows, limits, functions, paths):
    """Show the profile in FILES; several, or those of a folder, are merged."""
    profile = files.only(files.one(paths), functions)
    if limits:
        machine = _measured(refresh=True)
        profile = replace(profile, machine=machine, devices=_devices(profile))
    if html:
        files.written(html, profile.report)
        return
    if form == "csv":
        records.write_csv(profile, sys.stdout)
        return
    if form == "table":
        overview.show(profile, rows, sort)
        return
    width = shutil.get_terminal_size().columns if tables.is_terminal() else 512
    for part in _parts(profile):
        click.echo(profilestats.summary(part, rows, rows, width), nl=False)


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
@click.argument("script", required=False, type=files.SCRIPT)
def doctor(script):
    """Say which compiler, BLAS, processors, cache and GPU opwise finds.

    With SCRIPT also which of the names of theano that it uses are missing; then the exit code is 1.
    """
    for name, value in examine.machine().items():
        click.echo(f"{name:12}{value}")
    if script is None:
        return
    try:
        used, missing = examine.names(script)
    except SyntaxError as error:
        raise click.ClickException(f"{script} is no Python that runs here: {error}") from None
    click.echo(f"{script}: {len(used)} names of theano, {len(missing)} missing")
    for name, line in missing:
        click.echo(f"  {script}:{line}: {name}: {lacks(name)}")
    if missing:
        sys.exit(1)


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


@main.command(short_help="Print what makes a shell complete opwise's words.")
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell):
    """Print the lines that make SHELL complete subcommands, options and files.

    For bash: opwise completion bash >> ~/.bashrc
    """
    kind = shell_completion.get_completion_class(shell)
    click.echo(kind(main, {}, "opwise", "_OPWISE_COMPLETE").source())
