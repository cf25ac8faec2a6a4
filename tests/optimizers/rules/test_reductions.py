"""Reductions: each rule alone, on what it is for and on what looks like it."""

from copy import copy

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.compile import optdb
from opwise.optimizers.database import Query
from opwise.optimizers.rule import Rule
from opwise.optimizers.rules import reductions
from opwise.tensor import Prod, Sum
from opwise.tensor.elemwise import elemwise

pytestmark = pytest.mark.null

neg = elemwise("neg")

#: (stage, rules, graph, what it becomes; None where it stays)
CASES = [
    ("canonicalize", "local_useless_reduce", lambda s: T.sum(s), "s"),
    ("canonicalize", "local_useless_reduce", lambda x: T.sum(x, axis=[]), "x"),
    ("canonicalize", "local_useless_reduce", lambda b: T.sum(b, axis=[]), "Cast{int64}(b)"),
    ("canonicalize", "local_useless_reduce", lambda x: T.all(x > 0, axis=[]), "GT(x, 0)"),
    ("canonicalize", "local_useless_reduce", lambda x: T.sum(x), None),
    # broadcastable axes
    ("canonicalize", "local_reduce_broadcastable", lambda r: T.sum(r, axis=0), "DS{1}(r)"),
    ("canonicalize", "local_reduce_broadcastable", lambda r: T.sum(r, axis=1), None),
    ("canonicalize", "local_reduce_broadcastable", lambda r: T.sum(r), None),
    (
        "canonicalize",
        "local_reduce_broadcastable",
        lambda b: T.prod(b.dimshuffle("x", 0, 1), axis=0),
        "Cast{int64}(b)",
    ),
    (
        "canonicalize",
        "local_reduce_broadcastable",
        lambda x: T.prod(x.dimshuffle("x", 0, 1), axis=(0, 1)),
        "Prod{axis=(0,), dtype='float64', acc_dtype='float64'}(x)",
    ),
    (
        "canonicalize",
        "local_reduce_broadcastable",
        lambda p: T.any(p.dimshuffle(0, "x", 1), axis=(1, 2)),
        "Any{1}(p)",
    ),
    # all axes
    (
        "canonicalize",
        "local_sum_prod_all_to_none",
        lambda x: T.sum(x, axis=(0, 1)),
        "Sum{acc_dtype=float64}(x)",
    ),
    ("canonicalize", "local_sum_prod_all_to_none", lambda x: T.sum(x, axis=0), None),
    ("canonicalize", "local_sum_prod_all_to_none", lambda x: T.any(x > 0, axis=(0, 1)), None),
    # reductions of reductions
    ("canonicalize", "local_op_of_op", lambda x: x.sum(axis=0).sum(), "Sum{acc_dtype=float64}(x)"),
    (
        "canonicalize",
        "local_op_of_op",
        lambda m: m.sum(axis=0).sum(axis=1),
        "Sum{axis=[0, 2], acc_dtype=float64}(m)",
    ),
    (
        "canonicalize",
        "local_op_of_op",
        lambda m: m.prod(axis=1).prod(axis=0),
        "Prod{axis=(0, 1), dtype='float64', acc_dtype='float64'}(m)",
    ),
    ("canonicalize", "local_op_of_op", lambda i: i.sum(axis=0).sum(), "Sum{acc_dtype=int64}(i)"),
    ("canonicalize", "local_op_of_op", lambda f: f.sum(axis=0).sum(), "Sum{acc_dtype=float64}(f)"),
    (
        "canonicalize",
        "local_op_of_op",
        lambda m: T.any(T.any(m > 0, axis=0), axis=0),
        "Any{0, 1}(GT(m, 0))",
    ),
    ("canonicalize", "local_op_of_op", lambda x: x.prod(axis=0).sum(), None),
    ("canonicalize", "local_op_of_op", lambda x: [x.sum(axis=0).sum(), x.sum(axis=0)], None),
    ("canonicalize", "local_op_of_op", lambda b: b.sum(axis=0, dtype="int8").sum(), None),
    # joined only for it
    ("canonicalize", "local_reduce_join", lambda x, y: T.stack([x, y]).sum(axis=0), "add(x, y)"),
    (
        "canonicalize",
        "local_reduce_join",
        lambda x, y, z: T.stack([x, y, z]).prod(axis=0),
        "mul(x, y, z)",
    ),
    (
        "canonicalize",
        "local_reduce_join",
        lambda b: T.stack([b, b]).sum(axis=0),
        "add(Cast{int64}(b), Cast{int64}(b))",
    ),
    (
        "canonicalize",
        "local_reduce_join",
        lambda p, q: T.any(T.stack([p, q]), axis=0),
        "OR(p, q)",
    ),
    ("canonicalize", "local_reduce_join", lambda x, y: T.stack([x, y]).sum(axis=1), None),
    ("canonicalize", "local_reduce_join", lambda x, y: T.concatenate([x, y]).sum(axis=0), None),
    (
        "canonicalize",
        "local_reduce_join",
        lambda p, q: T.any(T.stack([p, q, p]), axis=0),
        None,
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_reduce_join",
        lambda x, y: T.max(T.stack([x, y]), axis=0),
        "maximum(x, y)",
    ),
    # divisors and factors
    (
        "canonicalize",
        "local_sum_prod_div_dimshuffle",
        lambda x, s: T.sum(x / s),
        "true_div(Sum{acc_dtype=float64}(x), s)",
    ),
    (
        "canonicalize",
        "local_sum_prod_div_dimshuffle",
        lambda x, v: T.sum(x / v, axis=0),
        "true_div(Sum{axis=[0], acc_dtype=float64}(x), v)",
    ),
    (
        "canonicalize",
        "local_sum_prod_div_dimshuffle",
        lambda i, c: T.sum(i / c, axis=1),
        "true_div(Sum{axis=[1], acc_dtype=float64}(i), DS{0}(c))",
    ),
    ("canonicalize", "local_sum_prod_div_dimshuffle", lambda x, v: T.sum(x / v, axis=1), None),
    ("canonicalize", "local_sum_prod_div_dimshuffle", lambda x, s: T.sum(s / x), None),
    ("canonicalize", "local_sum_prod_div_dimshuffle", lambda x, s: T.prod(x / s), None),
    (
        "canonicalize",
        "local_sum_prod_div_dimshuffle",
        lambda x, s: T.sum(x / s, dtype="float32", acc_dtype="float64"),
        None,
    ),
    (
        "specialize",
        "local_sum_prod_mul_by_scalar",
        lambda x: T.sum(2 * x),
        "mul(2.0, Sum{acc_dtype=float64}(x))",
    ),
    (
        "specialize",
        "local_sum_prod_mul_by_scalar",
        lambda x, y, s, t: T.sum(elemwise("mul")(s, x, t, y), axis=0),
        "mul(DS{x}(s), DS{x}(t), Sum{axis=[0], acc_dtype=float64}(mul(x, y)))",
    ),
    (
        "specialize",
        "local_sum_prod_mul_by_scalar",
        lambda x: T.sum(-x),
        "neg(Sum{acc_dtype=float64}(x))",
    ),
    (
        "specialize",
        "local_sum_prod_mul_by_scalar",
        lambda f, i: T.sum(2 * f),
        "mul(2.0, Sum{acc_dtype=float64}(f))",
    ),
    (
        "specialize",
        "local_sum_prod_mul_by_scalar",
        lambda f, s: T.sum(elemwise("mul")(s, f, f)),
        "mul(s, Sum{acc_dtype=float64}(mul(Cast{float64}(f), f)))",
    ),
    ("specialize", "local_sum_prod_mul_by_scalar", lambda i: T.sum(2 * i), None),
    (
        "specialize",
        "local_sum_prod_mul_by_scalar",
        lambda n, v: T.sum(n * T.cast(v, "int64")),
        "mul(n, Sum{acc_dtype=int64}(Cast{int64}(v)))",
    ),
    ("specialize", "local_sum_prod_mul_by_scalar", lambda x, y: T.sum(x * y), None),
    ("specialize", "local_sum_prod_mul_by_scalar", lambda x, s: T.sum(x + s), None),
    ("specialize", "local_sum_prod_mul_by_scalar", lambda x: T.prod(2 * x), None),
    (
        "specialize",
        "local_reduce_of_cast",
        lambda i: T.sum(i, axis=0, dtype="float32", acc_dtype="float64"),
        "Sum{axis=[0], acc_dtype=float64}(Cast{float64}(i))",
    ),
    (
        "specialize",
        "local_reduce_of_cast",
        lambda i: T.sum(i, dtype="int8"),
        "Cast{int8}(Sum{acc_dtype=int64}(i))",
    ),
    ("specialize", "local_reduce_of_cast", lambda x: T.sum(x, dtype="float32"), None),
    # extrema
    ("uncanonicalize", "local_max_and_argmax", lambda x: T.max(x), "Reduce{maximum}{0, 1}(x)"),
    (
        "uncanonicalize",
        "local_max_and_argmax",
        lambda x: T.argmax(x, axis=0),
        "Argmax{axis=(0,)}(x)",
    ),
    ("uncanonicalize", "local_max_and_argmax", lambda s: T.max(s), "s"),
    ("uncanonicalize", "local_max_and_argmax", lambda x: T.max_and_argmax(x, axis=0), None),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda x: T.min(x, axis=1),
        "Reduce{minimum}{1}(x)",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda x: T.min(x, axis=1, keepdims=True),
        "DS{0,x}(Reduce{minimum}{1}(x))",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda h: T.min(h),
        "Reduce{minimum}{0, 1}(h)",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda p: T.min(p, axis=0),
        "Reduce{minimum}{0}(p)",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda x: [-T.max(-x), T.max(-x)],
        "neg(Reduce{maximum}{0, 1}(neg(x))); Reduce{maximum}{0, 1}(neg(x))",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda x: -T.max(x),
        "neg(Reduce{maximum}{0, 1}(x))",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_max_to_min",
        lambda h: 7 - T.max(255 - h),
        "sub(7, Reduce{maximum}{0, 1}(sub(255, h)))",
    ),
    (
        "uncanonicalize",
        "local_max_and_argmax local_reduce_broadcastable local_max_to_min",
        lambda r: T.min(r.dimshuffle(0, 1, "x"), axis=(0, 1)),
        "Reduce{minimum}{0}(DS{1,x}(r))",
    ),
    # squared norms
    (
        "specialize",
        "local_sumsqr2dot",
        lambda x, y: T.sqr(x.dimshuffle("x", 0, 1) * y.dimshuffle(0, "x", 1)).sum(axis=(1, 2)),
        "dot(sqr(y), Sum{axis=[0], acc_dtype=float64}(sqr(x)))",
    ),
    (
        "specialize",
        "local_sumsqr2dot",
        lambda x, f: T.sqr(x.dimshuffle("x", 0, 1) * f.dimshuffle(0, "x", 1)).sum(axis=(1, 2)),
        None,
    ),
    (
        "specialize",
        "local_sumsqr2dot",
        lambda x, c: T.sqr(x.dimshuffle("x", 0, 1) * c.dimshuffle(0, "x", 1)).sum(axis=(1, 2)),
        None,
    ),
    (
        "specialize",
        "local_sumsqr2dot",
        lambda x, y: T.sqr(x.dimshuffle("x", 0, 1) + y.dimshuffle(0, "x", 1)).sum(axis=(1, 2)),
        None,
    ),
    (
        "specialize",
        "local_argmax_pushdown",
        lambda x: T.argmax(T.exp(x), axis=0),
        "MaxAndArgmax{axis=(0,)}.1(x)",
    ),
    (
        "specialize",
        "local_argmax_pushdown",
        lambda x: T.argmax(T.nnet.softmax(x), axis=-1),
        "MaxAndArgmax{axis=(1,)}.1(x)",
    ),
    ("specialize", "local_argmax_pushdown", lambda x: T.argmax(T.nnet.softmax(x), axis=0), None),
    ("specialize", "local_argmax_pushdown", lambda x: T.argmax(abs(x), axis=0), None),
    ("specialize", "local_argmax_pushdown", lambda x: T.max(T.exp(x), axis=0), None),
]


