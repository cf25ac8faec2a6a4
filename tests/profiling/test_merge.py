"""Merged profiles, and differences: what must hold for any profiles whatever."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwise.tensor as T
from opwise import function
from opwise.profiling import compare, tabular
from opwise.profiling.merge import merge
from opwise.profiling.model import whole_ns
from opwise.profiling.profile import (
    ApplyProfile,
    ArrayProfile,
    CallProfile,
    CompileProfile,
    FunctionProfile,
    OriginProfile,
    Profile,
)
from opwise.tensor.extra_ops import DiffOp

pytestmark = pytest.mark.null

HERE, THERE = (OriginProfile("k", "exp", "a.py", n) for n in (1, 2))
ORIGINS = [(), (HERE,), (THERE,), (HERE, OriginProfile("l", "dot", gradient_of=("a.py", 1)))]
OPS = ["exp", "dot", "Sum{axis=[0]}"]
numbers = st.integers(0, 10**6)
seconds = st.floats(0, 1e4).map(whole_ns)
arrays = st.one_of(
    st.none(), st.builds(ArrayProfile, st.just("float64"), st.just((3,)), st.just((8,)), numbers)
)


@st.composite
def applys(draw, position):
    op, count = draw(st.sampled_from(OPS)), draw(st.integers(0, 5))
    return ApplyProfile(
        position=position, op=op, op_class=f"<class '{op[:3]}'>", op_key=op, text=f"{op}(x)",
        inputs=("v",), outputs=("v",), reads=(-1,), origins=draw(st.sampled_from(ORIGINS)),
        c=draw(st.booleans()), why="",
        count=count, total=draw(numbers) if count else 0, least=draw(numbers) if count else 0,
        most=draw(numbers) if count else 0,
        histogram=draw(st.sampled_from([((0, count),), ((7, count),)])),
        input_arrays=draw(st.sampled_from([(), (draw(arrays),)])), output_arrays=(),
    )  # fmt: skip


@st.composite
def functions(draw):
    n = draw(st.integers(0, 3))
    return FunctionProfile(
        name=draw(st.sampled_from("fg")), applys=tuple(draw(applys(k)) for k in range(n)),
        calls=draw(numbers), failed=draw(st.integers(0, 3)), call_ns=draw(numbers),
        fn_ns=draw(numbers),
        first_call_ns=draw(numbers), timing_ns=draw(numbers),
        detail=draw(st.sampled_from([(), (CallProfile(1, 5, (1,) * n),)])),
        compile=CompileProfile(
            total=draw(seconds), cached=draw(st.sampled_from([None, True, False]))
        ),
    )  # fmt: skip


profiles = st.builds(
    Profile, st.lists(functions(), max_size=3).map(tuple), st.sampled_from(["", "a", "b"]),
    st.sampled_from([{}, {"process": 1}, {"process": 2}]),
    st.sampled_from([{}, {"a.py:1": "x"}, {"a.py:1": "y", "a.py:2": "z"}]),
)  # fmt: skip


# --- merging --------------------------------------------------------------------------------------


@settings(deadline=None)
@given(profiles, profiles)
def test_the_order_makes_no_difference(a, b):
    assert merge([a, b]) == merge([b, a])


@settings(deadline=None)
@given(profiles, profiles, profiles)
def test_nor_in_how_many_steps(a, b, c):
    assert merge([merge([a, b]), c]) == merge([a, merge([b, c])]) == merge([a, b, c])


@settings(deadline=None)
@given(profiles, profiles)
def test_nothing_is_lost(a, b):
    both = merge([a, b])
    assert both.local_ns == a.local_ns + b.local_ns
    for figure in ("calls", "failed", "call_ns", "fn_ns"):
        assert sum(getattr(f, figure) for f in both.functions) == sum(
            getattr(f, figure) for p in (a, b) for f in p.functions
        )
    assert sum(x.count for x in both.applys) == sum(x.count for p in (a, b) for x in p.applys)


def test_the_same_function_twice_is_one():
    x = T.dvector("x")

    def recorded(calls):
        f = function([x], T.exp(x), name="f", profile=True)
        for _ in range(calls):
            f(np.ones(3))
        return f.profile.profile()

    both = merge([recorded(2), recorded(3)])
    (f,) = both.functions
    (apply,) = f.applys
    assert (f.calls, apply.count, sum(n for _, n in apply.histogram)) == (5, 5, 5)
    assert len(both.environment["merged"]) == 2
    assert f.first_calls == 2 and {1, 2} <= {c.number for c in f.detail}


def test_an_apply_that_never_ran_does_not_count_for_the_least():
    apply = ApplyProfile(
        0, "exp", "exp", "exp", "exp(x)", ("v",), ("v",), (-1,), (), True, "", 1, 5, 5, 5
    )
    never = replace(apply, count=0, total=0, least=0, most=0)
    function_of = FunctionProfile("f", (apply,), 1, 5, 5, 5, CompileProfile())
    idle = replace(function_of, applys=(never,))
    (merged,) = merge([Profile((function_of,)), Profile((idle,))]).applys
    assert (merged.least, merged.most, merged.count) == (5, 5, 1)


def test_nothing_merged():
    assert merge([]) == Profile()


# --- differences ----------------------------------------------------------------------------------

COMPARISONS = [compare.by_apply, compare.by_op, compare.by_class]


@pytest.mark.parametrize("way", COMPARISONS)
@settings(deadline=None)
@given(a=profiles)
def test_a_profile_does_not_differ_from_itself(way, a):
    for row in way(a, a):
        assert row.ns == 0 and not row.only


@pytest.mark.parametrize("way", COMPARISONS)
@settings(deadline=None)
@given(a=profiles, b=profiles)
def test_the_other_way_round_is_the_negative(way, a, b):
    there = {row.key: row.ns for row in way(a, b)}
    back = {row.key: row.ns for row in way(b, a)}
    assert there.keys() == back.keys()
    assert sorted((repr(r.key), r.ns) for r in way(a, b)) == sorted(
        (repr(r.key), -r.ns) for r in way(b, a)
    )


@pytest.mark.parametrize("way", COMPARISONS)
@settings(deadline=None)
@given(a=profiles, b=profiles)
def test_differences_add_up(way, a, b):
    assert sum(row.ns for row in way(a, b)) == a.local_ns - b.local_ns


# --- as a table -----------------------------------------------------------------------------------


def test_records():
    x = T.fmatrix("x")
    f = function([x], DiffOp()(T.exp(x + 1)), name="f", profile=True)
    f(np.ones((2, 3), "f"))
    first, last = tabular.records(f.profile.profile())
    assert list(first) == list(tabular.COLUMNS)
    assert (first["function"], first["position"], first["c"], first["calls"]) == ("f", 0, True, 1)
    assert first["line"].startswith(f"{__file__}:")
    assert (first["bytes_written"], last["bytes_read"]) == (24, 24)
    assert last["dtypes"] == "float32 float32" and last["shapes"] == "2x3 2x2"
    assert not last["c"] and last["why"]
    assert 0 < first["seconds_least"] <= first["seconds"]


def test_csv():
    x = T.dvector("x")
    f = function([x], T.exp(x), name='a "name", with a comma', profile=True)
    f(np.ones(3))
    file = io.StringIO()
    tabular.write_csv(f.profile.profile(), file)
    header, row = csv.reader(io.StringIO(file.getvalue()))
    assert header == list(tabular.COLUMNS) and row[0] == 'a "name", with a comma'
