"""Findings about a function: Applys that run in Python, loops that were not fused, and why.

The changes that could help are among the variants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from opwise.compile.executable import Function
from opwise.config import change_flags
from opwise.graph.apply import Apply
from opwise.graph.printing import Print
from opwise.linkers import cbuild, lowering
from opwise.modes.mode import Mode
from opwise.modes.profilemode import ProfileMode
from opwise.modes.recording import record
from opwise.optimizers.passes import SeqOptimizer
from opwise.optimizers.rules.fusion import FusionOptimizer
from opwise.optimizers.unfused import explain_fusion, named
from opwise.profiling.profile import ApplyProfile
from opwise.tensor.elemwise import Elemwise
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.reduce import CAReduce
from opwise.tuning.candidate import Candidate
from opwise.tuning.copies import as_written, copied, maker_of
from opwise.tuning.tips import Finding
from opwise.tuning.variants import Subject, where

#: the least share of the time, or of the memory, that is reported
WORTH = 0.01
#: at most how many findings of a kind are reported
MOST = 6
#: the least number of bytes that is reported
_LITTLE = 1000


def findings(subject: Subject) -> list[Finding]:
    """Return the Findings about a function."""
    found = [*_about_calls(subject), *_without_compiler(subject), *_dropped_checks(subject)]
    if type(subject.mode) not in (Mode, ProfileMode):
        return found
    if "c" in getattr(subject.mode.linker, "implementations", ()):
        found += _in_python(subject)
    found += _not_fused(subject)
    return found


def _about_calls(subject: Subject) -> Iterator[Finding]:
    if subject.calls_back:
        yield Finding(
            "call",
            "its mode calls your own Python functions; measured without them, with the linker c|py",
        )
    if any(isinstance(node.op, Print) for node in as_written(subject.function)):
        yield Finding("call", "it prints; measured without printing")


def _without_compiler(subject: Subject) -> Iterator[Finding]:
    linked = subject.original.function.linked
    reason = cbuild.no_compiler() if linked.uses_compiler else ""
    if reason:
        yield Finding(
            "compiler",
            f"{reason}: loops run on built-in kernels, which are slower; install gcc or clang, or "
            "set the flag cxx to the path of a compiler",
        )


def _dropped_checks(subject: Subject) -> Iterator[Finding]:
    """Yield the shape checks that the rewrites dropped."""
    with change_flags(keep_shape_checks=True):
        dropped = maker_of(subject.function, subject.mode).optimized.dropped_checks
    for text in dropped[:MOST]:
        yield Finding("shapes", f"the rewrites drop this check: {text}")
    if len(dropped) > MOST:
        yield Finding("shapes", f"and {len(dropped) - MOST} more")
    if dropped:
        yield Finding("shapes", "to keep these checks, set the flag keep_shape_checks=True")


# --- Applys in Python -----------------------------------------------------------------------------


def _in_python(subject: Subject) -> Iterator[Finding]:
    if all(subject.original.function.linked.in_c):
        return
    applys = _applys(copied(subject.function, subject.mode), subject)
    everything = sum(a.total for _, a in applys) or 1
    slow = [(a.total / everything, node) for node, a in applys if not a.c]
    yield from _most(
        "Python",
        [
            (share, f"{name(node)}, {share:.0%} of the time: {_why(node)}")
            for share, node in slow
            if share >= WORTH
        ],
    )


def _why(node: Apply) -> str:
    """Return why an Apply runs in Python, and which change was tried or why none was."""
    return f"{lowering.why_not(node)}; {_cure(node)}"


def _cure(node: Apply) -> str:
    dtypes = {getattr(v.type, "dtype", None) for v in (*node.inputs, *node.outputs)}
    if "float16" in dtypes:
        return "tried: float32 instead of float16"
    if dtypes & {"complex64", "complex128"}:
        return "not tried: no other dtype holds complex numbers"
    return "not tried: it has no C implementation for any dtype"


# --- loops that were not fused --------------------------------------------------------------------


def _not_fused(subject: Subject) -> Iterator[Finding]:
    fgraph = subject.original.function.maker.fgraph
    reads = any(
        isinstance(node.op, Elemwise)
        and any(v.owner is not None and isinstance(v.owner.op, Elemwise) for v in node.inputs)
        for node in fgraph.apply_nodes
    )
    mapped = any(
        isinstance(client.op, CAReduce | MapReduce)
        for node in fgraph.apply_nodes
        if isinstance(node.op, Elemwise)
        for var in node.outputs
        for client, _ in var._clients
        if client != "output"
    )
    if not (reads or mapped) or subject.query is None:
        return
    if not _fuses(subject.mode.optimizer):
        yield Finding("fusion", "elementwise Applys: the rewrites of this mode do not fuse loops")
        return
    maker = maker_of(subject.function, subject.mode.excluding("fusion", "inplace"))
    blocked = explain_fusion(maker.fgraph)
    sizes = _bytes(maker.create(), subject)
    most = max(sizes.values(), default=0)
    texts = [
        (sizes.get(node, 0), f"{name(node)} into {name(reader)}: {why}")
        for reader, node, why in blocked
    ]
    yield from _most(
        "fusion",
        [
            (size, f"{text} ({_size(size)} written and read)")
            for size, text in texts
            if size >= max(_LITTLE, WORTH * most)
        ],
    )


def _fuses(optimizer: Any) -> bool:
    """Return whether fusion is among the rewrites of an optimizer."""
    if isinstance(optimizer, SeqOptimizer):
        return any(map(_fuses, optimizer))
    return isinstance(optimizer, FusionOptimizer)


def _bytes(function: Function, subject: Subject) -> dict[Apply, int]:
    """Return {Apply: bytes of its first output} of a call."""
    return {
        node: a.output_arrays[0].bytes
        for node, a in _applys(function, subject)
        if a.output_arrays and a.output_arrays[0] is not None
    }


# --- measuring and reporting ----------------------------------------------------------------------


def _applys(function: Function, subject: Subject) -> list[tuple[Apply, ApplyProfile]]:
    """Return the Applys of a function and its loops, with their profiles in a call."""
    recorder = record(function)
    candidate = Candidate(function, subject.args, subject.kwargs)
    candidate.results()
    recorder.reset()
    candidate.results()
    return list(zip(recorder.nodes, recorder.snapshot().applys, strict=True))


def _most(subject: str, found: list[tuple[float, str]]) -> Iterator[Finding]:
    """Yield the findings with the largest sizes; the last says how many are left out."""
    found = sorted({text: (size, text) for size, text in found}.values(), reverse=True)
    for _, text in found[:MOST]:
        yield Finding(subject, text)
    if len(found) > MOST:
        yield Finding(subject, f"and {len(found) - MOST} more")


def name(node: Apply) -> str:
    """Return a short text for an Apply: its Op, and the user's line."""
    return f"{named(node.op)}{where(node)}"


def _size(n: int) -> str:
    power = min(3, int(math.log(n, 1000))) if n else 0
    return f"{n / 1000**power:.3g} {('B', 'kB', 'MB', 'GB')[power]}"
