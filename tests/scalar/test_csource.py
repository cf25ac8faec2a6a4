"""C text of types, numbers, conversions and declarations. That of the rows is in test_rows.py."""

import ast
import platform
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from opwise.scalar import UnaryScalarOp, csource, dtypes
from opwise.scalar.borrowed import BORROWED
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.spec import ROWS


@pytest.mark.null
def test_types():
    assert [csource.c_type(d) for d in ("float32", "float64", "int64", "bool")] == [
        "float", "double", "ow_i64", "ow_b",
    ]  # fmt: skip
    assert [csource.short(d) for d in ("float64", "uint8", "bool")] == ["f64", "u8", "b"]
    assert [csource.c_type(d) for d in ("float16", "complex64")] == ["float", "ow_c64"]
    assert csource.stored("float16") == "ow_f16" and csource.stored("complex64") == "ow_c64"
    assert not csource.is_plain("float16") and csource.is_plain("float32")


@pytest.mark.null
@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (1.0, "float64", "1.0"),
        (0.1, "float64", "0.1"),
        (-0.0, "float64", "(-0.0)"),
        (0.5, "float32", "0.5f"),
        (np.float32(0.1), "float32", "0.10000000149011612f"),
        (np.inf, "float64", "__builtin_inf()"),
        (-np.inf, "float32", "(-__builtin_inff())"),
        (np.nan, "float32", '__builtin_nanf("")'),
        (3, "int64", "3LL"),
        (-3, "int64", "(-3LL)"),
        (-(2**63), "int64", "(-9223372036854775807LL - 1)"),
        (2**64 - 1, "uint64", "18446744073709551615ULL"),
        (-(2**31), "int32", "((ow_i32)-2147483648)"),
        (7, "int32", "7"),
        (-1, "int8", "((ow_i8)-1)"),
        (True, "bool", "1"),
    ],
)
def test_literal(value, dtype, text):
    assert csource.literal(value, dtype) == text


@pytest.mark.null
@pytest.mark.parametrize(
    ("from_dtype", "to_dtype", "text"),
    [
        ("float64", "float64", "x"),
        ("float64", "float32", "((float)x)"),
        ("float64", "bool", "(x != 0)"),
        ("int8", "bool", "(x != 0)"),
        ("bool", "float64", "((double)(x != 0))"),
        ("float64", "int64", "ow_i64_of_f64(x)"),
        ("float32", "uint8", "((ow_u8)ow_i32_of_f32(x))"),
        ("float32", "uint32", "((ow_u32)ow_i64_of_f32(x))"),
    ],
)
def test_convert(from_dtype, to_dtype, text):
    assert csource.convert("x", from_dtype, to_dtype) == text
    assert csource.step_c(cast_op(to_dtype), ["x"], [from_dtype], to_dtype) == text


@pytest.mark.null
@pytest.mark.parametrize(
    ("name", "ins", "out", "text"),
    [
        ("add", ["float64"] * 3, "float64", "((a + b) + c)"),
        ("add", ["int8", "float32"], "float32", "(((float)a) + b)"),
        ("add", ["int8", "int8"], "int8", "((ow_i8)(a + b))"),
        ("add", ["bool", "bool"], "bool", "((a + b) != 0)"),
        ("lt", ["int8", "float32"], "bool", "(((float)a) < b)"),
        ("sin", ["float32"], "float32", "sinf(a)"),
        ("sin", ["int8"], "float32", "sinf(((float)a))"),
        ("exp", ["int8"], "float32", "ow_exp_f32(((float)a))"),
        ("switch", ["float64", "int8", "float32"], "float32", "(a ? ((float)b) : c)"),
        ("second", ["complex64", "int8"], "int8", "b"),
        ("switch", ["bool", "float64", "float64"], "float64", "(((ow_i64)a) ? b : c)"),
        ("switch", ["complex64", "int8", "int8"], "int8", "((ow_i8)(ow_true_c64(a) ? b : c))"),
        ("add", ["complex64"] * 3, "complex64", "(ow_add_c64((ow_add_c64(a, b)), c))"),
        ("abs_", ["complex64"], "float32", "hypotf(a.r, a.i)"),
        ("add", ["float16"] * 2, "float16", "ow_round_f16(a + b)"),
        ("neg", ["float16"], "float16", "(-a)"),
        ("second", ["int64", "float32"], "float32", "b"),
        ("int_div", ["int32", "int32"], "int32", "((ow_i32)ow_floordiv_i32(a, b))"),
        ("exp", ["float16"], "float16", "ow_round_f16(ow_exp_f32(a))"),
        ("exp2", ["complex64"], "complex64", None),
        ("jv", ["float64"] * 2, "float64", "((double)ow_scipy_jv(a, b, 0))"),
        ("gammal", ["float64"] * 2, "float64", None),
    ],
)
def test_step(name, ins, out, text):
    assert csource.step_c(OPS[name], "abc"[: len(ins)], ins, out) == text


