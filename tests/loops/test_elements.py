"""Loops that read and write elements of arrays of any length: one C function runs them."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from benchmark.numpy_programs.programs import (
    cholesky_by_loops,
    csr_product,
    edit_distance,
    insertion_sort,
    matmul_by_loops,
)
from opwise import function, shared
from opwise.ifelse import ifelse
from opwise.loops import Scan, memory, scan, small, until
from opwise.loops.program import Builder, NotSmall
from opwise.scalar.recurrence import Write
from opwise.tensor import inc_subtensor, set_subtensor
from tests.tracing import loop_programs

from .test_small import steps_of_the_vm

pytestmark = pytest.mark.c


def agrees(program, *arguments, steps=0):
    """Check a function of numpy against Python, and how many steps the VM ran."""
    copies = [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in arguments]
    expected = program(*copies)
    compiled = opwise.jit(program)
    copies = [np.array(a, order="K") if isinstance(a, np.ndarray) else a for a in arguments]
    found = compiled(*copies)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    (signature,) = compiled.signatures
    loops = [n for n in signature.compiled.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert loops
    signature.compiled.fn.wait_for_kernels()
    for loop in loops:
        vm = loop.tag.inside.fn
        vm.timing.start()
        vm.timing.reset()
    compiled(*copies)
    counts = {count for loop in loops for count, *_ in loop.tag.inside.fn.timing.by_step()}
    assert counts <= {steps}
    return found


RNG = np.random.RandomState(0)
MATRIX, VECTOR, NUMBERS = RNG.rand(7, 9), RNG.rand(9), RNG.randint(0, 7, 9)


def distance(a, b):
    n, m = len(a), len(b)
    d = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = 0 if a[i - 1] == b[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + c)
    return d


def histogram(x, n):
    h = np.zeros(n, dtype=np.int64)
    for i in range(len(x)):
        h[x[i]] += 1
    return h


def sweeps(u):
    n, m = u.shape
    for _ in range(20):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def sort(x):
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                t = x[j]
                x[j] = x[j + 1]
                x[j + 1] = t
    return x


def escapes(c, most):
    n = len(c)
    out = np.zeros(n, dtype=np.int64)
    for i in range(n):
        z = 0j
        k = 0
        while k < most and abs(z) < 2:
            z = z * z + c[i]
            k += 1
        out[i] = k
    return out


def from_the_end(x, a):
    for i in range(a.shape[0]):
        for j in range(1, 5):
            x[-j] = a[-1 - i, -j] + 0.5 * x[j - 1]
    return x


def elimination(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, :] -= f * a[k, :]
    return a


def forces(p):
    n = p.shape[0]
    f = np.zeros_like(p)
    for i in range(n):
        for j in range(n):
            if i != j:
                d = p[j] - p[i]
                f[i] += d / ((d * d).sum() + 0.1) ** 1.5
    return f


def rows_and_columns(a):
    n, m = a.shape
    s = 0.0
    for i in range(n):
        for j in range(m):
            s = 0.5 * s + a[i, :].max() - a[:, j].min() + 0.01 * np.dot(a[i], a[i]) + a[i, 1:].sum()
            a[i, j] = np.tanh(0.1 * s)
        a[i, 1:] = a[i - 1, 1:] * 0.5
    return a


def every_other(x, n):
    for i in range(1, n):
        x[i::i] += 0.5
        x[: -i - 1 : -2] *= 0.9
        x[i - 1 :: -i] -= 0.1 * x[0]
        if x[1] > 1.0:
            x[i * i :: 3] = x[1]
    return x


def tables(x):
    """Each step has arrays of its own, of known and of computed lengths."""
    total = np.zeros(4)
    for i in range(x.shape[0]):
        counts = np.zeros(4)
        for j in range(i):
            counts[j % 4] += x[j]
        copy = x.copy()
        copy[i] = 0.0
        total += counts * copy.max()
    return total


def paths(state, n):
    path = np.zeros((n, 3))
    for t in range(n):
        x, y, z = state
        state = state + 0.01 * np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        path[t] = state
    return path


def partitions(x):
    """What a branch reads is read before another one overwrites it."""
    low, high = 0, x.shape[0] - 1
    for i in range(x.shape[0]):
        if x[low] < 0.5:
            low += 1
        elif x[high] > 0.5:
            high -= 1
        else:
            x[low], x[high] = x[high], x[low]
            if i > 1:
                x[i - 2] += 0.001 * x[low]
    return x


def begun_again(a, x, k):
    """Each inner step begins with the array that was made before its loop."""
    n, m = a.shape
    for i in range(m):
        for j in range(1, n):
            for q in range(1, n):
                w = np.zeros(n)
                w[n - 1 - i] = 0.5 * np.sin(k[0])
                w[-1 - j] += w[n - 1 - i]
                x[:] = w
                a[j - 1, i] = 0.5 * x[0]
                x[i] = 0.5 * x[n - 1 - q]
            x[j] += 0.75
    return x


CSR = (RNG.rand(20), RNG.randint(0, 9, 20), np.array([0, 3, 3, 10, 12, 20]), VECTOR)


@pytest.mark.parametrize("program, arguments", [
    (csr_product, CSR),
    (cholesky_by_loops, (MATRIX @ MATRIX.T + 7 * np.eye(7),)),
    (edit_distance, (NUMBERS, NUMBERS[::2])),
    (insertion_sort, (VECTOR,)),
    (every_other, (VECTOR, 7)),
    (tables, (VECTOR,)),
    (paths, (np.array([1.0, 2.0, 3.0]), 20)),
    (partitions, (VECTOR,)),
    (begun_again, (MATRIX[:6, :6], VECTOR[:6], NUMBERS)),
    (distance, (NUMBERS, NUMBERS[::2])),
    (histogram, (NUMBERS, 9)),
    (sweeps, (MATRIX,)),
    (sweeps, (MATRIX.T,)),
    (sweeps, (np.kron(MATRIX, np.ones((2, 3)))[::2, ::3],)),
    (sort, (VECTOR,)),
    (matmul_by_loops, (MATRIX, MATRIX.T)),
    (matmul_by_loops, (MATRIX.astype("float32"), MATRIX.T)),
    (escapes, (MATRIX.ravel()[:40] * 2 - 1.5 + 1j * MATRIX.ravel()[20:60], 50)),
    (from_the_end, (VECTOR, MATRIX)),
    (elimination, (MATRIX[:, :7] + 7 * np.eye(7),)),
    (forces, (MATRIX[:, :3],)),
    (rows_and_columns, (MATRIX,)),
    # what an if has computed is read by what the same condition decides later
    (loop_programs.sort_by_a_stack, (VECTOR,)),
    (loop_programs.dijkstra_on_a_grid, (MATRIX,)),
    (loop_programs.reached_from_a_corner, ((MATRIX > 0.3).astype(int),)),
    (loop_programs.is_a_sudoku, (loop_programs.SUDOKU,)),
    (loop_programs.salesman_by_bits, (MATRIX[:, :7],)),
], ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
def test_loops_over_elements_run_as_one_function(program, arguments):
    agrees(program, *arguments)


def picked(x):
    places = np.zeros(len(x), dtype=np.int64)
    for i in range(len(x)):
        places[i] = np.argmax(x[i])
    return places


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_the_largest_of_a_row_is_found_in_the_function(dtype):
    """The first of equal ones, and the first NaN."""
    x = np.random.RandomState(1).randint(0, 4, (40, 5)).astype(dtype)
    if dtype.startswith("float"):
        x[::3, 2] = x[::6, 4] = x[5, 0] = np.nan
        x[7] = -np.inf
    assert np.array_equal(agrees(picked, x), np.argmax(x, axis=1))


def test_the_largest_of_no_element_is_an_error():
    with pytest.raises(ValueError, match="empty"):
        opwise.jit(picked)(np.zeros((20, 0)))


def test_branches_read_what_is_there_alone():
    """The element that a branch reads may be missing where it is not taken."""

    def program(x, n):
        for i in range(n):
            if i < x.shape[0]:
                x[i] = 2 * x[i]
        return x

    agrees(program, VECTOR, 20)


def test_branches_share_what_they_read():
    """Each reads it for itself: it is not there where neither is taken."""

    def program(x, a, n):
        for i in range(n):
            if i < x.shape[0]:
                s = x[i] * 2.0
                a[0] += s
                a[1] += s * a[2]
                if i > 3:
                    a[2] += 0.1 * x[i]
        return a

    agrees(program, VECTOR, np.arange(3.0), 20)


@pytest.mark.parametrize("index, named", [(9, "index 9"), (-10, "index -10")])
def test_an_index_out_of_bounds_is_an_error_at_its_line(index, named):
    def program(x, at):
        for i in range(20):
            x[at[i]] += 1.0
        return x

    compiled = opwise.jit(program)
    where = np.arange(20) % 9
    assert compiled(np.zeros(9), where).sum() == 20
    where[7] = index
    x = np.zeros(9)
    with pytest.raises(IndexError, match=named) as raised:
        compiled(x, where)
    assert "x[at[i]] += 1.0" in str(raised.value)
    assert not x.any()  # it is changed when the call has succeeded


def test_an_element_that_is_read_early_fails_where_it_is_needed():
    def program(x, at, taken):
        for i in range(20):
            if taken[i] > 0:
                x[0] += 1.0
                if taken[i] > 1:
                    x[1] += x[at[i]]
            elif taken[i] < 0:
                x[1] -= x[at[i]]
        return x

    compiled = opwise.jit(program)
    at, taken = np.arange(20) % 9, np.arange(20) % 3 - 1
    at[1] = 99
    np.testing.assert_array_equal(
        compiled(VECTOR.copy(), at, taken), program(VECTOR.copy(), at, taken)
    )
    for of_step, line in ((-1, "x[1] -= x[at[i]]"), (2, "x[1] += x[at[i]]")):
        taken[1] = of_step
        with pytest.raises(IndexError, match="index 99") as raised:
            compiled(VECTOR.copy(), at, taken)
        assert line in str(raised.value)


def test_a_step_of_zero_is_an_error_at_its_line():
    def program(x, n):
        for i in range(20):
            x[:: n - i] = 1.0
        return x

    compiled = opwise.jit(program)
    assert compiled(np.zeros(9), 20).all()
    with pytest.raises(ValueError, match="zero") as raised:
        compiled(np.zeros(9), 7)
    assert "x[:: n - i] = 1.0" in str(raised.value)


def test_a_negative_length_is_an_error_at_its_line():
    def program(x, lengths):
        for i in range(20):
            w = np.zeros(lengths[i]) + i
            x[0] += w.sum()
        return x

    compiled, lengths = opwise.jit(program), np.arange(20) % 4
    np.testing.assert_allclose(compiled(np.ones(2), lengths), program(np.ones(2), lengths))
    lengths[3] = -2
    with pytest.raises(ValueError, match="negative dimensions are not allowed") as raised:
        compiled(np.ones(2), lengths)
    assert "w = np.zeros(lengths[i]) + i" in str(raised.value)


def test_an_inner_loop_collects_numbers():
    v = T.dvector("v")

    def outer(i, total):
        rows = scan(lambda j, s: [s + j * i, s * 2.0], T.arange(i),
                    [T.constant(0.5, dtype="float64"), None])[0]  # fmt: skip
        return total + (rows[1] * v[:i]).sum()

    out = scan(outer, T.arange(20), T.constant(0.0, dtype="float64"))[0][-1]
    f = function([v], out)
    given = np.random.RandomState(4).rand(20)
    found, steps = steps_of_the_vm(f, given)
    assert steps == 0
    expected = 0.0
    for i in range(20):
        s = 0.5
        for j in range(i):
            expected += s * 2.0 * given[j]
            s += j * i
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("n, left", [(100, 0), (5000, 20)])
def test_long_arrays_of_steps_are_left_to_the_vm(n, left):
    m = T.lscalar("m")

    def step(i, s):
        return s * 0.5 + (T.arange(m) * i).sum()

    out = scan(step, T.arange(20), T.constant(0.0, dtype="float64"))[0][-1]
    found, steps = steps_of_the_vm(function([m], out), n)
    assert steps == left
    expected = 0.0
    for i in range(20):
        expected = 0.5 * expected + (np.arange(n) * i).sum()
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("n, left", [(100, 0), (5000, 20)])
def test_the_vm_writes_states_in_memory_too(n, left):
    m, v = T.lscalar("m"), T.dvector("v")

    def step(i, x):
        return set_subtensor(x[i], x[i - 1] * 0.5 + (T.arange(m) * i).sum())

    out = scan(step, T.arange(20), v)[0][-1]
    given = np.random.RandomState(5).rand(30)
    found, steps = steps_of_the_vm(function([m, v], out), n, given)
    assert steps == left
    for i in range(20):
        given[i] = given[i - 1] * 0.5 + (np.arange(n) * i).sum()
    np.testing.assert_allclose(found, given)


def test_a_program_forgets_what_is_taken_back():
    """Slots are given again: what was known of them is not known of others."""
    p = Builder(["int64"], 0, 1)
    held = p.held(0, "int64", 1)
    before = p.state()
    with pytest.raises(NotSmall), p.short_loop(held.length(p, 0)) as i:
        p.guards, p.writable = [i], {0}
        p.written(0)
        raise NotSmall
    p.take_back(before)
    assert not (p.counters or p.bounds or p.instructions or p.writable or p.guards)
    assert held == p.held(0, "int64", 1)


def test_numbers_become_an_array_in_memory():
    p = Builder(["float64"] * 3, 0, 1)
    p.writable.add(0)
    memory.settle(p, [(np.arange(3), p.held(0, "float64", 1))])
    writes = [one for one in p.instructions if isinstance(one.op, Write)]
    assert [one.args[-1] for one in writes] == [0, 1, 2]


def test_an_error_in_an_inner_loop_names_both_loops():
    v = T.dvector("v")

    def outer(k, state):
        def inner(j, x, k):
            return set_subtensor(x[j], x[j + k] + 1)

        return scan(inner, T.arange(4), state, k)[0][-1]

    out = scan(outer, T.arange(20), v)[0][-1]
    f = function([v], out)
    assert f(np.zeros(40)).sum() > 0
    with pytest.raises(IndexError, match="out of bounds") as raised:
        f(np.zeros(10))
    assert "step 7 of" in "\n".join([str(raised.value), *raised.value.__notes__])


def test_a_condition_ends_a_loop_that_writes():
    v = T.dvector("v")

    def step(i, x):
        new = set_subtensor(x[i], x[i - 1] + 1)
        return new, until(T.gt(new[i], 5))

    out = scan(step, T.arange(1, 30), v)[0][-1]
    f = function([v], out)
    found, steps = steps_of_the_vm(f, np.zeros(40))
    assert steps == 0
    assert found.tolist() == [*range(7), *[0] * 33]


def test_what_a_step_reads_after_a_write_it_computes_as_the_vm():
    """The old array is read once more behind the write: no function could do that in place."""
    v = T.dvector("v")

    def step(i, x, s):
        new = set_subtensor(x[i], x[i + 1] * 0.5 + 1)
        return T.concatenate([new[1:], x[:1]]), s + x.sum() - new.sum()

    out = scan(step, T.arange(20), [v, T.constant(0.0, dtype="float64")])[0]
    outputs = [out[0][-1], out[1][-1]]
    given = np.random.RandomState(1).rand(40)
    found = function([v], outputs)(given)
    expected = function([v], outputs, mode=opwise.Mode("py", "fast_run"))(given)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b)


def test_a_choice_of_arrays_writes_in_the_branch():
    """Neither branch copies the array, and what it reads is of its own time."""
    v, c = T.dvector("v"), T.ivector("c")

    def step(i, taken, x):
        one = set_subtensor(x[i], x[i - 1] + 1)
        return ifelse(T.gt(taken, 0), set_subtensor(one[i + 1], one[i] * 2), x)

    out = scan(step, [T.arange(20), c], v)[0][-1]
    given = np.random.RandomState(2).rand(30), np.arange(20, dtype="int32") % 3
    found, steps = steps_of_the_vm(function([v, c], out), *given)
    assert steps == 0
    expected = given[0].copy()
    for i in range(20):
        if given[1][i] > 0:
            expected[i] = expected[i - 1] + 1
            expected[i + 1] = expected[i] * 2
    np.testing.assert_array_equal(found, expected)


def test_long_rows_are_left_to_the_kernels_of_the_vm():
    m = T.dmatrix("m")

    def step(row, total):
        return total + T.exp(row).sum()

    out = scan(step, m, T.constant(0.0, dtype="float64"))[0][-1]
    f = function([m], out)
    given = np.random.RandomState(3).rand(30, 200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "recurrence", lambda node, step: None)
        expected = function([m], out)(given)
    np.testing.assert_allclose(f(given), expected)
    np.testing.assert_allclose(f(given[:, :5]), np.exp(given[:, :5]).sum())


def test_kernels_of_a_step_are_compiled_where_they_are_needed():
    """One function is compiled for loops in loops, and the VM's where an array does not fit it."""
    a = T.dmatrix("a")

    def outer(i, x):
        return scan(lambda j, x: set_subtensor(x[i, j], x[i, j - 1] * 0.5 + T.tanh(x[j, i])),
                    T.arange(4), x)[0][-1]  # fmt: skip

    out = scan(outer, T.arange(4), a)[0][-1]
    f = function([a], out)
    (loop,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    inside = loop.tag.inside
    assert loop.tag.repeated is not None
    assert inside.linked.kernels is None  # nothing of the step was compiled
    with pytest.raises(IndexError):
        f(np.zeros((3, 3)))
    assert inside.linked.kernels is None


def test_functions_that_run_in_threads_share_no_array():
    from concurrent.futures import ThreadPoolExecutor

    v = shared(np.zeros(1000))
    i = T.lscalar()

    def step(k, x, i):
        return set_subtensor(x[k], x[k - 1] + i)

    f = function([i], scan(step, T.arange(1, 1000), v, i)[0][-1])
    with ThreadPoolExecutor(4) as pool:
        copies = [f.copy() for _ in range(4)]
        found = list(pool.map(lambda k: copies[k](k)[0][-1], range(4)))
    assert found == [0, 999, 1998, 2997]
    assert not v.get_value().any()


@pytest.mark.parametrize("change", [set_subtensor, inc_subtensor])
@pytest.mark.parametrize("length", [1, 8, 3])
def test_parts_are_changed_by_values_that_broadcast(length, change):
    """As numpy does: the one element of a vector, or one for each element of the part."""
    m, v = T.dmatrix("m"), T.dvector("v")

    def step(i, x, v):
        return change(x[i, 1:9], v * i)

    f = function([m, v], scan(step, T.arange(20), m, v)[0][-1])
    given = np.zeros((20, 9)), np.arange(1.0, length + 1)
    if length == 3:
        with pytest.raises(ValueError, match="shape"):
            f(*given)
        return
    expected = given[0].copy()
    for i in range(20):
        expected[i, 1:9] = given[1] * i
    found, steps = steps_of_the_vm(f, *given)
    assert steps == 0
    np.testing.assert_array_equal(found, expected)


def test_numbers_in_registers_become_the_array_of_a_state():
    v = T.dvector("v")

    def step(i, x):
        return T.stack([x[0] + i, x[1] * 0.5, x[i % 3]])

    out = scan(step, T.arange(20), v)[0][-1]
    expected = np.arange(3.0)
    for i in range(20):
        expected = np.array([expected[0] + i, expected[1] * 0.5, expected[i % 3]])
    np.testing.assert_array_equal(function([v], out)(np.arange(3.0)), expected)


@pytest.mark.parametrize("step", [
    lambda i, x: x[:1] * 2.0, lambda i, x: T.stack([x[i % 2] + 1.0]), lambda i, x: x[1:],
], ids=["a part", "one number", "a longer part"])  # fmt: skip
def test_a_state_keeps_its_shape(step):
    """A value that would broadcast to the state is an error, as in the VM."""
    v = T.dvector("v")
    f = function([v], scan(step, T.arange(20), T.unbroadcast(v, 0))[0][-1])
    with pytest.raises(ValueError, match="all steps must give the same shape"):
        f(np.arange(5.0))


@pytest.mark.parametrize("n, left", [(5, 0), (70, 20)])
def test_large_matrices_are_left_to_the_kernels_of_the_vm(n, left):
    """The number of all elements counts, not that of a row."""
    m = T.dmatrix("m")
    f = function([m], scan(lambda i, x: 0.5 * x + i, T.arange(20), m)[0][-1])
    found, steps = steps_of_the_vm(f, np.ones((n, n)))
    assert steps == left
    expected = 1.0
    for i in range(20):
        expected = 0.5 * expected + i
    np.testing.assert_allclose(found, np.full((n, n), expected))


# --- rows of a step that lie beside those that it reads -------------------------------------------


def filtered(image, a):
    out = np.empty_like(image)
    out[:, 0] = image[:, 0]
    for j in range(1, image.shape[1]):
        out[:, j] = image[:, j] + a * out[:, j - 1]
    return out


def swept(image):
    for i in range(1, image.shape[0] - 1):
        image[i, 1:-1] += image[i - 1, 1:-1] + image[i, 2:] + image[i, :-2]
    return image


def reversed_sums(x):
    y = np.zeros_like(x)
    for k in range(1, x.shape[0]):
        y[:k] += x[k] * y[:k][::-1]
        y[k] = x[k]
    return y


@pytest.mark.parametrize(
    ("program", "arguments"),
    [(filtered, (MATRIX, 0.5)), (swept, (MATRIX,)), (reversed_sums, (VECTOR,))],
)
def test_what_a_row_is_computed_of_may_lie_in_the_same_array(program, arguments):
    agrees(program, *arguments)


# --- products in a step ---------------------------------------------------------------------------


def powers(matrices, x):
    out = np.zeros((len(matrices), x.shape[0], 2), x.dtype)
    for k in range(len(matrices)):
        x = x + matrices[k] @ x
        out[k] += (matrices[k] @ matrices[k][:, :2]) * x[:, None]
    return out


def of_vectors(a, x):
    out = np.zeros(a.shape[0], x.dtype)
    for i in range(a.shape[0]):
        out[i] = 2 * (a[i] @ x) + a[i, ::-1] @ x + a[:, i] @ x
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
def test_products_of_arrays_in_memory(dtype):
    """Whole numbers have the same sums in any order."""
    matrices = RNG.randint(-2, 3, (7, 5, 5)).astype(dtype)
    agrees(powers, matrices, matrices[0, 0].copy())
    square = RNG.randint(-9, 9, (33, 33)).astype(dtype)
    agrees(of_vectors, square, square[0].copy())


# --- parts whose lengths arrays tell --------------------------------------------------------------


def rows_of_a_sparse_matrix(starts, columns, values, x):
    y = np.empty(starts.size - 1)
    for i in range(starts.size - 1):
        of = columns[starts[i] : starts[i + 1]]
        y[i] = values[starts[i] : starts[i + 1]] @ x[of]
    return y


def test_short_parts_of_long_arrays():
    counts = RNG.randint(0, 9, 400)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns, values = RNG.randint(0, 50, starts[-1]), RNG.rand(starts[-1])
    agrees(rows_of_a_sparse_matrix, starts, columns, values, RNG.rand(50))


def log_sum_exp(z, axis):
    most = z.max(axis, keepdims=True)
    return T.log(T.exp(z - most).sum(axis)) + most.sum(axis)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [3, 11])
