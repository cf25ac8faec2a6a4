"""Several threads, functions and processes on one shared variable."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, Mode, Op, function, shared
from opwise.linkers.opwise_c import Claim, Lock

LARGE = 20_000  # float64: kernels let go of the GIL
LINKERS = ["py", "vm", "c|py"]


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


def together(*works, seconds=60):
    """Run functions in threads of their own; raise what they raise."""
    errors = []

    def run(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def repeated(call, times):
    def work():
        for _ in range(times):
            call()

    return work


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("size", [1, 100, LARGE])
def test_no_update_is_lost(linker, size):
    w = shared(np.zeros(size), name="w")
    mode = Mode(linker, "fast_run")
    adders = [function([], [], updates=[(w, w + 1)], mode=mode) for _ in range(4)]
    together(*(repeated(f, 100) for f in adders))
    np.testing.assert_array_equal(w.get_value(), np.full(size, 400.0))


@pytest.mark.parametrize("linker", LINKERS)
def test_nobody_sees_half_an_update(linker):
    """One number throughout w, and the same in v: whoever reads sees that."""
    w, v = shared(np.zeros(LARGE), name="w"), shared(np.zeros(LARGE), name="v")
    mode = Mode(linker, "fast_run")
    step = function([], [], updates=[(w, w + 1), (v, v + 1)], mode=mode)
    look = function([], [w.min(), w.max(), v.min(), v.max()], mode=mode)
    torn, done = [], threading.Event()

    def write():
        try:
            repeated(step, 200)()
        finally:
            done.set()

    def read_values():
        while not done.is_set():
            value = w.get_value()
            if value.min() != value.max():
                torn.append(value)

    def read_by_a_function():
        while not done.is_set():
            if len(set(map(float, look()))) != 1:
                torn.append(w)

    def read_pickles():
        while not done.is_set():
            value = pickle.loads(pickle.dumps(w)).get_value()
            if value.min() != value.max():
                torn.append(value)

    together(write, read_values, read_by_a_function, read_pickles)
    assert torn == []
    assert w.get_value()[0] == 200


@pytest.mark.parametrize("linker", LINKERS)
def test_set_value_comes_before_or_behind_an_update(linker):
    w = shared(np.zeros(3), name="w")
    inside, go_on = threading.Event(), threading.Event()

    def wait():
        inside.set()
        assert go_on.wait(30)

    f = function([], [], updates=[(w, Do(wait)(w) + 1)], mode=Mode(linker, None))

    def replace():
        assert inside.wait(30)
        threading.Timer(0.2, go_on.set).start()
        w.set_value(np.full(3, 10.0))

    together(f, replace)
    np.testing.assert_array_equal(w.get_value(), np.full(3, 10.0))


def test_readers_do_not_wait_for_each_other():
    """Two functions that read a parameter are both in the middle of a call."""
    w, x = shared(np.ones(3), name="w"), T.dvector("x")
    barrier = threading.Barrier(3, timeout=30)
    fs = [function([x], Do(barrier.wait)(x) + w, mode=Mode("c|py", None)) for _ in range(2)]

    def read():
        barrier.wait()
        w.get_value()

    together(*(lambda f=f: f(np.ones(3)) for f in fs), read)


def test_functions_on_other_variables_do_not_wait():
    barrier = threading.Barrier(2, timeout=30)
    fs = []
    for name in "wv":
        w = shared(np.ones(3), name=name)
        fs.append(function([], [], updates=[(w, Do(barrier.wait)(w) + 1)], mode=Mode("c|py", None)))
    together(*fs)


def test_a_writer_is_not_kept_out_by_readers_that_follow_each_other():
    w = shared(np.zeros(LARGE), name="w")
    readers = [function([], T.exp(w).sum(), mode=Mode("c|py", "fast_run")) for _ in range(3)]
    writer = function([], [], updates=[(w, w + 1)], mode=Mode("c|py", "fast_run"))
    done = threading.Event()

    def read(f):
        while not done.is_set():
            f()

    def write():
        try:
            repeated(writer, 30)()
        finally:
            done.set()

    together(write, *(lambda f=f: read(f) for f in readers))
    assert w.get_value()[0] == 30


def test_a_reader_is_not_kept_out_by_a_writer_that_does_not_pause():
    w = shared(np.zeros(LARGE), name="w")
    writer = function([], [], updates=[(w, T.tanh(w) + 1)], mode=Mode("c|py", "fast_run"))
    done = threading.Event()

    def write():
        while not done.is_set():
            writer()

    def read():
        try:
            repeated(w.get_value, 30)()
        finally:
            done.set()

    together(write, read)


@pytest.mark.parametrize("linker", LINKERS)
def test_an_op_may_use_the_variables_of_the_call_that_it_is_in(linker):
    w, x = shared(np.ones(3), name="w"), T.dvector("x")
    seen = []
    inner = function([], w * 2, mode=Mode(linker, None))

    def look():
        seen.append(inner())
        seen.append(w.get_value())
        w.set_value(w.get_value())

    f = function([x], [], updates=[(w, w + Do(look)(x))], mode=Mode(linker, None))
    together(lambda: f(np.ones(3)))
    np.testing.assert_array_equal(seen, [np.full(3, 2.0), np.ones(3)])
    np.testing.assert_array_equal(w.get_value(), np.full(3, 2.0))


def test_threads_that_wait_for_each_other_are_told_so():
    """Each call updates one variable, and an Op in it updates the other's."""
    w, v = shared(np.zeros(3), name="w"), shared(np.zeros(3), name="v")
    mode = Mode("c|py", None)
    add = {s: function([], [], updates=[(s, s + 1)], mode=mode) for s in (w, v)}
    barrier = threading.Barrier(2, timeout=30)

    def do(other):
        barrier.wait()
        add[other]()

    fs = [
        function([], [], updates=[(mine, Do(lambda other=other: do(other))(mine) + 1)], mode=mode)
        for mine, other in ((w, v), (v, w))
    ]
    with pytest.raises(RuntimeError, match="wait for each other"):
        together(*fs)
    # one of them went through: its own variable, and the other's
    np.testing.assert_array_equal(w.get_value(), np.full(3, 1.0))
    np.testing.assert_array_equal(v.get_value(), np.full(3, 1.0))
    together(*add.values())
    assert w.get_value()[0] == v.get_value()[0] == 2


