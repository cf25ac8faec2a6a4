"""Random graphs of indexing, shapes and joins: with all rules they give what they give without."""

import numpy as np
import pytest
from checking import evaluate

import opwise.tensor as T
from opwise import Mode, function
from opwise.compile import Shape_i
from opwise.config import change_flags
from opwise.tensor import inc_subtensor, set_subtensor

pytestmark = pytest.mark.null

GRAPHS, STEPS = 200, 10
UNARY = [T.exp, T.tanh, T.neg, T.abs_, lambda x: T.cast(x, "float32")]
BINARY = [T.add, T.mul, T.sub, T.maximum]


class RandomGraph:
    """A graph that grows by random steps; the value of each variable is known, rules apart."""

    def __init__(self, seed):
        self.random = np.random.RandomState(seed)
        a, b, c = (int(n) for n in self.random.choice([0, 1, 2, 3, 4], 3))
        self.values = {}
        for name, make, shape in [
            ("x", T.dmatrix, (a, b)), ("y", T.dmatrix, (a, b)), ("v", T.dvector, (b,)),
            ("t", T.dtensor3, (a, b, c)), ("s", T.dscalar, ()), ("f", T.fmatrix, (a, b)),
        ]:  # fmt: skip
            var = make(name)
            self.values[var] = self.random.uniform(-2, 2, shape).astype(var.type.dtype)
        self.tensors = list(self.values)
        self.number = T.lscalar("n")
        self.values[self.number] = np.asarray(self.random.randint(-3, 4))
        self.inputs = list(self.values)
        for _ in range(STEPS):
            self.grow()
        self.outputs = [v for v in self.tensors if v.owner is not None][-3:]

    def grow(self):
        """Add a tensor that some step makes of some tensor; graphs that fail stay outside."""
        step = self.one_of(self.steps)
        new = step(self, self.some_tensor(at_least=1 if step in self.of_dimensions else 0))
        if new is None or new.type.ndim > 4:
            return
        try:
            [value] = evaluate([new], self.values)
        except (ValueError, IndexError):
            return
        if value.size <= 400 and np.abs(value).sum() < 1e6:
            self.values[new] = value
            self.tensors.append(new)

    # --- choices ------------------------------------------------------------------------------

    def chance(self, p):
        return self.random.rand() < p

    def one_of(self, things):
        return things[self.random.randint(len(things))]

    def some_tensor(self, at_least=0):
        fitting = [v for v in self.tensors if v.type.ndim >= at_least]
        # half of the time the latest, so that one step follows the other
        return fitting[-1] if self.chance(0.5) else self.one_of(fitting)

    def shape(self, x):
        return self.values[x].shape

    def length(self, x, d):
        """A length of a tensor: symbolic in two ways, or a number."""
        return self.one_of([x.shape[d], Shape_i(d)(x), x.shape[d], self.shape(x)[d]])

    def lengths(self, x):
        return [self.length(x, d) for d in range(x.type.ndim)]

    def bound(self):
        return self.one_of([None, None, self.number, *range(-4, 5)])

    def index(self, x):
        taken = self.random.randint(x.type.ndim) + 1
        return tuple(self.index_along(n) for n in self.shape(x)[:taken])

    def index_along(self, n):
        if n and self.chance(0.4):
            return int(self.random.randint(-n, n))
        return slice(self.bound(), self.bound(), self.one_of([None, None, None, -2, -1, 1, 2]))

    def like(self, x):
        """Some tensor of the dimensions and lengths of another."""
        return self.one_of([v for v in self.tensors if self.shape(v) == self.shape(x)])

    def operand(self, x):
        """Some tensor that an elementwise operation can take beside ``x``."""
        return self.one_of([v for v in self.tensors if self.fits(v, x)])

    def fits(self, v, x):
        surplus = x.type.ndim - v.type.ndim
        return surplus >= 0 and all(
            n == m or one or other
            for n, m, one, other in zip(
                self.shape(v), self.shape(x)[surplus:],
                v.type.broadcastable, x.type.broadcastable[surplus:], strict=True,
            )
        )  # fmt: skip

    # --- steps --------------------------------------------------------------------------------

    def part(self, x):
        return x[self.index(x)]

    def part_of_part(self, x):
        return self.part_of(self.part(x))

    def part_of(self, x):
        [value] = evaluate([x], self.values)
        return x[tuple(self.index_along(n) for n in value.shape)] if value.ndim else x

    def rows(self, x):
        n = self.shape(x)[0]
        if not n or self.chance(0.3):
            return x[T.arange(self.length(x, 0))]
        return x[self.random.randint(-n, n, size=self.random.randint(4))]

    def changed(self, x):
        part = self.part(x)
        if self.chance(0.3):
            whole = T.zeros_like(x)
            part = part.owner.op(whole, *part.owner.inputs[1:])
        change = self.one_of([set_subtensor, inc_subtensor])
        new = change(part, self.new_part(part))
        if self.chance(0.3):
            new = part.owner.op(new, *part.owner.inputs[1:])
        return new + self.like(x) if self.chance(0.2) else new

    def new_part(self, part):
        [value] = evaluate([part], self.values)
        number = np.asarray(float(self.random.randint(3)), part.type.dtype)
        fitting = [
            v for v in self.tensors
            if self.shape(v) == value.shape and v.type.dtype == part.type.dtype
        ]  # fmt: skip
        return self.one_of([
            number,
            T.alloc(number, *(part.shape[d] for d in range(value.ndim))) if value.ndim else number,
            T.fill(part, number),
            *fitting[-2:],
        ])  # fmt: skip

    def unary(self, x):
        return self.one_of(UNARY)(T.tanh(x))

    def binary(self, x):
        return self.one_of(BINARY)(x, self.operand(x))

    def reshaped(self, x):
        lengths = self.lengths(x)
        return x.reshape(
            self.one_of([
                lengths, [1, *lengths], [*lengths, 1], [-1], [T.prod(x.shape)],
                [lengths[0], -1], [-1, *lengths[1:]], [T.prod(lengths[:2]), *lengths[2:]],
            ])
        )  # fmt: skip

    def flat(self, x):
        return x.flatten(self.random.randint(1, x.type.ndim + 1))

    def allocated(self, x):
        value = self.one_of([x, x, *map(np.float64, range(3))])
        return T.alloc(value, *self.one_of([[], [1], [2], [1, 3]]), *self.lengths(x))

    def filled(self, x):
        return self.one_of([T.zeros_like(x), T.ones_like(x), T.fill(x, self.operand(x))])

    def shuffled(self, x):
        pattern = x.type.broadcastable
        order = [int(d) for d in self.random.permutation(x.type.ndim)]
        order = [d for d in order if not (pattern[d] and self.chance(0.5))]
        if self.chance(0.4):
            order.insert(self.random.randint(len(order) + 1), "x")
        return x.dimshuffle(order)

    def promised(self, x):
        d = self.random.randint(x.type.ndim)
        return (T.addbroadcast if self.shape(x)[d] == 1 else T.unbroadcast)(x, d)

    def joined(self, x):
        axis = self.random.randint(x.type.ndim)
        empty = T.zeros([0 if d == axis else n for d, n in enumerate(self.lengths(x))])
        return T.concatenate(self.one_of([[x, self.like(x)], [x, empty, self.like(x)]]), axis)

    def stacked(self, x):
        return T.stack([x, self.like(x)], axis=self.random.randint(x.type.ndim + 1))

    def split(self, x):
        axis = self.random.randint(x.type.ndim)
        if self.chance(0.5):
            return T.split(x, [self.length(x, axis)], 1, axis)
        first = self.random.randint(self.shape(x)[axis] + 1)
        return T.split(x, [first, x.shape[axis] - first], 2, axis)[self.random.randint(2)]

    def reduced(self, x):
        reduction = self.one_of([T.sum, T.prod] if 0 in self.shape(x) else [T.sum, T.mean, T.prod])
        axis = self.one_of([None, *range(x.type.ndim)])
        return reduction(x, axis=axis, keepdims=self.chance(0.4))

    def measured(self, x):
        return T.cast(self.one_of([x.shape, x.size, self.length(x, 0)]), "float64")

    def product(self, x):
        fitting = [
            v for v in self.tensors
            if v.type.ndim in (1, 2) and self.shape(v)[0] == self.shape(x)[-1]
        ]  # fmt: skip
        return T.dot(x, self.one_of(fitting)) if fitting and x.type.ndim < 3 else None

    of_dimensions = (
        part, part, part_of_part, rows, changed, changed, reshaped, reshaped, flat, promised,
        joined, split, reduced, measured, product,
    )  # fmt: skip
    steps = (*of_dimensions, unary, binary, binary, allocated, filled, shuffled, stacked)


def check(graph, mode):
    f = function(graph.inputs, graph.outputs, mode=mode, on_unused_input="ignore")
    results = f(*(graph.values[v] for v in graph.inputs))
    for var, result in zip(graph.outputs, results, strict=True):
        assert result.dtype == var.type.dtype
        np.testing.assert_allclose(
            result, graph.values[var], rtol=1e-4, atol=1e-5, strict=True, err_msg=str(var)
        )


@pytest.mark.parametrize("first", range(0, GRAPHS, 50))
def test_graphs_give_what_they_give_without_rules(first, caplog):
    with change_flags(on_opt_error="raise"):
        for seed in range(first, first + 50):
            try:
                check(RandomGraph(seed), Mode("py", "fast_run"))
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
    assert not caplog.records  # of rules that do not come to rest


@pytest.mark.c
@pytest.mark.parametrize("seed", range(5))
def test_graphs_give_the_same_in_c(seed):
    check(RandomGraph(seed), "FAST_RUN")
