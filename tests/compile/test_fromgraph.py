"""OpFromGraph: values, gradients and their overrides, the R-operator, shapes, errors, modes."""

import copy
import functools
import pickle
import sys

import numpy as np
import pytest

import opwise.tensor as T
from opwise import (
    Mode,
    OpFromGraph,
    ProfileMode,
    Rop,
    change_flags,
    function,
    grad,
    shared,
    verify_grad,
)
from opwise.errors import NullTypeGradError
from opwise.gradient import DisconnectedInputError, DisconnectedType, NullType
from opwise.graph.traversal import io_toposort
from opwise.loops import scan
from opwise.nn import pool_2d
from opwise.tensor import Elemwise

pytestmark = pytest.mark.null

MODES = ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", "PROFILE_MODE"]
X, Y, Z = np.ones((2, 2)), np.full((2, 2), 3.0), np.full((2, 2), 5.0)


@pytest.fixture
def xyz():
    return T.dmatrices("xyz")


@pytest.fixture(params=[False, True], ids=["function", "inline"])
def inline(request):
    return request.param


@pytest.fixture(params=MODES)
def mode(request, flags):
    flags(cxx="")
    return ProfileMode() if request.param == "PROFILE_MODE" else request.param


def ops_of(f):
    return [type(node.op) for node in f.maker.fgraph.toposort()]


# --- values ---------------------------------------------------------------------------------------


def test_it_computes_its_graph(xyz, inline, mode):
    x, y, z = xyz
    op = OpFromGraph([x, y, z], [x + y * z], inline=inline)
    f = function([x, y, z], op(x, y, z) - op(z, y, x), mode=mode)
    assert (OpFromGraph in ops_of(f)) == (not inline)
    np.testing.assert_array_equal(f(X, Y, Z), 16.0 - 8.0)


