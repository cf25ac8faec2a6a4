"""Types with C++ code: users' own, subclasses of TensorType, params and enumerations."""

import copy
import pickle

import numpy as np
import pytest
from ownops import DOUBLE, c_code, doubled, make_op

import theano
import theano.tensor as T
from theano.gof import CEnumType, EnumList, EnumType, Params, ParamsType

pytestmark = pytest.mark.c

MODES = ("FAST_RUN", "FAST_COMPILE", "DEBUG_MODE")
x = T.dvector("x")


class Text(theano.gof.Type):
    """Python texts, in C++ std::string."""

    def filter(self, data, strict=False, allow_downcast=None):
        if not isinstance(data, str):
            raise TypeError("Expected a text")
        return data

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))

    def __repr__(self):
        return "text"

    def c_headers(self):
        return ["<string>"]

    def c_declare(self, name, sub, check_input=True):
        return f"std::string {name};"

    def c_init(self, name, sub):
        return f"{name}.clear();"

    def c_extract(self, name, sub, check_input=True):
        return f"{name} = PyUnicode_AsUTF8(py_{name});"

    def c_sync(self, name, sub):
        return f"Py_XDECREF(py_{name}); py_{name} = PyUnicode_FromString({name}.c_str());"

    def c_cleanup(self, name, sub):
        return ""


text = Text()


class Join(theano.Op):
    """Joins a text with a number of its characters."""

    __props__ = ()
    c_code = c_code('%(z)s = %(x)s + " " + std::to_string(%(x)s.size()) + %(y)s;')

    def make_node(self, a, b):
        return theano.Apply(self, [a, b], [text()])


@pytest.mark.parametrize("mode", MODES)
def test_a_type_of_texts(mode):
    a, b = text("a"), text("b")
    f = theano.function([a, b], [Join()(a, b), Join()(Join()(a, a), b)], mode=mode)
    assert f("one", "!") == ["one 3!", "one 3one 8!"]
    with pytest.raises(TypeError, match="Expected a text"):
        f(1, "!")


def test_methods_of_older_programs_take_fewer_arguments():
    class Older(Text):
        def c_declare(self, name, sub):
            return super().c_declare(name, sub)

        def c_extract(self, name, sub):
            return super().c_extract(name, sub)

        def c_headers(self, *compiler):
            return ["<string>"] if compiler == (None,) else []

    a = Older()("a")
    op = make_op("%(z)s = %(x)s;", make_node=lambda self, a: theano.Apply(self, [a], [a.type()]))
    assert theano.function([a], op(op(a)))("same") == "same"


def test_a_subclass_of_tensor_type():
    class Positive(T.TensorType):
        def c_extract(self, name, sub, check_input=True):
            return super().c_extract(name, sub, check_input) + (
                f"if (PyArray_SIZE({name}) && *(double *)PyArray_DATA({name}) < 0) {{\n"
                f'PyErr_SetString(PyExc_ValueError, "negative"); {sub["fail"]} }}'
            )

    v = Positive("float64", (False,))()
    op = make_op(make_node=lambda self, a: theano.Apply(self, [a], [a.type()]))
    f = theano.function([v], op(v))
    assert f(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="negative"):
        f(-np.ones(2))


def test_the_interface_of_tensor_type_and_scalar():
    matrix, number = T.fmatrix, theano.scalar.float32
    assert matrix.dtype_specs() == (float, "npy_float32", "NPY_FLOAT32")
    assert number.dtype_specs() == (np.float32, "npy_float32", "Float32")
    assert theano.scalar.complex64.dtype_specs()[1:] == ("theano_complex64", "Complex64")
    assert (
        theano.scalar.uint8.dtype_specs()[2] == "UInt8" and T.bvector.c_element_type() == "npy_int8"
    )
    assert "typedef npy_float32 dtype_a;" in matrix.c_declare("a", {})
    assert "typedef" not in matrix.c_declare("a", {}, False)
    assert number.c_literal(2.5) == "2.5" and theano.scalar.bool.c_literal(True) == "1"
    assert number.c_headers() == matrix.c_headers() and number.c_is_simple()
    with pytest.raises(NotImplementedError, match="complex"):
        theano.scalar.complex64.c_literal(1j)
    with pytest.raises(theano.gof.utils.MethodNotDefined, match="c_declare"):
        theano.gof.Type().c_declare("a", {})


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "bool", "uint64", "complex128"])
def test_numbers(dtype):
    s = theano.scalar.get_scalar_type(dtype)()
    op = make_op("%(z)s = %(x)s;", make_node=lambda self, a: theano.Apply(self, [a], [a.type()]))
    out = theano.function([s], op(s))(np.dtype(dtype).type(1))
    assert out == 1 and np.asarray(out).dtype == dtype


def test_check_input_leaves_checks_out():
    op = make_op(DOUBLE.replace("dtype_%(z)s", "double"), check_input=False)
    assert theano.function([x], op(x))([1.0]).tolist() == [2]


