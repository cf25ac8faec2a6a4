"""How Applys are lowered for the device: one table of Op classes, and ``lower``, which reads it.

A class has one entry: kernels of opwise's own, a call of CuPy, or the reason why it runs on the
host. Without an entry it runs on the host too, and profiles say that it has no GPU implementation.
The modules in ``_MODULES`` register their entries here, and so do those of ``UPPER_MODULES``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from opwise.gpu.kernels.expected import expected_kernels
from opwise.gpu.kernels.kernel import Implementation
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant
from opwise.scalar import dtypes
from opwise.scalar.types import Scalar
from opwise.tensor.shape import Shape, Shape_i
from opwise.tensor.type import TensorType

_MODULES = (
    "opwise.gpu.kernels.lowerings.elementwise",
    "opwise.gpu.kernels.lowerings.creation",
    "opwise.gpu.kernels.lowerings.reductions",
    "opwise.gpu.kernels.lowerings.rows",
    "opwise.gpu.kernels.lowerings.indexing",
    "opwise.gpu.kernels.lowerings.random",
    "opwise.gpu.kernels.lowerings.images",
    "opwise.gpu.kernels.lowerings.sparse",
    "opwise.gpu.runtime.calls",
    "opwise.gpu.runtime.linalg",
    "opwise.gpu.host_only",
)

#: packages of upper layers -> the modules with the entries of their Ops, for programs that use them
UPPER_MODULES = {"opwise.loops": "opwise.loops.ondevice"}

#: the most arrays that a kernel can have: its parameters take at most 4 KB
MAX_OPERANDS = 64

#: Ops that read an array's shape and none of its elements, wherever it lies; the host computes them
SHAPE_OPS = (Shape, Shape_i)


@dataclass(frozen=True)
class Call:
    """How CuPy runs an Apply."""

    #: (device, node, inputs) -> outputs; inputs are arrays of the device, except those in ``host``
    function: Callable[[Any, Apply, list[Any]], list[Any]]
    #: positions of the inputs that must lie on the host
    host: tuple[int, ...] = ()
    #: whether the outputs lie in the memory of the inputs, so that the device does nothing
    view: bool = False
    #: like ``function``, but only checks the inputs and returns the arrays to be overwritten
    target: Callable[[Any, Apply, list[Any]], list[Any]] | None = None
    #: whether a CUDA graph can hold it: it waits for nothing, and its allocations, copies and calls
    #: of cuBLAS depend only on the layouts of its inputs and on the values of those on the host
    captured: bool = False
    #: what it runs ``times`` times: a loop, its step
    inside: tuple[tuple[Apply, Lowered], ...] = ()
    times: int = 1


#: how the device runs an Apply
Lowered = Implementation | Call


class Target(Enum):
    """What an Op class is lowered to."""

    KERNELS = "kernels"
    CALL = "call"
    HOST = "host"


@dataclass(frozen=True)
class Lowering:
    """The entry of an Op class."""

    target: Target
    #: from an Apply to how the device runs it, or to the reason why only the host can
    function: Callable[[Apply], Lowered | str]


_table: dict[type, Lowering] = {}
#: the modules that have registered their entries
_loaded: set[str] = set()


def table() -> dict[type, Lowering]:
    """Return the entries by Op class, after all modules have registered theirs."""
    upper = (name for package, name in UPPER_MODULES.items() if package in sys.modules)
    for name in (*_MODULES, *upper):
        if name not in _loaded:  # a package may be imported later than others
            _loaded.add(name)
            importlib.import_module(name)
    return _table


def lower(node: Apply) -> Lowered | str:
    """Return how the device runs an Apply, or the reason why only the host can, for the profile.

    A subclass of an Op without an entry of its own is lowered like its nearest base class.
    """
    entries = table()
    cls = next((c for c in type(node.op).__mro__ if c in entries), None)
    if cls is None:
        return _without_entry(node)
    return entries[cls].function(node)


def _without_entry(node: Apply) -> str:
    reason = f"{type(node.op).__name__} has no GPU implementation"
    for var in (*node.inputs, *node.outputs):
        if not isinstance(var.type, TensorType | Scalar) and not isinstance(var, Constant):
            return f"{reason} for {var.type}"
    return reason


# --- registration ---------------------------------------------------------------------------------


def _register(op_classes: Iterable[type], entry: Lowering) -> None:
    for cls in op_classes:
        if cls in _table:
            raise ValueError(f"{cls.__name__} has a lowering already")
        _table[cls] = entry


def lowers_to_kernels(*op_classes: type, host_types: tuple[type, ...] = ()) -> Callable:
    """Register a function from an Apply to an Implementation, or to the reason why there is none.

    host_types: types of variables that it accepts besides tensors and scalars; these variables lie
    on the host.
    """
    accepted = (TensorType, Scalar, *host_types)

    def register(function: Callable[[Apply], Implementation | str]) -> Callable:
        def checked(node: Apply) -> Implementation | str:
            variables = (*node.inputs, *node.outputs)
            for var in variables:
                if not isinstance(var.type, accepted):
                    return f"{var.type} is no tensor"
            if len(variables) > MAX_OPERANDS:
                return f"it has more than {MAX_OPERANDS} operands"
            return with_expected_kernels(node, function(node))

        _register(op_classes, Lowering(Target.KERNELS, checked))
        return function

    return register


def with_expected_kernels(node: Apply, found: Implementation | str) -> Implementation | str:
    """Return an Implementation with its expected kernels filled in; a reason as it is."""
    if isinstance(found, str) or found.expected:
        return found
    return replace(found, expected=expected_kernels(node, found))


def lowers_by(*op_classes: type) -> Callable:
    """Register a function from an Apply to a Call, or to the reason why there is none."""

    def register(function: Callable[[Apply], Call | str]) -> Callable:
        _register(op_classes, Lowering(Target.CALL, function))
        return function

    return register


def _no_inputs(node: Apply) -> tuple[int, ...]:
    return ()


def _never(node: Apply) -> bool:
    return False


def lowers_to_cupy(
    *op_classes: type,
    host: Callable[[Apply], Iterable[int]] = _no_inputs,
    view: bool = False,
    target: Callable | None = None,
    captured: Callable[[Apply], bool] = _never,
    kernels: Callable[[Apply], Implementation | str | None] | None = None,
    unless: Callable[[Apply], str | None] | None = None,
) -> Callable:
    """Register a function ``(device, node, inputs) -> outputs`` that calls CuPy.

    See ``Call`` for the other arguments; here ``host`` and ``captured`` are functions of an Apply.
    kernels: returns the kernels that run an Apply in place of the call, or None. unless: returns
    the reason why only the host can run an Apply, or None.
    """

    def register(function: Callable) -> Callable:
        def lowered(node: Apply) -> Lowered | str:
            found = kernels(node) if kernels is not None else None
            if found is not None:
                return with_expected_kernels(node, found)
            for var in (*node.inputs, *node.outputs):
                if isinstance(var.type, TensorType) and var.type.dtype in dtypes.COMPLEX:
                    return f"{var.type.dtype} arrays run on the host"
            reason = unless(node) if unless is not None else None
            if reason is not None:
                return reason
            return Call(function, tuple(host(node)), view, target, view or captured(node))

        _register(op_classes, Lowering(Target.CALL, lowered))
        return function

    return register


def runs_on_host(reasons: Mapping[type, str]) -> None:
    """Register Op classes that only the host runs, each with the reason."""
    for cls, reason in reasons.items():
        _register((cls,), Lowering(Target.HOST, _reason(reason)))


def _reason(text: str) -> Callable[[Apply], str]:
    return lambda node: text
