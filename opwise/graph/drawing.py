"""Graphs as pictures: a graph as text of the DOT language, and pydotprint, which renders it.

Rendering runs the program dot of Graphviz, which is looked for when a picture is asked for.
"""

from __future__ import annotations

import os
import warnings
from typing import NamedTuple

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.traversal import ancestors, io_toposort
from opwise.graph.variable import Constant, Variable

__all__ = ["default_colorCodes", "dot_source", "pydotprint", "pydotprint_variables"]

#: fill colors by class of Op; 'Output' is that of the results
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
    fct,
    outfile=None,
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
):
    """Draw a graph into a file: ellipses are Applys, boxes variables.

    fct: a compiled function, a FunctionGraph, an Apply, a variable or a list of these. outfile: by
    default a file in config.compiledir. compact: leave out variables without a name that are
    neither inputs nor results. format: what Graphviz knows ('png', 'svg', 'pdf', ...); 'dot' writes
    the text, and needs no Graphviz. with_ids: number the Applys by their order.
    high_contrast: color areas instead of outlines. cond_highlight: frame what only one branch of a
    condition needs. colorCodes: colors by class name of Ops. max_label_size: longer labels are cut.
    scan_graphs: draw the graphs inside loops into files of their own. var_with_name_simple: leave
    the type out of the label of a named variable. print_output_file: say where the file is.
    return_image: return the picture as bytes and write no file.

    Inputs are green, updated shared variables cyan, results blue; an operand that is overwritten
    has a red edge, one that the result is a view of a blue edge. Raises FileNotFoundError without
    Graphviz, and ValueError for a format that it does not know.
    """
    style = _Style(
        compact, with_ids, high_contrast, bool(cond_highlight),
        default_colorCodes if colorCodes is None else colorCodes,
        max_label_size, var_with_name_simple,
    )  # fmt: skip
    source = dot_source(fct, style)
    if return_image:
        return _render(source, format)
    if outfile is None:
        outfile = os.path.join(config.compiledir, f"theano.pydotprint.{config.device}.{format}")
    outfile = str(outfile)
    if not outfile.endswith(f".{format}"):
        outfile = f"{outfile}.{format}"
    _write(source, outfile, format)
    if print_output_file:
        print("The output file is available at", outfile)
    if scan_graphs:
        stem, extension = os.path.splitext(outfile)
        for i, node in enumerate(_loops(fct)):
            outputs, _ = node.op.inner_graph(node)
            _write(dot_source(outputs, style), f"{stem}_{i}{extension}", format)
    return None


def pydotprint_variables(vars, outfile=None, format="png", **kwargs):
    """Draw variables: the former name of ``pydotprint``, whose arguments it takes; warns."""
    provenance.warn("pydotprint_variables() is deprecated. Use pydotprint() instead.")
    return pydotprint(vars, outfile=outfile, format=format, **kwargs)


def _write(source, outfile, format) -> None:
    data = _render(source, format)
    with open(outfile, "wb") as f:
        f.write(data)


