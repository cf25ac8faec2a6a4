"""Kernels on the CPU: the same texts as C++, run by the device that ``device.hpp`` simulates."""

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from opwise.gpu.kernels.kernel import DeviceLimits, Layout, arguments, module_text, on_host

_FOLDER = Path(__file__).parent
#: -fno-strict-aliasing: vectors are loaded from arrays of numbers
_FLAGS = ["-O0", "-std=c++17", "-shared", "-fPIC", "-fwrapv", "-ffp-contract=off",
          "-fno-strict-aliasing", "-fno-math-errno", "-w"]  # fmt: skip
#: bytes around each array that a kernel may not touch
_FENCE = 64
_FENCED = 0xA5


class Simulated:
    """Kernels that run on the CPU. Compiled ones are kept until the tests end."""

    def __init__(self, kernels):
        kernels = list(dict.fromkeys(kernels))
        if shutil.which("g++") is None:
            pytest.skip("there is no g++")
        callers = "".join(map(_caller, kernels))
        self._library = _compiled(f'{module_text(kernels)}\nextern "C" {{\n{callers}}}\n')
        self._kernels = set(kernels)

    def run(self, plan, inputs, outputs, order=0):
        """Run a plan over numpy arrays; return the error flag.

        order: 1 runs threads and blocks from the last to the first.
        """
        scratch = [np.full(n, 0x55, np.uint8) for n in plan.scratch]
        wrong = np.zeros(1, np.uint32)
        arrays = {"in": inputs, "out": outputs, "scratch": scratch, "error_flag": [wrong]}
        for launch in plan.launches:
            self._launch(launch, arrays, order)
        return int(wrong[0])

    def touched(self):
        """Return (sectors, accesses of warps) of ``watched`` kernels since the last call.

        A sector is counted for each access that touches it.
        """
        count = self._library.sectors_touched
        count.restype, accesses = ctypes.c_ulonglong, ctypes.c_ulonglong()
        return count(ctypes.byref(accesses)), accesses.value

    def _launch(self, launch, arrays, order):
        kernel = launch.kernel
        assert kernel in self._kernels, f"{kernel.name} was not announced"
        assert launch.shared <= 232448 and launch.block[0] * launch.block[1] <= 1024
        assert 0 < launch.grid < 2**31
        values = arguments(launch, lambda a: arrays[a.kind][a.position].ctypes.data + a.offset)
        places = [np.array(value) for value in values]
        pointers = (ctypes.c_void_p * len(places))(*(p.ctypes.data for p in places))
        barriers = any(
            "_sync(" in text or "__syncthreads(" in text for text in (kernel.text, *kernel.needs)
        )
        call = getattr(self._library, f"call_{kernel.name}")
        stuck = self._library.simulate(
            call, pointers, launch.grid, *launch.block, order, int(barriers)
        )
        assert not stuck, f"threads of {kernel.name} wait for each other"


def watched(kernel):
    """Return a kernel that notes what it touches of its arrays; it must index them by []."""
    name, text, parameters = f"{kernel.name}_watched", kernel.text, []
    text = text.replace(kernel.name, name)
    for type_, own in kernel.parameters:
        if type_.endswith(" *"):
            watching = f"Watched<{type_[:-2]}>"
            text = text.replace(f"{type_}{own}", f"{watching} {own}", 1)
            type_ = watching
        parameters.append((type_, own))
    return replace(kernel, name=name, text=text, parameters=tuple(parameters))


def _caller(kernel):
    args = [f"*({type_} *)a[{k}]" for k, (type_, _) in enumerate(kernel.parameters)]
    return f"void call_{kernel.name}(void **a) {{ {kernel.name}({', '.join(args)}); }}\n"


_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)


@cache
def _functions():
    from scipy import special

    named = (special.erfcx, special.erfinv, special.erfcinv, special.i0, special.i1)
    return [_SIGNATURE(lambda x, f=f: float(f(x))) for f in named]


@cache
def _compiled(text):
    """Return the library of a text; processes that test beside each other share it."""
    whole = f'#include "{_FOLDER / "device.hpp"}"\n{text}'
    key = hashlib.blake2b(
        whole.encode() + (_FOLDER / "device.hpp").read_bytes(), digest_size=12
    ).hexdigest()
    folder = Path(os.environ["OPWISE_TEST_CACHE"]) / "simulated"
    folder.mkdir(exist_ok=True)
    library = folder / f"{key}.so"
    with open(folder / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # others wait, and find what this one has made
        if not library.exists():
            _compile(whole, folder, library)
    loaded = ctypes.CDLL(str(library))
    functions = (ctypes.c_void_p * 5).in_dll(loaded, "sim_functions")
    for k, function in enumerate(_functions()):
        functions[k] = ctypes.cast(function, ctypes.c_void_p)
    return loaded


def _compile(text, folder, library):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        source, made = Path(own, "kernels.cpp"), Path(own, "kernels.so")
        source.write_text(text)
        command = ["g++", *_FLAGS, str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:4000]
        made.rename(library)


# --- arrays -------------------------------------------------------------------------------------


class Fenced:
    """New memory with bytes around it that must stay as they are; ``array`` is filled with junk."""

    def __init__(self, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        whole = np.full(size + 3 * _FENCE, _FENCED, np.uint8)
        start = _FENCE + -(whole.ctypes.data + _FENCE) % _FENCE
        self._before, self._after = whole[:start], whole[start + size :]
        self.array = whole[start : start + size].view(dtype).reshape(shape)

    def check(self):
        assert (self._before == _FENCED).all() and (self._after == _FENCED).all(), (
            "a kernel wrote outside of its output"
        )


DEVICE = DeviceLimits(processors=4)


def known(implementation, inputs):
    """Return what plans know of inputs: what is on the host as it is, of others their layouts."""
    return [
        on_host(x[()]) if i in implementation.host else Layout.of(x) for i, x in enumerate(inputs)
    ]


def computed(simulated, implementation, inputs, dtypes, order=0, device=DEVICE):
    """Return (the outputs of an Implementation for numpy arrays, the error flag)."""
    given = known(implementation, inputs)
    shapes = implementation.shapes(given)
    fenced = [Fenced(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    outputs = [f.array for f in fenced]
    for k, i in implementation.copied.items():
        outputs[k][...] = inputs[i]
    plan = implementation.plan(given, list(map(Layout.of, outputs)), device)
    wrong = simulated.run(plan, inputs, outputs, order)
    for f in fenced:
        f.check()
    return outputs, wrong
