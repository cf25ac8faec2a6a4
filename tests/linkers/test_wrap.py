"""Linkers made of linkers: a wrapper around thunks, and two implementations compared."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import (
    Apply,
    CLinker,
    Constant,
    DualLinker,
    Mode,
    Op,
    OpWiseCLinker,
    PerformLinker,
    VM_Linker,
    WrapLinker,
    WrapLinkerMany,
    function,
    shared,
)
from opwise.linkers import lowering
from opwise.linkers.lowering import CStep
from opwise.linkers.wrap import check_equal
from opwise.tensor import Elemwise, Sum
from opwise.tensor.extra_ops import DiffOp

LINKERS = [PerformLinker, OpWiseCLinker, VM_Linker, CLinker]


class PlusOne(Op):
    """Adds one; what the C of the test does is up to the test."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + 1


@pytest.fixture
def wrong_c(monkeypatch):
    """PlusOne has a C step for this test, one that copies its input."""
    monkeypatch.setattr(lowering, "_lowerings", dict(lowering._lowerings))
    monkeypatch.setattr(lowering, "_found", {})
    lowering.c_lowering(PlusOne)(lambda node, kernels: CStep("deepcopy"))


def wrapped(linkers, wrapper):
    x = T.dvector("x")
    outputs = [(x * 2).sum(), DiffOp()(x + x)]
    return function([x], outputs, mode=Mode(WrapLinker(linkers, wrapper), None))


@pytest.mark.parametrize("make", LINKERS[:3])
def test_the_wrapper_sees_every_apply(make):
    seen = []

    def wrapper(i, node, thunk):
        before = [np.array(cell[0]) for cell in thunk.inputs]
        thunk()
        seen.append((i, node, before, [np.array(cell[0]) for cell in thunk.outputs]))

    f = wrapped([make()], wrapper)
    total, differences = f([2.0, 1.0])
    assert total == 6
    np.testing.assert_array_equal(differences, [-2])
    assert [i for i, *_ in seen] == list(range(len(f.linked.order)))
    assert [node for _, node, *_ in seen] == f.linked.order
    for _, node, inputs, outputs in seen:
        storage = [[None] for _ in node.outputs]
        node.op.perform(node, inputs, storage)
        for found, cell in zip(outputs, storage, strict=True):
            np.testing.assert_array_equal(found, cell[0])


def test_c_thunks_can_be_told():
    told = {}

    def wrapper(i, node, thunk):
        told[type(node.op)] = hasattr(thunk, "cthunk")
        assert thunk.lazy is False
        thunk()

    wrapped([OpWiseCLinker()], wrapper)([1.0])
    assert told[Elemwise] is True and told[Sum] is True and told[DiffOp] is False
    told.clear()
    wrapped([PerformLinker()], wrapper)([1.0])
    assert not any(told.values())


def test_a_wrapper_that_calls_nothing():
    f = wrapped([PerformLinker()], lambda i, node, thunk: None)
    assert f([1.0]) == [None, None]


def test_two_linkers():
    seen = []

    def wrapper(i, node, first, second):
        assert first.node is node and second.node is node
        first()
        second()
        assert first.outputs[0] is not second.outputs[0]
        np.testing.assert_array_equal(first.outputs[0][0], second.outputs[0][0])
        second.outputs[0][0] = second.outputs[0][0] + 100
        seen.append(i)

    x = T.dvector("x")
    mode = Mode(WrapLinker([PerformLinker(), OpWiseCLinker()], wrapper), None)
    f = function([x], x + x, mode=mode)
    for _ in range(2):
        np.testing.assert_array_equal(f([1.0, 2.0]), [2, 4])  # the first one's
    assert seen == [0, 0]


def test_the_first_alone_updates_shared_values():
    w = shared(np.zeros(3), name="w")

    def wrapper(i, node, *thunks):
        for thunk in thunks:
            thunk()

    mode = Mode(WrapLinker([OpWiseCLinker(), PerformLinker()], wrapper), "fast_run")
    f = function([], [], updates=[(w, w + 1)], mode=mode)
    f()
    f()
    np.testing.assert_array_equal(w.get_value(), [2, 2, 2])


def test_nothing_stays_in_the_storages_of_the_others():
    def wrapper(i, node, *thunks):
        for thunk in thunks:
            thunk()

    f = wrapped([PerformLinker(), PerformLinker()], wrapper)
    f([1.0])
    second = [group[1] for group in f.fn.thunk_groups]
    kept = [
        storage[0]
        for thunk in second
        for var, storage in zip(
            (*thunk.node.inputs, *thunk.node.outputs), (*thunk.inputs, *thunk.outputs), strict=True
        )
        if not isinstance(var, Constant)
    ]
    assert kept and kept == [None] * len(kept)


def test_many_wrappers_are_called_in_order():
    calls = []

    def first(i, node, thunk):
        calls.append(("first", i, thunk.outputs[0][0]))
        thunk()

    def second(i, node, thunk):
        calls.append(("second", i, float(thunk.outputs[0][0][0])))

    x = T.dvector("x")
    f = function([x], x + x, mode=Mode(WrapLinkerMany([PerformLinker()], [first, second]), None))
    f([1.0])
    assert calls == [("first", 0, None), ("second", 0, 2.0)]


