"""The counters of a program that runs: its VMs write them into files that another process reads.

A file has one function: a line of JSON that describes its Applys, then the counters, which the VMs
write in place. So the program does nothing for its reader while it runs.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opwise.profiling import nesting

if TYPE_CHECKING:
    from opwise.profiling.recorder import Recorder

#: environment variable that names the folder of the files; those who have it publish
FOLDER = "OPWISE_LIVE_FOLDER"
#: bytes of the counters of an Apply: the number of runs, and the sum, least and most of their times
_EACH = 32
_SUFFIX = ".live"

# --- the program ----------------------------------------------------------------------------------

_published: list[Recorder] = []


def publish(recorder: Recorder) -> None:
    """Let the VMs of a function keep their counters in a file, if another process asks for that.

    Does nothing if the folder is gone or full: the program does not depend on its reader.
    """
    folder = os.environ.get(FOLDER)
    parts = [part for part in recorder.parts if part.linked.order]
    if not folder or not all(_has_counters(part.linked.vm) for part in parts):
        return
    path = Path(folder, f"{os.getpid()}.{len(_published)}.part")
    try:
        counters = _new_file(path, _description(recorder), len(recorder.nodes))
        for part in parts:
            vm: Any = part.linked.vm
            vm.timing.keep_in(counters[part.start * _EACH : part.positions.stop * _EACH])
        _published.append(recorder)
        path.rename(path.with_suffix(_SUFFIX))
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()


def _has_counters(vm: Any) -> bool:
    """Return whether a VM has counters that nobody else reads."""
    return bool(vm.timing.on) and vm.timing.counters is None


def _description(recorder: Recorder) -> dict[str, Any]:
    return {
        "process": os.getpid(),
        "function": str(recorder.name),
        "timer_ns": recorder.vm.timing.timer_ns,
        "applys": [
            {
                "text": about["text"],
                "loop": about["loop"],
                "inside": about["inside"],
                "line": next((f"{o.file}:{o.line}" for o in about["origins"] if o.file), ""),
                "in": "" if recorder.on_device else "C" if about["c"] else "Py",
            }
            for about in recorder.described()
        ],
    }


def _new_file(path: Path, about: dict[str, Any], applys: int) -> memoryview:
    """Make the file of a function; return the memory of its counters."""
    first = json.dumps(about).encode() + b"\n"
    first += b"\n" * (-len(first) % 64)
    size = len(first) + _EACH * applys
    with open(path, "x+b") as file:
        # memory of a file that does not fit on its disk would end the program when it is written
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.write(bytes(size))
            file.seek(0)
        file.write(first)
        file.flush()
        return memoryview(mmap.mmap(file.fileno(), size))[len(first) :]


def forget_after_fork() -> None:
    """Let the VMs of a forked process keep their counters in memory of its own again."""
    for recorder in _published:
        for part in recorder.parts:
            vm: Any = part.linked.vm
            if part.linked.order:
                vm.timing.keep_in(None)
    _published.clear()


# --- its reader -----------------------------------------------------------------------------------


def new_folder() -> Path:
    """Make a folder for the files, in memory if the system has a place for that."""
    shared = Path("/dev/shm")
    where = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    return Path(tempfile.mkdtemp(prefix="opwise-live-", dir=where))


@dataclass(frozen=True)
class LiveApply:
    """An Apply of a program that runs, and what it took up to now."""

    #: the process
    process: int
    function: str
    #: the Apply with its operands, behind the loops that it is inside
    text: str
    #: ``path:line`` of the program, or ""
    line: str
    #: "C", "Py", or "" if the function runs on a device
    where: str
    #: number of runs
    count: int
    #: nanoseconds in all runs, without those of the Applys inside
    ns: int


@dataclass
class _Published:
    """A function and where its counters are."""

    about: dict[str, Any]
    #: shape (Applys, 4), dtype int64
    counters: np.ndarray = field(repr=False)

    def read(self) -> list[LiveApply]:
        """Return the Applys with their counters now."""
        now = self.counters.copy()
        counts, sums = now[:, 0].tolist(), now[:, 1].tolist()
        inside = [apply["inside"] for apply in self.about["applys"]]
        own: Sequence[int] = sums
        if any(k >= 0 for k in inside):
            own = nesting.own_times(sums, counts, inside, self.about["timer_ns"])
        return [
            LiveApply(
                self.about["process"], self.about["function"],
                f"{apply['loop']} > {apply['text']}" if apply["loop"] else apply["text"],
                apply["line"], apply["in"], count, ns,
            )
            for apply, count, ns in zip(self.about["applys"], counts, own, strict=True)
        ]  # fmt: skip

    @property
    def calls(self) -> int:
        """How often the function was called, the call under way included."""
        own = [apply["inside"] < 0 for apply in self.about["applys"]]
        return int(self.counters[own, 0].max(initial=0))


class LiveReader:
    """Reads the counters of all processes that publish into a folder, which it removes at last."""

    def __init__(self) -> None:
        self.folder = new_folder()
        self._functions: list[_Published] = []

    def environment(self) -> dict[str, str]:
        """Return the environment variables for the program."""
        return {FOLDER: str(self.folder)}

    def find(self) -> None:
        """Look for functions that were compiled since this was called last."""
        for path in sorted(self.folder.glob(f"*{_SUFFIX}")):
            with contextlib.suppress(OSError, ValueError, KeyError):
                self._functions.append(_opened(path))
            path.unlink(missing_ok=True)  # the memory stays as long as somebody has it

    @property
    def functions(self) -> int:
        """The number of functions."""
        return len(self._functions)

    @property
    def processes(self) -> int:
        """The number of processes."""
        return len({f.about["process"] for f in self._functions})

    @property
    def calls(self) -> int:
        """The number of calls of all functions."""
        return sum(f.calls for f in self._functions)

    def applys(self) -> Iterator[LiveApply]:
        """Yield every Apply with its counters now."""
        for function in self._functions:
            yield from function.read()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _opened(path: Path) -> _Published:
    with open(path, "rb") as file:
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    about = json.loads(memory.readline())
    counters = np.frombuffer(memory, np.int64)[-4 * len(about["applys"]) or len(memory) :]
    return _Published(about, counters.reshape(-1, 4))
