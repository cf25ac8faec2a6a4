"""What pages say of recorded results: that of the results as they are now."""

import json
from pathlib import Path

import pytest

from benchmark import first_result
from benchmark.suite import report
from benchmark.suite.results import Run

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.null


@pytest.fixture(scope="module")
def run():
    return Run.read(ROOT / "benchmark" / "results" / "suite.json")


@pytest.mark.parametrize(
    ("page", "parts"),
    [
        ("README.md", ["lead", "peers"]),
        ("docs/from-pytensor.md", ["pytensor"]),
        ("docs/results.md", [part for part in report.PARTS if part != "pytensor"]),
    ],
)
def test_parts_of_pages_are_those_of_the_recorded_results(page, parts, run):
    """Else: python -m benchmark.suite --from-json benchmark/results/suite.json --pages PAGE."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert sorted(match[2] for match in report.MARKED.finditer(text)) == sorted(parts)
    assert text.count("<!-- suite: ") == text.count("<!-- /suite -->") == len(parts)
    assert report.filled(text, run) == text


def test_every_recorded_result_has_a_row(run):
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in report.markdown(run).splitlines()]
    assert rows[2:] == [line.name for line in run.lines]
    assert report.markdown(run) in text
    assert f"Measured on {run.machine['date']}: {run.machine['processor']}" in text


@pytest.mark.parametrize(
    ("page", "parts"),
    [("README.md", ["sentence"]), ("benchmark/README.md", ["table", "machine"])],
)
def test_what_pages_say_of_the_first_result(page, parts):
    """Else: python -m benchmark.first_result --from-json .../first_result.json --pages PAGE."""
    recorded = (ROOT / "benchmark/results/first_result.json").read_text(encoding="utf-8")
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [match[2] for match in first_result.MARKED.finditer(text)] == parts
    assert first_result.filled(text, json.loads(recorded)) == text
