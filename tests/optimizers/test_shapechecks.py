"""Checks of shapes: what rewrites drop, the flag that keeps it, and who names it."""

import ast
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, advise, function, shared
from opwise.compile import DebugMode
from opwise.config import change_flags
from opwise.ifelse import ifelse
from opwise.optimizers.shapechecks import LengthsAgree

pytestmark = pytest.mark.null

x, y = T.dmatrices("x", "y")
v, w = T.dvectors("v", "w")
p, q = T.dtensor3s("p", "q")
labels = T.lvector("labels")
THREE, FOUR = np.ones(3), np.ones(4)

#: name: (inputs, output, arguments that do not fit, arguments that do)
DROPPED = {
    "a constant of one number": ([v], v + np.ones(4), [THREE], [FOUR]),
    "two dimensions": ([x], x * np.full((2, 3), 2.0), [np.ones((2, 4))], [np.ones((2, 3))]),
    "times 0": ([v, w], (v * w) * 0, [THREE, FOUR], [THREE, THREE]),
    "each times 0": ([v, w], v * 0 + w * 0, [THREE, FOUR], [THREE, THREE]),
    "less itself": ([v, w], (v + w) - (v + w), [THREE, FOUR], [THREE, THREE]),
    "less an operand": ([v, w], (v + w) - w, [THREE, FOUR], [THREE, THREE]),
    "by itself": ([v, w], (v * w) / (v * w), [THREE, FOUR], [THREE, THREE]),
    "to the power 0": ([v, w], (v * w) ** 0, [THREE, FOUR], [THREE, THREE]),
    "fill": ([v, w], T.fill(v, w), [THREE, FOUR], [THREE, THREE]),
    "fill like": ([v, w], T.fill(v + w, 1.0), [THREE, FOUR], [THREE, THREE]),
    "zeros like": (
        [x, y], T.zeros_like(T.dot(x, y)), [np.ones((2, 2)), np.ones((3, 2))],
        [np.ones((2, 3)), np.ones((3, 2))],
    ),
    "a shape": ([v, w], (v + w).shape, [THREE, FOUR], [THREE, THREE]),
    "a length": (
        [x, y], T.join(0, x, y).shape[0], [np.ones((2, 2)), np.ones((3, 3))],
        [np.ones((2, 2)), np.ones((3, 2))],
    ),
    "a constant condition": ([v, w], T.switch(T.constant(1), v, w), [THREE, FOUR], [THREE, THREE]),
    "equal branches": ([v, w], T.switch(T.gt(v, 0), w, w), [THREE, FOUR], [THREE, THREE]),
    "comparison": ([v, w], T.gt(v * w, v * w), [THREE, FOUR], [THREE, THREE]),
    "ones": ([v], v * T.ones((4,)), [THREE], [FOUR]),
    "zeros": ([v], v + T.zeros((4,)), [THREE], [FOUR]),
    "a gradient": ([v, w], T.grad(T.sum(v + w), v), [THREE, FOUR], [THREE, THREE]),
    "reshape": ([v], v.reshape((2, 3)).shape, [np.ones(7)], [np.ones(6)]),
    "rows that are set": (
        [x, y], T.set_subtensor(x[[0, 1]], y) * 0, [np.ones((3, 3)), np.ones((2, 2))],
        [np.ones((3, 3)), np.ones((2, 3))],
    ),
    "a part that is set": (
        [v, w], T.set_subtensor(v[1:], w) * 0, [THREE, FOUR], [FOUR, THREE],
    ),
    "batched products": (
        [p, q], T.batched_dot(p, q) * 0, [np.ones((2, 3, 4)), np.ones((2, 3, 2))],
        [np.ones((2, 3, 4)), np.ones((2, 4, 2))],
    ),
    "labels": (
        [x, labels], T.nnet.categorical_crossentropy(T.nnet.softmax(x), labels) * 0,
        [np.ones((3, 2)), np.array([0, 1, 0, 1])], [np.ones((3, 2)), np.array([0, 1, 0])],
    ),
}  # fmt: skip

