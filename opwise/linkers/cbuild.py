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
import re
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

from opwise.config import config
from opwise.errors import CompileError
from opwise.graph import provenance
from opwise.linkers import kernelcache, opwise_c, trusted
from opwise.linkers.trusted import Refused
from opwise.scalar import csource

if TYPE_CHECKING:
    import subprocess

#: part of the key: the form of the files in the cache
FORM = "3"
FLAGS = ("-march=native", "-fPIC", "-shared", "-std=gnu11", "-w", *csource.FLAGS)
#: what of -O3 such loops gain from; the rest of it costs time to compile and gives them nothing
_GCC_LEVEL = (
    "-O1", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic", "-fstrict-aliasing", "-ftree-pre",
    "-ftree-vrp", "-fcode-hoisting", "-fgcse", "-fcaller-saves", "-fschedule-insns2",
    # vzeroupper at the end of a function: without it, the next instruction for short vectors, in
    # the loops that call kernels, is delayed
    "-fexpensive-optimizations",
    # several accumulators of a reduction become registers
    "-fpeel-loops",
    # a path for each outcome of a comparison would become a selection of every value on these paths
    "-fno-thread-jumps",
)  # fmt: skip
#: whether what a loop for vectors leaves over is for a second, narrower one, which takes time to
#: compile and pays for short loops
_GCC_REST = "--param=vect-epilogues-nomask={:d}"


@cache
def _level(path: str, short: bool) -> tuple[str, ...]:
    """Return the optimization flags for a compiler. short: for loops of few steps."""
    return ("-O3",) if _is_clang(path) else (*_GCC_LEVEL, _GCC_REST.format(short))


def _is_clang(path: str) -> bool:
    """Return whether a compiler is clang; on macOS, cc and gcc of the system are."""
    if sys.platform == "darwin" and os.path.dirname(path) == "/usr/bin":
        return True
    return "clang" in os.path.basename(os.path.realpath(path))


@dataclass(frozen=True)
class Recipe:
    """How the compiler makes a library of a text."""

    #: the path of the compiler
    compiler: str
    flags: tuple[str, ...]
    #: flags for the linker, after the text
    libraries: tuple[str, ...] = ()
    #: the language, as gcc's option -x names it
    language: str = "c"
    #: what else the library depends on, such as the contents of headers
    depends: tuple[str, ...] = ()

    def key(self, text: str) -> str:
        """Return a digest of all that determines the library."""
        parts = FORM, text, _environment(self.compiler), *self.flags, *self.libraries, *self.depends
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class BuildReport:
    """What a load did."""

    #: whether the library was loaded already or in the cache
    hit: bool
    compile_seconds: float
    load_seconds: float
    #: the file in the cache; "" if it was loaded already or is not kept
    path: str

    def __add__(self, other: BuildReport) -> BuildReport:
        """Return the report of two loads at the same time."""
        return BuildReport(
            self.hit and other.hit,
            max(self.compile_seconds, other.compile_seconds),
            self.load_seconds + other.load_seconds,
            self.path or other.path,
        )


@cache
def _find(command: str) -> str | None:
    """Return the path of a program, or None; as ``shutil.which``, which imports compressors."""
    if os.path.dirname(command):
        places = [command]
    else:
        path = os.environ.get("PATH", os.defpath)
        places = [os.path.join(each, command) for each in path.split(os.pathsep)] if path else []
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return place
    return None


def compiler() -> str | None:
    """Return the path of the C compiler, or None if there is none or ``config.cxx`` is empty.

    If the flag names a compiler that does not exist, as old configuration files do, another one is
    taken.
    """
    command: str = config.cxx
    if not command:
        return None
    if command != "cc":
        found = _find(command)
        if found is not None:
            return found
    return _find("cc") or _find("gcc") or _find("clang")


def cxx_compiler() -> str | None:
    """Return the path of the C++ compiler for code of users, or None if no compiler is used.

    It is the one that the flag cxx names if its name ends in ++, as in g++.
    """
    path = compiler()
    if path is None or path.endswith("++"):
        return path
    return _find("g++") or _find("c++") or _find("clang++")


def no_compiler() -> str:
    """Return why there is no C compiler, as a sentence without its end; '' if there is one."""
    if compiler() is not None:
        return ""
    if not config.cxx:
        return "The flag cxx is empty, so no C compiler is used"
    if config.cxx != "cc":
        return f"The C compiler of the flag cxx, {config.cxx}, was not found"
    return "There is no C compiler (no cc, gcc or clang is on the PATH)"


