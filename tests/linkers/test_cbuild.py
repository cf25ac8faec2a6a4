"""The compiler and its cache: what the key covers, broken and unsafe files, several processes."""

import ctypes
import errno
import functools
import os
import platform
import shutil
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.config import config
from opwise.errors import CompileError
from opwise.linkers import cbuild, kernelcache, opwise_c
from opwise.linkers.trusted import Folder
from opwise.scalar import csource
from opwise.tensor import nnet

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler"),
]

TEXT = "int ow_answer(void) { return %d; }\n"


def libraries(folder):
    """Return the names in a folder, without the mark of the last sweep."""
    return sorted(p.name for p in Path(folder).iterdir() if p.name != "last-sweep")


def call(library):
    """Return what the function of a TEXT returns."""
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("ow_answer"))()


def not_used(reason):
    return pytest.warns(UserWarning, match=rf"cache is not used: {reason}")


damaged = functools.partial(pytest.warns, UserWarning, match=r"\.so is not loaded")


def test_a_library_is_compiled_once(cache):
    library, report = cbuild.load(TEXT % 1)
    assert not report.hit and report.compile_seconds > 0
    assert library.symbol("ow_answer")
    (name,) = libraries(cache)
    assert report.path == str(cache / name)
    again, report = cbuild.load(TEXT % 1)
    assert again is library and report.hit and report.compile_seconds == 0
    cbuild._loaded.clear()
    _, report = cbuild.load(TEXT % 1)
    assert report.hit and report.compile_seconds == 0
    assert libraries(cache) == [name]


def test_the_folder_and_its_files_are_closed_to_others(cache):
    cbuild.load(TEXT % 2)
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in cache.iterdir()} == {0o600}


def test_what_the_key_covers(cache, flags, monkeypatch):
    def files_after(change):
        change()
        cbuild._loaded.clear()
        cbuild.load(TEXT % 3)
        return len(libraries(cache))

    usual = config.gcc.cxxflags
    assert files_after(lambda: None) == 1
    assert files_after(lambda: flags({"gcc.cxxflags": f"{usual} -DOTHER"})) == 2
    assert files_after(lambda: flags({"gcc.cxxflags": f"{usual} -DOTHER -DMORE"})) == 3
    assert files_after(lambda: flags({"gcc.cxxflags": usual})) == 3
    assert files_after(lambda: monkeypatch.setattr(cbuild, "FLAGS", (*cbuild.FLAGS, "-DX"))) == 4
    environment = cbuild._environment
    for part in ("another processor", "another C library"):
        monkeypatch.setattr(cbuild, "_environment", lambda path, p=part: environment(path) + p)
        assert files_after(lambda: None) == len(libraries(cache))
    assert len(libraries(cache)) == 6
    cbuild.load(TEXT % 33)
    assert len(libraries(cache)) == 7


def test_the_environment_names_compiler_library_and_processor():
    text = cbuild._environment(cbuild.compiler())
    assert os.path.realpath(cbuild.compiler()) in text
    assert cbuild.processor() in text
    assert os.confstr("CS_GNU_LIBC_VERSION") in text


def file_of(text):
    """Return where the library of a text is in the cache, and its bytes; nothing is loaded."""
    path = Path(cbuild.load(text)[1].path)
    cbuild._loaded.clear()
    return path, path.read_bytes()


@pytest.mark.parametrize("cut", ["empty", "half", "last byte", "one byte changed", "text"])
def test_a_broken_file_is_made_anew(cache, cut):
    """A program that died while it wrote, or a full disk, must not crash the next one."""
    path, whole = file_of(TEXT % 4)
    broken = {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "last byte": whole[:-1],
        "one byte changed": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        "text": b"no library at all, but long enough to hold a digest, which it does not",
    }[cut]
    path.write_bytes(broken)
    with damaged():
        library, report = cbuild.load(TEXT % 4)
    assert not report.hit and call(library) == 4
    assert path.read_bytes() == whole


