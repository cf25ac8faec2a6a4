"""Overwriting: what takes the memory of what, and that nobody loses a value that is needed."""

import random

import numpy as np
import pytest

import opwise.tensor as T
from opwise import In, Mode, function, shared
from opwise.graph import aliasing
from opwise.scalar import Composite, get_scalar_type
from opwise.scalar.op import OPS
from opwise.tensor import Elemwise, IncSubtensor
from opwise.tensor.blas import Gemm

FAST = Mode("c|py", "fast_run")
PLAIN = Mode("py", None)
#: rewrites that overwrite, and no others: the graph stays as it was written
ONLY_INPLACE = Mode("py", "fast_run").requiring("inplace")


def overwriting(f):
    """Return the Applys of a function that overwrite an operand."""
    return [node for node in f.linked.order if node.op.destroy_map]


def check_order(f):
    """No Apply reads memory that an earlier one has overwritten, or destroys what is not its own.

    The order that the machine uses is replayed: every variable knows which version of its memory it
    shows, and each read must find that version.
    """
    fgraph, order = f.maker.fgraph, f.linked.order
    aliasing.check(fgraph)
    roots = aliasing.groups(fgraph, order)
    version = {}
    shows = {var: 0 for var in roots if var.owner is None}
    for node in order:
        for var in node.inputs:
            current = version.setdefault(roots[var], 0)
            assert shows.setdefault(var, 0) == current, f"{node} reads {var} after it was lost"
        for i in aliasing.destroyed_inputs(node):
            version[roots[node.inputs[i]]] += 1
        for out in node.outputs:
            shows[out] = version.setdefault(roots[out], 0)
    for out in fgraph.outputs:
        assert shows[out] == version.get(roots.get(out, out), 0), f"the output {out} was lost"


# --- elementwise --------------------------------------------------------------------------------


def test_a_chain_uses_one_array():
    x = T.dmatrix("x")
    f = function([x], T.sin(T.cumsum(x, axis=0)) * 2 + 1, mode=Mode("py", "fast_run"))
    (loop,) = (n for n in f.linked.order if isinstance(n.op, Elemwise))
    ((target,),) = loop.op.destroy_map.values()
    assert isinstance(loop.inputs[target].owner.op, T.extra_ops.CumOp)


def test_what_the_user_gave_is_not_overwritten():
    x = T.dmatrix("x")
    f = function([x], [x + 1, T.exp(x)], mode=FAST)
    assert not overwriting(f)


def test_views_of_what_the_user_gave_are_not_overwritten():
    x = T.dmatrix("x")
    f = function([x], [x.T + 1, x[1:] * 2, x.reshape((4,)) - 1], mode=FAST)
    assert not overwriting(f)


def test_constants_are_not_overwritten():
    c = T.constant(np.ones((3, 3)))
    x = T.dmatrix("x")
    f = function([x], T.set_subtensor(c[0, 0], x[0, 0]), mode=FAST)
    f(np.zeros((1, 1)))
    np.testing.assert_array_equal(c.data, np.ones((3, 3)))
    np.testing.assert_array_equal(f(np.full((1, 1), 7.0))[0], [7, 1, 1])


def test_outputs_are_not_overwritten():
    x = T.dmatrix("x")
    a = T.cumsum(x, axis=0)
    f = function([x], [a, a + 1], mode=FAST)
    assert not [n for n in overwriting(f) if isinstance(n.op, Elemwise)]


def test_a_value_that_is_read_later_is_not_overwritten():
    x = T.dmatrix("x")
    a = T.cumsum(x, axis=0)
    f = function([x], T.dot(T.sort(T.exp(a)), a), mode=FAST)
    check_order(f)
    value = np.random.rand(3, 3)
    np.testing.assert_allclose(f(value), np.sort(np.exp(value.cumsum(0))) @ value.cumsum(0), 1e-12)


def test_an_operand_of_another_type_is_no_target():
    x, v, f32 = T.dmatrix("x"), T.dvector("v"), T.fmatrix("f")
    outputs = [T.cumsum(v) + x, T.cumsum(f32, axis=0) + x]
    f = function([x, v, f32], outputs, mode=Mode("py", "fast_run"))
    assert not [n for n in overwriting(f) if isinstance(n.op, Elemwise)]


