"""What Jupyter shows of functions and graphs: complete, safe, and bounded."""

import html.parser
import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.notebook import graphs

pytestmark = pytest.mark.null

HOSTILE = "</svg><script>alert(1)</script>\"'{{7*7}}&"
ELEMENTS = {
    "div", "span", "table", "tbody", "tr", "td", "details", "summary", "svg", "g", "path", "rect",
    "title", "text", "code",
}  # fmt: skip


class Elements(html.parser.HTMLParser):
    """The elements of a text, and the text in them."""

    def __init__(self, text):
        super().__init__()
        self.found, self.attributes, self.text = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_data(self, data):
        self.text += f"{data} "


def shown(thing):
    """Return the text of what is shown of a thing, after a look at its elements."""
    found = Elements(thing._repr_html_())
    assert found.found <= ELEMENTS, found.found - ELEMENTS
    assert not {name for name in found.attributes if name.startswith("on") or name == "href"}
    return " ".join(found.text.split())


def svg(thing):
    text = thing._repr_html_()
    return ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


@pytest.fixture
def train():
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = opwise.shared(np.zeros(3), name="w"), opwise.shared(0.0, name="b")
    p = T.nnet.sigmoid(T.dot(x, w) + b)
    cost = T.sqr(p - y).mean()
    rate = opwise.In(T.dscalar("rate"), value=0.1)
    f = opwise.function(
        [x, y, rate], [cost, p], updates=[(w, w - rate.variable * T.grad(cost, w))], name="train",
        mode="FAST_COMPILE", profile=True,
    )  # fmt: skip
    return f


def test_a_function_says_what_it_takes_and_gives(train):
    text = shown(train)
    assert text.startswith("train compiled function inputs x TensorType(float64, matrix)")
    assert "rate TensorType(float64, scalar) has a default value" in text
    assert "outputs mean " in text and "sigmoid(add(dot(...), b))" in text
    assert "updates w TensorType(float64, vector) becomes sub(w, mul(" in text
    assert "reads b TensorType(float64, scalar)" in text
    assert "mode FAST_COMPILE" in text
    assert f"runs {len(train.maker.fgraph.apply_nodes)} Applys" in text
    assert "compiled in 0." in text and "called" not in text
    assert "new w" in text


def test_a_called_function_says_where_its_time_goes(train):
    for _ in range(5):
        train(np.ones((100, 3)), np.ones(100))
    text = shown(train)
    assert "called 5 times, " in text and "with their share of the time" in text
    assert "% of the time" in text


def test_names_of_modes():
    x = T.dvector("x")
    named = {
        "FAST_RUN": "FAST_RUN", "FAST_COMPILE": "FAST_COMPILE",
        "Mode: py, fast_run -fusion": opwise.Mode("py", "fast_run").excluding("fusion"),
        "Mode: c|py, no rewrites": opwise.Mode("c|py", None),
    }  # fmt: skip
    for name, mode in named.items():
        assert f"mode {name} " in shown(opwise.function([x], x + 1, mode=mode))
    assert shown(opwise.function([x], x + 1, mode=mode)).startswith("test_rich.py:")


def test_what_runs_in_python_is_named():
    x = T.dvector("x")
    f = opwise.function([x], [T.exp(x), x + 1], mode=opwise.Mode("py", None))
    assert "3 Applys, 0 in C, 3 in Python: Elemwise{exp,no_inplace}, " in shown(f)


def test_hostile_names_are_text():
    x = T.dvector(HOSTILE)
    w = opwise.shared(np.zeros(2), name=HOSTILE)
    y = T.exp(x + w)
    y.name = HOSTILE
    f = opwise.function([x], {HOSTILE: y}, updates=[(w, w + y)], name=HOSTILE, mode="FAST_COMPILE")
    for thing in (x, w, y, y.owner, f, f.maker.fgraph, T.exp(y)):
        assert "alert(1)" in shown(thing)
    svg(f)


def test_a_drawing_has_each_apply_and_input_and_no_two_overlap():
    x, y = T.dvectors("x", "y")
    z = x
    for k in range(10):
        z = T.tanh(z * y + k)
    root = svg(z)
    rects = [e.attrib for e in root.iter() if e.tag.endswith("rect")]
    assert len(graphs._order(z)) == 40
    assert len(rects) == 40 + 2 + 10 + 1  # with the inputs, the constants and the output
    boxes = [[float(r[key]) for key in ("x", "y", "width")] for r in rects]
    rows = {}
    for left, top, width in boxes:
        rows.setdefault(top, []).append((left, left + width))
    for row in rows.values():
        row.sort()
        assert all(b[0] > a[1] for a, b in itertools.pairwise(row))
    widest = max(left + width for left, _, width in boxes)
    assert min(left for left, _, _ in boxes) >= 0 and widest <= float(root.attrib["width"])


def test_large_graphs_are_counted():
    z = x = T.dvector("x")
    for _ in range(3000):
        z = T.tanh(z + x)
    text = z._repr_html_()
    assert "<svg" not in text and len(text) < 3000
    assert "6000 Applys, too many to draw here. Their Ops: 3000 add 3000 tanh" in shown(z)
    f = opwise.function([x], z, mode=opwise.Mode("c|py", None))
    assert "6000 Applys after rewriting" in shown(f) and len(f._repr_html_()) < 6000


def test_many_inputs_are_cut():
    inputs = T.dscalars(*[f"x{k}" for k in range(30)])
    f = opwise.function(inputs, sum(inputs), mode="FAST_COMPILE")
    text = shown(f)
    assert "x19" in text and "and 10 more" in text


def test_leaves():
    assert shown(T.dvector("x")) == "x variable, TensorType(float64, vector)"
    assert shown(T.constant(3.0)).startswith("TensorConstant{3.0} constant, TensorType(float")
    w = opwise.shared(np.zeros((2, 3)), name="w")
    assert shown(w) == "w shared variable, TensorType(float64, matrix), shape (2, 3) now"


@pytest.mark.parametrize(
    ("op", "short"),
    [
        ("Elemwise{add,no_inplace}", "add"),
        ("Elemwise{Add}[(0, 0)]", "Add"),
        ("Elemwise{Cast{float64}}", "Cast float64"),
        ("Elemwise{Composite{(i0 + i1)}}[(0, 0)]", "(i0 + i1)"),
        ("Elemwise{Composite{Cast{float64}(i0)}}", "Cast{float64}(i0)"),
        ("Sum{acc_dtype=float64}", "Sum"),
        ("InplaceDimShuffle{x,0}", "DimShuffle"),
        ("sigmoid", "sigmoid"),
        ("Elemwise{", ""),
    ],
)
def test_short_names_of_ops(op, short):
    assert graphs.short_op(op) == short


def test_text_stays_as_theano_has_it(train):
    x = T.dvector("x")
    assert repr(T.exp(x)) == "Elemwise{exp,no_inplace}.0"
    assert repr(train).startswith("<Function train(")
