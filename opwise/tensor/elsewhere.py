"""Where the names are that programs look for in the wrong place, or know from other libraries."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from types import ModuleType

import numpy as np

from opwise.errors import likely_typo

#: modules with the names of today, which are in opwise alone
_TODAY = ("nn", "linalg", "random")

#: modules whose names programs may look for in others, in opwise and in theano
_MODULES = ("tensor", "tensor.nnet", "", "gradient")

#: names that are in modules which programs import by themselves: the modules, in either package
_HOMES = {
    **dict.fromkeys(
        "conv2d conv2d_transpose conv3d abstract_conv neighbours".split(), "tensor.nnet"
    ),
    **dict.fromkeys(("pool_2d", "pool_3d", "Pool"), "tensor.signal.pool"),
    **dict.fromkeys(("scan", "map", "reduce", "foldl", "foldr"), ""),
    **dict.fromkeys(("until",), "scan_module"),
    **dict.fromkeys(("RandomStreams",), "tensor.shared_randomstreams"),
    **dict.fromkeys(("MRG_RandomStreams",), "sandbox.rng_mrg"),
    **dict.fromkeys("solve cholesky expm eigvalsh".split(), "tensor.slinalg"),
    **dict.fromkeys(
        "det svd eig eigh qr pinv norm lstsq matrix_inverse matrix_power trace".split(),
        "tensor.nlinalg",
    ),
    **dict.fromkeys(("kron",), "tensor.slinalg"),
    **dict.fromkeys("searchsorted to_one_hot diff Unique".split(), "tensor.extra_ops"),
    **dict.fromkeys(("ifelse", "IfElse"), "ifelse"),
    **dict.fromkeys(("ProfileMode", "Mode", "Out", "In", "function", "shared"), ""),
    **dict.fromkeys(("jacobian", "hessian"), "gradient"),
    **dict.fromkeys(("rfft", "irfft"), "tensor.fft"),
}

#: functions of numpy, PyTorch, JAX and TensorFlow, some in one of their modules only, and what to
#: write; T is theano.tensor
_FUNCTIONS = {
    "absolute": "abs(x)",
    "acos": "T.arccos(x)",
    "acosh": "T.arccosh(x)",
    "addmm": "z + T.dot(x, y)",
    "amax": "T.max(x, axis)",
    "amin": "T.min(x, axis)",
    "argwhere": "T.stack(x.nonzero(), axis=1)",
    "around": "T.round(x)",
    "array": "T.as_tensor_variable(value), or T.constant(value)",
    "array_equal": "T.all(T.eq(x, y))",
    "array_split": "T.split(x, sizes, n, axis)",
    "asarray": "T.as_tensor_variable(value)",
    "asin": "T.arcsin(x)",
    "asinh": "T.arcsinh(x)",
    "astype": "x.astype(dtype), or T.cast(x, dtype)",
    "atan": "T.arctan(x)",
    "atan2": "T.arctan2(y, x)",
    "atanh": "T.arctanh(x)",
    "atleast_1d": "T.shape_padleft(x)",
    "atleast_2d": "T.shape_padleft(x)",
    "average": "T.mean(x, axis), or T.sum(weights * x) / T.sum(weights)",
    "avg_pool2d": "theano.tensor.signal.pool.pool_2d(x, ws, mode='average_exc_pad')",
    "batch_norm": "T.nnet.bn.batch_normalization_train(x, gamma, beta)",
    "bernoulli": "RandomStreams(seed).binomial(shape, p=p)",
    "binary_cross_entropy": "T.nnet.binary_crossentropy(p, labels)",
    "binary_cross_entropy_with_logits": "T.nnet.sigmoid_binary_crossentropy(x, labels)",
    "bmm": "T.batched_dot(x, y)",
    "bool": "T.cast(x, 'bool')",
    "broadcast_arrays": "x + T.zeros_like(y): operators broadcast by themselves",
    "broadcast_to": "T.alloc(x, *shape)",
    "cat": "T.concatenate([x, y], axis)",
    "cbrt": "T.sgn(x) * abs(x) ** (1 / 3)",
    "celu": "T.switch(x > 0, x, alpha * T.expm1(x / alpha))",
    "chunk": "T.split(x, sizes, n, axis)",
    "clamp": "T.clip(x, low, high)",
    "column_stack": "T.stack([x, y], axis=1), or T.concatenate([x, y], axis=1)",
    "concat": "T.concatenate([x, y], axis)",
    "cond": "theano.ifelse.ifelse(condition, x, y), or T.switch for elements",
    "conjugate": "T.conj(x)",
    "conv1d": "theano.tensor.nnet.conv2d with images of height 1",
    "Conv2d": "theano.tensor.nnet.conv2d",
    "convolve": "theano.tensor.nnet.conv2d, or theano.tensor.signal.conv.conv2d",
    "count_nonzero": "T.sum(T.neq(x, 0))",
    "cross_entropy": "T.nnet.categorical_crossentropy(T.nnet.softmax(x), labels)",
    "cumulative_prod": "T.cumprod(x, axis)",
    "cumulative_sum": "T.cumsum(x, axis)",
    "default_rng": "RandomStreams(seed), whose methods take the size first",
    "degrees": "T.rad2deg(x)",
    "detach": "theano.gradient.disconnected_grad(x)",
    "digamma": "T.psi(x)",
    "div": "x / y",
    "divide": "x / y",
    "dropout": "x * RandomStreams(seed).binomial(x.shape, p=keep) / keep",
    "dsplit": "T.split(x, sizes, n, axis=2)",
    "dstack": "T.stack([x, y], axis=2)",
    "dtype": "x.dtype",
    "eigvals": "T.nlinalg.eig(x)[0]",
    "einsum": "T.dot, T.tensordot(x, y, axes) or T.batched_dot",
    "embedding": "table[indices]",
    "empty": "T.zeros(shape), or T.alloc",
    "empty_like": "T.zeros_like(x)",
    "equal": "T.eq(x, y)",
    "expand_dims": "T.shape_padaxis(x, axis), or x.dimshuffle",
    "expit": "T.nnet.sigmoid(x)",
    "fabs": "abs(x)",
    "fix": "T.trunc(x)",
    "flip": "x[::-1]",
    "fliplr": "x[:, ::-1]",
    "flipud": "x[::-1]",
    "float16": "T.cast(x, 'float16')",
    "float32": "T.cast(x, 'float32')",
    "float64": "T.cast(x, 'float64')",
    "float_power": "x ** y",
    "floor_divide": "x // y",
    "fmax": "T.maximum(x, y)",
    "fmin": "T.minimum(x, y)",
    "fmod": "x - y * T.trunc(x / y)",
    "fori_loop": "theano.scan",
    "full": "T.alloc(value, *shape)",
    "full_like": "T.fill(x, value)",
    "gather": "x[indices], or x[T.arange(n), indices]",
    "gelu": "x * 0.5 * (1 + T.erf(x / T.sqrt(2)))",
    "glu": "x[:, :n] * T.nnet.sigmoid(x[:, n:])",
    "greater": "T.gt(x, y)",
    "greater_equal": "T.ge(x, y)",
    "hard_tanh": "T.clip(x, -1, 1)",
    "hardsigmoid": "T.clip(x / 6 + 0.5, 0, 1)",
    "hardtanh": "T.clip(x, -1, 1)",
    "hsplit": "T.split(x, sizes, n, axis=1)",
    "hstack": "T.concatenate([x, y], axis=1)",
    "hypot": "T.sqrt(x ** 2 + y ** 2)",
    "index_select": "T.take(x, indices, axis)",
    "inf": "float('inf')",
    "inner": "T.dot(x, y), or T.tensordot",
    "int16": "T.cast(x, 'int16')",
    "int32": "T.cast(x, 'int32')",
    "int64": "T.cast(x, 'int64')",
    "int8": "T.cast(x, 'int8')",
    "inverse": "T.nlinalg.matrix_inverse(x)",
    "isfinite": "T.invert(T.or_(T.isnan(x), T.isinf(x)))",
    "isin": "T.any(T.eq(x[:, None], y), axis=1)",
    "isneginf": "T.eq(x, -numpy.inf)",
    "isposinf": "T.eq(x, numpy.inf)",
    "jacfwd": "theano.gradient.jacobian(y, x)",
    "jacrev": "theano.gradient.jacobian(y, x)",
    "jit": "theano.function(inputs, outputs)",
    "jvp": "theano.Rop(y, x, v)",
    "l1_loss": "T.mean(abs(x - y))",
    "lax": "theano.scan for loops, theano.ifelse.ifelse for conditions",
    "leaky_relu": "T.nnet.relu(x, alpha)",
    "less": "T.lt(x, y)",
    "less_equal": "T.le(x, y)",
    "lgamma": "T.gammaln(x)",
    "linear": "T.dot(x, w.T) + b",
    "Linear": "T.dot(x, w) + b, with w and b from theano.shared",
    "linspace": "start + T.arange(n) * ((stop - start) / (n - 1.))",
    "log_sigmoid": "-T.nnet.softplus(-x)",
    "log_softmax": "T.nnet.logsoftmax(x)",
    "logical_and": "T.and_(x, y), or x & y",
    "logical_or": "T.or_(x, y), or x | y",
    "logical_xor": "T.xor(x, y), or x ^ y",
    "logit": "T.log(x / (1 - x))",
    "logsigmoid": "-T.nnet.softplus(-x)",
    "logspace": "base ** (start + T.arange(n) * ((stop - start) / (n - 1.)))",
    "logsumexp": "T.log(T.sum(T.exp(x), axis)): a rewrite makes it stable",
    "long": "T.cast(x, 'int64')",
    "manual_seed": "RandomStreams(seed)",
    "masked_select": "x[mask.nonzero()]",
    "matrix_norm": "T.nlinalg.norm(x, ord)",
    "matrix_rank": "T.sum(T.nlinalg.svd(x, compute_uv=False) > tolerance)",
    "matrix_transpose": "x.T",
    "max_pool2d": "theano.tensor.signal.pool.pool_2d(x, ws)",
    "median": "T.sort(x)[x.shape[0] // 2]",
    "meshgrid": "T.mgrid, or x[:, None] and y[None, :]",
    "mish": "x * T.tanh(T.nnet.softplus(x))",
    "mm": "T.dot(x, y)",
    "moveaxis": "x.dimshuffle(...)",
    "movedim": "x.dimshuffle(...)",
    "mse_loss": "T.mean((x - y) ** 2)",
    "multi_dot": "T.nlinalg.matrix_dot(x, y, z)",
    "multiply": "x * y",
    "mv": "T.dot(x, y)",
    "nan": "float('nan')",
    "nan_to_num": "T.switch(T.isnan(x), 0, x)",
    "nanmax": "T.max(T.switch(T.isnan(x), -numpy.inf, x))",
    "nanmean": "T.mean(x[T.invert(T.isnan(x)).nonzero()])",
    "nanmin": "T.min(T.switch(T.isnan(x), numpy.inf, x))",
    "nansum": "T.sum(T.switch(T.isnan(x), 0, x))",
    "ndim": "x.ndim",
    "ne": "T.neq(x, y)",
    "negative": "-x",
    "newaxis": "None, as in x[:, None]",
    "nll_loss": "T.nnet.categorical_crossentropy(p, labels)",
    "no_grad": "theano.gradient.disconnected_grad(x)",
    "not_equal": "T.neq(x, y)",
    "one_hot": "theano.tensor.extra_ops.to_one_hot(labels, n)",
    "pad": "T.set_subtensor(T.zeros(shape)[n:-n], x)",
    "percentile": "T.sort(x)[index]",
    "permute": "x.dimshuffle(...)",
    "pi": "numpy.pi",
    "pinverse": "T.nlinalg.pinv(x)",
    "placeholder": "T.matrix('x'), T.vector('x') or T.scalar('x')",
    "prelu": "T.nnet.relu(x, alpha)",
    "PRNGKey": "RandomStreams(seed)",
    "quantile": "T.sort(x)[index]",
    "radians": "T.deg2rad(x)",
    "rand": "RandomStreams(seed).uniform(shape)",
    "randint": "RandomStreams(seed).random_integers(shape, low, high - 1)",
    "randn": "RandomStreams(seed).normal(shape)",
    "random_sample": "RandomStreams(seed).uniform(shape)",
    "randperm": "RandomStreams(seed).permutation((), n)",
    "ravel": "T.flatten(x)",
    "reciprocal": "1 / x",
    "ReLU": "T.nnet.relu(x)",
    "relu6": "T.clip(x, 0, 6)",
    "remainder": "x % y",
    "rint": "T.round(x)",
    "rot90": "x.T[::-1]",
    "row_stack": "T.concatenate([x, y], axis=0)",
    "rrelu": "T.nnet.relu(x, alpha)",
    "rsqrt": "1 / T.sqrt(x)",
    "scatter": "T.set_subtensor(x[indices], y)",
    "select": "T.switch(condition, x, y)",
    "sign": "T.sgn(x)",
    "signbit": "x < 0",
    "silu": "x * T.nnet.sigmoid(x)",
    "sinc": "T.sin(numpy.pi * x) / (numpy.pi * x)",
    "size": "x.size",
    "slogdet": "T.log(abs(T.nlinalg.det(x)))",
    "softmin": "T.nnet.softmax(-x)",
    "solve_triangular": "T.slinalg.solve_lower_triangular(x, y), or solve_upper_triangular",
    "split_with_sizes": "T.split(x, sizes, n, axis)",
    "standard_normal": "RandomStreams(seed).normal(shape)",
    "stop_gradient": "theano.gradient.disconnected_grad(x)",
    "subtract": "x - y",
    "svdvals": "T.nlinalg.svd(x, compute_uv=False)",
    "swish": "x * T.nnet.sigmoid(x)",
    "take_along_axis": "x[T.arange(n), indices]",
    "truncated_normal": "MRG_RandomStreams(seed).truncated_normal(shape)",
    "uint8": "T.cast(x, 'uint8')",
    "unique": "theano.tensor.extra_ops.Unique()(x)",
    "unsqueeze": "T.shape_padaxis(x, axis)",
    "unstack": "[x[i] for i in range(n)]",
    "value_and_grad": "theano.function(inputs, [cost, theano.grad(cost, wrt)])",
    "vdot": "T.dot(x.flatten(), y.flatten())",
    "vecdot": "T.sum(x * y, axis=-1)",
    "vector_norm": "T.nlinalg.norm(x, ord)",
    "view": "x.reshape(shape)",
    "vjp": "theano.Lop(y, x, v)",
    "vmap": "theano.map, or operations on whole arrays",
    "vsplit": "T.split(x, sizes, n, axis=0)",
    "vstack": "T.concatenate([x, y], axis=0)",
    "while_loop": "theano.scan with theano.scan_module.until",
    "xlogy": "T.xlogx.xlogy0(x, y)",
    "linalg.lstsq": "T.nlinalg.lstsq()(x, y, rcond)",
    "linalg.cond": "s[0] / s[-1] with s = T.nlinalg.svd(x, compute_uv=False)",
    "random.random": "RandomStreams(seed).uniform(shape)",
    "random.split": "RandomStreams(seed), whose variables have states of their own",
}

#: attributes of arrays of other libraries, and what to write instead
_METHODS = {
    "add_": "x + y: variables are not changed in place",
    "backward": "theano.grad(x, wrt)",
    "copy_": "w.set_value(value) of a shared variable",
    "cpu": "nothing: results of functions are arrays of numpy",
    "cuda": "nothing: the flag device=cuda moves the work of functions",
    "data": "w.get_value() of a shared variable, or x.eval({inputs: values})",
    "detach": "theano.gradient.disconnected_grad(x)",
    "double": "x.astype('float64')",
    "expand": "T.alloc(x, *shape); operators broadcast by themselves",
    "float": "x.astype('float32')",
    "gather": "x[T.arange(n), indices]",
    "grad": "theano.grad(cost, x)",
    "int": "x.astype('int32')",
    "item": "x.eval({inputs: values}), or a function: the value is known only then",
    "itemsize": "numpy.dtype(x.dtype).itemsize",
    "long": "x.astype('int64')",
    "matmul": "T.matmul(x, y), or x @ y",
    "mm": "T.dot(x, y)",
    "nbytes": "x.size * numpy.dtype(x.dtype).itemsize",
    "numpy": "x.eval({inputs: values}), or a function: the value is known only then",
    "permute": "x.dimshuffle(...)",
    "requires_grad": "nothing: theano.grad(cost, wrt) says of what there are gradients",
    "requires_grad_": "nothing: theano.grad(cost, wrt) says of what there are gradients",
    "sigmoid": "T.nnet.sigmoid(x)",
    "softmax": "T.nnet.softmax(x)",
    "relu": "T.nnet.relu(x)",
    "abs": "abs(x)",
    "pow": "x ** y",
    "to": "x.astype(dtype)",
    "tolist": "x.eval({inputs: values}).tolist()",
    "unsqueeze": "T.shape_padaxis(x, axis)",
    "view": "x.reshape(shape)",
    "zero_": "w.set_value(...) of a shared variable",
    "zero_grad": "nothing: theano.grad computes gradients anew",
    "append": "T.concatenate([x, y])",
}


#: names of PyTorch and JAX without a counterpart, which are no misspellings of other names
_OTHERS = frozenset(
    """
    autograd BatchNorm2d cdist checkpoint Conv1d cummax cummin device_put dist
    Dropout Embedding enable_grad fold from_numpy frac func GRU grid_sample group_norm hard_silu
    huber_loss layer_norm lerp LSTM mode narrow normalize optim pmap renorm
    Sequential softshrink Tensor unbind unfold
    """.split()
)


def hint(name: str, module: str, *known: Iterable[str]) -> str:
    """Return a sentence on a name that a module lacks, with a space before it, or ''.

    module: ``opwise`` or ``theano`` and what follows; known: lists of the names that it has,
    in which misspelled ones are sought one after the other.
    """
    if name.startswith("_"):  # pytest and pickle ask modules for such names
        return ""
    package, _, here = module.partition(".")
    special = _FUNCTIONS.get(f"{here.rpartition('.')[2]}.{name}")
    if special is not None:
        return f" Write {_in_package(special, package, here)}."
    for part in _TODAY if package == "opwise" else ():
        if part != here and name in public(importlib.import_module(f"opwise.{part}")):
            return f" {name} is opwise.{part}.{name}."
    for part in _MODULES:
        found = sys.modules.get(f"opwise.{part}".rstrip("."))
        if part != here and name in public(found):
            return f" {name} is {package}.{part + '.' if part else ''}{name}."
    if name in _HOMES and here != _HOMES[name]:
        return f" {name} is {'.'.join(filter(None, (package, _HOMES[name], name)))}."
    if name in _FUNCTIONS:
        return f" Write {_in_package(_FUNCTIONS[name], package, here)}."
    if name in _OTHERS or _is_of_numpy(name):
        return ""
    return next(filter(None, (likely_typo(name, names) for names in known)), "")


def _in_package(text: str, package: str, here: str = "tensor") -> str:
    """Return a text of the tables with the name of a package; it says what T is, but in tensor."""
    text = re.sub(r"\btheano\b", package, text)
    if package == "opwise":
        text = re.sub(r"(?<![.\w])(MRG_)?RandomStreams\b", r"opwise.random.\1RandomStreams", text)
    explained = re.search(r"\bT\.", text) and here != "tensor"
    return f"{text}, where T is {package}.tensor" if explained else text


def _is_of_numpy(name: str) -> bool:
    return any(name in dir(module) for module in (np, np.linalg, np.random, np.fft, np.ndarray))


def public(module: ModuleType | None) -> Iterable[str]:
    """Return the names that a module offers, without those that only Theano's had."""
    if module is None:
        return ()
    own = vars(module)
    for exported in ("__exported__", "__all__"):
        if exported in own:
            names: Iterable[str] = own[exported]
            return names
    return [n for n, v in own.items() if not (n.startswith("_") or isinstance(v, ModuleType))]


