"""Result dtypes: operators over all pairs of dtypes, Python numbers, reductions, constructors.

Nothing is compiled here; values are in the other modules.
"""

from functools import partial

import numpy

from .compiling import tensor
from .encoding import attempt_each
from .register import add_program, program

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
FLOATX = ("float64", "float32")

BINARY = {
    "add": lambda T, x, y: x + y,
    "sub": lambda T, x, y: x - y,
    "mul": lambda T, x, y: x * y,
    "true_div": lambda T, x, y: T.true_div(x, y),
    "operator_div": lambda T, x, y: x / y,
    "int_div": lambda T, x, y: x // y,
    "mod": lambda T, x, y: x % y,
    "pow": lambda T, x, y: x**y,
    "maximum": lambda T, x, y: T.maximum(x, y),
    "minimum": lambda T, x, y: T.minimum(x, y),
    "eq": lambda T, x, y: T.eq(x, y),
    "lt": lambda T, x, y: x < y,
    "ge": lambda T, x, y: x >= y,
    "and": lambda T, x, y: T.and_(x, y),
    "xor": lambda T, x, y: T.xor(x, y),
    "arctan2": lambda T, x, y: T.arctan2(x, y),
    "switch": lambda T, x, y: T.switch(T.gt(T.dvector(), 0), x, y),
    "switch_condition": lambda T, x, y: T.switch(x, y, y),
    "where": lambda T, x, y: T.where(T.gt(T.dvector(), 0), x, y),
    "fill": lambda T, x, y: T.fill(x, y),
    "clip_bounds": lambda T, x, y: T.clip(x, y, y),
    "dot": lambda T, x, y: T.dot(x, y),
    "outer": lambda T, x, y: T.outer(x, y),
    "concatenate": lambda T, x, y: T.concatenate([x, y]),
    "stack": lambda T, x, y: T.stack([x, y]),
    "set_subtensor": lambda T, x, y: T.set_subtensor(x[1:], y),
    "inc_subtensor": lambda T, x, y: T.inc_subtensor(x[1:], y),
    "advanced_index": lambda T, x, y: x[y],
    "scalar_upcast": None,
}

# Integers at the borders of the dtypes, floats that float32 holds exactly or not.
PYTHON_NUMBERS = (
    0,
    1,
    -1,
    127,
    128,
    -129,
    200,
    255,
    256,
    32767,
    32768,
    70000,
    2**31,
    2**40,
    2**63,
    0.0,
    1.0,
    1.5,
    1.1,
    1e-50,
    1e40,
    16777217.0,
    float("inf"),
    float("nan"),
    1j,
    True,
)
NUMPY_NUMBERS = {
    "np.int8(1)": numpy.int8(1),
    "np.uint8(1)": numpy.uint8(1),
    "np.int32(1)": numpy.int32(1),
    "np.int64(1)": numpy.int64(1),
    "np.uint64(1)": numpy.uint64(1),
    "np.float16(1.5)": numpy.float16(1.5),
    "np.float32(1.5)": numpy.float32(1.5),
    "np.float64(1.5)": numpy.float64(1.5),
    "np.float64(1.1)": numpy.float64(1.1),
    "np.complex64(1)": numpy.complex64(1),
    "np.bool_(True)": numpy.bool_(True),
}

UNARY = (
    "abs_ neg sgn sqr sqrt inv exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos "
    "arctan sinh cosh tanh arcsinh arccosh arctanh floor ceil trunc round iround erf erfc erfinv "
    "gamma gammaln psi isnan isinf invert real imag conj angle deg2rad rad2deg zeros_like "
    "ones_like cumsum cumprod sort argsort shape flatten transpose nonzero_values diag "
    "bincount"
).split()
NNET = "sigmoid softplus hard_sigmoid ultra_fast_sigmoid relu elu selu softsign softmax".split()
REDUCTIONS = "sum prod mean max min argmax argmin any all var std ptp".split()


def _text_or_error(function, *args):
    try:
        return str(function(*args))
    except Exception as error:  # the class of whatever is raised is recorded
        return "!" + _python_class(error)