@pytest.mark.parametrize("axis", [0, 1])
def test_steps_of_reductions_run_in_the_function_with_their_gradients(dtype, n, axis):
    """A state is read at other elements than the one that is written; its rows are kept."""
    moves, seen = T.matrix("moves", dtype=dtype), T.matrix("seen", dtype=dtype)

    def step(now, before):
        z = before[:, None] + moves if axis == 0 else before[None, :] + moves
        return log_sum_exp(z, axis) + now

    rows = scan(step, seen[1:], seen[0])[0]
    f = function([moves, seen], [rows, opwise.grad(rows[-1].sum(), moves)])
    values = [RNG.rand(n, n).astype(dtype), RNG.rand(30, n).astype(dtype)]
    loops = [n.tag.inside.fn for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    f(*values)
    f.fn.wait_for_kernels()
    for vm in loops:
        vm.timing.start()
        vm.timing.reset()
    found, slope = f(*values)
    assert [{count for count, *_ in vm.timing.by_step()} for vm in loops] == [{0}] * len(loops)
    state, expected = values[1][0].astype("float64"), []
    for now in values[1][1:]:
        z = state[:, None] + values[0] if axis == 0 else state[None, :] + values[0]
        state = np.log(np.exp(z).sum(axis)) + now
        expected.append(state)
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-12)
    assert abs(slope.sum() - 29 * n) < 0.01 * n  # all of them add one number


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_largest_and_its_position_are_rows_that_a_loop_collects(dtype, axis):
    x, seen = T.matrix("x", dtype=dtype), T.matrix("seen", dtype=dtype)

    def step(now, before):
        z = T.maximum(before[None, :] if axis else before[:, None], x)
        return z.max(axis) + now, z.argmax(axis)

    (states, positions), _ = scan(step, seen, [T.zeros_like(x[0]), None])
    f = function([x, seen], [states[-1], positions, states[-5:]])
    values = [(RNG.rand(9, 9) * 100).astype(dtype), (RNG.rand(25, 9) * 3).astype(dtype)]
    if dtype.startswith("float"):
        values[0][3, 4] = np.nan
    (last, where, some), steps = steps_of_the_vm(f, *values)
    assert steps == 0
    state, expected, rows = np.zeros(9, dtype), [], []
    for now in values[1]:
        z = np.maximum(state[None, :] if axis else state[:, None], values[0])
        state = z.max(axis) + now
        expected.append(z.argmax(axis))
        rows.append(state)
    np.testing.assert_array_equal(where, expected)
    np.testing.assert_array_equal(last, state)
    np.testing.assert_array_equal(some, rows[-5:])


