"""The cache of kernels, optimized graphs and converted modules: files in ``config.compiledir``.

Each is sealed with its key. A file is written under another name and renamed, so there are no
locks; losing a race costs a compilation. The cache is optional: what cannot be read is made anew,
what cannot be written works in this process. Each kind of trouble brings one warning in a process.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections import Counter
from typing import NamedTuple

from opwise.config import config
from opwise.graph import provenance
from opwise.linkers import trusted
from opwise.linkers.trusted import Folder, Refused

# regular expressions, compiled when they are needed
_KERNEL = r"[0-9a-f]{32}\.so|[0-9a-f]{16}\.cubin"
#: an optimized graph
_GRAPH = r"[0-9a-f]{32}\.graph"
#: a converted module of a program for an earlier Python
_MODULE = r"[0-9a-f]{32}\.module"
#: a text that did not compile
_SOURCE = r"[0-9a-f]{32}\.c"
#: left by a process that was killed while it wrote; the second form is that of earlier versions
_PARTIAL = (
    rf"({_KERNEL}|{_GRAPH}|{_MODULE}|{_SOURCE}|last-sweep)\.[0-9a-f]{{8}}\.part"
    r"|tmp[a-z0-9_]{8}\.(so|json)"
)
#: the measured rates of a processor or a device
_MEASURED = r"(machine|device)-[\w.-]+\.json"
#: its time is that of the last sweep
_STAMP = "last-sweep"

_HOUR, _DAY = 3600, 86400
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
#: bytes of a digest; the seal of a file is that of its key, and that of both
_DIGEST = hashlib.sha256().digest_size
#: bytes that a graph or a module counts as at least: many small files make a folder slow
_LEAST = 1 << 14


class _Process:
    """What this process knows of the cache."""

    def __init__(self) -> None:
        #: the folder that it opened last
        self.folder: Folder | None = None
        #: what it has warned of
        self.warned: set[str] = set()


_process = _Process()


def _opened() -> Folder:
    """Return the cache folder, created if it is missing; raises Refused."""
    found = _process.folder
    if found is None or found.path != config.compiledir or not found.is_current():
        try:
            found = _process.folder = Folder(config.compiledir)
        except OSError as e:  # deleted meanwhile, or too many open files
            raise Refused(f"{config.compiledir} cannot be opened ({e.strerror})") from e
    return found


def _warn_once(subject: str, text: str) -> None:
    if subject not in _process.warned:
        _process.warned.add(subject)
        provenance.warn(text)


def _warn_refused(e: Refused) -> None:
    remedy = f"{e.remedy[0].upper()}{e.remedy[1:]}, or set" if e.remedy else "Set"
    _warn_once(
        "folder",
        f"The cache of compiled code {config.compiledir} is not used: {e.reason}. Functions are "
        f"compiled anew in every process. {remedy} the flag base_compiledir to a folder of your "
        "own.",
    )


def folder() -> str:
    """Return the cache folder, or a folder of this process if that is not safe.

    If there is no safe folder at all, return a name that neither can be read nor written to.
    """
    try:
        return _opened().path
    except Refused as e:
        _warn_refused(e)
    try:
        return trusted.process_folder(temporary_places()).path
    except Refused:
        return os.devnull


def path(name: str) -> str:
    """Return the path of a file in the cache folder."""
    return os.path.join(config.compiledir, name)


def temporary_places() -> list[str]:
    """Return the folders to make temporary ones in, best first."""
    return trusted.temporary_places(config.compiledir)


# --- files ----------------------------------------------------------------------------------------


def _seal(key: str, content: bytes) -> bytes:
    """Return what ``content`` is followed by: a renamed file has another key than its seal."""
    return _sealed(hashlib.sha256(key.encode()).digest(), content)


def _sealed(key: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(key)
    digest.update(content)
    return key + digest.digest()


def is_whole(where: Folder, name: str) -> bool:
    """Return whether a file of the cache is as it was written; False if it cannot be read."""
    try:
        file = where.read(name)
    except Refused:
        return False
    if file is None:
        return True  # it was deleted meanwhile
    content, seal = file[: -2 * _DIGEST], file[-2 * _DIGEST :]
    return seal == _sealed(seal[:_DIGEST], content)


def read(name: str, key: str) -> bytes | None:
    """Return what ``keep`` put under a name and key, or None; warns about a damaged file."""
    try:
        where = _opened()
    except Refused as e:
        _warn_refused(e)
        return None
    try:
        content = where.read(name)
    except Refused as e:
        warn_damaged(name, e.reason)
        return None
    if content is None:
        return None
    content, seal = content[: -2 * _DIGEST], content[-2 * _DIGEST :]
    if seal != _seal(key, content):
        warn_damaged(name, "it is incomplete, was changed, or was renamed")
        return None
    return content


def warn_damaged(name: str, reason: str) -> None:
    """Warn, once, that a file of the cache is of no use."""
    made = "kernel is compiled"
    for pattern, other in ((_GRAPH, "graph is optimized"), (_MODULE, "module is converted")):
        made = other if re.fullmatch(pattern, name) else made
    _warn_once(
        "damaged",
        f"{path(name)} is not loaded: {reason}. The {made} anew. If this happens again, "
        "look at who else writes to the folder, or run: opwise cache clear",
    )


def _counted(name: str, size: int) -> int:
    """Return how much of the bound a file of ``size`` bytes takes."""
    return max(size, _LEAST) if re.fullmatch(f"{_GRAPH}|{_MODULE}", name) else size


def keep(name: str, key: str, content: bytes) -> str:
    """Put content into the cache; return its path, or "" with a warning if it cannot be kept."""
    most = config.compiledir_bytes
    if most == 0:
        return ""
    try:
        where = _write(name, content + _seal(key, content))
    except Refused as e:
        _warn_refused(e)
        return ""
    except OSError as e:
        _warn_unwritable(e)
        return ""
    if _is_due(where, _counted(name, len(content)), most):
        sweep(where, most)
    return os.path.join(where.path, name)


def _write(name: str, content: bytes) -> Folder:
    """Write a file; return the folder. Once more if the folder was deleted meanwhile."""
    for again in (True, False):
        where = _opened()
        try:
            where.write(name, content)
            break
        except FileNotFoundError:
            if not again:
                raise
    return where


def _warn_unwritable(e: OSError) -> None:
    if e.errno in _READ_ONLY:
        trouble, remedy = "is read-only", "Make it writable"
    elif e.errno in (errno.ENOSPC, errno.EDQUOT):
        trouble, remedy = "is full", "Free some space there"
    else:
        trouble, remedy = "cannot be written to", "Look at its disk"
    _warn_once(
        "write",
        f"The cache of compiled code {config.compiledir} {trouble} ({e.strerror}): what it lacks "
        f"is compiled anew in every process. {remedy}, or set the flag base_compiledir to a folder "
        "of your own.",
    )


def keep_source(name: str, text: str) -> str:
    """Keep a text that does not compile; return its path, or "" if it cannot be kept."""
    try:
        where = _write(name, text.encode())
    except (Refused, OSError):
        return ""
    return os.path.join(where.path, name)


def as_file(name: str, content: bytes) -> str:
    """Return the path of a file with this content that exists as long as the process.

    Raises Refused or OSError if there is no safe place for it.
    """
    where = trusted.process_folder(temporary_places())
    where.write(name, content)
    return os.path.join(where.path, name)


# --- what is there, and how much of it ------------------------------------------------------------


def existing() -> Folder | None:
    """Return the cache folder if there is one; raises Refused."""
    try:
        return Folder(config.compiledir, make=False)
    except FileNotFoundError:
        return None


def _own(where: Folder, *patterns: str) -> list[tuple[str, os.stat_result]]:
    """Return (name, stat) of this user's plain files with names of these forms."""
    found = []
    for name in where.names():
        if re.fullmatch("|".join(patterns), name):
            info = where.stat(name)
            if info is not None and stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid():
                found.append((name, info))
    return found


