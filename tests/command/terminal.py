"""A command in a terminal: keys are pressed, what it shows is read."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

#: makes a terminal that of its process, then is another program
_IN_TERMINAL = """
import fcntl, os, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""

CTRL_C = b"\x03"
#: seconds after which a command that shows nothing, or has not ended, hangs
_PATIENCE, _LONGEST = 120, 200


class Terminal:
    """Runs ``python WORDS`` in a terminal of its own."""

    def __init__(self, *words, cwd=None, env=None):
        self.master, slave = os.openpty()
        command = [sys.executable, "-c", _IN_TERMINAL, os.ttyname(slave), *map(str, words)]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=cwd,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200", "PYTHONFAULTHANDLER": "1",
                 **(env or {})},
        )  # fmt: skip
        os.close(slave)
        self.deadline = time.monotonic() + _LONGEST
        self.shown = ""

    def until(self, text):
        """Read until a text is shown."""
        while text not in self.shown:
            if not self._read():
                raise AssertionError(f"it ended without {text!r}: {self.shown}")

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Read what is shown up to the end; return the exit code."""
        while self._read():
            pass
        os.close(self.master)
        return self.process.wait(_PATIENCE)

    def _read(self):
        ready, _, _ = select.select([self.master], [], [], _PATIENCE)
        if not ready or time.monotonic() > self.deadline:
            self._abort()
            raise AssertionError(f"it hangs; it showed: {self.shown}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the last process has closed the terminal
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)

    def _abort(self):
        """End the command and the processes that it started, which show the stacks they have."""
        pid = self.process.pid
        started = Path(f"/proc/{pid}/task/{pid}/children")
        for one in [*(started.read_text().split() if started.exists() else ()), pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(one), signal.SIGABRT)
            end = time.monotonic() + 3
            with contextlib.suppress(OSError):  # the last process has closed the terminal
                while time.monotonic() < end and select.select([self.master], [], [], 1)[0]:
                    self.shown += os.read(self.master, 65536).decode("utf-8", "replace")


def wait_for(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
