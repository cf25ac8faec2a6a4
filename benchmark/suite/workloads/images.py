"""Convolution, pooling and batch normalisation of images, and training steps of LeNet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmark.suite.workload import Workload
from benchmark.suite.workloads.training import SMALL_RATE, cross_entropy_by_hand

# ---------------------------------------------------------------- convolution


@dataclass(frozen=True)
class Convolution:
    """A layer: its name, shapes, and how its filters move.

    depthwise: a filter for each channel, which meets only that. Its flops are those of the sum over
    the places of a filter, which algorithms of other kinds may undercut.
    """

    name: str
    what: str
    sizes: dict[str, int]
    stride: int = 1
    pad: int = 0
    depthwise: bool = False

    def result(self, side, kernel):
        return (side + 2 * self.pad - kernel) // self.stride + 1

    def shapes(self, *, batch, channels, filters=None, side, kernel):
        """Of the images, the filters and the result."""
        filters = filters or channels
        n = self.result(side, kernel)
        return (
            (batch, channels, side, side),
            (filters, 1 if self.depthwise else channels, kernel, kernel),
            (batch, filters, n, n),
        )

    def flops(self, **sizes):
        _, kernel, result = map(np.prod, self.shapes(**sizes))
        return 2 * int(result) * int(kernel) // self.shapes(**sizes)[1][0]

    def moved(self, written, itemsize, **sizes):
        """One of images, filters and result is written, the others are read."""
        nbytes = [int(np.prod(shape)) * itemsize for shape in self.shapes(**sizes)]
        return sum(nbytes) - nbytes[written], nbytes[written]

    def draw(self, gradient, rng, **sizes):
        image, kernel, result = self.shapes(**sizes)
        arrays = {
            "x": rng.normal(size=image),
            "w": rng.normal(size=kernel) / np.prod(kernel[1:]) ** 0.5,
        }
        if gradient:
            arrays["g"] = rng.normal(size=result)
        return arrays, {}

    def workloads(self):
        """The convolution, and its gradients by filters and by images."""
        for name, what, program, written in (
            ("", "", convolution, 2),
            ("-by-filters", "gradient by filters of ", by_filters, 1),
            ("-by-images", "gradient by images of ", by_images, 0),
        ):
            yield Workload(
                name=f"{self.name}{name}-f32",
                what=what + self.what,
                dtype="float32",
                sizes=self.sizes,
                draw=partial(self.draw, written != 2),
                program=partial(program, self.stride, self.pad, self.depthwise),
                unrolled=("channels",),
                flops=self.flops,
                moved=partial(self.moved, written),
                images=True,
            )


def convolution(stride, pad, depthwise, xp, x, w, channels):
    return (xp.conv(x, w, stride, pad, channels if depthwise else 1),), {}


def by_filters(stride, pad, depthwise, xp, x, w, g, channels):
    return (xp.conv_by_filters(x, w, g, stride, pad, channels if depthwise else 1),), {}


def by_images(stride, pad, depthwise, xp, x, w, g, channels):
    return (xp.conv_by_images(x, w, g, stride, pad, channels if depthwise else 1),), {}


CONVOLUTIONS = (
    Convolution(
        "conv-3x3",
        "3 x 3 filters, 64 to 64 channels of 56 x 56, a batch of 16",
        {"batch": 16, "channels": 64, "filters": 64, "side": 56, "kernel": 3},
        pad=1,
    ),
    Convolution(
        "conv-1x1",
        "1 x 1 filters, 256 to 64 channels of 28 x 28, a batch of 16",
        {"batch": 16, "channels": 256, "filters": 64, "side": 28, "kernel": 1},
    ),
    Convolution(
        "conv-depthwise",
        "3 x 3 filters, one for each of 64 channels of 56 x 56, a batch of 16",
        {"batch": 16, "channels": 64, "side": 56, "kernel": 3},
        pad=1,
        depthwise=True,
    ),
    Convolution(
        "conv-first",
        "5 x 5 filters, 3 to 32 channels of 32 x 32, a batch of 64",
        {"batch": 64, "channels": 3, "filters": 32, "side": 32, "kernel": 5},
        pad=2,
    ),
    Convolution(
        "conv-11x11",
        "11 x 11 filters, every fourth place, 3 to 64 channels of 227 x 227, a batch of 16",
        {"batch": 16, "channels": 3, "filters": 64, "side": 227, "kernel": 11},
        stride=4,
    ),
)


# ---------------------------------------------------------------- pooling


def images(rng, batch, channels, side):
    return {"x": rng.normal(size=(batch, channels, side, side))}, {}


def images_and_weights(size, stride, rng, batch, channels, side):
    n = (side - size) // stride + 1
    inputs, _ = images(rng, batch, channels, side)
    return {**inputs, "w": rng.normal(size=(batch, channels, n, n))}, {}


def max_pool(size, stride, xp, x):
    return (xp.max_pool(x, size, stride),), {}


def max_pool_gradient(size, stride, xp, x, w):
    """The cost, and the gradient in x."""
    cost, grads = xp.value_and_grad(lambda x: xp.sum(w * xp.max_pool(x, size, stride)), x)
    return (cost, grads[0]), {}


def max_pool_gradient_by_hand(size, stride, x, w):
    from benchmark.suite.contenders.in_numpy import xp

    pooled = xp.max_pool(x, size, stride)
    return ((w * pooled).sum(), max_pool_back(x, pooled, w, size, stride)), {}


def max_pool_back(x, pooled, g, size, stride):
    """The gradient in x of a pooling; of one place in each window, since no two are equal."""
    grad, n = np.zeros_like(x), pooled.shape[2]
    for i, j in np.ndindex(size, size):
        there = np.s_[:, :, i : i + (n - 1) * stride + 1 : stride,
                      j : j + (n - 1) * stride + 1 : stride]  # fmt: skip
        grad[there] += g * (x[there] == pooled)
    return grad


def pooling(size, stride):
    name, what = f"max-pool-{size}x{size}", f"maxima of {size} x {size}, every {stride}"
    sizes = {"batch": 32, "channels": 64, "side": 56}
    yield Workload(
        name=f"{name}-f32",
        what=f"{what}, of 32 x 64 x 56 x 56",
        dtype="float32",
        sizes=sizes,
        draw=images,
        program=partial(max_pool, size, stride),
        images=True,
    )
    yield Workload(
        name=f"{name}-grad-f32",
        what=f"gradient of sum(w * {what}) in 32 x 64 x 56 x 56",
        dtype="float32",
        sizes=sizes,
        draw=partial(images_and_weights, size, stride),
        program=partial(max_pool_gradient, size, stride),
        by_hand=partial(max_pool_gradient_by_hand, size, stride),
        images=True,
    )


# ---------------------------------------------------------------- batch normalisation


def normalised_data(rng, batch, channels, side):
    shape = (batch, channels, side, side)
    inputs = {
        "x": rng.normal(1, 2, shape),
        "gain": rng.uniform(0.5, 1.5, channels),
        "bias": rng.normal(size=channels),
        "w": rng.normal(size=shape),
    }
    return inputs, {}


def normalised(xp, x, gain, bias, w):
    def cost_of(x, gain, bias):
        return xp.sum(w * xp.relu(xp.batch_norm(x, gain, bias)))

    cost, grads = xp.value_and_grad(cost_of, x, gain, bias)
    return (cost, *grads), {}


def normalised_by_hand(x, gain, bias, w):
    from benchmark.suite.contenders.base import EPSILON

    axes, on_maps = (0, 2, 3), (slice(None), None, None)
    centred = x - x.mean(axes, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axes, keepdims=True) + EPSILON)
    unit = centred * scale
    out = unit * gain[on_maps] + bias[on_maps]
    grad = w * (out > 0)
    grad_gain, grad_bias = (grad * unit).sum(axes), grad.sum(axes)
    n = x.size // x.shape[1]
    grad_x = gain[on_maps] * scale * (
        grad - grad_bias[on_maps] / n - unit * grad_gain[on_maps] / n
    )  # fmt: skip
    return ((w * np.maximum(out, 0)).sum(), grad_x, grad_gain, grad_bias), {}


# ---------------------------------------------------------------- LeNet


def lenet_data(rng, batch, maps1, maps2, hidden, classes, side):
    n = lenet_sides(side)[-1] ** 2 * maps2
    inputs = {
        "x": rng.uniform(size=(batch, 1, side, side)),
        "y": rng.integers(0, classes, batch),
    }
    state = {
        "w1": rng.normal(size=(maps1, 1, 5, 5)) / 5,
        "b1": np.zeros(maps1),
        "w2": rng.normal(size=(maps2, maps1, 5, 5)) / (25 * maps1) ** 0.5,
        "b2": np.zeros(maps2),
        "w3": rng.normal(size=(n, hidden)) / n**0.5,
        "b3": np.zeros(hidden),
        "w4": rng.normal(size=(hidden, classes)) / hidden**0.5,
        "b4": np.zeros(classes),
    }
    return inputs, state


def lenet_sides(side):
    """Of what the layers compute: a convolution, a pooling, and both again."""
    first = side - 4
    second = first // 2 - 4
    return first, first // 2, second, second // 2


def lenet(xp, x, y, **state):
    def cost_of(w1, b1, w2, b2, w3, b3, w4, b4):
        h1 = xp.tanh(xp.max_pool(xp.conv(x, w1), 2, 2) + xp.on_maps(b1))
        h2 = xp.tanh(xp.max_pool(xp.conv(h1, w2), 2, 2) + xp.on_maps(b2))
        h3 = xp.tanh(xp.dot(xp.rows(h2), w3) + b3)
        return xp.cross_entropy(xp.dot(h3, w4) + b4, y)

    cost, grads = xp.value_and_grad(cost_of, *state.values())
    return (cost,), xp.descend(state, grads, SMALL_RATE)


def lenet_by_hand(x, y, w1, b1, w2, b2, w3, b3, w4, b4):
    from benchmark.suite.contenders.in_numpy import xp

    axes = (0, 2, 3)
    c1 = xp.conv(x, w1)
    p1 = xp.max_pool(c1, 2, 2)
    h1 = np.tanh(p1 + xp.on_maps(b1))
    c2 = xp.conv(h1, w2)
    p2 = xp.max_pool(c2, 2, 2)
    h2 = np.tanh(p2 + xp.on_maps(b2))
    rows = xp.rows(h2)
    h3 = np.tanh(rows @ w3 + b3)
    cost, g4 = cross_entropy_by_hand(h3 @ w4 + b4, y)
    g3 = (g4 @ w4.T) * (1 - h3 * h3)
    g2 = (g3 @ w3.T).reshape(h2.shape) * (1 - h2 * h2)
    back2 = max_pool_back(c2, p2, g2, 2, 2)
    g1 = xp.conv_by_images(h1, w2, back2) * (1 - h1 * h1)
    back1 = max_pool_back(c1, p1, g1, 2, 2)
    state = {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": w3, "b3": b3, "w4": w4, "b4": b4}
    grads = (
        xp.conv_by_filters(x, w1, back1), g1.sum(axes), xp.conv_by_filters(h1, w2, back2),
        g2.sum(axes), rows.T @ g3, g3.sum(0), h3.T @ g4, g4.sum(0),
    )  # fmt: skip
    for value, grad in zip(state.values(), grads, strict=True):
        value -= SMALL_RATE * grad
    return (cost,), state


def lenet_flops(batch, maps1, maps2, hidden, classes, side):
    """Each product forward and twice backward, but for the images, which are given."""
    first, _, second, last = lenet_sides(side)
    conv1 = maps1 * 25 * first**2
    conv2 = maps2 * maps1 * 25 * second**2
    dense = maps2 * last**2 * hidden + hidden * classes
    return 2 * batch * (2 * conv1 + 3 * conv2 + 3 * dense)


WORKLOADS = [
    *(
        Workload(
            name=f"lenet-batch{batch}-f32",
            what=f"LeNet of 20 and 50 maps on 28 x 28, a batch of {batch}, one update",
            dtype="float32",
            sizes={
                "batch": batch, "maps1": 20, "maps2": 50, "hidden": 500, "classes": 10, "side": 28,
            },
            draw=lenet_data,
            program=lenet,
            by_hand=lenet_by_hand,
            flops=lenet_flops,
            images=True,
        )
        for batch in (64, 500)
    ),
    *(workload for layer in CONVOLUTIONS for workload in layer.workloads()),
    *pooling(2, 2),
    *pooling(3, 2),
    Workload(
        name="batch-norm-relu-grad-f32",
        what="gradients of sum(w * relu(batch normalisation)) in 32 x 64 x 28 x 28, gain and bias",
        dtype="float32",
        sizes={"batch": 32, "channels": 64, "side": 28},
        draw=normalised_data,
        program=normalised,
        by_hand=normalised_by_hand,
    ),
]  # fmt: skip
