"""Ops and Types with C code of their own, as tutorials and programs wrote them."""

from .encoding import attempt_each
from .register import program

MODES = ("FAST_RUN", "DEBUG_MODE")

DOUBLE = """
Py_XDECREF(%(z)s);
%(z)s = (PyArrayObject *)PyArray_NewCopy(%(x)s, NPY_CORDER);
if (!%(z)s) {
    %(fail)s;
}
{
    dtype_%(z)s *p = (dtype_%(z)s *)PyArray_DATA(%(z)s);
    for (npy_intp i = 0; i < PyArray_SIZE(%(z)s); i++)
        p[i] *= 2;
}
"""


def _importable(*classes):
    """Let pickle find classes that a function defines: genuine Theano pickles them."""
    for cls in classes:
        cls.__qualname__ = cls.__name__
        globals()[cls.__name__] = cls


def _double(theano, T, **methods):
    """Return the Op of the tutorial that doubles a tensor, with other methods in place."""

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] * 2

    def infer_shape(self, node, i0_shapes):
        return i0_shapes

    def grad(self, inputs, output_grads):
        return [output_grads[0] * 2]

    def R_op(self, inputs, eval_points):
        return self.grad(inputs, eval_points)

    def c_code(self, node, name, inp, out, sub):
        return DOUBLE % {"x": inp[0], "z": out[0], "fail": sub["fail"]}

    members = {
        "__props__": (), "make_node": make_node, "perform": perform, "infer_shape": infer_shape,
        "grad": grad, "R_op": R_op, "c_code": c_code, "c_code_cache_version": lambda self: (1,),
    }  # fmt: skip
    members.update(methods)
    members = {name: value for name, value in members.items() if value is not None}
    return type("DoubleOp", (theano.Op,), members)()


@program("userops.double")
def double(theano, T, np):
    """The first Op of the tutorial: values, gradient, R_op and shape, with and without perform."""
    x = T.dmatrix("x")
    values = np.arange(6.0).reshape(2, 3)

    def run(op, mode):
        y = op(x)
        f = theano.function([x], [y, T.grad(y.sum(), x), y.shape, T.Rop(y, x, x)], mode=mode)
        return f(values)

    cases = {}
    for mode in MODES:
        cases["both " + mode] = lambda m=mode: run(_double(theano, T), m)
        cases["C only " + mode] = lambda m=mode: run(_double(theano, T, perform=None), m)
    for dtype in ("float32", "int8", "uint16", "complex64"):
        cases[dtype] = lambda d=dtype: _of_dtype(theano, T, np, d)
    return attempt_each(cases)


def _of_dtype(theano, T, np, dtype):
    v = T.vector(dtype=dtype)
    return theano.function([v], _double(theano, T)(v))(np.array([0, 1, 3]).astype(dtype))


