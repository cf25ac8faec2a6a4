"""debugprint, pprint, short descriptions and the Op that prints: layouts and options."""

import hashlib
import io
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from opwise import Constant, FunctionGraph, generic, pprint
from opwise.graph import printing
from opwise.graph.printing import char_from_number
from opwise.printing import (
    DefaultPrinter,
    FunctionPrinter,
    IgnorePrinter,
    LeafPrinter,
    MemberPrinter,
    OperatorPrinter,
    PatternPrinter,
    PPrinter,
    Print,
    PrinterState,
    debugprint,
    hex_digest,
    min_informative_str,
    position_independent_str,
    var_descriptor,
)

pytestmark = pytest.mark.null


@pytest.fixture
def graph(toy, leaves):
    """x, y, f(x, y) named 'eff', and g(f, h(f), 3)."""
    x, y = leaves("xy")
    f = toy("f")(x, y)
    f.name = "eff"
    return x, y, f, toy("g")(f, toy("h")(f), Constant(generic, 3))


def show(obj, **options):
    return debugprint(obj, file="str", **options)


# --- debugprint: layout ---------------------------------------------------------------------------


def test_a_repeated_variable_is_a_single_line(graph):
    assert show(graph[-1]) == (
        "g [id A] ''   \n"
        " |f [id B] 'eff'   \n"
        " | |x [id C]\n"
        " | |y [id D]\n"
        " |h [id E] ''   \n"
        " | |f [id B] 'eff'   \n"
        " |Constant{3} [id F]\n"
    )


def test_lines_below_the_last_operand_start_with_blanks(toy, leaves):
    x, y = leaves("xy")
    f = toy("f")
    assert show(f(f(x, y), f(f(x), y))) == (
        "f [id A] ''   \n"
        " |f [id B] ''   \n"
        " | |x [id C]\n"
        " | |y [id D]\n"
        " |f [id E] ''   \n"
        "   |f [id F] ''   \n"
        "   | |x [id C]\n"
        "   |y [id D]\n"
    )


@pytest.mark.parametrize(
    ("ids", "first", "leaf"),
    [("CHAR", "g [id A] ''   ", " | |x [id C]"), ("int", "g [id 0] ''   ", " | |x [id 2]"),
     ("", "g  ''   ", " | |x ")],
)  # fmt: skip
def test_ids(graph, ids, first, leaf):
    lines = show(graph[-1], ids=ids).splitlines()
    assert (lines[0], lines[2]) == (first, leaf)


def test_ids_of_python(graph):
    *_, g = graph
    assert show(g, ids="id").startswith(f"g [id {id(g.owner)}] ''")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "A"), (25, "Z"), (26, "BA"), (27, "BB"), (26 * 26 - 1, "ZZ"), (26 * 26, "BAA")],
)
def test_char_from_number(number, text):
    assert char_from_number(number) == text


def test_depth(graph):
    *_, g = graph
    assert show(g, depth=0) == ""
    assert show(g, depth=1) == "g [id A] ''   \n"
    assert show(g, depth=2) == (
        "g [id A] ''   \n |f [id B] 'eff'   \n |h [id C] ''   \n |Constant{3} [id D]\n"
    )
    assert show(g, depth=-5) == show(g)


def test_print_type(graph):
    lines = show(graph[-1], print_type=True).splitlines()
    assert lines[:3] == [
        f"g [id A] <{generic}> ''   ",
        f" |f [id B] <{generic}> 'eff'   ",
        f" | |x [id C] <{generic}>",
    ]


def test_stop_on_name(graph):
    assert show(graph[-1], stop_on_name=True) == (
        "g [id A] ''   \n"
        " |f [id B] 'eff'   \n"
        " |h [id C] ''   \n"
        " | |f [id B] 'eff'   \n"
        " |Constant{3} [id D]\n"
    )


def test_outputs_of_one_apply_share_an_id(toy, leaves):
    (x,) = leaves("x")
    first, second = toy("t", outs=2)(x)
    both = "t.0 [id A] ''   \n |x [id B]\nt.1 [id A] ''   \n"
    assert show([first, second]) == both
    assert show(first.owner) == both
    assert show(second) == "t.1 [id A] ''   \n |x [id B]\n"


