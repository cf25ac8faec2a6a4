"""What is said when an Apply fails, line by line, by every machine."""

import linecache
import re
import traceback

import numpy as np
import pytest

import opwise.tensor as T
from opwise import (
    Apply,
    In,
    Mode,
    Op,
    OpFromGraph,
    OpWiseCLinker,
    PerformLinker,
    VM_Linker,
    WrapLinker,
    as_op,
    function,
    generic,
    shared,
)
from opwise.ifelse import ifelse
from opwise.linalg import solve
from opwise.linkers import errors
from opwise.loops import scan
from opwise.nn import conv2d

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
    assert lines.pop(0) == "Shapes do not fit: x (2, 3) times y (2, 3)"
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
    assert "Composite" in text.split("\n")[2]
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


def test_a_fault_in_advice_hides_nothing(linker, monkeypatch, faults_of_explanations):
    monkeypatch.setattr(errors, "_remedies", lambda: 1 / 0)
    text = product(linker)
    assert text.splitlines()[0].startswith(FIRST["dot"][linker != "py"])
    assert "Its inputs:" in text and "What to do:" not in text
    assert "(This could not be explained further: ZeroDivisionError in <lambda>, " in text
    assert text.endswith("storage map footprint of this apply node.") or "HINT" in text
    assert faults_of_explanations, "the test suite fails if an explanation does"
    faults_of_explanations.clear()


class Mute(Exception):
    """An exception without a text."""

    def __str__(self):
        raise RuntimeError("no text")


class Unshown:
    """A value that cannot be shown."""

    def __repr__(self):
        raise RuntimeError("not shown")

    shape = property(lambda self: 1 / 0)


@pytest.mark.parametrize("what", [Mute(), Unshown()])
def test_what_cannot_be_shown_hides_no_error(linker, what, faults_of_explanations):
    class Fails(Op):
        def make_node(self, a):
            return Apply(self, [a], [a.type()])

        def perform(self, node, inputs, outputs):
            raise what if isinstance(what, Exception) else KeyError("the error itself")

    a = generic("a")
    f = function([a], Fails()(a), mode=Mode(LINKERS[linker](), None))
    with pytest.raises((Mute, KeyError)) as raised:
        f(what)
    text = raised.value.args[0]
    assert "Fails" in text and "could not be explained further" in text
    assert "the error itself" in text or what.__class__ is Mute
    faults_of_explanations.clear()


NOTHING = {
    "fused": lambda x, y: T.exp(x + y) * 2,
    "one operation": lambda x, y: x - y,
    "sum": lambda x, y: T.sum(x * y, axis=0),
    "product": lambda x, y: T.dot(x, y),
    "index": lambda x, y: x[y.shape[0] - 1] + y,
    "inside": lambda x, y: OpFromGraph([x, y], [T.exp(x) + y], inline=True)(x, y),
    "nested": lambda x, y: OpFromGraph([x, y], [T.exp(x) + y])(x, y),
    "chosen": lambda x, y: ifelse(T.gt(x[0, 0], 0), x, y),
    "loop": lambda x, y: scan(lambda a: T.tanh(a) * y, sequences=[x])[0],
}


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", Mode("py", "fast_run")])
@pytest.mark.parametrize("case", list(NOTHING))
def test_none_in_place_of_an_array(case, mode):
    x, y = T.dmatrices("xy")
    f = function([x, y], NOTHING[case](x, y), mode=mode)
    for k, name in enumerate("xy"):
        for called in (f, f.copy()):
            values = [np.ones((2, 2)), np.ones((2, 2))]
            values[k] = None
            if case == "chosen" and name == "y":
                continue  # the branch that is not taken may have no value
            with pytest.raises((ValueError, TypeError)) as raised:
                called(*values)
            text = str(raised.value)
            assert "expected an ndarray, not None" in text.split("\n", 1)[0], text
            assert __file__ in text and "has no value, or its value is None" in text, text


@pytest.mark.parametrize("value", [np.ones(3), np.ones((2, 2), "float32"), 1.5])
def test_a_trusted_argument_that_does_not_fit_is_named(value):
    x, y = T.dmatrices("xy")
    f = function([x, y], x * 2 + y)
    f.trust_input = True
    with pytest.raises((TypeError, ValueError), match="at index 1") as raised:
        f(np.ones((2, 2)), value)
    text = str(raised.value)
    assert "expected an" in text and "trust_input=True" in text and "The input y" in text
    assert __file__ in text
    assert f(np.ones((2, 2)), np.ones((2, 2))).shape == (2, 2)


