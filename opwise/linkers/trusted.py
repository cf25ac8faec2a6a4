"""Folders that only this user and root can change, and temporary folders closed to others.

Compiled kernels are run. Whoever can write to their file, or rename a folder above it, runs code as
this user. So a path is walked from the root, every folder on it is checked, and files are opened
relative to the descriptor of the last one: swapping a folder afterwards has no effect.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shlex
import stat
import time
from collections.abc import Callable
from functools import cache

#: the largest file that is read
LARGEST = 256 << 20

_DAY = 86400
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not block
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    """A folder or file is not used: the reason, and a remedy ("" if there is no certain one)."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


class Folder:
    """A folder that only this user and root can change, with all folders above it.

    make: create missing folders, with mode 0700 whatever the umask; otherwise a missing one raises
    FileNotFoundError. Raises Refused if somebody else could change the folder or one above it.
    """

    def __init__(self, path: str, make: bool = True) -> None:
        self.path = os.path.abspath(path)
        self._fd = _walk(self.path, make)
        info = os.fstat(self._fd)
        self._identity = info.st_dev, info.st_ino
        if not self._allows(os.R_OK | os.X_OK):
            own = info.st_uid == os.geteuid()
            owner = "" if own else f"it belongs to {_user(info.st_uid)}, "
            raise Refused(
                f"{self.path} cannot be read ({owner}mode {stat.S_IMODE(info.st_mode):04o})",
                f"run: chmod u+rwx {shlex.quote(self.path)}" if own else "",
            )

    def _allows(self, access: int) -> bool:
        effective = os.access in os.supports_effective_ids
        return os.access(".", access, dir_fd=self._fd, effective_ids=effective)

    def __del__(self) -> None:
        if hasattr(self, "_identity"):  # __init__ was successful
            self.close(self._fd)

    def close(
        self,
        fd: int,
        # ``os`` may be gone at exit
        fstat: Callable[[int], os.stat_result] = os.fstat,
        close: Callable[[int], None] = os.close,
    ) -> None:
        """Close a descriptor of this folder, unless the program has closed it and reused it."""
        try:
            info = fstat(fd)
            if (info.st_dev, info.st_ino) == self._identity:
                close(fd)
        except OSError:
            pass

    def is_current(self) -> bool:
        """Return whether the folder still exists and others still cannot write to it."""
        try:
            info = os.fstat(self._fd)
            check(info, self.path)
        except (OSError, Refused):
            return False
        return (info.st_dev, info.st_ino) == self._identity and info.st_nlink > 0

    def is_writable(self) -> bool:
        """Return whether this user may create files here."""
        return self._allows(os.W_OK | os.X_OK)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, None if there is none, and mark the file as used.

        Raises Refused if it is not a plain file that only this user and root can write to.
        """
        path = os.path.join(self.path, name)
        try:
            fd = os.open(name, _READ, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise Refused(f"{path} cannot be opened ({e.strerror})") from e
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise Refused(f"{path} is not a file")
            check(info, path)
            if info.st_size > LARGEST:
                raise Refused(f"{path} has {info.st_size} bytes")
            content = _read(fd, info.st_size)
            if not 0 <= time.time() - info.st_mtime < _DAY:
                with contextlib.suppress(OSError):  # of root, or on a read-only disk
                    os.utime(fd)
        except OSError as e:
            raise Refused(f"{path} cannot be read ({e.strerror})") from e
        finally:
            os.close(fd)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Replace a file as a whole; raises OSError."""
        partial = f"{name}.{os.urandom(4).hex()}.part"
        fd = os.open(partial, _NEW, 0o600, dir_fd=self._fd)
        try:
            try:
                os.fchmod(fd, 0o600)  # whatever the umask
                write_all(fd, content)
            finally:
                os.close(fd)
            os.rename(partial, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            self.remove(partial)
            raise

    def remove(self, name: str) -> bool:
        """Delete a file, not what a link leads to; return whether it could be deleted."""
        try:
            os.unlink(name, dir_fd=self._fd)
        except OSError:
            return False
        return True

    def touch(self, name: str) -> None:
        """Mark a file as used now, if this user may."""
        with contextlib.suppress(OSError):
            os.utime(name, dir_fd=self._fd, follow_symlinks=False)

    def stat(self, name: str) -> os.stat_result | None:
        """Return what ``os.lstat`` returns, None for a file that does not exist."""
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return None

    def names(self) -> list[str]:
        """Return the names of everything in the folder; raises OSError."""
        fd = os.open(".", _LIST, dir_fd=self._fd)
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)


