"""ProfileMode: what it prints, counts and gives as attributes."""
# ruff: noqa: E501  (some lines are as long as what is printed)

import os
import pickle
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import ProfileMode, get_mode

X = np.arange(12.0).reshape(4, 3)


def compiled(mode, name="f"):
    """A function of a few Applys under a mode."""
    x = T.dmatrix("x")
    w = opwise.shared(np.ones((3, 2)), name="w")
    y = T.concatenate([T.nnet.sigmoid(T.dot(x, w)), x], axis=1)
    return opwise.function([x], y, mode=mode, name=name)


@pytest.fixture
def used():
    """A mode of which one function was called three times."""
    mode = ProfileMode("c|py")
    f = compiled(mode)
    for _ in range(3):
        f(X)
    return mode


def masked(text):
    """A summary with its figures masked; rows sorted, since times decide their order."""
    text = re.sub(r"local_time [\d.e-]+", "local_time #", text)
    text = re.sub(r"\t\d\.\d{3}\t", "\t#\t", text)
    text = re.sub(r"account for \d+\.\d\d of", "account for # of", text)
    lines = text.splitlines()
    lines = lines[: lines.index("(*) Op is running a c implementation") + 1]
    return sorted(lines)


EXPECTED = """\

ProfileMode.print_summary()
---------------------------

local_time # (Time spent running thunks)
Apply-wise summary: <fraction of local_time spent at this position> (<Apply position>, <Apply Op name>)
\t#\t0\tDot22
\t#\t1\tElemwise{ScalarSigmoid}[(0, 0)]
\t#\t2\tJoin
   ... (remaining 0 Apply instances account for # of the runtime)
Op-wise summary: <fraction of local_time spent on this kind of Op> <Op name>
\t#\t* Dot22
\t#\t* Elemwise{ScalarSigmoid}[(0, 0)]
\t#\t* Join
   ... (remaining 0 Ops account for # of the runtime)
Type-Op-wise summary: <fraction of local_time spent on this type of Op> <Op type name>
\t#\t* <class 'opwise.tensor.blas.Dot22'>
\t#\t* <class 'opwise.tensor.elemwise.Elemwise'>
\t#\t* <class 'opwise.tensor.join.Join'>
   ... (remaining 0 Op types account for # of the runtime)
(*) Op is running a c implementation"""


def test_summary_has_the_classic_form(used, capsys):
    used.print_summary()
    assert masked(capsys.readouterr().out) == sorted(EXPECTED.splitlines())


def test_python_linker_has_no_star(capsys):
    mode = ProfileMode("py")
    compiled(mode)(X)
    mode.print_summary()
    assert "\t* " not in capsys.readouterr().out


@pytest.mark.parametrize(
    "args, kwargs, applys, ops",
    [
        ((), {}, 3, 3),
        ((None, None), {}, 3, 3),
        ((1,), {}, 1, 3),
        ((2, 1), {}, 2, 1),
        ((), {"n_apply_to_print": 1, "n_ops_to_print": 2}, 1, 2),
        ((np.int64(2), None), {}, 2, 3),
    ],
)
def test_rows_to_print(used, capsys, args, kwargs, applys, ops):
    used.print_summary(*args, **kwargs)
    rows = [len(part.split("\n\t")) - 1 for part in capsys.readouterr().out.split("summary: ")]
    assert rows[1:] == [applys, ops, ops]


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", True, float("nan")])
@pytest.mark.parametrize("which", ["n_apply_to_print", "n_ops_to_print"])
def test_invalid_numbers_of_rows(used, capsys, which, n):
    message = rf"^{which} is {n!r}; it must be a whole number from 1$"
    with pytest.raises(ValueError, match=message):
        used.print_summary(**{which: n})
    with pytest.raises(ValueError, match=message):
        used.print_diff_summary(used, **{which: n})
    assert capsys.readouterr().out == ""


def test_flags_may_ask_for_no_rows(used, capsys, flags):
    flags({"ProfileMode.n_apply_to_print": 0, "ProfileMode.n_ops_to_print": 0})
    used.print_summary()
    assert capsys.readouterr().out.count("\t0.") == 0


