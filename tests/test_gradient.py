"""Gradients: values, the graph, what Ops may return, errors, and the numeric check."""

import re
import warnings

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Op, generic, gradient
from opwise.errors import DisconnectedInputError, MethodNotDefined, NullTypeGradError
from opwise.gradient import (
    DisconnectedType,
    Lop,
    NullType,
    Rop,
    disconnected_type,
    grad,
    subgraph_grad,
)
from opwise.graph import provenance, upcalls
from opwise.graph.null import is_disconnected
from opwise.graph.traversal import ancestors, io_toposort
from opwise.printing import debugprint

pytestmark = pytest.mark.null

PLAIN = opwise.Mode(linker="py", optimizer=None)


def value(outputs, **of_inputs):
    """Return the value of outputs for values of inputs by name."""
    leaves = {v.name: v for v in ancestors(outputs) if v.owner is None and v.name in of_inputs}
    function = opwise.function(
        [leaves[name] for name in of_inputs], outputs, mode=PLAIN, allow_input_downcast=True
    )
    return function(*of_inputs.values())


def text(var):
    return debugprint(var, file="str")


class Contract(Op):
    """An Op whose gradient does as it is told; the outputs, of the types ``outs``, hold ones."""

    def __init__(self, terms=None, outs=None, pattern=None, forward=None):
        self.terms = terms
        self.outs = outs
        self.forward = forward
        self.calls = 0
        if pattern is not None:
            self.connection_pattern = lambda node: pattern

    def make_node(self, *inputs):
        inputs = [T.as_tensor_variable(x) for x in inputs]
        types = self.outs or [inputs[0].type]
        return Apply(self, inputs, [t() for t in types])

    def perform(self, node, inputs, output_storage):
        for out, cell in zip(node.outputs, output_storage, strict=True):
            cell[0] = np.ones((1,) * out.type.ndim, out.type.dtype)

    def grad(self, inputs, output_gradients):
        self.calls += 1
        return self.terms(inputs, output_gradients)

    def R_op(self, inputs, eval_points):
        return self.forward(inputs, eval_points)

    def __str__(self):
        return "contract"


# --- values ---------------------------------------------------------------------------------------


def switched(x):
    return T.switch(x > 0, T.sqrt(x), 0)


@pytest.mark.parametrize(
    ("expression", "points", "expected"),
    [
        (abs, [-2, 0, 3], [-1, 0, 1]),
        (lambda x: T.max(x), [1, 3, 3], [0, 1, 1]),
        (lambda x: T.maximum(x, 0), [-1, 0, 1], [0, 1, 1]),
        (lambda x: T.minimum(x, 0), [-1, 0, 1], [1, 1, 0]),
        (lambda x: T.clip(x, 0, 1), [-1, 0, 0.5, 1, 2], [0, 1, 1, 1, 0]),
        (T.sqrt, [0.0, 4], [np.inf, 0.25]),
        (lambda x: x**2, [0, 3], [0, 6]),
        (lambda x: 0.0**x, [1, 2], [0, 0]),
        (T.floor, [0.5, 1], [0, 0]),
        (T.sgn, [-1, 0, 1], [0, 0, 0]),
        (lambda x: T.cast(x, "int32"), [1.5], [0]),
        (lambda x: x % 2, [0.5, 3], [1, 1]),
        (lambda x: x[T.as_tensor_variable([0, 0, 1])], [5, 6], [2, 1]),
        (lambda x: T.prod(x), [0, 2, 3], [6, 0, 0]),
        (lambda x: T.prod(x), [0, 0, 3], [0, 0, 0]),
        (lambda x: x * x.sum(), [1, 2], [6, 6]),
    ],
)
def test_gradients_of_legacy_corners(expression, points, expected):
    x = T.dvector("x")
    found = value(grad(expression(x).sum(), x), x=points)
    assert found.dtype == "float64"
    np.testing.assert_array_equal(found, expected)


def test_a_tie_of_two_variables_goes_to_the_first():
    x, y = T.dscalars("x", "y")
    gradients = value(grad(T.maximum(x, y), [x, y]), x=2, y=2)
    assert [float(g) for g in gradients] == [1, 0]


