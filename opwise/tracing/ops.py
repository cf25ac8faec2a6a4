"""``NumpyCall``: an Op that lets numpy compute what opwise has no Op for."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.errors import GradNotDefined
from opwise.graph.apply import Apply
from opwise.graph.null import DisconnectedType
from opwise.graph.op import Op
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import Tensor, as_tensor_variable


class NumpyCall(Op):
    """A function of numpy, called with arrays and constants.

    name: dotted, such as 'linalg.eigh', in the module numpy. types: (dtype, broadcastable) of each
    result. constants: (keyword, value) pairs, hashable. keywords: those of the last inputs.
    """

    __props__ = ("name", "types", "constants", "keywords")

    def __init__(
        self,
        name: str,
        types: tuple[tuple[str, tuple[bool, ...]], ...],
        constants: tuple[tuple[str, Any], ...] = (),
        keywords: tuple[str, ...] = (),
    ) -> None:
        self.name, self.types, self.constants = name, types, constants
        self.keywords = keywords

    def make_node(self, *inputs: Any) -> Apply:
        made = [as_tensor_variable(x) for x in inputs]
        return Apply(self, made, [tensor_type(dtype, ones)() for dtype, ones in self.types])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        function, dtypes = _prepared(self.name, self.constants, self.types)
        with np.errstate(all="ignore"):
            if self.keywords:
                first = len(inputs) - len(self.keywords)
                named = dict(zip(self.keywords, inputs[first:], strict=True))
                results = function(*inputs[:first], **named)
            else:
                results = function(*inputs)
        if len(dtypes) == 1 and type(results) is not tuple:
            results = (results,)
        for storage, value, dtype in zip(output_storage, results, dtypes, strict=True):
            if type(value) is not np.ndarray or value.dtype is not dtype:
                value = np.asarray(value, dtype)
            storage[0] = value

    def grad(self, inputs: Sequence[Tensor], output_gradients: Sequence[Tensor]) -> Any:
        rule = DERIVATIVES.get(self.name)
        if rule is None or any(v.type.dtype.startswith("complex") for v in inputs):
            raise GradNotDefined(f"numpy.{self.name} has no derivative in opwise")
        return rule(self, inputs, [
            None if isinstance(g.type, DisconnectedType) else g for g in output_gradients
        ])  # fmt: skip

    def __str__(self) -> str:
        return self.name if self.name.startswith("scipy.") else f"numpy.{self.name}"


# --- derivatives ----------------------------------------------------------------------------------


def _matrix_transpose(x: Any) -> Any:
    return T.swapaxes(x, -1, -2)


def _product(x: Any, y: Any) -> Any:
    if x.type.ndim > 3:
        raise GradNotDefined("stacks of stacks of matrices have no derivative in opwise here")
    return T.dot(x, y) if x.type.ndim == 2 else T.batched_dot(x, y)


def _column(x: Any, axes: int = 1) -> Any:
    return x.dimshuffle(*range(x.type.ndim), *["x"] * axes)


def _undefined(op: NumpyCall, what: str) -> GradNotDefined:
    return GradNotDefined(f"{what} of numpy.{op.name} has no derivative in opwise")


def _slogdet(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    (x,) = inputs
    if gradients[1] is None:
        return [T.zeros_like(x)]
    (inverse,) = numpy_call("linalg.inv", [x], [(x.type.dtype, x.type.broadcastable)])
    return [_column(gradients[1], 2) * _matrix_transpose(inverse)]


def _eigh(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    (x,) = inputs
    ones, dtype = x.type.broadcastable, x.type.dtype
    values, vectors = numpy_call(
        "linalg.eigh", [x], [(dtype, ones[:-1]), (dtype, ones)], **dict(op.constants)
    )
    eye = T.eye(x.shape[-1], dtype=dtype)
    inner = eye * 0
    if gradients[0] is not None:
        inner = _column(gradients[0]) * eye
    if len(gradients) > 1 and gradients[1] is not None:
        gaps = values.dimshuffle(*range(values.type.ndim - 1), "x", values.type.ndim - 1) - _column(
            values
        )
        inner = inner + (1 - eye) * _product(_matrix_transpose(vectors), gradients[1]) / (
            gaps + eye
        )
    whole = _product(_product(vectors, inner), _matrix_transpose(vectors))
    # numpy reads one triangle only
    both = (whole + _matrix_transpose(whole)) * (1 - eye) + whole * eye
    rows = T.arange(x.shape[-1])
    lower = T.ge(_column(rows), rows)
    if dict(op.constants).get("UPLO", "L") in ("U", "u"):
        lower = _matrix_transpose(lower)
    return [T.cast(T.switch(lower, both, 0), dtype)]


def _svd(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    (x,) = inputs
    if len(gradients) > 1:
        raise _undefined(op, "U or V")
    dtype, ones = x.type.dtype, x.type.broadcastable
    shapes = [ones, ones[:-1], ones]
    u, _, v = numpy_call(
        "linalg.svd", [x],
        [(dtype, [*s[:-2], False, False][: len(s)]) for s in shapes], full_matrices=False,
    )  # fmt: skip
    g = gradients[0].dimshuffle(*range(gradients[0].type.ndim - 1), "x", gradients[0].type.ndim - 1)
    return [_product(u * g, v)]


def _over_axes(op: NumpyCall, inputs: Any, gradients: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Return (the result, its gradient, the axes): both with the reduced axes of length 1."""
    constants = dict(op.constants)
    axes = constants["axis"]
    axes = axes if isinstance(axes, tuple) else (axes,)
    result, g = op(*inputs), gradients[0]
    if not constants.get("keepdims"):
        kept = iter(range(g.type.ndim))
        order = ["x" if k in axes else next(kept) for k in range(inputs[0].type.ndim)]
        result, g = result.dimshuffle(*order), g.dimshuffle(*order)
    return result, g, axes


