"""Build the source distribution and a wheel of opwise, and check both as a user would find them.

    python scripts/release.py [--out DIR]        (default: dist/)

The checkout must be clean. In new environments, the wheel is built from the source distribution,
runs a program with a C compiler and without, and passes quick tests without one.
Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import os
import shutil
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
NOT_IN_WHEEL = ("tests/", "benchmark/", "docs/", "scripts/", "opwise/linkers/csupport/")
#: files of the checkout that the source distribution may lack
NOT_IN_SOURCES = (".gitattributes", ".gitignore", ".pre-commit-config.yaml")
#: programs of the system that tests start; the compiler is none of them
TOOLS = ("bash", "sh", "cat", "env", "ls", "head", "tail", "sed", "grep", "sleep", "true", "false")
#: tests that the wheel passes without a compiler
TESTS = ("tests/scalar", "tests/graph", "tests/modes", "tests/compile", "tests/legacy")

#: without the flags of the caller, and without packages that he has elsewhere
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "OPWISE", "THEANO"))}
#: a wheel has the kernels for each kind of processor
PLAIN["OPWISE_VECTORS"] = "all"


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
    """Raise SystemExit if the source distribution lacks a file, or has one that is too large."""
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    with tarfile.open(path) as files:
        sizes = {member.name.partition("/")[2]: member.size for member in files if member.isfile()}
    missing = sorted(set(listed) - set(sizes) - set(NOT_IN_SOURCES))
    if missing:
        raise SystemExit(f"{path.name} lacks {missing}: name them in MANIFEST.in")
    for name, size in sizes.items():
        if size > LARGEST:
            print(f"{path.name}: {name} has {size:,} bytes")
            if not name.startswith("tests/"):
                raise SystemExit("only data of tests may be so large")


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


def try_wheel(wheel: Path, sources: Path, folder: Path) -> None:
    """Install the wheel into a new environment, and use it with a compiler and without."""
    python = environment(folder / "user", wheel)
    shutil.unpack_archive(sources, folder, filter="data")
    (unpacked,) = folder.glob("opwise-*/")
    program = unpacked / "scripts" / "try_wheel.py"
    run(python, "-I", program, "compiler", cwd=folder)
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    without = {**PLAIN, "PATH": f"{python.parent}{os.pathsep}{tools}"}
    run(python, "-I", program, "none", cwd=folder, env=without)
    run(python, "-I", "-m", "opwise", "doctor", cwd=folder, env=without)
    for package in ("opwise", "theano"):  # the tests import those that are installed
        shutil.rmtree(unpacked / package)
    run(python, "-m", "pip", "install", "--quiet", "pytest", "pytest-xdist", "pytest-timeout",
        "hypothesis")  # fmt: skip
    run(python, "-P", "-m", "pytest", "-q", "-n", "2", "-m", "null and not c", *TESTS,
        cwd=unpacked, env={**without, "OPWISE_TEST_FLAGS": "cxx="})  # fmt: skip


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
        run(python, "-m", "build", "--sdist", "--outdir", folder / "dist", ROOT)
        (sources,) = (folder / "dist").glob("*.tar.gz")
        check_sources(sources)
        run(python, "-m", "pip", "wheel", "--no-deps", "-w", folder / "dist", sources, cwd=folder)
        (wheel,) = (folder / "dist").glob("*.whl")
        check_wheel(wheel)
        run(python, "-m", "twine", "check", "--strict", sources, wheel)
        try_wheel(wheel, sources, folder)
        args.out.mkdir(parents=True, exist_ok=True)
        for path in (sources, wheel):
            (args.out / path.name).write_bytes(path.read_bytes())
            print(f"{args.out / path.name}: {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
