"""Kernels of pooling and its derivatives on the simulated device, in every option."""

import itertools

import numpy as np
import pytest

import opwise.tensor as T
from opwise.gpu.kernels import layouts as layouts_of
from opwise.gpu.kernels.kernel import DeviceLimits, Layout
from opwise.gpu.lowering import lower
from opwise.tensor import TensorType
from opwise.tensor.conv.pool import MODES
from opwise.tensor.signal.pool import (
    AveragePoolGrad,
    DownsampleFactorMaxGradGrad,
    MaxPoolGrad,
    MaxPoolRop,
    Pool,
)

RNG = np.random.default_rng(3)
TOLERANCE = {"float16": 1e-2, "float32": 1e-6, "float64": 1e-14}
NUMBERS = 3


def nodes(dtype="float32", ndim=4, spatial=2, ignore_border=True):
    """Return {which: Apply} of every kind of pooling."""
    x, w, z = (TensorType(dtype, (False,) * ndim)() for _ in range(3))
    numbers = [T.lvector() for _ in range(NUMBERS)]
    found = {
        mode: Pool(ignore_border, mode, spatial)(x, *numbers) for mode in MODES
    } | {
        f"{mode} gradient": AveragePoolGrad(ignore_border, mode, spatial)(x, w, *numbers)
        for mode in MODES[1:]
    }  # fmt: skip
    options = {"ignore_border": ignore_border, "ndim": spatial}
    found["max gradient"] = MaxPoolGrad(**options)(x, w, z, *numbers)
    found["second gradient"] = DownsampleFactorMaxGradGrad(**options)(x, w, z, *numbers)
    found["right"] = MaxPoolRop(**options)(x, z, *numbers)
    return {name: var.owner for name, var in found.items()}


def values(node, shape, ws, stride, pad, ties=True):
    """Return values of the inputs; ties: with many equal elements."""
    dtype, op = node.inputs[0].type.dtype, node.op
    numbers = [np.array(n) for n in (ws, stride, pad)]

    def some(shape):
        drawn = RNG.integers(-3, 4, shape) if ties else RNG.normal(size=shape)
        return np.asarray(abs(drawn) if dtype.startswith("u") else drawn).astype(dtype)

    x, storage = some(shape), [[None]]
    Pool(op.ignore_border, "max", op.ndim).perform(None, [x, *numbers], storage)
    maxima = storage[0][0]
    given = {
        "x": lambda: x, "maxout": lambda: maxima, "eval_point": lambda: some(shape),
        "gz": lambda: some(shape if isinstance(op, DownsampleFactorMaxGradGrad)
                           else maxima.shape),
    }  # fmt: skip
    return [*(given[name]() for name in op.arrays), *numbers]


def check(kernels, name, given, order=0):
    (found,), wrong = kernels.run(name, given, order)
    (want,) = kernels.expected(name, given)
    assert not wrong and found.shape == want.shape and found.dtype == want.dtype
    tolerance = TOLERANCE.get(found.dtype.name, 0)
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * 4)


CASES = [
    # (lengths, windows, strides, pads)
    ((8, 9), (2, 2), (2, 2), (0, 0)),
    ((9, 7), (3, 2), (2, 3), (0, 0)),
    ((5, 6), (2, 3), (3, 5), (0, 0)),
    ((6, 5), (6, 5), (1, 1), (0, 0)),
    ((3, 4), (1, 1), (1, 1), (0, 0)),
    ((8, 9), (3, 4), (2, 1), (1, 3)),
    ((5, 4), (5, 3), (2, 2), (4, 2)),
    ((4, 4), (7, 7), (3, 3), (6, 6)),
    ((3, 3), (4, 4), (1, 1), (0, 0)),
]


@pytest.fixture(scope="module")
def kernels(simulate):
    made = {}
    for ignore, dtype in itertools.product((True, False), ("float32", "float64", "float16",
                                                          "int8", "uint8", "int64")):  # fmt: skip
        made |= {f"{dtype} {ignore} {name}": node
                 for name, node in nodes(dtype, ignore_border=ignore).items()}  # fmt: skip
    return simulate(made)


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_option(kernels, case, dtype):
    lengths, *numbers = CASES[case]
    for ignore in (True, False):
        if max(numbers[2]) and not ignore:
            continue
        for which in nodes():
            name = f"{dtype} {ignore} {which}"
            node = kernels.nodes[name]
            for ties in (True, False):
                check(kernels, name, values(node, (2, 3, *lengths), *numbers, ties), int(ties))


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "int64"])
def test_dtypes(kernels, dtype):
    for ignore, which in itertools.product((True, False), nodes()):
        name = f"{dtype} {ignore} {which}"
        given = values(kernels.nodes[name], (2, 1, 7, 6), (3, 2), (2, 2), (ignore, 0))
        check(kernels, name, given)


