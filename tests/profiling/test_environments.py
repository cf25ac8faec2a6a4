"""What two sides of a comparison are, in words."""

from dataclasses import replace

import pytest

from opwise.profiling import environments
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null

ABOUT = {"program": "a.py", "date": "2026-01-02", "flags": "", "opwise": "1", "node": "here"}


@pytest.fixture
def run(build):
    apply, function, _ = build
    functions = tuple(function(apply("exp", 5), name=f"f{k}") for k in range(6))

    def made(**changes):
        return Profile(functions, "", {**ABOUT, **changes})

    return made


def test_rows(run):
    after = [run(flags="device=cuda"), run(date="2026-01-05", flags="device=cuda")]
    found = {
        what: sides
        for what, *sides in environments.describe_sides([run()], after, ("a.json", "folder"))
    }
    assert found == {
        "files": ["a.json", "folder"],
        "runs": ["1", "2"],
        "dates": ["2026-01-02", "2026-01-02 to 2026-01-05"],
        "functions": ["f0, f1, f2, f3 and 2 more"] * 2,
        "program": ["a.py"] * 2,
        "flags": ["none", "device=cuda"],
        "opwise": ["1"] * 2,
        "computer": ["here"] * 2,
    }


def test_what_may_explain_a_difference(run):
    """Other files, dates and numbers of runs are expected; other flags and machines are news."""
    other = [run(date="2027", flags="device=cuda", node="there"), run(node="there")]
    assert environments.differences([run()], other) == [
        ("flags", "none", "device=cuda; none"), ("computer", "here", "there"),
    ]  # fmt: skip
    assert environments.differences([run()], [run(date="2027")]) == []


def test_merged_runs_are_read_one_by_one(run):
    merged = replace(run(), environment={"merged": [ABOUT, {**ABOUT, "node": "there"}]})
    assert ("computer", "here", "here; there") in environments.describe_sides([run()], [merged])


def test_nothing_is_said_where_nothing_is_known():
    found = environments.describe_sides([Profile()], [Profile()])
    assert found == [("runs", "1", "1"), ("flags", "none", "none")]
