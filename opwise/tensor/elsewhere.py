"""Where the names are that programs look for in the wrong place, or know from other libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

from opwise.errors import likely_typo

#: modules whose names programs may look for in others, in opwise and in theano; those that are not
#: loaded are left out
_MODULES = ("tensor", "tensor.nnet", "", "gradient")

#: names of Theano's that are in modules which programs import by themselves: the modules
_HOMES = {
    **dict.fromkeys(
        "conv2d conv2d_transpose conv3d abstract_conv neighbours".split(), "theano.tensor.nnet"
    ),
    **dict.fromkeys(("pool_2d", "pool_3d", "Pool"), "theano.tensor.signal.pool"),
    **dict.fromkeys(("scan", "map", "reduce", "foldl", "foldr"), "theano"),
    **dict.fromkeys(("until",), "theano.scan_module"),
    **dict.fromkeys(("RandomStreams",), "theano.tensor.shared_randomstreams"),
    **dict.fromkeys(("MRG_RandomStreams",), "theano.sandbox.rng_mrg"),
    **dict.fromkeys("solve cholesky expm eigvalsh".split(), "theano.tensor.slinalg"),
    **dict.fromkeys(
        "det svd eig eigh qr pinv norm lstsq matrix_inverse matrix_power trace".split(),
        "theano.tensor.nlinalg",
    ),
    **dict.fromkeys(("kron",), "theano.tensor.slinalg"),
    **dict.fromkeys("searchsorted to_one_hot diff Unique".split(), "theano.tensor.extra_ops"),
    **dict.fromkeys(("ifelse", "IfElse"), "theano.ifelse"),
    **dict.fromkeys(("ProfileMode", "Mode", "Out", "In", "function", "shared"), "theano"),
    **dict.fromkeys(("jacobian", "hessian"), "theano.gradient"),
    **dict.fromkeys(("rfft", "irfft"), "theano.tensor.fft"),
}

#: functions of numpy, PyTorch, JAX and TensorFlow, and what to write; T is theano.tensor
_FUNCTIONS = {
    "absolute": "abs(x)",
    "fabs": "abs(x)",
    "amax": "T.max(x, axis)",
    "amin": "T.min(x, axis)",
    "array": "T.as_tensor_variable(value), or T.constant(value)",
    "array_equal": "T.all(T.eq(x, y))",
    "asarray": "T.as_tensor_variable(value)",
    "asin": "T.arcsin(x)",
    "acos": "T.arccos(x)",
    "atan": "T.arctan(x)",
    "atan2": "T.arctan2(y, x)",
    "astype": "x.astype(dtype), or T.cast(x, dtype)",
    "atleast_1d": "T.shape_padleft(x)",
    "atleast_2d": "T.shape_padleft(x)",
    "average": "T.mean(x, axis), or T.sum(weights * x) / T.sum(weights)",
    "avg_pool2d": "theano.tensor.signal.pool.pool_2d(x, ws, mode='average_exc_pad')",
    "batch_norm": "T.nnet.bn.batch_normalization_train(x, gamma, beta)",
    "bmm": "T.batched_dot(x, y)",
    "broadcast_arrays": "x + T.zeros_like(y): operators broadcast by themselves",
    "broadcast_to": "T.alloc(x, *shape)",
    "cat": "T.concatenate([x, y], axis)",
    "cbrt": "T.sgn(x) * abs(x) ** (1 / 3)",
    "chunk": "T.split(x, sizes, n, axis)",
    "clamp": "T.clip(x, low, high)",
    "column_stack": "T.stack([x, y], axis=1), or T.concatenate([x, y], axis=1)",
    "concat": "T.concatenate([x, y], axis)",
    "cond": "theano.ifelse.ifelse(condition, x, y), or T.switch for elements",
    "conv1d": "theano.tensor.nnet.conv2d with images of height 1",
    "convolve": "theano.tensor.nnet.conv2d, or theano.tensor.signal.conv.conv2d",
    "count_nonzero": "T.sum(T.neq(x, 0))",
    "cross_entropy": "T.nnet.categorical_crossentropy(T.nnet.softmax(x), labels)",
    "detach": "theano.gradient.disconnected_grad(x)",
    "digamma": "T.psi(x)",
    "divide": "x / y",
    "dropout": "x * RandomStreams(seed).binomial(x.shape, p=keep) / keep",
    "dstack": "T.stack([x, y], axis=2)",
    "einsum": "T.dot, T.tensordot(x, y, axes) or T.batched_dot",
    "embedding": "table[indices]",
    "empty": "T.zeros(shape), or T.alloc",
    "empty_like": "T.zeros_like(x)",
    "equal": "T.eq(x, y)",
    "expand_dims": "T.shape_padaxis(x, axis), or x.dimshuffle",
    "flip": "x[::-1]",
    "fliplr": "x[:, ::-1]",
    "flipud": "x[::-1]",
    "float32": "T.cast(x, 'float32')",
    "float64": "T.cast(x, 'float64')",
    "floor_divide": "x // y",
    "fmax": "T.maximum(x, y)",
    "fmin": "T.minimum(x, y)",
    "fori_loop": "theano.scan",
    "full": "T.alloc(value, *shape)",
    "full_like": "T.fill(x, value)",
    "gather": "x[indices], or x[T.arange(n), indices]",
    "gelu": "x * 0.5 * (1 + T.erf(x / T.sqrt(2)))",
    "greater": "T.gt(x, y)",
    "greater_equal": "T.ge(x, y)",
    "hstack": "T.concatenate([x, y], axis=1)",
    "hypot": "T.sqrt(x ** 2 + y ** 2)",
    "index_select": "T.take(x, indices, axis)",
    "isfinite": "T.invert(T.or_(T.isnan(x), T.isinf(x)))",
    "jit": "theano.function(inputs, outputs)",
    "l1_loss": "T.mean(abs(x - y))",
    "leaky_relu": "T.nnet.relu(x, alpha)",
    "less": "T.lt(x, y)",
    "less_equal": "T.le(x, y)",
    "lgamma": "T.gammaln(x)",
    "linspace": "start + T.arange(n) * ((stop - start) / (n - 1.))",
    "log_softmax": "T.nnet.logsoftmax(x)",
    "logical_and": "T.and_(x, y), or x & y",
    "logical_or": "T.or_(x, y), or x | y",
    "logical_xor": "T.xor(x, y), or x ^ y",
    "logsumexp": "T.log(T.sum(T.exp(x), axis)): a rewrite makes it stable",
    "masked_select": "x[mask.nonzero()]",
    "matmul": "T.dot(x, y), or T.batched_dot(x, y) for stacks of matrices",
    "max_pool2d": "theano.tensor.signal.pool.pool_2d(x, ws)",
    "median": "T.sort(x)[x.shape[0] // 2]",
    "meshgrid": "T.mgrid, or x[:, None] and y[None, :]",
    "mm": "T.dot(x, y)",
    "moveaxis": "x.dimshuffle(...)",
    "mse_loss": "T.mean((x - y) ** 2)",
    "multiply": "x * y",
    "mv": "T.dot(x, y)",
    "nan": "float('nan')",
    "nan_to_num": "T.switch(T.isnan(x), 0, x)",
    "nanmean": "T.mean(x[T.invert(T.isnan(x)).nonzero()])",
    "nansum": "T.sum(T.switch(T.isnan(x), 0, x))",
    "ndim": "x.ndim",
    "newaxis": "None, as in x[:, None]",
    "nll_loss": "T.nnet.categorical_crossentropy(p, labels)",
    "inf": "float('inf')",
    "inner": "T.dot(x, y), or T.tensordot",
    "no_grad": "theano.gradient.disconnected_grad(x)",
    "not_equal": "T.neq(x, y)",
    "one_hot": "theano.tensor.extra_ops.to_one_hot(labels, n)",
    "pad": "T.set_subtensor(T.zeros(shape)[n:-n], x)",
    "permute": "x.dimshuffle(...)",
    "pi": "numpy.pi",
    "placeholder": "T.matrix('x'), T.vector('x') or T.scalar('x')",
    "rand": "RandomStreams(seed).uniform(shape)",
    "randn": "RandomStreams(seed).normal(shape)",
    "radians": "T.deg2rad(x)",
    "ravel": "T.flatten(x)",
    "remainder": "x % y",
    "rint": "T.round(x)",
    "rot90": "x.T[::-1]",
    "scatter": "T.set_subtensor(x[indices], y)",
    "sign": "T.sgn(x)",
    "silu": "x * T.nnet.sigmoid(x)",
    "size": "x.size",
    "split_with_sizes": "T.split(x, sizes, n, axis)",
    "stop_gradient": "theano.gradient.disconnected_grad(x)",
    "subtract": "x - y",
    "swish": "x * T.nnet.sigmoid(x)",
    "take_along_axis": "x[T.arange(n), indices]",
    "unique": "theano.tensor.extra_ops.Unique()(x)",
    "unsqueeze": "T.shape_padaxis(x, axis)",
    "vdot": "T.dot(x.flatten(), y.flatten())",
    "view": "x.reshape(shape)",
    "vmap": "theano.map, or operations on whole arrays",
    "vstack": "T.concatenate([x, y], axis=0)",
    "while_loop": "theano.scan with theano.scan_module.until",
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
    "matmul": "T.dot(x, y)",
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


def hint(name: str, module: str, known: Iterable[str]) -> str:
    """Return a sentence on a name that a module lacks, with a space before it, or ''.

    module: ``opwise`` or ``theano`` and what follows; known: the public names that it has.
    """
    package, _, here = module.partition(".")
    for part in _MODULES:
        found = sys.modules.get(f"opwise.{part}".rstrip("."))
        if part != here and name in public(found):
            return f" {name} is {package}.{part + '.' if part else ''}{name}."
    if name in _HOMES and module != _HOMES[name]:
        return f" {name} is {_HOMES[name]}.{name}."
    if name in _FUNCTIONS:
        return f" Write {_FUNCTIONS[name]}."
    return likely_typo(name, known)


def public(module: ModuleType | None) -> Iterable[str]:
    """Return the names that a module offers."""
    if module is None:
        return ()
    names: Iterable[str] | None = getattr(module, "__all__", None)
    if names is not None:
        return names
    own = vars(module).items()
    return [n for n, v in own if not (n.startswith("_") or isinstance(v, ModuleType))]


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
    elif module == "numpy" and function in public(sys.modules["opwise.tensor"]):
        return f" Write T.{function}."
    return hint(function, "theano.tensor", ()) if module.startswith("numpy") else ""


def method_hint(name: str) -> str:
    """Return a sentence on an attribute of another library's arrays, with a space, or ''."""
    return f" Write {_METHODS[name]}." if name in _METHODS else ""
