"""benchmark.debug_cost measures both modes on every case, and says whether they stay below."""

import json

from benchmark import debug_cost


def test_figures_of_every_case(tmp_path, monkeypatch, capsys):
    def few(case, rounds):
        samples = measure(case, 1)
        assert all(len(s) == 1 and s[0] > 0 for by in samples.values() for s in by.values())
        return samples

    measure = debug_cost.measure
    monkeypatch.setattr(debug_cost, "measure", few)
    file = tmp_path / "figures.json"
    assert debug_cost.main(["--quick", "--json", str(file)]) in (0, 1)
    out = capsys.readouterr().out
    for case in ("seed", "wdbc"):
        for what in ("compile", "update"):
            assert f"{case:6} {what:8} FAST_RUN" in out
    assert set(json.loads(file.read_text())["cases"]) == {"seed", "wdbc"}


def test_the_bars(capsys):
    slow = {"compile": {"FAST_RUN": [1.0], "DEBUG_MODE": [99.0]},
            "update": {"FAST_RUN": [1.0], "DEBUG_MODE": [201.0]}}  # fmt: skip
    assert not debug_cost.report("x", slow)
    assert "99.0 times, below 100" in capsys.readouterr().out
    slow["update"]["DEBUG_MODE"] = [199.0]
    assert debug_cost.report("x", slow)
