"""The command: what each subcommand prints, keeps and returns, and what it refuses."""

import csv
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

import opwise as opwise_package
from opwise.linkers import kernelcache, opwise_c, trusted
from opwise.profiling import requests
from opwise.profiling.profile import Profile

PROGRAM = """
import sys
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.exp(x) * 2 + T.sort(x), name="f")
for _ in range(3):
    f(np.ones(1000))
print("ran with", sys.argv[1:], theano.config.mode, theano.config.floatX)
sys.exit(len(sys.argv) - 1)
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def opwise(*args):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "opwise", *map(str, args)], capture_output=True, text=True
    )


# --- run ------------------------------------------------------------------------------------------


def test_run_keeps_the_profile_and_passes_everything_on(script):
    done = opwise("run", "--mode", "FAST_COMPILE", "--flags", "floatX=float32", script, "-x", "--n")
    assert done.returncode == 2
    assert done.stdout == "ran with ['-x', '--n'] FAST_COMPILE float32\n"
    assert "1 function, 3 calls, " in done.stderr
    (f,) = Profile.load("program.profile.json").functions
    assert (f.name, f.calls) == ("f", 3) and f.memory is not None
    assert any(line[0] == str(script) for a in f.applys for line in a.lines)


STDOUT = [(">/dev/full", 1), (">&-", 0), ("| true", 0)]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize(("where", "code"), STDOUT, ids=lambda v: str(v))
@pytest.mark.parametrize("what", ["--help", "doctor", "report {}", "report --form csv {}"])
def test_stdout_cannot_be_written(tmp_path, build, what, where, code):
    apply, function, _ = build
    path = tmp_path / "kept.json"
    Profile((function(apply("exp", 100, 0)),)).save(path)
    line = f"set -o pipefail; {sys.executable} -m opwise {what.format(path)} {where}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    if code:
        assert done.stderr == "Error: cannot write to stdout: No space left on device\n"
        assert done.returncode == code
    else:
        assert done.stderr == "" and done.returncode in (0, 1)


def test_run_reports_a_missing_profile(tmp_path):
    script = tmp_path / "nothing.py"
    script.write_text("print('no function')")
    output = tmp_path / "p.json"
    output.write_text("of another run")
    done = opwise("run", "-o", output, script)
    assert (done.returncode, done.stdout) == (0, "no function\n")
    assert "no profile was written" in done.stderr
    assert output.read_text() == "of another run"


def test_run_refuses_an_output_in_a_missing_folder(script, tmp_path):
    done = opwise("run", "-o", tmp_path / "no" / "p.json", script)
    assert done.returncode == 1
    assert done.stderr == f"Error: cannot write {tmp_path / 'no' / 'p.json'}: {MISSING}\n"
    assert "ran with" not in done.stdout


MISSING = "No such file or directory"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-o", "OUT/p.json", "SCRIPT"],
        ["versus", "-o", "OUT/x", "--after-flags", "floatX=float32", "SCRIPT"],
        ["versus", "-o", "OUT/x/y", "--after-flags", "floatX=float32", "SCRIPT"],
        ["export", "PROFILE", "OUT/p.json"],
        ["report", "--html", "OUT/p.html", "PROFILE"],
        ["diff", "--html", "OUT/p.html", "PROFILE", "PROFILE"],
        ["ask", "-o", "OUT/p.json"],
    ],
)
@pytest.mark.parametrize("where", ["/dev/null", "/proc", "file"])
def test_an_output_that_cannot_be_written_is_one_line_before_the_work(
    words, where, call, profile, tmp_path
):
    script = tmp_path / "program.py"
    script.write_text("open('ran', 'w').close()")
    if where == "file":
        where = tmp_path / "file"
        where.write_text("no folder")
    named = {"SCRIPT": str(script), "PROFILE": str(profile("p.json", A))}
    words = [named.get(word, word.replace("OUT", str(where))) for word in words]
    result = call(*words)
    assert result.exit_code == 1 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: cannot write {where}")
    assert not isinstance(result.exception, OSError) and not os.path.exists("ran")


def test_a_profile_records_its_program(script):
    opwise("run", "-o", "own.json", script, "--some", "word")
    about = Profile.load("own.json").environment
    assert about["program"] == f"{script} --some word"
    assert about["opwise"] and about["numpy"] and about["date"].startswith("20")


def test_run_keeps_the_profile_of_a_program_that_fails(script):
    script.write_text(PROGRAM.replace("sys.exit(", "raise RuntimeError("))
    done = opwise("run", "-o", "own.json", "--no-memory", script)
    assert done.returncode == 1 and "RuntimeError" in done.stderr
    assert Profile.load("own.json").functions[0].memory is None


def test_run_refuses_other_files(call, script):
    result = call("run", "-o", "profile.txt", script)
    assert result.exit_code == 2 and "profile.txt" in result.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--mode", "FASTRUN"], "FASTRUN"),
        (["--flags", "floatX=float3"], "float3"),
        (["--flags", "threads=-1"], "threads"),
        (["--flags", "'open"], "Cannot split the flags"),
    ],
)
@pytest.mark.parametrize("command", ["run", "tune", "versus"])
def test_flags_are_checked_before_a_program_runs(call, script, command, options, said):
    if command != "run" and "--mode" in options:
        return
    if command == "versus":
        options = ["--before-flags", options[1]]
    result = call(command, *options, script)
    assert result.exit_code == 2 and said in result.output and "Traceback" not in result.output
    assert not os.path.exists("program.profile.json")


def test_flags_of_the_program_are_left_to_it(script):
    own = "import theano.configparser as c; c.AddConfigVar('mine', 'x', c.IntParam(1))\n"
    script.write_text(own + PROGRAM)
    done = opwise("run", "--no-limits", "--flags", "mine=3", script)
    assert done.returncode == 0 and "1 function, 3 calls" in done.stderr


def test_a_script_that_is_not_there(call):
    assert call("run", "no.py").exit_code == 2


# --- report ---------------------------------------------------------------------------------------


def test_report(call, profile):
    path = profile("p.json", ("exp", 9000, 2, ()), ("dot", 1000, 2, ()))
    result = call("report", "--form", "text", path)
    assert result.exit_code == 0 and result.output.startswith("Function profiling\n")
    assert "  90.0%    90.0%" in result.output
    rest = call("report", "--form", "text", "-n", 1, path).output
    assert "remaining 1 Apply instances account for 10.00%" in rest


def test_report_of_several(call, profile):
    one = profile("1.json", ("exp", 9000, 2, ()))
    two = profile("2.json", ("exp", 1000, 3, ()))
    assert "      5     0   exp(x)" in call("report", "--form", "text", one, two).output


@pytest.fixture
def of_two(build, tmp_path):
    """The file of a profile of two functions that were called and one that was not."""
    apply, function, _ = build
    kept = Profile((
        function(apply("exp", 100, 0), name="f"),
        function(apply("dot", 900, 0), apply("exp", 50, 1), name="g"),
        replace(function(apply("sort", 0, 0, count=0), name="h"), calls=0),
    ))  # fmt: skip
    kept.save(tmp_path / "two.json")
    return tmp_path / "two.json"


def test_the_text_has_a_part_for_each_function(call, of_two):
    *_, g, f, both = call("report", "--form", "text", of_two).output.split("  Message: ")
    assert [part.partition("\n")[0] for part in (g, f, both)] == [
        "g", "f", "the sum of 3 functions",
    ]  # fmt: skip
    assert "dot" in g and "dot" not in f and "dot" in both


def test_several_programs_are_named_when_they_are_merged(call, build, tmp_path):
    apply, function, _ = build
    for k, program in enumerate(["train.py a", "train.py b", "eval.py"]):
        Profile((function(apply("exp", 9, 0)),), environment={"program": program}).save(
            tmp_path / f"{k}.json"
        )
    said = "merged 3 profiles of 2 programs: train.py (2), eval.py (1)."
    assert call("report", tmp_path).stderr.startswith(said)
    assert call("report", tmp_path / "0.json", tmp_path / "1.json").stderr == ""


@pytest.mark.parametrize("form", ["table", "text"])
def test_columns_set_the_width_without_a_terminal(call, profile, monkeypatch, form):
    path = profile("p.json", ("o" * 400, 9000, 2, ()))

    def rows():
        lines = call("report", "--form", form, path).output.splitlines()
        return [line for line in lines if "oo" in line and "100.0%" in line]

    whole = rows()
    assert max(map(len, whole)) > 400
    monkeypatch.setenv("COLUMNS", "84")
    cut = rows()
    assert len(cut) == len(whole) and all(len(row) <= 84 for row in cut)
    for row, before in zip(cut, whole, strict=True):
        assert row == before or row.endswith("…")


def test_functions_that_are_asked_for(call, of_two):
    shown = call("report", "--function", "f", of_two).output
    assert shown.startswith("1 function, 1 call, ") and "exp" in shown and "dot" not in shown
    shown = call("report", "--function", "f", "--function", "g", of_two).output
    assert shown.startswith("2 functions, 2 calls, ")
    result = call("report", "--function", "k", of_two)
    assert result.exit_code == 1
    assert result.output == "Error: the profile has no function k; its functions: f, g, h\n"


def test_report_for_other_programs(call, profile):
    rows = list(
        csv.DictReader(
            io.StringIO(call("report", "--form", "csv", profile("p.json", ("e", 9, 2, ()))).output)
        )
    )
    assert [(row["op"], row["calls"]) for row in rows] == [("e", "2")]


def test_report_of_a_folder_skips_what_is_no_profile(call, profile, tmp_path):
    profile("1.json", ("exp", 9000, 2, ()))
    profile("2.json", ("exp", 1000, 3, ()))
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "\x1b[31m.json").write_text('{"format": "opwise profile", "version": 99}')
    result = call("report", "--form", "text", tmp_path)
    assert result.exit_code == 0 and "      5     0   exp(x)" in result.stdout
    first, second = result.stderr.splitlines()
    assert first.startswith("skipped: ") and r"\x1b[31m.json is a profile of version 99" in first
    assert second == (
        f"skipped: {tmp_path}/settings.json is not an opwise profile: `opwise run` and "
        "Profile.save write such files."
    )
    for name in ("1.json", "2.json"):
        (tmp_path / name).unlink()
    result = call("report", tmp_path)
    assert result.exit_code == 1 and f"Error: {tmp_path} contains no profile" in result.output


def test_many_files_that_are_no_profiles(call, profile, tmp_path):
    for k in range(20):
        (tmp_path / f"{k}.json").write_text("{}")
    profile("p.json", ("exp", 9000, 2, ()))
    result = call("report", tmp_path)
    assert len(result.stderr.splitlines()) == 6 and "skipped: 15 more files" in result.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("command", [["report"], ["export", "-", "out"], ["diff", "-", "-"]])
def test_devices_pipes_and_huge_files_are_refused(call, tmp_path, command):
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    for path in ("/dev/zero", tmp_path / "fifo", tmp_path / "huge"):
        words = [path if word == "-" else word for word in command]
        result = call(*words, *([path] if len(words) == 1 else []))
        assert result.exit_code == 1
        assert result.output.startswith(f"Error: {path} is not an opwise profile: it ")


@pytest.mark.parametrize(
    "command", [["export", "P", "P"], ["export", ".", "P"], ["export", "P", "link"],
                ["report", "--html", "P", "P"], ["report", "--html", "link", "."],
                ["report", "--html", "P", "other", "P"]]
)  # fmt: skip
def test_no_input_is_overwritten(call, profile, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    path = profile("p.json", A, B)
    profile("other", A, B)
    os.link(path, tmp_path / "link")
    was = path.read_bytes()
    result = call(*(path if word == "P" else word for word in command))
    assert result.exit_code == 1
    assert "is one of the inputs and would be overwritten" in result.output
    assert path.read_bytes() == was == (tmp_path / "link").read_bytes()


def test_run_does_not_overwrite_its_program(tmp_path):
    script = tmp_path / "program.json"
    script.write_text("print('ran')")
    done = opwise("run", "--no-limits", "-o", script, script)
    assert done.returncode == 1 and "is one of the inputs" in done.stderr
    assert script.read_text() == "print('ran')"


@pytest.mark.parametrize("by", ["op", "class", "line", "scope", "shapes"])
def test_report_by(call, of_two, by):
    shown = call("report", "--by", by, of_two).output
    first, *_ = shown.splitlines()
    assert first.split() == ["time", "ms", "share", "runs", "Applys", by]
    assert ("Shapes are those of the last call" in shown) == (by == "shapes")
    assert "\n1 more row: " in call("report", "--by", "op", "-n", 1, of_two).output


def test_report_as_json_and_markdown(call, of_two):
    data = json.loads(call("report", "--form", "json", of_two).output)
    assert (data["format"], data["version"], data["calls"]) == ("opwise report", 1, 2)
    assert call("report", "--form", "markdown", of_two).output.startswith("### Profile\n")


@pytest.mark.parametrize("command", ["report", "diff"])
@pytest.mark.parametrize("text", ["", "{}", "[1, 2"])
def test_files_that_are_not_profiles(call, profile, tmp_path, command, text):
    (tmp_path / "bad.json").write_text(text)
    args = [profile("good.json", ("e", 9, 2, ())), tmp_path / "bad.json"]
    result = call(command, *args)
    assert result.exit_code == 1
    assert "bad.json is not an opwise profile" in result.output


A, B = ("exp", 6_000_000, 1, ("a",)), ("dot", 4_000_000, 1, ("b",))


# --- export ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "key"),
    [([], "traceEvents"), (["--form", "chrome"], "traceEvents"),
     (["--form", "speedscope"], "shared")],
)  # fmt: skip
def test_export(call, profile, tmp_path, arguments, key):
    result = call("export", *arguments, profile("p.json", A, B), tmp_path / "out.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"wrote {tmp_path / 'out.json'}\n"
    assert key in json.loads((tmp_path / "out.json").read_text())


def test_export_refuses(call, profile, tmp_path):
    (tmp_path / "bad.json").write_text("[]")
    result = call("export", tmp_path / "bad.json", tmp_path / "out.json")
    assert result.exit_code == 1 and "bad.json is not an opwise profile" in result.output
    nowhere = tmp_path / "no" / "out.json"
    result = call("export", profile("p.json", A), nowhere)
    assert result.exit_code == 1 and f"cannot write {nowhere}: " in result.output
    assert call("export", "--form", "csv", profile("p.json", A), nowhere).exit_code == 2


# --- doctor ---------------------------------------------------------------------------------------


def test_doctor_shows_what_it_finds(call):
    lines = dict(line.split(None, 1) for line in call("doctor").output.splitlines())
    assert {"python", "numpy", "compiler", "processors", "BLAS", "cache", "GPU"} <= set(lines)
    assert lines["python"] == ".".join(map(str, sys.version_info[:3]))


def test_doctor_says_that_kernels_are_for_another_processor(call, monkeypatch):
    monkeypatch.setattr(opwise_c, "PROCESSOR_VECTORS", "avx1024")
    said = "built for another processor: this one has avx1024; install opwise here again"
    assert said in call("doctor").output


def test_doctor_finds_what_a_program_lacks(call, tmp_path):
    script = tmp_path / "old.py"
    script.write_text(
        "import numpy\n"
        "import theano, theano.tensor as T\n"
        "from theano.gpuarray.dnn import RNNBlock\n"
        "from theano import config as c\n"
        "x = T.matrix()\n"
        "y = T.nnet.sigmoid(x).no_such_method + T.nnet.no_such_function(x)\n"
        "z = theano.shared(0).get_value() + numpy.no_such + c.floatX\n"
        "theano.sandbox.cuda.use('gpu')\n"
    )
    result = call("doctor", script)
    assert result.exit_code == 1
    missing = [line.split(": ")[1] for line in result.output.splitlines() if f"{script}:" in line
               and line.startswith("  ")]  # fmt: skip
    assert "opwise has no theano.tensor.nnet.no_such_function, nor had Theano." in missing
    cudnn = (
        f"  {script}:3: opwise does not have theano.gpuarray.dnn.RNNBlock (a class of Theano 0.9.0 "
        "to 1.0.5): opwise has neither "
    )
    assert cudnn in result.output
    assert not any("no_such_method" in name or "numpy" in name for name in missing)
    assert f"  {script}:6: opwise has no theano.tensor.nnet.no_such_function" in result.output


def test_doctor_counts_names_in_a_narrow_terminal_too(call, monkeypatch):
    wide = call("doctor", "--coverage").output
    monkeypatch.setenv("COLUMNS", "80")
    narrow = call("doctor", "--coverage").output
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines()))
    assert narrow.split() == wide.split()


def test_doctor_counts_the_names_of_theano(call):
    lines = call("doctor", "--coverage").output.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("theano.gof.fg ")]
    names, work, names_since, work_since = map(int, row[1:5])
    assert 0 < work <= names <= names_since and work <= work_since <= names_since
    assert lines[-1] == "missing: 0" and lines[-2].startswith("all modules")
    listed = call("doctor", "--coverage", "theano.gof.fg").output
    assert "theano.gof.fg: " in listed and " FunctionGraph " in listed
    wrong = call("doctor", "--coverage", "theano.gof.fgg")
    assert wrong.exit_code == 1
    assert "Theano has no module theano.gof.fgg. Did you mean theano.gof.fg" in wrong.output


def test_doctor_of_a_program_that_lacks_nothing(call, script):
    result = call("doctor", script)
    assert result.exit_code == 0 and "0 missing" in result.output


@pytest.mark.parametrize("text", [b"print 'hello", b"a = 1\0", b"\xff\xfe(", b"(" * 100_000])
def test_doctor_of_files_that_are_not_python(call, tmp_path, text):
    (tmp_path / "old.py").write_bytes(text)
    result = call("doctor", tmp_path / "old.py")
    assert result.exit_code == 1 and "is not Python" in result.output


def test_doctor_knows_programs_of_today(call, tmp_path):
    lines = [
        "import opwise, opwise.tensor as T", 'x = T.dmatrix("x")', "y = opwise.softmax(x)",
        "z = opwise.nn.softmax(x) + opwise.no_such_name", "f = opwise.jit(opwise.grad)",
    ]  # fmt: skip
    (tmp_path / "new.py").write_text("\n".join(lines))
    result = call("doctor", tmp_path / "new.py")
    assert result.exit_code == 1
    said = result.output.partition("new.py: ")[2]
    assert said.startswith("8 names of opwise, 2 missing\n")
    assert "new.py:3: opwise has no opwise.softmax. softmax is opwise.nn.softmax.\n" in said
    assert "new.py:4: opwise has no opwise.no_such_name.\n" in said


def test_doctor_of_a_folder_and_several_files(call, tmp_path):
    inside = tmp_path / "project"
    for name, text in {
        "good.py": "import theano.tensor as T\nT.exp",
        "part/bad.py": "import theano\ntheano.no_such_name",
        "part/old.py": "print 'hello'",
        "part/notes.txt": "no program",
        "part/plain.py": "import numpy",
        "venv/lib/other.py": "import theano\ntheano.not_mine",
        ".git/hook.py": "import theano\ntheano.not_mine",
    }.items():
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).write_text(text)
    (inside / "venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "own.py").write_text(r"import theano; x = '\d'")
    result = call("doctor", inside, tmp_path / "own.py", inside / "good.py")
    assert result.exit_code == 1
    assert len(re.findall("names? of theano, ", result.output)) == 4
    assert "1 of 5 files uses no name of theano or opwise" in result.output
    assert f"{inside}/part/bad.py:2: opwise has no theano.no_such_name" in result.output
    assert f"{inside}/part/old.py is Python 2: 0 names of theano" in result.output
    assert "not_mine" not in result.output
    assert call("doctor", tmp_path / "own.py", inside / "good.py").exit_code == 0
    empty = call("doctor", inside / ".git" / "..", "no-such-folder")
    assert empty.exit_code == 2
    (tmp_path / "empty").mkdir()
    assert "contains no file that ends in .py" in call("doctor", tmp_path / "empty").output


# --- cache ----------------------------------------------------------------------------------------


@pytest.fixture
def kernels(use_cache, tmp_path, monkeypatch):
    """A cache folder with three kernels of half a megabyte each."""
    folder = use_cache(tmp_path / "kernels", base_compiledir=str(tmp_path))
    for module in ("cache", "doctor"):
        module = importlib.import_module(f"opwise.command.{module}")
        monkeypatch.setattr(module, "config", kernelcache.config)
    for k in range(3):
        kernelcache.keep(f"{k:032x}.so", f"{k:064x}", b"x" * (500_000 - 64))
    return folder


def test_cache(call, kernels):
    (kernels / "notes.txt").write_text("mine")
    (kernels / f"{7:032x}.c").write_text("did not compile")
    (kernels / f"{8:032x}.graph").write_bytes(b"x" * 100)
    assert call("cache").output == f"{kernels}: 3 kernels, 1 graph, 1.5 of at most 536.9 MB\n"
    assert call("cache", "clear").output == "3 kernels and 1 graph deleted\n"
    assert sorted(os.listdir(kernels)) == ["last-sweep", "notes.txt"]


def test_the_files_of_a_cache(call, kernels):
    kernelcache.keep(f"{8:032x}.graph", f"{8:064x}", b"graph")
    os.utime(kernels / f"{1:032x}.so", (0, 86400 * 400))
    lines = call("cache", "list").output.splitlines()
    assert lines[0].split() == ["last", "used", "kind", "kB", "file"]
    assert lines[-1].split() == ["1971-02-05", "kernel", "500.0", f"{1:032x}.so"]
    assert sum("graph" in line for line in lines) == 1
    assert len(lines) == 5
    assert len(call("cache", "list", "-n", "2").output.splitlines()) == 3
    assert call("cache", "info").output == call("cache").output


def test_verifying_a_cache(call, kernels):
    assert call("cache", "verify").output == "3 files checked, none is damaged\n"
    damaged = kernels / f"{1:032x}.so"
    content = bytearray(damaged.read_bytes())
    content[1000] ^= 1
    damaged.write_bytes(content)
    (kernels / f"{2:032x}.so").write_bytes(b"")
    result = call("cache", "verify")
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: 2 of 3 files in {kernels} are damaged, or of an ")
    assert result.output.endswith(f" again: {1:032x}.so, {2:032x}.so\n")
    assert len(list(kernels.glob("*.so"))) == 3


def test_a_cache_that_does_not_exist_is_not_made(call, kernels):
    shutil.rmtree(kernels)
    assert call("cache", "verify").output == "0 files checked, none is damaged\n"
    assert call("cache", "list").exit_code == 0
    assert call("cache").output == f"{kernels}: 0 kernels, 0 graphs, 0.0 of at most 536.9 MB\n"
    assert call("cache", "clear").output == "0 kernels and 0 graphs deleted\n"
    assert call("doctor").exit_code == 0 and not kernels.exists()


@pytest.fixture
def caches(kernels, tmp_path, monkeypatch):
    """Two more cache folders beside that of ``kernels``, as other versions of Python make."""
    monkeypatch.setattr(requests, "config", kernelcache.config)
    for version in ("3.8", "3.14"):
        folder = tmp_path / f"compiledir_Linux-{version}"
        folder.mkdir(mode=0o700)
        (folder / f"{5:032x}.so").write_bytes(b"x" * 1_000_000)
        (folder / f"{6:032x}.graph").write_bytes(b"x" * 100)
        (folder / "machine-intel-4.json").write_text("{}")
        (folder / "last-sweep").write_text("")
    return kernels


def test_the_folders_of_other_versions(call, caches, tmp_path):
    lines = call("cache").output.splitlines()
    assert lines[0] == f"{caches}: 3 kernels, 0 graphs, 1.5 of at most 536.9 MB"
    assert lines[1].startswith(f"2 other folders in {tmp_path}: 4 files, 2.0 MB, ")
    assert call("cache", "clear").output == "3 kernels and 0 graphs deleted\n"
    assert len(list(tmp_path.glob("compiledir_*/*.so"))) == 2


def test_clearing_all_caches(call, caches, tmp_path, monkeypatch):
    module = importlib.import_module("opwise.command.cache")
    monkeypatch.setattr(module, "default_base_compiledir", lambda: str(tmp_path))
    running = tmp_path / "running"
    running.mkdir(mode=0o700)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for suffix in ("json", "pipe"):
        (running / f"{gone.pid}.{suffix}").write_text("{}")
    result = call("cache", "clear", "--all")
    assert result.output == f"5 kernels and 2 graphs deleted\n{tmp_path} is removed\n"
    assert not tmp_path.exists()
    tmp_path.mkdir()


def test_clearing_all_caches_keeps_what_is_not_its_own(call, caches, tmp_path):
    other = tmp_path / "compiledir_Linux-3.14"
    (other / "notes.txt").write_text("mine")
    (other / "tmpa1b2c3").mkdir()
    (tmp_path / "thesis.tex").write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{1:032x}.so").write_text("of another folder")
    (tmp_path / "compiledir_link").symlink_to(elsewhere)
    unsafe = tmp_path / "compiledir_Linux-3.8"
    unsafe.chmod(0o777)
    result = call("cache", "clear", "--all")
    assert result.exit_code == 1
    assert "some files cannot be deleted" in result.output and str(unsafe) in result.output
    assert sorted(os.listdir(other)) == ["notes.txt", "tmpa1b2c3"]
    assert len(os.listdir(unsafe)) == 4 and len(os.listdir(elsewhere)) == 1
    assert (tmp_path / "thesis.tex").exists()
    unsafe.chmod(0o700)
    result = call("cache", "clear", "--all")
    assert result.exit_code == 0 and "kept in" in result.output
    assert "thesis.tex" in result.output and "compiledir_Linux-3.14" in result.output
    assert sorted(os.listdir(tmp_path)) == [
        "compiledir_Linux-3.14", "compiledir_link", "elsewhere", "thesis.tex",
    ]  # fmt: skip


def test_clearing_all_caches_keeps_a_folder_that_the_user_chose(call, kernels, tmp_path):
    assert call("cache", "clear", "--all").exit_code == 0
    assert os.listdir(tmp_path) == []
    assert call("cache", "clear", "--all").output == "0 kernels and 0 graphs deleted\n"


def test_a_cache_that_others_can_write_to_is_not_touched(call, kernels):
    kernels.chmod(0o777)
    for words in (["cache"], ["cache", "list"], ["cache", "verify"], ["cache", "clear"]):
        result = call(*words)
        assert result.exit_code == 1
        assert result.output == (
            f"Error: {kernels} is not used as the cache: {kernels} can be written to by everybody "
            f"(mode 0777). To use it again, run: chmod go-w {kernels}\n"
        )
    assert len(list(kernels.glob("*.so"))) == 3
    reason = f"not used: {kernels} can be written to by everybody (mode 0777)"
    assert reason in call("doctor").output


def test_a_read_only_cache_says_so(call, kernels, monkeypatch):
    monkeypatch.setattr(trusted.Folder, "is_writable", lambda self: False)
    monkeypatch.setattr(trusted.Folder, "remove", lambda self, name: False)
    assert call("cache").output.endswith(" MB (read-only)\n")
    assert "3 kernels, 0 graphs, read-only" in call("doctor").output
    result = call("cache", "clear")
    assert result.exit_code == 1
    assert "3 files in" in result.output and "make the folder writable" in result.output


# --- the command itself ---------------------------------------------------------------------------


def test_help(call):
    shown = call("--help").output
    for name in ("run", "report", "diff", "doctor", "cache"):
        assert f"  {name} " in shown
        assert call(name, "--help").exit_code == 0


def test_version(call):
    assert call("--version").output == f"opwise, version {opwise_package.__version__}\n"


# --- completion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completion(call, shell):
    result = call("completion", shell)
    assert result.exit_code == 0 and "_OPWISE_COMPLETE" in result.output


def test_shell_completion():
    asked = {**os.environ, "_OPWISE_COMPLETE": "bash_complete", "COMP_WORDS": "opwise di",
             "COMP_CWORD": "1"}  # fmt: skip
    code = "from opwise.command.main import main; main(prog_name='opwise')"
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True)
    assert done.stdout.split(",")[-1].strip() == "diff"
