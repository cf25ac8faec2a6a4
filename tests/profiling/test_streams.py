"""What is printed reaches the user: broken streams, names that cannot be encoded, hostile Ops."""

import io
import json
import os
import subprocess
import sys

import pytest

import opwise.tensor as T
from opwise import Apply, Op, ProfileMode, function
from opwise.graph.escaping import printable
from opwise.profiling import stats
from opwise.profiling.profile import Profile
from opwise.profiling.streams import show, write

pytestmark = pytest.mark.null


class Broken(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


FULL = Broken(OSError(28, "No space left on device"))
GONE = Broken(BrokenPipeError(32, "Broken pipe"))


def ascii_stream():
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)


# --- streams --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "other"), [("stdout", "stderr"), ("stderr", "stdout")])
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (FULL, "[Errno 28] No space left on device"),
        (None, "it is closed"),
        (object(), "'object' object has no attribute 'write'"),
    ],
)
def test_the_other_stream_takes_what_one_does_not(monkeypatch, name, other, broken, why):
    took = io.StringIO()
    monkeypatch.setattr(sys, name, broken)
    monkeypatch.setattr(sys, other, took)
    show("text\n", name)
    assert took.getvalue() == f"cannot write to {name} ({why}); the lost output was:\ntext\n"


@pytest.mark.parametrize(("name", "other"), [("stdout", "stderr"), ("stderr", "stdout")])
def test_a_reader_that_has_gone_has_seen_enough(monkeypatch, name, other):
    took = io.StringIO()
    monkeypatch.setattr(sys, name, GONE)
    monkeypatch.setattr(sys, other, took)
    show("text\n", name)
    assert took.getvalue() == ""


def test_nobody_listens(monkeypatch):
    monkeypatch.setattr(sys, "stdout", FULL)
    monkeypatch.setattr(sys, "stderr", None)
    assert show("text\n", "stdout", at_end=True) is None


def test_a_stream_that_was_closed(monkeypatch, capsys):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    show("text\n")
    assert capsys.readouterr().err.startswith(
        "cannot write to stdout (I/O operation on closed file"
    )


def test_what_cannot_be_encoded_is_escaped(monkeypatch):
    took = ascii_stream()
    monkeypatch.setattr(sys, "stdout", took)
    show("µ\udc80 \U0001f600\n")
    assert took.buffer.getvalue() == b"\\xb5\\udc80 \\U0001f600\n"


def test_a_stream_of_the_caller_may_raise():
    with pytest.raises(BrokenPipeError):
        write("text", GONE)


# --- hostile names --------------------------------------------------------------------------------


class Hostile(Op):
    """Raises, or returns nonsense, wherever it is asked for its text."""

    def __init__(self, text=None):
        self.text = text

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 2

    def __str__(self):
        if self.text is None:
            raise RuntimeError("no text")
        return self.text

    __repr__ = __str__


@pytest.mark.parametrize("text", [None, 3, "\udc80µ", "a\0b"])
@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_an_op_without_a_text(tmp_path, capsys, text, linker):
    x = T.dvector("\udc81x")
    mode = ProfileMode(linker)
    f = function([x], T.exp(Hostile(text)(x)), mode=mode, profile=True, name="\udc82")
    f([1.0])
    mode.print_summary()
    f.profile.summary()
    out, err = capsys.readouterr()
    name = text if isinstance(text, str) else "<Hostile>"
    for shown in (out, err):
        assert printable(name) in shown or name in shown
    mode.profile().save(tmp_path / "p.json")
    loaded = Profile.load(tmp_path / "p.json")
    (was,), (now,) = (p.functions for p in (mode.profile(), loaded))
    assert now.name.isprintable() and now.applys[0].text.isprintable()
    assert [a.total for a in now.applys] == [a.total for a in was.applys]
    f.profile.export_chrome_trace(tmp_path / "t.json")
    f.profile.export_speedscope(tmp_path / "s.json")
    assert all(json.loads((tmp_path / n).read_text(encoding="utf-8")) for n in ("t.json", "s.json"))


def test_a_fault_in_one_text_does_not_cost_the_others(monkeypatch, build):
    apply, a_function, _ = build
    whole = stats.text.summary

    def summary(profile, *args):
        if profile.message == "bad":
            raise KeyError("a fault")
        return whole(profile, *args)

    monkeypatch.setattr(stats.text, "summary", summary)
    kept = []
    for message in ("good", "bad"):
        one = stats.ProfileStats(atexit_print=False, message=message)
        made = Profile((a_function(apply("exp", 5)),), message)
        monkeypatch.setattr(one, "profile", lambda made=made: made)
        kept.append(one)
    monkeypatch.setattr(stats, "_at_exit", kept)
    shown = stats.exit_text()
    assert "  Message: good\n" in shown
    assert "The profile of bad cannot be shown: KeyError('a fault')\n" in shown


# --- whole programs -------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np, opwise, opwise.tensor as T
x = T.dvector("x")
f = opwise.function([x], T.exp(x), name="\\xb5{odd}"{mode})
f([1.0])
unused = opwise.function([x], T.log(x), name="unused")
for _ in range({lines}):
    print("a line of the program")
