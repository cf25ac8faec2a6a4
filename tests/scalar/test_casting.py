"""Casts of floats that do not fit into an integer: the same values in every mode, numpy's."""

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function, shared
from opwise.scalar import ScalarConstant, casting, dtypes, get_scalar_type
from opwise.scalar.op import cast_op
from opwise.testing import CONFIGURATIONS
from opwise.testing.configurations import mode_of

FLOATS = ("float16", "float32", "float64")
TARGETS = (*dtypes.INTEGERS, "bool")
PAIRS = [(a, b) for a in FLOATS for b in TARGETS]

SPECIAL = [0.0, -0.0, 0.9, -0.9, -1.0, -3.5, np.nan, np.inf, -np.inf, 1e30, -1e30, 300.9, -200.7]
SPECIAL += [
    sign * (2.0**power + more)
    for power in (7, 8, 15, 16, 31, 32, 33, 40, 53, 62, 63, 64, 65)
    for sign in (1, -1)
    for more in (-(2.0 ** (power - 11)), -1.5, -1, -0.5, 0, 0.5, 1, 5, 2.0 ** (power - 9))
]
#: what numpy makes of some numbers on x86-64, written out; uint32 as of single numbers
WRITTEN = {
    "int8": {-1.0: -1, -3.5: -3, 127.0: 127, 128.0: -128, 300.9: 44, 2.0**40: 0, np.nan: 0},
    "uint8": {-1.0: 255, -3.5: 253, 255.0: 255, 256.0: 0, 300.9: 44, -np.inf: 0, np.nan: 0},
    "int16": {-1.0: -1, 32768.0: -32768, 70000.0: 4464, 1e30: 0, np.nan: 0},
    "uint16": {-1.0: 65535, -3.5: 65533, 65536.0: 0, 70000.0: 4464, np.inf: 0},
    "int32": {-3.5: -3, 2.0**31: -(2**31), -(2.0**31): -(2**31), 1e30: -(2**31), np.nan: -(2**31)},
    "uint32": {-1.0: 2**32 - 1, -3.5: 2**32 - 3, 2.0**31: 2**31, 2.0**32: 0, 2.0**33: 0,
               -(2.0**31) * 3: 2**31, 2.0**63: 0, np.inf: 0, np.nan: 0},
    "int64": {-3.5: -3, 2.0**40: 2**40, 2.0**63: -(2**63), -1e30: -(2**63), np.nan: -(2**63)},
    "uint64": {-1.0: 2**64 - 1, -3.5: 2**64 - 3, 2.0**63: 2**63, 2.0**64 - 2.0**40: 2**64 - 2**40,
               2.0**64: 0, 1e30: 0, -1e30: 2**63, -np.inf: 2**63, np.inf: 0, np.nan: 2**63},
    "bool": {0.0: False, 0.1: True, -3.5: True, np.nan: True},
}  # fmt: skip


def special(dtype):
    """Return special numbers, more than a chunk of a vector loop takes at once."""
    with np.errstate(all="ignore"):
        return np.resize(np.array(SPECIAL).astype(dtype), 3 * len(SPECIAL) + 5)


def expected(x, dtype):
    """Return the cast of an array, each number by itself, in whole numbers of Python."""
    if dtype == "bool":
        return x != 0
    bits, signed = np.iinfo(dtype).bits, dtype.startswith("int")
    wide = 32 if bits < 32 or dtype == "int32" else 64

    def one(value):
        value = float(value)
        whole = int(value) if np.isfinite(value) else None
        if dtype == "uint64" and value >= 2.0**63:
            whole = None if whole is None or whole >= 2**64 else whole - 2**63
            low = -(2**63) if whole is None else whole
            return (low + 2**63) % 2**64
        if whole is None or not -(2 ** (wide - 1)) <= whole < 2 ** (wide - 1):
            whole = -(2 ** (wide - 1))
        whole %= 2**bits
        return whole - 2**bits if signed and whole >= 2 ** (bits - 1) else whole

    return np.array([one(value) for value in x.ravel()], dtype).reshape(x.shape)


@pytest.mark.null
@pytest.mark.parametrize(("dtype", "values"), WRITTEN.items())
def test_written_out(dtype, values):
    x = np.array(list(values))
    with np.errstate(all="ignore"):
        assert casting.cast(x, dtype).tolist() == list(values.values())
    np.testing.assert_array_equal(expected(x, dtype), np.array(list(values.values()), dtype))


