"""Lists that loops and branches change: Python's, or arrays with a number of items."""

import bisect
import collections
import dataclasses
import heapq

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError
from opwise.loops import Scan
from tests.tracing.test_loop_programs import same

pytestmark = pytest.mark.null


def uniform(n, seed=0):
    return np.random.default_rng(seed).random(n)


def few(n, seed=0):
    return np.random.default_rng(seed).integers(0, 4, n)


def alike(expected, result):
    if isinstance(expected, list | tuple | collections.deque):
        assert type(expected) is type(result) and len(expected) == len(result)
        for one, two in zip(expected, result, strict=True):
            alike(one, two)
    elif isinstance(expected, str):
        assert expected == result
    elif isinstance(expected, np.ndarray):
        same(expected, result)
    else:  # numbers of a list have one type
        assert np.isclose(expected, result) if expected is not None else result is None


def check(function, *cases, signatures=1):
    """Compare a compiled function with Python, and what it does to its arguments."""
    compiled = opwise.jit(function)
    for case in cases:
        given = [list(a) if isinstance(a, list) else np.copy(a) if isinstance(a, np.ndarray) else a
                 for a in case]  # fmt: skip
        other = [list(a) if isinstance(a, list) else np.copy(a) if isinstance(a, np.ndarray) else a
                 for a in case]  # fmt: skip
        expected, result = function(*given), compiled(*other)
        alike(expected, result)
        alike(given, other)
    assert len(compiled.signatures) == signatures, str(compiled.signatures)
    return compiled


def is_loop(compiled):
    """Return whether each signature has a loop, and no operation for each item."""
    return all(
        len(each.compiled.maker.fgraph.apply_nodes) < 60
        and any(isinstance(node.op, Scan) for node in each.compiled.maker.fgraph.apply_nodes)
        for each in compiled.signatures
    )


# --- appending ------------------------------------------------------------------------------------


def doubled(x):
    out = []
    for i in range(len(x)):
        out.append(x[i] * 2)
    return np.array(out)


def above(x):
    out = []
    for v in x:
        if v > 0.5:
            out.append(v)
    return np.array(out)