def test_an_array_that_may_be_given_up_is_overwritten():
    x = T.dmatrix("x")
    f = function([In(x, mutable=True)], T.exp(x) + 1, mode=FAST)
    assert overwriting(f)
    value = np.zeros((2, 2))
    out = f(value)
    np.testing.assert_array_equal(out, np.full((2, 2), 2.0))
    np.testing.assert_array_equal(value, out)


def test_shared_values_are_updated_where_they_are():
    w = shared(np.ones((3, 3)), name="w")
    x = T.dmatrix("x")
    f = function([x], [], updates=[(w, w * 0.5 + x)], mode=FAST)
    kept = w.get_value(borrow=True)
    f(np.ones((3, 3)))
    assert w.get_value(borrow=True) is kept
    np.testing.assert_array_equal(kept, np.full((3, 3), 1.5))


def test_a_shared_value_that_is_read_too():
    w = shared(np.ones(3), name="w")
    x = T.dvector("x")
    f = function([x], [(w * x).sum(), w + x], updates=[(w, w * 2 + x)], mode=FAST)
    check_order(f)
    total, more = f(np.arange(3.0))
    assert total == 3
    np.testing.assert_array_equal(more, [1, 2, 3])
    np.testing.assert_array_equal(w.get_value(), [2, 3, 4])


def test_values_that_change_places():
    a, b = shared(np.zeros(3)), shared(np.ones(3))
    f = function([], [], updates=[(a, b + 1), (b, a - 1)], mode=FAST)
    check_order(f)
    f()
    np.testing.assert_array_equal(a.get_value(), [2, 2, 2])
    np.testing.assert_array_equal(b.get_value(), [-1, -1, -1])


def test_the_array_of_the_update_is_preferred():
    """Two operands could be overwritten: the one that the result is to replace is."""
    a, w = shared(np.ones((4, 4)), name="a"), shared(np.ones((4, 4)), name="w")
    f = function([], [], updates=[(w, T.exp(a) * 2 - w)], mode=FAST)
    (node,) = overwriting(f)
    (i,) = node.op.destroy_map[0]
    k = f.maker.fgraph.inputs.index(node.inputs[i])
    assert f.maker.inputs[k].variable is w


# --- parts of arrays ----------------------------------------------------------------------------


def test_setting_a_part_overwrites():
    w = shared(np.zeros(5), name="w")
    f = function([], [], updates=[(w, T.inc_subtensor(w[1:3], 2.0))], mode=FAST)
    (node,) = overwriting(f)
    assert isinstance(node.op, IncSubtensor) and node.op.inplace
    kept = w.get_value(borrow=True)
    f()
    assert w.get_value(borrow=True) is kept
    np.testing.assert_array_equal(kept, [0, 2, 2, 0, 0])


def test_setting_rows_overwrites():
    w = shared(np.zeros((5, 2)), name="w")
    i = T.lvector("i")
    f = function([i], [], updates=[(w, T.inc_subtensor(w[i], 1.0))], mode=FAST)
    assert len(overwriting(f)) == 1
    f([0, 0, 4])
    np.testing.assert_array_equal(w.get_value()[:, 0], [2, 0, 0, 0, 1])


def test_a_part_that_is_set_from_itself():
    w = shared(np.arange(6.0), name="w")
    f = function([], [], updates=[(w, T.set_subtensor(w[1:], w[:-1] * 1))], mode=FAST)
    f()
    np.testing.assert_array_equal(w.get_value(), [0, 0, 1, 2, 3, 4])
    g = function([], [], updates=[(w, T.inc_subtensor(w[1:], w[:-1]))], mode=FAST)
    g()
    np.testing.assert_array_equal(w.get_value(), [0, 0, 1, 3, 5, 7])


def test_several_parts_in_turn():
    x = T.dvector("x")
    out = T.set_subtensor(T.inc_subtensor(T.zeros_like(x)[1:], x[1:])[:1], 5.0)
    f = function([x], out, mode=FAST)
    assert len([n for n in overwriting(f) if isinstance(n.op, IncSubtensor)]) == 2
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), [5, 2, 3])


# --- BLAS ---------------------------------------------------------------------------------------


def test_fresh_memory_is_not_shared_between_products():
    """Two products of equal shapes ask for equal empty arrays: each needs its own."""
    x, y = T.dmatrices("xy")
    v = T.dvector("v")
    f = function([x, y, v], [T.dot(x, v), T.dot(y, v)], mode=FAST)
    value = np.random.rand(5, 5)
    a, b = f(value, value + 1, np.ones(5))
    np.testing.assert_allclose(a, value.sum(1))
    np.testing.assert_allclose(b, (value + 1).sum(1))
    assert not np.shares_memory(a, b)


