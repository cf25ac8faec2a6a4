"""Rules on shapes, allocations, reshapes, joins and splits: what each makes, and where it waits."""

import inspect

import numpy as np
import pytest

import opwise.tensor as T
from opwise.optimizers.check import check_rewrite
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.passes import SeqOptimizer
from opwise.optimizers.shapefeature import ShapeOptimizer
from opwise.scalar.op import OPS
from opwise.tensor.convert import scalar_from_tensor, tensor_from_scalar
from opwise.tensor.join import MakeVector, make_vector
from opwise.tensor.reduce import CAReduce
from opwise.tensor.shape import Shape_i

pytestmark = pytest.mark.null

length = [Shape_i(0), Shape_i(1), Shape_i(2)]

#: what builders of graphs may ask for by name: a type, and a shape in terms of three lengths
VARIABLES = {
    "x": (T.dmatrix, "ab"),
    "y": (T.dmatrix, "ab"),
    "f": (T.fmatrix, "ab"),
    "r": (T.drow, "1b"),
    "c": (T.dcol, "a1"),
    "u": (T.dvector, "a"),
    "v": (T.dvector, "b"),
    "t": (T.dtensor3, "abc"),
    "s": (T.dscalar, ""),
    "z": (T.dscalar, ""),
    "n": (T.lscalar, ""),
    "m": (T.lscalar, ""),
}
FULL = {"a": 3, "b": 4, "c": 2, "1": 1}
EMPTY = {**FULL, "a": 0}


def graph_of(build, lengths):
    """Return the inputs that a builder asks for, values for them, and what it builds."""
    rng = np.random.default_rng(7)
    names = list(inspect.signature(build).parameters)
    inputs = [VARIABLES[name][0](name) for name in names]
    values = []
    for name, var in zip(names, inputs, strict=True):
        shape = tuple(lengths[letter] for letter in VARIABLES[name][1])
        if var.type.dtype == "int64":
            values.append(np.int64({"n": 2, "m": 1}[name]).reshape(()))
        else:
            values.append(np.asarray(rng.uniform(0.5, 2, shape), var.type.dtype))
    outputs = build(*inputs)
    return inputs, values, list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def rewritten(rule, build, lengths=FULL):
    """Return the names of the Ops of a graph after a rule alone, its results having been checked."""
    inputs, values, outputs = graph_of(build, lengths)
    one = SeqOptimizer([ShapeOptimizer(), EquilibriumOptimizer([rule])])
    fgraph = check_rewrite(one, inputs, outputs, values)
    return sorted(str(node.op) for node in fgraph.toposort())


def original(build):
    """Return the names of the Ops of a graph as it was built."""
    inputs, values, outputs = graph_of(build, FULL)
    fgraph = check_rewrite(SeqOptimizer([]), inputs, outputs, values)
    return sorted(str(node.op) for node in fgraph.toposort())


ADD, MUL, EXP, EQ = (f"Elemwise{{{name},no_inplace}}" for name in ("add", "mul", "exp", "eq"))
VECTOR = "MakeVector{dtype='int64'}"

