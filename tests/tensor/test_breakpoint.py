"""PdbBreakpoint: when it stops, what can be done there, and what it is for gradients."""

import pdb
import sys

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.gradient import Rop, grad
from opwise.tensor.breakpoint import PdbBreakpoint


@pytest.fixture
def stops(monkeypatch):
    """Return a list of what was monitored at each stop; what is in ``stops.then`` is put there."""

    class Stops(list):
        then = None

    found = Stops()

    def stop():
        monitored = sys._getframe(1).f_locals["monitored"]
        found.append([value.tolist() for value in monitored])
        if found.then is not None:
            monitored[0] = found.then

    monkeypatch.setattr(pdb, "set_trace", stop)
    return found


@pytest.fixture(params=["FAST_RUN", "FAST_COMPILE", "py"])
def compiled(request):
    """Return a function of x and y that stops where the sum of x is more than 10."""
    from opwise import Mode

    mode = Mode("py", "fast_run") if request.param == "py" else request.param
    x, y = T.dvectors("xy")
    a, b = PdbBreakpoint("large")(T.gt(x.sum(), 10), x, y)
    return function([x, y], a * 2 + b, mode=mode)


def test_it_stops_where_the_condition_holds(compiled, stops, capsys):
    assert compiled([1.0, 2.0], [0.0, 1.0]).tolist() == [2, 5]
    assert stops == [] and capsys.readouterr().out == ""
    assert compiled([6.0, 5.0], [0.0, 1.0]).tolist() == [12, 11]
    assert stops == [[[6, 5], [0, 1]]]
    said = capsys.readouterr().out
    assert "Conditional breakpoint 'large' activated" in said
    assert "monitored[0]: x" in said and "monitored[1]: y" in said


def test_what_is_put_into_monitored_is_computed_with(compiled, stops):
    stops.then = [100, 200]
    given = np.array([6.0, 5.0])
    assert compiled(given, [0.0, 1.0]).tolist() == [200, 401]
    assert given.tolist() == [6, 5]


def test_what_is_put_there_must_fit(compiled, stops):
    stops.then = [[1.0]]
    with pytest.raises(TypeError, match="expected 1, got 2"):
        compiled([6.0, 5.0], [0.0, 1.0])


def test_one_instance_serves_any_number_of_variables():
    x, y = T.dvectors("xy")
    op = PdbBreakpoint("here")
    one = op(T.gt(x.sum(), 0), x)
    two = op(T.gt(x.sum(), 0), x, y)
    assert one.owner.op.view_map == {0: [1]}
    assert two[0].owner.op.view_map == {0: [1], 1: [2]}


def test_gradients_go_through(stops):
    x, v = T.dvectors("xv")
    out = PdbBreakpoint("here")(T.gt(x.sum(), 10), x)
    f = function([x, v], [grad(T.sum(out**2), x), Rop(out**2, x, v)])
    by_x, along_v = f([1.0, 2.0], [1.0, 0.0])
    assert by_x.tolist() == [2, 4] and along_v.tolist() == [2, 0]


def test_shapes_need_no_stop(stops):
    x = T.dvector("x")
    f = function([x], PdbBreakpoint("here")(T.gt(x.sum(), 0), x).shape)
    assert f([1.0, 2.0]).tolist() == [2] and stops == []


def test_what_it_refuses():
    x = T.dvector("x")
    with pytest.raises(AssertionError, match=r"must be a scalar, .* write T.any"):
        PdbBreakpoint("here")(T.gt(x, 0), x)
    with pytest.raises(ValueError, match="monitors nothing"):
        PdbBreakpoint("here")(T.gt(x.sum(), 0))


def test_its_old_place():
    from theano.tests.breakpoint import PdbBreakpoint as legacy

    assert legacy is PdbBreakpoint
