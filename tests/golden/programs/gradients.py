"""Gradients: subgradients at kinks, every elementwise op, reductions, products and the options."""

from functools import partial

from .compiling import each_in_modes, in_modes, tensor
from .encoding import attempt_each
from .register import LOOSE, SINGLE, add_program, program
from .values_elemwise import BINARY, ERROR_FUNCTIONS, NNET_UNARY, PLAIN_UNARY

NAN = float("nan")


def _gradient(T, cost, wrt):
    return T.grad(cost.sum(), wrt)


@program("gradients.kinks")
def kinks(theano, T, np):
    """Where a function has no derivative, and where a power or quotient has none."""
    x = T.dvector("x")
    nnet = T.nnet

    def at(expression, values):
        return in_modes(theano, [x], _gradient(T, expression, x), np.array(values))

    return {
        "abs": at(abs(x), [-1.0, 0.0, 2.0]),
        "sgn": at(T.sgn(x), [1.0, 0.0]),
        "max with ties": at(x.max(), [1.0, 3.0, 3.0]),
        "min with ties": at(x.min(), [1.0, 1.0, 3.0]),
        "max of nan": at(x.max(), [1.0, NAN, 3.0]),
        "maximum(x, 0)": at(T.maximum(x, 0), [-1.0, 0.0, 1.0]),
        "maximum(0, x)": at(T.maximum(0, x), [-1.0, 0.0, 1.0]),
        "minimum(x, 0)": at(T.minimum(x, 0), [-1.0, 0.0, 1.0]),
        "relu": at(nnet.relu(x), [-1.0, 0.0, 1.0]),
        "relu 0.1": at(nnet.relu(x, 0.1), [-1.0, 0.0, 1.0]),
        "elu": at(nnet.elu(x), [-1.0, 0.0, 1.0]),
        "clip": at(T.clip(x, 0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0]),
        "hard_sigmoid": at(nnet.hard_sigmoid(x), [-5.0, -2.4, 0.0, 2.4, 5.0]),
        "switch": at(T.switch(x > 0, x, 0), [-1.0, 0.0, 1.0]),
        "sqrt at 0": at(T.sqrt(x), [0.0, 4.0]),
        "log at 0": at(T.log(x), [0.0, -1.0, 2.0]),
        "x ** 0": at(x**0, [0.0, 2.0]),
        "x ** 1": at(x**1, [0.0, 2.0]),
        "x ** 2": at(x**2, [0.0, -2.0]),
        "x ** 0.5": at(x**0.5, [0.0, 4.0]),
        "x ** 3.5": at(x**3.5, [0.0, -1.0, 4.0]),
        "0 ** x": at(T.pow(0.0, x), [2.0, 0.0]),
        "x ** x": at(x**x, [0.0, 1.0, 2.0]),
        "safe sqrt": at(T.switch(x > 0, T.sqrt(x), 0.0), [-1.0, 0.0, 4.0]),
        "safe log": at(T.switch(x > 0, T.log(x), 0.0), [-1.0, 0.0, 1.0]),
        "safe division": at(T.switch(T.eq(x, 0), 0.0, 1 / x), [0.0, 2.0]),
        "x / x": at(x / x, [0.0, 2.0]),
        "norm 2": at(x.norm(2), [0.0, 0.0]),
        "norm 2 off 0": at(x.norm(2), [3.0, 4.0]),
        "sqrt of sum of squares": at(T.sqrt(T.sum(x**2)), [0.0, 0.0]),
        "prod of a zero": at(x.prod(), [0.0, 2.0, 3.0]),
        "prod of two zeros": at(x.prod(), [0.0, 0.0, 3.0]),
        "prod": at(x.prod(), [2.0, 3.0, 4.0]),
        "floor": at(T.floor(x), [1.5]),
        "ceil": at(T.ceil(x), [1.5]),
        "round": at(T.round(x), [1.5]),
        "trunc": at(T.trunc(x), [1.5]),
        "x % 2": at(x % 2, [3.0, -3.0]),
        "5 % x": at(5 % x, [3.0, -3.0]),
        "x // 2": at(x // 2, [3.0]),
        "cast to int": at(T.cast(x, "int32"), [3.0]),
        "cast to float32": at(T.cast(x, "float32"), [3.0]),
        "comparison": at(T.gt(x, 0) * x, [-1.0, 0.0, 3.0]),
        "comparison alone": at(T.cast(T.gt(x, 0), "float64"), [-1.0, 0.0, 3.0]),
        "argmax": at(T.cast(x.argmax(), "float64"), [1.0, 2.0]),
        "sort": at(T.sort(x) * np.arange(3.0), [3.0, 1.0, 2.0]),
        "std": at(x.std(), [1.0, 2.0, 4.0]),
        "std of equals": at(x.std(), [1.0, 1.0]),
        "var": at(x.var(), [1.0, 2.0, 4.0]),
        "mean": at(x.mean(), [1.0, 2.0, 4.0]),
        "any": at(T.any(x) * x, [1.0, 2.0]),
        "isnan switch": at(T.switch(T.isnan(x), 0.0, x * 2), [NAN, 1.0]),
        "tanh": at(T.tanh(x), [0.5, 1000.0]),
        "sigmoid": at(nnet.sigmoid(x), [0.5, -1000.0, 1000.0]),
        "softplus": at(nnet.softplus(x), [0.5, -1000.0, 1000.0]),
        "log(sigmoid)": at(T.log(nnet.sigmoid(x)), [0.5, -1000.0, 1000.0]),
        "log(1 + exp)": at(T.log(1 + T.exp(x)), [0.5, -1000.0, 1000.0]),
    }


@program("gradients.two_arguments_tied")
def tied(theano, T, np):
    """Which argument of maximum and minimum gets the gradient of a tie."""
    x, y = T.dvector("x"), T.dvector("y")
    values = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])

    def both(expression):
        return in_modes(theano, [x, y], T.grad(expression.sum(), [x, y]), *values)

    return {
        "maximum": both(T.maximum(x, y)),
        "minimum": both(T.minimum(x, y)),
        "switch": both(T.switch(x > y, x, y)),
        "abs of difference": both(abs(x - y)),
        "clip bounds": both(T.clip(x, y, 10.0) * 1.0),
    }


