"""Products with sparse matrices on a device: the matrix is the host's, its vectors are copied."""

import numpy as np
import pytest
import scipy.sparse

import opwise
import opwise.tensor as T
from opwise import Mode, sparse
from opwise.gpu.kernels import layouts as layouts_of
from opwise.gpu.kernels.kernel import DeviceLimits, Layout
from opwise.gpu.lowering import lower
from opwise.gpu.placement.placement import Placement
from opwise.gpu.placement.transfers import GpuFromHost, HostFromGpu
from opwise.sparse import StructuredDotCSR, sd_csr
from opwise.sparse.compressed import CSRFromCSC, csr_from_csc
from opwise.tensor import TensorType

RNG = np.random.default_rng(4)


def vector(dtype):
    return TensorType(dtype, (False,))()


def nodes():
    made = {}
    for dtype in ("float32", "float64"):
        for indices, indptr in (("int32", "int32"), ("int64", "int32"), ("int32", "int64")):
            vectors = vector(dtype), vector(indices), vector(indptr)
            b = TensorType(dtype, (False, False))()
            made[f"{dtype} {indices} {indptr}"] = sd_csr(*vectors, b).owner
    made["columns"] = sd_csr(
        vector("float32"), vector("int32"), vector("int32"), T.fmatrix(), T.iscalar()
    ).owner
    return made


@pytest.fixture(scope="module")
def kernels(simulate):
    return simulate(nodes())


def matrix(rows, columns, density=0.3, dtype="float32", format="csr"):
    return scipy.sparse.random(
        rows, columns, density, format, dtype, random_state=np.random.RandomState(rows)
    )


def values(a, b, dtypes="float32 int32 int32"):
    dtype, indices, indptr = dtypes.split()
    vectors = a.data.astype(dtype), a.indices.astype(indices), a.indptr.astype(indptr)
    return [*vectors, b.astype(dtype)]


def check(kernels, name, given, order=0):
    found, wrong = kernels.run(name, given, order)
    assert not wrong
    np.testing.assert_allclose(found[0], kernels.expected(name, given)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in nodes() if name != "columns"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (40, 30, 7), (1, 100, 1), (300, 9, 3), (5, 4, 0)])
def test_products(kernels, name, shape):
    rows, inner, columns = shape
    given = values(matrix(rows, inner), RNG.normal(size=(inner, columns)), name)
    for order in (0, 1):
        check(kernels, name, given, order)


def test_empty_matrices(kernels):
    for a in (matrix(4, 5, 0), matrix(0, 5), matrix(4, 0)):
        check(kernels, "float32 int32 int32", values(a, np.ones((a.shape[1], 3))))


def test_layouts(kernels, layouts):
    for _, given in layouts(values(matrix(9, 8), RNG.normal(size=(8, 6)))):
        check(kernels, "float32 int32 int32", given)


def test_entries_in_one_place_and_entries_of_no_row(kernels):
    given = [np.arange(1, 7, dtype="float32"), np.array([1, 1, 0, 2, 9, 9], "int32"),
             np.array([0, 3, 4], "int32"), RNG.normal(size=(3, 2)).astype("float32")]  # fmt: skip
    check(kernels, "float32 int32 int32", given)