def test_a_sum_of_products_adds_into_one():
    x, y = T.dmatrices("xy")
    f = function([x, y], T.dot(x, y) + T.dot(y, x), mode=FAST)
    assert [type(n.op) for n in overwriting(f)] == [Gemm]


# --- switching it off ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode",
    [FAST.excluding("inplace"), Mode("c|py", "o3"), Mode("c|py", "fast_compile"),
     Mode("c|py", None), Mode("c|py", "unsafe")],
)  # fmt: skip
def test_modes_that_do_not_overwrite(mode):
    w = shared(np.ones((3, 3)), name="w")
    x = T.dmatrix("x")
    new = T.set_subtensor(w[0], 1.0) - 0.1 * T.dot(x, x)
    f = function([x], T.exp(T.cumsum(x)) + 1, updates=[(w, new)], mode=mode)
    assert not overwriting(f)


def test_one_kind_can_be_switched_off():
    w = shared(np.ones((3, 3)), name="w")
    x = T.dmatrix("x")
    updates = [(w, T.set_subtensor((w - T.dot(x, x))[0], 1.0))]
    on = function([x], [], updates=updates, mode=FAST)
    off = function([x], [], updates=updates, mode=FAST.excluding("InplaceBlasOpt"))
    assert [n.op.inplace for n in on.linked.order if isinstance(n.op, Gemm)] == [True]
    assert [n.op.inplace for n in off.linked.order if isinstance(n.op, Gemm)] == [False]


# --- several results ----------------------------------------------------------------------------


def loop(f):
    """Return the only elementwise Apply of a function."""
    (node,) = (n for n in f.linked.order if isinstance(n.op, Elemwise))
    return node


def test_each_result_may_overwrite_an_operand():
    """A step with momentum: one loop, in which both shared values are updated where they are."""
    w, v = (shared(np.full((3, 4), k), name=n, borrow=True) for k, n in [(1.0, "w"), (2.0, "v")])
    x = T.dmatrix("x")
    velocity = v * 0.5 + x
    f = function([x], [], updates=[(v, velocity), (w, w - velocity)], mode=FAST)
    node = loop(f)
    inputs = f.maker.fgraph.inputs
    overwritten = {node.inputs[i] for i in node.op.inplace_pattern.values()}
    assert overwritten == {inputs[1], inputs[2]}
    check_order(f)
    places = w.get_value(borrow=True).ctypes.data, v.get_value(borrow=True).ctypes.data
    f(np.ones((3, 4)))
    np.testing.assert_array_equal(v.get_value(), np.full((3, 4), 2.0))
    np.testing.assert_array_equal(w.get_value(), np.full((3, 4), -1.0))
    assert places == (w.get_value(borrow=True).ctypes.data, v.get_value(borrow=True).ctypes.data)


