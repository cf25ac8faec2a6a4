"""Run the test suites of old libraries against opwise, and compare with what passed before.

    scripts/theano-suite               Theano 1.0.5's own unit tests
    scripts/lasagne-suite              Lasagne 0.1
    scripts/keras-suite                Keras 2.2.4 on its Theano backend
    scripts/aesara-suite               Aesara 2.9.4's tests, of PyTensor on opwise
    scripts/pymc-suite                 PyMC 6.4 on PyTensor on opwise

The script takes the suite from the package index, unpacks its tests into a temporary folder, makes
a virtual environment with opwise and what the suite needs, and runs pytest there.
``tests/suites/shims.py`` gives back what time broke; ``pytensor_shims.py`` makes opwise the
back-end of PyTensor, whose sources come without most of its tests: its ancestor's serve.
``tests/suites/NAME.json`` lists the tests that pass; the exit status is 1 if one of them does not
pass any more.
``tests/suites/NAME.differs.json`` says of the others why they fail: patterns of tests by reason.
Arguments that are no options go to pytest: files and folders of the suite, ``-k``, ``-x``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "tests" / "suites"
#: what every suite runs with; pytest 8.4 refuses tests that yield or return, which old suites have
RUNNER = ("pytest<8.4", "pytest-timeout", "pytest-xdist")
#: seconds that one test may take
TIMEOUT = 120


@dataclass(frozen=True)
class Suite:
    """The test suite of a library."""

    #: the requirement that names its sources in the package index
    source: str
    #: folders of tests in the sources, as patterns, and those of them that are left out
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    #: what it needs besides opwise and the runner
    needs: tuple[str, ...] = ()
    #: folders of the library itself that are needed; opwise stands in for Theano's
    library: tuple[str, ...] = ()
    #: files that its tests look for beside the modules of the package theano, as patterns
    data: tuple[str, ...] = ()
    #: names of test classes, as patterns
    classes: str = "Test*"
    environment: tuple[tuple[str, str], ...] = ()
    #: flags of opwise; tests that compare translations need no compiled kernels
    flags: str = ""
    #: the extra of opwise that it needs
    extra: str = ""
    #: the plugin of pytest that gives back what it needs
    plugin: str = "shims"
    #: whether its sources are unpacked by a build environment of their own, which pip makes
    isolated: bool = False
    #: words of its tests and what they become
    words: tuple[tuple[str, str], ...] = ()
    #: files and folders that are run (default: all tests)
    selected: tuple[str, ...] = ()


SUITES = {
    "theano": Suite(
        "Theano==1.0.5",
        tests=("theano/**/tests",),
        without=("theano/gpuarray/*",),  # they need pygpu and a device
        needs=("parameterized", "pynose", "six"),
        data=("theano/sandbox/samples_*.txt",),
        classes="Test* test_* T_*",
    ),
    "lasagne": Suite(
        "Lasagne==0.1",
        tests=("lasagne/tests",),
        needs=("mock", "six", "setuptools<81"),  # it asks pkg_resources for its version
        library=("lasagne", "examples", "*.egg-info"),
    ),
    "keras": Suite(
        "Keras==2.2.4",
        tests=("tests",),
        needs=("keras-applications==1.0.6", "keras-preprocessing==1.0.5", "h5py", "pyyaml", "six",
               "pandas"),
        library=("keras",),
        environment=(("KERAS_BACKEND", "theano"),),
    ),
    "aesara": Suite(
        "aesara==2.9.4",
        tests=("tests",),
        needs=("numba",),
        extra="pytensor",
        plugin="pytensor_shims",
        flags=",cxx=",
        isolated=True,
        words=(("aesara", "pytensor"), ("AESARA", "PYTENSOR"), ("Aesara", "PyTensor"),
               ("from pytensor.link.numba.dispatch.sparse import CSCMatrixType, CSRMatrixType",
                "CSCMatrixType = CSRMatrixType = lambda dtype: None")),
        selected=(
            "tests/compile/test_builders.py", "tests/link/jax", "tests/link/numba",
            "tests/scan/test_basic.py", "tests/test_breakpoint.py", "tests/test_gradient.py",
            "tests/test_ifelse.py", "tests/test_raise_op.py", "tests/test_rop.py",
            "tests/tensor/test_basic.py", "tests/tensor/test_complex.py",
            "tests/tensor/test_elemwise.py", "tests/tensor/test_extra_ops.py",
            "tests/tensor/test_math.py", "tests/tensor/test_nlinalg.py",
            "tests/tensor/test_shape.py", "tests/tensor/test_sharedvar.py",
            "tests/tensor/test_slinalg.py", "tests/tensor/test_subtensor.py", "tests/typed_list",
        ),
    ),
    "pymc": Suite(
        "pymc==6.4.0",
        tests=("tests",),
        extra="pymc",
        plugin="pytensor_shims",
        isolated=True,
    ),
}  # fmt: skip


# --- the suite and its environment ----------------------------------------------------------------


def unpack(suite: Suite, folder: Path) -> Path:
    """Download the sources of a suite and return a folder with its tests, and no more of it."""
    package = suite.source.partition("==")[0]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package,
         *([] if suite.isolated else ["--no-build-isolation"]), "--dest", folder, suite.source],
        check=True,
    )  # fmt: skip
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    place = folder / "suite"
    for pattern in (*suite.tests, *suite.library):
        for found in sources.glob(pattern):
            path = found.relative_to(sources)
            if found.is_dir() and not any(path.match(each) for each in suite.without):
                shutil.copytree(found, place / path, dirs_exist_ok=True)
    if not suite.library:  # the packages around the tests
        for package in {parent for path in place.rglob("*.py") for parent in path.parents}:
            if place in package.parents:
                (package / "__init__.py").touch()
    for path in place.rglob("*.py") if suite.words else ():
        text = path.read_text(encoding="utf-8")
        for old, new in suite.words:
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    start = " ".join(suite.selected) or suite.tests[0].partition("**")[0]
    (place / "pytest.ini").write_text(
        f"[pytest]\npython_classes = {suite.classes}\ntestpaths = {start}\n"
    )
    return place


def environment(suite: Suite, folder: Path) -> Path:
    """Make an environment with opwise, what a suite needs and its data; return its python."""
    print("making an environment", flush=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    own = f"{ROOT}[{suite.extra}]" if suite.extra else ROOT
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", own, *RUNNER, *suite.needs], check=True
    )
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([python, "-c", where], text=True).strip())
    (sources,) = (folder / "sources").iterdir()
    for pattern in suite.data:
        for found in sources.glob(pattern):
            path = packages / found.relative_to(sources)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, path)
    return python


def run(suite: Suite, python: Path | str, place: Path, arguments: list[str]) -> dict[str, list]:
    """Run a suite; return {test: [outcome, reason]}."""
    outcomes = place.parent / "outcomes.json"
    flags = f"base_compiledir={place.parent / 'cache'}{suite.flags}"
    command = [
        python, "-P", "-m", "pytest", "-q", "-p", suite.plugin, "-p", "outcomes", "-p",
        "no:cacheprovider", "-p", "no:warnings", "--continue-on-collection-errors", "--tb=short",
        "--timeout", str(TIMEOUT), *arguments,
    ]  # fmt: skip
    known = [str(RECORDS), str(place)] if suite.library else [str(RECORDS)]
    if python == sys.executable:  # another opwise would have none of the suite's data
        known += filter(None, [os.environ.get("PYTHONPATH")])
    subprocess.run(
        command,
        cwd=place,
        env={
            **os.environ, **dict(suite.environment), "PYTHONPATH": os.pathsep.join(known),
            "SUITE_FOLDER": str(place), "SUITE_OUTCOMES": str(outcomes), "OPWISE_FLAGS": flags,
            "THEANO_FLAGS": "", "THEANORC": os.devnull,
            "PYTENSOR_FLAGS": f"base_compiledir={place.parent / 'pytensor'},on_opt_error=raise",
        },
    )  # fmt: skip
    if not outcomes.exists():
        raise SystemExit("pytest ended without results")
    return json.loads(outcomes.read_text(encoding="utf-8"))


# --- what passed before ---------------------------------------------------------------------------


def recorded(name: str) -> set[str]:
    """Return the tests of a suite that passed when they were recorded."""
    path = RECORDS / f"{name}.json"
    if not path.exists():
        return set()
    files = json.loads(path.read_text(encoding="utf-8"))["passed"]
    return {f"{file}::{test}" for file, tests in files.items() for test in tests}


def record(name: str, suite: Suite, passed: set[str]) -> None:
    """Write the list of the tests that pass."""
    files: dict[str, list[str]] = {}
    for test in sorted(passed):
        file, _, rest = test.partition("::")
        files.setdefault(file, []).append(rest)
    text = json.dumps({"suite": suite.source, "passed": files}, indent=0)
    (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def compare(before: set[str], outcomes: dict[str, list]) -> list[str]:
    """Print counts and what changed; return the tests that passed before and ran, but failed."""
    counts = Counter(outcome for outcome, _ in outcomes.values())
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    files_that_ran = {test.partition("::")[0] for test in outcomes}
    lost = sorted(
        test for test in before
        if test.partition("::")[0] in files_that_ran
        and outcomes.get(test, ["missing"])[0] != "passed"
    )  # fmt: skip
    new = sum(outcome == "passed" and test not in before for test, (outcome, _) in outcomes.items())
    print(f"{len(before)} passed before: {len(lost)} of them fail now; {new} others pass")
    for test in lost:
        outcome, reason = outcomes.get(test, ["missing", "it was not collected"])
        print(f"  {test}: {outcome}: {reason}")
    return lost


def differences(name: str) -> dict[str, list[str]]:
    """Return {why tests fail: patterns of these tests}."""
    path = RECORDS / f"{name}.differs.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def unexplained(known: dict[str, list[str]], outcomes: dict[str, list]) -> dict[str, str]:
    """Return {test that fails for no known reason: what pytest says}; report on the known ones."""
    failed = {test: said for test, (outcome, said) in outcomes.items() if outcome == "failed"}
    files_that_ran = {test.partition("::")[0] for test in outcomes}
    explained = set()
    for reason, patterns in known.items():
        count = 0
        for pattern in patterns:
            fits = re.compile(re.escape(pattern).replace(r"\*", ".*"))  # [..] belongs to names
            found = {test for test in failed if fits.fullmatch(test)}
            if not found and pattern.partition("::")[0] in files_that_ran:
                print(f"no test fails that fits {pattern}: take it from the differences")
            explained |= found
            count += len(found)
        if count:
            print(f"{count:5}  {reason}")
    return {test: said for test, said in failed.items() if test not in explained}


def report(failed: dict[str, str]) -> None:
    """Print the failures for no known reason by what pytest says, the most frequent first."""
    print(f"{len(failed):5}  no reason is known")
    causes: dict[str, list[str]] = {}
    for test, said in failed.items():
        causes.setdefault(said.splitlines()[0][:150] if said else "", []).append(test)
    for cause, tests in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"  {len(tests):5}  {cause}", *tests, sep="\n           ")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--update", action="store_true", help="record the tests that pass now")
    parser.add_argument("--reasons", action="store_true", help="say why the others fail")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes")
    parser.add_argument(
        "--here", action="store_true",
        help="use this Python, which has opwise and what the suite needs, and no new environment",
    )  # fmt: skip
    args, arguments = parser.parse_known_args(argv)
    suite = SUITES[args.suite]
    with tempfile.TemporaryDirectory(prefix="opwise-suite-") as made:
        folder = Path(made)
        place = unpack(suite, folder)
        python = sys.executable if args.here else environment(suite, folder)
        if args.jobs > 1:
            arguments = ["-n", str(args.jobs), "--dist", "loadfile", *arguments]
        outcomes = run(suite, python, place, arguments)
    if args.reasons:
        report(unexplained(differences(args.suite), outcomes))
    before = recorded(args.suite)
    lost = compare(before, outcomes)
    if args.update:
        passed = {test for test, (outcome, _) in outcomes.items() if outcome == "passed"}
        record(args.suite, suite, (before - set(lost)) | passed)
    return 1 if lost and not args.update else 0


if __name__ == "__main__":
    sys.exit(main())
