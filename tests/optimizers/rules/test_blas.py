"""Products of matrices and vectors: which calls of BLAS a program becomes, and what it computes."""

import re

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Mode, function, shared
from opwise.tensor import Dot
from opwise.tensor.blas import BatchedDot, CGemv, CGer, Dot22, Dot22Scalar, Gemm, Gemv, Ger

#: a program takes its operands by these names: type and shape, of lengths that tell them apart
OPERANDS = {
    "x": (T.dmatrix, (3, 4)), "y": (T.dmatrix, (4, 5)), "z": (T.dmatrix, (3, 5)),
    "w": (T.dmatrix, (3, 5)), "p": (T.dmatrix, (3, 6)), "q": (T.dmatrix, (6, 5)),
    "xt": (T.dmatrix, (4, 3)), "zt": (T.dmatrix, (5, 3)), "u": (T.dvector, (3,)),
    "v": (T.dvector, (4,)), "k": (T.dvector, (5,)), "a": (T.dscalar, ()), "b": (T.dscalar, ()),
    "f": (T.fmatrix, (3, 5)), "fx": (T.fmatrix, (3, 4)), "fy": (T.fmatrix, (4, 5)),
    "col": (T.dcol, (3, 1)), "row": (T.drow, (1, 5)), "vrow": (T.drow, (1, 4)),
    "vcol": (T.dcol, (4, 1)), "i": (T.imatrix, (3, 4)), "j": (T.imatrix, (4, 5)),
    "t": (T.dtensor3, (2, 3, 4)), "c": (T.zmatrix, (3, 4)), "d": (T.zmatrix, (4, 5)),
}  # fmt: skip

#: (program over operands and functions, calls of BLAS that it becomes)
PROGRAMS = [
    ("dot(x, y)", "Dot22"),
    ("dot(fx, fy)", "Dot22"),
    ("dot(x, y).T", "Dot22"),
    # sums with a product
    ("z + dot(x, y)", "Gemm"),
    ("dot(x, y) + z", "Gemm"),
    ("z - dot(x, y)", "Gemm"),
    ("dot(x, y) - z", "Gemm"),
    ("-dot(x, y) + z", "Gemm"),
    ("-z - dot(x, y)", "Gemm"),
    ("z + 0.5 * dot(x, y)", "Gemm"),
    ("2 * z - 3 * dot(x, y)", "Gemm"),
    ("z + a * dot(x, y)", "Gemm"),
    ("a * z + b * dot(x, y)", "Gemm"),
    ("z - a * (b * dot(x, y))", "Gemm"),
    ("a * z * 2 - dot(x, y) * 3 * a", "Gemm"),
    ("z + dot(x, y) / 4", "Gemm"),
    ("z + w + dot(x, y)", "Gemm"),
    ("z + (dot(x, y) + w)", "Gemm"),
    ("z - (w - dot(x, y))", "Gemm"),
    ("z + a * (w + dot(x, y))", "Gemm"),
    ("a * z - b * (a * dot(x, y) + b * z)", "Gemm"),
    ("a * dot(x, y) + z + b * dot(x, y)", "Gemm"),
    ("a * dot(x, y) + z + 2 * dot(x, y)", "Gemm"),
    ("a * (dot(x, y) - 2 * z)", "Gemm"),
    ("-0.5 * (z + dot(x, y))", "Gemm"),
    ("a * (u - dot(x, v))", "CGemv"),
    ("col * (z + dot(x, y))", "Gemm"),
    ("dot(x, y) + dot(p, q)", "Dot22 Gemm"),
    ("dot(x, y) - dot(p, q) + z", "Gemm Gemm"),
    ("z + dot(xt.T, y)", "Gemm"),
    ("zt.T + dot(x, y)", "Gemm"),
    ("f + 0.5 * dot(fx, fy)", "Gemm"),
    # scales
    ("0.5 * dot(x, y)", "Dot22Scalar"),
    ("a * dot(x, y) * b", "Dot22Scalar"),
    ("dot(x, y) / 2", "Dot22Scalar"),
    ("-2 * dot(x, y)", "Dot22Scalar"),
    ("z + 0.5 * (0.5 * dot(x, y))", "Gemm"),
    # vectors
    ("dot(x, v)", "CGemv"),
    ("dot(v, xt)", "CGemv"),
    ("u + dot(x, v)", "CGemv"),
    ("a * u - b * dot(x, v)", "CGemv"),
    ("k + dot(v, y)", "CGemv"),
    ("u + dot(xt.T, v)", "CGemv"),
    ("-u + dot(x, v) * 2", "CGemv"),
    # outer products
    ("z + outer(u, k)", "CGer"),
    ("z - a * outer(u, k)", "CGer"),
    ("z + 0.1 * dot(col, row)", "CGer"),
    ("outer(u, k)", ""),
    # lookalikes
    ("[z + dot(x, y), dot(x, y)]", "Dot22"),
    ("row + dot(x, y)", "Dot22"),
    ("col + dot(x, y)", "Dot22"),
    ("z + dot(vrow, y)", "Dot22"),
    ("dot(x, vcol) - z", "Dot22"),
    ("z * dot(x, y)", "Dot22"),
    ("f + dot(x, y)", "Dot22"),
    ("z + w * dot(x, y)", "Dot22"),
    ("k + dot(x, y)", "Dot22"),
    ("z + k * dot(x, y)", "Dot22"),
    ("exp(dot(x, y)) + 1", "Dot22"),
    ("dot(i, j)", "Dot"),
    ("dot(c, d)", "Dot22"),
    ("dot(i, y)", "Dot"),
    ("dot(u, dot(x, v))", "CGemv Dot"),
    ("dot(t, y)", "Dot22"),
]  # fmt: skip
#: what programs above call the Ops
BLAS = {
    Dot: "Dot", Dot22: "Dot22", Dot22Scalar: "Dot22Scalar", Gemm: "Gemm", Gemv: "Gemv",
    CGemv: "CGemv", Ger: "Ger", CGer: "CGer", BatchedDot: "BatchedDot",
}  # fmt: skip


