"""Rules on softmax and cross entropy: each alone, its lookalikes, and whole training steps."""

import numpy as np
import pytest
from checking import check_rewrite

import opwise.scalar as scal
import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.compile import optdb
from opwise.gradient import grad
from opwise.nn import softmax
from opwise.optimizers.database import Query
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.passes import SeqOptimizer
from opwise.optimizers.rules import nnet as rules
from opwise.tensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    Alloc,
    Elemwise,
    set_subtensor,
)
from opwise.tensor.nnet import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
    LogSoftmax,
    Softmax,
    SoftmaxGrad,
    SoftmaxWithBias,
    crossentropy_categorical_1hot_grad,
    crossentropy_softmax_1hot_with_bias_dx,
    crossentropy_softmax_argmax_1hot_with_bias,
    logsoftmax,
    softmax_grad,
    softmax_with_bias,
)

ROWS, COLUMNS = 4, 5
xent = T.nnet.categorical_crossentropy
dx = crossentropy_softmax_1hot_with_bias_dx
fused = crossentropy_softmax_argmax_1hot_with_bias


class Leaves:
    """The inputs that graphs below are made of, and their values."""

    def __init__(self):
        self.x, self.z = T.dmatrices("x", "z")
        self.f, self.r, self.c = T.fmatrix("f"), T.drow("r"), T.dcol("c")
        self.b, self.g, self.fb = T.dvector("b"), T.dvector("g"), T.fvector("fb")
        self.i, self.y = T.lvector("i"), T.ivector("y")
        self.n = T.arange(self.y.shape[0])

    def values(self, outputs):
        random = np.random.default_rng(7)
        lengths = {"b": (COLUMNS,), "fb": (COLUMNS,), "g": (ROWS,), "r": (1, COLUMNS)}
        lengths |= {"c": (ROWS, 1), "y": (ROWS,), "i": (ROWS,)}
        inputs, values = [], []
        for name, var in vars(self).items():
            if var.owner is not None:
                continue
            shape = lengths.get(name, (ROWS, COLUMNS))
            value = random.integers(0, ROWS, shape) if name in "iy" else random.normal(0, 1, shape)
            inputs.append(var)
            values.append(np.asarray(value, var.type.dtype))
        return inputs, values


ROW_SUMS = T.dmatrix().sum(axis=1).owner.op


def kinds(fgraph):
    """Return the classes of the Ops of a graph, those of elementwise scalar operations, and sums of
    rows as they are."""
    ops = [node.op for node in fgraph.toposort()]
    return [
        op if op == ROW_SUMS else type(op.scalar_op if isinstance(op, Elemwise) else op)
        for op in ops
    ]


def rewritten(names, build):
    """Return the kinds of a graph before and after rules; its values and types must stay.

    names: rules of this module, separated by blanks. build: function of Leaves.
    """
    leaves = Leaves()
    outputs = build(leaves)
    outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    inputs, values = leaves.values(outputs)
    plain = [MergeOptimizer(), optdb["ShapeOpt"]]
    chosen = EquilibriumOptimizer([getattr(rules, name) for name in names.split()])
    before = check_rewrite(SeqOptimizer(plain), inputs, outputs, values)
    after = check_rewrite(SeqOptimizer([*plain, chosen]), inputs, outputs, values)
    return kinds(before), kinds(after)


BIASED = "local_softmax_with_bias"
LOG = "local_logsoftmax"
ONE_HOT = "local_advanced_indexing_crossentropy_onehot"
FUSED = CrossentropySoftmaxArgmax1HotWithBias
DX = CrossentropySoftmax1HotWithBiasDx
BOTH = "crossentropy_to_crossentropy_with_softmax"

