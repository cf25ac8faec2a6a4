"""What follows the classic summaries: its sums agree with the profile, its words with the facts."""

import re
from dataclasses import replace

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling.memory import Live, MemoryProfile
from opwise.profiling.profile import OriginProfile, Profile
from opwise.profiling.reports import details

pytestmark = pytest.mark.null


def test_calls_are_divided_without_a_rest(build):
    apply, function, _ = build
    one = function(apply("exp", 6_000, count=3), apply("dot", 1_000, 1, count=3), calls=3)
    one = replace(one, call_ns=12_000, fn_ns=9_000, timing_ns=600, first_call_ns=6_000)
    lines = details.calls(Profile((one,)))
    assert lines[0] == "Time of 3 calls: <seconds> <share> <microseconds a call>"
    figures = {what: line.split()[:3] for line in lines[1:6] for what in [line[34:].strip()]}
    assert figures == {
        "calls": ["0.000012", "100.0%", "4.000"],
        "call path: arguments, results, updates": ["0.000003", "25.0%", "1.000"],
        "VM overhead: allocation and dispatch": ["0.000001", "11.7%", "0.467"],
        "Applys": ["0.000007", "58.3%", "2.333"],
        "profiling overhead: 6 x 100 ns (already subtracted)": ["0.000001", "5.0%", "0.200"],
    }
    shares = [float(s.rstrip("%")) for _, s, _ in list(figures.values())[1:]]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert lines[6] == "  first calls: 0.000006 s; later calls: 3.000 µs on average"


def test_a_device_works_beside_the_calls(build):
    """Times of a call are the host's: what it asked for and waited for, not what a device took."""
    apply, function, _ = build
    there = replace(apply("dot", 90_000, 1), device="cuda0", asked=3_000, waited=1_500)
    one = function(apply("exp", 2_000), there)
    one = replace(one, call_ns=10_000, fn_ns=9_000, timing_ns=500)
    lines = details.calls(Profile((one,)))
    shares = {what: line.split()[1] for line in lines[1:8] for what in [line[34:].strip()]}
    assert shares == {
        "calls": "100.0%",
        "call path: arguments, results, updates": "10.0%",
        "VM overhead: allocation and dispatch": "20.0%",
        "Applys of the host": "20.0%",
        "launching kernels": "30.0%",
        "waiting for the device": "15.0%",
        "profiling overhead: 2 x 250 ns (already subtracted)": "5.0%",
    }


def test_applys_that_the_clock_hardly_measures(build):
    apply, function, _ = build
    one = replace(function(apply("a", 90, count=10), apply("b", 2000, 1, count=10)), timing_ns=200)
    (line,) = [x for x in details.calls(Profile((one,))) if "readings" in x]
    said = "1 Apply runs for less than 10 clock readings (100 ns): its times are unreliable"
    assert line.strip() == said
    exact = replace(one, timing_ns=10)
    assert not [x for x in details.calls(Profile((exact,))) if "readings" in x]


def test_first_runs_have_a_row_of_their_own(build):
    apply, function, _ = build
    one = function(replace(apply("exp", 1_000, count=3), once=700), calls=3)
    one = replace(one, call_ns=3_000, fn_ns=2_000, timing_ns=100)
    (row,) = [x for x in details.calls(Profile((one,))) if details.ONCE in x]
    assert row.split()[1] == "23.3%"
    (overhead,) = [x for x in details.calls(Profile((one,))) if "VM overhead" in x]
    assert overhead.split()[1] == "6.7%"


def test_applys_that_ran_once_hold_first_call_costs(build):
    apply, function, _ = build
    once = function(apply("exp", 1_000), calls=1)
    said = "  1 function ran once per process: first-call costs (cold code and memory) are in the"
    assert [x for x in details.calls(Profile((once,))) if x.startswith(said)]
    twice = function(apply("exp", 1_000, count=2), calls=2)
    assert not [x for x in details.calls(Profile((twice,))) if x.startswith(said)]


def test_busy_hardware_is_reported(build):
    apply, function, _ = build
    one = function(apply("exp", 1_000, count=2), calls=2)
    busy = {"seconds_running": 8.0, "seconds_waiting": 2.0}
    said = "  the hardware was busy: the main thread waited 2.000 s for a processor and ran for 8"
    assert [x for x in details.calls(Profile((one,), "", busy)) if x.startswith(said)]
    merged = {"merged": [busy, {"seconds_running": 190.0, "seconds_waiting": 0.0}]}
    for environment in ({}, merged):
        assert not [x for x in details.calls(Profile((one,), "", environment)) if "busy" in x]