def places(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append(i)
    return out


def two_lists(x):
    low, high = [], []
    for v in x:
        if v < 0.5:
            low.append(v)
        else:
            high.append(v)
    return np.array(low + high), len(low), max(high)


def pairs(x):
    out = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if abs(x[i] - x[j]) < 0.05:
                out.append((i, j))
    return out


def tuples(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append((i, x[i]))
    return out


def nested_tuples(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.append((i, (x[i], x[i] * 2)))
    return out


def trajectory(x):
    states = [x[0]]
    for _ in range(len(x)):
        states.append(3.7 * states[-1] * (1 - states[-1]))
    return np.array(states)


def fields(x):
    frames = [x.copy()]
    for _ in range(12):
        x = x + 0.1 * (np.roll(x, 1) - 2 * x + np.roll(x, -1))
        frames.append(x.copy())
    return np.array(frames)


def some_fields(x):
    frames = []
    for k in range(20):
        x = x * 0.9
        if k % 3 == 0:
            frames.append(x)
    return np.array(frames)


def run_lengths(x):
    out, run = [], 1
    for i in range(1, len(x)):
        if x[i] > 0.5 and x[i - 1] > 0.5:
            run += 1
        else:
            out.append(run)
            run = 1
    out.append(run)
    return out


def extended(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0.5:
            out.extend([i, i + 1])
        else:
            out += [0]
    return out


def in_a_function(x):
    out = []

    def visit(i):
        if x[i] > 0.5:
            out.append(i)

    for i in range(len(x)):
        visit(i)
    return out


class Store:
    def __init__(self, first):
        self.items = [first]

    def add(self, value):
        if value > 0.5:
            self.items.append(value)


def in_an_object(x):
    store = Store(0.25)
    for v in x:
        store.add(v)
    return np.array(store.items)


def in_a_dict(x):
    found = {"low": [], "high": []}
    for v in x:
        found["high" if False else "low"].append(v)
        if v > 0.5:
            found["high"].append(v)
    return len(found["low"]), np.array(found["high"])


def distinct(x):
    seen = []
    for v in np.floor(x * 5):
        if v not in seen:
            seen.append(v)
    return np.array(seen)


def rows(x):
    made = []
    for i in range(len(x)):
        row = []
        for j in range(3):
            row.append(x[i] * j)
        made.append(row)
    return np.array(made)


def early(x):
    out = []
    for v in x:
        if v > 0.97:
            return out
        out.append(v)
    return out


@pytest.mark.parametrize(
    "function",
    [
        doubled, above, places, two_lists, pairs, tuples, nested_tuples, trajectory, fields,
        some_fields, run_lengths, extended, in_a_function, in_an_object, in_a_dict, distinct, rows,
    ],
)  # fmt: skip
def test_lists_that_loops_append_to(function):
    compiled = check(function, [uniform(40)], [uniform(25, 1)], [uniform(40, 2)])
    assert is_loop(compiled)


def test_a_loop_that_returns_its_list():
    check(early, [uniform(12)], [uniform(12, 3)])


def test_a_list_that_may_be_empty():
    # numpy's array of no ints is one of floats
    for function in (above, lambda x: np.array(places(x)), lambda x: np.array(tuples(x))):
        check(function, [uniform(12)], [uniform(12) * 0.4], [uniform(12, 1)])


def test_branches_outside_loops():
    def f(x):
        out = [1.0]
        if x[0] > 0.5:
            out.append(x[1])
        out.append(x[2])
        if len(out) > 2:
            out.pop()
        return out, len(out), np.array(out)

    check(f, [np.array([0.2, 1.5, 2.5])], [np.array([0.9, 1.5, 2.5])])


def test_items_become_floats():
    def f(x):
        out = [0]
        for v in x:
            if v > 0.5:
                out.append(1)
            out.append(float(v))
        return np.array(out)

    check(f, [uniform(12)], [uniform(12, 1)])


# --- how often is decided by calls ----------------------------------------------------------------


def collatz(n):
    out = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        out.append(n)
    return np.array(out)


def grown(x):
    out = [x[0]]
    while out[-1] < 1e6:
        out.append(out[-1] * 1.01 + 0.5)
    return np.array(out), len(out)


def merged(a, b):
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    while i < len(a):
        out.append(a[i])
        i += 1
    while j < len(b):
        out.append(b[j])
        j += 1
    return np.array(out)


def depth_first(starts, ends, first):
    seen = np.zeros(len(starts) - 1, dtype=bool)
    stack, order = [first], []
    while stack:
        u = stack.pop()
        if seen[u]:
            continue
        seen[u] = True
        order.append(u)
        for k in range(starts[u], starts[u + 1]):
            if not seen[ends[k]]:
                stack.append(ends[k])
    return np.array(order)


def breadth_first(grid):
    h, w = grid.shape
    dist = np.full((h, w), -1)
    queue = collections.deque([(0, 0)])
    dist[0, 0] = 0
    while queue:
        i, j = queue.popleft()
        for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            a, b = i + di, j + dj
            if 0 <= a < h and 0 <= b < w and grid[a, b] == 0 and dist[a, b] < 0:
                dist[a, b] = dist[i, j] + 1
                queue.append((a, b))
    return dist


def hull(p):
    lower = []
    for i in range(len(p)):
        while (
            len(lower) >= 2
            and (lower[-1][0] - lower[-2][0]) * (p[i, 1] - lower[-2][1])
            - (lower[-1][1] - lower[-2][1]) * (p[i, 0] - lower[-2][0])
            <= 0
        ):
            lower.pop()
        lower.append((p[i, 0], p[i, 1]))
    return np.array(lower)


def reverse_polish(tokens):
    stack = []
    for v in tokens:
        if v >= 0:
            stack.append(v)
        else:
            b = stack.pop()
            a = stack.pop()
            stack.append(a + b if v == -1 else a * b)
    return stack[0]


def next_greater(x):
    stack = []
    out = np.zeros(len(x))
    for i in range(len(x)):
        while stack and x[stack[-1]] < x[i]:
            out[stack.pop()] = i
        stack.append(i)
    return out


def taken_from_the_front(x):
    queue, total = [v + 1 for v in x], 0.0
    while queue != []:
        total = total * 0.5 + queue.pop(0)
    return total


def graph(n, seed):
    rng = np.random.default_rng(seed)
    ends = [np.unique(rng.integers(0, n, 3)) for _ in range(n)]
    return np.cumsum([0] + [len(each) for each in ends]), np.concatenate(ends), 0


def maze(h, w, seed):
    grid = (np.random.default_rng(seed).random((h, w)) < 0.25).astype(int)
    grid[0, 0] = 0
    return grid


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        (collatz, [[27], [97], [3]]),
        (grown, [[uniform(3)], [uniform(3, 1)]]),
        (merged, [[np.sort(uniform(20)), np.sort(uniform(9, 1))],
                  [np.sort(uniform(700)), np.sort(uniform(900, 1))]]),
        (depth_first, [graph(40, 0), graph(60, 1)]),
        (breadth_first, [[maze(9, 12, 0)], [maze(20, 14, 1)]]),
        (hull, [[np.sort(uniform((40, 2)), 0)], [np.sort(uniform((30, 2), 1), 0)]]),
        (reverse_polish, [[np.array([2.0, 3, -1, 4, -2])], [np.array([5.0, 1, 2, -1, 4, -2, -1])]]),
        (next_greater, [[uniform(40)], [uniform(23, 1)]]),
        (taken_from_the_front, [[uniform(30)], [uniform(12, 1)]]),
    ],
)  # fmt: skip
def test_lists_of_which_calls_decide_how_long_they_are(function, cases):
    compiled = check(function, *cases)
    assert is_loop(compiled)


def test_items_that_were_taken_from_the_front():
    def f(x):
        queue = []
        for v in x:
            queue.append(v)
            if len(queue) > 3:
                queue.pop(0)
        for i in range(len(x)):
            queue[i % 2] += 1
        wide = [int(v > 0.5) for v in x]
        for _ in range(9):
            wide.pop(0)
        for i in range(len(queue)):
            wide[i] = queue[i] * 0.5
        return queue, queue + [7.0], list(collections.deque(queue)), wide

    check(f, [uniform(30)], [uniform(20, 1)])


def test_a_deque():
    def f(x):
        window = collections.deque()
        for v in x:
            window.append(v)
            if len(window) > 4:
                window.popleft()
        return window, sum(window), isinstance(window, collections.deque)

    check(f, [uniform(30)], [uniform(20, 1)])


def test_draws_are_made_once_where_a_list_needs_more_room():
    def f(rng, n):
        noise = rng.normal(size=n)
        out = [noise[0]]
        k = 0
        while k < n * 100:
            if noise[k % n] > 0:
                out.append(noise[k % n])
            k += 1
        return np.array(out)

    one, two = np.random.default_rng(0), np.random.default_rng(0)
    compiled = opwise.jit(f)
    for _ in range(2):
        same(f(one, 30), compiled(two, 30))
    assert one.random() == two.random()


# --- items ----------------------------------------------------------------------------------------


def bubble(x):
    a = list(x)
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return np.array(a)


def insertion(x):
    a = [v * 2 for v in x]
    for i in range(1, len(a)):
        key, j = a[i], i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return a


def histogram(x):
    counts = [0] * 10
    for v in x:
        counts[int(v * 10)] += 1
    return counts


def sums(x):
    out = [0] * 5
    for i in range(len(x)):
        out[i % 5] += x[i]
    return out


def sieve(n):
    flags = [True] * (n + 1)
    flags[0] = flags[1] = False
    p = 2
    while p * p <= n:
        if flags[p]:
            for k in range(p * p, n + 1, p):
                flags[k] = False
        p += 1
    return [i for i in range(n + 1) if flags[i]]


def longest_common(a, b):
    n, m = len(a), len(b)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[n][m]


def products(n):
    table = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            table[i][j] = i * j + 0.5
    return table


def fibonacci(n):
    f = [0, 1]
    for i in range(2, n + 1):
        f.append(f[i - 1] + f[i - 2])
    return f[n]


def permuted(n):
    p = list(range(n))
    for i in range(n - 1, 0, -1):
        j = (i * 7) % (i + 1)
        p[i], p[j] = p[j], p[i]
    return p


def two_numbers(x):
    state = [0.0, 1.0]
    for v in x:
        state[0] += v
        state[1] *= 1 + v * 0.01
    return state


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        (bubble, [[uniform(30)], [uniform(17, 1)]]),
        (insertion, [[uniform(30)], [uniform(17, 1)]]),
        (histogram, [[uniform(30)], [uniform(17, 1)]]),
        (sums, [[uniform(30)], [uniform(17, 1)]]),
        (sieve, [[200], [57]]),
        (longest_common, [[few(20), few(25, 1)], [few(31, 2), few(9, 3)]]),
        (products, [[12], [9]]),
        (fibonacci, [[40], [12]]),
        (permuted, [[30], [12]]),
        (two_numbers, [[uniform(30)], [uniform(17, 1)]]),
    ],
)
def test_items_that_values_decide(function, cases):
    compiled = check(function, *cases)
    assert is_loop(compiled)


