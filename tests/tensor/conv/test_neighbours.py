"""Neighbourhoods of images against loops over them."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.gradient import Rop, grad, verify_grad
from opwise.linkers import lowering
from opwise.linkers.kernels import Kernels
from opwise.nn import images2neibs, neibs2images
from opwise.tensor.conv.neighbours import Images2NeibsGrad
from opwise.tensor.nnet.neighbours import Images2Neibs

LINKERS = ("py", "c|py")
#: mode, shape of images, neib_shape, neib_step
CASES = [
    ("valid", (2, 3, 6, 8), (2, 4), None),
    ("valid", (2, 3, 7, 9), (3, 3), (2, 3)),
    ("valid", (1, 1, 5, 5), (5, 5), None),
    ("valid", (2, 2, 7, 5), (1, 1), (3, 2)),
    ("ignore_borders", (2, 3, 7, 9), (2, 4), None),
    ("ignore_borders", (1, 2, 8, 7), (3, 2), (2, 3)),
    ("ignore_borders", (1, 1, 2, 2), (5, 5), (1, 1)),
    ("half", (2, 1, 6, 6), (2, 2), (2, 2)),
    ("half", (2, 1, 7, 9), (3, 5), (2, 4)),
    ("full", (1, 2, 6, 7), (2, 3), (2, 2)),
    ("full", (2, 2, 4, 4), (4, 4), (1, 1)),
    ("wrap_centered", (2, 3, 7, 6), (3, 5), (2, 1)),
    ("wrap_centered", (1, 2, 7, 7), (7, 7), (3, 3)),
    ("valid", (0, 3, 6, 8), (2, 4), None),
    ("valid", (2, 0, 6, 8), (2, 4), None),
]


def by_loops(x, size, step, mode):
    """The neighbourhoods, one after the other."""
    step = size if step is None else step
    pads = {"half": [n // 2 for n in size], "full": [n - 1 for n in size]}.get(mode, (0, 0))
    if mode == "wrap_centered":
        around = [(n // 2, n // 2) for n in size]
        padded = np.pad(x, [(0, 0), (0, 0), *around], "wrap") if x.size else x
        grid = [range(0, n, s) for n, s in zip(x.shape[2:], step, strict=True)]
    else:
        padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
        grid = [
            range(0, n - k + 1, s) for n, k, s in zip(padded.shape[2:], size, step, strict=True)
        ]
    rows = [
        padded[n, c, i : i + size[0], j : j + size[1]].ravel()
        for n in range(x.shape[0]) for c in range(x.shape[1]) for i in grid[0] for j in grid[1]
    ]  # fmt: skip
    return np.array(rows, x.dtype).reshape(len(rows), size[0] * size[1])


def compiled(inputs, outputs, linker="c|py"):
    return theano.function(inputs, outputs, mode=theano.Mode(linker, "fast_run"))


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize(("mode", "shape", "size", "step"), CASES)
def test_every_mode(mode, shape, size, step, linker):
    x, a = T.dtensor4(), numbers(*shape)
    y = images2neibs(x, size, step, mode)
    got, lengths, back = compiled([x], [y, y.shape, grad((y**2).sum() / 2, x)], linker)(a)
    want = by_loops(a, size, step, mode)
    np.testing.assert_array_equal(got, want)
    assert tuple(lengths) == want.shape
    # an element's gradient is as many times itself as there are neighbourhoods with it
    counted = compiled([x], grad(y.sum(), x), linker)(a)
    np.testing.assert_allclose(back, counted * a, atol=1e-13)


@pytest.mark.parametrize(
    ("mode", "shape", "size", "step"), [c for c in CASES if 0 not in c[1]][::2]
)
def test_gradients(mode, shape, size, step):
    verify_grad(
        lambda x: images2neibs(x, size, step, mode), [numbers(*shape)], rng=np.random.RandomState(1)
    )
    x, dx = T.dtensor4(), T.dtensor4()
    moved = Rop(images2neibs(x, size, step, mode), x, dx)  # it does not depend on x
    got = compiled([dx], moved)(numbers(*shape) + 1)
    np.testing.assert_array_equal(got, by_loops(numbers(*shape) + 1, size, step, mode))


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize(
    "dtype", ("bool", "int8", "float16", "int32", "float32", "int64", "complex64", "complex128")
)
def test_any_dtype_and_layout(dtype, linker):
    a = (numbers(2, 3, 9, 8) * 50).astype(dtype).transpose(1, 0, 3, 2)[:, :, ::-1, ::2]
    x = T.TensorType(dtype, (False,) * 4)()
    for mode, size, step in (("ignore_borders", (2, 2), (1, 2)), ("full", (2, 2), (1, 1))):
        got = compiled([x], images2neibs(x, size, step, mode), linker)(a)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, by_loops(a, size, step, mode))


@pytest.mark.parametrize("linker", LINKERS)
def test_sizes_that_are_variables(linker):
    x, size, step = T.ftensor4(), T.ivector(), T.wvector()
    y = images2neibs(x, size, step, "valid")
    f = compiled([x, size, step], [y, grad(y.sum(), x)], linker)
    a = numbers(2, 1, 8, 11).astype("float32")
    got, back = f(a, np.int32([2, 3]), np.int16([3, 4]))
    np.testing.assert_array_equal(got, by_loops(a, (2, 3), (3, 4), "valid"))
    assert back.dtype == "float32" and back.sum() == got.size


@pytest.mark.parametrize("linker", LINKERS)
def test_back_to_images(linker):
    a = numbers(2, 3, 7, 9)
    x, m = T.dtensor4(), T.dmatrix()
    whole = neibs2images(images2neibs(x, (7, 3)), (7, 3), x.shape)
    np.testing.assert_array_equal(compiled([x], whole, linker)(a), a)
    part = neibs2images(m, (2, 4), (2, 3, 7, 9), "ignore_borders")
    got = compiled([m], part, linker)(by_loops(a, (2, 4), None, "ignore_borders"))
    want = a.copy()
    want[:, :, 6:], want[:, :, :, 8:] = 0, 0
    np.testing.assert_array_equal(got, want)
    verify_grad(lambda v: neibs2images(v, (2, 2), (2, 1, 4, 6)), [numbers(12, 4)],
                rng=np.random.RandomState(1))  # fmt: skip


def test_they_run_in_c():
    x = T.ftensor4()
    y = images2neibs(x, (2, 2), (1, 1))
    f = compiled([x], [y, grad((y**2).sum(), x)])
    order = f.maker.fgraph.toposort()
    assert {Images2Neibs, Images2NeibsGrad} <= {type(node.op) for node in order}
    assert all(lowering.c_step(node, Kernels()) is not None for node in order)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize(
    ("mode", "shape", "size", "step", "error", "said"),
    [
        (
            "valid",
            (1, 1, 7, 8),
            (2, 2),
            (2, 2),
            TypeError,
            r"neib_shape\[0\]=2 and neib_step\[0\]=2",
        ),
        ("valid", (1, 1, 8, 3), (2, 4), (1, 1), TypeError, "larger than the image"),
        ("half", (1, 1, 6, 8), (3, 2), (2, 2), TypeError, "axis 2.*multiple of neib_step"),
        ("full", (1, 1, 6, 8), (2, 2), (4, 4), TypeError, "axis 2"),
        ("wrap_centered", (1, 1, 6, 8), (2, 3), (1, 1), TypeError, "odd lengths"),
        ("wrap_centered", (1, 1, 2, 8), (3, 3), (1, 1), TypeError, "larger than the image"),
        ("valid", (1, 1, 6, 8), (0, 2), (1, 1), ValueError, r"neib_shape .* not \[0, 2\]"),
        ("valid", (1, 1, 6, 8), (2, 2), (1, -1), ValueError, r"neib_step .* not \[1, -1\]"),
    ],
)
def test_lengths_that_do_not_fit(mode, shape, size, step, error, said, linker):
    x, s, t = T.dtensor4(), T.lvector(), T.lvector()
    f = compiled([x, s, t], images2neibs(x, s, t, mode), linker)
    with pytest.raises(error, match=said):
        f(np.ones(shape), np.int64(size), np.int64(step))


@pytest.mark.parametrize("linker", LINKERS)
def test_gradients_of_other_shapes(linker):
    m, shape = T.dmatrix(), T.lvector()
    f = compiled([m, shape], Images2NeibsGrad("valid")(m, shape, (2, 2), (2, 2)), linker)
    assert f(np.ones((6, 4)), [1, 1, 4, 6]).sum() == 24
    with pytest.raises(ValueError, match=r"have neighbourhoods of shape \(6, 4\)"):
        f(np.ones((5, 4)), [1, 1, 4, 6])
    with pytest.raises(ValueError, match="four lengths"):
        f(np.ones((5, 4)), [1, 4, 6])


def test_arguments_that_cannot_be():
    x = T.dtensor4()
    with pytest.raises(NotImplementedError, match=r"has the modes valid, .*not 'same'"):
        images2neibs(x, (2, 2), mode="same")
    with pytest.raises(TypeError, match="ten4 must have 4 dimensions, not 2"):
        images2neibs(T.dmatrix(), (2, 2))
    with pytest.raises(TypeError, match="neib_shape must be two integers or a vector"):
        images2neibs(x, (2.5, 2.0))
    with pytest.raises(NotImplementedError, match="'valid' and 'ignore_borders', not 'half'"):
        neibs2images(T.dmatrix(), (2, 2), (1, 1, 4, 4), "half")
