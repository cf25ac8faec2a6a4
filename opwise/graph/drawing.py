"""Graphs as pictures: ``dot_source`` writes the DOT language, ``pydotprint`` renders it.

Rendering runs the program dot of Graphviz. Without it, ``pydotprint`` writes the text instead.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.traversal import ancestors, io_toposort
from opwise.graph.variable import Constant, Variable

__all__ = ["default_colorCodes", "dot_source", "pydotprint", "pydotprint_variables"]

#: fill colors by name of a class of Ops; 'Output' is the color of the outputs
default_colorCodes = {
    "GpuFromHost": "red",
    "HostFromGpu": "red",
    "Scan": "yellow",
    "Shape": "brown",
    "IfElse": "magenta",
    "Elemwise": "#FFAABB",
    "Subtensor": "#FFAAFF",
    "Alloc": "#FFAA22",
    "Output": "blue",
}


def pydotprint(
    fct: Any,
    outfile: str | os.PathLike[str] | None = None,
    compact: bool = True,
    format: str = "png",
    with_ids: bool = False,
    high_contrast: bool = True,
    cond_highlight: bool | None = None,
    colorCodes: dict[str, str] | None = None,
    max_label_size: int = 70,
    scan_graphs: bool = False,
    var_with_name_simple: bool = False,
    print_output_file: bool = True,
    return_image: bool = False,
) -> bytes | None:
    """Draw a graph into a file: ellipses are Applys, boxes variables.

    Inputs are green, updated shared variables cyan, outputs blue. The edge from an operand is red
    if the Apply overwrites the operand, and blue if the result is a view of it.

    fct: a compiled function, a FunctionGraph, an Apply, a variable or a list of these.
    outfile: path of the file (default: a file in config.compiledir).
    compact: omit variables without a name that are neither inputs nor outputs.
    format: a format of Graphviz ('png', 'svg', 'pdf', ...), or 'dot' for the text, which needs no
    Graphviz.
    with_ids: number the Applys by their order.
    high_contrast: color areas instead of outlines.
    cond_highlight: frame the Applys that the branches of the first condition need.
    colorCodes: colors by class name of Ops.
    max_label_size: maximum length of labels in characters.
    scan_graphs: draw the graphs inside loops into separate files.
    var_with_name_simple: omit the type from the label of a named variable.
    print_output_file: print the path of the file.
    return_image: return the picture as bytes and write no file.

    If Graphviz is not installed, pydotprint warns and writes the text into a file that ends in
    .dot instead; with return_image it raises FileNotFoundError. Raises ValueError if Graphviz does
    not have the format.
    """
    style = _Style(
        compact, with_ids, high_contrast, bool(cond_highlight),
        default_colorCodes if colorCodes is None else colorCodes,
        max_label_size, var_with_name_simple,
    )  # fmt: skip
    source = dot_source(fct, style)
    if return_image:
        return rendered(source, format)
    if outfile is None:
        outfile = os.path.join(config.compiledir, f"theano.pydotprint.{config.device}.{format}")
    outfile = str(outfile)
    if not outfile.endswith(f".{format}"):
        outfile = f"{outfile}.{format}"
    written = _write(source, outfile, format)
    if print_output_file:
        print("The output file is available at", written)
    if scan_graphs:
        stem, extension = os.path.splitext(outfile)
        for i, node in enumerate(_loops(fct)):
            outputs, _ = node.op.inner_graph(node)
            _write(dot_source(outputs, style), f"{stem}_{i}{extension}", format)
    return None


def pydotprint_variables(
    vars: Any,
    outfile: str | os.PathLike[str] | None = None,
    format: str = "png",
    **kwargs: Any,
) -> bytes | None:
    """Warn, and call ``pydotprint``: a deprecated name of it."""
    provenance.warn("pydotprint_variables() is deprecated. Use pydotprint() instead.")
    return pydotprint(vars, outfile=outfile, format=format, **kwargs)


def _write(source: str, outfile: str, format: str) -> str:
    """Write a picture, or without Graphviz its text; return the path of the file."""
    try:
        data = rendered(source, format)
    except FileNotFoundError as error:
        picture, outfile = outfile, f"{outfile.removesuffix(format)}dot"
        data = _encoded(source)
        import shlex  # for this message alone

        command = shlex.join(["dot", f"-T{format}", outfile, "-o", picture])
        provenance.warn(
            f"{error} The text is now in {outfile}; where Graphviz is installed, draw it by: "
            f"{command}"
        )
    with open(outfile, "wb") as f:
        f.write(data)
    return outfile


def _encoded(source: str) -> bytes:
    """Return a text as UTF-8; lone surrogates, which UTF-8 cannot hold, become escapes."""
    return source.encode("utf-8", "backslashreplace")


def rendered(source: str, format: str) -> bytes:
    """Return a picture of DOT text."""
    if format == "dot":
        return _encoded(source)
    import subprocess  # slow to import

    try:
        done = subprocess.run(
            ["dot", f"-T{format}"], input=_encoded(source), capture_output=True, check=False
        )
    except FileNotFoundError as e:
        raise FileNotFoundError(
            f"pydotprint cannot run Graphviz: {e}. Install graphviz and put its program dot on the "
            "PATH, or write the graph as text with format='dot'."
        ) from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        raise ValueError(
            f"Graphviz could not draw the graph as {format!r}: {reason} Choose another format, "
            "such as 'png', 'svg' or 'pdf'."
        )
    return done.stdout


class _Style(NamedTuple):
    """How to draw; ``pydotprint`` describes the fields."""

    compact: bool = True
    with_ids: bool = False
    high_contrast: bool = True
    cond_highlight: bool = False
    colors: dict[str, str] = default_colorCodes
    max_label_size: int = 70
    short_names: bool = False


def dot_source(fct: Any, style: _Style | None = None) -> str:
    """Return a graph in the DOT language, with the same text in every process."""
    picture = _Picture(fct, _Style() if style is None else style)
    return picture.source()


def _parts(fct: Any) -> tuple[list[Variable], list[Variable], dict[Variable, Variable]]:
    """Return (inputs, outputs, dict from an updated input to its new value) of a drawing."""
    fgraph: FunctionGraph | None = fct if isinstance(fct, FunctionGraph) else None
    updates: dict[Variable, Variable] = {}
    if fgraph is None and hasattr(fct, "maker"):
        fgraph = fct.maker.fgraph
        updates = _updates(fct.maker, fgraph)
    if fgraph is not None:
        return list(fgraph.inputs), list(fgraph.outputs), updates
    outputs = []
    for item in fct if isinstance(fct, list | tuple) else [fct]:
        if isinstance(item, Variable):
            outputs.append(item)
        elif isinstance(item, Apply):
            outputs.extend(item.outputs)
        else:
            raise TypeError(
                "pydotprint draws compiled functions, FunctionGraphs, Applys and variables, not "
                f"{item!r} of type {type(item)}"
            )
    return [], outputs, updates


def _updates(maker: Any, fgraph: FunctionGraph) -> dict[Variable, Variable]:
    """Return the dict from each input that a compiled function updates to its new value."""
    given = getattr(maker, "expanded_inputs", ())
    updated = [
        var for outer, var in zip(given, fgraph.inputs, strict=False) if outer.update is not None
    ]
    # the new values are the last outputs
    return dict(zip(updated, fgraph.outputs[len(fgraph.outputs) - len(updated) :], strict=True))


def _loops(fct: Any) -> list[Apply]:
    inputs, outputs, _ = _parts(fct)
    return [node for node in io_toposort(inputs, outputs) if hasattr(node.op, "inner_graph")]


class _Picture:
    """The nodes and edges of one drawing, in the order of the graph."""

    def __init__(self, fct: Any, style: _Style):
        self.style = style
        inputs, self.outputs, self.updates = _parts(fct)
        self.order = io_toposort(inputs, self.outputs)
        self.inputs = [*inputs, *self._leaves(inputs)]
        self.read = {var for node in self.order for var in node.inputs}
        #: names in the text of the Applys and of the variables with a box
        self.names: dict[Variable | Apply, str] = {
            node: f"op{i}" for i, node in enumerate(self.order)
        }
        #: attributes of ellipses and boxes by name
        self.nodes: dict[str, dict[str, str]] = {}
        #: (name of the start, name of the end, attributes)
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self._draw()

    def _leaves(self, inputs: list[Variable]) -> list[Variable]:
        known = set(inputs)
        leaves = [v for node in self.order for v in node.inputs if v.owner is None]
        leaves += [v for v in self.outputs if v.owner is None]
        return [v for v in dict.fromkeys(leaves) if v not in known]

    def _draw(self) -> None:
        for var in self.inputs:
            color = "cyan" if var in self.updates else "green"
            self._add(var, self._variable_label(var), shape="box", **self._color(color))
        for number, node in enumerate(self.order):
            self._draw_apply(number, node)
        for i, var in enumerate(dict.fromkeys(self.outputs)):
            if var.owner is None:
                # an output that is an input has two boxes
                name = f"result{i}"
                self.nodes[name] = self._attributes(
                    self._variable_label(var), shape="box", **self._color(self._output_color())
                )
                self._edge(self.names[var], name)
        for old, new in self.updates.items():
            self._edge(self.names[new], self.names[old], "UPDATE", color="blue")

    def _draw_apply(self, number: int, node: Apply) -> None:
        label = str(node.op) + (f" id={number}" if self.style.with_ids else "")
        color = self._op_color(node.op)
        self._add(node, label, shape="ellipse", **(self._color(color) if color else {}))
        destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
        viewed = {i for indices in node.op.view_map.values() for i in indices}
        for i, var in enumerate(node.inputs):
            edge_color = {}
            if i in destroyed:
                edge_color = {"color": "red"}
            elif i in viewed:
                edge_color = {"color": "blue"}
            label = str(i) if len(node.inputs) > 1 else ""
            start: Variable | Apply = var
            if var not in self.names and var.owner is not None:
                start = var.owner
                label = f"{label} {var.type}".strip()
            self._edge(self.names[start], self.names[node], label, **edge_color)
        for out in node.outputs:
            self._draw_output(node, out)

    def _draw_output(self, node: Apply, out: Variable) -> None:
        is_output = out in self.outputs
        if not is_output:
            if out not in self.read or (self.style.compact and out.name is None):
                return
        color = self._color(self._output_color()) if is_output else {}
        self._add(out, self._variable_label(out), shape="box", **color)
        self._edge(
            self.names[node], self.names[out], str(out.index) if len(node.outputs) > 1 else ""
        )

    # labels and colors

    def _variable_label(self, var: Variable) -> str:
        if isinstance(var, Constant):
            text = f"val={str(var.data).partition(chr(10))[0]}"
        elif var.name is not None:
            if self.style.short_names:
                return var.name
            text = f"name={var.name}"
        else:
            return str(var.type)
        return f"{text} {var.type}"

    def _op_color(self, op: Op) -> str | None:
        for cls in type(op).__mro__:
            if cls.__name__ in self.style.colors:
                return self.style.colors[cls.__name__]
        return None

    def _output_color(self) -> str:
        return self.style.colors.get("Output", default_colorCodes["Output"])

    def _color(self, color: str) -> dict[str, str]:
        if self.style.high_contrast:
            return {"style": "filled", "fillcolor": color}
        return {"color": color}

    # the text

    def _attributes(self, label: str, **attributes: str) -> dict[str, str]:
        if len(label) > self.style.max_label_size:
            label = label[: max(self.style.max_label_size - 3, 0)] + "..."
        return {"label": label, **attributes}

    def _add(self, item: Variable | Apply, label: str, **attributes: str) -> None:
        name = self.names.setdefault(item, f"var{len(self.names)}")
        self.nodes[name] = self._attributes(label, **attributes)

    def _edge(self, start: str, stop: str, label: str = "", **attributes: str) -> None:
        self.edges.append(
            (start, stop, self._attributes(label, **attributes) if label else attributes)
        )

    def source(self) -> str:
        """Return the drawing in the DOT language."""
        lines = ["digraph G {"]
        lines += [f"  {name}{_brackets(a)};" for name, a in self.nodes.items()]
        lines += [f"  {a} -> {b}{_brackets(attributes)};" for a, b, attributes in self.edges]
        if self.style.cond_highlight:
            lines += self._branches()
        return "\n".join([*lines, "}\n"])

    def _branches(self) -> list[str]:
        """Return clusters of the Applys that one branch or both of the first condition need."""
        node = next((n for n in self.order if type(n.op).__name__ == "IfElse"), None)
        if node is None:
            warnings.warn(
                "cond_highlight is set, but there is no IfElse in the graph", stacklevel=4
            )
            return []
        _, *values = node.inputs
        half = len(values) // 2
        left, right = _computing(values[:half]), _computing(values[half:])
        groups = {
            "Left": [n for n in left if n not in right],
            "Right": [n for n in right if n not in left],
            "Middle": [n for n in left if n in right],
        }
        lines = []
        for label, nodes in groups.items():
            names = "".join(f" {self.names[n]};" for n in nodes)
            lines.append(f'  subgraph cluster_{label} {{ label="{label}";{names} }}')
        return lines


def _computing(variables: Sequence[Variable]) -> dict[Apply, None]:
    """Return the Applys that compute ``variables``, nearest first, as the keys of a dict."""
    return dict.fromkeys(var.owner for var in ancestors(variables) if var.owner is not None)


def _brackets(attributes: Mapping[str, str]) -> str:
    if not attributes:
        return ""
    content = ", ".join(f"{key}={_quoted(str(value))}" for key, value in attributes.items())
    return f" [{content}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'.replace("\0", "\\\\0")