#: nothing of these is dropped: (inputs, outputs)
KEPT = {
    "a layer": ([x, y, v], T.tanh(T.dot(T.tanh(T.dot(x, y) + v), y.T) / 2)),
    "centred": ([x], (x - x.mean(axis=0)) / (x.std(axis=0) + 1)),
    "a softmax": ([x, v], T.nnet.softmax(x + v)),
    "a sum": ([v, w], T.sum(v * w)),
    "reshaped": ([x], x.reshape((x.shape[1], x.shape[0])) + 1),
    "a part": ([v, w], T.inc_subtensor(v[1:], w)),
    "joined": ([x, y], T.join(0, x, y)),
}


def refuses(f, arguments):
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Shapes do not fit", UserWarning)
            f(*arguments)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", Mode("py", "fast_run")])
@pytest.mark.parametrize("name", DROPPED)
def test_the_flag_keeps_checks(name, mode):
    inputs, output, bad, good = DROPPED[name]
    plain = function(inputs, output, mode=mode)
    with change_flags(keep_shape_checks=True):
        f = function(inputs, output, mode=mode)
    np.testing.assert_array_equal(f(*good), plain(*good))
    with pytest.raises(ValueError):
        f(*bad)
    np.testing.assert_array_equal(f(*good), plain(*good))


@pytest.mark.parametrize("name", DROPPED)
def test_what_is_dropped_is_named(name):
    inputs, output, bad, _ = DROPPED[name]
    with change_flags(keep_shape_checks=True):
        f = function(inputs, output, mode="FAST_RUN")
    assert not refuses(function(inputs, output, mode="FAST_RUN"), bad)
    assert f.compile_report.dropped_checks
    assert all(f'File "{__file__}", line ' in text for text in f.compile_report.dropped_checks)


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", Mode("py", None)])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_costs_nothing(name, mode):
    inputs, output = KEPT[name]
    with change_flags(keep_shape_checks=True):
        f = function(inputs, output, mode=mode)
    assert f.compile_report.dropped_checks == []
    assert not any(isinstance(node.op, LengthsAgree) for node in f.maker.fgraph.apply_nodes)
    plain = function(inputs, output, mode=mode)
    assert len(f.maker.fgraph.apply_nodes) == len(plain.maker.fgraph.apply_nodes)


#: programs whose rewriting drops a comparison of lengths of inputs
LOST = {
    "zeros like": T.zeros_like(w) + v,
    "ones": v * np.ones(4),
    "fill": T.fill(w, 0.0) + v,
    "times 0": v + T.tanh(w) * 0,
    "less itself": v + (w - w),
}


@pytest.mark.parametrize("mode", ["FAST_RUN", Mode("py", "fast_run")])
@pytest.mark.parametrize("name", LOST)
def test_a_call_warns_once_of_lengths_that_nothing_compares(name, mode):
    """The value stays, as in Theano 1.0.5."""
    f = function([v, w], LOST[name], mode=mode, on_unused_input="ignore")
    assert f(FOUR, FOUR).shape == (4,)
    said = r"(?s)has length 3.*has length 4|has length 4.*has length 3"
    with pytest.warns(UserWarning, match=said) as warned:
        assert f(THREE, FOUR).shape == (3,)
    (one,) = warned
    assert one.filename == __file__
    assert f'(File "{__file__}", line ' in str(one.message)
    assert "keep_shape_checks=True" in str(one.message)
    f(THREE, FOUR)
    with pytest.warns(UserWarning, match=said):
        f.copy()(THREE, FOUR)


@pytest.mark.parametrize("name", KEPT)
def test_what_applys_compare_is_not_compared_before(name):
    inputs, output = KEPT[name]
    assert not function(inputs, output, mode="FAST_RUN").maker.optimized.lengths


def test_a_call_that_raises_does_not_warn():
    f = function([v, w], [v + w * 0, v * w + 1], mode="FAST_RUN")
    with pytest.raises(ValueError):
        f(THREE, FOUR)


