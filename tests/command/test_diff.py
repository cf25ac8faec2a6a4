"""The subcommands that compare: what they print, when they fail, and what they refuse."""

import json
import subprocess
from dataclasses import replace

import pytest

from opwise.profiling.histogram import bucket
from opwise.profiling.profile import ArrayProfile, Profile

A = ("exp", 6_000_000, 1, ("a",))
B = ("dot", 4_000_000, 1, ("b",))
SLOW = ("exp{inplace}", 9_000_000, 1, ("a",))


def test_diff(call, profile):
    one, two = profile("1.json", A, B), profile("2.json", SLOW)
    lines = call("diff", one, two).output.splitlines()
    assert " ".join(lines[0].split()) == "before s after s difference s ratio verdict matched Apply"
    assert lines[1].split()[:4] == ["0.010000", "0.009000", "-0.001000", "0.900"]
    assert lines[1].split()[4:] == ["unknown", "all", "Applys"]
    assert lines[2].split() == ["0.004000", "-0.004000", "only", "before", "dot"]
    assert lines[3].split() == ["0.006000", "0.009000", "+0.003000", "1.500", "unknown", "exp", "|",
                                "exp{inplace}"]  # fmt: skip
    assert lines[-1].startswith("One run each: the spread between processes is unknown, so times ")
    assert not [line for line in lines if line.endswith(" ")]


def test_rows_that_are_not_shown_are_summed(call, profile):
    one, two = profile("1.json", A, B), profile("2.json", SLOW)
    rows = call("diff", "-n", 1, one, two).output.splitlines()
    # in the columns, and the unit, of the rows above
    assert rows[3].split() == ["0.006000", "0.009000", "+0.003000", "1", "more", "row"]


@pytest.mark.parametrize(("by", "labels"), [("op", {"exp", "dot"}), ("class", {"'ops.exp'"})])
def test_by_op_and_class(call, profile, by, labels):
    one = profile("1.json", A, B)
    shown = call("diff", "--by", by, one, one).output
    assert all(label in shown for label in labels) and by in shown.splitlines()[0].lower()


@pytest.fixture
def runs_of(profile, tmp_path):
    """Save a folder of six runs of Applys that take a little longer each time; return its path."""

    def saved(name, *applys):
        (tmp_path / name).mkdir()
        for k in range(6):
            varied = [(op, round(ns * (1 + k / 1000)), n, keys) for op, ns, n, keys in applys]
            profile(f"{name}/{k}.json", *varied)
        return tmp_path / name

    return saved


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--fail-above", 1.4], 1),
        (["--fail-above", "applys=1.4"], 1),
        (["--fail-above", 1.6], 0),
        (["--fail-above", 1.4, "--floor", 0.002], 1),
        (["--fail-above", 1.4, "--floor", 0.004], 0),
        ([], 0),
    ],
)
def test_the_exit_code_for_a_slower_apply(call, runs_of, arguments, code):
    one, two = runs_of("1", A, B), runs_of("2", SLOW, B)
    result = call("diff", *arguments, one, two)
    assert result.exit_code == code
    said = "1.50 times as long as before: exp | exp{inplace} (function f)"
    assert (said in result.output) == bool(code)


@pytest.mark.parametrize("by", ["apply", "op", "class", "line", "shapes"])
def test_what_fails_is_named_by_function_and_line(call, build, tmp_path, monkeypatch, by):
    monkeypatch.chdir(tmp_path)
    apply, function, _ = build
    line = (str(tmp_path / "model.py"), 12)
    for name, ns in (("1", 100_000), ("2", 300_000)):
        (tmp_path / name).mkdir()
        for k in range(6):
            slow = apply("exp", ns + k, 0, keys=["a"], lines=[line])
            other = apply("dot", 900_000 + k, 1, keys=["b"])
            Profile((function(slow, other, name="train"),
                     function(apply("tanh", 50, 0, keys=["c"]), name="predict"))).save(
                         f"{name}/{k}.json")  # fmt: skip
    result = call("diff", "--by", by, "--fail-above", 2, "1", "2")
    assert result.exit_code == 1
    (said,) = [one for one in result.output.splitlines() if one.startswith("3.00 times as long")]
    assert "function train" in said and "line model.py:12" in said and "predict" not in said


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_forms_for_programs(call, runs_of, form):
    one, two = runs_of("1", A, B), runs_of("2", SLOW, B)
    result = call("diff", "--form", form, "--fail-above", 1.4, one, two)
    assert result.exit_code == 1
    if form == "json":
        data = json.loads(result.stdout)
        assert (data["format"], data["version"], data["failed"]) == ("opwise difference", 1, True)
        assert [row["label"] for row in data["rows"] if row["failed"]] == ["exp | exp{inplace}"]
        costs = {row["name"]: row["verdict"] for row in data["costs"]}
        assert costs["compile"] == "noise" and costs["operations"] == "same"
        assert data["not_judged"] == []
    else:
        assert "**Failed**: 1 row took more than 1.4 times" in result.stdout
        assert "<summary>Cost of a run</summary>" in result.stdout
    assert "1.50 times as long as before" in result.stderr


