"""Scalars and 0-d tensors turned into each other, copies and views."""

import numpy as np
import pytest

from opwise import generic
from opwise.compile import DeepCopyOp, ViewOp, deep_copy_op, view_op
from opwise.gradient import grad
from opwise.scalar import ScalarConstant, get_scalar_type
from opwise.tensor import (
    ScalarFromTensor,
    TensorFromScalar,
    as_tensor_variable,
    scalar_from_tensor,
    tensor_copy,
    tensor_from_scalar,
)
from opwise.tensor.convert import OutputGuard
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

s, n = tensor_type("float64", ())("s"), tensor_type("int64", ())("n")
x = tensor_type("float64", (False, False))("x")
q, k = get_scalar_type("float64")("q"), get_scalar_type("int64")("k")


def perform(op, *inputs):
    storage = [[None]]
    op.perform(None, list(inputs), storage)
    return storage[0][0]


def test_a_number_out_of_a_tensor(run):
    assert str(scalar_from_tensor(s)) == "ScalarFromTensor.0"
    assert scalar_from_tensor(n).type == get_scalar_type("int64")
    assert type(perform(scalar_from_tensor, np.array(2.5, "float32"))) is np.float32
    assert scalar_from_tensor(3).type.dtype == "int8"
    with pytest.raises(TypeError, match="needs a 0-d tensor"):
        scalar_from_tensor(x)


def test_a_tensor_out_of_a_number(run):
    assert str(tensor_from_scalar(q)) == "TensorFromScalar.0"
    assert tensor_from_scalar(k).type == tensor_type("int64", ())
    assert run(tensor_from_scalar(k), {k: np.int64(3)}) == 3
    assert tensor_from_scalar(3).owner.inputs[0].type.dtype == "int8"
    assert as_tensor_variable(q).owner.op == tensor_from_scalar
    with pytest.raises(TypeError, match="is a tensor already"):
        tensor_from_scalar(s)


def test_gradients_pass_between_scalars_and_tensors(check_forward):
    check_forward(lambda w: elemwise("sqr")(tensor_from_scalar(scalar_from_tensor(w))), 3.0)


def test_the_gradient_by_a_whole_number_is_zero():
    node = tensor_from_scalar(k).owner
    (found,) = node.op.L_op(node.inputs, node.outputs, [s])
    assert isinstance(found, ScalarConstant) and found.data == 0 and found.type.dtype == "float64"


def test_ops_without_options_are_equal():
    assert ScalarFromTensor() == scalar_from_tensor and TensorFromScalar() == tensor_from_scalar
    assert ViewOp() == view_op and DeepCopyOp() == deep_copy_op and OutputGuard() != view_op


def test_a_view_is_the_input_itself(check_forward):
    data = np.ones((2, 3))
    assert perform(view_op, data) is data
    assert view_op.view_map == {0: [0]}
    assert view_op(x).type == x.type
    assert OutputGuard().destroy_map == {0: [0]}
    check_forward(lambda w: elemwise("sqr")(view_op(w)), data)


def test_a_copy_shares_no_memory(run, check_forward):
    data = np.arange(6.0).reshape(2, 3)
    for op in (deep_copy_op, tensor_copy):
        assert str(op(x).owner) in ("DeepCopyOp(x)", "Elemwise{identity}(x)")
        np.testing.assert_array_equal(run(op(x), {x: data}), data)
        check_forward(lambda w, op=op: elemwise("sqr")(op(w)), data)
    assert perform(deep_copy_op, np.array(3.0)).shape == ()


def test_values_of_any_type_are_copied():
    anything = {"a": [1, 2]}
    copied = perform(deep_copy_op, anything)
    assert copied == anything and copied["a"] is not anything["a"]
    assert deep_copy_op(generic("g")).type == generic


def test_an_old_view_op_that_defines_grad(run):
    class Stopped(ViewOp):
        def grad(self, inputs, output_gradients):
            return [elemwise("mul")(output_gradients[0], 5.0)]

    assert run(grad(Stopped()(s), s), {s: 1.0}) == 5
