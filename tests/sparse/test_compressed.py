"""The C steps over the vectors of compressed matrices: results, layouts, indices, bad vectors."""

import numpy as np
import pytest
import scipy.sparse as sp
from matrices import FORMATS, dense, kinds, matrix, run, variable

import theano
import theano.tensor as T
from opwise.linkers.kernels import Kernels
from opwise.linkers.lowering import c_step
from theano import sparse
from theano.sparse import opt

pytestmark = pytest.mark.c

DTYPES = ("float32", "float64")
RNG = np.random.RandomState(0)


def big(format, dtype, shape=(300, 200), density=0.05):
    return sp.random(*shape, density, format=format, dtype=dtype, random_state=RNG)


def tolerance(dtype):
    return {"rtol": 1e-4 if dtype == "float32" else 1e-10, "atol": 1e-5}


def steps_of(function):
    """Return the class of the Op of each Apply, with whether it runs in C."""
    kernels = Kernels(False)
    return {type(n.op): c_step(n, kernels) is not None
            for n in function.maker.fgraph.toposort()}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("columns", [0, 1, 2, 7, 16, 33, 64, 131])
def test_products_of_any_width(format, dtype, columns):
    """Widths above, below and at the number of accumulators; below and above that of sorting."""
    a, b = big(format, dtype), RNG.rand(200, columns).astype(dtype)
    found, fgraph = run(sparse.dot, a, b)
    assert kinds(fgraph)[-1] is getattr(sparse, f"StructuredDot{format.upper()}")
    np.testing.assert_allclose(found, a @ b, **tolerance(dtype))
    found, _ = run(lambda a, b: sparse.dot(b.T, a.T), a, b)
    np.testing.assert_allclose(found, (a @ b).T, **tolerance(dtype))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("layout", ["rows", "columns", "every second", "reversed"])
def test_layouts_of_the_dense_operand(format, layout):
    a, whole = big(format, "float64"), RNG.rand(400, 80)
    b = {"rows": whole[:200].copy(), "columns": np.asfortranarray(whole[:200]),
         "every second": whole[::2, ::2], "reversed": whole[199::-1, ::-1]}[layout]  # fmt: skip
    found, _ = run(sparse.structured_dot, a, b)
    np.testing.assert_allclose(found, a @ b)
    x, w = variable(a), variable(b)
    cost = T.sqr(sparse.structured_dot(x, w)).sum()
    gx, gw = theano.function([x, w], theano.grad(cost, [x, w]))(a, b)
    g = 2 * (a @ b)
    np.testing.assert_allclose(gw, a.T @ g)
    np.testing.assert_allclose(gx.toarray(), (g @ b.T) * (a.toarray() != 0))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 4)])
@pytest.mark.parametrize("format", FORMATS)
def test_empty_matrices(format, shape, mode):
    a = getattr(sp, f"{format}_matrix")(shape)
    b = RNG.rand(shape[1], 3)
    found, _ = run(sparse.dot, a, b, mode=mode)
    np.testing.assert_array_equal(found, np.zeros((shape[0], 3)))


#: Op -> (its inputs from a matrix and dense operands, the result)
VECTOR_OPS = {
    "csr": (
        lambda m, w: [m.data, m.indices, m.indptr, w], opt.sd_csr, lambda m, w: m @ w, "csr"
    ),
    "csc": (
        lambda m, w: [m.data, m.indices, m.indptr, np.int32(m.shape[0]), w], opt.sd_csc,
        lambda m, w: m @ w, "csc",
    ),
    "usmm": (
        lambda m, w: [np.full((1, 1), 0.5, m.dtype), m.data, m.indices, m.indptr,
                      np.int64(m.shape[0]), w, np.ones((m.shape[0], w.shape[1]), m.dtype)],
        lambda a, *more: opt.usmm_csc_dense(T.patternbroadcast(a, (True, True)), *more),
        lambda m, w: 1 + 0.5 * (m @ w), "csc",
    ),
    "times_matrix": (
        lambda m, w: [m.data, m.indices, m.indptr, np.resize(w, m.shape)],
        opt.mul_s_d_csr, lambda m, w: m.tocoo().data * np.resize(w, m.shape)[m.tocoo().coords],
        "csr",
    ),
    "times_vector": (
        lambda m, w: [m.data, m.indices, m.indptr, np.resize(w, m.shape[1])], opt.mul_s_v_csr,
        lambda m, w: m.data * np.resize(w, m.shape[1])[m.indices], "csr",
    ),
    "plus_vector": (
        lambda m, w: [m.data, m.indices, m.indptr, np.resize(w, m.shape[1])],
        opt.structured_add_s_v_csr, lambda m, w: m.data + np.resize(w, m.shape[1])[m.indices],
        "csr",
    ),
    "times_rows": (
        lambda m, w: [m.data, m.indices, m.indptr, np.resize(w, m.shape[0])], opt.mul_s_v_rows,
        lambda m, w: m.data * np.resize(w, m.shape[0]).repeat(np.diff(m.indptr)), "csr",
    ),
    "gradient": (
        lambda m, w: [m.indices, m.indptr, w, m @ w], sparse.sdg_csr,
        lambda m, w: ((m @ w) @ w.T)[m.tocoo().coords], "csr",
    ),
    "sampling": (
        lambda m, w: [m @ w, w, m.data, m.indices, m.indptr, np.int32(m.shape[1])],
        lambda *inputs: opt.sampling_dot_csr(*inputs)[0],
        lambda m, w: m.data * ((m @ w) @ w.T)[m.tocoo().coords], "csr",
    ),
}  # fmt: skip


