"""Pickled functions: where the cache has the optimized graph, loading one runs no rewrite."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_again import PROGRAMS, RNG, random_program, regression, same

import theano
import theano.tensor as T
from opwise import Mode
from opwise.compile import DebugMode, graphcache
from opwise.config import change_flags
from opwise.linkers import cbuild
from opwise.testing.fuzz.examine import compiled

pytestmark = pytest.mark.usefixtures("only_own_rewrites", "cached")


def optimized(f):
    """Whether the rewrites ran for a function."""
    return not f.compile_report.graph_cached


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_loading_does_not_optimize(program):
    f, values = program()
    assert optimized(f)
    f(*values)
    g = pickle.loads(pickle.dumps(f, -1))
    assert not optimized(g)
    for _ in range(3):
        same(g(*values), f(*values))
    again = pickle.loads(pickle.dumps(g, -1))
    assert not optimized(again)
    same(again(*values), f(*values))
    assert str(again.maker.fgraph) == str(f.maker.fgraph)


def arguments(program):
    return [leaf.argument() for leaf in program.arguments()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs(first):
    found = [random_program(seed) for seed in range(first, first + 10)]
    assert any(found)
    for program in filter(None, found):
        f = compiled(program, "FAST_RUN, built-in kernels")
        with change_flags(on_opt_error="raise"):  # as it was compiled
            g = pickle.loads(pickle.dumps(f, -1))
        assert not optimized(g)
        for a, b in zip(g(*arguments(program)), f(*arguments(program)), strict=True):
            np.testing.assert_array_equal(a, b)
        assert str(g.maker.fgraph) == str(f.maker.fgraph)


def test_another_process_loads_it(tmp_path, cached):
    f, values = regression()
    (tmp_path / "f.pkl").write_bytes(pickle.dumps((f, values), -1))
    code = (
        "import pickle, sys\n"
        f"with open({str(tmp_path / 'f.pkl')!r}, 'rb') as file: f, values = pickle.load(file)\n"
        "print(f.compile_report.graph_cached, float(f(*values)[1]).hex())\n"
        "print([m for m in sys.modules if m.startswith('opwise.optimizers.rules.')])\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "OPWISE_FLAGS": f"compiledir={cached},on_opt_error=raise"},
    )  # fmt: skip
    first, modules = out.stdout.splitlines()
    assert first == f"True {float(f(*values)[1]).hex()}"
    assert modules == "[]"


def test_a_new_version_compiles_the_graph_as_written(monkeypatch):
    f, values = regression()
    text = pickle.dumps(f, -1)
    monkeypatch.setattr(graphcache, "__version__", "0.0.1")
    g = pickle.loads(text)
    assert optimized(g)
    same(g(*values), f(*values))


def test_other_flags():
    text = pickle.dumps(regression()[0], -1)
    with change_flags(reoptimize_unpickled_function=True):
        assert optimized(pickle.loads(text))
    with change_flags(floatX="float32"):
        assert optimized(pickle.loads(text))
    with change_flags(floatX=theano.config.floatX, profile_memory=True):  # the default, said again
        assert not optimized(pickle.loads(text))


def leave_as_written(fgraph):
    """A pass of a program."""


@pytest.mark.parametrize(
    "mode", [DebugMode(), Mode("c|py", leave_as_written)], ids=["debug", "a pass"]
)
def test_modes_with_rewrites_of_their_own(mode):
    x = T.dvector("x")
    f = theano.function([x], T.exp(x) + 1, mode=mode)
    g = pickle.loads(pickle.dumps(f, -1))
    assert optimized(g)
    same(g([1.0, 2]), f([1.0, 2]))


def test_large_constants_are_in_the_pickle_once():
    data = RNG.randn(1000, 50)
    x = T.dvector("x")
    f = theano.function([x], T.dot(T.constant(data), x) + T.exp(T.constant(data[:, 0])))
    text = pickle.dumps(f, -1)
    assert len(text) < data.nbytes + 60_000
    g = pickle.loads(text)
    assert not optimized(g)
    same(g(np.ones(50)), f(np.ones(50)))


def test_deep_graphs():
    x = T.dvector("x")
    y = x
    for _ in range(3000):
        y = T.dot(y, np.eye(2)) + 1
    f = theano.function([x], y, mode=theano.Mode("c|py", "fast_compile"))
    g = pickle.loads(pickle.dumps(f, -1))
    assert not optimized(g)
    same(g([0.0, 0]), f([0.0, 0]))


def test_lists_of_functions_share_their_state():
    """Applys of the graph as written are written once, whichever function reaches them first."""
    x, w = T.dvector("x"), theano.shared(np.ones(3), name="w")
    y = T.exp(x * w)
    put = theano.function([x], y, updates=[(w, w + x)])
    get = theano.function([x], y.sum())
    both = pickle.loads(pickle.dumps([put, get, y, w], -1))
    assert not optimized(both[0]) and not optimized(both[1])
    both[0](np.ones(3))
    assert both[3].get_value().tolist() == [2, 2, 2]
    np.testing.assert_allclose(both[1](np.ones(3)), 3 * np.exp(2))


def test_errors_name_the_line_of_the_user():
    x, y = T.dvectors("xy")
    f = theano.function([x, y], T.exp(x) + y)  # here
    g = pickle.loads(pickle.dumps(f, -1))
    assert not optimized(g)
    with pytest.raises(ValueError, match=r"# here"):
        g([1.0, 2], [1.0, 2, 3])


# --- shared values, by choice ---------------------------------------------------------------------


def with_large_value():
    x, w = T.dvector("x"), theano.shared(RNG.randn(5000), name="w")
    return theano.function([x], (x * w[:3]).sum(), updates=[(w, w + 1)]), w


def test_a_pickle_may_leave_out_shared_values():
    f, w = with_large_value()
    whole = pickle.dumps(f, -1)
    with change_flags(pickle_shared_values=False):
        text, alone = pickle.dumps(f, -1), pickle.dumps(w, -1)
    assert len(whole) - len(text) >= w.get_value().nbytes
    g, v = pickle.loads(text), pickle.loads(alone)
    (loaded,) = g.get_shared()
    assert loaded.get_value() is None and v.get_value() is None
    assert not optimized(g)
    with pytest.raises(ValueError, match="w has no value, or its value is None"):
        g([1.0, 2, 3])
    for value in (w.get_value(), 2 * w.get_value()):
        loaded.set_value(value)
        w.set_value(value)
        same(g([1.0, 2, 3]), f([1.0, 2, 3]))
        same(loaded.get_value(), w.get_value())


def test_functions_pickled_together_share_a_variable_without_a_value():
    f, w = with_large_value()
    g = theano.function([], w.sum())
    with change_flags(pickle_shared_values=False):
        one, other = pickle.loads(pickle.dumps([f, g], -1))
    one.get_shared()[0].set_value(np.zeros(5000))
    one([1.0, 2, 3])
    assert other() == 5000


def test_copies_keep_shared_values_whatever_the_flag_says():
    f, w = with_large_value()
    with change_flags(pickle_shared_values=False):
        g, v = copy.deepcopy((f, w))
    same(v.get_value(), w.get_value())
    same(g([1.0, 2, 3]), f([1.0, 2, 3]))
    assert v.container is not w.container and g.get_shared() == [v]


# --- another computer -----------------------------------------------------------------------------


@pytest.mark.c
@pytest.mark.parametrize("other", ["processor", "library", "compiler"])
def test_kernels_are_compiled_for_another_computer(other, tmp_path, monkeypatch, flags):
    """Nothing of this one is loaded there, and nothing is said about it."""
    flags(background_compilation=False)
    f, values = regression()
    text = pickle.dumps(f, -1)
    expected = f(*values)
    cbuild._environment.cache_clear()
    there = {}
    if other == "compiler":
        compiler = tmp_path / "another-cc"
        compiler.write_text(f'#!/bin/sh\nexec {cbuild.compiler()} "$@"\n')
        compiler.chmod(0o755)
        there["cxx"] = str(compiler)
    else:
        library, processor = cbuild.hardware()
        hardware = ("another", processor) if other == "library" else (library, "another")
        monkeypatch.setattr(cbuild, "hardware", lambda: hardware)
    try:
        with change_flags(there):
            cbuild._loaded.clear()
            g, again = (pickle.loads(text) for _ in range(2))
    finally:
        cbuild._environment.cache_clear()
    assert optimized(g)
    assert not g.compile_report.kernels.hit
    assert not optimized(again) and again.compile_report.kernels.hit
    same(g(*values), expected)


_PROGRAM = """
import numpy as np, pickle, theano, theano.tensor as T
x, w = T.dvector("x"), theano.shared(np.ones(3), name="w")
f = theano.function([x], T.exp(x * w), updates=[(w, w + x)], name="step")
with open("f.pkl", "wb") as file:
    pickle.dump(f, file, -1)
"""


@pytest.mark.c
@pytest.mark.parametrize("compiler", [True, False], ids=["with a compiler", "without"])
def test_another_machine_loads_it(tmp_path, compiler):
    """It has neither the program that made the function, nor its folders, nor its cache."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (here / "program.py").write_text(_PROGRAM)
    root = Path(theano.__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": str(root), "OPWISE_FLAGS": f"base_compiledir={here}/cache"}
    subprocess.run([sys.executable, "program.py"], check=True, cwd=here, env=env)
    (here / "f.pkl").rename(there / "f.pkl")
    shutil.rmtree(here)
    code = (
        "import pickle, warnings; warnings.simplefilter('error')\n"
        "with open('f.pkl', 'rb') as file: f = pickle.load(file)\n"
        "print(f.compile_report.graph_cached, f.name, f([0.0] * 3).tolist())\n"
    )
    flags = f"base_compiledir={there}/cache" + ("" if compiler else ",cxx=")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=there, capture_output=True, text=True, check=False,
        env={**env, "HOME": str(there), "OPWISE_FLAGS": flags},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("False step [1.0, 1.0, 1.0]\n", "")
