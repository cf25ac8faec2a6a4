"""Preallocated outputs: arrays of every layout that an Op may find in its output storage."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from opwise.graph import aliasing
from opwise.graph.apply import Apply
from opwise.tensor.type import TensorType

#: every element of these arrays: an unlikely result
FILL = 666

#: Theano's names for kinds of output storage
KINDS = ("initial", "previous", "c_contiguous", "f_contiguous", "strided", "wrong_size")


#: numpy's order of the kinds that are as large as the result and have no gaps
_ORDERS: dict[str, Literal["K", "C", "F"]] = {
    "previous": "K", "c_contiguous": "C", "f_contiguous": "F",
}  # fmt: skip
#: what the outputs of an Apply find in their storage: arrays by output
Found = dict[int, np.ndarray]


def kinds_of(setting: str | Iterable[str]) -> list[str]:
    """Return the kinds in a setting, a text with colons or a list.

    Raises ValueError for an unknown kind.
    """
    kinds = setting.split(":") if isinstance(setting, str) else list(setting)
    unknown = [kind for kind in kinds if kind not in (*KINDS, "ALL", "")]
    if unknown:
        raise ValueError(
            f"check_preallocated_output: {unknown[0]!r} is not one of {', '.join(KINDS)}, ALL"
        )
    return kinds


def is_wanted(kinds: Iterable[str]) -> bool:
    """Return whether a setting names any kind."""
    return any(kinds)


def layouts(
    node: Apply, values: Sequence[Any], initial: Mapping[int, Any], kinds: Sequence[str], ndim: int
) -> Iterator[tuple[str, Found]]:
    """Yield (name, {output index: array}) for each preallocation to try with an Apply.

    values: the right results, which are not changed. initial: what the storage held when the call
    began, by output. ndim: for how many of the last dimensions all combinations are tried. Outputs
    that are views of inputs, or are not arrays, are left out.
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
            order = _ORDERS[kind]
            yield kind, {k: filled(np.empty_like(v, order=order)) for k, v in given.items()}


def filled(array: np.ndarray) -> np.ndarray:
    """Set every element of an array to FILL, cast to its dtype, and return the array."""
    array[...] = np.asarray(FILL).astype(array.dtype)
    return array


def _strided(node: Apply, given: Found, ndim: int) -> Iterator[tuple[str, Found]]:
    """Yield preallocations whose last dimensions have steps of 1, -1, 2 and -2 elements."""
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


def _with_steps(node: Apply, k: int, value: np.ndarray, steps: list[int]) -> np.ndarray:
    """Return an array of the shape of ``value`` whose last dimensions have these steps."""
    steps = steps[-value.ndim :] if value.ndim else []
    free = value.ndim - len(steps)
    pattern = node.outputs[k].type.broadcastable
    shape: list[int] = []
    index: list[Any] = []
    for dim, n in enumerate(value.shape):
        step = steps[dim - free] if dim >= free and not pattern[dim] else 1
        shape.append(n * abs(step))
        index.append(slice(None, None, step))
    return filled(np.empty(shape, value.dtype))[(*index, ...)]


def _wrong_sizes(node: Apply, given: Found, ndim: int) -> Iterator[tuple[str, Found]]:
    """Yield preallocations whose last dimensions are one element shorter or longer."""
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
