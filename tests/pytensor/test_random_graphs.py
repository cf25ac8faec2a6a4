"""Random graphs of PyTensor's Ops under opwise against PyTensor's perform."""

import numpy as np
import pytest

pytest.importorskip("pytensor", reason="PyTensor is not installed")
import pytensor.tensor as pt

pytestmark = pytest.mark.c

#: lengths of dimensions: few, so that operands often fit
LENGTHS = (1, 2, 3)


class Graph:
    """Grows a graph: a pool of variables with values, and steps that add to it."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.inputs, self.values = [], []
        for _ in range(4):
            shape = tuple(self.rng.choice(LENGTHS, self.rng.integers(0, 4)))
            dtype = self.rng.choice(["float64", "float64", "float32", "int64", "int8", "bool"])
            value = self.rng.uniform(-2, 3, shape).astype(dtype)
            known = tuple(n if n == 1 or self.rng.random() < 0.3 else None for n in shape)
            self.inputs.append(pt.tensor(f"x{len(self.inputs)}", dtype=dtype, shape=known))
            self.values.append(np.asarray(value))
        self.pool = list(zip(self.inputs, [v.shape for v in self.values], strict=True))

    def pick(self, fits=lambda var, shape: True):
        found = [one for one in self.pool if fits(*one)]
        return found[self.rng.integers(len(found))] if found else (None, ())

    def alike(self, x, shape):
        """Return a variable that fits ``x`` in elementwise Ops."""
        pattern = x.type.broadcastable
        return self.pick(lambda var, s: s == shape and var.type.broadcastable == pattern)[0]

    def array(self):
        return self.pick(lambda var, shape: len(shape) > 0)

    def grow(self):
        step = self.rng.choice(
            [self.unary, self.binary, self.binary, self.reduced, self.turned, self.indexed,
             self.joined, self.product, self.changed, self.gathered, self.chosen]
        )  # fmt: skip
        made = step()
        if made is not None:
            self.pool.append(made)

    def unary(self):
        x, shape = self.pick()
        name = self.rng.choice(["exp", "tanh", "abs", "sqr", "sigmoid", "floor", "neg", "isnan"])
        if name == "neg" and x.type.dtype == "bool":
            return None
        return getattr(pt, name)(pt.clip(x, -3, 3) if name == "exp" else x), shape

    def binary(self):
        x, shape = self.pick()
        number = pt.constant(self.rng.integers(1, 4))
        y = self.alike(x, shape) if self.rng.random() < 0.7 else number
        name = self.rng.choice(["add", "mul", "maximum", "lt", "true_div", "sub", "eq", "mod"])
        if "bool" in (x.type.dtype, y.type.dtype) and name in ("sub", "mod", "true_div"):
            return None
        if name in ("true_div", "mod"):
            y = pt.abs(y) + 1
        return getattr(pt, name)(x, y), shape

    def chosen(self):
        x, shape = self.pick()
        return pt.switch(pt.gt(x, 0.5), x, self.alike(x, shape)), shape

    def reduced(self):
        x, shape = self.array()
        if x is None:
            return None
        axis = int(self.rng.integers(len(shape)))
        name = self.rng.choice(["sum", "max", "min", "prod", "any", "all", "argmax", "mean"])
        return getattr(pt, name)(x, axis=axis), shape[:axis] + shape[axis + 1 :]

    def turned(self):
        x, shape = self.pick(lambda var, s: len(s) > 1)
        if x is None:
            return None
        order = [int(k) for k in self.rng.permutation(len(shape))]
        return x.dimshuffle(order), tuple(shape[k] for k in order)

    def indexed(self):
        x, shape = self.array()
        if x is None:
            return None
        if self.rng.random() < 0.5:
            return x[int(self.rng.integers(-shape[0], shape[0]))], shape[1:]
        return x[::-1], shape

    def gathered(self):
        x, shape = self.array()
        if x is None:
            return None
        rows = self.rng.integers(-shape[0], shape[0], 3)
        return x[pt.constant(rows)], (3, *shape[1:])

    def joined(self):
        x, shape = self.array()
        if x is None:
            return None
        return pt.concatenate([x, x[:1]], axis=0), (shape[0] + 1, *shape[1:])

    def changed(self):
        x, shape = self.array()
        if x is None:
            return None
        part = x[:1]
        return (part.inc(x[0]) if x.type.dtype != "bool" else part.set(x[0])), shape

    def product(self):
        x, shape = self.pick(lambda var, s: len(s) == 2 and var.type.dtype.startswith("float"))
        return None if x is None else (pt.dot(x.T, x), (shape[1], shape[1]))


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(same, seed):
    graph = Graph(seed)
    for _ in range(25):
        graph.grow()
    outputs = [var for var, _ in graph.pool[len(graph.inputs) :]]
    same(graph.inputs, outputs, graph.values, rtol=1e-5)
