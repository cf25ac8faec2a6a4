"""Where the program was: samples of the whole of it, its tree and time line, what shows them."""

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from opwise.errors import ProfileFormatError
from opwise.graph import callstack
from opwise.profiling import aggregate
from opwise.profiling.html import profiledata
from opwise.profiling.merge import merge
from opwise.profiling.model import CallFrame, ProgramProfile
from opwise.profiling.profile import CallProfile, Profile
from opwise.profiling.reports import details

#: sampled until enough samples were there, however fast the machine is
PROGRAM = """
    import sys
    from importlib import import_module

    def sampled(line):
        nodes = import_module("opwise.graph.callstack").samples()[2]
        return sum(row[5] for row in nodes if row[0] and row[0].co_name == line)

    def prepare():
        while "opwise" not in sys.modules or sampled("prepare") < 5:
            import opwise

    prepare()
    import numpy as np, opwise, opwise.tensor as T

    x = T.dmatrix("x")
    f = opwise.function([x], T.exp(x).sum(), name="f")

    def evaluate(values):
        while sampled("evaluate") < 20:
            f(values)

    evaluate(np.ones((700, 700)))
"""


def run(text, folder, *options, name="program.py", environment=None):
    """Run a program under the command; return (its Profile, what it printed)."""
    (folder / name).write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, "-m", "opwise", "run", "--no-limits", "-o", "p.json", *options, name],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Profile.load(folder / "p.json"), done.stdout


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    return run(PROGRAM, tmp_path_factory.mktemp("program"))[0]


# --- samples --------------------------------------------------------------------------------------


def lines(profile):
    """Return {text of a line, or name of a library: its nodes in the tree}."""
    found = {}
    for _, node in aggregate.sampled_tree(profile).walk():
        text = profile.sources.get(f"{node.frame.file}:{node.frame.line}", node.frame.library)
        found.setdefault(text, []).append(node)
    return found


def test_lines_have_the_time_of_what_they_called(profile):
    (call,) = lines(profile)["evaluate(np.ones((700, 700)))"]
    called = [node for node in call.calls.values() if node.frame.function == "evaluate"]
    # the line makes the array too
    own = sum(
        rest + in_calls
        for key, rest, in_calls in profile.program.stacks
        if aggregate.sampled_path(profile, key) == (call.frame,)
    )
    assert own + sum(node.ns for node in call.calls.values()) == call.ns
    texts = {profile.sources[f"{n.frame.file}:{n.frame.line}"] for n in called}
    assert texts == {'while sampled("evaluate") < 20:', "f(values)"}
    assert lines(profile)["prepare()"][0].rest > 0


def test_calls_of_functions_are_told_apart(profile):
    called = sum(node.called for node in lines(profile)["f(values)"])
    (f,) = profile.functions
    # the two are measured by the same readings of the clock
    assert called == pytest.approx(f.call_ns, rel=0.01)
    assert aggregate.sampled_tree(profile).called == called


def test_all_time_is_counted_once(profile):
    program = profile.program
    tree = aggregate.sampled_tree(profile)
    assert tree.ns == program.ns == sum(rest + called for _, rest, called in program.stretches)
    whole = profile.environment["seconds_of_process"] * 1e9
    # the kernel counts in ticks of 10 ms, and looks a little later
    assert 0 < program.ns < program.ns + program.before_ns <= whole + 3e7


def test_opwise_is_a_library(profile):
    libraries = {node.frame.library for _, node in aggregate.sampled_tree(profile).walk()}
    assert "opwise" in libraries
    files = [n.frame.file for _, n in aggregate.sampled_tree(profile).walk() if n.frame.file]
    assert {Path(file).name for file in files} == {"program.py"}


