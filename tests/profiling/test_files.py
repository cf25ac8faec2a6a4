"""How files are written: whole, by rename, and what is no plain file stays what it is."""

import os
import threading

import pytest

from opwise.profiling import files
from opwise.profiling.files import printable, read_limited, write_whole

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


# --- reading --------------------------------------------------------------------------------------


def test_a_file_is_read(tmp_path):
    (tmp_path / "p").write_bytes(b"abc")
    assert read_limited(tmp_path / "p") == read_limited(tmp_path / "p", most=3) == b"abc"
    with pytest.raises(ValueError, match="it has 3 bytes; the limit is 2 bytes"):
        read_limited(tmp_path / "p", most=2)
    with pytest.raises(FileNotFoundError):
        read_limited(tmp_path / "q")


def test_what_never_ends_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", "/dev/zero", "/dev/tty", tmp_path):
        with pytest.raises((ValueError, OSError), match=r"not a regular file|directory|device"):
            read_limited(path)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # it takes no room
    with pytest.raises(ValueError, match="1,099,511,627,776 bytes"):
        read_limited(tmp_path / "huge")


def test_a_file_that_does_not_say_how_long_it_is():
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read_limited("/proc/self/status", most=10)
    assert files.MOST_BYTES > 1 << 20


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain µ ü 中", "plain µ ü 中"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\u202eevil\x9b", r"\u202eevil\x9b"),
        ("\ud800\0", r"\ud800\x00"),
    ],
)
def test_what_would_move_the_cursor_is_escaped(text, shown):
    assert printable(text) == shown and shown.isprintable()
