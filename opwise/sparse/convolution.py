"""Convolutions and pooling of flattened images, by products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.variable import Var
from opwise.sparse.products import structured_dot
from opwise.sparse.vectors import CSM
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.join import stack
from opwise.tensor.products import dot
from opwise.tensor.reduce import max as max_of
from opwise.tensor.shape import flatten, reshape


class ConvolutionIndices(Op):
    """The places of ones in the sparse matrix that stacks the patches of an image."""

    __props__ = ()

    @staticmethod
    def conv_eval(
        inshp: Any, kshp: Any, strides: Any = (1, 1), mode: str = "valid"
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, int], str, np.ndarray]:
        """Return ``evaluate`` of these arguments."""
        return ConvolutionIndices.evaluate(inshp, kshp, strides, mode=mode, ws=True)

    @staticmethod
    def evaluate(
        inshp: Any,
        kshp: Any,
        strides: Any = (1, 1),
        nkern: int = 1,
        mode: str = "valid",
        ws: bool = True,
    ) -> tuple[np.ndarray, np.ndarray, tuple[int, int], str, np.ndarray]:
        """Return (indices, indptr, shape of the matrix, 'csc', shape of the output image).

        The product of the CSC matrix with a flattened image of shape ``inshp``, ([maps,] height,
        width), is the stack of patches of shape ``kshp`` that a kernel is applied to, for each
        place of the kernel and each map; strides: (columns, rows) between places. mode: 'valid' or
        'full', which pads the image with zeros. Raises Exception unless ws is True, ValueError for
        another mode and for a kernel larger than the image.
        """
        if not ws:
            raise Exception("ws is obsolete and it must be always True")
        if mode not in ("valid", "full"):
            raise ValueError(f"mode must be 'valid' or 'full', not {mode!r}")
        maps, height, width = inshp if len(inshp) == 3 else (1, *inshp)
        rows, columns = kshp
        dx, dy = strides
        # of the padded image, whose first element of the image itself is at (rows - 1, columns - 1)
        first = (rows - 1, columns - 1) if mode == "valid" else (0, 0)
        sign = -1 if mode == "valid" else 1
        outshp = np.array(
            [-((-(n + sign * (k - 1))) // d) for n, k, d in
             ((height, rows, dy), (width, columns, dx))],
            dtype=np.int64,
        )  # fmt: skip
        if (outshp <= 0).any():
            raise ValueError(
                f"Invalid kernel {kshp} and/or step size {strides} for given input shape {inshp}"
            )
        m, oy, ox, ky, kx = np.ix_(
            np.arange(maps), np.arange(outshp[0]), np.arange(outshp[1]),
            np.arange(rows), np.arange(columns),
        )  # fmt: skip
        # the kernel's window begins at the output's place in the padded image
        y = first[0] + oy * dy + ky - (rows - 1)
        x = first[1] + ox * dx + kx - (columns - 1)
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        patch = ((oy * outshp[1] + ox) * maps + m) * (rows * columns) + ky * columns + kx
        pixel = (m * height + y) * width + x
        inside, patch, pixel = np.broadcast_arrays(inside, patch, pixel)
        patch, pixel = patch[inside], pixel[inside]
        order = np.lexsort((patch, pixel))
        shape = (int(np.prod(outshp)) * rows * columns * maps, maps * height * width)
        counts = np.bincount(pixel, minlength=shape[1])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return patch[order].astype(np.int32), indptr, shape, "csc", outshp

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        indices, indptr, shape, _, _ = self.evaluate(*inputs)
        for storage, value in zip(output_storage, (indices, indptr, shape), strict=True):
            storage[0] = np.asarray(value)


convolution_indices = ConvolutionIndices()


def _patches(images: Var, imgshp: Any, kshp: Any, step: Any, mode: str) -> tuple[Any, Any]:
    """Return (the patches of each image side by side, the shape of the output image)."""
    indices, indptr, shape, format, outshp = convolution_indices.conv_eval(
        imgshp, kshp, step, mode=mode
    )
    ones = np.ones(indices.size, dtype=images.type.dtype)
    matrix = CSM(format)(ones, indices, indptr, shape)
    return structured_dot(matrix, images.T).T, outshp


def convolve(
    kerns: Any, kshp: Any, nkern: int, images: Any, imgshp: Any, step: Any = (1, 1),
    bias: Any = None, mode: str = "valid", flatten: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    """Return (images convolved with kernels, shape of an output: (kernels, height, width)).

    kerns: a matrix, a flattened kernel of shape ``kshp`` in each row (for each map in turn).
    images: a matrix, a flattened image of shape ``imgshp``, ([maps,] height, width), in each row.
    step: (columns, rows) between places of the kernel. bias: a vector, a number for each kernel.
    mode: 'valid' or 'full'. flatten: return a row for each image, kernels * places long, and not an
    array (images, kernels, places). The dtype is the upcast of those of images, kerns and bias; the
    shape is an array of int64.

    Raises ValueError for another mode and for a kernel larger than the image, NotImplementedError
    unless images is a matrix; ValueError at run time if a shape does not fit kshp, imgshp or nkern.
    """
    maps = imgshp[0] if len(imgshp) == 3 else 1
    patches, outshp = _patches(images, imgshp, kshp, step, mode)
    n, places = images.shape[0], int(np.prod(outshp))
    lengths = stack([n * places, int(maps * np.prod(kshp))])
    output = dot(reshape(patches, lengths, ndim=2), kerns.T)
    if bias is not None:
        output = output + bias
    output = reshape(output, stack([n, places, nkern]), ndim=3)
    output = dimshuffle(output, (0, 2, 1))
    return (_flatten(output, 2) if flatten else output), np.hstack((nkern, outshp))


_flatten = flatten


def max_pool(images: Any, imgshp: Any, maxpoolshp: Any) -> tuple[Any, Any]:
    """Return (the maximum of each patch of images, shape (height, width) of an output).

    images: a matrix variable, a flattened image of shape ``imgshp``, ([maps,] height, width), in
    each row. maxpoolshp: (height, width) of a patch; patches do not overlap, and those that do not
    fit are left out. The maxima are a matrix of the dtype of images, with a row of maps * height *
    width maxima for each image. Raises ValueError for a patch larger than the image,
    NotImplementedError unless images is a matrix; ValueError at run time if its rows do not have
    the length of imgshp.
    """
    maps = imgshp[0] if len(imgshp) == 3 else 1
    patches, outshp = _patches(images, imgshp, maxpoolshp, tuple(maxpoolshp)[::-1], "valid")
    n, places = images.shape[0], int(np.prod(outshp))
    lengths = stack([n * places, maps, int(np.prod(maxpoolshp))])
    most = max_of(reshape(patches, lengths, ndim=3), axis=2)
    most = dimshuffle(reshape(most, stack([n, places, maps]), ndim=3), (0, 2, 1))
    return _flatten(most, 2), outshp
