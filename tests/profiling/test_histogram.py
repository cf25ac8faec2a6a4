"""Buckets of times: every time is in one, and what they tell is as near as they are wide."""

from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwise.profiling import histogram

pytestmark = pytest.mark.null

times = st.integers(0, 2**42 - 1)


@given(times)
def test_a_time_is_within_the_bounds_of_its_bucket(ns):
    low, high = histogram.bounds(histogram.bucket(ns))
    assert low <= ns < high
    assert high - low <= max(1, low / 8)


def test_buckets_follow_each_other():
    bounds = [histogram.bounds(b) for b in range(histogram.BUCKETS)]
    assert bounds[0][0] == 0
    assert all(a[1] == b[0] for a, b in pairwise(bounds))


@pytest.mark.parametrize(("ns", "bucket"), [(-5, 0), (2**50, 319), (2**63, 319)])
def test_times_beyond_all_buckets(ns, bucket):
    assert histogram.bucket(ns) == bucket


def test_a_bucket_that_there_is_not_costs_nothing():
    assert histogram.bounds(10**30) == histogram.bounds(histogram.BUCKETS - 1)


@given(st.lists(times, min_size=1), st.sampled_from([0.05, 0.5, 0.95, 1]))
def test_a_quantile_is_in_the_bucket_of_the_true_one(values, share):
    pairs = histogram.merged(*(((histogram.bucket(ns), 1),) for ns in values))
    values.sort()
    true = values[ceil(len(values) * share) - 1]
    low, high = histogram.bounds(histogram.bucket(true))
    assert low <= histogram.quantile(pairs, share) < high


def test_without_times_there_is_no_quantile():
    assert histogram.quantile((), 0.5) == 0
