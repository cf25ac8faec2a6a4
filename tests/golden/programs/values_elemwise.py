"""Values of elementwise ops at the edges of each dtype, compiled under both modes."""

from functools import partial

from .compiling import MODES, each_in_modes, in_modes, tensor
from .encoding import attempt
from .register import LOOSE, SINGLE, ULP, add_program, program

INF, NAN = float("inf"), float("nan")
EDGES = {
    "float64": [
        -INF,
        -1000.0,
        -30.0,
        -2.5,
        -1.0,
        -0.5,
        -1e-9,
        -0.0,
        0.0,
        1e-300,
        0.3,
        0.5,
        1.0,
        1.5,
        2.5,
        10.0,
        17.0,
        30.0,
        1000.0,
        INF,
        NAN,
    ],
    "float32": [
        -INF,
        -100.0,
        -2.5,
        -1.0,
        -0.0,
        0.0,
        1e-5,
        0.3,
        0.5,
        1.0,
        2.5,
        14.0,
        100.0,
        INF,
        NAN,
    ],
    "float16": [-INF, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.5, 10.0, INF, NAN],
    "int8": [-128, -127, -3, -1, 0, 1, 2, 10, 127],
    "int16": [-300, -3, 0, 1, 2, 100, 300],
    "int32": [-70000, -3, -1, 0, 1, 2, 10, 70000],
    "int64": [-(2**40), -3, -1, 0, 1, 2, 10, 2**40],
    "uint8": [0, 1, 2, 3, 10, 127, 200, 255],
    "uint64": [0, 1, 2, 2**63],
    "bool": [False, True],
    "complex64": [0, 1, -1, 1j, 1.5 - 2.5j],
    "complex128": [0, 1, -1, 1j, -1.5 + 2.5j],
}

PLAIN_UNARY = (
    "abs_ neg sgn sqr sqrt inv exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos "
    "arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc round isnan isinf "
    "invert deg2rad rad2deg real imag conj angle zeros_like ones_like"
).split()
ERROR_FUNCTIONS = "erf erfc erfcx erfinv erfcinv".split()
# Recorded for positive numbers: elsewhere versions of scipy and the old C code disagree.
SPECIAL_UNARY = "gamma gammaln psi tri_gamma i0 i1 j0 j1".split()
POSITIVE = {
    "float64": [0.3, 0.5, 1.0, 1.5, 2.5, 10.0, 17.0],
    "float32": [0.3, 0.5, 1.0, 2.5, 14.0],
    "float16": [0.25, 1.0, 2.5],
    "int8": [1, 2, 10],
    "int32": [1, 2, 10],
    "uint8": [1, 2, 10],
}
NNET_UNARY = "sigmoid softplus hard_sigmoid ultra_fast_sigmoid relu elu selu".split()
UNARY_DTYPES = ("float64", "float32", "float16", "int8", "int32", "uint8", "bool")
COMPLEX_UNARY = (
    "abs_ neg sqr sqrt inv exp log sin cos tan sinh cosh tanh real imag conj angle "
    "zeros_like ones_like"
).split()


def _unary(module_name, name, edges, dtypes, theano, T, np):
    module = T.nnet if module_name == "nnet" else T

    def case(dtype):
        x = tensor(T, dtype, 1, "x")
        values = np.array(edges[dtype], dtype)
        return in_modes(theano, [x], getattr(module, name)(x), values)

    return {dtype: attempt(case, dtype) for dtype in dtypes}


for _name in PLAIN_UNARY:
    _dtypes = (*UNARY_DTYPES, "complex128") if _name in COMPLEX_UNARY else UNARY_DTYPES
    add_program(
        "values.unary." + _name, partial(_unary, "tensor", _name, EDGES, _dtypes), tolerance=ULP
    )
for _name in ERROR_FUNCTIONS:
    add_program("values.unary." + _name, partial(_unary, "tensor", _name, EDGES, UNARY_DTYPES))
for _name in SPECIAL_UNARY:
    add_program(
        "values.unary." + _name,
        partial(_unary, "tensor", _name, POSITIVE, tuple(POSITIVE)),
        tolerance=SINGLE,
    )
