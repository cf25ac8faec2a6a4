"""The cache among other users, killed processes and many processes at once: all of it for real."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import opwise
from opwise.linkers import cbuild

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(cbuild.compiler() is None, reason="there is no C compiler"),
]

ROOT = str(Path(opwise.__file__).parents[1])
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

#: what every program begins with: ``answer(n)`` compiles or loads a function that returns n
START = """
import ctypes, os, random, signal, sys, time, warnings
from opwise.linkers import cbuild, kernelcache

def answer(n):
    cbuild._loaded.clear()
    library, report = cbuild.load("int ow_answer(void) { return %d; }\\n" % n)
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("ow_answer"))(), report.hit
"""


def command(code, *args):
    return [sys.executable, "-W", "always", "-c", START + code, *map(str, args)]


def environment(cache, **more):
    flags = f"base_compiledir={cache},compiledir_format=kernels"
    return {**os.environ, "OPWISE_FLAGS": flags, "PYTHONPATH": ROOT, **more}


def run(code, cache, *args, **more):
    """Run a program with a cache folder; return its process, which has ended well."""
    done = subprocess.run(
        command(code, *args), env=environment(cache, **more), capture_output=True, text=True,
        timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def public():
    """A folder of root's that others can enter; pytest's own are closed to them."""
    path = Path(tempfile.mkdtemp(prefix="opwise-public-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


# --- another user ---------------------------------------------------------------------------------

#: owns the base folder, and lets the path lead to a file of theirs and back as fast as it can
SWAP = """
import os, sys
base, seconds = sys.argv[1], float(sys.argv[2])
import time
end = time.time() + seconds
os.chdir(base)
print("ready", flush=True)
while time.time() < end:
    try:
        os.rename("kernels", "real"); os.rename("evil", "kernels")
        os.rename("kernels", "evil"); os.rename("real", "kernels")
    except OSError:
        time.sleep(0.001)
"""

VICTIM = """
end, given = time.time() + float(sys.argv[1]), []
while time.time() < end:
    given.append(answer(1)[0])
print(len(given), sorted(set(given)))
"""


def plant(base, number):
    """Give nobody a library with a right seal that returns 666 for answer(number)."""
    code = f"""
build = cbuild.Build("int ow_answer(void) {{ return {number}; }}\\n")
build.result()
text = "int ow_answer(void) {{ return 666; }}"
evil, _ = cbuild._compile(cbuild.Recipe(cbuild.compiler(), cbuild.FLAGS), text, "x.so")
folder = {str(base)!r} + "/evil"
os.mkdir(folder)
with open(folder + "/" + build._name, "wb") as f:
    f.write(evil + kernelcache._seal(build._key, evil))
os.system("chown -R {NOBODY} " + folder)
"""
    run(code, base.parent / "other")


def attacked(base, seconds):
    """Return what a program that loads all the time was given, and its warnings."""
    with subprocess.Popen(
        [shutil.which("python3", path="/usr/bin:/bin"), "-c", SWAP, str(base), str(seconds)],
        user=NOBODY, stdout=subprocess.PIPE, text=True,
    ) as attacker:  # fmt: skip
        assert attacker.stdout.readline() == "ready\n"
        done = run(VICTIM, base, seconds)
    return done


@as_root
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("python3", path="/usr/bin:/bin"), reason="nobody has a Python")
def test_who_owns_the_base_folder_cannot_bring_in_code(public):
    base = public / "base"
    base.mkdir()
    (base / "kernels").mkdir(mode=0o700)
    plant(base, 1)
    os.chown(base, NOBODY, -1)
    done = attacked(base, 5)
    count, answers = done.stdout.split(None, 1)
    assert answers.strip() == "[1]" and int(count) > 10
    assert "belongs to" in done.stderr and done.stderr.count("UserWarning") == 1


@as_root
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("python3", path="/usr/bin:/bin"), reason="nobody has a Python")
def test_who_can_write_beside_the_cache_cannot_bring_in_code(public):
    """The base folder is like /tmp: the cache is used, and stays what it is."""
    base = public / "base"
    base.mkdir()
    (base / "kernels").mkdir(mode=0o700)
    plant(base, 1)
    base.chmod(0o1777)
    done = attacked(base, 5)
    count, answers = done.stdout.split(None, 1)
    assert answers.strip() == "[1]" and int(count) > 100
    assert done.stderr == "" and len(list((base / "kernels").glob("*.so"))) == 1


AS_NOBODY = """
import fcntl, pwd, shutil, subprocess, tempfile  # nobody cannot read them afterwards
os.setgid(65534); os.setuid(65534)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(answer(1), [str(w.message) for w in said])
    print(answer(2), answer(3), [str(w.message) for w in said])