# --- what is known of single runs -----------------------------------------------------------------


def test_times_of_single_runs_do_not_fail(call, profile):
    """Two runs of one program may differ by much, and nobody knows by how much."""
    one, two = profile("1.json", A, B), profile("2.json", SLOW, B)
    result = call("diff", "--fail-above", 1.1, one, two)
    assert result.exit_code == 0
    assert "not judged: 2 rows took more than 1.1 times as long, but one run each: the spread " in (
        result.stderr
    )
    data = json.loads(call("diff", "--form", "json", "--fail-above", 1.1, one, two).stdout)
    assert not data["failed"] and len(data["not_judged"]) == 1
    assert {row["verdict"] for row in data["rows"]} == {"", "noise"}
    told = call("diff", "--form", "markdown", "--fail-above", 1.1, one, two).stdout
    assert "- not judged: 2 rows took more than 1.1 times" in told


def test_what_is_exact_fails_single_runs(call, build, tmp_path, monkeypatch):
    """More runs in a call, larger results, more operations: known whatever the clock says."""
    monkeypatch.chdir(tmp_path)
    apply, function, _ = build

    def array(n):
        return ArrayProfile("float64", (n,), (8,), 8 * n)

    def saved(name, size=10, runs=4, flops=100, c=True):
        exp = replace(apply("exp", 1000, 0, keys=["a"], count=runs), flops=flops,
                      output_arrays=(array(size),), shares=("c",))  # fmt: skip
        dot = apply("dot", 1000, 1, c=c, keys=["b"], count=4)
        Profile((function(exp, dot, calls=4),)).save(name)

    saved("1.json")
    gate = ["diff", "--fail-above", 1.1, "1.json", "2.json"]
    for changed, said in (
        ({}, ""),
        ({"size": 20}, "2.00 times as much as before: result float64[10] -> float64[20]: exp"),
        ({"runs": 12}, "3.00 times as much as before: runs 4 -> 12: exp (function f)"),
        ({"flops": 150}, "1.50 times as much as before: operations a run 100 -> 150: exp"),
        ({"size": 5, "runs": 4, "flops": 100}, ""),
        ({"c": False}, ""),
    ):
        saved("2.json", **changed)
        result = call(*gate)
        assert (result.exit_code, said in result.stderr) == (int(bool(said)), True), changed
    assert "dot: runs in C -> Python" in result.stdout.splitlines()


def test_calls_that_vary_in_one_run_explain_a_small_difference(call, build, tmp_path):
    apply, function, _ = build
    spread = tuple((bucket(ns), 5) for ns in (500, 1000, 2000))

    def saved(name, total):
        varied = replace(apply("exp", total, 0, keys=["a"], count=15), histogram=spread)
        path = tmp_path / name
        Profile((function(varied, calls=15),)).save(path)
        return path

    one = saved("1.json", 18_000)
    for total, verdict in ((18_500, "noise"), (60_000, "unknown")):
        lines = call("diff", one, saved("2.json", total)).stdout.splitlines()
        (exp,) = [line.split() for line in lines if line.endswith(" exp")]
        assert exp[4] == verdict


# --- costs of whole runs --------------------------------------------------------------------------


@pytest.fixture
def whole(build, tmp_path):
    """Save runs with such costs in a folder, and return its path."""
    apply, function, _ = build

    def saved(name, n=7, compiling=0.3, peak=1000, seconds=2.0, **about):
        (tmp_path / name).mkdir()
        for k in range(n):
            f = function(replace(apply("exp", 1000 + k, 0, keys=["a"]), flops=100))
            f = replace(f, compile=replace(f.compile, total=compiling + k / 1000))
            known = {"seconds_of_process": seconds + k / 100, "seconds_importing": 1 + k / 100,
                     "bytes_peak_memory": peak + k, **about}  # fmt: skip
            Profile((f,), environment=known).save(tmp_path / name / f"{k}.json")
        return tmp_path / name

    return saved


