"""OpFromGraph: an Op that computes a graph, with gradients that the user may replace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opwise.compile.function import function
from opwise.compile.shared import SharedVariable
from opwise.config import config, thread_flags
from opwise.gradient import Rop, grad
from opwise.graph import testvalue
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.null import (
    DisconnectedType,
    NullType,
    disconnected_type,
    is_disconnected,
    is_null,
)
from opwise.graph.op import Op
from opwise.graph.traversal import inputs as leaves
from opwise.graph.traversal import io_connection_pattern, io_toposort, own_copy
from opwise.graph.type import Type
from opwise.graph.variable import Variable
from opwise.optimizers.rule import rule
from opwise.optimizers.shapefeature import inner_shapes
from opwise.scalar import dtypes
from opwise.tensor.shape import shape_i_op
from opwise.tensor.type import TensorType, tensor_type

#: a graph with more levels of graphs in it is built of one level
_MOST_LEVELS = 8
#: keywords of ``function`` that an OpFromGraph passes on to the compilation of its graph
_COMPILATION = ("mode", "accept_inplace", "profile", "on_unused_input", "name", "output_keys")


@dataclass(frozen=True)
class _Derivative:
    """Derivatives as an Op: of which terms it computes the values, and the others."""

    #: computes the terms at ``positions``; None if there is none
    op: OpFromGraph | None
    positions: tuple[int, ...]
    #: undefined and disconnected terms by position
    others: dict[int, Variable]

    def terms(self, n: int, arguments: Sequence[Variable]) -> list[Any]:
        """Return the ``n`` terms for values of the arguments; None for one that is missing."""
        found: list[Any] = [self.others.get(i) for i in range(n)]
        if self.op is not None:
            values = self.op.apply(arguments)
            for i, value in zip(self.positions, values, strict=True):
                found[i] = value
        return found


class OpFromGraph(Op):
    """An Op that computes ``outputs`` from ``inputs``, as a function compiled once would.

    inputs, outputs: lists of variables. Shared variables of the graph become further inputs of each
    Apply; other variables without an owner must be among ``inputs``.
    inline: replace the Op by its graph when a function is compiled.
    lop_overrides: what computes the gradients by the inputs. 'default': the gradient of the graph.
    A function ``(inputs, outputs, output_gradients) -> list``, each a list of variables. An
    OpFromGraph of all of these. A variable of DisconnectedType or NullType. Or a list of these, one
    for each input; its functions return one variable. The lists of a function also hold what stands
    for the shared variables of the graph; an OpFromGraph may leave it out. An override may read
    shared variables itself: their values at each call count.
    grad_overrides: the same with functions ``(inputs, output_gradients)``; at most one of both.
    rop_overrides: what computes the derivatives in a direction, of the outputs: the same with
    functions ``(inputs, eval_points)``.
    connection_pattern: a list with, for each input, a bool for each output: whether gradients flow
    between them (default: as the graph and its overrides say).
    name: printed in place of the name of the class. kwargs: ``mode`` and ``profile`` of the
    compiled graph (default: the mode of the function that the Op is in); grad_depth, an argument of
    older versions, has no effect.

    Raises TypeError if inputs or outputs are no lists of variables, and for updates and givens;
    ValueError for both lop_overrides and grad_overrides.
    """

    def __init__(
        self,
        inputs: list[Variable],
        outputs: list[Variable],
        inline: bool = False,
        lop_overrides: Any = "default",
        grad_overrides: Any = "default",
        rop_overrides: Any = "default",
        connection_pattern: list[list[bool]] | None = None,
        name: str | None = None,
        grad_depth: int = 1,
        **kwargs: Any,
    ) -> None:
        _check_interface(inputs, outputs, kwargs)
        if name is not None and not isinstance(name, str):
            raise AssertionError(f"name must be None or a string, not {name!r}")
        self.is_inline = inline
        self.name = name
        self.kwargs = kwargs
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.input_types = [var.type for var in inputs]
        self.output_types = [var.type for var in outputs]
        #: the shared variables of the graph
        self.shared_inputs = [
            var
            for var in leaves(outputs, blockers=inputs)
            if isinstance(var, SharedVariable) and var not in inputs
        ]
        #: the graph, in variables of its own; those of the shared ones come last
        self.local_inputs, self.local_outputs = own_copy([*inputs, *self.shared_inputs], outputs)
        #: how many levels of graphs are in it
        self.depth = 1 + max(map(_depth, self._nodes()), default=0)
        if self.depth > _MOST_LEVELS:
            copies = {var: var for var in self.local_inputs}
            self.local_outputs = _expanded(
                self.local_inputs, self.local_outputs, copies, _may_be_expanded
            )
            self.depth = 1 + max(map(_depth, self._nodes()), default=0)
        self._connection_pattern = connection_pattern
        self._inside: tuple[Any, Callable[..., Any]] | None = None
        if not _is_default(lop_overrides) and not _is_default(grad_overrides):
            raise ValueError(
                "lop_overrides and grad_overrides are mutually exclusive: give one of them"
            )
        if _is_default(grad_overrides):
            self.set_lop_overrides(lop_overrides)
        else:
            self.set_grad_overrides(grad_overrides)
        self.set_rop_overrides(rop_overrides)

    def _nodes(self) -> list[Apply]:
        return io_toposort(self.local_inputs, self.local_outputs)

    @property
    def _inner_outputs(self) -> Sequence[Variable]:
        return self.local_outputs

    # --- building graphs --------------------------------------------------------------------------

    def make_node(self, *inputs: Any) -> Apply:
        if len(inputs) != len(self.input_types):
            raise ValueError(
                f"Expected {len(self.input_types)} inputs, got {len(inputs)}: {self} takes "
                f"{', '.join(map(str, self.inputs)) or 'none'}"
            )
        return self._node([*inputs, *self.shared_inputs])

    def apply(self, arguments: Sequence[Variable]) -> list[Variable]:
        """Return the outputs for values of ``inputs``; of shared variables the own values count."""
        node = self._node([*arguments, *self.shared_inputs])
        testvalue.after_make_node(node)
        return node.outputs

    def _node(self, arguments: Sequence[Any]) -> Apply:
        converted = [
            own.type.filter_variable(given)
            for own, given in zip(self.local_inputs, arguments, strict=True)
        ]
        return Apply(self, converted, [type_.make_variable() for type_ in self.output_types])

    def infer_shape(self, node: Apply, shapes: Sequence[Any]) -> list[Any]:
        return inner_shapes(
            self.local_inputs, self.local_outputs, node.inputs, shapes,
            read=lambda k, d: shape_i_op(d)(node.outputs[k]),
        )  # fmt: skip

    def do_constant_folding(self, node: Apply) -> bool:
        return False  # its graph would be compiled for one call

    # --- running ----------------------------------------------------------------------------------

    def compile_inside(self, node: Apply, mode: Any, own: bool = False) -> None:
        """Compile the graph for an Apply of a function with this mode; called by FunctionMaker.

        own: whether no other Apply may run what is compiled.
        """
        try:
            node.tag.inside = self._compiled(mode) if own else self._function(mode)
        except RecursionError:
            if self.depth <= sys.getrecursionlimit() // 20:
                raise  # so few levels do not exhaust the stack: something else does
            raise RecursionError(
                f"{self} has {self.depth} levels of graphs in graphs, too many for Python's "
                f"recursion limit of {sys.getrecursionlimit()}. Raise it by sys.setrecursionlimit, "
                "or give the inner OpFromGraphs neither overrides nor a mode or a profile: "
                "such levels become one graph."
            ) from None

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        compiled = getattr(node.tag, "inside", None) or self.fn
        for storage, value in zip(output_storage, compiled(*inputs), strict=True):
            storage[0] = value

    @property
    def fn(self) -> Callable[..., Any]:
        """The compiled graph, for runs outside a function, such as those on test values."""
        return self._inside[1] if self._inside is not None else self._function(config.mode)

    def _function(self, mode: Any) -> Callable[..., Any]:
        """Return the graph compiled for a mode; the last one is kept."""
        mode = self.kwargs.get("mode") or mode
        if self._inside is None or self._inside[0] is not mode:
            self._inside = mode, self._compiled(mode)
        return self._inside[1]

    def _compiled(self, mode: Any) -> Callable[..., Any]:
        with thread_flags(compute_test_value="off", warn_float64="ignore"):
            compiled = function(
                self.local_inputs, self.local_outputs, mode=self.kwargs.get("mode") or mode,
                name=str(self), accept_inplace=self.kwargs.get("accept_inplace", False),
                profile=self.kwargs.get("profile", False), on_unused_input="ignore",
            )  # fmt: skip
        compiled.trust_input = True
        return compiled

    # --- derivatives ------------------------------------------------------------------------------

    def set_lop_overrides(self, lop_overrides: Any) -> None:
        """Replace all overrides of the gradient by ``lop_overrides``, see the class."""
        self._set_gradient("lop", lop_overrides)

    def set_grad_overrides(self, grad_overrides: Any) -> None:
        """Replace all overrides of the gradient by ``grad_overrides``, see the class."""
        self._set_gradient("grad", grad_overrides)

    def _set_gradient(self, form: str, overrides: Any) -> None:
        self._gradient_form, self._gradient_override = form, overrides
        self._gradient: _Derivative | None = None
        self._pattern: list[list[bool]] | None = None

    def set_rop_overrides(self, rop_overrides: Any) -> None:
        """Replace all overrides of the R-operator by ``rop_overrides``, see the class."""
        self._rop_override = rop_overrides
        #: by which inputs have a direction
        self._directional: dict[tuple[bool, ...], _Derivative] = {}

    def get_lop_op(self) -> OpFromGraph | None:
        """Return the Op of the gradients that are values; None if there is none."""
        return self._reverse().op

    def get_rop_op(self) -> OpFromGraph | None:
        """Return the Op of the R-operator for directions of all inputs; None if all are zero."""
        return self._forward(tuple(map(_has_direction, self.local_inputs))).op

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        if self._connection_pattern is not None:
            return self._connection_pattern
        if self._pattern is None:
            self._pattern = self._find_connections()
        return self._pattern

    def _find_connections(self) -> list[list[bool]]:
        """Return the connections inside, and those that overrides of the gradient make and cut."""
        pattern = io_connection_pattern(self.local_inputs, self.local_outputs)
        found = self._reverse()
        for i, term in found.others.items():
            if is_disconnected(term):
                pattern[i] = [False] * len(self.local_outputs)
        if found.op is not None:
            # after inputs and outputs; the shared variables that an override reads come last
            first, n = len(self.local_inputs), len(self.local_outputs)
            gradients = found.op.local_inputs[first + n : first + 2 * n]
            flows = io_connection_pattern(gradients, found.op.local_outputs)
            for k, row in enumerate(flows):
                for i, connected in zip(found.positions, row, strict=True):
                    pattern[i][k] = pattern[i][k] or connected
        return pattern

    def L_op(self, inputs: Any, outputs: Any, output_gradients: Any) -> list[Any]:
        undefined = next((g for g in output_gradients if is_null(g)), None)
        if undefined is not None:
            return [undefined for _ in inputs]
        given = [
            out.zeros_like(_gradient_type(out).dtype) if is_disconnected(g) else g
            for out, g in zip(outputs, output_gradients, strict=True)
        ]
        terms = self._reverse().terms(len(inputs), [*inputs, *outputs, *given])
        reached = [not is_disconnected(g) for g in output_gradients]
        pattern = self.connection_pattern(outputs[0].owner)
        for i, row in enumerate(pattern):
            if not any(a and b for a, b in zip(row, reached, strict=True)):
                terms[i] = disconnected_type.make_variable()
        return terms

    def R_op(self, inputs: Any, eval_points: Any) -> list[Any]:
        points = list(eval_points)
        if not _is_default(self._rop_override):
            for i, var in enumerate(inputs):
                if points[i] is None and _has_direction(var):
                    points[i] = var.zeros_like()
        given = tuple(
            point is not None and _has_direction(var)
            for var, point in zip(inputs, points, strict=True)
        )
        directions = [point for point, is_given in zip(points, given, strict=True) if is_given]
        terms = self._forward(given).terms(len(self.local_outputs), [*inputs, *directions])
        return [None if term is None or is_disconnected(term) else term for term in terms]

    def _reverse(self) -> _Derivative:
        """Return the gradients by all inputs, given inputs, outputs and output gradients."""
        if self._gradient is None:
            own, outputs = self.local_inputs, self.local_outputs
            gradients = [_gradient_type(var).make_variable() for var in outputs]
            known = {
                var: g for var, g in zip(outputs, gradients, strict=True) if not _is_discrete(var)
            }

            def default(positions: Sequence[int]) -> list[Any]:
                if not known:
                    return [disconnected_type.make_variable() for _ in positions]
                found: list[Any] = grad(
                    None, [own[i] for i in positions], disconnected_inputs="ignore",
                    return_disconnected="disconnected", null_gradients="return",
                    known_grads=known,
                )  # fmt: skip
                return found

            is_lop = self._gradient_form == "lop"
            override = _Override(
                self._gradient_override, "gradient",
                (own, outputs, gradients) if is_lop else (own, gradients),
                frozenset(own[len(self.inputs) :]),
                len(own), len(self.shared_inputs), default,
            )  # fmt: skip
            self._gradient = self._derivative(
                override, [*own, *outputs, *gradients], self._gradient_form
            )
        return self._gradient

    def _forward(self, given: tuple[bool, ...]) -> _Derivative:
        """Return the derivatives of all outputs, given inputs and the directions of some."""
        if given not in self._directional:
            own, outputs = self.local_inputs, self.local_outputs
            moving = [var for var, is_given in zip(own, given, strict=True) if is_given]
            points = [var.type.make_variable() for var in moving]

            def default(positions: Sequence[int]) -> list[Any]:
                found: list[Any] = Rop(
                    [outputs[k] for k in positions], moving, points, disconnected_outputs="ignore",
                    return_disconnected="disconnected",
                )  # fmt: skip
                return found

            shared = own[len(self.inputs) :]
            theirs = [p for var, p in zip(moving, points, strict=True) if var in shared]
            override = _Override(
                self._rop_override, "R-operator", (own, points), frozenset([*shared, *theirs]),
                len(outputs), 0, default,
            )  # fmt: skip
            self._directional[given] = self._derivative(override, [*own, *points], "rop")
        return self._directional[given]

    def _derivative(
        self, override: _Override, arguments: Sequence[Variable], suffix: str
    ) -> _Derivative:
        """Return the Op of the terms that an override, or the default, returns."""
        with thread_flags(compute_test_value="off"):
            terms = override.terms()
        others = {i: t for i, t in enumerate(terms) if is_null(t) or is_disconnected(t)}
        positions = tuple(i for i in range(len(terms)) if i not in others)
        op = None
        if positions:
            op = type(self)(
                list(arguments), [terms[i] for i in positions], inline=self.is_inline,
                name=None if self.name is None else f"{self.name}_{suffix}",
                **{k: v for k, v in self.kwargs.items() if k in ("mode", "profile")},
            )  # fmt: skip
        return _Derivative(op, positions, others)

    # --- identity ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        return f"{self.name or type(self).__name__}{{inline={self.is_inline}}}"

    def __getstate__(self) -> dict[str, Any]:
        # compiled and derived again where it is loaded
        # and the graph once: as it was given, it may have any number of levels
        return {**vars(self), "_inside": None, "_gradient": None, "_pattern": None,
                "_directional": {}, "outputs": self.local_outputs,
                "inputs": self.local_inputs[: len(self.inputs)]}  # fmt: skip


@dataclass(frozen=True)
class _Override:
    """What a user gave in place of derivatives, and what it is called with."""

    #: the argument of OpFromGraph
    given: Any
    #: what it replaces, for messages
    what: str
    #: the lists that functions are called with
    arguments: tuple[list[Variable], ...]
    #: those of them that an OpFromGraph need not take: they belong to shared variables
    implicit: frozenset[Variable]
    #: the number of derivatives
    count: int
    #: how many of them, the last ones, may be left out
    optional: int
    #: (positions) -> derivatives of the graph at these positions
    default: Callable[[Sequence[int]], list[Any]]

    def terms(self) -> list[Any]:
        """Return all derivatives; raise TypeError or ValueError if the override is invalid."""
        if isinstance(self.given, list):
            each = self._completed(self.given)
            kept = [i for i, one in enumerate(each) if _is_default(one)]
            found = dict(zip(kept, self.default(kept) if kept else [], strict=True))
            return [found[i] if i in found else self._single(one) for i, one in enumerate(each)]
        if _is_default(self.given):
            return self.default(range(self.count))
        if isinstance(self.given, Variable):
            return [self._special(self.given) for _ in range(self.count)]
        result = self._call(self.given)
        if not isinstance(result, list):
            raise TypeError(
                f"{self.what} overriding function should return a list, got "
                f'"{type(result)}": return a list of {self.count} variables'
            )
        completed = self._completed(result)
        kept = [i for i, one in enumerate(completed) if _is_default(one)]
        for i, term in zip(kept, self.default(kept) if kept else [], strict=True):
            completed[i] = term
        return completed

    def _completed(self, each: list[Any]) -> list[Any]:
        """Return a list with 'default' for each shared variable that it leaves out."""
        missing = self.count - len(each)
        if missing not in (0, self.optional):
            raise ValueError(
                f"Need to override {self.count} terms of the {self.what}, got {len(each)}: give "
                "one for each, or 'default'"
            )
        return [*each, *["default"] * missing]

    def _single(self, one: Any) -> Any:
        """Return the derivative that one element of a list of overrides gives."""
        if isinstance(one, Variable):
            return self._special(one)
        result = self._call(one)
        return result[0] if isinstance(result, list) and len(result) == 1 else result

    def _call(self, override: Any) -> Any:
        """Return what a function or an OpFromGraph returns."""
        if isinstance(override, OpFromGraph):
            flat = [var for each in self.arguments for var in each]
            explicit = [var for var in flat if var not in self.implicit]
            taken = len(override.inputs)
            if taken not in (len(flat), len(explicit)):
                raise ValueError(
                    f"expect overrider with {len(explicit)} inputs, got {taken}: "
                    f"{override} replaces a {self.what} of {len(self.arguments)} lists of variables"
                )
            return override.apply(flat if taken == len(flat) else explicit)
        if not callable(override):
            raise TypeError(
                f"{self.what} override should be (single or list of) 'default' | OpFromGraph | "
                f"callable | Variable with NullType or DisconnectedType, got {override!r}"
            )
        return override(*(list(each) for each in self.arguments))

    def _special(self, var: Variable) -> Variable:
        if not isinstance(var.type, NullType | DisconnectedType):
            raise ValueError(
                "Overriding Variable instance can only have type of DisconnectedType or NullType, "
                f"got {var.type}: to return {var}, give a function that returns it"
            )
        fresh: Variable = var.type.make_variable()
        return fresh


def _is_default(override: Any) -> bool:
    return override is None or (isinstance(override, str) and override == "default")


def _is_discrete(var: Variable) -> bool:
    return getattr(var.type, "dtype", None) in dtypes.DISCRETE


def _has_direction(var: Variable) -> bool:
    return getattr(var.type, "dtype", None) in dtypes.CONTINUOUS


def _gradient_type(var: Variable) -> Type:
    """Return the type of the gradient by an output."""
    if isinstance(var.type, TensorType) and _is_discrete(var):
        return tensor_type(config.floatX, var.type.broadcastable)
    return var.type


def _check_interface(inputs: Any, outputs: Any, kwargs: dict[str, Any]) -> None:
    """Raise TypeError for arguments of OpFromGraph that are invalid."""
    for what, given in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(given, list):
            raise TypeError(f"{what} must be list, got {type(given)}: write [...]")
        for var in given:
            if not isinstance(var, Variable):
                raise TypeError(f"inputs and outputs must be Variable instances, not {var!r}")
    if "updates" in kwargs or "givens" in kwargs:
        raise TypeError(
            "updates and givens are not allowed here: give updates to the function that the Op is "
            "in, and use theano.clone to replace variables"
        )
    unknown = [keyword for keyword in kwargs if keyword not in _COMPILATION]
    if unknown:
        raise TypeError(f"OpFromGraph got an unexpected keyword argument {unknown[0]!r}")


@rule(OpFromGraph, stage="inline_ofg_expansion")
def inline_ofg_expansion(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """op(x) -> its graph, for an OpFromGraph made with inline=True."""
    return _graph_of(node) if node.op.is_inline else None


@rule(OpFromGraph, stage="inline_ofg_on_device")
def inline_ofg_on_device(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    """op(x) -> its graph, where a device is used: a function of its own would return to the host.

    An OpFromGraph made with a mode of its own stays as it is.
    """
    return _graph_of(node) if node.op.kwargs.get("mode") is None else None


def _graph_of(node: Apply) -> list[Variable]:
    """Return a copy of the graph of an OpFromGraph on the inputs of an Apply.

    Copies the constants too, and what depends on no input: another graph may own the last copy.
    """
    op = node.op
    copies = dict(zip(op.local_inputs, node.inputs, strict=True))
    return _expanded(op.local_inputs, op.local_outputs, copies, _is_inlined, origins=True)


def _is_inlined(node: Apply) -> bool:
    return isinstance(node.op, OpFromGraph) and node.op.is_inline


def _depth(node: Apply) -> int:
    """Return how many levels of graphs are in the Op of an Apply."""
    return node.op.depth if isinstance(node.op, OpFromGraph) else 0


def _may_be_expanded(node: Apply) -> bool:
    """Return whether the graph of an Apply does what its Op does, derivatives too."""
    op = node.op
    return (
        type(op) is OpFromGraph
        and not op.kwargs
        and op._connection_pattern is None
        and _is_default(op._gradient_override)
        and _is_default(op._rop_override)
    )


def _expanded(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copies: dict[Variable, Variable],
    chosen: Callable[[Apply], bool],
    origins: bool = False,
) -> list[Variable]:
    """Return copies of the outputs of a graph, in which graphs take the place of chosen Applys.

    copies: what the inputs are replaced by. chosen: whether the graph of an Apply, at any level,
    takes its place. origins: whether the copies inherit the origins of the Applys.
    """
    found: list[Variable] = []
    #: of each level: the Applys that are left, copies of variables, and the Apply outside
    levels: list[tuple[Iterator[Apply], dict[Variable, Variable], Apply | None]]
    levels = [(iter(io_toposort(inputs, outputs)), copies, None)]
    while levels:
        nodes, known, outside = levels[-1]
        node = next(nodes, None)
        if node is None:
            levels.pop()
            results = outputs if outside is None else outside.op.local_outputs
            found = [_copied(var, known) for var in results]
            if outside is not None:
                levels[-1][1].update(zip(outside.outputs, found, strict=True))
            continue
        given = [_copied(var, known) for var in node.inputs]
        if chosen(node):
            inside = node.op
            order = io_toposort(inside.local_inputs, inside.local_outputs)
            own = dict(zip(inside.local_inputs, given, strict=True))
            levels.append((iter(order), own, node))
            continue
        new = node.clone_with_new_inputs(given)
        if origins:
            new._origins = node.origins
        known.update(zip(node.outputs, new.outputs, strict=True))
    return found


def _copied(var: Variable, known: dict[Variable, Variable]) -> Variable:
    """Return the copy of a variable; a constant is copied, since another graph may own it."""
    if var not in known:
        known[var] = var.clone()
    return known[var]


#: Ops with a compiled function inside, and the name of its attribute (a legacy table)
ops_with_inner_function: dict[Any, str] = {OpFromGraph: "fn"}
