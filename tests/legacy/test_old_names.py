"""Names that few old programs take: they do what they did in Theano."""

import importlib
import io
import logging
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import theano
import theano.tensor as T
from opwise.errors import InconsistencyError
from theano.tensor import inplace

pytestmark = pytest.mark.null

MODES = ("FAST_COMPILE", "FAST_RUN", "DEBUG_MODE", "PROFILE_MODE")
modes = pytest.mark.parametrize("mode", MODES)


# --- Ops and functions of theano.tensor -----------------------------------------------------------


@modes
@pytest.mark.parametrize("axis", [None, 0, 1, [1], -1])
def test_mean_op(mode, axis):
    x, value = T.fmatrix("x"), np.arange(6, dtype="float32").reshape(2, 3)
    op = T.Mean(axis)
    number = axis[0] if isinstance(axis, list) else axis
    y = op(x)
    assert y.dtype == "float64"
    f = theano.function([x], [y, y.shape, T.grad((y * y).sum(), x)], mode=mode)
    mean, shape, gradient = f(value)
    np.testing.assert_allclose(mean, value.mean(axis=number))
    assert tuple(shape) == mean.shape and gradient.dtype == "float32"
    theano.gradient.verify_grad(op, [np.random.RandomState(1).rand(2, 3)], rng=np.random)


def test_mean_op_refuses_axes():
    assert str(T.Mean()) == "Mean" and str(T.Mean(1)) == "Mean{1}"
    with pytest.raises(AssertionError, match="one axis"):
        T.Mean([0, 1])
    with pytest.raises(ValueError, match="Mean along axis 2 of 2 dimensions"):
        T.Mean(2)(T.matrix())


@modes
def test_tile_op(mode):
    x = T.dmatrix("x")
    with pytest.warns(UserWarning, match="Tile op is deprecated"):
        y = T.Tile(2)(x, [2, 3])
    with pytest.warns(UserWarning):
        once = T.Tile(2)(x, [1, 1])
    value = np.arange(4.0).reshape(2, 2)
    tiled, shape, same = theano.function([x], [y, y.shape, once], mode=mode)(value)
    np.testing.assert_array_equal(tiled, np.tile(value, (2, 3)))
    assert tuple(shape) == (4, 6) and not np.may_share_memory(same, value)
    with pytest.raises(NotImplementedError, match=r"use theano\.tensor\.tile"):
        T.grad(y.sum(), x)


def test_tile_op_of_another_number_of_dimensions():
    with pytest.warns(UserWarning):
        f = theano.function([], T.Tile(3)(np.ones((2, 2)), [1, 2]))
    with pytest.raises(ValueError, match=r"2 dimensions, not 3. Make it with Tile\(2\)"):
        f()


@modes
def test_default_op(mode):
    x = T.dvector("x")
    y = T.default(x, T.constant([1.0, 2.0]))
    f = theano.function([x], y + 0, mode=mode)
    assert f([3.0]).tolist() == [3.0]
    assert T.setdefault is T.default
    with pytest.raises(TypeError, match="must have same type"):
        T.default(x, T.dmatrix())


@modes
def test_default_of_none(mode):
    x, y = T.dscalars("x", "y")
    f = theano.function([x, y], T.default(x, y) * 2, mode=mode)
    assert (f(1, 2), f(None, 2), f(1, None)) == (2, 4, 2)
    with pytest.raises((ValueError, AttributeError)):
        f(None, None)
    total = y + T.default(x, 3.8)
    state = theano.function([y, theano.In(x, update=total, value=12.0)], total, mode=mode)
    assert state(3) == 15
    state["x"] = None
    assert state(1) == 4.8
    assert state(2.2) == 7


