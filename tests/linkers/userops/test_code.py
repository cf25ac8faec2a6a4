"""Ops with ``c_code``: what they compute, where they run, and what is compiled how often."""

import ctypes
import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from ownops import DOUBLE, c_code, doubled, make_op

import theano
import theano.tensor as T

pytestmark = pytest.mark.c

MODES = ("FAST_RUN", "FAST_COMPILE", "DEBUG_MODE", "PROFILE_MODE")
x = T.dvector("x")


class PickledOp(theano.Op):
    """An Op that pickle finds."""

    __props__ = ()
    c_code = c_code(DOUBLE)

    def make_node(self, a):
        return theano.Apply(self, [a], [a.type()])


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("perform", [None, doubled], ids=["C only", "both"])
def test_values_under_every_mode(mode, perform):
    op = make_op(**({"perform": perform} if perform else {}))
    f = theano.function([x], op(op(x) + 1), mode=mode)
    assert f([1.0, 2.0]).tolist() == [6, 10]
    assert f(np.arange(6.0)[::2]).tolist() == [2, 10, 18]
    assert f([]).tolist() == []


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "bool", "complex128", "float16"])
def test_dtypes(dtype):
    v = T.vector(dtype=dtype)
    copy = "Py_XDECREF(%(z)s); %(z)s = (PyArrayObject *)PyArray_NewCopy(%(x)s, NPY_CORDER);"
    out = theano.function([v], make_op(copy)(v))(np.array([0, 1], dtype))
    assert out.dtype == dtype and out.tolist() == [0, 1]


def test_float16_runs_in_python_unless_the_op_says_that_it_can():
    v = T.vector(dtype="float16")
    marked = c_code("Py_XDECREF(%(z)s); %(z)s = %(x)s; Py_INCREF(%(z)s);")
    for ok, expected in ((False, [2.0]), (True, [1.0])):
        op = make_op(perform=doubled, c_code=marked, view_map={0: [0]}, _f16_ok=ok)
        assert theano.function([v], op(v))(np.array([1], "float16")).tolist() == expected


def test_it_counts_as_c(x=x):
    f = theano.function([x], make_op(perform=doubled)(x), profile=True)
    f([1.0])
    assert list(f.profile.apply_cimpl.values()) == [True, True][: len(f.profile.apply_cimpl)]
    g = theano.function([x], make_op(perform=doubled, _op_use_c_code=False)(x), profile=True)
    g([1.0])
    assert False in g.profile.apply_cimpl.values()


def test_a_subclass_of_an_op_of_the_library_runs_its_own_code():
    class Own(T.Dot):
        c_code = c_code(DOUBLE)

        def make_node(self, a, b):
            return theano.Apply(self, [a, b], [a.type()])

    y = T.dvector()
    assert theano.function([x, y], Own()(x, y))([1.0], [5.0]).tolist() == [2]


def test_multiple_outputs_one_of_another_type():
    def make_node(self, a):
        return theano.Apply(self, [a], [a.type(), theano.gof.generic()])

    op = make_op(DOUBLE + "%(z1)s = PyLong_FromLong(7);", make_node=make_node)
    array, number = theano.function([x], list(op(x)))([1.0])
    assert array.tolist() == [2] and number == 7


def test_the_same_input_twice():
    add = DOUBLE.replace("*= 2", "= *(double *)PyArray_GETPTR1(%(y)s, i) + 1")
    assert theano.function([x], make_op(add)(x, x))([1.0, 3.0]).tolist() == [2, 4]


def test_outputs_are_used_again_only_when_nobody_holds_them():
    reuse = """
    if (%(z)s == NULL)
        %(z)s = (PyArrayObject *)PyArray_EMPTY(1, PyArray_DIMS(%(x)s), NPY_FLOAT64, 0);
    else this->used++;
    ((double *)PyArray_DATA(%(z)s))[0] = this->used;
    """
    op = make_op(reuse, c_support_code_struct=lambda self, node, name: "int used;")
    f = theano.function([x], op(x), mode=theano.Mode(theano.gof.OpWiseCLinker(allow_gc=False)))
    assert [f([1.0])[0], f([1.0])[0]] == [0, 1]
    held = f([1.0])
    assert held[0] == 2 and f([1.0])[0] == 2 and held[0] == 2
    g = theano.function([x], op(x), mode=theano.Mode(theano.gof.OpWiseCLinker(allow_gc=True)))
    assert [g([1.0])[0], g([1.0])[0]] == [0, 0]


