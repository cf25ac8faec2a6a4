"""Compiled functions as HTML: the signature, how they were compiled, and the graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from opwise.graph.provenance import text_of
from opwise.graph.variable import Variable
from opwise.modes.mode import Mode, predefined_linkers, predefined_modes
from opwise.notebook import graphs
from opwise.optimizers.database import Query
from opwise.profiling import cells
from opwise.profiling.html import page
from opwise.profiling.reports import wording

if TYPE_CHECKING:
    from opwise.compile.executable import Function
    from opwise.compile.io import In

#: how many inputs, outputs or updates are shown of each
_ROWS = 20
#: how many Ops in Python are named
_OPS = 4


def html(f: Function) -> str:
    """Return a compiled function as a piece of HTML."""
    specs = f.construction.inputs
    updated = set(f.construction.update_of.values())
    read = [k for k, spec in enumerate(specs) if spec.implicit and k not in updated]
    shares = _shares(f)
    return page.render(
        "function.html.j2",
        name=wording.short(_name(f), 80),
        inputs=_listed([_input(spec) for spec in specs if not spec.implicit]),
        outputs=_listed([_output(f, k) for k in range(len(f.construction.outputs))]),
        updates=_listed([_update(f, k) for k in sorted(f.construction.update_of)]),
        shared=_listed([_input(specs[k]) for k in read]),
        facts=_facts(f),
        graph=graphs.graph(f, shares, _names(f)),
        timed=bool(shares),
    )


def _name(f: Function) -> str:
    """Return the name of a function; of its line in a file without the folder."""
    name = f.name or "function"
    file, colon, line = name.rpartition(":")
    return cells.place(file, int(line)) if colon and line.isdigit() else name


def _listed(rows: list[Any]) -> tuple[list[Any], int]:
    """Return (the rows to show, the number of the others)."""
    return rows[:_ROWS], max(0, len(rows) - _ROWS)


def _input(spec: In) -> tuple[str, str, str]:
    """Return (name, type, options) of an input."""
    options = [
        "has a default value" if spec.value is not None and not spec.implicit else "",
        "may be overwritten" if spec.mutable and spec.update is None else "",
        "strict" if spec.strict else "",
    ]
    var = spec.variable
    return (
        spec.name or text_of(var), text_of(var.type), ", ".join(filter(None, options)),
    )  # fmt: skip


def _output(f: Function, k: int) -> tuple[str, str, str]:
    var = f.construction.outputs[k].variable
    keys = f.construction.keys
    name = keys[k] if keys is not None else graphs.expression(var)
    return wording.short(name, 80), text_of(var.type), ""


def _update(f: Function, k: int) -> tuple[str, str, str]:
    spec = f.construction.inputs[f.construction.update_of[k]]
    new = f.construction.graph_outputs[k]
    return spec.name or text_of(spec.variable), text_of(spec.variable.type), (
        f"becomes {graphs.expression(new)}"
    )  # fmt: skip


def _names(f: Function) -> dict[Variable, str]:
    """Return the names of the outputs of the optimized graph that are the new values of others."""
    specs, outputs = f.construction.inputs, f.maker.fgraph.outputs
    return {
        outputs[k]: f"new {specs[i].name or text_of(specs[i].variable)}"
        for k, i in f.construction.update_of.items()
    }


def _mode(mode: Mode) -> str:
    """Return the name of a mode, or its class, linker and optimizer."""
    for name, known in predefined_modes.items():
        if known is mode:
            return name
    query = mode._optimizer
    optimizer = text_of(query)
    if isinstance(query, Query):
        parts = [*query.include, *(f"-{tag}" for tag in query.exclude)]
        optimizer = " ".join(map(str, parts))
    linkers = [name for name, known in predefined_linkers.items() if known is mode.linker]
    linker = linkers[0] if linkers else text_of(mode.linker)
    return f"{type(mode).__name__}: {linker}, {wording.short(optimizer, 120) or 'no rewrites'}"


def _facts(f: Function) -> list[tuple[str, str]]:
    """Return (what, text) about how a function was compiled."""
    report = f.compile_report
    facts = [("mode", _mode(f.maker.mode)), ("runs", _runs(f))]
    seconds = f"{report.total:.3f} s: rewriting {report.optimizer:.3f}"
    seconds += " (from the cache)" if report.graph_cached else ""
    seconds += f", linking {report.linker:.3f}"
    if report.kernels is not None:
        compiled = f"C compiler {report.kernels.compile_seconds:.3f}"
        seconds += ", kernels from the cache" if report.kernels.hit else f" ({compiled})"
    facts.append(("compiled in", seconds))
    calls = f.calls + f.failed
    if calls:
        mean = page.duration(f.total_ns / calls)
        facts.append(("called", f"{wording.counted(calls, 'time')}, {mean} each"))
    return facts


def _runs(f: Function) -> str:
    """Return how many Applys run in C, and which do not."""
    linked = f.linked
    in_c = sum(map(bool, linked.in_c))
    text = f"{wording.counted(len(linked.order), 'Apply')}, {in_c} in C"
    slow = Counter(
        text_of(node.op) for node, c in zip(linked.order, linked.in_c, strict=True) if not c
    )
    if slow:
        named = ", ".join(wording.short(op, 40) for op, _ in slow.most_common(_OPS))
        more = f" and {len(slow) - _OPS} more" if len(slow) > _OPS else ""
        text += f", {sum(slow.values())} in Python: {named}{more}"
    return text


def _shares(f: Function) -> dict[str, float]:
    """Return {text of an Op: its part of the time} of a function with a profile."""
    if not f.profile or not f.calls:
        return {}
    applys = [a for one in f.profile.profile().functions for a in one.applys if a.inside < 0]
    total = sum(a.whole for a in applys)
    shares: dict[str, float] = {}
    alike = Counter(a.op for a in applys)
    for a in applys:
        if total and alike[a.op]:
            shares[a.op] = shares.get(a.op, 0.0) + a.whole / total / alike[a.op]
    return shares
