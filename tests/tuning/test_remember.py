"""What is kept of a program's calls, and the advice at its end."""

import os
import pickle

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.tuning import remember
from opwise.tuning.remember import Remembered

pytestmark = pytest.mark.null


@pytest.fixture
def kept(monkeypatch, flags):
    """Switch the flag on for two functions; return those that are kept."""
    flags({"tuning.functions": 2, "tuning.budget": 0.5})
    monkeypatch.setenv("OPWISE_TUNING_OWNER", str(os.getpid()))
    monkeypatch.setattr(remember, "_kept", [])
    return remember._kept


@pytest.fixture
def clock(monkeypatch):
    """Let each call take ``clock.step`` seconds."""

    class Clock:
        now, step = 0.0, 1.0

        def __call__(self):
            self.now += self.step
            return self.now

    clock = Clock()
    monkeypatch.setattr(remember, "perf_counter", clock)
    return clock


def made(name):
    x = T.dvector("x")
    return opwise.function([x], x * 2, name=name)


def test_nothing_is_remembered_unless_asked():
    assert type(made("f")) is opwise.Function


def test_the_last_call_is_kept_as_a_copy(kept, clock):
    f = made("f")
    assert type(f) is Remembered and isinstance(f, opwise.Function)
    value = np.ones(3)
    for k in range(10):
        value[:] = k
        assert f(value).tolist() == [2 * k] * 3
    (args, kwargs) = f.last_call
    # copied when the time had doubled: with the first, third and seventh call
    assert args[0].tolist() == [6.0] * 3 and kwargs == {}
    assert args[0] is not value
    assert f.seconds == 10


def test_arguments_by_keyword(kept, clock):
    f = made("f")
    f(x=np.ones(2))
    assert f.last_call[0] == () and f.last_call[1]["x"].tolist() == [1, 1]


def test_only_the_functions_with_most_time_are_kept(kept, clock):
    a, b, c = made("a"), made("b"), made("c")
    for f, step in ((a, 3.0), (b, 1.0), (c, 2.0)):
        clock.step = step
        f(np.ones(1))
    assert kept == [a, c] and b.last_call is None
    clock.step = 9.0
    b(np.ones(2))
    assert kept == [a, b] and c.last_call is None
    assert b.last_call[0][0].shape == (2,)


def test_calls_that_raise_do_not_count(kept, clock):
    f = made("f")
    with pytest.raises(ValueError, match="text"):
        f("text")
    assert f.seconds == 0 and kept == []


def test_copies_and_pickles_work(kept, clock):
    f = made("f")
    f(np.ones(1))
    assert f.copy()(np.ones(1)) == pickle.loads(pickle.dumps(f))(np.ones(1)) == 2


def test_a_process_of_a_program_that_is_tuned_is_left_alone(kept, monkeypatch):
    monkeypatch.setenv("OPWISE_TUNING_OWNER", "1")
    assert type(made("f")) is opwise.Function


def test_the_advice_at_the_end(kept, capsys):
    f, g = made("much"), made("little")
    for _ in range(50):
        f(np.ones(1000))
    g(np.ones(1))
    remember._at_end()
    first, second = capsys.readouterr().out.split("\n\n")
    assert " s in calls of much: " in first and " s in calls of little: " in second
    assert len(kept) == 2  # what advise compiles is not remembered


def test_a_function_that_cannot_be_called_again_does_not_hide_the_others(kept, capsys):
    x, w = T.dvector("x"), opwise.shared(np.ones(3))
    f = opwise.function([x], x + w, name="broken")
    f(np.ones(3))
    g = made("whole")
    g(np.ones(3))
    w.set_value(np.ones(4))
    remember._at_end()
    out = capsys.readouterr().out
    assert "broken: no advice, because calling it again failed: ValueError: " in out
    assert "in calls of whole: " in out


def test_a_program_without_calls(kept, capsys):
    remember._at_end()
    assert capsys.readouterr().out == (
        "opwise: the program called no function, so there is no advice\n"
    )