def test_an_update_that_fails_leaves_the_shared_value():
    w = theano.shared(np.array([1.0, 2.0]))
    code = """
    Py_XDECREF(%(z)s); %(z)s = %(x)s; Py_INCREF(%(z)s);
    ((double *)PyArray_DATA(%(z)s))[0] = 99;
    PyErr_SetString(PyExc_ValueError, "half way"); %(fail)s
    """
    op = make_op(code, destroy_map={0: [0]})
    f = theano.function([], [], updates=[(w, op(w))], accept_inplace=True)
    with pytest.raises(ValueError, match="half way"):
        f()
    assert w.get_value().tolist() == [1, 2]


# --- parts of the file ----------------------------------------------------------------------------


def test_all_parts_run_in_their_order():
    op = make_op(
        DOUBLE + "{ double *p = (double *)PyArray_DATA(%(z)s);"
        " p[0] = ready; p[1] = apply_%(name)s(); p[2] = this->member; p[3] = LIMIT; }",
        c_headers=lambda self: ["<limits>", "vector"],
        c_support_code=lambda self: ["static int ready = 0;", "#define LIMIT 4"],
        c_init_code=lambda self: ["ready = 1;"],
        c_support_code_apply=lambda self, node, name: f"static int apply_{name}() {{ return two; }}"
        .replace("two", "2"),
        c_init_code_apply=lambda self, node, name: "ready += 10;",
        c_support_code_struct=lambda self, node, name: "int member; std::vector<int> more;",
        c_init_code_struct=lambda self, node, name, sub: "member = 3; more.push_back(1);",
        c_cleanup_code_struct=lambda self, node, name: "more.clear();",
        c_code_cleanup=lambda self, node, name, i, o, sub: "this->member++;",
    )  # fmt: skip
    f = theano.function([x], op(x))
    assert f(np.zeros(4)).tolist() == [11, 2, 3, 4]
    assert f(np.zeros(4)).tolist() == [11, 2, 4, 4]


def test_members_named_by_the_struct():
    op = make_op(
        DOUBLE + "*(double *)PyArray_DATA(%(z)s) = n%(struct_id)s;",
        c_support_code_struct=lambda self, node, struct_id: f"int n{struct_id};",
        c_init_code_struct=lambda self, node, struct_id, sub: f"n{sub['struct_id']} = 3;",
    )
    assert theano.function([x], op(x))([0.0]).tolist() == [3]


def test_old_names_of_numpy_and_python():
    old = """
    PyArrayObject *a = %(x)s;
    npy_intp n = a->dimensions[0];
    Py_XDECREF(%(z)s);
    %(z)s = (PyArrayObject *)PyArray_SimpleNew(a->nd, a->dimensions, a->descr->type_num);
    if (!(PyArray_FLAGS(a) & NPY_C_CONTIGUOUS) || PyArray_DOUBLE != NPY_DOUBLE) %(fail)s
    for (int i = 0; i < n; i++)
        ((double *)%(z)s->data)[i] = ((double *)(a->data + i * a->strides[0]))[0]
                                     + PyInt_AsLong(PyInt_FromLong(1)) + a->descr->elsize;
    """
    assert theano.function([x], make_op(old)(x))([1.0, 2.0]).tolist() == [10, 11]


def test_flags_headers_and_libraries(tmp_path, cache):
    (tmp_path / "own.h").write_text('#include "inner.h"\nextern "C" double own(double);\n')
    (tmp_path / "inner.h").write_text("#define STEP 1\n")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", str(tmp_path / "libown.so"), "-x", "c", "-"],
        input="double own(double x) { return x + 100; }", text=True, check=True,
    )  # fmt: skip
    op = make_op(
        DOUBLE + "((double *)PyArray_DATA(%(z)s))[0] = own(STEP) + FROM_FLAG;\n"
        "#ifdef UNWANTED\n#error unwanted\n#endif",
        c_headers=lambda self, c_compiler: ["own.h"],
        c_header_dirs=lambda self: [str(tmp_path)],
        c_libraries=lambda self: ["own"],
        c_lib_dirs=lambda self: [str(tmp_path)],
        c_compile_args=lambda self, c_compiler: ["-DFROM_FLAG=1000", "-DUNWANTED"],
        c_no_compile_args=lambda self: ["-DUNWANTED"],
    )
    assert theano.function([x], op(x))([0.0]).tolist() == [1101]
    (tmp_path / "inner.h").write_text("#define STEP 2\n")
    assert theano.function([x], op(x))([0.0]).tolist() == [1102]


