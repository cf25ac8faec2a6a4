"""The subcommand ``doctor``: what opwise finds on this computer, and what a program lacks."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import platform
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from opwise.command import coverage, files
from opwise.command.coverage import covered
from opwise.config import config
from opwise.errors import DeviceError
from opwise.linkers import blasload, blasthreads, cbuild, kernelcache, opwise_c, resources
from opwise.linkers.trusted import Refused
from opwise.profiling.files import printable, read_limited


@click.command(short_help="Show what opwise finds here, and which names of a program it lacks.")
@click.argument("paths", metavar="[FILES]...", nargs=-1, type=files.PROFILES)
@click.option(
    "--coverage", metavar="[MODULE]", is_flag=False, flag_value=coverage.EVERY,
    help="Count the names of Theano that work, for each of its modules, or list those of MODULE.",
)  # fmt: skip
def doctor(paths: tuple[Path, ...], coverage: str | None) -> None:
    """Show the compiler, BLAS, processors, cache and GPU that opwise finds.

    With FILES (programs, or folders of programs), also list the names of theano that they use and
    opwise lacks; the exit status is 1 if there are any. With --coverage, show which names of Theano
    1.0.5 and of all its releases since 0.6.0 work, and why the others raise.
    """
    if coverage is not None:
        click.echo("\n".join(covered(coverage)))
        return
    for name, value in machine().items():
        click.echo(f"{name:12}{value}")
    programs = _programs(paths)
    found = [_examined(program, is_named=program in paths) for program in programs]
    without = found.count(None)
    if without:
        click.echo(f"{without} of {len(programs)} files use no name of theano")
    if False in found:
        sys.exit(1)


def _programs(paths: Sequence[Path]) -> list[Path]:
    """Return the programs to examine, each once: of a folder, all files that end in .py."""
    found: dict[Path, None] = {}
    for path in paths:
        inside = scripts(path) if path.is_dir() else [path]
        if not inside:
            raise click.ClickException(f"{printable(str(path))} contains no file that ends in .py")
        found.update(dict.fromkeys(inside))
    return list(found)


def _examined(script: Path, is_named: bool) -> bool | None:
    """Print which names a program lacks; return whether it lacks none, None if it uses none.

    is_named: whether the user named it; a file of a folder that uses no name is not printed.
    """
    name = printable(str(script))
    try:
        used, missing = names(script)
    except (SyntaxError, OSError) as error:
        what = "is not Python 3" if isinstance(error, SyntaxError) else "cannot be read"
        click.echo(f"{name} {what}: {printable(str(error))}", err=True)
        return False
    if not used and not is_named:
        return None
    click.echo(f"{name}: {len(used)} names of theano, {len(missing)} missing")
    for what, line in missing:
        click.echo(f"  {name}:{line}: {what}")
    return not missing


# --- this computer --------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Return {name: text} of what opwise finds on this computer."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiler": cbuild.compiler() or "none: loops run on slower, built-in kernels",
        "vectors": opwise_c.VECTORS,
        "processors": str(resources.processors()),
        "BLAS": _blas(),
        "cache": _cache(),
        "GPU": _gpu(),
    }


def _blas() -> str:
    try:
        blasload.load()
    except ImportError as error:
        return f"none: {error}"
    known = blasthreads.describe()
    about = f": {known['blas']}, {known['blas_threads']} threads" if known else ""
    return f"from scipy {importlib.import_module('scipy').__version__}{about}"


def _gpu() -> str:
    if importlib.util.find_spec("cupy") is None:
        return "none: CuPy is not installed; for CUDA 13: pip install 'cupy-cuda13x[ctk]'"
    try:
        found = importlib.import_module("opwise.gpu.runtime.device").device(0)
    except DeviceError as error:
        return f"none: {error}"
    free, total = found.memory_info()
    return f"{found.name}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free"


def _cache() -> str:
    try:
        folder = kernelcache.existing()
    except Refused as error:
        return f"{config.compiledir}, not used: {error.reason}"
    count = 0 if folder is None else len(kernelcache.kernels(folder))
    read_only = "" if folder is None or folder.is_writable() else ", read-only"
    return f"{config.compiledir}, {count} kernels{read_only}"


# --- names of a program ---------------------------------------------------------------------------


def scripts(folder: Path) -> list[Path]:
    """Return the files in a folder that end in .py, except in virtual environments and caches."""
    found: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders
            if not name.startswith((".", "__")) and not (Path(root) / name / "pyvenv.cfg").exists()
        )  # fmt: skip
        found += [Path(root) / name for name in sorted(names) if name.endswith(".py")]
    return found


def names(script: Path) -> tuple[set[str], list[tuple[str, int]]]:
    """Return (the names of theano that a script uses, (text, line) of those that opwise lacks).

    Raises SyntaxError if the script does not parse, and OSError if it cannot be read.
    """
    found = _Names()
    try:
        text = read_limited(script)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the text of the program
            tree = ast.parse(text, str(script))
        found.visit(tree)
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deep
        raise SyntaxError(str(error) or type(error).__name__) from None
    lacking = importlib.import_module("theano._coverage").lacking
    texts = {(lacking(name), line) for name, line in found.used.items()}
    missing = [(text, line) for text, line in texts if text is not None]
    return set(found.used), sorted(missing, key=lambda pair: (pair[1], pair[0]))


class _Names(ast.NodeVisitor):
    """Collects dotted names that start at an import of theano, with the first line of each."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}
        self.known: dict[str, str] = {}

    def _note(self, name: str, line: int) -> None:
        self.used.setdefault(name, line)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.split(".")[0] == "theano":
                self._note(alias.name, node.lineno)
                self.known[alias.asname or "theano"] = alias.name if alias.asname else "theano"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None or node.module.split(".")[0] != "theano":
            return
        for alias in node.names:
            name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            self._note(name, node.lineno)
            if alias.name != "*":
                self.known[alias.asname or alias.name] = name

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._dotted(node)
        if name is None:
            self.generic_visit(node)
        else:
            self._note(name, node.lineno)

    def _dotted(self, node: ast.expr) -> str | None:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.known:
            return None
        return ".".join([self.known[node.id], *reversed(parts)])
