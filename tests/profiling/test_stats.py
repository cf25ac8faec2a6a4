"""ProfileStats: how functions get one, its figures, and what is printed when a program ends."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, ProfileStats, function
from opwise.config import change_flags
from opwise.profiling.profile import Profile
from opwise.tensor import Elemwise
from opwise.tensor.extra_ops import DiffOp

X = T.dvector("x")
VALUE = [1.0, 2.0]


def text_of(stats, **arguments):
    out = io.StringIO()
    stats.summary(out, **arguments)
    return out.getvalue()


def sections(text):
    return [line for line in text.splitlines() if line in ("Class", "Ops", "Apply")]


# --- how functions get one ------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [None, False, 0, np.False_])
def test_functions_without(profile):
    f = function([X], X * 2, profile=profile)
    assert f.profile is (None if profile is None else False)


@pytest.mark.parametrize("profile", [True, np.True_])
def test_a_function_with_its_own(profile):
    f = function([X], X * 2, profile=profile, name="double")
    f(VALUE)
    assert isinstance(f.profile, ProfileStats) and f.profile.fct_callcount == 1
    assert "  Message: double\n" in text_of(f.profile)


def test_the_message_is_the_line_where_there_is_no_name():
    f = function([X], X * 2, profile=True)
    assert f.profile.message.startswith(__file__)


def test_a_text_is_the_message():
    assert function([X], X * 2, profile="of mine").profile.message == "of mine"


@pytest.mark.parametrize("profile", [3, 1.5, [True], object])
def test_what_is_no_profile(profile):
    with pytest.raises(TypeError, match="must be True, False, None, a text or a ProfileStats"):
        function([X], X * 2, profile=profile)


def test_the_flag(flags):
    flags(profile=True)
    assert isinstance(function([X], X * 2).profile, ProfileStats)
    assert function([X], X * 2, profile=False).profile is False


def test_a_copy_has_its_own():
    f = function([X], X * 2, profile=True)
    g = f.copy(profile=True)
    g(VALUE)
    assert (f.profile.fct_callcount, g.profile.fct_callcount) == (0, 1)
    assert f.copy().profile is None


def test_what_cannot_be_profiled_is_refused_when_compiling():
    with pytest.raises(Exception, match="DebugMode do not support profiling"):
        function([X], X * 2, profile=True, mode="DEBUG_MODE")


def test_the_flag_leaves_out_functions_under_debugmode_with_a_warning():
    with change_flags(profile=True):
        with pytest.warns(UserWarning, match="DebugMode records no profile, .* none of checked"):
            checked = function([X], X * 2, mode="DEBUG_MODE", name="checked")
        f = function([X], X * 2)
    assert checked.profile is None and f.profile is not None
    np.testing.assert_array_equal(checked(VALUE), f(VALUE))


@pytest.mark.parametrize("linker", ["py", "c|py", "c&py", "vm", "cvm"])
def test_every_linker_times_its_thunks(linker):
    f = function([X], T.sort(T.exp(X)), profile=True, mode=Mode(linker, "fast_run"))
    f(VALUE)
    f(VALUE)
    stats = f.profile
    assert set(stats.apply_callcount.values()) == {2}
    assert 0 < sum(stats.apply_time.values()) <= stats.vm_call_time <= stats.fct_call_time


# --- figures --------------------------------------------------------------------------------------


@pytest.fixture
def shared():
    """(the stats of two functions, these): the first was called once, the second twice."""
    stats = ProfileStats(atexit_print=False, message="both")
    f = function([X], DiffOp()(T.exp(X)), profile=stats, name="f")
    g = function([X], T.exp(X) + 1, profile=stats, name="g")
    f(VALUE)
    g(VALUE)
    g(VALUE)
    return stats, f, g


def test_two_functions_in_one(shared):
    stats, f, g = shared
    assert f.profile is stats and g.profile is stats
    assert stats.fct_callcount == 3
    assert stats.nb_nodes == len(g.linked.order)
    nodes = [*f.linked.order, *g.linked.order]
    assert set(stats.apply_cimpl) == set(nodes)
    assert stats.apply_callcount == {n: 1 if n in f.linked.order else 2 for n in nodes}
    assert stats.compile_time >= stats.optimizer_time + stats.linker_time > 0
    assert stats.linker_node_make_thunks == pytest.approx(
        sum(stats.linker_make_thunk_time.values())
    )
    assert set(stats.linker_make_thunk_time) == set(nodes)
    assert text_of(stats).count("Function profiling") == 1


def test_sums_by_op_and_class(shared):
    stats, f, _ = shared
    differences = f.linked.order[-1].op
    assert stats.class_callcount() == {Elemwise: 3, DiffOp: 1}
    assert stats.class_nodes() == {Elemwise: 2, DiffOp: 1}
    assert stats.class_impl()[DiffOp] == stats.op_impl()[differences] == "Py"
    assert stats.class_impl()[Elemwise] == "C "
    assert stats.op_callcount()[differences] == stats.op_nodes()[differences] == 1
    total = sum(stats.apply_time.values())
    assert sum(stats.class_time().values()) == pytest.approx(total)
    assert sum(stats.op_time().values()) == pytest.approx(total)


def test_times_with_what_comes_before(shared):
    stats, f, _ = shared
    first, last = f.linked.order
    total, own = stats.compute_total_times(), stats.apply_time
    assert total[last] == pytest.approx(own[first] + own[last])
    assert total[first] == pytest.approx(own[first])


def test_reset(shared):
    stats, f, _ = shared
    compiled = stats.compile_time
    stats.reset()
    assert stats.fct_callcount == stats.fct_call_time == 0 and stats.apply_time == {}
    assert stats.compile_time == compiled
    f(VALUE)
    assert stats.fct_callcount == 1 and len(stats.apply_time) == 2


def test_an_empty_one():
    stats = ProfileStats(atexit_print=False)
    assert (stats.nb_nodes, stats.fct_callcount, stats.compile_time) == (-1, 0, 0)
    assert sections(text_of(stats)) == []


def test_thunks_that_are_not_timed(flags):
    stats = ProfileStats(atexit_print=False, flag_time_thunks=False)
    flags({"profiling.time_thunks": False})
    for f in (function([X], X * 2, profile=stats), function([X], X * 2, profile=True)):
        f(VALUE)
        assert f.profile.fct_callcount == 1 and f.profile.fct_call_time > 0
        assert f.profile.apply_time == {}
        assert "hint: try config profiling.time_thunks=1" in text_of(f.profile)


@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_the_first_call_can_be_left_out(flags, linker):
    flags({"profiling.ignore_first_call": True})
    f = function([X], X * 2, profile=True, mode=Mode(linker, "fast_run"))
    f(VALUE)
    assert (f.profile.fct_callcount, f.profile.apply_callcount) == (0, {})
    f(VALUE)
    f(VALUE)
    assert f.profile.fct_callcount == 2
    assert list(f.profile.apply_callcount.values()) == [2]


# --- texts ----------------------------------------------------------------------------------------


def test_sections_one_by_one(shared):
    stats, _, _ = shared
    for print_section, line in [
        (stats.summary_function, "Function profiling"),
        (stats.summary_globals, "Time in all call to theano.grad()"),
        (stats.summary_class, "Class"),
        (stats.summary_ops, "Ops"),
        (stats.summary_nodes, "Apply"),
        (stats.print_tips, "Here are tips"),
    ]:
        out = io.StringIO()
        print_section(out)
        assert out.getvalue().startswith(line)
        assert out.getvalue().rstrip("\n") in text_of(stats).rstrip("\n") or line.startswith("Time")


def test_a_section_of_what_never_ran():
    out = io.StringIO()
    function([X], X * 2, profile=True).profile.summary_ops(out)
    assert out.getvalue() == (
        "ProfileStats.summary_ops: total time 0 (did you forget to enable counters?)\n"
    )


def test_it_is_printed_on_stderr(shared, capsys):
    shared[0].print_summary()
    assert capsys.readouterr().err.startswith("Function profiling\n")


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", None])
@pytest.mark.parametrize("which", ["n_ops_to_print", "n_apply_to_print"])
def test_how_many_rows(shared, which, n):
    with pytest.raises(ValueError, match=f"{which} is .*; it must be a whole number from 1"):
        shared[0].summary(**{which: n})


def test_a_saved_profile_prints_the_same(shared, tmp_path):
    from opwise.profiling.reports import profilestats

    stats, _, _ = shared
    stats.save(tmp_path / "p.json")
    loaded = Profile.from_json((tmp_path / "p.json").read_text())
    shown = profilestats.summary(loaded).splitlines()
    clocks = "since theano", "the hardware was busy", "the process", "the rest", "  importing "
    clocks += ("  building gradients", "  compiling", "  calls of functions")

    def still(lines):
        """Return what does not change while the process goes on."""
        return [line for line in lines if not any(clock in line for clock in clocks)]

    assert still(text_of(stats).splitlines()) == still(shown)


# --- when a program ends --------------------------------------------------------------------------

PROGRAM = """
import os, subprocess, sys
import numpy as np, opwise, opwise.tensor as T
from opwise.profiling import stats
stats.LONG_TO_COMPILE = float(os.environ.get("LONG_TO_COMPILE", "inf"))
x = T.dvector("x")
f = opwise.function([x], T.exp(x), name="f")
g = opwise.function([x], T.sort(x), name="g")
h = opwise.function([x], T.log(x), name="h")
own = opwise.function([x], T.tanh(x), name="own", profile=True)
f([1.0]), g([1.0]), g([2.0]), own([1.0])
if len(sys.argv) > 1:
    subprocess.run([sys.executable, __file__], check=True)
