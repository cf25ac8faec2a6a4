"""Memory of a call: what lives when, by whom it was made, and the section that tells of it."""

# ruff: noqa: E501  (the lines are as long as what is printed)

import io
from dataclasses import replace

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, PerformLinker, ProfileMode, function
from opwise.profiling import memory
from opwise.profiling.profile import Profile
from opwise.profiling.reports import profilestats
from opwise.tensor import Elemwise
from opwise.tensor.blas import BatchedDot, Dot22, Gemm, Gemv, Ger
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.sort import SortOp

X = T.dvector("x")
N = 1000
KB = 8 * N
PLAIN = Mode("py", None)
LINKERS = ["py", "c|py", "c&py", "vm"]


@pytest.fixture
def measured(flags):
    """Compile, call once on N numbers for each vector, and return (function, FunctionProfile)."""
    flags(profile_memory=True)

    def run(inputs, outputs, *values, mode=PLAIN, **arguments):
        f = function(inputs, outputs, mode=mode, profile=True, **arguments)
        f(*(values or [np.ones(N) for _ in inputs]))
        (profile,) = f.profile.profile().functions
        return f, profile

    return run


def chain():
    """exp, sort, and the sum of both: three arrays, all of which live while the last one runs."""
    a = T.exp(X)
    return T.sort(a) + a


# --- how much lives -------------------------------------------------------------------------------


def test_a_chain(measured):
    _, profile = measured([X], chain())
    assert profile.memory.timeline == (KB, 2 * KB, 3 * KB)
    assert (profile.memory.peak, profile.memory.at, profile.memory.total) == (3 * KB, 2, 3 * KB)
    assert [(one.position, one.bytes) for one in profile.memory.live] == [
        (0, KB), (1, KB), (2, KB),
    ]  # fmt: skip


def test_what_nobody_reads_any_more_is_gone(measured):
    _, profile = measured([X], T.sort(T.sort(T.sort(X))))
    assert profile.memory.timeline == (KB, 2 * KB, 2 * KB)
    assert profile.memory.total == 3 * KB


def test_views_are_nothing(measured):
    _, profile = measured([X], T.sort(T.exp(X)[::-1]))
    codes = [a.shares for a in profile.applys]
    assert ("v",) in codes
    assert profile.memory.peak == 2 * KB and profile.memory.total == 2 * KB


def test_a_view_keeps_what_it_shows(measured):
    a = T.sort(X)
    _, profile = measured([X], T.sort(T.sort(a)) + a[::-1])
    assert profile.memory.timeline[-1] == 3 * KB  # a under its view, a sorted twice, the sum


def test_what_overwrites_is_nothing_either(measured):
    mode = Mode("py", "fast_run").requiring("inplace")
    _, profile = measured([X], T.exp(T.sort(X)), mode=mode)
    assert [a.shares for a in profile.applys] == [("c",), ("i",)]
    assert (profile.memory.peak, profile.memory.copying) == (KB, 2 * KB)


def test_a_function_without_applys(measured):
    f = function([X], [], mode=PLAIN, profile=True, on_unused_input="ignore")
    f(np.ones(3))
    (profile,) = f.profile.profile().functions
    assert profile.memory is None or profile.memory.peak == 0


@pytest.mark.parametrize("linker", LINKERS)
def test_every_machine_tells_the_same(measured, linker):
    _, expected = measured([X], [chain(), X.sum()])
    _, profile = measured([X], [chain(), X.sum()], mode=Mode(linker, None))
    for a, b in zip(expected.applys, profile.applys, strict=True):
        assert (a.input_arrays, a.output_arrays) == (b.input_arrays, b.output_arrays)
    assert profile.memory.peak == expected.memory.peak
    assert profile.memory.total == expected.memory.total


def test_arrays_as_they_were_in_the_last_call(measured):
    m = T.fmatrix("m")
    f, _ = measured([m], T.exp(m.T), np.ones((2, 3), "f"))
    f(np.ones((4, 5), "f"))
    (profile,) = f.profile.profile().functions
    view, result = profile.applys
    (x,) = view.input_arrays
    assert (x.dtype, x.shape, x.strides, x.bytes) == ("float32", (4, 5), (20, 4), 80)
    assert view.output_arrays[0].shape == (5, 4) and view.output_arrays[0].strides == (4, 20)
    assert result.input_arrays == view.output_arrays


def test_scratch_counts(measured):
    """A float32 sum over an axis has double accumulators for a time."""
    m = T.fmatrix("m")
    _, profile = measured([m], m.sum(axis=0), np.ones((5, N), "f"), mode=Mode("c|py", None))
    assert profile.memory.timeline[-1] >= 4 * N + 8 * N
    assert any(one.position == -1 and one.bytes >= 8 * N for one in profile.memory.live)


def test_it_is_not_measured_unless_asked_for():
    f = function([X], chain(), mode=PLAIN, profile=True)
    f(np.ones(3))
    (profile,) = f.profile.profile().functions
    assert profile.memory is None
    assert profile.applys[0].output_arrays[0].bytes == 24


