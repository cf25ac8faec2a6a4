"""Profiles of loops: the Applys of a step are rows, counted once, under the loop that runs them."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise import OpFromGraph, ProfileStats
from opwise.compile import ScanProfileStats
from opwise.profiling import aggregate, compare, nesting
from opwise.profiling.html.profiledata import of_profile
from opwise.profiling.merge import merge
from opwise.profiling.profile import Profile
from opwise.profiling.traces import export_chrome_trace, export_speedscope
from theano import Apply, Op, ProfileMode, function, scan

#: a step with fewer numbers would be one C function, without Applys
#: rows have more elements than the compiled VM leaves to one C function
STEPS, SIZE, CALLS = 7, 5000, 4
ROWS = np.linspace(-1, 1, STEPS * SIZE).reshape(STEPS, SIZE)
x = T.dmatrix("x")
MODES = ["FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", theano.Mode("py", "fast_run"),
         theano.Mode("c|py", "fast_run")]  # fmt: skip

#: the line of the step's result
LINE = 0


class PythonOp(Op):
    """A step that runs no C."""

    __props__ = ()

    def make_node(self, a):
        return Apply(self, [a], [a.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] + 1


def step(row, state):
    global LINE
    import sys

    LINE = sys._getframe().f_lineno + 1
    return T.tanh(row + state)


def outer_step(row, total):
    inside, _ = scan(lambda a, s: s * T.cos(a), row, T.constant(np.float64(1)), name="in")
    return total + inside[-1]


def loop(fn=step, **kwargs):
    return scan(fn, x, T.zeros((SIZE,), "float64"), name="walk", **kwargs)[0]


def profiled(out, mode="FAST_RUN", calls=CALLS, **kwargs):
    f = function([x], out, mode=mode, profile=True, **kwargs)
    for _ in range(calls):
        f(ROWS)
    return f


def data_of(f):
    (recorded,) = f.profile.profile().functions
    return recorded


def outermost(recorded):
    (found,) = [a for a in recorded.applys if a.kind == "loop" and a.inside < 0]
    return found


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_the_applys_of_a_step_are_rows(mode):
    recorded = data_of(profiled(loop(), mode))
    around = outermost(recorded)
    inside = [a for a in recorded.applys if a.inside == around.position]
    assert inside and {a.count for a in inside} == {STEPS * CALLS}
    assert around.count == CALLS
    assert {a.loop for a in inside} == {"for{cpu,walk}"}
    assert any(LINE in [line for _, line in a.lines] for a in inside)
    assert all(a.output_arrays for a in inside)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_time_is_counted_once(mode):
    recorded = data_of(profiled(loop(outer_step), mode))
    for a in recorded.applys:
        inside = [each for each in recorded.applys if each.inside == a.position]
        assert a.inner == sum(each.whole for each in inside)
    top = recorded.own_applys
    assert sum(a.whole for a in top) == recorded.thunk_ns <= recorded.fn_ns


def test_sums_of_all_groupings_are_the_whole():
    profile = profiled(loop(outer_step)).profile.profile()
    for name, group in aggregate.GROUPINGS.items():
        assert sum(row.ns for row in group(profile)) == pytest.approx(profile.local_ns), name
    (_, inner) = [a for a in profile.applys if a.kind == "loop"]
    assert inner.title.startswith("for{cpu,walk} > for{cpu,in}(")
    (deepest,) = {a.loop for a in profile.applys if a.inside == inner.position}
    assert deepest == "for{cpu,walk} > for{cpu,in}"


def test_kept_calls_have_the_times_of_all_steps():
    recorded = data_of(profiled(loop()))
    assert len(recorded.detail) == CALLS
    for a in recorded.applys:
        times = [call.apply_ns[a.position] for call in recorded.detail]
        assert sum(times) == pytest.approx(a.total + a.once, abs=2 * CALLS)


@pytest.mark.parametrize("mode", ["FAST_RUN", theano.Mode("py", "fast_run")], ids=str)
def test_a_failed_call_leaves_no_times_to_the_next(mode):
    n = T.iscalar("n")
    out = scan(lambda a, s: s + a[n], x, T.constant(np.float64(0)), name="walk")[0]
    f = function([x, n], out, mode=mode, profile=True)
    with pytest.raises(IndexError):
        f(ROWS, SIZE)
    f(ROWS, 0)
    recorded = data_of(f)
    (call,) = recorded.detail
    assert call.ns <= recorded.fn_ns


def test_ignored_first_calls_and_reset_forget_the_steps():
    stats = ProfileStats(atexit_print=False)
    stats.ignore_first_call = True
    f = function([x], loop(), mode="FAST_RUN", profile=stats)
    for _ in range(CALLS):
        f(ROWS)
    counts = {a.count for a in data_of(f).applys if a.inside >= 0}
    assert counts == {STEPS * (CALLS - 1)}
    stats.reset()
    assert not any(a.count or a.inner for a in data_of(f).applys)


def test_a_step_with_python_code():
    recorded = data_of(profiled(loop(lambda row, state: PythonOp()(row) * state)))
    around = outermost(recorded)
    (python,) = [a for a in recorded.applys if a.op.startswith("PythonOp")]
    assert (python.inside, python.count, python.c) == (around.position, STEPS * CALLS, False)
    assert around.c and python.why == "PythonOp has no C implementation"


def test_graphs_of_other_ops():
    a = T.dmatrix("a")
    twice = OpFromGraph([a], [T.exp(a) * 2], name="twice")
    recorded = data_of(profiled(twice(twice(x))))
    outer = [a for a in recorded.applys if a.op.startswith("twice")]
    assert len(outer) == 2
    for each in outer:
        inside = [a for a in recorded.applys if a.inside == each.position]
        assert inside and {a.count for a in inside} == {CALLS}
        assert each.inner == sum(a.total for a in inside)


def test_memory_of_a_step_is_part_of_its_loop():
    with theano.configparser.change_flags(profile_memory=True):
        f = profiled(loop())
    recorded = data_of(f)
    memory, around = recorded.memory, outermost(recorded)
    assert len(memory.timeline) == len(recorded.applys)
    inside = [memory.timeline[a.position] for a in recorded.applys if a.inside >= 0]
    assert max(inside) == memory.timeline[around.position]
    assert max(inside) >= 8 * SIZE * (STEPS + 1)


def test_nested_order():
    recorded = data_of(profiled(loop(outer_step)))
    seen = list(nesting.nested(recorded))
    assert sorted(a.position for a, _ in seen) == list(range(len(recorded.applys)))
    assert {depth for _, depth in seen} == {0, 1, 2}
    for k, (a, depth) in enumerate(seen):
        if depth:
            before = [each for each, d in seen[:k] if d == depth - 1][-1]
            assert before.position == a.inside


# --- loops that are one C function ----------------------------------------------------------------


def in_one_function(inner=False):
    """Return the ProfileStats of a function whose loop over numbers runs as one C function."""
    v = T.dvector("v")

    def number(e, total):
        if not inner:
            return total * 0.5 + T.exp(e)
        return scan(lambda s: s * 0.5 + e, outputs_info=total, n_steps=30)[0][-1]

    total = scan(number, v, T.constant(np.float64(1)), name="sum")[0][-1]
    f = function([v], total, profile=True, mode="FAST_RUN")
    for _ in range(CALLS):
        f(np.ones(40))
    return f.profile


@pytest.mark.c
def test_a_step_that_is_not_timed_has_estimates():
    stats = in_one_function()
    profile = stats.profile()
    (recorded,) = profile.functions
    around = outermost(recorded)
    inside = [a for a in recorded.applys if a.inside == around.position]
    assert inside and all(a.estimated and not a.histogram for a in inside)
    assert {a.count for a in inside} == {40 * CALLS}
    assert (around.total, around.inner) == (0, sum(a.total for a in inside))
    assert not any(a.estimated for a in recorded.own_applys)
    assert Profile.from_json(profile.to_json()) == profile
    assert all(a.estimated for a in merge([profile, profile]).applys if a.inside >= 0)
    text = stats_text(stats)
    assert "the times inside are estimated: the loop ran as one C function" in text
    assert "One scan runs as one C function; times of Applys inside are estimates" in text


@pytest.mark.c
def test_estimates_of_nested_loops_add_up():
    recorded = in_one_function(inner=True).profile().functions[0]
    around = outermost(recorded)
    (inner,) = [a for a in recorded.applys if a.kind == "loop" and a.inside >= 0]
    deepest = [a for a in recorded.applys if a.inside == inner.position]
    assert (inner.count, {a.count for a in deepest}) == (40 * CALLS, {30 * 40 * CALLS})
    assert around.inner == sum(a.total for a in recorded.applys if a.inside >= 0)
    assert around.inner >= inner.inner > 0


def stats_text(stats):
    out = io.StringIO()
    stats.summary(file=out)
    return out.getvalue()


# --- lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_loop_is_at_its_call_and_its_reader_where_it_reads(mode):
    import sys

    call = sys._getframe().f_lineno + 1
    rows = scan(step, x, T.zeros((SIZE,), "float64"), name="walk")[0]
    last = rows[-1]
    recorded = data_of(profiled(last, mode))
    assert outermost(recorded).lines == ((__file__, call),)
    readers = [a for a in recorded.own_applys if a.op.startswith("Subtensor")]
    assert readers[-1].lines[0] == (__file__, call + 1)


# --- what is made of it ---------------------------------------------------------------------------


def test_files_keep_the_rows(tmp_path):
    profile = profiled(loop(outer_step)).profile.profile()
    assert Profile.from_json(profile.to_json()) == profile
    twice = merge([profile, profile])
    assert [a.inner for a in twice.applys] == [2 * a.inner for a in profile.applys]
    assert [a.inside for a in twice.applys] == [a.inside for a in profile.applys]


def test_a_row_inside_a_later_apply_is_refused():
    profile = profiled(loop()).profile.profile()
    plain = json.loads(profile.to_json())
    plain["functions"][0]["applys"][0]["inside"] = 1
    with pytest.raises(theano.ProfileFormatError if hasattr(theano, "ProfileFormatError")
                       else Exception, match="inside a later Apply"):  # fmt: skip
        Profile.from_json(json.dumps(plain))


def test_differences_match_the_applys_of_steps():
    fused = profiled(loop(), "FAST_RUN").profile.profile()
    plain = profiled(loop(), "FAST_COMPILE").profile.profile()
    rows = compare.by_apply(fused, plain)
    (walk,) = [r for r in rows if r.label == "for{cpu,walk}"]
    assert not walk.only
    inside = [r for r in rows if "for{cpu,walk} >" in r.label and not r.only]
    assert inside
    assert sum(r.ns for r in rows) == pytest.approx(fused.local_ns - plain.local_ns)


def test_traces_nest_the_slices(tmp_path: Path):
    profile = profiled(loop(outer_step), calls=1).profile.profile()
    path = tmp_path / "trace.json"
    export_chrome_trace(profile, path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    (walk,) = [e for e in events if e["name"] == "for{cpu,walk}"]
    inside = [e for e in events if e["args"].get("inside", "").startswith("for{cpu,walk}")]
    assert len(inside) == sum(a.inside >= 0 for a in profile.applys)
    for event in inside:
        assert walk["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= walk["ts"] + walk["dur"] + 1e-3
    export_speedscope(profile, path)
    for view in json.loads(path.read_text())["profiles"]:
        if view["type"] == "evented":
            stack = []
            for event in view["events"]:
                if event["type"] == "O":
                    stack.append(event["frame"])
                else:
                    assert stack.pop() == event["frame"]
            assert not stack


def test_the_page_names_the_loop():
    page = of_profile(profiled(loop(outer_step)).profile.profile())
    texts = page["texts"]
    assert "for{cpu,walk} > for{cpu,in}" in texts


def test_the_classic_summary(capsys):
    stats = profiled(loop(outer_step)).profile
    out = io.StringIO()
    stats.summary(file=out)
    lines = out.getvalue().splitlines()
    at = lines.index("Scan overhead:")
    assert lines[at + 1].startswith(
        "<Scan op time(s)> <sub scan fct time(s)> <sub scan op time(s)>"
    )
    assert "for{cpu,walk}(" in lines[at + 2]
    assert "for{cpu,walk} > for{cpu,in}(" in lines[at + 3]
    assert lines[at + 4].startswith("total ")
    n = len(data_of(profiled(loop(outer_step))).own_applys)
    assert f"    Number of Apply nodes: {n}" in lines
    assert any(line.startswith("Loops: ") for line in lines)
    assert any(
        "overhead of the loop: " in line and f"{STEPS} steps a run" in line for line in lines
    )


def test_no_loops_no_section():
    stats = profiled(x * 2).profile
    out = io.StringIO()
    stats.summary(file=out)
    assert "Scan overhead" not in out.getvalue()
    assert "Loops:" not in out.getvalue()


def test_profile_mode_names_the_loop(capsys):
    mode = ProfileMode()
    f = function([x], loop(), mode=mode)
    f(ROWS)
    mode.print_summary()
    text = capsys.readouterr().out
    rows = [line for line in text.split("Op-wise")[0].splitlines() if "for{cpu,walk} > " in line]
    assert rows
    other = ProfileMode()
    function([x], loop(), mode=other)(ROWS)
    mode.print_diff_summary(other)
    assert "for{cpu,walk} > " in capsys.readouterr().out


# --- profiles of the step alone -------------------------------------------------------------------


def scans_of(f):
    return [n.op for n in f.maker.fgraph.toposort() if type(n.op).__name__ == "Scan"]


@pytest.mark.parametrize("mode", ["FAST_RUN", theano.Mode("py", "fast_run")], ids=str)
@pytest.mark.parametrize("profile", [True, "mine"])
def test_a_scan_with_a_profile_of_its_own(mode, profile):
    f = function([x], loop(profile=profile), mode=mode)
    for _ in range(CALLS):
        f(ROWS)
    (op,) = scans_of(f)
    stats = op.fn.profile
    assert isinstance(stats, ScanProfileStats)
    assert (stats.callcount, stats.nbsteps) == (CALLS, STEPS * CALLS)
    assert stats.call_time >= stats.vm_call_time > 0
    out = io.StringIO()
    stats.summary(file=out)
    name = "walk" if profile is True else profile
    lines = out.getvalue().splitlines()
    assert lines[1] == f"Scan Op profiling ( {name} )"
    assert f"(for a total of {STEPS * CALLS} steps)" in lines[4]
    assert "Elemwise" in out.getvalue()


def test_a_scan_with_a_given_profile_or_mode():
    stats, mode = ProfileStats(atexit_print=False), ProfileMode()
    f = function([x], [loop(profile=stats), loop(lambda r, s: T.exp(r - s), mode=mode)])
    f(ROWS)
    for profile in (stats.profile(), mode.profile()):
        (recorded,) = profile.functions
        assert recorded.calls == STEPS
        assert {a.count for a in recorded.applys} == {STEPS}


def test_a_loop_of_which_every_run_failed():
    class Fails(PythonOp):
        def perform(self, node, inputs, outputs):
            raise ValueError("in a step")

    rows, _ = scan(lambda row: Fails()(row * 2), sequences=[x])
    f = function([x], rows, profile=True)
    with pytest.raises(ValueError, match="in a step"):
        f(ROWS)
    out = io.StringIO()
    f.profile.summary(file=out)
    assert "overhead of the loop: " in out.getvalue() and "steps a run" in out.getvalue()