"""


@pytest.fixture
def run(tmp_path):
    """Run the program under flags; return (stdout, stderr)."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)

    def under(flags, *args):
        environment = {**os.environ, "OPWISE_FLAGS": flags, "THEANO_FLAGS": ""}
        environment.pop("OPWISE_PROFILE_OWNER", None)
        done = subprocess.run(
            [sys.executable, script, *args], capture_output=True, text=True, check=True,
            env=environment, cwd=tmp_path,
        )  # fmt: skip
        return done.stdout, done.stderr

    return under


def messages(text):
    return [line[11:] for line in text.splitlines() if line.startswith("  Message: ")]


def test_every_function_and_the_sum_of_all(run):
    out, err = run("profile=True")
    *each, total = messages(out)
    assert sorted(each) == ["f", "g", "own"]
    assert total == "Sum of all(3) printed profiles at exit excluding Scan op profile."
    assert "  Time in 4 calls to Function.__call__" in out
    assert out.endswith("Skipping empty Profile\n") and err == ""


def test_nothing_without_the_flag(run):
    assert run("") == ("", "")


def test_the_sum_is_left_out_for_one(run):
    out, _ = run("profile=True,profiling.ignore_first_call=True,optimizer=None,linker=py")
    assert messages(out) == ["g"]


def test_a_long_compilation_is_printed_without_calls(run, monkeypatch):
    monkeypatch.setenv("LONG_TO_COMPILE", "0")
    out, _ = run("profile=True,profiling.ignore_first_call=True,optimizer=None,linker=py")
    *each, total = messages(out)
    assert sorted(each) == ["f", "g", "h", "own"] and "Skipping empty" not in out
    assert total == "Sum of all(4) printed profiles at exit excluding Scan op profile."