OPERATIONS = [
    T.add, T.mul, T.sub, T.tanh, T.sin, T.exp, T.sqr,
    lambda a: a.sum(axis=0), lambda a: a.T, lambda a, b: T.dot(a, b.T),
    lambda a: a[::-1], lambda a: a.dimshuffle(1, 0) * 2.0, lambda a, b: T.switch(a > b, a, b),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_agree_with_finite_differences(seed):
    rng = np.random.RandomState(seed)

    def build(x, y):
        pool = [x, y, x + y]
        for _ in range(8):
            operation = OPERATIONS[rng.randint(len(OPERATIONS))]
            count = 1 if operation in (T.tanh, T.sin, T.exp, T.sqr) else _arity(operation)
            new = operation(*(pool[rng.randint(len(pool))] for _ in range(count)))
            # a bounded value, in the shape of the others, keeps the next operation possible
            pool.append(T.tanh(new) if new.ndim == 2 else T.tanh(new) + T.zeros_like(x))
        return pool[-1] * pool[-2] + pool[-3]

    gradient.verify_grad(build, [rng.uniform(-1, 1, (3, 3)) for _ in "xy"], mode=PLAIN)


def _arity(operation):
    code = getattr(operation, "__code__", None)
    return code.co_argcount if code else max(operation.scalar_op.nin, 2)


# --- the graph that is built ----------------------------------------------------------------------


def test_terms_are_added_in_the_order_of_their_use():
    a, b = T.dscalars("a", "b")
    c = a * b
    d = T.exp(c) + c * a + T.sin(c)
    d.name = "d"
    assert text(grad(d, a)) == (
        "Elemwise{add,no_inplace} [id A] '(dd/da)'   \n"
        " |Elemwise{mul} [id B] ''   \n"
        " | |Elemwise{add,no_inplace} [id C] ''   \n"
        " | | |Elemwise{add,no_inplace} [id D] ''   \n"
        " | | | |Elemwise{mul} [id E] ''   \n"
        " | | | | |Elemwise{second,no_inplace} [id F] ''   \n"
        " | | | | | |Elemwise{add,no_inplace} [id G] 'd'   \n"
        " | | | | | | |Elemwise{add,no_inplace} [id H] ''   \n"
        " | | | | | | | |Elemwise{exp,no_inplace} [id I] ''   \n"
        " | | | | | | | | |Elemwise{mul,no_inplace} [id J] ''   \n"
        " | | | | | | | |   |a [id K]\n"
        " | | | | | | | |   |b [id L]\n"
        " | | | | | | | |Elemwise{mul,no_inplace} [id M] ''   \n"
        " | | | | | | |   |Elemwise{mul,no_inplace} [id J] ''   \n"
        " | | | | | | |   |a [id K]\n"
        " | | | | | | |Elemwise{sin,no_inplace} [id N] ''   \n"
        " | | | | | |   |Elemwise{mul,no_inplace} [id J] ''   \n"
        " | | | | | |TensorConstant{1.0} [id O]\n"
        " | | | | |Elemwise{exp,no_inplace} [id I] ''   \n"
        " | | | |Elemwise{mul} [id P] ''   \n"
        " | | |   |Elemwise{second,no_inplace} [id F] ''   \n"
        " | | |   |a [id K]\n"
        " | | |Elemwise{mul} [id Q] ''   \n"
        " | |   |Elemwise{second,no_inplace} [id F] ''   \n"
        " | |   |Elemwise{cos} [id R] ''   \n"
        " | |     |Elemwise{mul,no_inplace} [id J] ''   \n"
        " | |b [id L]\n"
        " |Elemwise{mul} [id S] ''   \n"
        "   |Elemwise{second,no_inplace} [id F] ''   \n"
        "   |Elemwise{mul,no_inplace} [id J] ''   \n"
    )


def test_the_form_of_the_result_is_that_of_wrt():
    x, y = T.dscalars("x", "y")
    cost = x * y
    assert grad(cost, x).owner is not None
    assert isinstance(grad(cost, [x, y]), list) and len(grad(cost, [x])) == 1
    assert isinstance(grad(cost, (x, y)), tuple)
    assert grad(cost, []) == []


@pytest.mark.parametrize(("dtype", "expected"), [("float32", "float32"), ("int32", "float64")])
def test_the_cost_itself_has_gradient_one(dtype, expected):
    s = T.scalar("s", dtype=dtype)
    g = grad(s, s)
    assert g.type.dtype == expected
    assert value(g, s=7) == 1


def test_gradients_have_the_dtype_of_their_variable():
    x, y = T.fvector("x"), T.dvector("y")
    gradients = grad((T.cast(x * 2, "float64") * y).sum() ** 2, [x, y])
    assert [g.type.dtype for g in gradients] == ["float32", "float64"]
    for node in io_toposort([], [gradients[0]]):
        if str(node.op) == "Elemwise{Cast{float32}}":
            break
    else:
        raise AssertionError("the gradient is not narrowed where the graph was widened")


def test_names_are_given_where_both_have_one():
    x, y = T.dscalar("x"), T.dscalar()
    cost = T.exp(x) * T.exp(y)
    assert [g.name for g in grad(cost, [x, y])] == [None, None]
    cost.name = "cost"
    assert [g.name for g in grad(cost, [x, y])] == ["(dcost/dx)", None]
    assert grad(cost, x, add_names=False).name is None


def test_naming_leaves_what_others_named_alone():
    x, y, g = T.dscalars("x", "y", "g")
    mid = x + y
    other = x * 1.0
    other.name = "cost"
    grad(other, [x], known_grads={mid: g})
    assert g.name == "g"
    shared = x + y
    shared.name = "w"
    gx, gy = grad(shared, [x, y])
    assert gx is gy and gx.name == "(dw/dy)"


def test_what_grad_makes_belongs_to_the_line_that_called_it():
    x = T.dscalar("x")
    cost = T.exp(x) * x
    made_before = set(io_toposort([], [cost]))
    result = grad(cost, x)
    called_at = provenance.user_line(result.owner)
    assert called_at[0] == __file__
    new = [node for node in io_toposort([], [result]) if node not in made_before]
    assert len(new) > 3 and {provenance.user_line(node) for node in new} == {called_at}


def test_the_lines_of_a_users_op_show_in_its_gradient():
    x = T.dscalar("x")
    op = Contract(lambda i, g: [g[0] * i[0]])
    result = grad(op(x), x)
    innermost = provenance.resolve(result.owner.trace)[-1]
    assert innermost[3] == "op = Contract(lambda i, g: [g[0] * i[0]])"


# --- cost and depth -------------------------------------------------------------------------------


def test_every_apply_is_differentiated_once():
    op = Contract(lambda i, g: [g[0], g[0]])
    x = T.dscalar("x")
    top = x
    for _ in range(60):
        top = op(top, top)
    grad(top, x)
    assert op.calls == 60


def test_depth_is_no_limit():
    op = Contract(lambda i, g: [g[0]], forward=lambda i, points: points)
    x, p = T.dscalars("x", "p")
    top = x
    for _ in range(10_000):
        top = op(top)
    assert str(grad(top, x).owner) == "Elemwise{second,no_inplace}(contract.0, TensorConstant{1.0})"
    assert op.calls == 10_000
    assert Rop(top, x, p) is p


def test_what_is_off_the_path_is_not_differentiated():
    off = Contract(lambda i, g: [g[0]])
    x, y = T.dscalars("x", "y")
    grad(off(y) * x, x)
    assert off.calls == 0
    behind = T.exp(x)
    grad(off(behind), x, known_grads={behind: y})
    assert off.calls == 0


# --- arguments ------------------------------------------------------------------------------------

x_, v_, i_ = T.dscalar("x"), T.dvector("v"), T.iscalar("i")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"cost": v_, "wrt": v_}, TypeError, r"cost must be a scalar\."),
        ({"cost": T.cscalar("c"), "wrt": x_}, TypeError, "cost must be real, but c has dtype comp"),
        ({"cost": 3.0, "wrt": x_}, TypeError, "Expected Variable, got 3.0 of type .*float.* cost"),
        ({"cost": x_, "wrt": 3}, TypeError, "Expected Variable, got 3 of type .*int"),
        ({"cost": x_, "wrt": [x_, "y"]}, TypeError, "Expected Variable, got y"),
        ({"cost": None, "wrt": x_}, ValueError, "cost and known_grads can't both be None"),
        ({"cost": x_, "wrt": x_, "disconnected_inputs": "no"}, ValueError, "'disconnected_inputs'"),
        ({"cost": x_, "wrt": x_, "return_disconnected": "no"}, ValueError, "'return_disconnected'"),
        ({"cost": x_, "wrt": x_, "null_gradients": "no"}, ValueError, "'raise' or 'return'"),
        ({"cost": x_, "wrt": x_, "consider_constant": [3]}, TypeError, "must be variables, but"),
        ({"cost": NullType("of this")(), "wrt": x_}, ValueError, "a NaN cost.*of this"),
        ({"cost": None, "wrt": x_, "known_grads": {x_: i_}}, TypeError, "given a known_grad of"),
        (
            {"cost": None, "wrt": x_, "known_grads": {x_: 1.0}},
            TypeError,
            "must be theano var",
        ),
        ({"cost": None, "wrt": x_, "known_grads": {x_: v_}}, ValueError, "1 dimensions, but 0"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        grad(**arguments)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [((True, False), [1]), ((False, True), (1,)), ((False, False), 1)],
)
def test_format_as(flags, expected):
    assert gradient.format_as(*flags, [1]) == expected
    assert gradient.format_as(*flags, 1) == expected