def test_view_and_destroy_maps_are_optional(toy, leaves):
    (x,) = leaves("x")
    made = toy("d", destroys=0)(toy("v", views=0)(x))
    assert show(made) == "d [id A] ''   \n |v [id B] ''   \n   |x [id C]\n"
    assert show(made, print_destroy_map=True, print_view_map=True) == (
        "d [id A] '' d={0: [0]}  \n |v [id B] ''  v={0: [0]} \n   |x [id C]\n"
    )


def test_several_things_are_printed_one_after_the_other(graph):
    x, _, f, _ = graph
    assert show([f, x, 3, 2.5, np.array([1, 2]), SimpleNamespace(variable=x)]) == (
        "f [id A] 'eff'   \n |x [id B]\n |y [id C]\nx [id B]\n3\n2.5\n[1 2]\nx [id B]\n"
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: show("text"), TypeError, "cannot print an object of this type: 'text'"),
        (lambda x: show(None), TypeError, "cannot print"),
        (lambda x: show([[x]]), TypeError, "cannot print"),
        (lambda x: show(x, depth="1"), TypeError, "must be an int, got '1'"),
        (lambda x: show(x, ids="roman"), ValueError, "ids must be one of .* not 'roman'"),
    ],
)
def test_debugprint_of_another_object_raises(call, error, message):
    with pytest.raises(error, match=message):
        call(generic("x"))


def test_debugprint_writes_to_a_file_or_returns_the_text(graph, capsys):
    x = graph[0]
    assert debugprint(x) is None
    assert capsys.readouterr().out == "x [id A]\n"
    file = io.StringIO()
    assert debugprint(x, file=file) is file
    assert file.getvalue() == "x [id A]\n"


def test_ids_and_what_was_printed_may_be_shared_between_calls(graph):
    x, y, f, _ = graph
    used, done = {}, {}
    assert show(y, used_ids=used) == "y [id A]\n"
    assert show(x, used_ids=used) == "x [id B]\n"
    assert show(f, used_ids=used, done=done) == "f [id C] 'eff'   \n |x [id B]\n |y [id A]\n"
    assert show(f, used_ids=used, done=done) == "f [id C] 'eff'   \n"
    assert done == {f.owner: "[id C]"}


def test_debugprint_of_deep_graphs(toy, leaves):
    (top,) = leaves("x")
    op = toy("f")
    for _ in range(3000):
        top = op(top)
    text = show(top)
    assert text.count("\n") == 3001
    indented = f"\n{'  ' * 199} |f [id {char_from_number(200)}] ''   \n"
    assert indented in text  # deeper ones are not indented further
    assert text.endswith(f"\n |... level 3000 ... |x [id {char_from_number(3000)}]\n")


# --- debugprint: functions ------------------------------------------------------------------------


@pytest.fixture
def function(toy, leaves):
    """The attributes of a compiled function of k(e(x), s(e(x))) and e(x) that debugprint reads."""
    (x,) = leaves("x")
    e = toy("e")(x)
    s = toy("s")(e)
    fgraph = FunctionGraph([x], [toy("k")(e, s), e], clone=False)
    storage_map = {x: ["value of x"], e: [None]}
    return SimpleNamespace(
        maker=SimpleNamespace(fgraph=fgraph), linked=SimpleNamespace(storage_map=storage_map)
    )


FUNCTION = (
    "k [id A] ''   2\n |e [id B] ''   0\n | |x [id C]\n |s [id D] ''   1\n"
    "   |e [id B] ''   0\ne [id B] ''   0\n"
)


def test_a_function_shows_its_order(function):
    assert show(function) == FUNCTION
    assert show(function.maker.fgraph) == FUNCTION
    # outside the function there is no order
    assert show(function.maker.fgraph.outputs[1]) == "e [id A] ''   \n |x [id B]\n"


def test_print_storage(function):
    assert show(function, print_storage=True) == (
        "k [id A] ''   2\n |e [id B] ''   0 [None]\n | |x [id C] ['value of x']\n"
        " |s [id D] ''   1\n   |e [id B] ''   0 [None]\ne [id B] ''   0 [None]\n"
    )


def test_print_clients_of_variables_with_several_readers(function):
    clients = "clients:[('[id C]', 1), ('[id A]', 2), ('output', '')]"
    assert show(function, print_clients=True) == (
        f"k [id A] ''   2\n |e [id B] ''   0 {clients}\n | |x [id E]\n |s [id C] ''   1\n"
        f"   |e [id B] ''   0 {clients}\ne [id B] ''   0 {clients}\n"
    )


