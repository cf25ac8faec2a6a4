"""Planted faults: DebugMode raises the right class and names the culprit; without it, nothing."""

import logging

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, Mode, Op, errors, function, shared
from opwise.compile import DebugMode, optdb
from opwise.linkers import kernels, lowering
from opwise.linkers.lowering import CStep
from opwise.optimizers.navigators import EquilibriumOptimizer
from opwise.optimizers.passes import Optimizer
from opwise.optimizers.rule import rule

X = T.dvector("x")
ONES = np.ones(3)


def fails(error, f, *values):
    """Call a function, which must raise just this error; return it."""
    with pytest.raises(error) as raised:
        f(*values)
    assert raised.type is error
    assert isinstance(raised.value, errors.DebugModeError)
    return raised.value


def with_rules(*rules, position=1.3, **options):
    """A DebugMode with more rules, tried after those of canonicalize."""
    more = EquilibriumOptimizer(list(rules), name="planted_stage")
    return DebugMode(**options).register((more, position))


def debugged(out, mode=None, inputs=(X,), **more):
    return function(list(inputs), out, mode=mode or DebugMode(), **more)


class Copy(Op):
    """Copies its input, ``behave`` permitting: a function of the input that gives the output."""

    __props__ = ("name",)
    view_map: dict = {}
    destroy_map: dict = {}

    def __init__(self, behave=np.copy, name="sound", view_map=None, destroy_map=None, shape=None):
        self.behave = behave
        self.name = name
        self.shape = shape
        if view_map:
            self.view_map = view_map
        if destroy_map:
            self.destroy_map = destroy_map

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.behave(inputs[0])


class Shaped(Copy):
    """Says of its output what ``shape`` makes of the input's shape."""

    def infer_shape(self, node, shapes):
        return [self.shape(shapes[0])]


# --- rewrites -----------------------------------------------------------------------------------


@rule("row:add", name="wrong_sum")
def wrong_sum(fgraph, node):
    """a + b becomes a - b."""
    return [T.sub(*node.inputs)] if len(node.inputs) == 2 else None


def test_a_wrong_rule_is_named_with_its_stage_lines_and_values():
    f = debugged(T.sqr(T.exp(X) + T.tanh(X)), with_rules(wrong_sum))
    error = fails(errors.BadOptimization, f, [1.0, 2.0, 0.5])
    assert error.reason == "wrong_sum" and error.stage == "planted_stage"
    total, difference = np.exp(2) + np.tanh(2), np.exp(2) - np.tanh(2)
    np.testing.assert_allclose(error.old_r_val[1], total)
    np.testing.assert_allclose(error.new_r_val[1], difference)
    assert "Elemwise{add" in error.old_graph and "Elemwise{sub" in error.new_graph
    text = str(error)
    for part in (
        "  Reason:  wrong_sum\n", "  Stage:  planted_stage\n",
        "  First Apply that differs: Elemwise{add,no_inplace}(Elemwise{exp,no_inplace}.0, "
        "Elemwise{tanh,no_inplace}.0)", __file__, "f = debugged(T.sqr(T.exp(X) + T.tanh(X))",
        "ulp at index (0,): expected 3.479", "got 1.956", "3 of 3 elements differ",
    ):  # fmt: skip
        assert part in text, part
    sound = debugged(T.sqr(T.exp(X) + T.tanh(X)))
    np.testing.assert_allclose(sound([1.0]), (np.e + np.tanh(1)) ** 2)


def test_a_rule_that_is_wrong_for_some_values_is_found_at_the_call_that_meets_them():
    """The words of the documentation: f(5), f(0) and f(7) may pass where f(-1) does not."""

    @rule("row:abs_", name="no_abs")
    def no_abs(fgraph, node):
        return list(node.inputs)

    x = T.dscalar("x")
    f = debugged(10 * abs(x), with_rules(no_abs), [x])
    assert [f(5), f(0), f(7)] == [50, 0, 70]
    error = fails(errors.BadOptimization, f, -1)
    assert error.reason == "no_abs"
    assert (error.old_r_val, error.new_r_val) == (1, -1)
    assert "at index (): expected 1.0, got -1.0" in str(error)
    assert f(3) == 30, "the function is as good as before"
    assert debugged(10 * abs(x), None, [x])(-1) == 10


