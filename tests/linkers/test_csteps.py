"""Every kind of C step against ``perform``: dtypes, layouts, empty arrays, failures, memory."""

import os
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.compile import deep_copy_op, view_op
from opwise.graph.traversal import io_toposort
from opwise.linkers import csteps, lowering, opwise_c
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import C_DTYPES
from opwise.scalar.op import OPS
from opwise.tensor import (
    AdvancedSubtensor,
    AllocDiag,
    Argmax,
    CAReduce,
    Elemwise,
    ExtractDiag,
    Prod,
    ScalarFromTensor,
    Sum,
    TensorFromScalar,
    TensorType,
    advanced_inc_subtensor,
    advanced_set_subtensor,
    argtopk,
    blas,
    fill_diagonal,
    fill_diagonal_offset,
    topk,
    topk_and_argtopk,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.creation import alloc_empty
from opwise.tensor.extra_ops import RepeatOp, Unique, searchsorted
from opwise.tensor.gathered import Gathered, Taken
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.random import mrg
from opwise.tensor.random.multinomial import ChoiceFromUniform, MultinomialFromUniform
from opwise.tensor.reduce import All, Any, FirstAlong
from opwise.tensor.shape import shape_i_op

FLOATS = ("float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = tuple(sorted(C_DTYPES))
WIDE = ("float16", "complex64", "complex128")
SORTED = (*NUMBERS, "float16")


def var(dtype, ndim, name=None):
    pattern = (False,) * ndim if isinstance(ndim, int) else ndim
    return TensorType(dtype, pattern)(name)


def values(dtype, shape, seed=0, low=-9, high=10):
    """Return numbers of a dtype that are not too large to add and multiply a few."""
    rng = np.random.RandomState(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.rand(*shape) > 0.5
    if dtype.kind in "iu":
        return rng.randint(0 if dtype.kind == "u" else low, high, shape).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(rng.randn(*shape) + 1j * rng.randn(*shape), dtype)
    return np.asarray(rng.uniform(low, high, shape), dtype)


def agree(expected, found, case):
    assert type(found) is np.ndarray, case
    assert found.dtype == expected.dtype and found.shape == expected.shape, (case, found)
    if expected.dtype.kind in "fc":
        tolerance = {2: 1e-2, 4: 1e-5, 8: 1e-12}[expected.real.dtype.itemsize]
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance * 100, err_msg=str(case)
        )
    else:
        np.testing.assert_array_equal(found, expected, err_msg=str(case))


class Case:
    """What a kind of step is tried on.

    kind: its name. build: function of a dtype that returns (inputs, outputs). inputs: function of a
    dtype that yields lists of values. dtypes: those that it takes. mutable: inputs overwritten.
    """

    def __init__(self, name, kind, build, inputs, dtypes=FLOATS, mutable=()):
        self.name, self.kind, self.build, self.inputs = name, kind, build, inputs
        self.dtypes, self.mutable = dtypes, mutable


CASES = []


def case(kind, *shape_lists, name=None, dtypes=FLOATS, mutable=(), make=None):
    """Declare a Case whose inputs are ``values`` of each list of shapes.

    A shape may be (shape, dtype) or (shape, dtype, low, high) where the dtype is another.
    """

    def inputs(dtype):
        for shapes in shape_lists:
            yield [
                values(s[1], s[0], i, *s[2:])
                if s and isinstance(s[0], tuple)
                else values(dtype, s, i)
                for i, s in enumerate(shapes)
            ]

    def declare(build):
        CASES.append(Case(name or build.__name__, kind, build, make or inputs, dtypes, mutable))
        return build

    return declare


# --- views and copies ---------------------------------------------------------------------------


@case("dimshuffle", [(3, 4)], [(0, 4)], [(1, 1)], dtypes=NUMBERS + WIDE)
def dimshuffle(dtype):
    x = var(dtype, 2)
    return [x], [x.dimshuffle(1, 0), x.dimshuffle("x", 0, "x", 1), x.dimshuffle(1, "x", 0)]


@case("dimshuffle", [(1, 3, 1)], dtypes=("float64",))
def dimshuffle_drops(dtype):
    x = var(dtype, (True, False, True))
    return [x], [x.dimshuffle(1), x.dimshuffle(1, "x")]


@case("dimshuffle", [()], dtypes=NUMBERS)
def dimshuffle_of_a_number(dtype):
    x = var(dtype, 0)
    return [x], [x.dimshuffle("x"), x.dimshuffle("x", "x")]


@case("alias", [(3, 4)], [(0, 2)], dtypes=NUMBERS + WIDE)
def view_of(dtype):
    x = var(dtype, 2)
    return [x], [view_op(x)]


@case("rebroadcast", [(1, 4)], dtypes=("float64", "int8", "complex64"))
def rebroadcast(dtype):
    x = var(dtype, 2)
    return [x], [T.addbroadcast(x, 0), T.patternbroadcast(x, (True, False))]


@case("specify_shape", [(3, 4)], dtypes=NUMBERS + WIDE)
def specify_shape(dtype):
    x = var(dtype, 2)
    return [x], [T.specify_shape(x, (3, 4)), T.specify_shape(x.T, (4, 3))]


@case("deepcopy", [(3, 4)], [(0, 4)], [(1, 7)], dtypes=NUMBERS + WIDE)
def deep_copy(dtype):
    x = var(dtype, 2)
    return [x], [deep_copy_op(x)]


@case("deepcopy", [()], dtypes=NUMBERS)
def number_and_back(dtype):
    x = var(dtype, 0)
    return [x], [TensorFromScalar()(ScalarFromTensor()(x))]


@case("reshape", [(3, 4)], [(6, 2)], [(12, 1)], dtypes=NUMBERS + WIDE)
def reshape(dtype):
    x = var(dtype, 2)
    return [x], [
        x.reshape((2, 6)), x.reshape((-1, 3)), x.reshape((2, -1, 3)), x.flatten(), x.T.flatten(),
        x[::-1].reshape((4, 3)),
    ]  # fmt: skip


@case("reshape", [(0, 4)], [(0, 12)], dtypes=("float64",))
def reshape_of_nothing(dtype):
    x = var(dtype, 2)
    return [x], [x.reshape((0, 7)), x.reshape((-1, 4)), x.flatten(), x.reshape((3, 0, 2))]


@case("reshape", [(3, 4), ((2,), "int32", 0, 0)], dtypes=("float64",),
      make=lambda d: [[values(d, (3, 4)), np.array(s, "int32")] for s in
                      ([2, 6], [-1, 12], [4, -1])])  # fmt: skip
def reshape_to_a_vector_of_lengths(dtype):
    x, s = var(dtype, 2), var("int32", 1)
    return [x, s], [x.reshape(s, ndim=2)]


@case("shape_i", [(3, 4)], [(0, 2)], dtypes=NUMBERS + WIDE)
def shape_i(dtype):
    x = var(dtype, 2)
    return [x], [shape_i_op(0)(x), shape_i_op(0)(x.T), shape_i_op(1)(x[1:])]


@case("shape", [(3, 4)], [(0, 2)], dtypes=("float64", "complex64"))
def shape(dtype):
    x = var(dtype, 2)
    return [x], [x.shape, x.T.shape]


@case("make_vector", [(), (), ()], dtypes=NUMBERS)
def make_vector(dtype):
    x, y, z = (var(dtype, 0) for _ in range(3))
    return [x, y, z], [T.stack([x, y, z]), T.stack([z])]


@case("alloc", [(), ((), "int64", 0, 4), ((), "int8", 0, 4)], dtypes=NUMBERS + WIDE)
def alloc_number(dtype):
    x, n, m = var(dtype, 0), var("int64", 0), var("int8", 0)
    return [x, n, m], [T.alloc(x, n, m), T.alloc(x, m), T.alloc(x), T.alloc(x, 2, n, 3)]


@case("alloc", [(3, 4)], [(1, 4)], dtypes=("float64", "int8"))
def alloc_array(dtype):
    x = var(dtype, 2)
    return [x], [T.alloc(x, 2, x.shape[0], 4), T.alloc(x[:1], 5, 4)]


# short runs are copied across, in blocks of 128
@case("alloc", [(1,)], [(127,)], [(128,)], [(300,)], dtypes=("float64", "float32", "int16"))
def alloc_short_runs(dtype):
    x = var(dtype, 1)
    columns = x.dimshuffle(0, "x")
    return [x], [T.alloc(columns, x.shape[0], n) for n in (2, 7, 8)] + [
        T.alloc(columns[::-1], 3, x.shape[0], 2), T.alloc(columns[::2], x[::2].shape[0], 3),
    ]  # fmt: skip


@case("deepcopy", [(300, 3)], [(3, 300)], dtypes=("float64", "float32", "int16"))
def deep_copy_of_steps(dtype):
    x = var(dtype, 2)
    views = [x[::-1], x[:, ::-1], x[::2, ::-2], x[:, :1], x[::-30, ::-20]]
    return [x], [deep_copy_op(view) for view in views]


@case("alloc_empty", [((), "int64", 2, 5)], dtypes=NUMBERS)
def alloc_empty_shape(dtype):
    n = var("int64", 0)
    return [n], [alloc_empty(dtype)(n, 3).shape, alloc_empty(dtype)(0, n)]


# --- indexing -----------------------------------------------------------------------------------


@case("subtensor", [(5, 6)], dtypes=NUMBERS + WIDE)
def subtensor(dtype):
    x = var(dtype, 2)
    return [x], [
        x[1], x[-1, -2], x[1:], x[:, ::-1], x[::-2, 1], x[-2:1:-1], x[7:9], x[3:-100:-2, 2:],
        x[1:4:2, 5:0:-3],
    ]  # fmt: skip


@pytest.mark.parametrize("index", INTS[:-1])
def test_indices_of_every_integer_type(run_with, index):
    x, i = var("float64", 1), var(index, 0)
    run, linked = run_with([x, i], [x[i], x[i:], x[:i:2], T.set_subtensor(x[i], 7.0).sum()], c=True)
    assert linked.in_c[0]
    value = np.arange(300.0)
    for k in (0, 1, 127) if index == "int8" else (0, 200, 255) if index == "uint8" else (0, 299):
        results = run(value, np.array(k, index))
        np.testing.assert_array_equal(results[0], value[k])
        np.testing.assert_array_equal(results[1], value[k:])
        np.testing.assert_array_equal(results[2], value[:k:2])
        np.testing.assert_array_equal(results[3], value.sum() - k + 7)


INC = NUMBERS[1:] + WIDE  # no bool: numpy refuses to add there


@case("inc_subtensor", [(5, 6), (2, 6)], [(5, 6), (1, 6)], dtypes=INC)
def inc_subtensor_rows(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [T.inc_subtensor(x[1:5:2], y), T.set_subtensor(x[3::-2], y)]


@case("inc_subtensor", [(5, 6), (6,), ()], dtypes=INC)
def inc_subtensor_broadcasts(dtype):
    x, y, z = var(dtype, 2), var(dtype, 1), var(dtype, 0)
    return [x, y, z], [
        T.inc_subtensor(x[1], y), T.set_subtensor(x[:, 2], z), T.inc_subtensor(x[1:4], y),
        T.inc_subtensor(x[-1, -1], z), T.set_subtensor(x[7:], y), T.inc_subtensor(x[:, ::-1], z),
    ]  # fmt: skip


@case("inc_subtensor", [(4, 5), (5,)], dtypes=("bool", *WIDE))
def set_subtensor(dtype):
    x, y = var(dtype, 2), var(dtype, 1)
    return [x, y], [T.set_subtensor(x[1], y)]


@case("take_parts", [(5, 3), ((4,), "int64", -5, 5)], [(5, 0), ((4,), "int64", -5, 5)],
      [(2, 3), ((0,), "int64")], dtypes=NUMBERS + WIDE)  # fmt: skip
def take_rows(dtype):
    x, i = var(dtype, 2), var("int64", 1)
    return [x, i], [x[i]]


@case("take_parts", [(5,), ((4,), "uint8", 0, 5)], dtypes=("float64", "int8"))
def take_elements(dtype):
    x, i = var(dtype, 1), var("uint8", 1)
    return [x, i], [x[i], T.take(x, i, axis=0)]


@case("take_parts", [(4, 2, 3), ((6,), "int32", -4, 4)], dtypes=("float32",))
def take_pages(dtype):
    x, i = var(dtype, 3), var("int32", 1)
    return [x, i], [x[i]]


@case("take_parts", [(3, 2, 1), ((4,), "int64", -1, 1)], dtypes=NUMBERS + WIDE)
def take_the_only_page(dtype):
    """The step between pages is that of an axis of length 1, which may be any."""
    x, i = var(dtype, 3), var("int64", 1)
    return [x, i], [x.dimshuffle(2, 0, 1)[i], x.dimshuffle(2, 1, 0)[i]]


# --- several indices ----------------------------------------------------------------------------

#: functions of a tensor of 3 dimensions, matrices i and j that broadcast, a mask of its first two
PICKED = {
    "matrices": lambda x, i, j, m: x[i, j],
    "at the end": lambda x, i, j, m: x[:, i, j],
    "apart": lambda x, i, j, m: x[i, 1:, j],
    "with a new dimension": lambda x, i, j, m: x[None, i, None, ::-1, j],
    "numbers and arrays": lambda x, i, j, m: x[i, j[0, 0], ::2],
    "in the middle": lambda x, i, j, m: x[::-1, i],
    "all": lambda x, i, j, m: x[i, j, i % 3],
    "a mask": lambda x, i, j, m: x[m],
    "part of a mask": lambda x, i, j, m: x[m[:, 0]],
    "a mask of all": lambda x, i, j, m: x[T.stack([m] * 3, axis=2)],
    "a mask and a slice": lambda x, i, j, m: x[m, 1:],
}
_PICKED_FROM = [
    [(3, 4, 3), ((5, 1), "int64", -3, 3), ((1, 6), "int8", -3, 3), ((3, 4), "bool")],
    [(3, 4, 3), ((1, 300), "int64", -3, 3), ((1, 300), "int8", -3, 3), ((3, 4), "bool")],
    [(3, 4, 3), ((0, 1), "int64", -3, 3), ((1, 2), "int8", -3, 3), ((3, 4), "bool")],
]


def _indexed(dtype):
    return var(dtype, 3), var("int64", 2), var("int8", 2), var("bool", 2)


def _pick_case(name, pick):
    @case("pick", *_PICKED_FROM, name=f"pick_{name}", dtypes=("float64", "int8", *WIDE))
    def picked(dtype):
        x, i, j, m = _indexed(dtype)
        return [x, i, j, m], [pick(y, i, j, m) for y in (x, x[::-1, :, ::-1])]

    @case("put_picked", *([*shapes, ()] for shapes in _PICKED_FROM), name=f"put_{name}",
          dtypes=("float32", "int16", *WIDE))  # fmt: skip
    def put(dtype):
        x, i, j, m = _indexed(dtype)
        y = var(dtype, 0)
        part = pick(x, i, j, m)
        return [x, i, j, m, y], [
            T.inc_subtensor(part, y), T.set_subtensor(part, y),
            T.inc_subtensor(part, part * y), T.set_subtensor(part, part[::-1]),
        ]  # fmt: skip


for _name, _pick in PICKED.items():
    _pick_case(_name, _pick)


def test_indices_that_are_out_of_range(run_with):
    x, i, j, m = _indexed("float64")
    run, linked = run_with([x, i, j], [x[i, :, j]], c=True)
    assert all(linked.in_c)
    for a, b, axis in (([[3]], [[0]], 0), ([[0]], [[-4]], 2)):
        with pytest.raises(IndexError, match=f"is out of bounds for axis {axis} with size 3"):
            run(np.zeros((3, 4, 3)), np.array(a), np.array(b, "int8"))
    with pytest.raises(IndexError, match="could not be broadcast together"):
        run(np.zeros((3, 4, 3)), np.zeros((2, 2), int), np.zeros((3, 3), "int8"))
    run, linked = run_with([x, m], [x[m]], c=True)
    assert all(linked.in_c)
    with pytest.raises(IndexError, match="size of axis is 4 but size of corresponding boolean"):
        run(np.zeros((3, 4, 3)), np.zeros((3, 5), bool))


def test_a_change_at_bad_indices_changes_nothing(run_with):
    x, i, j, _ = _indexed("float64")
    one = T.constant(1.0, dtype="float64")
    run, linked = run_with([x, i, j], [T.inc_subtensor(x[i, :, j], one)], c=True)
    assert all(linked.in_c)
    value = np.zeros((3, 4, 3))
    with pytest.raises(IndexError):
        run(value, np.array([[0, 5]]), np.array([[0, 0]], "int8"))
    assert not value.any()


@case("inc_parts", [(5, 3), (4, 3), ((4,), "int64", -5, 5)],
      [(5, 3), (1, 3), ((4,), "int64", -5, 5)], [(5, 3), (0, 3), ((0,), "int64")],
      dtypes=INC)  # fmt: skip
def inc_rows(dtype):
    x, y, i = var(dtype, 2), var(dtype, 2), var("int64", 1)
    return [x, y, i], [T.inc_subtensor(x[i], y), T.set_subtensor(x[i], y)]


@case("inc_parts", [(5, 3), (3,), ((4,), "int8", -5, 5)], dtypes=("float64", "int64"))
def inc_rows_broadcasts(dtype):
    x, y, i = var(dtype, 2), var(dtype, 1), var("int8", 1)
    return [x, y, i], [T.inc_subtensor(x[i], y), T.inc_subtensor(x[i], y[0])]


_PLACES = [((4,), "int64", -3, 3), ((4,), "int8", -5, 5)]
_ONE_PLACE = [((1,), "int64", -3, 3), ((4,), "int8", -5, 5)]
_NO_PLACES = [((0,), "int64"), ((0,), "int8")]


@case("take_parts", [(3, 5), *_PLACES], [(3, 5), *_ONE_PLACE], [(3, 5), *_NO_PLACES],
      dtypes=NUMBERS + WIDE)  # fmt: skip
def take_parts(dtype):
    x, i, j = var(dtype, 2), var("int64", 1), var("int8", 1)
    return [x, i, j], [AdvancedSubtensor()(y, i, j) for y in (x, x[::-1, ::-1])]


@case("take_parts", [(3, 5, 0), *_PLACES], dtypes=("float32",))
def take_empty_rows_of_pages(dtype):
    x, i, j = var(dtype, 3), var("int64", 1), var("int8", 1)
    return [x, i, j], [AdvancedSubtensor()(x, i, j)]


@case("take_parts", [(3, 5, 2), *_PLACES], dtypes=("float32", "int16"))
def take_rows_of_pages(dtype):
    x, i, j = var(dtype, 3), var("int64", 1), var("int8", 1)
    get = AdvancedSubtensor()
    return [x, i, j], [get(x, i, j), get(x[:, :, ::-1], i, j), get(x, i, 1),
                       get(x, 0, i), get(x, i, i, 0), get(x, i)]  # fmt: skip


@case("inc_parts", [(3, 5), (4,), *_PLACES], [(3, 5), (1,), *_ONE_PLACE],
      [(3, 5), (0,), *_NO_PLACES], dtypes=INC)  # fmt: skip
def inc_parts(dtype):
    x, y, i, j = var(dtype, 2), var(dtype, 1), var("int64", 1), var("int8", 1)
    return [x, y, i, j], [op(z, y, i, j) for op in (advanced_inc_subtensor, advanced_set_subtensor)
                          for z in (x, x[::-1, ::-1])]  # fmt: skip


@case("inc_parts", [(3, 5, 2), (4, 2), *_PLACES], [(3, 5, 2), (1, 2), *_PLACES],
      dtypes=("float64", "int32"))  # fmt: skip
def inc_rows_of_pages(dtype):
    x, y, i, j = var(dtype, 3), var(dtype, 2), var("int64", 1), var("int8", 1)
    return [x, y, i, j], [op(x, *more) for op in (advanced_inc_subtensor, advanced_set_subtensor)
                          for more in ((y, i, j), (y[0], i, 1), (y[0, 0], i, i % 2))]  # fmt: skip


@case("join", [(2, 3), (4, 3)], [(0, 3), (1, 3)], [(0, 0), (0, 0)], dtypes=NUMBERS + WIDE)
def join_rows(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [T.concatenate([x, y, x]), T.concatenate([x], axis=-2)]


@case("join", [(2, 3), (2, 1)], [(2, 0), (2, 1)], dtypes=("float32", "int8"))
def join_columns(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [T.concatenate([x, y, y], axis=1), T.concatenate([y, x], axis=-1)]


@case("split", [(5, 7)], [(5, 7, 2)], dtypes=NUMBERS + WIDE,
      make=lambda d: [[values(d, (5, 7)), np.array([2, 0, 3])],
                      [values(d, (1, 7)), np.array([0, 1, 0])]])  # fmt: skip
def split_rows(dtype):
    x, n = var(dtype, 2), var("int64", 1)
    return [x, n], T.split(x, n, 3, axis=0)


@case("split", [(3, 5, 2), ((2,), "int8", 0, 1)], dtypes=("float64", "int8"),
      make=lambda d: [[values(d, (3, 5, 2)), np.array([1, 4], "int8")],
                      [values(d, (0, 5, 2)), np.array([5, 0], "int8")]])  # fmt: skip
def split_pages(dtype):
    x, n = var(dtype, 3), var("int8", 1)
    return [x, n], [*T.split(x, n, 2, axis=1), *T.split(x, n, 2, axis=-2)]


CUMULATED = [(4,)], [(0,)], [(1,)], [(700,)]


@case("cumulate", *CUMULATED, dtypes=INC)
def cumulate_vector(dtype):
    x = var(dtype, 1)
    return [x], [T.cumsum(x), T.cumprod(x[:9], axis=0), T.cumsum(x[::-1])]


@case("cumulate", [(3, 5, 4)], [(1, 0, 4)], [(2, 1, 1)], [(3, 2, 600)], dtypes=INC)
def cumulate(dtype):
    x = var(dtype, 3)
    return [x], [
        *(T.cumsum(x, axis=axis) for axis in (0, 1, 2)),
        *(T.cumprod(x[:, :, :4], axis=axis) for axis in (0, 1, 2)),
    ]


@case("repeat", [(3, 4)], [(0, 4)], [(1, 40)], dtypes=NUMBERS + WIDE)
def repeat(dtype):
    x = var(dtype, 2)
    return [x], [RepeatOp(axis)(x, n) for axis in (0, 1) for n in (0, 1, 3)]


@case("repeat", [(4,), ((4,), "int64", 0, 4)], [(0,), ((0,), "int64")],
      [(4,), ((1,), "int64", 2, 3)], dtypes=NUMBERS + WIDE)  # fmt: skip
def repeat_vector(dtype):
    x, n = var(dtype, 1), var("int64", 1)
    return [x, n], [RepeatOp(0)(x, n), RepeatOp(None)(x[::-1], n)]


@case("repeat", [(3, 4), ((4,), "int8", 0, 4)], dtypes=("float32", "uint16", "complex128"))
def repeat_columns(dtype):
    x, n = var(dtype, 2), var("int8", 1)
    return [x, n], [RepeatOp(1)(x, n), RepeatOp(0)(x.T, n)]


@case("assert", [(3, 4), ((), "int8", 1, 2)], dtypes=NUMBERS)
def assert_(dtype):
    x, n = var(dtype, 2), var("int8", 0)
    return [x, n], [Assert()(x, T.ge(n, 0), n), Assert()(x.T, T.cast(n, "float32"))]


@case("arange", make=lambda d: [[np.array(v, "int64") for v in t] for t in
                                ((0, 5, 1), (5, 0, 1), (5, 0, -2), (-3, 4, 3), (2, 2, 1))],
      dtypes=("int64",))  # fmt: skip
def arange(dtype):
    a, b, c = (var("int64", 0) for _ in range(3))
    return [a, b, c], [T.arange(a, b, c), T.arange(b)]


@case("first_along", [(3, 4)], [(0, 4)], [(3, 0)], [(1, 1)], dtypes=NUMBERS + WIDE)
def first_along(dtype):
    x = var(dtype, 2)
    return [x], [FirstAlong(axes)(y) for axes in ((0,), (1,), (0, 1)) for y in (x, x.T[::-1])]


# --- diagonals ----------------------------------------------------------------------------------


@case("extract_diag", [(3, 5)], [(5, 3)], [(0, 4)], [(1, 1)], dtypes=NUMBERS + WIDE)
def extract_diag(dtype):
    x = var(dtype, 2)
    made = [ExtractDiag(k, view=view) for k in (0, 1, -2, 7, -7) for view in (False, True)]
    return [x], [op(y) for op in made for y in (x, x.T[::-1])]


@case("extract_diag", [(2, 4, 3)], [(0, 4, 3)], [(2, 0, 3)], name="extract_diag of three axes")
def extract_diag_3(dtype):
    x = var(dtype, 3)
    ends = [(*axes, view) for axes in ((0, 1), (2, 1), (0, 2)) for view in (False, True)]
    return [x], [ExtractDiag(k, *end)(x) for k in (0, 1, -1) for end in ends]


@case("alloc_diag", [(3,)], [(0,)], [(1,)], dtypes=NUMBERS + WIDE)
def alloc_diag(dtype):
    x = var(dtype, 1)
    return [x], [AllocDiag(k)(y) for k in (0, 2, -1) for y in (x, x[::-1])]


@case("alloc_diag", [(2, 3)], [(0, 3)], [(2, 0)], name="alloc_diag of three axes")
def alloc_diag_3(dtype):
    x = var(dtype, 2)
    return [x], [AllocDiag(k, *axes)(x) for k in (0, -1) for axes in ((0, 1), (2, 0), (1, 2))]


def _sizes_and_offsets(dtype):
    last = np.iinfo("int64")
    for sizes in (
        (3, 4, 0), (4, 3, 1), (4, 3, -2), (0, 3, 0), (3, 0, 0), (3, 3, 9), (3, 3, -9), (1, 1, 0),
        (2, 3, last.max), (2, 3, last.min), (3, 5, 4), (5, 3, -4), (3, 5, 5),
    ):  # fmt: skip
        yield [np.array(n, "int64") for n in sizes]


@case("diagonal_matrix", dtypes=(*NUMBERS, "float16", "complex64"), make=_sizes_and_offsets)
def diagonal_matrix(dtype):
    n, m, k = (var("int64", 0) for _ in range(3))
    return [n, m, k], [T.eye(n, m, k, dtype), T.tri(n, m, k, dtype)]


# --- reductions ---------------------------------------------------------------------------------


def _reductions(dtype, x):
    yield from (T.sum(x), T.sum(x, axis=0), T.sum(x, axis=(0, 2)), T.prod(x, axis=1))
    yield from (T.max(x, axis=2), T.min(x, axis=(1, 2)), T.max(x), T.min(x, axis=0))


@case("reduce", [(3, 4, 5)], [(1, 1, 2)], [(2, 3, 1)], dtypes=INTS + FLOATS)
def reduce_(dtype):
    x = var(dtype, 3)
    return [x], list(_reductions(dtype, x))


@case("reduce", [(3, 0, 5)], [(0, 0, 0)], dtypes=INTS + FLOATS)
def reduce_nothing(dtype):
    x = var(dtype, 3)
    return [x], [T.sum(x), T.sum(x, axis=1), T.prod(x, axis=(0, 1)), T.sum(x, axis=0)]


@case("reduce", [(3, 4)], [(1, 1)], dtypes=("bool",))
def reduce_truths(dtype):
    x = var(dtype, 2)
    return [x], [T.any(x), T.all(x, axis=0), T.any(x, axis=1), T.sum(x, axis=0), T.all(x)]


@case("reduce", [()], [()], dtypes=FLOATS + ("int8",))
def reduce_a_number(dtype):
    x = var(dtype, 0)
    return [x], [T.sum(x), T.prod(x)]


@case("reduce", [(2, 3000)], [(3000, 2)], [(1, 100_000)], dtypes=FLOATS)
def reduce_long(dtype):
    x = var(dtype, 2)
    return [x], [T.sum(x), T.sum(x, axis=0), T.sum(x, axis=1), T.max(x, axis=0)]


@case("reduce", [(3, 4)], dtypes=FLOATS)
def reduce_in_another_precision(dtype):
    x = var(dtype, 2)
    return [x], [T.sum(x, acc_dtype="float64"), T.sum(x, dtype="float64", axis=0)]


def _folded(name, *operands):
    """Return all kinds of reductions of an elementwise operation."""
    extremum = [CAReduce(OPS["maximum"], 2), CAReduce(OPS["minimum"], (1, 2))]
    for reduction in (Sum(), Sum(0), Sum((0, 2)), Prod(1), *extremum):
        yield MapReduce(OPS[name], reduction)(*operands)


@case("reduce", [(3, 4, 5), (3, 4, 5)], [(1, 1, 2), (1, 1, 2)], dtypes=INTS + FLOATS)
def map_reduce(dtype):
    x, y = var(dtype, 3), var(dtype, 3)
    return [x, y], list(_folded("mul", x, y))


@case("reduce", [(2, 3, 4), (1, 1, 4), (2, 3, 1), (1, 1, 1)], dtypes=("float32", "int16"))
def map_reduce_broadcasts(dtype):
    patterns = [(False, False, False), (True, True, False), (False, False, True), (True,) * 3]
    x, row, column, one = (var(dtype, p) for p in patterns)
    operands = [x, row, column, one]
    return operands, [*_folded("add", *operands), *_folded("mul", row, column, one)]


@case("reduce", [(3, 0, 5)], [(0, 0, 0)], dtypes=("float64", "uint8"))
def map_reduce_nothing(dtype):
    x = var(dtype, 3)
    return [x], [MapReduce(OPS["neg"], op)(x) for op in (Sum(), Sum(1), Prod((0, 1)), Sum(0))]


@case("reduce", [(3, 4), (3, 4)], [(1, 1), (1, 1)], dtypes=NUMBERS + WIDE)
def map_reduce_truths(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [MapReduce(OPS["lt"], op)(x, y) for op in (Any(), Any(0), All(1), All(), Sum())]


@case("reduce", [(2, 3000), ((2, 3000), "int8")], [(3000, 2), ((3000, 2), "int8")], dtypes=FLOATS)
def map_reduce_long(dtype):
    x, i = var(dtype, 2), var("int8", 2)
    ops = [Sum(), Sum(0), Sum(1, acc_dtype=dtype), CAReduce(OPS["maximum"], 0)]
    return [x, i], [MapReduce(OPS["add"], op)(x, i) for op in ops]


_TAKEN = [
    [(5,), (7,), *(((7,), dtype, low, 5) for dtype, low in indices)]
    for indices in (
        [("int64", -5), ("int32", 0)], [("int64", 0), ("int32", -5)], [("int64", 0), ("int32", 0)],
    )
]  # fmt: skip


@case("elemwise_taken", *_TAKEN, [(2,), (0,), ((0,), "int64"), ((0,), "int32")],
      dtypes=INTS + FLOATS)  # fmt: skip
def gathered_elements(dtype):
    x, y, i, k = var(dtype, 1), var(dtype, 1), var("int64", 1), var("int32", 1)
    mul = Elemwise(OPS["mul"])
    return [x, y, i, k], [Gathered(mul, [Taken(0, 0)])(x, y, i),
                          Gathered(mul, [Taken(0, 0), Taken(1, 1)])(x, x, i, k),
                          Gathered(mul, [Taken(0, 0)])(x[::-2], y, i % 2)]  # fmt: skip


@case("reduce_taken", *_TAKEN, dtypes=INTS + FLOATS)
def gathered_reduction(dtype):
    x, y, i, k = var(dtype, 1), var(dtype, 1), var("int64", 1), var("int32", 1)
    loops = [MapReduce(OPS["mul"], op) for op in (Sum(), CAReduce(OPS["maximum"]))]
    taken = [Taken(0, 0), Taken(1, 1)]
    return [x, y, i, k], [*(Gathered(loop, taken)(x, x, i, k) for loop in loops),
                          Gathered(loops[0], taken[:1])(x, y, i)]  # fmt: skip


@case("reduce", [(4, 1, 700)], [(1, 1, 1)], [(1, 5, 2)], dtypes=INTS + FLOATS)
def reduce_axes_of_length_1(dtype):
    x = var(dtype, 3)
    return [x], [op(x, axis=axis) for op in (T.sum, T.prod, T.max) for axis in (0, 1, 2)]


@case(
    "argmax", [(40, 3)], [(3, 2100)], [(50, 40)], [(700, 2)], [(7200, 7)], [(130, 31)], [(300, 1)],
    dtypes=("bool", "float16") + INTS + FLOATS,
)  # fmt: skip
def argmax_of_long_rows(dtype):
    x = var(dtype, 2)
    return [x], [*T.max_and_argmax(x, axis=0), T.argmax(x, axis=1), *T.max_and_argmax(x, axis=1)]


def _with_nans(dtype):
    for n, places in ((2100, ()), (2100, (1500, 1800)), (40, (0,)), (33, (32,))):
        x = np.stack([values(dtype, (n,), seed) for seed in range(3)])
        x[1, list(places)] = np.nan
        x[2, -1] = np.inf
        yield [x]


def _thin_with_nans(dtype):
    for (x,) in _with_nans(dtype):
        yield [np.ascontiguousarray(x.T)]


def _largest_everywhere(dtype):
    """Rows of some lengths: the largest element at each place, alone, twice, and beside NaN."""
    for n in (31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, 300):
        x = np.zeros((2 * n, n), dtype)
        x[:] = values(dtype, (n,), n) % 7
        x[np.arange(n), np.arange(n)] = 100 if dtype != "bool" else 1
        x[n + np.arange(n), np.arange(n)] = 100 if dtype != "bool" else 1
        x[n:, -1] = x[n, 0] if dtype not in (*FLOATS, "float16") else np.nan
        yield [x]


@case("argmax", make=_largest_everywhere, dtypes=("bool", "float16") + INTS + FLOATS)
def argmax_of_rows_of_all_lengths(dtype):
    x = var(dtype, 2)
    return [x], [*T.max_and_argmax(x, axis=1), T.argmax(x)]


@case("argmax", make=_thin_with_nans)
def argmax_of_thin_matrices(dtype):
    x = var(dtype, 2)
    return [x], [*T.max_and_argmax(x, axis=0), T.argmax(-x, axis=0), T.argmax(x[:, 1], axis=0)]


@case("argmax", make=_with_nans)
def argmax_of_special_values(dtype):
    x = var(dtype, 2)
    return [x], [T.argmax(x, axis=0), *T.max_and_argmax(x, axis=1), T.argmax(-x, axis=1),
                 T.argmax(x[:, ::-1], axis=1), T.argmax(x)]  # fmt: skip


@case("argmax", [(3, 4, 5)], [(1, 1, 2)], [(2, 1, 1)], dtypes=("bool", "float16") + INTS + FLOATS)
def argmax(dtype):
    x = var(dtype, 3)
    op = Argmax((1,))
    return [x], [
        T.argmax(x), T.argmax(x, axis=0), T.argmax(x, axis=2), op(x), Argmax((0, 2))(x),
        *T.max_and_argmax(x, axis=1), *T.max_and_argmax(x, axis=(0, 1)),
    ]  # fmt: skip


# --- products -----------------------------------------------------------------------------------

MATRICES = ([(3, 4), (4, 5)], [(1, 4), (4, 1)], [(3, 0), (0, 2)], [(0, 3), (3, 2)],
            [(2, 3), (3, 0)],
            [(30, 40), (40, 50)], [(1, 90), (90, 80)], [(90, 80), (80, 1)])  # fmt: skip


@case("dot22", *MATRICES)
def dot22(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [blas._dot22(x, y)]


@case("dot22", [(3, 4), (4, 5), ()], [(30, 40), (40, 50), ()], [(3, 0), (0, 2), ()])
def dot22scalar(dtype):
    x, y, a = var(dtype, 2), var(dtype, 2), var(dtype, 0)
    return [x, y, a], [blas._dot22scalar(x, y, a)]


@case("dot", *MATRICES)
def dot(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [T.dot(x, y)]


@case("dot", [(4,), (4, 3)], [(0,), (0, 3)], [(100,), (100, 90)])
def dot_row(dtype):
    x, y = var(dtype, 1), var(dtype, 2)
    return [x, y], [T.dot(x, y), T.dot(y.T, x)]


@case("dot", [(4,), (4,)], [(0,), (0,)], [(9000,), (9000,)])
def dot_numbers(dtype):
    x, y = var(dtype, 1), var(dtype, 1)
    return [x, y], [T.dot(x, y)]


#: dtypes whose products BLAS does not have, or copies
PRODUCTS = ("bool", *INTS, *WIDE)


@case("any_dot", *MATRICES, [(70, 300), (300, 90)], dtypes=PRODUCTS)
def any_dot(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [T.dot(x, y), T.dot(y.T, x.T), T.dot(x[:, ::-1], y[::-1])]


@case("any_dot", [(4,), (4, 3)], [(0,), (0, 3)], [(100,), (100, 90)], dtypes=PRODUCTS)
def any_dot_of_vector(dtype):
    v, m = var(dtype, 1), var(dtype, 2)
    return [v, m], [T.dot(v, m), T.dot(m.T, v), T.dot(v[::-1], v)]


@case("any_batched_dot", [(2, 3, 4), (2, 4, 5)], [(0, 3, 4), (0, 4, 5)], [(2, 3, 0), (2, 0, 5)],
      [(40, 30, 20), (40, 20, 30)], dtypes=PRODUCTS)  # fmt: skip
def any_batched_dot(dtype):
    x, y = var(dtype, 3), var(dtype, 3)
    by_columns = y.dimshuffle(0, 2, 1)
    return [x, y], [blas.batched_dot(x, y), blas.batched_dot(by_columns, x.dimshuffle(0, 2, 1))]


@case("batched_dot", [(2, 3, 4), (2, 4, 5)], [(0, 3, 4), (0, 4, 5)], [(2, 3, 0), (2, 0, 5)],
      [(3, 20, 30), (3, 30, 20)])  # fmt: skip
def batched_dot(dtype):
    x, y = var(dtype, 3), var(dtype, 3)
    return [x, y], [blas.batched_dot(x, y)]


def _gemm(op):
    def build(dtype):
        z, x, y = (var(dtype, 2) for _ in range(3))
        a, b = var(dtype, 0), var(dtype, 0)
        return [z, x, y, a, b], [op(z, a, x, y, b)]

    return build


def _gemv(op):
    def build(dtype):
        y, A, x = var(dtype, 1), var(dtype, 2), var(dtype, 1)
        a, b = var(dtype, 0), var(dtype, 0)
        return [y, A, x, a, b], [op(y, a, A, x, b)]

    return build


def _ger(op):
    def build(dtype):
        A, x, y, a = var(dtype, 2), var(dtype, 1), var(dtype, 1), var(dtype, 0)
        return [A, x, y, a], [op(A, a, x, y)]

    return build


GEMMS = ([(3, 5), (3, 4), (4, 5), (), ()], [(3, 5), (3, 0), (0, 5), (), ()],
         [(0, 5), (0, 4), (4, 5), (), ()], [(30, 50), (30, 40), (40, 50), (), ()])  # fmt: skip
GEMVS = ([(3,), (3, 4), (4,), (), ()], [(3,), (3, 0), (0,), (), ()], [(0,), (0, 4), (4,), (), ()],
         [(90,), (90, 80), (80,), (), ()], [(150,), (150, 120), (120,), (), ()])  # fmt: skip
GERS = ([(3, 4), (3,), (4,), ()], [(0, 4), (0,), (4,), ()], [(90, 80), (90,), (80,), ()])
case("gemm", *GEMMS, name="gemm")(_gemm(blas.gemm_no_inplace))
case("gemm", *GEMMS, name="gemm_inplace", mutable=(0,))(_gemm(blas.gemm_inplace))
case("gemv", *GEMVS, name="gemv")(_gemv(blas.gemv_no_inplace))
case("gemv", *GEMVS, name="cgemv_inplace", mutable=(0,))(_gemv(blas.cgemv_inplace))
case("ger", *GERS, name="ger")(_ger(blas.ger))
case("ger", *GERS, name="cger_inplace", mutable=(0,))(_ger(blas.cger_inplace))


@case("elemwise", [(3, 4), (3, 4)], [(0, 4), (0, 4)], dtypes=FLOATS + ("int64",))
def elemwise(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    return [x, y], [x + y, x * y - x]


def streams(dtype):
    """Yield states of a few and of many streams, rows of the bits of numbers."""
    for n in (1, 2, 7, 300):
        yield mrg.substreams(np.array([7, 11, 13, 17, 19, n], "int32"), n)


def _draw(dtype, states, size, inplace=False):
    return mrg.mrg_uniform(TensorType(dtype, (False,) * 2), inplace)(states, size)


@case("mrg_uniform", make=lambda dtype: [[s] for s in streams(dtype)])
def mrg_uniform(dtype):
    states = var("int32", 2)
    return [states], _draw(dtype, states, (41, 25))


@case("mrg_uniform_sized",
      make=lambda dtype: [[s, np.array(size)] for s in streams(dtype)
                          for size in ([41, 25], [0, 3], [2, 2], [1, 300])])  # fmt: skip
def mrg_uniform_sized(dtype):
    states, size = var("int32", 2), var("int64", 1)
    return [states, size], _draw(dtype, states, size)


@case("mrg_uniform", make=lambda dtype: [[s] for s in streams(dtype)], mutable=(0,))
def mrg_uniform_inplace(dtype):
    states = var("int32", 2)
    return [states], _draw(dtype, states, (41, 25), inplace=True)


def distributions(dtype):
    """Return a few distributions in rows, and uniform numbers, 3 for each."""
    rng = np.random.RandomState(3)
    weights = rng.rand(7, 5).astype(dtype)
    some = weights / weights.sum(1, keepdims=True)
    return [
        [some, rng.rand(21).astype(dtype)],
        [some / 2, rng.rand(21).astype(dtype)],
        [some[:0], rng.rand(0).astype(dtype)],
    ]


@case("multinomial", make=distributions)
def multinomial(dtype):
    pvals, unis = var(dtype, 2), var(dtype, 1)
    return [pvals, unis], [MultinomialFromUniform(to)(pvals, unis, 3) for to in ("auto", "int8")]


@case("choice", make=distributions)
def choice(dtype):
    pvals, unis = var(dtype, 2), var(dtype, 1)
    return [pvals, unis], [
        ChoiceFromUniform("auto")(pvals, unis, 3),
        ChoiceFromUniform("float32", replace=True)(pvals, unis, 3),
    ]


@pytest.mark.parametrize(
    ("one", "dtype"), [(c, d) for c in CASES for d in c.dtypes], ids=lambda v: getattr(v, "name", v)
)
def test_against_perform(one, dtype, run_with, layouts):
    inputs, outputs = one.build(dtype)
    mutable = [inputs[i] for i in one.mutable]
    python, _ = run_with(inputs, outputs, c=False, mutable=mutable)
    c, linked = run_with(inputs, outputs, c=True, mutable=mutable)
    kinds = {
        made.kind
        for node in linked.program.fgraph.toposort()
        if (made := lowering.c_step(node, Kernels(generate=False))) is not None
    }
    assert one.kind in kinds
    for plain in one.inputs(dtype):
        for choice, arrays in layouts(plain):
            if any(not arrays[i].flags.writeable for i in one.mutable):
                continue
            copies = [np.array(a) for a in arrays]
            try:
                expected = python(*[np.array(a) for a in arrays])
            except ValueError:  # a layout that repeats elements may make lengths that do not fit
                with pytest.raises(ValueError):
                    c(*arrays)
                continue
            found = c(*arrays)
            for k, (e, f) in enumerate(zip(expected, found, strict=True)):
                agree(np.asarray(e), f, (choice, [a.shape for a in arrays], f"output {k}"))
            for i, (before, after) in enumerate(zip(copies, arrays, strict=True)):
                if i in one.mutable:
                    agree(found[0], np.array(after), (choice, "overwritten"))
                else:
                    np.testing.assert_array_equal(before, after, err_msg=f"{choice}: input {i}")


@pytest.mark.parametrize(
    ("one", "dtype"), [(c, d) for c in CASES for d in c.dtypes], ids=lambda v: getattr(v, "name", v)
)
def test_everything_of_a_case_runs_in_c(one, dtype):
    inputs, outputs = one.build(dtype)
    kernels = Kernels(generate=False)
    python = {
        str(node) for node in io_toposort(inputs, outputs) if lowering.c_step(node, kernels) is None
    }
    assert not python


# --- sorting and selection ----------------------------------------------------------------------


def _with_nan_and_zeros(dtype, shape):
    """Return numbers with equal ones among them; of floats also NaN, infinities and both zeros."""
    x = values(dtype, shape)
    if np.dtype(dtype).kind == "f" and x.size > 6:
        x.reshape(-1)[:6] = [np.nan, -np.inf, 0.0, -0.0, np.inf, np.nan]
    return x


# lengths: no row, short ones, ranked, merged and distributed ones
_ROWS_TO_SORT = [(3, n) for n in (0, 1, 2, 7, 16, 17, 32, 33, 100, 150, 1000)] + [(0, 5), (700, 6)]


@case("sort", dtypes=SORTED,
      make=lambda d: [[_with_nan_and_zeros(d, s)] for s in _ROWS_TO_SORT])  # fmt: skip
def sort_rows(dtype):
    x = var(dtype, 2)
    return [x], [T.sort(x), T.argsort(x), T.sort(x[::-1, ::-1]), T.argsort(x[:, ::2])]


@case("sort", [(5, 4, 3)], [(1, 40, 2)], [(0, 3, 4)], dtypes=SORTED)
def sort_along_an_axis(dtype):
    x = var(dtype, 3)
    outputs = [f(x, axis) for f in (T.sort, T.argsort) for axis in (0, 1, None)]
    return [x], [*outputs, T.argsort(x.T, 1), T.sort(x.dimshuffle(1, 0, 2), 0)]


_SELECTED = [
    ((3, 7), 1), ((3, 7), 7), ((3, 7), -3), ((2, 1), -1), ((4, 300), 5), ((4, 300), -70),
    ((4, 300), 299), ((2, 1000), 64), ((2, 1000), 65), ((0, 3), 2), ((130, 40), 3),
]  # fmt: skip


@case("select", dtypes=SORTED,
      make=lambda d: [[_with_nan_and_zeros(d, s), np.array(k)] for s, k in _SELECTED])  # fmt: skip
def select_largest(dtype):
    x, k = var(dtype, 2), var("int64", 0)
    return [x, k], [
        *topk_and_argtopk(x, k), topk(x, k), argtopk(x, k, idx_dtype="uint8"),
        *topk_and_argtopk(x.T, k, axis=0, sorted=False, idx_dtype="int32"),
        argtopk(x[:, ::-1], k, sorted=False, idx_dtype="int16"),
    ]  # fmt: skip


@case("nonzero", [(40,)], [(0,)], [(1,)], [(1300,)], dtypes=NUMBERS + WIDE)
def nonzero_of_a_vector(dtype):
    x = var(dtype, 1)
    return [x], [T.nonzero(x)[0], T.nonzero(x[::-2])[0], T.nonzero(T.gt(x, x[::-1]))[0]]


@case("nonzero", [(3, 5, 4)], [(2, 0, 3)], [(2, 3, 600)], dtypes=NUMBERS + WIDE)
def nonzero(dtype):
    x = var(dtype, 3)
    return [x], [*T.nonzero(x), T.nonzero(x.dimshuffle(2, 0, 1), return_matrix=True)]


@case("choose", [((5, 4), "int64", 0, 3), (5, 4), (4,), (5, 1)],
      [((1, 4), "int64", 0, 3), (5, 4), (1,), (5, 1)],
      [((0, 4), "int64", 0, 3), (0, 4), (4,), (1, 4)], dtypes=NUMBERS + WIDE)  # fmt: skip
def choose(dtype):
    i, x, y, z = var("int64", 2), var(dtype, 2), var(dtype, 1), var(dtype, 2)
    return [i, x, y, z], [
        T.choose(i, [x, y, z]), T.choose(i * 7 - 9, [x, y, z], mode="wrap"),
        T.choose(i.astype("int8") * 7 - 9, [z, x], mode="clip"),
    ]  # fmt: skip


@case("search", dtypes=SORTED, make=lambda d: [
    [np.sort(_with_nan_and_zeros(d, (n,))), _with_nan_and_zeros(d, (5, 7))] for n in (0, 1, 9, 300)
])  # fmt: skip
def search(dtype):
    x, v = var(dtype, 1), var(dtype, 2)
    return [x, v], [
        searchsorted(x, v), searchsorted(x, v, side="right"), searchsorted(x, v.T[::-1]),
    ]  # fmt: skip


@case(
    "fill_diagonal", [(4, 6), ()], [(6, 4), ()], [(0, 3), ()], [(1, 1), ()], dtypes=NUMBERS + WIDE
)
def fill_diagonals(dtype):
    x, y = var(dtype, 2), var(dtype, 0)
    offset = fill_diagonal_offset
    return [x, y], [
        fill_diagonal(x, y), fill_diagonal(x.T, y),
        *(offset(x, y, k) for k in (-7, -3, -1, 0, 2, 5, 9, np.iinfo("int64").min)),
    ]  # fmt: skip


@case("fill_diagonal", [(3, 3, 3), ()], dtypes=("float64", "int8"))
def fill_diagonal_of_a_cube(dtype):
    x, y = var(dtype, 3), var(dtype, 0)
    return [x, y], [fill_diagonal(x, y)]


#: kinds that are tried elsewhere, by the files that try them
ELSEWHERE = {
    "test_nnet_steps, tests/tensor/nnet/test_ctc": {
        "ctc", "softmax", "logsoftmax", "softmax_grad", "xent", "xent_dx", "onehot", "onehot_grad",
    },
    "tests/optimizers/rules/test_rowwise": {"rowwise"},
    "test_lapack_steps": {"cholesky", "solve", "inverse", "det", "eigh", "svd", "qr"},
    "tests/tensor/linalg": {"lu", "permutation", "slogdet"},
    "tests/tensor/conv": {
        "conv", "conv_then", "conv_kernels", "conv_images", "conv_groups", "conv_groups_images",
        "conv_unshared",
        "conv_unshared_kernels", "conv_unshared_images", "pool", "pool_gradient", "neibs",
        "neibs_add", "spatial_grid", "spatial_grid_gradient", "spatial_sample",
        "spatial_sample_gradient",
    },
    "tests/sparse": {
        "csr_product", "csc_product", "usmm_csc", "product_gradient", "sampling_dot",
        "times_matrix", "with_vector", "add_dense", "data_gradient",
    },
}  # fmt: skip
#: packages whose Ops these files try
_TRIED_THERE = (
    "opwise.tensor.nnet", "opwise.tensor.linalg", "opwise.tensor.conv", "opwise.tensor.ifelse",
    "opwise.sparse", "opwise.loops", "opwise.tensor.random", "opwise.tensor.rowwise",
)  # fmt: skip


def test_every_kind_is_tried():
    others = set().union(*ELSEWHERE.values())
    assert {c.kind for c in CASES} == set(opwise_c.kinds()) - others
    assert others <= set(opwise_c.kinds())


def test_every_maker_has_a_test():
    """A class that is given a maker comes up in a case."""
    seen = {
        cls
        for one in CASES
        for node in io_toposort(*one.build(one.dtypes[0]))
        for cls in type(node.op).__mro__
    }
    made = {cls for cls in lowering._lowerings if not cls.__module__.startswith(_TRIED_THERE)}
    missing = {cls.__name__ for cls in made} - {cls.__name__ for cls in seen}
    assert not missing, "write a case for it"


# --- indices of every kind ----------------------------------------------------------------------

_BOUND = st.none() | st.integers(-12, 12)
_STEP = st.none() | st.integers(-4, 4).filter(bool)
_ENTRY = st.integers(-9, 9) | st.builds(slice, _BOUND, _BOUND, _STEP)


def _symbolic(index, symbols):
    """Return an index with every number a scalar of some integer type, and the values of these."""
    made = []
    kinds = ("int64", "int8", "int32", "int16")

    def number(n):
        if n is None:
            return None
        v = var(kinds[len(symbols) % 4], 0)
        symbols[v] = np.array(n, v.type.dtype)
        return v

    for entry in index:
        if isinstance(entry, slice):
            made.append(slice(number(entry.start), number(entry.stop), number(entry.step)))
        else:
            made.append(number(entry))
    return tuple(made)


@settings(
    max_examples=150, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    index=st.lists(_ENTRY, min_size=1, max_size=3).map(tuple),
    shape=st.tuples(*[st.integers(0, 7)] * 3),
    symbolic=st.booleans(),
    backward=st.booleans(),
)
def test_any_index(run_with, index, shape, symbolic, backward):
    symbols = {}
    x, y = var("float64", 3), var("float64", 0)
    part = x[_symbolic(index, symbols) if symbolic else index]
    outputs = [part, T.set_subtensor(part, y), T.inc_subtensor(part, y)]
    run, linked = run_with([x, y, *symbols], outputs, c=True)
    assert all(linked.in_c)
    value = np.arange(float(np.prod(shape))).reshape(shape)
    value = value[::-1, :, ::-1] if backward else value
    try:
        expected = value[index]
    except IndexError:
        with pytest.raises(IndexError):
            run(value, np.array(0.5), *symbols.values())
        return
    found, put, added = run(value, np.array(0.5), *symbols.values())
    np.testing.assert_array_equal(found, expected)
    if found.size:
        assert np.shares_memory(found, value), "indexing copies nothing"
    for result, target in ((put, 0.5), (added, expected + 0.5)):
        copy = value.copy()
        copy[index] = target
        np.testing.assert_array_equal(result, copy)


@settings(
    max_examples=150, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
       wanted=st.lists(st.integers(-2, 12), max_size=4).map(tuple))  # fmt: skip
def test_any_new_shape(run_with, shape, wanted):
    x, lengths = var("float64", len(shape)), var("int64", 1)
    run, linked = run_with([x, lengths], [x.reshape(lengths, ndim=len(wanted))], c=True)
    assert linked.in_c == (True,)
    value = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    python, _ = run_with([x, lengths], [x.reshape(lengths, ndim=len(wanted))], c=False)
    wanted = np.array(wanted, "int64")
    try:
        expected = python(value, wanted)[0]
    except ValueError:
        with pytest.raises(ValueError, match="cannot reshape"):
            run(value, wanted)
        return
    np.testing.assert_array_equal(run(value, wanted)[0], expected)


# --- values that are hard -----------------------------------------------------------------------

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "row",
    [
        [1, NAN, 3], [NAN, 1, 2], [1, 2, NAN], [NAN, NAN, 0], [INF, -INF, 0], [-INF, -INF, -INF],
        [INF, NAN, 1], [0.0, -0.0, 0.0], [3, 3, 1],
    ],
    ids=str,
)  # fmt: skip
def test_reductions_of_special_values(run_with, dtype, row):
    x = var(dtype, 2)
    outputs = [
        T.max(x, axis=1), T.min(x, axis=0), T.max(x), T.argmax(x, axis=1), T.argmax(x, axis=0),
        T.sum(x, axis=0), T.prod(x, axis=1), T.argmax(x),
    ]  # fmt: skip
    value = np.array([row, row[::-1]], dtype)
    found = run_with([x], outputs, c=True)[0](value)
    with np.errstate(invalid="ignore"):
        expected = run_with([x], outputs, c=False)[0](value)
    for e, f in zip(expected, found, strict=True):
        np.testing.assert_array_equal(f, e)


def test_integers_at_their_limits(run_with):
    for dtype in INTS:
        info = np.iinfo(dtype)
        x = var(dtype, 1)
        value = np.array([info.min, info.max, info.max], dtype)
        made = [T.max(x), T.min(x), T.argmax(x), T.sum(x), T.inc_subtensor(x[1:], x[1])]
        found = run_with([x], made, c=True)[0](value)
        expected = run_with([x], made, c=False)[0](value)
        for e, f in zip(expected, found, strict=True):
            np.testing.assert_array_equal(f, e, err_msg=dtype)


LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 20, 31, 33, 64, 65, 130)


@pytest.mark.parametrize("layout", ["C", "F", "reversed"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_vectors_of_any_length(dtype, layout):
    """Tiles end where rows do, and elements behind the last whole vector are added once."""
    y, a, x = var(dtype, 1), var(dtype, 2), var(dtype, 1)
    f = function([y, a, x], blas.gemv_no_inplace(y, 2.0, a, x, 0.5), mode=Mode("c", None))
    g = function([a, x], T.dot(a, x), mode=Mode("c", "fast_run"))
    for m in LENGTHS:
        for k in LENGTHS:
            rng = np.random.RandomState(m * 200 + k)
            of, by, z = (rng.randint(-9, 9, n).astype(dtype) for n in ((m, k), k, m))
            by[by == 0] = 1
            if layout == "F":
                of = np.asfortranarray(of)
            elif layout == "reversed":
                of, by = of[::-1, ::-1], by[::-1]
            assert f(z, of, by).tolist() == (0.5 * z + 2 * (of @ by)).tolist()
            of[m // 2, rng.randint(k)] = np.inf
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(g(of, by), (of.astype("float64") * by).sum(axis=1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_matrices_of_any_layout(dtype):
    x, y = var(dtype, 2), var(dtype, 2)
    f = function([x, y], T.dot(x, y))
    for m in (1, 2, 13, 20):
        for k in (1, 9, 16, 33, 270):
            for n in LENGTHS:
                rng = np.random.RandomState(m + k + n)
                a, b = (rng.randint(-9, 9, shape).astype(dtype) for shape in ((m, k), (k, n)))
                for left in (a, np.asfortranarray(a)):
                    for right in (b, np.asfortranarray(b)):
                        np.testing.assert_array_equal(f(left, right), a @ b)


@pytest.mark.parametrize("op", [blas.gemm_no_inplace, blas.gemv_no_inplace], ids=str)
@pytest.mark.parametrize("size", [3, 90, 150])
def test_a_scale_of_zero_hides_what_was_there(run_with, op, size):
    """BLAS promises that with beta = 0 the target is not read: it may be uninitialised memory."""
    build = _gemm(op) if op is blas.gemm_no_inplace else _gemv(op)
    inputs, outputs = build("float64")
    run, linked = run_with(inputs, outputs, c=True)
    assert linked.in_c == (True,)
    arrays = [np.ones((size,) * v.type.ndim) for v in inputs]
    arrays[0] = np.full_like(arrays[0], np.nan)
    arrays[-1] = np.array(0.0)
    np.testing.assert_array_equal(run(*arrays)[0], np.full(arrays[0].shape, float(size)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_long_sums_round_little(run_with, dtype):
    """The error grows with the logarithm of the length, not with the length."""
    x = var(dtype, 1)
    n = 1_000_000
    value = np.full(n, 0.1, dtype)
    total = run_with([x], [T.sum(x, acc_dtype=dtype)], c=True)[0](value)[0]
    exact = float(np.float64(value[0]) * n)
    assert abs(float(total) - exact) <= 64 * np.finfo(dtype).eps * exact


# --- failures -----------------------------------------------------------------------------------


def _failures():
    x, y = var("float64", 2), var("float64", 2)
    v, n = var("float64", 1), var("int64", 0)
    i, j = var("int64", 1), var("int64", 1)
    m = np.ones((3, 4))
    return {
        "elemwise": ([x, y], x + y, [m, np.ones((4, 4))], ValueError,
                     r"input\[0\].shape\[0\] = 3, input\[1\].shape\[0\] = 4"),
        "no broadcasting": ([x, y], x + y, [m, np.ones((1, 4))], ValueError,
                            r"input\[0\].shape\[0\] = 3, input\[1\].shape\[0\] = 1"),
        "dot22": ([x, y], blas._dot22(x, y), [m, m], ValueError,
                  r"x has 4 cols \(and 3 rows\) but y has 3 rows \(and 4 cols\)"),
        "dot": ([x, v], T.dot(x, v), [m, np.ones(3)], ValueError, "x has 4 cols"),
        "gemm": ([x, y], blas.gemm_no_inplace(x, 1.0, y, y, 1.0), [m, np.ones((2, 2))], ValueError,
                 r"z has shape \(3, 4\) but the product has \(2, 2\)"),
        "gemv": ([v, x], blas.gemv_no_inplace(v, 1.0, x, v, 1.0), [np.ones(4), m], ValueError,
                 r"A.shape\[0\] != y.shape\[0\] \(3 != 4\)"),
        "gemv columns": ([v, x], blas.gemv_no_inplace(v, 1.0, x, v, 1.0), [np.ones(3), m],
                         ValueError, r"A.shape\[1\] != x.shape\[0\] \(4 != 3\)"),
        "ger": ([x, v], blas.ger(x, 1.0, v, v), [m, np.ones(3)], ValueError,
                r"A is \(3, 4\) but the outer product is \(3, 3\)"),
        "batched_dot": ([x], blas.batched_dot(x.dimshuffle("x", 0, 1), x.dimshuffle(0, 1, "x")),
                        [m], ValueError, "batch sizes unequal"),
        "index": ([x, n], x[n], [m, np.array(3)], IndexError, "index 3, axis 0 with size 3"),
        "negative index": ([x, n], x[:, n], [m, np.array(-5)], IndexError,
                           "index out of bounds: index -5, axis 1 with size 4"),
        "step": ([x, n], x[::n], [m, np.array(0)], ValueError, "slice step cannot be zero"),
        "set": ([x, v], T.set_subtensor(x[1], v), [m, np.ones(3)], ValueError,
                "array is not broadcastable to correct shape: length 3 along dimension 0, where 4"),
        "rows": ([x, i], x[i], [m, np.array([0, 3])], IndexError, "index 3 is out of bounds"),
        "inc rows": ([x, v, i], T.inc_subtensor(x[i], v), [m, np.ones(4), np.array([0, -4])],
                     IndexError,
                     "index -4 is out of bounds"),
        "inc rows shape": ([x, y, i], T.inc_subtensor(x[i], y), [m, m, np.array([0, 1])],
                           ValueError, "not broadcastable"),
        "join": ([x, y], T.concatenate([x, y]), [m, np.ones((3, 3))], ValueError,
                 "along dimension 1, the array at index 0 has size 4 and the array at index 1"),
        "reshape": ([x], x.reshape((5, 2)), [m], ValueError,
                    r"cannot reshape array of size 12 into shape \(5,2\)"),
        "reshape unknown": ([x], x.reshape((5, -1)), [m], ValueError, r"into shape \(5,-1\)"),
        "reshape length": ([x, i], x.reshape(i, ndim=2), [m, np.array([3, 4, 1])], ValueError,
                           "incorrect length 3, should be 2"),
        "reshape overflow": ([x, i], x.reshape(i, ndim=3), [m, np.array([2**32, 2**32, -1])],
                             ValueError, "cannot reshape"),
        "alloc": ([n], T.alloc(1.0, n, 2), [np.array(-1)], ValueError, "negative dimensions"),
        "alloc value": ([v, n], T.alloc(v, n), [np.ones(3), np.array(2)], ValueError,
                        "the value has length 3 along dimension 0, the output 2"),
        "max": ([x], x.max(axis=1), [np.ones((3, 0))], ValueError, "argmax of an empty"),
        "argmax": ([x], T.argmax(x, axis=0), [np.ones((0, 3))], ValueError, "argmax of an empty"),
        "map reduce": ([x, y], MapReduce(OPS["mul"], Sum(0))(x, y), [m, np.ones((3, 5))],
                       ValueError, r"input\[0\].shape\[1\] = 4, input\[1\].shape\[1\] = 5"),
        "max of a map": ([x], MapReduce(OPS["neg"], CAReduce(OPS["maximum"], 1))(x),
                         [np.ones((3, 0))], ValueError, "zero-size on axis 1"),
        "arange": ([n], T.arange(0, 5, n), [np.array(0)], ZeroDivisionError, "the step is zero"),
        "diagonal_matrix": ([n], T.eye(3, n), [np.array(-2)], ValueError,
                            r"negative dimensions are not allowed \(got -2\)"),
        "split": ([x, i], T.split(x, i, 2, axis=1)[0], [m, np.array([1, 2])], ValueError,
                  "the parts have 3 elements along axis 1, the whole 4"),
        "split into fewer": ([x, i], T.split(x, i, 2, axis=1)[0], [m, np.array([4])], ValueError,
                             "2 lengths, got 1"),
        "split into negative": ([x, i], T.split(x, i, 2, axis=1)[0], [m, np.array([5, -1])],
                                ValueError, "cannot have a negative length"),
        "repeat": ([x, n], RepeatOp(0)(x, n), [m, np.array(-1)], ValueError, "negative values"),
        "repeat of others": ([x, i], RepeatOp(0)(x, i), [m, np.array([1, 2])], ValueError,
                             r"broadcast together with shape \(3,\) \(2,\)"),
        "assert": ([x, n], Assert("n is not positive")(x, n > 0), [m, np.array(-1)], AssertionError,
                   "n is not positive"),
        "take_parts": ([x, i, j], AdvancedSubtensor()(x, i, j),
                       [m, np.array([0, 3]), np.array([1])],
                       IndexError, "index 3 is out of bounds for axis 0 with size 3"),
        "take_parts of other lengths": (
            [x, i, j], AdvancedSubtensor()(x, i, j), [m, np.array([0, 1, 2]), np.array([1, 0])],
            IndexError, r"could not be broadcast together with shapes \(3,\) \(2,\)"),
        "inc_parts": ([x, v, i, j], advanced_inc_subtensor(x, v, i, j),
                      [m, np.ones(2), np.array([0, 1]), np.array([0, -9])],
                      IndexError, "index -9 is out of bounds for axis 1"),
        "specify_shape": ([x, i], T.specify_shape(x, i), [m, np.array([3, 5])], AssertionError,
                          "dimension 1 has length 4, not 5 as specified"),
        "specify_shape of other dimensions": (
            [x, i], T.specify_shape(x, i), [m, np.array([3])], AssertionError,
            "there are 2 dimensions, not 1 as specified"),
        "rebroadcast": ([x], T.addbroadcast(x, 0), [m], ValueError,
                        r"Dimension 0 in Rebroadcast's input was supposed to be 1 \(got 3"),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(_failures()))
def test_failures(run_with, name):
    inputs, out, arrays, error, text = _failures()[name]
    run, linked = run_with(inputs, [out], c=True)
    assert linked.in_c[-1], "the Apply that fails is not in C"
    with pytest.raises(error) as raised:
        run(*arrays)
    # what is behind the first line, which names the variables, and before this file's lines
    assert re.search(text, "\n".join(str(raised.value).split("\n", 2)[:2]))
    python, _ = run_with(inputs, [out], c=False)
    with pytest.raises(Exception) as raised:
        python(*arrays)
    assert type(raised.value) is (TypeError if name == "batched_dot" else error)


# --- memory -------------------------------------------------------------------------------------


def resident():
    """Return the bytes of memory that the process has in use."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads Linux's /proc")
@pytest.mark.parametrize("kind", ["results", "views", "updates", "failures", "python"])
def test_calls_do_not_leak(kind):
    x = T.dmatrix("x")
    w = shared(np.ones((4, 4)), name="w")
    mode = Mode("c|py", "fast_compile")
    python = T.nonzero(x)[0] if kind == "python" else x
    f = {
        "results": lambda: function([x], [x + 1, T.dot(x, x).sum()], mode=mode),
        "views": lambda: function([x], [(x * 2).T[1:], (x + 1).reshape((2, 8))[::-1]], mode=mode),
        "updates": lambda: function([x], w.sum(), updates=[(w, w + x)],
                                    mode=Mode("c|py", "fast_run")),
        "failures": lambda: function([x], (x + 1)[T.cast(x[0, 0], "int64")], mode=mode),
        "python": lambda: function([x], [python.sum(), x.T], mode=mode),
    }[kind]()  # fmt: skip
    good, bad = np.ones((4, 4)), np.full((4, 4), 99.0)

    def call(n):
        for _ in range(n):
            if kind == "failures":
                with pytest.raises(IndexError):
                    f(bad)
            else:
                f(good)

    n = {"failures": 2_000, "python": 20_000}.get(kind, 100_000)
    call(n // 10)
    before = resident()
    call(n)
    assert resident() - before < 4_000_000


def test_memory_of_views_outlives_the_function():
    x = T.dmatrix("x")
    f = function(
        [x], [T.exp(x).T[1:], (x + 1).reshape((9,))[::2]], mode=Mode("c|py", "fast_compile")
    )
    value = np.random.rand(3, 3)
    a, b = f(value)
    f(value * 0)
    del f
    [np.full((3, 3), np.nan) for _ in range(100)]
    np.testing.assert_allclose(a, np.exp(value).T[1:])
    np.testing.assert_allclose(b, (value + 1).reshape(9)[::2])


def test_large_results_own_their_memory():
    x = T.dmatrix("x")
    f = function([x], x + 1, mode=Mode("c|py", "fast_compile"))
    out = f(np.ones((100, 100)))
    assert out.flags.owndata and out.flags.writeable and out.flags.c_contiguous


def test_why_an_apply_has_no_c():
    x, z = T.dvector("x"), T.zvector("z")
    assert lowering.why_not(Unique()(x).owner) == "Unique has no C implementation"
    assert "complex128" in lowering.why_not((z * 2).owner)
    assert lowering.why_not(T.arange(x[0]).owner) == "no C implementation for these arguments"


def test_the_table_of_makers_is_filled_by_the_modules_of_linkers_and_those_loaded_with_packages():
    filled_by = {m.__module__ for m in lowering._lowerings.values()}
    own = {
        csteps.__name__, "opwise.linkers.convsteps", "opwise.linkers.imagesteps",
        "opwise.linkers.rowsteps", "opwise.linkers.userops.code",
    }  # fmt: skip
    # with opwise.sparse and opwise.loops
    assert own <= filled_by <= {*own, "opwise.linkers.sparsesteps", "opwise.loops.steps"}