#: the kinds of files in the cache -> the form of their names
KINDS = {"kernel": _KERNEL, "graph": _GRAPH, "module": _MODULE}


class CachedFile(NamedTuple):
    """A kernel, a graph or a converted module in the cache."""

    name: str
    #: one of ``KINDS``
    kind: str
    #: its size in bytes
    size: int
    #: when it was used last, in seconds since 1970; exact to a day
    used: float


def files(where: Folder) -> list[CachedFile]:
    """Return the kernels, graphs and converted modules in a cache folder, by name."""
    found = []
    for name in where.names():
        for kind, pattern in KINDS.items():
            info = where.stat(name) if re.fullmatch(pattern, name) else None
            if info is not None and stat.S_ISREG(info.st_mode):
                found.append(CachedFile(name, kind, info.st_size, info.st_mtime))
    return sorted(found)


def clear(where: Folder) -> tuple[Counter[str], int]:
    """Delete kernels, graphs, modules and what is left of failed compilations; nothing else.

    Returns how many files of each of ``KINDS`` were deleted, and how many files could not be.
    """
    deleted: Counter[str] = Counter()
    failed = 0
    for name, _ in _own(where, *KINDS.values(), _SOURCE, _PARTIAL):
        if not where.remove(name):
            failed += where.stat(name) is not None
        else:
            deleted.update(kind for kind, form in KINDS.items() if re.fullmatch(form, name))
    return deleted, failed


