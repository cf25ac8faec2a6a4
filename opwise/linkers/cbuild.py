"""From C text to a loaded library: the compiler, the key of the cache, the loader.

The key is a digest of text, compiler, flags, processor and C library. The bytes that were compiled,
or that the cache has read and checked, are loaded from memory: no file can be exchanged in between.
"""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
import platform
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from weakref import WeakValueDictionary

from opwise.config import config
from opwise.errors import CompileError
from opwise.graph import provenance
from opwise.linkers import kernelcache, opwise_c, trusted
from opwise.linkers.trusted import Refused
from opwise.scalar import csource

#: part of the key: the form of the files in the cache
FORM = "2"
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
    """What a load did."""

    #: whether the library was loaded already or in the cache
    hit: bool
    compile_seconds: float
    load_seconds: float
    #: the file in the cache; "" if it was loaded already or is not kept
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
    """Return the path of the C compiler, or None if there is none or ``config.cxx`` is empty.

    One that the flag names and that is not there is replaced: old files of flags name old ones.
    """
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
        return f"The C compiler of the flag cxx, {config.cxx}, was not found"
    return "There is no C compiler (no cc, gcc or clang is on the PATH)"


def warn_of_compiler():
    """Warn, once in a process, if there is not the C compiler that was asked for."""
    if not config.cxx:
        return
    if compiler() is None:
        _say_missing()
    elif config.cxx != "cc" and _find(config.cxx) is None:
        _say_replaced(config.cxx, compiler())


@cache
def _say_replaced(wanted, used):
    provenance.warn(
        f"The C compiler of the flag cxx, {wanted}, was not found: using {used} instead. Set the "
        "flag to the path of a compiler, or remove it."
    )


@cache
def _say_missing():
    provenance.warn(
        f"{no_compiler()}: functions run on slower, built-in loops. Install a compiler, or set the "
        "flag cxx to the path of one. To silence this message, set cxx="
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
        self._worker: threading.Thread | None = None
        self._error: BaseException | None = None
        self._library: opwise_c.Library | None = None
        self._content: bytes | None = None
        self._key = ""
        self._seconds = 0.0
        path = compiler()
        if path is None:
            self._error = CompileError("there is no C compiler: set the flag cxx to one")
            return
        flags = (*_level(path), *FLAGS, *extra_flags())
        parts = "\0".join((FORM, text, _environment(path), *flags))
        self._key = hashlib.sha256(parts.encode()).hexdigest()
        self._library = _loaded.get(self._key)
        if self._library is not None:
            return
        self._name = f"{self._key[:32]}.so"
        self._arguments = path, flags, text, self._name
        self._content = kernelcache.read(self._name, self._key)
        if self._content is None:
            self._worker = threading.Thread(target=self._compile)
            self._worker.start()

    def _compile(self):
        try:
            self._content, seconds = _compile(*self._arguments)
            self._seconds += seconds
        except BaseException as e:  # for whoever waits for the result, in another thread
            self._error = e

    def result(self):
        """Return (library, Report) once it is compiled and loaded; raises CompileError."""
        hit = self._worker is None
        if self._worker is not None:
            self._worker.join()
        if self._error is not None:
            raise self._error
        if hit and self._library is None:
            self._library = _loaded.get(self._key)  # of another Build, since then
        if hit and self._library is not None:
            return self._library, Report(True, 0.0, 0.0, "")
        start = time.perf_counter()
        try:
            library = _library(self._content, self._name)
        except CompileError as e:
            if not hit:
                raise
            # its seal is right, but it is no library of this machine
            kernelcache.warn_damaged(self._name, str(e))
            hit = False
            self._compile()
            if self._error is not None:
                raise self._error from None
            start = time.perf_counter()
            library = _library(self._content, self._name)
        seconds = time.perf_counter() - start
        if hit:
            path = kernelcache.path(self._name)
        else:
            assert self._content is not None
            path = kernelcache.keep(self._name, self._key, self._content)
        self._content = None
        _loaded[self._key] = library
        return library, Report(hit, self._seconds, seconds, path)


# --- the loader -----------------------------------------------------------------------------------

_loads = itertools.count(1)


def _library(content, name):
    """Load the bytes of a library; ``name`` is what profilers show.

    Raises CompileError if they are no library, or there is no way to load it.
    """
    try:
        if _for_debuggers():
            return opwise_c.Library(kernelcache.as_file(name, content), name)
        return _library_in_memory(content, name)
    except (OSError, AttributeError, Refused) as e:
        # there is no memfd_create or no /proc here; or it is no library, and fails below, too
        failure: Exception = e
    for place in kernelcache.temporary_places():
        try:
            with trusted.Temporary(place) as folder:
                folder.write(name, content)
                return opwise_c.Library(os.path.join(folder.path, name), name)
        except (OSError, Refused) as e:
            failure = e  # as where files of this place may not be executed
    raise CompileError(f"a compiled kernel cannot be loaded: {failure}")


def _for_debuggers():
    """Return whether the user's flags ask for debug information, which is looked for in a file."""
    return any(flag.startswith("-g") and flag != "-g0" for flag in extra_flags())


def _library_in_memory(content, name):
    fd = os.memfd_create(name)
    try:
        trusted.write_all(fd, content)
        # The loader takes equal names for one library, and numbers of descriptors come again. Each
        # load spells the path in another way: the digits of a counter are "/." and "//.".
        digits = "".join("//." if digit == "1" else "/." for digit in f"{next(_loads):b}")
        return opwise_c.Library(f"/proc/self/fd{digits}/{fd}", name)
    finally:
        os.close(fd)


# --- the compiler's run ---------------------------------------------------------------------------

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def _compile(path, flags, text, name):
    """Return the bytes of the library of a text, and the seconds it took; raises CompileError."""
    start = time.perf_counter()
    failures: list[Exception] = []
    for place in kernelcache.temporary_places():
        try:
            with trusted.Temporary(place) as folder:
                content = _run(path, flags, text, folder, name)
                return content, time.perf_counter() - start
        except Refused as e:
            failures.append(e)
        except OSError as e:
            failures.append(e)
            if e.filename == path:  # the compiler itself cannot be started
                raise CompileError(f"a kernel could not be compiled: {e}") from e
    raise CompileError(
        f"a kernel could not be compiled: {failures[0]}; TMPDIR can name another folder for the "
        "compiler's files, which only you can write to"
    )


def _run(path, flags, text, folder, name):
    """Run the compiler with all of its files in a folder; OSError: there is no space."""
    import subprocess

    out = os.path.join(folder.path, name)
    done = subprocess.run(
        [path, *flags, "-x", "c", "-", "-x", "none", "-o", out, *_libraries(text)],
        input=text, capture_output=True, text=True, errors="replace", close_fds=False, check=False,
        # its files go where nobody can exchange them, and its messages are read below
        env={**os.environ, "TMPDIR": folder.path, "LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode:
        for code in _NO_SPACE:
            if os.strerror(code) in done.stderr:
                raise OSError(code, os.strerror(code), folder.path)
        kept = kernelcache.keep_source(f"{name[:-3]}.c", text)
        where = f" (the source is kept in {kept})" if kept else ""
        raise CompileError(f"{path} failed: {_first_error(done)}{where}")
    with open(out, "rb") as f:
        return f.read()


def _first_error(done):
    """Return the line of a compiler's output that says what is wrong."""
    lines = done.stderr.splitlines()
    first = next((x for x in lines if "error" in x), done.stderr[:300]).strip()
    if first:
        return first
    if done.returncode < 0:
        return f"it was ended by signal {-done.returncode}"
    return f"it ended with code {done.returncode} and said nothing"
