"""The plain machine and the compiled one: the same tests for both."""

import gc
import threading
import weakref

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import (
    Apply,
    Mode,
    Op,
    OpWiseCLinker,
    PerformLinker,
    ProfileMode,
    VM_Linker,
    function,
    generic,
    shared,
)
from opwise.linkers import opwise_c
from opwise.linkers.vm import PlainVM
from opwise.profiling.histogram import bucket

LINKERS = {
    "plain": PerformLinker,
    "plain with C": lambda **kw: VM_Linker(use_cloop=False, **kw),
    "compiled": OpWiseCLinker,
}


@pytest.fixture(params=list(LINKERS))
def linker(request):
    return LINKERS[request.param]


@pytest.fixture
def mode(linker):
    """A mode without rewrites: what is written is what runs."""
    return Mode(linker(), None)


@pytest.fixture
def fast(linker):
    """A mode with all rewrites, so that shared values are overwritten in place."""
    return Mode(linker(), "fast_run")


class Python(Op):
    """Applies a Python function; there is no C for it."""

    def __init__(self, do, type_=None, outs=1, views=None):
        self.do, self.type_, self.outs = do, type_, outs
        if views is not None:
            self.view_map = {0: [views]}

    def make_node(self, *inputs):
        inputs = [T.as_tensor_variable(x) if not hasattr(x, "type") else x for x in inputs]
        type_ = self.type_ or inputs[0].type
        return Apply(self, inputs, [type_() for _ in range(self.outs)])

    def perform(self, node, inputs, output_storage):
        self.do(inputs, output_storage)


def returning(value, type_=None):
    """An Op of which every output is ``value``."""

    def do(inputs, storage):
        for cell in storage:
            cell[0] = value

    return Python(do, type_)


def twice():
    def do(inputs, storage):
        storage[0][0] = inputs[0] * 2

    return Python(do)


# --- which machine ------------------------------------------------------------------------------


def test_the_machines_are_what_they_are_called():
    x = T.dvector()
    kinds = {
        name: type(function([x], x + 1, mode=Mode(make(), None)).fn)
        for name, make in LINKERS.items()
    }
    assert kinds == {"plain": PlainVM, "plain with C": PlainVM, "compiled": opwise_c.VM}


# --- results ------------------------------------------------------------------------------------


def test_chain(mode):
    x, y = T.dmatrices("xy")
    f = function([x, y], [(x + y).sum(axis=0), T.dot(x, y.T)], mode=mode)
    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    for _ in range(3):
        s, d = f(a, b)
        np.testing.assert_allclose(s, (a + b).sum(0))
        np.testing.assert_allclose(d, a @ b.T)
        a = a + 1


def test_c_and_python_alternate(mode):
    x = T.dvector("x")
    f = function([x], twice()(twice()(x + 1) * 3) - 1, mode=mode)
    for n in (0, 1, 3, 100):
        np.testing.assert_array_equal(f(np.arange(float(n))), (np.arange(float(n)) + 1) * 12 - 1)


@pytest.mark.parametrize("shape", [(0,), (1,), (7,)])
def test_shapes_may_differ_from_call_to_call(mode, shape):
    x = T.dvector("x")
    f = function([x], [x * 2, x.sum(), x[::-1]], mode=mode)
    for n in (5, 100_000, shape[0], 3):
        v = np.arange(float(n))
        doubled, total, reversed_ = f(v)
        np.testing.assert_array_equal(doubled, v * 2)
        np.testing.assert_allclose(total, v.sum())
        np.testing.assert_array_equal(reversed_, v[::-1])


def test_no_applys_at_all(mode):
    x = T.dvector("x")
    f = function([x], [], mode=mode, on_unused_input="ignore")
    assert f([1.0]) == []


def test_constant_outputs_are_not_the_constants(mode):
    c = T.constant(np.arange(3.0))
    f = function([], c, mode=mode)
    f()[:] = 7
    np.testing.assert_array_equal(f(), [0, 1, 2])
    np.testing.assert_array_equal(c.data, [0, 1, 2])


def test_an_output_given_twice(mode):
    x = T.dvector("x")
    a, b, c = function([x], [x + 1, x + 1, x], mode=mode)([1.0])
    a[:] = 5
    assert b == [2] and c == [1]


