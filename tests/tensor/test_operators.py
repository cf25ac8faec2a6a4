"""Operators and methods of variables: which graph each makes; what Python's protocols answer."""

import math
import operator

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Generic
from opwise.errors import NotScalarConstantError
from opwise.scalar import upcast
from opwise.tensor import (
    TensorVariable,
    constant,
    register_transfer,
    transfer,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.transfer import _transfers
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


x, y = tensor("float64", 2, "x"), tensor("float64", 2, "y")
v, i = tensor("float64", 1, "v"), tensor("int64", 1, "i")
t, z, flag = tensor("float64", 3, "t"), tensor("complex64", 1, "z"), tensor("bool", 1, "flag")

BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "true_div": operator.truediv,
    "int_div": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
}  # fmt: skip
COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
BITS = {"and_": operator.and_, "or_": operator.or_, "xor": operator.xor}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(dump, run, name):
    apply = BINARY[name]
    op = f"Elemwise{{{name},no_inplace}}"
    assert dump(apply(x, y)) == f"{op}(x, y)"
    assert dump(apply(x, 2)) == f"{op}(x, InplaceDimShuffle{{x,x}}(TensorConstant{{2}}))"
    assert dump(apply(2, x)) == f"{op}(InplaceDimShuffle{{x,x}}(TensorConstant{{2}}), x)"
    values = {x: np.array([[1.5, -2.0]]), y: np.array([[2.0, 3.0]])}
    np.testing.assert_allclose(run(apply(x, y), values), apply(values[x], values[y]))
    np.testing.assert_allclose(run(apply(3, y), values), apply(3, values[y]))


@pytest.mark.parametrize("name", BITS)
def test_bit_operators(dump, run, name):
    apply = BITS[name]
    assert dump(apply(flag, flag)) == f"Elemwise{{{name},no_inplace}}(flag, flag)"
    assert dump(apply(i, 1)) == (
        f"Elemwise{{{name},no_inplace}}(i, InplaceDimShuffle{{x}}(TensorConstant{{1}}))"
    )
    assert run(apply(6, i), {i: np.array([3])}) == apply(6, 3)
    with pytest.raises(TypeError, match="input to a BitOp must have type"):
        apply(x, x)


@pytest.mark.parametrize("apply", [operator.lshift, operator.rshift])
def test_shifts(dump, run, apply):
    """No number of places is too large; a negative one is, as for numpy."""
    name = "left_shift" if apply is operator.lshift else "right_shift"
    assert dump(apply(i, 1)).startswith(f"Elemwise{{{name},no_inplace}}(i, ")
    numbers, places = np.array([5, -5, 1, -1, 2**62, -(2**63)]), np.array([1, 63, 64, 70, -1, 3])
    for by in (places, places[::-1].copy()):
        found = run(apply(i, by), {i: numbers})
        np.testing.assert_array_equal(found, apply(numbers, by))
    assert run(apply(1, i), {i: np.array([3])}) == apply(1, 3)
    with pytest.raises(TypeError, match="a shift takes integers"):
        apply(x, 1)


@pytest.mark.parametrize("signed", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", BITS)
def test_bits_of_signed_integers_with_uint64_are_those_of_uint64(run, name, signed):
    """The dtype is the upcast, float64; a negative number has all high bits, as in C."""
    a, b = tensor(signed, 1), tensor("uint64", 1)
    values = {a: np.array([1, 7, -4], signed), b: np.array([3, 7, 12], "uint64")}
    expected = BITS[name](values[a].astype("uint64"), values[b]).astype("float64")
    for out in (BITS[name](a, b), BITS[name](b, a)):
        assert out.type.dtype == "float64"
        np.testing.assert_array_equal(run(out, values), expected)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_are_symbolic_and_have_no_truth(dump, name):
    compared = COMPARISONS[name](x, y)
    assert dump(compared) == f"Elemwise{{{name},no_inplace}}(x, y)"
    assert compared.dtype == "bool"
    mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}[name]
    reflected = COMPARISONS[name](1, x)
    assert reflected.owner.op == getattr(T, mirrored)
    for comparison in (compared, reflected):
        with pytest.raises(TypeError, match="Variables do not support boolean operations"):
            bool(comparison)


