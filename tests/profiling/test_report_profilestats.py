"""The text of ProfileStats: every line of it, with figures that are known."""

# ruff: noqa: E501  (the lines are as long as what is printed)

import re

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.profiling.profile import Profile
from opwise.profiling.reports import details, profilestats

pytestmark = pytest.mark.null

ELEMWISE = "<class 'opwise.tensor.elemwise.Elemwise'>"


def sample(build):
    """Two functions: 60, 30 and 10 microseconds in Applys, one of them in Python."""
    an_apply, a_function, _ = build
    first = a_function(
        an_apply("exp", 60_000, 0, count=2, op_class=ELEMWISE),
        an_apply("dot", 30_000, 1, c=False, count=2),
        calls=2, call_ns=400_000,
    )  # fmt: skip
    second = a_function(an_apply("exp", 10_000, 0, op_class=ELEMWISE), calls=1, call_ns=100_000)
    return Profile((first, second), "two", {"grad_seconds": 0.25, "seconds_since_import": 3.2041})


def test_every_line(build):
    assert (
        "\n".join([*profilestats.classic(sample(build)), ""])
        == """\
Function profiling
==================
  Message: two
  Time in 3 calls to Function.__call__: 5.000000e-04s
  Time in Function.fn.__call__: 1.000000e-04s (20.000%)
  Time in thunks: 1.000000e-04s (20.000%)
  Total compile time: 6.000000e-01s
    Number of Apply nodes: 3
    Theano Optimizer time: 2.000000e-01s
       Theano validate time: 2.000000e-02s
    Theano Linker time (includes C, CUDA code generation/compiling): 4.000000e-01s
       Import time 2.000000e-03s
       Node make_thunk time 3.000000e-01s
           Node exp(x) time 1.000000e-01s
           Node exp(x) time 1.000000e-01s

Time in all call to theano.grad() 2.500000e-01s
Time since theano import 3.204s
Class
---
<% time> <sum %> <apply time> <time per call> <type> <#call> <#apply> <Class name>
  70.0%    70.0%       0.000s       2.33e-05s     C        3       2   opwise.tensor.elemwise.Elemwise
  30.0%   100.0%       0.000s       1.50e-05s     Py       2       1   ops.dot
   ... (remaining 0 Classes account for   0.00%(0.00s) of the runtime)

Ops
---
<% time> <sum %> <apply time> <time per call> <type> <#call> <#apply> <Op name>
  70.0%    70.0%       0.000s       2.33e-05s     C        3        2   exp
  30.0%   100.0%       0.000s       1.50e-05s     Py       2        1   dot
   ... (remaining 0 Ops account for   0.00%(0.00s) of the runtime)

Apply
------
<% time> <sum %> <apply time> <time per call> <#call> <id> <Apply name>
  60.0%    60.0%       0.000s       3.00e-05s      2     0   exp(x)
  30.0%    90.0%       0.000s       1.50e-05s      2     1   dot(x)
  10.0%   100.0%       0.000s       1.00e-05s      1     0   exp(x)
   ... (remaining 0 Apply instances account for 0.00%(0.00s) of the runtime)

Here are tips to potentially make your code run faster
                 (if you think of new ones, suggest them on the mailing list).
                 Test them first, as they are not guaranteed to always provide a speedup.
  - Try the Theano flag floatX=float32
  - dot runs in Python, 30.0% of the time: no C implementation
"""
    )


def test_what_is_not_shown_is_summed(build):
    lines = profilestats.summary(sample(build), n_ops=1, n_apply=1).splitlines()
    assert "   ... (remaining 1 Classes account for  30.00%(0.00s) of the runtime)" in lines
    assert "   ... (remaining 1 Ops account for  30.00%(0.00s) of the runtime)" in lines
    assert "   ... (remaining 2 Apply instances account for 40.00%(0.00s) of the runtime)" in lines


def test_names_are_cut_where_the_line_ends(build):
    rows = profilestats.op_section(sample(build), 5, line_width=72)
    assert rows[3].endswith("2   ex") and rows[4].endswith("1   do")
    rows = profilestats.op_section(sample(build), 5, line_width=10)
    assert rows[3].endswith("2   ")


def test_an_op_that_runs_in_c_and_in_python(build):
    an_apply, a_function, _ = build
    profile = Profile((a_function(an_apply("exp", 6), an_apply("exp", 4, 1, c=False)),))
    (row,) = [line for line in profilestats.op_section(profile, 5) if line.endswith("exp")]
    assert "   C Py       2        2   exp" in row


def test_a_function_that_was_not_called(build):
    _, a_function, _ = build
    shown = profilestats.summary(Profile((a_function(calls=0, call_ns=0),)))
    assert "  Time in 0 calls to Function.__call__: 0.000000e+00s\n  Total compile" in shown
    assert "hint" not in shown and "Class" not in shown


