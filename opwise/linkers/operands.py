"""How errors name the operands of an Apply: as the user's program writes them.

Rewrites replace the variables of the program by others: a bias becomes a row, a product an Op of
BLAS. What is named here is the variable of the program from which an operand was made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from opwise.graph import printing, provenance
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable
from opwise.tensor.convert import DeepCopyOp, ViewOp
from opwise.tensor.dimshuffle import DimShuffle
from opwise.tensor.shape import Rebroadcast, Reshape, SpecifyShape

#: the longest text of an expression that names an operand, in characters, and how many Applys
#: it may show
_LONGEST, _MOST_APPLYS = 40, 8

#: Ops that return the value of their first input
_SAME_VALUE = (ViewOp, DeepCopyOp, Rebroadcast, SpecifyShape)

_PRODUCT = re.compile(r"\(([^()\\]+|[^()\\]*\([^()\\]*\)) \\dot ([^()\\]+|[^()\\]*\([^()\\]*\))\)")
#: the operand of a function in parentheses of its own
_DOUBLED = re.compile(r"(\w)\(\(([^()]*)\)\)")
#: a constant whose elements are all one number
_NUMBER = re.compile(r"TensorConstant\{(?:\([\d, ]+\) of )?(-?[\d.]+)\}")


def called(node: Apply, i: int) -> str:
    """Return how the program calls input ``i`` of an Apply, or "input i" if it has no name."""
    return written(node.inputs[i]) or f"input {i}"


def with_shape(node: Apply, i: int, value: Any) -> str:
    """Return the name and the shape of input ``i`` of an Apply, as the program has them."""
    var, shape = source(node.inputs[i], np.shape(value))
    return f"{written(var) or f'input {i}'} {shape}"


def source(var: Variable, shape: tuple[int, ...]) -> tuple[Variable, tuple[int, ...]]:
    """Return (variable of the program, its shape) of which ``var``, of this shape, is a view.

    Dimensions may have been added and dropped; their order is the same.
    """
    while var.owner is not None and not var.name:
        op = var.owner.op
        if isinstance(op, DimShuffle) and op.shuffle == sorted(op.shuffle):
            order = op.new_order
            shape = tuple(
                shape[order.index(d)] if d in order else 1
                for d in range(len(op.input_broadcastable))
            )
        elif not isinstance(op, _SAME_VALUE):
            break
        var = var.owner.inputs[0]
    return var, shape


def transposed(var: Variable) -> Variable | None:
    """Return the matrix of which ``var`` is the transpose, or None."""
    if var.owner is None or var.name or not isinstance(var.owner.op, DimShuffle):
        return None
    return var.owner.inputs[0] if var.owner.op.new_order == (1, 0) else None


def written(var: Variable) -> str | None:
    """Return the name of a variable, or the expression or line that makes it; None if unknown."""
    if var.name:
        return var.name
    if isinstance(var, Constant):
        return str(var.data) if np.size(var.data) <= 4 and np.ndim(var.data) < 2 else "a constant"
    if var.owner is None:
        line = provenance.line_of(var.made_at)
        return f"{var}" + (f" of line {line[1]}" if line else "")
    matrix = transposed(var)
    if matrix is not None:
        name = written(matrix)
        return f"{name}.T" if name and " of line " not in name else None
    made_by = origin(var.owner)
    if isinstance(var.owner.op, Reshape):
        name = written(var.owner.inputs[0])
        if name and (made_by is None or made_by.op != var.owner.op):  # tensordot makes these
            return f"{name} reshaped"
    if made_by is None:
        return None
    out = made_by.outputs[var.index if var.index < len(made_by.outputs) else 0]
    if out.name:
        return out.name
    text = expression(out)
    if text is not None:
        return text
    line = provenance.user_line(made_by)
    return f"the result of line {line[1]}" if line else None


def origin(node: Apply) -> Apply | None:
    """Return the user's Apply whose result an Apply computes; None if that is not known."""
    origins = [n for n in node.origins if n.trace]
    if len(origins) == 1:
        return origins[0]
    read = {var.owner for n in origins for var in n.inputs if var.owner is not None}
    last = [n for n in origins if n not in read]
    return last[0] if len(last) == 1 else None


def expression(var: Variable) -> str | None:
    """Return the expression that computes a variable, or None if it is long."""
    waiting, count = [var], 0
    while waiting:
        each = waiting.pop()
        if each.owner is not None and not each.name:
            count += 1
            waiting += each.owner.inputs
        if count > _MOST_APPLYS:
            return None
    before, text = "", _NUMBER.sub(r"\1", printing.pp(var))
    while before != text:
        before, text = text, _PRODUCT.sub(r"dot(\1, \2)", text)
        text = _DOUBLED.sub(r"\1(\2)", text)
    if text.startswith("(") and text.endswith(")") and _is_one_pair(text):
        text = text[1:-1]
    readable = len(text) <= _LONGEST and not re.search(r"[\\{<\n]|TensorConstant|DimShuffle", text)
    return text if readable else None


def _is_one_pair(text: str) -> bool:
    """Return whether the first parenthesis of a text is closed by the last one."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return k == len(text) - 1
    return False


def listed(node: Apply, values: Sequence[Any], chosen: Sequence[int]) -> str:
    """Return the names and shapes of some inputs: ``x (2, 3) and y (4,)``."""
    texts = list(dict.fromkeys(with_shape(node, i, values[i]) for i in chosen))
    return ", ".join(texts[:-2] + [" and ".join(texts[-2:])])