UNARY_POINTS = [-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 30.0]
# Left out: the old package has no gradient for these, or one of another type than it promises.
WITHOUT_GRADIENT = {"real", "imag", "conj", "angle", "ultra_fast_sigmoid"}
WITHOUT_GRADIENT_OF_INTEGERS = {"ceil", "floor", "trunc", "isnan", "isinf"}


def _unary(module_name, name, points, theano, T, np):
    module = T.nnet if module_name == "nnet" else T
    operation = getattr(module, name)

    def slope(x):
        return T.grad(T.cast(operation(x), "float64").sum(), x)

    def first(dtype):
        x = tensor(T, dtype, 1, "x")
        exact = [p for p in points if dtype != "int32" or p == int(p)]
        return in_modes(theano, [x], slope(x), np.array(exact, dtype))

    def second():
        x = T.dvector("x")
        return in_modes(theano, [x], T.grad(slope(x).sum(), x), np.array(points))

    cases = {"float64": partial(first, "float64"), "float32": partial(first, "float32")}
    if name not in WITHOUT_GRADIENT_OF_INTEGERS:
        cases["int32"] = partial(first, "int32")
    if name != "psi":
        cases["twice"] = second
    return attempt_each(cases)


for _name in PLAIN_UNARY + ERROR_FUNCTIONS:
    if _name not in WITHOUT_GRADIENT:
        add_program("gradients.unary." + _name, partial(_unary, "tensor", _name, UNARY_POINTS))
for _name in ("gamma", "gammaln", "psi", "i0", "i1", "j0", "j1"):
    add_program(
        "gradients.unary." + _name,
        partial(_unary, "tensor", _name, [0.25, 0.5, 1.0, 2.0, 10.0]),
        tolerance=SINGLE,
    )
