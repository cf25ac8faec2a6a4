"""The C steps of softmax and cross entropy against ``perform``: layouts, dtypes, NaN, failures."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise.linkers import lowering
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import c_step
from opwise.tensor.nnet import (
    crossentropy_categorical_1hot,
    crossentropy_categorical_1hot_grad,
    crossentropy_softmax_1hot_with_bias_dx,
    crossentropy_softmax_argmax_1hot_with_bias,
    logsoftmax_op,
    softmax_grad,
    softmax_op,
    softmax_with_bias,
)
from opwise.tensor.nnet.ctc import ConnectionistTemporalClassification
from opwise.tensor.type import tensor_type

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: rows and columns: below, at and above the lengths at which loops work in blocks
SHAPES = [(3, 4), (1, 1), (0, 3), (2, 8), (3, 9), (2, 64), (2, 65), (1, 200)]
#: short rows, of which some are computed together: rows that fill vectors, and some more
MANY_SHAPES = [(rows, columns) for rows in (8, 31, 32, 77) for columns in (1, 2, 7, 10, 16, 31, 63)]

LABELS = "labels"
SOFTMAX = "softmax"

#: kind -> the Op, and what its inputs hold: numbers of a shape, probabilities or labels
STEPS = {
    "softmax": (softmax_op, ["rc"]),
    "softmax with bias": (softmax_with_bias, ["rc", "c"]),
    "logsoftmax": (logsoftmax_op, ["rc"]),
    "softmax_grad": (softmax_grad, ["rc", SOFTMAX]),
    "xent": (crossentropy_softmax_argmax_1hot_with_bias, ["rc", "c", LABELS]),
    "xent_dx": (crossentropy_softmax_1hot_with_bias_dx, ["r", SOFTMAX, LABELS]),
    "onehot": (crossentropy_categorical_1hot, [SOFTMAX, LABELS]),
    "onehot_grad": (crossentropy_categorical_1hot_grad, ["r", SOFTMAX, LABELS]),
}
WITH_LABELS = [name for name, (_, inputs) in STEPS.items() if LABELS in inputs]


def test_every_maker_has_a_step():
    ops = {type(op) for op, _ in STEPS.values()}
    ops.add(ConnectionistTemporalClassification)  # whose step is tried with the Op, in test_ctc
    assert ops == {c for c in lowering._lowerings if c.__module__.startswith("opwise.tensor.nnet")}


def made(name, dtype, labels="int32"):
    """Return (inputs, outputs) of a step's Op."""
    op, kinds = STEPS[name]
    inputs = [
        tensor_type(labels, (False,))()
        if kind == LABELS
        else tensor_type(dtype, (False,) * (2 if kind == SOFTMAX else len(kind)))()
        for kind in kinds
    ]
    return inputs, op(*inputs, return_list=True)


def values(name, dtype, rows, columns, labels="int32", seed=0):
    """Return arrays for the inputs of a step."""
    random = np.random.default_rng(seed)
    shapes = {"rc": (rows, columns), "r": (rows,), "c": (columns,)}
    found = []
    for kind in STEPS[name][1]:
        if kind == LABELS:
            found.append(random.integers(0, columns, rows).astype(labels))
        elif kind == SOFTMAX:
            e = np.exp(random.normal(0, 2, (rows, columns)))
            found.append((e / e.sum(axis=1, keepdims=True)).astype(dtype))
        else:
            found.append(random.normal(0, 5, shapes[kind]).astype(dtype))
    return found


@pytest.fixture
def both(run_with):
    """``both(name, dtype, labels)``: the step run by perform and in C."""

    def make(name, dtype, labels="int32"):
        inputs, outputs = made(name, dtype, labels)
        c, linked = run_with(inputs, outputs, c=True)
        assert all(linked.in_c), "this does not run in C"
        return run_with(inputs, outputs, c=False)[0], c

    return make


def agree(expected, found, what=""):
    for k, (e, f) in enumerate(zip(expected, found, strict=True)):
        assert f.dtype == e.dtype and f.shape == e.shape, (what, k)
        tolerance = {4: 2e-6, 8: 1e-14}[e.itemsize] if e.dtype.kind == "f" else 0
        np.testing.assert_allclose(
            f, e, rtol=5 * tolerance, atol=tolerance, err_msg=f"{what}: output {k}"
        )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", STEPS)
