"""Loops whose step is a small scalar program: one C function repeats it."""

import signal
import threading

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, ProfileMode, function, grad, linalg, shared
from opwise.loops import Scan, scan, small, until
from opwise.loops.layout import Parts

pytestmark = pytest.mark.c

IN_PYTHON = Mode("py", "fast_run")


def one():
    return T.constant(1.0, dtype="float64")


def steps_of_the_vm(f, *given):
    """Return the results of a call, and how many steps the VM ran, not the C function."""
    (loop,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    vm = loop.tag.inside.fn
    vm.timing.start()
    f.fn.wait_for_kernels()
    vm.timing.reset()
    found = f(*given)
    counts = {count for count, *_ in vm.timing.by_step()}
    assert len(counts) == 1
    return found, counts.pop()


def agrees(inputs, outputs, *given, exact=True):
    """Check a function against the VM and against the Python specification.

    exact: whether the bits are those of the VM.
    """
    found, steps = steps_of_the_vm(function(inputs, outputs), *given)
    assert steps == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "recurrence", lambda node, step: None)
        in_vm, steps = steps_of_the_vm(function(inputs, outputs), *given)
    assert steps > 0
    expected = function(inputs, outputs, mode=IN_PYTHON)(*given)
    for a, b, c in zip(found, in_vm, expected, strict=True):
        assert a.dtype == b.dtype == c.dtype
        if exact:
            np.testing.assert_array_equal(a, b)
        # numpy's functions round otherwise, and parts of a step may be of float32
        np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-5)
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_states_results_sequences_and_taps(n):
    v, first, k = T.dvector(), T.dvector(), T.dscalar()

    def step(now, before, far, near, a, b, k):
        return [a / (1 + far**2) - near * now, b, a + k, T.exp(-abs(a)) * before, now > 0]

    outputs, _ = scan(
        step, {"input": v, "taps": [0, -2]},
        [{"initial": first, "taps": [-5, -2]}, first[0], first[1], None, None], k,
    )  # fmt: skip
    rng = np.random.RandomState(n)
    agrees([v, first, k], outputs, rng.randn(n + 2), rng.randn(5), 0.5)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("taps", [(-1,), (-1, -3)])
def test_states_without_elements(alone, taps):
    """The state comes last, so that no slot follows it."""
    w, v = shared(np.zeros((40, 0))), shared(np.arange(40.0))
    first = {"initial": T.zeros((3, 0) if len(taps) > 1 else (0,)), "taps": list(taps)}
    if alone:
        empty, _ = scan(lambda e, *h: 0.5 * sum(h) + T.tanh(e), w, first)
        outputs = [empty]
    else:
        outputs, _ = scan(
            lambda e, s, g, *h: [0.5 * g + s, 0.5 * sum(h) + T.tanh(e)], [w, v], [one(), first]
        )  # fmt: skip
    assert agrees([], outputs)[-1].shape == (40, 0)


def test_new_values_are_taken_before_old_ones_change():
    outputs, _ = scan(lambda a, b: [b, a], outputs_info=[one(), 2 * one()], n_steps=30)
    a, _ = agrees([], outputs)
    assert a[:3].tolist() == [2, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "uint16", "bool"])
def test_dtypes_are_those_of_the_steps(dtype):
    v, first = T.vector(dtype=dtype), T.scalar(dtype=dtype)

    def step(x, h):
        return T.cast(h * x + (h < x), dtype), T.cast(h + x, "float64") / 3

    outputs, _ = scan(step, v, [first, None])
    given = np.arange(1, 41).astype(dtype), np.array(1, dtype)
    agrees([v, first], outputs, *given)


def test_a_condition_ends_the_loop():
    limit = T.dscalar()
    outputs, _ = scan(
        lambda h, limit: (2 * h, until(h > limit)), outputs_info=one(), non_sequences=limit,
        n_steps=1000,
    )  # fmt: skip
    f = function([limit], outputs)
    for value, n in ((0.5, 1), (1.0, 2), (100.0, 8)):
        found, steps = steps_of_the_vm(f, value)
        assert (len(found), steps) == (n, 0)
        np.testing.assert_array_equal(found, 2.0 ** np.arange(1, n + 1))


@pytest.mark.parametrize("strides", ["C", "F", "reversed", "part"])
def test_small_arrays_of_any_strides(strides):
    m, w = T.dmatrix(), shared(np.random.RandomState(1).randn(2, 2) / 2, "w")

    def step(x, h, p):
        new = T.tanh(T.dot(w, h) + x * p.sum(axis=0))
        return new, p * 0.5 + T.outer(new, x), T.stack([new[0], x[1], 1.0])

    outputs, _ = scan(step, m, [T.zeros((2,)), np.eye(2), None])
    values = np.random.RandomState(2).randn(30, 2)
    values = {
        "C": values,
        "F": np.asfortranarray(values),
        "reversed": np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1],
        "part": np.repeat(values, 2, axis=1)[:, ::2],
    }[strides]
    agrees([m], outputs, values, exact=False)