def test_methods_that_take_a_compiler(tmp_path, cache):
    (tmp_path / "own.h").write_text("#define STEP 7\n")
    op = make_op(
        DOUBLE + "((double *)PyArray_DATA(%(z)s))[0] = STEP;",
        c_headers=lambda self, compiler: ["own.h"],
        c_header_dirs=lambda self, compiler: [str(tmp_path)],
        c_libraries=lambda self, compiler: ["m"],
        c_lib_dirs=lambda self, compiler: [str(tmp_path)],
        c_compile_args=lambda self, compiler: [],
        c_no_compile_args=lambda self, compiler: [],
    )
    assert theano.function([x], op(x))([0.0]).tolist() == [7]


def test_openmp():
    class Parallel(theano.gof.OpenMPOp):
        make_node = make_op().make_node.__func__
        c_code = c_code(DOUBLE + "((double *)PyArray_DATA(%(z)s))[0] = _OPENMP > 0;")

    assert theano.function([x], Parallel(openmp=True)(x))([0.0]).tolist() == [1]
    assert Parallel().openmp is False and Parallel().c_compile_args() == []


# --- what is compiled -----------------------------------------------------------------------------


def test_code_is_compiled_once(runs):
    op = make_op()
    f = theano.function([x], op(op(x)), mode="FAST_COMPILE")
    assert f([1.0]).tolist() == [4] and runs == ["c++"]  # two equal Applys
    theano.function([x], make_op()(x) + 1, mode="FAST_COMPILE")
    assert runs == ["c++"]
    theano.function([x], make_op(DOUBLE + "/* other */")(x), mode="FAST_COMPILE")
    theano.function([x], make_op(c_code_cache_version=lambda self: (2,))(x), mode="FAST_COMPILE")
    assert runs == ["c++"] * 3


def test_fast_compile_calls_no_compiler_for_an_op_with_perform(runs):
    f = theano.function([x], make_op(perform=doubled)(x), mode="FAST_COMPILE")
    assert f([1.0]).tolist() == [2] and runs == []


def test_the_linker_py_runs_perform(runs):
    f = theano.function([x], make_op("no C++", perform=doubled)(x), mode=theano.Mode("py"))
    assert f([1.0]).tolist() == [2] and runs == []


def test_the_flags_name_the_compiler_and_its_arguments(flags, runs):
    flags({"gcc.cxxflags": "-DWANTED=5"})
    op = make_op(DOUBLE + "((double *)PyArray_DATA(%(z)s))[0] = WANTED;")
    assert theano.function([x], op(x))([1.0]).tolist() == [5]
    flags(cxx="g++")
    assert theano.function([x], make_op()(x))([1.0]).tolist() == [2]


@pytest.mark.parametrize("given", ["-ffast-math", "-Ofast"])
def test_flags_of_an_op_change_no_other_arithmetic(flags, given):
    """gcc links code to such libraries that makes a thread take subnormal numbers for 0."""
    tiny = np.array([5e-324])
    op = make_op(c_compile_args=lambda self, compiler: [given, "-DNOT_CACHED"])
    f = theano.function([x], op(x))
    assert f([1.0]).tolist() == [2]
    assert (tiny * 1.0).tolist() == tiny.tolist() and (tiny > 0).all()


def test_without_a_compiler(flags):
    flags(cxx="")
    assert theano.function([x], make_op(perform=doubled)(x))([1.0]).tolist() == [2]
    with pytest.raises(NotImplementedError, match=r"no perform, so it needs a C\+\+ compiler") as e:
        theano.function([x], make_op()(x))
    assert "The flag cxx is empty" in str(e.value) and __file__ in str(e.value)


# --- functions ------------------------------------------------------------------------------------


def test_a_pickled_function():
    f = theano.function([x], PickledOp()(x))
    g = pickle.loads(pickle.dumps(f))
    assert g([2.0]).tolist() == [4] == f([2.0]).tolist()


