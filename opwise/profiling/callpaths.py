"""Who called it: the calls of the program that led to what a profile has, libraries folded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from opwise.graph import provenance
from opwise.profiling.model import CallFrame


class CallFrames:
    """Calls of the program, by key: those that wrote the Applys of a function, or were sampled."""

    def __init__(self) -> None:
        self.by_key: dict[str, CallFrame] = {}
        self._keys: dict[tuple[str, int, str, str], str] = {}
        #: by the id of a trace, which many Applys share: the trace, so that it stays, and its key
        self._of_trace: dict[int, tuple[provenance.Trace, str]] = {}

    def add(self, trace: provenance.Trace | None) -> str:
        """Add the calls of a trace; return the key of the innermost one, '' without any."""
        if not trace:
            return ""
        if id(trace) not in self._of_trace:
            self._of_trace[id(trace)] = trace, self._added(trace)
        return self._of_trace[id(trace)][1]

    def _added(self, trace: provenance.Trace) -> str:
        caller = ""
        for file, line, function in provenance.frames_of(trace):
            library = provenance.library_of(file)
            caller = self.add_frame(CallFrame(file, line, function, caller, library))
        return caller

    def add_frame(self, frame: CallFrame) -> str:
        """Add a line that the one of key ``frame.caller`` called; return its key."""
        parts = frame.file, frame.line, frame.function, frame.caller
        key = self._keys.get(parts)
        if key is None:
            key = self._keys[parts] = provenance.digest(*map(str, parts))
            self.by_key[key] = frame
        return key


@dataclass(frozen=True)
class CallPath:
    """Calls of the program, from the outermost one to the line that wrote an Apply."""

    frames: tuple[CallFrame, ...] = ()

    def __str__(self) -> str:
        """Return the line, then those that called it: of a long text the line is still read."""
        return " < ".join(map(label, reversed(self.frames))) or "(unknown calls)"


def label(frame: CallFrame) -> str:
    """Return the text of a call: the name of the file, line and function, or that of a library.

    A line of which nothing else is known has the text that ``aggregate.by_line`` gives it.
    """
    if not frame.file:
        return f"[{frame.library}]"
    if not frame.function:
        return f"{frame.file}:{frame.line}"
    name = "" if frame.function == "<module>" else f" {frame.function}"
    return f"{os.path.basename(frame.file)}:{frame.line}{name}"


def path_of(frames: Mapping[str, CallFrame], key: str) -> CallPath:
    """Return the calls that lead to a frame, given by its key in ``ProfileData.frames``.

    Libraries that called the program, such as a test runner, are left out. Where the program calls
    a library, the frames of libraries that follow are one frame without a line. If all frames are
    of libraries, all are left.
    """
    found: list[CallFrame] = []
    met: set[str] = set()
    while key not in met and (frame := frames.get(key)) is not None:
        met.add(key)  # a damaged file may say that a call led to itself
        found.append(frame)
        key = frame.caller
    found.reverse()
    first = next((k for k, frame in enumerate(found) if not frame.library), None)
    if first is None:
        return CallPath(tuple(_alone(frame) for frame in found))
    folded: list[CallFrame] = []
    for frame in found[first:]:
        if not frame.library:
            folded.append(_alone(frame))
        elif not folded[-1].library:
            folded.append(CallFrame("", 0, "", library=frame.library))
    return CallPath(tuple(folded))


def _alone(frame: CallFrame) -> CallFrame:
    """Return a frame that is equal to those of the same line, whoever called it."""
    return CallFrame(frame.file, frame.line, frame.function, library=frame.library)
