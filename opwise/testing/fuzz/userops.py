"""Ops as users write them, for random programs: of every number of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opwise.tensor as T
from opwise.compile.fromgraph import OpFromGraph
from opwise.graph.apply import Apply
from opwise.graph.fromfunction import FromFunctionOp
from opwise.graph.null import disconnected_type, is_disconnected
from opwise.graph.op import Op
from opwise.graph.type import generic
from opwise.tensor.elemwise import elemwise
from opwise.testing.fuzz.layouts import Array


class Source(Op):
    """Takes nothing: 0, 1, 2, ... in a dtype and shape. says: whether it infers its shape."""

    __props__ = ("dtype", "shape", "says")

    def __init__(self, dtype: str, shape: tuple[int, ...], says: bool) -> None:
        self.dtype, self.shape, self.says = dtype, shape, says
        if says:
            self.infer_shape = self._infer_shape

    def make_node(self) -> Apply:
        return Apply(self, [], [T.TensorType(self.dtype, [n == 1 for n in self.shape])()])

    def _infer_shape(self, node: Apply, shapes: Any) -> list[tuple[int, ...]]:
        return [self.shape]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = _counted(self.dtype, self.shape)


def _counted(dtype: str, shape: tuple[int, ...]) -> Array:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def source(dtype: str, shape: tuple[int, ...]) -> Any:
    """Return what a function of no arguments gives: 0, 1, 2, ..."""

    def count() -> Array:
        return _counted(dtype, shape)

    return FromFunctionOp(count, [], [T.TensorType(dtype, [n == 1 for n in shape])], None)()


class Several(Op):
    """x -> 2 x, its first row or itself if it has none, and the lengths of x; each may be unused.

    says: whether it infers shapes.
    """

    __props__ = ("says",)

    def __init__(self, says: bool) -> None:
        self.says = says
        if says:
            self.infer_shape = self._infer_shape

    def make_node(self, x: Any) -> Apply:
        row = T.TensorType(x.type.dtype, x.type.broadcastable[1:])
        return Apply(self, [x], [x.type(), row(), T.TensorType("int64", (False,))()])

    def _infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        ((*lengths,),) = shapes
        return [lengths, lengths[1:], (len(lengths),)]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        (x,) = inputs
        outputs[0][0] = np.asarray(x + x)
        outputs[1][0] = np.array(x[0] if len(x) else np.zeros(x.shape[1:], x.dtype))
        outputs[2][0] = np.array(x.shape, "int64")

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[True, True, False]]

    def L_op(self, inputs: Any, outputs: Any, output_gradients: Any) -> list[Any]:
        (x,), (of_all, of_row, _) = inputs, output_gradients
        found = T.zeros_like(x) if is_disconnected(of_all) else of_all * 2
        return [found if is_disconnected(of_row) else T.inc_subtensor(found[:1], of_row)]


class Viewing(Op):
    """x -> a view of x. reverse: with its rows in reverse order."""

    __props__ = ("reverse",)
    view_map = {0: [0]}

    def __init__(self, reverse: bool) -> None:
        self.reverse = reverse

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        return shapes

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = inputs[0][::-1] if self.reverse else inputs[0]

    def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
        return [g[::-1] if self.reverse else g for g in output_gradients]


class Boxed(Op):
    """x -> a list of x, which is no tensor; and back."""

    __props__ = ("dtype", "broadcastable")

    def __init__(self, dtype: str, broadcastable: tuple[bool, ...]) -> None:
        self.dtype, self.broadcastable = dtype, broadcastable

    def make_node(self, x: Any) -> Apply:
        opens = x.type == generic
        return Apply(
            self, [x], [T.TensorType(self.dtype, self.broadcastable)() if opens else generic()]
        )

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        (x,) = inputs
        outputs[0][0] = x[0].copy() if isinstance(x, list) else [x.copy()]

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False]]

    def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
        return [disconnected_type.make_variable()]


def boxed(x: Any) -> Any:
    """Return x, out of a box."""
    box = Boxed(x.type.dtype, x.type.broadcastable)
    return box(box(x))


class Lazy(Op):
    """c, x, y -> x if c, else y; its thunk computes only one of them."""

    __props__ = ()

    def make_node(self, c: Any, x: Any, y: Any) -> Apply:
        return Apply(self, [c, x, y], [x.type()])

    def make_thunk(  # type: ignore[override]  # (its thunk returns what it asks for)
        self, node: Apply, storage_map: Any, compute_map: Any, no_recycling: Any, impl: Any = None
    ) -> Any:
        values = [storage_map[var] for var in node.inputs]
        computed = [compute_map[var] for var in node.inputs]
        (out,) = node.outputs

        def thunk() -> list[int]:
            if not computed[0][0]:
                return [0]
            k = 1 if values[0][0] else 2
            if not computed[k][0]:
                return [k]
            storage_map[out][0] = values[k][0].copy()
            compute_map[out][0] = True
            return []

        thunk.lazy = True  # type: ignore[attr-defined]
        return thunk

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        return [[False], [True], [True]]

    def grad(self, inputs: Any, output_gradients: Any) -> list[Any]:
        (g,), chosen = output_gradients, elemwise("neq")(inputs[0], 0)
        slopes = [elemwise("switch")(chosen, g, 0), elemwise("switch")(chosen, 0, g)]
        return [disconnected_type.make_variable(), *slopes]


def graph(build: Callable[..., Any], *arguments: Any, **options: Any) -> list[Any]:
    """Return the outputs of an OpFromGraph of what ``build`` makes of variables.

    build: a function from variables to one or a list. arguments: what the graph is applied to.
    """
    inputs = [var.type() for var in arguments]
    made = build(*inputs)
    outputs = list(made) if isinstance(made, Sequence) else [made]
    applied = OpFromGraph(inputs, outputs, **options)(*arguments)
    return list(applied) if isinstance(applied, list) else [applied]
