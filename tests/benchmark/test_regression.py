"""The regression program trains under every mode that it offers, with numpy's costs."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmark.regression import regression


@pytest.mark.parametrize("mode", [*regression.REGISTERED, *regression.BUILDERS])
def test_every_mode_agrees_with_numpy(mode, capsys):
    assert regression.main([mode, "--case", "seed", "--epochs", "2", "--no-diff"]) == 0
    assert "agrees with numpy" in capsys.readouterr().out


@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_every_apply_is_printed(linker, capsys):
    arguments = ["PrintEverythingMode", "--case", "seed", "--epochs", "1", "--linker", linker]
    assert regression.main(arguments) == 0
    assert "0 InplaceDimShuffle{x,0}(" in capsys.readouterr().out


def test_a_wrong_cost_fails_the_program(monkeypatch, capsys):
    real = regression.reference.train

    def wrong(*args):
        costs, rest = real(*args)
        return costs * 1.001, rest

    monkeypatch.setattr(regression.reference, "train", wrong)
    assert regression.main(["FAST_RUN", "--case", "seed", "--epochs", "2", "--no-diff"]) == 1
    assert "DIFFERS FROM numpy" in capsys.readouterr().out


def test_two_linkers(capsys):
    assert regression.main(["--diff", "py", "cpu", "--case", "seed", "--epochs", "2"]) == 0
    shown = capsys.readouterr().out
    assert "py minus cpu:" in shown and "Apply-wise difference" in shown


def test_without_a_gpu_it_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert regression.main(["--diff", "cpu", "cuda", "--case", "seed"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("cpu and cuda cannot be compared here. The GPU needs CuPy")


def test_cpu_and_gpu(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "gpu"))
    import emulated

    emulated.install(monkeypatch)
    assert regression.main(["--diff", "cpu", "cuda", "--case", "seed", "--epochs", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("agrees with numpy") == 2
    assert "times as fast" in shown and "in 6 transfers" in shown


def test_as_a_script():
    script = Path(regression.__file__)
    done = subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0 and "--diff A B" in done.stdout
