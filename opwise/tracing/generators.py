"""``numpy.random.Generator`` arguments: numpy draws, in the order of the function."""

from __future__ import annotations

import ctypes
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from opwise import tensor as T
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.traversal import ancestors, clone_replace
from opwise.graph.type import Generic
from opwise.linkers.lowering import RunnerStep, c_lowering
from opwise.linkers.opwise_c import Source, TracedDraw, draw_in_turn
from opwise.tensor.ifelse import ifelse
from opwise.tensor.type import tensor_type
from opwise.tensor.variable import as_tensor_variable
from opwise.tracing.indexing import broadcast
from opwise.tracing.shaping import shape_of
from opwise.tracing.trace import current, untraceable
from opwise.tracing.values import (
    Number,
    Root,
    Traced,
    array,
    as_traced,
    constant_of,
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


class GeneratorType(Generic):
    """The type of a Generator: one object, which draws advance and hand on."""

    def __repr__(self) -> str:
        return "generator"


generator = GeneratorType()


class Seeded(Op):
    """A new Generator in each call.

    number: tells the Generators of a function apart.
    """

    __props__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def make_node(self, *seed: Any) -> Apply:
        return Apply(self, [as_tensor_variable(x) for x in seed], [generator()])

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

    conditional: whether the first input, a bool, says whether to draw. Zeros are the result of no
    draw: a branch may not be left out for it, since the order in which a VM computes what stands in
    branches is its own. name: of the method. parameters: names of the keywords that inputs give.
    constants: (keyword, value) pairs. ndim: the number of inputs that are lengths; None for a draw
    without size=. dtype, ones: of the result.
    """

    __props__ = ("name", "parameters", "constants", "ndim", "dtype", "ones", "conditional")

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        constants: tuple[tuple[str, Any], ...],
        ndim: int | None,
        dtype: str,
        ones: tuple[bool, ...],
        conditional: bool = False,
    ) -> None:
        self.conditional = conditional
        self.name, self.parameters, self.constants = name, parameters, constants
        self.ndim, self.dtype, self.ones = ndim, dtype, ones

    def make_node(self, state: Any, *inputs: Any) -> Apply:
        made = [as_tensor_variable(x) for x in inputs]
        return Apply(self, [state, *made], [generator(), tensor_type(self.dtype, self.ones)()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        state, *values = inputs
        output_storage[0][0] = state
        output_storage[1][0] = (
            np.asarray(self.method(state, values)(), self.dtype) if self.draws(values)
            else np.zeros(self.lengths(values) or (0,) * len(self.ones), self.dtype)
        )  # fmt: skip

    def draws(self, values: Any) -> bool:
        """Return whether the inputs let it draw."""
        return not self.conditional or bool(values[0])

    def lengths(self, values: Any) -> tuple[int, ...]:
        """Return the lengths among the inputs."""
        return tuple(map(int, values[self.conditional : self.conditional + (self.ndim or 0)]))

    @property
    def first(self) -> int:
        """The number of the first input behind the generator that is a parameter."""
        return self.conditional + (self.ndim or 0)

    def __reduce__(self) -> Any:
        return Draw, tuple(getattr(self, name) for name in self.__props__)

    @functools.cached_property
    def method(self) -> Callable[[Any, Any], Callable[[], Any]]:
        """A function from a generator and the inputs of a draw to what draws."""
        where: dict[str, Any] = {k: self.first + i for i, k in enumerate(self.parameters)}
        given = [*where, *dict(self.constants), *(["size"] if self.ndim is not None else [])]
        # numpy reads positional arguments faster
        order = list(_signature(self.name).parameters.values())[1:]
        first: list[str] = []
        for name, kind in ((p.name, p.kind) for p in order if self.name != "shuffle"):
            if name not in given or name == "dtype" or kind is inspect.Parameter.KEYWORD_ONLY:
                break
            first.append(name)
        named, constants = [name for name in given if name not in first], dict(self.constants)

        def value(name: str, values: Any) -> Any:
            if name not in where:
                return self.lengths(values) if name == "size" else constants[name]
            found = values[where[name]]
            return found if found.ndim else found.item()

        def method(state: Any, values: Any) -> Callable[[], Any]:
            function = getattr(state, self.name)
            if self.name == "shuffle":
                function = functools.partial(_shuffled, function)
            return functools.partial(
                function, *[value(k, values) for k in first], **{k: value(k, values) for k in named}
            )

        return method

    @property
    def fills(self) -> bool:
        """Whether more numbers at once are those of as many draws."""
        return self.name in _DRAWS or (self.name == "choice" and self._replaces)

    @property
    def _replaces(self) -> bool:
        return "replace" not in self.parameters and dict(self.constants).get("replace", True)

    def do_constant_folding(self, node: Apply) -> bool:
        return False

    def __str__(self) -> str:
        return f"Generator.{self.name}"


def _shuffled(method: Any, x: np.ndarray, **given: Any) -> np.ndarray:
    drawn = x.copy()
    method(drawn, **given)
    return drawn


#: {a method of a Generator: the C function by which numpy does it, its parameters and what they
#: are by default}; their dtypes are those that the methods have by default
_IN_C: dict[str, tuple[str, dict[str, Any]]] = {
    "random": ("random_standard_uniform", {}),
    "standard_normal": ("random_standard_normal", {}),
    "standard_exponential": ("random_standard_exponential", {}),
    "exponential": ("random_exponential", {"scale": 1.0}),
    "normal": ("random_normal", {"loc": 0.0, "scale": 1.0}),
    "uniform": ("random_uniform", {"low": 0.0, "high": 1.0}),
    "integers": ("random_bounded_uint64_fill", {"low": 0, "high": None}),
}


@functools.cache
def _sources() -> dict[str, Source]:
    """Return {a method: what draws in C}, for those of numpy's functions that are found.

    Each is tried out: it has to draw the numbers of the method, and leave the same state.
    """
    library = ctypes.CDLL(importlib.import_module("numpy.random._generator").__file__ or "")
    found = {}
    for method, (name, parameters) in _IN_C.items():
        function = getattr(library, name, None)
        if function is None:
            continue
        source = Source(method, ctypes.cast(function, ctypes.c_void_p).value or 0)
        given = [(3, 17)] if method == "integers" else [(0.5, 1.5)]
        own, numpys = np.random.default_rng(5), np.random.default_rng(5)
        drawn = draw_in_turn(own, 1000, [source], given)
        args = given[0][: len(parameters)]
        wanted = [getattr(numpys, method)(*args) for _ in range(1000)]
        same = own.bit_generator.state == numpys.bit_generator.state
        if drawn is not None and same and np.array_equal(drawn[0], wanted):
            found[method] = source
    return found


def _in_c(draw: Draw) -> tuple[Source, list[Any]] | None:
    """Return (what draws in C, two parameters: a number, or [the number of an input]), or None."""
    if draw.name not in _IN_C or draw.name not in _sources():
        return None
    given: dict[str, Any] = {k: [1 + draw.first + i] for i, k in enumerate(draw.parameters)}
    given |= dict(draw.constants)
    kind = given.pop("dtype", None)
    if kind is not None and np.dtype(kind) != (np.int64 if draw.name == "integers" else float):
        return None
    if given.pop("endpoint", False) is not False or given.pop("method", "zig") != "zig":
        return None
    defaults = _IN_C[draw.name][1]
    if not given.keys() <= defaults.keys():
        return None
    values = list({**defaults, **given}.values())
    if draw.name == "integers" and values[1] is None:
        values = [0, values[0]]
    whole = (int, np.integer) if draw.name == "integers" else (int, float, np.number)
    if not all(isinstance(v, (list, *whole)) for v in values):
        return None
    return _sources()[draw.name], [*values, 0.0, 0.0][:2]


@c_lowering(Draw, any_type=True)
def _draw_in_c(node: Apply, kernels: Any) -> RunnerStep | None:
    draw, inputs = node.op, node.inputs[1:]
    wanted = ("int64",) if draw.name == "integers" else ("int64", "float64")
    if any(v.type.ndim or v.type.dtype not in wanted for v in inputs[draw.first :]):
        return None
    if any(v.type.dtype != "int64" for v in inputs[draw.conditional : draw.first]):
        return None
    found, lengths = _in_c(draw), draw.ndim or 0
    if found is None or node.outputs[1].type.ndim != lengths:
        return None
    source, (one, two) = found
    return RunnerStep(lambda: TracedDraw(source, draw.conditional, lengths, one, two, draw.perform))


class DrawRows(Op):
    """The draws of all steps of a loop, each of which makes the same ones.

    draws: those of a step, in their order. inputs: the generator, the number of steps, the inputs
    of each draw. outputs: the generator, and an array with a row for each step of each draw.
    """

    __props__ = ("draws",)

    def __init__(self, draws: tuple[Draw, ...]) -> None:
        self.draws = draws

    def make_node(self, state: Any, steps: Any, *inputs: Any) -> Apply:
        made = [as_tensor_variable(x) for x in (steps, *inputs)]
        rows = [tensor_type(draw.dtype, (False, *draw.ones))() for draw in self.draws]
        return Apply(self, [state, *made], [generator(), *rows])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        state, steps, *values = inputs
        count, rest, given = int(steps), list(values), []
        for draw in self.draws:
            number = draw.first + len(draw.parameters)
            given.append(rest[:number])
            rest = rest[number:]
        if not all(map(Draw.draws, self.draws, given)):
            count = 0  # the loop takes no step then
        rows = self._at_once(state, count, given)
        if rows is None:
            rows = self._in_turn(state, count, given)
        if rows is None:
            calls = [draw.method(state, v) for draw, v in zip(self.draws, given, strict=True)]
            drawn: list[list[Any]] = [[] for _ in calls]
            pairs = [(call, row.append) for call, row in zip(calls, drawn, strict=True)]
            for _ in range(count):
                for call, add in pairs:
                    add(call())
            rows = [
                np.array(row, draw.dtype).reshape(count, *draw.lengths(v))
                for row, draw, v in zip(drawn, self.draws, given, strict=True)
            ]
        output_storage[0][0] = state
        for storage, row in zip(output_storage[1:], rows, strict=True):
            storage[0] = row

    def _in_turn(self, state: Any, count: int, given: list[Any]) -> Any:
        """Return the rows by C, if it draws what all draws do, which are of single numbers."""
        sources, parameters = [], []
        for draw, values in zip(self.draws, given, strict=True):
            found = None if draw.ndim else _in_c(draw)
            if found is None:
                return None
            sources.append(found[0])
            parameters.append(
                tuple(values[p[0] - 1].item() if isinstance(p, list) else p for p in found[1])
            )
        return draw_in_turn(state, count, sources, parameters)

    @functools.cached_property
    def _whole(self) -> Draw | None:
        """The draw of the numbers of all steps, if numpy draws them at once; else None."""
        first = self.draws[0]
        if not first.fills or any(draw != first for draw in self.draws):
            return None
        return Draw(
            first.name, first.parameters, first.constants, 2 + (first.ndim or 0), first.dtype,
            (False, False, *first.ones),
        )  # fmt: skip

    def _at_once(self, state: Any, count: int, given: list[Any]) -> Any:
        """Return the rows by one call of numpy, if all draws are the same; else None."""
        whole, number = self._whole, len(self.draws)
        if whole is None or any(not all(map(np.array_equal, v, given[0])) for v in given[1:]):
            return None
        given_once = given[0][self.draws[0].conditional :]
        drawn = whole.method(state, [np.asarray(count), np.asarray(number), *given_once])()
        return [np.ascontiguousarray(drawn[:, k], whole.dtype) for k in range(number)]

    def __reduce__(self) -> Any:
        return DrawRows, (self.draws,)

    def do_constant_folding(self, node: Apply) -> bool:
        return False


#: how many numbers a step may draw for them to be drawn before the loop, all at once
MOST_AT_ONCE = 64


def drawn_before(
    state: Any, before: Any, after: Any, steps: Any, fixed: dict[Any, Any], moving: set[Any]
) -> tuple[Any, dict[Any, Any]] | None:
    """Return (a generator after a loop, {what its step draws: the rows}), if draws can be made
    before the loop; else None.

    state: the variable of the generator in the step. before, after: those before the loop and after
    the step. steps: their number. fixed: {a variable of the step: its value}. moving: the variables
    of the step that have other values in each.
    """
    nodes: list[Apply] = []
    while after is not state:
        node = after.owner
        if node is None or not isinstance(node.op, Draw):
            return None
        sizes = [constant_of(v) for v in node.inputs[1 + node.op.conditional : 1 + node.op.first]]
        if any(size is None for size in sizes) or len(sizes) != node.outputs[1].type.ndim:
            return None
        if np.prod(sizes, initial=1) > MOST_AT_ONCE or not (
            moving.isdisjoint(ancestors(node.inputs[1:]))
        ):
            return None
        nodes.append(node)
        after = node.inputs[0]
    nodes.reverse()
    inputs = clone_replace([v for node in nodes for v in node.inputs[1:]], fixed)
    op = DrawRows(tuple(node.op for node in nodes))
    done, *rows = op(before, steps, *inputs, return_list=True)
    return done, {node.outputs[1]: row for node, row in zip(nodes, rows, strict=True)}


class TracedGenerator:
    """A Generator of which the program knows the methods only."""

    def __init__(self, variable: Any) -> None:
        #: what holds the generator after the draws so far
        self.root = Root(variable)

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
        trace = current()
        when = None if trace is None else trace.condition()
        given = [*map(dim_variable, lengths), *inputs]
        if when is not None:  # what a branch would not compute is not computed
            given = [
                each if isinstance(each, int) or each.owner is None else
                ifelse(when, each, T.zeros([0] * each.type.ndim, each.type.dtype))
                for each in map(as_tensor_variable, given)
            ]  # fmt: skip
            given = [when, *given]
        op = Draw(
            name, tuple(names), tuple(constants), None if size is None else len(lengths),
            kind.name, tuple(map(is_one, made)), when is not None,
        )  # fmt: skip
        state, drawn = op(self.root.variable, *given)
        self.root.write(state)
        return drawn, made


def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(np.random.Generator, name))
