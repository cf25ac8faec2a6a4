"""CPU and GPU: what rows of either side took, whose a transfer is, and what is printed of it."""

from dataclasses import replace

import pytest

from opwise.profiling import compare, devices
from opwise.profiling.profile import Profile
from opwise.profiling.reports import speedup

A, B, C = (("net.py", line) for line in (3, 4, 7))
SOURCES = {"net.py:3": "h = T.dot(x, w)", "net.py:4": "y = T.exp(h)", "net.py:7": "z = y[i]"}
WHY = "it indexes with arrays"


@pytest.fixture
def cpu(build):
    apply, function, _ = build
    applys = (
        apply("Dot22", 800, 0, keys=["dot"], lines=[A]),
        apply("exp", 90, 1, keys=["exp"], lines=[B]),
        apply("take", 50, 2, keys=["take"], lines=[C]),
        apply("neg", 10, 3, keys=["neg"], lines=[C]),
    )
    return Profile((function(*applys),), sources=SOURCES)


@pytest.fixture
def gpu(build):
    """The same on a device: x goes there, exp comes back, take stays, and its result goes there."""
    apply, function, _ = build

    def transfer(op, ns, position, reads, keys=(), lines=()):
        made = apply(op, ns, position, keys=keys, lines=lines)
        return replace(made, device="cuda0", transfer=True, reads=(reads,))

    def there(*args, **told):
        return replace(apply(*args, **told), device="cuda0")

    applys = (
        transfer("GpuFromHost", 5, 0, -1),
        there("Dot22", 20, 1, keys=["dot"], lines=[A]),
        there("exp", 3, 2, keys=["exp"], lines=[B]),
        transfer("HostFromGpu", 7, 3, 2, keys=["exp>host"], lines=[B]),
        replace(apply("take", 40, 4, keys=["take"], lines=[C]), on_host=WHY),
        transfer("GpuFromHost", 11, 5, 4, keys=["take>device"], lines=[C]),
        there("neg", 2, 6, keys=["neg"], lines=[C]),
    )
    return Profile((function(*applys),), sources=SOURCES)


def table(by, cpu, gpu):
    return {
        row.label: (row.cpu, row.device, row.transfers, row.left)
        for row in devices.rows(by, cpu, gpu)
    }


def test_by_apply(cpu, gpu):
    expected = {
        "GpuFromHost": (0, 0, 5, 0),
        "Dot22": (800, 20, 0, 0),
        "exp": (90, 3, 7, 0),
        "take": (50, 0, 11, 40),
        "neg": (10, 2, 0, 0),
    }
    assert table("apply", cpu, gpu) == table("apply", gpu, cpu) == expected
    assert table("op", cpu, gpu) == table("op", gpu, cpu) == expected
    by_label = {row.label: row for row in devices.rows("apply", cpu, gpu)}
    assert by_label["exp"].speedup == 9 and by_label["take"].speedup == 50 / 51
    assert by_label["GpuFromHost"].speedup is None and by_label["GpuFromHost"].about_given
    assert {label: row.why for label, row in by_label.items() if row.why} == {"take": (WHY,)}
    assert [label for label, row in by_label.items() if row.about_given] == ["GpuFromHost"]


def test_by_line_and_class(cpu, gpu):
    assert table("line", cpu, gpu) == {
        "net.py:3": (800, 20, 0, 0),
        "net.py:4": (90, 3, 7, 0),
        "net.py:7": (60, 2, 11, 40),
        "(unknown line)": (0, 0, 5, 0),
    }
    assert table("class", cpu, gpu)["<class 'ops.exp'>"] == (90, 3, 7, 0)


@pytest.mark.parametrize("by", compare.GROUPINGS)
def test_each_time_is_in_one_row(cpu, gpu, by):
    rows = devices.rows(by, cpu, gpu)
    sums = [sum(part) for part in zip(*table(by, cpu, gpu).values(), strict=True)]
    assert sums == [950, 25, 23, 40]
    assert sum(row.with_device for row in rows) == gpu.local_ns and len(
        {r.key for r in rows}
    ) == len(rows)


