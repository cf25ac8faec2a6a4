"""Random streams on a device: the numbers of the host, bit for bit, from states that stay there."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, ProfileMode
from opwise.gpu.kernels import layouts as layouts_of
from opwise.gpu.kernels.kernel import DeviceLimits, Implementation, Layout
from opwise.gpu.lowering import lower
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.random import MRG_RandomStreams
from opwise.sandbox.rng_mrg import mrg_uniform
from opwise.tensor import TensorType
from opwise.tensor.random.mrg import substreams
from opwise.tensor.random.multinomial import ChoiceFromUniform, MultinomialFromUniform

SEED = np.array([1, 2, 3, 4, 5, 6], "int32")
FLOATS = ("float16", "float32", "float64")


def tensor(dtype, ndim):
    return TensorType(dtype, (False,) * ndim)()


def uniform(dtype, ndim=1, inplace=False):
    op = mrg_uniform(tensor(dtype, ndim).type, inplace)
    return op(T.imatrix(), T.lvector())[1].owner


def nodes():
    made = {f"uniform {dtype}": uniform(dtype) for dtype in FLOATS}
    made["uniform matrix"] = uniform("float32", 2)
    made["uniform number"] = uniform("float32", 0)
    for pvals, unis in [("float32", "float64"), ("float64", "float32"), ("float32", "float32")]:
        given = tensor(pvals, 2), tensor(unis, 1), T.lscalar()
        of = f"{pvals} {unis}"
        made[f"counts {of}"] = MultinomialFromUniform("auto")(*given).owner
        made[f"draws {of}"] = ChoiceFromUniform("auto", replace=True)(*given).owner
        made[f"choice {of}"] = ChoiceFromUniform("auto")(*given).owner
    given = tensor("float32", 2), tensor("float32", 1), T.lscalar()
    for out in ("int8", "uint16", "float32", "float64"):
        made[f"counts to {out}"] = MultinomialFromUniform(out)(*given).owner
        made[f"choice to {out}"] = ChoiceFromUniform(out)(*given).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def equal(found, expected, where):
    for f, e in zip(found, expected, strict=True):
        assert (f.dtype, f.shape) == (e.dtype, e.shape), where
        assert f.tobytes() == e.tobytes(), where


def check(kernels, name, values, order=0, **options):
    """Compare what kernels compute with ``perform``, bit by bit."""
    expected = kernels.expected(name, [np.array(v) for v in values])
    found, flag = kernels.run(name, values, order, **options)
    assert not flag
    equal(found, expected, (name, *map(np.shape, values)))
    return found


# --- uniform numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("streams", "size"), [
    (1, 1), (1, 50), (7, 3), (7, 7), (7, 1), (60, 300), (60, 301), (63, 1000), (65, 64), (200, 999),
    (3, 0), (0, 0),
])  # fmt: skip
def test_uniform_numbers(kernels, dtype, streams, size):
    states = substreams(SEED, streams) if streams else np.empty((0, 6), "int32")
    for order in (0, 1):
        after, numbers = check(kernels, f"uniform {dtype}", [states, [size]], order)
    for _ in range(2):  # the next draws
        after, numbers = check(kernels, f"uniform {dtype}", [after, [size]])
    assert (numbers > 0).all() and (dtype == "float16" or (numbers < 1).all())


def test_states_of_any_values(kernels):
    """States that steps would not make, such as negative ones, give the host's numbers too."""
    limits = np.iinfo("int32")
    for low, high in ((limits.min, limits.max), (-5, 5), (limits.max - 9, limits.max)):
        states = np.random.default_rng(0).integers(low, high, (300, 6), "int32", endpoint=True)
        for dtype in FLOATS:
            check(kernels, f"uniform {dtype}", [states, [2000]])


def test_sizes(kernels):
    states = substreams(SEED, 10)
    check(kernels, "uniform matrix", [states, [5, 7]])
    check(kernels, "uniform matrix", [states, [5, 0]])
    check(kernels, "uniform number", [states, np.zeros(0, "int64")])


