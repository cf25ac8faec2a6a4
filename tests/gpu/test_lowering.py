"""The table of lowerings: kernels, a call of CuPy, or the reason why an Op runs on the host."""

import pytest

import opwise.tensor as T
from opwise import Op
from opwise.gpu.host_only import HOST_ONLY
from opwise.gpu.lowering import Target, lower, runs_on_host, table
from opwise.scalar import ScalarOp
from opwise.scalar.op import OPS
from opwise.tensor import CAReduce, Dot, Elemwise, Prod, TensorType
from opwise.tensor.extra_ops import Unique
from opwise.tensor.reduce import mul_without_zeros
from opwise.typed_list import make_list

pytestmark = pytest.mark.null


def test_an_op_has_one_lowering():
    assert {entry.target for entry in table().values()} == set(Target)
    for cls in (Dot, Elemwise, Unique):
        with pytest.raises(ValueError, match=f"{cls.__name__} has a lowering already"):
            runs_on_host({cls: "another reason"})


def test_reasons_are_phrases():
    for cls, reason in HOST_ONLY.items():
        assert reason and not reason.endswith("."), cls


def tensor(dtype, ndim=2):
    return TensorType(dtype, (False,) * ndim)()


@pytest.mark.parametrize(("make", "reason"), [
    (lambda: tensor("complex64") + tensor("complex64"), "there are no kernels for complex64"),
    (lambda: T.jv(tensor("float32"), tensor("float32")), "jv has no CUDA expression for float32, "
                                                         "float32"),
    (lambda: T.jv(tensor("float32"), tensor("float64")), "jv has no CUDA expression for float32, "
                                                         "float64"),
    (lambda: CAReduce(OPS["xor"], (0,))(tensor("int8")), "kernels do not reduce by"),
    (lambda: CAReduce(mul_without_zeros, (0,))(tensor("float32")), "kernels do not reduce by"),
    (lambda: Prod((0,), "complex64", "complex64")(tensor("complex64")),
     "there are no kernels for complex"),
    (lambda: CAReduce(OPS["add"], (0,))(tensor("bool")), "kernels do not reduce bool by add"),
    (lambda: T.nnet.softmax_grad(tensor("float32"), tensor("float64")),
     "its inputs are of float32, float64 and not all of float64"),
    (lambda: T.inc_subtensor(tensor("int8")[1:], tensor("float32")),
     "float32 is narrowed to int8"),
])  # fmt: skip
def test_reasons(make, reason):
    found = lower(make().owner)
    assert isinstance(found, str) and found.startswith(reason)


def test_a_scalar_op_of_a_user_has_a_reason():
    class Mine(ScalarOp):
        nin = 1

        def impl(self, x):
            return x

    assert lower(Elemwise(Mine())(tensor("float32")).owner) == (
        "Mine has no CUDA expression for float32"
    )


def test_an_op_of_a_user_has_a_reason():
    class Mine(Op):
        def make_node(self, x):
            from opwise import Apply

            return Apply(self, [x], [x.type()])

    assert lower(Mine()(tensor("float32")).owner) == "Mine has no GPU implementation"


def test_a_type_that_no_device_holds_is_part_of_the_reason():
    node = make_list([T.fvector(), T.fvector()]).owner
    assert lower(node) == (
        "MakeList has no GPU implementation for TypedList <TensorType(float32, vector)>"
    )


def test_many_operands_have_a_reason():
    many = Elemwise(OPS["add"])(*(tensor("float32", 1) for _ in range(80)))
    assert lower(many.owner) == "it has more than 64 operands"
