"""Convolutions of images with kernels, and their gradients: three Ops that are each other's."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from opwise.errors import NotScalarConstantError
from opwise.graph import costs
from opwise.graph.apply import Apply
from opwise.graph.costs import ArrayShapes
from opwise.graph.null import disconnected_type
from opwise.graph.op import Lengths
from opwise.graph.opmethods import connects
from opwise.graph.variable import Var, Variable
from opwise.scalar import dtypes
from opwise.tensor.conv.geometry import Geometry, as_flag, checked_border_mode, n_met
from opwise.tensor.conv.shapes import assert_shape
from opwise.tensor.elemwise import cast
from opwise.tensor.knownvalues import (
    get_scalar_constant_value,
    known_length,
)
from opwise.tensor.shape import patternbroadcast
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable

__all__ = [
    "AbstractConv",
    "AbstractConv2d",
    "AbstractConv2d_gradInputs",
    "AbstractConv2d_gradWeights",
    "AbstractConv3d",
    "AbstractConv3d_gradInputs",
    "AbstractConv3d_gradWeights",
    "AbstractConv_gradInputs",
    "AbstractConv_gradWeights",
    "BaseAbstractConv",
]


class BaseAbstractConv(TensorOp):
    """What a convolution and its two gradients have in common.

    convdim: the number of spatial axes, 2 or 3. Shapes: images (batch, channels, *lengths); kernels
    (outputs, channels of a group, *lengths), or for unshared ones, which have weights of their own
    for each place, (outputs, *lengths of the result, channels of a group, *lengths); results
    (batch, outputs, *lengths).

    imshp, kshp: the shapes that images and kernels usually have, with None for what is not known.
    No result depends on them; under the flag ``conv.assert_shape`` others are errors. border_mode:
    'valid', 'full', 'half', a number of zeros around the image, one for each axis, or pairs of
    them, before and behind. subsample: steps of the kernel. filter_flip: whether the kernel is
    flipped, as in a convolution, or not, as in a correlation. filter_dilation: distances between
    elements of the image that neighbouring elements of the kernel meet. num_groups: how many groups
    of channels and of outputs belong together.
    """

    check_broadcast = False
    profile_kind = "product"
    __props__ = (
        "convdim", "border_mode", "subsample", "filter_flip", "imshp", "kshp", "filter_dilation",
        "num_groups", "unshared",
    )  # fmt: skip

    def __init__(
        self,
        convdim: int,
        imshp: Sequence[Any] | None = None,
        kshp: Sequence[Any] | None = None,
        border_mode: Any = "valid",
        subsample: Sequence[int] | None = None,
        filter_flip: bool = True,
        filter_dilation: Sequence[int] | None = None,
        num_groups: int = 1,
        unshared: bool = False,
    ) -> None:
        if convdim not in (2, 3):
            raise ValueError(f"convolutions have 2 or 3 spatial axes, not {convdim}")
        if unshared and convdim != 2:
            raise NotImplementedError(
                f"Unshared convolution is only for 2 spatial axes, not {convdim}"
            )
        if not _is_count(num_groups):
            raise ValueError(f"num_groups must be an integer, 1 or more, not {num_groups!r}")
        self.convdim = convdim
        self.border_mode = checked_border_mode(border_mode, convdim)
        self.subsample = _steps("subsample", subsample, convdim)
        self.filter_dilation = _steps("filter_dilation", filter_dilation, convdim)
        self.filter_flip = as_flag("filter_flip", filter_flip)
        self.num_groups = int(num_groups)
        self.unshared = as_flag("unshared", unshared)
        self.imshp = _known("imshp", imshp, 2 + convdim)
        self.kshp = _known("kshp", kshp, 2 + convdim * (2 if unshared else 1))

    @property
    def geometry(self) -> Geometry:
        return Geometry(self.border_mode, self.subsample, self.filter_dilation)

    def _operands(self, **given: Any) -> list[Tensor]:
        """Return the operands in one dtype. Raises TypeError for wrong numbers of dimensions."""
        found = [as_tensor_variable(value) for value in given.values()]
        for name, var in zip(given, found, strict=True):
            unshared = self.unshared and name == "kern"
            ndim = 2 + self.convdim * (2 if unshared else 1)
            if var.type.ndim != ndim:
                lengths = ", ".join(("depth", "rows", "columns")[-self.convdim :])
                places = "output " + lengths.replace(", ", ", output ") + ", "
                first = {"img": "batch, channels", "topgrad": "batch, outputs"}.get(
                    name, f"outputs, {places * unshared}channels of a group"
                )
                raise TypeError(
                    f"{name} must be {ndim}D tensor{' for unshared convolution' * unshared}, not "
                    f"{var.type.ndim}D: its dimensions are ({first}, {lengths})"
                )
        dtype = dtypes.upcast(*(var.type.dtype for var in found))
        return [cast(var, dtype) for var in found]

    def with_changes(self, which: int | None = None, **changes: Any) -> Any:
        """Return an Op of the family with some parameters changed.

        which: 0 for the convolution, 1 for its gradient by kernels, 2 by images (default: as this).
        """
        if which is None:
            bases = (AbstractConv, AbstractConv_gradWeights, AbstractConv_gradInputs)
            which = next(i for i, base in enumerate(bases) if isinstance(self, base))
        given = {name: getattr(self, name) for name in self.__props__ if name != "convdim"}
        cls: Any = FAMILIES[self.convdim][which]
        return cls(**{**given, **changes})

    def _lengths(self, sizes: TensorLike) -> Tensor:
        """Return the spatial lengths of the result as a variable."""
        lengths = as_tensor_variable(sizes)
        if lengths.type.ndim != 1 or lengths.type.dtype not in dtypes.DISCRETE:
            raise TypeError(
                f"shape must be a vector of {self.convdim} integers, not {lengths.type}"
            )
        return cast(lengths, "int64")

    def flops(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> int:
        """Return the number of operations: a multiplication and an addition for each element of the
        kernel at each place."""
        kernel, result = self._shapes(inputs, outputs)
        found: int = (
            2
            * result[0]
            * prod(result[-self.convdim :])
            * kernel[0]
            * prod(kernel[-self.convdim - 1 :])
        )
        return found

    def _shapes(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the shapes of the kernel and the result among those of an Apply."""
        raise NotImplementedError

    def traffic(
        self, node: Apply, inputs: costs.ArrayLayouts, outputs: costs.ArrayLayouts
    ) -> costs.Traffic:
        """Return the bytes of all operands, but for elements of images that no kernel meets."""
        counts = costs.each_once(self, node, inputs, outputs)
        if counts is None or isinstance(self, AbstractConv_gradInputs):
            return counts
        image: Any = inputs[0]
        kernel, result = self._shapes([a and a.shape for a in inputs],
                                      [a and a.shape for a in outputs])  # fmt: skip
        n = self.convdim
        met = [
            n_met(length, k, out, pad, stride, dilation)
            for length, k, out, (pad, _), stride, dilation in zip(
                image.shape[-n:], kernel[-n:], result[-n:], self.geometry.pads(kernel[-n:]),
                self.subsample, self.filter_dilation, strict=True,
            )
        ]  # fmt: skip
        read, written = counts
        elements = prod(image.shape)
        read[0] = read[0] // elements * prod(image.shape[:2]) * prod(met) if elements else 0
        return read, written

    # --- numbers ----------------------------------------------------------------------------------

    def _checked(self, image: Sequence[int], kernel: Sequence[int]) -> list[int]:
        """Return the spatial lengths of the result.

        Raises ValueError if shapes of images and kernels do not belong together.
        """
        n, groups = self.convdim, self.num_groups
        if image[1] % groups or kernel[0] % groups:
            raise ValueError(
                f"{image[1]} channels and {kernel[0]} filters cannot be divided into {groups} "
                "groups"
            )
        if kernel[-n - 1] * groups != image[1]:
            in_groups = f" in {groups} groups" if groups > 1 else ""
            raise ValueError(
                f"the image has {image[1]} channels{in_groups}, so filters need "
                f"{image[1] // groups} channels, but have {kernel[-n - 1]}: the shape of the image "
                f"is {tuple(image)}, that of the filters {tuple(kernel)}"
            )
        output = self.geometry.output(image[2:], kernel[-n:])
        if min(output) <= 0 or min(kernel[-n:]) <= 0:
            raise ValueError(
                f"impossible output shape {(image[0], kernel[0], *output)}: the image has shape "
                f"{tuple(image)}, the filters {tuple(kernel)}; each length is (image + pads - "
                "((filter - 1) * dilation + 1)) // subsample + 1, here with border_mode "
                f"{self.border_mode!r}, subsample {self.subsample} and dilation "
                f"{self.filter_dilation}"
            )
        if self.unshared and tuple(kernel[1 : 1 + n]) != tuple(output):
            raise ValueError(
                f"unshared filters have weights for {tuple(kernel[1 : 1 + n])} places, but the "
                f"result has {tuple(output)}"
            )
        return output

    def _given_lengths(self, shape: Any) -> tuple[int, ...]:
        """Return the spatial lengths that a gradient is given. Raises ValueError unless
        there is one for each axis."""
        if len(shape) != self.convdim:
            raise ValueError(f"shape has {len(shape)} entries, not {self.convdim}")
        return tuple(map(int, shape))

    def _check_result(self, image: Any, kernel: Any, result: Any) -> None:
        """Raise ValueError unless a gradient by the result has its shape."""
        expected = (image[0], kernel[0], *self._checked(image, kernel))
        if tuple(result) != expected:
            raise ValueError(
                f"the gradient by the result has shape {tuple(result)}, but an image of shape "
                f"{tuple(image)} and filters of shape {tuple(kernel)} give {expected}"
            )

    def _padded(self, image: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
        """Return the image by (batch, group, channel, *lengths) with zeros around it."""
        channels = image.shape[1] // self.num_groups
        by_group = image.reshape(image.shape[0], self.num_groups, channels, *image.shape[2:])
        border = [(0, 0)] * 3 + self.geometry.pads(kernel[-self.convdim :])
        return np.pad(by_group, border)

    def _inside(self, padded: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
        """Return a padded image without the zeros around it."""
        inside: Any = [
            slice(before, n - behind)
            for n, (before, behind) in zip(
                padded.shape[3:], self.geometry.pads(kernel[-self.convdim :]), strict=True
            )
        ]
        whole = padded[(..., *inside)]
        return whole.reshape(whole.shape[0], whole.shape[1] * whole.shape[2], *whole.shape[3:])

    def _by_group(self, kernel: np.ndarray, places: int) -> np.ndarray:
        """Return kernels by (group, output[, place], channel, *lengths)."""
        between = (places,) if self.unshared else ()
        lengths = kernel.shape[-self.convdim - 1 :]
        return kernel.reshape(self.num_groups, kernel.shape[0] // self.num_groups, *between,
                              *lengths)  # fmt: skip


class AbstractConv(BaseAbstractConv):
    """The convolution of images with kernels."""

    def make_node(self, img: Any, kern: Any) -> Apply:
        img, kern = self._operands(img=img, kern=kern)
        img = assert_shape(img, self.imshp, "The image's shape is not the given imshp.")
        kern = assert_shape(kern, self.kshp, "The kernels' shape is not the given kshp.")
        one = (img.type.broadcastable[0], kern.type.broadcastable[0])
        type_ = tensor_type(img.type.dtype, (*one, *[False] * self.convdim))
        return Apply(self, [img, kern], [type_.make_variable()])

    def result_shape(self, image: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the result. Raises ValueError if shapes do not belong together."""
        return (image[0], kernel[0], *self._checked(image, kernel))

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        img, kern = inputs
        output = self.result_shape(img.shape, kern.shape)[2:]
        padded, kernels = self._padded(img, kern.shape), self._by_group(kern, prod(output))
        batch, groups, channels = padded.shape[:3]
        out = np.zeros((batch, groups, kernels.shape[1], prod(output)), img.dtype)
        lengths = kern.shape[-self.convdim :]
        for index, part in self.geometry.places(lengths, output, self.filter_flip):
            seen = padded[part].reshape(batch, groups, channels, prod(output))
            weights = kernels[index]
            if self.unshared:
                out += np.einsum("bgcn,gknc->bgkn", seen, weights)
            else:
                out += weights @ seen
        output_storage[0][0] = out.reshape(batch, kern.shape[0], *output)

    def _shapes(self, inputs: ArrayShapes, outputs: ArrayShapes) -> tuple[Any, Any]:
        return inputs[1], outputs[0]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        image, kernel = shapes
        n = self.convdim
        return [(image[0], kernel[0], *self.geometry.output(image[2:], kernel[-n:]))]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (img, kern), (g,) = inputs, output_gradients
        n = self.convdim
        return [
            _like(img, self.with_changes(2)(kern, g, img.shape[-n:])),
            _like(kern, self.with_changes(1)(img, g, kern.shape[-n:])),
        ]

    def R_op(self, inputs: Sequence[Tensor], eval_points: Sequence[Var]) -> Sequence[Var]:
        (img, kern), (moved_img, moved_kern) = inputs, eval_points
        terms = []
        if moved_img is not None:
            terms.append(self(moved_img, kern))
        if moved_kern is not None:
            terms.append(self(img, moved_kern))
        return [sum(terms[1:], terms[0]) if terms else None]


class AbstractConv_gradWeights(BaseAbstractConv):
    """The gradient of a convolution by its kernels, whose lengths are the third input."""

    def make_node(self, img: Any, topgrad: Any, shape: Any, add_assert_shape: bool = True) -> Apply:
        img, topgrad = self._operands(img=img, topgrad=topgrad)
        if add_assert_shape:
            img = assert_shape(img, self.imshp, "The image's shape is not the given imshp.")
        n = self.convdim
        places = [False] * n if self.unshared else []
        channels = img.type.broadcastable[1] and self.num_groups == 1
        pattern = (topgrad.type.broadcastable[1], *places, channels, *[False] * n)
        type_ = tensor_type(img.type.dtype, pattern)
        return Apply(self, [img, topgrad, self._lengths(shape)], [type_.make_variable()])

    def result_shape(
        self, image: Sequence[int], top: Sequence[int], lengths: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the shape of the kernels. Raises ValueError if shapes do not belong together."""
        places = top[2:] if self.unshared else ()
        kernel = (top[1], *places, image[1] // self.num_groups, *map(int, lengths))
        self._check_result(image, kernel, top)
        return kernel

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        img, topgrad, shape = inputs
        lengths, output = self._given_lengths(shape), topgrad.shape[2:]
        kshp = self.result_shape(img.shape, topgrad.shape, lengths)
        padded = self._padded(img, kshp)
        batch, groups, channels = padded.shape[:3]
        top = topgrad.reshape(batch, groups, topgrad.shape[1] // groups, prod(output))
        kern = np.zeros(kshp, img.dtype)
        kernels = self._by_group(kern, prod(output))
        for index, part in self.geometry.places(lengths, output, self.filter_flip):
            seen = padded[part].reshape(batch, groups, channels, prod(output))
            if self.unshared:
                kernels[index] = np.einsum("bgkn,bgcn->gknc", top, seen)
            else:
                kernels[index] = (top @ seen.swapaxes(-1, -2)).sum(0)
        output_storage[0][0] = kern

    def _shapes(self, inputs: ArrayShapes, outputs: ArrayShapes) -> tuple[Any, Any]:
        return outputs[0], inputs[1]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        image, top, _ = shapes
        channels = image[1] if self.num_groups == 1 else image[1] // self.num_groups
        places = top[2:] if self.unshared else ()
        wanted: Var = node.inputs[2]
        lengths = [wanted[a] for a in range(self.convdim)]
        return [(top[1], *places, channels, *lengths)]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (img, top, _), (g,) = inputs, output_gradients
        n = self.convdim
        return [
            _like(img, self.with_changes(2)(g, top, img.shape[-n:])),
            _like(top, self.with_changes(0)(img, g)),
            disconnected_type.make_variable(),
        ]

    connection_pattern = connects(0, 1)


class AbstractConv_gradInputs(BaseAbstractConv):
    """The gradient of a convolution by its images, whose lengths are the third input."""

    def make_node(
        self, kern: Any, topgrad: Any, shape: Any, add_assert_shape: bool = True
    ) -> Apply:
        kern, topgrad = self._operands(kern=kern, topgrad=topgrad)
        if add_assert_shape:
            kern = assert_shape(kern, self.kshp, "The kernels' shape is not the given kshp.")
        n = self.convdim
        channels = kern.type.broadcastable[-n - 1] and self.num_groups == 1
        pattern = (topgrad.type.broadcastable[0], channels, *[False] * n)
        type_ = tensor_type(kern.type.dtype, pattern)
        return Apply(self, [kern, topgrad, self._lengths(shape)], [type_.make_variable()])

    def result_shape(
        self, kernel: Sequence[int], top: Sequence[int], lengths: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the shape of the images. Raises ValueError if shapes do not belong together."""
        channels = kernel[-self.convdim - 1] * self.num_groups
        image = (top[0], channels, *map(int, lengths))
        self._check_result(image, kernel, top)
        return image

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        kern, topgrad, shape = inputs
        lengths, output, n = self._given_lengths(shape), topgrad.shape[2:], self.convdim
        imshp = self.result_shape(kern.shape, topgrad.shape, lengths)
        padded = self._padded(np.zeros(imshp, kern.dtype), kern.shape)
        batch, groups = padded.shape[:2]
        top = topgrad.reshape(batch, groups, topgrad.shape[1] // groups, prod(output))
        kernels = self._by_group(kern, prod(output))
        for index, part in self.geometry.places(kern.shape[-n:], output, self.filter_flip):
            weights, seen = kernels[index], padded[part]
            if self.unshared:
                moved = np.einsum("bgkn,gknc->bgcn", top, weights)
            else:
                moved = weights.swapaxes(-1, -2) @ top
            seen += moved.reshape(seen.shape)
        output_storage[0][0] = self._inside(padded, kern.shape)

    def _shapes(self, inputs: ArrayShapes, outputs: ArrayShapes) -> tuple[Any, Any]:
        return inputs[0], inputs[1]

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        kernel, top, _ = shapes
        channels = kernel[-self.convdim - 1]
        if self.num_groups > 1:
            channels = channels * self.num_groups
        wanted: Var = node.inputs[2]
        lengths = [wanted[a] for a in range(self.convdim)]
        return [(top[0], channels, *lengths)]

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Sequence[Var]:
        (kern, top, _), (g,) = inputs, output_gradients
        n = self.convdim
        return [
            _like(kern, self.with_changes(1)(g, top, kern.shape[-n:])),
            _like(top, self.with_changes(0)(g, kern)),
            disconnected_type.make_variable(),
        ]

    connection_pattern = connects(0, 1)


def _steps(name: str, given: Sequence[int] | None, n: int) -> tuple[int, ...]:
    steps = (1,) * n if given is None else given
    if isinstance(steps, np.ndarray):
        steps = steps.tolist()
    if (
        not isinstance(steps, tuple | list)
        or len(steps) != n
        or not all(_is_count(s) for s in steps)
    ):
        raise ValueError(f"{name} must be {n} integers, 1 or more, not {given!r}")
    return tuple(map(int, steps))


def _is_count(value: Any) -> bool:
    """Return whether a value is a whole number, 1 or more."""
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and value == value // 1 and value >= 1


def _known(name: str, given: Any, n: int) -> tuple[int | None, ...]:
    """Return the known lengths of a shape. Raises ValueError for those that are not constants."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    elif isinstance(given, Variable):
        vector = as_tensor_variable(given)
        given = tuple(vector) if vector.type.ndim == 1 and known_length(vector) else given
    if given is not None and not isinstance(given, tuple | list):
        raise ValueError(f"{name} must be None or {n} lengths, not {given!r}")
    entries = tuple(given) if given else (None,) * n
    if len(entries) != n:
        raise ValueError(f"{name} must have {n} entries, not {len(entries)}: {given!r}")
    try:
        found = [None if entry is None else get_scalar_constant_value(entry) for entry in entries]
    except NotScalarConstantError:
        found = ["variable"]
    if not all(entry is None or _is_length(entry) for entry in found):
        raise ValueError(
            f"{name} must be None or have constant integers, 0 or more, and None for what is "
            f"unknown, not {given!r}"
        )
    return tuple(None if entry is None else int(entry) for entry in found)


def _is_length(value: Any) -> bool:
    return np.ndim(value) == 0 and (_is_count(np.asarray(value).item()) or bool(value == 0))


def _like(var: Any, gradient: Any) -> Any:
    """Return a gradient with the pattern and type of what it is by."""
    return var.type.filter_variable(
        patternbroadcast(cast(gradient, var.type.dtype), var.type.broadcastable)
    )


class AbstractConv2d(AbstractConv):
    """The convolution of images with kernels, with 2 spatial axes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(2, *args, **kwargs)


class AbstractConv2d_gradWeights(AbstractConv_gradWeights):
    """The gradient of a convolution by its kernels, with 2 spatial axes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(2, *args, **kwargs)


class AbstractConv2d_gradInputs(AbstractConv_gradInputs):
    """The gradient of a convolution by its images, with 2 spatial axes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(2, *args, **kwargs)


class AbstractConv3d(AbstractConv):
    """The convolution of images with kernels, with 3 spatial axes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(3, *args, **kwargs)


class AbstractConv3d_gradWeights(AbstractConv_gradWeights):
    """The gradient of a convolution by its kernels, with 3 spatial axes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(3, *args, **kwargs)


class AbstractConv3d_gradInputs(AbstractConv_gradInputs):
    """The gradient of a convolution by its images, with 3 spatial axes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(3, *args, **kwargs)


#: by number of spatial axes: the convolution, its gradient by kernels, by images
FAMILIES = {
    2: (AbstractConv2d, AbstractConv2d_gradWeights, AbstractConv2d_gradInputs),
    3: (AbstractConv3d, AbstractConv3d_gradWeights, AbstractConv3d_gradInputs),
}