@pytest.mark.parametrize("linker", ["c|py", "py", "DEBUG_MODE"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VECTOR_OPS)
def test_vector_ops(name, dtype, index, linker):
    """C and perform agree, for indices of either width."""
    of, op, expected, format = VECTOR_OPS[name]
    m, w = matrix(format, dtype, shape=(6, 8)), RNG.rand(8, 3).astype(dtype)
    values = [np.asarray(v, index) if getattr(v, "ndim", 0) == 1 and v.dtype == np.int32
              else np.asarray(v) for v in of(m, w)]  # fmt: skip
    inputs = [variable(v) for v in values]
    mode = linker if linker == "DEBUG_MODE" else theano.Mode(linker, "fast_run")
    function = theano.function(inputs, op(*inputs), mode=mode)
    np.testing.assert_allclose(function(*values), expected(m, w), **tolerance(dtype))
    if linker == "c|py":
        assert all(steps_of(function).values())


@pytest.mark.parametrize("linker", ["c|py", "py"])
@pytest.mark.parametrize("wrong", ["indices", "negative", "indptr", "falling", "short", "data"])
@pytest.mark.parametrize("name", VECTOR_OPS)
def test_malformed_vectors(name, wrong, linker):
    """Vectors that point outside of a matrix raise ValueError; nothing outside is read."""
    of, op, _, format = VECTOR_OPS[name]
    m, w = matrix(format, shape=(6, 8)), RNG.rand(8, 3)
    values = [np.array(v) for v in of(m, w)]
    at = next(i for i, v in enumerate(values) if v.ndim == 1 and v.dtype == np.int32)
    indices, indptr = values[at], values[at + 1]
    if name == "times_rows" and wrong in ("indices", "negative"):
        return  # it reads no indices
    if name in ("csr", "times_vector", "plus_vector") and wrong == "short":
        return  # its indptr says how many rows there are
    if wrong == "indices":
        indices[1] = 10**6
    elif wrong == "negative":
        indices[0] = -1
    elif wrong == "indptr":
        indptr[-1] = 10**6
    elif wrong == "falling":
        indptr[1], indptr[2] = 5, 2
    elif wrong == "short":
        values[at + 1] = indptr[:-2]
    elif name != "gradient":  # which has no data
        values[at - 1] = values[at - 1][:-1]
    else:
        return
    inputs = [variable(v) for v in values]
    function = theano.function(inputs, op(*inputs), mode=theano.Mode(linker, "fast_run"))
    with pytest.raises(ValueError):
        function(*values)


def test_texts_of_malformed_vectors():
    data, indices, indptr = T.dvector(), T.ivector(), T.ivector()
    b = T.dmatrix()
    f = theano.function([data, indices, indptr, b], opt.sd_csr(data, indices, indptr, b))
    one = np.ones(2)
    with pytest.raises(ValueError, match=r"indices\[1\] is 3; it must be from 0 to 2"):
        f(one, [0, 3], [0, 2], np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"indptr\[1\] is 3; it must be at least 0"):
        f(one, [0, 1], [0, 3], np.ones((3, 2)))
    with pytest.raises(ValueError, match="data has 2 elements, but indices has 1"):
        f(one, [0], [0, 1], np.ones((3, 2)))


@pytest.mark.parametrize("name", ["dot", "structured_dot"])
@pytest.mark.parametrize("format", FORMATS)
def test_operands_that_do_not_fit(name, format, mode):
    a, b = matrix(format), np.ones((6, 2))
    with pytest.raises(ValueError, match="mismatch"):
        run(getattr(sparse, name), a, b, mode=mode)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 5])
