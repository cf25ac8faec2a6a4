"""``theano.gof.compilelock``: locks of folders between processes."""

import os
import subprocess
import sys
import time

import pytest

from theano.gof import compilelock as locks


def held(folder):
    return (folder / "lock_dir" / "lock").exists()


def test_a_lock_is_held_until_it_is_released_as_often(tmp_path):
    locks.get_lock(str(tmp_path))
    locks.get_lock(str(tmp_path))
    assert str(os.getpid()) in (tmp_path / "lock_dir" / "lock").read_text()
    locks.release_lock()
    assert held(tmp_path)
    locks.release_lock()
    assert not held(tmp_path)
    with pytest.raises(RuntimeError, match="has taken no lock"):
        locks.release_lock()


def test_with_a_lock(tmp_path):
    with locks.lock_ctx(str(tmp_path)):
        assert held(tmp_path)
    assert not held(tmp_path)
    with pytest.raises(ZeroDivisionError), locks.lock_ctx(str(tmp_path)):
        raise ZeroDivisionError
    assert not held(tmp_path)
    with locks.lock_ctx(str(tmp_path), keep_lock=True):
        pass
    assert held(tmp_path)
    locks.release_lock()


def test_other_processes_wait(tmp_path):
    program = (
        "import sys, time; from theano.gof.compilelock import lock_ctx\n"
        "with lock_ctx(sys.argv[1]):\n"
        "    print('in', flush=True); sys.stdin.readline(); open(sys.argv[1] + '/done', 'w')\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with other:
        assert other.stdout.readline() == "in\n"
        other.stdin.write("\n")
        other.stdin.flush()
        with locks.lock_ctx(str(tmp_path), min_wait=0.01, max_wait=0.02):
            assert (tmp_path / "done").exists()


def test_a_lock_that_was_left_behind_is_taken(tmp_path):
    folder = tmp_path / "lock_dir"
    folder.mkdir()
    (folder / "lock").write_text("999999_elsewhere")
    locks.Unlocker(str(folder)).unlock()
    assert folder.exists()  # it belongs to another process
    os.utime(folder, (time.time() - 1000,) * 2)
    with locks.lock_ctx(str(tmp_path), timeout=500):
        assert str(os.getpid()) in (folder / "lock").read_text()
        assert locks.refresh_lock(str(folder / "lock")) in (folder / "lock").read_text()
    assert not folder.exists()


def test_locks_can_be_switched_off(tmp_path):
    locks.set_lock_status(False)
    try:
        with locks.lock_ctx(str(tmp_path)):
            assert not held(tmp_path)
    finally:
        locks.set_lock_status(True)
