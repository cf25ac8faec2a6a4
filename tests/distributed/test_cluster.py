"""Functions on worker processes: results, compilations, values, threads, errors."""

import importlib.machinery
import os
import sys
import types

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest
import scipy.sparse

import opwise
import opwise.distributed as od
import opwise.tensor as T
from opwise import Apply, Op, sparse
from opwise.distributed import recipe, remote

pytestmark = pytest.mark.null

DATA = np.random.RandomState(0).rand(40, 6)


@pytest.fixture
def array():
    return da.from_array(DATA, chunks=(4, 6))


def compiled(inputs, outputs, name, **options):
    return opwise.function(inputs, outputs, mode="FAST_COMPILE", name=name, **options)


def on_workers(client, question):
    """Return the answers of both workers; functions are sent as they are, not by name."""
    return list(client.run(question).values())


def test_arrays_bags_and_delayed_values(client, array):
    x = T.dmatrix("x")
    f = compiled([x], T.exp(x), "exponential")
    np.testing.assert_allclose(od.map_blocks(f, array).compute(), np.exp(DATA))
    rows = [DATA[k : k + 1] for k in range(5)]
    bag = od.map_bag(f, db.from_sequence(rows, npartitions=2)).compute()
    np.testing.assert_allclose(np.concatenate(bag), np.exp(DATA[:5]))
    later = od.delayed(f)(dask.delayed(DATA))
    np.testing.assert_allclose(later.compute(), np.exp(DATA))


def test_the_scheduler_knows_the_names(client, array):
    x = T.dmatrix("x")
    f = compiled([x], x + 1, "shift")
    ran = od.map_blocks(f, array).persist()
    ran.compute()
    names = client.run_on_scheduler(
        lambda dask_scheduler: {
            name: prefix.states["memory"] for name, prefix in dask_scheduler.task_prefixes.items()
        }
    )
    assert names["opwise-shift"] == array.npartitions


def test_each_worker_compiles_a_function_once(client, array):
    x = T.dmatrix("x")
    f = compiled([x], x - 1, "less")
    w = opwise.shared(np.ones(6))
    g = compiled([x], x * w, "times")
    count = lambda dask_worker: compilations(dask_worker)  # noqa: E731

    def compilations(worker):
        from opwise.distributed import remote

        return remote.functions_of(worker).compilations

    before = sum(on_workers(client, count))
    for k in range(3):
        w.set_value(np.full(6, float(k)))
        both = dask.compute(od.map_blocks(f, array + k), od.map_blocks(g, array))
        np.testing.assert_array_equal(both[1], DATA * k)
    assert 2 <= sum(on_workers(client, count)) - before <= 4  # two functions, two workers


def test_values_are_never_stale(client, array):
    """Tasks with different values of one variable run side by side, in any order."""
    x = T.dmatrix("x")
    w = opwise.shared(np.zeros(6), name="w")
    f = compiled([x], x * w, "scale")
    arrays = []
    for k in range(6):
        w.set_value(np.full(6, float(k)))
        arrays.append(od.map_blocks(f, array))
    for k, found in enumerate(dask.compute(*arrays)):
        np.testing.assert_array_equal(found, DATA * k)
    w.get_value(borrow=True)[:] = -1
    np.testing.assert_array_equal(od.map_blocks(f, array).compute(), -DATA)


def test_workers_use_one_thread(client, array):
    x = T.dmatrix("x")
    od.map_blocks(compiled([x], x / 2, "half"), array).compute()
    assert on_workers(client, lambda: __import__("opwise").config.threads) == [1, 1]
    assert os.getpid() not in on_workers(client, os.getpid)


class Doubled(Op):
    """An Op of the program."""

    __props__ = ()

    def make_node(self, v):
        return Apply(self, [v], [v.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 2


def test_ops_of_the_program_travel(client, array, in_main):
    in_main(Doubled)

    def tripled(v):
        return v * 3

    x = T.dmatrix("x")
    f = compiled([x], Doubled()(x), "doubled")
    np.testing.assert_array_equal(od.map_blocks(f, array).compute(), 2 * DATA)
    op = opwise.as_op([T.dmatrix], [T.dmatrix])(in_main(tripled))
    g = compiled([x], op(x), "tripled")
    np.testing.assert_array_equal(od.map_blocks(g, array).compute(), 3 * DATA)


def test_modules_that_a_worker_lacks(client, array, monkeypatch):
    """Classes of a module travel by name."""
    module = types.ModuleType("only_here")
    module.__spec__ = importlib.machinery.ModuleSpec("only_here", None)
    module.Doubled = Doubled
    monkeypatch.setitem(sys.modules, "only_here", module)
    monkeypatch.setattr(Doubled, "__module__", "only_here")
    x = T.dmatrix("x")
    f = compiled([x], Doubled()(x), "doubled")
    with pytest.raises(ImportError, match=r"cannot load the function doubled.*installed on every"):
        od.map_blocks(f, array).compute()


def test_errors_name_the_line_of_the_program(client, array):
    x, y = T.dmatrices("xy")
    f = compiled([x, y], x + y, "added")  # at fault
    later = od.delayed(f)(DATA, DATA[:7])
    with pytest.raises(ValueError, match=r"(?s)# at fault"):
        later.compute()


def test_arrays_of_messages_are_aligned(client):
    """Dask gives arrays that came over the network any address, which functions refuse."""
    x = T.dmatrix("x")
    w = opwise.shared(np.ones((3, 3)), name="w")
    f = compiled([x], T.dot(x, w), "product")
    later = [od.delayed(f)(np.full((k, 3), 1.0)) for k in range(1, 9)]
    for k, found in enumerate(dask.compute(*later), 1):
        np.testing.assert_array_equal(found, np.full((k, 3), 3.0))


def test_sparse_matrices_are_aligned(client):
    x, w = sparse.csr_matrix("x"), opwise.shared(np.arange(3.0), name="w")
    f = compiled([x], sparse.dot(x, w.dimshuffle(0, "x")), "sparse")
    for k in range(1, 4):
        matrix = scipy.sparse.random_array((k, 3), density=0.7, format="csr", rng=k)
        matrix = scipy.sparse.csr_matrix(matrix)
        found = od.delayed(f)(matrix).compute()
        np.testing.assert_allclose(found, matrix @ np.arange(3.0)[:, None])


def test_what_came_over_the_network_is_copied_if_needed():
    loose = np.frombuffer(b"x" + bytes(80), dtype="u1")[1:].view("f8")
    assert not loose.flags.aligned
    matrix = scipy.sparse.csr_matrix(np.eye(3))
    assert remote.aligned(matrix) is matrix
    matrix.data = loose[:3]
    assert remote.aligned(matrix).data.flags.aligned
    first, (second,) = remote.aligned([loose, (loose,)])
    assert first.flags.aligned and second.flags.aligned
    good = np.ones(3)
    assert remote.aligned(good) is good


def test_a_changed_function_is_another_recipe():
    x = T.dmatrix("x")
    f = compiled([x], x + 1, "plus")
    first = recipe.recipe_of(f, "test")
    f.trust_input = True
    assert recipe.recipe_of(f, "test").key != first.key
