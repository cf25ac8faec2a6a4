"""Loops and branches of Python on traced values."""

import itertools
import math
import sys
from functools import partial

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError
from opwise.graph.traversal import ancestors
from opwise.ifelse import IfElse
from opwise.loops import Scan

pytestmark = pytest.mark.null


def check(function, *cases, signatures=None, **options):
    """Compare a function and its compiled form for several lists of arguments."""
    jitted = opwise.jit(function, **options)
    for case in cases:
        expected_args = [np.copy(a) if isinstance(a, np.ndarray) else a for a in case]
        given = [np.copy(a) if isinstance(a, np.ndarray) else a for a in case]
        expected, result = function(*expected_args), jitted(*given)
        same(expected, result)
        for one, two in zip(expected_args, given, strict=True):
            if isinstance(one, np.ndarray):
                np.testing.assert_allclose(two, one)
    if signatures is not None:
        assert len(jitted.signatures) == signatures, str(jitted.signatures)
    return jitted


def same(expected, result):
    if isinstance(expected, tuple | list):
        assert len(expected) == len(result)
        for one, two in zip(expected, result, strict=True):
            same(one, two)
        return
    if expected is None:
        assert result is None
        return
    assert type(result) is type(expected), (type(result), type(expected))
    assert np.shape(result) == np.shape(expected)
    assert np.asarray(result).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(result, expected)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def test_for_over_range():
    def f(x):
        s = 0
        for i in range(len(x)):
            s += x[i] * i
        return s

    check(f, [normal(20)], [normal(31)], signatures=1)


def test_for_over_rows_and_their_writes():
    def f(x):
        s = np.zeros(x.shape[1])
        for row in x:
            row *= 2
            s += row
        return s

    check(f, [normal(12, 3)], [normal(9, 4)], signatures=1)


def test_enumerate_zip_and_reversed():
    def f(x, y):
        s = 0.0
        for i, (a, b) in enumerate(zip(x, y, strict=False)):
            s += i * a - b
        for a in reversed(x):
            s = s * 0.5 + a
        for i in range(len(x) - 1, -1, -2):
            s += x[i]
        return s

    check(f, [normal(20), normal(20, seed=1)], [normal(21), normal(25, seed=1)])


def test_while():
    def collatz(n):
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            steps += 1
        return steps

    check(collatz, [27], [1], [97], signatures=1)


def test_break_continue_and_else():
    def f(x, limit):
        s, found = 0.0, -1
        for i in range(len(x)):
            if x[i] < 0:
                continue
            s += x[i]
            if s > limit:
                found = i
                break
        else:
            s = -s
        return s, found

    check(f, [normal(50), 4.0], [normal(50), 1e9], [normal(50), -1.0], signatures=1)


def test_early_returns():
    def f(x):
        if x.sum() > 100:
            return 0
        for i in range(len(x)):
            if x[i] > 1:
                return i
            for j in range(i):
                if x[j] + x[i] > 1.5:
                    return i * j
        return -1

    check(f, [normal(30)], [np.zeros(30)], [np.full(30, 50.0)], [-np.ones(10)])


def test_writes_in_loops():
    def f(x):
        for i in range(1, len(x)):
            x[i] += x[i - 1] * 0.5

    check(f, [normal(30)], [normal(11)])


def test_variables_that_exchange_arrays():
    def heat(u, n):
        v = u.copy()
        for _ in range(n):
            v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
            u, v = v, u
        return u * 1

    # the argument holds the last values or those before, as numpy leaves it
    check(heat, *[[normal(30), n] for n in (0, 1, 9, 10)], signatures=1)

    def three(a, n):
        b, c = a * 2, a * 3
        for _ in range(n):
            a[0] += b[1]
            b[1] -= c[0]
            a, b, c = b, c, a
        return a * 1, b * 1, c * 1

    check(three, *[[normal(4), n] for n in range(9)], signatures=1)


def test_an_exchanged_array_may_not_be_changed_afterwards():
    def f(u, n):
        v = u * 0
        for _ in range(n):
            v[0] = u[1]
            u, v = v, u
        u[2] = 7
        return u

    with pytest.raises(TracingError, match="after a loop that lets variables exchange"):
        opwise.jit(f)(normal(10), 20)


def test_an_array_that_is_changed_and_left_behind():
    def f(x, n):
        for _ in range(n):
            x[0] = 1
            x = x * 2
        return x

    check(f, [normal(4), 3])  # written out
    with pytest.raises(TracingError, match="and then gives its variable another one"):
        opwise.jit(f)(normal(4), 3000)


def test_nested_loops_with_branches():
    def lcs(a, b):
        n, m = len(a), len(b)
        table = np.zeros((n + 1, m + 1), dtype=np.int64)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                if a[i - 1] == b[j - 1]:
                    table[i, j] = table[i - 1, j - 1] + 1
                else:
                    table[i, j] = max(table[i - 1, j], table[i, j - 1])
        return table[n, m]

    rng = np.random.default_rng(0)
    check(lcs, [rng.integers(0, 4, 20), rng.integers(0, 4, 25)])


