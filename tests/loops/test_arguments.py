"""Invalid arguments of scan, steps that return something else, and values that do not fit."""

import sys

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.errors import MissingInputError
from opwise.loops import scan, until

pytestmark = pytest.mark.null

V = T.dvector("v")


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: scan(lambda: V), ValueError, "No information about the number of steps"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps=T.dscalar()), ValueError,
         "n_steps must be an int. dtype provided is float64"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps="5"), TypeError, "Cannot convert 5 to"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps=T.lvector("n")), TypeError,
         "n_steps of scan is one whole number, not n"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps=[3]), TypeError,
         "n_steps of scan is one whole number, not [3]"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps=3.7), TypeError,
         "n_steps of scan is a whole number, not 3.7: round it"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps=float("nan")), ValueError,
         "n_steps of scan is nan"),
        (lambda: scan(lambda e: e, V, n_steps=float("inf")), OverflowError,
         "n_steps of scan is inf"),
        (lambda: scan(lambda h: h, outputs_info=V, n_steps=np.float64(3)), ValueError,
         "n_steps must be an int. dtype provided is float64"),
        (lambda: scan(lambda e: e, {"inputs": V}), KeyError, "has its variable under 'input'"),
        (lambda: scan(lambda e: e, T.dscalar("s")), IndexError, "the sequence s has no rows"),
        (lambda: scan(lambda e: e, {"input": V, "taps": ["a"]}), TypeError,
         "taps are whole numbers of steps, not 'a', in the argument"),
        (lambda: scan(lambda h: h, outputs_info={"initial": V, "taps": [-1.5]}, n_steps=3),
         TypeError, "taps are whole numbers of steps, not -1.5"),
        (lambda: scan(lambda h: h, outputs_info="text", n_steps=3), TypeError,
         "Cannot convert text"),
        (lambda: scan(lambda h: h, outputs_info={"initial": V, "taps": [1]}, n_steps=3), ValueError,
         "All the tap values must be smaller than 0"),
        (lambda: scan(lambda h: h, outputs_info={"initial": V, "taps": [-1, -1]}, n_steps=3),
         ValueError, "All the taps must be different"),
        (lambda: scan(lambda h: h, outputs_info={"taps": [-1]}, n_steps=3), ValueError,
         "you need to provide a initial state"),
        (lambda: scan(lambda h: h, outputs_info={"initial": V[0], "taps": [-2]}, n_steps=3),
         IndexError, "are rows, one for each step before the first"),
        (lambda: scan(lambda h: h, outputs_info={"initial": V, "return_steps": 1}, n_steps=3),
         ValueError, "`return_steps` has been deprecated"),
        (lambda: scan(lambda e, h: [h, e], V, V[0]), ValueError,
         "Please provide None as outputs_info"),
        (lambda: scan(lambda e: 3, V), ValueError, "may only be made of lists, tuples, or"),
        (lambda: scan(lambda e: ({}, e), V), ValueError, "it is first the outputs"),
        (lambda: scan(lambda e: (until(e > 0), e), V), ValueError, "it is first the outputs"),
        (lambda: scan(lambda e: (e, until(T.stack([e, e]) > 0)), V), AssertionError,
         "the condition of until is a scalar"),
        (lambda: scan(lambda e: until(e > 0), V), ValueError, "which is a condition only"),
        (lambda: scan(lambda e: None, V), ValueError, "may only be made of lists, tuples, or"),
        (lambda: scan(lambda e: [e, None], V), ValueError, "may only be made of lists, tuples, or"),
        (lambda: scan(lambda e: np.ones(3), V), ValueError, "turn values into variables"),
        (lambda: scan(lambda e, h, g: h + e, V, [V[0], V[0]]), ValueError,
         "the step returns 1 outputs, and outputs_info has 2 elements"),
        (lambda: scan(lambda e: (e, {V: e}), V), TypeError, "must inherit from SharedVariable"),
        (lambda: scan(lambda e, h: h + e, V, 1.0), ValueError,
         "has dtype float32, while the result of the inner function (`fn`) has dtype float64"),
        (lambda: scan(lambda e, h: T.stack([h, e]), V, V[0]), ValueError,
         "has 0 dimension(s), while the result of the inner function (`fn`) has 1 dimension(s)"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_loop(make, kind, text):
    with pytest.raises(kind) as raised:
        make()
    assert text in str(raised.value)


@pytest.mark.parametrize("fn", [None, V, lambda e: e, lambda e, h, g: e])
def test_steps_that_cannot_be_called_with_their_arguments(fn):
    with pytest.raises(TypeError) as raised:
        scan(fn, V, V[0], non_sequences=[V, 2.0])
    (note,) = raised.value.__notes__
    assert "with 1 rows of sequences, 1 earlier values of outputs and 2 non_sequences" in note


@pytest.mark.parametrize(
    ("step", "outputs_info", "text"),
    [
        (lambda e, h: None, V[0], "not None: end the function with a return statement"),
        (lambda e, h: h + e, [V[0], None], "the step returns 1 outputs"),
        (lambda e, h: h + e, T.zeros((), "int64"), "has dtype int64"),
        (lambda e, h: (h, until(e < V)), V[0], "use T.any or T.all"),
    ],
)
def test_errors_name_the_loop_and_the_line_of_its_step(step, outputs_info, text):
    if text.startswith("use"):  # the condition is made, and refused, by the function itself
        with pytest.raises(AssertionError, match=text) as raised:
            scan(step, V, outputs_info, name="mine")
        assert not getattr(raised.value, "__notes__", [])
        return
    with pytest.raises(ValueError, match=text) as raised:
        scan(step, V, outputs_info, name="mine")
    (note,) = raised.value.__notes__
    line = step.__code__.co_firstlineno
    assert (
        note == f"The step of the loop 'mine' is built by <lambda> (File \"{__file__}\", "
        f"line {line})."
    )


def test_type_errors_of_a_step_are_its_own():
    with pytest.raises(TypeError) as raised:
        scan(lambda e: T.exp(e, 2, 3, 4), V)
    assert not getattr(raised.value, "__notes__", [])


def test_arguments_that_are_no_variables():
    rows = np.arange(3.0)
    for sequence in (rows, [rows], shared(rows), {"input": rows, "taps": None}):
        assert function([], scan(lambda e: 2 * e, sequence)[0])().tolist() == [0, 2, 4]
    out, _ = scan(lambda e, h, w: h + w.sum() * e, rows, np.float64(1), non_sequences=np.ones(2))
    assert function([], out)().tolist() == [1, 3, 7]
    for n_steps in (3, 3.0, np.int32(3), np.array(3), T.constant(3)):
        out, _ = scan(lambda h: h + 1, outputs_info=np.int8(0), n_steps=n_steps)
        assert function([], out)().tolist() == [1, 2, 3]


def test_strict_loops_read_only_what_they_are_given():
    w = shared(2.0, "w")
    with pytest.raises(MissingInputError, match="ScanOp is missing an input: w"):
        scan(lambda e: e * w, V, strict=True)
    out, _ = scan(lambda e, w: e * w, V, non_sequences=w, strict=True)
    np.testing.assert_array_equal(function([V], out)([1, 2]), [2, 4])
    s = T.dscalar()  # only shared variables have to be listed
    out, _ = scan(lambda e: e * s, V, strict=True)
    np.testing.assert_array_equal(function([V, s], out)([1, 2], 3), [3, 6])


def test_values_that_do_not_fit():
    n, first = T.iscalar("n"), T.dvector("first")
    cases = [
        (scan(lambda e, h: h + e, V, T.constant(0.0, dtype="float64"), n_steps=5, name="sums")[0],
         [V], [[1.0, 2.0]], ValueError,
         "for{cpu,sums} was asked to run for 5 steps, but sequence 0 has a row for 2 of them"),
        (scan(lambda h: h, outputs_info=first, n_steps=n)[0], [first, n], [[1.0], -2], IndexError,
         "was asked to run for a negative number of steps, -2"),
        (scan(lambda a, b: a + b, outputs_info={"initial": first, "taps": [-2, -1]}, n_steps=3)[0],
         [first], [[1.0]], ValueError, "needs 2 initial values of state 0, but got 1"),
        (scan(lambda h: T.concatenate([h, h]), outputs_info=first, n_steps=3)[0], [first], [[1.0]],
         ValueError, "step 0 of for{cpu,scan_fn} computes a value of shape (2,) for state 0"),
        (scan(lambda i: T.arange(i), T.arange(n))[0], [n], [3], ValueError,
         "step 1 of for{cpu,scan_fn} computes a value of shape (1,) for output 0"),
    ]  # fmt: skip
    for out, inputs, values, kind, text in cases:
        with pytest.raises(kind) as raised:
            function(inputs, out)(*values)
        assert text in str(raised.value) and "test_arguments.py" in str(raised.value)


@pytest.mark.parametrize("linker", ["c|py", "py"])
def test_errors_in_a_step_name_the_step_and_the_loop(linker):
    places = T.lvector()
    out, _ = scan(lambda i, h: V[i] * h, places, T.constant(1.0, dtype="float64"), name="lookup")
    line = sys._getframe().f_lineno - 1
    f = function([V, places], out, mode=Mode(linker, "fast_run"))
    with pytest.raises(IndexError) as raised:
        f([1.0, 2.0], [0, 1, 9, 1])
    (note,) = raised.value.__notes__
    assert note == (
        f'It happened in step 2 of for{{cpu,lookup}} (File "{__file__}", line {line}); '
        "the first one is step 0."
    )