def test_flags_say_how_many_rows(used, capsys, flags):
    flags({"ProfileMode.n_apply_to_print": 2, "ProfileMode.n_ops_to_print": 1})
    used.print_summary()
    rows = [len(part.split("\n\t")) - 1 for part in capsys.readouterr().out.split("summary: ")]
    assert rows[1:] == [2, 1, 1]


def test_attributes(used):
    profile = used.profile()
    assert used.local_time == pytest.approx(profile.local_ns * 1e-9)
    assert sum(used.apply_time.values()) == pytest.approx(used.local_time)
    assert sum(used.op_time.values()) == pytest.approx(used.local_time)
    assert set(used.apply_time) == {
        (0, "Dot22"), (1, "Elemwise{ScalarSigmoid}[(0, 0)]"), (2, "Join"),
    }  # fmt: skip
    assert used.op_cimpl == dict.fromkeys(used.op_time, True)
    assert used.fct_call == {"f": 3}
    assert used.fct_call_time["f"] >= used.local_time
    assert used.compile_time > 0


@pytest.mark.parametrize("linker", ["py", "c|py", "vm", "cvm", "c", "c&py"])
def test_every_linker_is_timed(linker):
    mode = ProfileMode(linker)
    f = compiled(mode)
    for _ in range(5):
        f(X)
    (function,) = mode.profile().functions
    assert [a.count for a in function.applys] == [5] * len(function.applys)
    assert all(sum(n for _, n in a.histogram) == 5 and a.least <= a.most for a in function.applys)
    assert function.calls == 5
    assert function.call_ns >= function.fn_ns >= function.thunk_ns > 0


def test_nothing_compiled_and_nothing_called(capsys):
    mode = ProfileMode()
    mode.print_summary()
    compiled(mode)
    mode.print_summary()
    out = capsys.readouterr().out
    assert "f NOT CALLED" in out
    assert mode.local_time == 0
    assert mode.apply_time == {}


def test_functions_of_one_mode_add_up():
    mode = ProfileMode("py")
    for name in ("one", "two"):
        compiled(mode, name)(X)
    assert mode.fct_call == {"one": 1, "two": 1}
    assert len(mode.apply_time) == 3, "equal Ops at equal positions are one row"


def test_diff_summary(used, capsys):
    other = ProfileMode("py")
    f = compiled(other)
    for _ in range(3):
        f(X)
    used.print_diff_summary(other, n_apply_to_print=2)
    out = capsys.readouterr().out
    assert "ProfileMode.print_diff_summary()" in out
    sections = [part.split("\n\t")[1:] for part in out.split("-wise difference: ")[1:]]
    assert [len(rows) for rows in sections] == [2, 3, 3]
    assert "only in" not in out
    figures = [float(field) for field in sections[1][0].split("\t")[:3]]
    assert figures[0] == pytest.approx(figures[1] - figures[2], rel=1e-2)
    assert figures[0] < 0, "self is the C linker: it takes less than numpy"


def test_a_diff_to_anything_that_has_a_profile(used, capsys):
    x = T.dmatrix("x")
    f = opwise.function([x], T.dot(x, x.T), profile=True, name="f")
    f(X)
    texts = []
    for other in (f.profile, f.profile.profile()):
        used.print_diff_summary(other)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and "Dot22" in texts[0]


@pytest.mark.parametrize("other", [None, 3, "profile.json", opwise.Mode("py"), ProfileMode])
def test_a_diff_to_an_object_without_a_profile(used, other):
    expected = rf"^other is {type(other).__name__}; it must be a ProfileMode, a ProfileStats or a"
    with pytest.raises(TypeError, match=expected):
        used.print_diff_summary(other)


def test_a_diff_of_unrelated_programs_says_so(used, capsys):
    other = ProfileMode("py")
    x = T.dvector("z")
    opwise.function([x], T.sort(x), mode=other)([1.0])
    line = "Nothing matches: self and other share no Apply"
    for unrelated in (other, ProfileMode()):
        used.print_diff_summary(unrelated)
        assert capsys.readouterr().out.splitlines()[5] == line
    used.print_diff_summary(used)
    assert line not in capsys.readouterr().out


