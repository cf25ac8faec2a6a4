"""Documents and their Markdown: what programs read of a report and a difference, by a schema."""

import json
import re
from dataclasses import replace

import fastjsonschema
import pytest

from opwise.profiling import aggregate, compare, jsonreports, markdown, noise
from opwise.profiling.profile import ArrayProfile, Profile

pytestmark = pytest.mark.null


def array(*shape):
    return ArrayProfile("float64", shape, (8,) * len(shape), 8)


@pytest.fixture
def several(build):
    """Profiles of runs in which ``exp`` of line 3 takes some nanoseconds, and ``dot`` 900."""
    apply, function, _ = build

    def made(*times):
        return [
            Profile(
                (
                    function(
                        apply("exp", ns, 0, keys=["a"], lines=[("/src/m.py", 3)]),
                        apply("dot", 900, 1, keys=["b"], lines=[("/src/m.py", 4)]),
                        name="train",
                    ),
                    function(apply("dot", 50, 0, keys=["c"]), name="predict"),
                ),
                environment={"program": "m.py", "flags": "floatX=float32", "process": 1},
                sources={"/src/m.py:3": "y = exp(x)"},
            )
            for ns in times
        ]

    return made


def difference(before, after, by="apply", **limit):
    runs = noise.Runs(before, after)
    total, *rows = runs.rows(compare.GROUPINGS[by])
    return jsonreports.difference(runs, by, total, rows, **limit)


def valid(data):
    """Return plain data as it comes out of JSON, which its schema has to describe."""
    data = json.loads(json.dumps(data, allow_nan=False))
    fastjsonschema.compile(jsonreports.schema(data["format"]))(data)
    return data


def test_a_report(several):
    data = valid(jsonreports.report(several(100)[0]))
    assert (data["format"], data["version"]) == ("opwise report", 1)
    assert [f["name"] for f in data["functions"]] == ["train", "predict"]
    first, second, third = data["applys"]
    assert (first["op"], first["function"], first["lines"]) == ("dot", "train", ["/src/m.py:4"])
    assert first["seconds"] == pytest.approx(900e-9)
    assert first["share"] == pytest.approx(900 / 1050)
    assert (second["op"], third["function"]) == ("exp", "predict")
    assert data["environments"] == [{"program": "m.py", "flags": "floatX=float32", "process": 1}]
    lines = {row["label"]: row["source"] for row in data["by"]["line"]}
    assert lines["/src/m.py:3"] == "y = exp(x)"


def test_an_empty_report():
    data = valid(jsonreports.report(Profile()))
    assert data["applys"] == [] and data["by"]["op"] == []


def test_a_difference_of_single_runs(several):
    data = valid(difference(several(100), several(300)))
    assert data["runs"] == {"before": 1, "after": 1} and data["limit"] is None
    (exp,) = [row for row in data["rows"] if row["label"] == "exp"]
    assert exp["ratio"] == pytest.approx(3) and exp["p"] is None and exp["verdict"] == ""
    assert (exp["functions"], exp["lines"]) == (["train"], ["/src/m.py:3"])
    assert not data["failed"] and not exp["failed"]


@pytest.mark.parametrize("by", list(compare.GROUPINGS))
def test_a_difference_of_several_runs(several, by):
    data = valid(difference(several(100, 101, 102, 103, 104), several(*range(300, 305)), by))
    slower = [row for row in data["rows"] if row["verdict"] == "slower"]
    assert len(slower) == 1 or by == "scope"  # there all is in one row
    for row in slower:
        assert row["interval"][0] < row["ratio"] < row["interval"][1] * 1.01
        assert row["functions"][0] == "train"
        assert "/src/m.py:3" in row["lines"]


def test_a_difference_with_nothing_in_common(several):
    data = valid(difference(several(100), [Profile()], limit=1.5))
    assert data["failed"] and data["total"]["ratio"] is None
    assert {row["relation"] for row in data["rows"]} == {"only before"}
    assert "Nothing to compare" in markdown.difference(data)


