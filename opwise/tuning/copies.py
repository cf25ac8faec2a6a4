"""Copies of a compiled function that share no state with it, under another mode or in other dtypes.

A copy is made from the graph as the user wrote it, and has its own storage for shared variables.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from opwise.compile.construct import Construction, Graph, construct
from opwise.compile.executable import Function
from opwise.compile.io import In, Out
from opwise.compile.maker import FunctionMaker
from opwise.graph import provenance, traversal
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.printing import Print
from opwise.graph.type import Type
from opwise.graph.variable import Constant, Variable
from opwise.linkers.base import VM_Linker
from opwise.linkers.storage import Container
from opwise.linkers.wrap import DualLinker, WrapLinker
from opwise.modes.mode import Mode
from opwise.modes.nanguardmode import NanGuardMode
from opwise.profiling.process import pause_garbage_collection
from opwise.scalar.op import Cast, cast_op
from opwise.scalar.types import Scalar
from opwise.tensor.elemwise import Elemwise, cast_elemwise
from opwise.tensor.type import TensorType, tensor_type

#: {dtype: the dtype to compute in instead}
Change = dict[str, str]
#: called with an Apply whose result keeps the old dtype
Note = Callable[[Apply], object]


def private_mode(mode: Mode) -> tuple[Mode, bool]:
    """Return a copy of a mode with its own records, and whether callbacks were dropped."""
    mode = copy.copy(mode)
    linker = mode.linker
    calls_back = (isinstance(linker, WrapLinker) and not isinstance(linker, DualLinker)) or (
        isinstance(linker, VM_Linker)
        and (linker.callback is not None or linker.callback_input is not None)
        and not isinstance(mode, NanGuardMode)
    )
    return (Mode("c|py", mode._optimizer), True) if calls_back else (mode, False)


def copied(
    function: Function, mode: Mode, change: Change | None = None, note: Note | None = None
) -> Function:
    """Return a copy of a function under a mode; see ``maker_of``."""
    made: Function = maker_of(function, mode, change, note).create()
    return made


@pause_garbage_collection()
def maker_of(
    function: Function, mode: Mode, change: Change | None = None, note: Note | None = None
) -> FunctionMaker:
    """Return the maker of a copy of a function, with the present values of its state.

    change: {dtype: the dtype to compute in instead}. note: called with each Apply whose result
    keeps the old dtype although its inputs have the new one; the result is then cast.
    """
    maker, change = function.maker, change or {}
    values = {
        spec.variable: container.data
        for spec, container in zip(maker.inputs, function.input_storage, strict=True)
    }
    with provenance.rewriting():
        made = _graph_copied(maker, change, note)
    made = replace(made, inputs=_own_inputs(made, values, change))
    return FunctionMaker(
        made, mode, name=maker.name, profile=False, accept_inplace=maker.accept_inplace,
        output_none=maker.output_none,
    )  # fmt: skip


def as_written(function: Function) -> list[Apply]:
    """Return the Applys of a function's graph as the user wrote it, in topological order."""
    made = construct(**function.maker.construction.arguments)
    order: list[Apply] = traversal.io_toposort(made.graph_inputs, made.graph_outputs)
    return order


def converted(spec: In, value: Any, change: Change | None = None) -> Any:
    """Return an argument converted to the type of its input, with its dtype changed.

    Raises what the type of the input raises.
    """
    type_ = spec.variable.type
    if value is None:
        return None
    value = type_.filter(value, strict=spec.strict, allow_downcast=spec.allow_downcast)
    return _cast_value(type_, value, change or {})


# --- state ----------------------------------------------------------------------------------------


def _own_inputs(made: Construction, values: dict[Variable, Any], change: Change) -> list[In]:
    """Return the In objects of a construction, with their own storage for all state."""
    containers: dict[int, Container] = {}
    specs: list[In] = []
    for spec, var in zip(made.inputs, made.graph_inputs, strict=True):
        new = copy.copy(spec)
        new.variable = _like(spec.variable, var.type)
        if isinstance(spec.value, Container):
            key = id(spec.value.storage)
            if key not in containers:
                value = values.get(spec.variable, spec.value.storage[0])
                if spec.mutable:
                    value = fresh(value)
                value = _cast_value(spec.variable.type, value, change)
                containers[key] = Container(
                    new.variable, [value], strict=spec.strict, allow_downcast=spec.allow_downcast,
                    name=spec.name,
                )  # fmt: skip
            new.value = containers[key]
        elif spec.value is not None:
            value = values.get(spec.variable)
            value = fresh(spec.value if value is None else value)
            new.value = _cast_value(spec.variable.type, value, change)
        specs.append(new)
    return specs


def fresh(value: Any) -> Any:
    """Return a copy of a value."""
    return np.array(value) if isinstance(value, np.ndarray) else copy.deepcopy(value)