def test_shapes_of_the_variables_of_a_graph():
    x, v = T.dmatrix("x"), T.dvector("v")
    y = T.dot(x, x.T)[1:] * v
    graph = theano.gof.FunctionGraph([x, v], [y], clone=False)
    shapes = theano.tensor.utils.shape_of_variables(graph, {x: (5, 2), v: (5,)})
    assert shapes[x] == (5, 2) and shapes[v] == (5,) and shapes[y] == (4, 5)
    assert set(shapes) == set(graph.variables)
    with pytest.raises(ValueError, match="is no input of the graph, which may be a copy"):
        theano.tensor.utils.shape_of_variables(graph, {y: (4, 5)})


def test_a_gradient_is_reached_by_either_method():
    n, g = T.lscalar(), theano.scalar.float64()
    converted = T.scalar_from_tensor(n)
    assert converted.owner.op.grad([n], [g])[0].type == T.dscalar
    x = T.dvector()
    (gradient,) = T.sqr.grad([x], [T.dvector()])
    assert gradient.type == T.dvector


def test_autocasting_in_a_context():
    usual = theano.scalar.basic.autocast_float.dtypes
    with theano.scalar.basic.autocast_float_as("float32"):
        assert theano.scalar.basic.autocast_float.dtypes == ("float32",)
        assert (T.fvector() + 1.1).dtype == "float32"
    assert theano.scalar.basic.autocast_float.dtypes == usual


@modes
def test_ceil_intdiv(mode):
    a, b = np.int64([7, 8, -7, 2**62 + 1]), np.int64([2, 4, 2, 2])
    x, y = T.lvectors("x", "y")
    f = theano.function([x, y], T.ceil_intdiv(x, y), mode=mode)
    assert f(a, b).tolist() == [4, 2, -3, 2**61 + 1]
    assert T.ceil_intdiv(T.bvector(), T.bvector()).dtype == "int8"


@modes
def test_cov(mode):
    m = np.random.RandomState(0).rand(3, 5)
    n = np.random.RandomState(1).rand(2, 5)
    x, y = T.dmatrices("x", "y")
    outputs = [
        T.cov(x), T.cov(x, y), T.cov(x, bias=True), T.cov(x, ddof=2), T.cov(x, rowvar=False),
    ]  # fmt: skip
    found = theano.function([x, y], outputs, mode=mode)(m, n)
    known = [np.cov(m), np.cov(m, n), np.cov(m, bias=True), np.cov(m, ddof=2),
             np.cov(m, rowvar=False)]  # fmt: skip
    for one, other in zip(found, known, strict=True):
        np.testing.assert_allclose(one, other)
    with pytest.raises(NotImplementedError, match="takes no weights"):
        T.cov(x, fweights=[1, 2])


@modes
def test_load(mode, tmp_path):
    np.save(tmp_path / "kept.npy", np.arange(3))
    path = theano.Variable(theano.gof.generic)
    f = theano.function([path], T.load(path, "int64", (False,)) * 2, mode=mode)
    assert f(str(tmp_path / "kept.npy")).tolist() == [0, 2, 4]
    fixed = T.load(str(tmp_path / "kept.npy"), "int32", (False,), mmap_mode="c")
    assert str(fixed.owner.op) == "Load{dtype: int32, broadcastable: (False,), mmep: c}"
    with pytest.raises(TypeError, match="Expected an array of type int32"):
        theano.function([], fixed, mode=mode)()
    with pytest.raises(ValueError, match=r"Expected a \.npy file"):
        f("kept.npz")
    with pytest.raises(ValueError, match="mmap_mode must be None or 'c'"):
        T.load(path, "int64", (False,), mmap_mode="r")


@modes
@pytest.mark.parametrize("pattern", [(True,), (False, False), ()])
def test_load_refuses_an_array_of_another_pattern(mode, pattern, tmp_path):
    np.save(tmp_path / "kept.npy", np.arange(3))
    loaded = T.load(str(tmp_path / "kept.npy"), "int64", pattern)
    with pytest.raises(TypeError, match=r"kept\.npy has shape \(3,\)"):
        theano.function([], loaded.sum(), mode=mode)()


def test_constructors_of_many_dimensions():
    assert T.dtensor6("x").type == T.TensorType("float64", (False,) * 6)
    assert [v.ndim for v in T.ftensor7s(2)] == [7, 7] and T.tensor6().dtype == "float64"


