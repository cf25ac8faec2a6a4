"""advise on real functions: what is tried, what becomes a tip, what is left unchanged."""

import io
import math

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.linkers import opwise_c, resources
from opwise.linkers.convsteps import ALGORITHMS
from opwise.nn import conv2d
from opwise.random import RandomStreams
from opwise.tuning import variants
from opwise.tuning.tips import Advice, Finding, Tip, duration

pytestmark = pytest.mark.null


@pytest.fixture
def x():
    return T.dvector("x")


def titles(tips):
    return [tip.title for tip in tips]


def texts(advice, subject):
    return [f.text for f in advice.findings if f.subject == subject]


def dtype(candidate):
    """Return the dtype of a candidate's first input."""
    return candidate.function.maker.inputs[0].variable.type.dtype


V = np.linspace(0.5, 1.5, 50)
NARROW = "float32 instead of float64"


def test_a_faster_variant_becomes_a_tip_with_its_figures(x, advised):
    f = opwise.function([x], T.exp(x) * 2, name="f")
    advice = advised(f, V, rule=lambda c: 0.25 if dtype(c) == "float32" else 1.0)
    (tip,) = advice.tips
    assert tip.title == NARROW and tip.verdict == "faster"
    assert "floatX=float32" in tip.do and "float32 arrays for x" in tip.do
    assert tip.ratio == pytest.approx(4, rel=0.02)
    assert tip.p < 0.005 and 0 < tip.ulp < 20 and 0 < tip.relative < 1e-6
    assert advice.seconds == pytest.approx(1, rel=0.02)
    assert all(t.verdict != "faster" for t in advice.rejected)


def test_noise_gives_no_tip(x, advised):
    f = opwise.function([x], T.exp(x) * 2)
    advice = advised(f, V, noise=3.0)
    assert advice.tips == ()
    assert {t.verdict for t in advice.rejected} == {"not significant"}
    assert NARROW in titles(advice.rejected)
    assert "No tip" in str(advice)


def test_every_real_variant_agrees_with_the_function(x, advised):
    w = opwise.shared(V.copy(), "w")
    m = T.dmatrix("m")
    outputs = [T.exp(x) / T.exp(x).sum(), T.dot(m, x) + w, (T.tanh(m) ** 2).sum()]
    f = opwise.function([x, m], outputs, updates=[(w, w * x - 0.1)], mode="FAST_COMPILE")
    advice = advised(f, V, np.outer(V, V))
    tried = {t.title: t for t in advice.rejected}
    assert {"mode FAST_RUN", "linker py", NARROW, "keep intermediate arrays between calls"} <= set(
        tried
    )
    assert max(t.relative for name, t in tried.items() if name != NARROW) < 1e-14
    assert 0 < tried[NARROW].relative < 1e-5
    assert "differ" not in " ".join(t.verdict for t in advice.rejected)


def test_nothing_of_the_users_changes(x, timer, advised):
    w, b = opwise.shared(V.copy(), "w"), opwise.shared(np.array(1.0), "b")
    f = opwise.function([x], (w * x).sum() + b, updates=[(w, w + x), (b, b * 2)], profile=True)
    f(V)
    values = [v.get_value(borrow=True) for v in (w, b)]
    copies = [v.get_value() for v in (w, b)]
    given = V.copy()
    maker, threads, trust = f.maker, opwise_c.threads(), f.trust_input
    advised(f, given)
    assert all(v.get_value(borrow=True) is old for v, old in zip((w, b), values, strict=True))
    assert all(np.array_equal(v.get_value(), old) for v, old in zip((w, b), copies, strict=True))
    assert np.array_equal(given, V)
    assert (f.maker, opwise_c.threads(), f.trust_input) == (maker, threads, trust)
    assert f.profile.fct_callcount == 1 and len(f.profile.profile().functions) == 1


def test_every_round_starts_from_the_same_state(x, advised):
    w = opwise.shared(np.zeros(3), "w")
    f = opwise.function([x], w, updates=[(w, w + x)])
    seen = []

    def calling(candidate):
        candidate.restart()
        seen.append([candidate.function(*candidate.args).tolist() for _ in range(2)])
        return 1.0

    advised(f, V[:3], rule=calling)
    assert len(seen) > 10
    assert all(np.allclose(each, [[0, 0, 0], V[:3]], 1e-6) for each in seen)


def test_results_that_differ_make_no_tip(advised):
    n = T.dvector("n")
    # 1e300 is no float32
    f = opwise.function([n], n * 1e300)
    advice = advised(f, V, rule=lambda c: 0.5 if dtype(c) == "float32" else 1.0)
    (narrow,) = [t for t in advice.rejected if t.title == NARROW]
    assert (
        narrow.verdict
        == "faster, but output 0 differs: 50 elements are infinite in one result only"
    )
    assert math.isinf(narrow.relative)
    assert NARROW not in titles(advice.tips)


