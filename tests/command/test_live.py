"""``opwise run --live``: a table below what a program prints, while it runs."""

import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console, Group

from opwise.command import live
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="the system has no terminals")

spec = importlib.util.spec_from_file_location("terminal", Path(__file__).with_name("terminal.py"))
terminal = importlib.util.module_from_spec(spec)
spec.loader.exec_module(terminal)

PROGRAM = """
import sys, time
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.exp(x).sum(), name="first", mode="FAST_COMPILE")
g = theano.function([x], T.tanh(x), name="second", mode="FAST_COMPILE")
for k in range(3):
    f(np.ones(1000))
    g(np.ones(10))
    print("line", k, sys.stdout.isatty(), sys.stderr.isatty(), flush=True)
print("begun", end="", flush=True)
"""
ENDS = f"{PROGRAM}\nprint(' and ended')\n"
WAITS = f"{PROGRAM}\ntime.sleep(100)\n"


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPWISE_PROFILE_OWNER", raising=False)

    def write(text):
        (tmp_path / "program.py").write_text(text)
        return "program.py"

    return write


def plain(shown):
    """Return what a terminal was sent without its escapes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "")


def test_a_table_is_shown_while_a_program_runs(script):
    shown = terminal.Terminal("-m", "opwise", "run", "--no-limits", "--live", script(WAITS))
    shown.until("µs a run")
    shown.until("begun")
    shown.press(terminal.CTRL_C)
    assert shown.end() == 130
    text = plain(shown.shown)
    assert "2 functions, 6 calls (" in text
    for k in range(3):
        assert f"line {k} True True\n" in text
    assert re.search(r"\n +\d+\.\d +\d+\.\d% +\d+% +3 +\d+\.\d{3} +C +first +program.py:8 ", text)
    assert "interrupted; the profile up to then was written" in text
    assert [f.calls for f in Profile.load("program.profile.json").functions] == [3, 3]


def test_all_that_a_program_prints_is_kept(script):
    many = "for k in range(20_000): print('row', k)\n"
    shown = terminal.Terminal("-m", "opwise", "run", "--no-limits", "--live", script(ENDS + many))
    assert shown.end() == 0
    text = plain(shown.shown)
    assert "begun and ended\n" in text
    # a line that has not ended is drawn below, and again when it has
    rows = dict.fromkeys(re.findall(r"row (\d+)\n", text))
    assert list(rows) == [str(k) for k in range(20_000)]
    assert "to read it: opwise report" in text.split("row 19999")[1]


def test_a_line_that_is_written_over_is_kept_once(script):
    bar = "for k in range(2000): print(f'\\rdone {k}', end='', flush=True); time.sleep(0.0005)\n"
    shown = terminal.Terminal(
        "-m", "opwise", "run", "--no-limits", "--live", script(f"{ENDS}{bar}print('!')\n")
    )
    assert shown.end() == 0
    text = plain(shown.shown)
    assert "done 1999!\n" in text
    assert text.count("done ") < 200


@pytest.mark.parametrize(
    ("line", "kept"),
    [(b"", b""), (b"a\r", b"a\r"), (b"1%\r22%\r333%\r", b"333%\r"), (b"\rdone", b"done"),
     (b"hello\rab", b"hello\rab"), ("█\rab".encode(), b"ab"), (b"12\r\x1b[Kab", b"12\r\x1b[Kab"),
     ("abcd\r██".encode(), "abcd\r██".encode())],
)  # fmt: skip
def test_what_later_parts_of_a_line_leave_is_kept(line, kept):
    from opwise.command import live

    assert live._kept(line) == kept


def test_the_exit_status_is_the_program_s(script):
    text = "import sys\nprint('bad', file=sys.stderr)\nsys.exit(7)\n"
    shown = terminal.Terminal("-m", "opwise", "run", "--no-limits", "--live", script(text))
    assert shown.end() == 7
    assert "bad" in shown.shown and "no function is compiled yet" in shown.shown


@pytest.mark.parametrize("name", ["pipe", "dumb"])
def test_without_a_terminal_it_is_as_run(script, name):
    words = ["-m", "opwise", "run", "--no-limits", "--live", script(ENDS)]
    if name == "pipe":
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        assert done.returncode == 0 and "line 0 False False" in done.stdout
        text = done.stdout + done.stderr
    else:
        shown = terminal.Terminal(*words, env={"TERM": "dumb"})
        assert shown.end() == 0
        text = shown.shown
    assert "begun and ended" in text and "2 functions, 6 calls" in text
    assert "per second now" not in text and "\x1b[" not in text


def test_stdout_in_a_file_stays_there(script):
    code = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'opwise', 'run', '--no-limits', '--live', "
        "'program.py'], stdout=open('out', 'w'))\n"
    )
    script(ENDS)
    shown = terminal.Terminal("-c", code)
    assert shown.end() == 0
    assert "per second now" in shown.shown and "line 0" not in shown.shown
    assert "line 0 False True\n" in Path("out").read_text()


def test_the_folder_of_the_counters_is_removed(script, tmp_path):
    code = "import os\nopen('folder', 'w').write(os.environ['OPWISE_LIVE_FOLDER'])\n"
    shown = terminal.Terminal("-m", "opwise", "run", "--no-limits", "--live", script(code + ENDS))
    assert shown.end() == 0
    assert not os.path.exists((tmp_path / "folder").read_text())


def test_a_line_that_does_not_fit_is_cut_visibly():
    console = Console(width=20, file=io.StringIO(), color_system=None)
    console.print(Group(live._line("a headline that is too long", "bold")))
    assert console.file.getvalue() == "a headline that is …\n"
