"""The search for cliffs: its programs, its model, and what it reports."""

import json
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from benchmark.cliffs import __main__ as command
from benchmark.cliffs import measure, model
from benchmark.cliffs.grow import FAMILIES, grow, neighbours
from benchmark.cliffs.measure import Timing
from benchmark.cliffs.programs import OPERATIONS, Leaf, Program, Statement
from opwise.profiling.machinelimits import MachineLimits, Peak

#: 10 bytes a nanosecond up to a megabyte, 5 beyond; two threads are twice as fast
LIMITS = MachineLimits(
    1, "test", 2, 2, "none", (1 << 20,), ((1 << 10, 10.0), (1 << 20, 10.0), (1 << 21, 5.0)),
    ((1 << 10, 20.0), (1 << 21, 10.0)), (Peak("float64", True, 10.0, 20.0),), 10.0, 1.0,
)  # fmt: skip


def programs(count, seed=5, most=2.5):
    rng = Random(seed)
    return [grow(rng, most) for _ in range(count)]


def test_a_seed_gives_the_same_programs_of_every_family():
    found = programs(300)
    assert found == programs(300)
    assert found != programs(300, seed=6)
    assert {family for family, _ in found} == set(FAMILIES)
    assert {s.name for _, p in found for s in p.statements} <= set(OPERATIONS)
    layouts = {leaf.layout for _, p in found for leaf in p.leaves}
    assert {"plain", "strided", "broadcast", "reversed"} <= layouts


@pytest.mark.c
@pytest.mark.parametrize("family", FAMILIES)
def test_opwise_and_numpy_agree(family):
    rng = Random(11)
    for _ in range(3):
        program = FAMILIES[family](rng, 2.0)
        timing = measure.measure(program, LIMITS, duration=0.0)
        assert min(timing.opwise, timing.numpy, timing.model) > 0, str(program)


def test_results_that_differ_are_reported():
    good, bad = [np.ones(3)], [np.array([1, 1, 1.1])]
    assert measure.agree(good, good, {"float32"})
    assert not measure.agree(good, bad, {"float32"})
    assert not measure.agree(good, [np.ones(4)], {"float64"})
    assert measure.agree([np.array([np.nan, np.inf])], [np.array([np.nan, np.inf])], {"float64"})
    assert measure.agree([np.array([1.0, 2.0])], [np.array([np.nan, 2.0])], {"float64"})
    assert not measure.agree([np.array([np.nan, 2.0])], [np.array([1.0, 2.0])], {"float64"})


def cost(leaves, *statements, outs):
    program = Program(tuple(leaves), statements, outs)
    return model.cost(program, program.numeric_values(program.arrays()))


def test_the_model_counts_bytes_and_work():
    square = Leaf("float64", (100, 100))
    one = cost([square, square], Statement("add", (0, 1)), outs=(2,))
    assert one.bytes == one.footprint == 3 * 80_000
    two = cost([square, square], Statement("add", (0, 1)), Statement("mul", (2, 1)), outs=(3,))
    assert (two.bytes, two.work) == (one.bytes, 2 * one.work)
    folded = cost([square], Statement("sum", (0,), (0,)), outs=(1,))
    assert folded.bytes == 80_000 + 800
    stored = cost([square], Statement("cumsum", (0,), (0,)), Statement("square", (1,)), outs=(2,))
    assert stored.bytes == 80_000 * 4
    same = cost([replace(square, layout="broadcast")], Statement("square", (0,)), outs=(1,))
    assert same.bytes == 8 + 80_000
    apart = cost([replace(square, layout="strided")], Statement("square", (0,)), outs=(1,))
    assert apart.bytes == 3 * 80_000


