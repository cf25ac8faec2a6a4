"""Names of ops: in raw graphs, and in the graphs that both modes make of them."""

from functools import partial

from .compiling import MODES, descent, op_names, tensor
from .encoding import attempt, attempt_each
from .register import add_program, program


class Leaves:
    """The named inputs that the expressions below are made of."""

    def __init__(self, T):
        self.x, self.y = T.dmatrix("x"), T.dmatrix("y")
        self.v, self.w = T.dvector("v"), T.dvector("w")
        self.a, self.n = T.dscalar("a"), T.lscalar("n")
        self.i = T.ivector("i")
        self.t3, self.f32, self.b8 = T.dtensor3("t3"), T.fmatrix("f32"), T.bmatrix("b8")

    def inputs(self):
        """Every leaf, for functions that ignore the unused ones."""
        return [value for _, value in sorted(vars(self).items())]


ARITHMETIC = {
    "x + y": lambda T, s: s.x + s.y,
    "x - y": lambda T, s: s.x - s.y,
    "x * y": lambda T, s: s.x * s.y,
    "x / y": lambda T, s: s.x / s.y,
    "x // y": lambda T, s: s.x // s.y,
    "x % y": lambda T, s: s.x % s.y,
    "x ** 2": lambda T, s: s.x**2,
    "x ** y": lambda T, s: s.x**s.y,
    "-x": lambda T, s: -s.x,
    "abs(x)": lambda T, s: abs(s.x),
    "1 / x": lambda T, s: 1 / s.x,
    "x ** -1": lambda T, s: s.x**-1,
    "x ** 0.5": lambda T, s: s.x**0.5,
    "x ** 3": lambda T, s: s.x**3,
    "x ** 4": lambda T, s: s.x**4,
    "x ** -2": lambda T, s: s.x**-2,
    "x ** -0.5": lambda T, s: s.x**-0.5,
    "x ** 1": lambda T, s: s.x**1,
    "x ** 0": lambda T, s: s.x**0,
    "x * x": lambda T, s: s.x * s.x,
    "x * 1": lambda T, s: s.x * 1,
    "x + 0": lambda T, s: s.x + 0,
    "x * 0": lambda T, s: s.x * 0,
    "x - x": lambda T, s: s.x - s.x,
    "x / x": lambda T, s: s.x / s.x,
    "x + x": lambda T, s: s.x + s.x,
    "x * 2 * 3": lambda T, s: s.x * 2 * 3,
    "2 + x + 3": lambda T, s: 2 + s.x + 3,
    "x * y / y": lambda T, s: s.x * s.y / s.y,
    "x * -1": lambda T, s: s.x * -1,
    "-(-x)": lambda T, s: T.neg(-s.x),
    "x / 2": lambda T, s: s.x / 2,
    "x + y + v": lambda T, s: s.x + s.y + s.v,
    "a * x + y": lambda T, s: s.a * s.x + s.y,
    "x * y + y * x": lambda T, s: s.x * s.y + s.y * s.x,
    "int8 * int8": lambda T, s: s.b8 * s.b8,
    "int8 + 1.5": lambda T, s: s.b8 + 1.5,
    "int8 ** 2": lambda T, s: s.b8**2,
    "float32 * 2": lambda T, s: s.f32 * 2,
    "float32 + float64": lambda T, s: s.f32 + s.x,
}
REDUCTIONS = {
    "sum": lambda T, s: s.x.sum(),
    "sum 0": lambda T, s: s.x.sum(axis=0),
    "sum 1": lambda T, s: s.x.sum(axis=1),
    "sum (0, 1)": lambda T, s: s.x.sum(axis=(0, 1)),
    "sum of sum": lambda T, s: s.x.sum(axis=0).sum(),
    "sum of 3-d over two axes": lambda T, s: s.t3.sum(axis=(0, 2)),
    "sum float32": lambda T, s: s.f32.sum(),
    "sum int8": lambda T, s: s.b8.sum(),
    "sum keepdims": lambda T, s: s.x.sum(axis=1, keepdims=True),
    "sum dtype": lambda T, s: s.f32.sum(dtype="float64"),
    "mean": lambda T, s: s.x.mean(),
    "mean 0": lambda T, s: s.x.mean(axis=0),
    "mean int8": lambda T, s: s.b8.mean(axis=0),
    "var": lambda T, s: s.x.var(),
    "std": lambda T, s: s.x.std(axis=0),
    "prod": lambda T, s: s.x.prod(),
    "prod 1": lambda T, s: s.x.prod(axis=1),
    "max": lambda T, s: s.x.max(),
    "max 1": lambda T, s: s.x.max(axis=1),
    "max keepdims": lambda T, s: s.x.max(axis=1, keepdims=True),
    "min 0": lambda T, s: s.x.min(axis=0),
    "argmax": lambda T, s: s.x.argmax(),
    "argmax 1": lambda T, s: s.x.argmax(axis=1),
    "argmin 1": lambda T, s: s.x.argmin(axis=1),
    "max and argmax": lambda T, s: T.max_and_argmax(s.x, axis=1),
    "any": lambda T, s: T.any(s.x),
    "any 0": lambda T, s: T.any(s.x > 0, axis=0),
    "all 0": lambda T, s: T.all(s.x, axis=0),
    "norm": lambda T, s: s.x.norm(2),
    "norm 1": lambda T, s: s.x.norm(1),
    "sum of squares": lambda T, s: T.sqr(s.x).sum(),
    "sum of a * x": lambda T, s: (s.a * s.x).sum(),
    "sum of -x": lambda T, s: (-s.x).sum(),
    "sum of 2 * x": lambda T, s: (2 * s.x).sum(),
    "sum of x.T": lambda T, s: s.x.T.sum(),
    "ptp": lambda T, s: T.ptp(s.v),
}
PRODUCTS = {
    "matrix matrix": lambda T, s: T.dot(s.x, s.y),
    "matrix vector": lambda T, s: T.dot(s.x, s.v),
    "vector matrix": lambda T, s: T.dot(s.v, s.x),
    "vector vector": lambda T, s: T.dot(s.v, s.w),
    "x.T y": lambda T, s: T.dot(s.x.T, s.y),
    "x y.T": lambda T, s: T.dot(s.x, s.y.T),
    "(x y).T": lambda T, s: T.dot(s.x, s.y).T,
    "a * dot": lambda T, s: s.a * T.dot(s.x, s.y),
    "2 * dot": lambda T, s: 2 * T.dot(s.x, s.y),
    "-dot": lambda T, s: -T.dot(s.x, s.y),
    "dot + x": lambda T, s: T.dot(s.x, s.y) + s.x,
    "dot - x": lambda T, s: T.dot(s.x, s.y) - s.x,
    "x - dot": lambda T, s: s.x - T.dot(s.x, s.y),
    "dot + vector": lambda T, s: T.dot(s.x, s.y) + s.v,
    "a * dot + 2 * x": lambda T, s: s.a * T.dot(s.x, s.y) + 2 * s.x,
    "dot + dot": lambda T, s: T.dot(s.x, s.y) + T.dot(s.y, s.x),
    "x + outer": lambda T, s: s.x + T.outer(s.v, s.w),
    "x - a * outer": lambda T, s: s.x - s.a * T.outer(s.v, s.w),
    "outer": lambda T, s: T.outer(s.v, s.w),
    "w + matrix vector": lambda T, s: s.w + T.dot(s.x, s.v),
    "w - a * matrix vector": lambda T, s: s.w - s.a * T.dot(s.x, s.v),
    "vector x.T": lambda T, s: T.dot(s.v, s.x.T),
    "float32": lambda T, s: T.dot(s.f32, s.f32),
    "int8": lambda T, s: T.dot(s.b8, s.b8),
    "mixed": lambda T, s: T.dot(s.f32, s.x),
    "scalar matrix": lambda T, s: T.dot(s.a, s.x),
    "batched_dot": lambda T, s: T.batched_dot(s.t3, s.t3),
    "batched_dot 2": lambda T, s: T.batched_dot(s.x, s.y),
    "tensordot": lambda T, s: T.tensordot(s.t3, s.x, axes=[[2], [0]]),
    "dot 3-d": lambda T, s: T.dot(s.t3, s.x),
    "tanh of affine": lambda T, s: T.tanh(T.dot(s.x, s.y) + s.v),
    "sigmoid of affine": lambda T, s: T.nnet.sigmoid(T.dot(s.x, s.y) + s.v),
    "dot of 1-d product": lambda T, s: T.dot(s.x, s.v * s.w),
    "grad of dot": lambda T, s: T.grad(T.sqr(T.dot(s.x, s.y)).sum(), s.x),
}
SHAPES = {
    "x.T": lambda T, s: s.x.T,
    "(x, 0)": lambda T, s: s.v.dimshuffle("x", 0),
    "(0, x, 1)": lambda T, s: s.x.dimshuffle(0, "x", 1),
    "x.T.T": lambda T, s: s.x.T.T,
    "reshape": lambda T, s: s.x.reshape((2, 3)),
    "reshape n": lambda T, s: s.x.reshape((s.n, 3)),
    "reshape twice": lambda T, s: s.x.reshape((2, 3)).reshape((3, 2)),
    "reshape to own shape": lambda T, s: s.x.reshape(s.x.shape),
    "flatten": lambda T, s: s.x.flatten(),
    "flatten 2": lambda T, s: s.t3.flatten(2),
    "shape": lambda T, s: s.x.shape,
    "shape[0]": lambda T, s: s.x.shape[0],
    "shape of sum": lambda T, s: (s.x + s.y).shape,
    "shape of dot": lambda T, s: T.dot(s.x, s.y).shape[1],
    "shape of shape": lambda T, s: s.x.shape.shape,
    "size": lambda T, s: s.x.size,
    "ndim": lambda T, s: T.constant(s.x.ndim),
    "zeros_like": lambda T, s: T.zeros_like(s.x),
    "ones_like": lambda T, s: T.ones_like(s.v),
    "ones": lambda T, s: T.ones((2, 2)),
    "zeros n": lambda T, s: T.zeros((s.n, 2)),
    "alloc": lambda T, s: T.alloc(1.0, s.n, s.n),
    "alloc v": lambda T, s: T.alloc(s.v, s.n, s.v.shape[0]),
    "fill": lambda T, s: T.fill(s.x, s.a),
    "x + zeros": lambda T, s: s.x + T.zeros_like(s.x),
    "arange n": lambda T, s: T.arange(s.n),
    "arange 3": lambda T, s: T.arange(3),
    "eye": lambda T, s: T.eye(3),
    "eye n": lambda T, s: T.eye(s.n),
    "concatenate": lambda T, s: T.concatenate([s.x, s.y], axis=0),
    "concatenate 1": lambda T, s: T.concatenate([s.x, s.y], axis=1),
    "concatenate one": lambda T, s: T.concatenate([s.x]),
    "stack": lambda T, s: T.stack([s.v, s.w]),
    "stack scalars": lambda T, s: T.stack([s.a, s.a * 2]),
    "tile": lambda T, s: T.tile(s.v, 3),
    "tile matrix": lambda T, s: T.tile(s.x, (2, 1)),
    "repeat": lambda T, s: T.repeat(s.v, 2),
    "repeat axis": lambda T, s: T.repeat(s.x, 2, axis=0),
    "sort": lambda T, s: T.sort(s.v),
    "argsort": lambda T, s: T.argsort(s.v),
    "sort 0": lambda T, s: T.sort(s.x, 0),
    "cumsum": lambda T, s: T.cumsum(s.v),
    "cumprod 1": lambda T, s: T.cumprod(s.x, axis=1),
    "diag": lambda T, s: T.diag(s.v),
    "diag of matrix": lambda T, s: T.diag(s.x),
    "diagonal": lambda T, s: s.x.diagonal(),
    "trace": lambda T, s: s.x.trace(),
    "nonzero": lambda T, s: T.nonzero(s.x)[0],
    "addbroadcast": lambda T, s: T.addbroadcast(s.x, 0),
    "unbroadcast": lambda T, s: T.unbroadcast(s.v.dimshuffle("x", 0), 0),
    "patternbroadcast": lambda T, s: T.patternbroadcast(s.x, (True, False)),
    "split": lambda T, s: T.split(s.v, [1, 2], 2)[0],
    "squeeze": lambda T, s: s.v.dimshuffle("x", 0).squeeze(),
    "swapaxes": lambda T, s: s.t3.swapaxes(0, 2),
    "shape_padright": lambda T, s: T.shape_padright(s.v),
    "roll": lambda T, s: T.roll(s.v, 1),
    "tril": lambda T, s: T.tril(s.x),
    "to_one_hot": lambda T, s: T.extra_ops.to_one_hot(s.i, 4),
    "specify_shape": lambda T, s: T.specify_shape(s.v, (3,)),
    "input": lambda T, s: s.x,
    "constant": lambda T, s: T.constant(1.0),
    "max of arange": lambda T, s: T.arange(s.n).max(),
    "makevector": lambda T, s: T.as_tensor_variable([s.n, s.n + 1]),
    "fill_diagonal": lambda T, s: T.fill_diagonal(s.x, 0),
    "identity_like": lambda T, s: T.identity_like(s.x),
    "choose": lambda T, s: T.choose(s.i, s.x),
}
INDEXING = {
    "v[0]": lambda T, s: s.v[0],
    "v[-1]": lambda T, s: s.v[-1],
    "v[1:]": lambda T, s: s.v[1:],
    "v[:-1]": lambda T, s: s.v[:-1],
    "v[::2]": lambda T, s: s.v[::2],
    "v[::-1]": lambda T, s: s.v[::-1],
    "v[:]": lambda T, s: s.v[:],
    "v[n]": lambda T, s: s.v[s.n],
    "v[n:]": lambda T, s: s.v[s.n :],
    "v[n:n + 1]": lambda T, s: s.v[s.n : s.n + 1],
    "x[0]": lambda T, s: s.x[0],
    "x[:, 0]": lambda T, s: s.x[:, 0],
    "x[0, 1]": lambda T, s: s.x[0, 1],
    "x[1:, :2]": lambda T, s: s.x[1:, :2],
    "x[n]": lambda T, s: s.x[s.n],
    "x[n, :]": lambda T, s: s.x[s.n, :],
    "x[:, n]": lambda T, s: s.x[:, s.n],
    "x[i]": lambda T, s: s.x[s.i],
    "x[[0, 1]]": lambda T, s: s.x[[0, 1]],
    "x[i, i]": lambda T, s: s.x[s.i, s.i],
    "x[:, i]": lambda T, s: s.x[:, s.i],
    "x[arange, i]": lambda T, s: s.x[T.arange(s.i.shape[0]), s.i],
    "x[0, i]": lambda T, s: s.x[0, s.i],
    "t3[:, i, 0]": lambda T, s: s.t3[:, s.i, 0],
    "t3[i, :, i]": lambda T, s: s.t3[s.i, :, s.i],
    "v[None, :]": lambda T, s: s.v[None, :],
    "x[..., 0]": lambda T, s: s.x[..., 0],
    "x[x > 0]": lambda T, s: s.x[s.x > 0],
    "x[(x > 0).nonzero()]": lambda T, s: s.x[(s.x > 0).nonzero()],
    "x[1:][0]": lambda T, s: s.x[1:][0],
    "v[1:][:-1]": lambda T, s: s.v[1:][:-1],
    "(x + y)[0]": lambda T, s: (s.x + s.y)[0],
    "exp(x)[0]": lambda T, s: T.exp(s.x)[0],
    "dot(x, y)[0]": lambda T, s: T.dot(s.x, s.y)[0],
    "shape[-1]": lambda T, s: s.x.shape[-1],
    "set v[0]": lambda T, s: T.set_subtensor(s.v[0], 1.0),
    "set v[1:]": lambda T, s: T.set_subtensor(s.v[1:], 1.0),
    "inc v[1:]": lambda T, s: T.inc_subtensor(s.v[1:], 1.0),
    "inc v[:-1] w": lambda T, s: T.inc_subtensor(s.v[:-1], s.w),
    "set x[:, n]": lambda T, s: T.set_subtensor(s.x[:, s.n], s.v),
    "inc x[i]": lambda T, s: T.inc_subtensor(s.x[s.i], 1.0),
    "set x[i]": lambda T, s: T.set_subtensor(s.x[s.i], 1.0),
    "inc x[i, i]": lambda T, s: T.inc_subtensor(s.x[s.i, s.i], 1.0),
    "set x[i, i]": lambda T, s: T.set_subtensor(s.x[s.i, s.i], 1.0),
    "inc x[x > 0]": lambda T, s: T.inc_subtensor(s.x[s.x > 0], 1.0),
    "set x[:, i]": lambda T, s: T.set_subtensor(s.x[:, s.i], 1.0),
    "set then get": lambda T, s: T.set_subtensor(s.v[0], s.a)[0],
    "set of zeros": lambda T, s: T.set_subtensor(T.zeros_like(s.v)[1:3], s.a),
    "grad of v[0]": lambda T, s: T.grad(s.v[0], s.v),
    "grad of x[i]": lambda T, s: T.grad(s.x[s.i].sum(), s.x),
    "take": lambda T, s: s.x.take(s.i, axis=0),
    "take flat": lambda T, s: s.x.take(s.i),
}
FUNCTIONS = {
    name: (lambda T, s, name=name: getattr(T, name)(s.x))
    for name in (
        "exp log log1p log2 log10 expm1 exp2 sqrt sqr sgn abs_ neg inv floor ceil trunc round "
        "iround sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh erf erfc "
        "gammaln psi isnan isinf zeros_like ones_like conj real imag deg2rad tensor_copy"
    ).split()
}
ELEMWISE = {
    "cast float32": lambda T, s: T.cast(s.x, "float32"),
    "cast int32": lambda T, s: T.cast(s.x, "int32"),
    "cast float64 of int8": lambda T, s: T.cast(s.b8, "float64"),
    "cast to own dtype": lambda T, s: T.cast(s.x, "float64"),
    "cast twice": lambda T, s: T.cast(T.cast(s.b8, "float32"), "float64"),
    "switch": lambda T, s: T.switch(s.x > 0, s.x, s.y),
    "switch 0": lambda T, s: T.switch(s.x > 0, s.x, 0),
    "switch scalar": lambda T, s: T.switch(s.a > 0, s.x, s.y),
    "switch constant condition": lambda T, s: T.switch(1, s.x, s.y),
    "switch equal branches": lambda T, s: T.switch(s.y > 0, s.x, s.x),
    "maximum": lambda T, s: T.maximum(s.x, 0),
    "maximum y": lambda T, s: T.maximum(s.x, s.y),
    "minimum": lambda T, s: T.minimum(s.x, 1.0),
    "clip": lambda T, s: T.clip(s.x, 0, 1),
    "eq": lambda T, s: T.eq(s.x, s.y),
    "neq": lambda T, s: T.neq(s.x, s.y),
    "lt": lambda T, s: s.x < s.y,
    "le": lambda T, s: s.x <= s.y,
    "gt 0": lambda T, s: s.x > 0,
    "ge": lambda T, s: s.x >= s.y,
    "and": lambda T, s: T.and_(s.x > 0, s.y > 0),
    "or": lambda T, s: T.or_(s.x > 0, s.y > 0),
    "xor": lambda T, s: T.xor(s.x > 0, s.y > 0),
    "invert": lambda T, s: ~(s.x > 0),
    "eq of itself": lambda T, s: T.eq(s.x, s.x),
    "gt of itself": lambda T, s: T.gt(s.x, s.x),
    "arctan2": lambda T, s: T.arctan2(s.x, s.y),
    "round half away": lambda T, s: T.round(s.x, mode="half_away_from_zero"),
    "exp of neg": lambda T, s: T.exp(-s.x),
    "exp of log": lambda T, s: T.exp(T.log(s.x)),
    "log of exp": lambda T, s: T.log(T.exp(s.x)),
    "log of 1 + x": lambda T, s: T.log(1 + s.x),
    "exp(x) - 1": lambda T, s: T.exp(s.x) - 1,
    "log of 1 + exp": lambda T, s: T.log(1 + T.exp(s.x)),
    "1 / (1 + exp(-x))": lambda T, s: 1 / (1 + T.exp(-s.x)),
    "exp / (1 + exp)": lambda T, s: T.exp(s.x) / (1 + T.exp(s.x)),
    "log of sum of exp": lambda T, s: T.log(T.exp(s.x).sum(axis=1)),
    "sqrt of square": lambda T, s: T.sqrt(T.sqr(s.x)),
    "abs of product": lambda T, s: abs(s.x * s.y),
    "1 - erf": lambda T, s: 1 - T.erf(s.x),
    "log of erfc": lambda T, s: T.log(T.erfc(s.x)),
    "x / sqrt(y)": lambda T, s: s.x / T.sqrt(s.y),
    "a chain": lambda T, s: T.tanh(s.x * s.y + s.v) ** 2 - s.x,
    "a long chain": lambda T, s: (
        T.exp(-T.sqr(s.x - s.y) / (2 * T.sqr(s.a))) * T.sin(s.x) + T.cos(s.y)
    ),
    "broadcast of a scalar": lambda T, s: s.x * s.a,
    "broadcast of two vectors": lambda T, s: s.v.dimshuffle(0, "x") * s.w,
    "normalised": lambda T, s: (s.x - s.x.mean(axis=0)) / (s.x.std(axis=0) + 1e-6),
    "two outputs": lambda T, s: [T.exp(s.x), T.exp(s.x) * 2],
    "same twice": lambda T, s: [T.exp(s.x), T.exp(s.x)],
    "constant folding": lambda T, s: s.x + T.exp(T.constant(2.0)),
    "specialised mean of squares": lambda T, s: T.mean(T.sqr(s.x - s.y)),
}
NNET = {
    "sigmoid": lambda T, s: T.nnet.sigmoid(s.x),
    "softplus": lambda T, s: T.nnet.softplus(s.x),
    "relu": lambda T, s: T.nnet.relu(s.x),
    "relu alpha": lambda T, s: T.nnet.relu(s.x, 0.1),
    "elu": lambda T, s: T.nnet.elu(s.x),
    "selu": lambda T, s: T.nnet.selu(s.x),
    "hard_sigmoid": lambda T, s: T.nnet.hard_sigmoid(s.x),
    "ultra_fast_sigmoid": lambda T, s: T.nnet.ultra_fast_sigmoid(s.x),
    "softsign": lambda T, s: T.nnet.nnet.softsign(s.x),
    "softmax": lambda T, s: T.nnet.softmax(s.x),
    "softmax of vector": lambda T, s: T.nnet.softmax(s.v),
    "softmax + bias": lambda T, s: T.nnet.softmax(T.dot(s.x, s.y) + s.v),
    "log softmax": lambda T, s: T.log(T.nnet.softmax(s.x)),
    "logsoftmax": lambda T, s: T.nnet.logsoftmax(s.x),
    "exp over sum": lambda T, s: T.exp(s.x) / T.exp(s.x).sum(axis=1, keepdims=True),
    "log of sigmoid": lambda T, s: T.log(T.nnet.sigmoid(s.x)),
    "log of 1 - sigmoid": lambda T, s: T.log(1 - T.nnet.sigmoid(s.x)),
    "1 - sigmoid": lambda T, s: 1 - T.nnet.sigmoid(s.x),
    "crossentropy 1hot": lambda T, s: T.nnet.categorical_crossentropy(T.nnet.softmax(s.x), s.i),
    "crossentropy matrix": lambda T, s: T.nnet.categorical_crossentropy(T.nnet.softmax(s.x), s.y),
    "crossentropy without softmax": lambda T, s: T.nnet.categorical_crossentropy(s.x, s.i),
    "crossentropy mean": lambda T, s: T.nnet.categorical_crossentropy(
        T.nnet.softmax(s.x), s.i
    ).mean(),
    "crossentropy of affine": lambda T, s: T.nnet.categorical_crossentropy(
        T.nnet.softmax(T.dot(s.x, s.y) + s.v), s.i
    ).mean(),
    "grad of crossentropy": lambda T, s: T.grad(
        T.nnet.categorical_crossentropy(T.nnet.softmax(s.x), s.i).mean(), s.x
    ),
    "-mean log p[arange, i]": lambda T, s: (
        -T.mean(T.log(T.nnet.softmax(s.x))[T.arange(s.i.shape[0]), s.i])
    ),
    "grad of -mean log p[arange, i]": lambda T, s: T.grad(
        -T.mean(T.log(T.nnet.softmax(s.x))[T.arange(s.i.shape[0]), s.i]), s.x
    ),
    "binary crossentropy": lambda T, s: T.nnet.binary_crossentropy(T.nnet.sigmoid(s.x), s.y),
    "binary crossentropy of p": lambda T, s: T.nnet.binary_crossentropy(s.x, s.y),
    "grad of binary crossentropy": lambda T, s: T.grad(
        T.nnet.binary_crossentropy(T.nnet.sigmoid(s.x), s.y).mean(), s.x
    ),
    "sigmoid_binary_crossentropy": lambda T, s: T.nnet.sigmoid_binary_crossentropy(s.x, s.y),
    "grad of sigmoid": lambda T, s: T.grad(T.nnet.sigmoid(s.x).sum(), s.x),
    "grad of tanh": lambda T, s: T.grad(T.tanh(s.x).sum(), s.x),
    "grad of relu": lambda T, s: T.grad(T.nnet.relu(s.x).sum(), s.x),
    "grad of softplus": lambda T, s: T.grad(T.nnet.softplus(s.x).sum(), s.x),
    "grad of softmax": lambda T, s: T.grad(T.sqr(T.nnet.softmax(s.x)).sum(), s.x),
    "error rate": lambda T, s: T.mean(T.neq(T.argmax(s.x, axis=1), s.i)),
}
LINEAR_ALGEBRA = {
    "matrix_inverse": lambda T, s: T.nlinalg.matrix_inverse(s.x),
    "det": lambda T, s: T.nlinalg.det(s.x),
    "trace": lambda T, s: T.nlinalg.trace(s.x),
    "svd": lambda T, s: T.nlinalg.svd(s.x)[0],
    "eigh": lambda T, s: T.nlinalg.eigh(s.x)[0],
    "qr": lambda T, s: T.nlinalg.qr(s.x)[0],
    "pinv": lambda T, s: T.nlinalg.pinv(s.x),
    "extract_diag": lambda T, s: T.nlinalg.extract_diag(s.x),
    "alloc_diag": lambda T, s: T.nlinalg.alloc_diag(s.v),
    "matrix_power": lambda T, s: T.nlinalg.matrix_power(s.x, 3),
}

