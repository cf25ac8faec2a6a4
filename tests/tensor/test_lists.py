"""Lists in graphs: the type, what operations return, in place or not, errors, modes."""

import pickle

import numpy as np
import pytest

import opwise.tensor as T
from opwise import In, ProfileMode, function, shared, typed_list
from opwise.tensor import slicetype
from opwise.typed_list import TypedListType, make_list

pytestmark = pytest.mark.null

MODES = ["FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", ProfileMode()]
A, B, C = np.array([1.0, 2.0]), np.array([3.0]), np.array([4.0, 5.0, 6.0])


@pytest.fixture
def xs():
    return TypedListType(T.dvector)("xs")


@pytest.fixture
def v():
    return T.dvector("v")


def same(found, expected):
    assert isinstance(found, list) and len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


# --- the type -------------------------------------------------------------------------------------


def test_the_type_converts_and_checks_elements():
    type_ = TypedListType(T.dvector)
    same(type_.filter([[1, 2], B]), [A, B])
    assert type_.is_valid_value([A]) and not type_.is_valid_value((A,))
    assert not type_.is_valid_value([[1.0]])
    with pytest.raises(TypeError):
        type_.filter([T.dmatrix])
    assert type_ == TypedListType(T.dvector) != TypedListType(T.fvector)
    assert hash(type_) == hash(pickle.loads(pickle.dumps(type_)))
    assert str(type_) == "TypedList <TensorType(float64, vector)>"


def test_lists_of_lists_have_a_depth():
    nested = TypedListType(T.dvector, 1)
    assert (nested.get_depth(), nested.ttype.get_depth()) == (1, 0)
    assert nested.ttype == TypedListType(T.dvector)
    for error, arguments in ((ValueError, (T.dvector, -1)), (TypeError, (3,))):
        with pytest.raises(error):
            TypedListType(*arguments)


def test_values_are_compared_by_their_elements():
    type_ = TypedListType(T.dvector)
    assert type_.values_eq([A, B], [A.copy(), B])
    assert not type_.values_eq([A, B], [A])
    assert not type_.values_eq([A], [B])
    assert type_.values_eq_approx([A], [A + 1e-12])
    assert type_.may_share_memory([A, B], [B]) and type_.may_share_memory([A[:1]], A)
    assert not type_.may_share_memory([A], [B])


def test_variables_know_their_elements(xs):
    assert (xs.ttype, xs.dtype, xs.ndim) == (T.dvector, "float64", 2)
    assert bool(xs)
    with pytest.raises(TypeError):
        len(xs)


# --- operations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda xs, v: xs.append(v), [A, B, C]),
        (lambda xs, v: xs.extend(xs), [A, B, A, B]),
        (lambda xs, v: xs.insert(1, v), [A, C, B]),
        (lambda xs, v: xs.insert(T.constant(0, dtype="int64"), v), [C, A, B]),
        (lambda xs, v: xs.append(v).remove(v), [A, B]),
        (lambda xs, v: xs.reverse(), [B, A]),
        (lambda xs, v: xs[:1], [A]),
        (lambda xs, v: xs.append(v).reverse().append(v), [C, B, A, C]),
        (lambda xs, v: make_list([v, v * 2]), [C, 2 * C]),
    ],
)
def test_operations_return_lists(xs, v, make, expected, mode):
    given = [A.copy(), B.copy()]
    f = function([xs, v], make(xs, v), mode=mode, on_unused_input="ignore")
    for _ in range(2):
        same(f(given, C), expected)
    same(given, [A, B])


@pytest.mark.parametrize("mode", MODES)
def test_operations_return_elements_and_numbers(xs, v, mode):
    s = slicetype()
    outputs = [xs[0], xs[-1] * 2, xs[T.constant(1, dtype="int64")], xs.__len__(), xs.count(v),
               xs.ind(v), xs[s]]  # fmt: skip
    first, twice, second, n, times, where, part = function([xs, v, s], outputs, mode=mode)(
        [A, B, A], A, slice(1, None)
    )
    same([first, twice, second], [A, 2 * A, B])
    assert (n.dtype, n, times, where) == ("int64", 3, 2.0, 0.0)
    same(part, [B, A])


@pytest.mark.parametrize("mode", MODES)
def test_lists_of_lists(v, mode):
    outer, inner = TypedListType(T.dvector, 1)(), TypedListType(T.dvector)()
    f = function([outer, inner], [outer.append(inner), outer[0][0] + 1], mode=mode)
    both, number = f([[A]], [B, C])
    same(both[1], [B, C])
    np.testing.assert_array_equal(number, A + 1)


def test_a_shared_list_grows(v):
    kept = shared([])
    of_lists = typed_list.TypedListVariable(TypedListType(T.dvector))
    f = function([of_lists, v], of_lists.append(v))
    for _ in range(2):
        kept.set_value(f(kept.get_value(), A))
    same(kept.get_value(), [A, A])


@pytest.mark.parametrize(
    "make",
    [
        lambda xs, v: xs.append(v),
        lambda xs, v: xs.extend(make_list([v])),
        lambda xs, v: xs.insert(0, v),
        lambda xs, v: xs.remove(v),
        lambda xs, v: xs.reverse(),
    ],
)  # fmt: skip
def test_the_list_itself_changes_where_it_may(xs, v, make):
    f = function(
        [In(xs, mutable=True, borrow=True), v], make(xs, v), mode="FAST_RUN",
        on_unused_input="ignore",
    )  # fmt: skip
    assert any(getattr(n.op, "inplace", False) for n in f.maker.fgraph.toposort())
    kept = function([xs, v], [make(xs, v), xs], mode="FAST_RUN", on_unused_input="ignore")
    given = [A, B]
    changed, as_given = kept(given, A)
    same(as_given, [A, B])
    same(given, [A, B])
    same(f([A, B], A), changed)


def test_a_list_and_an_element_of_it_may_both_be_arguments(xs, v):
    f = function(
        [In(xs, mutable=True, borrow=True), In(v, mutable=True, borrow=True)], xs.remove(v)
    )
    same(f([A, B], B), [A])


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda xs, v: xs.append(T.fvector()), AssertionError),
        (lambda xs, v: xs.extend(v), AssertionError),
        (lambda xs, v: xs.insert(T.dscalar(), v), AssertionError),
        (lambda xs, v: xs[v], TypeError),
        (lambda xs, v: xs[T.iscalar()], AssertionError),
        (lambda xs, v: typed_list.length(v), AssertionError),
        (lambda xs, v: typed_list.count(xs, 3), AssertionError),
        (lambda xs, v: make_list(v), AssertionError),
        (lambda xs, v: make_list([v, T.fvector()]), TypeError),
        (lambda xs, v: make_list([]), IndexError),
    ],
)
def test_arguments_are_checked(xs, v, make, error):
    with pytest.raises(error):
        make(xs, v)


@pytest.mark.parametrize("mode", MODES)
def test_failing_calls(xs, v, mode):
    with pytest.raises(IndexError, match="list index out of range"):
        function([xs], xs[5], mode=mode)([A])
    for op in (xs.remove, xs.ind):
        with pytest.raises(ValueError, match="the list of 1 elements does not have"):
            function([xs, v], op(v), mode=mode)([A], B)
    with pytest.raises(ValueError, match="could not convert"):
        function([xs], xs, mode=mode)([A, "text"])