def test_empty_arrays(kernels):
    for shape in ((0, 3, 4, 4), (2, 0, 4, 4), (2, 3, 1, 4)):
        for which in nodes():
            name = f"float32 True {which}"
            given = values(kernels.nodes[name], shape, (2, 2), (2, 2), (0, 0))
            check(kernels, name, given)


def test_special_numbers(kernels):
    """Maxima of NaN are NaN, and infinite ones are found; the derivatives agree with perform."""
    x = RNG.normal(size=(1, 1, 6, 6)).astype("float32")
    x[0, 0, 1, 1], x[0, 0, 2, 4], x[0, 0, 5, :] = np.nan, np.inf, -np.inf
    x[0, 0, 4, :2] = -np.inf
    numbers = [np.array(n) for n in ((2, 2), (2, 2), (0, 0))]
    check(kernels, "float32 True max", [x, *numbers])
    (maxima,) = kernels.expected("float32 True max", [x, *numbers])
    assert np.isnan(maxima).sum() == 1 and np.isinf(maxima).sum() == 2
    check(kernels, "float32 True max gradient", [x, maxima, maxima.clip(-1, 1), *numbers])
    check(kernels, "float32 True right", [x, x.clip(-1, 1), *numbers])
    padded = [np.array(n) for n in ((3, 3), (2, 2), (1, 1))]
    check(kernels, "float32 True right", [x, x.clip(-1, 1), *padded])


@pytest.mark.parametrize(("ndim", "spatial"), [(2, 2), (3, 3), (5, 3), (5, 2), (3, 1)])
def test_axes(simulate, ndim, spatial):
    made = nodes("float32", ndim, spatial)
    kernels = simulate(made)
    shape = (2, 3, 7, 6, 5)[-ndim:]
    for name, node in made.items():
        given = values(node, shape, (3, 2, 2)[:spatial], (2, 1, 3)[:spatial], (1, 0, 1)[:spatial])
        check(kernels, name, given)


def test_layouts(kernels, layouts):
    for which, node in nodes().items():
        given = values(node, (2, 3, 5, 6), (3, 2), (2, 2), (1, 0))
        count = len(given) - NUMBERS
        for _, changed in layouts(given[:count]):
            check(kernels, f"float32 True {which}", [*changed, *given[count:]])


def test_indices_of_64_bits(simulate, monkeypatch):
    made = nodes()
    kernels = simulate(made, wide=True)
    monkeypatch.setattr(layouts_of, "LIMIT_32", 0)
    for name, node in made.items():
        check(kernels, name, values(node, (2, 3, 7, 6), (3, 2), (2, 3), (1, 0)))


def test_huge_arrays():
    made = lower(nodes()["max"])
    for batch, wide in ((2**5, False), (2**9, True)):
        inputs = [Layout.contiguous((batch, 64, 256, 256), 4), (2, 2), (2, 2), (0, 0)]
        outputs = [Layout.contiguous(shape, 4) for shape in made.shapes(inputs)]
        (launch,) = made.plan(inputs, outputs, DeviceLimits()).launches
        assert launch.kernel.wide == wide


def test_refused_numbers_and_shapes(kernels):
    x = np.ones((1, 1, 4, 4), "float32")
    two, none = np.array([2, 2]), np.array([0, 0])
    for numbers, error, text in (
        ((np.array([2]), two, none), ValueError, "ws must be 2 integers"),
        ((two, none, none), ValueError, "stride must be 2 integers, 1 or more"),
        ((two, two, two), NotImplementedError, "padding must be smaller"),
    ):
        for run in (kernels.run, kernels.expected):
            with pytest.raises(error, match=text):
                run("float32 True max", [x, *numbers])
    with pytest.raises(ValueError, match=r"gz has shape \(1, 1, 3, 2\), but windows over"):
        kernels.run("float32 True max gradient", [x, x[..., :2, :2], x[..., :3, :2], two, two,
                                                  none])  # fmt: skip


def test_dtypes_that_stay_on_the_host():
    assert lower(Pool()(TensorType("bool", (False,) * 2)(), (2, 2)).owner) == "no kernel pools bool"
    x, w = (TensorType(dtype, (False,) * 2)() for dtype in ("float32", "float64"))
    found = lower(AveragePoolGrad()(x, w, (2, 2)).owner)
    assert found == "no kernel pools arrays of several dtypes, float32, float64"
