"""Processes of a profiled program end as without a profile, and write what they did before."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from opwise.profiling.profile import Profile

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")

#: what each program begins with: it calls f once
BEGIN = """
import atexit, multiprocessing, os, signal, subprocess, sys, threading, time
BEFORE
import numpy as np, opwise, opwise.tensor as T
x = T.dvector("x")
f = opwise.function([x], T.exp(x), mode="FAST_COMPILE", name="f")

def job(n):
    f([1.0])
    return n

if __name__ == "__main__":
    f([1.0])
"""


def _heed_hangups():
    """Let a program be ended by SIGHUP, also where nohup runs the tests."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Program:
    """A program that runs under a profile."""

    def __init__(self, folder, text, before="", profile=True):
        path = folder / "program.py"
        path.write_text(BEGIN.replace("BEFORE", before) + textwrap.indent(text, "    "))
        flags = f"base_compiledir={folder / 'cache'},profiling.signal=SIGUSR1"
        if profile:
            flags += f",profile=True,profiling.destination={folder / 'p.json'}"
        environment = {**os.environ, "OPWISE_FLAGS": flags, "PYTHONUNBUFFERED": "1"}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # its threads would receive signals too
        environment.pop("OPWISE_PROFILE_OWNER", None)
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, cwd=folder, start_new_session=True, preexec_fn=_heed_hangups,
        )  # fmt: skip

    def until(self, word):
        """Wait until the program prints a line."""
        line = self.process.stdout.readline()
        assert line == f"{word}\n", (line, self.process.stderr.read())

    def end(self, number=None):
        """Return (exit status, output) at the end, which must come within two minutes."""
        if number is not None:
            self.process.send_signal(number)
        try:
            out, err = self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            pytest.fail(f"the program hangs; up to then: {self.process.communicate()}")
        return self.process.returncode, out, err

    def calls(self):
        """Return the number of calls that each process wrote, sorted."""
        files = [Profile.load(path) for path in self.folder.glob("p*.json")]
        return sorted(sum(g.calls for g in profile.functions) for profile in files)


@pytest.fixture
def start(tmp_path):
    """``start(text, before="")``: the program; it is killed with its children at the end."""
    programs = []

    def begin(text, before="", profile=True):
        programs.append(Program(tmp_path, text, before, profile))
        return programs[-1]

    yield begin
    for program in programs:
        if program.process.poll() is None:
            os.killpg(program.process.pid, signal.SIGKILL)
            program.process.communicate()


# --- workers --------------------------------------------------------------------------------------

POOL = """
context = multiprocessing.get_context({how!r})
for _ in range({rounds}):
    with context.Pool({workers}) as pool:
        assert pool.map(job, range(3)) == [0, 1, 2]
"""


def test_a_pool_whose_workers_wait_is_ended(start):
    program = start(POOL.format(how="fork", rounds=30, workers=8))
    assert program.end() == (0, "", "")
    own, *children = reversed(program.calls())
    assert 1 in (own, *children) and sum(program.calls()) <= 1 + 90


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_a_pool_that_starts_anew(start, how):
    program = start(POOL.format(how=how, rounds=2, workers=3))
    assert program.end() == (0, "", "")
    assert len(program.calls()) >= 3


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_executors_of_processes(start, how):
    program = start(
        "from concurrent.futures import ProcessPoolExecutor\n"
        f"context = multiprocessing.get_context({how!r})\n"
        "for _ in range(2):\n"
        "    with ProcessPoolExecutor(2, context) as pool:\n"
        "        assert list(pool.map(job, range(3))) == [0, 1, 2]\n"
    )
    assert program.end() == (0, "", "")
    # those that waited for work all the time called nothing; spawned ones have compiled
    assert sum(program.calls()) == 1 + 6


def test_joblib(start):
    program = start(
        "from joblib import Parallel, delayed\n"
        "assert Parallel(2)(delayed(job)(k) for k in range(4)) == [0, 1, 2, 3]\n"
    )
    status, _, err = program.end()
    assert status == 0, err


WAITS = "lock = multiprocessing.Lock()\nlock.acquire()\nprint('ready')\nlock.acquire()"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_in_a_wait_that_never_ends(start, name):
    program = start(WAITS)
    program.until("ready")
    number = signal.Signals[name]
    assert program.end(number) == (-number, "", "")
    assert program.calls() == [1]


