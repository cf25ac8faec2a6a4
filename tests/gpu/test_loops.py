"""Loops on the device: the same as on the host, without waiting between steps."""

import pickle
import threading

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Mode, Op, OpFromGraph, ProfileMode, function, grad
from opwise.compile import DebugMode
from opwise.gpu.placement.placement import Placement
from opwise.gpu.runtime.loops import Rows
from opwise.gradient import hessian, jacobian
from opwise.graph.legacystate import legacy
from opwise.loops import Scan, scan, until
from opwise.random import MRG_RandomStreams

emulated_only = pytest.mark.parametrize("cupy", ["emulated"], indirect=True)
RNG = np.random.RandomState(5)


@pytest.fixture(autouse=True)
def there(cupy):
    """Run every test on a device, perhaps an emulated one."""


@pytest.fixture
def mode():
    return Mode("cupy")


def loops(f):
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]


def where(f):
    """Return, for each loop of a function, "" if the device runs it, else why not."""
    placement = f.maker.fgraph.find_feature(Placement)
    return ["" if n in placement.lowered else placement.why[n] or "costs" for n in loops(f)]


def floats(*shape):
    return RNG.randn(*shape).astype("float32") / 2


def compared(given, outputs, *calls, places=("",), mode=None):
    """Compile for the device and for the host, and compare each call; return the first function."""
    f = function(given, outputs, mode=mode or Mode("cupy"))
    g = function(given, outputs)
    assert where(f) == list(places)
    for values in calls:
        for a, b in zip(_listed(f(*values)), _listed(g(*values)), strict=True):
            assert (type(a), a.dtype, a.shape) == (np.ndarray, b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)
    return f


def _listed(results):
    return results if isinstance(results, list) else [results]


def rnn():
    x, w, h0 = T.ftensor3("x"), T.fmatrix("w"), T.fmatrix("h0")
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, h0)
    return [x, w, h0], out, [floats(20, 4, 6), floats(6, 6), floats(4, 6)]


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("tags", ["fast_run", "fast_compile"])
def test_a_recurrent_network_and_its_gradient(tags):
    given, out, values = rnn()
    compared(given, out, *[values] * 4, mode=Mode("cupy", tags))
    outputs = [out[-1], *grad((out**2).sum(), given)]
    compared(given, outputs, *[values] * 4, places=("", ""), mode=Mode("cupy", tags))


def test_calls_of_many_lengths():
    given, out, (x, w, h0) = rnn()
    lengths = [1, 2, 3, 20, 1, 0, 7, 0, 20, 2]
    compared(given, [out, out[-2:].sum()], *((x[:n], w, h0) for n in lengths))
    outputs = grad((out**2).sum(), given)
    compared(given, outputs, *((x[:n], w, h0) for n in lengths), places=("", ""))


def test_calls_of_many_shapes():
    given, out, _ = rnn()
    sizes = [(5, 2, 3), (5, 4, 6), (5, 2, 3), (3, 1, 1), (3, 0, 2), (5, 2, 3)]
    compared(given, out, *((floats(*s), floats(s[2], s[2]), floats(*s[1:])) for s in sizes))


def test_taps_results_and_constants():
    x, h, w, b = T.fmatrix(), T.fmatrix(), T.fmatrix(), T.fvector()

    def step(now, before, old, new, w, b):
        value = T.tanh(T.dot(old, w) + now - before * b)
        return [value + new, T.outer(now, value), value.sum()]

    outputs, _ = scan(
        step, {"input": x, "taps": [0, -2]},
        [{"initial": h, "taps": [-3, -1]}, None, None], [w, b],
    )  # fmt: skip
    given = [x, h, w, b]
    values = floats(9, 4), floats(3, 4), floats(4, 4), floats(4)
    compared(given, outputs, *[values] * 3)
    outputs = grad(sum((out**2).sum() for out in outputs), given)
    compared(given, outputs, *[values] * 3, places=("", ""))


@pytest.mark.parametrize("name", ["backwards", "columns", "halves", "doubles", "bytes", "part"])
def test_sequences_of_all_layouts_and_dtypes(name):
    dtype = {"halves": "float16", "doubles": "float64", "bytes": "int8"}.get(name, "float32")
    x, w = T.TensorType(dtype, (False,) * 2)(), T.fmatrix()
    rows = {"columns": x.T, "part": x[1::2, ::2]}.get(name, x)
    if name == "part":
        rows = rows * 1
    out, _ = scan(
        lambda row, h: T.tanh(T.dot(h, w) + T.cast(row, "float32").sum()), rows,
        T.zeros((3,), "float32"), go_backwards=name == "backwards",
    )  # fmt: skip
    values = (np.arange(7 * 7).reshape(7, 7) / (1 if name == "bytes" else 30)).astype(dtype)
    compared([x, w], out, *[(values, floats(3, 3))] * 3)


