"""Rounds and verdicts, with times that are given."""

import pytest

from opwise.tuning import measure
from opwise.tuning.measure import Comparison, compare

pytestmark = pytest.mark.null


class Clock:
    """A timer of two names, that notes who was called."""

    def __init__(self, **seconds):
        self.seconds = {name: iter(values) for name, values in seconds.items()}
        self.log = []

    def __call__(self, name, calls):
        self.log.append((name, calls))
        return calls * next(self.seconds[name])


def forever(*values):
    while True:
        yield from values


def test_a_faster_variant_is_called_so():
    clock = Clock(a=forever(2.0, 2.1, 1.9), b=forever(1.0, 1.1, 0.9))
    found = compare("a", "b", 30, 2.0, clock)
    assert found.verdict == "faster"
    assert found.ratio == pytest.approx(2.0)
    assert found.p < measure.ALPHA
    assert [name for name, _ in clock.log] == ["a", "b"] * len(found.before)


def test_a_gain_within_noise_is_none():
    clock = Clock(a=forever(2.0, 1.0, 3.0, 1.5), b=forever(1.9, 3.1, 1.0, 1.4))
    found = compare("a", "b", 100, 2.0, clock)
    assert found.ratio > measure.WORTH
    assert found.p > measure.ALPHA
    assert found.verdict == "not significant"


def test_a_sure_but_small_gain_is_not_worth_a_tip():
    clock = Clock(a=forever(1.030, 1.031), b=forever(1.0, 1.001))
    assert compare("a", "b", 1000, 1.03, clock).verdict == "gains less than 5%"


def test_equal_times_are_noise():
    assert Comparison((1.0,) * 9, (1.0,) * 9).verdict == "not significant"


def test_slower_and_no_faster():
    clock = Clock(a=forever(1.0, 1.01), b=forever(1.2, 1.21))
    assert compare("a", "b", 1000, 1.0, clock).verdict == "slower"
    clock = Clock(a=forever(1.0, 1.001), b=forever(1.02, 1.021))
    assert compare("a", "b", 1000, 1.0, clock).verdict == "no faster"


def test_short_calls_are_many_to_a_round():
    clock = Clock(a=forever(1e-5), b=forever(0.5e-5))
    compare("a", "b", 0, 1e-5, clock)
    assert clock.log[2:4] == [("a", 400), ("b", 400)]
    assert measure.calls_for(0) == measure.CALLS
    assert measure.calls_for(60) == 1


def test_rounds_are_enough_even_if_the_time_is_up_and_never_too_many():
    clock = Clock(a=forever(1.0, 1.1), b=forever(0.5, 0.6))
    assert len(compare("a", "b", 0, 1.0, clock).before) == measure.FEWEST
    assert len(compare("a", "b", 1e9, 1.0, clock).before) == measure.MOST


def test_a_much_slower_variant_is_dropped_early():
    clock = Clock(a=forever(1.0), b=forever(5.0))
    found = compare("a", "b", 1000, 1.0, clock)
    assert len(found.before) == measure.FEW
    assert found.verdict == "slower"


def test_a_variant_too_slow_for_a_round_gets_single_calls():
    clock = Clock(a=forever(1e-6), b=forever(1.0))
    found = compare("a", "b", 1000, 1e-6, clock)
    assert {calls for _, calls in clock.log} == {1}
    assert found.verdict == "slower"


def test_one_slow_call_does_not_drop_a_variant():
    late = iter([1.0])
    clock = Clock(a=forever(1e-6), b=iter(lambda: next(late, 0.5e-6), None))
    assert compare("a", "b", 0, 1e-6, clock).verdict == "faster"
