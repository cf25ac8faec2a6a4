"""Batch normalisation, made of elementwise functions, means and variances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from opwise.config import thread_flags
from opwise.scalar import dtypes
from opwise.scalar.composite import Composite
from opwise.scalar.op import OPS
from opwise.scalar.types import get_scalar_type
from opwise.tensor.dimshuffle import dimshuffle
from opwise.tensor.elemwise import Elemwise, cast, elemwise
from opwise.tensor.reduce import mean as mean_
from opwise.tensor.reduce import prod, var
from opwise.tensor.shape import addbroadcast, shape
from opwise.tensor.variable import Tensor, TensorLike, as_tensor_variable, constant

__all__ = [
    "BNComposite",
    "batch_normalization",
    "batch_normalization_test",
    "batch_normalization_train",
]


@cache
def BNComposite(dtype: str) -> Any:
    """Return the scalar op (x - mean) / std * gamma + beta on five numbers of ``dtype``.

    Elemwise of it takes tensors of any shape that broadcast. Raises TypeError for a dtype that is
    none.
    """
    x, mean, std, gamma, beta = (get_scalar_type(dtype).make_variable() for _ in range(5))
    with thread_flags(compute_test_value="off"):  # these five numbers have no values
        normalised = OPS["true_div"](OPS["sub"](x, mean), std)
        out = OPS["add"](OPS["mul"](normalised, gamma), beta)
    return Composite([x, mean, std, gamma, beta], [out])


def batch_normalization(
    inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem"
) -> Tensor:
    """Return (inputs - mean) / std * gamma + beta.

    All arguments broadcast; the result has the shape to which they do, and the upcast of their
    dtypes (float64 for integers). mode: 'low_mem' makes one elementwise operation; 'high_mem' makes
    several, and computes gamma / std first. Raises ValueError for another mode; ValueError at run
    time if the shapes do not broadcast.
    """
    if mode == "low_mem":
        operands = [as_tensor_variable(v) for v in (inputs, mean, std, gamma, beta)]
        dtype = dtypes.upcast(*(v.type.dtype for v in operands))
        return Elemwise(BNComposite(dtype))(*(cast(v, dtype) for v in operands))
    if mode == "high_mem":
        inputs, gamma, beta, mean, std = map(as_tensor_variable, (inputs, gamma, beta, mean, std))
        result: Tensor = (inputs - mean) * (gamma / std) + beta
        return result
    raise ValueError(f'mode must be either "low_mem", "high_mem", not {mode!r}')


def batch_normalization_train(
    inputs: Any,
    gamma: Any,
    beta: Any,
    axes: Any = "per-activation",
    epsilon: float = 1e-4,
    running_average_factor: float = 0.1,
    running_mean: TensorLike | None = None,
    running_var: TensorLike | None = None,
) -> tuple[Any, ...]:
    """Return inputs normalised by their own mean and variance, scaled and shifted; and statistics.

    axes: the axes to average over: 'per-activation' (the first), 'spatial' (all but the second), or
    a sequence of integers. gamma, beta, running_mean, running_var: of the shape of inputs, with
    these axes of length 1 or left out. epsilon: added to the variance, at least 1e-5.

    The results are the normalised inputs, the mean, 1 / sqrt(variance + epsilon), and, if running
    averages are given, these moved by running_average_factor towards the mean and towards the
    unbiased variance. The first has the shape of inputs, statistics that of gamma; all have the
    upcast of the dtypes of inputs, gamma, beta and running averages (float64 for integers). Raises
    ValueError if axes, numbers of dimensions or epsilon are invalid, or if only one running average
    is given; ValueError at run time if shapes do not fit.
    """
    inputs, gamma, beta = map(as_tensor_variable, (inputs, gamma, beta))
    axes = _axes(axes, inputs.type.ndim)
    layout = _Layout(inputs, axes, gamma, beta)
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be given or both be None")
    running = []
    if running_mean is not None and running_var is not None:
        running = [as_tensor_variable(running_mean), as_tensor_variable(running_var)]
        layout.check("running_mean", running[0])
        layout.check("running_var", running[1])
    epsilon = _checked_epsilon(epsilon)

    dtype = dtypes.upcast(*(v.type.dtype for v in (inputs, gamma, beta, *running)))
    inputs = cast(inputs, dtype)
    gamma, beta, *running = (layout.expanded(cast(v, dtype)) for v in (gamma, beta, *running))
    mean = mean_(inputs, axis=axes, keepdims=True)
    variance = var(inputs, axis=axes, keepdims=True)
    invstd = elemwise("inv")(elemwise("sqrt")(variance + constant(epsilon, dtype=dtype)))
    out = (inputs - mean) * (gamma * invstd) + beta
    results = [mean, invstd]
    if running:
        factor = cast(as_tensor_variable(running_average_factor), dtype)
        count = cast(prod(shape(inputs)[list(axes)]), dtype)
        unbiased = variance * (count / (count - 1))
        results += [
            old * (1 - factor) + new * factor
            for old, new in zip(running, (mean, unbiased), strict=True)
        ]
    return (out, *map(layout.contracted, results))


def batch_normalization_test(
    inputs: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    var: Any,
    axes: Any = "per-activation",
    epsilon: float = 1e-4,
) -> Tensor:
    """Return inputs normalised by a given mean and variance, scaled and shifted.

    Arguments as for ``batch_normalization_train``; mean and var have the dimensions of gamma. The
    result has the shape of inputs, and the upcast of all dtypes (float64 for integers). Raises
    ValueError if axes, numbers of dimensions or epsilon are invalid; ValueError at run time if
    shapes do not fit.
    """
    inputs, gamma, beta, mean, var = map(as_tensor_variable, (inputs, gamma, beta, mean, var))
    layout = _Layout(inputs, _axes(axes, inputs.type.ndim), gamma, beta)
    layout.check("mean", mean)
    layout.check("var", var)
    epsilon = _checked_epsilon(epsilon)
    dtype = dtypes.upcast(*(v.type.dtype for v in (inputs, gamma, beta, mean, var)))
    inputs = cast(inputs, dtype)
    gamma, beta, mean, var = (layout.expanded(cast(v, dtype)) for v in (gamma, beta, mean, var))
    scale = gamma / elemwise("sqrt")(var + constant(epsilon, dtype=dtype))
    result: Tensor = (inputs - mean) * scale + beta
    return result


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of normalisation as a sorted tuple."""
    if axes == "per-activation":
        found = {0}
    elif axes == "spatial":
        found = {0, *range(2, ndim)}
    elif isinstance(axes, list | tuple | np.ndarray):
        found = {int(a) for a in axes}
    else:
        raise ValueError(f"invalid axes: {axes}")
    if not found:
        raise ValueError("there should be at least one normalization axis")
    if min(found) < 0 or max(found) >= ndim:
        raise ValueError(f"axes should be less than ndim (<{ndim}), but {axes} given")
    return tuple(sorted(found))


