"""Tests import what users import: a module inside opwise may move, a public name may not."""

import ast
import functools
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from opwise.names import record
from opwise.names.lookup import in_theano, is_made
from opwise.tensor.elsewhere import public as offered

pytestmark = pytest.mark.null

TESTS = Path(__file__).resolve().parent

#: the modules that users import from; of those with an object, the first one is its public name
PUBLIC = """
opwise opwise.tensor opwise.config opwise.errors opwise.gradient opwise.scalar opwise.sparse
opwise.loops opwise.nn opwise.linalg opwise.random opwise.testing opwise.compile opwise.ifelse
opwise.printing opwise.typed_list opwise.tensor.nnet opwise.tensor.nlinalg opwise.tensor.slinalg
opwise.tensor.extra_ops opwise.tensor.fft opwise.tensor.raw_random
opwise.tensor.shared_randomstreams opwise.sandbox.rng_mrg opwise.compile.nanguardmode
opwise.profiling.profile opwise.tensor.signal.pool opwise.tensor.nnet.abstract_conv
opwise.tensor.nnet.blocksparse opwise.tensor.nnet.bn opwise.tensor.nnet.ctc
opwise.tensor.nnet.neighbours opwise.tensor.nnet.spatialtf
""".split()

#: these need packages that may be missing; their own names are public, and no others are theirs
OPTIONAL = ("opwise.distributed", "opwise.gpu", "opwise.pytensor")

#: programs as others wrote them, and what was recorded of them
RECORDED = ("golden", "suites", "py2/old", "py2/data")

_COMPILER = "unit tests of Ops, rules, steps and kernels look at what no program sees"
_TABLES = "tests take their cases from tables: a case is added with a row"
_PROFILES = "profiles are plain data, which tests make, merge and print without a run"
_PROGRAMS = "what the command runs, without a process for each test"
_CHECKERS = "what looks for faults in opwise is tested with faults of its own"

#: what tests import that has no public name: folder -> why
INSIDES = {
    **dict.fromkeys(
        ("compile", "distributed", "frontends", "gpu", "graph", "legacy", "linkers", "loops",
         "modes", "optimizers", "pytensor", "sparse", "tensor"), _COMPILER),
    **dict.fromkeys(("config", "names", "scalar"), _TABLES),
    **dict.fromkeys(("hardware", "profiling", "tuning"), _PROFILES),
    **dict.fromkeys(("command", "notebook", "py2"), _PROGRAMS),
    **dict.fromkeys(("testing",), _CHECKERS),
}  # fmt: skip

_FROM = re.compile(r"^[ \t]*from (opwise\.[\w.]+) import (\([^)]*\)|[^\n(]+)", re.M)
_WHOLE = re.compile(r"^[ \t]*import (opwise\.[\w.]+)(?: as (\w+))?", re.M)


@functools.cache
def public_names(module):
    """Return the names of a public module, without those that Theano's only imported."""
    found = importlib.import_module(module)
    home = f"{in_theano(module)}."
    names = [] if is_made(found) else list(offered(found))
    names += [n for n, r in record.names(home[:-1]).items() if r.home.startswith(home)]
    return {name for name in names if not name.startswith("_")}


@functools.cache
def public_name(module, name):
    """Return the public name of what a module has under this name, or None."""
    having = [each for each in PUBLIC if name in public_names(each)]
    if not having or module in PUBLIC or module.startswith(OPTIONAL):
        return None
    found = getattr(importlib.import_module(module), name, None)
    if found is None or isinstance(found, ModuleType):
        return None
    same = (each for each in having if getattr(importlib.import_module(each), name, None) is found)
    return next((f"{each}.{name}" for each in same), None)


@functools.cache
def is_inside(dotted):
    """Return whether this is a module that is not public."""
    path = TESTS.parent.joinpath(*dotted.split("."))
    return dotted not in PUBLIC and (path.is_dir() or path.with_suffix(".py").exists())


def written(text):
    """Return (module, name, bound name) of what looks like an import, in texts of programs too."""
    found = [(module, "", bound or module) for module, bound in _WHOLE.findall(text)]
    for module, names in _FROM.findall(text):
        for each in re.sub(r"#.*", "", names).strip("() \t\n").split(","):
            name, _, bound = each.strip().partition(" as ")
            if name.isidentifier():
                found.append((module, name, bound or name))
    return found


