"""Drawing: the text of the DOT language, and pydotprint with and without Graphviz."""

import shutil
from types import SimpleNamespace

import pytest

from opwise import Constant, FunctionGraph, generic
from opwise.graph.drawing import dot_source
from opwise.printing import pydotprint, pydotprint_variables

pytestmark = pytest.mark.null


@pytest.fixture
def drawn(toy, leaves):
    """x, y, and k(f(x, 3), g(f)), where f destroys x and g returns a view."""
    x, y = leaves("xy")
    f = toy("f", destroys=0)(x, Constant(generic, 3))
    return x, y, toy("k")(f, toy("g", views=0)(f))


def lines(text):
    return [line.strip().rstrip(";") for line in text.splitlines()]


def test_the_text_of_a_graph(drawn):
    *_, k = drawn
    assert dot_source(k) == (
        "digraph G {\n"
        f'  var3 [label="name=x {generic}", shape="box", style="filled", fillcolor="green"];\n'
        f'  var4 [label="val=3 {generic}", shape="box", style="filled", fillcolor="green"];\n'
        '  op0 [label="f", shape="ellipse"];\n'
        '  op1 [label="g", shape="ellipse"];\n'
        '  op2 [label="k", shape="ellipse"];\n'
        f'  var5 [label="{generic}", shape="box", style="filled", fillcolor="blue"];\n'
        '  var3 -> op0 [label="0", color="red"];\n'
        '  var4 -> op0 [label="1"];\n'
        f'  op0 -> op1 [label="{generic}", color="blue"];\n'
        f'  op0 -> op2 [label="0 {generic}"];\n'
        f'  op1 -> op2 [label="1 {generic}"];\n'
        "  op2 -> var5;\n"
        "}\n"
    )


def written(tmp_path, graph, **options):
    path = tmp_path / "graph.dot"
    pydotprint(graph, outfile=path, format="dot", print_output_file=False, **options)
    return lines(path.read_text())


def test_variables_between_applys_are_boxes_if_not_compact(drawn, tmp_path):
    *_, k = drawn
    found = written(tmp_path, k, compact=False)
    assert sum('shape="box"' in line for line in found) == 5
    assert not any(f'label="0 {generic}"' in line for line in found)


def test_a_named_variable_is_a_box_and_may_hide_its_type(drawn, tmp_path):
    *_, k = drawn
    k.owner.inputs[0].name = "eff"
    assert any(f'label="name=eff {generic}"' in line for line in written(tmp_path, k))
    found = written(tmp_path, k, var_with_name_simple=True)
    assert any('label="eff"' in line for line in found)
    assert any('label="x"' in line for line in found)


def test_labels_are_numbered_and_cut(drawn, tmp_path):
    *_, k = drawn
    found = written(tmp_path, k, with_ids=True)
    assert 'op2 [label="k id=2", shape="ellipse"]' in found
    short = written(tmp_path, k, max_label_size=6)
    assert any('label="nam..."' in line for line in short)


def test_colors(drawn, tmp_path):
    *_, k = drawn
    found = written(tmp_path, k, colorCodes={"Toy": "pink"}, high_contrast=False)
    assert 'op0 [label="f", shape="ellipse", color="pink"]' in found
    assert any('color="blue"' in line and 'shape="box"' in line for line in found)
    assert not any("fillcolor" in line for line in found)


def test_text_is_quoted(toy, leaves, tmp_path):
    (x,) = leaves(['a "b"\\'])
    found = written(tmp_path, toy("f")(x))
    assert any(r'label="name=a \"b\"\\ ' in line for line in found)


def test_a_function_shows_its_updates(drawn, tmp_path):
    x, _, k = drawn
    fgraph = FunctionGraph([x], [k], clone=False)
    maker = SimpleNamespace(fgraph=fgraph, expanded_inputs=[SimpleNamespace(update=k)])
    found = written(tmp_path, SimpleNamespace(maker=maker))
    assert any('fillcolor="cyan"' in line for line in found)
    assert any('label="UPDATE", color="blue"' in line for line in found)
    assert written(tmp_path, fgraph) != found


def test_an_output_that_is_an_input_has_a_second_box(leaves, tmp_path):
    x, y = leaves("xy")
    found = written(tmp_path, [x])
    assert "var0 -> result0" in found
    assert len(found) == len(written(tmp_path, FunctionGraph([x, y], [x], clone=False))) - 1


