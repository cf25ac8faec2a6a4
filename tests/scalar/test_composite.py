"""Composite: its program, what it computes, how it prints, its gradient and its identity."""

import pickle

import numpy as np
import pytest

from opwise.graph.traversal import io_toposort
from opwise.scalar import Cast, Composite, constant, csource, get_scalar_type
from opwise.scalar.op import OPS, cast_op
from opwise.scalar.program import Instruction, Literal

pytestmark = pytest.mark.null

add, mul, exp, sub, sigmoid = (OPS[n] for n in ("add", "mul", "exp", "sub", "scalar_sigmoid"))


def scalars(*dtypes):
    return [get_scalar_type(d)() for d in dtypes]


def evaluate(outputs, values):
    """Return the arrays of scalar variables, given those of the inputs."""
    values = dict(values)

    def value(var):
        return values[var] if var in values else np.asarray(var.data)

    for node in io_toposort(list(values), outputs):
        out_dtypes = [v.type.dtype for v in node.outputs]
        results = node.op.on_arrays([value(v) for v in node.inputs], out_dtypes)
        values.update(zip(node.outputs, results, strict=True))
    return [value(v) for v in outputs]


X = np.linspace(-2.0, 2.0, 7)
Y = np.linspace(0.5, 3.0, 7)


def test_program():
    x, y = scalars("float64", "float32")
    op = Composite([x, y], [exp(x) * y])
    assert op.instructions == (
        Instruction(exp, (0,), "float64"),
        Instruction(mul, (2, 1), "float64"),
    )
    assert (op.in_dtypes, op.outs, op.nin, op.nout) == (("float64", "float32"), (3,), 2, 1)
    assert op.program.dtypes[1] == "float32" and op.program.dtypes[3] == "float64"
    assert op == Composite.from_program(op.in_dtypes, op.instructions, op.outs)


def test_values():
    x, y = scalars("float64", "float64")
    op = Composite([x, y], [exp(x) * y + x])
    (result,) = op.on_arrays([X, Y], ["float64"])
    np.testing.assert_allclose(result, np.exp(X) * Y + X)
    assert op.impl(1.0, 2.0) == np.exp(1.0) * 2.0 + 1.0


def test_inputs_are_not_changed_nor_returned_as_they_are():
    x = get_scalar_type("float64")()
    values = X.copy()
    values.flags.writeable = False
    (result,) = Composite([x], [-x]).on_arrays([values], ["float64"])
    np.testing.assert_array_equal(result, -X)


def test_several_outputs():
    x, y = scalars("float64", "float64")
    s = x + y
    op = Composite([x, y], [s * s, s, x])
    results = op.on_arrays([X, Y], ["float64"] * 3)
    for result, expected in zip(results, [(X + Y) ** 2, X + Y, X], strict=True):
        np.testing.assert_allclose(result, expected)
    assert [v.type.dtype for v in op(x, y)] == ["float64"] * 3
    assert op.impl(1.0, 2.0) == [9.0, 3.0, 1.0]


def test_intermediate_dtypes_are_kept():
    """int8 wraps inside as it does outside."""
    x = get_scalar_type("int8")()
    op = Composite([x], [cast_op("int32")(x + x)])
    (result,) = op.on_arrays([np.array([100, 3], "int8")], ["int32"])
    assert result.dtype == "int32" and result.tolist() == [-56, 6]


def test_constants_become_literals():
    x = get_scalar_type("float64")()
    op = Composite([x], [x * constant(2.5) + 1])
    assert [type(step.op) for step in op.instructions].count(Literal) == 2
    np.testing.assert_allclose(op.on_arrays([X], ["float64"])[0], 2.5 * X + 1)
    assert str(op) == "Composite{((i0 * Constant{2.5}) + Constant{1})}"


def test_a_composite_inside_is_flattened():
    x, y, z = scalars("float64", "float64", "float64")
    inner = Composite([x, y], [exp(x) + y])
    outer = Composite([x, y, z], [inner(z, x) * inner(x, y)])
    assert not any(isinstance(step.op, Composite) for step in outer.instructions)
    assert len(outer.instructions) == 5
    values = [X, Y, X + Y]
    (result,) = outer.on_arrays(values, ["float64"])
    np.testing.assert_allclose(result, (np.exp(X + Y) + X) * (np.exp(X) + Y))


def test_a_composite_that_returns_an_input_inside_another():
    x, y = scalars("float64", "float64")
    swap = Composite([x, y], [y, x])
    first, second = swap(x, y)
    op = Composite([x, y], [first - second])
    np.testing.assert_allclose(op.on_arrays([X, Y], ["float64"])[0], Y - X)


