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