def test_calls_without_times_of_applys(build):
    _, a_function, _ = build
    lines = profilestats.summary(Profile((a_function(call_ns=1000),))).splitlines()
    assert "  No execution time accumulated (hint: try config profiling.time_thunks=1)" in lines
    assert not any(line.startswith("  Time in thunks") for line in lines)
    assert "  Sorry, no tip for today." in lines


#: what Theano 1.0.5 prints of (x + y + z) * 2 without the rules that fuse, numbers masked
LEGACY = """\
Function profiling
==================
  Message: sum
  Time in # calls to Function.__call__: #s
  Time in Function.fn.__call__: #s (#%)
  Time in thunks: #s (#%)
  Total compile time: #s
    Number of Apply nodes: #
    Theano Optimizer time: #s
       Theano validate time: #s
    Theano Linker time (includes C, CUDA code generation/compiling): #s
       Import time #s
       Node make_thunk time #s
           Node Elemwise{add,no_inplace}(x, y) time #s
           Node Elemwise{mul,no_inplace}(TensorConstant{(1,) of 2.0}, Elemwise{add,no_inplace}.0) time #s
           Node Elemwise{add,no_inplace}(Elemwise{add,no_inplace}.0, z) time #s

Time in all call to theano.grad() #s
Time since theano import #s
Class
---
<% time> <sum %> <apply time> <time per call> <type> <#call> <#apply> <Class name>
  #%   #%       #s       #s     C        #       #   theano.tensor.elemwise.Elemwise
   ... (remaining # Classes account for   #%(#s) of the runtime)

Ops
---
<% time> <sum %> <apply time> <time per call> <type> <#call> <#apply> <Op name>
  #%    #%       #s       #s     C        #        #   Elemwise{add,no_inplace}
  #%   #%       #s       #s     C        #        #   Elemwise{mul,no_inplace}
   ... (remaining # Ops account for   #%(#s) of the runtime)

Apply
------
<% time> <sum %> <apply time> <time per call> <#call> <id> <Apply name>
  #%    #%       #s       #s      #     #   Elemwise{add,no_inplace}(x, y)
  #%   #%       #s       #s      #     #   Elemwise{mul,no_inplace}(TensorConstant{(1,) of 2.0}, Elemwise{add,no_inplace}.0)
   #%   #%       #s       #s      #     #   Elemwise{add,no_inplace}(Elemwise{add,no_inplace}.0, z)
   ... (remaining # Apply instances account for #%(#s) of the runtime)

Here are tips to potentially make your code run faster
                 (if you think of new ones, suggest them on the mailing list).
                 Test them first, as they are not guaranteed to always provide a speedup.
  - Try the Theano flag floatX=float32
"""


def masked(text):
    """Return the lines of a summary without numbers, rows of a section sorted."""
    # where a number begins says how wide it is: blanks and number become one mark
    text = re.sub(r" *(?<![\w{.(-])\d+(\.\d+)?(e[+-]\d+)?(?=[s% \n)])", " #", text)
    text = re.sub(r"\(\d+\.\d+(?=[s%])", "(#", text)
    text = re.sub(r" +#", " #", text)
    return sorted(text.splitlines())


def test_the_same_lines_as_theano():
    x, y, z = T.dvectors("xyz")
    mode = opwise.Mode("c|py", "fast_compile")
    f = opwise.function([x, y, z], T.mul(2.0, x + y + z), profile="sum", mode=mode)
    values = np.ones(3000)
    for _ in range(3):
        f(values, values, values)
    written = []

    class File:
        write = staticmethod(written.append)

    f.profile.summary(File)
    shown, details = "".join(written).split("\n\nTime of 3 calls: ")
    assert "VM overhead: allocation" in details
    expected = LEGACY.replace("theano.tensor.elemwise", "opwise.tensor.elemwise")
    assert masked(shown) == masked(expected)


def test_our_sections_fit_the_width(build):
    """Rows with names are cut, sentences and headers are wrapped, other rows stay as they are."""
    an_apply, a_function, _ = build
    long = an_apply("o" * 300, 90_000, count=9, lines=[("a.py", 1)])
    profile = Profile((a_function(long, calls=9),))
    whole, lines = details.sections(profile, 5), details.sections(profile, 5, 80)
    (row,) = [line for line in lines if "ooo" in line]
    assert len(row) == 80 and row[-1] == "…"
    assert any(line.startswith(row[:-1]) for line in whole)
    (sentence,) = [line for line in whole if line.startswith("By line")]
    start = next(k for k, line in enumerate(lines) if line.startswith("By line"))
    assert " ".join(lines[start : start + 2]).split() == sentence.split()
    (figures,) = [line for line in whole if line.endswith("  Applys")]
    assert figures in details.sections(profile, 5, 20)