def test_two_results_do_not_overwrite_one_operand():
    x = T.dmatrix("x")
    y = T.exp(x)
    f = function([In(x, mutable=True)], [T.sort(y), T.sort(T.tanh(y))], mode=FAST)
    assert sorted(loop(f).op.inplace_pattern.values()) == [0]
    check_order(f)
    a, b = f(np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(a, np.exp([[0.0, 1.0]]))
    np.testing.assert_allclose(b, np.tanh(np.exp([[0.0, 1.0]])))


def test_an_operand_that_is_a_result_is_not_overwritten():
    """A Composite of a user's, one output of which is its input."""
    x, y = get_scalar_type("float64")("x"), get_scalar_type("float64")("y")
    both = Elemwise(Composite([x, y], [OPS["add"](x, y), x]))
    a, b = T.dvectors("ab")
    f = function([In(a, mutable=True), In(b, mutable=True)], both(a, b), mode=FAST)
    assert not overwriting(f)
    for found, expected in zip(f([1.0], [2.0]), ([3.0], [1.0]), strict=True):
        np.testing.assert_array_equal(found, expected)


# --- random graphs ------------------------------------------------------------------------------

N = 4


class Program:
    """A random program on square matrices: shared values that are read, updated and swapped."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.numbers = np.random.RandomState(seed)
        choose = self.rng.choice
        self.inputs = [T.dmatrix(f"x{k}") for k in range(self.rng.randint(1, 3))]
        self.shared = [
            shared(self.value(), name=f"w{k}", borrow=True) for k in range(self.rng.randint(1, 3))
        ]
        self.made = [*self.inputs, *self.shared]
        for _ in range(self.rng.randint(4, 14)):
            self.made.append(self.apply())
        computed = self.made[len(self.inputs) + len(self.shared) :]
        self.outputs = [choose(self.made) for _ in range(self.rng.randint(0, 3))]
        self.updates = []
        for w in self.rng.sample(self.shared, self.rng.randint(1, len(self.shared))):
            kind = self.rng.random()
            if kind < 0.15:
                new = choose(self.shared)  # swapped, or copied
            elif kind < 0.3:
                new = T.inc_subtensor(w[self.rng.randint(0, N - 1) :], choose(computed)[0])
            elif kind < 0.5:
                new = w - 0.1 * T.dot(choose(self.made), choose(self.made))
            elif kind < 0.7:
                new = w * 0.5 + choose(computed)
            else:
                new = choose(computed)
            self.updates.append((w, new))

    def value(self):
        return self.numbers.uniform(-1, 1, (N, N))

    def pick(self):
        recent = self.rng.random() < 0.6
        return self.rng.choice(self.made[-4:] if recent else self.made)

    def apply(self):
        pick, i = self.pick, self.rng.randint(0, N - 1)
        return self.rng.choice([
            lambda: pick() + pick(),
            lambda: pick() * 0.5 - pick(),
            lambda: T.tanh(pick()),
            lambda: T.tanh(pick() * pick()) + pick(),
            lambda: pick().T,
            lambda: pick()[::-1],
            lambda: pick()[:, ::-1].T + pick(),
            lambda: pick().reshape((N * N,)).reshape((N, N)),
            lambda: T.dot(pick(), pick()) * 0.2,
            lambda: pick() + 0.1 * T.dot(pick(), pick()),
            lambda: pick() - 0.1 * T.outer(pick()[i], pick()[:, 0]),
            lambda: T.set_subtensor(pick()[i], pick()[0]),
            lambda: T.inc_subtensor(pick()[:, i:], 0.5),
            lambda: T.inc_subtensor(pick()[i:], pick()[i]),
            lambda: T.set_subtensor(pick()[[0, i]], pick()[:2]),
            lambda: pick() + T.dot(pick(), pick()[i]),
            lambda: T.sort(pick(), axis=0),
            lambda: T.switch(T.gt(pick(), 0), pick(), pick()),
            lambda: T.cumsum(pick(), axis=1) * 0.3,
        ])()  # fmt: skip

    def run(self, mode, calls=2):
        """Return what ``calls`` calls give and leave in the shared values, from the same start."""
        start = [w.get_value() for w in self.shared]
        f = function(
            self.inputs, self.outputs, updates=self.updates, mode=mode, on_unused_input="ignore"
        )
        seen = []
        numbers = np.random.RandomState(5)
        try:
            for _ in range(calls):
                values = [numbers.uniform(-1, 1, (N, N)) for _ in self.inputs]
                copies = [v.copy() for v in values]
                results = f(*values)
                for v, copy in zip(values, copies, strict=True):
                    np.testing.assert_array_equal(v, copy, "an argument was overwritten")
                seen.append([np.array(r) for r in results])
                seen.append([w.get_value() for w in self.shared])
                for result in results:  # they belong to the caller
                    result[...] = np.nan
        finally:
            for w, value in zip(self.shared, start, strict=True):
                w.set_value(value)
        return f, seen


@pytest.mark.parametrize("block", range(10))
def test_random_programs(block):
    overwrote = 0
    for seed in range(block * 30, block * 30 + 30):
        program = Program(seed)
        _, expected = program.run(PLAIN)
        for mode in (FAST_INTERPRETED, ONLY_INPLACE):
            f, found = program.run(mode)
            check_order(f)
            overwrote += len(overwriting(f))
            for step, (a, b) in enumerate(zip(expected, found, strict=True)):
                for k, (wanted, got) in enumerate(zip(a, b, strict=True)):
                    np.testing.assert_allclose(
                        got, wanted, 1e-7, 1e-9, err_msg=f"seed {seed}, step {step}, value {k}"
                    )
    assert overwrote > 30


class _Interpreted(Mode):
    """FAST_RUN without the compiler: hundreds of programs would be hundreds of its calls."""

    def bound_linker(self, fgraph):
        linker = super().bound_linker(fgraph)
        linker.generate_kernels = False
        return linker


FAST_INTERPRETED = _Interpreted("c|py", "fast_run")
