"""Profile: plain data, its JSON form, and what is refused."""

import dataclasses
import gc
import json
import sys

import fastjsonschema
import numpy as np
import pytest

import opwise.tensor as T
from opwise import ProfileStats, function
from opwise.errors import ProfileFormatError
from opwise.profiling.model import ProfileData
from opwise.profiling.profile import FORMAT, VERSION, Profile, schema

pytestmark = pytest.mark.null


@pytest.fixture
def sample(build):
    apply, function, _ = build
    return Profile(
        (function(apply("add", 5, lines=[("a.py", 3)]), apply("mul", 7, 1, keys=["k"])),),
        message="m",
        environment={"python": "3"},
    )


@pytest.fixture
def whole(flags):
    """A profile that was recorded, with all there is."""
    flags({"profile_memory": True, "profile_optimizer": True, "profiling.min_peak_memory": True})
    x = T.dmatrix("x")
    f = function([x], [T.sort(T.exp(x), axis=0), x.sum()], profile=True, name="f")
    f(np.ones((3, 4)))
    return f.profile.profile()


def test_json_gives_an_equal_profile(sample, whole):
    for profile in (sample, whole):
        assert Profile.from_json(profile.to_json()) == profile
    again = Profile.from_json(sample.to_json())
    assert again.functions[0].applys[0].lines == (("a.py", 3),)


def test_a_profile_equals_its_data(sample):
    same = ProfileData(**vars(sample))
    assert sample == same and same == sample and sample != dataclasses.replace(same, message="n")


def test_files(sample, tmp_path):
    path = tmp_path / "p.json"
    sample.save(path)
    sample.save(path)
    assert Profile.load(path) == sample
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


def test_a_file_that_cannot_be_written_leaves_nothing(sample, tmp_path):
    with pytest.raises(OSError):
        sample.save(tmp_path / "no folder" / "p.json")
    (tmp_path / "p.json").mkdir()
    with pytest.raises(OSError):
        sample.save(tmp_path / "p.json")
    assert [p.name for p in tmp_path.iterdir()] == ["p.json"]


def test_sums(build):
    apply, function, _ = build
    profile = Profile((function(apply("add", 5), apply("mul", 7)), function(apply("add", 1))))
    assert profile.local_ns == 13
    assert [f.thunk_ns for f in profile.functions] == [12, 1]
    assert [a.op for a in profile.applys] == ["add", "mul", "add"]


def test_nothing_in_a_profile_can_be_changed(build):
    apply, _, _ = build
    with pytest.raises(dataclasses.FrozenInstanceError):
        apply("add", 5).total = 6


def test_the_collector_of_garbage_is_left_as_it_was(sample):
    text = sample.to_json()
    for change in (gc.disable, gc.enable):
        change()
        try:
            was = gc.isenabled()
            assert Profile.from_json(text) == sample and gc.isenabled() is was
            with pytest.raises(ProfileFormatError):
                Profile.from_json(text[:-1])
            assert gc.isenabled() is was
        finally:
            gc.enable()


def test_what_is_read_is_of_the_right_types(whole):
    """Equal is not enough: a list is no tuple, and a whole number of seconds is still a float."""

    def types(value):
        if dataclasses.is_dataclass(value):
            return type(value), [types(getattr(value, f.name)) for f in dataclasses.fields(value)]
        return type(value), [types(v) for v in value] if isinstance(value, tuple) else ()

    assert types(Profile.from_json(whole.to_json())) == types(whole)
    data = json.loads(whole.to_json())
    data["functions"][0]["compile"]["total"] = 3
    read = Profile.from_json(json.dumps(data)).functions[0].compile.total
    assert type(read) is float and read == 3.0


# --- what is refused ------------------------------------------------------------------------------


def changed(profile, **values):
    return json.dumps({**json.loads(profile.to_json()), **values})


def test_another_version_is_refused(sample):
    with pytest.raises(
        ProfileFormatError,
        match=f"is a profile of version {VERSION + 1}; this opwise reads version",
    ):
        Profile.from_json(changed(sample, version=VERSION + 1))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1", '"text"', "{}", '{"format": "another"}', "[" * 100_000,
     '{"a":' * 100_000, "NaN", '{"format": Infinity}', "9" * 10_000, "\x00"],
)  # fmt: skip
def test_what_is_no_profile(text):
    with pytest.raises(ProfileFormatError, match="is not an opwise profile"):
        Profile.from_json(text)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_off(sample, tmp_path, part):
    text = sample.to_json()
    path = tmp_path / "p.json"
    path.write_text(text[: int(len(text) * part)])
    with pytest.raises(ProfileFormatError, match=r"p\.json is not an opwise profile"):
        Profile.load(path)