def test_an_output_that_is_an_input_is_a_copy(mode):
    x = T.dvector("x")
    value = np.arange(3.0)
    out = function([x], x, mode=mode)(value)
    assert not np.shares_memory(out, value)


def test_outputs_are_arrays(mode):
    x = T.dscalar("x")
    out = function([x], x * 2, mode=mode)(3)
    assert type(out) is np.ndarray and out.shape == () and out == 6


def test_outputs_belong_to_the_caller(mode):
    """A result does not change when the function runs again, nor when it is gone."""
    x = T.dmatrix("x")
    f = function([x], [x * 2, (x + 1).T, x[1:] * 1, T.exp(x)[0]], mode=mode)
    rng = np.random.RandomState(0)
    calls = [(v, f(v), [v * 2, (v + 1).T, v[1:], np.exp(v)[0]]) for v in rng.rand(4, 3, 3)]
    del f
    gc.collect()
    rubbish = [np.full((3, 3), np.nan) for _ in range(100)]
    for _, results, expected in calls:
        for result, value in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, value)
            assert result.flags.writeable
    del rubbish


def test_values_of_any_python_type(mode):
    g = generic("g")
    length = Python(lambda ins, out: out[0].__setitem__(0, np.asarray(len(ins[0]))), T.lscalar)
    again = Python(lambda ins, out: out[0].__setitem__(0, [*ins[0], "end"]), generic)
    f = function([g], [length(again(g)), again(again(g))], mode=mode)
    assert f("ab")[0] == 3
    assert f(["a"])[1] == ["a", "end", "end"]


def test_numpy_scalars_from_perform_become_arrays(mode):
    x = T.dvector("x")
    total = Python(lambda ins, out: out[0].__setitem__(0, ins[0].sum()), T.dscalar)
    out = function([x], [total(x), total(x) + 1], mode=mode)([1.0, 2.0])
    assert [type(o) for o in out] == [np.ndarray] * 2 and out == [3, 4]


def test_views_made_by_perform(mode):
    x = T.dvector("x")

    def do(ins, out):
        out[0][0] = ins[0][::-1]

    reverse = Python(do, views=0)
    f = function([x], [reverse(x + 1), reverse(reverse(x * 1)), reverse(x)], mode=mode)
    value = np.arange(3.0)
    a, b, c = f(value)
    np.testing.assert_array_equal(a, [3, 2, 1])
    np.testing.assert_array_equal(b, [0, 1, 2])
    np.testing.assert_array_equal(c, [2, 1, 0])
    assert not np.shares_memory(c, value)


def test_strange_inputs(mode):
    """Not contiguous, read-only, of the other byte order, or a subclass."""
    x = T.dmatrix("x")
    f = function([x], [x + 1, x.T, x.sum()], mode=mode)
    base = np.arange(24.0).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    for value in (
        base[::2, ::-3], base.T, np.asfortranarray(base), frozen, base.astype(">f8"),
        base.view(np.matrix), np.broadcast_to(base[:1], (4, 6)),
    ):  # fmt: skip
        plain = np.array(value, dtype=float, subok=False)
        more, turned, total = f(value)
        np.testing.assert_array_equal(more, plain + 1)
        np.testing.assert_array_equal(turned, plain.T)
        np.testing.assert_allclose(total, plain.sum())
    np.testing.assert_array_equal(base, np.arange(24.0).reshape(4, 6))


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("allow_gc", [True, False])
def test_collection_does_not_change_results(linker, allow_gc):
    x = T.dmatrix("x")
    a = T.exp(x)
    f = function([x], [T.dot(a, a.T).sum(), a[0]], mode=Mode(linker(allow_gc=allow_gc), None))
    v = np.random.rand(50, 60)
    for _ in range(2):
        total, row = f(v)
        np.testing.assert_allclose(total, (np.exp(v) @ np.exp(v).T).sum())
        np.testing.assert_allclose(row, np.exp(v[0]))


def test_without_collection_memory_is_kept_and_can_be_freed(linker):
    x = T.dvector("x")
    f = function([x], (x * 2 + 1).sum(), mode=Mode(linker(allow_gc=False), None))
    v = np.ones(100_000)
    f(v)
    assert f.fn.kept_bytes() >= 800_000
    f.free()
    assert f.fn.kept_bytes() == 0
    assert f(v) == 300_000


