"""Graphs as HTML: a drawing in SVG, or for a large graph its Ops and how many there are of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from opwise.graph.apply import Apply
from opwise.graph.dotgraph import PyDotFormatter
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.provenance import text_of, user_line
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant, Variable
from opwise.profiling import cells
from opwise.profiling.html import graphpage, page
from opwise.profiling.reports import wording

#: graphs of more Applys are not drawn
MOST_DRAWN = 60
#: how many Ops of a large graph are named
_OPS = 12
#: letters of a node, at most
_LABEL = 26
#: the width of a letter, the height of a node, the space between nodes, and the distance of columns
#: and of rows, in pixels
_LETTER, _HEIGHT, _GAP, _COLUMN, _ROW = 7.3, 28, 16, 84, 54
#: the part of the time from which a node shows it, and its colour
_SHOWN, _HOT = 0.005, "217, 72, 15"

#: the colour of a node by its kind, as the start of rgba(...)
_COLORS = {
    "apply": "128, 140, 160", "input": "46, 160, 67", "shared_input": "191, 135, 0",
    "constant_input": "128, 128, 128", "output": "47, 91, 208",
}  # fmt: skip
_MEANINGS = {"input": "input", "shared_input": "shared variable", "output": "output"}


@dataclass(frozen=True)
class _Node:
    """A node of a drawing; numbers are pixels."""

    x: float
    y: float
    width: float
    label: str
    #: what is shown when the mouse is over it
    detail: str
    color: str
    opacity: float
    #: whether it is an Apply, which has round corners
    is_apply: bool


@dataclass(frozen=True)
class _Drawing:
    """A graph as shapes; numbers are pixels."""

    width: float
    height: float
    nodes: Sequence[_Node]
    #: the paths of edges, as SVG writes them
    edges: Sequence[str]
    #: (colour, meaning) of the kinds of nodes
    legend: Sequence[tuple[str, str]]


def html(shown: Variable | Apply | FunctionGraph) -> str:
    """Return a graph as a piece of HTML."""
    if isinstance(shown, Variable) and shown.owner is None:
        return page.render("leaf.html.j2", **_leaf(shown))
    title, about = _title(shown)
    return page.render("expression.html.j2", title=title, about=about, graph=graph(shown))


def graph(
    shown: Any,
    shares: dict[str, float] | None = None,
    names: dict[Variable, str] | None = None,
) -> dict[str, Any]:
    """Return what the template ``graphpart.html.j2`` shows of a graph.

    shown: as for ``PyDotFormatter``. shares: {text of an Op: its part of the time}. names: of
    outputs (default: their own, or their types).
    """
    order = _order(shown)
    if len(order) <= MOST_DRAWN:
        drawing = _drawn(shown, shares or {}, names or {})
        return {"drawing": drawing, "applys": len(order), "ops": ()}
    counts = Counter(short_op(text_of(node.op)) for node in order)
    return {
        "drawing": None, "applys": len(order), "ops": counts.most_common(_OPS),
        "rest": max(0, len(counts) - _OPS),
    }  # fmt: skip


def _order(shown: Any) -> list[Apply]:
    """Return the Applys of a graph."""
    if isinstance(shown, FunctionGraph):
        return list(shown.toposort())
    if hasattr(shown, "maker"):
        return list(shown.maker.fgraph.toposort())
    outputs = shown.outputs if isinstance(shown, Apply) else [shown]
    return list(io_toposort([], outputs))


def kind(var: Variable) -> str:
    """Return what a variable without an owner is, in words."""
    if isinstance(var, Constant):
        return "constant"
    return "shared variable" if hasattr(var, "get_value") else "variable"


def _leaf(var: Variable) -> dict[str, Any]:
    name = wording.short(text_of(var), 80)
    shape = ""
    if hasattr(var, "get_value"):
        value = var.get_value(borrow=True)
        shape = str(tuple(getattr(value, "shape", ())) or "")
    return {"name": name, "type": text_of(var.type), "kind": kind(var), "shape": shape}


def _title(shown: Any) -> tuple[str, str]:
    """Return the name of a graph, and what it is."""
    if isinstance(shown, FunctionGraph):
        inputs, outputs = len(shown.inputs), len(shown.outputs)
        about = f"{wording.counted(inputs, 'input')}, {wording.counted(outputs, 'output')}"
        return getattr(shown, "name", None) or "FunctionGraph", about
    node = shown if isinstance(shown, Apply) else shown.owner
    found = user_line(node)
    place = f", {cells.place(*found)}" if found else ""
    if isinstance(shown, Apply):
        return wording.short(text_of(shown.op), 80), f"Apply{place}"
    return expression(shown), f"{text_of(shown.type)}{place}"


# --- drawings -------------------------------------------------------------------------------------


def short_op(op: str) -> str:
    """Return a readable name of an Op: that of the scalar operation, without options."""
    name, brace, rest = op.partition("{")
    if not brace or name != "Elemwise":
        return name.removeprefix("Inplace") or op
    inside = _within(rest).removesuffix(",no_inplace").removesuffix(",inplace")
    outer, brace, rest = inside.partition("{")
    if not brace:
        return inside
    return _within(rest) if outer == "Composite" else f"{outer} {_within(rest)}"


def _within(text: str) -> str:
    """Return a text up to the brace that closes one before it."""
    depth = 1
    for k, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if not depth:
            return text[:k]
    return text


def expression(var: Variable, depth: int = 2) -> str:
    """Return what computes a variable, as ``sub(w, mul(...))``; its name if it has one."""
    if var.name is not None or var.owner is None:
        return wording.short(text_of(var.data if isinstance(var, Constant) else var), 30)
    node = var.owner
    name = wording.short(short_op(text_of(node.op)), 40)
    if name == "DimShuffle" and len(node.inputs) == 1:
        return expression(node.inputs[0], depth)
    if depth == 0:
        return f"{name}(...)" if node.inputs else f"{name}()"
    return f"{name}({', '.join(expression(each, depth - 1) for each in node.inputs[:4])})"


def _drawn(shown: Any, shares: dict[str, float], names: dict[Variable, str]) -> _Drawing:
    """Return the drawing of a graph."""
    formatter = PyDotFormatter()
    data = graphpage.drawing(formatter(shown))
    named = {formatter._names[var]: name for var, name in names.items() if var in formatter._names}
    nodes = []
    for node in data["nodes"]:
        label, detail = _label(node), "\n".join(filter(None, [node["detail"], node["line"]]))
        label = wording.short(named.get(node["name"], label), _LABEL)
        share = shares.get(node["detail"] or "", 0.0) if node["kind"] == "apply" else 0.0
        color, opacity = _COLORS.get(_kind(node), _COLORS["apply"]), 0.18
        if share >= _SHOWN:
            label = f"{label} {100 * share:.0f}%"
            detail = f"{100 * share:.1f}% of the time\n{detail}"
            color, opacity = _HOT, 0.12 + 0.6 * share
        width = max(36.0, _LETTER * len(label) + 16)
        nodes.append(_Node(node["column"], node["row"] * _ROW + 4.0, width, label, detail, color,
                           opacity, node["kind"] == "apply"))  # fmt: skip
    nodes = _apart(nodes)
    kinds = dict.fromkeys(map(_kind, data["nodes"]))
    return _Drawing(
        max((node.x + node.width for node in nodes), default=0.0) + 4,
        max((node.y for node in nodes), default=0.0) + _HEIGHT + 4,
        nodes,
        [_edge(nodes[edge["from"]], nodes[edge["to"]]) for edge in data["edges"]],
        [(_COLORS[kind], _MEANINGS[kind]) for kind in kinds if kind in _MEANINGS],
    )


def _kind(node: dict[str, Any]) -> str:
    """Return the kind of a node; "" for a variable with a name between two Applys."""
    return "" if node["color"] == "white" else str(node["kind"])


def _apart(nodes: Sequence[_Node]) -> list[_Node]:
    """Return nodes near their columns, which ``x`` has, at which no two in a row touch."""
    rows: dict[float, list[int]] = {}
    for k, node in enumerate(nodes):
        rows.setdefault(node.y, []).append(k)
    middles = [node.x * _COLUMN for node in nodes]
    for row in rows.values():
        row.sort(key=middles.__getitem__)
        wanted = [middles[k] for k in row]
        right = -float("inf")
        for k in row:
            middles[k] = max(middles[k], right + nodes[k].width / 2)
            right = middles[k] + nodes[k].width / 2 + _GAP
        moved = sum(middles[k] - w for k, w in zip(row, wanted, strict=True)) / len(row)
        for k in row:
            middles[k] -= moved
    left = min((m - n.width / 2 for m, n in zip(middles, nodes, strict=True)), default=0.0)
    return [
        replace(n, x=round(m - n.width / 2 - left + 4, 1), opacity=round(n.opacity, 2))
        for n, m in zip(nodes, middles, strict=True)
    ]


def _label(node: dict[str, Any]) -> str:
    text = short_op(node["detail"] or "") if node["kind"] == "apply" else str(node["label"])
    return wording.short(text, _LABEL)


def _edge(a: _Node, b: _Node) -> str:
    """Return the path from the bottom of a node to the top of another."""
    x0, y0 = a.x + a.width / 2, a.y + _HEIGHT
    x1, y1 = b.x + b.width / 2, b.y
    middle = (y0 + y1) / 2
    return f"M{x0:.0f} {y0:.0f}C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"
