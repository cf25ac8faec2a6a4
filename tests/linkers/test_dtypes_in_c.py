"""Elementwise operations and reductions of float16 and complex numbers: what runs in C, values."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.scalar import csource, dtypes
from opwise.scalar.op import OPS
from opwise.scalar.spec import ROWS
from opwise.tensor import Elemwise, TensorType

SPECIAL = ("float16", "complex64", "complex128")
#: rows that have no C for complex numbers, though they are defined for them
PYTHON = set(
    """int_div mod sgn ceil floor trunc clip exp2 scalar_sigmoid scalar_softplus scalar_softsign
    ultra_fast_scalar_sigmoid erf gamma gammaln psi tri_gamma gammainc gammaincc gammal gammau j0
    j1 jv i0 i1 iv xlogx xlogy0 arctan2 deg2rad rad2deg""".split()
)
#: rows that have no C for float16
PYTHON_HALF = {"angle", "gammal", "gammau"}
_PARTS = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-4, np.inf, -np.inf, np.nan]


def variable(dtype, ndim=1):
    return TensorType(dtype, (False,) * ndim)()


def defined(name, dtype):
    """Return the number of operands of a row, or None if it is not defined for a dtype."""
    row = ROWS[name]
    n = 2 if row.nin < 0 else row.nin
    try:
        OPS[name].output_dtypes([dtype] * n)
    except TypeError:
        return None
    return n


@pytest.mark.null
@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_every_operation_that_has_c_for_a_dtype_runs_in_c(run_with, dtype):
    """Of each row and dtype; the built-in loops are the same as those of kernels."""
    in_python = set()
    for name, row in ROWS.items():
        n = defined(name, dtype)
        if n is None:
            continue
        operands = [variable(dtype) for _ in range(n)]
        _, linked = run_with(operands, [Elemwise(OPS[name])(*operands)], c=True)
        if not linked.in_c[0]:
            in_python.add(name)
        text = csource.step_c(
            OPS[name], ["x"] * n, [dtype] * n, OPS[name].output_dtypes([dtype] * n)[0]
        )
        assert linked.in_c[0] == (text is not None), (name, row)
    if dtype in dtypes.COMPLEX:
        assert in_python <= PYTHON
    if dtype == "float16":
        assert in_python == PYTHON_HALF


def numbers(dtype, n, seed):
    """Return random numbers of a dtype; the first ones are special."""
    rng = np.random.RandomState(seed)
    real = dtypes.real_part(dtype)
    parts = rng.uniform(-3, 3, (2, n))
    parts[:, : len(_PARTS)] = rng.permutation(_PARTS), rng.permutation(_PARTS)
    if dtype in dtypes.COMPLEX:
        result = np.empty(n, dtype)
        result.real, result.imag = parts.astype(real)
        return result
    return parts[0].astype(dtype)


#: float16: within one rounding of functions; sums and products of two are exact
TOLERANCES = {"float16": 2e-3, "float32": 1e-5, "complex64": 2e-5}
#: whose values at infinities are those of the C library, as for floats of more bits
_OTHER_AT_INFINITY = {"i0", "i1", "j0", "j1"}


def assert_equal(found, expected, case):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), case
    tolerance = TOLERANCES.get(expected.dtype.name, 1e-9)
    for part in ("real", "imag"):
        np.testing.assert_allclose(
            getattr(found, part), getattr(expected, part), rtol=tolerance, atol=tolerance,
            err_msg=str(case),
        )  # fmt: skip


def rows_of(dtype):
    return [name for name in ROWS if defined(name, dtype) and csource.step_c(
        OPS[name], ["x"] * defined(name, dtype), [dtype] * defined(name, dtype),
        OPS[name].output_dtypes([dtype] * defined(name, dtype))[0],
    ) is not None and name not in _OTHER_AT_INFINITY | {"second"}]  # fmt: skip


@pytest.mark.parametrize("dtype", SPECIAL)
@pytest.mark.parametrize("generate", [False, True])
def test_values_are_those_of_perform(run_with, dtype, generate):
    """All operations in one function: on built-in loops, and as kernels."""
    names = [name for name in rows_of(dtype) if name not in PYTHON]
    operands = [variable(dtype) for _ in range(4)]
    outputs = [Elemwise(OPS[name])(*operands[: defined(name, dtype)]) for name in names]
    run, linked = run_with(operands, outputs, c=True, generate=generate)
    assert all(linked.in_c)
    expect, _ = run_with(operands, outputs, c=False)
    arrays = [numbers(dtype, 1030, seed) for seed in range(4)]
    with np.errstate(all="ignore"):
        expected = [a.copy() for a in expect(*arrays)]
    for name, found, want in zip(names, run(*arrays), expected, strict=True):
        if name == "zeta":  # scipy gives NaN where all terms are 0
            want = np.where(np.isinf(arrays[0]), found, want)
        assert_equal(found, want, (name, dtype, generate))


@pytest.mark.null
def test_every_float16_is_read_rounded_and_stored(run_with):
    """The casts from and to float16 of all its numbers, and of those halfway between them."""
    x, y, z = variable("float16"), variable("float32"), variable("float64")
    every = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    run, _ = run_with([x], [T.cast(x, "float32"), T.cast(x, "float64")], c=True)
    for found in run(every):
        np.testing.assert_array_equal(found, every.astype(found.dtype))
    finite = np.sort(every[np.isfinite(every)].astype(np.float64))
    between = (finite[:-1] + finite[1:]) / 2
    wide = np.concatenate([
        finite, between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf),
        [65519.999, 65520, 65536, 1e6, -1e9, 1e300, np.inf, -np.inf, np.nan, 1e-30, -1e-300],
    ])  # fmt: skip
    with np.errstate(over="ignore"):
        run, _ = run_with([z], [T.cast(z, "float16")], c=True)
        np.testing.assert_array_equal(
            run(wide)[0].view("u2") & 0x7FFF | (wide < 0) << 15,
            wide.astype("float16").view("u2") & 0x7FFF | (wide < 0) << 15,
        )
        run, _ = run_with([y], [T.cast(y, "float16")], c=True)
        narrow = wide.astype(np.float32)
        np.testing.assert_array_equal(run(narrow)[0], narrow.astype("float16"))


def test_float16_is_rounded_after_each_operation():
    """As in numpy: the sum of three is not that of float rounded once."""
    x, y, z = (variable("float16") for _ in range(3))
    f = function([x, y, z], x * y + z - x)
    assert len(f.maker.fgraph.apply_nodes) == 1
    rng = np.random.RandomState(0)
    a, b, c = (rng.uniform(-100, 100, 5000).astype("float16") for _ in range(3))
    np.testing.assert_array_equal(f(a, b, c), a * b + c - a)


@pytest.mark.parametrize("dtype", SPECIAL)
def test_reductions(layouts, dtype):
    x = variable(dtype, 2)
    wide = {"float16": "float32"}.get(dtype, "complex128")
    cases = [
        (name, axis, function([x], getattr(T, name)(x, axis=axis)))
        for name in ("sum", "prod", "max", "min", "any")
        for axis in (None, 0, 1)
        if not (name == "min" and dtype in dtypes.COMPLEX)
    ]
    assert all(all(f.linked.in_c) for _, _, f in cases)
    for shape in ((5, 7), (40, 33), (3, 1100)):
        array = numbers(dtype, shape[0] * shape[1] + 9, 1)[9:].reshape(shape)
        array = array / np.abs(array).astype(dtype)
        for _, (laid,) in layouts([array]):
            for name, axis, f in cases:
                sums = name in ("sum", "prod")
                expected = getattr(np, name)(laid.astype(wide) if sums else laid, axis=axis)
                expected = np.asarray(expected, bool if name == "any" else dtype)
                assert_equal(f(laid), expected, (name, axis, shape))


def test_the_largest_complex_number_is_that_of_numpy():
    x = variable("complex128")
    f = function([x], T.max(x))
    for values in ([1 + 2j, 1 + 3j, 0.5 + 9j], [2, complex(np.nan, 1), 3], [1, complex(2, np.nan)]):
        array = np.array(values, "complex128")
        np.testing.assert_array_equal(f(array), array.max())