def test_a_loop_that_ends_early_has_the_rows_until_then():
    x, most = T.dvector("x"), T.dscalar("most")

    def step(v):
        new = v + v[0]
        return (new, new * 2), until(new.max() > most)

    (states, doubles), _ = scan(step, outputs_info=[x, None], n_steps=100)
    f = function([x, most], [states, doubles])
    (found, twice), steps = steps_of_the_vm(f, np.array([1.0, 3.0]), 2.0**40)
    assert steps == 0
    np.testing.assert_array_equal(found[:2], [[2, 4], [4, 6]])
    assert found[-2, 1] <= 2.0**40 < found[-1, 1]
    np.testing.assert_array_equal(twice, 2 * found)
    assert [rows.shape for rows in f(np.ones(2), 0.5)] == [(1, 2), (1, 2)]


def test_results_of_other_lengths_are_an_error_at_their_line():
    x = T.dvector("x")
    part = T.lvector("part")
    rows, _ = scan(lambda n: x[:n] * 2, part)
    f = function([x, part], rows)
    np.testing.assert_array_equal(f(np.arange(5.0), [3] * 20), [[0, 2, 4]] * 20)
    with pytest.raises(ValueError, match="same shape"):
        f(np.arange(5.0), [3] * 19 + [2])


def test_small_matrices_run_in_the_function_by_the_number_of_their_elements():
    """The lengths of all dimensions count together: one of them may be long."""
    x = T.dtensor3("x")
    f = function([x], scan(lambda h: h * 0.5 + 1, outputs_info=x, n_steps=20)[0][-1])
    for shape, left in (((100, 5, 7), 0), ((100, 10, 7), 20)):
        found, steps = steps_of_the_vm(f, np.zeros(shape))
        assert steps == left
        np.testing.assert_allclose(found, np.full(shape, 2 - 2.0**-19))


