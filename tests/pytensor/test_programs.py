"""Programs that use PyTensor, as they are, under ``opwise run --pytensor``."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from opwise.command import main
from opwise.profiling.profile import Profile

pytest.importorskip("pytensor", reason="PyTensor is not installed")

pytestmark = pytest.mark.c

PROGRAM = """
import sys
import numpy as np
import pytensor
import pytensor.tensor as pt

x = pt.vector("x")
f = pytensor.function([x], pt.exp(x).sum(), name="total")
g = pytensor.function([x], x * 2, mode="FAST_COMPILE")
assert __name__ == "__main__"
print(type(f.vm.jit_fn).__module__, hasattr(g.vm, "jit_fn"), float(f(np.zeros(3))), *sys.argv[1:])
"""


@pytest.mark.parametrize("how", [["program.py"], ["-m", "program"]])
def test_functions_without_a_mode_are_compiled_by_opwise(tmp_path, how):
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, "-m", "opwise", "run", "--pytensor", "--no-limits", *how, "a", "--b"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["opwise.compile.executable", "False", "3.0", "a", "--b"]
    profile = Profile.load(tmp_path / "program.profile.json")
    (function,) = profile.functions
    assert function.name == "total" and function.calls == 1
    assert function.applys[0].origins[0].file.endswith("program.py")


def test_programs_for_an_earlier_python_cannot_use_pytensor(tmp_path):
    (tmp_path / "program.py").write_text("")
    result = CliRunner().invoke(
        main.main, ["run", "--pytensor", "--py3", str(tmp_path / "program.py")]
    )
    assert result.exit_code == 2 and "cannot use PyTensor" in result.output
