"""scripts/debugged: programs of the suite are sound under DebugMode, and a fault is told."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FAULTY = """
import numpy as np
import opwise.tensor as T
from opwise import Mode, function
from opwise.graph.apply import Apply
from opwise.graph.op import Op


class Liar(Op):
    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0]


def test_it_runs():
    x = T.dvector("x")
    assert function([x], Liar()(x) + 1, mode=Mode("py", None))([1.0]) == 2
"""


def debugged(*arguments):
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "debugged", "-p", "no:cacheprovider", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = re.search(r"(\d+) functions under DebugMode, (\d+) findings", done.stdout)
    assert told, done.stdout + done.stderr
    return done.returncode, int(told[1]), int(told[2]), done.stdout


@pytest.mark.c
def test_part_of_the_suite_has_no_findings():
    code, functions, findings, text = debugged(
        "tests/optimizers/rules/test_blas.py", "tests/tensor/test_mapreduce.py",
        "tests/compile/test_shared.py",
    )  # fmt: skip
    assert (code, findings) == (0, 0), text
    assert functions > 50


def test_a_fault_is_a_finding(tmp_path):
    file = tmp_path / "test_faulty.py"
    file.write_text(FAULTY)
    code, functions, findings, text = debugged(str(file))
    assert (code, functions, findings) == (1, 1, 1)
    assert "test_it_runs\nBadViewMap: \n  node: Liar(x)" in text
