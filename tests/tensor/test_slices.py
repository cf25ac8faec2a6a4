"""Slices as graph values, and their canonical form against Python's own slices."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Constant, ProfileMode, function, grad
from opwise.scalar import get_scalar_type
from opwise.tensor import (
    NoneConst,
    SliceConstant,
    Subtensor,
    constant,
    get_canonical_form_slice,
    lscalar,
    make_slice,
    none_type_t,
    scalar_from_tensor,
    slices,
    slicetype,
)
from opwise.tensor.slices import keeps_one, known_int, slice_length, slice_variable
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null

BOUNDS = [None, *range(-6, 7)]
STEPS = [None, 1, 2, 3, -1, -2, -3]


def picked(part, direction, length):
    return list(range(length))[part][::direction]


@pytest.mark.parametrize("step", STEPS)
def test_canonical_form_of_known_slices_picks_the_same(step):
    for start, stop, length in itertools.product(BOUNDS, BOUNDS, range(6)):
        given = slice(start, stop, step)
        canonical, direction = get_canonical_form_slice(given, length)
        assert picked(canonical, direction, length) == list(range(length))[given], given
        assert min(canonical.start, canonical.stop) >= 0 < canonical.step
        (count,) = {int(slice_length(given, length).data)}
        assert count == len(range(length)[given]), given


# Elementwise arithmetic takes vectors as well: one evaluation covers every length and bound.
VECTOR = tensor_type("int64", (False,))
GRID = np.array(
    [
        (length, start, stop, step)
        for length in (0, 1, 4)
        for start in (-6, -2, 0, 1, 3)
        for stop in (-5, -1, 0, 2, 6)
        for step in (-3, -1, 1, 2)
    ]
)


@pytest.mark.parametrize("step", [None, 1, -1, 2, -3, "step"])
@pytest.mark.parametrize("stop", [None, 0, 2, -2, "stop"])
@pytest.mark.parametrize("start", [None, 0, 3, -2, "start"])
def test_canonical_form_with_variables_picks_the_same(run, start, stop, step):
    variables = {name: VECTOR(name) for name in ("length", "start", "stop", "step")}
    values = dict(zip(variables.values(), GRID.T, strict=True))
    chosen = slice(*(variables.get(p, p) for p in (start, stop, step)))
    canonical, direction = get_canonical_form_slice(chosen, variables["length"])
    parts = [canonical.start, canonical.stop, canonical.step, direction]
    parts = [slices.as_tensor(p) for p in parts]
    count = slice_length(chosen, variables["length"])
    assert count.type.dtype == "int64"
    columns = [np.broadcast_to(c, len(GRID)) for c in run([*parts, count], values)]
    for row, (first, end, by, way, n) in zip(GRID, zip(*columns, strict=True), strict=True):
        length, *bounds = map(int, row)
        wanted = zip((start, stop, step), bounds, strict=True)
        given = slice(*(b if isinstance(p, str) else p for p, b in wanted))
        expected = list(range(length))[given]
        assert picked(slice(int(first), int(end), int(by)), int(way), length) == expected
        assert n == len(expected)


@pytest.mark.parametrize("index, length, expected", [(2, 5, 2), (-2, 5, 3), (7, 5, 7), (-7, 5, -2)])
def test_canonical_form_of_an_index_counts_from_the_front(run, index, length, expected):
    assert get_canonical_form_slice(index, length) == (expected, 1)
    i, n = lscalar("i"), lscalar("n")
    canonical, direction = get_canonical_form_slice(i, n)
    assert direction == 1
    assert run(canonical, {i: np.int64(index), n: np.int64(length)}) == expected


def test_a_step_of_zero_is_refused():
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        get_canonical_form_slice(slice(None, None, 0), lscalar())


def test_lengths_that_need_no_arithmetic_make_no_node():
    length = lscalar("length")
    for whole in (slice(None), slice(None, None, 1), slice(None, None, -1)):
        assert slice_length(whole, length) is length
    assert slice_length(slice(1, None), length).owner.op == T.maximum
    assert slice_length(slice(None, 3), length).owner.op == T.minimum


@pytest.mark.parametrize(
    "part, expected",
    [
        (slice(None), True), (slice(0, 1), True), (slice(0, 9, 3), True),
        (slice(0, None, -1), True),
        (slice(None, None, -2), True), (slice(1, None), False), (slice(0, 0), False),
        (slice(None, -1), False), (slice(-1, None), False), (slice(None, lscalar()), False),
        (slice(0, 5, -1), False), (slice(constant(0), None), True),
    ],
)  # fmt: skip
def test_which_slices_keep_a_broadcastable_dimension(part, expected):
    assert keeps_one(part) is expected


def test_known_int_sees_through_casts_between_scalars_and_tensors():
    assert known_int(np.int8(3)) == 3
    assert known_int(constant(5)) == 5
    assert known_int(scalar_from_tensor(constant(5))) == 5
    assert known_int(get_scalar_type("int64").make_constant(np.int64(4))) == 4
    assert known_int(lscalar()) is None


def test_make_slice_makes_python_slices_of_ints():
    n = lscalar("n")
    node = make_slice(slice(n, None, -2)).owner
    assert [str(v) for v in node.inputs] == ["n", "NoneConst", "TensorConstant{-2}"]
    storage = [[None]]
    node.op.perform(node, [np.array(4), None, np.array(-2)], storage)
    assert storage[0][0] == slice(4, None, -2)
    assert type(storage[0][0].start) is int
    assert node.outputs[0].type == slicetype
    with pytest.raises(TypeError, match="index must be integers"):
        make_slice(1.5)


@pytest.mark.parametrize("part", [1.5, "a"])
def test_parts_of_slices_that_are_no_integers_are_refused(part):
    with pytest.raises(TypeError, match=f"index must be integers, not {part!r}"):
        get_canonical_form_slice(slice(part, None), 10)
    with pytest.raises(TypeError, match=f"index must be integers, not {part!r}"):
        slice_variable(slice(part, lscalar()))
    with pytest.raises(TypeError, match=f"index must be integers, not {part!r}"):
        get_canonical_form_slice(part, 10)


def test_slices_of_known_integers_are_constants():
    folded = slice_variable(slice(constant(1), None, 2))
    assert isinstance(folded, SliceConstant)
    assert folded.data == slice(1, None, 2)
    assert str(folded) == "Constant{slice(1, None, 2)}"
    assert folded.equals(slice_variable(slice(1, None, 2)))
    assert not folded.equals(slice_variable(slice(1, None, 3)))
    assert hash(folded.signature()) == hash(copy.copy(folded).signature())
    with pytest.raises(TypeError, match="integers and None"):
        SliceConstant(slicetype, slice(1.5))


def test_types_of_slices_and_none():
    assert slicetype.filter(slice(1)) == slice(1)
    with pytest.raises(TypeError, match="Expected a slice"):
        slicetype.filter(3)
    with pytest.raises(TypeError, match="Expected None"):
        none_type_t.filter(3)
    assert pickle.loads(pickle.dumps(slicetype)) == slicetype
    assert isinstance(NoneConst.clone(), Constant)
    assert NoneConst.clone() is not NoneConst
    assert NoneConst.clone().equals(NoneConst)


# --- slices and None as variables -----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", ProfileMode()])
def test_a_slice_may_be_an_argument(mode):
    v, m, s = T.dvector(), T.dmatrix(), slicetype()
    both = function([v, s], [v[s], grad(T.sum(v[s] ** 2), v)], mode=mode)
    part, slope = both(np.arange(5.0), slice(1, 4))
    assert part.tolist() == [1.0, 2.0, 3.0]
    assert slope.tolist() == [0.0, 2.0, 4.0, 6.0, 0.0]
    changed = function([v, s], T.set_subtensor(v[s], 7.0), mode=mode)
    assert changed(np.arange(4.0), slice(None, None, 2)).tolist() == [7.0, 1.0, 7.0, 3.0]
    column = function([m, s], [m[s, 0], m[:, s]], mode=mode)
    first, columns = column(np.arange(6.0).reshape(3, 2), slice(1, 3))
    assert (first.tolist(), columns.tolist()) == ([2.0, 4.0], [[1.0], [3.0], [5.0]])


def test_made_slices_index_like_slices():
    v, n = T.dvector("v"), T.lscalar("n")
    made = v[make_slice(1, n)]
    assert isinstance(made.owner.op, Subtensor)
    assert made.eval({v: np.arange(5.0), n: 3}).tolist() == [1.0, 2.0]
    assert v[SliceConstant(slicetype, slice(0, 2))].eval({v: np.arange(5.0)}).tolist() == [0.0, 1.0]
    assert v[NoneConst : T.constant(2)].eval({v: np.arange(5.0)}).tolist() == [0.0, 1.0]


def test_none_constant_stands_for_none():
    m = T.dmatrix()
    value = np.arange(4.0).reshape(2, 2)
    for reduced, expected in ((m.sum(axis=NoneConst), 6.0), (m.mean(axis=NoneConst), 1.5),
                              (m.max(axis=NoneConst), 3.0), (m.argmax(axis=NoneConst), 3),
                              (m.var(axis=NoneConst), value.var())):  # fmt: skip
        assert function([m], reduced, mode="FAST_COMPILE")(value) == expected
    new = function([m], m[:, NoneConst], mode="FAST_COMPILE")(value)
    assert new.tolist() == value[:, None].tolist()
