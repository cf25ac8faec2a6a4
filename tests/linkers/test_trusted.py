"""Folders that only this user and root can change: every way in which somebody else could."""

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import opwise
from opwise.linkers import trusted
from opwise.linkers.trusted import Folder, Refused, Temporary

pytestmark = pytest.mark.null

ROOT = str(Path(opwise.__file__).parents[1])
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.fixture
def deep(tmp_path):
    """Four folders within one another, closed to others."""
    path = tmp_path / "a" / "b" / "c" / "d"
    Folder(str(path))
    return path


@pytest.fixture
def umask():
    """``umask(mode)``: set it until the test ends."""
    before = os.umask(0o022)
    os.umask(before)
    yield os.umask
    os.umask(before)


# --- the path -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_missing_folders_are_made_closed_to_others(tmp_path, umask, mask):
    umask(mask)
    folder = Folder(str(tmp_path / "a" / "b" / "c"))
    folder.write("x", b"1")
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"):
        assert mode_of(path) == 0o700
    assert mode_of(tmp_path / "a" / "b" / "c" / "x") == 0o600
    assert folder.read("x") == b"1"


def test_a_missing_folder_is_not_made_unless_wanted(tmp_path):
    with pytest.raises(FileNotFoundError):
        Folder(str(tmp_path / "a" / "b"), make=False)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize(("mode", "who"), [(0o777, "everybody"), (0o702, "everybody"),
                                           (0o770, "its group"), (0o720, "its group")])  # fmt: skip
def test_a_folder_that_others_can_write_to_is_refused_at_each_level(deep, level, mode, who):
    bad = [deep, *deep.parents][level]
    bad.chmod(mode)
    with pytest.raises(Refused) as e:
        Folder(str(deep))
    assert e.value.reason == f"{bad} can be written to by {who} (mode {mode:04o})"
    assert e.value.remedy == f"run: chmod go-w {bad}"
    subprocess.run(e.value.remedy.removeprefix("run: "), shell=True, check=True)
    Folder(str(deep))


def test_a_sticky_folder_may_be_on_the_path_and_not_at_its_end(deep):
    deep.parent.chmod(0o1777)  # like /tmp: others can add names, not replace ours
    Folder(str(deep))
    deep.chmod(0o1777)
    with pytest.raises(Refused, match=r"can be written to by everybody \(mode 1777\)"):
        Folder(str(deep))


@as_root
@pytest.mark.parametrize("level", range(4))
def test_a_folder_of_somebody_else_is_refused_at_each_level(deep, level):
    bad = [deep, *deep.parents][level]
    os.chown(bad, NOBODY, -1)
    with pytest.raises(Refused, match=r"belongs to .*\(?uid 65534\)?, not to you or root") as e:
        Folder(str(deep))
    assert str(bad) in e.value.reason and e.value.remedy == ""


def test_a_folder_of_somebody_else_is_refused(deep, monkeypatch):
    """As above where the test is not root: what fstat says of owners is another one."""
    genuine = os.fstat
    inode = os.stat(deep.parent).st_ino

    def fstat(fd):
        info = genuine(fd)
        if info.st_ino != inode:
            return info
        return os.stat_result((*info[:4], 4242, *info[5:]))

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(Refused, match=f"{deep.parent} belongs to uid 4242, not to you or root"):
        Folder(str(deep))


def test_in_a_sandbox_without_root_its_folders_are_accepted(deep, monkeypatch):
    """There the owner of / is shown as a user that stands for all whom the sandbox lacks."""
    genuine = os.fstat

    def fstat(fd):
        info = genuine(fd)
        return os.stat_result((*info[:4], 4242, *info[5:]))

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(Refused, match="/ belongs to uid 4242"):
        Folder(str(deep))
    monkeypatch.setattr(trusted, "_unmapped_owner", lambda: 4242)
    Folder(str(deep))


def test_all_users_are_known_outside_a_sandbox():
    if Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
        pytest.skip("the test runs in a user namespace")
    assert trusted._unmapped_owner() is None


@pytest.mark.parametrize("level", range(4))
def test_a_link_is_refused_at_each_level(deep, level):
    bad = [deep, *deep.parents][level]
    moved = bad.with_name("moved")
    bad.rename(moved)
    bad.symlink_to(moved)
    with pytest.raises(Refused, match=f"{bad} is a symbolic link"):
        Folder(str(deep))


def test_a_file_in_the_place_of_a_folder(deep):
    deep.rmdir()
    deep.write_text("")
    with pytest.raises(Refused, match=f"{deep} is not a folder"):
        Folder(str(deep))
    with pytest.raises(Refused, match=f"{deep} is not a folder"):
        Folder(str(deep / "within"))


