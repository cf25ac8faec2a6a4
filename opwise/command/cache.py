"""The subcommand ``cache``: shows and clears the cache of compiled kernels."""

from __future__ import annotations

import click

from opwise.config import config
from opwise.linkers import kernelcache
from opwise.linkers.trusted import Folder, Refused


@click.group(invoke_without_command=True, short_help="Show or clear the cache of kernels.")
@click.pass_context
def cache(context: click.Context) -> None:
    """Show the folder of compiled kernels, how many it contains, and their size."""
    if context.invoked_subcommand is None:
        folder = _folder()
        sizes = [] if folder is None else [size for _, size in kernelcache.kernels(folder)]
        most = config.compiledir_bytes
        bound = "" if most < 0 else f" of at most {most / 1e6:.1f}"
        read_only = "" if folder is None or folder.is_writable() else " (read-only)"
        click.echo(
            f"{config.compiledir}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f}{bound} MB"
            f"{read_only}"
        )


def _folder() -> Folder | None:
    """Return the cache folder, or None if it does not exist; an unsafe folder is an error."""
    try:
        return kernelcache.existing()
    except Refused as error:
        remedy = f". To use it again, {error.remedy}" if error.remedy else ""
        raise click.ClickException(
            f"{config.compiledir} is not used as the cache: {error.reason}{remedy}"
        ) from None


@cache.command(short_help="Delete the compiled kernels.")
def clear() -> None:
    """Delete the compiled kernels. Programs compile them again when they need them.

    Other files in the folder are kept.
    """
    folder = _folder()
    deleted, failed = (0, 0) if folder is None else kernelcache.clear(folder)
    click.echo(f"{deleted} kernels deleted")
    if failed:
        raise click.ClickException(
            f"{failed} files in {config.compiledir} cannot be deleted: make the folder writable"
        )
