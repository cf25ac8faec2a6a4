"""The type, variables and constants of sparse matrices; how functions and shared variables take
them; bad input."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from matrices import FORMATS, matrix, run

import theano
import theano.tensor as T
from opwise.sparse import SparseType
from theano import sparse
from theano.sparse.basic import _is_dense, _is_dense_variable, _is_sparse, _is_sparse_variable

pytestmark = pytest.mark.c

CSR = SparseType("csr", "float64")


# --- types ----------------------------------------------------------------------------------------


def test_names_of_constructors():
    for name, format in (("csr_matrix", "csr"), ("csc_matrix", "csc"), ("bsr_matrix", "bsr")):
        made = getattr(sparse, name)("x")
        assert (made.name, made.format, made.dtype, made.ndim) == (
            "x", format, theano.config.floatX, 2
        )  # fmt: skip
        assert getattr(sparse, name)(dtype="int32").type == SparseType(format, "int32")
    for letter, dtype in (("d", "float64"), ("f", "float32")):
        for format in ("csr", "csc", "bsr"):
            type_ = getattr(sparse, f"{format}_{letter}matrix")
            assert type_ == SparseType(format, dtype) and type_("x").name == "x"
    assert sparse.matrix("csr", dtype="int8").type == SparseType("csr", "int8")
    assert str(CSR) == repr(CSR) == "Sparse[float64, csr]"
    assert str(sparse.csr_dmatrix()) == "SparseVariable{csr,float64}"
    assert sparse.enable_sparse


def test_equality_of_types():
    assert SparseType("csr", np.dtype("float64")) == CSR and hash(CSR) == hash(copy.copy(CSR))
    assert SparseType("csc", "float64") != CSR and SparseType("csr", "float32") != CSR
    assert T.dmatrix != CSR and pickle.loads(pickle.dumps(CSR)) == CSR


@pytest.mark.parametrize(("arguments", "error"), [
    (("dia", "float64"), NotImplementedError), (("csr", "float16"), NotImplementedError),
    (("csr", "bool"), NotImplementedError), ((1, "float64"), AssertionError),
])  # fmt: skip
def test_types_that_are_not_there(arguments, error):
    with pytest.raises(error, match="sparse matrix"):
        SparseType(*arguments)


@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
def test_filter(format):
    type_ = SparseType(format, "float64")
    own = matrix().asformat(format)
    assert type_.filter(own) is own and type_.filter(own, strict=True) is own
    for other in (matrix("csc"), matrix().tocoo(), matrix().toarray(), matrix().toarray().tolist(),
                  sp.csr_array(matrix())):  # fmt: skip
        found = type_.filter(other)
        assert type(found) is type(own)
        np.testing.assert_array_equal(found.toarray(), matrix().toarray())
    with pytest.raises(NotImplementedError, match="Expected float64 dtype but got float32"):
        type_.filter(own.astype("float32"))
    assert type_.filter(own.astype("float32"), allow_downcast=True).dtype == np.float64
    with pytest.raises(TypeError, match="expected a sparse matrix of format"):
        type_.filter(own.toarray(), strict=True)
    with pytest.raises(TypeError, match="found a Variable"):
        type_.filter(type_("x"))
    assert type_.is_valid_value(own) and not type_.is_valid_value(own.toarray())


MALFORMED = {
    "index too large": lambda m: m.indices.__setitem__(0, 99),
    "index below 0": lambda m: m.indices.__setitem__(0, -1),
    "indptr falls": lambda m: m.indptr.__setitem__(1, 99),
    "indptr too short": lambda m: setattr(m, "indptr", m.indptr[:-1]),
    "indptr beyond the entries": lambda m: m.indptr.__setitem__(-1, 99),
}


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("format", FORMATS)
def test_malformed_matrices_are_refused(format, change):
    bad = matrix(format)
    change(bad)
    with pytest.raises(ValueError, match="malformed sparse matrix"):
        SparseType(format, "float64").filter(bad)
    x = sparse.matrix(format, dtype="float64")
    function = theano.function([x], sparse.sp_sum(x))
    with pytest.raises(ValueError, match="malformed sparse matrix"):
        function(bad)


def test_equality_of_values():
    a = matrix()
    b = a.copy()
    b.data[0] += 1e-9
    assert CSR.values_eq(a, a.copy()) and CSR.values_eq(a, matrix(odd=False).tocsc())
    assert not CSR.values_eq(a, b) and CSR.values_eq_approx(a, b)
    b.data[0] += 1e-3
    assert not CSR.values_eq_approx(a, b) and CSR.values_eq_approx(a, b, eps=1e-2)
    assert not CSR.values_eq_approx(a, a.toarray()) and not CSR.values_eq(a, a[:2])
    zeros = sp.csr_matrix(a.shape)
    explicit = a * 0
    assert explicit.nnz and CSR.values_eq(zeros, explicit)
    nan = a.copy()
    nan.data[0] = np.nan
    assert CSR.values_eq(nan, nan.copy()) and CSR.values_eq_approx(nan, nan.copy())
    assert not CSR.values_eq_approx(nan, a)


def test_shared_memory():
    a = matrix()
    share = CSR.may_share_memory
    assert share(a, a) and share(a, a.T) and share(a, a.data) and share(a.indices, a)
    assert not share(a, a.copy()) and not share(a, a.data.copy()) and not share(a.data, a.data)


def test_sizes_for_profiles():
    a = matrix()
    info = CSR.get_shape_info(a)
    assert info[0] == (4, 5) and info[4] == a.nnz
    assert CSR.get_size(info) == a.data.nbytes + a.indices.nbytes + a.indptr.nbytes


# --- variables ------------------------------------------------------------------------------------


def test_conversion():
    a = matrix()
    constant = sparse.as_sparse_variable(a, name="a")
    assert constant.name == "a" and constant.data is not a
    assert str(sparse.as_sparse(a)) == f"SparseConstant{{csr,float64,shape=(4, 5),nnz={a.nnz}}}"
    x = sparse.csr_dmatrix("x")
    assert sparse.as_sparse_variable(x) is x
    assert sparse.as_sparse_variable((-x).owner).owner.op == sparse.neg
    assert sparse.as_sparse_or_tensor_variable(x) is x
    assert sparse.as_sparse_or_tensor_variable(1.5).type == T.fscalar or T.dscalar
    array = sparse.as_sparse_variable(sp.csr_array(a))
    assert sp.isspmatrix_csr(array.data)
    for bad in (np.ones((2, 2)), [1], 1.0, T.dmatrix()):
        with pytest.raises(TypeError):
            sparse.as_sparse_variable(bad)
    with pytest.raises(ValueError, match="ambiguous"):
        sparse.as_sparse_variable(sparse.csm_properties(x)[0].owner)
    with pytest.raises(TypeError, match="takes a sparse matrix"):
        sparse.constant(np.ones((2, 2)))


def test_kinds():
    x, d = sparse.csr_dmatrix("x"), T.dmatrix("d")
    assert _is_sparse_variable(x) and not _is_sparse_variable(d)
    assert _is_dense_variable(d) and not _is_dense_variable(x)
    assert _is_sparse(matrix()) and not _is_sparse(np.ones(2))
    assert _is_dense(np.ones(2)) and not _is_dense(matrix())
    for kind in (_is_sparse, _is_dense, _is_sparse_variable, _is_dense_variable):
        with pytest.raises(NotImplementedError):
            kind("text")


def test_equal_constants_are_merged():
    a = matrix()
    b = a.copy()
    b.data[0] += 1
    one, two, other = (sparse.as_sparse_variable(v) for v in (a, a.copy(), b))
    assert one.equals(two) and not one.equals(other)
    assert hash(one.signature()) == hash(two.signature())
    x = sparse.csr_dmatrix("x")
    f = theano.function([x], [x + one, x + two], mode="FAST_COMPILE")
    assert sum(isinstance(n.op, sparse.AddSS) for n in f.maker.fgraph.toposort()) == 1
    hashed = theano.sparse.utils.hash_from_sparse
    assert hashed(a) == hashed(a.copy()) != hashed(b)
    assert hashed(sp.csr_matrix((1, 0))) != hashed(sp.csr_matrix((2, 0)))


def test_operators_with_values():
    a = matrix()
    x = sparse.csr_dmatrix("x")
    d = np.ones((4, 5))
    outs = [x + a, a + x, x - a, x * a, d * x, d + x, d - x, 2 * x, x * 2]
    expected = [2 * a, 2 * a, 0 * a, a.multiply(a), a, d + a.toarray(), d - a.toarray(), 2 * a,
                2 * a]  # fmt: skip
    for found, wanted in zip(theano.function([x], outs)(a), expected, strict=True):
        np.testing.assert_allclose(
            found.toarray() if sp.issparse(found) else found,
            wanted.toarray() if sp.issparse(wanted) else wanted,
        )


def test_properties():
    x = sparse.csr_dmatrix("x")
    data, indices, indptr, shape = sparse.csm_properties(x)
    assert [v.dtype for v in (data, indices, indptr, shape)] == ["float64", *["int32"] * 3]
    a = matrix()
    outs = [sparse.csm_data(x), sparse.csm_indices(x), sparse.csm_indptr(x), sparse.csm_shape(x),
            x.size, x.shape, x.T.size]  # fmt: skip
    found = theano.function([x], outs)(a)
    wanted = [a.data, a.indices, a.indptr, a.shape, a.nnz, a.shape, a.nnz]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("format", FORMATS)
def test_matrices_made_of_vectors(format, mode):
    a = matrix(format)
    parts = (a.data, a.indices, a.indptr, np.int32(a.shape))
    found, _ = run(sparse.CSM(format), *parts, mode=mode)
    np.testing.assert_array_equal(found.toarray(), a.toarray())
    made = (sparse.CSC if format == "csc" else sparse.CSR)(a.data, a.indices, a.indptr, a.shape)
    np.testing.assert_array_equal(made.eval().toarray(), a.toarray())


def test_bad_vectors():
    a = matrix()
    f = theano.function([d := T.dvector(), i := T.ivector(), p := T.ivector(), s := T.ivector()],
                        sparse.CSR(d, i, p, s))  # fmt: skip
    with pytest.raises(ValueError, match="length 2"):
        f(a.data, a.indices, a.indptr, [4, 5, 6])
    with pytest.raises(ValueError, match="same number of elements as indices"):
        f(a.data[1:], a.indices, a.indptr, [4, 5])
    with pytest.raises(ValueError, match="malformed"):
        f(a.data, a.indices + 9, a.indptr, [4, 5])
    for bad in (
        (T.dmatrix(), i, p, s),
        (d, d, p, s),
        (d, i, T.imatrix(), s),
        (d, i, p, T.dscalar()),
    ):
        with pytest.raises(TypeError):
            sparse.CSR(*bad)
    with pytest.raises(AssertionError, match="fit into int32"):
        sparse.CSR(d, [2**40], p, s)
    with pytest.raises(ValueError, match="format must be one of"):
        sparse.CSM("dia")
    for made in (sparse.CSMProperties, sparse.CSMGrad):
        with pytest.raises(Exception, match="kmap"):
            made(kmap=1)


# --- functions and shared variables ---------------------------------------------------------------


def test_arguments_of_functions():
    x = sparse.csr_fmatrix("x")
    f = theano.function([x], x * np.float32(2))
    with pytest.raises(NotImplementedError, match="Expected float32 dtype but got float64"):
        f(matrix())
    with pytest.raises(TypeError, match="must be convertible to Sparse"):
        f(None)
    np.testing.assert_array_equal(f(matrix(dtype="float32").tocsc()).toarray(),
                                  2 * matrix(dtype="float32").toarray())  # fmt: skip
    g = theano.function([x], x, allow_input_downcast=True)
    assert g(matrix()).dtype == np.float32
    h = theano.function([theano.In(x, strict=True)], x)
    with pytest.raises(TypeError, match="expected a sparse matrix of format csr"):
        h(matrix(dtype="float32").tocsc())


def test_results_are_copies_unless_borrowed():
    x = sparse.csr_dmatrix("x")
    a = matrix()
    f = theano.function([x], x)
    assert not CSR.may_share_memory(f(a), a)
    g = theano.function([theano.In(x, borrow=True)], theano.Out(x.T, borrow=True))
    assert CSR.may_share_memory(g(a), a)


@pytest.mark.parametrize("format", ["csr", "csc", "bsr"])
def test_shared_variables(format):
    a = matrix().asformat(format)
    s = theano.shared(a, "s")
    assert isinstance(s, theano.sparse.sharedvar.SparseTensorSharedVariable)
    assert (s.name, s.format, s.dtype) == ("s", format, "float64")
    assert not CSR.may_share_memory(s.get_value(borrow=True), a)
    assert sparse.shared(a, borrow=True).get_value(borrow=True) is a
    assert sparse.shared(a, format="csc").get_value().format == "csc"
    s.set_value(2 * a)
    np.testing.assert_array_equal(s.get_value().toarray(), 2 * a.toarray())
    with pytest.raises(NotImplementedError, match="Expected float64"):
        s.set_value(a.astype("float32"))
    with pytest.raises(TypeError, match="not a sparse matrix"):
        sparse.shared(a.toarray())


def test_sparse_shared_values_without_importing_theano_sparse():
    program = (
        "import theano, scipy.sparse as sp\n"
        "s = theano.shared(sp.eye(3, format='csr'))\n"
        "print(type(s).__name__, theano.function([], theano.sparse.sp_sum(s))())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout == "SparseTensorSharedVariable 3.0\n"


def test_scipy_is_loaded_with_the_first_value():
    program = (
        "import sys, theano, theano.tensor as T\n"
        "x = T.dmatrix(); f = theano.function([x], T.exp(x))\n"
        "assert 'opwise.sparse' not in sys.modules\n"
        "from theano import sparse\n"
        "y = sparse.csr_matrix('y'); z = sparse.dot(y, x)\n"
        "assert 'scipy.sparse' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_updates_and_givens(mode):
    a = matrix()
    s = theano.shared(a, "s")
    x = sparse.csr_dmatrix("x")
    f = theano.function([], sparse.sp_sum(x), givens={x: s}, updates=[(s, s + s)], mode=mode)
    assert np.isclose(f(), a.sum()) and np.isclose(f(), 2 * a.sum())
    np.testing.assert_allclose(s.get_value().toarray(), 4 * a.toarray())


def test_functions_can_be_pickled():
    x, w = sparse.csr_dmatrix("x"), T.dmatrix("w")
    s = sparse.shared(matrix("csr"), "s")
    f = theano.function([x, w], sparse.dot(x + s, w))
    again = pickle.loads(pickle.dumps(f))
    a, b = matrix(seed=4), np.ones((5, 2))
    np.testing.assert_allclose(again(a, b), f(a, b))


def test_test_values(flags):
    flags(compute_test_value="raise")
    x = sparse.csr_dmatrix("x")
    x.tag.test_value = matrix()
    assert (x * x).tag.test_value.shape == (4, 5)
    assert x.shape.tag.test_value.tolist() == [4, 5]


# --- gradients of indexed rows --------------------------------------------------------------------


def test_sparse_gradient_of_rows(mode):
    w, i = theano.shared(np.arange(12.0).reshape(4, 3), "w"), T.lvector("i")
    rows = theano.sparse_grad(w[i])
    cost = T.sqr(rows).sum()
    (g,) = theano.grad(cost, [w])
    assert isinstance(g.type, SparseType) and g.format == "csc"
    index = np.array([2, 0, 2])
    expected = np.zeros((4, 3))
    np.add.at(expected, index, 2 * w.get_value()[index])
    f = theano.function([i], g, updates=[(w, w - 0.1 * g)], mode=mode)
    before = w.get_value()
    np.testing.assert_allclose(f(index).toarray(), expected)
    np.testing.assert_allclose(w.get_value(), before - 0.1 * expected)


def test_sparse_gradient_of_other_parts():
    v, i = T.dvector(), T.lvector()
    with pytest.raises(TypeError, match="ndim != 2"):
        theano.grad(theano.sparse_grad(v[i]).sum(), v)
    with pytest.raises(TypeError, match="only implemented for AdvancedSubtensor1"):
        theano.sparse_grad(v[0])


def test_construct_sparse_from_list():
    x, values, i = T.dmatrix(), T.dmatrix(), T.lvector()
    out = sparse.construct_sparse_from_list(x, values, i)
    found = theano.function([x, values, i], [out, out.shape])(
        np.ones((4, 2)), np.array([[1.0, 2], [3, 4]]), [3, 1]
    )
    np.testing.assert_array_equal(found[0].toarray(), [[0, 0], [3, 4], [0, 0], [1, 2]])
    np.testing.assert_array_equal(found[1], [4, 2])
    for bad in ((T.dvector(), values, i), (x, T.dvector(), i), (x, values, T.dvector()),
                (x, values, T.lmatrix())):  # fmt: skip
        with pytest.raises(TypeError):
            sparse.construct_sparse_from_list(*bad)


# --- bad input ------------------------------------------------------------------------------------

X, D, V, S = sparse.csr_dmatrix("x"), T.dmatrix("d"), T.dvector("v"), T.dscalar("s")
B = sparse.bsr_dmatrix("b")
F = sparse.csr_fmatrix("f")


@pytest.mark.parametrize(("build", "error"), [
    (lambda: sparse.dot(D, D), TypeError),
    (lambda: sparse.structured_dot(D, D), TypeError),
    (lambda: sparse.structured_dot(X, V), NotImplementedError),
    (lambda: sparse.true_dot(D, D), TypeError),
    (lambda: sparse.true_dot(X, F), NotImplementedError),
    (lambda: sparse.dot(X, T.dtensor3()), TypeError),
    (lambda: sparse.dot(B, D), AssertionError),
    (lambda: sparse.add(D, D), AssertionError),
    (lambda: X + V, AssertionError),
    (lambda: X + 1, AssertionError),
    (lambda: X * V, AssertionError),
    (lambda: sparse.mul(D, D), AssertionError),
    (lambda: sparse.mul_s_v(X, T.fvector()), NotImplementedError),
    (lambda: sparse.mul_s_v(X, D), AssertionError),
    (lambda: sparse.structured_add_s_v(F, V), NotImplementedError),
    (lambda: sparse.add_s_s_data(X, F), NotImplementedError),
    (lambda: sparse.eq(D, D), AssertionError),
    (lambda: sparse.eq(X, sparse.csc_dmatrix()), NotImplementedError),
    (lambda: sparse.eq(X, V), AssertionError),
    (lambda: sparse.ColScaleCSC()(X, V), ValueError),
    (lambda: sparse.col_scale(B, V), NotImplementedError),
    (lambda: sparse.sp_sum(X, 2), ValueError),
    (lambda: sparse.sp_sum(B), AssertionError),
    (lambda: sparse.square_diagonal(D), TypeError),
    (lambda: sparse.csm_properties(D), TypeError),
    (lambda: sparse.csm_properties(B), AssertionError),
    (lambda: sparse.csr_from_dense(T.dtensor3()), TypeError),
    (lambda: sparse.hstack([]), TypeError),
    (lambda: sparse.HStack(dtype="int8")(), ValueError),
    (lambda: sparse.HStack(), ValueError),
    (lambda: sparse.structured_exp(D), TypeError),
    (lambda: X[1], NotImplementedError),
    (lambda: X[1, :], NotImplementedError),
    (lambda: X[:, T.lscalar()], NotImplementedError),
    (lambda: X[V], ValueError),
    (lambda: X[1.5:], ValueError),
    (lambda: X[:, :, :], AssertionError),
    (lambda: X[[0.5]], AssertionError),
    (lambda: sparse.usmm(S, D, D, D), TypeError),
    (lambda: sparse.sampling_dot(D, D, D), TypeError),
    (lambda: T.exp(X), TypeError),
])  # fmt: skip
def test_bad_operands(build, error):
    with pytest.raises(error):
        build()


@pytest.mark.parametrize(("build", "error"), [
    (lambda x, y: x + y, AssertionError), (lambda x, y: x * y, AssertionError),
    (lambda x, y: x < y, AssertionError), (lambda x, y: x * y.toarray(), AssertionError),
    (lambda x, y: x + y.toarray(), ValueError),
    (lambda x, y: [sparse.diag(x), y], ValueError),
    (lambda x, y: sparse.mul_s_v(x, sparse.sp_sum(y, 0)), AssertionError),
    (sparse.true_dot, ValueError), (sparse.structured_dot, ValueError), (sparse.dot, ValueError),
])  # fmt: skip
def test_shapes_that_do_not_fit(build, error):
    with pytest.raises(error):
        run(build, matrix(), matrix(shape=(4, 6)), mode="FAST_COMPILE")


def test_disconnected_integer_matrices():
    x = sparse.csr_matrix("x", dtype="int32")
    cost = sparse.sp_sum(sparse.dcast(x))
    g = theano.function([x], theano.grad(cost, x))(matrix(dtype="int32"))
    assert g.dtype == theano.config.floatX
