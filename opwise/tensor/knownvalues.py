"""What is known of a variable's value before a function runs: its number, or a vector's entries.

The rules for an Op stand in the module that defines it, which registers them here. The values of
whole constant expressions are in ``opwise.optimizers.folding``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from opwise.errors import EmptyConstantError, NotScalarConstantError
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.graph.variable import Constant, Var, Variable
from opwise.scalar.op import Cast, ScalarOp
from opwise.scalar.spec import ROWS
from opwise.scalar.types import Scalar
from opwise.tensor.convert import (
    DeepCopyOp,
    OutputGuard,
    ScalarFromTensor,
    TensorFromScalar,
    ViewOp,
    tensor_from_scalar,
)
from opwise.tensor.elemwise import Elemwise, cast
from opwise.tensor.variable import TensorLike, as_tensor_variable

__all__ = ["extract_constant", "get_scalar_constant_value", "get_vector_length"]

#: an entry of an integer vector: its value, a 0-d variable that is computed without the vector, or
#: None if neither is known
Entry = np.generic | int | Variable | None
#: from an Apply, and from what gives the known length of a vector that it is made of, to a length
LengthRule = Callable[[Apply, Callable[[Variable], "int | None"]], "int | None"]

# --- rules of Ops -------------------------------------------------------------------------------


class _VectorRule(NamedTuple):
    """What is known of the vector that an Apply of an Op makes."""

    #: (Apply, known_length of its inputs) -> the length, or None
    length: LengthRule
    #: (Apply, position from 0) -> the entry, or (another vector, the position of the entry in it)
    entry: Callable[[Apply, int], Entry | tuple[Variable, int]]


_number_rules: dict[type[Op], Callable[[Apply], Any]] = {}
_vector_rules: dict[type[Op], _VectorRule] = {}


def number_rule(op_class: type[Op], rule: Callable[[Apply], Any]) -> None:
    """Register what every element of the output of an Op is known to be; not for subclasses.

    rule: (Apply) -> a variable whose elements are the same number, a number, or None.
    """
    _number_rules[op_class] = rule


def vector_rule(
    op_class: type[Op],
    length: LengthRule,
    entry: Callable[[Apply, int], Entry | tuple[Variable, int]],
) -> None:
    """Register what is known of the vectors that an Op makes; not for subclasses.

    length: (Apply, known) -> the length, or None; known(vector) is the length of an input, or None.
    entry: (Apply, position from 0) -> the entry, a pair (vector, position of the entry in it), or
    None.
    """
    _vector_rules[op_class] = _VectorRule(length, entry)


def equals_input(op_class: type[Op]) -> None:
    """Register an Op whose output has the elements of its first input, in any arrangement."""
    _number_rules[op_class] = _first_input


def _first_input(node: Apply) -> Var:
    return node.inputs[0]


for _op_class in (ScalarFromTensor, TensorFromScalar, ViewOp, OutputGuard, DeepCopyOp):
    equals_input(_op_class)


# --- numbers ------------------------------------------------------------------------------------

#: rows of the scalar table that are computed if their operands are known
_FOLDED = frozenset(
    ROWS[name]
    for name in (
        "add", "sub", "mul", "true_div", "int_div", "mod", "neg", "maximum", "minimum",
        "eq", "neq", "lt", "le", "gt", "ge", "and_", "or_", "invert",
    )
)  # fmt: skip


def get_scalar_constant_value(
    orig_v: Any, elemwise: bool = True, only_process_constants: bool = False, max_recur: int = 10
) -> Any:
    """Return the number that every element of ``orig_v`` is known to be, as a numpy scalar.

    It has the dtype of a variable, which may have any shape. orig_v: a variable, or a number or
    array of one element. elemwise: whether to compute simple elementwise operations.
    only_process_constants: look at constants alone, not at what computes a variable. max_recur: how
    deep elementwise operations may be nested.

    Raises NotScalarConstantError if the value is not known before a function runs,
    EmptyConstantError if there is no element.
    """
    v = orig_v
    while True:
        if not isinstance(v, Variable):
            return _number_in(v)
        if isinstance(v, Constant):
            return _number_in_constant(v)
        if only_process_constants or v.owner is None:
            raise NotScalarConstantError(v)
        op = v.owner.op
        if isinstance(op, Elemwise | ScalarOp):
            scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
            v = _through_elemwise(v, scalar_op, elemwise, max_recur)
        else:
            rule = _number_rules.get(type(op))
            found = None if rule is None or v.owner is None else rule(v.owner)
            if found is None:
                raise NotScalarConstantError(v)
            v = found


def _number_in(x: Any) -> Any:
    """Return the number that a Python or numpy object is."""
    data = np.asarray(x)
    if data.dtype.kind not in "biufc":
        raise NotScalarConstantError(f"{x!r} is not a number")
    if data.size == 0:
        raise EmptyConstantError(x)
    if data.size > 1:
        raise NotScalarConstantError(f"{x!r} has more than one element")
    return data.reshape(-1)[0]


def constant_number(v: Constant) -> Any:
    """Return the number that all elements of a constant are; None if there is no such number."""
    found = v._unique_value
    if found is None:
        # each constant is searched once
        found = v._unique_value = _unique_value(v.data)
    return found[0] if found else None


def _unique_value(data: Any) -> tuple[Any, ...]:
    """Return (number,) if all elements are that number, else ()."""
    if isinstance(data, np.ndarray) and data.size > 1:
        flat = data.reshape(-1)
        return (flat[0],) if data.dtype.kind in "biufc" and (flat == flat[0]).all() else ()
    if isinstance(data, np.ndarray | np.generic | int | float | complex):
        try:
            return (_number_in(data),)
        except NotScalarConstantError:
            pass
    return ()


def _number_in_constant(v: Constant) -> Any:
    number = constant_number(v)
    if number is None:
        if np.size(v.data) == 0:
            raise EmptyConstantError(v)
        raise NotScalarConstantError(f"{v} has no elements, or not all of them equal")
    return number


def _through_elemwise(v: Var, op: ScalarOp, compute: bool, max_recur: int) -> Any:
    """Return the value of an elementwise result, or the variable that it equals elementwise."""
    operands = v.owner.inputs
    row = op.row
    if row is not None and row.name in ("second", "identity"):
        return operands[-1]
    if not compute or max_recur <= 0 or len(v.owner.outputs) > 1:
        raise NotScalarConstantError(v)

    def value(x: Var) -> Any:
        return get_scalar_constant_value(x, max_recur=max_recur - 1)

    if row is not None and row.name == "switch":
        chosen = operands[1] if value(operands[0]) else operands[2]
        return value(chosen).astype(v.type.dtype)
    if not isinstance(op, Cast) and row not in _FOLDED:
        raise NotScalarConstantError(v)
    arrays = [np.asarray(value(x)) for x in operands]
    with np.errstate(all="ignore"):
        return op.on_arrays(arrays, [v.type.dtype])[0][()]


def extract_constant(x: Any, elemwise: bool = True, only_process_constants: bool = False) -> Any:
    """Return the number that ``x`` is known to be, as ``get_scalar_constant_value``, else x.

    The number is a numpy scalar of the dtype of x; a scalar variable without a known value is
    returned as a 0-d tensor. What is not a number is returned as it is.
    """
    try:
        return get_scalar_constant_value(x, elemwise, only_process_constants)
    except NotScalarConstantError:
        pass
    if isinstance(x, Variable) and isinstance(x.type, Scalar):
        if x.owner is not None and isinstance(x.owner.op, ScalarFromTensor):
            return x.owner.inputs[0]
        return tensor_from_scalar(x)
    return x


# --- vectors ------------------------------------------------------------------------------------

_MAX_DEPTH = 30


def get_vector_length(v: TensorLike) -> int:
    """Return the length of a symbolic vector, as an int.

    Raises TypeError unless v is a vector, ValueError if its length is not known beforehand.
    """
    v = as_tensor_variable(v)
    if v.type.ndim != 1:
        raise TypeError(f"a vector is needed, got '{v}' of {v.type}")
    known = known_length(v)
    if known is None:
        raise ValueError(
            f"length not known: {v}. Only variables of known length, such as x.shape, can be "
            "looped over or unpacked. Compute with the whole variable (T.sum instead of sum, T.max "
            "instead of max), or take items by an index."
        )
    return known


def known_length(v: Variable) -> int | None:
    """Return the length of a vector if it is known beforehand, else None."""
    return _known_length(v, _MAX_DEPTH, {})


def _known_length(v: Variable, depth: int, unknown: dict[Variable, int]) -> int | None:
    """Look through ``depth`` Applys. unknown: with which depth a vector was looked at in vain."""
    if isinstance(v, Constant):
        return len(v.data)
    if v.type.broadcastable[0]:
        return 1
    if v.owner is None or unknown.get(v, 0) >= depth:
        return None

    def known(x: Variable) -> int | None:
        return _known_length(x, depth - 1, unknown)

    found: int | None = None
    if isinstance(v.owner.op, Elemwise):
        lengths = (known(x) for x in v.owner.inputs if not x.type.broadcastable[0])
        found = next((n for n in lengths if n is not None), None)
    elif (rule := _vector_rules.get(type(v.owner.op))) is not None:
        found = rule.length(v.owner, known)
    if found is None:
        unknown[v] = depth
    return found


def vector_entry(v: Variable, i: int) -> Entry:
    """Return entry ``i`` of an integer vector, which may count from the end, if it is known."""
    casts = []
    while True:
        if i < 0:
            n = known_length(v)
            if n is None or i + n < 0:
                return None
            i += n
        if isinstance(v, Constant):
            found = v.data[i] if i < len(v.data) else None
            break
        if v.owner is None:
            return None
        op = v.owner.op
        if isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast):
            casts.append(v.type.dtype)
            v = v.owner.inputs[0]
            continue
        rule = _vector_rules.get(type(op))
        found = None if rule is None or v.owner is None else rule.entry(v.owner, i)
        if not isinstance(found, tuple):
            break
        v, i = found
    return None if found is None else _as_dtypes(_number_of(found), reversed(casts))


def _number_of(entry: Any) -> Any:
    """Return the number that an entry is if it is a constant, perhaps cast; else the entry."""
    if isinstance(entry, Constant):
        return entry.data[()]
    owner = getattr(entry, "owner", None)
    if owner is not None and isinstance(owner.op, Elemwise):
        (x, *_) = owner.inputs
        if isinstance(owner.op.scalar_op, Cast) and isinstance(x, Constant):
            return x.data.astype(entry.type.dtype)[()]
    return entry


def _as_dtypes(entry: Any, casts: Any) -> Any:
    for dtype in casts:
        entry = cast(entry, dtype) if hasattr(entry, "type") else np.dtype(dtype).type(entry)
    return entry


def vector_entries(v: Any, n: int) -> list[Any]:
    """Return the ``n`` entries of an integer vector, as numpy integers or 0-d variables."""
    entries = (vector_entry(v, i) for i in range(n))
    return [v[i] if entry is None else entry for i, entry in enumerate(entries)]


def is_one(entry: Any) -> bool:
    """Return whether an entry, as ``vector_entry`` returns it, is known to be 1."""
    if not hasattr(entry, "type"):
        return entry is not None and bool(entry == 1)
    if entry.owner is None and not isinstance(entry, Constant):
        return False
    try:
        return bool(get_scalar_constant_value(entry) == 1)
    except NotScalarConstantError:
        return False
