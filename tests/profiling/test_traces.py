"""Traces: what the formats of other programs ask for, and that they hold what the profile does."""

import json
from collections import defaultdict
from dataclasses import replace

import fastjsonschema
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import ProfileMode, function
from opwise.profiling import aggregate
from opwise.profiling.model import CallFrame
from opwise.profiling.profile import CallProfile, OriginProfile, Profile

pytestmark = pytest.mark.null


@pytest.fixture
def recorded():
    """A profile of two functions with scopes, a gradient, an Op in Python; 12 calls of f."""
    x, w = T.dmatrix("x"), T.dvector("w")
    with opwise.scope("model"):
        with opwise.scope("layer"):
            p = T.tanh(T.dot(x, w))
        cost = T.sort(p).sum()
    mode = ProfileMode("c|py")
    f = function([x, w], [cost, T.grad(cost, w)], mode=mode, name="f")
    g = function([x], x * 2, mode=mode, name="g")
    for _ in range(12):
        f(np.ones((5, 3)), np.ones(3))
    g(np.ones((2, 2)))
    return mode.profile()


@pytest.fixture
def made(build):
    """A function of two Applys and two kept calls, with times that are known."""
    apply, a_function, _ = build
    applys = (
        apply("exp", 3000, 0, keys=["a"], lines=[("a.py", 3)]),
        apply("dot", 5000, 1, c=False),
    )
    detail = (CallProfile(1, 10_000, (1000, 2500)), CallProfile(7, 50_500, (2000, 2500)))
    function_ = replace(a_function(*applys, calls=7), detail=detail)
    sources = {"a.py:3": "y = exp(x)"}
    return Profile((function_,), "of a test", {"process": 4711}, sources)


def chrome(profile, path, **arguments):
    profile.export_chrome_trace(path, **arguments)
    return json.loads(path.read_text())


def slices(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


# --- the Trace Event Format -----------------------------------------------------------------------

#: what Perfetto and chrome://tracing ask for
CHROME = {
    "type": "object",
    "required": ["traceEvents", "otherData", "displayTimeUnit"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "required": ["ph", "name", "pid", "tid", "args"],
                        "properties": {
                            "ph": {"const": "M"},
                            "name": {"enum": ["process_name", "thread_name", "thread_sort_index"]},
                            "pid": {"type": "integer"},
                            "tid": {"type": "integer"},
                            "ts": {"const": 0},
                            "args": {"type": "object"},
                        },
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "required": ["ph", "name", "cat", "ts", "dur", "pid", "tid", "args"],
                        "properties": {
                            "ph": {"const": "X"},
                            "name": {"type": "string"},
                            "cat": {"enum": ["call", "C", "Python", "written by"]},
                            "ts": {"type": "number", "minimum": 0},
                            "dur": {"type": "number", "minimum": 0},
                            "pid": {"type": "integer"},
                            "tid": {"type": "integer"},
                            "args": {"type": "object"},
                        },
                        "additionalProperties": False,
                    },
                ]
            },
        },
    },
    "additionalProperties": False,
}


def test_a_trace_fits_the_format(recorded, made, tmp_path):
    check = fastjsonschema.compile(CHROME)
    for profile in (recorded, made, Profile()):
        check(chrome(profile, tmp_path / "t.json"))


def test_times_are_microseconds_from_the_first_start(made, tmp_path):
    got = [(e["name"], e["ts"], e["dur"], e["tid"]) for e in slices(chrome(made, tmp_path / "t"))]
    assert got == [
        ("call 1 of f", 0.0, 3.5, 1),
        ("exp", 0.0, 1.0, 1),
        ("dot", 1.0, 2.5, 1),
        ("call 7 of f", 40.5, 4.5, 1),
        ("exp", 40.5, 2.0, 1),
        ("dot", 42.5, 2.5, 1),
    ]


