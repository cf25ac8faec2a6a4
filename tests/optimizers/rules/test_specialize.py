"""Fast elementwise forms: each rule alone, on what it is for and on what looks like it."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.compile import optdb
from opwise.optimizers.database import Query
from opwise.optimizers.rule import Rule
from opwise.optimizers.rules import specialize
from opwise.tensor.elemwise import elemwise

pytestmark = pytest.mark.null

add, mul, neg, second, sqr = map(elemwise, "add mul neg second sqr".split())

#: (rules, graph, what it becomes; None where it stays), equal for infinities and NaN too
EXACT = [
    ("local_add_specialize", lambda x, y: add(x, 0, y), "add(x, y)"),
    ("local_add_specialize", lambda x: x + 0, "x"),
    ("local_add_specialize", lambda r: r + np.zeros((3, 1)), "second(0.0, r)"),
    ("local_add_specialize", lambda x, y: x + second(y, 0.0), "x"),
    ("local_add_specialize", lambda x: add(second(x, 0.0)), "second(x, 0.0)"),
    ("local_add_specialize", lambda i: add(i, 0.0), "Cast{float64}(i)"),
    ("local_add_specialize", lambda b: add(b, b, np.float64(0)), None),
    ("local_add_specialize", lambda x: x + 1, None),
    ("local_neg_neg", lambda x: neg(neg(x)), "x"),
    ("local_neg_neg", lambda x: -abs(x), None),
    ("local_neg_div_neg", lambda x, y: -(-x / y), "true_div(x, y)"),
    ("local_neg_div_neg", lambda y: -(2.0 / y), "true_div(-2.0, y)"),
    ("local_neg_div_neg", lambda x, y: -(x / y), None),
    ("local_neg_div_neg", lambda x, y: [-(-x / y), -x / y], None),
    ("local_mul_specialize", lambda x: mul(-1, x), "neg(x)"),
    ("local_mul_specialize", lambda i: mul(-1.0, i), "neg(Cast{float64}(i))"),
    ("local_mul_specialize", lambda x: mul(1, x), "x"),
    ("local_mul_specialize", lambda x, y: mul(x, 1, y), "mul(x, y)"),
    ("local_mul_specialize", lambda x, y: -x * -y, "mul(x, y)"),
    ("local_mul_specialize", lambda x, y: -x * y, "mul(-1.0, x, y)"),
    ("local_mul_specialize", lambda x, y: mul(-1.0, x, y), None),
    ("local_mul_specialize", lambda x, y: mul(x, -1.0, -y), "mul(x, y)"),
    ("local_mul_specialize", lambda x, y: mul(x, -1.0, y), None),
    ("local_mul_specialize", lambda x, y: mul(x, -1.0, y, 1.0), "mul(-1.0, x, y)"),
    ("local_mul_specialize", lambda x, y: [-x * y, -x], None),
    ("local_mul_specialize", lambda x, y, z: mul(-1.0, -x, -y, z), "mul(-1.0, x, y, z)"),
    ("local_mul_specialize", lambda x, y: mul(-x, -1.0, y, -1.0), "mul(-1.0, x, y)"),
    ("local_mul_specialize", lambda x: mul(2, x), None),
    ("local_mul_specialize", lambda h: mul(np.uint8(255), h), None),
    ("local_mul_to_sqr", lambda x: x * x, "sqr(x)"),
    ("local_mul_to_sqr", lambda x: mul(x, x, x), "mul(sqr(x), x)"),
    ("local_mul_to_sqr", lambda x: mul(x, x, x, x), "sqr(sqr(x))"),
    ("local_mul_to_sqr", lambda x, y: mul(x, y, x), "mul(sqr(x), y)"),
    ("local_mul_to_sqr", lambda x, s: mul(x, s, s), "mul(x, sqr(DS{x,x}(s)))"),
    ("local_mul_to_sqr", lambda b: b * b, "sqr(b)"),
    ("local_mul_to_sqr", lambda b, x: mul(b, b, x), None),
    ("local_mul_to_sqr", lambda x, y: x * y, None),
    ("local_abs_merge", lambda x, y: abs(x) * abs(y), "Abs(mul(x, y))"),
    ("local_abs_merge", lambda x, y: abs(x) / abs(y), "Abs(true_div(x, y))"),
    ("local_abs_merge", lambda x, y, z: mul(abs(x), z, abs(y)), "mul(z, Abs(mul(x, y)))"),
    ("local_abs_merge", lambda x, y: mul(2.0, abs(x), abs(y)), "Abs(mul(2.0, x, y))"),
    ("local_abs_merge", lambda x: mul(2.0, abs(x)), None),
    ("local_abs_merge", lambda x, y: mul(-2.0, abs(x), abs(y)), "mul(-2.0, Abs(mul(x, y)))"),
    ("local_abs_merge", lambda x, y: mul(2.0, x), None),
    ("local_abs_merge", lambda b: abs(b) * abs(b), None),
    # the product of the two would be float32
    ("local_abs_merge", lambda x, f, g: mul(x, abs(f), abs(g)), None),
    ("local_abs_merge", lambda x, y: abs(x) * y, None),
    ("local_abs_merge", lambda x, y: abs(x) / y, None),
    ("local_div_to_inv", lambda x: 1 / x, "inv(x)"),
    ("local_div_to_inv", lambda b: 1 / b, "inv(Cast{float64}(b))"),
    ("local_div_to_inv", lambda r: np.ones((3, 3)) / r, "second(1.0, inv(r))"),
    ("local_div_to_inv", lambda x: 2 / x, None),
    ("local_pow_specialize", lambda x: x**2, "sqr(x)"),
    ("local_pow_specialize", lambda b: b**2, "sqr(b)"),
    ("local_pow_specialize", lambda b, x: b ** np.int32(2), "sqr(Cast{int32}(b))"),
    ("local_pow_specialize", lambda x: x**-1, "inv(x)"),
    ("local_pow_specialize", lambda x: x**-2, "sqr(inv(x))"),
    ("local_pow_specialize", lambda x: x**0, "second(x, 1.0)"),
    ("local_pow_specialize", lambda x: x**1, "x"),
    ("local_pow_specialize", lambda v: v ** np.full(3, 2), "sqr(v)"),
    ("local_pow_specialize", lambda r: r ** np.full((3, 3), 2.0), "second(2.0, sqr(r))"),
    ("local_pow_specialize", lambda i: i**-1, None),
    ("local_pow_specialize", lambda x: x**3, None),
    ("local_pow_specialize", lambda x, y: x**y, None),
]

#: the same, but only for finite values
FINITE = [
    ("local_elemwise_sub_zeros", lambda x: x - x, "second(x, 0.0)"),
    ("local_elemwise_sub_zeros", lambda x, y: x - y, None),
    ("local_mul_specialize", lambda x, y: mul(x, 0, y), "second(x, 0.0)"),
    # the root of minus infinity is not a number, its power 1/2 infinite
    ("local_pow_specialize", lambda x: abs(x) ** 0.5, "sqrt(Abs(x))"),
    ("local_pow_specialize", lambda x: abs(x) ** -0.5, "inv(sqrt(Abs(x)))"),
    ("local_pow_specialize", lambda b: abs(b) ** 0.5, "sqrt(Cast{float32}(Abs(b)))"),
]

POWERS = [
    (lambda x: x**3, "mul(sqr(x), x)"),
    (lambda x: x**4, "sqr(sqr(x))"),
    (lambda x: x**11, "mul(sqr(sqr(sqr(x))), sqr(x), x)"),
    (lambda x: x**-3, "mul(sqr(inv(x)), inv(x))"),
    (lambda x: x**5.0, "mul(sqr(sqr(x)), x)"),
    (lambda x: abs(x) ** 0.75, "mul(sqrt(sqrt(Abs(x))), sqrt(Abs(x)))"),
    (lambda x: abs(x) ** 0.25, "sqrt(sqrt(Abs(x)))"),
    (lambda x: abs(x) ** 1.5, "mul(sqrt(Abs(x)), Abs(x))"),
    (
        lambda x: abs(x) ** -2.75,
        "mul(sqrt(sqrt(inv(Abs(x)))), sqrt(inv(Abs(x))), sqr(inv(Abs(x))))",
    ),
    (lambda x: abs(x) ** -0.75, "inv(mul(sqrt(sqrt(Abs(x))), sqrt(Abs(x))))"),
    (lambda x: x**1.5, "Switch(EQ(x, -inf), inf, Abs(mul(sqrt(x), x)))"),
    (lambda x: x**-0.25, "Switch(EQ(x, -inf), 0.0, Abs(inv(sqrt(sqrt(x)))))"),
    (lambda x: x**-1.5, "Switch(EQ(x, 0.0), inf, Abs(mul(sqrt(inv(x)), inv(x))))"),
    (lambda i: i**3, "mul(sqr(i), i)"),
    (lambda b: b**7, "mul(sqr(sqr(b)), sqr(b), b)"),
    (lambda b: b**3.0, "mul(sqr(Cast{float32}(b)), Cast{float32}(b))"),
    (lambda k: k**3, "mul(sqr(k), k)"),
    (lambda i: i**-3, None),
    (lambda x: x**2.3, None),
    (lambda x: x**16.25, None),
    (lambda x: x**513, None),
    (lambda x: x**np.inf, None),
    (lambda x: x**-np.inf, None),
    (lambda x: x**np.nan, None),
    (lambda x, y: x**y, None),
]


def _ids(table):
    return [f"{names.split()[0]}-{i}" for i, (names, _, _) in enumerate(table)]


def _check(rewritten, stage, names, build, expected, special):
    before, after = rewritten(stage, names, build, special)
    assert after == (before if expected is None else expected)


@pytest.mark.parametrize("names, build, expected", EXACT, ids=_ids(EXACT))
def test_exact(rewritten, names, build, expected):
    _check(rewritten, "specialize", names, build, expected, special=True)


@pytest.mark.parametrize("names, build, expected", FINITE, ids=_ids(FINITE))
def test_finite(rewritten, names, build, expected):
    _check(rewritten, "specialize", names, build, expected, special=False)


@pytest.mark.parametrize("build, expected", POWERS)
def test_powers(rewritten, build, expected):
    _check(
        rewritten, "specialize_device", "local_pow_specialize_device", build, expected, special=True
    )


def test_all_rules_take_part_in_one_stage_under_fast_run():
    mine = {name for name, rule in vars(specialize).items() if isinstance(rule, Rule)}
    chosen = [
        set(optdb[s].select(Query(["fast_run"]))) for s in ("specialize", "specialize_device")
    ]
    assert mine & chosen[1] == {"local_pow_specialize_device"}
    assert mine & chosen[0] == mine - chosen[1]


def test_a_power_takes_few_products(rewritten):
    _, after = rewritten("specialize_device", "local_pow_specialize_device", lambda x: x**500)
    # 500 is 111110100 in binary: six factors, the largest of eight squares
    assert "pow" not in after
    assert after.count("x") == 6


@pytest.mark.parametrize("exponent", [1.5, -0.25])
def test_a_power_is_one_loop(exponent):
    x = T.dmatrix("x")
    f = function([x], x**exponent, mode="FAST_RUN")
    assert len(f.maker.fgraph.apply_nodes) == 1
    data = np.array([[-np.inf, -0.0], [0.0, 4.0]])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(f(data), data**exponent)
