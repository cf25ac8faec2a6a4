"""The graph of a function: what it computes, what it leaves untouched, what is refused."""

import numpy as np
import pytest

from opwise import (
    Apply,
    Constant,
    FunctionGraph,
    In,
    Op,
    Out,
    SharedVariable,
    clone,
    rebuild_collect_shared,
    shared,
)
from opwise.compile import view_op
from opwise.compile.construct import construct
from opwise.config import change_flags
from opwise.errors import MissingInputError, UnusedInputError
from opwise.gradient import grad_not_implemented, grad_undefined
from opwise.graph.traversal import ancestors, as_string, io_toposort
from opwise.tensor import TensorType, constant
from opwise.tensor.elemwise import elemwise

pytestmark = pytest.mark.null

add, mul, exp = map(elemwise, ("add", "mul", "exp"))
scalar, vector, matrix = (TensorType("float64", (False,) * n) for n in range(3))


@pytest.fixture
def a():
    return scalar("a")


@pytest.fixture
def b():
    return scalar("b")


@pytest.fixture
def x():
    return vector("x")


@pytest.fixture
def s():
    return shared(10.0, name="s")


def run(built, *args):
    """Return the values of a construction's outputs, and update the storages of its inputs."""
    args = list(args)
    values = {}
    for spec, var in zip(built.inputs, built.graph_inputs, strict=True):
        values[var] = np.asarray(spec.value.data if spec.implicit else args.pop(0))

    def value(var):
        return var.data if isinstance(var, Constant) else values[var]

    for node in io_toposort(built.graph_inputs, built.graph_outputs):
        cells = [[None] for _ in node.outputs]
        node.op.perform(node, [value(v) for v in node.inputs], cells)
        values.update(zip(node.outputs, (cell[0] for cell in cells), strict=True))
    results = [value(out) for out in built.graph_outputs]
    for out, i in built.update_of.items():
        if built.inputs[i].implicit:
            built.inputs[i].value.data = results[out]
    return [float(r) if r.ndim == 0 else r.tolist() for r in results[: len(built.outputs)]]


def text(built):
    """Return the text of the graph, which a FunctionGraph can own."""
    fgraph = FunctionGraph(built.graph_inputs, built.graph_outputs, clone=False)
    fgraph.check_integrity()
    return str(fgraph)


