"""Connectionist temporal classification: the loss of a sequence of labels without alignment.

Source: A. Graves et al., "Connectionist Temporal Classification", ICML 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import NullType, disconnected_type, is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.creation import zeros_like
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

__all__ = ["ConnectionistTemporalClassification", "ctc", "ctc_available"]


class ConnectionistTemporalClassification(Op):
    """The costs of label sequences, and with ``compute_grad`` their gradients by the activations.

    Inputs: activations before the softmax, of shape (time, batch, symbols) and float32 or float64;
    labels, an integer matrix (batch, label), of which negative numbers are padding; and for each
    sequence its number of time steps. Symbol 0 is the blank. A call returns the costs only.
    """

    __props__ = ("compute_grad",)
    default_output = 0

    def __init__(self, compute_grad: bool = True, openmp: bool | None = None) -> None:
        self.compute_grad = compute_grad

    def make_node(
        self, activations: TensorLike, labels: TensorLike, input_lengths: TensorLike
    ) -> Apply:
        activations = as_tensor_variable(activations)
        labels, lengths = as_tensor_variable(labels), as_tensor_variable(input_lengths)
        dtype = activations.type.dtype
        if dtype not in ("float32", "float64"):
            raise TypeError(f"activations must use the float32 or float64 type, not {dtype}")
        for name, var, ndim in (
            ("activations", activations, 3), ("labels", labels, 2), ("input_lengths", lengths, 1),
        ):  # fmt: skip
            if var is not activations and var.type.dtype not in dtypes.INTEGERS:
                raise TypeError(f"{name} must use the int32 type, not {var.type.dtype}")
            if var.type.ndim != ndim:
                raise ValueError(f"{name} must have {ndim} dimensions, not {var.type.ndim}")
        outputs = [tensor_type(dtype, (False,)).make_variable("ctc_cost")]
        if self.compute_grad:
            outputs.append(tensor_type(dtype, (False,) * 3).make_variable("ctc_grad"))
        return Apply(self, [activations, labels, lengths], outputs)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        activations, labels, lengths = inputs
        _check(activations, labels, lengths)
        costs, gradient = _forward_backward(activations, labels, lengths, self.compute_grad)
        output_storage[0][0] = costs.astype(activations.dtype)
        if self.compute_grad and gradient is not None:
            output_storage[1][0] = gradient.astype(activations.dtype)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        steps, batch, symbols = shapes[0]
        return [(batch,), (steps, batch, symbols)][: len(node.outputs)]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * len(node.outputs)] + [[False] * len(node.outputs)] * 2

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        rest = [disconnected_type.make_variable() for _ in inputs[1:]]
        if len(outputs) < 2 or not is_disconnected(output_gradients[1]):
            why = "The second derivative of the CTC loss is not implemented."
            return [NullType(why).make_variable(), *rest]
        if is_disconnected(output_gradients[0]):
            return [zeros_like(inputs[0]), *rest]
        return [dimshuffle(output_gradients[0], ("x", 0, "x")) * outputs[1], *rest]

    def __str__(self) -> str:
        return f"{type(self).__name__}{{compute_grad={self.compute_grad}}}"


def _check(activations: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> None:
    """Raise ValueError unless the inputs fit together."""
    steps, batch, symbols = activations.shape
    if labels.shape[0] != batch or len(lengths) != batch:
        raise ValueError(
            f"activations are of {batch} sequences, labels of {labels.shape[0]}, input_lengths of "
            f"{len(lengths)}"
        )
    if labels.size and labels.max() >= symbols:
        raise ValueError(f"labels must be less than {symbols}, the symbols; got {labels.max()}")
    if (labels == 0).any():
        raise ValueError("labels must not be 0, the blank; negative numbers are padding")
    if batch and (lengths.max() > steps or lengths.min() < 0):
        raise ValueError(f"input_lengths must be 0 to {steps}, got {lengths.tolist()}")


def _extended(labels: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return labels with blanks around each, what may be skipped to, and the lengths.

    Returns (symbols by (batch, state), whether a state may follow that two before it, states of
    each sequence, steps that each sequence takes at least).
    """
    kept = [row[row >= 0] for row in labels]
    longest = max(map(len, kept), default=0)
    states = np.zeros((len(kept), 2 * longest + 1), np.int64)
    for b, row in enumerate(kept):
        states[b, 1 : 2 * len(row) : 2] = row
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != 0) & (states[:, 2:] != states[:, :-2])
    repeats = [int((row[1:] == row[:-1]).sum()) for row in kept]
    counts = np.array([len(row) for row in kept], np.int64)
    return states, skips, 2 * counts + 1, counts + np.array(repeats, np.int64)