def test_a_state_that_is_passed_on():
    x, w, a, b = T.fmatrix(), T.fmatrix(), T.fvector(), T.fvector()
    outputs, _ = scan(lambda row, a, b: [T.dot(b, w) + row, a], x, [a, b])
    values = floats(6, 5), floats(5, 5), floats(5), floats(5)
    compared([x, w, a, b], outputs, *[values] * 3)
    last = [out[-1] for out in outputs]
    compared([x, w, a, b], last, *[values] * 3)


def test_views_are_outputs():
    x, w, h = T.ftensor3(), T.fmatrix(), T.fmatrix()
    outputs, _ = scan(lambda row, h: [T.dot(h, w) + row, h.T, T.constant(np.float32(3))], x,
                      [h, None, None])  # fmt: skip
    compared([x, w, h], outputs, *[(floats(6, 4, 5), floats(5, 5), floats(4, 5))] * 3)


def test_rows_that_take_the_place_of_earlier_ones(cupy):
    device = opwise_device()
    with device.active():
        ring = Rows(device.zeros((3, 2), "float32"), 2)
        for t in range(8):
            ring.at(t)[...] = float(t)
            written = 2 + t + 1
            got = device.download(ring.in_order(written))[:, 0]
            expected = list(range(t + 1))[-3:]
            np.testing.assert_array_equal(got[-len(expected) :], expected)


def opwise_device():
    from opwise.gpu.runtime import device

    return device.device()


# --- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0.0, 3.5, 20.5, 33.0, 1e9])
def test_a_condition_ends_the_loop(limit):
    x, w, h = T.fmatrix(), T.fmatrix(), T.fvector()
    out, _ = scan(
        lambda row, h: ([T.dot(h, w) + row, h.sum()], until(T.ge(row[0], T.constant(limit)))),
        x, [h, None],
    )  # fmt: skip
    values = np.arange(40, dtype="float32")[:, None] + np.zeros(3, "float32"), floats(3, 3)
    given = (*values, floats(3))
    compared([x, w, h], out, *[given] * 3)
    compared([x, w, h], [out[0][-1], grad(out[0][-1].sum(), w)], *[given] * 2, places=("", ""))


@emulated_only
def test_a_condition_is_read_every_few_steps(cupy, monkeypatch):
    x, w, h = T.fmatrix(), T.fmatrix(), T.fvector()
    out, _ = scan(lambda row, h: (T.dot(h, w) + row, until(row[0] > 1e9)), x, h)
    f = function([x, w, h], out, mode=Mode("cupy"))
    values = floats(100, 3), floats(3, 3), floats(3)
    f(*values), f(*values)
    waits, real = [], emulated._Stream.synchronize
    monkeypatch.setattr(emulated._Stream, "synchronize", lambda s: (waits.append(1), real(s)))
    f(*values)
    assert len(waits) < 100 / 4


# --- what is launched -----------------------------------------------------------------------------


@emulated_only
def test_steps_are_launches_of_one_graph(cupy, monkeypatch):
    given, out, values = rnn()
    f = function(given, out[-1], mode=Mode("cupy"))
    f(*values), f(*values)
    waits, real = [], emulated._Stream.synchronize
    monkeypatch.setattr(emulated._Stream, "synchronize", lambda s: (waits.append(1), real(s)))
    counts = {}
    for n in (20, 10):
        graphs, launches, before = emulated._Graph.launched, emulated.STREAM.launches, len(waits)
        f(values[0][:n], *values[1:])
        counts[n] = (
            emulated._Graph.launched - graphs, emulated.STREAM.launches - launches,
            len(waits) - before,
        )  # fmt: skip
    assert counts[20][0] == 20
    assert np.subtract(counts[20], counts[10]).tolist() == [10, 20, 0], (
        "each step launches a graph and two copies of rows, and waits for nothing"
    )


@emulated_only
def test_without_graphs_the_results_are_the_same(flags):
    given, out, values = rnn()
    outputs = [out, *grad((out**2).sum(), given)]
    flags({"cuda.graphs": False})
    before = emulated._Graph.launched
    compared(given, outputs, *[values] * 3, places=("", ""))
    assert emulated._Graph.launched == before


