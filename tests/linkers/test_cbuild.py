"""The compiler and its cache: what the key covers, broken and unsafe files, several processes."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import opwise
from opwise.config import config
from opwise.errors import CompileError
from opwise.linkers import cbuild, opwise_c
from opwise.scalar import csource

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler"),
]

TEXT = "int ow_answer(void) { return %d; }\n"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of this test alone, and nothing loaded yet."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(cbuild, "_loaded", {})
    monkeypatch.setattr(cbuild, "_private", None)
    use_folder(monkeypatch, folder)
    return folder


def unsafe():
    return pytest.warns(UserWarning, match=r"cache is not a folder that only you can write to")


def use_folder(monkeypatch, folder):
    monkeypatch.setattr(cbuild, "config", _Config(str(folder)))


class _Config:
    """The configuration with another compiledir, which programs cannot change."""

    def __init__(self, compiledir):
        self.compiledir = compiledir

    def __getattr__(self, name):
        return getattr(config, name)


def libraries(folder):
    return sorted(p.name for p in Path(folder).iterdir())


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
    assert {stat.S_IMODE(p.stat().st_mode) for p in cache.iterdir()} == {0o700}


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
    assert cbuild._processor() in text
    assert os.confstr("CS_GNU_LIBC_VERSION") in text


def file_of(text, cache, monkeypatch):
    """Return where the library of a text will be in the cache, and its bytes; nothing is loaded."""
    use_folder(monkeypatch, cache.with_name("other"))
    made = Path(cbuild.load(text)[1].path)
    use_folder(monkeypatch, cache)
    cache.mkdir(mode=0o700)
    cbuild._loaded.clear()
    return cache / made.name, made.read_bytes()


@pytest.mark.parametrize("cut", ["empty", "half", "last byte", "one byte changed", "text"])
def test_a_broken_file_is_made_anew(cache, monkeypatch, cut):
    """A program that died while it wrote, or a full disk, must not crash the next one."""
    path, whole = file_of(TEXT % 4, cache, monkeypatch)
    broken = {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "last byte": whole[:-1],
        "one byte changed": whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        "text": b"no library at all, but long enough to hold a digest, which it does not",
    }[cut]
    path.write_bytes(broken)
    path.chmod(0o700)
    library, report = cbuild.load(TEXT % 4)
    assert not report.hit and library.symbol("ow_answer")
    assert path.read_bytes() == whole


def test_a_file_that_cannot_be_loaded_is_made_anew(cache, monkeypatch):
    """Its digest is right, and still it is no library: it was made on another machine."""
    path, _ = file_of(TEXT % 5, cache, monkeypatch)
    path.write_bytes(b"of another architecture")
    cbuild._seal(path)
    path.chmod(0o700)
    library, report = cbuild.load(TEXT % 5)
    assert not report.hit and library.symbol("ow_answer")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_not_used(cache, mode):
    cache.mkdir()
    cache.chmod(mode)
    with unsafe():
        library, report = cbuild.load(TEXT % 6)
    assert library.symbol("ow_answer")
    assert libraries(cache) == []
    private = Path(report.path).parent
    assert private != cache and stat.S_IMODE(private.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_library_that_others_can_write_to_is_not_loaded(cache, mode):
    _, report = cbuild.load(TEXT % 7)
    Path(report.path).chmod(mode)
    cbuild._loaded.clear()
    _, report = cbuild.load(TEXT % 7)
    assert not report.hit
    assert stat.S_IMODE(os.stat(report.path).st_mode) == 0o700


def test_a_folder_of_somebody_else_is_not_used(cache, monkeypatch):
    cache.mkdir(mode=0o700)
    genuine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: genuine + 1)
    with unsafe():
        assert Path(cbuild.folder()) != cache


def test_a_link_is_not_used_as_the_folder(cache, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    cache.symlink_to(tmp_path / "elsewhere")
    with unsafe():
        cbuild.load(TEXT % 8)
    assert libraries(tmp_path / "elsewhere") == []


def test_where_the_folder_is_a_file(cache):
    cache.write_text("")
    with unsafe():
        library, report = cbuild.load(TEXT % 9)
    assert library.symbol("ow_answer") and not report.path.startswith(str(cache))


def test_a_folder_that_cannot_be_written(cache, monkeypatch):
    cache.mkdir(mode=0o500)
    genuine = os.access
    monkeypatch.setattr(
        os, "access", lambda p, how: str(p) != str(cache) and genuine(p, how)
    )  # root may write everywhere
    with unsafe():
        library, _ = cbuild.load(TEXT % 10)
    assert library.symbol("ow_answer") and libraries(cache) == []


def test_the_private_folder_is_one(cache, monkeypatch):
    cache.mkdir()
    cache.chmod(0o777)
    with unsafe():
        private = cbuild.folder()
    assert cbuild.folder() == private  # and no second warning


def test_several_texts_are_compiled_at_the_same_time(cache):
    builds = [cbuild.Build(TEXT % k) for k in (101, 102, 103)]
    made = [build.result() for build in builds]
    assert len(libraries(cache)) == 3 and not any(report.hit for _, report in made)
    total = made[0][1] + made[1][1]
    assert total.compile_seconds == max(report.compile_seconds for _, report in made[:2])
    assert cbuild.Build(TEXT % 101).result()[0] is made[0][0]


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

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(CompileError, match="no more processes"):
        cbuild.load(TEXT % 11)
    assert libraries(cache) == []


def test_a_full_disk(cache, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", fail)
    with pytest.raises(CompileError, match="No space left"):
        cbuild.load(TEXT % 12)


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
    assert [p.suffix for p in folder.iterdir()] == [".so"], "no partial file is left"
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


@pytest.mark.parametrize("flags, reason, warned", [
    ("", "There is no C compiler (no cc, gcc or clang is on the PATH)", True),
    ("cxx=/nowhere/gcc", "The flag cxx names a C compiler that is not there, /nowhere/gcc", True),
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
