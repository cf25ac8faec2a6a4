"""Translations of Ops that make, reshape, join and copy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp, ViewOp
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor import basic as pb
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape as PyTensorReshape
from pytensor.tensor.shape import Shape as PyTensorShape
from pytensor.tensor.shape import Shape_i as PyTensorShape_i
from pytensor.tensor.shape import SpecifyShape as PyTensorSpecifyShape
from pytensor.tensor.type_other import NoneTypeT

from opwise.frontends import Opaque, Translator, Untranslated
from opwise.graph.records import ByReference
from opwise.graph.variable import Var
from opwise.pytensor.frontend import translates
from opwise.tensor.assertion import Assert
from opwise.tensor.convert import deep_copy_op, view_op
from opwise.tensor.creation import Alloc, AllocEmpty, ARange, Eye
from opwise.tensor.diagonal import ExtractDiag
from opwise.tensor.elemwise import cast, elemwise
from opwise.tensor.join import Join, MakeVector, Split, vector_of
from opwise.tensor.shape import Reshape, Shape, SpecifyShape, shape_i_op
from opwise.tensor.variable import constant


@translates(PyTensorShape)
def _shape(t: Translator, node: Any, x: Var) -> Var:
    return Shape()(x)


@translates(PyTensorShape_i)
def _shape_i(t: Translator, node: Any, x: Var) -> Var:
    return shape_i_op(int(node.op.i))(x)


@translates(PyTensorReshape)
def _reshape(t: Translator, node: Any, x: Var, shape: Var) -> Var:
    return Reshape(node.op.ndim)(x, shape if node.op.ndim else cast(shape, "int64"))


@translates(JoinDims)
def _join_dims(t: Translator, node: Any, x: Var) -> Var:
    op = node.op
    lengths = [shape_i_op(d)(x) for d in range(x.type.ndim)]
    joined: Var = constant(np.int64(1))
    for d in op.axis_range:
        joined = elemwise("mul")(joined, lengths[d])
    shape = op.output_shapes(lengths, joined)
    return Reshape(len(shape))(x, vector_of(shape))


@translates(SplitDims)
def _split_dims(t: Translator, node: Any, x: Var, shape: Var) -> Var:
    axis, ndim = node.op.axis, node.outputs[0].type.ndim
    new = [shape[k] for k in range(ndim - x.type.ndim + 1)]
    lengths = [shape_i_op(d)(x) for d in range(x.type.ndim)]
    lengths[axis : axis + 1] = [cast(n, "int64") for n in new]
    return Reshape(ndim)(x, vector_of(lengths) if lengths else constant(np.zeros(0, "int64")))


@translates(PyTensorSpecifyShape, any_type=True)
def _specify_shape(t: Translator, node: Any, x: Var, *lengths: Var) -> Var:
    if isinstance(x.type, Opaque):
        raise Untranslated(f"SpecifyShape of {x.type} has no translation")
    if any(isinstance(var.type, NoneTypeT) for var in node.inputs[1:]):
        known = [
            shape_i_op(d)(x) if isinstance(var.type, NoneTypeT) else cast(length, "int64")
            for d, (var, length) in enumerate(zip(node.inputs[1:], lengths, strict=True))
        ]
    else:
        known = [cast(length, "int64") for length in lengths]
    return SpecifyShape()(x, vector_of(known)) if known else x


@translates(pb.Alloc)
def _alloc(t: Translator, node: Any, value: Var, *lengths: Var) -> Var:
    return Alloc()(value, *lengths)


@translates(pb.AllocEmpty)
def _alloc_empty(t: Translator, node: Any, *lengths: Var) -> Var:
    return AllocEmpty(node.op.dtype)(*lengths)


@translates(pb.MakeVector)
def _make_vector(t: Translator, node: Any, *numbers: Var) -> Var:
    return MakeVector(node.op.dtype)(*numbers)


@translates(pb.TensorFromScalar, pb.ScalarFromTensor)
def _same_number(t: Translator, node: Any, x: Var) -> Var:
    return x


@translates(pb.ARange)
def _arange(t: Translator, node: Any, start: Var, stop: Var, step: Var) -> Var:
    return ARange(node.op.dtype)(start, stop, step)


@translates(pb.Eye)
def _eye(t: Translator, node: Any, n: Var, m: Var, k: Var) -> Var:
    return Eye(node.op.dtype)(n, m, k)


@translates(pb.ExtractDiag)
def _extract_diag(t: Translator, node: Any, x: Var) -> Var:
    op = node.op
    return ExtractDiag(op.offset, op.axis1, op.axis2, op.view)(x)


@translates(pb.Join)
def _join(t: Translator, node: Any, *arrays: Var) -> Var:
    return Join()(constant(np.int64(node.op.axis)), *arrays)


@translates(pb.Split)
def _split(t: Translator, node: Any, x: Var, sizes: Var) -> list[Var]:
    made: list[Var] = Split(node.op.len_splits)(
        x, constant(np.int64(node.op.axis)), sizes, return_list=True
    )
    return made


@translates(DeepCopyOp)
def _deep_copy(t: Translator, node: Any, x: Var) -> Var:
    return deep_copy_op(x)


@translates(ViewOp, any_type=True)
def _view(t: Translator, node: Any, x: Var) -> Var:
    return view_op(x)


@translates(TypeCastingOp, any_type=True)
def _retyped(t: Translator, node: Any, x: Var) -> Var:
    return x


class Check(ByReference, Assert):
    """Its first input, unless one of the others is 0: then an error of a class of the program.

    error: the class. msg: the text of the error.
    """

    __props__ = ("error", "msg")

    def __init__(self, error: type[Exception], msg: str) -> None:
        super().__init__(msg)
        self.error = error

    def failure(self) -> Exception:
        return self.error(self.msg)

    def record_text(self) -> str:
        return f"{self.error.__qualname__}: {self.msg}"


@translates(CheckAndRaise, any_type=True)
def _check(t: Translator, node: Any, value: Var, *conditions: Var) -> Var:
    return Check(node.op.exc_type, node.op.msg)(value, *conditions)