def test_the_first_of_many_rewrites_is_blamed():
    """Right rules come before and after the wrong one, and what it made is rewritten again."""

    @rule("row:sub", name="right_before")
    def right_before(fgraph, node):
        return [T.add(node.inputs[0], T.neg(node.inputs[1]))]

    @rule("row:cosh", name="wrong")
    def wrong(fgraph, node):
        return [T.sinh(*node.inputs)]

    @rule("row:sinh", name="right_after")
    def right_after(fgraph, node):
        return [T.true_div(T.exp(node.inputs[0]) + -T.exp(-node.inputs[0]), 2.0)]

    out = T.sqr(T.cosh(X) - X) * 3 + T.cosh(X)
    mode = with_rules(right_before, wrong, right_after, optimizer="merge")
    error = fails(errors.BadOptimization, debugged(out, mode), ONES)
    assert error.reason == "wrong"
    assert "cosh" in error.old_graph and "sinh" in error.new_graph
    f = debugged(out, with_rules(right_before, right_after, optimizer="merge"))
    np.testing.assert_allclose(f(ONES), (np.cosh(1) - 1) ** 2 * 3 + np.cosh(1))


def test_a_wrong_rule_among_those_of_a_stage(monkeypatch):
    """The stage is told as the pipeline calls it."""
    specialize = optdb["specialize"]
    monkeypatch.setattr(specialize, "_objects", dict(specialize._objects))
    tags = {tag: dict(names) for tag, names in specialize._tags.items()}
    monkeypatch.setattr(specialize, "_tags", tags)
    specialize.register("planted_sum", wrong_sum, "only_when_planted")
    f = debugged(T.exp(X) + T.tanh(X), DebugMode().including("only_when_planted"))
    error = fails(errors.BadOptimization, f, ONES)
    assert (error.reason, error.stage) == ("wrong_sum", "specialize")


def test_an_undone_replacement_is_not_blamed():
    class TakesBack(Optimizer):
        name = "takes_back"

        def apply(self, fgraph):
            mark = fgraph.checkpoint()
            node = fgraph.outputs[0].owner
            fgraph.replace(node.outputs[0], T.neg(node.inputs[0]), reason="undone_rule")
            fgraph.revert(mark)
            fgraph.replace(node.outputs[0], T.exp(node.inputs[0] * 1.0), reason="right_rule")

    f = debugged(T.exp(X), DebugMode(TakesBack()))
    np.testing.assert_allclose(f(ONES), np.e)


def test_different_ops_that_compare_equal():
    """Merging believes ``__eq__``."""

    class Scaled(Copy):
        __props__ = ()

    def out():
        return Scaled(lambda x: 2 * x)(X) + Scaled(lambda x: 3 * x)(X)

    error = fails(errors.BadOptimization, debugged(out()), ONES)
    assert error.reason == "MergeOptimizer" and error.stage.startswith("merge1")
    assert sorted([error.old_r_val[0], error.new_r_val[0]]) == [2, 3]
    f = debugged(out(), DebugMode(optimizer=None))
    np.testing.assert_array_equal(f(ONES), [5, 5, 5])


def test_a_lying_infer_shape():
    longer = Shaped(shape=lambda shape: (shape[0] + 1,), name="longer")
    f = debugged(longer(X).shape * 2)
    error = fails(errors.BadOptimization, f, ONES)
    assert "shape" in error.reason
    assert "The rewrite relies on infer_shape: check infer_shape of Shaped" in str(error)
    sound = Shaped(shape=lambda shape: shape, name="sound")
    np.testing.assert_array_equal(debugged(sound(X).shape * 2)(ONES), [6])


def test_a_replacement_of_another_type_is_refused_and_logged(caplog, flags):
    flags(on_opt_error="warn")

    @rule("row:exp", name="narrower")
    def narrower(fgraph, node):
        return [T.cast(T.exp(node.inputs[0]), "float32")]

    with caplog.at_level(logging.ERROR):
        f = debugged(T.exp(X), with_rules(narrower))
    assert caplog.text.count("The type of the replacement must be the same") == 1
    np.testing.assert_allclose(f(ONES), np.e)


