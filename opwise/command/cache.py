"""The subcommand ``cache``: shows and clears the cache of kernels, graphs and converted modules."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

import click

from opwise.command import tables
from opwise.config import config
from opwise.config.folders import default_base_compiledir
from opwise.linkers import kernelcache
from opwise.linkers.trusted import Folder, Refused
from opwise.profiling import requests
from opwise.profiling.reports.wording import counted

#: how many damaged files are named
_LISTED = 10


@click.group(invoke_without_command=True, short_help="Show, verify or clear the cache.")
@click.pass_context
def cache(context: click.Context) -> None:
    """Show the folder of compiled kernels, optimized graphs and converted modules, and its size."""
    if context.invoked_subcommand is None:
        context.invoke(info)


@cache.command(short_help="Show the folder, and how much is in it.")
def info() -> None:
    """Show the folder of compiled kernels, optimized graphs and converted modules, and its size."""
    folder, files = _contents()
    kinds = Counter(file.kind for file in files)
    total = sum(file.size for file in files)
    most = config.compiledir_bytes
    bound = "" if most < 0 else f" of at most {most / 1e6:.1f}"
    read_only = "" if folder is None or folder.is_writable() else " (read-only)"
    click.echo(
        f"{config.compiledir}: {', '.join(counts(kinds))}, {total / 1e6:.1f}{bound} MB{read_only}"
    )
    others = [each for each in kernelcache.folders() if each != config.compiledir]
    if others:
        count, size = _measured(others)
        click.echo(
            f"{counted(len(others), 'other folder')} in {config.base_compiledir}: {count} files, "
            f"{size / 1e6:.1f} MB, of other versions or platforms "
            "(opwise cache clear --all deletes them too)"
        )


@cache.command("list", short_help="List the files, those that were used last first.")
@click.option("-n", default=None, type=click.IntRange(0), metavar="N", help="Show N files only.")
def list_files(n: int | None) -> None:
    """List the files, those that were used last first. The day of the last use is recorded."""
    _, files = _contents()
    table = tables.Table(
        [tables.name("last used"), tables.name("kind"), tables.Column("kB"), tables.text("file")]
    )
    for file in sorted(files, key=lambda file: -file.used)[:n]:
        day = datetime.fromtimestamp(file.used).date().isoformat()
        table.add([day, file.kind, f"{file.size / 1e3:.1f}", file.name])
    tables.show(table)


@cache.command(short_help="Check that no file is damaged.")
def verify() -> None:
    """Compare the content of each file with its digest; the exit status is 1 if one is damaged."""
    folder, files = _contents()
    damaged = [f.name for f in files if folder and not kernelcache.is_whole(folder, f.name)]
    if damaged:
        listed = [*damaged[:_LISTED], *["..."] * (len(damaged) > _LISTED)]
        raise click.ClickException(
            f"{len(damaged)} of {counted(len(files), 'file')} in {config.compiledir} "
            f"{'is' if len(damaged) == 1 else 'are'} damaged, or of an earlier opwise. Programs do "
            "not use such files, and make them again: "
            f"{', '.join(listed)}"
        )
    click.echo(f"{counted(len(files), 'file')} checked, none is damaged")


def counts(kinds: Mapping[str, int]) -> list[str]:
    """Return {kind of ``kernelcache.KINDS``: number} as texts; modules only if there are any."""
    found = [counted(kinds.get(kind, 0), kind) for kind in ("kernel", "graph")]
    if kinds.get("module"):
        found.append(counted(kinds["module"], "converted module"))
    return found


def _measured(paths: list[str]) -> tuple[int, int]:
    """Return how many files of the cache are in folders, and their bytes together."""
    count = size = 0
    for path in paths:
        try:
            files = kernelcache.files(Folder(path, make=False))
        except (Refused, OSError):
            continue
        count, size = count + len(files), size + sum(file.size for file in files)
    return count, size


def _contents() -> tuple[Folder | None, list[kernelcache.CachedFile]]:
    """Return the cache folder, None if it does not exist, and its files."""
    folder = _folder()
    return folder, [] if folder is None else kernelcache.files(folder)


def _folder() -> Folder | None:
    """Return the cache folder, or None if it does not exist; an unsafe folder is an error."""
    try:
        return kernelcache.existing()
    except Refused as error:
        remedy = f". To use it again, {error.remedy}" if error.remedy else ""
        raise click.ClickException(
            f"{config.compiledir} is not used as the cache: {error.reason}{remedy}"
        ) from None


@cache.command(short_help="Delete the kernels, graphs and converted modules.")
@click.option(
    "--all", "every", is_flag=True,
    help="Delete the files of every version of opwise and Python, and the folders, as after "
    "uninstalling opwise.",
)  # fmt: skip
def clear(every: bool) -> None:
    """Delete compiled kernels, optimized graphs and converted modules.

    Programs make them again when needed. Other files in the folder are kept.
    """
    if every:
        _clear_all()
        return
    folder = _folder()
    deleted, failed = (Counter(), 0) if folder is None else kernelcache.clear(folder)
    click.echo(f"{' and '.join(counts(deleted))} deleted")
    if failed:
        raise click.ClickException(
            f"{counted(failed, 'file')} in {config.compiledir} cannot be deleted: "
            "make the folder writable"
        )


def _clear_all() -> None:
    """Delete what opwise has written into ``base_compiledir``, and folders that are empty then."""
    deleted: Counter[str] = Counter()
    failed = []
    for path in kernelcache.folders():
        try:
            of_folder, kept = kernelcache.remove(path)
        except (Refused, OSError) as error:
            failed.append(str(error))
            continue
        deleted.update(of_folder)
        if kept:
            failed.append(f"{kept} files in {path}: make the folder writable")
    requests.remove_ended()
    base = config.base_compiledir
    if base == default_base_compiledir():  # another one is the user's own
        kernelcache.remove_if_empty(base)
    click.echo(f"{' and '.join(counts(deleted))} deleted")
    if failed:
        raise click.ClickException(f"some files cannot be deleted: {'; '.join(failed)}")
    left = sorted(os.listdir(base)) if os.path.isdir(base) else []
    if left:
        listed = ", ".join([*left[:_LISTED], *["..."] * (len(left) > _LISTED)])
        click.echo(f"kept in {base}: {listed} (of other programs, or of one that runs)")
    elif not os.path.isdir(base):
        click.echo(f"{base} is removed")