"""


@pytest.fixture
def run(tmp_path):
    """Run the program in a shell: (command with {python}, flags, ...) -> finished process."""

    def shell(command, flags="profile=True", mode="", lines=0, odd="", **variables):
        script = tmp_path / "program.py"
        script.write_text(PROGRAM.format(mode=mode, lines=lines, odd=odd))
        environment = {**os.environ, "OPWISE_FLAGS": flags, "PYTHONIOENCODING": "utf-8"}
        environment.pop("OPWISE_PROFILE_OWNER", None)
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.format(python=f"{sys.executable} {script}")],
            env={**environment, **variables}, capture_output=True, cwd=tmp_path, timeout=120,
        )  # fmt: skip

    return shell


MODE = ", mode='PROFILE_MODE'"


def test_a_profile_mode_whose_stdout_is_closed(run):
    done = run("{python} >&-", "", MODE)
    assert done.returncode == 0
    text = done.stderr.decode()
    assert text.startswith("cannot write to stdout (it is closed); the lost output was:\n")
    assert "ProfileMode.print_summary()" in text


def test_stats_whose_stderr_is_closed(run):
    done = run("{python} 2>&-", "profile=True,profiling.destination=stderr")
    assert done.returncode == 0
    assert (
        b"cannot write to stderr (it is closed); the lost output was:\nFunction prof" in done.stdout
    )
    assert "  Message: µ\n".encode() in done.stdout


@pytest.mark.parametrize("flags", ["profile=True", ""])
def test_everything_is_closed(run, flags):
    done = run("{python} >&- 2>&-", flags, "" if flags else MODE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_pipe_that_is_closed(run):
    """The reader is gone before the program ends; its exit code is not touched."""
    done = run("{python} | true", "", MODE)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_profile_of_a_flag_and_a_pipe_that_is_closed(run):
    done = run("{python} | true", "profile=True")
    assert (done.returncode, done.stderr) == (0, b"")


def test_stderr_is_closed_by_its_reader(run):
    """As in ``program 2> >(head -1)``: the profile does not go to stdout instead."""
    done = run("{python} 2> >(true)", "profile=True,profiling.destination=stderr")
    assert (done.returncode, done.stdout) == (0, b"Skipping empty Profile\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_stdout_that_is_full(run):
    done = run("{python} > /dev/full", "", MODE)
    assert done.stderr.startswith(b"cannot write to stdout ([Errno 28] No space left on device)")
    assert b"ProfileMode.print_summary()" in done.stderr and done.returncode == 0


@pytest.mark.parametrize(
    ("flags", "mode"), [("profile=True", ""), ("profile=True,profiling.destination=stderr", ""),
                        ("", MODE)]
)  # fmt: skip
def test_an_encoding_that_has_no_such_letter(run, flags, mode):
    done = run("{python}", flags, mode, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"\\xb5" in done.stdout + done.stderr
    assert b"cannot write to" not in done.stderr


@pytest.mark.parametrize("destination", ["p.txt", "p.json"])
def test_a_file_is_written_before_anything_is_printed(run, tmp_path, destination):
    flags = f"profile=True,profiling.destination={destination}"
    done = run("{python} | true", flags, odd="\\udc80")
    assert done.returncode == 0
    kept = (tmp_path / destination).read_text(encoding="utf-8")
    assert "\\udc80" in kept
    if destination.endswith("json"):
        assert done.stderr == b""
        assert len(Profile.from_json(kept).functions) == 2
    else:
        assert "Function profiling" in kept and done.stderr == b""


@pytest.mark.parametrize("destination", ["no/such/p.txt", "no/such/p.json", "."])
def test_a_destination_that_cannot_be_written(run, destination):
    done = run("{python}", f"profile=True,profiling.destination={destination}", odd="\\udc80")
    assert done.returncode == 0
    assert done.stderr.startswith(f"The profile cannot be written to {destination}: ".encode())
    assert "  Message: µ\\udc80\n".encode() in done.stderr


def test_a_device_stays_a_device(run):
    done = run("{python}", "profile=True,profiling.destination=/dev/stdout")
    assert done.returncode == 0 and b"Function profiling" in done.stdout


def test_figures_of_the_process_on_a_closed_stream(run):
    done = run("{python} 2>&-", "print_global_stats=True,profiling.destination=stderr")
    assert done.returncode == 0 and b"Global stats:" in done.stdout


def test_run_under_the_command(run, tmp_path):
    """opwise run script | head -1: the profile is there, whatever became of the output."""
    script = tmp_path / "program.py"
    done = run(f"{sys.executable} -m opwise run {script} | head -1", "", lines=100_000)
    assert done.stdout == b"a line of the program\n"
    profile = Profile.load(tmp_path / "program.profile.json")
    assert [f.calls for f in profile.functions] == [1, 0]
    assert b"2 functions, 1 call" in done.stderr


def test_report_where_nothing_can_be_shown(run, tmp_path, build):
    apply, a_function, _ = build
    Profile((a_function(apply("µ\udc80", 5)),)).save(tmp_path / "p.json")
    opwise = f"{sys.executable} -m opwise report {tmp_path / 'p.json'}"
    done = run(opwise, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and b"\xb5\\udc80(x)" in done.stdout
    assert run(f"{opwise} >&-").returncode == 0
    assert b"Traceback" not in run(f"{opwise} | true").stderr