TABLES = {
    "arithmetic": ARITHMETIC,
    "reductions": REDUCTIONS,
    "products": PRODUCTS,
    "shapes": SHAPES,
    "indexing": INDEXING,
    "functions": FUNCTIONS,
    "elemwise": ELEMWISE,
    "nnet": NNET,
    "linear_algebra": LINEAR_ALGEBRA,
}


def _raw_text(outputs):
    variables = outputs if isinstance(outputs, list) else [outputs]
    return ["" + str(v.owner.op if v.owner else v) for v in variables]


def _names_of(build, theano, T):
    leaves = Leaves(T)
    outputs = build(T, leaves)

    def compiled(mode):
        function = theano.function(leaves.inputs(), outputs, mode=mode, on_unused_input="ignore")
        return op_names(function)

    names = {mode: attempt(compiled, mode) for mode in MODES}
    names["raw"] = _raw_text(outputs)
    return names


def _names_table(table, theano, T, np):
    return attempt_each(
        {label: partial(_names_of, build, theano, T) for label, build in table.items()}
    )


for _name, _table in TABLES.items():
    add_program("names." + _name, partial(_names_table, _table))


@program("names.updates")
def updates(theano, T, np):
    """Ops of functions that update shared variables, where work in place shows."""
    x, y, v, w, i = T.dmatrix("x"), T.dmatrix("y"), T.dvector("v"), T.dvector("w"), T.ivector("i")
    s, g = theano.shared(np.zeros((3, 3)), name="s"), theano.shared(np.zeros(3), name="g")
    cases = {
        "s + 1": ([], [(s, s + 1)]),
        "s * 2": ([], [(s, s * 2)]),
        "s - 0.1 x": ([x], [(s, s - 0.1 * x)]),
        "gemm": ([x, y], [(s, s - 0.1 * T.dot(x, y))]),
        "gemm transposed": ([x, y], [(s, s - 0.1 * T.dot(x.T, y))]),
        "gemm beta": ([x, y], [(s, 0.9 * s + T.dot(x, y))]),
        "gemv": ([x, v], [(g, g - 0.1 * T.dot(x, v))]),
        "ger": ([v, w], [(s, s + 0.1 * T.outer(v, w))]),
        "dot22": ([x, y], [(s, T.dot(x, y))]),
        "inc slice": ([], [(g, T.inc_subtensor(g[1:], 1.0))]),
        "set element": ([], [(g, T.set_subtensor(g[0], 1.0))]),
        "inc rows": ([i], [(s, T.inc_subtensor(s[i], 1.0))]),
        "momentum": ([x], [(s, s * 0.9 - 0.1 * x)]),
        "two": ([x, v], [(s, s - x), (g, g - v)]),
        "swap": ([], [(s, s.T), (g, g * 2)]),
        "reset": ([], [(g, T.zeros_like(g))]),
        "transpose": ([], [(s, s.T)]),
        "relu": ([x], [(s, T.nnet.relu(s + x))]),
        "sigmoid": ([x], [(s, T.nnet.sigmoid(s + x))]),
        "softmax": ([x], [(s, T.nnet.softmax(s + x))]),
        "sum": ([x], [(g, g + x.sum(axis=0))]),
    }

    def names(inputs, pairs):
        return {mode: op_names(theano.function(inputs, updates=pairs, mode=mode)) for mode in MODES}

    return attempt_each({label: partial(names, *case) for label, case in cases.items()})


