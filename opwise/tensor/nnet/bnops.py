"""The Ops of batch normalisation by Theano's names; rewrites replace them by elementwise graphs.

The functions of ``bn`` make these graphs directly. Old programs apply the Ops themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.null import disconnected_type, is_disconnected
from opwise.graph.op import Lengths, Op, Storage, Values
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Var
from opwise.scalar import dtypes
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.reduce import mean as mean_
from opwise.tensor.reduce import prod, var
from opwise.tensor.reduce import sum as sum_
from opwise.tensor.shape import addbroadcast, shape
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable

__all__ = [
    "AbstractBatchNormInference",
    "AbstractBatchNormTrain",
    "AbstractBatchNormTrainGrad",
]


def _invstd(variance: Tensor, epsilon: Tensor) -> Tensor:
    return elemwise("inv")(elemwise("sqrt")(variance + cast(epsilon, variance.type.dtype)))


class _BatchNormalization(Op):
    """Base of the Ops: ``axes`` are averaged over, and have the length 1 in all parameters."""

    __props__ = ("axes",)

    def __init__(self, axes: Sequence[int] = (0,)) -> None:
        if not isinstance(axes, list | tuple) or not axes:
            raise ValueError(f"axes must be a list or tuple of one axis or more, not {axes!r}")
        self.axes = tuple(int(a) for a in axes)

    def _common(self, tensors: Sequence[Tensor], numbers: Sequence[TensorLike]) -> list[Tensor]:
        """Return the inputs: tensors of one dtype with one number of dimensions, and numbers."""
        tensors = [as_tensor_variable(v) for v in tensors]
        ndim = tensors[0].type.ndim
        if any(v.type.ndim != ndim for v in tensors):
            raise ValueError(
                f"the tensors of {self} must have as many dimensions as the first one, {ndim}, not "
                f"{[v.type.ndim for v in tensors]}"
            )
        if min(self.axes) < 0 or max(self.axes) >= ndim:
            raise ValueError(f"axes should be less than ndim (<{ndim}), but {self.axes} given")
        dtype = dtypes.upcast(*(v.type.dtype for v in tensors))
        return [cast(v, dtype) for v in tensors] + [as_tensor_variable(v) for v in numbers]

    def _wide(self, *params: Tensor) -> list[Tensor]:
        """Return parameters that broadcast along the axes."""
        return [addbroadcast(p, *self.axes) for p in params]

    def _total(self, x: Tensor) -> Tensor:
        return sum_(x, axis=self.axes, keepdims=True)

    def _n_averaged(self, x: Tensor) -> Tensor:
        return cast(prod(shape(x)[list(self.axes)]), x.type.dtype)

    def expanded(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs as an elementwise graph with reductions."""
        raise NotImplementedError


class AbstractBatchNormTrain(_BatchNormalization):
    """x normalised by its own statistics: see ``batch_normalization_train``.

    Inputs: x, scale, bias, epsilon, running_average_factor, and both running averages or neither.
    Outputs: the normalised x, the mean, 1 / sqrt(variance + epsilon), new running averages.
    """

    def make_node(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        epsilon: Any = 1e-4,
        running_average_factor: Any = 0.1,
        running_mean: Any = None,
        running_var: Any = None,
    ) -> Apply:
        if (running_mean is None) != (running_var is None):
            raise ValueError(
                "running_mean and running_var must either both be given or both be None"
            )
        running = [] if running_mean is None else [running_mean, running_var]
        x, scale, bias, *rest = self._common(
            [x, scale, bias, *running], [epsilon, running_average_factor]
        )
        inputs = [x, scale, bias, *rest[-2:], *rest[:-2]]
        types = [x.type, *[scale.type] * (2 + len(running))]
        return Apply(self, inputs, [t.make_variable() for t in types])

    def expanded(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        x, scale, bias, epsilon, factor, *running = inputs
        scale, bias, *running = self._wide(scale, bias, *running)
        mean = mean_(x, axis=self.axes, keepdims=True)
        variance = var(x, axis=self.axes, keepdims=True)
        invstd = _invstd(variance, epsilon)
        results = [(x - mean) * (scale * invstd) + bias, mean, invstd]
        if running:
            factor, n = cast(factor, x.type.dtype), self._n_averaged(x)
            new = mean, variance * (n / (n - 1))
            results += [
                old * (1 - factor) + now * factor for old, now in zip(running, new, strict=True)
            ]
        return results

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n_running = len(node.inputs) - 5
        running = [[k == 3 + i for k in range(3 + n_running)] for i in range(n_running)]
        statistics = [True] * 3 + [False] * n_running
        return [statistics] * 3 + [[False] * (3 + n_running)] * 2 + running

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        x, scale, bias, epsilon, factor = inputs[:5]
        _, mean, invstd = outputs[:3]
        dy, dmean, dinvstd = output_gradients[:3]
        gradients: list[Any] = [x.zeros_like(), scale.zeros_like(), bias.zeros_like()]
        if not is_disconnected(dy):
            gradients = AbstractBatchNormTrainGrad(self.axes)(
                x, dy, scale, mean, invstd, epsilon, return_list=True
            )
        n = self._n_averaged(x)
        if not is_disconnected(dmean):
            gradients[0] = gradients[0] + self._wide(dmean)[0] / n
        if not is_disconnected(dinvstd):
            mean, invstd, dinvstd = self._wide(mean, invstd, dinvstd)
            gradients[0] = gradients[0] - (x - mean) * (dinvstd * invstd**3 / n)
        none = disconnected_type.make_variable
        kept = cast(1 - as_tensor_variable(factor), x.type.dtype)
        return [
            *gradients, none(), none(),
            *(none() if is_disconnected(g) else g * kept for g in output_gradients[3:]),
        ]  # fmt: skip

    def infer_shape(self, node: Apply, shapes: Sequence[Lengths]) -> Sequence[Lengths]:
        return [shapes[0], *[shapes[1]] * (len(node.outputs) - 1)]

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, scale, bias, epsilon, factor, *running = inputs
        mean, variance = (f(axis=self.axes, keepdims=True) for f in (x.mean, x.var))
        invstd = 1 / np.sqrt(variance + epsilon)
        results = [(x - mean) * (scale * invstd) + bias, mean, invstd]
        if running:
            n = x.size // max(mean.size, 1)
            with np.errstate(all="ignore"):
                new = mean, variance * (np.float64(n) / (n - 1))
            results += [
                old * (1 - factor) + now * factor for old, now in zip(running, new, strict=True)
            ]
        _store(node, results, output_storage)


class AbstractBatchNormInference(_BatchNormalization):
    """x normalised by given statistics: see ``batch_normalization_test``.

    Inputs: x, scale, bias, mean, variance, epsilon.
    """

    def make_node(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        estimated_mean: Any,
        estimated_variance: Any,
        epsilon: Any = 1e-4,
    ) -> Apply:
        inputs = self._common([x, scale, bias, estimated_mean, estimated_variance], [epsilon])
        return Apply(self, inputs, [inputs[0].type.make_variable()])

    def expanded(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        x, scale, bias, mean, variance, epsilon = inputs
        scale, bias, mean, variance = self._wide(scale, bias, mean, variance)
        return [(x - mean) * (scale * _invstd(variance, epsilon)) + bias]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True]] * 5 + [[False]]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        x, scale, _, mean, variance, epsilon = inputs
        (dy,) = output_gradients
        scale, mean, variance = self._wide(scale, mean, variance)
        invstd = _invstd(variance, epsilon)
        dbias, dscale = self._total(dy), self._total(dy * (x - mean)) * invstd
        dvariance = dscale * scale * invstd * invstd * -0.5
        return [
            dy * (scale * invstd), dscale, dbias, -dbias * (scale * invstd),
            cast(dvariance, x.type.dtype), disconnected_type.make_variable(),
        ]  # fmt: skip

    infer_shape = shapes_of(0)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, scale, bias, mean, variance, epsilon = inputs
        result = (x - mean) * (scale / np.sqrt(variance + epsilon)) + bias
        _store(node, [result], output_storage)