for _name in NNET_UNARY:
    _tolerance = {"selu": SINGLE, "ultra_fast_sigmoid": LOOSE}.get(_name, ULP)
    add_program(
        "values.nnet." + _name,
        partial(_unary, "nnet", _name, EDGES, ("float64", "float32", "int8", "bool")),
        tolerance=_tolerance,
    )

BINARY = {
    "add": lambda T, x, y: x + y,
    "sub": lambda T, x, y: x - y,
    "mul": lambda T, x, y: x * y,
    "true_div": lambda T, x, y: x / y,
    "int_div": lambda T, x, y: x // y,
    "mod": lambda T, x, y: x % y,
    "pow": lambda T, x, y: x**y,
    "maximum": lambda T, x, y: T.maximum(x, y),
    "minimum": lambda T, x, y: T.minimum(x, y),
    "eq": lambda T, x, y: T.eq(x, y),
    "neq": lambda T, x, y: T.neq(x, y),
    "lt": lambda T, x, y: T.lt(x, y),
    "le": lambda T, x, y: T.le(x, y),
    "gt": lambda T, x, y: T.gt(x, y),
    "ge": lambda T, x, y: T.ge(x, y),
    "and_": lambda T, x, y: T.and_(x, y),
    "or_": lambda T, x, y: T.or_(x, y),
    "xor": lambda T, x, y: T.xor(x, y),
    "arctan2": lambda T, x, y: T.arctan2(x, y),
    "switch": lambda T, x, y: T.switch(x, y, x),
    "fill": lambda T, x, y: T.fill(x, y),
    "isclose": lambda T, x, y: T.isclose(x, y),
}
BINARY_PAIRS = (
    ("float64", "float64"),
    ("float32", "float32"),
    ("float16", "float16"),
    ("int8", "int8"),
    ("int32", "int32"),
    ("uint8", "uint8"),
    ("int8", "uint8"),
    ("bool", "bool"),
    ("bool", "float64"),
    ("complex64", "complex64"),
)
# The old C code computes these in single precision, though the result is double.
MIXED_PAIRS = [("int32", "float32"), ("float32", "float64")]
BINARY_EDGES = {
    "float64": [-INF, -2.5, -1.0, -0.0, 0.0, 0.5, 2.0, 3.0, INF, NAN],
    "float32": [-INF, -2.5, -0.0, 0.0, 0.3, 3.0, INF, NAN],
    "float16": [-2.5, 0.0, 0.5, 3.0, INF],
    "int8": [-128, -7, -1, 1, 2, 7, 127],
    "int32": [-70000, -7, -1, 1, 2, 7, 1000],
    "int64": [-7, -1, 1, 3, 2**40],
    "uint8": [1, 2, 7, 200, 255],
    "uint64": [1, 3, 2**40],
    "bool": [False, True],
    "complex64": [1, 1j, 1.5 - 2.5j],
}
# Powers of integers that leave the dtype have no defined value in C, negative ones none in numpy.
SMALL_INTEGERS = {
    "int8": [0, 1, 2, 3],
    "int32": [0, 1, 2, 7],
    "int64": [0, 1, 2],
    "uint8": [1, 2, 3],
    "uint64": [1, 2, 3],
}


# Divided exactly, without zeros and infinities: there versions of numpy and C disagree.
DIVIDED = {
    "float64": [-6.0, -2.5, -1.0, 0.5, 2.0, 3.0],
    "float32": [-6.0, -2.5, 0.5, 3.0],
    "float16": [-2.5, 0.5, 3.0],
    "int8": [-127, -7, -1, 1, 2, 7, 127],
}
# Pairs without a meaning or with a zero divisor.
LEFT_OUT = {
    "int_div": [("bool", "bool"), ("complex64", "complex64")],
    "mod": [("bool", "bool"), ("complex64", "complex64")],
    "arctan2": [("complex64", "complex64")],
    "switch": [("complex64", "complex64")],
    "isclose": [
        ("int8", "int8"),
        ("bool", "bool"),
        ("bool", "float64"),
        ("complex64", "complex64"),
    ],
}