@program("names.copies")
def copies(theano, T, np):
    """Where a compiled function copies an input or a shared value."""
    x = T.dmatrix("x")
    s = theano.shared(np.zeros((3, 3)), name="s")
    In, Out = theano.In, theano.Out
    cases = {
        "shared": lambda: theano.function([], s),
        "input": lambda: theano.function([x], x),
        "input twice": lambda: theano.function([x], [x, x]),
        "both borrowed": lambda: theano.function([In(x, borrow=True)], Out(x, borrow=True)),
        "output borrowed": lambda: theano.function([x], Out(x, borrow=True)),
        "view": lambda: theano.function([x], x.T),
        "view borrowed": lambda: theano.function([x], Out(x.T, borrow=True)),
        "mutable input": lambda: theano.function([In(x, mutable=True)], T.exp(x)),
        "mutable input, two steps": lambda: theano.function([In(x, mutable=True)], T.exp(x) + x),
        "old value and update": lambda: theano.function([], s, updates=[(s, s + 1)]),
        "view of shared and update": lambda: theano.function([], s[0], updates=[(s, s + 1)]),
    }
    return {label: attempt(lambda build: op_names(build()), make) for label, make in cases.items()}


def _logistic_regression(theano, T, np):
    x, y = T.dmatrix("x"), T.dvector("y")
    w, b = theano.shared(np.zeros(4), name="w"), theano.shared(0.0, name="b")
    p = 1 / (1 + T.exp(-T.dot(x, w) - b))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w**2).sum()
    gw, gb = T.grad(cost, [w, b])
    return [x, y], [p > 0.5, cost], [(w, w - 0.1 * gw), (b, b - 0.1 * gb)]