"""


@as_root
def test_a_cache_of_roots_is_read_by_others_and_not_written(public):
    run("answer(1)", public)
    kernels = public / "kernels"
    kernels.chmod(0o755)
    for file in kernels.iterdir():
        file.chmod(0o644)
    before = sorted(os.listdir(kernels))
    first, second = run(AS_NOBODY, public, TMPDIR="/tmp").stdout.splitlines()
    assert first == "(1, True) []"
    assert second.startswith(
        f"(2, False) (3, False) ['The cache of compiled code {kernels} is read-only"
    )
    assert second.count("is read-only (Permission denied)") == 1
    assert sorted(os.listdir(kernels)) == before


@as_root
def test_a_cache_that_cannot_be_read_says_so(public):
    run("answer(1)", public)
    first, second = run(AS_NOBODY, public, TMPDIR="/tmp").stdout.splitlines()
    assert first.startswith("(1, False) ['The cache of compiled code")
    assert "kernels cannot be read (it belongs to root (uid 0), mode 0700)" in first
    assert second.startswith("(2, False) (3, False) [") and second.count("The cache") == 1


# --- disks and systems ----------------------------------------------------------------------------


def in_a_namespace(script, code, cache):
    """Run a program after a shell script that changes mounts, seen by them alone."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root with unshare can change mounts")
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounts cannot be changed here")
    done = subprocess.run(
        ["unshare", "-m", "bash", "-ec", f'{script}\nexec "$@"', "bash", *command(code)],
        env=environment(cache), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done


ANSWERS = "print(answer(1), answer(1), answer(2), answer(3))"


def test_a_disk_that_is_full(tmp_path):
    done = in_a_namespace(
        f"mount -t tmpfs -o size=8k none {tmp_path}; head -c 8k /dev/zero >{tmp_path}/x || true",
        ANSWERS, tmp_path / "base",
    )  # fmt: skip
    assert done.stdout == "(1, False) (1, False) (2, False) (3, False)\n"
    assert done.stderr.count("UserWarning") == 1
    assert "No space left on device" in done.stderr


def test_a_disk_that_fills_up(tmp_path):
    """It holds the folder, and nothing of a kernel; temporary files lie there, too."""
    (tmp_path / "tmp").mkdir()
    done = in_a_namespace(
        f"mount -t tmpfs -o size=16k none {tmp_path}; mkdir {tmp_path}/tmp\n"
        f"head -c 12k /dev/zero >{tmp_path}/x; export TMPDIR={tmp_path}/tmp",
        ANSWERS, tmp_path,
    )  # fmt: skip
    assert done.stdout == "(1, False) (1, False) (2, False) (3, False)\n"
    assert done.stderr.count("UserWarning") == 1
    assert "is full (No space left on device)" in done.stderr


def test_a_disk_that_is_read_only(tmp_path):
    run("answer(1)", tmp_path)
    script = f"mount --bind {tmp_path} {tmp_path}; mount -o remount,ro,bind {tmp_path}"
    done = in_a_namespace(script, "print(answer(1), answer(1))", tmp_path)
    assert (done.stdout, done.stderr) == ("(1, True) (1, True)\n", "")
    done = in_a_namespace(script, ANSWERS, tmp_path)
    assert done.stdout == "(1, True) (1, True) (2, False) (3, False)\n"
    assert done.stderr.count("UserWarning") == 1
    assert "is read-only (Read-only file system)" in done.stderr


def test_without_proc(tmp_path):
    """Its files in memory have no names, so that the loader cannot find them."""
    done = in_a_namespace("umount -l /proc", ANSWERS, tmp_path)
    assert done.stdout == "(1, False) (1, True) (2, False) (3, False)\n"
    assert done.stderr == ""


# --- many processes, and killed ones --------------------------------------------------------------

MANY = """
children = []
for k in range(64):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            wanted = [1, 2, 3, 100 + k]
            random.Random(k).shuffle(wanted)
            code = 0 if [answer(n)[0] for n in wanted] == wanted else 2
        finally:
            os._exit(code)
    children.append(pid)
print([os.waitpid(pid, 0)[1] for pid in children] == [0] * 64)
"""


@pytest.mark.slow
def test_64_processes_compile_the_same_and_other_kernels(tmp_path):
    done = run(MANY, tmp_path)
    assert (done.stdout, done.stderr) == ("True\n", "")
    found = os.listdir(tmp_path / "kernels")
    assert sorted({Path(name).suffix for name in found}) == ["", ".so"]
    assert len(found) == 64 + 3 + 1
    check = "print([answer(n) for n in (1, 2, 3, *range(100, 164))] =="
    check += " [(n, True) for n in (1, 2, 3, *range(100, 164))])"
    done = run(check, tmp_path)
    assert (done.stdout, done.stderr) == ("True\n", "")


KILLED = """
kernels, kills = range(10), 0
start = time.perf_counter()
answer(10)
usual = time.perf_counter() - start
while kills < 100:
    pid = os.fork()
    if not pid:
        os.setsid()
        try:
            n = 1000 * kills
            while True:
                n += 1
                assert answer(random.choice(kernels))[0] in kernels
                assert answer(n)[0] == n
        finally:
            os._exit(3)
    time.sleep(random.Random(kills).random() * 4 * usual)
    os.killpg(pid, signal.SIGKILL) if os.getpgid(pid) == pid else os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    kills += 1
print(kills)
"""

AFTER = """
folder = kernelcache.existing()
names = folder.names()
for name in names:
    if name.endswith(".so"):
        answer_of = folder.read(name)
        assert len(answer_of) > 1000
print([answer(n)[0] for n in range(10)] == list(range(10)), len(names) > 1)
for name in names:  # an hour passes
    os.utime(kernelcache.path(name), (time.time() - 7200,) * 2)
kernelcache.sweep(folder, -1)
print({os.path.splitext(name)[1] for name in folder.names()} == {"", ".so"})
from opwise.linkers import trusted
place, left, until = os.environ["TMPDIR"], None, time.monotonic() + 60
while left is None or (left and time.monotonic() < until):
    # a compiler outlives the process that started it, and may write a little longer
    time.sleep(0 if left is None else 0.5)
    trusted._swept.clear()
    for name in os.listdir(place):
        os.utime(os.path.join(place, name), (time.time() - 7200,) * 2)
    with trusted.Temporary(place) as made:
        left = set(os.listdir(place)) - {os.path.basename(made.path)}
print(left)
"""


@pytest.mark.slow
def test_100_processes_are_killed_while_they_compile(tmp_path):
    place = tmp_path / "tmp"
    place.mkdir()
    done = run(KILLED, tmp_path, TMPDIR=str(place))
    assert (done.stdout, done.stderr) == ("100\n", "")
    assert os.listdir(place), "no process was killed while it compiled"
    done = run(AFTER, tmp_path, TMPDIR=str(place))
    assert (done.stdout, done.stderr) == ("True True\nTrue\nset()\n", "")