def operands(program):
    rng = np.random.RandomState(3)
    """Return (inputs, values, outputs) of a program."""
    inputs, values = [], []
    used = [name for name in OPERANDS if re.search(rf"\b{name}\b", program)]
    for name in used:
        make, shape = OPERANDS[name]
        var = make(name)
        value = rng.uniform(-2, 2, shape)
        if var.dtype.startswith("int"):
            value = np.round(value * 3)
        if var.dtype.startswith("complex"):
            value = value + 1j * rng.uniform(-1, 1, shape)
        inputs.append(var)
        values.append(np.asarray(value, var.dtype))
    functions = {"dot": T.dot, "outer": T.outer, "exp": T.exp}
    outputs = eval(program, functions, dict(zip(used, inputs, strict=True)))
    return inputs, values, outputs if isinstance(outputs, list) else [outputs]


def calls(f):
    return sorted(BLAS[type(node.op)] for node in f.linked.order if type(node.op) in BLAS)


@pytest.mark.parametrize("linker", ["py", "c|py"])
@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_programs(program, expected, linker):
    inputs, values, outputs = operands(program)
    plain = function(inputs, outputs, mode=Mode("py", None))
    f = function(inputs, outputs, mode=Mode(linker, "fast_run"))
    assert calls(f) == sorted(expected.split())
    before = [value.copy() for value in values]
    for found, wanted in zip(f(*values), plain(*values), strict=True):
        assert found.dtype == wanted.dtype
        tolerance = 1e-5 if found.dtype in ("float32", "complex64") else 1e-12
        np.testing.assert_allclose(found, wanted, tolerance, tolerance)
    for a, b in zip(before, values, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("dot(x, y)", "Dot22"),
        ("z + 0.5 * dot(x, y)", "Dot22"),
        ("dot(x, v)", "Dot"),
    ],
)
def test_fast_compile_only_names_products(program, expected):
    inputs, values, outputs = operands(program)
    f = function(inputs, outputs, mode="FAST_COMPILE")
    assert calls(f) == [expected]
    wanted = function(inputs, outputs, mode=Mode("py", None))(*values)
    np.testing.assert_allclose(f(*values)[0], wanted[0])


def test_a_gradient_step_is_one_call():
    """What training is made of: W -= rate * x' e, in place."""
    x, e = T.dmatrices("xe")
    w = shared(np.ones((4, 5)), name="w")
    f = function([x, e], [], updates=[(w, w - 0.1 * T.dot(x.T, e))], mode=Mode("c|py", "fast_run"))
    assert calls(f) == ["Gemm"]
    (gemm,) = (n for n in f.linked.order if isinstance(n.op, Gemm))
    assert gemm.op.inplace
    value, error = np.random.rand(3, 4), np.random.rand(3, 5)
    kept = w.get_value(borrow=True)
    f(value, error)
    np.testing.assert_allclose(w.get_value(), 1 - 0.1 * value.T @ error)
    assert w.get_value(borrow=True) is kept