def _render(source: str, format: str) -> bytes:
    """Return a picture of DOT text."""
    if format == "dot":
        return source.encode()
    import subprocess  # slow to import

    try:
        done = subprocess.run(
            ["dot", f"-T{format}"], input=source.encode(), capture_output=True, check=False
        )
    except FileNotFoundError as e:
        raise FileNotFoundError(
            f"pydotprint cannot run Graphviz: {e}. Install graphviz, so that its program dot is on "
            "the PATH; format='dot' writes the graph as text without it."
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise ValueError(
            f"Graphviz could not draw the graph as {format!r}: {said} Choose another format, such "
            "as 'png', 'svg' or 'pdf'."
        )
    return done.stdout


class _Style(NamedTuple):
    compact: bool = True
    with_ids: bool = False
    high_contrast: bool = True
    cond_highlight: bool = False
    colors: dict[str, str] = default_colorCodes
    max_label_size: int = 70
    short_names: bool = False


def dot_source(fct, style: _Style | None = None) -> str:
    """Return a graph in the DOT language; the same graph gives the same text in every process."""
    picture = _Picture(fct, _Style() if style is None else style)
    return picture.source()


def _parts(fct):
    """Return (inputs, outputs, dict from an updated input to its new value) of what is drawn."""
    fgraph = fct if isinstance(fct, FunctionGraph) else None
    updates = {}
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


def _updates(maker, fgraph):
    """Return the dict from each input that a compiled function updates to its new value."""
    given = getattr(maker, "expanded_inputs", ())
    updated = [
        var for outer, var in zip(given, fgraph.inputs, strict=False) if outer.update is not None
    ]
    # the new values are the last outputs
    return dict(zip(updated, fgraph.outputs[len(fgraph.outputs) - len(updated) :], strict=True))


def _loops(fct):
    inputs, outputs, _ = _parts(fct)
    return [node for node in io_toposort(inputs, outputs) if hasattr(node.op, "inner_graph")]


class _Picture:
    """The nodes and edges of one drawing, in the order of the graph."""

    def __init__(self, fct, style):
        self.style = style
        inputs, self.outputs, self.updates = _parts(fct)
        self.order = io_toposort(inputs, self.outputs)
        self.inputs = [*inputs, *self._leaves(inputs)]
        self.read = {var for node in self.order for var in node.inputs}
        #: what the Applys and the variables that have a box are called in the text
        self.names: dict[Variable | Apply, str] = {
            node: f"op{i}" for i, node in enumerate(self.order)
        }
        self.nodes: dict[str, dict] = {}
        self.edges: list[tuple[str, str, dict]] = []
        self._draw()

    def _leaves(self, inputs):
        known = set(inputs)
        leaves = [v for node in self.order for v in node.inputs if v.owner is None]
        leaves += [v for v in self.outputs if v.owner is None]
        return [v for v in dict.fromkeys(leaves) if v not in known]

    def _draw(self):
        for var in self.inputs:
            color = "cyan" if var in self.updates else "green"
            self._add(var, self._variable_label(var), shape="box", **self._color(color))
        for number, node in enumerate(self.order):
            self._draw_apply(number, node)
        for i, var in enumerate(dict.fromkeys(self.outputs)):
            if var.owner is None:
                # a result that is an input has a box of its own
                name = f"result{i}"
                self.nodes[name] = self._attributes(
                    self._variable_label(var), shape="box", **self._color(self._output_color())
                )
                self._edge(self.names[var], name)
        for old, new in self.updates.items():
            self._edge(self.names[new], self.names[old], "UPDATE", color="blue")

    def _draw_apply(self, number, node):
        label = str(node.op) + (f" id={number}" if self.style.with_ids else "")
        color = self._op_color(node.op)
        self._add(node, label, shape="ellipse", **(self._color(color) if color else {}))
        destroyed = {i for indices in node.op.destroy_map.values() for i in indices}
        viewed = {i for indices in node.op.view_map.values() for i in indices}
        for i, var in enumerate(node.inputs):
            color = {}
            if i in destroyed:
                color = {"color": "red"}
            elif i in viewed:
                color = {"color": "blue"}
            label = str(i) if len(node.inputs) > 1 else ""
            if var in self.names:
                self._edge(self.names[var], self.names[node], label, **color)
            else:
                label = f"{label} {var.type}".strip()
                self._edge(self.names[var.owner], self.names[node], label, **color)
        for out in node.outputs:
            self._draw_result(node, out)

    def _draw_result(self, node, out):
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

    def _variable_label(self, var):
        if isinstance(var, Constant):
            text = f"val={str(var.data).partition(chr(10))[0]}"
        elif var.name is not None:
            if self.style.short_names:
                return var.name
            text = f"name={var.name}"
        else:
            return str(var.type)
        return f"{text} {var.type}"

    def _op_color(self, op):
        for cls in type(op).__mro__:
            if cls.__name__ in self.style.colors:
                return self.style.colors[cls.__name__]
        return None

    def _output_color(self):
        return self.style.colors.get("Output", default_colorCodes["Output"])

    def _color(self, color):
        if self.style.high_contrast:
            return {"style": "filled", "fillcolor": color}
        return {"color": color}

    # the text

    def _attributes(self, label, **attributes):
        if len(label) > self.style.max_label_size:
            label = label[: max(self.style.max_label_size - 3, 0)] + "..."
        return {"label": label, **attributes}

    def _add(self, item, label, **attributes):
        name = self.names.setdefault(item, f"var{len(self.names)}")
        self.nodes[name] = self._attributes(label, **attributes)

    def _edge(self, start, stop, label="", **attributes):
        self.edges.append(
            (start, stop, self._attributes(label, **attributes) if label else attributes)
        )

    def source(self):
        lines = ["digraph G {"]
        lines += [f"  {name}{_brackets(a)};" for name, a in self.nodes.items()]
        lines += [f"  {a} -> {b}{_brackets(attributes)};" for a, b, attributes in self.edges]
        if self.style.cond_highlight:
            lines += self._branches()
        return "\n".join([*lines, "}\n"])

    def _branches(self):
        """Return clusters of what the branches of the first condition need, alone and both."""
        node = next((n for n in self.order if type(n.op).__name__ == "IfElse"), None)
        if node is None:
            warnings.warn(
                "cond_highlight is set, but there is no IfElse in the graph", stacklevel=4
            )
            return []
        _, *values = node.inputs
        half = len(values) // 2
        left, right = (
            dict.fromkeys(var.owner for var in ancestors(branch) if var.owner is not None)
            for branch in (values[:half], values[half:])
        )
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


def _brackets(attributes):
    if not attributes:
        return ""
    content = ", ".join(f"{key}={_quoted(str(value))}" for key, value in attributes.items())
    return f" [{content}]"


def _quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