# --- params ---------------------------------------------------------------------------------------


class Params_(theano.Op):
    """A base of Ops with one param: what it is in C++ goes into the first element."""

    __props__ = ()
    c_code = c_code(DOUBLE + "((double *)PyArray_DATA(%(z)s))[0] = VALUE(%(params)s);")

    def make_node(self, a):
        return theano.Apply(self, [a], [a.type()])


@pytest.mark.parametrize(
    ("params_type", "value", "macro", "expected"),
    [
        (theano.scalar.Scalar("int32"), np.int32(5), "#define VALUE(p) p", 5),
        (T.dvector, np.array([1.0, 6.0]), "#define VALUE(p) ((double *)PyArray_DATA(p))[1]", 6),
        (theano.gof.generic, 7, "#define VALUE(p) PyLong_AsLong(p)", 7),
        (text, "eight888", "#define VALUE(p) p.size()", 8),
        (EnumList("A", ("B", "beta")), "beta", "#define VALUE(p) (p == B ? 9 : 0)", 9),
        (CEnumType("EXIT_FAILURE", "EXIT_SUCCESS"), 0, "#define VALUE(p) p", 1),
    ],
)
def test_params_of_any_type(params_type, value, macro, expected):
    members = {
        "params_type": params_type,
        "get_params": lambda self, node: value,
        "c_support_code": lambda self: macro,
    }
    op = type("Op", (Params_,), members)()
    f = theano.function([x], op(x))
    assert f([0.0, 1.0]).tolist() == [expected, 2] == f([0.0, 1.0]).tolist()


@pytest.mark.parametrize("mode", [*MODES, theano.Mode("py")])
def test_perform_gets_params(mode):
    def perform(self, node, inputs, outputs, params):
        outputs[0][0] = inputs[0] * params.factor

    op = type(
        "Op", (Params_,),
        {"params_type": ParamsType(factor=theano.scalar.Scalar("float64")), "perform": perform,
         "c_code": c_code(DOUBLE.replace("*= 2", "*= %(params)s->factor")), "factor": 3},
    )()  # fmt: skip
    assert theano.function([x], op(x), mode=mode)([1.0, 2.0]).tolist() == [3, 6]
    del type(op).factor
    with pytest.raises(AttributeError, match=r"missing attributes .*factor.* for ParamsType"):
        theano.function([x], op(x), mode=mode)


def test_a_wrong_param_fails_when_the_function_is_compiled():
    op = type("Op", (Params_,), {"params_type": EnumList("A"), "get_params": lambda *a: 4})()
    with pytest.raises(AssertionError, match="4 is no constant"):
        theano.function([x], op(x))


