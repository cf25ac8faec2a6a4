"""Functions over arrays, bags and delayed values, in this process."""

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest

import opwise
import opwise.distributed as od
import opwise.tensor as T
from opwise import Apply, Op
from opwise.distributed import recipe, remote
from opwise.random import MRG_RandomStreams, RandomStreams

pytestmark = [
    pytest.mark.null,
    pytest.mark.usefixtures("sync"),
    # versions of Dask warn of this if there is a client, as there is after other tests
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning"),
]

DATA = np.random.RandomState(0).rand(10, 6)


@pytest.fixture
def x():
    return T.dmatrix("x")


@pytest.fixture
def array():
    return da.from_array(DATA, chunks=(4, 3))


def compiled(inputs, outputs, name="f", **options):
    return opwise.function(inputs, outputs, mode="FAST_COMPILE", name=name, **options)


def same(got, wanted, chunks=None):
    """The metadata of a Dask array are those of the result, and of its blocks."""
    assert got.dtype == wanted.dtype
    if chunks is not None:
        assert got.chunks == chunks
        for place in np.ndindex(got.numblocks):
            block = got.blocks[place].compute()
            assert block.shape == tuple(c[i] for c, i in zip(chunks, place, strict=True))
    np.testing.assert_allclose(got.compute(), wanted)


# --- arrays ---------------------------------------------------------------------------------------


def test_elementwise(x, array):
    found = od.map_blocks(compiled([x], T.exp(x)), array)
    same(found, np.exp(DATA), ((4, 4, 2), (3, 3)))


def test_the_dtype_is_that_of_the_output(x, array):
    found = od.map_blocks(compiled([x], T.cast(x > 0.5, "int8")), array)
    assert found.dtype == "int8"
    same(found, (DATA > 0.5).astype("int8"))


def test_lengths_come_from_the_graph(x, array):
    """Nothing runs to find them, in no block."""
    f = compiled([x], T.concatenate([x, x[:1]], axis=0))
    before = f.calls
    found = od.map_blocks(f, array)
    blocks = [np.vstack([DATA[a:b], DATA[a : a + 1]]) for a, b in ((0, 4), (4, 8), (8, 10))]
    columns = [np.vstack([b[:, :3] for b in blocks]), np.vstack([b[:, 3:] for b in blocks])]
    same(found, np.hstack(columns), ((5, 5, 3), (3, 3)))
    assert f.calls == before


def test_lengths_that_depend_on_values(x, array):
    found = od.map_blocks(compiled([x], x.nonzero_values()), array, drop_axis=1)
    assert np.isnan(found.chunks[0]).all()
    assert sorted(found.compute()) == sorted(DATA.ravel())


def test_one_length_of_two_depends_on_values():
    x = T.dmatrix("x")
    f = compiled([x], x[x[:, 0].nonzero()[0]])
    found = od.map_blocks(f, da.from_array(DATA, chunks=(4, 6)))
    assert np.isnan(found.chunks[0]).all() and found.chunks[1] == (6,)
    np.testing.assert_array_equal(found.compute(), DATA)


def test_unknown_blocks_give_unknown_blocks(x):
    known = da.from_array(DATA, chunks=(4, 6))
    array = known[known[:, 0] > 0.5]
    found = od.map_blocks(compiled([x], 2 * x), array)
    assert np.isnan(found.chunks[0]).all()
    np.testing.assert_array_equal(found.compute(), 2 * DATA[DATA[:, 0] > 0.5])


def test_dropped_dimensions_are_joined_first(x, array):
    same(od.map_blocks(compiled([x], x.sum(1)), array, drop_axis=1), DATA.sum(1), ((4, 4, 2),))
    same(od.map_blocks(compiled([x], x.sum(0)), array, drop_axis=[0]), DATA.sum(0), ((3, 3),))


def test_new_dimensions(x, array):
    f = compiled([x], T.stack([x, 2 * x, 3 * x]))
    wanted = np.stack([DATA, 2 * DATA, 3 * DATA])
    same(od.map_blocks(f, array, new_axis=0), wanted, ((3,), (4, 4, 2), (3, 3)))


def test_several_outputs_run_once_for_each_block(x, array):
    f = compiled([x], [x + 1, T.cast(x, "float32")])
    functions = remote.functions_of()
    first, second = od.map_blocks(f, array)
    assert second.dtype == "float32"
    a, b = dask.compute(first, second)
    np.testing.assert_array_equal(a, DATA + 1)
    np.testing.assert_array_equal(b, DATA.astype("float32"))
    key = recipe.recipe_of(f, "test").key, False
    assert functions.compiled[key].calls == array.npartitions


def test_a_list_of_one_output_is_a_tuple_of_one_array(x, array):
    (found,) = od.map_blocks(compiled([x], [x + 1]), array)
    same(found, DATA + 1, ((4, 4, 2), (3, 3)))


def test_blocks_are_paired_from_the_last_dimension_on(x, array):
    v = T.dvector("v")
    f = compiled([x, v], x * v)
    row = da.from_array(np.arange(6.0), chunks=3)
    same(od.map_blocks(f, array, row), DATA * np.arange(6), ((4, 4, 2), (3, 3)))


