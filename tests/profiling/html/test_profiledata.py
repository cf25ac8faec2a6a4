"""What a page shows agrees with the profile: sums, rows, calls; and it is small."""

import json
from dataclasses import replace

import pytest

from opwise.profiling import aggregate
from opwise.profiling.html import differencedata, profiledata
from opwise.profiling.machinelimits import MachineLimits, Peak
from opwise.profiling.memory import readable
from opwise.profiling.profile import ArrayProfile, CallProfile, Profile

pytestmark = pytest.mark.null


def rows_of(shown, part, name):
    """Return {label: (ns, gradient, calls, applys)} of a table of a page's data."""
    table = shown["tables"][part][name]
    labels = [shown["texts"][k] for k in table["label"]]
    assert len(set(labels)) == len(labels)
    figures = zip(*(table[c] for c in ("ns", "gradient", "calls", "applys")), strict=True)
    return dict(zip(labels, figures, strict=True))


@pytest.mark.parametrize("name", ["op", "class", "line", "scope"])
def test_tables_hold_the_sums_of_all_and_of_each_function(sample, name):
    shown = profiledata.of_profile(sample)
    assert len(shown["tables"]) == 1 + len(sample.functions)
    for part, profile in enumerate(profiledata.selections(sample)):
        expected = {
            r.label: (round(r.ns), round(r.gradient), r.calls, r.applys)
            for r in getattr(aggregate, "by_" + name)(profile)
        }
        assert rows_of(shown, part, name) == expected


def test_one_function_has_one_set_of_tables(sample):
    assert len(profiledata.of_profile(Profile(sample.functions[:1]))["tables"]) == 1


def test_columns_of_applys_are_those_of_the_profile(sample):
    shown = profiledata.of_profile(sample)
    columns, texts = shown["applys"], shown["texts"]
    applys = sample.applys
    assert columns["ns"] == [a.total for a in applys]
    assert columns["count"] == [a.count for a in applys]
    assert columns["reads"] == [list(a.reads) for a in applys]
    assert [texts[shown["ops"]["text"][k]] for k in columns["op"]] == [a.op for a in applys]
    assert columns["function"] == [0] * 5 + [1]
    first_lines = [shown["origins"]["line"][o[0]] for o in columns["origins"]]
    assert [shown["lines"]["line"][k] for k in first_lines] == [10, 10, 10, 20, 20, 10]
    assert texts[shown["lines"]["source"][first_lines[0]]] == "h = tanh(dot(x, w))"
    # A view moves nothing; the others read and write whole arrays.
    assert columns["bytes"] == [2 * 131072, None, 3 * 131072, 2 * 131072, 3 * 131072, 2 * 131072]


def test_what_is_told_of_devices(there, sample):
    shown = profiledata.of_profile(there)
    found, texts = shown["devices"], shown["texts"]
    assert [texts[k] for k in found["name"]] == ["", *["cuda0"] * 4, ""]
    assert [texts[k] for k in found["on_host"]] == ["it is far too small", *[""] * 5]
    assert found["transfer"] == [0, 1, 0, 1, 0, 0]
    assert found["moved"] == [None, 2048, None, 131072, None, None]
    assert found["asked"] == [0, 2000, 70_000, 3000, 90_000, 0]
    assert found["waited"] == [0, 0, 0, 400_000, 0, 0]
    assert shown["functions"][0]["memory"]["device"]["peak"] == 131072
    json.dumps(shown)
    # where nothing ran on one nothing is told
    assert profiledata.of_profile(sample)["devices"] is None
    assert "device" not in profiledata.of_profile(sample)["tables"][0]["line"]


@pytest.mark.parametrize("name", ["op", "class", "line", "scope"])
def test_tables_tell_where_the_time_was(there, name):
    for part, profile in enumerate(profiledata.selections(there)):
        table = profiledata.of_profile(there)["tables"][part][name]
        if not any(a.device for a in profile.applys):
            assert "device" not in table and "host" not in table
            continue
        places = zip(table["device"], table["transfers"], table["host"], strict=True)
        assert list(map(sum, places)) == pytest.approx(table["ns"], abs=2)
        sums = [sum(table[where]) for where in ("device", "transfers", "host")]
        expected = [5_000_000, 501_000, 6_000_000 if part else 6_900_000]
        assert sums == pytest.approx(expected, abs=4)