def test_names_of_the_process_and_the_functions(recorded, made, tmp_path):
    names = {
        (e["name"], e["pid"], e["tid"]): e["args"]
        for e in chrome(made, tmp_path / "t")["traceEvents"]
        if e["ph"] == "M"
    }
    assert names["process_name", 4711, 0] == {"name": "opwise: of a test"}
    assert names["thread_name", 4711, 1] == {"name": "f"}
    two = chrome(recorded, tmp_path / "t")
    assert {e["tid"]: e["args"]["name"] for e in two["traceEvents"] if e["name"] == "thread_name"} \
        == {1: "f", 2: "g", 3: "written by: f", 4: "written by: g"}  # fmt: skip
    assert {e["pid"] for e in two["traceEvents"]} == {recorded.environment["process"]}


def test_every_kept_call_holds_its_applys(recorded, tmp_path):
    by_thread = defaultdict(list)
    for each in slices(chrome(recorded, tmp_path / "t")):
        if each["cat"] != "written by":
            by_thread[each["tid"]].append(each)
    f, _ = recorded.functions
    assert len([e for e in by_thread[1] if e["cat"] == "call"]) == len(f.detail) == 8
    for events in by_thread.values():
        end = inner_end = -1
        for e in events:
            if e["cat"] == "call":
                assert e["ts"] >= end - 1e-6, "calls of one function do not overlap"
                inner_end, end = e["ts"], e["ts"] + e["dur"]
            else:
                assert e["ts"] == pytest.approx(inner_end, abs=1e-6)
                inner_end = e["ts"] + e["dur"]
                assert inner_end <= end + 1e-6
    (call,) = [e for e in by_thread[2] if e["cat"] == "call"]
    assert call["dur"] == recorded.functions[1].detail[0].ns / 1e3


def test_what_a_slice_tells(recorded, made, tmp_path):
    exp, dot = [e["args"] for e in slices(chrome(made, tmp_path / "t")) if e["cat"] != "call"][:2]
    assert exp == {
        "position": 0, "Apply": "exp(x)", "lines": ["a.py:3: y = exp(x)"], "scopes": [],
        "inputs": [], "outputs": [], "flops": "not counted", "runs in": "C",
    }  # fmt: skip
    assert dot["runs in"] == "Python: no C implementation" and dot["lines"] == []
    told = [e["args"] for e in slices(chrome(recorded, tmp_path / "t")) if e["cat"] != "call"]
    product = next(a for a in told if a["flops"] == 30)
    assert "float64 (5, 3)" in product["inputs"] and product["outputs"] == ["float64 (5)"]
    assert product["scopes"] == ["model/layer"]
    assert all("p = T.tanh(T.dot(x, w))" in line for line in product["lines"])


def test_of_many_lines_the_first_are_told(made, tmp_path):
    f = made.functions[0]
    origins = tuple(OriginProfile(str(k), "op", "a.py", k + 1) for k in range(9))
    many = replace(made, functions=(replace(f, applys=(replace(f.applys[0], origins=origins),
                                                       f.applys[1])),))  # fmt: skip
    exp = slices(chrome(many, tmp_path / "t"))[1]
    assert exp["args"]["lines"] == [
        "a.py:1",
        "a.py:2",
        "a.py:3: y = exp(x)",
        "a.py:4",
        "and 5 more",
    ]


@pytest.mark.parametrize(
    ("most", "left", "applys", "calls"),
    [
        (6, ["call 1 of f", "exp", "dot", "call 7 of f", "exp", "dot"], 0, 0),
        (5, ["call 1 of f", "dot", "call 7 of f", "exp", "dot"], 1, 0),
        (4, ["call 1 of f", "dot", "call 7 of f", "dot"], 2, 0),
        (3, ["call 1 of f", "dot", "call 7 of f"], 3, 0),
        (2, ["call 1 of f", "call 7 of f"], 4, 0),
        (1, ["call 7 of f"], 4, 1),
    ],
)
def test_the_shortest_are_dropped_first(made, tmp_path, most, left, applys, calls):
    trace = chrome(made, tmp_path / "t", max_events=most)
    assert [e["name"] for e in slices(trace)] == left
    other = trace["otherData"]
    assert (other["dropped Applys"], other["dropped calls"]) == (applys, calls)


