"""What roundings explain raises no alarm of DebugMode; what is wrong by a little more does."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function, grad, scalar
from opwise.compile import DebugMode
from opwise.errors import BadCLinkerOutput, BadOptimization, DebugModeError
from opwise.linkers import kernels
from opwise.loops import scan
from opwise.modes.debugging import perturbation
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.rule import rule
from opwise.scalar import Composite
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction
from opwise.tensor import Elemwise, Sum
from opwise.tensor.assertion import Assert
from opwise.tensor.mapreduce import MapReduce

F, D = T.fmatrix("f"), T.dmatrix("d")
RANDOM = np.random.default_rng(5).uniform(-2, 2, (400, 40)).astype("float32")
WHOLE = np.arange(1.0, 400).reshape(3, -1)

#: graphs of which rewrites, or C, round so that results differ by more than the tolerances
ROUNDED = {
    "float32 inside float64": (F, T.log(0.1 + 2.9 * T.nnet.sigmoid(F)), RANDOM),
    "what is left of equal numbers": (F, T.cast(T.erfc(-F) - 1, "float64") * 1, RANDOM),
    "the last digits of float32": (F, T.sin(1e6 * T.exp(F)), RANDOM),
    "the last digits of float64": (D, T.sin(1e12 * T.exp(D)), RANDOM.astype("float64")),
    "a step": (D, T.floor(T.exp(T.log(D))), WHOLE),
}


def debugged(name, *rules):
    x, out, _ = ROUNDED[name]
    mode = DebugMode(stability_patience=1)
    if rules:
        mode = mode.register((EquilibriumOptimizer(list(rules), name="planted"), 1.3))
    return function([x], out, mode=mode)


@pytest.mark.parametrize("name", ROUNDED)
def test_roundings_are_no_fault(name, monkeypatch, no_compiler):
    f, value = debugged(name), ROUNDED[name][2]
    f(value)
    # they are not within the tolerances: without a look at roundings, this is a fault
    monkeypatch.setattr(perturbation.Roundings, "explain", lambda *_: False)
    with pytest.raises(DebugModeError):
        f(value)


@rule("row:log", name="wrong_logarithm")
def wrong_logarithm(fgraph, node):
    """log(x) becomes log1p(x - 0.99998): it is off by 2e-5 where x is near 1."""
    return [T.log1p(node.inputs[0] - 0.99998)]


def test_a_rewrite_that_is_off_by_more_than_roundings_is_found(no_compiler):
    f = debugged("float32 inside float64", wrong_logarithm)
    with pytest.raises(BadOptimization) as raised:
        f(RANDOM)
    assert raised.value.reason == "wrong_logarithm"


def test_a_rewrite_that_moves_a_step_is_found(no_compiler):
    @rule("row:floor", name="wrong_floor")
    def wrong_floor(fgraph, node):
        """A whole number, which no rounding moves, is rounded down to the one below."""
        return [T.ceil(node.inputs[0]) - 1]

    f = function([D], T.floor(2 * D), mode=DebugMode(stability_patience=1).register(
        (EquilibriumOptimizer([wrong_floor], name="planted"), 1.3)))  # fmt: skip
    with pytest.raises(BadOptimization):
        f(WHOLE)


def test_c_that_is_off_by_more_than_roundings_is_found(monkeypatch, no_compiler):
    genuine = kernels.opwise_c.LOOPS
    swapped = {**genuine, "log_f64": genuine["log1p_f64"]}
    monkeypatch.setattr(kernels.opwise_c, "LOOPS", swapped)
    f = debugged("float32 inside float64")
    with pytest.raises(BadCLinkerOutput):
        f(RANDOM)


# --- one Apply alone ------------------------------------------------------------------------------


def _literal(x):
    number = scalar.float64("number")
    return Elemwise(Composite([number], [scalar.add(number, scalar.constant(2.5))]))(x)


def _fused_sum(x):
    exponential = Instruction(OPS["exp"], (0,), "float64")
    return MapReduce(Composite.from_program(["float64"], [exponential], [1]), Sum())(x)


@pytest.mark.parametrize("make", [T.exp, T.sum, _literal, _fused_sum])
def test_only_last_bits_of_an_apply_are_explained(make):
    x = T.dvector()
    out = make(x)
    value = RANDOM[0].astype("float64")
    right = out.eval({x: value})
    near = right * (1 + 4e-16)
    assert perturbation.roundings_explain(out.owner, [value], 0, right, near)
    for wrong in (right * (1 + 1e-9), right + 1e-9, right[..., np.newaxis]):
        assert not perturbation.roundings_explain(out.owner, [value], 0, right, wrong)


def test_a_perform_that_fails_when_perturbed_explains_nothing():
    checked = Assert()(D, T.eq(T.exp(T.log(D)).sum(), float(np.exp(np.log(WHOLE)).sum())))
    roundings = perturbation.Roundings({D: WHOLE})
    assert not roundings.explain([checked], WHOLE, WHOLE + 1)


def test_the_roundings_of_each_step_of_a_loop_count():
    """Near 1, what is left of 1 - tanh(x) ** 2 depends on the last digits of the tanh."""
    step = lambda row, h: scan(lambda a, b: T.tanh(a + 0.5 * b), row, h)[0][-1]  # noqa: E731
    loop, _ = scan(step, F, T.zeros((), "float32"))
    slope = grad(loop.sum(), F)
    values = np.full((4, 4), 4.0, "float32")
    values[:, -1] = 3.5
    perturbed = perturbation.Perturbed({F: values})
    [found] = perturbed.compute([slope])
    assert (perturbed.allowed(slope)[0] > 1e-5 * found[0]).all()
    counted, _ = scan(lambda n: n + 1, outputs_info=T.zeros((), "int64"), n_steps=3)
    assert not allowed_of(counted).any()


def allowed_of(var):
    perturbed = perturbation.Perturbed({})
    perturbed.compute([var])
    return perturbed.allowed(var)
