"""The ``perform`` of one Apply, with its results checked against the declared types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.linkers.storage import Storage
from opwise.linkers.userops.python import python_code
from opwise.modes.debugging import findings
from opwise.modes.debugging.values import fitting, misfit
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.type import TensorType


def is_of_the_library(op: Op) -> bool:
    """Return whether an Op comes with opwise."""
    return type(op).__module__.partition(".")[0] == "opwise"


class CheckedPerform:
    """Runs ``perform`` of an Apply; raises InvalidValueError unless its results fit their types.

    Call it with numpy's warnings silenced.
    """

    def __init__(self, node: Apply) -> None:
        self.node = node
        self.perform = python_code(node)
        self.checks = [
            _ResultCheck(var, bool(node.op.view_map.get(var.index))) for var in node.outputs
        ]
        # Elemwise.perform silences warnings at each call; the computation below it does not
        plain = type(node.op).perform is Elemwise.perform
        self.compute = node.op.computation(node) if plain else None

    def __call__(
        self, inputs: Sequence[Any], output_storage: list[Storage] | None = None
    ) -> list[Any]:
        """Return the outputs. output_storage: what the Op finds there (default: None in each)."""
        for value in inputs:
            if value is None:
                self._check_given(inputs)
        if output_storage is None:
            if self.compute is not None:
                return [
                    check(value)
                    for check, value in zip(self.checks, self.compute(inputs), strict=True)
                ]
            output_storage = [[None] for _ in self.checks]
        self.perform(self.node, inputs, output_storage)
        return [
            check(storage[0]) for check, storage in zip(self.checks, output_storage, strict=True)
        ]

    def _check_given(self, inputs: Sequence[Any]) -> None:
        for value, var in zip(inputs, self.node.inputs, strict=True):
            if value is None and isinstance(var.type, TensorType) and not self.node.op.accepts_none:
                raise ValueError("expected an ndarray, not None")


class _ResultCheck:
    """Checks one output of an Op, and returns it in a form that later Applys may use.

    is_view: whether the Op declares it as a view of an input.
    """

    def __init__(self, variable: Variable, is_view: bool) -> None:
        self.variable, self.is_view = variable, is_view
        self.fits = fitting(variable)
        type_ = variable.type
        self.is_array = isinstance(type_, TensorType)
        plain = type(type_) is TensorType
        self.dtype = type_.numpy_dtype if plain else None
        self.ndim = type_.ndim if plain else -1
        #: the dimensions that have a length of 1
        self.ones = [d for d in range(self.ndim) if type_.broadcastable[d]]

    def __call__(self, value: Any) -> Any:
        if (
            type(value) is np.ndarray
            and value.ndim == self.ndim
            and value.dtype == self.dtype
            and value.flags.writeable
        ):
            for dim in self.ones:
                if value.shape[dim] != 1:
                    break
            else:
                return value
        if self.is_array:
            value = self._as_array(value)
        if not self.fits(value):
            out = self.variable
            raise findings.invalid_value(out, value, "perform output", misfit(out.type, value))
        return value

    def _as_array(self, value: Any) -> Any:
        if type(value) is np.ndarray:
            if not value.flags.writeable and not self.is_view:
                return np.array(value)  # later Applys may overwrite it
        elif isinstance(value, np.generic) and not self.variable.type.ndim:
            return np.asarray(value)
        return value
