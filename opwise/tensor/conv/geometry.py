"""How a kernel moves over an image: pads, strides, dilation, and the lengths that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

#: zeros around an image along one axis: the same number on both sides, or two numbers
Border: TypeAlias = int | tuple[int, int]
#: 'valid', 'full', 'half', or the zeros along each axis
BorderMode: TypeAlias = str | tuple[Border, ...]
Lengths: TypeAlias = Sequence[int]


def checked_border_mode(mode: Any, ndim: int) -> BorderMode:
    """Return a border mode in its shortest form; one number stands for all axes.

    Raises ValueError for anything that is none.
    """
    if isinstance(mode, np.ndarray):
        mode = mode.tolist()
    if isinstance(mode, str) and mode in ("valid", "full", "half"):
        return mode
    given = (mode,) * ndim if _is_length(mode) else mode
    if not isinstance(given, tuple | list) or len(given) != ndim:
        raise ValueError(
            f"invalid border_mode {mode!r}: it must be 'valid', 'full', 'half', a number of zeros, "
            f"or a tuple of {ndim} of them"
        )
    borders: list[Border] = []
    for border in given:
        if _is_length(border):
            borders.append(int(border))
        elif isinstance(border, tuple | list) and len(border) == 2 and all(map(_is_length, border)):
            before, behind = map(int, border)
            borders.append(before if before == behind else (before, behind))
        else:
            raise ValueError(
                f"invalid border_mode {mode!r}: {border!r} must be a number of zeros, 0 or more, "
                "or a pair of them"
            )
    return tuple(borders) if any(borders) else "valid"


def as_flag(name: str, value: Any) -> bool:
    """Return an option that is True or False, which may be a number. Raises TypeError for others.

    A variable is no option: its value is known only when a function runs.
    """
    if value is None or isinstance(value, bool | int | np.bool_ | np.integer):
        return bool(value)
    raise TypeError(f"{name} must be True or False, not {value!r}")


def _is_length(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= 0


@dataclass(frozen=True)
class Geometry:
    """How a kernel moves over an image along each spatial axis."""

    border_mode: BorderMode
    subsample: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def axes(self) -> range:
        return range(len(self.subsample))

    def pads(self, kernel: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return the zeros before and behind the image along each axis.

        kernel: its lengths; numbers or variables.
        """
        return [pads(border_along(self.border_mode, a), self.reach(kernel, a)) for a in self.axes]

    def reach(self, kernel: Sequence[Any], axis: int) -> Any:
        """Return how many elements of the image a kernel spans along an axis."""
        return (kernel[axis] - 1) * self.dilation[axis] + 1

    def output(self, image: Sequence[Any], kernel: Sequence[Any]) -> list[Any]:
        """Return the lengths of what a convolution computes.

        image, kernel: their lengths; numbers, variables or None for what is unknown.
        """
        return [
            output_length(image[a], kernel[a], border_along(self.border_mode, a),
                          self.subsample[a], self.dilation[a])
            for a in self.axes
        ]  # fmt: skip

    def places(
        self, kernel: Lengths, output: Lengths, flip: bool
    ) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Yield for each element of the kernel (its index, the part of a padded image it meets)."""
        for place in np.ndindex(*kernel):
            starts = [p * d for p, d in zip(place, self.dilation, strict=True)]
            ends = [
                start + (n - 1) * s + 1 if n else start
                for start, n, s in zip(starts, output, self.subsample, strict=True)
            ]
            index = tuple(n - 1 - p for n, p in zip(kernel, place, strict=True)) if flip else place
            yield (..., *index), (..., *map(slice, starts, ends, self.subsample))


def border_along(mode: BorderMode, axis: int) -> str | Border:
    """Return the border of one axis."""
    return mode if isinstance(mode, str) else mode[axis]


def pads(border: str | Border, reach: Any) -> tuple[Any, Any]:
    """Return the zeros before and behind an image along an axis; reach: of the kernel."""
    if border == "valid":
        return 0, 0
    if border == "full":
        return reach - 1, reach - 1
    if border == "half":
        return reach // 2, reach // 2
    if isinstance(border, tuple):
        return border
    return border, border


def output_length(image: Any, kernel: Any, border: Any, stride: Any, dilation: Any = 1) -> Any:
    """Return the length of what a convolution computes along an axis: with pads before and behind,
    (image + pads - ((kernel - 1) * dilation + 1)) // stride + 1.

    Numbers or variables; None where one of them is None.
    """
    if any(v is None for v in (image, kernel, border, stride, dilation)):
        return None
    reach = (kernel - 1) * dilation + 1
    before, behind = pads(border, reach)
    length = image - reach
    for pad in (before, behind):
        if not (isinstance(pad, int | np.integer) and pad == 0):
            length = length + pad
    if not (isinstance(stride, int | np.integer) and stride == 1):
        length = length // stride
    return length + 1


def n_met(length: int, kernel: int, output: int, pad: int, stride: int, dilation: int = 1) -> int:
    """Return how many elements of an image along an axis a kernel meets at any place.

    pad: zeros before the image.
    """
    first = np.arange(output)[:, None] * stride + np.arange(kernel) * dilation - pad
    met = np.unique(first)
    return int(np.count_nonzero((met >= 0) & (met < length)))
