"""``theano.sandbox.cuda.fftconv``: convolutions that Theano computed by Fourier transforms."""

from __future__ import annotations

from typing import Any

from opwise.tensor.conv import functions


def _checked(border_mode: str) -> str:
    if border_mode not in ("valid", "full"):
        raise ValueError(f"border_mode must be 'valid' or 'full', not {border_mode!r}")
    return border_mode


def conv2d_fft(
    input: Any, filters: Any, image_shape: Any = None, filter_shape: Any = None,
    border_mode: str = "valid", pad_last_dim: bool = False,
) -> Any:  # fmt: skip
    """Return the convolution of images with flipped filters; pad_last_dim has no effect."""
    return functions.conv2d(input, filters, image_shape, filter_shape, _checked(border_mode))


def conv3d_fft(
    input: Any, filters: Any, image_shape: Any = None, filter_shape: Any = None,
    border_mode: str = "valid", pad_last_dim: bool = False,
) -> Any:  # fmt: skip
    """Return the convolution of volumes with flipped filters; pad_last_dim has no effect."""
    return functions.conv3d(input, filters, image_shape, filter_shape, _checked(border_mode))