def test_rows_of_a_table_are_joined_from_all_numbers_of_an_inner_loop():
    """The edit distance, as two scans write it."""
    a, b = T.lvectors("a", "b")

    def of_row(letter, i, before, b):
        least = T.minimum(before[:-1] + T.neq(b, letter), before[1:] + 1)
        row = scan(lambda m, left: T.minimum(m, left + 1), least, i)[0]
        return T.concatenate([i.reshape((1,)), row])

    first = T.arange(b.shape[0] + 1)
    rows, _ = scan(of_row, [a, T.arange(1, a.shape[0] + 1)], first, b)
    f = function([a, b], rows)
    x, y = RNG.randint(0, 3, 25), RNG.randint(0, 3, 9)
    found, steps = steps_of_the_vm(f, x, y)
    assert steps == 0
    table = distance(x, y)
    np.testing.assert_array_equal(found, table[1:])


def test_arrays_are_joined_in_the_function():
    x, y = T.dmatrices("x", "y")

    def step(i, v):
        both = T.concatenate([v[:, :1] + i, y, v[:, 2:]], axis=1)
        return both[:, : v.shape[1]], both.sum()

    (states, sums), _ = scan(step, T.arange(20), [x, None])
    f = function([x, y], [states[-1], sums])
    v, w = RNG.rand(3, 5), RNG.rand(3, 2)
    for columns in (2, 3):
        w = RNG.rand(3, columns)
        expected, totals = v, []
        for i in range(20):
            both = np.concatenate([expected[:, :1] + i, w, expected[:, 2:]], 1)
            expected = both[:, :5]
            totals.append(both.sum())
        found, given = f(v, w)
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(given, totals)
    with pytest.raises(ValueError, match="Shapes do not fit"):
        f(v, RNG.rand(4, 2))


def windows_of_one(x, w):
    out = np.empty((x.shape[0], x.shape[1], w.shape[1]))
    for i in range(x.shape[1]):
        out[:, i, :] = (x[:, i : i + 1, :, None] * w[None, None]).sum((1, 2))
    return out


def test_a_dimension_that_is_dropped_is_that_of_a_part():
    agrees(windows_of_one, RNG.rand(3, 6, 5), RNG.rand(5, 4))
