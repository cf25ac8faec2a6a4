"""Every row of the scalar table: dtypes, numpy function, C expression, gradient."""

import contextlib
import ctypes
import itertools
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest

import opwise.tensor as T
from opwise import function
from opwise.graph.traversal import io_toposort
from opwise.linkers import opwise_c
from opwise.scalar import csource, dtypes, get_scalar_type
from opwise.scalar.borrowed import BORROWED
from opwise.scalar.op import CLASSES, OPS, SCALAR_ALGEBRA, numpy_callable
from opwise.scalar.spec import ROWS
from opwise.testing.configurations import mode_of

# ======================================================================================
# DTYPES
# ======================================================================================

SHORT = {
    "b": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip

# The dtype of the result where all operands have the dtype of the column; "-" is a TypeError.
# Recorded from Theano 1.0.5, as are those of the next table, but for rows that it lacks; there
# chi2sf takes complex numbers and drops their imaginary parts.
SAME = """
b  i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128
b i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128 | add mul int_div mod sqr maximum minimum
    switch second identity
- i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128 | sub neg
f64 f64 f64 f64 f64 f64 f64 f64 f64 f16 f32 f64 c64 c128 | true_div
i8 i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128 | pow conj
f32 f32 f32 f64 f64 f32 f32 f64 f64 f16 f32 f64 c64 c128 | inv exp exp2 expm1 log log2 log10 log1p
    sqrt scalar_sigmoid scalar_softplus ultra_fast_scalar_sigmoid scalar_softsign erf gamma gammaln
    psi tri_gamma gammainc gammaincc gammal gammau j0 j1 jv i0 i1 iv xlogx xlogy0 sin cos tan arcsin
    arccos arctan sinh cosh tanh arcsinh arccosh arctanh arctan2 deg2rad rad2deg
f32 f32 f32 f64 f64 f32 f32 f64 f64 f16 f32 f64 - - | ceil floor trunc erfc erfcx erfinv erfcinv
    betainc betaincinv gammaincinv gammainccinv hyp2f1 ive kve ndtri_exp owens_t zeta
b i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 f32 f64 | abs_ real imag
- i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 - - | sgn
- - - - - - - - - f16 f32 f64 - - | round_half_to_even round_half_away_from_zero
b i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 - - | clip
b i8 i16 i32 i64 u8 u16 u32 u64 - - - - - | or_ xor and_ invert
i8 i8 i16 i32 i64 u8 u16 u32 u64 - - - - - | left_shift right_shift
b b b b b b b b b b b b b b | lt gt le ge eq neq isnan isinf
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 | angle
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 - - | chi2sf
c64 c64 c64 c128 c128 c64 c64 c128 c128 c64 c64 c128 - - | complex complex_from_polar
"""

# The same for operands of two dtypes (for rows of three: the second dtype again).
MIXED = """
b,i8 i8,u8 i32,f32 u64,i64 i64,u64 i8,f16 f32,f64 i64,f32 u8,b
i8 i16 f64 f64 f64 f16 f64 f64 u8 | add mul sub int_div mod pow maximum minimum clip
f64 f64 f64 f64 f64 f16 f64 f64 f64 | true_div
i8 u8 f32 i64 u64 f16 f64 f32 b | second switch
- i16 - f64 f64 - - - - | or_ xor and_
i8 i16 - - - - - - u8 | left_shift right_shift
b b b b b b b b b | lt gt le ge eq neq
c64 c64 c128 c128 c128 c64 c128 c128 c64 | complex complex_from_polar
f64 f64 f64 f64 f64 f64 f64 f64 f64 | chi2sf
f32 f32 f64 f64 f64 f32 f64 f64 f32 | gammainc gammaincc gammal gammau jv iv xlogy0 arctan2
    betainc betaincinv gammaincinv gammainccinv hyp2f1 ive kve owens_t zeta
"""


def table(text):
    """Return (columns, {row name: results}) of a table above."""
    columns, *lines = text.strip().replace("\n    ", " ").split("\n")
    rows = {}
    for line in lines:
        results, names = line.split("|")
        for name in names.split():
            assert name not in rows
            rows[name] = results.split()
    return columns.split(), rows


def dtype_of(op, in_dtypes):
    try:
        return op.output_dtypes(in_dtypes)[0]
    except TypeError:
        return "-"


@pytest.mark.null
class TestDtypes:
    def test_every_row_is_recorded(self):
        assert set(table(SAME)[1]) == set(ROWS)
        assert set(table(MIXED)[1]) == {name for name, row in ROWS.items() if row.nin != 1}

    @pytest.mark.parametrize("name", ROWS)
    def test_same(self, name):
        columns, rows = table(SAME)
        row = ROWS[name]
        found = [dtype_of(OPS[name], [SHORT[d]] * max(row.nin, 2 if row.nin < 0 else 1))
                 for d in columns]  # fmt: skip
        assert found == [SHORT.get(d, d) for d in rows[name]]

    @pytest.mark.parametrize("name", table(MIXED)[1])
    def test_mixed(self, name):
        columns, rows = table(MIXED)
        found = []
        for pair in columns:
            first, second = (SHORT[d] for d in pair.split(","))
            found.append(dtype_of(OPS[name], [first, *[second] * (max(ROWS[name].nin, 2) - 1)]))
        assert found == [SHORT.get(d, d) for d in rows[name]]

    @pytest.mark.parametrize("name", ROWS)
    def test_results_have_that_dtype(self, name):
        row, op = ROWS[name], OPS[name]
        count = 2 if row.nin < 0 else row.nin
        ran = 0
        for dtype in dtypes.ALL:
            out = dtype_of(op, [dtype] * count)
            if out == "-":
                continue
            arrays = [np.array([1, 0, 1]).astype(dtype) for _ in range(count)]
            with np.errstate(all="ignore"):
                try:
                    (result,) = op.on_arrays(arrays, [out])
                except TypeError:
                    assert dtypes.kind(dtype) not in row.kinds, dtype
                    continue
            assert (result.dtype.name, result.shape) == (out, (3,)), dtype
            ran += 1
        assert ran >= 2

    @pytest.mark.parametrize("name", table(MIXED)[1])
    def test_operands_of_any_two_dtypes_can_be_computed(self, name):
        """No row promises a dtype for operands that it then refuses."""
        row, op = ROWS[name], OPS[name]
        taken = [d for d in dtypes.ALL if dtypes.kind(d) in row.kinds or row.kinds == "biufc"]
        count = 2 if row.nin < 0 else row.nin
        for pair in itertools.product(taken, repeat=2):
            ins = [pair[0], *[pair[1]] * (count - 1)]
            out = dtype_of(op, ins)
            if out != "-":
                arrays = [np.array([1, 0, 1]).astype(d) for d in ins]
                with np.errstate(all="ignore"):
                    (result,) = op.on_arrays(arrays, [out])
                assert (result.dtype.name, result.shape) == (out, (3,)), pair


def test_two_rows_cannot_share_a_name():
    from opwise.scalar.spec import row

    with pytest.raises(ValueError, match="there is a scalar operation add already"):
        row("add", "Add", 2, dtypes.upcast, np.add, "{x} + {y}")


@pytest.mark.null
@pytest.mark.parametrize("name", ROWS)
def test_op(name):
    """Each row has an op of its legacy class, equal to another instance of it."""
    row, op = ROWS[name], OPS[name]
    assert type(op).__name__ == row.cls and type(op) is CLASSES[row.cls]
    assert op == type(op)() and hash(op) == hash(type(op)())
    assert row.doc
    with pytest.raises(TypeError):
        op(*[1.0] * (row.nin + 1 if row.nin > 0 else 0))


KINDS = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats",
         "c": "complex numbers"}  # fmt: skip