def folders() -> list[str]:
    """Return the cache folders in ``base_compiledir``: those of every version of Python and of
    every platform, and ``compiledir`` itself, if they exist."""
    base = config.base_compiledir
    try:
        names = [n for n in os.listdir(base) if n.startswith("compiledir_")]
    except OSError:
        names = []
    found = [os.path.join(base, name) for name in sorted(names)]
    if config.compiledir not in found:
        found.append(config.compiledir)
    return [each for each in found if os.path.isdir(each) and not os.path.islink(each)]


def remove(path: str) -> tuple[Counter[str], int]:
    """Delete all files of opwise's in a cache folder, and the folder if nothing else is in it.

    Returns what ``clear`` returns. Raises Refused if others could have changed the folder.
    """
    where = Folder(path, make=False)
    counts = clear(where)
    for name, _ in _own(where, _MEASURED, re.escape(_STAMP)):
        where.remove(name)
    remove_if_empty(path)
    return counts


def remove_if_empty(path: str) -> None:
    """Delete a folder if nothing is in it."""
    with contextlib.suppress(OSError):
        os.rmdir(path)


def _is_due(where: Folder, size: int, most: int) -> bool:
    """Return whether to sweep after writing ``size`` bytes.

    Once a day, and by chance after an eighth of ``most``: this needs no count that processes share.
    """
    stamp = where.stat(_STAMP)
    if stamp is None or not 0 <= time.time() - stamp.st_mtime < _DAY:
        return True
    return most > 0 and int.from_bytes(os.urandom(4)) < 8 * size / most * 2**32


def sweep(where: Folder, most: int) -> None:
    """Delete what killed processes left, then what was unused for longest beyond ``most`` bytes.

    most: -1 for no bound.
    """
    now = time.time()
    try:
        where.write(_STAMP, b"")
        found = _own(where, *KINDS.values(), _SOURCE, _PARTIAL)
    except OSError:
        return
    kept = []
    for name, info in found:
        used = info.st_mtime
        if used > now + _HOUR:  # of another clock: it would never be the oldest
            where.touch(name)
            used = now
        if re.fullmatch(_PARTIAL, name):
            if abs(now - info.st_mtime) > _HOUR:
                where.remove(name)
        elif re.fullmatch(_SOURCE, name) and now - used > 7 * _DAY:
            where.remove(name)
        else:
            kept.append((used, name, _counted(name, info.st_size)))
    total = sum(size for _, _, size in kept)
    if not 0 <= most < total:
        return
    for _, name, size in sorted(kept):
        where.remove(name)
        total -= size
        if total <= most * 7 // 8:
            break
