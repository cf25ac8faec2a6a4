"""Repeated runs: what differs is told from what varies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwise.profiling import compare, noise
from opwise.profiling.aggregate import SummaryRow
from opwise.profiling.compare import Difference
from opwise.profiling.histogram import bucket
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null


def runs(build, means, seed, n=7, spread=0.05, rows=1):
    """Profiles of n runs: Applys of such means, each with a spread of its own in each run."""
    apply, function, _ = build
    rng = np.random.default_rng(seed)
    return [
        Profile((function(*(
            apply(f"op{k}", int(1000 * mean * (1 + spread * rng.standard_normal())), k,
                  keys=[f"k{k}"], count=10)
            for k, mean in enumerate(np.repeat(means, rows))
        )),))
        for _ in range(n)
    ]  # fmt: skip


def test_a_real_difference_is_found_among_rows_that_vary(build):
    before, after = runs(build, [1000, 2000, 3000], 1), runs(build, [1000, 2600, 2000], 2)
    total, *rows = noise.repeated(compare.by_apply, before, after)
    assert [r.verdict for r in rows] == ["noise", "slower", "faster"]
    assert rows[1].ratio == pytest.approx(1.3, abs=0.1)
    low, high = rows[1].interval()
    assert 1 < low < rows[1].ratio < high < 1.6
    assert (total.row.label, len(total.mine)) == ("all Applys", 7)


@pytest.mark.parametrize("seed", range(4))
def test_verdicts_agree_with_intervals(seed):
    """1 is in the interval of a row exactly where its verdict is noise."""
    rng = np.random.default_rng(seed)
    rows = [
        noise.Repeated(
            Difference(k, SummaryRow(k, "", 1000), SummaryRow(k, "", 1000)),
            tuple(rng.lognormal(0, 0.2, rng.integers(4, 12))),
            tuple(factor * rng.lognormal(0, 0.2, rng.integers(4, 12))),
        )
        for k, factor in enumerate((1, 1, 1, 1.2, 1.2, 1.5, 2, 0.7))
    ]
    verdicts = set()
    for row in noise._judged(rows):
        low, high = row.interval()
        assert low <= row.ratio <= high
        if row.p is not None:
            verdicts.add(row.verdict)
            assert (row.verdict == "noise") == (low <= 1 <= high)
    assert {"noise", "slower"} <= verdicts


def test_runs_that_are_all_alike():
    row = Difference("k", SummaryRow("k", "", 1000), SummaryRow("k", "", 1000))
    (found,) = noise._judged([noise.Repeated(row, (5.0,) * 5, (5.0,) * 5)])
    assert (found.verdict, found.interval()) == ("noise", (1.0, 1.0))


def test_nothing_is_found_where_nothing_is(build):
    """Hundreds of small rows of noise: with so few runs nothing can be told of them."""
    before, after = (runs(build, [1000], seed, n=7, rows=300) for seed in (3, 4))
    rows = noise.repeated(compare.by_apply, before, after)[1:]
    assert len(rows) == 300
    assert not [r for r in rows if r.verdict in ("slower", "faster")]
    before, after = (runs(build, [1000], seed, n=8, rows=20) for seed in (3, 4))
    rows = noise.repeated(compare.by_apply, before, after)[1:]
    assert sum(r.verdict != "noise" for r in rows) <= 1


def test_one_apply_that_is_slower_is_found_among_hundreds(build):
    """Small rows do not hide a large one, nor the sum of all."""
    before = runs(build, [1000] * 300, 5, spread=0.02)
    after = runs(build, [100_000] + [1000] * 299, 6, spread=0.02)
    total, first, *rest = noise.repeated(compare.by_apply, before, after)
    assert (total.verdict, first.verdict) == ("slower", "slower")
    assert first.ratio == pytest.approx(100, rel=0.1) and total.p < 0.001
    assert not [r for r in rest if r.verdict in ("slower", "faster")]


def test_few_runs_tell_what_they_can(build):
    """Of five runs each the sum of all can be judged, but not ten rows."""
    before = runs(build, [1000] * 10, 5, n=5, spread=0.02)
    after = runs(build, [10_000] + [1000] * 9, 6, n=5, spread=0.02)
    total, *rows = noise.repeated(compare.by_apply, before, after)
    assert total.verdict == "slower" and {r.verdict for r in rows} == {""}


def test_other_numbers_of_calls_are_made_even(build):
    """One function three times slower, another called ten times more often."""
    apply, function, _ = build

    def run(train, test, calls, jitter):
        return Profile((
            function(apply("dot", train + jitter, keys="a", count=10), name="train", calls=10),
            function(apply("exp", test * calls, keys="b", count=calls), name="test", calls=calls),
        ))  # fmt: skip

    before = [run(1_000_000, 100, 10, k) for k in range(6)]
    after = [run(3_000_000, 100, 100, k) for k in range(6)]
    for way in compare.GROUPINGS.values():
        rows = noise.repeated(way, before, after)
        assert rows[0].ratio == pytest.approx(3, rel=0.01)
    by_apply = {r.row.label: r.ratio for r in noise.repeated(compare.by_apply, before, after)}
    assert (by_apply["dot"], by_apply["exp"]) == (pytest.approx(3, rel=0.01), pytest.approx(1))


@pytest.mark.parametrize(("factor", "verdict"), [(1, "noise"), (1.3, "slower"), (0.7, "faster")])
def test_a_few_slow_calls_do_not_hide_what_the_others_take(build, factor, verdict):
    """Other programs: some of 100 calls take 50 times as long, in each run another number."""
    apply, function, _ = build
    rng = np.random.default_rng(3)

    def run(ns):
        slow = int(rng.integers(0, 20))
        made = apply("exp", round(ns * (100 - slow + 50 * slow)), 0, keys=["a"], count=100)
        pairs = ((bucket(round(ns)), 100 - slow), (bucket(round(50 * ns)), slow))
        return Profile((function(replace(made, histogram=pairs, least=500), calls=100),))

    before = [run(10_000 + 100 * k) for k in range(7)]
    after = [run(factor * (10_000 + 100 * k)) for k in range(7)]
    for row in noise.repeated(compare.by_apply, before, after):
        assert (row.verdict, row.is_typical) == (verdict, factor != 1)
        if factor != 1:
            assert row.ratio == pytest.approx(factor, rel=0.13)
            low, high = row.interval()
            assert low <= row.ratio <= high and not low <= 1 <= high


def test_what_only_some_calls_show_is_found_by_the_mean(build):
    """A tenth of the calls take three times as long as before; the median call does not."""
    apply, function, _ = build

    def run(slow, k):
        made = apply("exp", 90 * 1000 + 10 * slow + k, 0, keys=["a"], count=100)
        pairs = ((bucket(1000), 90), (bucket(slow), 10))
        return Profile((function(replace(made, histogram=pairs, least=500), calls=100),))

    total, row = noise.repeated(compare.by_apply, [run(9_000, k) for k in range(7)],
                                [run(27_000, k) for k in range(7)])  # fmt: skip
    assert row.verdict == total.verdict == "slower" and not row.is_typical
    assert row.ratio == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("n", [1, noise.FEWEST - 1])
def test_too_few_runs_say_nothing(build, n):
    rows = noise.repeated(compare.by_apply, *(runs(build, [m], 5, n=n) for m in (100, 900)))
    assert [r.verdict for r in rows] == ["", ""]
    assert rows[1].ratio == pytest.approx(9, abs=2)


def test_what_one_side_lacks_has_no_verdict(build):
    before, after = runs(build, [100], 6), runs(build, [100, 200], 7)
    _, _, only = noise.repeated(compare.by_apply, before, after)
    assert (only.row.only, only.verdict, only.ratio, only.before) == ("other", "", None, None)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(6)))
def test_the_order_of_runs_makes_no_difference(order):
    first = noise.Repeated(None, tuple(range(1, 7)), tuple(range(3, 9)))
    other = noise.Repeated(None, tuple(order[i] + 1 for i in range(6)), tuple(range(3, 9)))
    assert [*noise.corrected([first]).values()] == [*noise.corrected([other]).values()]


def test_equal_functions_of_one_program_keep_their_runs_apart(build):
    """The same Apply in two functions: the observations of each stay with it."""
    apply, function, _ = build

    def run(jitter):
        return Profile((
            function(apply("exp", 1000 + jitter, keys="a"), name="slow"),
            function(apply("exp", 10 + jitter, keys="a"), name="fast"),
        ))  # fmt: skip

    rows = noise.repeated(compare.by_apply, *([run(k) for k in range(5)] for _ in range(2)))
    assert sorted(r.before for r in rows[1:]) == [12, 1002]


def test_rows_that_are_equal_in_all_runs(build):
    """The rank test divides by a variance of 0 there: such a row is noise; others are judged."""
    apply, function, _ = build

    def side(*means):
        return [
            Profile((function(apply("same", 1000, 0, keys=["a"]),
                              apply("other", mean, 1, keys=["b"])),))
            for mean in means
        ]  # fmt: skip

    before, after = side(100, 101, 102, 103, 104, 105), side(200, 201, 202, 203, 204, 205)
    total, *rows = noise.repeated(compare.by_apply, before, after)
    assert [(r.row.label, r.p == 1.0, r.verdict) for r in rows] == [
        ("same", True, "noise"), ("other", False, "slower"),
    ]  # fmt: skip
    assert total.verdict == "slower" and rows[0].interval() == (1.0, 1.0)
    assert [r.verdict for r in noise.repeated(compare.by_apply, before, before)] == ["noise"] * 3


def test_runs_of_which_some_took_no_time(build):
    apply, function, _ = build
    sides = [
        [Profile((function(apply("exp", ns, 0, keys=["a"])),)) for ns in times]
        for times in ((0, 0, 0, 5, 6, 7, 8), (0, 0, 0, 9, 9, 9, 9))
    ]
    _, row = noise.repeated(compare.by_apply, *sides)
    assert row.ratio == 9 / 5 and len(row.interval()) == 2
