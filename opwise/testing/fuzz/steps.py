"""The steps of growing a random program: each adds a statement, or raises Rejected.

A step gets a Grower ``g``, and picks operands that fit; names are ``v0``, ``v1``, ...
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import opwise.scalar.table  # noqa: F401  (fills ROWS)
import opwise.tensor as T
from opwise.modes.debugging.rounding import EXACT_ROWS
from opwise.scalar.spec import ROWS
from opwise.tensor.creation import how_many
from opwise.testing.configurations import REFERENCE
from opwise.testing.fuzz.grow import LARGEST_LEAF, Fault, Grower, Rejected
from opwise.testing.fuzz.slopes import can_be_checked, wrong_slope

#: a step; what it returns is ignored
Step = Callable[[Grower], object]

#: the steps, each as often as its weight says
STEPS: list[Step] = []
#: scalar operations whose result may jump when an operand is rounded
_JUMPS = frozenset(
    "int_div mod sgn ceil floor trunc round_half_to_even round_half_away_from_zero lt gt le ge eq "
    "neq isnan isinf".split()
)
#: scalar operations that are one function in numpy
_AS_NUMPY = {
    "add", "mul", "sub", "true_div", "neg", "sqr", "abs_", "ceil", "floor", "trunc", "maximum",
    "minimum", "lt", "gt", "le", "ge", "eq", "neq", "isnan", "isinf", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh",
    "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "arctan2", "deg2rad", "rad2deg", "real",
    "imag", "conj", "sgn",
}  # fmt: skip
_NUMPY_NAMES = {
    "mul": "multiply", "sub": "subtract", "add": "add", "true_div": "true_divide", "sqr": "square",
    "neg": "negative", "abs_": "abs", "lt": "less", "gt": "greater", "le": "less_equal",
    "ge": "greater_equal", "eq": "equal", "neq": "not_equal", "sgn": "sign",
}  # fmt: skip


def step(weight: int) -> Callable[[Step], Step]:
    """Add a function to the steps."""

    def decorate(function: Step) -> Step:
        STEPS.extend([function] * weight)
        return function

    return decorate


def _tensor_function(row: Any) -> str:
    name = row.tensor_name or row.name
    found = getattr(T, name, None)
    if found is None:
        return f"T.nnet.{name}"
    return f"T.{name}" if callable(found) else f"T.{name}.{name}"  # xlogx is a module, as in Theano


_BY_COUNT = {n: [r for r in ROWS.values() if r.nin == n] for n in (1, 2)}


def _shuffled(g: Grower, of: Iterable[Any]) -> list[Any]:
    things = list(of)
    for i in range(len(things) - 1, 0, -1):
        j = g.below(i + 1)
        things[i], things[j] = things[j], things[i]
    return things


# --- elementwise ----------------------------------------------------------------------------------


def _fitted(g: Grower, name: str, row: Any, k: int) -> str:
    """Return text for an operand inside a row's domain."""
    low, high = row.domain[k if k < len(row.domain) else -1]
    value = g.value(name)
    if (low, high) == (-3.0, 3.0) or value.dtype.kind not in "f" or not value.size:
        return name
    with np.errstate(invalid="ignore"):
        inside = np.all((value >= low) & (value <= high))
    if inside or row.name in EXACT_ROWS or g.chance(6):
        return name
    return f"({low} + {high - low:.3g} * T.nnet.sigmoid({name}))"


def apply_row(g: Grower, row: Any, names: Sequence[str]) -> str:
    """Add a scalar row, elementwise, of names whose values are brought into its domain."""
    far = 9 if row.name in ("j0", "j1") else 99  # these lose digits near each of their zeros
    if row.name not in EXACT_ROWS and any(_far(g.value(name), far) for name in names):
        raise Rejected  # scipy's series lose all their digits there
    if isinstance(row.numpy, str) and any(g.level[name] for name in names):
        raise Rejected  # scipy and C differ at infinities, see tests/scalar/test_rows
    if _elements(g.shape(name) for name in names) > 2 * LARGEST_LEAF:
        raise Rejected  # before it is computed: that would take gigabytes
    texts = [_fitted(g, name, row, k) for k, name in enumerate(names)]
    reference = None
    if row.name in _AS_NUMPY and texts == names and _same_domain(g, row, names):
        wide = max((g.dtype(n) for n in names), key=lambda d: np.dtype(d).itemsize)
        args = ", ".join(names)
        if row.name not in EXACT_ROWS and all(g.kind(n) in "biu" for n in names):
            args = ", ".join(f"{n}.astype('float64')" for n in names)
        reference = f"np.{_NUMPY_NAMES.get(row.name, row.name)}({args})" if wide else None
    return g.add(f"{_tensor_function(row)}({', '.join(texts)})", reference=reference,
                 arithmetic=row.name not in ("identity", "second", "isnan", "isinf"))  # fmt: skip


def _elements(shapes: Iterable[tuple[int, ...]]) -> int:
    """Return how many elements shapes broadcast to; 0 where they do not."""
    try:
        return math.prod(np.broadcast_shapes(*shapes))
    except ValueError:
        return 0


def _far(value: Any, most: float = 99) -> bool:
    return value.dtype.kind in "iuf" and bool((abs(value.astype(float)) > most).any())


def _same_domain(g: Grower, row: Any, names: Sequence[str]) -> Any:
    """numpy computes integers of other dtypes in other ones: compared are those that are equal."""
    kinds = {g.kind(n) for n in names}
    return len({g.dtype(n) for n in names}) == 1 and "b" not in kinds


@step(10)
def unary(g: Grower) -> object:
    row = g.choice(_BY_COUNT[1])
    return apply_row(g, row, [g.pick(row.kinds, exact=row.name in _JUMPS)])


@step(4)
def common_unary(g: Grower) -> object:
    row = ROWS[
        g.choice("exp log tanh neg sqr abs_ sqrt inv scalar_sigmoid scalar_softplus".split())
    ]
    return apply_row(g, row, [g.pick("f")])