def test_equality_is_identity():
    assert x == x and x != y
    assert (x != x) is False
    assert (x == 1) is False and (x == np.ones(2)) is False
    assert x in [y, x] and x not in [y]
    assert hash(x) == hash(x) and len({x, y, x}) == 2
    assert bool(x) is True


def test_chained_comparisons_are_refused():
    with pytest.raises(TypeError, match="Variables do not support boolean operations"):
        assert 0 < x < 1


@pytest.mark.parametrize(
    "apply, text",
    [
        (operator.neg, "neg"), (abs, "abs_"), (operator.invert, "invert"), (math.floor, "floor"),
        (math.ceil, "ceil"), (math.trunc, "trunc"),
    ],
)  # fmt: skip
def test_unary_operators(dump, apply, text):
    operand = flag if apply is operator.invert else v
    assert dump(apply(operand)) == f"Elemwise{{{text},no_inplace}}({operand})"


def test_augmented_assignment_makes_a_new_variable(dump):
    total = x
    total += 1
    total *= y
    assert total is not x
    assert dump(total) == (
        "Elemwise{mul,no_inplace}(Elemwise{add,no_inplace}"
        "(x, InplaceDimShuffle{x,x}(TensorConstant{1})), y)"
    )


def test_divisions(run):
    quotient, rest = divmod(x, 2)
    assert (quotient.owner.op, rest.owner.op) == (T.int_div, T.mod)
    values = {i: np.array([-3, 3, 4])}
    assert run(list(divmod(i, 2)), values)[0].tolist() == [-2, 1, 2]
    assert run(list(divmod(13, i)), values)[1].tolist() == [-2, 1, 1]
    assert (i / 2).dtype == "float64"
    assert run(i / 2, values).tolist() == [-1.5, 1.5, 2.0]
    assert x.__div__(2).owner.op == (x / 2).owner.op


def test_matrix_products_by_operator(dump):
    assert dump(x @ y) == dump(x.__dot__(y)) == dump(x.dot(y)) == "dot(x, y)"
    assert dump(np.ones((2, 2)) @ x) == "dot(TensorConstant{(2, 2) of 1.0}, x)"
    assert dump(x.__rdot__(y)) == "dot(y, x)"
    with pytest.raises(TypeError, match="unsupported operand"):
        x @ None


@pytest.mark.parametrize("other", [None, "a", True, {}, object()])
@pytest.mark.parametrize("apply", [operator.add, operator.truediv, operator.lt, operator.and_])
def test_what_is_no_number_is_no_operand(apply, other):
    for operands in ((i, other), (other, i)):
        with pytest.raises(TypeError, match=r"not supported|unsupported operand|can only concat"):
            apply(*operands)


def test_the_other_operand_may_know_better():
    class Other:
        def __radd__(self, left):
            return ("sum", left)

        def __gt__(self, left):
            return ("greater", left)

    assert x + Other() == ("sum", x)
    assert (x < Other()) == ("greater", x)


def test_items_and_lengths_are_not_there():
    with pytest.raises(TypeError, match="item assignment"):
        x[0] = 1
    with pytest.raises(TypeError, match="has no len"):
        len(x)
    with pytest.raises(TypeError, match="float"):
        float(tensor("float64", 0))
    with pytest.raises(AttributeError, match="nothing"):
        x.nothing  # noqa: B018


def test_iteration_needs_a_known_length(dump):
    _, columns = x.shape
    assert dump(columns) == "Subtensor{int64}(Shape(x), Constant{1})"
    assert len(list(constant([1, 2, 3]))) == 3
    with pytest.raises(TypeError, match="TensorType does not support iteration"):
        iter(x)
    with pytest.raises(TypeError, match="TensorType does not support iteration"):
        sum(x)
    with pytest.raises(ValueError, match="length not known"):
        list(v)


# ======================================================================================
# NUMPY
# ======================================================================================


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "number", [np.ones(2), np.float64(2), np.float32(2), np.int64(2), np.int8(2)], ids=str
)
def test_numpy_leaves_operators_to_the_variable(name, number):
    for operands in ((number, v), (v, number)):
        result = BINARY[name](*operands)
        assert type(result) is TensorVariable
        assert result.owner.op == getattr(T, name)
        assert result.type == tensor_type("float64", (False,))


