"""What a profile tells of a device: its times from events, transfers, what stayed on the host."""

import re
import time

import emulated
import numpy as np
import pytest
from click.testing import CliRunner

import opwise
import opwise.tensor as T
from opwise import Apply, ProfileMode
from opwise.command import main
from opwise.graph import target
from opwise.profiling import devices, tabular
from opwise.profiling.profile import Profile
from opwise.profiling.reports import details, device, profilestats, speedup
from opwise.tensor.extra_ops import Unique

X = np.random.RandomState(1).rand(6, 6).astype("float32")
WHY = "output size depends on the data: it would need a synchronisation"


@pytest.fixture(autouse=True)
def cupy(monkeypatch):
    return emulated.install(monkeypatch)


def run(linker, calls=4):
    """Return a ProfileMode under which a function with an Apply for the host was called."""
    mode = ProfileMode(linker, "fast_run")
    x, i = T.fmatrix("x"), T.lvector("i")
    different = Unique()(T.dot(x, x)[i].sum(axis=0))
    y = T.dot(different.dimshuffle(0, "x") + x, x).sum(axis=0)
    f = opwise.function([x, i], y, mode=mode, name="f")
    for _ in range(calls):
        f(X, [1, 0, 3, 2, 5, 4])
    return mode


def test_times_are_those_of_events():
    (f,) = run("cupy").profile().functions
    # each event of the emulated device is a millisecond after the one before
    for a in f.applys:
        if a.device:
            ns = 0 if "DimShuffle" in a.op else 1_000_000
            assert (a.device, a.count, a.total, a.on_host) == ("cuda0", 4, 4 * ns, "")
            assert (a.least, a.most) == (ns, ns) and a.asked > 0 and a.c
        else:
            assert a.on_host and not a.asked and not a.waited
    assert {a.op for a in f.applys if a.transfer} == {"GpuFromHost", "HostFromGpu"}
    assert [a.on_host for a in f.applys if a.op.startswith("Unique")] == [WHY]
    for call in f.detail:
        measured = [ns == 1_000_000 for ns in call.apply_ns]
        assert measured == [bool(a.device) and a.total > 0 for a in f.applys]


def test_waiting_counts_for_the_awaited_apply(monkeypatch):
    """Waiting for results, for error flags, and for events of work that nobody else awaits."""
    real = emulated.STREAM.synchronize

    def synchronize():
        time.sleep(0.002)
        real()

    monkeypatch.setattr(emulated.STREAM, "synchronize", synchronize)
    (f,) = run("cupy").profile().functions
    waited = {a.position for a in f.applys if a.waited}
    # the last kernel that may report an error runs before the first result
    assert waited == {a.position for a in f.applys if a.op == "HostFromGpu"}
    assert all(a.waited >= 4 * 2_000_000 for a in f.applys if a.waited)
    mode = ProfileMode("cupy", "fast_run")
    w = opwise.shared(X.copy())
    g = opwise.function([], updates=[(w, T.dot(w, w))], mode=mode)
    g()
    (told,) = mode.profile().functions
    assert [a.op for a in told.applys if a.waited] == ["Dot22"]


def test_the_section_on_devices():
    profile = run("cupy").profile()
    n = sum(bool(a.device) for a in profile.applys)
    crossing = [a for a in profile.applys if a.transfer]
    title, computing, transfers, told, *rows = device.section(profile, 30)
    numbers = [a.graph for a in profile.applys if a.graph]
    assert set(numbers) == {1, 2}, "before and behind what stays on the host"
    assert told == (
        "  profiling launches Applys one by one; without profiling, "
        f"{len(numbers)} of them take 2 launches of CUDA graphs"
    )
    assert title.startswith("On the device: ")
    assert float(computing.split()[0]) == pytest.approx(0.004 * (n - len(crossing) - 1))
    assert float(transfers.split()[0]) == pytest.approx(0.004 * len(crossing))
    moved = sum(4 * a.output_arrays[0].bytes for a in crossing)
    assert f"transfers: {moved / 1024:.4g} KiB, " in transfers
    at = rows.index("  Still on the host: <seconds> <Apply>: <why>")
    assert at == n and rows[at + 1].endswith(f": {WHY}")
    assert title in details.sections(profile, 5)
    assert not device.section(run("c|py").profile(), 5)