def test_lists_of_dtypes_and_types():
    assert T.float_dtypes == ["float16", "float32", "float64"]
    assert T.integer_dtypes == T.int_dtypes + T.uint_dtypes and "bool" in T.all_dtypes
    assert T.complex_dtypes == ["complex64", "complex128"]
    assert T.int_types == T.int_scalar_types == (T.bscalar, T.wscalar, T.iscalar, T.lscalar)
    assert T.float_matrix_types == (T.fmatrix, T.dmatrix) and len(T.complex_vector_types) == 2
    assert str(T.isnan_) == "Elemwise{isnan,no_inplace}" and T.isnan_ is T.basic.isnan_


def test_comparisons_of_values():
    allclose = T.basic._allclose
    assert allclose(1.0, 1.0 + 1e-6) and not allclose(1.0, 1.001)
    assert allclose(np.float16(1), 1.009) and allclose(1.0, 2.0, atol=3)
    equal = T.basic.check_equal_numpy
    assert equal(np.ones(2), np.ones(2)) and not equal(np.ones(2), np.ones(2, "float32"))
    assert equal("a", "a") and T.numpy_scalar(np.asarray(3)) == 3
    with pytest.raises(T.NotScalarConstantError, match="one number"):
        T.numpy_scalar(np.ones(2))
    with pytest.raises(T.EmptyConstantError):
        T.numpy_scalar(np.ones(0))


# --- functions that overwrite ---------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN", "PROFILE_MODE"])
def test_functions_that_overwrite_their_first_argument(mode):
    x, y = T.dvectors("x", "y")
    f = theano.function(
        [theano.In(x, mutable=True), y], inplace.add_inplace(x, y), accept_inplace=True, mode=mode
    )
    a, b = np.ones(3), np.full(3, 2.0)
    assert f(a, b).tolist() == [3.0, 3.0, 3.0] and a.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(TypeError, match="must not contain inplace operations"):
        theano.function([x], inplace.exp_inplace(x))


def test_texts_of_functions_that_overwrite():
    x, y = T.dmatrices("x", "y")
    assert str(inplace.exp_inplace(x)) == "exp_inplace.0"
    assert theano.pp(inplace.exp_inplace(x)) == "exp=(x)"
    assert theano.pp(inplace.add_inplace(x, y)) == "(x += y)"
    assert theano.pp(inplace.transpose_inplace(x)) == "x.T"
    with pytest.raises(TypeError, match="inplace operation on incompatible data types"):
        inplace.eq_inplace(x, y)


# --- theano.scalar --------------------------------------------------------------------------------


def test_autocasting():
    scalar = theano.scalar
    assert scalar.autocast_int(300).dtype == "int16" and scalar.autocast_int(1).dtype == "int8"
    assert scalar.autocast_float(0.1).dtype == "float64"
    assert scalar.autocast_float(0.5).dtype == "float32"
    assert scalar.NumpyAutocaster(("int8",))(np.int8(3)).dtype == "int8"
    assert scalar.convert(3).dtype == "int8" and scalar.convert([1.5], "float32").dtype == "float32"


def test_scalar_helpers():
    s = theano.scalar
    x, y = s.ints("xy")
    assert x.type == s.int64 and [v.name for v in s.floats("a", "b")] == ["a", "b"]
    assert s.div_proxy(x, y).type == s.int64 and s.div_proxy(x, s.float64()).type == s.float64
    assert s.mod_check(x, y).type == s.int64
    assert [v.dtype for v in s.as_common_dtype(T.ivector(), T.fvector())] == ["float64"] * 2
    assert s.real_out(s.complex64) == (s.float32,) and s.real_out(s.int8) == (s.int8,)
    assert s.upcast_out_min8(s.bool, s.bool) == (s.int8,)
    assert s.same_out_min8(s.bool) == (s.int8,)
    assert s.integer_types == s.int_types + s.uint_types
    for refused in (s.upcast_out_nobool, s.same_out_nobool):
        assert refused(s.int8) == (s.int8,)
        with pytest.raises(TypeError, match="bool"):
            refused(s.bool)
    for refused in (s.int_out_nocomplex, s.float_out_nocomplex):
        with pytest.raises(TypeError, match="complex"):
            refused(s.complex64)


