"""Applys of every kind that has kernels: their texts are compiled, and some are golden files."""

from rowwise_cases import PROGRAMS

import opwise.tensor as T
from opwise import function
from opwise.gpu.kernels.cudatext import ScalarProgram
from opwise.gpu.kernels.kernel import Implementation, Kernel
from opwise.gpu.kernels.loop_rows import copy_rows
from opwise.gpu.kernels.lowerings.indexing import lower_row_scatter
from opwise.gpu.lowering import lower
from opwise.sandbox.rng_mrg import mrg_uniform
from opwise.scalar import Composite, dtypes
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction
from opwise.scalar.spec import ROWS
from opwise.sparse import sd_csr
from opwise.tensor import (
    AdvancedBooleanIncSubtensor,
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    Argmax,
    CAReduce,
    Choose,
    Elemwise,
    MaxAndArgmax,
    Sum,
    TensorType,
)
from opwise.tensor.conv.ops import FAMILIES
from opwise.tensor.conv.pool import MODES
from opwise.tensor.extra_ops import (
    RavelMultiIndex,
    SearchsortedOp,
    cpu_contiguous,
    cumprod,
    cumsum,
)
from opwise.tensor.mapreduce import MapReduce
from opwise.tensor.nnet import (
    crossentropy_categorical_1hot,
    crossentropy_categorical_1hot_grad,
    crossentropy_softmax_1hot_with_bias_dx,
    crossentropy_softmax_argmax_1hot_with_bias,
    logsoftmax_op,
    softmax_grad,
    softmax_op,
    softmax_with_bias,
)
from opwise.tensor.random.multinomial import ChoiceFromUniform, MultinomialFromUniform
from opwise.tensor.reduce import All
from opwise.tensor.rowwise import Rowwise
from opwise.tensor.signal.pool import AveragePoolGrad, MaxPoolGrad, MaxPoolRop, Pool


def tensor(dtype, pattern):
    pattern = (False,) * pattern if isinstance(pattern, int) else pattern
    return TensorType(dtype, pattern)()


def layer():
    """tanh(x + b), as a fused loop."""
    steps = (Instruction(OPS["add"], (0, 1), "float32"), Instruction(OPS["tanh"], (2,), "float32"))
    return Composite.from_program(("float32", "float32"), steps, (3,))


def squares():
    """(x - m)**2, to be summed."""
    steps = (Instruction(OPS["sub"], (0, 1), "float32"), Instruction(OPS["sqr"], (2,), "float32"))
    return Composite.from_program(("float32", "float32"), steps, (3,))


def sum_of(count, dtype="float32"):
    """A sum of so many numbers."""
    steps = (Instruction(OPS["add"], tuple(range(count)), dtype),)
    return Composite.from_program((dtype,) * count, steps, (count,))


def every_row(dtype):
    """Return Composites, of as many inputs as any has, of all rows and casts that have a text."""
    steps, n = [], max(row.nin for row in ROWS.values())
    for name, row in ROWS.items():
        count = 2 if row.nin < 0 else row.nin
        try:
            (out,) = OPS[name].output_dtypes([dtype] * count)
        except TypeError:
            continue
        step = Instruction(OPS[name], tuple(range(count)), out)
        if ScalarProgram((dtype,) * n, (step,), (n,)).missing() is None:
            steps.append(step)
    casts = [Instruction(cast_op(d), (0,), d) for d in dtypes.ALL[:12] if d != dtype]
    steps += casts
    return [
        Composite.from_program(
            (dtype,) * n, steps[k : k + 30], range(n, n + len(steps[k : k + 30]))
        )
        for k in range(0, len(steps), 30)
    ]