class Pair(Op):
    """Two outputs: one more and one less."""

    __props__ = ()

    def make_node(self, v):
        return Apply(self, [v], [v.type(), v.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + 1
        output_storage[1][0] = inputs[0] - 1


# --- forms of inputs and outputs ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("outputs", "unpack_single", "keys", "values"),
    [
        (lambda y: y, True, None, [3.0]),
        (lambda y: Out(y, borrow=True), True, None, [3.0]),
        (lambda y: [y], False, None, [3.0]),
        (lambda y: (y, Out(y)), False, None, [3.0, 3.0]),
        (lambda y: {"q": y, "p": mul(y, y)}, False, ["p", "q"], [9.0, 3.0]),
        (lambda y: [], False, None, []),
        (lambda y: None, False, None, []),
    ],
)
def test_forms_of_outputs(a, outputs, unpack_single, keys, values):
    built = construct([a], outputs(add(a, 1.0)), on_unused_input="ignore")
    assert (built.unpack_single, built.keys) == (unpack_single, keys)
    assert all(isinstance(out, Out) for out in built.outputs)
    assert run(built, 2.0) == values


def test_inputs_keep_their_order_and_the_users_variables(a, b):
    spec = In(b, value=2.0)
    built = construct([a, spec], add(a, b))
    assert [i.variable for i in built.inputs] == [a, b]
    assert built.inputs[1].value == 2.0 and built.inputs[1] is not spec
    assert [str(v) for v in built.graph_inputs] == ["a", "b"]
    assert run(built, 1.0, 5.0) == [6.0]


def test_allow_input_downcast_is_for_plain_variables(a, b):
    built = construct([a, In(b)], add(a, b), allow_input_downcast=True)
    assert [i.allow_downcast for i in built.inputs] == [True, None]


def test_a_computed_variable_may_be_an_input(a, b):
    product = mul(a, b)
    built = construct([product], add(product, 1.0))
    assert built.graph_inputs[0].owner is None
    assert run(built, 4.0) == [5.0]


@pytest.mark.parametrize(
    ("inputs", "outputs", "error", "told"),
    [
        (lambda v: {v}, lambda v: v, Exception, "should be contained in a list"),
        (lambda v: [3], lambda v: v, TypeError, "Unknown parameter type: <class 'int'>"),
        (lambda v: [constant(1.0)], lambda v: v, TypeError, "Constants not allowed in param list"),
        (lambda v: [shared(1.0)], lambda v: v, TypeError, "Cannot use a shared variable"),
        (lambda v: [v], lambda v: 3, TypeError, "Received 3 of type <class 'int'>"),
        (lambda v: [v], lambda v: [[v]], TypeError, r"Received \[x\] of type <class 'list'>"),
        (lambda v: [v], lambda v: np.ones(2), TypeError, "Outputs must be theano Variable or Out"),
        (lambda v: [v], lambda v: {1: v}, AssertionError, "must be strings, not 1"),
        (lambda v: [v, v], lambda v: v, UnusedInputError, "x is used twice .* indices 0 and 1"),
    ],
)
def test_wrong_inputs_and_outputs(x, inputs, outputs, error, told):
    with pytest.raises(error, match=told):
        construct(inputs(x), outputs(x))


# --- the copy -----------------------------------------------------------------------------------


def test_nothing_is_shared_with_the_users_graph(a, s):
    big = constant(np.arange(100.0))
    y = mul(add(exp(a), s), big)
    before = set(ancestors([y]))
    built = construct([a], y)
    copies = ancestors(built.graph_outputs)
    assert not before & set(copies)
    assert not {v.owner for v in before if v.owner} & {v.owner for v in copies if v.owner}
    assert [v.data is big.data for v in copies if isinstance(v, Constant)] == [True]
    text(built)
    assert all(v.fgraph is None for v in before)


def test_one_user_graph_serves_many_functions(a):
    y = exp(add(a, 1.0))
    assert text(construct([a], y)) == text(construct([a], y))


def test_the_arguments_make_the_same_graph_again(a, b, s):
    built = construct(
        [In(a, value=1.0), b],
        {"y": mul(a, s)},
        updates=iter([(s, add(s, a))]),
        on_unused_input="ignore",
    )
    again = construct(**built.arguments)
    assert text(again) == text(built)
    assert (again.keys, again.update_of) == (built.keys, built.update_of)
    assert not set(again.graph_inputs) & set(built.graph_inputs)


def test_origins_traces_names_and_tags_survive(a):
    inner = add(a, 1.0)
    inner.name = "inner"
    inner.tag.note = "kept"
    y = exp(inner)
    built = construct([a], y)
    copied = io_toposort(built.graph_inputs, built.graph_outputs)
    assert [node.origins for node in copied] == [(inner.owner,), (y.owner,)]
    assert [node.trace for node in copied] == [inner.owner.trace, y.owner.trace]
    assert copied[0].trace[0][0].co_filename == __file__
    assert copied[0].outputs[0].name == "inner" and copied[0].outputs[0].tag.note == "kept"


def test_origins_of_what_clone_made_are_the_first_ones(a, b):
    y = exp(add(a, 1.0))
    built = construct([b], clone(y, {a: b}))
    assert [n.origins for n in io_toposort(built.graph_inputs, built.graph_outputs)] == [
        (y.owner.inputs[0].owner,),
        (y.owner,),
    ]


def test_a_deep_graph(a):
    y = a
    for _ in range(5000):
        y = add(y, a)
    built = construct([a], y, givens={})
    assert len(io_toposort(built.graph_inputs, built.graph_outputs)) == 5000
    assert len(io_toposort([], [clone(y, {a: exp(a)})])) == 5001


def test_equal_operands_stay_one_variable(a):
    y = exp(a)
    built = construct([a], [mul(y, y), y])
    assert text(built) == "[Elemwise{mul,no_inplace}(*1 -> exp(a), *1), *1]".replace(
        "exp", "Elemwise{exp,no_inplace}"
    )


# --- shared variables and updates ---------------------------------------------------------------


def test_shared_variables_become_implicit_inputs(a, s):
    t = shared(3.0, name="t")
    built = construct([a], mul(add(t, s), a))
    assert [i.variable for i in built.inputs] == [a, t, s]
    spec = built.inputs[1]
    assert (spec.implicit, spec.shared, spec.borrow, spec.mutable, spec.update) == (
        True, True, True, False, None,
    )  # fmt: skip
    assert spec.value is t.container and spec.name == "t"
    assert isinstance(built.graph_inputs[1], SharedVariable) and built.graph_inputs[1] is not t
    assert run(built, 2.0) == [26.0]


@pytest.mark.parametrize("form", [dict, list, tuple, lambda d: [list(p) for p in d], iter])
def test_forms_of_updates(a, s, form):
    built = construct([a], s, updates=form({s: add(s, a)}.items()))
    (position, i) = next(iter(built.update_of.items()))
    assert (position, i, built.inputs[i].variable, built.inputs[i].mutable) == (1, 1, s, True)
    assert run(built, 2.0) == [10.0]
    assert s.get_value() == 12.0


def test_updates_see_the_old_values():
    p, q = shared(1.0), shared(2.0)
    run(construct([], updates=[(p, q), (q, p)]))
    assert (p.get_value(), q.get_value()) == (2.0, 1.0)


@pytest.mark.parametrize("value", [3.5, 3, np.float64(3.5), np.array(3, "int16")])
def test_updates_by_values(value):
    s32 = shared(np.float32(0))
    built = construct([], updates=[(s32, value)])
    run(built)
    assert s32.get_value() == value and s32.get_value().dtype == "float32"


def test_an_update_of_an_input_comes_before_those_of_shared_variables(a, s):
    built = construct([In(a, value=1.0, update=add(a, s))], [a, s], updates={s: mul(s, 2.0)})
    assert built.update_of == {2: 0, 3: 1}
    assert text(built).startswith("[a, s, Elemwise{add,no_inplace}(a, s), Elemwise{mul")


def test_a_variable_that_is_only_updated_is_an_input(a, s):
    built = construct([a], updates=[(s, a)])
    assert [i.variable for i in built.inputs] == [a, s]
    run(built, 4.0)
    assert s.get_value() == 4.0


def test_two_variables_with_one_storage_are_one_input(s):
    built = construct([], add(s, s.clone()), updates=[(s.clone(), add(s, 1.0))])
    assert len(built.inputs) == 1
    assert run(built) == [20.0]
    assert s.get_value() == 11.0


@pytest.mark.parametrize(
    ("updates", "error", "told"),
    [
        (lambda s, a: [(a, s)], TypeError, "update target must be a SharedVariable"),
        (lambda s, a: [("s", a)], TypeError, "update target must be a SharedVariable"),
        (lambda s, a: [(s, a), (s, s)], ValueError, "already has an update expression: s <= a"),
        (lambda s, a: 3, TypeError, "updates must be a dict or a list of pairs, not 3 of type"),
        (lambda s, a: [(s,)], ValueError, "expected 2 values, got 1"),
        (lambda s, a: [(shared(np.float32(0), name="s32"), a)], TypeError, "shared_var=s32"),
        (lambda s, a: [(shared(np.zeros(2), name="v"), a)], TypeError, r"float64, vector\), upd"),
        (lambda s, a: [(shared(np.int32(0)), 1.5)], TypeError, "must have the same type"),
    ],
)
def test_wrong_updates(a, s, updates, error, told):
    with pytest.raises(error, match=told):
        construct([a], updates=updates(s, a))


def test_an_update_may_not_be_more_broadcastable():
    one = TensorType("float64", (True,))("one")
    with pytest.raises(TypeError, match=r"tensor\.unbroadcast"):
        construct([one], updates=[(shared(np.zeros(3)), one)])


@pytest.fixture
def counter():
    var = shared(1.0, name="counter")
    var.default_update = add(var, 1.0)
    return var


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ({}, 2.0),
        ({"no_default_updates": True}, 1.0),
        ({"no_default_updates": lambda c: [c]}, 1.0),
        ({"no_default_updates": lambda c: []}, 2.0),
        ({"updates": lambda c: [(c, add(c, 10.0))]}, 11.0),
    ],
)
def test_default_updates(counter, options, after):
    options = {k: v(counter) if callable(v) else v for k, v in options.items()}
    assert run(construct([], counter, **options)) == [1.0]
    assert counter.get_value() == after