def test_shared_steps_run_once():
    x = get_scalar_type("float64")()
    e = exp(x)
    op = Composite([x], [e * e + e])
    assert [step.op for step in op.instructions].count(exp) == 1


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda x, y: x + y * x, "Composite{(i0 + (i1 * i0))}"),
        (lambda x, y: add(x, y, x), "Composite{(i0 + i1 + i0)}"),
        (lambda x, y: -x / y, "Composite{((-i0) / i1)}"),
        (lambda x, y: sigmoid(x - y), "Composite{scalar_sigmoid((i0 - i1))}"),
        (lambda x, y: OPS["switch"](x > y, x, y), "Composite{Switch(GT(i0, i1), i0, i1)}"),
        (lambda x, y: OPS["sqr"](abs(x)), "Composite{sqr(Abs(i0))}"),
        (lambda x, y: cast_op("float32")(x), "Composite{Cast{float32}(i0)}"),
        (lambda x, y: OPS["clip"](x, y, x), "Composite{clip(i0, i1, i0)}"),
        (lambda x, y: (x > y) & (y > x), "Composite{AND(GT(i0, i1), GT(i1, i0))}"),
    ],
)
def test_text(build, text):
    """The text of a Composite is what Theano 1.0.5 prints in profiles and graphs."""
    x, y = scalars("float64", "float64")
    assert str(Composite([x, y], [build(x, y)])) == text


def test_the_text_of_a_deep_program_stays_short():
    (x,) = scalars("float64")
    out = x
    for _ in range(60):
        out = out * out
    assert len(str(Composite([x], [out]))) < 20_000


def test_identity():
    x, y = scalars("float64", "float64")
    one, same = Composite([x, y], [x + exp(y)]), Composite([y, x], [y + exp(x)])
    other = Composite([x, y], [exp(x) + y])
    assert one == same and hash(one) == hash(same)
    assert one != other
    assert one != Composite(scalars("float32", "float32"), [])
    assert pickle.loads(pickle.dumps(one)) == one


def test_literals_differ_by_their_bits():
    (x,) = scalars("float64")

    def of(value):
        return Composite([x], [x * constant(np.float64(value))])

    assert of(0.0) == of(0.0) and of(0.0) != of(-0.0) and of(1.0) != of(2.0)
    assert of(np.nan) == of(np.nan)


def test_other_dtypes_make_another_composite():
    i, x = scalars("int8", "float32")
    op = Composite([i, x], [i * i / x])
    a, b = scalars("float64", "float32")
    applied = op(a, b).owner
    assert applied.op.in_dtypes == ("float64", "float32") and applied.outputs[0].dtype == "float64"
    assert op(i, x).owner.op is op
    np.testing.assert_allclose(applied.op.on_arrays([X, np.float32(2)], ["float64"])[0], X * X / 2)


def test_the_number_of_inputs_is_checked():
    (x,) = scalars("float64")
    op = Composite([x], [exp(x)])
    with pytest.raises(TypeError, match="Wrong number of inputs"):
        op(x, x)


def gradient(op, dtypes):
    inputs = scalars(*dtypes)
    outputs = op(*inputs, return_list=True)
    weights = [v.type() for v in outputs]
    return inputs, weights, op.L_op(inputs, outputs, weights)


def test_gradient():
    x, y = scalars("float64", "float64")
    op = Composite([x, y], [exp(x * y) + sigmoid(x), x - y])
    inputs, weights, found = gradient(op, ["float64", "float64"])
    values = dict(zip([*inputs, *weights], [X, Y, Y, X], strict=True))
    by_x, by_y = evaluate(found, values)
    step = 1e-6
    for result, dx, dy in ((by_x, step, 0), (by_y, 0, step)):
        upper = op.on_arrays([X + dx, Y + dy], None)
        lower = op.on_arrays([X - dx, Y - dy], None)
        expected = sum(w * (u - v) for w, u, v in zip((Y, X), upper, lower, strict=True))
        np.testing.assert_allclose(result, expected / (2 * step), rtol=1e-6, atol=1e-7)


def test_gradient_by_an_unused_input_is_zero():
    x, y = scalars("float64", "float64")
    found = gradient(Composite([x, y], [exp(x)]), ["float64", "float64"])[2]
    assert found[1].data == 0


def test_an_undefined_gradient_is_not_taken_for_zero():
    """The order of a Bessel function: no gradient by x, which it depends on; one by z."""
    x, y, z = scalars("float64", "float64", "float64")
    op = Composite([x, y, z], [OPS["jv"](exp(x), y) + z])
    by_x, by_y, by_z = gradient(op, ["float64"] * 3)[2]
    assert by_x is None
    assert by_y.type.dtype == by_z.type.dtype == "float64"
    tri_gamma = Composite([x], [exp(OPS["tri_gamma"](x))])
    assert gradient(tri_gamma, ["float64"])[2] == [None]


def test_graph_round_trip():
    x, y = scalars("float64", "float32")
    op = Composite([x, y], [exp(x) * y + constant(2.5)])
    inputs, outputs = op.graph()
    assert Composite(inputs, outputs) == op


def test_casts_and_literals_have_c():
    """A kernel is written step by step; these two steps are no rows of the table."""
    (x,) = scalars("float32")
    op = Composite([x], [Cast(get_scalar_type("int8"))(x) * constant(np.int8(-3))])
    slots, names = list(op.in_dtypes), ["x"]
    texts = []
    for k, step in enumerate(op.instructions):
        args, ins = [names[a] for a in step.args], [slots[a] for a in step.args]
        texts.append(csource.step_c(step.op, args, ins, step.dtype))
        slots.append(step.dtype)
        names.append(f"t{k}")
    assert sorted(texts) == sorted(["((ow_i8)ow_i32_of_f32(x))", "((ow_i8)-3)", texts[-1]])
    assert texts[-1].startswith("((ow_i8)(t") and " * t" in texts[-1]