def test_a_call_that_fails_lets_go():
    w, x = shared(np.zeros(3), name="w"), T.dvector("x")
    f = function([x], [], updates=[(w, w + x)], mode=Mode("c|py", None))
    with pytest.raises(ValueError):
        f(np.zeros(2))
    together(lambda: f(np.ones(3)), lambda: w.set_value(np.zeros(3)))


def test_a_claim_holds_each_lock_once():
    one, two = Lock(), Lock()
    with Claim((one, one), (one, two)), Claim((), (two,)), Claim((two,)):
        pass  # the same thread
    together(lambda: Claim((one, two)).__enter__().__exit__())
    assert isinstance(copy.deepcopy(one), Lock) and pickle.loads(pickle.dumps(one)) is not one


# --- forks ----------------------------------------------------------------------------------------


def child_does(work, seconds=30):
    """Fork; run ``work`` in the child; return its exit status: 0 if it returned True."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    for _ in range(int(seconds * 100)):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"


SCRIPT = """
import os, sys, threading, time
sys.path.insert(0, {folder!r})
import numpy as np
import opwise.tensor as T
from opwise.compile.function import function
from opwise.compile.shared import shared
from opwise.modes.mode import Mode
from test_locks import Do, child_does
"""

FORK_INSIDE = """
inside, go_on = threading.Event(), threading.Event()
first = [True]

def wait():
    if first and first.pop():
        inside.set()
        assert go_on.wait(30)

x, w = T.dvector("x"), shared(np.zeros(3), name="w")
f = function([x], [Do(wait)(x * 2) + w, x + 1], mode=Mode({linker!r}, None))
thread = threading.Thread(target=f, args=(np.ones(3),))
thread.start()
assert inside.wait(30)
status = child_does(lambda: all(f(np.ones(3))[0].tolist() == [2.0] * 3 for _ in range(3)))
go_on.set()
thread.join()
assert status == 0, status
assert f(np.ones(3))[0].tolist() == [2.0] * 3
"""

FORK_DURING_UPDATES = """
w = shared(np.zeros({size}), name="w")
f = function([], [], updates=[(w, T.tanh(w) * 0 + w + 1)], mode=Mode({linker!r}, "fast_run"))
done = threading.Event()

def update():
    while not done.is_set():
        f()

def whole():
    before = w.get_value()
    f()
    after = w.get_value()
    return len(set(before)) == 1 and set(after) == {{before[0] + 1}}

thread = threading.Thread(target=update)
thread.start()
statuses = [child_does(whole) for _ in range(10)]
done.set()
thread.join()
assert statuses == [0] * 10, statuses
"""


def run_script(text, **values):
    folder = os.path.dirname(__file__)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", (SCRIPT + text).format(
            folder=folder, **values)],
        capture_output=True, text=True, timeout=100, check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # threads are counted
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


@needs_fork
@pytest.mark.parametrize("linker", LINKERS)
def test_a_child_forked_during_a_call_of_another_thread(linker):
    run_script(FORK_INSIDE, linker=linker)


@needs_fork
@pytest.mark.parametrize("linker", LINKERS)
def test_a_child_forked_during_updates_sees_whole_values(linker):
    run_script(FORK_DURING_UPDATES, linker=linker, size=LARGE)


FORK_WITH_A_TEAM = """
import opwise
from opwise.linkers import opwise_c

def tasks(expected, calls=False):
    for _ in range(1000):  # a thread that was joined counts for a moment more, and a team may rest
        if calls:
            assert f(value) == expected_sum
        if len(os.listdir("/proc/self/task")) == expected:
            break
        time.sleep(0.01)
    return len(os.listdir("/proc/self/task"))

opwise.config.background_compilation = False  # the thread that compiles counts, too
x = T.dmatrix("x")
f = function([x], T.exp(x).sum(), mode="FAST_RUN")
alone = len(os.listdir('/proc/self/task'))
opwise_c.set_threads(3)
value = np.ones((1000, 1000))
expected_sum = f(value)
assert tasks(alone + 2, calls=True) == alone + 2
assert child_does(lambda: tasks(3, calls=True) == 3) == 0
assert tasks(alone) == alone
assert tasks(alone + 2, calls=True) == alone + 2
opwise_c.set_threads(2)
assert tasks(alone + 1) == alone + 1
"""


@needs_fork
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs Linux's /proc")
def test_the_team_of_threads_ends_before_a_fork_and_starts_again():
    run_script(FORK_WITH_A_TEAM)
