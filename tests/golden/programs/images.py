"""Convolution and pooling in a table of options: results, gradients, Rop, as digests of arrays.

Theano compiles C code for each option, an hour for this table; its ``perform`` gives the same:

    export THEANO_FLAGS=cxx=,optimizer_excluding=AbstractConvCheck:conv_opts
    old/bin/python tests/golden/record.py images.conv2d images.conv3d images.derived \\
        images.pool2d images.pool3d images.refused
"""

import itertools

import numpy

from .encoding import attempt_each
from .register import SINGLE, program

BORDERS_2D = ["valid", "full", "half", 1, (2, 0), ((1, 0), (0, 2)), (3, 1)]
STEPS_2D = [(1, 1), (2, 1), (2, 3)]
DILATIONS_2D = [(1, 1), (2, 1), (1, 3)]
# images and filters of one group, odd, even and of length 1
SHAPES_2D = [
    ((2, 4, 7, 8), (6, 4, 3, 2)),
    ((1, 4, 9, 5), (2, 4, 1, 3)),
    ((3, 2, 6, 6), (4, 2, 5, 5)),
    ((2, 2, 5, 7), (2, 2, 1, 1)),
    ((1, 2, 8, 1), (4, 2, 3, 1)),
    ((2, 6, 5, 5), (6, 6, 2, 2)),
]
MODES = ["max", "sum", "average_inc_pad", "average_exc_pad"]


def digest(array):
    """Return the dtype, the shape and three sums with different weights."""
    array = numpy.asarray(array)
    flat = array.ravel().astype("float64")
    k = numpy.arange(flat.size)
    weights = numpy.cos(k), numpy.sin(0.7 * k + 1), 1 + k % 5
    return [str(array.dtype), list(array.shape), numpy.array([(flat * w).sum() for w in weights])]


def numbers(shape, seed=0):
    """Return the same numbers for everybody, no two alike."""
    return numpy.random.RandomState(seed).standard_normal(shape)


def tensor(T, ndim, dtype="float64"):
    return T.TensorType(dtype, (False,) * ndim)()


def digests(theano, T, build, shapes, moved=True):
    """Return digests of a result, its gradients, a gradient of these, and the R operator."""
    values = [numbers(shape, seed) for seed, shape in enumerate(shapes)]
    inputs = [tensor(T, len(shape)) for shape in shapes]
    y = build(*inputs)
    weights = T.cos(T.arange(y.size).reshape(y.shape))
    grads = T.grad((T.sqr(y) * weights).sum(), inputs)
    twice = T.grad(sum((g * T.sin(g)).sum() for g in grads), inputs)
    outputs = [y] + grads + twice
    if moved:
        outputs.append(theano.gradient.Rop(y, inputs, [T.cos(v) for v in inputs]))
    return [digest(a) for a in theano.function(inputs, outputs)(*values)]


def sampled(table, n):
    """Return n different rows of all combinations of the columns of a table."""
    rows = list(itertools.product(*table))
    return [rows[i] for i in sorted(numpy.random.RandomState(n).permutation(len(rows))[:n])]