def test_the_start_does_not_depend_on_what_is_dropped(made, tmp_path):
    (last,) = slices(chrome(made, tmp_path / "t", max_events=1))
    assert last["ts"] == 40.5


@pytest.mark.parametrize("most", [0, -1, 2.5, "9", None, True])
def test_limits_that_are_none(made, tmp_path, most):
    with pytest.raises(ValueError, match=r"max_events is .*; it must be a whole number from 1"):
        made.export_chrome_trace(tmp_path / "t", max_events=most)
    assert list(tmp_path.iterdir()) == []


def test_a_merged_profile_has_the_first_process(made, tmp_path):
    merged = replace(made, environment={"merged": [{"node": "a"}, {"process": 5}]})
    assert slices(chrome(merged, tmp_path / "t"))[0]["pid"] == 5
    assert slices(chrome(replace(made, environment={}), tmp_path / "t"))[0]["pid"] == 0


def test_half_a_character_in_a_name(made, tmp_path):
    odd = replace(made, functions=(replace(made.functions[0], name="µ\udc80"),))
    assert slices(chrome(odd, tmp_path / "t"))[0]["name"] == "call 1 of µ?"


def test_files_are_replaced_as_a_whole(made, tmp_path):
    path = tmp_path / "t.json"
    path.write_text("of before")
    made.export_speedscope(path)
    assert "of before" not in path.read_text()
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError):
        made.export_chrome_trace(tmp_path / "no" / "t.json")


# --- speedscope -----------------------------------------------------------------------------------


def _object(optional=(), **properties):
    return {
        "type": "object", "properties": properties, "additionalProperties": False,
        "required": [name for name in properties if name not in optional],
    }  # fmt: skip


_WHOLE = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number", "minimum": 0}
_UNITS = ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"]
_COMMON = {"name": {"type": "string"}, "unit": {"enum": _UNITS}, "startValue": _NUMBER,
           "endValue": _NUMBER}  # fmt: skip

#: the form that speedscope's documentation gives
SPEEDSCOPE = _object(
    **{"$schema": {"const": "https://www.speedscope.app/file-format-schema.json"}},
    name={"type": "string"},
    exporter={"type": "string"},
    activeProfileIndex=_WHOLE,
    shared=_object(
        frames={
            "type": "array",
            "items": _object(
                ("file", "line", "col"),
                name={"type": "string"},
                file={"type": "string"},
                line=_NUMBER,
                col=_NUMBER,
            ),
        }
    ),
    profiles={
        "type": "array",
        "items": {
            "oneOf": [
                _object(
                    type={"const": "evented"},
                    **_COMMON,
                    events={
                        "type": "array",
                        "items": _object(type={"enum": ["O", "C"]}, at=_NUMBER, frame=_WHOLE),
                    },
                ),
                _object(
                    type={"const": "sampled"},
                    **_COMMON,
                    samples={"type": "array", "items": {"type": "array", "items": _WHOLE}},
                    weights={"type": "array", "items": _NUMBER},
                ),
            ]
        },
    },
)


def speedscope(profile, path, **arguments):
    """Write, read, and check what a schema cannot say."""
    profile.export_speedscope(path, **arguments)
    data = json.loads(path.read_text())
    fastjsonschema.compile(SPEEDSCOPE)(data)
    n = len(data["shared"]["frames"])
    for view in data["profiles"]:
        if view["type"] == "sampled":
            assert len(view["samples"]) == len(view["weights"])
            assert all(0 <= frame < n for stack in view["samples"] for frame in stack)
            continue
        stack, now = [], view["startValue"]
        for event in view["events"]:
            assert event["at"] >= now and event["frame"] < n
            now = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert stack == [] and now <= view["endValue"]
    return data


