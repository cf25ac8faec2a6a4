"""Rules on dtypes. The rules of the scalar rows themselves are in test_rows.py."""

import itertools

import numpy as np
import pytest

from opwise.config import config
from opwise.scalar import dtypes

pytestmark = pytest.mark.null

# The dtype of x + y, recorded from Theano 1.0.5: rows x, columns y.
ADD = """
     b    i8   i16  i32  i64  u8   u16  u32  u64  f16  f32  f64  c64
b    b    i8   i16  i32  i64  u8   u16  u32  u64  f16  f32  f64  c64
i8   i8   i8   i16  i32  i64  i16  i32  i64  f64  f16  f32  f64  c64
i16  i16  i16  i16  i32  i64  i16  i32  i64  f64  f32  f32  f64  c64
i32  i32  i32  i32  i32  i64  i32  i32  i64  f64  f64  f64  f64  c128
i64  i64  i64  i64  i64  i64  i64  i64  i64  f64  f64  f64  f64  c128
u8   u8   i16  i16  i32  i64  u8   u16  u32  u64  f16  f32  f64  c64
u16  u16  i32  i32  i32  i64  u16  u16  u32  u64  f32  f32  f64  c64
u32  u32  i64  i64  i64  i64  u32  u32  u32  u64  f64  f64  f64  c128
u64  u64  f64  f64  f64  f64  u64  u64  u64  u64  f64  f64  f64  c128
f16  f16  f16  f32  f64  f64  f16  f32  f64  f64  f16  f32  f64  c64
f32  f32  f32  f32  f64  f64  f32  f32  f64  f64  f32  f32  f64  c64
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128
c64  c64  c64  c64  c128 c128 c64  c64  c128 c128 c64  c64  c128 c64
"""
SHORT = {
    "b": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip


def test_upcast():
    columns, *lines = (line.split() for line in ADD.strip().split("\n"))
    assert len(lines) == len(columns) == 13
    for x, *results in lines:
        for y, expected in zip(columns, results, strict=True):
            assert dtypes.upcast(SHORT[x], SHORT[y]) == SHORT[expected], (x, y)


def test_upcast_does_not_depend_on_order_or_repetition():
    for x, y in itertools.combinations(dtypes.ALL, 2):
        assert dtypes.upcast(x, y) == dtypes.upcast(y, x, y)


def test_upcast_takes_operands_one_after_the_other():
    """As Theano 1.0.5: int8 with uint8 needs int16, and that with float16 needs float32."""
    assert dtypes.upcast("int8", "uint8", "float16") == "float32"
    assert dtypes.upcast("int8", "float16", "uint8") == "float16"
    assert dtypes.upcast("uint16", "int8", "float32") == "float64"


@pytest.mark.parametrize("floatx", dtypes.FLOATS)
def test_upcast_within_floatx(monkeypatch, floatx):
    """As Theano 1.0.5: under numpy+floatX only a wider operand gives a float wider than floatX."""
    pairs = list(itertools.product(dtypes.ALL, repeat=2))
    plain = {pair: dtypes.upcast(*pair) for pair in pairs}
    monkeypatch.setattr(config, "cast_policy", "numpy+floatX")
    monkeypatch.setattr(config, "floatX", floatx)
    order = dtypes.FLOATS.index
    for pair in pairs:
        floats = [order(d) for d in (plain[pair], *pair) if d in dtypes.FLOATS]
        kept = plain[pair] in dtypes.FLOATS and max(floats[1:], default=-1) <= order(floatx)
        expected = floatx if kept and floats[0] > order(floatx) else plain[pair]
        assert dtypes.upcast(*pair) == expected, pair
        assert dtypes.promote(*pair) == plain[pair]


def test_families():
    assert set(dtypes.ALL) == set(SHORT.values())
    assert not set(dtypes.DISCRETE) & set(dtypes.CONTINUOUS)
    for dtype in dtypes.ALL:
        assert dtypes.kind(dtype) == np.dtype(dtype).kind


@pytest.mark.parametrize("floatx", ["float32", "float64"])
def test_true_div(monkeypatch, floatx):
    monkeypatch.setattr(config, "floatX", floatx)
    assert dtypes.true_div("int8", "int8") == floatx
    assert dtypes.true_div("bool", "uint64") == floatx
    assert dtypes.true_div("int8", "float32") == "float32"
    assert dtypes.true_div("int8", "float16") == "float16"
    assert dtypes.true_div("int32", "float32") == "float64"
    assert dtypes.true_div("complex64", "int8") == "complex64"


def test_to_float():
    assert dtypes.to_float("int8") == dtypes.to_float_same("bool") == "float32"
    assert dtypes.to_float("int32") == "float64"
    assert dtypes.to_float("int8", "float16") == "float32"
    assert dtypes.to_float("uint16", "float64") == "float64"
    assert dtypes.to_float("complex64", "int64") == "complex128"


def test_bitwise():
    assert dtypes.bitwise("bool", "bool") == "bool"
    assert dtypes.bitwise("int8", "uint8") == "int16"
    for pair in (("float64", "int8"), ("bool", "int8"), ("complex64",)):
        with pytest.raises(TypeError, match="input to a BitOp must have type"):
            dtypes.bitwise(*pair)


def test_complex():
    assert dtypes.real_part("complex64") == "float32"
    assert dtypes.real_part("complex128") == dtypes.real_part("float64") == "float64"
    assert dtypes.real_part("int8") == "int8"
    assert dtypes.to_complex("float32", "int8") == "complex64"
    assert dtypes.to_complex("int32", "float32") == "complex128"
    rule = dtypes.no_complex(dtypes.upcast)
    assert rule("int8", "float32") == "float32"
    with pytest.raises(TypeError, match="complex argument not supported, got int8, complex64"):
        rule("int8", "complex64")


def test_not_bool():
    rule = dtypes.not_bool(dtypes.upcast)
    assert rule("bool", "bool") == "int8"
    assert rule("bool", "uint8") == "uint8"
