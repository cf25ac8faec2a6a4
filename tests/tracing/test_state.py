"""Functions that change objects: what they leave in them is what numpy leaves."""

import copy
import dataclasses

import numpy as np
import pytest

import opwise
from opwise.errors import TracingError

pytestmark = pytest.mark.null


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


class Dense:
    def __init__(self, seed):
        self.w = normal(3, 3, seed=seed)

    def forward(self, x):
        self.x = x
        return np.tanh(x @ self.w)


class Net:
    def __init__(self):
        self.a, self.b = normal(3, 3), normal(3, 3, seed=1)
        self.steps, self.rate, self.last = 0, 0.1, None
        self.moments = {"a": np.zeros((3, 3)), "b": np.zeros((3, 3))}
        self.losses, self.cache = [], {}
        self.layers, self.weights = [Dense(2), Dense(3)], [normal(3, 3, seed=4), normal(3, 3)]


def other_arrays(net, x):
    net.a = net.a - net.rate * (x.T @ x)
    return (x @ net.a).sum()


def in_place(net, x):
    net.a -= net.rate * (x.T @ x)
    net.a[0] = 0
    net.steps += 1
    net.losses.append(net.a.mean())
    return net.steps


def moments(net, x):
    net.steps += 1
    for name in ("a", "b"):
        net.moments[name] = 0.9 * net.moments[name] + 0.1 * getattr(net, name)
        setattr(net, name, getattr(net, name) - net.moments[name] / (1 - 0.9**net.steps))


def caches(net, x):
    net.cache["x"], net.last = x, x @ net.a
    return net.last.sum()


def layers(net, x):
    for layer in net.layers:
        x = layer.forward(x)
    for layer in net.layers:
        layer.w -= net.rate * (layer.x.T @ x)
    return x


def items_by_index(net, x):
    for k in range(len(net.weights)):
        net.weights[k] -= 0.1
        net.weights[k] = net.weights[k] * 0.9
    return x @ net.weights[0]


def items_of_a_loop(net, x):
    for w in net.weights:
        x = np.tanh(x @ w)
    for k in range(len(net.weights)):
        net.weights[k] = net.weights[k] * 0.9
    return x


def exchange(net, x):
    net.a, net.b = net.b, net.a
    return net.a.sum()


def first_time(net, x):
    if net.last is None:
        net.last = np.zeros(3)
    net.last = 0.5 * net.last + x.mean(0)
    return net.last


def loop(net, x):
    for _ in range(20):
        net.a = net.a + x.sum()
    return net.a


def steps_decide(net, x):
    net.steps += 1
    return x if net.steps % 2 == 0 else -x


CHANGES = [
    other_arrays, in_place, moments, caches, layers, items_by_index, items_of_a_loop, exchange,
    first_time, loop, steps_decide,
]  # fmt: skip


