"""The benchmark of products runs, and tells what it measured."""

import pytest

from benchmark import products


@pytest.mark.c
def test_every_layout_of_both_dtypes_is_compared(capsys):
    assert products.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith(("float32  ", "float64  "))]
    assert len(rows) == 2 * len(products.LAYOUTS) * len(products.QUICK)
    assert all(float(number) >= 0 for row in rows for number in row.split()[-3:])
    assert sum("geometric mean" in line for line in lines) == 2