class Reversed(opwise.Op):
    """An Op that no table knows: the rows in the opposite order."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][::-1].copy()


@pytest.mark.parametrize("how", ["device=cuda", "the linker"])
def test_an_op_without_an_entry_runs_on_the_host_and_says_so(how):
    """It needs no entry: it runs there with the copies that it needs; both give the reason."""
    mode = opwise.Mode("cupy") if how == "the linker" else None
    x, w = T.fmatrix("x"), opwise.shared(X)
    y = T.dot(Reversed()(T.dot(x, w)), w).sum()
    with target.pinned("cpu" if mode else "cuda"):
        f = opwise.function([x], y, mode=mode, profile=True)
    np.testing.assert_allclose(f(X), ((X @ X)[::-1] @ X).sum(), rtol=1e-5)
    profile = f.profile.profile()
    (function,) = profile.functions
    (row,) = [a for a in function.applys if a.op == "Reversed"]
    assert (row.device, row.on_host) == ("", "Reversed has no GPU implementation")
    there, back = (a for a in function.applys if a.transfer and row.position in
                   (*a.reads, *(k for k in range(len(function.applys))
                                if a.position in function.applys[k].reads)))  # fmt: skip
    assert [a.op for a in (there, back)] == ["HostFromGpu", "GpuFromHost"]
    why = f"Reversed: {row.on_host}"
    assert [devices.why_transferred(function, a) for a in function.applys if a.transfer] == [
        "" if a not in (there, back) else why for a in function.applys if a.transfer
    ]
    lines = device.section(profile, 30)
    assert sum(line.endswith(f"for {why})") for line in lines) == 2
    assert any(line.endswith(f" Reversed(HostFromGpu.0): {row.on_host}") for line in lines)


def test_a_profile_keeps_times_of_the_device(tmp_path):
    profile = run("cupy").profile()
    profile.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == profile


def test_the_difference_of_cpu_and_gpu(capsys):
    cpu, gpu = run("c|py"), run("cupy")
    cpu.print_diff_summary(gpu)
    text = capsys.readouterr().out
    assert "times as fast" in text and "transfers, " in text
    assert text.index("CPU and GPU\n") < text.index("times as fast") < text.index("By line: ")
    assert re.search(rf"\(Unique.*\): {WHY}", text)
    # an Apply is one row, wherever it runs
    alone = [r for r in text.splitlines() if "only in" in r]
    assert alone and all("Gpu" in r for r in alone), alone
    # of transfers of arguments it is told which
    by_apply = text[text.index("\nBy Apply: ") :]
    assert "  GpuFromHost(x)\n" in by_apply and "  GpuFromHost(i)\n" in by_apply
    for mode in (cpu, gpu):
        mode.print_diff_summary(mode)
        assert "GPU" not in capsys.readouterr().out


def test_transfers_count_for_what_they_move():
    cpu, gpu = run("c|py").profile(), run("cupy").profile()
    ns = sum(a.total for a in gpu.applys if a.transfer)
    for by in ("line", "op", "class", "apply"):
        rows = devices.rows(by, cpu, gpu)
        assert sum(row.transfers for row in rows) == pytest.approx(ns)
        assert sum(row.with_device for row in rows) == pytest.approx(gpu.local_ns)
        assert sum(row.given for row in rows) == 8_000_000  # x and i, in each call
    # what sorts out stays on the host: its result goes to the device, the product comes home
    found = {row.label: row for row in devices.rows("op", cpu, gpu)}
    (unique,) = (row for label, row in found.items() if label.startswith("Unique"))
    assert unique.transfers == 4_000_000
    assert unique.left and not unique.device


def test_diff_shows_both_sides(tmp_path):
    paths = [tmp_path / "cpu.json", tmp_path / "gpu.json"]
    for path, linker in zip(paths, ("c|py", "cupy"), strict=True):
        run(linker).profile().save(path)
    shown = CliRunner().invoke(main.main, ["diff", *map(str, paths)]).output
    at = shown.index("\nCPU and GPU\n")
    assert [line.split(": ")[0] for line in shown[at:].splitlines() if line.startswith("By ")] == [
        *("By line", "By Op", "By type of Op", "By Apply")
    ]
    assert re.search(rf"Unique.*: {WHY}\n", shown[at:])
    shown = CliRunner().invoke(main.main, ["diff", str(paths[0]), str(paths[0])]).output
    assert "GPU" not in shown


def test_memory_of_both(flags):
    flags({"profile_memory": True})
    x = T.fmatrix("x")
    y = Unique()(T.exp(T.dot(x, x))) * 2
    f = opwise.function([x], [y, T.dot(x, x).sum()], mode=opwise.Mode("cupy"), profile=True)
    f(np.ones((64, 64), "float32"))
    profile = f.profile.profile()
    memory = profile.functions[0].memory
    matrix = 64 * 64 * 4
    assert matrix <= memory.host.peak < memory.device.peak <= memory.peak
    assert memory.device.peak >= 2 * matrix
    assert memory.host.total + memory.device.total == memory.total
    text = profilestats.summary(profile)
    block = text[text.index("    Max peak memory with current setting\n") :].splitlines()[1:4]
    shown = [int(line.split(": ")[1].split("KB")[0]) for line in block]
    assert shown == [round(m.peak / 1024) for m in (memory.host, memory.device, memory)]
    assert Profile.from_json(profile.to_json()) == profile


def test_records_and_tables_name_the_device(tmp_path):
    profile = run("cupy").profile()
    for row, a in zip(tabular.records(profile), profile.applys, strict=True):
        assert (row["device"], row["on_host"]) == (a.device, a.on_host)
        assert (row["seconds_asked"] > 0) == bool(a.device)
    profile.save(tmp_path / "p.json")
    shown = CliRunner().invoke(main.main, ["report", str(tmp_path / "p.json")]).output
    assert "\nOn the device: " in shown and f": {WHY}\n" in shown
    assert shown.count("  cuda0  ") == sum(bool(a.device) for a in profile.applys)


def test_differences_are_scaled_to_equal_calls():
    """Twice the calls on the device are not half the speed."""
    cpu = run("c|py").profile()
    few, many = (speedup.sentences(cpu, run("cupy", calls).profile()) for calls in (4, 8))
    # what ran on the device takes a millisecond in each call
    told = [line.split(" Applys on the GPU")[0] for line in (few[1], many[1])]
    assert told[0] == told[1]
    assert speedup.sentences(run("cupy").profile(), cpu)[0].endswith("times as fast")