def same(one, two):
    assert type(one) is type(two)
    if isinstance(one, np.ndarray | np.generic):
        assert one.dtype == two.dtype and np.allclose(one, two)
    elif isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            same(one[key], two[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same(a, b)
    elif hasattr(one, "__dict__"):
        same(vars(one), vars(two))
    else:
        assert one == pytest.approx(two)


@pytest.mark.parametrize("function", CHANGES)
def test_objects(function):
    ours, theirs, compiled = Net(), Net(), opwise.jit(function)
    for k in range(4):
        x = normal(4, 3, seed=k)
        same(function(theirs, x), compiled(ours, x))
        same(theirs, ours)
    # later calls find what earlier ones have left; None and an array are of two kinds
    assert len(compiled.signatures) <= (2 if function is first_time else 1)


@dataclasses.dataclass
class Body:
    x: np.ndarray
    v: np.ndarray
    t: float = 0.0
    log: list = dataclasses.field(default_factory=list)


def returned(body):
    body.x, body.v, body.t = body.v, body.x * 2, body.t + 0.5
    body.log.append(body.t)
    return body


def listed(items):
    items[0], items[1] = items[1], items[0] * 2
    items.insert(0, items.pop() + 1)
    items += [items[0].sum()]
    return items


def cleared(items):
    total = items[0] + items[1]
    items.clear()
    return total


def keyed(items):
    items["a"] = items["a"] + 1
    items["b"]["c"] += 1
    items["b"]["d"] = items.pop("e") * 2
    return items["b"]


def nested(items):
    items[0], items[1] = items[1], items[0]
    items[0].append(items[1][0])
    return items


ARGUMENTS = [
    (returned, lambda: Body(normal(3), normal(3, seed=1))),
    (listed, lambda: [normal(3), normal(3, seed=1)]),
    (cleared, lambda: [normal(3), normal(3, seed=1)]),
    (keyed, lambda: {"a": normal(3), "b": {"c": normal(2)}, "e": normal(1)}),
    (nested, lambda: [[normal(2)], [normal(3)]]),
]


@pytest.mark.parametrize("function,make", ARGUMENTS, ids=[f.__name__ for f, _ in ARGUMENTS])
def test_arguments(function, make):
    compiled = opwise.jit(function)
    for _ in range(2):
        ours, theirs = make(), make()
        expected, result = function(theirs), compiled(ours)
        same(expected, result)
        same(theirs, ours)
        assert (result is ours) == (expected is theirs)


def test_a_list_outside_is_read_in_each_call():
    net = Net()
    compiled = opwise.jit(lambda x: x @ net.weights[0] + sum(w.sum() for w in net.weights))
    for _ in range(3):
        x = normal(2, 3)
        expected = x @ net.weights[0] + sum(w.sum() for w in net.weights)
        assert np.allclose(compiled(x), expected)
        net.weights[1] = net.weights[1] + 1
        net.weights.append(normal(3, 3))


def test_an_error_leaves_objects_as_they_were():
    def f(net, x):
        net.steps += 1
        net.a = x
        return np.busday_count(x, x)

    net = Net()
    before = copy.deepcopy(net)
    with pytest.raises(TracingError, match="busday_count"):
        opwise.jit(f)(net, normal(2))
    same(before, net)


COUNT = 0


def test_what_cannot_be_changed_is_an_error():
    def counts(x):
        global COUNT
        COUNT += 1
        return x

    def branches(net, x):
        for v in x:
            if v > 0:
                net.steps = 1
        return x

    def makes(x):
        made = Net()
        made.a, made.own = x, made
        return made

    with pytest.raises(TracingError, match="assigns the global variable COUNT"):
        opwise.jit(counts)(normal(2))
    with pytest.raises(TracingError, match="sets the attribute steps of a Net"):
        opwise.jit(branches)(Net(), normal(3000))
    with pytest.raises(TracingError, match="returns or keeps a Net that it has made"):
        opwise.jit(makes)(normal(2))
    assert COUNT == 0


class Line:
    def __init__(self, weights):
        self.weights, self.errors, self.name = weights, [], "line"

    def fit(self, x, y, steps):
        for _ in range(steps):
            self.weights = self.weights - 0.1 * x.T @ (x @ self.weights - y) / len(x)
        self.errors.append(((x @ self.weights - y) ** 2).mean())
        return self


def test_objects_that_the_function_makes():
    def fitted(x, y):
        line = Line(np.zeros(x.shape[1])).fit(x, y, 20)
        return line, {"same": [line]}

    g, x, y = opwise.jit(fitted), normal(12).reshape(4, 3), normal(4)
    expected, (line, others) = fitted(x, y)[0], g(x, y)
    assert type(line) is Line and others["same"][0] is line and line.name == "line"
    assert np.allclose(line.weights, expected.weights)
    assert np.allclose(line.errors, expected.errors) and type(line.errors) is list
    assert g(x, y)[0] is not line

    def keeps(lines, x):
        lines.append(Line(x + 1))

    lines = []
    opwise.jit(keeps)(lines, np.ones(2))
    assert lines[0].weights.tolist() == [2, 2]
