"""COp: C++ code in files, in sections."""

import pytest

import theano
import theano.tensor as T
from theano.gof import COp, ExternalCOp, ParamsType

pytestmark = pytest.mark.c

x = T.dvector("x")

SUPPORT = """#section support_code
static int twice(PyArrayObject *x, PyArrayObject **z)
{
    Py_XDECREF(*z);
    *z = (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER);
    if (*z == NULL)
        return 1;
    for (npy_intp i = 0; i < PyArray_SIZE(*z); i++)
        ((double *)PyArray_DATA(*z))[i] *= 2;
    return 0;
}
"""


@pytest.fixture
def make(tmp_path):
    """``make(texts, func_name)``: a COp of files with these texts."""

    def made(*texts, func_name=None, **members):
        paths = []
        for i, text in enumerate(texts):
            paths.append(str(tmp_path / f"{i}.c"))
            (tmp_path / f"{i}.c").write_text(text)

        def make_node(self, a):
            return theano.Apply(self, [a], [a.type()])

        cls = type("InFiles", (COp,), {"make_node": make_node, **members})
        return cls(paths if len(paths) > 1 else paths[0], func_name)

    return made


@pytest.mark.parametrize("mode", ["FAST_RUN", "FAST_COMPILE", "DEBUG_MODE"])
def test_a_function(make, mode):
    op = make(SUPPORT, func_name="twice")
    assert theano.function([x], op(op(x)), mode=mode)([1.0]).tolist() == [4]


def test_sections_of_several_files_with_macros(make):
    op = make(
        SUPPORT,
        """
#section support_code_struct
int runs;
int cleaned;
#section init_code
ready = 1;
#section init_code_struct
this->runs = 10 * ITEMSIZE_INPUT_0;
if (TYPENUM_OUTPUT_0 != NPY_FLOAT64) FAIL;
#section support_code_apply
static DTYPE_INPUT_0 APPLY_SPECIFIC(more)(PARAMS_TYPE *p) { return (DTYPE_PARAM_by)p->by; }
#section cleanup_code_struct
this->runs = 0;
""",
        """#section support_code
static int ready = 0;
#section code
if (!ready) FAIL;
if (twice(INPUT_0, &OUTPUT_0)) FAIL;
((DTYPE_OUTPUT_0 *)PyArray_DATA(OUTPUT_0))[0] = APPLY_SPECIFIC(more)(PARAMS) + this->runs++;
#section code_cleanup
this->cleaned++;
""",
        params_type=ParamsType(by=theano.scalar.Scalar("float32")),
        by=0.5,
    )
    f = theano.function([x], op(x))
    assert [f([1.0, 2.0]).tolist() for _ in range(2)] == [[80.5, 4], [81.5, 4]]


def test_a_function_that_fails(make):
    fails = """#section support_code
static int fails(PyArrayObject *x, PyArrayObject **z)
{
    PyErr_SetString(PyExc_IndexError, "in the file");
    return 1;
}
"""
    with pytest.raises(IndexError, match="in the file"):
        theano.function([x], make(fails, func_name="fails")(x))([1.0])


def test_a_function_with_more_arguments_than_the_apply(make):
    text = (
        SUPPORT
        + """
static int many(PyArrayObject *x, PyArrayObject *none, PyArrayObject **z, PyArrayObject **no)
{
    return none || no || twice(x, z);
}
"""
    )
    op = make(text, func_name="many", _cop_num_inputs=2, _cop_num_outputs=2)
    assert theano.function([x], op(x))([1.0]).tolist() == [2]


def test_the_old_markers(make):
    op = make("THEANO_SUPPORT_CODE_SECTION" + SUPPORT.partition("\n")[2].join(["\n", ""]) +
              "\nTHEANO_APPLY_CODE_SECTION\nstatic int own(PyArrayObject *x, PyArrayObject **z)"
              "{ return twice(x, z); }\n", func_name="own")  # fmt: skip
    assert theano.function([x], op(x))([1.0]).tolist() == [2]


def test_files_lie_beside_the_class():
    class Beside(ExternalCOp):
        pass

    assert Beside.get_path("a.c").endswith("/tests/linkers/userops/a.c")
    with pytest.raises(FileNotFoundError, match=r"userops/no_such\.c"):
        Beside("no_such.c")


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["int a;"], {}, "No valid section marker was found in file"),
        (["int a;\n#section code\n"], {}, "Stray code before first #section"),
        (["#section codes\n"], {}, "Unknown section type .*codes"),
        (["#section code\n", "THEANO_APPLY_CODE_SECTION\n"], {}, "Both the new and the old"),
        (["#section code\n"], {"func_name": "f"}, 'Cannot have a "code" section'),
        (["#section code_cleanup\n"], {"func_name": "f"}, 'Cannot have a "code_cleanup" section'),
    ],
)
def test_wrong_files(make, texts, options, message):
    with pytest.raises(ValueError, match=message):
        make(*texts, **options)


def test_a_section_that_is_missing(make):
    with pytest.raises(NotImplementedError, match="does not define the method c_code"):
        theano.function([x], make(SUPPORT)(x))