def test_how_much_is_printed(run):
    out, _ = run("profile=True,profiling.n_ops=1,profiling.n_apply=2")
    rest = [line for line in out.splitlines() if "(remaining" in line][-3:]
    assert ["remaining 1 Classes" in rest[0], "remaining 2 Ops" in rest[1],
            "remaining 1 Apply instances" in rest[2]] == [True] * 3  # fmt: skip


def test_on_stderr(run):
    out, err = run("profile=True,print_global_stats=True,profiling.destination=stderr")
    assert messages(err)[-1].startswith("Sum of all(3)") and "Global stats:" in err
    assert out == "Skipping empty Profile\n"


def test_in_a_file(run, tmp_path):
    _, err = run("profile=True,profiling.destination=profile.txt")
    assert err == "" and len(messages((tmp_path / "profile.txt").read_text())) == 4


def test_as_json_a_file_for_each_process(run, tmp_path):
    _, err = run("profile=True,profiling.destination=profile.json", "and another")
    assert err == ""
    files = sorted(tmp_path.glob("profile*.json"))
    assert len(files) == 2 and (tmp_path / "profile.json") in files
    processes = set()
    for file in files:
        profile = Profile.from_json(file.read_text())
        assert sorted(f.name for f in profile.functions) == ["f", "g", "h", "own"]
        assert sum(f.calls for f in profile.functions) == 4
        processes.add(json.loads(file.read_text())["environment"]["process"])
    assert len(processes) == 2