@step(12)
def binary(g: Grower) -> object:
    row = g.choice(_BY_COUNT[2])
    exact = row.name in _JUMPS
    x = g.pick(row.kinds, exact=exact)
    return apply_row(g, row, _either(g, x, g.beside(x, kinds=row.kinds, exact=exact)))


@step(16)
def arithmetic(g: Grower) -> object:
    row = ROWS[g.choice("add sub mul true_div mul add maximum minimum".split())]
    x = g.pick("fiu" if row.name == "sub" else "fiufc")
    y = g.beside(x, kinds="iuf" if row.name in ("maximum", "minimum") else row.kinds)
    return apply_row(g, row, _either(g, x, y))


def _either(g: Grower, x: str, y: str) -> list[str]:
    return [y, x] if g.chance(50) else [x, y]


@step(4)
def several(g: Grower) -> object:
    x = g.pick("fiub")
    names = [x]
    for _ in range(g.between(2, 4)):
        names.append(g.beside(*names, kinds="fiub"))
    return g.add(f"T.{g.choice(['add', 'mul'])}({', '.join(names)})")


@step(6)
def mixed_sum(g: Grower) -> object:
    """Sums of products, differences and negatives whose operands have different dtypes."""
    first = g.leaf(g.choice(["float64", "float32"]), (3, 3), broadcast=[False, False], finite=True)
    texts = [g.choice(["T.dot({x}, {x})", "{x}", "2 * {x}", "T.dot({x}, {x}.T)"]).format(x=first)]
    for _ in range(g.between(1, 3)):
        dtype = g.choice(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool",
                          "float32", "float16", "float64"])  # fmt: skip
        x = g.leaf(dtype, g.choice([(3, 3), (3,), ()]), finite=True)
        forms = ["{x}", "{x}", "{x} * 2", "(-{x})", "-{x} / 2"]
        form = "{x}" if dtype == "bool" else g.choice(forms)
        texts.insert(g.below(len(texts) + 1), form.format(x=x))
    total = texts[0]
    for text in texts[1:]:
        total = f"({total}) {g.choice(['+', '-', '-'])} ({text})"
        total = g.choice([total, total, f"0.5 * ({total})", f"-({total})"])
    return g.add(total)


_NUMBERS = ["2", "-1", "0.5", "1", "0", "3", "-2", "1.5", "np.float32(0.25)", "np.int8(3)", "10"]


@step(8)
def with_number(g: Grower) -> object:
    x, c = g.pick("fiu"), g.choice(_NUMBERS)
    form = g.choice(["{x} + {c}", "{x} * {c}", "{c} - {x}", "{x} - {c}", "{x} / {c}", "-{x}",
                     "{c} / {x}", "{x} ** 2", "{x} * {x}", "T.maximum({x}, {c})",
                     "T.minimum({c}, {x})", "abs({x})", "{x} ** 3", "{x} ** {c}"])  # fmt: skip
    if g.level[x] and c in ("0", "1", "-1"):
        raise Rejected
    return g.add(form.format(x=x, c=c))


@step(3)
def whole_with_number(g: Grower) -> object:
    x, c = g.pick("iuf", exact=True), g.choice(["2", "3", "-2", "1", "4"])
    return g.add(g.choice(["{x} // {c}", "{x} % {c}", "{c} // {x}"]).format(x=x, c=c))


@step(5)
def compared(g: Grower) -> object:
    x = g.pick("biuf", exact=True)
    y = g.choice([g.beside(x, kinds="biuf", exact=True), g.choice(["0", "1", "2"])])
    return g.add(f"T.{g.choice(['lt', 'gt', 'le', 'ge', 'eq', 'neq'])}({x}, {y})")


@step(5)
def switch(g: Grower) -> object:
    x = g.pick("biuf", exact=True)
    y = g.beside(x)
    a = g.beside(x, y)
    y = g.choice([y, "0", "1.5"]) if g.chance(30) else y
    return g.add(f"T.switch({x}, {y}, {a})", arithmetic=False)


@step(6)
def chosen(g: Grower) -> object:
    """Values of one of two branches, whose shapes may differ."""
    if g.chance(50):
        condition = g.pick("biuf", 0, 0, exact=True)
    else:
        x = g.pick("biuf", exact=True, level=0)
        condition = g.choice([f"T.any({x} > 0)", f"T.neq({x}.size, {g.between(0, 3)})"])
    a = g.pick("biuf", level=0)
    alike = [n for n in g.order if g.var(n).type == g.var(a).type and not g.level[n]]
    b = g.choice(alike)
    other = g.choice([b, f"{b} * {b}", f"ifelse({condition}, {b}, {a})",
                      f"ifelse(T.eq({a}.size, 2), {a} + {b}, {b})"])  # fmt: skip
    form = g.choice(
        [
            "ifelse({c}, {a}, {b})",
            "ifelse({c}, {a} * {a}, {b})",
            "ifelse({c}, [{a}, {x}], [{b}, {x}])[0]",
            "ifelse({c}, {b}, {a} * {a})",
        ]
    )
    if g.kind(a) == "b" and ("*" in form or other != b):
        raise Rejected  # sums and products of bools have other dtypes
    return g.add(form.format(c=condition, a=a, b=other, x=b), arithmetic=False)


@step(3)
def clip(g: Grower) -> object:
    x = g.pick("iuf")
    if g.chance(60):
        return g.add(f"T.clip({x}, {g.choice(['-1', '0', '-0.5'])}, {g.choice(['1', '2.5'])})")
    low = g.beside(x, kinds="iuf")
    return g.add(f"T.clip({x}, {low}, {g.beside(x, low, kinds='iuf')})")


@step(6)
def cast(g: Grower) -> object:
    x = g.pick("biuf")
    dtype = g.choice(["float64", "float32", "int32", "int64", "int8", "uint8", "float16", "bool",
                      "int16", "uint16", "uint64", "uint32"])  # fmt: skip
    if np.dtype(dtype).kind != "f" and g.kind(x) == "f":
        if not g.exact(x):
            raise Rejected
    reference = f"{x}.astype({dtype!r})"
    if dtype == "uint32" and g.kind(x) == "f":
        # numpy's result depends on the layout where numbers do not fit
        reference = f"{x}.astype('int64').astype({dtype!r})"
    return g.add(f"T.cast({x}, {dtype!r})", reference=reference, arithmetic=False)


