"""function(): the form of results, what is refused and why, conversion, updates, givens, defaults.

How the graph of a function is put together is tested in test_construct.
"""

import copy
import pickle
import re
from collections import OrderedDict

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, In, Mode, Op, Out, Param, Rop, change_flags, function, shared
from opwise.errors import MissingInputError, UnusedInputError
from opwise.scalar import add as scalar_add
from opwise.tensor import Elemwise

pytestmark = pytest.mark.null

QUICK = "FAST_COMPILE"


@pytest.fixture
def a():
    return T.dscalar("a")


@pytest.fixture
def b():
    return T.dscalar("b")


@pytest.fixture
def x():
    return T.dvector("x")


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outputs, expected",
    [
        (lambda a: a + 1, 3.0),
        (lambda a: [a + 1], [3.0]),
        (lambda a: (a + 1,), [3.0]),
        (lambda a: [a + 1, a * 5], [3.0, 10.0]),
        (lambda a: [a + 1, a + 1], [3.0, 3.0]),
        (lambda a: Out(a + 1), 3.0),
        (lambda a: [Out(a + 1, borrow=True), a], [3.0, 2.0]),
        (lambda a: {"q": a + 1, "p": a}, {"p": 2.0, "q": 3.0}),
        (lambda a: {}, {}),
        (lambda a: [], []),
        (lambda a: None, []),
    ],
)
def test_the_form_of_outputs_is_the_form_of_results(a, outputs, expected):
    result = function([a], outputs(a), mode=QUICK, on_unused_input="ignore")(2)
    assert type(result) is (np.ndarray if isinstance(expected, float) else type(expected))
    assert result == expected
    if isinstance(expected, dict):
        assert list(result) == sorted(expected)


def test_outputs_may_be_left_out(a):
    assert function([a], mode=QUICK, on_unused_input="ignore")(1) == []
    assert function([], mode=QUICK)() == []


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "complex128"])
def test_results_of_no_dimension_are_arrays(dtype):
    s = T.scalar("s", dtype=dtype)
    result = function([s], s, mode=QUICK)(np.ones((), dtype))
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == ((), dtype)


@pytest.mark.parametrize(
    "outputs, subset, expected",
    [
        (lambda a: [a + 1, a * 5], [1], [10.0]),
        (lambda a: [a + 1, a * 5], [1, 0], [10.0, 3.0]),
        (lambda a: [a + 1, a * 5], [], []),
        (lambda a: {"p": a, "q": a + 1}, ["q"], {"q": 3.0}),
        (lambda a: a + 1, [0], 3.0),
    ],
)
def test_output_subset(a, outputs, subset, expected):
    assert function([a], outputs(a), mode=QUICK)(2, output_subset=subset) == expected


@pytest.mark.parametrize(
    "outputs, error, told",
    [
        (lambda a: {1: a}, AssertionError, "keys of a dict of outputs must be strings, not 1"),
        (lambda a: 3, TypeError, "Outputs must be theano Variable or Out instances. Received 3 of"),
        (lambda a: [[a]], TypeError, "Outputs must be theano Variable or Out instances."),
        (lambda a: "a", TypeError, "Received a of type <class 'str'>"),
        (lambda a: [a, np.ones(2)], TypeError, "of type <class 'numpy.ndarray'>"),
    ],
)
def test_wrong_outputs(a, outputs, error, told):
    with pytest.raises(error, match=re.escape(told)):
        function([a], outputs(a), mode=QUICK)


def test_names(a):
    unnamed = function([a], a + 1, mode=QUICK)
    assert unnamed.name == f"{__file__}:{_line_of_unnamed()}"
    assert function([a], a + 1, name="plus", mode=QUICK).name == "plus"


def _line_of_unnamed():
    first = test_names.__code__.co_firstlineno
    with open(__file__) as source:
        lines = source.readlines()
    return next(n for n in range(first, len(lines)) if "unnamed = function" in lines[n - 1])


# --- wrong calls ----------------------------------------------------------------------------------


def add_and_multiply():
    a, b = T.dscalar("a"), T.dscalar("b")
    return function([a, b], [a + b, a * b], mode=QUICK, name="both")


def double(make=T.dvector, name="x", **kwargs):
    x = make(name)
    return function([x], x * 2, mode=QUICK, name="g", **kwargs)


def same_names():
    return function([T.dscalar("n"), T.dscalar("n")], [], mode=QUICK, on_unused_input="ignore")