def test_with_collection_large_memory_is_given_back(linker):
    x = T.dvector("x")
    f = function([x], (x * 2 + 1).sum(), mode=Mode(linker(allow_gc=True), None))
    assert f(np.ones(100_000)) == 300_000
    assert f.fn.kept_bytes() < 100_000


def test_nothing_keeps_arguments_alive(mode):
    """Not even where an Apply or an output shows their memory."""

    class Array(np.ndarray):
        """An ndarray that can be watched."""

    x = T.dmatrix("x")
    part = twice()(x[1:].T)
    f = function([x], [part.sum(), x.T[0] + 1, twice()(x)], mode=mode)
    value = np.ones((4, 5))
    watched = weakref.ref(value)
    results = f(value)
    del value
    gc.collect()
    assert watched() is None
    assert len(results) == 3


def test_nothing_keeps_results_alive(mode):
    x = T.dmatrix("x")
    f = function([x], [T.exp(x).T, twice()(x + 1)[0]], mode=mode)
    results = f(np.ones((300, 300)))
    bases = [weakref.ref(r if r.base is None else r.base) for r in results]
    del results
    gc.collect()
    assert [b() for b in bases] == [None, None]


def test_a_failed_call_keeps_nothing(mode):
    x, y = T.dvectors("xy")
    f = function([x, y], twice()(x + 1) + y, mode=mode)
    value = np.ones(1000)
    watched = weakref.ref(value)
    with pytest.raises(ValueError):
        f(value, np.ones(3))
    del value
    gc.collect()
    assert watched() is None


# --- failures -----------------------------------------------------------------------------------


def test_a_failing_thunk(mode):
    x, y = T.dvectors("xy")
    f = function([x, y], x + y, mode=mode)
    with pytest.raises(ValueError, match=r"Apply node that caused the error: .*add.*x, y"):
        f([1.0, 2.0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(f([1.0], [2.0]), [3.0])


def test_none_is_refused_by_the_apply_that_reads_it(mode):
    x, y = T.dvectors("xy")
    f = function([x, y], x + y, mode=mode)
    with pytest.raises(ValueError, match="expected an ndarray, not None"):
        f(None, [1.0])
    np.testing.assert_array_equal(f([1.0], [2.0]), [3.0])


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, ValueError, "did not compute its output"),
        (3, ValueError, "expected an ndarray, not 3"),
        ([1.0], ValueError, r"expected an ndarray, not \[1.0\]"),
        (np.float32(1), TypeError, "expected an array of dtype float64 and 1 dim.*float32"),
        (np.ones(2, "float32"), TypeError, r"float64 and 1 .*got dtype float32 and shape \(2,\)"),
        (np.ones((2, 2)), TypeError, r"got dtype float64 and shape \(2, 2\)"),
    ],
)
def test_results_that_are_not_what_was_declared(mode, value, error, text):
    x = T.dvector("x")
    f = function([x], returning(value)(x) + 1, mode=mode)
    for _ in range(2):
        with pytest.raises(error, match=text):
            f([1.0])


def test_a_result_of_the_wrong_broadcast_pattern(linker):
    """The loops believe the pattern: a length that breaks it must not be read past its end."""
    x, y = T.dvector("x"), T.dvector("y")
    lying = returning(np.ones(2), T.TensorType("float64", (True,)))
    f = function([x, y], lying(y) + x, mode=Mode(linker(), None))
    with pytest.raises(ValueError):
        f(np.ones(1000), [1.0])


def test_shapes_too_large_for_memory(linker):
    n = T.lscalar("n")
    f = function([n], T.alloc(np.float64(1), n, n), mode=Mode(linker(), None))
    for size in (2**31, 2**32 + 1, 2**40):
        with pytest.raises((MemoryError, ValueError)):
            f(size)
    assert f(2).shape == (2, 2)


def test_recursion_is_refused(mode):
    x = T.dvector("x")
    seen = []

    def call_again(inputs, storage):
        try:
            f(np.zeros(5))
        except RuntimeError as e:
            seen.append(str(e))
        storage[0][0] = inputs[0] * 2

    f = function([x], Python(call_again)(x + 1) + x, mode=mode)
    # what the inner call brings must not take the place of what the outer one works on
    np.testing.assert_array_equal(f([1, 2, 3]), [5, 8, 11])
    assert len(seen) == 1 and "being called already" in seen[0] and "f.copy()" in seen[0]


