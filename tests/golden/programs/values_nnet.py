"""Values of theano.tensor.nnet, without convolutions, pooling and batches of random numbers."""

from functools import partial

from .compiling import in_modes
from .encoding import attempt_each
from .register import program

ROWS = [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-1.0, 0.5, 0.25], [1000.0, 0.0, -1000.0]]
LABELS = [0, 2, 1, 1]
TARGETS = [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]


@program("values.nnet.softmax")
def softmax(theano, T, np):
    """softmax and logsoftmax of matrices, vectors and other shapes."""
    x, v, f = T.dmatrix("x"), T.dvector("v"), T.fmatrix("f")
    rows = np.array(ROWS)
    nnet = T.nnet
    return {
        "matrix": in_modes(theano, [x], nnet.softmax(x), rows),
        "float32": in_modes(theano, [f], nnet.softmax(f), rows.astype("float32")),
        "vector": in_modes(theano, [v], nnet.softmax(v), rows[0]),
        "no rows": in_modes(theano, [x], nnet.softmax(x), np.zeros((0, 3))),
        "one column": in_modes(theano, [x], nnet.softmax(x), np.zeros((2, 1))),
        "with nan": in_modes(theano, [x], nnet.softmax(x), np.array([[1.0, np.nan], [1.0, 2.0]])),
        "with inf": in_modes(theano, [x], nnet.softmax(x), np.array([[1.0, np.inf]])),
        "with bias": in_modes(theano, [x, v], nnet.softmax_with_bias(x, v), rows, rows[2]),
        "of a sum": in_modes(theano, [x, v], nnet.softmax(x + v), rows, rows[2]),
        "logsoftmax": in_modes(theano, [x], nnet.logsoftmax(x), rows),
        "log of softmax": in_modes(theano, [x], T.log(nnet.softmax(x)), rows[:3]),
        "by hand": in_modes(theano, [x], T.exp(x) / T.exp(x).sum(axis=1, keepdims=True), rows[:3]),
        "transposed": in_modes(theano, [x], nnet.softmax(x.T), rows[:3]),
        "softmax_graph": in_modes(theano, [x], nnet.nnet.softmax_graph(x), rows[:3]),
    }


@program("values.nnet.softmax_refused")
def softmax_refused(theano, T, np):
    """What softmax does not take."""
    return attempt_each(
        {
            "3-d": lambda: T.nnet.softmax(T.dtensor3()),
            "int": lambda: T.nnet.softmax(T.imatrix()),
            "logsoftmax of 3-d": lambda: T.nnet.logsoftmax(T.dtensor3()),
            "sigmoid of text": lambda: T.nnet.sigmoid("a"),
        }
    )


@program("values.nnet.categorical_crossentropy")
def categorical_crossentropy(theano, T, np):
    """Cross entropy with labels and with distributions."""
    x, t, i, j = T.dmatrix("x"), T.dmatrix("t"), T.ivector("i"), T.lvector("j")
    rows, targets = np.array(ROWS), np.array(TARGETS)
    labels = np.array(LABELS, "int32")
    p = T.nnet.softmax(x)
    entropy = T.nnet.categorical_crossentropy
    probabilities = np.array([[0.25, 0.75], [0.0, 1.0]])
    return {
        "labels": in_modes(theano, [x, i], entropy(p, i), rows, labels),
        "int64 labels": in_modes(theano, [x, j], entropy(p, j), rows, labels.astype("int64")),
        "mean": in_modes(theano, [x, i], entropy(p, i).mean(), rows[:3], labels[:3]),
        "distributions": in_modes(theano, [x, t], entropy(p, t), rows[:3], targets[:3]),
        "of probabilities": in_modes(
            theano, [x, i], entropy(x, i), probabilities, np.array([0, 0], "int32")
        ),
        "of probabilities and distributions": in_modes(
            theano, [x, t], entropy(x, t), probabilities, np.array([[0.5, 0.5], [0.0, 1.0]])
        ),
        "label out of range": in_modes(
            theano, [x, i], entropy(p, i), rows[:1], np.array([5], "int32")
        ),
        "negative label": in_modes(
            theano, [x, i], entropy(p, i), rows[:1], np.array([-1], "int32")
        ),
        "fewer labels": in_modes(theano, [x, i], entropy(p, i), rows, labels[:2]),
        "advanced indexing": in_modes(
            theano, [x, i], -T.log(p)[T.arange(i.shape[0]), i], rows[:3], labels[:3]
        ),
        "mean of advanced indexing": in_modes(
            theano, [x, i], -T.mean(T.log(p)[T.arange(i.shape[0]), i]), rows, labels
        ),
        "crossentropy_categorical_1hot": in_modes(
            theano,
            [x, j],
            T.nnet.crossentropy_categorical_1hot(p, j),
            rows[:3],
            labels[:3].astype("int64"),
        ),
        "crossentropy_softmax_1hot": in_modes(
            theano, [x, i], list(T.nnet.crossentropy_softmax_1hot(x, i)), rows, labels
        ),
        "crossentropy_softmax_argmax_1hot_with_bias": in_modes(
            theano,
            [x, i],
            list(T.nnet.crossentropy_softmax_argmax_1hot_with_bias(x, x[2], i)),
            rows[:3],
            labels[:3],
        ),
    }


