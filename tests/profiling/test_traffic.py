"""Traffic: the bytes of Applys against what one counts by hand, in functions that ran."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, Mode, Op, function, shared
from opwise.graph import costs
from opwise.profiling.profile import ArrayProfile
from opwise.scalar import Composite, get_scalar_type
from opwise.scalar.op import OPS
from opwise.tensor import Elemwise
from opwise.tensor.blas import Ger, batched_dot, gemm_no_inplace, gemv_no_inplace
from opwise.tensor.extra_ops import CpuContiguous
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet import softmax

#: no rewrites, and numpy; no rewrites, and C where it is built in
PLAIN, COMPILED = Mode("py", None), Mode("c|py", None)

M = np.ones((5, 7))
V = np.ones(7)


def applys(inputs, outputs, *values, mode=COMPILED, **kwargs):
    """Return the ApplyProfiles of a function that was called once."""
    f = function(inputs, outputs, profile=True, mode=mode, **kwargs)
    f(*values)
    return f.profile.profile().functions[0].applys


def last(expression, *values, mode=COMPILED):
    """Return (traffic, flops) of the last Apply but for the copy of a view that is handed out."""
    inputs = [T.TensorType(v.dtype.name, (False,) * v.ndim)() for v in values]
    found = applys(inputs, expression(*inputs), *values, mode=mode)
    found = [apply for apply in found if apply.op != "DeepCopyOp"]
    return found[-1].traffic, found[-1].flops


@pytest.mark.parametrize("mode", [PLAIN, COMPILED], ids=["py", "c"])
@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        # two read, one written
        (lambda a, b: a + b, [M, M], (3 * 280, 35)),
        # the same array is read once
        (lambda a: a * a, [M], (2 * 280, 35)),
        # an operand that broadcasts is read as it is
        (lambda a, v: a + v, [M, V], (2 * 280 + 56, 35)),
        (lambda a: a * np.float32(2), [M], (2 * 280 + 4, 35)),
        # of float64 into int8, without operations
        (lambda a: T.cast(a, "int8"), [M], (280 + 35, 0)),
        (lambda a: T.exp(a), [M], (2 * 280, None)),
        (lambda a: a > 1, [M], (280 + 1 + 35, None)),
        # what fills is written, what is filled is not read
        (lambda a: T.fill(a, np.float64(3)), [M], (280 + 8, 0)),
        (lambda a: T.tensor_copy(a), [M], (2 * 280, 0)),
        (lambda a: a.sum(), [M], (280 + 8, 34)),
        (lambda a: a.sum(axis=0), [M], (280 + 56, 28)),
        # the largest, and where they are
        (lambda a: a.max(axis=1), [M], (280 + 2 * 40, None)),
        (lambda a, b: T.dot(a, b), [M, M.T.copy()], (2 * 280 + 200, 2 * 5 * 5 * 7)),
        (lambda a, v: T.dot(a, v), [M, V], (280 + 56 + 40, 70)),
        (lambda a, b: T.dot(a, b), [np.ones((5, 7), "f"), np.ones((7, 3), "f")],
         (140 + 84 + 60, 210)),
        (lambda a, b: batched_dot(a, b), [np.ones((2, 5, 7)), np.ones((2, 7, 3))],
         (2 * (280 + 168 + 120), 420)),
        (lambda a: softmax(a), [M], (2 * 280, None)),
        (lambda a, b: T.join(0, a, b), [M, np.ones((2, 7))], (2 * (280 + 112), 0)),
        (lambda a: a.T, [M], (0, 0)),
        (lambda a: a[1:, ::2], [M], (0, 0)),
        (lambda a: a.reshape((7, 5)), [M], (0, 0)),
        (lambda a: T.addbroadcast(a, 0), [np.ones((1, 7))], (0, 0)),
        (lambda a: a.shape, [M], (16, 0)),
        (lambda a: T.specify_shape(a, (5, 7)), [M], (0, 0)),
        # the two lengths are int8
        (lambda a: T.alloc(a, 5, 7), [V], (56 + 280 + 2, 0)),
        # of an array that is copied because it lies across
        (lambda a: a.T.reshape((35,)), [M], (2 * 280 + 8, 0)),
        (lambda a: CpuContiguous()(a.T), [M], (2 * 280, 0)),
        (lambda a: CpuContiguous()(a), [M], (0, 0)),
        # rows by index: which ones, and how often, no shape tells
        (lambda a: a[np.array([0, 0, 1])], [M], (None, None)),
        (lambda a: T.set_subtensor(a[1], 3.0), [M], (None, None)),
        (lambda a: T.sort(a), [M], (None, None)),
    ],
)  # fmt: skip
def test_bytes_by_hand(mode, expression, values, expected):
    assert last(expression, *values, mode=mode) == expected


def test_fusion():
    a, b = T.dmatrices("a", "b")
    (loop,) = applys([a, b], (a - b) * a + b, M, M, mode=Mode("py", "fast_run"))
    assert (loop.traffic, loop.flops) == (3 * 280, 3 * 35)
    f = function([a, b], T.sqr(a - b).sum(axis=1), profile=True, mode=Mode("py", "fast_run"))
    f(M, M)
    (loop,) = f.profile.profile().functions[0].applys
    assert isinstance(f.linked.order[0].op, MapReduce)
    assert (loop.traffic, loop.flops) == (2 * 280 + 40, 2 * 35 + 30)


def test_what_a_fused_loop_fills_is_not_read():
    x, y = (get_scalar_type("float64").make_variable() for _ in range(2))
    op = Composite([x, y], [OPS["second"](x, OPS["add"](y, y))])
    assert op.unread() == {0}
    assert Composite([x, y], [OPS["second"](x, y), x]).unread() == set()
    assert last(lambda a, b: Elemwise(op)(a, b), M, M, mode=PLAIN) == (2 * 280, 35)


def test_what_is_overwritten_is_read_and_written():
    s = shared(M.copy())
    (update,) = applys([], [], updates=[(s, s * 0.5)], mode=Mode("py", "fast_run"))
    assert update.shares == ("i",)
    assert (update.traffic, update.flops) == (2 * 280 + 8, 35)


def test_an_update_by_a_product():
    s, a, b = shared(np.ones((5, 3))), T.dmatrix("a"), T.dmatrix("b")
    found = applys(
        [a, b], [], M, np.ones((7, 3)), updates=[(s, s - 0.1 * T.dot(a, b))],
        mode=Mode("py", "fast_run"),
    )  # fmt: skip
    (product,) = [x for x in found if x.op == "Gemm{inplace}"]
    assert product.shares == ("i",)
    assert product.traffic == 280 + 168 + 2 * 120 + 2 * 8


@pytest.mark.parametrize(("b", "z"), [(0.0, 0), (1.0, 120), (None, None)])
def test_what_a_product_is_added_to_is_read_if_its_factor_is_not_zero(b, z):
    x, y, out, factor = T.dmatrix(), T.dmatrix(), T.dmatrix(), T.dscalar()
    values = [np.ones((5, 3)), M, np.ones((7, 3))]
    inputs = [out, x, y]
    if b is None:
        inputs, values = [*inputs, factor], [*values, np.float64(2)]
    beta = factor if b is None else b
    (apply,) = applys(inputs, gemm_no_inplace(out, 1.0, x, y, beta), *values)
    expected = None if z is None else 280 + 168 + 120 + z + 2 * 8
    assert (apply.traffic, apply.flops) == (expected, 210)


def test_products_with_vectors():
    A, x, y = T.dmatrix(), T.dvector(), T.dvector()
    (apply,) = applys([y, A, x], gemv_no_inplace(y, 1.0, A, x, 0.5), np.ones(5), M, V)
    assert apply.traffic == 280 + 56 + 2 * 40 + 2 * 8
    (apply,) = applys([A, y, x], Ger(False)(A, 2.0, y, x), M, np.ones(5), V)
    assert apply.traffic == 2 * 280 + 56 + 40 + 8


# --- operands in the same memory ------------------------------------------------------------------


def test_a_matrix_and_its_transpose_are_read_once():
    assert last(lambda a: T.dot(a, a.T), M) == (280 + 200, 350)
    assert last(lambda a: T.dot(a.T, a), M) == (280 + 392, 490)


def test_a_part_of_what_is_read_as_a_whole_is_in_it():
    square = np.ones((6, 6))
    assert last(lambda a: a + a[0], square)[0] == 2 * 288
    assert last(lambda a: a[0].dimshuffle(0, "x") * a.T, square)[0] == 2 * 288


def test_parts_that_may_overlap_are_not_exact():
    assert last(lambda v: v[1:] - v[:-1], V) == (None, 6)
    assert last(lambda a: T.dot(a[:2], a[2:].T), M[:4]) == (None, 2 * 2 * 2 * 7)


def test_a_copy_that_is_declared_a_view_is_memory_of_its_own():
    # the reshape copies what lies across; both are read
    square = np.ones((6, 6))
    found = last(lambda a: a + a.T.reshape((6, 6)), square)
    assert found == (3 * 288, 36)
    assert last(lambda a: a + a.reshape((6, 6)), square) == (2 * 288, 36)


def test_an_array_that_repeats_its_elements_is_not_exact():
    repeated = np.broadcast_to(V, (5, 7))
    assert last(lambda a: a + 1.0, repeated, mode=PLAIN) == (None, 35)


# --- Ops of users ---------------------------------------------------------------------------------


class Twice(Op):
    """Doubles, and says nothing of its traffic."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


class Telling(Twice):
    def traffic(self, node, inputs, outputs):
        return [inputs[0].bytes // 2], [outputs[0].bytes]


class Failing(Twice):
    def traffic(self, node, inputs, outputs):
        raise RuntimeError("no")


class Odd(Twice):
    def traffic(self, node, inputs, outputs):
        return "bytes"


@pytest.mark.parametrize(
    ("op", "expected"), [(Twice, None), (Telling, 140 + 280), (Failing, None), (Odd, None)]
)
def test_an_op_tells_of_its_traffic(op, expected):
    assert last(lambda a: op()(a), M) == (expected, None)


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((5, 7), (56, 8), True),
        ((5, 7), (8, 40), False),
        ((5, 1), (8, 999), True),
        ((5, 7), (112, 16), False),
        ((0, 7), (1, 1), True),
        ((), (), True),
    ],
)
def test_contiguous_arrays(shape, strides, expected):
    array = ArrayProfile("float64", shape, strides, 8 * int(np.prod(shape)))
    assert costs.is_contiguous(array) is expected
