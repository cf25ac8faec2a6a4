"""What the tests of sparse matrices share: matrices with every oddity, and runs in every mode."""

import numpy as np
import scipy.sparse as sp

import theano
from opwise.gradient import verify_grad
from opwise.sparse import CSM, SparseType, csm_data, dense_from_sparse
from opwise.sparse.type import holds_sparse

FORMATS = ("csr", "csc")


def matrix(format="csr", dtype="float64", shape=(4, 5), seed=0, odd=False):
    """Return a sparse matrix with about half of its elements, an empty row and an empty column.

    odd: its indices are not sorted, a place has two entries, and one entry is 0.
    """
    rng = np.random.RandomState(seed)
    dense = rng.uniform(0.2, 0.9, shape) * (rng.uniform(size=shape) < 0.85)
    dense[1, :] = dense[:, 2] = 0
    dense = dense if np.dtype(dtype).kind in "fc" else dense * 10
    made = getattr(sp, f"{format}_matrix")(dense.astype(dtype))
    if not odd:
        return made
    entries = made.tocoo()
    order = rng.permutation(entries.nnz)
    major = (entries.row if format == "csr" else entries.col)[order]
    minor = (entries.col if format == "csr" else entries.row)[order]
    data = entries.data[order]
    # one entry twice, another as zero, and rows in order again
    major, minor = np.append(major, major[:2]), np.append(minor, minor[:2])
    data = np.append(data, [data[0], 0]).astype(dtype)
    rows = np.argsort(major, kind="stable")
    n = shape[0] if format == "csr" else shape[1]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=n))])
    return type(made)((data[rows], minor[rows], indptr), shape=shape)


def dense(value):
    """Return a value as an array."""
    return value.toarray() if holds_sparse(value) else np.asarray(value)


def variable(value, name=None):
    """Return a variable of the type of a value."""
    if holds_sparse(value):
        return SparseType(value.format, value.dtype)(name)
    value = np.asarray(value)
    return theano.tensor.TensorType(value.dtype, (False,) * value.ndim)(name)


def run(build, *values, mode="FAST_RUN"):
    """Return (the results, the graph) of a function that ``build`` makes of variables."""
    inputs = [variable(v, f"v{i}") for i, v in enumerate(values)]
    function = theano.function(inputs, build(*inputs), mode=mode)
    return function(*values), function.maker.fgraph


def kinds(fgraph):
    """Return the class of the Op of each Apply."""
    return [type(node.op) for node in fgraph.toposort()]


def verify_grad_sparse(build, values, structured=False, eps=None):
    """Check the gradient of ``build`` numerically at sparse and dense values.

    Sparse values vary at their entries. structured: the result, sparse, counts at its entries.
    """
    points = [v.data if holds_sparse(v) else np.asarray(v) for v in values]

    def of_data(*data):
        inputs = [
            CSM(v.format)(d, v.indices, v.indptr, v.shape) if holds_sparse(v) else d
            for v, d in zip(values, data, strict=True)
        ]
        out = build(*inputs)
        if isinstance(out.type, SparseType):
            out = csm_data(out) if structured else dense_from_sparse(out)
        return out

    verify_grad(of_data, points, rng=np.random.RandomState(7), eps=eps)
