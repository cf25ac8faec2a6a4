"""Functions that begin on built-in loops, while their kernels are compiled."""

import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, ProfileMode, function, shared
from opwise.linkers import cbuild, kernels, opwise_c
from opwise.modes.recording import record
from opwise.profiling import jsonreports, serialization
from opwise.profiling.profile import Profile
from opwise.profiling.reports import details
from opwise.profiling.since import since
from opwise.testing.fuzz.examine import examine
from opwise.testing.fuzz.grow import Rejected
from opwise.testing.fuzz.shrink import Recorded
from opwise.testing.fuzz.whole import grown

_numbers = itertools.count()


@pytest.fixture
def begun(flags):
    """Compile kernels in the background, with flags for which the cache has none."""

    def compile_begun(inputs, outputs, more="", **options):
        options.setdefault("mode", "FAST_RUN")
        unknown = f"{more} -DOW_PENDING={os.getpid()}{next(_numbers)}"
        flags({"background_compilation": True, "gcc.cxxflags": unknown})
        return function(inputs, outputs, **options)

    return compile_begun


@pytest.fixture
def compilers(monkeypatch):
    """The texts that were given to a compiler."""
    texts = []
    run = cbuild._compile

    def counted(recipe, text, name):
        texts.append(text)
        return run(recipe, text, name)

    monkeypatch.setattr(cbuild, "_compile", counted)
    return texts


