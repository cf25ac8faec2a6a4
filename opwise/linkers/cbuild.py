"""From C text to a loaded library: the compiler, and the cache of what it made.

The cache is addressed by content: text, compiler, flags, processor, C library. A file is made under
another name and renamed, so there are no locks; losing a race costs a compilation, nothing else.
The folder must be the user's own and closed to others: what lies in it is run.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import shutil
import stat
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from weakref import WeakValueDictionary

from opwise.config import config
from opwise.errors import CompileError
from opwise.graph import provenance
from opwise.linkers import opwise_c
from opwise.scalar import csource

FLAGS = ("-march=native", "-fPIC", "-shared", "-std=gnu11", "-w", *csource.FLAGS)
#: what of -O3 such loops gain from; the rest of it costs time to compile and gives them nothing
_GCC_LEVEL = (
    "-O1", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic", "-fstrict-aliasing", "-ftree-pre",
    "-ftree-vrp", "-fcode-hoisting", "-fgcse", "-fcaller-saves", "-fschedule-insns2",
    # several accumulators of a reduction become registers
    "-fpeel-loops",
    # a path for each outcome of a comparison would become a selection of every value on these paths
    "-fno-thread-jumps",
    # no second, narrower vector loop for what the first leaves over: it takes time to compile
    "--param=vect-epilogues-nomask=0",
)  # fmt: skip


@cache
def _level(path):
    """Return the optimization flags for a compiler."""
    return ("-O3",) if "clang" in os.path.basename(os.path.realpath(path)) else _GCC_LEVEL


@dataclass(frozen=True)
class Report:
    """What a load did: whether the library was in the cache, seconds compiling and loading."""

    hit: bool
    compile_seconds: float
    load_seconds: float
    path: str

    def __add__(self, other):
        """Return the report of two loads at the same time."""
        return Report(
            self.hit and other.hit,
            max(self.compile_seconds, other.compile_seconds),
            self.load_seconds + other.load_seconds,
            self.path or other.path,
        )


@cache
def _find(command):
    return shutil.which(command)


def compiler():
    """Return the path of the C compiler, or None if there is none or ``config.cxx`` is empty."""
    command = config.cxx
    if not command:
        return None
    if command != "cc":
        found = _find(command)
        if found is not None:
            return found
    return _find("cc") or _find("gcc") or _find("clang")


def no_compiler():
    """Return why there is no C compiler, as a sentence without its end; '' if there is one."""
    if compiler() is not None:
        return ""
    if not config.cxx:
        return "The flag cxx is empty, so no C compiler is used"
    if config.cxx != "cc":
        return f"The flag cxx names a C compiler that is not there, {config.cxx}"
    return "There is no C compiler (no cc, gcc or clang is on the PATH)"


def warn_without_compiler():
    """Warn, once in a process, if there is no C compiler and nobody asked for that (cxx=)."""
    if config.cxx and compiler() is None:
        _say_missing()


@cache
def _say_missing():
    provenance.warn(
        f"{no_compiler()}: functions run on built-in loops, which are slower. Install one or set "
        "the flag cxx to the path of one, or to nothing (cxx=) if there is to be none."
    )


@cache
def _processor():
    """Return a text that differs between processors with different instructions."""
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith(("flags", "Features")):
                    return line
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache
def _environment(path):
    """Return what, besides the text, decides the machine code: as text for the key."""
    info = os.stat(path)
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        library = platform.libc_ver()[1]
    return "\0".join(
        map(str, (os.path.realpath(path), info.st_size, info.st_mtime_ns, library, _processor()))
    )


def _libraries(text):
    """Return what a library of this text is linked with: as little as can be takes least time."""
    start = ("-nostdlib",) if sys.platform == "linux" else ()  # nothing runs when it is loaded
    return (*start, "-lm") if csource.USES_LIBM in text else start


def extra_flags():
    """Return the flags that the user added with gcc.cxxflags."""
    return tuple(config.gcc.cxxflags.split())


_private = None


def folder():
    """Return the cache folder, made if need be; if it is unsafe, warn and return a private one."""
    global _private
    path = config.compiledir
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        info = os.lstat(path)
        safe = (
            stat.S_ISDIR(info.st_mode)
            and info.st_uid == os.getuid()
            and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            and os.access(path, os.W_OK)
        )
    except OSError:
        safe = False
    if safe:
        return path
    if _private is None:
        import tempfile  # not needed where kernels are in the cache, as the two below

        _private = tempfile.mkdtemp(prefix="opwise-")
        atexit.register(shutil.rmtree, _private, ignore_errors=True)
        provenance.warn(
            f"{path} is not a folder that only you can write to: C code is compiled anew in every "
            "process. Mend it (chmod 700), or name another with the flag base_compiledir."
        )
    return _private


#: libraries by key, as long as some function runs their kernels
_loaded: WeakValueDictionary[str, opwise_c.Library] = WeakValueDictionary()


def load(text):
    """Return (library, Report) for a C text, compiling it if it is not in the cache."""
    return Build(text).result()


class Build:
    """A C text on the way to its library: if it is not in the cache, a compiler is at work on it.

    Whoever made the Build can do other things, or make more of them, before asking for ``result``.
    """

    def __init__(self, text):
        self._worker = self._error = self._key = self._library = None
        self._seconds = 0.0
        path = compiler()
        if path is None:
            self._error = CompileError("there is no C compiler: set the flag cxx to one")
            return
        flags = (*_level(path), *FLAGS, *extra_flags())
        parts = "\0".join((text, _environment(path), *flags))
        self._key = hashlib.sha256(parts.encode()).hexdigest()[:32]
        self._library = _loaded.get(self._key)
        if self._library is not None:
            return
        where = folder()
        self._target = os.path.join(where, f"{self._key}.so")
        self._arguments = path, flags, text, where, self._target
        if not _trusted(self._target):
            self._worker = threading.Thread(target=self._compile)
            self._worker.start()

    def _compile(self):
        try:
            self._seconds += _compile(*self._arguments)
        except CompileError as e:
            self._error = e

    def result(self):
        """Return (library, Report) once it is compiled and loaded; raises CompileError."""
        hit = self._worker is None
        if not hit:
            self._worker.join()
        if self._error is not None:
            raise self._error
        if hit and self._library is None:
            self._library = _loaded.get(self._key)  # of another Build, since then
        if hit and self._library is not None:
            return self._library, Report(True, 0.0, 0.0, "")
        start = time.perf_counter()
        try:
            library = opwise_c.Library(self._target)
        except OSError:
            # an incomplete or foreign file: make it anew
            self._seconds += _compile(*self._arguments)
            hit = False
            library = opwise_c.Library(self._target)
        _loaded[self._key] = library
        return library, Report(hit, self._seconds, time.perf_counter() - start, self._target)


def _trusted(path):
    """Return whether a file is whole, the user's own, and nobody else can write to it."""
    try:
        info = os.lstat(path)
        if (
            not stat.S_ISREG(info.st_mode)
            or info.st_uid != os.getuid()
            or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        ):
            return False
        with open(path, "rb") as f:
            content = f.read()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(content[:-size]).digest() == content[-size:]


