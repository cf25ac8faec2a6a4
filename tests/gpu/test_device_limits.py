"""Peak rates of a device: how they are measured, kept and reported."""

import contextlib
import io
import json
import os
import subprocess
import sys
from dataclasses import replace

import emulated
import numpy as np
import pytest
from click.testing import CliRunner

import opwise
import opwise.tensor as T
from opwise import ProfileMode
from opwise.command import main, measuring
from opwise.command import run as command_run
from opwise.command.programs import Ended
from opwise.gpu.runtime import device
from opwise.gpu.runtime import device_peaks as probe
from opwise.hardware import cpu as host
from opwise.profiling import merge, roofline
from opwise.profiling.html import profiledata
from opwise.profiling.machinelimits import MachineLimits, Peak
from opwise.profiling.profile import ArrayProfile, Profile
from opwise.profiling.reports import details
from opwise.profiling.reports import roofline as text

#: 1000 GB/s, 50,000 GFLOP/s, and 2 microseconds for whatever it is
DEVICE = MachineLimits(
    probe.VERSION, "a device", 132, 1, "", (), ((1 << 30, 1000.0),), ((1 << 30, 1000.0),),
    (Peak("float32", True, 50_000.0, 50_000.0),), 2000.0, 1.0,
)  # fmt: skip
SMALL = 1 << 16


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    return emulated.install(monkeypatch)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder for what is measured, beside the kernels, and short products."""
    kept = tmp_path / "measured"
    kept.mkdir()
    monkeypatch.setattr(probe, "_LENGTHS", (8, 16))
    monkeypatch.setattr(probe, "_MOST", SMALL)
    monkeypatch.setattr(probe.kernelcache, "folder", lambda: str(kept))
    monkeypatch.setattr(host, "known", lambda: None)
    return kept


@pytest.fixture
def measured(monkeypatch):
    """A list that grows with every measurement."""
    calls, measure = [], probe.measure

    def counted(*args):
        calls.append(args)
        return measure(*args)

    monkeypatch.setattr(probe, "measure", counted)
    return calls


# --- the probe ------------------------------------------------------------------------------------


def test_measured_rates():
    """The clock of the emulated device goes on by a millisecond with each mark."""
    found = probe.measure(device.device(), largest=SMALL)
    each = 1e6 / probe._REPEATS
    assert found.one == found.all == ((SMALL, SMALL / each),)
    assert [(p.dtype, p.fused, p.one) for p in found.peaks] == [
        (dtype, True, pytest.approx(2 * 16**3 / 0.5e6)) for dtype in ("float32", "float64")
    ]
    assert (found.step_ns, found.processors, found.threads) == (1e6, 4, 1)
    assert found.processor == "an emulated device"
    assert MachineLimits.from_json(found.to_json()) == found


def test_long_products_are_the_last(monkeypatch):
    monkeypatch.setattr(probe, "_LONG", 1000)
    first, _ = probe.measure(device.device(), largest=SMALL).peaks
    assert first.one == pytest.approx(2 * 8**3 / 0.5e6)
    monkeypatch.setattr(probe, "_LONG", 10**9)
    first, _ = probe.measure(device.device(), largest=1000).peaks  # a second product has no room
    assert first.one == pytest.approx(2 * 8**3 / 0.5e6)


def test_a_device_is_measured_once(folder, measured):
    there = device.device()
    assert probe.known(there) is None and not measured
    first = probe.limits(there)
    assert [path.name for path in folder.iterdir()] == ["device-an-emulated-device.json"]
    assert probe.limits(there) == probe.known(there) == first and len(measured) == 1
    slower = replace(first, one=((SMALL, 1e-6),), all=((SMALL, 1e-6),), step_ns=9e9)
    next(folder.iterdir()).write_text(slower.to_json())
    again = probe.limits(there, refresh=True)
    assert again == replace(first, times=2) and len(measured) == 2
    next(folder.iterdir()).write_text(json.dumps({"format": "something else"}))
    assert probe.limits(there) == first and len(measured) == 3


def test_the_process_that_measures(folder, measured, monkeypatch, capsys):
    probe.main([])
    assert not measured and capsys.readouterr() == ("{}\n", "")
    probe.main(["cuda0"])
    printed = capsys.readouterr()
    assert "measuring peak bandwidth and FLOP/s of an emulated device..." in printed.err
    assert len(measured) == 1
    text = json.loads(printed.out)["cuda0"]
    assert MachineLimits.from_json(text) == probe.known(device.device())
    probe.main(["cuda0"])
    assert capsys.readouterr() == (printed.out, "") and len(measured) == 1
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(device, "_devices", {})
    probe.main(["cuda0"])
    printed = capsys.readouterr()
    assert printed.out == "{}\n" and "cannot measure cuda0: The GPU needs CuPy" in printed.err


# --- profiles -------------------------------------------------------------------------------------


def test_a_profile_has_measured_rates(measured):
    mode = ProfileMode("cupy", "fast_run")
    x = T.fmatrix("x")
    f = opwise.function([x], T.exp(T.dot(x, x)), mode=mode)
    f(np.ones((6, 6), "float32"))
    assert mode.profile().devices == () and not measured  # nobody asked for it
    assert not details.limits(mode.profile(), 5)
    found = probe.limits(device.device())
    profile = mode.profile()
    assert profile.devices == (("cuda0", found),)
    assert Profile.from_json(profile.to_json()) == profile
    assert merge.merge([profile, replace(profile, devices=())]).devices == profile.devices
    rows = {row.text.split("(")[0]: row for row in roofline.rows(profile, None)}
    dot = rows["Dot22"]
    # two arrays read, one written; the step that does nothing is the longest of all here
    best = max(3 * 144 / found.one[0][1], 2 * 6**3 / found.peaks[0].one) + found.step_ns
    assert (dot.seconds, dot.attainable) == (1e-3, pytest.approx(best * 1e-9))
    assert (dot.bound, dot.gain) == ("overhead", pytest.approx(0))
    assert rows["GpuFromHost"].share is rows["HostFromGpu"].share is None


@pytest.fixture
def profile(build):
    """On the device two products and two loops; a transfer, and an Apply on the host."""
    apply, function, _ = build
    array = ArrayProfile("float32", (1000, 1000), (4000, 4), 4_000_000)

    def one(op, us, position, traffic, flops, **more):
        made = apply(op, 1000 * us, position, count=10)
        more = {"device": "cuda0", **more}
        arrays = {"output_arrays": (array,), "shares": ("c",)}
        return replace(made, traffic=traffic, flops=flops, **arrays, **more)

    applys = (
        one("Dot22", 5000, 0, 12_000_000, 2 * 10**9),
        one("exp", 100, 1, 8_000_000, 10**6),
        one("tiny", 50, 2, 8, 1),
        one("sort", 70, 3, 8_000_000, None),
        one("GpuFromHost", 900, 4, 8_000_000, 0, transfer=True),
        one("take", 300, 5, 8_000_000, 10**6, device=""),
    )
    return Profile((function(*applys, calls=10),), devices=(("cuda0", DEVICE),))


def test_times_against_bytes_and_operations(profile):
    rows = {row.text: row for row in roofline.rows(profile, None)}
    dot, exp, tiny = (rows[f"{name}(x)"] for name in ("Dot22", "exp", "tiny"))
    # 2 GFLOP at 50,000 GFLOP/s: 40 us; 12 MB at 1000 GB/s: 12 us; and 2 us for the step
    assert dot.attainable == pytest.approx(42e-6) and dot.bound == "arithmetic"
    assert dot.share == pytest.approx(42 / 500) and dot.gain == pytest.approx(4580e-6)
    assert exp.attainable == pytest.approx(10e-6) and exp.bound == "memory"
    assert exp.share == pytest.approx(1) and exp.gain == 0
    assert tiny.bound == "overhead" and tiny.attainable == pytest.approx(2e-6, rel=1e-3)
    for name in ("sort", "GpuFromHost", "take"):
        assert rows[f"{name}(x)"].gain is None
    assert rows["GpuFromHost(x)"].bandwidth == pytest.approx(8_000_000 / 90_000)


def test_rates_of_another_device_are_not_used(profile):
    other = replace(profile, devices=(("cuda1", DEVICE),))
    assert all(row.gain is None for row in roofline.rows(other, None))


def test_the_text(profile):
    lines = details.limits(profile, 2)
    assert lines[2:6] == [
        "  Device cuda0: a device, 132 multiprocessors",
        "  Memory bandwidth (copy on the device): 1000.0 GB/s",
        "  Peak of float32, products: 50000.0 GFLOP/s",
        "  Overhead of one kernel (a copy of one element): 2000 ns",
    ]
    assert next(line for line in lines if "Dot22(x)" in line).split() == [
        *(
            "0.004580s",
            "0.005000s",
            "10",
            "24.0",
            "device",
            "4000.0",
            "8.4%",
            "arithmetic",
            "0",
            "Dot22(x)",
        )
    ]
    both = text.section(profile, DEVICE, 2)
    assert both[2].startswith("  Hardware: ") and any("Device cuda0" in line for line in both)


def test_the_page(profile):
    found, told = profiledata.limits(profile)
    assert {limit["position"] for limit in found} == {0, 1, 2}
    assert told == {
        "bandwidth": [], "peaks": {"cuda0, float32": 50_000.0}, "devices": {"cuda0": 1000.0}
    }  # fmt: skip
    shown = profiledata.of_profile(profile, found, told)["roofline"]
    assert [value for _, value in shown["devices"]] == [1000.0]


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def call(monkeypatch):
    monkeypatch.setattr(measuring.processor, "known", lambda: DEVICE)
    monkeypatch.setattr(measuring.processor, "limits", lambda refresh: DEVICE)
    return lambda *args: CliRunner().invoke(main.main, list(map(str, args)))


def test_report_measures_anew_where_it_is_asked_to(call, profile, tmp_path, measured, monkeypatch):
    path = tmp_path / "p.json"
    replace(profile, devices=()).save(path)
    assert "Device cuda0" not in call("report", "--form", "text", path).output and not measured
    shown = call("report", "--form", "text", "--limits", path)
    assert "  Device cuda0: an emulated device, 4 multiprocessors\n" in shown.output
    assert len(measured) == 1 and "of limit" in call("report", "--limits", path).output
    # where the device is not, it is as it was recorded
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(device, "_devices", {})
    profile.save(path)
    shown = call("report", "--form", "text", "--limits", path).output
    assert "cannot measure cuda0: The GPU needs CuPy" in shown
    assert "  Device cuda0: a device, 132 multiprocessors\n" in shown


@pytest.fixture
def ran(call, profile, monkeypatch, tmp_path):
    """Call a function that runs ``opwise run`` of a program that writes ``profile``.

    The process that measures is played by this one. Returns (the profile that was written, the
    (arguments, flags) of processes that measured).
    """
    processes, path = [], tmp_path / "p.json"

    def ended(program, environment, live):
        assert not processes  # only after the program
        ended.profile.save(path)
        return Ended(0, ended.interrupted)

    def started(command, env, **more):
        assert command[:3] == [sys.executable, "-m", "opwise.gpu.runtime.device_peaks"]
        processes.append((command[3:], env["OPWISE_FLAGS"].split(",")))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            probe.main(command[3:])
        return subprocess.CompletedProcess(command, 0, printed.getvalue())

    unknown = replace(profile, devices=())

    def run(*options, profile=unknown, interrupted=False):
        ended.profile, ended.interrupted = profile, interrupted
        (tmp_path / "p.py").write_text("")
        call("run", *options, "-o", path, tmp_path / "p.py")
        return Profile.load(path), processes

    monkeypatch.setattr(command_run, "_run", ended)
    monkeypatch.setattr(measuring.subprocess, "run", started)
    return run


def test_run_measures_what_the_program_used_after_it(ran, measured):
    found, processes = ran("--flags", "floatX=float32")
    assert [(name, one.processor) for name, one in found.devices] == [
        ("cuda0", "an emulated device")
    ]
    ((arguments, flags),) = processes
    assert arguments == ["cuda0"] and len(measured) == 1
    assert {"floatX=float32", "print_active_device=False"} <= set(flags)
    assert "profile=True" not in flags


@pytest.mark.parametrize("why", ["not wanted", "interrupted", "known", "of the CPU"])
def test_run_measures_no_device_without_need(ran, measured, profile, why):
    options = ["--no-limits"] if why == "not wanted" else ["--flags", "device=cuda"]
    more = {"profile": profile} if why == "known" else {}
    if why == "of the CPU":
        on_cpu = tuple(replace(a, device="") for a in profile.functions[0].applys)
        functions = (replace(profile.functions[0], applys=on_cpu),)
        more = {"profile": replace(profile, functions=functions, devices=())}
    found, processes = ran(*options, interrupted=why == "interrupted", **more)
    assert not processes and not measured
    assert found.devices == (profile.devices if why == "known" else ())


def test_run_without_the_device_that_was_used(ran, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(device, "_devices", {})
    found, processes = ran()
    assert len(processes) == 1 and found.devices == ()


def test_the_process_that_measures_without_a_device(tmp_path):
    """It says why it cannot, and ends well: the program itself says the same where it must."""
    environment = {**os.environ, "OPWISE_FLAGS": f"base_compiledir={tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-m", "opwise.gpu.runtime.device_peaks", "cuda7"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stdout == "{}\n", done.stderr
    assert "cannot measure cuda7: " in done.stderr