def test_a_second_thread_is_refused(mode):
    x = T.dvector("x")
    inside, leave, results = threading.Event(), threading.Event(), []

    def wait(inputs, storage):
        inside.set()
        assert leave.wait(30)
        storage[0][0] = inputs[0] * 2

    f = function([x], Python(wait)(x + 1) + x, mode=mode)
    thread = threading.Thread(target=lambda: results.append(f([1, 2, 3])))
    thread.start()
    try:
        assert inside.wait(30)
        with pytest.raises(RuntimeError, match="another thread"):
            f.fn()
        with pytest.raises(RuntimeError, match="running"):
            f.free()
    finally:
        leave.set()
        thread.join()
    np.testing.assert_array_equal(results, [[5, 8, 11]])
    np.testing.assert_array_equal(f([0.0]), [2.0])


def test_a_shared_value_that_is_replaced_during_a_call():
    """The compiled machine goes on with the value that it began with, and keeps that alive."""
    w = shared(np.arange(1000.0), name="w")

    def replace(inputs, storage):
        w.set_value(np.full(10, np.nan))
        [np.full(1000, np.nan) for _ in range(50)]
        storage[0][0] = inputs[0] * 1

    x = T.dvector("x")
    f = function([x], Python(replace)(x).sum() + w, mode=Mode("c|py", None))
    np.testing.assert_array_equal(f([1.0]), np.arange(1000.0) + 1)
    assert w.get_value().shape == (10,)


# --- all updates or none ------------------------------------------------------------------------


class _Interrupted(BaseException):
    """Neither an Exception nor one that pytest looks at."""


def _raise(error):
    def do(inputs, storage):
        raise error

    return Python(do)


FAILURES = {
    "shape": (lambda w, x: (w[:2] + x).sum(), ValueError),
    "index": (lambda w, x: w[x.shape[0] * 100], IndexError),
    "rows": (lambda w, x: w[T.constant(np.array([0, 99]))].sum() + x.sum(), IndexError),
    "op": (
        lambda w, x: _raise(ZeroDivisionError("in an op"))(x).sum() + w.sum(),
        ZeroDivisionError,
    ),
    "interrupt": (lambda w, x: _raise(KeyboardInterrupt())(x).sum() + w.sum(), KeyboardInterrupt),
    "exit": (lambda w, x: _raise(_Interrupted())(x).sum() + w.sum(), _Interrupted),
    "dtype": (lambda w, x: returning(np.float32(1))(x).sum() + w.sum(), TypeError),
}


@pytest.mark.parametrize("failure", list(FAILURES))
def test_a_failing_call_changes_no_shared_value(fast, failure):
    make, error = FAILURES[failure]
    w, v = shared(np.arange(6.0), name="w"), shared(np.ones(6), name="v")
    x = T.dvector("x")
    f = function(
        [x], make(w, x), mode=fast,
        updates=[(w, w * 2 + 1), (v, T.inc_subtensor(v[1:3], w[:2] * 3))],
    )  # fmt: skip
    for _ in range(2):
        with pytest.raises(error):
            f(np.ones(5))
    np.testing.assert_array_equal(w.get_value(), np.arange(6.0))
    np.testing.assert_array_equal(v.get_value(), np.ones(6))


@pytest.mark.parametrize("failure", list(FAILURES))
def test_a_failing_update_changes_no_shared_value(fast, failure):
    """The failure is in the update itself, or in one that is computed after another."""
    make, error = FAILURES[failure]
    x = T.dvector("x")
    first, w, last = (shared(np.arange(6.0), name=n) for n in ("first", "w", "last"))
    f = function(
        [x], [], mode=fast,
        updates=[(first, first * 2), (w, w + make(w, x)), (last, last - w)],
    )  # fmt: skip
    with pytest.raises(error):
        f(np.ones(5))
    for value in (first, w, last):
        np.testing.assert_array_equal(value.get_value(), np.arange(6.0))


