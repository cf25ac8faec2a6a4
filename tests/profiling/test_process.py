"""Times of the process as a whole."""

import subprocess
import sys

import pytest

from opwise.profiling import process

pytestmark = pytest.mark.null


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells no times of processes")
def test_the_system_tells_how_old_a_process_is():
    script = (
        "import time; time.sleep(0.3)\n"
        "from opwise.profiling import process\n"
        "found = process.system_times()\n"
        "print(found['seconds_of_process'] >= 0.25, found['seconds_running'] > 0)\n"
        "print(found['seconds_waiting'] >= 0, process.importing() > 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 4, done.stderr


def test_where_the_system_tells_nothing_nothing_is_said(monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr("builtins.open", refuse)
    assert process.system_times() == {}


def test_the_peak_of_memory_is_that_of_this_process_alone():
    """A large process starts a small one, which then uses some memory and frees it."""
    small = (
        "from opwise.profiling import process; first = process.peak_memory()\n"
        "b'x' * (64 << 20)\n"
        "print(64 << 20 < process.peak_memory() < 200 << 20, first < process.peak_memory())"
    )
    large = (
        "import subprocess, sys; held = b'x' * (300 << 20)\n"
        f"print(subprocess.check_output([sys.executable, '-c', {small!r}], text=True))"
    )
    done = subprocess.run([sys.executable, "-c", large], capture_output=True, text=True)
    assert done.stdout.split() == ["True"] * 2, done.stderr