#: rule, builder, Ops of the result, and 'full' where the graph cannot take dimensions without
#: elements
FIRES = [
    ("local_shape_to_shape_i", lambda x: T.shape(x), ["Shape_i{0}", "Shape_i{1}", VECTOR]),
    ("local_shape_to_shape_i", lambda r: T.shape(r), ["Shape_i{1}", VECTOR]),
    ("local_shape_to_shape_i", lambda x, v: T.shape(T.dot(x, v)), ["Shape_i{0}", VECTOR]),
    ("local_shape_to_shape_i", lambda s: T.shape(s), []),
    ("local_track_shape_i", lambda x, r: length[0](x + r), ["Shape_i{0}"]),
    ("local_track_shape_i", lambda r: length[0](r), []),
    ("local_track_shape_i", lambda x: length[1](T.dot(x, x.T)), ["Shape_i{0}"]),
    ("local_track_shape_i", lambda s, n: length[0](T.alloc(s, n, 3)), []),
    ("local_track_shape_i", lambda x, n: length[1](x.reshape((-1, n))), []),
    ("local_reduce_make_vector", lambda n, m: T.prod(make_vector(n, m, n)), [MUL]),
    ("local_reduce_make_vector", lambda s, z: T.sum(T.stack([s, z])), [ADD]),
    (
        "local_reduce_make_vector",
        lambda n, m: CAReduce(OPS["maximum"])(make_vector(n, m, 5)),
        ["Elemwise{maximum,no_inplace}"] * 2,
    ),
    (
        "local_reduce_make_vector",
        lambda n: T.sum(MakeVector("int8")(T.cast(n, "int8"))),
        ["Elemwise{Cast{int64}}", "Elemwise{Cast{int8}}"],
    ),
    ("local_tensor_scalar_tensor", lambda s: tensor_from_scalar(scalar_from_tensor(s)), []),
    (
        "local_scalar_tensor_scalar",
        lambda v, n: v[scalar_from_tensor(tensor_from_scalar(scalar_from_tensor(n)))],
        ["ScalarFromTensor", "Subtensor{int64}"],
    ),
    ("local_fill_to_alloc", lambda x, s: T.fill(x, s), ["Alloc", "Shape_i{0}", "Shape_i{1}"]),
    ("local_fill_to_alloc", lambda x, r: T.fill(x, r), ["Alloc", "Shape_i{0}", "Shape_i{1}"]),
    ("local_fill_to_alloc", lambda c, r: T.fill(c, r), ["Alloc", "Shape_i{0}", "Shape_i{1}"]),
    ("local_fill_to_alloc", lambda x, f: T.fill(x, f), []),
    ("local_fill_to_alloc", lambda s, z: T.fill(s, z), []),
    ("local_useless_alloc", lambda x: T.alloc(x, length[0](x), length[1](x)), []),
    ("local_useless_alloc", lambda r: T.alloc(r, 1, length[1](r)), []),
    (
        "local_canonicalize_alloc",
        lambda v: T.alloc(v, 1, 1, length[0](v)),
        ["Alloc", "InplaceDimShuffle{x,x,0}", "Shape_i{0}"],
    ),
    ("local_canonicalize_alloc", lambda s: T.alloc(s, 1, 1), ["InplaceDimShuffle{x,x}"]),
    (
        "local_canonicalize_alloc",
        lambda s, n: T.alloc(s, 1, n),
        ["Alloc", "InplaceDimShuffle{x,0}"],
    ),
    (
        "local_merge_alloc",
        lambda v, n: T.alloc(T.alloc(v, n, length[0](v)), 3, n, length[0](v)),
        ["Alloc", "Shape_i{0}"],
    ),
    ("local_merge_alloc", lambda s, n: T.alloc(T.alloc(s, 1, n), 3, n), ["Alloc"]),
    ("local_alloc_unary", lambda s, n: T.exp(T.alloc(s, n, 3)), ["Alloc", EXP]),
    ("local_alloc_unary", lambda s, z, n: T.alloc(s, n, 3) * T.alloc(z, n, 3), ["Alloc", MUL]),
    (
        "local_alloc_unary",
        lambda s, v, n: T.alloc(s, n, length[0](v)) + v,
        ["Alloc", ADD, "InplaceDimShuffle{x}", "Shape_i{0}"],
    ),
    (
        "local_elemwise_alloc",
        lambda x, s: x * T.alloc(s, length[0](x), length[1](x)),
        [MUL, "InplaceDimShuffle{x,x}"],
    ),
    (
        "local_elemwise_alloc",
        lambda x, v: x * T.alloc(v, length[0](x), length[0](v)),
        None,
    ),
    (
        "local_elemwise_alloc",
        lambda x, s: x * T.alloc(s, length[1](x), length[0](x)).T,
        [MUL, "InplaceDimShuffle{x,x}"],
    ),
    (
        "local_elemwise_alloc",
        lambda v, s: v * T.alloc(s, 4),
        ["Assert", MUL, EQ, "InplaceDimShuffle{x}", "Shape_i{0}"],
    ),
    (
        "local_elemwise_alloc",
        lambda s, z, n: T.alloc(s, n) * T.alloc(z, n),
        ["Alloc", MUL, "InplaceDimShuffle{x}"],
    ),
]
