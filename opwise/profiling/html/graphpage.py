"""Graphs on a page: one HTML file that draws a graph, and needs neither a network nor Graphviz."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from opwise.graph.dotgraph import Dot, PyDotFormatter
from opwise.profiling.files import write_whole
from opwise.profiling.html.page import embedded, standalone

__all__ = ["d3viz", "d3write", "escape_quotes", "replace_patterns", "safe_json"]


def d3viz(
    fct: Any, outfile: str | os.PathLike[str], copy_deps: bool = True, *args: Any, **kwargs: Any
) -> None:
    """Write a page on which a graph is drawn, and can be moved, enlarged and searched.

    fct: a compiled function, a FunctionGraph, an Apply, a variable or a list of these. With a
    profile of the function, Applys can be colored by their time. outfile: path of the file; its
    folder is made. copy_deps: kept for old programs; the page needs no other file. args, kwargs: of
    ``PyDotFormatter``.
    """
    graph = PyDotFormatter(*args, **kwargs)(fct)
    name = getattr(fct, "name", None) or type(fct).__name__
    path = Path(outfile)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, standalone("graph.html.j2", "graphview", drawing(graph), str(name)))


def d3write(fct: Any, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
    """Write a graph in the DOT language to a file; arguments as of ``d3viz``."""
    PyDotFormatter(*args, **kwargs)(fct).write_dot(path)


def drawing(graph: Dot) -> dict[str, Any]:
    """Return the nodes and edges of a graph as plain data, with their places.

    Nodes lie in rows, below all that they depend on; a node's row and column begin at 0. Graphs
    inside nodes are under ``inside``, by the name of the node.
    """
    nodes = graph.get_nodes()
    index = {node.get_name(): i for i, node in enumerate(nodes)}
    edges = [
        (index[edge.get_source()], index[edge.get_destination()], edge)
        for edge in graph.get_edges()
    ]
    rows = _rows(len(nodes), [(a, b) for a, b, _ in edges])
    columns = _columns(rows, [(a, b) for a, b, _ in edges])
    inside = {each.get_name(): each for each in graph.get_subgraphs()}
    return {
        "nodes": [
            {
                "name": node.get_name(),
                "label": node.get("label"),
                "kind": node.get("node_type"),
                "box": node.get("shape") == "box",
                "color": node.get("fillcolor"),
                "detail": node.get("detail"),
                "line": _line(node.get("tag")),
                "time": _time(node.get("profile")),
                "row": row,
                "column": column,
            }
            for node, row, column in zip(nodes, rows, columns, strict=True)
        ],
        "edges": [
            {"from": a, "to": b, "label": edge.get("label"), "color": edge.get("color")}
            for a, b, edge in edges
        ],
        "inside": {
            node.get_name(): drawing(inside[node.get("subg")]) for node in nodes if node.get("subg")
        },
    }


def _line(tag: str | None) -> str | None:
    """Return the file, the line and its text as one line."""
    if tag is None:
        return None
    path, line, source = (*tag.split("\t", 2), "", "")[:3]
    return f"{path}:{line}: {source}"


def _time(profile: str | None) -> list[float] | None:
    return None if profile is None else [float(part) for part in profile.split("\t")]


def _rows(count: int, edges: list[tuple[int, int]]) -> list[int]:
    """Return the row of each node: one below the lowest node that it depends on."""
    below: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for a, b in edges:
        below[a].append(b)
        missing[b] += 1
    rows = [0] * count
    ready = [i for i in range(count) if not missing[i]]
    first = set(ready)
    for a in ready:  # it grows
        for b in below[a]:
            rows[b] = max(rows[b], rows[a] + 1)
            missing[b] -= 1
            if not missing[b]:
                ready.append(b)
    for a in first:  # an input lies just above what reads it
        if below[a]:
            rows[a] = min(rows[b] for b in below[a]) - 1
    return rows


def _columns(rows: list[int], edges: list[tuple[int, int]]) -> list[float]:
    """Return the column of each node: near the middle of its neighbours, apart from others."""
    neighbours: list[list[int]] = [[] for _ in rows]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    levels: list[list[int]] = [[] for _ in range(max(rows, default=-1) + 1)]
    for i, row in enumerate(rows):
        levels[row].append(i)
    columns = [0.0] * len(rows)
    for level in levels:
        for place, i in enumerate(level):
            columns[i] = place - (len(level) - 1) / 2
    for sweep in range(8):
        for level in levels if sweep % 2 == 0 else reversed(levels):
            wanted = {
                i: sum(columns[k] for k in neighbours[i]) / len(neighbours[i])
                if neighbours[i]
                else columns[i]
                for i in level
            }
            level.sort(key=wanted.__getitem__)
            right = -float("inf")
            for i in level:
                columns[i] = right = max(wanted[i], right + 1)
            moved = sum(columns[i] - wanted[i] for i in level) / max(len(level), 1)
            for i in level:
                columns[i] -= moved
    least = min(columns, default=0.0)
    return [round(column - least, 3) for column in columns]


# --- helpers of Theano's module -------------------------------------------------------------------


def replace_patterns(x: str, replace: dict[str, Any]) -> str:
    """Return a text with each key of ``replace`` replaced by its value."""
    for pattern, value in replace.items():
        x = x.replace(pattern, str(value))
    return x


def escape_quotes(s: str) -> str:
    """Return a text with a backslash before each quote."""
    return s.replace('"', '\\"').replace("'", "\\'")


def safe_json(obj: object) -> str:
    """Return an object as JSON that is safe inside an element ``script``."""
    return embedded(obj)