def rowwise(name, dtype, ndim=2):
    """Return the results of the fused loop over rows of a program of ``rowwise_cases``."""
    matrices, vectors, build = PROGRAMS[name]
    inputs = [tensor(dtype, ndim) for _ in range(matrices)]
    inputs += [tensor(dtype, 1) for _ in range(vectors)]
    linked = function(inputs, build(*inputs), mode="FAST_RUN").linked
    (fused,) = [node for node in linked.order if isinstance(node.op, Rowwise)]
    given = [tensor(v.type.dtype, v.type.broadcastable) for v in fused.inputs]
    return fused.op(*given, return_list=True)[0]


def convolutions(dtype, ndim=2, **options):
    """Return the variables of a convolution and of its gradients, by kernels and by images.

    The gradients fit operands that all have 4 elements along each axis.
    """
    image, kernel, top = (tensor(dtype, 2 + ndim) for _ in range(3))
    forward, by_kernels, by_images = (cls(**options) for cls in FAMILIES[ndim])
    return (
        forward(image, kernel), by_kernels(image, top, [1] * ndim),
        by_images(kernel, top, [7] * ndim),
    )  # fmt: skip


def cases():
    """Return {name: Apply}."""
    x, y, b = tensor("float32", 2), tensor("float32", 2), tensor("float32", 1)
    row = tensor("float32", (True, False))
    half, double = tensor("float16", 2), tensor("float64", 2)
    labels, index = tensor("int64", 1), tensor("int32", 1)
    made = {
        "layer": Elemwise(layer())(x, row),
        "product": x * y,
        "half": T.exp(half),
        "mixed": T.switch(tensor("bool", 1), tensor("int8", 1), tensor("float64", 1)),
        "cube": tensor("float32", 3) + tensor("float32", (False, True, False)),
        "transposed": x + y.T,
        "contiguous": cpu_contiguous(tensor("int8", 4)),
        "sum of five": Elemwise(sum_of(5, "int8"))(*(tensor("int8", 3) for _ in range(5))),
        "sum": Sum((0, 1))(x),
        "sum of rows": Sum((1,))(x),
        "sum of columns": Sum((0,))(x),
        "sum of halves": Sum((0,))(half),
        "channels": Sum((0, 2, 3))(tensor("float32", 4)),
        "variance": MapReduce(squares(), Sum((1,), "float32", "float64"))(
            x, tensor("float32", (False, True))
        ),
        "maximum": CAReduce(OPS["maximum"], (0,))(double),
        "truth": All((0,))(tensor("bool", 1)),
        "argmax": Argmax((1,))(x),
        "max and argmax": MaxAndArgmax((0,))(half, return_list=True)[0],
        "cumulated": cumsum(x, 1),
        "cumulated halves": cumprod(half, 0),
        "cumulated truth": cumsum(tensor("bool", 3)),
        "layer norm": rowwise("layer norm", "float32"),
        "gradient of a layer norm": rowwise("layer norm's gradient", "float64"),
        "softmax": softmax_op(x),
        "softmax of halves": softmax_op(half),
        "softmax with bias": softmax_with_bias(x, b),
        "log softmax": logsoftmax_op(double),
        "softmax gradient": softmax_grad(x, y),
        "cross entropy": crossentropy_softmax_argmax_1hot_with_bias(x, b, labels)[0],
        "cross entropy gradient": crossentropy_softmax_1hot_with_bias_dx(b, x, labels),
        "one hot": crossentropy_categorical_1hot(x, labels),
        "one hot gradient": crossentropy_categorical_1hot_grad(b, x, labels),
        "take": AdvancedSubtensor1()(x, index),
        "add rows": AdvancedIncSubtensor1()(x, y, index),
        "set rows": AdvancedIncSubtensor1(False, True)(half, half, labels),
        "pick": AdvancedSubtensor()(x, index, labels),
        "pick apart": AdvancedSubtensor()(
            tensor("float32", 4), T.lmatrix(), slice(1, None), None, T.iscalar()
        ),
        "add elements": AdvancedIncSubtensor()(x, b, index, labels),
        "add parts": AdvancedIncSubtensor()(
            tensor("float32", 4), tensor("float32", 3), slice(None), T.lmatrix(), T.lvector()
        ),
        "set parts": AdvancedIncSubtensor(False, True)(half, tensor("float16", 1), labels, None),
        "mask": AdvancedBooleanIncSubtensor(False, True)(x, b, tensor("bool", 1)),
        "search": SearchsortedOp("right")(tensor("float16", 1), double),
        "search by a sorter": SearchsortedOp()(b, x, index),
        "choose": Choose("raise")(T.imatrix(), x, half, b),
        "choose of one array": Choose("wrap")(T.imatrix(), tensor("float32", 3)),
        "ravel": RavelMultiIndex("raise", "F")(T.imatrix(), T.lmatrix(), T.lvector()),
        "ravel, clipped": RavelMultiIndex("clip")(T.lvector(), T.lvector(), T.lvector()),
        "part": T.inc_subtensor(x[1:3], b),
        "range": T.arange(T.lscalar()),
        "range of floats": T.ARange("float16")(T.dscalar(), T.dscalar(), T.dscalar()),
        "eye": T.eye(T.lscalar(), dtype="float32"),
        "alloc": T.alloc(b, T.lscalar(), T.lscalar()),
        "joined": T.join(0, x, tensor("int8", 2)),
        "square": T.diag(b),
        "sparse product": sd_csr(b, index, T.ivector(), x),
        "uniform": mrg_uniform(tensor("float32", 2).type)(T.imatrix(), T.lvector())[1],
        "uniform halves": mrg_uniform(tensor("float16", 2).type)(T.imatrix(), T.lvector())[1],
        "counts": MultinomialFromUniform("auto")(x, b, T.lscalar()),
        "draws": ChoiceFromUniform("auto", replace=True)(tensor("float64", 2), b, T.lscalar()),
        "draws without replacement": ChoiceFromUniform("int8")(x, b, T.lscalar()),
        "convolution": convolutions("float32")[0],
        "gradient by kernels": convolutions("float32")[1],
        "gradient by images": convolutions("float32")[2],
        "convolution of halves": convolutions("float16")[0],
        "gradient by kernels of doubles": convolutions("float64")[1],
        "convolution of volumes": convolutions("float32", 3)[0],
        "gradient by kernels of volumes": convolutions("float32", 3)[1],
    }
    images, maxima = tensor("float32", 4), tensor("float32", 4)
    numbers = (1, 1), (1, 1), (0, 0)  # so that all arrays may have one shape
    made |= {f"pool, {mode}": Pool(True, mode)(images, *numbers) for mode in MODES}
    made |= {
        "pool of integers": Pool(True, "average_inc_pad")(tensor("int8", 4), *numbers),
        "pool of halves": Pool(True, "max", 3)(tensor("float16", 5), (1, 1, 1)),
        "pool, max gradient": MaxPoolGrad(True)(images, maxima, maxima, *numbers),
        "pool, average gradient": AveragePoolGrad(True)(images, maxima, *numbers),
        "pool, right": MaxPoolRop(True)(images, images, *numbers),
    }
    return {name: var.owner for name, var in made.items()}


def made(node, deterministic=True):
    """Return the Implementation of an Apply, which must have one.

    deterministic: add to rows in a fixed order, not atomically.
    """
    found = lower(node) if deterministic else lower_row_scatter(node, deterministic=False)
    assert isinstance(found, Implementation), found
    return found


def kernels() -> list[Kernel]:
    """Return the kernels of all cases, of atomic additions and of loops."""
    found = [k for node in cases().values() for k in made(node).kernels]
    found.append(copy_rows())
    for dtype in ("float32", "int64", "float64"):
        node = AdvancedIncSubtensor1()(tensor(dtype, 2), tensor(dtype, 2), tensor("int64", 1)).owner
        found += made(node, deterministic=False).kernels
    return list(dict.fromkeys(found))
