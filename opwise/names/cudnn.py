"""``theano.gpuarray.dnn``: what cuDNN computed for Theano, by opwise's own Ops.

Arguments that chose among cuDNN's algorithms and precisions (algo, workmem, precision,
direction_hint) have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import opwise.tensor as T
from opwise.graph.apply import Apply
from opwise.tensor.conv import ops, pool, spatial
from opwise.tensor.conv.older import OlderOp
from opwise.tensor.conv.shapes import get_conv_output_shape
from opwise.tensor.nnet import bn
from opwise.tensor.variable import Tensor, as_tensor_variable

# --- convolutions ---------------------------------------------------------------------------------


def dnn_conv(
    img: Any,
    kerns: Any,
    border_mode: Any = "valid",
    subsample: Any = (1, 1),
    dilation: Any = (1, 1),
    conv_mode: str = "conv",
    direction_hint: Any = None,
    workmem: Any = None,
    algo: Any = None,
    precision: Any = None,
    num_groups: int = 1,
) -> Tensor:
    """Return the convolution of images with kernels.

    conv_mode: 'conv' flips kernels, 'cross' does not. Other arguments are those of
    ``theano.tensor.nnet.conv2d``.
    """
    return _conv(2, 0, border_mode, subsample, dilation, conv_mode, num_groups)(img, kerns)


def dnn_conv3d(
    img: Any,
    kerns: Any,
    border_mode: Any = "valid",
    subsample: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1),
    conv_mode: str = "conv",
    direction_hint: Any = None,
    algo: Any = None,
    precision: Any = None,
    num_groups: int = 1,
) -> Tensor:
    """Return the convolution of volumes with kernels, as ``dnn_conv`` of images."""
    return _conv(3, 0, border_mode, subsample, dilation, conv_mode, num_groups)(img, kerns)


def _conv(n, which, border_mode, subsample, dilation, conv_mode, num_groups=1):
    """Return the Op that convolves (which: 0), or its gradient by kernels (1) or images (2)."""
    if conv_mode not in ("conv", "cross"):
        raise ValueError(f"conv_mode must be 'conv' or 'cross', not {conv_mode!r}")
    return ops.FAMILIES[n][which](
        border_mode=border_mode, subsample=subsample, filter_flip=conv_mode == "conv",
        filter_dilation=dilation, num_groups=num_groups,
    )  # fmt: skip


def _lengths(shape: Any, n: int) -> Tensor:
    """Return the last n entries of a shape, which has n + 2, as a vector."""
    return T.stack([T.cast(as_tensor_variable(shape[2 + a]), "int64") for a in range(n)])


def dnn_gradweight(
    img: Any, topgrad: Any, kerns_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
    dilation: Any = (1, 1), conv_mode: str = "conv", precision: Any = None, algo: Any = None,
    num_groups: int = 1,
) -> Tensor:  # fmt: skip
    """Return the gradient of ``dnn_conv`` by kernels of the shape ``kerns_shp``."""
    op = _conv(2, 1, border_mode, subsample, dilation, conv_mode, num_groups)
    return op(img, topgrad, _lengths(kerns_shp, 2))


def dnn_gradweight3d(
    img: Any, topgrad: Any, kerns_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1), conv_mode: str = "conv", precision: Any = None, algo: Any = None,
    num_groups: int = 1,
) -> Tensor:  # fmt: skip
    """Return the gradient of ``dnn_conv3d`` by kernels of the shape ``kerns_shp``."""
    op = _conv(3, 1, border_mode, subsample, dilation, conv_mode, num_groups)
    return op(img, topgrad, _lengths(kerns_shp, 3))


def dnn_gradinput(
    kerns: Any, topgrad: Any, img_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
    dilation: Any = (1, 1), conv_mode: str = "conv", precision: Any = None, algo: Any = None,
    num_groups: int = 1,
) -> Tensor:  # fmt: skip
    """Return the gradient of ``dnn_conv`` by images of the shape ``img_shp``."""
    op = _conv(2, 2, border_mode, subsample, dilation, conv_mode, num_groups)
    return op(kerns, topgrad, _lengths(img_shp, 2))


def dnn_gradinput3d(
    kerns: Any, topgrad: Any, img_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
    dilation: Any = (1, 1, 1), conv_mode: str = "conv", precision: Any = None, algo: Any = None,
    num_groups: int = 1,
) -> Tensor:  # fmt: skip
    """Return the gradient of ``dnn_conv3d`` by volumes of the shape ``img_shp``."""
    op = _conv(3, 2, border_mode, subsample, dilation, conv_mode, num_groups)
    return op(kerns, topgrad, _lengths(img_shp, 3))


@dataclass(frozen=True)
class Description:
    """What a descriptor of cuDNN says: keywords for ``_conv``, or for pooling."""

    options: dict[str, Any]


class GpuDnnConvDesc:
    """How a convolution is computed; called with shapes, it returns the description."""

    def __init__(
        self, border_mode: Any, subsample: Any = (1, 1), dilation: Any = (1, 1),
        conv_mode: str = "conv", precision: Any = "float32", num_groups: int = 1,
    ) -> None:  # fmt: skip
        self.options = {
            "border_mode": border_mode, "subsample": tuple(subsample), "dilation": tuple(dilation),
            "conv_mode": conv_mode, "num_groups": num_groups,
        }  # fmt: skip
        n = len(self.options["subsample"])
        if len(self.options["dilation"]) != n:
            self.options["dilation"] = (1,) * n
        _conv(n, 0, **self.options)  # raises for what cannot be

    def __call__(self, *shapes: Any) -> Description:
        return Description(self.options)


class _WithDescription(OlderOp):
    """A convolution or a gradient whose options a description gives."""

    __props__ = ("algo",)
    which = 0

    def __init__(self, algo: Any = None, inplace: bool = False, **kwargs: Any) -> None:
        self.algo, self.inplace = algo, inplace

    def build(
        self, first: Any, second: Any, output: Any, desc: Description, alpha: Any = None,
        beta: Any = None,
    ) -> Tensor:  # fmt: skip
        """Return alpha times what is computed plus beta times ``output``, whose shape counts."""
        n = len(desc.options["subsample"])
        output = as_tensor_variable(output)
        op = _conv(n, self.which, **desc.options)
        result = op(first, second, *([_lengths(output.shape, n)] if self.which else []))
        if alpha is not None and alpha != 1:
            result = result * T.cast(alpha, result.dtype)
        if beta is not None and beta != 0:
            result = result + T.cast(beta, result.dtype) * output
        return result


class GpuDnnConv(_WithDescription):
    """The convolution of images with kernels; inputs: these, an output, a description."""

    @staticmethod
    def get_out_shape(
        ishape: Any, kshape: Any, border_mode: Any, subsample: Any, dilation: Any = None
    ) -> tuple[Any, ...]:
        """Return the shape of the result."""
        return get_conv_output_shape(ishape, kshape, border_mode, subsample, dilation)


class GpuDnnConvGradW(_WithDescription):
    """The gradient of ``GpuDnnConv`` by kernels; inputs: images, gradient, output, description."""

    which = 1


class GpuDnnConvGradI(_WithDescription):
    """The gradient of ``GpuDnnConv`` by images; inputs: kernels, gradient, output, description."""

    which = 2


GpuDnnConv3d, GpuDnnConv3dGradW, GpuDnnConv3dGradI = GpuDnnConv, GpuDnnConvGradW, GpuDnnConvGradI


def gpu_dnn_conv(algo: Any = None, inplace: bool = False, num_groups: int = 1) -> GpuDnnConv:
    """Return ``GpuDnnConv``."""
    return GpuDnnConv(algo, inplace)


def gpu_dnn_conv_gradW(
    algo: Any = None, inplace: bool = False, num_groups: int = 1
) -> GpuDnnConvGradW:
    """Return ``GpuDnnConvGradW``."""
    return GpuDnnConvGradW(algo, inplace)


def gpu_dnn_conv_gradI(
    algo: Any = None, inplace: bool = False, num_groups: int = 1
) -> GpuDnnConvGradI:
    """Return ``GpuDnnConvGradI``."""
    return GpuDnnConvGradI(algo, inplace)


gpu_dnn_conv_desc = GpuDnnConvDesc

# --- pooling --------------------------------------------------------------------------------------


def dnn_pool(img: Any, ws: Any, stride: Any = None, mode: str = "max", pad: Any = None) -> Tensor:
    """Return the maxima, sums or averages of windows over images or volumes.

    ws: two or three lengths of windows. stride: their steps (default: 1). pad: zeros around the
    image. mode: 'max', 'average_inc_pad', 'average_exc_pad', or 'average', the old name of the
    first of these. Windows that reach beyond the image are left out.
    """
    n = _count(ws)
    mode = {"average": "average_inc_pad", "max_deterministic": "max"}.get(mode, mode)
    function = {2: pool.pool_2d, 3: pool.pool_3d}[n]
    stride = (1,) * n if stride is None else stride
    return function(img, ws, True, stride, (0,) * n if pad is None else pad, mode)


def _count(ws: Any) -> int:
    """Return how many lengths there are, 2 or 3; of a vector that is not known there are 2."""
    try:
        n = len(ws)
    except TypeError:
        return 2
    if n not in (2, 3):
        raise ValueError(f"ws must be two or three lengths, not {ws}")
    return n


class GpuDnnPoolDesc:
    """How images are pooled; a call returns the description."""

    def __init__(
        self, ws: Any = (1, 1), stride: Any = (1, 1), mode: str = "max", pad: Any = (0, 0)
    ) -> None:
        self.options = {"ws": ws, "stride": stride, "mode": mode, "pad": pad}

    def __call__(self) -> Description:
        return Description(self.options)


class GpuDnnPool(OlderOp):
    """Pools images; inputs: images and ws, stride and pad, or images and a description."""

    __props__ = ("mode",)

    def __init__(self, mode: str = "max") -> None:
        self.mode = mode

    def build(self, img: Any, ws: Any, stride: Any = None, pad: Any = None) -> Tensor:
        if isinstance(ws, Description):
            return dnn_pool(img, **ws.options)
        return dnn_pool(img, ws, stride, self.mode, pad)


# --- softmax --------------------------------------------------------------------------------------


class GpuDnnSoftmax(OlderOp):
    """The softmax of images (batch, channels, rows, columns).

    algo: 'fast' or 'accurate', or 'log' for the logarithm. mode: over the 'channel' axis, or the
    whole 'instance'. Before these, old programs name the order of axes: 'bc01' or 'b01c'.
    """

    __props__ = ("tensor_format", "algo", "mode")

    def __init__(self, *args: str) -> None:
        named = args[0] if args and args[0] in ("bc01", "b01c") else None
        self.tensor_format = named or "bc01"
        given = args[named is not None :]
        if len(given) != 2 or given[0] not in ("fast", "accurate", "log"):
            raise ValueError(
                "GpuDnnSoftmax needs algo ('fast', 'accurate' or 'log') and mode ('channel' or "
                f"'instance'), not {args}"
            )
        self.algo, self.mode = given
        if self.mode not in ("channel", "instance"):
            raise ValueError(f"mode must be 'channel' or 'instance', not {self.mode!r}")

    def build(self, x: Any) -> Tensor:
        x = as_tensor_variable(x)
        if x.type.ndim != 4:
            raise TypeError(f"GpuDnnSoftmax needs 4 dimensions, not {x.type.ndim}")
        axis = self.tensor_format.index("c")
        axes = (axis,) if self.mode == "channel" else (1, 2, 3)
        shifted = x - x.max(axis=axes, keepdims=True)
        if self.algo == "log":
            return shifted - T.log(T.exp(shifted).sum(axis=axes, keepdims=True))
        powers = T.exp(shifted)
        return powers / powers.sum(axis=axes, keepdims=True)


# --- batch normalisation --------------------------------------------------------------------------


def dnn_batch_normalization_train(
    inputs: Any, gamma: Any, beta: Any, mode: str = "per-activation", epsilon: float = 1e-4,
    running_average_factor: float = 0.1, running_mean: Any = None, running_var: Any = None,
) -> Any:  # fmt: skip
    """Return ``theano.tensor.nnet.bn.batch_normalization_train``: mode 'spatial' normalises over
    the batch and the spatial axes, 'per-activation' over the batch."""
    _check_mode(mode)
    return bn.batch_normalization_train(
        inputs, gamma, beta, mode, epsilon, running_average_factor, running_mean, running_var
    )


def dnn_batch_normalization_test(
    inputs: Any, gamma: Any, beta: Any, mean: Any, var: Any, mode: str = "per-activation",
    epsilon: float = 1e-4,
) -> Any:  # fmt: skip
    """Return ``theano.tensor.nnet.bn.batch_normalization_test``."""
    _check_mode(mode)
    return bn.batch_normalization_test(inputs, gamma, beta, mean, var, mode, epsilon)


def _check_mode(mode: str) -> None:
    if mode not in ("per-activation", "spatial"):
        raise ValueError(f"mode must be 'per-activation' or 'spatial', not {mode!r}")


# --- spatial transformers -------------------------------------------------------------------------


def dnn_spatialtf(img: Any, theta: Any, scale_width: Any = 1, scale_height: Any = 1) -> Tensor:
    """Return images moved by affine transformations, with zeros beyond their borders."""
    return spatial.spatialtf(img, theta, scale_width, scale_height, "zero")


GpuDnnTransformerGrid, GpuDnnTransformerGradT = spatial.TransformerGrid, spatial.TransformerGradT


class GpuDnnTransformerSampler(spatial.TransformerSampler):
    """Samples images at the points of a grid, with zeros beyond their borders."""

    def __init__(self) -> None:
        super().__init__("zero")

    def make_node(self, img: Any, grid: Any) -> Apply:
        return spatial.TransformerSampler("zero").make_node(img, grid)


class GpuDnnTransformerGradI(spatial.TransformerGradI):
    """The gradients of ``GpuDnnTransformerSampler``."""

    def __init__(self) -> None:
        super().__init__("zero")

    def make_node(self, img: Any, grid: Any, dy: Any) -> Apply:
        return spatial.TransformerGradI("zero").make_node(img, grid, dy)