def test_default_updates_bring_further_ones(counter, s):
    s.default_update = add(s, counter)
    t = shared(0.0)
    built = construct([], updates=[(t, s)])
    assert [i.variable for i in built.inputs] == [s, t, counter]
    run(built)
    assert (t.get_value(), s.get_value(), counter.get_value()) == (10.0, 11.0, 2.0)


def test_wrong_default_updates(counter):
    with pytest.raises(TypeError, match="either a boolean or a list"):
        construct([], counter, no_default_updates="x")
    counter.default_update = vector("v")
    with pytest.raises(TypeError, match="same type as the original shared variable"):
        construct([], counter)


# --- givens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [dict, list, tuple])
def test_givens(a, b, form):
    built = construct([a], mul(b, 2.0), givens=form({b: add(a, 1.0)}.items()))
    assert run(built, 3.0) == [8.0]


@pytest.mark.parametrize("value", [np.float64(3), 3.0, shared(3.0)])
def test_givens_by_values_and_shared_variables(b, value):
    built = construct([], mul(b, 2.0), givens={b: value})
    assert run(built) == [6.0]
    assert len(built.inputs) == 1


def test_givens_of_computed_variables(x):
    z = add(x, constant(np.ones(1)))
    built = construct([x], mul(z, z), givens={z: x})
    assert run(built, [1.0, 2.0]) == [[1.0, 4.0]]