def test_profile_mode_has_a_flag_of_its_own(flags):
    flags({"ProfileMode.profile_memory": True})
    mode = ProfileMode("py", None)
    function([X], chain(), mode=mode)(np.ones(N))
    assert mode.profile().functions[0].memory.peak == 3 * KB


# --- the order with the lowest peak ---------------------------------------------------------------


def test_a_better_order_is_found(measured, flags):
    """Two large arrays, each of which becomes a number: one after the other needs less."""
    flags({"profiling.min_peak_memory": True})

    def sorting_first(fgraph):
        return sorted(fgraph.toposort(), key=lambda node: not isinstance(node.op, SortOp))

    y = T.dvector("y")
    mode = Mode(PerformLinker(schedule=sorting_first), None)
    f, profile = measured([X, y], T.sort(X).sum() + T.sort(y).sum(), mode=mode)
    assert profile.memory.peak == 2 * KB + 8
    assert profile.memory.peak_toposort == profile.memory.least == KB + 16
    assert profile.memory.least_is_sure and profile.memory.least_seconds > 0
    out = io.StringIO()
    f.profile.summary(out)
    assert "    Minimum peak from all valid apply node order is 8KB(took " in out.getvalue()


def test_a_search_that_would_take_too_long_says_so(measured, flags, monkeypatch):
    monkeypatch.setattr(memory, "MOST_STATES", 10)
    flags({"profiling.min_peak_memory": True})
    _, profile = measured([X], [T.sort(X + k) for k in range(8)])
    assert not profile.memory.least_is_sure
    assert profile.memory.least == profile.memory.peak


# --- the section ----------------------------------------------------------------------------------


def test_the_section(measured):
    f, _ = measured([X], chain())
    out = io.StringIO()
    f.profile.summary_memory(out)
    assert (
        out.getvalue()
        == """\
Memory Profile
(Sparse variables are ignored)
(For values in brackets, it's for linker = c|py
---
    Max peak memory with current setting
        CPU: 23KB (23KB)
        GPU: 0KB (0KB)
        CPU + GPU: 23KB (23KB)
    Max peak memory with current setting and Theano flag optimizer_excluding=inplace
        CPU: 23KB (23KB)
        GPU: 0KB (0KB)
        CPU + GPU: 23KB (23KB)
    Max peak memory if allow_gc=False (linker don't make a difference)
        CPU: 23KB
        GPU: 0KB
        CPU + GPU: 23KB
---
    Max if no gc, inplace and view: 23KB
    Max if linker=cvm (default): 23KB
    Max if no gc (allow_gc=False): 23KB
    Max if linker=c|py: 23KB
    Memory saved if views are used: 0KB
    Memory saved if inplace ops are used: 0KB
    Memory saved if gc is enabled (linker=c|py): 0KB

    <Sum apply outputs (bytes)> <Apply outputs shape> <created/inplace/view> <Apply node>

          8000B  [(1000,)] c Elemwise{exp,no_inplace}(x)
          8000B  [(1000,)] c SortOp{quicksort, None}(Elemwise{exp,no_inplace}.0, TensorConstant{-1})
          8000B  [(1000,)] c Elemwise{add,no_inplace}(SortOp{quicksort, None}.0, Elemwise{exp,no_inplace}.0)
   ... (remaining 0 Apply account for    0B/24000B ((0.00%)) of the Apply with dense outputs sizes)

    <created/inplace/view> is taken from the Op's declaration.
    Apply nodes marked 'inplace' or 'view' may actually allocate memory, this is not reported here. If you use DebugMode, warnings will be emitted in those cases.

"""
    )


def test_small_arrays_are_not_shown(measured, flags):
    flags({"profiling.min_memory_size": 10_000})
    f, _ = measured([X], chain())
    out = io.StringIO()
    f.profile.summary(out)
    assert """ <created/inplace/view> <Apply node>

   ... (remaining 3 Apply account for 24000B/24000B ((100.00%)) of the Apply with dense outputs sizes)

    All Apply nodes have output sizes that take less than 10000B.
    <created/inplace/view> is taken from the Op's declaration.
""" in out.getvalue()


def test_what_is_saved_by_what(measured):
    """Of four outputs, one overwrites another and one is a view; of six, two live at a time."""
    mode = Mode("py", "fast_run").requiring("inplace").excluding("fusion")
    f, profile = measured([X], T.sort(T.exp(T.sort(X))[::-1]), mode=mode)
    assert sorted(a.shares for a in profile.applys) == [("c",), ("c",), ("i",), ("v",)]
    memory = profile.memory
    assert (memory.total_apart, memory.total_copying, memory.total) == (4 * KB, 3 * KB, 2 * KB)
    f, _ = measured([X], T.sort(T.sort(T.sort(T.exp(T.sort(X))[::-1]))), mode=mode)
    lines = profilestats.memory_section(f.profile.profile())
    first = lines.index("    Max if no gc, inplace and view: 47KB")
    assert lines[first + 1 : first + 7] == [
        "    Max if linker=cvm (default): 16KB",
        "    Max if no gc (allow_gc=False): 31KB",
        "    Max if linker=c|py: 16KB",
        "    Memory saved if views are used: 8KB",
        "    Memory saved if inplace ops are used: 8KB",
        "    Memory saved if gc is enabled (linker=c|py): 16KB",
    ]