def _python_class(error):
    """Return the name of the first of Python's own classes that the exception belongs to."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def _result_dtype(function, *args):
    return _text_or_error(lambda: function(*args).dtype)


def _pairs(operation, theano, T, np):
    def row(first):
        cells = []
        for second in DTYPES:
            if operation is None:
                cells.append(theano.scalar.upcast(first, second))
            else:
                x, y = tensor(T, first, 1), tensor(T, second, 1)
                cells.append(_result_dtype(operation, T, x, y))
        return " ".join(cells)

    return {first: row(first) for first in DTYPES}


def _with_numbers(operation, reflected, numbers, theano, T, np):
    def cell(dtype, number):
        x = tensor(T, dtype, 1)
        if reflected:
            return _result_dtype(operation, T, number, x)
        return _result_dtype(operation, T, x, number)

    def row(dtype):
        return " ".join(cell(dtype, number) for number in numbers)

    return {dtype: row(dtype) for dtype in DTYPES}


def _row(dtype_for, T, dtypes=DTYPES):
    return " ".join(_text_or_error(dtype_for, T, tensor(T, dtype, 1)) for dtype in dtypes)


def _unary(apply_to, theano, T, np, dtypes=DTYPES):
    return _row(lambda T, x: apply_to(T, x).dtype, T, dtypes)


def _accumulator(name, T, x):
    return getattr(x, name)().owner.op.acc_dtype


def _apply_named(name, T, x):
    return getattr(T, name)(x)


def _apply_nnet(name, T, x):
    return getattr(T.nnet, name)(x)


def _register_tables(floatx):
    for name, operation in BINARY.items():
        if floatx == "float32" and name in ("eq", "lt", "ge", "advanced_index"):
            continue
        add_program(f"dtypes.pairs.{name}.{floatx}", partial(_pairs, operation), floatx)
    for name in ("add", "mul", "true_div", "int_div", "pow", "maximum", "switch", "concatenate"):
        # Whether complex numbers have a // of their own depends on the version of Python.
        numbers = [n for n in PYTHON_NUMBERS if name != "int_div" or n != 1j]
        for reflected in (False, True):
            side = "number_first" if reflected else "number_second"
            add_program(
                f"dtypes.python_numbers.{name}.{side}.{floatx}",
                partial(_with_numbers, BINARY[name], reflected, numbers),
                floatx,
            )
    for name in ("add", "mul", "pow"):
        add_program(
            f"dtypes.numpy_numbers.{name}.{floatx}",
            partial(_with_numbers, BINARY[name], False, NUMPY_NUMBERS.values()),
            floatx,
        )


for _floatx in FLOATX:
    _register_tables(_floatx)


def _unary_table(theano, T, np):
    rows = {name: _unary(partial(_apply_named, name), theano, T, np) for name in UNARY}
    for name in NNET:
        rows["nnet." + name] = _unary(partial(_apply_nnet, name), theano, T, np)
    return rows


def _reduction_table(theano, T, np):
    rows = {name: _unary(partial(_apply_named, name), theano, T, np) for name in REDUCTIONS}
    rows["norm(2)"] = _unary(lambda T, x: x.norm(2), theano, T, np)
    rows["sum of a mean"] = _unary(lambda T, x: T.mean(x) + T.sum(x), theano, T, np)
    for name in ("sum", "prod"):
        rows[name + " accumulator"] = _row(partial(_accumulator, name), T)
    for target in ("int8", "int32", "uint64", "float16", "float32", "float64", "complex128"):
        for name in ("sum", "prod", "mean"):
            rows[f"{name}(dtype={target})"] = _unary(
                partial(_reduce_to, name, target), theano, T, np
            )
    return rows


def _reduce_to(name, target, T, x):
    return getattr(T, name)(x, dtype=target)


def _gradient_dtypes(theano, T, np):
    def row(cost):
        reals = [dtype for dtype in DTYPES if not dtype.startswith("complex")]
        return _unary(lambda T, x: T.grad(cost(x), x), theano, T, np, reals)

    return {
        "of x**2": row(lambda x: (x**2).sum()),
        "of 1.5*x": row(lambda x: (1.5 * x).sum()),
        "of mean": row(lambda x: x.mean()),
    }


def _cast_table(theano, T, np):
    def row(source):
        return " ".join(
            _result_dtype(lambda target: T.cast(tensor(T, source, 1), target), target)
            for target in DTYPES
        )

    rows = {source: row(source) for source in DTYPES}
    rows["to floatX"] = _unary(lambda T, x: T.cast(x, "floatX"), theano, T, np)
    rows["astype floatX"] = _unary(lambda T, x: x.astype(theano.config.floatX), theano, T, np)
    return rows


def _conversions(theano, T, np):
    """Dtype and type of what becomes a constant or a shared variable."""
    values = {repr(number): number for number in PYTHON_NUMBERS}
    values.update(NUMPY_NUMBERS)
    values.update(
        {
            "[]": [],
            "[1, 2]": [1, 2],
            "[1, 2.5]": [1, 2.5],
            "[[1.0], [2.0]]": [[1.0], [2.0]],
            "[True]": [True],
            "(1, 2)": (1, 2),
            "array int8 (1, 3)": np.ones((1, 3), "int8"),
            "array float32 (2, 1)": np.ones((2, 1), "float32"),
            "array bool ()": np.array(True),
            "None": None,
            "text": "abc",
            "-200": -200,
        }
    )
    cases = {}
    for label, value in values.items():
        cases["as_tensor_variable " + label] = partial(
            lambda v: str(T.as_tensor_variable(v).type), value
        )
        cases["constant " + label] = partial(lambda v: str(T.constant(v).type), value)
        cases["shared " + label] = partial(lambda v: str(theano.shared(v).type), value)
    return attempt_each(cases)


def _constructors(theano, T, np):
    kinds = "scalar vector row col matrix tensor3 tensor4 tensor5".split()
    cases = {}
    for prefix in ("", "b", "w", "i", "l", "f", "d", "c", "z"):
        for kind in kinds:
            if hasattr(T, prefix + kind):
                cases[prefix + kind] = partial(lambda n: str(getattr(T, n)().type), prefix + kind)
    for kind in kinds:
        cases[kind + "(dtype=int16)"] = partial(
            lambda n: str(getattr(T, n)(dtype="int16").type), kind
        )
    cases["tensor"] = lambda: str(T.tensor("float32", (True, False)).type)
    cases["matrices"] = lambda: [str(v.type) for v in T.matrices("a", "b")]
    cases["dmatrices(2)"] = lambda: [str(v.type) for v in T.dmatrices(2)]
    cases["TensorType floatX"] = lambda: str(T.TensorType("floatX", (False,)))
    cases["unknown dtype"] = lambda: T.TensorType("foo", ())
    cases["vector name"] = lambda: T.vector("nm").name
    cases["scalars names"] = lambda: [v.name for v in T.scalars("p", "q")]
    cases["broadcastable ints"] = lambda: str(T.TensorType("int8", (1, 0)))
    return attempt_each(cases)


def _creation(theano, T, np):
    """Dtypes of arrays made from nothing."""
    cases = {
        "zeros": lambda: T.zeros((2,)).dtype,
        "ones": lambda: T.ones((2,)).dtype,
        "zeros int8": lambda: T.zeros((2,), "int8").dtype,
        "ones 3": lambda: T.ones(3).dtype,
        "alloc 0": lambda: T.alloc(0, 2).dtype,
        "alloc 0.": lambda: T.alloc(0.0, 2).dtype,
        "alloc 1.1": lambda: T.alloc(1.1, 2).dtype,
        "eye": lambda: T.eye(3).dtype,
        "eye int32": lambda: T.eye(3, dtype="int32").dtype,
        "tri": lambda: T.tri(3).dtype,
        "tril": lambda: T.tril(T.imatrix()).dtype,
        "triu": lambda: T.triu(T.fmatrix()).dtype,
        "arange 3": lambda: T.arange(3).dtype,
        "arange 3.": lambda: T.arange(3.0).dtype,
        "arange 0 3 1.1": lambda: T.arange(0, 3, 1.1).dtype,
        "arange 200": lambda: T.arange(200).dtype,
        "arange dtype": lambda: T.arange(3, dtype="float32").dtype,
        "arange bscalar": lambda: T.arange(T.bscalar()).dtype,
        "arange iscalar": lambda: T.arange(T.iscalar()).dtype,
        "arange lscalar": lambda: T.arange(T.lscalar()).dtype,
        "arange fscalar": lambda: T.arange(T.fscalar()).dtype,
        "arange dscalar": lambda: T.arange(T.dscalar()).dtype,
        "arange iscalar fscalar": lambda: T.arange(T.iscalar(), T.fscalar()).dtype,
        "shape": lambda: T.fmatrix().shape.dtype,
        "shape[0]": lambda: T.fmatrix().shape[0].dtype,
        "size": lambda: T.fmatrix().size.dtype,
        "nonzero": lambda: T.fmatrix().nonzero()[0].dtype,
        "argsort": lambda: T.argsort(T.fvector()).dtype,
        "to_one_hot": lambda: T.extra_ops.to_one_hot(T.ivector(), 3).dtype,
        "searchsorted": lambda: T.extra_ops.searchsorted(T.dvector(), T.dvector()).dtype,
        "confusion_matrix": lambda: T.nnet.confusion_matrix(T.ivector(), T.ivector())[0].dtype,
        "switch 1 0": lambda: T.switch(T.gt(T.dvector(), 0), 1, 0).dtype,
        "switch 1. 0": lambda: T.switch(T.gt(T.dvector(), 0), 1.0, 0).dtype,
        "switch 200 0": lambda: T.switch(T.gt(T.dvector(), 0), 200, 0).dtype,
        "maximum int32 1.5": lambda: T.maximum(T.ivector(), 1.5).dtype,
        "clip int32 0. 1.": lambda: T.clip(T.ivector(), 0.0, 1.0).dtype,
        "clip int8 0 1": lambda: T.clip(T.bvector(), 0, 1).dtype,
        "clip float32 0 1": lambda: T.clip(T.fvector(), 0, 1).dtype,
        "dot int8": lambda: T.dot(T.bmatrix(), T.bmatrix()).dtype,
        "batched_dot": lambda: T.batched_dot(T.ftensor3(), T.dtensor3()).dtype,
        "tensordot": lambda: T.tensordot(T.fmatrix(), T.dmatrix(), axes=1).dtype,
        "categorical_crossentropy": lambda: (
            T.nnet.categorical_crossentropy(T.fmatrix(), T.ivector()).dtype
        ),
        "binary_crossentropy": lambda: T.nnet.binary_crossentropy(T.fvector(), T.bvector()).dtype,
        "np ones * fvector": lambda: (np.ones(2) * T.fvector()).dtype,
        "np float64 * fvector": lambda: (np.float64(1.5) * T.fvector()).dtype,
        "np float32 * fvector": lambda: (np.float32(1.5) * T.fvector()).dtype,
        "fvector * np float64": lambda: (T.fvector() * np.float64(1.5)).dtype,
        "fvector / 2": lambda: (T.fvector() / 2).dtype,
        "1 / fvector": lambda: (1 / T.fvector()).dtype,
        "1. / ivector": lambda: (1.0 / T.ivector()).dtype,
        "fvector ** 2": lambda: (T.fvector() ** 2).dtype,
        "fvector ** 0.5": lambda: (T.fvector() ** 0.5).dtype,
        "2 ** fvector": lambda: (2 ** T.fvector()).dtype,
        "mean of bool": lambda: T.mean(T.gt(T.fvector(), 0)).dtype,
        "mean of eq": lambda: T.mean(T.eq(T.ivector(), T.ivector())).dtype,
        "sum of neq": lambda: T.sum(T.neq(T.ivector(), T.ivector())).dtype,
        "fvector mean * 0.1": lambda: (T.fvector().mean() * 0.1).dtype,
        "ivector.shape[0] * 1.0": lambda: (T.ivector().shape[0] * 1.0).dtype,
        "fvector / shape[0]": lambda: (T.fvector() / T.ivector().shape[0]).dtype,
        "cast of python number": lambda: T.cast(1.5, "int32").dtype,
        "isnan": lambda: T.isnan(T.fvector()).dtype,
        "any": lambda: T.any(T.fvector()).dtype,
        "invert of comparison": lambda: (~T.gt(T.fvector(), 0)).dtype,
        "stack of numbers": lambda: T.stack([1, 2.5]).dtype,
        "stacklists": lambda: T.stacklists([[1, 2], [3, 4]]).dtype,
        "as_tensor_variable of mixed list": lambda: (
            T.as_tensor_variable([T.iscalar(), T.fscalar()]).dtype
        ),
    }
    return attempt_each(cases)


for _floatx in FLOATX:
    add_program(f"dtypes.unary.{_floatx}", _unary_table, _floatx)
    add_program(f"dtypes.reductions.{_floatx}", _reduction_table, _floatx)
    add_program(f"dtypes.gradients.{_floatx}", _gradient_dtypes, _floatx)
    add_program(f"dtypes.casts.{_floatx}", _cast_table, _floatx)
    add_program(f"dtypes.conversions.{_floatx}", _conversions, _floatx)
    add_program(f"dtypes.constructors.{_floatx}", _constructors, _floatx)
    add_program(f"dtypes.creation.{_floatx}", _creation, _floatx)


@program("dtypes.cast_policy")
def cast_policy(theano, T, np):
    """The other cast policy that can be chosen."""
    with theano.change_flags(cast_policy="numpy+floatX"):
        table = _with_numbers(BINARY["add"], False, (1, 300, 2**40, 1.5, 1.1), theano, T, np)
        constants = attempt_each(
            {
                "1": lambda: T.constant(1).dtype,
                "300": lambda: T.constant(300).dtype,
                "1.1": lambda: T.constant(1.1).dtype,
            }
        )
    return {"table": table, "constants": constants}


def _under_the_other_policy(function, theano, T, np):
    """Return the entries of a table that are others under the cast policy numpy+floatX."""
    with theano.change_flags(cast_policy="custom"):
        custom = function(theano, T, np)
    with theano.change_flags(cast_policy="numpy+floatX"):
        other = function(theano, T, np)
    if sorted(custom) != sorted(other):
        raise AssertionError("tables with other entries")
    return {label: entry for label, entry in other.items() if entry != custom[label]}


def _three_operands(theano, T, np):
    """Dtypes of what takes three operands at once, in every order that gives another dtype."""
    kinds = ("int8", "int64", "uint16", "uint64", "float16", "float32", "float64")
    operations = {
        "add": T.add,
        "mul": T.mul,
        "stack": lambda *xs: T.stack(xs),
        "join": lambda *xs: T.join(0, *xs),
        "clip": T.clip,
    }

    def cell(apply_to, names):
        return _result_dtype(apply_to, *(tensor(T, name, 1) for name in names))

    return {
        f"{label} {first} {second}": " ".join(
            cell(apply_to, (first, second, third)) for third in kinds
        )
        for label, apply_to in operations.items()
        for first in kinds
        for second in kinds
    }


def _products(theano, T, np):
    """Dtypes of products, convolutions and other Ops of several operands, row by first dtype."""
    operations = {
        "matrices": lambda x, y: T.dot(tensor(T, x, 2), tensor(T, y, 2)),
        "batches": lambda x, y: T.batched_dot(tensor(T, x, 3), tensor(T, y, 3)),
        "tensordot": lambda x, y: T.tensordot(tensor(T, x, 3), tensor(T, y, 2), axes=1),
        "softmax with bias": lambda x, y: T.nnet.softmax(tensor(T, x, 2) + tensor(T, y, 1)),
        "binary crossentropy": lambda x, y: T.nnet.binary_crossentropy(
            tensor(T, x, 1), tensor(T, y, 1)
        ),
        "mean over shape": lambda x, y: tensor(T, x, 1).sum() / tensor(T, y, 1).shape[0],
        "arange": lambda x, y: T.arange(tensor(T, x, 0), tensor(T, y, 0)),
        "alloc": lambda x, y: T.alloc(tensor(T, x, 0), 3) + tensor(T, y, 1),
        "sum of a product": lambda x, y: (tensor(T, x, 1) * tensor(T, y, 1)).sum(),
    }
    return {
        f"{label} {first}": " ".join(_result_dtype(apply_to, first, second) for second in DTYPES)
        for label, apply_to in operations.items()
        for first in DTYPES
    }


def _register_policy(floatx):
    tables = {
        "unary": _unary_table,
        "reductions": _reduction_table,
        "gradients": _gradient_dtypes,
        "conversions": _conversions,
        "creation": _creation,
        "three_operands": _three_operands,
        "products": _products,
    }
    for name, operation in BINARY.items():
        tables["pairs." + name] = partial(_pairs, operation)
    for name in ("add", "mul", "true_div", "int_div", "pow", "maximum", "switch", "concatenate"):
        numbers = [n for n in PYTHON_NUMBERS if name != "int_div" or n != 1j]
        for reflected in (False, True):
            side = "number_first" if reflected else "number_second"
            tables[f"python_numbers.{name}.{side}"] = partial(
                _with_numbers, BINARY[name], reflected, numbers
            )
    for name in ("add", "mul", "pow"):
        tables["numpy_numbers." + name] = partial(
            _with_numbers, BINARY[name], False, NUMPY_NUMBERS.values()
        )
    for name, table in tables.items():
        add_program(
            f"dtypes.cast_policy.{name}.{floatx}", partial(_under_the_other_policy, table), floatx
        )


for _floatx in (*FLOATX, "float16"):
    _register_policy(_floatx)
# what does not depend on the policy
for _name, _table in (("three_operands", _three_operands), ("products", _products)):
    add_program(f"dtypes.{_name}", _table)


@program("dtypes.autocast_float_as")
def autocast_float_as(theano, T, np):
    """Python floats inside the context that names their dtype."""
    autocast = theano.scalar.basic.autocast_float_as
    with autocast("float32"):
        inside = [(T.fvector() + 1.1).dtype, (T.dvector() + 1.1).dtype, T.constant(1.1).dtype]
    return {"inside": inside, "after": (T.fvector() + 1.1).dtype}