def test_the_default_of_ctrl_c(start):
    program = start(WAITS, "signal.signal(signal.SIGINT, signal.SIG_DFL)")
    program.until("ready")
    assert program.end(signal.SIGINT) == (-signal.SIGINT, "", "")
    assert program.calls() == [1]


def test_a_supervisor_of_forked_workers(start):
    program = start(
        "children = []\n"
        "for _ in range(3):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        f([1.0])\n"
        "        os.write(1, b'ready\\n')\n"
        "        while True:\n"
        "            time.sleep(1000)\n"
        "    children.append(child)\n"
        "sys.stdin.close(), time.sleep(1)\n"
        "for child in children:\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])\n"
    )
    for _ in range(3):
        program.until("ready")
    assert program.end() == (0, "[-15, -15, -15]\n", "")
    assert program.calls() == [1, 1, 1, 1]


DAEMON = """
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 200)
for _ in range(9):
    os.open("other", os.O_RDWR | os.O_CREAT)
f([1.0])
with open("number.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("number.new", "number")
time.sleep(100)
"""


def test_a_daemon_that_has_closed_all_files(start, tmp_path):
    program = start(DAEMON)
    assert program.end()[0] == 0
    until = time.monotonic() + 60
    while not (tmp_path / "number").exists() and time.monotonic() < until:
        time.sleep(0.05)
    number = int((tmp_path / "number").read_text())
    os.kill(number, signal.SIGTERM)
    while os.path.exists(f"/proc/{number}") and time.monotonic() < until:
        if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    assert program.calls() == [1], "the processes that ended by os._exit write nothing"
    assert (tmp_path / "other").read_bytes() == b""


# --- as without a profile -------------------------------------------------------------------------

HANDLER = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_handler_of_the_program(start, when):
    program = start(
        f"{HANDLER if when == 'after' else ''}\nprint('ready')\ntime.sleep(100)",
        HANDLER if when == "before" else "",
    )
    program.until("ready")
    assert program.end(signal.SIGTERM) == (7, "", "")
    assert program.calls() == [1]


SAME = {
    "ignored": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.kill(os.getpid(), signal.SIGTERM)",
    "asked": "print(signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGTERM, print))",
    "waited for": "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR2})\n"
    "os.kill(os.getpid(), signal.SIGTERM)\nprint(signal.sigwait({signal.SIGTERM}))",
    "of a child": "child = subprocess.Popen(['sleep', '100'])\nchild.terminate()\n"
    "print(child.wait())",
    "in an exit handler": "atexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
    "atexit.register(print, 'last')",
    "exit in a thread": "t = threading.Thread(target=sys.exit, args=(3,))\nt.start()\nt.join()",
    "exit": "sys.exit(3)",
    "exit with a text": "sys.exit('why')",
    "at once": "os._exit(4)",
    "exception": "class E(Exception): pass\nraise E('why')",
    "interrupted": "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "all threads are waited for": "for t in threading.enumerate():\n"
    "    if t is not threading.current_thread():\n        t.join()",
}


@pytest.mark.parametrize("text", SAME.values(), ids=list(SAME))
def test_what_the_program_sees_and_its_parent(start, text):
    plain, profiled = start(text, profile=False).end(), start(text).end()
    assert profiled == plain


def test_a_signal_after_the_profile_was_written(start):
    before = "atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(100))"
    program = start("", before)
    assert program.end() == (-signal.SIGTERM, "", "")
    assert program.calls() == [1]


def test_a_signal_at_any_moment(start, tmp_path):
    generator = random.Random(0)
    for _ in range(12):
        program = start(
            "print('ready')\nwhile True:\n    f([1.0])\n    opwise.function([x], x + 1)([2.0])"
        )
        program.until("ready")
        time.sleep(generator.random() * 0.2)
        status, _, err = program.end(signal.SIGTERM)
        assert (status, err) == (-signal.SIGTERM, "")
        assert json.loads((tmp_path / "p.json").read_text())["functions"]
        (tmp_path / "p.json").unlink()
    assert not list(tmp_path.glob("*.part"))
