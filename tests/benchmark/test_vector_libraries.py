"""Functions of SLEEF and libmvec on arrays: those of numpy, in order."""

import numpy as np
import pytest

from benchmark import vector_libraries
from benchmark.functions import CASES, _arrays, _named

pytestmark = pytest.mark.c


@pytest.mark.parametrize("library", ["sleef", "libmvec"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_those_of_numpy(library, dtype):
    if vector_libraries._built(library, dtype) is None:
        pytest.skip(f"this machine has no {library}, no vectors for it, or no compiler")
    seen = 0
    for case in CASES:
        arrays = _arrays(case, dtype, 64)
        call = vector_libraries.call(library, case.name, arrays)
        if call is None or case.name == "remainder":
            continue
        seen += 1
        expected = _named(case.numpy)(*arrays)
        np.testing.assert_allclose(call(), expected, rtol=1e-4, atol=1e-5, err_msg=case.name)
    assert seen > 10


def test_other_dtypes_and_names_have_none():
    assert vector_libraries.call("libmvec", "exp", [np.zeros(64, "int32")]) is None
    assert vector_libraries.call("libmvec", "psi", [np.zeros(64)]) is None