MALFORMED = {
    "an index beyond": (1, [0, 3, 1], "from 0 to 2"),
    "a negative index": (1, [0, -1, 1], "from 0 to 2"),
    "indptr that falls": (2, [0, 3, 2], "rise from 0"),
    "indptr beyond the entries": (2, [0, 1, 4], "index pointer"),
    "negative indptr": (2, [-1, 1, 3], "index pointer"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_matrices(kernels, name):
    position, wrong, text = MALFORMED[name]
    given = [np.ones(3, "float32"), np.array([0, 1, 2], "int32"), np.array([0, 1, 3], "int32"),
             np.ones((3, 2), "float32")]  # fmt: skip
    given[position] = np.array(wrong, "int32")
    _, flag = kernels.run("float32 int32 int32", given)
    assert flag
    error = kernels.made["float32 int32 int32"].wrong(0, given)
    with pytest.raises(ValueError, match=text):
        raise error


def test_refused_shapes(kernels):
    given = values(matrix(3, 4), np.ones((5, 2)))
    for run in (kernels.run, kernels.expected):
        with pytest.raises(ValueError, match="shape mismatch"):
            run("columns", [*given, np.int32(4)])
        with pytest.raises(ValueError, match="indptr is empty"):
            run("columns", [*given[:2], given[2][:0], given[3], np.int32(5)])


def test_indices_of_64_bits(simulate, monkeypatch):
    name = "float32 int64 int32"
    kernels = simulate({name: nodes()[name]}, wide=True)
    monkeypatch.setattr(layouts_of, "LIMIT_32", 0)
    check(kernels, name, values(matrix(9, 8), RNG.normal(size=(8, 6)), name))


def test_huge_matrices():
    made = lower(nodes()["float32 int32 int32"])
    inputs = [*(Layout.contiguous((n,), 4) for n in (9, 9, 2**22 + 1)),
              Layout.contiguous((5, 2**12), 4)]  # fmt: skip
    (shape,) = made.shapes(inputs)
    (launch,) = made.plan(inputs, [Layout.contiguous(shape, 4)], DeviceLimits()).launches
    assert launch.kernel.wide


def test_dtypes_that_stay_on_the_host():
    b = T.lmatrix()
    found = lower(sd_csr(vector("int64"), vector("int32"), vector("int32"), b).owner)
    assert found == "there is no kernel for a sparse matrix of int64 times one of int64"
    found = lower(sd_csr(vector("float32"), vector("int8"), vector("int32"), T.fmatrix()).owner)
    assert found == "there is no kernel for a sparse matrix with indices of int8, int32"


# --- functions ----------------------------------------------------------------------------------


def test_csr_from_csc():
    a = matrix(7, 9, format="csc")
    inputs = [vector("float32"), vector("int32"), vector("int32"), T.lscalar(), T.lscalar()]
    f = opwise.function(inputs, csr_from_csc(*inputs))
    found = scipy.sparse.csr_matrix(tuple(f(a.data, a.indices, a.indptr, 7, 9)), shape=a.shape)
    np.testing.assert_array_equal(found.toarray(), a.toarray())
    with pytest.raises(ValueError, match="malformed"):
        f(a.data, a.indices + 7, a.indptr, 7, 9)
    with pytest.raises(ValueError, match="indptr has 10 elements"):
        f(a.data, a.indices, a.indptr, 7, 8)


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("product", [sparse.dot, sparse.structured_dot])
def test_training(cupy, make, product):
    """Parameters stay on the device; each step copies the vectors of its matrix, and no other."""
    format = make.__name__[:3]
    data = [matrix(20, 50, dtype="float32", format=format) for _ in range(3)]
    targets = RNG.normal(size=(20, 4)).astype("float32")

    def made(mode):
        x, t = make("x", dtype="float32"), T.fmatrix("t")
        w = opwise.shared(np.ones((50, 4), "float32") / 50, "w")
        cost = T.sqr(T.tanh(product(x, w)) - t).sum()
        updates = [(w, w - np.float32(0.05) * T.grad(cost, w))]
        return opwise.function([x, t], updates=updates, mode=mode), w

    (there, w), (here, expected) = made(Mode("cupy", "fast_run")), made(None)
    order, placed = there.linked.order, there.maker.fgraph.find_feature(Placement).lowered
    products = [n for n in order if isinstance(n.op, StructuredDotCSR)]
    assert len(products) == 2 and all(n in placed for n in products)
    assert sum(isinstance(n.op, CSRFromCSC) for n in order) == 1
    assert not any(isinstance(n.op, HostFromGpu) for n in order)
    copied = [n.outputs[0].type.ndim for n in order if isinstance(n.op, GpuFromHost)]
    assert sorted(copied) == [*[1] * (len(copied) - 1), 2]
    for a in data:
        there(a, targets), here(a, targets)
        np.testing.assert_allclose(w.get_value(), expected.get_value(), rtol=1e-4, atol=1e-6)


def test_a_malformed_matrix_raises_and_changes_nothing(cupy):
    vectors = [vector("float32"), vector("int32"), vector("int32")]
    w = opwise.shared(np.ones((4, 2), "float32"), "w")
    product = sd_csr(*vectors, T.exp(w))
    f = opwise.function(vectors, updates=[(w, w + product.sum())], mode=Mode("cupy", "fast_run"))
    data, indptr = np.ones(2, "float32"), np.array([0, 1, 2], "int32")
    for _ in range(3):
        before = w.get_value()
        with pytest.raises(ValueError, match="its indices must be from 0 to 3"):
            f(data, np.array([0, 4], "int32"), indptr)
        np.testing.assert_array_equal(w.get_value(), before)
        f(data, np.array([0, 3], "int32"), indptr)
        w.set_value(np.ones((4, 2), "float32"))
