"""Tips that are read off a profile."""

from dataclasses import replace
from math import prod

import pytest

from opwise.profiling.profile import ArrayProfile, Profile
from opwise.profiling.reports.theanotips import tips

FLOAT32 = ("TensorType(float32, vector)",)


@pytest.mark.parametrize("wide, narrow, given", [
    (1000, 0, True), (20, 980, True), (5, 995, False), (0, 1000, False), (0, 0, False),
])  # fmt: skip
def test_narrower_floats_are_a_tip_where_wide_ones_take_time(build, wide, narrow, given):
    apply, function, _ = build
    both = (apply("a", wide), replace(apply("b", narrow, 1), inputs=FLOAT32, outputs=FLOAT32))
    found = tips(Profile((function(*both),)))
    assert ("Try the Theano flag floatX=float32" in found) == given


def test_what_runs_in_python_is_a_tip_where_it_takes_time(build):
    apply, function, _ = build
    found = tips(Profile((function(apply("sort", 500, c=False), apply("exp", 995, 1)),)))
    assert any("sort runs in Python, 33.4% of the time: no C implementation" in t for t in found)
    found = tips(Profile((function(apply("sort", 5, c=False), apply("exp", 995, 1)),)))
    assert not any("Python" in t for t in found)


def a_convolution(apply, ns, position=0, dtype="float32", kernel=3, strides=None, **more):
    """Return the profile of a convolution of an image of 8 x 8, called once."""
    item = 8 if dtype == "float64" else 4

    def array(*shape, strides=None):
        strides = strides or tuple(item * prod(shape[d + 1 :]) for d in range(4))
        return ArrayProfile(dtype, shape, strides, item * prod(shape))

    n = 9 - kernel
    fields = {
        "op": "AbstractConv2d", "algorithm": "patches", "flops": 10_000, "why_algorithm": "",
        "input_arrays": (array(1, 2, 8, 8, strides=strides), array(3, 2, kernel, kernel)),
        "output_arrays": (array(1, 3, n, n),), "inputs": FLOAT32, "outputs": FLOAT32,
    }  # fmt: skip
    return replace(apply("conv", ns, position), **{**fields, **more})


def tips_on(build, *convolutions):
    _, function, _ = build
    return tips(Profile((function(*convolutions),)))


def test_wide_images_are_a_tip(build):
    apply, *_ = build
    (found,) = tips_on(build, a_convolution(apply, 100, dtype="float64"))
    assert found.startswith("AbstractConv2d")
    assert "100.0% of the time, computes in float64." in found
    assert tips_on(build, a_convolution(apply, 100)) == []


def test_unusual_layouts_are_a_tip(build):
    apply, *_ = build
    last = (512, 4, 64, 8)
    (found,) = tips_on(build, a_convolution(apply, 100, strides=last))
    assert "an image that has its channels last in memory" in found
    (found,) = tips_on(build, a_convolution(apply, 100, strides=(2048, 1024, 128, 16)))
    assert "neighbouring pixels 16 bytes apart" in found
    # of a gradient by images, the image is the gradient by the result
    one = a_convolution(apply, 100, strides=last)
    by_images = replace(one, op="AbstractConv2d_gradInputs", input_arrays=one.input_arrays[::-1])
    (found,) = tips_on(build, by_images)
    assert "channels last" in found
    # rows of a cropped image
    cropped = (800, 400, 40, 4)
    assert tips_on(build, a_convolution(apply, 100, strides=cropped)) == []
    (found,) = tips_on(build, a_convolution(apply, 100, kernel=1, strides=cropped))
    assert "has 1 x 1 kernels, but copies its image" in found
    assert tips_on(build, a_convolution(apply, 100, kernel=1)) == []


def test_a_convolution_that_is_much_slower_than_another_is_a_tip(build):
    apply, *_ = build
    fast = a_convolution(apply, 100)
    slow = a_convolution(apply, 900, 1, kernel=5)
    (found,) = tips_on(build, fast, slow)
    assert "computes 11.1 GFLOP/s with the algorithm patches, another convolution 100." in found
    assert "conv.algo=measure" in found
    assert tips_on(build, fast, replace(slow, total=390)) == []
    assert tips_on(build, fast, replace(slow, why_algorithm="measured: ...")) == []
    # other dtypes have other rates
    wide = a_convolution(apply, 900, 1, dtype="float64")
    assert not any("GFLOP/s" in tip for tip in tips_on(build, fast, wide))
    # little is gained
    assert tips_on(build, fast, replace(slow, total=900, flops=10), apply("exp", 10**6, 2)) == [
        "Try the Theano flag floatX=float32"
    ]