def test_numbers_of_python_in_loops():
    def crc(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc ^ int(byte)
            for _ in range(8):
                if crc & 1:
                    crc = (crc >> 1) ^ 0xEDB88320
                else:
                    crc >>= 1
        return crc ^ 0xFFFFFFFF

    check(crc, [np.random.default_rng(0).integers(0, 256, 30).astype("uint8")])


def test_complex_numbers_and_while_in_for():
    def mandelbrot(re, im, most):
        out = np.zeros((len(re), len(im)), dtype=np.int64)
        for i in range(len(re)):
            for j in range(len(im)):
                z, c, n = 0j, re[i] + 1j * im[j], 0
                while abs(z) <= 2 and n < most:
                    z = z * z + c
                    n += 1
                out[i, j] = n
        return out

    check(mandelbrot, [np.linspace(-2, 1, 12), np.linspace(-1, 1, 11), 30])


def test_branches():
    def f(x, y):
        z = x if x.sum() > y.sum() else y
        if (z[0] > 0 and z[1] > 0) or not z[2] > 0:
            z = z + 1
            part = z[:2]
        elif 0 < z[1] < 2:
            z = z * 2
            part = z[:2]
        else:
            part = x[:2]
            z = -z
        return z, part

    cases = [[normal(3, seed=k), normal(3, seed=k + 9)] for k in range(8)]
    check(f, *cases, signatures=1)


def test_branches_write_arrays():
    def f(x, flag):
        if flag > 0:
            x[0] = 5
        else:
            x[1:] *= 2
        return x.sum()

    check(f, [normal(4), 1.0], [normal(4), -1.0], signatures=1)


def test_conditions_on_lengths_are_decided_when_tracing():
    def f(x):
        if x.shape[0] > 3:
            return x[:3]
        return x

    def g(x):
        return f(x) * 1

    check(g, [normal(5)], [normal(2)], [normal(7)], signatures=2)


def test_only_the_taken_branch_runs():
    def f(x, i):
        if i < len(x):
            return x[i]
        return x[0]

    check(f, [normal(4), 2], [normal(4), 7], signatures=1)

    def g(x, i):
        return x[i] if i < len(x) and x[i] > 0 else 0.0

    for i in (2, 9):
        assert opwise.jit(g)(normal(4), i) == g(normal(4), i)


def test_helpers_are_converted():
    def clipped(a, low):
        if a < low:
            return low * 1.0
        return a

    def f(x, low):
        s = 0.0
        for a in x:
            s += clipped(a, low)
        return s

    check(f, [normal(20), 0.1], [normal(30), -0.5])


def test_closures_and_lambdas():
    scale = 3.0

    def f(x):
        def g(a):
            if a > 0:
                return a * scale
            return a

        h = lambda a: a + 1 if a > 0 else a - 1  # noqa: E731
        return g(x[0]) + h(x[1])

    check(f, [normal(3)], [-normal(3)])


def test_functions_of_math():
    def f(x):
        s = 0.0
        for i in range(len(x)):
            s += math.sqrt(abs(x[i])) + math.exp(-i) * math.sin(x[i])
        return s, math.floor(s), int(s), float(x[0]), round(s)

    jitted = opwise.jit(lambda x: f(x)[:4])
    same(f(normal(20))[:4], jitted(normal(20)))


def test_arrays_that_the_function_makes():
    def f(n, x):
        a = np.zeros(n)
        b = np.ones((n, 2), dtype=np.int32)
        c = np.arange(n)
        d = np.array([x, 1.0, 2])
        e = np.eye(3)
        e[0, 1] = d[0]
        a[1:] = c[:-1]
        return (
            a,
            b,
            c,
            d,
            e,
            np.full(2, x),
            np.arange(0, n, 2),
            np.empty(3).shape,
            np.linspace(0, 1, 5),
        )

    check(f, [5, 2.5], [7, 1.5])


def test_lists_of_arrays_of_other_shapes_are_written_out():
    def f(x):
        parts = []
        for i in range(len(x)):
            parts.append(x[:i] * i)
        return np.concatenate(parts)

    check(f, [normal(12)], [normal(13)], signatures=2)


def test_a_variable_of_one_branch():
    def f(x):
        if x.sum() > 0:
            y = x
        return y

    compiled = opwise.jit(f)
    same(f(np.ones(3)), compiled(np.ones(3)))
    with pytest.raises(UnboundLocalError, match="variable 'y' where it is not associated"):
        compiled(-np.ones(3))


def test_branches_that_differ_divide_the_calls():
    def f(x):
        if x.sum() > 0:
            y = x
        else:
            y = x[:1]
        return y

    g = opwise.jit(f)
    for x in (np.ones(3), -np.ones(3), np.ones(4), -np.ones(5), np.ones(2)):
        assert np.array_equal(g(x), f(x))
    assert len(g.signatures) == 2

    def mixed(arrays):
        kept = []
        for x in arrays:
            if x.sum() > 1:
                kept.append(x.astype(int))
            else:
                kept.append("none")
        return kept

    g = opwise.jit(mixed)
    for scales in ((1, 0), (0, 1), (1, 1), (0, 0), (0, 1)):
        arrays = [s * np.ones(3) for s in scales]
        for a, b in zip(g(arrays), mixed(arrays), strict=True):
            assert type(a) is type(b) and np.array_equal(a, b)


def test_branches_that_differ_in_loops_are_an_error_with_the_line():
    def f(x, n):
        y = x
        for _ in range(n):
            if x.sum() > 0:
                y = x
            else:
                y = x.astype(int)
        return y

    with pytest.raises(TracingError, match="y has dtype float64 in one and int64") as caught:
        opwise.jit(f)(normal(3), 5000)
    assert "if x.sum() > 0:" in str(caught.value)


def test_loops_that_change_shapes():
    def f(x, n):
        for _ in range(n):
            x = np.concatenate([x, x[:1]])
        return x

    check(f, [normal(3), 4])
    with pytest.raises(TracingError, match="x has another shape after a step"):
        opwise.jit(f)(normal(3), 5000)


def test_random_functions_are_refused():
    def f(x):
        return x + np.random.rand()

    with pytest.raises(TracingError, match="gives another value in each call"):
        opwise.jit(f)(normal(3))


def test_arrays_of_others_are_read_only():
    table = np.arange(5.0)

    def f(x, i):
        return x + table[i] + table[:1]

    check(f, [normal(3), np.array([1, 0, 4])], [normal(3), 2])

    held = (table,)

    def g(x):
        held[0][0] = x[0]
        return x

    with pytest.raises(TracingError, match="did not make, and that is no argument"):
        opwise.jit(g)(normal(3))


def test_arrays_of_variables_outside_are_changed():
    table = np.arange(5.0)

    def f(x):
        table[0] += x[0]
        return table.sum()

    compiled = opwise.jit(f)
    assert [compiled(np.ones(2)) for _ in range(3)] == [11, 12, 13]
    assert table[0] == 3


def test_the_text_that_is_traced():
    def f(x):
        for i in range(len(x)):
            if x[i] > 0:
                x[i] = 0
        return x

    text = opwise.jit(f).converted
    assert "ow.for_statement" in text and "ow.if_statement" in text


def test_errors_name_the_lines_of_the_function():
    def f(x, i):
        y = x + 1
        for k in range(len(x)):
            y[k] = x[i]
        return y

    with pytest.raises(IndexError) as caught:
        opwise.jit(f)(normal(20), 40)
    assert "y[k] = x[i]" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


def test_an_element_beyond_the_end_is_an_error_that_says_so():
    def f(x, n):
        s = 0.0
        for i in range(n):
            s += x[i + 1]
        return s

    compiled = opwise.jit(f)
    assert compiled(np.arange(5.0), 4) == 10
    with pytest.raises(IndexError, match="out of bounds") as caught:
        compiled(np.arange(5.0), 5)
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "A step of the loop reads beyond the end of x: its range, or" in text
    assert "s += x[i + 1]" in text


def test_while_over_arrays():
    def newton(a):
        x, n = a, 0
        while np.abs(x * x - a).max() > 1e-10 and n < 50:
            x = 0.5 * (x + a / x)
            n += 1
        return x, n

    check(newton, [np.array([2.0, 3.0, 100.0])], [np.array([1.0, 1.0, 1.0])])


def test_a_branch_changes_an_array_that_it_made():
    def f(y, v, s):
        if s > 1:
            y = np.negative(y)
            y[::-1, ::-1] += y
        return y * 1, y + v

    check(f, [normal(4, 4), normal(4), 2.0], [normal(4, 4), normal(4), 0.0], signatures=1)


def test_arrays_that_may_be_shared_since_a_branch():
    def f(x, v):
        a = x * 1
        if x[0] > 0:
            a = v
        v[0] = 7
        return a

    with pytest.raises(TracingError, match="may share with another one since an if"):
        opwise.jit(f)(normal(3), normal(3))

    def g(x, v):
        part = x[:2] * 1
        if x[0] > 0:
            x[0] = 5
            part = x[:2]
        return part + x[1:]

    check(g, [normal(3), normal(3)], [-normal(3), normal(3)])


def test_arrays_that_may_be_shared_since_a_loop():
    def f(x, y, n):
        for _ in range(n):
            x, y = y, x
        y[0] = 1
        return y

    with pytest.raises(TracingError, match="may share with another one since a loop"):
        opwise.jit(f)(normal(3), normal(3), 20)

    def g(x, n):
        y = x * 1
        for k in range(n):
            x[k % 3] = y[0] + 1
            y = x
        return y * 1

    with pytest.raises(TracingError, match="two variables have an array that its steps change"):
        opwise.jit(g)(normal(3), 3000)
    check(g, [normal(3), 9])


def test_a_loop_without_steps_need_not_fit():
    def f(x, n):
        for _ in range(n):
            x = x[:, 0] + x[5]
        return x * 1

    check(f, [normal(3), 0])


def test_element_writes_in_branches():
    def f(x, y):
        for i in range(1, len(x)):
            if x[i] > 0:
                y[i] = x[i]
                y[i - 1] = y[i] + y[0]
            elif x[i] < -1:
                y[i] = -1
            else:
                y[0] += x[i - 1]
        return y.sum()

    check(f, [normal(40), normal(40, seed=1)], [normal(23), normal(23, seed=1)], signatures=1)


def test_numbers_of_python_in_float32_loops():
    def f(x):
        s, t = 0.0, 0.1
        for v in x:
            if v > 0:
                s += v
            t = t * v
        return s, t

    jitted = opwise.jit(f)
    with pytest.raises(TracingError, match=r"t is 0\.1 before"):
        jitted(normal(3000).astype("float32"))

    def g(x):
        s = 0.0
        for v in x:
            if v > 0:
                s += v
        return s

    check(g, [np.abs(normal(20)).astype("float32")])


def test_profile_by_line(tmp_path):
    def f(x):
        y = np.tanh(x) * 2
        return np.sort(y).sum()

    jitted = opwise.jit(f, profile=True)
    jitted(normal(30))
    jitted.profile.report(str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "return np.sort(y).sum()" in text and "y = np.tanh(x) * 2" in text


def test_a_profile_that_is_asked_for_later():
    def f(x):
        y = np.tanh(x) * 2
        return np.sort(y).sum()

    jitted = opwise.jit(f)
    expected = jitted(normal(30))
    with pytest.warns(UserWarning, match="calls of f until now are not in its profile"):
        stats = jitted.profile
    assert jitted(normal(30)) == expected
    jitted(normal(40))
    assert jitted.profile is stats and stats.fct_callcount == 2
    assert len(jitted.signatures) == 1
    assert opwise.jit(f).profile.fct_callcount == 0  # without a warning


def test_a_profile_of_the_mode():
    """PROFILE_MODE records from the first call on, and functions are not compiled again."""

    def f(x):
        return np.sort(np.tanh(x) * 2).sum()

    jitted = opwise.jit(f, mode=opwise.ProfileMode())
    for n in (30, 40):
        jitted(normal(n))
    jitted(np.ones((3, 3)))
    assert jitted.profile.fct_callcount == 3 and len(jitted.signatures) == 2


def test_a_loop_without_steps_in_a_branch():
    def f(x, a):
        if x[0] > 0:
            a = a + 1
        else:
            c = 0
            while c < 7 and x[c] < a:
                c += 1
                a = a * 0.5
            if x[1] < a:
                return a * x[1]
        return a + x[2]

    cases = [[normal(9, seed=k), -1.0 + 0.5 * k] for k in range(6)]
    check(f, *cases, signatures=1)


def test_arrays_that_are_exchanged_in_a_branch_of_a_loop():
    def f(x, y):
        for i in range(len(x)):
            if x[i] > 0:
                x, y = y, x
        x[0] = 7.0
        return y * 1

    with pytest.raises(TracingError, match="may share with another one since an if"):
        opwise.jit(f)(normal(12), normal(12, seed=1))


def scans(jitted):
    """Return the loops of the functions that were compiled, without those inside loops."""
    return [
        node.op
        for signature in jitted.signatures
        for node in signature.compiled.maker.fgraph.apply_nodes
        if isinstance(node.op, Scan)
    ]


def test_ranges_whose_steps_are_computed():
    def f(x, step):
        s = 0
        for i in range(1, len(x)):
            for j in range(i * i, len(x) * 9, i):
                s += j * x[i]
            for j in range(len(x), -2 * i, -i - x[i] % 2):
                s = s * 3 + j
            s %= 1000003
        for i in range(0, len(x) * 5, step):
            s += i
        for i in range(len(x), -4, -step):
            s = s * 2 + i
        return s

    x = np.arange(12) % 5
    check(f, [x, 3], [x[:10].copy(), 7], [x, 1], signatures=1)
    jitted = check(f, [x, -3], [x, -40], signatures=1)
    with pytest.raises(ValueError, match="must not be zero"):
        jitted(x, 0)


def test_a_range_whose_computed_step_is_zero_is_empty():
    @opwise.jit
    def f(x):
        s = 0
        for i in range(len(x)):
            for j in range(0, 10, x[i]):
                s += j
        return s

    assert f(np.array([0] * 10 + [5, -5])) == 5


def test_while_true():
    def f(x, limit):
        i, s = 0, 0.0
        while True:
            s += x[i]
            if s > limit:
                return i, s
            i += 1
            if i == len(x):
                break
        return -1, s

    x = np.abs(normal(20))
    jitted = check(f, [x, 3.0], [x, 1e9], [x[:9].copy(), 0.0], signatures=1)
    assert len(scans(jitted)) == 1


def test_while_true_of_python_and_of_values():
    def f(x):
        k, found = 0, []
        while True:
            found.append(x[k])
            k += 1
            if k == 3:
                break
        while True:
            k += 1
            if k == 5:
                break
            if k > 3 and x.sum() > k:
                k = k * 100
                break
        return found, k

    check(f, [np.ones(3)], [np.ones(9)])


def test_a_while_loop_whose_first_step_changes_what_its_variables_are():
    def f(x, n):
        best = None
        k = 0
        while True:
            best = x * k if best is None else np.maximum(best, x * (k % 5))
            k += 1
            if k >= n or best.sum() > 1e9:
                break
        return best, k

    check(f, [normal(4), 7], [normal(4), 1], [normal(4), 30])


def test_variables_that_nothing_reads_afterwards():
    def f(x, n):
        t, u, i = "before", None, 0.5
        for i in range(1, len(x)):
            if x[i] > x[i - 1]:
                t = x[i]
                x[i] = x[i - 1]
                x[i - 1] = t
                u = i
            else:
                t = 0
                u = x  # noqa: F841
        for j in range(n):
            for i in range(j):
                t = (x[i], j)
                x[i] = t[0] + t[1]
        return x.sum()

    check(f, [normal(20), 4], [normal(13), 9], signatures=1)


def test_loops_have_no_states_that_nothing_reads():
    def f(x):
        count, s, flag, last = 0, 0.0, False, 0
        for i in range(len(x)):
            count += 1
            if x[i] < 0:
                flag = True
                continue
            last = i  # noqa: F841
            s = s * 0.5 + x[i]
        return s, flag

    jitted = check(f, [normal(20)], [normal(30)], signatures=1)
    (loop,) = scans(jitted)
    assert len(loop.layout.taps) == 2


def test_loops_that_always_break():
    def f(x):
        s = 0.0
        while x.sum() > s:
            s += 1
            break
        for i in range(len(x)):
            s += x[i]
            break
        while True:
            for a in x:
                s += a
            break
        return s

    check(f, [np.ones(9)], [-np.ones(12)])


def choices(op):
    """Return how many choices between branches the step of a loop has, and loops inside it."""
    nodes = {var.owner for var in ancestors(list(op.step_outputs.flat())) if var.owner is not None}
    inside = sum(choices(node.op) for node in nodes if isinstance(node.op, Scan))
    return inside + sum(bool(node.op.branches) for node in nodes)


def test_branches_that_write_what_their_test_has_read_are_no_choices():
    def swap(x):
        for j in range(len(x) - 1):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]

    def shorten(d, k):
        for i in range(d.shape[0]):
            for j in range(d.shape[1]):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]

    def table(t, w):
        for c in range(1, len(t)):
            t[c] = t[c - 1]
            if w[c] > 0:
                t[c] += 1
            else:
                t[c] -= t[c - 1] * 0.5

    for function, given in (
        (swap, [normal(20)]),
        (shorten, [np.abs(normal(9, 9)), 3]),
        (table, [np.zeros(12), normal(12)]),
    ):
        jitted = check(function, given, signatures=1)
        assert [choices(loop) for loop in scans(jitted)] == [0]


