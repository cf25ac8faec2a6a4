"""The benchmark of the cache of graphs runs, and sees whether the rewrites ran."""

import json

import pytest

from benchmark import graph_cache


@pytest.mark.c
def test_every_program_is_compiled_and_loaded_both_ways(tmp_path, capsys):
    path = tmp_path / "graph_cache.json"
    assert graph_cache.main(["--quick", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["program"] for row in rows] == list(graph_cache.PROGRAMS)
    for row in rows:
        assert set(row["samples"]) == set(graph_cache.WHAT)
        assert all(set(ways) == set(graph_cache.WAYS) for ways in row["samples"].values())
    assert capsys.readouterr().out.count("\n") > len(rows)


def test_a_graph_that_is_not_in_the_cache_is_an_error(monkeypatch):
    answers = {"write": 1, "compile_once": {"seconds": 0.1, "cached": False}}
    monkeypatch.setattr(graph_cache, "child", lambda function, *args, **kwargs: answers[function])
    with pytest.raises(RuntimeError, match="regression: the graph was not cached"):
        graph_cache.measure("regression", 1)
