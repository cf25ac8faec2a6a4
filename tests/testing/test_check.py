"""``testing.check``: which graphs are found right and wrong, and what is told of the wrong ones."""

import inspect

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Mode, Op, function, shared
from opwise.compile import OPT_FAST_RUN
from opwise.errors import UnusedInputError
from opwise.loops import scan
from opwise.modes.debugging.perturbation import Perturbed, beyond
from opwise.optimizers.navigators import TopoOptimizer
from opwise.optimizers.rule import Rule
from opwise.testing import CONFIGURATIONS, CheckFailed, check
from opwise.testing.configurations import mode_of

pytestmark = pytest.mark.null

#: configurations that call no compiler
QUICK = [
    configuration for configuration in CONFIGURATIONS if configuration not in ("FAST_RUN", "o2")
]


@pytest.fixture
def wrong_exp(monkeypatch):
    """The name of a configuration in which exp is computed as expm1."""
    rule = Rule(lambda fgraph, node: [T.expm1(*node.inputs)], ("row:exp",), "exp_is_expm1")
    query = OPT_FAST_RUN.register((TopoOptimizer(rule, name="wrong"), 0.3))
    monkeypatch.setitem(CONFIGURATIONS, "wrong", (Mode, "py", query))
    return "wrong"


def test_a_correct_graph_passes_in_every_configuration():
    x, y = T.dmatrix("x"), T.fmatrix("y")
    values = [np.random.rand(3, 4), np.random.rand(3, 4).astype("float32")]
    report = check(([x, y], [T.nnet.softmax(x * y), T.argmax(x, 1), x.T[::-1]]), values, QUICK)
    assert report.ok
    assert report.raise_if_bad() is report
    assert {r.configuration for r in report.results} == {*QUICK}
    assert len(report.results) == 3 * len(QUICK)
    assert report.depth == 2
    text = str(report)
    assert "all configurations agree" in text
    assert all(configuration in text for configuration in QUICK)
    assert opwise.testing.check is check
    assert opwise.testing.verify_grad is opwise.verify_grad


def test_the_first_wrong_apply_is_named_with_its_line(wrong_exp):
    x = T.dvector("x")
    y = T.tanh(x) * 2
    line = inspect.currentframe().f_lineno + 1
    z = T.exp(y)
    w = T.sqr(z).sum()
    report = check(([x], [w, y]), [np.array([0.5, 1.0])], ["FAST_RUN, py", wrong_exp])
    assert not report.ok
    (bad,) = report.bad
    assert (bad.configuration, bad.output) == (wrong_exp, "output 0")
    assert "exp" in bad.first.apply
    assert bad.first.line == f"{__file__}:{line}"
    assert bad.first.key
    with pytest.raises(CheckFailed) as caught:
        report.raise_if_bad()
    assert bad.first.line in str(caught.value)
    assert "1 results are bad" in str(caught.value)


def test_functions_are_copied_and_their_updates_compared(wrong_exp):
    s = shared(np.zeros(2), name="s")
    x = T.dvector("x")
    f = function([x], x + s, updates=[(s, s + T.exp(x))], mode=Mode("py", None))
    value = np.array([0.5, 1.0])
    report = check(f, [value], ["FAST_RUN, vm", wrong_exp])
    assert [(r.configuration, r.output) for r in report.bad] == [(wrong_exp, "update of s")]
    np.testing.assert_array_equal(s.get_value(), [0, 0])
    np.testing.assert_array_equal(value, [0.5, 1.0])


def test_a_configuration_that_raises_is_bad(monkeypatch):
    def refuse(fgraph):
        raise RuntimeError("no rewrite today")

    monkeypatch.setitem(CONFIGURATIONS, "raises", (Mode, "py", refuse))
    x = T.dvector("x")
    report = check(([x], [T.exp(x)]), [np.ones(2)], ["raises"])
    (bad,) = report.bad
    assert bad.how == "raises RuntimeError: no rewrite today"
    assert "no rewrite today" in bad.first.how


