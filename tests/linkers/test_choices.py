"""Steps that only a branch needs run only if it is taken: both VMs, every mode, random graphs."""

import random
import threading

import numpy as np
import pytest

import opwise.tensor as T
from opwise import Apply, FunctionGraph, Mode, Op, VM_Linker, function, shared
from opwise.compile import MonitorMode
from opwise.compile.nanguardmode import NanGuardMode
from opwise.gradient import grad
from opwise.graph.guards import ALWAYS, find_guards
from opwise.ifelse import IfElse, ifelse
from opwise.linkers.program import handed_over, make_program
from opwise.loops import Scan, scan
from opwise.tensor import DimShuffle, Dot, Elemwise
from opwise.tensor.blas import Dot22

pytestmark = pytest.mark.c

LINKERS = ["cvm", "vm", "py", "c|py", "cvm_nogc", "vm_nogc"]
MODES = ["FAST_RUN", "FAST_COMPILE", "PROFILE_MODE"]
X, Y = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])


@pytest.fixture(params=[*MODES, *LINKERS])
def mode(request):
    return request.param if request.param in MODES else Mode(request.param, "fast_run")


class Counted(Op):
    """Computes ``2 * x``, and counts its runs."""

    def __init__(self):
        self.runs = 0

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        assert inputs[0] is not None
        self.runs += 1
        output_storage[0][0] = inputs[0] * 2

    def infer_shape(self, node, shapes):
        return shapes

    def grad(self, inputs, output_gradients):
        return [output_gradients[0] * 2]


class Fails(Counted):
    def perform(self, node, inputs, output_storage):
        raise ZeroDivisionError("this branch was not to be computed")


def operands():
    return T.iscalar("c"), T.dvector("x"), T.dvector("y")


def runs(*ops):
    """Return how often Ops ran since the last time."""
    found = [op.runs for op in ops]
    for op in ops:
        op.runs = 0
    return found


def test_only_the_branch_that_is_taken(mode):
    c, x, y = operands()
    a, b = Counted(), Counted()
    f = function([c, x, y], ifelse(c, T.exp(a(x)), T.sin(b(y))), mode=mode)
    np.testing.assert_allclose(f(1, X, Y), np.exp(2 * X))
    assert runs(a, b) == [1, 0]
    np.testing.assert_allclose(f(0, X, Y), np.sin(2 * Y))
    assert runs(a, b) == [0, 1]


def test_the_other_branch_may_fail(mode):
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, Fails()(x), y * 2), mode=mode)
    np.testing.assert_array_equal(f(0, X, Y), Y * 2)
    with pytest.raises(ZeroDivisionError, match="this branch"):
        f(1, X, Y)
    np.testing.assert_array_equal(f(0, X, Y), Y * 2)


def test_a_switch_computes_both(mode):
    c, x, _ = operands()
    a, b = Counted(), Counted()
    function([c, x], T.switch(c, a(x), b(x)), mode=mode)(1, X)
    assert runs(a, b) == [1, 1]


def test_nested_choices(mode):
    c, x, y = operands()
    d = T.iscalar("d")
    ops = one, two, three, test = [Counted() for _ in range(4)]
    inner = ifelse(test(d) > 0, one(x), two(y))
    f = function([c, d, x, y], ifelse(c, inner, three(y)), mode=mode)
    for given, expected in {
        (1, 1): [1, 0, 0, 1], (1, 0): [0, 1, 0, 1], (0, 1): [0, 0, 1, 0], (0, 0): [0, 0, 1, 0],
    }.items():  # fmt: skip
        value = f(*given, X, Y)
        assert value.tolist() == (2 * (X if given == (1, 1) else Y)).tolist()
        assert runs(*ops) == expected


def test_a_condition_that_is_chosen_itself(mode):
    c, x, y = operands()
    ops = left, right, one, two = [Counted() for _ in range(4)]
    condition = ifelse(c, left(x).sum(), right(y).sum()) > 6
    f = function([c, x, y], ifelse(condition, one(x), two(y)), mode=mode)
    assert f(1, X, Y).tolist() == (2 * Y).tolist() and runs(*ops) == [1, 0, 0, 1]
    assert f(0, X, Y).tolist() == (2 * X).tolist() and runs(*ops) == [0, 1, 1, 0]


def test_work_that_branches_share(mode):
    c, x, y = operands()
    d = T.iscalar("d")
    ops = shared_, own, other = [Counted() for _ in range(3)]
    s = shared_(x)
    f = function([c, d, x, y], [ifelse(c, s + 1, y), ifelse(d, own(s), other(y))], mode=mode)
    for given, expected in {
        (0, 0): [0, 0, 1], (1, 0): [1, 0, 1], (0, 1): [1, 1, 0], (1, 1): [1, 1, 0],
    }.items():  # fmt: skip
        one, two = f(*given, X, Y)
        assert one.tolist() == (2 * X + 1 if given[0] else Y).tolist()
        assert two.tolist() == (4 * X if given[1] else 2 * Y).tolist()
        assert runs(*ops) == expected


