"""Random numbers of PyTensor under opwise: those of numpy's Generator, and what becomes of it."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.mode import Mode  # noqa: E402

import opwise.pytensor  # noqa: E402

pytestmark = pytest.mark.c

#: distributions that C draws, with parameters, of which the first makes rows
IN_C = {
    "uniform": (-1.0, 2.0), "triangular": (-1.0, 3.0, 9.0), "beta": (0.7, 2.5),
    "normal": (0.3, 1.7), "lognormal": (0.3, 0.7), "gamma": (0.7, 1.3), "exponential": (1.3,),
    "weibull": (1.3,), "logistic": (0.3, 1.7), "laplace": (0.3, 1.7), "vonmises": (0.3, 1.7),
    "wald": (1.3, 0.7), "halfnormal": (0.3, 1.7), "t": (2.5, 0.3, 1.7), "invgamma": (1.7, 0.3),
    "gengamma": (0.7, 1.3, 1.7), "pareto": (2.5, 1.3), "gumbel": (0.3, 1.7),
    "cauchy": (0.3, 1.7), "halfcauchy": (0.3, 1.7), "truncexpon": (1.7, 0.3, 1.3),
    "poisson": (2.5,), "geometric": (0.1,), "binomial": (50, 0.7), "bernoulli": (0.2,),
    "negative_binomial": (2.5, 0.3), "hypergeometric": (15, 25, 12),
}  # fmt: skip


def drawn(*args, name, **options):
    if name == "gamma":  # its second parameter was another one once
        args, options = args[:1], {"scale": args[1], **options}
    return getattr(pt.random, name)(*args, return_next_rng=True, **options)


@pytest.mark.parametrize("name", IN_C)
def test_numbers_are_those_of_pytensor(name):
    # scipy computes with float32, which PyTensor makes of some numbers, in that precision
    first, *others = [np.array(x) for x in IN_C[name]]
    rows = pt.constant(first * np.array([[1], [2]]))
    lengths = pt.lvector("lengths")

    def compiled(mode):
        rng = pytensor.shared(np.random.default_rng(3))
        rng1, one = drawn(first, *others, name=name, rng=rng)
        rng2, many = drawn(rows, *others, name=name, size=(2, 3), rng=rng1)
        rng3, sized = drawn(first, *others, name=name, size=(lengths[0], 2), rng=rng2)
        rng4, free = drawn(rows, *others, name=name, rng=rng3)
        outputs = [one, many, sized, free, pt.cast(free, "float64").sum()]
        return pytensor.function([lengths], outputs, updates={rng: rng4}, mode=mode), rng

    (own, own_rng), (reference, rng) = compiled("OPWISE"), compiled(Mode("py", None))
    assert opwise.pytensor.performed(own) == ()
    assert all(opwise.pytensor.own_function(own).linked.in_c)
    for n in (4, 0, 1):
        for x, y in zip(own([n]), reference([n]), strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)
        state = own_rng.get_value(borrow=True).bit_generator.state
        assert state == rng.get_value(borrow=True).bit_generator.state


def test_a_generator_that_is_updated_is_not_copied():
    rng = pytensor.shared(np.random.default_rng(3))
    held = rng.get_value(borrow=True)
    first, x = drawn(0, 1, name="normal", rng=rng)
    cov = (x + 9) * np.eye(2)
    second, y = drawn(np.zeros(2), cov, name="multivariate_normal", rng=first)
    f = pytensor.function([], [x, y], updates={rng: second}, mode="OPWISE")
    f()
    assert rng.get_value(borrow=True) is held
    # without an update each call draws the same numbers
    g = pytensor.function([], [x, second], mode="OPWISE")
    (x1, after), (x2, again) = g(), g()
    assert x1 == x2
    assert rng.get_value(borrow=True) is held
    assert after is not held and after is not again
    assert after.bit_generator.state == again.bit_generator.state


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.Philox])
def test_a_call_that_fails_leaves_generators_as_they_were(bits):
    rng = pytensor.shared(np.random.Generator(bits(3)))
    first, x = drawn(0, 1, name="normal", rng=rng)
    second, y = drawn(pt.exp(x), name="poisson", rng=first)
    n = pt.lscalar("n")
    checked = pt.arange(5)[n] + y
    f = pytensor.function([n], checked, updates={rng: second}, mode="OPWISE")
    f(1)
    before = rng.get_value(borrow=True).bit_generator.state
    with pytest.raises(IndexError):
        f(9)
    after = rng.get_value(borrow=True).bit_generator.state
    np.testing.assert_equal(after, before)


@pytest.mark.parametrize("name, given", [
    ("normal", (0.0, -1.0)), ("poisson", (-1.0,)), ("binomial", (5, 1.5)), ("t", (-1.0, 0.0, 1.0)),
    ("uniform", (2.0, 1.0)),
])  # fmt: skip
def test_parameters_out_of_range_are_errors(name, given):
    rng = pytensor.shared(np.random.default_rng(3))
    inputs = [pt.scalar(dtype="int64" if type(x) is int else "float64") for x in given]
    next_rng, x = drawn(*inputs, name=name, rng=rng)
    f = pytensor.function(inputs, x, updates={rng: next_rng}, mode="OPWISE")
    before = rng.get_value().bit_generator.state
    with pytest.raises(ValueError):
        f(*given)
    assert rng.get_value().bit_generator.state == before