@pytest.mark.parametrize(
    ("limits", "code", "said"),
    [
        ("1.1", 0, ""),
        ("compile=1.5", 1, " times as long as before: compiling functions (compile)"),
        ("1.1,compile=1.5", 1, "compiling functions"),
        ("compile=2.5", 0, ""),
        ("memory=1.2", 1, "1.50 times as much as before: peak memory of the process (memory)"),
        ("command=1.2,import=1.2,overhead=1.2", 0, ""),
        ("arrays=1.1", 3, "arrays is not judged: the profiles before and after do not hold it"),
    ],
)
def test_costs_of_whole_runs_have_limits(call, whole, limits, code, said):
    before, after = whole("before"), whole("after", compiling=0.6, peak=1500)
    result = call("diff", "--fail-above", limits, before, after)
    assert result.exit_code == code and said in result.stderr
    rows = {line.split()[-1]: line for line in result.stdout.splitlines() if line}
    assert " noise " in rows["command"]
    assert " slower " in rows["functions"] and " more " in rows["process"]


def test_a_cost_that_few_runs_cannot_tell_from_noise_is_undecided(call, whole):
    few = whole("before", n=3), whole("after", n=3, compiling=0.6)
    result = call("diff", "--fail-above", "compile=1.5", *few)
    assert result.exit_code == 3 and "compile is not judged: it takes at least 5" in result.stderr
    assert call("diff", "--fail-above", "memory=1.2", *few).exit_code == 0
    assert call("diff", "--fail-above", "operations=1.2", *few).exit_code == 0


def test_what_was_zero_before_has_no_ratio(call, build, tmp_path):
    apply, function, _ = build
    for name, flops in (("none.json", 0), ("some.json", 100)):
        made = replace(apply("exp", 1000, 0, keys=["a"]), flops=flops)
        Profile((function(made),)).save(tmp_path / name)
    none, some = tmp_path / "none.json", tmp_path / "some.json"
    gate = ["diff", "--fail-above", "operations=1.2"]
    assert call(*gate, none, none).exit_code == 0 and call(*gate, some, none).exit_code == 0
    result = call(*gate, none, some)
    assert result.exit_code == 1
    assert "more, and not zero as before: floating-point operations (operations)" in result.stderr


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("speed=2", "no limit is named 'speed'; the names: applys, command, import, compile"),
        ("memory=much", "'much' is not a number"),
        ("1.1,applys=1.2", "applys has two limits"),
        ("memory=", "'' is not a number"),
    ],
)
def test_limits_that_are_not_valid(call, whole, limits, said):
    result = call("diff", "--fail-above", limits, whole("before"), whole("after"))
    assert result.exit_code == 2 and said in " ".join(result.output.split())


def test_a_difference_that_the_hardware_may_have_made_does_not_fail(call, whole):
    """Runs at different times: the control says how much slower the hardware was."""
    limits = ["diff", "--fail-above", "command=1.1"]
    before = whole("before", seconds_control_python=1.0, seconds_control_memory=1.0)
    after = {"seconds": 3.0, "seconds_control_memory": 1.0}
    loaded = whole("loaded", **after, seconds_control_python=1.6)
    assert call(*limits, before, loaded).exit_code == 0
    said = "the hardware took 1.000 to 1.600 times as long for the same work (control)"
    assert said in call(*limits, before, loaded).stdout
    assert call(*limits, before, whole("calm", **after, seconds_control_python=1.0)).exit_code == 1
    # 1.5 times as long, of which the hardware explains 1.2: 1.25 is left
    partly = whole("partly", **after, seconds_control_python=1.2)
    assert call(*limits, before, partly).exit_code == 1
    assert call("diff", "--fail-above", "command=1.3", before, partly).exit_code == 0


def test_more_calls_are_not_slower(call, profile):
    one = profile("1.json", A)
    two = profile("2.json", ("exp", 60_000_000, 10, ("a",)))
    result = call("diff", "--fail-above", 1.01, one, two)
    assert result.exit_code == 0 and "1.000" in result.output


def test_unrelated_programs(call, profile):
    one, two = profile("1.json", A), profile("2.json", B)
    assert "Nothing matches" in call("diff", one, two).output
    assert call("diff", "--fail-above", 2, one, two).exit_code == 1