def test_layouts_of_states(kernels, layouts):
    for layout, (states,) in layouts([substreams(SEED, 9)]):
        found, _ = kernels.run("uniform float64", [states, [40]])
        equal(found, kernels.expected("uniform float64", [states, [40]]), layout)


def test_any_device_draws_the_same(kernels):
    states = substreams(SEED, 3000)
    expected, _ = kernels.run("uniform float32", [states, [9000]])
    for processors in (1, 132):
        limits = DeviceLimits(processors)
        equal(kernels.run("uniform float32", [states, [9000]], 1, device=limits)[0], expected, "")


@pytest.mark.parametrize(("states", "size", "text"), [
    (np.zeros((3, 5), "int32"), [4], "6 columns"),
    (np.zeros((0, 6), "int32"), [4], "no rows"),
    (np.zeros((3, 6), "int32"), [4, 4], "length 1"),
    (np.zeros((3, 6), "int32"), [-4], "negative dimensions"),
    (np.zeros((3, 6), "int32"), [2**31], "more then"),
])  # fmt: skip
def test_refused_draws(kernels, states, size, text):
    for compute in (kernels.run, kernels.expected):
        with pytest.raises(ValueError, match=text):
            compute("uniform float32", [states, size])


def test_states_of_another_type_stay_on_the_host():
    made = mrg_uniform(T.fvector().type)(T.lmatrix(), [3])[1]
    assert lower(made.owner) == "its states are not an int32 matrix"


# --- outcomes -----------------------------------------------------------------------------------


def probabilities(rows, columns, dtype="float32"):
    drawn = np.random.default_rng(rows).random((rows, columns)) ** 4
    return (drawn / drawn.sum(1, keepdims=True)).astype(dtype)


def numbers(count, dtype="float32"):
    return np.random.default_rng(count).random(count).astype(dtype)


OF = ["float32 float64", "float64 float32", "float32 float32"]


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize(("rows", "columns", "n"), [
    (1, 5, 3), (4, 1, 1), (300, 9, 1), (20, 30, 7), (3, 300, 40), (0, 4, 2), (4, 3, 0), (2, 0, 0),
])  # fmt: skip
def test_outcomes(kernels, of, rows, columns, n):
    pvals, unis = of.split()
    values = [probabilities(rows, columns, pvals), numbers(rows * n, unis), n]
    for order in (0, 1):
        check(kernels, f"counts {of}", values, order)
        check(kernels, f"draws {of}", values, order)
        check(kernels, f"choice {of}", values, order)


@pytest.mark.parametrize("out", ["int8", "uint16", "float32", "float64"])
def test_dtypes_of_outcomes(kernels, out):
    values = [probabilities(5, 6) / 2, numbers(20), 4]  # of some draws there is no outcome
    check(kernels, f"counts to {out}", values)
    (chosen,) = check(kernels, f"choice to {out}", values)
    assert (chosen == np.array(-1).astype(out)).any()


def test_rows_that_are_no_distribution(kernels):
    pvals = probabilities(6, 7)
    pvals[0], pvals[1], pvals[2, 3], pvals[3, 0], pvals[4] = 0, 5, np.nan, -1, [1, *[0] * 6]
    for of in ("counts", "draws", "choice"):
        check(kernels, f"{of} float32 float32", [pvals, numbers(18), 3])


def test_layouts_of_probabilities(kernels, layouts):
    for layout, (pvals, unis) in layouts([probabilities(6, 5), numbers(18)]):
        for of in ("counts", "draws", "choice"):
            found, _ = kernels.run(f"{of} float32 float32", [pvals, unis, 3])
            expected = kernels.expected(f"{of} float32 float32", [pvals, unis, 3])
            equal(found, expected, (of, layout))


@pytest.mark.parametrize(("name", "values", "text"), [
    ("counts", [probabilities(3, 2), numbers(5), 2], "unis.shape"),
    ("draws", [probabilities(3, 2), numbers(5), 2], "unis.shape"),
    ("choice", [probabilities(3, 2), numbers(9), 3], "without replacement"),
    ("choice", [probabilities(0, 2), numbers(0), -1], "negative"),
])  # fmt: skip
def test_refused_outcomes(kernels, name, values, text):
    for compute in (kernels.run, kernels.expected):
        with pytest.raises(ValueError, match=text):
            compute(f"{name} float32 float32", values)


