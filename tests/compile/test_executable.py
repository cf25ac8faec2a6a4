"""Compiled functions: as objects, copied and pickled; and what calls change, leave alone and take.

Single machines are tested in tests/linkers.
"""

import copy
import ctypes
import gc
import os
import pickle
import threading

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import Apply, Container, In, Mode, Op, OpFromGraph, OpWiseCLinker, Out, function, shared
from opwise.errors import AliasedMemoryError

pytestmark = pytest.mark.null

QUICK = "FAST_COMPILE"


@pytest.fixture
def a():
    return T.dscalar("a")


@pytest.fixture
def b():
    return T.dscalar("b")


@pytest.fixture
def x():
    return T.dvector("x")


def test_debugprint_shows_what_storage_holds(x):
    f = function([x], x * shared(3.0, name="s"), mode=QUICK)
    f([1.0, 2.0])
    printed = opwise.printing.debugprint(f, ids="", print_storage=True, file="str")
    assert printed.endswith(
        " |x  [None]\n |InplaceDimShuffle{x}  ''   0 [None]\n   |s  [array(3.)]\n"
    )


class Raise(Op):
    """Raises when it runs; otherwise what it computes is its input."""

    __props__ = ("error",)

    def __init__(self, error):
        self.error = error

    def make_node(self, value):
        value = T.as_tensor_variable(value)
        return Apply(self, [value], [value.type()])

    def perform(self, node, inputs, output_storage):
        raise self.error("no more")


class Do(Op):
    """Calls a Python function on its input, which it returns."""

    def __init__(self, do):
        self.do = do

    def make_node(self, value):
        value = T.as_tensor_variable(value)
        return Apply(self, [value], [value.type()])

    def perform(self, node, inputs, output_storage):
        self.do()
        output_storage[0][0] = inputs[0].copy()


# --- the function as an object --------------------------------------------------------------------


@pytest.fixture
def counter(a):
    """A function that adds its argument to a shared value and returns the old one."""
    s = shared(1.0, name="state")
    f = function([a], s * 1.0, updates=[(s, s + a)], mode=QUICK, name="count")
    f.state = s
    return f


def test_attributes(counter, a):
    assert counter.maker.mode is opwise.get_mode(QUICK)
    assert [str(spec) for spec in counter.maker.inputs] == [
        "In(a)",
        "In(state -> Elemwise{add,no_inplace}.0)",
    ]
    assert len(counter.maker.outputs) == 1
    assert len(counter.maker.fgraph.outputs) == 2
    assert isinstance(counter.maker.linker, OpWiseCLinker)
    assert callable(counter.fn)
    assert counter.unpack_single and not function([a], [a], mode=QUICK).unpack_single
    assert counter.get_shared() == [counter.state]
    assert [isinstance(c, Container) for c in counter.input_storage] == [True, True]
    assert [c.data for c in counter.output_storage] == [None, None]
    assert counter.profile is None


def test_values_by_name_variable_and_position(counter, a):
    state = counter.state
    for key in ("state", state, 1):
        assert counter[key] == counter.value[key] == counter.container[key].data == 1.0
        assert key in counter
    counter["state"] = 5
    assert state.get_value() == counter(2) == 5
    counter.value[state] = 20.0
    assert counter(0) == 20
    assert counter["a"] is None
    assert "zz" not in counter and T.dscalar() not in counter and 2 not in counter
    for ask in (lambda: counter["zz"], lambda: counter.__setitem__("zz", 1)):
        with pytest.raises(TypeError, match="Unknown input or state: zz"):
            ask()
    with pytest.raises(TypeError, match="Wrong number of dimensions"):
        counter["state"] = [1.0, 2.0]
    assert counter["state"] == 20


