"""Counts of outcomes, and outcomes without replacement, from uniform numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.config import config
from opwise.graph.apply import Apply
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.scalar.types import Scalar
from opwise.tensor.convert import scalar_from_tensor, tensor_from_scalar
from opwise.tensor.elemwise import cast, zeros_like
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, TensorLike, TensorOp, as_tensor_variable


class MultinomialFromUniform(TensorOp):
    """How often each outcome occurs in n draws, in each row of a matrix.

    Inputs are a matrix of probabilities, a row for each distribution; uniform numbers, those of the
    first draw of every row, then those of the second; and n (default: 1). A draw is the first
    outcome whose cumulated probability is larger than the number; none if there is no such outcome.
    odtype: dtype of the counts; 'auto' for that of the probabilities.
    """

    __props__: tuple[str, ...] = ("odtype",)

    def __init__(self, odtype: str) -> None:
        self.odtype = odtype

    def __str__(self) -> str:
        return f"{type(self).__name__}{{{self.odtype}}}"

    def out_dtype(self, pvals: Tensor) -> str:
        return pvals.type.dtype if self.odtype == "auto" else self.odtype

    def make_node(self, pvals: TensorLike, unis: TensorLike, n: int = 1) -> Apply:
        pvals, unis = as_tensor_variable(pvals), as_tensor_variable(unis)
        if pvals.type.ndim != 2:
            raise NotImplementedError(
                f"pvals ndim should be 2, a row for each distribution, not {pvals.type.ndim}"
            )
        if unis.type.ndim != 1:
            raise NotImplementedError(f"unis ndim should be 1, not {unis.type.ndim}")
        out = tensor_type(self.out_dtype(pvals), pvals.type.broadcastable)
        if not isinstance(getattr(n, "type", None), Scalar):
            n = scalar_from_tensor(n)
        return Apply(self, [pvals, unis, n], [out.make_variable()])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        pvals, unis, n = inputs
        n = int(n)
        self.check(pvals, unis, n)
        counts = np.zeros(pvals.shape, dtype=node.outputs[0].type.dtype)
        cumulated = pvals.cumsum(1, dtype="float64")
        for numbers in unis.reshape(n, len(pvals)):
            rows, outcomes = _drawn(cumulated, numbers)
            counts[rows, outcomes] += 1
        output_storage[0][0] = counts

    @staticmethod
    def check(pvals: np.ndarray, unis: np.ndarray, n: int) -> None:
        """Raise ValueError unless there are as many numbers as draws."""
        if unis.shape[0] != pvals.shape[0] * n:
            raise ValueError(
                f"unis.shape[0] != pvals.shape[0] * n: there are {unis.shape[0]} numbers for "
                f"{n} draws from each of {pvals.shape[0]} distributions"
            )

    infer_shape = shapes_of(0)

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        tensors = (*inputs[:2], tensor_from_scalar(inputs[2]))
        return [
            zeros_like(x, config.floatX if x.type.dtype in dtypes.DISCRETE else x.type.dtype)
            for x in tensors
        ]


def _drawn(cumulated: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return (rows in which an outcome is drawn, these outcomes)."""
    larger = cumulated > numbers[:, None]
    (rows,) = np.nonzero(larger.any(1))
    return rows, larger[rows].argmax(1)


class ChoiceFromUniform(MultinomialFromUniform):
    """The outcomes of n draws, in each row of a matrix of probabilities; a column for each draw.

    Inputs are those of MultinomialFromUniform. replace: whether an outcome may be drawn again.
    Otherwise its probability becomes 0, and those of the others grow in proportion. Where no
    outcome is drawn, the result is -1. odtype: dtype of the result; 'auto' for int64.
    """

    __props__ = ("odtype", "replace")

    def __init__(self, odtype: str, replace: bool = False) -> None:
        super().__init__(odtype)
        self.replace = replace

    __str__ = Op.__str__

    def out_dtype(self, pvals: Tensor) -> str:
        return "int64" if self.odtype == "auto" else self.odtype

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        pvals, unis, n = inputs
        n = int(n)
        self.check(pvals, unis, n)
        outcomes_left = pvals.copy()
        chosen = np.full((len(pvals), n), -1).astype(node.outputs[0].type.dtype)
        for c, numbers in enumerate(unis.reshape(n, len(pvals))):
            cumulated = outcomes_left.cumsum(1, dtype="float64")
            rows, outcomes = _drawn(cumulated, numbers)
            chosen[rows, c] = outcomes
            if not self.replace:
                before = cumulated[rows, outcomes] - outcomes_left[rows, outcomes]
                outcomes_left[rows, outcomes] = 0
                outcomes_left[rows] = _normalised(outcomes_left[rows], outcomes, before)
        output_storage[0][0] = chosen

    @staticmethod
    def check(pvals: np.ndarray, unis: np.ndarray, n: int) -> None:
        if n > pvals.shape[1]:
            raise ValueError(
                "Cannot sample without replacement n samples bigger than the size of the "
                f"distribution: n is {n}, but there are {pvals.shape[1]} outcomes"
            )
        MultinomialFromUniform.check(pvals, unis, n)

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [(shapes[0][0], cast(tensor_from_scalar(node.inputs[2]), "int64"))]


def _normalised(pvals: np.ndarray, outcomes: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return rows of probabilities divided by their sums.

    before: the sum of those before ``outcomes``. All others are added one by one, in the dtype of
    the probabilities, as C does it: the last bit decides some draws.
    """
    total = before.astype(pvals.dtype)
    for k in range(pvals.shape[1]):
        total = np.where(k >= outcomes, total + pvals[:, k], total)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: np.ndarray = pvals / total[:, None]
        return result


class MultinomialWOReplacementFromUniform(ChoiceFromUniform):
    """The old name of ChoiceFromUniform."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "MultinomialWOReplacementFromUniform is deprecated, use ChoiceFromUniform instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)
