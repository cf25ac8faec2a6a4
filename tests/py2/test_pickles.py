"""Pickles that Python 2.7 and genuine Theano 1.0.5 wrote; data/make.py wrote them."""

import gzip
import io
import pickle
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import theano
from opwise.compile.shared import ScalarSharedVariable, TensorSharedVariable
from opwise.py2 import pickles

pytestmark = pytest.mark.null

DATA = Path(__file__).with_name("data")


@pytest.fixture
def old(monkeypatch):
    """The class of the program that wrote the pickles, where they look for it."""

    class Old:
        pass

    monkeypatch.setattr(sys.modules["__main__"], "Old", Old, raising=False)
    return Old


@pytest.mark.parametrize("protocol", [0, 2])
@pytest.mark.parametrize("mode", ["rb", "r"])
def test_arrays_and_objects(old, protocol, mode):
    with open(DATA / f"arrays{protocol}.pkl", mode) as file:
        made, long, text, number = pickles.load(file)
    assert type(made) is old and made.name == "café"
    np.testing.assert_array_equal(made.weights, np.arange(6, dtype="float32").reshape(2, 3))
    assert made.weights.dtype == "float32" and (long, text, number) == (10, "text", 1.5)


@pytest.mark.parametrize("protocol", [0, 2])
def test_shared_variables(protocol):
    model = pickles.loads((DATA / f"shared{protocol}.pkl").read_bytes())
    W, n = model["W"], model["n"]
    assert type(W) is TensorSharedVariable and type(n) is ScalarSharedVariable
    assert W is model["again"] and W.name == "W" and W.type == theano.tensor.dmatrix
    np.testing.assert_array_equal(W.get_value(), np.arange(6.0).reshape(2, 3))
    assert n.get_value() == 3 and model["list"].get_value() == [1, "two"]
    step = theano.function([], W.sum(), updates=[(W, W * n)])
    assert [step(), step()] == [15, 45]
    again = pickle.loads(pickle.dumps(W))
    assert type(again) is TensorSharedVariable and again.get_value()[1, 2] == 45


@pytest.mark.parametrize("protocol", [0, 2])
def test_graphs(protocol):
    with gzip.open(DATA / f"graphs{protocol}.pkl.gz") as file:
        inputs, outputs, values, results = pickles.load(file)
    assert len(outputs) == len(results) == 25
    assert [v.name for v in inputs] == ["x", "y", "i"]
    f = theano.function(inputs, outputs, on_unused_input="ignore")
    for output, got, result in zip(outputs, f(*values), results, strict=True):
        np.testing.assert_allclose(got, result, err_msg=str(output), atol=1e-12)
        assert got.dtype == result.dtype == output.dtype
    inputs, outputs = pickle.loads(pickle.dumps((inputs, outputs)))
    cost = theano.function(inputs, outputs[0], on_unused_input="ignore")
    np.testing.assert_allclose(cost(*values), results[0])


@pytest.mark.parametrize("protocol", [0, 2, -1])
def test_what_opwise_wrote(protocol):
    """Its variables have the names of Theano's classes, but a state of their own."""
    import scipy.sparse

    shared = [theano.shared(v, name=n) for n, v in {"m": np.eye(2), "n": 3.0, "t": "text"}.items()]
    sparse = theano.shared(scipy.sparse.csr_matrix(np.eye(2)))
    x = theano.tensor.dmatrix("x")
    x.tag.mine = 1
    expression = theano.tensor.dot(x, shared[0]) * 2 + shared[1]
    data = pickle.dumps([expression, x, *shared, sparse], protocol)
    for read in (pickle.loads, pickles.loads):
        again, y, *others, matrix = read(data)
        assert y.tag.mine == 1 and type(y) is type(x)
        assert [type(v) for v in others] == [type(v) for v in shared]
        assert [v.name for v in others] == ["m", "n", "t"] and others[2].get_value() == "text"
        assert type(matrix) is type(sparse) and matrix.get_value().nnz == 2
        f = theano.function([y], again)
        np.testing.assert_array_equal(f([[1.0, 2.0]]), [[5.0, 7.0]])
        others[0].set_value(np.zeros((2, 2)))
        np.testing.assert_array_equal(f([[1.0, 2.0]]), [[3.0, 3.0]])


def test_a_variable_of_a_graph_is_the_input_of_another():
    with gzip.open(DATA / "graphs2.pkl.gz") as file:
        inputs, outputs, *_ = pickles.load(file)
    node = outputs[5].owner
    assert node.outputs == [outputs[5]] and node.inputs[0] is inputs[0]


def test_compiled_functions_are_refused():
    with pytest.raises(pickle.UnpicklingError, match="compiled function of Theano, which opwise"):
        pickles.loads((DATA / "function.pkl").read_bytes())