WRONG_CALLS = {
    "one too few": (
        lambda: add_and_multiply()(1),
        TypeError, "Missing required input: b",
    ),
    "none at all": (
        lambda: add_and_multiply()(),
        TypeError, "Missing required input: a",
    ),
    "an unnamed one missing": (
        lambda: double(name=None)(),
        TypeError, "Missing required input: <TensorType(float64, vector)>",
    ),
    "one too many": (
        lambda: add_and_multiply()(1, 2, 3),
        TypeError, "Too many parameter passed to theano function",
    ),
    "unknown keyword": (
        lambda: add_and_multiply()(1, c=2),
        TypeError, "Unknown input or state: c. The function has 2 named inputs (a, b).",
    ),
    "unknown keyword, one input": (
        lambda: double()([1.0], c=2),
        TypeError, "The function has 1 named input (x).",
    ),
    "given twice": (
        lambda: add_and_multiply()(1, a=2),
        TypeError, "Multiple values for input: a",
    ),
    "a name that two have": (
        lambda: same_names()(n=1),
        TypeError, "Ambiguous name: n - please check the names of the inputs",
    ),
    "too many dimensions": (
        lambda: double()(np.ones((2, 2))),
        TypeError, 'Bad input argument to theano function with name "g" at index 0 (0-based).',
        "Wrong number of dimensions: expected 1, got 2 with shape (2, 2).",
    ),
    "too few dimensions": (
        lambda: double()(5.0),
        TypeError, "Wrong number of dimensions: expected 1, got 0 with shape ().",
        "The input x takes a list or a vector: f([1., 2.]), or f([5]) for one element.",
    ),
    "the second argument": (
        lambda: add_and_multiply()(1.0, [1.0]),
        TypeError, "at index 1 (0-based)", "expected 0, got 1 with shape (1,)",
    ),
    "by keyword": (
        lambda: add_and_multiply()(b=[1.0], a=1.0),
        TypeError, "at index 1 (0-based)", "expected 0, got 1 with shape (1,)",
    ),
    "dtype of an array": (
        lambda: double(T.ivector)(np.ones(2)),
        TypeError, "TensorType(int32, vector) cannot store a value of dtype float64 without "
        "risking loss of precision", 'set "allow_input_downcast=True" when calling "function"',
        'Value: "array([1., 1.])"',
    ),
    "a list that does not fit": (
        lambda: double(T.ivector)([1.5, 2.0]),
        TypeError, "TensorType(int32, vector) cannot store accurately value [1.5, 2.0]: it is "
        "float64, and in int32 1.5 would be 1.", "3) give the variable the dtype float64",
    ),
    "float64 in float32": (
        lambda: double(T.fmatrix)([[float("nan"), 1.0], [2.0, 1.1]]),
        TypeError, "TensorType(float32, matrix) cannot store accurately value [[nan, 1.0], [2.0, "
        "1.1]]: it is float64, and in float32 1.1 would be 1.100000023841858.",
        "1) explicitly cast your data to float32: numpy.asarray(value, 'float32')",
        '2) set "allow_input_downcast=True"', "3) compute in float64: set the flag floatX=float64",
    ),
    "a complex array": (
        lambda: double()(np.complex128(1j)),
        TypeError, "without losing its imaginary part", "pass value.real",
    ),
    "None in a list": (
        lambda: double(T.dvector)([1.0, None]),
        TypeError, "an array of objects, such as None", "value.astype('float64')",
    ),
    "rows of several lengths": (
        lambda: double(T.dmatrix)([[1.0, 2.0], [3.0]]),
        ValueError, "inhomogeneous shape", "rows of a list must have equal lengths",
    ),
    "an integer that does not fit": (
        lambda: double(T.bvector)([1, 300]),
        TypeError, "cannot store accurately value [1, 300]",
    ),
    "a dimension that is not one": (
        lambda: double(T.drow)(np.ones((2, 3))),
        TypeError, "Non-unit value on shape on a broadcastable dimension.", "(2, 3)",
        "(True, False)",
    ),
    "text": (
        lambda: double()("abc"),
        ValueError, "could not convert string to float",
    ),
    "None": (
        lambda: double()(None),
        ValueError, "expected an ndarray, not None", "Elemwise{mul,no_inplace}",
    ),
    "a variable": (
        lambda: double()(T.dvector()),
        TypeError, "Expected an array-like object, but found a Variable: maybe you are trying to "
        "call a function on a (possibly shared) variable instead of a numeric array?",
    ),
    "a shared variable": (
        lambda: double()(shared(np.ones(2))),
        TypeError, "Expected an array-like object, but found a Variable",
    ),
    "a complex number": (
        lambda: add_and_multiply()(1j, 1),
        TypeError, "complex",
    ),
    "lists of different lengths": (
        lambda: double(T.dmatrix)([[1.0], [2.0, 3.0]]),
        ValueError, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls(case):
    call, error, *told = WRONG_CALLS[case]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    for text in told:
        assert text in str(caught.value)


def test_the_error_of_an_argument_shows_where_its_variable_was_made():
    f = double()
    with pytest.raises(TypeError, match="Backtrace when that variable is created:") as caught:
        f(np.ones((2, 2)))
    assert __file__ in str(caught.value)
    assert "x = make(name)" in str(caught.value)
    assert len(caught.value.args) == 1


def test_after_a_refused_call_the_function_works():
    f = add_and_multiply()
    for wrong in ((1,), (1, 2, 3), ([1.0], 2)):
        with pytest.raises(TypeError):
            f(*wrong)
        assert f(3, 4) == [7, 12]
    assert [container.data for container in f.input_storage] == [None, None]


WRONG_FUNCTIONS = {
    "inputs are no list": (
        lambda a, x: function("x", x * 2),
        Exception, "Input variables of a Theano function should be contained in a list, even when "
        "there is a single input.",
    ),
    "an input is a number": (
        lambda a, x: function([3], x * 2),
        TypeError, "Unknown parameter type: <class 'int'>",
    ),
    "an input is a constant": (
        lambda a, x: function([T.constant(1.0)], x),
        TypeError, "Constants not allowed in param list",
    ),
    "an input is shared": (
        lambda a, x: function([shared(1.0)], x),
        TypeError, "Cannot use a shared variable (<TensorType(float64, scalar)>) as explicit "
        "input. Consider substituting a non-shared variable via the `givens` parameter",
    ),
    "an input twice": (
        lambda a, x: function([x, x], x * 2),
        UnusedInputError, "Variable x is used twice in inputs to theano.function, at indices 0 and "
        "1.  This would result in values provided for it being ignored.",
    ),
    "an input too many": (
        lambda a, x: function([a, x], x * 2),
        UnusedInputError, "theano.function was asked to create a function computing outputs given "
        "certain inputs, but the provided input variable at index 0 is not part of the "
        "computational graph needed to compute the outputs: a.",
    ),
    "an input too few": (
        lambda a, x: function([x], x + a),
        MissingInputError, "Input 0 of the graph (indices start from 0), used to compute "
        "InplaceDimShuffle{x}(a), was not provided and not given a value. Use the Theano "
        "flag exception_verbosity='high', for more information on this error.",
    ),
    "an input of an update too few": (
        lambda a, x: function([], updates=[(shared(1.0), a)]),
        MissingInputError, "Undeclared input",
    ),
    "an unknown mode": (
        lambda a, x: function([x], x * 2, mode="NOPE"),
        Exception, "No predefined mode exist for string: NOPE",
    ),
    "on_unused_input": (
        lambda a, x: function([x], x * 2, on_unused_input="zz"),
        ValueError, "Invalid value for keyword on_unused_input of theano.function: 'zz'.",
    ),
    "an unknown option": (
        lambda a, x: function([x], x * 2, nonsense=1),
        TypeError, "nonsense",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_FUNCTIONS)
def test_wrong_functions(a, x, case):
    make, error, *told = WRONG_FUNCTIONS[case]
    with pytest.raises(error) as caught:
        make(a, x)
    assert type(caught.value) is error
    for text in told:
        assert text in str(caught.value)


def test_unused_inputs_may_be_allowed(a, x):
    assert function([a, x], a + 1, on_unused_input="ignore", mode=QUICK)(1, [1.0]) == 2
    with pytest.warns(UserWarning, match="at index 1 is not part of the computational graph"):
        function([a, x], a + 1, on_unused_input="warn", mode=QUICK)


def test_the_flag_for_unused_inputs(a, x, flags):
    flags(on_unused_input="ignore")
    assert function([a, x], a + 1, mode=QUICK)(1, [1.0]) == 2


def test_graphs_that_overwrite_need_accept_inplace(x):
    overwrite = Elemwise(scalar_add, {0: 0})
    with pytest.raises(TypeError, match="Graph must not contain inplace operations"):
        function([x], overwrite(x, x), mode=QUICK)
    f = function([In(x, mutable=True)], overwrite(x, 1.0), accept_inplace=True, mode=QUICK)
    for g in (f, f.copy(), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        value = np.zeros(2)
        assert np.ravel(g(value)).tolist() == [1.0, 1.0]
        assert value.tolist() == [1.0, 1.0]


# --- numbers and lengths that the extension checks itself -----------------------------------------

NUMBERS = (
    0, 1, -1, 127, 128, -128, -129, 2**15, 2**24, 2**24 + 1, 2**31 - 1, 2**31, -(2**31), 2**53,
    2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**70, True, 0.0, -0.0, 1.0, 0.5, 0.1, 1e300, 3e38,
    2.0**24, 2.0**53, 1e16, 2.0**63, -(2.0**63), float("inf"), float("nan"), 1j,
    *(kind(1.5) for kind in (np.float16, np.float32, np.float64, np.longdouble)),
    *(kind(1) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, np.bool_)),
    np.int64(2**40), np.float64(0.1), np.complex64(1), "1", None,
)  # fmt: skip


@pytest.mark.parametrize(
    "dtype", "bool float16 complex64 uint8 uint64 int8 int16 int32 int64 float32 float64".split()
)
@pytest.mark.parametrize("downcast", [None, False, True])
def test_numbers_are_taken_as_the_type_takes_them(dtype, downcast):
    """A call and ``filter`` agree, whether the extension or ``filter`` makes the array."""
    x = T.TensorType(dtype, ())()
    f = function([x], x.copy(), mode=QUICK, allow_input_downcast=downcast)
    for number in NUMBERS:
        if number is None:
            continue  # None is no number: the first Apply that reads it raises
        try:
            expected = x.type.filter(number, allow_downcast=downcast)
        except Exception as error:
            with pytest.raises(type(error)):
                f(number)
        else:
            result = f(number)
            assert result.dtype == dtype and result.shape == ()
            np.testing.assert_array_equal(result, expected, err_msg=repr(number))
            assert str(result) == str(expected)  # the sign of zero too


@pytest.mark.parametrize("linker", ["py", "c|py"])
@pytest.mark.parametrize("char", ["q", "Q"])
def test_long_long_is_long(char, linker):
    """numpy has two dtypes of 64-bit integers, which are equal."""

    class LongLong(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0].astype(char)

    x = T.TensorType(np.dtype(char).name, (False,))()
    kept = shared(np.arange(3, dtype=char))
    given, mode = np.arange(6, dtype=char)[::2], Mode(linker, "fast_run")
    assert function([x], x + kept, mode=mode)(given).tolist() == [0, 3, 6]
    assert function([x], LongLong()(x) * 2, mode=mode)(given).tolist() == [0, 4, 8]
    swapped = given.astype(f">{char}")
    assert function([x], x * 2, mode=mode)(swapped).tolist() == [0, 4, 8]
    if linker == "c|py":
        f = function([x], x * 2, mode=mode)
        f.trust_input = True
        assert f(swapped).tolist() == [0, 4, 8]


def test_strict_inputs_take_no_numbers():
    x = T.fscalar()
    f = function([In(x, strict=True)], x.copy(), mode=QUICK)
    assert f(np.array(2, "float32")) == 2
    for number in (2.0, 2, np.float32(2)):
        with pytest.raises(TypeError, match="expected a ndarray object"):
            f(number)


def test_lengths_of_broadcastable_dimensions_are_checked():
    x = T.TensorType("float64", (False, True, False, True))()
    f = function([x], x.sum(), mode=QUICK)
    assert f(np.ones((2, 1, 3, 1))) == 6
    assert f(np.ones((0, 1, 3, 1))) == 0
    for shape in ((2, 2, 3, 1), (2, 1, 3, 2), (1, 0, 1, 1)):
        with pytest.raises(TypeError, match="Non-unit value on shape on a broadcastable dim"):
            f(np.ones(shape))


# --- conversion of arguments ----------------------------------------------------------------------

LOST = TypeError

CONVERSIONS = [
    # dtype and ndim of the input, allow_input_downcast, value, result
    ("float64", 1, None, [1, 2], [1.0, 2.0]),
    ("float64", 1, None, (1.5, True), [1.5, 1.0]),
    ("float64", 1, None, [], []),
    ("float64", 1, None, np.array([1, 2], "int64"), [1.0, 2.0]),
    ("float64", 1, None, np.array([1, 2], "float32"), [1.0, 2.0]),
    ("float64", 1, None, np.array([True, False]), [1.0, 0.0]),
    ("float64", 1, None, np.array([1.5, 2.0], ">f8"), [1.5, 2.0]),
    ("float64", 1, None, np.arange(6.0)[::-2], [5.0, 3.0, 1.0]),
    ("float64", 0, None, True, 1.0),
    ("float64", 0, None, np.float32(1.5), 1.5),
    ("float64", 0, None, np.array(2), 2.0),
    ("float64", 1, None, 1.0, LOST),
    ("float64", 1, None, np.array(1.0), LOST),
    ("float64", 0, None, [1.0], LOST),
    ("float64", 2, None, [1.0, 2.0], LOST),
    ("int32", 1, None, [1, 2], [1, 2]),
    ("int8", 1, None, [1, 300], LOST),
    ("int8", 1, True, np.array([1, 300]), [1, 44]),
    ("int32", 1, None, np.array([1, 2], "int8"), [1, 2]),
    ("int32", 1, None, np.array([1, 2], "int64"), LOST),
    ("int32", 1, True, np.array([1, 2], "int64"), [1, 2]),
    ("int32", 1, False, np.array([1, 2], "int64"), LOST),
    ("int32", 1, None, [1.5, 2.0], LOST),
    ("int32", 1, True, [1.9, -1.9], [1, -1]),
    ("float32", 1, None, [1.0, 2.5], [1.0, 2.5]),
    ("float32", 1, None, [1.1], LOST),
    ("float32", 0, None, 1.1, LOST),
    ("float32", 0, None, 1.5, 1.5),
    ("float32", 0, True, 1.1, np.float32(1.1)),
    ("float32", 0, False, 1.1, LOST),
    ("float32", 1, None, np.array([1.0, 2.0]), LOST),
    ("float32", 1, True, np.array([1.1, 2.0]), [np.float32(1.1), 2.0]),
    ("bool", 1, None, [True, False], [True, False]),
    ("bool", 1, None, np.array([1, 0]), LOST),
]


@pytest.mark.parametrize("dtype, ndim, downcast, value, expected", CONVERSIONS)
def test_conversions(dtype, ndim, downcast, value, expected):
    x = T.TensorType(dtype, (False,) * ndim)("x")
    f = function([x], x, allow_input_downcast=downcast, mode=QUICK)
    if expected is LOST:
        with pytest.raises(TypeError, match="Bad input argument"):
            f(value)
        return
    result = f(value)
    assert result.dtype == dtype
    assert result.tolist() == np.asarray(expected).tolist()


@pytest.mark.parametrize(
    "value, downcast, fits",
    [
        (1.1, None, True),
        (1.1, False, False),
        (np.float64(1.1), None, False),
        (np.float64(1.1), True, True),
        (np.float64(1.5), None, True),
        ([1.1], None, False),
    ],
)
def test_pythons_floats_under_floatx_float32(flags, value, downcast, fits):
    flags(floatX="float32")
    s = T.scalar("s") if not isinstance(value, list) else T.vector("s")
    f = function([s], s, allow_input_downcast=downcast, mode=QUICK)
    if not fits:
        with pytest.raises(TypeError):
            f(value)
    else:
        assert f(value) == np.float32(value)


def test_strict_inputs(x):
    f = function([In(x, strict=True)], x, mode=QUICK)
    assert f(np.ones(1)).tolist() == [1.0]
    for value, told in (
        ([1.0], "expected a ndarray object."),
        (np.ones(1, "float32"), r"expected a ndarray object with dtype = float64 \(got float32\)"),
        (np.ones((1, 1)), "Wrong number of dimensions: expected 1, got 2"),
    ):
        with pytest.raises(TypeError, match=told):
            f(value)


@pytest.mark.parametrize("allow", [True, False, None])
def test_allow_downcast_of_one_input(allow):
    i = T.ivector("i")
    f = function([In(i, allow_downcast=allow)], i, mode=QUICK)
    if allow:
        assert f([1.9]).tolist() == [1]
    else:
        with pytest.raises(TypeError):
            f([1.9])


def test_integers_within_floatx_under_the_other_cast_policy():
    """Results, arguments and shared values: as Theano 1.0.5 under numpy+floatX."""
    with change_flags(cast_policy="numpy+floatX", floatX="float32"):
        m, i = T.matrix("m"), T.lvector("i")
        outputs = [
            i + 1.5, m * i, m / m.shape[0], T.dot(m, i), T.switch(i > 0, i, 1.5),
            (m * i).sum(axis=0), T.maximum(i, 1.5) * m.shape[1], T.concatenate([i, m[0]]),
        ]  # fmt: skip
        assert {out.type.dtype for out in outputs} == {"float32"}
        values = np.array([[1.5, -2.0], [3.0, 0.25]], "float32"), np.array([3, -1])
        for mode in ("FAST_RUN", "FAST_COMPILE", Mode(linker="py", optimizer=None)):
            found = function([m, i], outputs, mode=mode)(*values)
            expected = [
                [4.5, 0.5], [[4.5, 2.0], [9.0, -0.25]], [[0.75, -1.0], [1.5, 0.125]],
                [6.5, 8.75], [3.0, 1.5], [13.5, 1.75], [6.0, 3.0], [3.0, -1.0, 1.5, -2.0],
            ]  # fmt: skip
            for value, numbers in zip(found, expected, strict=True):
                assert (value.dtype, value.tolist()) == (np.float32, numbers)
        f = function([m], m * 2, mode=QUICK)
        assert f(np.array([[1, 2]])).tolist() == [[2.0, 4.0]]
        with pytest.raises(TypeError, match="without losing its imaginary part"):
            f(np.array([[1.0]], "complex64"))
    with pytest.raises(TypeError, match="without risking loss of precision"):
        f(np.array([[1, 2]], "int32"))


def test_trust_input_leaves_out_conversion(x):
    f = function([x], x * 2, mode=QUICK)
    assert not f.trust_input
    f.trust_input = True
    assert f(np.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="expected an ndarray"):
        f([1.0, 2.0])
    with pytest.raises(TypeError, match="dtype float32"):
        f(np.ones(2, "float32"))
    f.trust_input = False
    assert f([1.0, 2.0]).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "output", [lambda x: x, lambda x: x[1:], lambda x: x * 2, lambda x: x.sum()]
)
def test_none_is_refused_by_the_apply_that_reads_it(mode, x, output):
    f = function([x], output(x), mode=mode)
    with pytest.raises(ValueError, match=r"expected an ndarray, not None\nApply node"):
        f(None)
    assert f([1.0]).tolist() == output(np.ones(1)).tolist()


def test_none_for_an_input_that_no_apply_reads(a, x):
    assert function([a, x], a * 2, on_unused_input="ignore", mode=QUICK)(2, None) == 4


# --- updates, givens, defaults --------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda s, e: [(s, e)], lambda s, e: ((s, e),), lambda s, e: [[s, e]], lambda s, e: {s: e},
        lambda s, e: OrderedDict([(s, e)]), lambda s, e: zip([s], [e], strict=True),
    ],
)  # fmt: skip
def test_updates_come_after_the_outputs(mode, a, form):
    s = shared(10.0, name="s")
    f = function([a], s * 2, updates=form(s, s + a), mode=mode)
    assert [float(f(1)), float(f(2)), float(f(3))] == [20.0, 22.0, 26.0]
    assert s.get_value() == 16.0