def _perceptron(theano, T, np):
    x, y = T.dmatrix("x"), T.ivector("y")
    w1, b1 = theano.shared(np.zeros((4, 3)), name="w1"), theano.shared(np.zeros(3), name="b1")
    w2, b2 = theano.shared(np.zeros((3, 2)), name="w2"), theano.shared(np.zeros(2), name="b2")
    hidden = T.tanh(T.dot(x, w1) + b1)
    p = T.nnet.softmax(T.dot(hidden, w2) + b2)
    cost = -T.mean(T.log(p)[T.arange(y.shape[0]), y])
    parameters = [w1, b1, w2, b2]
    return [x, y], [cost], descent(T, cost, parameters, 0.1)


def _regression(theano, T, np):
    x, t = T.dmatrix("input"), T.dmatrix("target")
    w, b = theano.shared(np.zeros((10, 3)), name="w"), theano.shared(np.zeros(3), name="b")
    prediction = T.nnet.sigmoid(T.dot(x, w) + b)
    cost = T.sum((t - prediction) ** 2) + 0.01 * T.sum(w * w)
    gw, gb = T.grad(cost, [w, b])
    return [x, t], [cost, gw, gb], [(w, w - 0.01 * gw), (b, b - 0.01 * gb)]


STEPS = {
    "logistic regression": _logistic_regression,
    "multilayer perceptron": _perceptron,
    "regression layer": _regression,
}


