"""``scan_checkpoints``: a loop that keeps few of its steps, for gradients through many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opwise.compile.updates import OrderedUpdates
from opwise.graph.variable import Var
from opwise.loops.build import scan
from opwise.loops.layout import as_list
from opwise.tensor import arange, as_tensor_variable, concatenate, zeros
from opwise.tensor.elemwise import elemwise


def scan_checkpoints(
    fn: Callable[..., Any],
    sequences: Any = (),
    outputs_info: Any = None,
    non_sequences: Any = (),
    name: str = "checkpointscan_fn",
    n_steps: Any = None,
    save_every_N: int = 10,
    padding: bool = True,
) -> tuple[Any, OrderedUpdates]:
    """Repeat a step, keep the outputs of every ``save_every_N`` steps, and return those.

    Gradients compute the other steps again from the kept ones. Arguments as of ``scan``; all
    sequences are equally long, and outputs have no taps. padding: copy sequences whose length is no
    multiple of ``save_every_N``; without it the length must be one.

    Raises RuntimeError for taps.
    """
    sequences = [as_tensor_variable(each) for each in as_list(sequences)]
    outputs_info = as_list(outputs_info)
    if any(isinstance(info, Mapping) and "taps" in info for info in outputs_info):
        raise RuntimeError(
            "scan_checkpoints doesn't work with taps: give the initial value, without a dict"
        )
    n = as_tensor_variable(sequences[0].shape[0] if n_steps is None else n_steps)
    chunks = (n + save_every_N - 1) // save_every_N
    counts = elemwise("minimum")(save_every_N, n - save_every_N * arange(chunks))
    rows = [_in_chunks(each, n, chunks, save_every_N, padding) for each in sequences]

    def chunk(count: Var, *given: Var) -> Any:
        own, states = given[: len(rows)], list(given[len(rows) :])
        results, updates = scan(
            fn, [each[:count] for each in own],
            [None if info is None else states.pop(0) for info in outputs_info] or None,
            non_sequences, n_steps=count, name=f"{name}_inner", return_list=True,
        )  # fmt: skip
        return [each[-1] for each in results], updates

    return scan(chunk, [counts, *rows], outputs_info or None, n_steps=chunks, name=f"{name}_outer")


def _in_chunks(rows: Var, n: Var, chunks: Var, length: int, padding: bool) -> Var:
    """Return the rows of a sequence as an array with a row for each chunk."""
    rest = [rows.shape[d] for d in range(1, rows.ndim)]
    rows = rows[:n]
    if padding:
        rows = concatenate([rows, zeros([chunks * length - n, *rest], rows.dtype)])
    return rows.reshape([chunks, length, *rest], rows.ndim + 1)