def test_updates_read_old_values(mode):
    p, q = shared(np.zeros(2)), shared(np.ones(2))
    f = function([], [p, q], updates=[(p, q), (q, p + q)], mode=mode)
    results = [[v.tolist() for v in f()] for _ in range(4)]
    assert [r[0][0] for r in results] == [0, 1, 1, 2]
    assert [r[1][0] for r in results] == [1, 1, 2, 3]


def test_two_functions_share_the_value(mode, a):
    s = shared(0.0)
    inc = function([a], updates=[(s, s + a)], mode=mode)
    dec = function([a], updates=[(s, s - a)], mode=mode)
    inc(5), dec(2), inc(1)
    assert s.get_value() == 4
    s.set_value(100.0)
    dec(1)
    assert function([], s, mode=mode)() == 99


def test_an_update_may_change_the_shape(mode):
    s = shared(np.zeros(1))
    grow = function([], s.shape[0], updates=[(s, T.concatenate([s, s + 1]))], mode=mode)
    assert [int(grow()) for _ in range(4)] == [1, 2, 4, 8]
    assert s.get_value().shape == (16,)


@pytest.mark.parametrize(
    "value, stored", [(3.5, 3.5), (2, 2.0), (np.float32(1.5), 1.5), (np.array(4), 4.0)]
)
def test_updates_by_values(value, stored):
    s = shared(0.0)
    function([], updates=[(s, value)], mode=QUICK)()
    assert s.get_value() == stored


