"""Products: values against numpy, patterns, dtypes, refusals and gradients."""

import itertools

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Generic, ProfileMode, Variable, dot, function
from opwise.config import config
from opwise.gradient import grad
from opwise.scalar import upcast
from opwise.tensor import (
    Dot,
    batched_dot,
    batched_tensordot,
    cast,
    outer,
    tensordot,
)
from opwise.tensor.blas import BatchedDot
from opwise.tensor.dot import _dot
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null


def tensor(dtype, ndim, name=None):
    return tensor_type(dtype, (False,) * ndim)(name)


def typed(word):
    return tensor_type("float64", tuple(letter == "T" for letter in word))()


def counted(shape, start=-2.0):
    return np.arange(start, start + np.prod(shape, dtype=int)).reshape(shape) / 4


SHAPES = [
    ((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 2)), ((3,), (3,)), ((), (3, 2)), ((2,), ()),
    ((2, 2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)),
    ((2, 0), (0, 3)), ((0, 3), (3, 2)), ((2, 3, 2), (2,)), ((2, 1), (1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("left, right", SHAPES)
def test_dot_is_numpys(run, left, right):
    x, y = tensor("float64", len(left)), tensor("float64", len(right))
    values = {x: counted(left), y: counted(right, 1)}
    np.testing.assert_allclose(run(dot(x, y), values), np.dot(values[x], values[y]))


@pytest.mark.parametrize("left, right", [((2, 1), (1,)), ((1,), (1, 2)), ((1, 1), (1, 2))])
def test_zero_times_nan_is_nan(run, left, right):
    x, y = tensor("float64", len(left)), tensor("float64", len(right))
    values = {x: np.zeros(left), y: np.zeros(right)}
    larger = values[x] if values[x].size > 1 else values[y]
    larger[-1] = larger[..., -1] = np.nan
    result = run(dot(x, y), values)
    np.testing.assert_array_equal(result, np.matmul(values[x], values[y]))
    assert np.isnan(result).any()


DTYPES = ("int8", "int32", "uint16", "bool", "float16", "float32", "float64", "complex64")


@pytest.mark.parametrize("left, right", list(itertools.product(DTYPES, repeat=2)))
def test_dot_of_dtypes(run, left, right):
    x, y = tensor(left, 2), tensor(right, 2)
    values = {x: np.eye(2).astype(left), y: np.ones((2, 2)).astype(right)}
    assert dot(x, y).type.dtype == upcast(left, right)
    np.testing.assert_array_equal(run(dot(x, y), values), np.ones((2, 2)))


@pytest.mark.parametrize(
    "left, right, pattern",
    [
        ("F", "FT", "T"), ("TF", "F", "T"), ("TF", "FT", "TT"), ("FT", "TF", "FF"), ("T", "T", ""),
        ("TFT", "FF", "TFF"), ("F", "FTF", "FF"), ("FTF", "TFT", "FTTT"), ("", "TF", "TF"),
    ],
)  # fmt: skip
def test_patterns_of_dot(left, right, pattern):
    result = dot(typed(left), typed(right))
    assert result.type.broadcastable == tuple(letter == "T" for letter in pattern)


def test_texts_of_dot(dump):
    x, y, a = tensor("float64", 2, "x"), tensor("float64", 2, "y"), tensor("float64", 0, "a")
    assert dump(dot(x, y)) == "dot(x, y)"
    assert dump(dot(a, x)) == "Elemwise{mul,no_inplace}(InplaceDimShuffle{x,x}(a), x)"
    assert str(dot(tensor("float64", 3), x).owner.op) == "Reshape{3}"
    assert _dot == Dot()


def test_dot_refuses_what_is_no_vector_nor_matrix():
    with pytest.raises(TypeError, match=r"input 1 .* must have ndim of 1 or 2, 3 given"):
        _dot(tensor("float64", 2), tensor("float64", 3))
    with pytest.raises(TypeError, match="Cannot convert"):
        dot(tensor("float64", 2), None)


def test_shapes_that_do_not_fit_are_refused_when_running(run):
    x, y = tensor("float64", 2), tensor("float64", 2)
    with pytest.raises(
        ValueError, match=r"shapes \(2,3\) and \(2,3\) not aligned: 3 \(dim 1\) != 2 \(dim 0\)"
    ):
        run(dot(x, y), {x: np.ones((2, 3)), y: np.ones((2, 3))})


class Sparse(Variable):
    """A variable of another kind, which has its own products."""

    def __dot__(self, other):
        return ("left", other)

    def __rdot__(self, other):
        return ("right", other)


def test_other_kinds_of_variables_make_their_own_products():
    sparse, x = Sparse(Generic()), tensor("float64", 2)
    assert dot(sparse, x) == ("left", x)
    assert dot(x, sparse) == ("right", x)


@pytest.mark.parametrize("left, right", [pair for pair in SHAPES if () not in pair])
def test_gradient_of_dot(check_forward, left, right):
    check_forward(dot, counted(left), counted(right, 1))


@pytest.mark.parametrize("left, right", [("TF", "FF"), ("FT", "TF"), ("F", "FT"), ("T", "TF")])
def test_gradient_of_dot_keeps_patterns(check_gradient, left, right):
    shapes = [tuple(1 if c == "T" else 3 for c in word) for word in (left, right)]
    check_gradient(
        dot, *map(counted, shapes),
        patterns=[tuple(c == "T" for c in word) for word in (left, right)],
    )  # fmt: skip


def test_gradient_of_dot_by_integers(run):
    x, y = tensor("int64", 2), tensor("float64", 2)
    by_x, by_y = grad(cast(dot(x, y), config.floatX).sum(), [x, y])
    values = {x: np.array([[1, 2]]), y: np.ones((2, 3))}
    np.testing.assert_array_equal(run(by_x, values), [[3, 3]])
    np.testing.assert_array_equal(run(by_y, values), [[1, 1, 1], [2, 2, 2]])


def test_gradient_prints_as_it_did(dump):
    x, y, g = (tensor("float64", 2, name) for name in "xyg")
    node = dot(x, y).owner
    by_x, by_y = node.op.L_op(node.inputs, node.outputs, [g])
    assert dump(by_x) == "dot(g, InplaceDimShuffle{1,0}(y))"
    assert dump(by_y) == "dot(InplaceDimShuffle{1,0}(x), g)"


@pytest.mark.parametrize("left, right", [((3,), (2,)), ((2, 2), (3,)), ((), (3,))])
def test_outer_is_numpys(run, left, right):
    x, y = tensor("float64", len(left)), tensor("float64", len(right))
    values = {x: counted(left), y: counted(right, 1)}
    np.testing.assert_allclose(run(outer(x, y), values), np.outer(values[x], values[y]))


# ======================================================================================
# TENSORDOT
# ======================================================================================

AXES = [
    ((2, 3, 4), (4, 5), 1), ((2, 3, 4), (3, 4, 2), 2), ((2, 3), (4,), 0), ((3,), (3,), 1),
    ((2, 3, 4), (4, 5), [[2], [0]]), ((2, 3, 4), (5, 3, 4), [[1, 2], [1, 2]]),
    ((2, 3, 4), (4, 3, 5), [[1, 2], [1, 0]]), ((2, 3, 4), (2, 3, 4), [[0, 1, 2], [0, 1, 2]]),
    ((2, 3, 4), (4, 5), (2, 0)), ((2, 3), (2, 3), [[0, 1], [0, 1]]), ((2, 3), (2, 4), [[0], [0]]),
    ((2, 3), (4, 3), [[-1], [-1]]), ((2, 3), (3, 4), [np.array([1]), (0,)]),
    ((2, 3), (4,), [[], []]),
]  # fmt: skip


@pytest.mark.parametrize("left, right, axes", AXES)
def test_tensordot_is_numpys(run, left, right, axes):
    x, y = tensor("float64", len(left)), tensor("float64", len(right))
    values = {x: counted(left), y: counted(right, 1)}
    expected = np.tensordot(values[x], values[y], axes)
    np.testing.assert_allclose(run(tensordot(x, y, axes), values), expected)


@pytest.mark.parametrize(
    "left, right, axes",
    [((1, 3, 2), (2, 2), 1), ((2, 2), (2,), 0), ((2, 2, 1), (3, 2, 1), [[1, 2], [1, 2]])],
)
def test_gradient_of_tensordot(check_forward, left, right, axes):
    check_forward(lambda x, y: tensordot(x, y, axes), counted(left), counted(right, 1))


def test_tensordot_keeps_patterns_and_the_default_is_two_axes():
    assert tensordot(typed("TF"), typed("FF"), 1).type.broadcastable == (True, False)
    assert tensordot(typed("TFF"), typed("FFT")).type.broadcastable == (True, True)


@pytest.mark.parametrize(
    "axes, text",
    [
        (5, r"axes can not be larger than the dimension of a \(a.ndim=3, axes=5\)"),
        (3, r"axes can not be larger than the dimension of b \(b.ndim=2, axes=3\)"),
        ([[2, 1], [0]], "Axes elements must have the same length"),
        ([[3], [0]], r"axes\[0\] contains dimensions greater than or equal to a.ndim"),
        ([[2], [2]], r"axes\[1\] contains dimensions greater than or equal to b.ndim"),
        ([[2, 2], [0, 1]], r"axes\[0\] names a dimension twice"),
        ([[0]], "length 2"),
        ("a", "invalid literal"),
    ],
)
def test_tensordot_refuses_axes_that_are_not_there(axes, text):
    with pytest.raises(ValueError, match=text):
        tensordot(tensor("float64", 3), tensor("float64", 2), axes)


@pytest.mark.parametrize(
    "left, right, axes, sum_",
    [
        ((2, 3, 4), (2, 5, 3), [[1], [2]], "bij,bki->bjk"),
        ((2, 3, 4), (2, 4, 5), 1, "bij,bjk->bik"),
        ((2, 3, 4), (2, 3, 4), 2, "bij,bij->b"),
        ((2, 3, 4, 5), (2, 4, 6), [[2], [1]], "bijk,bjl->bikl"),
        ((2, 3), (2, 4), 0, "bi,bj->bij"),
    ],
)
def test_batched_tensordot(run, check_gradient, left, right, axes, sum_):
    x, y = tensor("float64", len(left)), tensor("float64", len(right))
    values = {x: counted(left), y: counted(right, 1)}
    found = run(batched_tensordot(x, y, axes), values)
    np.testing.assert_allclose(found, np.einsum(sum_, values[x], values[y]))
    if len(left) < 4:
        check_gradient(lambda p, q: batched_tensordot(p, q, axes), values[x], values[y])


def test_batched_tensordot_does_not_sum_over_the_batch():
    with pytest.raises(ValueError, match="must not contain the batch axis"):
        batched_tensordot(tensor("float64", 3), tensor("float64", 3), [[0], [2]])


# ======================================================================================
# BATCHED DOT
# ======================================================================================

BATCHED = [
    ((2, 3), (2, 3), "bi,bi->b"), ((2, 3, 4), (2, 4), "bij,bj->bi"),
    ((2, 3), (2, 3, 4), "bi,bij->bj"),
    ((2, 3, 4), (2, 4, 5), "bij,bjk->bik"), ((2,), (2, 3, 4), "b,bij->bij"), ((2,), (2,), "b,b->b"),
    ((2, 3, 4), (2,), "bij,b->bij"), ((2, 3, 4, 5), (2, 5, 6), "bijk,bkl->bijl"),
    ((0, 3, 4), (0, 4, 5), "bij,bjk->bik"), ((2, 3, 0), (2, 0, 5), "bij,bjk->bik"),
]  # fmt: skip


@pytest.mark.parametrize("left, right, sum_", BATCHED)
def test_batched_dot(run, check_forward, left, right, sum_):
    x, y = tensor("float64", len(left)), tensor("float64", len(right))
    values = {x: counted(left), y: counted(right, 1)}
    np.testing.assert_allclose(
        run(batched_dot(x, y), values), np.einsum(sum_, values[x], values[y])
    )
    if 0 not in left and len(left) < 4:
        check_forward(batched_dot, values[x], values[y])


def test_batched_dot_upcasts_and_needs_a_batch(run):
    x, y = tensor("float32", 3), tensor("float64", 3)
    assert batched_dot(x, y).type.dtype == "float64"
    with pytest.raises(TypeError, match=r"a must have at least one \(batch\) axis"):
        batched_dot(tensor("float64", 0), y)
    with pytest.raises(TypeError, match="must have ndim of 2 or 3, 1 given"):
        BatchedDot()(tensor("float64", 1), y)
    with pytest.raises(TypeError, match="2 arguments required, 1 given"):
        BatchedDot()(y)
    with pytest.raises(TypeError, match=r"must have the same size in axis 0, .* \[2, 3\]"):
        run(batched_dot(x, y), {x: np.ones((2, 1, 2), "float32"), y: np.ones((3, 2, 1))})


@pytest.mark.parametrize(
    "left, right",
    [
        ((4, 5), (5, 2)), ((5,), (5,)), ((3, 4, 5), (5, 2)), ((4, 5), (3, 5, 2)), ((5,), (3, 5, 2)),
        ((3, 4, 5), (5,)), ((3, 4, 5), (3, 5, 2)), ((2, 3, 4, 5), (2, 3, 5, 2)),
        ((2, 3, 4, 5), (3, 5, 2)), ((1, 4, 5), (3, 5, 2)), ((2, 1, 4, 5), (2, 3, 5, 2)),
        ((2, 1, 4, 5), (1, 3, 5, 2)), ((2, 3, 4, 5), (1, 1, 5, 2)), ((2, 3, 0, 5), (2, 3, 5, 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_products_of_stacks_are_those_of_numpy(left, right, dtype, check_gradient):
    x, y = (tensor_type(dtype, tuple(n == 1 for n in shape))() for shape in (left, right))
    random = np.random.RandomState(0)
    a, b = (random.randint(-9, 9, shape).astype(dtype) for shape in (left, right))
    found = function([x, y], [x @ y, T.matmul(a, y)])(a, b)
    for one in found:
        np.testing.assert_array_equal(one, a @ b)
        assert one.dtype == dtype
    if dtype == "float64" and a.size:
        patterns = [v.type.broadcastable for v in (x, y)]
        check_gradient(T.matmul, a / 9, b / 9, patterns=patterns)


def test_stacks_of_other_lengths_do_not_multiply():
    x, y = T.dtensor4s("x", "y")
    f = function([x, y], x @ y)
    with pytest.raises(AssertionError, match="dimensions of other lengths before the last two"):
        f(np.ones((2, 3, 4, 5)), np.ones((3, 2, 5, 4)))
    x = T.dtensor3("x")
    with pytest.raises(ValueError, match="Shapes do not fit"):
        function([x], x @ x)(np.ones((2, 3, 4)))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", ProfileMode()])
@pytest.mark.parametrize("options", [{}, {"bias": True}, {"ddof": 0}, {"rowvar": False}])
def test_covariances_are_those_of_numpy(options, mode):
    m, y = T.dmatrices("my")
    a, b = np.random.rand(2, 3, 4)
    f = function([m, y], [T.cov(m, **options), T.cov(m, y, **options)], mode=mode)
    one, two = f(a, b)
    np.testing.assert_allclose(one, np.cov(a, **options))
    np.testing.assert_allclose(two, np.cov(a, b, **options))
    for name in ("fweights", "aweights"):
        with pytest.raises(NotImplementedError, match=name):
            T.cov(m, **{name: [1, 2]})
