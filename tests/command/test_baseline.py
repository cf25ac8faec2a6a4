"""The subcommand ``baseline``: what it keeps, compares, refuses, and says of damage."""

import json
from dataclasses import replace

import pytest

from opwise.command import baselines, sides
from opwise.hardware import control
from opwise.profiling import noise
from opwise.profiling.profile import Profile

PROGRAM = """
import sys
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.exp(x), name="f")
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    f(np.ones(1000))
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def played(script, build, monkeypatch):
    """``played(ns)``: from now on a run of a program has one Apply that takes so long."""
    apply, function, _ = build
    now = {"ns": 100_000, "control": 1.0, "about": {}}

    def run(side, number):
        slow = apply("exp", now["ns"] + 100 * number, 0, keys=["a"])
        about = {"program": " ".join(side.command[1:])}
        about |= {f"{of}python": now["control"] for of in (noise.CONTROL, noise.TYPICAL_CONTROL)}
        if number:
            Profile((function(slow),), environment={**about, **now["about"]}).save(
                side.path(number)
            )

    monkeypatch.setattr(sides.Side, "run", run)
    return lambda ns=100_000, control=1.0, **about: now.update(ns=ns, control=control, about=about)


def test_save_list_compare_remove(call_apart, script, tmp_path):
    """A program itself, with arguments, options before and behind the name, and ``python``."""
    saved = call_apart("baseline", "save", "main", "--runs", 2, "--", "python", script.name, 5)
    assert saved.exit_code == 0, saved.output
    assert "saved the baseline main, 2 runs, in .opwise/baselines" in saved.stderr
    kept = tmp_path / ".opwise" / "baselines" / "main"
    runs = [Profile.load(kept / "runs" / f"00{k}.json") for k in (1, 2)]
    assert [f.calls for run in runs for f in run.functions] == [5, 5]
    assert all(name in run.environment for run in runs for name in control.measure())
    assert sorted(p.name for p in kept.parent.iterdir()) == ["main"]

    rows = json.loads(call_apart("baseline", "list", "--form", "json").stdout)
    assert [(r["name"], r["runs"], r["command"]) for r in rows] == [("main", 2, "program.py 5")]
    assert rows[0]["machine"] == baselines.here() and rows[0]["seconds_applys"] > 0
    assert call_apart("baseline", "list").stdout.splitlines()[1].startswith("main")

    compared = call_apart("baseline", "compare", "--runs", 2, "main", "--fail-above", "arrays=1.1")
    assert compared.exit_code == 0, compared.output
    assert "baseline main: 2 runs of program.py 5, saved on " in compared.stderr
    assert "2 runs before, 2 after" in compared.stdout
    given = call_apart("baseline", "compare", "main", "--runs", 1, script.name, 7)
    assert given.exit_code == 0 and "program before:" in given.stdout

    removed = call_apart("baseline", "remove", "main")
    assert removed.exit_code == 0 and not kept.exists()
    assert "has no baseline" in call_apart("baseline", "list").stderr


@pytest.mark.parametrize(
    ("ns", "control", "code"),
    [(100_000, 1.0, 0), (130_000, 1.0, 1), (130_000, 1.3, 0), (160_000, 1.3, 1), (70_000, 1.0, 0)],
)
def test_the_gate(call_apart, played, ns, control, code):
    """What the hardware explains by the control beside the runs does not fail."""
    assert call_apart("baseline", "save", "main", "program.py").exit_code == 0
    played(ns, control)
    result = call_apart("baseline", "compare", "main", "--fail-above", 1.1)
    assert result.exit_code == code, result.output
    assert ("times as long as before: exp" in result.stderr) == bool(code)


def test_few_runs_are_refused_before_they_run(call_apart, played):
    call_apart("baseline", "save", "main", "program.py")
    result = call_apart("baseline", "compare", "main", "--runs", 3, "--fail-above", 1.1)
    assert result.exit_code == 2 and "need at least --runs 4" in result.stderr


def test_a_baseline_is_replaced_only_if_asked(call_apart, played, tmp_path):
    save = ["baseline", "save", "main", "program.py"]
    assert call_apart(*save).exit_code == 0
    played(500_000)
    result = call_apart(*save)
    assert result.exit_code == 1
    assert "has a baseline main: give --replace to replace it, or another name" in result.stderr
    assert call_apart("baseline", "save", "--replace", "main", "program.py").exit_code == 0
    found = baselines.Baselines(tmp_path / ".opwise" / "baselines")
    assert found.profiles(found.get("main"))[0].local_ns == 500_100


def test_the_folder_can_be_chosen(call_apart, played, tmp_path):
    there = ["--folder", tmp_path / "else where"]
    assert call_apart("baseline", "save", "v1.0", *there, "program.py").exit_code == 0
    assert call_apart("baseline", "compare", "v1.0", *there).exit_code == 0
    missing = call_apart("baseline", "compare", "v1.0")
    assert missing.exit_code == 1
    assert missing.stderr == (
        "Error: .opwise/baselines has no baseline v1.0; it has no baseline. To save it: opwise "
        "baseline save v1.0 SCRIPT\n"
    )


def test_a_failing_program_leaves_the_old_baseline(call_apart, script, played, monkeypatch):
    call_apart("baseline", "save", "main", "program.py")
    monkeypatch.undo()
    monkeypatch.chdir(script.parent)
    script.write_text("raise SystemExit(3)")
    result = call_apart("baseline", "save", "--replace", "main", "program.py")
    assert result.exit_code == 1 and "its exit status is 3" in result.stderr
    assert call_apart("baseline", "list").stdout.splitlines()[1].startswith("main")
    assert [p.name for p in (script.parent / ".opwise" / "baselines").iterdir()] == ["main"]


# --- another machine, other versions --------------------------------------------------------------


def test_times_of_another_machine_are_not_judged(call_apart, played, monkeypatch):
    call_apart("baseline", "save", "main", "program.py")
    here = baselines.here()
    monkeypatch.setattr(baselines, "here", lambda: {**here, "processor": "Other 9000"})
    played(300_000)
    compare = ["baseline", "compare", "main"]
    result = call_apart(*compare, "--fail-above", 1.1)
    assert result.exit_code == 3 and result.stdout == ""
    assert result.stderr.startswith("Error: baseline main was saved on another machine (")
    assert "this one: Other 9000" in result.stderr and "--any-machine" in result.stderr
    known = call_apart(*compare, "--fail-above", 1.1, "--any-machine")
    assert known.exit_code == 0 and "not judged: 2 rows took more than 1.1" in known.stderr
    assert "times have no verdict" in known.stdout and "slower" not in known.stdout
    assert call_apart(*compare, "--fail-above", "operations=1.1").exit_code == 0


def test_other_versions_are_said(call_apart, played):
    played(numpy="1.0", node="here")
    call_apart("baseline", "save", "main", "program.py")
    assert "other versions" not in call_apart("baseline", "compare", "main").stderr
    played(numpy="2.0", node="there")
    result = call_apart("baseline", "compare", "main")
    assert "other versions than those of the baseline (numpy): the comp" in result.stderr
    assert "numpy before: 1.0, after: 2.0" in result.stdout


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a/b", "../x", ".hidden", "", "a b", "x" * 101, "\x1b[31m"])
@pytest.mark.parametrize("command", ["save", "compare", "remove"])
def test_names_that_are_refused(call_apart, played, command, name):
    result = call_apart("baseline", command, name, *["program.py"] * (command == "save"))
    assert result.exit_code == 2 and "cannot name a baseline: use up to 100" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_missing_baseline(call_apart, played):
    call_apart("baseline", "save", "main", "program.py")
    for command in ("compare", "remove"):
        result = call_apart("baseline", command, "other")
        assert result.exit_code == 1 and "its baselines: main. To save it: " in result.stderr


def _rewritten(change):
    def damage(kept):
        path = kept / "baseline.json"
        about = json.loads(path.read_text())
        change(about)
        path.write_text(json.dumps(about))

    return damage


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda kept: (kept / "baseline.json").unlink(), "No such file or directory"),
        (lambda kept: (kept / "baseline.json").write_text("{"), "Expecting property name"),
        (lambda kept: (kept / "baseline.json").write_text("[]"), "does not describe a baseline"),
        (lambda kept: (kept / "baseline.json").write_bytes(b"\xff"), "codec can't decode"),
        (lambda kept: (kept / "runs" / "003.json").unlink(), "No such file or directory"),
        (lambda kept: (kept / "runs" / "003.json").write_text("{}"), "is not an opwise profile"),
        (_rewritten(lambda about: about.update(version=2)), "format has version 2"),
        (_rewritten(lambda about: about.update(runs="7")), "missing or of another type"),
        (_rewritten(lambda about: about.update(runs=8)), "No such file or directory"),
        (_rewritten(lambda about: about.pop("program")), "missing or of another type"),
        (_rewritten(lambda about: about.update(machine={})), "missing or of another type"),
        (_rewritten(lambda about: about.update(extra=1)), "missing or of another type"),
    ],
)
def test_damaged_files(call_apart, played, tmp_path, damage, said):
    for name in ("good", "main"):
        call_apart("baseline", "save", name, "program.py")
    damage(tmp_path / ".opwise" / "baselines" / "main")
    result = call_apart("baseline", "compare", "main")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: baseline main is damaged: ") and said in line
    assert "opwise baseline save --replace main" in line
    shown = call_apart("baseline", "list")
    assert shown.exit_code == 0 and "baseline main is damaged" in shown.stdout
    assert shown.stdout.splitlines()[1].startswith("good")
    assert call_apart("baseline", "remove", "main").exit_code == 0
    assert call_apart("baseline", "list").stdout.count("\n") == 2


def test_the_program_is_not_here(call_apart, played, tmp_path, monkeypatch):
    call_apart("baseline", "save", "--folder", tmp_path / "kept", "main", "program.py")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    result = call_apart("baseline", "compare", "--folder", tmp_path / "kept", "main")
    assert result.exit_code == 1
    assert "the program of baseline main, program.py, is not here" in result.stderr


@pytest.mark.parametrize("words", [["python"], ["python", "-c", "pass"], ["python3", "no.py"]])
def test_python_without_a_script(call_apart, played, words):
    result = call_apart("baseline", "save", "main", "--", *words)
    assert result.exit_code == 2
    assert "is followed by no script" in result.stderr or "'no.py' does not exist" in result.stderr


def test_a_module_after_python(call_apart, played, tmp_path):
    assert call_apart("baseline", "save", "main", "--", "python", "-m", "a.b", "-x").exit_code == 0
    kept = baselines.Baselines(tmp_path / ".opwise" / "baselines").get("main")
    assert kept.command == "-m a.b -x"
    assert replace(kept.program, python=None).command()[1:] == ["-m", "a.b", "-x"]


def test_ctrl_c_saves_nothing(call_apart, script, monkeypatch):
    def run(side, number):
        raise KeyboardInterrupt

    monkeypatch.setattr(sides.Side, "run", run)
    result = call_apart("baseline", "save", "main", "program.py")
    assert result.exit_code == 130
    assert "interrupted: the baseline main was not saved" in result.stderr
    assert not list((script.parent / ".opwise" / "baselines").iterdir())
