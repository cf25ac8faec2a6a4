"""Modes that look into steps of loops, test values in them, and loops in prints of graphs."""

import sys

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, Op, function, grad
from opwise.compile import MonitorMode
from opwise.compile.nanguardmode import NanGuardMode
from opwise.errors import BadCLinkerOutput
from opwise.linkers.errors import steps_running
from opwise.loops import Scan, scan
from opwise.modes.monitormode import detect_nan
from opwise.printing import debugprint

V, M = T.dvector("v"), T.dmatrix("m")


class WrongInC(Op):
    """Doubles a number; its C does something else with numbers above 2."""

    __props__ = ()

    def make_node(self, a):
        return Apply(self, [a], [a.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(inputs[0] * 2)

    def c_code(self, node, name, inputs, outputs, sub):
        (a,), (out,) = inputs, outputs
        return f"""
            Py_XDECREF({out});
            {out} = (PyArrayObject *)PyArray_ZEROS(0, NULL, NPY_DOUBLE, 0);
            double a = *(double *)PyArray_DATA({a});
            *(double *)PyArray_DATA({out}) = a > 2 ? a * 3 : a * 2;
        """

    def c_code_cache_version(self):
        return (1,)


def notes_of(error):
    return getattr(error, "__notes__", [])


@pytest.mark.c
def test_debug_mode_compares_the_applys_of_a_step():
    inner = lambda row: scan(lambda a: WrongInC()(a), row, name="in")[0]  # noqa: E731
    f = function([M], scan(inner, M, name="out")[0], mode="DEBUG_MODE")
    with pytest.raises(BadCLinkerOutput, match=r"Apply   : WrongInC") as raised:
        f([[1.0, 2.0, 1.0], [2.0, 3.0, 1.0]])
    inside, outside = notes_of(raised.value)
    assert "in step 1 of for{cpu,in} (File " in inside
    assert "in step 1 of for{cpu,out} (File " in outside
    assert "test_debugging.py" in str(raised.value)


def test_nan_guard_names_the_step():
    mode = NanGuardMode(nan_is_error=True, inf_is_error=True, big_is_error=True)
    mode = mode.excluding("scan_pushout")
    line = sys._getframe().f_lineno + 1
    f = function([V], scan(lambda a: T.log(a), V, name="logs")[0], mode=mode)
    assert np.allclose(f([1.0, 2.0]), np.log([1.0, 2.0]))
    with pytest.raises(AssertionError, match="NaN detected") as raised:
        f([1.0, 2.0, -1.0])
    (note,) = notes_of(raised.value)
    assert "step 2 of for{cpu,logs}" in note and f"line {line}" in note
    assert "Elemwise{log" in str(raised.value)


def test_monitor_mode_sees_the_applys_of_every_step():
    seen = []

    def post(i, node, thunk):
        if getattr(node.op, "scalar_op", None) == T.log.scalar_op:
            seen.append((i, float(thunk.inputs[0][0]), float(thunk.outputs[0][0])))

    mode = MonitorMode(post_func=post).excluding("scan_pushout")
    f = function([V], scan(lambda a: T.log(a), V)[0], mode=mode)
    f([1.0, 2.0])
    assert seen == [(0, 1.0, 0.0), (0, 2.0, np.log(2.0))]


def test_warnings_of_nan_guard_name_the_steps(flags, caplog):
    flags(**{"NanGuardMode.action": "warn"})
    mode = NanGuardMode(nan_is_error=True, inf_is_error=True, big_is_error=True)
    mode = mode.excluding("scan_pushout")
    inner = lambda row: scan(lambda a: T.log(a), row, name="in")[0]  # noqa: E731
    line = sys._getframe().f_lineno + 1
    f = function([M], scan(inner, M, name="out")[0], mode=mode)
    f([[1.0, 2.0, 1.0], [2.0, 3.0, -1.0]])
    text = caplog.text
    assert "step 2 of for{cpu,in} (File" in text
    assert f'step 1 of for{{cpu,out}} (File "{__file__}", line {line})' in text


def test_monitors_can_ask_for_the_step(capsys):
    steps = []

    def post(i, node, thunk):
        if getattr(node.op, "scalar_op", None) == T.log.scalar_op:
            steps.append(steps_running()[0].split(" (")[0])

    for monitor in (post, detect_nan):
        mode = MonitorMode(post_func=monitor).excluding("scan_pushout")
        function([V], scan(lambda a: T.log(a), V, name="logs")[0], mode=mode)([1.0, -2.0])
    assert steps == ["step 0 of for{cpu,logs}", "step 1 of for{cpu,logs}"]
    assert "It happened in step 1 of for{cpu,logs}" in capsys.readouterr().out
    assert steps_running() == []


class Picky(Op):
    """Refuses numbers above 2, in Python."""

    __props__ = ()

    def make_node(self, a):
        return Apply(self, [a], [a.type()])

    def perform(self, node, inputs, outputs):
        if inputs[0] > 2:
            raise LookupError("no such word")
        outputs[0][0] = np.asarray(inputs[0] + 0)


def grow(n, before):
    return T.ones((n,)) + before


ERRORS = {
    "index": (lambda n, h: V[n] * h, T.constant(np.float64(1)), IndexError, "Subtensor"),
    "shapes": (grow, T.zeros((1,), "float64"), Exception, "Apply node that caused the error"),
    "result": (lambda n: T.ones((n,)), None, ValueError, "all steps must give the same shape"),
    "python": (lambda n: Picky()(T.cast(n, "float64")), None, LookupError, "Picky"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_in_steps(mode, case):
    step, initial, kind, text = ERRORS[case]
    numbers = T.lvector("numbers")
    out, _ = scan(step, numbers, initial, name="walk")
    f = function([V, numbers], out, mode=mode, on_unused_input="ignore")
    with pytest.raises(kind) as raised:
        f([1.0, 2.0], [1, 1, 5, 1])
    said = "\n".join([str(raised.value), *notes_of(raised.value)])
    assert text in said
    assert "step 2 of for{cpu,walk}" in said
    assert "test_debugging.py" in said


def test_test_values_flow_through_a_step(flags):
    flags(compute_test_value="raise")
    rows = T.dmatrix("rows")
    rows.tag.test_value = np.arange(6.0).reshape(3, 2)
    first = T.dmatrix("first")
    first.tag.test_value = np.array([[1.0, 2.0], [3.0, 4.0]])
    weights = T.dvector("weights")
    weights.tag.test_value = np.array([10.0, 20.0])
    seen = []

    def step(row, two_ago, one_ago, w):
        seen.extend(var.tag.test_value.tolist() for var in (row, two_ago, one_ago))
        return w * row + two_ago - one_ago

    out, _ = scan(step, rows, [{"initial": first, "taps": [-2, -1]}], weights)
    assert seen == [[0.0, 1.0], [1.0, 2.0], [3.0, 4.0]]
    found = function([rows, first, weights], out)(
        rows.tag.test_value, first.tag.test_value, weights.tag.test_value
    )
    assert np.array_equal(out.tag.test_value, found)
    assert grad(out.sum(), weights).tag.test_value.tolist() == [4.0, 7.0]  # 2 r0 + r2
    with pytest.raises(ValueError, match="not aligned"):
        scan(lambda row: T.dot(row, T.constant(np.ones(5))), rows)


def test_debugprint_prints_the_compiled_step():
    out, _ = scan(lambda a, s: T.tanh(a + s), V, T.constant(np.float64(0)), name="walk")
    written = debugprint(out, file="str")
    assert "Inner graphs of the scan ops:\n\nfor{cpu,walk} [id B] ''   \n >Elemwise{tanh" in written
    f = function([V], out, mode="FAST_RUN")
    compiled = debugprint(f, file="str").partition("Inner graphs of the scan ops:")[2]
    assert compiled.splitlines()[2].startswith("for{cpu,walk} [id ")
    assert compiled.splitlines()[3].startswith(" >Elemwise{Composite{tanh((i0 + i1))}} [id ")
    assert "v[t] [id " in compiled and "] -> [id " in compiled
    (node,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    assert node.op.fn is node.tag.inside


def test_debugprint_has_the_times_of_a_step():
    out, _ = scan(lambda a, s: T.tanh(a + s), M, T.zeros((20,), "float64"))
    f = function([M], out, mode="FAST_RUN", profile=True)
    f(np.ones((2, 20)))
    compiled = debugprint(f, file="str").partition("Inner graphs of the scan ops:")[2]
    (line,) = [each for each in compiled.splitlines() if each.startswith(" >Elemwise")]
    assert " --> " in line
