"""Copies: of their own state, under other modes, in other dtypes."""

import numpy as np
import pytest

import opwise
import opwise.tensor as T
from opwise import get_mode
from opwise.printing import Print
from opwise.tuning.copies import copied, private_mode

pytestmark = pytest.mark.null

MODE = get_mode("FAST_RUN")


@pytest.fixture
def x():
    return T.dvector("x")


def dtypes(function):
    return {
        v.type.dtype
        for node in function.maker.fgraph.apply_nodes
        for v in (*node.inputs, *node.outputs)
    }


def test_a_copy_has_state_of_its_own(x):
    w = opwise.shared(np.ones(3), "w")
    fixed = opwise.shared(np.ones(3), "fixed")
    f = opwise.function([x], (w * fixed).sum(), updates=[(w, w + x)])
    value, kept = w.get_value(borrow=True), fixed.get_value(borrow=True)
    g = copied(f, MODE)
    assert g([1, 2, 3]) == 3 and g([1, 2, 3]) == 9
    assert w.get_value(borrow=True) is value and fixed.get_value(borrow=True) is kept
    assert value.tolist() == [1, 1, 1]
    assert f([0, 0, 0]) == 3


def test_two_variables_of_one_container_stay_one(x):
    w = opwise.shared(np.ones(3), "w")
    other = w.clone()
    f = opwise.function([x], other.sum() + w.sum(), updates=[(w, w + x)])
    g = copied(f, MODE)
    assert [float(g(np.ones(3))) for _ in range(2)] == [6, 12]
    assert w.get_value().sum() == 3


def test_default_updates_and_inputs_with_values_come_along(x):
    count = opwise.shared(0, "count")
    count.default_update = count + 1
    s = T.dscalar("s")
    f = opwise.function(
        [x, opwise.In(s, value=1.0, update=s * 2, name="s")], x.sum() * s + count
    )  # fmt: skip
    f([1.0])
    g = copied(f, MODE)
    assert [float(g([1.0])) for _ in range(2)] == [2 + 1, 4 + 2]
    assert count.get_value() == 1 and f["s"] == 2


def test_float32_goes_through_the_whole_graph(x):
    w = opwise.shared(np.linspace(0, 1, 4), "w")
    f = opwise.function([x], [T.exp(x * w).mean() + 0.1], updates=[(w, w - 0.1 * x)])
    g = copied(f, MODE, {"float64": "float32"})
    value = np.linspace(-1, 1, 4)
    (expected,) = f(value)
    (found,) = g(value.astype("float32"))
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, expected, 1e-6)
    stored = {spec.name: c.storage[0] for spec, c in zip(g.maker.inputs, g.input_storage)}  # noqa: B905
    assert stored["w"].dtype == "float32"
    np.testing.assert_allclose(stored["w"], w.get_value(), 1e-6)
    elementwise = [n for n in g.maker.fgraph.apply_nodes if hasattr(n.op, "scalar_op")]
    assert {n.outputs[0].type.dtype for n in elementwise} == {"float32"}


def test_float64_results_of_integers_are_cast_and_noted(x):
    n = T.lvector("n")
    f = opwise.function([x, n], T.sqrt(n) * x)
    told = []
    g = copied(f, MODE, {"float64": "float32"}, told.append)
    assert [str(node.op.scalar_op) for node in told] == ["sqrt"]
    assert g(np.ones(2, "float32"), [4, 9]).dtype == "float32"


class Doubled(opwise.Op):
    """Takes float64 alone."""

    __props__ = ()
    itypes = [T.dvector]
    otypes = [T.dvector]

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


def test_an_op_of_one_dtype_stays_between_casts(x):
    f = opwise.function([x], Doubled()(x) + 1)
    g = copied(f, MODE, {"float64": "float32"})
    assert g(np.ones(2, "float32")).tolist() == [3, 3]
    assert {"float32", "float64"} <= dtypes(g)


def test_casts_and_dtypes_that_ops_name_are_changed(x):
    f = opwise.function([x], T.sum(x, dtype="float64") + T.cast(T.cast(x, "int32"), "float64"))
    g = copied(f, MODE, {"float64": "float32"})
    found = g(np.array([1.5, 2.5], "float32"))
    assert found.dtype == "float32" and found.tolist() == [5, 6]


def test_copies_do_not_print(x, capsys):
    f = opwise.function([x], Print("here")(x) + 1)
    assert copied(f, MODE)([1.0]) == 2
    assert capsys.readouterr().out == ""
    f([1.0])
    assert "here" in capsys.readouterr().out


def test_a_mode_that_records_is_copied_without_its_records(x):
    mode = opwise.ProfileMode()
    f = opwise.function([x], x + 1, mode=mode)
    own, calls_back = private_mode(mode)
    copied(f, own)([1.0])
    assert not calls_back and type(own) is opwise.ProfileMode
    assert [fp.calls for fp in mode.profile().functions] == [0]


def test_a_mode_that_calls_the_user_is_replaced(x):
    called = []
    linker = opwise.VM_Linker(callback=lambda **kwargs: called.append(1))
    f = opwise.function([x], x + 1, mode=opwise.Mode(linker, "fast_run"))
    own, calls_back = private_mode(f.maker.mode)
    assert copied(f, own)([1.0]) == 2
    assert calls_back and not called
