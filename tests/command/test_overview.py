"""The tables of ``opwise report``."""

from dataclasses import replace

import pytest

from opwise.profiling.memory import Live, MemoryProfile
from opwise.profiling.profile import ArrayProfile, OriginProfile, Profile
from opwise.profiling.roofline import Machine, Peak

MACHINE = Machine(
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
        "time ms share runs us a run median 95 % GB/s GFLOP/s of limit gain ms in id Apply"
    )
    assert [row[-1] for row in rows] == ["sort(x)", "exp(x)", "mul(x)"]
    assert rows[1][-2] == "/far/a.py:3"
    assert rows[0][:4] == ["5.000", "62.5%", "4", "1250.000"] and rows[0][-3:-1] == ["Py", "2"]
    assert rows[2][:4] == ["1.000", "12.5%", "4", "250.000"]
    assert rows[2][6:] == ["0.1", "0.3", "3%", "arithmetic", "0.968", "C", "1", "mul(x)"]


def test_sorted_by_what_there_is_to_gain(shown):
    rows = section(shown("--sort", "gain"), "Applys")[1:]
    assert rows[0][-1] == "mul(x)"


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
    assert [row[-1] for row in section(lines, "Scopes")[1:]] == ["scope)", "layer", "layer/grad"]


def test_the_rest(shown):
    lines = shown("-n", 1)
    assert lines[0].startswith("all: 1 function, 4 calls, ")
    assert "Applys (the first 1 of 3)" in lines
    assert any(line.endswith("sort: no C implementation") for line in lines)
    assert any(line.startswith("Memory at its peak: 16 B while f ran mul(x)") for line in lines)


def test_a_profile_of_nothing(call, tmp_path):
    Profile().save(tmp_path / "p.json")
    result = call("report", tmp_path / "p.json")
    assert (result.exit_code, result.output) == (
        0, "0 functions, 0 calls, 0.000000 s in them, 0.000000 s in Applys\n"
    )  # fmt: skip
