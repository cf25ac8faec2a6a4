"""Ops by which programs of Theano convolve without its abstract Ops.

The correlations are those of ``tensor.conv.ops`` with other arguments. The others build these Ops
when they are called, so that no Apply of a function has one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opwise.errors import NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.tensor.conv import ops
from opwise.tensor.conv.shapes import (
    get_conv_gradinputs_shape,
    get_conv_gradweights_shape,
    get_conv_output_shape,
)
from opwise.tensor.creation import zeros
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import cast
from opwise.tensor.join import stack
from opwise.tensor.knownvalues import get_scalar_constant_value
from opwise.tensor.shape import patternbroadcast
from opwise.tensor.subtensor import set_subtensor
from opwise.tensor.variable import TensorLike, as_tensor_variable

__all__ = [
    "BaseCorr3dMM",
    "BaseCorrMM",
    "Conv3D",
    "ConvGrad3D",
    "ConvOp",
    "ConvTransp3D",
    "Corr3dMM",
    "Corr3dMM_gradInputs",
    "Corr3dMM_gradWeights",
    "CorrMM",
    "CorrMM_gradInputs",
    "CorrMM_gradWeights",
    "OlderOp",
    "conv3D",
    "convGrad3D",
    "convTransp3D",
]


class OlderOp(Op):
    """An Op whose call builds other Ops."""

    def make_node(self, *inputs: Any) -> Apply:
        """Return the last Apply of what is built; its output is the result."""
        result: Apply = self.build(*inputs).owner
        return result

    def build(self, *inputs: Any) -> Any:
        raise NotImplementedError


# --- correlations by matrix products --------------------------------------------------------------


class BaseCorrMM(ops.BaseAbstractConv):
    """What a correlation of images with kernels, which are not flipped, and its gradients share."""

    #: the number of spatial axes
    axes = 2

    def __init__(
        self,
        border_mode: Any = "valid",
        subsample: Sequence[int] | None = None,
        filter_dilation: Sequence[int] | None = None,
        num_groups: int = 1,
        unshared: bool = False,
    ) -> None:
        super().__init__(
            self.axes, None, None, border_mode, subsample, False, filter_dilation, num_groups,
            unshared,
        )  # fmt: skip

    def _relative(self, which: int) -> Any:
        options = self.border_mode, self.subsample, self.filter_dilation, self.num_groups
        cls: Any = _CORRELATIONS[self.axes][which]
        return cls(*options, *([self.unshared] if self.axes == 2 else []))

    @property
    def pad(self) -> Any:
        """The zeros around an image where border_mode gives them, else none."""
        return self.border_mode if isinstance(self.border_mode, tuple) else (0,) * self.axes

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}{{{self.border_mode}, {self.subsample}, {self.filter_dilation}, "
            f"{self.num_groups} {self.unshared}}}"
        )

    def _lengths_of_result(self, shape: Any, first: Any, top: Any, by_weights: bool) -> Any:
        """Return the lengths of a gradient as a vector; without ``shape``, from those of operands.

        Raises ValueError if these do not determine them.
        """
        if shape is None:
            undetermined = ("half",) if by_weights else ()
            if self.subsample != (1,) * self.axes or self.border_mode in undetermined:
                raise ValueError(
                    "shape must be given: with subsample"
                    + " or border_mode 'half'" * by_weights
                    + " several lengths give the same result"
                )
            lengths = get_conv_gradweights_shape if by_weights else get_conv_gradinputs_shape
            operands = [as_tensor_variable(each) for each in (first, top)]
            shapes = [[v.shape[i] for i in range(v.type.ndim)] for v in operands]
            options = self.border_mode, self.subsample, self.filter_dilation
            shape = lengths(shapes[0], shapes[1], *options)[-self.axes :]
        return stack([cast(as_tensor_variable(shape[a]), "int64") for a in range(self.axes)])


class CorrMM(BaseCorrMM, ops.AbstractConv):
    """The correlation of images (batch, channels, rows, columns) with kernels.

    Arguments are those of ``AbstractConv2d``; kernels are not flipped.
    """


class CorrMM_gradWeights(BaseCorrMM, ops.AbstractConv_gradWeights):
    """The gradient of ``CorrMM`` by its kernels; inputs: images, gradient, their (rows, columns).

    The third may be left out where the shapes determine it.
    """

    def make_node(
        self, img: Any, topgrad: Any, shape: Any = None, add_assert_shape: bool = True
    ) -> Apply:
        shape = self._lengths_of_result(shape, img, topgrad, True)
        return super().make_node(img, topgrad, shape, add_assert_shape)


class CorrMM_gradInputs(BaseCorrMM, ops.AbstractConv_gradInputs):
    """The gradient of ``CorrMM`` by its images; inputs: kernels, gradient, the (rows, columns).

    The third may be left out where the shapes determine it.
    """

    def make_node(
        self, kern: Any, topgrad: Any, shape: Any = None, add_assert_shape: bool = True
    ) -> Apply:
        shape = self._lengths_of_result(shape, kern, topgrad, False)
        return super().make_node(kern, topgrad, shape, add_assert_shape)


class BaseCorr3dMM(BaseCorrMM):
    """What a correlation of volumes with kernels and its gradients share; nothing is flipped."""

    axes = 3

    def __init__(
        self,
        border_mode: Any = "valid",
        subsample: Sequence[int] | None = None,
        filter_dilation: Sequence[int] | None = None,
        num_groups: int = 1,
    ) -> None:
        super().__init__(border_mode, subsample, filter_dilation, num_groups)


class Corr3dMM(BaseCorr3dMM, CorrMM):
    """The correlation of volumes (batch, channels, depth, rows, columns) with kernels."""


class Corr3dMM_gradWeights(BaseCorr3dMM, CorrMM_gradWeights):
    """The gradient of ``Corr3dMM`` by its kernels, as ``CorrMM_gradWeights``."""


class Corr3dMM_gradInputs(BaseCorr3dMM, CorrMM_gradInputs):
    """The gradient of ``Corr3dMM`` by its volumes, as ``CorrMM_gradInputs``."""


#: by number of spatial axes: the correlation, its gradient by kernels, by images
_CORRELATIONS = {
    2: (CorrMM, CorrMM_gradWeights, CorrMM_gradInputs),
    3: (Corr3dMM, Corr3dMM_gradWeights, Corr3dMM_gradInputs),
}


# --- Theano's first convolution -------------------------------------------------------------------


class ConvOp(OlderOp):
    """The convolution of images (batch, channels, rows, columns) with flipped kernels.

    imshp: channels, rows and columns of images, or rows and columns of one channel. kshp: rows and
    columns of kernels. nkern: their number. bsize: the number of images. All are None where they
    are not known; other shapes are errors. dx, dy: steps along rows and columns. output_mode:
    'valid' or 'full'. imshp_logical, kshp_logical: lengths of images and kernels with zeros between
    their elements; kshp_logical_top_aligned: whether these come after the elements or before.

    Parameters that chose among implementations of Theano (unroll_batch, unroll_kern, unroll_patch,
    verbose, version, direction_hint, openmp) are kept and have no effect.
    """

    __props__ = (
        "imshp", "kshp", "nkern", "bsize", "dx", "dy", "out_mode", "unroll_batch", "unroll_kern",
        "unroll_patch", "imshp_logical", "kshp_logical", "kshp_logical_top_aligned",
    )  # fmt: skip

    def __init__(
        self,
        imshp: Sequence[int | None] | None = None,
        kshp: Sequence[int | None] | None = None,
        nkern: int | None = None,
        bsize: int | None = None,
        dx: int | None = 1,
        dy: int | None = 1,
        output_mode: str = "valid",
        unroll_batch: int | None = None,
        unroll_kern: int | None = None,
        unroll_patch: bool | None = None,
        imshp_logical: Sequence[int | None] | None = None,
        kshp_logical: Sequence[int | None] | None = None,
        kshp_logical_top_aligned: bool = True,
        verbose: int = 0,
        version: int | str = -1,
        direction_hint: str = "forward",
        openmp: bool | None = None,
    ) -> None:
        self.imshp: Any = (None,) * 3 if imshp is None else tuple(imshp)
        self.kshp: Any = (None,) * 2 if kshp is None else tuple(kshp)
        if len(self.imshp) == 2:
            self.imshp = (1, *self.imshp)
        self.imshp_logical = self.imshp if imshp_logical is None else tuple(imshp_logical)
        self.kshp_logical = self.kshp if kshp_logical is None else tuple(kshp_logical)
        for name, shape, n in (
            ("imshp", self.imshp, 3), ("kshp", self.kshp, 2),
            ("imshp_logical", self.imshp_logical, 3), ("kshp_logical", self.kshp_logical, 2),
        ):  # fmt: skip
            if len(shape) != n:
                raise ValueError(f"{name} must have {n} entries, not {len(shape)}: {shape}")
        self.nkern, self.bsize = nkern, bsize
        self.dx, self.dy = (_step(name, d) for name, d in (("dx", dx), ("dy", dy)))
        if output_mode not in ("valid", "full"):
            raise ValueError(
                f"output_mode must be 'valid' or 'full', not {output_mode!r}: use "
                "theano.tensor.nnet.conv2d for others"
            )
        if (unroll_batch or unroll_kern) and not self.has_all_shape(
            self.imshp, self.kshp, nkern, bsize
        ):
            raise ValueError("unroll_batch and unroll_kern need all of imshp, kshp, nkern, bsize")
        self.out_mode = output_mode
        self.unroll_batch, self.unroll_kern = unroll_batch, unroll_kern
        self.unroll_patch, self.openmp = unroll_patch, openmp
        self.verbose, self.version, self.direction_hint = verbose, version, direction_hint
        self.kshp_logical_top_aligned = kshp_logical_top_aligned
        numbers = self.imshp_logical[1:], self.kshp_logical
        self.outshp = self.getOutputShape(*numbers, (self.dx, self.dy), output_mode)
        self.fulloutshp = self.getOutputShape(*numbers, (1, 1), output_mode)
        if any(length is not None and length <= 0 for length in self.outshp):
            raise ValueError(
                f"images of {numbers[0]} and kernels of {numbers[1]} rows and columns give "
                f"{tuple(self.outshp)}: in mode 'valid' kernels must fit into images"
            )

    @staticmethod
    def has_all_shape(imshp: Any, kshp: Any, nkern: Any = 1, bsize: Any = 1) -> bool:
        """Return whether all of these lengths are known."""
        return None not in (*imshp, *kshp, nkern, bsize)

    @staticmethod
    def getOutputShape(
        inshp: Sequence[Any], kshp: Sequence[Any], stride: Sequence[int] = (1, 1),
        mode: str = "valid",
    ) -> tuple[Any, ...]:  # fmt: skip
        """Return the rows and columns of the result; None for what is unknown."""
        shapes = (None, None, *inshp), (None, None, *kshp)
        return get_conv_output_shape(*shapes, mode, tuple(stride))[2:]

    def __str__(self) -> str:
        pairs = ((name, getattr(self, name)) for name in self.__props__)
        return f"ConvOp{{{','.join(map(str, pairs))}}}"

    def build(self, inputs: TensorLike, kerns: TensorLike) -> Any:
        images, kernels = as_tensor_variable(inputs), as_tensor_variable(kerns)
        for name, var in (("images", images), ("kernels", kernels)):
            if var.type.ndim != 4:
                raise TypeError(f"ConvOp needs {name} of 4 dimensions, not {var.type.ndim}")
        if images.type.dtype != kernels.type.dtype:
            raise NotImplementedError(
                "ConvOp needs images and kernels of one dtype, not "
                f"{images.type.dtype} and {kernels.type.dtype}"
            )
        if self.imshp_logical != self.imshp:
            images = _apart(images, self.imshp[1:], self.imshp_logical[1:], True)
        if self.kshp_logical != self.kshp:
            kernels = _apart(kernels, self.kshp, self.kshp_logical, self.kshp_logical_top_aligned)
        result = ops.AbstractConv2d(
            (self.bsize, *self.imshp_logical), (self.nkern, self.imshp[0], *self.kshp_logical),
            self.out_mode, (self.dx, self.dy),
        )(images, kernels)  # fmt: skip
        ones = [length == 1 for length in self.outshp]
        return patternbroadcast(result, (*result.type.broadcastable[:2], *ones))


def _step(name: str, given: int | None) -> int:
    """Return a step, 1 for None. Raises TypeError for what is no integer."""
    if given is None:
        return 1
    if int(given) != given:
        raise TypeError(f"{name} must be an integer, not {given!r}")
    return int(given)


def _apart(images: Any, lengths: Any, logical: Any, top_aligned: bool) -> Any:
    """Return images with zeros between their rows and columns, of ``logical`` lengths in all."""
    if None in (*lengths, *logical):
        raise ValueError(f"zeros between elements need known lengths, not {lengths} and {logical}")
    steps = [-(-m // n) for n, m in zip(lengths, logical, strict=True)]
    begins = [
        0 if top_aligned else (m - n * s - 1 + s) % s
        for n, m, s in zip(lengths, logical, steps, strict=True)
    ]
    spaced = zeros((images.shape[0], images.shape[1], *logical), images.type.dtype)
    rows, columns = (slice(b, None, s) for b, s in zip(begins, steps, strict=True))
    return set_subtensor(spaced[:, :, rows, columns], images)


# --- volumes whose channels are the last axis -----------------------------------------------------

_TO_CHANNELS_FIRST, _TO_CHANNELS_LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def _steps3(d: TensorLike) -> tuple[int, ...]:
    """Return three steps. Raises ValueError unless they are constants."""
    steps = as_tensor_variable(d)
    try:
        return tuple(int(get_scalar_constant_value(steps[i])) for i in range(3))
    except NotScalarConstantError:
        raise ValueError(
            f"the steps of a convolution of volumes must be constants, not {d}"
        ) from None


class Conv3D(OlderOp):
    """The correlation of volumes V with kernels W, and a bias b for each kernel.

    V: (batch, rows, columns, time, channels). W: (kernels, rows, columns, time, channels). d: three
    steps, which are constants. The result is (batch, rows, columns, time, kernels).
    """

    __props__ = ()

    def build(self, V: Any, W: Any, b: Any, d: Any) -> Any:
        V, W, b = map(as_tensor_variable, (V, W, b))
        op = ops.AbstractConv3d(subsample=_steps3(d), filter_flip=False)
        result = op(dimshuffle(V, _TO_CHANNELS_FIRST), dimshuffle(W, _TO_CHANNELS_FIRST))
        return dimshuffle(result, _TO_CHANNELS_LAST) + dimshuffle(b, ("x", "x", "x", "x", 0))


class ConvTransp3D(OlderOp):
    """The gradient of ``Conv3D`` by volumes, and a bias b for each channel of these.

    H: the gradient by the result. RShape: rows, columns and time of the volumes (default: the
    fewest that give H).
    """

    __props__ = ()

    def build(self, W: Any, b: Any, d: Any, H: Any, RShape: Any = None) -> Any:
        W, b, H = map(as_tensor_variable, (W, b, H))
        steps = _steps3(d)
        if RShape is None or getattr(RShape, "data", 0) is None:
            RShape = [(H.shape[i + 1] - 1) * steps[i] + W.shape[i + 1] for i in range(3)]
        lengths = stack([cast(as_tensor_variable(RShape[i]), "int64") for i in range(3)])
        op = ops.AbstractConv3d_gradInputs(subsample=steps, filter_flip=False)
        kernels, top = (dimshuffle(each, _TO_CHANNELS_FIRST) for each in (W, H))
        volumes = dimshuffle(op(kernels, top, lengths), _TO_CHANNELS_LAST)
        return volumes + dimshuffle(b, ("x", "x", "x", "x", 0))


class ConvGrad3D(OlderOp):
    """The gradient of ``Conv3D`` by kernels.

    WShape: their shape. dCdH: the gradient by the result.
    """

    __props__ = ()

    def build(self, V: Any, d: Any, WShape: Any, dCdH: Any) -> Any:
        V, dCdH = map(as_tensor_variable, (V, dCdH))
        lengths = stack([cast(as_tensor_variable(WShape[i]), "int64") for i in (1, 2, 3)])
        op = ops.AbstractConv3d_gradWeights(subsample=_steps3(d), filter_flip=False)
        images, top = (dimshuffle(each, _TO_CHANNELS_FIRST) for each in (V, dCdH))
        return dimshuffle(op(images, top, lengths), _TO_CHANNELS_LAST)


conv3D, convTransp3D, convGrad3D = Conv3D(), ConvTransp3D(), ConvGrad3D()
