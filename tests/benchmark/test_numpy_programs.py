"""The programs of numpy that the benchmark measures: each gives what numpy gives."""

import json

import numpy as np
import pytest

import opwise
from benchmark.numpy_programs import running
from benchmark.numpy_programs.contenders import copied, difference
from benchmark.numpy_programs.programs import PROGRAMS

pytestmark = pytest.mark.c


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program):
    jitted = opwise.jit(program.function)
    for seed, size in ((0, program.small), (1, program.small + 3)):
        arguments = program.arguments(np.random.default_rng(seed), size)
        given, expected = copied(arguments), copied(arguments)
        result = jitted(*given)
        wanted = program.function(*expected)
        assert not difference(wanted, result)
        parts = zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, result)), strict=True)
        for one, two in parts:
            assert np.asarray(one).dtype == np.asarray(two).dtype
        for one, two in zip(expected, given, strict=True):
            assert np.allclose(one, two)
    assert len(jitted.signatures) <= 2, str(jitted.signatures)


def test_measurement(tmp_path, capsys):
    path = tmp_path / "figures.json"
    command = ["--only", "sobel", "--contenders", "numpy", "opwise", "--small", "--json", str(path)]
    running.main("benchmark.numpy_programs.programs", "", [*command, "--seconds", "0.01"])
    figures = json.loads(path.read_text())["sobel"]
    assert list(figures) == ["numpy", "opwise"]
    for each in figures.values():
        assert 0 < each["least"] <= each["call"] and each["first"] > 0 and each["memory"] >= 0
    assert "opwise: right on 1 of 1" in capsys.readouterr().out
