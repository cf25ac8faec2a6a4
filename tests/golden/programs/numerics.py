"""Where rewriting changes numbers: stable forms, cancellations and limits, mode against mode."""

from .compiling import each_in_modes
from .encoding import attempt
from .register import ULP, program

NAN, INF = float("nan"), float("inf")


@program("numerics.stable_forms")
def stable_forms(theano, T, np):
    """Expressions that overflow or cancel as written."""
    x = T.dvector("x")
    points = np.array([-1000.0, -40.0, -1.0, -1e-10, 0.0, 1e-10, 1.0, 40.0, 1000.0])
    sigmoid = T.nnet.sigmoid(x)
    return each_in_modes(
        theano,
        [x],
        {
            "log(1 + exp(x))": lambda: T.log(1 + T.exp(x)),
            "log1p(exp(x))": lambda: T.log1p(T.exp(x)),
            "1 / (1 + exp(-x))": lambda: 1 / (1 + T.exp(-x)),
            "exp(x) / (1 + exp(x))": lambda: T.exp(x) / (1 + T.exp(x)),
            "1 - sigmoid(x)": lambda: 1 - sigmoid,
            "log(sigmoid(x))": lambda: T.log(sigmoid),
            "log(1 - sigmoid(x))": lambda: T.log(1 - sigmoid),
            "-log(sigmoid(-x))": lambda: -T.log(T.nnet.sigmoid(-x)),
            "log(1 + x)": lambda: T.log(1 + x),
            "log(x + 1.0) of exp": lambda: T.log(T.exp(x) + 1.0),
            "exp(x) - 1": lambda: T.exp(x) - 1,
            "log(exp(x))": lambda: T.log(T.exp(x)),
            "exp(log(x))": lambda: T.exp(T.log(x)),
            "sqrt(x) ** 2": lambda: T.sqrt(x) ** 2,
            "sqrt(x ** 2)": lambda: T.sqrt(x**2),
            "1 - erf(x)": lambda: 1 - T.erf(x / 10),
            "erfc": lambda: T.erfc(x / 10),
            "log(erfc(x))": lambda: T.log(T.erfc(x)),
            "log of sum of exp": lambda: T.log(T.exp(x).sum()),
            "log of mean of exp": lambda: T.log(T.mean(T.exp(x))),
            "log of sum of exp of rows": lambda: T.log(T.exp(T.stack([x, x + 1])).sum(axis=0)),
            "sigmoid times exp": lambda: sigmoid * T.exp(-x),
            "tanh(x / 2)": lambda: T.tanh(x / 2),
            "exp(x) / sum": lambda: T.exp(x) / T.exp(x).sum(),
            "log(softmax)": lambda: T.log(T.nnet.softmax(x)),
        },
        (points,),
    )


@program("numerics.cancellations", tolerance=ULP)
def cancellations(theano, T, np):
    """Simplifications that are not true of zeros, infinities and not-a-numbers."""
    x, y = T.dvector("x"), T.dvector("y")
    points = np.array([-2.0, -0.0, 0.0, 3.0, INF, -INF, NAN])
    others = np.array([5.0, 0.0, 0.0, 0.0, INF, 2.0, 1.0])
    return each_in_modes(
        theano,
        [x, y],
        {
            "x * 0": lambda: x * 0,
            "0 / x": lambda: 0 / x,
            "x - x": lambda: x - x,
            "x / x": lambda: x / x,
            "x + y - y": lambda: x + y - y,
            "x * y / y": lambda: x * y / y,
            "x ** 0": lambda: x**0,
            "x ** 1": lambda: x**1,
            "x * 1": lambda: x * 1,
            "x + 0": lambda: x + 0,
            "x / 1": lambda: x / 1,
            "-(-x)": lambda: T.neg(-x),
            "x * -1": lambda: x * -1,
            "x - y + y": lambda: x - y + y,
            "2 * x - x": lambda: 2 * x - x,
            "x + x": lambda: x + x,
            "x * x": lambda: x * x,
            "x * x * x": lambda: x * x * x,
            "x ** 2 / x": lambda: x**2 / x,
            "abs(x * y)": lambda: abs(x * y),
            "abs(-x)": lambda: abs(-x),
            "1 / (1 / x)": lambda: 1 / (1 / x),
            "x / y * y": lambda: x / y * y,
            "eq(x, x)": lambda: T.eq(x, x),
            "neq(x, x)": lambda: T.neq(x, x),
            "le(x, x)": lambda: T.le(x, x),
            "lt(x, x)": lambda: T.lt(x, x),
            "maximum(x, x)": lambda: T.maximum(x, x),
            "switch(1, x, y)": lambda: T.switch(1, x, y),
            "switch(0, x, y)": lambda: T.switch(0, x, y),
            "switch(y, x, x)": lambda: T.switch(y, x, x),
            "x * switch": lambda: x * T.switch(T.eq(y, 0), 0, 1 / y),
            "sum of x * 0": lambda: (x * 0).sum(),
            "dot with zeros": lambda: T.dot(x, T.zeros_like(y)),
            "sqr(sqrt(x))": lambda: T.sqr(T.sqrt(x)),
            "x % 1": lambda: x % 1,
        },
        (points, others),
    )