def _checked_epsilon(epsilon: float) -> float:
    # cuDNN accepts no smaller one, and results must not depend on the device
    if not np.asarray(epsilon) >= 1e-5:
        raise ValueError(f"epsilon must be at least 1e-5, got {epsilon}")
    return float(epsilon)


class _Layout:
    """The dimensions of parameters, which may lack the axes of normalisation."""

    def __init__(self, inputs: Tensor, axes: Sequence[int], gamma: Tensor, beta: Tensor) -> None:
        self.ndim = inputs.type.ndim
        self.axes = axes
        kept = self.ndim - len(axes)
        self.params_ndim = gamma.type.ndim
        if gamma.type.ndim != beta.type.ndim or gamma.type.ndim not in (kept, self.ndim):
            raise ValueError(
                "gamma and beta dimensionality must match the number of non-normalized axes, or "
                "have the same number of dimensions as the inputs; got "
                f"{gamma.type.ndim} and {beta.type.ndim} instead of {kept}"
            )

    def check(self, name: str, param: Tensor) -> None:
        """Raise ValueError unless a further parameter has as many dimensions as gamma."""
        if param.type.ndim != self.params_ndim:
            raise ValueError(
                f"{name} must be of the same dimensionality as gamma and beta; got "
                f"{param.type.ndim} instead of {self.params_ndim}"
            )

    def expanded(self, param: Tensor) -> Tensor:
        """Return a parameter with all dimensions of the inputs, those of ``axes`` broadcastable."""
        if self.params_ndim == self.ndim:
            return addbroadcast(param, *self.axes)
        kept = iter(range(self.params_ndim))
        return dimshuffle(param, ["x" if a in self.axes else next(kept) for a in range(self.ndim)])

    def contracted(self, statistic: Tensor) -> Tensor:
        """Return a statistic with the dimensions of the parameters."""
        if self.params_ndim == self.ndim:
            return statistic
        return dimshuffle(statistic, [a for a in range(self.ndim) if a not in self.axes])