#: (rules, graph, an Op that it has afterwards, Ops that it had before only)
FIRES = [
    (BIASED, lambda s: softmax(s.x + s.b), SoftmaxWithBias, [Softmax]),
    (BIASED, lambda s: softmax(s.b + s.x), SoftmaxWithBias, [Softmax]),
    (BIASED, lambda s: softmax(s.x + s.r), SoftmaxWithBias, [Softmax]),
    (BIASED, lambda s: softmax(T.add(s.x, s.b, s.c, s.z, s.r)), SoftmaxWithBias, [Softmax]),
    (BIASED, lambda s: softmax(s.f + s.fb), SoftmaxWithBias, [Softmax]),
    # a matrix with one row, as which softmax takes a vector
    (BIASED, lambda s: softmax(s.r + s.b), SoftmaxWithBias, [Softmax]),
    (BIASED, lambda s: softmax(s.r + s.r), SoftmaxWithBias, [Softmax]),
    (BIASED, lambda s: softmax(s.x + s.fb), SoftmaxWithBias, [Softmax]),
    (LOG, lambda s: T.log(softmax(s.x)), LogSoftmax, [Softmax]),
    (LOG, lambda s: T.log(softmax(s.f)), LogSoftmax, [Softmax]),
    (LOG, lambda s: T.log(softmax_with_bias(s.x, s.b)), LogSoftmax, [SoftmaxWithBias]),
    (
        "local_logsoftmax_grad",
        lambda s: softmax_grad(s.z / (sm := softmax(s.x)), sm),
        ROW_SUMS,
        [SoftmaxGrad, scal.TrueDiv],
    ),
    (
        "local_logsoftmax_grad",
        lambda s: softmax_grad(-s.c / (3 * (sm := softmax(s.x))), sm),
        ROW_SUMS,
        [SoftmaxGrad],
    ),
    (
        "local_logsoftmax_grad",
        lambda s: softmax_grad(1 / (sm := softmax(s.x)), sm),
        ROW_SUMS,
        [SoftmaxGrad],
    ),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.n, s.y], FUSED, [AdvancedSubtensor, Softmax]),
    (ONE_HOT, lambda s: T.log(softmax(s.x)[s.n, s.y]), FUSED, [AdvancedSubtensor, Softmax]),
    (ONE_HOT, lambda s: logsoftmax(s.x)[s.n, s.y], FUSED, [AdvancedSubtensor, LogSoftmax]),
    (
        f"{LOG} {ONE_HOT}",
        lambda s: T.log(softmax(s.f))[s.n, s.y],
        FUSED,
        [AdvancedSubtensor, Softmax],
    ),
    (
        f"{BIASED} {LOG} {ONE_HOT}",
        lambda s: T.log(softmax(s.x + s.b))[s.n, s.y],
        FUSED,
        [AdvancedSubtensor, Softmax, scal.Add],
    ),
    (
        ONE_HOT,
        lambda s: T.log(sm := softmax(s.x))[T.arange(sm.shape[0]), s.y],
        FUSED,
        [AdvancedSubtensor, Softmax],
    ),
    (
        ONE_HOT,
        lambda s: T.log(softmax(s.x))[T.arange(s.x.shape[0]), s.y],
        FUSED,
        [AdvancedSubtensor, Softmax],
    ),
    (
        # the arange of a known length has become a constant
        ONE_HOT,
        lambda s: T.log(softmax(s.r)[np.arange(1), s.y[:1]]),
        FUSED,
        [AdvancedSubtensor, Softmax],
    ),
    (
        # the softmax that others read comes from there too
        ONE_HOT,
        lambda s: [T.log(sm := softmax(s.x))[s.n, s.y], 2 * sm],
        FUSED,
        [AdvancedSubtensor, Softmax],
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: grad(T.log(softmax(s.x))[s.n, s.y].sum(), s.x),
        DX,
        [SoftmaxGrad],
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: grad((T.log(softmax(s.x))[s.n, s.y] * s.g).mean(), s.x),
        DX,
        [SoftmaxGrad],
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: grad((T.log(softmax(s.x)[s.n, s.y]) * s.g).mean(), s.x),
        DX,
        [SoftmaxGrad],
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: grad((logsoftmax(s.x)[s.n, s.y] * s.g).sum(), s.x),
        DX,
        [ROW_SUMS],
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: softmax_grad(
            -3 * s.c * T.inc_subtensor(T.zeros_like(s.x)[s.n, s.y], s.g) / (sm := softmax(s.x)), sm
        ),
        DX,
        [SoftmaxGrad],
    ),
    (
        f"{BOTH}_with_bias",
        lambda s: [xent(sm := softmax_with_bias(s.x, s.b), s.y), sm],
        FUSED,
        [CrossentropyCategorical1Hot, SoftmaxWithBias],
    ),
    (
        BOTH,
        lambda s: xent(softmax(s.x + s.b), s.y),
        FUSED,
        [CrossentropyCategorical1Hot, Softmax, scal.Add],
    ),
    (
        BOTH,
        lambda s: [xent(sm := softmax(s.x), s.y), sm],
        FUSED,
        [CrossentropyCategorical1Hot, Softmax],
    ),
    (
        # labels that depend on the softmax: it cannot come from where the labels are read
        BOTH,
        lambda s: xent(sm := softmax(s.x), T.argmax(sm, axis=1)),
        FUSED,
        [CrossentropyCategorical1Hot],
    ),
    (
        "local_softmax_grad_to_crossentropy_with_softmax_grad",
        lambda s: softmax_grad(
            crossentropy_categorical_1hot_grad(s.g, sm := softmax(s.x), s.y), sm
        ),
        DX,
        [SoftmaxGrad, CrossentropyCategorical1HotGrad],
    ),
    (
        "graph_merge_softmax_with_crossentropy_softmax",
        lambda s: [fused(s.x, s.b, s.y)[0], softmax_with_bias(s.x, s.b)],
        FUSED,
        [SoftmaxWithBias],
    ),
    (
        "graph_merge_softmax_with_crossentropy_softmax",
        lambda s: [softmax(s.x), fused(s.x, T.zeros_like(s.b), s.y)[0]],
        FUSED,
        [Softmax],
    ),
    (
        "local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc",
        lambda s: dx(T.alloc(0.5, s.y.shape[0]), s.x, s.y),
        DX,
        [Alloc],
    ),
    (
        "local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc",
        lambda s: dx(T.fill(s.x[:, 0], s.g[0]), s.x, s.y),
        DX,
        [scal.Second],
    ),
]


