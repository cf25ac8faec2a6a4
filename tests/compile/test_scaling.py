"""What a compilation does for each Apply is the same in graphs of any size; counted, not timed."""

import cProfile
import functools
import pstats
import sys

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import change_flags, function
from opwise.graph import aliasing, provenance, traversal
from opwise.ifelse import ifelse
from opwise.linkers import kernels


def chain(n):
    """Elementwise operations, one after the other."""
    x = T.dvector("x")
    y = x
    for k in range(n):
        y = (T.tanh, lambda v: v * 1.5, T.sqr, lambda v: v + 0.25)[k % 4](y)
    return {"inputs": [x], "outputs": y}


def sums(n):
    """A sum written term by term, and products in it."""
    x, ws = T.dvector("x"), T.dmatrix("ws")
    y = x
    for k in range(n):
        y = y + ws[k % 7] * T.exp(x)
    return {"inputs": [x, ws], "outputs": y}


def recurrences(n):
    """h = tanh(h w + x), with gradients."""
    xs, first = T.dmatrix("xs"), T.dvector("h")
    w = opwise.shared(np.full(3, 0.5), name="w")
    h = first
    for t in range(n):
        h = T.tanh(h * w + xs[t])
    cost = (h**2).sum()
    return {"inputs": [xs, first], "outputs": [cost, *opwise.grad(cost, [w, first])]}


def dot_blocks(n):
    """h = tanh(dot(h, W) + b), with updates by gradients."""
    x = T.dmatrix("x")
    h, parameters = x, []
    for k in range(n):
        w = opwise.shared(np.eye(3) * (k + 1) / n, name=f"W{k}")
        b = opwise.shared(np.zeros(3), name=f"b{k}")
        parameters += [w, b]
        h = T.tanh(T.dot(h, w) + b)
    cost = (h**2).sum()
    grads = opwise.grad(cost, parameters)
    updates = [(p, p - 0.1 * g) for p, g in zip(parameters, grads, strict=True)]
    return {"inputs": [x], "outputs": cost, "updates": updates}


def shared_weights(n):
    """The same matrix in every block: its gradient is a sum of n products."""
    x, w = T.dmatrix("x"), T.dmatrix("w")
    h = x
    for _ in range(n):
        h = T.tanh(T.dot(h, w))
    cost = h.sum()
    return {"inputs": [x, w], "outputs": [cost, opwise.grad(cost, w)]}


def vector_products(n):
    """Products of a vector with a matrix, each of which BLAS adds to an AllocEmpty of its own."""
    y, w = T.dvector("y"), T.dmatrix("w")
    z = y
    for _ in range(n):
        z = T.dot(z, w)
    return {"inputs": [y, w], "outputs": z}


def choices(n):
    """Nested choices, each a view of its first branch."""
    x, conditions = T.dvector("x"), T.ivector("conditions")
    y = x
    for k in range(n):
        y = ifelse(conditions[k], y * 2, y + 1)
    return {"inputs": [x, conditions], "outputs": y}


def elements_and_wholes(n):
    """Elements of a vector and all of it in turn: the gradient is a sum with increments in it."""
    x = T.dvector("x")
    y = x
    for k in range(n):
        y = T.tanh(y * x[k % 3] if k % 2 else y * x)
    return {"inputs": [x], "outputs": opwise.grad(y.sum(), x)}


def parts(n):
    """Parts of choices between what reads the same value, which meet the parts before them."""
    x = T.dvector("x")
    y = x
    for _ in range(n):
        y = T.switch(y > 0, y, 0.0)[:3] * 2.0
    return {"inputs": [x], "outputs": y}


FAMILIES = [
    chain, sums, recurrences, dot_blocks, shared_weights, vector_products, choices,
    elements_and_wholes, parts,
]  # fmt: skip