def test_other_lengths_run_in_the_vm():
    w = shared(np.eye(2), "w")
    x = T.dvector()
    outputs, _ = scan(lambda h: T.tanh(T.dot(w, h)), outputs_info=x, n_steps=20)
    f = function([x], outputs)
    assert steps_of_the_vm(f, np.ones(2))[1] == 0
    w.set_value(np.eye(3))
    found, steps = steps_of_the_vm(f, np.ones(3))
    assert steps == 20 and found.shape == (20, 3)
    with pytest.raises(ValueError, match="Shape mismatch"):
        f(np.ones(2))
    w.set_value(np.eye(2))
    assert steps_of_the_vm(f, np.ones(2))[1] == 0


def rk4_pendulum(x, dt):
    def slope(x):
        return T.stack([x[1], -T.sin(x[0]) + x[2] * 0.1, x[3], -x[2] * x[0]])

    a = slope(x)
    b = slope(x + dt / 2 * a)
    c = slope(x + dt / 2 * b)
    return x + dt / 6 * (a + 2 * b + 2 * c + slope(x + dt * c))


def test_runge_kutta_steps_and_their_gradients():
    x, dt = T.dvector(), T.dscalar()
    states, _ = scan(rk4_pendulum, outputs_info=x, non_sequences=dt, n_steps=50)
    given = np.array([0.1, 0.2, 0.3, 0.4]), 0.01
    agrees([x, dt], [states], *given)
    slopes = grad(states[-1].sum(), [x, dt])
    for a, b in zip(
        function([x, dt], slopes)(*given), function([x, dt], slopes, mode=IN_PYTHON)(*given),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(a, b, rtol=1e-12)


def kalman(z, x, p):
    a, q, h = np.array([[1, 0.1], [0, 1]]), np.eye(2) * 0.01, np.eye(2)
    x, p = T.dot(a, x), T.dot(T.dot(a, p), a.T) + q
    gain = T.dot(T.dot(p, h.T), linalg.inv(T.dot(T.dot(h, p), h.T)))
    return x + T.dot(gain, z - T.dot(h, x)), p - T.dot(T.dot(gain, h), p)


def test_kalman_filter():
    z = T.dmatrix()
    outputs, _ = scan(kalman, z, [np.zeros(2), np.eye(2)])
    agrees([z], outputs, np.random.RandomState(3).randn(100, 2), exact=False)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_inverses_choose_pivots_as_lapack_does(n):
    matrices = T.dtensor3()
    h0 = np.zeros((n, n))
    outputs, _ = scan(lambda m, h: h * 0.5 + linalg.inv(m), matrices, h0)
    values = np.random.RandomState(n).randn(50, n, n)
    values[:, 0, 0] = 1e-9 if n > 1 else 1.0
    agrees([matrices], [outputs], values, exact=False)


def test_the_vm_solves_what_would_lose_digits():
    matrices = T.dtensor3()
    outputs, _ = scan(lambda m, h: h * 0.5 + linalg.inv(m), matrices, np.zeros((2, 2)))
    f = function([matrices], outputs)
    values = np.random.RandomState(4).randn(40, 2, 2) + 2 * np.eye(2)
    values[[0, 7, 8, 39]] = [[1, 1], [1, 1 + 1e-7]]
    found, steps = steps_of_the_vm(f, values)
    assert 4 <= steps < 20
    expected = function([matrices], outputs, mode=IN_PYTHON)(values)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)


def test_singular_matrices_are_errors_that_name_the_step():
    matrices = T.dtensor3()
    outputs, _ = scan(lambda m, h: h * 0.5 + linalg.inv(m), matrices, np.zeros((2, 2)))
    f = function([matrices], outputs)
    values = np.tile(np.eye(2), (30, 1, 1))
    values[20] = 1
    with pytest.raises(np.linalg.LinAlgError, match="ingular") as raised:
        f(values)
    assert any("step 20" in note for note in raised.value.__notes__)
    values[20] = np.eye(2)
    assert f(values).shape == (30, 2, 2)


def test_large_and_short_loops_run_in_the_vm():
    x = T.dvector()
    outputs, _ = scan(lambda h: h * 0.5, outputs_info=x, n_steps=40)
    assert steps_of_the_vm(function([x], outputs), np.ones(5000))[1] == 40
    outputs, _ = scan(lambda h: h * 0.5, outputs_info=np.ones(5000), n_steps=40)
    assert steps_of_the_vm(function([], outputs))[1] == 40
    outputs, _ = scan(lambda h: h * h, outputs_info=one(), n_steps=5)
    f = function([], outputs, mode=Mode().excluding("scanOp_unroll"))
    assert steps_of_the_vm(f)[1] == 5