@program("userops.vector_times")
def vector_times(theano, T, np):
    """VectorTimesScalar, and VectorTimesVector with strides and an error of its own."""

    class VectorTimesScalar(theano.Op):
        __props__ = ()

        def make_node(self, x, y):
            return theano.Apply(self, [x, y], [x.type()])

        def c_code(self, node, name, inp, out, sub):
            x, y = inp
            (z,) = out
            dtype_x = node.inputs[0].dtype
            dtype_y = node.inputs[1].dtype
            typenum = node.outputs[0].type.dtype_specs()[2]
            ctype = node.inputs[0].type.c_element_type()
            fail = sub["fail"]
            return """
            if (NULL == %(z)s || PyArray_DIMS(%(x)s)[0] != PyArray_DIMS(%(z)s)[0]) {
                Py_XDECREF(%(z)s);
                %(z)s = (PyArrayObject *)PyArray_SimpleNew(1, PyArray_DIMS(%(x)s), %(typenum)s);
                if (!%(z)s) %(fail)s;
            }
            { npy_%(dtype_y)s factor = ((dtype_%(y)s *)PyArray_DATA(%(y)s))[0];
            for (int i = 0; i < PyArray_DIMS(%(x)s)[0]; i++)
                *(%(ctype)s *)PyArray_GETPTR1(%(z)s, i) =
                    *(npy_%(dtype_x)s *)PyArray_GETPTR1(%(x)s, i) * factor; }
            """ % locals()

    class VectorTimesVector(theano.Op):
        __props__ = ()

        def make_node(self, x, y):
            dtype = theano.scalar.upcast(x.dtype, y.dtype)
            return theano.Apply(self, [x, y], [T.TensorType(dtype, (False,))()])

        def c_support_code(self):
            return """
            bool vector_same_shape(PyArrayObject* a, PyArrayObject* b) {
                return PyArray_DIMS(a)[0] == PyArray_DIMS(b)[0];
            }
            """

        def c_support_code_apply(self, node, name):
            return """
            void vector_multiply_%s(npy_%s *x, int sx, npy_%s *y, int sy, npy_%s *z, int sz, int n)
            {
                for (int i = 0; i < n; i++)
                    z[i * sz] = x[i * sx] * y[i * sy];
            }
            """ % ((name,) + tuple(v.dtype for v in node.inputs + node.outputs))

        def c_code(self, node, name, inp, out, sub):
            x, y = inp
            (z,) = out
            num = node.outputs[0].type.dtype_specs()[2]
            fail = sub["fail"]
            return """
            if (!vector_same_shape(%(x)s, %(y)s)) {
                PyErr_Format(PyExc_ValueError, "Shape mismatch: x.shape[0] and y.shape[0]");
                %(fail)s;
            }
            if (!%(z)s || PyArray_DIMS(%(z)s)[0] != PyArray_DIMS(%(x)s)[0]) {
                Py_XDECREF(%(z)s);
                %(z)s = (PyArrayObject *)PyArray_SimpleNew(1, PyArray_DIMS(%(x)s), %(num)s);
                if (!%(z)s) %(fail)s;
            }
            vector_multiply_%(name)s(
                (dtype_%(x)s *)PyArray_DATA(%(x)s), PyArray_STRIDES(%(x)s)[0] / sizeof(dtype_%(x)s),
                (dtype_%(y)s *)PyArray_DATA(%(y)s), PyArray_STRIDES(%(y)s)[0] / sizeof(dtype_%(y)s),
                (dtype_%(z)s *)PyArray_DATA(%(z)s), PyArray_STRIDES(%(z)s)[0] / sizeof(dtype_%(z)s),
                PyArray_DIMS(%(x)s)[0]);
            """ % locals()

    x, y, s = T.dvector("x"), T.fvector("y"), T.dscalar("s")
    scaled = theano.function([x, s], VectorTimesScalar()(x, s))
    times = theano.function([x, y], VectorTimesVector()(x, y))
    strided = theano.function([x, y], VectorTimesVector()(x[::2], y[::-1]))
    ints = theano.function([x], VectorTimesVector()(x, T.cast(x, "int64")))
    return attempt_each(
        {
            "scalar": lambda: scaled([1.0, 2.0], 3.0),
            "empty": lambda: scaled([], 3.0),
            "vector": lambda: times([1.0, 2.0], np.array([3, 4], "float32")),
            "strided": lambda: strided([1.0, 2, 3, 4], np.array([3, 4], "float32")),
            "mixed dtypes": lambda: ints([1.0, 2.0]),
            "lengths": lambda: times([1.0, 2.0], np.array([3], "float32")),
        }
    )