def test_branches_that_are_not_taken_need_no_elements():
    def f(x, i):
        s = 0.0
        for j in range(12):
            k = i + j
            if k < len(x) and x[k] > 0:
                x[k], x[0] = x[0], x[k]
            elif k < len(x):
                x[k] = 0.5
            if k < len(x):
                s += x[k]
        return s

    check(f, [normal(5), 0], [normal(9), 4], [normal(40), 3], signatures=1)


def test_the_flag_that_ends_a_loop_is_no_state():
    def f(x):
        s = 0.0
        for a in x:
            s += a
            if s > 3:
                break
        else:
            s = -s
        for a in x:
            s *= a
            if s > 9:
                break
        return s

    jitted = check(f, [np.ones(12)], [-np.ones(15)], [np.full(20, 4.0)], signatures=1)
    # the last one has the sum, and the number of its step
    assert sorted(len(loop.layout.taps) for loop in scans(jitted)) == [2, 3]


def positive_root(x):
    if (x < 0).any():
        raise ValueError(f"the least is {float(x.min()):.1f}")
    assert x.sum() < 100, "too much"
    return np.sqrt(x)


def steps_below(x, least):
    total = 0.0
    for value in x:
        total = total + value
        if total < least:
            raise OverflowError(f"{total} after a step")
    return total


