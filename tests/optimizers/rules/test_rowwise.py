"""Fusion along rows: what becomes a Rowwise, its values in every layout, and its errors."""

import numpy as np
import pytest
from rowwise_cases import PROGRAMS, centred, last, log_sum_exp, soft_max

from opwise import Apply, Mode, Op, function, get_mode
from opwise import tensor as T
from opwise.compile import DebugMode, FromFunctionOp
from opwise.gradient import verify_grad
from opwise.ifelse import ifelse
from opwise.linkers import opwise_c
from opwise.linkers.rowsteps import row_program
from opwise.random import RandomStreams
from opwise.scalar.op import OPS
from opwise.scalar.program import Instruction
from opwise.tensor import CAReduce, Elemwise, Sum, TensorType, set_subtensor
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.rowwise import Rowwise

RANDOM = np.random.default_rng(3)
LAYOUTS = ["C", "F", "every other", "reversed", "rows reversed"]
FLOATS = ["float32", "float64"]


def laid_out(array, layout):
    """Return an array with the same elements in another layout."""
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return array[..., ::-1].copy()[..., ::-1]
    if layout == "rows reversed":
        return array[::-1].copy()[::-1]
    if layout == "every other":
        wide = np.zeros([2 * n for n in array.shape], array.dtype)
        part = wide[tuple(slice(None, None, 2) for _ in array.shape)]
        part[...] = array
        return part
    return array


def made(name, dtype, ndim, mode="FAST_RUN", program=None):
    """Return a compiled function of a program, of arrays of ``ndim`` dimensions and vectors."""
    matrices, vectors, build = PROGRAMS[name] if program is None else program
    inputs = [TensorType(dtype, (False,) * ndim)() for _ in range(matrices)]
    vectors = [TensorType(dtype, (False,))() for _ in range(vectors)]
    return function([*inputs, *vectors], build(*inputs, *vectors), mode=mode)


def arguments(name, dtype, shape, layout="C"):
    matrices, vectors, _ = PROGRAMS[name]
    arrays = [laid_out(RANDOM.normal(size=shape).astype(dtype), layout) for _ in range(matrices)]
    return [*arrays, *(RANDOM.normal(size=shape[-1:]).astype(dtype) for _ in range(vectors))]


def rowwise(f):
    return [node for node in f.linked.order if isinstance(node.op, Rowwise)]


def agree(found, expected, tolerance):
    found, expected = ([x] if isinstance(x, np.ndarray) else x for x in (found, expected))
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    f, plain = made(name, dtype, 2), made(name, dtype, 2, "FAST_COMPILE")
    assert len(rowwise(f)) == 1 and all(f.linked.in_c)
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    for layout in LAYOUTS:
        for shape in [(1, 2), (3, 5), (65, 31), (64, 32), (130, 33), (3, 1100)]:
            given = arguments(name, dtype, shape, layout)
            agree(f(*given), plain(*given), tolerance)


@pytest.mark.parametrize("name", ["layer norm", "its gradient", "log-sum-exp", "cosines"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 1, 40), (2, 3, 2, 33)])
def test_more_dimensions(name, shape):
    f = made(name, "float64", len(shape))
    plain = made(name, "float64", len(shape), "FAST_COMPILE")
    assert len(rowwise(f)) == 1
    for layout in LAYOUTS:
        given = arguments(name, "float64", shape, layout)
        agree(f(*given), plain(*given), 1e-10)
        turned = [
            x if x.ndim == 1 else np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
            for x in given
        ]
        agree(f(*turned), plain(*given), 1e-10)


@pytest.mark.parametrize("name", ["layer norm", "its gradient", "log-sum-exp"])
def test_debug_mode_compares_c_with_numpy(name):
    f = made(name, "float64", 2, DebugMode())
    assert rowwise(f)
    given = arguments(name, "float64", (4, 35))
    agree(f(*given), made(name, "float64", 2, "FAST_COMPILE")(*given), 1e-10)


