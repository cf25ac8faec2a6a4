"""What the tests of users' C++ code share: an Op whose methods each test gives."""

import theano
import theano.tensor as T

#: doubles an array of any layout
DOUBLE = """
Py_XDECREF(%(z)s);
%(z)s = (PyArrayObject *)PyArray_NewCopy(%(x)s, NPY_CORDER);
if (!%(z)s) %(fail)s
for (npy_intp i = 0; i < PyArray_SIZE(%(z)s); i++)
    ((dtype_%(z)s *)PyArray_DATA(%(z)s))[i] *= 2;
"""


def c_code(text):
    """Return a method ``c_code`` that fills names into a text: x, y, z, z1, fail, params, name."""

    def method(self, node, name, inputs, outputs, sub):
        names = dict(zip("xyw", inputs, strict=False), **sub, name=name, z=outputs[0])
        names.update((f"z{i}", z) for i, z in enumerate(outputs))
        return text % names

    return method


def make_op(code=DOUBLE, base=theano.Op, **members):
    """Return an Op from vectors to a vector with ``c_code``, and no perform unless it is given."""

    def make_node(self, *inputs):
        inputs = [T.as_tensor_variable(x) for x in inputs]
        return theano.Apply(self, inputs, [inputs[0].type()])

    own = {"__props__": (), "make_node": make_node, "c_code": c_code(code), **members}
    return type("Own", (base,), own)()


def doubled(self, node, inputs, outputs):
    outputs[0][0] = inputs[0] * 2