class _WrongDtype(Op):
    """An Op whose C-less perform is right only for its first call."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        self.calls = getattr(self, "calls", 0) + 1
        outputs[0][0] = inputs[0] + (1 if self.calls > 4 else 0)


def test_shapes_nan_and_whole_numbers_must_be_equal():
    x = T.ivector("x")
    report = check(([x], [_WrongDtype()(x)]), [np.arange(3, dtype="int32")], QUICK)
    assert report.bad
    assert "3 of 3 elements differ" in report.bad[0].how


def test_cancellation_is_no_fault_but_a_wrong_sum_is():
    x, y = T.fvector("x"), T.fvector("y")
    values = [np.full(4, 1000.1, "float32"), np.full(4, 0.1, "float32")]
    assert check(([x, y], [(x + y) - x]), values, QUICK).ok
    perturbed = Perturbed({x: values[0], y: values[1]})
    out = (x + y) - x
    [value] = perturbed.compute([out])
    allowed = perturbed.allowed(out)
    assert beyond(value, value + np.float32(1e-4), allowed) is None
    assert beyond(value, value + np.float32(0.5), allowed) is not None
    assert beyond(value, values[1], allowed) is None  # what the algebra makes of it


def test_exact_numbers_may_not_be_off_at_all():
    x = T.dvector("x")
    perturbed = Perturbed({x: np.array([1.0, 2.5, -3.0])})
    out = T.floor(x * 2) + 1
    perturbed.compute([out])
    assert perturbed.exact[out]
    assert perturbed.spread(out).max() == 0
    third = x / 3
    perturbed.compute([third])
    assert not perturbed.exact[third]
    assert 0 < perturbed.spread(third).max() < 1e-14


def test_results_that_jump_when_rounded_are_allowed_anything():
    x = T.dvector("x")
    perturbed = Perturbed({x: np.array([0.1, 0.7])}, runs=12)
    out = T.floor(x * 10)  # 0.7 * 10 is 7 or a little less
    perturbed.compute([out])
    assert perturbed.spread(out).max() > 0.9


def test_loops_that_would_take_long_are_refused():
    x = T.dvector("x")
    perturbed = Perturbed({x: np.ones(30)}, runs=3, most_steps=80)
    short, _ = scan(lambda v: T.exp(v), x[:20])
    assert perturbed.compute([short])[0].shape == (20,)
    long, _ = scan(lambda v: T.exp(v) + 1, x)
    for _ in range(2):
        with pytest.raises(ValueError, match="loops of more than 80 steps"):
            perturbed.compute([long[:20] + short])
    assert perturbed.spread(short).max() > 0


def test_bad_arguments_are_refused():
    x = T.dvector("x")
    with pytest.raises(KeyError, match="no configuration is called 'FAST'"):
        check(([x], [x + 1]), [np.ones(2)], ["FAST"])
    with pytest.raises(TypeError, match="no argument for the input x"):
        check(([x], [x + 1]), [], QUICK)
    with pytest.raises(TypeError, match="more arguments"):
        check(([x], [x + 1]), [np.ones(2), np.ones(2)], QUICK)
    with pytest.raises(UnusedInputError):
        function([x, T.dvector("y")], x + 1, mode=mode_of("FAST_RUN, py"))


@pytest.mark.parametrize("configuration", QUICK)
def test_configurations_are_modes(configuration):
    x = T.dvector("x")
    f = function([x], T.exp(x) + 1, mode=mode_of(configuration))
    np.testing.assert_allclose(f(np.zeros(2)), [2, 2])
    assert f.maker.linker.generate_kernels is False or "c" not in f.maker.linker.implementations


@pytest.mark.parametrize(
    ("expected", "found", "how"),
    [
        (np.ones(2), np.ones(3), "the shape is (3,) instead of (2,)"),
        (np.ones(2), np.ones(2, "float32"), "the dtype is float32 instead of float64"),
        (np.array([1.0, np.nan]), np.array([1.0, 0.0]), "1 of 2 elements differ at (1,)"),
        (np.array([np.inf]), np.array([-np.inf]), "1 of 1 elements differ"),
        (np.array([np.inf, np.nan]), np.array([np.inf, np.nan]), None),
        (np.array(3), np.array(4), "1 of 1 elements differ: 4 instead of 3"),
    ],
)
def test_differences(expected, found, how):
    text = beyond(expected, found, np.zeros(expected.shape))
    assert (text is None) == (how is None)
    assert how is None or text.startswith(how)
