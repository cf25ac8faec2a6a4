"""Lowering: how an Apply becomes a C step of the VM.

A lowering is a function ``(node, kernels) -> CStep | None``, registered for an Op class; None means
that this Apply has no C implementation and runs ``perform``. The kinds of steps are in
csupport/kinds.h. ``kernels`` gives loops for elementwise work (see ``opwise.linkers.kernels``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.clinker import CLinkerOp
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.scalar import csource, dtypes
from opwise.scalar.types import Scalar
from opwise.tensor.type import TensorType

if TYPE_CHECKING:
    from opwise.linkers.kernels import Kernels, Loop
    from opwise.linkers.opwise_c import VM
    from opwise.linkers.userops.code import UserCode
    from opwise.scalar.recurrence import Recurrence

#: dtypes that loops, and steps that say so, compute with
LOOP_DTYPES = frozenset(dtypes.ALL)
#: dtypes that all C steps compute with; views also pass others through
C_DTYPES = LOOP_DTYPES - csource.SPECIAL
MAX_DIMENSIONS = 8
MAX_OPERANDS = 40


@dataclass(frozen=True)
class CStep:
    """A step that runs in C. Kinds with parameters have a class of their own: see stepparams.py."""

    #: name of its kind in csupport/kinds_*.c
    kind: str
    #: the loop that it calls, for elementwise work and reductions
    loop: Loop | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ObjectStep:
    """A step that runs the C++ code of a user's Op on Python objects."""

    code: UserCode


@dataclass(frozen=True)
class LoopStep:
    """A step that repeats the program of another VM."""

    vm: VM
    #: the layout of the Scan (opwise.loops)
    layout: Any
    #: the step as a scalar program, and the loop that repeats it, where there is one
    small: tuple[Recurrence, Loop] | None = None


@dataclass(frozen=True)
class DrawStep:
    """A step that draws from one of numpy's generators.

    method: of RandomState, or the name of a distribution that a Generator draws.
    """

    method: str


@dataclass(frozen=True)
class RunnerStep:
    """A step that works on the slots of the compiled VM itself."""

    #: makes what runs it
    make: Callable[[], Any]


@dataclass(frozen=True)
class ChoiceStep:
    """A step that hands over the values of one of its branches."""


#: any step that runs no Python code
AnyStep = CStep | ObjectStep | LoopStep | DrawStep | RunnerStep | ChoiceStep

#: (Apply, the kernels of its function) -> its step, or None if it runs ``perform``
Lowering = Callable[[Apply, "Kernels"], AnyStep | None]

_lowerings: dict[type, Lowering] = {}
#: the lowerings of Applys with any number of operands
_unlimited: set[Lowering] = set()
#: the lowerings of Applys whose operands may have any type
_of_any_type: set[Lowering] = set()
#: the lowering of each class that was asked for, its own or that of a base class
_found: dict[type, Lowering | None] = {}


def c_lowering(
    *op_classes: type, limited: bool = True, any_type: bool = False
) -> Callable[[Lowering], Lowering]:
    """Register a lowering for Op classes; subclasses use it too unless they have their own.

    limited: it is not asked about Applys with more than MAX_OPERANDS inputs and outputs.
    any_type: it is asked about Applys with operands that are neither tensors nor scalars.
    """

    def register(lowering: Lowering) -> Lowering:
        if not limited:
            _unlimited.add(lowering)
        if any_type:
            _of_any_type.add(lowering)
        for cls in op_classes:
            _lowerings[cls] = lowering
        _found.clear()
        return lowering

    return register


class CCodeLowering(Protocol):
    """The lowering of all Ops that define ``c_code``; the table has it for ``CLinkerOp``."""

    def __call__(self, node: Apply, kernels: Kernels) -> AnyStep | None: ...

    def why_python(self, node: Apply) -> str:
        """Return why an Apply of such an Op has no C."""


def _lowering_of(cls: type) -> Lowering | None:
    """Return the lowering of a class, or the C++ code of a user if that is nearer to the class."""
    if cls not in _found:
        _found[cls] = None
        for base in cls.__mro__:
            if base is CLinkerOp:
                continue
            if base in _lowerings:
                _found[cls] = _lowerings[base]
                break
            if "c_code" in vars(base):
                _found[cls] = _lowerings[CLinkerOp]
                break
    return _found[cls]


def runs_c_code(op: Op) -> bool:
    """Return whether the C of an Op, if it runs in C, is its ``c_code``."""
    return _lowering_of(type(op)) is _lowerings[CLinkerOp]


def c_step(node: Apply, kernels: Kernels) -> AnyStep | None:
    """Return the C step of an Apply, or None if it has none."""
    lowering = _lowering_of(type(node.op))
    if lowering is None:
        return None
    if lowering not in _of_any_type and not all(map(_fits, (*node.inputs, *node.outputs))):
        return None
    if len(node.inputs) + len(node.outputs) > MAX_OPERANDS and lowering not in _unlimited:
        return None
    return lowering(node, kernels)


def why_not(node: Apply) -> str:
    """Return why an Apply does not run in C, in a few words for a profile."""
    cls = type(node.op)
    if node.op.why_python:
        return str(node.op.why_python)
    if hasattr(node.op, "compile_inside"):
        return _why_not_inside(node)
    if runs_c_code(node.op):
        return cast(CCodeLowering, _lowerings[CLinkerOp]).why_python(node)
    if _lowering_of(cls) is None:
        return f"{cls.__name__} has no C implementation"
    if _lowering_of(cls) in _of_any_type:
        return "no C implementation for these arguments"
    for var in (*node.inputs, *node.outputs):
        if not _fits(var):
            return f"{var.type} has no C implementation"
    special = {v.type.dtype for v in (*node.inputs, *node.outputs)} - C_DTYPES
    if special:
        return f"no C implementation for {', '.join(sorted(special))}"
    return "no C implementation for these arguments"


def _why_not_inside(node: Apply) -> str:
    """Return why an Apply with a graph inside does not run in C."""
    linked = getattr(getattr(node.tag, "inside", None), "linked", None)
    if linked is not None and _lowering_of(type(node.op)) is not None:
        python = [each.op for each, c in zip(linked.order, linked.in_c, strict=True) if not c]
        if python:
            return f"{python[0]} inside it runs in Python"
    return "its graph runs as a function of its own"


def _fits(var: Variable) -> bool:
    type_ = var.type
    return isinstance(type_, Scalar) or (
        isinstance(type_, TensorType) and type_.ndim <= MAX_DIMENSIONS
    )


def plain(*variables: Variable) -> bool:
    """Return whether all variables have dtypes that C steps compute with."""
    return all(v.type.dtype in C_DTYPES for v in variables)


def slot_layout(var: Variable) -> tuple[int, int, int, int]:
    """Return (numpy type number or -1, ndim, itemsize, whether it is a scalar) for a VM's slot."""
    type_ = var.type
    if isinstance(type_, TensorType) and type_.ndim <= MAX_DIMENSIONS:
        return type_.numpy_dtype.num, type_.ndim, type_.numpy_dtype.itemsize, 0
    if isinstance(type_, Scalar):
        dtype = np.dtype(type_.dtype)
        return dtype.num, 0, dtype.itemsize, 1
    return -1, 0, 0, 0
