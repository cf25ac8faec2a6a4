"""The programs of numpy that the benchmark measures: each gives what numpy gives."""

import numpy as np
import pytest

import opwise
from benchmark.numpy_programs.__main__ import copied, measure, same, summary
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
        assert same(wanted, result)
        parts = zip(*(r if isinstance(r, tuple) else (r,) for r in (wanted, result)), strict=True)
        for one, two in parts:
            assert np.asarray(one).dtype == np.asarray(two).dtype
        for one, two in zip(expected, given, strict=True):
            assert np.allclose(one, two)
    assert len(jitted.signatures) <= 2, str(jitted.signatures)


def test_measurement():
    program = next(p for p in PROGRAMS if p.name == "sobel")
    results = {"sobel": {c: measure(program, c, program.small, 0.01) for c in ("numpy", "opwise")}}
    assert results["sobel"]["opwise"]["call"] > 0
    assert summary(results).startswith("opwise: right on 1 of 1")