def _forward_backward(
    activations: np.ndarray, labels: np.ndarray, lengths: np.ndarray, with_gradient: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (costs, gradients or None) in float64; sequences are computed side by side.

    A sequence with fewer steps than its labels need has cost 0 and gradient 0, as in warp-ctc.
    """
    x = activations.astype(np.float64)
    steps, batch, _ = x.shape
    states, skips, counts, needed = _extended(labels)
    possible = needed <= lengths
    if not steps or not batch:
        return np.zeros(batch), np.zeros_like(x)
    log_p = x - x.max(2, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(2, keepdims=True))
    rows = np.arange(batch)
    # log-probability of the symbol of each state at each step; none beyond the last state
    inside = np.arange(states.shape[1]) < counts[:, None]
    emitted = np.where(inside, log_p[:, rows[:, None], states], -np.inf)

    with np.errstate(invalid="ignore"):
        forward = np.full(emitted.shape, -np.inf)
        forward[0, :, :2] = emitted[0, :, :2]
        for t in range(1, steps):
            forward[t] = _arriving(forward[t - 1], skips) + emitted[t]
        last = np.maximum(lengths - 1, 0)
        ends = forward[last, rows]
        total = np.logaddexp(ends[rows, counts - 1], np.where(
            counts > 1, ends[rows, np.maximum(counts - 2, 0)], -np.inf))  # fmt: skip
        possible &= lengths > 0
        costs = np.where(possible, -total, 0.0)
        if not with_gradient:
            return costs, None
        backward = np.full(emitted.shape, -np.inf)
        # run from the last state to the first, so that the same step serves both directions
        flipped_skips = np.zeros_like(skips)
        flipped_skips[:, 2:] = skips[:, :1:-1]
        for t in range(steps - 1, -1, -1):
            if t < steps - 1:
                coming = (backward[t + 1] + emitted[t + 1])[:, ::-1]
                backward[t] = _arriving(coming, flipped_skips)[:, ::-1]
            finals = lengths - 1 == t
            backward[t, finals] = -np.inf
            backward[t, rows[finals], counts[finals] - 1] = 0.0
            several = finals & (counts > 1)
            backward[t, rows[several], counts[several] - 2] = 0.0
        posterior = np.exp(forward + backward - total[:, None])
    posterior[~np.isfinite(posterior)] = 0.0
    gradient = np.exp(log_p)
    # a symbol may be that of several states
    places: Any = (slice(None), rows[:, None], states)
    np.subtract.at(gradient, places, posterior)
    gradient[:, ~possible] = 0.0
    gradient[np.arange(steps)[:, None] >= lengths] = 0.0
    return costs, gradient


def _arriving(before: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """Return the log-probability of being in each state, staying or coming from one before."""
    total = before.copy()
    total[:, 1:] = np.logaddexp(total[:, 1:], before[:, :-1])
    total[:, 2:] = np.where(
        skips[:, 2:], np.logaddexp(total[:, 2:], before[:, :-2]), total[:, 2:]
    )  # fmt: skip
    return total


def ctc(activations: TensorLike, labels: TensorLike, input_lengths: TensorLike) -> Tensor:
    """Return the CTC loss of each sequence of a batch, a vector of the dtype of activations.

    activations: before the softmax, of shape (time, batch, symbols), float32 or float64. labels: an
    integer matrix with a row for each sequence; negative numbers are padding, 0 is the blank and no
    label. input_lengths: the number of time steps of each sequence, an integer vector. A sequence
    with fewer steps than its labels need has loss 0. Raises TypeError for other dtypes, ValueError
    for other numbers of dimensions; ValueError at run time for numbers of sequences that differ,
    and for labels and lengths out of range.
    """
    costs: Tensor = ConnectionistTemporalClassification()(activations, labels, input_lengths)
    return costs


def ctc_available() -> bool:
    """Return True: opwise computes the loss itself, without the library warp-ctc."""
    return True
