"""Graphs as nodes and edges of the DOT language, in the form of the package pydot.

``PyDotFormatter`` makes them; ``opwise.profiling.html.graphpage`` draws them on a page.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import io_toposort
from opwise.graph.variable import Constant, Variable

__all__ = [
    "Cluster",
    "Dot",
    "Edge",
    "Node",
    "PyDotFormatter",
    "apply_label",
    "apply_profile",
    "broadcastable_to_str",
    "dict_to_pdnode",
    "dtype_to_char",
    "pydot_imported",
    "pydot_imported_msg",
    "type_to_str",
    "var_label",
    "var_tag",
]

#: whether graphs can be formatted; Theano needed the package pydot for it
pydot_imported, pydot_imported_msg = True, ""


def _quoted(text: Any) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class _WithAttributes:
    def __init__(self, **attributes: Any) -> None:
        self._attributes = attributes

    def get_attributes(self) -> dict[str, Any]:
        """Return the dict of attributes, which may be changed."""
        return self._attributes

    def get(self, name: str) -> Any:
        """Return an attribute, or None."""
        return self._attributes.get(name)

    def set(self, name: str, value: Any) -> None:
        """Set an attribute."""
        self._attributes[name] = value

    def _brackets(self) -> str:
        content = ", ".join(f"{key}={_quoted(value)}" for key, value in self._attributes.items())
        return f" [{content}]" if content else ""


class Node(_WithAttributes):
    """A node: its name and attributes."""

    def __init__(self, name: str, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._name = name

    def get_name(self) -> str:
        return self._name

    def to_string(self) -> str:
        return f"{self._name}{self._brackets()};"


class Edge(_WithAttributes):
    """An edge from a node to another, both by name."""

    def __init__(self, src: str, dst: str, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._ends = src, dst

    def get_source(self) -> str:
        return self._ends[0]

    def get_destination(self) -> str:
        return self._ends[1]

    def to_string(self) -> str:
        return f"{self._ends[0]} -> {self._ends[1]}{self._brackets()};"


class Dot(_WithAttributes):
    """A directed graph: nodes, edges, and graphs inside nodes."""

    _kind = "digraph"

    def __init__(self, graph_name: str = "G", **attributes: Any) -> None:
        super().__init__(**attributes)
        self._name = graph_name
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        self._subgraphs: list[Cluster] = []

    def get_name(self) -> str:
        return self._name

    def add_node(self, node: Node) -> None:
        """Add a node; it takes the place of one with its name."""
        self._nodes[node.get_name()] = node

    def add_edge(self, edge: Edge) -> None:
        self._edges.append(edge)

    def add_subgraph(self, subgraph: Cluster) -> None:
        self._subgraphs.append(subgraph)

    def get_nodes(self) -> list[Node]:
        return list(self._nodes.values())

    get_node_list = get_nodes

    def get_node(self, name: str) -> list[Node]:
        """Return the node with a name in a list, which is empty if there is none."""
        return [self._nodes[name]] if name in self._nodes else []

    def get_edges(self) -> list[Edge]:
        return list(self._edges)

    get_edge_list = get_edges

    def get_subgraphs(self) -> list[Cluster]:
        return list(self._subgraphs)

    get_subgraph_list = get_subgraphs

    def to_string(self) -> str:
        """Return the graph in the DOT language."""
        lines = [f"{self._kind} {self._name} {{"]
        lines += [f"  {key}={_quoted(value)};" for key, value in self._attributes.items()]
        parts: list[Any] = [*self._nodes.values(), *self._subgraphs, *self._edges]
        for part in parts:
            lines += [f"  {line}" for line in part.to_string().splitlines()]
        return "\n".join([*lines, "}"]) + "\n"

    def create_dot(self) -> bytes:
        """Return the graph in the DOT language, as bytes."""
        return self.to_string().encode()

    def write(self, path: str | os.PathLike[str], format: str = "dot") -> bool:
        """Write the graph: the DOT language, or a picture by the program dot of Graphviz."""
        from opwise.graph.drawing import rendered

        with open(path, "wb") as file:
            file.write(rendered(self.to_string(), "dot" if format == "raw" else format))
        return True

    def write_dot(self, path: str | os.PathLike[str]) -> bool:
        """Write the graph in the DOT language."""
        return self.write(path)

    write_raw = write_dot

    def write_png(self, path: str | os.PathLike[str]) -> bool:
        """Write a picture, by Graphviz."""
        return self.write(path, "png")

    def write_svg(self, path: str | os.PathLike[str]) -> bool:
        """Write a picture, by Graphviz."""
        return self.write(path, "svg")


class Cluster(Dot):
    """A graph inside a node of another."""

    _kind = "subgraph"

    def __init__(self, graph_name: str, **attributes: Any) -> None:
        super().__init__(f"cluster_{graph_name}", **attributes)


class PyDotFormatter:
    """Makes the nodes and edges of a graph: ellipses are Applys, boxes variables.

    compact: omit variables without a name that are neither inputs nor outputs. node_colors,
    apply_colors and shapes: by kind of variable, by a part of the name of a class of Ops, and by
    kind of node.
    """

    def __init__(self, compact: bool = True) -> None:
        self.compact = compact
        self.node_colors = {
            "input": "limegreen", "constant_input": "SpringGreen", "shared_input": "YellowGreen",
            "output": "dodgerblue", "unused": "lightgrey",
        }  # fmt: skip
        self.apply_colors = {
            "GpuFromHost": "red", "HostFromGpu": "red", "Scan": "yellow", "Shape": "cyan",
            "IfElse": "magenta", "Elemwise": "#FFAABB", "Subtensor": "#FFAAFF", "Alloc": "#FFAA22",
        }  # fmt: skip
        self.shapes = {"input": "box", "output": "box", "apply": "ellipse"}
        self._prefix = "n"
        self._names: dict[Any, str] = {}

    def __call__(self, fct: Any, graph: Dot | None = None) -> Dot:
        """Return the nodes and edges of a function, a FunctionGraph, an Apply, or variables.

        graph: add them to it. Raises TypeError for anything else.
        """
        graph = Dot() if graph is None else graph
        self._names = {}
        inputs, outputs, profile = _parts(fct)
        order = io_toposort(inputs, outputs)
        read = {var for node in order for var in node.inputs}
        for node in order:
            self._add_apply(graph, node, profile, outputs, read)
        for var in outputs:
            if var.owner is None and var not in self._names:
                self._add_input(graph, var)
        return graph

    def _name(self, item: Any) -> str:
        return self._names.setdefault(item, f"{self._prefix}{len(self._names) + 1}")

    def _add_apply(
        self, graph: Dot, node: Apply, profile: Any, outputs: list[Variable], read: set[Variable]
    ) -> None:
        name = self._name(node)
        about = {
            "name": name, "label": apply_label(node), "profile": apply_profile(node, profile),
            "node_type": "apply", "apply_op": apply_label(node), "shape": self.shapes["apply"],
            "detail": str(node.op),
        }  # fmt: skip
        for part, color in self.apply_colors.items():
            if part in type(node.op).__name__:
                about.update(style="filled", fillcolor=color, type="colored")
        drawn = dict_to_pdnode(about)
        graph.add_node(drawn)
        self._add_operands(graph, node, name)
        for var in node.outputs:
            if var in outputs or var not in read:
                self._add_output(graph, var, name, var in outputs)
            elif var.name or not self.compact:
                self._add_between(graph, var, name)
        self._add_inside(graph, drawn, node, name)

    def _add_operands(self, graph: Dot, node: Apply, name: str) -> None:
        viewed = {i for some in node.op.view_map.values() for i in some}
        destroyed = {i for some in node.op.destroy_map.values() for i in some}
        for i, var in enumerate(node.inputs):
            if var.owner is None and var not in self._names:
                self._add_input(graph, var)
            start: Any = var if var in self._names else var.owner
            label = type_to_str(var.type)
            color = (
                {"color": self.node_colors["output"]} if i in viewed
                else {"color": "red"} if i in destroyed else {}
            )  # fmt: skip
            label = f"{i} {label}" if len(node.inputs) > 1 else label
            graph.add_edge(Edge(self._name(start), name, label=label, **color))

    def _add_input(self, graph: Dot, var: Variable) -> None:
        kind = "input"
        if isinstance(var, Constant):
            kind = "constant_input"
        elif hasattr(var, "get_value"):
            kind = "shared_input"
        self._add_variable(graph, var, kind, self.node_colors[kind], "input")

    def _add_variable(self, graph: Dot, var: Variable, kind: str, color: str, shape: str) -> str:
        name = self._name(var)
        about = {
            "name": name, "label": var_label(var), "node_type": kind,
            "dtype": type_to_str(var.type), "tag": var_tag(var), "style": "filled",
            "fillcolor": color, "shape": self.shapes[shape], "detail": str(var.type),
        }  # fmt: skip
        graph.add_node(dict_to_pdnode(about))
        return name

    def _add_output(self, graph: Dot, var: Variable, start: str, used: bool) -> None:
        color = self.node_colors["output" if used else "unused"]
        name = self._add_variable(graph, var, "output", color, "output")
        graph.add_edge(Edge(start, name, label=type_to_str(var.type)))

    def _add_between(self, graph: Dot, var: Variable, start: str) -> None:
        name = self._add_variable(graph, var, "output", "white", "output")
        graph.add_edge(Edge(start, name, label=type_to_str(var.type)))

    def _add_inside(self, graph: Dot, drawn: Node, node: Apply, name: str) -> None:
        """Add the graph inside an Apply, and which variables of it are those of the Apply."""
        found = _inner(node)
        if found is None:
            return
        outputs, outer = found
        inside = Cluster(name)
        formatter = PyDotFormatter(self.compact)
        formatter._prefix = name
        formatter(list(outputs), inside)
        graph.add_subgraph(inside)
        drawn.set("subg", inside.get_name())
        pairs = [
            [self._name(of if of in self._names else of.owner), formatter._names[var]]
            for var, of in outer.items()
            if var in formatter._names and (of in self._names or of.owner in self._names)
        ]
        drawn.set("subg_map_inputs", str(pairs))
        ends = [
            [formatter._names[inner], self._names[of]]
            for inner, of in zip(outputs, node.outputs, strict=False)
            if inner in formatter._names and of in self._names
        ]
        drawn.set("subg_map_outputs", str(ends))


def _inner(node: Apply) -> tuple[list[Variable], dict[Variable, Variable]] | None:
    """Return the outputs of the graph inside an Apply, and which of its inputs are which."""
    if hasattr(node.op, "inner_graph"):
        outputs, outer = node.op.inner_graph(node)
        return list(outputs), outer
    if not hasattr(node.op, "local_outputs"):
        return None
    compiled: Any = getattr(node.tag, "inside", None)
    fgraph = compiled.maker.fgraph if hasattr(compiled, "maker") else None
    inputs = node.op.local_inputs if fgraph is None else fgraph.inputs
    outputs = node.op.local_outputs if fgraph is None else fgraph.outputs
    return list(outputs), dict(zip(inputs, node.inputs, strict=False))


def _parts(fct: Any) -> tuple[list[Variable], list[Variable], Any]:
    """Return (inputs, outputs, the profile of a function or None)."""
    if isinstance(fct, FunctionGraph):
        return list(fct.inputs), list(fct.outputs), None
    if hasattr(fct, "maker"):
        fgraph = fct.maker.fgraph
        return list(fgraph.inputs), list(fgraph.outputs), getattr(fct, "profile", None)
    items: Iterable[Any] = fct if isinstance(fct, list | tuple) else [fct]
    outputs: list[Variable] = []
    for item in items:
        if isinstance(item, Apply):
            outputs += item.outputs
        elif isinstance(item, Variable):
            outputs.append(item)
        else:
            raise TypeError(
                "a graph to draw is a compiled function, a FunctionGraph, an Apply or variables, "
                f"not {item!r} of type {type(item)}"
            )
    return [], outputs, None


# --- what nodes say -------------------------------------------------------------------------------


def var_label(var: Variable, precision: int = 3) -> str:
    """Return the name of a variable, the first line of a constant, or its type."""
    if var.name is not None:
        return var.name
    if not isinstance(var, Constant):
        return type_to_str(var.type)
    try:
        data = np.asarray(var.data)
    except (TypeError, ValueError):
        return str(var.data)
    text = str(data) if data.ndim == 0 else np.array2string(data, precision=precision)
    return text.partition("\n")[0]


def var_tag(var: Variable) -> list[Any] | None:
    """Return [file, line, text of the line] where a variable was made, or None."""
    trace = getattr(var.tag, "trace", None)
    if not trace:
        return None
    first = trace[0]
    path, line, _, source = first if len(first) == 4 and isinstance(first[0], str) else first[-1]
    return [os.path.basename(path).replace("<", "").replace(">", ""), line, source]


def apply_label(node: Apply) -> str:
    """Return the name of the class of an Apply's Op."""
    return type(node.op).__name__