def test_format_as_refuses_contradictions():
    with pytest.raises(ValueError, match="both"):
        gradient.format_as(True, True, [1])
    with pytest.raises(ValueError, match="there are 2"):
        gradient.format_as(False, False, [1, 2])


# --- disconnected inputs --------------------------------------------------------------------------


def test_a_disconnected_input_is_named_with_its_line():
    x = T.dscalar("x")
    lonely = T.dvector("lonely")
    with pytest.raises(DisconnectedInputError) as caught:
        grad(x * 2, [x, lonely])
    message = str(caught.value)
    assert "not part of the computational graph of the cost" in message
    assert "operator: lonely\n" in message
    assert f'File "{__file__}"' in message and 'lonely = T.dvector("lonely")' in message
    assert "disconnected_inputs='ignore'" in message
    assert isinstance(caught.value, ValueError)


def test_a_warning_says_it_once():
    x, y = T.dscalars("x", "y")
    with pytest.warns(UserWarning, match="non-differentiable operator: y\n") as caught:
        g = grad(x * 2, y, disconnected_inputs="warn")
    assert len(caught) == 1 and caught[0].filename == __file__
    assert value(g, y=3) == 0


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_ignored_inputs_get_zeros_of_their_shape(dtype):
    x, y = T.dscalar("x"), T.vector("y", dtype=dtype)
    g = grad(x * 2, y, disconnected_inputs="ignore")
    assert g.type.dtype == ("float64" if dtype == "int8" else dtype)
    np.testing.assert_array_equal(value(g, y=[1, 2, 3]), np.zeros(3))


def test_what_is_returned_for_ignored_inputs():
    x, y = T.dscalars("x", "y")

    def result(how):
        return grad(x * 2, [x, y], disconnected_inputs="ignore", return_disconnected=how)[1]

    assert result("none") is result("None") is None
    assert is_disconnected(result("disconnected")) and is_disconnected(result("Disconnected"))


def test_a_constant_cost_depends_on_nothing():
    x = T.dscalar("x")
    with pytest.raises(DisconnectedInputError):
        grad(T.constant(2.0), x)
    with pytest.raises(DisconnectedInputError):
        grad(T.zeros_like(x), x)


def test_shared_and_computed_variables_may_be_differentiated_by():
    s = opwise.shared(3.0, "s")
    mid = s * s
    gs, gm = grad(mid * 5, [s, mid])
    assert value(gs) == 30 and value(gm) == 5


# --- known gradients, constants, parts ------------------------------------------------------------


def test_known_grads_of_fewer_dimensions_broadcast():
    m, g, row = T.dmatrix("m"), T.dscalar("g"), T.dvector("row")
    assert value(grad(None, m, known_grads={m * 2: g}), m=np.ones((1, 2)), g=3).tolist() == [[6, 6]]
    by_row = grad(None, m, known_grads={m * 2: row})
    assert value(by_row, m=np.ones((2, 2)), row=[3.0, 1.0]).tolist() == [[6, 2], [6, 2]]


def test_known_grads_stand_in_for_a_cost():
    x, g = T.dscalars("x", "g")
    mid = x**2
    assert value(grad(None, x, known_grads={mid: g}), x=3, g=10) == 60
    assert grad(None, mid, known_grads={mid: g}) is g
    # the cost's own way to x counts as well, what lies behind mid does not
    assert value(grad(mid * x, x, known_grads={mid: g}), x=3, g=10) == 60 + 9
    assert value(grad(None, x, known_grads={mid: T.cast(g, "float32")}), x=3, g=10) == 60


def test_a_known_gradient_may_be_disconnected_or_undefined():
    x = T.dscalar("x")
    mid = x**2
    none = grad(None, x, known_grads={mid: DisconnectedType()()}, disconnected_inputs="ignore")
    assert value(none, x=1) == 0
    with pytest.raises(NullTypeGradError, match="because I say so"):
        grad(None, x, known_grads={mid: NullType("because I say so")()})


