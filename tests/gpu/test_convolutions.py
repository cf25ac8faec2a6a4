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
from opwise.tensor import TensorType
from opwise.tensor.conv.ops import FAMILIES

RNG = np.random.default_rng(7)
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 4e-3}


def nodes(dtype, ndim=2, **options):
    """Return {which: Apply} of a convolution and both gradients."""
    unshared = options.get("unshared", False)

    def tensor(n):
        return TensorType(dtype, (False,) * n)()

    image, top = tensor(2 + ndim), tensor(2 + ndim)
    kernel = tensor(2 + ndim * (1 + unshared))
    forward, by_kernels, by_images = (cls(**options) for cls in FAMILIES[ndim])
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
        ("float32", 2, {"border_mode": border_mode, "subsample": subsample,
                            "filter_dilation": dilation, "filter_flip": flip, "num_groups": groups},
         (2, 4, 7, 8), (6, 4 // groups, 3, 2))
        for subsample, dilation, flip, groups in itertools.product(
            ((1, 1), (2, 3)), ((1, 1), (2, 1)), (True, False), (1, 2))
    ]  # fmt: skip
    kernels, given = every(simulate, cases)
    for name, numbers in given:
        check(kernels, name, numbers)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dtypes_and_axes(simulate, dtype):
    cases = [
        (dtype, 2, {}, (3, 5, 9, 10), (7, 5, 3, 4)),
        (dtype, 2, {"border_mode": "half", "subsample": (3, 2)}, (1, 3, 11, 8), (2, 3, 5, 3)),
        (dtype, 3, {"border_mode": ((1, 2), 0, 3), "subsample": (1, 2, 1), "num_groups": 3},
         (2, 6, 5, 6, 4), (3, 2, 3, 2, 5)),
        (dtype, 3, {"border_mode": "full", "filter_dilation": (2, 1, 3), "filter_flip": False},
         (1, 2, 4, 3, 6), (2, 2, 2, 3, 2)),
    ]  # fmt: skip
    kernels, given = every(simulate, cases)
    for name, numbers in given:
        for order in (0, 1):
            check(kernels, name, numbers, order)


EXTREMES = [
    ("a stride beyond the kernel", {"subsample": (4, 3)}, (2, 2, 9, 9), (3, 2, 2, 2)),
    ("a stride beyond the image", {"subsample": (50, 50)}, (2, 2, 9, 9), (3, 2, 2, 2)),
    ("a dilation that divides the stride", {"subsample": (4, 6), "filter_dilation": (2, 4)},
     (1, 2, 12, 19), (2, 2, 3, 3)),
    ("pads beyond the kernel", {"border_mode": (5, 6), "subsample": (2, 2)}, (1, 2, 3, 3),
     (2, 2, 2, 2)),
    ("one place", {}, (2, 3, 4, 4), (5, 3, 4, 4)),
    ("one tap", {"subsample": (2, 2)}, (2, 3, 5, 5), (5, 3, 1, 1)),
    ("a group for each channel", {"num_groups": 6}, (2, 6, 6, 6), (12, 1, 3, 3)),
    ("no images", {}, (0, 3, 4, 4), (5, 3, 2, 2)),
    ("no kernels", {}, (2, 3, 4, 4), (0, 3, 2, 2)),
    ("no channels", {}, (2, 0, 4, 4), (5, 0, 2, 2)),
    ("one of all", {}, (1, 1, 1, 1), (1, 1, 1, 1)),
]  # fmt: skip


def test_extremes(simulate):
    cases = [("float32", 2, options, image, kernel) for _, options, image, kernel in EXTREMES]
    kernels, given = every(simulate, cases)
    for name, numbers in given:
        check(kernels, name, numbers)


def test_kernels_with_weights_for_each_place(simulate):
    def case(image, outputs, taps, **options):
        op = FAMILIES[2][0](**options)
        channels = image[1] // options.get("num_groups", 1)
        places = op.geometry.output(image[2:], taps)
        return "float32", 2, options | {"unshared": True}, image, (
            outputs, *places, channels, *taps)  # fmt: skip

    cases = [
        case((2, 4, 7, 8), 6, (3, 2), num_groups=groups, subsample=subsample,
             border_mode=border, filter_flip=flip, filter_dilation=dilation)
        for groups, subsample, border, flip, dilation in itertools.product(
            (1, 2), ((1, 1), (2, 3)), ("valid", ((1, 0), (0, 2))), (True, False), ((1, 1), (2, 1)))
    ]  # fmt: skip
    kernels, given = every(simulate, cases)
    for name, numbers in given:
        check(kernels, name, numbers)


# --- tiles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tile", range(5))
def test_every_tile(simulate, monkeypatch, dtype, tile):
    """Tiles that are not full, several along each direction, one segment and several."""
    if tile >= len(tiles_of(dtype)):
        pytest.skip(f"{dtype} has fewer tiles")
    chosen = tiles_of(dtype)[tile]
    shapes = {"image": (2, 3, 12, 13), "kernel": (chosen.m + 3, 3, 3, 4)}
    options = {"border_mode": 1, "subsample": (1, 1), "num_groups": 1}
    kernels, given = every(simulate, [(dtype, 2, options, *shapes.values())])
    for segments in (1, 3):
        monkeypatch.setattr(Products, "_chosen", lambda *a, s=segments, **k: (chosen, s))
        for name, numbers in given:
            plan = kernels.plan(name, numbers)
            assert plan[0] == f"product_{chosen.m}x{chosen.n}"
            assert (len(plan) > 1) == (segments > 1)
            for order in (0, 1):
                check(kernels, name, numbers, order)


def test_tiles_with_groups_strides_and_three_axes(simulate, monkeypatch):
    cases = [
        ("float32", 2,
         {"border_mode": 2, "subsample": (2, 3), "num_groups": 2, "filter_flip": False},
         (3, 8, 11, 9), (10, 4, 4, 3)),
        ("float32", 3, {"border_mode": 1, "subsample": (2, 1, 1), "filter_dilation": (1, 2, 1)},
         (2, 5, 6, 7, 5), (9, 5, 2, 3, 3)),
        *(("float32", 2, options, image, kernel) for _, options, image, kernel in EXTREMES),
    ]  # fmt: skip
    kernels, given = every(simulate, cases)
    for tile in tiles_of("float32")[1:]:
        monkeypatch.setattr(Products, "_chosen", lambda *a, tile=tile, **k: (tile, 1))
        for name, numbers in given:
            check(kernels, name, numbers)


def test_a_block_computes_several_tiles(simulate, monkeypatch):
    kernels, given = every(simulate, [("float32", 2, {}, (2, 4, 14, 14), (40, 4, 3, 3))])
    tile = tiles_of("float32")[-1]
    monkeypatch.setattr(Products, "_chosen", lambda *a, **k: (tile, 2))
    monkeypatch.setattr(convolution, "capped", lambda blocks, limits: min(blocks, 3))
    for name, numbers in given:
        check(kernels, name, numbers)


def test_threads_share_a_result(simulate, monkeypatch):
    """The gradient of one kernel for each channel has few results and long sums."""
    kernels, given = every(
        simulate, [("float32", 2, {"num_groups": 2}, (5, 2, 25, 25), (2, 1, 3, 3))]
    )
    monkeypatch.setattr(Products, "_chosen", lambda *a, **k: (None, 1))
    blocks = set()
    for name, numbers in given:
        check(kernels, name, numbers)
        made, shapes = kernels.made[name], [(2, 1, 3, 3), (5, 2, 25, 25)]
        if "kernels" in name:
            inputs = [Layout.contiguous(v.shape, 4) for v in numbers[:2]] + [(3, 3)]
            outputs = [Layout.contiguous(shapes[0], 4)]
            blocks |= {x.block for x in made.plan(inputs, outputs, DeviceLimits()).launches}
    assert blocks == {(256, 1)}


# --- layouts and sizes ----------------------------------------------------------------------------


def test_layouts(simulate, layouts):
    cases = [
        ("float32", 2, {"border_mode": 1, "subsample": (2, 1)}, (2, 3, 6, 7), (4, 3, 3, 2)),
        ("float16", 2, {"num_groups": 2}, (1, 4, 5, 5), (4, 2, 3, 3)),
    ]
    kernels, given = every(simulate, cases)
    for name, numbers in given:
        for _, changed in layouts(numbers[:2]):
            check(kernels, name, [*changed, *numbers[2:]])


def test_a_broadcast_operand(simulate):
    """Gradients are often one number for all places."""
    kernels, given = every(simulate, [("float32", 2, {}, (2, 3, 6, 7), (4, 3, 3, 2))])
    for name, (first, second, *rest) in given:
        one = np.broadcast_to(second[:1, :1, :1, :1], second.shape)
        check(kernels, name, [first, one, *rest])


def test_indices_of_64_bits(simulate, monkeypatch):
    cases = [
        ("float32", 2, {"border_mode": 1, "subsample": (2, 1)}, (2, 3, 6, 7), (4, 3, 3, 2)),
        ("float64", 3, {"num_groups": 2}, (1, 4, 5, 5, 4), (4, 2, 3, 3, 2)),
    ]
    kernels, given = every(simulate, cases, wide=True)
    monkeypatch.setattr(layouts_of, "LIMIT_32", 0)
    for plain in (True, False):
        for name, numbers in given:
            tile = tiles_of(kernels.nodes[name].outputs[0].type.dtype)[1]
            monkeypatch.setattr(
                Products, "_chosen", lambda *a, t=None if plain else tile, **k: (t, 1)
            )
            check(kernels, name, numbers)


def plan_of(which, image, kernel, dtype="float32", **options):
    """Return the launches for arrays of these shapes on a device."""
    node = nodes(dtype, len(image) - 2, **options)[which]
    size = np.dtype(dtype).itemsize
    op = node.op
    result = FAMILIES[op.convdim][0](**options).result_shape(image, kernel)
    i, k, r = (Layout.contiguous(shape, size) for shape in (image, kernel, result))
    inputs, output = {
        "forward": ([i, k], r),
        "kernels": ([i, r, tuple(kernel[-op.convdim :])], k),
        "images": ([k, r, tuple(image[2:])], i),
    }[which]
    return lower(node).plan(inputs, [output], DeviceLimits()).launches


def test_huge_arrays():
    (launch,) = plan_of("forward", (2**10, 64, 256, 256), (64, 64, 3, 3), border_mode=1)
    assert launch.kernel.wide
    (launch,) = plan_of("forward", (2**5, 64, 256, 256), (64, 64, 3, 3), border_mode=1)
    assert not launch.kernel.wide


def stems(launches):
    return [x.kernel.name.removeprefix("ow_").rsplit("_", 1)[0] for x in launches]


@pytest.mark.parametrize(("which", "image", "kernel", "options", "expected"), [
    # deep layers: the largest tiles, for all three
    ("forward", (64, 128, 56, 56), (128, 128, 3, 3), {}, ["product_128x128"]),
    ("images", (64, 128, 56, 56), (128, 128, 3, 3), {}, ["product_128x128"]),
    ("kernels", (64, 128, 56, 56), (128, 128, 3, 3), {}, ["product_128x128", "columns"]),
    # 64 outputs
    ("forward", (16, 64, 56, 56), (64, 64, 3, 3), {}, ["product_64x64"]),
    # a first layer with few outputs, and the gradient by its kernels: one tile, many segments
    ("forward", (500, 1, 28, 28), (20, 1, 5, 5), {}, ["product_32x128"]),
    ("kernels", (500, 1, 28, 28), (20, 1, 5, 5), {}, ["product_32x32", "columns", "columns"]),
    # one kernel for each channel
    ("forward", (16, 64, 56, 56), (64, 1, 3, 3), {"num_groups": 64}, ["product"]),
    ("kernels", (16, 64, 56, 56), (64, 1, 3, 3), {"num_groups": 64}, ["product"]),
    # a gradient by images with strides: a launch for each phase, none for those without taps
    ("images", (16, 64, 56, 56), (64, 64, 3, 3), {"subsample": (2, 2)}, ["product_64x64"] * 4),
    ("images", (16, 64, 56, 56), (128, 64, 1, 1), {"subsample": (2, 2)}, ["product_64x64"] * 2),
])  # fmt: skip
def test_plans(which, image, kernel, options, expected):
    launches = plan_of(which, image, kernel, **options)
    assert stems(launches) == expected
    if which == "kernels" and len(launches) > 1:
        segments = launches[0].numbers[-3]
        assert segments > 1
        assert launches[0].grid * launches[0].block[0] >= 2**16


def test_plans_do_not_depend_on_the_device():
    node = nodes("float32")["kernels"]
    shapes = (64, 32, 28, 28), (64, 64, 26, 26)
    inputs = [*(Layout.contiguous(s, 4) for s in shapes), (3, 3)]
    outputs = [Layout.contiguous((64, 32, 3, 3), 4)]
    plans = [lower(node).plan(inputs, outputs, DeviceLimits(n)).launches for n in (2, 132)]
    assert [(x.kernel, x.numbers) for x in plans[0]] == [(x.kernel, x.numbers) for x in plans[1]]


def test_kernels_that_are_compiled_with_the_function():
    known = nodes("float32", imshp=(500, 1, 28, 28), kshp=(20, 1, 5, 5))
    assert stems_of(known["forward"]) == ["product_32x128"]
    assert stems_of(known["kernels"]) == ["product_32x32", "columns", "columns"]
    assert len(stems_of(nodes("float32")["forward"])) == 1
    strided = nodes("float32", subsample=(2, 2), imshp=(None, 3, None, 224))
    assert set(stems_of(strided["images"])) == {"product_16x128"}
    unshared = nodes("float32", unshared=True)
    assert all(stems_of(node) == ["product"] for node in unshared.values())


def stems_of(node):
    return [k.name.removeprefix("ow_").rsplit("_", 1)[0] for k in lower(node).expected]


# --- errors ---------------------------------------------------------------------------------------


def test_refused_shapes(simulate):
    own = nodes("float32")
    kernels = simulate(own)
    image, kernel, top = (np.ones(s, "float32") for s in ((2, 3, 5, 5), (4, 2, 3, 3),
                                                         (2, 4, 2, 3)))  # fmt: skip
    for name, given, text in (
        ("forward", [image, kernel], "the image has 3 channels"),
        ("kernels", [image, top, np.array([3, 3])], "the gradient by the result has shape"),
        ("images", [kernel, top, np.array([5, 5])], "the gradient by the result has shape"),
        ("forward", [image, np.ones((4, 3, 6, 6), "float32")], "impossible output shape"),
    ):
        for run in (kernels.run, kernels.expected):
            with pytest.raises(ValueError, match=text):
                run(name, given)


def test_dtypes_that_stay_on_the_host():
    for dtype in ("complex64", "int32"):
        for node in nodes(dtype).values():
            assert lower(node) == f"no kernel convolves {dtype}"
