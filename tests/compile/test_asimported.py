"""A program that replaced something in opwise neither writes nor takes graphs of others."""

import importlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import opwise
import theano
import theano.tensor as T
from opwise.compile import asimported
from opwise.scalar import Add
from opwise.tensor import Dot, Elemwise, Sum, elemwise

pytestmark = pytest.mark.usefixtures("only_own_rewrites", "cached")


def folded():
    """A function of a sum that rewriting computes."""
    x = T.dvector("x")
    return theano.function([x], x + (T.constant(np.arange(3.0)) + 1))


def is_cached(f):
    return f.compile_report.graph_cached


def wrong(self, node, inputs, outputs):
    outputs[0][0] = np.asarray(inputs[0]) + 41


REPLACED = [
    (Elemwise, "perform", wrong),
    (Elemwise, "infer_shape", lambda self, node, shapes: shapes[:1]),
    (Elemwise, "perform", mock.DEFAULT),
    (Sum, "perform", wrong),  # which it inherits
    (Sum, "c_code_of_mine", wrong),
    (Dot, "make_node", staticmethod(Dot.make_node)),
    (Elemwise, "__eq__", object.__eq__),
    (Add, "impl", lambda self, *inputs: 42.0),
    (Add, "identity", 7),
    (elemwise, "thread_flags", lambda *shapes: None),
    (elemwise, "np", mock.DEFAULT),
    (elemwise, "len", lambda value: 1),  # instead of Python's
    ("fusion", "FusionOptimizer", type("FusionOptimizer", (), {})),
    ("canonicalize", "_LIMIT_OF_MINE", 3),
    ("folding", "constant_folding", mock.DEFAULT),
    (opwise.scalar.op, "Add", type("Add", (), {})),
    (np, "add", np.subtract),
    (np.linalg, "inv", lambda a: a),
    (np.fft, "rfft", lambda a: a),
]


