"""Every operation against scipy and numpy: values in every mode, shapes, and gradients."""

import numpy as np
import pytest
import scipy.sparse as sp
from matrices import FORMATS, dense, matrix, run, variable, verify_grad_sparse

import theano
import theano.tensor as T
from theano import sparse

pytestmark = pytest.mark.c

X = matrix()
VECTOR5 = np.linspace(0.5, 1.5, 5)
VECTOR4 = np.linspace(0.5, 1.5, 4)
Y = np.linspace(0.1, 2.0, 20).reshape(4, 5)
W = np.linspace(-1.0, 2.0, 15).reshape(5, 3)


def like(x, values):
    """Return a matrix with the entries of x replaced."""
    made = x.copy()
    made.data = values
    return made


def on_entries(function):
    return lambda x, *more: like(x, function(x.data, *more)).toarray()


def mask(x):
    """Return an array with 1 where a matrix has entries."""
    return like(x, np.ones_like(x.data)).toarray()


#: name -> (symbolic function, the same on values, further operands)
CASES = {
    "neg": (lambda x: -x, lambda x: -x.toarray(), ()),
    "transpose": (lambda x: x.T, lambda x: x.toarray().T, ()),
    "toarray": (lambda x: x.toarray(), lambda x: x.toarray(), ()),
    "csr_from_dense": (lambda x, y: sparse.csr_from_dense(y) + x, lambda x, y: x + y, (Y,)),
    "csc_from_dense": (sparse.csc_from_dense, lambda y: y, None),
    "ones_like": (sparse.sp_ones_like, mask, ()),
    "zeros_like": (lambda x: x.zeros_like(), lambda x: np.zeros(x.shape), ()),
    "add_s_s": (lambda x, y: x + y, lambda x, y: x + y, (matrix(seed=1),)),
    "sub_s_s": (lambda x, y: x - y, lambda x, y: x - y, (matrix(seed=1),)),
    "add_s_s_data": (sparse.add_s_s_data, lambda x, y: x + y, (like(X, X.data**2),)),
    "add_s_d": (lambda x, y: x + y, lambda x, y: x + y, (Y,)),
    "add_d_s": (lambda x, y: y + x, lambda x, y: x + y, (Y,)),
    "sub_d_s": (lambda x, y: y - x, lambda x, y: y - x, (Y,)),
    "add_s_v": (
        sparse.structured_add_s_v, lambda x, v: x.toarray() + mask(x) * v, (VECTOR5,)
    ),
    "mul_s_s": (lambda x, y: x * y, lambda x, y: x.multiply(y), (matrix(seed=1),)),
    "mul_s_d": (lambda x, y: x * y, lambda x, y: x.toarray() * y, (Y,)),
    "mul_d_s": (lambda x, y: y * x, lambda x, y: x.toarray() * y, (Y,)),
    "mul_s_0": (lambda x, y: x * y, lambda x, y: x.toarray() * y, (np.array(1.5),)),
    "mul_number": (lambda x: 2 * x, lambda x: 2 * x.toarray(), ()),
    "mul_s_v": (sparse.mul_s_v, lambda x, v: x.toarray() * v, (VECTOR5,)),
    "col_scale": (sparse.col_scale, lambda x, v: x.toarray() * v, (VECTOR5,)),
    "row_scale": (sparse.row_scale, lambda x, v: x.toarray() * v[:, None], (VECTOR4,)),
    "sum": (sparse.sp_sum, lambda x: x.sum(), ()),
    "sum_0": (lambda x: sparse.sp_sum(x, 0), lambda x: x.toarray().sum(0), ()),
    "sum_1": (lambda x: sparse.sp_sum(x, 1), lambda x: x.toarray().sum(1), ()),
    "sum_structured": (
        lambda x: sparse.sp_sum(x, 1, sparse_grad=True), lambda x: x.toarray().sum(1), ()
    ),
    "sum_0_structured": (
        lambda x: sparse.sp_sum(x, 0, sparse_grad=True), lambda x: x.toarray().sum(0), ()
    ),
    "diag": (lambda x: sparse.diag(x[0:4, 0:4]), lambda x: x.toarray()[:4, :4].diagonal(), ()),
    "square_diagonal": (sparse.square_diagonal, np.diag, None),
    "sorted": (sparse.ensure_sorted_indices, lambda x: x.toarray(), ()),
    "clean": (sparse.clean, lambda x: x.toarray(), ()),
    "hstack": (
        lambda x, y: sparse.hstack([x, y]), lambda x, y: np.hstack([x.toarray(), y.toarray()]),
        (matrix(seed=2, shape=(4, 3)),),
    ),
    "vstack": (
        lambda x, y: sparse.vstack([x, y], format="csr"),
        lambda x, y: np.vstack([x.toarray(), y.toarray()]), (matrix(seed=2, shape=(3, 5)),),
    ),
    "rows": (lambda x: x[[2, 0, 2]], lambda x: x.toarray()[[2, 0, 2]], ()),
    "elements": (
        lambda x: x[[2, 0, -1, 2], [1, 4, 0, 1]],
        lambda x: x.toarray()[[2, 0, -1, 2], [1, 4, 0, 1]], (),
    ),
    "block": (lambda x: x[1:4:2, -3:], lambda x: x.toarray()[1:4:2, -3:], ()),
    "block_of_rows": (lambda x: x[1:], lambda x: x.toarray()[1:], ()),
    "element": (lambda x: x[2, 1], lambda x: x.toarray()[2, 1], ()),
    "true_dot": (sparse.true_dot, lambda x, y: x @ y, (matrix(seed=3, shape=(5, 3)),)),
    "true_dot_dense": (sparse.true_dot, lambda x, y: x @ y, (W,)),
    "structured_dot": (sparse.structured_dot, lambda x, y: x @ y, (W,)),
    "structured_dot_s_s": (
        sparse.structured_dot, lambda x, y: (x @ y).toarray(), (matrix(seed=3, shape=(5, 3)),)
    ),
    "structured_dot_d_s": (lambda x, y: sparse.structured_dot(y.T, x.T), lambda x, y: (x @ y).T,
                           (W,)),
    "theano_dot": (T.dot, lambda x, y: x @ y, (W,)),
    "dot": (sparse.dot, lambda x, y: x @ y, (W,)),
    "dot_d_s": (lambda x, y: sparse.dot(y, x), lambda x, y: y @ x.toarray(),
                (np.linspace(0, 1, 8).reshape(2, 4),)),
    "dot_s_s": (sparse.dot, lambda x, y: (x @ y).toarray(), (matrix(seed=3, shape=(5, 3)),)),
    "dot_vector": (sparse.dot, lambda x, v: x @ v, (VECTOR5,)),
    "vector_dot": (lambda x, v: sparse.dot(v, x), lambda x, v: v @ x.toarray(), (VECTOR4,)),
    "sampling_dot": (
        lambda p, x, y: sparse.sampling_dot(x, y, p),
        lambda p, x, y: p.toarray() * (x @ y.T),
        (np.linspace(-1, 1, 8).reshape(4, 2), np.linspace(0, 2, 10).reshape(5, 2)),
    ),
    "usmm": (
        lambda x, y, z: z - np.float64(0.5) * sparse.dot(x, y),
        lambda x, y, z: z - 0.5 * (x @ y), (W, np.linspace(0, 1, 12).reshape(4, 3)),
    ),
    "z_minus_dot": (
        lambda x, y, z: z - sparse.dot(x, y), lambda x, y, z: z - x @ y,
        (W, np.linspace(0, 1, 12).reshape(4, 3)),
    ),
    "sigmoid": (
        sparse.structured_sigmoid, on_entries(lambda d: 1 / (1 + np.exp(-d))), ()
    ),
    "pow": (lambda x: sparse.structured_pow(x, 2), on_entries(lambda d: d**2), ()),
    "minimum": (
        lambda x: sparse.structured_minimum(x, 0.5), on_entries(lambda d: np.minimum(d, 0.5)), ()
    ),
    "maximum": (
        lambda x: sparse.structured_maximum(x, 0.5), on_entries(lambda d: np.maximum(d, 0.5)), ()
    ),
    "add_number": (lambda x: sparse.structured_add(x, 2), on_entries(lambda d: d + 2), ()),
    "exp": (sparse.structured_exp, on_entries(np.exp), ()),
    "log": (sparse.structured_log, on_entries(np.log), ()),
    **{
        name: (getattr(sparse, name), on_entries(getattr(np, own)), ())
        for name, own in {
            **{n: n for n in ("sin tan arcsin arctan sinh arcsinh tanh arctanh rint ceil floor "
                              "log1p expm1 deg2rad rad2deg trunc sqrt conj").split()},
            "sgn": "sign", "sqr": "square",
        }.items()
    },
}  # fmt: skip
#: operations whose result or gradient is not smooth, or that have no gradient
FLAT = {
    "sampling_dot", "block", "block_of_rows", "element", "rint", "ceil", "floor", "trunc", "sgn",
    "diag", "ones_like", "zeros_like", "conj",
}  # fmt: skip
STRUCTURED = {"add_s_v", "col_scale", "row_scale", "add_s_s_data"}