# --- theano.gof and theano.compile ----------------------------------------------------------------


def test_utilities():
    u = theano.gof.utils
    assert u.uniq([1, [2], 1, [2]]) == [1, [2]] and not u.unique([1, 1])
    assert u.difference([1, 2, 3], [2]) == [1, 3] and u.hist("aab") == {"a": 2, "b": 1}
    assert u.flatten([1, (2, [3])]) == [1, 2, 3] and u.remove(bool, [0, 1]) == [0]
    assert u.to_return_values([1]) == 1 and u.from_return_values(1) == [1]
    assert u.toposort({3: {1, 2}, 2: {1}, 1: set()}) == [1, 2, 3]
    with pytest.raises(Exception, match="cycle"):
        u.toposort({1: {2}, 2: {1}})
    with pytest.raises(Exception, match=r"no key for \[2\]"):
        u.toposort({1: {2}})
    assert not u.ABORT and u.ANY_TYPE and repr(u.RETRY) == "<RETRY>" and u.D(a=1).a == 1
    assert u.hash_from_code("x") == u.hash_from_code(b"x")
    assert u.hash_from_file(__file__) != u.hash_from_code("")
    calls = []
    square = u.memoize(lambda x: calls.append(x) or x * x)
    assert square(3) == square(3) == 9 and calls == [3]


def test_utilities_that_print_and_name(capsys):
    u = theano.gof.utils
    old = u.deprecated("module", "use another")(lambda: 5)
    assert (old(), old()) == (5, 5)
    assert capsys.readouterr().out.count("deprecated. use another") == 1
    variables = u.give_variables_names([T.scalar("x"), T.scalar(), T.scalar("x")])
    assert [v.name for v in variables] == ["x_0", "_1", "x_2"]
    assert "test_old_names" in u.get_variable_trace_string(T.scalar())
    hashed = T.utils.hash_from_ndarray
    assert hashed(np.zeros(2)) != hashed(np.zeros(2, "int64"))
    assert hashed(np.zeros((1, 0))) != hashed(np.zeros((2, 0)))


def test_every_variable_has_an_automatic_name():
    x, y = T.scalar(), T.scalar()
    assert x.auto_name == x.auto_name != y.auto_name and x.auto_name.startswith("auto_")


def test_attributes_of_functions():
    x = T.dvector("x")
    f = theano.function([x], [x * 2, x + 1])
    assert [type(out).__name__ for out in f.outputs] == ["SymbolicOutput"] * 2
    assert f.fn.allow_gc is True
    f.fn.allow_gc = False
    assert f.fn.allow_gc is False and f([1.0])[0].tolist() == [2.0]


@pytest.mark.parametrize("linker", ["py", "c|py"])
def test_the_storage_map_of_a_function_has_the_values_of_the_last_call(linker):
    x = T.dvector("x")
    y = T.exp(x)
    y.name = "y"
    z = T.dot(y, y)
    for allow_gc in (True, False):
        mode = theano.Mode(linker=linker, optimizer=None)
        f = theano.function([x], [z, y[::-1] * 2], mode=mode)
        f.fn.allow_gc = allow_gc
        f([0.0, 0.0])
        f([0.0, 0.0])
        kept = {var.name: value for var, (value,) in f.fn.storage_map.items()}["y"]
        assert list(f.fn.nodes) == f.maker.fgraph.toposort()
        assert (kept is None and allow_gc) or kept.tolist() == [1.0, 1.0]
        assert f([0.0, 0.0])[0] == 2.0


