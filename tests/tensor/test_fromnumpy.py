"""Functions of numpy on variables: numpy's results, or an error that says what to write."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise.tensor import fromnumpy

pytestmark = pytest.mark.null

X = np.array([[1.0, -2, 3], [0, 5, -6]])
W = np.array([0.5, 2, 3])
#: arguments of many shapes; a function is called with those that numpy takes
ARGUMENTS = [
    lambda x, w: (x,),
    lambda x, w: (w,),
    lambda x, w: (x, w),
    lambda x, w: (w, w),
    lambda x, w: (x, 1),
    lambda x, w: (x, 0, 1),
    lambda x, w: (x, -1, 2),
    lambda x, w: (x, (3, 2)),
    lambda x, w: (x > 0, x, x),
    lambda x, w: (x, x, 1),
]


def functions():
    """Return {name: function} of all functions of numpy that ask their arguments what to do."""
    found = {}
    for module in (np, np.linalg, np.fft):
        for name in dir(module):
            function = getattr(module, name)
            if hasattr(function, "_implementation"):
                found[f"{function.__module__}.{function.__name__}"] = function
    return found


def value(result, x, w):
    """Return the value of a result for X and W."""
    if isinstance(result, tuple | list):
        return [value(part, x, w) for part in result]
    if isinstance(result, opwise.Variable):
        return opwise.function([x, w], result, mode="FAST_COMPILE", on_unused_input="ignore")(X, W)
    return result


def same(got, want):
    if isinstance(want, tuple | list):
        return len(got) == len(want) and all(map(same, got, want))
    return np.shape(got) == np.shape(want) and np.array_equal(got, want)


@pytest.mark.parametrize("name", sorted(functions()))
@pytest.mark.filterwarnings("ignore")
def test_no_result_is_wrong(name):
    function = functions()[name]
    for arguments in ARGUMENTS:
        try:
            want = function(*arguments(X, W))
        except Exception:
            continue  # numpy takes no such arguments
        if isinstance(want, str):
            continue  # of what is not known, another text
        x, w = T.dmatrix("x"), T.dvector("w")
        try:
            got = function(*arguments(x, w))
        except (TypeError, ValueError):
            continue
        else:
            assert same(value(got, x, w), want), arguments(x, w)


@pytest.mark.parametrize("name", sorted(fromnumpy._TENSOR))
@pytest.mark.filterwarnings("ignore")
def test_functions_of_tensors_take_their_place(name):
    x, w = T.dmatrix("x"), T.dvector("w")
    results = []
    for arguments in ARGUMENTS:
        try:
            results.append(getattr(np, name)(*arguments(x, w)))
        except (TypeError, ValueError):
            continue
    lists = ("concatenate", "stack")
    if name in lists:
        results = [getattr(np, name)([x, x], axis=1)]
    assert results
    for result in results:
        assert isinstance(result[0] if isinstance(result, tuple) else result, opwise.Variable)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("sum", {"axis": 0}), ("sum", {"axis": 1, "keepdims": True}), ("mean", {"axis": 1}),
        ("std", {"axis": 0, "ddof": 1}), ("max", {"axis": 1}), ("cumsum", {"axis": 1}),
        ("transpose", {"axes": (1, 0)}), ("sort", {"axis": 0}), ("roll", {"shift": 1, "axis": 1}),
        ("sum", {"axis": None, "out": None}),
    ],
)  # fmt: skip
def test_arguments_by_name(function, arguments):
    x, w = T.dmatrix("x"), T.dvector("w")
    got = value(getattr(np, function)(x, **arguments), x, w)
    np.testing.assert_allclose(got, getattr(np, function)(X, **arguments), rtol=1e-15)


def test_lists_of_variables():
    x, w = T.dmatrix("x"), T.dvector("w")
    assert same(value(np.concatenate([x, X], axis=1), x, w), np.concatenate([X, X], axis=1))
    assert same(value(np.stack([w, W]), x, w), np.stack([W, W]))


@pytest.mark.parametrize(
    "name", ["median", "percentile", "linalg.svd", "fft.fft", "nansum", "kron"]
)
def test_functions_without_counterpart_say_so(name):
    function = functions()[f"numpy.{name}"]
    with pytest.raises(TypeError, match=rf"numpy\.{name} computes with values, and x has none"):
        function(T.dmatrix("x"), *[50][: name == "percentile"], *[X][: name == "kron"])


def test_what_tensors_do_not_take_is_named():
    x = T.dmatrix("x")
    with pytest.raises(TypeError, match=r"Write T\.sum\. Of variables it takes no where\."):
        np.sum(x, where=x > 0)
    with pytest.raises(TypeError, match=r"numpy\.linalg\.norm computes with values, .* norm is "):
        np.linalg.norm(x)


UFUNCS = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
#: operands of ufuncs, as text: what numpy does about ``a == x`` depends on how it is written
OPERANDS = {
    1: ["x", "w", "x > 0", "k"],
    2: ["x, w", "W, x", "x, 2", "2, w", "w, [1, 2, 3]", "2.5, x", "x > 0, x > 1", "k, k", "k, 3"],
    3: ["x, 0, 1"],
}
METHODS = [
    "reduce(x)", "reduce(x, axis=1)", "reduce(x, None)", "reduce(x, 1, keepdims=True)",
    "accumulate(x)", "accumulate(x, 1)", "outer(w, x)", "outer(w, 2)", "reduceat(w, [0, 1])",
    "at(w, [0], 1)", "reduce(x > 0)",
]  # fmt: skip
K = np.array([3, 5, 6])


def tried(text):
    """Return (what numpy gives for X, W and K, what it gives for variables), None for errors."""
    x, w, k = T.dmatrix("x"), T.dvector("w"), T.lvector("k")
    code = compile(text, "<program>", "eval")
    try:
        want = eval(code, {"np": np, "W": W, "x": X.copy(), "w": W.copy(), "k": K})
    except Exception:
        return None, None  # numpy takes no such arguments
    try:
        got = eval(code, {"np": np, "W": W, "x": x, "w": w, "k": k})
    except TypeError as error:
        assert "opwise" in str(error) or "values" in str(error) or "BitOp" in str(error)
        return want, None
    outputs = list(got) if isinstance(got, tuple) else [got]
    assert all(isinstance(out, opwise.Variable) for out in outputs), text
    known = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    values = opwise.function([x, w, k], outputs, **known)(X, W, K)
    return want, tuple(values) if isinstance(got, tuple) else values[0]


#: 1 / k is true division, and exp of small numbers without a dtype is float32, as in Theano
OTHERWISE = ("np.reciprocal(k)", "np.logaddexp")


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.filterwarnings("ignore")
def test_every_ufunc_is_right_or_an_error(name):
    calls = [f"np.{name}({some})" for some in OPERANDS[getattr(np, name).nin]]
    for text in [*calls, *(f"np.{name}.{method}" for method in METHODS)]:
        want, got = tried(text)
        if got is not None and not text.startswith(OTHERWISE):
            assert np.shape(got) == np.shape(want), text
            dtype = np.asarray(want).dtype
            rtol = 4 * np.finfo(dtype).eps if dtype.kind == "f" else 0
            np.testing.assert_allclose(got, want, rtol=rtol, err_msg=text)


@pytest.mark.parametrize(
    "text",
    [
        "np.equal(W, w)", "np.not_equal(W, w)", "np.maximum(x, 0)", "np.minimum(W, x)",
        "np.sign(x)", "np.isnan(x)", "np.less(W, x)", "np.add.reduce(x)", "np.rint(x / 3)",
        "np.maximum.reduce(x, axis=1)", "np.logical_or.reduce(x > 0)", "np.multiply.outer(w, x)",
        "np.logical_and(x > 0, x > 1)", "np.add.accumulate(x)", "np.matmul(x, w)",
        "np.logaddexp(x, w)",
    ],
)  # fmt: skip
def test_ufuncs_of_tensors_take_their_place(text):
    want, got = tried(text)
    np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("np.exp(x)", "x.exp()"), ("np.square(x)", "x * x"), ("np.power(x, 2)", "x ** 2"),
        ("np.add(x, w)", "x + w"), ("np.absolute(x)", "abs(x)"), ("W < x", "x > W"),
        ("np.reciprocal(x)", "1 / x"), ("np.floor(x)", "x.floor()"), ("W * x", "x.__rmul__(W)"),
        ("W @ x.T", "x.T.__rmatmul__(W)"), ("W - x", "x.__rsub__(W)"),
        ("np.float32(2) / x", "x.__rtruediv__(np.float32(2))"),
        ("np.ma.array(W) * x", "x.__rmul__(np.ma.array(W))"),
    ],
)  # fmt: skip
def test_the_graphs_are_those_of_operators_and_methods(text, same):
    names = {"np": np, "W": W, "x": T.dmatrix("x"), "w": T.dvector("w")}
    graphs = [opwise.printing.debugprint(eval(one, names), file="str") for one in (text, same)]
    assert graphs[0] == graphs[1]


def test_arrays_compare_as_they_did():
    """``array == x`` asks whether they are the same object, however Python comes to compare."""
    x = T.dvector("x")
    assert (x == W) is False and (x != W) is True and (np.float64(2) == x) is False
    assert W not in [x] and x not in [W]
    with pytest.raises(ValueError, match=r"not in list"):
        [W].index(x)


def test_assignment_by_an_operator_makes_a_variable():
    total = np.zeros(3)
    given = total
    total += T.dvector("x")
    assert isinstance(total, opwise.Variable) and (given == 0).all()
    with pytest.raises(TypeError, match=r"Of variables it takes no out\."):
        np.add(given, T.dvector("x"), out=given)


def test_ufuncs_of_programs_and_arrays_of_objects_do_as_their_elements():
    x = T.dscalar("x")
    assert isinstance(np.frompyfunc(lambda v: v + 1, 1, 1)(x), opwise.Variable)
    two = np.array([x, x], object)
    for result in (two + x, x * two, np.multiply(two, two)):
        assert result.shape == (2,) and isinstance(result[0], opwise.Variable)


def test_what_operators_do_not_take():
    for text in ("np.array(['a']) + x", "x + np.array(['a'])"):
        with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: "):
            eval(text, {"np": np, "x": T.dvector("x")})