def test_what_programs_look_up_in_a_function(counter, a):
    """As in Theano 1.0.5."""
    state, finder = counter.state, counter.finder
    assert list(finder) == [0, a, "a", 1, state, "state"] and len(finder) == 6
    assert all(finder[key] is counter.input_storage[1] for key in (1, state, "state"))
    assert finder[state] is state.container and "b" not in finder and finder.get("b") is None
    with pytest.raises(KeyError):
        finder["b"]
    assert counter.inv_finder[finder[a]] is counter.maker.inputs[0]
    assert counter.indices == [[spec, None, [spec]] for spec in counter.maker.inputs]
    assert (counter.output_keys, counter.n_returned_outputs) == (None, 1)
    assert (counter.maker.required, counter.maker.refeed) == ([True, False], [False, False])
    named = function([a, In(T.dscalar("b"), value=2)], {"y": a * 2, "x": a}, mode=QUICK,
                     on_unused_input="ignore")  # fmt: skip
    assert (named.output_keys, named.n_returned_outputs) == (["x", "y"], 2)
    assert (named.maker.required, named.maker.refeed) == ([True, False], [False, True])
    assert counter.nodes_with_inner_function == []
    op = OpFromGraph([a], [a * 2])
    assert function([a], op(a) + 1, mode=QUICK).nodes_with_inner_function == [op]


@pytest.mark.parametrize("linker", ["c|py", "cvm", "vm"])
def test_what_programs_look_up_in_a_vm(linker, x):
    f = function([x], [T.exp(x), T.sort(x) + 1], mode=Mode(linker), profile=True)
    assert f.fn.call_counts == [0] * len(f.fn.nodes)
    results = f([2.0, 1.0])
    assert f.fn.nodes == f.linked.order and len(f.fn.thunks) == len(f.fn.nodes)
    for node, thunk, in_c in zip(f.fn.nodes, f.fn.thunks, f.linked.in_c, strict=True):
        assert hasattr(thunk, "cthunk") == in_c and not thunk.lazy
        assert len(thunk.inputs) == len(node.inputs) and len(thunk.outputs) == len(node.outputs)
        assert all(isinstance(one, list) and len(one) == 1 for one in thunk.outputs)
        assert thunk.inputs[0] is not None
        if node.inputs[0] is f.maker.fgraph.inputs[0] and linker == "vm":
            assert thunk.inputs[0][0] is None  # the argument is released
    assert f.fn.call_counts == [1] * len(f.fn.nodes)
    assert all(seconds >= 0 for seconds in f.fn.call_times)
    assert results[1].tolist() == [2.0, 3.0]


def test_thunks_show_the_values_that_a_call_left(x):
    f = function([x], T.sort(T.exp(x)) + 1, mode=Mode("cvm_nogc", "fast_compile"))
    f([2.0, 0.0])
    values = [thunk.outputs[0][0] for thunk in f.fn.thunks]
    assert any(v is not None and np.allclose(v, [1.0, np.exp(2)]) for v in values)
    with pytest.raises(RuntimeError, match="cannot run alone"):
        f.fn.thunks[0]()


def test_a_name_that_two_inputs_have_is_no_key():
    same = [T.dscalar("n"), T.dscalar("n")]
    f = function(same, [], mode=QUICK, on_unused_input="ignore")
    with pytest.raises(TypeError, match="Ambiguous name: n - use the variable itself"):
        f["n"]


def test_copy_shares_the_state(counter):
    other = counter.copy()
    assert other is not counter and other.name == "count copy"
    counter(1)
    assert other(1) == [2]
    assert counter.state.get_value() == 3
    assert counter.copy(name="other").name == "other"
    assert copy.copy(counter)(0) == [3]


def test_a_copy_returns_a_list_as_in_theano(a):
    assert function([a], {"double": a * 2}, mode=QUICK).copy()(3) == [6]
    assert function([a], [], mode=QUICK, on_unused_input="ignore").copy()(3) == []


def test_copy_with_another_state(counter):
    fresh = shared(10.0, name="fresh")
    other = counter.copy(swap={counter.state: fresh})
    assert [other(5), other(1)] == [[10.0], [15.0]]
    assert (counter.state.get_value(), fresh.get_value()) == (1.0, 16.0)
    assert counter(1) == 1


def test_copy_without_updates(counter):
    still = counter.copy(delete_updates=True)
    assert [still(100), still(100)] == [[1.0], [1.0]]
    assert counter.state.get_value() == 1


