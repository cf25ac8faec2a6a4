"""Canonical elementwise algebra: each rule alone, on what it is for and on what looks like it."""

import numpy as np
import pytest
from checking import check_rewrite, evaluate

import opwise.tensor as T
from opwise import FunctionGraph, function, sparse
from opwise.compile import optdb
from opwise.gradient import disconnected_grad, grad
from opwise.optimizers.database import Query
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.rule import Rule
from opwise.optimizers.rules import canonicalize
from opwise.optimizers.rules.canonizer import PRODUCTS, WIDEST
from opwise.optimizers.rules.matching import operands
from opwise.random import RandomStreams
from opwise.tensor import Elemwise
from opwise.tensor.convert import OutputGuard
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type
from opwise.typed_list import make_list

pytestmark = pytest.mark.null

second, switch, inv, neg, identity = map(elemwise, "second switch inv neg identity".split())
lt, le, gt, ge, eq, neq = map(elemwise, "lt le gt ge eq neq".split())
add, mul, sub, true_div, int_div = map(elemwise, "add mul sub true_div int_div".split())

#: (rules, graph, what it becomes; None where it stays), equal for infinities and NaN too
EXACT = [
    # sums: a number first, sums of sums flat
    ("local_add_canonizer", lambda x: x + 1, "add(1.0, x)"),
    ("local_add_canonizer", lambda x: 1 + x + 2, "add(3.0, x)"),
    ("local_integer_add_canonizer", lambda i: 1 + i + 2, "add(3, i)"),
    ("local_integer_add_canonizer", lambda x, y: x + y - x, None),
    ("local_add_canonizer", lambda x: x - 1, "add(-1.0, x)"),
    ("local_add_canonizer", lambda x, y: x - 1 - y, "sub(add(-1.0, x), y)"),
    ("local_add_canonizer", lambda x: 2 - x, "sub(2.0, x)"),
    ("local_add_canonizer", lambda x: 0 - x, "neg(x)"),
    ("local_add_canonizer", lambda x: x + np.zeros((1, 3)), "x"),
    ("local_add_canonizer", lambda r: r + np.zeros((3, 3)), "second(0.0, r)"),
    ("local_add_canonizer", lambda x: x + np.array([[1.0, 2.0, 3.0]]), None),
    ("local_add_canonizer", lambda x, y, z: x + y + z, "add(x, y, z)"),
    ("local_add_canonizer", lambda x, y, z: x + (y + z), "add(x, y, z)"),
    ("local_add_canonizer", lambda x, y, z: x - y - z, None),
    ("local_add_canonizer", lambda x, y: [x + y + 1, x + y], "add(1.0, add(x, y)); add(x, y)"),
    ("local_add_canonizer", lambda x, r: (r + r) + x, None),
    ("local_add_canonizer", lambda x, y: x + -y, "sub(x, y)"),
    ("local_add_canonizer", lambda x, y: x - -y, "add(x, y)"),
    ("local_add_canonizer", lambda x: x + x, None),
    ("local_add_canonizer", lambda f: f + 1.5 - 1, "add(0.5, f)"),
    ("local_add_canonizer", lambda b: b + 100 + 100, "add(-56, b)"),
    ("local_add_canonizer", lambda h: h - np.uint8(3), "add(253, h)"),
    ("local_add_canonizer", lambda b, x: (b + 100) + x, "add(add(100, b), x)"),
    ("local_add_canonizer", lambda p: p + np.bool_(True) + p, "add(True, p, p)"),
    ("local_add_canonizer", lambda x: x + 1e308 + 1e308, "add(x, 1e+308, 1e+308)"),
    ("local_add_canonizer", lambda k: 1 + k + 2, "add((3+0j), k)"),
    # products likewise
    ("local_mul_canonizer", lambda x: x * 2, "mul(2.0, x)"),
    ("local_mul_canonizer", lambda x: x * 2 * 3, "mul(6.0, x)"),
    ("local_mul_canonizer", lambda x: 2 * x / 4, "mul(0.5, x)"),
    ("local_mul_canonizer", lambda x: 2 / x * 3, "true_div(6.0, x)"),
    ("local_mul_canonizer", lambda x: 1 / x, "true_div(1.0, x)"),
    ("local_mul_canonizer", lambda x: inv(x), "true_div(1.0, x)"),
    ("local_mul_canonizer", lambda x, y: x * inv(y), "true_div(x, y)"),
    ("local_mul_canonizer", lambda x, y: x * (1 / y), "true_div(x, y)"),
    ("local_mul_canonizer", lambda x: 1 * x, "x"),
    ("local_mul_canonizer", lambda x: x / 1, "x"),
    ("local_mul_canonizer", lambda x: x * np.ones((3, 3)), "x"),
    ("local_mul_canonizer", lambda i: i * 1.0, "Cast{float64}(i)"),
    ("local_mul_canonizer", lambda x, y, z: x * y * z, "mul(x, y, z)"),
    ("local_mul_canonizer", lambda x, y, z: x / y / z, None),
    ("local_mul_canonizer", lambda x, y, z: x / (y / z), None),
    ("local_mul_canonizer", lambda x: x / 0, None),
    ("local_mul_canonizer", lambda x: x * 1e200 * 1e200, "mul(x, 1e+200, 1e+200)"),
    ("local_mul_canonizer", lambda x: x * 1e-200 * 1e-200, "mul(x, 1e-200, 1e-200)"),
    ("local_mul_canonizer", lambda i, j, x: (i * j) * x, None),
    ("local_mul_canonizer", lambda b: b * 2 * 100, "mul(-56, b)"),
    ("local_mul_canonizer", lambda k: k * 2 * 3, "mul((6+0j), k)"),
    ("local_neg_to_mul", lambda x: -x, "mul(-1.0, x)"),
    ("local_neg_to_mul", lambda h: -h, "mul(255, h)"),
    ("local_neg_to_mul local_mul_canonizer", lambda x: neg(neg(x)), "x"),
    ("local_neg_to_mul local_mul_canonizer", lambda x: -(2 * x) * 3, "mul(-6.0, x)"),
    ("local_neg_to_mul local_mul_canonizer", lambda x, y: -x * -y, "mul(x, y)"),
    ("local_neg_to_mul local_mul_canonizer", lambda x, y: x / -y, "true_div(mul(-1.0, x), y)"),
    ("local_intdiv_by_one", lambda i: i // 1, "i"),
    ("local_intdiv_by_one", lambda i, n: n // np.ones((3, 3), "int8"), "second(1, DS{x,x}(n))"),
    ("local_intdiv_by_one", lambda x: x // 1, None),
    ("local_intdiv_by_one", lambda i: i // 2, None),
    ("local_pow_canonicalize", lambda x: x**0, "second(x, 1.0)"),
    ("local_pow_canonicalize", lambda x: x**1, "x"),
    ("local_pow_canonicalize", lambda b: b ** np.float64(1), "Cast{float64}(b)"),
    ("local_pow_canonicalize", lambda x: x**2, None),
    ("local_upcast_elemwise_constant_inputs", lambda x: T.maximum(x, 0), "maximum(x, 0.0)"),
    ("local_upcast_elemwise_constant_inputs", lambda i: i + 0.5, None),
    ("local_upcast_elemwise_constant_inputs", lambda i: i / 2, "true_div(i, 2.0)"),
    ("local_upcast_elemwise_constant_inputs", lambda x: x > 0, None),
    # functions of functions
    ("local_func_inv", lambda x: neg(neg(x)), "x"),
    ("local_func_inv", lambda x: T.deg2rad(T.rad2deg(x)), "x"),
    ("local_func_inv", lambda k: T.conj(T.conj(k)), "k"),
    ("local_func_inv", lambda p: ~~p, "p"),
    ("local_func_inv", lambda x: T.exp(T.log(x)), None),
    ("local_func_inv", lambda i: T.deg2rad(T.rad2deg(i)), None),
    ("local_abs_lift", lambda x, y: abs(x * y), "mul(Abs(x), Abs(y))"),
    ("local_abs_lift", lambda x, y: abs(x / y), "true_div(Abs(x), Abs(y))"),
    ("local_abs_lift", lambda x: abs(-2.0 * x), "mul(2.0, Abs(x))"),
    ("local_abs_lift", lambda k, x: abs(k * x), "mul(Abs(k), Abs(x))"),
    ("local_abs_lift", lambda b: abs(b * b), None),
    ("local_abs_lift", lambda x, y: abs(x + y), None),
    ("local_cast_cast", lambda f: T.cast(T.cast(f, "float64"), "float32"), "f"),
    ("local_cast_cast", lambda i: T.cast(T.cast(i, "int64"), "float64"), "Cast{float64}(i)"),
    ("local_cast_cast", lambda i: T.cast(T.cast(i, "float64"), "int32"), "i"),
    ("local_cast_cast", lambda i: T.cast(T.cast(i, "int64"), "int8"), "Cast{int8}(i)"),
    ("local_cast_cast", lambda b: T.cast(T.cast(b, "float32"), "bool"), "Cast{bool}(b)"),
    ("local_cast_cast", lambda p: T.cast(T.cast(p, "int8"), "bool"), "p"),
    ("local_cast_cast", lambda x: T.cast(T.cast(x, "float32"), "float64"), None),
    ("local_cast_cast", lambda i: T.cast(T.cast(i, "int8"), "int32"), None),
    ("local_cast_cast", lambda i: T.cast(T.cast(i, "float64"), "int8"), None),
    ("local_cast_cast", lambda n: T.cast(T.cast(n, "float64"), "int64"), None),
    ("local_cast_cast", lambda n: T.cast(T.cast(n, "float64"), "float32"), None),
    # copies and fills
    ("local_view_op", lambda x: disconnected_grad(x) * x, "mul(x, x)"),
    ("remove_tensor_copy", lambda x: x.copy(), "x"),
    ("local_useless_fill", lambda x, y: second(x, y), "y"),
    ("local_useless_fill", lambda x, f: second(x, f), "f"),
    ("local_useless_fill", lambda s, t: second(s, t), "t"),
    ("local_useless_fill", lambda x, s: second(x, s), None),
    ("local_useless_fill", lambda x, r: second(x, r), None),
    ("local_fill_sink", lambda x, s: T.exp(second(x, s)), "second(x, exp(DS{x,x}(s)))"),
    ("local_fill_sink", lambda x, y, s: second(x, s) * y, "mul(DS{x,x}(s), y)"),
    (
        "local_fill_sink",
        lambda x, y, s, t: second(x, s) + second(y, t),
        "second(x, add(DS{x,x}(s), DS{x,x}(t)))",
    ),
    ("local_fill_sink", lambda r, c, s: second(r, s) * c, "second(r, mul(DS{x,x}(s), c))"),
    ("local_fill_sink", lambda x, s, t: second(second(x, s), t), "second(x, DS{x,x}(t))"),
    ("local_fill_sink", lambda r, c, s: second(second(r, c), s), None),
    ("local_fill_sink", lambda x, r, s: second(x, second(r, s)), "second(x, DS{x,x}(s))"),
    ("local_fill_sink", lambda x, r, c: second(c, second(r, c)), "second(c, second(r, c))"),
    # what is known of operations on one operand, or on equal ones
    ("local_useless_elemwise", lambda x: add(x), "x"),
    ("local_useless_elemwise", lambda x: mul(x), "x"),
    ("local_useless_elemwise", lambda x: identity(x), "x"),
    ("local_useless_elemwise", lambda x, y: add(x, y), None),
    ("local_useless_elemwise", lambda i: eq(i, i), "second(i, True)"),
    ("local_useless_elemwise", lambda i: neq(i, i), "second(i, False)"),
    ("local_useless_elemwise", lambda i, j: eq(i, j), None),
    # NaN is not equal to itself
    ("local_useless_elemwise", lambda x: [eq(x, x), neq(x, x)], None),
    ("local_useless_elemwise_comparison", lambda x: [x <= x, x >= x], None),
    ("local_useless_elemwise", lambda p: p & p, "p"),
    ("local_useless_elemwise", lambda i: i | i, "i"),
    ("local_useless_elemwise", lambda i: i ^ i, "second(i, 0)"),
    ("local_useless_elemwise", lambda i: i & 0, "second(i, 0)"),
    ("local_useless_elemwise", lambda i: i & -1, "i"),
    ("local_useless_elemwise", lambda i: i | 0, "i"),
    ("local_useless_elemwise", lambda i: i | -1, "second(i, -1)"),
    ("local_useless_elemwise", lambda i: i ^ 0, "i"),
    ("local_useless_elemwise", lambda i: i ^ -1, None),
    ("local_useless_elemwise", lambda i: i & 3, None),
    ("local_useless_elemwise", lambda b: b & np.int32(-1), "Cast{int32}(b)"),
    ("local_useless_elemwise", lambda h: h & np.uint8(255), "h"),
    ("local_useless_elemwise_comparison", lambda x: x < x, "second(x, False)"),
    ("local_useless_elemwise_comparison", lambda x: x > x, "second(x, False)"),
    ("local_useless_elemwise_comparison", lambda i: i <= i, "second(i, True)"),
    ("local_useless_elemwise_comparison", lambda s: T.maximum(s, s), "s"),
    ("local_useless_elemwise_comparison", lambda x: T.minimum(x, x), "x"),
    ("local_useless_elemwise_comparison", lambda x, y: T.minimum(x, y), None),
    ("local_useless_elemwise_comparison", lambda x: x.shape[0] < 0, "False"),
    ("local_useless_elemwise_comparison", lambda x: x.shape[0] >= 0, "True"),
    ("local_useless_elemwise_comparison", lambda x: x.shape[0] < 0, "False"),
    ("local_useless_elemwise_comparison", lambda x: eq(x.shape[0], -1), "False"),
    ("local_useless_elemwise_comparison", lambda x: eq(x.shape[0] + 2, -1), "False"),
    ("local_useless_elemwise_comparison", lambda x: x.shape[0] > -1, "True"),
    (
        "local_useless_elemwise_comparison",
        lambda x: T.maximum(x.shape[0], 0),
        "Subtensor{int64}(Shape(x), 0)",
    ),
    ("local_useless_elemwise_comparison", lambda x: T.minimum(x.shape[0], 0), "0"),
    ("local_useless_elemwise_comparison", lambda x: x.shape[0] > 0, None),
    ("local_useless_elemwise_comparison", lambda x: eq(x.shape[0], 0), None),
    ("local_useless_elemwise_comparison", lambda n: n < 0, None),
    (
        "local_useless_elemwise_comparison",
        lambda x: T.eq(T.stack([x.shape[0], x.shape[1]]), -1),
        "second(MakeVector{dtype='int64'}(Subtensor{int64}(Shape(x), 0), "
        "Subtensor{int64}(Shape(x), 1)), False)",
    ),
    ("local_useless_elemwise_comparison", lambda x, n: T.eq(T.stack([x.shape[0], n]), -1), None),
    # switches
    ("local_useless_switch", lambda x, y: switch(1, x, y), "x"),
    ("local_useless_switch", lambda x, y: switch(0, x, y), "y"),
    ("local_useless_switch", lambda x, v: switch(0, x, v), "second(x, DS{x,0}(v))"),
    ("local_useless_switch", lambda x, i: switch(1, i, x), "Cast{float64}(i)"),
    ("local_useless_switch", lambda x, y: switch(x > 0, y, y), "y"),
    ("local_useless_switch", lambda p, s: switch(p, s, s), "second(p, DS{x,x}(s))"),
    (
        "local_useless_switch",
        lambda x: (lambda n: switch(le(n, 0), 0, n))(x.shape[0]),
        "Subtensor{int64}(Shape(x), 0)",
    ),
    ("local_useless_switch", lambda n: switch(le(n, 0), 0, n), None),
    ("local_useless_switch", lambda p, x, y: switch(p, x, y), None),
    (
        "local_merge_switch_same_cond",
        lambda p, x, y, z: switch(p, x, y) + switch(p, z, x),
        "Switch(p, add(x, z), add(y, x))",
    ),
    (
        "local_merge_switch_same_cond",
        lambda p, f, b: switch(p, f, b) * switch(p, b, b),
        "Switch(p, mul(f, b), mul(Cast{float32}(b), b))",
    ),
    ("local_merge_switch_same_cond", lambda p, q, x: switch(p, x, x) + switch(q, x, 1), None),
    ("local_merge_switch_same_cond", lambda p, x, y: switch(p, x, y) + x, None),
]

#: the same, but only for finite values: what has none cancels too
FINITE = [
    # a number over its size is its sign, also of 0
    ("local_mul_canonizer", lambda x: x / abs(x), "sgn(x)"),
    ("local_mul_canonizer", lambda x, y: y * x / abs(x), "mul(y, sgn(x))"),
    ("local_mul_canonizer", lambda x, y: x / (abs(x) * y), "true_div(sgn(x), y)"),
    ("local_mul_canonizer", lambda k: k / abs(k), None),
    ("local_mul_canonizer", lambda x, y: x / abs(y), None),
    ("local_add_canonizer", lambda x: x - x, "second(x, 0.0)"),
    ("local_add_canonizer", lambda i: i - i, "second(i, 0)"),
    ("local_add_canonizer", lambda x, y: x + y - x, "y"),
    ("local_add_canonizer", lambda x, y: x - (x + y), "neg(y)"),
    ("local_add_canonizer", lambda x, y: add(x, y, x) - x, "add(y, x)"),
    ("local_add_canonizer", lambda x, y: (x + y) - (x + y), "second(x, 0.0)"),
    ("local_add_canonizer", lambda x, y: [x + y - x, x + y], "y; add(x, y)"),
    ("local_add_canonizer", lambda x, v: v + x - x, "second(x, DS{x,0}(v))"),
    ("local_add_canonizer local_dimshuffle_lift local_fill_sink", lambda x, v: v - v + x, "x"),
    ("local_add_canonizer", lambda r, c: r + c - r, "second(r, c)"),
    ("local_add_canonizer", lambda x, f: (f + x) - x, "Cast{float64}(f)"),
    (
        "local_add_canonizer",
        lambda i, j, x: T.add(i, j, x) - x,
        "add(Cast{float64}(i), Cast{float64}(j))",
    ),
    ("local_mul_canonizer", lambda x: x / x, "second(x, 1.0)"),
    ("local_mul_canonizer", lambda x, y: x * y / x, "y"),
    ("local_mul_canonizer", lambda x, y: y / x * x, "y"),
    ("local_mul_canonizer", lambda x, y, z: x * y / (x * z), "true_div(y, z)"),
    ("local_mul_canonizer", lambda x, y, z: x * y / (z * x * y), "true_div(1.0, z)"),
    ("local_mul_canonizer", lambda x, s: x * s / s, "x"),
    ("local_mul_canonizer", lambda r, c: r * c / r, "second(r, c)"),
    ("local_mul_canonizer", lambda x: x / 3, "mul(0.3333333333333333, x)"),
    ("local_mul_canonizer", lambda k: k / k, "second(k, (1+0j))"),
    ("local_mul_canonizer", lambda x, r: 2 * (r * x) / (r * 4), "mul(0.5, x)"),
    ("local_mul_zero", lambda x: x * 0, "second(x, 0.0)"),
    ("local_mul_zero", lambda x, y: x * 0 * y, "second(y, 0.0)"),
    ("local_mul_zero", lambda x, i: i * T.zeros_like(x), "second(i, 0.0)"),
    ("local_mul_zero", lambda x: x * T.zeros((3, 3)), "second(x, 0.0)"),
    ("local_mul_zero", lambda x, v: x * v, None),
    ("local_zero_div", lambda x: 0 / x, "second(x, 0.0)"),
    ("local_zero_div", lambda x: T.zeros_like(x) // x, "second(x, 0.0)"),
    ("local_zero_div", lambda x: 1 / x, None),
    ("local_greedy_distributor", lambda x, y, z: (x / y + z) * y, "add(x, mul(z, y))"),
    ("local_greedy_distributor", lambda x, y, z: y * (z - x / y), "sub(mul(z, y), x)"),
    (
        "local_greedy_distributor",
        lambda x, y, z, s: mul(z / (y * x) + s, y, x),
        "add(z, mul(DS{x,x}(s), y, x))",
    ),
    (
        "local_greedy_distributor",
        lambda x, y, z: (x / (y * z) + z) * y,
        "add(true_div(x, z), mul(z, y))",
    ),
    ("local_greedy_distributor", lambda x, y, z: (x + z) * y, None),
    (
        "local_greedy_distributor",
        lambda x, y, z: add(x / y, z, x) * y,
        "add(x, mul(z, y), mul(x, y))",
    ),
    ("local_greedy_distributor", lambda x, y, z, w: add(x / y, z, x, w) * y, None),
    ("local_greedy_distributor", lambda x, y, z: (x * y + z) / y, "add(x, true_div(z, y))"),
    ("local_greedy_distributor", lambda x, y, z: z / ((x / y + 1.0) * y), "true_div(z, add(x, y))"),
    ("local_greedy_distributor", lambda x, y: x / (1 + x), None),
    ("local_greedy_distributor", lambda x, y: x * (1 + y), None),
    ("local_greedy_distributor", lambda v, x: (v + v / v[0]) * x, None),
    (
        "local_greedy_distributor",
        lambda x, y, z: (y * T.exp(x) + z) / (1 + T.exp(x)),
        "add(true_div(mul(y, exp(x)), add(1, exp(x))), true_div(z, add(1, exp(x))))",
    ),
    ("local_greedy_distributor", lambda x, y: (x / 2.0 + y) * 2.0, None),
    ("local_func_inv", lambda x: T.tanh(T.arctanh(x / 4)), "true_div(x, 4)"),
    (
        "local_mul_switch_sink",
        lambda p, x, y: switch(p, x, 0) * y,
        "Switch(p, mul(y, x), 0)",
    ),
    ("local_mul_switch_sink", lambda p, x, y: y * switch(p, 0, x), "Switch(p, 0, mul(y, x))"),
    (
        "local_mul_switch_sink",
        lambda p, b, f: f * switch(p, T.zeros_like(f), b),
        "Switch(p, second(f, 0.0), mul(f, b))",
    ),
    (
        "local_mul_switch_sink",
        lambda p, b: b * switch(p, np.float64(0), b),
        "Switch(p, 0.0, mul(b, Cast{float64}(b)))",
    ),
    ("local_mul_switch_sink", lambda p, x, y: y * switch(p, 1, x), None),
    ("local_mul_switch_sink", lambda p, x: 2 * switch(p, 0, x), "Switch(p, 0, mul(2, x))"),
    ("local_div_switch_sink", lambda p, x, y: switch(p, 0, x) / y, "Switch(p, 0, true_div(x, y))"),
    (
        "local_div_switch_sink",
        lambda p, i, j: switch(p, i, 0) // (j * j + 1),
        "Switch(p, int_div(i, add(mul(j, j), 1)), 0)",
    ),
    ("local_div_switch_sink", lambda p, x, y: y / switch(p, 0, x), None),
]

#: rules on dimensions and products of matrices
STRUCTURE = [
    ("local_dimshuffle_lift", lambda x: x.T.T, "x"),
    ("local_dimshuffle_lift", lambda x: x.dimshuffle(0, 1), "x"),
    (
        "local_dimshuffle_lift",
        lambda x: x.dimshuffle("x", 0, 1).dimshuffle(0, 2, 1),
        "DS{x,1,0}(x)",
    ),
    ("local_dimshuffle_lift", lambda r: r.dimshuffle(1).dimshuffle("x", 0), "r"),
    ("local_dimshuffle_lift", lambda x, y: (x + y).T, "add(DS{1,0}(x), DS{1,0}(y))"),
    ("local_dimshuffle_lift", lambda x: T.exp(x.T).T, "exp(x)"),
    (
        "local_dimshuffle_lift",
        lambda v: (v + np.arange(3)).dimshuffle("x", 0),
        "add(DS{x,0}(v), [[0, 1, 2]])",
    ),
    (
        "local_dimshuffle_lift",
        lambda u, v: [(u + v).dimshuffle("x", 0), u + v],
        "DS{x,0}(add(u, v)); add(u, v)",
    ),
    ("local_dimshuffle_lift", lambda x: x.T, None),
    # what is stacked keeps its own dimensions
    ("local_dimshuffle_lift", lambda u, v: T.stack([T.exp(u), T.exp(v)]), None),
    ("local_dimshuffle_lift", lambda u, v: T.stack([T.exp(u), T.exp(v)], axis=1), None),
    (
        "local_dimshuffle_lift",
        lambda u, r: T.concatenate([T.exp(u).dimshuffle("x", 0), r], axis=1),
        "Join(1, exp(DS{x,0}(u)), r)",
    ),
    ("local_dimshuffle_lift", lambda x: T.sum(x, axis=0).dimshuffle("x", 0), None),
    ("local_lift_transpose_through_dot", lambda x, y: T.dot(x, y).T, "dot(DS{1,0}(y), DS{1,0}(x))"),
    ("local_lift_transpose_through_dot", lambda x, y: T.dot(x.T, y).T, "dot(DS{1,0}(y), x)"),
    (
        "local_lift_transpose_through_dot",
        lambda x, y: [T.dot(x, y).T, T.dot(x, y)],
        "DS{1,0}(dot(x, y)); dot(x, y)",
    ),
    ("local_lift_transpose_through_dot", lambda x, v: T.dot(x, v).T, None),
    (
        "local_0_dot_x",
        lambda x: T.dot(np.zeros((4, 3)), x),
        "Alloc(Assert{msg='a product of tensors whose lengths differ'}"
        "(0.0, EQ(3, Shape_i{0}(x))), 4, Shape_i{1}(x))",
    ),
    ("local_0_dot_x", lambda r: T.dot(np.zeros((3, 1)), r), "Alloc(0.0, 3, Shape_i{1}(r))"),
    ("local_0_dot_x", lambda s: T.dot(T.stack([s, s]), np.zeros(2)), "0.0"),
    ("local_0_dot_x", lambda x: T.dot(x, T.zeros_like(x)), None),
    ("local_0_dot_x", lambda x, v: T.dot(x, v), None),
]


def _ids(table):
    return [f"{names.split()[0]}-{i}" for i, (names, _, _) in enumerate(table)]


def _check(rewritten, names, build, expected, special):
    before, after = rewritten("canonicalize", names, build, special)
    assert after == (before if expected is None else expected)


@pytest.mark.parametrize("names, build, expected", EXACT, ids=_ids(EXACT))
def test_exact(rewritten, names, build, expected):
    _check(rewritten, names, build, expected, special=True)


@pytest.mark.parametrize("names, build, expected", FINITE, ids=_ids(FINITE))
def test_finite(rewritten, names, build, expected):
    _check(rewritten, names, build, expected, special=False)


@pytest.mark.parametrize("names, build, expected", STRUCTURE, ids=_ids(STRUCTURE))
def test_structure(rewritten, names, build, expected):
    _check(rewritten, names, build, expected, special=False)


# --- where they take part -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "stage, tag, names",
    [
        (
            "canonicalize",
            "fast_compile",
            "local_useless_elemwise local_useless_fill local_useless_switch local_view_op",
        ),
        ("canonicalize", "local_remove_switch_const_cond", "local_useless_switch"),
        ("useless", "fast_compile", "local_view_op"),
        (
            "useless",
            "fast_run",
            "local_useless_elemwise local_useless_elemwise_comparison local_useless_fill "
            "local_useless_switch local_view_op",
        ),
        (
            "stabilize",
            "fast_run",
            "local_0_dot_x local_greedy_distributor local_useless_elemwise_comparison",
        ),
        (
            "specialize",
            "fast_run",
            "local_cast_cast local_dimshuffle_lift local_func_inv local_mul_switch_sink "
            "local_useless_elemwise local_useless_elemwise_comparison local_useless_switch "
            "local_zero_div",
        ),
    ],
)
def test_rules_take_part_in_the_stages_that_programs_know(stage, tag, names):
    database = getattr(optdb[stage], "db", optdb[stage])
    mine = {name for name, rule in vars(canonicalize).items() if isinstance(rule, Rule)}
    assert mine.intersection(database.select(Query([tag]))) == set(names.split())


def test_excluding_a_rule_by_its_name_leaves_the_others():
    x = tensor_type("float64", (False,))("x")
    fgraph = FunctionGraph([x], [(x + 1 + 2) * 0])
    query = Query(["fast_run"], exclude=["local_mul_zero"])
    optdb["canonicalize"].query(query).optimize(fgraph)
    total, product = fgraph.toposort()
    assert (total.op, product.op) == (add, mul)
    assert (total.inputs[0].data, product.inputs[0].data) == (3, 0)


# --- long sums, deep graphs, sharing ------------------------------------------------------------

sums = EquilibriumOptimizer([canonicalize.local_add_canonizer])
products = EquilibriumOptimizer([canonicalize.local_mul_canonizer])
vector = tensor_type("float64", (False,))


def test_long_sums_become_few_of_limited_width():
    xs = [vector() for _ in range(300)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    fgraph = check_rewrite(sums, xs, [total], list(np.random.rand(300, 2)))
    widths = [len(node.inputs) for node in fgraph.toposort()]
    assert max(widths) <= WIDEST
    assert len(widths) == -(-299 // (WIDEST - 1))
    # one replacement each: the cost grows with the number of terms
    fgraph = FunctionGraph(xs, [total])
    assert sum(rule.applied for rule in sums.optimize(fgraph).rules) == len(widths)


def test_a_sum_rebuilt_of_many_terms_is_of_limited_width_too():
    xs = [vector() for _ in range(40)]
    fgraph = check_rewrite(sums, xs, [add(*xs) - xs[0]], list(np.random.rand(40, 2)))
    assert [len(node.inputs) for node in fgraph.toposort()] == [16, 16, 9]


@pytest.mark.parametrize(
    ("operation", "stays"),
    [
        (lambda s, y: s * 2.0, True),
        (lambda s, y: s / 2.0, True),
        (lambda s, y: s * np.inf, False),
        (lambda s, y: s / 0.0, False),
        (lambda s, y: s * y, False),
        (lambda s, y: s / y, False),
    ],
)
def test_a_switch_is_not_computed_twice_to_be_scaled(operation, stays):
    p, x, y = T.bvector("p"), T.dvector("x"), T.dvector("y")
    masked = switch(p, x, 0.0)
    graph = FunctionGraph([p, x, y], [operation(masked, y), masked])
    chosen = optdb["canonicalize"].select(Query(["local_mul_switch_sink", "local_div_switch_sink"]))
    EquilibriumOptimizer(chosen.values()).optimize(graph)
    switches = [node for node in graph.apply_nodes if node.op == elemwise("switch")]
    assert len(switches) == (1 if stays else 2)


@pytest.mark.parametrize(
    ("made", "half"),
    [(lambda x: 1 - x, 0.5), (lambda x: 1 + x + 2, -2.5), (lambda x: x / 2 * x, 1.0)],
)
def test_a_reader_may_have_results_of_any_type(made, half):
    """A state of a generator, a list and a sparse matrix have no dtype, or no tensor's."""
    c, x = T.dscalar("c"), T.dmatrix("x")
    draws = RandomStreams(1).binomial((3,), p=made(c))
    items = make_list([made(x)])
    f = function([c, x], [draws, items[0], sparse.csr_from_dense(made(x))], mode="FAST_RUN")
    drawn, item, matrix = f(half, np.eye(2))
    assert drawn.shape == (3,)
    np.testing.assert_array_equal(matrix.toarray(), item)


def test_a_part_of_a_product_is_opened_again_after_a_change():
    x, z = T.dvectors("xz")
    y = tensor_type("float64", (True,))("y")
    part = x * y
    fgraph = FunctionGraph([x, y, z], [part], clone=False)
    assert PRODUCTS(part.owner) is None
    out = part * z
    fgraph.change_input("output", 0, out)
    fgraph.change_input(part.owner, 1, T.constant([2.0]))
    first, *others = PRODUCTS(out.owner).owner.inputs
    assert first.data == 2 and others == [x, z]


@pytest.mark.parametrize(("read", "waits"), [(neg, True), (T.exp, False)])
def test_a_product_below_a_sign_waits_for_the_product_that_the_sign_becomes(read, waits):
    x, y = T.dvectors("xy")
    product = x * 2.0
    FunctionGraph([x, y], [read(product) * y], clone=False)
    new = PRODUCTS(product.owner)
    assert new is None if waits else new.owner.inputs[1] is x


def test_deep_graphs_are_no_limit():
    x, y = vector("x"), vector("y")
    total = x
    for _ in range(3000):
        total = y - (total - y)
    fgraph = FunctionGraph([x, y], [total])
    sums.optimize(fgraph)
    # two of them cancel all but x
    assert fgraph.outputs == [fgraph.inputs[0]]


def test_sharing_does_not_multiply_terms():
    x = vector("x")
    doubled = x
    for _ in range(60):
        doubled = doubled + doubled
    fgraph = check_rewrite(sums, [x], [doubled - x], [np.ones(2)])
    assert len(fgraph.toposort()) == 61


def test_a_part_that_others_read_is_opened_only_where_that_pays():
    x, y = vector("x"), vector("y")
    shared = 2.0 * x * y
    values = [np.array([1.5]), np.array([2.5])]
    kept = check_rewrite(products, [x, y], [shared, shared * 3.0], values)
    assert kept.outputs[0] in kept.outputs[1].owner.inputs
    opened = check_rewrite(products, [x, y], [shared, shared / x], values)
    assert opened.outputs[0] not in opened.outputs[1].owner.inputs


def test_what_broadcasts_is_combined_before_it_is_spread():
    u, v = vector("u"), vector("v")
    x = tensor_type("float64", (False, False))("x")
    total = add(u.dimshuffle("x", 0), v.dimshuffle("x", 0), x, 1.0) - x + x
    fgraph = check_rewrite(sums, [u, v, x], [total], [np.ones(3), np.ones(3), np.ones((2, 3))])
    (out,) = fgraph.outputs
    patterns = [node.outputs[0].broadcastable for node in fgraph.toposort() if node.op == add]
    assert patterns == [(True, False), (False, False)]
    assert out.owner.op == add


# --- factors in sums ----------------------------------------------------------------------------


def test_the_gradient_of_a_logistic_regression_is_made_of_sigmoids():
    z, y = vector("z"), vector("y")
    p = 1 / (1 + T.exp(z))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean()
    fgraph = FunctionGraph([z, y], [grad(cost, z)])
    optdb.query(Query(["fast_run"], position_cutoff=1.2)).optimize(fgraph)
    # each exponential is left in a quotient by 1 plus itself, of which neither can overflow alone
    sign, total = operands(fgraph.outputs[0], "mul")
    assert sign.data == -1
    for quotient in operands(total, "add"):
        terms = PRODUCTS.opened(quotient, shared=True)
        divisors = [operands(x, "add") for x in terms.below if operands(x, "add")]
        exponentials = [x for x in terms.above if operands(x, "exp")]
        assert len(divisors) == 1
        assert [divisors[0][1]] * len(exponentials) == exponentials


def test_a_factor_goes_into_the_sum_where_it_saves_most():
    x, y, z = vector("x"), vector("y"), vector("z")
    product = mul(x / y + z / y, x / z + 1.0, y)
    rule = EquilibriumOptimizer([canonicalize.local_greedy_distributor])
    values = [np.array([2.0]), np.array([3.0]), np.array([5.0])]
    fgraph = check_rewrite(rule, [x, y, z], [product], values)
    (out,) = fgraph.outputs
    assert operands(out.owner.inputs[0], "add") == fgraph.inputs[::2]


# --- what stays ---------------------------------------------------------------------------------


def test_a_view_that_counts_as_overwriting_stays():
    x = vector("x")
    fgraph = FunctionGraph([x], [OutputGuard()(x)])
    EquilibriumOptimizer([canonicalize.local_view_op]).optimize(fgraph)
    assert isinstance(fgraph.outputs[0].owner.op, OutputGuard)


def test_operations_in_place_stay():
    x, y = vector("x"), vector("y")
    inplace = Elemwise(add.scalar_op, {0: 0})
    fgraph = FunctionGraph([x, y], [inplace(x + y, y) - y])
    optdb["canonicalize"].query(Query(["fast_run"])).optimize(fgraph)
    assert inplace in [node.op for node in fgraph.toposort()]


@pytest.mark.parametrize("function, expected", [(T.sqrt, [0.0, 0.25]), (T.log, [0.0, 0.25])])
def test_a_masked_gradient_is_not_spoilt_by_what_it_masks(function, expected):
    x = vector("x")
    cost = switch(x > 0, function(x), 0).sum()
    fgraph = FunctionGraph([x], [grad(cost, x)])
    optdb["canonicalize"].query(Query(["fast_run"])).optimize(fgraph)
    (value,) = evaluate(fgraph.outputs, {fgraph.inputs[0]: np.array([0.0, 4.0])})
    np.testing.assert_allclose(value, expected)