for _name in NNET_UNARY:
    if _name not in WITHOUT_GRADIENT:
        add_program(
            "gradients.nnet." + _name,
            partial(_unary, "nnet", _name, UNARY_POINTS),
            tolerance=SINGLE if _name == "selu" else LOOSE,
        )


def _binary(build, theano, T, np):
    first, second = np.array([-2.0, -0.5, 0.5, 1.5, 3.0]), np.array([2.0, 1.5, -1.5, 1.5, 2.0])

    def case(dtypes):
        x, y = tensor(T, dtypes[0], 1, "x"), tensor(T, dtypes[1], 1, "y")
        cost = T.cast(build(T, x, y), "float64").sum()
        slopes = T.grad(cost, [x, y], disconnected_inputs="ignore")
        return in_modes(theano, [x, y], slopes, first.astype(dtypes[0]), second.astype(dtypes[1]))

    pairs = [("float64", "float64"), ("float32", "float32"), ("float64", "int32")]
    return attempt_each({" ".join(pair): partial(case, pair) for pair in pairs})


for _name, _build in BINARY.items():
    if _name not in ("and_", "or_", "xor", "isclose"):
        add_program("gradients.binary." + _name, partial(_binary, _build))


@program("gradients.broadcast")
def broadcast(theano, T, np):
    """Gradients of arguments that were broadcast."""
    m, v, a, r, c = T.dmatrix("m"), T.dvector("v"), T.dscalar("a"), T.drow("r"), T.dcol("c")
    inputs = [m, v, a, r, c]
    values = (
        np.arange(6.0).reshape(2, 3),
        np.array([1.0, -2.0, 0.5]),
        np.array(3.0),
        np.array([[1.0, 2.0, 3.0]]),
        np.array([[2.0], [-1.0]]),
    )
    cost = {
        "m + v": lambda: T.sqr(m + v).sum(),
        "m * a": lambda: T.sqr(m * a).sum(),
        "r * c": lambda: T.exp(r * c / 4).sum(),
        "m + r + c": lambda: T.tanh(m + r + c).sum(),
        "v outer": lambda: T.sqr(v.dimshuffle(0, "x") - v.dimshuffle("x", 0)).sum(),
        "mean": lambda: ((m - m.mean(axis=0)) ** 3).sum(),
    }
    cases = {
        label: lambda build=build: T.grad(build(), inputs, disconnected_inputs="ignore")
        for label, build in cost.items()
    }
    return each_in_modes(theano, inputs, cases, values)