def test_constants_stop_the_gradient():
    x = T.dscalar("x")
    mid = x * 2
    cost = mid * x
    assert value(grad(cost, x), x=3) == 12
    assert value(grad(cost, x, consider_constant=[mid]), x=3) == 6
    assert value(grad(cost, mid, consider_constant=[mid]), x=3) == 3
    with pytest.raises(DisconnectedInputError):
        grad(mid * 1.0, x, consider_constant=[mid])


def test_a_constant_output_does_not_leak_through_its_sibling():
    x = T.dscalar("x")
    two = Contract(
        lambda i, g: [sum((t for t in g if not is_disconnected(t)), start=T.zeros_like(x))],
        outs=[x.type, x.type],
    )
    left, right = two(x)
    g = grad(left * 100 + right * 7, x, consider_constant=[left])
    assert value(g, x=1) == 7


def test_subgraph_grad_goes_through_a_network_in_parts():
    x, t = T.dvectors("x", "t")
    w1, w2 = opwise.shared(np.full((2, 3), 0.5), "w1"), opwise.shared(np.ones((3, 1)), "w2")
    a1 = T.tanh(T.dot(x, w1))
    a2 = T.tanh(T.dot(a1, w2))
    cost = T.sqr(a2 - t).sum()
    penalty = w1.sum()
    last, (g_a1,) = subgraph_grad([w2], [a1], cost=cost)
    first, at_x = subgraph_grad([w1], [x], start={a1: g_a1}, cost=penalty)
    parts = value([*last, *first, *at_x], x=[1, 2], t=[0.5])
    whole = value(grad(cost + penalty, [w2, w1, x]), x=[1, 2], t=[0.5])
    for part, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)
    *_, by_start, by_cost = subgraph_grad(w1, x, start={a1: g_a1}, cost=penalty, details=True)
    assert len(by_start) == len(by_cost) == 2
    with pytest.raises(ValueError, match="both be None"):
        subgraph_grad([w1], [x])


# --- discrete variables ---------------------------------------------------------------------------


def test_nothing_flows_through_a_discrete_output():
    x = T.dscalar("x")
    op = Contract(lambda i, g: [g[0] * 5], outs=[T.iscalar])
    g = grad(op(x) * x, x)
    assert op.calls == 0
    assert value(grad(T.cast(x, "int32"), x), x=2.5) == 0
    assert "TensorConstant{0.0}" in text(g)


def test_a_term_that_only_a_discrete_output_asks_for_is_zero():
    x, y = T.dscalars("x", "y")
    op = Contract(
        lambda i, g: [T.ones_like(x) * 100, g[1] * 3],
        outs=[T.iscalar, T.dscalar],
        pattern=[[True, False], [False, True]],
    )
    count, number = op(x, y)
    gx, gy = grad(T.cast(count, "float64") + number, [x, y])
    assert op.calls == 1
    assert value(gx, x=1) == 0 and value(gy, x=1, y=1) == 3


def test_a_sum_of_integers_has_gradient_zero():
    n = T.ivector("n")
    g = grad(n.sum(), n)
    assert g.type.dtype == "float64"
    np.testing.assert_array_equal(value(g, n=[1, 2]), [0, 0])


# --- what an Op may return ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "pattern", "error", "message"),
    [
        (lambda i, g: None, None, TypeError, "grad returned NoneType, expected iterable"),
        (lambda i, g: [None, g[0]], None, TypeError, r"None for a gradient term \(input 0\)"),
        (lambda i, g: [g[0]], None, ValueError, "wrong number of gradient terms: 1 for 2 inputs"),
        (lambda i, g: [3.0, g[0]], None, TypeError, "returned 3.0 of type .*float.* for input 0"),
        (lambda i, g: [T.constant(1), g[0]], None, TypeError, "integer.*index 0, dtype int8"),
        (lambda i, g: [T.dvector(), g[0]], None, ValueError, "1 dimensions, but 0 are required"),
        (
            lambda i, g: [disconnected_type(), g[0]], [[True], [True]], TypeError,
            "DisconnectedType for input 0. Its connection_pattern",
        ),
        (
            lambda i, g: [g[0], g[0]], [[False], [True]], TypeError,
            "for input 0. Expected a DisconnectedType instance",
        ),
        (lambda i, g: [g[0], g[0]], (True, True), TypeError, "should return a list of lists"),
        (lambda i, g: [g[0], g[0]], [[True]], ValueError, "should have 2 rows but has 1"),
        (lambda i, g: [g[0], g[0]], [True, [True]], TypeError, "element 0 is True of type"),
        (lambda i, g: [g[0], g[0]], [[True], [True] * 2], ValueError, "1 columns but row 1 has 2"),
    ],
)  # fmt: skip
def test_what_an_op_must_not_return(terms, pattern, error, message):
    x, y = T.dscalars("x", "y")
    with pytest.raises(error, match=message):
        grad(Contract(terms, pattern=pattern)(x, y), [x, y], disconnected_inputs="ignore")


def test_an_op_without_a_pattern_is_told_to_have_one():
    x, y = T.dscalars("x", "y")
    op = Contract(lambda i, g: [disconnected_type(), g[0]])
    with pytest.warns(UserWarning, match="may want to implement a connection_pattern"):
        g = grad(op(x, y), y)
    assert value(g, x=1, y=1) == 1


def test_an_exception_in_an_op_says_which_apply_it_was():
    x = T.dscalar("x")

    def fail(inputs, output_gradients):
        raise KeyError("lost")

    made = Contract(fail)(x)
    with pytest.raises(KeyError, match="lost") as caught:
        grad(made, x)
    (note,) = caught.value.__notes__
    assert "while differentiating contract(x)" in note and "made = Contract(fail)(x)" in note


