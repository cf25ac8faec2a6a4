"""Profile: plain data, and its JSON form."""

import dataclasses
import json

import pytest

from opwise.profiling.profile import VERSION, Profile


def test_json_gives_an_equal_profile(build):
    apply, function, _ = build
    profile = Profile(
        (function(apply("add", 5, lines=[("a.py", 3)]), apply("mul", 7, 1, keys=["k"])),),
        message="m",
        environment={"python": "3"},
    )
    again = Profile.from_json(profile.to_json())
    assert again == profile
    assert again.functions[0].applys[0].lines == (("a.py", 3),)


def test_another_version_is_refused():
    text = json.dumps({"version": VERSION + 1, "functions": []})
    with pytest.raises(ValueError, match=f"version {VERSION + 1}"):
        Profile.from_json(text)


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
