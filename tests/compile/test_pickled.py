"""Pickled functions: the optimized graph comes along, and is used where it would be made again."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from compiled_again import (
    PROGRAMS,
    RNG,
    conditional,
    from_graph,
    nested_loops,
    random_program,
    recurrent,
    regression,
    same,
)  # fmt: skip

import theano
import theano.tensor as T
from opwise.compile import graphcache, pickled
from opwise.config import change_flags
from opwise.modes.debugmode import DebugMode
from opwise.modes.mode import Mode
from opwise.optimizers.database import _Generation
from opwise.optimizers.rule import local_optimizer
from opwise.testing.fuzz.examine import compiled

pytestmark = pytest.mark.usefixtures("only_own_rewrites")


def optimized(f):
    """Whether the rewrites ran for a function."""
    return f.compile_report.rewrites.name != "from a pickle"


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


def test_steps_of_loops_are_not_optimized_either(monkeypatch):
    for program in (recurrent, nested_loops, from_graph):
        f, values = program()
        text = pickle.dumps(f, -1)
        with monkeypatch.context() as patch:
            patch.setattr(Mode, "optimize", None)
            patch.setattr(graphcache.Mode, "optimize", Mode.optimize)
            g = pickle.loads(text)
        same(g(*values), f(*values))


def arguments(program):
    return [leaf.argument() for leaf in program.arguments()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs(first):
    found = [random_program(seed) for seed in range(first, first + 10)]
    assert any(found)
    for program in filter(None, found):
        f = compiled(program, "FAST_RUN, built-in kernels")
        g = pickle.loads(pickle.dumps(f, -1))
        assert not optimized(g)
        for a, b in zip(g(*arguments(program)), f(*arguments(program)), strict=True):
            np.testing.assert_array_equal(a, b)
        assert str(g.maker.fgraph) == str(f.maker.fgraph)


def test_another_process_loads_it(tmp_path):
    f, values = regression()
    (tmp_path / "f.pkl").write_bytes(pickle.dumps((f, values), -1))
    code = (
        "import pickle, sys\n"
        f"f, values = pickle.load(open({str(tmp_path / 'f.pkl')!r}, 'rb'))\n"
        "print(f.compile_report.rewrites.name, float(f(*values)[1]).hex())\n"
        "print([m for m in sys.modules if m.startswith('opwise.optimizers.rules.')])\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, modules = out.stdout.splitlines()
    assert first == f"from a pickle {float(f(*values)[1]).hex()}"
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


@local_optimizer([T.exp])
def exp_to_log(node):
    return None


def test_rewrites_of_programs(monkeypatch):
    """They may change at any time: what they made is made again."""
    text = pickle.dumps(conditional()[0], -1)
    name = "exp_to_log_of_test_pickled"
    theano.compile.optdb["canonicalize"].register(name, exp_to_log, "fast_run")
    try:
        assert optimized(pickle.loads(text))
        with_it = pickle.dumps(conditional()[0], -1)
        monkeypatch.setattr(_Generation, "changed", False)
        assert optimized(pickle.loads(with_it))
    finally:
        theano.compile.optdb["canonicalize"].remove_tags(name, "fast_run")


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


def test_content_that_cannot_be_read(monkeypatch):
    f, values = regression()
    f(*values)
    rebuild, arguments = f.__reduce__()
    kept = next(a for a in arguments if isinstance(a, pickled.Kept))
    for content in (b"", kept.content[:200], kept.content[:-1]):
        broken = pickled.replace(kept, content=content)
        g = rebuild(*(broken if a is kept else a for a in arguments))
        assert optimized(g)


class Local(theano.Op):
    """An Op that pickles only as long as `refuse` is false."""

    __props__ = ()
    refuse = False

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] + 1

    def __getstate__(self):
        if self.refuse:
            raise pickle.PicklingError("no")
        return {}


def test_an_op_that_a_rewrite_made_and_that_does_not_pickle(monkeypatch):
    """The graph as written is enough."""
    x = T.dvector("x")
    f = theano.function([x], x * 2)
    one = f.maker.fgraph.outputs[0]
    f.maker.fgraph.replace(one, Local()(one))
    monkeypatch.setattr(Local, "refuse", True)
    assert optimized(pickle.loads(pickle.dumps(f, -1)))


def test_large_constants_are_written_once():
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
