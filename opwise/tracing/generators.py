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
from opwise.tracing.indexing import broadcast
from opwise.tracing.kinds import LoopError
from opwise.tracing.shaping import shape_of
from opwise.tracing.trace import current, untraceable
from opwise.tracing.values import (
    Number,
    Traced,
    array,
    as_traced,
    dim_variable,
    is_one,
    is_traced,
    kind_of,
    number_of,
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


#: those that take or give arrays of another kind, and have code here
_OTHERS = "choice permutation permuted shuffle multivariate_normal".split()


class Seeded(Op):
    """A new Generator in each call.

    number: tells the Generators of a function apart.
    """

    __props__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def make_node(self, *seed: Any) -> Apply:
        return Apply(self, [as_tensor_variable(x) for x in seed], [generic()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        output_storage[0][0] = np.random.default_rng(*[seed.tolist() for seed in inputs])

    def do_constant_folding(self, node: Apply) -> bool:
        return False


def default_rng(seed: Any = None) -> Any:
    """Return what ``numpy.random.default_rng`` does, of the traced function's own."""
    trace = current()
    if isinstance(seed, np.random.Generator | TracedGenerator) or trace is None:
        return seed if isinstance(seed, TracedGenerator) else np.random.default_rng(seed)
    trace.generators += 1
    given = [] if seed is None else [
        number_variable(seed) if type(seed) is Number else as_traced(seed).variable
    ]  # fmt: skip
    return TracedGenerator(Seeded(trace.generators)(*given))


class Draw(Op):
    """A draw of numbers: the generator, which it advances, and what is drawn.

    name: of the method. parameters: names of the keywords that inputs give. constants: (keyword,
    value) pairs. ndim: the number of inputs that are lengths; None for a draw without size=. dtype,
    ones: of the result.
    """

    __props__ = ("name", "parameters", "constants", "ndim", "dtype", "ones")

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        constants: tuple[tuple[str, Any], ...],
        ndim: int | None,
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
        lengths = self.ndim or 0
        given = dict(zip(self.parameters, values[lengths:], strict=True))
        given = {k: v if v.ndim else v[()] for k, v in given.items()} | dict(self.constants)
        if self.ndim is not None:
            given["size"] = tuple(int(n) for n in values[:lengths])
        if self.name == "shuffle":
            drawn = given["x"] = given["x"].copy()
            generator.shuffle(**given)
        else:
            drawn = getattr(generator, self.name)(**given)
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
        if name not in _DRAWS and name not in _OTHERS:
            raise untraceable(
                f"Generator.{name} cannot be traced.",
                f"These can: {', '.join((*_DRAWS, *_OTHERS))}. Draw others before, and pass them "
                "as arguments.",
            )
        return lambda *args, **kwargs: self._call(name, args, kwargs)

    def _call(self, name: str, args: Any, kwargs: Any) -> Any:
        trace = current()
        if trace is not None and trace.speculative:
            raise LoopError(
                f"it calls {name} of a Generator", "Draw an array before, and take its elements."
            )
        bound = dict(_signature(name).bind(None, *args, **kwargs).arguments)
        bound.pop("self", None)
        if bound.pop("out", None) is not None:
            raise untraceable(f"Generator.{name} with out= cannot be traced.", "Give size=.")
        size = bound.pop("size", None)
        own = getattr(TracedGenerator, f"_{name}" if name in _OTHERS else "_plain")
        return own(self, name, bound, size)

    def _plain(self, name: str, bound: dict[str, Any], size: Any) -> Any:
        default = np.int64 if name in _INTEGERS else np.float64
        kind = np.dtype(bound.get("dtype", default))
        arrays = [as_traced(v) for v in bound.values() if not isinstance(v, str | type | np.dtype)]
        if size is None and any(v.ndim for v in arrays):
            return array(*self._draw(name, bound, None, kind, broadcast(arrays)[1]))
        drawn, dims = self._draw(name, bound, () if size is None else size, kind)
        if size is not None:
            return array(drawn, dims)
        if name == "integers":
            return array(drawn, (), True)
        if kind.itemsize < 8:
            raise untraceable(f"Generator.{name} of {kind} without size= cannot be traced.", "")
        # numpy gives a number of Python
        return Number("i" if name in _INTEGERS else "f", drawn)

    def _choice(self, name: str, bound: dict[str, Any], size: Any) -> Any:
        axis, given = bound.get("axis", 0), as_traced(bound["a"])
        kept = [d for k, d in enumerate(given.dims) if k != axis % max(given.ndim, 1)]
        drawn, dims = shape_of(() if size is None else size), tuple(kept)
        made = self._draw(name, bound, size, given.dtype, (*dims[:axis], *drawn, *dims[axis:]))
        if size is None and not given.ndim:
            return Number("i", made[0])
        return array(*made, size is None and given.ndim == 1)

    def _permutation(self, name: str, bound: dict[str, Any], size: Any) -> Any:
        x = bound["x"]
        given = as_traced(x)
        dims = given.dims or (x if type(x) is Number else number_of(x),)
        kind = given.dtype if given.ndim else np.dtype(np.int64)
        return array(*self._draw(name, bound, None, kind, dims))

    def _permuted(self, name: str, bound: dict[str, Any], size: Any) -> Any:
        x = as_traced(bound["x"])
        return array(*self._draw(name, bound, None, x.dtype, x.dims))

    def _shuffle(self, name: str, bound: dict[str, Any], size: Any) -> None:
        x = bound["x"]
        if type(x) is not Traced:
            raise untraceable(f"shuffle of {type(x).__name__} cannot be traced.", "Use an array.")
        drawn, _ = self._draw(name, bound, None, x.dtype, x.dims)
        x.write(drawn)

    def _multivariate_normal(self, name: str, bound: dict[str, Any], size: Any) -> Any:
        count = as_traced(bound["mean"]).dims[0]
        dims = shape_of(() if size is None else size)
        return array(*self._draw(name, bound, size, np.dtype(float), (*dims, count)))

    def _draw(
        self, name: str, bound: dict[str, Any], size: Any, kind: Any, dims: Any = None
    ) -> tuple[Any, Any]:
        """Draw; return the variable and its lengths. size: what numpy is given; None for none."""
        lengths = () if size is None else shape_of(size)
        inputs, names, constants = [], [], []
        for key, value in bound.items():
            if is_traced(value) or isinstance(value, np.ndarray | list | tuple):
                names.append(key)
                inputs.append(
                    number_variable(value) if type(value) is Number else as_traced(value).variable
                )
            elif value is None or kind_of(value) is not None or isinstance(
                value, np.generic | str | type
            ):  # fmt: skip
                constants.append((key, value))
            else:
                raise untraceable(f"Generator.{name} with {key}={value!r} cannot be traced.", "")
        made = lengths if dims is None else tuple(dims)
        op = Draw(
            name, tuple(names), tuple(constants), None if size is None else len(lengths),
            kind.name, tuple(map(is_one, made)),
        )  # fmt: skip
        self.variable, drawn = op(self.variable, *map(dim_variable, lengths), *inputs)
        self.draws += 1
        return drawn, made


def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(np.random.Generator, name))
