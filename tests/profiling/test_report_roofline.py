"""The text against the machine's limit: every line of it, with figures that are known."""

# ruff: noqa: E501  (the lines are as long as what is printed)

from dataclasses import replace

from opwise.profiling.machinelimits import MachineLimits, Peak
from opwise.profiling.profile import ArrayProfile, Profile
from opwise.profiling.reports import roofline

MACHINE = MachineLimits(
    probe=1,
    processor="a processor",
    processors=4,
    threads=2,
    vectors="wide",
    caches=(32 << 10, 4 << 20),
    one=((16 << 10, 100.0), (64 << 20, 10.0)),
    all=((1 << 20, 80.0), (64 << 20, 18.0)),
    peaks=(Peak("float64", False, 10.0, 20.0), Peak("float64", True, 20.0, 40.0)),
    step_ns=50.0,
    quiet=1.0,
)


def sample(build):
    an_apply, a_function, _ = build
    out = ArrayProfile("float64", (1,), (8,), 8)
    counted = {"output_arrays": (out,), "shares": ("c",)}
    return Profile(
        (
            a_function(
                replace(an_apply("add", 2_000_000_000, 0, count=4), traffic=10**8, flops=10**7, **counted),
                replace(an_apply("exp", 1_000_000_000, 1, count=4), traffic=10**8, **counted),
                replace(an_apply("poly", 3_000_000, 2, count=1000), traffic=800, flops=20_000, **counted),
                an_apply("sort", 997_000_000, 3),
            ),
        )
    )  # fmt: skip


def test_every_line(build):
    assert roofline.section(sample(build), MACHINE) == [
        "Limits",
        "------",
        "  Hardware: a processor, 4 processors, 2 threads, vectors: wide",
        "  From main memory (RAM): 10.0 GB/s, all threads 18.0",
        "  From the L1 cache, 32 KiB: 100.0 GB/s",
        "  From the L2 cache, 4 MiB: 26.1 GB/s, all threads 62.4",
        "  Peak of float64, loops: 10.0 GFLOP/s, all threads 20.0",
        "  Peak of float64, products: 20.0 GFLOP/s, all threads 40.0",
        "  Overhead of one Apply (an empty step): 50 ns",
        "",
        "  <GB/s>: bytes that must be read and written, divided by the time; <from>: the nearest",
        "  memory that holds them; <share of limit>: the least time that this hardware needs, divided",
        "  by the time taken; <bound by>: what sets that limit; <gain>: the time beyond it",
        "<gain> <apply time> <#call> <GB/s> <from> <GFLOP/s> <share of limit> <bound by> <id> <Apply name>",
        "  1.977778s   2.000000s       4     0.2    RAM      0.0    1.1%     memory    0   add(x)",
        "  0.000950s   0.003000s    1000     0.3     L1      6.7   68.3% arithmetic    2   poly(x)",
        "          -   1.000000s       4     0.4    RAM        -       -          -    1   exp(x)",
        "          -   0.997000s       1       -      -        -       -          -    3   sort(x)",
        "   ... (remaining 0 Apply instances account for 0.00%(0.00s) of the runtime)",
        "  At the limit of the hardware, 1.979s of 4.000s would be saved (49.5%)",
        "  2 Applys have no count of bytes or operations: 1.997s (49.9%)",
        "",
    ]


def test_what_is_not_shown_is_summed(build):
    lines = roofline.section(sample(build), MACHINE, n=1)
    assert "   ... (remaining 3 Apply instances account for 50.00%(2.00s) of the runtime)" in lines
    assert "  At the limit of the hardware, 1.979s of 4.000s would be saved (49.5%)" in lines


def test_names_are_cut_where_the_line_ends(build):
    whole = [line for line in roofline.section(sample(build), MACHINE) if line.endswith("add(x)")]
    lines = roofline.section(sample(build), MACHINE, line_width=len(whole[0]) - 2)
    assert whole[0][:-2] in lines and whole[0] not in lines


def test_a_single_thread_and_unknown_caches(build):
    lines = roofline.machine_lines(replace(MACHINE, threads=1, processors=1, caches=()))
    assert lines[0] == "  Hardware: a processor, 1 processor, 1 thread, vectors: wide"
    assert not [line for line in lines if "all threads" in line or "the L1" in line]


def test_a_disturbed_probe_is_told():
    *_, last = roofline.machine_lines(replace(MACHINE, quiet=0.43))
    assert last.startswith("  Other programs ran") and "43%" in last
    assert not any("Other programs" in line for line in roofline.machine_lines(MACHINE))


def test_a_profile_without_calls(build):
    lines = roofline.section(Profile((build[1](calls=0),)), MACHINE)
    assert not any("would be saved" in line or "no count" in line for line in lines)