def test_the_model_is_bound_by_memory_or_by_work():
    start = model.CALL + 2 * model.ARGUMENT + model.STEP
    moved = model.Cost(bytes=1e4, work=1e-9, footprint=1e4, steps=1, arguments=2)
    assert model.seconds(moved, LIMITS) == pytest.approx(start + 1e-6)
    busy = replace(moved, work=1e-3)
    assert model.seconds(busy, LIMITS) == pytest.approx(start + 1e-3)
    assert model.seconds(busy, LIMITS, threads=2) == pytest.approx(start + 5e-4 + model.WAKE)
    # waking a thread does not pay
    assert model.seconds(moved, LIMITS, threads=2) == model.seconds(moved, LIMITS)


def test_neighbours_differ_by_one_step():
    x, row = Leaf("float32", (30, 4)), Leaf("float32", (1, 4))
    program = Program((x, row), (Statement("mul", (0, 1)),), (2,))
    found = dict(neighbours(program))
    assert list(found) == [
        "float64 for float32", "length 31 for 30 of axis 0", "length 5 for 4 of axis 1",
        "one operand more",
    ]  # fmt: skip
    longer = found["length 5 for 4 of axis 1"]
    assert [leaf.shape for leaf in longer.leaves] == [(30, 5), (1, 5)]
    more = found["one operand more"]
    assert more.statements == (Statement("mul", (0, 1)), Statement("add", (3, 2)))
    assert more.outs == (4,) and more.leaves == (x, row, x)
    assert measure.jump(Timing(1, 1, 1), Timing(6, 1, 2)) == 3
    assert measure.jump(Timing(6, 1, 2), Timing(1, 1, 1)) == 3


def test_slow_programs_are_made_smaller(monkeypatch):
    """What is slow here is tanh; everything else goes."""
    leaves = (Leaf("float64", (9,), "strided"), Leaf("float64", (9,)))
    statements = (Statement("add", (0, 1)), Statement("tanh", (2,)), Statement("exp", (3,)))
    program = Program(leaves, statements, (4, 2))

    assert program.is_comparable() and program.reason() is None
    assert not replace(program, outs=(0,)).is_comparable()
    pair = Leaf("complex64", (9,))
    assert replace(program, leaves=(pair, pair)).reason() is not None

    def measured(candidate, limits, threads=1):
        slow = any(s.name == "tanh" for s in candidate.statements)
        return Timing(10.0 if slow else 0.5, 1.0, 1.0)

    monkeypatch.setattr(measure, "measure", measured)
    first = measured(program, LIMITS)
    found, timing = measure.shrink(program, first, LIMITS, attempts=100)
    assert found.statements == (Statement("tanh", (0,)),)
    assert [leaf.layout for leaf in found.leaves] == ["plain"]
    assert timing.is_slow and timing.excess == 10


def test_only_slow_programs_are_written_as_text():
    fast, slow = Timing(1.0, 2.0, 1.0), Timing(3.0, 2.0, 2.0)
    program = Program((Leaf("float64", (3,)),), (Statement("tanh", (0,)),), (1,))
    search = SimpleNamespace(
        timings=[("fused", program, fast), ("fused", program, slow)], jumps=[], wrong=[], refused=[]
    )
    results = command._results(SimpleNamespace(seed=1, threads=1), {}, search)
    assert results["timings"] == {"fused": [[1.0, 2.0, 1.0], [3.0, 2.0, 2.0]]}
    assert results["slow"] == [
        {"family": "fused", "opwise": 3.0, "numpy": 2.0, "model": 2.0, "program": str(program)}
    ]


@pytest.mark.c
def test_the_command_reports_and_writes_what_it_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command.cpu, "limits", lambda: LIMITS)
    path = tmp_path / "results.json"
    given = ["--programs", "12", "--most", "100", "--seed", "2", "--minutes", "0.5", "--json"]
    assert command.main([*given, str(path)]) == 0
    results = json.loads(path.read_text())
    timings = [row for rows in results["timings"].values() for row in rows]
    assert len(timings) >= 8 and results["wrong"] == []
    assert all(len(row) == len(results["columns"]) for row in timings)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{len(timings)} programs, ") for line in lines)
    assert sum(line.startswith("all ") for line in lines) == 1
    assert "too slow, the smallest programs first" in lines
