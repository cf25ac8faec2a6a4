"""The benchmark of convolutions runs, and compares the algorithms that there are."""

import pytest

from benchmark import convolutions
from opwise.linkers.convsteps import ALGORITHMS


@pytest.mark.c
def test_every_layer_and_gradient_of_both_dtypes_is_compared(capsys):
    assert convolutions.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith(("float32  ", "float64  "))]
    assert len(rows) == 2 * len(convolutions.WHAT) * len(convolutions.QUICK)
    for row in rows:
        chosen, _, times = row.rpartition(": ")
        assert chosen.split()[-1] in ALGORITHMS
        assert float(chosen.split()[-2]) >= 1
        assert all(float(each.split()[1]) >= 0 for each in times.split(", "))
    assert sum("winograd" in row for row in rows) == 3
    assert sum("geometric mean" in line for line in lines) == 2
