"""DebugMode finds the faults that are planted, and has nothing to say of sound programs."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Mode, Op, errors, function, shared
from opwise.compile import DebugMode
from opwise.linkers import lowering
from opwise.linkers.lowering import CStep
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rule import rule


class Planted(Op):
    """Copies its input, unless told to do something else."""

    __props__ = ("what",)
    view_map: dict = {}
    destroy_map: dict = {}

    def __init__(self, what="copy"):
        self.what = what

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        (x,), (out,) = inputs, output_storage
        if self.what == "copy":
            out[0] = x.copy()
        elif self.what == "plus one":
            out[0] = x + 1
        elif self.what == "float32":
            out[0] = x.astype("float32")
        elif self.what == "two dimensions":
            out[0] = np.array([x])
        elif self.what == "destroys":
            x += 1
            out[0] = x.copy()
        elif self.what == "returns its input":
            out[0] = x
        elif self.what == "returns a view":
            out[0] = x[::-1]
        elif self.what == "nothing":
            pass


@pytest.fixture
def c_copies(monkeypatch):
    """Planted has a C step for this test: it copies the input."""
    monkeypatch.setattr(lowering, "_lowerings", dict(lowering._lowerings))
    monkeypatch.setattr(lowering, "_found", {})
    lowering.c_lowering(Planted)(lambda node, kernels: CStep("deepcopy"))


def fails(error, out, value=(1.0, 2.0, 3.0), **options):
    """Run a function of x under DebugMode, which must raise just this error; return its text."""
    mode = DebugMode(**{"optimizer": None, **options})
    f = function([X], out, mode=mode)
    with pytest.raises(error) as raised:
        f(np.array(value))
    assert raised.type is error
    return str(raised.value)


X = T.dvector("x")


# --- implementations that differ ----------------------------------------------------------------


def test_c_and_python_differ(c_copies):
    text = fails(errors.BadCLinkerOutput, Planted("plus one")(X) * 2)
    assert issubclass(errors.BadCLinkerOutput, errors.BadThunkOutput)
    for part in (
        "  Apply   : Planted{what='plus one'}(x)",
        "  op      : <class", "  Outputs Type: TensorType(float64, vector)\n",
        "  Inputs Shape: [(3,)]", "  Inputs Strides: [(8,)]",
        "  Inputs values: [array([1., 2., 3.])]", "  thunk1  : perform", "  thunk2  : c_code",
        "  Expected : (3,) float64 (8,) 2.0 4.0 0 0", "  Max Abs Diff:  1.0\n",
        "  Max Rel Diff:  0.5\n",
        "at index (0,): expected 2.0, got 1.0", __file__,
    ):  # fmt: skip
        assert part in text, part


def test_each_implementation_can_be_left_out(c_copies):
    out = Planted("plus one")(X)
    python = function([X], out, mode=DebugMode(optimizer=None, check_c_code=False))
    np.testing.assert_array_equal(python([1.0]), [2.0])
    c = function([X], out, mode=DebugMode(optimizer=None, check_py_code=False))
    np.testing.assert_array_equal(c([1.0]), [1.0])


def test_agreement_within_rounding_is_agreement():
    f = function([X], T.exp(X) / T.log(X + 2), mode=DebugMode())
    np.testing.assert_allclose(f([0.1, 1.0]), np.exp([0.1, 1]) / np.log([2.1, 3]))


# --- rewrites -----------------------------------------------------------------------------------


class Rewriting(Optimizer):
    """Applies a function to a graph."""

    def __init__(self, change):
        self.change = change

    def apply(self, fgraph):
        self.change(fgraph)


def bad_pass(wanted):
    """A pass that replaces every product by what ``wanted`` makes of its operands."""

    def change(fgraph):
        for node in fgraph.toposort():
            if node.op == T.mul:
                new = wanted(*node.inputs)
                fgraph.replace_all([(node.outputs[0], new)], reason="bad_rewrite")

    return Rewriting(change)


def test_a_rewrite_that_changes_values():
    text = fails(
        errors.BadOptimization, T.sqr(X * 3.0), optimizer=bad_pass(lambda a, b: T.second(b, a))
    )
    for part in (
        "BadOptimization Error \n", "  Old Value shape, dtype, strides: (3,) float64 (8,)\n\n",
        "  Old Value:  [3. 6. 9.]\n", "  New Value:  [1. 2. 3.]\n", "  Max Abs Diff:  6.0\n",
        "  Value at Max Diff:  (3.0, 9.0)\n", "  Reason:  bad_rewrite\n",
        "  Old Graph:\n  Elemwise{mul,no_inplace} [id A] <TensorType(float64, vector)> ''   \n",
        "  New Graph:\n  Elemwise{second,no_inplace} [id A]", __file__,
        "Hint: relax the tolerance by setting tensor.cmp_sloppy=1\n  or even tensor.cmp_sloppy=2",
    ):  # fmt: skip
        assert part in text, part


def test_a_rewrite_that_changes_shapes():
    text = fails(
        errors.BadOptimization, T.sqr(X * 3.0), optimizer=bad_pass(lambda a, b: (a * 3)[:2])
    )
    assert "Old Value shape, dtype, strides: (3,) float64 (8,)" in text
    assert "New Value shape, dtype, strides: (2,) float64 (8,)" in text


def test_a_rewrite_that_is_right():
    right = bad_pass(lambda a, b: T.true_div(a, T.true_div(1.0, b)))
    f = function([X], X * 3.0 + 1, mode=DebugMode(optimizer=right))
    np.testing.assert_allclose(f([1.0, 2.0]), [4, 7])


def test_a_rule_that_is_wrong_under_the_usual_optimizer(monkeypatch):
    """As a user would meet it: one wrong rule among the right ones."""

    @rule("row:add")
    def wrong(fgraph, node):
        return [T.sub(*node.inputs)] if len(node.inputs) == 2 else None

    from opwise.optimizers.navigators import EquilibriumOptimizer

    mode = DebugMode().register((EquilibriumOptimizer([wrong]), 1.3))
    f = function([X], T.exp(X) + T.tanh(X), mode=mode)
    with pytest.raises(errors.BadOptimization):
        f([1.0, 2.0])


def test_nan_that_a_rewrite_makes_a_number():
    """x / x is 1 under fast_run, also where x is 0: DebugMode says so if it is asked to look."""
    f = function([X], X / X, mode=DebugMode(check_isfinite=False))
    np.testing.assert_array_equal(f([1.0, 2.0]), [1, 1])
    assert function([X], X / X, mode=Mode("py", "fast_run"))([0.0])[0] == 1
    with pytest.raises(errors.BadOptimization):
        f([0.0, 1.0])


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[-1.0, 1.0], [0.0, 1.0]], ids=["nan", "inf"])
def test_values_that_are_not_finite(value):
    text = fails(errors.InvalidValueError, T.log(X) * 2, value)
    assert "non-finite elements not allowed" in text and "perform output" in text
    assert "log" in text and __file__ in text
    f = function([X], T.log(X), mode=DebugMode(check_isfinite=False))
    assert not np.isfinite(f(value)[0])


def test_an_input_that_is_not_finite():
    text = fails(errors.InvalidValueError, X * 2, [np.nan, 1.0])
    assert "        hint           = Graph Input 'x' has invalid value [nan  1.]\n" in text
    assert "        specific_hint  = none\n" in text and __file__ in text


class Unwritten(Op):
    """Makes an array that holds NaN; what it holds means nothing, and the variable says so."""

    __props__ = ()

    def make_node(self, x):
        out = x.type()
        out.tag.nan_guard_mode_check = False
        return Apply(self, [x], [out])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.full(inputs[0].shape, np.nan)


def test_unwritten_values_are_not_checked():
    f = function([X], T.switch(T.isnan(Unwritten()(X)), 1.0, 0.0), mode=DebugMode())
    np.testing.assert_array_equal(f([5.0, 6.0]), [1, 1])


@pytest.mark.parametrize(
    ("what", "dtype", "hint"),
    [
        ("float32", "float32", "expected a ndarray object with dtype = float64 (got float32)."),
        ("two dimensions", "float64", "Wrong number of dimensions: expected 1, got 2"),
        ("nothing", "N/A", "('TensorType(float64, vector) expected a ndarray object.', None, "),
    ],
)
def test_results_that_are_not_what_was_declared(what, dtype, hint):
    text = fails(errors.InvalidValueError, Planted(what)(X))
    for part in (
        "InvalidValueError\n        type(variable) = TensorType(float64, vector)\n",
        f"        variable       = Planted{{what='{what}'}}.0\n",
        f"        dtype(value)   = {dtype}\n", "        client_node    = None\n",
        "        hint           = perform output\n", hint,
        f"        context        = ...\n  Planted{{what='{what}'}} [id A] ''   \n   |x [id B]\n",
    ):  # fmt: skip
        assert part in text, part


def test_a_result_of_the_wrong_broadcast_pattern():
    class Row(Planted):
        def make_node(self, x):
            return Apply(self, [x], [T.TensorType("float64", (True,))()])

    text = fails(errors.InvalidValueError, Row("plus one")(X))
    assert "Non-unit value on shape on a broadcastable dimension" in text


# --- memory -------------------------------------------------------------------------------------


def test_an_undeclared_overwrite():
    text = fails(errors.BadDestroyMap, Planted("destroys")(X + 1))
    for part in ("node: Planted{what='destroys'}(", "destroy_map: {}", "changed input idx: 0",
                 "repr (old val): array([2., 3., 4.])", "repr (new val): array([3., 4., 5.])",
                 "perform: py\n", "value min (new-old): 1.0", "value argmax (new-old): (0,)",
                 "location of first 10 mismatches: [[0]\n [1]\n [2]]", __file__):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("what", ["returns its input", "returns a view"])
def test_an_undeclared_view(what):
    text = fails(errors.BadViewMap, Planted(what)(X + 1))
    assert "aliased output: 0" in text and "aliased to inputs: [0]" in text


def test_declared_views_and_overwrites():
    class Reverse(Planted):
        view_map = {0: [0]}

    class Increment(Planted):
        destroy_map = {0: [0]}

        def perform(self, node, inputs, output_storage):
            inputs[0] += 1
            output_storage[0][0] = inputs[0]

    f = function([X], Reverse("returns a view")(Increment("in place")(X * 2)),
                 mode=DebugMode(optimizer=None), accept_inplace=True)  # fmt: skip
    np.testing.assert_array_equal(f([1.0, 2.0]), [5, 3])


# --- sound programs -----------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["fast_run", "fast_compile", None, "stabilize"])
def test_training(optimizer):
    x, y = T.dmatrices("xy")
    w = shared(np.full((3, 2), 0.1), name="w")
    cost = T.sqr(T.nnet.sigmoid(T.dot(x, w)) - y).sum()
    f = function(
        [x, y], cost, updates=[(w, w - 0.1 * T.grad(cost, w))], mode=DebugMode(optimizer=optimizer)
    )
    w2 = shared(np.full((3, 2), 0.1), name="w")
    cost2 = opwise.clone(cost, {w: w2})
    g = function([x, y], cost2, updates=[(w2, w2 - 0.1 * T.grad(cost2, w2))], mode=Mode("py", None))
    a, b = np.random.rand(4, 3), np.random.rand(4, 2)
    for _ in range(3):
        np.testing.assert_allclose(f(a, b), g(a, b))
    np.testing.assert_allclose(w.get_value(), w2.get_value())


def test_views_and_parts():
    x = T.dmatrix("x")
    w = shared(np.zeros((3, 3)), name="w")
    out = [x.T[::-1].sum(axis=0), x.reshape((-1,)), T.concatenate([x, x[:1]]), x.max(axis=1)]
    f = function([x], out, updates=[(w, T.inc_subtensor(w[1:], x[:2]))], mode=DebugMode())
    value = np.arange(9.0).reshape(3, 3)
    results = f(value)
    np.testing.assert_array_equal(results[1], np.arange(9.0))
    np.testing.assert_array_equal(w.get_value()[1:], value[:2])


def test_a_failed_check_keeps_shared_values(c_copies):
    w = shared(np.ones(3), name="w")
    f = function([X], Planted("plus one")(X), updates=[(w, w * 2)], mode=DebugMode())
    with pytest.raises(errors.BadCLinkerOutput):
        f([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(w.get_value(), [1, 1, 1])


# --- options ------------------------------------------------------------------------------------


def test_options_come_from_flags(flags):
    flags({"DebugMode.check_c": False, "DebugMode.patience": 3, "DebugMode.check_finite": False})
    flags({"DebugMode.check_strides": 2})
    flags({"DebugMode.check_preallocated_output": "initial:previous"})
    mode = DebugMode()
    assert mode.check_c_code is False and mode.check_py_code is True
    assert mode.stability_patience == 3 and mode.check_isfinite is False
    assert mode.require_matching_strides == 2
    assert mode.check_preallocated_output == ["initial", "previous"]
    mode = DebugMode(check_c_code=True, stability_patience=5)
    assert mode.check_c_code is True and mode.stability_patience == 5


def test_python_or_c_must_be_checked():
    with pytest.raises(ValueError, match="at least one of c and py"):
        DebugMode(check_c_code=False, check_py_code=False)


def test_other_linkers_are_refused():
    with pytest.raises(Exception, match="DebugMode can only use its own linker"):
        DebugMode(linker="py")


def test_profiling_is_refused():
    with pytest.raises(Exception, match="DebugMode do not support profiling"):
        function([X], X + 1, mode=DebugMode(), profile=True)


@pytest.mark.parametrize("mode", ["DEBUG_MODE", "DebugMode"])
def test_by_name(mode):
    f = function([X], 10 * X, mode=mode)
    for value in ([5.0], [0.0], [7.0]):
        np.testing.assert_array_equal(f(value), [10 * value[0]])
    with pytest.raises(TypeError, match=r"expected 1, got 0(.|\n)*takes a list or a vector"):
        f(5)


def test_errors_have_one_base():
    for name in ("BadThunkOutput", "BadCLinkerOutput", "BadDestroyMap", "BadViewMap",
                 "StochasticOrder", "InvalidValueError"):  # fmt: skip
        assert issubclass(getattr(errors, name), errors.DebugModeError)