def work(family, n, monkeypatch):
    """Return what the compilation of a graph did, for each Apply as written."""
    counts = {"sorted": 0, "checked": 0}
    genuine, destroyed = traversal.io_toposort, aliasing.destroyed_inputs

    def counted(*args):
        order = genuine(*args)
        counts["sorted"] += len(order)
        return order

    def checked(node):
        counts["checked"] += 1
        return destroyed(node)

    with monkeypatch.context() as patched:
        patched.setattr(traversal, "io_toposort", counted)
        patched.setattr(aliasing, "destroyed_inputs", checked)
        with change_flags(profile_optimizer=True):
            f = function(**family(n), mode="FAST_RUN")
    record = f.compile_report.rewrites
    for name in ("tried", "applied", "created"):
        counts[name] = sum(getattr(r, name) for one in all_records(record) for r in one.rules)
    return {name: count / record.nodes_before for name, count in counts.items()}


def all_records(record):
    found = [record]
    for one in found:
        found += one.passes
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_work_for_each_apply_does_not_grow_with_the_graph(family, monkeypatch):
    small, large = work(family, 40, monkeypatch), work(family, 160, monkeypatch)
    for name, count in large.items():
        assert count <= 1.15 * small[name] + 0.1, (name, small, large)


@pytest.mark.c
@pytest.mark.parametrize("family", FAMILIES)
def test_equal_loops_are_generated_once(family, monkeypatch):
    """However many Applys compute the same: only the few at the ends of the graph may differ."""
    genuine, loops = kernels.source_text, []

    def counted(sources):
        loops.extend(sources)
        return genuine(sources)

    monkeypatch.setattr(kernels, "source_text", counted)
    function(**family(60), mode="FAST_RUN")
    small = len(loops)
    loops.clear()
    function(**family(120), mode="FAST_RUN")
    assert len(loops) <= small + 2


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_deep_graph(family, mode):
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 120)
    try:
        arguments = family(400)
        f = function(**arguments, mode=mode)
    finally:
        sys.setrecursionlimit(before)
    assert f.compile_report.rewrites.nodes_before >= 400


def wide_sum(n):
    xs = [T.dvector() for _ in range(n)]
    return xs, T.add(*xs)


def wide_product(n):
    xs = [T.dvector() for _ in range(n)]
    return xs, T.mul(*xs)


def sum_of_list(n):
    xs = [T.dvector() for _ in range(n)]
    return xs, sum(xs)


def chain_of_maxima(n):
    xs = [T.dvector() for _ in range(n)]
    return xs, functools.reduce(T.maximum, xs)


def joined(n):
    xs = [T.dvector() for _ in range(n)]
    return xs, T.concatenate(xs)


def stacked(n):
    xs = [T.dscalar() for _ in range(n)]
    return xs, T.stack(xs)


def sum_of_cheap_terms(n):
    x = T.dvector()
    return [x], T.add(*[T.tanh(x) if k % 2 else x * 2.5 for k in range(n)])


def sum_of_each(n):
    xs = [T.dvector() for _ in range(n)]
    return xs, [T.exp(x).sum() for x in xs]


def sums_of_one(n):
    x = T.dvector()
    return [x], [T.exp(x * (k + 2)).sum() for k in range(n)]


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize(
    "wide",
    [
        wide_sum, wide_product, sum_of_list, chain_of_maxima, joined, stacked, sum_of_cheap_terms,
        sum_of_each, sums_of_one,
    ],
)  # fmt: skip
def test_many_operands(wide, mode):
    """Compiling costs as many calls for each operand, however many there are."""
    calls = []
    for n in (300, 300, 600, 1200):  # the first compilation imports
        inputs, output = wide(n)
        profile = cProfile.Profile()
        with change_flags(cxx=""):
            profile.runcall(function, inputs, output, mode=mode)
        calls.append(pstats.Stats(profile).total_calls)
    first, second, third = calls[1:]
    assert third - second <= 2.3 * (second - first) + 2000, calls


def test_a_shared_operand_is_visited_once():
    """The Applys of a long sum all come from all of its terms."""
    origins = tuple(object() for _ in range(5))
    assert provenance.union(origins, origins, (), origins) is origins
    assert provenance.union(origins[:3], origins[2:], origins[:3]) == origins


@pytest.mark.slow
def test_a_hundred_thousand_applys():
    f = function(**chain(100_000), mode="FAST_COMPILE")
    value = np.array([0.5, -2.0])
    expected = value
    for k in range(100_000):
        expected = (np.tanh, lambda v: v * 1.5, np.square, lambda v: v + 0.25)[k % 4](expected)
    np.testing.assert_allclose(f(value), expected, rtol=1e-6)
