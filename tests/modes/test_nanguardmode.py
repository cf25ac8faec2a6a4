"""NanGuardMode: which values it refuses, in inputs and results, and what it says."""

import itertools
import logging

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function, shared
from opwise.compile.nanguardmode import NanGuardMode

ALL = (True, True, True)
NAN, INF, BIG = (True, False, False), (False, True, False), (False, False, True)


def guarded(options=ALL, out=None, **more):
    x = T.dvector("x")
    out = T.log(x) * 1 if out is None else out(x)
    return function([x], out, mode=NanGuardMode(*options, **more))


@pytest.mark.parametrize(
    ("value", "options", "found"),
    [
        ([-1, 1, 2], ALL, "NaN"), ([-1, 1, 2], NAN, "NaN"), ([-1, 1, 2], INF, ""),
        ([-1, 1, 2], BIG, ""), ([0, 1, 2], ALL, "Inf Big"), ([0, 1, 2], NAN, ""),
        ([0, 1, 2], INF, "Inf"), ([0, 1, 2], BIG, "Big"), ([1e30, 1, 1], ALL, "Big"),
        ([1e30, 1, 1], NAN, ""), ([1e30, 1, 1], INF, ""), ([1e30, 1, 1], BIG, "Big"),
        ([np.nan, 1, 1], ALL, "NaN"), ([np.nan, 1, 1], NAN, "NaN"), ([np.nan, 1, 1], INF, ""),
        ([1, 2, 3], ALL, ""), ([1, 1, 1e10], ALL, ""), ([1, 1, -1e30], INF, ""),
    ],
)  # fmt: skip
def test_what_is_found(value, options, found):
    f = guarded(options)
    value = np.array(value, float)
    with np.errstate(all="ignore"):
        if not found:
            np.testing.assert_allclose(f(value), np.log(value))
            return
        with pytest.raises(AssertionError) as error:
            f(value)
    lines = str(error.value).split("\n")
    names = {"NaN": "NaN detected", "Inf": "Inf detected", "Big": "Big value detected"}
    expected = [names[word] for word in found.split()]
    assert lines[: len(expected)] == expected
    assert lines[len(expected)].startswith("NanGuardMode found an error in ")


def test_an_input_is_named_as_one():
    with pytest.raises(AssertionError, match="found an error in an input of the graph"):
        guarded()(np.array([np.nan]))


def test_no_apply_is_blamed_for_an_input():
    with pytest.raises(AssertionError) as error:
        guarded()(np.array([np.inf]))
    text = str(error.value)
    assert text.startswith("Inf detected\nBig value detected\nNanGuardMode found an error in an in")
    assert "Backtrace when that variable is created:" in text and 'x = T.dvector("x")' in text
    assert "Apply node that caused the error" not in text


def test_a_stopped_call_keeps_shared_values():
    x = T.dvector("x")
    s = shared(np.ones(2))
    f = function([x], s * 1, updates=[(s, s / x)], mode=NanGuardMode())
    with pytest.raises(AssertionError, match="Inf detected"), np.errstate(all="ignore"):
        f([1.0, 0.0])
    np.testing.assert_array_equal(s.get_value(), [1, 1])
    f([2.0, 4.0])
    np.testing.assert_array_equal(s.get_value(), [0.5, 0.25])


def test_a_result_is_shown_with_its_graph_and_line():
    with pytest.raises(AssertionError) as error, np.errstate(all="ignore"):
        guarded(out=lambda x: T.exp(T.log(x)) * 2, optimizer=None)(np.array([-1.0]))
    text = str(error.value)
    assert "NanGuardMode found an error in the output of a node in this variable:" in text
    assert "Elemwise{log,no_inplace} [id A]" in text and " |x [id B]" in text
    assert "Backtrace when that variable is created:" in text and __file__ in text
    assert "Apply node that caused the error: Elemwise{log,no_inplace}(x)" in text


def test_it_stops_at_the_first():
    """What comes after the fault does not run, and shared values stay."""
    w = shared(np.ones(2), name="w")
    x = T.dvector("x")
    f = function([x], T.log(x).sum(), updates=[(w, w + T.log(x))], mode="NanGuardMode")
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        f([-1.0, 1.0])
    np.testing.assert_array_equal(w.get_value(), [1, 1])
    f([1.0, np.e])
    np.testing.assert_allclose(w.get_value(), [1, 2])


def test_shared_values_and_constants_are_checked():
    w = shared(np.array([1.0, np.inf]), name="w")
    x = T.dvector("x")
    with pytest.raises(AssertionError, match="Inf detected"):
        function([x], w * x, mode=NanGuardMode())([1.0, 1.0])
    with pytest.raises(AssertionError, match="Big value detected"):
        function([x], x + 1e30, mode=NanGuardMode(False, False, True))([1.0])


def test_integers_objects_and_empty_arrays_are_not_checked():
    i, e = T.lvector("i"), T.dvector("e")
    f = function([i, e], [i * 10, e * 2], mode=NanGuardMode())
    a, b = f([10**15], [])
    assert a == [10**16] and b.size == 0


def test_complex_values():
    z = T.zvector("z")
    f = function([z], z * 2, mode=NanGuardMode())
    with pytest.raises(AssertionError, match="NaN"):
        f([complex(np.nan, 0)])
    np.testing.assert_array_equal(f([1j]), [2j])


def test_a_variable_can_be_exempt():
    x = T.dvector("x")
    a = T.log(x)
    a.tag.nan_guard_mode_check = False
    f = function([x], T.switch(T.gt(x, 0), a, 0.0), mode=NanGuardMode(optimizer=None))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(f([-1.0, 1.0]), [0, 0])
    x.tag.nan_guard_mode_check = False
    g = function([x], T.switch(T.isnan(x), 0.0, x), mode=NanGuardMode(optimizer=None))
    np.testing.assert_array_equal(g([np.nan, 1.0]), [0, 1])


def test_something_must_be_checked():
    with pytest.raises(AssertionError):
        NanGuardMode(False, False, False)


@pytest.mark.parametrize("options", list(itertools.product([True, False], repeat=3)))
def test_options_come_from_flags(flags, options):
    names = ("nan_is_error", "inf_is_error", "big_is_error")
    flags({f"NanGuardMode.{n}": o for n, o in zip(names, options, strict=True)})
    if not any(options):
        with pytest.raises(AssertionError):
            NanGuardMode()
        return
    mode = NanGuardMode()
    assert tuple(getattr(mode, n) for n in names) == options
    assert NanGuardMode(*ALL).nan_is_error is True


def test_the_action_warn(flags, caplog):
    flags({"NanGuardMode.action": "warn"})
    f = guarded()
    with caplog.at_level(logging.ERROR), np.errstate(all="ignore"):
        assert np.isnan(f(np.array([-1.0])))
    assert "NaN detected" in caplog.text


def test_the_action_pdb(flags, monkeypatch, capsys):
    import pdb

    stops = []
    monkeypatch.setattr(pdb, "set_trace", lambda: stops.append(1))
    flags({"NanGuardMode.action": "pdb"})
    with pytest.raises(AssertionError), np.errstate(all="ignore"):
        guarded()(np.array([-1.0]))
    assert stops == [1]
    assert "NaN detected" in capsys.readouterr().out


def test_results_of_no_dimension():
    x = T.dscalar("x")
    f = function([x], T.log(x), mode=NanGuardMode())
    with pytest.raises(AssertionError, match="NaN detected"), np.errstate(all="ignore"):
        f(-1.0)
    assert f(1.0) == 0