def test_a_folder_that_cannot_be_created(tmp_path, monkeypatch):
    def mkdir(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(Refused, match=r"x cannot be created \(Read-only file system\)"):
        Folder(str(tmp_path / "x"))


def test_a_folder_that_cannot_be_read(deep, monkeypatch):
    monkeypatch.setattr(Folder, "_allows", lambda self, access: False)
    with pytest.raises(Refused, match=rf"{deep} cannot be read \(mode 0700\)") as e:
        Folder(str(deep))
    assert e.value.remedy == f"run: chmod u+rwx {deep}"


# --- what is held ---------------------------------------------------------------------------------


def test_a_folder_that_is_swapped_is_still_the_one_that_was_checked(deep):
    folder = Folder(str(deep))
    folder.write("x", b"ours")
    deep.parent.rename(deep.parent.with_name("away"))
    deep.mkdir(parents=True)
    (deep / "x").write_text("theirs")
    assert folder.read("x") == b"ours"
    folder.write("y", b"1")
    assert not (deep / "y").exists()


def test_a_folder_is_not_current_once_others_may_write_or_it_is_gone(deep):
    folder = Folder(str(deep))
    assert folder.is_current() and folder.is_writable()
    deep.chmod(0o777)
    assert not folder.is_current()
    deep.chmod(0o700)
    assert folder.is_current()
    deep.rmdir()
    assert not folder.is_current()


def test_a_program_that_closes_all_its_files(deep):
    """As daemons do; the number of the descriptor may then be that of another file."""
    folder = Folder(str(deep))
    os.close(folder._fd)
    assert not folder.is_current()
    other = os.open("/", os.O_RDONLY)
    os.dup2(other, folder._fd)
    if other != folder._fd:
        os.close(other)
    assert not folder.is_current()
    number = folder._fd
    del folder
    os.fstat(number)  # it is still open
    os.close(number)


def test_no_descriptor_is_left(deep, open_files):
    before = open_files()
    folder = Folder(str(deep))
    folder.write("x", b"1")
    for _ in range(10):
        folder.read("x")
        folder.names()
        Folder(str(deep))
        with Temporary(str(deep)):
            pass
    deep.chmod(0o777)
    for _ in range(10):
        with pytest.raises(Refused):
            Folder(str(deep))
    del folder
    assert not open_files() - before  # garbage of other tests may close its own files meanwhile


# --- files ----------------------------------------------------------------------------------------


def test_reading_and_writing(deep):
    folder = Folder(str(deep))
    assert folder.read("x") is None
    folder.write("x", b"1" * 100_000)
    assert folder.read("x") == b"1" * 100_000
    folder.write("x", b"")
    assert folder.read("x") == b"" and folder.names() == ["x"]


def test_what_is_no_plain_file_is_refused(deep, tmp_path):
    folder = Folder(str(deep))
    (tmp_path / "elsewhere").write_text("x")
    (tmp_path / "elsewhere").chmod(0o600)
    (deep / "link").symlink_to(tmp_path / "elsewhere")
    (deep / "folder").mkdir()
    os.mkfifo(deep / "pipe", 0o600)  # to open it must not block
    for name, why in (("link", "cannot be opened"), ("folder", "is not a file"),
                      ("pipe", "is not a file")):  # fmt: skip
        with pytest.raises(Refused, match=why):
            folder.read(name)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_to_is_refused(deep, mode):
    folder = Folder(str(deep))
    folder.write("x", b"1")
    (deep / "x").chmod(mode)
    with pytest.raises(Refused, match="can be written to"):
        folder.read("x")


@as_root
def test_a_file_of_somebody_else_is_refused(deep):
    folder = Folder(str(deep))
    folder.write("x", b"1")
    os.chown(deep / "x", NOBODY, -1)
    with pytest.raises(Refused, match="belongs to"):
        folder.read("x")


def test_a_file_without_end_is_refused(deep):
    folder = Folder(str(deep))
    folder.write("x", b"")
    os.truncate(deep / "x", trusted.LARGEST + 1)
    with pytest.raises(Refused, match=f"has {trusted.LARGEST + 1} bytes"):
        folder.read("x")


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_other(deep, monkeypatch):
    folder = Folder(str(deep))
    folder.write("x", b"old")

    def write(fd, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        folder.write("x", b"new")
    assert folder.read("x") == b"old" and folder.names() == ["x"]


@pytest.mark.parametrize("shift", [-10 * 86400, 10 * 86400])
def test_reading_marks_a_file_as_used_whatever_the_clock_said(deep, shift):
    folder = Folder(str(deep))
    folder.write("x", b"1")
    os.utime(deep / "x", (time.time() + shift,) * 2)
    folder.read("x")
    assert abs(os.stat(deep / "x").st_mtime - time.time()) < 3600


# --- temporary folders ----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place for temporary folders that nobody has swept."""
    monkeypatch.setattr(trusted, "_swept", set())
    path = tmp_path / "place"
    path.mkdir()
    path.chmod(0o1777)
    return path


def test_a_temporary_folder_is_closed_and_goes(place):
    with Temporary(str(place)) as folder:
        assert mode_of(folder.path) == 0o700
        folder.write("x", b"1")
    assert os.listdir(place) == []


def test_a_place_where_others_could_exchange_it_is_refused(place):
    place.chmod(0o777)  # not sticky
    with pytest.raises(Refused, match="can be written to by everybody"):
        Temporary(str(place))
    assert os.listdir(place) == []


LEAVE = """
import os, sys
from opwise.linkers.trusted import Temporary
made = Temporary(sys.argv[1])
made.folder.write("x", b"1")
print(made.path, flush=True)
if sys.argv[2] == "die":
    os.kill(os.getpid(), 9)
sys.stdin.read()
"""


def left_by(place, how):
    return subprocess.Popen(
        [sys.executable, "-c", LEAVE, str(place), how], env={**os.environ, "PYTHONPATH": ROOT},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("shift", [0, -7200, 7200], ids=["new", "old", "of the future"])
def test_what_killed_processes_left_is_removed_and_nothing_else(place, tmp_path, shift):
    living = left_by(place, "live")
    used = living.stdout.readline().strip()
    with left_by(place, "die") as dead:
        killed = dead.stdout.readline().strip()
    theirs = place / "opwise-tmp-report.txt"
    theirs.write_text("no folder")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "precious").write_text("")
    link = place / "opwise-tmp-0000000000000000"
    link.symlink_to(tmp_path / "target")
    (place / "unrelated").mkdir()
    then = time.time() + shift
    for path in (killed, used, theirs, place / "unrelated", tmp_path / "target"):
        os.utime(path, (then, then))
    with Temporary(str(place)):
        assert not os.path.exists(killed)
        for path in (used, theirs, link, place / "unrelated"):
            assert os.path.lexists(path), path
        assert (tmp_path / "target" / "precious").exists()
    living.communicate()


MAKE_AND_SWEEP = """
import os, sys
from opwise.linkers import trusted
for k in range(300):
    trusted._swept.clear()
    with trusted.Temporary(sys.argv[1]) as folder:
        folder.write("x", b"1")
        assert folder.read("x") == b"1"
"""


def test_processes_that_sweep_leave_each_other_their_folders(place):
    """A new folder that another process deletes before it is locked is made again."""
    command = [sys.executable, "-c", MAKE_AND_SWEEP, str(place)]
    running = [
        subprocess.Popen(command, env={**os.environ, "PYTHONPATH": ROOT}, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [(each.communicate()[1], each.returncode) for each in running] == [(b"", 0)] * 4
    assert os.listdir(place) == []


def test_a_folder_that_is_deleted_before_it_is_locked_is_made_again(place, monkeypatch):
    made = []

    def deleted_at_first(fd, shared):
        if shared and len(made) < 2:
            made.extend(place.iterdir())
            shutil.rmtree(made[-1])
        return True

    monkeypatch.setattr(trusted, "_try_lock", deleted_at_first)
    with Temporary(str(place)) as folder:
        assert len(made) == 2 and Path(folder.path) not in made and folder.is_current()


def test_a_sweep_is_bounded(place, monkeypatch):
    monkeypatch.setattr(trusted, "_MOST_SWEPT", 3)
    for k in range(5):
        (place / f"opwise-tmp-{k}").mkdir()
    trusted._sweep(str(place))
    assert len(os.listdir(place)) == 2


@as_root
def test_what_another_user_left_stays(place):
    theirs = place / "opwise-tmp-2222222222222222"
    theirs.mkdir()
    os.chown(theirs, NOBODY, -1)
    os.utime(theirs, (0, 0))
    with Temporary(str(place)):
        assert theirs.exists()


FORK = """
import os, sys
from opwise.linkers import trusted
places = [sys.argv[1]]
mine = trusted.process_folder(places)
assert trusted.process_folder(places) is mine
child = os.fork()
if not child:
    own = trusted.process_folder(places)
    assert own.path != mine.path and os.path.isdir(own.path)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert os.listdir(places[0]) == [os.path.basename(mine.path)]
"""


def test_a_forked_child_has_its_own_folder_and_leaves_its_parents(place):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(place)],
        env={**os.environ, "PYTHONPATH": ROOT}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert os.listdir(place) == []


def test_a_folder_of_the_process_that_somebody_deleted_is_made_again(place, monkeypatch):
    monkeypatch.setattr(trusted, "_of_process", {})
    first = trusted.process_folder([str(place)])
    shutil.rmtree(first.path)
    second = trusted.process_folder([str(place)])
    assert second.path != first.path and os.path.isdir(second.path)
    with pytest.raises(Refused, match="nowhere is not a folder"):
        monkeypatch.setattr(trusted, "_of_process", {})
        trusted.process_folder([str(place / "nowhere")])