@program("userops.double_type")
def double_type(theano, T, np):
    """A Type of numbers with C code, and an Op on it: the tutorial on making a type."""
    gof = theano.gof

    class Double(gof.Type):
        def filter(self, x, strict=False, allow_downcast=None):
            if strict and not isinstance(x, float):
                raise TypeError("Expected a float!")
            return float(x)

        def values_eq_approx(self, x, y, tolerance=1e-4):
            return abs(x - y) / (x + y) < tolerance

        def __str__(self):
            return "double"

        __repr__ = __str__

        def __eq__(self, other):
            return type(self) is type(other)

        def __hash__(self):
            return hash(type(self))

        def c_declare(self, name, sub, check_input=True):
            return "double %(name)s;" % {"name": name}

        def c_init(self, name, sub):
            return "%(name)s = 0.0;" % {"name": name}

        def c_extract(self, name, sub, check_input=True):
            return """
            if (!PyFloat_Check(py_%(name)s)) {
                PyErr_SetString(PyExc_TypeError, "expected a float");
                %(fail)s
            }
            %(name)s = PyFloat_AsDouble(py_%(name)s);
            """ % {"name": name, "fail": sub["fail"]}

        def c_sync(self, name, sub):
            return """
            Py_XDECREF(py_%(name)s);
            py_%(name)s = PyFloat_FromDouble(%(name)s);
            if (!py_%(name)s) {
                py_%(name)s = Py_None;
                Py_XINCREF(Py_None);
                PyErr_SetString(PyExc_MemoryError, "cannot make a float");
                %(fail)s
            }
            """ % {"name": name, "fail": sub["fail"]}

        def c_cleanup(self, name, sub):
            return ""

        def c_code_cache_version(self):
            return (1,)

    number = Double()

    class BinaryDoubleOp(gof.Op):
        __props__ = ("name", "ccode")

        def __init__(self, name, fn, ccode):
            self.name, self.fn, self.ccode = name, fn, ccode

        def make_node(self, x, y):
            return gof.Apply(self, [x, y], [number()])

        def perform(self, node, inp, out):
            out[0][0] = self.fn(*inp)

        def __str__(self):
            return self.name

        def c_code(self, node, name, inp, out, sub):
            return self.ccode % {"x": inp[0], "y": inp[1], "z": out[0]}

    mul = BinaryDoubleOp("mul", lambda x, y: x * y, "%(z)s = %(x)s * %(y)s;")
    div = BinaryDoubleOp("div", lambda x, y: x / y, "%(z)s = %(x)s / %(y)s;")
    x, y, z = number("x"), number("y"), number("z")
    cases = {}
    for mode in MODES:
        f = theano.function([x, y, z], div(mul(x, y), z), mode=mode)
        g = theano.function([x], mul(x, x), mode=mode)
        cases[mode] = lambda f=f: f(3.0, 4.0, 8.0)
        cases["twice the same " + mode] = lambda g=g: g(3)
        cases["wrong " + mode] = lambda f=f: f("a", 4.0, 8.0)
    return attempt_each(cases)


@program("userops.params")
def params(theano, T, np):
    """Params: a ParamsType with a scalar, a tensor and two enumerations."""
    from theano.gof import EnumList, EnumType, ParamsType

    class Quadratic(theano.Op):
        __props__ = ("a", "kind")
        params_type = ParamsType(
            a=theano.scalar.Scalar("float64"),
            weights=T.TensorType("float64", (False,)),
            kind=EnumList(("SQUARE", "sq"), "LINE"),
            limit=EnumType(LOW=(" low", -1.5), HIGH=10),
        )

        def __init__(self, a, kind="SQUARE"):
            self.a, self.kind = a, self.params_type.get_enum(kind)
            self.weights, self.limit = np.array([1.0, 0.5]), -1.5

        def make_node(self, x):
            return theano.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs, params):
            x = inputs[0]
            squared = x * x if params.kind == self.params_type.SQUARE else x
            result = params.a * squared * params.weights[0] + params.weights[1]
            outputs[0][0] = np.maximum(result, params.limit)

        def c_code(self, node, name, inputs, outputs, sub):
            return """
            Py_XDECREF(%(z)s);
            %(z)s = (PyArrayObject *)PyArray_EMPTY(1, PyArray_DIMS(%(x)s), NPY_FLOAT64, 0);
            if (!%(z)s) %(fail)s
            { npy_float64 *w = (npy_float64 *)PyArray_DATA(%(p)s->weights);
            for (npy_intp i = 0; i < PyArray_DIM(%(x)s, 0); i++) {
                npy_float64 v = *(npy_float64 *)PyArray_GETPTR1(%(x)s, i);
                if (%(p)s->kind == SQUARE) v = v * v;
                v = %(p)s->a * v * w[0] + w[1];
                *(npy_float64 *)PyArray_GETPTR1(%(z)s, i) = v < %(p)s->limit ? %(p)s->limit : v;
            } }
            """ % {"x": inputs[0], "z": outputs[0], "p": sub["params"], "fail": sub["fail"]}

    x = T.dvector("x")
    type_ = Quadratic.params_type
    cases = {
        mode: lambda m=mode: theano.function(
            [x], [Quadratic(2)(x), Quadratic(3, "LINE")(x)], mode=m
        )([1.0, -2.0])
        for mode in (*MODES, "FAST_COMPILE")
    }
    cases["fields"] = lambda: list(type_.fields)
    cases["constants"] = lambda: [type_.SQUARE, type_.LINE, type_.LOW, type_.HIGH]
    cases["alias"] = lambda: type_.enum_from_alias("sq")
    cases["no such alias"] = lambda: type_.enum_from_alias("nothing")
    cases["values"] = lambda: sorted(type_.get_params(Quadratic(2)).keys())
    cases["other"] = lambda: type_.get_params(Quadratic(2)).other
    cases["equal"] = lambda: [
        type_.get_params(Quadratic(2)) == type_.get_params(Quadratic(2)),
        type_.get_params(Quadratic(2)) == type_.get_params(Quadratic(3)),
    ]
    cases["bad field"] = lambda: ParamsType(**{"a b": x.type})
    cases["keyword"] = lambda: ParamsType(**{"while": x.type})
    cases["no type"] = lambda: ParamsType(a=1)
    cases["empty"] = lambda: ParamsType()
    cases["lower case"] = lambda: EnumType(low=1)
    cases["text value"] = lambda: EnumType(LOW="1")
    cases["same alias"] = lambda: EnumType(LOW=("x", 1), HIGH=("x", 2))
    cases["C type"] = lambda: EnumType(LOW=1, ctype="int!")
    cases["twice"] = lambda: EnumList("A", "A")
    cases["set"] = lambda: setattr(EnumType(LOW=1), "LOW", 2)
    return attempt_each(cases)