def test_other_names_of_a_row():
    def f(x):
        table = [[0] * 3 for _ in range(3)]
        row = table[0]
        for i in range(len(x)):
            table[int(x[i] * 3)][0] += 1
        return row, table

    check(f, [uniform(20)], [uniform(30, 1)])


def test_other_names_of_a_row_of_a_table_that_grows():
    def f(x):
        table = [[0.0] * 2 for _ in range(2)]
        row = table[0]
        for v in x:
            table.append([v, v])
        row[0] = 7.0
        table[0][1] = 8.0
        return row, table[0], len(table)

    check(f, [uniform(20)], [uniform(12, 1)])


def test_rows_of_a_table_have_one_length():
    def f(x):
        table = [[0.0] * 2 for _ in range(2)]
        for i in range(len(x)):
            table[i % 2][0] += x[i]
        table[0].append(1.0)
        return table

    with pytest.raises(TracingError, match="changes the length of a list that is an item"):
        opwise.jit(f)(uniform(20))


def test_multiples_of_a_list():
    compiled = opwise.jit(lambda n: [0.5] * n)
    for n in (3, 0, -1, 5):
        alike([0.5] * n, compiled(n))


def test_rows_that_are_one_list_stay_one():
    def f(x):
        table = [[0.0] * 3] * 3
        for i in range(3):
            table[i][0] += x[i]
        return table

    check(f, [uniform(3)], [uniform(3, 1)])


