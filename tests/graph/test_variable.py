"""Variables and constants: texts, tags, copies, equality, pickles."""

import copy
import pickle

import pytest

from opwise import Constant, FunctionGraph, generic

pytestmark = pytest.mark.null


def test_text_of_a_variable(toy, leaves):
    (x,) = leaves("x")
    assert str(x) == repr(x) == "x"
    assert str(generic()) == "<Generic>"
    one = toy("f")(x)
    assert str(one) == "f.0"
    one.name = "result"
    assert str(one) == "result"
    first, second = toy("g", outs=2)(x)
    assert (str(first), str(second)) == ("g.0", "g.1")


def test_the_default_output_is_called_out(toy, leaves):
    op = toy("g", outs=2)
    op.default_output = 1
    out = op(*leaves("x"))
    assert out.index == 1
    assert str(out) == "g.out"


def test_a_name_must_be_a_string():
    with pytest.raises(TypeError, match="name of a variable must be a string, got 3"):
        generic(3)


def test_a_constant_is_shown_by_its_data():
    assert str(Constant(generic, 3)) == "Constant{3}"
    assert str(Constant(generic, 3, name="three")) == "three"
    assert str(Constant(generic, "a" * 15 + "b" * 15)) == "Constant{aaaaaaaaaa...bbbbbbbbbb}"


def test_constants_are_equal_by_type_and_data():
    three = Constant(generic, 3)
    assert three.equals(Constant(generic, 3, name="other"))
    assert not three.equals(Constant(generic, 4))
    assert not three.equals(generic("x"))
    assert three.value == 3
    assert three.cached_signature() is three.cached_signature()


def test_a_tag_is_made_when_asked_for_and_is_kept():
    x = generic("x")
    assert x._tag is None
    x.tag.note = "here"
    assert x.tag.note == "here"


def test_a_tag_holds_where_the_variable_was_made():
    x = generic("x")
    ((*_, innermost),) = x.tag.trace
    filename, _, function, text = innermost
    assert filename == __file__
    assert function == "test_a_tag_holds_where_the_variable_was_made"
    assert text == 'x = generic("x")'


def test_a_clone_has_no_owner_and_a_tag_of_its_own(toy, leaves):
    (x,) = leaves("x")
    y = toy("f")(x)
    y.name = "y"
    y.tag.note = "original"
    twin = y.clone()
    assert (twin.owner, twin.index, twin.name, twin.type) == (None, None, "y", y.type)
    assert twin.made_at == y.made_at
    twin.tag.note = "copy"
    assert y.tag.note == "original"


def test_variables_are_compared_by_identity_and_have_no_order():
    x, y = generic("x"), generic("x")
    assert x != y and len({x, y}) == 2
    with pytest.raises(NotImplementedError, match="have no order"):
        x < y  # noqa: B015


def test_clients_exist_only_inside_a_function_graph(toy, leaves):
    (x,) = leaves("x")
    f = toy("f")
    y = f(x)
    assert x.clients == []
    FunctionGraph([x], [y, x], clone=False)
    assert x.clients == [(y.owner, 0), ("output", 1)]
    assert y.clients == [("output", 0)]


@pytest.mark.parametrize(
    "duplicate", [lambda v: pickle.loads(pickle.dumps(v)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_copy_of_a_graph_keeps_names_lines_and_structure(duplicate):
    x = generic("x")
    x.tag.note = [1]
    new = duplicate(x)
    assert (new.name, new.type, new.tag.note) == ("x", generic, [1])
    assert new is not x
    assert [entry[:3] for entry in new.tag.trace[0]] == [entry[:3] for entry in x.tag.trace[0]]
