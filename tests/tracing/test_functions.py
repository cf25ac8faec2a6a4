"""numpy's functions on traced arrays: values, dtypes, shapes and errors are numpy's."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import opwise


def _neighbour(name):
    """Return a module of this folder, which is no package."""
    whole = f"tracing_{name}"
    if whole not in sys.modules:
        spec = importlib.util.spec_from_file_location(whole, Path(__file__).with_name(f"{name}.py"))
        sys.modules[whole] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[whole])
    return sys.modules[whole]


cases, oracle = _neighbour("cases"), _neighbour("oracle")

pytestmark = [
    pytest.mark.null,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning"),
]

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
DTYPES = ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]
FEW = ["bool", "uint8", "int64", "float32", "float64", "complex128"]


def sample(dtype, *shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype).kind
    values = rng.integers(0, 5, shape) if kind in "biu" else rng.normal(size=shape) * 2
    if kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return values.astype(dtype)


def corners(dtype):
    """Return two arrays with the values at which operations are special."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([True, False, True, False]), np.array([True, True, False, False])
    if kind == "u":
        return np.array([0, 1, 7, 200, 3], dtype), np.array([0, 3, 2, 5, 3], dtype)
    if kind == "i":
        return np.array([0, -7, 7, 100, -128], dtype), np.array([0, 3, -2, 5, -1], dtype)
    if kind == "f":
        one = [0.0, -1.5, 0.5, np.inf, np.nan, 2.5, 3, -3, 7.25, -np.inf, np.inf]
        two = [0.0, 0.5, -2.5, 3, 1, -0.75, np.nan, 2, -np.inf, -np.inf, np.inf]
        return np.array(one, dtype), np.array(two, dtype)
    one = [0, 1 + 2j, -0.5j, 2.5 - 1j, 3]
    two = [1j, 0.5 + 0.25j, -1 - 1j, 2, 0.5j]
    return np.array(one, dtype), np.array(two, dtype)


def report(found):
    assert not found, "\n".join(found)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise(dtype):
    x, y = corners(dtype)
    report(oracle.check(cases.ELEMENTWISE, x=x, y=y))


def test_integers_of_unequal_signs_compare_exactly():
    x = np.array([-1, 0, 2**62], "int64")
    y = np.array([2**63 + 1, 0, 2**62], "uint64")
    texts = [f"x {o} y" for o in ("<", "<=", "==", "!=", ">", ">=")] + [
        "y < -1",
        "y == 2**64",
        "x < 2**70",
    ]
    report(oracle.check(texts, x=x, y=y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype):
    texts = cases.REDUCTIONS
    if dtype.startswith("complex"):
        texts = [t for t in texts if "nan_to_num" not in t]
    found = oracle.check(
        texts, x=sample(dtype, 3, 4), y=sample(dtype, 3, 4, seed=1), m=sample("bool", 3, 4)
    )
    report(found)


def _added(x):
    return x.sum(0) + np.prod(x)


def _gradient(x):
    return opwise.grad(lambda y: np.exp(np.ones((9, 1, 3), np.float32) * y).sum())(x)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(_added, "float32"), (_added, "complex64"), (_gradient, "float32"), (_added, "float64")],
)
def test_sums_accumulate_in_the_dtype_that_numpys_do(function, dtype):
    compiled = opwise.jit(function)
    compiled(np.linspace(0.5, 1.5, 12).reshape(4, 3).astype(dtype))
    (signature,) = compiled.signatures
    text = opwise.printing.debugprint(signature.compiled, file="str")
    assert set(re.findall(r"acc_dtype=(\w+)", text)) == {dtype}


@pytest.mark.parametrize("dtype", FEW)
def test_shapes(dtype):
    texts = cases.SHAPES
    if dtype == "float32":  # a scalar of the array is a Python float to numpy's linspace
        texts = [t for t in texts if "linspace" not in t]
    found = oracle.check(
        texts, x=sample(dtype, 3, 4), y=sample(dtype, 3, 4, seed=1), v=sample(dtype, 4),
        z=sample(dtype, 2, 3, 4),
    )  # fmt: skip
    report(found)


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_functions_that_numpy_has_in_python(dtype):
    found = oracle.check_converted(
        cases.IN_PYTHON, x=sample(dtype, 3, 4), y=sample(dtype, 3, 4, seed=1), v=sample(dtype, 7),
        s=sample(dtype, 4, 4), i=np.array([0, 2, 1, 2]),
    )  # fmt: skip
    report(found)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float64"])
def test_indices(dtype):
    report(
        oracle.check(
            cases.INDICES, x=sample(dtype, 3, 4), z=sample(dtype, 3, 4, 3), i=np.array([0, 2, 1])
        )
    )


