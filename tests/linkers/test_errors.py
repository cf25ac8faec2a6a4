"""What is said when an Apply fails, line by line, by every machine."""

import linecache
import re

import numpy as np
import pytest

import opwise.tensor as T
from opwise.compile.function import function
from opwise.compile.shared import shared
from opwise.graph.apply import Apply
from opwise.graph.op import Op
from opwise.linkers import errors
from opwise.linkers.base import OpWiseCLinker, PerformLinker, VM_Linker
from opwise.linkers.wrap import WrapLinker
from opwise.modes.mode import Mode

LINKERS = {
    "py": PerformLinker,
    "vm": VM_Linker,
    "c|py": OpWiseCLinker,
    "wrapped": lambda: WrapLinker([OpWiseCLinker()], lambda i, node, thunk: thunk()),
}

#: the first line, by whether C found the fault
FIRST = {
    "dot": (
        "shapes (2,3) and (2,3) not aligned: 3 (dim 1) != 2 (dim 0)",
        "Shape mismatch: x has 3 cols (and 2 rows) but y has 2 rows (and 3 cols)",
    ),
    "add": (
        "Dimension mismatch; shapes are (2, 3), (4, 3)",
        "Input dimension mis-match. (input[0].shape[0] = 2, input[1].shape[0] = 4)",
    ),
    "index": (
        "index 5 is out of bounds for axis 0 with size 3",
        "index out of bounds",
    ),
}


@pytest.fixture(params=list(LINKERS))
def linker(request):
    return request.param


def message(linker, inputs, output, values, error, optimizer=None):
    f = function(inputs, output, mode=Mode(LINKERS[linker](), optimizer))
    with pytest.raises(error) as raised:
        f(*values)
    assert raised.type is error, "the class is kept"
    assert len(raised.value.args) == 1
    return str(raised.value)


def product(linker):
    x, y = T.dmatrix("x"), T.dmatrix("y")
    out = T.dot(x, y) + 1  # the line that is blamed
    return message(linker, [x, y], out, [np.ones((2, 3))] * 2, ValueError)


def test_the_whole_text(linker):
    text = product(linker)
    lines = text.split("\n")
    assert lines[0].startswith(FIRST["dot"][linker != "py"])
    assert lines[1:8] == [
        "Apply node that caused the error: dot(x, y)",
        "Toposort index: 1" if lines[2].endswith("1") else "Toposort index: 0",
        "Inputs types: [TensorType(float64, matrix), TensorType(float64, matrix)]",
        "Inputs shapes: [(2, 3), (2, 3)]",
        "Inputs strides: [(24, 8), (24, 8)]",
        "Inputs values: ['not shown', 'not shown']",
        lines[7],
    ]
    assert re.fullmatch(
        r"Outputs clients: \[\[Elemwise\{add,no_inplace\}\(dot\.0, .*\)\]\]", lines[7]
    )
    assert lines[8:10] == [
        "",
        "Backtrace when the node is created(use Theano flag traceback.limit=N to make it longer):",
    ]
    hint = (
        "HINT: Use the Theano flag 'exception_verbosity=high' for a debugprint and storage map "
        "footprint of this apply node."
    )
    assert lines[-2:] == ["", hint]
    at = line_of("the line that is blamed")
    end = lines.index("Its inputs:") - 1
    assert lines[end - 2 : end] == [
        f'  File "{__file__}", line {at}, in product',
        "    out = T.dot(x, y) + 1  # the line that is blamed",
    ]
    made = f'    File "{__file__}", line {at - 1}: x, y = T.dmatrix("x"), T.dmatrix("y")'
    assert lines[end : end + 6] == [
        "",
        "Its inputs:",
        "  input 0: x of shape (2, 3), an input of the function",
        made,
        "  input 1: y of shape (2, 3), an input of the function",
        made,
    ]
    assert lines[end + 6 : end + 8] == [
        "",
        "What to do: The last dimension of x (3) must equal the second-to-last dimension of y (2). "
        "The transpose of y would fit: y.T.",
    ]


def line_of(words):
    with open(__file__) as f:
        return next(k for k, line in enumerate(f, 1) if words in line)