def halvings(x):
    count = 0
    while x > 1:
        x = x / 2
        count += 1
        if count > 20:
            raise RuntimeError(f"not after {count} steps")
    return count


def element(x, k):
    if k >= len(x):
        raise KeyError(k)
    return x[k]


def solved(a, b):
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError as error:
        return np.zeros(len(b)), str(error)


ERRORS = [
    (positive_root, [(np.ones(3),), (-np.ones(3),), (99 * np.ones(3),)]),
    (steps_below, [(np.ones(3), -1.0), (-np.ones(12), -1.0)]),
    (halvings, [(100.0,), (1e9,)]),
    (element, [(np.arange(3.0), 1), (np.arange(3.0), 3)]),
    (solved, [(np.eye(2), np.ones(2)), (np.zeros((2, 2)), np.ones(2))]),
]


@pytest.mark.parametrize("function,calls", ERRORS, ids=[f.__name__ for f, _ in ERRORS])
def test_errors_that_values_decide_are_those_of_numpy(function, calls):
    compiled = opwise.jit(function)
    for args in calls:
        outcomes = []
        for run in (function, compiled):
            try:
                outcomes.append(run(*args))
            except Exception as error:
                outcomes.append((type(error), str(error)))
        assert str(outcomes[0]) == str(outcomes[1])
    assert len(compiled.signatures) == 1


