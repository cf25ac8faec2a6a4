"""Elementwise Ops, reductions and DimShuffle under opwise against PyTensor's perform."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.scalar as ps  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pytensor.tensor.elemwise import CAReduce, Elemwise  # noqa: E402

pytestmark = pytest.mark.c

FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "uint8", "int32", "int64"]
UNARY = """abs neg sign sqr exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin arccos
arctan sinh cosh tanh arcsinh arccosh arctanh ceil floor trunc round_half_to_even
round_half_away_from_zero erf erfc erfcx erfinv erfcinv gamma gammaln psi tri_gamma sigmoid
softplus log1mexp j0 j1 i0 i1 isnan isinf reciprocal""".split()


def values_of(dtype, shape, low=0.1, high=0.9, seed=0):
    drawn = np.random.default_rng(seed).uniform(low, high, shape)
    return (drawn * 10 if np.dtype(dtype).kind in "iu" else drawn).astype(dtype)


def scalar_op(name):
    import pytensor.scalar.math as psm

    return getattr(ps, name, None) or getattr(psm, name)


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int64"])
def test_unary(same, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    names = [n for n in UNARY if dtype in FLOATS or not n.startswith("round")]
    shifted = {"log1mexp": x - np.array(2, dtype), "arccosh": x + np.array(1, dtype)}
    outputs = [Elemwise(scalar_op(name))(shifted.get(name, x)) for name in names]
    same([x], outputs, [values_of(dtype, (3, 4))], rtol=1e-6)


@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("float32", "int8"), ("int64", "uint8"),
                                    ("int8", "int8"), ("bool", "int32")])  # fmt: skip
def test_binary(same, dtypes):
    names = """add sub mul true_div int_div mod pow maximum minimum lt gt le ge eq neq
               arctan2""".split()
    x, y = (pt.tensor(dtype=d, shape=(None, None)) for d in dtypes)
    given = [values_of(d, (3, 4), seed=i) + np.asarray(1, d) for i, d in enumerate(dtypes)]
    same([x, y], [Elemwise(scalar_op(name))(x, y) for name in names], given, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64"])
def test_bits(same, dtype):
    x, y = (pt.tensor(dtype=dtype, shape=(None,)) for _ in range(2))
    a, b = np.array([1, 0, 1, 1], dtype), np.array([1, 1, 0, 5], dtype)
    both = [Elemwise(scalar_op(name))(x, y) for name in ("and_", "or_", "xor")]
    same([x, y], [*both, Elemwise(ps.invert)(x)], [a, b])


def test_several_operands_and_broadcasting(same):
    x, y, z = pt.matrix("x"), pt.row("y"), pt.scalar("z")
    given = [values_of("float64", (3, 4)), values_of("float64", (1, 4)), np.array(2.5)]
    same(
        [x, y, z], [pt.switch(x > 0.5, y, z), pt.clip(x, 0.2, z), x + y + z, pt.second(x, z)], given
    )


def test_casts(same):
    x = pt.vector("x")
    given = [np.array([-1.7, 0.0, 2.5, 100.0])]
    same([x], [x.astype(d) for d in ("int8", "int64", "float32", "bool", "complex128")], given)


def test_complex_numbers(same):
    x = pt.zvector("x")
    given = [np.array([1 + 2j, -3j, 0.5])]
    same([x], [x * x, pt.real(x), pt.imag(x), pt.conj(x), abs(x), x + 1, pt.exp(x)], given)


def test_operands_that_broadcast_only_at_run_time_are_refused():
    import opwise.pytensor  # noqa: F401

    x, y = pt.vector("x"), pt.vector("y")
    f = pytensor.function([x, y], x + y, mode="OPWISE")
    with pytest.raises(ValueError, match=r"[Mm]ismatch|[Bb]roadcast"):
        f(np.ones(1), np.ones(3))


def test_an_operation_without_a_translation_is_performed(same):
    class CubeRoot(ps.UnaryScalarOp):
        nfunc_spec = ("cbrt", 1, 1)

        def impl(self, x):
            return np.cbrt(x)

    x = pt.vector("x")
    reason = "CubeRoot is not among opwise's scalar operations"
    y = Elemwise(CubeRoot(ps.upgrade_to_float, name="cbrt"))(x)
    (_, f) = same([x], y, [values_of("float64", (5,))], performed=[reason])
    import opwise.pytensor

    assert [each.reason for each in opwise.pytensor.performed(f)] == [reason]


# --- reductions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 1, (0, 2), ()])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_reductions(same, dtype, axis):
    names = "sum prod max min any all".split() + ["argmax"] * (axis != ())
    x = pt.tensor("x", dtype=dtype, shape=(None, None, None))
    outputs = [getattr(pt, name)(x, axis=axis) for name in names]
    same([x], outputs, [values_of(dtype, (2, 3, 4))], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64"])
@pytest.mark.parametrize("op", [ps.and_, ps.or_])
def test_reductions_of_bits(same, op, dtype):
    x = pt.tensor("x", dtype=dtype, shape=(None, None))
    given = [np.array([[1, 3, 0], [5, 7, 4]], dtype)]
    same([x], CAReduce(op, axis=1)(x), given)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_reductions_of_nothing(same, shape):
    x = pt.matrix("x")
    same([x], [x.sum(), x.sum(axis=0), x.prod(axis=1)], [np.zeros(shape)])


def test_dtypes_of_sums(same):
    x = pt.tensor("x", dtype="float32", shape=(None, None))
    given = [values_of("float32", (3, 4))]
    same([x], [x.sum(dtype="float64"), x.sum(acc_dtype="float64"), x.mean(axis=0)], given)


def test_layouts(same):
    x = pt.tensor3("x")
    whole = values_of("float64", (4, 6, 5))
    for given in (whole, whole[::2], whole[:, ::-1], whole.transpose(2, 0, 1), whole[:, :, 1:3]):
        same([x], [x.sum(axis=0), x * 2, x.dimshuffle(2, "x", 0, 1)], [given], modes=["OPWISE"])


def test_dropped_dimensions_are_checked():
    from pytensor.tensor.elemwise import DimShuffle

    import opwise.pytensor  # noqa: F401

    x = pt.matrix("x")
    f = pytensor.function([x], DimShuffle(input_ndim=2, new_order=[1])(x), mode="OPWISE")
    assert f(np.ones((1, 3))).shape == (3,)
    with pytest.raises((ValueError, TypeError)):
        f(np.ones((2, 3)))


# --- loops over numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_derivatives_that_are_loops(same, dtype):
    k, x = (pt.tensor(n, dtype=dtype, shape=(None, None)) for n in "kx")
    cost = (pt.gammainc(k, x) + pt.gammaincc(k, 2 * x)).sum()
    given = [values_of(dtype, (3, 4), 0.5, 3, seed=i) for i in (0, 1)]
    same([k, x], pt.grad(cost, [k, x]), given, rtol=1e-5)


def test_derivatives_of_the_incomplete_beta_function(same):
    a, b, x = pt.vectors("abx")
    given = [values_of("float64", (20,), low, high, seed=i)
             for i, (low, high) in enumerate([(0.5, 3), (0.5, 3), (0.1, 0.9)])]  # fmt: skip
    gradients = pt.grad(pt.betainc(a, b, x).sum(), [a, b, x])
    same([a, b, x], gradients, given, rtol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_numbers_of_steps(same, steps):
    from pytensor.scalar.loop import ScalarLoop

    x, y = ps.float64("x"), ps.float64("y")
    plain = ScalarLoop([x], [x * y + 1], [y])
    ended = ScalarLoop([x], [x * y + 1], [y], until=ps.gt(x * y + 1, 50.0))
    a, b, n = pt.vector("a"), pt.scalar("b"), pt.lscalar("n")
    several = pt.stack([n, 2 * n, n - 1])
    outputs = [Elemwise(plain)(n, a, b), Elemwise(ended)(several, a, b)[0]]
    outputs.append(Elemwise(ended)(n, b, b)[0])
    if steps:  # PyTensor's Python and C disagree about the condition without a step
        outputs.append(Elemwise(ended)(n, a, b)[1])
    same([n, a, b], outputs, [np.array(steps), np.array([1.0, 3, 40]), np.array(2.0)])


# --- special functions ----------------------------------------------------------------------------

#: functions that C borrows from scipy, with intervals of their operands
SPECIAL = {
    "betainc": [(0.3, 8), (0.3, 8), (0.01, 0.99)], "betaincinv": [(0.3, 8), (0.3, 8), (0, 1)],
    "erfcx": [(-5, 50)], "gammainc": [(0.1, 20), (0, 30)], "gammaincc": [(0.1, 20), (0, 30)],
    "gammaincinv": [(0.1, 20), (0, 1)], "gammainccinv": [(0.1, 20), (0, 1)],
    "hyp2f1": [(-3, 3), (-3, 3), (0.5, 4), (-2, 0.99)], "ive": [(0, 3), (-1, 9)],
    "jv": [(0, 3), (0, 9)], "kve": [(0, 3), (-1, 9)], "owens_t": [(-3, 3), (-3, 3)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", [*FLOATS, "int8"])
def test_special_functions(same, name, dtype):
    """In batches that broadcast, of layouts of all kinds, empty and with what is out of bounds."""
    operands = [pt.tensor(dtype=dtype, shape=(None, None)) for _ in SPECIAL[name]]
    result = getattr(pt, name)(*operands)
    bounds = [0, 1, -1, 2, 100] if dtype == "int8" else [0, -0.0, 1, -1, np.inf, -np.inf, np.nan]
    given = []
    for k, (low, high) in enumerate(SPECIAL[name]):
        drawn = np.random.default_rng(k).uniform(low, high, (6, 40))
        drawn[:, ::4] = np.random.default_rng(k + 9).choice(bounds, (6, 10))
        given.append(drawn.astype(dtype))
    with np.errstate(all="ignore"):
        for view in (lambda x: x, lambda x: x[::2, ::-1], lambda x: x.T, lambda x: x[:0]):
            same([*operands], result, [view(x) for x in given], rtol=1e-12, modes=["OPWISE"])
    row = [operands[0], *(x[:1] for x in operands[1:])]
    fixed = [pt.specify_shape(x, (1, None)) if k else x for k, x in enumerate(row)]
    same([*operands], getattr(pt, name)(*fixed), given, rtol=1e-12, modes=["OPWISE"])


@pytest.mark.parametrize("order", [0, 1, 2, 5])
@pytest.mark.parametrize("dtype", FLOATS)
def test_derivatives_of_psi(same, dtype, order):
    x, n = pt.vector("x", dtype=dtype), pt.lvector("n")
    values = [1e-3, 0.5, 1, 2.5, 40, 1e6, -0.5, -3.7, 0, -2, np.nan, np.inf]
    given = np.array(values, dtype)
    with np.errstate(all="ignore"):
        same([x], pt.polygamma(order, x), [given], rtol=1e-12)
        same([n, x], pt.polygamma(n, x), [np.full(len(given), order), given], rtol=1e-12)
    third = pt.grad(pt.grad(pt.grad(pt.gammaln(x).sum(), x).sum(), x).sum(), x)
    same([x], third, [given[:6]], rtol=1e-12)


def test_quantiles_of_logarithms(same):
    """Truncated normal distributions of PyMC draw by them."""
    import pytensor.scalar.math as psm

    x = pt.vector("x")
    values = np.array([-np.inf, -1e300, -800, -30, -0.7, -1e-9, 0, 1, np.nan])
    same([x], Elemwise(psm.ndtri_exp)(x), [values], rtol=1e-12)


def test_special_functions_are_fused_in_c(same):
    import opwise.pytensor

    a, b, x = pt.vectors("abx")
    total = (pt.log(pt.betainc(a, b, x)) - pt.log1p(-pt.gammainc(a, b))).sum()
    given = [values_of("float64", (50,), seed=i) for i in range(3)]
    (_, f) = same([a, b, x], total, given)
    own = opwise.pytensor.own_function(f)
    assert own.linked.in_c == (True,)


@pytest.mark.parametrize("dtype", FLOATS)
def test_derivatives_of_the_hypergeometric_function(same, dtype):
    a, b, c, x = (pt.tensor(n, dtype=dtype, shape=(None,)) for n in "abcx")
    bounds = [(0.5, 2), (0.5, 2), (3, 4), (-0.5, 0.5)]
    given = [values_of(dtype, (6,), low, high, seed=i) for i, (low, high) in enumerate(bounds)]
    same([a, b, c, x], pt.grad(pt.hyp2f1(a, b, c, x).sum(), [a, b, c, x]), given, rtol=1e-5)


@pytest.mark.parametrize("mode", ["OPWISE", "OPWISE_FAST_COMPILE"])
def test_loops_over_numbers_run_in_c(mode):
    """A loop in the loop over the elements; with no step, too."""
    import opwise.pytensor

    k, x = pt.vector("k"), pt.scalar("x")
    gradient = pt.grad(pt.gammainc(k, x).sum(), x) + pt.grad(pt.gammainc(x, k).sum(), x)
    f = pytensor.function([k, x], gradient, mode=mode)
    assert all(opwise.pytensor.own_function(f).linked.in_c)
    for n in (0, 1, 5):
        given = np.linspace(0.5, 9, n), np.array(2.0)
        expected = pytensor.function([k, x], gradient, mode="FAST_COMPILE")(*given)
        np.testing.assert_allclose(f(*given), expected, rtol=1e-9)
