"""Layouts of parts of arrays, made as numpy makes views: without any elements."""

from __future__ import annotations

import numpy as np

from opwise.tensor.subtensor import get_idx_list


def view_of(layout, idx_list, indices):
    """Return (layout, bytes to its start) of what an index picks from an array; numpy's errors.

    idx_list: that of Subtensor; indices: the integers for its types, None for zeros and whole
    slices.
    """
    if indices is None:
        index = tuple(slice(None) if isinstance(e, slice) else 0 for e in idx_list)
    else:
        index = get_idx_list([None, *map(int, indices)], idx_list)
    return viewed(layout, lambda whole: whole[(*index, ...)])


def viewed(layout, view):
    """Return (layout, bytes to its start) of what ``view``, a function of numpy's, makes of an
    array of a layout."""
    # an array that lies nowhere: views are made without touching memory
    whole = np.lib.stride_tricks.as_strided(
        np.empty(1, f"V{layout.itemsize}"), layout.shape, layout.strides
    )
    part = view(whole)
    start, first = (a.__array_interface__["data"][0] for a in (part, whole))
    offset = start - first if part.size else 0
    return layout._replace(
        shape=part.shape, strides=part.strides, alignment=alignment_at(layout, offset)
    ), offset


def check_broadcast(shape, to):
    """Raise ValueError unless an array of this shape can be repeated to fill another."""
    missing = len(to) - len(shape)
    if missing < 0 or any(n not in (1, m) for n, m in zip(shape, to[missing:], strict=True)):
        raise ValueError(f"array is not broadcastable to correct shape: {shape} to {to}")


def told_shape(shape):
    """Return a shape as numpy's errors tell of it."""
    return str(tuple(shape)).replace(", ", ",")


def told_shapes(shapes):
    """Return several likewise: a blank follows each."""
    return "".join(f"{told_shape(shape)} " for shape in shapes)


def padded(layout, ndim):
    """Return the layout with dimensions of length 1 added in front."""
    missing = ndim - len(layout.shape)
    return layout._replace(
        shape=(1,) * missing + layout.shape, strides=(0,) * missing + layout.strides
    )


def part(whole, axis, offset, like):
    """Return (the layout of a part of an array, of the shape of ``like``, bytes to its start)."""
    skipped = offset * whole.strides[axis]
    return whole._replace(shape=like.shape, alignment=alignment_at(whole, skipped)), skipped


def alignment_at(layout, offset):
    """Return what is known of the address so many bytes behind the start of an array."""
    return min(layout.alignment, offset & -offset) if offset else layout.alignment