def same_bits(one, two):
    for a, b in zip(one, two, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        assert a.tobytes() == b.tobytes(), (a, b)


def softened(x):
    return T.tanh(x * 1.5) - T.log(T.exp(-x) + 1) * T.nnet.sigmoid(x + 0.25)


def test_the_compiler_starts_when_calls_have_taken_time(begun, compilers, monkeypatch):
    x = T.dvector("x")
    f = begun([x], softened(x))
    first = f(np.arange(9.0))
    assert f.fn.built_in_calls == 1
    for _ in range(3):
        f(np.arange(9.0))
    assert compilers == []
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    f(np.arange(9.0))
    f.fn.wait_for_kernels()
    assert len(compilers) == 1
    calls = f.fn.built_in_calls
    same_bits([f(np.arange(9.0))], [first])
    assert f.fn.built_in_calls == calls
    assert len(compilers) == 1


def test_kernels_are_used_between_two_calls(begun, monkeypatch):
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    x = T.dvector("x")
    f = begun([x], softened(x))
    value = np.linspace(-3, 3, 1000)
    first = f(value)
    for _ in range(100000):
        same_bits([f(value)], [first])
        if f.fn.built_in_calls < _ + 2:
            break
    else:
        pytest.fail("the compiled kernel was never used")


SIZES = [0, 1, 7, 8, 31, 33, 63, 64, 65, 511, 513, 1023, 1025, 2049, 5000, 70001]


@pytest.mark.parametrize("more", ["", "-O2", "-O3 -march=native -g -Wall -w -pipe"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_bits_for_any_length(begun, dtype, more):
    x, y = T.vector("x", dtype=dtype), T.vector("y", dtype=dtype)
    z = softened(x) * y
    sums = [z.sum(), (x * y).sum(), abs(z).max(), T.exp(x).sum(), T.sqr(x - y).mean()]
    f = begun([x, y], [z, *sums], more=more)
    random = np.random.RandomState(0)
    values = [(random.randn(n).astype(dtype), random.randn(n).astype(dtype)) for n in SIZES if n]
    before = [f(*each) for each in values]
    assert f.fn.built_in_calls == len(values)
    f.fn.wait_for_kernels()
    for results, each in zip(before, values, strict=True):
        same_bits(f(*each), results)
    assert f.fn.built_in_calls == len(values)


@pytest.mark.parametrize("axis", [0, 1, (0, 2), (1, 2), 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_bits_for_any_axis_and_layout(begun, dtype, axis):
    x = T.TensorType(dtype, (False,) * 3)("x")
    row = T.TensorType(dtype, (True, True, False))("row")
    z = softened(x + row)
    f = begun([x, row], [z, z.sum(axis), (x * row).sum(axis), z.max(axis)])
    random = np.random.RandomState(1)
    values = []
    for shape in ((3, 5, 7), (1, 2, 130), (40, 6, 9), (2, 300, 33), (64, 65, 66)):
        given = random.randn(*shape).astype(dtype)
        layouts = given, given[::-1, :, ::-1], np.asfortranarray(given), given.transpose(2, 1, 0)
        for a in layouts:
            values.append((a, random.randn(1, 1, a.shape[2]).astype(dtype)))
    before = [f(*each) for each in values]
    f.fn.wait_for_kernels()
    for results, each in zip(before, values, strict=True):
        same_bits(f(*each), results)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_same_bits_for_integers(begun, dtype):
    x, y = T.vector("x", dtype=dtype), T.vector("y", dtype=dtype)
    z = T.switch(x > y, x, y) + x
    f = begun([x, y], [z, z.sum(), T.maximum(x, y).astype("float32") / 3])
    random = np.random.RandomState(2)
    given = [random.randint(0, 2 if dtype == "bool" else 100, 3000).astype(dtype) for _ in "xy"]
    before = f(*given)
    f.fn.wait_for_kernels()
    same_bits(f(*given), before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 24, 8))
def test_random_programs(first):
    for seed in range(first, first + 8):
        try:
            program = grown(Recorded(seed=seed))
        except Rejected:
            continue
        examine(program, ["FAST_RUN, begun on built-in loops"])


def test_functions_of_the_math_library_wait(begun, compilers):
    """Vector functions of the library differ from the others in their last bits."""
    x = T.dvector("x")
    f = begun([x], T.sin(x) + T.erf(x))
    assert len(compilers) == 1
    f(np.arange(4.0))
    assert f.fn.built_in_calls == 0


#: functions of floats that call nothing of the math library
OWN = {"float32": [T.gamma, T.erfinv], "float64": []}


@pytest.mark.parametrize("dtype", OWN)
def test_float_functions_without_the_math_library_begin_at_once(dtype, begun):
    """Whatever the exponents: a chunk of equal ones has loops of its own."""
    x, y = T.vector("x", dtype), T.vector("y", dtype)
    f = begun([x, y], [x**y, *(own(x) for own in OWN[dtype])])
    random = np.random.RandomState(7)
    numbers = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, -1, 2], dtype)
    given = []
    for exponent in (None, 2, 1, 0, -1, 0.5, -0.5, 3, 4, -2):
        base = np.concatenate([random.uniform(-3, 3, 5000).astype(dtype), numbers])
        powers = random.uniform(-9, 9, base.size)
        if exponent is not None:
            powers[:] = exponent
        given.append((base, powers.astype(dtype)))
    with np.errstate(all="ignore"):
        before = [f(*each) for each in given]
        assert f.fn.built_in_calls == len(given)
        f.fn.wait_for_kernels()
        for results, each in zip(before, given, strict=True):
            same_bits(f(*each), results)
    assert f.fn.built_in_calls == len(given)


def test_loops_over_rows_wait(begun, compilers):
    x = T.dmatrix("x")
    centred = x - x.mean(1, keepdims=True)
    f = begun([x], centred / T.sqrt(T.sqr(centred).mean(1, keepdims=True)))
    assert compilers
    f(np.random.RandomState(6).randn(5, 100))
    assert f.fn.built_in_calls == 0
    assert all(f.linked.in_c)


def test_updates(begun):
    w = shared(np.zeros(5), name="w")
    x, y = T.dmatrix("x"), T.dvector("y")
    cost = T.sqr(T.nnet.sigmoid(T.dot(x, w)) - y).mean()
    f = begun([x, y], cost, updates=[(w, w - 0.1 * T.grad(cost, w))])
    random = np.random.RandomState(3)
    given = random.randn(20, 5), random.rand(20)
    costs = []
    for k in range(20):
        costs.append(f(*given))
        if k == 9:
            f.fn.wait_for_kernels()
    assert 0 < f.fn.built_in_calls == 10
    g = function([x, y], cost, updates=[(w, w - 0.1 * T.grad(cost, w))])
    w.set_value(np.zeros(5))
    same_bits([g(*given) for _ in range(20)], costs)


def test_a_compiler_that_fails_costs_one_warning(begun, flags, tmp_path):
    wrong = tmp_path / "cc"
    wrong.write_text("#!/bin/sh\necho 'wrong: error' >&2\nexit 1\n")
    wrong.chmod(0o700)
    x = T.dvector("x")
    flags(cxx=str(wrong))
    f = begun([x], softened(x))
    first = f(np.arange(9.0))
    with pytest.warns(UserWarning, match="built-in loops: .*failed: wrong: error"):
        f.fn.wait_for_kernels()
    for _ in range(3):
        same_bits([f(np.arange(9.0))], [first])


def test_calls_go_on_where_no_thread_can_start(begun, monkeypatch):
    """As in functions that run when the process ends."""

    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    x = T.dvector("x")
    f = begun([x], softened(x))
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        first = f(np.arange(9.0))
        for _ in range(3):
            same_bits([f(np.arange(9.0))], [first])
    assert f.fn.built_in_calls == 4
    f.fn.wait_for_kernels()
    same_bits([f(np.arange(9.0))], [first])


def test_the_report_has_the_compiler_once_it_has_run(begun):
    x = T.dvector("x")
    f = begun([x], softened(x))
    assert f.compile_report.kernels is None
    f.fn.wait_for_kernels()
    report = f.compile_report
    assert not report.kernels.hit and report.kernels.compile_seconds > 0
    assert f.compile_report is report


@pytest.mark.parametrize(
    "options", [{"profile": True}, {"mode": ProfileMode()}], ids=["flag", "mode"]
)
def test_profiles_have_the_time_of_the_compiler(begun, options):
    x = T.dvector("x")
    f = begun([x], softened(x), **options)
    report = f.compile_report
    assert report.total >= report.linker >= report.kernels.compile_seconds > 0
    found = f.profile.profile().functions[0].compile
    assert found.linker >= found.compiler > 0 and found.cached is False


def test_profiled_functions_wait(begun, compilers):
    x = T.dvector("x")
    f = begun([x], softened(x), profile=True)
    mode = ProfileMode()
    g = begun([x], T.sqr(softened(x)), mode=mode)
    for h in (f, g):
        h(np.arange(4.0))
        assert h.fn.built_in_calls == 0
    assert len(compilers) == 2


def test_profiles_tell_how_many_calls_ran_built_in_loops(begun, flags, monkeypatch):
    flags({"profiling.wait_for_kernels": False})
    x = T.dvector("x")
    f = begun([x], softened(x), mode=ProfileMode())
    value = np.arange(9.0)
    first = f(value)
    f(value)
    (before,) = f.profile.profile().functions
    assert (before.calls, before.built_in_calls) == (2, 2)
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    f.fn.wait_for_kernels()
    same_bits([f(value)], [first])
    profile = f.profile.profile()
    (now,) = profile.functions
    assert (now.calls, now.built_in_calls) == (3, 2)
    assert now.applys[0].count == 3
    assert since(now, before).built_in_calls == 0
    written = serialization.from_json(serialization.to_json(profile), "a test", Profile)
    assert written.functions == profile.functions
    text = "\n".join(details.calls(profile))
    assert "2 of 3 calls ran built-in loops, before compiled kernels were in use" in text
    assert jsonreports.report(profile)["functions"][0]["built_in_calls"] == 2


def test_a_first_call_that_is_ignored_is_not_counted(begun, flags):
    flags({"profiling.wait_for_kernels": False, "profiling.ignore_first_call": True})
    x = T.dvector("x")
    f = begun([x], softened(x), profile=True)
    for expected in (0, 1, 2):
        f(np.arange(9.0))
        profile = f.profile.profile()
        (found,) = profile.functions
        assert (found.calls, found.built_in_calls) == (expected, expected)
        serialization.from_json(serialization.to_json(profile), "a test", Profile)
    f.fn.wait_for_kernels()
    f(np.arange(9.0))
    (found,) = f.profile.profile().functions
    assert (found.calls, found.built_in_calls) == (3, 2)


def test_calls_before_a_profile_are_not_in_it(begun, flags):
    flags({"profiling.wait_for_kernels": False})
    x = T.dvector("x")
    f = begun([x], softened(x))
    for _ in range(3):
        f(np.arange(9.0))
    assert f.fn.built_in_calls == 3
    recorder = record(f)
    f(np.arange(9.0))
    assert recorder.snapshot().built_in_calls == 1
    recorder.reset()
    assert recorder.snapshot().built_in_calls == 0


def test_the_flag_waits(begun, flags, compilers):
    x = T.dvector("x")
    flags({"background_compilation": False, "gcc.cxxflags": "-DOW_WAITS"})
    f = function([x], softened(x), mode=Mode("c|py", "fast_run"))
    f(np.arange(4.0))
    assert len(compilers) == 1 and f.fn.built_in_calls == 0


def test_steps_of_loops_wait(begun):
    from opwise.loops import scan

    x = T.dmatrix("x")
    ys, _ = scan(lambda row, h: T.tanh(row * h) + softened(row), x, T.ones(3000))
    f = begun([x], ys)
    given = np.random.RandomState(4).randn(6, 3000)
    first = f(given)
    f.fn.wait_for_kernels()
    same_bits([f(given)], [first])


def test_calls_of_several_threads(begun, monkeypatch):
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    x = T.dvector("x")
    f = begun([x], softened(x))
    value = np.linspace(-2, 2, 3000)
    expected, wrong = f(value).tobytes(), []

    def work():
        for _ in range(300):
            if f(value).tobytes() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_the_compiler_runs(begun, monkeypatch):
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    x = T.dvector("x")
    f = begun([x], softened(x))
    value = np.linspace(-2, 2, 300)
    expected = f(value)
    f(value)  # starts the compiler
    child = os.fork()
    if child == 0:
        try:
            same_bits([f(value)], [expected])
            f.fn.wait_for_kernels()
            before = f.fn.built_in_calls
            same_bits([f(value)], [expected])
            os._exit(0 if f.fn.built_in_calls == before else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    f.fn.wait_for_kernels()
    same_bits([f(value)], [expected])


_ENDS = """
import numpy as np, os, sys
import opwise, opwise.tensor as T
from opwise.linkers import kernels
kernels._WORTH_COMPILING = 0
x = T.dvector("x")
f = opwise.function([x], T.tanh(x) * 3 + 1)
print(f.fn.built_in_calls, f(np.ones(3)).tobytes().hex())
print(f(np.ones(3)).tobytes().hex(), f.fn.built_in_calls, flush=True)
"""


def test_a_process_that_ends_leaves_its_kernels(tmp_path):
    flags = f"base_compiledir={tmp_path / 'cache'},background_compilation=True"
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _ENDS], env={**os.environ, "OPWISE_FLAGS": flags},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        runs.append(done.stdout.split())
    assert runs[0][1:3] == runs[1][1:3]
    assert runs[0][3] == "2"  # calls on built-in loops
    assert runs[1][3] == "0"  # the kernel was in the cache


_HANGS = """
import sys, time
import numpy as np
import opwise, opwise.tensor as T
from opwise.linkers import cbuild, kernels
kernels._WORTH_COMPILING = 0
cbuild._EXIT_SECONDS = 0.2
x = T.dvector("x")
f = opwise.function([x], T.tanh(x) * 3 + 1)
f(np.ones(3)), f(np.ones(3))
while not cbuild._compilers.running:
    time.sleep(0.01)
if sys.argv[1] == "exits":
    sys.exit(3)
if sys.argv[1] == "raises":
    raise ValueError("its own")
if sys.argv[1] == "interrupted":
    def interrupt(self, seconds, wait=cbuild.Build.wait):
        if seconds > 0.1:
            raise KeyboardInterrupt
        wait(self, seconds)
    cbuild.Build.wait = interrupt
    cbuild._EXIT_SECONDS = 1e6
"""


@pytest.mark.parametrize(
    ("how", "code"), [("ends", 0), ("exits", 3), ("raises", 1), ("interrupted", 0)]
)
def test_a_compiler_that_hangs_does_not_keep_a_process(tmp_path, how, code):
    """It and what it has started are killed; one line says so, and no file is left."""
    compiler, place = tmp_path / "cc", tmp_path / "place"
    compiler.write_text(f"#!/bin/sh\nsleep 3600 &\necho $! >{tmp_path}/started\nwait\n")
    compiler.chmod(0o700)
    place.mkdir(mode=0o700)
    flags = f"base_compiledir={tmp_path / 'cache'},background_compilation=True,cxx={compiler}"
    done = subprocess.run(
        [sys.executable, "-c", _HANGS, how], capture_output=True, text=True,
        env={**os.environ, "OPWISE_FLAGS": flags, "TMPDIR": str(place)},
    )  # fmt: skip
    *others, last = done.stderr.splitlines()
    assert last.startswith("opwise: the C compiler did not end in time and was killed")
    assert others == [] or (how == "raises" and others[-1] == "ValueError: its own")
    assert done.returncode == code
    assert list(place.iterdir()) == []
    if (tmp_path / "started").exists():
        with pytest.raises(ProcessLookupError):
            for _ in range(1000):  # until init has noticed that it ended
                os.kill(int((tmp_path / "started").read_text()), 0)
                time.sleep(0.01)


def _no_thread(self):
    raise RuntimeError("can't start new thread")


def test_without_a_new_thread_kernels_are_compiled_by_the_caller(begun, compilers, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    monkeypatch.setattr(kernels, "_WORTH_COMPILING", 0)
    x = T.dvector("x")
    f = begun([x], T.sin(x) * 2)  # waits for its kernels
    np.testing.assert_allclose(f([1.0, 2.0]), 2 * np.sin([1.0, 2.0]))
    assert len(compilers) == 1 and f.fn.built_in_calls == 0
    g = begun([x], softened(x))
    first = g(np.arange(9.0))
    same_bits([g(np.arange(9.0))], [first])
    assert len(compilers) == 1 and g.fn.built_in_calls == 2
    g.fn.wait_for_kernels()
    same_bits([g(np.arange(9.0))], [first])
    assert len(compilers) == 2 and g.fn.built_in_calls == 2


def test_without_a_new_process_functions_keep_their_built_in_loops(begun, monkeypatch):
    def no_process(*args, **kwargs):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(threading.Thread, "start", _no_thread)
    monkeypatch.setattr(subprocess, "Popen", no_process)
    x = T.dvector("x")
    with pytest.warns(UserWarning, match="Resource temporarily unavailable"):
        f = begun([x], T.sin(x) * 2)
    np.testing.assert_allclose(f([1.0, 2.0]), 2 * np.sin([1.0, 2.0]))


def test_every_width_of_vectors_gives_the_bits_of_compiled_loops(begun):
    """The built-in loops in use are compiled for the processor, as kernels are."""
    x = T.dvector("x")
    f = begun([x], [T.exp(x), T.log(x), T.tanh(x), T.nnet.sigmoid(x), T.nnet.softplus(x)])
    value = np.abs(np.random.RandomState(5).randn(4099)) * 30
    before = f(value)
    assert f.fn.built_in_calls == 1
    assert opwise_c.VECTORS in ("base", "avx2", "avx512")
    f.fn.wait_for_kernels()
    same_bits(f(value), before)


@pytest.mark.parametrize(
    "more",
    [
        "-ffast-math", "-Ofast", "-O0", "-Os", "-mno-fma", "-march=x86-64", "-ffp-contract=fast",
        "-funsafe-math-optimizations", "-fassociative-math", "-fno-tree-vectorize", "-unheard-of",
    ],
)  # fmt: skip
def test_flags_that_may_change_bits_begin_with_kernels(begun, compilers, monkeypatch, more):
    monkeypatch.setattr(cbuild, "_run", lambda *args: pytest.fail("not compiled here"))
    monkeypatch.setattr(cbuild, "_compile", lambda *args: compilers.append(1) or ran(*args))

    def ran(recipe, text, name):
        raise cbuild.CompileError("flags are all that counts here")

    x = T.dvector("x")
    with pytest.warns(UserWarning, match="flags are all that counts"):
        f = begun([x], x**1.7 + 1, more=more)
    assert len(compilers) == 1 and f.fn.built_in_calls == 0
