"""The classic text: every line of it, with figures that are known."""
# ruff: noqa: E501  (the lines are as long as what is printed)

import textwrap

from opwise.profiling.profile import Profile
from opwise.profiling.reports import profilemode


def lines_of(text):
    return textwrap.dedent(text).strip("\n").replace("→", "\t").splitlines()


def up_to_legend(text):
    lines = text.splitlines()
    return lines[: lines.index("(*) Op is running a c implementation") + 1]


def sample(build):
    apply, function, _ = build
    return Profile(
        (
            function(
                apply("mul", 600_000_000, 0),
                apply("add{inplace}", 250_000_000, 1, c=False),
                apply("mul", 100_000_000, 2, c=False),
                apply("exp", 50_000_000, 3),
                name="train",
                calls=4,
            ),
            function(name="apply", calls=0),
        )
    )


def test_summary(build):
    assert up_to_legend(profilemode.summary(sample(build), 2, 1)) == ["", *lines_of("""
        ProfileMode.print_summary()
        ---------------------------

        local_time 1 (Time spent running thunks)
        Apply-wise summary: <fraction of local_time spent at this position> (<Apply position>, <Apply Op name>)
        →0.600→0→mul
        →0.250→1→add{inplace}
           ... (remaining 2 Apply instances account for 0.15 of the runtime)
        Op-wise summary: <fraction of local_time spent on this kind of Op> <Op name>
        →0.700→  mul
           ... (remaining 2 Ops account for 0.30 of the runtime)
        Type-Op-wise summary: <fraction of local_time spent on this type of Op> <Op type name>
        →0.700→  <class 'ops.mul'>
           ... (remaining 2 Op types account for 0.30 of the runtime)
        (*) Op is running a c implementation
    """)]  # fmt: skip


def test_summary_begins_with_a_blank_line_and_ends_with_a_newline(build):
    text = profilemode.summary(sample(build), 15, 20)
    assert text.startswith(
        "\nProfileMode.print_summary()\n---------------------------\n\nlocal_time "
    )
    assert text.endswith("\n")


def test_star_stands_where_all_applys_of_an_op_run_in_c(build):
    text = profilemode.summary(sample(build), 15, 20)
    assert "\t0.050\t* exp\n" in text
    assert "\t0.700\t  mul\n" in text


def test_ties_are_sorted_by_position_then_text_downwards(build):
    apply, function, _ = build
    profile = Profile((function(apply("b", 5, 0), apply("a", 5, 1), apply("c", 5, 1)),))
    rows = [row for row in profilemode.summary(profile, 3, 3).splitlines() if row.startswith("\t")]
    assert [row.split("\t")[2:] for row in rows[:3]] == [["1", "c"], ["1", "a"], ["0", "b"]]
    assert [row.split("\t")[2] for row in rows[3:6]] == ["* c", "* b", "* a"]


def test_nothing_recorded_prints_empty_sections():
    text = profilemode.summary(Profile(), 15, 20)
    assert "local_time 0 (Time spent running thunks)" in text
    assert text.count("remaining 0") == 3


def test_functions_follow_the_legend(build):
    text = profilemode.summary(sample(build), 15, 20)
    after = text.split("(*) Op is running a c implementation\n")[1]
    assert "train" in after
    assert "apply NOT CALLED" in after
    assert "Time of 4 calls: <seconds> <share> <microseconds a call>" in after


def test_local_time_has_twelve_digits(build):
    apply, function, _ = build
    profile = Profile((function(apply("mul", 74_919_701)),))
    assert "local_time 0.074919701 (" in profilemode.summary(profile, 1, 1)


def test_difference(build):
    apply, function, _ = build
    mine = Profile((function(apply("mul", 3000, 0, keys=["a"]), apply("exp", 1000, 1, c=False)),))
    theirs = Profile((function(apply("mul", 1000, 5, keys=["a"], c=False)),))
    assert profilemode.difference(mine, theirs, 15, 20).splitlines() == ["", *lines_of("""
        ProfileMode.print_diff_summary()
        --------------------------------

        local_time 3e-06 (Time spent running thunks: self 4e-06 - other 1e-06)
        Apply-wise difference: <self - other, seconds> <self> <other> <other / self> (<Apply position>, <Apply Op name>)
        →+2.000e-06→3.000e-06→1.000e-06→   0.333x→*  0→mul
        →+1.000e-06→1.000e-06→0.000e+00→        -→   1→exp  (only in self)
           ... (remaining 0 Apply instances account for a difference of 0.000e+00s)
        Op-wise difference: <self - other, seconds> <self> <other> <other / self> <Op name>
        →+2.000e-06→3.000e-06→1.000e-06→   0.333x→*  mul
        →+1.000e-06→1.000e-06→0.000e+00→        -→   exp  (only in self)
           ... (remaining 0 Ops account for a difference of 0.000e+00s)
        Type-Op-wise difference: <self - other, seconds> <self> <other> <other / self> <Op type name>
        →+2.000e-06→3.000e-06→1.000e-06→   0.333x→*  <class 'ops.mul'>
        →+1.000e-06→1.000e-06→0.000e+00→        -→   <class 'ops.exp'>  (only in self)
           ... (remaining 0 Op types account for a difference of 0.000e+00s)
        (*) Op is running a c implementation (first: self, second: other)
    """)]  # fmt: skip


def test_difference_says_what_its_remaining_rows_sum_to(build):
    apply, function, _ = build
    mine = Profile((function(apply("mul", 3000, 0), apply("exp", 1000, 1)),))
    text = profilemode.difference(mine, Profile(), 1, 1)
    assert "(remaining 1 Apply instances account for a difference of 1.000e-06s)" in text
    assert text.count("(only in self)") == 3
