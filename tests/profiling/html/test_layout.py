"""The layers of a graph: edges go down, nothing overlaps, and the work is linear."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwise.profiling.html import layout

pytestmark = pytest.mark.null


def chain(n):
    return [(k - 1,) for k in range(n)]


def alone(n):
    return [() for _ in range(n)]


def star(n):
    return [()] + [(0,)] * (n - 2) + [tuple(range(1, n - 1))]


def forth_and_back(n):
    """A chain whose second half also reads the first, as gradients do."""
    half = n // 2
    return [(k - 1,) if k < half else (k - 1, n - 1 - k) for k in range(n)]


def tangled(n):
    rng = random.Random(3)
    return [tuple(rng.randrange(k) for _ in range(min(k, 3))) for k in range(n)]


FAMILIES = [chain, alone, star, forth_and_back, tangled]


def check(reads, columns, rows):
    assert len(columns) == len(rows) == len(reads)
    for k, mine in enumerate(reads):
        for r in mine:
            if 0 <= r < k:
                assert rows[r] < rows[k]
    by_row = {}
    for column, row in zip(columns, rows, strict=True):
        by_row.setdefault(row, []).append(column)
    assert sorted(by_row) == list(range(len(by_row)))
    for mine in by_row.values():
        mine.sort()
        # Places are rounded to hundredths.
        assert all(b - a > 0.985 for a, b in pairwise(mine))
    assert min(columns, default=0) == 0


@given(st.lists(st.lists(st.integers(-2, 40), max_size=4), max_size=40))
def test_what_is_read_stands_above_and_nothing_overlaps(reads):
    check(reads, *layout.layered(reads))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_large_graph_takes_steps_in_proportion(family, monkeypatch):
    reads = family(10_000)
    steps = {"mean": 0, "place": 0}
    mean, place = layout._mean, layout._place

    def counted_mean(columns, nodes):
        steps["mean"] += len(nodes)
        return mean(columns, nodes)

    def counted_place(row, wanted, columns):
        steps["place"] += len(row)
        place(row, wanted, columns)

    monkeypatch.setattr(layout, "_mean", counted_mean)
    monkeypatch.setattr(layout, "_place", counted_place)
    columns, rows = layout.layered(reads)
    check(reads, columns, rows)
    edges = sum(len(set(mine)) for mine in reads)
    assert steps["mean"] <= (layout.SWEEPS + 3) * edges
    assert steps["place"] <= (layout.SWEEPS + 2) * len(reads)


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_graphs_get_equal_places(family):
    assert layout.layered(family(300)) == layout.layered(list(family(300)))


def test_a_wide_layer_is_dealt_out_to_several_rows():
    columns, rows = layout.layered(alone(10_000))
    assert max(columns) < 300
    assert max(rows) > 30


def test_an_apply_that_only_a_late_one_needs_stands_by_that():
    # 0 and 1 read nothing; 0 starts a chain, 1 is read at the end of it.
    _, rows = layout.layered([(), (), (0,), (2,), (3,), (4, 1)])
    assert rows == [0, 3, 1, 2, 3, 4]


def test_a_chain_is_straight():
    columns, _ = layout.layered(chain(50))
    assert set(columns) == {0}