def test_indices_of_64_bits(simulate, monkeypatch):
    names = [*(f"{of} float32 float32" for of in ("counts", "draws", "choice")), "uniform float64"]
    kernels = simulate({name: nodes()[name] for name in names}, wide=True)
    monkeypatch.setattr(layouts_of, "LIMIT_32", 0)
    for name in names[:3]:
        check(kernels, name, [probabilities(20, 30), numbers(60), 3])
    check(kernels, "uniform float64", [substreams(SEED, 70), [500]])


def test_huge_arrays():
    made, states = lower(uniform("float16")), Layout.contiguous((2**29, 6), 4)
    inputs = [states, (2**31 - 1,)]
    outputs = [Layout.contiguous(shape, 4) for shape in made.shapes(inputs)]
    (launch,) = made.plan(inputs, outputs, DeviceLimits()).launches
    assert launch.kernel.wide and launch.numbers[-2:] == (2**29, 2**31 - 1)
    rows, columns = 2**20, 2**12
    for op in (MultinomialFromUniform("auto"), ChoiceFromUniform("auto")):
        made = lower(op(tensor("float32", 2), tensor("float32", 1), T.lscalar()).owner)
        inputs = [Layout.contiguous((rows, columns), 4), Layout.contiguous((rows,), 4), 1]
        outputs = [Layout.contiguous(shape, 4) for shape in made.shapes(inputs)]
        plan = made.plan(inputs, outputs, DeviceLimits())
        assert all(launch.kernel.wide for launch in plan.launches[-1:])


@pytest.mark.parametrize("make", [
    lambda: MultinomialFromUniform("auto")(tensor("float16", 2), T.fvector(), 1),
    lambda: MultinomialFromUniform("float16")(T.fmatrix(), T.fvector(), 1),
    lambda: ChoiceFromUniform("auto")(T.fmatrix(), tensor("float16", 1), 1),
])  # fmt: skip
def test_outcomes_with_float16_stay_on_the_host(make):
    assert lower(make().owner) == "there are no kernels for outcomes with float16"


# --- functions ----------------------------------------------------------------------------------

P = probabilities(8, 5)
#: {name: stream -> random variable}: those whose numbers have the same bits on both sides
EXACT = {
    "uniform": lambda s: s.uniform((40, 30), dtype="float32"),
    "between": lambda s: s.uniform((40, 30), low=-2.0, high=3.0, dtype="float32"),
    "double": lambda s: s.uniform((70,), dtype="float64"),
    "half": lambda s: s.uniform((70,), dtype="float16"),
    "binomial": lambda s: s.binomial((40, 30), p=0.3, dtype="float32"),
    "multinomial": lambda s: s.multinomial(n=3, pvals=opwise.shared(P), dtype="float32"),
    "choice": lambda s: s.choice(size=2, replace=False, p=opwise.shared(P)),
}
#: those of functions that differ in the last bits
CLOSE = {
    "normal": lambda s: s.normal((41, 3), avg=1.0, std=2.0, dtype="float32"),
    "normal double": lambda s: s.normal((10,), dtype="float64"),
    "truncated": lambda s: s.truncated_normal((300,), dtype="float32"),
}


def drawing(make, mode):
    """Return a function that adds what a stream draws to a shared variable, and that variable."""
    numbers = make(MRG_RandomStreams(3))
    shape = (41, 3) if numbers.ndim == 2 and make is CLOSE["normal"] else None
    drawn = opwise.function([], numbers, mode=Mode("py", None))()
    total = opwise.shared(np.zeros(shape or drawn.shape, "float64"), "total")
    numbers = make(MRG_RandomStreams(7))
    return opwise.function([], updates=[(total, total + numbers)], mode=mode), total