@pytest.mark.parametrize(
    "stage, names, build, expected",
    CASES,
    ids=[f"{names.split()[-1]}-{i}" for i, (_, names, _, _) in enumerate(CASES)],
)
def test_rule(rewritten, stage, names, build, expected):
    before, after = rewritten(stage, names, build)
    assert after == (before if expected is None else expected)


def test_a_promise_about_zeros_is_kept():
    x = T.dmatrix("x")
    product = Prod(axis=(0, 1), no_zeros_in_input=True)(x)
    (replaced,) = reductions.local_sum_prod_all_to_none(None, product.owner)
    assert replaced.owner.op.no_zeros_in_input
    # and the Op that the user applied is as it was
    assert product.owner.op.axis == (0, 1)


def test_the_user_s_op_is_not_changed():
    op = Sum(axis=(0, 1))
    before = hash(op)
    reductions.local_sum_prod_all_to_none(None, op(T.dmatrix()).owner)
    assert hash(op) == before


@pytest.mark.parametrize(
    "stage, tag, names",
    [
        ("canonicalize", "fast_compile", "local_useless_reduce"),
        ("canonicalize", "local_cut_useless_reduce", "local_useless_reduce"),
        ("useless", "local_cut_useless_reduce", "local_useless_reduce"),
        (
            "canonicalize",
            "fast_run",
            "local_op_of_op local_reduce_broadcastable local_reduce_join "
            "local_sum_prod_all_to_none local_sum_prod_div_dimshuffle local_useless_reduce",
        ),
        (
            "specialize",
            "fast_run",
            "local_argmax_pushdown local_reduce_broadcastable local_sum_prod_div_dimshuffle "
            "local_sum_prod_mul_by_scalar local_sumsqr2dot local_reduce_of_cast",
        ),
        ("specialize", "fast_compile_gpu", "local_argmax_pushdown"),
        (
            "uncanonicalize",
            "fast_run",
            "local_max_and_argmax local_max_to_min local_reduce_broadcastable local_reduce_join",
        ),
    ],
)
def test_rules_take_part_in_the_stages_that_programs_know(stage, tag, names):
    database = getattr(optdb[stage], "db", optdb[stage])
    mine = {name for name, rule in vars(reductions).items() if isinstance(rule, Rule)}
    assert mine.intersection(database.select(Query([tag]))) == set(names.split())


