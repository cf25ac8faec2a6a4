"""Convolutions in C against ``perform``: over lines, as products, and with weights for each
place, in sizes and options where these differ."""

import itertools

import numpy as np
import pytest

import theano
from opwise.linkers import opwise_c
from opwise.tensor.conv.ops import FAMILIES
from opwise.tensor.type import tensor_type


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def both(op, dtype, *operands):
    """What C computes, and perform."""
    variables = [
        tensor_type(x.dtype.name, (False,) * x.ndim).make_variable()
        for x in map(np.asarray, operands)
    ]
    f = theano.function(variables, op(*variables), mode=theano.Mode("c|py", None))
    assert all(f.linked.in_c)
    storage = [[None]]
    with np.errstate(invalid="ignore"):
        op.perform(None, operands, storage)
    return f(*operands), storage[0][0]


def members(image, kernel, dtype, **options):
    """Each member of the family with operands: (Op, operands)."""
    n = len(image) - 2
    forward, by_kernels, by_images = (cls(**options) for cls in FAMILIES[n])
    x = numbers(image, dtype)
    places = forward.geometry.output(image[2:], kernel[-n:])
    if options.get("unshared"):
        kernel = (kernel[0], *places, *kernel[1:])
    w, top = numbers(kernel, dtype, 1), numbers((image[0], kernel[0], *places), dtype, 2)
    return (
        (forward, (x, w)),
        (by_kernels, (x, top, np.array(kernel[-n:]))),
        (by_images, (w, top, np.array(image[-n:]))),
    )


def check(image, kernel, dtype="float64", **options):
    for op, operands in members(image, kernel, dtype, **options):
        got, want = both(op, dtype, *operands)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        tolerance = (1e-12 if dtype == "float64" else 1e-5) * max(1, np.abs(want).max(initial=0))
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.sqrt(operands[0].size))


BORDERS = ("valid", "full", "half", 3, ((0, 2), (3, 1)))


@pytest.mark.parametrize("unshared", [False, True])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("border_mode", BORDERS, ids=str)
def test_every_option(border_mode, groups, unshared):
    for subsample, dilation, flip, (kernel, outputs) in itertools.product(
        ((1, 1), (2, 3)), ((1, 1), (3, 2)), (True, False), (((3, 2), 1), ((1, 1), 5), ((2, 4), 2))
    ):
        check(
            (2, 2 * groups, 9, 11), (outputs * groups, 2, *kernel), border_mode=border_mode,
            subsample=subsample, filter_dilation=dilation, filter_flip=flip, num_groups=groups,
            unshared=unshared,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("image", "kernel", "options"),
    [
        ((1, 1, 28, 28), (20, 1, 5, 5), {}),
        ((70, 1, 28, 28), (20, 1, 5, 5), {}),  # parts of the sums
        ((3, 5, 64, 40), (7, 5, 3, 3), {"border_mode": 1}),  # blocks of lines
        ((20, 6, 7, 7), (9, 6, 3, 3), {"border_mode": "half"}),  # images without a gap
        ((5, 9, 4, 8), (13, 9, 1, 1), {}),  # in place
        ((5, 9, 5, 7), (13, 9, 1, 1), {}),
        ((5, 9, 9, 7), (13, 9, 1, 1), {"subsample": (2, 2)}),
        ((2, 4, 13, 13), (6, 4, 10, 11), {}),  # as products
        ((40, 3, 6, 6), (8, 3, 6, 6), {}),
        ((2, 3, 57, 61), (6, 3, 11, 11), {"subsample": (4, 4), "border_mode": 2}),
        ((2, 2, 3, 3000), (3, 2, 1, 9), {}),  # lines longer than a block
        ((2, 24, 30, 31), (24, 1, 3, 3), {"num_groups": 24, "border_mode": 1}),
        ((3, 24, 7, 7), (48, 1, 3, 3), {"num_groups": 24, "border_mode": 1}),
        ((2, 4, 70, 70), (4, 1, 3, 5), {"num_groups": 4, "subsample": (3, 2)}),
        ((2, 4, 20, 20), (4, 1, 2, 2), {"num_groups": 4, "subsample": (5, 4)}),  # holes
        ((2, 6, 11, 90), (15, 2, 3, 3), {"num_groups": 3, "filter_dilation": (2, 3)}),
        ((2, 80, 9, 9), (80, 40, 3, 3), {"num_groups": 2, "border_mode": "full"}),
        ((2, 4, 9, 9), (6, 2, 8, 9), {"num_groups": 2}),  # groups as products
        ((2, 3, 6, 9, 8), (4, 3, 3, 2, 3), {"subsample": (1, 2, 1), "border_mode": 1}),
        ((2, 6, 12, 20, 20), (6, 1, 3, 3, 3), {"num_groups": 6, "border_mode": "half"}),
        ((2, 6, 5, 7, 8), (12, 2, 1, 1, 3), {"num_groups": 3, "filter_dilation": (1, 1, 2)}),
    ],
    ids=str,
)  # fmt: skip
def test_sizes(image, kernel, options, dtype):
    check(image, kernel, dtype, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("image", "kernel"), [((1, 1, 1, 1), (1, 1, 1, 1)), ((300, 2, 4, 5), (3, 2, 2, 2)),
                          ((3, 40, 6, 6), (5, 40, 3, 3))], ids=str,
)  # fmt: skip
def test_sizes_with_weights_for_each_place(image, kernel, dtype):
    check(image, kernel, dtype, unshared=True)