def test_an_op_without_a_gradient():
    x = T.dscalar("x")

    class Bare(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type()])

    with pytest.raises(MethodNotDefined):
        grad(Bare()(x), x)


def test_disconnected_outputs_are_told_to_the_op():
    x = T.dscalar("x")
    seen = []

    def terms(inputs, output_gradients):
        seen.extend(is_disconnected(g) for g in output_gradients)
        return [output_gradients[1]]

    _, right = Contract(terms, outs=[x.type, x.type])(x)
    assert value(grad(right * 2, x), x=1) == 2
    assert seen == [True, False]


def test_a_pattern_decides_what_is_connected():
    x, y = T.dscalars("x", "y")
    op = Contract(lambda i, g: [g[0], disconnected_type()], pattern=[[True], [False]])
    assert value(grad(op(x, y), x), x=1, y=1) == 1
    with pytest.raises(DisconnectedInputError):
        grad(op(x, y), y)


def test_a_gradient_reads_what_was_destroyed_from_a_copy():
    x = T.dscalar("x")
    mid = x * 2
    op = Contract(lambda i, g: [i[0] * g[0]])
    op.destroy_map = {0: [0]}
    result = grad(op(mid), x)
    copies = [n for n in io_toposort([], [result]) if str(n.op) == "Elemwise{identity}"]
    assert [n.inputs for n in copies] == [[mid]]


# --- undefined gradients --------------------------------------------------------------------------


def test_why_a_gradient_is_not_there():
    x = T.dscalar("x")
    why = gradient.grad_not_implemented("thing", 1, x, "later").type.why_null
    assert why == (
        "This variable is Null because the grad method for input 1 (x) of the thing op is not "
        "implemented. later"
    )
    why = gradient.grad_undefined("thing", 0, x).type.why_null
    assert "input 0 (x) of the thing op is mathematically undefined." in why


def test_an_undefined_gradient_spreads_and_is_refused():
    x = T.dscalar("x")
    op = Contract(lambda i, g: [gradient.grad_undefined("thing", 0, x, "no way")])
    cost = op(T.exp(x)) * x
    with pytest.raises(NullTypeGradError, match=r"encountered a NaN.*no way.*respect to x"):
        grad(cost, x)
    assert "no way" in grad(cost, x, null_gradients="return").type.why_null


def test_a_part_that_needs_no_undefined_gradient_has_one():
    x, y = T.dscalars("x", "y")
    op = Contract(lambda i, g: [gradient.grad_undefined("thing", 0, x), g[0] * 2])
    assert value(grad(op(x, y), y), x=1, y=1) == 2


# --- Lop and Rop ----------------------------------------------------------------------------------


def test_lop_and_rop_are_transposes():
    x, y, p, q = T.dvectors("x", "y", "p", "q")
    w = T.dmatrix("w")
    f = T.tanh(T.dot(w, x) * y) + y**2
    left = Lop(f, [x, y], p)
    right = Rop(f, [x, y], [q, q * 2])
    rng = np.random.RandomState(0)
    inputs = {"w": rng.rand(3, 3), **{name: rng.rand(3) for name in "xypq"}}
    gx, gy = value(left, **{k: inputs[k] for k in "wxyp"})
    forward = value(right, **{k: inputs[k] for k in "wxyq"})
    np.testing.assert_allclose(
        forward @ inputs["p"], gx @ inputs["q"] + gy @ inputs["q"] * 2, rtol=1e-12
    )


def test_rop_of_and_through_computed_variables():
    x, p, q = T.dscalars("x", "p", "q")
    mid = T.exp(x)
    assert Rop(mid, mid, p) is p
    # a variable of wrt moves as it was told, not as what it is computed from
    assert value(Rop(mid * 3, [mid, x], [p, q]), p=2, x=0) == 6
    assert isinstance(Rop([mid], [x], [p]), list) and isinstance(Rop((mid,), x, p), tuple)
    assert Rop(mid, x, T.fscalar()).type.dtype == "float64"
    assert value(Rop(x * 3, x, 2), x=1) == 6


def test_rop_asks_only_what_moves():
    x, p, y = T.dscalars("x", "p", "y")
    still = Contract()
    assert value(Rop(still(y) * x, x, p).owner.inputs[-1], p=3) == 3
    two = Contract(forward=lambda i, points: [None, points[0]], outs=[x.type, x.type])
    left, right = two(x)
    assert Rop(right, x, p) is p
    with pytest.raises(DisconnectedInputError):
        Rop(left, x, p)


def test_outputs_that_do_not_move():
    x, y, p = T.dscalars("x", "y", "p")
    with pytest.raises(DisconnectedInputError, match=r"variables in wrt.*operator: y") as caught:
        Rop([x * 2, y], x, p)
    assert "disconnected_outputs='ignore'" in str(caught.value)
    with pytest.warns(UserWarning, match="operator: y"):
        assert value(Rop(y, x, p, disconnected_outputs="warn"), y=1) == 0

    def result(how):
        return Rop(y, x, p, disconnected_outputs="ignore", return_disconnected=how)

    assert result("none") is None and is_disconnected(result("disconnected"))
    # results of operations are zero, whatever they depend on
    assert value(Rop(y * 2, x, p), y=1) == 0
    assert value(Rop(T.zeros_like(x), x, p), x=1) == 0
    row = T.dvector("row")
    assert value(Rop(row.shape[0] * 1.5, row, row), row=[1.0, 2.0]) == 0
    # a gradient by what it is linear in reads that only for its shape
    w = opwise.shared(np.ones(3))
    linear = grad(T.dot(T.arange(3.0), w), w)
    assert value(Rop(linear, w, w)).tolist() == [0, 0, 0]
    # as in Theano, there is none of lengths and positions
    for integers in (row.shape[0], T.argmax(row), T.argmax(T.dmatrix(), axis=1)):
        with pytest.raises(DisconnectedInputError):
            Rop(integers, row, row)
    silent = Contract(forward=lambda i, points: None)
    for stopped in (silent(x), row.shape[0], silent(x).reshape((1,))):
        with pytest.raises(DisconnectedInputError):
            Rop(stopped, [x, row], [p, row])


