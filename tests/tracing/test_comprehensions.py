"""Comprehensions that are loops, and what Python's collections give for values in arrays."""

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError
from opwise.loops import Scan
from tests.tracing.test_loop_programs import same

pytestmark = pytest.mark.null


def steps(n, seed=0):
    return np.random.default_rng(seed).normal(size=n).round()


def check(function, *cases):
    """Compare a compiled function with Python; return the compiled one."""
    compiled = opwise.jit(function)
    for case in cases:
        same(function(*case), compiled(*case))
    return compiled


def loops(compiled):
    """Return how many loops the signatures have, without those inside loops."""
    return [
        sum(isinstance(node.op, Scan) for node in each.compiled.maker.fgraph.apply_nodes)
        for each in compiled.signatures
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sum(v * 2 for v in x),
        lambda x: sum([v * v for v in x if v > 0]),
        lambda x: sum((v for v in x if v > 0 if v < 2), 0.5),
        lambda x: sum(a * b for a, b in zip(x, x[::-1], strict=True)),
        lambda x: sum(i * (a - b) for i, (a, b) in enumerate(zip(x, x[::-1], strict=False))),
        lambda x: sum(x[i] * x[j] for i in range(len(x)) for j in range(i) if x[j] > 0),
        lambda x: sum(1 for v in x if v in (1.0, 2.0)),
        lambda x: len([v for v in x if v > 0]),
        lambda x: any(v > 1 for v in x),
        lambda x: any(x[i] == x[j] for i in range(len(x)) for j in range(i)),
        lambda x: all(x[i] < x[j] + 9 for i in range(len(x)) for j in range(i)),
        lambda x: all(v > -9 for v in x if v < 5),
        lambda x: all(v > 0 for v in x),
        lambda x: np.array([v * 2 for v in x]),
        lambda x: np.array([1 if v > 0 else 0 for v in x], dtype=np.float32),
        lambda x: np.array([v * 2 for v in x if v > 0]),
        lambda x: np.array([(v, v * v) for v in x]),
        lambda x: np.array([[a * b for b in x] for a in x]),
        lambda x: np.array([sum(x[max(0, p - 2) : p + 1]) for p in range(len(x))]),
        lambda x: np.array([x[p : p + 3].mean() for p in range(len(x) - 2)]),
        lambda x: np.maximum([v * v for v in x], 1.0),
        lambda x: np.cumsum([np.sin(v) for v in x]),
        lambda x: sum(np.outer(x, x)[k] for k in range(len(x))),
    ],
)
def test_one_loop_goes_through_any_number_of_items(function):
    # arrays of other lengths than 1; numpy's array of no rows has no dtype
    compiled = check(function, [steps(12)], [steps(30, seed=1)], [steps(17, seed=2)])
    assert len(compiled.signatures) == 1, "written out, each length is a signature"
    assert all(n <= 1 for n in loops(compiled)), "products of all elements are no loop"
    # a sum of none of its elements is the int 0 for Python, and a float here
    np.testing.assert_allclose(opwise.jit(function)(steps(3)), function(steps(3)))
    check(function, [steps(0)])


def test_zip_is_a_loop_over_the_shortest():
    def f(x, y):
        total = 0.0
        for k, (a, b) in enumerate(zip(x, y, strict=False)):
            total += k * a - b
        total += sum(a * b for a, b in zip(range(40), y, strict=False))
        return total + sum(a for a, b in zip(x, x[::-1], strict=False))

    compiled = check(f, [steps(12), steps(15)], [steps(20), steps(21)])
    assert len(compiled.signatures) == 1
    check(f, [steps(12), steps(10)], [steps(12), steps(60)])

    def strict(x, y, z):
        return sum(a * b * c for a, b, c in zip(x, y, z, strict=True))

    check(strict, [steps(12), steps(12), steps(12)])
    for n, m in ((11, 12), (12, 13)):
        with pytest.raises(ValueError) as expected:
            strict(steps(12), steps(n), steps(m))
        with pytest.raises(ValueError) as caught:
            opwise.jit(strict)(steps(12), steps(n), steps(m))
        assert str(caught.value).splitlines()[0] == str(expected.value)


def drawn(seed):
    rng = np.random.default_rng(seed)
    parts = sum(v for v in rng.random(5)), sum(rng.normal() for _ in range(20))
    return parts, np.array([rng.normal() * k for k in range(20)]), rng.random()


def changed(x):
    def bump(array, k):
        array[0] += k
        return array[0]

    array = x.copy()
    return (
        np.array([bump(array, k) for k in range(12)]),
        sum(bump(array, k) for k in range(9)),
        array,
    )


