"""The tables of ``opwise report``."""

import re
from dataclasses import replace

import pytest

from opwise.command import tables
from opwise.profiling import histogram
from opwise.profiling.machinelimits import MachineLimits, Peak
from opwise.profiling.memory import Live, MemoryProfile
from opwise.profiling.profile import ArrayProfile, OriginProfile, Profile
from opwise.profiling.reports import details

MACHINE = MachineLimits(
    1, "one", 1, 1, "none", (1 << 15,), ((1 << 14, 100.0), (1 << 20, 10.0)), ((1 << 20, 20.0),),
    (Peak("float64", False, 10.0, 10.0), Peak("float64", True, 20.0, 30.0)), 1.0, 1.0,
)  # fmt: skip
ARRAYS = (ArrayProfile("float64", (1000,), (8,), 8000),)


@pytest.fixture
def shown(build, call, tmp_path):
    """What is printed of three Applys: sort in Python, mul, exp in a scope."""
    apply, function, _ = build
    here = OriginProfile("k", "exp", "/far/a.py", 3, "layer", None)
    back = OriginProfile("l", "mul", "/far/a.py", 3, "layer/grad", ("/far/a.py", 3))
    one = function(
        replace(apply("exp", 2_000_000, 0, count=4), origins=(here, back)),
        replace(apply("mul", 1_000_000, 1, count=4), traffic=16_000, flops=80_000, shares=("c",),
                input_arrays=ARRAYS, output_arrays=ARRAYS),
        apply("sort", 5_000_000, 2, c=False, count=4),
        name="f", calls=4,
    )  # fmt: skip
    memory = MemoryProfile((8, 16, 8), 16, 1, (Live(0, 16),), 16, 16, 16, 16, 16)
    profile = Profile(
        (replace(one, memory=memory),), "all", sources={"/far/a.py:3": "y = [red]exp(x)"},
        machine=MACHINE,
    )  # fmt: skip

    def report(*arguments, **changes):
        path = tmp_path / "p.json"
        replace(profile, **changes).save(path)
        result = call("report", *arguments, path)
        assert result.exit_code == 0, result.output
        return result.output.splitlines()

    return report


def section(lines, title):
    """The lines from a title to the next empty one, without the title, as words."""
    start = next(k for k, line in enumerate(lines) if line.startswith(title))
    found = []
    for line in lines[start + 1 :]:
        if not line:
            break
        found.append(line.split())
    return found


def test_applys(shown):
    heading, *rows = section(shown(), "Applys")
    assert " ".join(heading) == (
        "time ms share runs µs a run median 95 % GB/s from GFLOP/s of limit bound by gain ms in id "
        "line Apply"
    )
    rows, legend = rows[:3], [" ".join(row) for row in rows[3:]]
    assert [row[-1] for row in rows] == ["sort(x)", "exp(x)", "mul(x)"]
    assert [line.split(":")[0] for line in legend] == [
        "share",
        "GB/s",
        "of limit",
        "bound by",
        "gain",
    ]
    assert rows[1][-2] == "/far/a.py:3"
    assert rows[0][:4] == ["5.000", "62.5%", "4", "1250.000"] and rows[0][-3:-1] == ["Py", "2"]
    assert rows[2][:4] == ["1.000", "12.5%", "4", "250.000"]
    assert rows[2][6:] == ["0.1", "L1", "0.3", "3%", "arithmetic", "0.968", "C", "1", "mul(x)"]


def test_sorted_by_what_there_is_to_gain(shown):
    rows = section(shown("--sort", "gain"), "Applys")[1:]
    assert rows[0][-1] == "mul(x)"


def test_sorting_by_gain_without_limits_says_so(shown):
    lines = shown("--sort", "gain", machine=None)
    assert any(line.startswith("The profile has no limits of the hardware") for line in lines)
    assert section(lines, "Applys")[1][-1] == "sort(x)"
    assert not any("no limits of the hardware" in line for line in shown("--sort", "gain"))


def test_slow_runs_are_marked_and_left_out_on_request(build, call, tmp_path):
    apply, function, _ = build

    def runs(op, k, usual, slow):
        ns = [usual] * 99 + [slow]
        pairs = histogram.merged(*([(histogram.bucket(one), 1)] for one in ns))
        return replace(apply(op, sum(ns), k, count=100), histogram=pairs, least=usual, most=slow)

    steady, jumpy = runs("exp", 0, 10_000, 10_000), runs("log", 1, 6_000, 4_000_000)
    Profile((function(steady, jumpy, calls=100),)).save(tmp_path / "p.json")
    lines = call("report", tmp_path / "p.json").output.splitlines()
    first, second = section(lines, "Applys")[1:3]
    assert (first[-1], second[-1]) == ("log(x)", "exp(x)")
    assert first[0].startswith("*4.5") and not second[0].startswith("*")
    assert f"  *: {details.SLOW_RUNS}" in lines
    lines = call("report", "--sort", "median", tmp_path / "p.json").output.splitlines()
    assert [row[-1] for row in section(lines, "Applys")[1:3]] == ["exp(x)", "log(x)"]