def test_a_file_of_bytes(tmp_path):
    (tmp_path / "p.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProfileFormatError, match=r"p\.json is not an opwise profile"):
        Profile.load(tmp_path / "p.json")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Profile.load(tmp_path / "p.json")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"functions": None}, "data.functions must be array"),
        ({"functions": [{}]}, r"data.functions\[0\] must contain"),
        ({"message": 3}, "data.message must be string"),
        ({"environment": []}, "data.environment must be object"),
    ],
)
def test_what_is_no_whole_profile(sample, values, message):
    with pytest.raises(ProfileFormatError, match=f"is not a valid profile: {message}"):
        Profile.from_json(changed(sample, **values))


def test_every_part_is_looked_at(whole):
    """A text where a number is expected, wherever that is, is refused."""
    data = json.loads(whole.to_json())

    def spoilt(value, path=()):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in list(items):
            if path[:1] in (("environment",), ("version",)) or "rewrites" in path:
                continue
            if isinstance(part, dict | list):
                yield from spoilt(part, (*path, key))
            elif isinstance(part, int | float) and key not in ("version", "cached", "graph_cached"):
                value[key] = "spoilt"
                yield (*path, key)
                value[key] = part

    seen = 0
    for path in spoilt(data):
        with pytest.raises(ProfileFormatError):
            Profile.from_json(json.dumps(data))
        seen += 1
        assert path
    assert seen > 80


def hostile(data, change):
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["functions"][0]["applys"][0].update(total=10**200), "must be smaller"),
        (lambda d: d["functions"][0]["applys"][0].update(count=0), "but was never run"),
        (lambda d: d["functions"][0]["compile"].update(total=1e300), "far too long"),
        (lambda d: d["environment"].update(process=1e300), "process of its environment"),
        (lambda d: d["environment"].update(bytes_peak_memory=1e300), "bytes_peak_memory of its en"),
        (lambda d: d["environment"].update(seconds_control_python="x"), "seconds_control_python"),
        (lambda d: d["functions"][0]["applys"][0].update(total=3.0), "3.0 is no whole number"),
        (lambda d: d["functions"][0]["applys"][1].update(reads=[0.0]), "are not whole numbers"),
        (lambda d: d["functions"][0]["applys"][0].update(total=-5), "is below zero"),
        (lambda d: d["functions"][0].update(calls=-5), "is below zero"),
        (lambda d: d["functions"][0]["applys"][0].update(histogram=[[3, -1]]), "is below zero"),
        (lambda d: d["environment"].update(merged=5), "its environment is not"),
        (lambda d: d["environment"].update(merged=[5]), "its environment is not"),
        (lambda d: d["environment"].update(grad_seconds="x"), "grad_seconds of its environment"),
        (lambda d: d["functions"][0].update(rewrites={"a": 5}), "a record of the optimizer"),
        (lambda d: d["functions"][0]["compile"].update(total=-1.0), "a time of compiling"),
        (lambda d: d["functions"][0]["applys"][0]["output_arrays"][0].update(dtype="floatx"),
         "'floatx' is no dtype"),
        (lambda d: d["functions"][0]["applys"][0]["output_arrays"][0].update(
            shape=[-1], strides=[8]),
         "is below zero"),
        (lambda d: d["functions"][0]["applys"][0]["output_arrays"][0].update(strides=[8, 8, 8]),
         "has . dimensions and 3 strides"),
    ],
)  # fmt: skip
def test_figures_that_cannot_be(whole, change, message):
    with pytest.raises(ProfileFormatError, match=f"is not a valid profile: .*{message}"):
        Profile.from_json(hostile(json.loads(whole.to_json()), change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop("kind"), "a record of the optimizer"),
        (lambda r: r.update(seconds="1"), "a record of the optimizer"),
        (lambda r: r.update(passes={}), "a record of the optimizer"),
        (lambda r: r["passes"].append(5), "a record of the optimizer"),
        (lambda r: r["passes"][0].pop("rules"), "a record of the optimizer"),
        (lambda r: r["passes"][0].update(rules=[{"name": "x"}]), "a record of the optimizer"),
        (lambda r: r["passes"][0].update(counts={"rounds": 1}), "a record of the optimizer"),
        (lambda r: deepen(r["passes"][0], 60), "nested more than 50 deep"),
    ],
)
def test_records_of_the_optimizer_that_cannot_be_printed(whole, change, message):
    data = json.loads(whole.to_json())
    change(data["functions"][0]["rewrites"])
    with pytest.raises(ProfileFormatError, match=f"is not a valid profile: .*{message}"):
        Profile.from_json(json.dumps(data))


