"""In, Out, Param, and the shorter forms in which inputs may be written."""

import numpy as np
import pytest

from opwise import Container, In, Out, Param, SymbolicInput, SymbolicOutput, shared
from opwise.compile.io import as_input
from opwise.tensor import TensorType, constant
from opwise.tensor.elemwise import elemwise

pytestmark = pytest.mark.null

add = elemwise("add")


@pytest.fixture
def a():
    return TensorType("float64", ())("a")


@pytest.fixture
def x():
    return TensorType("float64", (False,))("x")


def test_in_takes_the_name_of_its_variable(a):
    assert In(a).name == "a"
    assert In(a, name="b").name == "b"
    assert In(a, autoname=False).name is None


def test_in_defaults(a):
    plain = In(a)
    assert (plain.value, plain.update, plain.strict, plain.allow_downcast) == (
        None, None, False, None,
    )  # fmt: skip
    assert (plain.mutable, plain.borrow, plain.implicit, plain.shared) == (False,) * 4


def test_in_with_an_update_is_mutable(a):
    state = In(a, value=1.0, update=add(a, 1.0))
    assert state.mutable and state.borrow
    assert not In(a, value=1.0, update=add(a, 1.0), mutable=False).mutable
    assert str(state) == "In(a -> Elemwise{add,no_inplace}.0)"
    assert repr(In(a, value=3)) == "In(a)"


@pytest.mark.parametrize("lent", [lambda a: shared(2.0), lambda a: Container(a, [np.array(2.0)])])
def test_in_with_a_storage_is_implicit(a, lent):
    spec = In(a, value=lent(a))
    assert spec.implicit
    assert isinstance(spec.value, Container)
    assert spec.value.data == 2.0


def test_mutable_needs_borrow(a):
    with pytest.raises(
        AssertionError, match=r"variable a \(name=None\) has flags mutable=True, bor"
    ):
        In(a, mutable=True, borrow=False)
    assert In(a, mutable=True).borrow
    assert not In(a, mutable=False, borrow=False).borrow


def test_update_must_have_the_type_of_the_variable(a, x):
    with pytest.raises(TypeError, match=r"Variable 'a' has type TensorType\(float64, scalar\) but"):
        In(a, value=1.0, update=x)
    with pytest.raises(TypeError, match="update of a must be a Variable"):
        In(a, value=1.0, update=2.0)


def test_wrong_arguments_of_in(a):
    with pytest.raises(TypeError, match="name must be a string"):
        In(a, name=3)
    with pytest.raises(TypeError, match="must be a Variable, not 3"):
        In(3)
    with pytest.raises(TypeError, match="implicit input must be given a default value: a"):
        In(a, implicit=True)


def test_param_is_an_in_that_warns(a):
    with pytest.warns(UserWarning, match=r"Replace Param\(default=N\) by theano.In\(value=N\)"):
        param = Param(a, default=3.0, mutable=True, strict=True)
    assert isinstance(param, In)
    assert (param.value, param.default, param.mutable, param.borrow, param.strict) == (
        3.0, 3.0, True, True, True,
    )  # fmt: skip


def test_out(a):
    assert Out is SymbolicOutput
    assert not Out(a).borrow
    assert str(Out(a, borrow=True)) == "Out(a,True)"


def test_as_input_of_a_variable_and_of_specs(a):
    assert as_input(a).variable is a
    spec = In(a)
    assert as_input(spec) is spec
    base = as_input(SymbolicInput(a, strict=True, autoname=False))
    assert isinstance(base, In) and base.strict and base.name is None


@pytest.mark.parametrize(
    ("spec", "name", "value", "updated"),
    [
        (lambda a: [a], "a", None, False),
        (lambda a: (a, 2.0), "a", 2.0, False),
        (lambda a: ("n", a), "n", None, False),
        (lambda a: ("n", a, 2.0), "n", 2.0, False),
        (lambda a: ((a, add(a, 1.0)), 2.0), "a", 2.0, True),
        (lambda a: ["n", (a, add(a, 1.0)), 2.0], "n", 2.0, True),
    ],
)
def test_short_forms(a, spec, name, value, updated):
    read = as_input(spec(a))
    assert (read.variable, read.name, read.value) == (a, name, value)
    assert (read.update is not None) == updated


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (lambda a: 3, "Unknown parameter type: <class 'int'>"),
        (lambda a: TensorType("float64", ()), "Unknown parameter type"),
        (lambda a: constant(1.0), "Constants not allowed in param list"),
        (lambda a: [], "Invalid input syntax"),
        (lambda a: (a, 1.0, 2.0), "Invalid input syntax"),
        (lambda a: (3, 4), "Unknown input type: <class 'int'>"),
        (lambda a: (constant(1.0), 4), "Unknown input type"),
        (lambda a: (a, add(a, 1.0)), "should not be symbolic"),
    ],
)
def test_wrong_inputs(a, spec, text):
    with pytest.raises(TypeError, match=text):
        as_input(spec(a))