@pytest.mark.parametrize(
    "use",
    [
        lambda a: (sum(a), max(a), min(a), len(a), bool(a), not a),
        lambda a: (sorted(a), sorted(a, reverse=True)[0]),
        lambda a: (a[2:5], a[::-1][0], a[-3:], a[-1]),
        lambda a: (np.array(a[1:]) * 2, np.mean(a), np.sqrt(a)),
        lambda a: (a.count(a[0]), a.index(a[2]), a[0] in a, 7.0 in a),
        lambda a: sum(i * v for i, v in enumerate(a)),
        lambda a: sum(v * w for v, w in zip(a, reversed(a), strict=True)),
        lambda a: [v * 2 for v in a if v > 0.6],
        lambda a: (a + a, a + [1.5], [1.5] + a),
        lambda a: a.copy(),
        lambda a: (a.sort(), a),
        lambda a: (a.sort(reverse=True), a.reverse(), a),
        lambda a: (a.clear(), a, len(a)),
        lambda a: 1 if a == [] else 2,
        lambda a: isinstance(a, list) and type(a) is list,
    ],
)
def test_what_is_done_with_a_list_of_unknown_length(use):
    def f(x):
        out = []
        for v in x:
            if v > 0.3:
                out.append(v)
        return use(out)

    check(f, [uniform(30)], [uniform(20, 1)])


@pytest.mark.parametrize(
    "use",
    [
        lambda a: tuple(a[:3]),
        lambda a: (a.insert(1, 0.5), a),
        lambda a: (a.pop(2), a),
        lambda a: a * 2,
        lambda a: (lambda p, q, r: p + q + r)(*a[:3]),
    ],
)
def test_what_python_does_with_a_list_of_known_length(use):
    def f(x):
        out = []
        for v in x:
            out.append(v * 2)
        return use(out)

    check(f, [uniform(12)], [uniform(12, 1)])


# --- comprehensions that are assigned -------------------------------------------------------------


def test_a_comprehension_is_a_loop():
    def f(x):
        squares = [v * v for v in x]
        total = 0.0
        for s in squares:
            total += s
        table = [[a * b for b in range(len(x))] for a in range(len(x))]
        return total, max(squares), squares, table[1][2], [(v, 1) for v in x if v > 0.5]

    compiled = check(f, [uniform(30)], [uniform(20, 1)])
    assert is_loop(compiled)


def test_means_of_groups():
    def f(x, labels):
        return [x[labels == k].mean() for k in np.unique(labels)]

    check(f, [uniform(30), few(30)], [uniform(30, 1), few(30) % 2])


NAMES = ["a", "b"]


def items_of_other_kinds(x):
    found = []
    for v in x:
        found.append(v)
    return NAMES + ["c"], found + ["d"], found