def test_params_and_their_types():
    type_ = ParamsType(b=T.dvector, a=EnumList("LOW", ("HIGH", "high"), ctype="long"))
    params = type_.get_params(a="high", b=[1, 2])
    assert params.a == params["a"] == 1 and type_.HIGH == type_.get_enum("HIGH") == 1
    assert type_.enum_from_alias("high") == type_.enum_from_alias("HIGH") == 1
    assert type_.fields == ("a", "b") and type_.has_type(T.dvector)
    assert type_.get_type("b") == T.dvector and type_.get_field(T.dvector) == "b"
    assert type_ == type_.extended() != type_.extended(c=T.dscalar)
    same = pickle.loads(pickle.dumps(params))
    assert same == params and hash(same) == hash(params) and type_.filter(same) is same
    assert params != type_.get_params(a=0, b=[1, 2]) and params != 3
    assert copy.deepcopy(type_) == type_ and repr(type_).startswith("ParamsType<a:EnumList<long>")
    assert repr(params).startswith("Params(a:int:1, b:ndarray:")
    for change in (
        lambda: setattr(params, "a", 0), lambda: params.__setitem__("a", 0),
        lambda: params.__delitem__("a"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="Params is immutable"):
            change()
    with pytest.raises(TypeError, match='attribute "b" not in Params args'):
        Params(type_, a=0)
    with pytest.raises(TypeError, match="should be a ParamsType"):
        Params(T.dvector)
    with pytest.raises(TypeError, match="strict mode"):
        type_.filter(object(), strict=True)
    with pytest.raises(AttributeError, match="common constants names"):
        ParamsType(a=EnumList("A"), b=EnumList("A"))
    with pytest.raises(AttributeError, match="same names as constants"):
        ParamsType(a=EnumList("A"), b=EnumList(("B", "A")))


def test_enumerations():
    enum = EnumType(ONE=1, HALF=("half", 0.5), YES=True)
    assert (enum.ONE, enum["HALF"], enum.YES, enum.fromalias("half")) == (1, 0.5, 1, 0.5)
    assert enum.fromalias("ONE") == 1 and enum.has_alias("half") and enum.get_aliases() == ("half",)
    assert repr(enum) == "EnumType<double>(HALF(half):0.5, ONE:1, YES:1)"
    assert pickle.loads(pickle.dumps(enum)) == enum == copy.deepcopy(enum)
    assert len({enum, EnumType(ONE=1, HALF=("half", 0.5), YES=True), EnumType(ONE=1)}) == 2
    assert enum != EnumType(ONE=1) and enum.filter(True) == 1 and enum.filter("half") == 0.5
    with pytest.raises(AttributeError, match="no attribute or constant TWO"):
        enum.TWO  # noqa: B018
    for wrong, error in (
        ({"ONE": (1, 2, 3)}, "should contain 2 values"), ({"ONE": (1, 2)}, "should be a string"),
        ({"ONE": ("ONE", 2)}, "must differ"), ({"A": ("B", 1), "B": 2}, "same names as constants"),
        ({"A": 1, "cname": "a b"}, "invalid C name"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=error):
            EnumType(**wrong)
    for wrong, error in (((("A", "b", "c"),), "2 values"), ((3,), "should be a string")):
        with pytest.raises(TypeError, match=error):
            EnumList(*wrong)
    for change in (lambda: enum.__setitem__("ONE", 2), lambda: enum.__delitem__("ONE")):
        with pytest.raises(NotImplementedError, match="immutable"):
            change()


def test_an_enumeration_as_text_in_debugging_code(flags):
    op = make_op(
        'char name[40]; theano_enum_to_string_level(LOW, name); ' + DOUBLE
        + "*(double *)PyArray_DATA(%(z)s) = strlen(name) + %(params)s;",
        params_type=EnumList("NONE", "LOW", cname="level"),
        get_params=lambda self, node: 1,
        c_compile_args=lambda self: ["-DDEBUG"],
    )  # fmt: skip
    assert theano.function([x], op(x))([0.0]).tolist() == [4]


def test_ops_that_make_their_own_thunks():
    def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
        inner = super(type(self), self).make_thunk(node, storage_map, compute_map, no_recycling)

        def thunk():
            inner()
            storage_map[node.outputs[0]][0] += 1

        return thunk

    for mode in MODES:
        f = theano.function([x], make_op(make_thunk=make_thunk)(x) * 2, mode=mode)
        assert f([1.0]).tolist() == [6]

    def make_py_thunk(self, node, storage_map, compute_map, no_recycling, debug=False):
        def thunk():
            storage_map[node.outputs[0]][0] = storage_map[node.inputs[0]][0] * 7

        return thunk

    f = theano.function([x], make_op(make_py_thunk=make_py_thunk)(x))
    assert f([1.0]).tolist() == [7]
    f = theano.function([x], make_op(make_c_thunk=make_py_thunk)(x))
    assert f([1.0]).tolist() == [7]


def test_a_lazy_thunk_finds_all_inputs_computed():
    """It asks for nothing, whichever of its inputs it needs."""
    asked = []

    class FirstOrSecond(theano.Op):
        def make_node(self, *inputs):
            return theano.Apply(self, list(inputs), [inputs[1].type()])

        def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
            condition, *values = node.inputs

            def thunk():
                chosen = values[0 if storage_map[condition][0] else 1]
                missing = [i for i, v in enumerate(node.inputs) if not compute_map[v][0]]
                asked.extend(missing)
                if missing:
                    return missing
                storage_map[node.outputs[0]][0] = storage_map[chosen][0] + 0
                compute_map[node.outputs[0]][0] = True
                return []

            thunk.lazy = True
            return thunk

    c = T.lscalar("c")
    for mode in (*MODES, "DEBUG_MODE"):
        f = theano.function([c, x], FirstOrSecond()(c, T.exp(x), x * 2), mode=mode)
        assert f(1, [0.0]).tolist() == [1] and f(0, [3.0]).tolist() == [6] and not asked


def test_thunks_by_hand():
    node = (x + T.dvector()).owner
    for impl in ("c", "py", None):
        storages = {node.inputs[0]: [np.array([1.0])], node.inputs[1]: [np.array([2.0])]}
        storages[node.outputs[0]] = [None]
        thunk = node.op.make_thunk(node, storages, None, [], impl)
        thunk()
        assert storages[node.outputs[0]][0].tolist() == [3] and not thunk.lazy
    node = make_op(perform=doubled, c_code=theano.Op.c_code)(x).owner
    storages = {var: [None] for var in (*node.inputs, *node.outputs)}
    with pytest.raises(NotImplementedError, match="cannot produce C code"):
        node.op.make_c_thunk(node, storages, None, [])


@pytest.mark.parametrize("old", [False, True], ids=["with impl", "without"])
def test_prepare_node(old):
    prepared = []
    if old:

        def prepare_node(self, node, storage_map, compute_map):
            prepared.append(node)
    else:

        def prepare_node(self, node, storage_map, compute_map, impl):
            prepared.append(impl)

    f = theano.function([x], make_op(prepare_node=prepare_node)(x))
    assert f([1.0]).tolist() == [2] and len(prepared) == 1
    assert old or prepared == ["c"]