def test_every_operand_may_broadcast():
    x = T.dmatrix()
    row, column, number = T.drow(), T.dcol(), T.dscalar()
    out = soft_max(x * row + column) * number + column
    f = function([x, row, column, number], out)
    plain = function([x, row, column, number], out, mode="FAST_COMPILE")
    assert len(rowwise(f)) == 1
    for shape in [(70, 3), (4, 50)]:
        given = (
            RANDOM.normal(size=shape),
            RANDOM.normal(size=(1, shape[1])),
            RANDOM.normal(size=(shape[0], 1)),
            0.5,
        )
        agree(f(*given), plain(*given), 1e-12)
    with pytest.raises(ValueError, match="Input dimension mis-match"):
        f(np.ones((4, 3)), np.ones((1, 5)), np.ones((4, 1)), 0.5)


@pytest.mark.parametrize("n", [1, 2, 5, 31, 40])
@pytest.mark.parametrize("runs", [1, 2, 15, 17])
def test_rows_in_short_runs(n, runs):
    """Rows of a part of a larger array, and others that do not lie side by side."""
    x, w = T.dtensor3(), T.TensorType("float64", (False, True, False))()
    v, c = (
        T.TensorType("float64", (True, False, False))(),
        T.TensorType("float64", (False, False, True))(),
    )
    outs = [soft_max(x * w + v) + c, last(T.sum, x * x) * last(T.max, x)]
    f = function([x, w, v, c], outs)
    plain = function([x, w, v, c], outs, mode="FAST_COMPILE")
    assert rowwise(f)
    large = RANDOM.normal(size=(42, runs + 2, n + 3))
    given = (
        RANDOM.normal(size=(40, 1, n)),
        RANDOM.normal(size=(1, runs, n)),
        RANDOM.normal(size=(40, runs, 1)),
    )
    for part in (
        large[1:-1, 1:-1, :-3],
        large[:40, 1:-1, 3:][:, ::-1],
        large[::-1][:40, :-2, 1:-2],
    ):
        for ours, theirs in zip(f(part, *given), plain(part, *given), strict=True):
            agree(ours, theirs, 1e-12)


def test_empty_rows_and_no_rows():
    f = made("layer norm", "float64", 2)
    assert f(np.ones((0, 3)), np.ones(3), np.ones(3)).shape == (0, 3)
    assert f(np.ones((3, 0)), np.ones(0), np.ones(0)).shape == (3, 0)
    sums = made("cosines", "float64", 2)
    assert list(sums(np.ones((2, 0)), np.ones((2, 0)))) == [0, 0]
    highest = made("its gradient", "float64", 2)
    assert highest(np.ones((0, 3)), np.ones((0, 3))).shape == (0, 3)
    f = made("smallest and largest", "float64", 2)
    assert len(rowwise(f)) == 1 and f(np.ones((0, 3))).shape == (0, 3)
    with pytest.raises(ValueError, match="zero-size"):
        f(np.ones((3, 0)))


def test_softmax_of_an_empty_row_is_no_error():
    f = made("attention weights", "float64", 2)
    assert len(rowwise(f)) == 1 and f(np.ones((3, 0)), np.ones((3, 0))).shape == (3, 0)


@pytest.mark.parametrize("n", [5, 50])
def test_what_is_not_finite_stays_in_its_row(n):
    f = made("softmax", "float64", 2)
    x = RANDOM.normal(size=(70, n))
    x[3, 1], x[66, 2], x[67, 0] = np.nan, np.inf, -np.inf
    result = f(x, np.ones_like(x))
    assert np.isnan(result[3]).all() and np.isnan(result[66]).any()
    np.testing.assert_allclose(np.delete(result, [3, 66], axis=0).sum(axis=1), 1)


def test_results_do_not_depend_on_the_number_of_threads():
    f = made("layer norm's gradient", "float32", 2)
    given = arguments("layer norm's gradient", "float32", (4096, 70))
    before = opwise_c.threads()
    results = []
    try:
        for count in (1, 2, 3):
            opwise_c.set_threads(count)
            results.append([x.tobytes() for x in f(*given)])
    finally:
        opwise_c.set_threads(before)
    assert results[0] == results[1] == results[2]