@pytest.mark.parametrize("borrow", [True, False])
def test_a_failure_after_an_input_was_overwritten(linker, borrow):
    """An in-place Apply comes first, one that depends on it fails: the value is put back."""
    w = shared(np.arange(6.0), name="w", borrow=borrow)
    x = T.dvector("x")
    new = T.inc_subtensor(w[1:3], 10.0)
    f = function(
        [x], (twice()(new) + x).sum(), updates=[(w, new)], mode=Mode(linker(), "fast_run")
    )  # fmt: skip
    kept = w.get_value(borrow=True)
    with pytest.raises(ValueError):
        f(np.ones(5))
    np.testing.assert_array_equal(w.get_value(), np.arange(6.0))
    assert w.get_value(borrow=True) is kept
    f(np.ones(6))
    np.testing.assert_array_equal(w.get_value(), [0, 11, 12, 3, 4, 5])


@pytest.mark.parametrize("bad", [[0, 7], [-7, 0]])
def test_rows_are_checked_before_any_is_written(fast, bad):
    w = shared(np.zeros((6, 2)), name="w")
    i, y = T.lvector("i"), T.dmatrix("y")
    f = function([i, y], [], updates=[(w, T.inc_subtensor(w[i], y))], mode=fast)
    f([0, 0, 5], np.ones((3, 2)))
    expected = [[2, 2], [0, 0], [0, 0], [0, 0], [0, 0], [1, 1]]
    np.testing.assert_array_equal(w.get_value(), expected)
    with pytest.raises(IndexError):
        f(bad, np.ones((2, 2)))
    with pytest.raises(ValueError):
        f([0, 1], np.ones((3, 2)))
    np.testing.assert_array_equal(w.get_value(), expected)


def test_an_overwritten_object_that_is_no_array(linker):
    class Append(Op):
        """Appends to a list in place."""

        destroy_map = {0: [0]}

        def make_node(self, x, n):
            return Apply(self, [x, n], [generic()])

        def perform(self, node, inputs, output_storage):
            inputs[0].append(float(inputs[1].sum()))
            output_storage[0][0] = inputs[0]
            if inputs[1].size > 3:
                raise ValueError("after it was written")

    state = shared([], name="state")
    n = T.dvector("n")
    f = function(
        [n], [], updates=[(state, Append()(state, n))], accept_inplace=True,
        mode=Mode(linker(), None),
    )  # fmt: skip
    f([1.0])
    with pytest.raises(ValueError, match="after it was written"):
        f(np.ones(5))
    assert state.get_value() == [1.0]
    f([2.0])
    assert state.get_value() == [1.0, 2.0]