def deepen(record, n):
    """Put a copy of a pass into itself, n times."""
    leaf = {**record, "passes": []}
    for _ in range(n):
        leaf = {**record, "passes": [leaf]}
    record["passes"] = [leaf]


def test_a_number_beyond_all_numbers(whole):
    with pytest.raises(ProfileFormatError, match=r"0000\.\.\. is too large"):
        Profile.from_json(hostile(json.loads(whole.to_json()), lambda d: d.update(x=10**400)))
    digits = hostile(json.loads(whole.to_json()), lambda d: d.update(message="9" * 400))
    assert Profile.from_json(digits).message == "9" * 400
    text = whole.to_json().replace('"optimizer": ', '"optimizer": 1e999, "x": ', 1)
    with pytest.raises(ProfileFormatError, match="1e999 is too large a number"):
        Profile.from_json(text)


def test_texts_do_not_move_the_cursor_and_end(sample):
    evil = "\x1b]0;title\x07\r\u202eab\x00\ud800"
    text = hostile(json.loads(sample.to_json()), lambda d: d.update(message=evil))
    assert Profile.from_json(text).message == r"\x1b]0;title\x07\r\u202eab\x00\ud800"
    text = hostile(json.loads(sample.to_json()), lambda d: d.update(message="x" * 2_000_000))
    with pytest.raises(ProfileFormatError, match="shorter"):
        Profile.from_json(text)


def test_an_error_quotes_little(sample):
    with pytest.raises(ProfileFormatError) as raised:
        Profile.from_json(changed(sample, version="9" * 100_000))
    assert len(str(raised.value)) < 200


# --- the schema -----------------------------------------------------------------------------------


def test_the_schema_is_one_and_fits(whole):
    """fastjsonschema refuses a schema that is none; the JSON of a profile fits ours."""
    check = fastjsonschema.compile(schema())
    check(json.loads(whole.to_json()))
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        check({"format": FORMAT, "version": VERSION})


def test_every_field_is_described():
    def objects(part):
        if "properties" in part:
            yield part
        for inner in part.get("properties", {}).values():
            yield from objects(inner)
        if isinstance(part.get("items"), dict):
            yield from objects(part["items"])

    found = list(objects(schema()))
    assert len(found) == 15
    for one in found:
        assert set(one["required"]) <= set(one["properties"])
        assert one["description"]
    (applys,) = [one for one in found if "op_key" in one["properties"]]
    assert applys["properties"]["reads"]["description"].startswith("for each input the position of")
    assert not [name for name, part in applys["properties"].items() if "description" not in part]


def test_what_has_its_default_is_left_out_and_comes_back(whole):
    data = json.loads(whole.to_json())
    apply = data["functions"][0]["applys"][0]
    assert {"position", "op", "count"} <= set(apply) and "device" not in apply
    again = Profile.from_json(json.dumps(data))
    assert again == whole and again.functions[0].applys[0].device == ""


def test_importing_opwise_does_not_import_the_schema_checker():
    import subprocess

    code = "import opwise, sys; sys.exit('fastjsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_share_of_calls_is_from_0_to_1(build):
    apply, _, _ = build
    for share in (-0.1, 2, float("nan")):
        with pytest.raises(ValueError, match="A share of calls is a number from 0 to 1, not "):
            apply("exp", 5).quantile(share)


def test_the_repr_says_what_was_called_and_how_long(build):
    apply, new, _ = build
    made = new(apply("exp", 2_000_000, 0, count=4), name="f", calls=4)
    assert repr(made.applys[0]) == "<ApplyProfile 0 exp(x): 4 runs, 0.002 s>"
    assert repr(made) == f"<FunctionProfile f: 1 Apply, 4 calls, {made.call_ns * 1e-9:.4g} s>"
    others = tuple(dataclasses.replace(made, name=f"g{k}") for k in range(9))
    assert repr(Profile((made,), "f")).startswith("<Profile of f: 4 calls, ")
    assert repr(Profile((made, *others), "all")).startswith(
        "<Profile of all (f, g0, g1, g2 and 6 more): 40 calls, "
    )
    assert repr(Profile()) == "<Profile of no function: 0 calls, 0 s>"
    assert (
        max(
            map(
                len,
                map(repr, (Profile((made, *others)), dataclasses.replace(made, name="x" * 999))),
            )
        )
        < 200
    )


def test_the_repr_of_stats_counts_calls():
    stats = ProfileStats(atexit_print=False, message="mine")
    assert repr(stats) == "<ProfileStats of mine (no function): 0 calls, 0 s>"
