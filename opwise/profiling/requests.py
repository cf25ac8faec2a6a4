"""A program that runs writes its profile when a signal asks for it, and goes on.

Such a program says so in a file of a private folder, where ``opwise ask`` finds it, puts a request
beside it, sends the signal, and waits for the answer. A signal without a request works as well.

Python handles signals in the main thread, but not while that is in a call of C. A thread answers
then, which waits for a byte from a pipe beside the file; until one comes it costs nothing.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import json
import os
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from opwise.config import config
from opwise.profiling.files import read_limited, write_whole
from opwise.profiling.process import start_time
from opwise.profiling.profile import Profile

#: bytes of a file of the folder, at most
_MOST = 1 << 16
#: what is written to the pipe of a program: answer the request; end the thread
_ANSWER, _END = b"?", b"."
#: signals of a fault of the thread itself
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}

# --- the folder -----------------------------------------------------------------------------------


def _places() -> list[Path]:
    """Return where the folder may be: in base_compiledir, else among temporary files."""
    temporary = Path(tempfile.gettempdir(), f"opwise-running-{os.getuid()}")
    return [Path(config.base_compiledir, "running"), temporary]


def _is_private(folder: Path) -> bool:
    """Return whether a folder is there that only this user can use."""
    try:
        about = folder.lstat()
    except OSError:
        return False
    mode = stat.S_IMODE(about.st_mode)
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not mode & 0o077


def _folder() -> Path | None:
    """Return the folder, which is made if need be; None if there can be none."""
    for folder in _places():
        with contextlib.suppress(OSError):
            if not folder.exists():
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700)
            if _is_private(folder) and os.access(folder, os.W_OK):
                return folder
    return None


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a file of the folder; {} without such a file."""
    try:
        content = json.loads(read_limited(path, _MOST))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


# --- the thread -----------------------------------------------------------------------------------


class _Bell:
    """A thread that calls a function each time that another process rings.

    Programs wait for all threads that ``threading`` knows, so it does not know this one.
    """

    def __init__(self, path: Path, answer: Callable[[], None]) -> None:
        """Make the named pipe that the thread reads. Raises OSError."""
        path.unlink(missing_ok=True)
        os.mkfifo(path, 0o600)
        self.answer = answer
        # also for writing: where nobody has the other end open, a read waits instead of ending
        self.pipe = os.open(path, os.O_RDWR)
        self.about = os.fstat(self.pipe)
        #: held by the thread as long as it runs; None: there is none
        self.running: _thread.LockType | None = None
        #: the system's number of the thread
        self.number = 0

    def start(self) -> None:
        """Start the thread, unless the system allows no more threads."""
        if self.running is None:
            running = _thread.allocate_lock()
            running.acquire()
            # the program decides which of its threads receive signals
            before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _FAULTS)
            try:
                _thread.start_new_thread(self._run, (running,))
                self.running = running
            except RuntimeError:
                pass
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end(self) -> None:
        """End the thread, which can be started again, unless the program has closed the pipe."""
        if self.running is not None and self._is_open():
            os.write(self.pipe, _END)
            # not for ever: a fork may hold what it waits for
            if self.running.acquire(timeout=1):
                _wait_until_gone(self.number)
            self.running = None

    def close(self) -> None:
        """Close the pipe in a process that was forked, which does not have the thread."""
        if self._is_open():
            os.close(self.pipe)

    def _is_open(self) -> bool:
        """Return whether the pipe is open: a program may close all files, and open others."""
        try:
            return os.path.samestat(os.fstat(self.pipe), self.about)
        except OSError:
            return False

    def _run(self, running: _thread.LockType) -> None:
        self.number = threading.get_native_id()
        try:
            self._wait()
        finally:
            running.release()

    def _wait(self) -> None:
        while self._is_open() and os.read(self.pipe, 1) == _ANSWER:
            self.answer()


def _wait_until_gone(thread: int) -> None:
    """Wait until a thread that has ended no longer counts among those of this process."""
    task = f"/proc/self/task/{thread}"
    for _ in range(1000):
        if not os.path.exists(task):
            return
        time.sleep(0)


# --- the program ----------------------------------------------------------------------------------