@program("numerics.integers", tolerance=ULP)
def integers(theano, T, np):
    """Integer algebra, where division truncates and overflow wraps."""
    i, j = T.ivector("i"), T.bvector("j")
    ints, bytes_ = np.array([-7, -1, 3, 8], "int32"), np.array([-100, -1, 3, 100], "int8")
    return each_in_modes(
        theano,
        [i, j],
        {
            "i // 2 * 2": lambda: i // 2 * 2,
            "i * 2 // 2": lambda: i * 2 // 2,
            "i // 1": lambda: i // 1,
            "i / 2 * 2": lambda: i / 2 * 2,
            "i // i": lambda: i // i,
            "i % 1": lambda: i % 1,
            "i * 0": lambda: i * 0,
            "i - i": lambda: i - i,
            "i ** 2": lambda: i**2,
            "j * 2": lambda: j * 2,
            "j + j": lambda: j + j,
            "j * j": lambda: j * j,
            "j * 2 // 2": lambda: j * 2 // 2,
            "-j": lambda: -j,
            "abs(j)": lambda: abs(j),
            "j + 100": lambda: j + 100,
            "j + 1000": lambda: j + 1000,
            "j * i": lambda: j * i,
            "j / i": lambda: j / i,
            "sum of j": lambda: j.sum(),
            "sum of j * 2": lambda: (j * 2).sum(),
            "j.sum() * 0.5": lambda: j.sum() * 0.5,
            "mean of i": lambda: i.mean(),
            "comparison sum": lambda: (i > j).sum(),
            "comparison product": lambda: (i > j) * i,
            "bool + bool": lambda: (i > 0) + (j > 0),
            "bool * bool": lambda: (i > 0) * (j > 0),
            "bool - 1": lambda: 1 - (i > 0),
        },
        (ints, bytes_),
    )


@program("numerics.sigmoid_limits", tolerance=ULP)
def sigmoid_limits(theano, T, np):
    """The tails of sigmoid and softplus in both precisions."""
    results = {}
    for dtype in ("float64", "float32"):
        x = T.vector("x", dtype=dtype)
        points = np.array([-800.0, -745.0, -709.0, -100.0, -88.0, -40.0, -16.0, 14.0, 16.0], dtype)
        high = np.array([17.0, 19.0, 20.0, 30.0, 37.0, 40.0, 1000.0], dtype)
        cases = {
            "sigmoid": lambda x=x: T.nnet.sigmoid(x),
            "softplus": lambda x=x: T.nnet.softplus(x),
            "tanh": lambda x=x: T.tanh(x),
        }
        for label, result in each_in_modes(theano, [x], cases, (points,)).items():
            results[f"{dtype} {label} low"] = result
        for label, result in each_in_modes(theano, [x], cases, (high,)).items():
            results[f"{dtype} {label} high"] = result
    return results


@program("numerics.optimizers")
def optimizers(theano, T, np):
    """The same expressions without optimization, merged only and stabilized only."""
    x = T.dvector("x")
    points = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0, NAN])
    expressions = {
        "log(1 + exp(x))": T.log(1 + T.exp(x)),
        "log(sigmoid(x))": T.log(T.nnet.sigmoid(x)),
        "x * 0": x * 0,
        "x - x": x - x,
        "x / x": x / x,
        "exp(x) / (1 + exp(x))": T.exp(x) / (1 + T.exp(x)),
    }
    results = {}
    for optimizer in (None, "merge", "stabilize", "fast_compile", "fast_run"):
        for label, expression in expressions.items():
            mode = theano.Mode("py", optimizer)
            results[f"{label} {optimizer}"] = attempt(
                lambda e, m: theano.function([x], e, mode=m)(points), expression, mode
            )
    return results