def stacks(data, view):
    """{names from the outside in: weight} of a sampled view."""
    names = [frame["name"] for frame in data["shared"]["frames"]]
    return {
        tuple(names[i] for i in stack): weight
        for stack, weight in zip(view["samples"], view["weights"], strict=True)
    }


@pytest.mark.parametrize("by", ["scope", "line"])
def test_a_speedscope_file_fits_the_format(recorded, made, tmp_path, by):
    assert [v["type"] for v in speedscope(recorded, tmp_path / "s", by=by)["profiles"]] \
        == ["sampled", "evented"] * 2  # fmt: skip
    speedscope(made, tmp_path / "s", by=by)
    assert speedscope(Profile(), tmp_path / "s", by=by)["profiles"] == []


def test_weights_are_the_times_of_scopes(recorded, tmp_path):
    data = speedscope(recorded, tmp_path / "s", by="scope")
    sums = defaultdict(float)
    for view in data["profiles"][::2]:
        for stack, weight in stacks(data, view).items():
            scope = "/".join(part for part in stack[:-1] if part in ("model", "layer", "grad"))
            sums[scope] += weight
        assert view["endValue"] == pytest.approx(sum(view["weights"]))
    expected = {row.key: row.ns for row in aggregate.by_scope(recorded)}
    assert {scope: ns for scope, ns in sums.items() if scope} == pytest.approx(
        {scope: ns for scope, ns in expected.items() if scope}
    )
    assert sum(sums.values()) == pytest.approx(recorded.local_ns)


def test_weights_are_the_times_of_lines(recorded, tmp_path):
    data = speedscope(recorded, tmp_path / "s", by="line")
    frames, sums = data["shared"]["frames"], defaultdict(float)
    for view in data["profiles"][::2]:
        for stack, weight in zip(view["samples"], view["weights"], strict=True):
            place = frames[stack[0]]
            sums[place.get("file"), place.get("line")] += weight
    expected = {row.key or (None, None): row.ns for row in aggregate.by_line(recorded)}
    assert sums == pytest.approx(expected)


def test_an_apply_is_divided_among_what_it_computes(build, tmp_path):
    apply, a_function, _ = build
    origins = (
        OriginProfile("1", "exp", "a.py", 3, "net/one"),
        OriginProfile("2", "mul", "a.py", 4, "net/grad", gradient_of=("a.py", 3)),
        OriginProfile("3", "neg"),
        OriginProfile("4", "exp", "a.py", 3, "net/one"),
    )
    fused = replace(apply("fused", 100), origins=origins)
    profile = Profile((a_function(fused, apply("dot", 7)),), sources={"a.py:3": "y = exp(x)"})
    data = speedscope(profile, tmp_path / "s")
    (view,) = data["profiles"]
    assert stacks(data, view) == {
        ("net", "one", "y = exp(x)", "fused"): 50.0,
        ("net", "grad", "y = exp(x)", "grad", "fused"): 25.0,
        ("(unknown line)", "fused"): 25.0,
        ("(unknown line)", "dot"): 7.0,
    }
    data = speedscope(profile, tmp_path / "s", by="line")
    assert stacks(data, data["profiles"][0]) == {
        ("y = exp(x)", "fused"): 50.0,
        ("y = exp(x)", "grad", "fused"): 25.0,
        ("(unknown line)", "fused"): 25.0,
        ("(unknown line)", "dot"): 7.0,
    }


@pytest.fixture
def calling(build):
    """exp and dot, written by two lines of one function that the program calls, and a library."""
    apply, a_function, _ = build
    frames = {
        "run": CallFrame("/lib/runner.py", 9, "run", library="runner"),
        "main": CallFrame("a.py", 30, "<module>", "run"),
        "first": CallFrame("a.py", 3, "dense", "main"),
        "library": CallFrame("/lib/net/layers.py", 7, "layer", "main", "net"),
        "inner": CallFrame("/lib/net/ops.py", 8, "product", "library", "net"),
    }
    exp = replace(apply("exp", 40), origins=(OriginProfile("1", "exp", "a.py", 3, frame="first"),))
    dot = OriginProfile("2", "dot", "a.py", 30, gradient_of=("a.py", 30), frame="inner")
    neg = replace(apply("neg", 5, 1), origins=exp.origins)
    function = a_function(exp, neg, replace(apply("dot", 60, 2), origins=(dot,)))
    detail = (CallProfile(1, 1000, (40, 5, 60)),)
    sources = {"a.py:3": "return exp(x)", "a.py:30": "y = dense(x)"}
    return Profile((replace(function, detail=detail),), sources=sources, frames=frames)


