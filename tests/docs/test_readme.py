"""What pages say of names and dependencies, against the code and pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

from opwise.command.doctor import names
from opwise.names import record
from opwise.names.coverage import lacking

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FROM_THEANO = (ROOT / "docs" / "from-theano.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def section(title, page=README):
    """Return the text of a section, without those below it."""
    return re.search(rf"^(#+) {title}\n(.*?)(?=^#+ |\Z)", page, re.S | re.M)[2]


def test_it_is_short():
    assert len(README.splitlines()) <= 200


def missing():
    """Return the names that "What is missing" lists, without those of which it says "is there"."""
    rows = re.findall(r"^\| [^|]+ \| (.*) \|$", section("What is missing", FROM_THEANO), re.M)[1:]
    return [name for row in rows for name in re.findall(r"`([\w.]+)`(?! is there)", row)]


def program(tmp_path, *uses):
    path = tmp_path / "program.py"
    path.write_text("import theano\n" + "".join(f"theano.{name}\n" for name in uses))
    return path


def test_what_is_missing_is_missing():
    """A name raises when it is used; of a module, something that it defines does."""
    for name in missing():
        dotted = f"theano.{name}"
        below = [d for m in record.modules() if f"{m}.".startswith(f"{dotted}.")
                 for d in (each.dotted for each in record.names(m).values())]  # fmt: skip
        assert lacking(dotted) or any(map(lacking, below)), dotted


def test_what_is_there_is_there(tmp_path):
    there = re.findall(r"`([\w.]+)` is there", section("What is missing", FROM_THEANO))
    used, found = names(program(tmp_path, *there))
    assert there and len(used) > len(there) and found == []


@pytest.mark.parametrize("name", [re.match(r"[\w-]+", need)[0] for need in PROJECT["dependencies"]])
def test_every_dependency_is_named(name):
    assert re.search(rf"\b{name}\b", section("Dependencies"))


def test_the_number_of_small_libraries():
    small = len(PROJECT["dependencies"]) - len(["numpy", "scipy"])
    words = dict(enumerate("one two three four five six seven".split(), 1))
    assert f"{words[small]} small libraries" in section("Dependencies")


def test_the_oldest_python():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {oldest} or later" in section("Install")
