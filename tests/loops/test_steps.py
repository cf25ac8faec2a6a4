"""Loops in the compiled VM: the same as in Python, errors, memory, threads."""

import threading

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, as_op, function, get_default_mode, grad
from opwise.compile import DeepCopyOp
from opwise.graph.traversal import ancestors
from opwise.loops import Scan, scan, until
from opwise.tensor.blas import CGer

pytestmark = pytest.mark.c

#: leaves in loops what could be computed for all steps at once
WITHIN_LOOPS = get_default_mode().excluding("scan_pushout")


def one():
    return T.constant(1.0, dtype="float64")


def runs_in_c(f):
    """Return whether the loop of a function runs in C."""
    order = f.linked.order
    (k,) = [k for k, node in enumerate(order) if isinstance(node.op, Scan)]
    return f.linked.in_c[k]


def test_a_loop_runs_in_the_compiled_vm_as_python_in_its_steps_may():
    v = T.dvector()
    f = function([v], scan(lambda e, h: h * e, v, one())[0])
    assert runs_in_c(f) and f([2, 3]).tolist() == [2, 6]

    @as_op([T.dscalar], [T.dscalar])
    def doubled(e):
        return np.asarray(2 * e)

    f = function([v], scan(lambda e, h: h * doubled(e), v, one())[0])
    assert runs_in_c(f) and f([2, 3]).tolist() == [4, 24]
    f = function([v], scan(lambda e, h: h * e, v, one())[0], mode=Mode("py", "fast_run"))
    assert not runs_in_c(f) and f([2, 3]).tolist() == [2, 6]


@pytest.mark.parametrize("n", [1, 2, 3, 17, 40])
@pytest.mark.parametrize("layout", ["C", "F", "reversed", "part"])
def test_both_ways_to_run_agree(n, layout):
    m, h = T.dmatrix(), T.dmatrix()
    first = T.dvector()

    def step(now, before, old, new, sums):
        value = T.tanh(old * now + new.sum() - before)
        return [value, T.outer(now, value), sums + now.sum()], until(sums > 1e9)

    outputs, _ = scan(
        step, {"input": m, "taps": [0, -1]},
        [{"initial": h, "taps": [-3, -1]}, None, first[0]],
    )  # fmt: skip
    outputs += [grad(sum(out.sum() for out in outputs), var) for var in (m, h)]
    rng = np.random.RandomState(n)
    values = rng.randn(n + 1, 4)
    values = {
        "C": values,
        "F": np.asfortranarray(values),
        "reversed": np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1],
        "part": np.repeat(values, 2, axis=1)[:, ::2],
    }[layout]
    given = values, rng.randn(3, 4), np.zeros(1)
    expected = function([m, h, first], outputs, mode=Mode("py", "fast_run"))(*given)
    for found in (function([m, h, first], outputs), function([m, h, first], outputs).copy()):
        for _ in range(2):
            for a, b in zip(found(*given), expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_a_step_with_many_operands():
    v = T.dvectors(30)
    outputs, _ = scan(lambda *rows: [row * rows[0] for row in rows], list(v))
    f = function(v, outputs, mode=WITHIN_LOOPS)
    assert runs_in_c(f)
    found = f(*([2.0, k] for k in range(30)))
    np.testing.assert_array_equal(found, [[4, 0]] * 30)


def test_errors_inside_leave_the_function_usable():
    v, table = T.lvector(), T.dvector()
    f = function([v, table], scan(lambda i, h: h + table[i], v, one())[0])
    assert f([0, 1], [5.0, 6.0]).tolist() == [6, 12]
    with pytest.raises(IndexError, match="out of bounds") as raised:
        f([0, 7], [5.0, 6.0])
    assert "test_steps.py" in str(raised.value)
    assert f([0, 1], [5.0, 6.0]).tolist() == [6, 12]
    sizes = T.lvector()
    g = function([sizes], scan(lambda n: T.arange(n), sizes)[0])
    assert g([2, 2]).tolist() == [[0, 1], [0, 1]]
    with pytest.raises(ValueError, match=r"step 2 of .* computes a value of shape"):
        g([2, 2, 3])
    assert g([1]).tolist() == [[0]]


def test_sums_of_gradients_keep_one_row():
    x, w = T.dmatrix(), T.dmatrix()
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, T.zeros((3,)))
    found = grad(out.sum(), w)
    (backward,) = {
        v.owner for v in ancestors(found) if v.owner is not None and isinstance(v.owner.op, Scan)
        and v.owner.op.layout.last
    }  # fmt: skip
    (k,) = backward.op.layout.last
    assert function([x, w], backward.outputs[k])(np.ones((9, 3)), np.eye(3)).shape == (1, 3, 3)


def test_outputs_belong_to_the_caller():
    v = T.dvector()
    f = function([v], scan(lambda e, h: h * e, v, one())[0])
    first = f([2, 3])
    f([5, 7])
    assert first.tolist() == [2, 6]
    first[:] = 0
    assert f([2, 3]).tolist() == [2, 6]


def test_copies_of_a_function_run_in_threads():
    m = T.dmatrix()
    f = function([m], scan(lambda row, h: T.tanh(h + T.dot(row, m.T).sum()), m, one())[0])
    values = np.random.RandomState(2).randn(300, 3)
    expected, found = f(values), {}

    def work(k, g):
        found[k] = [g(values)[0] for _ in range(20)]

    threads = [threading.Thread(target=work, args=(k, f.copy())) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for rows in found.values():
        for row in rows:
            np.testing.assert_array_equal(row, expected)


def test_what_nothing_reads_is_not_computed():
    x, w = T.dmatrix(), T.dmatrix()
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, T.zeros((3,)))
    f = function([x, w], grad(out[-1].sum(), w), mode=WITHIN_LOOPS)
    (backward,) = [
        n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan) and n.op.layout.last
    ]
    assert backward.op.layout.results == 0  # the gradient by x
    values = np.ones((4, 3)), np.eye(3) / 2
    both = function([x, w], grad(out[-1].sum(), [x, w]), mode=WITHIN_LOOPS)(*values)
    np.testing.assert_array_equal(f(*values), both[1])
    (a, b, c), updates = scan(
        lambda e, a, b: [a * e, b + a, b * e], x[:, 0], [x[0, 0], x[0, 1], None]
    )
    assert updates == {}
    for out, states, results in ((a, 1, 0), (b, 2, 0), (c, 2, 1)):
        f = function([x], out)
        (loop,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
        assert (len(loop.layout.taps), loop.layout.results) == (states, results)
        everything = function([x], [a, b, c])(values[0])
        np.testing.assert_array_equal(
            f(values[0]), everything[next(k for k, var in enumerate((a, b, c)) if var is out)]
        )


def test_sums_are_added_up_in_place():
    x, w = T.dmatrix(), T.dmatrix()
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, T.zeros((3,)))
    f = function([x, w], grad(out[-1].sum(), w), mode=WITHIN_LOOPS)
    (backward,) = [
        n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan) and n.op.layout.last
    ]
    applied = backward.tag.inside.maker.fgraph.toposort()
    assert backward.op.layout.kept == (1, 1)
    assert not any(isinstance(node.op, DeepCopyOp) for node in applied)
    assert any(node.op.destroy_map and isinstance(node.op, CGer) for node in applied)