def test_the_users_line_survives_the_rewrites(linker):
    x, y = T.dmatrices("xy")
    scaled = x * 2  # one line
    text = message(
        linker, [x, y], T.exp(scaled) + y, [np.ones((2, 3)), np.ones((4, 3))], ValueError,
        optimizer="fast_run",
    )  # fmt: skip
    assert __file__ in text and "in test_the_users_line_survives_the_rewrites" in text


def test_a_fused_apply_names_all_its_lines(linker):
    x, y = T.dmatrices("xy")
    a = x * y  # the first of two lines
    b = T.exp(a)  # the second of two lines
    text = message(
        linker, [x, y], b, [np.ones((2, 3)), np.ones((4, 3))], ValueError, optimizer="fast_run"
    )
    assert "Composite" in text.split("\n")[1]
    assert "It computes the expressions at:" in text
    trace, _, _ = text.partition("It computes the expressions at:")
    assert trace.endswith("a = x * y  # the first of two lines\n"), "where the shapes do not fit"
    for words in ("the first of two", "the second of two"):
        assert f'  File "{__file__}", line {line_of(words + " lines")}\n' in text


def test_no_line_is_blamed_where_several_may_be(linker):
    x, y = T.dmatrices("xy")
    a = T.tanh(x * 2)
    b = T.exp(a * y)
    text = message(
        linker, [x, y], b, [np.ones((2, 3)), np.ones((4, 3))], ValueError, optimizer="fast_run"
    )
    trace, _, lines = text.partition("It computes the expressions at:")
    assert trace.endswith("b = T.exp(a * y)\n"), "the line of the result"
    assert "a = T.tanh(x * 2)" in "".join(
        linecache.getline(__file__, int(n)) for n in re.findall(r"line (\d+)", lines)
    )


def test_a_fault_in_advice_hides_nothing(linker, monkeypatch):
    monkeypatch.setattr(errors, "_remedies", lambda: 1 / 0)
    text = product(linker)
    assert "Its inputs:" in text and "What to do:" not in text
    assert text.endswith("storage map footprint of this apply node.") or "HINT" in text


def test_values_that_mean_nothing_are_not_shown():
    x, v = T.dmatrix("x"), T.dvector("v")
    text = message("c|py", [x, v], T.dot(x, v), [np.ones((2, 3)), np.ones(2)], ValueError,
                   optimizer="fast_run")  # fmt: skip
    assert "AllocEmpty" in text and "Inputs values: ['not initialized', array(1.)" in text


@pytest.mark.parametrize("case", ["add", "index"])
def test_first_lines(linker, case):
    x, y, i = T.dmatrix("x"), T.dmatrix("y"), T.lscalar("i")
    if case == "add":
        values = [np.ones((2, 3)), np.ones((4, 3))]
        text = message(linker, [x, y], x + y, values, ValueError)
    else:
        text = message(linker, [x, i], x[i], [np.ones((3, 2)), 5], IndexError)
    assert text.split("\n")[0].startswith(FIRST[case][linker != "py"])


def test_small_values_are_shown(linker):
    x, y = T.dvectors("xy")
    text = message(linker, [x, y], x + y, [np.arange(5.0), np.arange(6.0)], ValueError)
    assert "Inputs values: [array([0., 1., 2., 3., 4.]), 'not shown']" in text
    assert "Outputs clients: [['output']]" in text


def test_strides_are_those_of_the_values(linker):
    x, y = T.dmatrices("xy")
    text = message(linker, [x, y], x.T + y, [np.ones((2, 3)), np.ones((2, 3))], ValueError)
    assert "Inputs shapes: [(3, 2), (2, 3)]" in text
    assert "Inputs strides: [(8, 24), (24, 8)]" in text


class Failing(Op):
    """Raises what it is given."""

    def __init__(self, error):
        self.error = error

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        raise self.error

    def __str__(self):
        return "Failing"


class OwnError(Exception):
    """An exception of a user's own."""


class TwoArguments(Exception):
    """One that cannot be made of a text."""

    def __init__(self, code, reason):
        super().__init__(code, reason)
        self.code = code


def failing(linker, error):
    x = T.dvector("x")
    f = function([x], Failing(error)(x), mode=Mode(LINKERS[linker](), None))
    with pytest.raises(BaseException) as raised:
        f([1.0])
    return raised.value


