"""BLAS is taken from scipy only where its functions have the signature that opwise calls."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Mode, function
from opwise.linkers import opwise_c

_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_NAMES = []  # a capsule does not copy its name


def capsule(name):
    _NAMES.append(name.encode())
    return _new(ctypes.cast(ctypes.c_char_p(b"x"), ctypes.c_void_p), _NAMES[-1], None)


def test_scipy_is_accepted():
    opwise_c.load_blas()
    x = T.dmatrix("x")
    f = function([x], T.dot(x, x), mode=Mode("c|py", "fast_compile"))
    value = np.random.rand(500, 500)
    np.testing.assert_allclose(f(value), value @ value)


def test_other_integers_are_refused():
    expected = "void (char *, int *)"
    for other in ("void (char *, npy_int64 *)", "void (char *, long *)", ""):
        with pytest.raises(ImportError, match="uses other integers for BLAS"):
            opwise_c.set_blas("dgemm", capsule(other), [expected])


def test_an_unknown_function_is_refused():
    with pytest.raises(ValueError, match="does not use the BLAS function dnothing"):
        opwise_c.set_blas("dnothing", capsule("void ()"), ["void ()"])


def run_python(program):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True,
        cwd=Path(opwise.__file__).parents[1], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


PRODUCT = """
import sys
import numpy as np, opwise, opwise.tensor as T
from opwise.linkers import blasload, opwise_c
from opwise.modes.mode import Mode
opwise_c.use_vectors("base")  # kernels for wider vectors do without BLAS
{before}
x = T.dmatrix()
f = opwise.function([x], T.dot(x, x), mode=Mode("c|py", "fast_compile"))
assert f.linked.in_c == (True,)
f(np.ones((3, 3)))
assert "scipy.linalg.cython_blas" not in sys.modules
{after}
"""


def test_wide_vectors_do_without():
    if not opwise_c.needs_blas():
        large = PRODUCT.replace('opwise_c.use_vectors("base")', "pass").replace(
            "(3, 3)", "(500, 500)"
        )
        run_python(large.format(before="", after=""))


def test_the_kernels_are_those_for_this_processor():
    assert opwise_c.VECTORS == opwise_c.PROCESSOR_VECTORS


def test_unknown_vectors_are_refused():
    with pytest.raises(ValueError, match="there are no kernels for 'mmx' here"):
        opwise_c.use_vectors("mmx")


def test_small_products_do_without():
    """scipy is opened only when a product is large enough, and then not all of scipy.linalg."""
    run_python(
        PRODUCT.format(
            before="",
            after="np.testing.assert_allclose(f(np.ones((500, 500))), 500)\n"
            "assert 'scipy.linalg' not in sys.modules",
        )
    )


def test_a_failure_to_load_is_reported_and_can_be_tried_again():
    after = """
for _ in range(2):
    try:
        f(np.ones((500, 500)))
    except ValueError as e:
        assert "no BLAS here" in str(e) and "Dot22" in str(e), e
    else:
        raise AssertionError
np.testing.assert_allclose(f(np.ones((3, 3))), 3)
"""
    before = "def fail(): raise ImportError('no BLAS here')\nblasload._cython_blas = fail"
    run_python(PRODUCT.format(before=before, after=after))


def test_wrong_signatures_reach_the_user():
    before = "blasload._ARGUMENTS['gemm'] = 'char *|long *'"
    after = """
try:
    f(np.ones((500, 500)))
except ValueError as e:
    assert "uses other integers for BLAS" in str(e), e
else:
    raise AssertionError
"""
    run_python(PRODUCT.format(before=before, after=after))


@pytest.mark.parametrize("taken", [0, 2])
def test_an_interrupt_while_blas_is_loaded(taken):
    """It reaches the user, also between two functions; the next call loads all of them."""
    before = f"""
real, times = blasload.functions, []
def interrupted(library):
    times.append(library)
    for count, found in enumerate(real(library)):
        if len(times) == 1 and count == {taken}:
            raise KeyboardInterrupt
        yield found
blasload.functions = interrupted
"""
    after = """
try:
    f(np.ones((500, 500)))
except KeyboardInterrupt:
    pass
else:
    raise AssertionError
x, v = T.dmatrix(), T.dvector()
g = opwise.function([x, v], T.dot(x, v), mode=Mode("c|py", "fast_run"))
np.testing.assert_allclose(g(np.ones((99, 99)), np.ones(99)), 99)
np.testing.assert_allclose(f(np.ones((500, 500))), 500)
"""
    run_python(PRODUCT.format(before=before, after=after))