WRONG_UPDATES = {
    "of a variable": (lambda a, s: [(a, s)], TypeError, "update target must be a SharedVariable"),
    "twice": (
        lambda a, s: [(s, s + 1), (s, s + 2)],
        ValueError, "this shared variable already has an update expression",
    ),
    "another dtype": (
        lambda a, s: [(s, s + a)],
        TypeError, "An update must have the same type as the original shared variable "
        "(shared_var=s, shared_var.type=TensorType(float32, vector), ",
        "update_val.type=TensorType(float64, vector)).",
    ),
    "another ndim": (lambda a, s: [(s, s.sum())], TypeError, "An update must have the same type"),
    "more broadcastable": (
        lambda a, s: [(s, T.zeros((1,), dtype="float32"))],
        TypeError, "If the difference is related to the broadcast pattern, you can call the "
        "tensor.unbroadcast(",
    ),
    "no pairs": (lambda a, s: 3, TypeError, "int"),
    "short pairs": (lambda a, s: [(s,)], ValueError, "expected 2"),
    "nothing": (lambda a, s: [(s, None)], TypeError, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_UPDATES)
def test_wrong_updates(a, case):
    updates, error, *told = WRONG_UPDATES[case]
    s = shared(np.zeros(2, "float32"), name="s")
    with pytest.raises(error) as caught:
        function([a], [], updates=updates(a, s), mode=QUICK)
    assert type(caught.value) is error
    for text in told:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    "options, results, after",
    [
        (lambda s: {}, [1.0, 2.0, 3.0], 4.0),
        (lambda s: {"no_default_updates": True}, [1.0, 1.0, 1.0], 1.0),
        (lambda s: {"no_default_updates": [s]}, [1.0, 1.0, 1.0], 1.0),
        (lambda s: {"no_default_updates": []}, [1.0, 2.0, 3.0], 4.0),
        (lambda s: {"updates": [(s, s + 10)]}, [1.0, 11.0, 21.0], 31.0),
    ],
)
def test_default_updates(options, results, after):
    s = shared(1.0)
    s.default_update = s + 1
    f = function([], s, mode=QUICK, **options(s))
    assert [float(f()) for _ in range(3)] == results
    assert s.get_value() == after