def total(part):
    return part[3], sum(inner[3] for inner in part[5])


def test_the_flame_view_divides_all_of_the_time(sample):
    trees = profiledata.of_profile(sample)["flames"]
    for tree, profile in zip(trees, profiledata.selections(sample), strict=True):
        assert tree[3] == profile.local_ns
        stack = [tree]
        while stack:
            part = stack.pop()
            mine, inner = total(part)
            assert not part[5] or mine == pytest.approx(inner, rel=0.02)
            stack += part[5]


def test_a_gradient_stands_at_its_line_in_the_flame_view(sample):
    shown = profiledata.of_profile(sample)
    (train,) = (p for p in shown["flames"][1][5])
    (grads,) = (p for p in train[5] if shown["texts"][p[1]] == "grads")
    (line,) = grads[5]
    assert line[0] == "line"
    assert shown["lines"]["line"][line[2]] == 10
    assert (grads[3], grads[4]) == (2_000_000, 2_000_000)


def test_segments_of_a_call_add_up():
    call = CallProfile(3, 0, (1, 2, 1000, 3, 900, 1, 1))
    shown = profiledata._call(call)
    assert shown["segments"] == [[-1, 3], [2, 1000], [-1, 3], [4, 900], [-1, 2]]
    assert sum(ns for _, ns in shown["segments"]) == shown["ns"] == call.ns


def test_every_text_is_there_once(large):
    texts = profiledata.of_profile(large)["texts"]
    assert len(texts) == len(set(texts))


def test_long_texts_are_cut_so_that_all_are_not_too_many():
    texts = profiledata.Texts()
    numbers = [texts(str(k).zfill(3000)) for k in range(2000)]
    assert numbers == list(range(2000))
    found = texts.cut()
    assert sum(map(len, found)) <= profiledata.TEXTS
    assert all(text.endswith("…") for text in found)
    few = profiledata.Texts()
    few("short")
    few("x" * 5000)
    assert few.cut() == ["short", "x" * (profiledata.TEXT - 1) + "…"]


def test_only_the_slowest_have_histograms(large):
    shown = profiledata.of_profile(large)
    assert len(shown["histograms"]) == profiledata.HISTOGRAMS
    least = min(shown["applys"]["ns"][k] for k in shown["histograms"])
    assert sum(ns > least for ns in shown["applys"]["ns"]) < profiledata.HISTOGRAMS


def test_layouts_of_arrays_are_told_where_they_are_unusual():
    def text(shape, strides, itemsize=4):
        return profiledata._array(ArrayProfile("float32", shape, strides, itemsize * 6))

    assert text((2, 3), (12, 4)) == "float32 2×3, 24 B"
    assert text((2, 3), (4, 8)) == "float32 2×3, 24 B, strides 4×8"
    assert text((1, 6), (999, 4)) == "float32 1×6, 24 B"
    assert profiledata._array(ArrayProfile("int8", (), (), 1)) == "int8 scalar, 1 B"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 2**40, "3072 GiB")]
)
def test_sizes(count, text):
    assert readable(count) == text


def test_an_empty_profile_has_a_page():
    shown = profiledata.of_profile(Profile())
    assert shown["applys"] == {}
    assert json.dumps(shown, allow_nan=False)


def test_what_an_apply_cannot_read_is_no_edge(build):
    an_apply, a_function, Profile = build
    strange = replace(an_apply("a", 5), reads=(7, -3, 0))
    shown = profiledata.of_profile(Profile((a_function(strange),)))
    assert shown["functions"][0]["rows"] == [0]


# --- limits of the machine ------------------------------------------------------------------------


def limit(**more):
    return {"function": "train", "position": 2, "intensity": 0.5, "gflops": 3.0, "gbs": 6.0,
            "share": 0.4, "bound": "memory", "gain_s": 0.1} | more  # fmt: skip


