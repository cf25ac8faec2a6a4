"""Advice on a failing Apply, from its Op and the values of its inputs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opwise.errors import MethodNotDefined
from opwise.graph.apply import Apply
from opwise.graph.printing import Print
from opwise.graph.variable import Constant
from opwise.linkers import lowering, operands
from opwise.linkers.operands import called
from opwise.tensor.advanced_subtensor import (
    AdvancedIncSubtensor1,
    AdvancedSubtensor1,
    BaseAdvancedIncSubtensor,
    BaseAdvancedSubtensor,
)
from opwise.tensor.assertion import Assert
from opwise.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from opwise.tensor.conv.epilogue import ConvElemwise
from opwise.tensor.conv.older import OlderOp
from opwise.tensor.conv.ops import BaseAbstractConv
from opwise.tensor.creation import Alloc, ARange
from opwise.tensor.dot import Dot
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.join import Join, Split
from opwise.tensor.linalg.eigen import Eigh, Eigvalsh
from opwise.tensor.linalg.factor import Cholesky, LUFactor
from opwise.tensor.linalg.inverse import Det, MatrixInverse, SLogDet
from opwise.tensor.linalg.systems import Solve
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet.crossentropy import (
    CrossentropyCategorical1Hot,
    CrossentropySoftmaxArgmax1HotWithBias,
)
from opwise.tensor.nnet.rowsoftmax import SoftmaxWithBias
from opwise.tensor.reduce import Argmax, CAReduce, MaxAndArgmax
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.shape import Rebroadcast, Reshape
from opwise.tensor.sort import TopKOp
from opwise.tensor.subtensor import IncSubtensor, Subtensor

#: the values of an Apply's inputs
Values = Sequence[Any]


_EARLIER = (
    "To get this error at the line that builds the graph, set tag.test_value on each input, and "
    "set the flag compute_test_value=raise before that line."
)


def remedy(exception: BaseException, node: Apply, values: Values) -> str | None:
    """Return what a user can do about the failure of an Apply, or None if that is not known.

    values: of its inputs.
    """
    for i, (var, value) in enumerate(zip(node.inputs, values, strict=True)):
        if value is None and hasattr(var.type, "numpy_dtype"):
            return (
                f"{called(node, i)} has no value, or its value is None. Give it an array of "
                f"{var.type}."
            )
    if isinstance(exception, MemoryError):
        return "Check the shapes: use smaller arrays, or process them in parts."
    if isinstance(exception, MethodNotDefined):
        return None  # its own text says what to write
    for kind, advise in _ADVICE:
        if isinstance(node.op, kind):
            return advise(exception, node, values)
    if not type(node.op).__module__.startswith("opwise."):
        return _own_op(exception, node)
    return None


def headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    """Return the first line of a shape error: the operands as the program names them, or None.

    values: of the Apply's inputs. What the Op itself says follows: it speaks of its own operands.
    """
    if not isinstance(exception, ValueError | IndexError | TypeError) or any(
        value is None for value in values
    ):
        return None
    for kind, describe in _HEADLINES:
        if isinstance(node.op, kind):
            text = describe(exception, node, values)
            what = "Index out of range" if "out of bounds" in str(exception) else _DO_NOT_FIT
            return text if text is None else f"{what}: {text}"
    return None


_DO_NOT_FIT = "Shapes do not fit"


def _arrays(node: Apply, values: Values) -> list[int]:
    """Return which inputs are arrays of the program, other than constants, with dimensions."""
    return [
        i
        for i, (var, value) in enumerate(zip(node.inputs, values, strict=True))
        if np.ndim(value)
        and not isinstance(var, Constant)
        and not (var.owner is not None and isinstance(var.owner.op, Alloc))
    ]


# --- elementwise ----------------------------------------------------------------------------------


def _elementwise_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    lengths = meeting(node, values)
    if lengths is None:
        return None
    text = operands.listed(node, values, sorted(lengths[1].values()))
    made_by = operands.origin(node)
    out = made_by.outputs[0] if made_by is not None else None
    made = operands.expression(out) if out is not None and not out.name else None
    return f"{text} in {made}" if made else text


def _elementwise(exception: BaseException, node: Apply, values: Values) -> str | None:
    lengths = meeting(node, values)
    if lengths is None:
        return None
    dim, found = lengths
    met = " and ".join(f"{called(node, i)} has {n}" for n, i in found.items())
    text = f"Operands must have equal lengths: along dimension {dim}, {met}."
    if 1 not in found:
        return f"{text} {_EARLIER}"
    one = called(node, found[1])
    return (
        f"{text} A dimension that is 1 only at run time is not broadcast. Write "
        f"T.addbroadcast({one}, {dim}), or declare that dimension of {one} broadcastable, "
        "as T.row and T.col do."
    )


def meeting(node: Apply, values: Values) -> tuple[int, dict[int, int]] | None:
    """Return (dimension, {length: index of an input}) if operands differ in length, or None."""
    shapes = [np.shape(value) for value in values]
    for dim in range(max(map(len, shapes), default=0)):
        found: dict[int, int] = {}
        for i, (var, shape) in enumerate(zip(node.inputs, shapes, strict=True)):
            if len(shape) > dim and not var.type.broadcastable[dim]:
                found.setdefault(shape[dim], i)
        if len(found) > 1:
            return dim, found
    return None


def step_that_failed(node: Apply, values: Values) -> Any:
    """Return the scalar op of a fused loop whose operands have different lengths, or None."""
    scalar_op = node.op.scalar_op
    if not hasattr(scalar_op, "instructions"):
        return scalar_op
    # the lengths of each slot's dimensions; None: broadcast
    slots = [
        [None if b else n for b, n in zip(var.type.broadcastable, np.shape(value), strict=True)]
        for var, value in zip(node.inputs, values, strict=True)
    ]
    ndim = node.outputs[0].type.ndim if isinstance(node.op, Elemwise) else len(slots[0])
    for step in scalar_op.instructions:
        lengths = []
        for dim in range(ndim):
            found = {slots[a][dim] for a in step.args} - {None}
            if len(found) > 1:
                return step.op
            lengths.append(found.pop() if found else None)
        slots.append(lengths)
    return None


# --- products -------------------------------------------------------------------------------------

#: the positions of the two factors among the inputs
_FACTORS = {Gemm: (2, 3), Gemv: (2, 3), Ger: (2, 3)}


def _product_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    i, k = _factors(node)
    left, right = operands.with_shape(node, i, values[i]), operands.with_shape(node, k, values[k])
    flipped = operands.transposed(node.inputs[i])
    if isinstance(node.op, Gemv) and flipped is not None:  # v M as it is written, not M.T v
        shape = np.shape(values[i])[::-1]
        left, right = right, f"{operands.written(flipped) or f'input {i}'} {shape}"
    text = f"{left} times {right}"
    if isinstance(node.op, Ger):
        return f"{operands.with_shape(node, 0, values[0])} plus {text}"
    if _multiplies(node, values):
        return f"{operands.with_shape(node, 0, values[0])} plus {text}" if i else None
    return text


def _factors(node: Apply) -> tuple[int, int]:
    """Return the positions of the two factors of a product among its inputs."""
    return next((places for op, places in _FACTORS.items() if isinstance(node.op, op)), (0, 1))


def _multiplies(node: Apply, values: Values) -> bool:
    """Return whether the two factors of a product have fitting shapes."""
    left, right = (np.shape(values[k]) for k in _factors(node))
    if isinstance(node.op, BatchedDot) and left[:1] != right[:1]:
        return False
    return bool(left[-1] == right[max(0, len(right) - 2)])


def _product(exception: BaseException, node: Apply, values: Values) -> str | None:
    i, k = _factors(node)
    if isinstance(node.op, Ger):
        return _EARLIER
    (x, y), (left, right) = (
        (called(node, i), called(node, k)),
        map(np.shape, (values[i], values[k])),
    )
    batched = isinstance(node.op, BatchedDot)
    if batched and left[:1] != right[:1]:
        return f"The first dimensions of {x} and {y}, the batch sizes, must be equal."
    summed = left[-1], right[max(0, len(right) - 2)]
    if summed[0] == summed[1]:
        return (
            f"The product is valid, but the array that is added to it has another shape. {_EARLIER}"
        )
    text = (
        f"The last dimension of {x} ({summed[0]}) must equal the "
        f"{'second-to-last' if len(right) > 1 else 'only'} dimension of {y} ({summed[1]})."
    )
    if len(right) == 2 and not batched and left[-1] == right[1]:
        text += f" The transpose of {y} would fit: {y}.T."
    elif len(left) == 2 and not batched and left[0] == summed[1]:
        text += f" The transpose of {x} would fit: {x}.T."
    return text


# --- indices --------------------------------------------------------------------------------------


def _index(exception: BaseException, node: Apply, values: Values) -> str | None:
    if isinstance(exception, IndexError):
        if "boolean index" in str(exception):
            shape = np.shape(values[0])
            return f"A mask must have the shape of the array that it indexes, here {shape}."
        if "broadcast" in str(exception):
            return "Index arrays are used in pairs, so they must have equal lengths."
        length = np.shape(values[0])[0] if np.ndim(values[0]) else 0
        if np.ndim(values[0]) > 1 and not isinstance(node.op, _OF_ROWS):
            return (
                f"{called(node, 0)} has the shape {np.shape(values[0])}: indices into a dimension "
                "of length n must be in -n to n-1."
            )
        if length:
            return f"Indices into {called(node, 0)} must be from {-length} to {length - 1}."
        return f"{called(node, 0)} is empty: no index is valid."
    if "step" in str(exception):
        return "Use a step other than 0."
    if isinstance(node.op, IncSubtensor | AdvancedIncSubtensor1 | BaseAdvancedIncSubtensor):
        return (
            f"{called(node, 1)} must be a scalar, or have the shape of the part of "
            f"{called(node, 0)} that it is written to."
        )
    return None


_OF_ROWS = (AdvancedSubtensor1, AdvancedIncSubtensor1)


# --- shapes ---------------------------------------------------------------------------------------


def _reshape(exception: BaseException, node: Apply, values: Values) -> str | None:
    size = np.size(values[0])
    return (
        f"The new shape must have {size} elements, as {called(node, 0)} has; one length may be "
        "-1: it is computed from the others."
    )


def _join(exception: BaseException, node: Apply, values: Values) -> str | None:
    shapes = operands.listed(node, values, range(1, len(values)))
    return f"Lengths may differ only along axis {int(values[0])}, the axis of the join: {shapes}."


def _split(exception: BaseException, node: Apply, values: Values) -> str | None:
    return f"The sum of the sizes must be the length of {called(node, 0)} along that axis."


def _top(exception: BaseException, node: Apply, values: Values) -> str | None:
    shape = np.shape(values[0])
    return (
        f"k must be at most the length of {called(node, 0)} along that axis; its shape is {shape}."
    )


def _alloc(exception: BaseException, node: Apply, values: Values) -> str | None:
    if "negative" in str(exception):
        return "Lengths must not be negative: check how the shape is computed."
    return (
        f"Each dimension of {called(node, 0)} must have length 1, or the length that it has in "
        "the result."
    )


def _arange(exception: BaseException, node: Apply, values: Values) -> str | None:
    return "Use a step other than 0."


def _reduction(exception: BaseException, node: Apply, values: Values) -> str | None:
    if "zero-size" in str(exception) or "empty" in str(exception):
        return (
            f"{called(node, 0)} is empty, so it has no maximum or minimum: pass at least one "
            "element."
        )
    elementwise = hasattr(node.op, "scalar_op") or isinstance(node.op, Rowwise)
    return _elementwise(exception, node, values) if elementwise else None


def _rebroadcast(exception: BaseException, node: Apply, values: Values) -> str | None:
    return (
        f"The program declares this dimension of {called(node, 0)} as 1 (T.addbroadcast, "
        "T.patternbroadcast): remove that, or give a value of length 1."
    )


# --- neural networks ------------------------------------------------------------------------------


def _labels(exception: BaseException, node: Apply, values: Values) -> str | None:
    x, labels = values[0], values[-1]
    if np.shape(x)[0] != np.shape(labels)[0]:
        return f"Give one label for each of the {np.shape(x)[0]} rows."
    return f"Labels are class indices, here in 0 to {np.shape(x)[1] - 1}."


def _softmax(exception: BaseException, node: Apply, values: Values) -> str | None:
    return "The bias must have one element for each column of the matrix."


# --- others ---------------------------------------------------------------------------------------


# --- linear algebra -------------------------------------------------------------------------------


def _factorization(exception: BaseException, node: Apply, values: Values) -> str | None:
    """Advise on a matrix that LAPACK cannot factorize, in the order of its own checks."""
    matrix = values[0]
    name = called(node, 0)
    if isinstance(exception, ImportError):
        return None  # its own text says what to install
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1]:
        return f"Only square matrices have this: {name} has shape {matrix.shape}."
    if "incompatible dimensions" in str(exception):
        return f"{called(node, 1)} must have as many rows as {name}: {len(matrix)}."
    if not np.isfinite(matrix).all():
        return f"{name} has NaN or infinities: mode=NanGuardMode() names the Apply that made them."
    if isinstance(node.op, Cholesky):
        return (
            f"The Cholesky factor exists for positive definite matrices only. If {name} should be "
            "one, rounding may have made an eigenvalue negative: add a small number to its "
            f"diagonal, {name} + 1e-6 * T.identity_like({name}). Cholesky(on_error='nan') returns "
            "NaN instead."
        )
    if "ingular" in str(exception):
        return (
            f"{name} has no inverse: one of its rows is a combination of the others. "
            "pinv gives the pseudo-inverse; adding a small number to the diagonal makes "
            "a covariance regular."
        )
    return None


def _assert(exception: BaseException, node: Apply, values: Values) -> str | None:
    part = node.inputs[0].owner
    if isinstance(exception, IndexError) and part is not None:  # of the steps of a loop
        return (
            f"A step of the loop reads beyond the end of {called(part, 0)}: its range, or what is "
            "added to the index, goes too far."
        )
    failed = [called(node, i) for i, v in enumerate(values) if i and not np.all(v)]
    return (
        f"A condition asserted for {called(node, 0)} is false: {', '.join(failed)}. Check the "
        "arguments and the condition."
    )


def _print(exception: BaseException, node: Apply, values: Values) -> str | None:
    return "Print takes names of attributes or methods of an array, such as 'shape' or 'min'."


def _own_op(exception: BaseException, node: Apply) -> str | None:
    text, name = str(exception), type(node.op).__name__
    if lowering.runs_c_code(node.op) and not _in_perform(exception):
        return _own_c_code(text, node)
    if "did not compute its output" in text:
        return (
            f"{name}.perform must store each result in output_storage[i][0]; its return value is "
            "ignored."
        )
    if text.startswith("expected an array of dtype"):
        return (
            f"The result of {name}.perform must have the type that make_node declared, "
            f"{node.outputs[0].type}: convert the result, or declare another type."
        )
    if text.startswith("expected an ndarray"):
        return f"{name}.perform must put arrays into output_storage[i][0]: use numpy.asarray."
    return f"Check {name}.perform, where the traceback ends."


def _in_perform(exception: BaseException) -> bool:
    """Return whether Python code of an Op raised an exception."""
    frames = traceback.walk_tb(exception.__traceback__)
    return any(frame.f_code.co_name == "perform" for frame, _ in frames)


def _own_c_code(text: str, node: Apply) -> str:
    name = type(node.op).__name__
    if "did not compute its output" in text:
        return f"The c_code of {name} must set each output to a new reference of an object."
    if text.startswith("expected an array of dtype"):
        return (
            f"The result of {name}.c_code must have the type that make_node declared, "
            f"{node.outputs[0].type}: make an array of its dtype, or declare another type."
        )
    return f"Check {name}.c_code: what sets the exception before it runs sub['fail']."


# --- first lines of errors ------------------------------------------------------------------------


def _index_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    array = operands.with_shape(node, 0, values[0])
    if isinstance(exception, IndexError):
        return array if "bounds" in str(exception) else None
    if "step" in str(exception) or not isinstance(node.op, _WRITING):
        return None
    return f"{operands.with_shape(node, 1, values[1])} written to a part of {array}"


def _reshape_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    shape = tuple(int(n) for n in np.ravel(values[1]))
    return f"{operands.with_shape(node, 0, values[0])} reshaped to {shape}"


def _join_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    joined = operands.listed(node, values, range(1, len(values)))
    return f"{joined} joined along axis {int(values[0])}"


def _split_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    sizes = tuple(int(n) for n in np.ravel(values[2]))
    array = operands.with_shape(node, 0, values[0])
    return f"{array} split along axis {int(values[1])} into parts of {sizes}"


def _alloc_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    if "negative" in str(exception):
        return None
    shape = tuple(int(n) for n in values[1:])
    return f"{operands.with_shape(node, 0, values[0])} repeated to {shape}"


def _operands_headline(exception: BaseException, node: Apply, values: Values) -> str | None:
    """Name the arrays of an Op, if its error speaks of shapes and there are several."""
    text = str(exception)
    if "out of bounds" in text or not any(word in text for word in _OF_SHAPES):
        return None
    arrays = _arrays(node, values)
    return operands.listed(node, values, arrays) if len(arrays) > 1 else None


#: what the texts of errors about shapes have
_OF_SHAPES = ("shape", "dimension", "rows", "columns", "channels", "elements", "size", "square")

_WRITING = (IncSubtensor, AdvancedIncSubtensor1, BaseAdvancedIncSubtensor)

#: (classes of Ops, what writes the first line of their shape errors), the first that fits
_HEADLINES: list[
    tuple[Any, Callable[[BaseException, Apply, Values], str | None]]
] = [
    ((MapReduce, Rowwise, Elemwise), _elementwise_headline),
    ((Dot, Dot22, Dot22Scalar, Gemm, Gemv, Ger, BatchedDot), _product_headline),
    (
        (Subtensor, IncSubtensor, AdvancedSubtensor1, AdvancedIncSubtensor1, BaseAdvancedSubtensor,
         BaseAdvancedIncSubtensor),
        _index_headline,
    ),
    (Reshape, _reshape_headline),
    (Join, _join_headline),
    (Split, _split_headline),
    (Alloc, _alloc_headline),
    (
        (CrossentropySoftmaxArgmax1HotWithBias, CrossentropyCategorical1Hot, SoftmaxWithBias,
         BaseAbstractConv, ConvElemwise, OlderOp, Solve, Cholesky, MatrixInverse, Det, Eigh,
         Eigvalsh, LUFactor, SLogDet),
        _operands_headline,
    ),
]  # fmt: skip

#: (classes of Ops, what advises on their failures), the first that fits
_ADVICE: list[
    tuple[Any, Callable[[BaseException, Apply, Values], str | None]]
] = [
    ((MapReduce, Rowwise), _reduction),
    (Elemwise, _elementwise),
    ((Dot, Dot22, Dot22Scalar, Gemm, Gemv, Ger, BatchedDot), _product),
    (
        (Subtensor, IncSubtensor, AdvancedSubtensor1, AdvancedIncSubtensor1, BaseAdvancedSubtensor,
         BaseAdvancedIncSubtensor),
        _index,
    ),
    (Reshape, _reshape),
    (Join, _join),
    (Split, _split),
    (Alloc, _alloc),
    (ARange, _arange),
    ((CAReduce, MaxAndArgmax, Argmax), _reduction),
    (Rebroadcast, _rebroadcast),
    ((CrossentropySoftmaxArgmax1HotWithBias, CrossentropyCategorical1Hot), _labels),
    (SoftmaxWithBias, _softmax),
    (TopKOp, _top),
    ((Cholesky, Solve, MatrixInverse, Det, Eigh, Eigvalsh, LUFactor, SLogDet), _factorization),
    (Assert, _assert),
    (Print, _print),
]  # fmt: skip