def test_a_users_op_gets_zeros_for_constants_and_none_for_what_has_no_derivative():
    x, y, p = T.dscalars("x", "y", "p")
    silent = Contract(forward=lambda i, points: None)
    asked = []
    op = Contract(forward=lambda i, points: asked.extend(points) or [points[0]])
    assert Rop(op(x, y, y * 2, silent(x)), x, p) is p
    assert [point is None for point in asked] == [False, False, False, True]
    assert value([asked[1], asked[2]], y=3) == [0, 0]


def test_rop_of_a_join_with_constants():
    x, p, y = T.dvectors("x", "p", "y")
    for joined in (T.join(0, y, T.exp(x)), T.stack([y, T.exp(x)]).flatten()):
        moved = value(Rop(joined, x, p), x=[0.0, 0.0], y=[5.0, 6.0], p=[1.0, 2.0])
        assert moved.tolist() == [0, 0, 1, 2]


def test_the_direction_of_what_is_joined_with_constants():
    x, p, kept = T.dvector("x"), T.dvector("p"), opwise.shared(np.ones(2))
    for joined in (T.join(0, x * x, kept), T.join(0, x * x, [7.0, 8.0])):
        found = value(Rop(joined, x, p), x=[1.0, 2.0, 3.0], p=[1.0, 1.0, 0.5])
        assert found.tolist() == [2.0, 4.0, 3.0, 0.0, 0.0]
    stacked = T.stack([x[0] ** 2, kept[0]])
    assert value(Rop(stacked, x, p), x=[3.0], p=[1.0]).tolist() == [6.0, 0.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, v: Rop(x * 2, x, v), "Element 0 of wrt/eval_point .*: 0 versus 1"),
        (lambda x, v: Rop(0.0, [x], [v]), "Element 0 of wrt/eval_point .*: 0 versus 1"),
        (lambda x, v: Rop([x * 2], [x], [x, x]), "wrt has 1 elements, but eval_points has 2"),
        (lambda x, v: Lop([x * 2], [x], [x, x]), "f has 1 elements, but eval_points has 2"),
        (lambda x, v: Lop(x * 2, x, v), "has 1 dimensions, but 0 are required"),
        (lambda x, v: Rop(Contract(forward=lambda i, p: [])(x), x, x), "0 results for 1 outputs"),
        (lambda x, v: Rop(x * 2, x, x, "sometimes"), "'disconnected_outputs'"),
    ],
)
def test_wrong_arguments_of_lop_and_rop(call, message):
    with pytest.raises(ValueError, match=message):
        call(T.dscalar("x"), T.dvector("v"))


# --- Ops that change only the gradient ------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        (gradient.zero_grad, 3),
        (gradient.disconnected_grad, 3),
        (lambda x: gradient.grad_clip(x, -1, 1), 3 + 1),
        (lambda x: gradient.grad_clip(x, -1, 100), 3 + 3),
        (lambda x: gradient.grad_scale(x, -2), 3 - 2 * 3),
    ],
)
def test_markers_keep_the_value_and_change_the_gradient(mark, expected):
    x = T.dscalar("x")
    cost = mark(x) * x
    assert value(cost, x=3) == 9
    assert value(grad(cost, x), x=3) == expected


def test_markers_by_name():
    x = T.dscalar("x")
    with pytest.warns(UserWarning, match="use zero_grad.. or disconnected_grad.. instead"):
        old = gradient.consider_constant(x)
    assert value(grad(old * x, x), x=3) == 3
    names = [
        gradient.zero_grad(x), gradient.disconnected_grad(x), gradient.undefined_grad(x), old,
        gradient.grad_clip(x, 0, 1), gradient.grad_scale(x, 2),
    ]  # fmt: skip
    assert [str(v.owner.op) for v in names] == [
        "ZeroGrad", "DisconnectedGrad", "UndefinedGrad", "ConsiderConstant",
        "GradClip", "GradScale",
    ]  # fmt: skip
    # markers with other numbers must not be merged
    assert gradient.GradClip(0, 1) != gradient.GradClip(0, 2)
    assert gradient.GradScale(1) == gradient.GradScale(1) != gradient.GradScale(2)
    with pytest.raises(ValueError, match="lower <= upper"):
        gradient.grad_clip(x, 1, 0)


def test_zero_is_connected_and_disconnected_is_not():
    x = T.dscalar("x")
    assert value(grad(gradient.zero_grad(x), x), x=3) == 0
    with pytest.raises(DisconnectedInputError):
        grad(gradient.disconnected_grad(x), x)
    with pytest.raises(NullTypeGradError, match="UndefinedGrad op is mathematically undefined"):
        grad(gradient.undefined_grad(x), x)


def test_markers_in_forward_mode():
    x, p = T.dscalars("x", "p")
    assert value(Rop(gradient.grad_scale(x, 3), x, p), p=2) == 6
    assert value(Rop(gradient.zero_grad(x), x, p), p=2) == 0
    with pytest.raises(DisconnectedInputError):
        Rop(gradient.disconnected_grad(x), x, p)
    with pytest.raises(MethodNotDefined, match="no forward counterpart"):
        Rop(gradient.grad_clip(x, 0, 1), x, p)


# --- numeric check --------------------------------------------------------------------------------


