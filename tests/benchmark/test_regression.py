"""The regression program trains under every mode that it offers, with numpy's costs."""

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
