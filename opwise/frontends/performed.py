"""Performed: an Op of another library that runs as that library runs it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op, Storage, Values
from opwise.graph.records import ByReference
from opwise.graph.type import Type
from opwise.tensor.type import TensorType

#: from the values of the inputs to those of the outputs
Run = Callable[[list[Any]], Sequence[Any]]


class Performed(ByReference, Op):
    """An Op of another library, which has no translation, or none for these operands.

    run: computes the outputs. types: of the outputs. label: how it prints. reason: why the library
    runs it, in a few words, for profiles. key: what the Op computes; Performed Ops with equal keys
    and types are equal. view_map: as of every Op. ``run`` overwrites none of its arguments.
    """

    def __init__(
        self,
        run: Run,
        types: Sequence[Type],
        label: str,
        reason: str,
        key: Hashable,
        view_map: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> None:
        self.run = run
        self.types = tuple(types)
        self.label = label
        self.why_python = reason
        self.key = key
        self.view_map = dict(view_map)

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, list(inputs), [type_.make_variable() for type_ in self.types])

    def perform(self, node: Apply, inputs: Values, output_storage: Storage) -> None:
        results = self.run(list(inputs))
        for cell, type_, result in zip(output_storage, self.types, results, strict=True):
            if isinstance(type_, TensorType):
                # a library may compute in another dtype than it declares, or return a number
                result = np.asarray(result)
                result = result.astype(type_.numpy_dtype, casting="same_kind", copy=False)
            cell[0] = result

    def record_text(self) -> str:
        return f"{self.label} {self._identity()[1:]}"

    def do_constant_folding(self, node: Apply) -> bool:
        return False  # the library has folded what it wants folded

    def _identity(self) -> tuple[Any, ...]:
        return self.key, self.types, repr(sorted(self.view_map.items()))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other) and self._identity() == other._identity()
        )

    def __hash__(self) -> int:
        return hash((Performed, self.key, self.types))

    def __str__(self) -> str:
        return self.label