def appended_to_numbers(x):
    found = []
    for v in x:
        found.append(v)
    found.append("end")
    return found


@pytest.mark.parametrize("function", [items_of_other_kinds, appended_to_numbers])
def test_items_of_other_kinds(function):
    alike(function(uniform(12)), opwise.jit(function)(uniform(12)))


class State(collections.namedtuple("State", "memory x")):
    """Its field has the name of an attribute of lists in arrays."""


def test_tuples_with_names():
    def f(x):
        state, total, found = State(3, 1.0), 0.0, []
        for v in x:
            total += v * state.memory
            found.append(State(v, v))
        return total, len(found), np.stack([State(x, x).memory, x])

    alike(f(uniform(12)), opwise.jit(f)(uniform(12)))


def test_rows_of_an_array():
    def written(x):
        rows = list(x)
        rows[0][:] = 0
        x[1] = 5
        return x, rows[0], rows[1]

    check(written, [uniform((3, 2))], [uniform((4, 2), 1)], signatures=2)


class Point:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def norm(self):
        return self.a * self.a + self.b * self.b


def test_objects_that_a_step_makes():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            point = Point(x[i], 2.0)
            total += point.norm()
        return total

    (signature,) = check(f, [uniform(20)], [uniform(30, 1)]).signatures
    assert len(signature.compiled.maker.fgraph.apply_nodes) < 20


def test_names_of_steps_are_written_out():
    def f(weights, x):
        names = []
        for i in range(12):
            names.append(f"layer {i}")
            x = np.tanh(x * weights[f"w{i}"])
        return names, x

    weights = {f"w{i}": float(i) for i in range(12)}
    for x in (uniform(3), uniform(4, 1)):
        alike(f(weights, x), opwise.jit(f)(weights, x))


def test_other_items_are_left_to_python():
    def f(x):
        names = [f"item {k}" for k in range(len(x))]
        kinds = ["a" if k % 2 else None for k in range(12)]
        return names, kinds, [np.ones(k) for k in range(1, len(x))], x * 2

    check(f, [uniform(9)], [uniform(10)], signatures=2)


# --- arguments ------------------------------------------------------------------------------------


@dataclasses.dataclass
class Log:
    values: list


def test_lists_of_the_caller():
    def f(found, x):
        for v in x:
            if v > 0.5:
                found.append(v)
        return len(found)

    check(f, [[1.0], uniform(20)], [[2.0], uniform(12, 1)])

    def g(log, x):
        for v in x:
            if v > 0.5:
                log.values.append(v)

    one, two = Log([0.5]), Log([0.5])
    g(one, uniform(20))
    opwise.jit(g)(two, uniform(20))
    assert one == two


# --- errors ---------------------------------------------------------------------------------------


def test_errors():
    def none_there(x):
        out = []
        for v in x:
            if v > 0.5:
                out.append(v)
        return out[3]

    compiled = opwise.jit(none_there)
    assert compiled(np.full(5, 0.75)) == 0.75
    with pytest.raises(IndexError):
        compiled(np.array([0.75, 0.1, 0.75]))

    def empty(x):
        stack = [x[0]]
        for v in x:
            if v > 0.5:
                stack.pop()
        return len(stack)

    compiled = opwise.jit(empty)
    assert compiled(np.array([0.1, 0.7])) == 0
    with pytest.raises(IndexError):
        compiled(np.array([0.7, 0.7]))

    def through_python(x):
        out = []
        for v in x:
            if v > 0.5:
                out.append(v)
        return tuple(out)

    with pytest.raises(TracingError, match="list of which calls decide how long it is") as caught:
        opwise.jit(through_python)(uniform(20))
    assert "return tuple(out)" in str(caught.value)

    def buckets(x):
        found = [[] for _ in range(5)]
        for v in x:
            found[int(v * 5)].append(v)
        return [len(each) for each in found]

    with pytest.raises(TracingError, match=r"found\[int\(v \* 5\)\].append"):
        opwise.jit(buckets)(uniform(20))

    def named(x):
        names = ["a", "b"]
        names[int(x[0])] = "c"
        return names

    with pytest.raises(
        TracingError, match="which item of a list changes: an item of a list is str"
    ):
        opwise.jit(named)(uniform(2))