def test_an_error_takes_back_the_draws_and_leaves_arguments():
    def f(x, rng):
        x += 1
        drawn = rng.normal(size=2)
        if x.max() < 0:
            raise ValueError(f"drew {drawn}")
        return drawn

    compiled, messages = opwise.jit(f), []
    for run in (f, compiled):
        with pytest.raises(ValueError) as caught:
            run(np.full(2, -5.0), np.random.default_rng(3))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_except_does_not_hide_what_cannot_be_traced():
    def f(x):
        try:
            return np.busday_count(x, x)
        except Exception:
            return x

    with pytest.raises(TracingError, match="busday_count"):
        opwise.jit(f)(np.ones(2))


def test_powers_of_ints_that_values_decide():
    def f(x):
        return 2 ** int(x.sum()), 3 ** len(x)

    compiled = opwise.jit(f)
    for n in (3, -2, 0):
        expected, result = f(np.array([n / 2, n / 2])), compiled(np.array([n / 2, n / 2]))
        assert [type(v) for v in result] == [type(v) for v in expected]
        assert result == expected
    assert len(compiled.signatures) == 1


def sums_by_a_closure(x):
    total = 0.0

    def add(value):
        nonlocal total
        total = total + value
        return total

    for row in x:
        add(row.sum())
    if x[0, 0] > 0:
        add(x[0, 0])
    else:
        add(-x[0, 0] * 2)
    return total


def sums_by_an_object(x):
    class Total:
        def __init__(self):
            self.value = 0.0

        def add(self, value):
            self.value = self.value + value
            return self

    total = Total()
    for row in x:
        total.add(row.sum())
    return total.value


