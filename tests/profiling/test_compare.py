"""Differences: Applys are matched by what they compute."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling import compare
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


def test_equal_applys_are_matched_from_the_last(build):
    apply, function, _ = build
    mine = Profile((function(apply("alloc", 10, 0, keys=["a"]), apply("gemv", 20, 1, keys=["a"])),))
    theirs = Profile((function(apply("dot", 1, 0, keys=["a"])),))
    rows = compare.by_apply(mine, theirs)
    assert [(r.label, r.ns, r.only) for r in rows] == [
        ("alloc", 10, "self"),
        ("gemv | dot", 19, ""),
    ]


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


def test_what_only_one_optimizer_leaves_is_in_one_side_only():
    mine = trained(opwise.ProfileMode("py", "fast_run")).profile()
    theirs = trained(opwise.ProfileMode("py", None)).profile()
    rows = compare.by_apply(mine, theirs)
    assert {r.only for r in rows} == {"", "self", "other"}
    assert sum(r.ns for r in rows) == mine.local_ns - theirs.local_ns
    dot = [r for r in rows if r.mine and "Gemv" in r.mine.label and r.theirs]
    assert dot and dot[0].theirs.label == "dot"


def test_a_profile_that_was_stored_matches_one_that_was_not():
    mine = trained(opwise.ProfileMode("py")).profile()
    theirs = Profile.from_json(trained(opwise.ProfileMode("c|py")).profile().to_json())
    assert not [r.label for r in compare.by_apply(mine, theirs) if r.only]
