"""Roofline: the arithmetic, with a machine whose figures are known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling.machinelimits import FORMAT, MachineLimits, Peak
from opwise.profiling.profile import ArrayProfile, Profile
from opwise.profiling.roofline import attainable, rows, touched

KIB, MIB = 1 << 10, 1 << 20

#: GB/s are bytes in a nanosecond
MACHINE = MachineLimits(
    probe=1,
    processor="a processor",
    processors=4,
    threads=4,
    vectors="wide",
    caches=(32 * KIB, MIB),
    one=((16 * KIB, 100.0), (MIB, 25.0), (64 * MIB, 10.0)),
    all=((MIB, 85.0), (64 * MIB, 30.0)),
    peaks=(
        Peak("float32", False, 20.0, 80.0),
        Peak("float32", True, 40.0, 160.0),
        Peak("float64", False, 10.0, 40.0),
        Peak("float64", True, 20.0, 60.0),
    ),
    step_ns=50.0,
    quiet=1.0,
)


def array(count, dtype="float64"):
    size = int(dtype[-2:]) // 8
    return ArrayProfile(dtype, (count,), (size,), size * count)


def measured(an_apply, total, traffic, flops, *, count=1, out=None, shares=("c",)):
    """An Apply with known counts, and an output that says the dtype."""
    return replace(
        an_apply("f", total, count=count),
        traffic=traffic,
        flops=flops,
        input_arrays=(array(1),),
        output_arrays=(out or array(1),),
        shares=shares,
    )


# --- the machine ----------------------------------------------------------------------------------


def test_bandwidth_of_measured_sizes_and_beyond():
    assert [MACHINE.bandwidth(size) for size, _ in MACHINE.one] == [100.0, 25.0, 10.0]
    assert MACHINE.bandwidth(0) == MACHINE.bandwidth(1) == 100.0
    assert MACHINE.bandwidth(1 << 40) == 10.0


def test_bandwidth_between_sizes_is_interpolated_by_logarithms():
    # 128 KiB is half way from 16 KiB to 1 MiB, and 50 half way from 100 to 25
    assert MACHINE.bandwidth(128 * KIB) == pytest.approx(50.0)
    assert MACHINE.bandwidth(8 * MIB) == pytest.approx(math.sqrt(250.0))


def test_bandwidth_of_several_threads():
    assert MACHINE.bandwidth(MIB, 4) == MACHINE.bandwidth(MIB, 9) == 85.0
    assert MACHINE.bandwidth(MIB, 2) == pytest.approx(25 + 60 / 3)
    alone = replace(MACHINE, threads=1)
    assert alone.bandwidth(MIB, 4) == 25.0


def test_all_threads_are_never_slower_than_one():
    disturbed = replace(MACHINE, all=((MIB, 5.0),))
    assert disturbed.bandwidth(MIB, 4) == 25.0


def test_peaks():
    assert MACHINE.peak("float32", True) == 40.0
    assert MACHINE.peak("float64", False, 4) == 40.0
    assert MACHINE.peak("float64", False, 3) == pytest.approx(10 + 30 * 2 / 3)
    assert MACHINE.peak("int64", False) is None


def test_json_gives_an_equal_machine():
    assert MachineLimits.from_json(MACHINE.to_json()) == MACHINE


def damaged(**changes):
    return json.dumps({**json.loads(MACHINE.to_json()), **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        MACHINE.to_json()[:-10],
        damaged(format=FORMAT + "s"),
        damaged(more=1),
        damaged(one=[]),
        damaged(one=[[4, 1.0], [2, 1.0]]),
        damaged(one=[[4, 0.0]]),
        damaged(step_ns=None),
        damaged(step_ns="NaN"),
        damaged(peaks=[{}]),
        damaged(processors="many"),
    ],
)
def test_what_is_no_machine_is_refused(text):
    with pytest.raises(ValueError, match="not a description of hardware limits"):
        MachineLimits.from_json(text)


# --- the limit ------------------------------------------------------------------------------------


def test_memory_is_the_limit(build):
    apply = measured(build[0], 1000, traffic=16 * KIB, flops=100)
    assert attainable(apply, MACHINE) == (16 * KIB / 100 + 50, "memory")


def test_arithmetic_is_the_limit(build):
    apply = measured(build[0], 1000, traffic=16 * KIB, flops=5000)
    assert attainable(apply, MACHINE) == (5000 / 10 + 50, "arithmetic")


def test_float32_and_products_have_peaks_of_their_own(build):
    out = array(1, "float32")
    loop = measured(build[0], 1, 8, 8000, out=out)
    assert attainable(loop, MACHINE)[0] == 8000 / 20 + 50
    assert attainable(replace(loop, kind="product"), MACHINE)[0] == 8000 / 40 + 50
    assert attainable(replace(loop, kind=""), MACHINE)[0] == 8000 / 20 + 50
    # profiles of earlier versions have no kind
    for name in ("dot.Dot", "blas.Gemm"):
        product = replace(loop, op_class=f"<class 'opwise.tensor.{name}'>")
        assert attainable(product, MACHINE)[0] == 8000 / 40 + 50


def test_a_step_is_the_limit(build):
    assert attainable(measured(build[0], 60, 80, 10), MACHINE) == (50 + 1, "overhead")
    assert attainable(measured(build[0], 60, 0, 0), MACHINE) == (50, "overhead")
    (faster,) = rows(Profile((build[1](measured(build[0], 40, 80, 10)),)), MACHINE)
    assert (faster.bound, faster.share, faster.gain) == ("overhead", 1.0, 0.0)


def test_long_work_is_shared(build):
    # alone 40 microseconds, which nobody shares, and then a little more, which four threads do
    short = measured(build[0], 1, 1_000_000, 0)
    assert attainable(short, MACHINE)[0] == pytest.approx(
        1_000_000 / MACHINE.bandwidth(1_000_000) + 50
    )
    long = measured(build[0], 1, 8, 400_001)
    assert attainable(long, MACHINE) == (pytest.approx(400_001 / 40 + 50), "arithmetic")
    assert attainable(measured(build[0], 1, 8, 400_000), MACHINE)[0] == 400_000 / 10 + 50


def test_threads_that_would_have_too_little_to_do_are_not_counted(build):
    many = replace(MACHINE, threads=100)
    found, _ = attainable(measured(build[0], 1, 8, 550_000), many)
    assert found == pytest.approx(550_000 / many.peak("float64", False, 5) + 50)


def test_what_is_overwritten_passes_once(build):
    # x += y over 1000 numbers: three times 8000 bytes move, two arrays are touched
    apply = measured(build[0], 1, 24_000, 1000, out=array(1000), shares=("i",))
    assert touched(apply) == 16_000
    assert attainable(apply, MACHINE)[0] == 16_000 / 100 + 50


@pytest.mark.parametrize(("traffic", "flops"), [(None, 1), (8, None), (None, None)])
def test_without_counts_there_is_no_limit(build, traffic, flops):
    assert attainable(measured(build[0], 100, traffic, flops), MACHINE) is None


def test_without_a_peak_there_is_no_limit_for_operations(build):
    apply = measured(build[0], 100, 80, 10, out=array(1, "int64"))
    integers = replace(apply, input_arrays=(array(1, "int64"),))
    assert attainable(integers, MACHINE) is None
    assert attainable(replace(integers, flops=0), MACHINE) is not None
    # a comparison computes in the dtype of what it compares
    assert attainable(apply, MACHINE) is not None


# --- rows -----------------------------------------------------------------------------------------


def test_a_row(build):
    an_apply, a_function, _ = build
    apply = measured(an_apply, 4_000, 16 * KIB, 1000, count=2)
    (row,) = rows(Profile((a_function(apply, name="g"),)), MACHINE)
    assert (row.function, row.position, row.text, row.calls) == ("g", 0, "f(x)", 2)
    assert row.total == pytest.approx(4e-6) and row.seconds == pytest.approx(2e-6)
    assert row.bandwidth == pytest.approx(16 * KIB / 2000)
    assert row.rate == pytest.approx(0.5)
    best = 16 * KIB / 100 + 50
    assert row.attainable == pytest.approx(best * 1e-9)
    assert row.share == pytest.approx(best / 2000)
    assert row.bound == "memory"
    assert row.gain == pytest.approx((4000 - 2 * best) * 1e-9)


def test_nothing_is_left_to_gain(build):
    an_apply, a_function, _ = build
    (row,) = rows(Profile((a_function(measured(an_apply, 100, 16 * KIB, 0)),)), MACHINE)
    assert row.gain == 0.0
    assert row.share == pytest.approx((16 * KIB / 100 + 50) / 100)


def test_rows_are_sorted_by_gain_and_what_is_unknown_comes_last(build):
    an_apply, a_function, _ = build
    first = a_function(
        measured(an_apply, 1_000, 80, 0),
        measured(an_apply, 90_000, None, 5),
        measured(an_apply, 5_000, 80, 0),
        name="first",
    )
    second = a_function(
        measured(an_apply, 95_000, 80, None),
        measured(an_apply, 3_000, 80, 0),
        measured(an_apply, 0, 80, 0, count=0),
        name="second",
    )
    found = rows(Profile((first, second)), MACHINE)
    assert [round(r.total * 1e9) for r in found] == [5_000, 3_000, 1_000, 95_000, 90_000]
    assert [r.gain is None for r in found] == [False] * 3 + [True] * 2


def test_blanks(build):
    an_apply, a_function, _ = build
    applys = measured(an_apply, 1_000, 80, None), measured(an_apply, 900, None, 70)
    no_flops, no_traffic = rows(Profile((a_function(*applys),)), MACHINE)
    assert no_flops.bandwidth == pytest.approx(0.08) and no_flops.rate is None
    assert no_traffic.bandwidth is None and no_traffic.rate == pytest.approx(70 / 900)
    for row in (no_flops, no_traffic):
        assert row.attainable is row.share is row.bound is row.gain is None


@pytest.mark.c
@pytest.mark.parametrize(
    "function",
    [T.exp, T.tanh, T.nnet.sigmoid, lambda v: T.exp(v) + T.sin(v), lambda v: T.exp(-v).sum()],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops_of_functions_have_rough_limits(function, dtype):
    v = T.vector("v", dtype)
    f = opwise.function([v], function(v), profile=True)
    f(np.ones(100_000, dtype))
    profile = replace(f.profile.profile(), machine=MACHINE)
    (apply,) = profile.applys
    (row,) = rows(profile, MACHINE)
    assert apply.flops is None and apply.work >= 50_000 / 2
    assert row.approximate and row.rate is None and 0 < row.share <= 1 and row.gain is not None
    assert Profile.from_json(profile.to_json()) == profile


def _of_rows():
    x, y, b = T.dmatrix("x"), T.lvector("y"), T.dvector("b")
    sm = T.nnet.softmax(x)
    nll = T.nnet.categorical_crossentropy
    return x, y, b, {
        "Softmax": sm,
        "SoftmaxWithBias": T.nnet.softmax_with_bias(x, b),
        "SoftmaxGrad": T.nnet.softmax_grad(x, T.exp(x)),
        "LogSoftmax": T.nnet.logsoftmax(x),
        "CrossentropySoftmaxArgmax1HotWithBias":
            T.nnet.crossentropy_softmax_argmax_1hot_with_bias(x, b, y)[0],
        "CrossentropySoftmax1HotWithBiasDx": T.grad(nll(sm, y).mean(), x),
        "CrossentropyCategorical1Hot": nll(x, y),
        "CrossentropyCategorical1HotGrad": T.grad(nll(x, y).sum(), x),
        "Argmax": T.argmax(x, axis=1),
        "MaxAndArgmax": T.stack(list(T.max_and_argmax(x, axis=1))),
        "Reduce": T.max(x, axis=0),
        "Rowwise": T.grad(T.sqr(sm).sum(), x),
    }  # fmt: skip


#: those that rewrites make
_REWRITTEN = ("Argmax", "CrossentropySoftmax1HotWithBiasDx", "Reduce", "Rowwise")


@pytest.mark.parametrize("name", _of_rows()[-1])
def test_functions_of_rows_and_extrema_have_rough_limits(name):
    x, y, b, found = _of_rows()
    mode = opwise.Mode("c|py", "fast_run" if name in _REWRITTEN else None)
    f = opwise.function([x, y, b], found[name], profile=True, mode=mode, on_unused_input="ignore")
    f(np.full((300, 40), 0.5), np.arange(300) % 40, np.ones(40))
    profile = f.profile.profile()
    ops = {a.position: a.op.split("{")[0] for a in profile.applys}
    known = [row for row in rows(profile, MACHINE) if ops[row.position] == name]
    assert known
    for row in known:
        assert row.approximate and 0 < row.share <= 1 and row.attainable > MACHINE.step_ns * 1e-9


def test_functions_add_to_the_least_time_and_are_shared_by_threads(build):
    an_apply, a_function, _ = build
    apply = replace(measured(an_apply, 400_000, 80, None), work=100_000.0)
    (row,) = rows(Profile((a_function(apply),)), MACHINE)
    assert row.bound == "arithmetic" and row.approximate
    assert row.attainable * 1e9 == pytest.approx(100_000 / MACHINE.threads + MACHINE.step_ns)
    assert rows(Profile((a_function(replace(apply, device="gpu")),)), MACHINE)[0].share is None


def test_of_two_measurements_the_best_is_kept():
    other = replace(
        MACHINE,
        one=tuple((size, 2 * rate) for size, rate in MACHINE.one[:1]),
        peaks=tuple(replace(p, one=p.one / 2, all=p.all * 3) for p in MACHINE.peaks),
        step_ns=MACHINE.step_ns / 2,
        quiet=MACHINE.quiet / 2,
    )
    best = MACHINE.best(other)
    assert best == other.best(MACHINE)
    assert best.one == ((MACHINE.one[0][0], 2 * MACHINE.one[0][1]), *MACHINE.one[1:])
    assert [(p.one, p.all) for p in best.peaks] == [(p.one, p.all * 3) for p in MACHINE.peaks]
    assert (best.step_ns, best.quiet) == (MACHINE.step_ns / 2, MACHINE.quiet)