def test_sums_of_gradients_stay_in_one_place():
    given, out, values = rnn()
    f = function(given, grad((out**2).sum(), given[1]), mode=Mode("cupy"))
    (_, backward) = loops(f)
    assert backward.op.layout.last
    inside = backward.tag.inside.maker.fgraph
    assert any(node.op.destroy_map for node in inside.toposort())
    first = f(*values)
    np.testing.assert_array_equal(f(*values), first)


# --- what is inside -------------------------------------------------------------------------------


def test_random_numbers_and_shared_variables(cupy):
    def made(mode):
        streams = MRG_RandomStreams(7)
        w = opwise.shared(floats_of(3, (5, 5)), "w")
        visible = opwise.shared(floats_of(4, (2, 5)), "v")

        def step(v):
            p = T.nnet.sigmoid(T.dot(v, w))
            return streams.binomial(p.shape, p=p, dtype="float32")

        chain, updates = scan(step, None, visible, n_steps=6)
        updates[visible] = chain[-1]
        f = function([], chain, updates=updates, mode=mode)
        return f, visible

    (f, v), (g, u) = made(Mode("cupy")), made(None)
    assert where(f) == [""]
    for _ in range(4):
        np.testing.assert_allclose(f(), g())
        np.testing.assert_array_equal(v.get_value(), u.get_value())
    stays = v.get_value(borrow=True, return_internal_type=True)
    assert isinstance(stays, cupy.ndarray)


def floats_of(seed, shape):
    return np.random.RandomState(seed).randn(*shape).astype("float32")


def test_a_loop_in_a_loop():
    x, w, h = T.ftensor3(), T.fmatrix(), T.fvector()

    def outer(rows, h):
        inner, _ = scan(lambda row, g: T.tanh(T.dot(g, w) + row), rows, h)
        return inner[-1]

    out, _ = scan(outer, x, h)
    values = floats(4, 5, 3), floats(3, 3), floats(3)
    f = compared([x, w, h], out, *[values] * 3)
    (node,) = loops(f)
    assert where(node.tag.inside) == [""]
    compared([x, w, h], grad(out.sum(), [x, w, h]), *[values] * 3, places=("", ""))


def test_a_training_step_with_embedded_words():
    """Indices are checked on the device; nobody waits for the outcome before the end."""
    words = T.imatrix()
    table, w = opwise.shared(floats_of(1, (11, 4))), opwise.shared(floats_of(2, (4, 4)))

    def made(mode):
        for p, seed, shape in ((table, 1, (11, 4)), (w, 2, (4, 4))):
            p.set_value(floats_of(seed, shape))
        start = T.zeros((2, 4), "float32")
        out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + table[row]), words, start)
        cost = (out[-1] ** 2).sum()
        updates = [(p, p - np.float32(0.1) * grad(cost, p)) for p in (table, w)]
        f = function([words], cost, updates=updates, mode=mode)
        given = np.random.RandomState(4).randint(0, 11, (8, 2)).astype("int32")
        costs = [f(given) for _ in range(4)]
        return f, costs, table.get_value(), w.get_value()

    (f, *found), (_, *expected) = made(Mode("cupy")), made(None)
    assert where(f) == ["", ""]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_rows_picked_by_numbers_of_the_step():
    """As in networks over characters: ``U[:, x_t]``, and the cost of a step ``log(p)[y_t]``."""
    words, labels = T.lvector(), T.lvector()
    u, v, w = T.fmatrix(), T.fmatrix(), T.fmatrix()

    def step(x_t, y_t, h):
        h = T.tanh(u[:, x_t] + T.dot(w, h))
        return h, -T.log(T.nnet.softmax(T.dot(v, h))[0, y_t])

    (_, costs), _ = scan(step, [words, labels], [T.zeros((5,), "float32"), None])
    given = [words, labels, u, v, w]
    values = [np.array(k) for k in ([3, 0, 6, 2, 2, 1], [0, 6, 2, 2, 1, 5])]
    values += [floats(5, 7), floats(7, 5), floats(5, 5)]
    compared(given, costs, *[values] * 3)
    outputs = [costs.sum(), *grad(costs.sum(), [u, v, w])]
    compared(given, outputs, *[values] * 3, places=("", ""))
    f = function(given, outputs, mode=Mode("cupy"))
    f(*values)
    values[0][4] = 7
    with pytest.raises(IndexError) as raised:
        f(*values)
    assert "step 4 of for{cpu,scan_fn}" in "".join(raised.value.__notes__)


