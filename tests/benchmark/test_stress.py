"""The stress of the cache runs, with few processes and kills, and reports a trial that fails."""

import json

import pytest

from benchmark import stress, threads
from opwise.linkers import cbuild

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler"),
]

TRIALS = ["processes", "kills", "damages", "planted"]


def test_every_trial_runs(capfd):
    few = ["--kills", "4", "--processes", "3", "--damages", "4"]
    assert stress.main([*few, "--only", *TRIALS]) == 0
    out = capfd.readouterr().out
    assert all(f"\n{name}" in out for name in TRIALS) and "no trial failed" in out
    assert "4 kills" in out and "3 processes, 9 kernels" in out


def test_a_trial_that_fails_is_an_error(monkeypatch, tmp_path, capsys):
    def broken(folder, args):
        stress.check(False, "it is broken")

    monkeypatch.setitem(stress.TRIALS, "clocks", broken)
    assert stress.main(["--in", str(tmp_path), "--only", "clocks"]) == 1
    assert capsys.readouterr().err == "clocks: it is broken\n"


def test_programs_have_kernels_of_their_own(use_cache, tmp_path):
    folder = use_cache(tmp_path / "cache")
    assert [stress.in_cache(k) for k in (8, 9, 8, 9)] == [False, False, True, True]
    assert len(list(folder.glob("*.so"))) == 2


def test_the_benchmark_of_threads(tmp_path, capsys):
    path = tmp_path / "threads.json"
    assert threads.main(["--seconds", "0.05", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["size"] for row in rows] == list(threads.SIZES)
    assert all(len(row["work"]) == 3 and min(row["work"].values()) > 0 for row in rows)
    assert "PerThread(f)" in capsys.readouterr().out
