"""Steps that run in strips of rows: results, errors, memory, and what a profile says of them."""

import subprocess
import sys

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise import change_flags

RNG = np.random.default_rng(1)
N, M, D = 300, 40, 3


@pytest.fixture(autouse=True)
def two_threads(flags):
    """Strips have more rows for more threads."""
    flags(threads=2)


def floats(*shape, dtype="float64"):
    return RNG.normal(size=shape).astype(dtype)


def distances(x, y):
    return T.sqr(x[:, None, :] - y[None, :, :]).sum(2)


def attention(q, k, v):
    return T.dot(T.nnet.softmax(T.dot(q, k.T) / 4), v)


def layers(x, w1, w2):
    return T.nnet.softmax(T.dot(T.tanh(T.dot(x, w1)), w2))


#: functions whose large results stay between steps, and shapes of their operands
WHOLE = {
    "kernel sums": (lambda x, y: T.exp(-distances(x, y)).sum(1), (N, D), (M, D)),
    "by columns": (lambda x, y: T.exp(-distances(x, y)).sum(0), (M, D), (N, D)),
    "nearest": (lambda x, y: T.argsort(distances(x, y), 1)[:, :3], (N, D), (M, D)),
    "attention": (attention, (N, 8), (M, 8), (M, 5)),
    "attention to itself": (lambda x: attention(x, x, x), (N, 8)),
    "layers": (layers, (N, 12), (12, 30), (30, 4)),
    "largest of rows": (lambda x, y: T.dot(x, y.T).max(1), (N, D), (M, D)),
    "two results": (lambda x, y: [distances(x, y).min(1), distances(x, y).argmin(1)],
                    (N, D), (M, D)),
    "a result that is needed too": (lambda x, y: [T.dot(T.nnet.softmax(T.dot(x, y)), y.T),
                                                  T.dot(x, y)], (N, D), (D, M)),
}  # fmt: skip
#: functions with totals of all rows
TOTALS = {
    "kernel total": (lambda x, y: T.exp(-distances(x, y)).sum(), (N, D), (M, D)),
    "mean square": (lambda x, y: T.sqr(T.nnet.softmax(T.dot(x, y))).mean(), (N, D), (D, M)),
    "farthest": (lambda x, y: distances(x, y).max(), (N, D), (M, D)),
    "gradient of weights": (lambda x, w1, w2: T.grad(T.sqr(layers(x, w1, w2)).sum(), [w1, w2]),
                            (N, 12), (12, 30), (30, 4)),
    "sum of columns": (lambda x, y: T.nnet.softmax(T.dot(x, y)).sum(0), (N, D), (D, M)),
}  # fmt: skip


def compiled(expression, *values, strip_bytes, **kwargs):
    inputs = [T.as_tensor_variable(value).type.make_variable() for value in values]
    with change_flags(strip_bytes=strip_bytes):
        return theano.function(inputs, expression(*inputs), **kwargs)


def strips_of(f):
    """Return {slot: (rows, of how many)} of the last call."""
    return f.fn.strip_rows()


def as_list(results):
    return results if isinstance(results, list) else [results]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("strip_bytes", [64, 1000])
@pytest.mark.parametrize("name", WHOLE)
def test_results_are_those_of_whole_steps(name, strip_bytes, dtype):
    expression, *shapes = WHOLE[name]
    values = [floats(*shape, dtype=dtype) for shape in shapes]
    whole = compiled(expression, *values, strip_bytes=0)
    cut = compiled(expression, *values, strip_bytes=strip_bytes)
    for _ in range(2):
        for expected, found in zip(as_list(whole(*values)), as_list(cut(*values)), strict=True):
            # products of few rows add up in another order
            atol = np.abs(expected).max() * (1e-6 if dtype == "float32" else 1e-14)
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
            assert found.dtype == expected.dtype and found.strides == expected.strides
    assert strips_of(cut) and not strips_of(whole)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", TOTALS)
def test_totals_are_joined(name, dtype):
    expression, *shapes = TOTALS[name]
    values = [floats(*shape, dtype=dtype) for shape in shapes]
    exact = compiled(expression, *(v.astype("float64") for v in values), strip_bytes=0)
    cut = compiled(expression, *values, strip_bytes=64)
    for expected, found in zip(as_list(exact(*values)), as_list(cut(*values)), strict=True):
        scale = np.abs(expected).max()
        assert np.abs(found - expected).max() <= scale * (2e-6 if dtype == "float32" else 1e-13)
        assert found.dtype == dtype
    assert strips_of(cut)


