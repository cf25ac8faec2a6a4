"""Which of PyTensor's rewrites run under modes of opwise, and that values stay as exact."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.mode import Mode, get_mode, optdb  # noqa: E402
from pytensor.graph.rewriting.basic import EquilibriumGraphRewriter  # noqa: E402
from pytensor.graph.rewriting.db import RewriteDatabaseQuery  # noqa: E402

from opwise.pytensor.rewrites import ARITHMETIC  # noqa: E402

pytestmark = pytest.mark.c


def names_of(mode):
    """Return the names of the rewrites that a mode runs."""
    found = set()
    for rewriter in get_mode(mode).optimizer.data:
        found.add(rewriter.name)
        if isinstance(rewriter, EquilibriumGraphRewriter):
            found |= {str(one) for one in rewriter.get_node_rewriters()}
            found |= {one.name for one in (*rewriter.global_rewriters, *rewriter.cleanup_rewriters)}
    return found


def test_arithmetic_is_left_to_opwise():
    everything = RewriteDatabaseQuery(include=["fast_run"])
    assert set(ARITHMETIC) <= names_of(Mode("opwise", everything)), "PyTensor has renamed some"
    for mode in ("OPWISE", "OPWISE_DEBUG", "PROFILE_MODE"):
        assert not set(ARITHMETIC) & names_of(mode)
    assert "local_add_canonizer" in names_of("OPWISE_FAST_COMPILE")
    assert "opwise_note_start" not in names_of(Mode("py", everything))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 8, -1, -2, 0.5, 2.5])
def test_no_rewrite_of_powers_fails(exponent):
    """Some of PyTensor's rewrites count on others that opwise does without."""
    x = pt.vector("x")
    with pytensor.config.change_flags(on_opt_error="raise"):
        f = pytensor.function([x], x ** np.array([exponent]), mode="OPWISE")
    np.testing.assert_allclose(f(np.array([1.5, 2])), np.array([1.5, 2]) ** exponent)


def test_modes_of_other_linkers_are_as_before():
    query = RewriteDatabaseQuery(include=["fast_run"])
    assert not any("opwise" in one.name for one in optdb.query(query).data)


x, y, M = pt.vector("x"), pt.vector("y"), pt.matrix("M")
log, exp, sigmoid = pt.log, pt.exp, pt.sigmoid
STABLE = {
    "log of a sum of products": log(pt.sum(exp(x)[:, None] * exp(M) * exp(y)[None], axis=1)),
    "its gradient": pt.grad(log(pt.sum(exp(x)[:, None] * exp(M), axis=1)).sum(), M),
    "log of a product": log(exp(x)[:, None] @ exp(y)[None, :]),
    "log of 1 - exp": log(1 - exp(-pt.abs(x))[:, None]) + M,
    "log1p of -exp": pt.log1p(-exp(-pt.abs(x))[:, None]) + M,
    "log of 1 - sigmoid": log(1 - sigmoid(x)[:, None]) * M,
    "gradient of log of 1 - sigmoid": pt.grad(log(1 - sigmoid(x)[:, None] + 0 * M).sum(), x),
    "log of a difference": log(exp(pt.maximum(x, y) + 1) - exp(x)),
    "log of a sum": log(exp(x)[:, None] + exp(y)[None, :]),
    "log of softmax": log(pt.special.softmax(M, axis=1)[:, :, None]),
    "log of erfc": log(0.5 * pt.erfc(-x / np.sqrt(2))[None, :]) + M,
    "gradient of log of erfc": pt.grad(log(0.5 * pt.erfc(-x / np.sqrt(2))).sum(), x),
    "log of a normal cdf": log(0.5 * (1 + pt.erf(x / pt.sqrt(np.float32(2))))),
    "exp - 1": exp(x * 1e-9) - 1,
    "a quotient of exponentials": exp(M) / exp(M).sum(axis=1, keepdims=True),
    "logs of exponentials that others read": log(exp(x)[:, None]) * M
    + pt.log1p(pt.expm1(x))[None]
    + exp(x)[:, None]
    + pt.expm1(x),
    "sigmoid times exp": (sigmoid(x)[:, None] * exp(-x)[:, None]) + M,
}


@pytest.mark.parametrize("name", STABLE)
def test_values_are_those_of_all_rewrites(name):
    def compiled(mode):
        return pytensor.function([x, y, M], STABLE[name], mode=mode, on_unused_input="ignore")

    own, every = compiled("OPWISE"), compiled(Mode("opwise", "fast_run"))
    rng = np.random.default_rng(0)
    values = rng.normal(size=5), rng.normal(size=5), rng.normal(size=(5, 5))
    for scale in (1e-9, 1, 30, 800):
        given = [scale * value for value in values]
        np.testing.assert_allclose(own(*given), every(*given), rtol=1e-9, atol=1e-300)


def test_logarithms_undo_exponentials_behind_new_dimensions():
    """Also if something else reads the exponential, as a density reads a scale and its log."""
    import opwise.pytensor

    s, n = pt.scalar("s"), pt.iscalar("n")
    outputs = [x / exp(s) - log(exp(s)[None]), log(exp(n)[None]) + exp(n), exp(s)]
    f = pytensor.function([x, s, n], outputs, mode="OPWISE")
    graph = opwise.pytensor.own_function(f).maker.fgraph
    assert "log" not in str(graph)
    found, other, _ = f(np.array([3.0]), 2.0, 4)
    np.testing.assert_allclose(found, 3.0 / np.exp(2.0) - 2.0)
    np.testing.assert_allclose(other, 4 + np.exp(4.0))
    assert f(np.array([3.0]), -800.0, 4)[0] == np.inf