@program("userops.files")
def files(theano, T, np):
    """A COp: its C code lies in a file."""
    from theano.gof import COp, ParamsType

    class ScaledProduct(COp):
        __props__ = ("factor",)
        params_type = ParamsType(factor=theano.scalar.Scalar("float64"))

        def __init__(self, factor):
            COp.__init__(self, "./scaled_product.c", "APPLY_SPECIFIC(multiply)")
            self.factor = factor

        def make_node(self, x, y):
            return theano.Apply(self, [x, y], [x.type()])

    _importable(ScaledProduct)
    x, y, u = T.dvector("x"), T.dvector("y"), T.fvector("u")
    f = theano.function([x, y], ScaledProduct(2.0)(x, y))
    g = theano.function([u], ScaledProduct(0.5)(u[::2], u[::2]))
    return attempt_each(
        {
            "float64": lambda: f([1.0, 2.0], [3.0, 4.0]),
            "float32": lambda: g(np.arange(4, dtype="float32")),
            "lengths": lambda: f([1.0, 2.0], [3.0]),
        }
    )


@program("userops.memory")
def memory(theano, T, np):
    """In-place Ops, views, several outputs, struct members, cleanup code, and reused outputs."""

    def c_code(text):
        def method(self, node, name, inp, out, sub):
            names = {"x": inp[0], "z": out[0], "fail": sub["fail"]}
            names.update(("z%d" % i, z) for i, z in enumerate(out))
            return text % names

        return method

    add_one = """
    Py_XDECREF(%(z)s); %(z)s = %(x)s; Py_INCREF(%(z)s);
    for (npy_intp i = 0; i < PyArray_DIM(%(x)s, 0); i++)
        *(npy_float64 *)PyArray_GETPTR1(%(x)s, i) += 1;
    """
    reverse = """
    Py_XDECREF(%(z)s);
    npy_intp n = PyArray_DIM(%(x)s, 0), step = -PyArray_STRIDE(%(x)s, 0);
    Py_INCREF(PyArray_DESCR(%(x)s));
    %(z)s = (PyArrayObject *)PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(%(x)s), 1, &n, &step,
        PyArray_BYTES(%(x)s) - (n - 1) * step, NPY_ARRAY_WRITEABLE, NULL);
    if (!%(z)s) %(fail)s
    Py_INCREF(%(x)s);
    PyArray_SetBaseObject(%(z)s, (PyObject *)%(x)s);
    """
    both = DOUBLE.replace("%(z)s", "%(z0)s") + DOUBLE.replace("%(z)s", "%(z1)s")
    counted = "this->calls++;\n" + DOUBLE + "\np_%(z)s[0] = this->calls;"
    counted = counted.replace("\np_%(z)s[0]", "\n((npy_float64 *)PyArray_DATA(%(z)s))[0]")

    def pair(self, x):
        return theano.Apply(self, [x], [x.type(), x.type()])

    x = T.dvector("x")
    inplace = _double(theano, T, perform=None, destroy_map={0: [0]}, c_code=c_code(add_one))
    view = _double(theano, T, perform=None, view_map={0: [0]}, c_code=c_code(reverse))
    two = _double(theano, T, perform=None, make_node=pair, c_code=c_code(both))
    counting = _double(
        theano, T, perform=None, c_code=c_code(counted),
        c_support_code_struct=lambda self, node, name: "int calls;",
        c_init_code_struct=lambda self, node, name, sub: "this->calls = 10;",
        c_cleanup_code_struct=lambda self, node, name: "this->calls = 0;",
    )  # fmt: skip
    shared = theano.shared(np.array([1.0, 2.0]))
    cases = {}
    for mode in MODES:
        cases["in place " + mode] = lambda m=mode: theano.function(
            [x], inplace(x * 3), mode=m, accept_inplace=True
        )([1.0, 2.0])
        cases["view " + mode] = lambda m=mode: theano.function(
            [x], [view(x) + 1, view(view(x))], mode=m
        )([1.0, 2.0, 3.0])
        cases["two outputs " + mode] = lambda m=mode: theano.function([x], two(x), mode=m)([1.0])
    f = theano.function([x], counting(x))
    cases["struct"] = lambda: [f([1.0, 2.0]) for _ in range(3)]
    cases["argument"] = lambda: _kept(theano.function([x], inplace(x), accept_inplace=True), np)
    cases["update"] = lambda: [
        theano.function([], [], updates=[(shared, inplace(shared * 3))], accept_inplace=True)(),
        shared.get_value(),
    ]
    return attempt_each(cases)