def test_times_are_shown_where_there_is_a_profile(function):
    k, e = (v.owner for v in function.maker.fgraph.outputs)
    function.profile = SimpleNamespace(
        apply_time={k: 0.25, e: 0.5},
        fct_call_time=1.0,
        compute_total_times=lambda: {k: 1.0, e: 0.5},
    )
    text = show(function)
    assert text.startswith("\nTiming Info\n-----------\n--> <time> <% time> - <total time>")
    lines = text.splitlines()
    assert "k [id A] ''   2 --> 2.50e-01s 25.0% 1.00e+00s 100.0%" in lines
    assert " |e [id B] ''   0 --> 5.00e-01s 50.0% 5.00e-01s 50.0%" in lines
    assert " |s [id D] ''   1" in lines
    assert text.count("Timing Info") == 1


def test_a_profile_without_times_adds_nothing(function):
    function.profile = SimpleNamespace(apply_time={})
    assert show(function) == FUNCTION


# --- debugprint: graphs inside Ops ----------------------------------------------------------------


def test_inner_graphs_follow_once_for_each_result(toy, leaves):
    x, n, step, other = leaves(["x", "n", "x[t]", "n_copy"])
    inner = [toy("add")(step, other), toy("mul")(step, step)]
    loop = toy("loop", outs=2)
    loop.inner_graph = lambda node: (inner, {step: node.inputs[0], other: node.inputs[1]})
    made = toy("exp")(x)
    first, second = loop(made, n)
    assert show([first, second]) == (
        "loop.0 [id A] ''   \n |exp [id B] ''   \n | |x [id C]\n |n [id D]\nloop.1 [id A] ''   \n"
        "\n"
        "Inner graphs of the scan ops:\n"
        "\n"
        "loop.0 [id A] ''   \n"
        " >add [id E] ''   \n"
        " > |x[t] [id F] -> [id B]\n"
        " > |n_copy [id G] -> [id D]\n"
        " >mul [id H] ''   \n"
        " > |x[t] [id F] -> [id B]\n"
        " > |x[t] [id F] -> [id B]\n"
        "\n"
        "loop.1 [id A] ''   \n"
        " >add [id E] ''   \n"
        " >mul [id H] ''   \n"
    )


def test_loops_inside_loops_are_found(toy, leaves):
    x, a, b = leaves("xab")
    innermost = toy("inner")
    innermost.inner_graph = lambda node: ([toy("f")(b)], {b: node.inputs[0]})
    outer = toy("outer")
    body = innermost(a)
    outer.inner_graph = lambda node: ([body], {a: node.inputs[0]})
    text = show(outer(x))
    assert text.count("Inner graphs of the scan ops:") == 1
    assert text.endswith(
        "\nouter [id A] ''   \n >inner [id C] ''   \n >   |a [id D] -> [id B]\n".replace(
            " >   |", " > |"
        )
        + "\ninner [id C] ''   \n >f [id E] ''   \n > |b [id F] -> [id D]\n"
    ), text


# --- pprint ---------------------------------------------------------------------------------------


@pytest.fixture
def printer(toy):
    """A printer for + and * only."""
    p = PPrinter()
    p.assign(toy("add"), OperatorPrinter("+", -2, "either"))
    p.assign(toy("mul"), OperatorPrinter("*", -1, "either"))
    return p


def test_operators_stand_between_operands_in_parentheses(printer, toy, leaves):
    x, y, z = leaves("xyz")
    add, mul = toy("add"), toy("mul")
    assert printer(add(x, mul(y, z))) == "(x + (y * z))"
    assert printer(add(x, y, z)) == "(x + y + z)"
    assert printer(mul(add(x, y), z)) == "((x + y) * z)"
    assert printer(add(x)) == "(+x)"