def test_a_side_without_applys(call, profile, tmp_path):
    empty = tmp_path / "empty.json"
    Profile().save(empty)
    one = profile("a.json", ("exp", 100, 1, ("k",)))
    assert "Nothing matches: no Apply was recorded after." in call("diff", one, empty).output
    assert "Nothing matches: no Apply was recorded before." in call("diff", empty, one).output


def test_different_flags_are_reported(call, profile, tmp_path):
    one = profile("a.json", ("exp", 100, 1, ("k",)))
    assert "flags" not in call("diff", one, one).output
    other = tmp_path / "b.json"
    replace(Profile.load(one), environment={"flags": "floatX=float32"}).save(other)
    told = call("diff", one, other).output
    assert "flags before: none, after: floatX=float32\n" in told


@pytest.mark.parametrize("limit", ["0", "-1", "fast", "nan", "inf"])
def test_fail_above_and_floor_must_be_finite(call, profile, limit):
    one = profile("1.json", A)
    assert call("diff", "--fail-above", limit, one, one).exit_code == 2


def test_names_are_shown_as_they_are(call, profile):
    one = profile("1.json", ("Sum[red]{a}[/] \x1b[31m:smile:", 5, 1, ("a",)))
    assert r"Sum[red]{a}[/] \x1b[31m:smile:" in call("diff", one, one).output


def test_what_is_fused_is_one_row(call, profile, monkeypatch):
    one = profile("1.json", ("exp", 5, 1, ("a",)), ("mul", 7, 1, ("b",)))
    two = profile("2.json", ("Composite", 6, 1, ("a", "b")))
    shown = call("diff", one, two).output
    assert "0.500  unknown  fused    exp + mul | Composite" in shown
    assert "fused: several Applys before, one after" in shown
    monkeypatch.setenv("COLUMNS", "50")
    shown = call("diff", one, two).output
    assert "matched)" in shown and "fused: several" not in shown


def test_rows_that_would_show_zeros_alone_are_summed(call, profile):
    before = profile("a.json", ("exp", 40_000, 1, ("a",)), ("view", 400, 1, ("b",)))
    after = profile("b.json", ("exp", 90_000, 1, ("a",)), ("view", 90, 1, ("b",)))
    lines = call("diff", before, after).output.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["Applys", "exp", "row"]
    assert lines[3].split()[:2] == ["0.000000", "0.000000"]
    tiny = profile("c.json", ("view", 400, 1, ("b",))), profile("d.json", ("view", 90, 1, ("b",)))
    assert call("diff", *tiny).output.splitlines()[2].split()[-1] == "view"


# --- several runs ---------------------------------------------------------------------------------


@pytest.fixture
def folder(profile, tmp_path):
    """Save a folder of runs of one Apply with such nanoseconds, and return its path."""

    def saved(name, *runs):
        (tmp_path / name).mkdir()
        for k, ns in enumerate(runs):
            profile(f"{name}/{k}.json", ("exp", ns, 1, ("a",)), ("dot", 10_000, 1, ("b",)))
        return tmp_path / name

    return saved


def test_runs_tell_what_is_noise(call, folder):
    before = folder("before", 1000, 1010, 1020, 1030, 1040, 1050)
    after = folder("after", 2000, 2010, 2020, 2030, 2040, 2050)
    lines = call("diff", before, after).output.splitlines()
    (exp,) = [line.split() for line in lines if line.endswith("exp")]
    assert exp[:4] == ["1.025", "2.025", "+1.000", "1.976"] and exp[5] == "slower"
    (dot,) = [line.split() for line in lines if line.endswith("dot")]
    assert dot[5] == "noise"
    assert "6 runs before, 6 after; times are medians over the runs, per call." in lines
    assert lines[-2].startswith("p: the probability") and lines[-1].startswith(
        "verdict: noise if p >= "
    )


def test_rows_of_several_runs_that_are_not_shown_are_summed(call, folder):
    before = folder("before", 1000, 1010, 1020, 1030, 1040, 1050)
    after = folder("after", 2000, 2010, 2020, 2030, 2040, 2050)
    lines = call("diff", "-n", 1, before, after).output.splitlines()
    (rest,) = [line.split() for line in lines if line.endswith("more row")]
    assert rest[:3] == ["10.000", "10.000", "+0.000"]