@program("gradients.tensor_ops")
def tensor_ops(theano, T, np):
    """Reductions, products, shapes, indexing and joins."""
    x, y, v, t = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dtensor3("t")
    i = T.lvector("i")
    inputs = [x, y, v, t, i]
    square = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 4.0]])
    values = (
        square,
        np.arange(9.0).reshape(3, 3) / 4 - 1,
        np.array([3.0, 1.0, 2.0]),
        np.arange(18.0).reshape(2, 3, 3) / 8,
        np.array([0, 0, 2]),
    )
    wrt_x = {
        "sum 0": lambda: T.sqr(x.sum(axis=0)).sum(),
        "mean 1": lambda: T.sqr(x.mean(axis=1)).sum(),
        "max 1": lambda: T.sqr(x.max(axis=1)).sum(),
        "min all": lambda: T.sqr(x.min()),
        "prod 0": lambda: x.prod(axis=0).sum(),
        "var 0": lambda: x.var(axis=0).sum(),
        "std 1": lambda: x.std(axis=1).sum(),
        "norm": lambda: x.norm(2),
        "norm 1": lambda: x.norm(1),
        "sum keepdims": lambda: T.sqr(x / x.sum(axis=1, keepdims=True)).sum(),
        "max_and_argmax": lambda: T.sqr(T.max_and_argmax(x, axis=0)[0]).sum(),
        "ptp": lambda: T.ptp(x, axis=1).sum(),
        "dot left": lambda: T.sqr(T.dot(x, y)).sum(),
        "dot right": lambda: T.sqr(T.dot(y, x)).sum(),
        "dot itself": lambda: T.dot(x, x).sum(),
        "dot vector": lambda: T.sqr(T.dot(x, v)).sum(),
        "vector dot": lambda: T.sqr(T.dot(v, x)).sum(),
        "dot 3-d": lambda: T.sqr(T.dot(t, x)).sum(),
        "tensordot": lambda: T.sqr(T.tensordot(t, x, axes=[[2], [1]])).sum(),
        "batched_dot": lambda: T.sqr(T.batched_dot(t, T.stack([x, x]))).sum(),
        "outer": lambda: T.sqr(T.outer(x[0], x[1])).sum(),
        "transpose": lambda: (x.T * y).sum(),
        "dimshuffle": lambda: (x.dimshuffle(1, "x", 0) ** 2).sum(),
        "reshape": lambda: (x.reshape((9,)) ** 2).sum(),
        "flatten": lambda: (x.flatten()[2:5] ** 2).sum(),
        "concatenate": lambda: T.sqr(T.concatenate([x, y * x], axis=1)).sum(),
        "stack": lambda: T.sqr(T.stack([x, x.T])).sum(),
        "split": lambda: T.sqr(T.split(x, [1, 2], 2)[1]).sum(),
        "tile": lambda: (T.tile(x, (2, 1)) ** 2).sum(),
        "repeat": lambda: (T.repeat(x, 2, axis=0) ** 2).sum(),
        "roll": lambda: (T.roll(x, 1, axis=0) * y).sum(),
        "diag": lambda: (T.diag(x) ** 2).sum(),
        "trace": lambda: x.trace() ** 2,
        "tril": lambda: (T.tril(x) ** 2).sum(),
        "fill_diagonal": lambda: (T.fill_diagonal(x, x[0, 0]) ** 2).sum(),
        "cumsum": lambda: (T.cumsum(x, axis=1) ** 2).sum(),
        "cumprod": lambda: T.cumprod(x, axis=1).sum(),
        "diff": lambda: (T.extra_ops.diff(x[0]) ** 2).sum(),
        "sort": lambda: (T.sort(x, axis=1) * y).sum(),
        "x[0]": lambda: (x[0] ** 2).sum(),
        "x[1:, :2]": lambda: (x[1:, :2] ** 2).sum(),
        "x[::-1]": lambda: (x[::-1] * y).sum(),
        "x[i]": lambda: (x[i] ** 2).sum(),
        "x[:, i]": lambda: (x[:, i] * y).sum(),
        "x[i, i]": lambda: (x[i, i] ** 2).sum(),
        "x[arange, i]": lambda: T.log(abs(x))[T.arange(3), i].sum(),
        "x[x > 1]": lambda: (x[x > 1] ** 2).sum(),
        "x[(x > 1).nonzero()]": lambda: (x[(x > 1).nonzero()] ** 2).sum(),
        "take": lambda: (x.take(i, axis=1) * y).sum(),
        "set_subtensor": lambda: (T.set_subtensor(x[0], v) ** 2).sum(),
        "set_subtensor value": lambda: (T.set_subtensor(y[0], x[1]) ** 2).sum(),
        "inc_subtensor": lambda: (T.inc_subtensor(x[1:], y[1:]) ** 2).sum(),
        "inc_subtensor value": lambda: (T.inc_subtensor(y[1:], x[1:]) ** 2).sum(),
        "inc rows": lambda: (T.inc_subtensor(x[i], y) ** 2).sum(),
        "inc rows value": lambda: (T.inc_subtensor(y[i], x) ** 2).sum(),
        "set rows value": lambda: (T.set_subtensor(y[i[1:]], x[1:]) ** 2).sum(),
        "inc pairs value": lambda: (T.inc_subtensor(y[i, i], x[0]) ** 2).sum(),
        "switch": lambda: T.switch(x > y, x**2, y * x).sum(),
        "fill": lambda: (T.fill(y, x[0, 0]) ** 2).sum(),
        "alloc": lambda: (T.alloc(x[0], 4, 3) ** 2).sum(),
        "specify_shape": lambda: (T.specify_shape(x, (3, 3)) ** 2).sum(),
        "softmax": lambda: (T.nnet.softmax(x) * y).sum(),
        "logsoftmax": lambda: (T.nnet.logsoftmax(x) * y).sum(),
        "softmax of vector": lambda: (T.nnet.softmax(x[0]) ** 2).sum(),
        "crossentropy": lambda: T.nnet.categorical_crossentropy(T.nnet.softmax(x), i).mean(),
        "crossentropy by index": lambda: -T.mean(T.log(T.nnet.softmax(x))[T.arange(3), i]),
        "crossentropy distributions": lambda: T.nnet.categorical_crossentropy(
            T.nnet.softmax(x), T.nnet.softmax(y)
        ).mean(),
        "binary_crossentropy": lambda: T.nnet.binary_crossentropy(
            T.nnet.sigmoid(x), T.nnet.sigmoid(y)
        ).mean(),
        "log of sum of exp": lambda: T.log(T.exp(x * 100).sum(axis=1)).sum(),
        "sum of abs": lambda: abs(x).sum(),
        "mean of squares": lambda: T.mean(T.sqr(x - y)),
        "chain": lambda: T.tanh(T.dot(T.nnet.sigmoid(T.dot(x, y)), x.T)).sum(),
    }
    cases = {label: lambda build=build: T.grad(build(), x) for label, build in wrt_x.items()}
    return each_in_modes(theano, inputs, cases, values)


