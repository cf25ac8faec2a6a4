"""The benchmark suite: its workloads compute what they say, its numbers and tables add up."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmark import rows
from benchmark.processes import FAILED, LATE
from benchmark.suite import __main__ as program
from benchmark.suite import check, contenders, measure, report
from benchmark.suite.contenders.base import Contender
from benchmark.suite.contenders.symbolic import Opwise
from benchmark.suite.limits import Bandwidth, Limits, better
from benchmark.suite.results import (
    DECLINED,
    MISSING,
    OK,
    WRONG,
    Line,
    Outcome,
    Run,
)
from benchmark.suite.workload import Least
from benchmark.suite.workloads import WORKLOADS

SMALL = measure.Settings(rounds=2, compile=[], small=True)
LIMITS = Limits(
    call=1e-8,
    flops={"float32": 2e9, "float64": 1e9},
    memory=[Bandwidth(2**10, 4e9, 2e9, 1e9), Bandwidth(2**20, 1e9, 5e8, 8e8)],
)


# --- workloads ------------------------------------------------------------------------------------


@pytest.mark.c
@pytest.mark.parametrize("name", WORKLOADS)
def test_opwise_and_numpy_agree(name, flags):
    flags(floatX="float64")  # the contender sets it, the end of the test sets it back
    workload = WORKLOADS[name].reduced()
    contender = Opwise("opwise", "FAST_RUN")
    contender.load(workload)
    step = contender.build()
    got = check.of_contender(contender, step, step())
    assert check.difference(workload, got, check.expected(workload)) == ""


@pytest.mark.null
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_declaration_is_sound(name):
    workload = WORKLOADS[name]
    small = workload.reduced()
    data = small.data()
    assert name == workload.name and workload.what
    assert not data.inputs.keys() & data.state.keys()
    kinds = {workload.dtype, "int32", "int64", "bool"}  # the dtype of floats, or of results
    kinds |= {"float64"} if workload.dtype.startswith("int") else set()
    assert {v.dtype.name for v in data.all.values()} <= kinds
    assert all(np.array_equal(v, small.data().all[k]) for k, v in data.all.items())  # seeded
    least = small.least(check.expected(small).outputs)
    assert (least.read > 0) == bool(data.all) and least.written > 0 and least.flops >= 0


@pytest.mark.null
def test_random_numbers_are_compared_by_their_moments():
    draw = np.random.default_rng(1).normal
    exact = draw(size=10_000)
    assert check.moments_difference(draw(size=10_000), exact) == ""
    assert "mean" in check.moments_difference(draw(0.2, size=10_000), exact)
    assert "standard deviation" in check.moments_difference(draw(scale=1.2, size=10_000), exact)
    assert "mean" in check.moments_difference(exact * np.nan, exact)


def least_of(name):
    workload = WORKLOADS[name].reduced()
    return workload.least(check.expected(workload).outputs)


@pytest.mark.null
def test_bytes_and_flops_by_hand():
    # 4 rows, 7 features, 10 classes: x, y, w, b; then w, b, cost. Two products.
    read = (4 * 7 + 4 + 7 * 10 + 10) * 8
    assert least_of("logistic-f64") == Least(read, (7 * 10 + 10 + 1) * 8, 2 * 2 * 4 * 7 * 10)
    # A batch of 4, 7 features, 10 hidden, 10 classes: xw, hv; h'g, gv', x'g.
    assert least_of("mlp-batch20-f32").flops == 2 * 4 * (2 * 7 * 10 + 3 * 10 * 10)
    # 4 blocks of 7 x 10: three products each, but for the first.
    assert least_of("blocks-1000").flops == (3 * 4 - 1) * 2 * 7 * 10 * 10
    # 4 x 7 numbers, then 1, 7 and 4.
    assert least_of("squares-all") == Least(28 * 8, 8, 0)
    assert least_of("max-axis0") == Least(28 * 8, 7 * 8, 0)
    assert least_of("max-axis0-transposed") == Least(28 * 8, 4 * 8, 0)
    # Two of the rows, all their cache lines; 1, 3 and 2 results.
    assert least_of("mean-all-strided") == Least(2 * 7 * 8, 8, 0)
    assert least_of("mean-axis0-strided") == Least(2 * 7 * 8, 3 * 8, 0)
    assert least_of("mean-axis1-strided") == Least(2 * 7 * 8, 2 * 8, 0)
    # 10 rows of 7 numbers, and their indices.
    assert least_of("take-rows") == Least(10 * 8 + 10 * 7 * 4, 10 * 7 * 4, 0)
    assert least_of("take-rows-grad") == Least(10 * 8 + 2 * 10 * 7 * 4, (10 * 7 + 1) * 4, 0)


@pytest.mark.null
def test_what_differs_is_told():
    workload = replace(WORKLOADS["scalar-add"], dtype="float64")
    exact = check.Results([np.array(2.0)], {"w": np.array([1.0, 1e-12])})

    def told(output=2.0, state=(1.0, 1e-12)):
        got = check.Results([np.asarray(output)], {"w": np.asarray(state)})
        return check.difference(workload, got, exact)

    assert told() == ""
    assert told(2 + 1e-9) == ""
    assert told(state=(1.0, 0.0)) == ""  # next to the other number it is nothing
    assert "output 0 is off by" in told(2 + 1e-8)
    assert "output 0 is off by nan" in told(np.nan)
    assert "state w is off by" in told(state=(1.0, 1e-8))
    assert "shape (1,) instead of ()" in told([2.0])
    assert "dtype float32 instead of float64" in told(np.float32(2))


@pytest.mark.null
def test_results_survive_a_file(tmp_path):
    given = check.Results([np.arange(3.0), np.array(1.0)], {"w0": np.ones((2, 2))})
    given.save(tmp_path / "results.npz")
    got = check.Results.load(tmp_path / "results.npz")
    assert [a.tolist() for a in got.outputs] == [[0, 1, 2], 1]
    assert got.state["w0"].tolist() == [[1, 1], [1, 1]]


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.null
def test_the_limit_is_the_slowest_of_three():
    assert LIMITS.seconds(Least(8, 0, 1), "float64") == (1e-8, "call")
    assert LIMITS.seconds(Least(8, 8, 10**6), "float64") == (1e-3, "matrix")
    assert LIMITS.seconds(Least(8, 8, 10**6), "float32") == (5e-4, "matrix")
    seconds, bound = LIMITS.seconds(Least(3 * 2**19, 2**19, 0), "float64")
    # Beyond the largest footprint: two of three read and the written as a triad, past the caches.
    assert bound == "memory"
    assert seconds == pytest.approx(3 * 2**19 / 8e8 + 2**19 / 1e9)


@pytest.mark.null
def test_bandwidth_lies_between_those_measured():
    assert LIMITS.at(1) == LIMITS.at(2**10) == (4e9, 2e9)
    assert LIMITS.at(2**15) == pytest.approx((2.5e9, 1.4e9))
    assert LIMITS.at(2**30) == (1e9, 8e8)
    assert replace(LIMITS, memory=[]).seconds(Least(2**30, 0, 0), "float64") == (1e-8, "call")


@pytest.mark.null
def test_the_better_of_two_limits_counts():
    other = Limits(2e-8, {"float32": 1e9, "float64": 3e9}, [*LIMITS.memory])
    other.memory[1] = Bandwidth(2**20, 5e8, 6e8, 9e8)
    both = better(LIMITS, other)
    assert (both.call, both.flops) == (1e-8, {"float32": 2e9, "float64": 3e9})
    assert both.memory == [LIMITS.memory[0], Bandwidth(2**20, 1e9, 6e8, 9e8)]
    run = recorded()
    run.lines[0].flops = 6000
    run.limit(both)
    assert run.limits == both
    assert (run.lines[0].limit, run.lines[0].bound) == (pytest.approx(2e-6), "matrix")


# --- results and tables ---------------------------------------------------------------------------


def recorded():
    """Two workloads, and every way in which a contender can end."""

    def line(name, *outcomes):
        return Line(name, "what it is", "float64", {"n": 3}, 24, 8, 0, 1e-6, "memory", [*outcomes])

    first = line(
        "first",
        Outcome("opwise", OK, "", "", 0.25, 0.0125, 3e-5, 1000, [2e-6, 3e-6, 4e-6]),
        Outcome("opwise-profile", OK, "", "", 0.26, 0.0126, 4e-5, 1000, [3.3e-6]),
        Outcome("pytensor-numba", LATE, "over 9 s (compile)", "the end of its errors"),
        Outcome("pytensor-cvm", FAILED, "ValueError: no [way]", "traceback"),
        Outcome("jax", MISSING, "not installed: jax"),
        Outcome("numpy", OK, "", "", None, None, 5e-6, 500, [6e-6, 6e-6]),
        Outcome("numexpr", DECLINED, "no expression"),
        Outcome("torch", WRONG, "output 0 is off by 7 times what float64 allows"),
    )
    second = line("second", Outcome("opwise", FAILED, "KeyError: 'x'", "traceback"))
    return Run({"processor": "a fast one", "cores": "2"}, {"rounds": 3}, LIMITS, [first, second])


@pytest.mark.null
def test_json_and_back(tmp_path):
    path = tmp_path / "run.json"
    recorded().write(path)
    assert Run.read(path) == recorded()
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
    path.write_text(json.dumps({"format": 0}))
    with pytest.raises(ValueError, match="is not a result"):
        Run.read(path)


@pytest.mark.null
def test_recorded_text_is_short_and_has_a_line_for_each_outcome(tmp_path):
    run = recorded()
    run.lines[0].outcomes[0].samples[:] = [2.000049e-6, 1 / 3, 123456.789]
    run.write(tmp_path / "run.json")
    lines = (tmp_path / "run.json").read_text().splitlines()
    (own,) = (line for line in lines if '"contender": "opwise", "cold"' in line)
    assert own.endswith('"samples": [2e-06, 0.3333, 123500.0]},') and "details" not in own
    outcomes = sum(len(line.outcomes) for line in run.lines)
    assert sum('{"contender"' in line for line in lines) == outcomes == 9
    assert json.loads(rows.text([{"a": [{}, [1, {"b": []}]]}])) == [{"a": [{}, [1, {"b": []}]]}]


@pytest.mark.null
def test_ratios():
    first, second = recorded().lines
    assert first.profiled() == pytest.approx(1.1)
    assert first.best_peer().contender == "numpy"
    assert first.to_best() == pytest.approx(0.5)
    assert first.to_limit() == pytest.approx(3)
    assert first.of("opwise").spread == pytest.approx((2.2e-6, 3.8e-6))
    assert (second.profiled(), second.best_peer(), second.to_best(), second.to_limit()) == (
        None,
    ) * 4


@pytest.mark.null
def test_table():
    first, second = recorded().lines
    assert report.rows(first) == [
        ["first", "limit (memory)", "", "", "", "1.00 us", "", "", "", ""],
        [
            "",
            "opwise",
            "250 ms",
            "12.5 ms",
            "30.0 us",
            "3.00 us",
            "2.20 - 3.80",
            "",
            "0.50",
            "3.00",
        ],
        ["", "opwise-profile", "260 ms", "12.6 ms", "40.0 us", "3.30 us", "", "1.10", "", "3.30"],
        ["", "pytensor-numba", "", "", "", "over 9 s", "", "", "", ""],
        ["", "pytensor-cvm", "", "", "", "failed", "", "", "", ""],
        ["", "jax", "", "", "", "not installed", "", "", "", ""],
        ["", "numpy *", "", "", "5.00 us", "6.00 us", "6.00 - 6.00", "", "", "6.00"],
        ["", "torch", "", "", "", "wrong", "", "", "", ""],
    ]
    assert report.rows(second)[1][:6] == ["", "opwise", "", "", "", "failed"]
    assert all(len(row) == len(report.HEADINGS) for row in report.rows(first))
    assert report.details(recorded()) == [
        "first: pytensor-numba: over 9 s (compile)",
        "first: pytensor-cvm: ValueError: no [way]",
        "first: torch: output 0 is off by 7 times what float64 allows",
        "second: opwise: KeyError: 'x'",
        "not installed: jax",
    ]


@pytest.mark.null
def test_where_opwise_stands():
    assert report.standing(recorded()) == [
        "opwise is ahead of every peer in 1 of 1 workloads, at most 6% behind in 0, "
        "further behind in 0",
        "opwise / best peer, geometric mean: 0.50",
        "opwise / numpy, 1 workloads, geometric mean: 0.50",
    ]
    run = recorded()
    run.lines[0].of("numpy").samples[:] = [1.5e-6]
    assert report.standing(run)[0].endswith("further behind in 1: first 2.00")
    run.lines[0].of("numpy").samples[:] = [2.9e-6]
    assert "at most 6% behind in 1, further behind in 0" in report.standing(run)[0]
    run.lines.clear()
    assert report.standing(run) == report.changes(run) == []


@pytest.mark.null
def test_what_changed():
    run = recorded()
    assert report.changes(run) == []
    run.lines[0].outcomes.append(Outcome("opwise-before", samples=[2e-6]))
    assert run.lines[0].best_peer().contender == "numpy"  # an opwise is no peer
    assert report.changes(run) == [
        "opwise / opwise-before, 1 workloads, geometric mean: 1.50; more than 3% faster: 0, "
        "slower: 1: first 1.50"
    ]


@pytest.mark.null
def test_markdown():
    lines = report.markdown(recorded()).splitlines()
    head = "| workload | opwise | profile/fast_run | / best peer | / limit | compile cold | warm |"
    assert lines[0].startswith(head)
    assert lines[2].startswith("| first | 3.00 us | 1.10 | 0.50 | 3.00 | 250 ms | 12.5 ms |")
    assert lines[2].endswith(" over 9 s | failed | not installed | **6.00 us** | - | wrong |")
    assert lines[3].startswith("| second | failed |  |  |  |  |  |")
    assert len({line.count("|") for line in lines}) == 1


@pytest.mark.null
def test_parts_of_pages(tmp_path):
    run = replace(recorded(), machine=program.machine(()))
    run.lines[0].of("numpy").samples[:] = [1.5e-6]
    page, kept = tmp_path / "page.md", tmp_path / "run.json"
    marks = "".join(f"<!-- suite: {name} -->\nold\n<!-- /suite -->\n" for name in report.PARTS)
    page.write_text(f"Before\n{marks}after\n")
    run.write(kept)
    assert program.main(["--from-json", str(kept), "--pages", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("Before\n") and text.endswith("after\n") and "old\n" not in text
    words = " ".join(text.split())
    assert "is faster than every peer in 0 of 1 programs, at most 6% slower" in words
    assert "and slower than that in 1. By the geometric mean, a call takes 2.00 of" in words
    assert "| numpy | 1 | 2.00 |" in text and "| first | numpy | 2.00 |" in text
    assert "Compile cold: 250 ms in the median, 250 ms for first." in words
    assert report.markdown(run) in text
    assert report.filled(text, run) == text


@pytest.mark.null
@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300, "300 s"),
        (2.5, "2.50 s"),
        (0.1234, "123 ms"),
        (9.999e-3, "10.0 ms"),
        (1e-6, "1.00 us"),
        (3e-9, "3.00 ns"),
        (0.0, "0"),
        (None, ""),
    ],
)
def test_amounts(seconds, text):
    assert report.amount(seconds) == text


@pytest.mark.null
def test_a_kept_result_is_shown_again(tmp_path, capsys):
    recorded().write(tmp_path / "run.json")
    assert program.main(["--from-json", str(tmp_path / "run.json"), "--markdown"]) == 0
    assert capsys.readouterr().out == report.markdown(recorded()) + "\n"


@pytest.mark.null
def test_workloads_measured_again_take_the_place_of_the_old(tmp_path, monkeypatch):
    path, seen = tmp_path / "run.json", replace(recorded(), machine=program.machine(()))
    seen.write(path)
    new = replace(recorded().lines[1], what="measured again")
    monkeypatch.setattr(program, "line_of", lambda *_: new)
    monkeypatch.setattr(program, "machine", lambda _: dict(seen.machine, date="later"))
    monkeypatch.setattr(program, "asdict", lambda _: seen.settings)
    monkeypatch.setattr(program.limits, "measure", lambda: LIMITS)
    arguments = ["--json", str(path), "--again", "--only", "scalar-add", "--markdown"]
    kept = Run.read(path)
    kept.machine["opwise"] = "of another day"
    kept.write(path)
    assert program.main(arguments) == 0
    found = Run.read(path)
    assert [(each.name, each.what) for each in found.lines] == [
        ("first", recorded().lines[0].what), ("second", "measured again"),
    ]  # fmt: skip
    assert found.machine["measured again"].startswith("scalar-add: ")
    kept.machine["cores"] = "many"
    kept.write(path)
    with pytest.raises(SystemExit, match=r"run\.json was measured with cores many, this is "):
        program.main(arguments)
    monkeypatch.setattr(program, "asdict", lambda _: {"rounds": 99})
    kept.machine = Run.read(path).machine | {"cores": seen.machine["cores"]}
    kept.write(path)
    with pytest.raises(SystemExit, match="'rounds': 99"):
        program.main(arguments)


@pytest.mark.null
def test_again_needs_a_file(tmp_path):
    for more in ([], ["--json", str(tmp_path / "none.json")]):
        with pytest.raises(SystemExit, match="--again needs --json with the file of a run"):
            program.main(["--again", "--markdown", *more])


@pytest.mark.null
def test_choices():
    assert program.selected(["blocks-100"]) == ["blocks-100"]
    assert program.selected(["blocks", "scalar"]) == ["scalar-add", "blocks-100", "blocks-1000"]
    assert program.selected([]) == list(WORKLOADS)
    with pytest.raises(SystemExit, match="'nothing'"):
        program.selected(["nothing"])
    with pytest.raises(SystemExit, match="'nobody'"):
        program.known("opwise,nobody")


@pytest.mark.null
def test_what_is_needed_is_said_at_once(monkeypatch):
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(program, "measured", None)
    with pytest.raises(SystemExit, match=r"needs rich: pip install -r requirements/peers\.txt"):
        program.main([])
    with pytest.raises(SystemExit, match=r"--picture needs matplotlib"):
        program.main(["--markdown", "--picture", "suite.png"])


# --- processes ------------------------------------------------------------------------------------


def line_of(workload, names, settings, kept):
    return measure.line_of(WORKLOADS[workload], names, settings, LIMITS, kept)


@pytest.mark.c
def test_opwise_and_numpy_take_turns(tmp_path):
    settings = replace(SMALL, compile=["opwise"])
    line = line_of("logistic-f32", ["opwise", "numpy"], settings, tmp_path)
    for outcome in line.outcomes:
        assert (outcome.status, outcome.note) == (OK, "")
        assert len(outcome.samples) == 2 and min(outcome.samples) > 0
        assert outcome.calls > 0
    ours, numpys = line.outcomes
    assert ours.first > 0 and ours.cold is not None and ours.warm is not None
    assert numpys.first is numpys.cold is numpys.warm is None
    assert line.sizes == {"rows": 4, "features": 7, "classes": 10}
    assert line.best_peer().contender == "numpy"


@pytest.mark.c
def test_caches_are_shared_where_compilation_is_not_measured(tmp_path):
    for workload in "mix-1e3-f32", "mix-1e3-f64":
        line = line_of(workload, ["opwise", "numpy"], SMALL, tmp_path)
        assert [each.status for each in line.outcomes] == [OK, OK]
        assert line.of("opwise").cold is None
    assert {each.name for each in tmp_path.iterdir()} == {"opwise", "numpy"}
    assert any((tmp_path / "opwise").iterdir())


@pytest.mark.c
def test_another_checkout_takes_turns(monkeypatch, tmp_path):
    monkeypatch.setattr(program, "CONTENDERS", dict(contenders.CONTENDERS))
    chosen = program.with_before(measure.ROOT, ["opwise", "numpy"])
    assert chosen == ["opwise", "opwise-before", "numpy"]
    before = program.CONTENDERS["opwise-before"]
    monkeypatch.setitem(contenders.CONTENDERS, "opwise-before", before)
    line = line_of("mix-1e3-f32", chosen[:2], SMALL, tmp_path)
    assert [each.status for each in line.outcomes] == [OK, OK] and line.to_before() > 0
    assert before.declines(replace(WORKLOADS["mix-1e3-f32"], name="new")) != ""
    with pytest.raises(SystemExit, match="has no benchmark/suite"):
        program.with_before(tmp_path, ["opwise"])


@pytest.mark.null
def test_a_missing_contender_is_named(monkeypatch, tmp_path):
    absent = Contender("absent", needs=("no_such_module",))
    monkeypatch.setitem(contenders.CONTENDERS, "absent", absent)
    line = line_of("mix-1e3-f32", ["absent", "numpy"], SMALL, tmp_path)
    assert line.of("absent").status == MISSING
    assert line.of("numpy").status == OK
    run = replace(recorded(), lines=[line])
    assert report.rows(line)[1][1:6] == ["absent", "", "", "", "not installed"]
    assert report.details(run) == ["not installed: absent"]


@pytest.mark.null
def test_a_program_that_is_none_of_numexpr(monkeypatch, tmp_path):
    monkeypatch.setattr(contenders.CONTENDERS["numexpr"], "needs", ())
    line = line_of("softmax-f32", ["numexpr"], SMALL, tmp_path)
    assert line.of("numexpr").status == DECLINED
    assert len(report.rows(line)) == 1


@pytest.mark.null
def test_workers_that_fail(tmp_path):
    def ended(request):
        process = measure.worker("numpy", "scalar-add", tmp_path, SMALL)
        try:
            with pytest.raises(measure.Failed) as failed:
                request(process)
        finally:
            process.close()
        return failed.value

    failed = ended(lambda process: process.ask(60, "compile"))  # nothing was loaded
    assert failed.status == FAILED and failed.note.startswith("AttributeError: 'Numpy' object")
    assert "Traceback" in failed.details

    failed = ended(lambda process: process.ask(0, "load"))
    assert (failed.status, failed.note) == (LATE, "over 0 s (load)")

    def killed(process):
        process.process.kill()
        process.ask(60, "load")

    assert ended(killed).note.startswith("the process ended (SIGKILL)")


@pytest.mark.null
def test_flags_are_added_to_those_given():
    given = {"OPWISE_FLAGS": "a=1", "JAX_PLATFORMS": "gpu"}
    ours = {"OPWISE_FLAGS": "b=2", "JAX_PLATFORMS": "cpu"}
    assert measure.added(given, ours) == {"OPWISE_FLAGS": "a=1,b=2", "JAX_PLATFORMS": "cpu"}
