"""Shapes of the blocks that a function returns, from those of its arguments, without running it."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.compile.executable import Function
from opwise.compile.function import function as compile_function
from opwise.config import change_flags
from opwise.modes.mode import Mode
from opwise.tensor.shape import Shape, Shape_i

#: a length, or nan if it depends on the values of a block
Length = float
#: from the shapes of the arguments to the shape of an output
ShapeOf = Callable[[Sequence[tuple[int, ...] | None]], tuple[Length, ...]]

_known: weakref.WeakKeyDictionary[Function, list[ShapeOf]] = weakref.WeakKeyDictionary()


def shapes_of(function: Function) -> list[ShapeOf]:
    """Return for each output of a function how its shape follows from those of the arguments."""
    found = _known.get(function)
    if found is None:
        found = [_shape_of(function, out.variable) for out in function.outputs]
        _known[function] = found
    return found


def _shape_of(function: Function, output: Any) -> ShapeOf:
    lengths = [_length_of(function, output.shape[i]) for i in range(output.type.ndim)]

    def shape_of(shapes: Sequence[tuple[int, ...] | None]) -> tuple[Length, ...]:
        return tuple([length(shapes) for length in lengths])

    return shape_of


def _length_of(function: Function, length: Any) -> Callable[[Sequence[Any]], Length]:
    """Return how one length of an output follows from the shapes of the arguments."""
    arguments = function.construction.arguments
    specs = [s for s in function.construction.inputs if not s.shared and not s.implicit]
    with change_flags(compute_test_value="off"):
        compiled = compile_function(
            [spec.variable for spec in specs], length, mode=Mode("py", "fast_run"),
            givens=arguments["givens"], no_default_updates=True, on_unused_input="ignore",
        )  # fmt: skip
    if _reads_values(compiled):
        return lambda shapes: math.nan
    types: list[Any] = [spec.variable.type for spec in specs]

    def length_of(shapes: Sequence[Any]) -> Length:
        values = [
            np.broadcast_to(np.zeros((), type_.dtype), shape if shape is not None else ())
            for type_, shape in zip(types, shapes, strict=True)
        ]
        return int(compiled(*values))

    return length_of


def _reads_values(compiled: Function) -> bool:
    """Whether a function reads more of its arguments than their shapes."""
    fgraph = compiled.maker.fgraph
    given = fgraph.inputs[: len(compiled.maker.inputs)]
    shared = [spec.shared for spec in compiled.construction.inputs]
    for var, is_shared in zip(given, shared, strict=True):
        clients = [] if is_shared else list(fgraph.clients(var))
        if any(node == "output" or not isinstance(node.op, Shape | Shape_i) for node, _ in clients):
            return True
    return False


def chunks_of(
    shape_of: ShapeOf,
    blocks: Sequence[Callable[[tuple[int, ...]], tuple[Length, ...]] | None],
    counts: Sequence[int],
    axes: Sequence[int | None],
    what: str,
) -> tuple[tuple[Length, ...], ...]:
    """Return the lengths of the blocks of an output along each of its dimensions.

    blocks: for each argument, from the position of a block to its shape; None for a value that
    every call gets as it is. counts: how many blocks there are along each dimension of the
    arguments. axes: for each dimension of the output, that of the arguments along which its blocks
    are counted; None for a dimension with one block. what: names the function in the error. Raises
    ValueError if blocks do not fit together: of one length along a row of blocks.
    """
    lengths: list[dict[int, Length]] = [{} for _ in axes]
    memo: dict[Any, tuple[Length, ...]] = {}
    for place in itertools.product(*map(range, counts)):
        shapes = tuple(None if block is None else block(place) for block in blocks)
        if any(shape is not None and any(map(math.isnan, shape)) for shape in shapes):
            found: tuple[Length, ...] = (math.nan,) * len(axes)
        elif shapes in memo:
            found = memo[shapes]
        else:
            found = memo[shapes] = shape_of(shapes)  # type: ignore[arg-type]
        for known, axis, length in zip(lengths, axes, found, strict=True):
            k = 0 if axis is None else place[axis]
            before = known.setdefault(k, length)
            if before != length and not (math.isnan(before) and math.isnan(length)):
                raise ValueError(
                    f"{what} returns blocks of lengths {before} and {length} along dimension "
                    f"{lengths.index(known)} that stand side by side, so they make no array. "
                    "Rechunk the arrays, or use opwise.distributed.delayed."
                )
    return tuple(tuple(known[k] for k in sorted(known)) for known in lengths)
