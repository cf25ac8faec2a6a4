"""Sums over a profile."""

from dataclasses import replace

import pytest

from opwise.profiling import aggregate
from opwise.profiling.profile import OriginProfile, Profile


def profile(build):
    apply, function, _ = build
    return Profile(
        (
            function(
                apply("mul", 10, 0, count=2, lines=[("a.py", 1), ("a.py", 2), ("a.py", 1)]),
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


def test_by_line_divides_an_apply_among_what_it_computes(build):
    found = rows(aggregate.by_line(profile(build)))
    assert found["a.py:1"] == (pytest.approx(10 * 2 / 3 + 1), 3, 2, True)
    assert found["a.py:2"] == (pytest.approx(10 / 3), 2, 1, True)
    assert found["(unknown line)"][0] == 12
    assert sum(ns for ns, *_ in found.values()) == pytest.approx(profile(build).local_ns)


def test_a_gradient_counts_for_the_line_it_is_the_gradient_of(build):
    apply, function, _ = build
    origins = (
        OriginProfile("k", "exp", "a.py", 9, "layer/grad", ("a.py", 1)),
        OriginProfile("l", "exp", "a.py", 1, "layer"),
    )
    one = Profile((function(replace(apply("mul", 10), origins=origins)),))
    (row,) = aggregate.by_line(one)
    assert (row.label, row.ns, row.gradient, row.applys) == ("a.py:1", 10, 5, 1)
    assert {r.label: (r.ns, r.gradient) for r in aggregate.by_scope(one)} == {
        "layer/grad": (5, 5), "layer": (5, 0)
    }  # fmt: skip


def test_the_time_of_a_product_counts_for_it_alone(build):
    """What scales and adds beside a product costs next to nothing."""
    apply, function, _ = build
    origins = (
        OriginProfile("k", "Elemwise{mul,no_inplace}", "a.py", 9),
        OriginProfile("l", "dot", "a.py", 1),
        OriginProfile("m", "Elemwise{sub,no_inplace}", "a.py", 9),
    )
    gemm = apply("Gemm", 12, op_class="<class 'opwise.tensor.blas.Gemm'>")
    loop = apply("Composite", 12, 1)
    unrecorded = Profile(
        (function(replace(gemm, origins=origins), replace(loop, origins=origins)),)
    )
    for profile_ in (unrecorded, with_kinds(unrecorded)):
        rows = aggregate.by_line(profile_)
        assert {r.label: r.ns for r in rows} == {"a.py:1": 12 + 4, "a.py:9": 8}


def with_kinds(profile_):
    """Return a profile with kinds as the recorder stores them, and names that say nothing."""
    (f,) = profile_.functions
    applys = tuple(
        replace(
            a,
            op="f",
            op_class="f",
            kind="product" if a.is_product else "",
            origins=tuple(
                replace(o, op="f", kind="product" if o.is_product else "") for o in a.origins
            ),
        )
        for a in f.applys
    )
    return Profile((replace(f, applys=applys),))


def test_a_scope_within_products_of_others_has_a_row(build):
    apply, function, _ = build
    origins = (
        OriginProfile("k", "dot", scope="output/grad", kind="product"),
        OriginProfile("l", "sub", scope="updates", kind=""),
    )
    gemm = replace(apply("Gemm", 12), origins=origins, kind="product")
    rows = aggregate.by_scope(Profile((function(gemm),)))
    assert {r.label: (r.ns, r.applys) for r in rows} == {"output/grad": (12, 1), "updates": (0, 1)}
    assert [r.label for r in aggregate.by_line(Profile((function(gemm),)))] == ["(unknown line)"]


def test_a_fused_apply_is_split_by_the_cost_of_each_operation(build):
    apply, function, _ = build
    origins = (
        OriginProfile("k", "tanh", "a.py", 1, cost=1.8),
        OriginProfile("l", "add", "a.py", 2, cost=0.2),
        OriginProfile("m", "InplaceDimShuffle{x,0}", "a.py", 3, cost=0.0),
    )
    loop = Profile((function(replace(apply("Composite", 100), origins=origins)),))
    assert {r.label: pytest.approx(r.ns) for r in aggregate.by_line(loop)} == {
        "a.py:1": 90, "a.py:2": 10, "a.py:3": 0,
    }  # fmt: skip
    views = Profile((function(replace(apply("Composite", 100), origins=origins[2:] * 2)),))
    assert [r.ns for r in aggregate.by_line(views)] == [100]


def test_by_scope_of_what_is_in_none(build):
    (row,) = aggregate.by_scope(profile(build))
    assert (row.label, row.ns) == ("(no scope)", pytest.approx(23))