def _binary(build, edges, pairs, theano, T, np):
    def case(first, second):
        x, y = tensor(T, first, 1, "x"), tensor(T, second, 1, "y")
        left, right = np.array(edges[first], first), np.array(edges[second], second)
        pairs = [column.ravel() for column in np.meshgrid(left, right, indexing="ij")]
        return in_modes(theano, [x, y], build(T, x, y), *pairs)

    return {f"{first} {second}": attempt(case, first, second) for first, second in pairs}


for _name, _build in BINARY.items():
    _edges = dict(BINARY_EDGES)
    if _name == "pow":
        _edges.update(SMALL_INTEGERS)
    if _name in ("int_div", "mod"):
        _edges.update(DIVIDED)
    _pairs = [pair for pair in BINARY_PAIRS if pair not in LEFT_OUT.get(_name, ())]
    add_program("values.binary." + _name, partial(_binary, _build, _edges, _pairs), tolerance=ULP)
    add_program(
        "values.mixed." + _name, partial(_binary, _build, _edges, MIXED_PAIRS), tolerance=SINGLE
    )


@program("values.integer_division_by_zero")
def integer_division_by_zero(theano, T, np):
    """Integer // and % by zero."""
    results = {}
    for dtype in ("int8", "int32", "uint8", "int64"):
        x, y = tensor(T, dtype, 1, "x"), tensor(T, dtype, 1, "y")
        values = np.array([1, 0, 7], dtype), np.array([0, 0, 2], dtype)
        results[dtype + " // 0"] = in_modes(theano, [x, y], x // y, *values)
        results[dtype + " % 0"] = in_modes(theano, [x, y], x % y, *values)
        results[dtype + " / 0"] = in_modes(theano, [x, y], x / y, *values)
    return results


@program("values.negative_powers_of_integers")
def negative_powers_of_integers(theano, T, np):
    """Integers to negative powers, and powers with negative integers as bases."""
    results = {}
    for dtype in ("int8", "int32", "int64"):
        x, y = tensor(T, dtype, 1, "x"), tensor(T, dtype, 1, "y")
        bases, powers = np.array([1, 2, -1, -3], dtype), np.array([-1, -2, -3, 3], dtype)
        results[dtype + " x ** y"] = in_modes(theano, [x, y], x**y, bases, powers)
        results[dtype + " x ** -1"] = in_modes(theano, [x], x**-1, bases)
        results[dtype + " 2 ** y"] = in_modes(theano, [y], 2**y, powers)
        results[dtype + " 2. ** y"] = in_modes(theano, [y], 2.0**y, powers)
        results[dtype + " x ** 3"] = in_modes(theano, [x], x**3, bases)
    return results


@program("values.clip", tolerance=ULP)
def clip(theano, T, np):
    """clip with constant, variable, crossed and not-a-number bounds."""
    results = {}
    for dtype in ("float64", "float32", "int8", "uint8", "int32"):
        x, a, b = tensor(T, dtype, 1, "x"), tensor(T, dtype, 0, "a"), tensor(T, dtype, 0, "b")
        values = np.array(EDGES[dtype], dtype)
        results[dtype + " 0 1"] = in_modes(theano, [x], T.clip(x, 0, 1), values)
        results[dtype + " 0. 1.5"] = in_modes(theano, [x], T.clip(x, 0.0, 1.5), values)
        low, high = np.array(1, dtype), np.array(2, dtype)
        results[dtype + " a b"] = in_modes(theano, [x, a, b], T.clip(x, a, b), values, low, high)
        results[dtype + " crossed"] = in_modes(
            theano, [x, a, b], T.clip(x, a, b), values, high, low
        )
    x = T.dvector("x")
    results["method"] = in_modes(theano, [x], x.clip(-1, 1), np.array([-3.0, 0.5, 3.0]))
    results["nan bound"] = in_modes(theano, [x], T.clip(x, NAN, 1.0), np.array([-3.0, 0.5, 3.0]))
    return results


@program("values.switch", tolerance=ULP)
def switch(theano, T, np):
    """switch and where with conditions and branches of several dtypes."""
    x, i, b = T.dvector("x"), T.bvector("i"), tensor(T, "bool", 1, "b")
    f = T.fvector("f")
    d = np.array([-1.5, 0.0, 2.0, NAN])
    ints = np.array([-1, 0, 2, 3], "int8")
    flags = np.array([True, False, True, False])
    singles = np.array([1.5, -0.5, 2.5, 0.25], "float32")
    return {
        "float condition": in_modes(theano, [x], T.switch(x, 1, 0), d),
        "comparison": in_modes(theano, [x], T.switch(x > 0, x, -x), d),
        "int condition": in_modes(theano, [i, x], T.switch(i, x, 0), ints, d),
        "bool condition": in_modes(theano, [b, i, f], T.switch(b, i, f), flags, ints, singles),
        "where": in_modes(theano, [b, x], T.where(b, x, 9.0), flags, d),
        "replace nan": in_modes(theano, [x], T.switch(T.isnan(x), 0, x), d),
        "scalar condition": in_modes(theano, [x], T.switch(x[0] > 0, x, x + 1), d),
        "column of rows": in_modes(
            theano, [x], T.switch(x.dimshuffle(0, "x") > 0, x.dimshuffle("x", 0), 0.0), d
        ),
        "both branches evaluated": in_modes(theano, [x], T.switch(x > 0, T.log(x), 0.0), d),
    }


@program("values.cast", tolerance=ULP)
def cast(theano, T, np):
    """Casts between dtypes of values that both can hold or that wrap around."""
    values = {
        "float64": [-2.7, -0.5, 0.0, 0.5, 1.9999, 100.0],
        "float32": [-2.7, -0.5, 0.0, 0.5, 100.0],
        "int8": [-128, -1, 0, 1, 127],
        "int32": [-70000, -300, -1, 0, 1, 300, 70000],
        "int64": [-(2**40), -1, 0, 2**40 + 1, 2**53 + 1],
        "uint8": [0, 1, 127, 128, 255],
        "bool": [False, True],
    }
    results = {}
    for source, items in values.items():
        for target in ("bool", "int8", "int32", "int64", "uint8", "float32", "float64"):
            # A negative float has no defined value in an unsigned dtype.
            if source.startswith("float") and target == "uint8":
                items = [abs(item) for item in items]
            x = tensor(T, source, 1, "x")
            results[f"{source} to {target}"] = in_modes(
                theano, [x], T.cast(x, target), np.array(items, source)
            )
    return results


@program("values.round", tolerance=ULP)
def rounding(theano, T, np):
    """Ways to round, at halves."""
    x, f = T.dvector("x"), T.fvector("f")
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999999999999994, 1e17])
    away, even = "half_away_from_zero", "half_to_even"
    return {
        "default": in_modes(theano, [x], T.round(x), halves),
        "half_to_even": in_modes(theano, [x], T.round(x, mode=even), halves),
        "half_away": in_modes(theano, [x], T.round(x, mode=away), halves[:6]),
        "float32": in_modes(theano, [f], T.round(f), halves.astype("float32")),
        "method": in_modes(theano, [x], x.round(), halves),
        "iround": in_modes(theano, [x], T.iround(x), halves[:6]),
        "ceil": in_modes(theano, [x], T.ceil(x), halves),
        "floor": in_modes(theano, [x], T.floor(x), halves),
        "unknown mode": in_modes(theano, [x], x + 0, halves),
        "divmod": in_modes(theano, [x], list(divmod(x, 2)), halves),
        "ceil_intdiv": in_modes(theano, [x], T.ceil(x / 2), halves),
    }


