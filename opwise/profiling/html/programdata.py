"""The data of the view of the whole program: its time line, and its lines as a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opwise.profiling import aggregate, callpaths
from opwise.profiling.model import CallFrame, ProfileData, ProgramProfile

#: share of the time line from which a box is drawn on its own
BOX = 1 / 1500
#: most calls, one below the other, that the time line shows
DEPTH = 16
#: most lines of the tree, and the share of the time from which a line is in it
ROWS, ROW = 60, 1 / 200


def of_program(
    profile: ProfileData,
    texts: Callable[[str], int],
    lines: Callable[[tuple[str, int]], int],
) -> dict[str, Any] | None:
    """Return the data of the view; None if the program was not sampled.

    texts, lines: give a text, and a (file, line), their numbers. Times are nanoseconds, from the
    start of sampling. A box is [depth, from, length, time in calls of functions, name, line]; its
    line is -1 for a library. A row of the tree is [depth, time, time in calls, name, line].
    """
    program = profile.program
    if program is None or not program.ns:
        return None

    def name(frame: CallFrame) -> list[int]:
        if not frame.file:
            return [texts(callpaths.label(frame)), -1]
        function = "" if frame.function == "<module>" else frame.function
        return [texts(function), lines((frame.file, frame.line))]

    rows = [
        [depth, node.ns, node.called, *name(node.frame)]
        for depth, node in aggregate.sampled_tree(profile).walk()
        if node.frame is not None and node.ns >= ROW * program.ns
    ]
    return {
        "period": program.period_ns,
        "before": program.before_ns,
        "ns": program.ns,
        "boxes": [
            [box.depth, box.start, box.rest + box.called, box.called, *name(box.frame)]
            for box in aggregate.time_line(profile, least=round(BOX * program.ns))
            if box.depth < DEPTH
        ],
        "calls": _calls(profile, program),
        "rows": rows[:ROWS],
        "more": max(0, len(rows) - ROWS),
    }


def _calls(profile: ProfileData, program: ProgramProfile) -> list[list[int]]:
    """Return [number of the function, from, length, which call] of the calls that are kept."""
    return [
        [number, call.start_ns - program.start_ns, call.ns, call.number]
        for number, function in enumerate(profile.functions if program.stretches else ())
        for call in function.detail
        if 0 <= call.start_ns - program.start_ns <= program.ns
    ]