@program("values.nnet.categorical_crossentropy_refused")
def categorical_crossentropy_refused(theano, T, np):
    """Ranks and dtypes that do not go together."""
    entropy = T.nnet.categorical_crossentropy
    return attempt_each(
        {
            "3-d targets": lambda: entropy(T.dmatrix(), T.dtensor3()),
            "float labels": lambda: entropy(T.dmatrix(), T.dvector()),
            "scalar": lambda: entropy(T.dmatrix(), T.iscalar()),
            "int8 labels": lambda: entropy(T.dmatrix(), T.bvector()),
        }
    )


@program("values.nnet.binary_crossentropy")
def binary_crossentropy(theano, T, np):
    """Binary cross entropy of probabilities and of sigmoids."""
    x, t, i = T.dvector("x"), T.dvector("t"), T.ivector("i")
    entropy = T.nnet.binary_crossentropy
    far = np.array([-1000.0, 1000.0, -2.0, 0.0, 3.0])
    targets = np.array([1.0, 0.0, 0.25, 1.0, 1.0])
    p = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    hard = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    sigmoid = T.nnet.sigmoid(x)
    return {
        "of probabilities": in_modes(theano, [x, t], entropy(x, t), p, hard),
        "of sigmoids": in_modes(theano, [x, t], entropy(sigmoid, t), far, targets),
        "mean": in_modes(theano, [x, t], entropy(sigmoid, t).mean(), far, targets),
        "int targets": in_modes(
            theano, [x, i], entropy(sigmoid, i), far, np.array([1, 0, 1, 0, 1], "int32")
        ),
        "sigmoid_binary_crossentropy": in_modes(
            theano, [x, t], T.nnet.sigmoid_binary_crossentropy(x, t), far, targets
        ),
        "by hand": in_modes(
            theano, [x, t], -(t * T.log(sigmoid) + (1 - t) * T.log(1 - sigmoid)), far, targets
        ),
    }


@program("values.nnet.activations")
def activations(theano, T, np):
    """Arguments of the activation functions."""
    x, f = T.dvector("x"), T.fvector("f")
    points = np.array([-30.0, -5.0, -1.0, -0.25, 0.0, 0.25, 1.0, 5.0, 30.0])
    nnet = T.nnet
    softsign = nnet.nnet.softsign
    expressions = {
        "relu": nnet.relu(x),
        "relu 0.1": nnet.relu(x, 0.1),
        "relu alpha": nnet.relu(x, alpha=0.01),
        "relu negative alpha": nnet.relu(x, -1),
        "relu 1": nnet.relu(x, 1),
        "elu": nnet.elu(x),
        "elu 2": nnet.elu(x, 2.0),
        "selu": nnet.selu(x),
        "softsign": softsign(x),
        "hard_sigmoid": nnet.hard_sigmoid(x),
        "ultra_fast_sigmoid": nnet.ultra_fast_sigmoid(x),
        "softplus": nnet.softplus(x / 3),
        "tanh": T.tanh(x),
        "maximum(x, 0)": T.maximum(x, 0),
        "x * (x > 0)": x * (x > 0),
        "switch": T.switch(x > 0, x, 0.01 * x),
        "leaky maximum": T.maximum(0.01 * x, x),
        "0.5 * (x + abs(x))": 0.5 * (x + abs(x)),
        "log(1 + exp(x))": T.log(1 + T.exp(x)),
        "sigmoid twice": nnet.sigmoid(nnet.sigmoid(x / 4)),
    }
    results = {
        label: in_modes(theano, [x], expression, points)
        for label, expression in expressions.items()
    }
    singles = points.astype("float32")
    for name in ("relu", "elu", "softplus", "hard_sigmoid", "ultra_fast_sigmoid"):
        results["float32 " + name] = in_modes(theano, [f], getattr(nnet, name)(f / 4), singles)
    return results


@program("values.nnet.normalisation")
def normalisation(theano, T, np):
    """Batch normalisation and the confusion matrix."""
    x = T.dmatrix("x")
    gamma, beta = T.dvector("gamma"), T.dvector("beta")
    rows = np.array(ROWS[:3])
    ones, zeros = np.ones(3), np.zeros(3)
    bn = T.nnet.bn
    a, p = T.ivector("a"), T.ivector("p")
    results = {
        "batch_normalization": in_modes(
            theano,
            [x, gamma, beta],
            bn.batch_normalization(x, gamma, beta, x.mean(axis=0), x.std(axis=0)),
            rows,
            ones,
            zeros,
        ),
        "batch_normalization high_mem": in_modes(
            theano,
            [x, gamma, beta],
            bn.batch_normalization(x, gamma, beta, x.mean(axis=0), x.std(axis=0), mode="high_mem"),
            rows,
            ones * 2,
            ones,
        ),
        "confusion_matrix": in_modes(
            theano,
            [a, p],
            list(T.nnet.confusion_matrix(a, p)),
            np.array([2, 0, 2, 2, 0, 1], "int32"),
            np.array([0, 0, 2, 2, 0, 2], "int32"),
        ),
    }
    r, g, b = T.dmatrix("r"), T.drow("g"), T.drow("b")
    trained = partial(bn.batch_normalization_train, r, g, b, axes="per-activation")
    tested = bn.batch_normalization_test(r, g, b, g * 0.5, g + 1.0, axes="per-activation")
    row = np.ones((1, 3))
    results["batch_normalization_train"] = in_modes(
        theano, [r, g, b], list(trained()), rows, row, row * 0.5
    )
    results["batch_normalization_test"] = in_modes(theano, [r, g, b], tested, rows, row, row * 0.5)
    return results