def test_profile_survives_the_function(used):
    before = used.profile()
    assert used.profile().functions[0].applys == before.functions[0].applys
    assert before.functions[0].calls == 3


def test_pickle_gives_an_empty_profile(used):
    again = pickle.loads(pickle.dumps(used))
    assert isinstance(again, ProfileMode)
    assert again.profile().functions == ()
    compiled(again)(X)
    assert again.fct_call == {"f": 1}


def test_including_gives_a_new_empty_profile(used):
    other = used.excluding("fusion")
    assert isinstance(other, ProfileMode)
    assert other is not used
    assert other.profile().functions == ()


def test_registered_names():
    assert get_mode("PROFILE_MODE") is get_mode("PROFILE_MODE")
    assert get_mode("ProfileMode") is not get_mode("ProfileMode")


SCRIPT = """
import numpy as np, theano, theano.tensor as T
x = T.dvector("x")
f = theano.function([x], T.exp(x) * 2 {mode})
f(np.ones(3))
{more}
"""


@pytest.mark.parametrize(
    "flags, mode, more, summaries",
    [
        ("mode=ProfileMode", "", "", 1),
        ("mode=PROFILE_MODE", "", "", 1),
        ("mode=ProfileMode,optimizer_excluding=fusion", "", "", 1),
        ("", ", mode='PROFILE_MODE'", "", 1),
        ("", ", mode='PROFILE_MODE'", "f.maker.mode.print_summary()", 1),
        ("", ", mode=theano.ProfileMode()", "", 0),
        ("", "", "", 0),
    ],
)
def test_summary_at_exit(flags, mode, more, summaries):
    script = textwrap.dedent(SCRIPT.format(mode=mode, more=more))
    base = os.environ["OPWISE_FLAGS"]
    env = {**os.environ, "OPWISE_FLAGS": f"{base},{flags}" if flags else base}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("ProfileMode.print_summary()") == summaries
    assert done.stderr == ""


def test_no_apply_is_charged_with_loading_the_blas():
    """The BLAS is there once a profiled function is compiled, before its first call."""
    script = (
        "import theano, theano.tensor as T\n"
        "from opwise.linkers import opwise_c\n"
        "opwise_c.use_vectors('base')\n"  # kernels for wider vectors do without
        "assert not opwise_c.has_blas()\n"
        "x = T.dmatrix()\n"
        "theano.function([x], T.dot(x, x), mode=theano.ProfileMode())\n"
        "print(opwise_c.has_blas())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


# --- f.profile ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["PROFILE_MODE", None])
def test_f_profile_reads_the_record_of_the_mode(mode, capsys):
    """Both faces show one record: what the mode printed, ``f.profile`` prints too."""
    x = T.dvector("x")
    mode = mode or ProfileMode()
    f = opwise.function([x], T.exp(x) + 1, mode=mode, name="mine")
    g = opwise.function([x], T.sqr(x), mode=mode, name="other")
    for _ in range(3):
        f(np.ones(4))
    g(np.ones(4))
    (found,) = f.profile.profile().functions
    assert (found.name, found.calls, f.profile.fct_callcount) == ("mine", 3, 3)
    if isinstance(mode, ProfileMode):
        assert mode.profile().functions[0].applys == found.applys
        assert mode.fct_call == {"mine": 3, "other": 1}
    for show in (f.profile.summary, f.profile.print_summary):
        show()
        shown = capsys.readouterr().err
        assert "  Message: mine\n" in shown and "Time in 3 calls to Function" in shown


def test_a_profile_argument_keeps_its_own_profile():
    x = T.dvector("x")
    mode = ProfileMode()
    refused = opwise.function([x], T.exp(x), mode=mode, profile=False)
    named = opwise.function([x], T.exp(x), mode=mode, profile="text")
    named([1.0])
    assert refused.profile is False
    assert (named.profile.message, named.profile.fct_callcount) == ("text", 1)
    assert sum(mode.fct_call.values()) == 1
