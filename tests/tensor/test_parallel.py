"""Parts of results along parallel axes, and joined results of parts along folded ones."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.tensor import parallel
from opwise.tensor.assertion import assert_op
from opwise.tensor.blas import batched_dot, gemm, gemv
from opwise.tensor.parallel import FoldedAxis, folded_axes, parallel_axes
from opwise.tensor.reduce import FirstAlong
from theano.tensor.nnet import nnet

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 5)), RNG.normal(size=(4, 5))
V, W = RNG.normal(size=5), RNG.normal(size=6)
CUBE = RNG.normal(size=(6, 4, 5))
LABELS = np.array([0, 4, 1, 1, 3, 2])


def classes(x, labels):
    p, bias = nnet.softmax(x), T.zeros((5,))
    costs = nnet.categorical_crossentropy(p, labels)
    fused = nnet.crossentropy_softmax_argmax_1hot_with_bias(x, bias, labels)[0]
    grads = T.grad(costs.sum(), x), T.grad(fused.sum(), x), T.grad((p**2).sum(), x)
    return [costs, *grads, nnet.softmax_with_bias(x, bias), nnet.logsoftmax(x)]


#: expressions, and values of their variables
EXAMPLES = {
    "elementwise": (lambda x, v: [T.exp(x) * v, (x > 0).sum(0), x.dimshuffle(1, "x", 0) + 1], X, V),
    "reductions": (lambda x: [x.max(1), T.prod(x), x.argmax(0), T.max_and_argmax(x, 1)[1],
                              T.all(x > 0, 1), FirstAlong((1,))(x)], X),
    "reductions of work": (lambda x, y: [T.sqr(x[:, None, :] - y[None, :, :]).sum(2),
                                         T.exp(x).sum(0), T.exp(x - 1).max()], X, Y),
    "rows": (lambda x: [(x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)], X),
    "products": (lambda x, y, v, w: [T.dot(x, y.T), 2 * T.dot(x.T, x), T.dot(x, v), T.dot(w, x),
                                     T.dot(v, v)], X, Y, V, W),
    "products to add": (lambda x, y, v, w: [gemm(T.dot(x, y.T) + 1, 2.0, x, y.T, 0.5),
                                            gemv(w, 2.0, x, v, 0.5)], X, Y, V, W),
    "integer products": (lambda x: [T.dot(T.cast(x, "int64"), T.cast(x, "int64").T)], X),
    "stacks of products": (lambda c: [batched_dot(c, c.dimshuffle(0, 2, 1))], CUBE),
    "classes": (classes, X, LABELS),
    "order": (lambda x, v: [T.sort(x, 1), T.argsort(x, 0), T.topk(x, 2, axis=1),
                            T.cumsum(x, 1), T.extra_ops.searchsorted(T.sort(v), x)], X, V),
    "parts": (lambda x, i: [x[i], x[:, i[:3]], x[1:4], x[:, 1], T.join(1, x, x), x[::-1]],
              X, LABELS),
    "gathers in loops": (lambda v, w, i: [T.exp(v[i] * w)], V, W, LABELS),
    "gathers in reductions": (lambda v, w, i: [(v[i] - w).prod()], V, W, LABELS),
    "as they are": (lambda x: [assert_op(x, T.gt(x.shape[0], 0)) + 1,
                               T.addbroadcast(x[:, :1], 1) + x, x], X),
}  # fmt: skip


def applys(name):
    """Yield (Apply, values of its inputs, those of its outputs) of an example."""
    expression, *values = EXAMPLES[name]
    inputs = [T.as_tensor_variable(value).type.make_variable() for value in values]
    found = expression(*inputs)
    for optimizer in (None, "fast_run"):
        mode = theano.Mode("c|py", optimizer)
        fgraph = theano.function(inputs, found, mode=mode).maker.fgraph
        known = dict(zip(fgraph.inputs, values, strict=True))
        for node in fgraph.toposort():
            known.update((v, v.data) for v in node.inputs if v not in known)
            given = [known[v] for v in node.inputs]
            results = performed(node, given)
            known.update(zip(node.outputs, results, strict=True))
            yield node, given, results


def performed(node, values):
    storage = [[None] for _ in node.outputs]
    node.op.perform(node, [np.copy(v) if isinstance(v, np.ndarray) else v for v in values], storage)
    return [one[0] for one in storage]


def parts(axis, values):
    """Yield the inputs of three parts along an axis."""
    (n,) = {v.shape[d] for v, d in zip(values, axis.inputs, strict=True) if d is not None}
    for part in (slice(0, 1), slice(1, n - 1), slice(n - 1, n)):
        yield [
            v if d is None else v[(slice(None),) * d + (part,)]
            for v, d in zip(values, axis.inputs, strict=True)
        ]


JOINS = {"add": np.add, "mul": np.multiply, "maximum": np.maximum, "and_": np.logical_and}


@pytest.mark.parametrize("name", EXAMPLES)
def test_parts_have_the_values_of_the_whole(name):
    for node, given, results in applys(name):
        for axis in (*parallel_axes(node), *folded_axes(node)):
            if any(0 in np.shape(v) for v in given):
                continue
            found = [performed(node, part) for part in parts(axis, given)]
            for k, whole in enumerate(results):
                each = [one[k] for one in found]
                if isinstance(axis, FoldedAxis):
                    first, *others = each
                    for other in others:
                        first = JOINS[axis.row](first, other)
                    np.testing.assert_allclose(first, whole, rtol=1e-12, err_msg=f"{node} {axis}")
                else:
                    joined = np.concatenate(each, axis.outputs[k])
                    np.testing.assert_allclose(joined, whole, rtol=1e-12, atol=1e-14,
                                               err_msg=f"{node} {axis}")  # fmt: skip


@pytest.mark.parametrize("table", ["_RULES", "_FOLDS"])
def test_every_op_of_the_tables_is_in_an_example(table):
    axes = {"_RULES": parallel_axes, "_FOLDS": folded_axes}[table]
    used = {
        base
        for name in EXAMPLES
        for node, _, _ in applys(name)
        if axes(node)
        for base in type(node.op).__mro__
    }
    assert {cls.__name__ for cls in getattr(parallel, table) if cls not in used} == set()