def test_an_array_that_is_in_a_list_is_not_changed_in_place():
    def f(x):
        frames = []
        for _ in range(len(x)):
            x += 1
            frames.append(x)
        return np.array(frames)

    check(f, [uniform(12)])  # a few steps are written out, and share it as Python's do
    with pytest.raises(TracingError, match="that is an item of a list, too"):
        opwise.jit(f)(uniform(200))

    def later(x):
        frames = [x.copy()]
        for _ in range(10):
            frames.append(frames[-1] * 2)
        last = frames[-1]
        last += 100
        return frames

    with pytest.raises(TracingError, match="that is an item of a list, too"):
        opwise.jit(later)(uniform(3))


# --- heaps, and lists of tuples in order ----------------------------------------------------------


def heap_order(x):
    heap = []
    for v in x:
        heapq.heappush(heap, v)
    least = heapq.heappushpop(heap, 0.5)
    more = heapq.heapreplace(heap, 0.25)
    return [heapq.heappop(heap) for _ in range(len(x))], least, more


def shortest(weights):
    n = len(weights)
    distance = np.full(n, np.inf)
    distance[0] = 0
    heap = [(0.0, 0)]
    while heap:
        reached, u = heapq.heappop(heap)
        if reached > distance[u]:
            continue
        for v in range(n):
            if weights[u, v] > 0 and reached + weights[u, v] < distance[v]:
                distance[v] = reached + weights[u, v]
                heapq.heappush(heap, (distance[v], v))
    return distance


def merged(sizes):
    heap = [(sizes[i], i) for i in range(len(sizes))]
    heapq.heapify(heap)
    cost, number = 0.0, len(sizes)
    while len(heap) > 1:
        one, two = heapq.heappop(heap), heapq.heappop(heap)
        cost += one[0] + two[0]
        heapq.heappush(heap, (one[0] + two[0], number))
        number += 1
    return cost


def busiest(starts, ends):
    events = []
    for i in range(len(starts)):
        events.append((starts[i], 1))
        events.append((ends[i], -1))
    events.sort()
    now = most = 0
    for _, change in events:
        now += change
        most = max(most, now)
    events.sort(key=lambda event: event[1], reverse=True)
    events.reverse()
    return most, events[0], events[-1]


def test_heaps():
    check(heap_order, [uniform(30)], [uniform(45, 1)], [np.ones(12)])
    check(shortest, [uniform(100).reshape(10, 10) - 0.5], [np.zeros((15, 15))])
    check(merged, [uniform(20)], [uniform(50, 3)])
    check(lambda x: (heapq.nlargest(3, x), heapq.nsmallest(2, x)), [uniform(9)])

    def of_few(x):
        heap = []
        for v in x:
            if v > 2:
                heap.append(v)
        return heapq.heappop(heap)

    assert opwise.jit(of_few)(10 * uniform(30)) == of_few(10 * uniform(30))
    with pytest.raises(IndexError):
        opwise.jit(of_few)(uniform(30))


def increasing(x):
    tails = []
    for v in x:
        k = bisect.bisect_left(tails, v)
        if k == len(tails):
            tails.append(v)
        else:
            tails[k] = v
    return len(tails), tails, bisect.bisect(tails, 0.5), bisect.bisect_right([0.25, 0.75], x[0])


def medians(x):
    seen, out = [], []
    for v in x:
        bisect.insort(seen, v)
        n = len(seen)
        out.append(seen[n // 2] if n % 2 else (seen[n // 2 - 1] + seen[n // 2]) / 2)
    bisect.insort_left(seen, x[0])
    return out, seen


def test_places_in_lists_in_order():
    check(increasing, [uniform(40)], [few(60) / 3], [np.ones(20)])
    check(medians, [uniform(40)], [few(31) / 3])


def test_tuples_in_order():
    starts = uniform(40)
    check(busiest, [starts, starts + 0.1], [uniform(15), uniform(15) + 0.3])

    def first(x, y):
        best = np.inf, -1
        for i in range(len(x)):
            if (x[i], y[i]) < best:
                best = x[i], y[i]
        pair = x[0], y[0]
        return best, pair == (x[1], y[1]), pair != (x[0], y[0]), pair >= (x[1], y[1])

    check(first, [few(20) / 2, few(20, 1)], [np.zeros(12), few(12, 3)])
    named = lambda x: sorted([("b", x[0]), ("a", x[1]), ("c", x[0])])  # noqa: E731
    check(named, [uniform(4)])
    check(lambda x: sorted([(x[0], 1), (x[1], 0), (x[0], 0)], reverse=True), [uniform(4)])
