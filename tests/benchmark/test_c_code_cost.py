"""benchmark.c_code_cost measures both implementations, one of which is C."""

import numpy as np
import pytest

from benchmark import c_code_cost

pytestmark = pytest.mark.c


def test_figures(capsys):
    c_code_cost.main(["--rounds", "1", "--calls", "3"])
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == ["c_code", "perform"]


def test_the_difference_of_lengths():
    samples = {("c_code", 1): [10.0], ("c_code", 51): [60.0], ("perform", 1): [5.0],
               ("perform", 51): [505.0]}  # fmt: skip
    assert c_code_cost.per_apply(samples) == {"c_code": 1, "perform": 10}


def test_both_ops_double():
    for op in c_code_cost.OPS.values():
        assert c_code_cost.chain(op, 3)(np.ones(2)).tolist() == [8, 8]