def test_check_stack_trace():
    check = theano.gof.opt.check_stack_trace
    x = T.dvector("x")
    f = theano.function([x], T.exp(x) * 2)
    assert check(f) and check(f, "all") and check(f.maker.fgraph, T.Elemwise)
    assert check(f, [T.Elemwise]) and check(f, lambda node: True)
    with pytest.raises(Exception, match="none of the Ops to check"):
        check(f, T.Dot)
    with pytest.warns(UserWarning, match="none of the Ops"):
        check(f, T.Dot, bug_print="warn")
    assert check(f, T.Dot, bug_print="ignore")
    for wrong in (lambda: check(x), lambda: check(f, "first"), lambda: check(f, 3)):
        with pytest.raises(ValueError, match="must be"):
            wrong()


def test_rewrites_of_what_belongs_to_no_graph_yet():
    opt = theano.gof.opt
    x = T.dscalar("x")
    built = T.exp(x + T.constant(2.0)) * T.constant(2.0)
    (same,) = opt.pre_constant_merge([built])
    assert same is built
    two, other = built.owner.inputs[1], built.owner.inputs[0].owner.inputs[0].owner.inputs[1]
    assert two is other
    assert [c.data for c in opt.pre_constant_merge([T.constant(1), T.constant(3)])] == [1, 3]

    @theano.gof.local_optimizer([T.exp])
    def no_exp(node):
        return [node.inputs[0]] if node.op == T.exp else None

    assert str(opt.pre_greedy_local_optimizer([no_exp], T.exp(T.log(T.exp(x))))) == str(T.log(x))
    folded = opt.pre_greedy_local_optimizer([T.opt.constant_folding], T.constant(2) + 3)
    assert folded.data == 5
    owned = theano.gof.FunctionGraph([x], [T.exp(x)], clone=False).outputs[0]
    assert opt.pre_greedy_local_optimizer([no_exp], owned) is owned


def test_may_share_memory():
    sparse = pytest.importorskip("scipy.sparse")
    may_share = theano.misc.may_share_memory.may_share_memory
    a, b = np.ones((3, 2)), np.ones((3, 2))
    matrix, other = sparse.csr_matrix(np.eye(3)), sparse.csc_matrix(np.eye(3))
    for x, y, shared in [
        (a, a.T, True), (a, b, False), (matrix, matrix.data, True), (matrix.indptr, matrix, True),
        (matrix, other, False), (a, matrix, False),
    ]:  # fmt: skip
        assert may_share(x, y) is shared
    for x, y in ((a, 1), ((0,), matrix)):
        assert may_share(x, y, raise_other_type=False) is False
        with pytest.raises(TypeError, match=r"only ndarray and scipy\.sparse, not (int|tuple)"):
            may_share(x, y)


@modes
@pytest.mark.parametrize("name, bounds", [("inopenrange", (0, 0)), ("inclosedrange", (1, 1))])
def test_in_range(mode, name, bounds):
    within = getattr(theano.scalar, name)
    x, low, high = T.fvector("x"), T.fscalar("low"), T.fscalar("high")
    f = theano.function([x, low, high], T.Elemwise(within)(x, low, high), mode=mode)
    assert f([0, 1, 2, 5, 6], 1, 5).tolist() == [0, bounds[0], 1, bounds[1], 0]
    y = T.fscalar("y")
    number = within(y, low, high)
    found = theano.function([y, low, high], [number, *theano.grad(number, [y, low, high])])
    assert [float(each) for each in found(2, 1, 5)] == [1, 0, 0, 0]


def test_no_remainder_of_complex_scalars():
    from theano.scalar import ComplexError, complex64, int32

    for wrong in (lambda: complex64() % int32(), lambda: 3 % complex64(),
                  lambda: theano.scalar.mod_check(1j, 2)):  # fmt: skip
        with pytest.raises(ComplexError, match="% has no meaning for complex numbers"):
            wrong()


def test_the_graph_of_a_composite():
    x, y = theano.scalar.float64("x"), theano.scalar.float32("y")
    graph = theano.scalar.Composite([x, y], [x * y + 1]).fgraph
    assert [v.type.dtype for v in graph.inputs] == ["float64", "float32"]
    assert [str(node.op) for node in graph.toposort()] == ["mul", "add"]