def test_a_rewrite_that_alternates():
    turn = []

    @rule("row:exp", name="by_turns")
    def by_turns(fgraph, node):
        base = node.inputs[0]
        if base.owner is not None:
            return None
        turn.append(1)
        return [T.exp(T.neg(T.neg(base))) if len(turn) % 2 else T.exp(base * 1.0)]

    with pytest.raises(errors.StochasticOrder) as raised:
        debugged(T.exp(X), with_rules(by_turns, optimizer=None).including("planted_stage"))
    lines = str(raised.value).split("\n")
    assert lines[:2] == [
        "WARNING: Optimization process is unstable...",
        "  (HINT: Ops that the nodes point to must compare equal)",
    ]
    assert any(line.startswith("non-equal optimization events 1 : ") for line in lines)
    assert "'reason': 'by_turns'" in str(raised.value) and "'kind': 'import'" in str(raised.value)


@pytest.mark.parametrize(("patience", "runs"), [(1, 1), (4, 4), (None, 10)])
def test_how_often_a_graph_is_optimized(patience, runs):
    seen = []

    class Counting(Optimizer):
        def apply(self, fgraph):
            seen.append(1)

    debugged(X + 1, DebugMode(Counting(), stability_patience=patience))
    assert len(seen) == runs


def test_a_random_rewrite_passes_with_a_patience_of_1():
    class Random(Optimizer):
        def apply(self, fgraph):
            node = fgraph.outputs[0].owner
            for _ in range(next(counts)):
                fgraph.replace(fgraph.outputs[0], T.neg(T.neg(fgraph.outputs[0])), reason="r")
            assert node is not None

    counts = iter([1, 2, 3])
    f = debugged(T.exp(X), DebugMode(Random(), stability_patience=1))
    np.testing.assert_allclose(f(ONES), np.e)
    with pytest.raises(errors.StochasticOrder, match="trailing event in optimization 1"):
        debugged(T.exp(X), DebugMode(Random(), stability_patience=2))


# --- implementations ----------------------------------------------------------------------------


@pytest.mark.c
def test_a_kernel_that_stops_one_element_early(monkeypatch):
    """What it leaves unwritten may hold the right number by chance; here it never does."""
    text = kernels.source_text

    def short(wanted):
        changed = text(wanted).replace("i < n; i++", "i < n - (n > 2); i++")
        assert changed != text(wanted)
        return changed

    monkeypatch.setattr(kernels, "source_text", short)
    out = T.exp(X) * X + 3
    f = debugged(out)
    error = fails(errors.BadCLinkerOutput, f, ONES)
    assert (error.thunk1, error.thunk2) == ("perform", "c_code")
    assert "at index (2,): expected 5.718" in str(error) and "got nan" in str(error)
    assert "1 of 3 elements differ" in str(error) and __file__ in str(error)
    assert "Composite" in str(error.r.owner.op) and error.offending_op() is type(error.r.owner.op)
    assert f([1.0, 1.0]).shape == (2,)
    monkeypatch.undo()
    np.testing.assert_allclose(debugged(out)(ONES), np.e + 3)


def test_a_step_of_another_kind(monkeypatch):
    monkeypatch.setattr(lowering, "_lowerings", dict(lowering._lowerings))
    monkeypatch.setattr(lowering, "_found", {})
    lowering.c_lowering(Copy)(lambda node, kernels: CStep("deepcopy"))
    doubling = Copy(lambda x: 2 * x, "doubling")
    error = fails(errors.BadCLinkerOutput, debugged(doubling(X)), ONES)
    np.testing.assert_array_equal(error.val1, [2, 2, 2])
    np.testing.assert_array_equal(error.val2, ONES)
    np.testing.assert_array_equal(error.inputs_val[0], ONES)
    np.testing.assert_array_equal(debugged(Copy()(X))(ONES), ONES)
    # neither is compared with the other where only one runs
    for options, result in (({"check_py_code": False}, 1), ({"check_c_code": False}, 2)):
        f = debugged(doubling(X), DebugMode(**options))
        np.testing.assert_array_equal(f(ONES), ONES * result)