@pytest.mark.null
@pytest.mark.parametrize("name", ROWS)
def test_the_docstring_says_what_the_function_takes(name):
    row = ROWS[name]
    doc = T.elemwise.FUNCTIONS[row.tensor_name or name].__doc__
    assert doc.startswith(f"{row.doc}\n\nElementwise")
    takes = re.search(r"^Takes ([^.;]*)", doc, re.M)[1].replace(" and ", ", ").split(", ")
    taken = []
    for dtype in ("bool", "int16", "uint64", "float64", "complex128"):
        operands = [T.TensorType(dtype, (False,))() for _ in range(2 if row.nin < 0 else row.nin)]
        with contextlib.suppress(TypeError):
            T.elemwise.elemwise(name)(*operands)
            taken.append(KINDS[dtypes.kind(dtype)])
    assert takes == taken
    assert ("TypeError for others" in doc) == (len(taken) < len(KINDS))


# ======================================================================================
# C
# ======================================================================================

FLOATS = ("float32", "float64")
C_DTYPES = tuple(d for d in dtypes.ALL if csource.is_plain(d))

# Rows on operands of several dtypes: what is cast to the computing dtype, and what is not.
MIXED_C = [
    (name, pair)
    for name in ("add", "mul", "sub", "true_div", "lt", "eq", "maximum")
    for pair in (("int8", "float32"), ("int32", "float32"), ("int64", "uint64"), ("bool", "uint8"))
] + [
    *(
        (name, pair)
        for name in ("and_", "or_", "xor")
        for pair in (("int8", "uint64"), ("uint64", "int64"))
    ),
    ("switch", ("float32", "int8", "float64")),
    ("switch", ("int8", "float32", "float32")),
    ("second", ("float64", "int8")),
    ("add", ("int8", "float32", "bool")),
    ("mul", ("uint8", "uint8", "int16", "float32")),
    ("pow", ("float32", "int8")),
    ("exp", ("int8",)),
    ("exp", ("uint64",)),
    ("scalar_sigmoid", ("int16",)),
    ("floor", ("bool",)),
]

