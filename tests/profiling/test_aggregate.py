"""Sums over a profile."""

from opwise.profiling import aggregate
from opwise.profiling.profile import Profile


def profile(build):
    apply, function, _ = build
    return Profile(
        (
            function(
                apply("mul", 10, 0, count=2, lines=[("a.py", 1), ("a.py", 2)]),
                apply("add", 5, 1, c=False),
                apply("mul", 1, 2, lines=[("a.py", 1)]),
            ),
            function(apply("mul", 4, 0, c=False), apply("sub{0}", 3, 1), name="g"),
        )
    )


def rows(found):
    return {row.label: (row.ns, row.calls, row.applys, row.c) for row in found}


def test_by_apply_merges_equal_ops_at_one_position(build):
    found = {(r.position, r.label): r.ns for r in aggregate.by_apply(profile(build))}
    assert found == {(0, "mul"): 14, (1, "add"): 5, (2, "mul"): 1, (1, "sub{0}"): 3}


def test_by_op_is_c_only_where_all_applys_are(build):
    assert rows(aggregate.by_op(profile(build))) == {
        "mul": (15, 4, 3, False),
        "add": (5, 1, 1, False),
        "sub{0}": (3, 1, 1, True),
    }


def test_by_class(build):
    assert rows(aggregate.by_class(profile(build)))["<class 'ops.sub'>"] == (3, 1, 1, True)


def test_by_line_counts_an_apply_once(build):
    found = rows(aggregate.by_line(profile(build)))
    assert found["a.py:1"][0] == 11
    assert found["(unknown line)"][0] == 12
    assert sum(ns for ns, *_ in found.values()) == profile(build).local_ns