def test_stacks_are_the_calls_of_the_program(calling, tmp_path):
    data = speedscope(calling, tmp_path / "s")
    assert stacks(data, data["profiles"][0]) == {
        ("y = dense(x)", "dense", "exp"): 40.0,
        ("y = dense(x)", "dense", "neg"): 5.0,
        ("y = dense(x)", "[net]", "grad", "dot"): 60.0,
    }
    trace = chrome(calling, tmp_path / "t")
    written = [e for e in slices(trace) if e["cat"] == "written by"]
    assert sorted((e["name"], e["ts"], e["dur"]) for e in written) == [
        ("[net]", 0.045, 0.06), ("dense", 0, 0.045), ("y = dense(x)", 0, 0.105),
    ]  # fmt: skip
    assert {e["args"].get("line") for e in written} == {
        "a.py:30: y = dense(x)", "a.py:3: return exp(x)", None,
    }  # fmt: skip


def test_kept_calls_stand_one_behind_the_other(made, tmp_path):
    data = speedscope(made, tmp_path / "s")
    names = [frame["name"] for frame in data["shared"]["frames"]]
    _, calls = data["profiles"]
    assert [(e["type"], names[e["frame"]], e["at"]) for e in calls["events"]] == [
        ("O", "call 1 of f", 0), ("O", "exp", 0), ("C", "exp", 1000), ("O", "dot", 1000),
        ("C", "dot", 3500), ("C", "call 1 of f", 3500), ("O", "call 7 of f", 3500),
        ("O", "exp", 3500), ("C", "exp", 5500), ("O", "dot", 5500), ("C", "dot", 8000),
        ("C", "call 7 of f", 8000),
    ]  # fmt: skip


def test_the_costliest_function_is_shown_first(build, tmp_path):
    apply, a_function, _ = build
    small, large = a_function(apply("exp", 5)), a_function(apply("dot", 50), name="large")
    small = replace(small, detail=(CallProfile(1, 0, (5,)),))
    data = speedscope(Profile((small, large)), tmp_path / "s")
    assert data["profiles"][data["activeProfileIndex"]]["name"] == "large: all 1 call"


def test_other_stacks_are_refused(made, tmp_path):
    known = "'call', 'scope', 'line'"
    with pytest.raises(ValueError, match=f"by is 'class'; it must be one of {known}"):
        made.export_speedscope(tmp_path / "s", by="class")


# --- from what is alive ---------------------------------------------------------------------------


def test_what_records_writes_the_same(tmp_path):
    x = T.dvector("x")
    mode = ProfileMode("py")
    f = function([x], T.exp(x), mode=mode, profile=True, name="f")
    f([1.0])
    for alive in (mode, f.profile):
        trace = chrome(alive, tmp_path / "t")
        names = [e["name"] for e in slices(trace) if e["cat"] != "written by"]
        assert names == ["call 1 of f", "Elemwise{exp,no_inplace}"]
        data = speedscope(alive, tmp_path / "s")
        assert sum(data["profiles"][0]["weights"]) == alive.profile().local_ns


def test_a_function_without_applys(tmp_path):
    x = T.dvector("x")
    f = function([opwise.In(x, borrow=True)], opwise.Out(x, borrow=True), profile=True, name="f")
    f(np.ones(1))
    chrome(f.profile, tmp_path / "t")
    speedscope(f.profile, tmp_path / "s")