# scipy is compared with as it is; these are the errors, in ulp, that it brings along itself.
SCIPY_ULP = {
    "gamma": 12, "gammaln": 12, "tri_gamma": 12, "j0": 12, "j1": 12, "erfc": 12, "erfcinv": 8,
    "i1": 8,
}  # fmt: skip
# Where these functions are near 0 by cancellation, an error is counted in ulp of this number.
SCALE = {"gammaln": 0.25, "j0": 0.25, "j1": 0.25, "ultra_fast_scalar_sigmoid": 1.0, "add": 1.0}
# Where scipy and C differ in kind: denormal numbers, infinities, and poles of the gamma function.
SCIPY_DIFFERS = {
    "gamma": lambda x: (x < 0) | (np.abs(x) < 1e-30),
    "j0": lambda x: np.isinf(x) | (np.abs(x) > 1e15),
    "j1": lambda x: np.isinf(x) | (np.abs(x) > 1e15),
    "i0": np.isinf,
    "i1": lambda x: np.isinf(x) | (np.abs(x) < 1e-30),
    "erfcinv": lambda x: (x > 0) & (x < 1e-300),
    "zeta": lambda s: s > 1e30,
}


def c_cases():
    """Return the (row name, input dtypes) that have C: every row, on every dtype it is made for."""
    cases = []
    for name, row in ROWS.items():
        count = 2 if row.nin < 0 else row.nin
        for dtype in C_DTYPES:
            out = dtype_of(OPS[name], [dtype] * count)
            if out == "-" or not csource.is_plain(out):
                continue
            if dtype not in FLOATS and row.compute_dtype([dtype] * count, out) != dtype:
                continue  # converted first, as MIXED_C does for some
            cases.append((name, (dtype,) * count))
    return [case for case in cases + MIXED_C if expression(*case)[1] is not None]


def expression(name, in_dtypes):
    """Return (output dtype, C expression over a, b, ...)."""
    out = OPS[name].output_dtypes(list(in_dtypes))[0]
    return out, csource.step_c(OPS[name], "abcd"[: len(in_dtypes)], list(in_dtypes), out)