class Doubled(Op):
    """Doubles; its gradient says ``claimed``."""

    __props__ = ("claimed",)

    def __init__(self, claimed):
        self.claimed = claimed

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(inputs[0] * 2, node.outputs[0].type.dtype)

    def grad(self, inputs, output_gradients):
        return [output_gradients[0] * np.asarray(self.claimed, inputs[0].type.dtype)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_verify_grad_passes_and_fails(dtype):
    point = np.random.RandomState(0).rand(2, 3).astype(dtype)
    gradient.verify_grad(Doubled(2.0), [point], mode=PLAIN)
    with pytest.raises(gradient.GradientError):
        gradient.verify_grad(Doubled(3.0), [point], mode=PLAIN)


def test_the_error_says_where_and_how_far():
    point = np.random.RandomState(0).rand(3)
    rng = np.random.RandomState(1)
    with pytest.raises(gradient.GradientError) as caught:
        gradient.verify_grad(Doubled(3.0), [point], rng=rng, mode=PLAIN)
    e = caught.value
    assert (e.arg, e.err_pos, e.shape) == (0, 2, (3,))
    assert (e.abs_tol, e.rel_tol) == (1e-4, 1e-4)
    assert e.abs_err == pytest.approx(0.500114, rel=1e-5)
    assert e.rel_err == pytest.approx(0.2, rel=1e-5)
    assert str(e).splitlines() == [
        "GradientError: numeric gradient and analytic gradient exceed tolerance:",
        "        At position 2 of argument 0 with shape (3,),",
        "            val1 = 1.500343      ,  val2 = 1.000229",
        "            abs. error = 0.500114,  abs. tolerance = 0.000100",
        "            rel. error = 0.200000,  rel. tolerance = 0.000100",
        "val1 is the gradient that the graph computes, val2 the numeric gradient: check the "
        "method grad of the Op.",
        "Exception args: ",
        "The error happened with the following inputs:, [array([0.5488135 , 0.71518937, "
        "0.60276338])], ",
        "The value of eps is:, None, ",
        "The out_type is:, None",
    ]
    assert gradient.verify_grad.E_grad is gradient.GradientError


@pytest.mark.parametrize(
    "rng", [None, np.random, np.random.RandomState(3), np.random.default_rng(3)], ids=str
)
def test_verify_grad_takes_any_source_of_numbers(rng):
    points = (np.array([[0.5, 2.0]]), np.array([[1.5], [0.25]]))
    gradient.verify_grad(lambda x, y: T.dot(x, y) * x.sum(), points, rng=rng, mode=PLAIN)


def test_verify_grad_with_tolerances():
    point = [np.array([1.0, 2.0])]
    gradient.verify_grad(Doubled(2.002), point, abs_tol=1, mode=PLAIN)
    gradient.verify_grad(Doubled(2.002), point, rel_tol=1e-2, mode=PLAIN)
    with pytest.raises(gradient.GradientError):
        gradient.verify_grad(Doubled(2.002), point, mode=PLAIN)
    gradient.verify_grad(
        lambda x: T.cast(x, "float32") ** 2, point, eps=1e-3, abs_tol=0.1, out_type="float32",
        cast_to_output_type=True, mode=PLAIN,
    )  # fmt: skip


def test_a_gradient_that_is_not_finite_is_wrong():
    with pytest.raises(gradient.GradientError):
        gradient.verify_grad(Doubled(np.nan), [np.ones(2)], mode=PLAIN)


@pytest.mark.parametrize(
    ("fun", "pt", "error", "message"),
    [
        (T.sqr, np.ones(2), TypeError, "needs a list of arrays"),
        (T.sqr, [np.arange(2)], TypeError, 'input 0 has dtype "int64"'),
        (lambda x: [x, x], [np.ones(2)], NotImplementedError, "several outputs"),
    ],
)
def test_verify_grad_refuses(fun, pt, error, message):
    with pytest.raises(error, match=message):
        gradient.verify_grad(fun, pt, mode=PLAIN)


@pytest.mark.parametrize(("no_debug_ref", "expected"), [(True, "FAST_RUN"), (False, "DebugMode")])
def test_the_reference_runs_without_debugmode(monkeypatch, no_debug_ref, expected):
    modes = {}

    def compiled(inputs, outputs, mode, name, **options):
        modes[name] = mode
        return opwise.function(inputs, outputs, mode=PLAIN, name=name, **options)

    monkeypatch.setattr(upcalls, "compile_function", compiled)
    gradient.verify_grad(T.sqr, [np.ones(2)], mode="DebugMode", no_debug_ref=no_debug_ref)
    assert modes["gradient.py cost"] == expected
    assert modes["gradient.py symbolic grad"] == "DebugMode"


def test_numeric_grad():
    x, y = np.array([1.0, 2.0]), np.array([[3.0]])
    both = gradient.numeric_grad(lambda a, b: (a**2).sum() * b.sum(), [x, y])
    np.testing.assert_allclose(both.gf[0], [6, 12], rtol=1e-5)
    np.testing.assert_allclose(both.gf[1], [[5]], rtol=1e-5)
    one = gradient.numeric_grad(lambda a: (a**3).sum(), x, eps=1e-5)
    np.testing.assert_allclose(one.gf, [3, 12], rtol=1e-4)
    assert x.tolist() == [1, 2]


def test_sparse_gradients_are_compared():
    sparse = pytest.importorskip("scipy.sparse")
    numeric = gradient.numeric_grad(lambda a: (a * np.eye(2)).sum(), [np.ones((2, 2))])
    assert numeric.max_err([sparse.csr_matrix(np.eye(2))], 1e-4, 1e-4)[2] < 1e-6
    assert numeric.max_err([sparse.csr_matrix([[1.0, 2.0], [0, 1]])], 1e-4, 1e-4)[1] == 1


def test_errors_are_measured_by_the_milder_tolerance():
    numeric = gradient.numeric_grad(lambda a: (a * [1.0, 100.0, 1e-7]).sum(), [np.ones(3)])
    exact = np.array([1.0, 100.0, 1e-7])
    assert numeric.max_err([exact], 1e-4, 1e-4)[2] < 1e-4
    # 100.001 is off by 1e-3, which is 5e-6 of it: the relative error is the milder one
    arg, position, abs_err, rel_err = numeric.max_err([exact + [1e-3, 1e-3, 0]], 1e-4, 1e-4)
    assert (arg, position) == (0, 0)
    assert abs_err == pytest.approx(1e-3, rel=1e-3) and rel_err == pytest.approx(5e-4, rel=1e-3)
    with pytest.raises(ValueError, match="expected 1 gradients, got 2"):
        numeric.max_err([exact, exact], 1, 1)
    with pytest.raises(ValueError, match=re.escape("the shape (2,), expected that of the point")):
        numeric.max_err([exact[:2]], 1, 1)


def test_no_warning_is_given_on_the_way():
    x = T.dvector("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grad(T.tanh(x).sum() * T.max(x), x)
        Rop(T.tanh(x) * x.sum(), x, x)


@pytest.mark.parametrize("build", [
    lambda x: T.sort(x, axis=0), lambda x: T.cumsum(x, axis=0), lambda x: x[::-1],
    lambda x: T.concatenate([x, x], axis=0)[:1], lambda x: T.roll(x, 1, axis=0),
    lambda x: T.repeat(x, 1, axis=1), lambda x: T.take(x, [0], axis=0),
    lambda x: T.inc_subtensor(x[:, 0], x[0]), lambda x: T.unbroadcast(x, 0),
    lambda x: x.reshape((-1, 1, x.shape[2])), lambda x: T.batched_dot(x, T.ones((1, 2, 2))),
    lambda x: T.tensordot(x, T.ones((2, 2)), axes=[[2], [0]]), lambda x: T.stack([x, x])[0],
    lambda x: T.alloc(x, 1, 1, 2),
])  # fmt: skip
@pytest.mark.parametrize("times", [1, 2])
def test_gradients_through_lost_broadcastable_dimensions(build, times):
    """Some Ops forget that a length is 1; what was made of it before needs it to be known."""
    v = T.dvector("v")
    x = v.dimshuffle("x", "x", 0)
    y = build(x) if times == 1 else build(build(x))
    for z in (y, T.concatenate([x, y], axis=2)):
        cost = T.sqr(z).sum()
        f, by_v = (opwise.function([v], out, mode=PLAIN) for out in (cost, grad(cost, v)))
        at, step = np.array([0.3, 0.6]), 1e-6
        numeric = [(f(at + step * e) - f(at - step * e)) / (2 * step) for e in np.eye(2)]
        np.testing.assert_allclose(by_v(at), numeric, rtol=1e-6)


def test_numeric_grad_keeps_the_precision_of_the_function():
    """In float32 the differences of a product of many numbers would be lost."""
    x = np.linspace(0.9, 1.1, 60).astype("float32")
    exact = np.prod(x.astype("float64")) / x

    def product(a):
        return np.prod(a.astype("float64"))

    numeric = gradient.numeric_grad(product, x)
    assert numeric.gf.dtype == "float32"
    np.testing.assert_allclose(numeric.gf, exact, rtol=1e-5)
    rounded = gradient.numeric_grad(lambda a: np.float32(product(a)), x)
    assert np.abs(rounded.gf / exact - 1).max() > 1e-5


def test_numeric_grad_of_a_complex_function():
    x = np.array([1.0, 2.0])
    numeric = gradient.numeric_grad(lambda a: (a**2).sum() * 1j, x, out_type="complex128")
    np.testing.assert_allclose(numeric.gf, 2j * x, rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_verify_grad_of_a_product_in_float32(seed):
    rng = np.random.RandomState(seed)
    points = [rng.uniform(0.5, 2, (3, 5)).astype("float32")]
    gradient.verify_grad(lambda x: T.prod(x, axis=1), points, rng=rng)
    gradient.verify_grad(T.prod, points, rng=rng)


def test_no_text_is_made_of_a_graph_without_an_error(monkeypatch):
    """Texts of Applys grow with the graph: one for each term makes a long sum quadratic."""
    x, i = T.dvector("x"), T.ivector("i")
    total = T.zeros_like(x)
    for k in range(20):
        total = total + T.exp(x) * k
    cost = total.sum() + x[i].sum() + T.dot(x, x) + x.reshape((2, 3)).max()
    made = []
    for place, name in [(Apply, "__str__"), (gradient.Variable, "__str__"),
                        (provenance, "format_trace")]:  # fmt: skip
        monkeypatch.setattr(place, name, lambda *a, name=name: made.append(name) or "")
    g = grad(cost, x)
    Rop(cost, x, x)
    opwise.function([x, i], [cost, g], mode="FAST_RUN")
    assert made == []


@pytest.mark.parametrize("method", ["grad", "L_op"])
def test_a_gradient_that_computes_with_a_disconnected_one_is_explained(method):
    class TwoOutputs(Op):
        def make_node(self, x):
            return Apply(self, [x], [x.type(), x.type()])

        def grad(self, inputs, output_gradients):
            first, second = output_gradients
            return [first * 2 + second * 3]

        if method == "L_op":

            def L_op(self, inputs, outputs, output_gradients):
                return self.grad(inputs, output_gradients)

    x = T.dvector("x")
    with pytest.raises(TypeError, match="does not depend on output 1 of the Op") as caught:
        grad(T.sum(TwoOutputs()(x)[0]), x)
    text = str(caught.value)
    assert "DisconnectedType" in text and "connection_pattern" in text
    first, second = TwoOutputs()(x)
    grad(T.sum(first + second), x)


def test_an_r_op_that_computes_with_no_direction_is_explained():
    class Plus(Op):
        def make_node(self, x, y):
            return Apply(self, [x, y], [x.type()])

        def R_op(self, inputs, eval_points):
            return [eval_points[0] * 2.0 + eval_points[1] * 3.0]

    x, k = T.dvector("x"), generic("k")
    with pytest.raises(TypeError, match="The direction of input 1 is None"):
        Rop(Plus()(x, k), x, T.ones_like(x))