def test_an_op_from_a_graph_in_a_step():
    x, w, a, b = T.fmatrix(), T.fmatrix(), T.fvector(), T.fvector()
    added = OpFromGraph([a, b], [a + b])
    layer = OpFromGraph([a, b], [T.tanh(added(a, b)) * 2])
    out, _ = scan(lambda row, h: layer(T.dot(h, w), row), x, T.zeros((4,), "float32"))
    values = floats(6, 4), floats(4, 4)
    compared([x, w], out, *[values] * 3)
    compared([x, w], grad(out.sum(), w), *[values] * 3, places=("", ""))


def test_shapes_and_indices_stay_on_the_host():
    x, w, k = T.ftensor3(), T.fmatrix(), T.lscalar()
    out, _ = scan(
        lambda row, h, k: T.cast(T.dot(h, w) * row.shape[0] + row[:, :k].sum() + k, "float32"), x,
        T.zeros((3, 3), "float32"), k,
    )  # fmt: skip
    values = floats(5, 4, 6), floats(3, 3) / 9
    compared([x, w, k], out, *((*values, n) for n in (2, 5, 2, 2)))


# --- placement ------------------------------------------------------------------------------------


class OnHost(Op):
    """An Op of a user: the double."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


def test_a_step_with_an_apply_of_the_host_stays_there():
    x, w, h = T.fmatrix(), T.fmatrix(), T.fvector()
    out, _ = scan(lambda row, h: OnHost()(T.dot(h, w)) + row, x, h)
    why = "its step runs on the host: OnHost: OnHost has no GPU implementation"
    compared([x, w, h], out, (floats(4, 3), floats(3, 3), floats(3)), places=(why,))


def test_a_step_that_needs_numbers_on_the_host_stays_there():
    x, w, k = T.fmatrix(), T.fmatrix(), T.lvector()
    out, _ = scan(lambda i, h: T.dot(h, w) + x[:i].sum(axis=0), k, T.zeros((3,), "float32"))
    f = function([x, w, k], out, mode=Mode("cupy"))
    (why,) = where(f)
    assert why.startswith("its step runs on the host: ScalarFromTensor")
    given = floats(4, 3), floats(3, 3), [2, 0, 1]
    np.testing.assert_allclose(f(*given), function([x, w, k], out)(*given), rtol=1e-5)


def test_a_loop_over_numbers_stays_on_the_host():
    x = T.fvector()
    out, _ = scan(lambda e, h: T.tanh(h * e), x, T.constant(np.float32(1)))
    compared([x], out, [floats(9)], places=("costs",))


def test_a_mode_of_its_own_stays_on_the_host():
    x, w, h = T.fmatrix(), T.fmatrix(), T.fvector()
    out, _ = scan(lambda row, h: T.dot(h, w) + row, x, h, mode="FAST_RUN")
    values = floats(4, 3), floats(3, 3), floats(3)
    compared([x, w, h], out, values, places=("its step has a mode of its own",))


def test_without_rewrites_the_loop_stays_on_the_host():
    given, out, values = rnn()
    f = function(given, out, mode=Mode("cupy", lambda fgraph: None))
    assert where(f)[0].startswith("its step was compiled before")
    np.testing.assert_allclose(f(*values), function(given, out)(*values), rtol=1e-4, atol=1e-5)


# --- errors ---------------------------------------------------------------------------------------


def test_an_index_out_of_range_names_the_step_and_the_line():
    words, table, w = T.imatrix(), T.fmatrix(), T.fmatrix()
    start = T.zeros((2, 4), "float32")
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w)) + table[row], words, start)
    f = function([words, table, w], out, mode=Mode("cupy"))
    good = np.zeros((9, 2), "int32")
    bad = good.copy()
    bad[5, 1] = 77
    values = floats(11, 4), floats(4, 4)
    for _ in range(3):
        expected = f(good, *values)
        with pytest.raises(IndexError) as raised:
            f(bad, *values)
        text = str(raised.value) + "".join(raised.value.__notes__)
        assert "test_loops.py" in text and "step 5 of for{cpu,scan_fn}" in text
    np.testing.assert_array_equal(f(good, *values), expected)


@pytest.mark.parametrize("given", [
    {"steps": 12}, {"state": (2, 6)}, {"matrix": (6, 5)}, {"steps": -1},
])  # fmt: skip
def test_misfits_are_the_errors_of_the_host(given):
    x, w, h0, n = T.ftensor3(), T.fmatrix(), T.fmatrix(), T.lscalar()
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w) + row), x, h0, n_steps=n)
    values = [
        floats(9, 4, 6), floats(*given.get("matrix", (6, 6))), floats(*given.get("state", (4, 6))),
        given.get("steps", 9),
    ]  # fmt: skip
    with pytest.raises(Exception) as expected:
        function([x, w, h0, n], out)(*values)
    f = function([x, w, h0, n], out, mode=Mode("cupy"))
    assert where(f) == [""]
    with pytest.raises(type(expected.value)):
        f(*values)
    good = floats(9, 4, 6), floats(6, 6), floats(4, 6), 9
    assert f(*good).shape == (9, 4, 6)


def test_a_row_that_changes_its_shape():
    x, w, m = T.ftensor3(), T.fmatrix(), T.fmatrix()
    out, _ = scan(lambda row, h: T.dot(row, w) * h[0], x, m)
    f = function([x, w, m], out, mode=Mode("cupy"))
    assert where(f) == [""]
    with pytest.raises(ValueError, match=r"step 0 of .* computes a value of shape \(4, 3\)"):
        f(floats(2, 4, 3), floats(3, 3), floats(1, 3))


# --- profiles and DebugMode -----------------------------------------------------------------------


@emulated_only
def test_a_profile_has_a_row_of_the_loop_with_the_device_s_time(cupy):
    given, out, values = rnn()
    mode = ProfileMode("cupy", "fast_run")
    f = function(given, out[-1], mode=mode)
    expected = function(given, out[-1])(*values)
    for _ in range(3):
        np.testing.assert_allclose(f(*values), expected, rtol=1e-4, atol=1e-5)
    (told,) = mode.profile().functions
    (row,) = [a for a in told.applys if a.op.startswith("for{")]
    assert (row.device, row.count, row.on_host) == ("cuda0", 3, "") and row.total > 0


@emulated_only
def test_a_profile_has_rows_of_the_applys_of_a_step(cupy, capsys):
    """They are nested under the loop, whose time is theirs and that of the copies of rows."""
    given, out, values = rnn()
    gpu, cpu = (ProfileMode(linker, "fast_run") for linker in ("cupy", "c|py"))
    for mode in (gpu, cpu):
        f = function(given, [out[-1], *grad((out**2).sum(), given[1:2])], mode=mode)
        for _ in range(3):
            f(*values)
    (told,) = gpu.profile().functions
    around = [a for a in told.applys if a.op.startswith("for{")]
    assert len(around) == 2
    steps = 3 * len(values[0])
    for loop in around:
        rows = [a for a in told.applys if a.inside == loop.position]
        assert rows and {(a.device, a.count, a.graph) for a in rows} == {("cuda0", steps, 0)}
        # each event of the emulated device is a millisecond after the one before
        timed = [a for a in rows if "DimShuffle" not in a.op]
        assert {a.total for a in timed} == {steps * 1_000_000}
        # rows are copied before a step, behind it, and out of buffers behind the last
        assert loop.total == (2 * steps + 3) * 1_000_000
        assert loop.inner == len(timed) * steps * 1_000_000
        assert loop.count == 3 and loop.asked > 0
    assert sum(a.asked + a.waited for a in told.applys) <= told.call_ns
    cpu.print_diff_summary(gpu)
    text = capsys.readouterr().out
    assert "CPU and GPU\n" in text and "Tanh" in text


@emulated_only
def test_a_profile_of_a_loop_in_a_loop(cupy):
    x, w = T.ftensor3("x"), T.fmatrix("w")

    def inner(row, total, w):
        return T.tanh(T.dot(total, w)) + row

    def outer(rows, w):
        return scan(inner, rows, T.zeros_like(rows[0]), w)[0][-1]

    out, _ = scan(outer, x, None, w)
    mode = ProfileMode("cupy", "fast_run")
    f = function([x, w], out, mode=mode)
    values = floats(3, 4, 5), floats(5, 5)
    np.testing.assert_allclose(f(*values), function([x, w], out)(*values), rtol=1e-4, atol=1e-5)
    f(*values)
    (told,) = mode.profile().functions
    loops = [a for a in told.applys if a.op.startswith("for{")]
    for loop in loops:
        rows = [a for a in told.applys if a.inside == loop.position]
        assert rows and all(a.total >= 0 and a.count for a in rows)
        assert loop.inner == sum(a.total + a.inner for a in rows)
    assert sum(a.total for a in told.applys) > 0


@emulated_only
def test_a_profile_tells_why_a_loop_stays_on_the_host(cupy):
    x, w, h = T.fmatrix(), T.fmatrix(), T.fvector()
    out, _ = scan(lambda row, h: OnHost()(T.dot(h, w)) + row, x, h)
    mode = ProfileMode("cupy", "fast_run")
    function([x, w, h], out, mode=mode)(floats(4, 3), floats(3, 3), floats(3))
    (told,) = mode.profile().functions
    (row,) = [a for a in told.applys if a.op.startswith("for{")]
    assert row.on_host == "its step runs on the host: OnHost: OnHost has no GPU implementation"


@emulated_only
def test_the_vm_of_a_step_times_its_kernels(cupy):
    given, out, values = rnn()
    f = function(given, out, mode=Mode("cupy"))
    expected = f(*values)
    vm = loops(f)[0].tag.inside.fn
    vm.timing.start()
    np.testing.assert_array_equal(f(*values), expected)
    assert [times[0] for times in vm.timing.by_step()] == [len(values[0])] * len(vm.thunks)
    assert all(times[1] > 0 for times in vm.timing.by_step())


@emulated_only
def test_debugmode_tries_the_applys_of_a_step_on_the_device(cupy, monkeypatch):
    monkeypatch.setattr(legacy, "device", "cuda")
    given, out, values = rnn()
    f = function(given, out, mode=DebugMode())
    launches = emulated.STREAM.launches
    found = f(*(value[:2] if value.ndim == 3 else value for value in values))
    assert emulated.STREAM.launches > launches
    assert found.shape == (2, 4, 6)


# --- functions ------------------------------------------------------------------------------------


def test_copies_of_a_function_run_in_threads():
    given, out, values = rnn()
    f = function(given, out[-1], mode=Mode("cupy"))
    expected, found = f(*values), {}

    def work(k, g):
        found[k] = [g(*values)[0] for _ in range(4)]

    threads = [threading.Thread(target=work, args=(k, f.copy())) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    for results in found.values():
        for result in results:
            np.testing.assert_array_equal(result, expected)


def test_a_pickled_function_runs_on_the_device():
    given, out, values = rnn()
    f = function(given, out, mode=Mode("cupy"))
    expected = f(*values)
    g = pickle.loads(pickle.dumps(f))
    assert where(g) == [""]
    np.testing.assert_array_equal(g(*values), expected)


def test_a_loop_without_memory_leaves_the_function_usable(cupy):
    given, out, values = rnn()
    f = function(given, grad((out**2).sum(), given), mode=Mode("cupy"))
    expected = f(*values)
    f(*values)
    pool = cupy.get_default_memory_pool()
    long = floats(4000, 4, 6), *values[1:]
    pool.free_all_blocks()
    pool.set_limit(size=pool.used_bytes() + 200_000)
    try:
        with pytest.raises(MemoryError, match="is out of memory"):
            f(*long)
        graphs = [g for n in loops(f) for g in n.tag.inside.fn.capture_regions.values()]
        assert graphs and not any(g.captured for g in graphs)
    finally:
        pool.set_limit(size=0)
    for a, b in zip(f(*values), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_jacobians_and_second_derivatives():
    x, w = T.fvector(), T.fmatrix()
    y = T.tanh(T.dot(w, x))
    values = floats(5), floats(4, 5)
    compared([x, w], jacobian(y, x), *[values] * 3)
    compared([x, w], hessian((y**2).sum(), x), *[values] * 3)
    out, _ = scan(lambda row, h: T.tanh(T.dot(h, w.T) + row), T.outer(x, x)[:, :4], y)
    direction = grad((grad((out**2).sum(), x) ** 2).sum(), x)
    f = function([x, w], direction, mode=Mode("cupy"))
    assert set(where(f)) == {""}
    values = floats(4), floats(4, 4)
    for _ in range(3):
        np.testing.assert_allclose(f(*values), function([x, w], direction)(*values), rtol=1e-3)


def test_the_flag_device_is_enough(monkeypatch):
    monkeypatch.setattr(legacy, "device", "cuda")
    given, out, values = rnn()
    outputs = [out[-1], *grad((out**2).sum(), given)]
    f = function(given, outputs)
    assert where(f) == ["", ""]
    monkeypatch.setattr(legacy, "device", None)
    for a, b in zip(f(*values), function(given, outputs)(*values), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