def test_strides_of_c_and_python(monkeypatch, caplog):
    monkeypatch.setattr(lowering, "_lowerings", dict(lowering._lowerings))
    monkeypatch.setattr(lowering, "_found", {})
    lowering.c_lowering(Copy)(lambda node, kernels: CStep("deepcopy"))
    m = T.dmatrix("m")
    value = np.arange(6.0).reshape(2, 3)
    columns = Copy(np.asfortranarray, "columns", view_map={})(m + 1)
    np.testing.assert_array_equal(debugged(columns, inputs=[m])(value), value + 1)
    assert "Stride mismatch" not in caplog.text
    warning = DebugMode(require_matching_strides=1)
    np.testing.assert_array_equal(debugged(columns, warning, [m])(value), value + 1)
    assert "Stride mismatch" in caplog.text and "(8, 16), from C (24, 8)" in caplog.text
    raising = debugged(columns, DebugMode(require_matching_strides=2), [m])
    assert "Stride mismatch" in str(fails(errors.BadCLinkerOutput, raising, value))
    same = Copy(np.copy, "same")(m + 1)
    f = debugged(same, DebugMode(require_matching_strides=2), [m])
    np.testing.assert_array_equal(f(value), value + 1)


# --- memory -------------------------------------------------------------------------------------


def increments(x):
    x += 1
    return x.copy()


def increments_in_place(x):
    x += 1
    return x


def test_an_undeclared_overwrite():
    error = fails(errors.BadDestroyMap, debugged(Copy(increments, "increments")(X * 2)), ONES)
    assert error.idx == 0 and error.perform == "py" and "increments" in str(error.node)
    np.testing.assert_array_equal(error.old_val, [2, 2, 2])
    np.testing.assert_array_equal(error.new_val, [3, 3, 3])
    assert "declare destroy_map = {<output>: [0]}" in str(error)


def test_an_op_that_a_rewrite_removes_is_checked_too():
    @rule(Copy, name="same_without_it")
    def same_without_it(fgraph, node):
        return [node.inputs[0] + 1.0]

    f = debugged(Copy(increments, "increments")(X), with_rules(same_without_it))
    fails(errors.BadDestroyMap, f, ONES)


@pytest.mark.parametrize(
    "behave", [lambda x: x, lambda x: x[::-1], lambda x: x[1:], lambda x: x.reshape(-1)]
)
def test_an_undeclared_view(behave):
    error = fails(errors.BadViewMap, debugged(Copy(behave, "views")(X * 2) + 1), ONES)
    assert error.output_idx == 0 and error.in_alias_idx == [0]
    assert "declare view_map = {0: [0]}" in str(error)
    told = Copy(behave, "told", view_map={0: [0]})
    assert debugged(told(X * 2) + 1)(ONES)[0] == 3


class TwoOutputs(Copy):
    """Has two outputs: its input copied, both in the same memory if it is so told."""

    def make_node(self, x):
        return Apply(self, [x], [x.type(), x.type()])

    def perform(self, node, inputs, output_storage):
        a = inputs[0].copy()
        output_storage[0][0] = a
        output_storage[1][0] = a if self.name == "one" else a.copy()


def test_two_outputs_in_the_same_memory():
    a, b = TwoOutputs(name="one")(X)
    error = fails(errors.BadViewMap, debugged([a + 1, b * 2]), ONES)
    assert (error.output_idx, error.out_alias_idx) == (0, [1])
    assert "aliased to outputs: [1]" in str(error)
    first, second = debugged([a, b])(ONES)  # nothing can go wrong with what is only given out
    np.testing.assert_array_equal(first, second)
    a, b = TwoOutputs(name="two")(X)
    np.testing.assert_array_equal(debugged([a + 1, b * 2])(ONES)[0], [2, 2, 2])


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (Copy(np.copy, "v", view_map={0: [0]}),
         "input idx 0 marked as viewed but new memory allocated by node 'Copy{name='v'}(x)'"),
        (Copy(np.copy, "d", destroy_map={0: [0]}),
         "input idx 0 marked as destroyed was not changed for node 'Copy{name='d'}(Elemwise{mul"),
    ],
    ids=["view", "destroy"],
)  # fmt: skip
def test_declared_memory_that_is_not_used(op, said, caplog, flags):
    out = op(X if op.name == "v" else X * 2) + 1
    f = debugged(out, DebugMode(optimizer=None), accept_inplace=True)
    f(ONES)
    f(ONES)
    assert caplog.text.count(f"Optimization Warning: {said}") == 1
    caplog.clear()
    flags({"DebugMode.warn_input_not_reused": False})
    debugged(out, DebugMode(optimizer=None), accept_inplace=True)(ONES)
    assert caplog.text == ""


def test_an_impossible_view_is_not_logged(caplog):
    turned = T.dmatrix("m").T
    f = debugged(turned.reshape((2, 3)) + 1, inputs=[turned.owner.inputs[0]])
    f(np.arange(6.0).reshape(2, 3))
    assert caplog.text == ""


