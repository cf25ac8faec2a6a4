"""Profiles of functions with sparse matrices: what ran in C, and the limits of their products."""

import numpy as np
import pytest
from matrices import matrix

import theano
import theano.tensor as T
from theano import sparse

pytestmark = pytest.mark.c


@pytest.fixture
def rows():
    """Return (the rows of a profile by class of Op, nnz) of a step of gradient descent."""
    mode = theano.ProfileMode()
    x = sparse.csr_matrix("x", dtype="float64")
    w = theano.shared(np.ones((5, 3)), "w")
    cost = T.sqr(sparse.structured_dot(x, w)).sum()
    updates = [(w, w - 0.1 * T.grad(cost, w))]
    function = theano.function([x], [cost, T.grad(cost, x)], updates=updates, mode=mode)
    a = matrix()
    function(a)
    function(a)
    (profiled,) = mode.profile().functions
    return {n.op.partition("{")[0]: n for n in profiled.applys}, a.nnz


def test_products_run_in_c(rows):
    found, _ = rows
    for name in ("StructuredDotCSR", "StructuredDotGradCSR"):
        assert found[name].c
    assert not found["CSMProperties"].c and not found["CSM"].c


def test_limits_of_products(rows):
    """Operations by entries; bytes: each vector and matrix once."""
    found, nnz = rows
    product = found["StructuredDotCSR"]
    arrays = [a.bytes for a in (*product.input_arrays, *product.output_arrays)]
    assert product.flops == 2 * nnz * 3 and product.traffic == sum(arrays)
    assert found["StructuredDotGradCSR"].flops == 2 * nnz * 3