def test_a_mean_far_above_the_median_is_noticed(build):
    apply, function, _ = build
    steady = replace(apply("exp", 10_000, count=10), histogram=((64, 10),))
    assert not [x for x in details.calls(Profile((function(steady, calls=10),))) if "median" in x]
    jumpy = replace(apply("dot", 100_000, 1, count=10), least=500, histogram=((60, 9), (110, 1)))
    (line,) = [
        x for x in details.calls(Profile((function(steady, jumpy, calls=10),))) if "median" in x
    ]
    assert line.startswith("  1 Apply with a mean far above the median (largest: id 1, 10.000 ")


def test_the_time_of_the_whole_program(build):
    apply, function, _ = build
    one = replace(function(apply("exp", 1_000)), call_ns=500_000_000)
    about = {"seconds_of_process": 4.0, "seconds_importing": 0.25, "grad_seconds": 0.5}
    lines = details.program(Profile((one,), "", about))
    assert lines[0] == "Time of the program: <seconds> <share>"
    figures = {line[22:]: line.split()[:2] for line in lines[1:]}
    assert figures == {
        "whole program, from the start of the process": ["4.000", "100.0%"],
        "importing opwise": ["0.250", "6.2%"],
        "building gradients": ["0.500", "12.5%"],
        "compiling 1 function": ["0.300", "7.5%"],
        "calls of functions": ["0.500", "12.5%"],
        "the rest: Python, other libraries, waiting": ["2.450", "61.3%"],
    }
    two = details.program(Profile((one,), "", {"merged": [about, about]}))
    assert two[0] == "Time of 2 processes, added up: <seconds> <share>"
    assert details.program(Profile((one,), "", {"merged": [about, {}]})) == []


def test_compiling(build):
    apply, function, _ = build
    one = function(apply("exp", 1))
    cached = replace(one, compile=replace(one.compile, cached=True))
    compiled = replace(one, compile=replace(one.compile, cached=False, compiler=0.125))
    read = replace(cached, compile=replace(cached.compile, graph_cached=True))
    (line,) = details.compiling(Profile((read,)))
    assert line.endswith(
        " (loading 0.001); rewritten graphs cached for 1 function; kernels cached for 1 function"
    )
    (line,) = details.compiling(Profile((one, cached, compiled)))
    assert line == (
        "  compiled 3 functions in 0.900 s: rewriting 0.300, linking 0.600 (C compiler 0.125, "
        "loading 0.003); kernels cached for 1 function, compiled for 1"
    )
    times = {"library": 0.5, "translation": 0.25}
    of_library = replace(one, compile=replace(one.compile, **times))
    (line,) = details.compiling(Profile((of_library, of_library)))
    assert line.startswith(
        "  compiled 2 functions in 0.600 s: rewriting by the library 1.000, translation 0.500, "
        "rewriting 0.200, linking 0.400"
    )


def test_compiling_without_parts_of_no_time(build):
    apply, function, _ = build
    one = function(apply("exp", 1))
    compiled = replace(one, compile=replace(one.compile, cached=False, load=0.0))
    (line,) = details.compiling(Profile((compiled, compiled)))
    assert line == (
        "  compiled 2 functions in 0.600 s: rewriting 0.200, linking 0.400; kernels compiled for "
        "2 functions"
    )


def test_parts_of_the_program_that_took_no_time_are_left_out(build):
    apply, function, _ = build
    about = {"seconds_of_process": 2.0, "seconds_importing": 1.0, "grad_seconds": 0.0004}
    lines = details.program(Profile((function(apply("exp", 1)),), "", about))
    assert len(lines) == 5 and not any("gradients" in line for line in lines)


def test_spread(build):
    apply, function, _ = build
    one = replace(
        apply("exp", 10_000, 4, count=10), least=500, most=4_500, histogram=((64, 9), (83, 1))
    )
    title, row = details.spread(Profile((function(one, apply("once", 5, 1)),)), 10)
    assert "<median> <95%>" in title
    least, median, p95, most, *rest = row.split()
    assert (least, most, rest) == ("0.500", "4.500", ["10", "4", "exp(x)"])
    assert 1.0 <= float(median) <= 1.2 < 3.5 < float(p95) <= 4.5


