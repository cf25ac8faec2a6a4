"""What scripts/suites.py keeps of a run of an old test suite, and what it reports as lost."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

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


def test_reasons_of_failures_are_counted(suites, capsys):
    suites.reasons({**OUTCOMES, "d.py::x": ["failed", "ValueError: no"], "e.py": ["failed", ""]})
    assert capsys.readouterr().out.split("\n")[:2] == ["    2  ValueError: no", "    1  no reason"]


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
    import json

    for path in (SCRIPTS.parent / "tests" / "suites").glob("*.json"):
        files = json.loads(path.read_text())["passed"]
        assert files and all(file.endswith(".py") and tests for file, tests in files.items())
