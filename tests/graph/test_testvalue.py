"""Test values: what each setting of compute_test_value does, over whole graphs."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Op, function, shared
from opwise.config import config
from opwise.errors import AsTensorError
from opwise.gradient import grad
from opwise.graph import testvalue
from opwise.graph.testvalue import (
    debug_assert,
    debug_error_message,
    get_debug_values,
    get_test_value,
    missing_test_message,
)
from opwise.graph.traversal import io_toposort

ACTIONS = ["off", "ignore", "warn", "raise", "pdb"]


@pytest.fixture
def tested(flags):
    """Set compute_test_value until the test ends."""
    return lambda action: flags(compute_test_value=action)


@pytest.fixture
def debugger(monkeypatch):
    """Return a list that gets an item whenever the debugger would open."""
    import pdb

    opened = []
    monkeypatch.setattr(pdb, "set_trace", lambda: opened.append(True))
    return opened


def network():
    """Return (inputs, expressions) of a small network, with test values."""
    x, labels = T.dmatrix("x"), T.lvector("labels")
    x.tag.test_value = np.linspace(-1, 1, 20).reshape(5, 4)
    labels.tag.test_value = np.array([0, 1, 2, 0, 1])
    w, b = shared(np.linspace(0, 1, 12).reshape(4, 3), name="w"), shared(np.zeros(3), name="b")
    hidden = T.tanh(T.dot(x, w) + b)
    cost = T.nnet.categorical_crossentropy(T.nnet.softmax(hidden), labels).mean()
    cost += T.sum(w**2) + x[0].max() + T.concatenate([x, x]).std()
    return [x, labels], [cost, *grad(cost, [w, b])]


@pytest.mark.parametrize("action", ["ignore", "warn", "raise", "pdb"])
def test_every_variable_has_the_value_that_the_function_computes(tested, action):
    tested(action)
    inputs, expressions = network()
    nodes = io_toposort([], expressions)
    for out in (out for node in nodes for out in node.outputs):
        value = out.tag.test_value
        if hasattr(out.type, "numpy_dtype"):
            assert isinstance(value, np.ndarray) and value.dtype == out.type.dtype, out
    tested("off")
    f = function(inputs, expressions, mode="FAST_COMPILE")
    for computed, var in zip(f(*(i.tag.test_value for i in inputs)), expressions, strict=True):
        np.testing.assert_allclose(computed, var.tag.test_value, rtol=1e-12)


def test_off_computes_nothing(tested):
    tested("off")
    _, (cost, *_) = network()
    assert not hasattr(cost.tag, "test_value")
    T.dot(*_unfitting()) + 1  # without a result


def _unfitting():
    x, y = T.dmatrices("xy")
    x.tag.test_value, y.tag.test_value = np.ones((2, 3)), np.ones((2, 3))
    return x, y


@pytest.mark.parametrize("action", ["ignore", "warn", "raise", "pdb"])
def test_an_error_is_raised_at_the_line_that_causes_it(tested, action):
    tested(action)
    x, y = _unfitting()
    with pytest.raises(ValueError, match="not aligned") as raised:
        T.dot(x, y)
    assert raised.traceback[0].path.samefile(__file__)
    text = str(raised.value)
    assert "Apply node that failed on test values: dot(x, y)" in text
    assert "x of shape (2, 3), made at File" in text and __file__ in text


def test_a_missing_value_is_reported_as_the_flag_asks(tested, debugger, capsys):
    x, y = T.dvectors("xy")
    y.tag.test_value = np.ones(3)
    text = r"Cannot compute test value: input 0 \(x\) of Op Elemwise.* missing default value"
    tested("ignore")
    assert not hasattr((x + y).tag, "test_value")
    tested("warn")
    with pytest.warns(UserWarning, match=f"Warning, {text}") as caught:
        assert not hasattr((x + y).tag, "test_value")
    assert len(caught) == 1 and caught[0].filename == __file__
    tested("pdb")
    x + y
    assert debugger == [True] and "input 0 (x)" in capsys.readouterr().err
    tested("raise")
    with pytest.raises(ValueError, match=text) as raised:
        x + y
    assert "Set x.tag.test_value to a value of TensorType(float64, vector)" in str(raised.value)
    assert 'x, y = T.dvectors("xy")' in str(raised.value)


def test_a_value_of_the_wrong_type(tested):
    x = T.dvector("x")
    x.tag.test_value = np.ones((2, 2))
    for action in ("ignore", "warn", "raise"):
        tested(action)
        with pytest.raises(TypeError, match="one input test value does not have the requested"):
            x + 1
    with pytest.raises(TypeError, match="expected 1, got 2") as raised:
        get_test_value(x)
    assert 'x = T.dvector("x")' in str(raised.value)


def test_a_value_that_is_overwritten_is_a_copy(tested):
    tested("raise")
    x = T.dvector("x")
    x.tag.test_value = np.ones(3)
    y = T.set_subtensor(x[0], 5.0, inplace=True)
    assert y.tag.test_value[0] == 5 and x.tag.test_value[0] == 1


def test_an_error_of_an_op_that_takes_no_text_gets_a_note(tested):
    class Two(Exception):
        def __init__(self, code, reason):
            super().__init__(code, reason)

    class Fails(Op):
        itypes, otypes = [T.dscalar], [T.dscalar]

        def perform(self, node, inputs, output_storage):
            raise Two(1, "no")

    tested("raise")
    x = T.dscalar("x")
    x.tag.test_value = 1.0
    with pytest.raises(Two) as raised:
        Fails()(x)
    assert raised.value.__notes__[0].startswith("Apply node that failed on test values: Fails(x)")


def test_get_test_value_of_each_kind_of_variable():
    x = T.dvector("x")
    with pytest.raises(AttributeError, match="x has no test value"):
        get_test_value(x)
    x.tag.test_value = [1, 2]
    np.testing.assert_array_equal(get_test_value(x), np.array([1.0, 2.0]))
    assert get_test_value(T.constant(3.0)) == 3
    w = shared(np.ones(2))
    assert get_test_value(w) is w.get_value(borrow=True)
    assert Op._get_test_value(x).tolist() == [1, 2]


def test_get_debug_values(tested):
    x, y = T.dvectors("xy")
    x.tag.test_value = np.ones(2)
    assert get_debug_values(x) == []
    tested("raise")
    (value,) = get_debug_values(x)
    assert value.tolist() == [1, 1]
    ((first, second),) = get_debug_values(x, 7)
    assert first.tolist() == [1, 1] and second == 7
    with pytest.raises(AttributeError, match=r"Argument 1 \('y'\) has no test value"):
        get_debug_values(x, y)
    tested("warn")
    with pytest.warns(UserWarning, match=r"Argument 1 \('y'\) has no test value") as caught:
        assert get_debug_values(x, y) == []
    assert caught[0].filename == __file__
    tested("ignore")
    assert get_debug_values(x, y) == []


@pytest.mark.parametrize("action", ["ignore", "raise"])
def test_debug_messages_raise(tested, action):
    tested(action)
    with pytest.raises(ValueError, match="too large"):
        debug_error_message("too large")
    with pytest.raises(AssertionError, match="debug_assert failed"):
        debug_assert(False)
    debug_assert(True)


def test_debug_messages_warn(tested):
    tested("warn")
    for report, text in (
        (lambda: debug_error_message("too large"), "too large"),
        (lambda: debug_assert(False, "not so"), "not so"),
        (lambda: missing_test_message("none there"), "none there"),
    ):
        with pytest.warns(UserWarning, match=text) as caught:
            report()
        assert caught[0].filename == __file__


def test_print_test_value(flags):
    x, y = T.dvectors("xy")
    x.tag.test_value = np.array([1.0, 2.0])
    w = shared(np.zeros(1), name="w")
    assert repr(x) == "x"
    flags(print_test_value=True)
    assert repr(x) == "x\narray([1., 2.])"
    assert repr(y) == "y"
    assert repr(w) == "w\narray([0.])"
    assert repr(T.constant(3)) == "TensorConstant{3}\narray(3, dtype=int8)"
    assert str(x) == "x"


@pytest.mark.parametrize("action", ACTIONS)
def test_rewrites_have_a_flag_of_their_own(flags, action):
    """compute_test_value is for the user's graph, compute_test_value_opt for Applys of rewrites."""
    flags(compute_test_value="raise", compute_test_value_opt=action)
    x = T.dvector("x")
    x.tag.test_value = np.ones(3)
    f = function([x], T.log(T.exp(x) * 2) + T.sum(x**2), mode="FAST_RUN")
    assert f([0.0, 1.0])[0] == pytest.approx(np.log(2) + 1)
    computed = [hasattr(n.outputs[0].tag, "test_value") for n in f.maker.fgraph.toposort()]
    assert config.compute_test_value == "raise"
    assert action == "off" or all(computed)


@pytest.mark.parametrize("name", testvalue.__all__)
def test_old_programs_find_these_names(name):
    import theano.gof.op

    assert getattr(theano.gof.op, name) is getattr(testvalue, name)


@pytest.mark.parametrize(("given", "dtype"), [(np.array([1.0, 2.0]), "float64"), ([1, 2], "int64"),
                                              (3, "int8")])  # fmt: skip
def test_values_are_their_own_test_values(given, dtype):
    value = get_test_value(given)
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, given)
    with pytest.raises(AsTensorError):
        get_test_value("a")