#: (the sum as written, shapes of both factors): numpy computes it in the same words
OUTER = [
    (lambda x, y: (x[:, :, None] * y[None, :, :]).sum(axis=1), (5, 7), (7, 3)),
    (lambda x, y: (x[:, None, :] * y[None, :, :]).sum(axis=2), (5, 7), (3, 7)),
    (lambda x, y: (y[:, :, None] * x[None, :, :]).sum(axis=1), (7, 5), (3, 7)),
    (lambda x, y: (x[:, :, None, None] * y[None, :, :, :]).sum(axis=1), (5, 7), (7, 3, 2)),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("build", "of_x", "of_y"), OUTER)
def test_sums_of_outer_products_are_products_of_matrices(build, of_x, of_y, dtype):
    rng = np.random.RandomState(4)
    a, b = rng.rand(*of_x).astype(dtype), rng.rand(*of_y).astype(dtype)
    x, y = T.matrix(dtype=dtype), T.TensorType(dtype, (False,) * b.ndim)()
    total = build(x, y).owner
    op = copy(total.op)
    op.acc_dtype = dtype
    f = function([x, y], op(*total.inputs))
    names = [type(n.op).__name__ for n in f.maker.fgraph.toposort()]
    assert "Dot22" in names and "MapReduce" not in names
    np.testing.assert_allclose(f(a, b), build(a, b), rtol=1e-5)
    with pytest.raises(ValueError, match="Shapes do not fit"):
        f(a[:-1, :-1], b)
