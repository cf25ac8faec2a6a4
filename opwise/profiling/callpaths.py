"""Who called it: the calls of the program that led to what a profile has, libraries folded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from opwise.profiling.model import CallFrame


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
