"""Layouts of parts of arrays: numpy makes the views, of arrays without elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from opwise.gpu.kernels.kernel import Layout
from opwise.tensor.subtensor import get_idx_list


def view_of(layout: Layout, idx_list: Sequence, indices: Sequence | None) -> tuple[Layout, int]:
    """Return (layout, offset in bytes) of what an index picks from an array; raise numpy's errors.

    idx_list: that of Subtensor. indices: the integers for its types; None for zeros and whole
    slices.
    """
    if indices is None:
        index = tuple(slice(None) if isinstance(e, slice) else 0 for e in idx_list)
    else:
        index = get_idx_list([None, *map(int, indices)], idx_list)
    return viewed(layout, lambda whole: whole[(*index, ...)])


def viewed(layout: Layout, view: Callable[[np.ndarray], np.ndarray]) -> tuple[Layout, int]:
    """Return (layout, offset in bytes) of the view that a function of numpy arrays makes."""
    # an array without memory of its own: views never touch the elements
    whole = np.lib.stride_tricks.as_strided(
        np.empty(1, f"V{layout.itemsize}"), layout.shape, layout.strides
    )
    part = view(whole)
    start, first = (a.__array_interface__["data"][0] for a in (part, whole))
    offset = start - first if part.size else 0
    return layout._replace(
        shape=part.shape, strides=part.strides, alignment=alignment_at(layout, offset)
    ), offset


def padded(layout: Layout, ndim: int) -> Layout:
    """Return the layout with dimensions of length 1 added in front."""
    missing = ndim - len(layout.shape)
    return layout._replace(
        shape=(1,) * missing + layout.shape, strides=(0,) * missing + layout.strides
    )


def part(whole: Layout, axis: int, offset: int, like: Layout) -> tuple[Layout, int]:
    """Return (layout, offset in bytes) of a part of an array, of the shape of ``like``.

    offset: where the part begins along the axis, in elements.
    """
    skipped = offset * whole.strides[axis]
    return whole._replace(shape=like.shape, alignment=alignment_at(whole, skipped)), skipped


def alignment_at(layout: Layout, offset: int) -> int:
    """Return the alignment that is known of an address ``offset`` bytes behind an array's start."""
    return min(layout.alignment, offset & -offset) if offset else layout.alignment