def test_a_swap_reaches_givens_and_updates(a):
    data, state, other = shared(np.arange(4.0)), shared(1.0), shared(np.ones(4))
    k, x = T.iscalar("k"), T.dscalar("x")
    f = function([k], x * state, givens={x: data[k]}, updates={state: state + data[k]}, mode=QUICK)
    fresh = shared(10.0)
    swapped = f.copy(swap={data: other, state: fresh})
    assert [f(3), swapped(3), swapped(3)] == [3.0, [10.0], [11.0]]
    assert (state.get_value(), fresh.get_value()) == (4.0, 12.0)
    assert pickle.loads(pickle.dumps(swapped))(0) == [12.0]
    again = swapped.copy(swap={other: data}, delete_updates=True)
    assert again(3) == [36.0]


def test_a_swapped_variable_gets_the_default_update_of_the_old_one(a):
    state, fresh = shared(1.0), shared(10.0)
    state.default_update = state * 2
    f = function([a], a + state, mode=QUICK)
    swapped = f.copy(swap={state: fresh})
    assert [swapped(0), swapped(0)] == [[10.0], [20.0]]
    assert (state.get_value(), fresh.get_value()) == (1.0, 40.0)


def test_wrong_swaps(counter):
    with pytest.raises(
        AssertionError, match="Type of given SharedVariable conflicts with original"
    ):
        counter.copy(swap={counter.state: shared(np.ones(2))})
    with pytest.raises(ValueError, match="SharedVariable: None not found"):
        counter.copy(swap={shared(1.0): shared(2.0)})


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.deepcopy,
        *[lambda f, p=p: pickle.loads(pickle.dumps(f, p)) for p in (2, pickle.HIGHEST_PROTOCOL)],
    ],
)
def test_pickles_and_deep_copies_have_a_state_of_their_own(counter, duplicate):
    counter(1)
    other = duplicate(counter)
    assert [float(counter(1)), float(counter(1))] == [2.0, 3.0]
    assert [float(other(10)), float(other(10))] == [2.0, 12.0]
    assert other.name == "count"
    assert other(a=0) == 22
    with pytest.raises(TypeError, match="Missing required input: a"):
        other()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
@pytest.mark.parametrize("trust", [False, True])
def test_pickles_and_deep_copies_trust_arguments_as_the_function_does(counter, duplicate, trust):
    counter.trust_input = trust
    assert duplicate(counter).trust_input is trust


def test_a_deep_copy_belongs_to_the_shared_variables_copied_with_it():
    s = shared(1.0)
    f = function([], s * 2, mode=QUICK)
    twin, twin_of_s = copy.deepcopy([f, s])
    twin_of_s.set_value(5.0)
    assert [f(), twin()] == [2, 10]


def test_pickling_values_that_share_memory(a):
    value = np.zeros(3)
    s, t = shared(value, "s", borrow=True), shared(value[1:], "t", borrow=True)
    f = function([a], a + s[1:] + t, mode=QUICK)
    with pytest.warns(UserWarning, match="s and t share memory; after unpickling they do not"):
        assert pickle.loads(pickle.dumps(f))(1).tolist() == [1, 1]
    f.pickle_aliased_memory_strategy = "raise"
    with pytest.raises(AliasedMemoryError, match="s and t share memory"):
        pickle.dumps(f)
    f.pickle_aliased_memory_strategy = "ignore"
    assert pickle.loads(pickle.dumps(f))(1).tolist() == [1, 1]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_of_functions_with_everything(duplicate, a, b):
    given = T.dscalar("given")
    f = function(
        [In(a, value=2.0), In(b, value=1.0, update=b + 1)], {"q": a * b, "p": given},
        givens={given: a + 100}, mode=Mode("py", "fast_compile"),
    )  # fmt: skip
    f()
    g = duplicate(f)
    assert g() == f() == {"p": 102.0, "q": 4.0}
    assert g(3) == {"p": 103.0, "q": 9.0}
    assert f() == {"p": 102.0, "q": 6.0}


def test_deep_copies_with_one_memo_share_the_values_that_they_keep(a, b):
    keeper = function([In(a, value=1.0)], a, mode=QUICK)
    reader = function([b, In(a, value=keeper.container[a], implicit=True)], a + b, mode=QUICK)
    memo: dict = {}
    keeper_copy, reader_copy = copy.deepcopy(keeper, memo), copy.deepcopy(reader, memo)
    keeper["a"], keeper_copy["a"] = 10, 20
    assert [reader(1), reader_copy(1)] == [11, 21]
    assert [keeper_copy(), keeper_copy(), reader_copy(1)] == [20, 1, 2]