@pytest.mark.parametrize("how", [shutil.copyfile, os.replace, os.link, os.symlink])
def test_a_file_under_the_name_of_another_kernel_is_made_anew(cache, how):
    """It is whole and our own, but of another key: its functions have the same names."""
    (one, _), (two, whole) = file_of(TEXT % 41), file_of(TEXT % 42)
    if how is not shutil.copyfile:
        two.unlink()
    how(one, two)
    with damaged():
        library, report = cbuild.load(TEXT % 42)
    assert not report.hit and call(library) == 42
    assert two.read_bytes() == whole and not two.is_symlink()
    cbuild._loaded.clear()
    library, report = cbuild.load(TEXT % 42)
    assert report.hit and call(library) == 42


@pytest.mark.parametrize("other", ["folder", "pipe", "device"])
def test_what_is_no_file_does_not_stop_a_kernel(cache, other):
    path, _ = file_of(TEXT % 43)
    path.unlink()
    make = {
        "folder": lambda: path.mkdir(),
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
    }
    make[other]()
    with pytest.warns(UserWarning) as warned:
        assert call(cbuild.load(TEXT % 43)[0]) == 43
    assert "is not loaded" in str(warned[0].message)
    assert len(warned) == 1 + (other == "folder")  # which a file cannot replace
    assert path.is_dir() == (other == "folder")


def test_many_broken_files_bring_one_warning(cache):
    paths = [file_of(TEXT % k)[0] for k in (44, 45, 46)]
    for path in paths:
        path.write_bytes(b"broken")
    with damaged() as warned:
        assert [call(cbuild.load(TEXT % k)[0]) for k in (44, 45, 46)] == [44, 45, 46]
    assert len(warned) == 1 and str(paths[0]) in str(warned[0].message)


def test_a_file_that_cannot_be_loaded_is_made_anew(cache):
    """Its seal is right, and still it is no library: it was made on another machine."""
    path, _ = file_of(TEXT % 5)
    build = cbuild.Build(TEXT % 5)
    build.result()
    content = b"of another architecture"
    path.write_bytes(content + kernelcache._seal(build._key, content))
    cbuild._loaded.clear()
    with damaged():
        library, report = cbuild.load(TEXT % 5)
    assert not report.hit and call(library) == 5


# --- loading --------------------------------------------------------------------------------------


def test_libraries_that_live_at_the_same_time_are_different_ones(cache):
    """The loader takes equal paths for one library, and numbers of descriptors come again."""
    for again in range(2):
        made = [cbuild.load(TEXT % k)[0] for k in range(200, 216)]
        assert [call(library) for library in made] == list(range(200, 216)), again
        cbuild._loaded.clear()


def test_no_descriptor_is_left_open(cache, open_files):
    cbuild.load(TEXT % 50)
    before = open_files()
    for _ in range(20):
        cbuild._loaded.clear()
        cbuild.load(TEXT % 50)
    assert not open_files() - before  # garbage of other tests may close its own files meanwhile


def test_what_is_loaded_are_the_bytes_that_were_checked(cache, monkeypatch):
    """A file that is exchanged after it was read, even in place, changes nothing."""
    path, _ = file_of(TEXT % 51)
    _, other = file_of(TEXT % 52)
    genuine = kernelcache.read

    def read(name, key):
        content = genuine(name, key)
        path.write_bytes(other)
        return content

    monkeypatch.setattr(kernelcache, "read", read)
    library, report = cbuild.load(TEXT % 51)
    assert report.hit and call(library) == 51


def test_the_name_of_the_file_is_what_profilers_see(cache):
    library, report = cbuild.load(TEXT % 53)
    name = os.path.basename(report.path)
    assert f"/memfd:{name}" in Path("/proc/self/maps").read_text()
    assert library.name == name


def test_with_debug_information_kernels_are_files(cache, flags):
    """Debuggers open what is mapped by its name."""
    flags({"gcc.cxxflags": f"{config.gcc.cxxflags} -g"})
    library, _ = cbuild.load(TEXT % 58)
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    (path,) = {Path(path) for path in mapped if path.endswith(library.name)}
    assert path.exists() and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert call(library) == 58


def no_memfd(monkeypatch):
    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)


def no_proc(monkeypatch):
    genuine = opwise_c.Library

    def library(path, name=None):
        if path.startswith("/proc"):
            raise OSError(f"{path}: cannot open shared object file: No such file or directory")
        return genuine(path, name)

    monkeypatch.setattr(opwise_c, "Library", library)