def test_without_a_compiler_the_vm_repeats_the_step(flags):
    flags(cxx="")
    outputs, _ = scan(lambda h: h * 0.5, outputs_info=one(), n_steps=40)
    found, steps = steps_of_the_vm(function([], outputs))
    assert steps == 40
    np.testing.assert_array_equal(found, 0.5 ** np.arange(1, 41))


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_have_the_bits_of_the_specification(seed):
    rng = np.random.RandomState(seed)
    dtypes = ["float64", "float32", "int64"]
    unary = [T.sin, T.tanh, abs, T.sqr, lambda x: T.exp(-abs(x)), T.sgn, lambda x: -x]
    binary = [
        T.add, T.sub, T.mul, T.maximum, T.minimum, lambda x, y: x / (1 + y * y),
        lambda x, y: T.switch(x > y, x, y / 2),
    ]  # fmt: skip
    sequences = [T.vector(dtype=dtypes[rng.randint(3)]) for _ in range(rng.randint(1, 3))]
    taps = [[-4, -1 - rng.randint(3)] for _ in range(rng.randint(1, 4))]
    kinds = [dtypes[rng.randint(3)] for _ in taps]
    firsts = [T.vector(dtype=kind) for kind in kinds]
    results = rng.randint(3)

    def step(*values):
        pool = list(values)
        for _ in range(8):
            x, y = (pool[rng.randint(len(pool))] for _ in range(2))
            pool.append(unary[rng.randint(7)](x) if rng.rand() < 0.4 else
                        binary[rng.randint(7)](x, y))  # fmt: skip
        new = []
        for kind in kinds:
            x = T.clip(pool[-1 - rng.randint(6)], -3, 3)
            new.append(T.cast(x, kind))
        return [*new, *(pool[-1 - k] for k in range(results))]

    info = [{"initial": first, "taps": tap} for first, tap in zip(firsts, taps, strict=True)] + [
        None
    ] * results
    outputs, _ = scan(step, sequences, info)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    given = [(3 * rng.randn(30)).astype(v.dtype) for v in sequences]
    given += [
        (2 * rng.randn(-min(tap))).astype(kind) for tap, kind in zip(taps, kinds, strict=True)
    ]
    agrees([*sequences, *firsts], outputs, *given)


def last_of(step, first, steps, *constants):
    """Return the last states of an inner loop."""
    rows, _ = scan(step, outputs_info=first, non_sequences=list(constants), n_steps=steps)
    return [row[-1] for row in rows] if isinstance(rows, list) else rows[-1]


def cube_root(x, total, steps=20):
    return total + last_of(lambda y, x: y - (y * y * y - x) / (3 * y * y), x, steps, x)


def taps_inside(x, total):
    first = {"initial": T.stack([x, total, x]), "taps": [-3, -1]}
    return last_of(lambda a, b: a * 0.1 + b * 0.5, first, 30)


def states_change_places(x, total):
    a, b = last_of(lambda a, b, x: [b, a + x], [x, total], 21, x)
    return a * 0.1 + b * 0.01


def a_condition_ends_the_inner_loop(x, total):
    return last_of(lambda a, x: (a * 1.5 + 1, until(a > 50 * x)), total, 50, x) / 40


def rows_of_a_short_loop(x, total):
    rows, _ = scan(lambda s, a: a * s + 1, T.stack([x, total, x * total]), total)
    return rows.sum() / 10


def three_loops(x, total):
    def middle(a, x):
        return last_of(lambda b, x, a: T.sin(b + x) + a, a, 18, x, a) * 0.5

    return last_of(middle, total, 19, x)


def one_loop_after_the_other(x, total):
    a = last_of(lambda a, x: T.cos(a) * x, total, 20, x)
    return last_of(lambda b, a: T.exp(-abs(b)) * a + T.tanh(a), a, 20, a)


def integers_count(x, total):
    a, n = last_of(
        lambda a, n, x: [T.switch(a > 2, a / 2, a + x), n + T.cast(a > 2, "int8")],
        [x, T.constant(0, dtype="int8")], 40, x,
    )  # fmt: skip
    return total * 0.5 + a + n


@pytest.mark.parametrize("step", [
    cube_root, taps_inside, states_change_places, a_condition_ends_the_inner_loop,
    rows_of_a_short_loop, three_loops, one_loop_after_the_other, integers_count,
])  # fmt: skip
def test_loops_inside(step):
    v = T.dvector()
    outputs, _ = scan(step, v, [v[0] * 0])
    agrees([v], [outputs], np.linspace(0.5, 2, 40))


@pytest.mark.parametrize("steps", [1, 2, 16, 17, 100])
def test_inner_loops_of_any_length(steps):
    v = T.dvector()
    outputs, _ = scan(lambda x, total: cube_root(x, total, steps), v, [v[0] * 0])
    agrees([v], [outputs], np.linspace(0.5, 2, 40))