def test_noise_does_not_fail(call, folder):
    before = folder("before", 1000, 2000, 3000, 4000, 5000, 6000)
    same = folder("same", 1100, 2200, 3300, 4400, 5500, 9000)
    slower = folder("slower", 8000, 8100, 8200, 8300, 8400, 8500)
    limit = ["diff", "--fail-above", 1.05]
    assert call(*limit, before, same).exit_code == 0
    assert call(*limit, before, slower).exit_code == 1


def test_too_few_runs_for_a_verdict_do_not_fail(call, folder):
    """All three after are slower than all before: so they are in 1 of 20 tries of one program."""
    before, slower = folder("before", 1000, 2000, 3000), folder("slower", 3100, 4000, 5000)
    result = call("diff", "--fail-above", 1.05, before, slower)
    assert result.exit_code == 0
    assert "these runs are too few; 5 of either side are enough" in result.stderr


def test_too_few_runs_are_said_to_be(call, folder):
    before, after = folder("before", 1, 2), folder("after", 3, 4)
    assert "Fewer than 4 runs" in call("diff", before, after).output


def test_rows_of_several_runs_are_in_the_order_of_their_medians(call, profile, tmp_path):
    """One slow run of dot moves its mean more than exp changed, but not its median."""
    for side, exp, dots in (("before", 5_000, (9_000, 9_000)), ("after", 1_000, (9_100, 9_100))):
        (tmp_path / side).mkdir()
        for k, dot in enumerate((*dots, 90_000 if side == "after" else 9_000)):
            profile(f"{side}/{k}.json", ("exp", exp, 1, ("a",)), ("dot", dot, 1, ("b",)))
    lines = call("diff", tmp_path / "before", tmp_path / "after").output.splitlines()
    assert [line.split()[-1] for line in lines[2:4]] == ["exp", "dot"]


def test_a_row_that_is_equal_in_all_runs(call, folder):
    before, after = folder("before", *[1000] * 6), folder("after", *[2000] * 6)
    result = call("diff", before, after)
    assert result.exit_code == 0, result.output
    assert len([one for one in result.output.splitlines() if "noise" in one and "dot" in one]) == 1
    assert call("diff", "--html", before.parent / "p.html", before, before).exit_code == 0


def test_the_page_does_not_overwrite_a_profile(call, profile, folder):
    one, runs = profile("1.json", A), folder("runs", 1, 2, 3)
    for page in (one, runs / "1.json"):
        was = page.read_text()
        result = call("diff", "--html", page, one, runs)
        assert result.exit_code == 1 and "is one of the inputs" in result.output
        assert page.read_text() == was


def test_a_folder_without_profiles(call, tmp_path, profile):
    (tmp_path / "empty").mkdir()
    result = call("diff", tmp_path / "empty", profile("1.json", A))
    assert result.exit_code == 1 and "contains no file that ends in .json" in result.output


# --- versus ---------------------------------------------------------------------------------------

PROGRAM = """
import numpy as np
import theano
import theano.tensor as T

x = T.dvector("x")
f = theano.function([x], EXPRESSION, name="f")
f(np.ones(1000))
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A program in a repository of git: it was T.exp(x) and is T.exp(x) + 1."""
    folder = tmp_path / "repository"
    (folder / "source").mkdir(parents=True)
    script = folder / "source" / "program.py"
    script.write_text(PROGRAM.replace("EXPRESSION", "T.exp(x)"))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    script.write_text(PROGRAM.replace("EXPRESSION", "T.exp(x) + 1"))
    monkeypatch.chdir(folder)
    return script


def test_versus_a_revision(call, repository, tmp_path):
    result = call("versus", "--base", "HEAD", "--runs", 2, "-o", tmp_path / "kept", repository)
    assert result.exit_code == 0, result.output
    assert "Elemwise{exp,no_inplace} | Elemwise{Composite{(i0 + exp(i1))}}" in result.output
    kept = {side: sorted((tmp_path / "kept" / side).iterdir()) for side in ("before", "after")}
    assert all(len(files) == 2 for files in kept.values())
    texts = [file.read_text() for files in kept.values() for file in files]
    assert all(f"{repository}:" in text for text in texts)  # not the path of the checkout
    lines = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True).stdout
    assert len(lines.splitlines()) == 1
    assert "T.exp(x) + 1" in repository.read_text()


