"""Where the program was while its profile was recorded: samples of its main thread.

Functions that were profiled time themselves; the samples are about all else, and about the lines
that call them.
"""

from __future__ import annotations

import time

from opwise.graph import callstack, provenance, upcalls
from opwise.profiling.callpaths import CallFrames
from opwise.profiling.model import CallFrame, ProgramProfile
from opwise.profiling.process import system_times

#: what frames of opwise itself are called
_OPWISE = "opwise"


def recorded(calls: CallFrames) -> ProgramProfile | None:
    """Return what was sampled so far; None if nothing was. Its lines are added to ``calls``."""
    found = callstack.samples()
    if found is None:
        return None
    period, until, nodes, rows = found
    keys = _keys(nodes, calls)
    sums: dict[str, list[int]] = {}
    for key, (*_, rest, called, samples) in zip(keys, nodes, strict=True):
        if samples:
            both = sums.setdefault(key, [0, 0])
            both[0] += rest
            both[1] += called
    places = {key: place for place, key in enumerate(sums)}
    start = until - sum(map(sum, sums.values()))
    process = round(system_times().get("seconds_of_process", 0.0) * 1e9)
    now = time.monotonic_ns()
    return ProgramProfile(
        period_ns=period,
        start_ns=start + upcalls.clock() - now,
        before_ns=max(0, process - (now - start)),
        stacks=tuple((key, rest, called) for key, (rest, called) in sums.items()),
        stretches=tuple((places[keys[node]], rest, called) for rest, called, node in rows),
    )


def _keys(nodes: list[callstack.Node], calls: CallFrames) -> list[str]:
    """Return the key of the line of each node; of successive libraries the first one counts.

    What imports a module is the line of the import, not Python's own modules that do it.
    """
    keys: list[str] = []
    libraries: list[str] = []
    for code, offset, caller, *_ in nodes:
        if code is None:
            keys.append("")
            libraries.append("")
            continue
        file, line, function = provenance.frame_of(code, offset)
        is_import = file.startswith("<frozen importlib")
        own = provenance.is_internal(code) and not is_import
        library = _OPWISE if own else provenance.library_of(file)
        is_made = file.startswith("<")  # a method of a dataclass, for example
        if is_import or (libraries[caller] and (library or is_made)):
            keys.append(keys[caller])
            libraries.append(libraries[caller])
            continue
        keys.append(calls.add_frame(CallFrame(file, line, function, keys[caller], library)))
        libraries.append(library)
    return keys
