"""Graphs as nodes and edges of the DOT language."""

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.graph import dotgraph
from opwise.graph.dotgraph import Dot, Edge, Node, PyDotFormatter

pytestmark = pytest.mark.null


def network():
    x = T.dmatrix("x")
    w = theano.shared(np.ones((5, 4)), name="w")
    return x, T.nnet.sigmoid(T.dot(x, w) + 1)


def kinds(graph):
    found = {}
    for node in graph.get_nodes():
        found.setdefault(node.get("node_type"), []).append(node.get("label"))
    return found


def test_nodes_and_edges_of_variables():
    _, y = network()
    graph = PyDotFormatter()(y)
    found = kinds(graph)
    assert found["input"] == ["x"] and found["shared_input"] == ["w"]
    assert found["constant_input"] == ["1"] and found["output"] == ["dmatrix"]
    assert sorted(found["apply"]) == ["DimShuffle", "Dot", "Elemwise", "Elemwise"]
    names = {node.get_name() for node in graph.get_nodes()}
    for edge in graph.get_edges():
        assert {edge.get_source(), edge.get_destination()} <= names
    assert len(graph.get_edges()) == 7
    (node,) = [node for node in graph.get_nodes() if node.get("label") == "x"]
    assert node.get("shape") == "box" and node.get("fillcolor") == "limegreen"
    assert graph.get_node(node.get_name()) == [node] and graph.get_node("none") == []


def test_anything_that_has_a_graph():
    x, y = network()
    f = theano.function([x], y, mode="FAST_COMPILE")
    for fct in (f, f.maker.fgraph, y, [y], y.owner):
        assert len(PyDotFormatter()(fct).get_nodes()) >= 4
    with pytest.raises(TypeError, match="a graph to draw is a compiled function"):
        PyDotFormatter()(3)


def test_variables_between_and_unused_outputs():
    x = T.dvector("x")
    named = T.exp(x)
    named.name = "e"
    graph = PyDotFormatter()(named * 2)
    assert "e" in kinds(graph)["output"]
    loose = PyDotFormatter(compact=False)(T.exp(T.exp(x)))
    assert len(loose.get_nodes()) == len(PyDotFormatter()(T.exp(T.exp(x))).get_nodes()) + 1
    assert kinds(PyDotFormatter()(x)) == {"input": ["x"]}  # an output that is an input


def test_graphs_inside():
    a, b = T.dmatrices("a", "b")
    inner = theano.OpFromGraph([a, b], [T.tanh(a + b)])
    outer = theano.OpFromGraph([a, b], [inner(a, b) * 2])
    x = T.dmatrix("x")
    s, _ = theano.scan(lambda row: T.exp(row), sequences=outer(x, x))
    graph = PyDotFormatter()(s)
    assert len(graph.get_subgraph_list()) == 2
    opens = [node for node in graph.get_nodes() if node.get("subg")]
    assert {node.get("apply_op") for node in opens} == {"OpFromGraph", "Scan"}
    (first,) = [node for node in opens if node.get("apply_op") == "OpFromGraph"]
    (cluster,) = [c for c in graph.get_subgraphs() if c.get_name() == first.get("subg")]
    assert len(cluster.get_subgraphs()) == 1
    assert first.get("subg_map_inputs").count("[") == 3 and first.get("subg_map_outputs")


def test_text(tmp_path):
    graph = Dot(rankdir="LR")
    graph.add_node(Node("a", label='a "b"\nc'))
    graph.add_node(Node("b"))
    graph.add_edge(Edge("a", "b", color="red"))
    text = graph.to_string()
    assert text == (
        'digraph G {\n  rankdir="LR";\n  a [label="a \\"b\\"\\nc"];\n  b;\n'
        '  a -> b [color="red"];\n}\n'
    )
    assert graph.create_dot().decode() == text
    assert graph.write_dot(tmp_path / "g.dot") and (tmp_path / "g.dot").read_text() == text
    graph.get_edges()[0].set("color", "blue")
    assert "blue" in graph.to_string() and graph.get_edges()[0].get("label") is None


def test_labels():
    assert dotgraph.var_label(T.dmatrix("m")) == "m"
    assert dotgraph.var_label(T.fcol()) == "fcol"
    assert dotgraph.var_label(T.constant(np.arange(30.0).reshape(5, 6))).startswith("[[")
    assert "\n" not in dotgraph.var_label(T.constant(np.eye(9)))
    assert dotgraph.type_to_str(T.itensor3().type) == "int32"
    assert dotgraph.type_to_str(theano.gof.generic) == "Generic"
    assert dotgraph.broadcastable_to_str((True, False)) == "row"
    assert dotgraph.dtype_to_char("bool") == "X"
    assert dotgraph.apply_label(T.exp(T.dvector()).owner) == "Elemwise"
    path, line, source = dotgraph.var_tag(T.exp(T.dvector()))
    assert path == "test_dotgraph.py" and int(line) > 90 and "var_tag" in source
    node = dotgraph.dict_to_pdnode({"name": "n", "label": 'a"b', "tag": None, "profile": [1, 2]})
    assert node.get_attributes() == {"label": "a'b", "profile": "1\t2"}


def test_times_of_a_profile():
    x, y = network()
    profile = theano.compile.profiling.ProfileStats(False)
    f = theano.function([x], y, profile=profile)
    assert dotgraph.apply_profile(f.maker.fgraph.toposort()[0], profile) is None  # not called yet
    f(np.ones((3, 5)))
    times = [node.get("profile") for node in PyDotFormatter()(f).get_nodes()]
    parts = [tuple(map(float, each.split("\t"))) for each in times if each]
    assert parts and all(0 <= own <= total for own, total in parts)
    assert len({total for _, total in parts}) == 1