def warn_of_compiler() -> None:
    """Warn, once in a process, if the C compiler that the flag cxx names does not exist."""
    if not config.cxx:
        return
    if compiler() is None:
        _say_missing()
    elif config.cxx != "cc" and _find(config.cxx) is None:
        _say_replaced(config.cxx, compiler())


@cache
def _say_replaced(wanted: str, used: str | None) -> None:
    provenance.warn(
        f"The C compiler of the flag cxx, {wanted}, was not found: using {used} instead. Set the "
        "flag to the path of a compiler, or remove it."
    )


@cache
def _say_missing() -> None:
    provenance.warn(
        f"{no_compiler()}: functions run on slower, built-in loops. Install a compiler, or set the "
        "flag cxx to the path of one. To silence this message, set cxx="
    )


@cache
def processor() -> str:
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
def _environment(path: str) -> str:
    """Return what determines the binary besides the C text and the flags, as text for the key."""
    info = os.stat(path)
    return "\0".join(
        map(str, (os.path.realpath(path), info.st_size, info.st_mtime_ns, *hardware()))
    )


@cache
def hardware() -> tuple[str | None, str]:
    """Return (version of the C library, what differs between processors)."""
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        library = platform.libc_ver()[1]
    return library, processor()


def kernel_recipe(text: str) -> Recipe | None:
    """Return how to compile a generated kernel, or None if there is no compiler."""
    path = compiler()
    if path is None:
        return None
    given = extra_flags()
    level = _level(path, csource.SHORT_LOOPS in text)
    flags = (*level, *FLAGS, *given, *last_flags(path, given))
    return Recipe(path, flags, _libraries(text))


def _libraries(text: str) -> tuple[str, ...]:
    """Return the linker flags for a C text: linking little takes least time."""
    start = ("-nostdlib",) if sys.platform == "linux" else ()  # nothing runs when it is loaded
    return (*start, "-lm") if csource.USES_LIBM in text else start


def extra_flags() -> tuple[str, ...]:
    """Return the flags that the user added with gcc.cxxflags."""
    return tuple(config.gcc.cxxflags.split())