@pytest.mark.null
@pytest.mark.parametrize(("names", "build", "op", "gone"), FIRES)
def test_fires(names, build, op, gone):
    before, after = rewritten(names, build)
    assert op in after and (op not in before or before.count(op) == after.count(op))
    assert set(gone) <= set(before)
    assert not set(gone) & set(after)


#: lookalikes that stay as they are
STAYS = [
    (
        f"{ONE_HOT}_grad",
        lambda s: (hot := set_subtensor(T.zeros_like(s.x)[T.arange(s.x.shape[0]), s.y], 1.0)) + hot,
    ),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.n, 1:]),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.y, 1:]),
    (BIASED, lambda s: softmax(s.x + s.c)),
    (BIASED, lambda s: softmax(s.x + s.z)),
    (BIASED, lambda s: softmax(s.x * s.b)),
    (BIASED, lambda s: [softmax(a := s.x + s.b), a]),
    # a float32 matrix plus a float64 bias is float64, which SoftmaxWithBias would not give
    (BIASED, lambda s: softmax(s.f + s.b)),
    (LOG, lambda s: T.log(1 + softmax(s.x))),
    (LOG, lambda s: T.exp(softmax(s.x))),
    ("local_logsoftmax_grad", lambda s: softmax_grad(s.z / softmax(s.z), softmax(s.x))),
    ("local_logsoftmax_grad", lambda s: softmax_grad(s.z * (sm := softmax(s.x)), sm)),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.i, s.y]),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[T.arange(4), s.y]),
    (ONE_HOT, lambda s: T.log(softmax(s.r))[np.zeros(2, int), s.y[:2]]),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[T.arange(1, s.y.shape[0]), s.y[1:]]),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.n, 2]),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.y, s.n]),
    (ONE_HOT, lambda s: T.log(softmax(s.x))[s.y]),
    (ONE_HOT, lambda s: T.log(abs(s.x))[s.n, s.y]),
    (f"{ONE_HOT}_grad", lambda s: softmax_grad(s.z, softmax(s.x))),
    (
        f"{ONE_HOT}_grad",
        lambda s: softmax_grad(T.inc_subtensor(s.z[s.n, s.y], s.g) / (sm := softmax(s.x)), sm),
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: softmax_grad(
            T.inc_subtensor(T.zeros_like(s.x)[s.i, s.y], s.g) / (sm := softmax(s.x)), sm
        ),
    ),
    (
        f"{ONE_HOT}_grad",
        lambda s: softmax_grad(
            s.z * T.inc_subtensor(T.zeros_like(s.x)[s.n, s.y], s.g) / (sm := softmax(s.x)), sm
        ),
    ),
    (f"{ONE_HOT}_grad", lambda s: s.x - s.x.sum(axis=1, keepdims=True) * softmax(s.x)),
    (f"{BOTH}_with_bias", lambda s: xent(softmax(s.x), s.y)),
    (BOTH, lambda s: xent(abs(s.x), s.y)),
    (
        "local_softmax_grad_to_crossentropy_with_softmax_grad",
        lambda s: softmax_grad(
            crossentropy_categorical_1hot_grad(s.g, abs(s.z), s.y), softmax(s.x)
        ),
    ),
    (
        "graph_merge_softmax_with_crossentropy_softmax",
        lambda s: [fused(s.x, s.b, s.y)[0], softmax_with_bias(s.x, 2 * s.b), softmax(s.x)],
    ),
    (
        "graph_merge_softmax_with_crossentropy_softmax",
        lambda s: fused(s.x, s.b, T.argmax(softmax_with_bias(s.x, s.b), axis=1))[0],
    ),
    (
        "local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc",
        lambda s: dx(T.alloc(s.g, s.y.shape[0]), s.x, s.y),
    ),
    (
        # nothing tells that there are as many as rows
        "local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc",
        lambda s: dx(T.alloc(0.5, s.g.shape[0]), s.x, s.y),
    ),
]


