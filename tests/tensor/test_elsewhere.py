"""Where names are that programs look for in the wrong place, or know from other libraries."""

import importlib
import re
import traceback

import numpy as np
import pytest

import opwise
import opwise.linalg
import opwise.nn
import opwise.random
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
        (T, "softmax", "softmax is opwise.nn.softmax."),
        (opwise, "softmax", "softmax is opwise.nn.softmax."),
        (opwise, "log_softmax", "log_softmax is opwise.nn.log_softmax."),
        (T, "conv2d", "conv2d is opwise.nn.conv2d."),
        (T.nnet, "tile", "tile is opwise.tensor.tile."),
        (T, "cholesky", "cholesky is opwise.linalg.cholesky."),
        (opwise, "svd", "svd is opwise.linalg.svd."),
        (opwise, "normal", "normal is opwise.random.normal."),
        (opwise.nn, "cholesky", "cholesky is opwise.linalg.cholesky."),
        (opwise.linalg, "matrix_power", "matrix_power is opwise.tensor.nlinalg.matrix_power."),
        (opwise.random, "exp", "exp is opwise.tensor.exp."),
        (T, "function", "function is opwise.function."),
        (T, "scan", "scan is opwise.scan."),
        (TT, "scan", "scan is theano.scan."),
        (opwise, "matrix", "matrix is opwise.tensor.matrix."),
        (opwise, "concat", "Write T.concatenate([x, y], axis), where T is opwise.tensor."),
        (TT, "jit", "Write theano.function(inputs, outputs)."),
        (opwise.nn, "relu6", "Write T.clip(x, 0, 6), where T is opwise.tensor."),
        (opwise.linalg, "cond", "Write s[0] / s[-1] with s = T.nlinalg.svd("),
        (opwise, "cond", "Write opwise.ifelse.ifelse(condition, x, y), or T.switch"),
        (opwise.random, "default_rng", "Write opwise.random.RandomStreams(seed), whose"),
        (opwise.random, "split", "Write opwise.random.RandomStreams(seed), whose"),
        (TT, "softmax", "softmax is theano.tensor.nnet.softmax."),
        (TT, "relu", "relu is theano.tensor.nnet.relu."),
        (theano, "vector", "vector is theano.tensor.vector."),
        (T, "concat", "Write T.concatenate([x, y], axis)."),
        (TT, "concat", "Write T.concatenate([x, y], axis)."),
        (T, "bmm", "Write T.batched_dot(x, y)."),
        (TT.nnet, "gelu", "Write x * 0.5 * (1 + T.erf"),
        (T, "vectr", "Did you mean vector?"),
        (T, "mena", "Did you mean mean?"),
        (TT, "sqrrt", "Did you mean sqrt?"),
        (opwise, "fucntion", "Did you mean function or Function?"),
        (opwise, "scann", "Did you mean scan?"),
        (opwise, "sacn", "Did you mean scan?"),
        (opwise.nn, "sigmiod", "Did you mean sigmoid?"),
    ],
)
def test_where_a_name_is(place, name, words):
    assert words in said(place, name)


#: names of numpy, and of PyTorch and JAX that people look for
FOREIGN = {
    "numpy": dir(np),
    "numpy.linalg": dir(np.linalg),
    "numpy.random": dir(np.random),
    "arrays": dir(np.ndarray),
    "torch": """
        Tensor tensor as_tensor from_numpy zeros ones empty full rand randn randint randperm arange
        linspace eye cat chunk gather hstack index_select masked_select movedim narrow nonzero
        permute reshape scatter split squeeze stack swapaxes take tile transpose unbind unsqueeze
        vstack where manual_seed bernoulli multinomial normal no_grad enable_grad abs acos addmm
        angle asin atan2 ceil clamp div erf erfinv exp expm1 fmod frac lerp lgamma log1p logaddexp
        logit mul neg pow reciprocal remainder rsqrt sigmoid sign softmax true_divide xlogy argmax
        amax any max mean median mode norm prod std unique var eq ge isfinite kthvalue ne sort topk
        bincount broadcast_to cdist clone cross cummax cumsum diag einsum flatten flip kron ravel
        repeat_interleave roll tensordot trace tril bmm matmul mm mv pinverse inverse cholesky
        compile jit vmap func autograd optim device cuda long save load
        """.split(),
    "torch.nn": """
        avg_pool2d batch_norm binary_cross_entropy binary_cross_entropy_with_logits celu conv1d
        conv2d cosine_similarity cross_entropy ctc_loss dropout elu embedding fold gelu glu
        group_norm gumbel_softmax hardshrink hardsigmoid hardswish hardtanh huber_loss kl_div
        l1_loss layer_norm leaky_relu linear log_softmax logsigmoid max_pool2d mish mse_loss
        nll_loss normalize one_hot pad prelu relu relu6 rrelu scaled_dot_product_attention selu silu
        softmax softmin softplus softshrink softsign tanhshrink threshold unfold upsample Linear
        Module Sequential ReLU Conv2d BatchNorm2d Dropout Embedding LSTM GRU
        """.split(),
    "jax": """
        jit grad vmap pmap value_and_grad jacfwd jacrev hessian lax numpy nn jvp vjp checkpoint
        custom_jvp device_put make_jaxpr tree_map debug eval_shape relu6 silu swish log_sigmoid
        hard_sigmoid hard_silu hard_tanh gelu squareplus logsumexp standardize scan cond while_loop
        fori_loop switch map associative_scan dynamic_slice stop_gradient cumlogsumexp expit PRNGKey
        key split fold_in bernoulli categorical gamma gumbel laplace permutation randint
        truncated_normal slogdet eigvals matrix_rank multi_dot matrix_norm vector_norm
        solve_triangular lu cho_factor cho_solve block_diag
        """.split(),
}


@pytest.mark.parametrize("place", [opwise, T, opwise.nn, opwise.linalg, opwise.random, TT])
@pytest.mark.parametrize("library", FOREIGN)
def test_a_name_of_another_library_is_no_misspelling(place, library):
    asked = []
    for name in FOREIGN[library]:
        if not name.startswith("_"):
            try:
                getattr(place, name)
            except AttributeError as error:
                asked += [name] if "Did you mean" in str(error) else []
    # another case: a class of a library, a function of this one
    assert set(asked) <= {"Module"}


@pytest.mark.parametrize("place", [T, T.nnet, opwise, opwise.nn, TT, theano])
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
    for package in ("theano", "opwise"):
        written = elsewhere._in_package(text, package)
        for dotted in re.findall(rf"\b(?:{package}|T)(?:\.[A-Za-z_]\w*)+", written):
            assert _is_there(re.sub(r"^T\b", f"{package}.tensor", dotted))


@pytest.mark.parametrize(("name", "home"), list(elsewhere._HOMES.items()))
def test_homes_have_their_names(name, home):
    for package in ("theano", "opwise"):
        assert _is_there(".".join(filter(None, (package, home, name))))


def _is_there(dotted):
    module, _, name = dotted.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return False


def test_no_name_of_the_table_of_functions_exists():
    assert not [name for name in elsewhere._FUNCTIONS if name in vars(T)]
    assert not [name for name in elsewhere._OTHERS if hasattr(opwise, name)]
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