@program("gradients.linear_algebra")
def linear_algebra(theano, T, np):
    """Gradients through factorisations and solutions."""
    import theano.tensor.slinalg as slinalg  # the old package does not load it by itself

    x, b = T.dmatrix("x"), T.dvector("b")
    values = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, -2.0])
    n = T.nlinalg
    cases = {
        "matrix_inverse": lambda: T.grad((n.matrix_inverse(x) ** 2).sum(), x),
        "det": lambda: T.grad(n.det(x), x),
        "log det": lambda: T.grad(T.log(n.det(x)), x),
        "pinv": lambda: T.grad((n.pinv(x) ** 2).sum(), x),
        "eigh": lambda: T.grad((n.eigh(x)[0] ** 2).sum(), x),
        "matrix_power": lambda: T.grad(n.matrix_power(x, 2).sum(), x),
        "cholesky": lambda: T.grad((slinalg.cholesky(x) ** 2).sum(), x),
        "solve": lambda: T.grad((slinalg.solve(x, b) ** 2).sum(), [x, b]),
        "expm": lambda: T.grad(slinalg.expm(x / 4).sum(), x),
        "kron": lambda: T.grad((slinalg.kron(x, x) ** 2).sum(), x),
    }
    return each_in_modes(theano, [x, b], cases, values)