def test_several_results_and_an_apply(toy, leaves, tmp_path):
    both = toy("t", outs=2)(*leaves("x"))
    found = written(tmp_path, both[0].owner)
    assert [line for line in found if line.startswith("op0 ->")] == [
        'op0 -> var2 [label="0"]', 'op0 -> var3 [label="1"]',
    ]  # fmt: skip
    assert len(written(tmp_path, both[:1])) == len(found) - 2


def test_branches_of_a_condition_are_framed(toy, leaves, tmp_path):
    condition, x = leaves("cx")
    both = toy("both")(x)

    class IfElse(toy):
        pass

    out = IfElse("if")(condition, toy("left")(both), toy("right")(both))
    found = written(tmp_path, out, cond_highlight=True)
    names = {line.split('label="')[1].split('"')[0]: line.split()[0] for line in found
             if line.startswith("op") and "->" not in line}  # fmt: skip
    assert f'subgraph cluster_Left {{ label="Left"; {names["left"]}; }}' in found
    assert f'subgraph cluster_Right {{ label="Right"; {names["right"]}; }}' in found
    assert f'subgraph cluster_Middle {{ label="Middle"; {names["both"]}; }}' in found
    with pytest.warns(UserWarning, match="no IfElse in the graph"):
        written(tmp_path, both, cond_highlight=True)


def test_inner_graphs_of_loops_are_drawn_into_separate_files(toy, leaves, tmp_path):
    x, inner = leaves(["x", "inner"])
    loop = toy("loop")
    loop.inner_graph = lambda node: ([toy("step")(inner)], {inner: node.inputs[0]})
    written(tmp_path, loop(x), scan_graphs=True)
    assert 'label="step"' in (tmp_path / "graph_0.dot").read_text()


def test_the_extension_follows_the_format(drawn, tmp_path, capsys):
    *_, k = drawn
    pydotprint(k, str(tmp_path / "plain"), format="dot")
    assert (tmp_path / "plain.dot").exists()
    assert capsys.readouterr().out == f"The output file is available at {tmp_path / 'plain.dot'}\n"


def test_drawing_another_object_raises(tmp_path):
    with pytest.raises(TypeError, match=r"pydotprint draws compiled functions.* not 3"):
        written(tmp_path, 3)


def test_without_graphviz_the_text_is_written_with_a_warning(drawn, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    text = tmp_path / "graph.dot"
    said = rf"cannot run Graphviz.*Install graphviz.*now in {text};.*dot -Tpng {text} -o .*\.png$"
    with pytest.warns(UserWarning, match=said):
        pydotprint(drawn[-1], tmp_path / "graph.png")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.dot"]
    assert text.read_text() == dot_source(drawn[-1])
    assert capsys.readouterr().out == f"The output file is available at {text}\n"


def test_without_graphviz_there_is_no_image_to_return(drawn, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"cannot run Graphviz.*Install graphviz"):
        pydotprint(drawn[-1], return_image=True)
    assert not list(tmp_path.iterdir())


def test_graphviz_renders_the_text(drawn, tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\necho "picture $1 of"\nexec /bin/cat\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    *_, k = drawn
    text = dot_source(k).encode()
    assert pydotprint(k, return_image=True, format="svg") == b"picture -Tsvg of\n" + text
    pydotprint(k, tmp_path / "graph.png", print_output_file=False)
    assert (tmp_path / "graph.png").read_bytes() == b"picture -Tpng of\n" + text


def test_errors_of_graphviz_are_shown(drawn, tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\necho "Format: $1 not recognized." >&2\nexit 1\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"as 'pgn': Format: -Tpgn not recognized\."):
        pydotprint(drawn[-1], tmp_path / "graph", format="pgn")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize(
    ("format", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_pictures_rendered_by_graphviz(drawn, tmp_path, format, start):
    *_, k = drawn
    path = tmp_path / f"graph.{format}"
    pydotprint(k, path, format=format, print_output_file=False)
    assert path.read_bytes().startswith(start)
    drawn_text = pydotprint(k, return_image=True, format="svg").decode()
    assert drawn_text.count('class="node"') == 6 and drawn_text.count('class="edge"') == 6


def test_pydotprint_variables_warns_and_draws(drawn, tmp_path):
    *_, k = drawn
    path = tmp_path / "graph.dot"
    with pytest.warns(UserWarning, match="Use pydotprint") as caught:
        pydotprint_variables(k, path, "dot", print_output_file=False)
    assert caught[0].filename == __file__
    assert path.read_text() == dot_source(k)