def test_aliases():
    x = T.dmatrix("x")
    view = x.T
    total = inplace.exp_inplace(view)
    g = theano.gof.FunctionGraph([x], [total], clone=False)
    assert theano.gof.graph.view_roots(view) == [x] and theano.gof.graph.view_roots(x) == [x]
    assert theano.compile.alias_root(total) is x
    assert theano.compile.infer_reuse_pattern(g, [total]) == {view, total}
    with pytest.raises(InconsistencyError, match="overwrites"):
        theano.compile.Supervisor([view]).validate(g)
    theano.compile.Supervisor([x]).validate(g)


def test_print_listener(capsys):
    x, y = T.scalars("x", "y")
    g = theano.gof.FunctionGraph([x, y], [x + 1], clone=False)
    listener = theano.gof.toolbox.PrintListener()
    g.attach_feature(listener)
    g.replace(x, y)
    printed = capsys.readouterr().out
    assert "-- attaching to: " in printed and "from x to y" in printed
    listener.active = False
    g.replace(y, x)
    assert capsys.readouterr().out == ""


def test_rewrites_have_the_names_of_theano():
    from opwise.optimizers.rules import canonicalize, shape

    assert T.opt.local_dimshuffle_lift is canonicalize.local_dimshuffle_lift
    assert T.opt.local_reshape_chain is shape.local_reshape_chain
    assert T.opt.local_add_canonizer is canonicalize.local_add_canonizer
    assert theano.tensor.opt_uncanonicalize.local_alloc_dimshuffle is shape.local_alloc_dimshuffle
    x, y, z = T.dmatrices("x", "y", "z")
    for canonizer, expression, expected in [
        (T.opt.mul_canonizer, (-1 * x) / y / (-2 * z), "((half * x) / (y * z))"),
        (T.opt.add_canonizer, x + y - x, "y"),
    ]:
        graph = theano.gof.FunctionGraph([x, y, z], [expression])
        canonizer.optimize(graph)
        text = theano.printing.pprint(graph.outputs[0])
        assert text.replace("TensorConstant{(1, 1) of 0.5}", "half") == expected
    assert T.nnet.sigm.local_1msigmoid.name == "local_1msigmoid"


def test_a_function_and_a_module_of_one_name():
    module = importlib.import_module("theano.compile.pfunc")
    assert theano.compile.pfunc is module.pfunc
    x = theano.tensor.dscalar()
    assert module.pfunc(params=[x], outputs=x + 1, mode="FAST_COMPILE")(2) == 3
    assert theano.tensor.sort is importlib.import_module("theano.tensor.sort").sort
    x = T.scalar("x")
    assert theano.compile.orig_function([x], x + 1)(2) == 3


# --- what was for Python 2, and the GPU -----------------------------------------------------------


def test_compat(monkeypatch):
    c = theano.compat
    assert c.exc_message(ValueError("text")) == "text"
    error = ValueError()
    assert c.exc_message(error) is error
    assert [c.cmp(*pair) for pair in ((1, 2), (2, 2), (3, 2))] == [-1, 0, 1]
    assert c.decode(b"a") == "a" and list(c.decode_iter([b"a"])) == ["a"]
    assert c.decode_with(b"\xe4", "latin-1") == "ä"
    monkeypatch.setenv("SOME_PATH", "/a")
    c.maybe_add_to_os_environ_pathlist("SOME_PATH", "/b")
    c.maybe_add_to_os_environ_pathlist("SOME_PATH", "/b")
    assert os.environ["SOME_PATH"] == f"/b{os.pathsep}/a"


def test_cudnn_is_not_there():
    dnn = theano.sandbox.cuda.dnn
    assert dnn.dnn_available() is False and "cuDNN" in dnn.dnn_available.msg


def test_version():
    assert theano.version.get_versions()["version"] == theano.version.full_version == "1.0.5"


