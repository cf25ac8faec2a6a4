"""Whole programs in the style of 2012, under ``opwise run --py2``.

Each is in three forms: ``old`` for Python 2, ``recorded`` what it printed under Python 2.7 with
genuine Theano 1.0.5, and ``new``, the same program written by hand for Python 3.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opwise.profiling.profile import Profile
from opwise.py2 import hook

FOLDER = Path(__file__).parent
PROGRAMS = ["classes.py", "kmeans.py", "logistic_sgd.py", "mlp.train"]


def run(folder, name, *command, **environment):
    """Run a program of a folder in the current one; return (its stdout, its stderr)."""
    words = [str(FOLDER / folder / name)] if name.endswith(".py") else ["-m", name]
    path = os.pathsep.join([str(FOLDER / folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *command, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_old_programs_print_what_they_printed(name):
    recorded = (FOLDER / "recorded" / f"{name.partition('.')[0]}.txt").read_text()
    command = ("-m", "opwise", "run", "--no-limits", "--py2", "-o", "own.json")
    printed, _ = run("old", name, *command)
    assert printed == recorded
    assert run("new", name)[0] == recorded
    sources = {}
    for function in Profile.load("own.json").functions:
        for apply in function.applys:
            for path, number, *_ in apply.lines:
                sources.setdefault(Path(path).name, set()).add(number)
    assert sources and all(sources.values())


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "DEBUG_MODE"])
def test_old_programs_run_in_every_mode(mode):
    recorded = (FOLDER / "recorded" / "kmeans.txt").read_text()
    flags = f"mode={mode},DebugMode.check_strides=0"
    assert run("old", "kmeans.py", "-m", "opwise.py2", OPWISE_FLAGS=flags)[0] == recorded


def test_profiles_have_the_lines_of_the_old_text():
    run("old", "logistic_sgd.py", "-m", "opwise", "run", "--no-limits", "--py2", "-o", "own.json")
    (train,) = (f for f in Profile.load("own.json").functions if f.name == "train_model")
    text = (FOLDER / "old" / "logistic_sgd.py").read_text("latin-1").splitlines()
    lines = {text[line - 1].strip() for a in train.applys for _, line, *_ in a.lines}
    assert "self.p_y_given_x = T.nnet.softmax(T.dot(input, self.W) + self.b)" in lines
    assert "g_W, g_b = T.grad(cost=cost, wrt=[classifier.W, classifier.b])" in lines


def test_nothing_is_written_beside_the_sources():
    run("old", "mlp.train", "-m", "opwise.py2", PYTHONDONTWRITEBYTECODE="")
    assert not (FOLDER / "old" / "mlp" / "__pycache__").exists()


@pytest.mark.parametrize("put", ["own", "own/program"])
def test_a_program_below_an_editable_install_is_the_users(put, tmp_path):
    finder = hook._Finder()
    finder.installed = {tmp_path, tmp_path / "own" / "site-packages"}
    finder.given = {tmp_path / "own"}
    for folder in (tmp_path, tmp_path / put, tmp_path / "own" / "site-packages"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "layers.py").write_text("")
    assert finder.find_spec("layers", [str(tmp_path / put)]) is not None
    assert finder.find_spec("layers", [str(tmp_path)]) is None
    assert finder.find_spec("layers", [str(tmp_path / "own" / "site-packages")]) is None