def test_a_part_of_a_transfer_is_divided_as_what_it_moves(build, cpu, gpu):
    """Lines that are one loop on the device share what its result takes to come home."""
    apply, function, _ = build
    fused = replace(apply("loop", 8, 0, keys=["exp", "neg"], lines=[B, C]), device="cuda0")
    back = replace(
        apply("HostFromGpu", 6, 1, keys=["exp>", "neg>"], lines=[B, C]),
        device="cuda0", transfer=True, reads=(0,),
    )  # fmt: skip
    both = Profile((function(fused, back),), sources=SOURCES)
    rows = table("line", cpu, both)
    assert rows["net.py:4"] == (90, 4, 3, 0) and rows["net.py:7"] == (60, 4, 3, 0)
    (row,) = (r for r in devices.rows("apply", cpu, both) if r.device)
    assert (row.cpu, row.transfers, row.difference.relation) == (100, 6, "fused")


def test_for_as_many_calls(build, cpu, gpu):
    (function,) = gpu.functions
    twice = [replace(a, total=2 * a.total, count=2 * a.count) for a in function.applys]
    more = replace(gpu, functions=(replace(function, applys=tuple(twice), calls=2),))
    assert table("apply", cpu, more) == table("apply", cpu, gpu)
    assert table("apply", more, cpu)["exp"] == (180, 6, 14, 0)


def test_from_a_profile(cpu, gpu):
    assert cpu.compare_devices(gpu, by="op") == devices.rows("op", cpu, gpu)
    assert [r.speedup for r in cpu.compare_devices(gpu)][:2] == [40, 9]
    assert cpu.compare_devices(cpu) == []
    with pytest.raises(ValueError, match=r"by is 'ops'; it must be one of apply, op, class, line"):
        cpu.compare_devices(gpu, by="ops")
    with pytest.raises(TypeError, match="other is str"):
        cpu.compare_devices("gpu.json")


def test_two_of_the_cpu_or_of_a_device(cpu, gpu):
    for one in (cpu, gpu):
        assert devices.sides(one, one) is None
        assert devices.rows("line", one, one) == speedup.section(one, one, 5) == []
    assert devices.sides(gpu, cpu) == devices.sides(cpu, gpu) == (cpu, gpu)


def test_the_text(cpu, gpu):
    lines = speedup.section(cpu, gpu, 2)
    assert lines[:2] == ["CPU and GPU", "-----------"]
    assert lines[2:5] == [
        "0.000001 s on the CPU, 0.000000 s with the GPU: 10.80 times as fast",
        "  of these 0.000000 s in 3 Applys on the GPU, 0.000000 s in 3 transfers, 0.000000 s in 1 "
        "Apply still on the CPU",
        f"  still on the CPU: 0.000000 s in 1 Apply (take): {WHY}",
    ]
    columns = "<CPU seconds> <GPU seconds> <transfer seconds> <seconds still on the CPU> <speed-up>"
    at = lines.index(f"By line: {columns} <line>")
    assert lines[at + 1].split(maxsplit=5) == [
        *("0.000001", "0.000000", "0.000000", "0.000000", "40x"), "net.py:3  h = T.dot(x, w)",
    ]  # fmt: skip
    assert lines[at + 3] == "  ... (2 more: 0.000000 s on the CPU, 0.000000 s with the GPU)"
    text = "\n".join(speedup.section(cpu, gpu, 20))
    assert f"0.98x  net.py:7 take: {WHY}\n" in text
    assert "-  (arguments and shared variables)\n" in text
    assert "-  GpuFromHost (arguments and shared variables)\n" in text
    assert "-  GpuFromHost(x)\n" in text[text.index("By Apply: ") :]
    titles = ("By line", "By Op", "By type of Op", "By Apply")
    assert [line.split(":")[0] for line in lines if columns in line] == list(titles)
