"""The subcommand ``cache``: shows and clears the cache of compiled kernels and optimized graphs."""

from __future__ import annotations

import click

from opwise.config import config
from opwise.linkers import kernelcache
from opwise.linkers.trusted import Folder, Refused


@click.group(invoke_without_command=True, short_help="Show or clear the cache.")
@click.pass_context
def cache(context: click.Context) -> None:
    """Show the folder of compiled kernels and optimized graphs, how many it has, and their size."""
    if context.invoked_subcommand is None:
        folder = _folder()
        kernels = [] if folder is None else kernelcache.kernels(folder)
        graphs = [] if folder is None else kernelcache.graphs(folder)
        total = sum(size for _, size in kernels + graphs)
        most = config.compiledir_bytes
        bound = "" if most < 0 else f" of at most {most / 1e6:.1f}"
        read_only = "" if folder is None or folder.is_writable() else " (read-only)"
        click.echo(
            f"{config.compiledir}: {len(kernels)} kernels, {len(graphs)} graphs, "
            f"{total / 1e6:.1f}{bound} MB{read_only}"
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


@cache.command(short_help="Delete the kernels and graphs.")
def clear() -> None:
    """Delete the compiled kernels and optimized graphs. Programs make them again when needed.

    Other files in the folder are kept.
    """
    folder = _folder()
    kernels, graphs, failed = (0, 0, 0) if folder is None else kernelcache.clear(folder)
    click.echo(f"{kernels} kernels and {graphs} graphs deleted")
    if failed:
        raise click.ClickException(
            f"{failed} files in {config.compiledir} cannot be deleted: make the folder writable"
        )