def grouped(kernel, groups):
    return (kernel[0], kernel[1] // groups) + kernel[2:]


def result_lengths(image, kernel, border, steps, dilation):
    """Return the lengths of a result, which unshared filters repeat."""
    lengths = []
    for a in range(2):
        reach = (kernel[2 + a] - 1) * dilation[a] + 1
        if isinstance(border, str):
            pads = {"valid": 0, "full": 2 * (reach - 1), "half": 2 * (reach // 2)}[border]
        else:
            pad = border if isinstance(border, int) else border[a]
            pads = sum(pad) if isinstance(pad, tuple) else 2 * pad
        lengths.append((image[2 + a] + pads - reach) // steps[a] + 1)
    return tuple(lengths)


# sums of terms of either sign: digits cancel
@program("images.conv2d", tolerance=SINGLE)
def conv2d(theano, T, np):
    def case(shapes, border, steps, dilation, flip, groups, unshared):
        image, kernel = shapes[0], grouped(shapes[1], groups)
        if unshared:
            places = result_lengths(image, kernel, border, steps, dilation)
            kernel = kernel[:1] + places + kernel[1:]

        def build(x, w):
            return T.nnet.conv2d(
                x,
                w,
                border_mode=border,
                subsample=steps,
                filter_flip=flip,
                filter_dilation=dilation,
                num_groups=groups,
                unshared=unshared,
            )

        # Theano has no R operator for groups and unshared filters, and a wrong one for dilation
        moved = groups == 1 and not unshared and dilation == (1, 1)
        return lambda: digests(theano, T, build, [image, kernel], moved)

    table = [SHAPES_2D, BORDERS_2D, STEPS_2D, DILATIONS_2D, [True, False], [1, 2], [False]]
    rows = sampled(table, 140) + sampled(table[:-1] + [[True]], 40)
    rows = [row for row in rows if min(result_lengths(*row[0], *row[1:4])) > 0]
    return attempt_each({repr(row): case(*row) for row in rows})


@program("images.conv3d", tolerance=SINGLE)
def conv3d(theano, T, np):
    shapes = [((2, 4, 5, 6, 4), (4, 4, 2, 3, 2)), ((1, 2, 4, 1, 7), (2, 2, 3, 1, 2))]
    table = [shapes, ["valid", "full", "half", (1, 0, 2)], [(1, 1, 1), (1, 2, 3)],
             [(1, 1, 1), (2, 1, 1)], [True, False], [1, 2]]  # fmt: skip

    def case(shapes, border, steps, dilation, flip, groups):
        def build(x, w):
            return T.nnet.conv3d(
                x,
                w,
                border_mode=border,
                subsample=steps,
                filter_flip=flip,
                filter_dilation=dilation,
                num_groups=groups,
            )

        operands = [shapes[0], grouped(shapes[1], groups)]
        return lambda: digests(theano, T, build, operands, moved=groups == 1)

    # filters of 3 elements at distances of 2 do not fit into 4
    rows = [row for row in sampled(table, 40) if row[0][0][2] > 4 or row[1] != "valid"]
    return attempt_each({repr(row): case(*row) for row in rows})


@program("images.derived", tolerance=SINGLE)
def derived(theano, T, np):
    """What is made of convolutions: transposed, separable, causal ones, and upsampling."""
    from theano.tensor.nnet import abstract_conv
    from theano.tensor.signal.conv import conv2d

    def applied(function, *shapes, **options):
        # Theano has no R operator for gradients of convolutions, of which most are made
        return lambda: digests(theano, T, lambda *v: function(*v, **options), shapes, moved=False)

    cases = {
        "transposed": applied(
            lambda x, w: T.nnet.conv2d_transpose(x, w, (None, None, 15, 17),
                                                        border_mode=(1, 0), input_dilation=(2, 2)),
            (2, 3, 8, 8), (3, 4, 3, 3)),
        "transposed, groups": applied(
            lambda x, w: T.nnet.conv2d_transpose(x, w, (2, 4, 9, 7), num_groups=2,
                                                        filter_flip=False, border_mode="half"),
            (2, 6, 9, 7), (6, 2, 3, 3)),
        "gradient by inputs": applied(
            lambda w, g: abstract_conv.conv2d_grad_wrt_inputs(
                g, w, (None, None, 7, 8), subsample=(2, 3), filter_dilation=(2, 1)),
            (6, 4, 3, 2), (2, 6, 2, 3)),
        "gradient by weights": applied(
            lambda x, g: abstract_conv.conv2d_grad_wrt_weights(
                x, g, (None, None, 3, 2), border_mode=((1, 0), (0, 2)), filter_flip=False),
            (2, 4, 7, 8), (2, 6, 6, 9)),
        "gradient by inputs, 3d": applied(
            lambda w, g: abstract_conv.conv3d_grad_wrt_inputs(g, w, (None, None, 5, 6, 4)),
            (4, 3, 2, 3, 2), (2, 4, 4, 4, 3)),
        "gradient by weights, 3d": applied(
            lambda x, g: abstract_conv.conv3d_grad_wrt_weights(x, g, (None, None, 2, 3, 2)),
            (2, 3, 5, 6, 4), (2, 4, 4, 4, 3)),
        "separable": applied(
            lambda x, d, p: abstract_conv.separable_conv2d(x, d, p, 3, border_mode="half",
                                                           subsample=(2, 1)),
            (2, 3, 9, 8), (6, 1, 3, 3), (5, 6, 1, 1)),
        "separable, 3d": applied(
            lambda x, d, p: abstract_conv.separable_conv3d(x, d, p, 2),
            (2, 2, 4, 5, 4), (4, 1, 2, 2, 2), (3, 4, 1, 1, 1)),
        "causal": applied(
            lambda x, w: abstract_conv.causal_conv1d(x, w, (4, 3, 3), filter_dilation=2),
            (2, 3, 9), (4, 3, 3)),
        "causal, steps, groups": applied(
            lambda x, w: abstract_conv.causal_conv1d(x, w, (4, 2, 2), subsample=2, num_groups=2,
                                                     filter_flip=False),
            (2, 4, 7), (4, 2, 2)),
        "signal": applied(
            lambda x, w: conv2d(x, w, border_mode="full"), (2, 6, 7), (4, 3, 2)),
        "signal of a matrix": applied(
            lambda x, w: conv2d(x, w), (6, 7), (3, 2)),
    }  # fmt: skip
    for options in (
        {"ratio": 2},
        {"ratio": 3, "use_1D_kernel": False},
        {"ratio": 5},
        {"frac_ratio": (3, 2), "use_1D_kernel": False},
        {"frac_ratio": ((5, 3), (7, 4)), "use_1D_kernel": False},
        {"frac_ratio": (2, 3), "use_1D_kernel": False},
    ):
        cases[f"bilinear upsampling {sorted(options.items())}"] = applied(
            abstract_conv.bilinear_upsampling, (2, 3, 4, 5), **options
        )
    return attempt_each(cases)


def pool_cases(theano, T, pool, shapes, table):
    def case(shape, ws, ignore_border, stride, pad, mode):
        def build(x):
            return pool(x, ws=ws, ignore_border=ignore_border, stride=stride, pad=pad, mode=mode)

        return lambda: digests(theano, T, build, [shape], moved=mode == "max")

    rows = sampled([shapes] + table, 90)
    # padding needs ignore_border and windows that are larger; averages without it, Theano's C
    rows = [
        row
        for row in rows
        if not any(row[4]) or (row[2] and row[5] != "average_exc_pad" and min(row[1]) > 1)
    ]
    return attempt_each({repr(row): case(*row) for row in rows})


@program("images.pool2d")
def pool2d(theano, T, np):
    from theano.tensor.signal.pool import pool_2d

    shapes = [(2, 3, 7, 8), (1, 1, 5, 1), (4, 9)]
    table = [[(2, 2), (3, 2), (1, 1), (4, 2)], [True, False], [None, (1, 2), (3, 3)],
             [(0, 0), (1, 0)], MODES]  # fmt: skip
    return pool_cases(theano, T, pool_2d, shapes, table)


@program("images.pool3d")
def pool3d(theano, T, np):
    from theano.tensor.signal.pool import pool_3d

    shapes = [(2, 2, 5, 4, 6), (3, 5, 4)]
    table = [[(2, 2, 2), (2, 3, 2)], [True, False], [None, (1, 2, 3)], [(0, 0, 0), (0, 1, 1)],
             MODES]  # fmt: skip
    return pool_cases(theano, T, pool_3d, shapes, table)


@program("images.refused")
def refused(theano, T, np):
    """Arguments that cannot be, and arrays that do not belong together."""
    from theano.tensor.signal.pool import pool_2d

    x, w, m = T.tensor4("x"), T.tensor4("w"), T.matrix("m")

    def run(build, *shapes):
        return lambda: theano.function([x, w], build())(*[np.zeros(shape) for shape in shapes])

    conv, pool = T.nnet.conv2d, pool_2d
    return attempt_each({
        "a matrix": lambda: conv(m, w),
        "filters of 4 dimensions, unshared": lambda: conv(x, w, unshared=True),
        "an unknown border": lambda: conv(x, w, border_mode="same"),
        "a negative pad": lambda: conv(x, w, border_mode=(-1, 1)),
        "three pads": lambda: conv(x, w, border_mode=(1, 1, 1)),
        "three numbers in subsample": lambda: conv(x, w, subsample=(1, 1, 1)),
        "no groups": lambda: conv(x, w, num_groups=0),
        "old keywords of sizes": lambda: conv(x, w, imshp_logical=(1, 2, 3)),
        "both names of the shape": lambda: conv(x, w, (1, 2, 3, 4), None, image_shape=(1, 2, 3, 4)),
        "other channels": run(lambda: conv(x, w), (1, 2, 5, 5), (1, 3, 2, 2)),
        "a pooling mode": lambda: pool(x, (2, 2), True, mode="median"),
        "pads without ignore_border": lambda: pool(x, (2, 2), False, pad=(1, 1)),
        "pads as large as windows": lambda: pool(x, (2, 2), True, pad=(2, 2)),
        "a pooled vector": lambda: pool(T.vector(), (2, 2), True),
        "no windows": lambda: pool(x, ignore_border=True),
    })  # fmt: skip