def test_every_layout(name, dtype, both, layouts):
    python, c = both(name, dtype)
    for choice, arrays in layouts(values(name, dtype, 4, 9)):
        before = [a.copy() for a in arrays]
        agree(python(*arrays), c(*arrays), choice)
        for old, array in zip(before, arrays, strict=True):
            np.testing.assert_array_equal(old, array)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", STEPS)
def test_every_length(name, dtype, both):
    python, c = both(name, dtype)
    for rows, columns in SHAPES:
        arrays = values(name, dtype, rows, columns)
        agree(python(*arrays), c(*arrays), (rows, columns))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", STEPS)
def test_many_short_rows(name, dtype, both):
    """They are computed some at a time, with the numbers that each of them has alone."""
    python, c = both(name, dtype)
    for rows, columns in MANY_SHAPES:
        arrays = values(name, dtype, rows, columns)
        together = c(*arrays)
        agree(python(*arrays), together, (rows, columns))
        for i in range(rows):
            own = [
                a if kind == "c" else a[i : i + 1]
                for a, kind in zip(arrays, STEPS[name][1], strict=True)
            ]
            for all_rows, row in zip(together, c(*own), strict=True):
                np.testing.assert_array_equal(all_rows[i : i + 1], row)


@pytest.mark.parametrize("name", ["softmax", "softmax with bias", "logsoftmax", "xent"])
def test_layouts_of_many_short_rows(name, both, layouts):
    python, c = both(name, "float32")
    for choice, arrays in layouts(values(name, "float32", 43, 11)):
        agree(python(*arrays), c(*arrays), choice)


def test_gradients_that_broadcast_over_many_short_rows(both):
    python, c = both("softmax_grad", "float32")
    dy, sm = values("softmax_grad", "float32", 43, 11)
    for part in (dy[:1], dy[:, :1], dy[:1, :1]):
        agree(python(part, sm), c(part, sm), part.shape)


@pytest.mark.parametrize("name", ["softmax", "softmax with bias", "logsoftmax", "softmax_grad"])
def test_no_columns(name, both):
    python, c = both(name, "float64")
    for rows in (3, 40):
        arrays = values(name, "float64", rows, 0)
        agree(python(*arrays), c(*arrays))


SPECIAL = [
    [1.0, np.nan, 2.0],
    [np.nan, 1.0, 2.0],
    [0.0, np.inf, np.inf],
    [1.0, -np.inf, 0.0],
    [-np.inf, -np.inf, -np.inf],
    [1000.0, 0.0, -1000.0],
    [7.0, 7.0, 7.0],
    [np.inf, np.nan, -np.inf],
    [-0.0, 0.0, -745.0],
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "softmax with bias", "logsoftmax", "xent"])
def test_special_values(name, dtype, both):
    python, c = both(name, dtype)
    for repeat in (1, 4):  # 4: the special values lie inside blocks of a loop
        x = np.tile(np.array(SPECIAL, dtype), (4, repeat))
        for label in range(3):
            rest = {"rc": x, "c": np.zeros(3 * repeat, dtype)}
            rest[LABELS] = np.full(len(x), label, "int32")
            arrays = [rest[kind] for kind in STEPS[name][1]]
            agree(python(*arrays), c(*arrays), (repeat, label))


@pytest.mark.parametrize(
    ("name", "labels"),
    # CrossentropyCategorical1Hot itself refuses the others
    [(n, i) for n in WITH_LABELS for i in INTEGERS if n != "onehot" or i in ("int32", "int64")],
)
def test_labels_of_every_integer(name, labels, both):
    python, c = both(name, "float64", labels)
    # more columns than int8 holds, so that labels above it are no negative numbers
    columns = 100 if labels == "int8" else 250
    arrays = values(name, "float64", 40, columns, labels)
    arrays[-1][:2] = 0, columns - 1
    agree(python(*arrays), c(*arrays))


@pytest.mark.parametrize("spread", [-1, 2])
@pytest.mark.parametrize("name", WITH_LABELS)
def test_labels_of_any_stride(name, spread, both):
    python, c = both(name, "float32")
    *others, labels = values(name, "float32", 4, 5)
    space = np.full(2 * len(labels), 99, "int32")
    view = space[::spread][: len(labels)]
    view[:] = labels
    agree(python(*others, labels), c(*others, view))


