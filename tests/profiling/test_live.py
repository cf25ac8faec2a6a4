"""Counters that another process reads while a program runs."""

import errno
import os

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import loops
from opwise.profiling import live

pytestmark = pytest.mark.null

x = T.dvector("x")


@pytest.fixture
def reader(monkeypatch):
    reader = live.LiveReader()
    for name, value in reader.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(live, "_published", [])
    yield reader
    reader.close()


def compiled(mode="FAST_COMPILE", name="f"):
    return opwise.function([x], T.exp(x).sum(), mode=mode, name=name, profile=True)


def counts(reader):
    return [apply.count for apply in reader.applys()]


@pytest.mark.parametrize("linker", ["c|py", "py"])
def test_the_counters_of_another_process_are_those_of_the_profile(reader, linker):
    f = compiled(opwise.Mode(linker, "fast_compile"))
    reader.find()
    assert reader.functions == 1 and reader.calls == 0
    for _ in range(7):
        f(np.ones(100))
    assert reader.calls == 7
    applys = f.profile.profile().applys
    assert [(a.text, a.count, a.ns) for a in reader.applys()] == [
        (a.text, a.count, a.total + a.once) for a in applys
    ]
    (one, *_) = reader.applys()
    assert one.process == os.getpid() and one.function == "f"
    assert one.line.startswith(__file__) and one.where == ("C" if linker == "c|py" else "Py")


def test_a_reset_clears_the_counters(reader):
    f = compiled()
    reader.find()
    f(np.ones(3))
    f.profile.reset()
    assert set(counts(reader)) == {0}
    f(np.ones(3))
    assert set(counts(reader)) == {1}


def test_steps_of_loops_are_not_counted_twice(reader):
    v = T.dmatrix("v")
    h, _ = loops.scan(lambda s: T.tanh(T.dot(v, s)), None, T.ones((3,)), n_steps=9)
    f = opwise.function([v], h[-1], profile=True)
    reader.find()
    f(np.eye(3))
    shown = {a.text: (a.count, a.ns) for a in reader.applys()}
    applys = f.profile.profile().applys
    assert any(a.inside >= 0 for a in applys)
    assert shown == {a.title: (a.count, a.total + a.once) for a in applys}


def test_a_forked_process_leaves_the_counters_alone(reader):
    f = compiled()
    reader.find()
    f(np.ones(3))
    child = os.fork()
    if not child:
        for _ in range(5):
            f(np.ones(3))
        os._exit(0 if f.fn.timing.counters is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert set(counts(reader)) == {1}
    f(np.ones(3))
    assert set(counts(reader)) == {2}


def test_a_program_does_not_depend_on_its_reader(reader, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as changes:
        changes.setattr(os, "posix_fallocate", full, raising=False)
        f = compiled()
        assert f(np.zeros(4)) == 4 and f.fn.timing.counters is None
    assert list(reader.folder.iterdir()) == []
    reader.close()
    g = compiled(name="g")
    assert g(np.zeros(4)) == 4 and g.fn.timing.counters is None


def test_counters_stay_when_the_folder_is_removed(reader):
    f = compiled()
    reader.find()
    reader.close()
    f(np.zeros(4))
    assert set(counts(reader)) == {1}


@pytest.mark.parametrize("linker", ["c|py", "py"])
def test_memory_of_another_size_is_refused(linker):
    f = compiled(opwise.Mode(linker, "fast_compile"))
    with pytest.raises(ValueError, match=r"counters of \d steps|counters of \d thunks"):
        f.fn.timing.keep_in(memoryview(bytearray(40)))
    assert f(np.zeros(2)) == 2


def test_only_timed_functions_have_counters(reader, flags):
    flags({"profiling.time_thunks": False})
    f = compiled()
    f(np.zeros(2))
    reader.find()
    assert reader.functions == 0
