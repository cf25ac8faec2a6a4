"""The steps of growing a random program that add convolutions, their gradients and pooling."""

from __future__ import annotations

from typing import Any

from opwise.tensor.conv.pool import MODES
from opwise.testing.fuzz.grow import Grower, Rejected
from opwise.testing.fuzz.steps import gradient_of, step

#: what often follows a convolution y with the bias b
_AFTER = (
    "{y}", "{y}", "{y} + {b}", "T.nnet.relu({y} + {b})", "T.tanh({y} + {b})", "T.maximum({y}, 0)",
    "T.nnet.sigmoid({y})", "{y} * 0.5 + {b}", "T.sqr({y})", "{y}.sum(axis=(2, 3))", "{y}[:, ::-1]",
    "{y}.flatten(2)", "({y} + {b}).mean(axis=(0, 2, 3))",
)  # fmt: skip


def _images(g: Grower, spatial: int = 2) -> str:
    """Return the name of finite images or volumes (batch, channels, *lengths)."""
    made = [n for n in g.order if g.ndim(n) == 2 + spatial and g.kind(n) == "f" and not g.level[n]
            and g.dtype(n) != "float16"]  # fmt: skip
    if made and g.chance(50):
        return g.choice(made)
    most = 8 if spatial == 2 else 5
    lengths = [g.between(1, most) for _ in range(spatial)]
    batch = g.choice([1, 1, 2, 2, 3, 0])
    return g.leaf(_float(g), (batch, g.between(1, 4), *lengths), exact=True, finite=True)


def _float(g: Grower) -> str:
    return g.choice(["float64", "float32", "float64"])


def _groups(g: Grower, channels: int) -> int:
    return g.choice([1, 1, *(n for n in range(2, channels + 1) if channels % n == 0)])


def _shown(g: Grower, x: str) -> str:
    """Return images, or a view of them that lies otherwise in memory."""
    if g.ndim(x) != 4 or g.chance(50):
        return x
    return g.choice([f"{x}[:, :, ::-1]", f"{x}[:, :, :, ::-1]", f"{x}[:, ::-1]", f"{x}[::-1]",
                     f"{x}.dimshuffle(1, 0, 2, 3).dimshuffle(1, 0, 2, 3)",
                     f"T.concatenate([{x}, {x}], axis=2)[:, :, ::2]"])  # fmt: skip


def _options(g: Grower, spatial: int, groups: int) -> str:
    border: list[Any] = ["valid", "valid", "full", "half", 1, tuple(range(spatial))]
    border.append(((1, 0), *[(0, 2)] * (spatial - 1)))
    options = [f"border_mode={g.choice(border)!r}"]
    for name in ("subsample", "filter_dilation"):
        if g.chance(30):
            options.append(f"{name}={tuple(g.between(1, 3) for _ in range(spatial))}")
    if g.chance(40):
        options.append("filter_flip=False")
    if groups > 1:
        options.append(f"num_groups={groups}")
    return ", ".join(options)


def _followed(g: Grower, y: str, channels: int) -> str:
    form = g.choice(_AFTER)
    b = ""
    if "{b}" in form:
        b = g.leaf(_float(g), (channels,), broadcast=[False], finite=True)
        b = f"{b}.dimshuffle('x', 0, 'x', 'x')"
    return form.format(y=y, b=b)


def _finished(g: Grower, text: str) -> str:
    name = g.add(text)
    return gradient_of(g, name) if g.chance(50) else name


@step(8)
def convolved(g: Grower) -> object:
    """A convolution of images with what often follows it."""
    x = _images(g)
    channels = g.shape(x)[1]
    groups = _groups(g, channels)
    outputs = groups * g.between(1, 3)
    kernel = (outputs, channels // groups, g.between(1, 4), g.between(1, 4))
    w = g.leaf(g.choice([g.dtype(x), _float(g)]), kernel, exact=True, finite=True)
    known = ""
    if g.chance(30):
        known = f", input_shape={g.shape(x)}, filter_shape={kernel}"
    y = f"abstract_conv.conv2d({_shown(g, x)}, {w}{known}, {_options(g, 2, groups)})"
    return _finished(g, _followed(g, y, outputs))


@step(3)
def convolved_volumes(g: Grower) -> object:
    x = _images(g, 3)
    channels = g.shape(x)[1]
    groups = _groups(g, channels)
    kernel = (groups * g.between(1, 2), channels // groups, *(g.between(1, 3) for _ in range(3)))
    w = g.leaf(g.dtype(x), kernel, exact=True, finite=True)
    return _finished(g, f"abstract_conv.conv3d({x}, {w}, {_options(g, 3, groups)})")


@step(4)
def transposed_convolution(g: Grower) -> object:
    """The shape of a result that a convolution may have had several inputs of."""
    x = _images(g)
    outputs, steps = g.shape(x)[1], (g.between(1, 3), g.between(1, 3))
    kernel = (outputs, g.between(1, 3), g.between(1, 3), g.between(1, 3))
    w = g.leaf(g.dtype(x), kernel, exact=True, finite=True)
    lengths = [
        (n - 1) * s + k + g.below(s)
        for n, s, k in zip(g.shape(x)[2:], steps, kernel[2:], strict=True)
    ]
    y = (f"abstract_conv.conv2d_transpose({_shown(g, x)}, {w}, (None, None, *{lengths}), "
         f"input_dilation={steps})")  # fmt: skip
    return _finished(g, _followed(g, y, kernel[1]))


@step(2)
def gradient_by_filters(g: Grower) -> object:
    x = _images(g)
    batch, _, rows, columns = g.shape(x)
    size = g.between(1, max(rows, 1)), g.between(1, max(columns, 1))
    shape = (batch, g.between(1, 3), rows - size[0] + 1, columns - size[1] + 1)
    if min(shape[2:]) < 1:
        raise Rejected
    top = g.leaf(g.dtype(x), shape, exact=True, finite=True)
    return _finished(
        g, f"abstract_conv.conv2d_grad_wrt_weights({_shown(g, x)}, {top}, (None, None, *{size}))"
    )


@step(2)
def upsampled(g: Grower) -> object:
    x = _images(g)
    if not all(g.shape(x)):
        raise Rejected
    options = g.choice(["ratio=2", "ratio=3, use_1D_kernel=False",
                        "frac_ratio=(3, 2), use_1D_kernel=False"])  # fmt: skip
    return _finished(g, f"abstract_conv.bilinear_upsampling({x}, {options})")


@step(6)
def pooled(g: Grower) -> object:
    spatial = 3 if g.chance(20) else 2
    x = _images(g, spatial)
    ws = tuple(g.between(1, 3) for _ in range(spatial))
    within = g.chance(70)
    pad = tuple(g.below(w) if within and g.chance(40) else 0 for w in ws)
    stride = g.choice([None, tuple(g.between(1, 3) for _ in range(spatial))])
    text = (f"pool.pool_{spatial}d({_shown(g, x)}, {ws}, {within}, {stride}, {pad}, "
            f"{g.choice(MODES)!r})")  # fmt: skip
    return _finished(g, text)
