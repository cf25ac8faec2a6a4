"""The benchmark of ``opwise run --live`` and of samples: each way runs, and gives a figure."""

import pytest

from benchmark import live_cost

pytestmark = pytest.mark.null


def test_each_way_gives_a_rate_for_each_round(capsys):
    found = live_cost.measure(1, 10)
    assert list(found) == ["without", "--live", "--no-sampling"]
    assert all(len(rates) == 1 and rates[0] > 0 for rates in found.values())