def _kept(function, np):
    value = np.array([1.0, 2.0])
    return [function(value), value]


@program("userops.failures")
def failures(theano, T, np):
    """C code that fails at run time: with an exception, without one, and in its initialization."""
    x = T.dvector("x")

    def c_code(text):
        return lambda self, node, name, inp, out, sub: text % {"fail": sub["fail"], "z": out[0]}

    def failing(**methods):
        op = _double(theano, T, perform=None, **methods)
        return lambda: theano.function([x], op(x))([1.0])

    raises = 'PyErr_SetString(PyExc_KeyError, "the reason"); %(fail)s'
    return attempt_each(
        {
            "exception": failing(c_code=c_code(raises)),
            "no exception": failing(c_code=c_code("%(fail)s")),
            "struct": failing(
                c_init_code_struct=lambda self, node, name, sub: (
                    'PyErr_SetString(PyExc_IndexError, "at the start"); ' + sub["fail"]
                )
            ),
            "cleanup": failing(
                c_code=c_code("int k = 1; if (k) { " + raises + " }"),
                c_code_cleanup=lambda self, node, name, inp, out, sub: "k = 0;",
            ),
        }
    )


@program("userops.scalar")
def scalar(theano, T, np):
    """Scalar operations with C code: alone, fused, with support code, in reductions and failing."""
    scalar = theano.scalar

    class Cube(scalar.UnaryScalarOp):
        def impl(self, x):
            return x * x * x + 1

        def grad(self, inputs, gradients):
            (x,) = inputs
            return [gradients[0] * 3 * x * x]

        def c_support_code(self):
            return "template <class T> static T cube_of(T x) { return x * x * x; }"

        def c_code(self, node, name, inputs, outputs, sub):
            if node.inputs[0].type in scalar.complex_types:
                raise NotImplementedError("type not supported", node.inputs[0].type)
            return "%s = cube_of(1.0 * %s) + 1;" % (outputs[0], inputs[0])

        def c_code_cache_version(self):
            return (1,)

    class Divide(scalar.BinaryScalarOp):
        def impl(self, x, y):
            if y == 0:
                raise ZeroDivisionError("nothing to divide by")
            return x / y

        def c_code(self, node, name, inputs, outputs, sub):
            return """
            if (%(y)s == 0) {
                PyErr_SetString(PyExc_ZeroDivisionError, "nothing to divide by");
                %(fail)s
            }
            %(z)s = %(x)s / %(y)s;
            """ % {"x": inputs[0], "y": inputs[1], "z": outputs[0], "fail": sub["fail"]}

    class Larger(scalar.BinaryScalarOp):
        commutative = associative = True
        identity = 0

        def impl(self, x, y):
            return x if abs(x) > abs(y) else y

        def c_code(self, node, name, inputs, outputs, sub):
            x, y = inputs
            return "%s = fabs(%s) > fabs(%s) ? %s : %s;" % (outputs[0], x, y, x, y)

    _importable(Cube, Divide, Larger)
    cube = T.Elemwise(Cube(scalar.upgrade_to_float, name="cube"))
    divide = T.Elemwise(Divide(scalar.upgrade_to_float, name="divide"))
    larger = T.elemwise.CAReduce(Larger(scalar.upcast_out), axis=1)
    x, y, i = T.dmatrix("x"), T.dmatrix("y"), T.ivector("i")
    cases = {}
    for mode in (*MODES, "FAST_COMPILE"):
        fused = theano.function([x, y], [cube(x) * 2 + T.exp(-y), divide(x, y)], mode=mode)
        cases["fused " + mode] = lambda f=fused: f([[1.0, -2], [0.5, 3]], [[1.0, 2.0], [3, 4]])
        if mode != "DEBUG_MODE":
            cases["fails " + mode] = lambda f=fused: f([[1.0]], [[0.0]])
        cases["integers " + mode] = lambda m=mode: theano.function([i], cube(i), mode=m)(
            np.array([1, 2], "int32")
        )
        cases["gradient " + mode] = lambda m=mode: theano.function(
            [x], T.grad(cube(x).sum(), x), mode=m
        )([[1.0, -2]])
        cases["sum " + mode] = lambda m=mode: theano.function([x], cube(x).sum(axis=0), mode=m)(
            [[1.0, -2], [3, 4]]
        )
        cases["reduction " + mode] = lambda m=mode: theano.function([x], larger(x), mode=m)(
            [[1.0, -2, 1], [-3, 3, 2]]
        )
        cases["of nothing " + mode] = lambda m=mode: theano.function([x], larger(x), mode=m)(
            np.zeros((2, 0))
        )
    s = scalar.float64("s")
    cases["number"] = lambda: theano.function([s], Cube(scalar.upgrade_to_float)(s))(2.0)
    return attempt_each(cases)