def test_branches_that_are_not_taken_compare_nothing():
    f = function([v, w], ifelse(T.gt(v[0], 0), v + 1, v + w * 0), mode="FAST_RUN")
    f(THREE, FOUR)
    f = function([v, w], ifelse(T.gt((v + w * 0)[0], 0), v, v), mode="FAST_RUN")
    with pytest.warns(UserWarning, match="Shapes do not fit"):
        f(THREE, FOUR)


def test_lengths_of_shared_variables_are_compared():
    s = shared(np.ones(3), "s")
    f = function([v], v + s * 0, mode="FAST_RUN")
    f(THREE)
    s.set_value(FOUR)
    with pytest.warns(UserWarning, match="dimension 0 of .* has length 4"):
        f(THREE)


def test_a_warning_that_is_an_error_leaves_all_updates_done():
    s, t = shared(np.ones(3), "s"), shared(np.ones(3), "t")
    f = function([v, w], v + w * 0, updates=[(s, s + 1), (t, s[::-1])], mode="FAST_RUN")
    with pytest.raises(UserWarning, match="Shapes do not fit"):
        f(THREE, FOUR)
    np.testing.assert_array_equal(s.get_value(), [2, 2, 2])
    np.testing.assert_array_equal(t.get_value(), [1, 1, 1])


#: compiles a function twice, and prints whether its graph came from the cache, and the warning
TWICE = """
import sys, warnings
import numpy as np
import opwise.tensor as T
from opwise import function
v, w = T.dvectors("v", "w")
for _ in range(2):
    u = T.dvector("u")
    givens = {u: T.exp(w)} if sys.argv[1] else {}
    f = function([v, w], v + T.tanh(u if givens else w) * 0, mode="FAST_RUN", givens=givens)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(np.ones(3), np.ones(4))
    (one,) = caught
    print([f.compile_report.graph_cached, str(one.message)])
"""


@pytest.mark.parametrize("given", ["", "givens"])
def test_cached_graphs_warn_alike(given, tmp_path):
    """In a process of its own: in this one, other tests may have changed what graphs depend on."""
    flags = f"base_compiledir={tmp_path},cache_graphs=True"
    done = subprocess.run(
        [sys.executable, "-c", TWICE, given], capture_output=True, text=True,
        env={**os.environ, "OPWISE_FLAGS": flags, "THEANO_FLAGS": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (first, text), (second, again) = map(ast.literal_eval, done.stdout.splitlines())
    assert (first, second) == (False, True)
    assert "Shapes do not fit" in text and text == again


def test_the_error_names_lengths_and_line():
    with change_flags(keep_shape_checks=True):
        f = function([v], v + np.ones(4), mode="FAST_RUN")
    with pytest.raises(ValueError) as raised:
        f(THREE)
    text = str(raised.value)
    assert "dimension 0 of v has length 3" in text and "has length 4" in text
    assert "Elemwise{add,no_inplace}" in text and "test_shapechecks.py" in text


def test_updates_alone_are_checked_and_undone():
    s = shared(np.ones(3), "s")
    with change_flags(keep_shape_checks=True):
        f = function([v], updates=[(s, s + v * 0 + np.zeros(3))], mode="FAST_RUN")
    with pytest.raises(ValueError):
        f(FOUR)
    np.testing.assert_array_equal(s.get_value(), [1, 1, 1])
    f(THREE)


def test_debug_mode_names_the_rewrite():
    f = function([v, w], (v * w) * 0, mode=DebugMode("fast_run"))
    with pytest.raises(ValueError) as raised:
        f(THREE, FOUR)
    text = str(raised.value)
    assert "Other modes return a result here: the rewrite local_" in text
    assert "keep_shape_checks=True" in text and "test_shapechecks.py" in text


def test_advice_names_what_is_dropped():
    f = function([v], T.tanh(v) + np.ones(4), mode="FAST_RUN")
    found = [one.text for one in advise(f, FOUR).findings if one.subject == "shapes"]
    assert "the rewrites drop this check: in Elemwise{add,no_inplace}" in found[0]
    assert "keep_shape_checks=True" in found[-1]
    f = function([v, w], T.tanh(v) + w, mode="FAST_RUN")
    assert not any(one.subject == "shapes" for one in advise(f, FOUR, FOUR).findings)