@pytest.mark.null
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_cast(source, target):
    """Whatever the layout, and on processors whose conversions give other numbers too."""
    x = special(source)
    wanted = expected(x, target)
    with np.errstate(all="ignore"):
        for layout in (x, np.repeat(x, 3)[::3], x[::-1]):
            result = casting.cast(layout, target)
            assert result.dtype == target
            np.testing.assert_array_equal(result, expected(layout, target))
        assert [casting.cast(v, target)[()] for v in map(np.asarray, x)] == wanted.tolist()
        if target != "bool":
            portable = casting.truncated(x, np.dtype(target))
            assert portable.dtype == target
            np.testing.assert_array_equal(portable, wanted)
            # numpy has these values itself, but where it depends on the layout
            if target != "uint32" and casting._NUMPY_AGREES:
                np.testing.assert_array_equal(x.astype(target), wanted)


@pytest.mark.null
def test_numbers_and_what_is_no_float():
    assert cast_op("uint8").impl(-1.0) == 255 and type(cast_op("uint8").impl(-1.0)) is np.uint8
    assert cast_op("int32").impl(np.float32("nan")) == -(2**31)
    x = np.array([-1, 300], "int64")
    np.testing.assert_array_equal(casting.cast(x, "uint8"), x.astype("uint8"))
    np.testing.assert_array_equal(casting.cast(x, np.float32), x.astype("float32"))


@pytest.mark.c
@pytest.mark.parametrize("way", CONFIGURATIONS)
@pytest.mark.parametrize("source", FLOATS)
def test_every_way(way, source):
    """A cast alone, one that is fused, of a matrix by columns, of a number, folded and set."""
    x, m, s = (T.TensorType(source, [False] * ndim)() for ndim in (1, 2, 0))
    given = special(source)
    matrix = np.asfortranarray(given[:84].reshape(12, 7))
    outputs, wanted = [], []
    for target in TARGETS:
        outputs += [T.cast(x, target), T.cast(m.T, target), T.cast(s, target)]
        wanted += [expected(v, target) for v in (given, matrix.T, given[5])]
        if target != "bool":
            outputs += [~T.cast(x * 2, target), T.cast(T.constant(given), target)]
            with np.errstate(all="ignore"):
                doubled = expected(given * given.dtype.type(2), target)
            wanted += [~doubled, expected(given, target)]
    f = function([x, m, s], outputs, mode=mode_of(way))
    for out, result, value in zip(outputs, f(given, matrix, given[5]), wanted, strict=True):
        assert result.dtype == out.type.dtype
        np.testing.assert_array_equal(result, value, err_msg=str(out.owner))


@pytest.mark.c
@pytest.mark.parametrize("way", CONFIGURATIONS)
def test_updates_and_reductions_of_casts(way):
    """What is cast goes into sums, lookups and shared variables."""
    x = T.dvector()
    given = np.array([-1.0, -3.5, 2.0, 2.0**31 + 5, np.nan, 1e30])
    state = shared(np.zeros(6, "uint64"))
    narrow = T.cast(x, "uint8")
    outputs = [narrow.sum(), narrow.max(), T.arange(1000)[narrow], T.cast(x, "uint32").sum()]
    f = function([x], outputs, updates=[(state, T.cast(x, "uint64"))], mode=mode_of(way))
    total, most, looked_up, wide = f(given)
    bytes_ = expected(given, "uint8")
    assert (
        total == bytes_.sum() and most == bytes_.max() and wide == expected(given, "uint32").sum()
    )
    np.testing.assert_array_equal(looked_up, bytes_)
    np.testing.assert_array_equal(state.get_value(), expected(given, "uint64"))


def test_scalar_variables_have_the_methods_of_tensors():
    x = get_scalar_type("float64")("x")
    assert x.astype("int8").dtype == "int8"
    assert ScalarConstant(get_scalar_type("float64"), 2.0).astype("float32").dtype == "float32"
    assert (x.zeros_like().dtype, x.ones_like("float32").dtype) == ("float64", "float32")
    assert str(x.zeros_like().owner) == "second(x, Constant{0.0})"
