"""The benchmark of what profiling costs: its parts work, and its table says what is over a bar."""

import json
import math
from dataclasses import replace

import pytest

from benchmark import profile_cost
from benchmark.call_cost import Row, print_table
from benchmark.suite.workloads import WORKLOADS

pytestmark = pytest.mark.c

TINY = replace(profile_cost.QUICK, sizes=(3,), rounds=2, batch_seconds=1e-4)


def test_thunks():
    rows = list(profile_cost.thunk_rows(TINY))
    assert [row.name for row in rows] == [
        "3 Applys: a thunk",
        "3 Applys: a thunk, says the profile",
        "3 Applys: profiling adds",
        "3 Applys: profile_memory adds",
    ]
    assert [len(row.samples) for row in rows] == [2, 3, 2, 2]
    assert [row.bar for row in rows] == [None, None, 30, 100]
    assert all(sample >= 0 for row in rows[:2] for sample in row.samples)
    assert all(math.isfinite(sample) for row in rows for sample in row.samples)


def test_what_is_compared_is_the_same_graph():
    steps, modes = profile_cost.functions(3)
    texts = [[str(node) for node in step.linked.order] for step in steps.values()]
    assert texts == [texts[0]] * 3 and len(texts[0]) == 3
    given = [0.5, 0.25]
    expected = [math.tanh(math.tanh(math.tanh(v))) for v in given]
    for step in steps.values():
        assert step(given)[0] == pytest.approx(expected)
    for name, memory in ((profile_cost.PROFILED, False), (profile_cost.MEMORY, True)):
        (function,) = modes[name].profile().functions
        assert function.calls == 1 and bool(function.memory) is memory


def test_calls():
    rows = list(profile_cost.call_rows(TINY))
    assert [len(row.samples) for row in rows] == [2, 2, 1]
    assert rows[0].samples[0] > 0 and rows[2].samples[0] >= 0


def test_differences_are_within_a_turn():
    assert profile_cost.differences([5.0, 9.0], [1.0, 2.0]) == [4.0, 7.0]


def test_reports():
    taken = profile_cost.report_seconds(WORKLOADS["blocks-100"].reduced())
    assert list(taken)[:5] == [
        "print_summary, the first", "print_summary, the second", "snapshot", "to_json", "from_json",
    ]  # fmt: skip
    assert {"save", "load", "merge of two", "print_diff_summary of two"} <= taken.keys()
    assert all(seconds >= 0 for seconds in taken.values())


def test_what_is_slow_has_a_bar(monkeypatch):
    """Only texts have one; samples come from fresh processes, side by side."""
    runs = iter([{"print_summary, the first": 0.5, "save": 2.0}] * 2)
    monkeypatch.setattr(profile_cost, "child", lambda *args, **kwargs: next(runs))
    first, save = profile_cost.report_rows(replace(TINY, processes=2))
    assert (first.samples, first.bar) == ([0.5, 0.5], 1)
    assert (save.samples, save.bar) == ([2.0, 2.0], None)


def test_the_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(profile_cost, "QUICK", TINY)
    path = tmp_path / "figures.json"
    assert profile_cost.main(["--quick", "--only", "thunks", "calls", "--json", str(path)]) == 0
    kept = json.loads(path.read_text())
    assert [row["section"] for row in kept["rows"]] == ["thunks"] * 4 + ["calls"] * 3
    assert kept["effort"]["sizes"] == [3]
    out = capsys.readouterr().out
    assert all(row["name"] in out for row in kept["rows"])


def test_the_table_says_what_is_not_below_its_bar(capsys):
    rows = [Row("s", "good", "ns", [1, 2, 9], 3), Row("s", "bad", "ns", [1, 3, 9], 3)]
    print_table([*rows, Row("s", "free", "ns", [5])], {"s": "Title"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Title"
    assert lines[3].endswith("ns  below 3")
    assert lines[4].endswith("ns  NOT BELOW 3")
    assert lines[5].endswith("ns")
