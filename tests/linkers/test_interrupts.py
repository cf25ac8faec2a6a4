"""An interrupt, wherever it comes, leaves shared variables as they were or all updated."""

import gc
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, In, Mode, Op, function, shared
from opwise.linkers import opwise_c

LINKERS = ["py", "vm", "c|py", "c&py"]
FORMS = ["positions", "names", "subset", "default", "instead of a default", "own state"]


class Interrupt(BaseException):
    """What the test raises; nothing in opwise knows it."""


def interrupted_at(call, place, everywhere):
    """Run ``call``, raising Interrupt at the ``place``-th line or instruction of opwise's Python.

    Returns whether it got that far.
    """
    count = -1

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_globals.get("__name__", "").startswith("opwise"):
            return None
        frame.f_trace_opcodes = everywhere
        if event in ("line", "opcode"):
            count += 1
            if count == place:
                sys.settrace(None)
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    assert count < place
    return False


def calls_of(linker):
    """Return {form of a call: (function, its arguments)}; each adds 1 to w, v and u in place."""
    mode = Mode(linker, "fast_run")
    x, state = T.dvector("x"), T.dvector("state")
    w, v, u = (shared(np.zeros(6), name=name) for name in "wvu")
    updates = [(w, w + x), (v, T.inc_subtensor(v[:], x)), (u, u + (w + 1 - w) * x)]
    plain = function([x], [w.sum(), v + x], updates=updates, mode=mode)
    default = function([In(x, value=np.ones(6))], w.sum(), updates=updates, mode=mode)
    held = function(
        [x, In(state, value=np.zeros(6), update=state + x, name="state")],
        state.sum(), updates=updates, mode=mode,
    )  # fmt: skip
    one = np.ones(6)
    return {
        "positions": (plain, lambda: plain(one), (w, v, u)),
        "names": (plain, lambda: plain(x=one), (w, v, u)),
        "subset": (plain, lambda: plain(one, output_subset=[0]), (w, v, u)),
        "default": (default, lambda: default(), (w, v, u)),
        "instead of a default": (default, lambda: default(one), (w, v, u)),
        "own state": (held, lambda: held(one), (w, v, u)),
    }


def state_of(f, variables):
    values = [variable.get_value() for variable in variables]
    if "state" in f._by_name:
        values.append(np.array(f["state"]))
    return values


