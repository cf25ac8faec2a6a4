"""doc/tutorial/profiling_example.py, run as its first lines say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "doc/tutorial/profiling_example.py"


@pytest.fixture
def profile(tmp_path):
    """Run the example under flags of Theano; return what it prints, which is the profile alone."""

    def under(flags):
        environment = {
            **os.environ, "THEANO_FLAGS": f"{flags},base_compiledir={tmp_path}", "OPWISE_FLAGS": "",
            "PYTHONPATH": str(ROOT),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, EXAMPLE], capture_output=True, text=True, check=True, cwd=ROOT,
            env=environment,
        )  # fmt: skip
        assert done.stderr == ""
        return done.stdout

    return under


#: how many columns of figures the rows of a section have
COLUMNS = {"Class": 7, "Ops": 7, "Apply": 6}


def section(text, title):
    """Return the labels of the rows of a section."""
    rows = text.split(f"\n{title}\n---")[1].split("   ... (remaining 0 ")[0].splitlines()
    return [row.split(maxsplit=COLUMNS[title])[-1] for row in rows if re.match(r" +[\d.]+%", row)]


def test_the_sections_and_their_rows(profile):
    text = profile("optimizer_excluding=fusion:inplace,profile=True")
    heads = ["Function profiling\n==================\n", "  Time in 1 calls to Function.__call__: ",
             "  Time in Function.fn.__call__: ", "  Time in thunks: ", "  Total compile time: ",
             "    Theano Optimizer time: ", "       Theano validate time: ",
             "    Theano Linker time (includes C, CUDA code generation/compiling): ",
             "\nClass\n---\n", "\nOps\n---\n", "\nApply\n------\n"]  # fmt: skip
    places = [text.find(head) for head in heads]
    assert -1 not in places and places == sorted(places)
    assert len(section(text, "Class")) == 1
    assert sorted(section(text, "Ops")) == ["Elemwise{add,no_inplace}", "Elemwise{mul,no_inplace}"]
    assert sorted(section(text, "Apply")) == [
        "Elemwise{add,no_inplace}(x, y, z)",
        "Elemwise{mul,no_inplace}(TensorConstant{(1,) of 2.0}, Elemwise{add,no_inplace}.0)",
    ]


def test_one_op_with_all_optimizations(profile):
    (op,) = section(profile("profile=True"), "Ops")
    assert op.startswith("Elemwise{Composite{")
