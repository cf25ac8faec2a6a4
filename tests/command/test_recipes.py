"""The recipes of docs/gate.md for CI: their YAML is read, and their commands run in a project."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs/gate.md").read_text(), re.M | re.S)
GITHUB, GITLAB = map(yaml.safe_load, BLOCKS)

PROGRAM = """
import numpy as np
import opwise
import opwise.tensor as T

x = T.dmatrix("x")
f = opwise.function([x], T.tanh(x).dot(x), name="f")
f(np.ones((SIZE, SIZE)))
"""


def github():
    """The commands of the job, in their order, each with whether it runs after a failure."""
    (job,) = GITHUB["jobs"].values()
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    return [(step["run"], step.get("if") == "always()") for step in job["steps"] if "run" in step]


def gitlab(name):
    commands = [*GITLAB["default"]["before_script"], *GITLAB[name]["script"]]
    return [(command, False) for command in commands]


@pytest.fixture
def project(tmp_path):
    """``project(size)``: a clone whose branch differs from origin/main by a size."""
    origin, clone, bin_ = tmp_path / "origin", tmp_path / "clone", tmp_path / "bin"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for folder in (origin, bin_):
        folder.mkdir()
    (origin / "train.py").write_text(PROGRAM.replace("SIZE", "20"))
    (origin / "requirements.txt").write_text("opwise\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=origin, check=True)
    subprocess.run(["git", "clone", "-q", str(origin), str(clone)], check=True)
    for name, does in (("opwise", f'exec "{sys.executable}" -m opwise "$@"'),
                       ("pip", 'test "$*" = "install -r requirements.txt"')):  # fmt: skip
        (bin_ / name).write_text(f"#!/bin/sh\n{does}\n")
        (bin_ / name).chmod(0o755)

    def made(size):
        (clone / "train.py").write_text(PROGRAM.replace("SIZE", str(size)))
        subprocess.run([*git, "commit", "-qam", "change", "--allow-empty"], cwd=clone, check=True)
        return clone

    return made


def run(commands, folder):
    """Run commands as CI does, up to the one that fails; return its exit status, and stderr."""
    home = folder.parent
    environment = {
        **os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), "GITHUB_BASE_REF": "main",
        "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "PATH": os.pathsep.join([str(home / "bin"), os.environ["PATH"]]),
    }  # fmt: skip
    status, said = 0, ""
    for command, always in commands:
        if status and not always:
            continue
        # what is exact decides here, so that no test depends on a time
        command = command.replace("1.10,", "1000,", 1).replace("memory=1.20", "memory=50")
        command = command.replace(" --fail-above", " --runs 4 --fail-above")
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command], cwd=folder, env=environment,
            capture_output=True, text=True,
        )  # fmt: skip
        status, said = status or done.returncode, said + done.stderr
    return status, said


def test_github(project):
    for size, status in ((20, 0), (60, 1)):
        found, said = run(github(), project(size))
        assert found == status, said
    assert "floating-point operations (operations)" in said
    summary = (project(20).parent / "summary.md").read_text()
    assert summary.count("### ") == 2 and "**Failed**: 1 cost of a run above the limit" in summary


def test_gitlab_versus(project):
    folder = project(60)
    found, said = run(gitlab("versus"), folder)
    assert found == 1 and "floating-point operations (operations)" in said, said
    (artifact,) = GITLAB["versus"]["artifacts"]["paths"]
    assert "**Failed**" in (folder / artifact).read_text()


def test_gitlab_baseline(project):
    found, said = run(gitlab("save baseline"), project(20))
    assert found == 0, said
    for size, status in ((20, 0), (60, 1)):
        found, said = run(gitlab("compare baseline"), project(size))
        assert found == status, said
    about = project(20).parent / "baselines" / "main" / "baseline.json"
    about.write_text(re.sub('"processor": "[^"]*"', '"processor": "Other 9000"', about.read_text()))
    found, said = run(gitlab("compare baseline"), project(60))
    assert found == 0 and "was saved on another machine" in said