def test_no_default_updates_is_a_boolean_or_a_list():
    s = shared(1.0)
    s.default_update = s + 1
    with pytest.raises(TypeError, match="no_default_update should be either a boolean or a list"):
        function([], s, no_default_updates="s", mode=QUICK)


def test_givens_of_minibatches(mode, x):
    data = shared(np.arange(6.0), name="data")
    index = T.lscalar("index")
    total = shared(0.0)
    f = function(
        [index], x.sum(), updates=[(total, total + x.sum())], mode=mode,
        givens={x: data[index * 2 : (index + 1) * 2]},
    )  # fmt: skip
    assert [float(f(i)) for i in range(3)] == [1.0, 5.0, 9.0]
    assert total.get_value() == 15.0


@pytest.mark.parametrize(
    "given, result",
    [
        (lambda x, m: {x: m[0]}, [2.0, 4.0]),
        (lambda x, m: [(x, m[0])], [2.0, 4.0]),
        (lambda x, m: {x: shared(np.array([5.0]))}, [10.0]),
        (lambda x, m: {x: np.array([6.0])}, [12.0]),
        (lambda x, m: {x: T.constant(np.array([7.0]))}, [14.0]),
    ],
)
def test_givens(x, given, result):
    m = T.dmatrix("m")
    f = function([m], x * 2, givens=given(x, m), on_unused_input="ignore", mode=QUICK)
    assert f([[1.0, 2.0]]).tolist() == result