def test_two_savings_of_several_functions(build):
    """They are differences of maxima, which may belong to different functions."""
    _, function, _ = build
    names = ("peak", "peak_toposort", "total", "total_copying", "total_apart")
    none = memory.MemoryProfile((), 0, -1, (), 0, 0, 0, 0, 0)
    functions = [
        replace(
            function(),
            memory=replace(none, **{n: kb << 10 for n, kb in zip(names, kbs, strict=True)}),
        )
        for kbs in ((2, 3, 5, 6, 10), (1, 1, 4, 8, 9))
    ]
    lines = profilestats.memory_section(Profile(tuple(functions)))
    at = lines.index("    Max if no gc, inplace and view: 10KB")
    assert [line.split(": ")[1] for line in lines[at + 1 : at + 7]] == [
        "2KB", "5KB", "3KB", "2KB", "3KB", "2KB",
    ]  # fmt: skip
    assert lines[at + 7] == "    This list is based on all functions in the profile"


def test_applys_show_their_arrays_and_rates(measured):
    m = T.dmatrix("m")
    f, _ = measured([m], T.dot(m.T, m), np.ones((30, 20)))
    out = io.StringIO()
    f.profile.summary(out)
    lines = out.getvalue().splitlines()
    assert any("<id> <Mflops> <Gflops/s> <Apply name>" in line for line in lines)
    assert "    input 0: dtype=float64, shape=(20, 30), strides=(8, 160)" in lines
    assert "    output 0: dtype=float64, shape=(20, 20), strides=c" in lines


def test_a_section_for_several_functions(flags):
    from opwise import ProfileStats

    flags(profile_memory=True)
    stats = ProfileStats(atexit_print=False)
    function([X], T.sort(X), profile=stats, mode=PLAIN)(np.ones(N))
    function([X], chain(), profile=stats, mode=PLAIN)(np.ones(N))
    lines = profilestats.memory_section(stats.profile())
    assert lines[0] == "Memory Profile (the max between all functions in that profile)"
    assert "        CPU: 23KB (23KB)" in lines
    assert "    This list is based on all functions in the profile" in lines


def test_it_survives_json(measured):
    f, _ = measured([X], chain())
    profile = f.profile.profile()
    assert Profile.from_json(profile.to_json()) == profile


# --- operations -----------------------------------------------------------------------------------

A, B, C = (5, 7), (7, 3), (5, 3)


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "count"),
    [
        (Dot22(), [A, B], [C], 2 * 5 * 7 * 3),
        (Gemm(False), [C, (), A, B, ()], [C], 2 * 5 * 7 * 3),
        (Gemv(False), [(5,), (), A, (7,), ()], [(5,)], 2 * 5 * 7),
        (Ger(False), [A, (), (5,), (7,)], [A], 2 * 5 * 7),
        (BatchedDot(), [(4, 5, 7), (4, 7, 3)], [(4, 5, 3)], 2 * 4 * 5 * 7 * 3),
    ],
)
def test_operations_of_products(op, inputs, outputs, count):
    assert op.flops(inputs, outputs) == count


def flops(expression, *values, mode=None):
    inputs = [T.dmatrix() for _ in values]
    f = function(inputs, expression(*inputs), profile=True, mode=mode or PLAIN)
    f(*values)
    return [a.flops for a in f.profile.profile().functions[0].applys]


def test_operations_of_loops():
    x = np.ones(A)
    assert flops(lambda a, b: a + b, x, x) == [35]
    assert flops(lambda a: T.add(a, a, a), x) == [70]
    assert flops(lambda a: T.exp(a), x) == [None]
    assert flops(lambda a: a.sum(axis=0), x)[-1] == 28
    assert flops(lambda a: a.sum(), np.ones((0, 3)))[-1] == 0


def test_operations_of_fused_loops():
    x = np.ones(A)
    fast = Mode("py", "fast_run")
    inputs = [T.dmatrix(), T.dmatrix()]
    f = function(inputs, T.sqr(inputs[0] - inputs[1]).sum(axis=1), profile=True, mode=fast)
    f(x, x)
    (apply,) = f.profile.profile().functions[0].applys
    assert isinstance(f.linked.order[0].op, MapReduce) and apply.flops == 2 * 35 + 30
    g = function(inputs, (inputs[0] - inputs[1]) * inputs[0], profile=True, mode=fast)
    g(x, x)
    (apply,) = g.profile.profile().functions[0].applys
    assert isinstance(g.linked.order[0].op, Elemwise) and apply.flops == 70


def test_an_op_whose_count_fails_loses_no_profile(monkeypatch):
    def wrong(self, inputs, outputs):
        raise RuntimeError("no")

    monkeypatch.setattr(Elemwise, "flops", wrong)
    assert flops(lambda a: a + a, np.ones(A)) == [None]