C_CASES = c_cases()


def loop(symbol, in_dtypes, out, text):
    """Return a line of C: a function that evaluates an expression for arrays of n elements."""
    types = dict(zip("abcd", map(csource.c_type, in_dtypes), strict=False))
    parameters = [f"const {c} *restrict {v}_" for v, c in types.items()]
    parameters += [f"{csource.c_type(out)} *restrict out", "long n"]
    loads = " ".join(f"const {c} {v} = {v}_[i];" for v, c in types.items())
    return (
        f"void {symbol}({', '.join(parameters)}) "
        f"{{ for (long i = 0; i < n; i++) {{ {loads} out[i] = {text}; }} }}\n"
    )


def compile_c(folder, text):
    """Return what gcc makes of a C text without headers, and the lines whose loops it vectorised.

    Warnings are errors.
    """
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc")
    source, library = folder / "rows.c", folder / "rows.so"
    source.write_text(text)
    command = ["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    command += ["-Wno-parentheses", "-Wno-unused", "-Wno-unused-parameter", "-Wno-type-limits"]
    # without merging equal functions, which would then not be reported
    command += ["-fopt-info-vec-optimized", "-fno-ipa-icf"]
    command += ["-fno-thread-jumps"]  # as kernels are compiled
    command += [*csource.FLAGS, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    lines = re.findall(r":(\d+):\d+: optimized: loop vectorized", done.stderr)
    loaded = ctypes.CDLL(str(library))
    opwise_c.lend(loaded._handle)
    return loaded, set(map(int, lines))


def run_c(library, symbol, arrays, out_dtype):
    result = np.empty(arrays[0].shape, out_dtype)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, result)]
    getattr(library, symbol)(*pointers, ctypes.c_long(result.size))
    return result


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """All rows on all their dtypes, from one call of the compiler; and what was vectorised."""
    names, functions, used = set(), set(), set()
    loops = []
    for k, (name, ins) in enumerate(C_CASES):
        out, text = expression(name, ins)
        support, libm, computing = csource.requirements(OPS[name], ins, out)
        names |= support
        functions |= libm
        used |= computing
        loops.append(loop(f"row{k}", ins, out, text))
    text = csource.prototypes(functions, used) + csource.support(names, used)
    first_line = text.count("\n") + 1
    library, lines = compile_c(tmp_path_factory.mktemp("rows"), text + "".join(loops))
    return library, {C_CASES[n - first_line] for n in lines if n >= first_line}


def special_values(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtype in dtypes.INTEGERS:
        info = np.iinfo(dtype)
        return np.unique(np.array([info.min, info.min + 1, 0, 1, 2, 3, info.max, info.max // 2, 7]
                                  + ([-1, -2] if info.min else []), dtype))  # fmt: skip
    info = np.finfo(dtype)
    return np.array(
        [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.0, info.max, info.min,
         info.smallest_subnormal, -info.smallest_subnormal, info.tiny, 1e-3, 20.0, -20.0, -90.0,
         -720.0], dtype,
    )  # fmt: skip


def operands(row, in_dtypes):
    """Return arrays of special values in all combinations, and of values in the row's domain."""
    combinations = list(itertools.product(*map(special_values, in_dtypes)))
    generator = np.random.default_rng(5)
    if len(combinations) > 800:
        generator.shuffle(combinations)
        combinations = combinations[:800]
    arrays = []
    for k, dtype in enumerate(in_dtypes):
        low, high = row.domain[k if k < len(row.domain) else -1]
        if dtype == "bool":
            random = generator.integers(0, 2, 300).astype(bool)
        elif dtype in dtypes.INTEGERS:
            info = np.iinfo(dtype)
            random = generator.integers(info.min, info.max, 300, dtype=dtype, endpoint=True)
            random[::2] = random[::2] % 11 + (-5 if info.min else 0)
        else:
            random = generator.uniform(low, high, 3000).astype(dtype)
        special = np.array([c[k] for c in combinations], dtype)
        arrays.append(np.concatenate([special, np.resize(random, 3000)]))
    return arrays


def reference(row, arrays, in_dtypes, out):
    """Return what the row's numpy function gives, in more precision than the dtype has."""
    computing = row.compute_dtype(list(in_dtypes), out)
    of_scipy = isinstance(row.numpy, str) or row.name == "tri_gamma" or BORROWED.keys() & row.libm
    if computing in FLOATS and of_scipy and computing == "float64":
        wide = "float64"  # scipy has nothing wider
    else:
        wide = {"float32": "float64", "float64": "longdouble"}.get(computing, computing)
    wide_arrays = [
        a if k < row.n_uncast else a.astype(computing).astype(wide) for k, a in enumerate(arrays)
    ]
    with np.errstate(all="ignore"):
        return numpy_callable(row)(*wide_arrays)


def ulps(got, expected, scale=0.0):
    """Return the distance of floating-point arrays, in units of the last place of ``got``'s dtype.

    NaN agrees with NaN, and an infinity with itself.
    """
    dtype = got.dtype
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), dtype.type(scale))).astype(expected.dtype)
        distance = np.abs(got.astype(expected.dtype) - expected) / unit
        equal = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(equal, 0.0, np.where(np.isnan(distance), np.inf, distance))


