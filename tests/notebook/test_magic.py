"""``%%opwise`` in a kernel, as a user's Jupyter runs it."""

import pytest

from opwise.profiling.profile import Profile

pytestmark = pytest.mark.null

SETUP = """
%load_ext opwise
import numpy as np
import opwise
import opwise.tensor as T
opwise.config.mode = "FAST_COMPILE"
x = T.dvector("x")
f = opwise.function([x], T.exp(x).sum(), name="f")
own = opwise.function([x], T.tanh(x), name="own", profile=True)
for _ in range(3):
    f(np.ones(5)); own(np.ones(5))
"""
SUMMARY = "[(one.name, one.calls, [a.count for a in one.applys]) for one in p.functions]"


@pytest.fixture
def cell(run):
    """``cell(text, ...)``: run cells after the set-up; the Output of the last one."""
    return lambda *cells: run(SETUP, *cells)


def test_a_cell_is_profiled_alone(cell):
    calls = "for _ in range(4): f(np.ones(7))\nown(np.ones(2))\n"
    shown = cell(f"%%opwise p\ng = opwise.function([x], x + 1, name='g')\n{calls}g([1, 2])[0]")
    assert shown.error is None
    assert shown.shown[0]["text/plain"] in ("2.0", "np.float64(2.0)")  # the result of the cell
    assert "in 6 calls" in shown.html and "&lt;" not in shown.html
    assert all(f">{name}<" in shown.html for name in ("f", "own", "g"))
    assert "Function profiling" in shown.shown[-1]["text/plain"]
    found = cell(f"%%opwise p\n{calls}", SUMMARY)
    assert sorted(eval(found.text)) == [("f", 4, [4, 4]), ("own", 1, [1])]


def test_functions_are_timed_in_the_cell_alone(cell):
    timed = "f.calls, f.fn.timing.on, f.profile, own.profile.fct_callcount"
    assert eval(cell("%%opwise\nf(np.ones(3))", "f(np.ones(3))", timed).text) == (
        1, False, None, 3,
    )  # fmt: skip


def test_a_function_without_calls_in_the_cell_is_not_shown(cell):
    found = cell("%%opwise p\nf(np.ones(3));", SUMMARY)
    assert eval(found.text) == [("f", 1, [1, 1])]


def test_a_cell_without_functions(cell):
    shown = cell("%%opwise\n1 + 1")
    assert "neither compiled nor called a function" in shown.html
    assert "neither compiled nor called a function" in shown.text


def test_lines_are_named_by_their_cells(cell):
    shown = cell("%%opwise\nh = opwise.function([x], T.cos(x))\nh([1.0]); print(len(In) - 1)")
    number = int(shown.streams["stdout"])
    assert f">In[{number}]:2<" in shown.html and "ipykernel" not in shown.html


def test_options(cell, tmp_path):
    path = tmp_path / "cell.json"
    text = f"%%opwise -n 1 --mode FAST_RUN --no-memory -o {path}\n"
    text += "big = opwise.function([x], [T.exp(x), T.dot(x, x), x[0]])\nbig(np.ones(3));"
    shown = cell(text)
    assert shown.html.count("<tr>") == 2 + 1 and "more" in shown.html
    (big,) = Profile.load(path).functions
    assert big.calls == 1 and big.memory is None
    assert eval(cell("big.maker.mode is opwise.Mode or opwise.config.mode").text) == "FAST_COMPILE"


def test_one_statement(cell):
    shown = cell("%opwise f(np.ones(3))")
    assert "in 1 call<" in shown.html


def test_an_error_in_the_cell_is_an_error_of_the_notebook(cell):
    shown = cell("%%opwise p\nf(np.ones(3))\nraise KeyError('mine')")
    assert shown.error == ("KeyError", "'mine'")
    assert "in 1 call<" in shown.html
    assert eval(cell("f.fn.timing.on, opwise.config.profile").text) == (False, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-n 0", "-n is 0; it must be at least 1"),
        ("--mode fast", "--mode: Invalid value"),
        ("-o cell.txt", "cell.txt does not end in .json"),
        ("1p", "'1p' is not the name of a variable"),
        ("--what", "unrecognized arguments: --what"),
    ],
)
def test_bad_options(cell, options, message):
    shown = cell(f"%%opwise {options}\nraise SystemError")
    assert message in shown.streams["stderr"]


def test_objects_are_shown_by_the_kernel(cell):
    assert "compiled function" in cell("f").html
    assert "<svg" in cell("T.exp(x) * 2").html
    assert "shared variable" in cell("opwise.shared(1.0, name='s')").html
    assert "<svg" in cell("f.maker.fgraph").html
    assert "opwise profile: own" in cell("own.profile").html
    assert cell("print(f.maker.fgraph)").streams["stdout"].startswith("[")


def test_the_extension_can_be_unloaded(cell):
    shown = cell("%unload_ext opwise", "%%opwise\n1")
    assert "not found" in shown.streams["stderr"]
