"""Calls of the program: as recorded, folded, summed up, compared, and shown as a tree."""

import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from opwise.profiling import aggregate, callpaths, compare
from opwise.profiling.html import differencedata, profiledata
from opwise.profiling.merge import merge
from opwise.profiling.model import CallFrame
from opwise.profiling.profile import OriginProfile, Profile
from opwise.profiling.reports import details

PROGRAM = """
    import numpy as np, opwise, opwise.tensor as T

    def dense(x, w):
        return T.tanh(T.dot(x, w))

    def model(x, w):
        h = dense(x, w)
        return dense(h, w) + dense(T.exp(h), w)

    x, w = T.dmatrices("xw")
    y = model(x, w)
    g = opwise.grad(y.sum(), w)
    f = opwise.function([x, w], [y, g], profile=True, name="f")
    f(np.ones((9, 9)), np.ones((9, 9)))
    f.profile.save("profile.json")
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    (folder / "train.py").write_text(textwrap.dedent(PROGRAM))
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Profile.load(folder / "profile.json")


def test_each_call_of_a_function_has_a_row(profile):
    rows = {str(row.key): row for row in aggregate.by_call(profile)}
    outer = "model < train.py:12"
    assert set(rows) >= {
        f"train.py:5 dense < train.py:8 {outer}", f"train.py:5 dense < train.py:9 {outer}",
        f"train.py:9 {outer}",
    }  # fmt: skip
    assert sum(row.ns for row in rows.values()) == pytest.approx(profile.local_ns)
    lines = {row.label: row for row in aggregate.by_line(profile)}
    (dense,) = [row for label, row in lines.items() if label.endswith("train.py:5")]
    twice = [row for label, row in rows.items() if label.startswith("train.py:5 ")]
    assert len(twice) == 2 and sum(row.ns for row in twice) == pytest.approx(dense.ns)
    assert any(row.gradient for row in twice)


def test_the_tree_adds_up(profile):
    tree = aggregate.call_tree(profile)
    assert tree.ns == pytest.approx(profile.local_ns)
    for _, node in tree.walk():
        assert node.ns == pytest.approx(node.own_ns + sum(c.ns for c in node.calls.values()))
    text = details.call_tree(profile, 20)
    assert text[0].startswith("By call: <seconds> <share>")
    depths = {line.split("  ")[-1]: len(line) - len(line.lstrip()) for line in text[1:]}
    assert "y = model(x, w)" in depths
    (model,) = [k for k, line in enumerate(text) if line.endswith("y = model(x, w)")]
    assert "train.py:8 model  h = dense(x, w)" in "".join(text[model:])


def test_a_program_without_functions_has_no_tree(build):
    apply, function, _ = build
    frames = {"a": CallFrame("a.py", 1, "<module>"), "b": CallFrame("a.py", 2, "<module>")}
    applys = [
        replace(apply(key, 5, k), origins=(OriginProfile(key, key, "a.py", k + 1, frame=key),))
        for k, key in enumerate("ab")
    ]
    assert details.call_tree(Profile((function(*applys),), frames=frames), 20) == []


def test_more_lines_are_counted(profile):
    text = details.call_tree(profile, 2)
    assert len(text) == 4 and text[-1].startswith("  ... and ")


LIBRARY = {
    "run": CallFrame("/lib/runner.py", 1, "run", library="runner"),
    "main": CallFrame("main.py", 2, "<module>", "run"),
    "fit": CallFrame("/lib/net/fit.py", 3, "fit", "main", "net"),
    "call": CallFrame("/lib/tools/call.py", 4, "call", "fit", "tools"),
    "loss": CallFrame("main.py", 5, "loss", "call"),
    "norm": CallFrame("/lib/net/norm.py", 6, "norm", "loss", "net"),
}


def test_libraries_are_folded():
    assert str(callpaths.path_of(LIBRARY, "norm")) == "[net] < main.py:5 loss < [net] < main.py:2"
    assert str(callpaths.path_of(LIBRARY, "run")) == "runner.py:1 run"
    assert str(callpaths.path_of(LIBRARY, "")) == "(unknown calls)"


def test_a_circle_of_calls_ends():
    frames = {"a": CallFrame("a.py", 1, "f", "b"), "b": CallFrame("a.py", 2, "g", "a")}
    assert len(callpaths.path_of(frames, "a").frames) == 2


def test_without_frames_a_call_is_a_line(build):
    apply, function, _ = build
    origin = OriginProfile("1", "exp", "a.py", 3)
    (row,) = aggregate.by_call(Profile((function(replace(apply("exp", 5), origins=(origin,))),)))
    assert (row.label, row.ns) == ("a.py:3", 5)


def test_calls_are_compared_by_their_texts(profile):
    """Lines that were inserted before change no row."""

    def moved(frame):
        return replace(frame, line=frame.line + 7)

    lines = {}
    for place, text in profile.sources.items():
        file, _, line = place.rpartition(":")
        lines[f"{file}:{int(line) + 7}"] = text
    other = replace(
        profile, sources=lines, frames={key: moved(one) for key, one in profile.frames.items()}
    )
    rows = compare.by_call(profile, other)
    assert all(row.mine is not None and row.theirs is not None for row in rows)
    assert len(rows) == len(aggregate.by_call(profile))


def test_merged_profiles_have_the_calls_of_all(profile):
    assert merge([profile, profile]).frames == profile.frames
    one, two = dict(list(profile.frames.items())[:1]), dict(list(profile.frames.items())[1:])
    parts = [replace(profile, frames=one), replace(profile, frames=two)]
    assert merge(parts).frames == profile.frames


def test_pages_have_a_table_of_calls_that_are_known(profile):
    (table,) = profiledata.of_profile(profile)["tables"]
    assert len(table["call"]["key"]) == len(aggregate.by_call(profile))
    unknown = replace(profile, frames={})
    (table,) = profiledata.of_profile(unknown)["tables"]
    assert "call" not in table and "line" in table
    assert "Call" in differencedata.tables([unknown], [profile])
    assert "Call" not in differencedata.tables([unknown], [unknown])