def test_a_total_of_float32_is_as_exact_as_that_of_a_whole_sum():
    x, y = floats(20000, 1, dtype="float32"), floats(1, 8, dtype="float32")
    cut = compiled(lambda x, y: T.nnet.softmax(T.dot(x, y)).sum(), x, y, strip_bytes=64)
    assert abs(float(cut(x, y)) / 20000 - 1) < 1e-7


def test_nan_and_infinity_stay_in_totals():
    x, y = floats(N, D), floats(M, D)
    x[17, 0] = np.nan
    cut = compiled(lambda x, y: distances(x, y).max(), x, y, strip_bytes=64)
    assert np.isnan(cut(x, y))
    x[17, 0] = np.inf
    assert cut(x, y) == np.inf


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 31, 33])
def test_any_number_of_rows(n):
    x, y = floats(n, D), floats(M, D)
    for expression in (WHOLE["kernel sums"][0], TOTALS["kernel total"][0]):
        whole = compiled(expression, x, y, strip_bytes=0)(x, y)
        found = compiled(expression, x, y, strip_bytes=1)(x, y)
        np.testing.assert_allclose(found, whole, rtol=1e-12)


def test_small_results_are_computed_as_a_whole():
    x, y = floats(N, D), floats(M, D)
    f = compiled(WHOLE["kernel sums"][0], x, y, strip_bytes=N * M * 8 // 8)
    f(x, y)
    assert strips_of(f)
    f(x[: N // 2], y)
    assert not strips_of(f)


def test_arrays_by_columns_are_computed_as_a_whole():
    x, y = floats(N, D), floats(M, D)
    f = compiled(WHOLE["kernel sums"][0], x, y, strip_bytes=64)
    expected = f(x, y)
    np.testing.assert_array_equal(f(np.asfortranarray(x), y), expected)
    assert not strips_of(f)


def test_only_a_strip_of_what_lies_between_is_in_memory():
    x, y = floats(2000, D), floats(1000, D)
    for strip_bytes, most in ((0, None), (1 << 14, 1 << 18)):
        mode = theano.Mode(theano.gof.OpWiseCLinker(allow_gc=False), "fast_run")
        f = compiled(WHOLE["kernel sums"][0], x, y, strip_bytes=strip_bytes, mode=mode)
        f(x, y)
        kept = f.fn.kept_bytes()
        assert kept <= most if most else kept >= 2000 * 1000 * 8
    (between,) = [v for v in f.maker.fgraph.variables if v.type.ndim == 2 and v.owner
                  and not v.owner.op.view_map]  # fmt: skip
    assert f.fn.storage_map[between] == [None]


def test_other_lengths_are_the_error_of_whole_steps():
    x, y = floats(N, D), floats(M, D)
    texts = []
    for strip_bytes in (0, 64):
        f = compiled(lambda x, y: T.exp(-distances(x, y)).sum(1), x, y, strip_bytes=strip_bytes)
        with pytest.raises(ValueError, match="Input dimension mis-match") as error:
            f(x, floats(M, D - 1))
        texts.append(str(error.value).partition("Backtrace")[0])
        assert f(x, y).shape == (N,)
    assert texts[0] == texts[1]


def test_a_step_that_fails_in_a_later_strip_shows_whole_arrays():
    x, w, labels = floats(N, 5), floats(5, 4), RNG.integers(0, 4, N)

    def cost(x, w, labels):
        return T.nnet.categorical_crossentropy(T.nnet.softmax(T.dot(x, w)), labels).sum()

    f = compiled(cost, x, w, labels, strip_bytes=64)
    expected = f(x, w, labels)
    assert strips_of(f)
    wrong = labels.copy()
    wrong[-1] = 4
    with pytest.raises(ValueError, match=r"4") as error:
        f(x, w, wrong)
    assert f"({N}, 4)" in str(error.value)
    assert f(x, w, labels) == expected


def test_a_profile_counts_calls_and_says_how_many_rows_there_are_at_once():
    x, y = floats(2000, D), floats(1000, D)
    with change_flags(profile_memory=True):
        f = compiled(WHOLE["kernel sums"][0], x, y, strip_bytes=1 << 16, profile=True)
    for _ in range(3):
        f(x, y)
    data = f.profile.profile()
    applys = list(data.functions[0].applys)
    assert [a.count for a in applys] == [3] * len(applys)
    said = {a.algorithm: a.why_algorithm for a in applys}
    assert "of 2000 rows at once" in said["strips"]
    assert all(a.total > 0 for a in applys if a.algorithm == "strips")
    assert max(function.memory.peak for function in data.functions) < 2000 * 1000 * 8 / 4


def test_a_given_value_lives_until_the_last_strip():
    x, y = floats(4000, D), floats(M, D)
    f = compiled(lambda x, y: T.exp(-distances(T.sort(x, 0), y)).sum(1), x, y, strip_bytes=1 << 12)
    expected = np.exp(-((np.sort(x, 0)[:, None] - y[None, :, :]) ** 2).sum(2)).sum(1)
    for _ in range(3):
        np.testing.assert_allclose(f(x, y), expected)
    assert strips_of(f)


def test_given_values_are_whole_after_the_call():
    x, y = floats(N, D), floats(M, D)
    mode = theano.Mode(theano.gof.OpWiseCLinker(allow_gc=False), "fast_run")
    f = compiled(
        lambda x, y: T.exp(-distances(T.sort(x, 0), y)).sum(1), x, y, strip_bytes=64, mode=mode
    )
    f(x, y)
    (ordered,) = [v for v, (value,) in f.fn.storage_map.items() if np.shape(value) == (N, D)]
    np.testing.assert_array_equal(f.fn.storage_map[ordered][0], np.sort(x, 0))


def test_a_missing_operand_is_the_error_of_whole_steps():
    x, y = floats(N, D), floats(D, M)
    f = compiled(lambda x, y: T.nnet.softmax(T.dot(x, y)).max(1), x, y, strip_bytes=64)
    f(x, y)
    assert strips_of(f)
    with pytest.raises(ValueError, match="expected an ndarray, not None"):
        f(x, None)


def test_a_child_of_a_process_that_was_in_a_strip_starts_anew():
    program = """
import os, sys, threading, time, warnings
import numpy as np, theano, theano.tensor as T
warnings.simplefilter("ignore")
x, y = T.dmatrices("xy")
kernel = T.exp(-T.sqr(x[:, None, :] - y[None, :, :]).sum(2))
f = theano.function([x, y], [kernel.sum(0), kernel.sum(1)])
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(3000, 2)), rng.normal(size=(2000, 2))
f(X, Y)
thread = threading.Thread(target=lambda: f(np.tile(X, (8, 1)), Y))
thread.start()
time.sleep(0.05)
child = os.fork()
if not child:
    a, b = f(X[:2000], Y)
    d = np.exp(-((X[:2000, None] - Y[None]) ** 2).sum(2))
    os._exit(not (np.allclose(a, d.sum(0)) and np.allclose(b, d.sum(1)) and f.fn.strip_rows()))
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_code_of_users_and_given_orders_run_as_a_whole():
    x, y = floats(N, D), floats(M, D)
    with change_flags(strip_bytes=64):
        a, b = T.dmatrices("ab")
        linker = theano.gof.OpWiseCLinker(schedule=lambda fgraph: fgraph.toposort())
        f = theano.function([a, b], distances(a, b).min(1), mode=theano.Mode(linker, "fast_run"))
    f(x, y)
    assert not strips_of(f)


def test_shared_values_and_updates():
    x, y = floats(N, D), floats(M, D)
    with change_flags(strip_bytes=64):
        a, weights, total = T.dmatrix(), theano.shared(y), theano.shared(0.0)
        cost = T.exp(-distances(a, weights)).sum()
        step = theano.function([a], cost, updates=[
            (weights, weights - 0.01 * T.grad(cost, weights)), (total, total + cost)])  # fmt: skip
    d = x[:, None] - y[None]
    k = np.exp(-(d**2).sum(2))
    np.testing.assert_allclose(step(x), k.sum())
    np.testing.assert_allclose(weights.get_value(), y - 0.01 * (2 * d * k[:, :, None]).sum(0))
    np.testing.assert_allclose(total.get_value(), k.sum())


def test_loops_run_their_steps_in_strips():
    x, ys = floats(N, D), floats(4, M, D)
    with change_flags(strip_bytes=64):
        a, stack = T.dmatrix(), T.dtensor3()
        found, _ = theano.scan(
            lambda y, before: T.exp(-distances(a, y + before.mean())).sum(1),
            sequences=stack, outputs_info=[T.zeros((N,))],
        )  # fmt: skip
        f = theano.function([a, stack], found)
    before = np.zeros(N)
    for y, row in zip(ys, f(x, ys), strict=True):
        before = np.exp(-((x[:, None] - (y + before.mean())[None]) ** 2).sum(2)).sum(1)
        np.testing.assert_allclose(row, before)


def test_no_step_waits_for_one_that_needs_rows_of_others():
    """What needs a mean of all rows first is not in the strip that computes them."""
    x, y = floats(N, D), floats(D, M)

    def centred(x, y):
        scores = T.tanh(T.dot(x, y))
        return T.nnet.softmax(scores - scores.mean(0)).max(1)

    expected = compiled(centred, x, y, strip_bytes=0)(x, y)
    np.testing.assert_allclose(compiled(centred, x, y, strip_bytes=64)(x, y), expected)