def test_shared_variables_of_the_graph_are_read_at_each_call(xyz, inline, mode):
    x, *_ = xyz
    s = shared(np.ones((2, 2)), "s")
    op = OpFromGraph([x], [x * s])
    f = function([x], op(x), mode=mode)
    np.testing.assert_array_equal(f(Y), 3.0)
    s.set_value(Z)
    np.testing.assert_array_equal(f(Y), 15.0)
    slope = function([x], grad(T.sum(op(x)), [x, s]), mode=mode)
    for found, expected in zip(slope(Y), (Z, Y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_it_may_be_nested_and_have_several_outputs(xyz, inline, mode):
    x, y, z = xyz
    inner = OpFromGraph([x, y], [x * y, x + y], inline=inline)
    product, total = inner(x, y)
    outer = OpFromGraph([x, y, z], [inner(product, z)[1], total], inline=inline)
    f = function([x, y, z], outer(x, y, z), mode=mode)
    for found, expected in zip(f(X, Y, Z), (8.0, 4.0), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_an_output_may_be_an_input_and_inputs_may_be_equal(xyz, mode):
    x, y, z = xyz
    op = OpFromGraph([x, y, x], [x, y * 2])
    first, second = op(x, y, z)
    for found, expected in zip(function([x, y, z], [first, second], mode=mode)(X, Y, Z), (X, 6.0),
                               strict=True):  # fmt: skip
        np.testing.assert_array_equal(found, expected)


def test_numbers_and_other_dtypes_are_converted(xyz):
    v = T.fvector("v")
    op = OpFromGraph([v], [v * 2])
    assert op([1, 2]).eval().tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="Cannot convert"):
        op(T.dvector())


def test_the_graph_is_compiled_once_for_a_function(xyz, monkeypatch):
    from opwise.compile import fromgraph

    compiled = []
    real = fromgraph.function
    monkeypatch.setattr(
        fromgraph, "function", lambda *a, **k: compiled.append(k["mode"]) or real(*a, **k)
    )
    x, y, z = xyz
    # a profile has the times inside each Apply, so each has what is compiled for itself
    for mode, count in (("FAST_COMPILE", 1), (ProfileMode(), 3)):
        compiled.clear()
        op = OpFromGraph([x, y], [x * y])
        f = function([x, y, z], op(op(x, y), op(y, z)), mode=mode)
        f(X, Y, Z), f(X, Y, Z)
        assert len(compiled) == count


def test_the_mode_of_the_function_runs_the_graph(xyz):
    x, y, z = xyz
    op = OpFromGraph([x, y, z], [x + y * z])
    for mode, count in (("FAST_COMPILE", 2), ("FAST_RUN", 1)):
        (node,) = function([x, y, z], op(x, y, z), mode=mode).maker.fgraph.toposort()
        assert len(node.tag.inside.maker.fgraph.apply_nodes) == count
    own = OpFromGraph([x, y, z], [x + y * z], mode="FAST_COMPILE")
    (node,) = function([x, y, z], own(x, y, z), mode="FAST_RUN").maker.fgraph.toposort()
    assert len(node.tag.inside.maker.fgraph.apply_nodes) == 2


def test_debug_mode_checks_inside(xyz):
    from opwise import Apply, Op
    from opwise.errors import BadViewMap

    class Liar(Op):
        """Returns its input and does not say so."""

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, output_storage):
            output_storage[0][0] = inputs[0]

    x, *_ = xyz
    f = function([x], OpFromGraph([x], [Liar()(x * 2) + 1])(x), mode="DEBUG_MODE")
    with pytest.raises(BadViewMap):
        f(X)


def test_a_profile_counts_the_time_inside_once(xyz):
    x, y, z = xyz
    mode = ProfileMode()
    op = OpFromGraph([x, y, z], [T.dot(x, y) + z], name="affine")
    f = function([x, y, z], T.exp(op(x, y, z)), mode=mode)
    f(X, Y, Z)
    assert len(mode.profile().functions) == 1
    assert set(mode.op_time) == {"affine{inline=False}", "Gemm{no_inplace}", *(
        str(n.op) for n in f.maker.fgraph.toposort() if isinstance(n.op, Elemwise)
    )}  # fmt: skip
    whole, inside = mode.profile().functions[0].applys[0], mode.profile().functions[0].applys[-1]
    assert (inside.inside, inside.loop) == (whole.position, whole.op)
    assert whole.inner == inside.total


def test_test_values_run_the_graph(xyz):
    x = T.dscalar("x")
    x.tag.test_value = np.array(2.0)
    op = OpFromGraph([x], [x**3])
    with change_flags(compute_test_value="raise"):
        y = T.dscalar("y")
        y.tag.test_value = np.array(1.0)
        out = op(y)
        assert out.tag.test_value == 1.0
        assert grad(out, y).tag.test_value == 3.0


def test_updates_of_the_function_see_it(xyz):
    x, *_ = xyz
    total = shared(np.zeros((2, 2)))
    op = OpFromGraph([x], [x + total])
    f = function([x], updates=[(total, op(x))], mode="FAST_RUN")
    f(Y), f(Y)
    np.testing.assert_array_equal(total.get_value(), 6.0)


# --- shapes ---------------------------------------------------------------------------------------


def test_shapes_follow_from_those_of_the_inputs(xyz, mode):
    x, y, _ = xyz
    op = OpFromGraph([x, y], [T.dot(x, y), x.T])
    f = function([x, y], [out.shape for out in op(x, y)], mode=mode)
    assert [s.tolist() for s in f(np.ones((2, 3)), np.ones((3, 4)))] == [[2, 4], [3, 2]]
    if mode == "FAST_RUN":
        assert OpFromGraph not in ops_of(f)


def test_a_shape_that_depends_on_values_inside_is_read_from_the_output(mode):
    v = T.dvector("v")
    op = OpFromGraph([v], [T.nonzero_values(v)])
    f = function([v], op(v).shape, mode=mode)
    assert f([0.0, 2.0, 3.0]).tolist() == [2]


def _scanned(n):
    return scan(lambda a: a * 2.0, outputs_info=[T.constant(1.0)], n_steps=n + 1)[0]


@pytest.mark.parametrize(
    "build, expected",
    [
        (lambda n, x: T.arange(n * 2), (6,)),
        (lambda n, x: T.zeros((n + 1,)), (4,)),
        (lambda n, x: T.tile(x, (2, 3)), (4, 9)),
        (lambda n, x: T.repeat(x, 3, axis=0), (6, 3)),
        (lambda n, x: T.concatenate([x, x[:1]]), (3, 3)),
        (lambda n, x: pool_2d(x, (2, 2), ignore_border=True), (1, 1)),
        (lambda n, x: _scanned(n), (4,)),
        (lambda n, x: OpFromGraph([n], [T.arange(n * 2) + 1])(n), (6,)),
    ],
)
def test_a_shape_may_use_constants_of_the_graph(build, expected, inline, mode, flags):
    flags(on_opt_error="raise")
    n, x = T.lscalar("n"), T.dmatrix("x")
    y = OpFromGraph([n, x], [build(n, x)], inline=inline)(n, x)
    f = function([n, x], [y.shape, (y + 1).shape[0] * 2], mode=mode, on_unused_input="ignore")
    shape, twice = f(3, np.ones((2, 3)))
    assert tuple(shape) == expected and twice == 2 * expected[0]


# --- gradients ------------------------------------------------------------------------------------


def test_gradients_of_any_order(xyz, inline, mode):
    x, y, z = xyz
    op = OpFromGraph([x, y, z], [T.tanh(x) + y * z], inline=inline)
    first = grad(T.sum(op(x, y, z) ** 2), y)
    second = grad(T.sum(first), z)
    plain = T.tanh(x) + y * z
    plain_second = grad(T.sum(grad(T.sum(plain**2), y)), z)
    f = function([x, y, z], [second, plain_second], mode=mode)
    np.testing.assert_allclose(*f(X, Y, Z))


def test_gradients_agree_with_finite_differences():
    x, y = T.dmatrix(), T.dvector()
    op = OpFromGraph([x, y], [T.nnet.sigmoid(T.dot(x, y)), x * 2])
    rng = np.random.RandomState(0)
    for k in range(2):
        verify_grad(lambda a, b, k=k: op(a, b)[k], [rng.rand(3, 2), rng.rand(2)], rng=rng)


def test_only_one_of_several_outputs_may_be_used(xyz, mode):
    x, y, z = xyz
    op = OpFromGraph([x, y, z], [x * y, y * z])
    first, _ = op(x, y, z)
    slope = grad(T.sum(first), [x, y])
    for found, expected in zip(function([x, y, z], slope, mode=mode, on_unused_input="ignore")(
        X, Y, Z), (Y, X), strict=True):  # fmt: skip
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(DisconnectedInputError):
        grad(T.sum(first), z)


def test_discrete_inputs_and_outputs(mode):
    x, k = T.dvector("x"), T.lscalar("k")
    op = OpFromGraph([x, k], [x * k, T.argmax(x)])
    scaled, best = op(x, k)
    f = function([x, k], grad(T.sum(scaled) + best, x), mode=mode)
    assert f([1.0, 5.0], 3).tolist() == [3.0, 3.0]


def test_a_function_may_override_one_gradient(inline, mode):
    x, y = T.dvectors("xy")

    def doubled(inputs, gradients):
        return gradients[0] * inputs[0] * 2

    op = OpFromGraph([x, y], [x * y], inline=inline, grad_overrides=["default", doubled])
    f = function([x, y], grad(T.sum(op(x, y)), [x, y]), mode=mode)
    dx, dy = f([1.0, 2.0], [3.0, 4.0])
    assert (dx.tolist(), dy.tolist()) == ([3.0, 4.0], [2.0, 4.0])


def test_a_function_may_override_all_gradients(mode):
    x, y = T.dvectors("xy")

    def gradients(inputs, outputs, output_gradients):
        return [outputs[0] * output_gradients[0], inputs[0]]

    op = OpFromGraph([x, y], [x + y], lop_overrides=gradients)
    f = function([x, y], grad(T.sum(op(x, y)), [x, y]), mode=mode)
    dx, dy = f([1.0, 2.0], [3.0, 4.0])
    assert (dx.tolist(), dy.tolist()) == ([4.0, 6.0], [1.0, 2.0])


@pytest.mark.parametrize("form", ["lop", "grad"])
def test_an_op_may_override_gradients(form):
    x, y, out, g = T.dvectors("x", "y", "out", "g")
    given = [x, y, out, g] if form == "lop" else [x, y, g]
    backward = OpFromGraph(given, [g * 5, g * y])
    op = OpFromGraph([x, y], [x * y], **{f"{form}_overrides": backward})
    dx, dy = function([x, y], grad(T.sum(op(x, y)), [x, y]))([1.0, 2.0], [3.0, 4.0])
    assert (dx.tolist(), dy.tolist()) == ([5.0, 5.0], [3.0, 4.0])


@pytest.mark.parametrize("scaled", [False, True], ids=["", "the graph reads one too"])
@pytest.mark.parametrize("form", ["grad", "lop", "list", "op", "rop", "rop list", "rop op"])
def test_an_override_may_read_shared_variables(form, scaled, inline, mode):
    """As in a layer that reverses gradients with a strength that changes between calls."""
    x, g = T.dvectors("xg")
    strength, scale = shared(2.0, "strength"), shared(1.0, "scale")
    overrides = {
        "grad": {"grad_overrides": lambda inputs, gradients: [-strength * gradients[0]]},
        "lop": {"lop_overrides": lambda inputs, outputs, gradients: [-strength * gradients[0]]},
        "list": {"lop_overrides": [lambda inputs, outputs, gradients: -strength * gradients[0]]},
        "op": {"grad_overrides": OpFromGraph([x, g], [-strength * g])},
        "rop": {"rop_overrides": lambda inputs, points: [-strength * points[0]]},
        "rop list": {"rop_overrides": [lambda inputs, points: -strength * points[0]]},
        "rop op": {"rop_overrides": OpFromGraph([x, g], [-strength * g])},
    }[form]
    y = OpFromGraph([x], [x * scale if scaled else x * 1.0], inline=inline, **overrides)(x)
    slope = Rop(y, x, T.ones_like(x)) if form.startswith("rop") else grad(T.sum(y), x)
    f = function([x], [slope, y], mode=mode)
    assert [v.tolist() for v in f([1.0, 3.0])] == [[-2.0, -2.0], [1.0, 3.0]]
    strength.set_value(5.0)
    assert f([1.0, 3.0])[0].tolist() == [-5.0, -5.0]


def test_gradients_by_the_shared_variables_of_graph_and_override(inline):
    x = T.dvector("x")
    strength, scale = shared(2.0, "strength"), shared(3.0, "scale")

    def reversed_(inputs, outputs, gradients):
        return [-strength * inputs[0] * gradients[0]]

    y = OpFromGraph([x], [x * scale], inline=inline, lop_overrides=reversed_)(x)
    slope, by_scale = grad(T.sum(y), [x, scale])
    f = function([x], [by_scale, *grad(T.sum(slope), [x, strength])])
    assert [v.tolist() for v in f([1.0, 3.0])] == [4.0, [-2.0, -2.0], -4.0]


def test_overrides_say_that_gradients_are_undefined_or_disconnected():
    x, y = T.dvectors("xy")
    op = OpFromGraph([x, y], [x * y], grad_overrides=[NullType()(), DisconnectedType()()])
    with pytest.raises(NullTypeGradError):
        grad(T.sum(op(x, y)), x)
    with pytest.raises(DisconnectedInputError):
        grad(T.sum(op(x, y)), y)
    everywhere = OpFromGraph([x, y], [x * y], grad_overrides=DisconnectedType()())
    assert everywhere.connection_pattern(None) == [[False], [False]]


def test_overrides_may_be_replaced():
    x = T.dvector("x")
    op = OpFromGraph([x], [x * 2], grad_overrides=lambda inputs, gradients: [gradients[0] * 7])
    assert function([x], grad(T.sum(op(x)), x))([1.0]).tolist() == [7.0]
    op.set_grad_overrides("default")
    assert function([x], grad(T.sum(op(x)), x))([1.0]).tolist() == [2.0]
    op.set_lop_overrides(lambda inputs, outputs, gradients: [outputs[0]])
    assert function([x], grad(T.sum(op(x)), x))([4.0]).tolist() == [8.0]


def test_the_connections_are_those_of_the_graph(xyz):
    x, y, z = xyz
    op = OpFromGraph([x, y, z], [x * y, y * z])
    assert op.connection_pattern(None) == [[True, False], [True, True], [False, True]]
    given = [[True], [False], [True]]
    assert OpFromGraph([x, y, z], [x + y + z], connection_pattern=given).connection_pattern(
        None
    ) is given  # fmt: skip


# --- the R-operator -------------------------------------------------------------------------------


def test_the_r_operator_is_that_of_the_graph(xyz, inline, mode):
    x, y, _ = xyz
    u = T.dmatrix("u")
    op = OpFromGraph([x, y], [T.dot(x, y), y * 2], inline=inline)
    first, second = op(x, y)
    f = function([x, y, u], Rop(first**2, x, u), mode=mode)
    np.testing.assert_allclose(f(X, Y, Z), 2 * X.dot(Y) * Z.dot(Y))
    still = function([x, y, u], Rop(second, x, u), mode=mode, on_unused_input="ignore")
    np.testing.assert_array_equal(still(X, Y, Z), np.zeros((2, 2)))


def test_a_function_may_override_the_r_operator():
    x, y, u, v = T.dvectors("x", "y", "u", "v")

    def forward(inputs, directions):
        return [inputs[0] * directions[1] * 2]

    op = OpFromGraph([x, y], [x * y], rop_overrides=forward)
    f = function([x, y, u, v], Rop(op(x, y), [x, y], [u, v]), on_unused_input="ignore")
    assert f([3.0], [1.0], [1.0], [4.0]).tolist() == [24.0]
    one = function([x, y, u], Rop(op(x, y), x, u), on_unused_input="ignore")
    assert one([3.0], [1.0], [1.0]).tolist() == [0.0]
    undefined = OpFromGraph([x], [x * 2], rop_overrides=[NullType()()])
    assert isinstance(undefined.R_op([x], [u])[0].type, NullType)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda x: OpFromGraph([x], x * 2), TypeError),
        (lambda x: OpFromGraph((x,), [x * 2]), TypeError),
        (lambda x: OpFromGraph([1.0], [x]), TypeError),
        (lambda x: OpFromGraph([x], [x], updates={}), TypeError),
        (lambda x: OpFromGraph([x], [x], givens={}), TypeError),
        (lambda x: OpFromGraph([x], [x], gives={}), TypeError),
        (lambda x: OpFromGraph([x], [x], name=1), AssertionError),
        (lambda x: OpFromGraph([x], [x * 2])(x, x), ValueError),
        (lambda x: OpFromGraph([x], [x * 2], lop_overrides=len, grad_overrides=len), ValueError),
    ],
)
def test_arguments_are_checked(make, error):
    with pytest.raises(error):
        make(T.dvector("x"))