def test_all_updates_see_the_old_values(mode):
    a, b = shared(np.array([1.0, 2.0])), shared(np.array([3.0, 4.0]))
    f = function([], [a, b], updates=[(a, b), (b, a)], mode=mode)
    np.testing.assert_array_equal(f(), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(f(), [[3, 4], [1, 2]])
    np.testing.assert_array_equal([a.get_value(), b.get_value()], [[1, 2], [3, 4]])


def test_updates_and_the_value_before(fast):
    w = shared(np.zeros(3), name="w")
    f = function([], w, updates=[(w, w + 1)], mode=fast)
    results = [f() for _ in range(3)]
    np.testing.assert_array_equal(results, [[0] * 3, [1] * 3, [2] * 3])
    np.testing.assert_array_equal(w.get_value(), [3] * 3)


# --- timing -------------------------------------------------------------------------------------


@pytest.fixture
def profiled(linker):
    mode = ProfileMode(linker(), None)
    x, y = T.dvectors("xy")
    f = function([x, y], twice()(x + 1) * y, mode=mode)
    return f


def test_every_step_of_every_call_is_counted(profiled):
    f = profiled
    for _ in range(5):
        f([1.0], [2.0])
    times = f.fn.timing.by_step()
    assert len(times) == len(f.linked.order)
    for count, total, least, most, histogram in times:
        assert count == 5 == sum(n for _, n in histogram)
        assert least <= most <= total <= 5 * most
    assert f.fn.timing.calls == f.calls == 5
    assert f.total_ns >= f.fn_ns > 0
    assert f.fn.timing.total_ns > 0 and 0 < f.fn.timing.first_ns <= f.fn.timing.total_ns


def test_histograms_hold_least_and_most(profiled):
    for _ in range(20):
        profiled([1.0], [2.0])
    for _, _, least, most, histogram in profiled.fn.timing.by_step():
        assert histogram == tuple(sorted(histogram)) and all(n for _, n in histogram)
        assert (histogram[0][0], histogram[-1][0]) == (bucket(least), bucket(most))


def test_first_and_slowest_calls_are_kept(profiled):
    for _ in range(50):
        profiled([1.0], [2.0])
    calls = profiled.fn.timing.detail()
    assert [number for number, *_ in calls[:4]] == [1, 2, 3, 4] and len(calls) == 8
    assert [start for _, start, _ in calls] == sorted(start for _, start, _ in calls)
    times = profiled.fn.timing.by_step()
    for _, _, by_step in calls:
        assert all(row[2] <= ns <= row[3] for row, ns in zip(times, by_step, strict=True))
    assert profiled.fn.timing.timer_ns >= 0


def test_a_failing_call_counts_the_steps_that_ran(profiled):
    f = profiled
    f([1.0], [2.0])
    with pytest.raises(ValueError):
        f([1.0], [2.0, 3.0])
    count = [row[0] for row in f.fn.timing.by_step()]
    assert count[-1] == 1 and set(count[:-1]) == {2}
    assert [number for number, *_ in f.fn.timing.detail()] == [1]
    assert f.fn.timing.calls == f.calls == 1


@pytest.mark.parametrize(
    ("method", "args"),
    [("begin_call", ()), ("note", (0, 5)), ("end_call", (0, 5)), ("take_now", ()),
     ("keep_in", (None,))],
)  # fmt: skip
def test_nothing_is_timed_before_the_start(method, args):
    with pytest.raises(RuntimeError, match="the VM times no steps: call start first"):
        getattr(opwise_c.Timing(2), method)(*args)


def test_only_steps_have_times():
    timing = opwise_c.Timing(2)
    timing.start()
    timing.note(1, 5)
    assert [row[:2] for row in timing.by_step()] == [(0, 0), (1, 5)]
    for k in (-1, 2):
        with pytest.raises(IndexError, match=f"there is no step {k} of 2"):
            timing.note(k, 5)


def test_times_can_be_forgotten(profiled):
    profiled([1.0], [2.0])
    profiled.fn.timing.reset()
    timing = profiled.fn.timing
    assert not any(any(row) for row in timing.by_step()) and not timing.detail()
    assert timing.calls == timing.total_ns == timing.first_ns == 0
    profiled([1.0], [2.0])
    assert {row[0] for row in profiled.fn.timing.by_step()} == {1}


def test_without_profiling_nothing_is_counted(mode):
    x = T.dvector("x")
    f = function([x], x + 1, mode=mode)
    f([1.0])
    assert (
        f.fn.timing.calls == 0 and not any(row[0] for row in f.fn.timing.by_step()) and f.calls == 0
    )


def test_in_place_updates_are_counted(linker):
    w = shared(np.zeros(3))
    f = function([], [], updates=[(w, w + 1)], mode=ProfileMode(linker(), "fast_run"))
    for _ in range(4):
        f()
    assert {row[0] for row in f.fn.timing.by_step()} == {4}
    np.testing.assert_array_equal(w.get_value(), [4] * 3)


def test_trusted_inputs_are_not_converted(mode):
    x = T.dvector("x")
    f = function([x], x + 1, mode=mode)
    f.trust_input = True
    value = np.ones(3)
    np.testing.assert_array_equal(f(value), [2, 2, 2])


def test_trusted_inputs_of_the_wrong_type_are_refused_in_c():
    x = T.dvector("x")
    f = function([x], x + 1, mode=Mode("c|py", None))
    f.trust_input = True
    for wrong in ([1.0], 3):
        with pytest.raises(ValueError, match="expected an ndarray"):
            f(wrong)
    for wrong in (np.ones(3, "float32"), np.ones((3, 3))):
        with pytest.raises(TypeError, match="expected an array of dtype float64"):
            f(wrong)
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])


def test_names_are_public():
    assert opwise.PerformLinker is PerformLinker and opwise.OpWiseCLinker is OpWiseCLinker


def test_the_compiled_vm_has_no_subclasses():
    """Its methods call each other without a table of methods."""
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Other", (opwise_c.VM,), {})
