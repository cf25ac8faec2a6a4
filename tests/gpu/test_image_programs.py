"""Programs that convolve and pool, on an emulated device: as a whole, captured, profiled."""

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, ProfileMode, grad
from opwise.gpu.lowering import SHAPE_OPS
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.loops import scan
from opwise.nn import conv2d, pool_2d
from opwise.scalar import dtypes
from opwise.tensor.extra_ops import Unique
from opwise.tensor.nnet.abstract_conv import BaseAbstractConv
from opwise.tensor.signal.pool import Pool, PoolGrad

RATE = np.float32(0.1)
BATCH, LENGTH = 5, 12
RNG = np.random.RandomState(9)
IMAGES = RNG.randn(BATCH, 1, LENGTH, LENGTH).astype("float32")
LABELS = np.arange(BATCH, dtype="int32") % 3


@pytest.fixture(autouse=True)
def there(cupy):
    """Run every test on a device, perhaps an emulated one."""


emulated_only = pytest.mark.parametrize("cupy", ["emulated"], indirect=True)


def lenet(mode):
    """Return (function, parameters): a training step of two convolutions and two layers."""
    random = np.random.RandomState(0)

    def shared(name, *shape):
        return opwise.shared((random.randn(*shape) * 0.3).astype("float32"), name)

    x, labels = T.ftensor4("x"), T.ivector("labels")
    w, b = [shared("w0", 4, 1, 3, 3), shared("w1", 6, 4, 2, 2)], [shared("b0", 4), shared("b1", 6)]
    v, c = [shared("w2", 24, 8), shared("w3", 8, 3)], [shared("b2", 8), shared("b3", 3)]
    seen = x
    for kernels, bias in zip(w, b, strict=True):
        seen = pool_2d(conv2d(seen, kernels), (2, 2), ignore_border=True)
        seen = T.tanh(seen + bias.dimshuffle("x", 0, "x", "x"))
    hidden = T.tanh(T.dot(seen.flatten(2), v[0]) + c[0])
    p = T.nnet.softmax(T.dot(hidden, v[1]) + c[1])
    cost = -T.mean(T.log(p)[T.arange(labels.shape[0]), labels])
    parameters = [*w, *b, *v, *c]
    updates = [
        (s, s - RATE * g) for s, g in zip(parameters, grad(cost, parameters), strict=True)
    ]  # fmt: skip
    f = opwise.function([x, labels], cost, updates=updates, mode=mode, name="train")
    return f, parameters


def on_host(f):
    """Return the Applys that a function runs on the host, but for those on shapes."""
    placement = f.maker.fgraph.find_feature(Placement)
    return [
        node for node in f.linked.order
        if node not in placement.lowered
        and not isinstance(node.op, (*SHAPE_OPS, GpuFromHost, HostFromGpu))
        and not all(v.type.dtype in dtypes.INTEGERS or v.type.ndim == 0 for v in node.outputs)
    ]  # fmt: skip


@emulated_only
def test_a_network_of_images_trains_on_the_device(cupy):
    f, parameters = lenet(Mode("cupy"))
    assert not on_host(f)
    copies = [n for n in f.linked.order if isinstance(n.op, GpuFromHost) and n.inputs[0].type.ndim]
    assert sorted(str(n.inputs[0]) for n in copies) == ["labels", "x"]
    there = f.maker.fgraph.find_feature(Placement).lowered
    found = [n for n in there if isinstance(n.op, BaseAbstractConv | Pool | PoolGrad)]
    # each of two layers: a convolution, a pooling, its gradient, and the gradient by kernels; and
    # the gradient of the second one by its images
    assert len(found) == 9
    g, others = lenet(None)
    for _ in range(3):
        np.testing.assert_allclose(f(IMAGES, LABELS), g(IMAGES, LABELS), rtol=1e-5)
    for ours, theirs in zip(parameters, others, strict=True):
        np.testing.assert_allclose(ours.get_value(), theirs.get_value(), rtol=1e-4, atol=1e-6)
    # a graph up to what may report an error, a label out of range, and one behind it
    launched = emulated._Graph.launched
    alone = emulated.STREAM.launches
    f(IMAGES, LABELS)
    assert emulated._Graph.launched == launched + 2
    assert emulated.STREAM.launches == alone


@emulated_only
def test_profiles_and_their_difference(cupy, capsys):
    cpu, gpu = ProfileMode("c|py", "fast_run"), ProfileMode("cupy", "fast_run")
    # with elementwise work in it, as the device has none, it would be another Op
    cpu = cpu.excluding("conv_elemwise_fusion")
    for mode in (cpu, gpu):
        f, _ = lenet(mode)
        for _ in range(2):
            f(IMAGES, LABELS)
    profile = gpu.profile()
    found = [a for a in profile.applys if "AbstractConv" in a.op]
    assert len(found) == 5
    for a in found:
        assert a.device == "cuda0" and a.total > 0 and a.flops
    assert all(a.device for a in profile.applys if "Pool" in a.op)
    cpu.print_diff_summary(gpu)
    text = capsys.readouterr().out
    assert "CPU and GPU\n" in text and "AbstractConv2d" in text
    alone = [line for line in text.splitlines() if "only in" in line and "Conv" in line]
    assert not alone, "a convolution is one row, wherever it runs"


def test_a_convolution_pays_for_its_transfers():
    """Between Applys that only the host runs, it goes to the device, as products do."""
    x, w = T.ftensor4("x"), T.ftensor4("w")
    before = Unique()(x.flatten()).reshape((2, 1, 4, 4))
    f = opwise.function([x, w], Unique()(conv2d(before, w).flatten()), mode=Mode("cupy"))
    there = f.maker.fgraph.find_feature(Placement).lowered
    assert [type(n.op).__name__ for n in there if isinstance(n.op, BaseAbstractConv)] == [
        "AbstractConv2d"
    ]
    values = np.arange(32, dtype="float32").reshape(2, 1, 4, 4), np.ones((1, 1, 2, 2), "float32")
    np.testing.assert_allclose(f(*values), np.unique(f_on_host(x, w, before)(*values)), rtol=1e-6)


def f_on_host(x, w, before):
    return opwise.function([x, w], conv2d(before, w))


def recurrent():
    """Return (inputs, state after all steps): images of a film change a state of images."""
    x, w, u, h = T.ftensor4("x"), T.ftensor4("w"), T.ftensor4("u"), T.ftensor4("h")
    x = T.TensorType("float32", (False,) * 5)("x")
    states, _ = scan(
        lambda image, state: T.tanh(
            conv2d(image, w, border_mode="half") + conv2d(state, u, border_mode="half")
        ),
        x, h,
    )  # fmt: skip
    return [x, w, u, h], states[-1]


def test_a_loop_of_convolutions(cupy):
    given, state = recurrent()
    cost = (pool_2d(state, (2, 2), ignore_border=True) ** 2).sum()
    outputs = [cost, *grad(cost, given[1:3])]
    shapes = (4, 2, 1, 6, 5), (3, 1, 3, 3), (3, 3, 3, 3), (2, 3, 6, 5)
    values = [RNG.randn(*shape).astype("float32") / 2 for shape in shapes]
    f, g = (opwise.function(given, outputs, mode=mode) for mode in (Mode("cupy"), None))
    assert not on_host(f)
    for _ in range(3):
        for ours, theirs in zip(f(*values), g(*values), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
