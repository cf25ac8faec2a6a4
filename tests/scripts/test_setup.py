"""What setup.py does when pip only asks what there is to build."""

import os
import platform
import re
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
    folder = ROOT / "opwise" / "linkers"
    modules = [folder / "opwise_c.pyx", *sorted((folder / "native").glob("*.pyx"))]
    relative = [path.relative_to(ROOT).with_suffix(".c").as_posix() for path in modules]
    assert translated == [f"build/cython-of a test/{path}" for path in relative]
    assert not (ROOT / "build" / "cython-of a test").exists()
    # kernels are compiled meanwhile
    before = sources[: sources.index(translated[0])]
    assert before and all(Path(name).name.startswith("simd_") for name in before)


def test_files_whose_objects_are_shared_know_nothing_of_python():
    program = """
found = setup.extension()
for source in found.sources:
    print(source, setup.objects_of(source, ["-O3"]) == setup.objects_of(source, ["-O1"]))
print(*found.include_dirs)
"""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *lines, folders = done.stdout.splitlines()
    shared = [line.split()[0] for line in lines if line.endswith("False")]
    assert any("simd_" in name for name in shared) and any("kinds_" in name for name in shared)
    known, todo = set(), [ROOT / name for name in shared]
    while todo:
        text = todo.pop().read_text()
        for name in re.findall(r'^ *# *include *[<"](.*)[>"]', text, re.MULTILINE):
            assert name != "Python.h" and not name.startswith("numpy/"), text[:200]
            paths = [ROOT / folder / name for folder in folders.split()]
            todo += [path for path in paths if path.exists() and path not in known]
            known.update(paths)


@pytest.mark.parametrize(
    "header, current",
    [
        ("setup.py", True),
        ("younger.h", False),
        ("opwise/no_such_header.h", False),
        ("/no/such/environment/numpy/arrayobject.h", True),  # pip has removed it
    ],
)
def test_which_objects_are_current(tmp_path, header, current):
    made, younger = tmp_path / "made.o", tmp_path / "younger.h"
    made.touch()
    younger.touch()
    os.utime(younger, (made.stat().st_mtime + 10,) * 2)
    header = younger if header == "younger.h" else header
    (tmp_path / "made.d").write_text(f"made.o: setup.py \\\n {header}\n")
    ask = f"from pathlib import Path\nprint(setup.is_current(Path({str(made)!r})))"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + ask],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split()[-1] == str(current)


@pytest.mark.skipif(
    platform.machine() != "x86_64",
    reason="has no kernels of vectors",
)
@pytest.mark.parametrize("wanted, level", [("native", "-Og"), ("all", "-O1")])
def test_kernels_of_other_processors_are_compiled_in_less_time(wanted, level):
    program = PROGRAM + 'print(setup.vectors(), *setup.flags_of("simd_base_sums.c"))'
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True,
        env=os.environ | {"OPWISE_VECTORS": wanted},
    )  # fmt: skip
    *_, shown = done.stdout.splitlines()
    assert shown.startswith("[]") or shown.endswith(level)