def test_equal_states_of_random_numbers_are_equal(advised):
    streams = RandomStreams(5)
    f = opwise.function([], streams.choice((9,), a=2) + streams.normal((9,)))
    advice = advised(f)
    tried = {t.title: t for t in advice.rejected}
    assert tried["linker py"].ulp == 0
    assert not [t.verdict for t in tried.values() if "differs" in t.verdict]


def test_a_variant_that_fails_is_reported(x, advised, monkeypatch):
    def fails(*args):
        raise OSError("no room\nmore lines")

    monkeypatch.setattr("opwise.tuning.variants.Subject.retyped", fails)
    advice = advised(opwise.function([x], x * 2), V)
    assert f"{NARROW}: OSError: no room" in texts(advice, "not tried")


def test_the_budget_is_kept(x, advised):
    advice = advised(opwise.function([x], T.exp(x)), V, rule=lambda c: 100.0, budget=5)
    assert advice.tips == advice.rejected == ()
    assert any("budget" in text for text in texts(advice, "not tried"))
    assert advice.seconds == pytest.approx(100, rel=0.02)


def test_arguments_that_are_converted_at_each_call(x, advised):
    f = opwise.function([x], x * 2)
    advice = advised(f, V.tolist(), rule=lambda c: 0.1 if type(c.args[0]) is np.ndarray else 1.0)
    (tip,) = advice.tips
    assert tip.title == "arguments in the dtypes of the inputs"
    assert "x = numpy.asarray(x, 'float64')" in tip.do
    # float32 is measured beside the converted arguments, so that it does not get their gain
    (narrow,) = [t for t in advice.rejected if t.title == NARROW]
    assert narrow.before == pytest.approx(0.1, rel=0.02)
    assert "arguments in the dtypes of the inputs" not in titles(advised(f, V).rejected)


def test_arguments_of_another_layout(advised):
    m = T.dmatrix("m")
    f = opwise.function([m], m * 2)
    advice = advised(
        f, np.outer(V, V).T[::2], rule=lambda c: 0.1 if c.args[0].flags.c_contiguous else 1.0
    )  # fmt: skip
    assert "C-contiguous arguments" in titles(advice.tips)


def test_short_calls_are_tried_unchecked(x, advised):
    f = opwise.function([x], x * 2)
    advice = advised(f, V, rule=lambda c: 1e-6 if c.trust else 2e-6)
    assert titles(advice.tips) == ["unchecked arguments"]
    assert not f.trust_input
    assert "unchecked arguments" not in titles(advised(f, V).rejected)


def test_threads(x, advised, monkeypatch, flags):
    flags(threads=2)
    monkeypatch.setattr(resources, "available", lambda: 8)
    f = opwise.function([x], T.exp(x))
    seen = []

    def rule(candidate):
        candidate.restart()
        seen.append((candidate.threads, opwise_c.threads()))
        return 0.5 if candidate.threads == 4 else 1.0

    advice = advised(f, V, rule=rule)
    assert {a for a, _ in seen} == {1, 2, 4, 8} and all(a == b for a, b in seen)
    assert [t.do for t in advice.tips] == ["OPWISE_FLAGS=threads=4"]
    assert opwise_c.threads() == 2


def test_rewrites_that_did_something_are_tried_without(x, advised):
    f = opwise.function([x], T.exp(x + 1).sum())
    tried = titles(advised(f, V).rejected)
    assert {"without fusion", "without map_reduce_fusion"} <= set(tried)
    without = opwise.function([x], T.sort(x))
    assert "without fusion" not in titles(advised(without, V).rejected)


def test_changes_that_cannot_be_tried_are_listed(x, advised):
    advice = advised(opwise.function([x], x * 2), V)
    assert "GPU: The GPU needs CuPy" in " ".join(texts(advice, "not tried"))
    a = T.fvector("a")
    narrow = advised(opwise.function([a], a * 2), V.astype("float32"))
    assert "float32: nothing in the function is float64" in texts(narrow, "not tried")


def test_keywords_defaults_and_mutable_arguments(x, advised):
    s = T.dscalar("s")
    f = opwise.function([opwise.In(x, mutable=True), opwise.In(s, value=2.0, name="s")], x * s)
    given = V.copy()
    assert NARROW in titles(advised(f, given).rejected)
    assert NARROW in titles(advised(f, given, s=3.0).rejected)
    assert np.array_equal(given, V)


# --- refusals -------------------------------------------------------------------------------------