@program("gradients.options")
def options(theano, T, np):
    """Arguments of grad, and functions that stop, clip or replace gradients."""
    x, y, q = T.dvector("x"), T.dvector("y"), T.dscalar("q")
    g = theano.gradient
    value = np.array([1.0, 3.0])

    def at(expression):
        return theano.function([x], expression, on_unused_input="ignore")(value)

    def grad(expression, **arguments):
        return at(T.grad(expression.sum(), x, **arguments))

    def gradient_override():
        negated = theano.OpFromGraph([x], [x * 1.0], grad_overrides=_negated)
        return grad(negated(x))

    return attempt_each(
        {
            "of a non-scalar": lambda: T.grad(x, x),
            "of an integer": lambda: T.grad(T.lscalar("n"), x),
            "wrt an integer": lambda: str(T.grad(T.ivector("i").sum() * 1.0, T.ivector("j"))),
            "wrt a constant": lambda: T.grad(x.sum(), T.constant(1.0)),
            "wrt a list": lambda: [at(e) for e in T.grad((x * x).sum(), [x, x])],
            "wrt a tuple": lambda: type(T.grad(x.sum(), (x,))).__name__,
            "wrt an intermediate": lambda: _through(T, at, x),
            "wrt a number": lambda: T.grad(x.sum(), 3),
            "disconnected": lambda: T.grad(x.sum(), q),
            "disconnected ignored": lambda: T.grad(x.sum(), q, disconnected_inputs="ignore").eval(
                {q: 1.0}
            ),
            "disconnected warned": lambda: T.grad(x.sum(), q, disconnected_inputs="warn").eval(
                {q: 1.0}
            ),
            "disconnected otherwise": lambda: T.grad(x.sum(), q, disconnected_inputs="zz"),
            "return_disconnected None": lambda: T.grad(
                x.sum(), q, disconnected_inputs="ignore", return_disconnected="None"
            ),
            "consider_constant": lambda: _considered(T, at, x),
            "known_grads": lambda: _known(T, at, x),
            "zero_grad": lambda: grad(g.zero_grad(x) * x),
            "disconnected_grad": lambda: grad(g.disconnected_grad(x) * x),
            "disconnected_grad alone": lambda: grad(g.disconnected_grad(x)),
            "undefined_grad": lambda: grad(g.undefined_grad(x) * x),
            "grad_clip": lambda: grad(g.grad_clip(x, -1, 1) * 5),
            "grad_scale": lambda: grad(g.grad_scale(x, 0.5) * 4),
            "T.consider_constant": lambda: grad(T.consider_constant(x) * x),
            "gradient override": gradient_override,
            "jacobian": lambda: at(g.jacobian(x**2, x)),
            "jacobian of scalar": lambda: at(g.jacobian((x**2).sum(), x)),
            "jacobian of a matrix": lambda: g.jacobian(T.dmatrix(), x),
            "hessian": lambda: at(g.hessian((x**3).sum(), x)),
            "Rop": lambda: at(T.Rop(x**2, x, T.ones_like(x))),
            "Rop of dot": lambda: at(T.Rop(T.dot(T.outer(x, x), x), x, x * 2)),
            "Lop": lambda: at(T.Lop(x**2, x, x)),
            "Lop list": lambda: [at(e) for e in T.Lop([x**2, x * 3], [x], [x, x])],
            "subgraph_grad": lambda: _subgraph(theano, T, at, x),
            "second derivative": lambda: at(T.grad(T.grad((x**3).sum(), x).sum(), x)),
            "grad of grad of tanh": lambda: at(T.grad(T.grad(T.tanh(x).sum(), x).sum(), x)),
            "dtype float32": lambda: T.grad((T.fvector() ** 2).sum(), T.fvector("z")),
            "name": lambda: str(T.grad((x**2).sum(), x, add_names=True).name),
            "verify_grad": lambda: T.verify_grad(
                lambda v: T.tanh(v) * v, [value], rng=np.random.RandomState(1)
            ),
            "numeric_grad": lambda: _numeric(g, np, value),
            "grad_not_implemented": lambda: T.grad(T.nlinalg.svd(T.outer(x, x))[1].sum(), x),
            "through argmax index": lambda: grad(x[x.argmax()] * 2),
            "two costs": lambda: grad(x * 2 + T.sqr(x)),
            "y unused": lambda: T.grad((x * 2).sum(), [x, y]),
            "hard stop in a branch": lambda: grad(T.switch(x > 2, g.disconnected_grad(x * x), x)),
        }
    )


def _numeric(g, np, value):
    return np.round(g.numeric_grad(lambda v: (v**2).sum(), value).gf[0], 4)


def _negated(inputs, output_gradients):
    return [-output_gradients[0]]


def _through(T, at, x):
    square = x * x
    return at(T.grad((square * 3).sum(), square))


def _considered(T, at, x):
    double = x * 2
    return at(T.grad((x * x * double).sum(), x, consider_constant=[double]))


def _known(T, at, x):
    double = x * 2
    return at(T.grad(None, x, known_grads={double: T.ones_like(x)}))


def _subgraph(theano, T, at, x):
    a = x * 2
    cost = (a**2).sum()
    start = T.grad(cost, [a])
    wrt, _ = theano.subgraph_grad([x], [a], start={a: start[0]})
    return at(wrt[0])