def test_limits_find_their_applys(sample):
    limits = [limit(), limit(function=1, position=0, gain_s=float("inf"))]
    machine = {"bandwidth": [(1024, 100.0), (2**30, 20.5)], "peaks": {"gemm": 123.456}}
    shown = profiledata.of_profile(sample, limits, machine)
    roofline = shown["roofline"]
    assert roofline["apply"] == [2, 5]
    assert roofline["gain_s"] == [0.1, None]
    assert roofline["bandwidth"] == [[1024, 100], [2**30, 20.5]]
    assert [(shown["texts"][name], value) for name, value in roofline["peaks"]] == [("gemm", 123.5)]


@pytest.mark.parametrize(
    "more", [{"function": "else"}, {"function": 2}, {"function": -1}, {"position": 5}]
)
def test_limits_of_what_is_not_there_are_refused(sample, more):
    with pytest.raises(ValueError, match="limits name"):
        profiledata.of_profile(sample, [limit(**more)])


def test_without_limits_there_is_no_roofline(sample):
    assert profiledata.of_profile(sample)["roofline"] is None


# --- differences ----------------------------------------------------------------------------------


def test_rows_of_a_difference_are_kept(sample, difference_rows):
    shown = differencedata.of_difference(sample, sample, {"Apply": difference_rows})
    ((name, columns),) = shown["tables"]
    assert shown["texts"][name] == "Apply"
    assert columns["difference_ns"] == [r["difference_ns"] for r in difference_rows]
    assert columns["after_ns"][3] is None
    relations = [shown["relations"][k] for k in columns["relation"]]
    assert relations == [r["relation"] for r in difference_rows]
    assert [shown["texts"][k] for k in columns["label_after"]][-3] == "Composite{exp, add}"
    assert shown["before"]["call_ns"] == sum(f.call_ns for f in sample.functions)


@pytest.mark.parametrize("more", [{"relation": "near"}, {"verdict": "unsure"}])
def test_an_unknown_relation_is_refused(sample, difference_rows, more):
    rows = [difference_rows[0] | more]
    with pytest.raises(ValueError, match="it must be of"):
        differencedata.of_difference(sample, sample, {"Apply": rows})


def test_the_tables_of_cpu_and_gpu(there, sample):
    shown = differencedata.of_difference(sample, there, {})
    texts = shown["texts"]
    assert texts[shown["moved"]["sentences"][0]].endswith(" times as fast")
    tables = {texts[name]: columns for name, columns in shown["moved"]["tables"]}
    assert list(tables) == ["Line", "Op", "Class", "Apply"]
    for columns in tables.values():
        sums = [sum(columns[name]) for name in ("cpu", "device", "transfers", "host")]
        assert sums == pytest.approx([12_401_000, 5_000_000, 501_000, 6_900_000], abs=4)
    lines = [texts[k] for k in tables["Line"]["line"]]
    assert {"/src/model.py:10", "/src/model.py:20"} <= set(lines)
    sources = {texts[place]: texts[source] for place, source in shown["sources"]}
    assert sources["/src/model.py:20"] == "cost = sum(h)"
    whys = {texts[k] for k in tables["Apply"]["why"]}
    assert whys == {"", "it is far too small"}
    for one in (there, sample):
        assert differencedata.of_difference(one, one, {})["moved"] is None


# --- what is measured elsewhere -------------------------------------------------------------------


def machine():
    return MachineLimits(
        1, "one", 1, 1, "none", (1 << 15,), ((1 << 14, 100.0), (1 << 20, 10.0)), ((1 << 20, 20.0),),
        (Peak("float64", False, 10.0, 10.0), Peak("float64", True, 20.0, 30.0)), 1.0, 1.0,
    )  # fmt: skip


def test_limits_come_from_the_machine_of_the_profile(build):
    apply, function, _ = build
    arrays = (ArrayProfile("float64", (1000,), (8,), 8000),)
    known = replace(apply("mul", 4000, 1, count=2), traffic=16000, flops=8000, shares=("c",),
                    input_arrays=arrays, output_arrays=arrays)  # fmt: skip
    both = (function(apply("exp", 5)), function(apply("exp", 5), known, name="g"))
    assert profiledata.limits(Profile(both)) == (None, None)
    (found,), told = profiledata.limits(Profile(both, machine=machine()))
    assert (found["function"], found["position"], found["bound"]) == (1, 1, "arithmetic")
    assert (found["intensity"], found["gflops"], found["gbs"]) == (0.5, 4.0, 8.0)
    assert found["share"] == pytest.approx(801 / 2000)
    assert found["gain_s"] == pytest.approx((4000 - 2 * 801) * 1e-9)
    assert told == {
        "bandwidth": [(1 << 14, 100.0), (1 << 20, 20.0)],
        "peaks": {"float64": 30.0},
    }
    assert profiledata.of_profile(Profile(both, machine=machine()), [found], told)["roofline"]