def test_a_rewrite_that_overwrites_what_is_still_needed():
    """The Op tells the truth; the rewrite did not ask whether it may."""
    in_place = Copy(increments_in_place, "in place", destroy_map={0: [0]})
    plain = Copy(lambda x: x + 1, "plain")

    @rule(plain, name="thoughtless")
    def thoughtless(fgraph, node):
        return [in_place(node.inputs[0])] if node.op == plain else None

    doubled = X * 2
    mode = with_rules(thoughtless, optimizer=None).including("planted_stage")
    error = fails(errors.BadOptimization, debugged([doubled, plain(doubled)], mode), ONES)
    assert error.reason == "thoughtless"
    assert "was overwritten by Copy{name='in place'}" in str(error)
    f = debugged([doubled, plain(doubled)], DebugMode(optimizer=None))
    np.testing.assert_array_equal(f(ONES), [[2, 2, 2], [3, 3, 3]])
    alone = debugged([plain(doubled)], mode)
    np.testing.assert_array_equal(alone(ONES), [[3, 3, 3]])


def test_arguments_and_shared_values_are_not_overwritten():
    w = shared(np.zeros(3), name="w", borrow=True)
    kept = w.get_value(borrow=True)
    f = debugged(w * 1, updates=[(w, w + X)])
    value = np.ones(3)
    f(value)
    f(value)
    np.testing.assert_array_equal(value, [1, 1, 1])
    np.testing.assert_array_equal(w.get_value(), [2, 2, 2])
    np.testing.assert_array_equal(kept, [0, 0, 0])


# --- output storage -----------------------------------------------------------------------------


class Reuses(Copy):
    """Works in its output storage where that fits, in one of several ways."""

    def perform(self, node, inputs, output_storage):
        (x,), (out,) = inputs, output_storage
        given = out[0]
        if self.name == "adds":
            fits = given is not None and given.shape == x.shape
            out[0] = given + x if fits else x.copy()
        elif self.name == "skips the last":
            if given is None or given.shape != x.shape:
                given = x.copy()
            given[:-1] = x[:-1]
            out[0] = given
        elif self.name == "believes the length":
            if given is None or given.shape[1:] != x.shape[1:] or len(given) < len(x):
                given = np.empty_like(x)
            given[: len(x)] = x
            out[0] = given
        elif self.name == "believes the layout":
            if given is None or given.shape != x.shape:
                given = np.empty_like(x)
            flat = np.lib.stride_tricks.as_strided(given, x.shape, x.strides)
            if given.strides == x.strides:
                flat[...] = x
            out[0] = given
        else:
            if given is None or given.shape != x.shape:
                given = np.empty(x.shape)
            given[...] = x
            out[0] = given


@pytest.mark.parametrize(
    ("name", "kinds", "found"),
    [
        ("adds", "previous", "py with previous output"),
        ("adds", "c_contiguous", "py with c_contiguous output"),
        ("adds", "ALL", "py with previous output"),
        ("skips the last", "f_contiguous", "py with f_contiguous output"),
        ("believes the length", "wrong_size", "py with wrong_size(1, 0) output"),
        ("believes the layout", "f_contiguous", "py with f_contiguous output"),
        ("believes the layout", "strided", "py with strided(1, -1) output"),
    ],
)
def test_an_op_that_is_wrong_about_its_output_storage(name, kinds, found):
    m = T.dmatrix("m")
    value = np.arange(6.0).reshape(2, 3)
    out = Reuses(name=name)(m)
    mode = DebugMode(check_preallocated_output=kinds.split(":"))
    error = fails(errors.BadThunkOutput, debugged(out, mode, [m]), value)
    assert error.thunk1 == "Reference value"
    assert error.thunk2.startswith(found.partition("(")[0])
    assert "  thunk1  : Reference value\n" in str(error)
    np.testing.assert_array_equal(error.val1, value)
    np.testing.assert_array_equal(debugged(out, inputs=[m])(value), value)  # nothing is tried
    for sound in ("sound", "also"):
        f = debugged(Reuses(name=sound)(m), mode, [m])
        np.testing.assert_array_equal(f(value), value)


