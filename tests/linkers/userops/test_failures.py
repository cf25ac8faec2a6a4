"""C++ code that does not compile, fails, or gives what it did not declare."""

import re

import numpy as np
import pytest
from ownops import DOUBLE, doubled, make_op

import theano
import theano.tensor as T
from opwise.errors import BadCLinkerOutput, BadDestroyMap, BadViewMap, CompileError

pytestmark = pytest.mark.c

x = T.dvector("x")


class Misspelt(theano.Op):
    __props__ = ()

    def make_node(self, a):
        return theano.Apply(self, [a], [a.type()])

    def c_code(self, node, name, inputs, outputs, sub):
        return "\nint n = 1;\nn = no_such(n);\nno_such_either();"


# --- compiling ------------------------------------------------------------------------------------


def test_a_compile_error_names_the_class_and_the_lines():
    with pytest.raises(CompileError) as e:
        theano.function([x], Misspelt()(x))
    text = str(e.value)
    assert re.search(r'Misspelt \(File ".*test_failures.py", line \d+\) does not compile:', text)
    assert (
        "Misspelt.c_code, line 3: 'no_such' was not declared in this scope\n    n = no_such(n);"
        in text
    )
    assert "Misspelt.c_code, line 4: 'no_such_either'" in text
    assert "It was made at" in text and "no_such_either" in e.value.messages


def test_errors_in_other_parts_name_the_part():
    for part, code in (
        ("c_support_code", "int f( {"),
        ("c_support_code_struct", "unknown_type a;"),
        ("c_init_code_struct", "oops();"),
        ("c_code_cleanup", "oops();"),
    ):
        op = make_op(**{part: lambda self, *args, text=code: text})
        with pytest.raises(CompileError, match=rf"Own.{part}, line 1: "):
            theano.function([x], op(x))


def test_a_header_that_does_not_exist():
    op = make_op(c_headers=lambda self: ["no_such_header.h"])
    with pytest.raises(CompileError, match=r"no_such_header\.h: No such file"):
        theano.function([x], op(x))


def test_more_errors_than_are_shown():
    with pytest.raises(CompileError, match="and 2 more"):
        theano.function([x], make_op("\n".join(f"oops{i}();" for i in range(5)))(x))


def test_code_that_is_no_text():
    op = make_op(c_code=lambda self, *args: None)
    with pytest.raises(TypeError, match=r"c_code returned None: it must return a text"):
        theano.function([x], op(x))


def test_a_type_without_c():
    class Plain(theano.gof.Type):
        def filter(self, data, strict=False, allow_downcast=None):
            return data

        def __eq__(self, other):
            return type(self) is type(other)

        def __hash__(self):
            return 0

        def __repr__(self):
            return "plain"

    def make_node(self, a):
        return theano.Apply(self, [a], [a.type()])

    v = Plain()()
    f = theano.function([v], make_op(make_node=make_node, perform=doubled)(v), profile=True)
    assert f(3) == 6
    assert (
        "Plain does not define c_declare" in str(f.profile.to_dict())
        if hasattr(f.profile, "to_dict")
        else True
    )
    with pytest.raises(NotImplementedError, match="Plain does not define the method c_declare"):
        theano.function([v], make_op(make_node=make_node)(v))


def test_c_code_that_refuses_runs_perform():
    def c_code(self, node, name, inputs, outputs, sub):
        raise NotImplementedError("only for float32")

    op = make_op(c_code=c_code, perform=doubled)
    assert theano.function([x], op(x))([1.0]).tolist() == [2]
    with pytest.raises(NotImplementedError, match="only for float32"):
        theano.function([x], make_op(c_code=c_code)(x))


# --- running --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE"])
def test_an_exception_names_the_apply_and_the_line(mode):
    code = 'if (PyArray_DIM(%(x)s, 0) > 1) { PyErr_SetString(PyExc_KeyError, "two"); %(fail)s }'
    f = theano.function([x], make_op(code + DOUBLE)(x * 2), mode=mode)
    assert f([1.0]).tolist() == [4]
    with pytest.raises(KeyError) as e:
        f([1.0, 2.0])
    assert "two" in str(e.value) and "Apply node that caused the error: Own(" in str(e.value)
    assert "test_failures.py" in str(e.value)
    assert f([1.0]).tolist() == [4]


def test_a_failure_without_an_exception():
    f = theano.function([x], make_op("%(fail)s")(x))
    with pytest.raises(RuntimeError, match=r"Unexpected error in an Op's C code\. No Python ") as e:
        f([1.0])
    assert "Check Own.c_code" in str(e.value)


def test_an_exception_that_is_set_without_fail_is_raised():
    f = theano.function([x], make_op(DOUBLE + 'PyErr_SetString(PyExc_OSError, "late");')(x))
    with pytest.raises(OSError, match="late"):
        f([1.0])


