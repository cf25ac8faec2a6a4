"""What scripts/suites.py keeps of a run of an old test suite, and what it reports as lost."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
FOLDER = SCRIPTS.parent / "tests" / "suites"

pytestmark = pytest.mark.null


@pytest.fixture
def suites(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("scripts_suites", SCRIPTS / "suites.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look it up
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RECORDS", tmp_path)
    return module


OUTCOMES = {
    "a.py::test_one": ["passed", ""],
    "a.py::T::test_two": ["failed", "ValueError: no\nmore"],
    "b.py::test_three": ["skipped", "no device"],
}


def test_what_is_recorded_is_read_again(suites):
    assert suites.recorded("theano") == set()
    suites.record("theano", suites.SUITES["theano"], {"a.py::test_one", "a.py::T::test_two"})
    assert suites.recorded("theano") == {"a.py::test_one", "a.py::T::test_two"}


def test_tests_that_do_not_pass_any_more(suites, capsys):
    before = {"a.py::test_one", "a.py::T::test_two", "a.py::gone", "c.py::not_run"}
    assert suites.compare(before, OUTCOMES) == ["a.py::T::test_two", "a.py::gone"]
    assert capsys.readouterr().out.splitlines() == [
        "1 failed, 1 passed, 1 skipped",
        "4 passed before: 2 of them fail now; 0 others pass",
        "  a.py::T::test_two: failed: ValueError: no",
        "more",
        "  a.py::gone: missing: it was not collected",
    ]


def test_failures_are_reported_by_reason(suites, capsys, tmp_path):
    known = {"numpy does it": ["a.py::T::*", "a.py::gone"], "not built": ["e.py::*"]}
    (tmp_path / "theano.differs.json").write_text(json.dumps(known))
    more = {"d.py::x[1]": ["failed", "ValueError: no\nmore"], "d.py::y": ["failed", ""]}
    assert suites.differences("keras") == {}
    failed = suites.unexplained(suites.differences("theano"), {**OUTCOMES, **more})
    assert failed == {"d.py::x[1]": "ValueError: no\nmore", "d.py::y": ""}
    suites.report(failed)
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        "no test fails that fits a.py::gone: take it from the differences".split(),
        ["1", "numpy", "does", "it"],
        ["2", "no", "reason", "is", "known"],
        ["1", "ValueError:", "no"],
        ["d.py::x[1]"],
        ["1"],
        ["d.py::y"],
    ]


def test_a_lost_test_is_an_error_unless_the_list_is_updated(suites, monkeypatch, tmp_path):
    monkeypatch.setattr(suites, "unpack", lambda suite, folder: folder)
    monkeypatch.setattr(suites, "run", lambda suite, python, place, arguments: OUTCOMES)
    suites.record("theano", suites.SUITES["theano"], {"a.py::T::test_two"})
    assert suites.main(["theano", "--here"]) == 1
    assert suites.main(["theano", "--here", "--update"]) == 0
    assert suites.recorded("theano") == {"a.py::test_one"}
    assert suites.main(["theano", "--here"]) == 0


def test_the_lists_name_tests_of_their_suites():
    """The kept lists hold ids of pytest, of files under the folders of the suite."""
    for path in FOLDER.glob("*.json"):
        if ".differs" in path.name:
            continue
        files = json.loads(path.read_text())["passed"]
        assert files and all(file.endswith(".py") and tests for file, tests in files.items())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.differs.json")), ids=lambda path: path.name)
def test_no_test_that_passes_is_said_to_differ(path):
    files = json.loads(path.with_name(path.name.replace(".differs", "")).read_text())["passed"]
    passed = [f"{file}::{test}" for file, tests in files.items() for test in tests]
    for reason, patterns in json.loads(path.read_text()).items():
        assert reason.endswith(".") and patterns
        for pattern in patterns:
            if "*" not in pattern:
                assert pattern not in passed
