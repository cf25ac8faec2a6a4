"""Graphs of a small library of its own, translated to opwise: what another front end would do."""

import sysconfig
from types import SimpleNamespace

import numpy as np
import pytest

from opwise import Generic, frontends
from opwise.compile import asimported
from opwise.frontends import Frontend, Opaque, Performed, Translator, Untranslated, compile_graph
from opwise.graph.provenance import line_of
from opwise.tensor import constant, dvector
from opwise.tensor.elemwise import elemwise
from opwise.tensor.type import tensor_type

pytestmark = pytest.mark.null


class Var:
    def __init__(self, type_, name=None, owner=None, **more):
        self.type, self.name, self.owner = type_, name, owner
        vars(self).update(more)


class Apply:
    def __init__(self, op, inputs, types, line=None):
        self.op, self.inputs, self.line = op, inputs, line
        self.outputs = [Var(type_, owner=self) for type_ in types]


class Plus:
    pass


class PlusOne(Plus):
    pass


class Twice:
    """Has a translation of vectors alone."""


class Mean:
    """Has no translation."""


class Small(Frontend):
    def type_of(self, foreign):
        return Opaque(foreign) if isinstance(foreign, Boxes) else tensor_type(*foreign)

    def constant(self, var):
        return constant(var.data)

    def trace_of(self, node):
        if node.line is None:
            return getattr(node, "trace", ())
        return (("model.py", node.line, "model", "y = x + 1"),)

    def performed(self, node, reason):
        def run(values):
            return [np.mean(values[0])] if isinstance(node.op, Mean) else [2 * values[0]]

        types = [self.type_of(out.type) for out in node.outputs]
        return Performed(run, types, type(node.op).__name__, reason, key=type(node.op))


class Boxes:
    """The type of boxes, which no operation of opwise knows."""

    def filter(self, data, strict=False, allow_downcast=None):
        if not isinstance(data, SimpleNamespace):
            raise TypeError("a box is needed")
        return data

    def values_eq(self, a, b):
        return a == b

    def may_share_memory(self, a, b):
        return a is b

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(Boxes)


VECTOR, NUMBER = ("float64", (False,)), ("float64", ())


@pytest.fixture
def small():
    frontend = Small("small")

    @frontend.translates(Plus)
    def plus(t, node, *inputs):
        return elemwise("add")(*inputs)

    @frontend.translates(Twice)
    def twice(t, node, x):
        if x.type.ndim != 1:
            raise Untranslated("only vectors are doubled")
        return elemwise("mul")(x, constant(2.0))

    return frontend


def compiled(frontend, inputs, order, outputs, **options):
    translator = Translator(frontend)
    own = [translator.input(var) for var in inputs]
    results = translator.graph(order, outputs)
    return compile_graph(own, results, mode="FAST_COMPILE", **options), translator


def test_a_graph_becomes_a_function(small):
    x, one = Var(VECTOR, "x"), Var(NUMBER, data=np.array(1.0))
    added = Apply(Plus(), [x, one], [VECTOR])
    added.outputs[0].name = "y"
    doubled = Apply(Twice(), added.outputs, [VECTOR])
    f, translator = compiled(small, [x], [added, doubled], [doubled.outputs[0], added.outputs[0]])
    found = f(np.arange(3.0))
    np.testing.assert_array_equal(found, [[2, 4, 6], [1, 2, 3]])
    assert translator.performed == []
    assert translator[added.outputs[0]].name == "y"


def test_subclasses_have_the_translation_of_their_base(small):
    assert small.translation_of(PlusOne()) is small.translation_of(Plus())
    assert small.translation_of(Mean()) is None


def test_what_has_no_translation_is_performed_and_named(small):
    x = Var(VECTOR, "x")
    mean = Apply(Mean(), [x], [NUMBER])
    doubled = Apply(Twice(), mean.outputs, [NUMBER])
    f, translator = compiled(small, [x], [mean, doubled], doubled.outputs)
    assert f(np.arange(4.0))[0] == 3.0
    assert [(each.op, each.reason) for each in translator.performed] == [
        ("Mean", "Mean has no translation"), ("Twice", "only vectors are doubled"),
    ]  # fmt: skip
    reasons = dict(
        zip(map(str, (n.op for n in f.linked.order)), f.linked.why_not_in_c, strict=True)
    )
    assert reasons == {"Mean": "Mean has no translation", "Twice": "only vectors are doubled"}


def test_lines_of_the_program_are_those_of_the_applys(small):
    x = Var(VECTOR, "x")
    added = Apply(Plus(), [x, x], [VECTOR], line=17)
    f, _ = compiled(small, [x], [added], added.outputs, profile=True)
    f(np.ones(2))
    (row,) = [a for a in f.profile.profile().functions[0].applys if "add" in a.op]
    assert [(one.file, one.line) for one in row.origins] == [("model.py", 17)]