def test_copies_have_a_struct_each():
    op = make_op(
        DOUBLE + "((double *)PyArray_DATA(%(z)s))[0] = this->calls++;",
        c_support_code_struct=lambda self, node, name: "int calls;",
    )
    f = theano.function([x], op(x))
    g = f.copy()
    assert [f([0.0])[0], f([0.0])[0], g([0.0])[0], f([0.0])[0]] == [0, 1, 0, 2]


def test_many_threads():
    functions = [theano.function([x], PickledOp()(PickledOp()(x)) + k) for k in range(4)]
    wrong = []

    def call(k):
        for n in range(200):
            out = functions[k](np.full(50, n))
            if not (out == 4 * n + k).all():
                wrong.append((k, n))

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("allow_gc", [True, False])
@pytest.mark.parametrize("fails", [False, True])
def test_references_are_released(allow_gc, fails):
    both = DOUBLE + ("%(fail)s" if fails else "")
    op = make_op(both)
    generic = theano.gof.generic()
    keep = make_op(
        "%(z)s = %(x)s; Py_INCREF(%(z)s);" + ("%(fail)s" if fails else ""),
        make_node=lambda self, a: theano.Apply(self, [a], [a.type()]),
    )
    linker = theano.gof.OpWiseCLinker(allow_gc=allow_gc)
    f = theano.function([x, generic], [op(x), keep(keep(generic))], mode=theano.Mode(linker))
    value, other = np.zeros(3), object()

    def call():
        if not fails:
            f(value, other)
            return
        with pytest.raises(RuntimeError):
            f(value, other)

    call()
    gc.collect()
    before = [sys.getrefcount(v) for v in (value, other, None)]
    for _ in range(1000):
        call()
    gc.collect()
    after = [sys.getrefcount(v) for v in (value, other, None)]
    # Other threads and garbage of other tests hold some references to None too.
    assert after[:2] == before[:2] and abs(after[2] - before[2]) < 900


def test_results_are_released():
    made = "%(z)s = PyObject_CallNoArgs(%(x)s); if (!%(z)s) %(fail)s"
    op = make_op(made, make_node=lambda self, a: theano.Apply(self, [a], [a.type()]))
    generic = theano.gof.generic()
    f = theano.function([generic], op(generic))
    alive = []

    class Made:
        def __init__(self):
            alive.append(self)

    results = [f(Made) for _ in range(3)]
    assert results == alive
    plain = [object()] * 1
    plain_alive = list(plain)
    expected = [sys.getrefcount(r) for r in plain]
    assert plain_alive == plain and [sys.getrefcount(r) for r in results] == expected * 3


def test_capsules_pass_pointers_and_are_freed():
    freed = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_VerboseFlag")  # any int of the process
    box = theano.gof.CDataType(
        "double *", "box_free",
        extra_support_code="static void box_free(void *p) { Py_VerboseFlag += 1000; free(p); }",
    )  # fmt: skip
    put = make_op(
        "%(z)s = (double *)malloc(sizeof(double)); *%(z)s = *(double *)PyArray_DATA(%(x)s);",
        make_node=lambda self, a: theano.Apply(self, [a], [box()]),
    )
    get = make_op(
        "Py_XDECREF(%(z)s); npy_intp n = 1;"
        "%(z)s = (PyArrayObject *)PyArray_EMPTY(1, &n, NPY_DOUBLE, 0);"
        "*(double *)PyArray_DATA(%(z)s) = *%(x)s + 1;",
        make_node=lambda self, a: theano.Apply(self, [a], [x.type()]),
    )
    f = theano.function([x], get(put(x)))
    before = freed.value
    assert [f([5.0]).tolist(), f([6.0]).tolist()] == [[6], [7]]
    count, freed.value = freed.value - before, before
    assert count == 2000
    assert type(theano.function([x], put(x))([1.0])).__name__ == "PyCapsule"
    freed.value = before
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    value = theano.gof.CDataType("void *", "free").make_value(libc.malloc(8))
    assert box.filter(value) is value and box.filter(None) is None
    with pytest.raises(TypeError, match="expected None or a PyCapsule"):
        box.filter(3)
    assert pickle.loads(pickle.dumps(box)) == box
