"""What the tests of tensor Ops share: graphs run by ``perform`` alone, every promise checked.

No function is compiled, so a fault here is a fault of the Ops.
"""

import numpy as np
import pytest

from opwise import Constant
from opwise.errors import ShapeError
from opwise.gradient import Rop, grad
from opwise.graph.traversal import io_toposort
from opwise.tensor import TensorConstant, TensorType, constant
from opwise.tensor import elemwise as elementwise
from opwise.tensor import sum as sum_
from opwise.tensor.type import tensor_type


def strided(value):
    """Return a read-only copy of an array that is not contiguous."""
    value = np.asarray(value)
    if value.ndim == 0:
        view = value.copy()
    else:
        view = np.empty((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)[..., ::2]
        view[...] = value
    view.flags.writeable = False
    return view


def dump(var):
    """Return the graph above a variable as nested text: Op(operands), leaves by name."""
    if var.owner is None:
        return str(var)
    index = f".{var.index}" if len(var.owner.outputs) > 1 else ""
    return f"{var.owner.op}{index}({', '.join(map(dump, var.owner.inputs))})"


def _check_output(node, k, value, inputs):
    out = node.outputs[k]
    if isinstance(out.type, TensorType):
        assert type(value) is np.ndarray, f"{node.op} gave {type(value)}"
        assert value.dtype.name == out.type.dtype, f"{node.op} gave {value.dtype}, not {out.type}"
        assert value.ndim == out.type.ndim, f"{node.op} gave shape {value.shape}, not {out.type}"
        assert all(
            n == 1 for n, one in zip(value.shape, out.type.broadcastable, strict=True) if one
        ), f"{node.op} gave shape {value.shape}, not {out.type}"
    for i, x in enumerate(inputs):
        if isinstance(x, np.ndarray) and isinstance(value, np.ndarray) and x.size:
            declared = i in node.op.view_map.get(k, ()) or i in node.op.destroy_map.get(k, ())
            assert declared or not np.shares_memory(x, value), f"{node.op} aliases input {i}"


def run(outputs, values=None, check_shapes=True):
    """Return the values of ``outputs`` (a variable or a list) for a dict of input values."""
    wanted = outputs if isinstance(outputs, list | tuple) else [outputs]
    known = {
        var: var.type.filter(strided(x), allow_downcast=True)
        if isinstance(var.type, TensorType)
        else x
        for var, x in (values or {}).items()
    }

    def value_of(var):
        return var.data if isinstance(var, Constant) else known[var]

    for node in io_toposort(list(known), wanted):
        inputs = [value_of(v) for v in node.inputs]
        storage = [[None] for _ in node.outputs]
        node.op.perform(node, inputs, storage)
        for k, (out, cell) in enumerate(zip(node.outputs, storage, strict=True)):
            _check_output(node, k, cell[0], inputs)
            known[out] = cell[0]
        if check_shapes and hasattr(node.op, "infer_shape"):
            _check_inferred(node, inputs, [cell[0] for cell in storage], known)
    results = [value_of(v) for v in wanted]
    return results if isinstance(outputs, list | tuple) else results[0]


def _check_inferred(node, inputs, results, known):
    """Check that ``infer_shape`` gives the shapes that ``perform`` gave, as int64 scalars."""
    lengths, shapes = {}, []
    for x in inputs:
        variables = [tensor_type("int64", ()).make_variable() for _ in np.shape(x)]
        lengths |= dict(zip(variables, np.shape(x), strict=True))
        shapes.append(tuple(variables))
    try:
        inferred = node.op.infer_shape(node, shapes)
    except ShapeError:
        return  # only running tells
    assert len(inferred) == len(results)
    for shape, result in zip(inferred, results, strict=True):
        assert all(n.type == tensor_type("int64", ()) for n in shape), f"{node.op}: {shape}"
        found = run(list(shape), known | lengths, check_shapes=False)
        assert [int(n) for n in found] == list(np.shape(result)), str(node.op)


def check_gradient(build, *points, patterns=None, tolerance=1e-6):
    """Compare the gradient of ``build(*variables)``, a tensor, with central differences.

    Also checks that Rop gives the transpose of what grad gives, where all Ops have an R_op.
    """
    points = [np.asarray(p, "float64") for p in points]
    patterns = patterns or [(False,) * p.ndim for p in points]
    inputs = [tensor_type("float64", pattern)(f"p{i}") for i, pattern in enumerate(patterns)]
    out = build(*inputs)
    values = dict(zip(inputs, points, strict=True))
    weights = np.random.RandomState(7).uniform(0.5, 1.5, np.shape(run(out, values)))
    weight = constant(weights)
    if any(weight.type.broadcastable):
        weight = TensorConstant(tensor_type("float64", out.type.broadcastable), weights)
    cost = sum_(elementwise.elemwise("mul")(out, weight))
    gradients = run(grad(cost, inputs, disconnected_inputs="ignore"), values)
    for var, point, found in zip(inputs, points, gradients, strict=True):
        assert found.shape == point.shape
        expected = np.zeros_like(point)
        for i in np.ndindex(point.shape):
            step = np.zeros_like(point)
            step[i] = 1e-6
            ends = [run(cost, values | {var: point + s}, False) for s in (step, -step)]
            expected[i] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    return inputs, out, values, gradients, weights


def check_forward(build, *points, patterns=None):
    """As check_gradient, and that Rop agrees: the product with the weights is the same number."""
    inputs, out, values, gradients, weights = check_gradient(build, *points, patterns=patterns)
    directions = [np.random.RandomState(i).uniform(-1, 1, p.shape) for i, p in enumerate(gradients)]
    eval_points = [v.type(f"d{i}") for i, v in enumerate(inputs)]
    forward = run(
        Rop(out, inputs, eval_points), values | dict(zip(eval_points, directions, strict=True))
    )
    expected = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose((forward * weights).sum(), expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(name="run", scope="session")
def run_fixture():
    return run


@pytest.fixture(name="dump", scope="session")
def dump_fixture():
    return dump


@pytest.fixture(name="check_gradient", scope="session")
def check_gradient_fixture():
    return check_gradient


@pytest.fixture(name="check_forward", scope="session")
def check_forward_fixture():
    return check_forward
