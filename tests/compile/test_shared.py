"""Shared variables: what each value becomes, copies and borrowing, storage, what is refused."""

import copy
import pickle

import numpy as np
import pytest

from opwise import Container, SharedVariable, generic, shared
from opwise.compile import shared_constructor
from opwise.compile.shared import ScalarSharedVariable, TensorSharedVariable
from opwise.tensor import TensorType
from opwise.tensor.elemwise import elemwise

pytestmark = pytest.mark.null


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int64"),
        (1.0, "float64"),
        (True, "bool"),
        (1j, "complex128"),
        (np.float32(1), "float32"),
        (np.int8(1), "int8"),
        (np.bool_(True), "bool"),
        (np.float16(1), "float16"),
    ],
)
def test_numbers_make_scalars(value, dtype):
    var = shared(value)
    assert type(var) is ScalarSharedVariable
    assert var.type == TensorType(dtype, ())
    got = var.get_value()
    assert isinstance(got, np.ndarray) and got.dtype == dtype and got == value


def test_arrays_make_tensors_that_may_be_resized():
    var = shared(np.ones((1, 3)), name="w")
    assert type(var) is TensorSharedVariable
    assert var.type == TensorType("float64", (False, False))
    assert shared(np.ones((1, 3)), broadcastable=(True, False)).type.broadcastable == (True, False)
    assert str(var) == "w" and str(shared(np.ones(2))) == "<TensorType(float64, vector)>"


@pytest.mark.parametrize("value", [[1, 2], "abc", None, {"a": 1}, 2**70])
def test_other_values_make_opaque_objects(value):
    var = shared(value)
    assert type(var) is SharedVariable and var.type is generic
    assert var.get_value(borrow=True) is value
    assert str(var) == "<Generic>"


def test_subclasses_of_arrays_become_plain_arrays():
    class Table(np.ndarray):
        pass

    for borrow in (True, False):
        held = shared(np.ones(2).view(Table), borrow=borrow).get_value(borrow=True)
        assert type(held) is np.ndarray
    assert shared(np.array([1, 2], ">i4")).get_value().tolist() == [1, 2]


def test_copies_and_borrowing():
    array = np.ones(2)
    lent, copied = shared(array, borrow=True), shared(array)
    assert lent.get_value(borrow=True) is array
    assert lent.get_value() is not array
    assert copied.get_value(borrow=True) is not array
    other = np.zeros(2)
    lent.set_value(other)
    assert lent.get_value(borrow=True) is not other
    lent.set_value(other, borrow=True)
    assert lent.get_value(borrow=True) is other
    assert lent.get_value(borrow=True, return_internal_type=True) is other


def test_set_value_takes_any_shape_of_the_type():
    var = shared(np.zeros(3), name="v")
    var.set_value(np.ones(7))
    assert var.get_value().shape == (7,)
    var.set_value([1, 2])
    assert var.get_value().dtype == "float64"


@pytest.mark.parametrize(
    ("start", "new", "told"),
    [
        (np.zeros(3), np.ones((2, 2)), "expected 1, got 2 with shape (2, 2)"),
        (np.float32(0), 1.1, "cannot store accurately value 1.1"),
        (np.int32(0), np.ones(()), "without risking loss of precision"),
    ],
)
def test_set_value_refuses_and_keeps_the_old_value(start, new, told):
    var = shared(start, name="sv")
    with pytest.raises(TypeError) as caught:
        var.set_value(new)
    (text,) = caught.value.args
    assert told in text and f'Container name "sv": give it a value of {var.type}.' in text
    np.testing.assert_array_equal(var.get_value(), start)


def test_strict_and_allow_downcast():
    with pytest.raises(TypeError, match="expected a ndarray object"):
        shared(np.ones(2), strict=True).set_value([1, 2])
    loose = shared(np.float32(0), allow_downcast=True)
    loose.set_value(1.1)
    assert loose.get_value() == np.float32(1.1)


def test_value_property():
    var = shared(np.ones(2))
    var.value = [3, 4]
    held = var.value
    held[0] = 0
    assert var.get_value().tolist() == [3, 4]


def test_zero():
    var = shared(np.ones(2))
    before = var.get_value(borrow=True)
    var.zero()
    assert var.get_value().tolist() == [0, 0] and before.tolist() == [1, 1]
    var.set_value(before, borrow=True)
    var.zero(borrow=True)
    assert before.tolist() == [0, 0]


