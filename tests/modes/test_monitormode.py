"""MonitorMode: functions of the user's around every Apply."""

import pickle

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, PerformLinker, function
from opwise.compile import MonitorMode
from opwise.modes.monitormode import detect_nan


class Log:
    """Remembers what it was called with."""

    def __init__(self):
        self.calls = []

    def before(self, i, node, fn):
        assert all(isinstance(cell, list) and len(cell) == 1 for cell in (*fn.inputs, *fn.outputs))
        self.calls.append(("before", i, str(node.op), [np.array(c[0]).tolist() for c in fn.inputs]))

    def after(self, i, node, fn):
        self.calls.append(("after", i, str(node.op), [np.array(c[0]).tolist() for c in fn.outputs]))


@pytest.fixture
def log():
    return Log()


@pytest.mark.parametrize("linker", [None, "py", "vm", "c|py", PerformLinker()], ids=str)
def test_both_are_called_around_every_apply(log, linker):
    x = T.dvector("x")
    mode = MonitorMode(log.before, log.after, optimizer=None, linker=linker)
    f = function([x], T.exp(x + x).sum(), mode=mode)
    np.testing.assert_allclose(f([0.0, 1.0]), 1 + np.e**2)
    steps = len(f.linked.order)
    assert [(when, i) for when, i, *_ in log.calls] == [
        (when, i) for i in range(steps) for when in ("before", "after")
    ]
    assert log.calls[0][2:] == ("Elemwise{add,no_inplace}", [[0.0, 1.0], [0.0, 1.0]])
    assert log.calls[1][2:] == ("Elemwise{add,no_inplace}", [[0.0, 2.0]])


def test_each_may_be_left_out(log):
    x = T.dvector("x")
    f = function([x], x + x, mode=MonitorMode(pre_func=log.before, optimizer=None))
    assert f([1.0]) == 2
    g = function([x], x + x, mode=MonitorMode(post_func=log.after, optimizer=None))
    assert g([1.0]) == 2
    assert [when for when, *_ in log.calls] == ["before", "after"]
    assert function([x], x + x, mode=MonitorMode())([1.0]) == 2


def test_values_can_be_changed():
    def double(i, node, fn):
        fn.outputs[0][0] *= 2

    x = T.dvector("x")
    f = function([x], x + x, mode=MonitorMode(post_func=double, optimizer=None))
    assert f([1.0]) == 4


@pytest.mark.parametrize("method", ["including", "excluding", "requiring"])
def test_variants_keep_the_functions(log, method):
    mode = getattr(MonitorMode(log.before, log.after), method)("fusion")
    assert type(mode) is MonitorMode
    assert (mode.pre_func, mode.post_func) == (log.before, log.after)
    x = T.dvector("x")
    function([x], T.exp(x) * 2, mode=mode)([1.0])
    assert {when for when, *_ in log.calls} == {"before", "after"}
    fused = any("Composite" in op for _, _, op, _ in log.calls)
    assert fused == (method != "excluding")


def test_the_optimizer_can_be_chosen(log):
    x = T.dvector("x")
    for optimizer, applys in ((None, 4), ("fast_run", 1)):
        f = function([x], T.exp(x) * 2, mode=MonitorMode(log.before, optimizer=optimizer))
        assert len(f.linked.order) <= applys


def test_an_error_in_a_users_function():
    def refuse(i, node, fn):
        raise LookupError("not this one")

    x = T.dvector("x")
    f = function([x], x + x, mode=MonitorMode(post_func=refuse, optimizer=None))
    with pytest.raises(LookupError, match=r"not this one\nApply node that caused the error: .*add"):
        f([1.0])


def test_detect_nan(capsys):
    x = T.dscalar("x")
    mode = MonitorMode(post_func=detect_nan).excluding("local_elemwise_fusion", "inplace")
    f = function([x], [T.log(x) * x], mode=mode)
    f(1.0)
    assert capsys.readouterr().out == ""
    with np.errstate(all="ignore"):
        assert np.isnan(f(-1.0))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "*** NaN detected ***"
    assert lines[1].startswith("Elemwise{log,no_inplace} [id A]")
    assert "Inputs : [array(-1.)]" in lines and "Outputs: [array(nan)]" in lines
    assert lines.count("*** NaN detected ***") == 2, "the product has it too"


def test_detect_nan_checks_floats_only(capsys):
    x = T.ivector("x")
    f = function([x], x + x, mode=MonitorMode(post_func=detect_nan))
    f([1, 2])
    assert capsys.readouterr().out == ""


def test_pickle():
    mode = pickle.loads(pickle.dumps(MonitorMode(post_func=detect_nan, optimizer="fast_compile")))
    assert mode.post_func is detect_nan
    x = T.dvector("x")
    assert function([x], x + x, mode=mode)([1.0]) == 2


def test_a_linker_without_thunks():
    with pytest.raises(AttributeError, match="make_all"):
        MonitorMode(linker="c&py")
    assert isinstance(MonitorMode(), Mode)
