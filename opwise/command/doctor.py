"""The subcommand ``doctor``: what opwise finds on this computer, and what a program lacks."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import click
import numpy as np

from opwise.command import coverage, files, tables
from opwise.command.cache import counts
from opwise.command.coverage import covered
from opwise.config import config
from opwise.errors import DeviceError
from opwise.linkers import blasthreads, cbuild, kernelcache, opwise_c, resources
from opwise.linkers.trusted import Refused
from opwise.profiling.files import printable, read_limited
from opwise.profiling.reports.wording import counted
from opwise.py2 import beside, breakages, convert
from opwise.py2.convert import Parsed
from opwise.py2.names import DottedNames


@click.command(short_help="Show what opwise finds here, and what programs lack.")
@click.argument("paths", metavar="[FILES]...", nargs=-1, type=files.PROFILES)
@click.option(
    "--coverage", metavar="[MODULE]", is_flag=False, flag_value=coverage.EVERY,
    help="Count the names of Theano that work, for each of its modules, or list those of MODULE.",
)  # fmt: skip
def doctor(paths: tuple[Path, ...], coverage: str | None) -> None:
    """Show the compiler, BLAS, processors, cache and GPU that opwise finds.

    With FILES (programs, or folders of programs), also list, for each and for the modules beside
    it that it imports, the names of theano and opwise that they use and
    opwise lacks, and what they use that has gone from Python, numpy and other libraries; the exit
    status is 1 if there is any. What is wrong only for some values, such as files that Python 2
    wrote, is a note. Programs for Python 2 are examined too. With --coverage, show which
    names of Theano 1.0.5 and of all its releases since 0.6.0 work, and why the others raise.
    """
    if coverage is not None:
        for line in covered(coverage):
            tables.say(line)
        return
    for name, value in machine().items():
        click.echo(f"{name:12}{value}")
    programs = _programs(paths)
    tree = cache(_tree)  # programs of a folder import the same modules
    found = [_examined(program, tree, is_named=program in paths) for program in programs]
    followed = [
        _examined(module, tree, False, program) for module, program in _imported(programs, tree)
    ]
    without = found.count(None)
    if without:
        uses = "uses" if without == 1 else "use"
        click.echo(
            f"{without} of {counted(len(programs), 'file')} {uses} no name of theano or opwise"
        )
    if False in found + followed:
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


def _imported(
    programs: Sequence[Path], tree: Callable[[Path], ast.Module | None]
) -> Iterator[tuple[Path, Path]]:
    """Yield (module beside a program that it or such a module imports, the program)."""
    known = {path.resolve() for path in programs}
    for program in programs:
        own, folder = tree(program), program.resolve().parent
        for module in beside.imported(program, own, tree) if own is not None else ():
            if module not in known:
                known.add(module)
                if module.is_relative_to(folder):
                    yield program.parent / module.relative_to(folder), program
                else:
                    yield module, program


def _examined(
    script: Path,
    tree: Callable[[Path], ast.Module | None],
    is_named: bool,
    program: Path | None = None,
) -> bool | None:
    """Print what a program lacks; return whether it lacks nothing.

    tree: returns the syntax tree of a module beside it. is_named: whether the user named it; a file
    of a folder that uses no name of theano or opwise and lacks nothing is not printed, and None
    returned.
    program: what imports it (default: it is one).
    """
    name = printable(str(script))
    try:
        parsed = parse(script)
    except (SyntaxError, OSError, ValueError) as error:
        what = "is not Python" if isinstance(error, SyntaxError) else "cannot be read"
        click.echo(f"{name} {what}: {printable(str(error))}", err=True)
        return False
    used, missing = names_of(parsed)
    breaking, is_python2 = breakages.find(
        parsed.tree, parsed.rewritten,
        lambda: [t for t in beside.imported(script, parsed.tree, tree).values() if t is not None],
    )  # fmt: skip
    broken = [finding for finding in breaking if finding.certain]
    if not (used or broken or is_named):
        return None
    language = " is Python 2" if is_python2 else ""
    old = f", {len(broken)} that Python or libraries have given up" if broken else ""
    names = counted(len(used), "name")
    packages = " and ".join(sorted({used_.partition(".")[0] for used_ in used}, reverse=True))
    click.echo(f"{name}{language}: {names} of {packages or 'theano'}, {len(missing)} missing{old}")
    lacking = [(line, text) for text, line in missing]
    _list(name, lacking + [(finding.line, finding.text) for finding in broken])
    perhaps = [(f.line, f.text) for f in breaking if not f.certain]
    _list(name, perhaps, "note: ")
    if is_python2 or (broken and all(finding.given for finding in broken)):
        option = "--py2" if is_python2 else "--py3"
        command = shlex.quote(printable(str(program or script)))
        click.echo(f"  to run it without a change: opwise run {option} {command}")
    return not (missing or broken)


def _list(name: str, found: list[tuple[int, str]], note: str = "") -> None:
    """Print (line, text) pairs of a program, lines with equal texts together."""
    lines: dict[str, list[int]] = {}
    for line, text in sorted(found):
        lines.setdefault(text, []).append(line)
    for text, (first, *others) in lines.items():
        numbers = dict.fromkeys(others)
        also = f" (also in line {', '.join(map(str, numbers))})" if others else ""
        click.echo(f"  {name}:{first}: {note}{text}{also}")


# --- this computer --------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Return {name: text} of what opwise finds on this computer."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiler": cbuild.compiler() or "none: loops run on slower, built-in kernels",
        "vectors": _vectors(),
        "processors": str(resources.processors()),
        "BLAS": _blas(),
        "cache": _cache(),
        "GPU": _gpu(),
    }


def _vectors() -> str:
    used, best = opwise_c.VECTORS, opwise_c.PROCESSOR_VECTORS
    if used == best:
        return used
    return f"{used}, built for another processor: this one has {best}; install opwise here again"


def _blas() -> str:
    try:
        opwise_c.load_blas()
    except ImportError as error:
        return f"none: {error}"
    known = blasthreads.describe()
    about = f": {known['blas']}, {counted(known['blas_threads'], 'thread')}" if known else ""
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
    kinds = Counter(file.kind for file in kernelcache.files(folder)) if folder else Counter()
    read_only = "" if folder is None or folder.is_writable() else ", read-only"
    return f"{config.compiledir}, {', '.join(counts(kinds))}{read_only}"


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


def parse(script: Path) -> Parsed:
    """Return the syntax tree of a program for Python 3 or Python 2.

    Raises SyntaxError if it does not parse, and OSError or ValueError if it cannot be read.
    """
    text = read_limited(script)
    try:
        return convert.parse_python3(text, str(script))
    except SyntaxError as error:
        if convert.is_available():
            return convert.parse(text, str(script))
        raise SyntaxError(f"{error}; to have it examined as Python 2: {convert.INSTALL}") from None


def _tree(script: Path) -> ast.Module | None:
    """Return the syntax tree of a program, or None if it has none."""
    try:
        return parse(script).tree
    except (SyntaxError, OSError, ValueError):
        return None


def names(script: Path) -> tuple[set[str], list[tuple[str, int]]]:
    """Return what ``names_of`` returns of a script. Raises what ``parse`` raises."""
    return names_of(parse(script))


def names_of(parsed: Parsed) -> tuple[set[str], list[tuple[str, int]]]:
    """Return (names of theano and opwise that a module uses, (text, line) of the missing ones)."""
    found = DottedNames()
    found.visit(parsed.tree)
    used: dict[str, int] = {}
    for name, line in found.used:
        if name.partition(".")[0] in ("theano", "opwise"):
            used.setdefault(name, line)
    lacking = importlib.import_module("opwise.names.coverage").lacking
    texts = {(lacking(name), line) for name, line in used.items()}
    missing = [(text, line) for text, line in texts if text is not None]
    return set(used), sorted(missing, key=lambda pair: (pair[1], pair[0]))