def test_givens_of_one_output_of_two(a, b):
    more, less = Pair()(a)
    built = construct([a, b], [more, less], givens={more: b})
    assert run(built, 1.0, 7.0) == [7.0, 0.0]


def test_givens_reach_updates(a, b, s):
    run(construct([a], updates=[(s, add(s, b))], givens={b: mul(a, 2.0)}), 3.0)
    assert s.get_value() == 16.0


def test_a_replaced_shared_variable_is_still_updated(s):
    built = construct([], s, updates=[(s, add(s, 1.0))], givens={s: shared(7.0)})
    assert run(built) == [7.0]
    assert s.get_value() == 8.0


def test_a_later_given_reads_earlier_ones(a, b):
    c = scalar("c")
    assert run(construct([a], c, givens=[(b, a), (c, add(b, 1.0))]), 1.0) == [2.0]


def test_types_of_givens(x):
    i = TensorType("int32", (False,))("i")
    y = mul(x, x)
    with pytest.raises(TypeError, match="You can try to manually convert i into a TensorType"):
        construct([i], y, givens={x: i})
    built = construct([i], y, givens={x: i}, rebuild_strict=False)
    assert built.graph_outputs[0].type.dtype == "int32"
    assert run(built, np.array([2, 3], "int32")) == [[4, 9]]
    (node,) = io_toposort(built.graph_inputs, built.graph_outputs)
    assert node.origins == (y.owner,) and node.trace == y.owner.trace


def test_an_update_whose_type_a_given_changes_is_refused(a, s):
    i = TensorType("int32", ())("i")
    total = shared(np.float64(0), name="total")
    with pytest.raises(TypeError, match="shared_var=total"):
        construct([i], updates=[(total, mul(a, a))], givens={a: i}, rebuild_strict=False)


@pytest.mark.parametrize(
    ("givens", "error", "told"),
    [
        (lambda a, b, s: {a: add(a, 1.0)}, RuntimeError, "You are trying to replace variable 'a'"),
        (lambda a, b, s: [(b, a), (b, s)], AssertionError, "can not have a new_v variable depend"),
        (lambda a, b, s: [(b, mul(s, 2.0)), (s, a)], AssertionError, "the old_v s is used"),
        (lambda a, b, s: {"b": a}, TypeError, "given keys must be Variable"),
        (lambda a, b, s: 3, TypeError, "givens must be a dict or a list of pairs"),
    ],
)
def test_wrong_givens(a, b, s, givens, error, told):
    with pytest.raises(error, match=told):
        construct([a], add(b, s), givens=givens(a, b, s))


# --- what is missing and what is superfluous ----------------------------------------------------


def test_missing_inputs(a, b):
    with pytest.raises(MissingInputError) as caught:
        construct([a], add(a, b))
    told = str(caught.value)
    assert told.startswith(
        "Input 1 of the graph (indices start from 0), used to compute "
        "Elemwise{add,no_inplace}(a, b), was not provided and not given a value."
    )
    assert "Backtrace when that variable is created" in told and __file__ in told
    assert str(caught.value.variable) == "b"


def test_missing_update(a, s):
    with pytest.raises(MissingInputError, match="Undeclared input: a"):
        construct([], updates=[(s, a)])


def test_undefined_gradients_have_no_value(a):
    for undefined in (grad_undefined(add, 0, a), grad_not_implemented(add, 0, a)):
        for outputs in (undefined, view_op(undefined)):
            with pytest.raises(TypeError, match=r"contains a NaN\. This variable is Null"):
                construct([a], outputs, on_unused_input="ignore")


