"""The benchmark of pickled functions runs, and sees whether the rewrites ran."""

import json

import pytest

from benchmark import unpickling


@pytest.mark.c
def test_every_program_is_loaded_both_ways(tmp_path, capsys):
    path = tmp_path / "unpickling.json"
    assert unpickling.main(["--quick", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["program"] for row in rows] == list(unpickling.PROGRAMS)
    assert all(set(row["samples"]) == set(unpickling.WAYS) for row in rows)
    assert capsys.readouterr().out.count("\n") > len(rows)


def test_a_graph_that_is_not_used_is_an_error(monkeypatch):
    answers = {"write": 1, "load": {"seconds": 0.1, "optimized": True}}
    monkeypatch.setattr(unpickling, "child", lambda function, *args, **kwargs: answers[function])
    with pytest.raises(RuntimeError, match="regression: the optimized graph was not used"):
        unpickling.measure("regression", 1)