def test_what_has_failed(several):
    runs = noise.Runs(several(100), several(300))
    total, *rows = runs.rows(compare.by_apply)
    failed = [row for row in rows if row.row.label == "exp"]
    data = valid(jsonreports.difference(runs, "apply", total, rows, 1.5, 100.0, failed))
    assert data["failed"] and data["limit"]["ratio"] == 1.5
    assert data["limit"]["floor_seconds"] == pytest.approx(1e-7)
    assert [row["label"] for row in data["rows"] if row["failed"]] == ["exp"]
    text = markdown.difference(data)
    assert "**Failed**: 1 row took more than 1.5 times as long:" in text
    assert "- 3.000x `exp` in `train` at `/src/m.py:3`" in text


# --- shapes ---------------------------------------------------------------------------------------


def test_equal_ops_with_other_shapes_are_told_apart(build):
    apply, function, _ = build
    shapes = ((array(3, 4),), (array(3, 4),), (array(9, 9),), (None,), ())
    applys = [replace(apply("dot", 10, k), input_arrays=s) for k, s in enumerate(shapes)]
    profile = Profile((function(*applys),))
    labels = {row["label"]: row["applys"] for row in jsonreports.sums(profile, "shapes")}
    assert labels == {
        "dot float64(3, 4)": 2, "dot float64(9, 9)": 1, "dot (no array)": 1,
        "dot (shapes not known)": 1,
    }  # fmt: skip
    rows = compare.by_shapes(profile, profile)
    assert sorted(row.label for row in rows) == sorted(labels)
    assert all(row.ratio == 1 for row in rows)


# --- Markdown -------------------------------------------------------------------------------------

HOSTILE = "a|b`c``d <img src=x> [x](y) **z** \x1b[31m\n| e @somebody #1"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("plain", "`plain`"),
        ("", ""),
        ("a|b", "`a\\|b`"),
        ("`x`", "`` `x` ``"),
        ("a``b", "```a``b```"),
        ("<b>", "`<b>`"),
        ("a\nb", r"`a\nb`"),
    ],
)
def test_names_are_no_markup(text, code):
    assert markdown.code(text) == code


def cells(line):
    """Return the cells of a row of a table: what | parts that no \\ stands before."""
    return line.replace("\\|", "").count("|")


def test_tables_stay_tables(build):
    apply, function, _ = build
    made = replace(apply(HOSTILE, 500, 0, keys=["k"], lines=[(HOSTILE, 3)]), text=HOSTILE)
    profile = Profile((function(made, name=HOSTILE),), HOSTILE, {"program": HOSTILE})
    for by in ("apply", *aggregate.GROUPINGS):
        text = markdown.report(profile, by)
        data = difference([profile], [profile], "apply" if by == "apply" else by)
        for shown in (text, markdown.difference(data)):
            rows = [line for line in shown.splitlines() if line.startswith("|")]
            assert len(rows) >= 3 and len({cells(line) for line in rows}) <= 4
            assert shown.replace("\n", "").isprintable()
            assert shown.count("<details>") == shown.count("</details>")


def test_a_comment_is_short(build):
    apply, function, _ = build
    applys = [apply(f"op{k}", 1000 - k, k, keys=[f"k{k}"]) for k in range(300)]
    profile = Profile((function(*applys),))
    shown = markdown.difference(difference([profile], [profile]), 20)
    outside, _, folded = shown.partition("<details>")
    assert outside.count("\n") < 15 and folded.count("\n| ") < 25
    assert "294 more rows" in shown and "280 more rows" in shown


@pytest.mark.parametrize("by", ["apply", "op", "line"])
@pytest.mark.parametrize("count", [1, 2, 6, 7, 8, 12])
@pytest.mark.parametrize("n", [1, 3, 6, 7, 20])
def test_rows_that_are_not_shown_are_counted(build, by, count, n):
    apply, function, _ = build
    applys = [apply(f"op{k}", 1000 - k, k, keys=[f"k{k}"], lines=[("a.py", k + 1)])
              for k in range(count)]  # fmt: skip
    profile = Profile((function(*applys),))
    for shown, heads in (
        (markdown.report(profile, by, n).partition("<details>")[0], 2),
        (markdown.difference(difference([profile], [profile], by), n).partition("### ")[2], 3),
    ):
        table, _, rest = shown.partition("<details>")
        rows = sum(line.startswith("|") for line in table.splitlines()) - heads
        said = re.findall(r"(\d+) more rows?\b", f"{table}{rest.partition('</summary>')[0]}")
        assert rows + sum(map(int, said)) == count and len(said) <= 1
        assert "1 more rows" not in shown.replace("11 more rows", "")