def test_functions_pickled_together_share_their_state(a):
    s = shared(0.0)
    both = [function([a], updates=[(s, s + a)], mode=QUICK), function([], s, mode=QUICK), s]
    put, get, value = pickle.loads(pickle.dumps(both))
    put(3)
    assert get() == value.get_value() == 3
    assert s.get_value() == 0


@pytest.mark.parametrize("linker", ["c|py", "c|py_nogc", "py", "vm", "vm_nogc"])
def test_free(no_compiler, linker):
    m = T.dmatrix("m")
    f = function([m], T.dot(m, m).sum(), mode=Mode(linker, "fast_run"))
    assert f(np.ones((200, 200))) == 200**3
    assert f.free() is None
    assert f.fn.kept_bytes() == 0
    assert f(np.ones((2, 2))) == 8


# --- what calls leave alone -----------------------------------------------------------------------

EXPRESSIONS = {
    "the input": lambda x: x,
    "twice": lambda x: x * 2,
    "chain": lambda x: T.exp(x * 2 + 1) - x,
    "sums": lambda x: [x.sum(), (x - x.mean()) ** 2],
    "part": lambda x: x[1:],
    "turned": lambda x: x[::-1],
    "reshaped": lambda x: x.reshape((2, 3)).T,
    "set": lambda x: T.set_subtensor(x[1:3], 7.0),
    "added to": lambda x: T.inc_subtensor(x[[0, 0, 1]], 7.0),
    "sorted": lambda x: T.sort(x),
    "joined": lambda x: T.concatenate([x, x]),
    "outer": lambda x: x.dimshuffle(0, "x") + T.outer(x, x),
    "normed": lambda x: T.nnet.softmax(x) + 1,
    "running": lambda x: T.cumsum(x) * 2,
    "several": lambda x: [x, x[2:], x + 1, x, T.exp(x)],
    "clipped": lambda x: T.switch(x > 2, x, 0.0) + T.clip(x, 1, 2),
    "filled": lambda x: T.fill(x, 2.0) + T.zeros_like(x),
}


@pytest.fixture(params=EXPRESSIONS)
def compiled(request, mode):
    """Many functions of a vector, under all rewrites and each linker."""
    x = T.dvector("x")
    return function([x], EXPRESSIONS[request.param](x), mode=mode)


def as_list(result):
    return result if isinstance(result, list) else [result]


def test_arguments_are_not_changed(compiled):
    value = np.arange(6.0)
    compiled(value)
    assert value.tolist() == list(range(6))


def test_arguments_may_be_read_only(compiled):
    value = np.arange(6.0)
    expected = as_list(compiled(value))
    value.flags.writeable = False
    for result, same in zip(as_list(compiled(value)), expected, strict=True):
        np.testing.assert_array_equal(result, same)
    assert value.tolist() == list(range(6))


def test_results_belong_to_the_caller(compiled):
    value = np.arange(6.0)
    first = as_list(compiled(value))
    before = [r.copy() for r in first]
    for i, result in enumerate(first):
        assert not np.shares_memory(result, value)
        assert not any(np.shares_memory(result, other) for other in first[:i])
    compiled(np.arange(6.0) * 3)
    for result, same in zip(first, before, strict=True):
        np.testing.assert_array_equal(result, same)
        result[...] = -1
    for result, same in zip(as_list(compiled(value)), before, strict=True):
        np.testing.assert_array_equal(result, same)


@pytest.mark.parametrize("linker", ["c|py_nogc", "vm_nogc"])
def test_results_are_not_reused_without_collection(no_compiler, linker, x):
    f = function([x], T.exp(x * 2), mode=Mode(linker, "fast_run"))
    first, second = f([0.0]), f([1.0])
    assert first.tolist() == [1.0]
    assert second.tolist() == [np.exp(2.0)]


def test_constants_are_not_changed_by_changing_results(mode):
    c = T.constant(np.arange(3.0))
    f = function([], [c, c[1:], c * 1], mode=mode)
    for _ in range(2):
        results = f()
        assert [r.tolist() for r in results] == [[0, 1, 2], [1, 2], [0, 1, 2]]
        for result in results:
            result[...] = -1


