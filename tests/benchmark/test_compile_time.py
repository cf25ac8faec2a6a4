"""The benchmark of compile times counts the same Applys whatever the cache has."""

import json

from benchmark import compile_time


def test_of_each_cache(tmp_path):
    path = tmp_path / "found.json"
    of_few = ["--quick", "--only", "wide", "--sizes", "30", "--json", str(path)]
    assert compile_time.main(of_few) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [(row["mode"], row["cache"]) for row in rows] == list(compile_time.WAYS)
    assert {row["written"] for row in rows} == {30}
