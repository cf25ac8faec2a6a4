"""Run the tests on every Python that the machine has, and once with the oldest dependencies.

    python scripts/pythons.py --list        only says what would be run
    python scripts/pythons.py               runs quick tests (-m null), few cases of each
    python scripts/pythons.py --without 3.11 --only newest tests/linkers -x

Every run has a copy of the sources and a virtual environment of its own, which are removed after
it; objects that know nothing of Python are compiled once. Runs install the newest dependencies; one
more run, on the oldest Python that opwise supports, installs each at the lower bound that
pyproject.toml gives. Pythons that the extra "pymc" allows get it as well, and run the tests that
need it; one more run has the oldest versions of what it names. The first runs have a flag off that
users have on, one each; the others have opwise's defaults. What is behind the options goes to
pytest.

Pythons are those of PATH and of pyenv, one of each minor version, the newest. A Python that cannot
build extensions in a virtual environment is left out, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDS = ROOT / "scripts" / "needs.py"
#: what is not copied: what is built or recorded, and never part of the sources
BUILT = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "__pycache__", "*.so", "*.egg-info", ".*_cache", ".hypothesis"
)
#: the extra that not every Python allows, and the tests that need it
EXTRA, OF_EXTRA = "pymc", ("tests/pytensor", "tests/frontends")
#: the tests that need no compiler, and are not of the text, which is the same for all
QUICK = ("-m", "null and not sources")
#: what a build leaves that is made for one Python, or by one release of numpy
OF_ONE_PYTHON = shutil.ignore_patterns("lib.*", "temp.*", "bdist.*")
#: flags of opwise that a run has off
OFF = ("cache_graphs", "background_compilation")
#: asked of each Python: what it is, and what it lacks for building opwise
PROBE = """
import importlib.util, json, os, sys, sysconfig
headers = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
lacks = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
print(json.dumps({
    "path": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
    "version": sys.version_info[:3],
    "plain": sys.implementation.name == "cpython" and not sys.abiflags,
    "lacks": lacks + ([] if headers else ["Python.h"]),
}))
"""
VERSIONS = """
import importlib.metadata as m
print(*(f"{name} {m.version(name)}" for name in ("numpy", "scipy", "click", "rich", "pytest")))
"""


@dataclass(frozen=True)
class Python:
    """An interpreter of the machine."""

    path: Path
    version: tuple[int, int, int]
    #: what it lacks for building extensions in a virtual environment
    lacks: tuple[str, ...]

    @property
    def minor(self):
        return "{}.{}".format(*self.version)


def pythons():
    """Return the newest CPython of each minor version that opwise supports, oldest first."""
    lowest = minimum()
    best = {}
    for path in interpreters():
        done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True)
        if done.returncode != 0:  # a shim of pyenv for a version that is not chosen, for one
            continue
        about = json.loads(done.stdout)
        found = Python(Path(about["path"]), tuple(about["version"]), tuple(about["lacks"]))
        if not about["plain"] or found.version < lowest:
            continue
        other = best.get(found.minor)
        if other is None or (not found.lacks, found.version) > (not other.lacks, other.version):
            best[found.minor] = found
    return sorted(best.values(), key=lambda found: found.version)


def minimum():
    """Return the lowest Python that pyproject.toml allows, as (3, 11)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))


def allowed(extra):
    """Return the lowest Python for which an extra has requirements, as (3, 12)."""
    marks = re.findall(r"python_version >= '(\d+)\.(\d+)'", needs(extra))
    return max([minimum(), *(tuple(map(int, mark)) for mark in marks)])


def interpreters():
    """Yield the paths of everything that is called like a Python 3: PATH first, then pyenv."""
    named = re.compile(r"python3(\.\d+)?")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep) if folder]
    for folder in [*folders, *sorted(pyenv.glob("versions/*/bin"))]:
        if folder.is_dir():
            yield from (p for p in sorted(folder.iterdir()) if named.fullmatch(p.name))


@dataclass
class Run:
    """One environment and what came of the tests in it."""

    name: str
    python: Python
    oldest: bool
    #: the flag that is off, "" for none
    off: str = ""
    #: the extra that is installed as well, "" for none
    extra: str = ""
    #: how many cases of each function it runs
    few: int = 1
    outcome: str = "not run"
    seconds: float = 0.0


def runs(found, without=()):
    """Return the runs: "newest" on each Python but some, then those with the oldest dependencies.

    These have no wheels for later Pythons than the first that is supported.
    """
    usable = [python for python in found if not python.lacks]
    first = allowed(EXTRA)
    newest = [
        Run(
            f"Python {python.minor}, newest dependencies", python, False,
            extra=EXTRA if python.version[:2] >= first else "",
        )
        for python in usable if python.minor not in without
    ]  # fmt: skip
    for run in newest[-1:]:
        run.few = 3
    oldest = [
        Run(f"Python {python.minor}, oldest dependencies", python, True)
        for python in usable if python.version[:2] == minimum()
    ]  # fmt: skip
    for run, off in zip(newest + oldest, OFF, strict=False):
        run.off = off
        run.name += f", {off} off"
    of_extra = [
        Run(f"Python {python.minor}, oldest {EXTRA}", python, True, extra=EXTRA)
        for python in usable if python.version[:2] == first and first > minimum()
    ]  # fmt: skip
    return newest + oldest + of_extra