@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
@pytest.mark.parametrize("kind", [Mode, ProfileMode])
def test_functions(cupy, name, kind):
    """A call moves nothing between host and device, and draws what the host draws."""
    make = EXACT.get(name) or CLOSE[name]
    (there, total), (here, expected) = drawing(make, kind("cupy", "fast_run")), drawing(make, None)
    assert not any(isinstance(n.op, GpuFromHost | HostFromGpu) for n in there.linked.order)
    for _ in range(5):
        there(), here()
        if name in EXACT:
            assert total.get_value().tobytes() == expected.get_value().tobytes()
        else:
            np.testing.assert_allclose(total.get_value(), expected.get_value(), 1e-4, 1e-5)


@pytest.mark.parametrize(("dtype", "second"), [
    ("float32", [0.2169220894575119, 0.4255564510822296, 0.8289483785629272, 0.4955788850784302,
                 0.5548294186592102, 0.4156900942325592, 0.910522997379303]),
    ("float64", [0.21692210296168923, 0.4255564799532294, 0.8289484563283622, 0.49557892605662346,
                 0.554829494562, 0.4156901245005429, 0.9105230513960123]),
])  # fmt: skip
def test_numbers_of_theano(cupy, dtype, second):
    """The second row of the second draw, recorded from Theano 1.0.5."""
    numbers = MRG_RandomStreams(7).uniform((3, 7), dtype=dtype, nstreams=5)
    f = opwise.function([], numbers, mode=Mode("cupy", "fast_run"))
    f()
    assert f()[1].tolist() == second


def states_of(f):
    return [v for v in f.get_shared() if v.type.dtype == "int32" and v.type.ndim == 2]


def test_states_stay_on_the_device(cupy):
    stream = MRG_RandomStreams(5)
    x = opwise.shared(np.ones((20, 10), "float32"), "x")
    dropped = x * stream.binomial((20, 10), p=0.5, dtype="float32")
    f = opwise.function([], updates=[(x, dropped + 1)], mode=Mode("cupy", "fast_run"))
    placement = f.maker.fgraph.find_feature(Placement)
    (draw,) = [n for n in f.linked.order if isinstance(n.op, mrg_uniform)]
    assert isinstance(placement.lowered[draw], Implementation)
    assert draw.inputs[0] in placement.resident
    for _ in range(4):
        f()
    (states,) = states_of(f)
    assert isinstance(states.container.storage[0], cupy.ndarray)
    again = MRG_RandomStreams(5)
    drawn = opwise.function([], again.uniform((20, 10), dtype="float32"))
    for _ in range(4):
        drawn()
    np.testing.assert_array_equal(states.get_value(), states_of(drawn)[0].get_value())


def test_draws_of_a_size_that_depends_on_arguments(cupy):
    n = T.lscalar("n")

    def made(mode):
        numbers = MRG_RandomStreams(2).uniform((n, n), dtype="float32")
        return opwise.function([n], numbers, mode=mode)

    there, here = made(Mode("cupy", "fast_run")), made(None)
    for k in (3, 4, 5, 4, 0, 3):
        assert there(k).tobytes() == here(k).tobytes()
    for f in (there, here):
        with pytest.raises(ValueError, match="negative dimensions"):
            f(-1)
    assert there(6).tobytes() == here(6).tobytes()


def test_a_failed_call_leaves_the_states(cupy):
    x, k = T.fvector("x"), T.lscalar("k")

    def made(mode):
        numbers = MRG_RandomStreams(2).uniform((30,), dtype="float32")
        picked = (opwise.shared(np.arange(30, dtype="f")) + numbers)[x.shape[0] - k]
        return opwise.function([x, k], [numbers.sum(), picked], mode=mode)

    there, here = made(Mode("cupy", "fast_run")), made(None)
    v = np.ones(9, "float32")
    for f in (there, here):
        f(v, 1)
        with pytest.raises(IndexError):
            f(v, 99)
    np.testing.assert_allclose(there(v, 2), here(v, 2), rtol=1e-6)


def test_states_that_are_set_between_calls(cupy):
    stream = MRG_RandomStreams(2)
    f = opwise.function([], stream.uniform((30,), dtype="float32"), mode=Mode("cupy", "fast_run"))
    first = f()
    assert f().tobytes() != first.tobytes()
    stream.seed(2)
    assert f().tobytes() == first.tobytes()