def _read(fd: int, size: int) -> bytes:
    content = os.read(fd, size + 1)
    while len(content) <= size and (more := os.read(fd, size + 1 - len(content))):
        content += more
    return content


def write_all(fd: int, content: bytes) -> None:
    """Write all of ``content`` to a file descriptor."""
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]


# --- who can change a folder ----------------------------------------------------------------------


def _walk(path: str, make: bool) -> int:
    """Return a descriptor of a folder after checking it and every folder above it."""
    names = [name for name in path.split(os.sep) if name]
    fd, here = os.open(os.sep, _FOLDER), os.sep
    try:
        check(os.fstat(fd), here, may_be_sticky=bool(names))
        for k, name in enumerate(names, 1):
            here = os.path.join(here, name)
            outer, fd = fd, _enter(fd, name, here, make)
            os.close(outer)
            # In a sticky folder others can add names, but not rename or delete ours.
            check(os.fstat(fd), here, may_be_sticky=k < len(names))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _enter(parent: int, name: str, path: str, make: bool) -> int:
    """Return a descriptor of a folder within another, created if it is missing and ``make``."""
    made = False
    if make:
        try:
            return _open_folder(parent, name, path)
        except FileNotFoundError:
            pass
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
            made = True
        except FileExistsError:
            pass  # another process was faster
        except OSError as e:
            raise Refused(f"{path} cannot be created ({e.strerror})") from e
    fd = _open_folder(parent, name, path)
    if made and stat.S_IMODE(os.fstat(fd).st_mode) != 0o700:
        # the umask took the owner's own bits; only root and this user can have replaced the folder
        with contextlib.suppress(OSError):
            os.chmod(name, 0o700, dir_fd=parent)
    return fd