def no_such_call(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")


@pytest.mark.parametrize("lack", [no_memfd, no_proc, no_such_call])
def test_without_files_in_memory_a_closed_folder_serves(cache, monkeypatch, tmp_path, lack):
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    lack(monkeypatch)
    libraries_ = [cbuild.load(TEXT % k)[0] for k in (54, 55)]
    assert list(map(call, libraries_)) == [54, 55]
    cbuild._loaded.clear()
    library, report = cbuild.load(TEXT % 54)
    assert report.hit and call(library) == 54
    assert os.listdir(place) == []


def test_a_fault_in_the_thread_that_compiles_is_told(cache, monkeypatch):
    def compile_(*args):
        raise MemoryError("in another thread")

    monkeypatch.setattr(cbuild, "_compile", compile_)
    with pytest.raises(MemoryError, match="in another thread"):
        cbuild.load(TEXT % 57)


def test_where_nothing_can_be_loaded(cache, monkeypatch):
    def library(path, name=None):
        raise OSError("failed to map segment from shared object")

    monkeypatch.setattr(opwise_c, "Library", library)
    with pytest.raises(CompileError, match="cannot be loaded: failed to map segment"):
        cbuild.load(TEXT % 56)
    assert libraries(cache) == []


# --- folders that are not safe, or cannot be written to -------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702])
@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_that_others_can_write_to_is_not_used(cache, mode, level):
    cache.mkdir()
    [cache, cache.parent][level].chmod(mode)
    with not_used(rf"\S+ can be written to by (its group|everybody) \(mode {mode:04o}\)") as warned:
        library, report = cbuild.load(TEXT % 6)
        cbuild.load(TEXT % 61)
    assert call(library) == 6 and report.path == ""
    assert libraries(cache) == [] and len(warned) == 1
    said = str(warned[0].message)
    assert f"Run: chmod go-w {[cache, cache.parent][level]}, or set the flag base_compiled" in said


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_library_that_others_can_write_to_is_not_loaded(cache, mode):
    path, _ = file_of(TEXT % 7)
    path.chmod(mode)
    with damaged():
        _, report = cbuild.load(TEXT % 7)
    assert not report.hit
    assert stat.S_IMODE(os.stat(report.path).st_mode) == 0o600


def test_a_link_is_not_used_as_the_folder(cache, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.symlink_to(tmp_path / "elsewhere")
    with not_used(f"{cache} is a symbolic link"):
        cbuild.load(TEXT % 8)
    assert libraries(tmp_path / "elsewhere") == []


def test_where_the_folder_is_a_file(cache):
    cache.write_text("")
    with not_used(f"{cache} is not a folder"):
        library, report = cbuild.load(TEXT % 9)
    assert call(library) == 9 and report.path == ""


WRITING = {
    "read-only": (errno.EROFS, r"is read-only \(Read-only file system\).* Make it writable"),
    "not allowed": (errno.EACCES, r"is read-only \(Permission denied\).* Make it writable"),
    "full": (errno.ENOSPC, r"is full \(No space left on device\).* Free some space there"),
    "over quota": (errno.EDQUOT, r"is full \(Disk quota exceeded\).* Free some space there"),
    "broken": (errno.EIO, r"cannot be written to \(Input/output error\).* Look at its disk"),
}


@pytest.mark.parametrize("trouble", WRITING)
def test_a_folder_that_cannot_be_written_to_is_read(cache, monkeypatch, trouble):
    """Cached kernels load silently; a missing one brings one warning, and runs all the same."""
    code, said = WRITING[trouble]
    file_of(TEXT % 10)

    def write(self, name, content):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Folder, "write", write)
    library, report = cbuild.load(TEXT % 10)
    assert report.hit and call(library) == 10
    with pytest.warns(UserWarning, match=said) as warned:
        made = [cbuild.load(TEXT % k) for k in (1001, 1002)]
    assert [call(library) for library, _ in made] == [1001, 1002]
    assert [report.path for _, report in made] == ["", ""] and len(warned) == 1


def test_with_a_bound_of_0_nothing_is_kept(use_cache, tmp_path):
    cache = use_cache(tmp_path / "cache", compiledir_bytes=0)
    assert call(cbuild.load(TEXT % 62)[0]) == 62
    assert libraries(cache) == []


def test_a_folder_that_is_deleted_meanwhile(cache, monkeypatch):
    cbuild.load(TEXT % 63)
    shutil.rmtree(cache)
    assert call(cbuild.load(TEXT % 64)[0]) == 64
    assert len(libraries(cache)) == 1
    build = cbuild.Build(TEXT % 65)
    shutil.rmtree(cache)  # while the compiler is at work
    assert call(build.result()[0]) == 65
    assert len(libraries(cache)) == 1


# --- the compiler ---------------------------------------------------------------------------------


def test_several_texts_are_compiled_at_the_same_time(cache):
    builds = [cbuild.Build(TEXT % k) for k in (101, 102, 103)]
    made = [build.result() for build in builds]
    assert len(libraries(cache)) == 3 and not any(report.hit for _, report in made)
    total = made[0][1] + made[1][1]
    assert total.compile_seconds == max(report.compile_seconds for _, report in made[:2])
    assert cbuild.Build(TEXT % 101).result()[0] is made[0][0]


def test_threads_compile_the_same_and_other_texts(cache):
    wanted = [300, 301, 302, 303] * 3
    with ThreadPoolExecutor(len(wanted)) as pool:
        made = list(pool.map(lambda k: cbuild.load(TEXT % k)[0], wanted))
    assert list(map(call, made)) == wanted
    assert len(libraries(cache)) == 4


def test_a_text_may_call_the_mathematics_library(cache):
    text = csource.prototypes(["lgamma"], ["float64"])
    text += "double ow_answer(double x) { return lgamma(x); }\n"
    assert cbuild.load(text)[0].symbol("ow_answer")
    assert csource.prototypes([], ["float64"]) == ""


def test_a_text_that_does_not_compile(cache):
    with pytest.raises(CompileError, match=r"failed: .*error.*the source is kept in .*\.c") as e:
        cbuild.load("int broken(void) { return undeclared; }\n")
    (kept,) = libraries(cache)
    assert kept.endswith(".c") and str(cache / kept) in str(e.value)
    assert "undeclared" in (cache / kept).read_text()


def test_a_compiler_that_cannot_be_started(cache, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no more processes")

    monkeypatch.setattr(cbuild, "_ran", fail)
    with pytest.raises(CompileError, match="no more processes"):
        cbuild.load(TEXT % 11)
    assert libraries(cache) == []


@pytest.fixture
def full_disk(tmp_path, monkeypatch):
    """The folder for temporary files of a compiler that reports a full disk."""
    place = tmp_path / "full"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    genuine = cbuild._ran

    def run(command, source, env):
        folder = env["TMPDIR"]
        if not folder.startswith(str(place)):
            return genuine(command, source, env)
        text = f"error writing to {folder}/x.s: No space left on device"
        return subprocess.CompletedProcess(command, 1, "", text)

    monkeypatch.setattr(cbuild, "_ran", run)
    return place


def test_where_there_is_no_space_another_place_serves(cache, full_disk):
    assert call(cbuild.load(TEXT % 12)[0]) == 12
    assert os.listdir(full_disk) == []


def test_where_everything_is_full(cache, full_disk, monkeypatch):
    monkeypatch.setattr(kernelcache, "temporary_places", lambda: [str(full_disk)])
    said = r"could not be compiled: .*No space left on device.* TMPDIR can name another folder"
    with pytest.raises(CompileError, match=said):
        cbuild.load(TEXT % 12)
    assert libraries(cache) == []


def test_the_files_of_the_compiler_are_closed_to_others(cache, tmp_path, monkeypatch):
    """As gcc's own, which anybody could exchange where TMPDIR is open and not sticky."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "open"))
    used, genuine = [], cbuild._ran

    def run(command, source, env):
        used.append(env["TMPDIR"])
        assert stat.S_IMODE(os.stat(used[-1]).st_mode) == 0o700
        return genuine(command, source, env)

    monkeypatch.setattr(cbuild, "_ran", run)
    assert call(cbuild.load(TEXT % 66)[0]) == 66
    assert not used[0].startswith(str(tmp_path / "open")) and not os.path.exists(used[0])


def test_messages_of_a_compiler_do_not_depend_on_the_language(cache, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with pytest.raises(CompileError, match="error: 'undeclared' undeclared"):
        cbuild.load("int broken(void) { return undeclared; }\n")


def test_without_a_compiler(flags):
    flags(cxx="")
    assert cbuild.compiler() is None
    with pytest.raises(CompileError, match="there is no C compiler"):
        cbuild.load(TEXT % 13)


def test_another_compiler(flags):
    flags(cxx="gcc")
    assert os.path.basename(cbuild.compiler()) == "gcc"


def test_a_compiler_that_is_not_there(flags):
    """``cc`` or what else there is takes its place: the flag of an old file must not cost the C."""
    flags(cxx="no-such-compiler")
    assert cbuild.compiler() is not None
    with pytest.warns(UserWarning, match="no-such-compiler, was not found: using .*cc instead"):
        cbuild.warn_of_compiler()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cbuild.warn_of_compiler()  # once is enough
        flags(cxx="gcc")
        cbuild.warn_of_compiler()


PROGRAM = """
import sys
from opwise.linkers import cbuild
library, report = cbuild.load({text!r})
assert library.symbol("ow_answer")
print(report.path, int(report.hit))
"""


def test_several_processes_compile_the_same(tmp_path):
    root = str(Path(opwise.__file__).parents[1])
    environment = {**os.environ, "OPWISE_FLAGS": f"base_compiledir={tmp_path}", "PYTHONPATH": root}
    command = [sys.executable, "-c", PROGRAM.format(text=TEXT % 14)]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [p.communicate()[0].split() for p in running]
    assert [p.returncode for p in running] == [0] * 4
    assert len({path for path, _ in said}) == 1
    (folder,) = tmp_path.iterdir()
    (name,) = libraries(folder)
    assert name.endswith(".so"), "no partial file is left"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split()[1] == "1"


def test_missing_symbols_and_libraries(cache, tmp_path):
    library, _ = cbuild.load(TEXT % 15)
    with pytest.raises(OSError, match="has no ow_nothing"):
        library.symbol("ow_nothing")
    with pytest.raises(OSError):
        opwise_c.Library(str(tmp_path / "nothing.so"))


WITHOUT = """
import sys
import numpy as np
import opwise, opwise.tensor as T
x = T.dmatrix("x")
quick = opwise.function([x], T.tanh(x), mode="FAST_COMPILE")
print("quick", file=sys.stderr)
for factor in (2, 3):
    f = opwise.function([x], T.tanh(x) * factor, mode=opwise.ProfileMode("c|py", "fast_run"))
    f(np.ones((2, 2)))
f.maker.mode.print_summary()
print(opwise.advise(opwise.function([x], T.tanh(x), mode="FAST_RUN"), np.ones((2, 2))))
"""


@pytest.mark.parametrize("system, path, clang", [
    ("linux", "/usr/bin/cc", False),
    ("darwin", "/usr/bin/cc", True),
    ("darwin", "/opt/homebrew/bin/gcc-14", False),
    ("linux", "/usr/lib/llvm/bin/clang-19", True),
])  # fmt: skip
def test_the_level_fits_the_compiler(system, path, clang, monkeypatch):
    """cc of macOS is clang, which gets nothing from gcc's single options."""
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os.path, "realpath", lambda path: path)
    cbuild._level.cache_clear()
    short, long = (cbuild._level(path, short) for short in (True, False))
    assert (short == ("-O3",)) == (long == ("-O3",)) == (short == long) == clang
    cbuild._level.cache_clear()


@pytest.mark.parametrize("flags, reason, warned", [
    ("", "There is no C compiler (no cc, gcc or clang is on the PATH)", True),
    ("cxx=/nowhere/gcc", "The C compiler of the flag cxx, /nowhere/gcc, was not found", True),
    ("cxx=", "The flag cxx is empty, so no C compiler is used", False),
])  # fmt: skip
def test_a_missing_compiler_is_said(flags, reason, warned, tmp_path):
    """Once as a warning, for the first function that would have used it; in reports and advice."""
    env = {**os.environ, "OPWISE_FLAGS": flags, "PATH": str(tmp_path)}
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count(f"UserWarning: {reason}") == warned
    assert reason not in done.stderr.partition("quick")[0]
    summary, _, advice = done.stdout.partition("Compiler")
    assert f"  {reason}: loops ran on built-in kernels" in summary
    assert f"{reason}: loops run on built-in kernels" in advice and "install gcc" in advice


@pytest.mark.parametrize("path", [None, "", "missing:bin", "bin:other", "other::bin", "plain:bin"])
@pytest.mark.parametrize("command", ["tool", "bin/tool", "./plain/tool", "nowhere", "bin"])
def test_a_program_is_found_as_in_a_shell(path, command, tmp_path, monkeypatch):
    """Those that may be executed, in the order of PATH; folders and other files are none."""
    for folder, mode in (("bin", 0o755), ("other", 0o755), ("plain", 0o644)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "tool").write_text("")
        (tmp_path / folder / "tool").chmod(mode)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path) if path is not None else monkeypatch.delenv("PATH")
    found, expected = cbuild._find.__wrapped__(command), shutil.which(command)
    assert (found and os.path.normpath(found)) == (expected and os.path.normpath(expected))