@pytest.mark.parametrize(
    "error",
    [OwnError("mine"), LookupError("k"), ZeroDivisionError("z"), AssertionError("a")],
    ids=repr,
)
def test_exceptions_of_ops_keep_their_class(linker, error):
    raised = failing(linker, error)
    assert type(raised) is type(error)
    assert str(error) in str(raised) and "Apply node that caused the error: Failing(x)" in str(
        raised
    )
    assert "Toposort index: 0" in str(raised)


def test_the_traceback_leads_to_the_op(linker):
    raised = failing(linker, OwnError("mine"))
    functions, tb = [], raised.__traceback__
    while tb is not None:
        functions.append(tb.tb_frame.f_code.co_name)
        tb = tb.tb_next
    assert "perform" in functions


def test_an_exception_that_takes_other_arguments(linker):
    error = TwoArguments(7, "seven")
    raised = failing(linker, error)
    assert raised is error and raised.code == 7
    (note,) = raised.__notes__
    assert note.startswith("Apply node that caused the error: Failing(x)")


def test_the_cause_is_kept(linker):
    cause = OSError("the disk")
    error = OwnError("mine")
    error.__cause__ = cause
    raised = failing(linker, error)
    assert raised.__cause__ is cause


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_what_is_no_failure_is_left_alone(linker, error):
    assert failing(linker, error) is error
    assert not getattr(error, "__notes__", None)


def test_an_error_is_told_once(linker):
    """A function that an Op calls has told it already."""
    x = T.dvector("x")
    inner = function([x], Failing(OwnError("inside"))(x), mode=Mode(LINKERS[linker](), None))

    class Outer(Failing):
        def perform(self, node, inputs, output_storage):
            inner(inputs[0])

        def __str__(self):
            return "Outer"

    f = function([x], Outer(None)(x), mode=Mode(LINKERS[linker](), None))
    with pytest.raises(OwnError) as raised:
        f([1.0])
    assert str(raised.value).count("Apply node that caused the error") == 1
    assert "Failing(x)" in str(raised.value)


def test_verbose(linker, flags):
    flags(exception_verbosity="high")
    w = shared(np.ones(4), name="w")
    x = T.dmatrix("x")
    text = message(linker, [x], T.dot(x, x) + w, [np.ones((2, 3))], ValueError)
    lines = text.split("\n")
    assert lines[lines.index("Inputs values: ['not shown', 'not shown']") + 1] == (
        "Inputs type_num: [12, 12]"
    )
    at = lines.index("Debugprint of the apply node: ")
    assert lines[at + 1].startswith("dot [id A] <TensorType(float64, matrix)> ''")
    at = lines.index("Storage map footprint:")
    rows = lines[at + 1 : -2]
    assert " - x, Input, Shape: (2, 3), ElemSize: 8 Byte(s), TotalSize: 48 Byte(s)" in rows
    assert " - w, Shared Input, Shape: (4,), ElemSize: 8 Byte(s), TotalSize: 32 Byte(s)" in rows
    sizes = [int(re.search(r"TotalSize: (\d+)", row).group(1)) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert re.fullmatch(r" TotalSize: \d+ Byte\(s\) 0\.000 GB", lines[-2])
    assert lines[-1] == " TotalSize inputs: 80 Byte(s) 0.000 GB"
    assert "HINT" not in text


def test_without_a_trace(linker, flags):
    flags({"traceback.limit": 0})
    text = product(linker)
    assert "Backtrace when the node" not in text
    assert (
        "HINT: Re-running with most Theano optimization disabled could give you a back-trace"
        in text
    )
    assert "'optimizer=fast_compile'" in text and "'optimizer=None'" in text


def test_longer_traces(linker, flags):
    def build(depth):
        x, y = T.dmatrices("xy")
        return ([x, y], T.dot(x, y)) if depth == 0 else build(depth - 1)

    for limit in (1, 3):
        flags({"traceback.limit": limit})
        inputs, out = build(5)
        text = message(linker, inputs, out, [np.ones((2, 3))] * 2, ValueError)
        trace, _, _ = text.partition("Its inputs:")
        assert trace.count(f'File "{__file__}"') == limit
