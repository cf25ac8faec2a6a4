"""What opwise reports about a function, as texts without times, to compare two compilations of it.

The texts of graphs, of what runs each Apply, of lines and origins, of results, errors and all
reports of a profile.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from opwise.compile.executable import Function
from opwise.graph import drawing, printing
from opwise.graph.apply import Apply
from opwise.graph.variable import Constant
from opwise.modes.recording import record
from opwise.profiling import jsonreports
from opwise.profiling.html import page, profiledata
from opwise.profiling.model import CompileProfile
from opwise.profiling.profile import ApplyProfile, FunctionProfile, Profile
from opwise.profiling.reports import profilemode, profilestats

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def graph(f: Function) -> dict[str, str]:
    """Return the texts about the graph of a function, and about what runs it."""
    fgraph, linked = f.maker.fgraph, f.linked
    printed = printing.debugprint(
        f, file="str", print_type=True, print_destroy_map=True, print_view_map=True,
        print_clients=True,
    )  # fmt: skip
    order = fgraph.toposort()
    return {
        "printed graph": printed,
        "formula": "\n".join(map(printing.pp, fgraph.outputs)),
        "drawing": drawing.dot_source(f),
        "order of the graph": "\n".join(map(str, order)),
        "order of execution": "\n".join(map(str, linked.order)),
        "what runs Applys": "\n".join(
            f"{c} {why}" for c, why in zip(linked.in_c, linked.why_not_in_c, strict=True)
        ),
        "lines": "\n".join(map(_lines, order)),
        "constants": "\n".join(
            _value(var.data) for var in dict.fromkeys(v for n in order for v in n.inputs)
            if isinstance(var, Constant)
        ),
    }  # fmt: skip


def _lines(node: Apply) -> str:
    """Return where an Apply and its origins were written, in their order."""
    traces = [[(frame[0].co_name, frame[1]) for frame in one.trace or ()]
              for one in (node, *node.origins)]  # fmt: skip
    context = _ADDRESS.sub("0x", str(node.context))  # code objects
    return f"{node} {[var.name for var in node.outputs]} {context} {traces}"


def call(run: Callable[[], Any]) -> str:
    """Return what a call gives, bit for bit but for the signs of NaN, or the text of its error."""
    try:
        found = run()
    except Exception as error:  # whatever a program raises is compared
        return _ADDRESS.sub("0x", f"{type(error).__name__}: {error}")
    values = found.values() if isinstance(found, dict) else found
    values = values if isinstance(found, dict | list | tuple) else [values]
    return "\n".join(map(_value, values))


def _value(value: Any) -> str:
    """Return the form of a value, a digest of its bits and its first elements."""
    if not isinstance(value, np.ndarray | np.generic):
        if hasattr(value, "toarray"):
            return f"{type(value).__name__} {value.format} {_value(value.toarray())}"
        return f"{type(value).__name__} {_ADDRESS.sub('0x', str(value))}"
    array = np.asarray(value)
    if array.dtype.kind in "fc":
        plain = array.copy(order="K")
        plain[np.isnan(plain)] = np.nan
    else:
        plain = array
    digest = hashlib.sha256(plain.tobytes()).hexdigest()[:16]
    shown = [str(one) for one in plain.ravel()[:4]]
    return f"{type(value).__name__} {array.dtype} {array.shape} {array.strides} {digest} {shown}"


def profile(f: Function, run: Callable[[], Any]) -> dict[str, str]:
    """Call a function a few times while it is timed; return what its profile and reports tell."""
    recorder = record(f, memory=True)
    for _ in range(2):
        call(run)
    taken = Profile(functions=(_timeless(recorder.snapshot()),), message="profile")
    return {
        "profile": taken.to_json(),
        "ProfileMode": profilemode.summary(taken, 50, 50),
        "profile summary": profilestats.summary(taken, 50, 50),
        "json": json.dumps(jsonreports.report(taken)),
        "html": json.dumps(profiledata.of_profile(taken, None, None), default=str),
        "notebook": page.brief(taken),
        "records": str(taken.records()),
    }


def _timeless(f: FunctionProfile) -> FunctionProfile:
    """Return what was recorded of a function with times that depend on counts alone."""
    applys = tuple(_timeless_apply(a) for a in f.applys)
    total = sum(a.total for a in applys)
    memory = f.memory and replace(f.memory, least_seconds=0.0)
    slowest = tuple(sorted((text, 0.0) for text, _ in f.compile.slowest))
    return replace(
        f, applys=applys, call_ns=2 * total + 1000, fn_ns=total, first_call_ns=0, timing_ns=0,
        built_in_calls=0, detail=(), memory=memory,
        compile=CompileProfile(slowest=slowest if len(applys) <= len(slowest) else ()),
    )  # fmt: skip


def _timeless_apply(a: ApplyProfile) -> ApplyProfile:
    each = 1_000_000 + 1000 * a.position
    return replace(
        a, total=each * a.count, least=each, most=each, histogram=(), once=0, inner=0, asked=0,
        waited=0,
    )  # fmt: skip


def differences(one: dict[str, str], two: dict[str, str]) -> list[tuple[str, tuple[str, str]]]:
    """Return (subject, (line of one, line of the other)) for each subject that differs."""
    found: list[tuple[str, tuple[str, str]]] = []
    for name in {**one, **two}:
        first, second = one.get(name, ""), two.get(name, "")
        if first != second:
            lines = list(zip(first.splitlines(), second.splitlines(), strict=False))
            pair = next((p for p in lines if p[0] != p[1]), (first[-200:], second[-200:]))
            found.append((name, (_near(pair[0], pair[1]), _near(pair[1], pair[0]))))
    return found


def _near(text: str, other: str) -> str:
    """Return a part of a text around the place where it differs from another."""
    at = next((k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b),
              min(len(text), len(other)))  # fmt: skip
    return text[max(0, at - 60) : at + 120]