def test_gradient_of_the_op():
    x = T.dmatrix()
    (op,) = {node.op for node in rowwise(function([x], [soft_max(x) * x, log_sum_exp(x)]))}
    constant = RANDOM.normal(size=(2, 3))
    n = op.nin

    def first(x):
        others = [T.zeros((1, 1), dtype="float64") for _ in range(n - 1)]
        return T.sum(op(x, *others, return_list=True)[0] * constant)

    verify_grad(first, [RANDOM.normal(size=(2, 3))], rng=np.random.RandomState(1))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 4), (70, 40), (1, 1), (0, 3), (65, 31)])
def test_the_op_as_it_is(dtype, shape):
    x, y = TensorType(dtype, (False, False))(), TensorType(dtype, (True, False))()
    op = Rowwise(
        2,
        [
            Instruction(Sum(1, acc_dtype="float64"), (0,), dtype),
            Instruction(OPS["sub"], (0, 2), dtype),
            Instruction(OPS["mul"], (3, 1), dtype),
            Instruction(CAReduce(OPS["minimum"], 1), (4,), dtype),
        ],
        (4, 2, 5),
    )
    for operand, layout in ((x, LAYOUTS), (x.T[::-1].T, ["C"])):
        outputs = op(operand, y, return_list=True)
        f, plain = (function([x, y], outputs, mode=Mode(linker, None)) for linker in ("c|py", "py"))
        assert all(f.linked.in_c)
        for each in layout:
            given = laid_out(RANDOM.normal(size=shape).astype(dtype), each)
            row = RANDOM.normal(size=(1, shape[1])).astype(dtype)
            agree(f(given, row), plain(given, row), 1e-5 if dtype == "float32" else 1e-12)


# --- passes ---------------------------------------------------------------------------------------


def full_size(f):
    """Return the Applys that read a matrix or give one."""
    kinds = (Elemwise, MapReduce, CAReduce, Rowwise)
    return [
        node
        for node in f.linked.order
        if isinstance(node.op, kinds)
        and any(v.type.broadcastable == (False, False) for v in (*node.inputs, *node.outputs))
    ]


def test_layer_norm_reads_its_array_once():
    f = made("layer norm", "float32", 2)
    assert [type(node.op) for node in full_size(f)] == [Rowwise]


def test_gradient_of_layer_norm_stores_only_results():
    f = made("layer norm's gradient", "float32", 2)
    one, sums = full_size(f)
    assert isinstance(one.op, Rowwise) and isinstance(sums.op, MapReduce)
    wide = [v for v in one.outputs if v.type.broadcastable == (False, False)]
    assert len(wide) == 1  # by x; the sums over rows compute again what they need


def test_flops_are_those_of_the_parts():
    (node,) = rowwise(made("centred", "float64", 2))
    shapes = [(4, 6) if not any(v.type.broadcastable) else (1, 1) for v in node.inputs]
    assert node.op.flops(shapes, [(4, 6)]) == 4 * 5 + 4 + 24


def test_functions_are_called_once_for_each_element():
    (node,) = rowwise(made("its gradient", "float32", 2))
    program = row_program(node)
    calls = [
        loop
        for loop in program.loops
        for one in program.loop_program(loop)[1].instructions
        if str(one.op) == "exp"
    ]
    assert len(calls) == 1


# --- faster forms of programs ---------------------------------------------------------------------


def normalised(x):
    mean = x.mean(axis=1, keepdims=True)
    variance = T.sqr(x - mean).mean(axis=1, keepdims=True)
    return [(x - mean) / T.sqrt(variance + 1e-5), mean, variance]


def normalised_by_numpy(x):
    x = x.astype("float64")
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return [(x - mean) / np.sqrt(variance + 1e-5), mean, variance]


def kinds_of(f):
    (node,) = rowwise(f)
    program = row_program(node)
    wide = [program.wide[s] for s in range(len(program.in_dtypes), len(program.wide))]
    names = [getattr(getattr(one, "op", one), "row", None) for one in program.instructions]
    return [(getattr(n, "name", n), w) for n, w in zip(names, wide, strict=True)], program