def texts_and_keys(x):
    sizes = {x.shape[0]: "rows", x.shape: "shape"}
    return sizes[len(x)], str(x.shape), "%d x %d" % x.shape, f"{x.shape}", len({*x.shape, len(x)})


@pytest.mark.parametrize("function", [sums_by_a_closure, sums_by_an_object, texts_and_keys])
def test_what_python_keeps(function):
    compiled = opwise.jit(function)
    for x in (normal(3, 4), -np.abs(normal(3, 4)), normal(12, 2)):
        expected, result = function(x), compiled(x)
        if isinstance(expected, tuple):
            assert expected == result
        else:
            assert np.isclose(expected, result)


def test_errors_of_lengths_that_values_decide():
    def means(x, labels):
        return {k: x[labels == k].mean() for k in np.unique(labels)}

    def by_label(x, labels):
        found = {}
        for k in np.unique(labels):
            found[int(k)] = x[labels == k].mean()
        return found

    given = normal(4), np.array([0, 1, 0, 1])
    with pytest.raises(TracingError, match="whose length depends on values in arrays") as caught:
        opwise.jit(means)(*given)
    assert "for k in np.unique(labels)}" in str(caught.value)
    with pytest.raises(TracingError, match="Make an array before it, and assign its elements"):
        opwise.jit(by_label)(*given)


# --- functions that call themselves ---------------------------------------------------------------


