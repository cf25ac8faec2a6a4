"""benchmark.functions: the figures it prints."""

import importlib.util
import json

import pytest

from benchmark import functions


def test_times_and_errors(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(functions, "ONE_THREAD", {})
    monkeypatch.setattr(functions.os, "sched_setaffinity", lambda pid, processors: None)
    monkeypatch.setattr(functions, "PEERS", ("numpy",))
    path = tmp_path / "functions.json"
    assert functions.main(["--quick", "--only", "exp", "remainder", "--json", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["function", "dtype", "opwise", "numpy", "/", "best", "ulp"]
    assert [line.split()[:2] for line in lines[1:]] == [
        ["exp", "float32"], ["exp", "float64"], ["remainder", "int32"], ["remainder", "int64"],
        ["remainder", "float32"], ["remainder", "float64"],
    ]  # fmt: skip
    rows = json.loads(path.read_text())["rows"]
    assert all(row["ns"].keys() == {"opwise", "numpy"} for row in rows)
    assert all(row["ratio"] == row["ns"]["opwise"] / row["ns"]["numpy"] for row in rows)


@pytest.mark.skipif(importlib.util.find_spec("mpmath") is None, reason="needs mpmath")
def test_errors_are_in_units_of_the_last_place():
    exp = next(case for case in functions.CASES if case.name == "exp")
    for dtype in exp.dtypes:
        worst = functions.error(exp, dtype, 50)
        assert worst is not None and 0.4 < worst < 3


@pytest.mark.parametrize("case", functions.CASES, ids=lambda case: case.name)
def test_every_function_has_an_operand_for_each_interval(case):
    arrays = functions._arrays(case, case.dtypes[0], 5)
    result = functions._opwise(case, arrays)()
    assert result.shape == (5,)
    numpy = functions._peer("numpy", case, arrays)
    if numpy is not None:
        assert result == pytest.approx(numpy(), rel=1e-4)
