"""Memory of every layout that an Op may find in its output storage, filled with a wrong value."""

from __future__ import annotations

import itertools

import numpy as np

from opwise.graph import aliasing
from opwise.tensor.type import TensorType

#: what the memory holds: no result by chance
FILL = 666

KINDS = ("initial", "previous", "c_contiguous", "f_contiguous", "strided", "wrong_size")


def kinds_of(setting):
    """Return a setting, a text with colons or a list, as a list; ValueError for unknown kinds."""
    kinds = setting.split(":") if isinstance(setting, str) else list(setting)
    unknown = [kind for kind in kinds if kind not in (*KINDS, "ALL", "")]
    if unknown:
        raise ValueError(
            f"check_preallocated_output: {unknown[0]!r} is not one of {', '.join(KINDS)}, ALL"
        )
    return kinds


def is_wanted(kinds):
    """Return whether a setting asks for any kind."""
    return any(kinds)


def layouts(node, values, initial, kinds, ndim):
    """Yield (name, {output index: array}) for each way to fill the output storage of an Apply.

    values: the right results; they are left alone. initial: what the storage held when the call
    began, by output. ndim: for how many of the last dimensions all combinations are made. Outputs
    in memory of inputs are left out, and those that are no arrays.
    """
    given = {
        k: value
        for k, (var, value) in enumerate(zip(node.outputs, values, strict=True))
        if isinstance(var.type, TensorType) and not aliasing.viewed_inputs(node, k)
    }
    if not given:
        return
    for kind in KINDS:
        if kind not in kinds and "ALL" not in kinds:
            continue
        if kind == "initial":
            kept = {k: initial[k] for k in given if isinstance(initial.get(k), np.ndarray)}
            if kept:
                yield "initial", kept
        elif kind == "strided":
            yield from _strided(node, given, ndim)
        elif kind == "wrong_size":
            yield from _wrong_sizes(node, given, ndim)
        else:
            order = {"previous": "K", "c_contiguous": "C", "f_contiguous": "F"}[kind]
            yield kind, {k: filled(np.empty_like(v, order=order)) for k, v in given.items()}


def filled(array):
    """Return an array after every element of it was set to FILL, as far as its dtype holds it."""
    array[...] = np.asarray(FILL).astype(array.dtype)
    return array


def _strided(node, given, ndim):
    deepest = min(ndim, max(v.ndim for v in given.values()))
    for signs in itertools.product((1, -1), repeat=deepest):
        for size in (1, 2):
            if signs == (1,) * deepest and size == 1:
                continue  # that is c_contiguous
            steps = [sign * size for sign in signs]
            yield (
                f"strided{tuple(steps)}",
                {k: _with_steps(node, k, v, steps) for k, v in given.items()},
            )


def _with_steps(node, k, value, steps):
    """Return memory like ``value`` whose last dimensions are walked with these steps."""
    steps = steps[-value.ndim :] if value.ndim else []
    free = value.ndim - len(steps)
    pattern = node.outputs[k].type.broadcastable
    shape, index = [], []
    for dim, n in enumerate(value.shape):
        step = steps[dim - free] if dim >= free and not pattern[dim] else 1
        shape.append(n * abs(step))
        index.append(slice(None, None, step))
    return filled(np.empty(shape, value.dtype))[(*index, ...)]


def _wrong_sizes(node, given, ndim):
    deepest = min(ndim, max(v.ndim for v in given.values()))
    for change in itertools.product((-1, 0, 1), repeat=deepest):
        if not any(change):
            continue
        made = {}
        for k, value in given.items():
            own = change[-value.ndim :] if value.ndim else ()
            own = (0,) * (value.ndim - len(own)) + tuple(own)
            pattern = node.outputs[k].type.broadcastable
            shape = [
                n if fixed else max(0, n + more)
                for n, more, fixed in zip(value.shape, own, pattern, strict=True)
            ]
            if tuple(shape) != value.shape:
                made[k] = filled(np.empty(shape, value.dtype))
        if made:
            yield f"wrong_size{change}", made