def test_gradients_of_a_branch(mode):
    c, x, y = operands()
    a, b = Counted(), Counted()
    cost = T.sqr(ifelse(c, a(x), b(y))).sum()
    f = function([c, x, y], grad(cost, [x, y]), mode=mode)
    dx, dy = f(1, X, Y)
    assert dx.tolist() == (8 * X).tolist() and dy.tolist() == [0, 0, 0]
    assert runs(a, b) == [1, 0]
    dx, dy = f(0, X, Y)
    assert dx.tolist() == [0, 0] and dy.tolist() == (8 * Y).tolist()
    assert runs(a, b) == [0, 1]


def test_updates_in_a_branch(mode):
    c = T.iscalar("c")
    s = shared(np.ones(3))
    work, failing = Counted(), Fails()
    f = function([c], [], updates=[(s, ifelse(c, work(s), s))], mode=mode)
    f(0)
    assert s.get_value().tolist() == [1, 1, 1] and runs(work) == [0]
    f(1)
    assert s.get_value().tolist() == [2, 2, 2] and runs(work) == [1]
    t = shared(np.zeros(3))
    g = function([c], [], updates=[(s, s + 1), (t, ifelse(c, failing(s), t + 1))], mode=mode)
    with pytest.raises(ZeroDivisionError):
        g(1)
    assert s.get_value().tolist() == [2, 2, 2] and t.get_value().tolist() == [0, 0, 0]
    g(0)
    assert s.get_value().tolist() == [3, 3, 3] and t.get_value().tolist() == [1, 1, 1]


def test_more_choices_than_bits_in_a_word(mode):
    c = T.ivector("c")
    x = T.dscalar("x")
    ops = [Counted() for _ in range(80)]
    outputs = [ifelse(c[k], op(x + k), x) for k, op in enumerate(ops)]
    f = function([c, x], outputs, mode=mode)
    rng = np.random.RandomState(1)
    for _ in range(3):
        taken = rng.randint(0, 2, 80).astype("int32")
        found = f(taken, 1.0)
        assert [float(v) for v in found] == [2 * (1 + k) if t else 1 for k, t in enumerate(taken)]
        assert runs(*ops) == taken.tolist()


def test_a_deep_chain_of_choices(mode):
    c, x = T.ivector("c"), T.dscalar("x")
    ops = [Counted() for _ in range(40)]
    value = x
    for k, op in enumerate(ops):
        value = ifelse(c[k], op(value), value * 3)
    f = function([c, x], value, mode=mode)
    taken = np.arange(40, dtype="int32") % 3 == 0
    assert np.isclose(f(taken.astype("int32"), 1.0), 2.0**14 * 3.0**26)
    assert runs(*ops) == taken.astype(int).tolist()


def test_everything_runs_in_c():
    c, x, y = operands()
    value = ifelse(c, T.exp(x) * 2, T.dot(T.outer(y, y), y))
    value = ifelse(value.sum() > 3, value + 1, ifelse(c, x, y) - 1)
    f = function([c, x, y], value, mode="FAST_RUN")
    assert all(f.linked.in_c) and f.linked.program.choices
    for condition in (0, 1):
        got = np.exp(X) * 2 if condition else np.outer(Y, Y) @ Y
        np.testing.assert_allclose(f(condition, X, Y), got + 1)


# --- values and memory ----------------------------------------------------------------------------


def test_graphs_without_choices_have_no_guards():
    c, x, y = operands()
    assert function([c, x, y], ifelse(c, x, y)).linked.program.guards == ()
    assert function([c, x], T.exp(x) * c).linked.program.choices == ()


def program_of(inputs, outputs):
    return make_program(FunctionGraph(inputs, outputs, clone=False))


def test_which_values_are_handed_over():
    c, x, y = operands()
    a, b, read = T.exp(x), T.sin(y), T.cos(x)
    made = program_of([c, x, y], [*ifelse(c, [a, read, x], [b, y, b]), read])
    [k] = [k for k, step in enumerate(made.steps) if isinstance(step.node.op, IfElse)]
    # a dies; another output reads `read`; x and y are inputs; b is taken twice
    assert handed_over(made, k) == (False, True, False, False, False, False, False)


def test_values_are_handed_over_without_a_copy():
    """The memory of the result is that of the branch: nothing else is allocated for it."""
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, T.exp(x), T.sin(y)), mode=Mode("cvm_nogc", "fast_run"))
    big = np.ones(200_000)
    for condition in (1, 0, 1, 0):
        np.testing.assert_allclose(f(condition, big, big), np.exp(1) if condition else np.sin(1))
    assert f.fn.kept_bytes() < 2.5 * big.nbytes


