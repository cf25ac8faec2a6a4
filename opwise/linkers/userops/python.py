"""What runs for an Apply in Python: ``perform``, or the thunk of an Op that makes its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opwise.graph.apply import Apply, NoParams
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.linkers.storage import Storage
from opwise.scalar import usercode

#: (Apply, values of its inputs, storages of its outputs)
PythonCode = Callable[[Apply, Sequence[Any], Sequence[Storage]], Any]

_MAKERS = ("make_thunk", "make_c_thunk", "make_py_thunk")


def makes_thunks(op: Op) -> bool:
    """Return whether an Op replaces one of the methods that make thunks."""
    return any(getattr(type(op), name) is not getattr(Op, name) for name in _MAKERS)


def runs_in_python(op: Op) -> bool:
    """Return whether an Op can run without the C of a linker."""
    if usercode.is_c_only(getattr(op, "scalar_op", None)):
        return False
    return type(op).perform is not Op.perform or makes_thunks(op)


def python_code(node: Apply) -> PythonCode:
    """Return what runs for an Apply: its ``perform``, or the thunk that the Op makes."""
    if makes_thunks(node.op):
        return OwnThunk(node)
    prepare(node, {}, {}, "py")
    return perform_of(node)


def perform_of(node: Apply) -> PythonCode:
    """Return the ``perform`` of an Apply, with its params if the Op has them."""
    op = node.op
    perform: PythonCode = op.perform
    params = node.run_params()
    if params is NoParams:
        return perform
    value = op.params_type.filter(params) if node.params_type is not None else params
    return lambda node, inputs, outputs: op.perform(node, inputs, outputs, value)


def prepare(node: Apply, storage_map: Any, compute_map: Any, impl: str) -> None:
    """Call ``prepare_node`` of an Op that defines it."""
    if type(node.op).prepare_node is Op.prepare_node:
        return
    try:
        node.op.prepare_node(node, storage_map=storage_map, compute_map=compute_map, impl=impl)
    except TypeError as e:
        if "impl" not in str(e):
            raise
        # Ops written before Theano 0.9
        node.op.prepare_node(node, storage_map=storage_map, compute_map=compute_map)


class OwnThunk:
    """Runs the thunk that an Op makes, on storages of its own."""

    def __init__(self, node: Apply) -> None:
        self.inputs: list[Storage] = []
        self.outputs: list[Storage] = [[None] for _ in node.outputs]
        storage_map: dict[Variable, Storage] = {}
        for var in node.inputs:
            self.inputs.append(storage_map.setdefault(var, [None]))
        storage_map.update(zip(node.outputs, self.outputs, strict=True))
        self.computed: Mapping[Variable, list[bool]] = {
            var: [var not in node.outputs] for var in storage_map
        }
        op = node.op
        arguments = node, storage_map, self.computed, list(node.outputs)
        if type(op).make_thunk is not Op.make_thunk:
            named = inspect.signature(op.make_thunk).parameters
            # Ops written before Theano 0.9 do not know it
            self.thunk = op.make_thunk(*arguments, **({"impl": None} if "impl" in named else {}))
        elif type(op).make_c_thunk is not Op.make_c_thunk:
            prepare(node, storage_map, self.computed, "c")
            self.thunk = op.make_c_thunk(*arguments)
        else:
            prepare(node, storage_map, self.computed, "py")
            self.thunk = op.make_py_thunk(*arguments)

    def __call__(self, node: Apply, inputs: Sequence[Any], outputs: Sequence[Storage]) -> None:
        for storage, value in zip(self.inputs, inputs, strict=True):
            storage[0] = value
        for mine, given in zip(self.outputs, outputs, strict=True):
            mine[0] = given[0]
        try:
            self.thunk()
            for mine, given in zip(self.outputs, outputs, strict=True):
                given[0] = mine[0]
        finally:
            for storage in (*self.inputs, *self.outputs):
                storage[0] = None
