"""Measured limits of the processor: plausible figures, and no second measurement."""

import json
import os
import stat
from dataclasses import replace

import pytest

from opwise.hardware import cpu
from opwise.linkers import kernelcache, opwise_c
from opwise.profiling.machinelimits import MachineLimits

pytestmark = pytest.mark.null

KIB = 1 << 10

#: short, and in little memory
QUICK = {"duration": 0.01, "largest": 128 * KIB}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setattr(kernelcache, "folder", lambda: str(tmp_path))
    return tmp_path


@pytest.fixture
def probes(monkeypatch):
    """A list that grows with every measurement."""
    calls, measure = [], cpu.measure

    def counted(*args):
        calls.append(args)
        return measure(*args)

    monkeypatch.setattr(cpu, "measure", counted)
    return calls


def test_what_is_measured():
    found = cpu.measure(**QUICK)
    assert [size for size, _ in found.one] == [16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB]
    assert [size for size, _ in found.all] == [128 * KIB]
    assert all(rate > 0 for _, rate in (*found.one, *found.all))
    assert [(p.dtype, p.fused) for p in found.peaks] == [
        ("float32", False), ("float32", True), ("float64", False), ("float64", True)
    ]  # fmt: skip
    assert all(p.one > 0 and p.all > 0 for p in found.peaks)
    assert found.step_ns > 0 and 0 < found.quiet <= 1
    assert (found.probe, found.threads) == (cpu.VERSION, opwise_c.threads())
    assert found.vectors == opwise_c.VECTORS and found.processor and found.processors >= 1
    assert list(found.caches) == sorted(found.caches)
    assert MachineLimits.from_json(found.to_json()) == found


def test_all_threads_share_what_is_large(monkeypatch):
    asked = []

    def stream(memory, size, together, seconds):
        asked.append((size, together))
        return 1.0

    monkeypatch.setattr(opwise_c, "probe_stream", stream)
    found = cpu.measure(duration=0.01, largest=2 << 20)
    assert [size for size, _ in found.all] == [1 << 20, 2 << 20]
    assert {size for size, together in asked if together} == {1 << 20, 2 << 20}
    assert len(asked) == 3 * (8 + 2)


def test_rates_are_of_the_arrays_that_were_asked_for():
    memory = bytearray(16 * KIB + opwise_c.PROBE_SLACK)
    for size in (1, 100, 16 * KIB):
        assert opwise_c.probe_stream(memory, size, False, 0.0) > 0
    for size in (0, -1, 16 * KIB + 1):
        with pytest.raises(ValueError, match="do not fit"):
            opwise_c.probe_stream(memory, size, False, 0.0)


def test_a_machine_is_measured_once(folder, probes):
    first = cpu.limits(**QUICK)
    assert cpu.limits(**QUICK) == first
    assert len(probes) == 1
    (path,) = folder.iterdir()
    assert not stat.S_IMODE(os.stat(path).st_mode) & 0o077
    cpu.limits(refresh=True, **QUICK)
    assert len(probes) == 2


@pytest.mark.parametrize("damage", ["", "{", "short", "another"])
def test_a_damaged_file_is_measured_again(folder, probes, damage):
    first = cpu.limits(**QUICK)
    (path,) = folder.iterdir()
    text = {
        "short": first.to_json()[:-20],
        "another": replace(first, processor="another").to_json(),
    }.get(damage, damage)
    path.write_text(text)
    found = cpu.limits(**QUICK)
    assert len(probes) == 2
    assert json.loads(path.read_text())["processor"] == found.processor == cpu.processor()
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("resources.available", lambda: 10**6), ("processor", lambda: "another"),
        ("VERSION", 10**6),
    ],
)  # fmt: skip
def test_another_machine_has_another_file(folder, probes, monkeypatch, name, value):
    cpu.limits(**QUICK)
    monkeypatch.setattr(f"opwise.hardware.cpu.{name}", value)
    cpu.limits(**QUICK)
    assert len(probes) == 2 and len(list(folder.iterdir())) == 2


def test_another_number_of_threads_has_another_file(folder, probes, flags):
    cpu.limits(**QUICK)
    flags(threads=opwise_c.threads() + 1)
    try:
        found = cpu.limits(**QUICK)
        assert found.threads == opwise_c.threads()
        assert len(probes) == 2 and len(list(folder.iterdir())) == 2
    finally:
        flags(threads=0)
        cpu.resources.obey_flags()


def test_a_folder_that_cannot_be_written_to_costs_a_measurement(tmp_path, probes, monkeypatch):
    monkeypatch.setattr(kernelcache, "folder", lambda: str(tmp_path / "missing"))
    for _ in range(2):
        assert cpu.limits(**QUICK).one
    assert len(probes) == 2


def test_caches_as_the_system_tells_them(tmp_path):
    told = [("1", "Data", "32K"), ("1", "Instruction", "64K"), ("3", "Unified", "2M"),
            ("2", "Unified", "512K"), ("4", "Unified", "?")]  # fmt: skip
    for k, (level, kind, size) in enumerate(told):
        index = tmp_path / f"index{k}"
        index.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (index / name).write_text(text + "\n")
    (tmp_path / "index9").mkdir()
    assert cpu._caches(tmp_path) == [32 << 10, 512 << 10, 2 << 20]
    assert cpu._caches(tmp_path / "missing") == []