def test_a_class_that_opwise_lacks_is_named():
    text = b"ctheano.tensor.basic\nNoSuchOp\n."
    with pytest.raises(pickle.UnpicklingError, match=r"holds a theano\.tensor\.basic\.NoSuchOp"):
        pickles.loads(text)


def test_shared_variables_of_a_gpu_become_those_of_the_host(monkeypatch):
    text = (DATA / "shared0.pkl").read_bytes()
    for host, gpu in {
        b"theano.tensor.sharedvar\nTensorSharedVariable": b"theano.sandbox.cuda.var\n"
        b"CudaNdarraySharedVariable",
        b"theano.tensor.type\nTensorType": b"theano.sandbox.cuda.type\nCudaNdarrayType",
    }.items():
        assert host in text
        text = text.replace(host, gpu)
    W = pickles.loads(text)["W"]
    assert type(W) is TensorSharedVariable and W.get_value().shape == (2, 3)


def test_arrays_of_a_gpu_become_those_of_the_host(monkeypatch):
    def CudaNdarray_unpickler(array):
        raise AssertionError("only the name is pickled")

    CudaNdarray_unpickler.__module__ = "theano.sandbox.cuda.type"
    CudaNdarray_unpickler.__qualname__ = "CudaNdarray_unpickler"
    module = types.ModuleType("theano.sandbox.cuda.type")
    module.CudaNdarray_unpickler = CudaNdarray_unpickler

    class OnGpu:
        def __reduce__(self):
            return CudaNdarray_unpickler, (np.ones(3, "float32"),)

    monkeypatch.setitem(sys.modules, module.__name__, module)
    found = pickles.loads(pickle.dumps(OnGpu(), 2))
    assert type(found) is np.ndarray and found.tolist() == [1, 1, 1]


def test_dump_writes_into_files_of_text(tmp_path):
    path = tmp_path / "values.pkl"
    with open(path, "w") as file:
        pickles.dump({"a": np.arange(3)}, file)
    with open(path) as file:
        assert pickles.Unpickler(file).load()["a"].tolist() == [0, 1, 2]
    with open(path, "w") as file:
        pickles.Pickler(file, 2).dump("text")
    assert pickles.loads(path.read_bytes().decode("latin-1")) == "text"


# --- theano.misc.pkl_utils ------------------------------------------------------------------------


def test_an_archive_of_theano():
    from theano.misc.pkl_utils import load

    with open(DATA / "archive.zip", "rb") as file:
        first, second, array = load(file)
    assert first.get_value()[1, 2] == 5 and second.get_value() == 1 and array == 2


def test_an_archive_holds_arrays_by_name(tmp_path):
    from theano.misc.pkl_utils import PersistentSharedVariableID, dump, load

    path = tmp_path / "model.zip"
    W, same = theano.shared(np.ones((2, 3)), name="W"), theano.shared(np.zeros(2), name="W")
    with open(path, "wb") as file:
        dump((W, same, W, np.arange(2)), file)
    assert sorted(np.load(path)) == ["W", "W_2", "array_0", "pkl"]
    assert np.load(path)["W"].shape == (2, 3)
    first, second, again, array = load(path)
    assert first is again and first.get_value().sum() == 6 and array.tolist() == [0, 1]
    second.set_value(np.ones(2))

    def strict(archive):
        return PersistentSharedVariableID(archive, allow_unnamed=False, allow_duplicates=False)

    for values, said in {
        (W, same): "several shared variables have the name 'W'",
        (theano.shared(np.ones(1)),): "has no name",
        (theano.shared(np.ones(1), name="pkl"),): "'pkl', which the archive needs for itself",
    }.items():
        with pytest.raises(ValueError, match=said):
            dump(values, io.BytesIO(), persistent_id=strict)


@pytest.mark.parametrize("protocol", [0, 2, -1])
def test_stripped_pickles_have_no_traces(protocol):
    from theano.misc.pkl_utils import CompatUnpickler, StripPickler

    x = theano.tensor.dmatrix("x")
    x.tag.test_value, x.tag.mine, x.tag.other = np.ones((2, 2)), 1, 2
    assert x.tag.trace
    file = io.BytesIO()
    StripPickler(file, protocol, ["other"]).dump(x * 2)
    file.seek(0)
    (found,) = (v for v in CompatUnpickler(file).load().owner.inputs if v.name == "x")
    assert vars(found.tag) == {"mine": 1}
    assert set(vars(x.tag)) == {"trace", "test_value", "mine", "other"}


def test_reading_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickles.loads((DATA / "shared2.pkl").read_bytes())


def test_other_names_are_those_of_pickle():
    names = {}
    exec("from opwise.py2.pickles import *", names)
    assert {*pickle.__all__} <= {*names}
    assert pickles._Unpickler is pickle._Unpickler
    assert pickles.MARK == pickle.MARK
    with pytest.raises(AttributeError, match="module 'pickle' has no attribute 'gone'"):
        _ = pickles.gone