@program("names.training_steps")
def training_steps(theano, T, np):
    """The ops of whole training steps, under modes with more and fewer rewrites."""

    def names(build, mode):
        inputs, outputs, pairs = build(theano, T, np)
        return op_names(theano.function(inputs, outputs, updates=pairs, mode=mode))

    def modes():
        return {
            "FAST_RUN": "FAST_RUN",
            "FAST_COMPILE": "FAST_COMPILE",
            "no optimizer": theano.Mode("py", None),
            "merge": theano.Mode("py", "merge"),
            "stabilize": theano.Mode("py", "stabilize"),
            "without fusion": theano.Mode("py", "fast_run").excluding("fusion"),
            "without inplace": theano.Mode("py", "fast_run").excluding("inplace"),
            "without both": theano.Mode("py", "fast_run").excluding("fusion", "inplace"),
            "o1": theano.Mode("py", "o1"),
            "o2": theano.Mode("py", "o2"),
            "o3": theano.Mode("py", "o3"),
        }

    return {
        label: {key: attempt(names, build, mode) for key, mode in modes().items()}
        for label, build in STEPS.items()
    }


@program("names.optimizers")
def optimizers(theano, T, np):
    """What each named optimizer leaves of one small expression."""
    x = T.dvector("x")

    def names(optimizer):
        mode = theano.Mode("py", optimizer)
        return op_names(theano.function([x], T.exp(x) * 2 + 1 + x - x, mode=mode))

    labels = ["fast_run", "fast_compile", "o1", "o2", "o3", "o4", "unsafe", "merge", "stabilize"]
    labels += ["fast_run_stable", "None", None]
    return {str(label): attempt(names, label) for label in labels}