@program("values.constants", tolerance=SINGLE)
def constants(theano, T, np):
    """Expressions with Python numbers of every kind on either side."""
    results = {}
    for dtype in ("float64", "float32", "int8", "int32"):
        x = tensor(T, dtype, 1, "x")
        values = np.array([-3, -1, 1, 2, 5], dtype)
        expressions = {
            "x + 1": x + 1,
            "1 + x": 1 + x,
            "x * 0.5": x * 0.5,
            "0.1 * x": 0.1 * x,
            "1 - x": 1 - x,
            "1 / x": 1 / x,
            "x / 2": x / 2,
            "x // 2": x // 2,
            "7 // x": 7 // x,
            "x % 3": x % 3,
            "7 % x": 7 % x,
            "x ** 2": x**2,
            "x ** 3": x**3,
            "2.0 ** x": 2.0**x,
            "x ** -2.0": x**-2.0,
            "x ** 10": x**10,
            "x + 300": x + 300,
            "x * 200": x * 200,
            "-x": -x,
            "x > 1": x > 1,
            "x == 2": T.eq(x, 2),
        }
        for label, expression in expressions.items():
            results[f"{dtype} {label}"] = in_modes(theano, [x], expression, values)
    return results


@program("values.many_operands")
def many_operands(theano, T, np):
    """add, mul and others with three operands or none, and broadcast operands."""
    x, y, z = T.dmatrix("x"), T.dvector("y"), T.dscalar("z")
    m, v, s = np.arange(6.0).reshape(2, 3), np.array([1.0, -2.0, 0.5]), np.array(3.0)
    cases = {
        "add three": lambda: T.add(x, y, z),
        "mul three": lambda: T.mul(x, y, z),
        "largest": lambda: T.largest(x, y.dimshuffle("x", 0)),
        "smallest": lambda: T.smallest(x, x * 2),
        "outer sum": lambda: y.dimshuffle(0, "x") + y.dimshuffle("x", 0),
        "column times row": lambda: x.sum(axis=1).dimshuffle(0, "x") * y,
        "chain": lambda: T.tanh(x * y + z) ** 2 - T.exp(-x),
        "scalar only": lambda: z * 2 + 1,
        "int and float": lambda: T.cast(x, "int32") * y,
        "sub of mean": lambda: x - x.mean(axis=0),
        "normalise": lambda: (x - x.mean()) / (x.std() + 1e-8),
        "gaussian": lambda: T.exp(-0.5 * ((x - y) / z) ** 2) / (z * np.sqrt(2 * np.pi)),
        "polynomial": lambda: 3 * x**3 - 2 * x**2 + x - 5,
        "square": lambda: T.square(x),
        "power": lambda: T.power(x, 2),
        "mod": lambda: T.mod(x, 2),
        "xlogx": lambda: T.xlogx.xlogx(x),
        "xlogy0": lambda: T.xlogx.xlogy0(x, x + 1),
    }
    return each_in_modes(theano, [x, y, z], cases, (m, v, s))


