"""A signal writes the profile of a program, which goes on."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling import requests, stats
from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null

x = T.dvector("x")


@pytest.fixture
def path(flags, monkeypatch, tmp_path):
    """A process that can be asked; the path of its profile."""
    path = tmp_path / "own.json"
    monkeypatch.setattr(stats, "_at_exit", [])
    monkeypatch.setenv("OPWISE_PROFILE_OWNER", str(os.getpid()))
    monkeypatch.setattr(requests, "_places", lambda: [tmp_path / "running"])
    monkeypatch.setattr(requests, "_program", requests._Program())
    monkeypatch.setattr(requests, "listen", requests._program.listen)
    flags({"profiling.signal": "SIGUSR1", "profiling.destination": str(path)})
    before = signal.getsignal(signal.SIGUSR1)
    yield path
    signal.signal(signal.SIGUSR1, before)
    requests._program.forget(os.getpid())


def compiled():
    return opwise.function([x], T.exp(x).sum(), mode="FAST_COMPILE", name="f", profile=True)


def raised():
    """Send the signal; Python handles it before this returns."""
    signal.raise_signal(signal.SIGUSR1)


def asked(output=None):
    """Ask this process as another one would; return its answer."""
    (one,) = (one for one in requests.askable() if one.process == os.getpid())
    one.send("a token", output)
    assert one.answer("another token") is None
    return one.answer("a token")


def test_the_signal_writes_the_profile_again_and_again(path):
    f = compiled()
    for calls in (1, 2):
        f(np.ones(3))
        raised()
        assert Profile.load(path).functions[0].calls == calls


def test_a_request_names_another_file(path, tmp_path):
    compiled()(np.ones(3))
    other = tmp_path / "other.json"
    assert asked(other) == {"path": str(other), "token": "a token"}
    assert Profile.load(other).functions[0].calls == 1
    assert not path.exists()


def test_a_program_without_a_json_destination_writes_beside_itself(path, flags, monkeypatch):
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr("sys.argv", ["/somewhere/model.py"])
    flags({"profiling.destination": "stderr"})
    compiled()(np.ones(3))
    raised()
    assert Profile.load(f"model.{os.getpid()}.profile.json").functions[0].calls == 1


def test_the_handler_of_the_program_gets_signals_that_nobody_asked_with(path):
    received = []
    signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
    compiled()
    raised()
    assert received == [signal.SIGUSR1] and path.exists()
    assert "path" in asked()
    assert received == [signal.SIGUSR1]


def test_a_handler_that_is_set_later_is_called_from_the_next_function_on(path):
    compiled()
    received = []
    signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
    compiled()
    raised()
    assert received == [signal.SIGUSR1] and len(Profile.load(path).functions) == 2


def answered_meanwhile(process):
    """Ask a process whose main thread gets no signal; return its answer."""
    (one,) = (one for one in requests.askable() if one.process == process)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "kill", lambda *_: None)
        one.send("meanwhile", None)
    one.ring()
    until = time.monotonic() + 60
    while not (found := one.answer("meanwhile")) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def test_a_signal_that_is_handled_after_the_thread_has_answered_is_ours(path):
    received = []
    signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
    compiled()(np.ones(3))
    assert answered_meanwhile(os.getpid()) == {"path": str(path), "token": "meanwhile"}
    assert Profile.load(path).functions[0].calls == 1
    path.unlink()
    raised()
    assert received == [] and not path.exists()
    raised()
    assert received == [signal.SIGUSR1] and path.exists()


def test_the_thread_does_not_write_while_the_profile_is_written(path):
    compiled()
    with requests.undisturbed():
        (one,) = requests.askable()
        one.ring()
        assert "is writing its profile" in asked()["error"]
    assert "path" in answered_meanwhile(os.getpid())


def test_a_program_of_one_thread_forks_as_one(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, threading\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "os.register_at_fork(before=lambda: print(threads()))\n"
        "import opwise\n"
        "import opwise.tensor as T\n"
        "x = T.dvector('x')\n"
        "f = opwise.function([x], x * 2, mode='FAST_COMPILE', profile=True)\n"
        "child = os.fork()\n"
        "if child:\n"
        "    os.waitpid(child, 0)\n"
        "print(threads(), threading.active_count(), flush=True)\n"
        "os._exit(0)\n"
    )
    flags = f"base_compiledir={tmp_path},profiling.signal=SIGUSR1"
    flags += f",profile=True,profiling.destination={tmp_path}/p.json"
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True,
        env={**os.environ, "OPWISE_FLAGS": flags, "PYTHONUNBUFFERED": "1",
             "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    # of two threads of ours, which are not the program's, none is there while it forks
    assert (done.stdout, done.stderr) == ("1\n3 1\n3 1\n", "")


def test_a_program_that_closes_all_files_and_opens_others(tmp_path):
    pipe, other = tmp_path / "1.pipe", tmp_path / "other"
    answers = []
    bell = requests._Bell(pipe, lambda: answers.append(1))
    bell.start()
    file = os.open(other, os.O_RDWR | os.O_CREAT)
    os.dup2(file, bell.pipe)
    bell.end()
    bell.close()
    assert other.read_bytes() == b""
    requests.Askable(1, 1, signal.SIGUSR1, "", tmp_path, "").ring()
    # a thread that was not yet in the read ends without an answer
    assert bell.running.acquire(timeout=60) and len(answers) <= 1
    os.close(bell.pipe)
    os.close(file)


def test_a_file_that_cannot_be_written_is_an_answer(path, tmp_path):
    f = compiled()
    answer = asked(tmp_path / "none" / "p.json")
    assert answer["error"].startswith("FileNotFoundError: ") and "path" not in answer
    assert f(np.zeros(3)) == 3


def test_a_profile_that_cannot_be_made_does_not_end_the_program(path, monkeypatch):
    compiled()
    monkeypatch.setattr(requests._program, "read", lambda: 1 / 0)
    assert asked()["error"] == "ZeroDivisionError: division by zero"


def test_a_request_while_the_profile_is_written(path):
    compiled()
    with requests.undisturbed():
        assert "is writing its profile" in asked()["error"]
    assert "path" in asked()


def test_without_the_flag_nothing_is_announced(path, flags):
    flags({"profiling.signal": "none"})
    before = signal.getsignal(signal.SIGUSR1)
    compiled()
    assert signal.getsignal(signal.SIGUSR1) is before
    assert os.getpid() not in [one.process for one in requests.askable()]


def test_a_forked_process_can_be_asked_too(path):
    f = compiled()
    (ready, is_ready), (waits, may_end) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(may_end)
            requests._program.announce_after_fork()
            f(np.ones(3))
            os.write(is_ready, b"x")
            os.read(waits, 1)  # until the parent closes it; the signal is handled whenever it comes
        finally:
            os._exit(0)
    os.close(is_ready)
    try:
        assert os.read(ready, 1) == b"x"
        (one,) = (one for one in requests.askable() if one.process == child)
        assert one.parent == os.getpid()
        one.send("t", None)
        until = time.monotonic() + 60
        while not (found := one.answer("t")) and time.monotonic() < until:
            time.sleep(0.01)
        assert "path" in answered_meanwhile(child) and "path" in answered_meanwhile(os.getpid())
    finally:
        for end in (may_end, ready, waits):
            os.close(end)
        os.waitpid(child, 0)
    assert found["path"] == str(path.with_suffix(f".{child}.json"))
    assert Profile.load(found["path"]).functions[0].calls == 1


def test_what_processes_left_that_are_gone_is_removed(path):
    compiled()
    folder = requests._program.folder
    own = json.loads((folder / f"{os.getpid()}.json").read_text())
    gone = folder / "1.json"
    gone.write_text(json.dumps({**own, "process": 1, "started": "other"}))
    (folder / "1.answer").write_text("{}")
    (folder / "2.json").write_text("no JSON")
    assert [one.process for one in requests.askable()] == [os.getpid()]
    own = [f"{os.getpid()}.json", f"{os.getpid()}.pipe"]
    assert sorted(p.name for p in folder.iterdir()) == own


def test_a_folder_that_others_can_use_is_not_used(path, tmp_path, monkeypatch):
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    monkeypatch.setattr(requests, "_places", lambda: [shared, own])
    compiled()
    assert requests._program.folder == own
    assert own.stat().st_mode & 0o777 == 0o700


def test_a_process_that_no_longer_handles_the_signal_is_known(path):
    compiled()
    (one,) = requests.askable()
    assert one.handles_signal
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    assert one.handles_signal is not os.path.exists("/proc/self/status")
