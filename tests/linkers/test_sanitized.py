"""scripts/sanitize sees what it is there for: faults planted in kernels, loops, memory are caught.

Each fault is in a process of its own, which a sanitizer must end with its report.
"""

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.c,
    pytest.mark.skipif(
        os.environ.get("OPWISE_SANITIZED") != "address",
        reason="this build has no sanitizers: scripts/sanitize makes one that has",
    ),
]

#: what every process begins with: ``call(text, *args)`` runs the function of a C text
START = """
import ctypes
import numpy as np
import opwise
import opwise.tensor as T
from opwise.linkers import cbuild, opwise_c

def call(text, *args):
    library, _ = cbuild.load(text)
    ctypes.CFUNCTYPE(None, *map(type, args))(library.symbol("broken"))(*args)

pointer = lambda a: ctypes.c_void_p(a.ctypes.data)
number = ctypes.c_longlong
"""
FILL = "void broken(double *x, long long n) { for (long long i = 0; i < n; i++) x[i] = 1; }\n"
FAULTS = {
    "a generated kernel writes beyond the end": (
        f"x = np.zeros(10); call({FILL!r}, pointer(x), number(11))",
        "heap-buffer-overflow",
    ),
    "a generated kernel shifts too far": (
        "call('int ow_s; void broken(int n) { ow_s = 1 << n; }\\n', ctypes.c_int(40))",
        "shift exponent 40 is too large",
    ),
    "a generated kernel reads from an odd address": (
        "x = np.zeros(4); odd = ctypes.c_void_p(x.ctypes.data + 1)\n"
        "call('double ow_s; void broken(double *x) { ow_s = *x; }\\n', odd)",
        "misaligned address",
    ),
    "a built-in loop reads beyond the end": (
        "loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, number)(opwise_c.LOOPS['exp_f64'])\n"
        "x, z = np.zeros(1000), np.zeros(2000)\n"
        "loop(pointer(z), (ctypes.c_void_p * 1)(x.ctypes.data), number(1001))",
        "heap-buffer-overflow",
    ),
    "a built-in loop reads from an odd address": (
        "loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, number)(opwise_c.LOOPS['neg_f64'])\n"
        "x, z = np.zeros(1000), np.zeros(1000)\n"
        "loop(pointer(z), (ctypes.c_void_p * 1)(x.ctypes.data + 1), number(8))",
        "misaligned address",
    ),
    "a small result ends where it ends": (
        f"x = T.dvector(); z = opwise.function([x], x + 1)(np.zeros(3))\n"
        f"call({FILL!r}, pointer(z), number(4))",
        "AddressSanitizer",
    ),
    "a large result ends where it ends": (
        f"x = T.dvector(); z = opwise.function([x], x + 1)(np.zeros(9001))\n"
        f"call({FILL!r}, pointer(z), number(9002))",
        "AddressSanitizer",
    ),
    "memory that is kept for later is nobody's": (
        f"x = T.dvector(); z = opwise.function([x], x + 1)(np.zeros(9001))\n"
        f"where = pointer(z); del z\n"
        f"assert opwise_c.kept_blocks()\n"
        f"call({FILL!r}, where, number(1))",
        "use-after-poison",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault, tmp_path):
    code, report = FAULTS[fault]
    env = dict(os.environ)
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):  # not among the reports that fail the script
        env[name] = ":".join(o for o in env[name].split(":") if not o.startswith("log_path"))
    done = subprocess.run(
        [sys.executable, "-c", START + code + "\nprint('survived')"],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "survived" not in done.stdout, done.stdout + done.stderr
    assert report in done.stderr