def last_flags(path: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return flags that take back those of the user, ``given``, that generated C cannot bear.

    Generated C rounds by adding and subtracting a large number, splits numbers into exact parts,
    divides integers as floats, tests for NaN, and relies on integers that wrap. So -ffast-math,
    -Ofast and every part of them are taken back; fused products and sums, other processors and
    other -O levels are not.
    """
    if not given:
        return ()
    kept = ("-fno-fast-math", *(f for f in csource.FLAGS if not f.startswith("-ffp-contract")))
    if _is_clang(path):
        return kept
    precision = ("-mfpmath=sse",) if platform.machine() in ("x86_64", "AMD64") else ()
    return (*kept, "-fno-single-precision-constant", *precision)


#: flags that leave all bits of results as they are; what is not listed may change some
_SAME_BITS = re.compile(
    r"-[DUILlWg].*|-w|-pipe|-O[23]|-march=native|-mtune=.*|-f(PIC|pic|wrapv|openmp|openmp-simd)"
    r"|-fno-(math-errno|trapping-math|strict-aliasing)|-fstrict-aliasing|-ffp-contract=off"
)


def may_change_bits(flags: Iterable[str]) -> bool:
    """Return whether kernels compiled with these flags may differ from built-in loops in bits."""
    return not all(map(_SAME_BITS.fullmatch, flags))


#: libraries by key, as long as some function runs their kernels
_loaded: WeakValueDictionary[str, opwise_c.Library] = WeakValueDictionary()


def load(text: str) -> tuple[opwise_c.Library, BuildReport]:
    """Return (library, BuildReport) for a C text, compiling it if it is not in the cache."""
    return Build(text).result()


class Build:
    """A C text that becomes a library; a compiler runs in the background if the cache lacks it.

    Several can be made before the first ``result`` is asked for: their compilers run side by side.
    recipe: how to compile it (default: as a generated kernel, without headers). start: whether the
    compiler starts now, or when ``start`` is called.
    """

    def __init__(self, text: str, recipe: Recipe | None = None, start: bool = True) -> None:
        # not the thread: after Ctrl-C in Thread.join, Python takes it for one that has ended
        self._compiled: threading.Event | None = None
        self._error: BaseException | None = None
        self._library: opwise_c.Library | None = None
        self._content: bytes | None = None
        self._result: tuple[opwise_c.Library, BuildReport] | None = None
        self._key = ""
        self._seconds = 0.0
        recipe = recipe or kernel_recipe(text)
        if recipe is None:
            self._error = CompileError("there is no C compiler: set the flag cxx to one")
            return
        self._key = recipe.key(text)
        self._library = _loaded.get(self._key)
        if self._library is not None:
            return
        self._name = f"{self._key[:32]}.so"
        self._arguments = recipe, text, self._name
        self._content = kernelcache.read(self._name, self._key)
        if start:
            self.start()

    @property
    def is_known(self) -> bool:
        """Whether no compiler is needed: the library is loaded or cached, or cannot be made."""
        found = self._library is not None or self._content is not None
        return found or self._error is not None

    def start(self) -> None:
        """Start the compiler if the library is neither loaded nor in the cache."""
        if self._compiled is None and not self.is_known:
            compiled = threading.Event()
            # not waited for without end when Python ends: see ``end_compilers``
            thread = threading.Thread(target=self._compile, args=(compiled,), daemon=True)
            with suppress(RuntimeError):  # no thread can be started: ``result`` compiles
                thread.start()
                self._compiled = compiled
                _compilers.builds[self] = os.getpid()

    def keep(self) -> None:
        """Put the library into the cache if the compiler has made one that nobody has asked for."""
        if self._result is None and self._compiled is not None and self.is_done and self._content:
            kernelcache.keep(self._name, self._key, self._content)

    def again(self) -> Build:
        """Return a Build of the same text that has not started."""
        recipe, text, _ = self._arguments
        return Build(text, recipe, start=False)

    @property
    def is_done(self) -> bool:
        """Whether ``result`` need not wait."""
        return self.is_known if self._compiled is None else self._compiled.is_set()

    def wait(self, seconds: float) -> None:
        """Wait until the compiler that was started is done, but not longer than some seconds."""
        if self._compiled is not None:
            self._compiled.wait(max(0.0, seconds))

    def _compile(self, compiled: threading.Event | None = None) -> None:
        try:
            self._content, seconds = _compile(*self._arguments)
            self._seconds += seconds
        except BaseException as e:  # for whoever waits for the result, in another thread
            self._error = e
        finally:
            if compiled is not None:
                compiled.set()

    def result(self) -> tuple[opwise_c.Library, BuildReport]:
        """Return (library, BuildReport) once it is compiled and loaded; raises CompileError."""
        if self._result is None:
            self.start()
            if self._compiled is None and not self.is_known:
                self._compiled = threading.Event()
                self._compile(self._compiled)
            self._result = self._finished()
        return self._result

    def _finished(self) -> tuple[opwise_c.Library, BuildReport]:
        hit = self._compiled is None
        if self._compiled is not None:
            self._compiled.wait()
        if self._error is not None:
            raise self._error
        if hit and self._library is None:
            self._library = _loaded.get(self._key)  # of another Build, since then
        if hit and self._library is not None:
            return self._library, BuildReport(True, 0.0, 0.0, "")
        start = time.perf_counter()
        assert self._content is not None
        try:
            library = _library(self._content, self._name)
        except CompileError as e:
            if not hit:
                raise
            # its seal is right, but it is no library for this processor
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
            path = kernelcache.keep(self._name, self._key, self._content)
        self._content = None
        _loaded[self._key] = library
        return library, BuildReport(hit, self._seconds, seconds, path)


class _Compilers:
    """The compilers that this process has started."""

    def __init__(self) -> None:
        #: builds whose compiler was started in the background, and the process that did so
        self.builds: WeakKeyDictionary[Build, int] = WeakKeyDictionary()
        self.running: set[subprocess.Popen[str]] = set()
        #: whether Python ends, and they are killed
        self.are_ended = False


_compilers = _Compilers()
#: seconds that the end of a program waits for compilers, whose work later processes use, and for
#: what is left to do when they were killed
_EXIT_SECONDS, _KILLED_SECONDS = 30.0, 2.0


def end_compilers() -> None:
    """Wait for the compilers at the end of the program; kill those that take too long, and say so.

    Called when Python ends. Threads of other processes, before a fork, are not there.
    """
    mine = [build for build, process in list(_compilers.builds.items()) if process == os.getpid()]
    end = time.monotonic() + _EXIT_SECONDS
    with suppress(KeyboardInterrupt):  # do not wait any longer
        for build in mine:
            build.wait(end - time.monotonic())
    left = [build for build in mine if not build.is_done]
    if not left:
        return
    _compilers.are_ended = True
    end = time.monotonic() + _KILLED_SECONDS
    while not all(build.is_done for build in left) and time.monotonic() < end:
        for compiler in list(_compilers.running):
            with suppress(OSError):  # it has ended
                os.killpg(compiler.pid, signal.SIGKILL)
        for build in left:
            build.wait(0.05)
    with suppress(OSError, ValueError, AttributeError):  # there may be no stderr any more
        sys.stderr.write(
            f"opwise: the C compiler did not end in time and was killed: {len(left)} "
            f"{'library' if len(left) == 1 else 'libraries'} of kernels were not compiled\n"
        )


# --- the loader -----------------------------------------------------------------------------------

_loads = itertools.count(1)


def _library(content: bytes, name: str) -> opwise_c.Library:
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


def _for_debuggers() -> bool:
    """Return whether the user's flags ask for debug information; debuggers read it from files."""
    return any(flag.startswith("-g") and flag != "-g0" for flag in extra_flags())


def _library_in_memory(content: bytes, name: str) -> opwise_c.Library:
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


def _compile(recipe: Recipe, text: str, name: str) -> tuple[bytes, float]:
    """Return the bytes of the library of a text, and the seconds it took; raises CompileError."""
    start = time.perf_counter()
    failures: list[Exception] = []
    for place in kernelcache.temporary_places():
        try:
            with trusted.Temporary(place) as folder:
                content = _run(recipe, text, folder, name)
                return content, time.perf_counter() - start
        except Refused as e:
            failures.append(e)
        except OSError as e:
            failures.append(e)
            if e.filename == recipe.compiler:  # the compiler itself cannot be started
                raise CompileError(f"a kernel could not be compiled: {e}") from e
    raise CompileError(
        f"a kernel could not be compiled: {failures[0]}; TMPDIR can name another folder for the "
        "compiler's files, which only you can write to"
    )


def _run(recipe: Recipe, text: str, folder: trusted.Folder, name: str) -> bytes:
    """Run the compiler with all of its files in a folder; OSError: there is no space."""
    out = os.path.join(folder.path, name)
    command = [
        recipe.compiler, *recipe.flags, "-x", recipe.language, "-", "-x", "none", "-o", out,
        *recipe.libraries,
    ]  # fmt: skip
    # its files go where nobody can exchange them, and its messages are read below
    done = _ran(command, text, {**os.environ, "TMPDIR": folder.path, "LC_ALL": "C"})
    if done.returncode:
        for code in _NO_SPACE:
            if os.strerror(code) in done.stderr:
                raise OSError(code, os.strerror(code), folder.path)
        if _compilers.are_ended:
            raise CompileError("the compiler was killed when the program ended")
        kept = kernelcache.keep_source(f"{name[:-3]}.c", text)
        where = f" (the source is kept in {kept})" if kept else ""
        raise CompileError(
            f"{recipe.compiler} failed: {_first_error(done)}{where}", messages=done.stderr
        )
    with open(out, "rb") as f:
        return f.read()


def _ran(command: list[str], text: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler, which ``end_compilers`` may kill."""
    import subprocess

    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", close_fds=False, env=env,
        # Ctrl-C in a terminal is for the program, which may handle it and go on
        process_group=0,
    ) as process:  # fmt: skip
        _compilers.running.add(process)
        try:
            output, messages = process.communicate(text)
        except BaseException:  # Ctrl-C, where no thread could be started
            process.kill()
            raise
        finally:
            _compilers.running.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, messages)


def _first_error(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line of a compiler's output that says what is wrong."""
    lines = done.stderr.splitlines()
    first: str = next((x for x in lines if "error" in x), done.stderr[:300]).strip()
    if first:
        return first
    if done.returncode < 0:
        return f"it was ended by signal {-done.returncode}"
    return f"it ended with code {done.returncode} and said nothing"