def no_attribute(module: ModuleType, name: str) -> AttributeError:
    """Return the error of a name that a module of opwise lacks, saying where such a name is."""
    text = f"module {module.__name__!r} has no attribute {name!r}"
    if name.startswith("_"):
        return AttributeError(text, name=name, obj=module)
    more = hint(name, module.__name__, public(module))
    text += f".{more}" if more else ""
    # without the module, of whose names Python would propose those that are spelled alike
    return AttributeError(text, name=name, obj=None)


def numpy_hint(name: str) -> str:
    """Return a sentence on what to write instead of a function of numpy, with a space, or ''.

    name: with its module.
    """
    module, _, function = name.rpartition(".")
    if name == "numpy.linalg.inv":  # T.inv is 1 / x
        function = "matrix_inverse"
    elif name == "numpy.gradient":  # opwise.gradient is about derivatives
        return " Write (x[2:] - x[:-2]) / 2."
    elif module == "numpy" and function in public(sys.modules["opwise.tensor"]):
        return f" Write T.{function}."
    return hint(function, f"{_imported()}.tensor") if module.startswith("numpy") else ""


def method_hint(name: str) -> str:
    """Return a sentence on an attribute of another library's arrays, with a space, or ''."""
    return f" Write {_in_package(_METHODS[name], _imported())}." if name in _METHODS else ""


def _imported() -> str:
    """Return the package whose names a program uses."""
    return "theano" if "theano" in sys.modules else "opwise"