def test_numpy_comparisons_are_symbolic():
    assert (np.ones(2) < v).owner.op == T.gt
    assert (np.float64(2) >= v).owner.op == T.le


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "tanh", "log1p", "floor", "arctan", "conj"])
def test_numpy_functions_make_the_graph(name):
    assert getattr(np, name)(x).owner.op == getattr(T, name)


def test_dtypes_beside_numpy_numbers():
    single = tensor("float32", 1)
    assert (np.float64(1.5) * single).dtype == "float64"
    assert (np.float32(1.5) * single).dtype == "float32"
    assert (1.5 * single).dtype == "float32"
    assert (2**40 * single).dtype == upcast("int64", "float32")


# ======================================================================================
# METHODS
# ======================================================================================

VALUES = {
    x: np.array([[1.5, -2.0, 0.25], [4.0, 0.5, 3.0]]),
    v: np.array([2.0, 0.0, -1.0]),
    i: np.array([1, 0, 1]),
    t: np.arange(12.0).reshape(2, 3, 2) % 5,
    z: np.array([1 + 2j, -1j], "complex64"),
}


@pytest.mark.parametrize(
    "ours",
    [
        lambda x: x.T, lambda x: x.transpose(), lambda x: x.transpose(1, 0),
        lambda x: x.transpose((0, 1)), lambda x: x.transpose([1, 0]), lambda x: x.swapaxes(0, 1),
        lambda x: x.reshape((3, 2)), lambda x: x.reshape((-1,)), lambda x: x.ravel(),
        lambda x: x.flatten(), lambda x: x.copy(), lambda x: x.conjugate(), lambda x: x.conj(),
        lambda x: x.sum(), lambda x: x.sum(axis=0), lambda x: x.sum(1, keepdims=True),
        lambda x: x.prod(axis=1), lambda x: x.mean(), lambda x: x.var(axis=0), lambda x: x.std(),
        lambda x: x.std(axis=1, ddof=1), lambda x: x.min(axis=1), lambda x: x.max(),
        lambda x: x.argmin(axis=0), lambda x: x.argmax(), lambda x: x.argmax(axis=1),
        lambda x: x.any(axis=0), lambda x: x.all(), lambda x: x.cumsum(),
        lambda x: x.cumsum(axis=1),
        lambda x: x.cumprod(axis=0), lambda x: x.clip(0, 2), lambda x: x.dot(np.ones((3, 2))),
        lambda x: x.repeat(2), lambda x: x.repeat(2, axis=1), lambda x: x.diagonal(),
        lambda x: x.diagonal(1), lambda x: x.trace(), lambda x: x.argsort(axis=0),
        lambda x: x.take([0, 2], axis=1), lambda x: x.take([5, 0]), lambda x: x.round(),
        lambda x: x.real, lambda x: x.imag, lambda x: x.astype("int32"), lambda x: x.squeeze(),
    ],
)  # fmt: skip
def test_methods_are_numpys(run, ours):
    expected = np.asarray(ours(VALUES[x]))
    found = run(ours(x), VALUES)
    np.testing.assert_allclose(found, expected)
    assert found.dtype == expected.dtype