@pytest.mark.parametrize(
    ("overrides", "error", "said"),
    [
        (3, TypeError, "override should be"),
        ([3], TypeError, "override should be"),
        (["default"] * 2, ValueError, "Need to override 1"),
        (T.dvector(), ValueError, "DisconnectedType or NullType"),
        (lambda inputs, gradients: gradients[0], TypeError, "return a list"),
        (lambda inputs, gradients: gradients * 2, ValueError, "Need to override 1"),
        (OpFromGraph(T.dvectors("abc"), [T.dvector()]), ValueError, "with 2 inputs, got 3"),
    ],
)
def test_overrides_are_checked(overrides, error, said):
    x = T.dvector("x")
    op = OpFromGraph([x], [x * 2], grad_overrides=overrides)
    with pytest.raises(error, match=said):
        grad(T.sum(op(x)), x)


@pytest.mark.parametrize("cached", [False, True], ids=["", "cached"])
@pytest.mark.parametrize("linked", ["FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", None])
def test_any_number_of_levels(inline, linked, cached, flags, use_cache, tmp_path):
    """Neither compiling nor running nor deriving recurses over graphs in graphs."""
    flags(cxx="", cache_graphs=cached)
    if cached:
        use_cache(tmp_path, compiledir_bytes=-1)
    mode = {"PROFILE_MODE": ProfileMode, None: lambda: Mode("vm", None)}.get(linked, lambda: linked)
    x, s = T.dvector("x"), shared(2.0, "s")
    op = OpFromGraph([x], [x * 2.0 - x], inline=inline)
    for k in range(400):
        op = OpFromGraph([x], [op(x) + (s if k % 100 == 0 else 1.0)], inline=inline)
    y = op(x)
    f = function([x], [y, y.shape, *grad(T.sum(y), [x, s])], mode=mode())
    assert [v.tolist() for v in f([1.0, 5.0])] == [[405.0, 409.0], [2], [1.0, 1.0], 8.0]
    direction = function([x], Rop(y, x, T.ones_like(x)), mode=mode())
    assert direction([1.0, 5.0]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("duplicate", [lambda f: pickle.loads(pickle.dumps(f)), copy.deepcopy])
def test_functions_with_many_levels_are_copied(duplicate, inline):
    x = T.dvector("x")
    op = OpFromGraph([x], [x * 2.0], inline=inline)
    for _ in range(30):
        op = OpFromGraph([x], [op(x) + 1.0], inline=inline)
    f = duplicate(function([x], [op(x), grad(T.sum(op(x)), x)]))
    assert [v.tolist() for v in f([1.0])] == [[32.0], [2.0]]


def _tripled(inputs, gradients):
    return [gradients[0] * 3]


def _levels(op, x, n):
    """Return ``n`` graphs around an Op, with overrides, so that they stay apart."""
    for _ in range(n):
        op = OpFromGraph([x], [op(x) + 1.0], grad_overrides=_tripled)
    return op


def _repeated(op, x, n):
    """Return ``n`` loops around an Op."""
    steps = T.lscalar("steps")
    for _ in range(n):
        op = functools.partial(
            lambda inner, a: scan(inner, outputs_info=[a], n_steps=steps)[0][-1], op
        )
    return op


@pytest.mark.parametrize("wrapped", [_levels, _repeated])
@pytest.mark.parametrize("duplicate", [lambda y: pickle.loads(pickle.dumps(y)), copy.deepcopy])
def test_graphs_with_many_levels_are_copied(duplicate, wrapped):
    """Copies and pickles do not recurse over graphs in graphs."""
    x = T.dvector("x")
    levels = 400 if wrapped is _levels else 120
    found, outputs = 0, [duplicate(wrapped(T.exp, x, levels)(x))]
    while True:
        held = [n.op._inner_outputs for n in io_toposort([], outputs) if n.op._inner_outputs]
        if not held:
            break
        (outputs,) = held
        found += 1
    assert found == levels


def test_too_many_levels_to_compile(flags):
    flags(cxx="", cache_graphs=False)
    x = T.dvector("x")
    y = _levels(T.exp, x, 400)(x)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # theano.misc.pkl_utils raises it
    try:
        with pytest.raises(RecursionError, match=r"400 levels of graphs .* sys\.setrecursionlim"):
            function([x], y, mode="FAST_COMPILE")
    finally:
        sys.setrecursionlimit(before)


def test_levels_with_overrides_stay(inline):
    x = T.dvector("x")
    op = OpFromGraph([x], [x * 1.0], grad_overrides=lambda inputs, gradients: [gradients[0] * 3])
    for _ in range(60):
        op = OpFromGraph([x], [op(x) + 1.0], inline=inline)
    f = function([x], [op(x), grad(T.sum(op(x)), x)])
    assert [v.tolist() for v in f([1.0])] == [[61.0], [3.0]]


def test_a_failure_inside_names_the_apply_and_the_line(xyz, mode):
    x, y, _ = xyz
    op = OpFromGraph([x, y], [x + y])  # this line
    with pytest.raises(ValueError, match=r"(?i)dimension mis-?match") as caught:
        function([x, y], op(x, y), mode=mode)(X, np.ones((3, 2)))
    assert "Elemwise{" in str(caught.value)
    assert "[x + y])  # this line" in str(caught.value)


def test_functions_inline_copies_of_constants(xyz):
    """DebugMode optimizes a second copy of the graph while the first one owns what it inlined."""
    x, *_ = xyz
    op = OpFromGraph([x], [x * 2.5 + T.exp(T.arange(2.0))], inline=True)
    for mode in ("DEBUG_MODE", "FAST_COMPILE"):
        functions = [function([x], op(x), mode=mode) for _ in range(2)]
        for f in functions:
            np.testing.assert_allclose(f(X), X * 2.5 + np.exp(np.arange(2)))
            assert not any(isinstance(node.op, OpFromGraph) for node in f.maker.fgraph.apply_nodes)


# --- the object -----------------------------------------------------------------------------------


def test_its_name_is_printed(xyz):
    x, *_ = xyz
    assert str(OpFromGraph([x], [x])) == "OpFromGraph{inline=False}"
    assert str(OpFromGraph([x], [x], inline=True, name="f")) == "f{inline=True}"


def test_it_pickles(xyz):
    x, y, _ = xyz
    op = OpFromGraph([x, y], [x * y])
    f = function([x, y], [op(x, y), *grad(T.sum(op(x, y)), [x, y])])
    expected = f(X, Y)
    for found, value in zip(pickle.loads(pickle.dumps(f))(X, Y), expected, strict=True):
        np.testing.assert_array_equal(found, value)


def test_the_keyword_of_older_versions(xyz):
    x, *_ = xyz
    assert OpFromGraph([x], [x * 2], grad_depth=2)(x).eval({x: X})[0, 0] == 2.0
    assert OpFromGraph([x], [x * 2], grad_overrides=None)(x).eval({x: X})[0, 0] == 2.0
