"""Every dependency has a lower bound, comes from the package index, and has a reason."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.null

ROOT = Path(__file__).parents[1]
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GROUPS = {
    "build": ABOUT["build-system"]["requires"],
    "opwise": ABOUT["project"]["dependencies"],
    **ABOUT["project"]["optional-dependencies"],
}
#: name, extras, bound; at most an upper bound and the oldest Python behind it
FORM = re.compile(
    r"([\w-]+)(\[[\w,]+\])?(>=|~=)([\d.]+)(?:,<[\d.]+)?(?:; python_version >= '[\d.]+')?"
)


@pytest.mark.parametrize("group", GROUPS)
def test_dependencies_have_a_lower_bound_and_no_other_source(group):
    assert [one for one in GROUPS[group] if not FORM.fullmatch(one)] == []


def numbers(version):
    return [int(part) for part in re.match(r"[\d.]*\d", version)[0].split(".")]


@pytest.mark.parametrize("text", GROUPS["opwise"])
def test_what_is_installed_is_allowed(text):
    name, _, _, bound = FORM.fullmatch(text).groups()
    assert numbers(importlib.metadata.version(name)) >= numbers(bound)


@pytest.mark.parametrize("text", GROUPS["opwise"])
def test_the_map_gives_a_reason(text):
    table = (ROOT / "ARCHITECTURE.md").read_text().partition("## Dependencies")[2]
    assert FORM.fullmatch(text)[1] in table


def test_other_lists_of_packages_name_no_source():
    for file in (ROOT / "requirements").glob("*.txt"):
        for line in file.read_text().splitlines():
            assert re.fullmatch(r"#.*|([\w-]+(>=[\d.]+)?)?", line), line
