"""PyTensor as a front end: its types, constants and traces, and how its own ``perform`` runs."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import DenseTensorType

from opwise.frontends import Frontend, Opaque, Performed
from opwise.graph.provenance import Trace, library_of
from opwise.graph.type import Type
from opwise.graph.variable import Variable
from opwise.tensor.type import tensor_type

#: files of PyMC that make densities of the variables of a model
_DENSITY = re.compile(r"[/\\]pymc[/\\](logprob|model)[/\\]")


def _is_dense(foreign: Any) -> bool:
    """Return whether the values of a type are arrays, also those with names of dimensions."""
    # importing PyTensor's module of such arrays takes long: a program that has some has done so
    named = sys.modules.get("pytensor.xtensor.type")
    return isinstance(foreign, DenseTensorType) or (
        named is not None and isinstance(foreign, named.XTensorType)
    )


@cache
def _type_of(foreign: Any) -> Type:
    if _is_dense(foreign):
        return tensor_type(foreign.dtype, tuple(n == 1 for n in foreign.shape))
    if isinstance(foreign, ScalarType):  # its values are numbers of numpy, which 0-d arrays serve
        return tensor_type(foreign.dtype, ())
    return Opaque(foreign)


class PyTensor(Frontend):
    """The front end of PyTensor. A number (``ScalarType``) is a tensor without dimensions."""

    def type_of(self, foreign: Any) -> Type:
        return _type_of(foreign)

    def constant(self, var: Any) -> Variable:
        type_ = _type_of(var.type)
        data = var.data
        if isinstance(type_, Opaque):
            constant: Variable = type_.make_constant(data)
            return constant
        data = np.asarray(data, dtype=type_.dtype)
        own = tensor_type(type_.dtype, tuple(n == 1 for n in data.shape))
        constant = own.make_constant(data)
        return constant

    def trace_of(self, node: Any) -> Trace:
        """Return the frames that PyTensor keeps with the outputs of an Apply.

        Those of what PyMC makes when a density is asked for, in ``pymc.logprob`` and
        ``pymc.model``, say who asked: they begin behind that line.
        """
        for var in node.outputs:
            traces = getattr(var.tag, "trace", None)
            if traces:
                frames = tuple(
                    (file or "", line, function, text or "")
                    for file, line, function, text in traces[0]
                )
                if any(_DENSITY.search(frame[0]) for frame in frames):
                    frames = tuple(frame for frame in frames if library_of(frame[0]))
                return frames
        return ()

    def performed(self, node: Any, reason: str) -> Performed:
        op = node.op
        op.prepare_node(node, None, None, "py")
        # a view of an input that is no array, such as a generator, is that object itself
        return Performed(
            _performing(node),
            [_type_of(out.type) for out in node.outputs],
            label=f"PyTensor:{op}",
            reason=reason,
            key=(op, tuple(var.type for var in (*node.inputs, *node.outputs))),
            view_map=op.view_map,
        )


def _performing(node: Any) -> Any:
    """Return a function from the inputs of an Apply to its outputs, as PyTensor computes them.

    An Op that overwrites what it is given gets a copy.
    """
    perform = node.op.perform
    destroyed = sorted({i for places in node.op.destroy_map.values() for i in places})
    numbers = [i for i, var in enumerate(node.inputs) if isinstance(var.type, ScalarType)]
    n_outputs = len(node.outputs)

    def run(values: list[Any]) -> Sequence[Any]:
        for i in numbers:
            values[i] = values[i][()]
        for i in destroyed:
            values[i] = copy.deepcopy(values[i])
        storage: list[list[Any]] = [[None] for _ in range(n_outputs)]
        perform(node, values, storage)
        return [cell[0] for cell in storage]

    return run


#: the front end, with the translations that modules of this folder register
PYTENSOR = PyTensor("PyTensor")
translates = PYTENSOR.translates