@pytest.mark.parametrize("shape", ["vector", "outer"])
def test_vector_steps_are_one_call(shape):
    x, e = T.dmatrix("x"), T.dvector("e")
    if shape == "vector":
        w = shared(np.ones(4), name="w")
        new = w - 0.1 * T.dot(x.T, e)
        expected = "CGemv"
    else:
        w = shared(np.ones((3, 3)), name="w")
        new = w - 0.1 * T.outer(e, e)
        expected = "CGer"
    f = function([x, e], [], updates=[(w, new)], mode=Mode("c|py", "fast_run"),
                 on_unused_input="ignore")  # fmt: skip
    assert calls(f) == [expected]
    (node,) = (n for n in f.linked.order if type(n.op) in BLAS)
    assert node.op.destroy_map
    value, error = np.random.rand(3, 4), np.random.rand(3)
    f(value, error)
    wanted = 1 - 0.1 * (value.T @ error if shape == "vector" else np.outer(error, error))
    np.testing.assert_allclose(w.get_value(), wanted)


def test_a_sum_takes_up_all_its_products():
    """As the gradient by a matrix that is used again and again."""

    def pairs(items):
        return zip(items[1::2], items[2::2], strict=True)

    matrices = [T.dmatrix() for _ in range(41)]
    total = matrices[0] + sum(T.dot(a, b) for a, b in pairs(matrices))
    f = function(matrices, total, mode=Mode("c|py", "fast_run"))
    assert [type(node.op) for node in f.linked.order] == [Gemm] * 20
    values = list(np.random.rand(41, 3, 3))
    expected = values[0] + sum(a @ b for a, b in pairs(values))
    np.testing.assert_allclose(f(*values), expected)


def test_a_product_with_two_readers_is_computed_once():
    x, y, z = T.dmatrices("xyz")
    d = T.dot(x, y)
    f = function([x, y, z], [z + d, T.exp(d)], mode=Mode("c|py", "fast_run"))
    assert calls(f) == ["Dot22"]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float32"])
@pytest.mark.parametrize("form", [
    "dot(x, y) - z - n", "dot(x, y) - n - z", "-(dot(x, y) - n + z)", "0.5 * (dot(x, y) + z - n)",
    "a * (z - n + dot(x, y))", "z - (n - dot(x, y))", "dot(x, y) - z - s",
    "3 * (dot(x, y) - z + s)",
])  # fmt: skip
def test_terms_of_other_dtypes_keep_their_values(form, dtype):
    """A term is converted before it is negated: of an int8, -(-128) is -128."""
    x, y, z = T.dmatrices("xyz")
    n, s = T.TensorType(dtype, (False, False))("n"), T.TensorType(dtype, ())("s")
    a = T.dscalar("a")
    total = eval(form, {"dot": T.dot, "x": x, "y": y, "z": z, "n": n, "a": a, "s": s})
    inputs = [x, y, z, n, s, a]
    if np.dtype(dtype).kind in "iu":
        corners = [np.iinfo(dtype).min, np.iinfo(dtype).max, 1]
    else:
        corners = [0, 1, 1]
    operands = [
        np.eye(3), np.full((3, 3), 0.25), np.full((3, 3), 0.5),
        np.array([corners] * 3, dtype), np.array(corners[1], dtype), 0.5,
    ]  # fmt: skip
    found, expected = (
        function(inputs, total, mode=mode, on_unused_input="ignore")(*operands)
        for mode in ("FAST_RUN", Mode("py", None))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_lengths_of_zero():
    x, y, z = T.dmatrices("xyz")
    v = T.dvector("v")
    f = function([x, y, z, v], [z + T.dot(x, y), T.dot(x, v)], mode=Mode("c|py", "fast_run"))
    z0 = np.random.rand(3, 5)
    total, product = f(np.ones((3, 0)), np.ones((0, 5)), z0, np.ones(0))
    np.testing.assert_array_equal(total, z0)
    np.testing.assert_array_equal(product, np.zeros(3))


def test_uninitialised_memory_does_not_reach_the_result():
    """gemv adds into fresh memory with a scale of zero: NaN there must not count."""
    x, v = T.dmatrix("x"), T.dvector("v")
    f = function([x, v], T.dot(x, v), mode=Mode("c|py", "fast_run"))
    for n in (2, 200):
        rubbish = [np.full(n, np.nan) for _ in range(20)]
        del rubbish
        np.testing.assert_array_equal(f(np.ones((n, n)), np.ones(n)), np.full(n, float(n)))


def test_a_mismatch_is_told_by_the_call():
    x, y, z = T.dmatrices("xyz")
    f = function([x, y, z], z + T.dot(x, y), mode=Mode("c|py", "fast_run"))
    with pytest.raises(ValueError, match=r"Shape mismatch.*\n.*Gemm"):
        f(np.ones((3, 4)), np.ones((5, 3)), np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"z has shape \(2, 3\) but the product has \(3, 3\)"):
        f(np.ones((3, 4)), np.ones((4, 3)), np.ones((2, 3)))