def test_another_order_is_refused():
    x = T.dvector("x")
    backward = PerformLinker(schedule=lambda fgraph: fgraph.toposort()[::-1])
    mode = Mode(WrapLinker([PerformLinker(), backward], lambda i, node, *thunks: None), None)
    with pytest.raises(Exception, match="should execute operations in the same order"):
        function([x], [x + x, x * x], mode=mode)


@pytest.mark.parametrize("linker", [DualLinker(), object()], ids=["DualLinker", "no linker"])
def test_what_has_no_thunks_cannot_be_wrapped(linker):
    with pytest.raises(AttributeError, match="make_all"):
        WrapLinker([linker], lambda i, node, thunk: thunk())


def test_a_failing_thunk_and_a_failing_wrapper():
    x, y = T.dvectors("xy")

    def wrapper(i, node, thunk):
        thunk()
        if thunk.outputs[0][0].size > 3:
            raise KeyError("too long")

    f = function([x, y], x + y, mode=Mode(WrapLinker([PerformLinker()], wrapper), None))
    with pytest.raises(ValueError, match=r"Apply node that caused the error: .*add"):
        f([1.0], [1.0, 2.0])
    with pytest.raises(KeyError, match=r"too long.*Apply node that caused the error"):
        f(np.ones(5), np.ones(5))


def test_one_mode_serves_many_functions():
    calls = []

    def wrapper(i, node, thunk):
        calls.append(node.op)
        thunk()

    mode = Mode(WrapLinker([OpWiseCLinker()], wrapper), None)
    x = T.dvector("x")
    f, g = function([x], x + x, mode=mode), function([x], x * x, mode=mode)
    assert f([3.0]) == 6 and g([3.0]) == 9 and f([1.0]) == 2
    assert calls == [
        f.linked.order[0].op,
        g.linked.order[0].op,
        f.linked.order[0].op,
    ]


@pytest.mark.parametrize("gc", [True, False])
def test_clone_reaches_the_wrapped(gc):
    linker = WrapLinker([OpWiseCLinker(), PerformLinker()], print)
    assert [x.allow_gc for x in linker.clone(allow_gc=gc).linkers] == [gc, gc]


# --- two implementations side by side -----------------------------------------------------------


@pytest.mark.parametrize("linker", ["c&py", DualLinker()])
def test_agreement(linker):
    x = T.dmatrix("x")
    w = shared(np.ones((3, 3)), name="w")
    f = function(
        [x], T.tanh(T.dot(x, w)).sum(), updates=[(w, w * x)], mode=Mode(linker, "fast_run")
    )
    value = np.random.rand(3, 3)
    np.testing.assert_allclose(f(value), np.tanh(value @ np.ones((3, 3))).sum())
    np.testing.assert_allclose(w.get_value(), value)


def test_disagreement(wrong_c):
    x = T.dvector("x")
    f = function([x], PlusOne()(x) * 2, mode=Mode("c&py", None))
    with pytest.raises(Exception, match=r"Output mismatch.*performlinker.*clinker") as error:
        f([1.0, 2.0])
    assert "Apply node that caused the error: PlusOne(x)" in str(error.value)
    assert function([x], PlusOne()(x), mode=Mode("py", None))([1.0]) == 2
    assert function([x], PlusOne()(x), mode=Mode("c|py", None))([1.0]) == 1


def test_a_variable_may_say_what_agreement_is(wrong_c):
    x = T.dvector("x")
    for agree, passes in ((lambda a, b: True, True), (lambda a, b: bool(np.all(a == b)), False)):
        y = PlusOne()(x)
        y.tag.values_eq_approx = agree
        f = function([x], y, mode=Mode("c&py", None))
        if passes:
            np.testing.assert_array_equal(f([1.0]), [2.0])
        else:
            with pytest.raises(Exception, match="Output mismatch"):
                f([1.0])


def test_a_checker_of_ones_own():
    seen = []
    x = T.dvector("x")
    linker = DualLinker(checker=lambda a, b: seen.append((a[0].tolist(), b[0].tolist())))
    function([x], x + x, mode=Mode(linker, None))([1.0])
    assert seen == [([2.0], [2.0])]


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (np.array([1.0, np.nan, np.inf]), np.array([1.0 + 1e-11, np.nan, np.inf]), True),
        (np.array([1.0]), np.array([1.0 + 1e-9]), False),
        (np.array([np.nan]), np.array([1.0]), False),
        (np.array([np.inf]), np.array([-np.inf]), False),
        (np.array([1]), np.array([1.0]), False),
        (np.ones((2, 1)), np.ones((1, 2)), False),
        (np.ones((0, 2)), np.ones((0, 2)), True),
        (np.array([True, False]), np.array([True, False]), True),
        ("a", "a", True),
        ("a", "b", False),
    ],
)
def test_check_equal(a, b, equal):
    if equal:
        check_equal([a], [b])
    else:
        with pytest.raises(Exception, match="Output mismatch"):
            check_equal([a], [b])
