"""Modules of ``opwise.profiling`` import each other without circles, within functions too."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import opwise.profiling

pytestmark = pytest.mark.null

FOLDER = Path(opwise.profiling.__file__).parent


def imported(path):
    """Yield the modules of ``opwise.profiling`` that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("opwise.profiling"):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if exists(name) else node.module


def exists(name):
    parts = name.split(".")[2:]
    return FOLDER.joinpath(*parts).with_suffix(".py").exists()


def test_there_is_no_circle():
    graph = {}
    for path in FOLDER.rglob("*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        graph[".".join(("opwise", "profiling", *parts))] = set(imported(path))
    assert len(graph) > 30
    TopologicalSorter(graph).prepare()  # raises CycleError
