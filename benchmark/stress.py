"""The cache of compiled code under stress: processes that are killed, damage, and broken systems.

    python -m benchmark.stress [--kills N] [--processes N] [--damages N] [--only TRIAL ...]

Each trial compiles real functions in a cache folder of its own, compares their results with
numpy's, and ends with an error if one is wrong, a program is stopped by what was done to the cache,
or the cache says nothing about a damage. Times say how long a trial took, not how fast opwise is.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.call_cost import machine

ROOT = Path(__file__).parents[1]
#: the programs that every process of a trial compiles
COMMON = 6
NOBODY = 65534


class Failed(Exception):
    """What a trial found."""


def check(condition: Any, text: str) -> None:
    """Raise Failed with a text unless the condition holds."""
    if not condition:
        raise Failed(text)


# --- what is compiled -----------------------------------------------------------------------------


def run(k: int) -> bool:
    """Compile program ``k``, check its result, and return whether its kernel was in the cache.

    The kernel of each program has another text.
    """
    import opwise
    import opwise.tensor as T

    x = T.dvector("x")
    given = np.linspace(0.1, 1, 7)
    y, expected = x, given
    for bit in f"{k:b}":
        y, expected = (
            (T.sin(y) + 1, np.sin(expected) + 1) if bit == "1" else (T.exp(-y), np.exp(-expected))
        )
    f = opwise.function([x], y)
    check(np.allclose(f(given), expected), f"program {k} is wrong")
    check(f.compile_report.kernels is not None, f"program {k} has no compiled kernel")
    return bool(f.compile_report.kernels.hit)


def forget() -> None:
    """Forget the kernels that are loaded: the next function is read from the cache."""
    from opwise.linkers import cbuild

    cbuild._loaded.clear()


def in_cache(k: int) -> bool:
    """Return whether the kernel of a program was in the cache, after running it."""
    forget()
    return run(k)


@contextmanager
def warned() -> Iterator[list[str]]:
    """Collect the texts of warnings in a list; each kind comes anew."""
    from opwise.linkers import kernelcache

    kernelcache._process.warned.clear()
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield texts
        texts += [str(one.message) for one in found]


def in_child(work: Callable[[], Any]) -> int:
    """Fork; return the process id. The child exits with 0 if ``work`` returned."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        work()
        code = 0
    except Failed as failure:
        print(failure, file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


# --- trials ---------------------------------------------------------------------------------------


def processes(folder: Path, args: argparse.Namespace) -> str:
    """Many processes compile the same functions and others at once; all are right."""

    def work(number: int) -> None:
        mine = [*range(8, 8 + COMMON), 1000 + number]
        random.Random(number).shuffle(mine)
        with warned() as texts:
            for k in mine:
                run(k)
        check(not texts, f"a process was warned: {texts}")

    pids = [in_child(lambda n=n: work(n)) for n in range(args.processes)]  # type: ignore[misc]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    check(codes == [0] * len(pids), f"exit codes: {codes}")
    for k in (*range(8, 8 + COMMON), *range(1000, 1000 + args.processes)):
        check(in_cache(k), f"program {k} is not in the cache")
    whole(folder)
    return f"{args.processes} processes, {len(kernels(folder))} kernels"


def kernels(folder: Path) -> list[Path]:
    """Return the files of kernels in the cache."""
    return sorted((folder / "kernels").glob("*.so"))


def whole(folder: Path) -> None:
    """Raise Failed unless every file of the cache is as it was written."""
    from opwise.linkers import kernelcache

    where = kernelcache.existing()
    check(where is not None, "there is no cache")
    assert where is not None
    for file in kernelcache.files(where):
        check(kernelcache.is_whole(where, file.name), f"{file.name} is damaged")


def compilers(pid: int) -> list[int]:
    """Return the children of a process."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with open(children) as file:
            found += [int(child) for child in file.read().split()]
    return found


def kills(folder: Path, args: argparse.Namespace) -> str:
    """Processes are killed at random moments while they compile; what they leave is harmless.

    Every second time the compiler is killed, too.
    """
    usual, compiling = min(seconds_of(k) for k in (8, 9, 10)), 0

    def work(number: int) -> None:
        k = 10_000 + 1000 * number
        while True:
            k += 1
            in_cache(8 + random.Random(k).randrange(COMMON))
            run(k)

    for number in range(args.kills):
        pid = in_child(lambda n=number: work(n))  # type: ignore[misc]
        time.sleep(random.Random(number).random() * 4 * usual)
        children = compilers(pid)
        compiling += bool(children)
        os.kill(pid, signal.SIGKILL)
        for child in children if number % 2 else ():
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        check(status == -signal.SIGKILL, f"process {number} ended by itself: {status}")
    check(compiling, "no process was killed while it compiled")
    whole(folder)
    with warned() as texts:
        for k in range(8, 8 + COMMON):
            in_cache(k)
            check(in_cache(k), f"program {k} is not in the cache")
    check(not texts, f"warnings: {texts}")
    left = swept(folder)
    return f"{args.kills} kills, {compiling} while a compiler ran; {left}"


def seconds_of(k: int) -> float:
    """Return the seconds that compiling program ``k`` takes."""
    start = time.perf_counter()
    run(k)
    return time.perf_counter() - start


def swept(folder: Path) -> str:
    """Let an hour pass; raise Failed unless all that killed processes left is deleted."""
    from opwise.linkers import kernelcache, trusted

    where = kernelcache.existing()
    assert where is not None
    parts = [name for name in where.names() if name.endswith(".part")]
    temporary = folder / "tmp"
    left = list(temporary.iterdir())
    for path in [*(Path(where.path) / name for name in where.names()), *left]:
        os.utime(path, (time.time() - 7200,) * 2)
    kernelcache.sweep(where, -1)
    trusted._swept.clear()
    with trusted.Temporary(str(temporary)) as made:
        check({path.name for path in temporary.iterdir()} == {Path(made.path).name},
              "temporary folders were left")  # fmt: skip
    kinds = {Path(name).suffix for name in where.names()}
    check(kinds <= {"", ".so", ".graph"}, f"files were left: {kinds}")
    return f"{len(parts)} partial files and {len(left)} temporary folders were left and deleted"


def damages(folder: Path, args: argparse.Namespace) -> str:
    """Files of the cache are cut, or have one bit flipped; they are made again, with a warning."""
    rng = random.Random(1)
    for k in range(8, 8 + COMMON):
        run(k)
    files = sorted((folder / "kernels").glob("*.*"))
    for number in range(args.damages):
        path = rng.choice(files)
        content = bytearray(path.read_bytes())
        if number % 2:
            content = content[: rng.randrange(len(content))]
        else:
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        with warned() as texts:
            for k in range(8, 8 + COMMON):
                in_cache(k)
        check(len(texts) == 1 and path.name in texts[0], f"damage {number} of {path}: {texts}")
        with warned() as texts:
            check(all(in_cache(k) for k in range(8, 8 + COMMON)), "a kernel was not made again")
        check(not texts, f"warnings: {texts}")
    whole(folder)
    return f"{args.damages} files were cut or had a bit flipped"


def clocks(folder: Path, args: argparse.Namespace) -> str:
    """The clock jumps by years, forwards and back; kernels are kept, and the bound holds."""
    from opwise.config import change_flags
    from opwise.linkers import kernelcache

    genuine = time.time
    for k in range(8, 8 + COMMON):
        run(k)
    size = sum(path.stat().st_size for path in kernels(folder))
    years = 365 * 86400
    for jump in (0, 30 * years, -20 * years, 0, 5 * years, -years):
        time.time = lambda jump=jump: genuine() + jump  # type: ignore[misc]
        try:
            with warned() as texts:
                check(all(in_cache(k) for k in range(8, 8 + COMMON)), f"after {jump} s")
            check(not texts, f"warnings: {texts}")
            with change_flags(compiledir_bytes=max(size, 100_000)):
                run(2000 + jump // years)
            where = kernelcache.existing()
            assert where is not None
            kernelcache.sweep(where, size)
            left = sum(path.stat().st_size for path in kernels(folder))
            check(left <= size, f"{left} bytes are kept, the bound is {size}")
            for k in range(8, 8 + COMMON):
                in_cache(k)
        finally:
            time.time = genuine
    return "6 jumps of up to 30 years"


# --- broken systems: each in a process of its own -------------------------------------------------


def alone(folder: Path, script: str = "", **environment: str | None) -> tuple[str, list[str]]:
    """Run ``several`` in a new process; return what it printed, and its warnings.

    script: of a shell, run before it in a mount namespace of its own. environment: variables, None
    for one that is missing.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", "from benchmark import stress; stress.several()"]
    if script:
        command = ["unshare", "-m", "bash", "-ec", f'{script}\nexec "$@"', "bash", *command]
    done = subprocess.run(
        command, env={name: value for name, value in env.items() if value is not None},
        capture_output=True, text=True, check=False, timeout=500, cwd=ROOT,
    )  # fmt: skip
    check(done.returncode == 0, done.stdout + done.stderr)
    out, *texts = done.stdout.splitlines()
    return out, texts


def several() -> None:
    """Compile three programs twice; print which were in the cache, and each warning."""
    with warned() as texts:
        hits = [in_cache(k) for k in (8, 9, 10, 8, 9, 10)]
    print("".join("-+"[hit] for hit in hits))
    for text in texts:
        print(text.replace("\n", " "))


def mounts() -> bool:
    """Return whether this process may change mounts in a namespace of its own."""
    return (
        os.geteuid() == 0
        and shutil.which("unshare") is not None
        and not subprocess.run(["unshare", "-m", "true"], check=False).returncode
    )


def disks(folder: Path, args: argparse.Namespace) -> str:
    """The disk of the cache is full, or read-only: functions are compiled, with one warning."""
    if not mounts():
        return "left out: only root can change mounts"
    place = folder / "disk"
    place.mkdir()
    flags = f"base_compiledir={place}/base,compiledir_format=kernels"
    full = f"mount -t tmpfs -o size=16k none {place}; head -c 16k /dev/zero >{place}/x || true"
    out, texts = alone(folder, full, OPWISE_FLAGS=flags)
    check(out == "------" and len(texts) == 1, f"full: {out} {texts}")
    check("No space left on device" in texts[0], texts[0])
    out, texts = alone(folder, OPWISE_FLAGS=flags)
    check(out == "---+++" and not texts, f"the usual disk: {out} {texts}")
    read_only = f"mount --bind {place} {place}; mount -o remount,ro,bind {place}"
    out, texts = alone(folder, read_only, OPWISE_FLAGS=flags)
    check(out == "++++++" and not texts, f"read-only: {out} {texts}")
    for path in (place / "base" / "kernels").iterdir():
        path.unlink()
    out, texts = alone(folder, read_only, OPWISE_FLAGS=flags)
    check(out == "------" and len(texts) == 1, f"read-only: {out} {texts}")
    check("is read-only" in texts[0], texts[0])
    return "full, read-only, and read-only with kernels"


def homes(folder: Path, args: argparse.Namespace) -> str:
    """There is no HOME, or no folder of that name: functions are compiled and kept."""
    (folder / "tmp" / "cache").mkdir()
    said = []
    for home in (None, "", str(folder / "nowhere"), "/dev/null/home"):
        out, texts = alone(
            folder, HOME=home, OPWISE_FLAGS=None, XDG_CACHE_HOME=str(folder / "tmp" / "cache")
        )
        check(out in ("---+++", "++++++") and not texts, f"HOME {home!r}: {out} {texts}")
    for home in (str(folder / "nowhere"), "/dev/null/home"):
        out, texts = alone(folder, HOME=home, OPWISE_FLAGS=None, XDG_CACHE_HOME=None)
        check(len(texts) <= 1, f"HOME {home!r}: {out} {texts}")
        said += texts
    refused = len(said) == 1 and "is not used: /dev/null is not a folder" in said[0]
    check(refused, f"warnings: {said}")
    return "missing, empty, a folder that is created, and one that cannot be"


def planted(folder: Path, args: argparse.Namespace) -> str:
    """Another user's file, and a link, are in the place of a kernel: neither is loaded."""
    if os.geteuid() != 0:
        return "left out: only root can give files to another user"
    run(8)
    (path,) = kernels(folder)
    content = path.read_bytes()
    elsewhere = folder / "elsewhere.so"
    elsewhere.write_bytes(content)

    def give() -> None:
        os.chown(path, NOBODY, -1)

    def link() -> None:
        path.unlink()
        path.symlink_to(elsewhere)

    for plant, text in ((give, "belongs to"), (link, "cannot be opened")):
        plant()
        with warned() as texts:
            check(not in_cache(8), "a planted file was loaded")
        check(len(texts) == 1 and text in texts[0], f"warnings: {texts}")
        with warned() as texts:
            check(in_cache(8) and not texts, f"it was not replaced: {texts}")
    check(elsewhere.read_bytes() == content, "the target of the link was changed")
    return "a file of another user, a symbolic link"


TRIALS: dict[str, Callable[[Path, argparse.Namespace], str]] = {
    one.__name__: one
    for one in (processes, kills, damages, clocks, disks, homes, planted)
}  # fmt: skip


def trial(name: str, args: argparse.Namespace) -> None:
    """Run a trial with a cache and a temporary folder of its own, in a process of its own."""
    # the path of the cache must be one that only this user can change
    with tempfile.TemporaryDirectory(prefix="opwise-stress-") as place:
        folder = Path(place)
        (folder / "tmp").mkdir(mode=0o700)
        env = {
            **os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT),
            "OPWISE_FLAGS": f"base_compiledir={folder},compiledir_format=kernels",
        }  # fmt: skip
        numbers = [f"--{key}={getattr(args, key)}" for key in ("kills", "processes", "damages")]
        subprocess.run(
            [sys.executable, "-m", "benchmark.stress", "--in", place, "--only", name, *numbers],
            env=env, check=True, cwd=ROOT,
        )  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.stress", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--kills", type=int, default=1000, metavar="N", help="(default: 1000)")
    parser.add_argument("--processes", type=int, default=64, metavar="N", help="(default: 64)")
    parser.add_argument("--damages", type=int, default=200, metavar="N", help="(default: 200)")
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=list(TRIALS), metavar="TRIAL",
                        help=", ".join(TRIALS))  # fmt: skip
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)

    if args.folder is not None:
        warnings.simplefilter("error", DeprecationWarning)
        start = time.perf_counter()
        try:
            found = TRIALS[args.only[0]](args.folder, args)
        except Failed as failure:
            print(f"{args.only[0]}: {failure}", file=sys.stderr)
            return 1
        print(f"{args.only[0]:10} {found} ({time.perf_counter() - start:.0f} s)", flush=True)
        return 0
    print(*(f"{name}: {value}" for name, value in machine().items()), sep="\n", flush=True)
    failed = []
    for name in args.only:
        try:
            trial(name, args)
        except subprocess.CalledProcessError:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "no trial failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