@pytest.mark.parametrize("condition", [0, 1])
def test_views_and_transposes(mode, condition):
    c, m = T.iscalar("c"), T.dmatrix("m")
    value = ifelse(c, T.exp(m).T[1:], T.sin(m).T[::-1])
    f = function([c, m], [value, value * 2], mode=mode)
    given = np.arange(6.0).reshape(2, 3)
    expected = np.exp(given).T[1:] if condition else np.sin(given).T[::-1]
    for _ in range(3):
        found, doubled = f(condition, given)
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(doubled, 2 * expected)


def test_results_stay_as_they_are_in_later_calls(mode):
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, T.exp(x), T.sin(y)), mode=mode)
    found = [f(k % 2, X + k, Y + k) for k in range(6)]
    for k, value in enumerate(found):
        np.testing.assert_allclose(value, np.exp(X + k) if k % 2 else np.sin(Y + k))


def test_values_of_python_steps(mode):
    c, x, y = operands()
    a = Counted()
    value = a(x)
    f = function([c, x, y], [ifelse(c, value[::-1], y), ifelse(c, a(y), x)], mode=mode)
    for _ in range(2):
        one, two = f(1, X, Y)
        assert one.tolist() == [4, 2] and two.tolist() == [6, 8, 10]
        one, two = f(0, X, Y)
        assert one.tolist() == Y.tolist() and two.tolist() == X.tolist()


# --- rewrites -------------------------------------------------------------------------------------


def test_loops_are_not_fused_across_branches():
    """exp(x) is always needed, its reader in a branch is not."""
    c, x, y = operands()
    e = T.exp(x)
    f = function([c, x, y], [ifelse(c, T.tanh(e) * 2, y), e], mode="FAST_RUN")
    program = f.linked.program
    guards = {
        guard == ALWAYS
        for step, guard in zip(program.steps, program.guards, strict=True)
        if isinstance(step.node.op, Elemwise)
    }
    assert guards == {True, False}
    one, two = f(1, X, Y)
    np.testing.assert_allclose(one, np.tanh(np.exp(X)) * 2)
    np.testing.assert_allclose(two, np.exp(X))


def test_a_branch_is_fused_itself():
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, T.tanh(T.exp(x) * 2 + 1), y), mode="FAST_RUN")
    assert [type(node.op) for node in f.linked.order] == [Elemwise, IfElse]


# --- what watches a call --------------------------------------------------------------------------


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_a_profile_counts_the_runs(linker):
    c, x, y = operands()
    f = function([c, x, y], ifelse(c, T.exp(x), T.dot(y, y) * x), profile=True,
                 mode=Mode(linker, "fast_run"))  # fmt: skip
    for condition in (1, 1, 1, 0):
        f(condition, X, Y)
    rows = zip(f.linked.order, f.fn.timing.by_step(), strict=True)
    counts = [(isinstance(node.op, IfElse), row[0]) for node, row in rows]
    assert sorted(counts) == [(False, 1), (False, 1), (False, 1), (False, 3), (True, 4)]
    for _, _, times in f.fn.timing.detail():
        assert 0 in times  # a step that did not run has no time in that call


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_a_call_has_the_time_of_all_steps_of_a_loop_but_the_skipped_ones(linker):
    """The branch is taken in the first steps, and not in the last."""
    x = T.dmatrix("x")
    last, _ = scan(
        lambda i, m: ifelse(i < 3, T.dot(m, m), m), outputs_info=[x], sequences=[T.arange(6)]
    )
    f = function([x], last[-1], profile=True, mode=Mode(linker, "fast_run"))
    f(np.eye(8))
    (loop,) = (n.tag.inside.linked for n in f.linked.order if isinstance(n.op, Scan))
    ((_, _, times),) = f.fn.timing.detail()
    rows = loop.vm.timing.by_step()
    assert times[len(f.linked.order) :] == [row[1] for row in rows]
    (dot,) = (
        row for node, row in zip(loop.order, rows, strict=True) if isinstance(node.op, Dot | Dot22)
    )
    assert dot[0] == 3


def test_callbacks_see_the_steps_that_run():
    seen = []
    c, x, y = operands()
    linker = VM_Linker(callback=lambda node, **_: seen.append(type(node.op)))
    f = function([c, x, y], ifelse(c, x * 2, T.dot(y, y) * y), mode=Mode(linker, None))
    f(1, X, Y)
    assert len(seen) == 3 and set(seen) == {DimShuffle, Elemwise, IfElse}