def test_results_keep_the_value_before_the_update(mode):
    s = shared(np.zeros(3))
    f = function([], [s, s[1:], s * 1], updates=[(s, s + 1)], mode=mode)
    results = [f() for _ in range(3)]
    assert [[v[0] for v in row] for row in results] == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    results[-1][0][...] = 100
    assert s.get_value().tolist() == [3, 3, 3]


def test_values_of_shared_variables_are_copies(mode):
    s = shared(np.zeros(3))
    before = s.get_value()
    function([], [], updates=[(s, s + 1)], mode=mode)()
    assert before.tolist() == [0, 0, 0]
    after = s.get_value()
    after[...] = 7
    assert s.get_value().tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "update",
    [
        lambda s, t, x: x,
        lambda s, t, x: x[::-1],
        lambda s, t, x: t,
        lambda s, t, x: t.reshape((1, 3))[0],
        lambda s, t, x: T.constant(np.arange(3.0)),
        lambda s, t, x: x * 2,
        lambda s, t, x: s[::-1],
    ],
)
def test_updates_store_their_own_memory(mode, x, update):
    s, t = shared(np.zeros(3)), shared(np.arange(3.0))
    new = update(s, t, x)
    f = function([x], [new, x * 2], updates=[(s, new)], mode=mode, on_unused_input="ignore")
    value = np.arange(3.0)
    results = f(value)
    stored = s.get_value()
    expected = stored.tolist()
    assert results[0].tolist() == expected
    for other in (value, t.get_value(borrow=True), *results):
        assert not np.shares_memory(s.get_value(borrow=True), other)
    # what overwrites the value in place reaches nobody else
    function([], updates=[(s, s + 100)], mode=mode)()
    assert value.tolist() == t.get_value().tolist() == [0, 1, 2]
    assert results[0].tolist() == expected
    assert f(value)[1].tolist() == [0, 2, 4]


def test_mutable_inputs_may_be_overwritten(mode, x):
    f = function([In(x, mutable=True)], T.exp(x) * 2, mode=mode)
    value = np.zeros(3)
    result = f(value)
    assert result.tolist() == [2, 2, 2]
    assert value.tolist() == [2, 2, 2], "the memory of the argument is used"
    assert f([0, 0]).tolist() == [2, 2]


def test_read_only_arguments_are_not_overwritten(mode, x):
    value = np.frombuffer(np.zeros(3).tobytes())
    f = function([In(x, mutable=True)], T.exp(x) * 2, mode=mode)
    assert [f(value).tolist(), f(value).tolist()] == [[2, 2, 2], [2, 2, 2]]
    assert value.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "value", [np.frombuffer(np.zeros(3).tobytes()), np.broadcast_to(np.zeros(1), (3,))]
)
def test_read_only_shared_values_are_not_overwritten(mode, value):
    s = shared(value, borrow=True)
    step = function([], [], updates=[(s, s + np.arange(3.0))], mode=mode)
    step(), step()
    assert s.get_value().tolist() == [0, 2, 4]
    assert value.tolist() == [0, 0, 0]