@pytest.mark.c
@pytest.mark.parametrize(("k", "name", "ins"), [
    pytest.param(k, *case, id="-".join([case[0], *map(csource.short, case[1])]))
    for k, case in enumerate(C_CASES)
])  # fmt: skip
def test_c(compiled, k, name, ins):
    """The C expression agrees with numpy: exactly for integers, else within 4 ulp."""
    row = ROWS[name]
    out, _ = expression(name, ins)
    arrays = operands(row, ins)
    if name in SCIPY_DIFFERS:
        keep = ~SCIPY_DIFFERS[name](arrays[0])
        arrays = [a[keep] for a in arrays]
    got = run_c(compiled[0], f"row{k}", arrays, out)
    expected = np.asarray(reference(row, arrays, ins, out))
    limit = 0
    if out in FLOATS:
        limit = SCIPY_ULP.get(name, 4)
        wrong = np.flatnonzero(ulps(got, expected, SCALE.get(name, 0.0)) > limit)
    else:
        wrong = np.flatnonzero(got != expected.astype(out))
    worst = [(*(a[i] for a in arrays), got[i], expected[i]) for i in wrong[:5]]
    assert not worst, f"{len(wrong)} results differ by more than {limit} ulp: {worst}"


@pytest.mark.c
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [2, 1, 0, -1, 0.5, -0.5, 3, 4, -2, 5, -3, 1.5, np.nan, np.inf])
def test_equal_exponents(exponent, dtype):
    """The built-in loop of powers has short cuts where all exponents are the same."""
    x, y = T.vector(dtype=dtype), T.vector(dtype=dtype)
    base = np.resize(np.concatenate([special_values(dtype), np.linspace(-3, 3, 40)]), 700)
    base = base.astype(dtype)
    f = function([x, y], x**y, mode=mode_of("no optimizer, c|py"))
    power = np.full(base.shape, exponent, dtype)
    mixed = np.where(np.arange(700) == 650, 7, power).astype(dtype)
    for exponents in (power, mixed, power[::-1]):
        with np.errstate(all="ignore"):
            expected = np.power(base.astype("longdouble"), exponents.astype("longdouble"))
        got = f(base, exponents)
        assert got.dtype == dtype and (ulps(got, expected) <= 4).all()
    if exponent in (2, 0):  # one rounding
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(base, power), np.power(base, base.dtype.type(exponent)))


#: functions that one or a few instructions compute
INSTRUCTIONS = {"ceil", "fabs", "floor", "fma", "rint", "round", "sqrt", "trunc"}