def test_only_functions_are_accepted():
    with pytest.raises(TypeError, match="takes a compiled function, not 3"):
        opwise.advise(3)


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [((), {}, r"takes 1 argument \(x\); missing: x"),
     ((V, V), {}, r"takes 1 argument \(x\), but 2 were given"),
     ((V,), {"y": 1}, "has no argument y")],
)  # fmt: skip
def test_wrong_arguments_are_refused(x, advised, args, kwargs, text):
    with pytest.raises(TypeError, match=text):
        advised(opwise.function([x], x * 2), *args, **kwargs)


def test_exceptions_of_the_function_are_raised(x, advised):
    with pytest.raises(TypeError, match="Bad input argument to theano function"):
        advised(opwise.function([x], x * 2), 5)
    f = opwise.function([x], x + opwise.shared(np.ones(3)))
    with pytest.raises(ValueError, match=r"(?i)shape|dimension"):
        advised(f, np.ones(4))


# --- the entries and the text ---------------------------------------------------------------------


def test_advise_prints_to_a_file(x):
    file = io.StringIO()
    f = opwise.function([x], T.exp(x) * 2, name="written", profile=True)
    advice = opwise.advise(f, V, budget=0.5, file=file)
    assert isinstance(advice, Advice) and file.getvalue() == f"{advice}\n"
    assert str(advice).startswith("written: ")
    assert isinstance(f.profile.advise(f, V, budget=0.1), Advice)


def test_the_text_is_a_table():
    faster = Tip("float32", "flag=1", 4e-3, 2e-3, 9, 1e-6, 12, 3e-7, "faster")
    vain = Tip("linker py", "mode", 4e-3, 5e-3, 9, 1.0, math.inf, math.inf, "slower")
    found = Finding("Python", "SortOp: none"), Finding("not tried", "GPU: none")
    assert str(Advice("f", 4e-3, (faster,), (vain,), found)) == (
        "f: 4.00 ms a call; tried 2 changes\n"
        "  Tips\n"
        "     gain   before    after      p  ulp  relative\n"
        "    2.00x  4.00 ms  2.00 ms  1e-06   12   3.0e-07  float32: flag=1\n"
        "  Did not help\n"
        "     gain   before    after      p  ulp  relative\n"
        "    0.80x  4.00 ms  5.00 ms      1    -         -  linker py: slower\n"
        "  gain: time before divided by time after; p: the probability that noise alone makes such "
        "a gain (Mann-Whitney test), significant if p < 0.005\n"
        "  ulp: the largest difference of the results, in units in the last place of the narrower "
        "dtype; relative: the same, divided by the largest magnitude in the array\n"
        "  Runs in Python\n"
        "    SortOp: none\n"
        "  Not tried\n"
        "    GPU: none"
    )


def test_the_text_is_wrapped_to_a_width():
    slow = Tip("linker py", "mode", 4e-3, 5e-3, 9, 1.0, 0, 0.0, f"slower, but {'output ' * 20}")
    advice = Advice("f", 4e-3, (), (slow,), (Finding("Python", "word " * 60),))
    lines = advice.text(80).splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) > len(str(advice).splitlines())
    assert " ".join(advice.text(80).split()) == " ".join(str(advice).split())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.234, "1.23 s"), (0.9999, "1.00 s"), (12.34e-3, "12.3 ms"), (999.4e-6, "999 µs"),
     (5e-7, "500 ns"), (3e-9, "3.00 ns"), (0.0, "0.00 ns"), (123.0, "123 s")],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_other_algorithms_of_convolutions_are_tried():
    x, w = T.ftensor4("x"), opwise.shared(np.ones((8, 4, 3, 3), "f"))
    f = opwise.function([x], conv2d(x, w), mode=opwise.Mode("c|py", "fast_run"))
    images = np.ones((2, 4, 9, 9), "f")
    subject = variants.Subject(f, (images,), {})
    expected = subject.original.function(images)
    ((taken, _),) = (a for a in subject.original.function.linked.vm.algorithms() if a[0])
    found = [v for v in variants.variants(subject, 1e-3)[0] if "algorithm" in v.title]
    others = {*ALGORITHMS} - {"model", taken}
    assert {v.do for v in found} == {f"OPWISE_FLAGS=conv.algo={name}" for name in others}
    for variant in found:
        tried = variant.make().function
        np.testing.assert_allclose(tried(images), expected, rtol=1e-5)
        ((name, why),) = (a for a in tried.linked.vm.algorithms() if a[0])
        assert "conv.algo" in why or variant.do.endswith("measure")
        assert name in variant.do or "cannot" in why or why.startswith("measured")
    add = opwise.function([x], x + 1)
    subject = variants.Subject(add, (images,), {})
    assert not any("algorithm" in v.title for v in variants.variants(subject, 1e-3)[0])
