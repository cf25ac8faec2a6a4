"""How files are written: whole, by rename, and what is no plain file stays what it is."""

import os
import threading

import pytest

from opwise.profiling.files import write_whole

pytestmark = pytest.mark.null


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "long before")
    write_whole(str(path), "µ\udc80")
    assert path.read_bytes() == b"\xc2\xb5\\udc80"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OSError):
        write_whole(tmp_path / "no" / "a.txt", "text")
    with pytest.raises(OSError):
        write_whole(tmp_path, "text")
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_written_to(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write_whole(path, "text")
    reader.join()
    assert read == ["text"] and path.is_fifo()
