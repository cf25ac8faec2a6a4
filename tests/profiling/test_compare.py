"""Differences: Applys are matched by what they compute."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling import compare
from opwise.profiling.html import page
from opwise.profiling.merge import merge
from opwise.profiling.profile import Profile


def test_matches_by_the_users_applys_not_by_op_or_position(build):
    apply, function, _ = build
    mine = Profile((function(apply("Composite", 10, 3, keys=["a", "b"]), apply("x", 1, 0)),))
    theirs = Profile((function(apply("Gpu", 4, 0, keys=["a", "b"]), apply("y", 2, 1)),))
    found = {row.label: (row.ns, row.only) for row in compare.by_apply(mine, theirs)}
    assert found == {
        "Composite | Gpu": (6, ""),
        "x": (1, "self"),
        "y": (-2, "other"),
    }


def profiles_of(build, mine, theirs):
    """Two Profiles of one function each; an Apply is (Op, nanoseconds, keys)."""
    apply, function, _ = build
    return [
        Profile(
            (function(*(apply(op, ns, k, keys=keys) for k, (op, ns, keys) in enumerate(side))),)
        )
        for side in (mine, theirs)
    ]


def rows_of(mine, theirs):
    return [(r.label, r.ns, r.relation or r.only) for r in compare.by_apply(mine, theirs)]


def test_equal_applys_are_matched_from_the_last(build):
    mine, theirs = profiles_of(
        build, [("b", 1, "k"), ("c", 2, "k")], [("d", 10, "k"), ("e", 20, "k")]
    )
    assert rows_of(mine, theirs) == [("b | d", -9, ""), ("c | e", -18, "")]


def test_several_that_are_one_elsewhere_are_one_row(build):
    mine, theirs = profiles_of(
        build,
        [("alloc", 10, "a"), ("gemv", 20, "a"), ("exp", 5, "b"), ("mul", 7, "c"), ("add", 1, "d")],
        [("dot", 1, "a"), ("Composite", 4, "bc"), ("add", 2, "d")],
    )
    assert rows_of(mine, theirs) == [
        ("alloc + gemv | dot", 29, "fused"),
        ("exp + mul | Composite", 8, "fused"),
        ("add", -1, ""),
    ]
    assert rows_of(theirs, mine) == [
        ("dot | alloc + gemv", -29, "split"),
        ("Composite | exp + mul", -8, "split"),
        ("add", 1, ""),
    ]
    fused = compare.by_apply(mine, theirs)[1]
    assert fused.ratio == pytest.approx(4 / 12) and fused.position == -1


def test_applys_that_are_cut_otherwise_are_regrouped(build):
    mine, theirs = profiles_of(
        build, [("x", 1, "abc"), ("y", 2, "d")], [("z", 4, "abd"), ("w", 8, "c")]
    )
    assert rows_of(mine, theirs) == [("x + y | z + w", -9, "regrouped")]


def test_an_apply_goes_to_the_one_that_shares_most(build):
    mine, theirs = profiles_of(
        build, [("x", 1, "abc")], [("y", 2, "a"), ("z", 4, "bc"), ("w", 8, "d")]
    )
    assert rows_of(mine, theirs) == [("x | y + z", -5, "split"), ("w", -8, "other")]


def test_what_was_changed_is_matched_by_its_line(build):
    """The keys of everything behind a change are others; lines that moved are the same lines."""
    apply, function, _ = build
    before = Profile(
        (function(apply("exp", 10, 0, keys="a", lines=[("m/net.py", 3)]),
                  apply("dot", 20, 1, keys="b", lines=[("m/net.py", 4)])),),
        sources={"m/net.py:3": "y = exp(x)", "m/net.py:4": "z = dot(y, w)"},
    )  # fmt: skip
    after = Profile(
        (function(apply("exp", 11, 0, keys="c", lines=[("n/net.py", 5)]),
                  apply("dot", 22, 1, keys="d", lines=[("n/net.py", 7)]),
                  apply("dot", 33, 2, keys="e", lines=[("n/net.py", 8)])),),
        sources={"n/net.py:5": "y = exp(2 * x)", "n/net.py:7": "z = dot(y, w)",
                 "n/net.py:8": "q = dot(z, w)"},
    )  # fmt: skip
    assert sorted(rows_of(before, after)) == [
        ("dot", -33, "other"), ("dot", -2, "similar"), ("exp", -11, "other"), ("exp", 10, "self")
    ]  # fmt: skip


@pytest.mark.parametrize("after_has_before, relation", [(False, "similar"), (True, "other")])
def test_two_programs_in_two_files(build, after_has_before, relation):
    """The files that were run count as one, unless one program has lines of both."""
    apply, function, _ = build

    def side(script, key, *more):
        lines = [(f"m/{script}", 4)]
        return Profile(
            (function(apply("dot", 20, 0, keys=key, lines=lines), *more),),
            environment={"program": f"m/{script} --fast"},
            sources={f"m/{script}:4": "z = dot(y, w)"},
        )

    more = [apply("exp", 10, 1, keys="x", lines=[("m/old.py", 9)])] if after_has_before else []
    before, after = side("old.py", "a"), side("new.py", "b", *more)
    rows = [r for r in compare.by_apply(before, after) if r.theirs and r.label == "dot"]
    assert [r.relation or r.only for r in rows] == [relation]
    lines = [r.only for r in compare.by_line(before, after) if "new.py:4" in r.label]
    assert lines == ["" if relation == "similar" else "other"]
    merged = [merge([before]), merge([after])]
    assert next(r.relation for r in compare.by_apply(*merged) if r.label == "dot") == (
        relation if relation == "similar" else ""
    )


def test_lines_are_matched_by_their_text_and_order(build):
    apply, function, _ = build
    sides = [
        Profile(
            (
                function(
                    apply("exp", ns, lines=[("a.py", n)]), apply("exp", ns, lines=[("a.py", n + 1)])
                ),
            ),
            sources={f"a.py:{n}": "y = exp(y)", f"a.py:{n + 1}": "y = exp(y)"},
        )
        for n, ns in ((3, 10), (7, 4))
    ]
    assert [(r.label, r.ns) for r in compare.by_line(*sides)] == [
        ("a.py:3 | a.py:7", 6), ("a.py:4 | a.py:8", 6)
    ]  # fmt: skip


def test_functions_are_paired_before_their_applys(build):
    """A function more, which shares an expression, changes nothing in the rows of the others."""
    apply, function, _ = build
    train = function(apply("dot", 10, 0, keys="a"), apply("exp", 5, 1, keys="b"), name="x.py:7")
    more = function(apply("dot", 7, 0, keys="a"), apply("mean", 3, 1, keys="c"), name="x.py:9")
    moved = replace(train, name="x.py:8")
    for before, after in (([train], [moved, more]), ([train], [more, moved])):
        rows = rows_of(Profile(tuple(before)), Profile(tuple(after)))
        assert sorted(rows) == [
            ("dot", -7, "other"), ("dot", 0, ""), ("exp", 0, ""), ("mean", -3, "other")
        ]  # fmt: skip
    both = Profile((train, more))
    assert not any(ns for _, ns, _ in rows_of(both, Profile((more, train))))


def test_equal_names_are_paired_by_what_they_compute(build):
    apply, function, _ = build
    one, two = function(apply("dot", 10, keys="a")), function(apply("exp", 5, keys="b"))
    assert compare.paired((one, two), (two, one)) == {0: 1, 1: 0}


def test_of_equals_those_of_one_op_belong_together(build):
    """What computes parts of a shape has equal origins; a loop takes most of it in."""
    mine, theirs = profiles_of(
        build,
        [("Shape_i", 1, "s"), ("lt", 2, "s"), ("Switch", 4, "s"), ("mul", 8, "m")],
        [("Shape_i", 1, "s"), ("Composite", 9, "sm")],
    )
    assert rows_of(mine, theirs) == [
        ("Shape_i", 0, ""), ("lt + Switch + mul | Composite", 5, "fused")
    ]  # fmt: skip


def test_programs_that_share_nothing_do_not_match(build):
    mine, theirs = profiles_of(build, [("x", 1, "a")], [("x", 2, "b")])
    assert rows_of(mine, theirs) == [("x", 1, "self"), ("x", -2, "other")]


def test_differences_of_groups_add_up(build):
    apply, function, _ = build
    mine = Profile((function(apply("mul", 10), apply("mul", 5, 1), apply("add", 1, 2)),))
    theirs = Profile((function(apply("mul", 3), apply("sub", 8, 1)),))
    for group in (compare.by_op, compare.by_class):
        rows = group(mine, theirs)
        assert sum(r.ns for r in rows) == mine.local_ns - theirs.local_ns
        assert {r.label: r.ns for r in rows}[rows[0].label] == 12


def trained(mode, n=3):
    """A training step under a mode, called ``n`` times."""
    x, y = T.dmatrix("x"), T.dvector("y")
    w = opwise.shared(np.zeros(4), name="w")
    cost = T.sqr(T.nnet.sigmoid(T.dot(x, w)) - y).sum()
    step = opwise.function([x, y], cost, updates=[(w, w - 0.1 * T.grad(cost, w))], mode=mode)
    for _ in range(n):
        step(np.ones((5, 4)), np.ones(5))
    return mode


@pytest.mark.parametrize("linkers", [("py", "c|py"), ("c|py", "vm"), ("py", "py")])
def test_two_compilations_of_one_program_match_apply_by_apply(linkers):
    mine, theirs = (trained(opwise.ProfileMode(linker)).profile() for linker in linkers)
    rows = compare.by_apply(mine, theirs)
    assert len(rows) == len(mine.applys) == len(theirs.applys)
    assert not [r.label for r in rows if r.only]
    assert sum(r.ns for r in rows) == mine.local_ns - theirs.local_ns


def test_what_an_optimizer_fuses_is_matched_with_what_it_was():
    mine = trained(opwise.ProfileMode("py", "fast_run")).profile()
    theirs = trained(opwise.ProfileMode("py", None)).profile()
    rows = compare.by_apply(mine, theirs)
    assert sum(r.ns for r in rows) == mine.local_ns - theirs.local_ns
    assert sum(len(side) for r in rows for side in r.parts) == len(mine.applys + theirs.applys)
    relations = {r.relation or r.only for r in rows}
    assert "split" in relations and "self" not in relations
    (dot,) = [r for r in rows if r.mine and r.mine.label.startswith("CGemv")]
    assert "dot" in [a.op for a in dot.parts[1]]
    (sigmoid,) = [r for r in rows if r.mine and "scalar_sigmoid" in r.mine.label]
    assert "sigmoid" in [a.op for a in sigmoid.parts[1]]


def test_a_profile_that_was_stored_matches_one_that_was_not():
    mine = trained(opwise.ProfileMode("py")).profile()
    theirs = Profile.from_json(trained(opwise.ProfileMode("c|py")).profile().to_json())
    assert not [r.label for r in compare.by_apply(mine, theirs) if r.only]


# --- many functions -------------------------------------------------------------------------------


def calls_made(work):
    """Return how many functions Python calls in some work: what grows as its time does."""
    count = 0

    def see(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("kind", ["copies", "names of their own", "one key in common"])
def test_many_functions_are_compared_in_linear_time(build, tmp_path, kind):
    apply, function, Profile = build

    def many(n):
        made = []
        for k in range(n):
            keys = {"copies": "a", "names of their own": f"a{k}"}.get(kind, "a")
            others = f"b{k}" if kind == "one key in common" else "b"
            name = f"f{k}" if kind == "names of their own" else "f"
            made.append(function(apply("exp", 100 + k, 0, keys=[keys]),
                                 apply("dot", 200, 1, keys=[others]), name=name))  # fmt: skip
        return Profile(tuple(made))

    def work(n):
        one, two = many(n), many(n)
        return calls_made(lambda: page.write_difference([one], [two], tmp_path / "p.html"))

    work(10)  # what is imported and cached at first
    small, large = work(60), work(240)
    assert large < 5 * small
    rows = compare.by_apply(many(60), many(60))
    assert sum(bool(r.mine and r.theirs) for r in rows) == 120


def test_copies_are_paired_in_their_order(build):
    apply, function, _ = build
    mine, theirs = (
        [function(apply("exp", 10, 0, keys=["a"]), name="f") for _ in range(n)] for n in (3, 5)
    )
    assert compare.paired(mine, theirs) == {0: 0, 1: 1, 2: 2}
    assert compare.paired(theirs, mine) == {0: 0, 1: 1, 2: 2}


def test_more_functions_of_a_name_than_are_looked_at_are_all_paired(build):
    apply, function, _ = build
    mine = [function(apply("exp", 10, 0, keys=[f"m{k}"]), name="f") for k in range(100)]
    theirs = [function(apply("exp", 10, 0, keys=[f"t{k}"]), name="f") for k in range(100)]
    pairs = compare.paired(mine, theirs)
    assert len(pairs) == len(set(pairs.values())) == 100