def test_other_values_go_to_every_call(x, array):
    k, v = T.iscalar("k"), T.dcol("v")
    f = compiled([x, k, v], x * k + v)
    wide = array.rechunk((10, 3))
    column = np.arange(10.0)[:, None]
    same(od.map_blocks(f, wide, 3, column), DATA * 3 + column, ((10,), (3, 3)))


def test_given_lengths(x, array):
    f = compiled([x], x[:2])
    same(od.map_blocks(f, array, chunks=(2, 3)), np.vstack([DATA[:2], DATA[4:6], DATA[8:10]]))


def test_equal_calls_have_equal_keys(x, array):
    f, g = compiled([x], T.exp(x)), compiled([x], T.sqrt(x))
    assert od.map_blocks(f, array).name == od.map_blocks(f, array).name
    assert od.map_blocks(f, array).name != od.map_blocks(g, array).name
    assert od.map_blocks(f, array).name.startswith("opwise-f-")


def test_default_values_of_inputs_are_those_of_the_moment(x, array):
    k = T.dscalar("k")
    f = compiled([x, opwise.In(k, value=2.0)], x * k)
    with pytest.raises(TypeError, match="for f: got 1, expected 2"):
        od.map_blocks(f, array)
    later = od.delayed(f)(DATA)
    f["k"] = 5.0
    np.testing.assert_array_equal(later.compute(), DATA * 2)
    np.testing.assert_array_equal(od.delayed(f)(DATA).compute(), DATA * 5)
    np.testing.assert_array_equal(od.delayed(f)(DATA, k=3.0).compute(), DATA * 3)


def test_shared_variables_have_the_values_of_the_call(x, array):
    w = opwise.shared(np.ones(6), name="w")
    f = compiled([x], x * w)
    f(np.ones((2, 6)))
    one = array.rechunk((4, 6))
    first = od.map_blocks(f, one)
    w.get_value(borrow=True)[:] = 2  # in place: no copy of it may be shared
    second = od.map_blocks(f, one)
    w.set_value(np.full(6, 3.0))
    third = od.map_blocks(f, one)
    for _ in range(2):
        found = dask.compute(third, first, second, third, first)
        for value, k in zip(found, (3, 1, 2, 3, 1), strict=True):
            np.testing.assert_array_equal(value, DATA * k)
    np.testing.assert_array_equal(w.get_value(), np.full(6, 3.0))


def test_arguments_are_not_overwritten(x):
    f = compiled([opwise.In(x, mutable=True)], x + 1)
    data = np.zeros((4, 4))
    array = da.from_array(data, chunks=(2, 4)).persist()
    np.testing.assert_array_equal(od.map_blocks(f, array).compute(), np.ones((4, 4)))
    np.testing.assert_array_equal(array.compute(), np.zeros((4, 4)))


def test_lent_results_are_copied(x):
    f = compiled([x], opwise.Out(x + 1, borrow=True))
    array = da.from_array(np.arange(8.0).reshape(4, 2), chunks=(1, 2))
    np.testing.assert_array_equal(od.map_blocks(f, array).compute(), array.compute() + 1)


def test_flags_of_the_program_travel(x, array, flags):
    f = compiled([x], x + 1)
    before = recipe.recipe_of(f, "test")
    flags({"conv.fft": False, "profile": False, "threads": 1})
    made = recipe.recipe_of(f, "test")
    assert set(made.flags) == {*before.flags, ("conv.fft", False)}
    assert made.key != before.key


def test_a_recipe_has_no_values(x):
    w = opwise.shared(np.zeros((100, 1000)), name="w")
    made = recipe.recipe_of(compiled([x], T.dot(x, w)), "test")
    assert len(made.data) < 50_000
    assert made is recipe.recipe_of(next(iter_functions(made)), "test")


def iter_functions(made):
    return (f for f, known in list(recipe._recipes.items()) if known is made)


# --- bags and delayed values ----------------------------------------------------------------------


def test_bags(x):
    v = T.dvector("v")
    bag = db.from_sequence([np.arange(float(n)) for n in range(7)], npartitions=3)
    assert od.map_bag(compiled([v], v.sum()), bag).compute() == [0, 0, 1, 3, 6, 10, 15]
    numbers = db.from_sequence(range(7), npartitions=3)
    k = T.lscalar("k")
    found = od.map_bag(compiled([v, k], v.sum() + k), bag, numbers)
    assert found.compute() == [0, 1, 3, 6, 10, 15, 21]
    assert found.name.startswith("opwise-f-")


def test_delayed_values(x):
    f = od.delayed(compiled([x], [x.sum(), x.shape]))
    total, shape = f(dask.delayed(DATA))
    found = dask.compute(total, shape)
    np.testing.assert_allclose(found[0], DATA.sum())
    assert found[1].tolist() == [10, 6]
    assert f(DATA).key == f(DATA).key != f(DATA + 1).key
    assert f(DATA).key.startswith("opwise-f-")


