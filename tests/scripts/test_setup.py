"""What setup.py does when pip only asks what there is to build."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.null

PROGRAM = """
import sys, types

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("Cython."):
            raise ModuleNotFoundError(f"no {name}")

sys.meta_path.insert(0, Absent())
sys.modules["Cython"] = types.ModuleType("Cython")
sys.modules["Cython"].__version__ = "of a test"
import setup

setup.write_generated = lambda files: None
"""


def test_the_sources_are_known_before_cython_runs():
    """pip runs setup.py three times, and builds in the last."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + 'print(*setup.extension().sources, sep="\\n")'],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    sources = done.stdout.splitlines()
    translated = [name for name in sources if name.startswith("build/cython-of a test/")]
    assert translated == ["build/cython-of a test/opwise/linkers/opwise_c.c"]
    assert not (ROOT / "build" / "cython-of a test").exists()
    # kernels are compiled meanwhile
    assert all(
        Path(name).name.startswith("simd_") for name in sources[: sources.index(*translated)]
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of this kind")
@pytest.mark.parametrize("wanted, level", [("native", "-Og"), ("all", "-O1")])
def test_kernels_of_other_processors_are_compiled_in_less_time(wanted, level):
    program = PROGRAM + 'print(setup.vectors(), *setup.flags_of("simd_base_sums.c"))'
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True,
        env=os.environ | {"OPWISE_VECTORS": wanted},
    )  # fmt: skip
    *_, shown = done.stdout.splitlines()
    assert shown.startswith("[]") or shown.endswith(level)