def doubled(a, times):
    return a if times == 0 else doubled(a * 2, times - 1)


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def transform(x):
    n = len(x)
    if n <= 1:
        return x
    even, odd = transform(x[::2]), transform(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


def branching(x, depth):
    if depth == 0 or x.sum() < 0.5:
        return x
    return branching(x * 0.5, depth - 1) + branching(x * 0.25, depth - 1)


@pytest.mark.parametrize("function, calls", [
    (doubled, [(np.ones(3), 3), (np.ones(3), 5), (np.ones(3), 0), (np.ones(3), 3)]),
    (fibonacci, [(9,), (1,)]),
    (transform, [(np.arange(8.0),), (np.arange(4.0),)]),
    (branching, [(np.ones(3), 3), (np.ones(3) * 0.1, 3)]),
], ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
def test_ints_decide_how_often_a_function_calls_itself(function, calls):
    compiled = opwise.jit(function)
    for arguments in calls:
        np.testing.assert_allclose(compiled(*arguments), function(*arguments))


@pytest.mark.parametrize("limit", [1000, 20_000])
def test_a_branch_that_is_not_taken_may_call_itself_without_end(limit, request):
    request.addfinalizer(partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(limit)
    compiled = opwise.jit(doubled)
    np.testing.assert_array_equal(compiled(np.ones(3), 0), np.ones(3))
    np.testing.assert_array_equal(compiled(np.ones(3), 2), np.full(3, 4.0))


def test_values_do_not_decide_how_often_a_function_calls_itself():
    def halved(x):
        if x.sum() < 1:
            return x
        return halved(x / 2)

    with pytest.raises(TypeError, match="calls itself as often as values") as raised:
        opwise.jit(halved)(np.ones(4))
    assert "if x.sum() < 1:" in str(raised.value)
    assert "Write a loop" in str(raised.value)


# --- arrays whose lengths steps change ------------------------------------------------------------


def triangle(v, steps):
    for _ in range(steps):
        v = np.maximum(0.4 * v[1:] + 0.5 * v[:-1], -0.2)
    return v


def grown(x, steps):
    for k in range(steps):
        x = np.concatenate((x, 0.5 * x[-2:] + k))
    return x


@pytest.mark.parametrize(("function", "length"), [(triangle, 250), (grown, 3)])
def test_arrays_whose_lengths_steps_change_are_variables_of_a_loop(function, length):
    jitted = check(function, (normal(length), 200), (normal(length + 1), 12), signatures=1)
    (signature,) = jitted.signatures
    nodes = signature.compiled.maker.fgraph.toposort()
    assert sum(isinstance(node.op, Scan) for node in nodes) == 1
    assert len(nodes) < 30


@pytest.mark.parametrize(("function", "length"), [(triangle, 20), (grown, 3)])
def test_gradients_of_arrays_whose_lengths_steps_change(function, length):
    def loss(x):
        return (function(x, 12) ** 2).sum()

    x = normal(length)
    by_differences = [(loss(x + h) - loss(x - h)) / 2e-6 for h in np.eye(length) * 1e-6]
    np.testing.assert_allclose(opwise.grad(loss)(x), by_differences, rtol=1e-5, atol=1e-7)


def test_an_array_that_a_loop_shortens_shares_memory_after_it():
    def f(x, steps):
        y = x
        for _ in range(steps):
            y = y[1:]
        y[0] = 7.0
        return x

    with pytest.raises(TracingError, match="changed in place"):
        opwise.jit(f)(normal(40), 20)


def test_steps_that_cut_off_more_than_there_is_run_in_numpy():
    check(triangle, (normal(40), 20), (normal(20), 20), (normal(15), 20), signatures=1)


def steps_of(op):
    """Return the Ops in the step of a loop, and in those of loops inside it."""
    nodes = {var.owner for var in ancestors(list(op.step_outputs.flat())) if var.owner is not None}
    return [inner for node in nodes for inner in (steps_of(node.op) if isinstance(node.op, Scan)
                                                  else [node.op])]  # fmt: skip


def test_what_stands_before_a_loop_is_computed_before_it():
    """Even if only a branch of its steps reads it."""

    def f(x, which):
        large = x[:, None][:] ** 2 + x[:, None] > 1.0
        chosen = x[which]
        count = large.sum(1)
        total = 0.0
        for i in range(len(x)):
            if x[i] > 0:
                for j in range(len(which)):
                    if count[i] >= 1 and chosen[j] > x[i]:
                        total += chosen[j]
        return total

    x, which = normal(12), np.arange(11, 0, -1)
    (loop,) = scans(check(f, (x, which), (-x, which), signatures=1))
    inside = " ".join(map(str, steps_of(loop)))
    assert "Subtensor{int64}" in inside
    assert "AdvancedSubtensor" not in inside
    assert "Sum" not in inside


# --- values of earlier steps ----------------------------------------------------------------------


def wave(u, c, steps):
    before, now = u.copy(), u.copy()
    for _ in range(steps):
        after = np.zeros_like(now)
        after[1:-1] = 2 * now[1:-1] - before[1:-1] + c * (now[2:] - 2 * now[1:-1] + now[:-2])
        before, now = now, after
    return now, before


def exchanged(u, c, steps):
    dx = u[1] - u[0]
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] + c * (u[2:] - 2 * u[1:-1] + u[:-2]) / (1 + dx * dx)
        u, v = v, u
    return u, v


def third_order(u, c, steps):
    x, y, z, k = u, u * 2, u * 3, 0
    while k < steps and x.sum() < 1e6:
        x, y, z = c * (x + y) - z[::-1], x, y
        k += 1
    return x, y, z, k


@pytest.mark.parametrize(
    ("function", "taps"), [(wave, (2, 1)), (exchanged, (2, 1)), (third_order, (3, 2, 1))]
)
def test_values_of_earlier_steps_are_not_copied(function, taps):
    u = normal(12)
    jitted = check(function, (u, 0.3, 20), (u, 0.3, 1), (u, 0.3, 2), (u, 0.3, 0), (-u, 0.2, 13))
    for loop in scans(jitted):
        assert set(taps) in map(set, loop.layout.taps)
    if function is third_order:  # the derivative of a while needs to know how many steps it takes
        return

    def loss(x):
        return (function(x + 0.0, 0.3, 9)[0] ** 2).sum()

    by_differences = [(loss(u + h) - loss(u - h)) / 2e-6 for h in np.eye(12) * 1e-6]
    np.testing.assert_allclose(opwise.grad(loss)(u), by_differences, rtol=1e-5, atol=1e-7)


# --- arrays whose length steps and branches decide ------------------------------------------------


def ascending(x):
    kept = []
    while len(x) > 0:
        kept.append(x[0])
        x = x[1:][x[1:] > x[0]]
    return kept


def above_means(x, n):
    for _ in range(n):
        x = x[x > x.mean()] if len(x) > 2 else x
    return x, len(x)


def primes(n):
    rest, found = np.arange(2, n), []
    while rest.size:
        first = rest[0]
        found.append(first)
        rest = rest[rest % first != 0]
    return np.array(found)


def selected(x, k):
    while True:
        pivot = x[len(x) // 2]
        low, high = x[x < pivot], x[x > pivot]
        equal = len(x) - len(low) - len(high)
        if k < len(low):
            x = low
        elif k < len(low) + equal:
            return pivot
        else:
            k -= len(low) + equal
            x = high


def near(points, share):
    count = 0
    while points.shape[0] > 1:
        far = ((points - points.mean(0)) ** 2).sum(1)
        points = points[far < share * far.max()]
        count += 1
    return count, points


def grows(x, n):
    for _ in range(n):
        x = np.unique(np.concatenate([x, 2 * x, x + 1]))
        x = x[x < 50]
    return x


def counts_steps(x):
    steps = 0
    while len(x) > 0:
        steps += 1
        x = x[1:][x[1:] > x[0]]
    return steps


@pytest.mark.parametrize(
    ("f", "cases"),
    [
        (ascending, [(normal(40),), (np.arange(10.0),), (np.arange(3.0),)]),
        (above_means, [(normal(50), 12), (normal(300), 20)]),
        (primes, [(60,), (100,)]),
        (selected, [(normal(60), 17), (normal(31), 0)]),
        (near, [(normal(90).reshape(30, 3), 0.9)]),
        (grows, [(np.arange(3), 12), (np.arange(40), 9)]),
        (counts_steps, [(normal(40),), (np.arange(20.0),)]),
    ],
)
def test_arrays_whose_length_steps_decide(f, cases):
    g = opwise.jit(f)
    for args in cases:
        expected, result = f(*args), g(*args)
        if not isinstance(expected, tuple):
            expected, result = (expected,), (result,)
        for a, b in zip(expected, result, strict=True):
            assert type(a) is type(b) and np.array_equal(a, b)


def test_a_branch_decides_a_length():
    def f(x):
        y = x[x > 0] if x[0] > 0 else x[x < 0.5]
        return len(y), y, np.ones(len(y))

    g = opwise.jit(f)
    for x in (normal(10), -np.abs(normal(10)), np.abs(normal(10, seed=1))):
        for a, b in zip(f(x), g(x), strict=True):
            assert np.array_equal(a, b)
    assert len(g.signatures) == 1


def test_numbers_in_conditions():
    def f(x, y):
        count = 0
        for i in range(len(x)):
            if x[i] and not y[i]:
                count += 1
            if not (x[i] or y[i]):
                count += 10
            while x[i] and count % 3:
                count += 1
            count += 1 if (x[i] or count > 3) and y[i] else 2
        return count, [v for v in x if v and v > 1]

    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 3, 30), rng.integers(0, 2, 30)
    for args in ((x, y), (x.astype(float), y.astype(np.int8))):
        assert opwise.jit(f)(*args) == f(*args)


def filled(image, new):
    image = image.copy()
    old = image[0, 0]
    if old == new:
        return image
    stack = [(0, 0)]
    while stack:
        i, j = stack.pop()
        if 0 <= i < image.shape[0] and 0 <= j < image.shape[1] and image[i, j] == old:
            image[i, j] = new
            stack.extend([(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)])
    return image


def test_an_array_is_returned_early_and_changed_otherwise():
    image = np.random.default_rng(3).integers(0, 2, (12, 12))
    check(filled, [image, 7], [image, int(image[0, 0])], [np.zeros((9, 9), int), 2])

    def changed(x, k):
        y = x.copy()
        if k > 3:
            return y
        y[0] = 9
        if y[1] > 0:
            return y
        y[1:] += 1
        return y

    check(changed, [normal(5), 3], [normal(5), 4], [np.abs(normal(5)), 2], [-np.abs(normal(5)), 2])

    def shared(x):
        y, z = x.copy(), np.zeros(5)
        if x[0] > 0:
            y[0] = 5
            z = y
        y[1] = 7
        return y, z

    with pytest.raises(TracingError, match="may share with another one since an if"):
        opwise.jit(shared)(np.ones(5))


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def halved(low, high, tolerance):
    def part(a, b, whole):
        middle = (a + b) / 2
        one, two = math.sin(middle) * (middle - a), math.sin(b) * (b - middle)
        if abs(one + two - whole) < tolerance:
            return one + two
        return part(a, middle, one) + part(middle, b, two)

    return part(low, high, math.sin(high) * (high - low))


def test_functions_that_call_themselves():
    g = opwise.jit(fibonacci)
    assert [g(n) for n in (1, 7, 40)] == [1, 13, 102334155]
    with pytest.raises(TracingError, match="calls itself as often as values"):
        opwise.jit(halved)(0.0, 3.0, 1e-3)


def test_loops_over_iterators():
    def numbers():
        k = 0
        while True:
            yield k
            k += 2

    def added(n):
        total = 0
        for k in numbers():
            if k > n:
                break
            total += k
        for k in itertools.count(1):
            if k > n:
                break
            total -= k
        return total

    for n in (5, 12, 5):
        assert opwise.jit(added)(n) == added(n)

    def above(x):
        for k in itertools.count():
            if x[k] > 1:
                break
        return k

    with pytest.raises(TracingError, match="A loop over an iterator"):
        opwise.jit(above)(np.arange(4.0))


def test_loops_over_constants_are_loops():
    constants = np.linspace(0, 1, 40)

    def added(x):
        total = 0.0
        for i, c in enumerate(constants):
            for a, b in zip(constants, x, strict=True):
                total += c * a * b + i
        return total, list(enumerate(constants))[3]

    g = opwise.jit(added)
    assert np.allclose(np.hstack(g(normal(40))), np.hstack(added(normal(40))))
    assert "scan_fn" in str(g.signatures[0].compiled.maker.fgraph.apply_nodes)


def test_a_side_that_is_refused_runs_in_numpy_and_is_listed():
    def shown(x):
        if x.sum() > 0:
            return x * 2
        return ", ".join(f"{v:.1f}" for v in x)

    jitted, x = opwise.jit(shown), np.array([1.0, 2.0])
    for given in (x, -x, x, -x):
        result = jitted(given)
        assert type(result) is type(shown(given))
        np.testing.assert_array_equal(result, shown(given))
    compiled, in_numpy = jitted.signatures
    assert in_numpy.is_in_numpy and not compiled.is_in_numpy
    assert "in numpy: A text that the function returns" in str(in_numpy)


# --- arrays that branches of loops change ---------------------------------------------------------


def kept_where_large(x, y):
    """A step sorts, which no C function of a loop does; its branch writes elements of its own."""
    found, count = np.zeros(len(x)), 0
    for i in range(len(x)):
        row = np.sort(x[i])
        if row[0] > 0.2 and y[i] > 0:
            found[count] = row[-1] * y[i]
            count += 1
    return found, count


def kept_of_sorted(x, y):
    """What sorts stands before the loop."""
    rows = np.sort(x)
    found, count = np.zeros(len(x)), 0
    for i in range(len(x)):
        if rows[i, 0] > 0.2 and y[i] > 0:
            found[count] = rows[i, -1] * y[i]
            count += 1
    return found, count


@pytest.mark.parametrize(
    ("function", "mode", "chooses"),
    [
        (kept_where_large, None, False),
        (kept_of_sorted, None, True),
        (kept_of_sorted, "FAST_COMPILE", False),
    ],
)
def test_writes_are_joined_where_the_vm_runs_the_steps(function, mode, chooses):
    """A choice between arrays would copy one in each step."""
    x, y = np.random.default_rng(0).random((2, 30, 4))
    compiled = opwise.jit(function, mode=mode)
    y = y[:, 0] - 0.5
    for found, expected in zip(compiled(x, y), function(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)
    (signature,) = compiled.signatures
    (loop,) = [n for n in signature.compiled.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    inside = {v.owner for v in ancestors(loop.op._inner_outputs)} - {None}
    choices = [node for node in inside if isinstance(node.op, IfElse)]
    assert chooses == any(out.type.ndim for node in choices for out in node.outputs)