def test_inner_loops_over_vectors():
    v = T.dvector()

    def step(x, h, m):
        h = last_of(lambda a, x: T.tanh(a[::-1] * x + 1), h, 25, x)
        return h, last_of(lambda m, h: 0.5 * m + T.outer(h, h[::-1]), m, 20, h)

    outputs, _ = scan(step, v, [T.zeros((3,)), np.eye(3)])
    agrees([v], outputs, np.linspace(0.5, 2, 40))


def test_the_vm_runs_inner_loops_that_no_c_function_does():
    v, n = T.dvector(), T.lscalar()

    def steps(inner):
        outputs, _ = scan(inner, v, [v[0] * 0])
        return steps_of_the_vm(function([v, n], outputs, on_unused_input="ignore"),
                               np.linspace(0.5, 2, 40), 3)[1]  # fmt: skip

    many = 10**6  # without a look for signals
    assert steps(lambda x, total: cube_root(x, total, n)) == 0
    assert steps(lambda x, total: last_of(lambda a, x: a * x, total, many // 100, x)) == 0
    assert steps(lambda x, total: last_of(lambda a, x: a * 0.5 + x, total, many, x)) == 40

    def sums(first):
        def halves(x, total):
            return scan(lambda a: a / 2, outputs_info=first(x), n_steps=20)[0].sum()

        return function([v], scan(halves, v, [v[0] * 0])[0])

    outputs, _ = scan(lambda x, total: cube_root(x, total, n), v, [v[0] * 0])
    with pytest.raises(IndexError):  # no step, so no last row
        function([v, n], outputs)(np.ones(40), 0)
    found, in_vm = steps_of_the_vm(sums(lambda x: x), np.ones(40))
    assert in_vm == 0
    np.testing.assert_allclose(found, [1 - 0.5**20] * 40)
    # all rows of vectors are too many
    assert steps_of_the_vm(sums(lambda x: T.stack([x, x])), np.ones(40))[1] == 40


def test_loops_around_loops_need_no_state_of_their_own():
    v, n = T.dvector(), T.lscalar()
    roots, _ = scan(lambda x: cube_root(x, 0 * x, n), v)
    agrees([v, n], [roots], np.linspace(0.5, 2, 40), 3)


def test_states_of_no_step_need_no_python(monkeypatch):
    step_x, step_y = T.dscalar(), T.dvector()
    loop = Scan.of(
        Parts(states=[[step_x], [step_y]]), Parts(states=[[step_x * 2], [step_y + step_x]]),
        [[1], [1]], {0: 1},
    )  # fmt: skip
    n, x, y = T.lscalar(), T.dvector(), T.dmatrix()
    (first,), (second,) = loop.repeat(n, Parts(states=[[x], [y]])).states
    monkeypatch.setattr(Scan, "perform", None)
    for count in (0, 2, 0):
        f = function([n, x, y], [first, second])
        a, b = f(count, np.ones(1), np.ones((1, 3)))
        np.testing.assert_array_equal(a, [2.0**count])
        np.testing.assert_array_equal(b[:, 0], [1, 2, 4][: count + 1])


def test_loops_around_loops_in_modes():
    v = T.dvector()
    outputs, _ = scan(cube_root, v, [v[0] * 0])
    values = np.linspace(0.5, 2, 40)
    expected = np.cumsum(np.cbrt(values))
    for mode in ("FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", ProfileMode()):
        found = function([v], outputs, mode=mode)(values)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_long_loops_can_be_interrupted():
    n = T.lscalar()
    outputs, _ = scan(lambda h: T.sin(h), outputs_info=one(), n_steps=n)
    f = function([n], outputs[-1])
    assert f(100) > 0
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(10**9 // 8)
    timer.join()
    assert f(100) > 0


def test_copies_in_threads_and_modes():
    v = T.dvector()
    outputs, _ = scan(lambda x, h: T.tanh(h + x), v, one())
    f = function([v], outputs)
    values = np.random.RandomState(5).randn(300_000)
    expected, found = f(values), {}

    def work(k, g):
        (found[k],) = g(values)

    threads = [threading.Thread(target=work, args=(k, f.copy())) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], expected)
    for mode in ("FAST_COMPILE", "DEBUG_MODE", ProfileMode()):
        found = function([v], outputs, mode=mode)(values[:50])
        np.testing.assert_allclose(found, expected[:50], rtol=1e-12)


def test_outputs_belong_to_the_caller():
    first = T.dscalar()
    outputs, _ = scan(lambda h: h * 2, outputs_info=first, n_steps=20)
    f = function([first], outputs)
    kept = f(1.0)
    f(3.0)
    assert kept[0] == 2