def test_by_line_and_scope(build):
    apply, function, _ = build
    here = OriginProfile("k", "exp", "/far/a.py", 3, "layer", None)
    back = OriginProfile("l", "mul", "/far/a.py", 9, "layer/grad", ("/far/a.py", 3))
    applys = [replace(apply("exp", 3_000_000), origins=(here, back)), apply("add", 1_000_000, 1)]
    profile = Profile((function(*applys),), sources={"/far/a.py:3": "y = exp(x)"})
    _, line, unknown = details.lines(profile, 10)
    assert line.split() == "0.003000 75.0% 50.0% /far/a.py:3 y = exp(x)".split()
    assert unknown.split() == "0.001000 25.0% - (unknown line)".split()
    _, *rows = details.scopes(profile, 2)
    assert [row.split()[-1] for row in rows[:2]] == ["layer", "layer/grad"]
    assert rows[2] == "  ... (1 more: 0.001000 s)"


def test_a_fused_apply_shows_its_parts(build):
    apply, function, _ = build
    parts = [
        OriginProfile("k", "exp", "/far/a.py", 3, "layer"),
        OriginProfile("l", "mul", "/far/a.py", 3, "layer"),
        OriginProfile("m", "sub", "/far/a.py", 9),
    ]
    one = replace(apply("Elemwise{Composite{exp}}", 2_000_000, 5), origins=tuple(parts))
    lines = details.fused(Profile((function(apply("exp", 1, lines=[("a.py", 1)]), one),)), 5)
    assert [line.strip() for line in lines[1:]] == [
        "0.002000     5  Elemwise{Composite{exp}}(x)", "/far/a.py:3 [layer]: exp, mul",
        "/far/a.py:9: sub",
    ]  # fmt: skip


def test_nothing_is_told_where_nothing_is_known(build):
    apply, function, _ = build
    profile = Profile((function(apply("exp", 5)),))
    assert details.lines(profile, 5) == details.scopes(profile, 5) == details.peak(profile) == []
    assert details.fused(profile, 5) == details.limits(profile, 5) == []
    assert details.in_python(profile, 5) == details.spread(profile, 5) == []
    assert details.sections(Profile(), 5) == []


def test_why_in_python(build):
    apply, function, _ = build
    profile = Profile((function(apply("exp", 75), apply("sort", 25, 1, c=False)),))
    assert details.in_python(profile, 5)[1].split() == (
        "0.000000 25.0% sort: no C implementation".split()
    )


def test_the_peak_has_an_owner(build):
    apply, function, _ = build
    memory = MemoryProfile(
        (8, 3000, 8), 2500, 1, (Live(0, 1500), Live(1, 1000), Live(-1, 500)), 1, 1, 1, 1, 0
    )
    one = function(apply("exp", 1, lines=[("/far/a.py", 3)]), apply("dot", 1, 1))
    lines = details.peak(Profile((replace(one, memory=memory),)))
    assert lines[0] == (
        "Memory at its peak: 2.441 KiB while f ran dot(x) (id 1); including scratch "
        "memory, at most 2.93 KiB. Live at that point: <bytes> <made by>"
    )
    less = replace(one, name="/far/b.py:7", memory=replace(memory, timeline=(8, 2500, 8)))
    assert details.peak(Profile((less,)))[0] == (
        "Memory at its peak: 2.441 KiB while /far/b.py:7 ran dot(x) (id 1). Live at that point: "
        "<bytes> <made by>"
    )
    assert [line.split(maxsplit=1) for line in lines[1:]] == [
        ["1500", "exp(x) (id 0, /far/a.py:3)"],
        ["1000", "dot(x) (id 1)"],
        ["500", "scratch of the Apply itself"],
    ]


def test_of_a_real_function():
    x = T.dmatrix("x")
    with opwise.scope("layer"):
        y = T.sqr(T.gammal(1, T.exp(x))).sum()
    f = opwise.function([x], T.grad(y, x), profile=True, name="f")
    for _ in range(3):
        f(np.ones((3, 3)))
    profile = f.profile.profile()
    text = "\n".join(details.sections(profile, 10))
    assert re.search(r"layer/grad$", text, re.M) and "In Python:" in text
    (here,) = re.findall(r"^ .*test_report_details.py:\d+  y = T.sqr.*$", text, re.M)
    share = float(here.split()[1].rstrip("%"))
    assert 0 < share <= 100
    assert profile.functions[0].timing_ns == 3 * len(profile.applys) * f.fn.timing.timer_ns
