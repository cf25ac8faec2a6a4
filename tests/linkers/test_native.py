"""The Cython modules of the extension: where they are, and that they share the state of C."""

import ast
import importlib
import re
from pathlib import Path

import pytest

import opwise
from opwise.linkers import native, opwise_c

pytestmark = pytest.mark.null

LINKERS = Path(opwise.__file__).parent / "linkers"


def test_one_file_holds_all_modules():
    for name in opwise_c.MODULES:
        module = importlib.import_module(f"{native.__name__}.{name}")
        assert module.__file__ == opwise_c.__file__
        assert module.__doc__, name


def test_stubs_name_what_is_public():
    tree = ast.parse((LINKERS / "opwise_c.pyi").read_text())
    typed = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    typed |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert typed == {name for names in opwise_c.MODULES.values() for name in names}
    assert all(hasattr(opwise_c, name) for name in typed)


def test_strings_are_text():
    """Without this line old versions of Cython read a .pxd as Python 2."""
    for path in [*LINKERS.glob("*.pyx"), *LINKERS.glob("native/*.p[xy][dx]")]:
        assert path.read_text().startswith("# cython: language_level=3"), path


def reached(path, includes):
    """Return the headers of csupport that a file includes, those in headers too."""
    found, pending = set(), set(re.findall(includes, path.read_text()))
    while pending:
        name = pending.pop()
        header = LINKERS / "csupport" / name
        if name not in found and header.exists():
            found.add(name)
            pending |= set(re.findall(r'#include "(.+)"', header.read_text()))
    return found


def test_no_state_of_c_exists_twice():
    """A variable that is static in a header is another one in each file that includes it."""
    variable = re.compile(r"(?m)^static (?!inline)([^(){}]*)[;=]")
    holders = {
        path.name
        for path in (LINKERS / "csupport").glob("*.h")
        if any("const " not in found for found in variable.findall(path.read_text()))
    }
    assert "maincalls.h" in holders
    readers = [reached(path, r'#include "(.+)"') for path in LINKERS.glob("csupport/*.c")]
    readers += [reached(path, r'extern from "(.+)"') for path in LINKERS.glob("native/*.pyx")]
    counts = {name: sum(name in headers for headers in readers) for name in holders}
    assert counts == dict.fromkeys(holders, 1)
    # several modules may cimport the same .pxd
    for path in LINKERS.glob("native/*.pxd"):
        assert not reached(path, r'extern from "(.+)"') & holders, path