@pytest.mark.null
@pytest.mark.parametrize(("names", "build"), STAYS)
def test_stays(names, build):
    before, after = rewritten(names, build)
    assert after == before


# --- whole programs -------------------------------------------------------------------------------

#: costs of a matrix of activations, labels and a matrix of probabilities
COSTS = {
    "log, then one of each row": lambda a, y, t: (
        -T.mean(T.log(softmax(a))[T.arange(y.shape[0]), y])
    ),
    "one of each row, then log": lambda a, y, t: (
        -T.mean(T.log(softmax(a)[T.arange(y.shape[0]), y]))
    ),
    "rows of the softmax": lambda a, y, t: -T.mean(T.log(p := softmax(a))[T.arange(p.shape[0]), y]),
    "logsoftmax": lambda a, y, t: -T.mean(logsoftmax(a)[T.arange(y.shape[0]), y]),
    "by hand": lambda a, y, t: (
        -T.mean(T.log(T.exp(a) / T.exp(a).sum(axis=1, keepdims=True))[T.arange(y.shape[0]), y])
    ),
    "cross entropy": lambda a, y, t: xent(softmax(a), y).mean(),
    "sum of cross entropy": lambda a, y, t: xent(softmax(a), y).sum(),
    "weighted": lambda a, y, t: (xent(softmax(a), y) * t[:, 0]).mean(),
    "weighted logarithm": lambda a, y, t: (
        -T.mean(T.log(softmax(a))[T.arange(y.shape[0]), y] * t[:, 0])
    ),
    "distributions": lambda a, y, t: xent(softmax(a), t).mean(),
    "distributions by hand": lambda a, y, t: -T.mean(T.sum(t * T.log(softmax(a)), axis=1)),
}


def step(cost, biased=True):
    """Return (inputs, outputs, values): a cost of softmax regression, and where descent leads."""
    random = np.random.default_rng(2)
    x, y, t = T.dmatrix("x"), T.ivector("y"), T.dmatrix("t")
    w, b = shared(random.normal(size=(6, 4)), "w"), shared(random.normal(size=4), "b")
    c = COSTS[cost](T.dot(x, w) + b if biased else T.dot(x, w), y, t)
    moved = [p - 0.1 * grad(c, p) for p in ([w, b] if biased else [w])]
    values = [random.normal(size=(5, 6)), np.array([0, 1, 2, 3, 1], "int32"), random.random((5, 4))]
    return [x, y, t], [c, *moved], values