@pytest.mark.parametrize("columns", [1, 7, 40, 100, 1000, 3000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_deviations_and_roots(columns, dtype):
    """A division by a root is a product; the sums of float32 are one pass."""
    x = T.matrix("x", dtype)
    f = function([x], normalised(x))
    names, program = kinds_of(f)
    assert ("true_div", True) not in names
    passes = {loop.level for loop in program.loops}
    assert len(passes) == (2 if dtype == "float32" else 3)
    rng = np.random.RandomState(columns)
    value = rng.normal(3, 2, (130, columns)).astype(dtype)
    tolerance = 3e-6 if dtype == "float32" else 1e-12
    for found, expected in zip(f(value), normalised_by_numpy(value), strict=True):
        np.testing.assert_allclose(found, expected, tolerance, tolerance)


@pytest.mark.parametrize("order", ["C", "F"])
def test_deviations_from_a_mean_that_is_far_from_0(order):
    """Squares are exact, also where the first element is far from all others."""
    x = T.fmatrix("x")
    f = function([x], normalised(x)[2])
    rng = np.random.RandomState(4)
    value = np.array(rng.normal(1e6, 1, (70, 500)), "float32", order=order)
    value[::2, 0] = 0
    value[1, :] = 16777216
    mean = value.mean(axis=1, keepdims=True, dtype="float64").astype("float32")
    expected = np.square(value - mean.astype("float64")).mean(axis=1, keepdims=True)
    found = f(value)
    np.testing.assert_allclose(found, expected, 1e-6)
    assert found[1] == 0


def test_deviations_of_special_values():
    x = T.fmatrix("x")
    total = x.sum(axis=1, keepdims=True)
    centred = x - total / T.cast(x.shape[1], "float32")
    f = function([x], [total, T.sqr(centred).sum(axis=1), centred])
    assert rowwise(f)
    plain = function([x], [total, T.sqr(centred).sum(axis=1), centred], mode="FAST_COMPILE")
    value = np.ones((6, 50), "float32")
    for row, (place, number) in enumerate(
        [(0, np.inf), (7, np.inf), (0, np.nan), (49, -np.inf), (0, 3e38), (3, 1e30)]
    ):
        value[row, place] = number
    with np.errstate(all="ignore"):
        for found, expected in zip(f(value), plain(value), strict=True):
            np.testing.assert_allclose(found, expected, 1e-5)
        for found, expected in zip(f(value[:, :0]), plain(value[:, :0]), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_division_by_a_root_that_is_0_or_small():
    x = T.fmatrix("x")
    f = function([x], x / T.sqrt(T.sqr(x).sum(axis=1, keepdims=True)))
    names, _ = kinds_of(f)
    assert ("true_div", True) not in names
    value = np.zeros((4, 40), "float32")
    value[1, 3], value[2, 5], value[3, 7] = 1e-22, np.inf, np.nan
    with np.errstate(all="ignore"):
        expected = value / np.sqrt((value**2).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(f(value), expected, 1e-6)


# --- what is left alone ---------------------------------------------------------------------------


def refused(build, *types):
    inputs = [TensorType("float64", pattern)() for pattern in types]
    f = function(inputs, build(*inputs))
    return not rowwise(f)


MATRIX = (False, False)


def test_one_pass_is_no_rowwise():
    assert refused(lambda x: T.sum(T.exp(x), axis=1), MATRIX)
    assert refused(lambda x: T.exp(x), MATRIX)
    assert refused(T.nnet.softmax, MATRIX)  # it has a loop of its own
    assert refused(lambda x: [T.sum(x, axis=1), T.max(x, axis=1)], MATRIX)


def test_other_axes_and_single_rows():
    assert refused(lambda x: x - T.mean(x, axis=0), MATRIX)
    assert refused(lambda x: x - T.mean(x), MATRIX)
    assert refused(lambda x: x - T.mean(x, axis=1, keepdims=True), (True, False))
    assert refused(lambda v: v - T.mean(v), (False,))


def test_rows_of_other_lengths_are_not_joined():
    x, y = T.dmatrices(2)
    f = function([x, y], y * last(T.sum, x) + last(T.sum, y))
    a, b = RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(4, 7))
    agree(f(a, b), b * a.sum(1, keepdims=True) + b.sum(1, keepdims=True), 1e-12)


def test_what_goes_through_a_product_comes_back_later():
    x, w = T.dmatrices(2)
    once = centred(x)
    out = centred(T.dot(once, w) + once) * once
    f = function([x, w], out)
    assert len(rowwise(f)) == 2
    a, b = RANDOM.normal(size=(4, 40)), RANDOM.normal(size=(40, 40))
    agree(f(a, b), function([x, w], out, mode="FAST_COMPILE")(a, b), 1e-9)


def test_what_is_computed_again_stays_where_others_read_it():
    x, w, p = T.dmatrices(3)
    moved = x - p
    energy = T.sum(T.dot(moved, w) * moved, axis=1, keepdims=True)
    out = [T.exp(energy) * moved, T.dot(moved, w)]
    f = function([x, w, p], out)
    assert len(rowwise(f)) == 1
    given = [RANDOM.normal(size=shape) for shape in ((4, 6), (6, 6), (4, 6))]
    agree(f(*given), function([x, w, p], out, mode="FAST_COMPILE")(*given), 1e-9)


def test_two_groups_that_read_each_other():
    x, y = T.dmatrices(2)
    # of each group, one part is read by the other group, and one reads it
    by_x, by_y = last(T.sum, centred(x)), last(T.sum, centred(y))
    out = [centred(x * by_y), centred(y * by_x)]
    f = function([x, y], out)
    a, b = RANDOM.normal(size=(4, 40)), RANDOM.normal(size=(4, 50))
    agree(f(a, b), function([x, y], out, mode="FAST_COMPILE")(a, b), 1e-9)


def test_branches_are_not_joined_with_what_is_always_computed():
    x, c = T.dmatrix(), T.iscalar()
    out = ifelse(c, centred(x) * 2, soft_max(x))
    f = function([x, c], [out, last(T.sum, x) * x])
    a = RANDOM.normal(size=(4, 40))
    for choice in (0, 1):
        expected = function([x, c], [out, last(T.sum, x) * x], mode="FAST_COMPILE")(a, choice)
        agree(f(a, choice), expected, 1e-10)


def test_memory_that_is_overwritten_is_read_before():
    x = T.dmatrix()
    y = set_subtensor(x[0], 0.0)
    f = function([x], [centred(x), centred(y), y])
    a = RANDOM.normal(size=(4, 40))
    agree(f(a), function([x], [centred(x), centred(y), y], mode="FAST_COMPILE")(a), 1e-10)


def test_excluding():
    x = T.dmatrix()
    for tag in ("row_fusion", "fusion"):
        f = function([x], soft_max(centred(x)), mode=get_mode("FAST_RUN").excluding(tag))
        assert not rowwise(f)


def test_an_error_names_the_users_line():
    x, y = T.dmatrices(2)
    f = function([x, y], soft_max(x * y))
    with pytest.raises(ValueError, match=r"test_rowwise\.py"):
        f(np.ones((3, 40)), np.ones((3, 41)))


def test_draws_and_other_dtypes_are_no_work_on_rows():
    """What reads or gives a state, float16 or complex numbers is left out of a Rowwise."""
    draws = RandomStreams(3).normal((4, 5))
    f = function([], draws - draws.max(axis=1, keepdims=True))
    assert f().max() == 0
    z = TensorType("float16", (False, False))()
    f = function([z], z - z.max(axis=1, keepdims=True))
    assert not any(isinstance(n.op, Rowwise) for n in f.maker.fgraph.apply_nodes)
    assert all(f.linked.in_c)
    half = np.arange(12, dtype="float16").reshape(3, 4)
    np.testing.assert_array_equal(f(half), half - half.max(axis=1, keepdims=True))


@pytest.mark.parametrize("mode", ["FAST_RUN", "DEBUG_MODE"])
def test_ops_without_inputs_beside_rows(mode):
    class Weights(Op):
        """An Op that takes nothing."""

        def make_node(self):
            return Apply(self, [], [T.dmatrix()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.full((2, 3), 2.0)

    x = T.dmatrix("x")
    made = FromFunctionOp(lambda: np.full((2, 3), 3.0), [], [T.dmatrix], None)()
    f = function([x], soft_max(x * Weights()()) * made, mode=mode)
    value = RANDOM.normal(size=(2, 3))
    e = np.exp(2 * value)
    np.testing.assert_allclose(f(value), 3 * e / e.sum(axis=1, keepdims=True))
    if mode == "FAST_RUN":
        assert len(rowwise(f)) == 1