@program("values.empty", tolerance=ULP)
def empty(theano, T, np):
    """Elementwise ops on arrays without elements."""
    x, m = T.dvector("x"), T.dmatrix("m")
    nothing, rows = np.zeros(0), np.zeros((0, 3))
    return {
        "exp": in_modes(theano, [x], T.exp(x), nothing),
        "add": in_modes(theano, [x], x + 1, nothing),
        "fused": in_modes(theano, [x], T.exp(x) * 2 + x, nothing),
        "matrix": in_modes(theano, [m], m * 2, rows),
        "with a row": in_modes(theano, [m], m + np.ones((1, 3)), rows),
        "columns": in_modes(theano, [m], m * 2, np.zeros((3, 0))),
    }


@program("values.memory_layouts")
def memory_layouts(theano, T, np):
    """Arguments that are transposed, strided, reversed or read-only."""
    x = T.dmatrix("x")
    base = np.arange(24.0).reshape(4, 6)
    frozen = base.copy()
    frozen.flags.writeable = False
    layouts = {
        "plain": base,
        "transposed": base.T,
        "fortran": np.asfortranarray(base),
        "strided": base[::2, ::3],
        "reversed": base[::-1, ::-1],
        "read-only": frozen,
        "broadcast": np.broadcast_to(base[:1], (2, 6)),
    }

    outputs = [T.exp(x / 10) + x, x.sum(axis=0), x.max(axis=1), x[1:, ::2]]
    results = {}
    for mode in MODES:
        function = theano.function([x], outputs, mode=mode)
        product = theano.function([x], T.dot(x, x.T), mode=mode)
        for label, value in layouts.items():
            results[f"{label} {mode}"] = function(value)
            # The old package multiplies an array with strides of zero wrongly.
            if label != "broadcast":
                results[f"product of {label} {mode}"] = product(value)
    return results
