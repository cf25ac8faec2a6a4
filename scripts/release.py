"""Build the source distribution and a wheel of opwise, and check both as a user would find them.

    python scripts/release.py [--out DIR]        (default: dist/)

The checkout must be clean. The wheel is built from the source distribution, installed into a new
environment, and used there once with and once without a C compiler. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: bytes that a file of the source distribution may have, but for data of tests
LARGEST = 1_000_000
#: what users get: these are in the wheel, the others are not
IN_WHEEL = ("opwise/py.typed", "opwise/profiling/html/vendor/echarts.min.js", "theano/__init__.py")
NOT_IN_WHEEL = ("tests/", "benchmark/", "docs/", "scripts/")

PROGRAM = """
import sys, warnings
warnings.simplefilter("error")
import numpy as np
import theano, theano.tensor as T
x, w = T.dmatrix("x"), theano.shared(np.full(3, 0.5), name="w")
cost = T.sqr(T.tanh(T.dot(x, w)) - 1).mean()
f = theano.function([x], cost, updates=[(w, w - 0.5 * T.grad(cost, w))], mode="PROFILE_MODE")
costs = [float(f(np.eye(3))) for _ in range(20)]
assert costs[-1] < costs[0] / 2, costs
generated = f.compile_report.kernels
assert (generated is not None and generated.path != "") is (sys.argv[1] == "compiler"), generated
"""


#: without the flags of the caller, and without packages that he has elsewhere
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OPWISE", "THEANO"))}


def run(*command: str | Path, **kwargs) -> None:
    print("+", *command, flush=True)
    subprocess.run(list(map(str, command)), check=True, **{"env": PLAIN, **kwargs})


def environment(folder: Path, *packages: str | Path) -> Path:
    """Make a virtual environment with some packages; return its python."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", *packages)
    return python


def check_sources(path: Path) -> None:
    """Raise SystemExit if a file of the source distribution is too large."""
    with tarfile.open(path) as files:
        for member in files:
            _, _, name = member.name.partition("/")
            if member.size > LARGEST and not name.startswith("tests/"):
                raise SystemExit(f"{path.name}: {name} has {member.size:,} bytes")


def check_wheel(path: Path) -> None:
    """Raise SystemExit if the wheel lacks a file, or has one that users do not need."""
    with zipfile.ZipFile(path) as files:
        names = files.namelist()
    missing = [name for name in IN_WHEEL if name not in names]
    unwanted = [name for name in names if name.startswith(NOT_IN_WHEEL)]
    if not any(
        name.startswith("opwise/linkers/opwise_c.") and name.endswith(".so") for name in names
    ):
        missing.append("opwise/linkers/opwise_c")
    if missing or unwanted:
        raise SystemExit(f"{path.name}: missing {missing}, not wanted {unwanted[:5]}")


def try_wheel(path: Path, folder: Path) -> None:
    """Install the wheel into a new environment and run a program there."""
    python = environment(folder / "user", path)
    program = folder / "program.py"
    program.write_text(PROGRAM)
    for what, flags in (("compiler", ""), ("none", "cxx=,")):
        cache = folder / f"cache-{what}"
        given = {**PLAIN, "OPWISE_FLAGS": f"{flags}base_compiledir={cache}"}
        run(python, "-I", program, what, cwd=folder, env=given)
    run(python, "-I", "-m", "opwise", "doctor", cwd=folder)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", metavar="DIR")
    args = parser.parse_args(argv)
    changed = subprocess.check_output(["git", "status", "--porcelain"], cwd=ROOT, text=True)
    if changed:
        raise SystemExit(f"the checkout is not clean:\n{changed}")
    with tempfile.TemporaryDirectory(prefix="opwise-release-") as made:
        folder = Path(made)
        python = environment(folder / "build", "build", "twine")
        run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
        (sources,) = (folder / "dist").glob("*.tar.gz")
        (wheel,) = (folder / "dist").glob("*.whl")
        check_sources(sources)
        check_wheel(wheel)
        run(python, "-m", "twine", "check", "--strict", sources, wheel)
        try_wheel(wheel, folder)
        args.out.mkdir(parents=True, exist_ok=True)
        for path in (sources, wheel):
            (args.out / path.name).write_bytes(path.read_bytes())
            print(f"{args.out / path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
