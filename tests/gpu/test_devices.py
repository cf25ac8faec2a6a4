"""Which device functions run on, and what is said where there is none."""

import gc
import subprocess
import sys
import warnings

import emulated
import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, OpWiseCLinker, get_mode
from opwise.command import doctor
from opwise.config import config
from opwise.errors import DeviceError
from opwise.gpu import legacy, linker
from opwise.gpu.linker import CupyLinker
from opwise.gpu.runtime import device


@pytest.fixture
def cupy(monkeypatch):
    return emulated.install(monkeypatch)


@pytest.fixture
def nothing(monkeypatch):
    """No CuPy can be imported."""
    emulated.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", None)
    linker._warn_once.cache_clear()


def compiled(mode=None):
    x = T.fmatrix("x")
    return opwise.function([x], T.exp(x) * 2, mode=mode)


VALUE = np.ones((2, 2), "float32")


def linker_of(f):
    return type(f.maker.linker)


@pytest.mark.parametrize(("name", "index"), [("cuda", 0), ("cuda0", 0), ("gpu", 0), ("gpu3", 3)])
def test_names(name, index):
    assert device.index_of(name) == index


def test_the_flag(cupy, monkeypatch):
    monkeypatch.setitem(vars(config), "device", "cuda0")
    f = compiled()
    assert linker_of(f) is CupyLinker
    np.testing.assert_allclose(f(VALUE), 2 * np.exp(VALUE), rtol=1e-6)
    for mode in ("FAST_COMPILE", "PROFILE_MODE", Mode("vm")):
        assert linker_of(compiled(mode)) is CupyLinker
    for mode in (Mode("py"), get_mode("FAST_RUN").excluding("gpu"), Mode("c")):
        assert linker_of(compiled(mode)) is not CupyLinker


def test_a_program_chooses(cupy, capsys):
    assert legacy.cuda_available and not legacy.cuda_enabled
    gc.collect()  # of other tests
    before, _ = legacy.theano_allocated()
    legacy.use("gpu0")
    assert legacy.cuda_enabled
    f = compiled()
    assert linker_of(f) is CupyLinker
    w = opwise.shared(VALUE)
    opwise.function([], updates=[(w, w + 1)])()
    current, peak = legacy.theano_allocated()
    assert before + VALUE.nbytes <= current <= peak
    assert legacy.mem_info() == (3 * 10**9, 4 * 10**9)
    assert "Using cuda0: an emulated device" not in capsys.readouterr().out


def test_old_names_leave_variables_as_they_are(cupy):
    x = T.fmatrix("x")
    assert legacy.gpu_from_host(x) is x is legacy.host_from_gpu(x)
    f = opwise.function(
        [x], opwise.Out(legacy.gpu_from_host(x * 2), borrow=True), mode=Mode("cupy")
    )
    assert isinstance(f(VALUE), emulated.ndarray)
    g = opwise.function([x], legacy.gpu_contiguous(x.T), mode=Mode("cupy"))
    np.testing.assert_array_equal(g(VALUE), VALUE.T)


# --- failures -------------------------------------------------------------------------------------


def test_without_cupy(nothing):
    with pytest.raises(DeviceError, match=r"pip install 'cupy-cuda13x\[ctk\]'"):
        compiled(Mode("cupy"))
    assert legacy.cuda_available is False and legacy.theano_allocated() == (0, 0)


def test_a_device_that_is_not_there(cupy):
    with pytest.raises(DeviceError, match="no device cuda7; existing devices: cuda0"):
        compiled(Mode(CupyLinker("cuda7")))
    with pytest.raises(DeviceError, match="device=opencl0:0: opwise runs on cpu, cuda"):
        compiled(Mode(CupyLinker("opencl0:0")))


def test_without_a_driver(cupy, monkeypatch):
    def fails():
        raise emulated.CUDARuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", fails)
    with pytest.raises(DeviceError, match="finds no GPU that it can use"):
        compiled(Mode("cupy"))


def test_the_cpu_takes_over_with_one_warning(nothing, monkeypatch):
    monkeypatch.setitem(vars(config), "device", "cuda")
    with pytest.warns(UserWarning, match="device=cuda cannot be used; functions run on the CPU"):
        f = compiled()
    assert linker_of(f) is OpWiseCLinker
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert linker_of(compiled()) is OpWiseCLinker


def test_force_device(nothing, monkeypatch):
    monkeypatch.setitem(vars(config), "device", "cuda")
    monkeypatch.setitem(vars(config), "force_device", True)
    with pytest.raises(DeviceError, match="cannot be imported"):
        compiled()


def test_use_without_a_device(nothing):
    with pytest.warns(UserWarning, match="cuda cannot be used; functions run on the CPU"):
        legacy.use()
    assert linker_of(compiled()) is OpWiseCLinker
    with pytest.raises(DeviceError):
        legacy.use("cuda", force=True)


def test_importing_opwise_imports_no_cupy():
    code = "import sys, opwise, theano, theano.sandbox.cuda; sys.exit('cupy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_doctor(cupy, monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: name)
    assert doctor.machine()["GPU"] == "an emulated device, 3.0 of 4.0 GB free"
