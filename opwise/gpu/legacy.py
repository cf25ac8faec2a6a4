"""The names of ``theano.sandbox.cuda``: whether there is a GPU, its memory, and copies.

opwise decides when compiling which values lie on the GPU. So the functions that move a variable
there, or back, return the variable itself.
"""

from __future__ import annotations

import warnings
from typing import Any

from opwise.errors import DeviceError


def theano_allocated() -> tuple[int, int]:
    """Return (bytes in use on all devices, the most that were in use at once)."""
    from opwise.gpu.runtime import device

    pairs = [one.allocated() for one in device.opened()]
    return sum(now for now, _ in pairs), sum(most for _, most in pairs)


def mem_info() -> tuple[int, int]:
    """Return (free bytes of the device, all bytes that it has); raise DeviceError without one."""
    return _device().memory_info()


def use(device: str | None = None, force: bool = False, **kwargs: Any) -> None:
    """Run functions that are compiled from now on on a device: ``cuda``, ``gpu0``, ...

    force: raise DeviceError if it cannot be used; otherwise warn, and keep the CPU. Further
    arguments are accepted for old programs.
    """
    from opwise.gpu.runtime import device as devices
    from opwise.graph.legacystate import legacy

    name = device or devices.default_name()
    try:
        devices.device(devices.index_of(name))
    except DeviceError as error:
        if force:
            raise
        warnings.warn(f"{name} cannot be used; functions run on the CPU. {error}", stacklevel=2)
        return
    legacy.device = name


def _device() -> Any:
    from opwise.gpu.runtime import device

    return device.device(device.index_of(device.default_name()))


def gpu_from_host(x: Any) -> Any:
    """Return the variable itself."""
    from opwise.tensor.variable import as_tensor_variable

    return as_tensor_variable(x)


host_from_gpu = as_cuda_ndarray_variable = as_gpuarray_variable = gpu_from_host


def gpu_contiguous(x: Any) -> Any:
    """Return a variable whose values are in C order."""
    from opwise.tensor.extra_ops import cpu_contiguous

    return cpu_contiguous(x)


def dnn_available(context_name: Any = None) -> bool:
    """Return False: opwise has no Ops of cuDNN."""
    return False


dnn_present = dnn_available
dnn_available.msg = dnn_present.msg = "opwise has no Ops of cuDNN"  # type: ignore[attr-defined]


def __getattr__(name: str) -> bool:
    """Look for a GPU when a program asks whether there is one, not at import."""
    if name in ("cuda_available", "pygpu_activated"):
        try:
            _device()
        except DeviceError:
            return False
        return True
    if name == "cuda_enabled":
        from opwise.gpu.runtime import device

        return device.requested_name() != "cpu" and __getattr__("cuda_available")
    raise AttributeError(f"opwise has no theano.sandbox.cuda.{name}")