def test_each_kind_of_printer(printer, toy, leaves):
    x, y = leaves("xy")
    printer.assign(toy("exp"), FunctionPrinter("exponential"))
    printer.assign(toy("abs"), PatternPrinter(("|%(0)s|", -1000)))
    printer.assign(toy("swap"), PatternPrinter("%(1)s<-%(0)s"))
    printer.assign(toy("shape"), MemberPrinter("shape"))
    printer.assign(toy("copy"), IgnorePrinter())
    printer.assign(toy("plain"), DefaultPrinter())
    of = {name: toy(name) for name in ("exp", "abs", "swap", "shape", "copy", "plain", "other")}
    assert printer(of["exp"](x, y)) == "exponential(x, y)"
    assert printer(of["abs"](toy("add")(x, y))) == "|(x + y)|"
    assert printer(of["swap"](x, y)) == "y<-x"
    assert printer(of["shape"](x)) == "x.shape"
    assert printer(of["copy"](toy("add")(x, y))) == "(x + y)"
    assert printer(of["copy"](x, y)) == "copy(x, y)"
    assert printer(of["plain"](x)) == "plain(x)"
    assert printer(of["other"](of["exp"](x), y)) == "other(exponential(x), y)"


def test_one_name_for_each_output(printer, toy, leaves):
    (x,) = leaves("x")
    op = toy("t", outs=2)
    for kind, expected in (
        (FunctionPrinter("a", "b"), ["a(x)", "b(x)"]),
        (PatternPrinter("a%(0)s", "b%(0)s"), ["ax", "bx"]),
        (MemberPrinter("a", "b"), ["x.a", "x.b"]),
    ):
        printer.assign(op, kind)
        assert [printer(out) for out in op(x)] == expected


def test_leaves_and_names(toy):
    alpha, x = generic("alpha"), generic("x")
    assert pprint(alpha) == "\\alpha" and pprint(x) == "x"
    assert pprint(Constant(generic, 3)) == "Constant{3}"
    result = toy("f")(x)
    result.name = "named"
    assert pprint(result) == "f(x)"
    assert LeafPrinter().process(x, None) == DefaultPrinter().process(x, None) == "x"


def test_printers_are_chosen_by_op_then_class_then_newest_condition(printer, toy, leaves):
    (x,) = leaves("x")
    f, g = toy("f"), toy("g")
    printer.assign(lambda state, r: r.owner is not None, FunctionPrinter("old"))
    assert printer(f(x)) == "old(x)"
    printer.assign(lambda state, r: r.owner is not None, FunctionPrinter("new"))
    assert printer(f(x)) == "new(x)"
    printer.assign(toy, FunctionPrinter("of_the_class"))
    printer.assign(f, FunctionPrinter("of_the_op"))
    assert printer(f(g(x))) == "of_the_op(of_the_class(x))"


def test_a_clone_is_independent(printer, toy, leaves):
    (x,) = leaves("x")
    other = printer.clone_assign(toy("f"), FunctionPrinter("F"))
    other.assign(lambda state, r: r is x, LeafPrinter())
    assert (printer(toy("f")(x)), other(toy("f")(x))) == ("f(x)", "F(x)")
    assert not printer.printers


def test_a_user_printer_gets_the_precedence(printer, toy, leaves):
    x, y = leaves("xy")

    class Own:
        def process(self, output, state):
            assert state.pprinter is printer
            return f"<{state.precedence}>"

    printer.assign(toy("own"), Own())
    assert printer(toy("mul")(toy("own")(x), y)) == "(<-1> * y)"
    assert printer(toy("own")(x), PrinterState(pprinter=printer, precedence=7)) == "<7>"
    assert printer.process(toy("own")(x), {"precedence": 8}) == "<8>"


def test_a_text_that_repeats_too_much_names_results(printer, toy, leaves):
    (x,) = leaves("x")
    y = toy("mul")(x, x)
    assert printer(toy("mul")(y, y)) == "((x * x) * (x * x))"
    for _ in range(59):
        y = toy("mul")(y, y)
    names = [f"<{char_from_number(i)}>" for i in range(59)]
    assert printer(y).splitlines() == [
        "(<A> * <A>)",
        "where",
        *[f"    {name} = ({inner} * {inner})" for name, inner in pairwise([*names, "x"])],
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p, x: p.assign("f", DefaultPrinter()), TypeError, "must be an Op, a class"),
        (lambda p, x: p([x]), TypeError, "pprint prints variables, not list"),
        (lambda p, x: OperatorPrinter("+", 0, "sometimes"), ValueError, "'left', 'right' or"),
        (lambda p, x: FunctionPrinter("f").process(x, None), TypeError, "not the result of an op"),
    ],
)
def test_pprint_of_another_object_raises(printer, call, error, message):
    with pytest.raises(error, match=message):
        call(printer, generic("x"))