@pytest.mark.c
@pytest.mark.skipif(platform.machine() != "x86_64", reason="counts on x86's vector instructions")
def test_vectorised(compiled):
    """Rows on floats become vector instructions unless they call a function that has none."""
    possible = {
        (name, ins)
        for name, ins in C_CASES
        if ins in (("float32",) * len(ins), ("float64",) * len(ins))
        and {*ROWS[name].libm} <= INSTRUCTIONS | csource.vector_functions()
        and expression(name, ins)[1] not in ("a", "b")  # copies
    }
    assert len(possible) > 90
    trivial = {("imag", (d,)) for d in FLOATS}
    loops = {("zeta", (d, d)) for d in FLOATS}
    assert possible - trivial - loops - compiled[1] == set()
    # so do integers of up to 32 bits, divided with the rounding of Python
    for dtype in ("int8", "int16", "int32", "uint8", "uint16"):
        for name in ("add", "mul", "int_div", "mod", "maximum", "switch", "clip"):
            assert (name, (dtype,) * (2 if ROWS[name].nin < 0 else ROWS[name].nin)) in compiled[1]


@pytest.mark.c
@pytest.mark.skipif(not csource.vector_functions(), reason="there is no vector version of cos")
@pytest.mark.parametrize("dtype", dtypes.COMPLEX)
@pytest.mark.parametrize("name", ["mul", "true_div", "exp"])
def test_complex_numbers_are_vectorised(name, dtype, tmp_path):
    ins = (dtype,) * ROWS[name].nin if ROWS[name].nin > 0 else (dtype, dtype)
    out, expr = expression(name, ins)
    support, libm, used = csource.requirements(OPS[name], ins, out)
    text = csource.prototypes(libm, used) + csource.support(support, used)
    _, lines = compile_c(tmp_path, text + loop("row", ins, out, expr))
    assert lines == {text.count("\n") + 1}


@pytest.mark.null
def test_rows_without_c():
    """Only these have no C on floats: nothing has lost its expression unnoticed."""
    without = {
        name
        for name, row in ROWS.items()
        if dtype_of(OPS[name], ["float64"] * max(row.nin, 2 if row.nin < 0 else 1)) in FLOATS
        and expression(name, ["float64"] * max(row.nin, 2 if row.nin < 0 else 1))[1] is None
    }
    assert without == {"angle", "gammal", "gammau"}


# ======================================================================================
# GRADIENTS
# ======================================================================================

#: not functions of real numbers with real results
COMPLEX_ROWS = ("complex", "complex_from_polar", "angle")
#: ultra_fast_sigmoid is trained with the derivative of the sigmoid that it stands for
NOT_A_DERIVATIVE = ("ultra_fast_scalar_sigmoid",)
#: inputs by which the gradient is not defined, or not written down
UNDEFINED = {"tri_gamma": (0,), "jv": (0,), "iv": (0,), "gammainc": (0,), "gammaincc": (0,),
             "gammal": (0,), "gammau": (0,), "chi2sf": (1,), "gammaincinv": (0,),
             "gammainccinv": (0,), "betainc": (0, 1), "betaincinv": (0, 1), "hyp2f1": (0, 1, 2),
             "ive": (0,), "kve": (0,), "zeta": (0,)}  # fmt: skip


def evaluate(outputs, values):
    """Return the arrays that scalar variables have, given those of the inputs, elementwise."""
    values = dict(values)

    def value(var):
        return values[var] if var in values else np.asarray(var.data)

    for node in io_toposort(list(values), outputs):
        arrays = [value(v) for v in node.inputs]
        results = node.op.on_arrays(arrays, [v.type.dtype for v in node.outputs])
        values.update(zip(node.outputs, results, strict=True))
    return [value(v) for v in outputs]


def gradients(name, in_dtypes):
    """Return (inputs, output gradient, gradients) as scalar variables, for one row."""
    row, op = ROWS[name], OPS[name]
    inputs = [get_scalar_type(d)() for d in in_dtypes]
    output = op(*inputs)
    output_gradient = get_scalar_type(output.type.dtype)()
    return (
        inputs,
        output_gradient,
        SCALAR_ALGEBRA.gradients(row, inputs, output, output_gradient),
    )