def test_dicts_of_outputs(x):
    f = compiled([x], {"a": x + 1, "b": x.sum()})
    found = od.delayed(f)(x=DATA).compute()
    assert sorted(found) == ["a", "b"]
    with pytest.raises(TypeError, match="returns a dict"):
        od.map_blocks(f, da.from_array(DATA))


# --- errors ---------------------------------------------------------------------------------------


def test_updates_are_refused(x, array):
    w = opwise.shared(np.zeros(6), name="w")
    f = compiled([x], x * w, updates=[(w, w + 1)])  # the update
    for use in (od.delayed, lambda f: od.map_blocks(f, array), lambda f: od.map_bag(f)):
        with pytest.raises(ValueError, match=r"(?s)updates w with every call.*# the update"):
            use(f)


@pytest.mark.parametrize("streams", [RandomStreams, MRG_RandomStreams])
def test_random_streams_are_refused(x, array, streams):
    noise = streams(1).normal((4, 3))  # drawn here
    f = compiled([x], x + noise)
    with pytest.raises(ValueError, match=r"(?s)draws random numbers from a stream.*# drawn here"):
        od.map_blocks(f, array)


class Unpicklable(Op):
    """An Op that holds a generator."""

    def __init__(self):
        self.held = (n for n in range(3))

    def make_node(self, v):
        return Apply(self, [v], [v.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] + 0


def test_what_cannot_be_pickled_is_named(x, array):
    f = compiled([x], T.exp(Unpicklable()(x)))  # made here
    with pytest.raises(TypeError, match=r"(?s)its Op Unpicklable.* cannot be pickled.*# made here"):
        od.map_blocks(f, array)


def test_wrong_dtypes(array):
    k = T.imatrix("k")  # integers
    f = compiled([k], k + 1)
    with pytest.raises(
        TypeError, match=r'(?s)theano function with name "f" at index 0.*# integers'
    ):
        od.map_blocks(f, array)


def test_wrong_dimensions(array):
    v = T.dvector("v")  # one dimension
    f = compiled([v], v + 1)
    with pytest.raises(TypeError, match=r"(?s)Wrong number of dimensions.*"):
        od.map_blocks(f, array)


def test_lengths_that_must_be_1(array):
    row = T.drow("row")
    f = compiled([row], row + 1)
    with pytest.raises(TypeError, match="broadcastable"):
        od.map_blocks(f, array)
    found = od.map_blocks(f, array.rechunk((1, 3)))
    np.testing.assert_array_equal(found.compute(), DATA + 1)


def test_dimensions_that_are_missing(x, array):
    f = compiled([x], x.sum(1))
    with pytest.raises(
        ValueError, match=r"has 1 dimensions, but blocks of 2 dimensions give 2.*drop"
    ):
        od.map_blocks(f, array)
    with pytest.raises(ValueError, match=r"with new_axis=\[0\] give 3.*drop_axis"):
        od.map_blocks(f, array, new_axis=0)
    with pytest.raises(ValueError, match="drop_axis is 2; the arrays have 2 dimensions"):
        od.map_blocks(f, array, drop_axis=2)


def test_blocks_that_do_not_fit_together(x, array):
    with pytest.raises(ValueError, match=r"lengths 3 and .* side by side"):
        od.map_blocks(compiled([x], x.T), da.from_array(DATA, chunks=(5, (3, 2, 1))))


def test_arrays_whose_blocks_cannot_be_paired(array):
    x, y = T.dmatrices("xy")
    with pytest.raises(ValueError, match="3 and 2 blocks along dimension 0"):
        od.map_blocks(compiled([x, y], x + y), array, array.rechunk((5, 3)))


@pytest.mark.parametrize("thing", [np.exp, None], ids=["numpy", "None"])
def test_only_compiled_functions(array, thing):
    with pytest.raises(TypeError, match="takes a compiled function"):
        od.map_blocks(thing, array)


def test_a_variable_is_not_compiled_yet(x, array):
    y = T.exp(x)  # not compiled
    with pytest.raises(TypeError, match=r"(?s)not compiled yet.*# not compiled"):
        od.map_blocks(y, array)


def test_something_must_be_an_array_of_dask(x):
    with pytest.raises(TypeError, match="needs a Dask array"):
        od.map_blocks(compiled([x], x + 1), DATA)
    with pytest.raises(TypeError, match="for f: got 0, expected 1"):
        od.map_bag(compiled([x], x + 1))
    with pytest.raises(TypeError, match="map_bag takes Dask bags"):
        od.map_bag(compiled([x], x + 1), [DATA])


def test_outputs_that_are_no_tensors(array):
    g = opwise.graph.type.generic("g")
    x = T.dmatrix("x")
    f = compiled([x, g], g, on_unused_input="ignore")
    with pytest.raises(TypeError, match="blocks of a Dask array are tensors"):
        od.map_blocks(f, array, None)
    with pytest.raises(TypeError, match="returns nothing"):
        od.map_blocks(compiled([x], [], on_unused_input="ignore"), array)