def test_givens_replace_what_is_computed(x):
    z = x + 1
    assert function([x], z * 2, givens={z: x * 10}, mode=QUICK)([1.0]).tolist() == [20.0]


@pytest.mark.parametrize(
    "given, error, told",
    [
        (lambda x, i: {x: i}, TypeError, "Cannot convert Type TensorType(int32, vector)"),
        (lambda x, i: {x: T.dmatrix()}, TypeError, "Cannot convert Type TensorType(float64, mat"),
        (
            lambda x, i: {i: i + 1}, RuntimeError,
            "You are trying to replace variable 'i' through the `givens` parameter, but this "
            "variable is an input to your function.",
        ),
        (
            lambda x, i: [(x, x + 1), (x, x + 2)], AssertionError,
            "you can not have a new_v variable depend on an old_v one",
        ),
    ],
)  # fmt: skip
def test_wrong_givens(x, given, error, told):
    i = T.ivector("i")
    with pytest.raises(error, match=re.escape(told)):
        function([i], x * 2, givens=given(x, i), mode=QUICK)


def test_givens_that_need_not_be_strict(x):
    i = T.ivector("i")
    f = function([i], x * 2, givens={x: i}, rebuild_strict=False, mode=QUICK)
    assert f([1, 2]).dtype == "int32"