def test_a_loop_around_rows_has_no_median(build, call, tmp_path):
    apply, function, _ = build
    times = {"histogram": ((histogram.bucket(50_000), 20),), "least": 50_000, "most": 50_000}
    loop = replace(apply("for", 20_000, 0, count=20), inner=980_000, kind="loop", **times)
    step = replace(apply("exp", 980_000, 1, count=200), inside=0, loop="for", estimated=True)
    Profile((function(loop, replace(step, histogram=()), calls=20),)).save(tmp_path / "p.json")
    lines = call("report", tmp_path / "p.json").output.splitlines()
    first, second = section(lines, "Applys")[1:3]
    assert first[:5] == ["~0.980", "98.0%", "200", "~4.900", "C"]
    assert second[:5] == ["0.020", "2.0%", "20", "1.000", "C"]
    assert f"  ~: {details.ESTIMATED}" in lines


def test_without_a_machine_there_are_no_limits(shown):
    heading, *_ = section(shown(machine=None), "Applys")
    assert "GB/s" not in heading and "limit" not in heading


def test_lines_and_scopes(shown):
    lines = shown()
    rows = section(lines, "Lines of the program")[1:]
    assert [" ".join(row) for row in rows] == [
        "6.000 75.0% (unknown line)",
        "2.000 25.0% 50% /far/a.py:3 y = [red]exp(x)",
    ]
    rows = section(lines, "Scopes")[1:]
    assert [row[-1] for row in rows[:3]] == ["scope)", "layer", "layer/grad"]
    assert " ".join(rows[3]) == details.SPLIT


def test_functions_and_lines_below_the_folder_have_short_paths(build, call, tmp_path, monkeypatch):
    apply, function, _ = build
    here, far = str(tmp_path / "a.py"), "/far/b.py"
    one = function(apply("exp", 2_000, lines=[(here, 3)]), name=f"{here}:9")
    two = function(apply("mul", 1_000, lines=[(far, 4)]), name=f"{far}:5")
    path = tmp_path / "p.json"
    Profile((one, two), "all").save(path)
    monkeypatch.chdir(tmp_path)
    rows = section(call("report", path).output.splitlines(), "Applys")[1:3]
    assert [row[-4:-1] for row in rows] == [
        ["a.py:9", "0", "a.py:3"],
        [f"{far}:5", "0", f"{far}:4"],
    ]
    by_line = call("report", "--by", "line", path).output.splitlines()[1:]
    assert [row.split()[-1] for row in by_line] == ["a.py:3", f"{far}:4"]
    text = call("report", "--form", "markdown", path).output
    assert "| `a.py:9` | `a.py:3` |" in text and f"| `{far}:5` | `{far}:4` |" in text
    assert "no scope" not in text and "By line" in text


def test_headline_rest_and_memory(shown):
    lines = shown("-n", 1)
    assert lines[0].startswith("all: 1 function, 4 calls, ")
    assert "Applys (the first 1 of 3)" in lines
    rows = section(lines, "Applys")
    assert rows[2] == ["3.000", "37.5%", "2", "more"]
    assert section(lines, "In Python")[1] == [*"5.000 62.5% no C implementation sort".split()]
    assert any(line.startswith("Memory at its peak: 16 B while f ran mul(x)") for line in lines)


def test_a_profile_of_nothing(call, tmp_path):
    Profile().save(tmp_path / "p.json")
    result = call("report", tmp_path / "p.json")
    assert (result.exit_code, result.output) == (
        0, "0 functions, 0 calls, 0.000000 s in calls, 0.000000 s in Applys\n"
    )  # fmt: skip


# --- terminals of several widths ------------------------------------------------------------------


def test_first_runs_are_a_row(shown, build):
    apply, function, _ = build
    one = function(replace(apply("exp", 1_000_000, count=4), once=400_000), calls=4)
    rows = section(shown(functions=(one,)), "Applys")
    assert rows[2][0] == "0.400" and " ".join(rows[2][1:]) == details.ONCE


