"""What the tests of kernels share: Applys, and their implementations on the simulated device."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from opwise import Constant
from opwise.gpu.kernels.kernel import Layout
from opwise.tensor import TensorType

# the modules beside this one, and the cases of other tests
_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(_TESTS / each) for each in ("gpu", "scalar", "optimizers/rules")]

from kernel_cases import made  # noqa: E402
from simulated import DEVICE, Simulated, computed, known  # noqa: E402


class SimulatedKernels:
    """Applys by name, whose kernels are compiled at once; wide: those for huge arrays too."""

    def __init__(self, nodes, wide=False, **options):
        self.nodes = nodes
        self.made = {name: made(node, **options) for name, node in nodes.items()}
        kernels = [k for i in self.made.values() for k in i.kernels]
        self.simulated = Simulated([k for k in kernels if wide or not k.wide])

    def given(self, name, values):
        """Return values for all inputs: those given, and constants."""
        rest = iter(values)
        return [
            np.asarray(v.data) if isinstance(v, Constant) else np.asarray(next(rest))
            for v in self.nodes[name].inputs
        ]

    def run(self, name, values, order=0, **options):
        """Return (outputs, the error flag) of an Apply."""
        values = self.given(name, values)
        dtypes = [v.type.dtype for v in self.nodes[name].outputs]
        return computed(self.simulated, self.made[name], values, dtypes, order, **options)

    def plan(self, name, values):
        """Return the names of the kernels that are launched, without their hashes."""
        made = self.made[name]
        values = self.given(name, values)
        given = known(made, values)
        sizes = [v.type.numpy_dtype.itemsize for v in self.nodes[name].outputs]
        outputs = [Layout.contiguous(s, n) for s, n in zip(made.shapes(given), sizes, strict=True)]
        launches = made.plan(given, outputs, DEVICE).launches
        return [launch.kernel.name.removeprefix("ow_").rsplit("_", 1)[0] for launch in launches]

    def expected(self, name, values):
        """Return what ``perform`` gives."""
        node = self.nodes[name]
        storage = [[None] for _ in node.outputs]
        values = self.given(name, values)
        given = [
            np.array(v) if isinstance(var.type, TensorType) else v[()]
            for v, var in zip(values, node.inputs, strict=True)
        ]
        node.op.perform(node, given, storage)
        return [np.asarray(cell[0]) for cell in storage]


@pytest.fixture(scope="session")
def simulate():
    return SimulatedKernels


@pytest.fixture
def layouts():
    """``layouts(arrays)``: the arrays as they are, and with other strides and addresses."""

    def reversed_(x):
        return x[tuple(slice(None, None, -1) for _ in x.shape)].copy()[
            tuple(slice(None, None, -1) for _ in x.shape)
        ]

    def sparse(x):
        wide = np.full([2 * n for n in x.shape], 77).astype(x.dtype)
        part = wide[tuple(slice(1, None, 2) for _ in x.shape)]
        part[...] = x
        return part

    def moved(x):
        """At an address that vectors are not loaded from."""
        room = np.empty(x.size + 1, x.dtype)
        room[1:] = x.ravel()
        return room[1:].reshape(x.shape)

    def by_columns(x):
        return np.asfortranarray(x)

    def choices(arrays):
        yield "contiguous", arrays
        for change in (by_columns, sparse, reversed_, moved):
            yield change.__name__, [change(x) if x.ndim else x for x in arrays]
        if len(arrays) > 1 and arrays[0].ndim:
            yield "mixed", [by_columns(arrays[0]), *arrays[1:]]

    return choices


def _missing():
    """Return why tests cannot run on a device here, or None."""
    from opwise.errors import DeviceError
    from opwise.gpu.runtime import device

    try:
        device.device()
    except DeviceError as error:
        return str(error)
    return None


@pytest.fixture(params=["emulated", pytest.param("device", marks=pytest.mark.gpu)])
def cupy(request, monkeypatch):
    """CuPy: its emulator on the CPU, and where there is a device the real one."""
    if request.param == "emulated":
        import emulated

        return emulated.install(monkeypatch)
    reason = _missing()
    if reason is not None:
        pytest.skip(reason)
    return importlib.import_module("cupy")