class AbstractBatchNormTrainGrad(_BatchNormalization):
    """The gradients of ``AbstractBatchNormTrain`` by x, scale and bias.

    Inputs: x, the gradient by the normalised x, scale, mean and 1 / sqrt(variance + epsilon) of x,
    epsilon (unused).
    """

    def make_node(
        self, x: Any, dy: Any, scale: Any, x_mean: Any, x_invstd: Any, epsilon: Any = 1e-4
    ) -> Apply:
        inputs = self._common([x, dy, scale, x_mean, x_invstd], [epsilon])
        x, _, scale, *_ = inputs
        return Apply(self, inputs, [t.make_variable() for t in (x.type, scale.type, scale.type)])

    def expanded(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        x, dy, scale, mean, invstd, _ = inputs
        scale, mean, invstd = self._wide(scale, mean, invstd)
        n, centered = self._n_averaged(x), x - mean
        dbias, products = self._total(dy), self._total(dy * centered)
        slope = invstd * invstd * products / n
        return [(dy - dbias / n - centered * slope) * (scale * invstd), products * invstd, dbias]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True] * 3] * 5 + [[False] * 3]

    def L_op(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        output_gradients: Sequence[Tensor],
    ) -> Sequence[Var]:
        x, dy, scale, mean, invstd, _ = inputs
        zero = scale.zeros_like()
        of_x, of_scale, of_bias = (
            like if is_disconnected(g) else g
            for g, like in zip(output_gradients, (x.zeros_like(), zero, zero), strict=True)
        )
        scale, mean, invstd, of_scale, of_bias = self._wide(scale, mean, invstd, of_scale, of_bias)
        n, centered, total = self._n_averaged(x), x - mean, self._total
        square = invstd * invstd
        average = total(dy * centered) / n
        inner = dy - total(dy) / n - centered * (square * average)
        weighted = of_x * (scale * invstd)
        along = total(weighted * centered)
        by_centered = of_scale * invstd * dy - square * (dy * (along / n) + weighted * average)
        return [
            by_centered,
            weighted - total(weighted) / n - centered * (square * along / n)
            + of_scale * invstd * centered + of_bias,
            total(of_x * inner) * invstd,
            -total(by_centered),
            total(of_x * inner) * scale - 2 * invstd * average * along
            + of_scale * total(dy * centered),
            disconnected_type.make_variable(),
        ]  # fmt: skip

    infer_shape = shapes_of(0, 2, 2)

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        x, dy, scale, mean, invstd, _ = inputs
        centered, n = x - mean, x.size // max(mean.size, 1)

        def total(array: np.ndarray) -> np.ndarray:
            result: np.ndarray = array.sum(axis=self.axes, keepdims=True)
            return result

        dbias, products = total(dy), total(dy * centered)
        inner = dy - dbias / n - centered * (invstd * invstd * products / n)
        _store(node, [inner * (scale * invstd), products * invstd, dbias], output_storage)


def _store(node: Apply, results: Sequence[np.ndarray], output_storage: Storage) -> None:
    """Put results into the storage of outputs, in their dtypes."""
    for result, out, storage in zip(results, node.outputs, output_storage, strict=True):
        storage[0] = np.asarray(result, dtype=out.type.dtype)