def test_cpp_exceptions():
    for code, error, text in (
        ('throw std::runtime_error("thrown");', RuntimeError, "thrown"),
        ("throw std::bad_alloc();", MemoryError, None),
        ("throw 3;", RuntimeError, "of unknown type"),
    ):
        op = make_op("if (1) " + code, c_headers=lambda self: ["<stdexcept>"])
        with pytest.raises(error, match=text):
            theano.function([x], op(x))([1.0])


def test_initialization_that_fails():
    def failing(method, code):
        return make_op(**{method: lambda self, *args: code % args[-1] if "%" in code else code})

    raised = 'PyErr_SetString(PyExc_LookupError, "at first"); '
    for op in (
        failing("c_init_code_struct", raised + "%(fail)s"),
        make_op(c_init_code=lambda self: [raised + "return NULL;"]),
        make_op(c_init_code_apply=lambda self, node, name: raised),
    ):
        with pytest.raises(LookupError, match="at first") as e:
            theano.function([x], op(x))
        assert "the initialization of the C++ code of Own" in str(e.value)
    with pytest.raises(RuntimeError, match="No Python exception was set"):
        theano.function([x], failing("c_init_code_struct", "%(fail)s")(x))


def test_cleanup_runs_after_a_failure():
    op = make_op(
        'this->runs++; PyErr_Format(PyExc_ValueError, "%%d cleanups", this->cleanups); %(fail)s',
        c_support_code_struct=lambda self, node, name: "int runs, cleanups;",
        c_code_cleanup=lambda self, node, name, i, o, sub: "this->cleanups = this->runs;",
    )
    f = theano.function([x], op(x))
    for k in range(3):
        with pytest.raises(ValueError, match=f"{k} cleanups"):
            f([1.0])


@pytest.mark.parametrize("mode", ["FAST_RUN", "DEBUG_MODE"])
def test_outputs_that_are_not_as_declared(mode):
    shape = "npy_intp n[2] = {2, 2}; Py_XDECREF(%(z)s); %(z)s = (PyArrayObject *)"
    for code, error, text in (
        (
            shape + "PyArray_ZEROS(2, n, NPY_FLOAT64, 0);",
            TypeError,
            "1 dimensions, got dtype float64",
        ),
        (shape + "PyArray_ZEROS(1, n, NPY_FLOAT32, 0);", TypeError, "got dtype float32"),
        ("Py_CLEAR(%(z)s);", ValueError, "did not compute its output"),
    ):
        with pytest.raises(error, match=text) as e:
            theano.function([x], make_op(code)(x), mode=mode)([1.0, 2.0])
        assert "c_code" in str(e.value)


def test_wrong_inputs_from_another_op():
    def wrong(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].astype("float32")

    f = theano.function([x], make_op()(make_op(perform=wrong, c_code=theano.Op.c_code)(x)))
    with pytest.raises(TypeError, match="expected an array of dtype float64"):
        f([1.0])


# --- what DebugMode finds -------------------------------------------------------------------------


def test_debug_mode_compares_c_with_perform():
    f = theano.function([x], make_op(DOUBLE + "*(double *)PyArray_DATA(%(z)s) += 1;",
                                     perform=doubled)(x), mode="DEBUG_MODE")  # fmt: skip
    with pytest.raises(BadCLinkerOutput, match="thunk2  : c_code"):
        f([1.0])


def test_debug_mode_finds_a_wrong_destroy_or_view_map():
    inplace = "Py_XDECREF(%(z)s); %(z)s = %(x)s; Py_INCREF(%(z)s);"
    with pytest.raises(BadViewMap):
        theano.function([x], make_op(inplace)(x), mode="DEBUG_MODE")([1.0])
    with pytest.raises(BadDestroyMap):
        op = make_op(DOUBLE + "*(double *)PyArray_DATA(%(x)s) += 1;")
        theano.function([x], op(x), mode="DEBUG_MODE")([1.0])


def test_debug_mode_gives_outputs_to_use_again(flags):
    flags({"DebugMode.check_preallocated_output": "previous:c_contiguous:strided"})
    wrong = "if (%(z)s) *(double *)PyArray_DATA(%(z)s) = 7; else {" + DOUBLE + "}"
    f = theano.function([x], make_op(wrong)(x), mode=theano.compile.debugmode.DebugMode())
    with pytest.raises(theano.compile.debugmode.BadThunkOutput, match="c with"):
        f(np.ones(3))
    right = theano.function([x], make_op()(x), mode=theano.compile.debugmode.DebugMode())
    assert right(np.ones(3)).tolist() == [2, 2, 2]