@pytest.fixture
def in_terminal(shown, monkeypatch):
    """Print the report in a terminal of so many columns."""

    def report(columns, *arguments, **changes):
        monkeypatch.setattr(tables, "is_terminal", lambda: True)
        monkeypatch.setattr(tables, "width", lambda: columns)
        return shown(*arguments, **changes)

    return report


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_the_apply_and_its_line_stay(in_terminal, columns):
    lines = in_terminal(columns)
    assert all(len(line) <= columns for line in lines)
    start = lines.index("Applys")
    heading = lines[start + 1]
    assert heading.split()[:2] == ["time", "ms"] and heading.split()[-3:] == ["id", "line", "Apply"]
    rows = lines[start + 2 : start + 5]
    assert [row.split()[-1] for row in rows] == ["sort(x)", "exp(x)", "mul(x)"]
    assert {"a.py:3", "/far/a.py:3"} & set(rows[1].split())
    # numbers are whole
    assert [row.split()[0] for row in rows] == ["5.000", "2.000", "1.000"]
    assert not any("\N{HORIZONTAL ELLIPSIS}" in row for row in rows)


@pytest.mark.parametrize("columns, titles", [
    (60, ["time ms", "share", "id", "line", "Apply"]),
    (80, ["time ms", "share", "of limit", "in", "id", "line", "Apply"]),
])  # fmt: skip
def test_a_narrow_terminal_shows_what_matters(in_terminal, build, columns, titles):
    apply, function, _ = build
    here = OriginProfile("k", "exp", "/t.py", 3, "", None)
    one = replace(apply("Composite{" + "exp, " * 9 + "}", 1_000_000, count=4), traffic=16_000,
                  origins=(here,), shares=("c",), input_arrays=ARRAYS, output_arrays=ARRAYS,
                  flops=80_000)  # fmt: skip
    lines = in_terminal(columns, functions=(function(one),))
    heading = lines[lines.index("Applys") + 1]
    assert re.split("  +", heading.strip()) == titles


def test_what_a_narrow_terminal_leaves_out_is_named(in_terminal):
    words = " ".join(" ".join(in_terminal(60)).split())
    assert "(not shown, at 60 columns: runs, " in words and " bound by, gain ms" in words
    assert "(not shown" not in "".join(in_terminal(300))


def test_columns_that_are_not_shown_are_not_explained(in_terminal):
    met = set()
    for columns in range(30, 140, 5):
        lines = in_terminal(columns)
        titles = lines[lines.index("Applys") + 1].split()
        said = " ".join(" ".join(lines).split())
        for title, meaning in (("share", "share: part"), ("in", "in: where"), ("GB/s", "GB/s: ")):
            assert (title in titles) == (meaning in said), (columns, title)
            met.add((title, title in titles))
    assert {("share", False), ("share", True), ("in", False), ("in", True)} <= met


def test_rough_limits_are_explained_where_there_are_any(shown, build):
    assert "~" not in "".join(shown())
    apply, function, _ = build
    rough = replace(apply("exp", 1_000_000), traffic=16_000, work=9_000.0, shares=("c",),
                    input_arrays=ARRAYS, output_arrays=ARRAYS)  # fmt: skip
    (said,) = [line for line in shown(functions=(function(rough),)) if "~: by rough" in line]
    assert said.strip().startswith("of limit: ")


def test_long_names_are_cut_in_a_terminal_alone(in_terminal, shown, build):
    apply, function, _ = build
    one = function(apply("Composite{" + "exp, " * 100 + "}", 10_000_000))
    name = one.applys[0].text
    assert any(line.endswith(name) for line in shown(functions=(one,)))
    (row,) = [line for line in in_terminal(100, functions=(one,)) if "10.000" in line][:1]
    assert row.rstrip().endswith("\N{HORIZONTAL ELLIPSIS}") and len(row) <= 100


def test_the_message_of_one_function_is_its_name(shown):
    """As in a program: the message of a profile is the function's name, or None."""
    assert "  Message: f" in shown("--form", "text", message="")
    assert "  Message: all" in shown("--form", "text")


def test_the_whole_program(shown):
    about = {"seconds_of_process": 2.0, "seconds_importing": 0.5, "program": "a.py"}
    lines = shown(environment=about)
    start = lines.index("Time of the program: <seconds> <share>")
    assert lines[start + 2].split() == ["0.500", "25.0%", "importing", "opwise"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_table_cuts_nothing_in_silence(build, call, tmp_path, monkeypatch, width):
    apply, function, _ = build
    many = [function(apply("exp" * 40, 1000 + k, 0), name=name) for k, name in enumerate("fg")]
    Profile(tuple(many)).save(tmp_path / "p.json")
    monkeypatch.setenv("COLUMNS", str(width))
    lines = call("report", tmp_path / "p.json").output.splitlines()
    assert max(map(len, lines)) <= width
    heading, first, second, *rest = section(lines, "Applys")
    assert "function" in heading and ("g" in first and "f" in second)  # both ids are 0
    assert first[-1].endswith("…") and second[-1].endswith("…")
    left_out = " ".join(word for line in rest for word in line)
    assert f"(not shown, at {width} columns: " in left_out
    assert all(title in " ".join(heading) or title in left_out
               for title in ("share", "runs", "µs a run", "median", "95 %", "in"))  # fmt: skip
