"""Functions that many threads call: results, shared values, and a copy for each thread."""

import gc
import pickle
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, In, Op, function, shared

THREADS, CALLS = 16, 10_000


class Do(Op):
    """Calls a Python function while a call runs."""

    view_map = {0: [0]}

    def __init__(self, do):
        self.do = do

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        self.do()
        output_storage[0][0] = inputs[0]


def in_threads(work, count=THREADS):
    """Call ``work`` with 0 to count - 1, each in a thread of its own; raise what one raised."""
    failures, start = [], threading.Barrier(count)

    def run(k):
        start.wait(60)
        try:
            work(k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def step(size):
    """Return (function that adds its argument to w and counts in c, w, c)."""
    x = T.dvector("x")
    w, c = shared(np.zeros(size), name="w"), shared(0, name="c")
    f = function([x], [x.sum(), w.min(), w.max()], updates=[(w, w + x.sum()), (c, c + 1)])
    return f, w, c


def check(f, argument, expected):
    total, least, largest = f(argument)
    assert total == expected
    assert least == largest, "half an update"


@pytest.mark.parametrize("per_thread", [False, True], ids=["one function", "a copy each"])
def test_16_threads_call_a_function_10000_times_each(per_thread):
    f, w, c = step(4)
    called = opwise.PerThread(f) if per_thread else f

    def work(k):
        argument, expected = np.full(4, float(k)), 4.0 * k
        for _ in range(CALLS):
            check(called, argument, expected)

    in_threads(work)
    assert c.get_value() == THREADS * CALLS
    np.testing.assert_array_equal(w.get_value(), np.full(4, 4.0 * CALLS * sum(range(THREADS))))


def test_16_threads_call_different_functions_2000_times_each():
    """Half of them update a variable that all read."""
    w, c, x = shared(np.zeros(4), name="w"), shared(0, name="c"), T.dvector("x")
    updates = [(w, w + 1), (c, c + 1)]
    functions = [
        function([x], [(x * k).sum(), w.min(), w.max()], updates=updates if k % 2 else [])
        for k in range(THREADS)
    ]

    def work(k):
        argument = np.arange(4.0)
        for _ in range(2000):
            check(functions[k], argument, 6.0 * k)

    in_threads(work)
    assert c.get_value() == THREADS // 2 * 2000
    np.testing.assert_array_equal(w.get_value(), np.full(4, THREADS // 2 * 2000))


@pytest.mark.c
@pytest.mark.parametrize("per_thread", [False, True], ids=["one function", "a copy each"])
def test_threads_call_a_function_whose_kernels_run_without_the_gil(per_thread):
    f, w, c = step(20_000)
    called = opwise.PerThread(f) if per_thread else f

    def work(k):
        argument = np.full(20_000, float(k))
        for _ in range(50):
            check(called, argument, 20_000.0 * k)

    in_threads(work)
    assert c.get_value() == THREADS * 50
    assert set(w.get_value()) == {20_000.0 * 50 * sum(range(THREADS))}


# --- a copy for each thread -----------------------------------------------------------------------


def test_two_threads_are_in_the_function_at_once():
    barrier, x = threading.Barrier(2, timeout=30), T.dvector("x")
    called = opwise.PerThread(function([x], Do(barrier.wait)(x) + 1, mode="FAST_COMPILE"))
    in_threads(lambda k: np.testing.assert_array_equal(called(np.full(2, k)), [k + 1, k + 1]), 2)


def test_kernels_of_two_threads_run_at_once():
    """A thread counts while another one is in a kernel, though that never yields to it."""
    x = T.dvector("x")
    called = opwise.PerThread(function([x], T.exp(x).sum()))
    many, small = np.ones(2_000_000), np.ones(3)
    counted, during, done = [0], [], threading.Event()

    def compute():
        called(small)
        for _ in range(20):
            before = counted[0]
            called(many)
            during.append(counted[0] - before)
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    thread = threading.Thread(target=compute)
    try:
        thread.start()
        while not done.is_set():
            called(small)
            counted[0] += 1
            time.sleep(0)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert max(during) > 0


def test_a_thread_keeps_its_copy_and_frees_it():
    f, _, _ = step(4)
    called = opwise.PerThread(f)
    assert called.function is f is called.function
    seen = []

    def work(k):
        own = called.function
        assert own is called.function
        assert own is not f
        called(np.ones(4))
        seen.append(weakref.ref(own))

    in_threads(work, 3)
    gc.collect()
    assert len(seen) == 3 and [ref() for ref in seen] == [None] * 3


def all_forms():
    x, y, s, w = T.dvector("x"), T.dvector("y"), T.dvector("s"), shared(0.0)
    yield function([x], x.sum()), (np.ones(2),), {}
    yield function([x], [x.sum()]), (), {"x": np.ones(2)}
    yield function([x], {"a": x.sum(), "b": x * 2}), (np.ones(2),), {}
    yield function([x, In(y, value=np.ones(2))], x + y), (np.ones(2),), {}
    yield function([x, In(s, value=np.ones(2), update=s + x)], s * x), (np.ones(2),), {}
    yield function([x], [], updates=[(w, w + x.sum())]), (np.ones(2),), {}


@pytest.mark.parametrize("form", range(6))
def test_results_have_the_form_of_the_function(form):
    f, args, kwargs = list(all_forms())[form]
    called, found = opwise.PerThread(f), []
    in_threads(lambda k: found.append(called(*args, **kwargs)), 2)
    expected = f(*args, **kwargs)
    for result in found:
        assert type(result) is type(expected)
        np.testing.assert_equal(result, expected)


def test_attributes_of_the_copies():
    x = T.dvector("x")
    f = function([x], x.sum(), name="named")
    f.trust_input = True
    called, found = opwise.PerThread(f), []
    in_threads(lambda k: found.append((called.function.name, called.function.trust_input)), 1)
    assert found == [("named", True)]
    assert repr(called) == f"PerThread({f!r})"


def test_a_pickle_of_it():
    x = T.dvector("x")
    called = pickle.loads(pickle.dumps(opwise.PerThread(function([x], x.sum()))))
    in_threads(lambda k: np.testing.assert_array_equal(called(np.ones(k)), k))


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match=r"takes a compiled function, not 3: make one with"):
        opwise.PerThread(3)