def compiled(inputs, outputs, mode):
    return function(inputs, outputs, mode=mode, on_unused_input="ignore")


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE"])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("cost", COSTS)
def test_a_training_step(cost, biased, mode):
    inputs, outputs, values = step(cost, biased)
    f = compiled(inputs, outputs, mode)
    with np.errstate(all="ignore"):
        expected = compiled(inputs, outputs, Mode("py", None))(*values)
    for found, value in zip(f(*values), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-9, atol=1e-12)
    if cost == "by hand" and mode == "FAST_COMPILE":
        return  # no algebra there: this overflows as the user wrote it
    ops = kinds(f.maker.fgraph)
    if "distributions" in cost:
        assert LogSoftmax in ops and SoftmaxGrad not in ops
    else:
        assert ops.count(FUSED) == ops.count(DX) == 1
        assert not {Softmax, SoftmaxWithBias, SoftmaxGrad, LogSoftmax} & set(ops)
        assert not {AdvancedSubtensor, AdvancedIncSubtensor, CrossentropyCategorical1HotGrad} & set(
            ops
        )
    assert (Alloc in ops) == (not biased and "distributions" not in cost)
    x, *rest = values
    for found in f(1000 * x, *rest):
        assert np.isfinite(found).all()


def test_an_empty_batch():
    """No row is read where there is none: the zeros of a bias that is not there have a length."""
    for mode in ("FAST_RUN", "FAST_COMPILE"):
        for cost in ("cross entropy", "log, then one of each row"):
            inputs, (_, moved), _ = step(cost, biased=False)
            f = compiled(inputs, [moved], mode)
            none = [np.zeros((0, 6)), np.zeros(0, "int32"), np.zeros((0, 4))]
            assert f(*none)[0].shape == (6, 4)


def test_classes_without_a_softmax_of_their_own():
    """Errors and cost of one function: the softmax is computed once, with the cross entropy."""
    x, y = T.dmatrix("x"), T.ivector("y")
    b = T.dvector("b")
    p = softmax(x + b)
    cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
    f = function([x, b, y], [cost, p, grad(cost, x)])
    ops = kinds(f.maker.fgraph)
    assert ops.count(FUSED) == 1
    assert not {Softmax, SoftmaxWithBias, SoftmaxGrad, LogSoftmax} & set(ops)


def test_a_label_out_of_range():
    x, y = T.dmatrix("x"), T.ivector("y")
    f = function([x, y], -T.mean(T.log(softmax(x))[T.arange(y.shape[0]), y]))
    with pytest.raises(ValueError, match="y_i value out of bounds"):
        f(np.zeros((2, 3)), np.array([0, 3], "int32"))


def test_float32_stays_float32():
    x, w = T.fmatrix("x"), shared(np.ones((3, 2), "float32"), "w")
    y = T.bvector("y")
    cost = -T.mean(T.log(softmax(T.dot(x, w)))[T.arange(y.shape[0]), y])
    f = function([x, y], [cost, grad(cost, w)])
    nodes = {type(n.op): n for n in f.maker.fgraph.toposort()}
    for op in (CrossentropySoftmaxArgmax1HotWithBias, CrossentropySoftmax1HotWithBiasDx):
        dtypes = {v.type.dtype for v in nodes[op].inputs} - {"int8"}
        assert dtypes == {"float32"}
    values = np.random.randn(4, 3).astype("float32"), np.array([0, 1, 1, 0], "int8")
    assert all(v.dtype == "float32" for v in f(*values))
    assert CrossentropyCategorical1HotGrad not in nodes


@pytest.mark.null
def test_names():
    quick = {
        "local_softmax_with_bias", ONE_HOT, f"{ONE_HOT}_grad", f"{BOTH}_with_bias",
        "graph_merge_softmax_with_crossentropy_softmax",
        "local_softmax_grad_to_crossentropy_with_softmax_grad",
    }  # fmt: skip
    logs = {LOG, "local_logsoftmax_grad"}
    specialize = optdb["specialize"]
    assert quick <= set(specialize.select(Query(["fast_compile_gpu"])))
    assert logs <= set(specialize.select(Query(["fast_compile"])))
    assert quick | logs <= set(specialize.select(Query(["fast_run"])))
    assert not logs & set(specialize.select(Query(["fast_run"]).excluding("stabilize")))
    assert f"{BOTH}_with_bias" in optdb["stabilize"].select(Query(["fast_run"]))
    alloc = "local_useless_crossentropy_softmax_1hot_with_bias_dx_alloc"
    for stage in ("canonicalize", "stabilize", "specialize"):
        assert alloc in optdb[stage].select(Query(["fast_run"]))
    excluded = "local_crossentropy_to_crossentropy_with_softmax_grad"
    assert "local_softmax_grad_to_crossentropy_with_softmax_grad" not in specialize.select(
        Query(["fast_run"]).excluding(excluded)
    )