@pytest.mark.parametrize(
    "function",
    [
        drawn,
        changed,
        lambda x: np.array([x * i - j for i in range(12) for j in range(10)]),
        lambda x: np.array([x * i for i in range(12) for j in range(i) if j != 2]),
        lambda x: np.concatenate([np.ones(5)[:k] * x for k in range(12)]),
        lambda x: np.block([np.ones(2) * x * k for k in range(12)]),
        lambda x: np.array([x if k % 2 else 1 for k in range(12)]),
        lambda x: sum(v for v in iter([1, 2, x])) + np.sum([v * 2 for v in iter([x, 5])]),
        lambda x: np.array([str(k) for k in range(12)]).shape[0] + x,
    ],
)
def test_what_a_comprehension_does_is_done_once(function):
    """Nor is an array made of elements that are not alike, or for what looks into lists."""
    given = np.arange(4.0) if function is changed else 3
    check(function, [given])


def test_of_other_functions_python_goes_through_a_comprehension():
    def f(x):
        return sorted(v * v for v in x)[0], [v + 1 for v in x][-1], max(abs(v) for v in x)

    check(f, [steps(5)])

    def function_of_the_program(x):
        def sum(values):
            return next(iter(values))

        return sum(v + 1 for v in x)

    check(function_of_the_program, [steps(5)])


def test_variables_of_a_comprehension_are_its_own():
    def f(x, v):
        total = 0.0
        for k in range(len(x)):
            total += sum(x[k] * v for v in x[:k]) + v
        return total, v

    check(f, [steps(12), 2.0], [steps(15), 3.0])


def test_a_loop_over_a_list_of_arrays_of_other_shapes_is_written_out():
    def f(x):
        parts = [x, x[1:], x * 2] * 4
        total = 0.0
        for k in range(12):
            total += parts[k].sum() * (k + 1)
        return total, sum(part.sum() for part in parts), sum(parts[k][0] for k in range(12))

    check(f, [steps(5)])


def test_items_by_values():
    table, names = [3.0, 1.0, 4.0], {0: 10, 1: 20, 7: 5}

    def f(x, rows):
        total, found, other = 0.0, 0, 0
        for v in x:
            total += table[v] + rows[v].sum()
            found += names[v] if v < 2 else names.get(int(v), 9)
            other += names.get(v + 5, -1)
        return total, found, other

    x = np.array([1, 2, 0, -1, 1, 1, 0, 2, 1])
    rows = [np.arange(3.0), np.ones(3), np.full(3, 5.0)]
    check(f, [np.abs(x), rows])
    with pytest.raises(KeyError):
        opwise.jit(f)(x, rows)
    with pytest.raises(IndexError):
        opwise.jit(f)(x + 2, rows)


def test_items_outside_are_conditions():
    table = [1.0, 2.0, 3.0]

    @opwise.jit
    def f(x):
        return sum(table[v] for v in x)

    x = np.arange(12) % 3
    assert f(x) == 24.0
    table[1] = 10.0
    assert f(x) == 56.0


@pytest.mark.parametrize("container", [(1, 5), [1, 5], {1, 5}, {1: 0, 5: 2}, range(1, 9, 4),
                                       (1.0, 5, "a", None), np.array([1, 5]), ()])  # fmt: skip
def test_membership(container):
    def f(x, y):
        count = 0
        for v in x:
            if v in container:
                count += 1
            if 0 < v not in container:
                count += 100
            if v not in y:
                count += 10_000
        return count

    check(f, [np.arange(12) % 7, np.array([2, 3])])


def test_keys_that_calls_decide_are_named():
    def f(x):
        counts = {}
        for v in x:
            counts[v] = counts.get(v, 0) + 1
        return counts

    with pytest.raises(TracingError, match="A key needs the values of") as caught:
        opwise.jit(f)(np.array([1, 2, 1]))
    assert "counts[v] = " in str(caught.value)
    with pytest.raises(TypeError, match="unhashable type"):
        opwise.jit(lambda x: {x: 1})(np.ones(3))


def test_match():
    def f(x, word):
        total = 0
        for v in x:
            match v:
                case 1:
                    total += 5
                case 2 | 3 if total > 5:
                    continue
                case -1:
                    total = -total
                    break
                case other if v > 100:
                    total += other
                case _:
                    total -= 1
        match word:
            case "twice":
                return total * 2, 0
            case None:
                return total * 3, 1
            case other:
                return total, other + 2

    x = np.array([1, 2, 1, 3, 0, 2, 5, 1, 1, 9])
    check(f, [x, "twice"], [x, None], [x, 7], [x - 1, 7])


def test_match_with_parts():
    def f(pair, x):
        match pair:
            case (a, b):
                return a * x + b
            case {"scale": s}:
                return s * x

    check(f, [(2.0, 3.0), steps(4)], [{"scale": 2.0}, steps(4)])