def test_strided_vectors(columns, dtype, index):
    a = big("csr", dtype, (40, 30))
    vectors = a.data, a.indices.astype(index), a.indptr.astype(index)
    data, indices, indptr = (np.repeat(v, 2)[::2] for v in vectors)
    b, g = RNG.rand(30, columns).astype(dtype), RNG.rand(40, columns).astype(dtype)
    inputs = [variable(v) for v in (data, indices, indptr, b)]
    found = theano.function(inputs, opt.sd_csr(*inputs))(data, indices, indptr, b)
    np.testing.assert_allclose(found, a @ b, **tolerance(dtype))
    inputs = [variable(v) for v in (data, indices, indptr, np.array(30), g)]
    product = opt.sd_csc(inputs[0], inputs[1], inputs[2], inputs[3], inputs[4])
    found = theano.function(inputs, product)(data, indices, indptr, np.array(30), g)
    np.testing.assert_allclose(found, a.T @ g, **tolerance(dtype))


@pytest.mark.parametrize("format", FORMATS)
def test_sums_in_place(format):
    """A sum overwrites a computed operand, and leaves an argument as it was."""
    a, y = matrix(format), np.arange(20.0).reshape(4, 5)
    x, d = variable(a), variable(y)
    function = theano.function([x, d], [x + d, x + T.exp(d)])
    ops = [n.op for n in function.maker.fgraph.toposort() if isinstance(n.op, opt.AddSD_ccode)]
    assert sorted(op.inplace for op in ops) == [False, True]
    kept = y.copy()
    first, second = function(a, y)
    np.testing.assert_allclose(first, a.toarray() + y)
    np.testing.assert_allclose(second, a.toarray() + np.exp(y))
    np.testing.assert_array_equal(y, kept)


def test_update_in_place_by_usmm(mode):
    """The update of a dense matrix by a sparse gradient: z - a dot(x, y), written over z."""
    x = sparse.csr_matrix("x", dtype="float64")
    w = theano.shared(np.ones((5, 3)), "w")
    y = T.dmatrix("y")
    g = theano.function([x, y], [], updates=[(w, w - 0.1 * sparse.dot(x.T, y))], mode=mode)
    a, b = matrix(), RNG.rand(4, 3)
    g(a, b)
    np.testing.assert_allclose(w.get_value(), 1 - 0.1 * (a.T @ b))
    if mode == "FAST_RUN":
        ops = [n.op for n in g.maker.fgraph.toposort()]
        assert opt.usmm_csc_dense_inplace in ops


def test_usmm_that_fails_leaves_the_shared_value():
    x = sparse.csc_matrix("x", dtype="float64")
    w = theano.shared(np.ones((4, 3)), "w")
    y = T.dmatrix("y")
    g = theano.function([x, y], [], updates=[(w, w - sparse.dot(x, y))])
    with pytest.raises(ValueError, match="mismatch"):
        g(matrix("csc"), np.ones((7, 3)))
    np.testing.assert_array_equal(w.get_value(), np.ones((4, 3)))


def test_csr_with_any_whole_numbers_runs_by_scipy():
    a, b = matrix(dtype="int32"), np.arange(10).reshape(5, 2)
    found, fgraph = run(sparse.dot, a, b)
    assert kinds(fgraph) == [sparse.Dot] and found.dtype == np.int64
    np.testing.assert_array_equal(found, a @ b)


def test_mixed_dtypes_are_cast():
    a, b = matrix(dtype="int8"), RNG.rand(5, 2)
    found, fgraph = run(sparse.dot, a, b)
    assert sparse.StructuredDotCSR in kinds(fgraph)
    np.testing.assert_allclose(found, a @ b)


def test_entries_of_int64_matrices():
    """scipy keeps int64 indices that it is given."""
    a = matrix()
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    found, _ = run(lambda x, w: [sparse.dot(x, w), sparse.csm_indices(x), x.T], a, np.ones((5, 1)))
    np.testing.assert_allclose(found[0], a @ np.ones((5, 1)))
    assert found[1].dtype == np.int32
    np.testing.assert_array_equal(dense(found[2]), a.toarray().T)


def test_rows_are_shared_among_threads():
    """One row holds most entries, some none: all are computed, once."""
    rows = np.concatenate([np.zeros(20000, int), np.arange(5000)])
    columns = RNG.randint(0, 3000, rows.size)
    a = sp.csr_matrix((RNG.rand(rows.size), (rows, columns)), shape=(6000, 3000))
    b = RNG.rand(3000, 20)
    for m in (a, a.T.tocsr().T):
        found, _ = run(sparse.dot, m, b)
        np.testing.assert_allclose(found, m @ b)
