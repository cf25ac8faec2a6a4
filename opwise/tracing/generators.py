"""``numpy.random.Generator`` arguments: numpy draws, in the order of the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.type import generic
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable
from opwise.tracing.shaping import shape_of
from opwise.tracing.trace import current, untraceable
from opwise.tracing.values import (
    Number,
    array,
    as_traced,
    dim_variable,
    is_one,
    is_traced,
    kind_of,
    number_variable,
)

#: methods of a Generator that draw arrays of a given size, and their parameters before it
_DRAWS = (
    "random standard_normal standard_exponential normal uniform exponential poisson integers "
    "binomial gamma beta chisquare laplace logistic lognormal geometric rayleigh standard_gamma "
    "standard_t standard_cauchy triangular weibull vonmises"
).split()


#: those that draw integers
_INTEGERS = frozenset(("integers", "poisson", "binomial", "geometric"))


class Draw(Op):
    """A draw of numbers: the generator, which it advances, and what is drawn.

    name: of the method. parameters: names of the keywords that inputs give. constants: (keyword,
    value) pairs. ndim: the number of inputs that are lengths. dtype, ones: of the result.
    """

    __props__ = ("name", "parameters", "constants", "ndim", "dtype", "ones")

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        constants: tuple[tuple[str, Any], ...],
        ndim: int,
        dtype: str,
        ones: tuple[bool, ...],
    ) -> None:
        self.name, self.parameters, self.constants = name, parameters, constants
        self.ndim, self.dtype, self.ones = ndim, dtype, ones

    def make_node(self, generator: Any, *inputs: Any) -> Apply:
        made = [as_tensor_variable(x) for x in inputs]
        return Apply(self, [generator, *made], [generic(), tensor_type(self.dtype, self.ones)()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        generator, *values = inputs
        size = tuple(int(n) for n in values[: self.ndim])
        given = dict(zip(self.parameters, values[self.ndim :], strict=True))
        drawn = getattr(generator, self.name)(
            **{k: v[()] for k, v in given.items()}, **dict(self.constants), size=size
        )
        output_storage[0][0] = generator
        output_storage[1][0] = np.asarray(drawn, self.dtype)

    def do_constant_folding(self, node: Apply) -> bool:
        return False

    def __str__(self) -> str:
        return f"Generator.{self.name}"


class TracedGenerator:
    """A Generator of which the program knows the methods only."""

    def __init__(self, variable: Any) -> None:
        #: the generator after the draws so far
        self.variable = variable
        self.draws = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in _DRAWS:
            raise untraceable(
                f"Generator.{name} cannot be traced.",
                f"These can: {', '.join(_DRAWS)}. Draw others before, and pass them as arguments.",
            )
        return lambda *args, **kwargs: self._draw(name, args, kwargs)

    def _draw(self, name: str, args: Any, kwargs: Any) -> Any:
        trace = current()
        if trace is not None and trace.speculative:
            raise untraceable(
                f"Generator.{name} in a branch or a loop that calls decide cannot be traced.",
                "Draw an array before it, and take its elements.",
            )
        bound = dict(_signature(name).bind(None, *args, **kwargs).arguments)
        bound.pop("self", None)
        if bound.pop("out", None) is not None:
            raise untraceable(f"Generator.{name} with out= cannot be traced.", "Give size=.")
        size = bound.pop("size", None)
        dims = () if size is None else shape_of(size)
        inputs, names, constants = [], [], []
        for key, value in bound.items():
            if is_traced(value) or isinstance(value, np.ndarray):
                traced = as_traced(value)
                if traced.ndim:
                    raise untraceable(
                        f"Generator.{name} with arrays of parameters cannot be traced.",
                        "Draw standard numbers, and scale and shift them.",
                    )
                names.append(key)
                inputs.append(number_variable(value) if type(value) is Number else traced.variable)
            elif kind_of(value) is not None or isinstance(value, np.generic | str | type):
                constants.append((key, value))
            else:
                raise untraceable(f"Generator.{name} with {key}={value!r} cannot be traced.", "")
        default = np.int64 if name in _INTEGERS else np.float64
        kind = np.dtype(bound.get("dtype", default))
        ones = tuple(map(is_one, dims))
        op = Draw(name, tuple(names), tuple(constants), len(dims), kind.name, ones)
        self.variable, drawn = op(self.variable, *map(dim_variable, dims), *inputs)
        self.draws += 1
        if size is not None:
            return array(drawn, dims)
        if name == "integers":
            return array(drawn, (), True)
        if kind.itemsize < 8:
            raise untraceable(f"Generator.{name} of {kind} without size= cannot be traced.", "")
        # numpy gives a number of Python
        return Number("i" if name in _INTEGERS else "f", drawn)


def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(np.random.Generator, name))