class _Program:
    """This process as a program that can be asked."""

    def __init__(self) -> None:
        #: what the signal did before: a handler of the program, or SIG_DFL, SIG_IGN or None
        self.before: Any = None
        #: the number of the signal; None: it cannot be asked
        self.number: signal.Signals | None = None
        self.process = 0
        self.folder: Path | None = None
        #: held by the thread that takes a request or writes a profile
        self.lock = threading.RLock()
        #: whether a profile is being written
        self.busy = False
        #: whether a signal is still to be handled whose request the thread has answered
        self.is_answered = False
        #: answers while the main thread is in a call of C; None where it cannot
        self.bell: _Bell | None = None
        #: returns the profile, and the path of its file if no other is asked for
        self.read: Callable[[], tuple[Profile, Path]]

    def listen(self, read: Callable[[], tuple[Profile, Path]]) -> None:
        """Write the profile upon the signal from now on. read: returns it and the path."""
        name = config.profiling.signal
        if name == "none" or threading.get_ident() != threading.main_thread().ident:
            return
        self.read = read
        number = signal.Signals[name]
        if signal.getsignal(number) != self._receive:
            # a handler that the program has set, perhaps since this was called last
            self.before = signal.signal(number, self._receive)
        self.number = number
        if self.process != os.getpid():
            self.announce()

    def announce(self) -> None:
        """Say in the folder that this process can be asked."""
        assert self.number is not None
        self.process, self.folder = os.getpid(), _folder()
        if self.folder is None:
            return
        about = {
            "process": self.process,
            "parent": os.getppid(),
            "started": start_time(self.process),
            "signal": self.number.name,
            "program": " ".join(sys.argv)[:200],
        }
        with contextlib.suppress(OSError):
            self.bell = _Bell(self.folder / f"{self.process}.pipe", self._answer_meanwhile)
            self.bell.start()
        with contextlib.suppress(OSError):
            write_whole(self.folder / f"{self.process}.json", json.dumps(about))
        atexit.register(self.forget, self.process)

    def forget(self, process: int) -> None:
        """Say no longer that a process can be asked, if it is this one."""
        if self.folder is not None and process == os.getpid():
            if self.bell is not None:
                self.bell.end()
            for suffix in ("json", "request", "pipe"):
                with contextlib.suppress(OSError):
                    (self.folder / f"{process}.{suffix}").unlink()

    def announce_after_fork(self) -> None:
        """Say that this process, which was forked, can be asked as its parent can."""
        if self.number is not None:
            self.lock = threading.RLock()
            self.busy = self.is_answered = False
            if self.bell is not None:
                self.bell.close()
                self.bell = None
            self.announce()

    def _answer_meanwhile(self) -> None:
        """Answer in another thread what the main thread has not answered."""
        assert self.number is not None
        with self.lock:
            request = self._request()
            if request:
                self.is_answered = signal.getsignal(self.number) == self._receive
                self._reply(request)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal: write the profile, or pass on what nobody of opwise has sent."""
        with self.lock:
            request, is_answered = self._request(), self.is_answered
            self.is_answered = False
            if request:
                self._reply(request)
            elif not is_answered:
                self._answer(None)
        if not request and not is_answered and callable(self.before):
            self.before(number, frame)

    def _reply(self, request: Mapping[str, Any]) -> None:
        """Do what a request says, and leave the answer in the folder."""
        answer = {**self._answer(request.get("output")), "token": request.get("token")}
        if self.folder is not None:
            with contextlib.suppress(OSError):
                write_whole(self.folder / f"{os.getpid()}.answer", json.dumps(answer))

    def _request(self) -> dict[str, Any]:
        """Take the request that lies in the folder; {} without one."""
        if self.folder is None:
            return {}
        path = self.folder / f"{os.getpid()}.request"
        request = _read(path)
        with contextlib.suppress(OSError):
            path.unlink()
        return request

    def _answer(self, output: Any) -> dict[str, Any]:
        """Write the profile, and return what to say of it."""
        if self.busy:
            return {"error": "the program is writing its profile at this moment"}
        self.busy = True
        try:
            profile, path = self.read()
            path = Path(output) if isinstance(output, str) else path.absolute()
            profile.save(path)
            return {"path": str(path)}
        except Exception as error:  # the program goes on, whatever is wrong with its profile
            return {"error": f"{type(error).__name__}: {error}"}
        finally:
            self.busy = False


_program = _Program()
listen = _program.listen
announce_after_fork = _program.announce_after_fork


def before_fork() -> None:
    """End the thread, so that a program of one thread forks as one."""
    if _program.bell is not None:
        _program.bell.end()


def after_fork_in_parent() -> None:
    """Start the thread again."""
    if _program.bell is not None:
        _program.bell.start()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Answer no request in a block that writes the profile anyway."""
    with _program.lock:
        busy, _program.busy = _program.busy, True
        try:
            yield
        finally:
            _program.busy = busy


# --- those who ask --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Askable:
    """A process that says that it can be asked for its profile."""

    process: int
    #: the process that started it
    parent: int
    signal: signal.Signals
    #: its command line
    program: str
    #: the folder of its files
    folder: Path
    started: str

    @property
    def is_there(self) -> bool:
        """Whether it still runs."""
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return start_time(self.process) == self.started

    @property
    def handles_signal(self) -> bool:
        """Whether it survives the signal: a process that has become another program may not."""
        try:
            status = Path(f"/proc/{self.process}/status").read_text()
        except OSError:  # no Linux
            return True
        caught = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "")
        return not caught or bool(int(caught.split()[1], 16) >> (self.signal - 1) & 1)

    def send(self, token: str, output: Path | None) -> None:
        """Leave a request and send the signal. output: of the profile (default: its own file)."""
        request = {"token": token, "output": output and str(output)}
        write_whole(self.folder / f"{self.process}.request", json.dumps(request))
        os.kill(self.process, self.signal)

    def ring(self) -> None:
        """Have the thread of the process answer what its main thread has not answered."""
        with contextlib.suppress(OSError):  # there is no pipe, or nobody reads it
            pipe = os.open(self.folder / f"{self.process}.pipe", os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.write(pipe, _ANSWER)
            finally:
                os.close(pipe)

    def answer(self, token: str) -> Mapping[str, Any] | None:
        """Return the answer to a request, None before it is there."""
        path = self.folder / f"{self.process}.answer"
        found = _read(path)
        if found.get("token") != token:
            return None
        path.unlink(missing_ok=True)
        return found


def askable() -> list[Askable]:
    """Return the processes of this user that can be asked; forget those that have gone."""
    found = []
    for folder in _places():
        if not _is_private(folder):
            continue
        for path in sorted(folder.glob("*.json")):
            one = _said(path)
            if one is not None and one.is_there:
                found.append(one)
            else:
                for each in folder.glob(f"{path.stem}.*"):
                    each.unlink(missing_ok=True)
    return found


def remove_ended() -> None:
    """Delete the files of processes that have gone, and the folders if that leaves them empty."""
    askable()
    for folder in filter(_is_private, _places()):
        with contextlib.suppress(OSError):  # it is not empty
            folder.rmdir()


def _said(path: Path) -> Askable | None:
    about = _read(path)
    try:
        return Askable(
            int(about["process"]), int(about["parent"]), signal.Signals[about["signal"]],
            str(about["program"]), path.parent, str(about["started"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None