@pytest.mark.parametrize("dtype", FEW)
def test_linear_algebra(dtype):
    square = sample(dtype, 4, 4)
    positive = (square @ square.T.conj() + np.eye(4) * 5).astype(dtype)
    found = oracle.check(
        cases.LINEAR, a=sample(dtype, 3, 4), b=sample(dtype, 4, 5), s=square, p=positive,
        v=sample(dtype, 4), w=sample(dtype, 3), t=sample(dtype, 2, 3, 3),
    )  # fmt: skip
    report(found)


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (1, 4), (3, 0), (5, 1)])
def test_lengths_of_0_and_1(shape):
    x, y = sample("float64", *shape), sample("float64", *shape, seed=1)
    texts = [
        *cases.ELEMENTWISE[:60], *cases.REDUCTIONS,
        *(t for t in cases.SHAPES if "z" not in t and "v" not in t),
        *(t for t in cases.INDICES if "z" not in t and "i]" not in t and "i," not in t),
    ]  # fmt: skip
    if 0 in shape:  # numpy divides Python numbers there
        texts = [t for t in texts if "average" not in t and "include_initial" not in t]
    report(oracle.check([*texts, "x + x[:1]", "x[:, :1] * x"], x=x, y=y, m=x > 0, i=np.array([0])))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float64", "complex128"])
def test_writes(dtype):
    texts = cases.WRITES
    if dtype == "bool":  # numpy adds booleans to 1 as integers, and rounds each sum
        texts = [t for t in texts if ".at(" not in t]
    found = oracle.check_statements(
        texts, x=sample(dtype, 4, 4), y=sample(dtype, 4, 4, seed=1), v=sample(dtype, 4),
        i=np.array([0, 2, 1, 2]),
    )  # fmt: skip
    report(found)


@pytest.mark.parametrize("order", ["F", "strided", "reversed"])
def test_writes_into_arrays_of_other_layouts(order):
    x = sample("float64", 4, 4)
    x = {"F": np.asfortranarray(x), "strided": sample("float64", 8, 8)[::2, ::2]}.get(
        order, x[::-1, ::-1]
    )

    def change(x):
        x[0] += 1
        x[:, 1] = x[:, 2]
        x.T[3] *= 2
        return x.sum()

    from opwise import jit

    given, expected = x.copy(order="K"), x.copy()
    if order != "F":
        given = np.zeros((8, 8))[::2, ::2]
        given[...] = x
    assert np.isclose(jit(change)(given), change(expected))
    assert np.array_equal(given, expected)


def test_what_is_real_or_complex_as_the_values_decide():
    symmetric, turning = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0.0, -1.0], [1.0, 0.0]])

    def largest(m):
        values, vectors = np.linalg.eig(m)
        return values, vectors, np.abs(np.linalg.eigvals(2 * m)).max()

    g = opwise.jit(largest)
    for m in (symmetric, turning, turning, np.eye(3), symmetric.astype(np.float32), turning * 1j):
        for a, b in zip(g(m), largest(m), strict=True):
            assert a.dtype == b.dtype and np.allclose(a, b, atol=1e-6)
    assert type(opwise.jit(np.linalg.eig)(symmetric)) is type(np.linalg.eig(symmetric))
    roots = opwise.jit(np.roots)
    for p in ([1.0, -3, 2], [0, 1.0, 0, 1, 0], [1, 0, -1], [1, 0, 4], [0.0, 0.0], [2.0]):
        a, b = roots(np.array(p)), np.roots(np.array(p))
        assert a.dtype == b.dtype and np.allclose(a, b)

    def steps(m, n):
        total = 0.0
        for k in range(n):
            total += np.abs(np.linalg.eigvals(m + k)).max()
        return total

    for m in (symmetric, turning):
        assert np.isclose(opwise.jit(steps)(m, 20), steps(m, 20))


def test_types_of_numbers():
    def parts(a):
        return a.real, a.imag, np.real(a), np.imag(a), max(a, 2.5), max(3, a), min(a, 1)

    def ranges(a):
        return np.arange(a), np.arange(0, a), np.arange(a, 10, 2), list(np.arange(a))

    for a in (3, 2, 2.5, 4.0):
        expected, result = parts(a), opwise.jit(parts)(a)
        assert [(type(v), v) for v in expected] == [(type(v), v) for v in result]
    for a in (np.int32(3), np.uint8(3), np.uint64(3), np.float32(3), np.float64(2.5), 3):
        for one, two in zip(ranges(a), opwise.jit(ranges)(a), strict=True):
            assert np.array_equal(one, two) and np.asarray(one).dtype == np.asarray(two).dtype