FORKS = """
import os, sys
import numpy as np, opwise, opwise.tensor as T
from opwise.profiling import stats
stats.LONG_TO_COMPILE = float(os.environ.get("LONG_TO_COMPILE", "inf"))
x = T.dvector("x")
f = opwise.function([x], T.exp(x), name="f")
f([1.0])

def job(n):
    for _ in range(n):
        f([1.0])

if __name__ == "__main__":
    if sys.argv[1] == "os":
        for n in (2, 0):
            child = os.fork()
            if not child:
                job(n)
                break
            os.waitpid(child, 0)
    else:
        import multiprocessing
        start, _, kind = sys.argv[1].partition("+")
        context = multiprocessing.get_context(start)
        if kind == "pool":
            with context.Pool(1) as pool:
                pool.map(job, [2])
            sys.exit()
        child = context.Process(target=job, args=(2,))
        child.start(), child.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
@pytest.mark.parametrize(
    ("how", "calls"),
    [
        ("os", 2),
        ("fork", 2),
        ("fork+pool", 2),
        ("forkserver", 3),
        ("spawn", 3),
        ("spawn+pool", 3),
        ("forkserver+pool", 3),
    ],
)
def test_processes_that_start_write_what_they_did(run, tmp_path, how, calls):
    (tmp_path / "program.py").write_text(FORKS)
    assert run("profile=True,profiling.destination=profile.json", how) == ("", "")
    files = [path for path in tmp_path.glob("profile*.json") if path.name != "profile.json"]
    (own,) = Profile.load(tmp_path / "profile.json").functions
    (child,) = (f for path in files for f in Profile.load(path).functions)
    assert (own.calls, child.calls) == (1, calls)
    assert own.compile.total > 0
    # what a fork has of its parent, the parent tells
    assert (child.compile.total > 0) == (how.partition("+")[0] in ("forkserver", "spawn"))


@pytest.mark.parametrize("where", ["stderr", "stdout", "profile.txt"])
def test_graphs_with_times(run, tmp_path, where):
    out, err = run(f"profile=True,profiling.debugprint=True,profiling.destination={where}")
    shown = {"stdout": out, "stderr": err}.get(where) or (tmp_path / where).read_text()
    *each, total = shown.split("Function profiling\n")[1:]
    lines = [part.split("Timing Info\n")[1].splitlines()[15:] for part in each]
    named = {part.split("  Message: ")[1].split("\n")[0]: rows for part, rows in
             zip(each, lines, strict=True)}  # fmt: skip
    figures = r"\d\.\d\de-\d\ds +\d+\.\d%"
    for name, op in (("f", "exp"), ("own", "tanh")):
        first, second = named[name]
        assert re.fullmatch(
            rf"Elemwise{{{op},no_inplace}} \[id A\] <TensorType\(float64, vector\)> ''   0 "
            rf"--> {figures} {figures}",
            first,
        )
        assert second == " |x [id B] <TensorType(float64, vector)>"
    assert named["g"][0].startswith("SortOp{quicksort, None} [id A]")
    assert "Timing Info" not in total, "the sum has no graph"


def test_figures_of_graphs_are_read_once(monkeypatch):
    """A line of a graph costs no look at the whole profile."""
    reads = []
    profile = ProfileStats.profile
    monkeypatch.setattr(ProfileStats, "profile", lambda self: reads.append(1) or profile(self))
    counts = []
    for n in (2, 40):
        y = X
        for _ in range(n):
            y = T.sort(y) + 1
        f = function([X], y, profile=True)
        f(VALUE)
        del reads[:]
        assert f.profile.graphs().count("-->") > n
        counts.append(len(reads))
    assert counts[0] == counts[1]


def test_where_nothing_can_be_written(run):
    _, err = run("profile=True,profiling.destination=no/such/folder.txt")
    assert err.startswith("The profile cannot be written to no/such/folder.txt: ")
    assert len(messages(err)) == 4


def test_global_figures(run):
    out, err = run("print_global_stats=True")
    line, stats, again, *_ = out.splitlines()
    assert line == again == "=" * 50
    assert stats.startswith("Global stats:  Time elasped since Theano import =  ")
    assert messages(out) == [] and err == ""


def test_the_methods_of_a_module_obey_the_flag(flags):
    flags(profile=True)
    m = opwise.Module()
    m.x = T.dvector()
    m.double = opwise.Method(m.x, m.x * 2)
    made = m.make()
    made.double(np.ones(3))
    profile = made.double.profile.profile()
    assert [f.calls for f in profile.functions] == [1] and profile.message == "double"


def test_numbers_of_rows_come_as_in_profile_mode():
    x = T.dvector("x")
    f = function([x], T.sort(T.sort(x)[::-1] + T.argsort(x)), profile=True)
    f(np.ones(3))
    stream = io.StringIO()
    f.profile.print_summary(1, 2, file=stream)
    wanted = io.StringIO()
    f.profile.summary(wanted, n_ops_to_print=2, n_apply_to_print=1)
    left_out = [re.findall(r"remaining (\d+)", one.getvalue()) for one in (stream, wanted)]
    assert left_out[0] == left_out[1] and int(left_out[0][-1]) > 0
    with pytest.raises(TypeError, match="file is 12; it must be a stream"):
        f.profile.summary(12)