def operands(name, format="csr", dtype="float64"):
    """Return the operands of a case, the sparse ones in a format."""
    more = CASES[name][2]
    if more is None:  # a single, dense operand
        values = [VECTOR4 if name == "square_diagonal" else Y]
    else:
        values = [X, *more]
    return [
        v.asformat(format).astype(dtype) if sp.issparse(v) else np.asarray(v, dtype)
        for v in values
    ]  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_values(name, format, mode):
    build, expected, _ = CASES[name]
    values = operands(name, format)
    found, _ = run(build, *values, mode=mode)
    np.testing.assert_allclose(dense(found), dense(expected(*values)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_values_of_float32(name, mode):
    build, expected, _ = CASES[name]
    values = operands(name, "csc", "float32")
    inputs = [variable(v) for v in values]
    out = build(*inputs)
    found = theano.function(inputs, out, mode=mode)(*values)
    assert str(found.dtype) == out.dtype
    np.testing.assert_allclose(dense(found), dense(expected(*values)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_shapes(name, format):
    values = operands(name, format)
    inputs = [variable(v) for v in values]
    out = CASES[name][0](*inputs)
    for mode in ("FAST_COMPILE", "FAST_RUN"):
        value, shape = theano.function(inputs, [out, out.shape], mode=mode)(*values)
        assert tuple(shape) == value.shape


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", sorted(CASES.keys() - FLAT))
def test_gradients(name, format):
    build, _, _ = CASES[name]
    verify_grad_sparse(build, operands(name, format), structured=name in STRUCTURED)


@pytest.mark.parametrize("format", FORMATS)
def test_gradient_of_sampling_dot(format):
    p, x, y = operands("sampling_dot", format)
    fixed = sparse.as_sparse_variable(p)
    verify_grad_sparse(lambda x, y: sparse.sampling_dot(x, y, fixed), [x, y])
    with pytest.raises(theano.gradient.NullTypeGradError):
        v = variable(p)
        theano.grad(sparse.sp_sum(sparse.sampling_dot(x, y, v)), v)


@pytest.mark.parametrize("name", ["block", "element"])
def test_blocks_have_no_gradient(name):
    x = sparse.csr_matrix("x", dtype="float64")
    out = CASES[name][0](x)
    cost = sparse.sp_sum(out) if out.ndim else out
    with pytest.raises(NotImplementedError, match="has no gradient"):
        theano.grad(cost, x)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "name", ["structured_dot", "dot", "dot_d_s", "mul_s_d", "mul_s_v", "sampling_dot", "add_s_d",
             "sum_0", "sum_1", "dot_vector", "usmm", "col_scale", "row_scale"]
)  # fmt: skip
def test_entries_in_any_order_and_twice(name, format, mode):
    """Entries in no order, two in one place, and zeros count as what their matrix is."""
    build, expected, _ = CASES[name]
    values = operands(name, format)
    values[0] = matrix(format, odd=True)
    ordered = values[0].copy()
    ordered.sum_duplicates()
    found, _ = run(build, *values, mode=mode)
    wanted = dense(expected(ordered, *values[1:]))
    np.testing.assert_allclose(dense(found), wanted, rtol=1e-10, atol=1e-12)


COMPARISONS = {"eq": np.equal, "neq": np.not_equal, "lt": np.less, "gt": np.greater,
               "le": np.less_equal, "ge": np.greater_equal}  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name, format, mode):
    compare, expected = getattr(sparse, name), COMPARISONS[name]
    x, y = matrix(format), matrix(format, seed=1)
    y.data[:1] = x[y.nonzero()[0][0], y.nonzero()[1][0]]
    both, right, left = run(
        lambda x, y, d: [compare(x, y), compare(x, d), compare(d, x)], x, y, y.toarray(), mode=mode
    )[0]
    assert sp.issparse(both) and both.dtype == right.dtype == left.dtype == np.uint8
    np.testing.assert_array_equal(both.toarray(), expected(x.toarray(), y.toarray()))
    np.testing.assert_array_equal(right, expected(x.toarray(), y.toarray()))
    np.testing.assert_array_equal(left, expected(y.toarray(), x.toarray()))


def test_operators_compare():
    x, y = matrix(), matrix(seed=1)
    found, _ = run(lambda x, y: [x < y, x <= y, x > y, x >= y], x, y)
    for one, name in zip(found, ("less", "less_equal", "greater", "greater_equal"), strict=True):
        np.testing.assert_array_equal(one.toarray(), getattr(np, name)(x.toarray(), y.toarray()))


CASTS = {
    "bcast": "int8", "wcast": "int16", "icast": "int32", "lcast": "int64", "fcast": "float32",
    "dcast": "float64", "ccast": "complex64", "zcast": "complex128",
}  # fmt: skip


@pytest.mark.parametrize(("cast", "dtype"), list(CASTS.items()), ids=CASTS.values())
def test_casts(cast, dtype, mode):
    x = 10 * matrix()
    found = run(lambda x: [getattr(sparse, cast)(x), sparse.cast(x, dtype), x.astype(dtype)], x,
                mode=mode)[0]  # fmt: skip
    for one in found:
        assert one.dtype == dtype
        np.testing.assert_array_equal(one.toarray(), x.toarray().astype(dtype))


def test_gradient_of_a_cast():
    x = sparse.csr_matrix("x", dtype="float32")
    (g,) = theano.grad(sparse.sp_sum(sparse.dcast(x)), [x])
    assert g.dtype == "float32"
    found = theano.function([x], g)(matrix(dtype="float32"))
    np.testing.assert_array_equal(found.toarray(), np.ones((4, 5)))


def test_dense_gradient_of_dense_from_sparse():
    x = sparse.csr_matrix("x", dtype="float64")
    for structured in (True, False):
        out = sparse.DenseFromSparse(structured=structured)(x)
        g = theano.function([x], theano.grad((out * Y).sum(), x))(X)
        expected = Y * mask(X) if structured else Y
        np.testing.assert_allclose(g.toarray(), expected)


def test_gradient_of_rows_indexed_twice():
    x = sparse.csc_matrix("x", dtype="float64")
    g = theano.grad(sparse.sp_sum(x[[2, 0, 2]]), x)
    found = theano.function([x], g)(X.tocsc())
    np.testing.assert_array_equal(found.toarray()[:, 0], [1, 0, 2, 0])


def test_random_matrices():
    from theano.sparse.sandbox import sp2

    x = 3 * matrix()
    drawn = theano.function([], sp2.poisson(sparse.as_sparse_variable(x)))
    np.random.seed(3)
    first, second = drawn(), drawn()
    assert first.shape == x.shape and (first.data == np.round(first.data)).all()
    assert (first != second).nnz
    np.random.seed(3)
    assert (drawn() != first).nnz == 0

    n, p = T.lscalar(), T.dscalar()
    for op, format, dtype in ((sp2.csr_fbinomial, "csr", "float32"),
                              (sp2.csc_dbinomial, "csc", "float64")):  # fmt: skip
        found = theano.function([n, p], op(n, p, (30, 40)))(5, 0.25)
        assert (found.format, found.dtype, found.shape) == (format, dtype, (30, 40))
        assert found.max() <= 5 and abs(found.toarray().mean() - 1.25) < 0.2

    rows = matrix()
    rows = rows.multiply(1 / np.maximum(rows.sum(1), 1e-9)).tocsr()
    for trials, given in ((T.lscalar(), 7), (T.lvector(), np.array([7, 1, 7, 7]))):
        out = sp2.multinomial(trials, sparse.as_sparse_variable(rows))
        found = theano.function([trials], out)(given)
        np.testing.assert_array_equal(
            np.asarray(found.sum(1)).ravel(), 7 * (np.diff(rows.indptr) > 0)
        )


@pytest.mark.parametrize("mode_", ["valid", "full"])
@pytest.mark.parametrize("step", [(1, 1), (2, 2)])
def test_convolution(mode_, step):
    from scipy.signal import correlate2d

    from theano.sparse.sandbox import sp as convolution

    rng = np.random.RandomState(0)
    images, kernels, bias = rng.rand(2, 7, 6), rng.rand(3, 3, 2), np.array([0.1, 0.2, 0.3])
    x, k, b = T.dmatrix(), T.dmatrix(), T.dvector()
    out, shape = convolution.convolve(k, (3, 2), 3, x, (7, 6), step=step, bias=b, mode=mode_)
    found = theano.function([x, k, b], out)(images.reshape(2, -1), kernels.reshape(3, -1), bias)
    expected = np.array([
        [correlate2d(image, kernel, mode_)[:: step[1], :: step[0]] + c
         for kernel, c in zip(kernels, bias, strict=True)]
        for image in images
    ])  # fmt: skip
    assert tuple(shape) == expected.shape[1:]
    np.testing.assert_allclose(found, expected.reshape(2, -1))
    cost = (out**2).sum()
    assert theano.function([x, k, b], T.grad(cost, [x, k]))(
        images.reshape(2, -1), kernels.reshape(3, -1), bias
    )[0].shape == (2, 42)


def test_max_pooling():
    from theano.sparse.sandbox import sp as convolution

    image = np.random.RandomState(0).rand(1, 2, 6, 4)
    x = T.dmatrix()
    out, shape = convolution.max_pool(x, (2, 6, 4), (2, 2))
    assert tuple(shape) == (3, 2)
    found = theano.function([x], out)(image.reshape(1, -1))
    expected = image.reshape(1, 2, 3, 2, 2, 2).max(axis=(3, 5))
    np.testing.assert_array_equal(found, expected.reshape(1, -1))


def test_patches_are_refused_where_the_kernel_is_too_large():
    from theano.sparse.sandbox.sp import convolution_indices

    with pytest.raises(ValueError, match="Invalid kernel"):
        convolution_indices.conv_eval((3, 3), (4, 4))
    with pytest.raises(Exception, match="ws is obsolete"):
        convolution_indices.evaluate((3, 3), (2, 2), ws=False)
    with pytest.raises(ValueError, match="mode must be 'valid' or 'full', not 'same'"):
        convolution_indices.evaluate((3, 3), (2, 2), mode="same")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sparse.col_scale(x, np.ones(2)),
        lambda x: sparse.row_scale(x, np.ones(2)),
        lambda x: sparse.structured_dot_grad(x, T.constant(np.eye(2)), T.constant(np.eye(2))),
        sparse.sp_ones_like,
        sparse.sp_zeros_like,
    ],
    ids=["col_scale", "row_scale", "structured_dot_grad", "sp_ones_like", "sp_zeros_like"],
)
def test_functions_take_matrices_of_scipy_but_no_dense_ones(function):
    with pytest.raises(TypeError, match="must be a SparseType"):
        function(T.matrix())
    found = theano.function([], function(sp.csr_matrix(np.eye(2))))()
    assert (found.format, found.shape) == ("csr", (2, 2))


def test_elements_are_named_by_integers():
    x = sparse.csr_matrix()
    for index in (0.5, np.float64(0.5), "a"):
        with pytest.raises(NotImplementedError, match="named by two integers, not by"):
            x[index, 1]
