"""Copies of a compiled function that share no state with it, under another mode or of other dtypes.

A copy is made from the graph as the user wrote it. Its shared variables are storages of its own.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from opwise.compile.construct import construct
from opwise.compile.io import Out
from opwise.compile.maker import FunctionMaker, collector_paused
from opwise.graph import provenance, traversal
from opwise.graph.printing import Print
from opwise.graph.variable import Constant
from opwise.linkers.base import VM_Linker
from opwise.linkers.storage import Container
from opwise.linkers.wrap import DualLinker, WrapLinker
from opwise.modes.mode import Mode
from opwise.modes.nanguardmode import NanGuardMode
from opwise.scalar.op import Cast, cast_op
from opwise.scalar.types import Scalar
from opwise.tensor.elemwise import Elemwise, cast_elemwise
from opwise.tensor.type import TensorType, tensor_type


def private_mode(mode):
    """Return (a mode like it that keeps its own records, whether the user's callbacks were left
    out)."""
    mode = copy.copy(mode)
    linker = mode.linker
    calls_back = (isinstance(linker, WrapLinker) and not isinstance(linker, DualLinker)) or (
        isinstance(linker, VM_Linker)
        and (linker.callback is not None or linker.callback_input is not None)
        and not isinstance(mode, NanGuardMode)
    )
    return (Mode("c|py", mode._optimizer), True) if calls_back else (mode, False)


def copied(function, mode, change=None, note=None):
    """Return a copy of a function under a mode; see ``maker_of``."""
    return maker_of(function, mode, change, note).create()


@collector_paused()
def maker_of(function, mode, change=None, note=None):
    """Return the maker of a copy of a function, with the values that its state has now.

    change: {dtype: another to compute with instead}. note: called with each Apply whose result had
    to be cast, since it is of the old dtype although what it reads is not.
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


def as_written(function):
    """Return the Applys of a function's graph as the user wrote it, each after those it reads."""
    made = construct(**function.maker.construction.arguments)
    return traversal.io_toposort(made.graph_inputs, made.graph_outputs)


def converted(spec, value, change=None):
    """Return an argument as the function takes it; with ``change``, in the dtype that comes of it.

    Raises what the type of the input raises.
    """
    type_ = spec.variable.type
    if value is None:
        return None
    value = type_.filter(value, strict=spec.strict, allow_downcast=spec.allow_downcast)
    return _cast_value(type_, value, change or {})


# --- state ----------------------------------------------------------------------------------------


def _own_inputs(made, values, change):
    """Return the In objects of a construction, with storages of their own for all state."""
    containers = {}
    specs = []
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


def fresh(value):
    """Return a copy of a value."""
    return np.array(value) if isinstance(value, np.ndarray) else copy.deepcopy(value)


def _cast_value(type_, value, change):
    """Return a value of ``type_``, or of the type that comes of it by the change of dtypes."""
    dtype = change.get(getattr(type_, "dtype", None))
    if dtype is None or value is None:
        return value
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype)


def _like(var, type_):
    """Return a variable of a type in place of the user's; the user's own if that fits."""
    return var if var.type == type_ else type_.make_variable(var.name)


# --- the graph ------------------------------------------------------------------------------------


def _graph_copied(maker, change, note):
    """Return a new construction of what the user wrote, with other dtypes and without Prints."""
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
    return replace(made, graph_inputs=inputs, graph_outputs=outputs, outputs=specs)


class _Retyping:
    """Copies a graph, Apply by Apply, with some dtypes replaced by others.

    An Op that does not take them is computed as before, between casts.
    """

    def __init__(self, change, note):
        self.change = change
        self.note = note
        self.new = {}

    def type(self, type_):
        """Return the type that comes of a type."""
        if isinstance(type_, TensorType) and type_.dtype in self.change:
            return tensor_type(self.change[type_.dtype], type_.broadcastable)
        return type_

    def leaf(self, var):
        """Return, and keep, the copy of a variable without an owner."""
        wanted = self.type(var.type)
        if wanted == var.type:
            new = var.clone()
        elif isinstance(var, Constant):
            new = wanted.make_constant(_cast_value(var.type, var.data, self.change), var.name)
        else:
            new = wanted.make_variable(var.name)
        self.new[var] = new
        return new

    def variable(self, var):
        """Return the copy of a variable."""
        return self.new[var] if var in self.new else self.leaf(var)

    def add(self, node):
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
                made.owner._origins = node.origins

    def _outputs(self, node, inputs, wanted):
        same = [v.type for v in node.inputs] == [v.type for v in inputs]
        if same and wanted == [v.type for v in node.outputs]:
            return node.clone_with_new_inputs(inputs).outputs
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, Cast):
            return [cast_elemwise(wanted[0].dtype).make_node(*inputs).outputs[0]]
        try:
            made = self._op(node.op).make_node(*inputs)
            if self.note is not None and any(
                out.type.dtype != type_.dtype
                for out, type_ in zip(made.outputs, wanted, strict=True)
                if isinstance(type_, TensorType)
            ):
                self.note(node)
            return made.outputs
        except Exception:  # an Op may take certain dtypes alone, and say so as it likes
            before = [_cast(new, old.type) for new, old in zip(inputs, node.inputs, strict=True)]
            return node.clone_with_new_inputs(before).outputs

    def _op(self, op):
        """Return an Op that gives the new dtype where it names the old one."""
        dtype = getattr(op, "dtype", None)
        if "dtype" in getattr(op, "__props__", ()) and dtype in self.change:
            op = copy.copy(op)
            op.dtype = self.change[dtype]
        return op


def _cast(var, type_):
    """Return a variable as one of a type."""
    dtype = getattr(type_, "dtype", None)
    if dtype is not None and var.type.dtype != dtype:
        how = cast_op if isinstance(type_, Scalar) else cast_elemwise
        var = how(dtype)(var)
    return type_.filter_variable(var)