def test_texts_of_c_code():
    s = theano.misc.strutil
    assert s.render_string("%(a)s;", {"a": 1}) == "1;" and s.renderString is s.render_string
    with pytest.raises(Exception, match=r"x %\(b\)<<<< caused exception 'b'"):
        s.render_string("x %(b)s y", {})
    assert s.pretty_format("a {\n b\n}\nc") == "a {\n    b\n}\nc"


def test_pickles_in_zip_files(tmp_path):
    tools = theano.misc.pkl_utils
    shared = [theano.shared(np.arange(3.0) + k, name="w") for k in range(2)]
    function = theano.function([], shared[0] * 2)
    kept = {"shared": shared, "array": np.ones(2), "function": function}
    with open(tmp_path / "model.zip", "wb") as file:
        tools.dump(kept, file)
    arrays = np.load(tmp_path / "model.zip")
    assert {"w", "w_2", "array_0", "pkl"} <= set(arrays)
    assert arrays["w_2"].tolist() == [1.0, 2.0, 3.0]
    with open(tmp_path / "model.zip", "rb") as file:
        again = tools.load(file)
    assert again["array"].tolist() == [1.0, 1.0]
    assert [v.get_value().tolist() for v in again["shared"]] == [[0, 1, 2], [1, 2, 3]]
    assert again["function"]().tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "names, options, text",
    [
        (["w", "w"], {"allow_duplicates": False}, "several shared variables have the name 'w'"),
        ([None], {"allow_unnamed": False}, "a shared variable has no name"),
        (["pkl"], {}, "a shared variable has the name 'pkl', which the archive needs"),
    ],
)
def test_pickles_that_refuse_names(names, options, text):
    tools = theano.misc.pkl_utils
    variables = [theano.shared(np.ones(2), name=name) for name in names]
    with pytest.raises(ValueError, match=text):
        tools.dump(
            variables, io.BytesIO(),
            persistent_id=lambda z: tools.PersistentSharedVariableID(z, **options),
        )  # fmt: skip


def test_arguments_of_function_in_a_file(tmp_path):
    x, w = T.dscalar("x"), theano.shared(2.0, name="w")
    theano.function_dump(tmp_path / "f.pkl", [x], x * w, updates={w: w + 1}, name="f")
    with open(tmp_path / "f.pkl", "rb") as file:
        f = theano.function(**pickle.load(file))
    assert f.name == "f" and [f(3.0), f(3.0)] == [6.0, 9.0]


def test_frozen_dicts():
    d = theano.misc.frozendict.frozendict({"a": 1}, b=2)
    assert d["a"] == 1 and len(d) == 2 and "b" in d and list(d) == ["a", "b"]
    assert {d: 3}[d.copy()] == 3 and d.copy(a=5)["a"] == 5
    assert hash(d) == hash(type(d)({"b": 2, "a": 1})) and repr(d) == "<frozendict {'a': 1, 'b': 2}>"
    ordered = theano.misc.frozendict.FrozenOrderedDict([("b", 1), ("a", 2)])
    assert list(ordered) == ["b", "a"]


def test_logger():
    assert theano.theano_logger.name == "theano" and theano.has_handlers(theano.theano_logger)
    logger, handler = logging.getLogger("apart"), logging.NullHandler()
    logger.addHandler(handler)
    theano.disable_log_handler(logger, handler)
    assert logger.handlers == []


def test_each_module_has_the_logger_that_theano_gave_it():
    for name in ("theano.gof.vm", "theano.tensor.slinalg", "theano.updates"):
        assert importlib.import_module(name).logger is logging.getLogger(name)


def test_disturb_mem():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert importlib.import_module("theano.tests.disturb_mem").disturb_mem() is None


def test_questions_that_programs_ask_of_variables():
    blas = theano.tensor.blas
    m, r, v, i = T.fmatrix(), T.drow(), T.dvector(), T.iscalar()
    assert [blas._is_real_matrix(x) for x in (m, r, v)] == [True, False, False]
    assert [blas._is_real_vector(x) for x in (m, v, T.lvector())] == [False, True, False]
    assert blas._as_scalar(v) is None
    assert blas._as_scalar(i.dimshuffle("x", "x")).type == T.dscalar
    assert blas._as_scalar(i, "int8") is None
    assert blas._as_scalar(T.TensorType("float32", (True, True))()).type == T.fscalar


