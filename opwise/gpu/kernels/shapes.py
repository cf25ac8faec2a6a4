"""Checks of shapes with numpy's errors, and shapes as numpy's errors print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Shape = tuple[int, ...]


def check_broadcast(shape: Shape, to: Shape) -> None:
    """Raise ValueError unless an array of this shape can be broadcast to another."""
    missing = len(to) - len(shape)
    if missing < 0 or any(n not in (1, m) for n, m in zip(shape, to[missing:], strict=True)):
        raise ValueError(f"array is not broadcastable to correct shape: {shape} to {to}")


def check_product(x: Shape, y: Shape) -> None:
    """Raise ValueError, as numpy does, unless arrays of these shapes can be multiplied."""
    dim = max(0, len(y) - 2)
    if x[-1] != y[dim]:
        raise ValueError(
            f"shapes {x} and {y} not aligned: {x[-1]} (dim {len(x) - 1}) != {y[dim]} (dim {dim})"
        )


def numpy_shape(shape: Sequence[int]) -> str:
    """Return a shape as numpy's errors print it: without blanks."""
    return str(tuple(shape)).replace(", ", ",")


def numpy_shapes(shapes: Iterable[Sequence[int]]) -> str:
    """Return several shapes as numpy's errors print them: each with a blank behind it."""
    return "".join(f"{numpy_shape(shape)} " for shape in shapes)