def test_symbolic_values_are_refused():
    with pytest.raises(TypeError, match="needs numeric values and not symbolic variables"):
        shared(TensorType("float64", ())())


def test_unknown_arguments_are_refused_with_every_reason():
    with pytest.raises(TypeError, match="No suitable SharedVariable constructor") as caught:
        shared(np.ones((2, 3)), broadcastable=(True, False))
    assert "(2, 3) | (True, False)" in str(caught.value)
    with pytest.raises(TypeError, match="host"):
        shared(np.ones(2), target="dev0")
    assert shared(np.ones(2), target="cpu").get_value().tolist() == [1, 1]


def test_a_constructor_registered_later_is_tried_first():
    class Celsius(float):
        pass

    @shared_constructor
    def celsius(value, name=None, strict=False, allow_downcast=None):
        if not isinstance(value, Celsius):
            raise TypeError("no temperature")
        return SharedVariable(name, generic, value, strict)

    try:
        assert shared(Celsius(3)).type is generic
        assert shared(3.0).type == TensorType("float64", ())
    finally:
        shared_constructor(celsius, remove=True)
    assert shared(Celsius(3)).type == TensorType("float64", ())


def test_container_instead_of_a_value():
    first = shared(1.0, name="first")
    second = SharedVariable("second", first.type, None, None, container=first.container)
    second.set_value(5.0)
    assert first.get_value() == 5.0
    with pytest.raises(TypeError, match="ignored if you pass a container"):
        SharedVariable("third", first.type, 1.0, False, container=first.container)


def test_clone_shares_storage_but_not_the_default_update():
    var = shared(1.0, name="s")
    var.default_update = elemwise("add")(var, 1.0)
    var.tag.note = "kept"
    twin = var.clone()
    assert type(twin) is type(var) and twin.name == "s" and twin.tag.note == "kept"
    assert twin.container is var.container
    assert twin.default_update is None and var.default_update is not None
    twin.tag.note = "other"
    assert var.tag.note == "kept"


def test_copy_shares_and_deepcopy_does_not():
    var = shared(np.ones(2), name="s")
    assert copy.copy(var).container is var.container
    twin, storage = copy.deepcopy([var, var.container.storage])
    assert twin.container.storage is storage and storage is not var.container.storage
    twin.set_value(np.zeros(2))
    assert var.get_value().tolist() == [1, 1]


def test_pickle():
    var = shared(np.arange(3.0), name="s")
    back = pickle.loads(pickle.dumps(var))
    assert type(back) is TensorSharedVariable and back.name == "s" and back.type == var.type
    assert back.get_value().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "told"), [(np.array(["a"], object), "dtype object"), ([1, 2], "<class 'list'>")]
)
def test_opaque_objects_are_not_subscriptable(value, told):
    with pytest.raises(TypeError, match="not subscriptable") as caught:
        shared(value)[0]
    assert told in str(caught.value)


# --- Container ----------------------------------------------------------------------------------


def test_container_converts_and_shares_its_list():
    type_ = TensorType("float64", (False,))
    cell = [None]
    one, two = Container(type_("x"), cell), Container(type_, cell, name="y")
    assert (one.name, two.name) == ("x", "y")
    one.data = [1, 2]
    assert two.value is one.data and two.data.dtype == "float64"
    two.value = None
    assert one.data is None
    assert (str(one), repr(one)) == ("<None>", "<None>")


def test_readonly_container():
    container = Container(TensorType("float64", ()), [np.array(1.0)], readonly=True, name="c")
    with pytest.raises(Exception, match="Cannot set readonly storage: c"):
        container.data = 2.0
    assert container.data == 1.0


def test_container_passes_only_given_options():
    class Plain:
        """A type of an old program: its filter takes a value and nothing else."""

        name = None

        def __init__(self):
            self.type = self

        def filter(self, value):
            return value * 2

    container = Container(Plain(), [None])
    container.data = 2
    assert container.data == 4


@pytest.mark.parametrize("storage", [[], 3, (None,)])
def test_container_needs_a_list(storage):
    with pytest.raises(TypeError, match="list of length at least one"):
        Container(TensorType("float64", ()), storage)