@program("userops.thunks")
def thunks(theano, T, np):
    """Ops that make their own thunks, and thunks made by hand."""
    x = T.dvector("x")
    prepared = []

    def own(self, node, storage_map, compute_map, no_recycling, impl=None):
        inputs = [storage_map[v] for v in node.inputs]
        outputs = [storage_map[v] for v in node.outputs]

        def thunk():
            outputs[0][0] = inputs[0][0] * 5
            compute_map[node.outputs[0]][0] = True

        thunk.inputs, thunk.outputs, thunk.lazy = inputs, outputs, False
        return thunk

    def prepare(self, node, storage_map, compute_map, impl):
        prepared.append(impl)

    def by_hand(impl):
        node = _double(theano, T)(x).owner
        storages = {node.inputs[0]: [np.array([1.0, 2.0])], node.outputs[0]: [None]}
        computed = {node.inputs[0]: [True], node.outputs[0]: [False]}
        node.op.make_thunk(node, storages, computed, [], impl)()
        return [storages[node.outputs[0]][0], computed[node.outputs[0]][0]]

    replaced = _double(theano, T, make_thunk=own, c_code=None)
    noted = _double(theano, T, prepare_node=prepare)
    return attempt_each(
        {
            "own": lambda: theano.function([x], replaced(x) + 1)([1.0]),
            "prepared": lambda: [theano.function([x], noted(x))([1.0]), sorted(set(prepared))],
            "c": lambda: by_hand("c"),
            "py": lambda: by_hand("py"),
            "either": lambda: by_hand(None),
        }
    )
