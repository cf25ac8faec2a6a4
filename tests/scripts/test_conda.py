"""The recipe for conda says what pyproject.toml says."""

import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
RECIPE = yaml.safe_load((ROOT / "conda.recipe" / "recipe.yaml").read_text(encoding="utf-8"))
CONTENT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONTENT["project"]

pytestmark = pytest.mark.null


def without_spaces(needs):
    return sorted(need.replace(" ", "") for need in needs)


def test_name_version_and_licence():
    assert RECIPE["context"]["version"] == PROJECT["version"]
    assert RECIPE["package"] == {"name": PROJECT["name"], "version": "${{ version }}"}
    about = RECIPE["about"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert [about["license_file"]] == PROJECT["license-files"]


def test_what_it_needs():
    python = f"python{PROJECT['requires-python']}"
    needs = RECIPE["requirements"]
    assert without_spaces(needs["run"]) == sorted([python, *PROJECT["dependencies"]])
    build = CONTENT["build-system"]["requires"]
    assert without_spaces(needs["host"]) == sorted([python, "pip", *build])


def test_the_command():
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == commands


def test_the_files_that_it_names():
    (files,) = (test["files"]["source"] for test in RECIPE["tests"] if "files" in test)
    (commands,) = (test["script"] for test in RECIPE["tests"] if "script" in test)
    for name in [*files, RECIPE["about"]["license_file"]]:
        assert (ROOT / name).is_file()
    assert all(any(name in command for command in commands) for name in files)
    assert (ROOT / "conda.recipe" / RECIPE["source"]["path"] / "pyproject.toml").is_file()


def test_no_file_for_a_platform_without_wheels():
    """Windows is left out here and where wheels are built."""
    assert RECIPE["build"]["skip"] == "win"
    assert "*-win*" in CONTENT["tool"]["cibuildwheel"]["skip"]
