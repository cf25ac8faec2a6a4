"""Where names are that programs look for in the wrong place, or know from other libraries."""

import importlib
import re
import traceback

import pytest

import opwise
import opwise.tensor as T
import theano
import theano.tensor as TT
from opwise.errors import likely_typo
from opwise.tensor import elsewhere

pytestmark = pytest.mark.null


def said(place, name):
    with pytest.raises(AttributeError) as raised:
        getattr(place, name)
    assert raised.value.name == name
    # what Python adds is no far-fetched guess
    shown = "".join(traceback.format_exception_only(raised.value))
    assert "Did you mean: " not in shown
    assert not hasattr(place, name)
    return str(raised.value)


@pytest.mark.parametrize(
    ("place", "name", "words"),
    [
        (T, "softmax", "softmax is opwise.tensor.nnet.softmax."),
        (T, "relu", "relu is opwise.tensor.nnet.relu."),
        (T, "conv2d", "conv2d is theano.tensor.nnet.conv2d."),
        (T.nnet, "conv2d", "conv2d is theano.tensor.nnet.conv2d."),
        (T.nnet, "concatenate", "concatenate is opwise.tensor.concatenate."),
        (T, "cholesky", "cholesky is theano.tensor.slinalg.cholesky."),
        (T, "function", "function is opwise.function."),
        (opwise, "scan", "scan is theano.scan."),
        (opwise, "matrix", "matrix is opwise.tensor.matrix."),
        (TT, "softmax", "softmax is theano.tensor.nnet.softmax."),
        (TT, "relu", "relu is theano.tensor.nnet.relu."),
        (theano, "vector", "vector is theano.tensor.vector."),
        (T, "concat", "Write T.concatenate([x, y], axis)."),
        (TT, "concat", "Write T.concatenate([x, y], axis)."),
        (T, "matmul", "Write T.dot(x, y), or T.batched_dot"),
        (TT.nnet, "gelu", "Write x * 0.5 * (1 + T.erf"),
        (T, "vectr", "Did you mean vector?"),
        (T, "mena", "Did you mean mean?"),
        (TT, "sqrrt", "Did you mean sqrt?"),
        (opwise, "fucntion", "Did you mean function or Function?"),
    ],
)
def test_where_a_name_is(place, name, words):
    assert words in said(place, name)


@pytest.mark.parametrize("place", [T, T.nnet, opwise, TT, theano])
def test_a_name_that_nobody_has(place):
    text = said(place, "zork")
    assert "zork" in text and "Did you mean" not in text and "Write" not in text


@pytest.mark.parametrize("make", [T.matrix, lambda: opwise.shared(1.0), lambda: T.constant(1.0)])
@pytest.mark.parametrize("name", ["view", "numpy", "backward", "item", "detach", "unsqueeze"])
def test_methods_of_other_libraries(make, name):
    assert f"no attribute '{name}'. Write " in said(make(), name)


def test_a_misspelled_method_gets_the_question_of_python():
    with pytest.raises(AttributeError) as raised:
        getattr(T.matrix(), "trasnpose")  # noqa: B009
    assert raised.value.obj is not None and raised.value.name == "trasnpose"


TEXTS = [*elsewhere._FUNCTIONS.items(), *elsewhere._METHODS.items()]


@pytest.mark.parametrize(("name", "text"), TEXTS, ids=[name for name, _ in TEXTS])
def test_what_is_written_instead_exists(name, text):
    for dotted in re.findall(r"\b(?:theano|T)(?:\.[A-Za-z_]\w*)+", text):
        assert _is_there(dotted.replace("T.", "theano.tensor.", 1) if dotted[0] == "T" else dotted)


@pytest.mark.parametrize(("name", "home"), list(elsewhere._HOMES.items()))
def test_homes_have_their_names(name, home):
    assert _is_there(f"{home}.{name}")


def _is_there(dotted):
    module, _, name = dotted.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return False


def test_no_name_of_the_table_of_functions_exists():
    assert not [name for name in elsewhere._FUNCTIONS if name in vars(T)]
    assert not [name for name in elsewhere._METHODS if name in dir(T.matrix())]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("softmax", ""),
        ("relu", ""),
        ("conv2d", ""),
        ("Vector", " Did you mean vector?"),
        ("vecotr", " Did you mean vector?"),
        ("vectors", " Did you mean vector?"),
        ("ma", ""),
    ],
)
def test_likely_misspellings(name, question):
    assert likely_typo(name, ["max", "real", "second", "cov", "vector", "maximum"]) == question
