"""Sums over chunks and gradient steps: the bits are those of the chunks, whatever the workers."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import opwise
import opwise.distributed as od
import opwise.tensor as T
from opwise import sparse
from opwise.random import RandomStreams

pytestmark = pytest.mark.c

RNG = np.random.RandomState(1)
ROWS = RNG.randn(330, 7)
LABELS = (RNG.rand(330) > 0.5) * 1.0


@pytest.fixture(scope="module")
def alone():
    """A client of one worker process."""
    with od.cluster(1) as cluster, Client(cluster, set_as_default=False) as found:
        yield found


def compiled(inputs, outputs, name):
    return opwise.function(inputs, outputs, mode="FAST_COMPILE", name=name)


def model(mean=True, mode="FAST_COMPILE"):
    """A step of logistic regression with momentum, and its parameters."""
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = opwise.shared(np.full(7, 0.1), name="w"), opwise.shared(0.0, name="b")
    velocity = opwise.shared(np.zeros(7), name="velocity")
    losses = T.nnet.binary_crossentropy(T.nnet.sigmoid(T.dot(x, w) + b), y)
    cost = losses.mean() if mean else losses.sum()
    rate = 0.5 if mean else 0.5 / len(ROWS)

    def updates(gradients):
        step = 0.9 * velocity - rate * gradients[0]
        return [(velocity, step), (w, w + step), (b, b - rate * gradients[1])]

    return od.DataParallel([x, y], cost, [w, b], updates, mean=mean, mode=mode), [w, b, velocity]


def trained(client, rows, steps=4, **options):
    """Return the bits of the costs and of the parameters after some steps."""
    step, parameters = model(**options)
    chunks = od.load_chunks([ROWS, LABELS], rows, client)
    costs = [step(chunks) for _ in range(steps)]
    return [value.tobytes() for value in (*costs, *(p.get_value() for p in parameters))]


def by_hand(mean=True, steps=4):
    """The same in numpy; returns the costs and the parameters."""
    w, b, velocity = np.full(7, 0.1), 0.0, np.zeros(7)
    costs = []
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(ROWS @ w + b)))
        losses = -(LABELS * np.log(p) + (1 - LABELS) * np.log(1 - p))
        costs.append(losses.mean() if mean else losses.sum())
        velocity = 0.9 * velocity - 0.5 * ROWS.T @ (p - LABELS) / len(ROWS)
        w, b = w + velocity, b - 0.5 * (p - LABELS).mean()
    return [*costs, w, b, velocity]


@pytest.mark.parametrize("mean", [True, False])
def test_one_and_two_workers_give_the_same_bits(client, alone, mean):
    options = {"mean": mean, "mode": "FAST_RUN" if mean else "FAST_COMPILE"}
    one, two = trained(alone, 50, **options), trained(client, 50, **options)
    assert one == two
    for bits, wanted in zip(one, by_hand(mean), strict=True):
        np.testing.assert_allclose(np.frombuffer(bits), np.ravel(wanted), rtol=1e-9)


def test_the_bits_are_those_of_a_fixed_tree(client):
    """Neighbours are added in pairs, and the last of an odd number goes on as it is."""
    x = T.dvector("x")
    f = compiled([x], [x.sum(), T.exp(x).sum()], "sums")
    for n in (1, 2, 7, 11, 64, 75):
        data = RNG.randn(n) * 10.0 ** RNG.randint(-8, 3, n)
        level = [f(data[k : k + 1]) for k in range(n)]
        while len(level) > 1:
            odd = level[len(level) // 2 * 2 :]
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [[x + y for x, y in zip(a, b, strict=True)] for a, b in pairs] + odd
        found = od.tree_sum(f, od.load_chunks([data], 1))
        assert [v.tobytes() for v in found] == [v.tobytes() for v in level[0]]


def test_dask_arrays_and_delayed_values_are_chunks(client):
    wanted = trained(client, 110)
    step, parameters = model()
    arrays = [da.from_array(ROWS, chunks=(60, 4)), da.from_array(LABELS, chunks=110)]
    chunks = od.load_chunks(arrays, 110)
    costs = [step(chunks) for _ in range(4)]
    assert [v.tobytes() for v in (*costs, *(p.get_value() for p in parameters))] == wanted

    @dask.delayed
    def read(k):
        return [ROWS[110 * k : 110 * k + 110], LABELS[110 * k : 110 * k + 110]]

    step, parameters = model()
    chunks = od.load_chunks([read(k) for k in range(3)])
    costs = [step(chunks) for _ in range(4)]
    assert [v.tobytes() for v in (*costs, *(p.get_value() for p in parameters))] == wanted


def test_blocks_of_dask_arrays_are_the_default(client):
    chunks = od.load_chunks([da.from_array(ROWS, chunks=(100, 7)), LABELS])
    assert len(chunks) == 4
    sizes = [len(rows) for rows, _ in client.gather(chunks.futures)]
    assert sizes == [100, 100, 100, 30]


def test_some_of_the_chunks(client):
    x = T.dvector("x")
    f = compiled([x], x.sum(), "total")
    chunks = od.load_chunks([np.arange(12.0)], 2)
    assert len(chunks) == 6 and len(chunks[1:3]) == 2
    assert od.tree_sum(f, chunks)[0] == 66
    assert od.tree_sum(f, chunks[1:3])[0] == 2 + 3 + 4 + 5
    assert [float(od.tree_sum(f, c)[0]) for c in list(chunks)[:2]] == [1, 5]
    assert od.tree_sum(f, chunks[-1])[0] == 21


def test_each_sum_has_the_values_of_its_moment(client):
    x = T.dvector("x")
    w = opwise.shared(0.0, name="w")
    f = compiled([x], (x * w).sum(), "weighted")
    chunks = od.load_chunks([np.arange(8.0)], 1)
    for k in range(5):
        w.set_value(float(k))
        assert od.tree_sum(f, chunks)[0] == 28 * k


def test_a_failing_step_changes_nothing(client):
    x = T.dmatrix("x")
    w = opwise.shared(np.zeros(7), name="w")
    cost = T.dot(x, w).sum()  # here
    step = od.DataParallel([x], cost, [w], lambda g: [(w, w - g[0])],
                           mode="FAST_COMPILE", name="failing")  # fmt: skip
    bad = od.load_chunks([ROWS[:, :6]], 100)
    with pytest.raises(ValueError, match="# here"):
        step(bad)
    assert not w.get_value().any()
    step(od.load_chunks([ROWS], 100))
    np.testing.assert_allclose(w.get_value(), -ROWS.sum(0))


def test_float32_stays_float32(client):
    x = T.fmatrix("x")
    w = opwise.shared(np.ones(7, "float32"), name="w")
    cost = T.sqr(T.dot(x, w)).mean()
    step = od.DataParallel([x], cost, [w], lambda g: [(w, w - T.cast(0.1 * g[0], "float32"))],
                           mean=True, name="small")  # fmt: skip
    rows = ROWS.astype("float32")
    cost, gradient = step.totals(od.load_chunks([rows], 64))
    assert cost.dtype == gradient.dtype == "float32"
    np.testing.assert_allclose(cost, np.square(rows.sum(1)).mean(), rtol=1e-4)


def test_results_whose_shapes_differ(client):
    x = T.dvector("x")
    f = compiled([x], 2 * x, "doubled")
    with pytest.raises(ValueError, match=r"different shapes, \(2,\) and \(1,\).*sum over the rows"):
        od.tree_sum(f, od.load_chunks([np.arange(3.0)], 2))


def test_the_names_of_the_tasks(client):
    x = T.dvector("x")
    w = opwise.shared(1.0, name="w")
    f = compiled([x], (x * w).sum(), "named")
    od.tree_sum(f, od.load_chunks([np.arange(4.0)], 1))
    names = set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes)))
    assert {"opwise-chunk", "opwise-named", "opwise-named-sum", "opwise-named-recipe",
            "opwise-named-values"} <= names  # fmt: skip


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrays, rows, error, text", [
    ([], 1, ValueError, "at least one array"),
    ([np.ones(3), np.ones(4)], 1, ValueError, "3 and 4 rows"),
    ([np.ones(3)], None, ValueError, "rows is missing"),
    ([np.ones(3)], 0, ValueError, "rows is 0"),
    ([np.ones(0)], 5, ValueError, "have no rows"),
    ([np.float64(3)], 5, TypeError, "has no rows"),
    ([dask.delayed(list)()], 5, ValueError, "are chunks already"),
    ([da.arange(9, chunks=3)[da.arange(9, chunks=3) > 2]], None, ValueError, "is not known: call"),
])  # fmt: skip
def test_arrays_that_make_no_chunks(client, arrays, rows, error, text):
    with pytest.raises(error, match=text):
        od.load_chunks(arrays, rows)


def test_functions_that_cannot_be_summed(client):
    x = T.dvector("x")
    chunks = od.load_chunks([np.ones(3)], 1)
    with pytest.raises(TypeError, match="returns a tensor or a list"):
        od.tree_sum(opwise.function([x], {"a": x.sum()}), chunks)
    with pytest.raises(TypeError, match="make it by load_chunks"):
        od.tree_sum(opwise.function([x], x.sum()), [np.ones(3)])
    with pytest.raises(ValueError, match="at least one chunk"):
        od.tree_sum(opwise.function([x], x.sum()), chunks[:0])
    flag = x.sum() > 0  # a boolean
    with pytest.raises(TypeError, match=r"(?s)sums of booleans are booleans.*# a boolean"):
        od.tree_sum(opwise.function([x], flag), chunks)
    rows = sparse.csr_from_dense(T.dmatrix("m"))
    with pytest.raises(TypeError, match="adds tensors, but the function returns Sparse"):
        od.tree_sum(opwise.function([rows.owner.inputs[0]], rows), chunks)
    noisy = x.sum() * RandomStreams(1).normal()  # noise
    with pytest.raises(ValueError, match=r"(?s)draws random numbers.*# noise"):
        od.tree_sum(opwise.function([x], noisy), chunks)


def test_models_that_make_no_steps():
    x = T.dvector("x")
    w = opwise.shared(1.0, name="w")
    rule = lambda g: [(w, w - g[0])]  # noqa: E731
    with pytest.raises(TypeError, match=r"wrt is .*w.*; it must be a list of shared variables"):
        od.DataParallel([x], (x * w).sum(), w, rule)
    with pytest.raises(TypeError, match="not a shared variable"):
        od.DataParallel([x], (x * w).sum(), [x], rule)
    k = T.dscalar("k")
    with pytest.raises(TypeError, match="at least one dimension, not k"):
        od.DataParallel([k], k * w, [w], rule, mean=True)


def test_without_a_client(monkeypatch):
    def none():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr("distributed.get_client", none)
    with pytest.raises(ValueError, match="load_chunks needs a Dask client, and there is none"):
        od.load_chunks([np.ones(3)], 1)
    with pytest.raises(TypeError, match=r"must be a distributed\.Client"):
        od.load_chunks([np.ones(3)], 1, "tcp://localhost:8786")