@pytest.mark.parametrize("label", [-1, 5, 1000])
@pytest.mark.parametrize("name", WITH_LABELS)
def test_a_label_out_of_bounds(name, label, both):
    python, c = both(name, "float64", "int64")
    arrays = values(name, "float64", 4, 5, "int64")
    arrays[-1][2] = label
    with pytest.raises(ValueError, match="y_i value out of bounds") as expected:
        python(*arrays)
    with pytest.raises(ValueError) as found:
        c(*arrays)
    assert str(expected.value) in str(found.value)
    arrays[-1][2] = 3  # the failed call leaves nothing behind
    agree(python(*arrays), c(*arrays))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("softmax with bias", lambda x, b: (x, b[:3])),
        ("softmax_grad", lambda dy, sm: (dy[:2], sm)),
        ("softmax_grad", lambda dy, sm: (dy[:, :2], sm)),
        ("xent", lambda x, b, y: (x, b[:1], y)),
        ("xent", lambda x, b, y: (x, b, y[:2])),
        ("xent_dx", lambda dy, sm, y: (dy, sm, y[:3])),
        ("xent_dx", lambda dy, sm, y: (dy[:2], sm, y)),
        ("onehot", lambda p, y: (p, y[:3])),
        ("onehot", lambda p, y: (p[:2], y)),
        ("onehot_grad", lambda g, p, y: (g, p, y[:3])),
        ("onehot_grad", lambda g, p, y: (g[:2], p, y)),
    ],
)
def test_lengths_that_do_not_fit(name, change, both):
    python, c = both(name, "float64")
    arrays = change(*values(name, "float64", 4, 5))
    for run in (python, c):
        with pytest.raises(ValueError):
            run(*arrays)


@pytest.mark.parametrize("name", ["xent_dx", "onehot_grad"])
@pytest.mark.parametrize("ndim", [0, 1])
def test_one_gradient_for_all_rows(name, ndim, run_with):
    op = STEPS[name][0]
    g = tensor_type("float64", (False,) * ndim)()
    inputs = [g, *made(name, "float64")[0][1:]]
    arrays = [np.full((1,) * ndim, -0.25), *values(name, "float64", 4, 5)[1:]]
    c, linked = run_with(inputs, [op(*inputs)], c=True)
    assert all(linked.in_c)
    agree(run_with(inputs, [op(*inputs)], c=False)[0](*arrays), c(*arrays))


def test_a_gradient_that_broadcasts(run_with):
    sm = T.dmatrix()
    for pattern, shape in (((True, False), (1, 5)), ((False, True), (4, 1))):
        dy = tensor_type("float64", pattern)()
        out = softmax_grad(dy, sm)
        arrays = [np.random.randn(*shape), values("softmax_grad", "float64", 4, 5)[1]]
        c, linked = run_with([dy, sm], [out], c=True)
        assert all(linked.in_c)
        agree(run_with([dy, sm], [out], c=False)[0](*arrays), c(*arrays))


def test_results_do_not_share_memory_between_calls(both):
    for name in STEPS:
        _, c = both(name, "float64")
        first = c(*values(name, "float64", 3, 4, seed=1))
        kept = [a.copy() for a in first]
        c(*values(name, "float64", 3, 4, seed=2))
        agree(kept, first, name)


@pytest.mark.parametrize(
    "outputs",
    [
        lambda: softmax_op(T.matrix(dtype="float16")),
        lambda: softmax_with_bias(T.fmatrix(), T.dvector()),
        lambda: crossentropy_softmax_argmax_1hot_with_bias(T.fmatrix(), T.dvector(), T.ivector()),
        lambda: crossentropy_softmax_1hot_with_bias_dx(T.dvector(), T.fmatrix(), T.ivector()),
        lambda: crossentropy_categorical_1hot_grad(T.dmatrix(), T.dmatrix(), T.ivector()),
    ],
)
def test_what_stays_in_python(outputs):
    out = outputs()
    node = (out[0] if isinstance(out, list) else out).owner
    assert c_step(node, Kernels(generate=False)) is None


def test_the_error_of_exponentials_is_small(both):
    """Against numpy in long double: a few units in the last place."""
    x = np.random.default_rng(3).normal(0, 10, (50, 40))
    for dtype, ulp in (("float64", 2.3e-16), ("float32", 1.2e-7)):
        _, c = both("softmax", dtype)
        given = x.astype(dtype)
        reference = np.exp(given.astype(np.longdouble) - given.max(axis=1, keepdims=True))
        reference /= reference.sum(axis=1, keepdims=True)
        (found,) = c(given)
        # the difference to the maximum is rounded, and its error grows with its size
        allowed = 4 * ulp * (1 + np.abs(given - given.max(axis=1, keepdims=True)))
        normal = reference > np.finfo(dtype).tiny
        error = np.abs(found - reference) / np.where(normal, reference, 1)
        assert (error <= allowed)[normal].all()
