"""The benchmark of devices runs on an emulated one, and says what is missing without any."""

import json
import sys
from pathlib import Path

import pytest

from benchmark.gpu import device_times


def test_every_workload_runs(monkeypatch, capsys, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "gpu"))
    import emulated

    emulated.install(monkeypatch)
    monkeypatch.setattr(device_times, "torch_with_cuda", lambda: None)
    assert device_times.main(["--quick", "--json", str(tmp_path / "found.json")]) == 0
    shown = capsys.readouterr().out
    kept = json.loads((tmp_path / "found.json").read_text())
    assert kept["device"] == "an emulated device" and kept["date"]
    names = [w.name for w in device_times.workloads(quick=True)]
    assert [row["workload"] for row in kept["rows"]] == names
    assert all(name in shown for name in names)
    # events of the emulated device are a millisecond apart
    *rows, profiled = kept["rows"]
    assert {s for row in rows for s in row["seconds"].values()} == {0.0005}
    assert all(
        row["share"] == pytest.approx(1) for row in rows if "training" not in row["workload"]
    )
    # a profile has two events for each kernel
    assert profiled["seconds"]["opwise"] > 10 * profiled["seconds"]["plain"] == 0.005


def test_without_a_device(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert device_times.main([]) == 2
    assert capsys.readouterr().err.startswith("nothing was measured. The GPU needs CuPy")