def test_storage_from_the_previous_call():
    """'initial' holds what the Op returned in the call before."""
    f = debugged(Reuses(name="skips the last")(X), DebugMode(check_preallocated_output="initial"))
    np.testing.assert_array_equal(f([1.0, 2.0]), [1, 2])
    error = fails(errors.BadThunkOutput, f, [3.0, 4.0])
    assert error.thunk2 == "py with initial output"
    np.testing.assert_array_equal(error.val2, [3, 2])


def test_kinds_of_storage(flags):
    with pytest.raises(ValueError, match="'sideways' is not one of initial, previous"):
        DebugMode(check_preallocated_output="initial:sideways")
    flags({"DebugMode.check_preallocated_output": "initial:previous",
           "DebugMode.check_preallocated_output_ndim": 1})  # fmt: skip
    mode = DebugMode()
    assert mode.check_preallocated_output == ["initial", "previous"]
    assert mode.check_preallocated_output_ndim == 1
    assert DebugMode(check_preallocated_output=["ALL"]).check_preallocated_output == ["ALL"]


def test_the_layouts_that_are_tried():
    seen = []

    class Looks(Copy):
        def perform(self, node, inputs, output_storage):
            given = output_storage[0][0]
            if given is not None:
                assert given.dtype == "int8" and (given == np.int8(-102)).all()  # 666 % 256
                seen.append((given.shape, given.strides))
            output_storage[0][0] = inputs[0].copy()

    m = T.bmatrix("m")
    f = debugged(Looks()(m), DebugMode(check_preallocated_output=["strided", "wrong_size"]), [m])
    f(np.zeros((2, 3), "int8"))
    assert {strides for shape, strides in seen if shape == (2, 3)} == {
        (6, -1), (-3, 1), (-3, -1), (12, 2), (12, -2), (-12, 2), (-12, -2), (3, -1),
    } - {(6, -1)}  # fmt: skip
    sizes = {(r, c) for r in (1, 2, 3) for c in (2, 3, 4)}
    assert {shape for shape, _ in seen} == sizes


# --- sound programs -----------------------------------------------------------------------------


def programs():
    m, v = T.dmatrix("m"), T.dvector("v")
    s = shared(np.full((3, 2), 0.25), "s")
    hidden = T.nnet.sigmoid(T.dot(m, s))
    cost = T.sqr(hidden - v[:, None]).mean()
    yield "training", [m, v], [cost, T.grad(cost, s)]
    yield "views", [m, v], [m.T[::-1], m.reshape((-1,)), T.concatenate([m, m[:1]]), v[::2]]
    yield "reductions", [m, v], [m.max(axis=1), m.argmin(), T.mean(m, axis=0), v.prod()]
    yield "subtensors", [m, v], [T.inc_subtensor(m[1:], 2.0), T.set_subtensor(v[-1], 0), m[:, 0]]
    yield "softmax", [m, v], [T.nnet.softmax(m), T.log(T.nnet.softmax(m)).sum() + v.sum()]
    yield "integers", [m, v], [T.cast(m, "int8") // 2, T.eq(v, 1), T.switch(v > 1, v, -v)]


@pytest.mark.parametrize(("name", "inputs", "outputs"), list(programs()), ids=lambda p: str(p)[:12])
@pytest.mark.parametrize(
    "options",
    [{}, {"check_preallocated_output": ["ALL"]}, {"check_py_code": False}, {"check_c_code": False}],
    ids=["default", "storage", "C", "Python"],
)
def test_sound_programs_raise_nothing(name, inputs, outputs, options):
    f = function(inputs, outputs, mode=DebugMode(stability_patience=2, **options))
    expected = function(inputs, outputs, mode=Mode("py", None))
    for seed in range(2):
        rng = np.random.RandomState(seed)
        values = [rng.uniform(0.5, 3, (4, 3)), rng.uniform(0.5, 3, 4)]
        for a, b in zip(f(*values), expected(*values), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_the_rewrite_that_made_a_failing_apply_is_named():
    @rule(T.exp)
    def longer(fgraph, node):
        (x,) = node.inputs
        return [T.sin(x + T.concatenate([x, x]))]

    f = debugged(T.exp(X), with_rules(longer))
    with pytest.raises(ValueError) as raised:
        f(ONES)
    text = str(raised.value)
    assert "the rewrite longer, of the stage" in text and "made the Apply that fails" in text
    f = debugged(T.exp(X + np.ones(2)))  # the user's own error is no rewrite's
    with pytest.raises(ValueError) as raised:
        f(ONES)
    assert "made the Apply that fails" not in str(raised.value)