def test_defaults(a, b):
    f = function([a, In(b, value=2.0)], a + b, mode=QUICK)
    assert [float(f(1)), float(f(1, 5)), float(f(1)), float(f(1, b=7)), float(f(b=1, a=1))] == [
        3.0, 6.0, 3.0, 8.0, 2.0,
    ]  # fmt: skip


def test_a_default_that_is_set_lasts_one_call(a, b):
    f = function([a, In(b, value=2.0)], a + b, mode=QUICK)
    f["b"] = 5
    assert [float(f(1)), float(f(1))] == [6.0, 3.0]


def test_defaults_are_not_overwritten(mode, x):
    default = np.zeros(2)
    f = function([In(x, value=default, mutable=True)], T.exp(x) * 2, mode=mode)
    assert [f().tolist(), f().tolist()] == [[2.0, 2.0], [2.0, 2.0]]
    assert default.tolist() == [0.0, 0.0]


def test_a_default_in_short_form(a, b):
    assert function([a, (b, 2.0)], a + b, mode=QUICK)(1) == 3
    with pytest.warns(UserWarning, match="The Param class is deprecated"):
        param = Param(b, default=3.0)
    assert function([a, param], a + b, mode=QUICK)(1) == 4


def test_a_default_before_a_required_input(a, b):
    f = function([In(a, value=1.0), b], a - b, mode=QUICK)
    assert f(b=2.0) == -1
    with pytest.raises(TypeError, match="Missing required input: b"):
        f(5.0)


