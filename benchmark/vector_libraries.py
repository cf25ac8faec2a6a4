"""Functions of SLEEF and of glibc's libmvec on whole arrays, built here with the system's compiler.

One shared library per peer and dtype: a loop for each function over the library's widest vectors
that this processor has. The loops take numbers that fill whole vectors.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.call_cost import cpuinfo

#: of numpy's names, those that C spells otherwise
IN_C = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "arctan2": "atan2", "power": "pow", "gamma": "tgamma", "gammaln": "lgamma",
    "remainder": "fmod",
}  # fmt: skip
#: the names of what C's libraries compute; fmod has the cost, not the sign, of numpy's remainder
NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "arcsin",
    "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "arctan2", "power",
    "erf", "erfc", "gamma", "gammaln", "remainder",
)  # fmt: skip
OF_TWO = ("arctan2", "power", "remainder")


@dataclass(frozen=True)
class Vectors:
    """Vectors of one width: as SLEEF, libmvec and the compiler call them."""

    sleef: str
    libmvec: str
    option: str
    bits: int

    def type(self, dtype: str) -> str:
        return f"__m{self.bits}{'' if dtype == 'float32' else 'd'}"

    def intrinsic(self, operation: str, dtype: str) -> str:
        suffix = "ps" if dtype == "float32" else "pd"
        return f"_mm{self.bits}_{operation}u_{suffix}"


WIDTHS = {
    "avx512f": Vectors("avx512f", "e", "-mavx512f", 512),
    "avx2": Vectors("avx2", "d", "-mavx2", 256),
}


def widest() -> Vectors | None:
    """Return the widest vectors that this processor and these libraries have; None without any."""
    if platform.machine() != "x86_64":
        return None
    flags = cpuinfo("flags").split()
    return next((vectors for name, vectors in WIDTHS.items() if name in flags), None)


def _symbol(library: str, name: str, dtype: str, vectors: Vectors) -> list[str]:
    """Return the symbols that the function may have, the preferred one first."""
    size = 32 if dtype == "float32" else 64
    lanes = vectors.bits // size
    c_name = IN_C.get(name, name) + ("f" if size == 32 else "")
    if library == "libmvec":
        operands = "v" * (2 if name in OF_TWO else 1)
        return [f"_ZGV{vectors.libmvec}N{lanes}{operands}_{c_name}"]
    stem = c_name if size == 32 else f"{c_name}d"
    return [f"Sleef_{stem}{lanes}_{kind}{vectors.sleef}" for kind in ("u10", "u15", "u05", "")]


def _loop(name: str, symbol: str, dtype: str, vectors: Vectors) -> str:
    """Return the C function that applies a vector function to arrays."""
    number, vector = "float" if dtype == "float32" else "double", vectors.type(dtype)
    load, store = vectors.intrinsic("load", dtype), vectors.intrinsic("store", dtype)
    lanes = vectors.bits // (32 if dtype == "float32" else 64)
    operands = ("x", "y") if name in OF_TWO else ("x",)
    return (
        f"{vector} {symbol}({', '.join([vector] * len(operands))});\n"
        f"void loop_{name}(long n, {', '.join(f'const {number} *{each}' for each in operands)},"
        f" {number} *out) {{\n"
        f"    for (long i = 0; i < n; i += {lanes})\n"
        f"        {store}(out + i, {symbol}({', '.join(f'{load}({o} + i)' for o in operands)}));\n"
        "}\n"
    )


@functools.cache
def _built(library: str, dtype: str) -> ctypes.CDLL | None:
    """Return the loops over a library's functions; None where it cannot be had."""
    found, vectors, compiler = _path(library), widest(), shutil.which("cc")
    if found is None or vectors is None or compiler is None:
        return None
    exported = ctypes.CDLL(found)
    text = "#include <immintrin.h>\n"
    for name in NAMES:
        symbols = _symbol(library, name, dtype, vectors)
        there = next((symbol for symbol in symbols if hasattr(exported, symbol)), None)
        if there is not None:
            text += _loop(name, there, dtype, vectors)
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder) / "loops.c", Path(folder) / "loops.so"
        source.write_text(text)
        command = [compiler, "-O2", vectors.option, "-shared", "-fPIC", source, found, "-o", built]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(built))


def _path(library: str) -> str | None:
    """Return the file of a library, None where there is none."""
    for name in {"sleef": ("libsleef.so.3", "libsleef.so"), "libmvec": ("libmvec.so.1",)}[library]:
        for folder in ("/lib", "/usr/lib", "/usr/local/lib"):
            for place in (folder, f"{folder}/x86_64-linux-gnu", f"{folder}64"):
                if (path := Path(place) / name).exists():
                    return str(path)
    return None


def call(library: str, name: str, arrays: list[Any]) -> Callable[[], Any] | None:
    """Return what applies a library's function to arrays of whole vectors, into one result."""
    import numpy as np

    dtype = arrays[0].dtype.name
    loops = _built(library, dtype) if dtype in ("float32", "float64") else None
    function = getattr(loops, f"loop_{name}", None) if loops else None
    if function is None:
        return None
    out = np.empty_like(arrays[0])
    function.restype = None
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
    size = ctypes.c_long(out.size)

    def run() -> Any:
        function(size, *pointers)
        return out

    return run