def test_versus_other_flags(call, repository, tmp_path):
    flags = ["--before-flags", "mode=FAST_COMPILE", "--runs", 1, "-o", tmp_path / "kept"]
    result = call("versus", *flags, repository)
    assert result.exit_code == 0, result.output
    before, after = (
        json.loads((tmp_path / "kept" / side / "001.json").read_text())["functions"][0]["applys"]
        for side in ("before", "after")
    )
    assert (len(before), len(after)) == (2, 1)


def test_versus_judges_whole_runs(call, repository):
    """What few runs suffice for: memory, which hardly varies, and what is exact."""
    limits = "memory=1.3,arrays=1.5,operations=1.5"
    flags = ["--after-flags", "profiling.n_apply=5", "--runs", 2, "--fail-above", limits]
    result = call("versus", *flags, "--form", "json", repository)
    assert result.exit_code == 0, result.output
    costs = {row["name"]: row for row in json.loads(result.stdout)["costs"]}
    assert [name for name, row in costs.items() if row["verdict"] == "same"] == [
        "arrays", "operations",
    ]  # fmt: skip
    assert costs["memory"]["before"] > 1 << 20 and costs["memory"]["limit"] == 1.3
    assert 0 < costs["import"]["before"] < costs["command"]["before"]
    assert costs["overhead"]["before"] > 0 and costs["compile"]["before"] > 0


def test_versus_another_program(call, repository, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace("EXPRESSION", "T.tanh(x)"))
    result = call("versus", "--before", other, "--runs", 1, repository)
    assert result.exit_code == 0 and "Nothing matches" in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "nothing to compare with"),
        (
            ["--base", "HEAD", "--before", "source/program.py"],
            2,
            "--base or --before, not both",
        ),
        (["--base", "no-such-revision"], 1, "invalid reference: no-such-revision"),
        (["--after-flags", "mode=NO_MODE"], 2, "Invalid value for --after-flags"),
        (["--base", "HEAD", "--fail-above", "1.1"], 2, "need at least --runs 4: fewer runs cannot"),
        (["--base", "HEAD", "--fail-above", "import=1.1"], 2, "need at least --runs 5"),
    ],
)
def test_versus_refuses_bad_arguments(call, repository, arguments, code, said):
    result = call("versus", *arguments, "--runs", 1, repository)
    assert result.exit_code == code and said in result.output


def test_versus_shows_what_programs_warn_of(call, tmp_path):
    script = tmp_path / "warns.py"
    script.write_text("import sys, warnings\nwarnings.warn('mind the \\x1b[31mgap')\n"
                      "print('of', __import__('os').environ['OPWISE_FLAGS'].count('REMARK'), "
                      "file=sys.stderr)\n" + PROGRAM.replace("EXPRESSION", "T.exp(x)"))  # fmt: skip
    flags = ["--before-flags", "gcc.cxxflags=-DREMARK"]
    result = call("versus", *flags, "--runs", 2, script)
    assert result.exit_code == 0, result.output
    said = result.stderr
    assert said.count("UserWarning: mind the") == 2 and "\x1b" not in said
    assert said.index("before, on stderr:") < said.index("  of 1") < said.index("after, on stderr:")
    assert said.index("after, on stderr:") < said.index("  of 0")


def test_versus_leaves_other_files_alone(call, repository, tmp_path):
    kept = tmp_path / "kept" / "before" / "mine.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    arguments = ["--after-flags", "mode=FAST_COMPILE", "--runs", 1, "-o", tmp_path / "kept"]
    result = call("versus", *arguments, repository)
    assert (
        result.exit_code == 2 and "mine.json is not a profile of `opwise versus`" in result.output
    )
    assert kept.read_text() == "mine"


def test_versus_does_not_mix_up_processes(call, tmp_path):
    """A child's profile is no run of the program."""
    script = tmp_path / "parent.py"
    inner = PROGRAM.replace("EXPRESSION", "T.exp(x)")
    outer = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    script.write_text(f"{inner}\n{outer}\n")
    options = ["--after-flags", "mode=FAST_COMPILE", "--runs", 2, "-o", tmp_path / "kept"]
    result = call("versus", *options, script)
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (tmp_path / "kept" / "after").iterdir()) == [
        "001.json", "002.json",
    ]  # fmt: skip


def test_versus_a_program_without_functions(call, tmp_path):
    script = tmp_path / "empty.py"
    script.write_text("print('nothing')")
    result = call("versus", "--after-flags", "floatX=float32", "--runs", 1, script)
    assert result.exit_code == 1 and "it compiled no function" in result.output
