"""Arithmetic, rounding, selection."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opwise.scalar import dtypes as d
from opwise.scalar.spec import Algebra, Array, Expression, row


def _sum(*xs: Array) -> Array:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return np.asarray(total)


def _product(*xs: Array) -> Array:
    total = xs[0]
    for x in xs[1:]:
        total = total * x
    return np.asarray(total)


def _int_div(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iub" and np.any(np.equal(y, 0)):
        # numpy's result for x // 0 is 0; say nothing, as the C loops do
        with np.errstate(divide="ignore"):
            return np.floor_divide(x, y)
    return np.floor_divide(x, y)


def _pow(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and np.any(np.less(y, 0)):
        # an integer to a negative power: 0 unless the base is 1 or -1
        exponent = np.where(np.less(y, 0), 0, y)
        result = np.power(x, exponent)
        inverse = np.where(x == 1, 1, np.where(x == -1, np.where(np.remainder(y, 2), -1, 1), 0))
        return np.where(np.less(y, 0), inverse, result).astype(x.dtype)
    return np.power(x, y)


def _one_less(F: Algebra, y: Expression) -> Expression:
    """Return the exponent in the gradient of a power; at y = 0 any will do that makes no inf."""
    return y - 1 if y.never(0) else F.switch(F.eq(y, 0), y.like(1), y - 1)


def _round_away(x: Array) -> Array:
    truncated = np.trunc(x)
    return np.where(np.abs(x - truncated) >= 0.5, truncated + np.copysign(1, x), truncated)


def _second(x: Array, y: Array) -> Array:
    # not broadcast_arrays, which refuses read-only operands
    return np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape)).copy()


def _no_bool(rule: Callable[..., str]) -> Callable[..., str]:
    def out(*dtypes: str) -> str:
        result = rule(*dtypes)
        if result == "bool":
            raise TypeError(
                "numpy boolean subtract, the `-` operator, is deprecated, use the bitwise_xor, "
                "the `^` operator, or the logical_xor function instead."
            )
        return result

    return out


def _float_only(dtype: str) -> str:
    if dtype in d.FLOATS:
        return dtype
    raise TypeError(
        f"only float type are supported, got {dtype}: integers need no rounding; otherwise cast to "
        "a float dtype first"
    )


_rounded = d.no_complex(d.to_float_same)


def _real_abs(dtype: str) -> str:
    return d.real_part(dtype)


row(
    "add", "Add", -1, d.upcast, _sum, "{x} + {y}",
    lambda F, *a: tuple(a[-1] for _ in a[:-2]),
    label="add", infix="+", commutative=True, associative=True, flops=1,
    complex_c="ow_add_{S}({x}, {y})", doc="Sum of the operands.",
)  # fmt: skip
row(
    "mul", "Mul", -1, d.upcast, _product, "{x} * {y}",
    lambda F, *a: tuple(
        a[-1] if len(a) == 3 else F.mul(a[-1], *(x for j, x in enumerate(a[:-2]) if j != i))
        for i in range(len(a) - 2)
    ),
    label="mul", infix="*", commutative=True, associative=True, flops=1,
    complex_c="ow_mul_{S}({x}, {y})", doc="Product of the operands.",
)  # fmt: skip
row(
    "sub", "Sub", 2, _no_bool(d.upcast), np.subtract, "{x} - {y}",
    lambda F, x, y, z, g: (g, -g),
    label="sub", infix="-", flops=1, kinds="iufc", complex_c="ow_sub_{S}({x}, {y})",
    doc="Difference x - y.",
)  # fmt: skip
row(
    "true_div", "TrueDiv", 2, d.true_div, np.true_divide, "{x} / {y}",
    lambda F, x, y, z, g: (g / y, -(g * x) / (y * y)),
    label="true_div", infix="/", flops=1, cost=1.0, domain=((-3.0, 3.0), (0.5, 3.0)),
    complex_c="ow_div_{S}({x}, {y})", doc="Quotient x / y; two integers give floatX.",
)  # fmt: skip
row(
    "int_div", "IntDiv", 2, d.upcast, _int_div,
    {**dict.fromkeys("fiu", "ow_floordiv_{S}({x}, {y})"), "b": "{x} & {y}"},
    lambda F, x, y, z, g: (0, 0),
    alone={"int64": "ow_floordiv_alone_i64({x}, {y})"},
    label="int_div", infix="//", c_support=("floordiv",), libm=("floor", "fma"), cost=2.0,
    domain=((-9.0, 9.0), (1.0, 4.0)), kinds="biuf",
    doc="Quotient rounded down, as Python's //; an integer divided by 0 gives 0.",
)  # fmt: skip
row(
    "mod", "Mod", 2, d.upcast, np.remainder,
    {**dict.fromkeys("fiu", "ow_mod_{S}({x}, {y})"), "b": "0"},
    lambda F, x, y, z, g: (g, -(F.int_div(x, y)) * g),
    alone={"int64": "ow_mod_alone_i64({x}, {y})"},
    label="mod", infix="%", c_support=("mod",), libm=("fmod", "copysign", "trunc", "fma"), cost=2.5,
    domain=((-9.0, 9.0), (1.0, 4.0)), kinds="biuf",
    doc="Remainder with the sign of y, as Python's %; an integer modulo 0 gives 0.",
)  # fmt: skip
row(
    "pow", "Pow", 2, d.not_bool(d.upcast), _pow,
    {"f": "ow_pow_{S}({x}, {y})", "i": "ow_ipow_{S}({x}, {y})", "u": "ow_ipow_{S}({x}, {y})"},
    lambda F, x, y, z, g: (
        g * y * x ** _one_less(F, y),
        g * F.switch(F.eq(x, 0), 0, F.log(x) * z),
    ),
    label="pow", infix="**", c_support=("ipow", "pow"), cost=4.0,
    domain=((0.5, 3.0), (-2.0, 2.0)), kinds="iufc",
    complex_c="ow_cpow_{S}({x}, {y})",
    complex_support=("cpow",), complex_libm=("cpow",),
    doc="x to the power y; an integer to a negative power gives 0, 1 or -1.",
)  # fmt: skip
row(
    "neg", "Neg", 1, _no_bool(d.same), np.negative, "-{x}", lambda F, x, z, g: -g,
    label="neg", flops=1, kinds="iufc", complex_c="ow_neg_{S}({x})", exact=True, doc="-x",
)  # fmt: skip
row(
    "inv", "Inv", 1, d.to_float_same, np.reciprocal, "1 / {x}",
    lambda F, x, z, g: -g / (x * x),
    label="inv", flops=1, cost=1.0, domain=((0.5, 3.0),), complex_c="ow_inv_{S}({x})", doc="1 / x",
)  # fmt: skip
row(
    "sqr", "Sqr", 1, d.same, np.square, "{x} * {x}", lambda F, x, z, g: g * x * 2,
    label="sqr", flops=1, complex_c="ow_mul_{S}({x}, {x})", doc="x * x",
)  # fmt: skip
row(
    "abs_", "Abs", 1, _real_abs, np.abs,
    {"f": "fabs{f}({x})", "i": "({x} < 0 ? -{x} : {x})", "u": "{x}", "b": "{x}"},
    lambda F, x, z, g: g * x / z if x.dtype.startswith("complex") else g * F.sgn(x),
    libm=("fabs",), compute=d.same, complex_c="hypot{f}({x}.r, {x}.i)",
    complex_libm=("hypot",), exact=True, doc="Absolute value.",
)  # fmt: skip
row(
    "sgn", "Sgn", 1, d.no_complex(_no_bool(d.same)), np.sign,
    {"f": "(({x} > 0) ? 1 : (({x} < 0) ? -1 : (({x} == 0) ? 0 : {x})))",
     "i": "({x} > 0) - ({x} < 0)", "u": "({x} > 0)"},
    lambda F, x, z, g: 0,
    label="sgn", kinds="iuf", exact=True, doc="-1, 0 or 1 by the sign of x; NaN for NaN.",
)  # fmt: skip
row(
    "ceil", "Ceil", 1, _rounded, np.ceil, {"f": "ceil{f}({x})"}, lambda F, x, z, g: 0,
    label="ceil", libm=("ceil",), kinds="biuf", exact=True,
    doc="Smallest whole number not below x.",
)  # fmt: skip
row(
    "floor", "Floor", 1, _rounded, np.floor, {"f": "floor{f}({x})"}, lambda F, x, z, g: 0,
    label="floor", libm=("floor",), kinds="biuf", exact=True,
    doc="Largest whole number not above x.",
)  # fmt: skip
row(
    "trunc", "Trunc", 1, _rounded, np.trunc, {"f": "trunc{f}({x})"}, lambda F, x, z, g: 0,
    label="trunc", libm=("trunc",), kinds="biuf", exact=True, doc="x without its fraction.",
)  # fmt: skip
row(
    "round_half_to_even", "RoundHalfToEven", 1, _float_only, np.rint, {"f": "rint{f}({x})"},
    lambda F, x, z, g: 0,
    libm=("rint",), kinds="f", exact=True, doc="Nearest whole number; a half goes to the even one.",
)  # fmt: skip
row(
    "round_half_away_from_zero", "RoundHalfAwayFromZero", 1, _float_only, _round_away,
    {"f": "round{f}({x})"}, lambda F, x, z, g: 0,
    libm=("round",), kinds="f", exact=True, doc="Nearest whole number; a half goes away from zero.",
)  # fmt: skip
# GCC vectorizes chains of these two in this form, and not where the condition has || or x != x
row(
    "maximum", "Maximum", 2, d.upcast, np.maximum,
    {"f": "((({x} < {y}) | ({y} != {y})) ? {y} : {x})", "i": "({x} > {y} ? {x} : {y})",
     "u": "({x} > {y} ? {x} : {y})", "b": "{x} | {y}"},
    lambda F, x, y, z, g: (F.switch(F.ge(x, y), g, 0), F.switch(F.ge(x, y), 0, g)),
    label="maximum", commutative=True, associative=True, kinds="biuf",
    complex_c="ow_maximum_{S}({x}, {y})", exact=True,
    doc="The larger operand; NaN if one is NaN. A tie gives its gradient to x.",
)  # fmt: skip
row(
    "minimum", "Minimum", 2, d.upcast, np.minimum,
    {"f": "((({x} > {y}) | ({y} != {y})) ? {y} : {x})", "i": "({x} < {y} ? {x} : {y})",
     "u": "({x} < {y} ? {x} : {y})", "b": "{x} & {y}"},
    lambda F, x, y, z, g: (F.switch(F.le(x, y), g, 0), F.switch(F.le(x, y), 0, g)),
    label="minimum", commutative=True, associative=True, kinds="biuf",
    complex_c="ow_minimum_{S}({x}, {y})", exact=True,
    doc="The smaller operand; NaN if one is NaN. A tie gives its gradient to x.",
)  # fmt: skip
row(
    "clip", "Clip", 3, d.no_complex(d.upcast),
    lambda x, lo, hi: np.where(x < lo, lo, np.where(x > hi, hi, x)),
    "({x} < {y} ? {y} : ({x} > {w} ? {w} : {x}))",
    lambda F, x, lo, hi, z, g: (
        F.switch(F.and_(F.ge(x, lo), F.le(x, hi)), g, 0),
        F.switch(F.lt(x, lo), g, 0),
        F.switch(F.and_(F.gt(x, hi), F.ge(x, lo)), g, 0),
    ),
    label="clip", kinds="biuf", domain=((-3.0, 3.0), (-1.0, -0.5), (0.5, 1.0)),
    exact=True, doc="x held between the second and the third operand.",
)  # fmt: skip
row(
    "switch", "Switch", 3, lambda c, x, y: d.upcast(x, y), np.where, "({x} ? {y} : {w})",
    lambda F, c, x, y, z, g: (0, F.switch(c, g, 0), F.switch(c, 0, g)),
    compute=None, first_is_condition=True,
    complex_c="ow_pick_{S}({x} != 0, {y}, {w})", exact=True,
    doc="The second operand where the first is not 0, else the third.",
)  # fmt: skip
row(
    "second", "Second", 2, lambda x, y: y, _second, "{y}",
    lambda F, x, y, z, g: (0, g),
    label="second", flops=0, ignores_first=True,
    complex_c="{y}", exact=True, doc="The second operand, with the shape of both.",
)  # fmt: skip
row(
    "identity", "Identity", 1, d.same, lambda x: np.array(x), "{x}", lambda F, x, z, g: g,
    label="identity", flops=0, complex_c="{x}", exact=True, doc="x",
)  # fmt: skip
