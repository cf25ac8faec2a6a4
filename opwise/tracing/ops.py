"""``NumpyCall``: an Op that lets numpy compute what opwise has no Op for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.errors import GradNotDefined
from opwise.graph.apply import Apply
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
        raise GradNotDefined(f"numpy.{self.name} has no derivative in opwise")

    def __str__(self) -> str:
        return f"numpy.{self.name}"


@functools.lru_cache(maxsize=1024)
def _prepared(name: str, constants: Any, types: Any) -> tuple[Any, tuple[np.dtype[Any], ...]]:
    """Return (the function with its constants, the dtypes of the results)."""
    made = functools.partial(numpy_function(name), **dict(constants))
    return made, tuple(np.dtype(dtype) for dtype, _ in types)


def numpy_function(name: str) -> Any:
    """Return the function of numpy with a dotted name, or one of this module."""
    return OWN.get(name) or functools.reduce(getattr, name.split("."), np)


def _at_number(function: Any) -> Any:
    """Return a function of numpy whose second argument is a number of Python, without a dtype."""
    return lambda x, q, **constants: function(x, q.item(), **constants)


def _rounded(x: np.ndarray, digits: np.ndarray) -> float:
    return round(x.item(), digits.item())


#: functions of Python that this module calls as if they were numpy's
OWN: dict[str, Any] = {
    "python.round": _rounded,
    "python.quantile": _at_number(np.quantile),
    "python.nanquantile": _at_number(np.nanquantile),
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