def tests(run, arguments=()):
    """Return the arguments of each pytest of a run. arguments: those of the only one."""
    if arguments:
        return [list(arguments)]
    of_extra = [[*OF_EXTRA]] if run.extra else []
    quick = [*QUICK, "--few", str(run.few)]
    return of_extra if run.oldest and run.extra else [quick, *of_extra]


def perform(run, built, arguments=()):
    """Make an environment and run the tests in it; sets the outcome of the run.

    built: the folder of what is built once for all runs.
    """
    started = time.monotonic()
    # PyTensor takes frames of files whose paths have "tests" for those of a program
    with tempfile.TemporaryDirectory(prefix="opwise-pythons-") as folder:
        tree, venv = Path(folder, "opwise"), Path(folder, "venv")
        shutil.copytree(ROOT, tree, ignore=BUILT)
        shutil.copytree(built, tree / "build")
        constraints = Path(folder, "constraints.txt")
        old = [run.extra] if run.extra else []
        constraints.write_text(needs(*old, "--lowest") if run.oldest else "")
        python = venv / "bin" / "python"
        install = [python, "-m", "pip", "install", "--quiet", "--constraint", constraints]
        environment = {
            **os.environ, "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(venv), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            # packages hold the kernels for each kind of processor; README's command those for one
            "OPWISE_VECTORS": "native" if run.oldest else "all",
            "OPWISE_TEST_FLAGS": f"{run.off}=False" if run.off else "",
        }  # fmt: skip
        environment.pop("PYTHONPATH", None)
        if run.extra:  # then it is an error if its tests cannot run
            environment[f"OPWISE_TEST_{run.extra.upper()}"] = "required"

        extras = ",".join(filter(None, ["test", run.extra]))

        def step(what, command):
            print(f"+ {shlex.join(map(str, command))}", flush=True)
            code = subprocess.run(command, cwd=tree, env=environment).returncode
            if code:
                run.outcome = f"FAILED: {what} ended with {code}"
            return not code

        # The build is held to the constraints too, so it gets no environment of its own.
        ok = (
            step("making the environment", [run.python.path, "-m", "venv", venv])
            and step("installing what builds", [*install, *needs("build").split()])
            and step(
                "installing opwise",
                [*install, "--no-build-isolation", "--editable", f".[{extras}]"],
            )
            and keep(tree / "build", built)
            and step("listing versions", [python, "-c", VERSIONS])
            and all(
                step("pytest", [python, "-m", "pytest", "-n", "logical", "-q", *each])
                for each in tests(run, arguments)
            )
        )
        if ok:
            run.outcome = "passed"
    run.seconds = time.monotonic() - started


def keep(build, built):
    """Copy what every Python can use of a folder of builds; returns True."""
    if build.is_dir():
        shutil.copytree(build, built, ignore=OF_ONE_PYTHON, dirs_exist_ok=True)
    return True


def needs(*arguments):
    return subprocess.run(
        [sys.executable, NEEDS, *arguments], check=True, capture_output=True, text=True
    ).stdout


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="say what would be run, run nothing")
    parser.add_argument(
        "--without", action="append", default=[], metavar="3.X",
        help="no run with the newest dependencies on this Python",
    )  # fmt: skip
    parser.add_argument("--only", choices=["newest", "oldest"], help="only these runs")
    args, arguments = parser.parse_known_args(argv)

    found = pythons()
    for python in found:
        lacks = f"; left out: it lacks {', '.join(python.lacks)}" if python.lacks else ""
        print(f"found Python {'.'.join(map(str, python.version))}: {python.path}{lacks}")
    planned = [
        run
        for run in runs(found, args.without)
        if args.only in (None, "oldest" if run.oldest else "newest")
    ]
    if not any(run.oldest for run in planned) and args.only != "newest":
        print("the oldest dependencies are not tried: there is no Python {}.{}".format(*minimum()))
    for run in planned:
        for each in tests(run, arguments):
            print(f"planned: {run.name}: pytest {shlex.join(each)}", flush=True)
    if args.list or not planned:
        return
    with tempfile.TemporaryDirectory(prefix="opwise-built-") as built:
        keep(ROOT / "build", built)
        for run in planned:
            print(f"\n=== {run.name} ===", flush=True)
            perform(run, built, arguments)
    print()
    for run in planned:
        print(f"  {run.name}: {run.outcome}, {run.seconds:.0f} s")
    if any(run.outcome != "passed" for run in planned):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
