"""as_op: makes an Op of a Python function."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.type import Type

#: made once: ``list | tuple`` in a call makes a new union each time
_SEQUENCES = (list, tuple)
_NUMBERS = (bool, int, float, complex, np.generic)


class FromFunctionOp(Op):
    """An Op whose values a function computes; it has no gradient.

    fn: from the values of the inputs to that of the only output, or to a list or tuple of all.
    itypes, otypes: lists of types. infer_shape: ``(node, input_shapes) -> output_shapes``, or None.
    """

    #: defined for an Op with a function that computes shapes
    infer_shape: Callable[[Apply, Any], Any]

    def __init__(
        self,
        fn: Callable[..., Any],
        itypes: Sequence[Type],
        otypes: Sequence[Type],
        infer_shape: Callable[[Apply, Any], Any] | None,
    ) -> None:
        self._fn = fn
        self.itypes, self.otypes = list(itypes), list(otypes)
        if infer_shape is not None:
            self.infer_shape = infer_shape

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        results = self._fn(*inputs)
        if type(results) is np.ndarray and len(self.otypes) == 1:  # nearly always
            output_storage[0][0] = results
            return
        if not isinstance(results, _SEQUENCES):
            results = (results,)
        if len(results) != len(output_storage):
            raise AssertionError(
                f"{self._fn.__name__} returned {len(results)} values, but otypes has "
                f"{len(output_storage)} types"
            )
        for storage, value, otype in zip(output_storage, results, self.otypes, strict=True):
            storage[0] = otype.filter(value) if isinstance(value, _NUMBERS) else value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fn == other._fn

    def __hash__(self) -> int:
        return hash((type(self), self._fn))

    def __str__(self) -> str:
        return f"FromFunctionOp{{{self._fn.__name__}}}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: the decorated function must be that of its module."""
        module, name = self._fn.__module__, self._fn.__name__
        try:
            found = load_back(module, name)
        except (ImportError, KeyError, AttributeError):
            found = None
        if found is not self:
            raise pickle.PicklingError(
                f"Can't pickle as_op(), not found as {module}.{name}: decorate a function of a "
                "module, whose name refers to the Op"
            )
        return load_back, (module, name)


def load_back(mod: str, name: str) -> Any:
    """Return what a module has under a name."""
    return getattr(importlib.import_module(mod), name)


def as_op(
    itypes: Type | Sequence[Type],
    otypes: Type | Sequence[Type],
    infer_shape: Callable[[Apply, Any], Any] | None = None,
) -> Callable[[Callable[..., Any]], FromFunctionOp]:
    """Return a decorator that makes an Op of a function.

    itypes, otypes: a type, or a list of types, of its arguments and of its results.
    infer_shape: ``(node, input_shapes) -> output_shapes``, lists of a tuple for each (default:
    shapes are known when the function has run). Raises TypeError for anything else. ::

        @as_op(itypes=[T.fmatrix, T.fmatrix], otypes=[T.fmatrix])
        def numpy_dot(a, b):
            return np.dot(a, b)
    """
    inputs, outputs = _types("itypes", itypes), _types("otypes", otypes)
    if infer_shape is not None and not callable(infer_shape):
        raise TypeError(f"infer_shape needs to be a callable, not {infer_shape!r}")

    def make_op(fn: Callable[..., Any]) -> FromFunctionOp:
        return FromFunctionOp(fn, inputs, outputs, infer_shape)

    return make_op


def _types(name: str, given: Any) -> list[Type]:
    types = list(given) if isinstance(given, list | tuple) else [given]
    for each in types:
        if not isinstance(each, Type):
            raise TypeError(
                f"{name} has to be a list of Theano types, but has {each!r}: use types such as "
                "T.fmatrix"
            )
    return types