@pytest.mark.null
def test_operands_that_are_expressions_are_enclosed():
    ins = ["float64", "float64"]
    assert csource.step_c(OPS["mul"], ["a + b", "(a) - (b)"], ins, "float64") == (
        "((a + b) * ((a) - (b)))"
    )
    assert csource.step_c(OPS["mul"], ["f(a)[i]", "a[i + 1]"], ins, "float64") == (
        "((f(a)[i]) * a[i + 1])"
    )


@pytest.mark.null
def test_a_users_op_has_no_c():
    class Mine(UnaryScalarOp):
        def impl(self, x):
            return x

    assert csource.step_c(Mine(), ["a"], ["float64"], "float64") is None


@pytest.mark.null
def test_support_holds_just_what_is_asked_for():
    text = csource.support(["softplus", "floordiv"], ["float32", "int8", "float16"])
    assert text.count("typedef") == 14
    for name in ("ow_expneg_f32(", "ow_softplus_f32(", "OW_FLOORDIV_NARROW(i8", "FLOAT(f32"):
        assert name in text
    assert text.index("ow_expneg_f32(float x)\n") < text.index("ow_softplus_f32(float x)\n")
    for name in ("_f64(double", "(i16", "sigmoid", "ipow", "@"):
        assert name not in text
    assert csource.support([], []).count("typedef") == 14
    with pytest.raises(KeyError):
        csource.support(["no such function"], ["float32"])


@pytest.mark.null
def test_every_name_in_the_table_exists():
    for row in ROWS.values():
        for dtype in (*filter(csource.is_plain, dtypes.ALL), "float16"):
            template = row.c_expression(dtype) or ""
            declared = {"ow_cos", "ow_sin", *(f"ow_{name}" for name in BORROWED)}
            if set(re.findall(r"ow_\w+", template)) - declared:
                assert row.c_support
                text = csource.support(row.c_support, [dtype])
                short = csource.short(csource.real_of(dtype))
                functions = [f"ow_{name}_{short}(" for name in row.c_support]
                assert f"({short}" in text or any(f in text for f in functions), (row.name, dtype)


@pytest.mark.null
def test_every_function_of_complex_numbers_in_the_table_exists():
    for row in ROWS.values():
        for dtype in dtypes.COMPLEX:
            text = csource.support(row.complex_support, [dtype])
            for name in re.findall(r"(ow_\w+_|OW_CLIBM_)\{S\}", row.c_expression(dtype) or ""):
                whole = name + csource.short(dtype)
                called = re.sub("_c64|_c128", "_##S", whole)
                assert f"{whole}(" in text or f"{called}(" in text, (row.name, dtype)


@pytest.mark.null
def test_prototypes():
    text = csource.prototypes(["fmod", "fabs", "fma"], ["float32", "int8"])
    assert text.splitlines() == [
        csource.USES_LIBM.strip(),
        "double fabs(double);", "float fabsf(float);",
        "double fma(double, double, double);", "float fmaf(float, float, float);",
        "double fmod(double, double);", "float fmodf(float, float);",
    ]  # fmt: skip
    assert csource.prototypes(["exp"], ["float64"], simd=False).endswith("\ndouble exp(double);\n")
    plain = csource.prototypes(["cos"], ["float32"], simd=False)
    assert plain.endswith("\nfloat cosf(float);\n#define ow_cosf cosf\n")
    assert csource.prototypes([], ["float64"]) == ""


@pytest.mark.null
def test_the_extension_is_built_with_the_same_flags():
    """Loops that are built in and loops that are made at run time give the same bits."""
    setup = (Path(__file__).resolve().parents[2] / "setup.py").read_text()
    (flags,) = (
        ast.literal_eval(statement.value)
        for statement in ast.parse(setup).body
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "CFLAGS"
    )
    assert set(csource.FLAGS) <= set(flags)


@pytest.mark.c
@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls x86's functions only")
def test_vector_functions_are_those_of_libmvec():
    """What the library exports, by nm, and nothing more."""
    try:
        found = subprocess.run(
            ["nm", "-D", "/lib/x86_64-linux-gnu/libmvec.so.1"], capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("there is no nm")
    if found.returncode:
        pytest.skip("there is no libmvec where Debian has it")
    symbols = {line.split()[-1].split("@")[0] for line in found.stdout.splitlines()}
    exported = {s.split("_")[-1] for s in symbols if s.startswith(("_ZGVdN4v_", "_ZGVdN4vv_"))}
    assert csource.vector_functions() == exported
    for name in exported:
        for isa in ("bN2", "cN4", "dN4", "eN8"):
            assert any(f"_ZGV{isa}{v}_{name}" in symbols for v in ("v", "vv"))
        assert any(f"_ZGVdN8{v}_{name}f" in symbols for v in ("v", "vv"))
    assert "simd" in csource.prototypes(["exp"], ["float64"])