def _logaddexp(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    result, g, _ = _over_axes(op, inputs, gradients)
    return [g * T.exp(inputs[0] - result)]


def _extreme(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    result, g, axes = _over_axes(op, inputs, gradients)
    hits = T.cast(T.eq(inputs[0], result), inputs[0].type.dtype)
    return [g * hits / T.sum(hits, axis=list(axes), keepdims=True)]


def _quantile(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    (x,), constants = inputs, dict(op.constants)
    known = "q" in constants or op.name == "median"
    if constants.get("method", "linear") != "linear" or not known:
        raise _undefined(op, "this form")
    axes = constants["axis"]
    axes = axes if isinstance(axes, tuple) else (axes % x.type.ndim,)
    _, g, _ = _over_axes(
        NumpyCall(op.name, op.types, tuple({**constants, "axis": axes}.items())), inputs, gradients
    )
    kept = [k for k in range(x.type.ndim) if k not in axes]
    moved = x.dimshuffle(*kept, *axes)
    flat = T.reshape(moved, [*[x.shape[k] for k in kept], -1], ndim=len(kept) + 1)
    order = [(np.intp, flat.type.broadcastable)]
    (places,) = numpy_call("argsort", [flat], order, axis=-1, kind="stable")
    (ranks,) = numpy_call("argsort", [places], order, axis=-1)
    at = constants.get("q", 0.5) * (flat.shape[-1] - 1)
    weights = T.maximum(0, 1 - T.abs_(ranks - at))
    back = T.reshape(weights, [moved.shape[k] for k in range(x.type.ndim)], ndim=x.type.ndim)
    inverse = [[*kept, *axes].index(k) for k in range(x.type.ndim)]
    return [T.cast(g * back.dimshuffle(*inverse), x.type.dtype)]


def _bincount(op: NumpyCall, inputs: Any, gradients: Any) -> list[Any]:
    by_inputs = [T.zeros_like(x, dtype="float64") for x in inputs]
    if len(inputs) - len(op.keywords) == 2:
        by_inputs[1] = gradients[0][inputs[0]]
    return by_inputs


#: {name: (the Op, its inputs, gradients of its results or None) -> gradients of its inputs}
DERIVATIVES: dict[str, Any] = {
    "linalg.slogdet": _slogdet,
    "linalg.eigh": _eigh,
    "linalg.eigvalsh": _eigh,
    "linalg.svd": _svd,
    "logaddexp.reduce": _logaddexp,
    "fmax.reduce": _extreme,
    "fmin.reduce": _extreme,
    "median": _quantile,
    "quantile": _quantile,
    "bincount": _bincount,
}


# --- numpy's functions ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _prepared(name: str, constants: Any, types: Any) -> tuple[Any, tuple[np.dtype[Any], ...]]:
    """Return (the function with its constants, the dtypes of the results)."""
    made = functools.partial(numpy_function(name), **dict(constants))
    return made, tuple(np.dtype(dtype) for dtype, _ in types)


def numpy_function(name: str) -> Any:
    """Return the function of numpy with a dotted name, one of scipy, or one of this module."""
    if name.startswith("scipy."):
        module, _, function = name.rpartition(".")
        return getattr(importlib.import_module(module), function)
    return OWN.get(name) or functools.reduce(getattr, name.split("."), np)


def _at_number(function: Any) -> Any:
    """Return a function of numpy whose second argument is a number of Python, without a dtype."""
    return lambda x, q, **constants: function(x, q.item(), **constants)


def _rounded(x: np.ndarray, digits: np.ndarray) -> float:
    return round(x.item(), digits.item())


def _histogram2d(x: Any, y: Any, *more: Any, bins: Any, **constants: Any) -> Any:
    """Return ``numpy.histogram2d``. bins: numbers; None for the edges that come next in ``more``,
    before the weights."""
    rest = iter(more)
    edges = [next(rest) if n is None else n for n in bins]
    return np.histogram2d(x, y, bins=edges, weights=next(rest, None), **constants)


def _with_whether_real(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives complex arrays, and whether numpy's function gives real ones."""

    def call(x: np.ndarray) -> tuple[Any, ...]:
        found = function(x)
        parts = found if isinstance(found, tuple) else (found,)
        real = all(part.dtype.kind == "f" for part in parts)
        return *[part.astype(np.result_type(part, np.complex64)) for part in parts], real

    return call


#: functions of Python that this module calls as if they were numpy's
OWN: dict[str, Any] = {
    "python.eig": _with_whether_real(np.linalg.eig),
    "python.eigvals": _with_whether_real(np.linalg.eigvals),
    "python.roots": _with_whether_real(np.roots),
    "python.round": _rounded,
    "python.quantile": _at_number(np.quantile),
    "python.nanquantile": _at_number(np.nanquantile),
    "python.histogram2d": _histogram2d,
}


def numpy_call(
    name: str,
    inputs: Sequence[Any],
    types: Sequence[tuple[Any, Sequence[bool]]],
    keywords: tuple[str, ...] = (),
    **constants: Any,
) -> list[Tensor]:
    """Return the variables of the results of a function of numpy.

    types: (dtype, which axes have the length 1 in all calls) of each result. keywords: the names of
    the last inputs, which are no positional arguments.
    """
    made = tuple((np.dtype(dtype).name, tuple(map(bool, ones))) for dtype, ones in types)
    op = NumpyCall(name, made, tuple(sorted(constants.items())), keywords)
    return op(*inputs, return_list=True)
