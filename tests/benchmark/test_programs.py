"""The complete programs that the benchmark measures: opwise gives what numpy gives."""

import json

import numpy as np
import pytest

import opwise
from benchmark.numpy_programs import running
from benchmark.numpy_programs.contenders import copied, difference, leaves
from benchmark.programs import PROGRAMS

pytestmark = pytest.mark.c


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_program(program):
    """Two sizes give the results of numpy, and its dtypes; so does the gradient of opwise."""
    forms = [opwise.jit(program.function)]
    if program.derived:
        forms.append(opwise.jit(program.derived(opwise.value_and_grad)))
    for seed, size in ((0, program.small), (1, program.small + 3)):
        arguments = program.arguments(np.random.default_rng(seed), size)
        expected = copied(arguments)
        wanted = program.function(*expected)
        for form in forms:
            given = copied(arguments)
            result = form(*given)
            assert not difference(wanted, result)
            assert not difference(expected, given)
            dtypes = [[np.asarray(x).dtype for x in leaves(r)] for r in (wanted, result)]
            assert dtypes[0] == dtypes[1]


@pytest.mark.null
def test_names_are_those_of_one_program():
    assert len({p.name for p in PROGRAMS}) == len(PROGRAMS) >= 40


def test_measurement(tmp_path, capsys):
    path = tmp_path / "figures.json"
    contenders = ["numpy", "opwise", "opwise-grad"]
    command = ["--only", "hmc", "lucas_kanade", "--small", "--contenders", *contenders]
    running.main("benchmark.programs", "", [*command, "--seconds", "0.01", "--json", str(path)])
    figures = json.loads(path.read_text())
    assert list(figures["hmc"]) == contenders
    assert list(figures["lucas_kanade"]) == contenders[:2]
    assert not any("error" in outcome for each in figures.values() for outcome in each.values())
    assert "opwise-grad: right on 1 of 1" in capsys.readouterr().out
