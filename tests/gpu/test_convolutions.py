"""Kernels of convolutions and their gradients on the simulated device, in every option."""

import itertools

import numpy as np
import pytest

import opwise.tensor as T
from opwise.gpu.kernels import convolution
from opwise.gpu.kernels import layouts as layouts_of
from opwise.gpu.kernels.convolution import Products, tiles_of
from opwise.gpu.kernels.kernel import DeviceLimits, Layout
from opwise.gpu.lowering import lower
from opwise.tensor.conv.ops import BaseAbstractConv
from opwise.tensor.type import TensorType

RNG = np.random.default_rng(7)
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3}


def nodes(dtype, ndim=2, **options):
    """Return {which: Apply} of a convolution and both gradients."""
    unshared = options.get("unshared", False)

    def tensor(n):
        return TensorType(dtype, (False,) * n)()

    image, top = tensor(2 + ndim), tensor(2 + ndim)
    kernel = tensor(2 + ndim * (1 + unshared))
    forward, by_kernels, by_images = (cls(**options) for cls in BaseAbstractConv.family[ndim])
    return {
        "forward": forward(image, kernel).owner,
        "kernels": by_kernels(image, top, T.lvector()).owner,
        "images": by_images(kernel, top, T.lvector()).owner,
    }


def values(node, image, kernel):
    """Return {which: values of the inputs} of a convolution of arrays of these shapes."""
    dtype, op = node.outputs[0].type.dtype, node.op
    result = op.result_shape(image, kernel)
    x, w, top = (RNG.normal(size=s).astype(dtype) for s in (image, kernel, result))
    return {
        "forward": [x, w],
        "kernels": [x, top, np.array(kernel[-op.convdim :])],
        "images": [w, top, np.array(image[2:])],
    }


def check(kernels, name, given, order=0):
    (found,), wrong = kernels.run(name, given, order)
    dtype = found.dtype.name
    assert not wrong
    if dtype == "float16":  # perform rounds each sum
        node = kernels.nodes[name]
        wide = [v.astype("float64") if v.dtype == "float16" else v for v in given]
        storage = [[None]]
        node.op.perform(node, wide, storage)
        (want,) = storage[0]
    else:
        (want,) = kernels.expected(name, given)
    assert found.shape == want.shape
    scale = np.abs(want).max(initial=1)
    np.testing.assert_allclose(found / scale, want / scale, atol=TOLERANCE[dtype], rtol=0)


def every(simulate, cases, wide=False):
    """Return (the kernels, [(name, values)]) of convolutions, given as (options, shapes)."""
    found, given = {}, []
    for k, (dtype, ndim, options, image, kernel) in enumerate(cases):
        own = nodes(dtype, ndim, **options)
        for which, numbers in values(own["forward"], image, kernel).items():
            found[f"{k} {which}"] = own[which]
            given.append((f"{k} {which}", numbers))
    return simulate(found, wide=wide), given


BORDERS = ("valid", "full", "half", 1, (2, 1), ((1, 0), (0, 2)))


@pytest.mark.parametrize("border_mode", BORDERS)
def test_every_option(simulate, border_mode):
    cases = [
        ("float32", 2, dict(border_mode=border_mode, subsample=subsample,
                            filter_dilation=dilation, filter_flip=flip, num_groups=groups),
         (2, 4, 7, 8), (6, 4 // groups, 3, 2))
        for subsample, dilation, flip, groups in itertools.product(
            ((1, 1), (2, 3)), ((1, 1), (2, 1)), (True, False), (1, 2))
    ]  # fmt: skip
    kernels, given = every(simulate, cases)
    for name, numbers in given:
        check(kernels, name, numbers)