def test_calls_are_on_the_time_line(profile):
    (f,) = profile.functions
    data = profiledata.of_profile(profile)["program"]
    assert len(data["calls"]) == len(f.detail) > 0
    assert all(0 < start < data["ns"] for _, start, _, _ in data["calls"])
    boxes = [box for box in aggregate.time_line(profile) if box.frame.file]
    (evaluate,) = [box for box in boxes if "evaluate(np" in profile.sources[_place(box.frame)]]
    # a look tells where the program was when a stretch ended: the box may begin or end one off
    looks = [0, *accumulate(rest + called for _, rest, called in profile.program.stretches)]
    begin = max((at for at in looks if at < evaluate.start), default=0)
    last = evaluate.start + evaluate.rest + evaluate.called
    end = min((at for at in looks if at > last), default=last)
    assert all(begin < start < end for _, start, _, _ in data["calls"])


def _place(frame):
    return f"{frame.file}:{frame.line}"


def test_the_program_sees_what_it_sees_without(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import sys; sys.own = True")
    text = """
        import os, sys, threading
        import opwise
        print([sys.own, threading.active_count(), os.environ["PYTHONPATH"],
               "OPWISE_SAMPLING_PERIOD" in os.environ, "startup" in " ".join(sys.path)])
        opwise.function([], opwise.tensor.constant(1))()
    """
    path = os.pathsep.join([str(tmp_path / "mine"), os.environ.get("PYTHONPATH", "")])
    profile, out = run(text, tmp_path, environment={"PYTHONPATH": path})
    assert out == f"{[True, 1, path, False, False]}\n"
    assert profile.program is not None


def test_without_sampling(tmp_path):
    text = "import opwise; opwise.function([], opwise.tensor.constant(1))()"
    assert run(text, tmp_path, "--no-sampling")[0].program is None
    assert run(text, tmp_path, "--flags", "profiling.sampling=0")[0].program is None
    profile, _ = run(text, tmp_path, "--flags", "profiling.sampling=2.5")
    assert profile.program.period_ns == 2_500_000


def test_forks_have_samples_of_their_own(tmp_path):
    text = """
        import os, warnings
        warnings.simplefilter("error")  # Python 3.12 warns of threads that are there at a fork
        import opwise
        from opwise.graph import callstack

        def samples(function):
            return sum(r[5] for r in callstack.samples()[2] if r[0] and r[0].co_name == function)

        def parent():
            while samples("parent") < 3: pass

        def child():
            while samples("child") < 3: pass

        parent()
        reading, writing = os.pipe()
        number = os.fork()
        if not number:
            child()
            os.write(writing, f"{samples('parent')} of the parent".encode())
            os._exit(0)
        os.waitpid(number, 0)
        before = samples("again")
        def again():
            while samples("again") < before + 3: pass
        again()  # the parent is looked at as before
        print(os.read(reading, 99).decode())
        opwise.function([], opwise.tensor.constant(1))()
    """
    _, out = run(text, tmp_path)
    assert out == "0 of the parent\n"


def test_a_period_is_positive():
    with pytest.raises(ValueError, match="the period of sampling must be positive"):
        callstack.start_sampling(0)


# --- a profile with times that are known ----------------------------------------------------------


@pytest.fixture
def made(build):
    """A program that loads for 4 s, then calls a function that takes 3 of 5 s."""
    apply, a_function, _ = build
    second = 1_000_000_000
    frames = {
        "main": CallFrame("a.py", 1, "<module>"),
        "load": CallFrame("a.py", 7, "load", "main"),
        "numpy": CallFrame("numpy.py", 3, "read", "load", "numpy"),
        "deep": CallFrame("numpy.py", 9, "parse", "numpy", "numpy"),
        "train": CallFrame("a.py", 2, "<module>"),
    }
    program = ProgramProfile(
        period_ns=10_000_000, start_ns=100, before_ns=second // 4,
        stacks=(("load", second, 0), ("deep", 3 * second, 0), ("train", 2 * second, 3 * second)),
        stretches=((0, second, 0), (1, 3 * second, 0), (2, 2 * second, 3 * second)),
    )  # fmt: skip
    function = replace(
        a_function(apply("exp", 3000, 0), calls=1),
        detail=(CallProfile(1, 100 + 5 * second, (3000,)),),
    )
    sources = {"a.py:1": "data = load()", "a.py:2": "train(data)", "a.py:7": "return read(name)"}
    return Profile((function,), "of a test", {}, sources, frames=frames, program=program)


def test_the_tree_as_text(made):
    assert details.sampled(made, 9) == [
        "Where the program was, looked at every 10 ms: <seconds> <share> <of which in functions> "
        "<line>",
        "       5.000   55.6%   60.0%  a.py:2  train(data)",
        "       4.000   44.4%       -  a.py:1  data = load()",
        "       4.000   44.4%       -    a.py:7 load  return read(name)",
        "       3.000   33.3%       -      [numpy]",
    ]
    assert details.sampled(made, 2)[-1] == "  ... and 2 more lines of over 1%"
    assert details.sampled(replace(made, program=None), 9) == []


def test_the_time_line(made):
    second = 1_000_000_000
    boxes = [
        (box.frame.line or box.frame.library, box.depth, box.start // second, box.rest // second)
        for box in aggregate.time_line(made)
    ]
    assert boxes == [("numpy", 2, 1, 3), (7, 1, 0, 4), (1, 0, 0, 4), (2, 0, 4, 2)]
    assert len(list(aggregate.time_line(made, least=4 * second))) == 3


def test_recursion_is_one_line(made):
    again = CallFrame("a.py", 7, "load", "load")
    frames = {**made.frames, "again": again, "numpy": replace(made.frames["numpy"], caller="again")}
    assert aggregate.sampled_tree(replace(made, frames=frames)) == aggregate.sampled_tree(made)


def test_the_data_of_the_page(made):
    data = profiledata.of_profile(made)
    program, texts = data["program"], data["texts"]
    second = 1_000_000_000
    assert program["ns"] == 9 * second and program["before"] == second // 4
    assert program["calls"] == [[0, 5 * second, 3000, 1]]
    rows = [(depth, ns // second, called // second) for depth, ns, called, *_ in program["rows"]]
    assert rows == [(0, 5, 3), (0, 4, 0), (1, 4, 0), (2, 3, 0)]
    (library,) = [row for row in program["rows"] if row[4] < 0]
    assert texts[library[3]] == "[numpy]"
    assert profiledata.of_profile(replace(made, program=None))["program"] is None


def test_files_for_other_programs(made, tmp_path):
    made.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    found = {e["name"]: e for e in events if e.get("cat") == "program"}
    assert found["data = load()"]["dur"] == 4e6 and found["data = load()"]["ts"] == 0
    assert found["train(data)"]["args"]["in calls of functions"] == "60.0%"
    (call,) = [e for e in events if e.get("cat") == "call"]
    assert call["ts"] == 5e6  # on the same time line
    made.export_speedscope(tmp_path / "scope.json")
    data = json.loads((tmp_path / "scope.json").read_text())
    (view,) = [v for v in data["profiles"] if v["name"] == "program, by samples"]
    names = [frame["name"] for frame in data["shared"]["frames"]]
    stacks = {
        tuple(names[k] for k in stack): weight / 1e9
        for stack, weight in zip(view["samples"], view["weights"], strict=True)
    }
    assert stacks == {
        ("data = load()", "load"): 1,
        ("data = load()", "load", "[numpy]"): 3,
        ("train(data)",): 2,
        ("train(data)", "functions"): 3,
    }


def test_merged_profiles_have_the_sums(made):
    both = merge([made, replace(made, frames={**made.frames})])
    assert both.program.ns == 2 * made.program.ns and not both.program.stretches
    assert merge([made, replace(made, program=None)]).program == made.program
    assert details.sampled(both, 1)[1].split()[:2] == ["10.000", "55.6%"]


def test_files_keep_it_and_wrong_ones_are_refused(made, tmp_path):
    made.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == made
    for wrong, reason in (
        ({"period_ns": -1}, "below zero"),
        ({"stretches": ((5, 1, 1),)}, "a stack that is not there"),
    ):
        replace(made, program=replace(made.program, **wrong)).save(tmp_path / "wrong.json")
        with pytest.raises(ProfileFormatError, match=reason):
            Profile.load(tmp_path / "wrong.json")