#: floats that fit into few integers, or none
_SPECIAL_FLOATS = (
    "-1.0", "-3.5", "np.nan", "np.inf", "-np.inf", "1e30", "-1e30", "255.0", "300.9", "-200.5",
    *(f"{sign}2.0**{power}" for sign in ("", "-") for power in (7, 15, 31, 32, 63, 64)),
)  # fmt: skip


@step(3)
def cast_of_special(g: Grower) -> object:
    source = g.choice(["float64", "float32"])
    dtype = g.choice(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
    numbers = ", ".join(g.choice(_SPECIAL_FLOATS) for _ in range(g.between(1, 5)))
    x = f"T.constant(np.array([{numbers}], {source!r}))"
    if g.chance(50):
        x = f"({x} + T.zeros_like({g.leaf(source, (1,), broadcast=[False])}).sum())"
    return g.add(f"T.cast({x}, {dtype!r})", arithmetic=False)


@step(2)
def of_complex(g: Grower) -> object:
    if g.chance(50):
        x = g.pick("f")
        return g.add(f"T.complex({x}, {g.beside(x, kinds='f', same_dtype=True)})")
    x = g.pick("c")
    return g.add(f"T.{g.choice(['real', 'imag', 'conj', 'abs_', 'exp', 'sqr'])}({x})")


# --- patterns that rewrites look for --------------------------------------------------------------

_PATTERNS = """T.log(1 + {p}); T.log(1 - T.nnet.sigmoid({f})); T.log(T.nnet.sigmoid({f}))
T.log(1 + T.exp({f})); 1 / (1 + T.exp(-{f})); T.exp({f}) / (1 + T.exp({f}))
1 - T.nnet.sigmoid({f}); T.exp({f}) - 1; 1 - T.erf({f}); T.erfc({f}) - 1; 1 + T.erf(-{f})
1 - T.erfc({f}); T.erf({f}) - 1; T.log(T.erfc({f})); T.exp(T.log({p})); T.log(T.exp({f}))
T.sqr(T.sqrt({p})); T.sqrt(T.sqr({f})); T.log(T.sum(T.exp({f}), axis=-1))
T.log(T.exp({f}) + T.exp({g})); T.nnet.sigmoid({f}) * T.exp(-{f}); abs({f}) * abs({g})
abs({f}) / abs({p}); -(-{f}); (-{f}) / (-{p}); {f} - (-{g}); -{f} + {g}; {f} * {p} / {p}
{f} * {g} * {f}; {f} * {f} * {f}; {p} ** 0.5; {p} ** -1; {p} ** 1.5; {p} ** {q}; {f} + {f}
{f} - {f}; {f} * 0 + {g}; 2 * {f} + 3 * {f}; ({f} + {g}) - {g}; {f} / {p} / {q}
{f} / ({p} / {q}); ({f} / {p}) * ({q} / {p}); T.sum(2 * {f}, axis=0); T.sum({f} / 3.0)
T.sum({f}.T, axis=-1); T.sum(T.sum({f}, axis=-1), axis=-1); T.prod(T.prod({p}, axis=0), axis=0)
T.max(-{f}); -T.max(-{f}, axis=-1); T.min(-{f}, axis=0); T.sum(-{f}); T.mean({f} * 2 + {g})
T.exp({f}) / T.sum(T.exp({f}), axis=-1, keepdims=True); T.sum(T.sqr({f} - {g}))
T.sqrt(T.sum(T.sqr({f}), axis=-1)); {f} * T.ones_like({f}); {f} + T.zeros_like({g})
T.fill({f}, 2.0) * {g}; T.fill({f}, {g}); T.zeros_like({f}) - {g}; T.dot({m}, {m}.T)
T.dot({m}.T, {m}); T.ones_like({f}) * 3 + {g}
T.sum(T.alloc(1.5, {m}.shape[0], {m}.shape[1]) * {m})
T.nnet.sigmoid({f}) * (1 - T.nnet.sigmoid({f})); {f} / T.sqrt(T.sqr({p})); 1 / T.sqrt({p})
-{f} * -{g}; T.log1p(-T.nnet.sigmoid({f})); T.log1p(T.exp({f})); T.nnet.softplus({f}) - {f}
T.exp(-{f}) * T.exp({f}); T.switch(T.gt({e}, 0), {f}, 0) * {g}
T.switch(T.gt({e}, 0), {f}, {g}) / {p}; T.maximum(0, {f}) + {g}; T.log(T.prod({p}, axis=-1))
T.sum({f}, axis=()); T.sum({f} * {p}, axis=0) / 2; T.sqr({f}) * {g}; T.exp({f}) * T.exp({g})
T.exp({f} + {g}) / T.exp({g}); {f} ** 2 * {f}; T.log({p}) + T.log({q}); T.log({p} * {q})
T.log({p} ** 2); {f} * 1; {f} / 1; {f} + 0; {f} ** 1; 1 * {f} - 0; {f} / 2 * 2
T.exp({m}) / T.sum(T.exp({m}), axis=1, keepdims=True); T.deg2rad(T.rad2deg({f}))
T.log(T.exp({m}) / T.sum(T.exp({m}), axis=1, keepdims=True)); T.sum(T.stack([{f}, {f}]), axis=0)
T.nnet.softmax({m} - T.max({m}, axis=1, keepdims=True)); T.max(T.stack([{f}, {f}]), axis=0)
T.set_subtensor({m}[1:], {m}[:-1])[1:]; T.inc_subtensor({m}[:1], 2)[:1]; 1 + -1 * T.erf({f})
T.switch(T.gt({e}, 0), 0, {f}) / {p}; T.nnet.sigmoid({f}) / T.nnet.sigmoid(-{f}); 1 + -T.erfc({f})
{m} - 0.5 * T.set_subtensor(T.zeros_like({m})[:1], 1); T.erfc(-{f}) - 1; -T.nnet.softmax({m}) * {m}
T.set_subtensor(T.zeros_like({m})[:1], 2) + T.inc_subtensor(T.zeros_like({m})[1:], 3)
T.split({f}, [{f}.shape[0]], 1, axis=0); T.nnet.sigmoid({f}) * T.exp(-{f}) + {g}"""
PATTERNS = [p.strip() for p in _PATTERNS.replace("\n", ";").split(";") if p.strip()]


@step(14)
def pattern(g: Grower) -> object:
    text = g.choice(PATTERNS)
    f = g.pick("f", level=0, low=1 if "axis=" in text or ".T" in text or "shape[0]" in text else 0)
    with_other = g.beside(f, kinds="f", level=0)
    filled = {"f": f, "g": with_other}
    for letter, of in (("p", f), ("q", with_other)):
        if f"{{{letter}}}" in text:
            filled[letter] = _positive(g, of)
    if "T.log(T.sum" in text and not g.value(f).size:
        raise Rejected  # the maximum that the rewrite takes is refused over an empty axis
    if "{m}" in text:
        filled["m"] = g.pick("f", 2, 2, level=0)
    if "{e}" in text:
        filled["e"] = g.pick("iuf", exact=True, level=0, where=lambda n: g.shape(n) == g.shape(f))
    return g.add(text.format(**filled))


def _positive(g: Grower, name: str) -> str:
    value = g.value(name)
    if value.size == 0 or value.min() > 0.05:
        return name
    return g.choice([f"(T.abs_({name}) + 0.5)", f"T.exp({name})", f"(T.sqr({name}) + 1)"])


# --- reductions -----------------------------------------------------------------------------------


def _axes(g: Grower, name: str, none: bool = True) -> Any:
    ndim = g.ndim(name)
    choices = [repr(axis - (ndim if g.chance(30) else 0)) for axis in range(ndim)]
    if none:
        choices.append("None")
        if ndim > 1:
            several = list(dict.fromkeys(g.below(ndim) for _ in range(g.between(2, ndim))))
            several = [axis - (ndim if g.chance(20) else 0) for axis in several]
            choices += [repr(tuple(several))] * 2
    return g.choice(choices)


@step(12)
def reduced(g: Grower) -> object:
    name = g.choice("sum sum prod max min mean all any".split())
    x = g.pick("b" if name in ("all", "any") and g.chance(50) else "biuf",
               exact=name in ("all", "any"))  # fmt: skip
    axis, keep = _axes(g, x), g.chance(30)
    text = f"T.{name}({x}, axis={axis}" + (", keepdims=True)" if keep else ")")
    reference = text.replace("T.", "np.") if name not in ("all", "any") else None
    if reference and g.kind(x) == "f" and name != "min" and name != "max":
        reference = reference.replace(f"({x}", f"({x}.astype('float64')")
    if name in ("max", "min") and g.kind(x) in "bu":
        reference = None
    if name == "mean" and (not g.value(x).size or (g.kind(x) in "iu" and _far(g.value(x)))):
        raise Rejected  # integers are summed as int64, which may wrap around
    return g.add(text, arithmetic=name not in ("max", "min"), reference=reference)


@step(3)
def reduced_otherwise(g: Grower) -> object:
    x = g.pick("f", 1, level=0)
    return g.add(g.choice([
        f"T.var({x}, axis={_axes(g, x, False)})", f"T.std({x}, axis={_axes(g, x, False)})",
        f"T.ptp({x}, axis={_axes(g, x, False)})",
        f"T.sum({x}, dtype='float64', axis={_axes(g, x)})",
        f"{x}.norm(2, axis={_axes(g, x, False)})", f"T.prod({x}, no_zeros_in_input=True)",
        f"T.max_and_argmax({x}, axis={_axes(g, x, False)})[0]",
        f"T.sum({x}, acc_dtype='float64', axis={_axes(g, x)})",
    ]))  # fmt: skip


@step(4)
def position(g: Grower) -> object:
    x = g.pick("iuf", 1, exact=True)
    name = g.choice(["argmax", "argmin", "argsort", "max_and_argmax"])
    if g.level[x] and name != "argmax":
        raise Rejected
    axis = _axes(g, x, none=False)
    if name == "max_and_argmax":
        return g.add(f"T.max_and_argmax({x}, axis={axis})[1]", arithmetic=False)
    if name == "argsort":  # equal elements may stand in any order: only this kind keeps them
        return g.add(f"T.argsort({x}, axis={axis}, kind='mergesort')", arithmetic=False)
    if name == "argmin" and g.kind(x) == "u":
        raise Rejected
    return g.add(f"T.{name}({x}, axis={axis})", arithmetic=False,
                 reference=f"np.{name}({x}, axis={axis})")  # fmt: skip


@step(3)
def sort(g: Grower) -> object:
    x = g.pick("biuf", 1, level=0)
    axis = _axes(g, x, none=False)
    if g.chance(25) and g.shape(x)[-1] > 1:
        return g.add(f"T.topk({x}, {g.choice([1, -1, 2])})", arithmetic=False)
    return g.add(f"T.sort({x}, axis={axis})", arithmetic=False,
                 reference=f"np.sort({x}, axis={axis})")  # fmt: skip


@step(4)
def cumulated(g: Grower) -> object:
    x = g.pick("iuf", 1)
    name, axis = g.choice(["cumsum", "cumprod", "cumsum"]), _axes(g, x, none=False)
    return g.add(f"T.{name}({x}, axis={g.choice([axis, 'None'])})")


# --- products -------------------------------------------------------------------------------------


@step(8)
def dot(g: Grower) -> object:
    x = g.pick("fiuc", 1, 3 if g.chance(20) else 2)
    last = g.shape(x)[-1]
    kinds = "f" if g.kind(x) == "f" else "fiuc"
    y = g.pick(kinds, 1, 2, where=lambda n: g.shape(n)[0] == last) if g.chance(60) else g.leaf(
        g.dtype(x), [last, *([g.choice(g.sizes)] if g.chance(60) else [])])  # fmt: skip
    return g.add(f"T.dot({x}, {y})", reference=f"np.matmul({x}, {y})" if g.kind(x) == "f" else None)


@step(4)
def gemm(g: Grower) -> object:
    dtype = g.choice(["float64", "float32"])
    n, k, m = (g.choice(g.sizes) for _ in range(3))
    a, b = g.leaf(dtype, (n, k)), g.leaf(dtype, (k, m))
    if g.chance(30):
        made = [x for x in g.order if g.shape(x) == (n, k) and g.dtype(x) == dtype
                and g.level[x] == 0]  # fmt: skip
        a = g.choice(made or [a])
    fitting = [x for x in g.order if g.shape(x) == (n, m) and g.dtype(x) == dtype]
    z = g.choice(fitting) if fitting and g.chance(60) else g.leaf(dtype, (n, m))
    text = g.choice(["{z} + T.dot({a}, {b})", "{z} - 0.5 * T.dot({a}, {b})", "2 * T.dot({a}, {b})",
                     "0.5 * {z} + 2 * T.dot({a}, {b})", "T.dot({a}, {b}) - {z}",
                     "T.dot({b}.T, {a}.T).T + {z}", "T.dot({a}, {b}[:, 0]) + {z}[:, 0]",
                     "{z} + 0.1 * T.outer({a}[:, 0], {b}[0])", "{z}[0] + T.dot({a}[0], {b})",
                     "T.dot({a}, {b})[0]", "T.dot({a}, {b}).T", "T.dot({a}[::-1], {b}[:, ::2])",
                     "T.sum(T.dot({a}, {b}), axis=0)", "-T.dot({a}, {b})"])  # fmt: skip
    return g.add(text.format(a=a, b=b, z=z))


@step(3)
def other_products(g: Grower) -> object:
    x = g.pick("f", 1, 3)
    if g.chance(35) and g.ndim(x) <= 2:
        return g.add(f"T.outer({x}, {g.pick('f', 1, 2)})")
    shape = g.shape(x)
    if g.ndim(x) == 3 or g.chance(50):
        if g.ndim(x) < 2:
            raise Rejected
        y = g.leaf(g.dtype(x), (shape[0], shape[-1], g.choice(g.sizes)))
        if g.ndim(x) == 2:
            return g.add(f"T.batched_dot({x}, {y})")
        return g.add(f"T.batched_dot({x}, {y})", reference=f"np.matmul({x}, {y})")
    y = g.leaf(g.dtype(x), (shape[-1], g.choice(g.sizes)))
    return g.add(f"T.tensordot({x}, {y}, axes=[[{len(shape) - 1}], [0]])")


@step(3)
def tensordot(g: Grower) -> object:
    """Sums over several axes of two tensors, in any order."""
    x = g.pick("f", 1, 3, level=0)
    axes = _shuffled(g, range(g.ndim(x)))[: g.between(1, g.ndim(x))]
    other = _shuffled(g, [*axes, None])  # axes of x that y has, and one of its own
    shape = [g.choice(g.sizes) if axis is None else g.shape(x)[axis] for axis in other]
    y = g.leaf(g.dtype(x), shape, broadcast=[False] * len(shape), finite=True)
    text = f"tensordot({x}, {y}, axes=[{axes}, {[other.index(axis) for axis in axes]}])"
    return g.add(f"T.{text}", reference=f"np.{text}")


@step(4)
def reduced_in_another_order(g: Grower) -> object:
    """Reductions of what was transposed, and several in one Apply, by axes in any order."""
    x = g.pick("iuf", 2, 4, level=0)
    order = _shuffled(g, range(g.ndim(x)))
    axes = tuple(_shuffled(g, range(g.ndim(x)))[: g.between(1, g.ndim(x))])
    name = g.choice(["sum", "max", "min", "argmax", "prod", "mean", "std"])
    if name in ("std", "mean") and (g.kind(x) != "f" or not g.value(x).size):
        raise Rejected
    if name == "argmax":
        if not g.exact(x):
            raise Rejected
        return g.add(f"T.argmax({x}.transpose({order}), axis={axes})", arithmetic=False)
    return g.add(f"T.{name}({x}.transpose({order}), axis={axes})",
                 arithmetic=name not in ("max", "min"))  # fmt: skip


# --- shapes ---------------------------------------------------------------------------------------


@step(7)
def shuffled(g: Grower) -> object:
    x = g.pick(low=1)
    order: list[Any] = _shuffled(g, range(g.ndim(x)))
    pattern = g.var(x).type.broadcastable
    order = [d for d in order if not (pattern[d] and g.chance(40))]
    while len(order) < 4 and g.chance(30):
        order.insert(g.below(len(order) + 1), "x")
    return g.add(f"{x}.dimshuffle({', '.join(map(repr, order))})" if order else
                 f"{x}.dimshuffle([])", arithmetic=False)  # fmt: skip


@step(4)
def transposed(g: Grower) -> object:
    x = g.pick(low=2)
    a, b = g.below(g.ndim(x)), g.below(g.ndim(x))
    text, reference = g.choice([(f"{x}.T", f"{x}.T"),
                                (f"T.swapaxes({x}, {a}, {b})", f"np.swapaxes({x}, {a}, {b})"),
                                (f"T.flatten({x}, 2)", None),
                                (f"T.flatten({x})", f"np.ravel({x})")])  # fmt: skip
    return g.add(text, arithmetic=False, reference=reference)


@step(7)
def reshaped(g: Grower) -> object:
    x = g.pick()
    n = g.ndim(x)
    lengths = [g.choice([f"{x}.shape[{d}]", str(g.shape(x)[d])]) for d in range(n)]
    forms = [["-1"], ["1", *lengths], [*lengths, "1"], [f"{x}.size"]]
    if n > 1:
        forms += [["-1", *lengths[2:]], [lengths[0], "-1"], lengths[::-1],
                  [f"{lengths[0]} * {lengths[1]}", *lengths[2:]]]  # fmt: skip
    form = g.choice(forms)
    if len(form) > 4:
        raise Rejected
    return g.add(f"{x}.reshape(({', '.join(form)},), ndim={len(form)})", arithmetic=False)


@step(4)
def joined(g: Grower) -> object:
    x = g.pick(low=1)
    axis = g.below(g.ndim(x))
    others = [
        o
        for o in g.order
        if g.ndim(o) == g.ndim(x)
        and all(
            n == m for d, (n, m) in enumerate(zip(g.shape(o), g.shape(x), strict=True)) if d != axis
        )
    ]
    parts = ", ".join(g.choice(others) for _ in range(g.between(1, 3)))
    return g.add(f"T.concatenate([{x}, {parts}], axis={axis})", arithmetic=False,
                 reference=f"np.concatenate([{x}, {parts}], axis={axis})")  # fmt: skip


@step(3)
def stacked(g: Grower) -> object:
    x = g.pick(high=3)
    axis = g.between(-1, g.ndim(x))
    parts = ", ".join(g.like(x) for _ in range(g.between(1, 2)))
    return g.add(f"T.stack([{x}, {parts}], axis={axis})", arithmetic=False)


@step(2)
def components(g: Grower) -> object:
    """A step of a differential equation, or two: parts of an array, computed with and stacked."""
    n, others = g.between(2, 4), [g.between(1, 4) for _ in range(g.below(3))]
    axis = g.below(len(others) + 1)
    shape = [*others[:axis], n, *others[axis:]]
    whole = g.leaf(g.choice(["float64", "float32"]), shape, finite=True,
                   broadcast=[False] * len(shape))  # fmt: skip
    function = g.choice(["T.sin({})", "0.5 * {}", "-{}", "T.tanh({})"])
    before = ":, " * axis
    for _ in range(g.between(1, 2)):
        parts = [f"{whole}[{before}{g.between(-n, n - 1)}]" for _ in range(2 * n)]
        values = (g.choice([a, f"{function.format(a)} - {b}"])
                  for a, b in zip(parts[:n], parts[n:], strict=True))  # fmt: skip
        change = f"0.25 * T.stack([{', '.join(values)}], axis={axis})"
        whole = g.add(g.choice([f"{whole} + {change}", f"T.tanh({change})"]))
    return whole


@step(3)
def split(g: Grower) -> object:
    x = g.pick(low=1)
    axis = g.below(g.ndim(x))
    n = g.shape(x)[axis]
    first = g.below(n + 1)
    second = g.choice([f"{x}.shape[{axis}] - {first}", str(n - first)])
    return g.add(f"T.split({x}, [{first}, {second}], 2, axis={axis})[{g.below(2)}]",
                 arithmetic=False)  # fmt: skip


#: whole numbers whose sums and products overflow
EXTREMES = (-(2**63), -(2**63) + 1, -(2**62), -(2**32), 2**31, 2**62, 2**63 - 6, 2**63 - 1)


@step(2)
def extreme_range(g: Grower) -> object:
    numbers = [g.choice((*EXTREMES, 0, 1, 10)) for _ in range(3)]
    if not numbers[2] or how_many(*numbers) > 20:
        raise Rejected
    return g.add("T.arange({}, {}, {})".format(*numbers), arithmetic=False)


@step(6)
def made(g: Grower) -> object:
    x = g.pick()
    n = g.ndim(x)
    shape = ", ".join(f"{x}.shape[{d}]" for d in range(n))
    forms = [f"T.zeros_like({x})", f"T.ones_like({x})", f"T.fill({x}, {g.choice(_NUMBERS)})",
             f"T.alloc({x}, 2, {shape})" if n < 4 else f"T.zeros_like({x})", f"T.arange({x}.size)",
             f"T.shape({x}).sum()"]  # fmt: skip
    if n:
        forms += [
            f"T.zeros(({shape},), {g.choice(g.dtypes)!r})",
            f"{x}.shape[{g.below(n)}] + 0",
            f"T.eye({x}.shape[0], {g.choice(['3', '2', 'None'])}, {g.between(-1, 1)})",
            f"T.arange({g.between(-3, 3)}, {g.between(-3, 6)}, {g.choice([1, 2, -1, -2])})",
            f"T.tri({x}.shape[0], 3, {g.between(-1, 2)})",
            f"T.alloc({x}, {g.between(1, 2)}, {shape})" if n < 4 else f"T.ones_like({x})",
            f"T.alloc(1.5, {shape})",
            f"{x}.shape.max()",
            f"T.unbroadcast({x}, 0)",
            f"T.specify_shape({x}, {g.shape(x)})",
        ]
    if n == 2:
        forms += [f"T.identity_like({x})", f"T.tril({x}, {g.between(-1, 1)})",
                  f"T.triu({x}, {g.between(-1, 1)})"]  # fmt: skip
    if n and g.shape(x)[0] == 1:
        forms += [
            f"T.addbroadcast({x}, 0)",
            f"T.patternbroadcast({x}, {(True,) + (False,) * (n - 1)})",
        ]
    forms += [f"T.squeeze({x})", f"T.shape_padleft({x})",
              f"theano.gradient.disconnected_grad({x})", f"T.tensor_copy({x})"]  # fmt: skip
    return g.add(g.choice(forms), arithmetic=False)


@step(5)
def moved(g: Grower) -> object:
    x = g.pick(low=1)
    axis, k = g.below(g.ndim(x)), g.between(-2, 3)
    forms = [(f"T.roll({x}, {k}, axis={axis})", f"np.roll({x}, {k}, axis={axis})"),
             (f"T.repeat({x}, {abs(k)}, axis={axis})", f"np.repeat({x}, {abs(k)}, axis={axis})"),
             (f"T.tile({x}, {tuple([2] * g.ndim(x))})", f"np.tile({x}, {tuple([2] * g.ndim(x))})"),
             (f"T.repeat({x}, {x}.shape[{axis}], axis={axis})", None)]  # fmt: skip
    if g.kind(x) in "if":
        forms.append((f"diff({x}, n={g.between(1, 2)}, axis={axis})", None))
    if g.ndim(x) == 2:
        forms += [(f"T.diagonal({x}, {g.between(-1, 1)})", None), (f"T.diag({x})", None)]
        if g.kind(x) == "f":
            forms += [
                (f"T.fill_diagonal({x}, {g.choice(['0', '2'])})", None),
                (f"T.fill_diagonal_offset({x}, 1, {g.between(-1, 1)})", None),
            ]
    if g.ndim(x) == 1:
        forms.append((f"T.diag({x})", f"np.diag({x})"))
    text, reference = g.choice(forms)
    return g.add(text, arithmetic="diff" in text, reference=reference)


# --- indexing -------------------------------------------------------------------------------------


def _bound(g: Grower, n: int) -> str:
    if g.chance(4):
        return str(g.choice(EXTREMES))
    return g.choice(["", "", str(g.between(-n - 1, n + 1)), str(g.between(-n, n))])


def _basic(g: Grower, name: str, scalars: Sequence[str] = ()) -> str:
    shape = g.shape(name)
    parts = []
    for n in shape[: g.between(1, len(shape))]:
        if n and g.chance(35):
            whole = g.between(-n, n - 1)
            use = [s for s in scalars if -n <= int(g.value(s)) < n]
            parts.append(g.choice(use) if use and g.chance(50) else str(whole))
        else:
            step = g.choice(["", "", "", "-1", "2", "-2", "1"])
            if g.chance(3):
                step = str(g.choice(EXTREMES))
            start, stop = _bound(g, n), _bound(g, n)
            if scalars and g.chance(25):
                start = g.choice(scalars)
            parts.append(f"{start}:{stop}" + (f":{step}" if step else ""))
    if g.chance(6):
        parts.insert(0, "...")
    if g.chance(6) and len(shape) < 4 and "..." not in parts:
        # beside None, indices must name all dimensions: the others are dropped, as in Theano
        parts += [":"] * (len(shape) - len(parts))
        parts.insert(g.below(len(parts) + 1), "None")
    return ", ".join(parts)


def _scalars(g: Grower) -> list[str]:
    return [n for n in g.order if g.ndim(n) == 0 and g.kind(n) == "i" and g.exact(n)
            and abs(int(g.value(n))) < 10]  # fmt: skip


@step(12)
def indexed(g: Grower) -> object:
    x = g.pick(low=1)
    index = _basic(g, x, _scalars(g))
    plain = not any(c == "v" for c in index)
    return g.add(f"{x}[{index}]", arithmetic=False, reference=f"{x}[{index}]" if plain else None)


def _positions(g: Grower, n: int, shape: tuple[int, ...] | None = None) -> str:
    """Return the name of a tensor of whole numbers that are positions among n, or text."""
    if not n:
        raise Rejected
    fitting = [
        o for o in g.order if g.kind(o) in "iu" and g.dtype(o) != "uint64" and 1 <= g.ndim(o) <= 2
        and g.exact(o) and (g.value(o) >= -n).all() and (g.value(o) < n).all()
        and (shape is None or g.shape(o) == shape)
    ]  # fmt: skip
    if fitting and g.chance(70):
        return g.choice(fitting)
    length = shape[0] if shape else g.between(0, 4)
    return repr([g.between(-n, n - 1) for _ in range(length)]) if length else "np.zeros(0, int)"


def _advanced(g: Grower, x: str) -> str:
    """Return text of an index with arrays or masks."""
    shape, n = g.shape(x), g.ndim(x)
    draw = g.below(5)
    if draw == 0:
        masks = [o for o in g.order if g.kind(o) == "b" and g.ndim(o) and g.exact(o)
                 and g.shape(o) == shape[: g.ndim(o)]]  # fmt: skip
        if masks:
            return g.choice(masks)
        return g.leaf("bool", shape[: g.between(1, n)])
    if draw == 1 and n > 1:
        i = _positions(g, shape[0], (2,))
        return f"{i}, {_positions(g, shape[1], (2,))}"
    if draw == 2 and n > 1:
        axis = g.between(1, n - 1)
        return ", ".join([":"] * axis + [_positions(g, shape[axis])])
    if draw == 3 and n > 2:
        return f"{_positions(g, shape[0], (3,))}, :, {_positions(g, shape[2], (3,))}"
    if draw == 4 and n > 1:
        return f"{_positions(g, shape[0])}, {g.choice(['::-1', '1:', ':', '0'])}"
    return _positions(g, shape[0])


@step(8)
def picked(g: Grower) -> object:
    x = g.pick(low=1)
    index = _advanced(g, x)
    return g.add(f"{x}[{index}]", arithmetic=False)


@step(2)
def taken(g: Grower) -> object:
    x = g.pick(low=1)
    axis = g.below(g.ndim(x))
    i = _positions(g, g.shape(x)[axis])
    return g.add(f"T.take({x}, {i}, axis={axis})", arithmetic=False)


@step(10)
def changed(g: Grower) -> object:
    x = g.pick(low=1, level=0)
    index = _basic(g, x, _scalars(g)) if g.chance(60) else _advanced(g, x)
    part = g.add(f"{x}[{index}]", arithmetic=False)
    shape = g.shape(part)
    if g.chance(30):
        value = g.choice(["0", "2", "1.0" if g.kind(x) in "fc" else "1"])
    else:
        fitting = [
            o
            for o in g.order
            if g.dtype(o) == g.dtype(x)
            and g.level[o] == 0
            and g.ndim(o) <= len(shape)
            and all(
                n == m or (n == 1 and one)
                for n, m, one in zip(
                    g.shape(o)[::-1], shape[::-1], g.var(o).broadcastable[::-1], strict=False
                )
            )
        ]
        value = g.choice(fitting)
    whole = x if g.chance(75) else f"T.zeros_like({x})"
    how = g.choice(["inc", "set"])
    return g.add(f"T.{how}_subtensor({whole}[{index}], {value})", arithmetic=how == "inc")


# --- selection and others -------------------------------------------------------------------------


@step(3)
def selected(g: Grower) -> object:
    x = g.pick("biuf", 1, exact=True, level=0)
    n = g.ndim(x)
    forms = [f"T.nonzero({x})[{g.below(n)}]", f"T.flatnonzero({x})", f"T.nonzero_values({x})",
             f"T.nonzero({x}, return_matrix=True)"]  # fmt: skip
    if g.kind(x) in "iu" and n == 1 and g.value(x).size and g.value(x).min() >= 0:
        if g.value(x).max() < 10 and g.dtype(x) != "uint64":
            forms += [f"bincount({x}, minlength=4)", f"to_one_hot({x}, 10)",
                      f"T.unravel_index({x}, (5, 4))[0]"]  # fmt: skip
    y = g.pick("iuf", 1, 1, level=0)
    forms.append(f"compress({g.leaf('bool', g.shape(x)[:1])}, {x}, axis=0)")
    forms.append(f"searchsorted(T.sort({y}), {g.leaf(g.dtype(y), (3,))})")
    forms.append(f"T.choose({g.leaf('int64', g.shape(x))} % 2, [{x}, {x}])")
    text = g.choice(forms)
    if "searchsorted" in text and not g.exact(y):
        raise Rejected
    return g.add(text, arithmetic=False)


@step(8)
def of_network(g: Grower) -> object:
    x = g.pick("f", 2, 2, level=0, where=lambda n: g.dtype(n) != "float16")
    rows, columns = g.shape(x)
    soft = f"T.nnet.softmax({x})"
    forms = [soft, soft, f"T.nnet.logsoftmax({x})", f"T.log({soft})", f"T.nnet.relu({x})",
             f"T.nnet.elu({x})", f"T.nnet.selu({x})", f"T.nnet.relu({x}, 0.1)",
             f"T.nnet.hard_sigmoid({x})", f"T.nnet.softsign({x})", f"T.argmax({soft}, axis=1)[:0]",
             f"T.nnet.binary_crossentropy(T.nnet.sigmoid({x}), T.clip({x}, 0, 1))"]  # fmt: skip
    if columns:
        b = g.leaf(g.dtype(x), (columns,), broadcast=[False], finite=True)
        forms += [f"T.nnet.softmax({x} + {b})", f"T.nnet.softmax_op({x} + {b})"]
        labels = g.leaf("int64", (rows,), broadcast=[False])
        label = f"({labels} % {columns})"
        forms += [f"T.nnet.categorical_crossentropy({soft}, {label})",
                  f"T.mean(T.nnet.categorical_crossentropy(T.nnet.softmax({x} + {b}), {label}))",
                  f"-T.log({soft})[T.arange({x}.shape[0]), {label}]",
                  f"-T.mean(T.log({soft})[T.arange({label}.shape[0]), {label}])",
                  f"T.nnet.categorical_crossentropy({soft}, T.exp({x}))",
                  f"T.nnet.crossentropy_softmax_1hot({x}, {label})[0]"]  # fmt: skip
        if rows:
            forms.append(f"T.nnet.batch_normalization({x}, {b}, {b}, {x}.mean(0), {x}.var(0) + 1)")
    return g.add(g.choice(forms))


# --- gradients ------------------------------------------------------------------------------------


@step(9)
def gradient(g: Grower) -> object:
    return gradient_of(g, g.pick("f", level=0, where=lambda n: n in g.program.statements))


def gradient_of(g: Grower, y: str) -> str:
    """Add the gradient of a cost of ``y`` by a leaf, compared with finite differences."""
    needed = g.program.needed([y])
    leaves = [n for n in g.program.leaves if n in needed and g.kind(n) == "f" and not g.level[n]]
    x = g.choice(leaves)
    cost = g.choice([f"T.sum({y})", f"T.sum(T.sqr({y}))", f"T.mean({y})", f"T.sum({y} * 0.5)",
                     f"T.sum(T.tanh({y}))"])  # fmt: skip
    text = f"T.grad({cost}, {x}, disconnected_inputs='ignore')"
    name = g.add(text)
    if can_be_checked(g.program, y, x):
        elements = {g.below(g.value(x).size) for _ in range(3)}
        how = wrong_slope(g.program, eval(cost, g.names), x, g.value(name), elements)
        if how is not None:
            raise Fault(f"{text}: {how}", g.only(name, text), REFERENCE)
    return name


# --- what depends on zeros and on lengths of 0 ----------------------------------------------------


@step(2)
def flattened_in_part(g: Grower) -> object:
    x = g.pick(low=2)
    n = g.between(1, g.ndim(x))
    kept = ", ".join(f"{x}.shape[{d}]" for d in range(n - 1))
    merged = " * ".join(f"{x}.shape[{d}]" for d in range(n - 1, g.ndim(x)))
    reference = f"{x}.reshape(({kept}{', ' if kept else ''}{merged},))"
    return g.add(f"T.flatten({x}, {n})", arithmetic=False, reference=reference)


@step(2)
def gradient_at_zeros(g: Grower) -> object:
    """Gradients where factors, distances and exponents are 0, which must be numbers."""
    x = g.leaf("float64", (g.between(1, 5),), exact=True, finite=True)
    cost = g.choice(["T.cumprod({x}).sum()", "{x}.norm(2)", "T.std({x} * 0)", "T.prod({x})",
                     "T.sum({x} ** 0)", "T.sum(abs({x}) ** T.cast({x} > 0, 'float64'))",
                     "T.sum(T.nnet.elu(1000 * {x}))"])  # fmt: skip
    name = g.add(f"T.grad({cost.format(x=x)}, {x})")
    if not np.isfinite(g.value(name)).all():
        raise Fault(f"the gradient of {cost.format(x=x)} is {g.value(name)}")
    return name
