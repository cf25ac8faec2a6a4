"""Which environments scripts/pythons.py plans, and what scripts/needs.py reads."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(f"scripts_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


pythons, needs = script("pythons"), script("needs")


def python(minor, *lacks):
    return pythons.Python(Path(f"/python3.{minor}"), (3, minor, 1), lacks)


def test_every_python_and_the_oldest_dependencies_on_the_first():
    planned = pythons.runs([python(11), python(12), python(13, "venv")])
    assert [(run.python.minor, run.oldest) for run in planned] == [
        ("3.11", False), ("3.12", False), ("3.11", True), ("3.12", True),
    ]  # fmt: skip


@pytest.mark.parametrize(("minor", "oldest"), [(11, ["3.11"]), (14, [])])
def test_a_machine_with_one_python(minor, oldest):
    planned = pythons.runs([python(minor)], without=[f"3.{minor}"])
    assert [run.python.minor for run in planned if run.oldest] == oldest == [
        run.python.minor for run in planned
    ]  # fmt: skip


def test_each_flag_is_off_in_one_run():
    planned = pythons.runs([python(11), python(12), python(13), python(14)], without=["3.11"])
    assert [(run.python.minor, run.off) for run in planned] == [
        ("3.12", "cache_graphs"), ("3.13", "background_compilation"), ("3.14", ""), ("3.11", ""),
        ("3.12", ""),
    ]  # fmt: skip


def test_an_extra_has_pythons_of_its_own():
    assert pythons.allowed("pymc") == (3, 12) and pythons.allowed("test") == (3, 11)
    planned = pythons.runs([python(11), python(12), python(13)])
    assert [(run.python.minor, run.oldest, run.extra) for run in planned] == [
        ("3.11", False, ""), ("3.12", False, "pymc"), ("3.13", False, "pymc"),
        ("3.11", True, ""), ("3.12", True, "pymc"),
    ]  # fmt: skip
    one, three = ([*pythons.QUICK, "--few", few] for few in "13")
    of_extra = ["tests/pytensor", "tests/frontends"]
    assert [pythons.tests(run) for run in planned] == [
        [one],
        [one, of_extra],
        [three, of_extra],
        [one],
        [of_extra],
    ], "most on the newest Python"
    assert [pythons.tests(run, ["-x"]) for run in planned] == 5 * [[["-x"]]]


@pytest.mark.parametrize(("few", "kept"), [("1", [0]), ("3", [0, 4, 9]), ("20", [*range(10)])])
def test_few_cases_are_the_first_the_last_and_some_between(few, kept):
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    cases = [f"{SCRIPTS.parent}/tests/benchmark/test_growth.py::test_exponents"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    shown = [
        subprocess.run(
            [*asked, *more, *cases], capture_output=True, text=True, env=environment
        ).stdout.splitlines()
        for more in ([], ["--few", few])
    ]  # fmt: skip
    every, some = ([line for line in lines if "::" in line] for lines in shown)
    assert some == [every[k] for k in kept]


def test_what_every_python_can_use_is_kept(tmp_path):
    build, built = tmp_path / "build", tmp_path / "built"
    for name in ("objects-1/a.o", "generated/a.c", "temp.cpython-311/a.o", "lib.linux/a.so"):
        (build / name).parent.mkdir(parents=True)
        (build / name).write_text("")
    assert pythons.keep(build, built) and pythons.keep(build, built)
    assert sorted(path.name for path in built.iterdir()) == ["generated", "objects-1"]
    assert pythons.keep(tmp_path / "no such folder", built)


def folder(tmp_path, name, programs):
    """Make a folder with programs that answer the probe as given, {file name: answer}."""
    made = tmp_path / name
    made.mkdir(parents=True)
    for program, answer in programs.items():
        path = made / program
        path.write_text(f"#!/bin/sh\n{answer}\n")
        path.chmod(0o755)
    return made


def answer(version, plain="true", lacks="[]"):
    return (
        f"""echo '{{"path": "'$0'", "version": {version}, "plain": {plain}, "lacks": {lacks}}}'"""
    )


def test_pythons_of_path_and_of_pyenv(tmp_path, monkeypatch):
    path = folder(tmp_path, "bin", {
        "python3": "exit 1",  # as a shim of pyenv for a version that is not installed
        "python3.11": answer([3, 11, 2]),
        "python3.12": answer([3, 12, 9], lacks='["venv"]'),
        "python3.10": answer([3, 10, 4]),
        "python3-config": answer([3, 19, 0]),
    })  # fmt: skip
    for version, said in {
        "3.11.7": answer([3, 11, 7]), "3.12.1": answer([3, 12, 1]), "2.7.18": "exit 1",
        "3.14.0t": answer([3, 14, 0], plain="false"),
    }.items():  # fmt: skip
        folder(tmp_path, f"pyenv/versions/{version}/bin", {"python3": said})
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    found = [(python.version, python.lacks) for python in pythons.pythons()]
    assert found == [((3, 11, 7), ()), ((3, 12, 1), ())], "usable ones first, then the newest"


def test_this_python_is_found_and_probed(monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.setenv("PYENV_ROOT", "/no/such/folder")
    assert [python.version for python in pythons.pythons()] == [sys.version_info[:3]]


def test_every_requirement_has_a_lower_bound(capsys):
    needs.main(["--lowest"])
    constraints = capsys.readouterr().out.split()
    names = [constraint.partition("==")[0] for constraint in constraints]
    assert {"numpy", "scipy", "pytest", "cython", "codespell", "cupy-cuda13x"} < set(names)
    assert len(names) == len(set(names)), "one bound for each package, wherever it is required"


@pytest.mark.parametrize(
    ("requirement", "constraint"),
    [("numpy>=2.0.0", "numpy==2.0.0"), ("ruff~=0.17.5", "ruff==0.17.5"),
     ("cupy-cuda13x[ctk]>=14", "cupy-cuda13x==14"),
     ("pytensor>=3.3,<3.4; python_version >= '3.12'", "pytensor==3.3")],
)  # fmt: skip
def test_lower_bounds(requirement, constraint):
    assert needs.lowest(requirement) == constraint


@pytest.mark.parametrize("requirement", ["scipy", "scipy<2", "scipy==1.0"])
def test_a_requirement_without_a_lower_bound(requirement):
    with pytest.raises(SystemExit, match="has no lower bound: write NAME>=VERSION"):
        needs.lowest(requirement)


def test_requirements_of_a_group(capsys):
    needs.main(["dev", "--only", "ruff", "cython-lint"])
    assert [line.partition("=")[0] for line in capsys.readouterr().out.split()] == [
        "ruff~", "cython-lint>",
    ]  # fmt: skip