def _open_folder(parent: int, name: str, path: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        raise
    except OSError as e:
        with contextlib.suppress(OSError):
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                raise Refused(f"{path} is a symbolic link") from e
            if not stat.S_ISDIR(mode):
                raise Refused(f"{path} is not a folder") from e
        raise Refused(f"{path} cannot be opened ({e.strerror})") from e


def check(info: os.stat_result, path: str, may_be_sticky: bool = False) -> None:
    """Raise Refused if anybody but this user and root can change a folder or file.

    may_be_sticky: accept a folder where others can add names but not replace those of this user.
    """
    owner, mode = info.st_uid, info.st_mode
    if owner not in (0, os.geteuid()) and owner != _unmapped_owner():
        raise Refused(f"{path} belongs to {_user(owner)}, not to you or root")
    if mode & (stat.S_IWGRP | stat.S_IWOTH) and not (may_be_sticky and mode & stat.S_ISVTX):
        who = "everybody" if mode & stat.S_IWOTH else "its group"
        remedy = f"run: chmod go-w {shlex.quote(path)}" if owner == os.geteuid() else ""
        raise Refused(f"{path} can be written to by {who} (mode {stat.S_IMODE(mode):04o})", remedy)


@cache
def _unmapped_owner() -> int | None:
    """Return the owner that stands for all users whom this user namespace lacks, None outside one.

    In a sandbox the host's root, who owns its folders, shows as this one.
    """
    try:
        with open("/proc/self/uid_map") as f:
            ranges = [tuple(map(int, line.split())) for line in f]
        with open("/proc/sys/fs/overflowuid") as f:
            owner = int(f.read())
    except (OSError, ValueError):
        return None
    mapped = any(first <= owner < first + count for first, _, count in ranges)
    return None if mapped else owner


def _user(uid: int) -> str:
    import pwd  # for this message alone

    with contextlib.suppress(KeyError):
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    return f"uid {uid}"


# --- temporary folders ----------------------------------------------------------------------------

_TEMPORARY = "opwise-tmp-"
#: how many leftovers a process looks at, and how often it tries to make a folder of its own
_MOST_SWEPT = 200
_ATTEMPTS = 100
_swept: set[str] = set()


class Temporary:
    """A folder closed to others, which ``remove`` or the end of a ``with`` deletes.

    Its process holds a lock on it, so that a later process can delete what a killed one left.
    """

    def __init__(self, place: str) -> None:
        place = os.path.realpath(place)
        if not os.path.isdir(place):
            raise Refused(f"{place} is not a folder")
        if place not in _swept:
            _swept.add(place)
            _sweep(place)
        for _ in range(_ATTEMPTS):
            if self._make(os.path.join(place, _TEMPORARY + os.urandom(8).hex())):
                return
        raise Refused(f"other processes delete new folders in {place}")

    def _make(self, path: str) -> bool:
        """Make and lock the folder; return False if a process deleted it before it was locked."""
        try:
            self.folder = Folder(path)
            self.path = self.folder.path
            self._lock = os.open(self.path, _LIST)
        except FileNotFoundError:
            return False
        if _try_lock(self._lock, shared=True) is not None and self.folder.is_current():
            return True
        self.folder.close(self._lock)
        return False

    def __enter__(self) -> Folder:
        return self.folder

    def __exit__(self, *exc_info: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Delete the folder and what is in it."""
        self.folder.close(self._lock)
        _remove_tree(self.path)


def _try_lock(fd: int, shared: bool) -> bool | None:
    """Lock a file; return None if another process holds it, False if locks are not supported."""
    import fcntl  # only processes that compile need it

    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError:
        return False
    return True


def _remove_tree(path: str) -> None:
    import shutil  # only processes that compile need it

    shutil.rmtree(path, ignore_errors=True)  # follows no links


def _sweep(place: str) -> None:
    """Delete the temporary folders of processes that were killed, at most so many."""
    with contextlib.suppress(OSError), os.scandir(place) as found:
        left = (entry.path for entry in found if entry.name.startswith(_TEMPORARY))
        for path in itertools.islice(left, _MOST_SWEPT):
            with contextlib.suppress(OSError):
                _sweep_one(path)


def _sweep_one(path: str) -> None:
    fd = os.open(path, _LIST)
    try:
        info = os.fstat(fd)
        if info.st_uid != os.geteuid():
            return
        # a time in the future is that of another clock
        is_old = abs(time.time() - info.st_mtime) > 7 * _DAY
        locked = _try_lock(fd, shared=False)
        if locked or (locked is False and is_old):
            _remove_tree(path)
    finally:
        os.close(fd)


def temporary_places(last: str) -> list[str]:
    """Return the folders to make temporary ones in, best first; ``last`` is one of the caller's."""
    places = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    places += ["/tmp", "/var/tmp", "/dev/shm", last]  # the third is memory, for full disks
    return list(dict.fromkeys(os.path.realpath(place) for place in places if place))


#: that of this process, by its number: a forked child has another one
_of_process: dict[int, Temporary] = {}


def process_folder(places: list[str]) -> Folder:
    """Return a temporary folder that lives as long as this process; a forked child gets its own.

    Raises Refused if there is no place for one that is safe.
    """
    own = _of_process.get(os.getpid())
    if own is not None and own.folder.is_current():
        return own.folder
    refusal = Refused("there is no folder for temporary files")
    for place in places:
        try:
            made = Temporary(place)
        except Refused as e:
            refusal = e
        except OSError as e:
            refusal = Refused(f"{place}: {e.strerror}")
        else:
            _of_process[os.getpid()] = made
            atexit.register(_remove_of_process, os.getpid(), made)
            return made.folder
    raise refusal


def _remove_of_process(process: int, made: Temporary) -> None:
    if process == os.getpid():  # a forked child runs this, too
        made.remove()