class Table(Op):
    """Returns an array that it keeps and that must not be written to."""

    __props__ = ()

    def __init__(self):
        self.table = np.zeros(3)
        self.table.flags.writeable = False

    def make_node(self, size):
        return Apply(self, [T.as_tensor_variable(size)], [T.dvector()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = self.table


def test_read_only_results_of_perform_are_not_overwritten(mode, a):
    table = Table()
    f = function([a], T.exp(table(a)) + a, mode=mode)
    assert [f(1).tolist(), f(1).tolist()] == [[2, 2, 2], [2, 2, 2]]
    assert table.table.tolist() == [0, 0, 0]


def test_arguments_that_share_memory(mode, x):
    y = T.dvector("y")
    f = function([In(x, mutable=True), y], T.exp(x) * 2 + y, mode=mode)
    value = np.array([0.0, 1.0, 2.0])
    expected = np.exp(value) * 2 + value[::-1]
    np.testing.assert_allclose(f(value, value[::-1]), expected)
    assert f(np.zeros(4)[:2], np.zeros(4)[2:]).tolist() == [2, 2]
    # a copy is overwritten, not the argument that comes first and is not mutable
    value = np.array([0.0, 1.0, 2.0])
    swapped = function([y, In(x, mutable=True)], T.exp(x) * 2 + y, mode=mode)
    np.testing.assert_allclose(swapped(value[::-1], value), expected)
    assert value.tolist() == [0, 1, 2]
    both = function([In(x, mutable=True), In(y, mutable=True)], T.dot(x * 2, x + y), mode=mode)
    assert both(value, value) == np.dot(np.array([0, 2, 4]), np.array([0, 2, 4]))


def test_a_mutable_argument_that_shares_memory_with_a_shared_variable(mode, x):
    s = shared(np.ones(2), borrow=True)
    f = function([In(x, mutable=True)], T.exp(x) * 2 + s, mode=mode)
    np.testing.assert_allclose(f(s.get_value(borrow=True)), 2 * np.exp([1, 1]) + 1)
    assert s.get_value().tolist() == [1, 1]


def test_borrowed_outputs_may_be_views(x):
    value = np.arange(3.0)
    f = function([In(x, borrow=True)], Out(x[1:], borrow=True), mode=QUICK)
    assert np.shares_memory(f(value), value)
    for spec, out in ((x, Out(x[1:], borrow=True)), (In(x, borrow=True), x[1:])):
        assert not np.shares_memory(function([spec], out, mode=QUICK)(value), value)


@pytest.mark.c
@pytest.mark.parametrize("linker", ["py", "c|py"])
@pytest.mark.parametrize("first", [1.5, 2, np.float64(0.5)], ids=repr)
def test_numbers_leave_what_earlier_calls_gave(first, linker, a):
    """The array that a number is put in is used again, unless something still has it."""
    s = shared(np.zeros(()))
    view = T.shape_padleft(a)
    inputs, output = [In(a, borrow=True)], Out(view, borrow=True)
    f = function(inputs, [output, a, a + 1], updates=[(s, a)], mode=Mode(linker, "fast_run"))
    results = f(first)
    value = s.get_value(borrow=True)
    expected = [[float(first)], float(first), float(first) + 1]
    for number in (7.5, 8, np.float64(9.5)):
        assert f(number)[0].tolist() == [number]
        assert [result.tolist() for result in results] == expected
        assert value == first
        assert s.get_value() == number


def test_arguments_by_name_go_where_positions_do(a, b):
    c, hidden = T.dscalar("c"), T.dscalar("output_subset")
    state = shared(10.0, "state")
    f = function([a, b, c], [a - b * c + state], mode=QUICK)
    wanted = f(1, 2, 3)
    for args, kwargs in (
        ((), {"a": 1, "b": 2, "c": 3}), ((), {"c": 3, "a": 1, "b": 2}), ((1,), {"c": 3, "b": 2}),
        ((1, 2), {"c": 3}), ((1, 2, 3), {"output_subset": [0]}),
    ):  # fmt: skip
        assert f(*args, **kwargs) == wanted
    for args, kwargs, message in (
        ((1, 2), {"b": 3}, "Multiple values for input: b"),
        ((1, 2), {}, "Missing required input: c"),
        ((1, 2), {"state": 3}, "state"),
        ((1, 2), {"d": 3}, "d"),
        ((1,), {"b": 2, "d": 3}, "d"),
        ((1, 2, 3), {"c": 3}, "Multiple values for input: c"),
        ((1, 2, 3, 4), {}, "Too many parameter"),
    ):
        with pytest.raises(TypeError, match=message):
            f(*args, **kwargs)
    assert f(1, 2, 3) == wanted
    g = function([a, hidden], [a, hidden], mode=QUICK)
    assert g(1, 2, output_subset=[1]) == [2]


def test_a_call_leaves_the_names_of_its_caller_as_they_are():
    """C code may call a function with a dict of its own, which Python does not copy."""
    c = T.dscalar("c")
    f = function([c], [c, c + 1.0], mode=QUICK)
    names = {"c": 1.0, "output_subset": [1]}
    call = ctypes.pythonapi.PyObject_Call
    call.argtypes, call.restype = [ctypes.py_object] * 3, ctypes.py_object
    assert call(f, (), names) == [2.0]
    assert names == {"c": 1.0, "output_subset": [1]}


# --- calls that fail ------------------------------------------------------------------------------

FAILURES = {
    "shapes": (lambda s, x: s + x, ValueError),
    "shapes of a product": (lambda s, x: T.dot(s, x), ValueError),
    "index": (lambda s, x: x[5], IndexError),
    "index in a list": (lambda s, x: x[[0, 5]], IndexError),
    "reshape": (lambda s, x: x.reshape((5, 5)), ValueError),
    "an Op": (lambda s, x: Raise(RuntimeError)(x), RuntimeError),
    "memory": (lambda s, x: Raise(MemoryError)(x), MemoryError),
    "interrupt": (lambda s, x: Raise(KeyboardInterrupt)(x), KeyboardInterrupt),
    "exit": (lambda s, x: Raise(SystemExit)(x), SystemExit),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_call_that_fails_changes_no_shared_value(mode, x, failure):
    make, error = FAILURES[failure]
    s, t = shared(np.zeros(3), name="s"), shared(np.zeros(3), name="t")
    f = function(
        [x], make(s, x), mode=mode,
        updates=[(s, s + 1), (t, T.inc_subtensor(t[:1], 1.0))],
    )  # fmt: skip
    value = np.zeros(2)
    for _ in range(2):
        with pytest.raises(error) as caught:
            f(value)
        assert type(caught.value) is error
    assert (s.get_value().tolist(), t.get_value().tolist()) == ([0, 0, 0], [0, 0, 0])
    assert value.tolist() == [0, 0]
    annotated = "Apply node that caused the error" in str(caught.value)
    assert annotated == issubclass(error, Exception)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_update_leaves_all_values(mode, x, failure):
    make, error = FAILURES[failure]
    s, t = shared(np.zeros(3), name="s"), shared(np.zeros(3), name="t")
    f = function(
        [x], t * 2, mode=mode,
        updates=[(s, s + 1), (t, (t + make(s, x).sum()).reshape(t.shape))],
    )  # fmt: skip
    with pytest.raises(error):
        f(np.zeros(2))
    assert (s.get_value().tolist(), t.get_value().tolist()) == ([0, 0, 0], [0, 0, 0])


@pytest.mark.parametrize(
    "update",
    [
        lambda s, x, i: T.set_subtensor(s[i], x),
        lambda s, x, i: T.inc_subtensor(s[i], x),
        lambda s, x, i: T.inc_subtensor(s[i[0] :], x[:1].sum() + T.zeros_like(x)),
    ],
)
def test_a_failing_update_is_undone(mode, x, update):
    i = T.lvector("i")
    s = shared(np.zeros(3))
    f = function([x, i], updates=[(s, update(s, x, i))], mode=mode, on_unused_input="ignore")
    for value, index in (
        ([1.0, 1.0], [0, 7]),
        ([1.0, 1.0], [0, -4]),
        ([1.0, 1.0, 1.0, 1.0], [1, 1]),
    ):
        try:
            f(value, index)
        except (IndexError, ValueError):
            assert s.get_value().tolist() == [0, 0, 0]
        else:
            pytest.fail("the indices do not fit")


def test_after_a_failure_the_function_works(mode, x):
    s = shared(np.zeros(3))
    f = function([x], (s + x).sum(), updates=[(s, s + x)], mode=mode)
    for n in range(3):
        with pytest.raises(ValueError):
            f(np.zeros(2))
        assert f(np.ones(3)) == 3 * (n + 1)
    assert s.get_value().tolist() == [3, 3, 3]


def test_a_failing_state_input_keeps_its_value(x):
    b = T.dvector("b")
    f = function([In(b, value=[1.0], update=b + x), x], b * 1, mode=QUICK)
    assert f(x=[1.0]).tolist() == [1.0]
    with pytest.raises(ValueError):
        f(x=[1.0, 2.0])
    assert f["b"].tolist() == [2.0]


# --- depth, threads, memory -----------------------------------------------------------------------

DEPTH = 10_000


@pytest.fixture(scope="module")
def deep():
    """A function of 10,000 Applys, each on the result of the one before."""
    x = T.dvector("x")
    y = x
    for _ in range(DEPTH):
        y = T.sqrt(y)
    return function([x], y, mode=QUICK)


def test_a_deep_graph_compiles_and_runs(deep):
    assert len(deep.maker.fgraph.apply_nodes) == DEPTH
    assert deep([2.0]).tolist() == [1.0]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_a_deep_graph_is_copied(deep, duplicate):
    again = duplicate(deep)
    assert len(again.maker.fgraph.apply_nodes) == DEPTH
    assert again([2.0]).tolist() == [1.0]


def test_a_second_thread_waits_while_a_call_runs(a):
    inside, go_on = threading.Event(), threading.Event()
    order = []

    def wait():
        order.append(threading.current_thread().name)
        if len(order) == 1:
            inside.set()
            assert go_on.wait(30)

    f = function([a], Do(wait)(a) * 2, mode=QUICK)
    results = {}
    threads = [
        threading.Thread(target=lambda k=k: results.update({k: f(k)}), name=str(k)) for k in (1, 2)
    ]
    threads[0].start()
    assert inside.wait(30)
    try:
        threads[1].start()
        with pytest.raises(RuntimeError, match="is running"):
            f.free()
        assert f.copy(name="other").name == "other"
        assert order == ["1"]
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert order == ["1", "2"] and results == {1: 2.0, 2: 4.0}
    assert f(3) == 6


def test_threads_get_their_own_result_or_are_refused(x):
    f = function([x], T.exp(x * 2).sum() + Do(lambda: None)(x).sum(), mode=QUICK)
    wrong, done = [], []

    def call(number):
        value = np.full(5, float(number))
        expected = 5 * np.exp(2.0 * number) + 5 * number
        for _ in range(1000):
            try:
                result = f(value)
            except RuntimeError:
                continue
            done.append(number)
            if not np.isclose(result, expected):
                wrong.append((number, result))

    threads = [threading.Thread(target=call, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert done


def test_copies_run_at_the_same_time(a):
    barrier = threading.Barrier(2, timeout=30)
    f = function([a], Do(barrier.wait)(a) * 2, mode=QUICK)
    g = f.copy()
    results = {}
    thread = threading.Thread(target=lambda: results.update(f=f(1)))
    thread.start()
    results["g"] = g(10)
    thread.join()
    assert results == {"f": 2.0, "g": [20.0]}


def test_recursion_is_refused(a):
    f = function([a], Do(lambda: f(1))(a) + 1, mode=QUICK)
    with pytest.raises(RuntimeError, match="is being called already"):
        f(1)
    with pytest.raises(RuntimeError, match="is being called already"):
        f(1)


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    "calls, call",
    [
        (200_000, lambda f, v: f(v)),
        (100_000, lambda f, v: f(x=v)),
        (100_000, lambda f, v: f(v.tolist())),
    ],
)
def test_many_calls_take_no_memory(x, calls, call):
    s = shared(np.zeros(10))
    f = function([x], [T.dot(x, x), x[1:]], updates=[(s, s * 0.5 + x)], mode=QUICK)
    value = np.ones(10)

    def run(n):
        for _ in range(n):
            call(f, value)

    run(calls // 10)
    gc.collect()
    before = resident_bytes()
    run(calls)
    gc.collect()
    # the least that a call could leave behind is an object, 16 bytes or more; other parts of the
    # process may take a few pages meanwhile
    assert (resident_bytes() - before) / calls < 40


def test_failing_calls_take_no_memory(x):
    s = shared(np.zeros(3))
    f = function([x], s + x, updates=[(s, s + 1)], mode=QUICK)

    def run(n):
        for _ in range(n):
            with pytest.raises(ValueError):
                f(np.zeros(2))

    run(300)
    gc.collect()
    objects = len(gc.get_objects())
    run(300)
    gc.collect()
    assert len(gc.get_objects()) - objects < 100


def test_compiled_functions_are_freed():
    def make():
        x = T.dvector("x")
        return function([x], T.exp(x * 2 + 1).sum(), mode=QUICK)([1.0])

    for _ in range(3):
        make()
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(10):
        make()
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
