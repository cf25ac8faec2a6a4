"""The page on which ``d3viz`` draws a graph."""

import itertools
import json
import re

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.profiling.html import graphpage
from theano.d3viz import d3viz, d3write


def graph():
    """A function with a loop, an OpFromGraph and a profile."""
    x, a, b = T.dmatrix("x"), T.dmatrix("a"), T.dmatrix("b")
    w = theano.shared(np.ones((5, 4)), name="w</script>")
    y = theano.OpFromGraph([a, b], [T.tanh(a + b) * 2])(T.dot(x, w), T.dot(x, w))
    s, _ = theano.scan(lambda row, past: T.tanh(row + past), sequences=y, outputs_info=T.zeros(4))
    profile = theano.compile.profiling.ProfileStats(False)
    f = theano.function([x], s[-1], profile=profile, name="train")
    f(np.ones((3, 5)))
    return f


def data_of(path):
    text = path.read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found), text


def test_a_page_that_needs_nothing_else(tmp_path):
    path = tmp_path / "new" / "index.html"
    d3viz(graph(), str(path))
    data, text = data_of(path)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "default-src 'none'" in text and list(path.parent.iterdir()) == [path]
    assert "<title>train" in text
    kinds = {node["kind"] for node in data["nodes"]}
    assert {"apply", "input", "shared_input", "output"} <= kinds
    assert any(node["time"] for node in data["nodes"])
    assert {"Scan", "OpFromGraph"} == {
        node["label"] for node in data["nodes"] if node["name"] in data["inside"]
    }
    assert all(inside["nodes"] for inside in data["inside"].values())


def test_nodes_lie_below_what_they_depend_on_and_apart():
    x = T.dvector("x")
    y = x
    for k in range(6):
        y = T.exp(y) + T.sin(y) * k
    data = graphpage.drawing(graphpage.PyDotFormatter()([y, T.exp(x)]))
    rows = [node["row"] for node in data["nodes"]]
    for edge in data["edges"]:
        assert rows[edge["from"]] < rows[edge["to"]]
    places = sorted((node["row"], node["column"]) for node in data["nodes"])
    for (row, column), (next_row, next_column) in itertools.pairwise(places):
        assert row != next_row or next_column - column >= 0.999
    assert min(node["column"] for node in data["nodes"]) == 0
    assert graphpage.drawing(graphpage.PyDotFormatter()([]))["nodes"] == []


def test_a_file_in_the_dot_language(tmp_path):
    d3write(T.exp(T.dvector("x")), str(tmp_path / "g.dot"), compact=False)
    text = (tmp_path / "g.dot").read_text()
    assert text.startswith("digraph G {") and 'label="x"' in text


def test_helpers_of_the_module():
    assert graphpage.replace_patterns("a %% b %%", {"%%": 1}) == "a 1 b 1"
    assert graphpage.escape_quotes("""a"b'c""") == "a\\\"b\\'c"
    assert "<" not in graphpage.safe_json({"a": "</script>"})


@pytest.mark.slow
def test_the_page_in_a_browser(look, tmp_path):
    path = tmp_path / "graph.html"
    d3viz(graph(), path)
    view = look(path.read_text(encoding="utf-8"), shows=".node")
    nodes = view.locator(".node")
    count = nodes.count()
    assert count > 8
    view.locator(".node", has_text="Dot22").first.click()
    assert "Dot22" in view.locator("#about").inner_text()
    assert view.locator(".edge.near").count() >= 2 and view.locator(".node.faint").count() > 0
    view.click("#times")
    assert view.locator("#times").get_attribute("aria-pressed") == "true"
    view.locator(".node", has_text="OpFromGraph").first.dblclick(force=True)
    assert view.locator("#path").inner_text() == "OpFromGraph" and nodes.count() < count
    view.click("#back")
    assert nodes.count() == count
    view.fill("#find", "train nothing")
    assert view.locator(".node.faint").count() == count
    view.fill("#find", "")
    assert view.locator(".node.faint").count() == 0
