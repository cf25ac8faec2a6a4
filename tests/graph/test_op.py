"""Ops and Applys: identity, calling, checks, copies, test values."""

import pytest

from opwise import Apply, Op, Type, generic
from opwise.config import config
from opwise.errors import MethodNotDefined

pytestmark = pytest.mark.null


class Number(Type):
    """The type of Python ints."""

    def filter(self, data, strict=False, allow_downcast=None):
        if type(data) is int:
            return data
        if strict:
            raise TypeError(f"not an int: {data!r}")
        return int(data)

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __str__(self):
        return "Number"


number = Number()


class Add(Op):
    """Adds a constant, on numbers."""

    __props__ = ("amount",)
    itypes = [number]
    otypes = [number]

    def __init__(self, amount):
        self.amount = amount

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + self.amount


class Plain(Op):
    """An Op without __props__."""


def test_props_decide_equality_hash_and_text():
    assert Add(1) == Add(1) and hash(Add(1)) == hash(Add(1))
    assert Add(1) != Add(2)
    assert str(Add(1)) == repr(Add(1)) == "Add{amount=1}"
    assert Add(1)._props_dict() == {"amount": 1}


def test_without_props_every_instance_differs():
    op = Plain()
    assert op == op and op != Plain()
    assert str(op) == "Plain"


def test_itypes_and_otypes_make_a_node():
    x = number("x")
    node = Add(1).make_node(x)
    assert node.inputs == [x]
    assert [out.type for out in node.outputs] == [number]
    assert str(node) == "Add{amount=1}(x)"


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        ((), ValueError, "We expected 1 inputs but got 0"),
        ((generic("g"),), TypeError, "input 0 of Add{amount=1}"),
        ((3,), TypeError, "We expected inputs of types"),
    ],
)
def test_wrong_inputs_are_refused(inputs, error, text):
    with pytest.raises(error, match=text):
        Add(1)(*inputs)


def test_an_op_without_types_needs_make_node():
    with pytest.raises(NotImplementedError, match="implement make_node"):
        Plain()(generic())


def test_a_call_returns_an_output_or_a_list(toy, leaves):
    (x,) = leaves("x")
    one, two = toy("f"), toy("g", outs=2)
    assert one(x).owner.op is one
    assert [out.index for out in one(x, return_list=True)] == [0]
    assert [out.index for out in two(x)] == [0, 1]
    two.default_output = 1
    assert two(x).index == 1
    assert [out.index for out in two(x, return_list=True)] == [1]


def test_a_call_may_go_around_the_class_op(leaves):
    class Counted(Op):
        calls = 0

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def __call__(self, x):
            self.calls += 1
            return super(Op, self).__call__(x)

    (x,), op = leaves("x"), Counted()
    out = op(x)
    assert out.owner.op is op and out.owner.inputs == [x] and op.calls == 1


@pytest.mark.parametrize(
    ("call", "name", "of_theano"),
    [
        (lambda op: op.perform(None, [], []), "perform", MethodNotDefined),
        (lambda op: op.grad([], []), "grad", AttributeError),
        (lambda op: op.L_op([], [], []), "grad", AttributeError),
        (lambda op: op.R_op([], []), "R_op", NotImplementedError),
        (lambda op: op.get_params(None), "get_params", MethodNotDefined),
    ],
)
def test_a_method_that_is_missing_is_named(call, name, of_theano):
    with pytest.raises(MethodNotDefined) as caught:
        call(Plain())
    assert caught.value.args == (name, Plain, "Plain")
    assert isinstance(caught.value, of_theano)


# --- Apply ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "outputs", "text"),
    [
        (generic(), [], "inputs of an Apply must be a list"),
        ([], generic(), "output of an Apply must be a list"),
        ([3], [], "must contain Variable instances, not 3 .input 0"),
        ([], [3], "must contain Variable instances with no owner, not 3 .output 0"),
    ],
)
def test_an_apply_takes_variables_only(inputs, outputs, text):
    with pytest.raises(TypeError, match=text):
        Apply(Plain(), inputs, outputs)


def test_an_output_belongs_to_one_apply():
    out = generic()
    Apply(Plain(), [], [out])
    with pytest.raises(ValueError, match="must belong to it"):
        Apply(Plain(), [], [out])


def test_the_default_output_of_an_apply(toy, leaves):
    assert toy("f").make_node(*leaves("x")).out.index == 0
    several = toy("g", outs=2)
    node = several.make_node(*leaves("x"))
    with pytest.raises(AttributeError, match="has 2 outputs and no default_output"):
        node.default_output()
    for index in (-1, 2, [0, 1]):
        several.default_output = index
        with pytest.raises(AttributeError, match="None or 0 to 1, not"):
            node.default_output()


def test_a_transpose_of_a_named_variable_is_short(toy, leaves):
    transpose = toy("Transpose")
    transpose.new_order = (1, 0)
    (x,) = leaves("x")
    f = toy("f")
    assert str(f(transpose(x)).owner) == "f(x.T)"
    assert str(f(transpose(f(x))).owner) == "f(Transpose.0)"


def test_a_clone_has_new_outputs_and_the_same_inputs(toy, leaves):
    (x,) = leaves("x")
    node = toy("f").make_node(x)
    node.tag.note = 1
    twin = node.clone()
    assert twin.op is node.op and twin.inputs == [x]
    assert twin.outputs[0] is not node.outputs[0]
    assert twin.outputs[0].owner is twin
    assert twin.trace == node.trace
    twin.tag.note = 2
    assert node.tag.note == 1


def test_new_inputs_must_have_the_old_types():
    node = Add(1).make_node(number("x"))
    other = number("y")
    assert node.clone_with_new_inputs([other]).inputs == [other]
    with pytest.raises(TypeError, match="Cannot convert Type"):
        node.clone_with_new_inputs([generic()])
    with pytest.raises(TypeError, match="We expected inputs of types"):
        node.clone_with_new_inputs([generic()], strict=False)


def test_an_apply_and_its_outputs_share_one_trace(toy, leaves):
    node = toy("f", outs=2).make_node(*leaves("x"))
    assert node.trace
    assert all(out.made_at is node.trace and out._trace is None for out in node.outputs)


# --- test values ----------------------------------------------------------------------------------


@pytest.fixture
def testing(request):
    before = config.compute_test_value
    yield lambda action: setattr(config, "compute_test_value", action)
    config.compute_test_value = before


def test_test_values_are_computed_while_the_graph_is_built(testing):
    testing("raise")
    x = number("x")
    x.tag.test_value = 4
    assert Add(1)(Add(1)(x)).tag.test_value == 6


def test_a_missing_test_value_is_reported_as_the_flag_asks(testing):
    x = number("x")
    testing("ignore")
    assert not hasattr(Add(1)(x).tag, "test_value")
    testing("warn")
    with pytest.warns(UserWarning, match=r"input 0 \(x\) of Op Add.*missing default"):
        Add(1)(x)
    testing("raise")
    with pytest.raises(ValueError, match=r"input 0 \(x\) of Op Add.*missing default"):
        Add(1)(x)