@pytest.mark.parametrize(
    ("owner", "name", "new"), REPLACED, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_what_is_replaced_keeps_graphs_out(owner, name, new, cached):
    matters = name != "_LIMIT_OF_MINE"
    folded()  # it imports the rules
    if isinstance(owner, str):
        owner = next(m for n, m in sys.modules.items() if n.endswith(f"optimizers.rules.{owner}")
                     or n == f"opwise.optimizers.{owner}")  # fmt: skip
    with mock.patch.object(owner, name, new, create=True):
        assert bool(asimported.replaced()) is matters
    assert asimported.replaced() == []  # it was put back
    assert is_cached(folded())


def test_graphs_of_replaced_methods_are_not_written(cached, monkeypatch):
    monkeypatch.setattr(Elemwise, "perform", wrong)
    assert list(folded()([0.0, 0, 0])) == [41, 42, 43]
    assert not list(cached.glob("*.graph"))
    monkeypatch.undo()
    assert list(folded()([0.0, 0, 0])) == [1, 2, 3]


def test_nor_taken(cached, monkeypatch):
    folded()
    assert is_cached(folded())
    monkeypatch.setattr(Elemwise, "perform", wrong)
    f = folded()
    assert not is_cached(f)
    assert list(f([0.0, 0, 0])) == [41, 42, 43]


@pytest.mark.parametrize("attribute", ["perform", "infer_shape"])
def test_attributes_of_an_op(cached, attribute):
    """An Op that a method was given to is that of a program."""
    x = T.dvector("x")
    op = Elemwise(theano.scalar.exp)
    setattr(op, attribute, lambda *args: None)
    for _ in range(2):
        f = theano.function([x], T.dot(x, x) * op(x) if attribute == "perform" else op(x))
        assert not is_cached(f)
    inner = theano.scalar.Exp(name="exp")
    inner.impl = lambda value: 43.0
    for _ in range(2):
        assert not is_cached(theano.function([x], Elemwise(inner)(x)))


def test_what_modules_remember_is_in_objects():
    """Counters and memories change as programs run; the names of modules stay bound to them."""
    theano.function([], T.dot(np.ones((2, 2)), np.ones(2)), profile=True)().sum()
    theano.printing.debugprint(folded(), file=io.StringIO())
    assert asimported.replaced() == []


def test_every_module_of_opwise_is_its_own():
    """What is imported later is looked at when the next function is compiled."""
    found = []
    for path in sorted(Path(opwise.__file__).parent.rglob("*.py")):
        name = ".".join(path.relative_to(Path(opwise.__file__).parents[1]).with_suffix("").parts)
        name = name.removesuffix(".__init__")
        if asimported._counts(name):
            importlib.import_module(name)
            found.append(name)
    assert len(found) > 150
    assert asimported.replaced() == []


# --- in processes of their own --------------------------------------------------------------------


_POISON = """
import sys
import numpy as np
import theano, theano.tensor as T
patched = sys.argv[1]
if patched == "class":
    from opwise.tensor.elemwise import Elemwise
    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0]) + 43
    Elemwise.perform = perform
x = T.dvector("x")
f = theano.function([x], x + (T.constant(np.arange(3.0)) + 1))
print(f([0.0, 0, 0]), f.compile_report.graph_cached)
"""


def run(text, *args, folder, package=None):
    root = package or Path(opwise.__file__).parents[1]
    place = os.pathsep.join([str(root), *filter(None, sys.path)])
    found = subprocess.run(
        [sys.executable, "-c", text, *args], capture_output=True, text=True, check=True,
        cwd=folder.parent,  # Python takes modules from there first
        env={**os.environ, "OPWISE_FLAGS": f"base_compiledir={folder},cache_graphs=True",
             "PYTHONPATH": place},
    )  # fmt: skip
    return found.stdout.splitlines()


def test_another_process_is_not_poisoned(tmp_path):
    assert run(_POISON, "class", folder=tmp_path) == ["[43. 44. 45.] False"]
    assert run(_POISON, "", folder=tmp_path) == ["[1. 2. 3.] False"]
    assert run(_POISON, "", folder=tmp_path) == ["[1. 2. 3.] True"]
    assert run(_POISON, "class", folder=tmp_path) == ["[43. 44. 45.] False"]


_LATER = """
from opwise.optimizers.rules import fusion
from opwise.compile import asimported
import opwise
print(bool(asimported.replaced()))
fusion.mine = 3
print(bool(asimported.replaced()))
from opwise.optimizers.rules import linalg
name = next(n for n, v in vars(linalg).items() if type(v) is type(lambda: 0) and n.startswith("_"))
setattr(linalg, name, lambda *args: None)
print(bool(asimported.replaced()))
"""


def test_modules_that_a_program_imports_and_changes(tmp_path):
    assert run(_LATER, folder=tmp_path) == ["False", "False", "True"]


_UPGRADE = """
import sys, os, time
import opwise
import theano, theano.tensor as T
package = os.path.dirname(opwise.__file__)
def changed(path):
    path = os.path.join(package, path)
    text = open(path).read()
    with open(path + ".new", "w") as file:
        file.write(text + "# of another version")
    os.replace(path + ".new", path)
def cached(power):
    x = T.dvector("x")
    return theano.function([x], x + power).compile_report.graph_cached
when = sys.argv[1]
if when == "before":
    changed("tensor/elemwise.py")
print(cached(2), cached(2))
if when == "":
    sys.exit()
if when == "between":
    changed("optimizers/rules/fusion.py")
print(cached(4), cached(4))
"""


@pytest.fixture
def package(tmp_path):
    """A copy of opwise and theano, of which processes run others."""
    root = Path(opwise.__file__).parents[1]
    for name in ("opwise", "theano"):
        shutil.copytree(root / name, tmp_path / "site" / name,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    return tmp_path / "site"


def test_a_process_from_before_an_upgrade(package, tmp_path):
    """It writes nothing under the key of the new version, and takes nothing of it."""
    folder = tmp_path / "cache"
    first = ["import os, time; time.sleep(0.3)\n" + _UPGRADE]
    assert run(*first, "before", folder=folder, package=package) == ["False False"] * 2
    assert not list(folder.rglob("*.graph"))
    assert run(*first, "", folder=folder, package=package) == ["False True"]
    kept = sorted(folder.rglob("*.graph"))
    assert run(*first, "between", folder=folder, package=package) == ["True True", "False False"]
    assert sorted(folder.rglob("*.graph")) == kept


def test_importing_reads_no_state_of_files(package, tmp_path):
    """The digest of modules is taken when the first function is compiled."""
    program = "import opwise; from opwise.compile import asimported as a; print(a._sources.checked)"
    assert run(program, folder=tmp_path) == ["set()"]