@program("names.variables")
def variables(theano, T, np):
    """str and repr of variables, Applys, constants and types."""
    x, y = T.dmatrix("x"), T.dmatrix("y")
    named = x + y
    named.name = "total"
    TensorType = T.TensorType
    things = {
        "named input": x,
        "unnamed input": T.dmatrix(),
        "unnamed int input": T.lscalar(),
        "computed": x + y,
        "computed and named": named,
        "second output": T.max_and_argmax(x, axis=1)[1],
        "Apply": (x + y).owner,
        "Apply of a constant": (x + 1).owner,
        "Apply of a transposition": T.dot(x.T, y).owner,
        "Apply of unnamed": (T.dvector() * T.fscalar()).owner,
        "index": T.dvector("v")[0],
        "index Apply": T.dvector("v")[0].owner,
        "slice Apply": T.dvector("v")[1:].owner,
        "constant int": T.constant(3),
        "constant float": T.constant(3.5),
        "constant bool": T.constant(np.array(True)),
        "constant ones": T.constant(np.ones(3)),
        "constant arange": T.constant(np.arange(4)),
        "constant zeros": T.constant(np.zeros((2, 2))),
        "constant long": T.constant(np.arange(20) / 8.0),
        "constant matrix": T.constant(np.arange(6.0).reshape(2, 3)),
        "constant empty": T.constant(np.zeros((0,))),
        "constant one row": T.constant(np.ones((1, 3))),
        "constant nan": T.constant(np.nan),
        "constant negative": T.constant(-2),
        "constant named": T.constant(1, name="cn"),
        "constant list": T.as_tensor_variable([1, 2]),
        "constant float32": T.constant(np.float32(0.1)),
        "constant complex": T.constant(1j),
        "shared named": theano.shared(np.zeros(3), name="s"),
        "shared unnamed": theano.shared(1.0),
        "scalar variable": theano.scalar.float64("q"),
        "generic constant": theano.gof.Constant(theano.gof.generic, slice(1)),
        "type matrix": x.type,
        "type row": T.row("r").type,
        "type 3D": T.dtensor3().type,
        "type 4D": T.ftensor4().type,
        "type mixed": TensorType("float32", (True, False, True)),
        "type one": TensorType("int8", (True,)),
        "type 5D": TensorType("float64", (False,) * 5),
        "type 6D": TensorType("float64", (False,) * 6),
        "type all broadcastable": TensorType("float64", (True, True)),
        "type column": TensorType("float64", (False, True)),
        "type scalar": T.bscalar().type,
        "type of theano.scalar": theano.scalar.int64,
    }
    texts = {label: [str(thing), repr(thing)] for label, thing in things.items()}
    return {label: [_unaddressed(t) for t in pair] for label, pair in texts.items()}