def _seal(path):
    """Append the digest of a library to it: the loader would crash on one that was cut short."""
    with open(path, "r+b") as f:
        f.write(hashlib.sha256(f.read()).digest())


def _first_error(done):
    """Return the line of a compiler's output that says what is wrong."""
    lines = done.stderr.splitlines()
    first = next((x for x in lines if "error" in x), done.stderr[:300]).strip()
    if first:
        return first
    if done.returncode < 0:
        return f"it was ended by signal {-done.returncode}"
    return f"it ended with code {done.returncode} and said nothing"


def _compile(path, flags, text, where, target):
    """Compile a text into ``target``; return the seconds it took."""
    import subprocess
    import tempfile

    start = time.perf_counter()
    partial = None
    try:
        handle, partial = tempfile.mkstemp(suffix=".so", dir=where)
        os.close(handle)
        done = subprocess.run(
            [path, *flags, "-x", "c", "-", "-x", "none", "-o", partial, *_libraries(text)],
            input=text, capture_output=True, text=True, close_fds=False, check=False,
        )  # fmt: skip
        if done.returncode:
            kept = target[:-3] + ".c"
            with open(kept, "w") as f:
                f.write(text)
            raise CompileError(
                f"{path} failed: {_first_error(done)} (the source is kept in {kept})"
            )
        _seal(partial)
        os.chmod(partial, 0o700)
        os.replace(partial, target)
    except OSError as e:
        raise CompileError(f"a kernel could not be compiled into {where}: {e}") from e
    finally:
        if partial is not None and os.path.exists(partial):
            os.unlink(partial)
    return time.perf_counter() - start