# --- short descriptions ---------------------------------------------------------------------------


def test_min_informative_str(graph):
    x, _, f, g = graph
    assert min_informative_str(g) == "A. g\n B. eff\n C. h\n  <B>\n D. Constant{3}"
    assert min_informative_str(x) == "A. x"
    assert min_informative_str(x, indent_level=2) == "  A. x"
    assert min_informative_str(np.ones(2)) == "A. <ndarray>"
    assert min_informative_str([1]) == "A. [1]"
    f.name = None
    assert min_informative_str(g).splitlines()[1:4] == [" B. f", "  C. x", "  D. y"]


def test_var_descriptor(graph):
    x, *_, g = graph
    assert var_descriptor(g) == "A=g(B=f(C=x,D=y),E=h(<B>),F=Constant{3})"
    assert var_descriptor(x) == "A=x"
    digest = hashlib.sha256(np.ones(2).tobytes()).hexdigest()
    assert var_descriptor(np.ones(2)) == f"A=<ndarray:strides=[8],digest={digest}>"


def test_tags_may_be_shared_between_calls(graph):
    x, y, *_ = graph
    seen, tags = {}, printing._TagGenerator()
    texts = [var_descriptor(v, seen, tags) for v in (x, y, x)]
    assert texts == ["A=x", "B=y", "<A>"]
    assert min_informative_str(y, 0, seen, tags) == "<B>"


def test_descriptions_of_deep_graphs(toy, leaves):
    (top,) = leaves("x")
    for _ in range(3000):
        top = toy("f")(top)
    assert var_descriptor(top).endswith(")" * 3000)
    assert min_informative_str(top).count("\n") == 3000


def test_position_independent_str(graph):
    assert position_independent_str(graph[-1]) == f"theano_var{{type={generic}}}"
    with pytest.raises(TypeError, match="expected a variable"):
        position_independent_str(3)


def test_hex_digest():
    x = np.arange(6).reshape(2, 3)[:, ::2]
    digest = hashlib.sha256(x.tobytes()).hexdigest()
    assert hex_digest(x) == f"{digest}|strides=[24,16]|shape=[2,2]"
    with pytest.raises(TypeError, match="takes an array"):
        hex_digest("abc")


# --- Print ----------------------------------------------------------------------------------------


def run(op, value):
    node = op.make_node(generic("x"))
    storage = [[None]]
    op.perform(node, [value], storage)
    return storage[0][0]


def test_print_gives_its_input_and_prints_attributes(capsys):
    x = np.array([[1.0, 2.0]])
    assert run(Print("msg", attrs=["__str__", "shape", "mean"]), x) is x
    out = capsys.readouterr().out
    assert out == "msg __str__ = [[1. 2.]]\nmsg shape = (1, 2)\nmsg mean = 1.5\n"
    assert run(Print(), 3) == 3
    assert capsys.readouterr().out == " __str__ = 3\n"


def test_print_calls_a_function_of_the_user(capsys):
    heard = []
    run(Print("msg", attrs=["min"], global_fn=lambda op, x: heard.append((op.attrs, x))), 3)
    assert heard == [(("min",), 3)] and capsys.readouterr().out == ""


def test_a_missing_attribute_is_an_error():
    with pytest.raises(AttributeError, match="nope"):
        run(Print("msg", attrs=["nope"]), 3)


def test_print_is_an_identity_in_the_graph():
    op = Print("a", attrs=["min"])
    x, g = generic("x"), generic("g")
    assert op.view_map == {0: [0]} and op(x).type == x.type
    assert op == Print("a", attrs=("min",)) and hash(op) == hash(Print("a", attrs=("min",)))
    assert op != Print("b", attrs=("min",))
    assert op.grad([x], [g]) == [g] and op.R_op([x], [g]) == [g]
    assert op.infer_shape(None, ["shape"]) == ["shape"]
    assert not op.do_constant_folding(op.make_node(x))
    with pytest.raises(TypeError, match="Print takes a variable, not 3"):
        op(3)


def test_the_text_of_print_is_the_same_in_every_process():
    assert str(Print("a")) == (
        "Print{message='a', attrs=('__str__',), global_fn=<function _print_fn>}"
    )
