"""What there is on a machine, and which names of a program there are."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import platform
import warnings
from pathlib import Path

import numpy as np

from opwise.config import config
from opwise.errors import DeviceError
from opwise.linkers import blasload, blasthreads, cbuild, kernelcache, opwise_c, resources
from opwise.linkers.trusted import Refused
from opwise.profiling.files import read_limited


def machine():
    """Return {name: text} of what opwise stands on."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "compiler": cbuild.compiler() or "none: kernels built with opwise are used, slower ones",
        "vectors": opwise_c.VECTORS,
        "processors": str(resources.processors()),
        "BLAS": _blas(),
        "cache": _cache(),
        "GPU": _gpu(),
    }


def _blas():
    try:
        blasload.load()
    except ImportError as error:
        return f"none: {error}"
    known = blasthreads.describe()
    about = f": {known['blas']}, {known['blas_threads']} threads" if known else ""
    return f"of scipy {importlib.import_module('scipy').__version__}{about}"


def _gpu():
    if importlib.util.find_spec("cupy") is None:
        return "none: cupy is not installed (the extra gpu brings it)"
    try:
        found = importlib.import_module("opwise.gpu.runtime.device").device(0)
    except DeviceError as error:
        return f"none: {error}"
    free, total = found.memory_info()
    return f"{found.name}, {free / 1e9:.1f} of {total / 1e9:.1f} GB free"


def _cache():
    try:
        folder = kernelcache.existing()
    except Refused as error:
        return f"{config.compiledir}, not used: {error.reason}"
    count = 0 if folder is None else len(kernelcache.kernels(folder))
    read_only = "" if folder is None or folder.is_writable() else ", read-only"
    return f"{config.compiledir}, {count} kernels{read_only}"


# --- names of a program ---------------------------------------------------------------------------


def scripts(folder):
    """Return the files in a folder that end in .py, but for those of environments and caches."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders
            if not name.startswith((".", "__")) and not (Path(root) / name / "pyvenv.cfg").exists()
        )  # fmt: skip
        found += [Path(root) / name for name in sorted(names) if name.endswith(".py")]
    return found


def names(script):
    """Return ({name of theano that a script uses}, [(those that are missing, line)]).

    Raises SyntaxError for what does not parse, and OSError.
    """
    found = _Names()
    try:
        text = read_limited(script)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the program's text, which is not ours to judge
            tree = ast.parse(text, str(script))
        found.visit(tree)
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deep
        raise SyntaxError(str(error) or type(error).__name__) from None
    missing = [(name, line) for name, line in found.used.items() if not _there(name)]
    return set(found.used), sorted(missing, key=lambda pair: (pair[1], pair[0]))


class _Names(ast.NodeVisitor):
    """Collects dotted names that start at an import of theano, with the first line of each."""

    def __init__(self):
        self.used: dict[str, int] = {}
        self.known: dict[str, str] = {}

    def _note(self, name, line):
        self.used.setdefault(name, line)

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] == "theano":
                self._note(alias.name, node.lineno)
                self.known[alias.asname or "theano"] = alias.name if alias.asname else "theano"

    def visit_ImportFrom(self, node):
        if node.level or (node.module or "").split(".")[0] != "theano":
            return
        for alias in node.names:
            name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            self._note(name, node.lineno)
            if alias.name != "*":
                self.known[alias.asname or alias.name] = name

    def visit_Attribute(self, node):
        name = self._dotted(node)
        if name is None:
            self.generic_visit(node)
        else:
            self._note(name, node.lineno)

    def _dotted(self, node):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.known:
            return None
        return ".".join([self.known[node.id], *reversed(parts)])


def _there(name):
    """Return whether a dotted name leads to something: modules first, then attributes.

    What hangs on an object that is no module or class is taken to be there: nobody knows before
    the program runs.
    """
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for k, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            try:
                importlib.import_module(".".join(parts[:k]))
            except ImportError:
                return not isinstance(value, type(ast) | type)
        value = getattr(value, part, None)
    return True