def test_a_value_that_does_not_fit_its_shared_variable_is_named():
    w = shared(np.ones((2, 2)), "w")
    f = function([], w * 2)
    w.container.storage[0] = np.ones(3)
    with pytest.raises(TypeError, match="The function keeps this value for w"):
        f()


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
    named, own, *_ = text.split("\n")
    assert own.startswith(FIRST[case][linker != "py"])
    assert (
        named
        == {
            "add": "Shapes do not fit: x (2, 3) and y (4, 3) in x + y",
            "index": "Index out of range: x (3, 2)",
        }[case]
    )


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


def frames(error):
    return [(f.filename, f.name) for f in traceback.extract_tb(error.__traceback__)]


def invert(matrix):
    return np.linalg.inv(matrix)


class Inverse(Op):
    """An Op whose perform fails in a function that it calls."""

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = invert(inputs[0])


A, B, C, V, U = [*T.dmatrices("ABC"), *T.dvectors("VU")]
W, BIAS = shared(np.ones((4, 3)), "W"), shared(np.ones(3), "bias")
I = T.ivector("I")  # noqa: E741
X4, K4 = T.tensor4("X4"), T.tensor4("K4")

#: {first line: (inputs, output, values)}
NAMED = {
    "A (2, 3) times B (4, 5)": ([A, B], lambda: T.dot(A, B), [(2, 3), (4, 5)]),
    "A.T (3, 2) times B (4, 5)": ([A, B], lambda: T.dot(A.T, B), [(2, 3), (4, 5)]),
    "A (4, 5) times V (30,)": ([A, V], lambda: T.dot(A, V), [(4, 5), (30,)]),
    "V (3,) times A (4, 5)": ([V, A], lambda: T.dot(V, A), [(3,), (4, 5)]),
    "V (3,) times U (4,)": ([V, U], lambda: T.dot(V, U), [(3,), (4,)]),
    "A (2, 5) times W (4, 3)": ([A], lambda: T.tanh(T.dot(A, W) + BIAS), [(2, 5)]),
    "dot(A, W) (2, 3) and V (7,)": ([A, V], lambda: T.tanh(T.dot(A, W) + V), [(2, 4), (7,)]),
    "exp(A) (2, 4) times B (3, 3)": ([A, B], lambda: T.dot(T.exp(A), B), [(2, 4), (3, 3)]),
    "A (2, 3) and V (4,)": ([A, V], lambda: T.sum((A - V) ** 2), [(2, 3), (4,)]),
    "A (2, 3) and B (3, 3)": ([A, B], lambda: T.maximum(A, B), [(2, 3), (3, 3)]),
    "A (2, 3) and B (4, 5) joined along axis 0": (
        [A, B], lambda: T.concatenate([A, B]), [(2, 3), (4, 5)]
    ),
    "V (2,) and U (3,) joined along axis 0": ([V, U], lambda: T.stack([V, U]), [(2,), (3,)]),
    "A (2, 2) reshaped to (3, -1)": ([A], lambda: A.reshape((3, -1)), [(2, 2)]),
    "V (3,) written to a part of A (2, 2)": (
        [A, V], lambda: T.set_subtensor(A[0], V), [(2, 2), (3,)]
    ),
    "V (4,) split along axis 0 into parts of (2, 3)": (
        [V], lambda: T.split(V, [2, 3], 2)[0], [(4,)]
    ),
    "A (3, 3) and V (4,)": ([A, V], lambda: solve(A, V), [(3, 3), (4,)]),
    "X4 (2, 3, 5, 5) and K4 (4, 2, 3, 3)": (
        [X4, K4], lambda: conv2d(X4, K4), [(2, 3, 5, 5), (4, 2, 3, 3)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", Mode("py", "fast_run")])
@pytest.mark.parametrize("first", list(NAMED))
def test_the_first_line_names_the_variables_of_the_program(first, mode):
    inputs, out, shapes = NAMED[first]
    f = function(inputs, out(), mode=mode, allow_input_downcast=True)
    with pytest.raises((ValueError, TypeError)) as raised:
        f(*[np.ones(shape) for shape in shapes])
    text = str(raised.value).split("\n", 1)[0]
    assert text.partition(" in ")[0] == f"Shapes do not fit: {first}"


@pytest.mark.parametrize("rewritten", ["sum", "update"])
def test_the_first_line_of_a_product_that_is_added(rewritten):
    if rewritten == "sum":
        f = function([A, B], T.dot(A, W) * 0.5 + B, mode="FAST_RUN")
        first = "B (2, 7) plus A (2, 4) times W (4, 3)"
    else:
        f = function([A, B], [], updates=[(W, W - 0.1 * T.dot(A.T, B))], mode="FAST_RUN")
        first = "W (4, 3) plus A.T (4, 2) times B (2, 7)"
    with pytest.raises(ValueError, match=re.escape(first)):
        f(np.ones((2, 4)), np.ones((2, 7)))


MODES = ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", "PROFILE_MODE", Mode("py", None)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("inside", ["itself", "loop", "nested"])
def test_the_traceback_leads_to_the_op_and_nowhere_else(mode, inside):
    x = T.dmatrix("x")
    out = {
        "itself": lambda: Inverse()(x),
        "loop": lambda: scan(lambda row: Inverse()(row.dimshuffle("x", 0)), sequences=[x])[0],
        "nested": lambda: OpFromGraph([x], [Inverse()(x)])(x),
    }[inside]()
    f = function([x], out, mode=mode)
    with pytest.raises(np.linalg.LinAlgError) as raised:
        f(np.ones((2, 3)))
    own = [name for file, name in frames(raised.value) if file == __file__]
    assert own[1:] == ["perform", "invert"]
    others = [file for file, _ in frames(raised.value) if file != __file__]
    assert others and all("numpy" in file for file in others), "what the Op called stays"


@pytest.mark.parametrize("mode", MODES)
def test_no_frame_of_opwise_is_in_a_traceback(mode, flags):
    x, y = T.dmatrices("xy")
    f = function([x, y], T.dot(x, y) + solve(x, y), mode=mode)
    here = [(__file__, "failed")]

    def failed(*args, **kwargs):
        with pytest.raises((TypeError, ValueError)) as raised:
            f(*args, **kwargs)
        return raised.value

    assert frames(failed(np.ones((2, 3)), np.ones((2, 3)))) == here
    assert frames(failed(np.ones((2, 3)), [[1.0], []])) == here
    assert frames(failed(np.ones((2, 3)))) == here
    assert frames(failed(np.ones((2, 3)), z=1)) == here
    flags({"traceback.internal": True})
    assert len(frames(failed(np.ones((2, 3)), np.ones((2, 3))))) > 1


def test_the_context_of_an_error_is_that_of_the_call(linker):
    x = T.dvector("x")
    f = function([x], x + x, mode=Mode(LINKERS[linker](), None))
    try:
        raise KeyError("before")
    except KeyError as before:
        with pytest.raises(TypeError) as raised:
            f(np.ones((2, 2)))
        assert raised.value.__suppress_context__
        context = raised.value.__context__
        while context is not None and context is not before:
            context = context.__context__
        assert context is before


def test_an_interrupt_leaves_a_call_without_frames_of_opwise(linker):
    class Stops(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            raise KeyboardInterrupt

    x = T.dvector("x")
    f = function([x], Stops()(x), mode=Mode(LINKERS[linker](), None))
    with pytest.raises(KeyboardInterrupt) as raised:
        f(np.ones(2))
    names = [name for _, name in frames(raised.value)][1:]
    assert names == (["<lambda>"] if linker == "wrapped" else []) + ["perform"]


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


@pytest.mark.parametrize("mutable", [True, False])
def test_values_that_no_step_has_computed_are_not_shown(mutable):
    """Steps that overwrite inputs are all prepared before the first of them runs."""
    x, v = T.dmatrix("x"), T.dvector("v")
    y = T.exp(x) - (-v / 2)
    mode = Mode("c|py", "fast_run").excluding("fusion")
    f = function([x, In(v, mutable=mutable, borrow=mutable)], y, mode=mode)
    with pytest.raises(ValueError) as caught:
        f(np.ones((3, 3)), np.array([1.0, -2.0, 1.0, 1.0]))
    text = str(caught.value)
    (values,) = [line for line in text.split("\n") if line.startswith("Inputs values")]
    shown = "'not computed'" if mutable else "array([[-0.5,  1. , -0.5, -0.5]])"
    assert values == f"Inputs values: ['not shown', {shown}]"
    assert "(1, 4)" in text.split("\n")[0]
    assert ("of shape (1, 4), not computed" in text) == mutable


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_an_error_keeps_what_it_was_raised_from_beside_what_its_caller_handles(linker):
    @as_op(itypes=[T.dvector], otypes=[T.dvector])
    def fails(x):
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904

    x = T.dvector("x")
    f = function([x], fails(x), mode=Mode(linker, "fast_compile"))
    try:
        raise OSError("handled by the caller")
    except OSError:
        with pytest.raises(ValueError, match="second") as caught:
            f([1.0])
    found, error = [], caught.value
    while error is not None:
        found.append(type(error))
        error = error.__context__
    assert found[-2:] == [KeyError, OSError]