@pytest.fixture
def no_collection():
    """Without the garbage collector: Python ignores what its callbacks raise."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("everywhere", [False, True], ids=["lines", "instructions"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("linker", LINKERS)
def test_an_interrupt_at_any_place(linker, form, everywhere, no_collection):
    f, call, variables = calls_of(linker)[form]
    call()
    expected = 1.0
    step = 7 if everywhere else 1  # instructions: every seventh, so that the test ends
    for place in range(0, 100_000, step):
        interrupted = interrupted_at(call, place, everywhere)
        values = state_of(f, variables)
        done = values[0][0]
        assert done in ((expected, expected + 1) if interrupted else (expected + 1,))
        for value in values:
            np.testing.assert_array_equal(value, np.full(6, done), err_msg=f"at place {place}")
        expected = done
        if not interrupted:
            break
    assert not interrupted and (linker == "c|py" or place > 10)
    call()  # what a default was for one call is gone
    np.testing.assert_array_equal(state_of(f, variables)[0], np.full(6, expected + 1))


class Do(Op):
    """Calls a Python function while a call runs."""

    view_map = {0: [0]}

    def __init__(self, do):
        self.do = do

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        self.do()
        output_storage[0][0] = inputs[0]


@pytest.mark.parametrize("linker", LINKERS)
def test_ctrl_c_in_an_op(linker):
    x, w = T.dvector("x"), shared(np.zeros(3), name="w")
    press = Do(lambda: os.kill(os.getpid(), signal.SIGINT))
    f = function([x], [], updates=[(w, w + press(x))], mode=Mode(linker, None))
    # jobs in the background of a shell are started with the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                f(np.ones(3))
    finally:
        signal.signal(signal.SIGINT, before)
    np.testing.assert_array_equal(w.get_value(), np.zeros(3))


# --- long kernels ---------------------------------------------------------------------------------


def chain(x, times=40):
    """Return an expression of one fused loop with much to compute for each element."""
    for k in range(times):
        x = T.sin(x) * 1.5 + T.cos(x + k)
    return x


LONG = {
    "elementwise": lambda x: chain(x),
    "reduction": lambda x: chain(x).sum(),
    "rows": lambda x: T.nnet.softmax(chain(x)),
    "strided": lambda x: chain(x[:, ::2]),
}


class Interrupted(Exception):
    """Raised by the handler of the signal."""


def stopped_after(f, *args):
    """Call f under many signals, of which the fourth ends the call.

    Signals that come while nobody looks for them are handled as one: a function of few steps gets
    to the fourth only if its kernels look.
    """
    count, done = 0, threading.Event()

    def handler(*_):
        nonlocal count
        count += 1
        if count == 4:
            raise Interrupted

    def send():
        while not done.wait(0.01):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(Interrupted):
            f(*args)
    finally:
        done.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("optimizer", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("what", list(LONG))
def test_ctrl_c_in_the_middle_of_a_long_kernel(what, optimizer, threads):
    """The kernel is left, and what comes after it does not run; the next call is right."""
    x, w = T.dmatrix("x"), shared(0.0, name="w")
    ran = []

    def count():
        ran.append(1)

    z = LONG[what](x)
    f = function(
        [x], Do(count)(z), updates=[(w, w + 1)],
        mode=Mode("c|py", optimizer).including("fusion"),
    )  # fmt: skip
    few = np.ones((3, 4))
    expected = f(few)
    many = np.ones((9_000, 2_000))  # seconds of work
    used = opwise_c.threads()
    opwise_c.set_threads(threads)
    try:
        stopped_after(f, many)
    finally:
        opwise_c.set_threads(used)
    assert len(ran) == 1
    assert w.get_value() == 1
    np.testing.assert_array_equal(f(few), expected)


def far_apart(*shape):
    """Return an array of huge size in little memory: every element is the same one."""
    return np.broadcast_to(np.array(0.5), shape)


def views(array, times):
    return np.broadcast_to(array, (times, *array.shape))


#: what -> (ndim of the arguments, expression, arguments that make few numbers, what makes those
#: that take seconds)
ENDLESS = {
    "product": (
        (2, 2), T.dot, (np.ones((3, 200)), np.ones((200, 2))),
        lambda: (np.ones((3_000, 4_000)), np.ones((4_000, 4_000))),
    ),
    "product with sums of many terms": (
        (2, 2), T.dot, (np.ones((30, 200)), np.ones((200, 40))),
        lambda: (np.ones((100, 2_000_000)), np.ones((2_000_000, 60))),
    ),
    "narrow product": (
        (2, 2), T.dot, (np.ones((3, 5)), np.ones((5, 5))),
        lambda: (far_apart(40_000_000, 20), np.ones((20, 20))),
    ),
    "product added": (
        (2, 2), lambda x, y: x + T.dot(x, y), (np.ones((3, 3)), np.ones((3, 3))),
        lambda: (np.ones((4_000, 4_000)), np.ones((4_000, 4_000))),
    ),
    "matrix and vector": (
        (2, 1), T.dot, (np.ones((3, 5)), np.ones(5)),
        lambda: (far_apart(3_000_000, 2_000), np.ones(2_000)),
    ),
    "vectors": (
        (1, 1), T.dot, (np.ones(5), np.ones(5)),
        lambda: (far_apart(3_000_000_000), far_apart(3_000_000_000)),
    ),
    "pages": (
        (3, 3), T.batched_dot, (np.ones((2, 3, 3)), np.ones((2, 3, 3))),
        lambda: (views(np.ones((30, 1_000)), 200_000), views(np.ones((1_000, 2)), 200_000)),
    ),
    "outer product": (
        (2, 1, 1), lambda A, x, y: A + 0.5 * T.outer(x, y),
        (np.ones((3, 2)), np.ones(3), np.ones(2)),
        lambda: (far_apart(20_000, 20_000), np.ones(20_000), np.ones(20_000)),
    ),
    "largest": (
        (2,), lambda x: T.argmax(x, axis=0), (np.eye(3),),
        lambda: (far_apart(2_000_000, 1_000),),
    ),
    "largest of all": ((1,), T.argmax, (np.ones(3),), lambda: (far_apart(30_000_000_000),)),
    "sum over rows of many numbers": (
        (2,), lambda x: (x * x).sum(0), (np.ones((3, 4)),),
        lambda: (far_apart(4_000_000, 2_000),),
    ),
    "sum along short dimensions": (
        (6,), lambda x: x.sum(5), (np.ones((2,) * 6),),
        lambda: (far_apart(9, 9, 9, 9, 9, 100_000),),
    ),
    "copy": (
        (2,), lambda x: T.inc_subtensor(x[1:], 1)[::2] + 1, (np.ones((3, 4)),),
        lambda: (far_apart(25_000, 25_000),),
    ),
    "rows": (
        (2, 0), lambda x, n: x[T.arange(n) % 2].sum(1), (np.ones((3, 4)), 3),
        lambda: (np.ones((3, 1_000)), 600_000),
    ),
    "rows added": (
        (2, 0), lambda x, n: T.inc_subtensor(x[T.arange(n) % 2], 1), (np.ones((3, 4)), 3),
        lambda: (np.ones((3, 1_000)), 8_000_000),
    ),
    "join": (
        (2,), lambda x: T.concatenate([x, x], axis=1)[0], (np.ones((3, 4)),),
        lambda: (far_apart(20_000, 20_000),),
    ),
    "range": ((0,), lambda n: T.arange(n)[::-1], (3,), lambda: (700_000_000,)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", list(ENDLESS))
def test_ctrl_c_in_kernels_of_many_kinds(what):
    """Every kind of kernel looks for signals and is left, and the next call is right."""
    ndims, expression, few, many = ENDLESS[what]
    inputs = [T.iscalar() if n == 0 else T.TensorType("float64", (False,) * n)() for n in ndims]
    f = function(inputs, expression(*inputs), mode=Mode("c|py", "fast_run"))
    expected = f(*few)
    stopped_after(f, *many())
    np.testing.assert_array_equal(f(*few), expected)


def test_handlers_run_between_steps():
    """A signal that came in a call is handled in that call, not when it has ended."""
    x = T.dmatrix("x")
    f = function([x], chain(x, 3).sum() + Do(lambda: None)(chain(x + 1, 3)).sum(), mode="FAST_RUN")
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.perf_counter()))
    try:
        timer = threading.Timer(
            0.02, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        )
        timer.start()
        f(np.ones((3_000, 1_000)))
        ended = time.perf_counter()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1 and seen[0] < ended


def test_a_handler_may_call_functions():
    x, y = T.dmatrix("x"), T.dmatrix("y")
    f, g = function([x], chain(x).sum()), function([y], chain(y, 2).sum())
    few = np.ones((300, 300))
    expected, results = g(few), []
    one = f(np.ones((1, 1)))
    before = signal.signal(signal.SIGUSR1, lambda *_: results.append(g(few)))
    try:
        timer = threading.Timer(
            0.05, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
        )
        timer.start()
        result = f(np.ones((1_000, 2_000)))
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert results == [expected]
    np.testing.assert_allclose(result, one * 2_000_000)


@pytest.mark.parametrize("linker", ["c|py", "py"])
def test_signals_that_come_again_and_again_part_no_update(linker):
    """A parameter that is updated in place has one value throughout, whenever a signal comes."""
    w, v = shared(np.zeros((700, 700)), name="w"), shared(np.zeros((700, 700)), name="v")
    f = function(
        [], [], updates=[(w, w + chain(w, 2)), (v, v + chain(v, 2))],
        mode=Mode(linker, "fast_run"),
    )  # fmt: skip
    done, interrupts, armed = threading.Event(), 0, False

    def handler(*_):
        nonlocal armed
        if armed:
            armed = False
            raise Interrupted

    def send():
        while not done.wait(0.007):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(50):
            try:
                armed = True
                f()
                armed = False
            except Interrupted:
                interrupts += 1
            values = {*np.unique(w.get_value()), *np.unique(v.get_value())}
            assert len(values) == 1
    finally:
        done.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert interrupts
