"""NVRTC through ctypes, from the wheel nvidia-cuda-nvrtc: CUDA is compiled where no GPU is."""

import ctypes
import importlib.util
import os
from functools import cache
from pathlib import Path

import pytest

#: set to have a compiler that is missing fail the tests instead of skipping them
REQUIRED = os.environ.get("OPWISE_TEST_NVRTC") == "required"


@cache
def library():
    """Return the library, or None where the wheel is not installed."""
    spec = importlib.util.find_spec("nvidia")
    for folder in [] if spec is None else spec.submodule_search_locations:
        paths = Path(folder).glob("*/lib/libnvrtc.so.*")
        for path in sorted(paths, key=lambda path: int(path.suffix[1:]), reverse=True):
            found = ctypes.CDLL(str(path))
            found.nvrtcGetErrorString.restype = ctypes.c_char_p
            return found
    return None


def needed():
    """Skip the test, or fail it where that was asked for, if there is no NVRTC."""
    if library() is None:
        (pytest.fail if REQUIRED else pytest.skip)(
            "NVRTC is missing: pip install -e '.[nvrtc]' brings it"
        )


@cache
def architectures():
    """Return the numbers of the architectures that this NVRTC compiles for, as 90 for sm_90."""
    count = ctypes.c_int()
    _check(library().nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    _check(library().nvrtcGetSupportedArchs(numbers))
    return tuple(numbers)


def compile_text(text, architecture, options=()):
    """Return (log, machine code) of a CUDA text; AssertionError with the log where it fails."""
    lib, program = library(), ctypes.c_void_p()
    _check(
        lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None)
    )
    try:
        flags = [f"--gpu-architecture=sm_{architecture}", *options]
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = lib.nvrtcCompileProgram(program, len(flags), given)
        log = _bytes(program, "ProgramLog").rstrip(b"\0").decode()
        assert status == 0, f"{lib.nvrtcGetErrorString(status).decode()}\n{log}"
        return log, _bytes(program, "CUBIN")
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def ptx(text, architecture, options=()):
    """Return the PTX of a CUDA text for a virtual architecture."""
    lib, program = library(), ctypes.c_void_p()
    _check(
        lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None)
    )
    try:
        flags = [f"--gpu-architecture=compute_{architecture}", *options]
        given = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        status = lib.nvrtcCompileProgram(program, len(flags), given)
        assert status == 0, _bytes(program, "ProgramLog").decode()
        return _bytes(program, "PTX").rstrip(b"\0").decode()
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def _bytes(program, what):
    size = ctypes.c_size_t()
    _check(getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(library(), f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(status):
    assert status == 0, library().nvrtcGetErrorString(status).decode()
