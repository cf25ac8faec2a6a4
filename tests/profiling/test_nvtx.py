"""Ranges for system profilers: what is pushed is popped, in both machines, also after a failure."""

import subprocess

import numpy as np
import pytest

import opwise.tensor as T
from opwise import (
    Apply,
    Mode,
    Op,
    OpWiseCLinker,
    PerformLinker,
    ProfileMode,
    VM_Linker,
    function,
    shared,
)
from opwise.profiling import nvtx

LINKERS = {
    "plain": PerformLinker,
    "plain with C": lambda: VM_Linker(use_cloop=False),
    "compiled": OpWiseCLinker,
}


@pytest.fixture(params=list(LINKERS))
def mode(request):
    return Mode(LINKERS[request.param](), "fast_run")


class Failing(Op):
    """Raises for negative values."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        if (inputs[0] < 0).any():
            raise ValueError("negative")
        output_storage[0][0] = inputs[0] + 1

    def __str__(self):
        return "Failing"


def ranges(name, *ops):
    """What a call leaves: the function around its Applys in order."""
    inner = [line for k, op in enumerate(ops) for line in (f"+{k} {op}", "-")]
    return [f"+{name}", *inner, "-"]


@pytest.mark.c
def test_calls_and_applys(mode, marks):
    x = T.dvector("x")
    f = function([x], T.sort(T.exp(x)), mode=mode, name="f")
    assert marks() == []
    f([1.0])
    f([1.0, 2.0])
    ops = [str(node.op) for node in f.linked.order]
    assert len(ops) == 2
    assert marks() == ranges("f", *ops) * 2


@pytest.mark.c
def test_functions_compiled_without_the_flag(mode, marks, flags):
    x = T.dvector("x")
    flags({"profiling.nvtx": False})
    f = function([x], T.exp(x), mode=mode)
    f([1.0])
    flags({"profiling.nvtx": True})
    f([1.0])
    assert marks() == []


@pytest.mark.c
def test_what_raises_is_popped(mode, marks):
    x = T.dvector("x")
    f = function([x], T.exp(Failing()(T.sort(x))), mode=mode, name="f")
    ops = [str(node.op) for node in f.linked.order]
    with pytest.raises(ValueError, match="negative"):
        f([-1.0])
    assert marks() == ranges("f", *ops[:2])
    f([1.0])
    assert marks() == ranges("f", *ops)


@pytest.mark.c
def test_arguments_that_do_not_fit_each_other(mode, marks):
    x, y = T.dvectors("xy")
    f = function([x, y], T.sort(x * y), mode=mode, name="f")
    with pytest.raises(ValueError):
        f([1.0, 2.0], [1.0, 2.0, 3.0])
    assert marks() == ranges("f", *[str(node.op) for node in f.linked.order][:1])


@pytest.mark.c
def test_steps_that_overwrite_inputs(mode, marks):
    x, s = T.dvector("x"), shared(np.ones(3), name="s")
    f = function([x], T.sort(x), updates=[(s, s + x)], mode=mode, name="f")
    f(np.ones(3))
    assert marks() == ranges("f", *[str(node.op) for node in f.linked.order])
    with pytest.raises(ValueError):
        f(np.ones(4))
    assert marks()[0] == "+f"
    np.testing.assert_array_equal(s.get_value(), 2)


@pytest.mark.c
@pytest.mark.parametrize("linker", ["py", "c|py", "c&py"])
def test_marks_and_times(marks, linker):
    mode = ProfileMode(linker)
    x = T.dvector("x")
    f = function([x], T.sort(T.exp(x)), mode=mode, name="f")
    for _ in range(3):
        f([1.0])
    ops = [str(node.op) for node in f.linked.order]
    assert marks() == ranges("f", *ops) * 3
    (profiled,) = mode.profile().functions
    assert [a.count for a in profiled.applys] == [3, 3]
    assert 0 < profiled.thunk_ns <= profiled.fn_ns


@pytest.mark.c
def test_a_function_within_a_function(mode, marks):
    x = T.dvector("x")
    inner = function([x], T.exp(x), mode=mode, name="inner")

    class Calling(Failing):
        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inner(inputs[0])

    f = function([x], Calling()(x), mode=mode, name="f")
    f([1.0])
    exp = str(inner.linked.order[0].op)
    assert marks() == ["+f", "+0 Failing", "+inner", f"+0 {exp}", "-", "-", "-", "-"]


@pytest.mark.c
def test_labels_are_cut(marks):
    class Long(Failing):
        def __str__(self):
            return "a\0b\udc80µ" * 100

    x = T.dvector("x")
    f = function([x], Long()(x), mode="FAST_COMPILE", name="f")
    f([1.0])
    assert marks()[1] == ("+" + ("0 " + "a?b?µ" * 100)[:200])


@pytest.mark.c
def test_debug_mode_runs_as_ever(marks):
    x = T.dvector("x")
    assert function([x], T.exp(x), mode="DEBUG_MODE")([0.0]) == [1.0]


@pytest.mark.null
@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_a_library_that_is_not_there(flags, linker):
    flags({"profiling.nvtx": True, "profiling.nvtx_library": "/no/such/library.so"})
    x = T.dvector("x")
    expected = r"^The flag profiling\.nvtx is on, and no NVTX library can be loaded: /no/such/lib"
    with pytest.raises(OSError, match=expected):
        function([x], T.exp(x), mode=Mode(linker, None))


@pytest.mark.c
def test_a_library_of_something_else(flags, tmp_path, nvtx_library):
    other = tmp_path / "other.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", other], check=True)
    flags({"profiling.nvtx": True, "profiling.nvtx_library": str(other)})
    x = T.dvector("x")
    with pytest.raises(OSError, match=r"other\.so is no NVTX library"):
        function([x], T.exp(x), mode=Mode("py", None))


@pytest.mark.null
def test_where_packages_put_the_library(monkeypatch, tmp_path):
    for place in ("nvtx/lib/libnvToolsExt.so.1", "cu13/lib/libnvtx3interop.so.1", "nvtx/lib/x.so"):
        path = tmp_path / "nvidia" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = [path.removeprefix(f"{tmp_path}/nvidia/") for path in nvtx._installed()]
    assert found == ["nvtx/lib/libnvToolsExt.so.1", "cu13/lib/libnvtx3interop.so.1"]
