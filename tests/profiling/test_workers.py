"""Profiles of several workers: merged, compared with each other, printed."""

import io
from dataclasses import replace

import pytest

from opwise.distributed import Wait, WorkerProfile, WorkersProfile
from opwise.profiling.profile import Profile
from opwise.profiling.reports.workers import sections
from opwise.profiling.workers import named_apart

pytestmark = pytest.mark.null


@pytest.fixture
def found(build):
    """Three workers, of which the second is slow, and the third did not run the second Apply."""
    an_apply, a_function, profile = build

    def worker(name, exp, dot, **times):
        applys = [
            an_apply("exp", exp, 0, count=2, lines=(("a.py", 3),)),
            an_apply("dot", dot, 1, count=2 if dot else 0),
        ]
        function = a_function(*applys, name="train", calls=2, call_ns=10_000_000)
        return WorkerProfile(name, profile((function,)), **times)

    workers = (
        worker("worker 0", 4000, 8000, seconds=2.0, computing=0.5, receiving=0.25, waiting=1.0,
               tasks=7),
        worker("worker 1", 8000, 24000, seconds=2.0, computing=1.75, tasks=9, lost=True),
        worker("worker 2", 5000, 0, seconds=1.0, computing=1.5, tasks=2),
    )  # fmt: skip
    waits = (
        Wait("worker 0", "worker 1", "opwise-train-sum", 0.25, 2),
        Wait("worker 0", "worker 1", "opwise-train", 0.75, 5),
    )
    return WorkersProfile(workers, waits)


def test_the_merged_profile_has_the_sums(found):
    (function,) = found.profile().functions
    assert (function.calls, [a.total for a in function.applys]) == (6, [17000, 32000])
    assert [a.count for a in function.applys] == [6, 4]
    assert isinstance(found.profile(), Profile)
    assert found.records()[0]["calls"] == 6


def test_the_spread(found):
    dot, exp = found.spread()
    assert (dot.apply.op, dot.function) == ("dot", "train")
    assert dot.means == (("worker 0", 4000), ("worker 1", 12000))
    assert (dot.least, dot.median, dot.most, dot.ratio) == (4000, 8000, 12000, 3)
    assert dot.slowest == exp.slowest == "worker 1"
    assert (exp.least, exp.median, exp.most, len(exp.means)) == (2000, 2500, 4000, 3)


def test_functions_that_differ_are_not_compared(found, build):
    an_apply, a_function, profile = build
    other = WorkerProfile("other", profile((a_function(an_apply("exp", 100, 0), name="train"),)))
    assert len(replace(found, workers=(*found.workers, other)).spread()) == 3


def test_an_apply_without_time(build):
    an_apply, a_function, profile = build
    worker = WorkerProfile("one", profile((a_function(an_apply("exp", 0)),)))
    (row,) = WorkersProfile((worker,)).spread()
    assert row.ratio is None


def test_the_time_that_remains(found):
    assert [w.without_task for w in found.workers] == [0.25, 0.25, 0.0]
    assert [w.calls for w in found.workers] == [2, 2, 2]


def test_the_text(found):
    assert (
        sections(found)
        == """\
Workers: <seconds> <computing> <receiving> <waiting> <without a task> <tasks> <calls> <seconds in
    calls> <worker>
      2.000      0.500      0.250      1.000      0.250        7        2      0.010  worker 0
      2.000      1.750      0.000      0.000      0.250        9        2      0.010  worker 1, lost
      1.000      1.500      0.000      0.000      0.000        2        2      0.010  worker 2
  receiving: the input of the next task was on its way from another worker
  waiting: another worker computed the input of the next task
  without a task: there was none, or the scheduler had not sent it yet

Who waits for whom: <seconds> <share of the worker's time> <times> <worker> <task>
      0.750   37.5%        5  worker 0 waits for worker 1: opwise-train
      0.250   12.5%        2  worker 0 waits for worker 1: opwise-train-sum

Applys on each worker: <% time> <least µs a run> <median> <most> <most / least> <#workers> <#runs>
    <slowest worker> <line> <Apply>
    65.3%      4.000      8.000     12.000    3.00    2        4  worker 1  -  dot(x)
    34.7%      2.000      2.500      4.000    2.00    3        6  worker 1  a.py:3  exp(x)
""".splitlines()
    )


def test_rows_beyond_the_limit(found):
    text = "\n".join(sections(found, 1))
    assert "... (2 more workers)" in text
    assert "... (1 more row: 0.250 s)" in text
    assert "... (1 more Apply: 0.000 s)" in text
    file = io.StringIO()
    found.summary(file, n=1)
    assert file.getvalue() == text + "\n"
    with pytest.raises(ValueError, match="n is 0"):
        found.summary(n=0)


def test_nothing_was_recorded(capsys):
    WorkersProfile().summary()
    assert capsys.readouterr().out.splitlines() == [
        "Workers: none has run a task", "", "Who waits for whom: no worker has waited for another",
        "", "Applys on each worker: none was timed",
    ]  # fmt: skip
    assert WorkersProfile().profile() == Profile()


def test_names_are_told_apart():
    assert named_apart(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]


def test_files_of_each_worker(found, tmp_path):
    paths = found.save_each(tmp_path / "new")
    assert [p.name for p in paths] == [f"worker-{k}.profile.json" for k in range(3)]
    assert [Profile.load(p) for p in paths] == [w.profile for w in found.workers]