def test_zeros_for_disconnected_gradients():
    v, w = T.dvector("v"), T.dvector("w")
    kept, zeros = theano.tensor.nlinalg._zero_disconnected(
        [v, w], [v * 2, theano.gradient.DisconnectedType()()]
    )
    assert kept.owner.inputs[0] is v
    assert zeros.eval({w: [1.0, 2.0]}).tolist() == [0.0, 0.0]


def test_formats_of_sparse_matrices_and_casts():
    import theano.sparse.basic as basic

    assert [basic._mtype_to_str[each] for each in basic._mtypes] == ["csc", "csr"]
    assert theano.tensor.basic._convert_to_int8(T.dvector()).dtype == "int8"
    assert theano.printing.pydot_imported is False


def test_names_that_programs_use_while_they_are_imported():
    assert theano.gof.cmodule.get_lib_extension() in ("so", "pyd", "dll")
    methods = theano.compile.debugmode.default_make_thunk
    assert methods == [theano.Op.make_thunk]
    methods.append(methods[0])
    methods.pop()
    x = T.dscalar()
    assert theano.gof.utils.add_tag_trace(x) is x is theano.Op.add_tag_trace(x)


def test_records_of_what_functions_compute(tmp_path):
    from theano.tests.record import MismatchError, Record, RecordMode

    def run(value, name="f", **options):
        mode = RecordMode(**options)
        x = T.dscalar("x")
        with mode.record.f:
            assert theano.function([x], 2 * x, mode=mode, name=name)(value) == 2 * value

    path = str(tmp_path / "record.txt")
    run(4.0, file_path=path)
    lines = Path(path).read_text().splitlines()
    assert lines[:2] == ["Function f has 1 apply nodes.", "Function name: f"]
    assert [line.partition(":")[0] for line in lines[2:]] == ["Node 0", "Inputs", "Outputs"]
    run(4.0, record=Record(file_path=path, replay=True))
    with pytest.raises(MismatchError, match="Non-determinism detected"):
        run(5.0, record=Record(file_path=path, replay=True))
    mode, x = RecordMode(file_object=io.StringIO()), T.dscalar("x")
    theano.function([x], x * 2, mode=mode, name="f")(1.0)
    with pytest.raises(AssertionError, match="two functions are called f"):
        theano.function([x], x * 3, mode=mode, name="f")(1.0)
    text = io.StringIO()
    Record(file_object=text).handle_line("hello world \n")
    checked = Record(file_object=io.StringIO(text.getvalue()), replay=True)
    checked.handle_line("hello world \n")
    with pytest.raises(MismatchError, match="mismatch"):
        checked.handle_line("hello new world \n")


def test_attributes_of_old_objects():
    assert T.dmatrix.context_name == "cpu" and T.dmatrix().tag.clear() is None
    assert theano.scalar.float32.upcast(theano.scalar.float64) == "float64"
    add, sub = theano.scalar.add, theano.scalar.sub
    assert (add.commutative, add.associative, add.identity) == (True, True, 0)
    assert not sub.commutative and not hasattr(sub, "identity")
    i, m = T.lscalar("i"), T.dmatrix("m")
    node = m[i:3, 2].owner
    assert m[1:3].owner.op.get_constant_idx(m[1:3].owner.inputs) == [slice(1, 3, None)]
    first, second = node.op.get_constant_idx(node.inputs, allow_partial=True)
    assert (first.start, first.stop, second) == (node.inputs[1], 3, 2)
    with pytest.raises(T.NotScalarConstantError):
        node.op.get_constant_idx(node.inputs)
    linker, optimizer = theano.Mode().get_linker_optimizer("vm", "fast_compile")
    assert isinstance(linker, theano.gof.vm.VM_Linker) and optimizer is not None