def suspects(text):
    """Return {what looks like an import of an inside: the public name of all that is used of it}.

    Texts of whole programs are not parsed for it: most files have none.
    """
    found = {}
    for module, name, bound in written(text):
        whole = f"{module}.{name}".rstrip(".")
        if name and (public := public_name(module, name)):
            found[whole] = public
        elif is_inside(whole):
            used = re.findall(rf"(?<![\w.]){re.escape(bound)}\.(\w+)", text)
            names = {public_name(whole, each) for each in used if not is_inside(f"{whole}.{each}")}
            if names and None not in names:
                found[whole] = ", ".join(sorted(names))
    return found


def bypassed(text):
    """Return the imports that reach inside for what is public: [(line, what, its public name)].

    A module counts if all that is read of it is public, and it is neither changed nor passed on, as
    to ``monkeypatch``.
    """
    suspected = suspects(text)
    if not suspected:
        return []
    nodes = [*ast.walk(ast.parse(text))]
    read = {id(n.value) for n in nodes if isinstance(n, ast.Attribute | ast.Subscript)
            and isinstance(n.ctx, ast.Load)}  # fmt: skip
    named = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute) and id(n) not in read]
    passed_on = {ast.unparse(node) for node in named}
    return [
        (node.lineno, whole, suspected[whole])
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        for whole in [f"{getattr(node, 'module', '')}.{alias.name}".lstrip(".")]
        if whole in suspected
        and not (is_inside(whole) and (alias.asname or alias.name) in passed_on)
    ]


def sources():
    """Return the files of the tests, as paths relative to their folder."""
    paths = (path.relative_to(TESTS) for path in TESTS.rglob("*.py"))
    return [path for path in sorted(paths) if not str(path).startswith(RECORDED)]


def test_tests_import_public_names():
    found = [
        f"tests/{path}:{line}: import {public}, not {what}"
        for path in sources()
        for line, what, public in bypassed((TESTS / path).read_text())
    ]
    assert not found, "\n".join(found)


def test_other_imports_are_of_insides():
    """Each kind has a reason, and is needed."""
    found = {
        module.split(".")[1]
        for path in sources()
        for module, _, _ in written((TESTS / path).read_text())
        if module not in (*PUBLIC, *OPTIONAL)
    }
    assert found == INSIDES.keys()


PROGRAM = """
import opwise.tensor as T
import opwise.tensor.type
import opwise.linkers.base as base
import opwise.linkers.wrap
from opwise.compile.function import function as compiled
from opwise.graph import (
    apply,  # of which one name is used
    op,
)
from opwise.linkers.base import CLinker, _hidden
from opwise.modes import mode
from opwise.tensor.type import tensor_type
def f():
    from opwise.tensor.elemwise import Elemwise, elemwise
    monkeypatch.setattr(mode, "Mode", mode.Mode)
    op.Op = apply.Apply
    opwise.linkers.wrap.WrapLinker = opwise.linkers.wrap.DualLinker
    return opwise.tensor.type.TensorType, base.CLinker, base.build
TEXT = "from opwise.compile.function import function"
"""


def test_imports_that_bypass_public_names_are_found():
    assert bypassed(PROGRAM) == [
        (3, "opwise.tensor.type", "opwise.tensor.TensorType"),
        (6, "opwise.compile.function.function", "opwise.function"),
        (7, "opwise.graph.apply", "opwise.Apply"),
        (11, "opwise.linkers.base.CLinker", "opwise.CLinker"),
        (15, "opwise.tensor.elemwise.Elemwise", "opwise.tensor.Elemwise"),
    ]
    assert bypassed(PROGRAM.replace("op.Op = ", ""))[2:4] == [
        (7, "opwise.graph.apply", "opwise.Apply"),
        (11, "opwise.linkers.base.CLinker", "opwise.CLinker"),
    ]
    assert bypassed("import opwise.tensor as T\nfrom opwise import gradient, nn\n") == []
