"""Processes that run one contender each, driven by lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
#: how a request ended that has no answer
FAILED, LATE = "failed", "late"


class Failed(Exception):
    """A request that was answered with an error or with silence."""

    def __init__(self, status: str, note: str, details: str = ""):
        super().__init__(note)
        self.status = status
        self.note = note
        self.details = details


class Process:
    """A worker, in a process group of its own so that its helpers halt and end with it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path = ROOT):
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
        )
        self.received = b""

    def ask(self, timeout: float, do: str, **arguments: Any) -> Any:
        """The value with which the worker answers. Raises Failed."""
        request = json.dumps({"do": do, **arguments}) + "\n"
        try:
            self.process.stdin.write(request.encode())
            self.process.stdin.flush()
            line = self.line(time.monotonic() + timeout)
        except (BrokenPipeError, EOFError):
            raise self.died() from None
        except TimeoutError:
            raise Failed(LATE, f"over {timeout:g} s ({do})", self.tail()) from None
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(FAILED, answer["error"], answer["details"])
        return answer["value"]

    def line(self, deadline: float) -> bytes:
        answers = self.process.stdout.fileno()
        while b"\n" not in self.received:
            left = max(0, deadline - time.monotonic())
            if not select.select([answers], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(answers, 1 << 16)
            if not piece:
                raise EOFError
            self.received += piece
        line, _, self.received = self.received.partition(b"\n")
        return line

    def died(self) -> Failed:
        code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        tail = self.tail()
        last = tail.strip().rpartition("\n")[2]
        return Failed(FAILED, f"the process ended ({how}): {last}".rstrip(": "), tail)

    def tail(self) -> str:
        """The end of what it wrote to its error output."""
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - 4000))
        return self.errors.read().decode(errors="replace")

    def halt(self) -> None:
        """Stop until ``go``: the threads of a BLAS wait for work in a loop, on the others' time."""
        self.signal(signal.SIGSTOP)

    def go(self) -> None:
        self.signal(signal.SIGCONT)

    def signal(self, which: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)

    def close(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # a request that the process did not read
            self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


def added(environment: Mapping[str, str], ours: dict[str, str]) -> dict[str, str]:
    """The environment with ours; flags that are there already are kept beside ours."""
    merged = dict(environment)
    for name, value in ours.items():
        given = merged.get(name) if name.endswith("_FLAGS") else None
        merged[name] = f"{given},{value}" if given else value
    return merged


def serve(worker: Any) -> NoReturn:
    """Answer each line of the input, ``{"do": method, argument: value}``, until it ends.

    The answer is a line: ``{"value": ...}``, or ``{"error": ..., "details": ...}``.
    """
    # What libraries print must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": getattr(worker, request.pop("do"))(**request)}
        except Exception as error:
            answer = error_of(error)
        print(json.dumps(answer), file=answers)
    os._exit(0)  # at once: what libraries do at exit takes time, and gives nothing


def error_of(error: BaseException) -> dict[str, str]:
    first = str(error).strip().partition("\n")[0]
    return {
        "error": f"{type(error).__name__}: {first}" if first else type(error).__name__,
        "details": "".join(traceback.format_exception(error)),
    }