@pytest.mark.parametrize("options", [{}, {"num_groups": 2}, {"unshared": True}], ids=str)
@pytest.mark.parametrize("shape", [(0, 4, 5, 5), (2, 0, 5, 5)])
def test_nothing_to_add_up(shape, options):
    check(shape, (4, shape[1] // options.get("num_groups", 1), 3, 3), **options)
    check((2, 4, 5, 5), (0, 4 // options.get("num_groups", 1), 3, 3), **options)


@pytest.mark.parametrize("options", [{}, {"num_groups": 3}, {"unshared": True}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operands_of_any_layout(options, dtype):
    for op, operands in members((3, 6, 8, 9), (6, 6 // options.get("num_groups", 1), 3, 2), dtype,
                                **options):  # fmt: skip
        moved = [
            np.asfortranarray(x) if i else np.repeat(x[..., ::-1], 2, -1)[..., ::-2]
            for i, x in enumerate(operands[:2])
        ]
        got, _ = both(op, dtype, *moved, *operands[2:])
        want = [[None]]
        op.perform(None, operands, want)
        np.testing.assert_allclose(got, want[0][0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("groups", [1, 2])
def test_what_is_not_finite_stays_where_it_belongs(groups, value):
    """Zeros between lines meet no infinity."""
    for op, operands in members((2, 2, 9, 9), (4, 2 // groups, 3, 3), "float64", num_groups=groups):
        for place in (0, 1):
            changed = [x.copy() for x in operands]
            changed[place][0, 0, 0, 0] = value
            got, want = both(op, "float64", *changed)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("groups", [1, 8])
def test_results_do_not_depend_on_threads(groups):
    image, kernel = (40, 8, 30, 30), (16, 8 // groups, 5, 5)
    op, operands = members(image, kernel, "float32", num_groups=groups)[1]
    before, found = opwise_c.threads(), []
    try:
        for threads in (1, 2, 7):
            opwise_c.set_threads(threads)
            found.append(both(op, "float32", *operands)[0])
    finally:
        opwise_c.set_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


WRONG = [
    ((2, 4, 7, 8), (6, 3, 3, 2), {}),
    ((2, 4, 7, 8), (6, 3, 3, 2), {"num_groups": 2}),
    ((2, 4, 7, 8), (5, 2, 3, 2), {"num_groups": 2}),
    ((2, 4, 2, 8), (6, 4, 9, 2), {"border_mode": (0, 1), "subsample": (2, 1)}),
    ((2, 4, 2, 8), (6, 4, 9, 2), {"border_mode": ((0, 1), 2), "filter_dilation": (1, 3)}),
    ((2, 4, 2, 8), (6, 4, 3, 2), {}),
    ((2, 4, 2, 8), (6, 4, 3, 0), {"border_mode": "half"}),
    ((2, 4, 2, 8, 3), (5, 4, 3, 2, 3), {"border_mode": (0, (1, 2), 0)}),
    ((2, 4, 7, 8), (5, 5, 6, 4, 3, 2), {"unshared": True}),
    ((2, 4, 7, 8), (5, 5, 7, 3, 3, 2), {"unshared": True}),
    ((2, 4, 2, 8), (5, 5, 7, 4, 3, 2), {"unshared": True}),
]


@pytest.mark.parametrize(("image", "kernel", "options"), WRONG, ids=str)
def test_errors_are_those_of_perform(image, kernel, options):
    op = FAMILIES[len(image) - 2][0](**options)
    said = []
    x, w = np.zeros(image), np.zeros(kernel)
    variables = [tensor_type("float64", (False,) * v.ndim).make_variable() for v in (x, w)]
    for linker in ("py", "c|py"):
        f = theano.function(variables, op(*variables), mode=theano.Mode(linker, None))
        with pytest.raises(ValueError) as caught:
            f(x, w)
        said.append("\n".join(str(caught.value).split("\n")[:2]).partition("\nApply node")[0])
    assert said[0] == said[1]
    assert ("groups" in said[0]) == ("num_groups" in options)


@pytest.mark.parametrize("unshared", [False, True])
@pytest.mark.parametrize("which", [1, 2])
def test_errors_of_gradients_are_those_of_perform(which, unshared):
    op = FAMILIES[2][which](unshared=unshared)
    image, kernel = (2, 3, 6, 6), (4, 5, 5, 3, 2, 2) if unshared else (4, 3, 2, 2)
    first = np.zeros(image if which == 1 else kernel)
    variables = [
        tensor_type(dtype, (False,) * n).make_variable()
        for dtype, n in (("float64", first.ndim), ("float64", 4), ("int64", 1))
    ]
    top = np.zeros((2, 4, 5, 5))
    for lengths in ([3, 6], [7, 6], [6, 6, 6], [6]):
        said = []
        for linker in ("py", "c|py"):
            f = theano.function(variables, op(*variables), mode=theano.Mode(linker, None))
            with pytest.raises(ValueError) as caught:
                f(first, top, np.array(lengths))
            said.append(str(caught.value).partition("\n")[0])
        assert said[0] == said[1]