def test_an_input_with_an_update_is_state(mode, b):
    count = function([In(b, value=1.0, update=b + 1, name="n")], b * 10, mode=mode)
    assert [float(count()), float(count()), float(count())] == [10.0, 20.0, 30.0]
    assert count["n"] == 4
    assert count(100) == 1000
    assert count["n"] == 101
    count["n"] = 7
    assert count() == 70


def test_implicit_inputs(a, b):
    f = function([In(a, value=1.0, implicit=True), b], a + b, mode=QUICK)
    assert f(b=2.0) == 3.0
    for values in [(2.0,), (1.0, 2.0)]:
        with pytest.raises(TypeError, match="Tried to provide value for implicit input: a"):
            f(*values)
    with pytest.raises(TypeError, match="Tried to provide value for implicit input: a"):
        f(a=1.0, b=2.0)
    behind = function([b, In(a, value=1.0, implicit=True)], a + b, mode=QUICK)
    assert behind(2.0) == 3.0


def test_an_input_of_another_name(a):
    f = function([In(a, name="other")], a + 1, mode=QUICK)
    assert f(other=1) == 2
    with pytest.raises(TypeError, match="Unknown input or state: a"):
        f(a=1)


@pytest.mark.parametrize("mode", ["FAST_RUN", "DEBUG_MODE"])
def test_a_single_variable_is_a_list_of_one(mode):
    x = T.dvector("x")
    with pytest.warns(UserWarning, match=r"x is taken as a list of one. Write \[x\]"):
        f = function(x, 10 * x, mode=mode)
    assert f([5]).tolist() == [50]
    with pytest.warns(UserWarning, match="list of one"):
        f = function(In(x, name="y"), 10 * x, mode=mode)
    assert f(y=[5]).tolist() == [50]


def test_what_rop_differentiates_counts_as_read():
    x, d, e = T.dvector("x"), T.dmatrix("d"), T.dmatrix("e")
    w, unused = T.dmatrix("w"), T.dmatrix("unused")
    product = Rop(T.dot(x, w), w, d)
    assert function([w, d, x], product * 2)(np.eye(2), np.eye(2), [1.0, 2.0]).tolist() == [2, 4]
    total = shared(np.zeros(2))
    function([w, d, x], [], updates={total: total + product})(np.eye(2), np.eye(2), [1.0, 2.0])
    assert total.get_value().tolist() == [1, 2]
    second = Rop(Rop(T.dot(x, w) + w[0] ** 2, w, d), w, e)
    twos = np.full((2, 2), 2.0)
    assert function([w, d, e, x], second)(twos, twos, twos, [1.0, 2.0]).tolist() == [8, 8]
    with pytest.raises(UnusedInputError, match="at index 1"):
        function([w, unused, d, x], product)
    with pytest.raises(UnusedInputError, match="at index 0"):
        function([w, d], Rop(w, w, d))


def test_the_repr_says_what_a_function_takes_and_returns():
    x, lr, state = T.dmatrix("x"), T.dscalar(), shared(1.0, name="state")
    cost = x.sum() * lr * state
    cost.name = "cost"
    f = function(
        [x, lr], [cost, x * 2], updates=[(state, state + 1)], name="train", mode="FAST_RUN"
    )
    assert repr(f) == (
        "<Function train(x: TensorType(float64, matrix), TensorType(float64, scalar)) -> "
        "cost: TensorType(float64, scalar), TensorType(float64, matrix), mode FAST_RUN>"
    )
    silent = function([], updates=[(state, state + 1)], mode="FAST_COMPILE", name="step")
    assert repr(silent) == "<Function step() -> nothing, mode FAST_COMPILE>"
    assert "mode FAST_RUN" in repr(function([x], x, mode=Mode("c|py", "fast_run")))
    assert "mode Mode>" in repr(function([x], x, mode=Mode("py", "fast_run")))