def test_monitors_and_guards_do_not_miss_values():
    c, x, y = operands()
    seen = []
    monitor = MonitorMode(post_func=lambda i, node, fn: seen.append(str(node.op)))
    f = function([c, x, y], ifelse(c, Counted()(x), Fails()(y)), mode=monitor)
    assert f(1, X, Y).tolist() == [2, 4] and len(seen) == 2
    guard = NanGuardMode(nan_is_error=True, inf_is_error=True, big_is_error=True)
    f = function([c, x, y], ifelse(c, Counted()(x), Fails()(y)), mode=guard)
    assert f(1, X, Y).tolist() == [2, 4]
    f = function([c, x, y], ifelse(c, T.log(x), y), mode=guard)
    assert f(0, -X, Y).tolist() == Y.tolist()
    with pytest.raises(AssertionError):
        f(1, -X, Y)


def test_threads_choose_for_themselves():
    c, x, y = operands()
    made = function([c, x, y], [ifelse(c, T.exp(x), T.sin(y))], mode="FAST_RUN")
    wrong = []

    def work(condition):
        f = made.copy()
        for _ in range(300):
            [value] = f(condition, X, Y)
            if not np.allclose(value, np.exp(X) if condition else np.sin(Y)):
                wrong.append(condition)

    threads = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- random graphs --------------------------------------------------------------------------------


class Work(Op):
    """Computes a sum of its inputs with weights, and notes that it ran."""

    __props__ = ("number",)
    ran: list = []

    def __init__(self, number):
        self.number = number

    def make_node(self, *inputs):
        return Apply(self, inputs, [inputs[0].type()])

    def perform(self, node, inputs, output_storage):
        Work.ran.append(self.number)
        output_storage[0][0] = np.asarray(self.compute(inputs))

    def compute(self, values):
        return sum((i + 2) * value for i, value in enumerate(values)) % 1000 + self.number

    def do_constant_folding(self, node):
        return False


class RandomGraph:
    """A random graph with choices, and what it computes."""

    def __init__(self, rng):
        self.inputs = [T.lscalar(name) for name in "abcd"]
        self.variables = list(self.inputs)
        #: (what it computes of the values of others, these) by position
        self.parts = [("input", k) for k in range(4)]
        for k in range(rng.choice([6, 12, 25, 50])):
            if rng.random() < 0.35:
                self._choice(rng)
            else:
                last = range(max(0, len(self.parts) - 8), len(self.parts))
                self._add(("work", Work(k), rng.choices(last, k=rng.choice([1, 1, 2]))))
        self.outputs = rng.sample(range(4, len(self.parts)), 3)

    def _add(self, part):
        _, op, read = part
        self.parts.append(part)
        self.variables.append(op(*(self.variables[i] for i in read)))

    def _choice(self, rng):
        condition = rng.randrange(len(self.parts))
        n = rng.choice([1, 1, 2])
        then, other = (rng.choices(range(len(self.parts)), k=n) for _ in range(2))
        chosen = ifelse(
            self.variables[condition] % 2,
            [self.variables[i] for i in then],
            [self.variables[i] for i in other],
        )
        for k, var in enumerate(chosen):
            self.parts.append(("choice", condition, then, other, k))
            self.variables.append(var)

    def expected(self, given):
        """Return the outputs, and the numbers of the Work that they need."""
        values, needed = {}, set()

        def value(i):
            if i not in values:
                values[i] = compute(*self.parts[i])
            return values[i]

        def compute(kind, *part):
            if kind == "input":
                return given[part[0]]
            if kind == "work":
                op, read = part
                needed.add(op.number)
                return op.compute([value(i) for i in read])
            condition, then, other, k = part
            branch = then if value(condition) % 2 else other
            return [value(i) for i in branch][k]

        return [value(i) for i in self.outputs], needed


@pytest.mark.parametrize("linker", ["cvm", "vm"])
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs(seed, linker):
    rng = random.Random(seed)
    graph = RandomGraph(rng)
    outputs = [graph.variables[i] for i in graph.outputs]
    for rewrites in ("fast_run", None):
        f = function(graph.inputs, outputs, mode=Mode(linker, rewrites), on_unused_input="ignore")
        # a circle of conditions is cut: see tests/graph/test_guards.py
        program = f.linked.program
        guards = program.guards or [ALWAYS] * len(program.steps)
        lazy = find_guards(program.order, f.maker.fgraph.outputs).of
        forced = {
            step.node.op.number
            for step, guard in zip(program.steps, guards, strict=True)
            if guard == ALWAYS and lazy[step.node] != ALWAYS and isinstance(step.node.op, Work)
        }
        for _ in range(6):
            given = [rng.randrange(0, 4) for _ in graph.inputs]
            Work.ran.clear()
            found = f(*given)
            expected, needed = graph.expected(given)
            assert [int(v) for v in found] == expected
            assert len(set(Work.ran)) == len(Work.ran)
            assert set(Work.ran) - needed <= forced
            assert rewrites is not None or needed <= set(Work.ran)