def _unaddressed(text):
    return text.split(" at 0x")[0]


@program("names.scalar_ops")
def scalar_ops(theano, T, np):
    """Names of scalar ops and of tensors' elementwise ops made from them."""
    scalar = theano.scalar
    names = (
        "add sub mul true_div int_div mod pow maximum minimum eq neq "
        "lt le gt ge and_ or_ xor invert switch clip second identity neg abs_ sgn sqr sqrt inv exp "
        "exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh "
        "floor ceil trunc round_half_to_even round_half_away_from_zero isnan isinf erf erfc "
        "gammaln psi convert_to_float32 convert_to_int64"
    ).split()
    cases = {name: partial(lambda n: str(getattr(scalar, n)), name) for name in names}
    cases["Elemwise of scalar add"] = lambda: str(T.Elemwise(scalar.add))
    cases["Elemwise in place"] = lambda: str(T.Elemwise(scalar.add, {0: 0}))
    cases["Elemwise named"] = lambda: str(T.Elemwise(scalar.add, name="plus"))
    cases["CAReduce"] = lambda: str(T.elemwise.CAReduce(scalar.add, axis=(0,)))
    cases["DimShuffle"] = lambda: str(T.DimShuffle((False,), ("x", 0)))
    cases["a scalar graph"] = lambda: str((scalar.float64("a") + scalar.float64("b")).owner)
    cases["Composite"] = lambda: _composite_text(scalar)
    cases["int8 tensor"] = lambda: str(tensor(T, "int8", 1) + 1)
    return attempt_each(cases)


def _composite_text(scalar):
    a, b = scalar.float64("a"), scalar.float64("b")
    return str(scalar.Composite([a, b], [scalar.exp(a * b) + a]))