def test_applys_of_a_library_have_the_line_of_what_they_read(small):
    """Those that a rewrite or a library made do not know the line of the program."""
    x, library = Var(VECTOR, "x"), sysconfig.get_path("stdlib")
    written = [Apply(Plus(), [x, x], [VECTOR], line=k) for k in range(1, 6)]
    outs = [node.outputs[0] for node in written]
    made = Apply(Plus(), [outs[1], x, outs[0]], [VECTOR])
    made.trace = ((f"{library}/library.py", 7, "density", "z = y + x"),)
    again = Apply(Twice(), made.outputs, [VECTOR])
    many = Apply(Plus(), outs, [VECTOR])
    order = [*written, made, again, many]
    translator = Translator(small)
    translator.input(x)
    translator.graph(order, [])
    of_made, of_again, of_many = (
        translator[node.outputs[0]].owner.trace for node in (made, again, many)
    )
    assert line_of(of_made) == line_of(of_again) == ("model.py", 2)
    assert [frame[1] for frame in of_made] == [2, 7]
    assert of_many == ()


def test_results_have_the_types_of_the_library(small):
    x = Var(VECTOR, "x")
    added = Apply(Plus(), [x, x], [("float32", (True,))])
    f, _ = compiled(small, [x], [added], added.outputs)
    (found,) = f(np.ones(1))
    assert found.dtype == np.float32
    with pytest.raises(ValueError, match="supposed to be 1"):
        f(np.ones(2))
    wrong = Apply(Plus(), [x, x], [NUMBER])
    with pytest.raises(TypeError, match="a translation gives"):
        compiled(small, [x], [wrong], wrong.outputs)


def test_variables_from_elsewhere_are_refused(small):
    x, y = Var(VECTOR, "x"), Var(VECTOR, "y")
    added = Apply(Plus(), [x, y], [VECTOR])
    with pytest.raises(KeyError, match="no input of the graph"):
        compiled(small, [x], [added], added.outputs)


def test_values_that_opwise_does_not_know_are_handed_on(small):
    box, x = Var(Boxes(), "box"), Var(VECTOR, "x")
    opened = Apply(Mean(), [x], [NUMBER])
    opened.inputs.append(box)
    f, _ = compiled(small, [box, x], [opened], [box, opened.outputs[0]])
    given = SimpleNamespace(content=1)
    found = f(given, np.ones(2))
    assert found[0] == given
    type_ = Opaque(Boxes())
    assert type_ == Opaque(Boxes()) and hash(type_) == hash(Opaque(Boxes())) and type_ != Generic()
    assert type_.values_eq(given, given) and type_.may_share_memory(given, given)
    with pytest.raises(TypeError, match="a box"):
        type_.filter(1)


def test_performed_ops_with_equal_keys_are_equal():
    first, second, third = (
        Performed(lambda values: values, [dvector], "same", "", key=key) for key in (1, 1, 2)
    )
    assert first == second != third and hash(first) == hash(second)


def test_functions_trust_their_caller(small):
    x = Var(VECTOR, "x")
    added = Apply(Plus(), [x, x], [VECTOR])
    f, _ = compiled(small, [x], [added], added.outputs)
    assert f.trust_input


def test_reports_have_the_time_of_the_library_and_of_the_translation():
    x = dvector("x")
    times = frontends.FrontEndTimes(rewriting=20.0, translation=10.0)
    f = compile_graph([x], [elemwise("exp")(x)], mode="FAST_COMPILE", times=times)
    assert f.compile_report.front_end == times
    assert 30 <= f.compile_report.total < 30 + 10


@pytest.fixture
def as_imported(monkeypatch, flags, only_own_rewrites):
    """Other tests may have replaced something in a module before it was looked at."""
    monkeypatch.setattr(asimported, "replaced", list)
    monkeypatch.setattr(asimported, "sources", lambda: "as imported")
    flags(cache_graphs=True)


@pytest.mark.usefixtures("as_imported")
def test_graphs_with_performed_ops_are_kept_in_the_cache():
    """What is performed is that of the graph at hand; Ops that look alike stay apart."""

    def build(factors):
        x = dvector("x")
        total = None
        for key, factor in factors:
            op = Performed(lambda v, f=factor: [f * v[0]], [x.type], "scaled", "no C", key=key)
            term = elemwise("exp")(op.make_node(x).outputs[0])
            total = term if total is None else elemwise("add")(total, term)
        return compile_graph([x], [total], mode="FAST_RUN")

    first = build([(1, 1.0), (2, 2.0)])
    assert not first.compile_report.graph_cached
    again = build([(5, 3.0), (6, -1.0)])
    assert again.compile_report.graph_cached
    np.testing.assert_allclose(first(np.ones(2))[0], np.exp(1) + np.exp(2))
    np.testing.assert_allclose(again(np.ones(2))[0], np.exp(3) + np.exp(-1))
    same = build([(1, 1.0), (1, 1.0)])  # one Op twice is another graph: its results are merged
    assert not same.compile_report.graph_cached
    np.testing.assert_allclose(same(np.ones(2))[0], 2 * np.exp(1))
    assert len([n for n in same.linked.order if isinstance(n.op, Performed)]) == 1


@pytest.mark.usefixtures("as_imported")
def test_values_of_other_libraries_do_not_hinder_the_cache(small):
    box, x = Var(Boxes(), "box"), Var(VECTOR, "x")
    opened = Apply(Mean(), [x], [NUMBER])
    opened.inputs.append(box)
    compiled(small, [box, x], [opened], [opened.outputs[0]])
    f, _ = compiled(small, [box, x], [opened], [opened.outputs[0]])
    assert f.compile_report.graph_cached
