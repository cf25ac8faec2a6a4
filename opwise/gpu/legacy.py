"""What old programs take from ``theano.sandbox.cuda``: whether there is a GPU, its memory, copies.

A variable is no other one on the GPU here, so that what moved variables returns them as they are.
"""

from __future__ import annotations

import warnings

from opwise.errors import DeviceError


def theano_allocated():
    """Return (bytes in use on the device now, the most that were); zeros where none is in use."""
    from opwise.gpu import device

    pairs = [one.allocated() for one in device.opened()]
    return tuple(map(sum, zip(*pairs, strict=True))) if pairs else (0, 0)


def mem_info():
    """Return (bytes that are free on the device, all that it has); DeviceError without one."""
    return _device().memory_info()


def use(device=None, force=False, **kwargs):
    """Have functions that are compiled from now on run on a device: ``cuda``, ``gpu0``, ...

    force: raise DeviceError if it cannot be used; otherwise the CPU stays in use, with a warning.
    Further arguments are accepted for old programs.
    """
    from opwise.gpu import device as devices
    from opwise.graph import target

    name = device or devices.default_name()
    try:
        devices.device(devices.index_of(name))
    except DeviceError as error:
        if force:
            raise
        warnings.warn(f"{name} cannot be used; functions run on the CPU. {error}", stacklevel=2)
        return
    target.choose(name)


def _device():
    from opwise.gpu import device

    return device.device(device.index_of(device.default_name()))


def gpu_from_host(x):
    """Return the variable; whether its value lies on the device is decided when compiling."""
    from opwise.tensor.variable import as_tensor_variable

    return as_tensor_variable(x)


host_from_gpu = as_cuda_ndarray_variable = as_gpuarray_variable = gpu_from_host


def gpu_contiguous(x):
    """Return a variable whose values lie in C order."""
    from opwise.tensor.extra_ops import cpu_contiguous

    return cpu_contiguous(x)


def __getattr__(name):
    """Look for a GPU when somebody asks whether there is one, not at import."""
    if name in ("cuda_available", "pygpu_activated"):
        try:
            _device()
        except DeviceError:
            return False
        return True
    if name == "cuda_enabled":
        from opwise.gpu import device

        return device.asked_for() != "cpu" and __getattr__("cuda_available")
    raise AttributeError(f"opwise has no theano.sandbox.cuda.{name}")
