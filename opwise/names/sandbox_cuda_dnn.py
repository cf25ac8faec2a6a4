"""``theano.sandbox.cuda.dnn``: functions whose arguments differ from those of gpuarray.dnn."""

from __future__ import annotations

from typing import Any

from opwise.names import cudnn


def dnn_conv(
    img: Any, kerns: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
    conv_mode: str = "conv", direction_hint: Any = None, workmem: Any = None, algo: Any = None,
    precision: Any = None,
) -> Any:  # fmt: skip
    """Return the convolution of images with kernels; conv_mode: 'conv' flips these, 'cross' not."""
    return cudnn.dnn_conv(img, kerns, border_mode, subsample, conv_mode=conv_mode)


def dnn_conv3d(
    img: Any, kerns: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
    conv_mode: str = "conv", direction_hint: Any = None, workmem: Any = None, algo: Any = None,
    precision: Any = None,
) -> Any:  # fmt: skip
    """Return the convolution of volumes with kernels, as ``dnn_conv`` of images."""
    return cudnn.dnn_conv3d(img, kerns, border_mode, subsample, conv_mode=conv_mode)


def dnn_gradweight(
    img: Any, topgrad: Any, kerns_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
    conv_mode: str = "conv",
) -> Any:  # fmt: skip
    """Return the gradient of ``dnn_conv`` by kernels of the shape ``kerns_shp``."""
    return cudnn.dnn_gradweight(
        img, topgrad, kerns_shp, border_mode, subsample, conv_mode=conv_mode
    )


def dnn_gradinput(
    kerns: Any, topgrad: Any, img_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
    conv_mode: str = "conv",
) -> Any:  # fmt: skip
    """Return the gradient of ``dnn_conv`` by images of the shape ``img_shp``."""
    return cudnn.dnn_gradinput(kerns, topgrad, img_shp, border_mode, subsample, conv_mode=conv_mode)


def dnn_gradweight3d(
    img: Any, topgrad: Any, kerns_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
    conv_mode: str = "conv",
) -> Any:  # fmt: skip
    """Return the gradient of ``dnn_conv3d`` by kernels of the shape ``kerns_shp``."""
    return cudnn.dnn_gradweight3d(
        img, topgrad, kerns_shp, border_mode, subsample, conv_mode=conv_mode
    )


def dnn_gradinput3d(
    kerns: Any, topgrad: Any, img_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
    conv_mode: str = "conv",
) -> Any:  # fmt: skip
    """Return the gradient of ``dnn_conv3d`` by volumes of the shape ``img_shp``."""
    return cudnn.dnn_gradinput3d(
        kerns, topgrad, img_shp, border_mode, subsample, conv_mode=conv_mode
    )


def dnn_pool(img: Any, ws: Any, stride: Any = (1, 1), mode: str = "max", pad: Any = (0, 0)) -> Any:
    """Return ``theano.gpuarray.dnn.dnn_pool``; of volumes, stride and pad may be left out too."""
    if len(ws) == 3:
        stride = (1, 1, 1) if stride == (1, 1) else stride
        pad = (0, 0, 0) if pad == (0, 0) else pad
    return cudnn.dnn_pool(img, ws, stride, mode, pad)


class GpuDnnConvDesc(cudnn.GpuDnnConvDesc):
    """How a convolution is computed; called with shapes, it returns the description."""

    def __init__(
        self, border_mode: Any, subsample: Any = (1, 1), conv_mode: str = "conv",
        precision: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(border_mode, subsample, (1,) * len(subsample), conv_mode)