def test_methods_that_numpy_has_not_or_otherwise(run):
    pairs = [
        (x.sort(axis=1), np.sort(VALUES[x], 1)),
        (x.sort(), np.sort(VALUES[x])),
        (x.fill(3), np.full((2, 3), 3)),
        (x.zeros_like(), np.zeros((2, 3))),
        (x.ones_like(dtype="int8"), np.ones((2, 3))),
        (x.ptp(axis=0), np.ptp(VALUES[x], axis=0)),
        (x.norm(2), np.linalg.norm(VALUES[x])),
        (x.norm(1, axis=0), abs(VALUES[x]).sum(axis=0)),
        (x.norm(2, axis=1, keepdims=True), np.linalg.norm(VALUES[x], axis=1, keepdims=True)),
        (x.round(mode="half_away_from_zero"), [[2, -2, 0], [4, 1, 3]]),
        (x.nonzero_values(), VALUES[x].ravel()),
        (x.nonzero()[1], [0, 1, 2, 0, 1, 2]),
        (x.nonzero(return_matrix=True), np.nonzero(VALUES[x])),
        (i.choose(x), np.choose(VALUES[i], VALUES[x])),
        (i.compress(x, axis=1), np.compress(VALUES[i], VALUES[x], axis=1)),
        (constant([1.0, 2.0]).searchsorted(1.5), 1),
        (z.real, VALUES[z].real),
        (z.imag, VALUES[z].imag),
        (t.flatten(2), VALUES[t].reshape(2, 6)),
        (t.dimshuffle(2, "x", 0, 1), VALUES[t].transpose(2, 0, 1)[:, None]),
        (t.dimshuffle([1, 2, 0]), VALUES[t].transpose(1, 2, 0)),
        (t.transpose(2, 0, 1), VALUES[t].transpose(2, 0, 1)),
        (x.size, 6),
        (v.size, 3),
        (x.shape, [2, 3]),
    ]
    found = run([ours for ours, _ in pairs], VALUES)
    for value, (_, expected) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(value, expected)


def test_attributes():
    row = tensor_type("float32", (True, False))("row")
    assert (row.dtype, row.ndim, row.broadcastable) == ("float32", 2, (True, False))
    assert constant(1.5).dtype == "float32" and constant([1]).ndim == 1
    assert x.T.name == "x.T"
    assert x.copy(name="other").name == "other" and x.copy().name is None
    assert x.astype("float64") is x
    assert str(x.copy().owner.op) == "Elemwise{identity}"
    total = x + 1
    assert x.get_parents() == [] and total.get_parents() == [total.owner]


def test_numbers_that_are_known():
    assert constant(3).get_scalar_constant_value() == 3
    with pytest.raises(NotScalarConstantError):
        x.get_scalar_constant_value()


@pytest.mark.parametrize("order", [0, float("inf"), -float("inf")])
def test_norms_that_are_not_there_say_what_to_use(order):
    with pytest.raises(NotImplementedError, match=r"T.neq\(x, 0\).sum\(\), abs\(x\).max\(\)"):
        x.norm(order)


@pytest.mark.parametrize("order", [None, "fro"])
def test_norms_that_are_no_numbers(order):
    with pytest.raises(TypeError, match="norm takes a number"):
        x.norm(order)


def test_rounding_modes():
    with pytest.raises(Exception, match="round mode foo is not implemented"):
        x.round("foo")
    with pytest.raises(TypeError, match="only float type are supported"):
        i.round()


def test_elementwise_functions_that_are_methods(run):
    names = (
        "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin arccos arctan sinh cosh tanh"
    )
    value = np.array([0.25, 0.5])
    for name in names.split():
        np.testing.assert_allclose(run(getattr(v, name)(), {v: value}), getattr(np, name)(value))


# ======================================================================================
# TRANSFER AND ASSERT
# ======================================================================================


def test_transfer_asks_what_is_registered():
    assert x.transfer("cpu") is x and transfer(1, "cpu").dtype == "int8"
    with pytest.raises(ValueError, match="Can't transfer to target elsewhere"):
        x.transfer("elsewhere")
    move = lambda var, target: (var, target) if target == "elsewhere" else None  # noqa: E731
    register_transfer(move)
    try:
        assert x.transfer("elsewhere") == (x, "elsewhere")
    finally:
        _transfers.remove(move)


def test_assert_passes_its_value_or_raises(run, check_gradient):
    positive = Assert("v must be positive")(v, (v > 0).all(), v.shape[0] > 1)
    assert positive.owner.op == Assert("v must be positive") != Assert()
    assert str(positive.owner.op) == "Assert{msg='v must be positive'}"
    np.testing.assert_array_equal(run(positive, {v: np.array([1.0, 2.0])}), [1, 2])
    for wrong in ([1.0, -2.0], [1.0]):
        with pytest.raises(AssertionError, match="v must be positive"):
            run(positive, {v: np.array(wrong)})
    check_gradient(lambda p: Assert()(p, (p > 0).all()) ** 2, np.array([1.0, 2.0]))
    with pytest.raises(TypeError, match="condition of Assert must be a scalar"):
        Assert()(v, v > 0)
    assert Assert()(Generic()(), constant(1)).type == Generic()
