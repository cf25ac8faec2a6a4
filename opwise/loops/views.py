"""``map``, ``reduce``, ``foldl`` and ``foldr``: loops of common forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwise.compile.updates import OrderedUpdates
from opwise.loops.build import scan


def map(  # the name that Theano's programs use
    fn: Callable[..., Any],
    sequences: Any,
    non_sequences: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Apply ``fn`` to every row of the sequences; see ``scan``."""
    return scan(
        fn, sequences, None, non_sequences, None, truncate_gradient, go_backwards, mode, name
    )


def reduce(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    go_backwards: bool = False,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Combine every row of the sequences with the outputs so far; return the last outputs.

    Arguments as of ``scan``.
    """
    outputs, updates = scan(
        fn, sequences, outputs_info, non_sequences, None, -1, go_backwards, mode, name
    )
    if isinstance(outputs, list | tuple):
        return [rows[-1] for rows in outputs], updates
    return outputs[-1], updates


def foldl(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Call ``reduce`` from the first row to the last."""
    return reduce(fn, sequences, outputs_info, non_sequences, False, mode, name)


def foldr(
    fn: Callable[..., Any],
    sequences: Any,
    outputs_info: Any,
    non_sequences: Any = None,
    mode: Any = None,
    name: str | None = None,
) -> tuple[Any, OrderedUpdates]:
    """Call ``reduce`` from the last row to the first."""
    return reduce(fn, sequences, outputs_info, non_sequences, True, mode, name)