# --- flags of users -------------------------------------------------------------------------------


def _rounding_outputs():
    """Return (inputs, outputs) that round, split numbers, divide integers, or look for NaN."""
    x, d, h = T.fvector("x"), T.dvector("d"), T.TensorType("float16", (False,))("h")
    i, j = T.ivector("i"), T.iscalar("j")
    real = [each for v in (x, d) for each in (v**1.7, T.exp(v), T.log(v), T.tanh(v), T.gamma(v))]
    real += [each for v in (x, d) for each in (T.gammaln(v), T.psi(v), T.tri_gamma(v), T.erfinv(v))]
    real += [T.erf(d), T.j0(d), T.i0(d), nnet.sigmoid(x), nnet.softplus(d), d.sum(), d // 3.0]
    exact = [T.isnan(x), T.isinf(d), i // j, i % j, x % 3.0, T.sgn(d), T.ceil(d), 1 / T.ceil(d)]
    return [x, d, h, i, j], [*real, *exact, h * 1.3, T.cast(d, "float16"), T.maximum(d, 0.5)]


def _rounding_values():
    d = np.random.RandomState(0).uniform(-5, 5, 1999)
    d[::97], d[1::97], d[2::97] = np.nan, np.inf, -np.inf
    d[3::97], d[4::97], d[5::97] = 0.0, -0.0, 5e-324
    i = np.random.RandomState(1).randint(-10000, 10000, d.size).astype("int32") * 49
    return d.astype("float32"), d, d.astype("float16"), i, np.int32(49)


def _bits(values):
    """Return the bytes of values, all NaN alike: gcc may exchange operands, which swaps signs."""
    return np.where(values != values, np.nan, values).astype(values.dtype).tobytes()


@pytest.fixture(scope="module")
def unflagged():
    """The results without flags of users."""
    f = opwise.function(*_rounding_outputs())
    return f(*_rounding_values())


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(
    "given",
    [
        "-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math",
        "-freciprocal-math", "-ffinite-math-only", "-fno-signed-zeros", "-ffast-math -mrecip",
        "-fsingle-precision-constant", "-mfpmath=387", "-ftrapv", "-fno-wrapv", "-O2", "-O3",
    ],
)  # fmt: skip
def test_flags_that_would_break_functions_are_taken_back(flags, unflagged, given):
    if "-m" in given.replace("-math", "") and platform.machine() != "x86_64":
        pytest.skip("a flag for x86")
    flags({"gcc.cxxflags": f"{config.gcc.cxxflags} {given}"})
    inputs, outputs = _rounding_outputs()
    f, nodes = opwise.function(inputs, outputs), [output.owner for output in outputs]
    for node, result, wanted in zip(nodes, f(*_rounding_values()), unflagged, strict=True):
        assert _bits(result) == _bits(wanted), node


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("given", ["-mno-fma", "-march=x86-64", "-ffp-contract=fast", "-O0"])
def test_flags_that_change_last_bits_keep_functions_right(flags, unflagged, given):
    if given.startswith("-m") and platform.machine() != "x86_64":
        pytest.skip("a flag for x86")
    flags({"gcc.cxxflags": f"{config.gcc.cxxflags} {given}"})
    f = opwise.function(*_rounding_outputs())
    for result, wanted in zip(f(*_rounding_values()), unflagged, strict=True):
        if result.dtype.kind == "f":
            tolerance = 64 * np.finfo(result.dtype).eps
            np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(result, wanted)