def test_limits_without_a_count_of_operations(build):
    """Of functions, whose limits are rough, and of Applys that move data only."""
    apply, function, _ = build
    arrays = (ArrayProfile("float64", (1000,), (8,), 8000),)
    there = {"traffic": 16000, "shares": ("c",), "input_arrays": arrays, "output_arrays": arrays}
    applys = [
        replace(apply("exp", 4000, count=2), work=1200.0, **there),
        replace(apply("copy", 4000, 1, count=2), flops=0, **there),
        apply("sort", 4000, 2),
    ]
    profile = Profile((function(*applys),), machine=machine())
    found, told = profiledata.limits(profile)
    assert {(row["position"], row["rough"], row["intensity"]) for row in found} == {
        (0, True, None), (1, False, None)
    }  # fmt: skip
    assert {row["position"]: row["share"] for row in found} == {
        0: pytest.approx(1201 / 2000), 1: pytest.approx(161 / 2000)
    }  # fmt: skip
    shown = profiledata.of_profile(profile, found, told)["roofline"]
    assert sorted(zip(shown["apply"], shown["rough"], strict=True)) == [(0, 1), (1, 0)]


def test_functions_without_a_name_have_short_places(build, monkeypatch, tmp_path):
    apply, function, _ = build
    monkeypatch.chdir(tmp_path)
    one = function(apply("exp", 5), name=f"{tmp_path}/walk.py:11")
    shown = profiledata.of_profile(Profile((one,), "", {"flags": "", "threads": 2}))
    assert shown["texts"][shown["title"]] == "walk.py:11"
    assert shown["texts"][shown["functions"][0]["name"]] == "walk.py:11"
    assert [shown["texts"][name] for name, _ in shown["environment"]] == ["threads"]


def test_the_rows_of_a_difference(build):
    apply, function, _ = build
    before = Profile((function(apply("exp", 10, keys="a"), apply("mul", 20, 1, keys="b")),))
    after = Profile((function(apply("both", 12, keys="ab", count=2), apply("x", 1, 1)),))
    tables = differencedata.tables([before], [after])
    assert list(tables) == ["Apply", "Op", "Class", "Line", "Op and shapes"]
    fused, only = tables["Apply"]
    assert (fused["before_ns"], fused["after_ns"], fused["difference_ns"]) == (30, 12, -18)
    assert (fused["relation"], fused["ratio"], fused["verdict"]) == ("fused", 0.2, "")
    assert (only["relation"], only["before_ns"], only["label_after"]) == ("only after", None, "x")
    several = differencedata.tables([before] * 4, [after] * 4)["Apply"][0]
    assert (several["before_ns"], several["after_ns"], several["verdict"]) == (30, 6, "faster")
    assert differencedata.of_difference(before, after, tables)["tables"]


def test_a_flame_of_one_function_knows_which(sample):
    """Part 2 of the page is the second function, and its flame has the number of that."""
    shown = profiledata.of_profile(sample)
    functions = [[part[2] for part in flame[5]] for flame in shown["flames"]]
    assert functions == [[0, 1], [0], [1]]


def test_names_of_profiles_and_programs(sample):
    assert profiledata.name(sample) == "a sample"
    unnamed = replace(sample, message="")
    assert profiledata.name(unnamed) == "train, predict"
    many = replace(unnamed, functions=tuple(
        replace(sample.functions[0], name=f"f{k}") for k in range(5)
    ))  # fmt: skip
    assert profiledata.name(many) == "5 functions"
    assert profiledata.program(sample) == ""
    merged = {"merged": [{"program": "/a/train.py --fast"}, {"program": "/b/train.py"}]}
    assert profiledata.program(replace(sample, environment=merged)) == "train.py"