def _cast_value(type_: Type, value: Any, change: Change) -> Any:
    """Return a value of ``type_`` with its dtype changed."""
    dtype = change.get(getattr(type_, "dtype", ""))
    if dtype is None or value is None:
        return value
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype)


def _like(var: Variable, type_: Type) -> Variable:
    """Return the user's variable if it has the type, else a new variable of the same name."""
    return var if var.type == type_ else type_.make_variable(var.name)


# --- the graph ------------------------------------------------------------------------------------


def _graph_copied(maker: FunctionMaker, change: Change, note: Note | None) -> Construction:
    """Return a new construction of the user's graph, with other dtypes and without Prints."""
    made = construct(**maker.construction.arguments)
    order = traversal.io_toposort(made.graph_inputs, made.graph_outputs)
    if not change and not any(isinstance(node.op, Print) for node in order):
        return made
    retyping = _Retyping(change, note)
    inputs = [retyping.leaf(var) for var in made.graph_inputs]
    for node in order:
        retyping.add(node)
    outputs = [retyping.variable(var) for var in made.graph_outputs]
    specs = [
        Out(_like(out.variable, var.type), out.borrow)
        for out, var in zip(made.outputs, outputs, strict=False)
    ]
    return replace(made, graph=Graph(inputs, outputs), outputs=specs)


class _Retyping:
    """Copies a graph, Apply by Apply, with some dtypes replaced by others.

    An Op that does not accept the new dtypes computes in the old ones, between casts.
    """

    def __init__(self, change: Change, note: Note | None) -> None:
        self.change = change
        self.note = note
        #: the copy of each variable
        self.new: dict[Variable, Variable] = {}

    def type(self, type_: Type) -> Type:
        """Return a type with its dtype changed."""
        if isinstance(type_, TensorType) and type_.dtype in self.change:
            changed: Type = tensor_type(self.change[type_.dtype], type_.broadcastable)
            return changed
        return type_

    def leaf(self, var: Variable) -> Variable:
        """Copy a variable without an owner."""
        wanted = self.type(var.type)
        if wanted == var.type:
            new = var.clone()
        elif isinstance(var, Constant):
            new = wanted.make_constant(_cast_value(var.type, var.data, self.change), var.name)
        else:
            new = wanted.make_variable(var.name)
        self.new[var] = new
        return new

    def variable(self, var: Variable) -> Variable:
        """Return the copy of a variable."""
        return self.new[var] if var in self.new else self.leaf(var)

    def add(self, node: Apply) -> None:
        """Copy an Apply."""
        inputs = [self.variable(var) for var in node.inputs]
        if isinstance(node.op, Print):
            self.new[node.outputs[0]] = inputs[0]
            return
        wanted = [self.type(var.type) for var in node.outputs]
        outputs = self._outputs(node, inputs, wanted)
        for old, out, type_ in zip(node.outputs, outputs, wanted, strict=True):
            self.new[old] = _cast(out, type_)
            for made in (out, self.new[old]):
                if made.owner is not None:
                    made.owner._origins = node.origins

    def _outputs(self, node: Apply, inputs: list[Variable], wanted: list[Type]) -> list[Variable]:
        """Return the outputs of the copy of an Apply, which may still have the old dtypes."""
        same = [v.type for v in node.inputs] == [v.type for v in inputs]
        if same and wanted == [v.type for v in node.outputs]:
            return node.clone_with_new_inputs(inputs).outputs
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast):
            return [cast_elemwise(wanted[0].dtype)(*inputs)]
        try:
            made = self._op(node.op).make_node(*inputs)
            if self.note is not None and any(
                out.type.dtype != type_.dtype
                for out, type_ in zip(made.outputs, wanted, strict=True)
                if isinstance(type_, TensorType)
            ):
                self.note(node)
            return made.outputs
        except Exception:  # an Op may refuse a dtype with any exception
            before = [_cast(new, old.type) for new, old in zip(inputs, node.inputs, strict=True)]
            return node.clone_with_new_inputs(before).outputs

    def _op(self, op: Op) -> Op:
        """Return the Op, with its property ``dtype`` changed if it has one."""
        dtype = getattr(op, "dtype", None)
        if "dtype" in getattr(op, "__props__", ()) and dtype in self.change:
            op = copy.copy(op)
            vars(op)["dtype"] = self.change[dtype]
        return op


def _cast(var: Variable, type_: Type) -> Variable:
    """Return a variable cast to a type."""
    dtype = getattr(type_, "dtype", None)
    if dtype is not None and var.type.dtype != dtype:
        how = cast_op if isinstance(type_, Scalar) else cast_elemwise
        var = how(dtype)(var)
    return type_.filter_variable(var)
