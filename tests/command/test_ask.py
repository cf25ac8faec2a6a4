"""``opwise ask``: a program that runs writes its profile, and goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opwise.profiling.profile import Profile

FUNCTION = """
import sys, time
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], T.exp(x) * 2, name="f")
for _ in range(3):
    f(np.ones(1000))
"""
READY = "open('ready', 'w').close()\n"
SLEEPS = f"{FUNCTION}{READY}time.sleep(100)\n"
#: one call that takes minutes, in one kernel
LONG = f"""
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
h, _ = theano.scan(lambda s: T.tanh(s + 1), None, T.zeros((3,)), n_steps=2_000_000_000)
f = theano.function([x], [h[-1], x * 2], name="long")
{READY}f(np.ones(3))
"""
#: calls a function of C that never returns, since it locks a mutex twice, if a number is negative
BLOCKS = f"""
import ctypes, sys
import numpy as np
import theano
import theano.tensor as T

lock = ctypes.CDLL(None).pthread_mutex_lock
mutex = ctypes.create_string_buffer(1000)
ctypes.CDLL(None).pthread_mutex_init(mutex, None)

class Blocks(theano.Op):
    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()
        if inputs[0][0] < 0:
            lock(mutex)
            {READY.strip()}
            lock(mutex)

x = T.dvector("x")
f = theano.function([x], Blocks()(T.sinh(x)) * 2, name="f")
for _ in range(int(sys.argv[1])):
    f(np.ones(3))
f(-np.ones(3))
"""


@pytest.fixture
def started(tmp_path, monkeypatch):
    """``started(text, *options)``: a program under ``opwise run`` when it is ready; its process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPWISE_PROFILE_OWNER", raising=False)
    running = []

    def start(text, *options, words=()):
        (tmp_path / "program.py").write_text(text)
        command = [sys.executable, "-m", "opwise", "run", "--no-limits", *options, "program.py"]
        process = subprocess.Popen(
            [*command, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        running.append(process)
        end = time.monotonic() + 120
        while not (tmp_path / "ready").exists():
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_program_that_sleeps_writes_its_file_and_goes_on(started, call_apart, tmp_path):
    process = started(SLEEPS)
    done = call_apart("ask", process.pid)  # the number of opwise run
    assert done.exit_code == 0, done.output
    assert "1 function, 3 calls" in done.stderr
    assert "to read it: opwise report" in done.stderr and "program.profile.json" in done.stderr
    assert Profile.load("program.profile.json").functions[0].calls == 3
    done = call_apart("ask", "-o", "other.json", process.pid)
    assert done.exit_code == 0 and Profile.load("other.json").functions[0].calls == 3
    assert process.poll() is None
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    _, said = process.communicate(timeout=100)
    assert "ended by SIGKILL; the profile up to the last `opwise ask` was written" in said


def test_a_program_in_a_call_of_minutes(started, call_apart):
    process = started(LONG)
    done = call_apart("ask", "-o", "now.json", process.pid)
    assert done.exit_code == 0, done.output
    (f,) = Profile.load("now.json").functions
    assert f.name == "long" and f.calls == 0
    assert process.poll() is None


def test_a_program_with_a_handler_of_its_own_and_another_signal(started, call_apart, tmp_path):
    text = SLEEPS.replace(
        "import sys, time\n",
        "import signal, sys, time\n"
        "signal.signal(signal.SIGUSR2, lambda *_: open('handled', 'w').close())\n",
    )
    process = started(text, "--flags", "profiling.signal=SIGUSR2")
    assert call_apart("ask", process.pid).exit_code == 0
    assert not (tmp_path / "handled").exists()


@pytest.mark.parametrize("calls", [0, 3])
def test_a_program_in_a_long_call_of_c_in_its_first_call_and_later(started, call_apart, calls):
    process = started(BLOCKS, words=[str(calls)])
    for path in ("now.json", "again.json"):
        done = call_apart("ask", "-o", path, process.pid)
        assert done.exit_code == 0, done.output
        (f,) = Profile.load(path).functions
        assert f.calls == calls
        assert [a.count for a in f.applys] == [calls + 1, calls, calls]
    assert process.poll() is None


def test_a_program_in_a_call_that_holds_the_lock_of_python(started, call_apart):
    process = started(BLOCKS.replace("CDLL", "PyDLL"), words=["0"])
    done = call_apart("ask", "--timeout", 0.7, process.pid)
    assert done.exit_code == 1
    assert "has not answered for 0.7 s" in done.stderr and "(GIL)" in done.stderr


def test_a_program_that_replaced_the_handler(started, call_apart):
    text = f"{FUNCTION}import signal\nsignal.signal(signal.SIGUSR1, lambda *_: None)\n"
    process = started(f"{text}{READY}time.sleep(100)\n")
    done = call_apart("ask", "-o", "now.json", process.pid)
    assert done.exit_code == 0, done.output
    assert Profile.load("now.json").functions[0].calls == 3


@pytest.mark.null
def test_processes_that_cannot_be_asked(call_apart):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    done = call_apart("ask", gone.pid)
    assert done.exit_code == 1 and f"there is no process {gone.pid}" in done.stderr
    done = call_apart("ask", os.getppid())
    assert done.exit_code == 1 and "it is not profiled" in done.stderr
    assert "opwise run" in done.stderr
    done = call_apart("ask", "-o", "x.txt", os.getppid())
    assert done.exit_code == 2 and "does not end in .json" in done.stderr


@pytest.mark.null
def test_a_process_of_another_user(call_apart, monkeypatch):
    def refuse(process, number):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "kill", refuse)
    done = call_apart("ask", 1)
    assert done.exit_code == 1 and "process 1 belongs to another user" in done.stderr


def test_without_a_number_the_only_program_is_asked(started, call_apart, monkeypatch, tmp_path):
    from opwise.profiling import requests

    monkeypatch.setattr(requests, "_places", lambda: [tmp_path / "none"])
    done = call_apart("ask")
    assert done.exit_code == 1 and "no program that runs can be asked" in done.stderr
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cache"
    flags = f"base_compiledir={folder}"
    monkeypatch.setattr(requests, "_places", lambda: [folder / "running"])
    started(SLEEPS, "--flags", flags)
    done = call_apart("ask", "-o", "now.json")
    assert done.exit_code == 0, done.output
    (tmp_path / "ready").unlink()
    started(SLEEPS, "--flags", flags)
    done = call_apart("ask")
    assert done.exit_code == 2
    assert "several programs can be asked" in done.stderr
    assert done.stderr.count("  program.py") == 2