def apply_profile(node: Apply, profile: Any) -> list[float] | None:
    """Return [seconds of an Apply, seconds of all calls], or None without a profile."""
    total = getattr(profile, "fct_call_time", 0)
    if not total:
        return None
    times = profile.apply_time
    return [times.get(node, times.get((getattr(profile, "fgraph", None), node), 0.0)), total]


def broadcastable_to_str(b: tuple[bool, ...]) -> str:
    """Return the name of a pattern of broadcastable dimensions, or an empty text."""
    names = {(): "scalar", (False,): "vector", (False, True): "col", (True, False): "row",
             (False, False): "matrix"}  # fmt: skip
    return names.get(tuple(b), "")


def dtype_to_char(dtype: str) -> str:
    """Return the letter of a dtype in names such as ``dmatrix``; X for others."""
    letters = {"complex64": "c", "complex128": "z", "float32": "f", "float64": "d", "int8": "b",
               "int16": "w", "int32": "i", "int64": "l"}  # fmt: skip
    return letters.get(str(dtype), "X")


def type_to_str(t: Any) -> str:
    """Return a short name of a Type, such as ``dmatrix``, or its dtype."""
    if not hasattr(t, "broadcastable"):
        return str(t)
    name = broadcastable_to_str(t.broadcastable)
    return dtype_to_char(t.dtype) + name if name else str(t.dtype)


def dict_to_pdnode(d: dict[str, Any]) -> Node:
    """Return a node of a dict with its name and attributes; those that are None are left out."""
    about = {
        key: "\t".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in d.items()
        if value is not None
    }
    return Node(**{key: value.replace('"', "'") for key, value in about.items()})