def test_an_input_of_an_unused_given_is_not_missing(a, b):
    assert run(construct([a], a, givens={scalar("c"): b}), 1.0) == [1.0]


def test_unused_inputs(a, b):
    with pytest.raises(UnusedInputError, match=r"at index 1 is not part .* the outputs: b"):
        construct([a, b], a)
    with pytest.warns(UserWarning, match="at index 1") as caught:
        construct([a, b], a, on_unused_input="warn")
    assert len(caught) == 1
    assert run(construct([a, b], a, on_unused_input="ignore"), 1.0, 2.0) == [1.0]
    with change_flags(on_unused_input="ignore"):
        construct([a, b], a)
        with pytest.raises(UnusedInputError):
            construct([a, b], a, on_unused_input="raise")


def test_on_unused_input_is_checked(a):
    with pytest.raises(ValueError, match=r"Invalid value for keyword on_unused_input .*: 'zz'"):
        construct([a], a, on_unused_input="zz")


def test_inputs_that_only_updates_or_givens_use_are_used(a, b, s):
    construct([a], updates=[(s, a)])
    construct([a], b, givens={b: a})
    construct([In(a, value=1.0, update=constant(2.0, dtype="float64"))])


# --- clone and rebuild_collect_shared -------------------------------------------------------------


def test_clone_replaces(a, b):
    y = add(a, b)
    assert as_string([], [clone(y, {a: mul(a, a)})]) == [
        "Elemwise{add,no_inplace}(Elemwise{mul,no_inplace}(a, a), b)"
    ]
    assert as_string([], clone([y, a], [(a, b), (b, a)])) == ["Elemwise{add,no_inplace}(b, a)", "b"]
    assert as_string([], [y]) == ["Elemwise{add,no_inplace}(a, b)"]


def test_clone_makes_new_applys_over_the_same_inputs(a, s):
    y = add(a, s)
    twin = clone(y)
    assert twin.owner is not y.owner and twin.owner.inputs == [a, s]


def test_clone_with_inputs_of_its_own(a, s):
    twin = clone(add(add(a, s), constant(1.0)), share_inputs=False)
    leaves = [v for v in ancestors([twin]) if v.owner is None]
    assert a not in leaves and s in leaves
    with pytest.warns(UserWarning, match="renamed into `share_inputs`"):
        old = clone(add(a, s), copy_inputs=False)
    assert old.owner.inputs[0] is not a


def test_clone_strict(a):
    i = TensorType("int32", ())("i")
    with pytest.raises(TypeError, match="Cannot convert Type TensorType"):
        clone(add(a, a), {a: i})
    assert clone(add(a, a), {a: i}, strict=False).type.dtype == "int32"


@pytest.mark.parametrize(("replace", "error"), [(3, ValueError), ({"a": 1}, TypeError)])
def test_clone_refuses(a, replace, error):
    with pytest.raises(error):
        clone(a, replace)


def test_rebuild_collect_shared(a, b, s, counter):
    y = mul(add(a, s), counter)
    inputs, outputs, (copies, update_d, update_expr, found) = rebuild_collect_shared(
        [y, Out(s, borrow=True)], [a, b], updates=[(s, add(s, a))]
    )
    assert inputs == [a, b]
    assert as_string([], [outputs[0]]) == as_string([], [y])
    assert outputs[0] is copies[y] and outputs[0] is not y
    assert isinstance(outputs[1], Out) and outputs[1].borrow and outputs[1].variable is s
    assert found == [s, counter]
    assert [var for var, _ in update_expr] == [s, counter]
    assert as_string([], [update_d[s]]) == ["Elemwise{add,no_inplace}(s, a)"]


def test_rebuild_collect_shared_with_new_leaves(a, b, s):
    inputs, output, (copies, _, _, found) = rebuild_collect_shared(
        add(a, mul(b, s)), [a], replace={b: a}, copy_inputs_over=False
    )
    assert inputs == [copies[a]] and inputs[0] is not a
    leaves = {v for v in ancestors([output]) if v.owner is None}
    assert leaves == {copies[a], copies[s]} and copies[s] is not s
    assert copies[s].container is s.container and found == [s]
    with pytest.raises(TypeError, match="Cannot use a shared variable"):
        rebuild_collect_shared(a, [s])
