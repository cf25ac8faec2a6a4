"""Named scopes: which Applys belong to them, also of gradients and rewrites."""

import pickle

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.graph import provenance


def scope_of(var):
    return var.owner.context.scope if var.owner.context is not None else None


def test_applys_made_inside_belong_to_the_scope():
    x = T.dvector("x")
    with opwise.scope("layer"):
        a = T.exp(x)
        with opwise.scope("inner/most"):
            b = T.exp(a)
        c = T.exp(b)
    d = T.exp(c)
    assert [scope_of(v) for v in (a, b, c, d)] == ["layer", "layer/inner/most", "layer", None]


def test_as_a_decorator():
    @opwise.scope("f")
    def f(x):
        return T.exp(x)

    assert scope_of(f(T.dscalar())) == "f"


def test_a_scope_ends_if_an_error_is_raised():
    with pytest.raises(ZeroDivisionError), opwise.scope("a"):
        1 / 0  # noqa: B018
    assert scope_of(T.exp(T.dscalar())) is None


def all_scopes(var):
    found, stack = set(), [var]
    while stack:
        node = stack.pop().owner
        if node is not None:
            found.add(node.context.scope if node.context is not None else None)
            stack += node.inputs
    return found


def test_gradients_belong_to_the_scope_of_the_forward_apply():
    x = T.dvector("x")
    with opwise.scope("one"):
        y = T.exp(x)
    with opwise.scope("two"):
        z = T.tanh(y).sum()
    with opwise.scope("training"):
        g = T.grad(z, x)
    assert all_scopes(g) == {"one", "one/grad", "two", "two/grad"}


def test_gradients_without_a_forward_scope_belong_to_the_scope_around_grad():
    x = T.dvector("x")
    y = T.exp(x).sum()
    with opwise.scope("training"):
        g = T.grad(y, x)
    assert all_scopes(g) == {None, "training/grad"}


def test_a_gradient_of_a_gradient_stays_in_one_part():
    x = T.dscalar("x")
    with opwise.scope("one"):
        y = T.exp(x) * T.tanh(x)
    found = all_scopes(T.grad(T.grad(y, x), x))
    # the sum of the gradients of x is in no scope
    assert found - {None, ""} == {"one", "one/grad"}


def test_a_gradient_has_the_line_of_the_forward_apply():
    x = T.dscalar("x")
    y = T.tanh(x)
    line = provenance.user_line(y.owner)
    g = T.grad(y, x)
    assert provenance.gradient_line(g.owner) == line
    assert provenance.gradient_line(y.owner) is None
    assert provenance.user_line(g.owner) == (line[0], line[1] + 2)


@pytest.mark.parametrize(("name", "error"), [(3, TypeError), ("", ValueError), ("/", ValueError)])
def test_invalid_names_raise(name, error):
    with pytest.raises(error, match="name of a scope"), opwise.scope(name):
        pass


def test_copies_and_pickles_keep_the_scope():
    x = T.dvector("x")
    with opwise.scope("layer"):
        y = T.tanh(x).sum()
    g = T.grad(y, x)
    for again in (opwise.clone(g), pickle.loads(pickle.dumps(g))):
        assert all_scopes(again) == {"layer", "layer/grad"}
        assert provenance.gradient_line(again.owner) == provenance.gradient_line(g.owner)


def test_a_profile_shows_the_scopes_of_fused_applys():
    x = T.dvector("x")
    with opwise.scope("a"):
        y = T.exp(x)
    with opwise.scope("b"):
        z = y * 2
    f = opwise.function([x], z, profile=True)
    f(np.ones(3))
    (apply,) = f.profile.profile().applys
    assert {origin.scope for origin in apply.origins} == {"a", "b"}
    sources = f.profile.profile().sources
    assert {sources["%s:%d" % line] for line in apply.lines} == {"y = T.exp(x)", "z = y * 2"}
