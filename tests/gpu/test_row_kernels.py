"""What works on rows, on the simulated device against ``perform``."""

import re

import numpy as np
import pytest
from kernel_cases import rowwise
from rowwise_cases import PROGRAMS
from simulated import DEVICE

from opwise.gpu.kernels.kernel import Layout, arguments, error_position
from opwise.tensor import TensorType
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

pytestmark = pytest.mark.c

FLOATS = ("float16", "float32", "float64")
SHAPES = [(1, 2), (3, 5), (7, 8), (300, 4), (9, 128), (5, 129), (2, 1024), (3, 1000), (2, 4100)]
#: no row of more than a few numbers fits its shared memory
SMALL = DEVICE._replace(shared=1100)


def tensor(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def nodes():
    made = {}
    for d in FLOATS:
        x, b, y = tensor(d, 2), tensor(d, 1), tensor(d, 2)
        made[f"softmax-{d}"] = softmax_op(x).owner
        made[f"biased-{d}"] = softmax_with_bias(x, b).owner
        made[f"log-{d}"] = logsoftmax_op(x).owner
        made[f"grad-{d}"] = softmax_grad(x, y).owner
        labels = tensor({"float16": "uint8", "float32": "int64", "float64": "int32"}[d], 1)
        made[f"xent-{d}"] = crossentropy_softmax_argmax_1hot_with_bias(x, b, labels)[0].owner
        made[f"dx-{d}"] = crossentropy_softmax_1hot_with_bias_dx(b, x, labels).owner
        if d != "float16":
            made[f"1hot-{d}"] = crossentropy_categorical_1hot(x, labels).owner
            made[f"1hot-grad-{d}"] = crossentropy_categorical_1hot_grad(b, x, labels).owner
    made["dx of a number"] = crossentropy_softmax_1hot_with_bias_dx(
        tensor("float32", 0), tensor("float32", 2), tensor("int64", 1)
    ).owner
    made["rows"] = softmax_grad(TensorType("float32", (False, True))(), tensor("float32", 2)).owner
    made["columns"] = softmax_grad(
        TensorType("float32", (True, False))(), tensor("float32", 2)
    ).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def numbers(dtype, shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape, scale=3).astype(dtype)


def labels_of(kernels, name, shape):
    dtype = kernels.nodes[name].inputs[-1].type.dtype
    return np.random.default_rng(9).integers(0, min(shape[1], 200), shape[0]).astype(dtype)


def check(kernels, name, values, layout="", eps_of_result=16):
    """Compare, in shared memory and without; every order gives the same bits."""
    expected = kernels.expected(name, values)
    for device in (DEVICE, SMALL):
        found, wrong = kernels.run(name, values, device=device)
        again, _ = kernels.run(name, values, order=1, device=device)
        assert not wrong
        for f, a, e in zip(found, again, expected, strict=True):
            np.testing.assert_array_equal(f, a)
            assert (f.shape, f.dtype) == (e.shape, e.dtype)
            if e.dtype.kind != "f":
                np.testing.assert_array_equal(f, e, err_msg=f"{name} {layout}")
                continue
            close = eps_of_result * float(np.finfo(e.dtype).eps)
            np.testing.assert_allclose(
                f, e, rtol=close, atol=close, err_msg=f"{name} {layout} {device}"
            )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log", "biased", "grad"])
def test_softmax(kernels, layouts, name, dtype):
    for shape in SHAPES:
        values = [numbers(dtype, shape)]
        if name == "biased":
            values.append(numbers(dtype, shape[1:], 1))
        if name == "grad":
            sm = abs(numbers("float64", shape, 1))
            values.append((sm / sm.sum(axis=1, keepdims=True)).astype(dtype))
        every = list(layouts(values)) if shape[0] * shape[1] < 1000 else [("", values)]
        for layout, changed in every:
            check(kernels, f"{name}-{dtype}", changed, (shape, layout))


@pytest.mark.parametrize("dtype", FLOATS)
def test_cross_entropy(kernels, layouts, dtype):
    for shape in SHAPES:
        x, b = numbers(dtype, shape), numbers(dtype, shape[1:], 1)
        labels = labels_of(kernels, f"xent-{dtype}", shape)
        for layout, values in layouts([x, b, labels]):
            if shape[0] * shape[1] < 1000 or not layout:
                check(kernels, f"xent-{dtype}", values, (shape, layout))
        g, sm = numbers(dtype, shape[:1], 2), abs(numbers(dtype, shape, 3)) + 1
        for layout, values in layouts([g, sm, labels]):
            if shape[0] * shape[1] < 1000 or not layout:
                check(kernels, f"dx-{dtype}", values, (shape, layout))
                if dtype != "float16":
                    check(kernels, f"1hot-grad-{dtype}", values, (shape, layout))
                    check(kernels, f"1hot-{dtype}", values[1:], (shape, layout))


def test_gradients_that_broadcast(kernels):
    sm = abs(numbers("float32", (5, 12), 1)) / 9
    check(kernels, "rows", [numbers("float32", (5, 1)), sm])
    check(kernels, "columns", [numbers("float32", (1, 12)), sm])
    labels = np.array([3, 0, 11, 5, 5])
    check(kernels, "dx of a number", [np.array(0.7, "f"), sm, labels])
    check(kernels, "dx-float32", [np.array([0.7], "f"), sm, labels])
    with pytest.raises(ValueError, match="dy has length"):
        kernels.run("grad-float32", [sm[:2], sm])


def test_special_values(kernels):
    """Rows with infinities and NaN come out as in numpy."""
    for n in (5, 8, 300):
        x = numbers("float32", (7, n))
        x[0, 1], x[1, 2], x[2] = np.inf, -np.inf, -np.inf
        x[3, [0, -1]], x[4, 3] = np.inf, np.nan
        x[5, :-1] = -np.inf
        for name in ("softmax-float32", "log-float32"):
            check(kernels, name, [x], n)
        labels = np.array([0, 1, 2, 3, 4, 0, 1])
        check(kernels, "xent-float32", [x, np.zeros(n, "f"), labels], n)


def test_large_numbers_do_not_overflow(kernels):
    x = np.array([[1000.0, 1001.0, 999.0, -1e30]] * 3, "f")
    check(kernels, "softmax-float32", [x])
    check(kernels, "log-float32", [x])


def test_no_rows(kernels):
    for name in ("softmax-float32", "log-float32"):
        check(kernels, name, [np.zeros((0, 5), "f")])
    empty = np.zeros(0, "int64")
    check(kernels, "xent-float32", [np.zeros((0, 5), "f"), np.zeros(5, "f"), empty])
    check(kernels, "1hot-float32", [np.zeros((0, 5), "f"), empty])


@pytest.mark.parametrize("name", ["xent", "dx", "1hot", "1hot-grad"])
def test_labels_that_name_no_column(kernels, name):
    """The first of them is reported, and nothing is read or written out of bounds."""
    x, row = numbers("float32", (300, 6)), numbers("float32", (300,))
    labels = np.zeros(300, "int64")
    labels[[7, 40, 299]] = 6, -1, 99
    values = {"xent": [x, row[:6], labels], "dx": [row, x, labels], "1hot": [x, labels],
              "1hot-grad": [row, x, labels]}[name]  # fmt: skip
    made = kernels.made[f"{name}-float32"]
    for order in (0, 1):
        _, wrong = kernels.run(f"{name}-float32", values, order)
        assert wrong and error_position(wrong) == 7
    error = made.wrong(error_position(wrong), values)
    with pytest.raises(ValueError, match="y_i value out of bounds: label 7 is 6, but"):
        raise error
    with pytest.raises(ValueError, match="label 7 is 6"):
        kernels.expected(f"{name}-float32", values)


def test_more_shared_memory_is_used_where_it_is(kernels):
    """Rows of up to what the device has are read once."""
    large, x = DEVICE._replace(shared=227 * 1024), Layout.contiguous((70, 20_001), 4)
    plans = [kernels.made["softmax-float32"].plan([x], [x], device) for device in (DEVICE, large)]
    assert [len(plan.launches) for plan in plans] == [3, 1]
    assert plans[1].launches[0].shared == 4 * 20_001


def test_which_kernels_are_launched(kernels):
    def plan(name, *shapes):
        return kernels.plan(name, [np.zeros(s, "f") for s in shapes])

    assert plan("softmax-float32", (10, 1024)) == ["softmax_vectors"]
    assert plan("softmax-float32", (10, 1023)) == ["softmax"]
    # few long rows keep more of a device busy in segments
    passes = [f"softmax_{k}_vectors" for k in range(3)]
    assert plan("softmax-float32", (3, 50_000)) == passes
    assert plan("grad-float32", (10, 1024), (10, 1024)) == ["softmax_grad_vectors"]


def test_columns_that_lie_far_apart(kernels):
    """Steps from column to column are too long for 32 bits."""
    made = kernels.made["softmax-float32"]
    far = Layout((4, 3), (4, 2**33), 4)
    plan = made.plan([far], [Layout.contiguous((4, 3), 4)], DEVICE)
    assert plan.launches[0].numbers == (4, 3, 1, 2**31)  # rows, columns, and the two steps
    arguments(plan.launches[0], lambda array: 16)


# --- fused loops over rows ------------------------------------------------------------------------

DTYPES = ("float32", "float64")
PLACES = [(name, d) for name in PROGRAMS for d in DTYPES]


@pytest.fixture(scope="module")
def fused(simulate):
    made = {f"{name}-{d}": rowwise(name, d).owner for name, d in PLACES}
    made |= {
        f"deep {name}": rowwise(name, "float64", 3).owner for name in ("layer norm", "softmax")
    }
    return simulate(made)


def values_of(kernels, name, shape):
    """Return arrays for the inputs of a fused loop whose arrays have this shape."""
    types = [v.type for v in kernels.nodes[name].inputs]
    shapes = [[1 if b else n for n, b in zip(shape, t.broadcastable, strict=True)] for t in types]
    return [numbers(t.dtype, s, k) + 2 for k, (t, s) in enumerate(zip(types, shapes, strict=True))]


@pytest.mark.parametrize(("name", "dtype"), PLACES)
def test_fused_loops(fused, layouts, name, dtype):
    """In shared memory, and in segments of rows, in every layout."""
    for shape in [(1, 2), (3, 5), (70, 8), (5, 129), (2, 4100)]:
        for layout, values in layouts(values_of(fused, f"{name}-{dtype}", shape)):
            if shape[0] * shape[1] < 1000 or not layout:
                # one of them multiplies as many numbers as a row has
                eps = 2**12 if name.startswith("two") else 2**6
                check(fused, f"{name}-{dtype}", values, (shape, layout), eps)


def test_fused_loops_over_more_dimensions(fused, layouts):
    for name in ("deep layer norm", "deep softmax"):
        for layout, values in layouts(values_of(fused, name, (3, 4, 9))):
            check(fused, name, values, layout, 2**6)


def test_fused_loops_of_no_elements(fused):
    for shape in ((0, 5), (4, 0)):
        check(fused, "layer norm-float32", values_of(fused, "layer norm-float32", shape))
    name = "smallest and largest-float32"
    check(fused, name, values_of(fused, name, (0, 5)))
    with pytest.raises(ValueError, match="zero-size"):
        fused.run(name, values_of(fused, name, (4, 0)))
    with pytest.raises(ValueError, match="mismatch"):
        x, *others = values_of(fused, "layer norm-float32", (4, 6))
        fused.run("layer norm-float32", [x, *(v[..., :5] for v in others)])


def test_a_layer_norm_loads_its_array_once(fused):
    """What three passes read is held; adjacent rows of few columns have a thread each."""
    made = fused.made["layer norm-float32"]
    x, *others = map(Layout.of, values_of(fused, "layer norm-float32", (100, 64)))
    out = [Layout.contiguous((100, 64), 8)]
    (launch,) = made.plan([x, *others], out, DEVICE).launches
    assert launch.shared == launch.block[1] * 64 * 4
    # by vectors of a batch, by those that are left, and nowhere else
    assert len(re.findall(r"\(x0 \+|x0\[", launch.kernel.text)) == 2
    by_columns = x._replace(strides=(4, 400))
    (launch,) = made.plan([by_columns, *others], out, DEVICE).launches
    assert launch.block == (1, 64)