@pytest.mark.null
@pytest.mark.parametrize("name", sorted({*ROWS} - {*COMPLEX_ROWS, *NOT_A_DERIVATIVE}))
def test_gradient(name):
    """The gradient agrees with central differences inside the row's domain."""
    row = ROWS[name]
    count = 3 if row.nin < 0 else row.nin
    if dtype_of(OPS[name], ["float64"] * count) == "-":
        count_of_kind = ["int64"] * count  # bit operations: their gradient is zero everywhere
        assert all(isinstance(g, int) and g == 0 for g in gradients(name, count_of_kind)[2])
        return
    inputs, output_gradient, found = gradients(name, ["float64"] * count)
    assert len(found) == count
    generator = np.random.default_rng(3)
    points = []
    for k in range(count):
        low, high = row.domain[k if k < len(row.domain) else -1]
        points.append(generator.uniform(low, high, 20))
    weights = generator.uniform(0.5, 1.5, 20)
    function = numpy_callable(row)
    step = 1e-6
    undefined = []
    for k, gradient in enumerate(found):
        if gradient is None:
            undefined.append(k)
            continue
        moved = [
            [p + sign * step if j == k else p for j, p in enumerate(points)] for sign in (1, -1)
        ]
        upper, lower = (np.asarray(function(*m), "float64") for m in moved)
        expected = weights * (upper - lower) / (2 * step)
        if isinstance(gradient, int):
            assert gradient == 0
            result = np.zeros(20)
        else:
            givens = {**dict(zip(inputs, points, strict=True)), output_gradient: weights}
            (result,) = evaluate([gradient], givens)
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=2e-8)
    assert tuple(undefined) == UNDEFINED.get(name, ())


@pytest.mark.null
@pytest.mark.parametrize("name", sorted({*ROWS} - {*COMPLEX_ROWS, "chi2sf"}))
def test_gradient_is_not_widened(name):
    """Constants in a gradient do not turn float32 into float64."""
    ins = ["float32"] * (3 if ROWS[name].nin < 0 else ROWS[name].nin)
    out = dtype_of(OPS[name], ins)
    if out != "float32":
        assert out in ("bool", "-")
        return
    found = [g for g in gradients(name, ins)[2] if not isinstance(g, int | None)]
    assert {g.type.dtype for g in found} <= {"float32"}


@pytest.mark.null
def test_gradient_of_ultra_fast_sigmoid():
    (x,), output_gradient, (found,) = gradients("ultra_fast_scalar_sigmoid", ["float64"])
    points = np.linspace(-5, 5, 11)
    (result,) = evaluate([found], {x: points, output_gradient: np.full(11, 2.0)})
    value = numpy_callable(ROWS["ultra_fast_scalar_sigmoid"])(points)
    np.testing.assert_allclose(result, 2 * value * (1 - value))


@pytest.mark.null
@pytest.mark.parametrize(
    ("name", "points", "expected"),
    [
        ("abs_", (0.0,), [0]),
        ("maximum", (0.0, 0.0), [1, 0]),
        ("minimum", (0.0, 0.0), [1, 0]),
        ("clip", (0.0, 0.0, 1.0), [1, 0, 0]),
        ("clip", (1.0, 0.0, 1.0), [1, 0, 0]),
        ("clip", (0.0, 2.0, -1.0), [0, 1, 0]),  # the lower bound comes first
        ("sqrt", (0.0,), [np.inf]),
        ("pow", (0.0, 2.0), [0, 0]),
        ("mod", (-7.0, 2.0), [1, 4]),
    ],
)
def test_gradient_at_edges(name, points, expected):
    """Where the derivative jumps or does not exist, the values are Theano 1.0.5's."""
    inputs, output_gradient, found = gradients(name, ["float64"] * len(points))
    givens = {v: np.array(p) for v, p in zip(inputs, points, strict=True)}
    givens[output_gradient] = np.array(1.0)
    with np.errstate(all="ignore"):
        assert [float(v) for v in evaluate(found, givens)] == expected
